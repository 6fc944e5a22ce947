"""What a page shows of a store: counts, orders and choices, each put together anew; and the same on the page itself."""

import base64
import collections
import dataclasses
import datetime
import gzip
import html
import http.client
import io
import itertools
import json
import math
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from test_server import FakeJobs, serving

import toy_site
import toys
from laureate import papers
from laureate.catalogue import Catalogue, Entry, Hit, Result
from laureate.catalogue.citation import bibtex
from laureate.cli._progress import LineProgress
from laureate.lab.cell import Outcome
from laureate.lab.judging.results import WORDS, ClaimId, ClaimResult, Measured
from laureate.lab.judging.standing import Place, Standing
from laureate.lab.running.plan import plan
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages import browse, content, render, report, server, vega, wording
from laureate.pages.figures import IntervalFigure, claim_figure
from laureate.pages.jobs import Jobs, _Job
from laureate.pages.render import Site
from laureate.pages.wording import centre, duration, interval, unit_of

WEB = render.Site(live=True)
FIGURE = IntervalFigure(
    "p/c", "t", "c", "d", "a", (1.0, 4.0, 2.0), 2.5, 2.0, 3.25, ((0.0, "no effect"), (0.5, "m")), None
)
FACTS = {"experiment": "toy", "statement": "s", "metric": "loss", "scale": "desk", "seeds": 20, "run": 1}


@pytest.fixture
def store(shared):
    opened = Store(store_path())
    yield opened
    opened.close()


def text_of(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def result(name="better", **facts):
    return ClaimResult(id=ClaimId("toy", name), **FACTS | {"kind": "better", "verdict": "supported"} | facts)


@pytest.mark.parametrize("checks", [0, 2])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_paper_is_counted_by_its_claims_and_by_its_checks_where_it_has_no_others(checks, others):
    words = [WORDS[i % 4] for i in range(others)], [WORDS[i % 4] for i in range(checks)]
    roles = {"headline": [result(verdict=word) for word in words[0]]} if others else {}
    roles |= {"check": [result(verdict=word, role="check", reference=True) for word in words[1]]} if checks else {}
    for role, mine in roles.items():
        roles[role] = [dataclasses.replace(one, role=role) for one in mine]
    shown = content.ShownPaper(toy_site.paper(), {}, roles, None, None)
    counted = words[0] or words[1]
    assert shown.tally == {word: counted.count(word) for word in WORDS if word in counted}
    assert (len(shown.claims), shown.reference) == (others + checks, checks)
    assert shown.first == (next(iter(roles), ""), next(iter(roles.values()), []))
    assert not shown.idle
    idle = content.ShownPaper(toy_site.paper(), {}, {"check": [result(verdict="not run", role="check")]}, None, None)
    assert idle.idle


def test_what_was_measured_comes_first_among_areas_and_among_papers(store):
    made = toy_site.paper()
    asked = [("a", "none"), ("b", "some"), ("toy", "some"), ("c", "nothing"), ("d", "some")]
    shown = content.board(store, [dataclasses.replace(made, id=name, area=area) for name, area in asked])
    assert {area: [one.paper.id for one in mine] for area, mine in shown["areas"].items()} == {
        "some": ["toy", "b", "d"], "none": ["a"], "nothing": ["c"],
    }  # fmt: skip
    assert list(shown["areas"]) == ["some", "none", "nothing"]
    assert (shown["papers"], shown["claims"], shown["reference"]) == (5, 5 * 4, 0)
    assert shown["areas"]["some"][0].lead is shown["areas"]["some"][0].claims[0]


def test_other_results_of_a_claim_are_told_once_each_and_ours_beside_what_was_measured_here(monkeypatch):
    ours = result(reference=True, run=None, effect=9.0)
    monkeypatch.setattr(content, "reference", lambda paper: {"toy/better": ours})
    monkeypatch.setattr(papers, "paper", lambda _: toy_site.paper())
    kept = [result(effect=e, run=run) for e, run in ((1.0, 5), (2.0, 4), (1.0, 3), (2.0, 2), (3.0, 1))]
    asked = SimpleNamespace(history=lambda claim, problem, limit: kept)
    told = content._earlier(asked, result(effect=1.0, run=5))  # pyright: ignore[reportArgumentType]
    assert [(one.effect, one.run) for one in told] == [(2.0, 4), (3.0, 1), (9.0, None)]
    empty = SimpleNamespace(history=lambda *_: [])
    assert content._earlier(empty, ours) == ()  # pyright: ignore[reportArgumentType]


def test_the_seconds_of_a_scale_are_those_of_its_newest_run_and_of_finished_cells():
    cell = lambda status, seconds: {"status": status, "seconds": seconds, "compile_seconds": seconds / 4}  # noqa: E731
    cells = {n: [cell("done", float(n)), cell("done", 2.0 * n), cell("failed", 100.0)] for n in (1, 2, 3, 4)}
    scales = {1: "smoke", 2: "desk", 3: "smoke", 4: "desk"}
    fake = SimpleNamespace(
        run=lambda n: {"scale": scales[n], "environment": {"machine": f"m{n}"}} if n in scales else None,
        run_cells=lambda n, paper: cells[n] if paper == "toy" else [],
    )
    for order in itertools.permutations((1, 2, 3, 4, 5)):
        spent = {one.scale: one for one in content._measured(fake, toy_site.paper(), order)}  # pyright: ignore
        assert spent == {
            "smoke": content.Spent("smoke", 1.25 * 9.0, "m3"), "desk": content.Spent("desk", 1.25 * 12.0, "m4")
        }  # fmt: skip


def test_facts_that_only_one_of_two_runs_has_are_told_too(home):
    store = Store(store_path())
    for versions in ({"jax": "1", "a": "1"}, {"jax": "1", "b": "2"}):
        facts = {"versions": versions, "machine": "m", "system": "s"}
        store.end_run(store.start_run("laureate run toy", "smoke", 10, "default", facts), "finished")
    second = store.last_run() or 0
    first = second - 1
    told = content.compare(store, first, second)["differences"]
    assert told == [("a", "1", "–"), ("b", "–", "2")]
    assert content.compare(store, second, first)["differences"] == [("b", "2", "–"), ("a", "–", "1")]
    store.close()


def test_the_form_of_a_comparison_holds_the_two_that_are_compared_however_old(home, monkeypatch):
    """Beside the newest; each once, the newest first."""
    store = Store(store_path())
    for _ in range(3):
        store.end_run(store.start_run("c", "smoke", 10, "default", {"versions": {}, "machine": "m"}), "finished")
    monkeypatch.setattr(content, "RUNS_TO_CHOOSE", 2)
    for first, second in itertools.product((1, 2, 4, 5, 99, None), repeat=2):
        shown = content.compare(store, first, second)
        there = {one for one in (first, second) if one and one < 99}
        assert [run["id"] for run in shown["choice"]] == sorted({5, 4, *there}, reverse=True)
        page = render.body("compare", WEB, **{"differences": []} | shown)
        for name, one in (("first", first), ("second", second)):
            (form,) = re.findall(f'<select name="{name}">(.*?)</select>', page)
            assert re.findall(r'value="(\d+)" selected', form) == ([str(one)] if one in there else [])
    store.close()


def test_one_store_gives_the_same_files_at_any_time(store, monkeypatch):
    """So that two can be compared; what a file says of a time is when something was measured."""
    papers_known = [{"id": "a", "title": "A"}]
    files = []
    for now in (1e9, 2e9):
        monkeypatch.setattr("time.time", lambda now=now: now)
        pages = {"": "first", "catalogue": "second", "paper": "third"}
        files.append((report.render_run(store, 1), render.file_page(WEB, "t", pages, papers_known)))
    assert files[0] == files[1]


def test_the_file_of_a_run_has_all_its_cells_on_one_page(store, monkeypatch):
    monkeypatch.setattr(content, "CELLS_A_PAGE", 2)
    cells = store.run_cells(1)
    for page in (report.render_run(store, 1), render.body("run", WEB, **(content.run(store, 1, 2) or {}))):
        shown = re.findall(r'<th scope="row">toy/toy</th><td>(\w+)</td><td class="figures">(\d+)–(\d+)</td>', page)
        expected = [(cell["arm"], str(cell["start"]), str(cell["start"] + cell["count"] - 1)) for cell in cells]
        assert shown == (expected if "<html" in page else expected[2:4])
    told = content.run(store, 1) or {}
    assert told["seconds"] == pytest.approx(sum(cell["seconds"] + cell["compile_seconds"] for cell in cells))
    assert "Nothing was run yet" not in render.body("runs", WEB, **content.runs(store, 99)), "a page behind the last"


def test_shares_of_seeds_are_rounded_to_whole_percents(store):
    told = content.method(store, papers.paper("toy"))
    (section,) = told["sections"]
    for share in (0.0, 0.29, 0.57, 0.58, 0.995, 1.0):
        claims = tuple(
            dataclasses.replace(one, result=dataclasses.replace(one.result, improvement=share))
            for one in section.claims
        )
        changed = told | {"sections": [dataclasses.replace(section, claims=claims)]}
        page = text_of(render.body("method", WEB, **changed))
        assert len(re.findall(rf"(?:better|holds) in {round(100 * share)} % of 10 seeds", page)) == len(claims), share


def test_a_guard_is_told_beside_a_verdict_unless_the_reason_says_it(store):
    told = content.method(store, papers.paper("toy"))
    (section,) = told["sections"]
    for guard, reason, said in (
        ("", "r", False), ("g at its limit", "r", True), ("g", "r, for g", False), ("g", "held back: h", False),
    ):  # fmt: skip
        one = dataclasses.replace(section.claims[0].result, guard=guard, reason=reason, verdict="inconclusive")
        shown = dataclasses.replace(section.claims[0], result=one)
        page = text_of(
            render.body("method", WEB, **told | {"sections": [dataclasses.replace(section, claims=(shown,))]})
        )
        assert ("It could not have been supported" in page) == said, (guard, reason)
        assert f"Why inconclusive: {reason}." in page


def test_a_change_is_called_identical_only_where_no_seed_changed(store):
    told = content.compare(store, 1, 2)
    row = told["rows"][0]
    for change, low, high, differs, words in (
        (0.0, 0.0, 0.0, False, "identical"),
        (0.0, -1.0, 1.0, False, "no difference found"),
        (0.5, -1.0, 1.0, False, "no difference found"),
        (0.5, 0.1, 1.0, True, "differs"),
        (None, None, None, False, "not paired"),
    ):
        changed = dataclasses.replace(row, change=change, low=low, high=high)
        page = text_of(render.body("compare", WEB, **told | {"rows": [changed]}))
        said = [word for word in ("identical", "no difference found", "differs", "not paired") if f" {word}" in page]
        assert [word for word in said if word != "differs" or differs] == [words], words
    only = dataclasses.replace(row, second=None, change=None)
    assert "only one of them has it" in render.body("compare", WEB, **told | {"rows": [only]})


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 9])
def test_others_are_named_where_there_are_more_authors_than_three(count):
    names = [f"Author {letter}" for letter in "ABCDEFGHI"[:count]]
    paper = Entry("x", "T", tuple(names), "ICML 2021").record() | {"runs": False, "claims": []}
    page = render.body(
        "results", WEB, query=browse.Query("q"), papers=[paper], corrected=[], ignored_phrase=False, suggestions=(),
        total=1, pages=1, more=False,
    )  # fmt: skip
    said = text_of(page)
    assert ("and others" in said) == (count > 3)
    assert ", ".join(names[:3]) in said
    assert count < 4 or names[3] not in said


@pytest.mark.parametrize(
    ("own", "here", "near"), [(10.0, 2.0, True), (10.0, 1.9, False), (100.0, 19.0, False), (0.5, 0.11, True)]
)
def test_what_runs_is_near_by_its_share_of_the_papers_own_score(own, here, near):
    asked = []

    def search(question, runs, limit):
        asked.append((question, runs, limit))
        return SimpleNamespace(hits=[Hit(Entry("r" if runs else "o", "T"), here if runs else own)])

    fake = SimpleNamespace(search=search)
    found = browse.nearest(fake, Entry("x", "T", problem="p", does="d", abstract="a"))  # pyright: ignore
    assert found == browse.Nearest("r", "T", near)
    assert browse.nearest(fake, Entry("x", "T", abstract="a")) is not None  # pyright: ignore
    assert asked == [(text, runs, 1) for text in ("p d", "T a") for runs in (False, True)]


def test_how_far_a_run_is_is_read_from_every_line_that_it_prints(capsys):
    """Line by line: done, of how many, of what, and the time left, which is told no longer than it holds."""
    cells = plan(toys.selections(toys.paper()), "smoke")
    progress = LineProgress()
    progress.start(cells, 3, 2)
    progress.waiting(cells[:2])
    for number, cell in enumerate(cells):
        outcome = Outcome(seconds=2.0, compile_seconds=1.0, error="ValueError: no\nmore" if number == 2 else "")
        progress.finished(cell, outcome)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(cells) + 2
    told = []
    for upto in range(1, len(lines) + 1):
        process = SimpleNamespace(stdout=io.StringIO("\n".join(lines[:upto]) + "\n"), wait=lambda: 0, poll=lambda: None)
        job = _Job(["run", "toy"], process, 0, 0.0, collections.deque(maxlen=400))
        jobs = Jobs()
        jobs._job = job
        jobs._listen(job)
        state = jobs.state() or {}
        assert state["lines"] == lines[:upto]
        told.append((state["done"], state["total"], state["experiment"], state["left"]))
    seconds = [3.0 * (len(cells) - done) / 2 for done in range(1, len(cells))]
    assert told[:2] == [(0, 6, "", "")] * 2
    assert [row[:3] for row in told[2:]] == [(done, 6, "toy/toy") for done in range(1, 7)]
    left = [f"about {duration(s)} left" for s in seconds]
    assert [row[3] for row in told[2:]] == [*left, ""]


def test_questions_are_completed_while_they_are_typed_and_not_when_they_are_sent(shared, monkeypatch):
    """And every refusal closes its connection, for what was sent with it is not read."""
    asked = []
    search = browse.search
    monkeypatch.setattr(
        browse, "search", lambda *given, as_typed: (asked.append(as_typed), search(*given, as_typed=as_typed))[1]
    )
    with serving(jobs=FakeJobs()) as started:
        address = started.server_address

        def ask(method="GET", path="/catalogue?q=conform", **headers):
            connection = http.client.HTTPConnection("127.0.0.1", address[1], timeout=30)
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status, answer.headers["Connection"]

        for part, completed in (("results", True), ("suggestions", True), ("main", False), ("", False)):
            asked.clear()
            assert ask(X_Fragment=part) == (200, None)
            assert asked == [completed], part
        refused = [
            (400, ask(Content_Length="5")), (403, ask("POST", "/start", Content_Length="0")), (404, ask(path="/none")),
            (413, ask("POST", "/start", Content_Length="9999")), (414, ask(path="/" + "a" * 5000)),
            (421, ask(Host="evil.example")), (501, ask("PUT")),
        ]  # fmt: skip
        assert refused == [(status, (status, "close")) for status, _ in refused]


@pytest.mark.parametrize(
    "asked", [{}, {"page": 2}, {"q": "w"}, {"topic": "audio"}, {"runs": True}, {"q": "w", "page": 2}]
)
@pytest.mark.parametrize("more", [False, True])
def test_how_many_were_found_is_told_where_something_was_asked(asked, more):
    """On every page of it; the list of all papers says in which order it stands instead, on its second page too."""
    query = browse.Query(**asked)
    page = render.body(
        "results", WEB, query=query, papers=[], corrected=[], ignored_phrase=False, suggestions=(), total=300, pages=4,
        more=more,
    )  # fmt: skip
    told = "300 or more found" if more else "300 found"
    assert (told in text_of(page)) == bool(asked.keys() - {"page"}) != ("Awards first" in page)


def test_more_than_are_told_may_be_there_only_where_a_search_was_cut(shared, monkeypatch):
    """Filters alone are counted whole, also where there are just as many as a search brings up."""
    with Catalogue() as catalogue:
        audio = browse.listing(catalogue)["facets"]["topic"]["audio"]
        for bound, q, told in (
            (audio, "", f"{audio} found"), (3, "", f"{audio} found"), (3, "speech", "3 or more found"),
            (3, '"speech"', "3 or more found"), (audio + 1, "speech", " found"),
        ):  # fmt: skip
            monkeypatch.setattr("laureate.catalogue.search.CANDIDATES", bound)
            found = browse.search(catalogue, browse.Query(q, topic="audio"))
            text = text_of(render.body("results", WEB, **found))
            assert told in text
            assert ("or more" in text) == ("or more" in told)


def test_the_script_of_a_file_reads_every_filter_that_the_form_has(shared):
    """The select boxes of the catalogue's page, in what an address sets and in what restricts."""
    facets = {"topic": {"audio": 1}, "kind": {"method": 1}, "venue": {"V": 1}, "decision": {"Oral": 1}}
    form = render.body("catalogue", WEB, size=1, left_out=0, facets=facets, running=1, query=None, results="")
    names = set(re.findall(r'<select name="(\w+)"', form))
    assert names == {*facets} == browse.Query().filters.keys() - {"runs"}
    lists = [
        set(re.findall(r'"(\w+)"', found))
        for found in re.findall(r'\[("[^\]]*"topic"[^\]]*|"topic"[^\]]*)\]', render.static("app.js"))
    ]
    assert [found & names for found in lists] == [names] * 2


# -- pictures, links and files ----------------------------------------------------------------------------------------


def test_an_interval_as_vega_lite_has_the_numbers_of_the_page():
    pytest.importorskip("altair")
    spec = vega.spec(FIGURE)
    assert (spec["title"], spec["description"]) == ("t", "d")
    layers = []
    for layer in spec["layer"]:
        data = layer["data"]
        layers.append((data.get("values") or spec["datasets"][data["name"]], layer))
    rules, points, span, middle = layers
    assert [(row["value"], row["words"]) for row in rules[0]] == [*FIGURE.lines]
    assert [(row["seed"], row["value"]) for row in points[0]] == [*enumerate(FIGURE.seeds)]
    for data, _ in (span, middle):
        assert [(row["value"], row["low"], row["high"]) for row in data] == [(2.5, 2.0, 3.25)]
    assert [span[1]["encoding"][name]["field"] for name in ("x", "x2")] == ["low", "high"]
    for _, layer in (rules, points, middle):
        assert (layer["encoding"]["x"]["field"], layer["encoding"]["x"]["title"]) == ("value", "a")
        assert layer["encoding"]["x"]["scale"]["zero"] is False
    assert [layer["encoding"]["y"]["sort"] for _, layer in (points, span, middle)] == [["seeds", "mean"]] * 3


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize(("run", "place", "name"), [(3, "3", "run-3"), (None, "reference", "reference")])
def test_what_is_behind_a_picture_is_offered_in_every_form_that_there_is(explore, run, place, name):
    forms = {"CSV": "csv", "SVG": "svg"} | ({"PNG": "png", "Vega-Lite": "vl.json"} if explore else {})
    assert Site(live=True, explore=explore).data(run, FIGURE) == [
        (words, f"/figure/{place}/p/c.{form}", f"{name}-p-c.{form}") for words, form in forms.items()
    ]
    ((words, address, file),) = Site(explore=explore).data(run, FIGURE)
    assert (words, address[:9], file) == ("CSV", "data:text", f"{name}-p-c.csv")


def test_every_picture_of_a_file_that_can_be_explored_has_its_own_specification(store, monkeypatch):
    """Of a run and of everything, of claims and of curves, of what was measured here and of what ships."""
    monkeypatch.setattr(vega, "spec", lambda figure: {"title": figure.name})
    monkeypatch.setattr(vega, "library", lambda: "")
    files = [report.render_run(store, 1, explore=True), report.render_everything(store, explore=True)]
    numbers = {"measured": Measured((1.0, 2.0)), "effect": 1.5, "low": 0.5, "high": 2.0}
    shipped = result(reference=True, run=None, **numbers)
    monkeypatch.setattr(content, "paper_results", lambda *_: [shipped])
    files.append(report.render_everything(store, explore=True))
    for whole, places, count in zip(files, ({"1"}, {"2"}, {"reference"}), (5, 5, 1), strict=True):
        (text,) = re.findall(r'id="data">([^<]*)</script>', whole)
        data = json.loads(text if text[:1] == "{" else gzip.decompress(base64.b64decode(text)))
        pages = "".join((whole, *data["pages"].values()))
        asked = re.findall('data-spec-name="([^"]*)"', pages)
        assert {name.partition("/")[0] for name in asked} == places
        assert len({*asked}) == count
        told = {name: spec["title"] for name, spec in data["specs"].items()}
        assert told == {name: name.partition("/")[2] for name in asked}


def test_a_link_leads_to_what_it_names(store):
    """On every page: a run by its number, a claim by its name; of a claim's other results each to its own run."""
    told = content.method(store, papers.paper("toy"))
    (section,) = told["sections"]
    other = (result(run=7, effect=1.0, low=0.5, high=1.5), result(run=None, reference=True), result(run=9))
    claims = tuple(dataclasses.replace(one, earlier=other) for one in section.claims)
    questions = tuple(dataclasses.replace(one, run=5) for one in section.questions)
    changed = dataclasses.replace(section, claims=claims, questions=questions)
    job = {"command": "c", "state": "finished", "active": False, "seconds": 1.0, "lines": [], "total": 1, "done": 1}
    rows = [result(run=2)]
    shown = content.board(store, [toy_site.paper()]) | {"own": {"m.py:x": [result(problem="m.py:x", run=8)]}}
    pages = {
        "method": told | {"sections": [changed]}, "board": shown | {"standings": {"m.py:x": []}},
        "runs": content.runs(store), "run": content.run(store, 2) or {}, "compare": content.compare(store, 1, 2),
        "job": {"job": job | {"experiment": "", "left": "", "run": 6}, "rows": rows, "busy": False},
    }  # fmt: skip
    seen = collections.Counter()
    for name, data in pages.items():
        page = render.body(name, WEB, **data)
        for address, words in re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', page, re.S):
            if found := re.match(r"run (\d+)", text_of(words)):
                assert address == f"/run/{found[1]}", (name, words)
                seen[name, found[1]] += 1
            elif found := re.fullmatch(r"toy/(\w+)", text_of(words)):
                assert address == f"/method/toy#{found[1]}", (name, words)
                seen[name, "claim"] += 1
    assert {number for page, number in seen if page == "method"} >= {"2", "5", "7", "9"}
    assert {*seen} >= {("board", "8"), ("job", "6"), ("job", "claim")}
    assert {page for page, _ in seen} == pages.keys()


def test_links_lead_where_there_is_a_page_and_are_words_elsewhere():
    file, live = Site(pages=frozenset({"", "method/a", "run/1"})), Site(live=True)
    assert str(file.link("x", "method", "a", run=1)) == '<a href="#/method/a?run=1">x</a>'
    assert str(file.link("<x>", "method", "b")) == "<span>&lt;x&gt;</span>"
    assert str(file.link("x", "")) == '<a href="#/">x</a>'
    assert str(live.link("x", "method", "b")) == '<a href="/method/b">x</a>'
    assert (file.claim("a/c"), live.claim("a/c")) == ("#/method/a/c", "/method/a#c")
    assert (file.anchor("method", "a", "c"), live.anchor("method", "a", "c")) == ("/method/a/c", "c")


@pytest.mark.parametrize("low", [1.0, -math.inf])
@pytest.mark.parametrize("high", [3.0, math.inf])
def test_an_end_that_is_not_known_is_drawn_at_the_effect_and_told_as_unknown(low, high):
    measured = Measured(
        (1.0, 2.0, 4.5), axis="a_loss (a loss): ours", lines=((0.0, "no effect"), (0.25, "margin")), holds=(0.25, 9.0)
    )
    one = ClaimResult(
        id=ClaimId("p", "c"), experiment="e", statement="s", kind="better", metric="a_loss", effect=2.5, low=low,
        high=high, verdict="refuted", seeds=3, measured=measured, over="data sets",
    )  # fmt: skip
    figure = claim_figure(one)
    assert figure is not None
    assert (figure.effect, figure.low, figure.high) == (2.5, low if low == 1.0 else 2.5, high if high == 3.0 else 2.5)
    assert (figure.name, figure.axis, figure.seeds) == ("p/c", "a loss: ours", (1.0, 2.0, 4.5))
    assert figure.lines == ((0.0, "no effect"), (0.25, "margin 0.25"))
    assert figure.holds == (0.25, 9.0)
    ends = [f"{end:g}" if math.isfinite(end) else "–" for end in (low, high)]
    interval = f"95 % interval {ends[0]} to {ends[1]} over data sets, 3 seeds; refuted"
    assert figure.description == f"p/c: effect 2.5 a loss, {interval}"
    assert claim_figure(dataclasses.replace(one, measured=None)) is None
    assert claim_figure(dataclasses.replace(one, effect=math.nan)) is None


def test_a_run_is_told_with_its_own_counts_seconds_and_words(store):
    for number in (1, 2):
        told, cells = content.run(store, number) or {}, store.run_cells(number)
        assert told["counts"] == {"total": 6, "kept": sum(bool(cell["cached"]) for cell in cells), "failed": 0}
        assert told["papers"] == ["toy"]
        words = [result.verdict for result in store.results(number) if isinstance(result, ClaimResult)]
        (listed,) = [row for row in content.runs(store)["runs"] if row["id"] == number]
        assert listed["tally"] == {word: words.count(word) for word in dict.fromkeys(listed["tally"])}
        assert sum(listed["tally"].values()) == len(words) == 4
    assert [row["id"] for row in content.runs(store)["runs"]] == [2, 1]


def test_a_run_leads_to_the_pages_that_there_are(home):
    """Cells of a race, or of a paper that is gone, have none."""
    store = Store(store_path())
    run = store.start_run("laureate race x", "race", 10, "default", store.run(1)["environment"])
    cells = plan(toys.selections(toy_site.paper()), "smoke")
    for cell, paper in zip(cells, ("race", "gone", "toy"), strict=False):
        store.add_cell(run, dataclasses.replace(cell, paper=paper, fingerprint="new"), Outcome(seconds=1.0))
    store.end_run(run, "finished")
    told = content.run(store, run) or {}
    assert (told["papers"], told["counts"]["total"]) == (["toy"], 3)
    page = render.body("run", WEB, **told)
    assert set(re.findall('href="/method/([^"]*)"', page)) == {f"toy?run={run}"}
    assert report.render_run(store, run).count("data-page>") == 2
    store.close()


@pytest.mark.parametrize(
    ("finished", "status", "seconds"),
    [
        ("2030-01-01T00:01:30+00:00", "finished", 90.0),
        (None, "interrupted", None),
        ("2029-12-31T00:00:00+00:00", "failed", 0.0),
    ],
)
def test_the_clock_on_the_wall_is_read_from_start_to_end(finished, status, seconds):
    record = {"started": "2030-01-01T00:00:00+00:00", "finished": finished, "status": status}
    assert content._wall_seconds(record) == seconds  # pyright: ignore[reportArgumentType]
    now = datetime.datetime.now(datetime.UTC)
    started = (now - datetime.timedelta(hours=2)).isoformat()
    running = content._wall_seconds({"started": started, "finished": None, "status": "running"})  # pyright: ignore
    assert running is not None
    assert running >= 7200.0


def test_a_comparison_with_a_peer_is_told_by_its_own_numbers(store):
    row = {
        "id": "other", "work": "w", "ours_s": 1.0, "peer": "p", "peer_s": 2.0, "ratio": 3.0, "low": 2.5, "high": 3.5,
        "package": "pkg", "peer_version": "0.3", "note": "n",
    }  # fmt: skip
    fake = lambda *rows: SimpleNamespace(benchmarks=lambda paper: list(rows))  # noqa: E731
    stored = row | {"measured": "2030-01-01", "environment": {"machine": "m", "versions": {"jax": "9", "numpy": "2"}}}
    full = content.ShownSpeed("w", 1.0, "p", 2.0, 3.0, 2.5, 3.5, "n", "2030-01-01", "m", "jax 9, pkg 0.3")
    assert content.speed_rows(fake(stored), "other") == [full]  # pyright: ignore
    bare = {name: value for name, value in stored.items() if name not in ("low", "high", "note", "peer_version")}
    told = dataclasses.replace(full, low=None, high=None, note="", versions="jax 9")
    assert content.speed_rows(fake(bare | {"environment": {"versions": {"jax": "9"}}}), "other") == [  # pyright: ignore
        dataclasses.replace(told, machine="")
    ]
    assert content.speed_rows(fake(stored, stored | {"ratio": None, "work": "alone"}), "other") == [full]  # pyright: ignore


def test_a_papers_page_begins_with_its_first_role_and_counts_them_all(store, monkeypatch):
    made = toy_site.paper()
    (experiment,) = made.experiments
    roles = dict(
        zip(("better", "worse", "close", "small"), ("check", "headline", "headline", "extension"), strict=True)
    )
    claims = tuple(dataclasses.replace(c, role=roles[c.name]) if c.name in roles else c for c in experiment.claims)
    paper = dataclasses.replace(made, experiments=(dataclasses.replace(experiment, claims=claims),))
    for most, names in ((5, ["worse", "close"]), (1, ["worse"])):
        monkeypatch.setattr(content, "ANSWERS", most)
        told = content.method(store, paper)
        assert [result.name for result in told["answers"]] == names
    assert {role: [result.name for result in mine] for role, mine in told["roles"].items()} == {
        "headline": ["worse", "close"], "extension": ["small"], "check": ["better"],
    }  # fmt: skip
    assert told["tallies"] == {
        "headline": {"supported": 1, "refuted": 1},
        "extension": {"supported": 1},
        "check": {"supported": 1},
    }
    (section,) = told["sections"]
    assert [shown.result.name for shown in section.checks] == ["better"]
    assert [shown.result.name for shown in section.findings] == ["worse", "close", "small"]
    assert (section.words, section.run) == ({"supported": 3, "refuted": 1}, 2)
    assert [question.name for question in section.questions] == ["which"]
    with_run = content.method(store, paper, 1)
    assert with_run["sections"][0].run == 1
    assert not any(shown.earlier for shown in with_run["sections"][0].claims)


@pytest.mark.parametrize("state", ["running", "stopping", "stopped", "finished", "failed"])
def test_a_run_from_the_page_can_be_stopped_while_it_runs_and_tells_how_far_it_is(state):
    active = state in ("running", "stopping")
    job = {
        "command": "laureate run toy", "state": state, "active": active, "seconds": 12.0, "lines": ["<b>one</b>"],
        "total": 7, "done": 3, "experiment": "toy/toy", "left": "about 9 s left", "run": 5,
    }  # fmt: skip
    page = render.body("job", Site(live=True, token="t"), job=job, rows=[], busy=False)
    assert ('action="/stop"' in page, 'value="3"' in page) == (state == "running",) * 2
    assert ("about 9 s left" in page, "<b>toy/toy</b>" in page) == (active, active)
    assert "3 of 7 cells" in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page
    assert '<a href="/run/5">' in page
    early = render.body("job", Site(live=True), job=job | {"total": None, "run": None, "lines": []}, rows=[], busy=True)
    assert ("cells" in early.partition("Finished cells")[0].partition("<progress")[0], "starting …" in early) == (
        False,
        True,
    )
    assert "was under way already" in early


# -- the catalogue on pages and in files ------------------------------------------------------------------------------


def test_a_file_carries_papers_in_their_order_while_there_is_room(monkeypatch):
    """With the fields that its search reads, and whether they run; one that does not fit ends the list."""
    given = [Entry(f"p{i}", "T" * (10 * i), ("A B",), abstract="x" * 999, terms=("t",), fit=i) for i in range(1, 7)]
    sizes = [len(json.dumps({n: v for n, v in e.record().items() if n in report.PAPER_FIELDS})) for e in given]
    for most in (0, sizes[0] - 1, sizes[0], sum(sizes[:3]), sum(sizes[:3]) - 1, sum(sizes)):
        monkeypatch.setattr(report, "LARGEST_CATALOGUE", most)
        kept = report._entries(given, ["p2"])
        fit = next((i for i in range(6) if sum(sizes[: i + 1]) > most), 6)
        assert [one["id"] for one in kept] == [e.id for e in given[:fit]], most
        for one, entry in zip(kept, given, strict=False):
            assert one == {n: v for n, v in entry.record().items() if n in report.PAPER_FIELDS} | {
                "runs": entry.id == "p2"
            }


def test_a_file_has_the_runs_behind_its_verdicts_and_no_others(home):
    store = Store(store_path())
    behind = {row.run for shown in content.board(store, [toy_site.paper()])["areas"]["toys"] for row in shown.claims}
    whole = report.render_everything(store)
    (packed,) = re.findall(r'<script type="application/gzip" id="data">([^<]*)</script>', whole)
    pages = json.loads(gzip.decompress(base64.b64decode(packed)))["pages"]
    assert {name for name in pages if name.startswith("run/")} == {f"run/{number}" for number in behind} == {"run/2"}
    assert set(pages) == {"run/2", "method/toy", "catalogue", "paper"}
    assert 'id="/"' in whole
    store.close()


def test_a_found_paper_is_told_with_what_runs_of_it(shared):
    """Its neighbours without itself, and of what runs the nearest, unless it runs."""
    with Catalogue(running=["toy"]) as catalogue:
        facets = browse.listing(catalogue)
        assert facets["size"] == sum(facets["facets"]["topic"].values()) == 873
        assert "" not in {value for found in facets["facets"].values() for value in found}
        assert (facets["running"], facets["left_out"]) == (1, 0)
        told = browse.entry(catalogue, "rnd") or {}
        assert (told["paper"]["id"], told["paper"]["runs"], told["paper"]["claims"]) == ("rnd", False, [])
        assert [paper["id"] for paper in told["related"]] == [hit.entry.id for hit in catalogue.related("rnd", 6)]
        assert (len(told["related"]), told["nearest"]) == (6, None), "the toy is not in the catalogue"
        found = catalogue.get("rnd")
        assert found is not None
        assert (told["year"], told["bibtex"]) == (found.year, bibtex(found))
        assert browse.entry(catalogue, "none") is None
        for query in (browse.Query("labels"), browse.Query(), browse.Query(topic="audio", page=2)):
            page = browse.search(catalogue, query)
            assert [paper["id"] for paper in page["papers"]] == [hit.entry.id for hit in hits_of(catalogue, query)]
            assert page["query"] == query
    (ours,) = [browse._brief(Entry("toy", "T"), {}, ["toy"])]
    assert (ours["runs"], [str(claim.id) for claim in ours["claims"]]) == (
        True, ["toy/better", "toy/worse", "toy/close", "toy/small"],
    )  # fmt: skip


@pytest.mark.parametrize("ids", [["toy"], ["rnd", "toy"], ["toy", "rnd"], ["rnd"], []])
def test_what_was_measured_here_is_told_of_every_paper_that_is_found(shared, ids):
    """Whatever stands beside it, in answers, in the list of all, and among what is related."""
    hits = [Hit(Entry(paper_id, "T"), 1.0) for paper_id in ids]
    found = lambda *_, **more: Result(hits, [], total=len(hits))  # noqa: E731
    fake = SimpleNamespace(search=found, listed=found, related=lambda *_: hits, get=lambda paper_id: Entry("toy", "T"))
    shown = [browse.search(fake, query)["papers"] for query in (browse.Query("q"), browse.Query())]  # pyright: ignore
    shown.append((browse.entry(fake, "toy") or {})["related"])  # pyright: ignore
    for papers_shown in shown:
        assert [paper["id"] for paper in papers_shown] == ids
        for paper in papers_shown:
            assert paper["runs"] == (paper["id"] == "toy")
            assert [claim.run for claim in paper["claims"]] == [2] * 4 * paper["runs"]


def hits_of(catalogue, query):
    size = browse.PAPERS_A_PAGE
    page = {"limit": size, "offset": size * (query.page - 1)}
    if query == browse.Query():
        return catalogue.listed(**page).hits
    return catalogue.search(query.q, topic=query.topic, **page).hits


def test_the_catalogue_is_opened_again_where_something_was_imported_and_no_sooner(monkeypatch):
    """It is asked for news at most every few seconds."""
    clock, mark, made, closed = [100.0], ["a"], [], []

    def catalogue(running):
        made.append(tuple(running))
        number = len(made)
        return SimpleNamespace(close=lambda: closed.append(number))

    monkeypatch.setattr(server.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(server.index, "fingerprint", lambda: mark[0])
    monkeypatch.setattr(server, "Catalogue", catalogue)
    monkeypatch.setattr(server.browse, "listing", lambda opened: {"size": len(made)})
    monkeypatch.setattr(papers, "paper_ids", lambda: ["toy"])
    shared = server.SharedCatalogue()
    fresh = shared.FRESH_SECONDS
    for after, now, size in (
        (0.0, "a", 1), (0.0, "b", 1), (fresh, "b", 1), (0.1, "b", 2), (fresh + 1, "b", 2), (fresh + 1, "a", 3),
        (0.0, "c", 3),
    ):  # fmt: skip
        clock[0], mark[0] = clock[0] + after, now
        with shared.opened() as (_, listing):
            assert listing == {"size": size}, (after, now)
    assert (made, closed) == ([("toy",)] * 3, [1, 2])
    shared.close()
    shared.close()
    assert closed == [1, 2, 3]


def test_a_picture_as_a_file_of_its_own_is_whole_and_in_the_colours_of_the_light_theme(store):
    for name in ("toy/better", "toy/toy/0"):
        drawn = content.figure(store, 1, name)
        assert drawn is not None
        root = ElementTree.fromstring(render.standalone(drawn))
        (style,) = (node for node in root.iter() if node.tag.endswith("style"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "--s0" in (style.text or "")
        ours = ElementTree.fromstring(drawn.drawing().partition("<ul")[0])
        shapes = [node.tag.rpartition("}")[2] for node in root.iter() if not node.tag.endswith("style")]
        assert shapes == [node.tag for node in ours.iter()]


def test_a_query_is_read_and_written_field_by_field():
    for fields in itertools.product(
        ("", "a b"), ("", "audio"), ("", "method"), ("", "ICML"), ("", "Oral"), (False, True), (1, 3)
    ):
        query = browse.Query(*fields)
        address = query.address(page=query.page)
        assert browse.Query.of(address) == query
        assert set(address) == {
            f.name for f in dataclasses.fields(query) if getattr(query, f.name) not in ("", False, 1)
        } | ({"runs"} if query.runs else set())
        assert browse.Query.of(query.address(q="new")) == dataclasses.replace(query, q="new", page=1)
        assert query.filters == dict(zip(("topic", "kind", "venue", "decision", "runs"), fields[1:6], strict=True))
    assert browse.Query.of(
        {"q": "x" * 500, "venue": "y" * 99, "page": "99999999", "runs": "yes", "kind": "METHOD"}
    ) == (browse.Query(q="x" * 400, venue="y" * 80, page=10_000, kind="method"))


# -- pages read back ------------------------------------------------------------------------------------------------


def told_of(store, **facts):
    """The method's page of one claim, its numbers by their names, and the result that it is of."""
    told = content.method(store, papers.paper("toy"))
    (section,) = told["sections"]
    one = dataclasses.replace(section.claims[0].result, **facts)
    shown = dataclasses.replace(section.claims[0], result=one)
    page = render.body("method", WEB, **told | {"sections": [dataclasses.replace(section, claims=(shown,))]})
    (article,) = re.findall(r'<article class="card claim" id="better".*?</article>', page, re.S)
    return {
        text_of(name): text_of(value) for name, value in re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", article, re.S)
    }, article


@pytest.mark.parametrize("centre", ["mean", "median"])
@pytest.mark.parametrize("kind", ["better", "bound"])
def test_every_number_of_a_claim_stands_beside_its_name(store, centre, kind):
    measured = Measured((1.0, -2.0, 5.0), 1, 3.0, 4.5, 6.0)
    facts = {
        "effect": 1.25,
        "low": 0.5,
        "high": 2.5,
        "p": 0.0123,
        "family": 7,
        "improvement": 0.6,
        "seconds": 12.0,
        "seeds": 20,
        "scale": "desk",
        "method": "ours",
        "baseline": "theirs",
        "trivial": "mean",
        "reported": "1.3 nats",
        "unit": "nats",
        "data": ("a", "b"),
        "over": "data sets",
        "run": 2,
        "kind": kind,
        "centre": centre,
        "measured": measured,
    }
    told, article = told_of(store, **facts)
    expected = {
        f"{'median' if centre == 'median' else 'effect'} over data sets": "1.25 nats [0.5, 2.5]",
        "the paper": "1.3 nats", "ours": "3", "theirs": "4.5", "trivial: mean": "6", "worst seed": "−2 seed 1",
        "p, Holm over 7": "0.012", f"{'holds' if kind == 'bound' else 'better'} in": "60 % of 20 seeds", "data": "a, b",
        "measured": "desk, 20 seeds, 12 s, run 2",
    }  # fmt: skip
    assert told == expected
    assert 'href="/run/2"' in article
    nothing = Measured((), 0)
    bare, _ = told_of(store, **facts | {"measured": nothing, "reported": "", "data": (), "improvement": math.nan})
    assert bare.keys() == expected.keys() - {
        "the paper", "ours", "theirs", "trivial: mean", "worst seed", "data",
        f"{'holds' if kind == 'bound' else 'better'} in",
    }  # fmt: skip
    shipped, _ = told_of(store, **facts | {"reference": True, "started": "2026-11-17T01:02:03"})
    assert shipped["measured"] == "desk, 20 seeds, 12 s, our reference, 2026-11-17"
    idle, article = told_of(store, verdict="not run", reason="r", reported="x")
    assert idle == {}
    assert "Not run: r. The paper: x. To measure it:" in text_of(article)


def test_every_row_of_a_board_has_its_own_numbers(store):
    """For the script that sorts and filters, and for the reader."""
    shown = content.board(store, [toy_site.paper()])
    changed = {"seconds": 0.0, "run": None, "effect": math.nan, "verdict": "not run", "seeds": 0}
    areas = shown["areas"]
    (paper,) = areas["toys"]
    for facts in ({}, changed, {"reference": True, "run": None}, {"declared_seeds": 5}):
        roles = {role: [dataclasses.replace(row, **facts) for row in mine] for role, mine in paper.roles.items()}
        page = render.body("board", WEB, **shown | {"areas": {"toys": [dataclasses.replace(paper, roles=roles)]}})
        rows = re.findall(r"<tr data-claim=.*?</tr>", page, re.S)
        results = [row for mine in roles.values() for row in mine]
        assert len(rows) == len(results) == 4
        for text, row in zip(rows, results, strict=True):
            told = dict(re.findall(r'data-(\w+)="([^"]*)"', text.partition(">")[0]))
            assert told == {
                "claim": str(row.id), "area": "toys", "verdict": row.verdict, "unit": html.escape(unit_of(row)),
                "effect": str(row.effect) if row.has_effect else "", "seconds": str(row.seconds or ""),
                "newest": str(row.run or ""),
            }  # fmt: skip
            cells = [text_of(cell) for cell in re.findall("<td.*?</td>", text, re.S)]
            assert cells[0].endswith(row.verdict)
            effect = f"{centre(row)} {unit_of(row)} {interval(row)} {'median ' * (row.centre == 'median')}over seeds"
            assert (effect in html.unescape(cells[1])) == row.has_effect
            assert ("laureate run toy/" in text) == (row.run is None and not row.reference)
            more = f" more than the {row.declared_seeds} declared" if row.more_seeds else ""
            assert cells[2] == (f"smoke, {row.seeds} seeds{more}" if row.seeds else "")
            assert cells[3] == (duration(row.seconds) if row.seeds else "")
            assert cells[4] == (f"run {row.run}" if row.run else "reference" if row.reference else "")


def test_every_cell_of_a_run_is_told_with_both_its_times(store):
    told = content.run(store, 1) or {}
    cells = [
        cell | {"compile_seconds": 1.5 + i, "seconds": 10.0 * i, "cached": i % 2}
        for i, cell in enumerate(told["cells"])
    ]
    page = render.body("run", WEB, **told | {"cells": cells})
    rows = re.findall(r'<th scope="row">(toy/toy)</th>(.*?)</tr>', page, re.S)
    for (name, rest), cell in zip(rows, cells, strict=True):
        texts = [text_of(one) for one in re.findall("<td.*?</td>", rest, re.S)]
        seeds = f"{cell['start']}–{cell['start'] + cell['count'] - 1}"
        status = "done, kept" if cell["cached"] else "done"
        assert [name, *texts] == [
            "toy/toy",
            cell["arm"],
            seeds,
            status,
            wording.number(cell["compile_seconds"]),
            wording.number(cell["seconds"]),
        ]


def test_every_place_of_a_standing_is_told_with_its_own_interval(store):
    places = (
        Place("a", 1.0, 0.5, 1.5), Place("b", 2.0, 1.25, 2.5, 1.0, 0.25, 1.75, note="at its cap"),
        Place("c", note="1 of 9"),
    )  # fmt: skip
    ranked = Standing("toy", "toy", "t", "a_loss", "nats", "lower", 9, "seeds", places)
    page = render.body("run", WEB, **(content.run(store, 1) or {}) | {"standings": [ranked]})
    (table,) = re.findall(r'<div class="standing">.*?</table>', page, re.S)
    rows = [
        [text_of(cell) for cell in re.findall("<t[hd].*?</t[hd]>", row, re.S)]
        for row in re.findall("<tr>.*?</tr>", table, re.S)
    ]
    assert rows == [
        ["arm", "a loss (nats)", "95 % interval", "behind the best"], ["a", "1", "0.5 to 1.5", "best"],
        ["b at its cap", "2", "1.25 to 2.5", "1 [0.25, 1.75]"], ["c 1 of 9", "no finite mean"],
    ]  # fmt: skip
    assert "Means over 9 seeds; lower is better." in text_of(page)
    assert "intervals of 95 %" in text_of(page)
