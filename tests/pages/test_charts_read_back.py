"""What a picture shows is what it was given: numbers are read back from its pixels, texts from its elements."""

import dataclasses
import itertools
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import toy_site  # noqa: F401  (finds the toys)
import toys
from laureate.pages import race
from laureate.pages.charts import Axis, Series, Tile, curve_chart, interval_chart, strip, topic_map, treemap
from laureate.pages.figures import curve_figures
from laureate.racing.results import Curve, Metric, RaceResult

STORED_RACE = Path(__file__).parents[1] / "racing" / "stored_race.json"
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


def extent(one: ElementTree.Element) -> list[tuple[float, float]]:
    """The corners of an element."""
    of = lambda *names: [float(one.get(name, 0)) for name in names]  # noqa: E731
    if one.tag in ("polyline", "polygon"):
        return [(x, y) for x, y in (map(float, point.split(",")) for point in one.get("points", "").split())]
    if one.tag == "circle":
        x, y, r = of("cx", "cy", "r")
        return [(x - r, y - r), (x + r, y + r)]
    if one.tag == "rect":
        x, y, wide, high = of("x", "y", "width", "height")
        return [(x, y), (x + wide, y + high)]
    if one.tag == "line":
        x, u, y, v = of("x1", "x2", "y1", "y2")
        return [(x, y), (u, v)]
    x, y = of("x", "y")
    return [(x, y)] if one.tag == "text" and not one.get("transform") else []


LINES = {"one": [(0.0, "no effect")], "near": [(0.0, "no effect"), (0.5, "margin")], "far": [(-3.0, "a"), (3.0, "b")]}
PICTURES = {
    name: interval_chart([1.0, -2.0, 2.5] * 4, 0.4, -0.2, 1.1, lines, "", (0.5, 9.0)) for name, lines in LINES.items()
}
SERIES = Series("a", [1.0, 10.0, 1000.0], [2.0, 1.0, 1.5], [1.5, 0.5, 1.0], [2.5, 1.5, 4.0])
PICTURES |= {"linear": curve_chart([SERIES], "x", "y", ""), "log": curve_chart([SERIES], "x", "y", "", True, True)}


@pytest.mark.parametrize("name", PICTURES)
def test_everything_lies_inside_its_picture_and_ticks_hang_from_the_axis_to_their_labels(name):
    (root,) = elements(PICTURES[name], "svg")
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for one in root.iter():
        assert all(0 <= x <= width and 0 <= y <= height for x, y in extent(one)), ElementTree.tostring(one)
    base, *ticks = elements(PICTURES[name], "line", "axis")
    named = [one for one in elements(PICTURES[name], "text", "tick") if one.get("text-anchor") == "middle"]
    assert len(ticks) == len(named) > 1
    for tick, words in zip(ticks, named, strict=True):
        (x, start), (u, end) = extent(tick)
        ((middle, below),) = extent(words)
        assert x == u == middle
        assert float(base.get("y1", 0)) == start < end < below
    for one in elements(PICTURES[name], "circle"):
        ((_, top), (_, bottom)), ((_, first), (_, last)) = (
            extent(one),
            extent(elements(PICTURES[name], "rect", "holds")[0]),
        )
        assert first <= top < bottom <= last, "seeds and mean lie on what is shaded"


WIDTHS = {"place": 7.7, "place small": 6.6, "place tiny": 5.4, "count": 7.7}
NAMES = ["combinatorial", "graphs-geometry", "audio", "out of distribution detection", "a bb ccc dddd eeeee ffffff"]


@pytest.mark.parametrize("name", NAMES)
def test_the_letters_of_a_field_lie_inside_it(name):
    kinds = set()
    for wide, high in itertools.product((20, 24, 40, 60, 90, 130, 250), (16, 24, 40, 80, 120, 260)):
        drawn = topic_map([Tile(name, 4, "/")], wide, high, "large")
        for one in elements(drawn, "text"):
            look, (x, y) = one.get("class", ""), (float(one.get("x", 0)), float(one.get("y", 0)))
            turned = look.endswith("turned")
            letter = WIDTHS[look.removesuffix(" turned")]
            long = letter * len(one.text or "")
            # Turned by a right angle the letters run down, and stand to the right of where they begin.
            assert x + (letter if turned else long) <= wide, (wide, high, look)
            assert y + (long if turned else 0) <= high, (wide, high, look)
            assert not turned or x + letter / 2 == pytest.approx(wide / 2, abs=0.1), "a turned word is in the middle"
            kinds.add(look)
    assert len(kinds) > 2


@pytest.mark.parametrize(
    ("xs", "log_x"), [([1.0, 2.0, 4.0], False), ([1.0, 2.0, 5.0], True), ([0.0, 2.0, 50.0], False)]
)
@pytest.mark.parametrize(
    ("ys", "declared", "log_y"),
    [
        ([1.0, 3.0, 30.0], False, False),
        ([1.0, 3.0, 31.0], False, True),
        ([1.0, 3.0, 4.0], True, True),
        ([0.0, 3.0, 40.0], True, False),
    ],
)
def test_a_race_is_drawn_by_powers_where_its_numbers_are_far_apart(xs, log_x, ys, declared, log_y):
    stored = RaceResult.from_json(json.loads(STORED_RACE.read_text("utf-8")))
    curve = Curve("a", cost=tuple(xs), seconds=tuple(xs), middle=tuple(ys), low=tuple(ys), high=tuple(ys))
    found = dataclasses.replace(stored, curves=(curve,), metric=Metric("loss", "a loss", log=declared))
    (line,) = elements(race.picture(found, "cost"), "polyline")
    across, up = Axis(xs, 58, 438, log_x, pad=0.0), Axis(ys, 250, 12, log_y)
    assert extent(line) == [pytest.approx((across(x), up(y)), abs=0.06) for x, y in zip(xs, ys, strict=True)]


@pytest.mark.parametrize("against", ["cost", "seconds"])
def test_every_line_of_a_race_is_drawn_from_its_own_numbers(against):
    """By what it cost or by the clock, with its band, in its own colour."""
    stored = RaceResult.from_json(json.loads(STORED_RACE.read_text("utf-8")))
    draw = np.random.default_rng(0)
    curves = []
    for name in ("a", "b", "c"):
        low, middle, high = np.sort(draw.uniform(1, 9, (3, 4)), axis=0).tolist()
        cost, seconds = np.cumsum(draw.uniform(1, 2, (2, 4)), axis=1).tolist()
        curves.append(Curve(name, *map(tuple, (cost, seconds, middle, low, high))))
    found = dataclasses.replace(
        stored, curves=(*curves, Curve("none", (), (), (), (), ())), metric=Metric("loss", "a loss")
    )
    drawn = race.picture(found, against)
    xs = [x for curve in curves for x in getattr(curve, against)]
    across = Axis(xs, 58, 438, max(xs) / min(xs) > 4, pad=0.0)
    up = Axis([y for curve in curves for line in (curve.middle, curve.low, curve.high) for y in line], 250, 12)
    lines, bands = elements(drawn, "polyline"), elements(drawn, "polygon")
    for number, (curve, line, band) in enumerate(zip(curves, lines, bands, strict=True)):
        x = getattr(curve, against)
        at = lambda ys, x=x: [pytest.approx((across(a), up(b)), abs=0.06) for a, b in zip(x, ys, strict=True)]  # noqa: E731
        assert extent(line) == at(curve.middle)
        assert extent(band) == at(curve.high) + at(curve.low)[::-1]
        assert {one.get("class") for one in (line, band)} == {f"line s{number}", f"band s{number}"}


def test_a_curve_is_the_median_and_the_range_of_all_its_seeds_in_double_precision():
    draw = np.random.default_rng(0)
    steps = np.tile(2.0**25 + np.arange(5), (7, 1)) + draw.integers(0, 3, (7, 1))
    curve = 1.0 + 1e-9 * draw.normal(size=(7, 5))
    curve[2, 1] = np.nan
    (figure,) = curve_figures("toy", toys.experiment(), {"ours": {"steps": steps, "curve": curve}})
    (one,) = figure.series
    assert one.x == [np.sort(column)[3] for column in steps.T]
    for place, column in enumerate(curve.T):
        told = np.sort(column[np.isfinite(column)])
        shown = [line[place] for line in (one.low, one.middle, one.high)]
        assert shown == pytest.approx(np.interp((0.1, 0.5, 0.9), np.linspace(0, 1, len(told)), told), rel=1e-13)


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
    drawn, *_ = elements(topic_map([Tile("combinatorial", 4, "/")], wide, high, "large"), "text")
    assert drawn.text == "combinatorial"
    assert look in (drawn.get("class") or "")


def test_the_map_shows_every_field_with_its_papers():
    tiles = [Tile(HOSTILE, 4, "/a?b=1&c"), Tile("wide field", 30, "/wide")]
    drawn = topic_map(tiles, 600, 200, "large")
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
