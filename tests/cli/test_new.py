"""``laureate new``: a skeleton that runs, and one failing test that lists what is missing."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from laureate.catalogue.entry import entries

ROOT = Path(__file__).parents[2]
# A paper of the catalogue that nobody has begun, with a dash in its id.
FREE = next(
    entry.id
    for entry in reversed(entries())
    if "-" in entry.id and not (ROOT / "src" / "laureate" / "papers" / entry.id.replace("-", "_")).exists()
)
FOLDER = FREE.replace("-", "_")


def python(sources: Path, folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(sources)} | more
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of what a checkout has, without the other papers and drafts, whose tests would run with it."""
    root = tmp_path_factory.mktemp("checkout")
    shutil.copy(ROOT / "pyproject.toml", root)
    others = [path.parent.name for path in (ROOT / "src/laureate/papers").glob("*/__init__.py")]
    ignored = shutil.ignore_patterns(*others)  # bytecode is copied too: four processes would compile all sources
    shutil.copytree(ROOT / "src", root / "src", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "papers", root / "tests" / "papers", ignore=ignored)
    return root


def new(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(root / "src", root, "-m", "laureate", "new", *words)


def test_the_skeleton_runs_and_fails_the_one_test_that_lists_what_is_missing(checkout, tmp_path):
    made = new(checkout, FREE, "--area", "brand_new")
    assert made.returncode == 0, made.stderr
    for name in ("about", "experiments", "trials", "speed", "__init__"):
        assert f"src/laureate/papers/{FOLDER}/{name}.py" in made.stdout
    assert "src/laureate/brand_new/__init__.py" in made.stdout
    tested = python(
        checkout / "src", checkout, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/papers",
        LAUREATE_HOME=str(tmp_path),
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
    ):
        assert re.search(word, tested.stdout), word
    assert re.search(r"[1-9]\d* passed", tested.stdout)
    ledger = "from laureate.lab.ledger import missing; from laureate.papers import paper; print(missing(paper('{}')))"
    assert python(checkout / "src", checkout, "-c", ledger.format(FREE)).stdout == "{}\n"
    again = new(checkout, FREE, "--area", "brand_new")
    assert again.returncode == 2
    assert "is there already" in again.stderr


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
    shutil.copytree(checkout / "src" / "laureate", tmp_path / "site-packages" / "laureate")
    done = python(tmp_path / "site-packages", tmp_path, "-m", "laureate", "new", FREE, "--area", "sampling")
    assert done.returncode == 2
    assert "source checkout" in done.stderr
