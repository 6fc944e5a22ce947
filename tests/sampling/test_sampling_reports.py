"""What every kernel reports, whatever its options: rates, costs, statuses; and the ends of what is allowed."""

import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
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
    Slices,
    SteinVariational,
    annealed_importance_sampling,
    fit_slices,
    hamming_mmd,
    ksd,
    max_sliced_ksd,
    mixing,
    random_slices,
    run,
    sliced_ksd,
    stein_test,
)
from laureate.sampling._blocks import PlainState
from laureate.sampling._kernel import decide, draw_uniforms
from laureate.sampling.enumeration import detailed_balance_error, exact_distribution, spectral_gap, transition_matrix
from laureate.sampling.stein_discrepancy import slice_bandwidths

QUICK = {"xla_backend_optimization_level": 0}
DRAWS, SITES = 1000, 4
KEYS = jax.random.split(jax.random.key(0), DRAWS)


class Ring(eqx.Module):
    """f(x) = bias·x + Σ x_i x_{i+1} over a ring, at any site added to by what lies there."""

    bias: jax.Array
    hole: jax.Array

    def __call__(self, x):
        return jnp.where(x[0] > 0, self.hole, 0.0) + self.bias @ x + jnp.sum(x * jnp.roll(x, 1))

    def neighbours(self, site):
        return (site + jnp.array([-1, 1])) % SITES

    def site_differences(self, read, site):
        field = self.bias[site] + read(self.neighbours(site)).sum() + jnp.where(site == 0, self.hole, 0.0)
        return ((1 - 2 * read(site)) * field)[None]


BIAS = jnp.array([0.4, -1.2, 0.9, -0.3])
MASK = np.array([True, False, True, True])
# Every kernel that proposes, and the evaluations that a step makes; of the incremental one, sites: one that is drawn,
# and that and its two neighbours once more.
PROPOSERS = {
    "gwg": (GibbsWithGradients, {"lazy": 0.3}, 1),
    "gwg-2": (GibbsWithGradients, {"num_flips": 2, "lazy": 0.2, "inverse_temperature": 1.7}, 1),
    "radius-2": (GibbsWithGradients, {"radius": 2, "balancing": "barker", "lazy": 0.1}, 1),
    "exact": (LocallyInformed, {"lazy": 0.4, "site_mask": MASK}, SITES + 1),
    "incremental": (IncrementalGibbsWithGradients, {"lazy": 0.35, "inverse_temperature": 1.7, "arity": 2}, 4),
    "dmala": (DiscreteLangevin, {"step_size": 0.7, "inverse_temperature": 1.7}, 1),
    "path": (PathAuxiliary, {"path_length": 2.5, "inverse_temperature": 1.7}, 1),
}
WEIGHERS = {
    "gibbs": (Gibbs, {}, 1),
    "block": (BlockGibbs, {"block_size": 3}, 7),
    "ball": (HammingBall, {"block_size": 3, "radius": 2}, 7),
}


@functools.cache
def stepped(names, hole=0.0):
    """1000 steps of every kernel from one start, as one program."""
    start = jnp.array([0, 1, 1, 0])

    def one(kind, options):
        kernel = kind(Ring(BIAS, jnp.asarray(hole)), Binary(), **options)
        state = kernel.init(start)
        return jax.vmap(lambda key: kernel.step(key, state))(KEYS)

    table = PROPOSERS | WEIGHERS
    program = jax.jit(lambda: {name: one(*table[name][:2]) for name in names}, compiler_options=QUICK)
    return jax.device_get(program())


@pytest.mark.parametrize("name", PROPOSERS)
def test_the_rate_is_the_probability_of_acceptance(name):
    """(1 − lazy) min(1, ratio), by which 1000 steps are accepted, within five standard errors."""
    state, info = stepped(tuple(PROPOSERS | WEIGHERS))[name]
    _, options, cost = PROPOSERS[name]
    rate = (1 - options.get("lazy", 0.0)) * np.exp(np.minimum(info.log_ratio, 0.0))
    np.testing.assert_allclose(info.acceptance_rate, rate, rtol=1e-5)
    rate = rate.astype(float)
    assert 0.2 < rate.mean() < 0.99
    assert abs(np.sum(info.is_accepted - rate)) < 5 * np.sqrt(np.sum(rate * (1 - rate)))
    assert (info.cost == cost).all()
    assert (info.status == Status.OK).all()
    start = np.array([0, 1, 1, 0])
    if name != "incremental":
        np.testing.assert_array_equal(state.position, np.where(info.is_accepted[:, None], info.proposal, start))
    else:
        moved = np.eye(SITES, dtype=int)[info.site] * info.is_accepted[:, None]
        np.testing.assert_array_equal(state.position, start ^ moved)


@pytest.mark.parametrize("name", PROPOSERS | WEIGHERS)
def test_the_log_density_of_a_state_is_its_positions(name):
    state, _ = stepped(tuple(PROPOSERS | WEIGHERS))[name]
    x = state.position.astype(float)
    wanted = x @ np.asarray(BIAS, float) + np.sum(x * np.roll(x, 1, axis=1), axis=1)
    np.testing.assert_allclose(state.logdensity, wanted, atol=1e-5)
    assert len(np.unique(x, axis=0)) > 2


@pytest.mark.parametrize("name", WEIGHERS)
def test_what_is_drawn_from_a_conditional_is_always_taken(name):
    state, info = stepped(tuple(PROPOSERS | WEIGHERS))[name]
    np.testing.assert_array_equal(state.position, info.proposal)
    assert (info.cost == WEIGHERS[name][2]).all()
    assert info.is_accepted.all()
    assert (info.acceptance_rate == 1).all()
    assert (info.log_ratio == 0).all()


def test_whoever_proposes_a_position_without_a_number_says_so_and_stays():
    """Adjusted or not, of one site or of several at once."""
    table = {name: PROPOSERS[name][:2] for name in ("gwg", "gwg-2", "dmala", "path")}
    table["dula"] = DiscreteLangevin, {"step_size": 0.7, "adjusted": False}
    start = jnp.array([0, 1, 1, 0])

    @functools.partial(jax.jit, compiler_options=QUICK)
    def steps():
        found = {}
        for name, (kind, options) in table.items():
            kernel = kind(Ring(BIAS, jnp.asarray(jnp.nan)), Binary(), **options)
            state = kernel.init(start)
            found[name] = jax.vmap(lambda key, k=kernel, s=state: k.step(key, s))(KEYS)
        return found

    for name, (state, info) in jax.device_get(steps()).items():
        there = info.proposal[:, 0] == 1
        assert 0 < there.sum() < DRAWS, name
        np.testing.assert_array_equal(info.status, np.where(there, Status.DIVERGED, Status.OK))
        assert not state.position[:, 0].any()
        assert not info.is_accepted[there].any()
        assert not info.acceptance_rate[there].any()
        assert np.isfinite(state.logdensity).all()
        if name == "dula":
            assert info.is_accepted[~there].all()


MASKED = {
    "gwg-2": (GibbsWithGradients, {"num_flips": 2}),
    "radius-2": (GibbsWithGradients, {"radius": 2}),
    "exact": (LocallyInformed, {}),
    "dmala": (DiscreteLangevin, {"step_size": 2.0}),
    "dula": (DiscreteLangevin, {"step_size": 2.0, "adjusted": False}),
    "block": (BlockGibbs, {"block_size": 2}),
    "ball": (HammingBall, {"block_size": 2, "radius": 2}),
}


def test_no_step_leaves_what_the_masks_allow():
    """Three sites of three values: the second is held, the third has no value 1. Where a block is all that is free, a
    step draws from the conditional law; within five standard errors."""
    table = np.random.default_rng(7).normal(size=(3, 3))
    sites, kinds = np.array([True, False, True]), np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]], bool)
    energy = lambda x: jnp.sum(jnp.asarray(table, x.dtype) * x) + 2 * x[0] @ x[2]  # noqa: E731

    @functools.partial(jax.jit, compiler_options=QUICK)
    def steps():
        found = {}
        for name, (kind, options) in MASKED.items():
            kernel = kind(energy, Categorical(3), site_mask=sites, category_mask=kinds, **options)
            state = kernel.init(jnp.array([0, 1, 2]))
            found[name] = jax.vmap(lambda key, k=kernel, s=state: k.step(key, s))(KEYS)
        return found

    law = {(i, k): np.exp(table[0, i] + table[2, k] + 2 * (i == k)) for i in range(3) for k in (0, 2)}
    total = sum(law.values())
    for name, (state, info) in jax.device_get(steps()).items():
        x = state.position
        assert (x[:, 1] == 1).all(), name
        assert (x[:, 2] != 1).all(), name
        assert (info.proposal[:, 1] == 1).all(), name
        assert (info.proposal[:, 2] != 1).all(), name
        assert (info.status == Status.OK).all(), name
        assert set(np.unique(x[:, 0])) == {0, 1, 2}, name
        assert set(np.unique(x[:, 2])) == {0, 2}, name
        if name in ("block", "ball"):
            for (i, k), weight in law.items():
                share = np.mean((x[:, 0] == i) & (x[:, 2] == k))
                p = weight / total
                assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / DRAWS), (name, i, k)


# --- the law of a step, from the formulas of the docstrings alone ----------------------------------------------------

EVERY = np.array(list(itertools.product([0, 1], repeat=SITES)))  # a position's number has the first site's bit highest
PLACES = 2 ** np.arange(SITES)[::-1]
START = np.array([0, 1, 1, 0])


def energies():
    """f of every position."""
    return EVERY @ np.asarray(BIAS, float) + (EVERY * np.roll(EVERY, 1, axis=1)).sum(1)


def differences(start=START):
    """f(x') − f(x) of the flip of every site; the gradient's are the same, for f is multilinear."""
    f, number = energies(), start @ PLACES
    return np.array([f[number ^ place] - f[number] for place in PLACES])


def shares(log_weights):
    weights = np.exp(log_weights - np.max(log_weights))
    return weights / weights.sum()


def law_of_flips(likely):
    """Of the position, from pairs of a set of sites to flip and its probability."""
    law = np.zeros(2**SITES)
    for sites, probability in likely:
        law[(START @ PLACES) ^ sum(int(PLACES[i]) for i in set(sites))] += probability
    return law


def proposed(kind, options):
    """Pairs of the sites that a proposal flips and its probability."""
    beta, d, sites = options.get("inverse_temperature", 1.0), differences(), range(SITES)
    log_g = {"sqrt": lambda t: t / 2, "barker": lambda t: -np.log1p(np.exp(-t))}[options.get("balancing", "sqrt")]
    if kind is DiscreteLangevin:  # each for itself: stay, or flip by d/2 − 1/2α
        flip = 1 / (1 + np.exp(-(beta * d / 2 - 1 / (2 * options["step_size"]))))
        for up in EVERY:
            yield np.flatnonzero(up), np.prod(np.where(up, flip, 1 - flip))
    elif kind is PathAuxiliary:  # one after another without replacement; two or three, as often
        for length in (2, 3):
            for path in itertools.permutations(sites, length):
                rest, chance = np.exp(log_g(beta * d)), 0.5
                for site in path:
                    chance, rest = chance * rest[site] / rest.sum(), np.where(np.arange(SITES) == site, 0, rest)
                yield path, chance
    elif options.get("radius", 1) == 2:  # sets of one or two sites by the sum of their differences
        sets = [*itertools.combinations(sites, 1), *itertools.combinations(sites, 2)]
        yield from zip(sets, shares([log_g(beta * d[list(one)].sum()) for one in sets]), strict=True)
    else:  # draws with replacement
        free = options.get("site_mask", np.ones(SITES, bool))
        q = shares(np.where(free, log_g(beta * d), -np.inf))
        for draws in itertools.product(sites, repeat=options.get("num_flips", 1)):
            yield draws, np.prod(q[list(draws)])


def within(block, radius):
    """Sets of at most so many sites of a block."""
    return [set(one) for count in range(radius + 1) for one in itertools.combinations(block, count)]


def weighed(options):
    """The same of kernels that draw from a conditional: Gibbs's of a site, a block's, a ball's around another point."""
    f, start, size = energies(), int(START @ PLACES), options.get("block_size", 1)
    blocks = list(itertools.combinations(range(SITES), size))
    number = lambda sites: start ^ sum(int(PLACES[i]) for i in sites)  # noqa: E731
    for block in blocks:
        ball = within(block, options.get("radius", size))
        centres = ball if "radius" in options else [set()]
        for centre in centres:  # as a set of sites, that a pattern flips: two patterns are combined by ^
            ends = [centre ^ pattern for pattern in ball]
            for end, chance in zip(ends, shares([f[number(end)] for end in ends]), strict=True):
                yield end, chance / len(blocks) / len(centres)


@pytest.mark.parametrize("name", PROPOSERS | WEIGHERS)
def test_a_step_has_the_law_that_is_written(name):
    """What is proposed, or drawn from a conditional: Metropolis's rule would hide a proposal that is another.

    Chi-square over positions that are likely enough, six standard deviations above its mean.
    """
    state, info = stepped(tuple(PROPOSERS | WEIGHERS))[name]
    kind, options, _ = (PROPOSERS | WEIGHERS)[name]
    law = law_of_flips(weighed(options) if name in WEIGHERS else proposed(kind, options))
    assert law.sum() == pytest.approx(1)
    if name == "incremental":
        ends = START ^ np.eye(SITES, dtype=int)[info.site]
    else:
        ends = state.position if name in WEIGHERS else info.proposal
    observed = np.bincount(ends @ PLACES, minlength=2**SITES)
    expected = DRAWS * law
    assert observed[expected == 0].sum() == 0
    likely = expected > 3
    chi = ((observed - expected)[likely] ** 2 / expected[likely]).sum()
    assert chi < likely.sum() + 6 * np.sqrt(2 * likely.sum())


def test_an_enumerated_site_is_drawn_accepted_and_stays_as_written():
    """(1 − lazy) min(q(x'|x), exp(β (f(x') − f(x))) q(x|x')) from every position, of the incremental kernel."""
    _, options, _ = PROPOSERS["incremental"]
    beta, lazy = options["inverse_temperature"], options["lazy"]
    kernel = IncrementalGibbsWithGradients(Ring(BIAS, jnp.zeros(())), Binary(), **options)
    matrix = jax.jit(lambda: transition_matrix(kernel, jnp.asarray(START)), compiler_options=QUICK)()
    q, d = (np.array([f(differences(x)) for x in EVERY]) for f in (lambda d: shares(beta * d / 2), lambda d: d))
    wanted, numbers = np.zeros((2**SITES, 2**SITES)), np.arange(2**SITES)
    for site, place in enumerate(PLACES):
        there, back = q[:, site], q[numbers ^ place, site]
        wanted[numbers, numbers ^ place] = (1 - lazy) * np.minimum(there, np.exp(beta * d[:, site]) * back)
    wanted[numbers, numbers] = 1 - wanted.sum(1)
    np.testing.assert_allclose(matrix, wanted, atol=1e-5)


# --- paths -----------------------------------------------------------------------------------------------------------


def flat(x):
    return 0.0 * jnp.sum(x)


def test_a_length_is_adapted_between_one_and_what_there_is():
    """On a flat density every path is accepted: r rises by 1 − target a step, up to the number of sites."""
    start, key = jnp.zeros(SITES, bool), jax.random.key(2)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def adapted(target):
        kernel = PathAuxiliary(flat, Binary(), path_length=1.5)
        found = [kernel.adapt(key, kernel.init(start), steps, target)[0].path_length for steps in (1, 7)]
        return *found, PathAuxiliary(flat, Binary(), max_length=2, path_length=1.5).adapt(
            key, kernel.init(start), 7, target
        )[0].path_length

    for target in (0.6, 1.6):
        lengths = np.clip(1.5 + (1 - target) * np.arange(1, 8), 1, SITES)
        short = np.clip(1.5 + (1 - target) * np.arange(1, 8), 1, 2)
        np.testing.assert_allclose(adapted(target), [lengths[0], lengths[3:].mean(), short[3:].mean()], rtol=1e-5)
    one, many, _ = adapted(-9.0)
    assert (float(one), float(many)) == (SITES, SITES)
    kernel = PathAuxiliary(flat, Binary(), path_length=1.5)
    with pytest.raises(ValueError, match=r"PathAuxiliary.num_steps must be >= 1; got 0"):
        kernel.adapt(key, None, 0)


def test_a_path_is_no_longer_than_the_sites_that_may_move():
    """Two of four: both are changed at once, and of a flat density every such path is accepted."""

    @functools.partial(jax.jit, compiler_options=QUICK)
    def steps():
        kernel = PathAuxiliary(flat, Binary(), path_length=4.0, site_mask=np.array([False, True, True, False]))
        state = kernel.init(jnp.array([0, 0, 1, 1]))
        return jax.vmap(lambda key: kernel.step(key, state))(KEYS)

    state, info = jax.device_get(steps())
    np.testing.assert_array_equal(state.position, np.tile([0, 1, 0, 1], (DRAWS, 1)))
    np.testing.assert_allclose(info.log_ratio, 0, atol=1e-6)
    assert (info.status == Status.OK).all()


# --- the ends of what is allowed -------------------------------------------------------------------------------------

FIVE, LOCAL = np.zeros(5, bool), Ring(jnp.ones(5), jnp.zeros(()))
ENDS = {
    "configurations": lambda limit: BlockGibbs(flat, Binary(), block_size=3, max_configurations=7 + limit),
    "neighbours": lambda limit: GibbsWithGradients(flat, Binary(), radius=2, max_neighbours=14 + limit),
    "flips": lambda limit: GibbsWithGradients(flat, Binary(), num_flips=6 - limit),
    "block": lambda limit: BlockGibbs(flat, Binary(), block_size=6 - limit),
    "ball": lambda limit: HammingBall(flat, Binary(), block_size=6 - limit),
    "path": lambda limit: PathAuxiliary(flat, Binary(), path_length=6.0 - limit),
    "longest path": lambda limit: PathAuxiliary(flat, Binary(), path_length=3.0, max_length=2 + limit),
    "ball's radius": lambda limit: HammingBall(flat, Binary(), block_size=2, radius=3 - limit),
    "lazy": lambda limit: GibbsWithGradients(flat, Binary(), lazy=-0.1 + 0.1 * limit),
    "incremental lazy": lambda limit: IncrementalGibbsWithGradients(LOCAL, Binary(), lazy=1.0 - 0.1 * limit),
    "arity": lambda limit: IncrementalGibbsWithGradients(LOCAL, Binary(), arity=1 + limit),
    "hot": lambda limit: Gibbs(flat, Binary(), inverse_temperature=-1.0 + limit),
    "categories": lambda limit: Gibbs(flat, Categorical(1 + limit)),
    "window": lambda limit: Gibbs(flat, Ordinal(0, 3, window=4 - limit)),
    "levels": lambda limit: Gibbs(flat, Ordinal(0, limit)),
    "hottest": lambda limit: ParallelTempering(Gibbs(flat, Binary()), [1.0, -1.0 + limit]),
    "two replicas": lambda limit: ParallelTempering(Gibbs(flat, Binary()), [1.0, 0.5][: 1 + limit]),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_last_that_is_allowed_is_and_the_next_is_not(name):
    """Nothing is computed: what is known is checked while a program is traced."""
    make = ENDS[name]
    jax.eval_shape(make(1).init, FIVE.astype(int) if "categories" in name else FIVE)
    with pytest.raises(ValueError, match=r" must (be|leave)"):
        jax.eval_shape(make(0).init, FIVE)


# --- drivers ---------------------------------------------------------------------------------------------------------


def test_every_chain_of_tempered_replicas_is_looked_at_before_the_first_step():
    """As of a single chain: codes outside the domain, and starts without probability, by the chain's number."""
    hill = lambda x: jnp.where(x[0] > 0, -jnp.inf, 0.0) + jnp.sum(x)  # noqa: E731
    for kernel in (Gibbs(hill, Binary()), ParallelTempering(Gibbs(hill, Binary()), [1.0, 0.5, 0.2])):
        with pytest.raises(ValueError, match=r"zero probability in chains \[1, 3\]"):
            run(jax.random.key(0), kernel, np.array([[0, 0], [1, 0], [0, 1], [1, 1]]), 4)
        with pytest.raises(ValueError, match=r"position must hold values of Binary\(\).*got \[5\]"):
            run(jax.random.key(0), kernel, np.array([[0, 0], [0, 5]]), 4)


def test_annealing_is_of_the_density_at_the_temperature_of_the_target():
    """The kernel's own temperature would be that of another law than the weights'."""
    base, draw = (lambda x: 0.0 * jnp.sum(x)), (lambda key: jnp.zeros(2, bool))
    for beta in (2.0, np.array(0.5)):
        kernel = Gibbs(flat, Binary(), inverse_temperature=beta)
        with pytest.raises(ValueError, match=r"kernel.inverse_temperature must be 1"):
            annealed_importance_sampling(jax.random.key(0), kernel, base, draw, np.linspace(0, 1, 3))


def test_an_estimate_that_hangs_on_one_chain_is_no_estimate():
    """Weights of which one is e⁹ times the other count as one; equal ones as two, which is enough."""
    base, draw = (lambda x: 0.0 * jnp.sum(x)), (lambda key: jax.random.bernoulli(key, 0.5, (1,)))

    @functools.partial(jax.jit, compiler_options=QUICK)
    def annealed(keys, slope):
        kernel = Gibbs(lambda x: slope * jnp.sum(x), Binary())
        betas = np.array([0.0, 1.0])
        return jax.vmap(lambda key: annealed_importance_sampling(key, kernel, base, draw, betas, num_chains=2))(keys)

    found = jax.device_get(annealed(KEYS[:20], 9.0))
    apart = found.effective < 1.5
    assert 0 < apart.sum() < 20
    np.testing.assert_array_equal(found.status, np.where(apart, Status.NOT_CONVERGED, Status.OK))
    np.testing.assert_allclose(found.effective[~apart], 2, rtol=1e-5)
    # sd(w)/(mean(w) √n) with n − 1 under the root, in terms of n/effective = 1 + var(w)/mean(w)².
    np.testing.assert_allclose(found.standard_error, np.sqrt(2 / found.effective.astype(float) - 1), atol=1e-3)


@pytest.mark.parametrize("kind", [jnp.float16, jnp.bfloat16])
def test_a_density_in_half_precision_is_drawn_from_all_the_same(kind):
    """A site that is certain stays, and one that is even is up in half of the steps, within five standard errors."""
    kernel = Gibbs(lambda x: (40.0 * x[0]).astype(kind), Binary())

    @functools.partial(jax.jit, compiler_options=QUICK)
    def steps():
        state = kernel.init(jnp.array([1, 0]))
        return jax.vmap(lambda key: kernel.step(key, state)[0].position)(KEYS)

    position = np.asarray(steps())
    assert position[:, 0].all()
    assert abs(position[:, 1].mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / DRAWS)  # half of the steps are the other's


def test_sites_are_ranked_and_proposals_accepted_by_more_than_the_numbers_of_half_precision():
    """With 128 numbers, ties would leave out most of 600 sites, and one number in 128 would be 0, which accepts all."""
    kinds = (BlockGibbs, {"block_size": 3}), (HammingBall, {"block_size": 3})
    flat = lambda x: (0 * jnp.sum(x)).astype(jnp.bfloat16)  # noqa: E731

    @functools.partial(jax.jit, compiler_options=QUICK)
    def steps():
        def one(kind, options):
            kernel = kind(flat, Binary(), **options)
            state = kernel.init(jnp.zeros(600, bool))
            return jax.vmap(lambda key: kernel.step(key, state)[0].position)(KEYS)

        small = PlainState(jnp.zeros(()), jnp.zeros((), jnp.bfloat16))
        uniforms = jax.vmap(lambda key: draw_uniforms(key, (), jnp.bfloat16))(KEYS)
        judge = lambda u: decide(u, small, small, jnp.asarray(-40.0, jnp.bfloat16), cost=1)[1]  # noqa: E731
        return [one(*row) for row in kinds], jax.vmap(judge)(uniforms).is_accepted

    changed, accepted = jax.device_get(steps())
    for position in changed:
        halves = position.sum(0).reshape(2, 300).sum(1)
        assert halves.sum() > 500
        assert abs(halves[1] / halves.sum() - 0.5) < 5 * 0.5 / np.sqrt(halves.sum())
    assert not accepted.any()


# --- exact quantities ------------------------------------------------------------------------------------------------


def test_the_gap_and_the_error_of_a_chain_of_two_states():
    """From 0 with p, from 1 with q: the law is (q, p)/(p + q) and the other eigenvalue 1 − p − q."""
    p, q = 0.3, 0.1
    matrix, law = jnp.array([[1 - p, p], [q, 1 - q]]), jnp.array([q, p]) / (p + q)
    assert float(spectral_gap(matrix, law)) == pytest.approx(p + q, rel=1e-5)
    assert float(detailed_balance_error(matrix, law)) == pytest.approx(0, abs=1e-7)
    assert float(detailed_balance_error(matrix, jnp.array([0.5, 0.5]))) == pytest.approx((p - q) / 2, rel=1e-5)
    kernel = Gibbs(lambda x: 2.0 * x[0], Binary(), inverse_temperature=0.5)
    np.testing.assert_allclose(
        exact_distribution(kernel, np.array([[0], [1]])), np.array([1, np.e]) / (1 + np.e), rtol=1e-5
    )


def test_the_discrepancy_of_two_sets_is_its_three_means():
    """Of more rows than are looked at together, of another number in the other set, of positions of two axes."""
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 3, (37, 2, 3)), draw.integers(0, 2, (5, 2, 3))
    mean = lambda x, y: np.mean([np.exp(-np.mean(p != q)) for p in x for q in y])  # noqa: E731
    wanted = mean(a, a) + mean(b, b) - 2 * mean(a, b)
    assert wanted > 0.05
    assert float(jax.jit(hamming_mmd)(jnp.asarray(a), jnp.asarray(b))) == pytest.approx(wanted, rel=1e-4)


def test_chains_that_disagree_have_another_spread_and_fewer_draws():
    """Of three statistics of four chains: independent draws, draws that come in tens, chains about other means."""
    noise = np.random.default_rng(5).normal(size=(4, 200, 3)).astype(np.float32)
    noise[..., 1] = np.repeat(noise[:, :20, 1], 10, axis=1)
    noise[..., 2] += 3 * np.arange(4)[:, None]
    found = jax.device_get(jax.jit(mixing)(noise))
    assert 500 < found.effective[0] < 1100
    assert 40 < found.effective[1] < 200
    assert np.abs(found.r_hat[0] - 1) < 0.03
    assert found.r_hat[2] > 1.5


# --- slices ----------------------------------------------------------------------------------------------------------

X = np.random.default_rng(1).normal(size=(14, 3)).astype(np.float32)


def test_slices_climb_the_objective_that_was_asked_for():
    """Two steps of momentum along the gradient of the discrepancy of normalised slices, and r moves if it learns."""
    optimiser, key = optax.sgd(0.5, momentum=0.9), jax.random.key(4)
    more = {"num_steps": 2, "batch": None, "optimiser": optimiser, "kernel": "imq"}
    unit = lambda rows: rows / jnp.linalg.norm(rows, axis=1, keepdims=True)  # noqa: E731

    def climbed(learn_r, objective, x):
        def loss(raw):
            lines = Slices(unit(raw.r) if learn_r else jnp.eye(3), unit(raw.g))
            return -sliced_ksd(x, -x, lines, kernel="imq", statistic=objective).value

        raw: Any = Slices(jnp.eye(3), unit(jax.random.normal(jax.random.split(key)[0], (3, 3))))
        state = optimiser.init(raw)
        for _ in range(2):
            updates, state = optimiser.update(jax.grad(loss)(raw), state)
            raw = optax.apply_updates(raw, updates)
        return Slices(unit(raw.r), unit(raw.g))

    @functools.partial(jax.jit, compiler_options=QUICK)
    def both(x):
        fitted = lambda learn, kind: fit_slices(key, x, -x, learn_r=learn, objective=kind, **more)  # noqa: E731
        return [(fitted(*how), climbed(*how, x)) for how in ((False, "u"), (True, "u"), (False, "v"))]

    found = jax.device_get(both(X))
    for fit, expected in found:
        np.testing.assert_allclose(fit.g, expected.g, atol=1e-4)
        np.testing.assert_allclose(fit.r, expected.r, atol=1e-4)
    (fixed, _), (learned, _), (biased, _) = found
    np.testing.assert_array_equal(fixed.r, np.eye(3))
    assert np.abs(learned.r - np.eye(3)).max() > 0.01
    assert np.abs(biased.g - fixed.g).max() > 0.01


def test_learned_slices_keep_the_memory_of_their_optimiser():
    """Two steps with momentum, the particles at rest."""
    inner = optax.sgd(0.3, momentum=0.9)
    sampler = SteinVariational(lambda x: -x, optax.sgd(0.0), slices="learned", slice_optimiser=inner)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def both(x):
        state, g = sampler.init(x), jnp.eye(3)
        unit = lambda g: g / jnp.linalg.norm(g, axis=1, keepdims=True)  # noqa: E731
        slope = jax.grad(lambda g: -sliced_ksd(x, -x, Slices(jnp.eye(3), unit(g)), statistic="v").value)
        memory = inner.init(g)
        for step in range(2):
            state, _ = sampler.step(jax.random.key(step), state)
            updates, memory = inner.update(slope(g), memory)
            g = optax.apply_updates(g, updates)
        return state.g, g

    found, wanted = both(X)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_random_slices_look_anywhere_each_for_itself():
    """Directions of length 1 whose mean is 0 and whose second moment I/d; r and g of a pair have nothing to do with
    each other. Within five standard errors."""
    many = jax.device_get(random_slices(jax.random.key(0), 3, 1000))
    for rows in many:
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
        assert np.abs(rows.mean(0)).max() < 5 / np.sqrt(3 * 1000)
        np.testing.assert_allclose(rows.T @ rows / 1000, np.eye(3) / 3, atol=5 / np.sqrt(1000) * 0.3)
    together = np.sum(many.r * many.g, axis=1)  # variance 1/3
    assert abs(together.mean()) < 5 / np.sqrt(3 * 1000)
    assert together.var() == pytest.approx(1 / 3, abs=5 * 0.3 / np.sqrt(1000))
    axes = jax.device_get(random_slices(jax.random.key(0), 3))
    np.testing.assert_array_equal(axes.r, np.eye(3))
    np.testing.assert_allclose(np.linalg.norm(axes.g, axis=1), 1, rtol=1e-5)


def test_bandwidths_of_slices_are_those_of_points_on_a_line():
    """By every name, with more draws than slices: the median of the projections, over √(2 ln n) for "log"."""
    lines = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0][:2].astype(np.float32)
    names = ("median", "log", 0.7, np.array([0.5, 2.0], np.float32))
    found = jax.jit(lambda x, g: [slice_bandwidths("test", name, x, g) for name in names])(X, lines)
    first, second = np.triu_indices(len(X), 1)
    gaps = np.sort(np.abs((X @ lines.T)[first] - (X @ lines.T)[second]), axis=0)
    median = gaps[(len(gaps) - 1) // 2]
    wanted = median, median / np.sqrt(2 * np.log(len(X))), np.full(2, 0.7), names[-1]
    for one, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-4)


MANY = np.random.default_rng(3).normal(size=(60, 3)).astype(np.float32)
PAIRS = (
    ("max", "imq", "log", "multinomial"),
    ("random", "rbf", "log", "wild"),
    ("identity", "imq", 0.8, "multinomial"),
    (None, "imq", "log", "wild"),
)


def test_the_statistic_of_a_test_is_the_discrepancy_of_its_settings():
    """By pairs of slices, kernel, bandwidth and bootstrap; slices are fitted to the first fifth alone."""
    key = jax.random.key(6)
    fitting = jax.random.split(key)[0]

    @functools.partial(jax.jit, compiler_options=QUICK)
    def both(x):
        found = []
        for slices, kernel, bandwidth, bootstrap in PAIRS:
            more = {"kernel": kernel, "bandwidth": bandwidth}
            settings = {"num_steps": 2, "batch": 5} if slices == "max" else {}
            kind = {"bootstrap": bootstrap, "num_bootstrap": 19, "flip": 0.2 if bootstrap == "wild" else None}
            test = stein_test(key, x, -x, slices=slices, **more, **kind, **settings)
            known = 12 if slices == "max" else 0
            if slices == "max":
                lines = fit_slices(fitting, x[:known], -x[:known], kernel=kernel, **settings)
            else:
                lines = random_slices(fitting, 3) if slices == "random" else None
            rest = x[known:], -x[known:]
            value = ksd(*rest, **more) if slices is None else sliced_ksd(*rest, lines, **more).value
            found.append((test.value, value))
        largest = max_sliced_ksd(key, x, -x, split=0.3, kernel="imq", num_steps=2, batch=5)
        lines = fit_slices(key, x[:18], -x[:18], kernel="imq", num_steps=2, batch=5)
        found.append((largest.value, sliced_ksd(x[18:], -x[18:], lines, kernel="imq").value))
        return found

    for name, (found, wanted) in zip((*PAIRS, "max_sliced_ksd"), both(MANY), strict=True):
        assert float(found) == pytest.approx(float(wanted), rel=1e-4, abs=1e-5), name


@pytest.mark.parametrize("kernel", ["rbf", "imq", "own"])
def test_particles_follow_the_force_of_their_kernel(kernel):
    """mean_x [s(x) φ + 2φ' (x − y)/ℓ²] of whole points and along the axes, with φ' by central differences."""
    phi = {"rbf": lambda t: np.exp(-t / 2), "imq": lambda t: (1 + t) ** -0.5, "own": lambda t: 1 / (1 + t**2)}[kernel]
    slope = lambda t, step=1e-5: (phi(t + step) - phi(t - step)) / (2 * step)  # noqa: E731
    given = {"kernel": (lambda t: 1 / (1 + t**2)) if kernel == "own" else kernel, "bandwidth": 0.9}
    samplers = [SteinVariational(lambda x: -(x**3), optax.sgd(1.0), slices=s, **given) for s in ("none", "identity")]
    x, s = X.astype(float), -(X.astype(float) ** 3)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def run(x):
        return [sampler.step(jax.random.key(0), sampler.init(x)) for sampler in samplers]

    def force(u, s):
        apart = u[:, None, :] - u[None, :, :]  # x − y
        t = (apart**2).sum(-1) / 0.9**2
        return np.mean(s[:, None, :] * phi(t)[..., None] + 2 * slope(t)[..., None] * apart / 0.9**2, axis=0)

    whole, axes = force(x, s), np.concatenate([force(x[:, [k]], s[:, [k]]) for k in range(3)], axis=1)
    for (state, info), wanted in zip(run(X), (whole, axes), strict=True):
        np.testing.assert_allclose(state.position - X, wanted, atol=1e-5)
        assert float(info.force) == pytest.approx(np.linalg.norm(wanted, axis=1).mean(), rel=1e-4)
        assert (int(info.cost), float(info.alignment), int(info.status)) == (14, 1.0, Status.OK)


def test_a_bandwidth_is_one_number_or_one_of_every_slice():
    for many in (2, 14):
        with pytest.raises(ValueError, match=rf"ksd.bandwidth must be one number; got \({many},\)"):
            ksd(X, -X, bandwidth=np.ones(many, np.float32))
        with pytest.raises(
            ValueError, match=rf"sliced_ksd.bandwidth must be one number or 3, one a slice; got \({many}"
        ):
            sliced_ksd(X, -X, bandwidth=np.ones(many, np.float32))


def test_settings_that_a_test_does_not_have_are_refused():
    """Of fitted slices alone; a word that is misspelt is not passed over."""
    for slices in ("identity", "random", None):
        with pytest.raises(TypeError, match=r"stein_test: num_step .*slices=\"max\""):
            stein_test(jax.random.key(0), X, -X, slices=slices, num_step=5)
    with pytest.raises(TypeError, match="num_step"):
        stein_test(jax.random.key(0), np.tile(X, (6, 1)), -np.tile(X, (6, 1)), num_step=5)
    with pytest.raises(ValueError, match=r'flip must be left out with independent draws; got 0\.1\. .*"wild"'):
        stein_test(jax.random.key(0), X, -X, slices=None, flip=0.1)
