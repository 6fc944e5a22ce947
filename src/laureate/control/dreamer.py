"""DreamerV2: a world model with discrete latents, and an actor and a critic that learn in it alone."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from laureate._core import Status, require
from laureate.control.imagination import actor_loss, critic_loss, imagine, imagined_returns
from laureate.control.laws import DiagonalNormal, OneHot, TruncatedNormal
from laureate.control.policies import Layers, make_perceptrons
from laureate.control.rssm import RSSMState
from laureate.control.world_model import Sequences, WorldModel, WorldModelInfo, make_world_model, world_model_loss

__all__ = ["DreamerInfo", "DreamerMemory", "DreamerState", "DreamerV2", "make_dreamer"]

SHARES = ("lam", "alpha", "mix", "decay")  # within 0 and 1


class DreamerState(NamedTuple):
    """What the next update needs.

    world, actor, critic: the arrays of each. slow: those of the critic as it was at the last copy. optimisers: the
    states of their optimisers, in this order. count: updates done.
    """

    world: Any
    actor: Any
    critic: Any
    slow: Any
    optimisers: tuple[Any, Any, Any]
    count: Int[Array, ""]  # pyright: ignore[reportIncompatibleMethodOverride]


class DreamerMemory(NamedTuple):
    """What an agent remembers while it acts.

    state: the model's. action: the one taken last, [batch, actions].
    """

    state: RSSMState
    action: Float[Array, "batch actions"]


class DreamerInfo(NamedTuple):
    """What an update reports.

    loss: of the world model. world: what it is made of. actor, critic: their losses. entropy: of the policy. target:
    the mean λ-return. cost: steps learned from. status: DIVERGED where a loss is not finite; the update is made all the
    same.
    """

    loss: Array
    world: WorldModelInfo
    actor: Array
    critic: Array
    entropy: Array
    target: Array
    cost: Array
    status: Array


class DreamerV2(eqx.Module):
    """An agent that learns a model of its world, and its behaviour inside it (Hafner et al. 2021)::

        θ ← θ − ∇ [likelihoods + β KL_balanced],    s_0 ~ posterior,  s_{t+1} ~ model(s_t, a ~ π),  t < H
        v ← v − ∇ ½ (v(s_t) − sg G_t)²,    π ← π + ∇ [ρ log π sg(G − v) + (1 − ρ) G + η H(π)]

    world: ``WorldModel``.
    actor: from features to the numbers of ``law``.
    critic: from features to a value, [1].
    law: of actions, ``OneHot`` or ``TruncatedNormal``.
    gamma: γ, in [0, 1).
    lam: λ, within 0 and 1.
    beta, alpha, free, discount_weight: see ``world_model_loss``.
    mix: ρ, within 0 and 1; 1 for discrete actions (REINFORCE), 0 for continuous ones (through the dynamics).
    entropy: η >= 0.
    model_rate, actor_rate, critic_rate: learning rates, >= 0.
    clip: of the gradients' norm, > 0.
    decay: share by which all weights shrink before every step, in [0, 1].
    horizon: H >= 2.
    slow_every: updates between two copies of the critic to the slow one, >= 1.
    transform: of rewards, before they are learned; the paper's is tanh.

    >>> agent = make_dreamer(jax.random.key(0), (3,), OneHot(1, 2), latent=OneHot(2, 4), memory=8, width=8, horizon=3)
    >>> steps = jnp.zeros((4, 2))
    >>> batch = Sequences(jnp.ones((4, 2, 3)), jnp.zeros((4, 2, 2)), steps, steps > 0, steps == 0)
    >>> state, info = eqx.filter_jit(agent.step)(jax.random.key(1), batch, agent.init())
    >>> int(info.cost), int(info.status), int(state.count)
    (8, 0, 1)
    """

    world: WorldModel
    actor: Callable[[Array], Array]
    critic: Callable[[Array], Array]
    law: OneHot | TruncatedNormal
    gamma: float | Array = eqx.field(kw_only=True, default=0.995)
    lam: float | Array = eqx.field(kw_only=True, default=0.95)
    beta: float | Array = eqx.field(kw_only=True, default=0.1)
    alpha: float | Array = eqx.field(kw_only=True, default=0.8)
    free: float | Array = eqx.field(kw_only=True, default=0.0)
    discount_weight: float | Array = eqx.field(kw_only=True, default=5.0)
    mix: float | Array = eqx.field(kw_only=True, default=1.0)
    entropy: float | Array = eqx.field(kw_only=True, default=1e-3)
    model_rate: float | Array = eqx.field(kw_only=True, default=2e-4)
    actor_rate: float | Array = eqx.field(kw_only=True, default=4e-5)
    critic_rate: float | Array = eqx.field(kw_only=True, default=1e-4)
    clip: float | Array = eqx.field(kw_only=True, default=100.0)
    decay: float | Array = eqx.field(kw_only=True, default=1e-6)
    horizon: int = eqx.field(kw_only=True, static=True, default=15)
    slow_every: int = eqx.field(kw_only=True, static=True, default=100)
    transform: Callable[[Array], Array] = eqx.field(kw_only=True, static=True, default=jnp.tanh)

    def __check_init__(self):
        for name in SHARES:
            require("DreamerV2", name, "within 0 and 1", getattr(self, name), lambda v: 0 <= v <= 1)
        for name in ("beta", "free", "discount_weight", "entropy", "model_rate", "actor_rate", "critic_rate"):
            require("DreamerV2", name, ">= 0", getattr(self, name), lambda v: v >= 0)
        require("DreamerV2", "gamma", "in [0, 1)", self.gamma, lambda v: 0 <= v < 1)
        require("DreamerV2", "clip", "> 0", self.clip, lambda v: v > 0)
        require("DreamerV2", "horizon", ">= 2", self.horizon, lambda n: n >= 2)
        require("DreamerV2", "slow_every", ">= 1", self.slow_every, lambda n: n >= 1)
        if not hasattr(self.law, "draw") or not hasattr(self.law, "log_probability"):
            raise TypeError(
                f"DreamerV2.law must be OneHot or TruncatedNormal; got {self.law!r}. Others draw no gradient."
            )
        same = lambda n: n == self.law.width  # noqa: E731
        require(
            "DreamerV2", "world.rssm.num_actions", f"law.width = {self.law.width}", self.world.rssm.num_actions, same
        )

    def optimiser(self, rate: float | Array) -> optax.GradientTransformation:
        """Clipped gradients, Adam, and weights that shrink by their own share, whatever the learning rate."""
        clipped, adam = optax.clip_by_global_norm(self.clip), optax.adam(rate, eps=1e-5)  # pyright: ignore[reportArgumentType]
        return optax.chain(clipped, adam, optax.add_decayed_weights(-self.decay))

    def init(self) -> DreamerState:
        """The first weights: the networks bring them, so nothing is drawn."""
        world, actor, critic = (eqx.filter(one, eqx.is_inexact_array) for one in (self.world, self.actor, self.critic))
        each = zip((self.model_rate, self.actor_rate, self.critic_rate), (world, actor, critic), strict=True)
        optimisers = tuple(self.optimiser(rate).init(parameters) for rate, parameters in each)
        return DreamerState(world, actor, critic, critic, optimisers, jnp.asarray(0, jnp.int32))  # pyright: ignore[reportArgumentType]

    def remember(self, batch: int) -> DreamerMemory:
        """Nothing yet."""
        return DreamerMemory(self.world.rssm.init(batch), jnp.zeros((batch, self.law.width)))

    def act(
        self, key: Array, observation: Array, first: Bool[Array, " batch"], memory: DreamerMemory, state: DreamerState
    ) -> DreamerMemory:
        """An action for every environment, in the memory to go on with. first: whether an episode begins."""
        world, actor = eqx.combine(state.world, self.world), eqx.combine(state.actor, self.actor)
        model_key, action_key = jax.random.split(key)
        known, _ = world.rssm.step(model_key, memory.state, memory.action, world.embed(observation), first)
        return DreamerMemory(known, self.law.sample(action_key, jax.vmap(actor)(known.features)))

    def step(self, key: Array, batch: Sequences, state: DreamerState) -> tuple[DreamerState, DreamerInfo]:
        """One update of all three on sequences [T, batch, ...]."""
        model_key, dream_key = jax.random.split(key)
        batch = batch._replace(reward=self.transform(batch.reward))

        def model(parameters: Any) -> tuple[Array, tuple[WorldModelInfo, RSSMState]]:
            numbers = {"gamma": self.gamma, "beta": self.beta, "alpha": self.alpha, "free": self.free}
            world = eqx.combine(parameters, self.world)
            return world_model_loss(model_key, world, batch, **numbers, discount_weight=self.discount_weight)

        (loss, (told, posterior)), slope = jax.value_and_grad(model, has_aux=True)(state.world)
        new_world, for_world = self._updated(slope, state.optimisers[0], state.world, self.model_rate)
        # Imagination: in the model as it is now, from every state that was observed.
        world, slow = eqx.combine(new_world, self.world), eqx.combine(state.slow, self.critic)
        start = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), posterior)

        def behaviour(parameters: Any) -> tuple[Array, Any]:
            actor = eqx.combine(parameters, self.actor)
            ends = batch.terminal.reshape(-1)
            rollout = imagine(dream_key, world, actor, self.law, start, ends, self.horizon, self.gamma)
            target, value = imagined_returns(rollout, slow, self.lam)
            found, spread = actor_loss(rollout, actor, self.law, target, value, self.mix, self.entropy)
            return found, (spread, rollout, target)

        (gain, (spread, rollout, target)), slope = jax.value_and_grad(behaviour, has_aux=True)(state.actor)
        new_actor, for_actor = self._updated(slope, state.optimisers[1], state.actor, self.actor_rate)
        evaluate = lambda parameters: critic_loss(rollout, eqx.combine(parameters, self.critic), target)  # noqa: E731
        wrong, slope = jax.value_and_grad(evaluate)(state.critic)
        new_critic, for_critic = self._updated(slope, state.optimisers[2], state.critic, self.critic_rate)
        copy = state.count % self.slow_every == 0
        new_slow = jax.tree.map(lambda new, old: jnp.where(copy, new, old), new_critic, state.slow)
        optimisers = for_world, for_actor, for_critic
        new = DreamerState(new_world, new_actor, new_critic, new_slow, optimisers, state.count + 1)
        fine = jnp.isfinite(loss) & jnp.isfinite(gain) & jnp.isfinite(wrong)
        status = jnp.where(fine, int(Status.OK), int(Status.DIVERGED))
        return new, DreamerInfo(loss, told, gain, wrong, spread, jnp.mean(target), told.cost, status)

    def _updated(self, slope: Any, optimiser: Any, parameters: Any, rate: float | Array) -> tuple[Any, Any]:
        updates, optimiser = self.optimiser(rate).update(slope, optimiser, parameters)
        return eqx.apply_updates(parameters, updates), optimiser


def make_dreamer(
    key: Array,
    observation_shape: tuple[int, ...],
    law: OneHot | TruncatedNormal,
    *,
    latent: OneHot | DiagonalNormal | None = None,
    memory: int = 64,
    width: int = 64,
    depth: int = 48,
    discount: bool = True,
    **settings: Any,
) -> DreamerV2:
    """An agent with perceptrons, or convolutions for images of 64 × 64; two hidden layers in actor and critic.

    observation_shape: of one. law: of actions, e.g. ``OneHot(1, num)`` for discrete ones, ``TruncatedNormal(num)``.
    latent, memory, width, depth, discount: as ``law`` and the others of ``make_world_model``. settings: of
    ``DreamerV2``.
    """
    world_key, behaviour_key = jax.random.split(key)
    sizes: dict[str, Any] = {"memory": memory, "width": width, "depth": depth, "discount": discount}
    world = make_world_model(world_key, observation_shape, law.width, law=latent, **sizes)
    hidden, elu = (world.rssm.law.width + memory, width, width), jax.nn.elu
    # Small weights at the end: the first actions are drawn nearly uniformly, and the first values are near 0.
    trunks = make_perceptrons(behaviour_key, *[Layers(hidden, 1.0, True, elu)] * 2)
    actor, critic = (
        eqx.nn.Sequential([trunk, _flat(width, outputs)]) for trunk, outputs in zip(trunks, (law.size, 1), strict=True)
    )
    return DreamerV2(world, actor, critic, law, **settings)


def _flat(inputs: int, outputs: int) -> eqx.nn.Linear:
    """A linear layer of zeros."""
    shapes = eqx.filter_eval_shape(eqx.nn.Linear, inputs, outputs, key=jax.random.key(0))
    zeros = jnp.zeros((outputs, inputs)), jnp.zeros(outputs)
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), shapes, zeros)
