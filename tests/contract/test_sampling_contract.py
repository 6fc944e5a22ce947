"""A row for every sampler; what they must do stands in ``laureate.testing.check_sampler``."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from blackjax.util import run_inference_algorithm
from row_types import of_rows
from together import Together, costs

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
    PersistentContrastiveDivergence,
    run,
    sliced_svgd,
    svgd,
)
from laureate.testing import check_learner, check_sampler

LATTICE = IsingLattice(4, jnp.asarray(0.15), 0.1)
TARGET = (LATTICE, Binary())
ROWS = {
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


class Bowl(eqx.Module):
    width: jax.Array

    def __call__(self, x):
        return -jnp.sum(x**2) / self.width


PARTICLES = {
    "sliced-svgd": sliced_svgd(Bowl(jnp.asarray(2.0)), optax.adam(0.1), slices="rotate"),
    "svgd": svgd(Bowl(jnp.asarray(2.0)), optax.adam(0.1), bandwidth=jnp.asarray(1.5)),
}


class Coins(eqx.Module):
    biases: jax.Array

    def __call__(self, x):
        return self.biases @ x


def drawn(key):
    return jax.random.bernoulli(key, 0.5, (3,))


def coins(energy):
    return Gibbs(energy, Binary())


ADAM = optax.adam(0.1)  # a new object would compile anew


def trainer(restart):
    more = {"num_steps": 2, "num_chains": 3, "restart": jnp.asarray(restart), "sample_start": drawn}
    return PersistentContrastiveDivergence(coins, ADAM, **more)


TRAINER = trainer(0.5)
TYPES = of_rows("test_contract", ROWS) | of_rows("test_particles_keep_the_contract", PARTICLES)
TYPES |= {"test_training": {type(TRAINER)}}
SPINS = LATTICE.start(jax.random.key(7))
# Evaluations of f a step, where it is not one: all moves and their reverse; the other values of two sites; one at the
# centre and a value of each site; a site and its neighbours; two replicas.
COSTS = {"locally-informed": 17, "block-gibbs": 3, "hamming-ball": 5, "incremental": 6, "parallel-tempering": 2}
# Options of kernels that are here already, and two whose steps are those of "gwg" and "hamming-ball" but for how values
# or blocks are made: every row compiles programs of its own, and those of all of them together are quick.
VARIANTS = {"gwg-3", "dula", "locally-informed", "block-gibbs"}
# What is set in words, flags and counts; a limit beyond which a kernel raises changes no program.
BALANCES = {"balancing": ("sqrt", "barker")}
OPTIONS = {
    "gwg": BALANCES | {"num_flips": (1, 3), "radius": (1, 2)},
    "locally-informed": BALANCES | {"num_flips": (1, 3), "radius": (1, 2)},
    "incremental": BALANCES | {"arity": (4, 5)},
    "gibbs": {"scan": ("random", "systematic")},
    "block-gibbs": {"block_size": (2, 3)},
    "hamming-ball": {"block_size": (4, 5), "radius": (1, 2)},
    "dmala": {"adjusted": (True, False)},
    "path-auxiliary": BALANCES | {"max_length": (16, 8)},
    "parallel-tempering": {"steps_per_swap": (1, 2)},
}
LIMITS = (".max_neighbours", ".max_configurations")
DRIVEN = {"gibbs-systematic"}  # whose state says which site is next: the strictest for a driver
# A state of several replicas is no function of its position, which is the first one's; it has a test of its own.
UNCACHED = {"parallel-tempering": ("caches are fresh",)}


# Tempering gives its kernel the temperature of every replica.
UNUSED = {"parallel-tempering": (".kernel.inverse_temperature",)}


def fits(row):
    """Several flips, or several sites a draw."""
    return row.get("num_flips", 1) == 1 or row.get("radius", 1) == 1


def _hotter(kernel):
    """The same kernel on a lattice with other couplings."""
    if hasattr(kernel, "kernel"):
        return eqx.tree_at(lambda k: k.kernel, kernel, _hotter(kernel.kernel))
    if hasattr(kernel, "energy"):
        return eqx.tree_at(lambda k: k.energy.sigma, kernel, jnp.asarray(0.3))
    return eqx.tree_at(lambda k: k.logdensity_fn.sigma, kernel, jnp.asarray(0.3))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in VARIANTS)) for name in ROWS])
def test_contract(name):
    kernel = ROWS[name]
    driver, cost = run if name in DRIVEN else None, COSTS.get(name, 1)
    more = {"cost": cost, "unused": (*LIMITS, *UNUSED.get(name, ())), "skip": UNCACHED.get(name, ())}
    more |= {"options": OPTIONS.get(name), "allowed": fits}
    check_sampler(kernel, SPINS, others=[_hotter(kernel)], driver=driver, **more)


@pytest.mark.parametrize("name", PARTICLES)
def test_particles_keep_the_contract(name):
    """No chain that accepts: it has no rate, and without turned slices no key that matters."""
    kernel = PARTICLES[name]
    other = eqx.tree_at(lambda k: k.logdensity_fn.width, kernel, jnp.asarray(3.0))
    skip = {"report", "caches are fresh", "float64"} | ({"another key, other bits"} if name == "svgd" else set())
    particles = jnp.linspace(-1, 2, 8).reshape(4, 2) ** 2
    check_sampler(kernel, particles, others=[other], skip=skip)
    with jax.enable_x64(True):  # the particles' type is the type of everything
        wide = np.asarray(particles, np.float64)
        found = jax.eval_shape(lambda key: kernel.step(key, kernel.init(wide)), jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(found) if jnp.issubdtype(leaf.dtype, jnp.floating)} == {wide.dtype}


def test_training():
    """Three of four chains are moved by two steps of one evaluation each."""
    buffer, data = np.zeros((4, 3), bool), np.array([[1, 0, 1], [1, 1, 0]], bool)
    check_learner(
        TRAINER,
        data,
        init=lambda trainer, key: trainer.init(Coins(jnp.zeros(3)), buffer),
        step=lambda trainer, key, data, state: trainer.update(key, state, data),
        learned=lambda state: state.energy,
        others=[trainer(1.0)],
        cost=6,
    )


GROUPS = {"chains": [name for name in ROWS if name not in UNCACHED], "replicas": list(UNCACHED)}
KEYS = {"vmap over keys is a loop", "keys are used once"}


TYPES |= {
    f"test_all_of_them_together_keep_what_one_keeps[{group}]": {type(ROWS[name]) for name in names}
    for group, names in GROUPS.items()
}


def together(group, change=lambda kernel: kernel):
    return Together({name: change(ROWS[name]) for name in GROUPS[group]})


@pytest.mark.parametrize("group", GROUPS)
def test_all_of_them_together_keep_what_one_keeps(group):
    """All rows in the same programs, the quick twin of ``test_contract``, which sees to their keys and options, too."""
    names = GROUPS[group]
    skip = KEYS | ({"caches are fresh"} if group == "replicas" else set())
    more = {
        "cost": costs({name: COSTS.get(name, 1) for name in names}),
        "unused": (*LIMITS, *UNUSED["parallel-tempering"]),
    }
    check_sampler(together(group), dict.fromkeys(names, SPINS), others=[together(group, _hotter)], skip=skip, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROWS if name not in DRIVEN])
def test_the_driver_changes_no_sample(name):
    kernel = ROWS[name]
    skip, unused = UNCACHED.get(name, ()), UNUSED.get(name, ())
    others = {*check_sampler(kernel, SPINS, skip=skip, unused=unused), *skip} - {"keys are used once"}
    assert len(check_sampler(kernel, SPINS, driver=run, skip=others)) == 2


def test_replicas_cache_what_their_positions_give():
    """And every second step reports with which probability the two were exchanged, by what they then were."""
    kernel = ROWS["parallel-tempering"]
    step = eqx.filter_jit(kernel.step)
    state = eqx.filter_jit(kernel.init)(SPINS)
    rates = []
    for index in range(20):
        state, info = step(jax.random.key(index), state)
        cold, hot = np.asarray(state.replicas.logdensity)[:: -1 if info.swapped[0] else 1]
        rates.append(float(np.exp(min(0.0, 0.5 * (hot - cold)))) if index % 2 == 0 else 0.0)
        np.testing.assert_allclose(info.swap_rate, rates[-1:], rtol=1e-4)
        assert not info.swapped[0] or rates[-1] > 0
    assert 1.0 in rates
    assert any(0 < rate < 1 for rate in rates)
    fresh = eqx.filter_jit(lambda position: jax.vmap(kernel.kernel.init)(position))(state.replicas.position)
    np.testing.assert_allclose(state.replicas.differences, fresh.differences, atol=1e-4)
    np.testing.assert_allclose(state.replicas.logdensity, fresh.logdensity, atol=1e-4)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "gwg")) for name in ROWS])
def test_blackjax_runs_it(name):
    """BlackJAX's own driver calls init with a key."""
    state, (_, infos) = run_inference_algorithm(jax.random.key(0), ROWS[name], 10, initial_position=SPINS)
    assert state.position.shape == (4, 4)
    assert (np.asarray(infos.cost) >= 1).all()


@pytest.mark.slow
def test_adaptation_freezes_a_length_that_accepts_as_wanted():
    kernel = PathAuxiliary(IsingLattice(6, 0.1), Binary(), path_length=2.0, max_length=30)
    start = IsingLattice(6).start(jax.random.key(0))
    frozen, state = jax.jit(lambda key: kernel.adapt(key, kernel.init(start), 600))(jax.random.key(1))
    assert 1.0 < float(frozen.path_length) <= 30.0
    result = run(jax.random.key(2), frozen, state.position[None], 400)
    assert 0.574 - 0.15 < result.acceptance_rate[0] < 0.574 + 0.15
