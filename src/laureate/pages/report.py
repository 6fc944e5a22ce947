"""The page of one run: a single HTML file that opens from disk, with no network."""

import os
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import numpy as np

from laureate.claims import paper as load_paper
from laureate.claims import paper_ids
from laureate.lab.claim import Claim, Curve, Experiment
from laureate.lab.evidence import effects
from laureate.lab.records import paper_record, run_observations
from laureate.lab.store import Store
from laureate.pages.charts import Series, curve_chart, interval_chart, label

__all__ = ["render_report", "write_report"]

MARKS = {"supported": "✔", "refuted": "✘", "inconclusive": "?", "not run": "·"}
Arms = dict[str, dict[str, np.ndarray]]


def write_report(store: Store, run: int, path: Path) -> None:
    """Render the page and put it in place whole: a reader never sees half a file."""
    html = render_report(store, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(html)
    os.chmod(scratch, 0o644)
    os.replace(scratch, path)


def render_report(store: Store, run: int) -> str:
    """The page as a string."""
    record = store.run(run)
    if record is None:
        raise KeyError(run)
    verdicts = store.verdicts(run)
    observations = run_observations(store, run)
    cells = store.run_cells(run)
    papers = [
        _paper_section(paper_id, verdicts, observations)
        for paper_id in dict.fromkeys(verdict["paper"] for verdict in verdicts)
        if paper_id in paper_ids()
    ]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("laureate.pages"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["indices"] = _indices
    environment.filters["number"] = lambda value: "–" if value is None else _number(value)
    return environment.get_template("report.html").render(
        run=record,
        papers=papers,
        cells=cells,
        failed=[cell for cell in cells if cell["status"] == "failed"],
        seconds=sum(cell["seconds"] + cell["compile_seconds"] for cell in cells),
        marks=MARKS,
        tally=Counter(verdict["verdict"] for verdict in verdicts if "verdict" in verdict),
    )


def _paper_section(paper_id: str, verdicts: list[dict[str, Any]], observations: dict) -> dict[str, Any]:
    paper = load_paper(paper_id)
    sections = []
    for experiment in paper.experiments:
        mine = [v for v in verdicts if v["paper"] == paper_id and v["experiment"] == experiment.name]
        if not mine:
            continue
        arms: Arms = observations.get((paper_id, experiment.name), {})
        sections.append(
            {
                "experiment": experiment,
                "claims": [_claim_entry(experiment, verdict, arms) for verdict in mine if "verdict" in verdict],
                "questions": [verdict for verdict in mine if "answers" in verdict],
                "curves": [drawn for curve in experiment.curves if (drawn := _curve(experiment, curve, arms))],
            }
        )
    return paper_record(paper) | {"sections": sections}


def _claim_entry(experiment: Experiment, verdict: dict[str, Any], arms: Arms) -> dict[str, Any]:
    name = verdict["id"].partition("/")[2]
    claim = next((claim for claim in experiment.claims if claim.name == name), None)
    chart = ""
    if claim is not None and verdict["effect"] is not None:
        chart = interval_chart(
            effects(claim, arms).tolist(),
            verdict["effect"],
            verdict["low"] if verdict["low"] is not None else verdict["effect"],
            verdict["high"] if verdict["high"] is not None else verdict["effect"],
            _deciding_lines(claim, arms),
            f"{verdict['id']}: effect {_number(verdict['effect'])}, 95 % interval {_number(verdict['low'])} to"
            f" {_number(verdict['high'])}, {verdict['seeds']} seeds; {verdict['verdict']}",
        )
    return verdict | {
        "chart": chart,
        "reading": _reading(claim) if claim else "",
        "source": claim.source if claim else "",
    }


def _deciding_lines(claim: Claim, arms: Arms) -> list[tuple[float, str]]:
    """Where the verdict turns."""
    if claim.at_least is not None or claim.at_most is not None:
        bounds = ((claim.at_least, "at least"), (claim.at_most, "at most"))
        return [(value, f"{word} {label(value)}") for value, word in bounds if value is not None]
    margin = claim.margin
    if claim.relative:
        margin *= abs(float(np.mean(arms[claim.baseline][claim.metric])))
    if claim.kind == "equal":
        return [(-margin, f"−{_number(margin)}"), (margin, f"+{_number(margin)}")]
    return [(0.0, "no effect")] + ([(margin, f"margin {_number(margin)}")] if margin else [])


def _reading(claim: Claim) -> str:
    """What the horizontal axis of a claim's picture is."""
    unit = f" ({claim.unit})" if claim.unit else ""
    if claim.kind == "trend":
        return f"slope of {claim.metric} against {claim.against}, {claim.method}"
    if claim.kind == "bound":
        return f"{claim.metric}{unit}, {claim.method}"
    pair = (claim.baseline, claim.method) if claim.better == "lower" else (claim.method, claim.baseline)
    return f"{claim.metric}{unit}: {pair[0]} − {pair[1]}"


def _curve(experiment: Experiment, curve: Curve, arms: Arms) -> dict[str, str] | None:
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
    description = f"{curve.title}: {y_label} against {x_label} for {', '.join(one.label for one in series)}"
    return {"title": curve.title, "chart": curve_chart(series, x_label, y_label, description, curve.log_x, curve.log_y)}


def _indices(equation: str) -> markupsafe.Markup:
    """Plain Unicode mathematics with ``x_t`` and ``x_{t+1}`` as real subscripts."""
    escaped = str(markupsafe.escape(equation))
    return markupsafe.Markup(re.sub(r"_(?:\{([^}]*)\}|(\w))", lambda m: f"<sub>{m[1] or m[2]}</sub>", escaped))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}".replace("-", "−")
