"""KnockoffGAN trained: as published, with its terms changed, against simpler samplers."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate.lab.claim import Settings
from laureate.papers.knockoff_gan.trials import LEVEL, judged_on_real, selections
from laureate.problems.tables import Design, Table
from laureate.selection import KnockoffGAN, MixtureKnockoffs, RefinedKnockoffs, validity_report

__all__ = ["architecture", "frontier", "non_gaussian", "real_network", "training"]

POWERS = (0.0, 0.01, 0.1, 0.3, 1.0, 3.0)


def _network(arm: Settings, scale: Settings, **more: Any) -> KnockoffGAN:
    """KnockoffGAN with an arm's settings; all of them numbers, so that arms share one program."""
    names = ("power", "stability", "hidden", "uniform", "simultaneous", "start", "moments")
    settings = {name: arm[name] for name in names if name in arm}
    settings["learning_rate"] = scale.learning_rate * arm.get("rate", 1.0)
    if "inner_steps" in arm:
        settings["num_inner_steps"] = jnp.asarray(arm.inner_steps, jnp.int32)
    sizes = {"num_steps": scale.steps, "batch": scale.batch, "num_checkpoints": 2}
    return KnockoffGAN(**(settings | sizes | more))


def judged(key: Array, sampler: Any, problem: Design, scale: Settings) -> dict[str, Array]:
    """Fit to one table; test on fresh rows; select on the table itself, as the paper does."""
    row_key, fresh_key, fit_key, draw_key, other_key, response_key, test_key = jax.random.split(key, 7)
    x, fresh = problem.sample(row_key, scale.rows), problem.sample(fresh_key, scale.rows)
    fitted = sampler.fit(fit_key, x)
    report = validity_report(fresh, fitted.sample(draw_key, fresh), test_key)
    metrics = selections(response_key, x, fitted.sample(other_key, x), scale)
    metrics |= {
        "accuracy": report.accuracy,
        "rejected": (report.p_value < LEVEL).astype(report.accuracy.dtype),
        "covariance_gap": report.covariance_gap,
        "correlation": jnp.mean(report.correlation),
    }
    if hasattr(fitted, "history"):
        history = fitted.history
        metrics |= {"swap_loss": history.swap[-1], "critic_loss": history.critic[-1], "mine": history.information[-1]}
    return metrics


def training(key: Array, arm: Settings, problem: Design, scale: Settings) -> dict[str, Array]:
    """One training with an arm's weights and order."""
    return judged(key, _network(arm, scale), problem, scale)


def frontier(key: Array, arm: Settings, problem: Design, scale: Settings) -> dict[str, Array]:
    """Trainings with six weights of the power term, from the same draws."""
    powers = jnp.asarray(POWERS)
    found = jax.vmap(lambda power: judged(key, _network(arm, scale, power=power), problem, scale))(powers)
    curves = {name: found[name] for name in ("accuracy", "correlation", "tpr", "fdp")}
    return curves | {"step": jnp.arange(float(len(POWERS))), "accuracy_lowest": jnp.min(found["accuracy"])}


def non_gaussian(key: Array, arm: Settings, problem: Design, scale: Settings) -> dict[str, Array]:
    """One table that is not Gaussian, and the arm's sampler."""
    if arm.sampler == "mixture":
        sampler = MixtureKnockoffs(num_components=4)
    elif arm.sampler == "refined":
        sampler = RefinedKnockoffs(num_steps=scale.steps, batch=scale.batch, num_checkpoints=4)
    else:
        sampler = _network(arm, scale)
    return judged(key, sampler, problem, scale)


def architecture(key: Array, arm: Settings, problem: Design, scale: Settings) -> dict[str, Array]:
    """One training with an arm's networks."""
    width = arm.width * problem.num_variables
    sampler = _network(arm, scale, width=width, depth=arm.depth, activation=arm.activation)
    return judged(key, sampler, problem, scale)


def real_network(key: Array, arm: Settings, problem: Table, scale: Settings) -> dict[str, Array]:
    """One training on real inputs."""
    return judged_on_real(key, _network(arm, scale), problem, scale)
