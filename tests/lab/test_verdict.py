"""Verdicts: the rules one by one. That they are honest is shown in test_honesty.py."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from laureate.lab.claim import Arm, Claim, Experiment, Paper, Scale
from laureate.lab.judging.evidence import answers
from laureate.lab.judging.judge import Observed, judge
from laureate.lab.judging.results import ClaimResult, Result, not_run
from laureate.lab.judging.statistics import sign_flip
from laureate.lab.judging.verdict import decide, draft, simulate

BETTER = Claim("better", "a beats b", "loss", "a", "b", role="extension")
EXPERIMENT = Experiment("e", "", "m:f", (Arm("a"), Arm("b")), {"smoke": Scale(seeds=5)}, (BETTER,))
PAPER = Paper("p", "area", "", "", "", "", (EXPERIMENT,))


class TestRules:
    d = np.array([1.2, 0.8, 1.1, 0.9, 1.0, 1.3, 0.7, 1.05, 0.95, 1.15])  # mean 1.015, all positive

    def judge(self, claim, a, b=None, family=1):
        arms = {"a": {"loss": np.asarray(a)}} | ({} if b is None else {"b": {"loss": np.asarray(b)}})
        return decide([draft(claim, arms)], family)[0]

    def test_a_verdict_says_everything(self):
        v = self.judge(BETTER, 0 * self.d, self.d, family=7)
        assert (v.verdict, v.seeds, v.family) == ("supported", 10, 7)
        assert v.effect == pytest.approx(self.d.mean())
        assert 0.7 < v.low < v.effect < v.high < 1.3
        assert v.p_raw == 2**-10
        assert v.p == 7 * 2**-10
        assert v.effect_size == pytest.approx(self.d.mean() / self.d.std(ddof=1))
        assert v.improvement == 1.0
        assert v.test.startswith("loss of b - loss of a > 0: one-sided sign-flip test by seed (all 2^10 patterns) and ")
        assert v.test.endswith("95 % BCa bootstrap interval, expanded for few seeds")
        assert v.reason == "the interval lies on the claim's side, p = 0.0068 after Holm over 7 claims"

    @pytest.mark.parametrize(("better", "word"), [("lower", "supported"), ("higher", "refuted")])
    def test_which_way_is_better(self, better, word):
        claim = Claim("c", "", "loss", "a", "b", better=better, role="extension")
        v = self.judge(claim, 0 * self.d, self.d)
        assert v.verdict == word
        assert np.sign(v.effect) == (1 if word == "supported" else -1)
        swapped = self.judge(claim, self.d, 0 * self.d)
        assert (swapped.effect, swapped.low, swapped.high) == pytest.approx((-v.effect, -v.high, -v.low))

    def test_p_of_a_refuted_claim_is_of_the_claim_and_the_reason_of_the_opposite(self):
        v = self.judge(BETTER, self.d, 0 * self.d)
        assert v.verdict == "refuted"
        assert v.p == v.p_raw == 1.0
        assert (
            v.reason == "the interval lies on the other side, p = 0.00098 of the opposite with one claim in the paper"
        )

    def test_the_margin_moves_the_test_and_not_the_effect(self):
        for margin, word in ((0.5, "supported"), (1.0, "inconclusive"), (1.5, "refuted")):
            v = self.judge(Claim("c", "", "loss", "a", "b", margin=margin, role="extension"), 0 * self.d, self.d)
            assert v.verdict == word
            assert v.effect == pytest.approx(self.d.mean())
        assert self.judge(
            Claim("c", "", "loss", "a", "b", margin=1.0, role="extension"), 0 * self.d, self.d
        ).reason == ("the 95 % interval includes the margin 1")

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_relative_margin_is_a_share_of_the_size_of_the_baseline(self, sign):
        b = sign * (10 + self.d)
        for share, word in ((0.05, "supported"), (0.2, "refuted")):
            claim = Claim("c", "", "loss", "a", "b", margin=share, relative=True, role="extension")
            assert self.judge(claim, b - self.d, b).verdict == word
        v = self.judge(
            Claim("c", "", "loss", "a", "b", kind="equal", margin=0.2, relative=True, role="extension"), b - self.d, b
        )
        assert v.verdict == "supported"
        assert v.test.startswith("|loss of b - loss of a| < 0.2 |loss of b|: one-sided sign-flip tests")

    def test_equal(self):
        for margin, word in ((2.0, "supported"), (1.0, "inconclusive"), (0.5, "refuted")):
            claim = Claim("c", "", "loss", "a", "b", kind="equal", margin=margin, role="extension")
            for a, b in ((0 * self.d, self.d), (self.d, 0 * self.d)):
                assert self.judge(claim, a, b).verdict == word
        v = self.judge(Claim("c", "", "loss", "a", "b", kind="equal", margin=1.0, role="extension"), 0 * self.d, self.d)
        assert v.reason == "the 90 % interval includes the margin 1"

    def test_both_sides_must_show_that_arms_are_equal(self):
        """Differences of 1, and a margin that lies just above them and far below on the other side."""
        claim = Claim("c", "", "loss", "a", "b", kind="equal", margin=1.05, role="extension")
        for a, b in ((0 * self.d, self.d), (self.d, 0 * self.d)):
            sides = [float(sign_flip(side)) for side in (1.05 + self.d, 1.05 - self.d)]
            assert draft(claim, {"a": {"loss": a}, "b": {"loss": b}}).supports == max(sides) > 2 * min(sides)

    def test_refuting_on_either_of_two_sides_costs_a_factor_of_two(self):
        five = np.array([1.0, 1.1, 0.9, 1.2, 0.8])
        claim = Claim("c", "", "loss", "a", "b", kind="equal", margin=0.1, role="extension")
        for sign in (1, -1):
            assert draft(claim, {"a": {"loss": 0 * five}, "b": {"loss": sign * five}}).refutes == 2 * 2**-5
            v = self.judge(claim, 0 * five, sign * five)
            assert (v.verdict, v.reason) == ("inconclusive", "p = 0.062 with one claim in the paper")

    def test_a_bound_shows_the_metric_itself(self):
        v = self.judge(Claim("c", "", "loss", "a", kind="bound", at_least=0.5, at_most=3.0, role="extension"), self.d)
        assert v.verdict == "supported"
        assert (v.effect, v.centre) == (pytest.approx(np.median(self.d)), "median")
        assert v.improvement == 1.0
        assert v.effect_size == pytest.approx((self.d.mean() - 0.5) / self.d.std(ddof=1))  # to the nearer bound
        assert v.test.startswith("0.5 < loss of a < 3: exact one-sided sign tests of the median by seed")
        assert self.judge(
            Claim("c", "", "loss", "a", kind="bound", at_least=0.5, at_most=1.0, role="extension"), self.d
        ).reason == ("the 95 % interval includes the bound 1")

    def test_a_bound_at_zero_beside_another(self):
        for d, word in ((self.d, "supported"), (self.d + 2, "refuted"), (-self.d, "refuted")):
            assert (
                self.judge(
                    Claim("c", "", "loss", "a", kind="bound", at_least=0.0, at_most=2.0, role="extension"), d
                ).verdict
                == word
            )

    def test_a_trend_shows_the_slope(self):
        x = np.tile([1.0, 2.0, 4.0], (10, 1))
        arms = {"a": {"loss": -self.d[:, None] * x, "x": x}}
        v = decide(
            [draft(Claim("c", "", "loss", "a", kind="trend", against="x", better="lower", role="extension"), arms)], 1
        )[0]
        assert (v.verdict, v.effect) == ("supported", pytest.approx(self.d.mean()))  # positive: the paper is right
        assert v.test.startswith("-(slope of loss of a against x) > 0: ")
        v = decide(
            [draft(Claim("c", "", "loss", "a", kind="trend", against="x", at_most=-0.5, role="extension"), arms)], 1
        )[0]
        assert (v.verdict, v.effect) == ("supported", pytest.approx(-np.median(self.d)))  # the slope, as measured

    def test_units_and_the_order_of_seeds_change_nothing(self):
        draw = np.random.default_rng(0)
        a, b = draw.standard_normal((2, 12))
        v = self.judge(BETTER, a, b)
        scaled, shuffled = self.judge(BETTER, 1000 * a, 1000 * b), self.judge(BETTER, a[::-1], b[::-1])
        assert (scaled.p, shuffled.p) == (v.p, v.p)
        assert (scaled.low, scaled.high) == pytest.approx((1000 * v.low, 1000 * v.high))
        assert (shuffled.low, shuffled.high) == pytest.approx((v.low, v.high), abs=0.1)

    def test_too_few_seeds_are_told(self):
        v = self.judge(BETTER, np.zeros(4), np.ones(4))
        assert v.verdict == "inconclusive"
        assert v.reason == (
            "needs more seeds: the smallest p that 4 seeds can give is 0.0625 before Holm; "
            "it takes at least 5 with 1 claim in the paper"
        )
        # Seven claims: 7 · 2^-7 = 0.055 and 7 · 2^-8 = 0.027.
        assert "at least 8 with 7 claims in the paper" in self.judge(BETTER, np.zeros(7), np.ones(7), family=7).reason
        assert self.judge(BETTER, np.zeros(8), np.linspace(1, 2, 8), family=7).verdict == "supported"
        assert self.judge(BETTER, [0.0], [1.0]).verdict == "inconclusive"

    def test_an_interval_alone_does_not_decide(self):
        d = np.array([1.0, 1.1, 0.9, 1.2, 1.0, -0.1])
        v = self.judge(BETTER, 0 * d, d, family=2)
        assert v.low > 0
        assert v.p_raw == 2 / 64
        assert (v.verdict, v.reason) == ("inconclusive", "p = 0.062 after Holm over 2 claims")

    def test_a_p_alone_does_not_decide(self):
        # The test at 5 % one-sided asks for less than a two-sided interval at 95 %, and the two must agree.
        d = np.random.default_rng(0).normal(0.42, 1.0, (100, 20))
        found = [self.judge(BETTER, 0 * e, e) for e in d]
        torn = [v for v in found if v.p < 0.05 and v.low <= 0]
        assert torn
        assert {(v.verdict, v.reason) for v in torn} == {("inconclusive", "the 95 % interval includes 0")}

    def test_no_difference_at_all(self):
        v = self.judge(BETTER, self.d, self.d)
        assert (v.verdict, v.effect, v.low, v.high, v.p, v.effect_size, v.improvement) == (
            "inconclusive",
            0,
            0,
            0,
            1,
            0,
            0.5,
        )
        assert v.reason == "every seed lies exactly at 0, neither beyond nor short of it"
        assert (
            self.judge(Claim("c", "", "loss", "a", "b", kind="equal", margin=0.1, role="check"), self.d, self.d).verdict
            == "supported"
        )

    def test_claims_are_corrected_together_and_never_milder_alone(self):
        draw = np.random.default_rng(1)
        claims = [Claim(f"c{i}", "", f"m{i}", "a", "b", role="extension") for i in range(5)]
        arms = {
            "a": {f"m{i}": draw.standard_normal(10) for i in range(5)},
            "b": {f"m{i}": draw.standard_normal(10) + 0.4 * i for i in range(5)},
        }
        drafts = [draft(claim, arms) for claim in claims]
        for v, d in zip(decide(drafts, 5), drafts, strict=True):
            alone = decide([d], 5)[0]
            assert alone.p == pytest.approx(min(1.0, 5 * d.supports))
            assert alone.p >= v.p >= v.p_raw == d.supports

    def test_of_many_seeds_patterns_are_drawn(self):
        d = np.random.default_rng(0).normal(1.0, 1.0, 40)
        v = self.judge(BETTER, 0 * d, d)
        assert v.verdict == "supported"
        assert "(19,999 random patterns)" in v.test

    def test_numbers_of_any_type(self):
        for kind in (np.float32, np.int32, bool):
            a, b = np.zeros(10, kind), np.ones(10, kind)
            assert self.judge(BETTER, a, b).effect == 1.0
        large = np.linspace(1.6e308, 1.65e308, 10)
        assert self.judge(BETTER, np.full(10, -1.7e308), -large).verdict == "supported"


class TestBrokenSeeds:
    def arms(self, **broken):
        arms = {"a": {"loss": np.zeros(10)}, "b": {"loss": np.linspace(1, 2, 10)}}
        for arm, (count, value) in broken.items():
            arms[arm]["loss"][:count] = value
        return arms

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_are_never_dropped(self, value):
        assert decide([draft(BETTER, self.arms())], 1)[0].verdict == "supported"
        v = decide([draft(BETTER, self.arms(b=(3, value)))], 1)[0]
        assert (v.verdict, v.reason) == ("inconclusive", "3 of 10 seeds not finite in arm b")
        assert (v.seeds, v.p, v.p_raw) == (10, 1.0, 1.0)
        assert math.isnan(v.effect)
        v = decide([draft(BETTER, self.arms(a=(1, value), b=(10, value)))], 1)[0]
        assert v.reason == "1 of 10 seeds not finite in arm a; 10 of 10 seeds not finite in arm b"

    def test_count_in_the_family(self):
        good, broken = draft(BETTER, self.arms()), draft(BETTER, self.arms(a=(1, np.nan)))
        assert [v.p for v in decide([good, broken], 2)] == [2 * 2**-10, 1.0]

    def test_in_the_other_kinds(self):
        arms = self.arms(a=(2, np.nan))
        for claim in (
            Claim("c", "", "loss", "a", kind="bound", at_most=1.0, role="extension"),
            Claim("c", "", "loss", "a", "b", kind="equal", margin=2.0, role="extension"),
        ):
            assert draft(claim, arms).fault == "2 of 10 seeds not finite in arm a"
        x = np.tile([0.0, 1.0, 2.0], (10, 1))
        trend = Claim("c", "", "loss", "a", kind="trend", against="x", role="extension")
        y = x.copy()
        y[4, 1] = np.nan
        assert draft(trend, {"a": {"loss": y, "x": x}}).fault == "1 of 10 seeds not finite in arm a"
        assert draft(trend, {"a": {"loss": x, "x": y}}).fault == "1 of 10 seeds not finite in arm a"
        constant = x.copy()
        constant[:2] = 1.0
        assert (
            draft(trend, {"a": {"loss": x, "x": constant}}).fault
            == "the slope against x is not finite in 2 of 10 seeds"
        )

    def test_a_difference_may_overflow(self):
        v = decide([draft(BETTER, {"a": {"loss": np.full(5, -1.7e308)}, "b": {"loss": np.full(5, 1.7e308)}})], 1)[0]
        assert (v.verdict, v.reason) == ("inconclusive", "the effect is not finite in 5 of 5 seeds")


class TestErrors:
    def refuses(self, claim, arms, *words):
        with pytest.raises(ValueError, match=r"Claim 'c'") as error:
            draft(claim, arms)
        for word in words:
            assert word in str(error.value)

    def test_vectors_where_numbers_are_needed(self):
        vectors = {"a": {"loss": np.zeros((5, 3))}, "b": {"loss": np.zeros((5, 3))}}
        for claim in (
            Claim("c", "", "loss", "a", "b", role="extension"),
            Claim("c", "", "loss", "a", "b", kind="equal", margin=1.0, role="extension"),
            Claim("c", "", "loss", "a", kind="bound", at_most=1.0, role="extension"),
        ):
            self.refuses(claim, vectors, claim.kind, "'loss'", "(5, 3)")

    def test_what_is_missing(self):
        arms = {"a": {"loss": np.zeros(5), "cost": np.zeros(5)}, "b": {"loss": np.zeros(5)}}
        self.refuses(Claim("c", "", "bias", "a", "b", role="extension"), arms, "'bias'", "cost, loss")
        self.refuses(Claim("c", "", "loss", "a", "z", role="extension"), arms, "'z'", "a, b")
        self.refuses(
            Claim("c", "", "loss", "a", kind="trend", against="steps", role="extension"), arms, "'steps'", "cost, loss"
        )

    def test_seeds_that_do_not_pair(self):
        arms = {"a": {"loss": np.zeros(5)}, "b": {"loss": np.zeros(6)}}
        self.refuses(Claim("c", "", "loss", "a", "b", role="extension"), arms, "paired by seed", "5", "6")
        self.refuses(
            Claim("c", "", "loss", "a", "b", role="extension"),
            {"a": {"loss": np.zeros(0)}, "b": arms["b"]},
            "at least 1 seed",
        )
        self.refuses(
            Claim("c", "", "loss", "a", "b", role="extension"),
            {"a": {"loss": np.float64(1)}, "b": arms["b"]},
            "at least 1 seed",
        )

    def test_trends_without_vectors(self):
        claim = Claim("c", "", "loss", "a", kind="trend", against="x", role="extension")
        for y, x in (((5,), (5,)), ((5, 3), (5, 4)), ((5, 1), (5, 1)), ((5, 3), (3,)), ((5, 3, 2), (5, 3, 2))):
            self.refuses(claim, {"a": {"loss": np.zeros(y), "x": np.zeros(x)}}, str(y), str(x))

    def test_claims_that_make_no_sense(self):
        arms = {"a": {"loss": np.zeros(5)}}
        self.refuses(Claim("c", "", "loss", "a", kind="question", role="extension"), arms, "answers()")
        self.refuses(
            Claim("c", "", "loss", "a", kind="bound", at_most=1.0, relative=True, role="extension"), arms, "relative"
        )


class TestRecords:
    def judged(self, arms, **circumstances):
        (result,) = judge(PAPER, [Observed(EXPERIMENT, (BETTER,), arms, {"a": 1.0, "b": 2.0})], **circumstances)
        assert isinstance(result, ClaimResult)
        return result

    def test_json_and_back(self):
        arms = {"a": {"loss": np.zeros(10)}, "b": {"loss": np.arange(10.0)}}
        result = self.judged(arms, scale="smoke", run=3)
        about = (str(result.id), result.statement, result.kind, result.metric, result.method, result.baseline)
        assert about == ("p/better", "a beats b", "better", "loss", "a", "b")
        assert (result.verdict, result.seeds, result.seconds, result.run) == ("supported", 10, 3.0, 3)
        assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result
        assert Result.from_json(result.to_json() | {"of a later Laureate": 3.0}) == result
        assert result.measured is not None
        assert (result.measured.method_mean, result.measured.baseline_mean) == (0.0, 4.5)
        assert (result.measured.worst, result.measured.worst_effect) == (0, 0.0)
        assert math.isnan(result.measured.trivial_mean)
        assert result.more_seeds, "ten, where the scale declares five"

    def test_what_is_not_finite_is_null_and_decides_nothing(self):
        arms = {"a": {"loss": np.full(10, np.nan)}, "b": {"loss": np.full(10, np.nan)}}
        result = self.judged(arms, scale="smoke")
        assert (result.verdict, result.has_effect) == ("inconclusive", False)
        record = json.loads(json.dumps(result.to_json(), allow_nan=False))
        assert [record[name] for name in ("effect", "effect_size", "improvement")] == [None] * 3
        assert record["measured"]["effects"] == [None] * 10
        assert Result.from_json(record).to_json() == record

    def test_not_run_has_one_shape_and_its_reason(self):
        failed = self.judged({"b": {"loss": np.ones(3)}}, scale="smoke")
        assert (failed.verdict, failed.reason, failed.seeds, failed.measured) == ("not run", "failed: a", 0, None)
        never = not_run(PAPER, EXPERIMENT, BETTER)
        assert isinstance(never, ClaimResult)
        assert set(never.to_json()) == set(failed.to_json())
        assert (never.verdict, never.reason, never.run) == ("not run", "", None)

    def test_there_are_four_words(self):
        with pytest.raises(ValueError, match="perhaps"):
            Result.from_json(not_run(PAPER, EXPERIMENT, BETTER).to_json() | {"verdict": "perhaps"})

    def test_loads_neither_scipy_nor_jax(self):
        code = "import sys, laureate.lab.judging.verdict; print([m for m in ('scipy', 'jax') if m in sys.modules])"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


class TestAnswers:
    question = Claim("why", "", "loss", "a", kind="question", role="extension")

    def test_a_row_an_arm(self):
        x = np.random.default_rng(0).standard_normal(12)
        table = answers(self.question, {"a": {"loss": x}, "b": {"loss": x + 1}})
        a, b = table
        assert (a.arm, b.arm) == ("a", "b")
        assert a.mean == pytest.approx(x.mean())
        assert a.low < a.mean < a.high
        assert b.low == pytest.approx(a.low + 1)
        assert (a.seeds, a.reason) == (12, "")

    def test_vectors_and_broken_seeds(self):
        x = np.arange(12.0).reshape(4, 3)
        x[1, 2] = np.nan
        (row,) = answers(self.question, {"a": {"loss": x}})
        assert row.mean == [4.5, 5.5, None]
        assert row.low[2] is row.high[2] is None
        assert row.low[0] < 4.5 < row.high[0]
        assert (row.seeds, row.reason) == (4, "1 of 4 seeds not finite")
        assert not row.is_number

    def test_a_missing_metric(self):
        with pytest.raises(ValueError, match="'loss'; arm 'a' has: cost"):
            answers(self.question, {"a": {"cost": np.zeros(3)}})


def test_one_experiment_among_many_is_the_experiment_alone():
    draw = np.random.default_rng(0)
    experiments = [{"a": {"loss": a}, "b": {"loss": b}} for a, b in draw.standard_normal((4, 2, 9))]
    experiments[2]["a"]["loss"][0] = np.nan
    for claim in (
        BETTER,
        Claim("c", "", "loss", "a", "b", margin=0.1, role="extension"),
        Claim("c", "", "loss", "a", "b", kind="equal", margin=0.5, role="extension"),
    ):
        for alone, arms in zip(simulate(claim, experiments), experiments, strict=True):
            expected = draft(claim, arms)
            assert (alone.supports, alone.refutes, alone.fault) == (expected.supports, expected.refutes, expected.fault)
            assert (alone.low, alone.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
