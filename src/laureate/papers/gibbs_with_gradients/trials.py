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
    Categorical,
    DiscreteLangevin,
    Gibbs,
    GibbsWithGradients,
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
        normals = jax.random.normal(key, (size + 4, size))
        self.fields = normals[0]
        self.couplings = jnp.triu(normals[1 : size + 1], 1)
        self.hidden = normals[size + 1 :]

    def __call__(self, x: Any) -> Any:
        """f of relaxed x, ravelled."""
        x = x.reshape(-1)
        return self.fields @ x + x @ self.couplings @ x + jnp.sum(jax.nn.softplus(self.hidden @ x))


def correctable(kernel: GibbsWithGradients, corrected: Any) -> Any:
    """The kernel's ``propose``, or with ``corrected = 0`` one whose acceptance forgets the proposals' probabilities.

    The choice is a number, so that both arms are one program.
    """

    def propose(state, draws):
        proposal, log_probability, log_ratio = kernel.propose(state, draws)
        forgetful = proposal.logdensity - state.logdensity
        return proposal, log_probability, jnp.where(corrected > 0, log_ratio, forgetful)

    return propose


def exactness(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log10 of the worst max |π_i P_ij - π_j P_ji| over the options, by enumeration."""
    bits, kinds = jnp.zeros(scale.bits, bool), jnp.zeros(scale.kinds, jnp.int32)
    make_bits = partial(GibbsWithGradients, RandomEnergy(key, scale.bits), Binary())
    make_kinds = partial(GibbsWithGradients, RandomEnergy(key, 3 * scale.kinds), Categorical(3))
    cases = [(make_bits(num_flips=2), bits), (make_kinds(), kinds)]
    if scale.thorough:
        cases += [(make_bits(), bits)]
        cases += [(make_bits(radius=2), bits), (make_bits(lazy=0.2), bits)]
        cases += [(make_bits(balancing=name), bits) for name in ("barker", "min", "max")]
        cases += [(make_kinds(num_flips=2), kinds)]
    errors = []
    for kernel, position in cases:
        pi = exact_distribution(kernel, all_positions(kernel.domain, position))
        matrix = transition_matrix(kernel, position, propose=correctable(kernel, arm.corrected))
        errors.append(detailed_balance_error(matrix, pi))
    return {"log10_error": jnp.log10(jnp.maximum(jnp.max(jnp.stack(errors)), 1e-18))}


def gaps(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log of the spectral gap of an arm's chain on a random energy."""
    kernel = make_kernel(arm, RandomEnergy(key, scale.bits))
    position = jnp.zeros(scale.bits, bool)
    pi = exact_distribution(kernel, all_positions(kernel.domain, position))
    gap = spectral_gap(transition_matrix(kernel, position), pi)
    return {"log_gap": jnp.log(jnp.maximum(gap, 1e-9))}


def walk(keys: Any, kernel: Any, start: Any, steps: int, thin: int, collect: Any) -> tuple[Any, Any]:
    """What ``collect`` sees every ``thin`` steps, chains first, and the cost of a step; a key and a start a chain."""

    def chain(key, position):
        def keep(state, number):
            steps = number * thin + jnp.arange(thin)
            state, cost = jax.lax.scan(lambda s, t: _step(kernel, key, s, t), state, steps)
            return state, (collect(state), jnp.mean(cost.astype(float)))

        return jax.lax.scan(keep, kernel.init(position), jnp.arange(steps // thin))[1]

    kept, cost = jax.vmap(chain)(keys, start)
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
    keys = jax.random.split(key, 2 * scale.chains + 1)
    *start, reference = jax.vmap(energy.start)(keys[scale.chains :])
    return walk(keys[: scale.chains], kernel, jnp.stack(start), scale.steps, scale.thin, partial(_distance, reference))


def _distance(reference: Any, state: Any) -> Any:
    return hamming_distance(state.position, reference)


def efficiency(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log of effective samples per step and per evaluation of f, of the Hamming distance to a random state."""
    trace, cost = _distances(key, make_kernel(arm, problem, _domain(problem)), problem, scale)
    effective = log_effective(trace)
    per_step = effective - jnp.log(float(scale.steps))
    return {
        "log_ess_per_step": per_step,
        "log_ess_per_evaluation": per_step - jnp.log(cost),
        "effective": jnp.exp(effective),
    }


def to_reference(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log MMD of the chains' ends against samples of a random RBM by its own block-Gibbs sweeps."""
    chains, count = scale.chains, scale.chains + scale.reference
    keys = jax.random.split(key, 2 * count + 1)
    rbm = random_rbm(keys[-1], scale.visible, scale.hidden)
    start = jax.vmap(rbm.start)(keys[count:-1])
    kernel = make_kernel(arm, rbm)
    ends, _ = walk(keys[:chains], kernel, start[:chains], scale.steps, scale.steps, lambda state: state.position)

    def sweeps(key, start):
        return jax.lax.fori_loop(0, scale.sweeps, lambda i, v: rbm.sweep(jax.random.fold_in(key, i), v), start)

    reference = jax.vmap(sweeps)(keys[chains:count], start[chains:])
    return {"log_mmd": 0.5 * jnp.log(jnp.maximum(hamming_mmd(ends[:, -1], reference), 1e-12))}


def to_posterior(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """Log joint density of a factorial HMM along the run, averaged: the area under the curve."""
    keys = jax.random.split(key, 2 * scale.chains + 1)
    model = random_factorial_hmm(keys[-1], scale.hidden_chains, scale.length)
    start = jax.vmap(model.start)(keys[scale.chains : -1])
    thin = scale.steps // 50
    trace, cost = walk(
        keys[: scale.chains], make_kernel(arm, model), start, scale.steps, thin, lambda state: state.logdensity
    )
    curve = jnp.mean(trace, axis=0) / (scale.length * scale.hidden_chains)
    return {
        "log_joint": jnp.mean(curve),
        "curve": curve,
        "evaluations": cost * thin * jnp.arange(1, 51, dtype=float),
    }


@eqx.filter_jit
def _timed_distances(key: Any, kernel: Any, energy: Any, settings: tuple) -> Any:
    return _distances(key, kernel, energy, Settings(dict(settings)))[0]


_timed_effective = jax.jit(log_effective)


def seconds(key: Any, arm: Any, problem: Any, scale: Any) -> dict[str, Any]:
    """log of effective samples per second of CPU time on four energies, by the quickest of three calls.

    CPU time, for the wall's clock also counts other work on the machine; ``wall_over_cpu`` says how busy it was.
    """
    model_key, walk_key = jax.random.split(key)
    energies = {
        "ising": IsingLattice(scale.side, jnp.asarray(0.2)),
        "potts": PottsLattice(scale.side, 3, jnp.asarray(0.8)),
        "rbm": random_rbm(model_key, scale.visible, scale.hidden),
        "fhmm": random_factorial_hmm(model_key, scale.hidden_chains, scale.length),
    }
    settings = tuple((name, scale[name]) for name in ("chains", "steps", "thin"))
    result, busy = {}, 0.0
    for name, energy in energies.items():
        kernel = make_kernel(arm, energy, _domain(energy))
        best, quickest_wall, trace = float("inf"), float("inf"), None
        for _ in range(3):  # the first seed's first call compiles, and so is never the quickest
            began, wall = time.process_time(), time.perf_counter()
            trace = jax.block_until_ready(_timed_distances(walk_key, kernel, energy, settings))
            cpu, wall = time.process_time() - began, time.perf_counter() - wall
            if cpu < best:
                best, quickest_wall = cpu, wall
        busy = max(busy, quickest_wall / best)
        # All chains run side by side, so a chain's share of the time is a chains-th.
        effective = _timed_effective(trace)
        result[f"log_ess_per_second_{name}"] = effective - jnp.log(best / scale.chains)
        result[f"effective_{name}"] = jnp.exp(effective)
    return result | {"wall_over_cpu": jnp.asarray(busy)}
