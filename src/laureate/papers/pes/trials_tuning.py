"""Hyper-parameters and a controller tuned through whole runs: PES, truncated ES, full ES and random search."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.gradients import full_unroll_loss, train
from laureate.lab.claim import Settings
from laureate.papers.pes.trials import estimator

__all__ = ["tuning"]


def tuning(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The mean loss of whole, fresh runs with the θ that was found; its last tenth, and its worst step.

    All arms get the same inner steps, scale.updates × truncation × 2 pairs: full ES makes fewer updates of whole runs,
    random search as many whole runs as that allows, each with a θ drawn as the starts are, and keeps the best. The arm
    without a method keeps its start.
    """
    theta_key, search_key, evaluation_key = jax.random.split(key, 3)
    theta = problem.theta0(theta_key)
    horizon, truncation = problem.horizon, problem.truncation
    steps = scale.updates * truncation * 2 * scale.pairs
    if arm.estimator == "random-search":
        theta = _best_of(search_key, problem, steps // horizon)
    elif arm.estimator != "none":
        window = horizon if arm.estimator == "full-es" else truncation
        updates = scale.updates * truncation // window
        est = estimator(arm.estimator, problem, truncation, horizon, scale.pairs, arm.sigma)
        adam = optax.adam(arm.learning_rate * arm.speedup)
        theta, _ = train(search_key, est, adam, theta, updates, record=lambda theta: jnp.zeros(()), every=updates)

    def run(key):
        start_key, step_key = jax.random.split(key)

        def advance(state, t):
            return problem.step(jax.random.fold_in(step_key, t), theta, state)

        return jax.lax.scan(advance, problem.init(start_key, theta), jnp.arange(horizon))[1]

    losses = jax.vmap(run)(jax.random.split(evaluation_key, scale.evaluations))  # [runs, steps]
    return {
        "loss": jnp.mean(losses),
        "final": jnp.mean(losses[:, -max(1, horizon // 10) :]),
        "worst_step": jnp.max(losses),
    }


def _best_of(key: Array, problem: Any, count: int) -> Any:
    """Of so many θ, drawn as the starts are, the one whose run had the lowest loss."""
    draw_key, run_key = jax.random.split(key)
    candidates = jax.vmap(problem.theta0)(jax.random.split(draw_key, count))

    def loss(pair):
        key, theta = pair
        return full_unroll_loss(key, problem, theta, problem.horizon)

    losses = jax.lax.map(loss, (jax.random.split(run_key, count), candidates), batch_size=min(count, 16))
    best = jnp.argmin(jnp.where(jnp.isfinite(losses), losses, jnp.inf))
    return jax.tree.map(lambda x: x[best], candidates)
