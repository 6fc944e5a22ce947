"""Filters made of phrases against closed forms and scipy; strided convolutions against XLA's own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal

from laureate import grounding as g
from networks import drawn

RNG = np.random.default_rng(0)
MAPS, TEXT = RNG.normal(size=(3, 5, 6, 4)).astype(np.float32), RNG.normal(size=(3, 7)).astype(np.float32)
KEY = jax.random.key(1)
FILTER = eqx.filter_jit(lambda: {size: g.LanguageFilter(KEY, 4, 7, kernel_size=size) for size in (1, 3)})()
call = eqx.filter_jit(lambda layer, maps, text, key=None: layer(maps, text, key=key))
kernels = eqx.filter_jit(lambda layer, text: layer.kernels(text))


def by_hand(layer, text):
    """The kernels from the equation, in NumPy: [b, s, s, i, o]."""
    raw = (text @ np.asarray(layer.weight) + np.asarray(layer.bias)).reshape(-1, *(layer.kernel_size,) * 2, 4, 4)
    return raw / np.linalg.norm(raw, axis=-1, keepdims=True)


def test_a_filter_of_one_is_a_product_at_every_pixel():
    wanted = np.einsum("bhwi,bio->bhwo", MAPS, by_hand(FILTER[1], TEXT)[:, 0, 0])
    np.testing.assert_allclose(call(FILTER[1], MAPS, TEXT), wanted, atol=1e-5)


def test_a_filter_of_three_is_a_sum_of_correlations_with_zeros_outside():
    kernel = by_hand(FILTER[3], TEXT)
    found = call(FILTER[3], MAPS, TEXT)
    for b, o in np.ndindex(3, 4):
        parts = [scipy.signal.correlate2d(MAPS[b, :, :, i], kernel[b, :, :, i, o], mode="same") for i in range(4)]
        np.testing.assert_allclose(found[b, :, :, o], sum(parts), atol=1e-5)


@pytest.mark.parametrize("size", [1, 3])
def test_every_input_channel_and_tap_has_length_one_along_the_outputs(size):
    found = np.asarray(kernels(FILTER[size], TEXT))
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1.0, rtol=1e-5)
    assert np.abs(np.linalg.norm(found, axis=-2) - 1).max() > 0.1  # along the inputs it has not


def test_ten_times_the_dense_layer_changes_nothing():
    larger = eqx.tree_at(lambda f: (f.weight, f.bias), FILTER[3], replace_fn=lambda leaf: 10 * leaf)
    np.testing.assert_allclose(call(larger, MAPS, TEXT), call(FILTER[3], MAPS, TEXT), atol=1e-5)


def test_without_text_weights_and_with_a_bias_of_one_hots_it_is_the_identity():
    one = eqx.tree_at(lambda f: (f.weight, f.bias), FILTER[1], (jnp.zeros((7, 16)), 3 * jnp.eye(4).ravel()))
    np.testing.assert_allclose(call(one, MAPS, TEXT), MAPS, atol=1e-6)


def test_no_kernel_at_all_is_zero_and_has_a_gradient():
    nothing = eqx.tree_at(lambda f: (f.weight, f.bias), FILTER[1], (jnp.zeros((7, 16)), jnp.zeros(16)))
    slope = eqx.filter_jit(eqx.filter_grad(lambda layer: jnp.sum(layer(MAPS, TEXT))))(nothing)
    assert np.all(np.isfinite(slope.weight))
    assert not np.any(call(nothing, MAPS, TEXT))


def test_dropout_is_for_training_alone_and_keeps_the_mean_of_the_text():
    layer = eqx.tree_at(lambda f: f.dropout, FILTER[1], jnp.asarray(0.5))
    assert not np.allclose(call(layer, MAPS, TEXT, jax.random.key(0)), call(layer, MAPS, TEXT))
    film = g.FiLM(jax.random.key(0), 4, 7, dropout=0.5)  # linear in the text
    every = eqx.filter_jit(jax.vmap(lambda key: film(MAPS, TEXT, key=key)))(jax.random.split(jax.random.key(1), 3000))
    spread = np.asarray(every).std(0) / 3000**0.5
    assert np.all(np.abs(np.asarray(every).mean(0) - film(MAPS, TEXT)) < 5 * spread + 1e-5)


def test_dropout_divides_what_it_keeps():
    """A shift that is the text itself: each number of it is 0 or larger by 1/(1 − share)."""
    film = drawn(lambda key: g.FiLM(key, 7, 7, dropout=0.75))
    ((weight, bias),) = film.layers
    film = eqx.tree_at(lambda f: f.layers, film, (((np.eye(7, 14, 7, "f4")), 0 * np.asarray(bias)),))
    assert weight.shape == (7, 14)
    shown = np.asarray(call(film, np.zeros((3, 1, 1, 7), np.float32), TEXT, KEY))[:, 0, 0]
    assert 0 < np.mean(shown == 0) < 1
    np.testing.assert_allclose(shown, np.where(shown == 0, 0, 4 * TEXT), rtol=1e-6)


def test_film_and_concatenation_are_what_they_say():
    film = g.FiLM(jax.random.key(2), 4, 7)
    gamma, beta = np.split(TEXT @ np.asarray(film.layers[0][0]) + np.asarray(film.layers[0][1]), 2, axis=1)
    wanted = (1 + gamma[:, None, None]) * MAPS + beta[:, None, None]
    np.testing.assert_allclose(call(film, MAPS, TEXT), wanted, atol=1e-5)
    beside = g.Concatenation(jax.random.key(2), 4, 7)
    both = np.concatenate([MAPS, np.broadcast_to(TEXT[:, None, None], (3, 5, 6, 7))], axis=-1)
    weight = np.concatenate([beside.mix, beside.layers[0][0]])  # one 1 × 1 convolution of both
    np.testing.assert_allclose(call(beside, MAPS, TEXT), both @ weight + beside.layers[0][1], atol=1e-5)
    hidden = g.FiLM(jax.random.key(2), 4, 7, hidden=5)
    inner = np.maximum(TEXT @ np.asarray(hidden.layers[0][0]) + np.asarray(hidden.layers[0][1]), 0)
    gamma = (inner @ np.asarray(hidden.layers[1][0]) + np.asarray(hidden.layers[1][1]))[:, :4]
    still = call(hidden, np.zeros_like(MAPS), TEXT)
    np.testing.assert_allclose(call(hidden, MAPS, TEXT) - still, (1 + gamma[:, None, None]) * MAPS, atol=1e-5)


def test_hidden_units_scales_and_shifts_by_hand():
    film = drawn(lambda key: g.FiLM(key, 4, 7, hidden=5))
    beside = drawn(lambda key: g.Concatenation(key, 4, 7))
    scaled, mixed = eqx.filter_jit(lambda: (film(MAPS, TEXT), beside(MAPS, TEXT)))()
    (first, shift), (second, last) = jax.tree.map(np.asarray, film.layers)
    gamma, beta = np.split(np.maximum(TEXT @ first + shift, 0) @ second + last, 2, axis=1)
    np.testing.assert_allclose(scaled, (1 + gamma[:, None, None]) * MAPS + beta[:, None, None], atol=1e-5)
    ((weight, bias),) = jax.tree.map(np.asarray, beside.layers)
    wanted = MAPS @ np.asarray(beside.mix) + (TEXT @ weight + bias)[:, None, None]
    np.testing.assert_allclose(mixed, wanted, atol=1e-5)


def test_initial_weights_fill_their_range_and_none_is_drawn_twice():
    """Uniform in ±1/√size: the mean within four standard errors, both ends nearly reached, no number twice."""
    words = np.zeros((6, 3), np.float32)
    encoder = eqx.filter_jit(lambda: g.PhraseEncoder(KEY, 6, 5, words))()
    dense = [(np.concatenate([one.weight.ravel(), one.bias]), 7) for one in FILTER.values()]
    for weights, size in (*dense, (np.asarray(encoder.weight).ravel(), 5)):
        bound = 1 / np.sqrt(size)
        assert len(np.unique(weights)) == weights.size
        assert abs(weights.mean()) < 4 * bound / np.sqrt(3 * weights.size)
        assert 0.9 * bound < weights.max() <= bound
        assert -bound <= weights.min() < -0.9 * bound


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("channels", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_matched_means_as_many_weights(size, channels):
    wanted = g.LanguageFilter(jax.random.key(0), channels, 16, kernel_size=size).num_parameters
    assert wanted == 17 * channels**2 * size**2
    for kind in (g.FiLM, g.Concatenation):
        made = kind(jax.random.key(0), channels, 16, hidden="matched", kernel_size=size)
        assert abs(made.num_parameters - wanted) <= 0.5 * (17 + 2 * channels)  # half a hidden unit


@pytest.mark.parametrize(
    "side", [pytest.param(1, marks=pytest.mark.slow), 3, 5, pytest.param(7, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("size", [pytest.param((8, 6), marks=pytest.mark.slow), (7, 8)])
def test_halving_and_doubling_are_strided_convolutions(side, size):
    """Against XLA's own; doubling is the transpose of halving."""
    maps = RNG.normal(size=(2, *size, 3)).astype(np.float32)
    kernel = RNG.normal(size=(side, side, 3, 2)).astype(np.float32)
    margin = (side // 2, side // 2)
    small = [(length + 1) // 2 for length in size]
    values = RNG.normal(size=(2, *small, 2)).astype(np.float32)

    @jax.jit
    def every(maps, kernel, values):
        strided = lambda x: jax.lax.conv_general_dilated(  # noqa: E731
            x, kernel, (2, 2), (margin, margin), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        theirs, transpose = jax.vjp(strided, maps)
        raised = g.double(values, kernel.transpose(0, 1, 3, 2), size)
        return theirs, g.halve(maps, kernel), transpose(values)[0], raised

    theirs, ours, back, raised = every(maps, kernel, values)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    np.testing.assert_allclose(raised, back, atol=1e-4)
