"""The pages as text: what they say, and that nothing from outside becomes markup."""

import base64
import csv
import dataclasses
import gzip
import html
import io
import itertools
import json
import os
import re
from contextlib import closing

import numpy as np
import pytest

import toy_site
import toys
from laureate import papers
from laureate.catalogue import Catalogue, Entry
from laureate.catalogue.library import add
from laureate.lab.judging.results import ClaimId, ClaimResult
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages import browse, content, render, report, vega
from laureate.pages.charts import PALETTE, Series, treemap
from laureate.pages.figures import CurveFigure, IntervalFigure, csv_of, curve_figures
from laureate.pages.wording import centre, csv_text, duration, interval, number


@pytest.fixture
def store(shared):
    opened = Store(store_path())
    yield opened
    opened.close()


WEB = render.Site(live=True, token="secret-token")


def test_the_board_has_every_claim_with_word_and_interval(store):
    page = render.body("board", WEB, **content.board(store, papers.all_papers()))
    for claim in ("better", "worse", "close", "small"):
        assert f'data-claim="toy/{claim}"' in page
    assert re.search(r'class="chip supported"><span aria-hidden="true">✔</span> supported', page)
    assert re.search(r'class="chip refuted"><span aria-hidden="true">✘</span> refuted', page)
    assert page.count('class="strip"') == 4
    assert 'data-copy="laureate run toy"' in page


def test_what_was_not_run_says_how(home, tmp_path, monkeypatch):
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "empty"))
    empty = Store(store_path())
    page = render.body("board", WEB, **content.board(empty, papers.all_papers()))
    assert 'data-copy="laureate run toy/better"' in page
    assert "none measured here yet" in page
    method = render.body("method", WEB, **content.method(empty, papers.paper("toy")))
    assert 'data-copy="laureate run toy/worse"' in method
    assert "Not measured yet" in method
    empty.close()


def test_the_method_page_has_all_its_parts(store):
    told = content.method(store, papers.paper("toy"))
    page = render.body("method", WEB, **told)
    for words in ("The problem", "The idea", "In your code", "What differs from the paper", "Speed against peers"):
        assert words in page
    assert "<math" in page
    assert "How do all compare?" in page
    assert page.count('class="seed"') == 4 * 10
    (section,) = told["sections"]
    assert [shown.figure.effect for shown in section.claims] == [shown.result.effect for shown in section.claims]
    assert len(section.curves) == 1
    assert "It is a toy." in page


def test_speed_is_only_what_was_measured(store):
    assert "Not measured on this machine" in render.body("method", WEB, **content.method(store, papers.paper("toy")))
    facts = {"machine": "an abacus", "versions": {"jax": "0.9", "laureate": "1.0"}}
    row = {"id": "toy", "work": "<b>one</b>", "ours_s": 0.5, "peer": "p", "peer_s": 1.0, "ratio": 2.0, "low": 1.9}
    row |= {"high": 2.1, "package": "evosax", "peer_version": "0.3", "note": "A note."}
    store.add_benchmark(row | {"ratio": 77.0}, facts)
    store.add_benchmark(row, facts)
    store.add_benchmark(row | {"work": "alone", "ratio": None, "peer_s": None}, facts)
    store.add_benchmark(row | {"id": "other", "work": "other"}, facts)
    page = render.body("method", WEB, **content.method(store, papers.paper("toy")))
    for words in ("&lt;b&gt;one&lt;/b&gt;", "an abacus", "laureate 1.0, jax 0.9, evosax 0.3", "A note.", "[1.9, 2.1]"):
        assert words in page
    for words in ("77", "alone", ">other<"):
        assert words not in page


def test_a_run_and_a_comparison(store):
    page = render.body("run", WEB, **(content.run(store, 1) or {}))
    assert "6 cells, 0 of them kept" in page
    assert "toy/better" in page
    assert content.run(store, 99) is None
    told = content.compare(store, 1, 2)
    assert {str(row.id) for row in told["rows"]} == {"toy/better", "toy/worse", "toy/close", "toy/small"}
    assert "identical" in render.body("compare", WEB, **told)
    assert content.compare(store, 1, 99)["rows"] is None


def test_runs_of_an_older_declaration_can_still_be_compared(store, monkeypatch):
    changed = dataclasses.replace(toy_site.CLAIMS[0], metric="renamed")
    monkeypatch.setattr(toy_site, "CLAIMS", (changed, *toy_site.CLAIMS[1:]))
    rows = {str(row.id): row for row in content.compare(store, 1, 2)["rows"]}
    assert rows["toy/better"].first.verdict == "supported"
    assert rows["toy/better"].change == rows["toy/worse"].change == 0
    page = render.body("method", WEB, **content.method(store, papers.paper("toy")))
    told = "four claims, for a result carries what its picture needs, a curve and a film"
    assert page.count("<figure") == 6, told


def test_a_failed_cell_is_shown_with_its_traceback(home, store):
    import toys
    from laureate.lab.cell import Outcome
    from laureate.lab.running.plan import plan

    run = store.start_run("laureate run toy", "smoke", 10, "default", store.run(1)["environment"])
    cell = plan(toys.selections(toy_site.paper()), "smoke", None, "default")[0]
    store.add_cell(run, cell, Outcome({}, 0.0, 0.0, "ValueError: <b>no</b>\nTraceback"))
    page = render.body("run", WEB, **(content.run(store, run) or {}))
    assert "ValueError: &lt;b&gt;no&lt;/b&gt;" in page


def test_nothing_from_outside_is_markup(home, store):
    add([Entry("x", f"A {toy_site.PAYLOAD} title", ("<i>Author</i>",), "Venue 2030", abstract=toy_site.PAYLOAD)])
    with Catalogue(running=["toy"]) as catalogue:
        query = browse.Query.of({"q": "<script>alert(1)</script> window hacked"})
        found = browse.search(catalogue, query)
        pages = [render.body("results", WEB, **found)]
        listing = browse.listing(catalogue)
        pages.append(render.body("catalogue", WEB, **listing, query=query, results=pages[0]))
        pages.append(render.body("entry", WEB, **(browse.entry(catalogue, found["papers"][0]["id"]) or {})))
    pages.append(render.body("board", WEB, **content.board(store, papers.all_papers())))
    pages.append(render.body("method", WEB, **content.method(store, papers.paper("toy"))))
    pages.append(render.web_page(WEB, toy_site.PAYLOAD, "", "-"))
    for page in pages:
        assert "<img" not in page
        assert "<i>Author" not in page
        assert "hacked" in html.unescape(page)
        assert not re.search(r"<script(?! src=\"/static/app\.js\")", page)
    whole = unpacked(report.render_everything(store))
    assert whole.count("<script>") == 1
    assert "<img" not in whole
    assert "<img" not in report.render_run(store, 1)


@pytest.mark.parametrize("papers", [None, []], ids=["plain", "packed"])
def test_what_the_script_of_a_file_reads_is_what_was_given(papers):
    """Whatever signs are in it: no title ends the element that it stands in."""
    specs = {"toy/better": {"title": f"</script>{toy_site.PAYLOAD}<!-- ]]> & \\u003c", "unit": "µs"}}
    page = render.file_page(render.Site(explore=True, specs=specs), toy_site.PAYLOAD, {"": "<p>", "b": "<q>"}, papers)
    assert "<img" not in page
    (text,) = re.findall(r'<script type="application/(?:json|gzip)" id="data">(.*?)</script>', page, re.S)
    data = json.loads(text if papers is None else gzip.decompress(base64.b64decode(text)))
    assert data == {"papers": [], "specs": specs, "pages": {} if papers is None else {"b": "<q>"}}


def unpacked(whole: str) -> str:
    """The text of a file with its packed pages and papers."""
    (packed,) = re.findall(r'<script type="application/gzip" id="data">([^<]*)</script>', whole)
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    pages = [f'<section id="/{name}">{text}</section>' for name, text in data["pages"].items()]
    return whole.replace(packed, "") + "".join(pages) + json.dumps(data["papers"]).replace("<", "\\u003c")


def test_the_file_needs_no_network_and_its_links_lead_somewhere(store):
    file = report.render_everything(store)
    whole = unpacked(file)
    assert not re.search(r"(src|@import|url\()\W*http", whole), "nothing is loaded"
    assert "https://openreview.net/forum?id=" in whole, "every paper says where it is"
    assert file == report.render_everything(store), "the same results give the same file"
    ids = set(re.findall(r'id="(/[^"]*)"', whole))
    for link in set(re.findall(r'href="#(/[^"?]*)', whole)) - {"/catalogue"}:
        assert link in ids or link.startswith("/paper/"), link


def test_a_large_library_does_not_make_a_large_file(home, store, monkeypatch):
    monkeypatch.setattr(report, "LARGEST_CATALOGUE", 100_000)
    whole = report.render_everything(store)
    assert "laureate web</code> has them all" in unpacked(whole)
    assert len(whole) < 150_000


def test_a_papers_page_is_small_in_the_file(tmp_path, monkeypatch):
    """What docs/DESIGN.md promises of the file with every paper, seen on one with many claims."""
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    monkeypatch.setattr(report, "paper_ids", lambda: ["sksd"])
    monkeypatch.setattr(report, "LARGEST_CATALOGUE", 0)
    with closing(Store(store_path())) as empty:
        assert len(report.render_everything(empty)) < 300_000


def test_numbers_behind_a_picture_are_numbers(store):
    """A minus sign is no formula: as text a spreadsheet could not compute with it."""
    told = content.method(store, papers.paper("toy"))
    figures = [shown.figure for section in told["sections"] for shown in section.claims if shown.figure]
    tables = [csv_of(figure, 7) for figure in figures]
    assert any("-" in table for table in tables)
    assert not any("'" in table for table in tables)


def test_no_text_of_a_table_is_a_formula_and_every_other_value_stays():
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "a=b", "a@b", "'", "", 'with "quotes", commas\nand lines']
    written = list(csv.reader(io.StringIO(csv_text(["text", "number"], [[text, -0.5] for text in texts]))))
    assert written[0] == ["text", "number"]
    assert written[1:] == [[f"'{text}" if text[:1] in set("=+-@") else text, "-0.5"] for text in texts]


def test_the_shaded_side_is_where_the_claim_holds(store):
    told = content.method(store, papers.paper("toy"))
    holds = {shown.result.name: shown.figure.holds for shown in told["sections"][0].claims}
    infinity = float("inf")
    assert holds == {
        "better": (0.5, infinity),
        "worse": (0.0, infinity),
        "close": (-5.0, 5.0),
        "small": (-infinity, 100.0),
    }


def test_every_chart_has_words_and_a_table(store):
    drawn = content.figures(store, 1, ["toy"])
    assert {type(figure) for figure in drawn} == {IntervalFigure, CurveFigure}
    for figure in drawn:
        assert figure.description in html.unescape(figure.drawing())
        rows = list(csv.DictReader(io.StringIO(csv_of(figure))))
        assert len(rows) == (11 if isinstance(figure, IntervalFigure) else 12)
    assert content.figure(store, 1, "toy/better").name == "toy/better"
    assert content.figure(store, 1, "toy/nothing") is None
    assert content.figure(store, 1, "other/better") is None


def test_charts_as_vega_lite_and_as_images(store):
    pytest.importorskip("vl_convert")
    for figure in (content.figure(store, 1, "toy/better"), content.figure(store, 1, "toy/toy/0")):
        spec = vega.spec(figure)
        assert spec["description"] == figure.description
        assert "vega-lite" in spec["$schema"]
        assert "url" not in json.dumps(spec.get("data", {}))
    assert vega.image(content.figure(store, 1, "toy/better"), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(("log_x", "log_y"), [(False, False), (True, False), (False, True)])
def test_a_curve_as_vega_lite_has_the_numbers_and_axes_of_the_page(log_x, log_y):
    pytest.importorskip("altair")
    series = (Series("a", [1.0, 2.0], [3.0, 4.0], [2.0, 3.5], [5.0, 6.0], 1), Series("b", [0.0], [1.0], [-1.0], [2.0]))
    figure = CurveFigure("n", "t", "c", "d", "steps", "loss", log_x, log_y, series)
    spec = vega.spec(figure)
    (data,) = [*spec["datasets"].values()] if "datasets" in spec else [spec["data"]["values"]]
    kept = [row for row in figure.table()[1] if (row[1] > 0 or not log_x) and (min(row[2:]) > 0 or not log_y)]
    assert [tuple(row[name] for name in ("arm", "x", "middle", "low", "high")) for row in data] == kept
    for layer in spec["layer"]:
        x, y = layer["encoding"]["x"], layer["encoding"]["y"]
        assert (x["title"], x["scale"]["type"]) == ("steps", "log" if log_x else "linear")
        assert (y["scale"]["type"], y["scale"]["zero"]) == ("log" if log_y else "linear", False)
        assert layer["encoding"]["color"]["scale"] == {"domain": ["a", "b"], "range": [PALETTE[1], PALETTE[0]]}
    assert [layer["encoding"]["y"].get("title") for layer in spec["layer"]] == [None, "loss", None]


def test_where_no_seed_has_a_number_there_is_a_gap_and_the_file_can_be_read():
    """JSON has no word for it: one such point would keep a whole file's script from starting."""
    pytest.importorskip("altair")
    steps, curve = np.tile(np.arange(1.0, 5.0), (5, 1)), np.arange(20.0).reshape(5, 4) + 1.0
    curve[:, 1], curve[2, 3] = np.nan, np.inf
    (figure,) = curve_figures("toy", toys.experiment(), {"ours": {"steps": steps, "curve": curve}})
    spec = json.loads(json.dumps(vega.spec(figure), allow_nan=False))
    (data,) = [*spec["datasets"].values()] if "datasets" in spec else [spec["data"]["values"]]
    assert [(row["x"], row["middle"]) for row in data] == [(1.0, 9.0), (2.0, None), (3.0, 11.0), (4.0, 16.0)]
    assert [row["low"] is None for row in data] == [False, True, False, False]
    assert data[3]["high"] is None, "nor is it a number where one of ten seeds has none"
    odd = IntervalFigure("p/c", "t", "c", "d", "a", (1.0, np.inf), np.inf, 0.0, np.inf, ((-np.inf, "m"),), None)
    json.dumps(vega.spec(odd), allow_nan=False)


def test_two_that_make_the_script_of_vega_at_once_do_not_disturb_each_other(tmp_path, monkeypatch):
    """The second comes while the first has written and not yet put in place."""
    vl_convert = pytest.importorskip("vl_convert")
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda text: f"{text} </script><!-- end")
    replace, second = os.replace, []

    def in_between(*places):
        if not second:
            second.append("")
            second[0] = vega.library.__wrapped__()
        replace(*places)

    monkeypatch.setattr(os, "replace", in_between)
    first = vega.library.__wrapped__()
    assert [first] == second == ["window.vegaEmbed = vegaEmbed; <\\/script>\\x3c!-- end"]
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".js"]
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda text: "made anew")
    assert vega.library.__wrapped__() == first, "once a version"


@pytest.mark.parametrize("missing", [(), ("altair",), ("vl_convert",), ("altair", "vl_convert")])
def test_vega_is_there_where_both_its_parts_are(monkeypatch, missing):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else object())
    assert vega.available() == (not missing)


def test_a_chart_without_vega_is_a_file_too(store):
    text = render.standalone(content.figure(store, 1, "toy/better"))
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_a_query_survives_the_address():
    query = browse.Query.of({"q": " a b ", "topic": "VISION", "kind": "nonsense", "page": "3", "runs": "1"})
    assert query == browse.Query(q="a b", topic="vision", runs=True, page=3)
    assert browse.Query.of({"area": "vision"}) == browse.Query(topic="vision")  # an older address
    assert browse.Query.of(query.address(page=3)) == query
    assert query.address(topic="audio") == {"q": "a b", "topic": "audio", "runs": "1"}
    assert browse.Query.of({"page": "٣", "q": "x"}).page == 3
    assert browse.Query.of({"page": "-1"}).page == 1


def test_behind_the_last_page_is_said_where_it_is(shared, store, monkeypatch):
    """That nothing is found stands only where nothing is; from there one comes back with one step."""
    monkeypatch.setattr(content, "RUNS_A_PAGE", 1)
    with Catalogue() as catalogue:
        for query in (browse.Query("speech", topic="audio"), browse.Query(topic="audio"), browse.Query("xylophonist")):
            found = browse.search(catalogue, query)
            for page in range(1, found["pages"] + 3):
                asked = dataclasses.replace(query, page=page)
                text = render.body("results", WEB, **browse.search(catalogue, asked))
                assert ("Nothing found" in text) == (query.q == "xylophonist")
                behind = page > found["pages"] and found["total"] > 0
                assert (f"There is no page {page}: {found['pages']} page" in text) == behind
                last = html.escape(WEB.url("catalogue", **query.address(page=found["pages"])))
                assert not behind or f'<a href="{last}">the last</a>' in text
                assert_steps(text, WEB.url("catalogue", **query.address()), page, found["pages"])
    for page in (1, 2, 3, 9):
        assert_steps(render.body("runs", WEB, **content.runs(store, page)), WEB.url("runs"), page, 2)


def assert_steps(text, address, page, pages):
    """One page back and one on, where there are such; from behind the last, back to the last."""
    steps = {rel: html.unescape(href) for rel, href in re.findall(r'<a rel="(prev|next)" href="([^"]*)"', text)}
    joint = "&" if "?" in address else "?"
    expected = {"prev": min(page - 1, pages)} if page > 1 and pages > 1 else {}
    expected |= {"next": page + 1} if page < pages else {}
    assert steps == {rel: f"{address}{joint}page={number}" for rel, number in expected.items()}


def assert_paged(ask, name, total, size):
    """A list of so many, so many a page: all once, no page empty, none but the last with room, and none behind it."""
    pages = ask(1)["pages"]
    shown = [[row["id"] for row in ask(page)[name]] for page in range(1, pages + 2)]
    assert [len(page) for page in shown] == [size] * (total // size) + [total % size] * (total % size > 0) + [0]
    assert len(set(itertools.chain(*shown))) == total


def test_paging_goes_through_all_papers_once(shared, monkeypatch):
    with Catalogue() as catalogue:
        words = browse.Query("speech", topic="audio")
        phrase = browse.Query('"neural networks"', topic="graphs-geometry")
        queries = {
            browse.Query(): catalogue.size,
            browse.Query(topic="audio"): browse.listing(catalogue)["facets"]["topic"]["audio"],
            **{query: catalogue.search(query.q, topic=query.topic).total for query in (words, phrase)},
        }
        assert not browse.search(catalogue, phrase)["ignored_phrase"]
        for query, total in queries.items():
            for size in (total // 2, total, total + 1)[: 3 if query.topic else 1]:  # all of them take long
                monkeypatch.setattr(browse, "PAPERS_A_PAGE", size)
                ask = lambda page, query=query: browse.search(catalogue, dataclasses.replace(query, page=page))  # noqa: E731
                assert ask(1)["total"] == total
                assert_paged(ask, "papers", total, size)
        nothing = browse.search(catalogue, browse.Query("quantumchromodynamically"))
        assert (nothing["pages"], nothing["papers"]) == (1, [])


def test_paging_goes_through_all_runs_and_cells_once(store, monkeypatch):
    total, cells = store.counts()["runs"], len(store.run_cells(1))
    for size in (1, total, total + 1):
        monkeypatch.setattr(content, "RUNS_A_PAGE", size)
        assert_paged(lambda page: content.runs(store, page), "runs", total, size)
    for size in (cells - 1, cells, cells + 1):
        monkeypatch.setattr(content, "CELLS_A_PAGE", size)
        assert_paged(lambda page: content.run(store, 1, page) or {}, "cells", cells, size)
    monkeypatch.setattr(content, "RUNS_A_PAGE", 1)
    for page in range(1, total + 1):
        text = render.body("runs", WEB, **content.runs(store, page))
        assert ('rel="prev"' in text, 'rel="next"' in text) == (page > 1, page < total)


def test_a_map_fills_its_space():
    boxes = treemap([6, 6, 4, 3, 2, 2, 1], 6, 4)
    assert sum(w * h for _, _, w, h in boxes) == pytest.approx(24)
    assert all(x >= 0 and y >= 0 and x + w <= 6 + 1e-9 and y + h <= 4 + 1e-9 for x, y, w, h in boxes)
    assert [round(w * h, 6) for _, _, w, h in boxes] == [6, 6, 4, 3, 2, 2, 1]
    assert max(max(w / h, h / w) for _, _, w, h in boxes) < 3.1


def test_numbers_for_people_and_for_spreadsheets():
    assert [number(v) for v in (0.0, 12345.0, -2e-7, float("inf"))] == ["0", "1.23·10⁴", "−2·10⁻⁷", "–"]
    assert [duration(v) for v in (0.25, 7.62, 59.0, 300.0, 20000.0)] == ["0.25 s", "7.6 s", "59 s", "5 min", "6 h"]
    assert csv_text(("a",), [("=1+1",), (-1.5,)]) == "a\n'=1+1\n-1.5\n"


def test_an_interval_has_as_many_digits_as_tell_its_ends_apart():
    def shown(effect, low, high):
        result = ClaimResult(
            id=ClaimId("toy", "x"), experiment="", statement="", kind="bound", effect=effect, low=low, high=high
        )
        return f"{centre(result)} {interval(result)}"

    assert shown(7.9996, 7.9995, 7.9997) == "7.9996 [7.9995, 7.9997]"
    assert shown(0.5, 0.1234, 0.9) == "0.5 [0.123, 0.9]"
    assert shown(1.0, 1.0, 1.0) == "1 [1, 1]"  # a constant is shown as one
