"""What a cell of a race is kept under: everything that can move its numbers moves it, and nothing else does.

Every field of what is declared stands here, so that a new one is either hashed or said to decide nothing.
"""

import dataclasses
from dataclasses import fields, replace

import numpy as np
import planted
import pytest

from laureate.racing.discipline import Discipline, Entrant, Metric
from laureate.racing.halving import best
from laureate.racing.running import Course, _Runner

CONFIG = {"level": 1.0, "mood": "fine", "slow": 1.0, "own": 1, "rate": 0.1}
CODE = "planted('a', level, length, domain, rate)"
HERE = str(planted.HERE)
ENTRANT = Entrant("a", CODE, {name: (value,) for name, value in CONFIG.items()})
DISCIPLINE = replace(planted.discipline(ENTRANT), settings={"draws": 8})
COURSE = Course(
    discipline=DISCIPLINE,
    entrants=(ENTRANT,),
    reference=f"{HERE}:course",
    accepts=("length",),
    facts={"length": 3},
    fragments={"domain": "Binary()"},
    metric=DISCIPLINE.metrics[0],
    seeds=10,
    seconds=60.0,
)
SCALE = {"cost": 1000, "points": 3, "phase": "score", "seconds": 60.0}
OTHER_METRIC = Metric("loss", "other words", limits=(0.0,), log=True)  # what is compared, not what is computed

MOVES = {
    Entrant: {"name": "b", "code": CODE.replace("domain", "None")},
    Discipline: {
        "name": "another",
        "area": "elsewhere",
        "trial": f"{HERE}:facts",
        "settings": {"draws": 9},
        "x64": True,
    },
    Course: {
        "reference": f"{HERE}:Course",
        "facts": {"length": 4},
        "fragments": {"domain": "Ordinal(0, 1)"},
        "metric": DISCIPLINE.metrics[1],
        "nonce": "another object",
    },
}
MOVES_NOTHING = {
    Entrant: {"grid": {"rate": (0.1, 1.0)}, "needs": ("wings",), "natural": {"rate": "low"}},
    Discipline: {
        "title": "Another question",
        "kind": "another kind",
        "problem": "ours",
        "needs": {"length": "in other words"},
        "metrics": (OTHER_METRIC,),
        "unit": "feet",
        "entrants": (),
        "facts": f"{HERE}:entrant",
        "script": "print(1)",
        "offers": {"more": "of it"},
        "smallest": 2,
        "largest": 3,
        "one_shot": True,
        "absent": {"C": "why"},
        "notes": ("a note",),
    },
    Course: {
        "discipline": DISCIPLINE,
        "entrants": (),
        "accepts": (),
        "seeds": 20,
        "seconds": 1.0,
        "budget": 7,
        "points": 2,
        "factory": True,
        "dictionary": True,
    },
}


def cell(changes=(), *, config=CONFIG, start=0, count=5, **scale):
    """The cell of a course, of whose declarations some fields are changed."""
    of = {kind: {name: value for k, name, value in changes if k is kind} for kind in (Entrant, Discipline, Course)}
    course = replace(COURSE, **{"discipline": replace(DISCIPLINE, **of[Discipline])} | of[Course])
    runner = _Runner(None, course, 1, "", False, None, 1.0)  # type: ignore[arg-type]  # the store is not asked
    return runner.cell(replace(ENTRANT, **of[Entrant]), config, start, count, **SCALE | scale)


def each(table):
    return [(kind, name, value) for kind, values in table.items() for name, value in values.items()]


def test_every_field_moves_a_cell_or_is_said_not_to():
    for kind in (Entrant, Discipline, Course):
        assert {one.name for one in fields(kind)} == set(MOVES[kind]) | set(MOVES_NOTHING[kind]), kind


def test_everything_that_decides_a_number_moves_the_cell_and_each_thing_otherwise():
    found = {"nothing": cell().fingerprint}
    found |= {f"{kind.__name__}.{name}": cell([(kind, name, value)]).fingerprint for kind, name, value in each(MOVES)}
    for name, value in {"cost": 999, "points": 2, "phase": "tune", "seconds": 61.0, "pilot": 0.05}.items():
        found[f"scale {name}"] = cell(**{name: value}).fingerprint
    for name, value in {"level": 2.0, "mood": "nan", "slow": 2.0, "own": 0, "rate": 0.2}.items():
        found[f"config {name}"] = cell(config=CONFIG | {name: value}).fingerprint
    found["another type"] = cell(config=CONFIG | {"rate": 1}).fingerprint
    found["not swept"] = cell(config={}).fingerprint
    found["as a fact"] = cell([(Course, "facts", {"length": 3, "rate": 0.1})], config={
        name: value for name, value in CONFIG.items() if name != "rate"
    }).fingerprint  # fmt: skip
    found["count"] = cell(count=4).fingerprint
    assert len(set(found.values())) == len(found), [
        name for name in found if list(found.values()).count(found[name]) > 1
    ]


def test_words_and_what_others_do_move_nothing():
    first = cell().fingerprint
    for kind, name, value in each(MOVES_NOTHING):
        assert cell([(kind, name, value)]).fingerprint == first, name
    assert cell([(Course, "metric", OTHER_METRIC)]).fingerprint == first
    assert cell(start=5).fingerprint == first  # which seeds, the key says
    assert cell(start=5).key != cell().key


def test_a_cell_hands_the_trial_just_what_is_asked():
    """Where a fact and a setting have one name, the setting is meant."""
    made = cell([(Course, "facts", {"length": 3, "rate": 9.0})], start=5)
    assert made.arm_settings == CONFIG | {
        "length": 3,
        "code": CODE.replace("domain", "Binary()"),
        "area": "nowhere",
        "swept": "level,mood,slow,own,rate",
    }
    assert made.scale_settings == SCALE | {"draws": 8, "metric": "loss"}
    assert (made.start, made.count, made.x64, made.over_seeds) == (5, 5, False, "loop")
    assert (made.trial, made.problem_reference, made.accepts) == (DISCIPLINE.trial, COURSE.reference, ("length",))
    assert (made.paper, made.experiment, made.scale) == ("race", "planted", "race")
    assert cell(draws=4).scale_settings["draws"] == 4


def test_cells_of_one_fingerprint_are_the_same_work():
    """Of everything above: what two of them may differ in is which seeds, and words."""
    made = [cell([change]) for table in (MOVES, MOVES_NOTHING) for change in each(table)]
    made += [cell(), cell(start=5), cell(count=4), cell(cost=1), cell(pilot=0.05)]
    work: dict[str, dict] = {}
    for one in made:
        told = {name: value for name, value in dataclasses.asdict(one).items() if name not in ("start", "accepts")}
        assert work.setdefault(one.fingerprint, told) == told


@pytest.mark.parametrize(
    ("metric", "order"),
    [
        (Metric("loss", "a loss"), ["steady", "lucky", "lost"]),
        (Metric("loss", "a gain", "higher"), ["lucky", "steady", "lost"]),
        (Metric("loss", "samples", "higher", log=True), ["steady", "lucky", "lost"]),
        (Metric("loss", "an error", log=True), ["lucky", "steady", "lost"]),
    ],
)
def test_settings_are_compared_as_entrants_are(metric, order):
    """By the mean over tuning seeds, or by that of logarithms; at the last point, whatever came before."""
    quality = {"steady": [9.0, 9.0], "lucky": [1.0, 60.0], "lost": [np.nan, 1.0]}
    course = replace(COURSE, metric=metric)
    runner = _Runner(None, course, 1, "", False, None, 1.0)  # type: ignore[arg-type]  # the store is not asked

    def numbers(name, cell):
        if name not in quality:
            return None
        cost = np.array([[1.0, 2.0], [1.0, np.nan]])  # the second seed came to its first point alone
        first, second = quality[name]
        return {"cost": cost, "seconds": cost, "loss": np.array([[5.0, first], [second, 7.0]])}

    runner.numbers = numbers
    found = {name: runner._scores(name, cell()) for name in (*quality, "crashed")}
    for name, values in quality.items():
        expected = np.log(values) if metric.log else np.array(values)
        np.testing.assert_allclose(found[name], expected * (1 if metric.better == "higher" else -1))
    assert found["crashed"] == []
    assert best(found, 4) == [*order, "crashed"]
