"""DeTAG and its rivals, all nodes in one process; every number a node sends is counted alike."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate.decentralized import D2, DPSGD, DeTAG, Gossip, GradientTracking, metropolis_weights, ring, stack, train
from laureate.lab.claim import Settings
from laureate.problems.peers import ImagesOverNodes, Quadratics

__all__ = ["consensus", "images", "lower_bound", "network", "optimiser", "phase_rounds", "quadratics"]

TWO_VECTORS = {"detag", "gradient-tracking"}
LAZY = (
    0.5  # the κ of the ring that is not made sparse: D² and accelerated gossip need eigenvalues that are not negative
)
LOWEST, HIGHEST = -300.0, 4.0  # log10 of a squared distance is cut to this range; the guards have it too
MOST = 10.0  # what a loss that is not finite, or larger, counts as


def network(size: int, kappa: float | Array, method: Any = "accelerated") -> Gossip:
    """The ring with κ W + (1 − κ) I, W Metropolis'. With κ = ½, the lazy ring, and below no eigenvalue is negative."""
    graph = ring(size)
    return Gossip(graph, weights=metropolis_weights(graph), method=method, kappa=kappa)


def phase_rounds(size: int, kappas: tuple[float, ...]) -> np.ndarray:
    """R = ⌈1/√(1 − λ)⌉ for each κ."""
    with jax.ensure_compile_time_eval():
        return np.array([DeTAG.advised_rounds(network(size, kappa)) for kappa in kappas])


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
            gossip = network(size, LAZY, arm.method)
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
    method = optimiser(arm.optimiser, network(problem.nodes, kappa), rate, rounds)
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
    """log10 of the squared distance in three cases, each at its best rate, and these rates.

    The arm without an optimiser stays at its start, the trivial thing to do.
    """
    kappas, noises = (LAZY, 0.1, LAZY), (0.1, 0.1, 0.0)
    names = ("dense", "sparse", "dense_noiseless")
    if arm.optimiser == "none":
        start = jnp.log10(jnp.sum(problem.optimum(problem.sample(jax.random.split(key)[0])) ** 2))
        return {f"{name}{suffix}": start for name in names for suffix in ("", "_bytes")}
    rounds, rates = phase_rounds(problem.nodes, kappas), jnp.asarray(scale.rates)

    def run(kappa, noise, rate, rounds):
        errors, _ = _quadratic_errors(key, arm, problem, kappa, noise, rate, rounds, scale.rounds)
        tenth, half = scale.rounds // 10, scale.rounds // 2
        return errors[-tenth:].mean(), errors[half - tenth : half].mean()

    over_rates = jax.vmap(run, in_axes=(None, None, 0, None))
    ends, middles = jax.vmap(over_rates, in_axes=(0, 0, None, 0))(
        jnp.asarray(kappas), jnp.asarray(noises), rates, jnp.asarray(rounds)
    )
    found = {}
    for suffix, errors in (("", ends), ("_bytes", middles if arm.optimiser in TWO_VECTORS else ends)):
        logs = jnp.clip(_log(errors), LOWEST, HIGHEST)
        chosen = rates[jnp.argmin(_log(errors), axis=1)]
        for i, name in enumerate(names):
            found |= {f"{name}{suffix}": logs[i].min(), f"{name}{suffix}_rate": chosen[i]}
    return found


def lower_bound(key: Array, arm: Settings, problem: Quadratics, scale: Settings) -> dict[str, Array]:
    """Rounds until the squared distance is a millionth of the first, a κ each, at the best rate."""
    rounds, rates = phase_rounds(problem.nodes, scale.kappas), jnp.asarray(scale.rates)
    with jax.ensure_compile_time_eval():
        gaps = np.array([float(network(problem.nodes, kappa).gap) for kappa in scale.kappas])

    def run(kappa, rate, rounds):
        errors, first = _quadratic_errors(key, arm, problem, kappa, 0.0, rate, rounds, scale.rounds)
        outside = ~(errors <= 1e-6 * first)  # so put, a run that has diverged to nan is outside too
        return 1.0 + jnp.sum(jnp.cumsum(outside[::-1])[::-1] > 0)  # until it stays inside

    over_rates = jax.vmap(run, in_axes=(None, 0, None))
    needed = jax.vmap(over_rates, in_axes=(0, None, 0))(jnp.asarray(scale.kappas), rates, jnp.asarray(rounds))
    # Rates that need as many rounds: the one in the middle of them, so that a tie does not stand for an edge.
    fewest = needed == needed.min(axis=1, keepdims=True)
    middle = jnp.argmax(jnp.cumsum(fewest, axis=1) * 2 > fewest.sum(axis=1, keepdims=True), axis=1)
    log_rounds, log_gap = jnp.log10(needed.min(axis=1)), jnp.log10(jnp.asarray(gaps))
    centred = log_gap - log_gap.mean()
    return {
        "log_rounds": log_rounds,
        "log_gap": log_gap,
        "log_rounds_smallest_gap": log_rounds[np.argmin(gaps)],
        "exponent": -jnp.sum(centred * log_rounds) / jnp.sum(centred**2),
        "rate": rates[middle],
        # 1 where no rate reached the target: its rounds are then those of the run, not those it needs.
        "cut_short": (needed.min(axis=1) > scale.rounds).astype(log_rounds.dtype),
    }


def images(key: Array, arm: Settings, problem: ImagesOverNodes, scale: Settings) -> dict[str, Array]:
    """Loss on everybody's images at the best rates, and these: sorted over a sparse ring, as a second case shuffled.

    The arm without an optimiser says that every class is as likely, the trivial thing to say.
    """
    kappas, shuffles = (0.1, LAZY)[: scale.cases], (0.0, 1.0)[: scale.cases]
    names = ("sorted", "shuffled")[: scale.cases]
    recorded = {"rounds": jnp.linspace(scale.rounds / scale.points, scale.rounds, scale.points)}
    if arm.optimiser == "none":
        nothing = problem.whole_loss(jax.tree.map(jnp.zeros_like, problem.theta0(key)))
        untrained = {f"{name}_{what}": nothing for name in names for what in ("loss", "loss_bytes", "mean_model_loss")}
        return untrained | {f"{name}_curve": jnp.full(scale.points, nothing) for name in names} | recorded
    rounds, rates = phase_rounds(problem.nodes, kappas), jnp.asarray(scale.rates)
    split_key, start_key, run_key = jax.random.split(key, 3)
    start = stack(problem.theta0(start_key), problem.nodes)

    def losses(params):
        each = jax.vmap(problem.whole_loss)(params).mean()
        return each, problem.whole_loss(jax.tree.map(lambda x: x.mean(0), params))

    def run(kappa, shuffle, rate, rounds):
        method = optimiser(arm.optimiser, network(problem.nodes, kappa), rate, rounds)
        data = problem.parts(split_key, shuffle)
        every = scale.rounds // scale.points
        _, history = train(
            run_key, method, problem.gradient, start, scale.rounds, data=data, record=losses, every=every
        )
        return jax.tree.map(lambda x: jnp.minimum(jnp.nan_to_num(x, nan=MOST, posinf=MOST), MOST), history.recorded)

    over_rates = jax.vmap(run, in_axes=(None, None, 0, None))
    each, mean_model = jax.vmap(over_rates, in_axes=(0, 0, None, 0))(
        jnp.asarray(kappas), jnp.asarray(shuffles), rates, jnp.asarray(rounds)
    )
    middle = scale.points // 2 - 1 if arm.optimiser in TWO_VECTORS else scale.points - 1
    found = recorded
    for case, name in enumerate(names):
        best = jnp.argmin(each[case, :, -1])
        found |= {f"{name}_curve": each[case, best]}
        for what, ended in (
            ("loss", each[case, :, -1]),
            ("loss_bytes", each[case, :, middle]),
            ("mean_model_loss", mean_model[case, :, -1]),
        ):
            found |= {f"{name}_{what}": ended.min(), f"{name}_{what}_rate": rates[jnp.argmin(ended)]}
    return found


def _log(errors: Array) -> Array:
    return jnp.log10(jnp.where(jnp.isfinite(errors), jnp.maximum(errors, 1e-300), 1e30))
