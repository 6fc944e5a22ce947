import math
import re
from xml.etree import ElementTree

import pytest

from laureate.pages import charts
from laureate.pages.charts import Axis, Series, curve_chart, film_chart, interval_chart, label


def svg(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.partition("<ul")[0])


def test_an_axis_maps_its_ends_and_holds_what_lies_outside():
    axis = Axis([0.0, 10.0], 0.0, 100.0, pad=0.0)
    assert [axis(v) for v in (0.0, 5.0, 10.0, -3.0, math.inf)] == [0.0, 50.0, 100.0, 0.0, 100.0]
    logarithmic = Axis([1.0, 100.0], 0.0, 100.0, log=True, pad=0.0)
    assert [logarithmic(v) for v in (1.0, 10.0, 100.0, 0.0)] == [0.0, 50.0, 100.0, 0.0]


@pytest.mark.parametrize("values", [[0.0, 1.0], [-3e-7, 5e-7], [1e6, 3e9], [2.0, 2.0], [0.0, 0.0], [-1e-300, 1e300]])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_inside_and_few(values, log):
    axis = Axis(values, 0.0, 100.0, log)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 12
    assert all(axis.low - 1e-9 <= axis._scaled(tick) <= axis.high + 1e-9 for tick in ticks)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.5, "0.5"), (-2, "−2"), (1e-6, "10⁻⁶"), (-3e7, "−3·10⁷"), (1200, "1200")]
)
def test_labels(value, text):
    assert label(value) == text


def test_every_seed_is_a_point_and_the_text_alternative_tells_the_result():
    drawn = svg(interval_chart([1.0, 2.0, 3.0], 2.0, 1.2, 2.8, [(0.0, "no <effect>")], "effect 2"))
    classes = [node.get("class") for node in drawn.iter()]
    assert classes.count("seed") == 3
    assert classes.count("mean") == 1
    assert drawn.get("aria-label") == "effect 2"
    assert "no <effect>" in "".join(drawn.itertext())


def test_curves_have_a_line_and_a_band_each_and_a_legend():
    series = [Series(name, [1.0, 10.0], [2.0, 1.0], [1.5, 0.5], [2.5, 1.5]) for name in ("<ours>", "theirs")]
    html = curve_chart(series, "steps", "loss", "loss against steps", log_x=True, log_y=True)
    assert len(re.findall("<polyline", html)) == len(re.findall("<polygon", html)) == 2
    assert "&lt;ours&gt;" in html
    assert "<ours>" not in html


# --- films ------------------------------------------------------------------------------------------------------------

SCENE = {
    "width": 1000,
    "height": 500,
    "frames": 3,
    "strokes": [
        {"look": "ground", "width": 80, "points": [[100, 100]], "square": True},
        {"look": "trace", "width": 10, "points": [[0, 0, 500, 250, 1000, 500]]},
        {"look": "body", "width": 40, "points": [[0, 0], [500, 0], [1000, 0]]},
        {"look": "lit", "width": 20, "points": [[50, 60]], "square": True, "shown": "011"},
        {"look": "body", "width": 20, "points": [[0, 0, 9, 9], [0, 0, 8, 8], [0, 0, 7, 7]]},
    ],
}


def test_a_film_moves_what_moves_and_holds_its_end():
    drawn = ElementTree.fromstring(film_chart(SCENE, "an agent <walks>", 0.1))
    assert drawn.attrib["aria-label"] == "an agent <walks>"
    ground, trace, body, lit, links = drawn[1:]
    assert (ground.tag, trace.tag, body.tag, links.tag) == ("rect", "polyline", "circle", "polyline")
    assert (ground.attrib["x"], ground.attrib["width"]) == ("60", "80"), "points are middles"
    assert not list(ground) + list(trace), "what is at rest has no animation"
    assert "moving" not in trace.attrib["class"]
    assert "moving" in body.attrib["class"]
    (along,) = body  # it stays at one height
    values = along.attrib["values"].split(";")
    assert values[:3] == ["0", "500", "1000"]
    assert set(values[3:]) == {"1000"}
    assert along.attrib["dur"] == f"{len(values) / 10:.2f}s"
    assert lit[0].attrib["values"].split(";")[:3] == ["0", "1", "1"]
    assert lit[0].attrib["calcMode"] == "discrete"
    assert links[0].attrib["values"].split(";")[:3] == ["0 0 9 9", "0 0 8 8", "0 0 7 7"]
    assert {animation.attrib["dur"] for animation in drawn.iter("animate")} == {along.attrib["dur"]}, "one clock"


def test_a_film_has_no_style_or_script_of_its_own():
    drawn = film_chart(SCENE, '" onload="x', 0.1)
    assert "style=" not in drawn
    assert 'onload="x' not in drawn


HOSTILE = """<b title='1'>&amp; "quoted" 'so' </text><script>"""


def said(markup):
    """All texts and values of attributes, read as a browser reads them; markup that is not well-formed is none."""
    nodes = list(ElementTree.fromstring(f"<div>{markup}</div>").iter())
    assert {node.tag for node in nodes}.isdisjoint({"b", "script"})
    return [node.text for node in nodes if node.text], [value for node in nodes for value in node.attrib.values()]


def test_whatever_a_chart_is_told_to_say_it_says_and_does_not_obey():
    region = (0.0, 1.0)
    texts, values = said(charts.interval_chart([0.1, 0.2], 0.1, 0.0, 0.3, [(0.0, HOSTILE)], HOSTILE, region))
    assert (texts.count(HOSTILE), values.count(HOSTILE)) == (2, 1)  # the line's name and <desc>, aria-label
    assert said(charts.strip(0.1, 0.0, 0.3, [0.0], region, HOSTILE))[1].count(HOSTILE) == 1
    tile = charts.Tile(HOSTILE, 3, f"/areas/{HOSTILE}")
    texts, values = said(charts.topic_map([tile], 900, 900, "wide"))
    label = f"{HOSTILE}, 3 papers"
    assert {label, f"/areas/{HOSTILE}"} <= {*values}
    assert label in texts
    assert "".join(texts).replace(label, "").count("<b") == 1, "the name once more, on the tile itself"
    one = charts.Series(HOSTILE, [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0])
    texts, values = said(charts.curve_chart([one], f"x{HOSTILE}", f"y{HOSTILE}", f"all{HOSTILE}"))
    assert (texts.count(HOSTILE), values.count(f"all{HOSTILE}")) == (2, 1)  # the line's title, the legend
    assert {f"x{HOSTILE}", f"y{HOSTILE}", f"all{HOSTILE}"} <= {*texts}
    texts, values = said(charts.film_chart({"width": 9, "height": 9, "frames": 1, "strokes": []}, HOSTILE, 0.1))
    assert (texts, values.count(HOSTILE)) == ([HOSTILE], 1)


@pytest.mark.parametrize("ends", [(1e5, 3e5), (1e-4, 3e-4), (-2.4e6, 1e5), (1.1e-7, 1.4e-7), (0.0, 1.0), (90, 110)])
def test_a_label_says_the_value_of_its_tick(ends):
    """Read back, a label is the tick: no two ticks say the same."""
    ticks = Axis(ends, 0.0, 100.0).ticks()
    plain = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")
    for tick in ticks:
        power = re.fullmatch(r"(?:(−?[\d.]+)·)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", label(tick))
        parts = [(part or "1").translate(plain) for part in (power.groups() if power else (label(tick), "⁰"))]
        assert float(parts[0]) * 10.0 ** int(parts[1]) == pytest.approx(tick, rel=1e-3)
    assert len({label(tick) for tick in ticks}) == len(ticks)


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 3), (2, 5), (-8, -1)])
def test_both_ends_of_a_logarithmic_axis_have_a_tick_where_powers_of_ten_are_few(low, high):
    ticks = Axis([10.0**low, 10.0**high], 0.0, 100.0, log=True).ticks(count=high - low + 1)
    assert ticks == pytest.approx([10.0**power for power in range(low, high + 1)])
