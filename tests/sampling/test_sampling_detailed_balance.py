"""Detailed balance of every kernel and option, by enumeration in double precision."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.sampling import (
    Binary,
    BlockGibbs,
    Categorical,
    DiscreteLangevin,
    Gibbs,
    GibbsWithGradients,
    HammingBall,
    LocallyInformed,
    Ordinal,
    PathAuxiliary,
)
from laureate.sampling._blocks import draw_block
from laureate.sampling.balancing import BALANCING, log_balanced
from laureate.sampling.enumeration import (
    _blocks,
    all_positions,
    detailed_balance_error,
    exact_distribution,
    spectral_gap,
    transition_matrix,
)
from laureate.sampling.gibbs import GibbsState


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def numbers(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def rugged(x):
    """Neither quadratic nor multilinear: the gradient is only an estimate, and a wrong correction shows."""
    size = x.size
    flat = x.reshape(-1)
    pairs, bias, hidden = numbers(0, size, size), numbers(1, size), numbers(2, size, 3)
    return bias @ flat + 0.5 * flat @ pairs @ flat + jnp.sum(jnp.tanh(flat @ hidden) ** 3) + jnp.sin(3 * flat).sum()


def mixed(tree):
    return rugged(jnp.concatenate([tree["on"], tree["kind"].reshape(-1), tree["level"]]))


BINARY = (rugged, Binary(), np.zeros(5, bool))
TERNARY = (rugged, Categorical(3), np.zeros(3, np.int32))
LEVELS = (rugged, Ordinal(-1, 2), np.zeros(3, np.int32))
WIDE = (rugged, Ordinal(-1, 2, window=2), np.zeros(3, np.int32))
MIXED = (
    mixed,
    {"on": Binary(), "kind": Categorical(3), "level": Ordinal(1, 3)},
    {"on": np.zeros(2, bool), "kind": np.zeros(1, np.int32), "level": np.ones(1, np.int32)},
)
TARGETS = {"binary": BINARY, "ternary": TERNARY, "levels": LEVELS, "wide": WIDE, "mixed": MIXED}

KERNELS = {
    "gwg": (GibbsWithGradients, {}),
    "gwg-barker": (GibbsWithGradients, {"balancing": "barker"}),
    "gwg-min": (GibbsWithGradients, {"balancing": "min"}),
    "gwg-max": (GibbsWithGradients, {"balancing": "max"}),
    "gwg-own-balancing": (GibbsWithGradients, {"balancing": lambda log_t: log_t / 4}),
    "gwg-2": (GibbsWithGradients, {"num_flips": 2}),
    "gwg-2-barker": (GibbsWithGradients, {"num_flips": 2, "balancing": "barker"}),
    "gwg-radius-2": (GibbsWithGradients, {"radius": 2}),
    "gwg-radius-2-max": (GibbsWithGradients, {"radius": 2, "balancing": "max"}),
    "gwg-lazy": (GibbsWithGradients, {"lazy": 0.3}),
    "gwg-tempered": (GibbsWithGradients, {"inverse_temperature": 0.4}),
    "gwg-2-lazy-tempered": (GibbsWithGradients, {"num_flips": 2, "lazy": 0.1, "inverse_temperature": 0.4}),
    "exact": (LocallyInformed, {}),
    "exact-2": (LocallyInformed, {"num_flips": 2}),
    "exact-radius-2": (LocallyInformed, {"radius": 2}),
    "gibbs": (Gibbs, {}),
    "gibbs-tempered": (Gibbs, {"inverse_temperature": 0.4}),
    "block": (BlockGibbs, {"block_size": 2}),
    "ball": (HammingBall, {"block_size": 3, "radius": 1}),
    "ball-2": (HammingBall, {"block_size": 3, "radius": 2, "inverse_temperature": 0.4}),
    "dmala": (DiscreteLangevin, {"step_size": 0.3}),
    "dmala-tempered": (DiscreteLangevin, {"step_size": 1.0, "inverse_temperature": 0.4}),
    "path-1": (PathAuxiliary, {"path_length": 1.0}),
    "path": (PathAuxiliary, {"path_length": 2.3}),
    "path-barker": (PathAuxiliary, {"path_length": 1.6, "balancing": "barker", "inverse_temperature": 0.4}),
}


# Combinations of options whose single options are tested anyway; and the other balancing functions, which Metropolis's
# rule corrects whatever they are: what they are, test_balancing_functions_by_hand says.
COMBINED = {"gwg-own-balancing", "gwg-2-barker", "gwg-radius-2-max", "exact-2", "exact-radius-2", "path-barker"}
COMBINED |= {"gwg-barker", "gwg-min", "gwg-max", "ball-2"}

# Numbers are leaves: the tempered and lazy variants of a kernel compile nothing new.
QUICK = {"xla_backend_optimization_level": 0}  # compiling is all the time these tests take


@functools.partial(jax.jit, compiler_options=QUICK)
def matrix_and_target(kernel, position):
    """One program for both; outside jit each operation would be one."""
    target = exact_distribution(kernel, all_positions(kernel.domain, position))
    return transition_matrix(kernel, position), target


def matrix_of(kernel, position):
    return matrix_and_target(kernel, position)[0]


THOROUGH = [pytest.param(name, marks=[] if name == "mixed" else pytest.mark.slow) for name in TARGETS]


def error_of(kernel, position):
    matrix, pi = map(np.asarray, matrix_and_target(kernel, position))
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert matrix.min() >= -1e-15
    # Not by standing still: from every state something else is reached.
    assert np.diag(matrix).max() < 1.0
    return float(detailed_balance_error(matrix, pi))


def test_balancing_functions_by_hand():
    """g(t) = √t, t/(1 + t), min(1, t), max(1, t), each with g(t) = t g(1/t); what cannot be proposed stays so."""
    log_t = np.array([-3.0, -0.5, 0.0, 0.2, 4.0])
    t = np.exp(log_t)
    expected = {"sqrt": np.sqrt(t), "barker": t / (1 + t), "min": np.minimum(1, t), "max": np.maximum(1, t)}
    for name, g in expected.items():
        found = np.asarray(log_balanced(name, jnp.asarray([*log_t / 0.4, -jnp.inf]), 0.4))
        np.testing.assert_allclose(found[:-1], np.log(g), atol=1e-12)
        assert found[-1] == -np.inf
        np.testing.assert_allclose(np.log(g), log_t + log_balanced(name, -log_t, 1.0), atol=1e-12)
    assert set(expected) == set(BALANCING)


@pytest.mark.parametrize("target", THOROUGH)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in COMBINED else []) for name in KERNELS]
)
def test_detailed_balance(name, target):
    kind, options = KERNELS[name]
    logdensity, domain, position = TARGETS[target]
    assert error_of(kind(logdensity, domain, **options), position) < 1e-12


@pytest.mark.parametrize(
    "name",
    [
        *("gwg", "gwg-max", "gibbs", "path"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("gwg-2", "gwg-radius-2", "ball", "exact", "block", "dmala")
        ),
    ],
)
def test_detailed_balance_with_masks_and_masked_sites_never_change(name):
    kind, options = KERNELS[name]
    options = dict(options, **({"block_size": 2} if name == "ball" else {}))
    logdensity, domain, position = TERNARY
    kernel = kind(
        logdensity,
        domain,
        site_mask=np.array([True, False, True]),
        category_mask=np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]], bool),
        **options,
    )
    matrix, pi = map(np.asarray, matrix_and_target(kernel, position))
    positions = np.asarray(all_positions(domain, position))
    inside = positions[:, 2] != 1
    pi = pi * inside
    flow = (pi / pi.sum())[:, None] * matrix
    assert np.abs(flow - flow.T).max() < 1e-12
    changed = positions[:, None, 1] != positions[None, :, 1]
    assert matrix[changed].max() < 1e-15
    assert matrix[inside][:, ~inside].max() < 1e-15


def test_enumerated_blocks_are_those_that_are_drawn():
    """Of sites that may not move no block is made, in the enumeration as in the draw; the others are alike."""
    kernel = BlockGibbs(rugged, Binary(), block_size=2, site_mask=np.array([True, False, True, True]))
    layout, uniforms = kernel.layout(np.zeros(4, bool)), np.random.default_rng(5).random((3000, 4))

    @jax.jit
    def run(uniforms):
        drawn = jax.vmap(lambda u: draw_block(u, layout.free_sites(kernel.site_mask), 2))(uniforms)
        return *_blocks(layout, kernel, 2), jnp.sort(drawn, axis=1)

    blocks, weights, drawn = map(np.asarray, run(uniforms))
    shares = np.array([np.mean(np.all(drawn == block, axis=1)) for block in blocks])
    np.testing.assert_allclose(weights, [0, 1 / 3, 1 / 3, 0, 0, 1 / 3], atol=1e-12)
    assert shares.sum() == pytest.approx(1)
    assert shares[weights == 0].sum() == 0
    assert np.abs(shares - weights).max() < 5 * np.sqrt(2 / 9 / 3000)


def test_a_block_larger_than_what_is_free_is_what_is_free():
    """With one free site of three every block is that site: one step draws from its conditional."""
    target = np.random.default_rng(0).normal(size=8)

    def logdensity(x):
        return jnp.asarray(target)[(x @ jnp.array([4.0, 2.0, 1.0])).astype(int)]

    def matrices(mask):
        kernels = BlockGibbs, HammingBall
        return [
            transition_matrix(k(logdensity, Binary(), block_size=2, site_mask=mask), jnp.zeros(3, bool))
            for k in kernels
        ]

    found = jax.jit(matrices)(np.array([False, True, False]))
    expected, states = np.zeros((8, 8)), np.arange(8)
    for end in (states, states ^ 2):
        expected[states, end] = np.exp(target[end]) / (np.exp(target) + np.exp(target[states ^ 2]))
    np.testing.assert_allclose(found, [expected, expected], rtol=1e-12, atol=1e-12)


def test_a_gibbs_step_draws_from_the_conditional():
    """One of two sites, and there one of three values: half of each conditional, by hand."""
    table, draws = np.random.default_rng(6).normal(size=(3, 3)), 4000
    kernel = Gibbs(lambda rows: rows[0] @ table @ rows[1], Categorical(3), inverse_temperature=0.7)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def ends(keys):
        state = kernel.init(jnp.array([0, 2]))
        return jax.vmap(lambda key: kernel.step(key, state)[0].position)(keys)

    found = np.asarray(ends(jax.random.split(jax.random.key(0), draws)))
    expected = np.zeros((3, 3))
    for site, line in ((np.s_[:, 2], table[:, 2]), (np.s_[0, :], table[0])):
        expected[site] += draws / 2 * np.exp(0.7 * line) / np.exp(0.7 * line).sum()
    observed = np.bincount(3 * found[:, 0] + found[:, 1], minlength=9).reshape(3, 3)
    assert observed[expected == 0].sum() == 0
    # Five cells: chi-square with four degrees of freedom; 6 standard deviations above its mean.
    cells = expected > 0
    assert ((observed - expected)[cells] ** 2 / expected[cells]).sum() < 4 + 6 * np.sqrt(8)


@pytest.mark.parametrize("mask", [None, np.array([False, True, True, False, True])], ids=["all", "masked"])
def test_gibbs_visits_every_free_site_and_no_other(mask):
    """A random scan by its random word, a systematic one by the number of the step: each free site as often as any."""
    free, numbers = np.arange(5) if mask is None else np.flatnonzero(mask), np.arange(30, dtype=np.uint32)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def picked(numbers):
        def site(scan, word, steps):
            kernel = Gibbs(rugged, Binary(), scan=scan, site_mask=mask)
            return kernel.pick(word, GibbsState(jnp.zeros(5, bool), jnp.zeros(()), steps))

        of_words = jax.vmap(lambda n: site("random", n, jnp.int32(0)))(numbers)
        return of_words, jax.vmap(lambda n: site("systematic", jnp.uint32(0), n.astype(jnp.int32)))(numbers)

    for found in picked(numbers):
        np.testing.assert_array_equal(found, np.resize(free, 30))


def test_systematic_scan_leaves_the_target_invariant():
    logdensity, domain, position = MIXED
    kernel = Gibbs(logdensity, domain, scan="systematic")
    matrix, pi = map(np.asarray, matrix_and_target(kernel, position))
    np.testing.assert_allclose(pi @ matrix, pi, atol=1e-14)


def test_unadjusted_langevin_is_biased_and_less_so_with_smaller_steps():
    logdensity, domain, position = BINARY
    worst = []
    for step_size in (0.5, 0.1):
        kernel = DiscreteLangevin(logdensity, domain, step_size=step_size, adjusted=False)
        matrix, pi = map(np.asarray, matrix_and_target(kernel, position))
        stationary = np.linalg.matrix_power(matrix, 4096)[0]
        worst.append(0.5 * np.abs(stationary - pi).sum())
    assert worst[0] > 1e-2
    assert worst[1] < worst[0]


@pytest.mark.parametrize("target", THOROUGH)
@pytest.mark.parametrize(
    "name",
    [
        *("gwg-lazy", "path"),
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("gwg-2", "gwg-radius-2", "gibbs", "block", "ball", "dmala")
        ),
    ],
)
def test_step_draws_what_the_matrix_says(name, target):
    """The enumerated matrix is made from the kernels' parts; the random step must have the same law."""
    kind, options = KERNELS[name]
    logdensity, domain, position = TARGETS[target]
    kernel = kind(logdensity, domain, **options)
    positions = all_positions(domain, position)
    count = len(jax.tree.leaves(positions)[0])
    start = count // 2
    matrix = np.asarray(matrix_of(kernel, position))
    draws = 20_000

    @functools.partial(jax.jit, compiler_options=QUICK)
    def ends(key):
        keys, state = jax.random.split(key, draws), kernel.init(jax.tree.map(lambda leaf: leaf[start], positions))
        moved = jax.vmap(lambda key: kernel.step(key, state)[0].position)(keys)
        flat = jnp.concatenate([leaf.reshape(draws, -1).astype(int) for leaf in jax.tree.leaves(moved)], axis=1)
        every = jnp.concatenate([leaf.reshape(count, -1).astype(int) for leaf in jax.tree.leaves(positions)], axis=1)
        return jnp.argmax(jnp.all(flat[:, None, :] == every[None, :, :], axis=-1), axis=1)

    observed = np.bincount(np.asarray(ends(jax.random.key(0))), minlength=count)
    expected = draws * matrix[start]
    assert observed[expected < 1e-9].sum() == 0
    cells = expected > 5
    # Chi-square with cells - 1 degrees of freedom; 6 standard deviations above its mean.
    chi = ((observed - expected)[cells] ** 2 / expected[cells]).sum()
    assert chi < cells.sum() + 6 * np.sqrt(2 * cells.sum())


@pytest.mark.slow
def test_gaps_are_those_measured_before():
    """The gradient's proposal mixes as well as the exact one where f is multilinear, and better than Gibbs."""
    pairs, bias = numbers(3, 6, 6), numbers(4, 6)
    pairs = jnp.triu(pairs, 1)

    def quadratic(x):
        return bias @ x + x @ pairs @ x

    gaps = {}
    for name, kernel in {
        "gibbs": Gibbs(quadratic, Binary()),
        "gwg": GibbsWithGradients(quadratic, Binary()),
        "exact": LocallyInformed(quadratic, Binary()),
        "cold": GibbsWithGradients(quadratic, Binary(), balancing=lambda log_t: log_t),
    }.items():
        matrix = matrix_of(kernel, np.zeros(6, bool))
        gaps[name] = float(spectral_gap(matrix, exact_distribution(kernel, all_positions(Binary(), np.zeros(6, bool)))))
    assert gaps["gwg"] == pytest.approx(gaps["exact"], abs=1e-12)
    assert gaps["gwg"] > 1.3 * gaps["gibbs"]
    assert gaps["gwg"] > 1.3 * gaps["cold"]
