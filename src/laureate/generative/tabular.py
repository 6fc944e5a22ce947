"""Finite environments, solved exactly: which states a policy visits, and what it is worth."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require

__all__ = ["FiniteEnvironment", "visits"]


class FiniteEnvironment(eqx.Module):
    """States and actions that can be counted, with transitions that are certain.

    following: the state after each action in each state, [states, actions].
    start: the law of the first state, [states].
    features: what a discriminator or a reward sees of a state, [states, ...].
    discount: γ, within 0 and 1.

    >>> two = FiniteEnvironment(jnp.array([[0, 1], [1, 0]]), jnp.array([1.0, 0.0]), jnp.eye(2), discount=0.5)
    >>> two.values(jnp.full((2, 2), 0.5), jnp.array([0.0, 1.0])).tolist()
    [0.5, 1.5]
    """

    following: Int[Array, "states actions"]
    start: Float[Array, " states"]
    features: Array
    discount: float | Array = 0.9

    def __check_init__(self):
        owner, number = "FiniteEnvironment", self.following.shape[0]
        rule = f"states, from 0 to {number - 1}"
        require(owner, "following", rule, self.following, lambda s: np.min(s) >= 0 and np.max(s) < number)
        sizes = len(self.start), len(self.features)
        require(owner, "features", "one for each state, as start", sizes, lambda n: n == (number, number))
        require(owner, "discount", "within 0 and 1", self.discount, lambda g: 0 <= g < 1)

    def chain(self, policy: Float[Array, "states actions"]) -> Float[Array, "states states"]:
        """P_π: from state to state."""
        number = len(self.start)
        there = jax.nn.one_hot(self.following, number, dtype=policy.dtype)
        return jnp.sum(policy[:, :, None] * there, axis=1)

    def values(self, policy: Float[Array, "states actions"], reward: Array) -> Float[Array, " states"]:
        """V = (I − γ P_π)⁻¹ r_π for a reward of states [states] or of states and actions [states, actions]."""
        reward = reward if reward.ndim == 1 else jnp.sum(policy * reward, axis=1)
        return jnp.linalg.solve(jnp.eye(len(reward)) - self.discount * self.chain(policy), reward)

    def worth(self, policy: Float[Array, "states actions"], reward: Array) -> Array:
        """The expected return Σ γᵗ r_t from the first state."""
        return jnp.sum(self.start * self.values(policy, reward))

    def solve(
        self, reward: Array, *, temperature: float | Array = 0.0, num_steps: int = 200
    ) -> Float[Array, "states actions"]:
        """The best policy for a reward of states, by value iteration; with a temperature τ > 0 the soft one::

        Q = r + γ V(s'),   V = max_a Q  or  τ log Σ_a exp(Q / τ)
        """
        reward = reward[:, None] if reward.ndim == 1 else reward
        soft = jnp.maximum(temperature, 1e-8)

        def back(values, _):
            action_values = reward + self.discount * values[self.following]
            best = jnp.max(action_values, axis=1)
            smooth = soft * jax.nn.logsumexp(action_values / soft, axis=1)
            return jnp.where(temperature > 0, smooth, best), action_values

        start = jnp.zeros(len(self.start), reward.dtype)
        values, _ = jax.lax.scan(back, start, length=num_steps)
        _, action_values = back(values, None)
        best = jnp.max(action_values, axis=1, keepdims=True)
        # What is compiled twice may be rounded twice: what ties may differ by is relative to the largest.
        rounding = 1e-6 * jnp.maximum(1, jnp.max(jnp.abs(action_values)))
        ties = (action_values >= best - rounding).astype(reward.dtype)
        greedy = ties / jnp.sum(ties, axis=1, keepdims=True)
        return jnp.where(temperature > 0, jax.nn.softmax(action_values / soft, axis=1), greedy)


def visits(environment: Any, policy: Float[Array, "states actions"]) -> Float[Array, " states"]:
    """d = (1 − γ) (I − γ P_π)⁻ᵀ start: how often each state is visited, discounted; sums to 1.

    >>> two = FiniteEnvironment(jnp.array([[0, 1], [1, 0]]), jnp.array([1.0, 0.0]), jnp.eye(2), discount=0.5)
    >>> visits(two, jnp.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [0.5, 0.5]
    """
    left = jnp.eye(len(environment.start)) - environment.discount * environment.chain(policy).T
    found = (1 - environment.discount) * jnp.linalg.solve(left, environment.start)
    return jnp.maximum(found, 0.0)  # of a state that is never visited, rounding may leave a little below 0
