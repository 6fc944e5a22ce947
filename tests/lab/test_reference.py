"""Verdicts that ship: shown where nothing was measured here, marked, and never about another claim."""

import dataclasses
import json
import statistics

import numpy as np
import pytest

import toys
from laureate.lab import ledger, reference
from laureate.lab.judging import statistics as judging
from laureate.lab.judging.results import ClaimId, ClaimResult, Measured, Result
from laureate.lab.records import board_results, paper_results
from laureate.lab.running.run import run_claims
from laureate.papers import all_papers, paper_ids

SHIPPED = ClaimResult(
    id=ClaimId("toy", "better"), experiment="toy", statement="s", kind="better", verdict="refuted", effect=-0.123456789,
    low=-1.0, high=1.0, p=0.9, scale="desk", seeds=20, machine="an abacus", started="2026-11-17T10:00:00+00:00",
    measured=Measured(effects=(-0.123456789, 0.2), holds=(0.5, float("inf"))), run=7,
)  # fmt: skip


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A paper's folder with a reference of one claim."""
    (experiment,) = toys.paper().experiments
    digest = ledger.digest(experiment, toys.BETTER)
    file = tmp_path / "reference.jsonl"
    file.write_text(reference.line_of(SHIPPED, digest, "jax 1.0") + "\n")
    line = ledger.Entry("2026-11-17", "better", digest, "why", "before", "x").line()
    (tmp_path / "ledger.jsonl").write_text(line + "\n")
    monkeypatch.setattr(reference, "path_of", lambda _: file)
    reference._lines.cache_clear()
    yield file
    reference._lines.cache_clear()


def test_a_fresh_board_shows_it_and_a_run_takes_its_place(store, shipped):
    better, worse = board_results(store, [toys.paper()])
    assert (better.verdict, better.reference, better.run) == ("refuted", True, None)
    assert (better.machine, better.versions, better.started[:10]) == ("an abacus", "jax 1.0", "2026-11-17")
    assert (better.scale, better.seeds, better.statement) == ("desk", 20, toys.BETTER.statement)
    assert better.effect == pytest.approx(-0.12346)
    assert better.measured is not None
    assert better.measured.holds[0] == 0.5
    assert (worse.verdict, worse.reference) == ("not run", False)
    run_claims(store, toys.selections(toys.paper()), scale="smoke", workers=1)
    better, _ = board_results(store, [toys.paper()])
    assert (better.verdict, better.reference, better.run) == ("supported", False, 1)


def test_a_failed_attempt_does_not_hide_it(store, shipped):
    run = store.start_run("x", "smoke", 10, "default", {"machine": ""})
    store.add_results(run, [dataclasses.replace(SHIPPED, verdict="not run", reason="failed: ours")])
    assert [row.reference for row in board_results(store, [toys.paper()])] == [True, False]
    assert any(row.reference for row in paper_results(store, toys.paper()))


def test_a_claim_that_is_declared_anew_has_none(store, shipped):
    line = json.loads(shipped.read_text()) | {"digest": "000000000000"}
    shipped.write_text(json.dumps(line) + "\n")
    reference._lines.cache_clear()
    assert [row.verdict for row in board_results(store, [toys.paper()])] == ["not run", "not run"]


def test_a_measured_zero_is_kept_and_a_count_of_none_is_not():
    zeros = dataclasses.replace(SHIPPED, effect=0.0, low=-0.0, high=0.0, effect_size=0.0, improvement=0.0)
    line = json.loads(reference.line_of(zeros, "", ""))
    assert [line[name] for name in ("effect", "low", "high", "effect_size", "improvement")] == [0.0] * 5
    assert "remeasured" not in line
    assert Result.from_json(line).has_effect  # pyright: ignore[reportAttributeAccessIssue]  (a claim)


SHIPPING = [
    line for id in paper_ids() for line in reference._lines(reference.path_of(id)) if line["kind"] != "question"
]


def test_what_ships_says_what_its_seeds_say():
    """The effect is the centre of the seeds, lies in its interval, and every seed that was declared is there."""
    for line in SHIPPING:
        effects = line["measured"]["effects"]
        assert len(effects) == line["seeds"] >= line["declared_seeds"], line["id"]
        if None in effects:
            assert line["verdict"] == "inconclusive", line["id"]
            continue
        centre = statistics.median if line["centre"] == "median" else statistics.fmean
        size = max(map(abs, effects)) or 1.0
        assert line["effect"] == pytest.approx(centre(effects), rel=1e-3, abs=1e-4 * size), line["id"]
        assert line["low"] <= line["effect"] <= line["high"], line["id"]


def test_what_ships_is_what_judging_says_of_its_seeds_today():
    """p, interval, share of seeds and word, from effects that were rounded to five digits.

    A rounded seed may tie with another or with the margin, so that p lies between those of all seeds moved down and up
    by the rounding; and the bootstrap meets other means.
    """
    claims = {f"{paper.id}/{claim.name}": claim for paper in all_papers() for claim in paper.claims}
    judged = 0
    for line in SHIPPING:
        claim, effects = claims[line["id"]], line["measured"]["effects"]
        if None in effects or claim.relative:  # whose margins were not kept
            continue
        x = np.array(effects)
        bounded = claim.at_least is not None or claim.at_most is not None
        if bounded:
            sides = [x - end for end in [claim.at_least] if end is not None]
            sides += [end - x for end in [claim.at_most] if end is not None]
        else:
            sides = [x + claim.margin, claim.margin - x] if claim.kind == "equal" else [x - claim.margin]
        test = judging.sign_test if bounded else judging.sign_flip
        rounding = 5.1e-5 * np.abs(x)
        least, most = (max(float(test(side + way * rounding)) for side in sides) for way in (1, -1))
        assert least * 0.999 <= line["p_raw"] <= most * 1.001, line["id"]
        price = 1 if not line.get("looks") else 10
        assert line["p_raw"] * 0.999 <= line["p"] <= min(1.0, line["family"] * price * line["p_raw"]) * 1.001, line[
            "id"
        ]
        better = np.all([side >= 0 for side in sides], axis=0) if bounded else np.sign(x) / 2 + 0.5
        assert line["improvement"] == pytest.approx(better.mean(), abs=1e-4), line["id"]
        ends = (judging.median_interval if bounded else judging.interval)(x, 0.95)
        near = 0.05 * (ends[1] - ends[0]) + 1e-4 * np.abs(x).max()
        for told, end in zip((line.get("low"), line.get("high")), ends, strict=True):
            assert (told is None) == (not np.isfinite(end)), line["id"]
            assert told is None or told == pytest.approx(end, abs=near), line["id"]
        if line["verdict"] == "supported":
            assert line["p"] < 0.05, line["id"]
        judged += 1
    assert judged > 600


def test_nothing_ships_as_supported_that_a_guard_would_hold_back():
    roles = {f"{paper.id}/{claim.name}": claim.role for paper in all_papers() for claim in paper.claims}
    for line in SHIPPING:
        if line["verdict"] == "supported":
            assert not line.get("guard"), line["id"]
            assert line["low"] < line["high"] or roles[line["id"]] == "check", line["id"]


def test_what_ships_is_about_claims_of_today():
    """Every line is a verdict or an answer of a declared claim, with machine, versions, scale and day."""
    for paper in all_papers():
        names = {claim.name for claim in paper.claims}
        today = {name: lines[-1].digest for name, lines in ledger.history(paper.id).items()}
        for line in reference._lines(reference.path_of(paper.id)):
            assert line["id"].partition("/")[2] in names, line["id"]
            assert line["digest"] == today[line["id"].partition("/")[2]], f"{line['id']} is not shown: measure it anew"
            assert all(line.get(fact) for fact in ("machine", "versions", "scale", "started", "digest")), line["id"]
        assert all(result.reference for result in reference.reference(paper).values())
    assert paper_ids()
