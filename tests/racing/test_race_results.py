"""What a race found, from the store and back: races that were stored as plain dictionaries are read."""

import copy
import dataclasses
import json
import math
from pathlib import Path

import pytest

from laureate.pages.race import fragment, page
from laureate.racing.conclusion import Race
from laureate.racing.results import Curve, Metric, Pair, RaceResult, Row

# As the version of November 2026 stored it, before there was a type to read it: two twins, one near, two worse,
# one without a number in two seeds of ten, one that crashed, one that did not end, one that stayed out.
STORED = json.loads(Path(__file__).with_name("stored_race.json").read_text("utf-8"))


def test_a_race_that_was_stored_as_a_dictionary_is_read_whole():
    found = Race.from_json(STORED)
    assert found.best == STORED["best"] == "a"
    assert found.standing.order == ("a", "twin", "near", "perhaps", "<far>")
    assert found.standing.diverged == {"nan": 2}
    assert found.standing.leaders == ("a", "twin", "near")
    assert found.standing.tied == ("twin", "near")
    assert found.standing.pair("a", "<far>").real
    assert found.by_seconds is not None
    assert found.by_seconds.order == ("near", "<far>")
    assert math.isnan(found.by_seconds.mean["a"])  # it had nothing yet
    assert math.isnan(found.scores["nan"][0])
    again = found.to_json()
    assert again.pop("by_seconds").items() >= STORED["by_seconds"].items()
    assert again == {name: value for name, value in STORED.items() if name != "by_seconds"}
    assert Race.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))).to_json() == found.to_json()


def test_its_page_and_its_table_say_what_they_said():
    found = Race.from_json(STORED)
    html, words = page(found), str(found)
    for row in STORED["rows"]:
        told = row["against"] if row["place"] else row["status"]
        assert told in html
        assert told in words
    for pair in STORED["pairs"]:
        assert f"<td>{pair['by']}</td><td>{pair['interval']}</td>" in html
    assert STORED["advice"] in html
    assert STORED["advice"] in words
    assert found._repr_html_() == fragment(found)
    assert html.count("<svg") == 2


def test_a_still_older_one_without_words_is_read():
    """Before entrants were told how they stand to the first, and where nobody was compared at equal seconds."""
    old = copy.deepcopy(STORED)
    del old["by_seconds"]
    for row in old["rows"]:
        del row["against"]
    for pair in old["pairs"]:
        del pair["by"], pair["interval"]
    found = RaceResult.from_json(old)
    assert found.by_seconds is None
    assert {row.against for row in found.rows} == {""}
    assert "The table" in page(found)


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        ({"real": True, "low": 0.1}, "real"),
        ({"low": 0.1}, "perhaps"),
        ({"low": 0.0}, "within noise"),
        ({"low": None}, "within noise"),  # no end, from too few seeds
        ({"low": None, "same": True}, "the same in every seed"),
    ],
)
def test_what_became_of_a_comparison_is_one_word(entries, word):
    names = {"first": "a", "second": "b", "difference": 0.2, "high": None, "p": 1.0, "adjusted": 1.0, "real": False}
    pair = Pair.from_json(names | entries)
    assert pair.word == word
    assert pair.high == math.inf
    assert Pair.from_json(pair.to_json()) == pair


# Of each type values that a reader may take for nothing, and others.
VALUES = {
    "str": ("", "words"),
    "int": (0, 3),
    "int | None": (0, 1, None),
    "float": (0.0, -1.5),
    "float | None": (0.0, -1.5, None),
    "bool": (False, True),
    "tuple[str, ...]": ((), ("", "words")),
    "tuple[float, ...]": ((), (0.0, 2.0)),
    "Mapping[str, Any]": ({}, {"rate": 0.0, "flips": 0, "mood": "", "on": False}),
    "Literal['lower', 'higher']": ("lower", "higher"),
}
PARTS = {
    "row": Row("a", "finished", 1, {"rate": 0.5}, 1.0, 0.5, 1.5, 2.0, True, 8.0, 0.1, 0.2, 3.0, ("word",), "first"),
    "metric": Metric("loss", "a loss"),
    "pair": Pair("a", "b", 0.5, 0.1, 0.9, 0.01, 0.02, True, False, "0.5", "[0.1, 0.9]"),
    "curve": Curve("a", (1.0,), (2.0,), (3.0,), (4.0,), (5.0,)),
}


@pytest.mark.parametrize("kind", PARTS)
def test_what_is_kept_of_a_race_is_read_back_whatever_it_is(kind):
    """Field by field: nought, no words and no are not the same as nothing."""
    first = PARTS[kind]
    for field in dataclasses.fields(first):
        words = field.type.__name__ if isinstance(field.type, type) else str(field.type)
        for value in VALUES[words.replace("typing.", "").replace("collections.abc.", "")]:
            one = dataclasses.replace(first, **{field.name: value})
            told = one.to_json() if kind == "pair" else vars(one)
            assert type(first).from_json(json.loads(json.dumps(told))) == one, (field.name, value)


@pytest.mark.parametrize(
    "changes",
    [{"advice": "", "code": "", "codes": {}}, {"moment": 0.0}, {"moment": None, "by_seconds": None}, {"notes": []},
     {"run": 0, "budget": 0, "machine": "", "unit": ""}, {"pareto": [], "envelope": [], "curves": []}],
    ids=str,
)  # fmt: skip
def test_a_race_of_which_little_is_to_be_told_is_read_back(changes):
    found = RaceResult.from_json(STORED | changes).to_json()
    assert {name: found[name] for name in changes} == changes
