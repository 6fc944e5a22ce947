"""What a picture shows is what it was given: numbers are read back from its pixels, texts from its elements."""

import itertools
import math
from xml.etree import ElementTree

import pytest

from laureate.pages.charts import Axis, Series, Tile, area_map, curve_chart, interval_chart, strip, treemap

HOSTILE = "a<b>&\"c'"


def elements(text: str, name: str, look: str = "") -> list[ElementTree.Element]:
    root = ElementTree.fromstring(f"<page>{text}</page>")
    return [one for one in root.iter(name) if look in ("", one.get("class", "").split(" ")[0])]


def texts(text: str) -> list[str]:
    root = ElementTree.fromstring(f"<page>{text}</page>")
    return [value for one in root.iter() for value in (one.text or "", *one.attrib.values())]


@pytest.mark.parametrize("log", [False, True])
def test_an_axis_keeps_its_share_free_at_both_ends_and_is_even(log):
    values = [1.0, 2.0, 100.0]
    axis = Axis(values, 10.0, 110.0, log=log, pad=0.25)
    assert axis(1.0) == pytest.approx(10 + 100 / 6)  # a quarter of the spread at each end: one sixth of the whole
    assert axis(100.0) == pytest.approx(110 - 100 / 6)
    middle = 10.0 if log else 50.5
    assert axis(middle) == pytest.approx(60.0)
    assert axis(-5.0 if log else -math.inf) == 10.0
    assert axis(0.0) == (10.0 if log else pytest.approx(axis(1.0) - (axis(2.0) - axis(1.0))))
    one = Axis([4.0], 0.0, 1.0, pad=0.5)
    assert (one.low, one.high) == pytest.approx((4.0 - 0.2, 4.0 + 0.2))


def test_an_interval_chart_shows_every_number_in_its_place():
    seeds, effect, low, high, lines = [1.0, 4.0, 3.0], 2.5, 2.0, 3.2, [(0.0, HOSTILE), (0.5, "margin")]
    drawn = interval_chart(seeds, effect, low, high, lines, HOSTILE, holds=(0.5, math.inf))
    axis = Axis([*seeds, effect, low, high, 0.0, 0.5], 12, 388)
    assert [float(one.get("cx", 0)) for one in elements(drawn, "circle", "seed")] == [
        pytest.approx(axis(seed), abs=0.06) for seed in seeds
    ]
    (mean,) = elements(drawn, "circle", "mean")
    (span,) = elements(drawn, "line", "span")
    assert float(mean.get("cx", 0)) == pytest.approx(axis(effect), abs=0.06)
    assert [float(span.get(end, 0)) for end in ("x1", "x2")] == [pytest.approx(axis(v), abs=0.06) for v in (low, high)]
    rules = [float(one.get("x1", 0)) for one in elements(drawn, "line", "rule")]
    assert rules == [pytest.approx(axis(value), abs=0.06) for value, _ in lines]
    (holds,) = elements(drawn, "rect", "holds")
    first, width = float(holds.get("x", 0)), float(holds.get("width", 0))
    assert (first, first + width) == (pytest.approx(axis(0.5), abs=0.1), pytest.approx(388, abs=0.1))
    assert texts(drawn).count(HOSTILE) == 3  # as label, as description and as the name of a line
    small = strip(effect, low, high, [0.5], (-math.inf, 0.5), HOSTILE)
    axis = Axis([effect, low, high, 0.5], 4, 116, pad=0.12)
    (span,), (holds,) = elements(small, "line", "span"), elements(small, "rect", "holds")
    assert [float(span.get(end, 0)) for end in ("x1", "x2")] == [pytest.approx(axis(v), abs=0.06) for v in (low, high)]
    assert float(holds.get("x", 0)) == 4.0
    assert float(holds.get("width", 0)) == pytest.approx(axis(0.5) - 4, abs=0.1)
    assert HOSTILE in texts(small)


def test_a_curve_chart_shows_every_number_in_its_place():
    one = Series(HOSTILE, [1.0, 10.0, 1000.0], [2.0, 1.0, 1.5], [1.5, 0.5, 1.0], [2.5, 1.5, 4.0])
    drawn = curve_chart([one], HOSTILE, HOSTILE, HOSTILE, log_x=True)
    across = Axis(one.x, 58, 438, True, pad=0.0)
    up = Axis([*one.middle, *one.low, *one.high], 250, 12)
    points = lambda kind: [tuple(map(float, p.split(","))) for p in elements(drawn, kind)[0].get("points", "").split()]  # noqa: E731
    wanted = lambda ys: [pytest.approx((across(x), up(y)), abs=0.06) for x, y in zip(one.x, ys, strict=True)]  # noqa: E731
    assert points("polyline") == wanted(one.middle)
    assert points("polygon") == wanted(one.high) + wanted(one.low)[::-1]
    assert up(4.0) < up(0.5)  # larger values are higher up
    assert texts(drawn).count(HOSTILE) == 6  # label, description, both axes, the line's title, the legend


SIZES = [[6, 6, 4, 3, 2, 2, 1], [1], [5, 5], [100, 1, 1, 1], [3, 2, 2, 2, 1, 1, 1, 1]]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("width", "height"), [(6.0, 4.0), (4.0, 6.0), (10.0, 1.0)])
def test_a_treemap_fills_its_box_without_overlap_in_proportion(sizes, width, height):
    boxes = treemap(sizes, width, height)
    for size, (x, y, wide, high) in zip(sizes, boxes, strict=True):
        assert wide * high == pytest.approx(size * width * height / sum(sizes))
        assert -1e-9 <= x <= x + wide <= width + 1e-9
        assert -1e-9 <= y <= y + high <= height + 1e-9
    for (x, y, wide, high), (u, v, wider, higher) in itertools.combinations(boxes, 2):
        across = min(x + wide, u + wider) - max(x, u)
        down = min(y + high, v + higher) - max(y, v)
        assert across <= 1e-9 or down <= 1e-9


def test_a_treemap_is_that_of_its_authors():
    """Bruls, Huizing and van Wijk 2000, figure 4: areas 6, 6, 4, 3, 2, 2, 1 in a box of 6 by 4."""
    expected = [
        (0, 0, 3, 2), (0, 2, 3, 2), (3, 0, 12 / 7, 7 / 3), (3 + 12 / 7, 0, 9 / 7, 7 / 3),
        (3, 7 / 3, 6 / 5, 5 / 3), (4.2, 7 / 3, 6 / 5, 5 / 3), (5.4, 7 / 3, 3 / 5, 5 / 3),
    ]  # fmt: skip
    assert treemap(SIZES[0], 6.0, 4.0) == [pytest.approx(box) for box in expected]


@pytest.mark.parametrize(("wide", "high", "look"), [(90, 40, "tiny"), (24, 120, "turned")])
def test_a_word_is_made_smaller_or_turned_before_it_is_cut(wide, high, look):
    drawn, *_ = elements(area_map([Tile("combinatorial", 4, "/")], wide, high, "large"), "text")
    assert drawn.text == "combinatorial"
    assert look in (drawn.get("class") or "")


def test_the_map_shows_every_field_with_its_papers():
    tiles = [Tile(HOSTILE, 4, "/a?b=1&c"), Tile("wide field", 30, "/wide")]
    drawn = area_map(tiles, 600, 200, "large")
    links = elements(drawn, "a")
    assert [one.get("href") for one in links] == ["/wide", "/a?b=1&c"]  # the largest first
    assert [one.get("aria-label") for one in links] == ["wide field, 30 papers", f"{HOSTILE}, 4 papers"]
    assert [one.text for one in elements(drawn, "title")] == ["wide field, 30 papers", f"{HOSTILE}, 4 papers"]
    boxes = treemap([30, 4], 600, 200)
    for tile, (x, y, wide, high) in zip(elements(drawn, "rect", "tile"), boxes, strict=True):
        found = [float(tile.get(name, 0)) for name in ("x", "y", "width", "height")]
        assert found == pytest.approx([x + 1.5, y + 1.5, wide - 3, high - 3], abs=0.06)
    shades = [float(tile.get("fill-opacity", 0)) for tile in elements(drawn, "rect", "tile")]
    assert shades == [0.35, pytest.approx(0.1 + 0.25 * 4 / 30, abs=0.006)]
