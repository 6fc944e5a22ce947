"""Do power iterations find the largest singular value, and do truncated latents have their law?"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate import generative as g
from laureate.lab.claim import Settings
from laureate.layers import SpectralNorm

__all__ = ["sampler", "singular"]


def singular(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """|σ̂/σ − 1| of a random matrix: after some iterations from a random direction, or one a step while it moves."""
    weight_key, move_key, start_key = jax.random.split(key, 3)
    shape = (scale.rows, scale.columns)
    weight = jax.random.normal(weight_key, shape)
    moves = jax.random.normal(move_key, (scale.steps, *shape)) * scale.rate
    norm = SpectralNorm(arm.iterations)
    state = norm.init(start_key, weight)
    if arm.kind == "followed":
        # A random walk: entries of unit deviation move by ``rate`` of it a step.
        def step(carry, move):
            weight, state = carry
            _, state, info = norm(weight, state)
            return (weight + move, state), (info.sigma / jnp.linalg.norm(weight, 2), info.residual)

        _, (ratios, residuals) = jax.lax.scan(step, (weight, state), moves)
        ratio, residual = ratios[-1], residuals[-1]
    else:
        _, _, info = norm(weight, state)
        ratio, residual = info.sigma / jnp.linalg.norm(weight, 2), info.residual
    return {"error": jnp.abs(ratio - 1), "log_error": jnp.log10(jnp.abs(ratio - 1) + 1e-7), "residual": residual}


def sampler(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Kolmogorov's √n D between draws and N(0, 1) given |z| <= t, at every threshold."""
    shape = (scale.draws,)

    def cdf(z, t):
        phi = jax.scipy.stats.norm.cdf
        return (phi(z) - phi(-t)) / (phi(t) - phi(-t))

    def at(t, key):
        # What is found under the name of truncation.
        drawn = {
            "exact": lambda: g.truncated_normal(key, shape, t),
            "hub": lambda: t * g.truncated_normal(key, shape, 2.0),
            "scaled": lambda: t * jax.random.normal(key, shape),
            "clipped": lambda: jnp.clip(jax.random.normal(key, shape), -t, t),
        }[arm.kind]()
        ordered = jnp.sort(drawn)
        steps = jnp.arange(scale.draws + 1) / scale.draws
        law = jnp.clip(cdf(ordered, t), 0.0, 1.0)
        apart = jnp.maximum(jnp.max(steps[1:] - law), jnp.max(law - steps[:-1]))
        return jnp.sqrt(1.0 * scale.draws) * apart, jnp.std(drawn)

    thresholds = jnp.asarray(scale.thresholds)
    apart, deviation = jax.vmap(at)(thresholds, jax.random.split(key, len(scale.thresholds)))
    return {"kolmogorov": jnp.max(apart), "least_kolmogorov": jnp.min(apart), "deviation": deviation}
