"""Dynamics cycle-consistency: a map between two domains found from unpaired steps, by acting in one and predicting."""

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import Status, require
from laureate.control.bonuses import Transitions
from laureate.control.critics import CriticState, PooledCritic
from laureate.control.two_domains import CorrespondenceWarning, Units, check_domains

__all__ = ["DynamicsCycle", "DynamicsCycleInfo", "DynamicsCycleState", "ForwardInfo"]

PHASES = ("states", "actions", "both")
COPYING, COLLAPSED = 0.9, 0.01  # of the error of predicting no change; of the variance of y
Pairs = tuple[Array, Array]


class DynamicsCycleState(NamedTuple):
    """What the next step needs.

    step: steps taken. state_map: the arrays of G. action_maps: those of (H, P). optimisers: the states of the two
    optimisers. critics: those of D_Y, D_U and D_A, None for one that is not there.
    """

    step: Array
    state_map: Any
    action_maps: Any
    optimisers: tuple[Any, Any]
    critics: tuple[CriticState | None, CriticState | None, CriticState | None]


class DynamicsCycleInfo(NamedTuple):
    """What a step reports.

    loss: all that the maps make small, weighed. dynamics, adversarial, ahead, action_adversarial, action_cycle, paired:
    its parts, not weighed. critic: the loss of D_Y, ¼ where it cannot tell. spread: the smallest variance of G(x) over
    that of y. cost: transitions of X. status: DIVERGED where the loss of the maps or of D_Y is not finite; the step is
    taken all the same.
    """

    loss: Array
    dynamics: Array
    adversarial: Array
    ahead: Array
    action_adversarial: Array
    action_cycle: Array
    paired: Array
    critic: Array
    spread: Array
    cost: Array
    status: Array


class ForwardInfo(NamedTuple):
    """What fitting the forward model reports.

    error: its mean absolute error on steps that it was not fitted to. copying: that of predicting no change. cost:
    transitions learned from. status: NOT_CONVERGED where it is hardly better than copying.
    """

    error: Array
    copying: Array
    cost: Array
    status: Array


class DynamicsCycle(eqx.Module):
    """Finds maps between two domains from steps that are not paired, so that a policy of one can act in the other.

    ::

        L = λ₀ ‖G(x') − F(G(x), H(x, a))‖₁ + λ₂ [adv(G(x)) + adv(F(G(x), H(x, a)))]
            + λ₁ [adv(H(x, a)) + adv(P(y, u))] + λ_c ‖P(G(x), H(x, a)) − a‖₁

    (Zhang, Xiao, Efros, Pinto & Wang 2021, section 3; weights and the pool as in their code.) F is fitted to steps of Y
    first and never changes again; its gradient by its inputs trains G and H. Dynamics tell G up to symmetries of F
    alone: see ``symmetries``. The adversary removes those that change the law of states; nothing removes the rest.

    state_map: G, from one observation of X to a state of Y.
    forward: F, from a state and an action of Y to the next state.
    critic: D_Y; None where nothing is adversarial.
    action_map: H, from an observation and an action of X to an action of Y; None: the actions are the same.
    action_back: P, from a state and an action of Y to an action of X; None likewise.
    action_critic, back_critic: D_U and D_A, of actions of Y and of X, or None.
    dynamics: λ₀, >= 0.
    adversarial, ahead: λ₂ at G(x) and at F(G(x), H(x, a)), >= 0.
    action_adversarial, action_cycle: λ₁ and λ_c, >= 0.
    paired: weight of ‖G(x) − y‖₁ on pairs, where a step is given some; >= 0.
    learning_rate: of the maps, > 0.
    forward_rate: of F while it is fitted, > 0; it falls to 0 along a cosine.
    x_units, y_units: of the observations; maps, F and critics see them normalised.
    optimiser: from a learning rate to an Optax optimiser, of the maps.

    >>> cycle = DynamicsCycle(lambda x: x, lambda y, u: y + u, None)
    >>> steps = Transitions(jnp.zeros((2, 1)), jnp.ones((2, 1)), jnp.ones((2, 1)))
    >>> loss, parts = cycle.losses(steps, steps, cycle.init(steps, steps))
    >>> float(loss)
    0.0
    """

    state_map: Callable[[Array], Array]
    forward: Callable[[Array, Array], Array]
    critic: PooledCritic | None
    action_map: Callable[[Array, Array], Array] | None = None
    action_back: Callable[[Array, Array], Array] | None = None
    action_critic: PooledCritic | None = None
    back_critic: PooledCritic | None = None
    dynamics: float | Array = 200.0
    adversarial: float | Array = 10.0
    ahead: float | Array = 10.0
    action_adversarial: float | Array = 10.0
    action_cycle: float | Array = 30.0
    paired: float | Array = 0.0
    learning_rate: float | Array = 1e-4
    forward_rate: float | Array = 1e-3
    x_units: Units | None = None
    y_units: Units | None = None
    optimiser: Callable[[Any], optax.GradientTransformation] = eqx.field(static=True, default=optax.adam)

    def __check_init__(self):
        for name in ("dynamics", "adversarial", "ahead", "action_adversarial", "action_cycle", "paired"):
            require("DynamicsCycle", name, ">= 0", getattr(self, name), lambda w: w >= 0)
        for name in ("learning_rate", "forward_rate"):
            require("DynamicsCycle", name, "> 0", getattr(self, name), lambda r: r > 0)
        given = (self.action_map is None, self.action_back is None)
        require("DynamicsCycle", "action_back", "given if and only if action_map is", given, lambda g: g[0] == g[1])

    def init(self, x: Transitions, y: Transitions) -> DynamicsCycleState:
        """The first weights, which the maps bring, and empty pools. Of the steps only the shapes count."""
        own = eqx.filter(self.state_map, eqx.is_inexact_array)
        others = eqx.filter((self.action_map, self.action_back), eqx.is_inexact_array)
        rule = self.optimiser(self.learning_rate)
        rows = y.observation[0], y.action[0], x.action[0]
        critics = tuple(None if c is None else c.init(row) for c, row in zip(self._critics(), rows, strict=True))
        return DynamicsCycleState(jnp.asarray(0), own, others, (rule.init(own), rule.init(others)), critics)  # pyright: ignore[reportArgumentType]

    def fit_forward(self, key: Array, y: Transitions, num_steps: int, batch: int = 64) -> tuple[Any, ForwardInfo]:
        """L_F = E‖y' − F(y, u)‖₁ on nine tenths of the steps; the same method with F fitted, and how well."""
        rule = "of at least two transitions, one of them to judge by"
        require("DynamicsCycle", "y", rule, len(y.action), lambda n: n >= 2)
        y = normalised(y, self.y_units)
        held, parameters = max(1, len(y.action) // 10), eqx.filter(self.forward, eqx.is_inexact_array)
        kept = len(y.action) - held
        rule = optax.adam(optax.cosine_decay_schedule(1.0, num_steps))

        def loss(parameters, steps):
            ahead = jax.vmap(eqx.combine(parameters, self.forward))(steps.observation, steps.action)
            return jnp.mean(jnp.abs(steps.following - ahead))

        def one(carry, number):
            parameters, state = carry
            slope = jax.grad(loss)(
                parameters, rows_of(jax.random.uniform(jax.random.fold_in(key, number), (batch,)), y, kept)
            )
            updates, state = rule.update(slope, state, parameters)
            updates = jax.tree.map(lambda update: self.forward_rate * update, updates)
            return (eqx.apply_updates(parameters, updates), state), None

        (parameters, _), _ = jax.lax.scan(one, (parameters, rule.init(parameters)), jnp.arange(num_steps))
        last = jax.tree.map(lambda part: part[kept:], y)
        error, copying = loss(parameters, last), jnp.mean(jnp.abs(last.following - last.observation))
        status = jnp.where(error < COPYING * copying, int(Status.OK), int(Status.NOT_CONVERGED))
        status = jnp.where(jnp.isfinite(error), status, int(Status.DIVERGED))
        fitted = eqx.tree_at(lambda m: m.forward, self, eqx.combine(parameters, self.forward))
        return fitted, ForwardInfo(error, copying, jnp.asarray(num_steps * batch), status)

    def maps(self, state: DynamicsCycleState) -> tuple[Callable, Callable | None, Callable | None]:
        """G, H and P as they are now."""
        return eqx.combine((state.state_map, *state.action_maps), (self.state_map, self.action_map, self.action_back))  # pyright: ignore[reportReturnType]

    def losses(
        self, x: Transitions, y: Transitions, state: DynamicsCycleState, pairs: Pairs | None = None
    ) -> tuple[Array, tuple[tuple[Array, ...], tuple[Array, Array, Array]]]:
        """L; its parts in the order of ``DynamicsCycleInfo``; and what the maps made: G(x), H(x, a), P(y, u)."""
        self._check(x, y, pairs)
        x, y = normalised(x, self.x_units), normalised(y, self.y_units)
        g, h, p = self.maps(state)
        zero = jnp.zeros((), y.observation.dtype)
        here, there = jax.vmap(g)(x.observation), jax.vmap(g)(x.following)
        u = x.action if h is None else jax.vmap(h)(x.observation, x.action)
        ahead = jax.vmap(self.forward)(here, u)  # F's weights are no argument of L: they never change
        dynamics = jnp.mean(jnp.abs(there - ahead))

        def fool(at: int, made: Array) -> Array:
            critic, own = self._critics()[at], state.critics[at]
            return zero if critic is None or own is None else critic.fooled(made, own)

        back, cycle, acting = y.action, zero, zero
        if h is not None:
            back = jax.vmap(p)(y.observation, y.action)  # pyright: ignore[reportArgumentType]
            cycle = jnp.mean(jnp.abs(jax.vmap(p)(here, u) - x.action))  # pyright: ignore[reportArgumentType]
            acting = fool(1, u) + fool(2, back)
        known = zero
        if pairs is not None:
            x_known, y_known = pairs
            found = jax.vmap(g)(x_known if self.x_units is None else self.x_units(x_known))
            known = jnp.mean(jnp.abs(found - (y_known if self.y_units is None else self.y_units(y_known))))
        parts = (dynamics, fool(0, here), fool(0, ahead), acting, cycle, known)
        weights = self.dynamics, self.adversarial, self.ahead, self.action_adversarial, self.action_cycle, self.paired
        return sum((w * part for w, part in zip(weights, parts, strict=True)), zero), (parts, (here, u, back))

    def step(
        self,
        key: Array,
        x: Transitions,
        y: Transitions,
        state: DynamicsCycleState,
        *,
        phase: Literal["states", "actions", "both"] = "states",
        pairs: Pairs | None = None,
    ) -> tuple[DynamicsCycleState, DynamicsCycleInfo]:
        """A step of the maps that ``phase`` names on a batch of each domain, then one of every critic.

        phase: "states" trains G, "actions" H and P, "both" all. pairs: rows of X and of Y that belong together.
        """
        require("DynamicsCycle", "phase", f"one of {', '.join(PHASES)}", phase, lambda p: p in PHASES)
        remedy = "Give action_map and action_back, or train states alone."
        acts = self.action_map is not None
        require(
            "DynamicsCycle",
            "phase",
            "'states' where actions are the same",
            phase,
            lambda p: acts or p == "states",
            remedy,
        )

        def loss(arrays):
            return self.losses(x, y, state._replace(state_map=arrays[0], action_maps=arrays[1]), pairs)

        arrays = (state.state_map, state.action_maps)
        (value, (parts, made)), slopes = jax.value_and_grad(loss, has_aux=True)(arrays)
        rule, chosen = self.optimiser(self.learning_rate), (phase != "actions", phase != "states")
        new, optimisers = list(arrays), list(state.optimisers)
        for at in range(2):  # whose turn it is not keeps its weights and its moments
            if chosen[at]:
                updates, optimisers[at] = rule.update(slopes[at], state.optimisers[at], arrays[at])
                new[at] = eqx.apply_updates(arrays[at], updates)
        given = normalised(y, self.y_units)
        rows = zip(self._critics(), state.critics, (given.observation, y.action, x.action), made, strict=True)
        keys, critics, told = jax.random.split(key, 3), [], jnp.zeros((), value.dtype)
        for at, (critic, own, real, fake) in enumerate(rows):
            if critic is None or own is None:
                critics.append(None)
                continue
            own, info = critic.step(keys[at], real, fake, own)
            critics.append(own)
            told = jnp.where(at == 0, info.loss, told)
        spread = jnp.min(jnp.var(made[0], axis=0) / (jnp.var(given.observation, axis=0) + 1e-12))
        status = jnp.where(jnp.isfinite(value + told), int(Status.OK), int(Status.DIVERGED))
        info = DynamicsCycleInfo(value, *parts, told, spread, jnp.asarray(len(x.action)), status)  # pyright: ignore[reportCallIssue]
        return DynamicsCycleState(state.step + 1, new[0], new[1], tuple(optimisers), tuple(critics)), info  # pyright: ignore[reportArgumentType]

    def train(
        self,
        key: Array,
        x: Transitions,
        y: Transitions,
        state: DynamicsCycleState,
        *,
        num_steps: int,
        batch: int = 32,
        phase: Literal["states", "actions", "both"] = "states",
        pairs: Pairs | None = None,
    ) -> tuple[DynamicsCycleState, DynamicsCycleInfo]:
        """So many steps on batches drawn with replacement, each domain's on its own; infos have an axis of steps.

        A step's key comes from its number in ``state``, so that training in parts changes nothing.
        """
        check_domains(x, y, bounded=False)
        self._check(x, y, pairs)

        def one(state, _):
            rows_key, step_key = jax.random.split(jax.random.fold_in(key, state.step))
            drawn = jax.random.uniform(rows_key, (3, batch))  # one draw: drawing is what compiles slowly
            ours = rows_of(drawn[0], x, len(x.action)), rows_of(drawn[1], y, len(y.action))
            some = None if pairs is None else rows_of(drawn[2], pairs, len(pairs[0]))
            return self.step(step_key, *ours, state, phase=phase, pairs=some)

        return jax.lax.scan(one, state, length=num_steps)

    def translate(self, x: Float[Array, "n ..."], state: DynamicsCycleState) -> Array:
        """ŷ of every row, in the units of Y."""
        found = jax.vmap(self.maps(state)[0])(x if self.x_units is None else self.x_units(x))
        return found if self.y_units is None else self.y_units.restore(found)

    def transfer(self, policy: Callable[[Array], Array], state: DynamicsCycleState) -> Callable[[Array], Array]:
        """A policy of Y as one of X: a = P(ŷ, π(ŷ)) with ŷ = G(x); π gets ŷ in the units of Y."""
        back = self.maps(state)[2]

        def act(x: Array) -> Array:
            seen = self.translate(x[None], state)[0]
            u = policy(seen)
            return u if back is None else back(seen if self.y_units is None else self.y_units(seen), u)

        return act

    def fit(
        self,
        key: Array,
        x: Transitions,
        y: Transitions,
        *,
        num_forward: int = 2000,
        num_steps: int = 5000,
        num_rounds: int = 3,
        batch: int = 32,
        pairs: Pairs | None = None,
        force: bool = False,
    ) -> tuple[Any, DynamicsCycleState, DynamicsCycleInfo]:
        """F, then the maps in turns: ``num_rounds`` times G, then H and P with G held; without H, G alone.

        num_forward: steps of F; 0 for a simulator. num_steps: of every turn. force: go on though F is hardly better
        than copying. Gives the method with F fitted, the state, and the infos of all steps.
        """
        for name, number in (("num_steps", num_steps), ("num_rounds", num_rounds)):
            require("DynamicsCycle", name, ">= 1", number, lambda n: n >= 1)
        check_domains(x, y, bounded=self.action_map is not None)
        forward_key, train_key = jax.random.split(key)
        fitted = self
        if num_forward:
            fitted, told = eqx.filter_jit(type(self).fit_forward)(self, forward_key, y, num_forward)
            said = f"error {float(told.error):.3g}, copying {float(told.copying):.3g}"
            rule, fine = f"better than {COPYING} times copying", force or int(told.status) == int(Status.OK)
            remedy = "Fit it for longer (num_forward), look for transitions across resets, or go on with force=True."
            require("DynamicsCycle", "forward", rule, said, lambda _: fine, remedy)
        phases = ["states"] if self.action_map is None else ["states", "actions"] * num_rounds
        state, infos = fitted.init(x, y), []
        for phase in phases:
            length = num_steps * num_rounds if self.action_map is None else num_steps
            state, info = eqx.filter_jit(type(self).train)(
                fitted,
                train_key,
                x,
                y,
                state,
                num_steps=length,
                batch=batch,
                phase=phase,  # pyright: ignore[reportArgumentType]
                pairs=pairs,
            )
            infos.append(info)
        history = jax.tree.map(lambda *parts: jnp.concatenate(parts), *infos)
        warn_if_collapsed(history)
        return fitted, state, history

    def _check(self, x: Transitions, y: Transitions, pairs: Pairs | None) -> None:
        sizes = x.action.shape[1:], y.action.shape[1:]
        fits, remedy = self.action_map is not None or sizes[0] == sizes[1], "Give action_map and action_back."
        require("DynamicsCycle", "action", "of one size in both domains", sizes, lambda _: fits, remedy)
        if pairs is not None:
            lengths, said = tuple(map(len, pairs)), "> 0 where pairs are given"
            require("DynamicsCycle", "pairs", "of one length", lengths, lambda n: n[0] == n[1] > 0)
            require("DynamicsCycle", "paired", said, self.paired, lambda w: w > 0)

    def _critics(self) -> tuple[PooledCritic | None, PooledCritic | None, PooledCritic | None]:
        acts = self.action_map is not None
        return self.critic, self.action_critic if acts else None, self.back_critic if acts else None


def normalised(steps: Transitions, units: Units | None) -> Transitions:
    """Observations in their units."""
    if units is None:
        return steps
    return Transitions(units(steps.observation), steps.action, units(steps.following))


def rows_of(drawn: Float[Array, " batch"], tree: Any, number: int) -> Any:
    """Rows among the first ``number`` by numbers drawn in [0, 1)."""
    rows = jnp.minimum((drawn * number).astype(jnp.int32), number - 1)  # the product may round up to n
    return jax.tree.map(lambda leaf: leaf[rows], tree)


def warn_if_collapsed(history: DynamicsCycleInfo) -> None:
    """Where the last tenth of a run has a G that says one thing, or a critic that is always right, say so."""
    if isinstance(history.spread, Tracer):
        return
    late = len(history.spread) - max(1, len(history.spread) // 10)
    if float(np.median(np.asarray(history.spread)[late:])) < COLLAPSED:
        said = "DynamicsCycle.state_map has collapsed: a number of G(x) varies less than 1 % of what y does. "
        said += "Raise adversarial and ahead, or lower dynamics."
        warnings.warn(said, CorrespondenceWarning, stacklevel=3)
    elif 0 < float(np.max(np.asarray(history.critic)[late:])) < 1e-3:
        said = "DynamicsCycle.critic is always right (loss < 0.001): G learns nothing from it. Lower its learning_rate."
        warnings.warn(said, CorrespondenceWarning, stacklevel=3)
