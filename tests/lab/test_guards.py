"""Guards: for each a planted case that the test alone would call supported, and the same case mended."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import toys
from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale
from laureate.lab.judging.guards import held_back
from laureate.lab.judging.judge import Observed
from laureate.lab.judging.judge import judge as judge_paper
from laureate.lab.judging.results import ClaimId, ClaimResult, Measured
from laureate.lab.judging.verdict import decide, draft
from laureate.lab.running.run import run_claims
from laureate.pages.wording import rival

DRAW = np.random.default_rng(0)
METHOD = DRAW.normal(1.0, 0.1, 10)
BASELINE = DRAW.normal(3.0, 0.1, 10)
BETTER = Claim("better", "a beats b", "loss", "a", "b", role="stand-in")


def judge(claim, arms, *guards):
    return decide([draft(claim, arms, guards)], 1)[0]


def arms(**more):
    """Arms a and b, a far better, with further metrics of both: ``rate=(of a, of b)``."""
    return {
        arm: {"loss": loss} | {name: np.asarray(values[i]) for name, values in more.items()}
        for i, (arm, loss) in enumerate((("a", METHOD), ("b", BASELINE)))
    }


def test_without_guards_the_planted_effect_is_supported():
    v = judge(BETTER, arms())
    assert (v.verdict, v.guard) == ("supported", "")


class TestLimit:
    @pytest.mark.parametrize("count", [1, 10])
    @pytest.mark.parametrize("arm", ["a", "b"])
    def test_one_seed_at_a_clip_is_enough(self, arm, count):
        clipped = arms()
        clipped[arm]["loss"] = clipped[arm]["loss"].copy()
        clipped[arm]["loss"][:count] = {"a": 0.0, "b": 5.0}[arm]
        v = judge(BETTER, clipped, Guard("limit", "loss", low=0.0, high=5.0))
        assert v.verdict == "inconclusive"
        end = {"a": 0, "b": 5}[arm]
        assert v.reason == f"held back: loss of {arm} lies at its limit {end} in {count} of 10 seeds"

    def test_inside_its_limits_nothing_is_held_back(self):
        assert judge(BETTER, arms(), Guard("limit", "loss", low=0.0, high=5.0)).verdict == "supported"

    def test_single_precision_at_a_limit_is_at_it(self):
        clipped = arms()
        clipped["b"]["loss"] = np.full(10, np.float32(3.3))
        v = judge(BETTER, clipped, Guard("limit", "loss", high=3.3))
        assert "limit 3.3 in 10 of 10" in v.reason

    def test_a_limit_of_another_metric_or_arm_or_claim_is_not_ours(self):
        found = arms(other=(np.zeros(10), np.zeros(10)))
        found["b"]["loss"] = np.full(10, 5.0) + DRAW.normal(0, 0.1, 10)
        for guard in (
            Guard("limit", "other", low=0.0),
            Guard("limit", "loss", high=5.0, arms=("a",)),
            Guard("limit", "loss", high=5.0, claims=("another",)),
        ):
            assert judge(BETTER, found, guard).verdict == "supported"

    def test_a_vector_counts_seeds(self):
        x = np.tile(np.arange(3.0), (10, 1))
        curves = {"a": {"loss": x * DRAW.normal(2, 0.1, (10, 1)), "x": x}}
        curves["a"]["loss"][:4, 1:] = 0.0
        trend = Claim("up", "", "loss", "a", kind="trend", against="x", better="higher", role="stand-in")
        v = judge(trend, curves, Guard("limit", "loss", low=-1.0, high=2.5))
        assert "of 10 seeds" in v.guard

    @pytest.mark.parametrize("clipped", ["a", "b"])
    def test_what_lies_at_a_limit_refutes_nothing_either(self, clipped):
        """All losses of a user's problem were NaN, ended at the cap, and a claim was "refuted, p = 0.018"."""
        worse = Claim("c", "", "loss", "b", "a", role="stand-in")
        assert judge(worse, arms()).verdict == "refuted"
        limit = {"a": Guard("limit", "loss", low=METHOD.min()), "b": Guard("limit", "loss", high=BASELINE.max())}
        v = judge(worse, arms(), limit[clipped])
        assert v.verdict == "inconclusive"
        assert v.reason.startswith(f"held back: loss of {clipped} lies at its limit")

    def test_both_arms_at_a_cap_are_no_tie(self):
        capped = {arm: {"loss": np.full(10, 9.0)} for arm in "ab"}
        margin = Claim("c", "", "loss", "a", "b", margin=0.5, role="check")
        assert judge(margin, capped).verdict == "refuted", "without a guard"
        assert judge(margin, capped, Guard("limit", "loss", high=9.0)).verdict == "inconclusive"

    @pytest.mark.parametrize("kind", ["limit", "grid", "effective"])
    def test_a_guard_whose_number_is_not_finite(self, kind):
        number = np.full(10, 5.0)
        broken = np.where(np.arange(10) == 4, np.nan, number)
        guard = Guard(kind, "other", low=1.0, high=None if kind == "effective" else 9.0, claims=("better",))
        assert judge(BETTER, arms(other=(number, number)), guard).verdict == "supported"
        v = judge(BETTER, arms(other=(number, broken)), guard)
        assert v.reason == "held back: other of b is not finite in 1 of 10 seeds"


class TestGrid:
    GUARD = Guard("grid", "rate", grid="rates")
    AT = Scale(10, rates=(0.01, 0.1, 1.0))

    def test_a_winner_at_the_edge(self):
        for value, edge in ((0.01, "lowest"), (1.0, "highest")):
            found = arms(rate=(np.full(10, 0.1), np.where(np.arange(10) < 5, np.float32(value), 0.1)))
            v = judge(BETTER, found, self.GUARD.at(self.AT))
            assert v.reason == f"held back: rate of b is the {edge} of its grid, {value:.3g}, in 5 of 10 seeds"

    @pytest.mark.parametrize(("edge", "word"), [("b", "inconclusive"), ("a", "refuted")])
    def test_a_method_at_its_edge_is_not_refuted_but_a_rival_there_is_no_excuse(self, edge, word):
        rates = [np.full(10, 1.0 if arm == edge else 0.1) for arm in "ab"]
        worse = Claim("worse", "", "loss", "b", "a", role="stand-in")
        assert judge(worse, arms(rate=rates), self.GUARD.at(self.AT)).verdict == word

    def test_now_and_then_at_the_edge_is_noise(self):
        found = arms(rate=(np.full(10, 0.1), np.where(np.arange(10) < 4, 0.01, 0.1)))
        assert judge(BETTER, found, self.GUARD.at(self.AT)).verdict == "supported"

    def test_a_rate_for_each_case(self):
        rates = np.tile([0.1, 0.1, 1.0], (10, 1))
        v = judge(BETTER, arms(rate=(rates, rates)), self.GUARD.at(self.AT))
        assert "rate of a is the highest" in v.reason
        assert "rate of b is the highest" in v.reason

    def test_a_trial_that_does_not_report_its_choice(self):
        v = judge(BETTER, arms(), self.GUARD.at(self.AT))
        assert v.reason == "held back: rate, which a guard asks for, is not reported by a or b"


def test_too_few_effective_samples():
    guard = Guard("effective", "effective", low=8)
    weights = np.full(10, 20.0)
    assert judge(BETTER, arms(effective=(weights, weights)), guard).verdict == "supported"
    short = weights.copy()
    short[3] = 1.0
    v = judge(BETTER, arms(effective=(weights, short)), guard)
    assert v.reason == "held back: effective of b is 1 in its worst seed, below the 8 declared"
    worse = Claim("c", "", "loss", "b", "a", role="stand-in")
    assert judge(worse, arms(effective=(weights, short)), guard).verdict == "inconclusive", "no estimate refutes"


def test_a_constant_metric_is_no_measurement_but_may_be_a_check():
    same = {"a": {"loss": np.full(10, -9.0)}, "b": {"loss": np.full(10, 6.0)}}
    v = judge(BETTER, same)
    assert v.verdict == "inconclusive"
    assert v.reason == ("held back: every seed gives the same number, 15: a constant, or a limit that was not declared")
    check = Claim("c", "", "loss", "a", "b", role="check")
    assert judge(check, same).verdict == "supported"


def test_a_constant_refutes_nothing_either():
    tie = {"a": {"loss": np.full(10, 3.0)}, "b": {"loss": np.full(10, 3.0)}}
    v = judge(Claim("c", "", "loss", "a", "b", margin=1.0, role="stand-in"), tie)
    assert v.verdict == "inconclusive"
    assert "every seed gives the same number, 0" in v.reason


def test_an_interval_without_width():
    """Eight of ten seeds at an undeclared ceiling: the median's interval is [1, 1]."""
    share = np.where(np.arange(10) < 8, 1.0, 0.7)
    claim = Claim("c", "", "share", "a", kind="bound", at_least=0.5, role="stand-in")
    v = judge(claim, {"a": {"share": share}})
    assert (v.low, v.high) == (0.7, 1.0)
    assert v.verdict == "supported"
    share[8] = 1.0
    v = judge(claim, {"a": {"share": share}})
    assert (v.low, v.high) == (1.0, 1.0)
    assert v.reason == "held back: 9 of 10 seeds give the same number, 1: a limit that was not declared"


class TestTrivial:
    CLAIM = Claim("better", "a beats b", "loss", "a", "b", trivial="t", role="stand-in")

    def test_worse_than_doing_nothing(self):
        v = judge(self.CLAIM, arms() | {"t": {"loss": METHOD + DRAW.normal(0, 0.1, 10)}})
        assert v.verdict == "inconclusive"
        assert v.reason.startswith("held back: a does not beat the trivial t (gain ")

    def test_better_than_doing_nothing(self):
        assert judge(self.CLAIM, arms() | {"t": {"loss": BASELINE}}).verdict == "supported"

    @pytest.mark.parametrize(
        ("bound", "value", "word"),
        [
            ({"at_most": 2.0}, 0.5, "inconclusive"),
            ({"at_most": 2.0}, 9.0, "supported"),
            ({"at_least": 0.5}, 9.0, "inconclusive"),
        ],
    )
    def test_of_a_bound(self, bound, value, word):
        claim = Claim("b", "", "loss", "a", kind="bound", **bound, trivial="t", role="stand-in")
        assert judge(claim, arms() | {"t": {"loss": np.full(10, value)}}).verdict == word

    def test_that_breaks(self):
        v = judge(self.CLAIM, arms() | {"t": {"loss": np.full(10, np.nan)}})
        assert "cannot be compared with the trivial t" in v.reason


def test_declarations_that_make_no_sense():
    for wrong, message in (
        (lambda: Guard("limit", "m"), "must set low or high"),
        (lambda: Guard("effective", "m", high=1.0), "must set low alone"),
        (lambda: Guard("limit", "m", grid="rates"), "must be of kind 'grid'"),
        (lambda: Claim("c", "", "m", "a", kind="trend", against="x", trivial="t", role="check"), "trivial must be ''"),
        (lambda: toys.experiment(guards=(Guard("grid", "m", grid="rates"),)), "Guard.grid must be a setting of every"),
        (lambda: toys.experiment(guards=(Guard("limit", "m", low=0, arms=("x",)),)), "names the arms"),
        (lambda: toys.experiment(guards=(Guard("limit", "m", low=0, claims=("x",)),)), "names the claims"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_a_run_asks_the_guards_of_its_experiment(store):
    def run(experiment: Experiment):
        return run_claims(store, toys.selections(toys.paper(experiment)), scale="smoke", workers=1).claims[0]

    assert run(toys.experiment()).verdict == "supported"
    held = run(toys.experiment(guards=(Guard("limit", "loss", low=-1e9, high=-1e8),)))
    assert held.verdict == "inconclusive"
    assert held.reason.startswith("held back: loss of ours lies at its limit -1e+08")


def test_a_trivial_arm_that_does_not_report_the_metric_is_told_in_words():
    claim, losses = replace(BETTER, trivial="t"), arms()
    for reported, told in (({}, "none"), ({"t": {"error": np.ones(10), "angle": np.ones(10)}}, "angle, error")):
        with pytest.raises(ValueError, match=f"needs the metric 'loss'; arm 't' has: {told}"):
            held_back(claim, losses | reported, losses["b"]["loss"] - losses["a"]["loss"])


class TestWeakRival:
    """To beat a baseline that is worse than doing nothing is little: the claim stands, and the line says so."""

    @pytest.mark.parametrize("better", ["lower", "higher"])
    @pytest.mark.parametrize(("trivial", "weak"), [(2.5, True), (3.5, False)])
    def test_it_is_told(self, better, trivial, weak):
        sign = 1 if better == "lower" else -1
        claim = replace(BETTER, better=better, trivial="t")
        found = {arm: {"loss": sign * loss["loss"]} for arm, loss in arms().items()}
        found["t"] = {"loss": sign * (trivial + DRAW.normal(0, 0.1, 10))}
        experiment = replace(toys.paper().experiments[0], claims=(claim,), arms=(Arm("a"), Arm("b"), Arm("t")))
        paper = replace(toys.paper(), experiments=(experiment,))
        (result,) = judge_paper(paper, [Observed(experiment, (claim,), found, {})])
        assert isinstance(result, ClaimResult)
        assert (result.verdict, result.weak_rival) == ("supported", weak)
        assert rival(result) == ("b is itself no better than t" if weak else "")

    def test_no_trivial_arm_no_word(self):
        (experiment,) = toys.paper().experiments
        (result,) = judge_paper(toys.paper(), [Observed(experiment, (BETTER,), arms(), {})])
        assert isinstance(result, ClaimResult)
        assert not result.weak_rival


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_a_rival_that_only_ties_with_doing_nothing_is_weak(better):
    """No better: worse, or just as good."""
    sign = 1.0 if better == "lower" else -1.0
    for trivial, weak in ((2.9, True), (3.0, True), (3.1, False)):
        measured = Measured((1.0,), method_mean=sign, baseline_mean=3.0 * sign, trivial_mean=trivial * sign)
        facts = {"experiment": "e", "statement": "s", "kind": "better", "baseline": "b", "trivial": "t"}
        result = ClaimResult(id=ClaimId("toy", "x"), effect=2.0, measured=measured, **facts)
        assert result.weak_rival == weak, trivial


@pytest.mark.parametrize("better", ["lower", "higher"])
@pytest.mark.parametrize("means", list(itertools.permutations((1.0, 2.0, 3.0))), ids=str)
def test_a_rival_is_weak_by_the_claims_own_direction_whoever_won(better, means):
    """Also where the method lost, so that its effect is negative."""
    method, baseline, trivial = means
    sign = 1.0 if better == "lower" else -1.0
    measured = Measured((1.0,), method_mean=method, baseline_mean=baseline, trivial_mean=trivial)
    facts = {"experiment": "e", "statement": "s", "kind": "better", "baseline": "b", "trivial": "t"}
    result = ClaimResult(id=ClaimId("toy", "x"), effect=sign * (baseline - method), measured=measured, **facts)
    assert result.weak_rival == (sign * baseline >= sign * trivial)
