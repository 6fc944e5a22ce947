"""Drawings that move and the GIFs made of them, read back by another library."""

import io
import itertools

import numpy as np
import pytest

from laureate.loops import Scene, Stroke, frames_of, gif_of, plain_scene, save_gif
from laureate.loops.scenes import LOOKS

RNG = np.random.default_rng(0)


def read(data):
    """The pictures of a GIF as Pillow sees them, and what it says of the file."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed").open(io.BytesIO(data))
    frames = []
    for number in range(image.n_frames):
        image.seek(number)
        frames.append(np.array(image.convert("RGB")))
    return np.stack(frames), image


@pytest.mark.parametrize(
    ("shape", "colours"),
    [
        ((3, 5, 7, 3), 1),
        ((1, 3, 3, 3), 2),
        ((4, 40, 60, 3), 4),
        ((3, 90, 110, 3), 37),  # the table of codes is full, and cleared
        ((3, 64, 50, 3), 256),
        ((2, 90, 110), 256),  # grey
    ],
)
def test_a_gif_is_read_back_bit_for_bit(shape, colours):
    palette = RNG.permutation(256)[:colours].astype(np.uint8)
    palette = palette if len(shape) == 3 else np.stack([palette, palette[::-1], palette ^ 85], axis=1)
    pictures = palette[RNG.integers(0, colours, shape[:3])]
    pictures[-1] = pictures[0]  # more than one frame may be the same
    found, _ = read(gif_of(pictures))
    np.testing.assert_array_equal(found, pictures if pictures.ndim == 4 else np.repeat(pictures[..., None], 3, axis=-1))


def unpacked(data, size):
    """The pixels of one picture's codes, read as the standard says; the last code must be the end."""
    bits, at, wide = "".join(f"{byte:08b}"[::-1] for byte in data), 0, size + 1
    table, before, pixels, following = {}, None, [], 0
    while True:
        assert at + wide <= len(bits), "a code is cut off"
        code, at = int(bits[at : at + wide][::-1], 2), at + wide
        if code == 1 << size:
            table, before, wide = {number: (number,) for number in range(1 << size)}, None, size + 1
            following = (1 << size) + 2
            continue
        if code == (1 << size) + 1:
            assert len(bits) - at < 8, "nothing follows the end"
            return pixels
        if before is not None and following < 4096:
            first = table[code][0] if code in table else before[0]
            table[following] = (*before, first)
            following += 1
            wide = min(12, wide + (following == 1 << wide))
        before = table[code]
        pixels.extend(before)


def codes_of(data):
    """The bits of a symbol, and the codes, of a GIF's first picture; it must have been made to be shown once."""
    place = 13 + 3 * 2 ** ((data[10] & 7) + 1) + 8 + 10  # behind the palette, what controls the picture, and its place
    size, codes, place = data[place], b"", place + 1
    while data[place]:
        codes, place = codes + data[place + 1 : place + 1 + data[place]], place + 1 + data[place]
    return size, codes


def test_a_gif_of_any_length_ends_where_it_should():
    """Also where the last code is the one at which codes become longer: Pillow would not mind a wrong end."""
    for number in range(2, 120):
        row = RNG.integers(0, 4, (1, 1, number)).astype(np.uint8)
        size, codes = codes_of(
            gif_of(np.concatenate([row, np.arange(4, dtype=np.uint8)[None, None]], axis=2), loop=False)
        )
        assert unpacked(codes, size) == [*row[0, 0].tolist(), 0, 1, 2, 3]


def test_a_gif_that_ends_where_its_table_is_full_ends_where_it_should():
    """No two neighbours come twice, so that every pixel is a code: 3,838 of them fill a table of 4,096."""
    steps = np.repeat(np.arange(1, 32, 2), 256)  # adding an odd number again and again meets all 256
    row = np.concatenate([[0], np.cumsum(steps)]).astype(np.uint8)
    for number in range(3836, 3842):
        size, codes = codes_of(gif_of(row[None, None, :number], loop=False))
        assert unpacked(codes, size) == row[:number].tolist()


def test_a_picture_stays_as_many_hundredths_as_it_should():
    """29 hundredths times 100 are a little less than 29."""
    picture = np.zeros((1, 1, 1), np.uint8)
    at = 13 + 3 * 2 + 4
    for hundredths in [*range(2, 300), 1999, 65500]:
        data = gif_of(picture, hundredths / 100, loop=False)
        assert data[at - 4 : at] == b"\x21\xf9\x04\x04"
        assert int.from_bytes(data[at : at + 2], "little") == hundredths


def test_frames_that_stay_are_kept_and_only_changes_are_drawn():
    still = np.zeros((5, 40, 40, 3), np.uint8)
    still[3:, 4, 5] = 200
    found, image = read(gif_of(still, seconds=0.25))
    np.testing.assert_array_equal(found, still)
    assert (image.n_frames, image.info["duration"], image.info["loop"]) == (5, 250, 0)
    assert len(gif_of(still)) < 500


def test_a_gif_may_be_shown_once(tmp_path):
    path = save_gif(tmp_path / "once.gif", np.zeros((2, 2, 2), np.uint8), loop=False)
    assert "loop" not in read(path.read_bytes())[1].info


def test_more_than_256_colours_are_rounded():
    many = RNG.integers(0, 256, (2, 30, 30, 3)).astype(np.uint8)
    found, _ = read(gif_of(many))
    assert np.abs(found.astype(int) - many).max() <= 26


@pytest.mark.parametrize(
    ("frames", "more", "said"),
    [
        (np.zeros((2, 3, 3)), {}, r"gif_of.frames must be of bytes \(uint8\).*Multiply floats"),
        (np.zeros((0, 3, 3), np.uint8), {}, "none of them 0"),
        (np.zeros((3, 3), np.uint8), {}, r"gif_of.frames must be of shape"),
        (np.zeros((2, 3, 3, 4), np.uint8), {}, r"gif_of.frames must be of shape"),
        (np.zeros((1, 1, 2**16), np.uint8), {}, "above 65535"),
        (np.zeros((2, 3, 3), np.uint8), {"seconds": 0.0}, "gif_of.seconds must be within 0.02 and 655"),
    ],
)
def test_what_is_no_film(frames, more, said):
    with pytest.raises(ValueError, match=said):
        gif_of(frames, **more)


LINE = Stroke(np.array([[[1.0, 1.0], [9.0, 1.0], [9.0, 5.0]]]), 1.0, "wall")
DOT = Stroke(np.array([[[2.0, 4.0]], [[6.0, 4.0]]]), 2.0, "goal", shown=[True, False])


def test_strokes_cover_what_they_should():
    found = frames_of(Scene(10.0, 6.0, (LINE, DOT)), pixels=100)
    assert found.shape == (2, 60, 100, 3)
    np.testing.assert_array_equal(found[0, 40, 20], (46, 139, 87))
    np.testing.assert_array_equal(found[1, 40, 20], 255)
    np.testing.assert_array_equal(found[1, 40, 60], 255)  # not shown there
    np.testing.assert_array_equal(found[1, 10, 10:90], np.broadcast_to((120, 126, 132), (80, 3)))
    # As many pixels as the areas: a disc of diameter 2, and a line of length 12 and width 1 with round ends.
    ink = lambda picture: np.sum((255 - picture.astype(float)).sum(-1)) / 100  # noqa: E731
    disc = (255 - np.array([46, 139, 87])).sum() * np.pi
    path = (255 - np.array([120, 126, 132])).sum() * (12 + np.pi / 4 - (1 - np.pi / 4) / 4)
    np.testing.assert_allclose(ink(found[1]), path, rtol=0.01)
    np.testing.assert_allclose(ink(found[0]), path + disc, rtol=0.01)
    square = frames_of(Scene(2.0, 2.0, (Stroke([[[1.0, 1.0]]], 1.0, square=True),)), 20)
    assert np.sum(square[0, ..., 0] == 23) == 100


def test_a_pixel_has_the_share_of_colour_that_is_covered_whatever_lies_below():
    """Squares whose edges cut a pixel, one over the other, in every colour; rounded, not cut."""
    white, pixels = np.full((10, 3), 255.0), np.arange(10)
    covered = lambda centre: np.clip(np.minimum(pixels + 1, centre + 2) - np.maximum(pixels, centre - 2), 0, 1)  # noqa: E731
    for number, (below, above) in enumerate(zip(LOOKS, reversed(LOOKS), strict=True)):
        first, second = 4 + 0.13 * (number + 1), 5 + 0.07 * (number + 1)
        strokes = [Stroke([[[x, 0.5]]], 4.0, look, square=True) for x, look in ((first, below), (second, above))]
        shade = white
        for centre, look in ((first, below), (second, above)):
            shade = shade + covered(centre)[:, None] * (np.array(LOOKS[look]) - shade)
        found = frames_of(Scene(10.0, 1.0, tuple(strokes)), 10)[0, 0]  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(found, np.round(shade))


def test_a_film_and_plain_values_have_the_proportions_of_the_sheet():
    """The height is the nearest whole number of pixels, at least one; strokes are so wide in thousandths of a sheet."""
    for width, height, pixels in itertools.product((0.7, 2.0, 10.0), (0.01, 1.0, 3.3), (7, 20)):
        scene = Scene(width, height, (Stroke([[[width / 2, height / 2]]], width / 4),))
        found = frames_of(scene, pixels)
        assert found.shape[2] == pixels
        assert abs(found.shape[1] - height * pixels / width) <= 0.5 or found.shape[1] == 1
        plain = plain_scene(scene)
        assert abs(plain["height"] - 1000 * height / width) <= 0.5
        assert plain["strokes"][0]["width"] == 250
        assert plain["strokes"][0]["points"] == [[500, round(500 * height / width)]]
    hair = plain_scene(Scene(10.0, 1.0, (Stroke([[[1.0, 0.0], [2.0, 0.0]]], 1e-3),)))
    assert hair["strokes"][0]["width"] == 1, "what is thin is drawn all the same"


def test_points_that_lie_in_one_place_change_no_line():
    """A line is drawn as without what is repeated in it, and a line of one place alone as a dot."""
    scene = lambda *points: Scene(10.0, 6.0, (Stroke([points], 1.0, "wall"),))  # noqa: E731
    first, middle, last = (1.0, 1.0), (9.0, 1.0), (9.0, 5.0)
    plain = frames_of(scene(first, middle, last), 40)
    for points in ((first, *[middle] * 3, last), (first, first, middle, last), (first, middle, last, last)):
        np.testing.assert_array_equal(frames_of(scene(*points), 40), plain)
    np.testing.assert_array_equal(frames_of(scene(middle, middle), 40), frames_of(scene(middle), 40))
    assert (plain < 255).any()


def test_a_scene_in_plain_values_has_all_that_is_drawn():
    plain = plain_scene(Scene(10.0, 6.0, (LINE, DOT)))
    assert (plain["width"], plain["height"], plain["frames"]) == (1000, 600, 2)
    line, dot = plain["strokes"]
    assert line == {"look": "wall", "width": 100, "points": [[100, 100, 900, 100, 900, 500]]}
    assert dot == {"look": "goal", "width": 200, "points": [[200, 400], [600, 400]], "shown": "10"}


@pytest.mark.parametrize(
    ("stroke", "said"),
    [
        (DOT._replace(points=np.zeros((2, 2))), r"Stroke.points must be of shape \[frames, points, 2\]"),
        (DOT._replace(points=np.full((1, 1, 2), np.nan)), "Stroke.points must be finite"),
        (DOT._replace(width=0.0), "Stroke.width must be > 0"),
        (DOT._replace(look="pink"), "Stroke.look must be one of ground, wall"),
        (DOT._replace(shown=[True] * 3), "of one number of frames; got .1, 2, 3."),
        (Stroke([[[1.0, 1.0]]], 1.0, shown=[]), "of one number of frames; got .0, 1."),
    ],
)
def test_strokes_that_cannot_be_drawn(stroke, said):
    with pytest.raises(ValueError, match=said):
        frames_of(Scene(10.0, 6.0, (stroke,)))
    with pytest.raises(ValueError, match=r"Scene.width, height must be > 0"):
        frames_of(Scene(0.0, 6.0, (DOT,)))
