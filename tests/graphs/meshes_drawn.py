"""Networks and simulators with numbers drawn by NumPy: nothing is compiled, and no bias or norm is 0 or 1."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate import graphs as g


def drawn(make, seed=0):
    """What ``make`` makes, floats drawn anew and integers 0."""
    rng = np.random.default_rng(seed)

    def filled(leaf):
        floats = jnp.issubdtype(leaf.dtype, jnp.inexact)
        values = 0.5 * rng.normal(size=leaf.shape) if floats else np.zeros(leaf.shape)
        return jax.device_put(values.astype(leaf.dtype))

    is_shape = lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)  # noqa: E731
    return jax.tree.map(lambda leaf: filled(leaf) if is_shape(leaf) else leaf, eqx.filter_eval_shape(make))


def network(*sizes, **settings):
    """A `MeshGraphNet` of these sizes."""
    return drawn(lambda: g.MeshGraphNet(jax.random.key(0), *sizes, **settings))


def simulator(integrator, graph, size, *, ready=False, **settings):
    """As `make_simulator`. ready: normalisers have seen four rows, of mean 0.2 and deviation 0.5."""
    made = drawn(lambda: g.make_simulator(jax.random.key(0), graph, integrator, size, **settings))

    full = lambda leaf, value: jax.device_put(np.full(leaf.shape, value, leaf.dtype))  # noqa: E731

    def normaliser(blank):
        single = lambda value: full(blank.statistics.mean, value if ready else 0)  # noqa: E731
        seen = lambda s: (s.statistics.count, s.statistics.mean, s.statistics.squares, s.max_batches)  # noqa: E731
        count = full(blank.statistics.count, 4 if ready else 0)
        return eqx.tree_at(seen, blank, (count, single(0.2), single(1.0), jax.device_put(np.int32(10**6))))

    statistics = g.MeshStatistics(*(None if part is None else normaliser(part) for part in made.statistics))
    return eqx.tree_at(lambda s: s.statistics, made, statistics)
