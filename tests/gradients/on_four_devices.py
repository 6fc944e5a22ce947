"""Run by test_sharding.py in a process of its own, for the number of devices is fixed when JAX starts."""

import json

import jax
import jax.numpy as jnp
import numpy as np

from laureate.gradients import AnalyticPES, FullES, NoiseReuseES, PersistentES, Sharded, TruncatedES

QUICK = {"xla_backend_optimization_level": 0}
COLLECTIVES = ("psum", "all_gather", "all_to_all", "ppermute", "psum_invariant", "reduce_scatter", "pmax", "pmin")


class Noisy:
    def init(self, key, theta):
        return jax.random.normal(key, (2,)) + theta["a"]

    def step(self, key, theta, state, batch):
        state = 0.9 * state + theta["a"] * jax.random.normal(key, (2,)) + batch
        return state, jnp.sum(state**2) + theta["b"]


def collectives(jaxpr, found):
    """How often each collective stands in a program, at any depth."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in COLLECTIVES:
            found[eqn.primitive.name] = found.get(eqn.primitive.name, 0) + 1
        for value in eqn.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    collectives(inner, found)
    return found


def compare(estimator):
    mesh = jax.make_mesh((4,), ("pairs",))
    sharded = Sharded(estimator, mesh)
    theta = {"a": jnp.asarray([0.3, -0.2]), "b": jnp.asarray(0.1)}
    one, four = (jax.jit(lambda *args, e=e: e.step(*args), compiler_options=QUICK) for e in (estimator, sharded))
    start = jax.jit(lambda key: (estimator.init(key, theta), sharded.init(key, theta)), compiler_options=QUICK)
    state, split = start(jax.random.key(0))
    number = 12 if estimator.truncation is None else estimator.truncation
    axes = (number, estimator.num_pairs) if estimator.batches_per_pair else (number,)
    batches = jnp.asarray(np.random.default_rng(0).normal(size=axes))
    counted = collectives(jax.make_jaxpr(sharded.step)(jax.random.key(1), theta, split, batches).jaxpr, {})
    worst = info_worst = 0.0
    for i in range(5):
        gradient, state, info = one(jax.random.key(i), theta, state, batches)
        # Queued programs with collectives hang on few cores: block after every step.
        same, split, info_same = jax.block_until_ready(four(jax.random.key(i), theta, split, batches))
        error = jax.tree.map(lambda a, b: float(jnp.max(jnp.abs(a - b))), gradient, same)
        size = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(gradient))
        worst = max(worst, max(jax.tree.leaves(error)) / size)
        apart = jax.tree.map(lambda a, b: float(np.max(np.abs(np.asarray(a) - np.asarray(b)))), info, info_same)
        info_worst = max(info_worst, *jax.tree.leaves(apart))
    leaves = jax.tree.leaves(split.pairs)
    spread = all(len(leaf.sharding.device_set) == 4 and not leaf.is_fully_replicated for leaf in leaves)
    return {
        "largest error": worst,
        "info error": info_worst,
        "collectives": counted,
        "sharded leaves": bool(leaves) and spread,
    }


def main():
    common = {"num_pairs": 8, "sigma": 0.1}
    aligned = common | {"truncation": 3, "horizon": 6}
    report: dict = {"devices": jax.device_count()}
    for make in (PersistentES, NoiseReuseES):
        report[make.__name__] = compare(make(Noisy(), **aligned, batches_per_pair=True, phase="random"))
    for make in (TruncatedES, AnalyticPES):
        report[make.__name__] = compare(make(Noisy(), **aligned))
    report["FullES"] = compare(FullES(Noisy(), **common, horizon=12))
    report["unaligned"] = compare(PersistentES(Noisy(), **common, truncation=3, horizon=(2, 7)))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
