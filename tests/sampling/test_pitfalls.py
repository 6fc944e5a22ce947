"""One test for each way in which public implementations of the method go wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems.energies import IsingLattice, PottsLattice, random_rbm
from laureate.sampling import (
    Binary,
    Categorical,
    DiscreteLangevin,
    GibbsWithGradients,
    LocallyInformed,
    Ordinal,
    PathAuxiliary,
    hamming_distance,
    run,
)
from laureate.sampling.enumeration import transition_matrix

QUICK = {"xla_backend_optimization_level": 0}
RBM = random_rbm(jax.random.key(3), visible=12, hidden=5)


def test_the_difference_is_halved_once():
    kernel = GibbsWithGradients(lambda x: jnp.array([1.0, -2.0, 0.5]) @ x, Binary())
    state = kernel.init(np.array([0, 0, 1]))
    np.testing.assert_allclose(state.differences, [1.0, -2.0, -0.5])
    np.testing.assert_allclose(kernel.log_weights(kernel.layout(state.position), state.differences), [0.5, -1.0, -0.25])


@pytest.mark.slow
def test_spins_and_bits_do_not_differ_by_a_factor_of_two():
    """For a multilinear energy the gradient's difference is the exact one; a mix-up of ∂f/∂s and ∂f/∂x doubles it."""
    for energy, domain in ((IsingLattice(4, 0.2, 0.1), Binary()), (PottsLattice(3, 3, 0.7), Categorical(3))):
        position = energy.start(jax.random.key(0))
        estimate = GibbsWithGradients(energy, domain).init(position).differences
        exact = LocallyInformed(energy, domain).init(position).differences
        np.testing.assert_allclose(estimate, exact, atol=1e-5)


@pytest.mark.slow
def test_an_energy_that_is_not_multilinear_has_other_differences_and_is_still_sampled_exactly():
    position = RBM.start(jax.random.key(0))
    estimate = GibbsWithGradients(RBM, Binary()).init(position).differences
    exact = LocallyInformed(RBM, Binary()).init(position).differences
    assert float(jnp.abs(estimate - exact).max()) > 1e-4


def test_two_categories_are_a_bit():
    """f(x) = F(1 - x, x): both kernels must walk the same way, up to how moves are numbered."""
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))

    def one_hot_energy(rows):
        return jnp.sum(weights * rows) + jnp.prod(jnp.sum(rows * jnp.array([0.3, 1.2]), axis=1))

    bits = GibbsWithGradients(lambda x: one_hot_energy(jnp.stack([1 - x, x], axis=1)), Binary())
    kinds = GibbsWithGradients(one_hot_energy, Categorical(2))
    with jax.enable_x64(True):
        matrix = jax.jit(transition_matrix, compiler_options=QUICK)
        a, b = matrix(bits, np.zeros(5, bool)), matrix(kinds, np.zeros(5, np.int32))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_period_two_on_a_flat_target_and_the_lazy_remedy():
    def flat(x):
        return 0.0 * jnp.sum(x)

    matrix_of = jax.jit(transition_matrix, compiler_options=QUICK)

    for lazy, lowest in ((0.0, -1.0), (0.25, -0.5)):
        matrix = np.asarray(matrix_of(GibbsWithGradients(flat, Binary(), lazy=lazy), np.zeros(4, bool)))
        assert np.linalg.eigvals(matrix).real.min() == pytest.approx(lowest, abs=1e-5)


def test_large_energies_neither_overflow_nor_stall():
    steep = np.linspace(-3000.0, 3000.0, 12, dtype=np.float32)  # the sites and chains of the RBM's runs
    kernel = GibbsWithGradients(lambda x: jnp.asarray(steep) @ x, Binary())
    result = run(jax.random.key(0), kernel, np.zeros((4, 12), bool), 50)
    assert result.num_nan.sum() == 0
    np.testing.assert_array_equal(result.samples[:, 12], np.broadcast_to(steep > 0, (4, 12)))


@pytest.mark.slow
def test_adding_a_constant_changes_nothing():
    with jax.enable_x64(True):
        runs = [
            run(
                jax.random.key(0), GibbsWithGradients(lambda x, c=c: RBM(x) + c, Binary()), np.zeros((2, 12), bool), 300
            )
            for c in (0.0, 512.0)
        ]
    np.testing.assert_array_equal(runs[0].samples, runs[1].samples)


def test_chains_do_not_see_each_other():
    kernel = GibbsWithGradients(RBM, Binary(), num_flips=2)
    start = np.random.default_rng(0).integers(0, 2, size=(4, 12)).astype(bool)
    together = run(jax.random.key(1), kernel, start, 50).samples

    @jax.jit
    def alone(chain, position):
        def step(state, number):
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), chain), number)
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(step, kernel.init(position), jnp.arange(50))[1]

    for chain in range(4):
        np.testing.assert_array_equal(alone(chain, start[chain]), together[chain])


@pytest.mark.slow
def test_a_mask_samples_the_conditional():
    """Clamped sites: the same chain as on the smaller energy in which they are constants."""
    clamped = np.array([1, 0, 1], bool)
    mask = np.array([False] * 3 + [True] * 9)
    full = GibbsWithGradients(RBM, Binary(), site_mask=mask)
    part = GibbsWithGradients(lambda x: RBM(jnp.concatenate([jnp.asarray(clamped, x.dtype), x])), Binary())
    start = np.zeros((2, 12), bool)
    start[:, :3] = clamped
    a = run(jax.random.key(0), full, start, 4000, thin=4).samples
    b = run(jax.random.key(1), part, start[:, 3:], 4000, thin=4).samples
    assert (a[..., :3] == clamped).all()
    # Means of nine bits over 2 x 1,000 correlated samples: about 0.02 each at worst, so 5 of these.
    np.testing.assert_allclose(a[:, 100:, 3:].mean((0, 1)), b[:, 100:].mean((0, 1)), atol=0.1)


def test_ordinal_moves_stay_inside_and_reach_both_ends():
    kernel = GibbsWithGradients(lambda x: -0.1 * jnp.sum((x - 2.0) ** 2), Ordinal(0, 4, window=2))
    samples = run(jax.random.key(0), kernel, np.full((4, 3), 1), 500).samples
    assert set(np.unique(samples)) == {0, 1, 2, 3, 4}


def test_hamming_distance_counts_sites():
    a = jnp.array([[[0, 1], [2, 2]], [[0, 0], [0, 0]]])
    np.testing.assert_array_equal(hamming_distance(a, jnp.zeros((2, 2), int)), [3.0, 0.0])
    # Over as many of the last axes as the reference has, of chains, steps, rows and columns.
    samples = np.random.default_rng(0).integers(0, 2, (2, 3, 4, 5))
    for axes in range(1, 5):
        reference = samples[(0,) * (4 - axes)]
        expected = (samples != reference).reshape(*samples.shape[: 4 - axes], -1).sum(-1)
        np.testing.assert_array_equal(hamming_distance(jnp.asarray(samples), jnp.asarray(reference)), expected)


def test_a_path_is_walked_back_in_reversed_order():
    """Any fixed order back would leave the target invariant; the reversed one is the method's, and accepts more."""
    bias = np.array([1.0, -0.5, 2.0])
    kernel = PathAuxiliary(lambda x: jnp.asarray(bias, x.dtype) @ x, Binary(), path_length=2.0, max_length=2)
    state = kernel.init(np.zeros(3, bool))
    _, log_probability, log_ratio = eqx.filter_jit(kernel.propose)(state, jnp.array([0, 1]), jnp.int32(2))
    w, back = np.exp(bias / 2), np.exp(np.array([-1.0, 0.5, 2.0]) / 2)
    forward = np.log(w[0] / w.sum() * w[1] / (w[1] + w[2]))
    reverse = np.log(back[1] / back.sum() * back[0] / (back[0] + back[2]))
    assert float(log_probability) == pytest.approx(forward, abs=1e-5)
    assert float(log_ratio) == pytest.approx(bias[0] + bias[1] + reverse - forward, abs=1e-5)


def test_langevin_moves_every_kind_of_site_by_its_own_distances():
    """softmax of 0 for staying and βd̃/2 − |x' − x|²/(2α) for each move, those that are not available left out."""
    domain = {"a": Binary(), "b": Categorical(3), "c": Ordinal(0, 4, window=2)}
    start = {"a": np.zeros(2, bool), "b": np.zeros(1, np.int32), "c": np.zeros(1, np.int32)}
    kernel = DiscreteLangevin(lambda x: jnp.sum(x["a"]), domain, step_size=0.4, inverse_temperature=0.7)
    d = np.array([1.0, -2.0, -np.inf, 0.5, -1.5, -np.inf, -np.inf, 2.0, 0.3], np.float32)
    found = jax.jit(lambda d: kernel.log_probabilities(kernel.layout(start), d))(d)
    for part, moves, squares in zip(found, np.split(d, [2, 5]), ([1.0], [2.0] * 3, [4.0, 1.0, 1.0, 4.0]), strict=True):
        logits = 0.7 * moves.reshape(len(part), -1) / 2 - np.array(squares) / 0.8
        weights = np.exp(np.pad(logits, ((0, 0), (1, 0))))
        np.testing.assert_allclose(np.exp(part), weights / weights.sum(axis=1, keepdims=True), rtol=1e-5)


def test_langevin_flips_a_bit_with_the_papers_probability_and_doubles_the_distance_of_categories():
    """σ(d̃/2 - 1/(2α)) for a bit; categories lie |e_j - e_i|² = 2 apart, so 1/α."""
    bias = np.array([1.0, -0.5, 2.0])
    bits = DiscreteLangevin(lambda x: jnp.asarray(bias, x.dtype) @ x, Binary(), step_size=0.4)
    state = bits.init(np.zeros(3, bool))
    (log_probs,) = bits.log_probabilities(bits.layout(state.position), state.differences)
    np.testing.assert_allclose(np.exp(log_probs[:, 1]), 1 / (1 + np.exp(-(bias / 2 - 1 / 0.8))), rtol=1e-5)
    kinds = DiscreteLangevin(lambda x: jnp.asarray(bias, x.dtype) @ x[0], Categorical(3), step_size=0.4)
    state = kinds.init(np.zeros(1, np.int32))
    (log_probs,) = kinds.log_probabilities(kinds.layout(state.position), state.differences)
    logits = np.array([0.0, -np.inf, (bias[1] - bias[0]) / 2 - 1 / 0.4, (bias[2] - bias[0]) / 2 - 1 / 0.4])
    np.testing.assert_allclose(np.exp(log_probs[0]), np.exp(logits) / np.exp(logits).sum(), rtol=1e-5)
