"""What a step was worth: generalised advantages, λ-returns, and rewards divided by the spread of their returns."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from laureate._core import require
from laureate.layers import RunningStatistics

__all__ = ["ReturnScale", "ReturnScaleState", "gae", "lambda_return"]


def gae(
    reward: Float[Array, "T ..."],
    value: Float[Array, "T ..."],
    following: Float[Array, "T ..."],
    *,
    terminated: Bool[Array, "T ..."] | None = None,
    ended: Bool[Array, "T ..."] | None = None,
    gamma: float | Array = 0.99,
    lam: float | Array = 0.95,
) -> Float[Array, "T ..."]:
    """Generalised advantage estimates along the first axis (Schulman et al. 2016)::

        δ_t = r_t + γ (1 − terminated_t) V(s_{t+1}) − V(s_t)
        A_t = δ_t + γ λ (1 − ended_t) A_{t+1}

    The target of V is A + V.

    reward, value: r_t and V(s_t).
    following: V(s_{t+1}), of the state that step t reached, also where the episode ended there.
    terminated: nothing follows step t; without it nothing ever terminates.
    ended: an episode ends with step t, by termination or by a time limit; without it, where ``terminated``.
    gamma, lam: γ and λ, within 0 and 1; arrays that broadcast with one row are allowed.

    Where episodes do not matter (RND's intrinsic return), leave both out and let ``following`` be the value of the
    state that is acted in next, which after an end is the first of the next episode.

    >>> gae(jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5]), jnp.array([0.5, 9.0]), terminated=jnp.array([False, True]),
    ...     gamma=1.0, lam=1.0).tolist()
    [0.5, 0.5]
    """
    _check("gae", reward, gamma, lam, value=value, following=following)
    over = jnp.zeros(reward.shape, bool) if terminated is None else jnp.asarray(terminated).astype(bool)
    cut = over if ended is None else jnp.asarray(ended).astype(bool) | over
    delta = reward + gamma * jnp.where(over, 0.0, following) - value

    def back(ahead: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, cut = at
        advantage = delta + gamma * lam * jnp.where(cut, 0.0, ahead)
        return advantage, advantage

    return jax.lax.scan(back, jnp.zeros_like(delta[0]), (delta, cut), reverse=True)[1]


def lambda_return(
    reward: Float[Array, "T ..."],
    following: Float[Array, "T ..."],
    discount: float | Float[Array, "T ..."],
    *,
    ended: Bool[Array, "T ..."] | None = None,
    lam: float | Array = 0.95,
) -> Float[Array, "T ..."]:
    """λ-returns along the first axis, for critics and for imagined rollouts.

    ::

        G_t = r_t + d_t ((1 − λ) V(s_{t+1}) + λ G_{t+1}),    G_T = V(s_T);    where ended_t: λ = 0

    reward, following: r_t and V(s_{t+1}).
    discount: d_t, e.g. γ where step t does not terminate and 0 where it does, or a model's prediction of that.
    ended: an episode ends with step t, so that G_{t+1} belongs to another one.
    lam: λ, within 0 and 1.

    >>> lambda_return(jnp.array([1.0, 1.0]), jnp.array([0.0, 4.0]), 0.5, lam=1.0).tolist()
    [2.5, 3.0]
    """
    discount = jnp.broadcast_to(discount, reward.shape)
    _check("lambda_return", reward, 0.0, lam, following=following)
    cut = jnp.zeros(reward.shape, bool) if ended is None else jnp.asarray(ended).astype(bool)

    def back(ahead: Array, at: tuple[Array, ...]) -> tuple[Array, Array]:
        reward, following, discount, cut = at
        share = jnp.where(cut, 0.0, lam)
        found = reward + discount * ((1 - share) * following + share * ahead)
        return found, found

    start = jnp.zeros_like(reward[-1] + following[-1]) + following[-1]
    return jax.lax.scan(back, start, (reward, following, discount, cut), reverse=True)[1]


class ReturnScaleState(NamedTuple):
    """What the next rewards are scaled by.

    filtered: R in every environment, [environments]. returns: the statistics of all values of R.
    """

    filtered: Float[Array, " environments"]
    returns: RunningStatistics


class ReturnScale(eqx.Module):
    """Rewards divided by the running standard deviation of their discounted sum, so that their scale does not matter.

    ::

        R_t = γ R_{t−1} + i_t  in every environment, never reset,    i ← i / √Var(R)

    (Burda et al. 2019, section 2.4.) The mean is not subtracted, and nothing is clipped. Of the first rewards the
    variance is that of themselves.

    gamma: γ of the sum, within 0 and 1 (RND: the intrinsic discount).

    >>> scale = ReturnScale(0.5)
    >>> scaled, state = scale.step(jnp.array([[2.0], [0.0]]), scale.init(1))  # R = 2, 1: a deviation of 1/2
    >>> scaled.tolist()
    [[4.0], [0.0]]
    """

    gamma: float | Array = 0.99

    def __check_init__(self):
        require("ReturnScale", "gamma", "in [0, 1)", self.gamma, lambda g: 0 <= g < 1, "Sums would grow without end.")

    def init(self, num_environments: int) -> ReturnScaleState:
        """Nothing seen."""
        require("ReturnScale", "num_environments", ">= 1", num_environments, lambda n: n >= 1)
        filtered = jnp.zeros(num_environments)
        return ReturnScaleState(filtered, RunningStatistics.empty((), filtered.dtype))

    def step(self, reward: Float[Array, "T E"], state: ReturnScaleState) -> tuple[Array, ReturnScaleState]:
        """The rewards of a rollout, scaled by all up to these, and the new state."""
        width = state.filtered.shape[0]
        require("ReturnScale", "reward", f"of shape [T, {width}]", reward.shape, lambda s: s[1:] == (width,))

        def forward(filtered: Array, reward: Array) -> tuple[Array, Array]:
            filtered = self.gamma * filtered + reward  # R_t = γ R_{t−1} + i_t
            return filtered, filtered

        filtered, sums = jax.lax.scan(forward, state.filtered, reward)
        new = ReturnScaleState(filtered, state.returns.update(sums.reshape(-1)))
        return reward / self.deviation(new), new

    def deviation(self, state: ReturnScaleState) -> Float[Array, ""]:
        """√Var(R); 1 where all sums so far are the same number, as after a single step."""
        found, level = jnp.sqrt(state.returns.variance()), jnp.abs(state.returns.mean)
        return jnp.where(found <= 1e-6 * level, 1.0, found)  # below it is what rounding leaves


def _is_share(value: float | Array) -> bool:
    return bool(np.all((np.asarray(value) >= 0) & (np.asarray(value) <= 1)))


def _check(owner: str, reward: Array, gamma: float | Array, lam: float | Array, **others: Array) -> None:
    for name, other in others.items():
        require(owner, name, f"of shape {reward.shape}, as reward", jnp.shape(other), lambda s: s == reward.shape)
    require(owner, "gamma", "within 0 and 1", gamma, _is_share)
    require(owner, "lam", "within 0 and 1", lam, _is_share)
