"""Numbers, times and sentences about results, read back or put together anew from what they were given."""

import csv
import dataclasses
import html
import io
import itertools
import json
import math
import re
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from laureate.cli._common import context_line
from laureate.lab.judging.results import ClaimId, ClaimResult, Measured
from laureate.lab.judging.standing import Place, Standing
from laureate.pages import race
from laureate.pages.charts import Axis, Series, label
from laureate.pages.figures import CurveFigure, IntervalFigure, csv_of, row_strip
from laureate.pages.mathml import mathml
from laureate.pages.render import Site
from laureate.pages.server import Server
from laureate.pages.wording import best_here, busy, duration, looks, means, number, origin, origins, rival
from laureate.racing.results import Curve, Metric, RaceResult, Row

RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
VALUES = [sign * m * 10.0**e for sign in (1, -1) for m in (1.0, 1.2344, 4.9996, 9.99951, 5.0) for e in range(-8, 9)]


def read(text):
    """The value of a number as people read it."""
    mantissa, _, power = text.replace("−", "-").partition("·10")
    if text.lstrip("−").startswith("10") and set(text) & set("⁰¹²³⁴⁵⁶⁷⁸⁹"):
        mantissa, power = text.replace("−", "-", 1).split("10")[0] + "1", text.lstrip("−")[2:]
    return float(mantissa) * 10.0 ** int(power.translate(RAISED) or 0)


@pytest.mark.parametrize("digits", [1, 2, 3, 5])
def test_a_number_has_as_many_digits_as_it_says(digits):
    for value in VALUES:
        told = number(value, digits)
        assert "e" not in told
        assert read(told) == pytest.approx(value, rel=0.5001 * 10.0 ** (1 - digits)), told
    assert {number(value, digits) for value in (None, math.nan, math.inf, -math.inf)} == {"–"}
    assert number(-0.0, digits) == number(0.0, digits) == "0"


def test_a_tick_is_written_out_between_a_thousandth_and_a_hundred_thousand():
    for value in VALUES:
        told, plain = label(value), 1e-3 <= abs(value) < 1e5
        assert read(told) == pytest.approx(value, rel=0.5001e-3), told
        assert ("⁻" in told or told.translate(RAISED) != told) == (not plain), told
        assert not set(told) & set("e+-"), told
    assert [label(value) for value in (0.0, 1e5, 2e4, -12500.0, 9999.7)] == ["0", "10⁵", "20000", "−12500", "10000"]


def test_a_time_is_told_in_the_largest_unit_that_fits():
    """Seconds up to a hundred, minutes up to a hundred, hours; never off by more than half of the last digit."""
    for seconds in (m * 10.0**e for m in (1.0, 1.5, 5.9, 6.1, 7.0, 9.94) for e in range(-2, 6)):
        amount, unit = duration(seconds).split(" ")
        assert unit == ("s" if seconds < 100 else "min" if seconds < 6000 else "h"), seconds
        digits = len(amount.partition(".")[2])
        assert digits == (2 if seconds < 1 else 1 if seconds < 10 else 0), seconds
        size = {"s": 1, "min": 60, "h": 3600}[unit]
        assert abs(float(amount) * size - seconds) <= 0.5001 * size * 10.0**-digits, seconds
    assert duration(None) == "–"


def result(**facts):
    told = {"experiment": "e", "statement": "s", "kind": "better", "metric": "a_loss", "method": "ours"}
    return ClaimResult(id=ClaimId("toy", "x"), **told | {"baseline": "theirs", "trivial": "mean"} | facts)


def test_what_the_arms_reached_is_told_of_those_that_there_are():
    for method, baseline, trivial, seeds in itertools.product(
        (1.0, math.nan), (2.0, math.nan), (3.0, math.nan), (0, 1, 3)
    ):
        effects = tuple(float(i) for i in range(seeds))
        measured = Measured(effects, 0, method, baseline, trivial)
        wanted = [f"{name} {value:g}" for name, value in (("ours", method), ("theirs", baseline)) if value == value]
        wanted += ["trivial (mean) 3"] if trivial == 3.0 else []
        wanted += ["worst seed 0"] if seeds > 1 else []
        assert means(result(measured=measured)) == " · ".join(wanted)
    assert "trivial" not in means(result(trivial="", measured=Measured((1.0,), 0, 1.0, 2.0, 3.0)))
    assert means(result()) == ""


def test_a_further_look_is_told_with_its_number_and_its_price():
    for before in ((), (10,), (10, 20), (10, 20, 40)):
        for times in (0, 1, 2):
            one = result(looks=before, remeasured=times)
            parts = []
            if before:
                seeds = ", ".join(map(str, before))
                parts.append(
                    f"look {len(before) + 1}: judged before with {seeds} seeds, so its p counts {one.price} times"
                )
            if times:
                often = "once" if times == 1 else "2 times"
                parts.append(f"measured {often} before with as many seeds and other numbers: other code, or a clock")
            assert looks(one) == "; ".join(parts)
    assert [result(looks=(1,) * n).price for n in range(3)] == sorted({result(looks=(1,) * n).price for n in range(3)})


def test_a_machine_is_busy_from_a_quarter_more_on():
    said = [busy(result(busy=ratio)) for ratio in (math.nan, 0.9, 1.0, 1.25, 1.3, 12.0)]
    assert said[:4] == [""] * 4
    assert [text.partition(" ran ")[2] for text in said[4:]] == [
        f"{r} times as long as the CPU's" for r in ("1.3", "12")
    ]


def test_a_weak_rival_is_one_that_does_not_beat_the_trivial_arm():
    for lower, baseline, trivial in itertools.product((True, False), (2.0, 3.0), (2.0, 3.0)):
        method = 1.0 if lower else 4.0
        one = result(effect=1.0, measured=Measured((1.0,), 0, method, baseline, trivial))
        weak = baseline >= trivial if lower else baseline <= trivial
        assert rival(one) == ("theirs is itself no better than mean" if weak else "")


def test_where_results_come_from_is_told_once():
    ours = [
        result(reference=True, machine=m, versions="jax 1", started="2026-11-17T00")
        for m in ("an abacus", "two", "two")
    ]
    assert origin(ours[0]) == "our reference, an abacus, jax 1, 2026-11-17"
    assert origin(result(run=7, machine="here")) == "run 7"
    assert origins([*ours, result(run=7)]) == "an abacus, jax 1, 2026-11-17; two, jax 1, 2026-11-17"


def test_more_seeds_than_declared_are_told_beside_the_declared():
    for seeds, declared in ((10, 0), (10, 10), (10, 20), (20, 10)):
        said = context_line(result(seeds=seeds, declared_seeds=declared, scale="desk", run=3))
        assert (
            said == f"desk, {seeds} seeds" + (f" ({declared} declared)" if declared == 10 < seeds else "") + ", run 3"
        )


def standing(*places, unit="nats"):
    return Standing("toy", "e", "t", "loss", unit, "lower", 10, "seeds", places)


def test_who_is_best_is_told_with_the_gap_to_the_second_and_whom_it_does_not_surely_beat():
    best = Place("a", 1.0, 0.9, 1.1)
    near, far = Place("b", 2.0, 1.9, 2.1, 1.0, -0.5, 2.5), Place("c", 4.0, 3.9, 4.1, 3.0, 2.0, 4.0)
    gone = Place("d", note="1 of 10 seeds not finite")
    sure = "surely better than every other arm"
    unsure = "but not surely better than b: the interval includes 0"
    assert best_here(standing(best, near, far, gone)) == f"Best here: a, by 1 nats [−0.5, 2.5] over b, {unsure}."
    assert best_here(standing(best, far, unit="")) == f"Best here: a, by 3 [2, 4] over c, {sure}."
    last = dataclasses.replace(far, behind_low=-1.0)
    both = best_here(standing(best, near, last))
    assert (
        both
        == "Best here: a, by 1 nats [−0.5, 2.5] over b, but not surely better than b and c: the interval includes 0."
    )
    noted = dataclasses.replace(best, note="at its cap")
    assert best_here(standing(noted, far)).endswith(f"over c, {sure}. Read it with care: at its cap.")
    assert best_here(standing(best, gone)) == "a alone gave finite numbers here: 1."
    assert best_here(standing(gone)) == "No arm gave finite numbers here."
    level = [dataclasses.replace(best, arm=arm, note=note) for arm, note in (("a", "at its cap"), ("b", ""))]
    assert best_here(standing(*level)) == "No arm is ahead here: all of them end at 1: at its cap."
    assert best_here(standing(*level[::-1])).endswith("end at 1, which says nothing about them.")


def test_sixteen_lines_of_a_picture_look_different_and_then_they_begin_anew():
    series = [Series("a", [0.0], [0.0], [0.0], [0.0], colour) for colour in range(17)]
    assert len({one.look for one in series[:16]}) == 16
    assert [one.look for one in series[:9]] == [*(f"s{i}" for i in range(8)), "s0 dashed"]


@pytest.mark.parametrize("holds", [None, (-math.inf, math.inf), (0.5, math.inf), (-math.inf, 0.5), (-1.0, 2.0)])
def test_the_strip_of_a_row_has_the_lines_by_which_it_is_judged_and_else_that_of_no_effect(holds):
    """And the axis reaches to them."""
    measured = None if holds is None else Measured((1.0,), holds=holds)
    drawn = ElementTree.fromstring(row_strip(result(effect=1.5, low=1.0, high=3.0, measured=measured)))
    lines = [value for value in holds or () if math.isfinite(value)] or [0.0]
    axis = Axis([1.5, 1.0, 3.0, *lines], 4, 116, pad=0.12)
    rules = [float(one.get("x1", 0)) for one in drawn.iter("line") if one.get("class") == "rule"]
    assert rules == [pytest.approx(axis(value), abs=0.06) for value in lines]
    assert len(list(drawn.iter("rect"))) == (holds is not None)
    assert row_strip(result(effect=math.nan, low=1.0, high=3.0)) == ""
    assert "0 nats" in row_strip(result(effect=0.0, low=0.0, high=0.0, unit="nats"))


def test_the_table_behind_a_picture_has_every_number_under_its_name():
    """As a file of its own to the last digit, in a file of many tables to seven."""
    curve = CurveFigure(
        "n", "t", "c", "d", "x", "y", False, False,
        (
            Series("a", [1.0, 2.0], [math.pi, 4.0], [1 / 3, 3.5], [50.0, 2.0 / 3e-7]),
            Series("b", [0.0], [1.0], [-1.0], [2.0]),
        ),
    )  # fmt: skip
    interval = IntervalFigure("n", "t", "c", "d", "a", (0.25, math.pi), 1.5, -1 / 3, 1e9 / 3, (), None)
    names = {"arm": "label", "x": "x", "median": "middle", "low_10_percent": "low", "high_90_percent": "high"}
    for digits in (None, 7):
        close = {"rel": 0 if digits is None else 5.1e-7, "abs": 0}
        rows = list(csv.DictReader(io.StringIO(csv_of(curve, digits))))
        told = [(one, i) for one in curve.series for i in range(len(one.x))]
        for row, (one, i) in zip(rows, told, strict=True):
            assert row.pop("arm") == one.label
            for name, value in row.items():
                assert float(value) == pytest.approx(getattr(one, names[name])[i], **close), name
        *seeds, mean = csv.DictReader(io.StringIO(csv_of(interval, digits)))
        assert [(row["row"], int(row["seed"]), row["low"]) for row in seeds] == [("seed", 0, ""), ("seed", 1, "")]
        assert [float(row["value"]) for row in seeds] == pytest.approx([0.25, math.pi], **close)
        assert [float(mean[name]) for name in ("value", "low", "high")] == pytest.approx(
            [1.5, -1 / 3, 1e9 / 3], **close
        )
    ((_, address, _),) = Site().data(3, interval)
    assert unquote(address.partition(",")[2]) == csv_of(interval, 7) != csv_of(interval)


@pytest.mark.parametrize("sign", "₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₜₙ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿᵀ")
def test_a_small_sign_is_its_large_one_set_lower_or_higher(sign):
    meant = {"₋": "−", "⁻": "−"}.get(sign, unicodedata.normalize("NFKD", sign))
    (line,) = ElementTree.fromstring(f"<all>{mathml(f'x{sign}')}</all>")
    assert [node.tag for node in line] == ["msub" if sign in "₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₜₙ" else "msup"]
    assert "".join(line.itertext()).replace("\u2212", "−") == f"x{meant}"


def test_a_fraction_needs_no_brackets_of_its_own():
    """The bar groups what is above and below it, and nothing else; other brackets stay."""
    bare = lambda text: text[1:-1] if text[0] == "(" else text  # noqa: E731
    for upper, lower in itertools.product(("a", "(a+b)", "[a]", "x_t²", "(x)²"), ("2", "(2N)", "c²", "(c)²")):
        (line,) = ElementTree.fromstring(f"<all>{mathml(f'{upper}/{lower}')}</all>")
        ((above, below),) = line.iter("mfrac")
        plain = [text.replace("_", "").replace("²", "2") for text in (upper, lower)]
        wanted = [bare(text) if text[-1] == ")" else text for text in plain]
        assert ["".join(part.itertext()) for part in (above, below)] == wanted, (upper, lower)
        assert "".join(line.itertext()) == "".join(wanted)


STORED = Path(__file__).parents[1] / "racing" / "stored_race.json"


@pytest.mark.parametrize("which", ["middle", "low", "high"])
@pytest.mark.parametrize("reaches", [0.0, -1.0])
def test_a_race_whose_lines_or_bands_reach_zero_is_not_drawn_by_powers(which, reaches):
    stored = RaceResult.from_json(json.loads(STORED.read_text("utf-8")))
    lines = {"middle": (1.0, 50.0), "low": (0.9, 40.0), "high": (2.0, 90.0)}
    lines[which] = (reaches, lines[which][1])
    curve = Curve("a", cost=(1.0, 2.0), seconds=(3.0, 4.0), **lines)
    for declared in (False, True):
        drawn = race.picture(
            dataclasses.replace(stored, curves=(curve,), metric=Metric("loss", "l", log=declared)), "cost"
        )
        axis = Axis([value for values in lines.values() for value in values], 250, 12)
        (line,) = ElementTree.fromstring(f"<all>{drawn}</all>").iter("polyline")
        ys = [float(point.split(",")[1]) for point in (line.get("points") or "").split()]
        assert ys == [pytest.approx(axis(value), abs=0.06) for value in lines["middle"]]


def test_every_cell_of_a_race_stands_under_its_head():
    heads = race.columns(Metric("loss", "a loss", better="lower"))
    full = Row("a", "finished", 1, {"rate": 0.1}, 0.5, 0.4, 0.6, seconds=3.0, compile_seconds=40.0, against="the first")
    expected = {"": "1", "entrant": "a", "loss ↓": "0.5", "95 % interval": "[0.4, 0.6]", "to the first": "the first"}
    expected |= {"seconds": "3.0 s", "compiling": "40 s", "settings": "rate 0.1"}
    assert dict(zip(heads, race.cells(full), strict=True)) == expected
    unsure = dataclasses.replace(full, place=None, low=None, seconds=None)
    changed = {"": "", "95 % interval": "–", "seconds": "–"}
    assert dict(zip(heads, race.cells(unsure), strict=True)) == expected | changed
    for status, chosen in (("crashed", "rate 0.1"), ("stayed out", "")):
        none = dict(zip(heads, race.cells(dataclasses.replace(full, mean=None, status=status)), strict=True))
        assert none == dict.fromkeys(heads, "") | {"entrant": "a", "loss ↓": status, "settings": chosen}
    assert race.columns(Metric("score", "a score", better="higher"))[2] == "score ↑"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8/"), ("0.0.0.0", "http://127.0.0.1:8/"), ("::", "http://127.0.0.1:8/"),
        ("", "http://127.0.0.1:8/"), ("::1", "http://[::1]:8/"), ("box", "http://box:8/"),
    ],
)  # fmt: skip
def test_the_address_that_is_told_can_be_opened(host, url):
    assert Server.url.fget(SimpleNamespace(host=host, server_address=(host, 8))) == url  # pyright: ignore


def test_the_page_of_a_race_has_its_tables_cell_by_cell():
    found = RaceResult.from_json(json.loads(STORED.read_text("utf-8")))
    page = race.page(found)
    rows = [
        [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall("<t[hd].*?</t[hd]>", row, re.S)]
        for row in re.findall("<tr>.*?</tr>", page, re.S)
    ]
    table = [list(race.columns(found.metric)), *(list(race.cells(row)) for row in found.rows)]
    assert rows[: len(table)] == table
    pairs = [[p.first, p.second, p.by, p.interval, number(p.adjusted), p.word] for p in found.standing.pairs]
    assert rows[len(table) + 1 :] == pairs != []
    said = html.unescape(" ".join(re.sub("<[^>]+>", " ", page).split()))
    for row in found.rows:
        assert all(f"{row.entrant} : {word}" in said for word in row.words)
    for words in (found.title, found.advice, f"{found.budget:,} {found.unit} a run, {found.seeds} seeds", *found.notes):
        assert " ".join(words.split()) in said
    assert f"Nobody is both faster and better than {', '.join(found.pareto)}." in said
    assert page.count("<polyline") == 2 * len([curve for curve in found.curves if curve.middle])
    labels = [race.picture(found, against).split('aria-label="')[1].split(".")[0] for against in ("cost", "seconds")]
    name = html.escape(found.metric.name)
    assert labels == [f"{name} against {html.escape(found.unit)}", f"{name} against seconds, compiling apart"]
