"""The pictures of an experiment as values: what is drawn, what it says in words, and the table behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laureate.lab.claim import Claim, Curve, Experiment
from laureate.lab.judging.evidence import effects
from laureate.pages.charts import Region, Series, curve_chart, interval_chart, label, strip
from laureate.pages.wording import csv_text, number

__all__ = ["CurveFigure", "Figure", "IntervalFigure", "claim_figure", "csv_of", "curve_figures", "row_strip"]

Arms = dict[str, dict[str, np.ndarray]]
Table = tuple[tuple[str, ...], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class IntervalFigure:
    """Seeds as points with the mean's interval.

    name: ``paper/claim``. lines: (value, words) where the verdict turns. holds: where the claim is right.
    """

    name: str
    title: str
    caption: str
    description: str
    axis: str
    seeds: tuple[float, ...]
    effect: float
    low: float
    high: float
    lines: tuple[tuple[float, str], ...]
    holds: Region | None

    def drawing(self) -> str:
        """As inline SVG."""
        return interval_chart(
            self.seeds, self.effect, self.low, self.high, self.lines, self.description, holds=self.holds
        )

    def table(self) -> Table:
        """A row a seed, then the mean with its interval."""
        rows: list[tuple[Any, ...]] = [("seed", seed, value, "", "") for seed, value in enumerate(self.seeds)]
        return ("row", "seed", "value", "low", "high"), [*rows, ("mean", "", self.effect, self.low, self.high)]


@dataclass(frozen=True)
class CurveFigure:
    """A line an arm with its band. name: ``paper/experiment/number``."""

    name: str
    title: str
    caption: str
    description: str
    x_label: str
    y_label: str
    log_x: bool
    log_y: bool
    series: tuple[Series, ...]

    def drawing(self) -> str:
        """As inline SVG."""
        return curve_chart(self.series, self.x_label, self.y_label, self.description, self.log_x, self.log_y)

    def table(self) -> Table:
        """A row a point of a line."""
        rows = [
            (one.label, *point)
            for one in self.series
            for point in zip(one.x, one.middle, one.low, one.high, strict=True)
        ]
        return ("arm", "x", "median", "low_10_percent", "high_90_percent"), rows


Figure = IntervalFigure | CurveFigure


def csv_of(figure: Figure, digits: int | None = None) -> str:
    """The table behind a figure; with ``digits``, numbers rounded to so many, for a file that carries many tables."""
    columns, rows = figure.table()
    if digits is not None:
        rows = [tuple(f"{v:.{digits}g}" if isinstance(v, float) else v for v in row) for row in rows]
    return csv_text(columns, rows)


def claim_figure(claim: Claim, verdict: dict[str, Any], arms: Arms) -> IntervalFigure | None:
    """The picture of one verdict; None where there is no effect, or its observations are of another declaration."""
    if verdict.get("effect") is None:
        return None
    try:
        seeds, lines, margin = effects(claim, arms), _deciding_lines(claim, arms), _margin(claim, arms)
    except (KeyError, ValueError):
        return None
    effect, low, high = verdict["effect"], verdict["low"], verdict["high"]
    return IntervalFigure(
        name=verdict["id"],
        title=verdict["id"],
        caption=_reading(claim),
        description=f"{verdict['id']}: effect {number(effect)}, 95 % interval {number(low)} to {number(high)}, "
        f"{verdict['seeds']} seeds; {verdict['verdict']}",
        axis=_reading(claim),
        seeds=tuple(seeds.tolist()),
        effect=effect,
        low=effect if low is None else low,
        high=effect if high is None else high,
        lines=tuple(lines),
        holds=_holds(claim, margin),
    )


def row_strip(claim: Claim, verdict: dict[str, Any]) -> str:
    """The verdict's interval for a table's row; without observations, so a margin that is a share is left out."""
    effect, low, high = (verdict.get(name) for name in ("effect", "low", "high"))
    if effect is None or low is None or high is None:
        return ""
    margin = None if claim.relative else claim.margin
    holds = _holds(claim, margin)
    lines = [value for value in holds or () if math.isfinite(value)]
    words = f"effect {number(effect)}, interval {number(low)} to {number(high)}"
    return strip(effect, low, high, lines or [0.0], holds, words)


def curve_figures(paper_id: str, experiment: Experiment, arms: Arms) -> list[CurveFigure]:
    """The declared curves of which there are observations."""
    found = (_curve(f"{paper_id}/{experiment.name}/{i}", experiment, c, arms) for i, c in enumerate(experiment.curves))
    return [figure for figure in found if figure is not None]


def _curve(name: str, experiment: Experiment, curve: Curve, arms: Arms) -> CurveFigure | None:
    series = []
    for arm in experiment.arms:
        metrics = arms.get(arm.name, {})
        if curve.x not in metrics or curve.y not in metrics:
            continue
        y = np.asarray(metrics[curve.y], np.float64)
        low, middle, high = np.nanquantile(y, (0.1, 0.5, 0.9), axis=0)
        x = np.median(np.asarray(metrics[curve.x], np.float64), axis=0)
        series.append(Series(arm.label, x.tolist(), middle.tolist(), low.tolist(), high.tolist()))
    if not series:
        return None
    x_label, y_label = curve.x_label or curve.x, curve.y_label or curve.y
    ends = "; ".join(f"{one.label} ends at {number(one.middle[-1])}" for one in series)
    return CurveFigure(
        name=name,
        title=curve.title,
        caption="Median over seeds; the band is their 10–90 % range.",
        description=f"{curve.title}: {y_label} against {x_label}. {ends}.",
        x_label=x_label,
        y_label=y_label,
        log_x=curve.log_x,
        log_y=curve.log_y,
        series=tuple(series),
    )


def _margin(claim: Claim, arms: Arms) -> float:
    if not claim.relative:
        return claim.margin
    return claim.margin * abs(float(np.mean(arms[claim.baseline or claim.method][claim.metric])))


def _deciding_lines(claim: Claim, arms: Arms) -> Sequence[tuple[float, str]]:
    """Where the verdict turns."""
    if claim.at_least is not None or claim.at_most is not None:
        bounds = ((claim.at_least, "at least"), (claim.at_most, "at most"))
        return [(value, f"{word} {label(value)}") for value, word in bounds if value is not None]
    margin = _margin(claim, arms)
    if claim.kind == "equal":
        return [(-margin, f"−{number(margin)}"), (margin, f"+{number(margin)}")]
    return [(0.0, "no effect")] + ([(margin, f"margin {number(margin)}")] if margin else [])


def _holds(claim: Claim, margin: float | None) -> Region | None:
    """Where the claim is right; None where that needs a margin that is not known."""
    if claim.at_least is not None or claim.at_most is not None:
        low, high = claim.at_least, claim.at_most
        return (-math.inf if low is None else low, math.inf if high is None else high)
    if margin is None:
        return None
    return (-margin, margin) if claim.kind == "equal" else (margin, math.inf)


def _reading(claim: Claim) -> str:
    """What the horizontal axis of a claim's picture is."""
    unit = f" ({claim.unit})" if claim.unit else ""
    if claim.kind == "trend":
        return f"slope of {claim.metric} against {claim.against}, {claim.method}"
    if claim.kind == "bound":
        return f"{claim.metric}{unit}, {claim.method}"
    pair = (claim.baseline, claim.method) if claim.better == "lower" else (claim.method, claim.baseline)
    return f"{claim.metric}{unit}: {pair[0]} − {pair[1]}"
