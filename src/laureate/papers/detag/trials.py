"""DeTAG and its rivals, all nodes in one process; every number a node sends is counted alike."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate.decentralized import D2, DPSGD, DeTAG, Gossip, GradientTracking, metropolis_weights, ring, stack, train
from laureate.lab.claim import Settings
from laureate.problems.peers import ImagesOverNodes, Quadratics

__all__ = ["consensus", "images", "lower_bound", "optimiser", "phase_rounds", "quadratics"]

TWO_VECTORS = {"detag", "gradient-tracking"}


def lazy(size: int, kappa: float | Array, method: Any = "accelerated") -> Gossip:
    """The ring with κ (I + W)/2 + (1 − κ) I, W Metropolis'."""
    graph = ring(size)
    return Gossip(graph, weights=(np.eye(size) + metropolis_weights(graph)) / 2, method=method, kappa=kappa)


def phase_rounds(size: int, kappas: tuple[float, ...]) -> np.ndarray:
    """R = ⌈1/√(1 − λ)⌉ for each κ."""
    with jax.ensure_compile_time_eval():
        return np.array([DeTAG.advised_rounds(lazy(size, kappa)) for kappa in kappas])


def optimiser(name: str, gossip: Gossip, rate: float | Array, rounds: int | Array) -> Any:
    """A rival by name."""
    if name == "detag":
        return DeTAG(gossip, rate, rounds)
    return {"d-psgd": DPSGD, "d2": D2, "gradient-tracking": GradientTracking}[name](gossip, rate)


def consensus(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Rounds until random differences have shrunk a thousandfold, ring by ring; and the bound on its extremal start."""
    log_rounds, log_gap, deviation = [], [], []
    for size in scale.sizes:
        with jax.ensure_compile_time_eval():
            gossip = lazy(size, 1.0, arm.method)
            _, vectors = np.linalg.eigh(gossip.dense())
            gap, bound = float(gossip.gap), float(gossip.contraction(2 * size))
        x = jax.random.normal(jax.random.fold_in(key, size), (size,))
        # Beside the random start the slowest there is, the eigenvector of λ_2.
        start = jnp.stack([(x - x.mean()) / jnp.linalg.norm(x - x.mean()), jnp.asarray(vectors[:, -2])], axis=1)

        def step(carry, index, gossip=gossip):
            now, before = carry
            new = gossip.advance(index, now, before)
            return (new, now), jnp.linalg.norm(new, axis=0)

        # Plain gossip needs log(1000)/gap rounds at most: nobody is cut short.
        most = min(scale.most, int(1.2 * np.log(1e3) / gap))
        _, norms = jax.lax.scan(step, (start, start), jnp.arange(most))
        log_rounds.append(jnp.log10(1.0 + jnp.sum(norms[:, 0] > 1e-3)))
        log_gap.append(jnp.log10(gap))
        deviation.append(jnp.abs(norms[2 * size - 1, 1] / bound - 1.0))
    return {
        "log_rounds": jnp.stack(log_rounds),
        "log_gap": jnp.stack(log_gap),
        # Of an arm whose bound is reached elsewhere on the spectrum the number says nothing.
        "deviation": jnp.stack(deviation).max(),
    }


def _quadratic_errors(key, arm, problem, kappa, noise, rate, rounds, num_rounds):
    """[num_rounds]: the nodes' mean squared distance to the optimum after each round, one run."""
    data_key, run_key = jax.random.split(key)
    data = problem.sample(data_key)
    best = problem.optimum(data)
    method = optimiser(arm.optimiser, lazy(problem.nodes, kappa), rate, rounds)
    params = jnp.zeros((problem.nodes, problem.dimension))

    def step(carry, index):
        params, state = carry
        # One draw for all nodes: far fewer operations than a key each.
        noises = noise * jax.random.normal(jax.random.fold_in(run_key, index), params.shape, params.dtype)
        grads = jnp.einsum("npq,nq->np", data[0], params) - data[1] + noises
        updates, state = method.update(grads, state, params)
        params = params + updates
        return (params, state), jnp.mean(jnp.sum((params - best) ** 2, axis=-1))

    _, errors = jax.lax.scan(step, (params, method.init(params)), jnp.arange(num_rounds))
    return errors, jnp.sum(best**2)


def quadratics(key: Array, arm: Settings, problem: Quadratics, scale: Settings) -> dict[str, Array]:
    """log10 of the squared distance in three cases, each at its best rate."""
    kappas, noises = (1.0, 0.1, 1.0), (0.1, 0.1, 0.0)
    rounds, rates = phase_rounds(problem.nodes, kappas), jnp.asarray(scale.rates)

    def run(kappa, noise, rate, rounds):
        errors, _ = _quadratic_errors(key, arm, problem, kappa, noise, rate, rounds, scale.rounds)
        tenth, half = scale.rounds // 10, scale.rounds // 2
        return errors[-tenth:].mean(), errors[half - tenth : half].mean()

    over_rates = jax.vmap(run, in_axes=(None, None, 0, None))
    ends, middles = jax.vmap(over_rates, in_axes=(0, 0, None, 0))(
        jnp.asarray(kappas), jnp.asarray(noises), rates, jnp.asarray(rounds)
    )
    best = lambda errors: jnp.clip(_log(errors), -10.0, 4.0).min(axis=1)  # noqa: E731
    end, at_bytes = best(ends), best(middles if arm.optimiser in TWO_VECTORS else ends)
    chosen = jnp.log10(rates[jnp.argmin(_log(ends), axis=1)])
    names = ("dense", "sparse", "dense_noiseless")
    found = {}
    for i, name in enumerate(names):
        found |= {name: end[i], f"{name}_bytes": at_bytes[i], f"{name}_log_rate": chosen[i]}
    return found


def lower_bound(key: Array, arm: Settings, problem: Quadratics, scale: Settings) -> dict[str, Array]:
    """Rounds until the squared distance is a millionth of the first, a κ each, at the best rate."""
    rounds, rates = phase_rounds(problem.nodes, scale.kappas), jnp.asarray(scale.rates)
    with jax.ensure_compile_time_eval():
        gaps = np.array([float(lazy(problem.nodes, kappa).gap) for kappa in scale.kappas])

    def run(kappa, rate, rounds):
        errors, first = _quadratic_errors(key, arm, problem, kappa, 0.0, rate, rounds, scale.rounds)
        outside = ~(errors <= 1e-6 * first)  # so put, a run that has diverged to nan is outside too
        return 1.0 + jnp.sum(jnp.cumsum(outside[::-1])[::-1] > 0)  # until it stays inside

    over_rates = jax.vmap(run, in_axes=(None, 0, None))
    needed = jax.vmap(over_rates, in_axes=(0, None, 0))(jnp.asarray(scale.kappas), rates, jnp.asarray(rounds))
    log_rounds, log_gap = jnp.log10(needed.min(axis=1)), jnp.log10(jnp.asarray(gaps))
    centred = log_gap - log_gap.mean()
    return {
        "log_rounds": log_rounds,
        "log_gap": log_gap,
        "log_rounds_smallest_gap": log_rounds[np.argmin(gaps)],
        "exponent": -jnp.sum(centred * log_rounds) / jnp.sum(centred**2),
    }


def images(key: Array, arm: Settings, problem: ImagesOverNodes, scale: Settings) -> dict[str, Array]:
    """Loss on everybody's images at the best rates: sorted over a sparse ring, and as a second case shuffled."""
    kappas, shuffles = (0.1, 1.0)[: scale.cases], (0.0, 1.0)[: scale.cases]
    rounds, rates = phase_rounds(problem.nodes, kappas), jnp.asarray(scale.rates)
    split_key, start_key, run_key = jax.random.split(key, 3)
    start = stack(problem.theta0(start_key), problem.nodes)

    def losses(params):
        each = jax.vmap(problem.whole_loss)(params).mean()
        return each, problem.whole_loss(jax.tree.map(lambda x: x.mean(0), params))

    def run(kappa, shuffle, rate, rounds):
        method = optimiser(arm.optimiser, lazy(problem.nodes, kappa), rate, rounds)
        data = problem.parts(split_key, shuffle)
        every = scale.rounds // scale.points
        _, history = train(
            run_key, method, problem.gradient, start, scale.rounds, data=data, record=losses, every=every
        )
        return jax.tree.map(lambda x: jnp.minimum(jnp.nan_to_num(x, nan=10.0, posinf=10.0), 10.0), history.recorded)

    over_rates = jax.vmap(run, in_axes=(None, None, 0, None))
    each, mean_model = jax.vmap(over_rates, in_axes=(0, 0, None, 0))(
        jnp.asarray(kappas), jnp.asarray(shuffles), rates, jnp.asarray(rounds)
    )
    middle = scale.points // 2 - 1 if arm.optimiser in TWO_VECTORS else scale.points - 1
    found = {}
    for case, name in enumerate(("sorted", "shuffled")[: scale.cases]):
        best = jnp.argmin(each[case, :, -1])
        found |= {
            f"{name}_loss": each[case, best, -1],
            f"{name}_loss_bytes": each[case, :, middle].min(),
            f"{name}_mean_model_loss": mean_model[case, :, -1].min(),
            f"{name}_log_rate": jnp.log10(rates[best]),
            f"{name}_curve": each[case, best],
        }
    return found | {"rounds": jnp.linspace(scale.rounds / scale.points, scale.rounds, scale.points)}


def _log(errors: Array) -> Array:
    return jnp.log10(jnp.where(jnp.isfinite(errors), jnp.maximum(errors, 1e-30), 1e30))
