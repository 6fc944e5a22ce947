"""Persistent evolution strategies at frozen θ: is the gradient unbiased, and how large is its variance?

What computes while θ is trained is in ``pes_training``.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate import gradients
from laureate.lab.claim import Settings
from laureate.problems.unrolls import Blocks, CharacterLSTM, FixedEpisode, LinearLosses

__all__ = ["character_lstm", "estimator", "settings_of", "unbiased", "variance"]

ESTIMATORS = {
    "pes": gradients.PersistentES,
    "noise-reuse": gradients.NoiseReuseES,
    "truncated-es": gradients.TruncatedES,
    "full-es": gradients.FullES,
    "truncated-backprop": gradients.TruncatedBackprop,
    "rtrl": gradients.RTRL,
}


def estimator(kind: str, unroll: Any, truncation: int, horizon: int | None, num_pairs: int, sigma: Any):
    """The estimator an arm names. Those that differentiate have neither pairs nor sigma."""
    make = ESTIMATORS[kind]
    if kind in ("truncated-backprop", "rtrl"):
        return make(unroll, truncation=truncation, horizon=horizon)
    if kind == "full-es":
        return make(unroll, horizon=horizon, num_pairs=num_pairs, sigma=sigma)
    return make(unroll, truncation=truncation, horizon=horizon, num_pairs=num_pairs, sigma=sigma)


def settings_of(arm: Settings, problem: Any) -> tuple[Any, int]:
    """Sigma and truncation: the problem's own where it has them, else the arm's.

    The truncation is lowered to the next divisor of the horizon, so that every episode is whole truncations.
    """
    horizon = problem.horizon
    if not isinstance(horizon, int) or horizon < 1:
        raise TypeError(f"{type(problem).__name__}.horizon must be an integer >= 1; got {horizon!r}.")
    sigma = getattr(problem, "sigma", arm.get("sigma", 0.1))
    wanted = min(int(getattr(problem, "truncation", arm.get("truncation", horizon))), horizon)
    return sigma, max(k for k in range(1, wanted + 1) if horizon % k == 0)


def unbiased(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The bias of an estimator in all directions at once, without the upward bias of a squared norm.

    With ḡ₁ and ḡ₂ the means over two independent halves of the episodes and g the exact gradient,
    E ⟨ḡ₁ − g, ḡ₂ − g⟩ = ‖E ĝ − g‖²: zero if and only if the estimator is unbiased, in every direction. Its standard
    deviation is at most v/n, with v = tr cov(ĝ)/‖g‖² for one pair and n pairs a half, for it is √(Σ C_jk²) <= tr C.
    The linear-quadratic system has v of the order of 10, so n = 4,000 (smoke) resolves 0.003 a seed and twelve seeds
    0.001, against the bound of 0.01; the bias of a truncation is of the order of 1.
    """
    theta_key, episode_key, *half_keys = jax.random.split(key, 4)
    theta = problem.theta0(theta_key)
    unroll = FixedEpisode(
        problem, episode_key
    )  # one episode's data and draws, so that jax.grad gives its exact gradient
    exact = _flat(jax.grad(lambda theta: gradients.full_unroll_loss(key, unroll, theta, problem.horizon))(theta))
    sigma, truncation = settings_of(arm, problem)
    est = estimator(arm.estimator, unroll, truncation, problem.horizon, scale.pairs, sigma)
    updates = scale.episodes * (problem.horizon // truncation)

    def half(key):
        return _flat(_sum_of_steps(key, est, theta, updates)) / scale.episodes

    first, second = jax.vmap(half)(jnp.stack(half_keys))
    power = exact @ exact
    return {
        "squared_bias": (first - exact) @ (second - exact) / power,
        "along_gradient": 0.5 * (first + second) @ exact / power - 1.0,
    }


def variance(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """tr cov / ‖g‖² of one pair's estimate of an episode's gradient, measured and by the formula, in three cases.

    agreeing: every truncation's loss has the same slope in its own θ. cancelling: independent slopes.
    memory: independent slopes in all earlier θ too, the general case.
    """
    del problem
    slope_key, noise_key = jax.random.split(key)
    m, p = scale.truncations, scale.parameters
    drawn = jax.random.normal(slope_key, (m, m, p))
    own = jnp.eye(m)[:, :, None]
    cases = {
        "agreeing": own * drawn[0, 0][None, None, :],
        "cancelling": own * drawn,
        "memory": jnp.tril(jnp.ones((m, m)))[:, :, None] * drawn,
    }
    predict = {"pes": pes_variance, "full-es": full_es_variance}[arm.estimator]
    updates = 1 if arm.estimator == "full-es" else m

    def measured(slopes):
        unroll = LinearLosses(slopes)
        est = estimator(arm.estimator, unroll, 1, m, 1, arm.sigma)
        theta = unroll.theta0(key)
        keys = jax.random.split(noise_key, scale.repeats)
        estimates = jax.vmap(lambda k: _sum_of_steps(k, est, theta, updates))(keys)
        gradient = slopes.sum((0, 1))
        return jnp.mean(jnp.sum((estimates - gradient[None, :]) ** 2, axis=1)) / (gradient @ gradient)

    stacked = jnp.stack(list(cases.values()))
    power = jnp.sum(stacked.sum((1, 2)) ** 2, axis=1)
    found, predicted = jax.lax.map(measured, stacked), jax.vmap(predict)(stacked) / power
    metrics = {}
    for i, case in enumerate(cases):
        metrics[f"log_variance_{case}"] = jnp.log10(found[i])
        metrics[f"ratio_{case}"] = found[i] / predicted[i]
    return metrics


def pes_variance(slopes: Array) -> Array:
    """PES, one pair, L_t = Σ_{τ<=t} a_{tτ}·ε_τ: tr cov = P Σ_{t,u} min(t, u) ⟨a_t, a_u⟩ + Σ_{t,u} x_{tu}·x_{ut}.

    ⟨a_t, a_u⟩ = Σ_τ a_{tτ}·a_{uτ} and x_{tu} = Σ_{τ<=t} a_{uτ}, by Isserlis' theorem on E[ξ_t L_t · ξ_u L_u]; its third
    term, Σ_{t,u} x_{tt}·x_{uu}, is ‖g‖² and falls out.
    """
    m, _, p = slopes.shape
    order = jnp.arange(1.0, m + 1)
    shared = jnp.einsum("tsp,usp->tu", slopes, slopes)
    reach = jnp.cumsum(slopes, axis=1)  # reach[u, t] = x_{tu}
    return p * jnp.sum(jnp.minimum(order[:, None], order[None, :]) * shared) + jnp.einsum("utp,tup->", reach, reach)


def full_es_variance(slopes: Array) -> Array:
    """Full ES, one pair: tr cov = (P + 1) ‖g‖²."""
    gradient = slopes.sum((0, 1))
    return (slopes.shape[2] + 1) * gradient @ gradient


def character_lstm(key: Array, arm: Settings, problem: CharacterLSTM, scale: Settings) -> dict[str, Array]:
    """E‖ĝ − g‖²/‖g‖² of one pair's estimate of an episode's gradient, for truncations from one character to all.

    One sequence a seed, as in the paper; g by backpropagation through all of it.
    """
    theta_key, sequence_key, noise_key = jax.random.split(key, 3)
    unroll, horizon = problem.sample(sequence_key, arm.stride, arm.randomness), problem.horizon
    theta = problem.theta0(theta_key)
    exact = _flat(jax.grad(lambda theta: gradients.full_unroll_loss(key, unroll, theta, horizon))(theta))
    lengths = jnp.asarray(scale.truncation_lengths, jnp.int32)

    def variance(length):
        # PES with this truncation is PES with truncations of one step, each of which is `length` steps of the unroll.
        # The length is a number of the program and not its shape, so all lengths share one compilation.
        est = estimator("pes", Blocks(unroll, length), 1, None, scale.pairs, arm.sigma)

        def error(key):
            difference = _flat(_sum_of_steps(key, est, theta, horizon // length)) - exact
            return difference @ difference

        keys = jax.random.split(jax.random.fold_in(noise_key, length), scale.repeats)
        return scale.pairs * jnp.mean(jax.lax.map(error, keys)) / (exact @ exact)

    log_variance = jnp.log10(jax.lax.map(variance, lengths))
    log_truncations = jnp.log10(horizon / lengths.astype(jnp.float32))
    centred = log_truncations - jnp.mean(log_truncations)
    return {
        "log_variance": log_variance,
        "log_truncations": log_truncations,
        "slope": centred @ log_variance / (centred @ centred),
    }


def _sum_of_steps(key: Array, est: Any, theta: Any, updates: int | Array) -> Any:
    """Σ_t ĝ_t at frozen θ."""

    def add(t, carry):
        total, state = carry
        gradient, state, _ = est.step(jax.random.fold_in(key, t + 1), theta, state)
        return jax.tree.map(jnp.add, total, gradient), state

    start = jax.tree.map(jnp.zeros_like, theta), est.init(jax.random.fold_in(key, 0), theta)
    total, _ = jax.lax.fori_loop(0, updates, add, start)
    return total


def _flat(tree: Any) -> Array:
    return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(tree)])
