import copy
import dataclasses
import pickle
from dataclasses import replace

import pytest

import toys
from laureate.lab.claim import Arm, Claim, Scale, Settings


def test_settings_are_attributes_and_frozen():
    settings = Settings(sigma=0.1, pairs=3)
    assert settings.sigma == settings["sigma"] == 0.1
    with pytest.raises(AttributeError, match="no setting 'sgima'; there are: sigma, pairs"):
        _ = settings.sgima
    with pytest.raises(AttributeError, match="frozen"):
        settings.sigma = 1.0
    assert hash(settings) == hash(Settings(pairs=3, sigma=0.1))


def test_settings_are_copied_kept_and_taken_apart_like_any_other_value():
    arm = Arm("ours", sigma=0.1, words=("a", "b"))
    for again in (copy.copy(arm), copy.deepcopy(arm), pickle.loads(pickle.dumps(arm))):
        assert again == arm
        assert again.settings.sigma == 0.1
    assert dataclasses.asdict(arm)["settings"] == arm.settings
    with pytest.raises(AttributeError, match=r"no setting 'sigma'; there are: $"):
        _ = Settings.__new__(Settings).sigma


@pytest.mark.parametrize(
    ("declared", "direction"),
    [
        ({"baseline": "b"}, "lower"),
        ({"baseline": "b", "better": "higher"}, "higher"),
        ({"baseline": "b", "kind": "equal", "margin": 1.0, "better": "higher"}, "higher"),
        ({"kind": "bound", "at_most": 1.0, "better": "higher"}, "lower"),
        ({"kind": "bound", "at_least": 1.0}, "higher"),
        ({"kind": "bound", "at_least": 0.0, "at_most": 1.0}, None),
        ({"kind": "trend", "against": "n"}, None),
        ({"kind": "question"}, None),
    ],
)
def test_which_side_of_a_metric_is_better(declared, direction):
    claim = Claim("c", "s", "m", method="a", role="extension", **declared)
    assert claim.direction == direction
    assert claim.is_question == (declared.get("kind") == "question")


def test_a_claim_needs_the_arms_that_it_names_and_a_question_all():
    made = toys.experiment()
    claim = Claim("c", "s", "m", method="third", baseline="ours", role="extension")
    assert made.arms_of(claim) == ("ours", "third")
    assert made.arms_of(replace(claim, kind="question")) == tuple(arm.name for arm in made.arms)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Claim("c", "s", "m", method="a", role="extension"), "baseline must be the name of an arm"),
        (lambda: Claim("c", "s", "m", method="a", baseline="b", kind="equal", role="extension"), "margin must be > 0"),
        (lambda: Claim("c", "s", "m", method="a", kind="bound", role="extension"), "must set at_least or at_most"),
        (lambda: Claim("c", "s", "m", method="a", kind="trend", role="extension"), "against must name the metric"),
        (
            lambda: Claim("c", "s", "m", method="a", baseline="b", margin=-1.0, relative=True, role="extension"),
            "margin must be >= 0 unless kind is 'better', not relative; got -1.0",
        ),
        (
            lambda: Claim("c", "s", "m", method="a", kind="trend", against="n", margin=-1.0, role="extension"),
            "margin must be >= 0 unless kind is 'better', not relative; got -1.0",
        ),
        (lambda: Scale(seeds=0), "seeds and Scale.block must be >= 1"),
        (lambda: toys.experiment(arms=(Arm("ours"), Arm("ours"))), "distinct names"),
        (lambda: toys.experiment(arms=(Arm("ours"), Arm("theirs"))), "names the arm 'third'"),
        (lambda: toys.experiment(scales={"huge": Scale(1)}), "scales must be among"),
        (
            lambda: replace(toys.experiment(), data=("digits",), over="data sets"),
            "over must be 'seeds': a set that has a name",
        ),
        (lambda: toys.paper(toys.experiment(), toys.experiment("again")), "distinct claim names"),
    ],
)
def test_wrong_declarations_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()
