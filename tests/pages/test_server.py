"""The server's doors: who gets in, and what for."""

import http.client
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

import toy_site
from laureate.lab.errors import UserError
from laureate.lab.home import store_path
from laureate.lab.store import Store
from laureate.pages.jobs import Jobs
from laureate.pages.server import make_server


class FakeJobs(Jobs):
    """Says what it was told to start, and starts nothing."""

    def __init__(self):
        super().__init__(["false"])
        self.started = []

    def start(self, claim_id, scale, newest_run):
        self.started.append((claim_id, scale, newest_run))


@contextmanager
def serving(**options):
    server = make_server(port=0, **options)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def one_server(shared):
    with serving(jobs=FakeJobs()) as started:
        yield started


@pytest.fixture
def server(one_server):
    one_server.jobs.started.clear()
    return one_server


def ask(server, method, path, body="", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    port = server.server_address[1]
    sent = {"Host": f"127.0.0.1:{port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    if method == "POST":
        sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
    connection.request(method, path, body, sent)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer, text.decode("utf-8", "replace")


def form(server, **fields):
    return urlencode({"token": server.token, "id": "toy", "scale": "smoke"} | fields)


@pytest.mark.parametrize(
    "path",
    [
        "/", "/method/toy", "/method/toy?run=1", "/runs", "/run/1", "/compare", "/compare?first=1&second=2", "/job",
        "/catalogue", "/catalogue?q=noisy+labels&area=vision&page=2", "/paper/rnd", "/figure/1/toy/better.csv",
        "/figure/1/toy/toy/0.csv", "/data/run-1.csv", "/static/app.js", "/static/style.css", "/static/icon.svg",
    ],
)  # fmt: skip
def test_every_page_answers_with_the_headers_that_guard_it(server, path):
    answer, text = ask(server, "GET", path)
    assert answer.status == 200, text[:300]
    assert text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "style=" not in text or path.startswith("/static"), "the policy would not let it in"
    assert "onclick=" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/method/other", "/method/toy?run=99", "/run/99", "/run/x", "/paper/none",
        "/static/../server.py",
        "/static/%2e%2e/server.py", "/figure/1/toy/none.csv", "/figure/99/toy/better.csv", "/figure/1/toy/better.exe",
        "/figure", "/run", "/data", "/data/run-99.csv", "/start", "/stop", "//etc/passwd", "/run/99999999999999999999",
    ],
)  # fmt: skip
def test_what_is_not_there_is_404_in_words(server, path):
    answer, text = ask(server, "GET", path)
    assert answer.status == 404, text[:300]
    assert "Traceback" not in text
    assert "To the board" in text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "localhost.evil.example", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_name_for_this_machine_gets_nothing(server, host, method):
    answer, text = ask(server, method, "/", form(server) if method == "POST" else "", Host=host)
    assert answer.status == 421
    assert "toy/better" not in text


def test_names_of_this_machine_are_let_in(server):
    for host in ("localhost:1", "127.0.0.1", "[::1]:80"):
        assert ask(server, "GET", "/", Host=host)[0].status == 200


def test_only_our_own_page_starts_a_run(server):
    own = f"http://127.0.0.1:{server.server_address[1]}"
    for refused, headers in (
        (form(server, token="wrong"), {}),
        (form(server, token=""), {}),
        ("", {}),
        (form(server), {"Origin": "http://evil.example"}),
        (form(server), {"Origin": "null"}),
        (form(server), {"Origin": own, "Sec_Fetch_Site": "cross-site"}),
        (form(server), {"Origin": own, "Sec_Fetch_Site": "same-site"}),
    ):
        assert ask(server, "POST", "/start", refused, **headers)[0].status == 403
        assert ask(server, "POST", "/stop", refused, **headers)[0].status == 403
    assert server.jobs.started == []
    answer, _ = ask(server, "POST", "/start", form(server), Origin=own, Sec_Fetch_Site="same-origin")
    assert (answer.status, answer.headers["Location"]) == (303, "/job")
    assert server.jobs.started == [("toy", "smoke", 2)]


@pytest.mark.parametrize(
    "fields",
    [{"id": "other"}, {"id": "toy/none"}, {"id": "--help"}, {"scale": "full"}, {"scale": "--fresh"}, {"id": ""}],
)
def test_only_known_claims_at_small_scales(server, fields):
    assert ask(server, "POST", "/start", form(server, **fields))[0].status == 400
    assert server.jobs.started == []


def test_other_verbs_and_large_forms_are_refused(server):
    assert ask(server, "PUT", "/start", "x")[0].status == 501
    assert ask(server, "DELETE", "/run/1")[0].status == 501
    assert ask(server, "POST", "/start", "x" * 5000)[0].status == 413
    assert ask(server, "POST", "/run/1", form(server))[0].status == 404
    answer, text = ask(server, "HEAD", "/")
    assert (answer.status, text) == (200, "")


def test_fragments_are_the_same_text_without_the_frame(server):
    whole, part = ask(server, "GET", "/run/1")[1], ask(server, "GET", "/run/1", X_Fragment="main")[1]
    assert part in whole
    assert "<!doctype" not in part
    results = ask(server, "GET", "/catalogue?q=noisy", X_Fragment="results")[1]
    assert "<form" not in results
    assert 'class="paper"' in results


def test_files_are_kept_by_the_browser(server):
    mark = ask(server, "GET", "/static/app.js")[0].headers["ETag"]
    assert ask(server, "GET", "/static/app.js", If_None_Match=mark)[0].status == 304


def test_beyond_loopback_the_pages_are_for_reading(home, monkeypatch):
    monkeypatch.setattr("laureate.pages.server._is_loopback", lambda host: False)
    with serving(jobs=FakeJobs()) as server:
        assert server.token not in ask(server, "GET", "/method/toy")[1]
        assert ask(server, "POST", "/start", form(server))[0].status == 403


def test_a_port_that_is_taken_is_one_line(server):
    with pytest.raises(UserError, match="Cannot listen on"):
        make_server(port=server.server_address[1])


def test_a_store_of_the_future_is_told_and_not_a_traceback(server, home):
    store = Store(store_path())
    store._db.execute("PRAGMA user_version = 99")
    store.close()
    answer, text = ask(server, "GET", "/")
    assert answer.status == 500
    assert "newer Laureate" in text


def test_a_run_is_watched_and_stopped(home):
    """With the real command in a process of its own."""
    jobs = Jobs([*_toy_command()])
    jobs.start("toy", "desk", 2)
    try:
        wait_for(lambda: jobs.state()["done"] >= 1)
        assert jobs.running == "laureate run toy --scale desk"
        assert jobs.stop()
        wait_for(lambda: not jobs.state()["active"])
    finally:
        jobs.close()
    state = jobs.state()
    assert state["state"] == "stopped"
    assert state["total"] == 30
    store = Store(store_path())
    run = store.run_after(2, state["command"])
    assert store.run(run)["status"] == "interrupted"
    assert 1 <= len(store.run_cells(run)) < 30
    store.close()
    assert not jobs.stop()


def _toy_command():
    import sys

    return sys.executable, str(Path(toy_site.__file__))


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)
