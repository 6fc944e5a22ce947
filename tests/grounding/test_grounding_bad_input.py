"""Wrong input is refused by its name, with the rule, the value and a remedy; nothing is compiled for it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import grounding as g
from networks import drawn

KEY = jax.random.key(0)
WORDS = g.Vocabulary.of(["the red square"], max_words=4)
IMAGE, MASK = np.full((1, 4, 6, 3), 0.5), np.ones((1, 4, 6))
SAID = ["the red square"]
FILTER = drawn(lambda key: g.LanguageFilter(key, 4, 2))
UNET = drawn(lambda key: g.LanguageUNet(key, 3, 6, depth=3, width=4, kernel_size=3))
NETWORK = drawn(lambda key: g.Segmenter(key, 5, depth=1, width=4, text_size=4))
EXAMPLES = g.make_examples(IMAGE, SAID, MASK, WORDS)
COUNTS = g.count_masks([[1]], [[2]])


def examples(images=IMAGE, phrases=SAID, masks=MASK, **settings):
    return lambda: g.make_examples(images, phrases, masks, WORDS, **settings)


def one_pixel(value):
    image = IMAGE.copy()
    image[0, 1, 2, 0] = value
    return image


REFUSED = {
    "channels first": (
        examples(IMAGE.transpose(0, 3, 1, 2)),
        r"images must be \[height, width, 3\].*Channels come last",
    ),
    "bytes": (
        examples((IMAGE * 255).astype(np.uint8)),
        r"floats in \[0, 1\]; got 'uint8 from 127 to 127'. Divide bytes",
    ),
    "range": (examples(IMAGE * 255), r"floats in \[0, 1\]; got 'float64 from 127.5 to 127.5'. Divide bytes by 255"),
    "below 0": (examples(IMAGE - 1), r"got 'float64 from -0.5 to -0.5'. Bring them into \[0, 1\]"),
    "one pixel below 0": (examples(one_pixel(-0.5)), r"got 'float64 from -0.5 to 0.5'. Bring them into \[0, 1\]"),
    "one pixel above 1": (examples(one_pixel(1.5)), r"got 'float64 from 0.5 to 1.5'. Divide bytes by 255"),
    "not finite": (examples(IMAGE * np.nan), r"make_examples.images must be finite"),
    "grey": (examples(IMAGE[..., :1]), r"A grey image: repeat it 3 times"),
    "grey without an axis": (examples([IMAGE[0, :, :, 0]]), r"A grey image"),
    "soft mask": (examples(masks=MASK * 0.5), r"masks must be of 0 and 1 alone; got \[0.5\]. Threshold"),
    "mask of bytes": (examples(masks=MASK * 255), r"masks must be of 0 and 1 alone; got \[255.0\]"),
    "mask of another size": (
        examples(masks=MASK[:, 1:]),
        r"masks must be \(4, 6\), as large as the image; got \(3, 6\)",
    ),
    "width and height swapped": (examples(masks=MASK.transpose(0, 2, 1)), r"got \(6, 4\). Is it \(width, height\)"),
    "empty mask": (examples(masks=MASK * 0), r"masks must be not empty; got '0 pixels'. Say allow_empty=True"),
    "fewer phrases": (examples(phrases=[]), r"phrases must be one an image, 1; got 0"),
    "fewer masks": (examples(masks=MASK[:0]), r"masks must be one an image, 1; got 0"),
    "empty phrase": (examples(phrases=["  "]), r"Vocabulary.phrase must be at least one word; got '  '"),
    "long phrase": (examples(phrases=["the red red red square"]), r"must be at most 4 words.*nothing is cut off"),
    "one phrase": (lambda: WORDS.encode("the"), r"Vocabulary.phrases must be a list of strings; got 'str'"),
    "no words": (lambda: g.Vocabulary([]), r"Vocabulary.words must be one or more"),
    "longest": (lambda: g.Vocabulary(["a"], 0), r"Vocabulary.max_words must be >= 1"),
    "longest of all": (lambda: g.Vocabulary.of(SAID, 0), r"Vocabulary.max_words must be >= 1; got 0"),
    "text not divisible": (
        lambda: g.LanguageUNet(KEY, 3, 7, depth=3),
        r"text_size must be a multiple of depth 3; got 7",
    ),
    "depth": (lambda: g.LanguageUNet(KEY, 3, 6, depth=0), r"LanguageUNet.depth must be >= 1; got 0"),
    "width": (lambda: g.LanguageUNet(KEY, 3, 6, width=0), r"LanguageUNet.width must be >= 1"),
    "even kernel": (lambda: g.LanguageUNet(KEY, 3, 6, kernel_size=4), r"LanguageUNet.kernel_size must be odd"),
    "way": (lambda: g.LanguageUNet(KEY, 3, 6, conditioning="up"), r"conditioning must be one of both, bottom-up"),
    "too small": (lambda: UNET(jnp.ones((1, 7, 9, 3)), jnp.ones((1, 6))), r"at least 8 × 8 positions for depth 3"),
    "text of another size": (lambda: UNET(jnp.ones((1, 8, 8, 3)), jnp.ones((1, 5))), r"text must be \[1, 6\]"),
    "filter channels": (lambda: FILTER(jnp.ones((1, 4, 2, 2)), jnp.ones((1, 2))), r"features must be .* 4\], channels"),
    "filter text": (lambda: FILTER(jnp.ones((2, 2, 2, 4)), jnp.ones((1, 2))), r"LanguageFilter.text must be \[2, 2\]"),
    "no channels": (lambda: g.FiLM(KEY, 0, 2), r"FiLM.channels must be >= 1"),
    "no text": (lambda: g.Concatenation(KEY, 2, 0), r"Concatenation.text_size must be >= 1"),
    "even filter": (lambda: g.LanguageFilter(KEY, 4, 2, kernel_size=2), r"LanguageFilter.kernel_size must be odd"),
    "dropout": (lambda: g.LanguageFilter(KEY, 4, 2, dropout=1.0), r"LanguageFilter.dropout must be in \[0, 1\)"),
    "dropout of film": (lambda: g.FiLM(KEY, 4, 2, dropout=-0.1), r"FiLM.dropout must be in"),
    "hidden": (lambda: g.FiLM(KEY, 4, 2, hidden=0), r"FiLM.hidden must be None, 'matched' or an integer >= 1"),
    "memory": (
        lambda: g.LanguageFilter(KEY, 1032, 64, kernel_size=3),
        r"megabytes must be >= 2376.7, its weights; got 1024.0. Use fewer channels",
    ),
    "little memory": (
        lambda: g.LanguageFilter(KEY, 64, 31, megabytes=0.4),
        r"megabytes must be >= 0.5, its weights; got 0.4",
    ),
    "kernels": (
        lambda: g.filter_each(jnp.ones((2, 3, 3, 1)), jnp.ones((1, 3, 3, 1, 1))),
        r"kernels must be \[2, s, s, 1",
    ),
    "doubled size": (
        lambda: g.double(jnp.ones((1, 2, 2, 1)), jnp.ones((3, 3, 1, 1)), (5, 4)),
        r"double.size must be 2 × 2 when it is halved and rounded up; got 5 × 4",
    ),
    "modulation": (
        lambda: g.Segmenter(KEY, 5, modulation="attention"),
        r"one of filter, film, concatenation, or a fun",
    ),
    "image of a network": (lambda: NETWORK(jnp.ones((1, 8, 8, 1)), *WORDS.encode(SAID)), r"Segmenter.images must be"),
    "lengths": (lambda: NETWORK.encoder(np.ones((1, 3), int), np.array([0])), r"lengths must be in 1 to 3; got"),
    "long lengths": (lambda: NETWORK.encoder(np.ones((1, 3), int), np.array([4])), r"lengths must be in 1 to 3; got"),
    "one axis of words": (
        lambda: NETWORK.encoder(np.ones(3, int), np.array([1])),
        r"words must be \[phrases, places\]",
    ),
    "vectors": (lambda: g.PhraseEncoder(KEY, 5, 4, np.ones((4, 2))), r"embedding must be a size or vectors \[5, e\]"),
    "number of words": (lambda: g.PhraseEncoder(KEY, 2, 4), r"PhraseEncoder.num_words must be >= 3"),
    "threshold on the test": (
        lambda: g.choose_threshold(COUNTS, "test", (0.5,)),
        r"split must be another than the one",
    ),
    "thresholds": (lambda: g.choose_threshold(COUNTS, "validation"), r"choose_threshold.thresholds must be 1"),
    "logits alone": (lambda: g.multiscale_loss(jnp.ones((1, 2, 2)), MASK), r"logits must be a list, one entry a scale"),
    "loss of another size": (lambda: g.multiscale_loss([jnp.ones((1, 6, 4))], MASK), r"Are height and width swapped"),
    "valid of another size": (
        lambda: g.multiscale_loss([jnp.ones((1, 4, 6))], MASK, np.ones((1, 4, 4), bool)),
        r"multiscale_loss.valid must be of the masks' shape",
    ),
    "overlaps": (lambda: g.overlaps(MASK, MASK[:, 1:]), r"overlaps.masks must be of shape \(1, 4, 6\)"),
    "counts": (lambda: g.count_masks([1], [2]), r"intersections must be \[examples, thresholds\]"),
    "steps": (lambda: g.fit(KEY, NETWORK, EXAMPLES, 0), r"fit.num_steps must be >= 1"),
    "batch": (lambda: g.fit(KEY, NETWORK, EXAMPLES, 1, batch=0), r"fit.batch must be >= 1"),
    "rate": (lambda: g.fit(KEY, NETWORK, EXAMPLES, 1, learning_rate=0.0), r"fit.learning_rate must be > 0"),
    "raw examples": (lambda: g.fit(KEY, NETWORK, (IMAGE, MASK), 1), r"fit.examples must be made by make_examples"),
    "no padding mask": (lambda: g.fit(KEY, NETWORK, EXAMPLES._replace(valid=None), 1), r"fit.valid must be given"),
    "fewer tokens": (lambda: g.predict(NETWORK, IMAGE, WORDS.encode(SAID * 2)), r"one phrase an image, 1; got 2"),
    "bytes to predict": (lambda: g.predict(NETWORK, IMAGE * 255, WORDS.encode(SAID)), r"predict.images must be floats"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        call()


def test_what_may_be_given():
    assert not g.make_examples(IMAGE, SAID, MASK * 0, WORDS, allow_empty=True).masks.any()
    for masks in (MASK.astype(bool), MASK.astype(int)):
        assert g.make_examples(IMAGE, SAID, masks, WORDS).masks.all()


def test_images_of_several_sizes_are_padded_below_and_at_the_right():
    images, masks = [IMAGE[0], IMAGE[0, :3, :5]], [MASK[0], MASK[0, :3, :5]]
    made = g.make_examples(images, SAID * 2, masks, WORDS)
    assert made.images.shape == (2, 4, 6, 3)
    assert made.valid.sum((1, 2)).tolist() == [24, 15]
    assert made.valid[1, :3, :5].all()
    assert not made.images[1, 3:].any()
    assert not made.masks[1, :, 5:].any()


@pytest.mark.slow
def test_divergence_is_told():
    broken = drawn(lambda key: g.Segmenter(key, 5, depth=1, width=4, text_size=4, kernel_size=3))
    broken = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf) * np.nan), broken)
    with pytest.warns(UserWarning, match="a loss is not finite; try a lower learning_rate"):
        _, info = g.fit(KEY, broken, EXAMPLES, 2, batch=2)
    assert int(info.status) == 1
