"""Linear systems whose gradients, optima or variances are known exactly."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate._core import require

__all__ = ["Blocks", "FixedEpisode", "InfluenceBalancing", "LinearLosses", "LinearQuadratic"]


class LinearQuadratic(eqx.Module):
    """s_{t+1} = A s_t + B θ, L_t = ½ s_{t+1}ᵀ Q s_{t+1} + qᵀ s_{t+1}: quadratic in θ, the gradient in closed form.

    A turns and slowly forgets (its eigenvalues have modulus ``memory``), so that what θ does now is felt for about
    1 / (1 − memory) steps: a truncation shorter than that sees little of it.

    horizon: steps an episode, >= 1. memory: in (0, 1). size: of s, >= 1. num_parameters: of θ, >= 1.

    >>> problem = LinearQuadratic(horizon=4)
    >>> theta = problem.theta0(jax.random.key(0))
    >>> state, loss = problem.step(jax.random.key(1), theta, problem.init(jax.random.key(2), theta))
    >>> state.shape, loss.shape
    ((4,), ())
    """

    transition: Float[Array, "n n"]
    control: Float[Array, "n p"]
    cost: Float[Array, "n n"]
    linear_cost: Float[Array, " n"]
    start: Float[Array, " n"]
    horizon: int = eqx.field(static=True)

    def __init__(self, horizon: int = 20, memory: float = 0.9, size: int = 4, num_parameters: int = 3):
        require("LinearQuadratic", "horizon", ">= 1", horizon, lambda t: t >= 1)
        require("LinearQuadratic", "memory", "in (0, 1)", memory, lambda m: 0 < m < 1)
        generator = np.random.default_rng(2021)  # the system is the same for everybody; seeds move θ and the noise
        rotation, _ = np.linalg.qr(generator.normal(size=(size, size)))
        root = generator.normal(size=(size, size)) / np.sqrt(size)
        self.transition = jnp.asarray(memory * rotation, jnp.float32)
        self.control = jnp.asarray(generator.normal(size=(size, num_parameters)) / np.sqrt(size), jnp.float32)
        self.cost = jnp.asarray(root @ root.T, jnp.float32)
        self.linear_cost = jnp.asarray(generator.normal(size=size), jnp.float32)
        self.start = jnp.asarray(generator.normal(size=size), jnp.float32)
        self.horizon = horizon

    def theta0(self, key: PRNGKeyArray) -> Float[Array, " p"]:
        """Where the parameters start: standard normal."""
        return jax.random.normal(key, (self.control.shape[1],))

    def init(self, key: PRNGKeyArray, theta: Float[Array, " p"]) -> Float[Array, " n"]:
        """The first state, s_0."""
        del key, theta
        return self.start

    def step(
        self, key: PRNGKeyArray, theta: Float[Array, " p"], state: Float[Array, " n"]
    ) -> tuple[Float[Array, " n"], Float[Array, ""]]:
        """One step of the system: the next state, and what it costs."""
        del key
        state = self.transition @ state + self.control @ theta  # s_{t+1} = A s_t + B θ
        return state, 0.5 * state @ self.cost @ state + self.linear_cost @ state

    def gradient(self, theta: Float[Array, " p"]) -> Float[Array, " p"]:
        """d/dθ Σ_t L_t = Σ_t (S_t B)ᵀ (Q s_t + q) with s_t = A^t s_0 + S_t B θ and S_t = Σ_{j<t} A^j."""
        power, total = jnp.eye(len(self.start)), jnp.zeros_like(self.transition)
        gradient = jnp.zeros_like(theta)
        for _ in range(self.horizon):
            total, power = total + power, power @ self.transition
            state = power @ self.start + total @ self.control @ theta
            gradient = gradient + (total @ self.control).T @ (self.cost @ state + self.linear_cost)
        return gradient


class LinearLosses(eqx.Module):
    """L_t = Σ_{τ<=t} a_{tτ}·θ_τ, where θ_τ is the θ that step τ was given: every loss linear, every slope chosen.

    Here the variance of an ES estimator can be written down, and PES's compared with it.

    slopes: a_{tτ}, shape [M, M, P]; entries with τ > t are not used.

    >>> problem = LinearLosses(jnp.ones((2, 2, 1)))
    >>> state = problem.init(jax.random.key(0), jnp.array([3.0]))
    >>> state, first = problem.step(jax.random.key(0), jnp.array([3.0]), state)
    >>> state, second = problem.step(jax.random.key(0), jnp.array([5.0]), state)
    >>> float(first), float(second)
    (3.0, 8.0)
    """

    slopes: Float[Array, "m m p"]

    @property
    def horizon(self) -> int:
        """M."""
        return self.slopes.shape[0]

    def theta0(self, key: PRNGKeyArray) -> Float[Array, " p"]:
        """Zero: the gradient is the same everywhere."""
        del key
        return jnp.zeros(self.slopes.shape[2])

    def init(self, key: PRNGKeyArray, theta: Float[Array, " p"]) -> tuple[Int[Array, ""], Float[Array, "m p"]]:
        """The step's number and the θ of all steps so far."""
        del key, theta
        return jnp.zeros((), jnp.int32), jnp.zeros(self.slopes.shape[1:])

    def step(
        self, key: PRNGKeyArray, theta: Float[Array, " p"], state: tuple[Int[Array, ""], Float[Array, "m p"]]
    ) -> tuple[tuple[Int[Array, ""], Float[Array, "m p"]], Float[Array, ""]]:
        """Remember θ_t; L_t = Σ_τ a_{tτ}·θ_τ."""
        del key
        t, history = state
        history = history.at[t].set(theta)  # rows after t are still zero
        return (t + 1, history), jnp.sum(self.slopes[t] * history)


class InfluenceBalancing(eqx.Module):
    """Tallec & Ollivier's task: a parameter whose influence is positive at first and negative in the long run.

    s_{t+1} = A s_t + θ v with A = ½ I + ½ (shift) and v = (+1, p times; −1, n − p times); L = ½ (s[0] − 1)². What θ
    does reaches s[0] from the p positive entries first and from the n − p > p negative ones later, so whoever looks
    back a few steps follows the wrong sign. In the limit s[0] = 2θ(2p − n), hence θ* = 1 / (2(2p − n)) = −1/6.

    loss_every: the loss is counted on every so-manieth step only (the paper counts one a truncation), >= 1.

    >>> round(InfluenceBalancing().best, 4)
    -0.1667
    """

    size: int = eqx.field(static=True, default=23)
    num_positive: int = eqx.field(static=True, default=10)
    loss_every: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        require("InfluenceBalancing", "loss_every", ">= 1", self.loss_every, lambda k: k >= 1)
        require(
            "InfluenceBalancing",
            "num_positive",
            "in 0..size, and not size / 2",
            self.num_positive,
            lambda p: 0 <= p <= self.size and 2 * p != self.size,
        )

    @property
    def horizon(self) -> None:
        """It never ends."""
        return None

    @property
    def best(self) -> float:
        """θ*."""
        return 1 / (2 * (2 * self.num_positive - self.size))

    def theta0(self, key: PRNGKeyArray) -> Float[Array, ""]:
        """The authors' 0.5."""
        del key
        return jnp.array(0.5)

    def init(self, key: PRNGKeyArray, theta: Float[Array, ""]) -> tuple[Float[Array, " n"], Int[Array, ""]]:
        """All ones, and the number of steps done."""
        del key, theta
        return jnp.ones(self.size), jnp.zeros((), jnp.int32)

    def step(
        self, key: PRNGKeyArray, theta: Float[Array, ""], state: tuple[Float[Array, " n"], Int[Array, ""]]
    ) -> tuple[tuple[Float[Array, " n"], Int[Array, ""]], Float[Array, ""]]:
        """One step; the loss of the others is 0."""
        del key
        s, t = state
        signs = jnp.where(jnp.arange(self.size) < self.num_positive, 1.0, -1.0)
        shifted = jnp.concatenate([s[1:], jnp.zeros_like(s[:1])])
        s = 0.5 * s + 0.5 * shifted + theta * signs
        t = t + 1
        loss = 0.5 * (s[0] - 1.0) ** 2
        return (s, t), jnp.where(t % self.loss_every == 0, loss, jnp.zeros_like(loss))


class FixedEpisode(eqx.Module):
    """Any unroll with its randomness held still: the same data and draws in every episode.

    The gradient of the episode can then be had exactly by ``jax.grad``, and estimates be compared with it.

    >>> problem = FixedEpisode(LinearQuadratic(horizon=3), jax.random.key(7))
    >>> problem.horizon
    3
    """

    unroll: Any
    key: PRNGKeyArray

    @property
    def horizon(self) -> int | None:
        """That of the unroll."""
        return self.unroll.horizon

    def theta0(self, key: PRNGKeyArray) -> Any:
        """That of the unroll."""
        return self.unroll.theta0(key)

    def init(self, key: PRNGKeyArray, theta: Any) -> tuple[Int[Array, ""], Any]:
        """The start; the given key is not used."""
        del key
        return jnp.zeros((), jnp.int32), self.unroll.init(jax.random.fold_in(self.key, 0), theta)

    def step(self, key: PRNGKeyArray, theta: Any, state: tuple[Int[Array, ""], Any]) -> tuple[Any, ...]:
        """Step t with the t-th key of the fixed episode."""
        del key
        t, inner = state
        inner, *rest = self.unroll.step(jax.random.fold_in(self.key, t + 1), theta, inner)
        return ((t + 1, inner), *rest)


class Blocks(eqx.Module):
    """Any unroll, ``length`` of its steps taken as one, their losses summed.

    The length may be traced: many truncations can be tried with one compiled program. Forward only.

    length: steps a block, >= 1.

    >>> problem = Blocks(LinearQuadratic(), jnp.asarray(5))
    >>> key, theta = jax.random.key(0), jnp.ones(3)
    >>> state, loss = problem.step(key, theta, problem.init(key, theta))
    >>> loss.shape
    ()
    """

    unroll: Any
    length: Int[Array, ""]

    def init(self, key: PRNGKeyArray, theta: Any) -> Any:
        """That of the unroll."""
        return self.unroll.init(key, theta)

    def step(self, key: PRNGKeyArray, theta: Any, state: Any) -> tuple[Any, Float[Array, ""]]:
        """``length`` steps; step k of them has the key ``fold_in(key, k)``."""

        def advance(k, carry):
            state, total = carry
            state, loss = self.unroll.step(jax.random.fold_in(key, k), theta, state)
            return state, total + loss

        return jax.lax.fori_loop(0, self.length, advance, (state, jnp.zeros(())))
