"""Gibbs-With-Gradients beside block Gibbs and the Hamming ball: on a lattice, a trained machine and random graphs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from laureate.papers.gibbs_with_gradients.trials import log_effective, walk
from laureate.papers.gibbs_with_gradients.trials_learning import _train
from laureate.problems.energies import DenseIsing, random_graph_couplings
from laureate.sampling import (
    Binary,
    BlockGibbs,
    Gibbs,
    GibbsWithGradients,
    HammingBall,
    hamming_distance,
    hamming_mmd,
)

__all__ = ["graph", "lattice", "trained"]

KERNELS = {"gwg": GibbsWithGradients, "gibbs": Gibbs, "block": BlockGibbs, "ball": HammingBall}


def _kernel(arm: Any, energy: Any) -> Any:
    """The sampler an arm names, with the arm's other settings as its own."""
    options = {name: value for name, value in arm.items() if name != "sampler"}
    return KERNELS[arm.sampler](energy, Binary(), **options)


def lattice(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log of effective samples per step and per evaluation of f, of the Hamming distance to a random state."""
    keys = jax.random.split(key, 2 * scale.chains + 1)
    *start, reference = jax.vmap(problem.start)(keys[scale.chains :])
    distance = partial(_distance, reference)
    kernel = _kernel(arm, problem)
    trace, cost = walk(keys[: scale.chains], kernel, jnp.stack(start), scale.steps, scale.thin, distance)
    effective = log_effective(trace)
    per_step = effective - jnp.log(float(scale.steps))
    return {
        "log_ess_per_step": per_step,
        "log_ess_per_evaluation": per_step - jnp.log(cost),
        "effective": jnp.exp(effective),
    }


def _distance(reference: Any, state: Any) -> Any:
    return hamming_distance(state.position, reference)


def trained(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log MMD of the chains' ends against a trained machine's own block-Gibbs samples.

    Chains start from independent pixels with the data's means; the arm without a sampler stays there.
    """
    keys = jax.random.split(key, 2 * scale.chains)
    start = jax.vmap(problem.start)(keys[scale.chains :])
    if arm.sampler == "none":
        ends, cost = start, jnp.zeros(())
    else:
        kernel = _kernel(arm, problem.machine)
        kept, cost = walk(keys[: scale.chains], kernel, start, scale.steps, scale.steps, lambda state: state.position)
        ends = kept[:, -1]
    mmd = hamming_mmd(ends, problem.reference)
    return {"log_mmd": 0.5 * jnp.log(jnp.maximum(mmd, 1e-12)), "evaluations": cost * scale.steps}


def graph(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log RMSE of the couplings of a random graph, learnt from samples of its Ising model; last twentieth of updates.

    The arm without a sampler says that there are no couplings.
    """
    graph_key, data_key, train_key = jax.random.split(key, 3)
    sites = scale.sites
    truth = random_graph_couplings(graph_key, sites, scale.degree)

    def error(energy):
        found = (energy.couplings + energy.couplings.T) / 2
        apart = 1.0 - jnp.eye(sites)
        return 0.5 * jnp.log(jnp.sum(apart * (found - truth) ** 2) / (sites * (sites - 1)))

    nothing = DenseIsing(jnp.zeros((sites, sites)), jnp.zeros(sites))
    updates = jnp.arange(1.0, scale.updates + 1)
    if arm.sampler == "none":
        curve = jnp.full(scale.updates, error(nothing))
        return {"log_rmse": curve[-1], "curve": curve, "updates": updates}
    data = _samples(data_key, truth, scale.data, scale.sweeps)

    def penalty(energy):
        return scale.l1 * jnp.sum(jnp.abs(energy.couplings))

    _, curve = _train(train_key, arm, scale, nothing, Binary(), data, penalty, error)
    return {"log_rmse": jnp.mean(curve[-max(1, scale.updates // 20) :]), "curve": curve, "updates": updates}


def _samples(key: Any, couplings: Any, count: int, sweeps: int) -> Any:
    """Rows of 0 and 1 from exp(sᵀJs), by sweeps over the sites in turn from random starts."""
    sites = len(couplings)
    start_key, sweep_key = jax.random.split(key)
    start = jnp.where(jax.random.bernoulli(start_key, 0.5, (count, sites)), 1.0, -1.0)

    def sweep(spins, number):
        uniforms = jax.random.uniform(jax.random.fold_in(sweep_key, number), (sites, count))

        def site(i, spins):
            # p(s_i = 1 | rest) = sigmoid(f(s_i = 1) − f(s_i = −1)) = sigmoid(4 Σ_j J_ij s_j)
            chance = jax.nn.sigmoid(4.0 * (spins @ couplings[i]))
            return spins.at[:, i].set(jnp.where(uniforms[i] < chance, 1.0, -1.0))

        return jax.lax.fori_loop(0, sites, site, spins), None

    spins, _ = jax.lax.scan(sweep, start, jnp.arange(sweeps))
    return spins > 0
