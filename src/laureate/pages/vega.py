"""The charts as Vega-Lite, made with Altair: for exploring in the page, for papers (PNG, SVG), and for other tools.

The pages draw their charts as inline SVG and do not need this; Altair and vl-convert come with the extra ``charts`` and
are loaded when one of these functions is called.
"""

import functools
import importlib.util
import json
import math
from typing import Any

from laureate.lab.errors import UserError
from laureate.lab.storing.files import written_whole
from laureate.pages.charts import PALETTE
from laureate.pages.figures import CurveFigure, Figure, IntervalFigure

__all__ = ["available", "image", "library", "spec"]

_REMEDY = "pip install 'laureate[charts]'"


def available() -> bool:
    """Whether the extra ``charts`` is installed; loads nothing."""
    return all(importlib.util.find_spec(name) for name in ("altair", "vl_convert"))


def _needed() -> None:
    if not available():
        raise UserError("Vega-Lite, PNG and SVG charts need Altair and vl-convert.", _REMEDY)


def spec(figure: Figure) -> dict[str, Any]:
    """The figure as a Vega-Lite specification with its data inside; its description is the text alternative."""
    _needed()
    chart = _intervals(figure) if isinstance(figure, IntervalFigure) else _curves(figure)
    made = json.loads(chart.properties(title=figure.title, description=figure.description, width=420).to_json())
    return _without_gaps(made)


def _without_gaps(value: Any) -> Any:
    """The same as JSON can say it: null for a number that is none, where a line is broken."""
    if isinstance(value, dict):
        return {name: _without_gaps(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_gaps(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _intervals(figure: IntervalFigure) -> Any:
    import altair as alt

    seeds = alt.Data(values=[{"seed": i, "value": value, "row": "seeds"} for i, value in enumerate(figure.seeds)])
    mean = alt.Data(values=[{"value": figure.effect, "low": figure.low, "high": figure.high, "row": "mean"}])
    lines = alt.Data(values=[{"value": value, "words": words} for value, words in figure.lines])
    across = alt.X("value:Q", title=figure.axis, scale=alt.Scale(zero=False, nice=True))
    row = alt.Y("row:N", title=None, sort=["seeds", "mean"])
    points = alt.Chart(seeds).mark_circle(size=45, opacity=0.5).encode(across, row, tooltip=["seed:Q", "value:Q"])
    span = alt.Chart(mean).mark_rule(size=3).encode(alt.X("low:Q"), alt.X2("high:Q"), row)
    middle = (
        alt.Chart(mean).mark_circle(size=110, opacity=1).encode(across, row, tooltip=["value:Q", "low:Q", "high:Q"])
    )
    rules = alt.Chart(lines).mark_rule(strokeDash=[3, 3], color="grey").encode(across, tooltip=["words:N", "value:Q"])
    return alt.layer(rules, points, span, middle).properties(height=90)


def _curves(figure: CurveFigure) -> Any:
    import altair as alt

    _, rows = figure.table()
    values = [dict(zip(("arm", "x", "middle", "low", "high"), row, strict=True)) for row in rows]
    if figure.log_x:
        values = [row for row in values if row["x"] > 0]
    if figure.log_y:
        values = [row for row in values if min(row["low"], row["middle"], row["high"]) > 0]
    base = alt.Chart(alt.Data(values=values))
    across = alt.X("x:Q", title=figure.x_label, scale=alt.Scale(type="log" if figure.log_x else "linear", nice=False))
    height = alt.Scale(type="log" if figure.log_y else "linear", zero=False)
    colours = alt.Scale(
        domain=[one.label for one in figure.series], range=[PALETTE[one.colour % 8] for one in figure.series]
    )
    legend = alt.Legend(orient="bottom", columns=2, symbolOpacity=1)
    arm = alt.Color("arm:N", title=None, sort=None, scale=colours, legend=legend)
    band = base.mark_area(opacity=0.16).encode(across, alt.Y("low:Q", scale=height), alt.Y2("high:Q"), arm)
    line = base.mark_line().encode(across, alt.Y("middle:Q", title=figure.y_label, scale=height), arm)
    dots = base.mark_circle(opacity=0, size=90).encode(
        across, alt.Y("middle:Q", scale=height), arm, tooltip=["arm:N", "x:Q", "middle:Q", "low:Q", "high:Q"]
    )
    return alt.layer(band, line, dots).properties(height=260).interactive()


def image(figure: Figure, form: str) -> bytes:
    """The figure as ``png`` (twice the pixels, for print) or ``svg``."""
    specification = spec(figure)
    import vl_convert

    version = "v" + ".".join(specification["$schema"].rpartition("/v")[2].split(".")[:2])
    if form == "png":
        return vl_convert.vegalite_to_png(specification, vl_version=version, scale=2)
    return vl_convert.vegalite_to_svg(specification, vl_version=version).encode()


@functools.cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script (0.9 MB): exploring needs no network. Made once a version."""
    _needed()
    import vl_convert

    from laureate.lab.storing.home import home

    versions = (
        vl_convert.get_vega_version(),
        vl_convert.get_vegalite_versions()[-1],
        vl_convert.get_vega_embed_version(),
    )
    kept = home() / "cache" / f"vega-{'-'.join(versions)}.js"
    if not kept.exists():
        with written_whole(kept) as file:
            file.write(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    # Inside a page, this would end the script element early.
    return kept.read_text("utf-8").replace("</script", "<\\/script").replace("<!--", "\\x3c!--")
