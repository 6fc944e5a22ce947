"""Exact quantities of small machines, by visiting every configuration."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require
from laureate.memory.hopfield import HopfieldNetwork, check_rows
from laureate.memory.machine import BoltzmannMachine

__all__ = ["all_spins", "log_likelihood", "log_partition"]

LARGEST = 24
ROWS = 2**12  # configurations evaluated together


def all_spins(num_units: int) -> Float[Array, "configurations units"]:
    """All 2ᴺ configurations, a row each.

    >>> all_spins(2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    size = 2.0 ** min(num_units - 28, 900) * num_units  # beyond that a float has no room
    memory = f"It would take {size:.3g} GiB; estimate by annealed_log_partition."
    require("all_spins", "num_units", f"<= {LARGEST}", num_units, lambda n: n <= LARGEST, memory)
    return 2.0 * ((jnp.arange(2**num_units)[:, None] >> jnp.arange(num_units)) & 1) - 1.0


def log_partition(model: BoltzmannMachine | HopfieldNetwork, beta: float | None = None) -> Float[Array, ""]:
    """log Σ_s exp(-βF(s)) over all configurations: of a machine's visible units, or of a network at ``beta``.

    The joint constant of a machine is larger by (p/2) log(2π/β), the Gaussian integral over its hidden units.

    >>> machine = BoltzmannMachine(jnp.zeros((3, 1)), jnp.zeros(3), jnp.zeros(1))
    >>> round(float(log_partition(machine)), 4)  # 3 log 2
    2.0794
    """
    return jax.nn.logsumexp(_log_weights(model, beta))


def log_likelihood(machine: BoltzmannMachine, data: Float[Array, "rows units"]) -> Float[Array, ""]:
    """The mean of log p(s) over the rows of the data, exactly."""
    data = jnp.asarray(data, machine.weights.dtype)
    check_rows("log_likelihood", "data", data, len(machine.visible_bias))
    return jnp.mean(jax.vmap(lambda s: -machine.beta * machine.free_energy(s))(data)) - log_partition(machine)


def _log_weights(model: BoltzmannMachine | HopfieldNetwork, beta: Any) -> Float[Array, "configurations"]:
    if isinstance(model, BoltzmannMachine):
        rule = "left out for a BoltzmannMachine, which has its own"
        require("log_partition", "beta", rule, beta, lambda b: b is None)
        energy, beta, matrix = model.free_energy, model.beta, model.weights
    else:
        energy, matrix = model.energy, model.couplings
        require("log_partition", "beta", "given for a HopfieldNetwork", beta, lambda b: b is not None)
    spins = all_spins(len(matrix)).astype(matrix.dtype)
    return jax.lax.map(lambda s: -beta * energy(s), spins, batch_size=min(ROWS, len(spins)))
