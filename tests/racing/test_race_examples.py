"""The examples: each says how it is raced, one of every kind there is."""

import re
from pathlib import Path

import pytest

from laureate.lab.running.references import check_file, load
from laureate.racing.disciplines import disciplines
from laureate.racing.kinds import detect

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples" / "races").glob("*.py"))


def reference(path):
    """What the file itself says is to be raced."""
    told = re.search(r"^laureate race (examples/races/\S+) --seconds \d+$", path.read_text(encoding="utf-8"), re.M)
    assert told, f"{path.name} does not say how it is raced"
    return check_file(str(ROOT / told[1]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_names_itself(path):
    assert Path(reference(path).rpartition(":")[0]).name == path.name


@pytest.mark.slow  # some train the model that is raced upon
def test_every_kind_has_an_example():
    found = set()
    for path in FILES:
        made = load(reference(path))
        found.add(detect(made() if type(made).__name__ == "function" else made, disciplines()).name)
    assert found == {one.name for one in disciplines()}
