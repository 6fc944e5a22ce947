"""The ledger: what decides a claim moves its digest, words do not; every paper's is complete and only grows."""

import importlib
import json
import subprocess
from dataclasses import fields, replace
from pathlib import Path

import pytest

import toys
from laureate.lab import ledger
from laureate.lab.claim import Arm, Claim, Experiment, Guard, Scale
from laureate.lab.ledger import Entry, digest, history, missing, path_of, summary
from laureate.papers import all_papers, paper_ids

ROOT = Path(ledger.__file__).parents[3]


@pytest.mark.parametrize("paper", all_papers(), ids=lambda paper: paper.id)
def test_every_claim_is_as_its_last_line_says(paper):
    lacking = missing(paper)
    assert not lacking, f"declared otherwise than the ledger's last line; see scripts/ledger.py {paper.id}"


@pytest.mark.parametrize("paper", paper_ids())
def test_no_line_was_ever_changed_or_is_gone(paper):
    """Every version of the file that a commit holds is how the next begins, and the last how the file here begins."""
    name = path_of(paper).relative_to(ROOT).as_posix()

    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)

    commits = git("log", "--format=%H", "--first-parent", "--reverse", "--", name)
    if commits.returncode:
        pytest.skip("there is no git history here")
    before = ""
    for commit in [*commits.stdout.split(), ""]:
        now = git("show", f"{commit}:{name}").stdout if commit else path_of(paper).read_text("utf-8")
        assert now.startswith(before), f"{name} was rewritten in {commit or 'this work tree'}: lines are only added"
        before = now


@pytest.mark.parametrize("paper", paper_ids())
def test_lines_are_in_order_and_say_where(paper):
    entries = ledger.read(paper)
    assert [e.date for e in entries] == sorted(e.date for e in entries)
    for line in path_of(paper).read_text("utf-8").splitlines():
        assert list(json.loads(line)) == ["date", "claim", "digest", "reason", "results", "where"]


def test_what_decides_a_claim_moves_its_digest():
    made = toys.experiment(guards=(Guard("limit", "loss", low=-1e9),))
    claim = toys.BETTER
    first = digest(made, claim)
    other_arms = (made.arms[0], Arm("theirs", shift=2.5), made.arms[2])
    scales = dict(made.scales)
    for experiment, changed in (
        (made, replace(claim, margin=0.6)),
        (made, replace(claim, kind="equal")),
        (made, replace(claim, trivial="third")),
        (replace(made, arms=other_arms), claim),
        (replace(made, scales=scales | {"smoke": Scale(seeds=11, block=5, draws=8)}), claim),
        (replace(made, scales=scales | {"smoke": Scale(seeds=10, block=5, draws=9)}), claim),
        (replace(made, scales={"smoke": scales["smoke"]}), claim),
        (replace(made, guards=()), claim),
        (replace(made, data=("digits",)), claim),
        (replace(made, trial="elsewhere:trial"), claim),
        (replace(made, x64=True), claim),
    ):
        assert digest(experiment, changed) != first


# Every field of what is declared, with another value where it decides: a new one is hashed, or said to decide nothing.
LIMIT = Guard("limit", "loss", low=-1e9)
DECIDES = {
    Claim: {"metric": "gain", "method": "third", "baseline": "third", "kind": "equal", "better": "higher"}
    | {"margin": 0.6, "relative": True, "against": "steps", "at_least": 1.0, "at_most": 1.0, "trivial": "third"},
    Guard: {"kind": "effective", "low": -1e8, "high": 1e9, "arms": ("ours",), "claims": ("better",)},
    Scale: {"seeds": 11, "problem": {"offset": 1.0}, "settings": {"draws": 9}},
    Experiment: {"name": "another", "trial": "elsewhere:trial", "problem": "elsewhere:problem", "x64": True}
    | {"over_seeds": "loop", "data": ("digits",), "guards": (), "arms": (), "scales": {}},
}
DECIDES_NOTHING = {
    Claim: {"name", "statement", "unit", "source", "role", "reported"},
    Guard: {"metric", "grid"},  # of another metric it guards another claim, and a grid has no limits: below
    Scale: {"block", "cost", "compilation"},
    Experiment: {"title", "claims", "accepts", "deviations", "curves", "over"},
}


def changed_in(kind, field, value):
    """The experiment of the toys and its claim, one field of one of the declarations changed."""
    made, claim = toys.experiment(guards=(LIMIT,)), toys.BETTER
    if kind is Claim:
        return made, replace(claim, **{field: value})
    if kind is Guard:
        return replace(made, guards=(replace(LIMIT, **{field: value}),)), claim
    if kind is Experiment and field in ("arms", "scales"):  # what is in them
        value = {
            "arms": (made.arms[0], Arm("theirs", shift=2.5), made.arms[2]),
            "scales": {"smoke": made.scales["smoke"]},
        }[field]
    if kind is Scale:
        told = {"seeds": 10, "block": 5, "draws": 8} | (value if field == "settings" else {field: value})
        return replace(made, scales={**made.scales, "smoke": Scale(**told)}), claim
    return replace(made, **{field: value}), claim


@pytest.mark.parametrize("kind", DECIDES, ids=lambda kind: kind.__name__)
def test_every_field_decides_or_is_said_not_to(kind):
    assert {field.name for field in fields(kind)} == set(DECIDES[kind]) | DECIDES_NOTHING[kind]
    first = digest(toys.experiment(guards=(LIMIT,)), toys.BETTER)
    for field, value in DECIDES[kind].items():
        assert digest(*changed_in(kind, field, value)) != first, field


def test_settings_of_the_arms_that_a_claim_needs_decide_and_labels_and_other_arms_do_not():
    """Every one of them, its type and its absence; the data sets of every scale, and seeds of all scales but tiny."""
    made, (ours, theirs, third) = toys.experiment(), toys.ARMS
    first = digest(made, toys.BETTER)

    def of(*arms, **more):
        return digest(replace(made, arms=arms, **more), toys.BETTER)

    moved = [
        of(replaced, theirs, third) for replaced in (Arm("ours", shift=0), Arm("ours"), Arm("ours", shift=0.0, more=1))
    ]
    moved += [of(ours, Arm("theirs", shift=2.1), third)]
    moved += [
        digest(replace(made, data=data), toys.BETTER) for data in (("digits",), {"smoke": ("digits",), "desk": ()})
    ]
    scales = dict(made.scales)
    for name, scale in scales.items():
        changed = Scale(scale.seeds + 1, block=scale.block, draws=8)
        moved.append(digest(replace(made, scales=scales | {name: changed}), toys.BETTER))
    assert len({first, *moved}) == len(moved) + 1
    assert of(Arm("ours", "another label", shift=0.0), theirs, Arm("third", shift=9.0)) == first
    assert digest(replace(made, scales={"tiny": Scale(1)} | scales), toys.BETTER) == first


def test_the_grid_and_the_metric_of_a_guard_decide():
    scale = Scale(seeds=10, block=5, draws=(8, 9), rates=(8, 9))
    guards = [
        Guard("grid", "loss", grid="draws"),
        Guard("grid", "loss", grid="rates"),
        Guard("grid", "n", grid="rates"),
    ]
    found = {digest(toys.experiment(guards=(one,), scales={"smoke": scale}), toys.BETTER) for one in guards}
    assert len(found) == 3


def test_words_costs_and_what_other_claims_use_do_not():
    made = toys.experiment()
    claim = toys.BETTER
    first = digest(made, claim)
    scales = dict(made.scales)
    arms = (*made.arms[:2], Arm("third", shift=9.0))
    for experiment, changed in (
        (made, replace(claim, statement="in other words", source="there", unit="nats", role="check", reported="3")),
        (replace(made, deviations=("another",), title="another"), claim),
        (replace(made, arms=arms), claim),
        (replace(made, scales=scales | {"smoke": Scale(seeds=10, block=2, cost=9, draws=8)}), claim),
        (replace(made, scales=scales | {"tiny": Scale(seeds=1, draws=1)}), claim),
        (replace(made, guards=(Guard("limit", "another", low=0.0),)), claim),
    ):
        assert digest(experiment, changed) == first


def test_missing_lines_are_found():
    made = toys.paper()
    now = {claim.name: digest(made.experiments[0], claim) for claim in made.claims}
    lines = {name: [Entry("2026-11-17", name, found, "why", "before", "here")] for name, found in now.items()}
    assert missing(made, lines) == {}
    del lines["better"]
    lines["gone"] = [Entry("2026-11-17", "gone", "abc", "why", "before", "here")]
    assert missing(made, lines) == {"better": now["better"], "gone": ""}
    lines["gone"].append(Entry("2026-11-17", "gone", "", "removed", "after", "here"))
    assert missing(made, lines) == {"better": now["better"]}


def test_a_history_in_words():
    def entry(results, reason):
        return Entry("2026-11-16", "c", "abc", reason, results, "here")

    assert summary([entry("before", "first")]) == "declared 2026-11-16"
    assert summary([entry("before", "first"), entry("before", "cut"), entry("after", "wider grid")]) == (
        "declared 2026-11-16, changed once before any result, changed once after a result: wider grid"
    )
    assert summary([entry("after", "added late")]) == "declared 2026-11-16 after results had been seen (added late)"
    assert summary([entry("after", "added late"), entry("after", "wider grid")], reasons=False) == (
        "declared 2026-11-16 after results had been seen, changed once after a result"
    )


def test_an_entry_must_say_why_and_when():
    with pytest.raises(ValueError, match="must say why"):
        Entry("2026-11-16", "c", "abc", " ", "before", "here")
    with pytest.raises(ValueError, match="'before' or 'after'"):
        Entry("2026-11-16", "c", "abc", "why", "perhaps", "here")


def test_what_the_history_holds_is_told():
    """Claims that came after results, and the changes that were said nowhere before."""
    detag = history("detag")
    assert detag["sparse-rounds"][0].results == detag["unshuffled-d2"][0].results == "after"
    assert any(e.where == "2bc15c1" and "desk rates" in e.reason for e in detag["sparse-d2"])
    assert any(e.where == "02b3062" for e in history("pes")["toy-schedule"])


def test_the_skeletons_line_goes_with_the_first_declaration(tmp_path):
    file = tmp_path / "ledger.jsonl"
    kept = '{"claim": "first", "reason": "declared"}\n'
    file.write_text('{"claim": "first", "reason": "TO WRITE: in place of a declaration"}\n' + kept, "utf-8")
    importlib.import_module("ledger").drop_placeholders(file)  # scripts/ledger.py
    assert file.read_text("utf-8") == kept
