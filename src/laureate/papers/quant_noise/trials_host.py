"""Quant-Noise: what training with it costs, by the clock."""

import math
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.compression import NoiseState, ProductQuantizer, Quantizer, ScalarQuantizer, quant_noise, refresh
from laureate.lab.claim import Settings
from laureate.papers.quant_noise.trials import Part, loss_of

__all__ = ["overhead"]

OPTIMISER = optax.adam(1e-3)


def overhead(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The CPU time of an epoch with noise over that of one without: log of the ratio of medians.

    Runs of ``scale.updates`` steps with and without noise, and a fit of the codebooks, are timed in turn in one
    process. An epoch is ``scale.epoch`` steps, and with codebooks one fit more.
    """
    data_key, init_key, run_key = jax.random.split(key, 3)
    part = Part(jax.random.normal(data_key, (scale.batch, scale.inputs)), jnp.arange(scale.batch) % 10)
    model = eqx.nn.MLP(scale.inputs, 10, scale.width, scale.hidden, key=init_key)
    spec = ScalarQuantizer(8) if arm.kind == "scalar" else ProductQuantizer(8, scale.centroids, scale.kmeans_steps)
    state = _refreshed(run_key, model, spec) if arm.kind == "product" else None
    proxy = "zero" if arm.kind == "proxy" else None
    start = model, OPTIMISER.init(eqx.filter(model, eqx.is_inexact_array))
    work: dict[str, Callable[[Array], Any]] = {
        "plain": lambda key: _steps(key, start, part, None, None, None, scale.updates),
        "noisy": lambda key: _steps(key, start, part, spec, state, proxy, scale.updates),
    }
    if state is not None:
        work["fit"] = lambda key: _refreshed(key, model, spec)
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for number in range(scale.rounds + 1):
        for name, run in work.items():
            before = time.process_time()
            jax.block_until_ready(eqx.filter(run(jax.random.fold_in(run_key, number)), eqx.is_array))
            if number:  # the first compiles
                seconds[name].append(time.process_time() - before)
    median = {name: sorted(found)[len(found) // 2] for name, found in seconds.items()}
    epochs = scale.epoch / scale.updates
    ratio = (epochs * median["noisy"] + median.get("fit", 0.0)) / (epochs * median["plain"])
    return {
        "log_ratio": jnp.asarray(math.log(ratio)),
        "log_ratio_of_steps": jnp.asarray(math.log(median["noisy"] / median["plain"])),
        "plain_milliseconds": jnp.asarray(1e3 * median["plain"] / scale.updates),
        "fit_milliseconds": jnp.asarray(1e3 * median.get("fit", 0.0)),
    }


@eqx.filter_jit
def _refreshed(key: Array, model: Any, spec: Quantizer) -> NoiseState:
    return refresh(model, spec, key)


@eqx.filter_jit
def _steps(key: Array, start: Any, part: Part, spec: Quantizer | None, state: Any, proxy: Any, updates: int) -> Any:
    """``updates`` steps of Adam."""
    arrays, rest = eqx.partition(start, eqx.is_array)

    def step(arrays, key):
        model, optimiser_state = eqx.combine(arrays, rest)
        seen = lambda m: m if spec is None else quant_noise(m, spec, 0.1, key, state=state, proxy=proxy)  # noqa: E731
        gradient = eqx.filter_grad(lambda m: loss_of(seen(m), part))(model)
        changes, optimiser_state = OPTIMISER.update(gradient, optimiser_state)
        return eqx.filter((eqx.apply_updates(model, changes), optimiser_state), eqx.is_array), None

    return jax.lax.scan(step, arrays, jax.random.split(key, updates))[0]
