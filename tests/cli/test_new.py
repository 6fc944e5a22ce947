"""``laureate new``: a skeleton that runs, and one failing test that lists what is missing."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from skeletons import folder_of, free_id

from laureate.catalogue.entry import entries
from laureate.cli.new import write_skeleton

ROOT = Path(__file__).parents[2]
FREE = free_id()
FOLDER = folder_of(FREE)


def python(sources: Path, folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(sources)} | more
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of what the tests below need of a checkout, where nobody has asked a question yet."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("src", "tests", "scripts"):  # with bytecode: four processes would compile all sources
        shutil.copytree(ROOT / name, root / name)
    (root / "docs").mkdir()
    for name in ("pyproject.toml", "README.md", "docs/board.md"):
        shutil.copy(ROOT / name, root / name)
    (root / "tests" / "catalogue" / "queries.jsonl").write_text("")
    return root


# The tests that go through papers or areas, and those among them that are no test of one alone.
ABOUT_PAPERS = [f"tests/papers/{name}" for name in ("test_nothing_missing.py", "test_every_paper.py", FOLDER)]
ABOUT_PAPERS += ["tests/papers/test_every_trial.py", "tests/lab/test_ledger.py", "tests/test_readme.py"]
ABOUT_PAPERS += ["tests/racing/test_disciplines.py", "tests/contract/test_every_method.py", "tests/test_form.py"]
ABOUT_ALL = ("brand_new", "load_without_jax", "names_every_paper", "is_what_ships", "a_race_or_a_reason")


def new(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(root / "src", root, "-m", "laureate", "new", *words)


def test_the_skeleton_runs_and_fails_the_one_test_that_lists_what_is_missing(checkout, tmp_path):
    made = new(checkout, FREE, "--area", "brand_new")
    assert made.returncode == 0, made.stderr
    for name in ("about", "experiments", "trials", "speed", "__init__"):
        assert f"src/laureate/papers/{FOLDER}/{name}.py" in made.stdout
    assert "src/laureate/brand_new/__init__.py" in made.stdout
    tested = python(
        checkout / "src", checkout, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *ABOUT_PAPERS,
        "-k", f"{FREE} or {FOLDER} or {' or '.join(ABOUT_ALL)}", LAUREATE_HOME=str(tmp_path), PAPER=FREE,
    )  # fmt: skip
    failed = re.findall(r"^FAILED (\S+)", tested.stdout, re.MULTILINE)
    assert failed == [f"tests/papers/test_nothing_missing.py::test_nothing_is_left_to_write[{FREE}]"], tested.stdout
    # Every word of the checklist, and the trial ran at its tiny scale.
    for word in (
        "problem",
        "idea",
        "sentence",
        "difference",
        "section",
        "deviations",
        "margin",
        "equation",
        "example",
        "role",
        "full",
        "peer",
        "questions",
        "README.md: its row",
        "docs/board.md",
        "what its trials report",
        "a discipline of brand_new",
        "brand_new/__init__.py",
        "laureate/brand_new: the method",
        "planted faults",
        "examples: a program",
    ):
        assert re.search(word, tested.stdout), word
    assert re.search(r"[1-9]\d* passed", tested.stdout)
    ledger = "from laureate.lab.ledger import missing; from laureate.papers import paper; print(missing(paper('{}')))"
    assert python(checkout / "src", checkout, "-c", ledger.format(FREE)).stdout == "{}\n"
    again = new(checkout, FREE, "--area", "brand_new")
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_the_linter_takes_every_skeleton(tmp_path, monkeypatch):
    """`make test` lints first: the papers with the longest names, in areas with short and long ones."""
    monkeypatch.setattr("laureate.cli.new._ledger", lambda folder, paper_id: folder / "ledger.jsonl")
    free = [entry for entry in entries() if not (ROOT / "src/laureate/papers" / folder_of(entry.id)).exists()]
    longest = sorted(free, key=lambda entry: len(entry.name or entry.title))[-4:]
    for entry, area in zip(longest, ("pde", "a_new_area_with_a_long_name", "control", "graphs"), strict=True):
        write_skeleton(tmp_path, entry, area)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for words in (("check",), ("format", "--check")):
        done = python(ROOT / "src", tmp_path, "-m", "ruff", *words, "--no-cache", ".")
        assert done.returncode == 0, done.stdout


WRONG = [
    (("no-such-paper-anywhere", "--area", "sampling"), "The catalogue has no"),
    (("directpredd", "--area", "sampling"), "Did you mean"),
    ((FREE, "--area", "Upper-Case"), "--area must be"),
    ((FREE, "--area", "lab"), "--area must be"),
]
EACH_OF = """
import json, sys
from laureate import cli
for words in json.loads(sys.argv[1]):
    sys.argv = ["laureate", "new", *words]
    try:
        cli.main()
    except SystemExit as stopped:
        print(f"left with {stopped.code}", file=sys.stderr)
"""


def test_what_cannot_be_made_is_said(checkout):
    words = json.dumps([words for words, _ in WRONG])
    *told, rest = python(checkout / "src", checkout, "-c", EACH_OF, words).stderr.split("left with 2\n")
    assert rest == ""
    for (words, message), said in zip(WRONG, told, strict=True):
        assert message in said, words


def test_an_installed_laureate_has_no_place_for_it(checkout, tmp_path):
    installed = tmp_path / "site-packages" / "laureate"
    shutil.copytree(checkout / "src" / "laureate", installed, ignore=shutil.ignore_patterns("papers"))
    done = python(tmp_path / "site-packages", tmp_path, "-m", "laureate", "new", FREE, "--area", "sampling")
    assert done.returncode == 2
    assert "source checkout" in done.stderr
