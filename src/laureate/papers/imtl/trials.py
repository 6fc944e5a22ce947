"""Random gradients, where all is known, and networks with several losses under every aggregator."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from laureate.lab.claim import Settings
from laureate.multitask import (
    Weighting,
    aggregator,
    gradnorm,
    imtl,
    imtl_g,
    imtl_l,
    imtl_weights,
    inverse_loss,
    mgda,
    pcgrad,
    select,
    task_gram,
    tune,
    uncertainty,
    uniform,
    unit_sum,
)

__all__ = ["geometry", "sharing", "units"]


# --- random gradients -------------------------------------------------------------------------------------------------


def geometry(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Projections, directions and signs of IMTL-G on random gradients of ``tasks`` tasks with log-normal lengths.

    Directions share a part, so that all pairs have the cosine ``cosine`` on average, or lie near a subspace of three
    dimensions. Then every loss gets another unit, 10^U(-3, 3).
    """
    del problem

    def one(key):
        keys = jax.random.split(key, 5)
        parts = jax.random.normal(keys[0], (arm.tasks, scale.dim)) / np.sqrt(scale.dim)
        if arm.near == "subspace":
            inner = jax.random.normal(keys[1], (arm.tasks, 3)) @ jax.random.normal(keys[2], (3, scale.dim))
            rows = inner / np.sqrt(3 * scale.dim) + 0.1 * parts
        else:
            common = jax.random.normal(keys[1], (scale.dim,)) / np.sqrt(scale.dim)
            rows = jnp.sqrt(arm.cosine) * common + jnp.sqrt(1 - arm.cosine) * parts
        rows = rows * jnp.exp(jax.random.normal(keys[3], (arm.tasks, 1)))
        factors = 10 ** jax.random.uniform(keys[4], (arm.tasks, 1), minval=-3.0, maxval=3.0)
        (unit, info), (published, _) = (imtl_weights(task_gram(rows), word) for word in ("unit", "sum"))
        other_unit, other_published = (imtl_weights(task_gram(factors * rows), word)[0] for word in ("unit", "sum"))
        lengths = jnp.linalg.norm(rows, axis=1)
        step = unit @ rows
        projections = rows @ step / lengths
        plain = (1 / lengths) @ rows
        smaller = jnp.ones(arm.tasks).at[0].set(0.01)
        shorter = imtl_weights(task_gram(smaller[:, None] * rows), "sum")[0] @ (smaller[:, None] * rows)
        sound = info.condition < 1e3
        return {
            "spread": jnp.where(sound, jnp.ptp(projections) / jnp.mean(projections), 0.0),
            "turn": jnp.where(sound, 1 - _cosine(step, other_unit @ (factors * rows)), 0.0),
            "apart": 1 - _cosine(step, plain),
            "flipped": _cosine(published @ rows, other_published @ (factors * rows)) < 0,
            "uphill": published @ rows @ rows[0] < 0,
            "negative": jnp.any(published < 0),
            "sound": sound,
            "length": jnp.log10(jnp.linalg.norm(shorter) / jnp.linalg.norm(published @ rows)),
        }

    found = jax.vmap(one)(jax.random.split(key, scale.draws))
    logs = {f"log10_{name}": jnp.log10(jnp.max(jnp.abs(found[name])) + 1e-17) for name in ("spread", "turn", "apart")}
    yes_or_no = ("flipped", "uphill", "negative", "sound")
    shares = {name: jnp.mean(found[name].astype(found["turn"].dtype)) for name in yes_or_no}
    return logs | shares | {"log10_length": jnp.median(found["length"])}


def _cosine(one: Array, other: Array) -> Array:
    return one @ other / (jnp.linalg.norm(one) * jnp.linalg.norm(other))


# --- networks ---------------------------------------------------------------------------------------------------------


class InUnits(eqx.Module):
    """A problem whose losses are multiplied by numbers."""

    tasks: Any
    factors: Array

    def batch(self, key: Array) -> Any:
        """The problem's own."""
        return self.tasks.batch(key)

    def losses(self, params: Any, batch: Any) -> Array:
        """In other units."""
        return self.factors * self.tasks.losses(params, batch)

    def scores(self, params: Any, part: str) -> Array:
        """The problem's own."""
        return self.tasks.scores(params, part)


def units(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Scores after training where the first loss is multiplied by each of ``scale.units``: small, as it is, large.

    The rate is chosen anew for each unit, by the worst task of the validation part.
    """
    names = ("small", "same", "large")
    found = jax.vmap(lambda unit: _tuned(key, arm, problem, scale, unit))(jnp.asarray(scale.units))
    metrics = {f"{metric}_{name}": values[i] for metric, values in found.items() for i, name in enumerate(names)}
    worst = found["worst"]
    return metrics | {"drop_large": worst[1] - worst[2], "drop_small": worst[1] - worst[0]}


def sharing(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Scores after training in the units that the losses come in; the rate is chosen by the mean over tasks."""
    return _tuned(key, arm, problem, scale, jnp.asarray(1.0))


def _tuned(key: Array, arm: Settings, problem: Any, scale: Settings, unit: Array) -> dict[str, Array]:
    """All rates, and what the best on the validation part scores on the test part."""
    draw_key, start_key, run_key = jax.random.split(key, 3)
    tasks = problem.draw(draw_key) if hasattr(problem, "draw") else problem
    shared = getattr(tasks, "shared", None)
    start = tasks.params0(start_key)
    count = len(jax.eval_shape(lambda: tasks.losses(start, tasks.batch(run_key))))
    scaled = InUnits(tasks, jnp.ones(count).at[0].set(unit))
    batch_key, order_key = jax.random.split(run_key)

    def optimiser(rate):
        network = {"adam": optax.adam(rate), "sgd": optax.sgd(rate, momentum=0.9)}[arm.optimiser]
        return optax.chain(_aggregator(order_key, arm, tasks, unit, network, count), network)

    def gram(params, batch):
        """Of the gradients of shared parameters, or at the last shared features where the arm says so."""
        exact = task_gram(jax.jacrev(scaled.losses)(params, batch), shared=shared)
        if not hasattr(tasks, "head_losses"):
            return exact
        at_head = jax.jacrev(lambda z: scaled.factors * tasks.head_losses(params, z, batch))
        return jnp.where(arm.features > 0.5, task_gram(at_head(tasks.features(params, batch))), exact)

    names = arm.among.split()

    def watch(grads, updates, losses, state):
        del updates, losses
        below = imtl_weights(task_gram(grads, shared=shared), "sum")[1].negative > 0
        if "gradnorm" not in names:
            return below, jnp.ones(())
        return below, jnp.min(state[0][names.index("gradnorm")].weightings[0].weights)

    found = tune(
        batch_key,
        scaled,  # pyright: ignore[reportArgumentType]
        optimiser,
        start,
        scale.rates,
        scale.steps,
        choose=scale.choose,
        failed=-1.0,
        gram=gram,
        watch=watch,
    )
    below, smallest = found.watched
    return {
        "worst": jnp.min(found.scores),
        "mean": jnp.mean(found.scores),
        "rate": found.rate,
        "negative": jnp.mean(below.astype(jnp.float32)),
        "smallest": jnp.min(smallest),  # of GradNorm's weights, over all steps; 1 for the others
    }


def _aggregator(key: Array, arm: Settings, tasks: Any, unit: Array, network: Any, count: int) -> Any:
    """The arm's, by its number among those of its experiment; scales of losses learn as the network does."""
    shared = getattr(tasks, "shared", None)
    spreads = getattr(tasks, "spreads", jnp.ones(count)) * jnp.ones(count).at[0].set(unit)
    frozen = Weighting("frozen", lambda groups: (), lambda gram, losses, state: (0 * losses, state))
    makers = {
        "imtl-g": lambda: imtl_g(shared=shared),
        "imtl": lambda: imtl(count, network, shared=shared),
        "imtl-l": lambda: imtl_l(count, network, shared=shared),
        "uniform": lambda: uniform(shared=shared),
        "unit-sum": lambda: unit_sum(shared=shared),
        "mgda": lambda: mgda(shared=shared),
        "pcgrad": lambda: pcgrad(key, count, shared=shared),
        "gradnorm": lambda: gradnorm(count, network, gamma=0.0, shared=shared),
        "uncertainty": lambda: uncertainty(count, network, factor=1.0, shared=shared),
        "inverse": lambda: inverse_loss(count, shared=shared),
        "first-loss": lambda: inverse_loss(count, by="first", shared=shared),
        "imtl-published": lambda: imtl(count, network, start="zeros", normalise="sum", shared=shared),
        "published": lambda: imtl_g(normalise="sum", shared=shared),
        "imtl-l-zeros": lambda: imtl_l(count, network, start="zeros", shared=shared),
        "standardised": lambda: uniform(1 / spreads, shared=shared),  # pyright: ignore[reportArgumentType]
        "frozen": lambda: aggregator(frozen, shared=shared),
    }
    return select(arm.method, [makers[name]() for name in arm.among.split()])
