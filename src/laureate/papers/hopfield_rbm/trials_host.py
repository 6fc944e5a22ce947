"""Hopfield networks as Boltzmann machines: what reads a clock, and what scikit-learn computes."""

import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate import memory
from laureate.lab.claim import Settings
from laureate.memory import LayerGibbs, LowRankSpinGibbs, SpinGibbs, store, to_boltzmann_machine

__all__ = ["features", "speed"]


def speed(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Effective samples a second of CPU time: layers of the machine against spins, in turn.

    Spins are visited with the couplings (N² operations a sweep) and with the weights (N p); the quicker counts.

    The effective number is that of the slowest pattern overlap, ξ·s/N, in chains that were let run in first.
    """
    import blackjax

    pattern_key, start_key, *run_keys = jax.random.split(key, 2 + scale.rounds)
    patterns = jnp.where(jax.random.bernoulli(pattern_key, 0.5, (scale.patterns, scale.units)), 1.0, -1.0)
    network = store(patterns)
    machine = to_boltzmann_machine(network, beta=scale.beta, factor="lowdin")
    kernels = {
        "layers": LayerGibbs(machine),
        "spins": SpinGibbs(network, scale.beta),
        "low-rank": LowRankSpinGibbs(machine),
    }

    def sampled(kernel):
        def run(key, position):
            def step(state, key):
                state, _ = kernel.step(key, state)
                return state, patterns @ state.position / scale.units

            state, overlaps = jax.lax.scan(step, kernel.init(position), jax.random.split(key, scale.draws))
            return state.position, overlaps

        return jax.jit(jax.vmap(run))

    programs = {name: sampled(kernel) for name, kernel in kernels.items()}
    first = jnp.where(jax.random.bernoulli(start_key, 0.5, (scale.chains, scale.units)), 1.0, -1.0)
    place = dict.fromkeys(programs, first)
    seconds, overlaps = dict.fromkeys(programs, 0.0), {name: [] for name in programs}
    cpu, wall = time.process_time(), time.perf_counter()
    for number, run_key in enumerate(run_keys):
        for name, program in programs.items():
            started = time.process_time()
            place[name], found = jax.block_until_ready(program(jax.random.split(run_key, scale.chains), place[name]))
            if number:  # the first compiles and runs in
                seconds[name] += time.process_time() - started
                overlaps[name].append(np.asarray(found))
    busy = (time.perf_counter() - wall) / (time.process_time() - cpu)
    effective = {
        name: float(np.min(blackjax.diagnostics.effective_sample_size(np.concatenate(found, axis=1))))
        for name, found in overlaps.items()
    }
    rate = {name: effective[name] / seconds[name] for name in programs}
    return {
        # Against the quicker of the two ways to visit spins.
        "log_ratio": jnp.asarray(math.log(rate["layers"] / max(rate["spins"], rate["low-rank"]))),
        "layers_per_second": jnp.asarray(rate["layers"]),
        "spins_per_second": jnp.asarray(rate["spins"]),
        "low_rank_per_second": jnp.asarray(rate["low-rank"]),
        "effective": jnp.asarray(min(effective.values())),
        "wall_over_cpu": jnp.asarray(busy),
    }


def features(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Accuracy of logistic regression on features of equal number, on rows that were split anew for the seed."""
    from sklearn.linear_model import LogisticRegression

    spins = np.concatenate([problem.spins, problem.test_spins])
    labels = np.concatenate([problem.labels, problem.test_labels])
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    order = generator.permutation(len(spins))
    train, test = order[: len(problem.spins)], order[len(problem.spins) :]
    count = scale.per_class * len(np.unique(labels))
    weights = _weights(arm.features, spins[train], labels[train], scale.per_class, count, generator)
    if weights is None:
        common = np.bincount(labels[train]).argmax()
        return {"accuracy": jnp.asarray((labels[test] == common).mean()), "features": jnp.asarray(0.0)}
    projected = spins @ weights
    projected = projected / projected[train].std()
    model = LogisticRegression(max_iter=scale.iterations).fit(projected[train], labels[train])
    accuracy = model.score(projected[test], labels[test])
    return {"accuracy": jnp.asarray(accuracy), "features": jnp.asarray(float(weights.shape[1]))}


def _weights(
    kind: str, spins: np.ndarray, labels: np.ndarray, per_class: int, count: int, generator: np.random.Generator
) -> np.ndarray | None:
    if kind == "none":
        return None
    if kind == "random":
        return np.linalg.qr(generator.normal(size=(spins.shape[1], count)))[0]
    if kind == "principal":
        return np.asarray(memory.principal_weights(spins, count))
    patterns = memory.class_patterns(spins, labels, per_class)
    if kind == "hebbian":
        return np.asarray(memory.hebbian_weights(patterns))
    return np.asarray(to_boltzmann_machine(store(patterns, rule="pseudo-inverse"), factor="lowdin").weights)
