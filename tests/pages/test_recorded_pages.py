"""Every kind of page, whole, as it was when somebody last read it: of an empty store, of a full one, and of a run."""

import base64
import collections
import contextlib
import gzip
import json
import re
from types import SimpleNamespace

import pytest
from test_server import FakeJobs, ask, form, serving

import made_home
from laureate.lab.storing.store import Store
from laureate.pages import content, render, report, vega
from laureate.pages.jobs import _Job
from plain_words import plain_words, tags

# Address -> the name of its record.
PAGES = {
    "board": "/", "method-toy": "/method/toy", "method-known": "/method/known", "method-idle": "/method/idle",
    "method-toy-run-3": "/method/toy?run=3", "method-toy-run-7": "/method/toy?run=7", "runs": "/runs",
    "runs-page-2": "/runs?page=2", "run-2": "/run/2", "run-3-failed": "/run/3", "run-6-own-problem": "/run/6",
    "run-7-named": "/run/7", "compare": "/compare", "compare-1-5": "/compare?first=1&second=5",
    "compare-2-6-unlike": "/compare?first=2&second=6", "compare-3-4": "/compare?first=3&second=4",
    "compare-with-none": "/compare?first=2&second=99", "job-none": "/job",
}  # fmt: skip
CATALOGUE = {
    "catalogue": "/catalogue", "catalogue-page-2": "/catalogue?page=2", "catalogue-page-9": "/catalogue?page=9",
    "search-walks": "/catalogue?q=walks", "search-corrected": "/catalogue?q=noisy+lables",
    "search-phrase": "/catalogue?q=%22noisy+labels%22", "search-no-such-phrase": "/catalogue?q=%22labels+noisy%22",
    "search-nothing": "/catalogue?q=xylophonist", "search-hostile": "/catalogue?q=%3Cb%3Ewidget%3C%2Fb%3E+%26",
    "search-page-2": "/catalogue?q=widgets&page=2", "filter-topic": "/catalogue?topic=audio&page=1",
    "filter-all": "/catalogue?q=widgets&topic=vision&kind=method&venue=icml&decision=oral",
    "filter-runs": "/catalogue?runs=1", "filter-older": "/catalogue?area=audio&kind=nothing&page=x",
    "paper-toy": "/paper/toy", "paper-known": "/paper/known", "paper-idle": "/paper/idle",
    "paper-widget": "/paper/widget", "paper-submitted": "/paper/submitted", "paper-bare": "/paper/bare",
    "paper-own-abstract": "/paper/own-abstract",
}  # fmt: skip
# Pages whose pictures are held too; elsewhere they are drawn by the same functions.
DRAWN = ("method-toy", "method-known", "run-3-failed")
REFUSED = [
    "/nothing", "/method/other", "/method", "/method/toy?run=99", "/run/99", "/run/x", "/run", "/paper/none", "/paper",
    "/runs/1", "/figure/1/toy/none.csv", "/figure/99/toy/lower.csv", "/figure/1/toy/lower.exe", "/figure", "/data",
    "/data/run-99.csv", "/static/none.css", "/static/vega.js", "/start", f"/{'a' * 5000}",
]  # fmt: skip


def without_drawings(page):
    return re.sub(r"(<svg[^>]*>).*?(</svg>)", r"\1DRAWING\2", page, flags=re.DOTALL)


@contextlib.contextmanager
def made(folder, fill):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vega, "available", lambda: False)
        home = made_home.Home(folder, patch)
        if fill:
            home.fill()
        try:
            with serving(jobs=FakeJobs()) as server:
                yield SimpleNamespace(home=home, server=server)
        finally:
            home.close()


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    with made(tmp_path_factory.mktemp("full"), fill=True) as there:
        yield there


@pytest.fixture(scope="module")
def page(full):
    """What the server gives at an address: a page without its frame, or the whole answer."""
    return lambda address, part="main": got(full, address, part)


def got(there, address, part="main"):
    answer, text = ask(there.server, "GET", address, **({"X_Fragment": part} if part else {}))
    assert answer.status == 200, text[:300]
    return plain(there, text)


def plain(there, text):
    return tags(plain_words(text.replace(there.server.token, "TOKEN"), there.home.places()))


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_a_full_store(page, recorded, name):
    shown = page(PAGES[name])
    recorded.text(f"{name}.html", shown if name in DRAWN else without_drawings(shown))


def test_a_whole_page_with_its_frame(page, recorded):
    for name, address in {"board": "/", "runs": "/runs", "search": "/catalogue?q=%3Ci%3Ewalks"}.items():
        whole = page(address, "")
        main = page(address)
        assert main.strip() in whole
        recorded.text(f"frame-of-{name}.html", whole.replace(main.strip(), "MAIN"))


@pytest.mark.parametrize("name", CATALOGUE)
def test_pages_of_the_catalogue(page, recorded, name):
    part = "main" if name in ("catalogue", "search-nothing", "filter-all") or "paper" in name else "results"
    recorded.text(f"{name}.html", page(CATALOGUE[name], part))


def test_suggestions_while_typing(page, recorded):
    asked = ("wid", "noisy lab", "wal", "xyl", "")
    recorded("suggestions", {q: page(f"/catalogue?q={q.replace(' ', '+')}", "suggestions") for q in asked})


def test_what_is_refused_and_in_which_words(full, recorded):
    found, headers = {}, {}
    for address in REFUSED:
        answer, text = ask(full.server, "GET", address)
        said = re.findall(r"<h1[^>]*>(.*?)</h1>(.*?)</main>", " ".join(text.split()))
        found[address[:30]] = [answer.status, *(" ".join(re.sub("<[^>]+>", " ", one).split()) for one in said[0])]
        headers = {name: value for name, value in answer.getheaders() if name not in ("Date", "Content-Length")}
    recorded("answers", found)
    recorded("headers", headers)
    recorded.text("refused.html", plain(full, ask(full.server, "GET", "/nothing")[1]))


def test_what_a_form_may_ask_for(full, recorded):
    server, found = full.server, {}
    for name, fields in {
        "smoke": {}, "a claim": {"id": "toy/lower", "scale": "desk"}, "full": {"scale": "full"},
        "another": {"id": "pes"}, "no claim": {"id": "toy/none"}, "no token": {"token": "x"},
    }.items():  # fmt: skip
        server.jobs.started.clear()
        answer, text = ask(server, "POST", "/start", form(server, **fields))
        words = re.sub("<[^>]+>", " ", text.partition("<main")[2].partition(">")[2].partition("</main>")[0]).split()
        found[name] = [answer.status, answer.headers["Location"], " ".join(words), list(server.jobs.started)]
    recorded("answers", found)


def test_files_of_a_run(full, recorded):
    found = {}
    for address in ("/figure/2/toy/lower.csv", "/figure/2/toy/walk/0.csv", "/figure/reference/known/better.csv",
                    "/figure/2/toy/between.csv"):  # fmt: skip
        answer, text = ask(full.server, "GET", address)
        assert answer.status == 200
        rows = text.splitlines()
        found[address] = [answer.headers["Content-Type"], len(rows), *map(rounded, rows[:16])]
    answer, text = ask(full.server, "GET", "/data/run-4.csv")
    rows = text.splitlines()
    found["data"] = [len(rows), *map(rounded, rows[:3] + rows[100:500:50] + rows[-1:])]
    recorded("csv", found)


def rounded(line):
    """Numbers to six digits: the last ones are those of a library."""
    return re.sub(r"\d+\.\d{4,}(e-?\d+)?", lambda found: f"{float(found[0]):.6g}", line)


@pytest.mark.parametrize("name", ["lower", "between", "alike", "walk/0", "walk/1"])
def test_pictures_as_files(full, recorded, name):
    answer, text = ask(full.server, "GET", f"/figure/2/toy/{name}.svg")
    assert answer.status == 200
    style, _, rest = text.partition("<style>")
    recorded.text(f"figure-{name.replace('/', '-')}.svg", tags(style + rest.partition("</style>")[2]))


def test_pages_of_an_empty_store(tmp_path, recorded):
    with made(tmp_path, fill=False) as empty:
        for name, address in {
            "board": "/",
            "runs": "/runs",
            "compare": "/compare",
        }.items():
            recorded.text(f"empty-{name}.html", without_drawings(got(empty, address)))


def test_pages_of_a_run_that_is_under_way(tmp_path, recorded):
    with made(tmp_path, fill=False) as there:
        store = there.home.begin()
        for name, address in {"run": "/run/1", "runs": "/runs"}.items():
            recorded.text(f"running-{name}.html", got(there, address))
        store.close()
        there.home.run("toy/lower", scale="smoke", executor=made_home.Remembered(fails=("ours", "theirs")))
        recorded.text("all-failed-method.html", without_drawings(got(there, "/method/toy?run=2")))
        recorded.text("all-failed-run.html", got(there, "/run/2"))


@pytest.mark.parametrize("state", ["begun", "half", "stopping", "finished", "failed", "stopped"])
def test_pages_of_a_job(full, recorded, monkeypatch, state):
    code = {"finished": 0, "failed": 1, "stopped": 130}.get(state)
    lines = ["16 cells to compute, 0 kept, 2 at a time", "[7/16] done toy/walk · ours <b> · 3.2 s · about 30 s left"]
    lines = [] if state == "begun" else lines[:1] * 5 + lines[1:]
    process = SimpleNamespace(poll=lambda: code)
    job = _Job(["run", "toy/lower", "--scale", "smoke"], process, 3, 100.0, collections.deque(lines))  # pyright: ignore
    job.ended = 190.0 if code is not None else None
    job.stopping = state in ("stopping", "stopped")
    job.run = 4 if code == 0 else None
    if lines:
        job.done, job.total, job.experiment, job.left = 7, 16, "toy/walk", "about 30 s left"
    monkeypatch.setattr(full.server.jobs, "_job", job)
    monkeypatch.setattr("laureate.pages.jobs.time", SimpleNamespace(monotonic=lambda: 160.0))
    recorded.text(f"job-{state}.html", got(full, "/job?busy=1"))
    if state == "half":
        recorded.text("job-half-frame.html", got(full, "/runs", ""))


def unpacked(whole):
    """The pages and what the script reads of a file."""
    data = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', whole, re.DOTALL)
    text = data[1]
    return json.loads(gzip.decompress(base64.b64decode(text)) if text[:1] != "{" else text)


def without_files(whole):
    """Without what stands in files of its own: style and script, with the hash of it, and the data."""
    whole = re.sub(r"(<style[^>]*>).*?(</style>)", r"\1STYLE\2", whole, flags=re.DOTALL)
    whole = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1SCRIPT\2", whole, flags=re.DOTALL)
    return re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256-HASH", whole)


def test_a_run_as_a_file(full, recorded):
    store = full.home.open()
    recorded.text("file-run-4.html", without_drawings(plain(full, without_files(report.render_run(store, 4)))))
    store.close()


def test_everything_as_a_file(full, recorded):
    store = full.home.open()
    whole = report.render_everything(store)
    store.close()
    first = re.compile(r'(<section class="page" id="/[^>]*>).*?(</section>\s*<noscript>)', re.DOTALL)
    recorded.text("file-everything.html", plain(full, first.sub(r"\1BOARD\2", without_files(whole))))
    data = unpacked(whole)
    recorded("pages", list(data["pages"]))
    recorded("papers", data["papers"][:5])
    recorded("sizes", [len(data["papers"]), sorted(data)])
    for name in ("method/known", "catalogue"):
        recorded.text(f"file-{name.replace('/', '-')}.html", without_drawings(plain(full, data["pages"][name])))


def shown_parts(spec):
    """A specification without what Altair adds to it by its own version: its address, its defaults, its own names."""
    if isinstance(spec, dict):
        return {name: shown_parts(value) for name, value in spec.items() if name not in ("$schema", "config", "name")}
    if isinstance(spec, list):
        return [shown_parts(value) for value in spec]
    return re.sub(r"(param|view)_\d+", r"\1_N", spec) if isinstance(spec, str) else spec


def test_charts_as_vega_lite(full, recorded, monkeypatch):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    monkeypatch.setattr(vega, "available", lambda: True)
    store: Store = full.home.open()
    figures = {one.name: one for one in content.figures(store, 2, ["toy"])}
    for name in ("toy/lower", "toy/between", "toy/walk/0", "toy/walk/1"):
        recorded(name, shown_parts(vega.spec(figures[name])))
    site = render.Site(live=True, explore=True)
    page = tags(render.body("method", site, **content.method(store, made_home.paper_of("toy"), 7)))
    recorded.text("method-to-explore.html", without_drawings(page))
    store.close()
