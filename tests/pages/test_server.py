"""The server's doors: who gets in, and what for."""

import collections
import http.client
import json
import re
import socket
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toy_site
from laureate.lab.errors import UserError
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.pages import requests, vega
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


def spoken(server, text: bytes, wait: float = 30.0) -> bytes:
    """What comes back for bytes that need not be HTTP, until the server closes the connection."""
    with socket.create_connection(server.server_address[:2], timeout=wait) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while part := connection.recv(65536):
            said += part
    return said


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: [\r\n\r\n", b"421"),
        (b"GET //[ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nGET /", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (b"POST /start HTTP/1.1\r\nHost: localhost\r\n\r\n", b"413"),
        (b"POST /start HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"413"),
        (b"POST /start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", b"413"),
        (b"POST /start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nshort", b"403"),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414"),
        (b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\n" + b"X-Many: 1\r\n" * 200 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 70000 + b"\r\n\r\n", b"431"),
        (b"BREW /pot HTTP/1.1\r\nHost: localhost\r\n\r\n", b"501"),
        (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"505"),
        (b"\x16\x03\x01 no HTTP at all\r\n\r\n", b"400"),
    ],
    ids=lambda value: value.decode() if len(value) == 3 else "",
)
def test_whatever_is_sent_is_refused_in_words_with_the_headers_that_guard_it(server, capfd, text, status):
    said = spoken(server, text)
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.split()[1] == status
    assert b"Content-Security-Policy: default-src 'none'" in head
    assert b"X-Content-Type-Options: nosniff" in head
    assert b"Traceback" not in body
    assert server.token.encode() not in said
    assert capfd.readouterr().err == "", "the terminal belongs to the person"
    assert server.jobs.started == []


HOSTILE = (
    "..", "%2e%2e", "%00", "etc", "passwd", "static", "app.js", "figure", "run", "data", "method", "toy", "paper", "1",
    "-1", "%", "%zz", "\\", "~", "<script>", "'", "better.csv", "run-1.csv", "%F0%9F%92%A9", "",
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(HOSTILE) | st.text("abc/.%<&?=#[]", max_size=6), max_size=5),
    st.text("q=&%+<'\"a1", max_size=20),
)
def test_no_address_breaks_the_server_or_leads_out_of_it(server, parts, query):
    address = ("/" + "/".join(parts) + "?" + query).replace(" ", "+").encode("ascii", "ignore")
    said = spoken(server, b"GET " + address + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert said.split()[1] in (b"200", b"404"), address
    assert b"root:" not in said
    assert b"<script>alert" not in said


def test_what_is_asked_comes_back_as_text(server):
    for path in ("/catalogue?q=%3Cscript%3Ealert(1)%3C/script%3E", "/%3Cscript%3Ealert(1)%3C/script%3E"):
        text = ask(server, "GET", path)[1]
        assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in ask(server, "GET", "/catalogue?q=%3Cscript%3Ealert(1)%3C/script%3E")[1]


def test_slow_clients_are_let_go_and_hold_nobody_up(server, monkeypatch, capfd):
    """They send a letter now and then and never come to an end; a reader beside them is served at once."""
    clock, asked = [0.0], collections.Counter()
    told = lambda: (asked.update([threading.get_ident()]), clock[0])[1]  # noqa: E731
    monkeypatch.setattr(requests, "time", SimpleNamespace(monotonic=told))
    monkeypatch.setattr(requests, "SECONDS_IN", 1e5)  # by that clock: nobody is late because the machine is
    slow = [socket.create_connection(server.server_address[:2], timeout=30) for _ in range(40)]
    for connection in slow:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
    # Each has a thread that knows its time, and reads.
    wait_for(lambda: sum(times >= 3 for times in list(asked.values())) >= len(slow))
    assert ask(server, "GET", "/static/icon.svg")[0].status == 200
    for _ in range(3):
        clock[0] += 0.3e5
        for connection in slow:
            connection.sendall(b"a")
    assert ask(server, "GET", "/static/icon.svg")[0].status == 200
    clock[0] += 0.3e5  # what arrived in time has bought no more of it
    wait_for(lambda: not [connection for connection in slow if not is_let_go(connection, 0.0)])
    for connection in slow:
        connection.close()
    assert capfd.readouterr().err == ""


def test_a_form_that_never_comes_is_let_go(server, monkeypatch, capfd):
    monkeypatch.setattr(requests, "SECONDS_IN", 0.3)
    with socket.create_connection(server.server_address[:2], timeout=30) as connection:
        connection.sendall(b"POST /start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntoken=")
        assert connection.recv(100) == b"", "closed without an answer"
    assert capfd.readouterr().err == ""


def test_every_request_of_a_kept_connection_has_a_time_of_its_own(server, monkeypatch):
    """However long it has been open: a browser keeps one while somebody reads."""
    clock = [0.0]
    monkeypatch.setattr(requests, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)
    for _ in range(6):
        connection.request("GET", "/static/icon.svg")
        answer = connection.getresponse()
        assert (answer.status, answer.will_close) == (200, False)
        answer.read()
        clock[0] += 0.6 * requests.SECONDS_IN
    connection.close()


def is_let_go(connection, seconds):
    """Whether the server closes the connection, of which it is told with every byte sent after that."""
    ends = time.monotonic() + seconds
    while True:
        try:
            connection.sendall(b"a")
        except (ConnectionResetError, BrokenPipeError):
            return True
        if time.monotonic() >= ends:
            return False
        time.sleep(0.05)


def test_readers_who_leave_or_do_not_read_are_no_news(server, monkeypatch, capfd):
    monkeypatch.setattr(requests, "SECONDS_OUT", 0.3)
    for _ in range(5):
        connection = socket.create_connection(server.server_address[:2], timeout=30)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close by a reset
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        connection.close()
    idle = socket.create_connection(server.server_address[:2], timeout=30)
    idle.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
    assert ask(server, "GET", "/static/icon.svg")[0].status == 200
    assert is_let_go(idle, 60)
    idle.close()
    assert capfd.readouterr().err == ""


def test_a_hundred_readers_at_once_all_get_their_page(server):
    """A thousand: benchmarks/pages_load.py."""
    answers: list[int] = []

    def read():
        answers.append(ask(server, "GET", "/static/style.css")[0].status)

    threads = [threading.Thread(target=read) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 100


def test_beyond_its_room_a_connection_is_closed_and_there_is_room_again_later(home, monkeypatch):
    monkeypatch.setattr(requests, "MOST_CONNECTIONS", 3)
    with serving(jobs=FakeJobs()) as server:
        held = [socket.create_connection(server.server_address[:2], timeout=30) for _ in range(4)]
        assert held[3].recv(10) == b"", "the fourth is turned away"
        for connection in held:
            connection.close()
        wait_for(lambda: server._room._value == 3)
        assert ask(server, "GET", "/static/icon.svg")[0].status == 200


def test_where_no_thread_can_be_started_the_room_is_given_back(home, monkeypatch):
    """A machine that had no more threads for a moment serves again afterwards."""
    monkeypatch.setattr(requests, "MOST_CONNECTIONS", 1)

    def start(thread):
        raise RuntimeError("can't start new thread")

    with serving(jobs=FakeJobs()) as server:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            for _ in range(3):
                with socket.create_connection(server.server_address[:2], timeout=30) as connection:
                    assert connection.recv(10) == b""
        assert ask(server, "GET", "/static/icon.svg")[0].status == 200


def test_it_listens_on_loopback_unless_told(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.may_run


def test_fragments_are_the_same_text_without_the_frame(server):
    whole, part = ask(server, "GET", "/run/1")[1], ask(server, "GET", "/run/1", X_Fragment="main")[1]
    assert part in whole
    assert "<!doctype" not in part
    results = ask(server, "GET", "/catalogue?q=noisy", X_Fragment="results")[1]
    assert "<form" not in results
    assert 'class="paper"' in results


@pytest.mark.parametrize(
    ("path", "here"),
    [("/", "Board"), ("/catalogue", "Catalogue"), ("/runs", "Runs"), ("/compare", "Compare"), ("/run/1", None)],
)
def test_a_page_says_where_one_is(server, path, here):
    marked = re.findall(r'aria-current="page">([^<]*)<', ask(server, "GET", path)[1])
    assert marked == ([here] if here else [])


def test_files_are_kept_by_the_browser(server):
    mark = ask(server, "GET", "/static/app.js")[0].headers["ETag"]
    assert ask(server, "GET", "/static/app.js", If_None_Match=mark)[0].status == 304


@pytest.mark.parametrize("explore", [False, True])
def test_a_picture_comes_in_every_form_as_the_kind_that_it_is(server, monkeypatch, explore):
    """With Vega by Vega, without it as we draw it; of another run or name there is none."""
    seen = []
    monkeypatch.setattr(vega, "available", lambda: explore)
    monkeypatch.setattr(vega, "spec", lambda figure: {"of": figure.name})
    monkeypatch.setattr(vega, "image", lambda figure, form: seen.append((figure.name, form)) or form.encode())
    kinds = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml; charset=utf-8"}
    kinds |= {"png": "image/png", "vl.json": "application/json; charset=utf-8"} if explore else {}
    for name in ("toy/better", "toy/toy/0"):
        for form, kind in kinds.items():
            answer, text = ask(server, "GET", f"/figure/2/{name}.{form}")
            assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
            if form == "csv":
                assert text.startswith("row,seed" if name == "toy/better" else "arm,x")
            elif form == "vl.json":
                assert json.loads(text) == {"of": name}
            else:
                assert text == form if explore else text.startswith("<svg xmlns=")
            for wrong in (f"/figure/3/{name}.{form}", f"/figure/2/{name}{form}", f"/figure/2/x/{name}.{form}"):
                assert ask(server, "GET", wrong)[0].status == 404, wrong
    assert seen == [(name, form) for name in ("toy/better", "toy/toy/0") for form in ("svg", "png") if explore]


def test_what_is_of_today_is_not_kept_and_what_is_of_a_release_is_asked_for_by_its_mark(server):
    """A page may say something else a second later; style and script are sent once."""
    for path in ("/", "/run/1", "/catalogue", "/nothing", "/data/run-1.csv", "/figure/1/toy/better.svg"):
        answer, _ = ask(server, "GET", path)
        assert (answer.headers.get_all("Cache-Control"), answer.headers["ETag"]) == (["no-store"], None), path
    marks = {}
    for path in ("/static/app.js", "/static/style.css", "/static/icon.svg"):
        whole, text = ask(server, "GET", path)
        mark = marks[path] = whole.headers["ETag"]
        for known, status in ((mark, 304), (f'{mark}"', 200), ('"x"', 200)):
            again, body = ask(server, "GET", path, If_None_Match=known)
            assert (again.status, body) == (status, text if status == 200 else "")
            assert again.headers.get_all("Cache-Control") == whole.headers.get_all("Cache-Control") == ["no-cache"]
            assert again.headers["ETag"] == mark
    assert len({*marks.values()}) == 3


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


def test_a_run_is_watched_and_stopped(home, monkeypatch):
    """With the real command in a process of its own, most of whose cells never end; it may take its time to stop."""
    monkeypatch.setenv("TOY_HELD", "3")
    monkeypatch.setattr("laureate.pages.jobs.PATIENCE", (600.0, 600.0))
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
    assert store.run(run)["finished"], "it was told to stop and closed its books itself"
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


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "127.0.0.1", "::1"])
def test_a_loopback_by_any_name_is_served_and_may_run(host, shared):
    if host == "::1":
        try:
            with socket.create_server(("::1", 0), family=socket.AF_INET6):
                pass
        except OSError:
            pytest.skip("no IPv6 here")
    server = make_server(host, 0, FakeJobs())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        assert server.may_run
        with urllib.request.urlopen(f"{server.url}static/icon.svg", timeout=30) as answer:
            assert answer.status == 200
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_name_that_it_listens_on_is_known_in_any_capitals(server, monkeypatch):
    monkeypatch.setattr(server, "host", "MyMachine")
    port = server.server_address[1]
    answers = {name: ask(server, "GET", "/static/icon.svg", Host=f"{name}:{port}")[0].status for name in HOSTS}
    assert answers == HOSTS


HOSTS = {"mymachine": 200, "MyMachine": 200, "MYMACHINE": 200, "localhost": 200, "othermachine": 421}


@pytest.mark.parametrize(("code", "word"), [(0, "finished"), (3, "stopped")])
def test_a_run_that_was_done_before_it_could_stop_is_finished(code, word, monkeypatch):
    """It was asked to stop, and says itself whether it did: whoever left with 0 has measured everything."""
    import sys

    waits = f"import signal, sys, time; signal.signal(2, lambda *_: sys.exit({code})); print('up'); time.sleep(600)"
    monkeypatch.setattr("laureate.pages.jobs.PATIENCE", (600.0, 600.0))
    jobs = Jobs([sys.executable, "-c", waits])
    jobs.start("toy", "smoke", 0)
    wait_for(lambda: jobs.state()["lines"])
    assert jobs.state()["state"] == "running"
    assert jobs.stop()
    wait_for(lambda: not jobs.state()["active"])
    assert jobs.state()["state"] == word
