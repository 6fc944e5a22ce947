"""Vaccinated random gradients, where the cosine is known, and one network for five dialects of digits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.stats import rankdata
from jaxtyping import Array

from laureate.lab.claim import Settings
from laureate.multitask import (
    Weighting,
    aggregator,
    gradvac,
    pcgrad,
    select,
    task_geometry,
    task_gram,
    tune,
    uniform,
    unit_sum,
    vaccine,
    visiting_order,
)

__all__ = ["dialects", "pairs", "steady"]


def pairs(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Random gradients and targets: how far from its target does a corrected pair end?

    The target of a pair that was below it, against the cosine after all visits.
    """
    del problem

    def one(key):
        row_key, target_key, order_key = jax.random.split(key, 3)
        rows = jax.random.normal(row_key, (arm.tasks, scale.dim))
        target = jax.random.uniform(target_key, (arm.tasks, arm.tasks), minval=-0.9, maxval=0.9)
        coefficients, _ = vaccine(task_gram(rows), target, visiting_order(order_key, arm.tasks), 0.0)
        moved = coefficients @ rows
        lengths = jnp.linalg.norm(rows, axis=1)
        before = rows @ rows.T / jnp.outer(lengths, lengths)
        after = moved @ rows.T / jnp.outer(jnp.linalg.norm(moved, axis=1), lengths)
        below = (before < target) & ~jnp.eye(arm.tasks, dtype=bool)
        missed = below & (after < target - 0.01)
        return jnp.max(jnp.where(below, jnp.abs(after - target), 0.0)), jnp.sum(missed), jnp.sum(below)

    miss, missed, below = jax.vmap(one)(jax.random.split(key, scale.draws))
    return {
        "log10_miss": jnp.log10(jnp.max(miss) + 1e-17),
        "missed": jnp.sum(missed) / jnp.maximum(jnp.sum(below), 1).astype(miss.dtype),
    }


def steady(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Targets that follow fresh gradients around a common one, for ``steps`` steps; all numbers are of the second half.

    ``inside``: targets move only where a pair is corrected, as in one public implementation.
    """
    del problem
    mean_key, step_key = jax.random.split(key)
    common = jax.random.normal(mean_key, (scale.dim,))

    def step(target, index):
        row_key, order_key = jax.random.split(jax.random.fold_in(step_key, index))
        parts = jax.random.normal(row_key, (arm.tasks, scale.dim))
        rows = jnp.sqrt(arm.cosine) * common + jnp.sqrt(1 - arm.cosine) * parts
        order = visiting_order(order_key, arm.tasks)
        coefficients, moved = vaccine(task_gram(rows), target, order, arm.beta, track=arm.track)
        corrected = (coefficients > 0) & ~jnp.eye(arm.tasks, dtype=bool)
        moved = jnp.where((arm.inside < 0.5) | corrected, moved, target)
        found = task_geometry(rows, jnp.sum(coefficients, axis=0) @ rows)
        off = 1 - jnp.eye(arm.tasks)
        count = arm.tasks * (arm.tasks - 1)
        return moved, {
            "amplification": found.amplification,
            "corrected": jnp.sum(corrected) / count,
            "target": jnp.sum(off * moved) / count,
            "cosine": jnp.sum(off * found.cosines) / count,
        }

    _, found = jax.lax.scan(step, jnp.zeros((arm.tasks, arm.tasks)), jnp.arange(scale.steps))
    late = {name: jnp.mean(values[scale.steps // 2 :]) for name, values in found.items()}
    return late | {"excess": late["target"] - late["cosine"]}


def dialects(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Scores of one network after training on all tasks; the rate is chosen by the mean on the validation part.

    ``correlation`` is Spearman's, of the tasks' cosines, averaged over training, and how far apart they stand in their
    order.
    """
    draw_key, start_key, batch_key, order_key = jax.random.split(key, 4)
    tasks = problem.draw(draw_key) if hasattr(problem, "draw") else problem
    shared = getattr(tasks, "shared", None)
    start = tasks.params0(start_key)
    count = len(jax.eval_shape(lambda: tasks.losses(start, tasks.batch(batch_key))))
    sizes = jnp.asarray(getattr(tasks, "sizes", (1,) * count), jnp.float32)
    root = jnp.sqrt(sizes) * count / jnp.sum(jnp.sqrt(sizes))
    frozen = Weighting("frozen", lambda groups: (), lambda gram, losses, state: (0 * losses, state))
    makers = {
        "gradvac": lambda: gradvac(order_key, count, shared=shared),
        "half": lambda: gradvac(order_key, count, beta=0.5, shared=shared),
        "leaf": lambda: gradvac(order_key, count, shared=shared, per="leaf"),
        "rescaled": lambda: gradvac(order_key, count, shared=shared, rescale=True),
        "pcgrad": lambda: pcgrad(order_key, count, shared=shared),
        "uniform": lambda: uniform(shared=shared),
        "longer": lambda: uniform((1.2,) * count, shared=shared),
        "sizes": lambda: uniform(root, shared=shared),  # pyright: ignore[reportArgumentType]
        "unit-sum": lambda: unit_sum(shared=shared),
        "frozen": lambda: aggregator(frozen, shared=shared),
    }
    rule = select(arm.method, [makers[name]() for name in arm.among.split()])

    def optimiser(rate):
        network = {"adam": optax.adam(rate), "sgd": optax.sgd(rate, momentum=0.9)}[arm.optimiser]
        return optax.chain(rule, network)

    def watch(grads, updates, losses, state):
        del updates, losses, state
        found = task_geometry(grads, shared=shared)
        return found.cosines, found.conflicts

    found = tune(batch_key, tasks, optimiser, start, scale.rates, scale.steps, choose="mean", failed=-1.0, watch=watch)
    cosines, conflicts = (jnp.mean(values, axis=0) for values in found.watched)
    first, second = np.triu_indices(count, 1)
    close, apart = cosines[first, second], jnp.asarray(rankdata(second - first), jnp.float32)
    ranks = jnp.argsort(jnp.argsort(close)).astype(jnp.float32)
    return {
        "mean": jnp.mean(found.scores),
        "small": jnp.mean(found.scores[-2:]),
        "worst": jnp.min(found.scores),
        "rate": found.rate,
        "cosine": jnp.mean(close),
        "conflicts": conflicts,
        "correlation": jnp.corrcoef(ranks, apart)[0, 1],
    }
