"""Proximal policy optimisation with one value head for each kind of reward."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from laureate._core import Status, require
from laureate.control.returns import gae

__all__ = ["PPO", "PPOBatch", "PPOInfo", "PPOState", "Rollout", "adam", "minibatches"]

Optimiser = Callable[[Any], optax.GradientTransformation]


def adam(learning_rate: Any) -> optax.GradientTransformation:
    """Adam with ε = 1e-5, as in the authors' code."""
    return optax.adam(learning_rate, eps=1e-5)


def as_row(value: Any) -> Array:
    """A number or several as a vector."""
    return jnp.atleast_1d(jnp.asarray(value, jnp.float32))


class Rollout(NamedTuple):
    """What ``T`` steps in ``E`` environments have shown.

    observation: acted in, [T, E, ...]. action, log_probability: taken, and log π of it. following: the observation that
    the step reached, also where the episode ended there. reward: of the step. terminated: nothing follows by the rules.
    ended: an episode ends with this step, by the rules or by a time limit. last: the observations to be acted in next,
    [E, ...].
    """

    observation: Float[Array, "T E ..."]
    action: Array
    log_probability: Float[Array, "T E"]
    following: Float[Array, "T E ..."]
    reward: Float[Array, "T E"]
    terminated: Bool[Array, "T E"]
    ended: Bool[Array, "T E"]
    last: Float[Array, "E ..."]


class PPOBatch(NamedTuple):
    """What one gradient step learns from; leading axes are any, the same for all.

    observation: acted in. action, log_probability: taken, and log π of it by the policy that took it. advantage: A of
    it. target: G of every head, the heads last.
    """

    observation: Float[Array, "..."]
    action: Array
    log_probability: Float[Array, "..."]
    advantage: Float[Array, "..."]
    target: Float[Array, "... heads"]


class PPOState(NamedTuple):
    """What the next step needs.

    parameters: the network's arrays. optimiser: Optax's state for them.
    """

    parameters: Any
    optimiser: Any


class PPOInfo(NamedTuple):
    """What a gradient step reports.

    loss: the whole. value_loss: ½ mean squared error, a number a head. entropy: of the policy. clipped: share of steps
    whose ratio was cut. cost: observations passed through the network. status: DIVERGED where the loss is not finite;
    the step is taken all the same.
    """

    loss: Array
    value_loss: Float[Array, " heads"]
    entropy: Array
    clipped: Array
    cost: Array
    status: Array


class PPO(eqx.Module):
    """Learns a policy from rollouts by a clipped surrogate; each kind of reward has a discount and a head of its own.

    ::

        L = − E min(ρ A, clip(ρ, 1 − ε, 1 + ε) A) + Σ_h ½ E (V_h − G_h)² − c E H(π),    ρ = π(a | s) / π_old(a | s)

    (Schulman et al. 2017; two heads: Burda et al. 2019, section 2.3.) Advantages are not normalised, values not
    clipped, gradients not bounded, as in the authors' code of RND; ``optimiser`` may do the last.

    network: from one observation to (what ``law`` wants, values [heads]); it brings its first weights.
    law: ``Categorical``, ``Gaussian``, or the like.
    gamma: γ of every head, a number or [heads], within 0 and 1.
    episodic: 1 for a head whose returns end with the episode, 0 for one whose returns go on into the next, [heads].
    lam: λ of the advantages, within 0 and 1.
    clip: ε, > 0.
    entropy: c, >= 0.
    learning_rate: > 0.
    optimiser: from a learning rate to an Optax optimiser.

    >>> from laureate.control import Categorical
    >>> network = lambda s: (jnp.array([0.0, 1.0]) * s[0], s[:1])
    >>> ppo = PPO(network, Categorical(2), gamma=0.9)
    >>> action, log_probability, values = ppo.act(jax.random.key(0), jnp.ones((3, 1)), ppo.init())
    >>> action.shape, values.shape
    ((3,), (3, 1))
    """

    network: Callable[[Array], tuple[Array, Array]]
    law: Any
    gamma: Float[Array, " heads"] = eqx.field(converter=as_row, default=0.99)
    episodic: Float[Array, " heads"] = eqx.field(converter=as_row, default=1.0)
    lam: float | Array = 0.95
    clip: float | Array = 0.1
    entropy: float | Array = 0.001
    learning_rate: float | Array = 1e-4
    optimiser: Optimiser = eqx.field(static=True, default=adam)

    def __check_init__(self):
        require("PPO", "gamma", "within 0 and 1", self.gamma, lambda g: np.all((g >= 0) & (g <= 1)))
        same = lambda shape: shape == self.gamma.shape  # noqa: E731
        require("PPO", "episodic", f"of shape {self.gamma.shape}, as gamma", self.episodic.shape, same)
        require("PPO", "episodic", "0 or 1", self.episodic, lambda e: np.all((e == 0) | (e == 1)))
        rule, remedy = "1 for a head with gamma = 1", "Returns that never end would have no bound: gamma < 1."
        if not isinstance(self.gamma, jax.core.Tracer):  # pyright: ignore[reportAttributeAccessIssue]
            endless = np.asarray(self.gamma) == 1
            require("PPO", "episodic", rule, self.episodic, lambda e: np.all(e[endless] == 1), remedy)
        require("PPO", "lam", "within 0 and 1", self.lam, lambda v: 0 <= v <= 1)
        require("PPO", "clip", "> 0", self.clip, lambda v: v > 0)
        require("PPO", "entropy", ">= 0", self.entropy, lambda v: v >= 0)
        require("PPO", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)

    @property
    def num_heads(self) -> int:
        """Kinds of rewards."""
        return self.gamma.shape[0]

    def init(self) -> PPOState:
        """The first weights: the network brings them, so nothing is drawn."""
        parameters = eqx.filter(self.network, eqx.is_inexact_array)
        return PPOState(parameters, self.optimiser(self.learning_rate).init(parameters))

    def evaluate(self, observation: Array, state: PPOState, axes: int = 1) -> tuple[Array, Array]:
        """What the law wants, and the values, of observations with so many leading axes."""
        network = eqx.combine(state.parameters, self.network)
        for _ in range(axes):
            network = jax.vmap(network)
        parameters, values = network(observation)
        rule, remedy = (
            f"{self.num_heads}, one for each gamma",
            "A network returns (what the law wants, values [heads]).",
        )
        require("PPO", "network values", rule, values.shape[axes:], lambda s: s == (self.num_heads,), remedy)
        return parameters, values

    def act(self, key: Array, observation: Array, state: PPOState) -> tuple[Array, Array, Array]:
        """An action for every environment, log π of it, and the values."""
        parameters, values = self.evaluate(observation, state)
        action = self.law.sample(key, parameters)
        return action, self.law.log_probability(parameters, action), values

    def advantages(self, rollout: Rollout, reward: Float[Array, "T E heads"], state: PPOState) -> tuple[Array, Array]:
        """A and the targets G = A + V of every head, [T, E, heads]."""
        _, values = self.evaluate(rollout.observation, state, axes=2)
        _, reached = self.evaluate(rollout.following, state, axes=2)
        _, last = self.evaluate(rollout.last, state)
        # An episodic head values the state that was reached; another one goes on where the agent acts next.
        onward = jnp.concatenate([values[1:], last[None]])
        following = jnp.where(self.episodic > 0, reached, onward)
        stops = lambda mask: (mask[..., None] & (self.episodic > 0)).astype(bool)  # noqa: E731
        advantage = gae(
            reward,
            values,
            following,
            terminated=stops(rollout.terminated),
            ended=stops(rollout.ended),
            gamma=self.gamma,
            lam=self.lam,
        )
        return advantage, advantage + values

    def loss(self, parameters: Any, batch: PPOBatch) -> tuple[Array, tuple[Array, Array, Array]]:
        """L, and of it: value losses, entropy, share clipped."""
        axes = batch.advantage.ndim
        wanted, values = self.evaluate(batch.observation, PPOState(parameters, None), axes)
        ratio = jnp.exp(self.law.log_probability(wanted, batch.action) - batch.log_probability)  # ρ
        near = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        gain = jnp.minimum(ratio * batch.advantage, near * batch.advantage)
        value_loss = 0.5 * jnp.mean((values - batch.target) ** 2, axis=tuple(range(axes)))
        entropy = jnp.mean(self.law.entropy(wanted))
        total = -jnp.mean(gain) + jnp.sum(value_loss) - self.entropy * entropy
        return total, (value_loss, entropy, jnp.mean((ratio != near).astype(total.dtype)))

    def step(self, batch: PPOBatch, state: PPOState) -> tuple[PPOState, PPOInfo]:
        """One gradient step."""
        (loss, told), slope = jax.value_and_grad(self.loss, has_aux=True)(state.parameters, batch)
        updates, optimiser = self.optimiser(self.learning_rate).update(slope, state.optimiser, state.parameters)
        status = jnp.where(jnp.isfinite(loss), int(Status.OK), int(Status.DIVERGED))
        info = PPOInfo(loss, *told, cost=jnp.asarray(batch.advantage.size), status=status)
        return PPOState(eqx.apply_updates(state.parameters, updates), optimiser), info


def minibatches(key: Array, num_environments: int, num_minibatches: int, num_epochs: int) -> Int[Array, "steps size"]:
    """Environments of every gradient step: each epoch deals all of them, in a new order, to the minibatches.

    A minibatch has whole trajectories of some environments, as in the authors' code.

    num_environments: a multiple of num_minibatches. num_minibatches: gradient steps an epoch. num_epochs: how often all
        environments are used.

    >>> rows = minibatches(jax.random.key(0), 6, 2, 3)
    >>> rows.shape, sorted(rows[:2].reshape(-1).tolist())
    ((6, 3), [0, 1, 2, 3, 4, 5])
    """
    for name, value in (("num_minibatches", num_minibatches), ("num_epochs", num_epochs)):
        require("minibatches", name, ">= 1", value, lambda n: n >= 1)
    rule = f"a multiple of num_minibatches = {num_minibatches}"
    require("minibatches", "num_environments", rule, num_environments, lambda n: n >= 1 and n % num_minibatches == 0)
    orders = jax.vmap(lambda one: jax.random.permutation(one, num_environments))(jax.random.split(key, num_epochs))
    return orders.reshape(num_epochs * num_minibatches, -1)
