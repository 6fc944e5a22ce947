"""Important neurons: setting units to change a word's tense, number or gender."""

from typing import Any

from laureate.lab.claim import Arm, Claim, Curve, Experiment, Guard, Scale
from laureate.papers.important_neurons.experiments_models import (
    DESK,
    FULL,
    GRAMMARS,
    KNOWN,
    LEARNED,
    PROBLEM,
    SETTING,
    TINY,
    TRIALS,
)

__all__ = ["CONTROL"]

STRENGTHS: dict[str, Any] = {"strengths": (-1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0), "strength": 1.0}
SHARE = "share of words that took the other form"


def _arm(name: str, label: str, how: str, count: int) -> Arm:
    return Arm(name, label, how=how, count=count)


def _claim(name: str, what: str, method: str, baseline: str, **more: Any) -> Claim:
    usual: dict[str, Any] = {
        "metric": "success_tense",
        "better": "higher",
        "trivial": "nothing",
        "unit": SHARE,
        "role": "stand-in",
        "source": "the paper's control of tense, number and gender, En–Es",
    }
    return Claim(name, what, method=method, baseline=baseline, **usual | more)


CONTROL = Experiment(
    "control",
    title="Can a word's form be changed by setting units?",
    trial=f"{TRIALS}:controlled",
    problem=PROBLEM,
    arms=(
        _arm("one", "the best unit", "top", 1),
        _arm("five", "the five best units", "top", 5),
        _arm("random-one", "a random unit", "random", 1),
        _arm("random-five", "five random units", "random", 5),
        _arm("direction", "the direction of the means", "direction", 0),
        _arm("all", "all units", "top", -1),
        _arm("nothing", "nothing set", "top", 0),
    ),
    scales={
        "tiny": Scale(2, block=2, problem=GRAMMARS["tiny"], strengths=(0.0, 1.0, 2.0), strength=1.0, **TINY),
        "desk": Scale(10, block=5, cost=30.0, problem=GRAMMARS["desk"], **STRENGTHS, **DESK),
        "full": Scale(10, block=1, cost=4e6, problem=GRAMMARS["full"], **STRENGTHS, **FULL),
    },
    claims=(
        _claim(
            "control",
            "setting the one unit that tells tense best changes a verb's tense more often, by 20 points, than setting "
            "a random unit.",
            "one",
            "random-one",
            margin=0.2,
            reported="67 % of verbs from past to present (−2 BLEU)",
        ),
        _claim(
            "control-five",
            "setting the five units that tell tense best changes a verb's tense more often, by 20 points, than setting "
            "five random units.",
            "five",
            "random-five",
            margin=0.2,
        ),
        _claim(
            "control-number",
            "setting the five units that tell number best changes a word's number more often, by 10 points, than "
            "setting five random units.",
            "five",
            "random-five",
            metric="success_number",
            margin=0.1,
            reported="37 % with five units",
        ),
        _claim(
            "control-gender",
            "setting the five units that tell gender best changes an adjective's gender more often, by 10 points, than "
            "setting five random units.",
            "five",
            "random-five",
            metric="success_gender",
            margin=0.1,
            reported="21 % with five units",
        ),
        _claim(
            "control-best",
            "with the strength that suits each arm best on other sentences, setting the one unit that tells tense best "
            "gives the right verb in the other tense more often, by 20 points, than setting a random unit.",
            "one",
            "random-one",
            metric="best",
            margin=0.2,
            unit="share of words that are the right word in the other form",
            reported="67 % of verbs from past to present (−2 BLEU), right word or not",
        ),
        _claim(
            "control-direction",
            "moving along the difference of the class means changes a verb's tense more often than setting the best "
            "unit.",
            "direction",
            "one",
            role="extension",
            source="our own question: a direction is the simplest rival of a unit",
        ),
    ),
    curves=(
        Curve("success", "strength", "Verbs whose tense changed", "strength (0: the mean of the tense wanted)", SHARE),
        Curve("exact", "strength", "Verbs that are then the right word", "strength", "share of verbs"),
    ),
    deviations=(
        "Words are changed at their own place, one decoder step each, so there is no alignment and no BLEU: `exact` is "
        "the share of words that are the right translation in the form wanted. Both ways (past to present and back) "
        "are averaged. The strength is 1 for all arms, twice the way between the class means, the most that stays near "
        "the range of a recurrent unit; the paper tries many and shows the best, which `control-best` does for every "
        "arm: the strength with most right words in the first half of the sentences. That the best unit's choice is "
        "at an edge of the grid (−1: the word's own mean) is guarded; a random unit does next to nothing at any. Units "
        "are chosen by the accuracy of a Gaussian on the first half of the test sentences, words are changed in the "
        "second. Nothing of it had been run when it was declared. " + SETTING,
    ),
    guards=(LEARNED, KNOWN, Guard("grid", "chosen", grid="strengths", arms=("one",), claims=("control-best",))),
    over_seeds="loop",
)
