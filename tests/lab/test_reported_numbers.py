"""Every number that is reported about a claim, recomputed from the seeds; for all kinds and pairs of their options."""

import dataclasses
import inspect
import itertools
import math
import re

import numpy as np
import pytest
from scipy import stats

from laureate.lab.claim import Claim, Guard
from laureate.lab.judging import statistics
from laureate.lab.judging.evidence import answers, draft, measure, simulate
from laureate.lab.judging.guards import applies, held_back
from laureate.testing import pairwise

SEEDS = 7
DRAW = np.random.default_rng(0)
KINDS = {
    "better": {},
    "equal": {},
    "trend": {"against": "size"},
    "bounded trend": {"against": "size", "at_least": -0.25},
    "at least": {"at_least": 0.125},
    "at most": {"at_most": 0.875},
    "between": {"at_least": -0.25, "at_most": 1.375},
}


def allowed(row):
    bounded = row["kind"] not in ("better", "equal", "trend")
    return not (
        (row["relative"] and (row["kind"] not in ("better", "equal") or not row["margin"]))
        or (bounded and row["margin"])
        or (row["kind"] == "equal" and not row["margin"])
        or (row["draws"] == "eighths" and "trend" in row["kind"])  # whose slopes are rounded
    )


ROWS = pairwise(
    {
        "kind": list(KINDS),
        "better": ["lower", "higher"],
        "margin": [0.0, 0.375],
        "relative": [False, True],
        "sign": [1.0, -1.0],
        "draws": ["smooth", "eighths", "both signs"],
    },
    allowed,
)


def claim_of(row) -> Claim:
    kind = {"bounded trend": "trend", "at least": "bound", "at most": "bound", "between": "bound"}.get(
        row["kind"], row["kind"]
    )
    settings = {name: row[name] for name in ("better", "margin", "relative")} | KINDS[row["kind"]]
    return Claim("it", "holds", metric="loss", method="ours", baseline="theirs", kind=kind, role="check", **settings)


def observed(row, shift=0.0):
    """Two arms, the second around ``sign``; for a trend a curve of five points a seed.

    Eighths, as bounds and margins are, meet these and each other in some seeds. A baseline may have both signs.
    """
    curve = (SEEDS, 5) if "trend" in row["kind"] else (SEEDS,)
    ours = DRAW.normal(0.4 + shift, 0.5, curve)
    theirs = row["sign"] * DRAW.uniform(-0.6 if row["draws"] == "both signs" else 0.8, 1.3, curve)
    if row["draws"] == "eighths":
        ours, theirs = np.round(4 * ours) / 4 + 0.125, np.round(8 * theirs) / 8
    size = np.sort(DRAW.uniform(0, 3, (SEEDS, 5)), axis=1)
    return {"ours": {"loss": ours, "size": size}, "theirs": {"loss": theirs, "size": size}}


def by_hand(claim, arms):
    """(x, sides) of the table in ``evidence``, one number a seed."""
    ours, theirs = arms["ours"]["loss"], arms["theirs"]["loss"]
    if claim.kind in ("better", "equal"):
        x = theirs - ours if claim.better == "lower" else ours - theirs
        margin = claim.margin * np.sign(theirs.mean()) * theirs if claim.relative else claim.margin
        return x, [x - margin] if claim.kind == "better" else [x + margin, margin - x]
    x = ours
    if claim.kind == "trend":
        x = np.array([np.polyfit(a, b, 1)[0] for a, b in zip(arms["ours"]["size"], ours, strict=True)])
        if claim.at_least is None:
            x = -x if claim.better == "lower" else x
            return x, [x - claim.margin]
    sides = [x - claim.at_least] if claim.at_least is not None else []
    return x, sides + ([claim.at_most - x] if claim.at_most is not None else [])


def ends_of(claim):
    """What lies at the 0 of each side, in words."""
    size = f"{claim.margin:.3g}" + f" |loss of {claim.baseline}|" * claim.relative
    if claim.kind == "equal":
        return [f"the margin -{size}", f"the margin {size}"]
    bounds = [f"the bound {end:.3g}" for end in (claim.at_least, claim.at_most) if end is not None]
    return bounds or [f"the margin {size}" if claim.margin else "0"]


def edge_of(claim, sides, of):
    """The bounds and margins that the interval includes; of equality that of 90 %, or else that of 95 %."""
    for level in [0.90, 0.95] if claim.kind == "equal" else [0.95]:
        ends = zip(ends_of(claim), sides, strict=True)
        if crossed := [name for name, side in ends if of(side, level)[0] <= 0 <= of(side, level)[1]]:
            return f"the {100 * level:.0f} % interval includes {' and '.join(crossed)}"
    return ""


def test_the_interval_that_is_told_to_include_a_margin_includes_it():
    """Of a difference beyond the margin at 90 % and not at 95 %, from seeds that are no more than just so far away."""
    x = 5.0 + np.random.default_rng(1).normal(size=SEEDS)
    margin = -float(statistics.interval(-x, 0.90)[1] + statistics.interval(-x, 0.95)[1]) / 2
    claim = Claim("it", "s", "loss", "a", "b", kind="equal", margin=margin, role="check")
    found = draft(claim, {"a": {"loss": 0 * x}, "b": {"loss": x}})
    assert not found.inside
    assert not found.outside
    assert found.edge == f"the 95 % interval includes the margin {margin:.3g}"


def p_value(side, median):
    """P of as much or more under the null, by enumeration or by the binomial distribution."""
    if median:
        return stats.binomtest(int((side > 0).sum()), SEEDS, 0.5, alternative="greater").pvalue
    signs = np.array(list(itertools.product([1, -1], repeat=SEEDS)))
    return np.mean(signs @ side >= side.sum() - 1e-12)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row.values())))
def test_a_draft_is_what_its_seeds_say(row):
    claim, arms = claim_of(row), observed(row)
    found, shown, (x, sides) = draft(claim, arms), measure(claim, arms), by_hand(claim, arms)
    median = claim.at_least is not None or claim.at_most is not None
    of = statistics.median_interval if median else statistics.interval
    level = 0.90 if claim.kind == "equal" else 0.95
    assert found.seeds == SEEDS
    assert found.effect == pytest.approx(np.median(x) if median else x.mean())
    assert (found.low, found.high) == pytest.approx(of(x, 0.95))
    assert found.supports == pytest.approx(max(p_value(side, median) for side in sides))
    assert found.refutes == pytest.approx(min(1.0, len(sides) * min(p_value(-side, median) for side in sides)))
    assert found.inside == all(of(side, level)[0] > 0 for side in sides)
    assert found.outside == any(of(side, 0.95)[1] < 0 for side in sides)
    assert found.edge == edge_of(claim, sides, of)
    better = np.all([side >= 0 for side in sides], axis=0).mean() if median else (np.sign(x) / 2 + 0.5).mean()
    assert found.improvement == pytest.approx(better)
    sizes = [v.mean() / v.std(ddof=1) for v in (sides if median else [x])]
    assert found.effect_size == pytest.approx(min(sizes))
    assert shown.effects == pytest.approx(tuple(x))
    assert shown.worst == int(np.argmin(np.min(sides, axis=0)))
    if "trend" not in row["kind"]:
        assert shown.method_mean == pytest.approx(arms["ours"]["loss"].mean())
        assert shown.baseline_mean == pytest.approx(arms["theirs"]["loss"].mean())
        # Where the sides' means are 0 a line is drawn, and between these the claim holds.
        turns = [x.mean() - side.mean() if i == 0 else x.mean() + side.mean() for i, side in enumerate(sides)]
        turns = turns if row["kind"] != "at most" else [x.mean() + sides[0].mean()]
        assert [value for value, _ in shown.lines if value or 0 in turns] == pytest.approx(turns)
        ends = {"better": (*turns, math.inf), "at least": (*turns, math.inf), "at most": (-math.inf, *turns)}
        assert shown.holds == pytest.approx(ends.get(row["kind"], tuple(turns)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(map(str, row.values())))
def test_many_experiments_at_once_are_each_alone(row):
    claim, many = claim_of(row), [observed(row, shift) for shift in (0.0, 0.7, -0.7, 2.0)]
    many[2]["ours"]["loss"][3] = np.nan
    for together, arms in zip(simulate(claim, many), many, strict=True):
        (alone,) = simulate(claim, [arms])
        for field in dataclasses.fields(alone):
            one, two = getattr(together, field.name), getattr(alone, field.name)
            assert one == (pytest.approx(two, nan_ok=True) if isinstance(two, float) else two), field.name


def test_the_answers_to_a_question_are_means_and_intervals_of_every_component():
    claim = Claim("which", "which?", metric="loss", method="a", kind="question", role="extension")
    values = DRAW.normal(size=(SEEDS, 3))
    lost = np.where(np.arange(SEEDS)[:, None] < 2, np.nan, values)
    vector, scalar, broken = answers(claim, {"a": {"loss": values}, "b": {"loss": values[:, 1]}, "c": {"loss": lost}})
    for j in range(3):
        low, high = statistics.interval(values[:, j])
        found = (vector.mean[j], vector.low[j], vector.high[j])
        assert found == pytest.approx((values[:, j].mean(), low, high))
    assert (scalar.mean, scalar.low, scalar.high) == pytest.approx((vector.mean[1], vector.low[1], vector.high[1]))
    assert broken.reason == f"2 of {SEEDS} seeds not finite"
    assert (vector.seeds, scalar.seeds, scalar.reason) == (SEEDS, SEEDS, "")


# -- guards ------------------------------------------------------------------------------------------------------------

GUARDS = {
    "limit": (Guard("limit", "rate", low=0.0, high=1.0), r"limit (\S+) in (\d+) of 7"),
    "grid": (Guard("grid", "rate", low=0.0, high=1.0), r"grid, (\S+), in (\d+) of 7"),
}


@pytest.mark.parametrize("kind", GUARDS)
@pytest.mark.parametrize("end", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(SEEDS,), (SEEDS, 3), (SEEDS, 2, 2)])
@pytest.mark.parametrize("hit", range(SEEDS + 1))
@pytest.mark.parametrize("whole", [False, True])
def test_a_guard_counts_seeds_whatever_the_shape(kind, end, shape, hit, whole):
    """``hit`` seeds at one end, in one component or with the ``whole`` of what they report."""
    guard, pattern = GUARDS[kind]
    values = DRAW.uniform(0.3, 0.7, shape)
    rows = DRAW.permutation(SEEDS)[:hit]
    values[rows if whole else (rows, *(0 for _ in shape[1:]))] = end
    claim = Claim("it", "holds", "loss", "ours", "theirs", role="check")
    claim = dataclasses.replace(claim, metric="rate") if kind == "limit" else claim
    found = held_back(claim, {"ours": {"rate": values, "loss": values}}, DRAW.normal(size=SEEDS), [guard])
    if (hit == 0) if kind == "limit" else (2 * hit < SEEDS):
        assert found == []
        return
    (finding,) = found
    told = re.search(pattern, finding.words)
    assert told is not None, finding.words
    assert (float(told[1]), int(told[2])) == (end, hit)
    assert finding.void  # a limit is no measurement, and here the method's own grid is at its edge


@pytest.mark.parametrize("kind", ["limit", "grid", "effective"])
@pytest.mark.parametrize("metric", ["loss", "size", "rate"])
@pytest.mark.parametrize("named", [(), ("it",), ("another",)], ids=str)
@pytest.mark.parametrize("claim", ["trend", "bound"])
def test_a_guard_speaks_of_the_claims_that_it_names_else_a_limit_of_those_that_its_metric_decides(
    kind, metric, named, claim
):
    """A trend is decided by two metrics; a grid and effective samples speak of all claims of the experiment."""
    settings = {"at_least": 0.0} | ({"against": "size"} if claim == "trend" else {})
    claim = Claim("it", "holds", metric="loss", method="ours", kind=claim, role="check", **settings)
    guard = Guard(kind, metric, low=0.0, claims=named)
    decides = metric == "loss" or metric == claim.against
    assert applies(guard, claim) == (named == ("it",) if named else kind != "limit" or decides)
    low = {"loss": np.full((SEEDS, 3), -1.0), "size": np.full((SEEDS, 3), -1.0), "rate": np.full((SEEDS, 3), -1.0)}
    found = held_back(claim, {"ours": low}, DRAW.normal(size=SEEDS), [guard])
    assert bool(found) == applies(guard, claim)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_guard_counts_seeds_that_are_not_finite(lost):
    values = DRAW.uniform(0.3, 0.7, (SEEDS, 4))
    values[:lost, 2] = np.nan
    claim = Claim("it", "holds", "loss", "ours", "theirs", role="check")
    (finding,) = held_back(claim, {"ours": {"rate": values}}, DRAW.normal(size=SEEDS), [GUARDS["grid"][0]])
    assert f"not finite in {lost} of {SEEDS} seeds" in finding.words


# -- statistics --------------------------------------------------------------------------------------------------------

BATCHED = {
    "mean": statistics.mean,
    "interval": statistics.interval,
    "sign_flip": statistics.sign_flip,
    "sign_test": statistics.sign_test,
    "median_interval": statistics.median_interval,
    "slopes": lambda x: statistics.slopes(x, x[..., ::-1] ** 2),
    "effect_size": statistics.effect_size,
    "probability_of_improvement": statistics.probability_of_improvement,
}


def test_every_statistic_is_here():
    public = {name for name in statistics.__all__ if inspect.isfunction(getattr(statistics, name))}
    assert public == set(BATCHED) | {"holm", "smallest_p"}


# How a statistic follows its numbers where these are told in another unit; the others stay as they are.
IN_THE_UNIT = {"mean", "interval", "median_interval"}


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("unit", [2.0**400, 2.0**-400], ids=["huge", "tiny"])
def test_another_unit_changes_no_bit(name, unit):
    """Powers of two, far outside single precision: nothing is rounded, and nothing else may change."""
    x = np.random.default_rng(3).normal(0.2, 1.0, (4, 7))
    of = BATCHED[name] if name != "slopes" else lambda x: statistics.slopes(x, x[..., ::-1])
    expected = np.multiply(unit if name in IN_THE_UNIT else 1.0, of(x))
    np.testing.assert_array_equal(of(unit * x), expected)


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("seeds", [6, 7, 31])
def test_a_batch_is_its_rows(name, seeds):
    x = np.random.default_rng(seeds).normal(0.2, 1.0, (2, 3, seeds)) * np.array([1.0, 10.0, 0.1])[:, None]
    x[1, 2] = 0.3  # a row whose seeds agree
    x[0, 0] = np.abs(x[0, 0])
    together = BATCHED[name](x)
    for place in np.ndindex(2, 3):
        alone = BATCHED[name](x[place])
        both = zip(together, alone, strict=True) if isinstance(together, tuple) else [(together, alone)]
        for one, two in both:
            assert one[place] == pytest.approx(two, rel=1e-12, nan_ok=True)
