"""The second shell: the same pages on this machine's own web address, live while a run goes on.

Python's own server: it serves one person, needs no dependency, and answers in milliseconds. Who may come in, and what
goes back, is decided in :mod:`laureate.pages.requests`; here is what is at which address.
"""

import contextlib
import hashlib
import ipaddress
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from laureate import papers
from laureate.catalogue import index
from laureate.catalogue.search import Catalogue
from laureate.lab.errors import UserError
from laureate.lab.judging.results import ClaimResult
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages import browse, content, render, vega
from laureate.pages.figures import csv_of
from laureate.pages.jobs import BusyError, Jobs
from laureate.pages.requests import Answer, BoundedServer, RefusedError, RequestHandler
from laureate.pages.wording import csv_text

__all__ = ["Server", "make_server"]

STATIC = {"style.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
SUGGESTIONS = 6
POLL_MS = {"job": 700, "run": 1500, "board": 3000}


class SharedCatalogue:
    """The catalogue, opened once and again when papers were imported; one question at a time."""

    FRESH_SECONDS = 5.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalogue: Catalogue | None = None
        self._mark, self._looked = "", 0.0
        self._listing: dict[str, Any] = {}

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Catalogue, dict[str, Any]]]:
        """The catalogue with its facets, for the time of a question."""
        with self._lock:
            now = time.monotonic()
            if self._catalogue is None or now - self._looked > self.FRESH_SECONDS:
                mark = index.fingerprint()
                if self._catalogue is None or mark != self._mark:
                    self._close()
                    self._catalogue = Catalogue(running=papers.paper_ids())
                    self._listing, self._mark = browse.listing(self._catalogue), mark
                self._looked = now
            yield self._catalogue, self._listing

    def close(self) -> None:
        """Give the index back."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._catalogue is not None:
            self._catalogue.close()
            self._catalogue = None


class Server(BoundedServer):
    """The local web. ``may_run``: its pages may start and stop runs."""

    def __init__(self, address: tuple[str, int], jobs: Jobs, may_run: bool):
        self.jobs = jobs
        self.catalogue = SharedCatalogue()
        super().__init__(address, Handler, may_run)

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        host = self.host if self.host not in ("", "0.0.0.0", "::") else "127.0.0.1"
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}/"

    def server_close(self) -> None:
        """Stop a run that was started from here, then let go of the port."""
        self.jobs.close()
        self.catalogue.close()
        super().server_close()


def make_server(host: str = "127.0.0.1", port: int = 8642, jobs: Jobs | None = None) -> Server:
    """A server that listens; ``port`` 0: any free one. Beyond loopback its pages are only for reading."""
    try:
        host.encode("idna")  # the socket's own complaint about such a name has no type of its own
        return Server((host, port), jobs or Jobs(), may_run=_is_loopback(host))
    except (OSError, UnicodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "that is no name of a machine"
        raise UserError(f"Cannot listen on {host}:{port}: {what}.", "Try another: laureate web --port 0") from error


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


class Handler(RequestHandler):
    """What is at which address."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def get(self, parts: list[str], query: dict[str, str]) -> Answer:
        """The page, file or fragment at an address."""
        first, *rest = parts
        pages: dict[str, Callable[[list[str], dict[str, str]], Answer]] = {
            "": self._board,
            "method": self._method,
            "runs": self._runs,
            "run": self._run,
            "compare": self._compare,
            "catalogue": self._catalogue,
            "paper": self._paper,
            "job": self._job,
            "figure": self._figure,
            "data": self._data,
            "static": self._static,
        }
        if first not in pages or (rest and first in ("", "runs", "compare", "catalogue", "job")):
            raise RefusedError(HTTPStatus.NOT_FOUND, "Perhaps the address was mistyped.")
        return pages[first](rest, query)

    def post(self, parts: list[str], form: dict[str, str]) -> Answer:
        """Start or stop a run."""
        where = "/job"
        if parts == ["start"]:
            where = self._start(form)
        elif parts == ["stop"]:
            self.server.jobs.stop()
        else:
            raise RefusedError(HTTPStatus.NOT_FOUND, "Only a run can be started or stopped here.")
        return Answer("", status=HTTPStatus.SEE_OTHER, headers={"Location": where})

    def _start(self, form: dict[str, str]) -> str:
        """Begin a run; where to look then. While one is under way, that is where it leads."""
        claim_id, scale = form.get("id", ""), form.get("scale", "")
        paper_id, _, name = claim_id.partition("/")
        if paper_id not in papers.paper_ids() or scale not in ("smoke", "desk"):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "Say which paper, and smoke or desk.")
        if name and name not in {claim.name for claim in papers.paper(paper_id).claims}:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"The paper {paper_id} has no claim of that name.")
        with _store() as store:
            newest = store.last_run() or 0
        try:
            self.server.jobs.start(claim_id, scale, newest)
        except BusyError:
            return "/job?busy=1"
        return "/job"

    def problem(self, status: HTTPStatus, text: str) -> Answer:
        """A refusal as a page."""
        site = self._site()
        title = status.phrase if status != HTTPStatus.NOT_FOUND else "There is no such page"
        page = render.body("problem", site, title=title, text=text)
        return Answer(render.web_page(site, title, page), status=status)

    def _site(self) -> render.Site:
        server = self.server
        token = server.token if server.may_run else ""
        return render.Site(live=True, token=token, running=server.jobs.running, explore=vega.available())

    def _page(self, page: str, title: str, /, here: str = "-", poll: int = 0, **data: Any) -> Answer:
        site = self._site()
        main = render.body(page, site, **data)
        if poll:
            main += f'<div data-poll="{poll}"></div>'
        if self.headers.get("X-Fragment") == "main":
            return Answer(main)
        return Answer(render.web_page(site, title, main, here))

    def _board(self, rest: list[str], query: dict[str, str]) -> Answer:
        with _store() as store:
            shown = content.board(store, papers.all_papers())
        poll = POLL_MS["board"] if self.server.jobs.running else 0
        return self._page("board", "The board", here="", poll=poll, **shown)

    def _method(self, rest: list[str], query: dict[str, str]) -> Answer:
        if len(rest) != 1 or rest[0] not in papers.paper_ids():
            raise RefusedError(HTTPStatus.NOT_FOUND, "No method of that name runs here; look in the catalogue.")
        run = _number(query.get("run"))
        with _store() as store:
            if run is not None and store.run(run) is None:
                raise RefusedError(HTTPStatus.NOT_FOUND, f"There is no run {run}.")
            shown = content.method(store, papers.paper(rest[0]), run)
        return self._page("method", shown["title"], **shown)

    def _runs(self, rest: list[str], query: dict[str, str]) -> Answer:
        with _store() as store:
            shown = content.runs(store, _number(query.get("page")) or 1)
        return self._page("runs", "Runs", here="runs", **shown)

    def _run(self, rest: list[str], query: dict[str, str]) -> Answer:
        number = _number(rest[0]) if len(rest) == 1 else None
        with _store() as store:
            shown = content.run(store, number, _number(query.get("page")) or 1) if number is not None else None
        if shown is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no run of that number.")
        poll = POLL_MS["run"] if shown["run"]["status"] == "running" else 0
        return self._page("run", f"Run {number}", poll=poll, **shown)

    def _compare(self, rest: list[str], query: dict[str, str]) -> Answer:
        with _store() as store:
            shown = content.compare(store, _number(query.get("first")), _number(query.get("second")))
        return self._page("compare", "Compare", here="compare", **shown)

    def _catalogue(self, rest: list[str], query: dict[str, str]) -> Answer:
        asked = browse.Query.of(query)
        part = self.headers.get("X-Fragment")
        fragment = part in ("results", "suggestions")
        with self.server.catalogue.opened() as (catalogue, listing):
            found = browse.search(catalogue, asked, as_typed=fragment)
        if part == "suggestions":
            return Answer(render.body("suggestions", self._site(), query=asked, papers=found["papers"][:SUGGESTIONS]))
        results = render.body("results", self._site(), **found)
        if fragment:
            return Answer(results)
        title = asked.q or "Catalogue"
        return self._page("catalogue", title, here="catalogue", **listing, query=asked, results=results)

    def _paper(self, rest: list[str], query: dict[str, str]) -> Answer:
        with self.server.catalogue.opened() as (catalogue, _):
            shown = browse.entry(catalogue, rest[0]) if len(rest) == 1 else None
        if shown is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "The catalogue has no paper of that name.")
        return self._page("entry", shown["paper"]["title"], **shown)

    def _job(self, rest: list[str], query: dict[str, str]) -> Answer:
        job = self.server.jobs.state()
        rows: list[ClaimResult] = []
        if job:
            with _store() as store:
                job["run"] = store.run_after(job["newest_before"], job["command"]) or job["reported_run"]
                if job["run"] is not None and not job["active"]:
                    rows = [row for row in store.results(job["run"]) if isinstance(row, ClaimResult)]
        poll = POLL_MS["job"] if job and job["active"] else 0
        busy = bool(query.get("busy")) and poll > 0
        return self._page("job", "Run", poll=poll, job=job, rows=rows, busy=busy)

    # -- files ---------------------------------------------------------------------------------------------------------

    def _figure(self, rest: list[str], query: dict[str, str]) -> Answer:
        run, name = _number(rest[0]) if rest else None, "/".join(rest[1:])
        shipped = rest[:1] == ["reference"]
        name, form = next(
            ((name.removesuffix(f".{form}"), form) for form in ("csv", "svg", "png", "vl.json") if name.endswith(form)),
            (name, ""),
        )
        with _store() as store:
            there = shipped or (run is not None and store.run(run) is not None)
            found = content.figure(store, run, name) if form and there else None
        if found is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such picture.")
        if form == "csv":
            return Answer(csv_of(found), "text/csv")
        if form == "vl.json":
            import json

            return Answer(json.dumps(vega.spec(found)), "application/json")
        if form == "png":
            return Answer(vega.image(found, "png"), "image/png")
        if vega.available():
            return Answer(vega.image(found, "svg"), "image/svg+xml")
        return Answer(render.standalone(found), "image/svg+xml")

    def _data(self, rest: list[str], query: dict[str, str]) -> Answer:
        from laureate.lab.records import OBSERVATION_COLUMNS, observation_rows

        number = _number(rest[0].removeprefix("run-").removesuffix(".csv")) if len(rest) == 1 else None
        with _store() as store:
            if number is None or store.run(number) is None:
                raise RefusedError(HTTPStatus.NOT_FOUND, "There is no run of that number.")
            rows = [tuple(row.values()) for row in observation_rows(store, number)]
        return Answer(csv_text(OBSERVATION_COLUMNS, rows), "text/csv")

    def _static(self, rest: list[str], query: dict[str, str]) -> Answer:
        name = rest[0] if len(rest) == 1 else ""
        if name == "vega.js" and vega.available():
            text, kind = vega.library(), "text/javascript"
        elif name in STATIC:
            text, kind = render.static(name), STATIC[name]
        else:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such file.")
        mark = f'"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'
        headers = {"ETag": mark, "Cache-Control": "no-cache"}
        if self.headers.get("If-None-Match") == mark:
            return Answer("", kind, HTTPStatus.NOT_MODIFIED, headers)
        return Answer(text, kind, headers=headers)


@contextlib.contextmanager
def _store() -> Iterator[Store]:
    """The store for one request: connections are not shared between threads."""
    with contextlib.closing(Store(store_path())) as store:
        yield store


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else None
