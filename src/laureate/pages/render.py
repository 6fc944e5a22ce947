"""From plain values to HTML: pure functions, one a page, the same for the one-file report and the local web page.

A :class:`Site` says where links lead; it is all that the two shells differ in.
"""

import functools
import json
import math
from dataclasses import dataclass, field
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
import markupsafe

from laureate.lab.claim import ROLES
from laureate.lab.judging.results import tally
from laureate.pages import wording
from laureate.pages.charts import Tile, topic_map
from laureate.pages.figures import Figure, csv_of, row_strip
from laureate.pages.mathml import mathml

__all__ = ["Site", "body", "file_page", "standalone", "static", "web_page"]


@dataclass(frozen=True)
class Site:
    """Where links lead, and what may be done.

    live: a server answers; else all pages are in one file, and ``pages`` are those it has.
    token: what a page must send back to start or stop a run; empty where it may not.
    running: the command that is under way.
    explore: charts can be opened with Vega-Lite.
    """

    live: bool = False
    pages: frozenset[str] = frozenset()
    token: str = ""
    running: str = ""
    explore: bool = False
    specs: dict[str, Any] = field(default_factory=dict, compare=False)

    def url(self, *parts: object, **query: object) -> str:
        """The address of a page."""
        path = "/".join(quote(str(part), safe="/") for part in parts)
        return f"{'' if self.live else '#'}/{path}" + (f"?{urlencode(query)}" if query else "")

    def link(self, text: str, *parts: object, **query: object) -> markupsafe.Markup:
        """A link to a page; its text alone where this file does not have that page."""
        if not self.live and "/".join(map(str, parts)) not in self.pages:
            return markupsafe.Markup("<span>{}</span>").format(text)
        return markupsafe.Markup('<a href="{}">{}</a>').format(self.url(*parts, **query), text)

    def claim(self, claim_id: object) -> str:
        """The address of a claim on its method's page."""
        paper, _, name = str(claim_id).partition("/")
        return f"{self.url('method', paper)}#{quote(name)}" if self.live else self.url("method", paper, name)

    def anchor(self, *parts: object) -> str:
        """The id of a place on a page: short on the web, the whole path in a file that holds many pages."""
        return str(parts[-1]) if self.live else "/" + "/".join(map(str, parts))

    def data(self, run: int | None, figure: Figure) -> list[tuple[str, str, str]]:
        """What is behind a chart: (words, address, file name)."""
        name = f"{f'run-{run}' if run else 'reference'}-{figure.name.replace('/', '-')}"
        where = run or "reference"
        if not self.live:
            return [("CSV", "data:text/csv;charset=utf-8," + quote(csv_of(figure, 7), safe=","), f"{name}.csv")]
        forms = ("csv", "svg", "png", "vl.json") if self.explore else ("csv", "svg")
        words = {"csv": "CSV", "svg": "SVG", "png": "PNG", "vl.json": "Vega-Lite"}
        return [(words[form], self.url("figure", where, f"{figure.name}.{form}"), f"{name}.{form}") for form in forms]


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("laureate.pages"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.undefined = jinja2.StrictUndefined
    environment.filters |= {
        "number": wording.number,
        "centre": wording.centre,
        "interval": wording.interval,
        "duration": wording.duration,
        "moment": wording.moment,
        "means": wording.means,
        "looks": wording.looks,
        "busy": wording.busy,
        "rival": wording.rival,
        "plural": wording.plural,
        "sentence": wording.sentence,
        "origin": wording.origin,
        "unit": wording.unit_of,
        "in_words": wording.in_words,
        "best_here": wording.best_here,
        "count_words": tally,
        "without": lambda roles, role: {name: rows for name, rows in roles.items() if name != role},
        "strip": lambda result: markupsafe.Markup(row_strip(result)),
        "mathml": lambda text: markupsafe.Markup(mathml(text)),
        "drawing": lambda figure: markupsafe.Markup(figure.drawing()),
        "markup": markupsafe.Markup,
        "combine": lambda first, second: {**first, **second},
    }
    environment.tests["finite"] = math.isfinite
    environment.globals |= {"marks": wording.MARKS, "role_words": ROLES, "topics_map": _topics_map}
    return environment


def _topics_map(site: Site, topics: dict[str, int]) -> markupsafe.Markup:
    """A wide map and a tall one; the style sheet shows the one that fits."""
    tiles = [Tile(name, count, site.url("catalogue", topic=name)) for name, count in topics.items()]
    return markupsafe.Markup(topic_map(tiles, 1000, 400, "wide") + topic_map(tiles, 330, 760, "tall"))


def standalone(figure: Figure) -> str:
    """A chart as an SVG file of its own, with the colours of the light theme inside."""
    drawn = figure.drawing().partition("<ul")[0]
    style = static("style.css").replace("<", "")
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        "<desc>", f"<style>{style}</style><desc>", 1
    )


def static(name: str) -> str:
    """A file of the style: ``style.css`` or ``app.js``."""
    return resources.files("laureate.pages").joinpath("static", name).read_text("utf-8")


def body(page: str, site: Site, /, **data: Any) -> str:
    """What stands between the header and the end of one page: board, method, run, runs, compare, catalogue, ..."""
    return _environment().get_template(f"{page}.html").render(site=site, **data)


def web_page(site: Site, title: str, content: str, here: str = "", query: str = "") -> str:
    """A whole page of the local web."""
    return (
        _environment()
        .get_template("web.html")
        .render(site=site, title=title, content=markupsafe.Markup(content), here=here, query=query)
    )


def file_page(
    site: Site, title: str, pages: dict[str, str], papers: list[dict[str, Any]] | None = None, library: str = ""
) -> str:
    """All pages in one file that opens from disk: address -> body, the first shown first.

    papers: what the search in the page looks through; a file that has it has all pages, and keeps all but the first
    packed, which makes it a third as large. library: Vega's code, for charts that can be explored.
    """
    packed = dict(list(pages.items())[1:]) if papers is not None else {}
    content = {"papers": papers or [], "specs": site.specs, "pages": packed}
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    scripts = [markupsafe.Markup(text) for text in (library, static("app.js")) if text]
    return (
        _environment()
        .get_template("file.html")
        .render(
            site=site,
            title=title,
            pages={name: markupsafe.Markup(content) for name, content in pages.items() if name not in packed},
            style=markupsafe.Markup(static("style.css")),
            scripts=scripts,
            hashes=" ".join(_hash(script) for script in scripts),
            packed=papers is not None,
            data=markupsafe.Markup(_packed(data) if papers is not None else data),
        )
    )


def _packed(text: str) -> str:
    """As gzip in letters; the same text always gives the same letters. app.js unpacks it."""
    import base64
    import gzip

    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _hash(script: str) -> str:
    """What a browser is told of a script that it may run."""
    import base64
    import hashlib

    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
