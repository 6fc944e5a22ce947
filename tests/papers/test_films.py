"""What the pages show moving is what was declared and recorded, small, and drawn whole."""

import importlib
import inspect
import itertools
import json

import pytest

from laureate.lab.claim import Arm, Experiment, Film, Paper, Scale
from laureate.lab.reference import film_panels, path_of
from laureate.pages.content import films_of
from laureate.papers import all_papers

SHOWN = {paper.id: paper for paper in all_papers() if paper.films}


@pytest.mark.parametrize("paper_id", sorted(SHOWN))
def test_every_film_was_recorded(paper_id):
    paper = SHOWN[paper_id]
    panels = film_panels(paper)
    assert list(panels) == [film.name for film in paper.films], "record them: python scripts/films.py"
    lines = path_of(paper_id).with_name("films.jsonl").read_text("utf-8").splitlines()
    assert max(map(len, lines)) < 30_000
    assert [(line["film"], line["arm"]) for line in map(json.loads, lines)] == [
        (film.name, arm) for film in paper.films for arm in film.arms
    ]
    for film in paper.films:
        assert len({panel["scene"]["frames"] for panel in panels[film.name]}) == 1, "all run as long"
        for panel in panels[film.name]:
            frames = panel["scene"]["frames"]
            for stroke in panel["scene"]["strokes"]:
                assert len(stroke["points"]) in (1, frames)
                assert len(stroke.get("shown", "")) in (0, frames)


@pytest.mark.parametrize("paper_id", sorted(SHOWN))
def test_recorders_take_the_arguments_of_a_trial(paper_id):
    for film in SHOWN[paper_id].films:
        module, _, name = film.recorder.partition(":")
        found = inspect.signature(getattr(importlib.import_module(module), name))
        assert list(found.parameters) == ["key", "arm", "problem", "scale"]


@pytest.mark.parametrize("paper_id", sorted(SHOWN.keys() & {"rnd"}))
def test_an_agent_on_the_chain_took_steps_of_the_chain(paper_id):
    """From one state to the next at most, from the first on; the reward is where its words say so."""
    for panel in film_panels(SHOWN[paper_id])["chain"]:
        unit = panel["scene"]["width"] / 40
        places = [round(point[0] / unit - 0.5) for point in panel["scene"]["strokes"][-1]["points"]]
        assert places[0] == 0
        assert len(places) == 81
        assert all(abs(after - before) <= 1 for before, after in itertools.pairwise(places))
        reached = next((step for step, place in enumerate(places) if place == 39), None)
        words = f"at the reward after {reached} steps" if reached else f"no further than state {max(places) + 1}"
        assert panel["said"].endswith(words)


def test_a_film_of_which_an_arm_is_missing_is_not_shown():
    experiment = Experiment("one", "?", "m:f", (Arm("a"), Arm("b")), {"desk": Scale(2)}, ())
    with pytest.raises(ValueError, match=r"Film 'x' names the arms \['c'\], which 'one' has not"):
        Paper("rnd", "control", "", "", "", "", (experiment,), films=(Film("x", "", "m:f", "one", ("a", "c"), ""),))
    film = Film("nowhere", "", "m:f", "one", ("a", "b"), "")
    assert films_of(Paper("rnd", "control", "", "", "", "", (experiment,), films=(film,))) == []
