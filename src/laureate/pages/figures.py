"""The pictures of an experiment as values: what is drawn, what it says in words, and the table behind it."""

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from laureate.lab.claim import Curve, Experiment, Film
from laureate.lab.judging.results import ClaimResult
from laureate.pages.charts import Region, Series, curve_chart, film_chart, interval_chart, label, strip
from laureate.pages.wording import csv_text, in_words, number, unit_of

__all__ = [
    "CurveFigure",
    "Figure",
    "FilmFigure",
    "FilmPanel",
    "IntervalFigure",
    "arm_colours",
    "claim_figure",
    "csv_of",
    "curve_figures",
    "film_figure",
    "row_strip",
]

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


@dataclass(frozen=True)
class FilmPanel:
    """What one arm does. scene: as ``laureate.loops.plain_scene`` gives it. said: what came of it."""

    label: str
    said: str
    scene: Mapping[str, Any]
    seconds: float

    def drawing(self) -> str:
        """As inline SVG, which moves."""
        return film_chart(self.scene, f"{self.label}: {self.said}", self.seconds)


@dataclass(frozen=True)
class FilmFigure:
    """Arms side by side, moving. origin: with which seed it was recorded, when and with what."""

    name: str
    title: str
    caption: str
    origin: str
    panels: tuple[FilmPanel, ...]


def film_figure(film: Film, experiment: Experiment, panels: Iterable[Mapping[str, Any]]) -> FilmFigure:
    """A film as the page shows it; all panels run as long as the longest."""
    panels = list(panels)
    first = panels[0]
    return FilmFigure(
        name=film.name,
        title=film.title,
        caption=film.said,
        origin=f"recorded by us, not measured: {first['scale']}, seed {first['seed']}, {first['day']}, "
        f"{first['versions']}",
        panels=tuple(
            FilmPanel(experiment.arm(panel["arm"]).label, panel["said"], panel["scene"], film.seconds)
            for panel in panels
        ),
    )


def csv_of(figure: Figure, digits: int | None = None) -> str:
    """The table behind a figure; with ``digits``, numbers rounded to so many, for a file that carries many tables."""
    columns, rows = figure.table()
    if digits is not None:
        rows = [tuple(float(f"{v:.{digits}g}") if isinstance(v, float) else v for v in row) for row in rows]
    return csv_text(columns, rows)


def claim_figure(result: ClaimResult) -> IntervalFigure | None:
    """The picture of one result; None where there is no effect, or its numbers are not known any more."""
    measured = result.measured
    if measured is None or not result.has_effect:
        return None
    ends = [end if math.isfinite(end) else result.effect for end in (result.low, result.high)]
    return IntervalFigure(
        name=str(result.id),
        title=str(result.id),
        caption=_axis(measured.axis),
        description=f"{result.id}: effect {number(result.effect)} {unit_of(result)}, 95 % interval "
        f"{number(result.low)} to {number(result.high)} over {result.over}, {result.seeds} seeds; {result.verdict}",
        axis=_axis(measured.axis),
        seeds=measured.effects,
        effect=result.effect,
        low=ends[0],
        high=ends[1],
        lines=tuple((value, _line_words(value, words)) for value, words in measured.lines),
        holds=measured.holds,
    )


def _axis(axis: str) -> str:
    """What an axis shows, in words; a unit that is the metric's own name is shown once.

    >>> _axis("test_accuracy (test accuracy): ours − theirs")
    'test accuracy: ours − theirs'
    """
    return re.sub(r"^(.+?) \(\1\)", r"\1", in_words(axis))


def _line_words(value: float, words: str) -> str:
    return words if words == "no effect" else f"{words} {label(value)}"


def row_strip(result: ClaimResult) -> str:
    """The interval of a result for a table's row; empty where there is none."""
    if not all(map(math.isfinite, (result.effect, result.low, result.high))):
        return ""
    holds = result.measured.holds if result.measured else None
    lines = [value for value in holds or () if math.isfinite(value)]
    words = f"effect {number(result.effect)} {unit_of(result)}, interval {number(result.low)} to {number(result.high)}"
    return strip(result.effect, result.low, result.high, lines or [0.0], holds, words)


def arm_colours(experiments: Iterable[Experiment]) -> dict[str, int]:
    """Arm -> the number of its colour: one for every picture of a paper, and in one experiment no two alike.

    The first arms take the first colours; each later one the first that no arm has which stands beside it anywhere.
    """
    beside: dict[str, set[str]] = {}
    for experiment in experiments:
        names = [arm.name for arm in experiment.arms]
        for name in names:
            beside.setdefault(name, set()).update(names)
    colours: dict[str, int] = {}
    for name, others in beside.items():
        taken = {colours[other] for other in others if other in colours}
        colours[name] = next(number for number in itertools.count() if number not in taken)
    return colours


def curve_figures(
    paper_id: str, experiment: Experiment, arms: Arms, colours: Mapping[str, int] | None = None
) -> list[CurveFigure]:
    """The declared curves of which there are observations. colours: as ``arm_colours`` gives them for the paper."""
    colours = arm_colours([experiment]) if colours is None else colours
    names = [f"{paper_id}/{experiment.name}/{i}" for i in range(len(experiment.curves))]
    found = (_curve(name, experiment, c, arms, colours) for name, c in zip(names, experiment.curves, strict=True))
    return [figure for figure in found if figure is not None]


def _curve(
    name: str, experiment: Experiment, curve: Curve, arms: Arms, colours: Mapping[str, int]
) -> CurveFigure | None:
    series = []
    for arm in experiment.arms:
        metrics = arms.get(arm.name, {})
        if curve.x not in metrics or curve.y not in metrics:
            continue
        y = np.asarray(metrics[curve.y], np.float64)
        none = np.isnan(y).all(axis=0)  # where no seed has a number
        with np.errstate(invalid="ignore"):
            known = np.nanquantile(np.where(none, 0.0, y), (0.1, 0.5, 0.9), axis=0)
        low, middle, high = np.where(none, np.nan, known)
        x = np.median(np.asarray(metrics[curve.x], np.float64), axis=0)
        lines = (x.tolist(), middle.tolist(), low.tolist(), high.tolist())
        series.append(Series(arm.label, *lines, colours[arm.name]))
    if not series:
        return None
    x_label, y_label = curve.x_label or in_words(curve.x), curve.y_label or in_words(curve.y)
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
