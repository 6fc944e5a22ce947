"""Persistent evolution strategies and its rivals while θ is trained, all at the same number of inner steps."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.gradients import full_unroll_loss, train
from laureate.lab.claim import Settings
from laureate.papers.pes.trials import estimator, settings_of
from laureate.problems.unrolls import InfluenceBalancing, RidgeFamily

__all__ = ["influence_balancing", "l2_coefficient", "training"]

LOWEST, HIGHEST = -30.0, 300.0  # log10 of the loss is cut to this range, in double precision; the guards have it too


def influence_balancing(key: Array, arm: Settings, problem: InfluenceBalancing, scale: Settings) -> dict[str, Array]:
    """SGD on one endless unroll; log10 of the loss after 500 steps from the start with θ held still.

    The arm without an estimator stays at its start, the trivial thing to do.
    """

    def log_loss(theta):
        def advance(state, _):
            return problem.step(key, theta, state)

        _, losses = jax.lax.scan(advance, problem.init(key, theta), length=500)
        log = jnp.log10(losses[-1])
        return jnp.clip(jnp.where(jnp.isnan(log), HIGHEST, log), LOWEST, HIGHEST)

    if arm.estimator == "none":
        theta, points = problem.theta0(key), scale.points
        curve = jnp.full(points, log_loss(theta))
        updates = (scale.updates // points) * jnp.arange(1.0, points + 1)
        return {"log_loss": curve[0], "mean_log_loss": curve[0], "theta": theta, "log_loss_curve": curve} | {
            "updates": updates
        }
    # As in the paper, a truncation counts one loss, at its end.
    unroll = InfluenceBalancing(problem.size, problem.num_positive, loss_every=arm.truncation)
    est = estimator(arm.estimator, unroll, arm.truncation, None, scale.pairs, arm.sigma)
    theta, history = train(
        key,
        est,
        optax.sgd(arm.learning_rate),
        problem.theta0(key),
        scale.updates,
        record=log_loss,
        every=scale.updates // scale.points,
    )
    return {
        "log_loss": history.recorded[-1],
        "mean_log_loss": jnp.mean(history.recorded),
        "theta": jnp.nan_to_num(jnp.clip(theta, -1e6, 1e6), nan=1e6),
        "log_loss_curve": history.recorded,
        "updates": history.update.astype(jnp.float32),
    }


def l2_coefficient(key: Array, arm: Settings, problem: RidgeFamily, scale: Settings) -> dict[str, Array]:
    """log λ tuned from six starts, each with its own division of the data; how far from the best it ends.

    The arm without an estimator stays where it started.
    """
    starts = jnp.array([-5.0, -3.0, -1.0, 1.0, 3.0, 5.0])  # the paper's

    def tune(key, start):
        member = problem.sample(jax.random.fold_in(key, 0))
        if arm.estimator == "none":
            every = scale.updates // scale.points
            updates = every * jnp.arange(1, scale.points + 1)
            return jnp.full(scale.points, jnp.abs(start - member.best)), updates
        est = estimator(arm.estimator, member, arm.truncation, None, scale.pairs, arm.sigma)
        _, history = train(
            jax.random.fold_in(key, 1),
            est,
            optax.adam(arm.learning_rate),
            start,
            scale.updates,
            record=lambda theta: theta,
            every=scale.updates // scale.points,
        )
        return jnp.abs(history.recorded - member.best), history.update

    distances, updates = jax.vmap(tune)(jax.random.split(key, len(starts)), starts)
    return {
        "distance": jnp.mean(distances[:, -1]),
        "worst_distance": jnp.max(distances[:, -1]),
        "distance_curve": jnp.mean(distances, axis=0),
        "updates": updates[0].astype(jnp.float32),
    }


def training(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Adam on any unroll; by what share training lowers the loss of whole, fresh episodes.

    All arms get the same number of inner steps a particle, scale.updates × truncation, so full ES makes fewer updates.
    ``sigma``, ``learning_rate`` and ``truncation`` are the problem's own where it has them.
    """
    theta_key, train_key, evaluation_key = jax.random.split(key, 3)
    horizon = problem.horizon
    sigma, truncation = settings_of(arm, problem)
    window = horizon if arm.estimator == "full-es" else truncation
    every = max(1, scale.updates * truncation // (window * scale.points))
    est = estimator(arm.estimator, problem, truncation, horizon, scale.pairs, sigma)
    evaluation_keys = jax.random.split(evaluation_key, scale.evaluations)

    theta = problem.theta0(theta_key)
    rate = getattr(problem, "learning_rate", arm.learning_rate) * arm.speedup
    adam = optax.adam(rate, b1=arm.momentum)
    _, history = train(train_key, est, adam, theta, every * scale.points, record=lambda theta: theta, every=every)

    def loss(theta):
        return jnp.mean(jax.vmap(lambda k: full_unroll_loss(k, problem, theta, horizon))(evaluation_keys)) / horizon

    # The start and all that was recorded, evaluated in one go: the program holds the evaluation once.
    path = jax.tree.map(lambda x, recorded: jnp.concatenate([x[None], recorded]), theta, history.recorded)
    losses = jax.lax.map(loss, path)
    first = losses[0]
    reduction = (first - losses[1:]) / jnp.maximum(jnp.abs(first), 1e-30)
    # A run that blows up, or ends more than twice as bad as it began, counts as -1.
    reduction = jnp.where(jnp.isfinite(reduction), jnp.maximum(reduction, -1.0), -1.0)
    bounded = jnp.nan_to_num(losses[1:], nan=1e9, posinf=1e9, neginf=-1e9)
    return {
        "reduction": reduction[-1],
        "mean_reduction": jnp.mean(reduction),
        "loss": jnp.clip(bounded[-1], -1e9, 1e9),
        "loss_curve": jnp.clip(bounded, -1e9, 1e9),
        "reduction_curve": reduction,
        "inner_steps": (history.update * window).astype(jnp.float32),
    }
