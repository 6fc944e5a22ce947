"""The incremental kernel is the plain one: same matrix by enumeration, same tree whether kept or built anew."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems.energies import IsingLattice, PottsLattice
from laureate.sampling import Binary, Categorical, GibbsWithGradients, IncrementalGibbsWithGradients
from laureate.sampling.enumeration import (
    all_positions,
    detailed_balance_error,
    exact_distribution,
    transition_matrix,
)

QUICK = {"xla_backend_optimization_level": 0}
matrix_of = jax.jit(transition_matrix, compiler_options=QUICK)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "arity"),
    [
        pytest.param({}, 16, marks=pytest.mark.slow),
        ({"balancing": "barker", "lazy": 0.2, "inverse_temperature": 0.5}, 2),
        pytest.param({}, 2, marks=pytest.mark.slow),
    ],
    ids=["wide", "options-narrow", "narrow"],
)
def test_same_law_as_the_plain_kernel_on_ising(options, arity):
    with jax.enable_x64(True):
        lattice = IsingLattice(3, 0.3, 0.2)
        position = jnp.zeros((3, 3), bool)
        plain = GibbsWithGradients(lattice, Binary(), **options)
        expected = matrix_of(plain, position)
        matrix = matrix_of(IncrementalGibbsWithGradients(lattice, Binary(), arity=arity, **options), position)
        np.testing.assert_allclose(matrix, expected, atol=1e-13)
        pi = exact_distribution(plain, all_positions(Binary(), position))
        assert float(detailed_balance_error(matrix, pi)) < 1e-12


class Path(PottsLattice):
    """Four Potts sites in a row, so that the space is small; the ends repeat themselves as neighbours."""

    def __call__(self, x):
        return self.coupling * jnp.sum(x[1:] * x[:-1])

    def neighbours(self, site):
        return jnp.stack([jnp.where(site > 0, site - 1, site), jnp.where(site < 3, site + 1, site)])

    def site_differences(self, read, site):
        kinds = jnp.arange(self.num_categories)
        near = self.neighbours(site)
        agree = jnp.sum((read(near)[:, None] == kinds[None, :]) & (near != site)[:, None], axis=0).astype(float)
        return jnp.where(kinds == read(site), -jnp.inf, self.coupling * (agree - agree[read(site)]))


def test_same_law_as_the_plain_kernel_on_potts():
    with jax.enable_x64(True):
        chain = Path(4, 3, 0.8)
        position = jnp.zeros(4, jnp.int32)
        expected = matrix_of(GibbsWithGradients(chain, Categorical(3)), position)
        matrix = matrix_of(IncrementalGibbsWithGradients(chain, Categorical(3), arity=2), position)
        np.testing.assert_allclose(matrix, expected, atol=1e-13)


def test_a_step_of_categories_has_the_law_that_is_written():
    """A site and its new category in proportion to √exp d, then Metropolis's rule, in NumPy; 4000 steps from one."""
    start, draws = (0, 1, 1, 2), 4000
    f = lambda x: 0.8 * sum(one == two for one, two in itertools.pairwise(x))  # noqa: E731

    def proposals(x):
        ends = [(*x[:i], v, *x[i + 1 :]) for i in range(4) for v in range(3) if v != x[i]]
        weights = np.exp([(f(end) - f(x)) / 2 for end in ends])
        return dict(zip(ends, weights / weights.sum(), strict=True))

    law = {end: min(q, np.exp(f(end) - f(start)) * proposals(end)[start]) for end, q in proposals(start).items()}
    law[start] = 1 - sum(law.values())
    kernel = IncrementalGibbsWithGradients(Path(4, 3, 0.8), Categorical(3), arity=2)

    @jax.jit
    def steps(keys):
        state = kernel.init(jnp.array(start))
        return jax.vmap(lambda key: kernel.step(key, state)[0].position)(keys)

    found = [tuple(row) for row in np.asarray(steps(jax.random.split(jax.random.key(0), draws))).tolist()]
    assert set(found) <= set(law)
    expected = draws * np.array([*law.values()])
    observed = np.array([found.count(end) for end in law])
    chi = ((observed - expected) ** 2 / expected).sum()
    assert chi < len(law) + 6 * np.sqrt(2 * len(law))


def test_masks_are_those_of_the_plain_kernel():
    masks = {
        "site_mask": np.array([True, False, True, True]),
        "category_mask": np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1], [1, 1, 1]], bool),
    }
    with jax.enable_x64(True):
        chain = Path(4, 3, 0.8)
        position = jnp.zeros(4, jnp.int32)
        expected = np.asarray(matrix_of(GibbsWithGradients(chain, Categorical(3), **masks), position))
        matrix = np.asarray(matrix_of(IncrementalGibbsWithGradients(chain, Categorical(3), arity=2, **masks), position))
        # From a position that the masks forbid, nothing is promised.
        inside = np.asarray(all_positions(Categorical(3), position))[:, 2] != 1
        np.testing.assert_allclose(matrix[inside], expected[inside], atol=1e-13)


@pytest.mark.parametrize(
    "lattice",
    [
        pytest.param(IsingLattice(7, 0.2), id="ising", marks=pytest.mark.slow),
        pytest.param(PottsLattice(5, 3, 0.7), id="potts"),
    ],
)
def test_the_tree_that_is_kept_is_the_tree_one_would_build(lattice):
    domain = Binary() if isinstance(lattice, IsingLattice) else Categorical(3)
    kernel = IncrementalGibbsWithGradients(lattice, domain, arity=4)

    def advance(state, key):
        state, info = kernel.step(key, state)
        fresh = kernel.init(state.position)
        # Padding is -inf in both.
        apart = [
            jnp.max(jnp.where(a == b, 0.0, jnp.abs(a - b))) for a, b in zip(state.levels, fresh.levels, strict=True)
        ]
        return state, (info.is_accepted, jnp.stack(apart), state.logdensity - fresh.logdensity)

    def walk(keys):
        state = kernel.init(lattice.start(keys[0]))
        return jax.lax.scan(advance, state, jax.random.split(keys[1], 500))[1]

    keys = [jax.random.key(0), jax.random.key(1)]
    accepted, apart, drift = jax.jit(walk, compiler_options=QUICK)(keys)
    # Compared at every step: what a rejected proposal leaves behind, its neighbours' next moves repair.
    assert 0 < int(accepted.sum()) < 500
    assert float(apart.max()) < 1e-4
    assert float(jnp.abs(drift).max()) < 2e-3


@pytest.mark.slow
def test_step_draws_what_the_matrix_says():
    lattice = IsingLattice(3, 0.25, 0.3)
    kernel = IncrementalGibbsWithGradients(lattice, Binary(), arity=2)
    position = all_positions(Binary(), jnp.zeros((3, 3), bool))[37]
    state = kernel.init(position)
    draws = 20_000
    sites = jax.jit(jax.vmap(lambda k: jnp.where((i := kernel.step(k, state)[1]).is_accepted, i.site, 9)))
    observed = np.bincount(np.asarray(sites(jax.random.split(jax.random.key(0), draws))), minlength=10)
    row = np.asarray(matrix_of(kernel, position))[37]
    flipped = [37 ^ (1 << (8 - site)) for site in range(9)]
    expected = draws * np.append(row[flipped], row[37])
    cells = expected > 5
    chi = ((observed - expected)[cells] ** 2 / expected[cells]).sum()
    assert chi < cells.sum() + 6 * np.sqrt(2 * cells.sum())
