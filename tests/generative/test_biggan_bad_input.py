"""Wrong settings, images, labels and statistics for a BigGAN: the field, the rule, the value and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import generative as g

KEY = jax.random.key(0)
IMAGES, LABELS = np.zeros((4, 8, 8, 1)), np.array([0, 1, 0, 1])


def made(shape=(8, 8, 1), classes=2, **settings):
    return lambda: g.make_biggan(KEY, shape, classes, **{"channels": 4, "num_latents": 4} | settings)


def network():
    return g.perceptrons(KEY, (2, 3))[0]


CASES = {
    "side": (made((28, 28, 1)), r"make_biggan.shape must be .*\(8, 16, 32\).*got \(28, 28, 1\). Resize, or use kind"),
    "oblong": (made((8, 16, 1)), "make_biggan.shape must be"),
    "kind": (made(kind="linear"), "make_biggan.kind must be 'convolution' or 'dense'; got 'linear'"),
    "latents": (made(num_latents=5), "num_latents must be a multiple of blocks .* 2; got 5. The next size .* is 6"),
    "one-class": (made(classes=1), "num_classes must be >= 0 and not 1; got 1. One class tells nothing"),
    "channels": (made(channels=0), "make_biggan.channels must be >= 1; got 0"),
    "attention": (made(attention=True), "channels must be a multiple of 8 where there is attention; got 4"),
    "penalty": (made(penalty=-1.0), "OrthogonalPenalty.weight must be >= 0; got -1.0"),
    "penalty-kind": (made(penalty_kind="half"), "OrthogonalPenalty.kind must be 'off-diagonal' or 'full'"),
    "average-from": (lambda: g.Adversarial(jnp.sum, jnp.sum, average_from=-1), "average_from must be >= 0; got -1"),
    "split": (
        lambda: g.split_latents(jnp.ones((2, 5)), 3),
        "size divisible by 3; got 5. The next size that works is 6",
    ),
    "threshold": (lambda: g.truncated_normal(KEY, (2,), 0.0), "threshold must be > 0; got 0.0. Use None"),
    "variance": (lambda: g.truncated_variance(-1.0), "truncated_variance.threshold must be > 0"),
    "thresholds": (lambda: g.truncation_curve(KEY, None, [1.0, 0.0], {}), "thresholds must be .*each > 0.*inf for no"),
    "repeats": (lambda: g.truncation_curve(KEY, None, [1.0], {}, num_repeats=1), "num_repeats must be >= 2; got 1"),
    "iterations": (lambda: g.SpectrallyNormalised(network(), 0), "SpectrallyNormalised.num_steps must be >= 1; got 0"),
    "where": (lambda: g.SpectrallyNormalised(network(), where=lambda path: False), "must be true for at least one"),
    "momentum": (lambda: g.WholeBatch(network(), 1.0), "WholeBatch.momentum must be within 0 and 1"),
    "epsilon": (lambda: g.ConditionalBatchNorm(jnp.ones((1, 2)), jnp.ones((1, 2)), 0.0), "epsilon must be > 0"),
    "bias": (lambda: g.ConditionalBatchNorm(jnp.ones((1, 2)), jnp.ones((1, 3))), "bias must be of the shape of gain"),
    "weight": (lambda: g.Affine(jnp.ones((3, 2, 2))), "Affine.weight must be .inputs, outputs. or"),
    "orthogonal": (lambda: g.orthogonal(KEY, (3,)), "orthogonal.shapes must be of two axes at least"),
    "num_values": (lambda: g.top_singular_values(network(), 0), "num_values must be >= 1; got 0"),
    "few": (lambda: g.biggan_settings(1), "num_images must be >= 2; got 1"),
    "odd": (
        lambda: g.SelfAttention(*[jnp.ones((8, 1))] * 2, jnp.ones((8, 4)), jnp.ones((4, 8)), jnp.zeros(()))(  # pyright: ignore[reportCallIssue]
            jnp.ones((1, 3, 4, 8))
        ),
        "SelfAttention.x must be",
    ),
    "head": (
        lambda: g.ProjectionHead(jnp.ones((3, 1)), jnp.zeros(1), jnp.ones((2, 3)))(jnp.ones((1, 3))),
        "ProjectionHead.y must be labels of the rows, for a network with classes; got None",
    ),
    "copies": (lambda: g.copy_share(IMAGES, IMAGES, IMAGES[:2]), "held_out must be of as many rows as train"),
    "grey": (
        lambda: g.images_and_labels(IMAGES[..., 0]),
        r"images must be .*got \[4, 8, 8\]. Add the axis of channels",
    ),
    "bytes": (lambda: g.images_and_labels(IMAGES + 255), r"within -1 and 1; got .*255.0\). Scale images to \[-1, 1\]"),
    "few-labels": (
        lambda: g.images_and_labels(IMAGES, LABELS[:3]),
        r"labels must be one for each image, \[4\]; got \[3\]",
    ),
    "one-hot-labels": (
        lambda: g.images_and_labels(IMAGES, np.eye(4, dtype=int)),
        r"got \[4, 4\]. Of rows with a single",
    ),
    "beyond": (lambda: g.images_and_labels(IMAGES, LABELS + 1, 2), "labels must be below 2; got 2. Count from 0"),
    "negative": (lambda: g.images_and_labels(IMAGES, LABELS - 1), "labels must be >= 0; got -1"),
    "alone": (
        lambda: g.images_and_labels(IMAGES, 0 * LABELS),
        "of two classes at least; got 1. One class tells nothing",
    ),
    "alone and not the first": (
        lambda: g.images_and_labels(IMAGES, 0 * LABELS + 1),
        "of two classes at least; got 1. One class tells nothing",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_input(name):
    call, told = CASES[name]
    with pytest.raises(ValueError, match=told):
        call()


def test_labels_that_are_no_integers():
    with pytest.raises(TypeError, match=r"labels must be integers; got float64. Use labels.astype"):
        g.images_and_labels(IMAGES, LABELS * 1.0)


def test_a_batch_of_one_has_nothing_to_normalise_by():
    make = made(kind="dense", num_blocks=1)
    with pytest.raises(ValueError, match=r"at least two rows to normalise by; got 1. Give standing statistics"):
        jax.eval_shape(lambda: make().generator.network.function(jnp.ones((1, 4)), jnp.zeros(1, int)))  # pyright: ignore[reportFunctionMemberAccess]


def test_sampling_without_statistics():
    make = made(kind="dense", num_blocks=1)
    with pytest.raises(RuntimeError, match=r"statistics must be given .* Call standing\(key, state, labels\) first"):
        jax.eval_shape(lambda: make().sample(KEY, make().init(), 2, jnp.zeros(2, int)))


def standing(truncation):
    return g.StandingStatistics((), (), jnp.asarray(truncation), jnp.asarray(1), jnp.asarray(2))


@pytest.mark.parametrize(
    ("images", "labels", "told"),
    [
        (IMAGES + 255, LABELS, r"BigGAN.images must be within -1 and 1; got 255.0. Scale images"),
        (IMAGES, LABELS + 1, r"BigGAN.labels must be within 0 and 1; got \(1, 2\)"),
        (IMAGES, LABELS - 1, r"BigGAN.labels must be within 0 and 1; got \(-1, 0\)"),
        (None, None, "BigGAN.labels must be labels of the rows, for a network with classes; got None"),
    ],
)
def test_a_fit_knows_its_classes_and_its_range(images, labels, told):
    """What ``fit`` and ``sample`` ask the generator first, through the networks around it."""
    model = jax.eval_shape(made(kind="dense", num_blocks=1))
    with pytest.raises(ValueError, match=told):
        model.generator.check(images, *([] if labels is None else [labels]))
    with pytest.raises(TypeError, match=r"labels must be integers; got float64"):
        model.generator.check(IMAGES, LABELS * 1.0)
    model.generator.check(IMAGES, LABELS)


def test_fit_and_sample_ask(monkeypatch):
    class RefusedError(Exception):
        pass

    def refuse(self, *_):
        raise RefusedError

    make = made(kind="dense", num_blocks=1)
    monkeypatch.setattr(g.BigGANGenerator, "check", refuse)
    model = jax.eval_shape(make)
    with pytest.raises(RefusedError):
        model.fit(KEY, (IMAGES, LABELS), num_steps=1, batch=2)
    with pytest.raises(RefusedError):
        g.FittedAdversarial(model, None, None).sample(KEY, 4, LABELS, truncation=0.7)


def test_labels_of_a_generator_with_classes_cannot_be_left_out():
    make = made(kind="dense", num_blocks=1)
    with pytest.raises(ValueError, match=r"BigGANGenerator.y must be labels of the rows"):
        jax.eval_shape(lambda: make().generator.network.function(jnp.ones((2, 4))))  # pyright: ignore[reportFunctionMemberAccess]


MISMATCHES = [
    (0.7, 0.7, False),
    (0.5, 0.7, True),
    (0.5, None, True),
    (0.5, 0.5, False),
    (0.7, 0.5, True),
    (np.inf, 0.5, False),
]


@pytest.mark.parametrize(("made_with", "asked", "warns"), MISMATCHES)
def test_statistics_of_another_truncation(made_with, asked, warns, recwarn):
    from laureate.generative.adversarial_checks import check_truncation

    check_truncation(standing(made_with), asked)
    assert len(recwarn) == warns
    assert not warns or f"made with latents cut at {made_with}" in str(recwarn[0].message)


def test_training_that_is_lost_tells_the_last_singular_value():
    from laureate.generative.adversarial_checks import after_training

    spectrum = g.SpectralReport(jnp.array([[2.0, 1.0], [7.5, 1.0], [jnp.nan, 1.0]]), jnp.zeros((3, 2)))
    infos = type("Infos", (), {"status": jnp.array([0, 0, 1]), "regularisers": (), "spectra": (spectrum, spectrum)})
    with pytest.raises(FloatingPointError, match=r"got 1 of 3 steps not finite.*singular value was 7.5 before"):
        after_training("Adversarial", infos)
