"""What the pages need of every paper, whatever it declares. No toy here: its fixtures would take their place."""

import re

from laureate import papers
from laureate.lab.judging.results import ClaimId, ClaimResult
from laureate.pages.content import _declared
from laureate.pages.figures import arm_colours


def test_an_arm_has_one_colour_in_every_picture_of_a_paper():
    for paper in papers.all_papers():
        mine = arm_colours(paper.experiments)
        for experiment in paper.experiments:
            used = [mine[arm.name] for arm in experiment.arms]
            assert len(set(used)) == len(used), f"two alike in {paper.id}/{experiment.name}"


def test_every_effect_has_a_unit_and_every_axis_words():
    for paper in papers.all_papers():
        assert [claim.name for claim in paper.claims if not claim.unit] == [], paper.id
        for curve in (curve for experiment in paper.experiments for curve in experiment.curves):
            assert not re.search("[a-z]{2,}_[a-z]", f"{curve.x_label} {curve.y_label}"), (paper.id, curve.title)
            assert curve.x_label, (paper.id, curve.title)
            assert curve.y_label, (paper.id, curve.title)


def test_results_say_what_todays_declarations_say_and_those_of_papers_that_are_gone_stay():
    claim = papers.paper("pes").claims[0]
    ids = [ClaimId("gone", "x"), ClaimId("pes", claim.name), ClaimId("pes", "no-more")]
    kept = [ClaimResult(id=id, experiment="", statement="old words", kind="bound", verdict="supported") for id in ids]
    gone, known, no_more = _declared(kept)
    assert (gone, no_more) == (kept[0], kept[2])
    assert (known.id, known.unit, known.verdict) == (ids[1], claim.unit, "supported")
