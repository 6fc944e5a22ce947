"""Imitation in finite environments with an exact inner solver: GAIL, AIRL, and with a bottleneck VAIL and VAIRL."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.generative.conditional import Optimiser
from laureate.generative.conditional import _check_finite as check_finite
from laureate.generative.judge import Judge, JudgeState, adam
from laureate.generative.losses import imitation_reward
from laureate.generative.tabular import FiniteEnvironment, visits

__all__ = [
    "AdversarialIRL",
    "AdversarialImitation",
    "ImitationInfo",
    "ImitationState",
    "ShapedDiscriminator",
    "ShapedEncoder",
    "improved",
]


class ImitationState(NamedTuple):
    """What the next step needs.

    log_policy: log π(a | s), [states, actions]. judge: the discriminator's state.
    """

    log_policy: Float[Array, "states actions"]
    judge: JudgeState


class ImitationInfo(NamedTuple):
    """What a step reports.

    loss, margin, accuracy, saturated, nats: of the discriminator, see ``JudgeInfo``. regularisers: their states after
    the step. cost: passes (a network forward and backward over a batch). status: DIVERGED where the loss is not finite;
    the step is taken all the same.
    """

    loss: Array
    margin: Array
    accuracy: Array
    saturated: Array
    nats: Array
    regularisers: tuple[Any, ...]
    cost: Array
    status: Array


def improved(
    environment: FiniteEnvironment, log_policy: Array, reward: Array, temperature: float | Array, rate: float | Array
) -> Array:
    """A step of the policy towards the soft best one for a reward [states, actions]::

        V = (I − γ P_π)⁻¹ E_π (r − τ log π),   Q = r + γ V(s'),   log π ← (1 − rate) log π + rate · Q / τ − log Z

    Exact policy evaluation and a step of mirror descent; rate = 1 is soft policy iteration.
    """
    values = environment.values(jnp.exp(log_policy), reward - temperature * log_policy)
    action_values = reward + environment.discount * values[environment.following]
    return jax.nn.log_softmax((1 - rate) * log_policy + rate * action_values / temperature, axis=1)


def _rows(key: Array, law: Array, number: int) -> Array:
    """Rows drawn by their probabilities, by the inverse of the distribution function."""
    reached = jnp.cumsum(law)
    drawn = jax.random.uniform(key, (number,), law.dtype) * reached[-1]
    return jnp.minimum(jnp.searchsorted(reached, drawn, side="right"), len(law) - 1)


def _demonstrated(owner: str, demonstrated: Array, below: tuple[int, ...] = ()) -> int:
    """How many there are; features must be finite, states and actions ``below`` the numbers of those there are."""
    require(owner, "demonstrated", "at least two", len(demonstrated), lambda n: n >= 2)
    if isinstance(demonstrated, Tracer):
        return len(demonstrated)
    if below:
        pairs = np.asarray(demonstrated)
        rule = f"pairs [n, 2] of a state below {below[0]} and an action below {below[1]}"
        require(owner, "demonstrated", rule, list(pairs.shape), lambda shape: shape[1:] == [2])
        # jax would take the last state for one that is not there.
        wrong = np.any((pairs < 0) | (pairs >= below), axis=1)
        require(owner, "demonstrated", rule, pairs[wrong][:1].tolist(), lambda rows: not rows)
    else:
        check_finite(owner, "demonstrated", demonstrated)
    return len(demonstrated)


def _told(info: Any, judged: JudgeState) -> ImitationInfo:
    told = info.loss, info.margin, info.accuracy, info.saturated, info.nats
    return ImitationInfo(*told, judged.regularisers, info.cost, info.status)


class AdversarialImitation(eqx.Module):
    """Imitate whoever visited the states of a demonstration, without knowing actions or rewards (GAIL, VAIL)::

        D learns to tell demonstrated states from visited ones
        r(s) = −log(1 − D(s)),   π moves towards the soft best policy for r

    GAIL with states alone (Ho & Ermon 2016; Torabi et al. 2018); with a ``VariationalBottleneck`` VAIL (Peng et al.
    2019), whose reward goes through the mean of the code. The environment's own reward is never seen.

    environment: what is imitated in.
    discriminator: D, from what is seen of a state's features to one number.
    regulariser: None, or as for ``Adversarial``.
    temperature: τ of the policy, > 0.
    policy_rate: of the policy's step, within 0 and 1.
    learning_rate, optimiser: of the discriminator.
    batch: states a step, of either kind, >= 1.

    >>> line = FiniteEnvironment(jnp.array([[0, 1], [0, 1]]), jnp.array([1.0, 0.0]), jnp.eye(2))
    >>> imitation = AdversarialImitation(line, lambda x: 4 * x[1] - 2)
    >>> state, info = imitation.step(jax.random.key(0), jnp.array([[0.0, 1.0]] * 2), imitation.init())
    >>> bool(jnp.all(state.log_policy[:, 1] > state.log_policy[:, 0]))
    True
    """

    environment: FiniteEnvironment
    discriminator: Callable[[Array], Array]
    regulariser: Any = None
    temperature: float | Array = 0.1
    policy_rate: float | Array = 0.1
    learning_rate: float | Array = 1e-3
    optimiser: Optimiser = eqx.field(static=True, default=adam)
    batch: int = eqx.field(static=True, default=64)

    def __check_init__(self):
        require("AdversarialImitation", "temperature", "> 0", self.temperature, lambda t: t > 0)
        require("AdversarialImitation", "policy_rate", "within 0 and 1", self.policy_rate, lambda r: 0 < r <= 1)
        require("AdversarialImitation", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)
        require("AdversarialImitation", "batch", ">= 1", self.batch, lambda n: n >= 1)

    @property
    def judge(self) -> Judge:
        """The discriminator with its regularisers and its optimiser."""
        return Judge(self.discriminator, "non-saturating", self.regulariser, self.learning_rate, self.optimiser)

    def init(self) -> ImitationState:
        """Every action alike."""
        return ImitationState(_uniform(self.environment), self.judge.init())

    def reward(self, state: ImitationState) -> Float[Array, " states"]:
        """r(s) = −log(1 − D(s)) of every state, without noise."""
        return imitation_reward(self.judge.score(state.judge, self.environment.features))

    def step(self, key: Array, demonstrated: Array, state: ImitationState) -> tuple[ImitationState, ImitationInfo]:
        """One step of D on demonstrated features [n, ...] and visited states, then one of the policy."""
        rows_key, visit_key, judge_key = jax.random.split(key, 3)
        number, world = _demonstrated("AdversarialImitation", demonstrated), self.environment
        real = demonstrated[_rows(rows_key, jnp.full(number, 1 / number), self.batch)]
        made = world.features[_rows(visit_key, visits(world, jnp.exp(state.log_policy)), self.batch)]
        judged, info = self.judge.step(judge_key, real, made, state.judge)
        reward = self.reward(state._replace(judge=judged))
        each = jnp.broadcast_to(reward[:, None], state.log_policy.shape)
        log_policy = improved(world, state.log_policy, each, self.temperature, self.policy_rate)
        return ImitationState(log_policy, judged), _told(info, judged)


class ShapedDiscriminator(eqx.Module):
    """AIRL's discriminator of what is seen of (s, s, s') and log π(a | s)::

        l = f − log π(a | s),   f = g(s) + γ h(s') − h(s);   D = exp f / (exp f + π)

    reward: g. potential: h. discount: γ.
    """

    reward: Callable[[Array], Array]
    potential: Callable[[Array], Array]
    discount: float = eqx.field(static=True, default=0.9)  # not a leaf: it must not be learned

    def __call__(self, seen: Float[Array, "3 ..."], log_probability: Array) -> Array:
        """l of one transition."""
        g, before, after = self.reward(seen[0]), self.potential(seen[1]), self.potential(seen[2])
        return (g + self.discount * after - before).reshape(()) - log_probability


class ShapedEncoder(eqx.Module):
    """VAIRL's encoder of (s, s, s'): E_g of the first, E_h of the others; their KLs are summed.

    reward: E_g. potential: E_h. Both from features to (μ, log σ).
    """

    reward: Callable[[Array], tuple[Array, Array]]
    potential: Callable[[Array], tuple[Array, Array]]

    def __call__(self, x: Float[Array, "3 ..."]) -> tuple[Array, Array]:
        """μ and log σ, [3, Z] each."""
        parts = self.reward(x[0]), self.potential(x[1]), self.potential(x[2])
        return jnp.stack([mean for mean, _ in parts]), jnp.stack([log_deviation for _, log_deviation in parts])


class AdversarialIRL(eqx.Module):
    """Find the reward behind demonstrated transitions, apart from what the environment adds to it (AIRL, VAIRL)::

        D learns to tell demonstrated (s, a, s') from the policy's,   l = g(s) + γ h(s') − h(s) − log π(a | s)
        π moves towards the soft best policy for f = g(s) + γ h(s') − h(s), at temperature 1

    AIRL (Fu et al. 2018); with a ``VariationalBottleneck`` around a ``ShapedEncoder`` VAIRL (Peng et al. 2019). The
    reward g of a state alone is what is taken to another environment.

    environment, policy_rate, learning_rate, optimiser, batch: as for ``AdversarialImitation``.
    discriminator: a ``ShapedDiscriminator`` with the environment's discount.
    regulariser: None, or as for ``Adversarial``.

    >>> line = FiniteEnvironment(jnp.array([[0, 1], [0, 1]]), jnp.array([1.0, 0.0]), jnp.eye(2))
    >>> irl = AdversarialIRL(line, ShapedDiscriminator(lambda x: x[1], lambda x: 0 * x[0]))
    >>> irl.reward(irl.init()).tolist()
    [0.0, 1.0]
    """

    environment: FiniteEnvironment
    discriminator: ShapedDiscriminator
    regulariser: Any = None
    policy_rate: float | Array = 0.1
    learning_rate: float | Array = 1e-3
    optimiser: Optimiser = eqx.field(static=True, default=adam)
    batch: int = eqx.field(static=True, default=64)

    def __check_init__(self):
        rule, remedy = "a ShapedDiscriminator", "It must be told log π(a | s), without which D is not AIRL's."
        kind = type(self.discriminator).__name__
        require("AdversarialIRL", "discriminator", rule, kind, lambda name: name == "ShapedDiscriminator", remedy)
        own, remedy = self.discriminator.discount, "With another γ what h adds changes which policy is best."
        rule, same = f"the discriminator's, {own:g}", lambda discount: np.isclose(discount, own, rtol=1e-5)
        require("AdversarialIRL", "environment.discount", rule, self.environment.discount, same, remedy)
        require("AdversarialIRL", "policy_rate", "within 0 and 1", self.policy_rate, lambda r: 0 < r <= 1)
        require("AdversarialIRL", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)
        require("AdversarialIRL", "batch", ">= 1", self.batch, lambda n: n >= 1)

    @property
    def judge(self) -> Judge:
        """The discriminator with its regularisers and its optimiser."""
        return Judge(self.discriminator, "non-saturating", self.regulariser, self.learning_rate, self.optimiser)

    def init(self) -> ImitationState:
        """Every action alike."""
        return ImitationState(_uniform(self.environment), self.judge.init())

    def transitions(self, pairs: Int[Array, "n 2"]) -> Array:
        """Features of (s, s, s') [n, 3, ...] for states and actions."""
        world = self.environment
        before, after = world.features[pairs[:, 0]], world.features[world.following[pairs[:, 0], pairs[:, 1]]]
        return jnp.stack([before, before, after], axis=1)

    def reward(self, state: ImitationState) -> Float[Array, " states"]:
        """g(s) of every state, without noise."""
        every = jnp.stack([self.environment.features] * 3, axis=1)
        return self.reward_of(state, every)

    def reward_of(self, state: ImitationState, seen: Float[Array, "n 3 ..."]) -> Float[Array, " n"]:
        """g of features that stand first of three, without noise; those of another environment may be asked for."""
        judged = state.judge
        seen, _ = self.judge.seen(None, judged.parameters, seen, judged.regularisers, "generator")
        discriminator, _ = eqx.combine(judged.parameters, self.judge.networks)
        return jax.vmap(discriminator.reward)(seen[:, 0]).reshape(len(seen))

    def step(
        self, key: Array, demonstrated: Int[Array, "n 2"], state: ImitationState
    ) -> tuple[ImitationState, ImitationInfo]:
        """One step of D on demonstrated states and actions and on the policy's own, then one of the policy."""
        rows_key, visit_key, judge_key = jax.random.split(key, 3)
        world, (states, actions) = self.environment, self.environment.following.shape
        number = _demonstrated("AdversarialIRL", demonstrated, (states, actions))
        policy = jnp.exp(state.log_policy)
        real = demonstrated[_rows(rows_key, jnp.full(number, 1 / number), self.batch)]
        flat = _rows(visit_key, (visits(world, policy)[:, None] * policy).reshape(-1), self.batch)
        made = jnp.stack([flat // actions, flat % actions], axis=1)
        told = lambda pairs: (self.transitions(pairs), state.log_policy[pairs[:, 0], pairs[:, 1]])  # noqa: E731
        judged, info = self.judge.step(judge_key, told(real), told(made), state.judge)
        every = jnp.stack(jnp.meshgrid(jnp.arange(states), jnp.arange(actions), indexing="ij"), axis=-1).reshape(-1, 2)
        # f: the logit where log π = 0.
        f = self.judge.score(judged, (self.transitions(every), jnp.zeros(len(every)))).reshape(states, actions)
        return ImitationState(improved(world, state.log_policy, f, 1.0, self.policy_rate), judged), _told(info, judged)


def _uniform(environment: FiniteEnvironment) -> Array:
    shape = environment.following.shape
    return jnp.full(shape, -math.log(shape[1]), environment.start.dtype)
