"""Convolutions against explicit matrices, and their weight against the problem it solves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.recovery import (
    ALISTA,
    FISTA,
    ConvALISTA,
    ConvDictionary,
    ConvLISTA,
    ConvWeight,
    SupportSchedule,
    add_noise,
    analytic_conv_weight,
    circular_conv_weight,
    fit,
    learn_filters,
    training,
)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def filters(number=3, side=3, seed=0):
    drawn = np.random.default_rng(seed).normal(size=(number, side, side))
    return drawn / np.sqrt(np.sum(drawn**2, axis=(1, 2), keepdims=True))


def explicit(d, height, width):
    """The matrix of Σ_m d_m ∗ x_m on codes [H + D − 1, W + D − 1, M], entry by entry."""
    number, side, _ = d.shape
    code = height + side - 1, width + side - 1, number
    matrix = np.zeros((height, width, *code))
    for i in range(height):
        for j in range(width):
            for u in range(side):
                for v in range(side):
                    matrix[i, j, i + side - 1 - u, j + side - 1 - v] = d[:, u, v]
    return matrix.reshape(height * width, -1)


def test_both_products_are_those_of_the_matrix():
    d = filters()
    dictionary, matrix = ConvDictionary(d, (6, 5)), explicit(d, 6, 5)
    x, r = (np.random.default_rng(k).normal(size=(2, n)) for k, n in ((1, 8 * 7 * 3), (2, 30)))
    np.testing.assert_allclose(dictionary.matvec(x.reshape(2, 8, 7, 3)).reshape(2, 30), x @ matrix.T, atol=1e-12)
    np.testing.assert_allclose(dictionary.rmatvec(r.reshape(2, 6, 5)).reshape(2, -1), r @ matrix, atol=1e-12)
    assert dictionary.shape == matrix.shape


def test_a_layer_is_the_layer_of_the_matrices():
    d, w = filters(), filters(seed=1)
    b = np.random.default_rng(3).normal(size=(2, 6, 6))
    solver = ConvALISTA(d, (6, 6), w, num_layers=3)
    matrix, weight = explicit(d, 6, 6), explicit(w, 6, 6)
    step = 1 / (1.001 * np.linalg.norm(weight.T @ matrix, 2))
    assert float(solver.gamma[0]) >= step  # a spectral radius is at most the norm
    x = np.zeros((2, matrix.shape[1]))
    for gamma, theta in zip(solver.gamma, solver.theta, strict=True):
        v = x - float(gamma) * (x @ matrix.T - b.reshape(2, 36)) @ weight
        x = np.sign(v) * np.maximum(np.abs(v) - float(theta), 0)
    np.testing.assert_allclose(solver(b).reshape(2, -1), x, atol=1e-12)
    learned = ConvLISTA(d, (6, 6), w, num_layers=3)
    np.testing.assert_allclose(learned(b).reshape(2, -1), x, atol=1e-12)


def test_the_largest_of_the_whole_code_pass_unshrunk():
    """Of each image's code, all places and filters together: as many as the schedule says, if above the threshold."""
    d, w, support = filters(), filters(seed=1), SupportSchedule(p=10, p_max=15)
    b = np.random.default_rng(3).normal(size=(2, 6, 5)) * np.array([1.0, 0.05])[:, None, None]

    @jax.jit
    def run(b):
        solver = ConvALISTA(d, (6, 5), w, num_layers=2, support=support)
        return solver(b), solver.gamma, solver.theta, ConvLISTA(d, (6, 5), w, num_layers=2)(b)

    found, gammas, thetas, learned = map(np.asarray, run(b))
    matrix, weight = explicit(d, 6, 5), explicit(w, 6, 5)
    x, every = np.zeros((2, 2, matrix.shape[1]))
    for gamma, theta in zip(gammas, thetas, strict=True):  # with filters of each layer none passes unshrunk
        v = every - gamma * (every @ matrix.T - b.reshape(2, 30)) @ weight
        every = np.sign(v) * np.maximum(np.abs(v) - theta, 0)
    np.testing.assert_allclose(learned.reshape(2, -1), every, atol=1e-12)
    for gamma, theta, count in zip(gammas, thetas, (17, 25), strict=True):  # of 8 · 7 · 3 entries
        v = x - gamma * (x @ matrix.T - b.reshape(2, 30)) @ weight
        passes = (np.argsort(np.argsort(-np.abs(v), axis=1), axis=1) < count) & (np.abs(v) > theta)
        x = np.where(passes, v, np.sign(v) * np.maximum(np.abs(v) - theta, 0))
        assert passes.sum(1)[0] == count > passes.sum(1)[1] > 0
    np.testing.assert_allclose(found.reshape(2, -1), x, atol=1e-12)


def test_solvers_for_matrices_take_the_convolution_as_operator():
    d = filters()
    b = np.random.default_rng(4).normal(size=(2, 6, 6))
    found = FISTA(ConvDictionary(d, (6, 6)), num_layers=5, penalty=0.2, lipschitz_constant=9.0)(b)
    with pytest.warns(UserWarning, match="norm 1"):  # columns at the border are cut
        wanted = FISTA(explicit(d, 6, 6), num_layers=5, penalty=0.2, lipschitz_constant=9.0)(b.reshape(2, 36))
    np.testing.assert_allclose(found.reshape(2, -1), wanted, atol=1e-12)
    weight = ConvWeight(jnp.asarray(filters(seed=1)))
    same = ALISTA(ConvDictionary(d, (6, 6)), weight, num_layers=3, gamma=0.1, theta=0.01, support=None)
    own = eqx.tree_at(
        lambda s: (s.gamma, s.theta),
        ConvALISTA(d, (6, 6), weight.filters, num_layers=3),
        (jnp.full(3, 0.1), jnp.full(3, 0.01)),
    )
    np.testing.assert_allclose(same(b), own(b), atol=1e-12)
    x, info = own.solve(b)
    assert x.shape == (2, 8, 8, 3)
    assert info.residual.shape == (2,)


def circulant_gram(d, size):
    """Σ_m D_mᵀD_m for circular convolutions on size × size pixels, restricted to the support of a filter."""
    side = d.shape[1]
    total = np.zeros((size * size, size * size))
    for one in d:
        columns = []
        for i in range(size):
            for j in range(size):
                image = np.zeros((size, size))
                for u in range(side):
                    for v in range(side):
                        image[(i + u) % size, (j + v) % size] += one[u, v]
                columns.append(image.ravel())
        total += np.array(columns).T @ np.array(columns)
    kept = [u * size + v for u in range(side) for v in range(side)]
    return total[np.ix_(kept, kept)]


@pytest.mark.parametrize("size", [4, 5, 8])
def test_the_weight_solves_its_problem_on_every_circle(size):
    d = filters(2, 3)
    gram = circulant_gram(d, size)
    found = np.asarray(circular_conv_weight(jnp.asarray(d), size)).reshape(2, 9)
    wanted = np.linalg.solve(gram, d.reshape(2, 9).T).T
    wanted /= np.sum(wanted * d.reshape(2, 9), axis=1, keepdims=True)
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_theorem_3_the_size_matters_below_2d_minus_1_only():
    d = jnp.asarray(filters(4, 5))
    weight = {size: np.asarray(circular_conv_weight(d, size)) for size in (8, 9, 10, 40)}
    assert np.abs(weight[8] - weight[40]).max() > 1e-4
    for size in (9, 10):
        np.testing.assert_allclose(weight[size], weight[40], atol=1e-12)
    np.testing.assert_allclose(analytic_conv_weight(d), weight[40], atol=1e-12)
    np.testing.assert_allclose(np.sum(weight[9] * np.asarray(d), axis=(1, 2)), 1, atol=1e-12)


@pytest.mark.slow
def test_learned_filters_explain_the_images_better_than_random_ones():
    codes = np.random.default_rng(5).normal(size=(20, 8, 8, 2)) * (
        np.random.default_rng(6).random((20, 8, 8, 2)) < 0.05
    )
    images = np.asarray(ConvDictionary(filters(2), (6, 6)).matvec(codes))
    key, penalty = jax.random.key(0), 0.1

    def objective(d):
        dictionary = ConvDictionary(d, (6, 6))
        codes = FISTA(dictionary, 100, penalty=penalty)(images)
        return float(0.5 * np.sum((dictionary.matvec(codes) - images) ** 2) + penalty * np.sum(np.abs(codes)))

    learned, early = (np.asarray(learn_filters(key, images, 2, 3, num_rounds=n, penalty=penalty)) for n in (40, 1))
    assert objective(learned) < 0.9 * objective(early)
    assert objective(learned) < 0.9 * objective(filters(2, seed=9))
    np.testing.assert_allclose(np.sum(learned**2, axis=(1, 2)), 1, rtol=1e-9)


def test_noise_of_training_is_that_of_the_whole_image(monkeypatch):
    """Its deviation is the image's, not each row's: a row without a signal gets as much as the others."""
    seen = []

    def noisy(key, b, snr, signal_axes=1):
        seen.append((b.shape, signal_axes))
        return add_noise(key, b, snr, signal_axes)

    monkeypatch.setattr(training, "add_noise", noisy)
    solver, codes = ConvALISTA(filters(), (6, 5), num_layers=1), np.zeros((4, 8, 7, 3))
    fit(jax.random.key(0), solver, codes, optimiser=optax.sgd(0.0), num_steps=1, batch=2, snr=10.0)
    assert seen == [((2, 6, 5), 2)]
    image = np.zeros((1, 40, 50))
    image[0, :20] = np.random.default_rng(0).normal(size=(20, 50))
    noise = np.asarray(add_noise(jax.random.key(0), image, 10.0, 2)) - image
    np.testing.assert_allclose(noise[0, 20:].std(), image.std() * 10**-0.5, rtol=4 / np.sqrt(2 * 1000))
