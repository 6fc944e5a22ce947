"""Training is Adam with a cosine on batches drawn anew; networks of one's own are trained and asked as ours."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import grounding as g
from laureate._core import Status

RNG = np.random.default_rng(0)
KEY = jax.random.key(4)


class Plain(eqx.Module):
    """One's own: a logit that is linear in the image, and noise that shows which key it was given."""

    weight: jax.Array

    def __call__(self, images, words, lengths, *, key=None):
        noise = 0.0 if key is None else jax.random.normal(key)
        return [images[..., 0] * self.weight + noise]


EXAMPLES = g.make_examples(
    RNG.random((5, 4, 4, 1)), ["it"] * 5, RNG.random((5, 4, 4)) < 0.5, g.Vocabulary(["it"]), channels=1
)


def test_training_is_adam_with_a_cosine_and_a_key_a_step():
    network, info = g.fit(KEY, Plain(jnp.asarray(0.3)), EXAMPLES, 4, batch=3, learning_rate=0.2)

    @jax.jit
    def drawn():
        rows_key, steps_key = jax.random.split(KEY)
        noises = jax.vmap(lambda i: jax.random.normal(jax.random.fold_in(steps_key, i)))(jnp.arange(4))
        return jax.random.randint(rows_key, (4, 3), 0, 5), noises

    rows, noises = map(np.asarray, drawn())
    assert len(set(map(tuple, rows))) == len(set(noises.tolist())) == 4
    weight, first, second = 0.3, 0.0, 0.0
    for step in range(4):
        x, mask = EXAMPLES.images[rows[step], ..., 0].astype(float), EXAMPLES.masks[rows[step]]
        logits = x * weight + noises[step]
        chance = 1 / (1 + np.exp(-logits))
        loss = -np.log(np.where(mask, chance, 1 - chance)).mean()
        assert float(info.losses[step]) == pytest.approx(loss, rel=1e-4)
        slope = ((chance - mask) * x).mean()
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = 0.2 * 0.5 * (1 + np.cos(np.pi * step / 4))
        weight -= rate * (first / (1 - 0.9 ** (step + 1))) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
    assert float(network.weight) == pytest.approx(weight, rel=1e-4)
    assert int(info.cost) == 12


def test_a_network_of_ones_own_is_asked_without_noise_for_its_finest_logits():
    class Two(Plain):
        def __call__(self, images, words, lengths, *, key=None):
            return [jnp.zeros((len(images), 1, 1)), *super().__call__(images, words, lengths, key=key)]

    found = g.predict(Two(jnp.asarray(2.0)), EXAMPLES.images, g.Tokens(EXAMPLES.words, EXAMPLES.lengths))
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-2 * EXAMPLES.images[..., 0])), rtol=1e-5)


def test_images_of_several_sizes_are_asked_as_they_are_trained_on():
    """Padded at the right and below; of the padding nothing is meant."""
    images = [RNG.random((3, 4, 1)), RNG.random((4, 2, 1))]
    found = g.predict(Plain(jnp.asarray(2.0)), images, g.Tokens(EXAMPLES.words[:2], EXAMPLES.lengths[:2]))
    assert found.shape == (2, 4, 4)
    for chance, image in zip(found, images, strict=True):
        high, wide, _ = image.shape
        wanted = np.zeros((4, 4))
        wanted[:high, :wide] = 1 / (1 + np.exp(-2 * image[..., 0]))
        np.testing.assert_allclose(chance, wanted, rtol=1e-5)


@pytest.mark.parametrize("bad", [None, 0, 1, 2])
def test_a_loss_that_is_not_finite_is_told_wherever_it_stands(bad, monkeypatch, recwarn):
    losses = np.where(np.arange(3) == bad, np.inf, 0.5) if bad is not None else np.full(3, 0.5)
    monkeypatch.setattr("laureate.grounding.training._train", lambda key, network, *more, **settings: (network, losses))
    _, info = g.fit(KEY, Plain(jnp.asarray(0.3)), EXAMPLES, 3, batch=2)
    assert int(info.status) == (Status.OK if bad is None else Status.DIVERGED)
    assert len(recwarn) == (bad is not None)
    assert (int(info.cost), len(info.losses)) == (6, 3)


def test_dropout_is_a_setting_and_has_no_slope():
    filters = g.LanguageFilter(KEY, 2, 3, dropout=jnp.asarray(0.4))
    slope = eqx.filter_jit(
        eqx.filter_grad(lambda one: jnp.sum(jnp.cos(jnp.arange(16.0)).reshape(2, 2, 2, 2) * one(MAPS, TEXT, key=KEY)))
    )(filters)
    assert float(slope.dropout) == 0
    assert float(jnp.abs(slope.weight).max()) > 0


MAPS, TEXT = np.ones((2, 2, 2, 2), np.float32), RNG.normal(size=(2, 3)).astype(np.float32)


def test_kernels_in_half_precision_are_normalised():
    kernels = np.array([[300.0, 400.0], [0.0, 0.0]], np.float16)  # whose squares half precision does not hold
    found = np.asarray(jax.jit(g.normalise_kernels)(kernels))
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0]], atol=1e-3)


def test_kernels_of_bfloat16_are_rounded_once():
    """As NumPy's in double precision, rounded; outside jit, where XLA does not join what is rounded in between."""
    kernels = jnp.asarray(np.random.default_rng(1).normal(size=(5, 7)), jnp.bfloat16)
    exact = np.asarray(kernels, np.float64)
    wanted = (exact / np.linalg.norm(exact, axis=1, keepdims=True)).astype(jnp.bfloat16)
    found = g.normalise_kernels(kernels)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(found, np.float64), wanted.astype(np.float64))


def test_padding_is_at_the_right_and_below_and_is_marked():
    images = [np.full((2, 3, 1), 0.5), np.full((3, 2, 1), 0.25)]
    masks = [np.ones((2, 3)), np.ones((3, 2))]
    found = g.make_examples(images, ["it", "it"], masks, g.Vocabulary(["it"]), channels=1)
    np.testing.assert_array_equal(found.valid[0], [[1, 1, 1], [1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(found.valid[1], [[1, 1, 0]] * 3)
    np.testing.assert_array_equal(found.masks, found.valid)
    np.testing.assert_array_equal(found.images[..., 0] > 0, found.valid)


@pytest.mark.parametrize(
    ("split", "fine"), [("validation", True), ("latest", True), ("testA", False), ("my_test", False)]
)
def test_a_test_by_any_name_chooses_no_threshold(split, fine):
    counts = g.count_masks([[1]], [[2]])
    if fine:
        assert g.choose_threshold(counts, split, (0.5,)) == (0, 0.5)
    else:
        with pytest.raises(ValueError, match="Choose on validation"):
            g.choose_threshold(counts, split, (0.5,))
