"""What every sampler must do, whatever it is: one table, all properties."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.util import run_inference_algorithm

from laureate._core import Status
from laureate.problems.energies import IsingLattice
from laureate.sampling import (
    Binary,
    BlockGibbs,
    DiscreteLangevin,
    Gibbs,
    GibbsWithGradients,
    HammingBall,
    IncrementalGibbsWithGradients,
    LocallyInformed,
    ParallelTempering,
    PathAuxiliary,
    run,
)

LATTICE = IsingLattice(4, 0.15, 0.1)
TARGET = (LATTICE, Binary())
KERNELS = {
    "gwg": GibbsWithGradients(*TARGET),
    "gwg-3": GibbsWithGradients(*TARGET, num_flips=3, lazy=0.1),
    "locally-informed": LocallyInformed(*TARGET),
    "incremental": IncrementalGibbsWithGradients(*TARGET, arity=4),
    "gibbs": Gibbs(*TARGET),
    "gibbs-systematic": Gibbs(*TARGET, scan="systematic"),
    "block-gibbs": BlockGibbs(*TARGET),
    "hamming-ball": HammingBall(*TARGET, block_size=4),
    "dmala": DiscreteLangevin(*TARGET),
    "dula": DiscreteLangevin(*TARGET, adjusted=False),
    "path-auxiliary": PathAuxiliary(*TARGET),
    "parallel-tempering": ParallelTempering(GibbsWithGradients(*TARGET), jnp.array([1.0, 0.5])),
}
SPINS = LATTICE.start(jax.random.key(7))


# Options of kernels that are here already: every row compiles programs of its own.
VARIANTS = {"gwg-3", "gibbs-systematic", "dula"}


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name in VARIANTS)) for name in KERNELS], scope="module"
)
def kernel(request):
    return KERNELS[request.param]


QUICK = {"xla_backend_optimization_level": 0}


@pytest.fixture(scope="module")
def walked(kernel):
    """BlackJAX's own driver, which calls init with a key."""
    return run_inference_algorithm(jax.random.key(0), kernel, 40, initial_position=SPINS)


def test_blackjax_runs_it_and_the_state_keeps_its_shape(kernel, walked):
    state, (_, infos) = walked
    start = jax.eval_shape(kernel.init, SPINS)
    assert jax.tree.structure(state) == jax.tree.structure(start)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(start), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert state.position.shape == (4, 4)
    assert not np.array_equal(state.position, SPINS)
    assert (np.asarray(infos.status) == Status.OK).all()
    assert (np.asarray(infos.cost) >= 1).all()
    rates = np.asarray(infos.acceptance_rate)
    assert ((rates >= 0) & (rates <= 1 + 1e-6)).all()


def test_what_the_state_caches_is_what_its_position_gives(kernel, walked):
    """Also after rejections: a stale gradient would leave every single step right and the chain wrong."""
    state, _ = walked
    assert float(state.logdensity) == pytest.approx(float(LATTICE(state.position.astype(float))), abs=1e-4)
    if isinstance(kernel, ParallelTempering):
        fresh = _initial(lambda position: jax.vmap(kernel.kernel.init)(position), state.replicas.position)
        np.testing.assert_allclose(state.replicas.differences, fresh.differences, atol=1e-4)
    else:
        fresh = _initial(lambda position: kernel.init(position), state.position)
        for kept, computed in zip(jax.tree.leaves(state), jax.tree.leaves(fresh), strict=True):
            if jnp.issubdtype(kept.dtype, jnp.floating):
                np.testing.assert_allclose(kept, computed, atol=1e-4)


def _initial(init, position):
    return jax.jit(init, compiler_options=QUICK)(position)


@pytest.mark.parametrize(
    "name",
    [
        "gibbs-systematic",  # whose state says which site is next
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gwg-3", "incremental", "parallel-tempering")),
    ],
)
def test_same_key_same_bits_chunks_change_nothing_and_runs_continue(name):
    kernel = KERNELS[name]
    start = jax.vmap(LATTICE.start)(jax.random.split(jax.random.key(1), 3))
    key, seen = jax.random.key(2), []
    whole = run(key, kernel, start, 24)
    parts = run(key, kernel, start, 24, chunk=12, progress=seen.append)
    np.testing.assert_array_equal(whole.samples, parts.samples)
    assert [p.done for p in seen] == [12, 24]
    half = run(key, kernel, start, 12)
    rest = run(key, kernel, num_steps=12, state=half.state, first_step=12)
    np.testing.assert_array_equal(whole.samples[:, 12:], rest.samples)
    assert whole.num_nan.sum() == 0
    assert (whole.cost >= 24).all()


def test_a_new_number_compiles_nothing(kernel):
    count = 0

    @jax.jit
    def step(kernel, key, state):
        nonlocal count
        count += 1
        return kernel.step(key, state)

    state = jax.eval_shape(kernel.init, SPINS)
    where = (lambda k: k.kernel.logdensity_fn.sigma) if hasattr(kernel, "kernel") else _sigma
    for sigma in (0.15, 0.3):
        step.trace(eqx.tree_at(where, kernel, sigma), jax.random.key(0), state)
    assert count == 1


def _sigma(kernel):
    return kernel.energy.sigma if hasattr(kernel, "energy") else kernel.logdensity_fn.sigma


def test_double_precision(kernel):
    with jax.enable_x64(True):
        if isinstance(kernel, ParallelTempering):  # made anew, for its temperatures are an array
            kernel = ParallelTempering(kernel.kernel, jnp.array([1.0, 0.5]))
        state, info = jax.eval_shape(lambda key: kernel.step(key, kernel.init(SPINS)), jax.random.key(0))
    floats = {leaf.dtype for leaf in jax.tree.leaves((state, info)) if jnp.issubdtype(leaf.dtype, jnp.floating)}
    assert floats == {jnp.dtype("float64")}


@pytest.mark.slow
def test_adaptation_freezes_a_length_that_accepts_as_wanted():
    kernel = PathAuxiliary(IsingLattice(6, 0.1), Binary(), path_length=2.0, max_length=30)
    start = IsingLattice(6).start(jax.random.key(0))
    frozen, state = jax.jit(lambda key: kernel.adapt(key, kernel.init(start), 600))(jax.random.key(1))
    assert 1.0 < float(frozen.path_length) <= 30.0
    result = run(jax.random.key(2), frozen, state.position[None], 400)
    assert 0.574 - 0.15 < result.acceptance_rate[0] < 0.574 + 0.15
