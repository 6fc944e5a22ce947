"""What is measured of Gibbs-With-Gradients: exactness, spectral gaps, and how fast samples forget."""

import time
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from blackjax.diagnostics import effective_sample_size

from laureate.lab.claim import Settings
from laureate.problems.energies import IsingLattice, PottsLattice, random_factorial_hmm, random_rbm
from laureate.sampling import (
    Binary,
    BlockGibbs,
    Categorical,
    DiscreteLangevin,
    Gibbs,
    GibbsWithGradients,
    HammingBall,
    LocallyInformed,
    PathAuxiliary,
    hamming_distance,
    hamming_mmd,
)
from laureate.sampling.enumeration import (
    all_positions,
    detailed_balance_error,
    exact_distribution,
    spectral_gap,
    transition_matrix,
)

__all__ = ["efficiency", "exactness", "gaps", "make_kernel", "seconds", "to_posterior", "to_reference"]

KERNELS = {
    "gwg": GibbsWithGradients,
    "gibbs": Gibbs,
    "exact": LocallyInformed,
    "block": BlockGibbs,
    "ball": HammingBall,
    "dmala": DiscreteLangevin,
    "path": PathAuxiliary,
}


def make_kernel(arm: Any, energy: Any, domain: Any = None) -> Any:
    """The sampler an arm names, with the arm's other settings as its own."""
    options = {name: value for name, value in arm.items() if name != "sampler"}
    return KERNELS[arm.sampler](energy, Binary() if domain is None else domain, **options)


class RandomEnergy(eqx.Module):
    """f(x) = b·x + xᵀJx + Σ softplus(Wx): fields, couplings and three hidden units, all N(0, 1); not multilinear."""

    fields: jax.Array
    couplings: jax.Array
    hidden: jax.Array

    def __init__(self, key: Any, size: int):
        a, b, c = jax.random.split(key, 3)
        self.fields = jax.random.normal(a, (size,))
        self.couplings = jnp.triu(jax.random.normal(b, (size, size)), 1)
        self.hidden = jax.random.normal(c, (3, size))

    def __call__(self, x: Any) -> Any:
        """f of relaxed x, ravelled."""
        x = x.reshape(-1)
        return self.fields @ x + x @ self.couplings @ x + jnp.sum(jax.nn.softplus(self.hidden @ x))


class Uncorrected(GibbsWithGradients):
    """Gibbs-With-Gradients whose acceptance forgets the proposals: what the correction is for."""

    def propose(self, state: Any, draws: Any) -> Any:
        """As the parent's, with the ratio of densities alone."""
        proposal, log_probability, _ = super().propose(state, draws)
        return proposal, log_probability, proposal.logdensity - state.logdensity


def exactness(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log10 of the worst max |π_i P_ij - π_j P_ji| over the options, by enumeration."""
    bits, kinds = jnp.zeros(scale.bits, bool), jnp.zeros(scale.kinds, jnp.int32)
    kind = Uncorrected if arm.sampler == "uncorrected" else GibbsWithGradients
    make_bits = partial(kind, RandomEnergy(key, scale.bits), Binary())
    make_kinds = partial(kind, RandomEnergy(key, 3 * scale.kinds), Categorical(3))
    cases = [(make_bits(), bits), (make_kinds(), kinds)]
    if arm.sampler == "gwg":
        cases += [(make_bits(num_flips=2), bits)]
    if arm.sampler == "gwg" and scale.thorough:
        cases += [(make_bits(radius=2), bits), (make_bits(lazy=0.2), bits)]
        cases += [(make_bits(balancing=name), bits) for name in ("barker", "min", "max")]
        cases += [(make_kinds(num_flips=2), kinds)]
    errors = []
    for kernel, position in cases:
        pi = exact_distribution(kernel, all_positions(kernel.domain, position))
        errors.append(detailed_balance_error(transition_matrix(kernel, position), pi))
    return {"log10_error": jnp.log10(jnp.maximum(jnp.max(jnp.stack(errors)), 1e-18))}


def gaps(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log of the spectral gap of an arm's chain on a random energy."""
    kernel = make_kernel(arm, RandomEnergy(key, scale.bits))
    position = jnp.zeros(scale.bits, bool)
    pi = exact_distribution(kernel, all_positions(kernel.domain, position))
    gap = spectral_gap(transition_matrix(kernel, position), pi)
    return {"log_gap": jnp.log(jnp.maximum(gap, 1e-9))}


def walk(key: Any, kernel: Any, start: Any, steps: int, thin: int, collect: Any) -> tuple[Any, Any]:
    """What ``collect`` sees every ``thin`` steps, chains first, and the cost of a step."""

    def chain(key, position):
        def keep(state, number):
            steps = number * thin + jnp.arange(thin)
            state, cost = jax.lax.scan(lambda s, t: _step(kernel, key, s, t), state, steps)
            return state, (collect(state), jnp.mean(cost.astype(float)))

        return jax.lax.scan(keep, kernel.init(position), jnp.arange(steps // thin))[1]

    chains = jax.tree.leaves(start)[0].shape[0]
    kept, cost = jax.vmap(chain)(jax.random.split(key, chains), start)
    return kept, jnp.mean(cost)


def _step(kernel: Any, key: Any, state: Any, number: Any) -> tuple[Any, Any]:
    state, info = kernel.step(jax.random.fold_in(key, number), state)
    return state, info.cost


def log_effective(trace: Any) -> Any:
    """log of the median over chains of the effective sample size after the first tenth; at least one sample."""
    trace = trace[:, trace.shape[1] // 10 :]
    return jnp.log(jnp.maximum(jnp.median(jax.vmap(lambda t: effective_sample_size(t[None]))(trace)), 1.0))


def _domain(energy: Any) -> Any:
    kinds = getattr(energy, "num_categories", None)
    return Binary() if kinds is None else Categorical(kinds)


def _distances(key: Any, kernel: Any, energy: Any, scale: Any) -> tuple[Any, Any]:
    """Traces of the Hamming distance to a random state, and the cost of a step."""
    start_key, walk_key = jax.random.split(key)
    *start, reference = jax.vmap(energy.start)(jax.random.split(start_key, scale.chains + 1))
    return walk(walk_key, kernel, jnp.stack(start), scale.steps, scale.thin, partial(_distance, reference))


def _distance(reference: Any, state: Any) -> Any:
    return hamming_distance(state.position, reference)


def efficiency(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log of effective samples per step and per evaluation of f, of the Hamming distance to a random state."""
    trace, cost = _distances(key, make_kernel(arm, problem, _domain(problem)), problem, scale)
    per_step = log_effective(trace) - jnp.log(float(scale.steps))
    return {"log_ess_per_step": per_step, "log_ess_per_evaluation": per_step - jnp.log(cost)}


def to_reference(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log MMD of the chains' ends against samples of a random RBM by its own block-Gibbs sweeps."""
    model_key, start_key, walk_key, sweep_key = jax.random.split(key, 4)
    rbm = random_rbm(model_key, scale.visible, scale.hidden)
    start = jax.vmap(rbm.start)(jax.random.split(start_key, scale.chains))
    ends, _ = walk(walk_key, make_kernel(arm, rbm), start, scale.steps, scale.steps, lambda state: state.position)

    def sweeps(key):
        first, rest = jax.random.split(key)
        keys = jax.random.split(rest, scale.sweeps)
        return jax.lax.scan(lambda v, k: (rbm.sweep(k, v), None), rbm.start(first), keys)[0]

    reference = jax.vmap(sweeps)(jax.random.split(sweep_key, scale.reference))
    return {"log_mmd": 0.5 * jnp.log(jnp.maximum(hamming_mmd(ends[:, -1], reference), 1e-12))}


def to_posterior(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """Log joint density of a factorial HMM along the run, averaged: the area under the curve."""
    model_key, start_key, walk_key = jax.random.split(key, 3)
    model = random_factorial_hmm(model_key, scale.hidden_chains, scale.length)
    start = jax.vmap(model.start)(jax.random.split(start_key, scale.chains))
    thin = scale.steps // 50
    trace, cost = walk(walk_key, make_kernel(arm, model), start, scale.steps, thin, lambda state: state.logdensity)
    curve = jnp.mean(trace, axis=0) / (scale.length * scale.hidden_chains)
    return {
        "log_joint": jnp.mean(curve),
        "curve": curve,
        "evaluations": cost * thin * jnp.arange(1, 51, dtype=float),
    }


@eqx.filter_jit
def _timed_distances(key: Any, kernel: Any, energy: Any, settings: tuple) -> Any:
    return _distances(key, kernel, energy, Settings(dict(settings)))[0]


def seconds(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log of effective samples per second of computing on four energies: compiled first, then the quickest of three."""
    model_key, walk_key = jax.random.split(key)
    energies = {
        "ising": IsingLattice(scale.side, jnp.asarray(0.2)),
        "potts": PottsLattice(scale.side, 3, jnp.asarray(0.8)),
        "rbm": random_rbm(model_key, scale.visible, scale.hidden),
        "fhmm": random_factorial_hmm(model_key, scale.hidden_chains, scale.length),
    }
    settings = tuple((name, scale[name]) for name in ("chains", "steps", "thin"))
    result = {}
    for name, energy in energies.items():
        kernel = make_kernel(arm, energy, _domain(energy))
        best = float("inf")
        trace = jax.block_until_ready(_timed_distances(walk_key, kernel, energy, settings))
        for _ in range(3):
            began = time.perf_counter()
            jax.block_until_ready(_timed_distances(walk_key, kernel, energy, settings))
            best = min(best, time.perf_counter() - began)
        # All chains run side by side, so a chain's share of the time is a chains-th.
        result[f"log_ess_per_second_{name}"] = log_effective(trace) - jnp.log(best / scale.chains)
    return result
