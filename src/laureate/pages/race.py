"""The page of a race: from what it found to HTML. It knows nothing else of races."""

from collections.abc import Sequence
from typing import Literal

import markupsafe

from laureate.pages import render
from laureate.pages.charts import Series, curve_chart
from laureate.pages.wording import duration, number, settings
from laureate.racing.results import Metric, RaceResult, Row

__all__ = ["cells", "columns", "fragment", "page", "picture"]

# In a notebook there is no style sheet of ours around.
NOTEBOOK = """<style>.laureate-race{--s0:#17569a;--s1:#b84e14;--s2:#17713a;--s3:#8e3b9c;--s4:#b3261e;--s5:#6b6200;
--s6:#007a7a;--s7:#5c666e;max-width:60rem}.laureate-race svg{max-width:34rem;display:block}.laureate-race .line{
fill:none;stroke-width:1.8;stroke:var(--c)}.laureate-race .band{fill:var(--c);opacity:.16}.laureate-race .grid,
.laureate-race .axis{stroke:#888;stroke-width:.5}.laureate-race text{font:11px sans-serif;fill:currentColor}
.laureate-race .legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0}
.laureate-race .legend li::before{content:"";display:inline-block;width:1.1rem;height:.22rem;background:var(--c);
margin-right:.4rem}.laureate-race .s0{--c:var(--s0)}.laureate-race .s1{--c:var(--s1)}.laureate-race .s2{--c:var(--s2)}
.laureate-race .s3{--c:var(--s3)}.laureate-race .s4{--c:var(--s4)}.laureate-race .s5{--c:var(--s5)}
.laureate-race .s6{--c:var(--s6)}
.laureate-race .s7{--c:var(--s7)}.laureate-race .dashed{stroke-dasharray:5 3}</style>"""
WIDE = 30.0  # from such a ratio on qualities are drawn on a logarithmic axis


def picture(race: RaceResult, against: Literal["cost", "seconds"]) -> str:
    """Quality against ``cost`` or ``seconds``, a line an entrant; empty where nobody has two points."""
    curves = [curve for curve in race.curves if curve.middle]
    if max((len(curve.middle) for curve in curves), default=0) < 2:
        return ""
    drawn = [
        Series(curve.entrant, getattr(curve, against), curve.middle, curve.low, curve.high, colour)
        for colour, curve in enumerate(curves)
    ]
    values = [value for curve in curves for one in (curve.middle, curve.low, curve.high) for value in one]
    log = min(values) > 0 and (race.metric.log or max(values) / min(values) > WIDE)
    x_label = "seconds, compiling apart" if against == "seconds" else race.unit
    ends = "; ".join(f"{one.label} ends at {number(one.middle[-1])}" for one in drawn)
    words = f"{race.metric.name} against {x_label}. {ends}."
    return curve_chart(drawn, x_label, race.metric.name, words, log_x=_apart(drawn), log_y=log)


def _apart(series: Sequence[Series]) -> bool:
    values = [x for one in series for x in one.x]
    return min(values) > 0 and max(values) / min(values) > 4


def columns(metric: Metric) -> tuple[str, ...]:
    """The heads of the table."""
    arrow = "↓" if metric.better == "lower" else "↑"
    quality = (f"{metric.name} {arrow}", "95 % interval", "to the first")
    return ("", "entrant", *quality, "seconds", "compiling", "settings")


def cells(row: Row) -> tuple[str, ...]:
    """A row of it."""
    chosen = settings(row.settings)
    if row.mean is None:
        return ("", row.entrant, row.status, "", "", "", "", chosen if row.status != "stayed out" else "")
    ends = f"[{number(row.low)}, {number(row.high)}]" if row.low is not None and row.high is not None else "–"
    place = str(row.place) if row.place else ""
    times = duration(row.seconds), duration(row.compile_seconds)
    return (place, row.entrant, number(row.mean), ends, row.against, *times, chosen)


def body(race: RaceResult, site: render.Site) -> str:
    """What stands on the page: the advice, the table, the pictures, the code, the comparisons."""
    pictures = [markupsafe.Markup(picture(race, against)) for against in ("cost", "seconds")]
    heads, table = columns(race.metric), [cells(row) for row in race.rows]
    return render.body("race", site, race=race, heads=heads, table=table, pictures=pictures)


def fragment(race: RaceResult) -> str:
    """For a notebook: with as much style as it needs."""
    return f'<div class="laureate-race">{NOTEBOOK}{body(race, render.Site())}</div>'


def page(race: RaceResult) -> str:
    """One file that opens from disk."""
    name = f"race/{race.run}"
    site = render.Site(pages=frozenset((name,)))
    return render.file_page(site, f"Race {race.run}", {name: body(race, site)})
