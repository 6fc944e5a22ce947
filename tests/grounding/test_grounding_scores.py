"""Loss and scores against closed forms and sets of pixels; vocabulary and encoder; padding changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import grounding as g

RNG = np.random.default_rng(0)


def test_loss_of_equal_logits_in_closed_form():
    """All logits 1: each scale counts H_s/H times q log(1 + e⁻¹) + (1 − q) log(1 + e), q the share of ones.

    With more pixels than half precision has numbers as well.
    """
    each = 0.25 * np.log1p(np.exp(-1)) + 0.75 * np.log1p(np.exp(1))

    def given(side, kind):
        masks = np.zeros((2, side, side), bool)
        masks[0, :, : side // 2] = True  # a quarter of all pixels, at every scale
        return [np.ones((2, size, size), kind) for size in (side // 4, side // 2, side)], masks

    kinds = ((8, np.float32), (256, np.float16), (256, jnp.bfloat16))
    losses = jax.jit(lambda examples: [g.multiscale_loss(*one) for one in examples])
    found = losses([given(*kind) for kind in kinds])
    np.testing.assert_allclose(found, (0.25 + 0.5 + 1) * each, rtol=1e-5)


def test_the_sign_of_the_loss():
    masks = np.array([[[True, False]]])
    right, wrong = (float(g.multiscale_loss([jnp.array([[[z, -z]]])], masks)) for z in (5.0, -5.0))
    assert right < 0.01
    assert wrong > 4


def test_padding_changes_nothing():
    masks, logits = RNG.random((2, 4, 4)) < 0.5, RNG.normal(size=(2, 4, 4)).astype(np.float32)
    valid = np.ones((2, 4, 4), bool)
    wider = lambda array, value: np.pad(array, ((0, 0), (0, 0), (0, 3)), constant_values=value)  # noqa: E731
    plain = float(g.multiscale_loss([jnp.asarray(logits)], masks, valid))
    padded = float(g.multiscale_loss([jnp.asarray(wider(logits, 7.0))], wider(masks, True), wider(valid, False)))
    assert padded == pytest.approx(plain, rel=1e-6)
    probabilities = 1 / (1 + np.exp(-logits))
    for one, two in zip(
        g.overlaps(probabilities, masks, valid),
        g.overlaps(wider(probabilities, 0.9), wider(masks, True), wider(valid, False)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


def test_padding_is_in_no_loss_and_no_mask():
    """Images of other heights and widths, beside which padding has wrong answers: pixel by pixel, in NumPy.

    H_s / H and W_s / W differ at odd sizes, and no image fills its row of the batch.
    """
    rng, sizes = np.random.default_rng(1), ((2, 3), (3, 4), (5, 7))
    masks, logits = rng.random((3, 5, 7)) < 0.5, [rng.normal(size=(3, *size)).astype(np.float32) for size in sizes]
    valid = np.zeros((3, 5, 7), bool)
    valid[0, :, :3] = valid[1, :4] = valid[2, :2, :6] = True
    logits[-1][~valid & masks], logits[-1][~valid & ~masks] = -7.0, 7.0
    chance = 1 / (1 + np.exp(-logits[-1]))
    found = jax.jit(lambda z, p: (g.multiscale_loss(z, masks, valid), *g.overlaps(p, masks, valid, (0.5,))))
    loss, both, either = found(logits, chance)
    wanted = 0.0
    for (height, width), z in zip(sizes, logits, strict=True):
        losses = []
        for image, row, column in np.ndindex(3, height, width):
            at = image, row * 5 // height, column * 7 // width  # the nearest pixel
            sign = 1 if masks[at] else -1
            if valid[at]:
                losses.append(np.log1p(np.exp(-sign * z[image, row, column])))
        wanted += height / 5 * np.mean(losses)
    assert float(loss) == pytest.approx(wanted, rel=1e-5)
    np.testing.assert_array_equal(both[:, 0], (valid & masks & (chance > 0.5)).sum((1, 2)))
    np.testing.assert_array_equal(either[:, 0], (valid & (masks | (chance > 0.5))).sum((1, 2)))


def test_nearest_is_pytorchs():
    line = np.arange(5).reshape(1, 1, 5)
    assert g.resize_nearest(line, (1, 3)).ravel().tolist() == [0, 1, 3]
    assert g.resize_nearest(line, (1, 10)).ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_scores_are_those_of_sets_of_pixels_and_add_up_over_batches():
    probabilities = RNG.random((6, 3, 4)).astype(np.float32)
    masks = RNG.random((6, 3, 4)) < 0.4
    masks[0] = False
    probabilities[0] = 0.01  # nothing to find, nothing found
    masks[1] = False  # nothing to find, something found
    whole = g.count_masks(*g.overlaps(probabilities, masks))
    for place, threshold in enumerate(g.THRESHOLDS):
        sets = []
        for chance, mask in zip(probabilities, masks, strict=True):
            found = {i for i, p in enumerate(chance.ravel()) if p > np.float32(threshold)}
            wanted = set(np.flatnonzero(mask))
            sets.append((len(found & wanted), len(found | wanted)))
        ious = np.array([1.0 if not either else both / either for both, either in sets])
        assert whole.mean_iou()[place] == pytest.approx(ious.mean())
        both, either = np.sum(sets, axis=0)
        assert whole.cumulative_iou()[place] == pytest.approx(both / either)
        np.testing.assert_allclose(whole.precision()[place], [(ious >= level).mean() for level in g.LEVELS])
        assert whole.empty[place] == sum(either == 0 for _, either in sets)
    parts = [g.count_masks(*g.overlaps(probabilities[rows], masks[rows])) for rows in (slice(0, 2), slice(2, 6))]
    for one, two in zip(parts[0].merge(parts[1]), whole, strict=True):
        np.testing.assert_allclose(one, two)


def test_nothing_at_all_has_a_cumulative_iou_of_one():
    assert g.count_masks([[0]], [[0]]).cumulative_iou().tolist() == [1.0]


def test_large_objects_decide_the_cumulative_iou():
    counts = g.count_masks([[90], [0]], [[100], [10]])
    assert counts.cumulative_iou()[0] == pytest.approx(90 / 110)
    assert counts.mean_iou()[0] == pytest.approx(0.45)


def test_the_encoder_reads_the_order_and_stops_at_the_end():
    encoder = g.PhraseEncoder(jax.random.key(0), 6, 5)
    words = np.array([[2, 3, 0, 0], [3, 2, 0, 0], [2, 3, 5, 4], [2, 3, 5, 5]])
    read = jax.jit(encoder.__call__)
    found = np.asarray(read(words, np.array([2, 2, 2, 3])))
    np.testing.assert_array_equal(found[0], found[2])  # what is behind the end counts nothing
    assert not np.allclose(found[0], found[1])
    assert not np.allclose(found[0], found[3])
    # One word by hand.
    x = np.asarray(encoder.embeddings)[2]
    i, _, o, new = np.split(x @ np.asarray(encoder.weight)[: len(x)] + np.asarray(encoder.bias), 4)
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    wanted = sigmoid(o) * np.tanh(sigmoid(i) * np.tanh(new))
    np.testing.assert_allclose(read(words, np.array([1, 1, 1, 1]))[0], wanted, atol=1e-5)


def test_own_vectors_of_words():
    vectors = RNG.normal(size=(6, 3)).astype(np.float32)
    np.testing.assert_array_equal(g.PhraseEncoder(jax.random.key(0), 6, 5, vectors).embeddings, vectors)


def test_vocabulary():
    vocabulary = g.Vocabulary.of(["The red square.", "the blue one"], max_words=4)
    words, lengths = vocabulary.encode(["the Red, one"])
    assert [vocabulary.words[number] for number in words[0]] == ["the", "red", "one", "<pad>"]
    assert lengths == [3]
    with pytest.warns(UserWarning, match="2 words are not known and become <unk>: cat, green"):
        assert vocabulary.encode(["the green cat"]).words.tolist() == [[6, 1, 1, 0]]
    # Every time that one is said counts, whichever phrase says it; the first five in order of the alphabet are named.
    said = ["cat green cat", "the cat", "frog eel dog ant", "ant the ant"]
    told = r"Vocabulary: 10 words are not known and become <unk>: ant, cat, dog, eel, frog$"
    with pytest.warns(UserWarning, match=told):
        words, lengths = vocabulary.encode(said)
    assert lengths.tolist() == [3, 2, 4, 3]
    assert (words == 1).sum(1).tolist() == [3, 1, 4, 2]


def test_a_vocabulary_has_room_for_its_longest_phrase_and_one_word_more():
    for phrases in (["red", "the red square"], ["the red square", "red"]):
        vocabulary = g.Vocabulary.of(phrases)
        assert vocabulary.max_words == 4
        assert vocabulary.encode(phrases).lengths.tolist() == [len(phrase.split()) for phrase in phrases]
