"""From what was measured to what a race found: the table, the curves, the advice, the code to paste."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from laureate.pages.wording import number, plural, settings
from laureate.racing.code import script
from laureate.racing.results import Curve, Metric, RaceResult, Row, Standing
from laureate.racing.running import Course, Run, Scored, labelled
from laureate.racing.standing import Measured, at_seconds, decidable, enough_seeds, envelope, pareto, stand

__all__ = ["Race", "conclude"]

FASTER = 0.8  # who is within noise of the first is worth a word if he takes at most this share of its seconds
AT_ONCE = 0.05  # seconds of a run below which time is no reason to choose
OVERSPENT = 1.05
UNDERSPENT = 0.5


class Race(RaceResult):
    """What a race found. In a notebook it shows itself as a table, a picture and the code."""

    def __str__(self) -> str:
        from laureate.racing.table import text

        return text(self)

    def _repr_html_(self) -> str:
        from laureate.pages.race import fragment

        return fragment(self)


def conclude(course: Course, run: Run, absent: Mapping[str, str]) -> Race:
    """The race as a whole, from what was measured. ``absent``: who stayed out, and why."""
    metric = course.metric
    measured = {one.entrant.name: one.measured for one in run.scored if one.measured is not None}
    by_name = {one.entrant.name: one for one in run.scored}
    standing = stand({name: one.final(one.quality) for name, one in measured.items()}, metric)
    sound = {name: measured[name] for name in standing.order}
    seconds = {name: float(np.median(one.final(one.seconds))) for name, one in sound.items()}
    moment = min((one for one in seconds.values() if one >= AT_ONCE), default=None)
    by_seconds = stand(at_seconds(sound, moment), metric) if moment is not None else None
    codes = {}
    for name in sound:
        one = by_name[name]
        chosen = {**course.facts, **one.config, **_fitted(one), "budget": run.budget}
        where = course.reference, course.factory, course.dictionary
        codes[name] = script(course.discipline, one.entrant, chosen, course.fragments, *where)
    rows = [_row(by_name[name], run, standing, by_seconds, i + 1, metric) for i, name in enumerate(standing.order)]
    rows += [_row(by_name[name], run, standing, by_seconds, None, metric) for name in standing.diverged]
    rows += [_failed(one) for one in run.scored if one.measured is None]
    rows += [Row(name, "stayed out", words=(why,), against="stayed out") for name, why in absent.items()]
    found_pareto = pareto(seconds, {name: standing.mean[name] for name in sound}, metric)
    return Race(
        discipline=course.discipline.name,
        title=course.discipline.title,
        problem=labelled(course),
        metric=metric,
        unit=course.discipline.unit,
        budget=run.budget,
        seeds=course.seeds,
        run=run.number,
        machine=run.machine,
        rows=tuple(rows),
        standing=standing,
        moment=moment,
        by_seconds=by_seconds,
        pareto=found_pareto,
        envelope=tuple(envelope(sound, course.costs(run.budget), metric)),
        curves=tuple(_curve(name, measured[name]) for name in (*standing.order, *standing.diverged)),
        advice=advise(course, run, standing, by_seconds, by_name, seconds),
        code=codes.get(standing.order[0], "") if standing.order else "",
        codes=codes,
        scores={name: tuple(map(float, one.final(one.quality))) for name, one in measured.items()},
        notes=course.discipline.notes,
        cells={"computed": run.computed, "kept": run.kept},
    )


def _row(
    one: Scored, run: Run, standing: Standing, by_seconds: Standing | None, place: int | None, metric: Metric
) -> Row:
    name, measured = one.entrant.name, one.measured
    if measured is None:
        raise ValueError(f"{name} was not measured.")
    cost, seconds = (float(np.median(measured.final(what))) for what in (measured.cost, measured.seconds))
    edges = one.entrant.edges(one.config)
    words = [f"{' and '.join(edges)}: look beyond"] if edges else []
    quality = measured.final(measured.quality)
    if name in standing.diverged:
        count = standing.diverged[name]
        words.insert(0, f"no finite number in {count} of {plural('seed', len(quality))}; the mean is of the others")
    if cost > OVERSPENT * run.budget:
        words.append(f"spent {cost / run.budget:.2g} times the budget, for one step costs as much")
    if cost < UNDERSPENT * run.budget and (measured.last < measured.cost.shape[1] - 1).any():
        words.append(f"out of time at {cost / run.budget:.0%} of the budget: cut after {number(run.seconds_a_run)} s")
    elif cost < UNDERSPENT * run.budget:
        words.append(f"spent {cost / run.budget:.0%} of the budget, as much as it could use")
    for limit in metric.limits:
        if len(quality) and (quality == limit).all():
            words.append(f"at {number(limit)}, the limit of the metric, in every seed")
    timed = by_seconds.mean.get(name) if by_seconds is not None else None
    return Row(
        entrant=name,
        status="finished" if place else "diverged",
        place=place,
        settings=one.config,
        mean=_finite(standing.mean[name]),
        low=_finite(standing.low[name]),
        high=_finite(standing.high[name]),
        at_seconds=_finite(timed),
        leads=place is not None and name in standing.leaders,
        cost=_finite(cost),
        seconds=_finite(seconds),
        compile_seconds=one.compile_seconds,
        tuning_cost=one.tuning_cost,
        words=tuple(words),
        against=_against(name, standing) if place else "diverged",
    )


def _against(name: str, standing: Standing) -> str:
    """How one who came in stands to the first, in words."""
    first = standing.order[0]
    if name == first:
        return "first"
    pair = standing.pair(first, name)
    if pair.same:
        return pair.word
    word = "worse" if pair.real else "within noise" if pair.within_noise else "perhaps worse"
    return f"{word}, p {number(pair.adjusted, 2)}"


def _fitted(one: Scored) -> dict[str, int]:
    """Settings that a track has found to fit the budget, by their names after ``chosen_``; the first seed's."""
    found = {name.removeprefix("chosen_"): values for name, values in one.others.items() if name.startswith("chosen_")}
    return {name: int(values[0, -1]) for name, values in found.items() if np.isfinite(values[0, -1])}


def _failed(one: Scored) -> Row:
    message = (one.error.splitlines() or ["it said nothing"])[0]
    status = "endless" if one.endless else "crashed"
    return Row(
        one.entrant.name,
        status,
        settings=one.config,
        tuning_cost=one.tuning_cost,
        words=(message,),
        against=status,
    )


def _curve(name: str, measured: Measured) -> Curve:
    points = int(np.isfinite(measured.cost).all(axis=0).sum())
    quality = np.where(np.isfinite(measured.quality), measured.quality, np.nan)[:, :points]
    kept = [i for i in range(points) if np.isfinite(quality[:, i]).any()]
    ends = [np.nanquantile(quality[:, kept], share, axis=0) if kept else np.empty(0) for share in (0.1, 0.5, 0.9)]
    return Curve(
        name,
        *(tuple(np.median(what[:, kept], axis=0).tolist()) for what in (measured.cost, measured.seconds)),
        middle=tuple(ends[1].tolist()),
        low=tuple(ends[0].tolist()),
        high=tuple(ends[2].tolist()),
    )


def advise(
    course: Course,
    run: Run,
    standing: Standing,
    by_seconds: Standing | None,
    scored: Mapping[str, Scored],
    seconds: Mapping[str, float],
) -> str:
    """One sentence or two, of nothing but what was measured here."""
    if not standing.order:
        return "Nobody came in with a finite number in every seed: there is nothing to advise."
    first = standing.order[0]
    place = f"at {run.budget:,} {course.discipline.unit}"
    advice = f"Use {first}{_with_settings(scored[first].config)}"
    score = f"{course.metric.name} {number(standing.mean[first])}"
    others, rest = standing.tied, standing.order[1:]
    if not rest:
        advice += f": nobody else came in {place}."
    elif not decidable(standing):
        advice += f" {place} ({score}) if you must: {plural('seed', standing.seeds)} cannot tell "
        advice += f"{len(standing.order)} entrants apart, ask for {enough_seeds(len(standing.order))}."
    elif not standing.leaders[1:]:
        advice += f": really better than {_all(rest)} {place} ({score})."
    elif not others:
        advice += (
            f" {place} ({score}); nobody is within noise, though {_all(standing.leaders[1:])} cannot be ruled out."
        )
    else:
        quick = min(others, key=lambda name: seconds[name])
        share = seconds[quick] / max(seconds[first], 1e-12)
        advice += f" {place} ({score}); "
        if share <= FASTER and seconds[first] >= AT_ONCE:
            advice += f"{quick}{_with_settings(scored[quick].config)} is within noise and takes {share:.2g} of the time"
            more = [name for name in others if name != quick]
            advice += f"; {_all(more)} {'is' if len(more) == 1 else 'are'} within noise, too." if more else "."
        else:
            advice += f"{_all(others)} {'is' if len(others) == 1 else 'are'} within noise."
    advice += _by_the_clock(first, standing, by_seconds)
    if edges := scored[first].entrant.edges(scored[first].config):
        advice += f" But {' and '.join(edges)}: look beyond before you settle."
    return advice


def _by_the_clock(first: str, standing: Standing, by_seconds: Standing | None) -> str:
    """What equal seconds say against the first by cost; nothing where they do not."""
    if by_seconds is None or not by_seconds.order or by_seconds.order[0] == first:
        return ""
    quick = by_seconds.order[0]
    if first in by_seconds.diverged:
        close = quick in standing.leaders
        return f" When the fastest was done, it had nothing yet; {quick} was first then." if close else ""
    return f" At equal seconds {quick} is really better." if by_seconds.pair(quick, first).real else ""


def _with_settings(config: Mapping[str, Any]) -> str:
    """Settings in a sentence; nothing where there are none."""
    return f" with {settings(config, ' = ')}" if config else ""


def _all(names: Any) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
