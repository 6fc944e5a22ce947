"""Every command with every form of what it prints, in full, on a home that was made up for it."""

import contextlib
import dataclasses
import inspect
import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

import laureate.cli as package
import made_home
import toys
from laureate.cli import COMMANDS, cli
from laureate.lab.running.plan import plan
from laureate.pages import content, render
from plain_words import plain_words, tags

MOST = 4000  # characters of JSON that are held as they are; of longer ones, the form and the first of each list

PLAIN = [
    ("find", "walks"), ("find", "noisy", "lables"), ("find", '"labels noisy"'), ("find", "xylophonist"),
    ("find", "widgets", "--topic", "vision", "--decision", "oral", "--limit", "2"), ("find", "--venue", "workshop"),
    ("find", "walks", "--runs"), ("find", "labels", "--runs", "--kind", "theory"),
    ("plan", "toy"), ("plan", "--all", "--scale", "smoke"), ("plan", "toy/lower", "known", "--scale", "full"),
    ("plan", "idle", "toy", "--scale", "smoke"),
    ("board",), ("board", "known", "idle"), ("board", "toy", "--checks"),
    ("show", "toy"), ("show", "TOY/lower"), ("show", "toy/clocked/"), ("show", "known"), ("show", "idle"),
    ("show", "widget"), ("show", "bare"), ("show", "own-abstract"), ("show", "SUBMITTED"),
    ("runs",), ("runs", "--limit", "2"), ("runs", "7"),
    ("compare", "1", "5"), ("compare", "2", "6"), ("compare", "3", "4"), ("compare", "2", "2"),
    ("cite", "toy", "widget", "bare", "submitted"), ("cite", "widget", "toy", "--csl"), ("cite", "2"),
    ("race", "--list", "--kind", "sampling"),
]  # fmt: skip
AS_JSON = [
    ("find", "noisy", "lables"), ("find", "walks", "--runs", "--limit", "2"), ("plan", "toy", "--scale", "smoke"),
    ("board", "toy"), ("board", "known"), ("show", "toy/lower"), ("show", "widget"), ("runs", "3"), ("runs",),
    ("compare", "1", "5"), ("cite", "toy", "widget"), ("report", "4"), ("race", "--list", "--kind", "sampling"),
]  # fmt: skip
WRONG = [
    ("find",), ("find", "x", "--topic", "visoin"), ("find", "x", "--kind", "metod"), ("find", "x", "--decision", "or"),
    ("find", "x", "--limit", "0"), ("find", "--nothing"), ("fnid", "x"),
    ("run",), ("run", "tyo"), ("run", "toy/lowre"), ("run", "nothing-like-it"), ("run", "toy", "--scale", "huge"),
    ("run", "toy", "--seeds", "1"), ("run", "toy", "--workers", "0"), ("run", "toy", "--problem", "mine.py"),
    ("run", "toy", "--problem", "none.py:Mine"), ("run", "toy", "--problem", "wrong.py:Mine"),
    ("run", "toy", "--problem", "broken.py:Mine"), ("run", "known/nothing/"), ("run", "toy/clocked", "--scale", "full"),
    ("run", "toy/clocked/", "--problem", "wrong.py:Other"), ("run", "toy", "known", "--problem", "new"),
    ("run", "toy/clocked/", "--problem", "new"),
    ("plan",), ("plan", "toy/clocked/", "--scale", "full"), ("board", "nothing"), ("board", "toy/lower"), ("show",),
    ("show", "nothing-of-that-name"), ("show", "widgte"), ("show", "toy/none"), ("runs", "0"), ("runs", "99"),
    ("runs", "x"), ("runs", "--delete"), ("runs", "--name", "n"), ("runs", "--limit", "0"),
    ("runs", "99999999999999999999999"), ("compare", "1"), ("compare", "1", "99"), ("compare", "x", "y"),
    ("report", "99"), ("report", "-o", "."), ("export", "99"), ("export", "x"), ("export", "--bibtex"),
    ("export", "papers", "--figures", "f"), ("cite",), ("cite", "tyo"), ("cite", "99"), ("import",),
    ("import", "none.bib"), ("import", "wrong.py"), ("import", "broken.bib"), ("import", "latin.bib"),
    ("race",), ("race", "none.py:x"), ("race", "x"), ("race", "--list", "--kind", "sampel"),
    ("race", "wrong.py:Other", "--seconds", "0"), ("new",), ("new", "paper"), ("new", "paper", "Bad Id"),
    ("decentralized",), ("decentralized", "launch"), ("bench", "nothing"), ("doctor", "extra"), ("web", "--port", "x"),
]  # fmt: skip
# Those that change something, in this order.
CHANGES = [
    ("runs", "1", "--name", "  a\tname\n"), ("runs", "1", "--note", "n" * 50), ("runs", "1", "--name", ""),
    ("runs", "5", "--delete"), ("runs", "5", "--delete", "--yes"), ("runs", "3", "--delete", "--yes", "--json"),
    ("runs", "5"), ("import", "list.md", "--venue", "ICLR 2030"), ("import", "list.md", "list.bib"),
    ("import", "list.bib", "--json"), ("find", "zymurgy"), ("show", "zymurgy-for-nets"), ("report",), ("report", "4"),
    ("report", "4", "-o", "here.html", "--json"), ("run", "toy", "--problem", "new"),
    ("run", "toy", "--problem", "new", "--json"), ("run", "idle", "--problem", "new", "--json"), ("doctor", "--repair"),
    ("doctor", "--repair", "--json"), ("export", "4", "-o", "rows.csv"),
]  # fmt: skip
FILES = {
    "wrong.py": "class Other:\n    offset = 1.0\n", "broken.py": "class Mine:\n  x = (\n",
    "broken.bib": "@article{a, title = {T}, junk", "latin.bib": b"@misc{a, title={caf\xe9}}",
    "list.md": "## [Zymurgy for Nets](#)\n\n- Ada Lovelace\n- abstract: Fermented gradients.\n\n## [Known things](#)\n",
    "list.bib": "@article{a, title = {On Yeast}, author = {Ada One}, year = 2031}\n@misc{b, title={=x}, year=2020}\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        home = made_home.Home(tmp_path_factory.mktemp("full"), patch)
        home.fill()
        home.execute()
        yield home
        home.close()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder where commands are given."""
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def say(full, here, monkeypatch, capfd):
    """The exit code of a command with what it printed, in plain words."""

    def called(*words, columns=100, home=full):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["laureate", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
        with pytest.raises(SystemExit) as stopped:
            package.main()
        said = capfd.readouterr()
        out, err = (plain_words(text, home.places() | {"HERE": here}) for text in (said.out, said.err))
        return SimpleNamespace(code=stopped.value.code or 0, out=out, err=of_ours(err))

    return called


def of_ours(text):
    """What click says of wrong words is its own, and of its version; where an error is ours it is held."""
    if not text.startswith("Usage:"):
        return text
    ours = [line for line in text.splitlines() if "a number of processes" in line]
    return "\n".join(["(click says how it is used)", *ours, ""])


def transcript(found):
    """Command and answer, one after another."""
    parts = []
    for words, said in found:
        parts.append(f"$ laureate {' '.join(words)}\n{said.out}")
        parts += [f"[stderr]\n{said.err}"] if said.err else []
        parts += [f"[exit {said.code}]\n"] if said.code else []
    return "\n".join(part if part.endswith("\n") else f"{part}\n" for part in parts)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command(recorded, name):
    """Our words in it: how they are set is click's."""
    recorded(name, described(cli.get_command(click.Context(cli), name)))


def described(command):
    found = {"help": inspect.cleandoc(command.help or ""), "short": command.get_short_help_str(1000)}
    found |= {"commands": {name: described(one) for name, one in getattr(command, "commands", {}).items()}}
    for one in command.params:
        facts = {name: getattr(one, name, None) for name in ("required", "metavar", "help", "nargs")}
        held = (
            one.default if isinstance(one.default, str | int | float) and not getattr(one, "is_flag", False) else None
        )
        kind = {
            name: getattr(one.type, name) for name in ("choices", "min", "max", "min_open") if hasattr(one.type, name)
        }
        found["/".join(one.opts)] = {**facts, "default": held, "type": {n: plain_kind(v) for n, v in kind.items()}}
    return found


def plain_kind(value):
    return value if isinstance(value, int | float | bool | None) else [str(one) for one in value]


def test_the_help_of_all(recorded):
    rows = []
    formatter = SimpleNamespace(section=contextlib.nullcontext, write_dl=rows.extend)
    cli.format_commands(click.Context(cli), formatter)  # pyright: ignore[reportArgumentType]
    recorded("commands", rows)
    recorded("help", inspect.cleandoc(cli.help or ""))


def test_what_commands_print(say, recorded):
    by_command = {}
    for words in PLAIN:
        by_command.setdefault(words[0], []).append((words, say(*words)))
    for command, found in by_command.items():
        recorded.text(f"{command}.txt", transcript(found))


@pytest.mark.parametrize("columns", [40, 200])
def test_what_commands_print_on_other_terminals(say, recorded, columns):
    chosen = [
        ("find", "noisy", "lables"), ("plan", "--all", "--scale", "smoke"), ("board", "toy"), ("show", "toy/lower"),
        ("runs", "7"), ("compare", "1", "5"),
    ]  # fmt: skip
    recorded.text(f"columns-{columns}.txt", transcript([(words, say(*words, columns=columns)) for words in chosen]))


@pytest.mark.parametrize("words", AS_JSON, ids="-".join)
def test_what_commands_print_for_programs(say, recorded, words):
    said = say(*words, "--json")
    found = json.loads(said.out)
    if words[0] == "report":
        found.pop("bytes")
    recorded("json", [said.code, said.err, found if len(said.out) < MOST * 5 else first_of(found)])


def first_of(value, most=3):
    """The form of a long value: of each list the first ones and how long it is."""
    if isinstance(value, dict):
        return {name: first_of(one, most) for name, one in value.items()}
    if isinstance(value, list) and len(value) > most and isinstance(value[0], dict | list):
        return [*(first_of(one, most) for one in value[:most]), f"{len(value)} in all"]
    return [first_of(one, most) for one in value] if isinstance(value, list) else value


def test_words_that_are_wrong(say, recorded):
    recorded.text("wrong.txt", transcript([(words, say(*words)) for words in WRONG]))


@pytest.mark.parametrize("form", ["--csv", "--json", "--bibtex"])
def test_exports(say, recorded, form):
    papers = say("export", "papers", form)
    recorded.text(f"papers.{form[2:]}", papers.out.replace("\r\n", "\n") if form != "--json" else listed(papers.out))
    rows = say("export", "7", form)
    held = listed(rows.out) if form == "--json" else rows.out.replace("\r\n", "\n")
    lines = held.splitlines()
    recorded("rows", [rows.code, rows.err, len(lines), [of_digits(line) for line in lines[:3] + lines[50:300:40]]])


def listed(text):
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in json.loads(text))


def of_digits(line):
    return re.sub(r"\d+\.\d{5,}(e-?\d+)?", lambda found: f"{float(found[0]):.6g}", line)


def test_commands_that_change_something(recorded, say, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        home = made_home.Home(tmp_path_factory.mktemp("changed"), patch)
        home.fill()
        home.execute()
        patch.setenv("LAUREATE_HOME", str(home.home))
        found = []
        for words in CHANGES:
            said = say(*words, home=home)
            if words[-1] == "--json" and words[0] == "report":
                said.out = json.dumps(json.loads(said.out) | {"bytes": "BYTES"}) + "\n"
            found.append((words, said))
        recorded.text("changes.txt", transcript(found))
        home.close()


RUNS = {
    "first": ("toy", "--scale", "smoke"), "again": ("toy/lower", "--scale", "smoke"),
    "more-seeds": ("toy/lower", "toy/which", "--scale", "smoke", "--seeds", "20"),
    "gate": ("toy/clipped", "--scale", "smoke", "--quiet", "--gate"),
    "several": ("known", "idle", "--scale", "desk", "--quiet"), "json": ("toy/small", "--quiet", "--json"),
    "own": ("toy", "--scale", "smoke", "--problem", "wrong.py:Other"), "skipped": ("toy", "--scale", "full", "--quiet"),
}  # fmt: skip


def test_runs(recorded, say, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        home = made_home.Home(tmp_path_factory.mktemp("running"), patch)
        home.execute()
        found = []
        for name, words in RUNS.items():
            said = say("run", *words, home=home)
            if name == "json":
                recorded(name, json.loads(said.out))
            else:
                found.append((("run", *words), said))
        home.execute(made_home.Remembered(fails=("third",), turn=5))
        found.append((("run", "toy/walk/"), say("run", "toy/walk/", "--fresh", home=home)))
        recorded.text("run.txt", transcript(found))
        empty = [(words, say(*words, home=home)) for words in (("board", "idle"), ("plan", "toy"), ("runs",))]
        recorded.text("after-runs.txt", transcript(empty))
        home.close()


def test_a_home_where_nothing_was_run(recorded, say, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        home = made_home.Home(tmp_path_factory.mktemp("empty"), patch)
        asked = [("board",), ("board", "toy"), ("runs",), ("runs", "--json"), ("plan", "toy"), ("compare", "1", "2"),
                 ("show", "toy/lower"), ("export",), ("report", "1"), ("runs", "1"), ("cite", "1")]  # fmt: skip
        recorded.text("empty.txt", transcript([(words, say(*words, home=home)) for words in asked]))
        home.close()


# -- what computes elsewhere, and is only told here --------------------------------------------------------------------


def bench_rows(methods):
    """Rows as they are measured, of one method faster each time."""
    row = {
        "id": "toy", "work": "a walk of 1,000 steps", "ours_s": 0.0125, "ours_low": 0.012, "ours_high": 0.013,
        "ours_compile_s": 1.5, "ours_mb": 120.0, "peer": "walker", "peer_s": 2.5, "peer_compile_s": 0.0,
        "peer_mb": None, "ratio": 200.0, "low": 195.0, "high": 205.0, "repeats": 9, "package": "walker",
        "peer_version": "1.2", "note": "",
    }  # fmt: skip
    gone = dict.fromkeys(("peer_s", "ratio", "low", "high", "peer_version"))
    for method, where in methods:
        assert where.endswith(f"{method}.speed:COMPARISONS")
        yield row | {"id": method}
        yield row | {"id": method, "peer": "runner", "package": "runner", "note": "in <Python>", **gone}
        slow = {"ours_s": 2.0, "ours_low": 1.9, "ours_high": 2.1, "ratio": 1.25, "low": 1.2, "high": 1.3}
        yield row | {"id": method, "work": "a jump", "peer_version": "", **slow}


def test_benchmarks(recorded, say, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        home = made_home.Home(tmp_path_factory.mktemp("bench"), patch)
        patch.setattr("laureate.lab.running.bench.bench_rows", bench_rows)
        patch.setattr("laureate.lab.running.environment.environment", lambda: dict(made_home.plain_words.FACTS))
        asked = [("bench", "toy", "known"), ("bench", "toy", "--gate"), ("bench", "toy", "--json")]
        found = [(words, say(*words, home=home)) for words in asked]
        slower = [row | {"ratio": row["ratio"] and row["ratio"] / 2, "high": row["high"] and row["high"] / 2}
                  for row in bench_rows([("toy", "toy.speed:COMPARISONS")])]  # fmt: skip
        patch.setattr("laureate.lab.running.bench.bench_rows", lambda methods: [slower[0] for _ in methods])
        found += [(words, say(*words, home=home)) for words in (asked[1], ("bench", "toy", "--gate", "--json"))]
        recorded.text("bench.txt", transcript(found))
        home.close()


def test_races_are_told_and_their_runs_are_of_no_paper(recorded, say, tmp_path_factory):
    from laureate.racing.conclusion import Race

    stored = Path(__file__).parents[1] / "racing" / "stored_race.json"
    told = Race.from_json(json.loads(stored.read_text("utf-8")))
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        home = made_home.Home(tmp_path_factory.mktemp("races"), patch)
        patch.setattr("laureate.racing.api.race", lambda problem, **more: (asked.append((problem, more)), told)[1])
        words = ("race", "mine.py:course", "--seconds", "3", "--only", "a,b", "--metric", "gain", "--quiet")
        found = [(words, say(*words, home=home))]
        recorded("json", json.loads(say("race", "mine.py:course", "--budget", "9", "--json", home=home).out)["best"])
        options = {name: value for name, value in asked[0][1].items() if name not in ("store", "command")}
        recorded("asked", [asked[0][0], options])
        store = home.open()
        facts = dict(made_home.plain_words.FACTS)
        number = store.start_run("laureate race mine.py:course", "race", 10, "mine.py:course", facts)
        cells = plan(toys.select(["toy/lower"], made_home.IDS, made_home.paper_of), "smoke")
        (cell, outcome), *_ = made_home.Remembered().outcomes(cells)
        store.add_cell(number, dataclasses.replace(cell, paper="race", experiment="sampling", scale="race"), outcome)
        store.end_run(number, "finished")
        page = render.body("run", render.Site(live=True), **(content.run(store, number) or {}))
        recorded.text("run-of-a-race.html", tags(page))
        store.close()
        for words in (("runs", "1"), ("cite", "1"), ("board", "idle"), ("report", "1"), ("export", "1")):
            said = say(*words, home=home)
            found.append((words, SimpleNamespace(code=said.code, out=said.out[:1000], err=said.err)))
        recorded.text("races.txt", transcript(found))
        home.close()


def test_what_needs_more_than_is_installed(recorded, say, monkeypatch):
    monkeypatch.setattr("laureate.pages.vega.available", lambda: False)
    asked = [("export", "4", "--figures", "charts"), ("report", "4", "--explore"), ("report", "--explore"),
             ("web", "--host", "a..b"), ("new", "nothing-known", "--area", "x"),
             ("new", "widget", "--area", "Bad Area")]  # fmt: skip
    recorded.text("lacking.txt", transcript([(words, say(*words)) for words in asked]))


def test_the_web_says_where_it_is(recorded, say, monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    server = SimpleNamespace(url="http://127.0.0.1:8642/", serve_forever=stopped, server_close=lambda: None)
    asked = []
    monkeypatch.setattr("laureate.pages.server.make_server", lambda *given: (asked.append(given), server)[1])
    monkeypatch.setattr("webbrowser.open", asked.append)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    found = [(words, say(*words)) for words in (("web",), ("web", "--port", "0", "--open"), ("web", "--json"))]
    recorded.text("web.txt", transcript(found))
    recorded("asked", asked)


def test_what_the_doctor_says(recorded, say, monkeypatch):
    monkeypatch.setattr("laureate.lab.running.diagnosis.diagnose", lambda _: {
        "versions": {"laureate": "0.9"}, "machine": {"memory (GiB)": 4.0, "cores for us": 2},
        "data sets": {"digits": "missing, its experiments are not run; install it with: " + "pip install x; " * 9},
    })  # fmt: skip
    recorded.text("doctor.txt", transcript([(words, say(*words)) for words in (("doctor",), ("doctor", "--json"))]))
