"""What is wrong is said at once, in words that help."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

from laureate._core import Status
from laureate.problems.energies import IsingLattice
from laureate.sampling import (
    Binary,
    BlockGibbs,
    Categorical,
    DiscreteLangevin,
    Gibbs,
    GibbsWithGradients,
    HammingBall,
    IncrementalGibbsWithGradients,
    LocallyInformed,
    Ordinal,
    ParallelTempering,
    PathAuxiliary,
    hamming_mmd,
    mixing,
    run,
)


def total(x):
    return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x))


GWG = GibbsWithGradients(total, Binary())


def test_energy_that_does_not_take_floats():
    table = jnp.arange(4.0)
    kernel = GibbsWithGradients(lambda x: jnp.sum(table[x]), Binary())
    with pytest.raises(TypeError, match=r"must accept relaxed float input of shape float32\[3\]"):
        kernel.init(np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("domain", "position", "words"),
    [
        (Binary(), np.array([0, 2]), r"position must hold values of Binary\(\).*got \[2\]\.$"),
        (Binary(), np.array([1, -1]), r"got \[-1\]\. Spins of ±1 become such codes by \(s \+ 1\) // 2\.$"),
        (Categorical(3), np.array([0, 3]), r"values of Categorical\(num_categories=3\).*got \[3\]"),
        (Categorical(3), np.array([0, -2]), r"values of Categorical\(num_categories=3\).*got \[-2\]"),
        (Categorical(3), np.eye(3), r"integer or boolean codes.*got float.*pass rows\.argmax\(-1\)"),
        (Ordinal(0, 4), np.array([-1]), r"got \[-1\]"),
        ({"a": Binary()}, {"b": np.zeros(2, bool)}, r"leaves of domain, \[\"\['a'\]\"\]; got \[\"\['b'\]\"\]"),
        ({"a": 3}, {"a": np.zeros(2, bool)}, "leaves Binary, Categorical or Ordinal; got 3"),
        (Binary(), np.zeros(0, bool), "at least one site"),
    ],
    ids=["two", "spins", "code", "below", "one-hot", "ordinal", "tree", "leaf", "empty"],
)
def test_position_outside_its_domain(domain, position, words):
    with pytest.raises(ValueError, match=words):
        GibbsWithGradients(total, domain).init(position)


def test_position_outside_its_domain_under_jit_is_an_error_value():
    error, _ = checkify.checkify(jax.jit(GWG.init))(jnp.array([0, 2]))
    with pytest.raises(checkify.JaxRuntimeError, match="must hold values of"):
        error.throw()
    error, _ = checkify.checkify(jax.jit(GWG.init))(jnp.array([0, 1]))
    error.throw()


def test_log_density_that_is_not_a_scalar():
    with pytest.raises(TypeError, match=r"expected scalar, got shape \(3,\); vmap the kernel over chains"):
        GibbsWithGradients(lambda x: x, Binary()).init(np.zeros(3, bool))
    with pytest.raises(TypeError, match="must return a float; got int32"):
        GibbsWithGradients(lambda x: jnp.sum(x > 0), Binary()).init(np.zeros(3, bool))


@pytest.mark.parametrize("value", [-jnp.inf, jnp.nan])
@pytest.mark.parametrize("kind", [GibbsWithGradients, Gibbs, DiscreteLangevin])
def test_start_without_probability(kind, value):
    kernel = kind(lambda x: jnp.where(x[0] > 0, 0.0, value) + jnp.sum(x), Binary())
    with pytest.raises(ValueError, match="initial state has zero probability"):
        kernel.init(np.zeros(3, bool))
    with pytest.raises(ValueError, match=r"zero probability in chains \[1\]"):
        run(jax.random.key(0), kernel, np.array([[1, 0, 0], [0, 0, 0]], bool), 10)


def test_gradient_that_says_nothing():
    with pytest.warns(UserWarning, match="gradient is zero: proposal is uniform"):
        GibbsWithGradients(lambda x: jnp.sum(jnp.round(x)), Binary()).init(np.zeros(3, bool))


def test_nan_is_rejected_and_counted():
    kernel = GibbsWithGradients(lambda x: jnp.where(x[0] > 0, jnp.nan, 1.0) * (1 + jnp.sum(x)), Binary())
    with pytest.warns(UserWarning, match="steps met NaN, as log density or ratio, and did not go there"):
        result = run(jax.random.key(0), kernel, np.zeros((2, 3), bool), 200)
    assert result.num_nan.min() > 0
    assert not result.samples[..., 0].any()


class Hole(eqx.Module):
    """A slope, but for positions with x_0 = 1."""

    there: jax.Array

    def __call__(self, x):
        return jnp.where(x[0] > 0, self.there, jnp.sum(0.3 * x))


def test_a_step_that_meets_nan_says_so_and_stays_out_of_it():
    """Who weighs says it where a value that was weighed is NaN, at one site of four; who proposes, where that is."""
    count = 400

    @jax.jit
    def steps(there):
        keys = jax.random.split(jax.random.key(0), count)
        kernels = [kind(Hole(there), Binary()) for kind in (Gibbs, GibbsWithGradients)]
        return [jax.vmap(lambda key, k=k: k.step(key, k.init(jnp.zeros(4, bool))))(keys) for k in kernels]

    found = jax.device_get(steps(jnp.nan))
    for state, info in found:
        assert not state.position[:, 0].any()
        assert np.isfinite(state.logdensity).all()
        assert np.isin(info.status, (Status.OK, Status.DIVERGED)).all()
    weighed, proposed = ((info.status == Status.DIVERGED, info) for _, info in found)
    assert abs(weighed[0].mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / count)
    np.testing.assert_array_equal(proposed[0], proposed[1].proposal[:, 0])
    assert 0 < proposed[0].sum() < count
    assert not proposed[1].acceptance_rate[proposed[0]].any()
    for state, info in jax.device_get(steps(2.0)):
        assert (info.status == Status.OK).all()
        assert state.position[:, 0].any()


def test_what_is_impossible_or_forbidden_is_no_number_that_is_missing():
    """Infinite temperature makes all alike but what has no probability; NaN where the masks forbid to go is not met."""
    keys = jax.random.split(jax.random.key(0), 200)
    forbidden = np.array([[True, True, False], [True] * 3])
    ball, weighing = {"inverse_temperature": 0.0, "block_size": 2}, ((Gibbs, {}), (BlockGibbs, {"block_size": 2}))

    def steps(kernel, start):
        return jax.vmap(lambda key: kernel.step(key, kernel.init(start)))(keys)

    @jax.jit
    def both():
        hole, rows = Hole(jnp.asarray(-jnp.inf)), lambda x: jnp.where(x[0, 2] > 0, jnp.nan, 0.3 * x[1, 2])
        hot = Gibbs(hole, Binary(), inverse_temperature=0.0), HammingBall(hole, Binary(), **ball)
        masked = [kind(rows, Categorical(3), category_mask=forbidden, **more) for kind, more in weighing]
        starts = jnp.zeros(3, bool), jnp.zeros(2, int)
        return [[steps(kernel, start) for kernel in some] for some, start in zip((hot, masked), starts, strict=True)]

    hot, masked = jax.device_get(both())
    for state, info in hot:
        assert (info.status == Status.OK).all()
        assert not state.position[:, 0].any()
        assert state.position[:, 1:].any(0).all()  # no site stays where it is for good
    for state, info in masked:
        assert (info.status == Status.OK).all()
        assert set(state.position[:, 0]) == {0, 1}
        assert set(state.position[:, 1]) == {0, 1, 2}


def test_masks_that_leave_nothing():
    with pytest.raises(ValueError, match="must leave a site free; got none: no move possible"):
        GibbsWithGradients(total, Binary(), site_mask=np.zeros(3, bool)).init(np.zeros(3, bool))
    with pytest.raises(ValueError, match=r"site_mask must have shape \(3,\); got \(2,\)"):
        GibbsWithGradients(total, Binary(), site_mask=np.ones(2, bool)).init(np.zeros(3, bool))
    mask = np.array([[0, 1, 1]], bool)
    with pytest.raises(ValueError, match="and of category_mask"):
        GibbsWithGradients(total, Categorical(3), category_mask=mask).init(np.zeros(1, int))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Categorical(1), r"num_categories must be >= 2 \(no move possible\); got 1"),
        (lambda: Categorical(np.array([3, 4])), "split it into leaves or use category_mask"),  # type: ignore[arg-type]
        (lambda: Ordinal(3, 3), r"high must be > low = 3"),
        (lambda: Ordinal(0, 3, window=4), r"window must be >= 1 and <= high - low = 3; got 4"),
        (lambda: GibbsWithGradients(total, Binary(), num_flips=0), "num_flips must be >= 1; got 0"),
        (lambda: GibbsWithGradients(total, Binary(), radius=0), "radius must be >= 1; got 0"),
        (lambda: GibbsWithGradients(total, Binary(), radius=2, num_flips=2), "num_flips must be 1 where radius > 1"),
        (lambda: GibbsWithGradients(total, Binary(), lazy=1.0), r"lazy must be in \[0, 1\); got 1.0"),
        (lambda: GibbsWithGradients(total, Binary(), inverse_temperature=-1.0), "inverse_temperature must be >= 0"),
        (lambda: GibbsWithGradients(total, Binary(), balancing="exp"), "'sqrt', 'barker', 'min', 'max' or a function"),
        (lambda: Gibbs(total, Binary(), scan="sorted"), "scan must be 'random' or 'systematic'"),  # type: ignore[arg-type]
        (lambda: BlockGibbs(total, Binary(), block_size=0), "block_size must be >= 1; got 0"),
        (lambda: HammingBall(total, Binary(), block_size=2, radius=3), r"radius must be in 1\.\.block_size = 2; got 3"),
        (lambda: DiscreteLangevin(total, Binary(), step_size=0.0), "step_size must be > 0; got 0.0"),
        (lambda: DiscreteLangevin(total, Binary(), step_size=np.array([0.2, -0.1])), "step_size must be > 0; got"),
        (lambda: PathAuxiliary(total, Binary(), path_length=0.5), r"path_length must be in \[1, max_length = 16\]"),
        (lambda: PathAuxiliary(total, Binary(), max_length=0), "max_length must be >= 1; got 0"),
        (lambda: IncrementalGibbsWithGradients(total, Binary()), "energy must be a LocalEnergy"),
        (lambda: ParallelTempering(GWG, jnp.array([0.1, 1.0])), "at least two, falling"),
    ],
)
def test_settings(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (GibbsWithGradients(total, Binary(), num_flips=6), "num_flips must be <= the number of sites, 5; got 6"),
        (GibbsWithGradients(total, Binary(), radius=3, max_neighbours=10), "has 25 neighbours here"),
        (
            LocallyInformed(total, Binary(), radius=3, max_neighbours=10),
            "^LocallyInformed.radius must be one with <= 10",
        ),
        (BlockGibbs(total, Binary(), block_size=6), "block_size must be <= the number of sites, 5; got 6"),
        (BlockGibbs(total, Binary(), block_size=5, max_configurations=9), "one with <= 9 configurations"),
        (HammingBall(total, Binary()), "block_size must be <= the number of sites, 5; got 10"),
        (PathAuxiliary(total, Binary(), path_length=6.0), "path_length must be <= the number of sites, 5"),
    ],
)
def test_settings_that_only_a_position_shows_to_be_wrong(kernel, words):
    with pytest.raises(ValueError, match=words):
        kernel.init(np.zeros(5, bool))


def test_incremental_kernel_checks_as_the_plain_one():
    make = partial(IncrementalGibbsWithGradients, IsingLattice(3, 0.1), Binary())
    spins = np.zeros((3, 3), bool)
    with pytest.raises(ValueError, match=r"values of Binary\(\).*got \[2\]"):
        make().init(np.full((3, 3), 2))
    with pytest.raises(ValueError, match=r"zero probability: its log density is nan"):
        IncrementalGibbsWithGradients(IsingLattice(3, jnp.nan), Binary()).init(spins)
    with pytest.raises(ValueError, match="must leave a site free; got none: no move possible"):
        make(site_mask=np.zeros((3, 3), bool)).init(spins)
    with pytest.raises(ValueError, match=r"site_mask must have shape \(3, 3\); got \(2,\)"):
        make(site_mask=np.zeros(2, bool)).init(spins)
    with pytest.raises(ValueError, match=r"got \[2\]"):
        run(jax.random.key(0), make(), np.stack([np.zeros((3, 3), int), np.full((3, 3), 2)]), 10)


def test_drivers_and_diagnostics():
    with pytest.raises(ValueError, match="num_steps must be >= 1 and a multiple of thin = 3; got 10"):
        run(jax.random.key(0), GWG, np.zeros((2, 3), bool), 10, thin=3)
    with pytest.raises(ValueError, match="either position or state; got neither"):
        run(jax.random.key(0), GWG)
    with pytest.raises(ValueError, match=r"got \[2\]"):
        run(jax.random.key(0), GWG, np.array([[0, 1], [0, 2]]), 10)
    with pytest.raises(ValueError, match=r"at least 2 chains of 4 steps; got shape \(1, 9\)"):
        mixing(jnp.zeros((1, 9)))
    with pytest.raises(ValueError, match="as many variables; got 2 and 3"):
        hamming_mmd(jnp.zeros((4, 2)), jnp.zeros((4, 3)))


def test_a_kernel_whose_state_depends_on_its_temperature_is_refused():
    from laureate.sampling import annealed_importance_sampling as annealing

    kernel = IncrementalGibbsWithGradients(IsingLattice(side=3), Binary())
    refused = pytest.raises(ValueError, match=r"kernel must be a DiscreteKernel.*LocallyInformed")
    with refused:
        ParallelTempering(kernel, jnp.array([1.0, 0.5]))
    start, betas = lambda key: jnp.zeros((3, 3), bool), jnp.array([0.0, 1.0])
    with refused:
        annealing(jax.random.key(0), kernel, lambda x: 0.0 * jnp.sum(x), start, betas)
