"""Annealed importance sampling of a Boltzmann machine's normalising constant, with its error."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate import loops
from laureate._core import Status, require
from laureate.memory.machine import BoltzmannMachine

__all__ = ["AnnealedPartition", "annealed_log_partition"]


class AnnealedPartition(NamedTuple):
    """The estimate.

    log_partition: of log Σ_s exp(-βF(s)), as `log_partition` has it exactly; low on average, for it is the log of an
        unbiased mean.
    standard_error: to first order, sd(w) / (mean(w) √chains). Meaningful only where effective is large.
    effective: effective number of the weights, (Σw)² / Σw².
    cost: layer updates, over all chains.
    status: ``Status.NOT_CONVERGED`` unless effective >= 2: else one chain carries the estimate, or a weight is NaN.
    """

    log_partition: Float[Array, ""]
    standard_error: Float[Array, ""]
    effective: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def annealed_log_partition(
    key: Key[Array, ""],
    machine: BoltzmannMachine,
    num_chains: int = 100,
    num_temperatures: int = 1000,
    progress: Callable[[loops.Progress], None] | None = None,
) -> AnnealedPartition:
    """Estimate log Σ_s exp(-βF(s)) by raising the coupling αW from α = 0, where it is known, to α = 1.

    With the spins summed out, f_α(h) = exp(-½β hᵀh + β cᵀh) Π_i 2 cosh(β(αWh + b)_i), and along a chain

        log w = Σ_k log f_{α_k}(h_k) - log f_{α_{k-1}}(h_k),      E[w] = Z / Z_0

    where h_k is drawn by block Gibbs at α_{k-1}. Thousands of ratios are summed: compute in double precision.

    progress: called about every second with a ``laureate.loops.Progress``, in temperatures; not within jit.

    Neal: "Annealed importance sampling", 2001; Salakhutdinov, Murray: "On the quantitative analysis of deep belief
    networks", ICML 2008.

    >>> machine = BoltzmannMachine(0.5 * jnp.ones((4, 1)), jnp.zeros(4), jnp.zeros(1))
    >>> found = annealed_log_partition(jax.random.key(0), machine, num_chains=50, num_temperatures=50)
    >>> from laureate.memory import log_partition
    >>> bool(abs(found.log_partition - log_partition(machine)) < 4 * found.standard_error)
    True
    """
    require("annealed_log_partition", "num_chains", ">= 2", num_chains, lambda n: n >= 2)
    require("annealed_log_partition", "num_temperatures", ">= 2", num_temperatures, lambda n: n >= 2)
    weights, beta = machine.weights, jnp.asarray(machine.beta, machine.weights.dtype)
    units, count = weights.shape
    alphas = jnp.linspace(0.0, 1.0, num_temperatures, dtype=weights.dtype)

    def log_visible(alpha, hidden):
        return jnp.sum(_log_2_cosh(beta * (alpha * (weights @ hidden) + machine.visible_bias)))

    keys = jax.random.split(key, num_chains)

    def begin(key):
        start = jax.random.normal(jax.random.fold_in(key, 0), (count,), weights.dtype) * beta**-0.5
        return start + machine.hidden_bias, jnp.zeros((), weights.dtype)

    def anneal(chains, pair):
        number, before, alpha = pair

        def one(key, hidden, log_weight):
            log_weight = log_weight + log_visible(alpha, hidden) - log_visible(before, hidden)
            spin_key, hidden_key = jax.random.split(jax.random.fold_in(key, number))
            odds = 2 * beta * (alpha * (weights @ hidden) + machine.visible_bias)
            up = jax.random.uniform(spin_key, (units,), weights.dtype) < jax.nn.sigmoid(odds)
            spins = jnp.where(up, 1, -1).astype(weights.dtype)
            mean = alpha * (spins @ weights) + machine.hidden_bias
            hidden = mean + jax.random.normal(hidden_key, (count,), weights.dtype) * beta**-0.5
            return hidden, log_weight

        return jax.vmap(one)(keys, *chains), None

    pairs = (jnp.arange(1, num_temperatures), alphas[:-1], alphas[1:])
    (_, log_weights), _ = loops.scan(anneal, jax.vmap(begin)(keys), pairs, progress=progress)
    top = jnp.max(log_weights)
    ratios = jnp.exp(log_weights - top)
    mean, effective = jnp.mean(ratios), jnp.sum(ratios) ** 2 / jnp.sum(ratios**2)
    # At α = 0 the layers are apart; of the joint constant's two factors the Gaussian one, (2π/β)^(p/2), is left out.
    base = jnp.sum(_log_2_cosh(beta * machine.visible_bias)) + 0.5 * beta * machine.hidden_bias @ machine.hidden_bias
    return AnnealedPartition(
        log_partition=base + top + jnp.log(mean),
        standard_error=jnp.std(ratios, ddof=1) / (mean * jnp.sqrt(float(num_chains))),
        effective=effective,
        cost=jnp.asarray(2 * num_chains * (num_temperatures - 1), jnp.int32),
        status=jnp.where(effective >= 2, int(Status.OK), int(Status.NOT_CONVERGED)).astype(jnp.int32),
    )


def _log_2_cosh(x: Array) -> Array:
    """log(2 cosh x) that does not overflow."""
    return jnp.abs(x) + jnp.log1p(jnp.exp(-2 * jnp.abs(x)))
