"""Looking again with more seeds: what it costs, that it is told everywhere, and that busy clocks are told too."""

import dataclasses

import numpy as np
import pytest

import toys
from laureate.cli._common import context_line
from laureate.lab.claim import Arm, Claim
from laureate.lab.judging.evidence import Draft
from laureate.lab.judging.judge import Observed, judge
from laureate.lab.judging.looks import price
from laureate.lab.judging.results import ClaimResult, Result
from laureate.lab.judging.verdict import decide, simulate
from laureate.lab.running.run import run_claims
from laureate.pages import wording

BOUND = Claim("c", "", "x", "a", kind="bound", at_least=0.0, role="stand-in")


def test_all_later_looks_together_cost_a_fifth_of_the_first():
    assert [price(k) for k in (1, 2, 3)] == [1, 10, 30]
    assert sum(1 / price(k) for k in range(2, 100_000)) == pytest.approx(0.2, abs=1e-4)


@pytest.mark.slow
def test_adding_seeds_until_a_claim_is_supported_does_not_help():
    """A median at the bound, looked at eleven times: without the price far more claims are supported at some look."""
    experiments, seeds = 1000, range(10, 61, 5)
    x = np.random.default_rng(1).normal(size=(experiments, max(seeds)))
    found = {"paid": np.zeros(experiments, bool), "free": np.zeros(experiments, bool)}
    for k, n in enumerate(seeds):
        for i, draft in enumerate(simulate(BOUND, [{"a": {"x": row[:n]}} for row in x])):
            for how, looks in (("paid", tuple(seeds)[:k]), ("free", ())):
                found[how][i] |= decide([dataclasses.replace(draft, looks=looks)], 1)[0].verdict == "supported"
    assert found["paid"].mean() < 0.06
    assert found["free"].mean() > 3 * found["paid"].mean(), "the planted case: without a price the looks add up"


def draft(supports, looks=(), seeds=20, **more):
    return Draft(BOUND, seeds, "", effect=1.0, low=0.5, high=2.0, supports=supports, inside=True, looks=looks, **more)


def test_a_look_multiplies_p_before_holm_and_says_so():
    first, second = (decide([draft(0.004, looks)], 3)[0] for looks in ((), (10,)))
    assert first.p == pytest.approx(0.012)
    assert second.p == pytest.approx(0.12)
    assert (first.verdict, second.verdict) == ("supported", "inconclusive")
    assert second.reason == "p = 0.12 after Holm over 3 claims, times 10 for look 2"
    assert (second.p_raw, second.looks) == (0.004, (10,))


def test_a_refutation_pays_too():
    against = [
        dataclasses.replace(draft(1.0, looks), refutes=0.01, inside=False, outside=True) for looks in ((), (10,))
    ]
    assert [decide([one], 1)[0].verdict for one in against] == ["refuted", "inconclusive"]


def test_when_no_number_of_seeds_could_do():
    short = decide([draft(2.0**-8, (5,), seeds=8)], 10)[0]
    assert "needs more seeds" in short.reason
    assert "and the price of look 2; it takes at least 11" in short.reason
    coarse = decide([draft(1 / 20_000, (10, 20), seeds=40, centre="mean")], 50)[0]
    assert "needs other seeds" in coarse.reason
    assert "ask for 30, of which all sign patterns are counted" in coarse.reason


def test_a_run_pays_in_the_order_of_its_looks_and_repeating_is_none(store):
    def run(seeds=None, **more):
        return run_claims(
            store, toys.selections(toys.paper(toys.experiment())), scale="smoke", seeds=seeds, workers=1, **more
        ).claims[0]

    declared, more, fewer = run(), run(14), run(6)
    assert (declared.looks, more.looks, fewer.looks) == ((), (10,), (10, 14)), "in the order of looking"
    assert run().looks == (), "the first look stays the first"
    assert run(14).looks == (10,)
    assert declared.p == pytest.approx(declared.p_raw * declared.family)
    assert more.p == pytest.approx(min(1.0, more.p_raw * more.family * 10))
    stored = Result.from_json(more.to_json())
    assert isinstance(stored, ClaimResult)
    assert stored.looks == (10,)
    told = "look 2: judged before with 10 seeds, so its p counts 10 times"
    assert told in context_line(more)
    assert "look" not in context_line(declared)


def test_measuring_again_until_a_clock_agrees_is_told(store):
    def run(shift):
        arms = (Arm("ours", shift=shift), *toys.ARMS[1:])  # as other code or another reading of a clock would do
        made = toys.paper(toys.experiment(arms=arms))
        return run_claims(store, toys.selections(made), scale="smoke", workers=1).claims[0]

    assert run(0.0).remeasured == run(0.0).remeasured == 0
    assert (run(0.1).remeasured, run(0.2).remeasured) == (1, 2)
    again = run(0.0)
    assert again.remeasured == 2
    assert "measured 2 times before with as many seeds and other numbers" in context_line(again)
    assert again.to_json()["remeasured"] == 2


def test_a_busy_machine_is_told(store):
    experiment = toys.experiment()
    rng = np.random.default_rng(0)

    def found(busy):
        arms = {
            arm.name: {"loss": rng.normal(i, 1, 10), "wall_over_cpu": np.full(10, busy)}
            for i, arm in enumerate(experiment.arms)
        }
        observed = Observed(experiment, experiment.claims[:1], arms, {})
        return judge(toys.paper(experiment), [observed], scale="smoke")[0]

    assert wording.busy(found(1.05)) == ""
    assert wording.busy(found(1.8)) == "the machine was busy: the wall's clock ran 1.8 times as long as the CPU's"
    assert "the machine was busy" in context_line(dataclasses.replace(found(1.8), run=1))
    assert found(1.8).to_json()["busy"] == 1.8
