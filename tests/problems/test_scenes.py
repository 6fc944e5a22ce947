"""Scenes and their grammar: exact masks, phrases that mean what they say, pairs that are held out."""

import jax
import numpy as np
import pytest

from laureate.problems.scenes import COLOURS, KINDS, SHAPES, Objects, Pool, Scenes, evaluate, render, shape_area

KEY = jax.random.key(0)
ALL = " ".join(KINDS)


def of(drawn, row):
    return Objects(*(leaf[row] for leaf in drawn.objects))


@pytest.mark.parametrize("grid", [2, 3])
def test_a_mask_is_what_its_phrase_means_when_it_is_read_again(grid):
    scenes = Scenes(size=24, grid=grid, kinds=ALL)
    drawn = scenes.draw(KEY, 600)
    _, each = render(drawn.objects, 24)
    for row, phrase in enumerate(drawn.phrases):
        meant = evaluate(phrase, of(drawn, row), 24, grid)
        np.testing.assert_array_equal((each[row] & meant[:, None, None]).any(0), drawn.masks[row], err_msg=phrase)
        assert meant.any() == (KINDS[drawn.kinds[row]] != "absent"), phrase
    assert set(" ".join(drawn.phrases).split()) == set(scenes.words)
    assert np.bincount(drawn.kinds).tolist() == [100] * 6


@pytest.mark.parametrize("held_out", [0, 3])
def test_of_thirty_six_objects_too_some_pair_is_absent_that_may_be_named(held_out):
    """Such scenes show all pairs more often than not, unless they are made to leave one out; no other scene changes."""
    scenes = Scenes(size=36, grid=6, kinds="absent attribute", held_out=held_out, noise=0.0)
    drawn = scenes.draw(KEY, 24)
    pairs = drawn.objects.colour * len(SHAPES) + drawn.objects.shape
    named = [f"the {colour} {shape}" for colour in COLOURS for shape in SHAPES]
    for row, phrase in enumerate(drawn.phrases):
        present = set(pairs[row].tolist())
        assert not present & set(scenes.novel)
        assert (named.index(phrase) in present) == (row % 2 == 1)
        assert named.index(phrase) not in scenes.novel
        assert drawn.masks[row].any() == (row % 2 == 1)
    assert max(len(set(row)) for row in pairs[1::2].tolist()) == 12 - held_out
    plain = Scenes(size=36, grid=6, kinds="attribute", held_out=held_out, noise=0.0).draw(KEY, 24)
    before = plain.objects.colour * len(SHAPES) + plain.objects.shape
    changed = (before != pairs).any(axis=1)
    full = np.array([len(set(row)) == 12 - held_out for row in before.tolist()])
    np.testing.assert_array_equal(changed, full & (np.arange(24) % 2 == 0))
    assert changed.any()


def scene(*described):
    """Objects by hand on 16 × 16: (colour, shape, large, y, x)."""
    colours, shapes, large, y, x = zip(*described, strict=True)
    ones = np.ones(len(described))
    return Objects(
        np.array([list(COLOURS).index(c) for c in colours]),
        np.array([SHAPES.index(s) for s in shapes]),
        np.array(large),
        3 * ones,
        np.stack([y, x], axis=1).astype(float),
        ones,
    )


def test_phrases_by_hand():
    four = scene(
        ("red", "square", True, 4, 4), ("blue", "cross", False, 4, 12),
        ("red", "cross", True, 12, 4), ("green", "square", False, 12, 12),
    )  # fmt: skip
    wanted = {
        "the red square": [0],
        "the red one on the bottom": [2],
        "the red one on the left": [0, 2],
        "the red one on the right": [],
        "the square above a red cross": [0],
        "the cross right of a red square": [1],
        "the square right of a red cross": [3],
        "the cross below a blue cross": [2],
        "the cross left of a green square": [2],
        "the small cross": [1],
        "the large square": [0],
        "the cross that is not red": [1],
        "the yellow cross": [],
    }
    for phrase, places in wanted.items():
        assert np.flatnonzero(evaluate(phrase, four, 16, 2)).tolist() == places, phrase
    with pytest.raises(ValueError, match="phrase must be of the grammar"):
        evaluate("red square", four, 16, 2)


def test_areas_are_those_of_the_plane_within_a_pixel_along_the_border():
    drawn = Scenes(size=64).draw(KEY, 100)
    images, each = render(drawn.objects, 64)
    for row, place in np.ndindex(100, 4):
        radius = float(drawn.objects.radius[row, place])
        border = 8 * radius  # at least as long as that of any of the shapes
        area = shape_area(int(drawn.objects.shape[row, place]), radius)
        assert abs(each[row, place].sum() - area) <= border / 2
    assert each.sum(1).max() == 1  # objects do not touch
    first = each[:, 0]
    tint = np.array(list(COLOURS.values()))[drawn.objects.colour[:, 0]] * drawn.objects.brightness[:, 0, None]
    np.testing.assert_allclose(images[first], np.repeat(tint, first.sum((1, 2)), axis=0))


@pytest.mark.slow
def test_areas_on_average_are_exact():
    """Centres are at random places among several pixels, so that the mean number of pixels is the area."""
    drawn = Scenes(size=64).draw(KEY, 1000)
    _, each = render(drawn.objects, 64)
    for shape in range(3):
        chosen = drawn.objects.shape == shape
        ratio = each.sum((2, 3))[chosen] / np.array([shape_area(shape, r) for r in drawn.objects.radius[chosen]])
        assert abs(ratio.mean() - 1) < 5 * ratio.std() / chosen.sum() ** 0.5 + 0.002


def test_pairs_that_are_held_out_are_in_no_scene_but_the_novel_ones():
    scenes = Scenes(held_out=2)
    pairs = lambda drawn: 3 * drawn.objects.colour + drawn.objects.shape  # noqa: E731
    drawn, novel = scenes.draw(KEY, 400), scenes.draw_novel(KEY, 100)
    assert not np.isin(pairs(drawn), [0, 4]).any()
    assert np.isin(pairs(novel), [0, 4]).any(1).all()
    assert not {"red square", "green cross"} & {" ".join(p.split()[-2:]) for p in drawn.phrases}
    assert set(novel.phrases) == {"the red square", "the green cross"}
    assert novel.masks.any((1, 2)).all()
    assert np.isin(pairs(novel), [0, 4]).sum(1).max() == 1
    # The control: the same scenes, but for one object, of a pair that is drawn, with the same colours and shapes.
    familiar = scenes.draw_familiar(KEY, 100)
    assert set(familiar.phrases) == {"the red cross", "the green square"}
    assert (np.isin(pairs(familiar), [1, 3]).sum(1) == 1).all()
    other = pairs(familiar) != pairs(novel)
    assert (other.sum(1) == 1).all()
    np.testing.assert_array_equal(pairs(familiar)[other], np.where(pairs(novel)[other] == 0, 1, 3))
    for field in ("radius", "centre", "brightness"):
        np.testing.assert_array_equal(getattr(familiar.objects, field), getattr(novel.objects, field))
    assert np.isin([1, 3], pairs(drawn)).all()
    # Every word of them is known.
    assert {"red", "green", "square", "cross"} <= set(" ".join(drawn.phrases).split())
    with pytest.raises(ValueError, match="held_out must be >= 2 to draw novel scenes"):
        Scenes().draw_novel(KEY, 1)


def test_the_same_key_gives_the_same_scenes_and_images_are_in_range():
    one, two, other = Scenes().draw(KEY, 9), Scenes().draw(KEY, 9), Scenes().draw(jax.random.key(1), 9)
    np.testing.assert_array_equal(one.images, two.images)
    assert one.phrases == two.phrases
    assert not np.array_equal(one.images, other.images)
    assert one.images.dtype == np.float32
    assert one.images.min() >= 0
    assert one.images.max() <= 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Scenes(grid=1), "Scenes.grid must be >= 2"),
        (lambda: Scenes(size=17), "Scenes.size must be a multiple of grid 2"),
        (lambda: Scenes(size=8), "cells of at least 6 pixels"),
        (lambda: Scenes(kinds="colour"), "Scenes.kinds must be among attribute"),
        (lambda: Scenes(kinds=" "), "Scenes.kinds must be among .* got ' '"),
        (lambda: Scenes(held_out=4), "Scenes.held_out must be 0, 2 or 3"),
        (lambda: Scenes(noise=-1), "Scenes.noise must be >= 0"),
        (lambda: Scenes().draw(KEY, 0), "Scenes.num must be >= 1"),
        (lambda: Pool(np.ones((1, 2, 2)), np.ones((1, 2, 2)), ["x"]), r"Pool.images must be \[n, height, width, 3\]"),
        (lambda: Pool(np.ones((1, 2, 2, 3)), np.ones((1, 3, 2)), ["x"]), r"Pool.masks must be \(1, 2, 2\)"),
        (lambda: Pool(np.ones((1, 2, 2, 3)), np.ones((1, 2, 2)), []), "Pool.phrases must be 1"),
    ],
)
def test_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
