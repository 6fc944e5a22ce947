"""What the lab says of files that are old, damaged, in the way or not its own, and what it makes of them."""

import dataclasses
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

import made_home
import plain_words
from laureate.catalogue import library
from laureate.lab import reference
from laureate.lab.claim import Film
from laureate.lab.errors import UserError
from laureate.lab.judging.results import ClaimResult, QuestionResult, Result
from laureate.lab.records import paper_results
from laureate.lab.running.definitions import program, source_files
from laureate.lab.running.references import check_file, load, parsed
from laureate.lab.running.trying import in_their_file
from laureate.lab.storing import home as homes
from laureate.lab.storing.salvage import repair
from laureate.lab.storing.store import Store

HERE = Path(__file__).parent


@pytest.fixture
def made(tmp_path, monkeypatch):
    home = made_home.Home(tmp_path / "made", monkeypatch)
    home.run("toy/lower", "toy/small", "toy/which", scale="smoke")
    home.run("toy/lower", scale="smoke", seeds=13, executor=made_home.Remembered(fails=("theirs",)))
    yield home
    home.close()


def said(call, *given, places=None):
    """The words of the error, or what came back."""
    try:
        found = call(*given)
    except UserError as error:
        return plain_words.plain_words(str(error), places)
    return found


def change(path, *questions):
    db = sqlite3.connect(path, isolation_level=None)
    for question in questions:
        db.execute(question)
    db.close()


DAMAGE = {
    "a verdict": "UPDATE verdicts SET data = '{broken' WHERE claim = 'toy/small'",
    "a number": "UPDATE observations SET data = substr(data, 1, 60) WHERE cell = 2 AND metric = 'loss'",
    "other numbers": "UPDATE observations SET data = CAST(data || x'00' AS BLOB) WHERE cell = 3",
    "no numbers": "DELETE FROM observations WHERE cell = 4",
    "an environment": "UPDATE environments SET data = 'none'",
    "a run": "DELETE FROM runs WHERE id = 2",
}  # fmt: skip


def test_stores_that_are_damaged(recorded, made):
    path = made.home / "store.sqlite"
    whole = path.read_bytes()
    for name, question in DAMAGE.items():
        path.write_bytes(whole)
        change(path, "PRAGMA foreign_keys = OFF", question)
        places = made.places()
        store = Store(path)
        read = {
            "complaint": [store.complaint(), store.unreadable()],
            "run": said(lambda store=store: [one["status"] for one in store.runs()], places=places),
            "results": said(lambda store=store: len(store.results(1)), places=places),
            "shown": said(lambda store=store: len(store.shown()), places=places),
            "numbers": said(lambda store=store: [sorted(store.observations(n))[:1] for n in (2, 3, 4)], places=places),
        }
        store.close()
        recorded(name, read)
        mended = repair(path)
        told = [mended.rows, mended.lost_cells, mended.kept_as and mended.kept_as.name]
        store = Store(path)
        assert (store.complaint(), store.unreadable()) == ("", 0), "what cannot be read is mended, or nobody can go on"
        left = [[one["id"], one["status"], one["command"], one["environment"].get("machine")] for one in store.runs()]
        recorded(f"{name}, mended", [told, store.counts(), left, [len(store.results(n)) for n in (1, 2)]])
        store.close()


def test_files_that_are_no_store_of_ours(recorded, made, tmp_path, monkeypatch):
    places = {**made.places(), "TMP": tmp_path}
    path = made.home / "store.sqlite"
    change(path, "PRAGMA user_version = 99")
    recorded("newer", said(Store, path, places=places))
    path.write_text("no database at all, but long enough to be looked at " * 9)
    recorded("text", said(Store, path, places=places))
    recorded("none", said(repair, tmp_path / "none.sqlite", places=places))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LAUREATE_HOME", str(tmp_path / "file"))
    recorded("home", said(homes.home, places=places))
    monkeypatch.setenv("LAUREATE_HOME", str(made.home))
    library.library_path().write_text("no database at all, but long enough to be looked at " * 9)
    recorded("library", said(lambda: list(library.all_entries()), places=places))


def test_a_store_of_an_older_laureate(recorded, tmp_path):
    path = tmp_path / "store.sqlite"
    shutil.copy(HERE / "data" / "store_0_1.sqlite", path)
    store = Store(path)
    run = dict(store.run(1) or {})
    recorded("run", {name: run[name] for name in ("status", "command", "scale", "seeds", "problem", "name", "note")})
    recorded("counts", store.counts())
    cells = store.run_cells(1)
    recorded("cells", [[one["arm"], one["start"], one["count"], one["status"], one["memory"]] for one in cells])
    recorded("metrics", {name: list(value.shape) for name, value in sorted(store.observations(cells[0]["id"]).items())})
    results = [one.to_json() for one in store.results(1)]
    recorded(
        "results",
        [{n: v for n, v in one.items() if n not in ("measured", "statement", "answers")} for one in results[:3]],
    )
    recorded("beside it", sorted(file.name for file in tmp_path.iterdir()))
    store.close()


def test_results_as_older_versions_stored_them(recorded):
    older = {
        "bare": {"id": "p/c", "verdict": "supported"},
        "question": {"id": "p/q", "answers": {"a": {"mean": 1.0, "seeds": 4}}},
        "nulls": {"id": "p/c", "verdict": "inconclusive", "effect": None, "low": None, "measured": None},
        "unknown": {"id": "p/c", "verdict": "refuted", "colour": "red", "data": ["mnist"]},
        "measured": {"id": "p/c", "verdict": "refuted", "measured": {"effects": [1.0, None], "holds": [None, 1.0],
                     "lines": [[0.0, "no effect"], [None, "margin"]]}},
    }  # fmt: skip
    for name, entries in older.items():
        found = Result.from_json(entries)
        assert isinstance(found, ClaimResult | QuestionResult)
        recorded(name, found.to_json())


def test_numbers_that_an_older_laureate_did_not_keep_are_made_again(recorded, made):
    store = made.open()
    bare = [dataclasses.replace(one, measured=None) for one in store.results(1) if isinstance(one, ClaimResult)]
    store.add_results(1, [*bare, dataclasses.replace(bare[0], id=type(bare[0].id)("toy", "unlike"), effect=1.0)])
    found = paper_results(store, made_home.paper_of("toy"), 1)
    recorded(
        "again", [[one.name, one.measured and one.measured.to_json()] for one in found if isinstance(one, ClaimResult)]
    )
    store.close()


def test_films_of_which_an_arm_is_missing(recorded, made, monkeypatch):
    folder = made.papers_folder / "toy"
    monkeypatch.setattr(reference, "path_of", lambda _: folder / "reference.jsonl")
    lines = [{"film": "walk", "arm": arm, "said": arm} for arm in ("ours", "theirs")] + [
        {"film": "half", "arm": "ours"}
    ]
    (folder / "films.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    paper = made_home.paper_of("toy")
    films = (*paper.films, Film("half", "Half", "m:f", "walk", ("ours", "theirs"), "s"))
    recorded("panels", reference.film_panels(dataclasses.replace(paper, films=films)))
    recorded("path", reference.path_of("a-b").name)


PROBLEMS = {
    "nothing.py": "", "null.py": "x = 1\0", "tab.py": "def f():\n\tx = 1\n        y = 2\n",
    "star.py": "from os import *\nA = B = 1\n",
    "tuple.py": "a, (b, *c) = 1, (2, 3)\nd: int = 4\nfor e in range(2): pass\nclass F: pass\nimport os as g\n",
    "raises.py": "def make():\n    raise ValueError('no widget.\\nmore')\n\n"
                 "class Made:\n    def __init__(self):\n        make()\n",
}  # fmt: skip


def test_files_of_a_problem(recorded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"HERE": tmp_path}
    for name, text in PROBLEMS.items():
        (tmp_path / name).write_text(text, "utf-8")
        for wanted in ("a", "A", "F", "Made"):
            found = said(check_file, f"{name}:{wanted}", places=places)
            recorded(f"{name}:{wanted}", plain_words.plain_words(found, places))
    recorded("folder", said(check_file, f"{tmp_path}/x.py:y", places=places))
    recorded(
        "names", [said(check_file, word, places=places) for word in ("", "x", ":", "x.py", ".py:", "a.txt:b", "a.py:")]
    )
    recorded("empty", len(parsed(tmp_path / "nothing.py").body))
    made = load(f"{tmp_path}/raises.py:Made")
    for name, problem in {"theirs": f"{tmp_path}/raises.py:Made", "another": f"{tmp_path}/tuple.py:F"}.items():
        with pytest.raises(ValueError, match="no widget") as error:
            made()
        recorded(name, in_their_file(problem, error.value))
    used = program((f"{tmp_path}/tuple.py:F",))
    recorded("libraries", sorted(used.libraries))
    recorded("definitions", sorted(name for path, name in used.definitions if path.name == "tuple.py"))
    recorded(
        "sources", sorted(path.name for path in source_files((f"{tmp_path}/tuple.py:F",)) if path.parent == tmp_path)
    )
