"""What is counted and reported of masks, trainings and networks, and the law of first weights; recomputed in NumPy."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import grounding as g

KEY = jax.random.key(2)


class Bias(eqx.Module):
    """One's own network: the same logit everywhere."""

    value: jax.Array

    def __call__(self, images, words, lengths, *, key=None):
        return [jnp.broadcast_to(self.value, images.shape[:3])]


@pytest.mark.parametrize(("count", "batch", "num_steps"), [(2, 5, 3), (5, 2, 1)])
def test_examples_seen_are_those_of_all_steps_however_few_there_are(count, batch, num_steps):
    """Batches are drawn with replacement: one may be larger than the set."""
    masks = np.ones((count, 2, 2), bool)
    examples = g.make_examples(np.zeros((count, 2, 2, 1)), ["it"] * count, masks, g.Vocabulary(["it"]), channels=1)
    network, info = g.fit(KEY, Bias(jnp.zeros(())), examples, num_steps, batch=batch, learning_rate=0.1)
    assert (info.cost, info.losses.shape, int(info.status)) == (num_steps * batch, (num_steps,), 0)
    assert float(info.losses[0]) == pytest.approx(math.log(2), rel=1e-5)
    # Adam's steps of one sign are as long as the rates, which fall as a cosine to 0.
    rates = 0.1 * 0.5 * (1 + np.cos(np.pi * np.arange(num_steps) / num_steps))
    assert float(network.value) == pytest.approx(rates.sum(), rel=0.02)


def test_levels_and_thresholds_at_their_ends():
    """An IoU that is a level reaches it; a probability that is the threshold is not above it; of equals the lowest."""
    both = np.array([[5], [6], [7], [8], [9], [10], [4]])
    counts = g.count_masks(both, np.full((7, 1), 10))
    assert counts.found.tolist() == [[6, 5, 4, 3, 2]]
    np.testing.assert_allclose(counts.precision(), [np.array([6, 5, 4, 3, 2]) / 7])
    assert counts.examples == 7
    chance = np.array([[[0.25, 0.5, 0.75]]], np.float32)
    inside, either = g.overlaps(chance, np.ones((1, 1, 3), bool), None, (0.25, 0.5, 0.75))
    assert (inside.tolist(), either.tolist()) == ([[2, 1, 0]], [[3, 3, 3]])
    tied = g.count_masks([[1, 4, 4, 4]], [[5, 5, 5, 5]])
    assert g.choose_threshold(tied, "validation", (0.1, 0.2, 0.3, 0.4)) == (1, 0.2)


@pytest.mark.parametrize("kind", [bool, int, np.uint8, np.float16])
def test_masks_that_are_cut_already_are_what_they_are_at_every_threshold(kind):
    masks = np.random.default_rng(0).random((2, 3, 4)) < 0.5
    found = masks ^ (np.arange(24).reshape(2, 3, 4) % 5 == 0)
    both, either = g.overlaps(found.astype(kind), masks)
    for got, wanted in ((both, found & masks), (either, found | masks)):
        np.testing.assert_array_equal(got, np.repeat(wanted.sum((1, 2))[:, None], len(g.THRESHOLDS), axis=1))


def test_first_weights_of_the_encoder_and_of_heads():
    """Uniform in ±1/√text_size, the forget gate alone open; heads normal over √width, the last one's law times that."""
    segmenter = functools.partial(g.Segmenter, num_words=5, depth=2, width=64, text_size=4, kernel_size=1)
    make = eqx.filter_jit(lambda key: (g.PhraseEncoder(key, 50, 25, embedding=40), segmenter(key)))
    encoder, network = make(KEY)
    bias, weight = np.asarray(encoder.bias), np.asarray(encoder.weight)
    np.testing.assert_array_equal(bias, np.repeat([0.0, 1.0, 0.0, 0.0], 25))
    assert weight.shape == (65, 100)
    assert 0.995 * 0.2 < np.abs(weight).max() <= 0.2
    assert weight.std() == pytest.approx(0.2 / 3**0.5, rel=0.03)
    embeddings = np.asarray(encoder.embeddings)
    assert embeddings.std() == pytest.approx(1.0, abs=5 / (2 * 2000) ** 0.5)
    for drawn, deviation in ((network.heads, 1 / 8), (network.last.kernel, (2 / 9 / 64) ** 0.5 / 8)):
        heads = np.asarray(drawn).ravel()
        assert heads.std() == pytest.approx(deviation, rel=5 / (2 * heads.size) ** 0.5)
        assert len(set(heads.tolist())) == heads.size
    for zeros in (network.head_shifts, network.last_shift, network.stem_shift):
        assert not np.asarray(zeros).any()


@pytest.mark.parametrize("modulation", ["filter", "film", "concatenation"])
def test_a_segmenter_hands_on_its_settings(modulation):
    """Sizes of every part by their numbers; nothing is computed."""
    sizes = {"text_size": 6, "depth": 3, "width": 4, "stem_width": 5, "filter_size": 3, "kernel_size": 1, "inputs": 2}
    made = functools.partial(g.Segmenter, num_words=7, modulation=modulation, dropout=0.3, **sizes)
    network = eqx.filter_eval_shape(made, KEY)
    assert network.stem.kernel.shape == (3, 3, 2, 5)
    assert (network.unet.depth, network.heads.shape, network.last.kernel.shape) == (3, (3, 4), (3, 3, 4, 1))
    assert [one.kernel.shape for one in network.unet.down] == [(1, 1, 26, 4), (1, 1, 8, 4), (1, 1, 8, 4)]
    assert [one.kernel.shape for one in network.unet.up] == [(1, 1, 8, 4), (1, 1, 8, 4), (1, 1, 4, 4)]
    filters = (*network.unet.down_filters, *network.unet.up_filters)
    assert [one.channels for one in filters] == [13, 4, 4, 4, 4, 4]
    for one in filters:
        assert one.dropout == 0.3
        # As many weights as a filter of three by three pixels has: (2 + 1) (3 c)², to half a unit of the hidden layer.
        numbers = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(one) if hasattr(leaf, "shape"))
        assert numbers == pytest.approx(3 * (3 * one.channels) ** 2, abs=3 + 2 * one.channels)
    whole, told = [math.prod(leaf.shape) for leaf in jax.tree.leaves(network) if hasattr(leaf, "shape")], []
    eqx.filter_eval_shape(lambda key: told.append((one := made(key)).num_parameters) or one, KEY)
    assert told == [sum(whole)]


@pytest.mark.parametrize("conditioning", ["both", "bottom-up", "top-down", "none"])
def test_both_ways_have_dropouts_of_their_own_at_every_level(conditioning):
    """A modulation that is handed a key: no two are alike, and without a key there are none; only keys are computed."""
    seen = []

    class Drawn(g.AbstractModulation):
        def __init__(self, key, channels, text_size):
            pass

        def __call__(self, features, text, *, key=None):
            seen.append(key)
            return features

    sizes = {"depth": 2, "width": 4, "kernel_size": 1, "modulation": Drawn, "conditioning": conditioning}
    wanted = {"both": 4, "none": 0}.get(conditioning, 2)

    def keys_of(make_key, key):
        seen.clear()
        g.LanguageUNet(make_key, 3, 2, **sizes).maps(jnp.ones((1, 4, 4, 3)), jnp.ones((1, 2)), key=key)
        return [jax.random.key_data(one) for one in seen if one is not None]

    keys = jax.jit(keys_of)(KEY, KEY)
    assert len({tuple(np.asarray(one).tolist()) for one in keys}) == len(keys) == wanted
    assert jax.jit(keys_of)(KEY, None) == []
    assert seen == [None] * wanted
