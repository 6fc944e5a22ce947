"""The command: the list, one that goes wrong, and that nothing heavy is loaded for either."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import laureate
from laureate.cli import cli
from laureate.lab.errors import UserError
from laureate.racing.disciplines import WITHOUT_RACE, disciplines
from laureate.racing.kinds import spoken


def test_the_list_says_what_a_problem_must_offer_and_who_runs():
    shown = CliRunner().invoke(cli, ["race", "--list"]).output
    for one in disciplines():
        assert one.name in shown
        assert all(spoken(name) in shown for name in one.needs)
        assert all(entrant.name in shown for entrant in one.entrants)
    told = json.loads(CliRunner().invoke(cli, ["race", "--list", "--json"]).output)
    assert [one["name"] for one in told] == [one.name for one in disciplines()]
    assert all(f"{area}: {why}" in shown for area, why in WITHOUT_RACE.items())
    alone = CliRunner().invoke(cli, ["race", "--list", "--kind", "sampling"]).output
    assert alone.startswith("sampling: an energy")
    assert "selection" not in alone


def test_the_list_loads_nothing_heavy():
    script = (
        "import sys, laureate.racing.disciplines as d; d.disciplines(); from laureate.cli.race import race;"
        "sys.exit(bool({'jax', 'numpy', 'sqlite3'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Say what to race on"),
        (["nowhere.py:energy"], "there is no file"),
        (["energy"], "must be FILE.py:NAME"),
        (["--list", "--kind", "samplin"], "Did you mean sampling"),
    ],
)
def test_wrong_words_are_one_line(words, said):
    found = CliRunner().invoke(cli, ["race", *words])
    assert isinstance(found.exception, UserError)
    assert said in str(found.exception)


def test_the_function_is_loaded_when_it_is_asked_for():
    assert callable(laureate.race)
    with pytest.raises(AttributeError, match="no attribute 'raze'"):
        _ = laureate.raze


def test_what_is_wrong_in_a_users_file_is_told_with_its_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def energy():\n    raise ValueError('no such table')\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"mine.py, line 2 in energy: ValueError: no such table. Nothing was run."):
        laureate.race(f"{path}:energy")
