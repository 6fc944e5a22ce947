"""Whatever is typed or handed over: an answer, or one line that says what is wrong; nothing half written."""

import contextlib
import importlib
import json
import os
import sys
import threading
import time
from pathlib import Path

import hostile
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import toys
from laureate import cli as package
from laureate.catalogue import library
from laureate.lab.errors import UserError
from laureate.lab.running import run as run_module
from laureate.lab.running.executors import make_executor
from laureate.lab.running.plan import plan
from laureate.lab.running.references import check_file
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from toy_laureate import Drawn  # pyright: ignore[reportMissingImports]

DATA = Path(__file__).parents[1] / "catalogue" / "data"
FEW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A home with the toy, a library and two files, and nothing that computes for long."""
    place = tmp_path_factory.mktemp("any")
    (place / "mine.py").write_text("class bowl:\n    offset = 1.0\n")
    (place / "papers.bib").write_text((DATA / "papers.bib").read_text("utf-8"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("LAUREATE_HOME", str(place / "home"))
        for module in [importlib.import_module(name) for name in ("laureate.papers", "laureate.pages.report")]:
            patch.setattr(module, "paper_ids", lambda: ["toy"])
        patch.setattr("laureate.papers.paper", lambda _: toys.paper())
        patch.setattr("laureate.pages.report.load_paper", lambda _: toys.paper())
        patch.setattr(run_module, "make_executor", lambda *_: Drawn(0.0))
        yield place


def call(words, capsys):
    """Exit code, standard output and standard error; any other exception than an exit fails the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["laureate", *words])
        with pytest.raises(SystemExit) as stopped:
            package.main()
    said = capsys.readouterr()
    return stopped.value.code or 0, said.out, said.err


@FEW
@given(hostile.command_lines())
@example(["cite", "9" * 5000])
@example(["cite", "²"])
@example(["compare", "9" * 30, "1"])
@example(["report", "9" * 30])
@example(["export", "9" * 30])
@example(["find", "\udcff"])
@example(["import", "\x08\n\u202e"])
@example(["show", "\udcff", "--json"])
@example(["web", "--host", "a" * 100])
@example(["web", "--host", "\u202e", "--port", "0"])
@example(["run", "toy", "--scale", "smoke", "--seeds", "3", "--problem", "mine.py:bowl"])
def test_any_command_line(folder, capsys, words):
    code, out, err = call(words, capsys)
    assert code in (0, 1, 2, 3), (words, err)
    assert "Traceback" not in out + err
    if code == 2:
        assert 1 <= len(err.strip("\n").split("\n")) <= 4 + sum(word.count("\n") for word in words), err
    if err.startswith("laureate: "):
        assert err.count("\n") == 1
        assert not [letter for letter in err[:-1] if ord(letter) < 32], "a terminal would obey it"
    if "--json" in words and code == 0 and words[0] not in ("--help", "--version") and "--help" not in words:
        json.loads(out)
    assert not list(folder.rglob("*.new")), "nothing half written"


# -- a user's problem file -------------------------------------------------------------------------------------------


@FEW
@given(hostile.PROBLEMS)
@example("bowl = " + "1+" * 900 + "1\n")
@example("bowl = " + "(" * 190 + ")" * 190 + "\n")
@example("import broken\nbowl = 1\n")
@example("bowl = '\\udcff'\n")
def test_any_problem_file(folder, text):
    """Read or refused in words, by the check and by what follows the file's imports; never executed here."""
    file = folder / "theirs.py"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    (folder / "broken.py").write_text("def (:\n")
    try:
        reference = check_file(f"{file}:bowl")
        assert plan(toys.selections(toys.paper()), "smoke", problem=reference)
    except UserError as error:
        told = str(error)
    else:
        told = ""
    assert "\n" not in told


def test_a_problem_file_that_exits_is_told_with_its_line(toy, laureate, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "make_executor", make_executor)
    (tmp_path / "mine.py").write_text("import sys\nsys.exit('no')\nbowl = 1\n")
    done = laureate("run", "toy/better", "--scale", "smoke", "--workers", "1", "--problem", f"{tmp_path}/mine.py:bowl")
    assert done.code == 2
    assert "mine.py, line 2: SystemExit: no." in done.err
    assert "Traceback" not in done.err


# -- files for import ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@FEW
@given(st.sampled_from(sorted(hostile.FORMS)).flatmap(lambda name: st.tuples(st.just(name), hostile.FORMS[name])))
@example(("notes.json", '[{"id": "a", "content": {"title": "T"}, "invitations": 5}]'))
@example(("notes.json", f'[{{"id": {"1" * 5000}}}]'))
@example(("papers.bib", "".join(f"@string{{s{i + 1} = s{i} # s{i}}}" for i in range(60)).replace("s0 ", '"xxxx" ')))
@example(("notes.json", '[{"id": "a", "content": {"title": "\\u0093"}}]'))
@example(("page.html", '<html><div class="displaycards"><a class="small-title">{}</a></div>'))
@example(("page.html", "<html>" + "<![" * 100))
@example(("page.html", "<html>" + "<!--" * 20_000))
@example(("blank.bib", "\n" * 200_000))
@example(("spaces.md", "# a" + " " * 20_000 + "b\n"))
def test_any_file_for_import(folder, capsys, pair):
    """All of it or nothing, and no character that a terminal would obey gets through."""
    name, content = pair
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    before = library.revision()
    code, out, err = call(["import", name], capsys)
    assert code in (0, 2), err
    assert "Traceback" not in out + err
    if code == 2:
        assert library.revision() == before, "nothing was imported"
        assert err.count("\n") == 1, err
    for entry in library.all_entries() if library.revision() != before else ():
        assert entry.title
        assert not [letter for letter in json.dumps(entry.record(), ensure_ascii=False) if ord(letter) < 32]


def test_a_file_that_never_ends(folder, capsys, monkeypatch):
    monkeypatch.setattr("laureate.catalogue.importers.MOST_BYTES", 1 << 16)
    code, _, err = call(["import", "/dev/zero"], capsys)
    assert code == 2
    assert "more than" in err


@pytest.fixture
def drawn(monkeypatch):
    """Runs without jax."""
    monkeypatch.setattr(run_module, "make_executor", lambda *_: Drawn(0.0))


# -- where things are written -----------------------------------------------------------------------------------------


def test_a_device_is_written_to_and_not_replaced(toy, drawn, laureate, tmp_path):
    laureate("run", "toy", "--scale", "smoke", "--workers", "1", "--quiet")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading, over = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), threading.Event()
    read: list[bytes] = []

    def empty():
        ended = False
        while not ended:
            ended = over.is_set()  # what was written by then is in the pipe
            with contextlib.suppress(BlockingIOError):
                while part := os.read(reading, 1 << 16):
                    read.append(part)
            time.sleep(0.001)

    reader = threading.Thread(target=empty)
    reader.start()
    try:
        assert laureate("export", "1", "--csv", "-o", str(pipe)).code == 0
    finally:
        over.set()
        reader.join()
        os.close(reading)
    assert pipe.is_fifo()
    written = b"".join(read).decode()
    assert written.startswith("run,paper")
    assert written.splitlines() == laureate("export", "1", "--csv").out.splitlines()


@pytest.mark.parametrize("words", [["export", "1"], ["report", "1"]], ids=" ".join)
def test_a_file_that_cannot_be_written_is_one_line(toy, drawn, laureate, tmp_path, words):
    laureate("run", "toy", "--scale", "smoke", "--workers", "1", "--quiet")
    (tmp_path / "file").write_text("")
    done = laureate(*words, "-o", str(tmp_path / "file" / "below"))
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize("home", ["/dev/null/x", "~nobody-of-that-name/x"])
def test_a_home_that_cannot_be_is_one_line(toy, laureate, monkeypatch, home):
    monkeypatch.setenv("LAUREATE_HOME", home)
    done = laureate("board")
    assert done.code == 2
    assert "Set LAUREATE_HOME to one of your own." in done.err
    assert done.err.count("\n") == 1


def test_a_damaged_store_is_repaired_by_the_doctor(toy, drawn, laureate):
    laureate("run", "toy", "--scale", "smoke", "--workers", "1", "--quiet")
    store = Store(store_path())
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    for suffix in ("-wal", "-shm"):  # the command's own connection is still open in this process
        Path(f"{store_path()}{suffix}").unlink(missing_ok=True)
    data = bytearray(store_path().read_bytes())
    data[:100] = bytes(100)
    store_path().write_bytes(data)
    done = laureate("board")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "laureate doctor --repair" in done.err
    done = laureate("doctor", "--repair")
    assert done.code == 0, done.err
    assert "Saved: 1 run, 6 cells, 3 verdicts. Known to be lost: 0 cells" in done.out
    assert "0 computed, 6 kept" in laureate("run", "toy", "--scale", "smoke", "--workers", "1").out
    assert "nothing to repair" in laureate("doctor", "--repair").out
    assert json.loads(laureate("doctor", "--json").out)["store"]["state"] == "whole"
