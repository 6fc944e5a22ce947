import csv
import io
import json
import re
from pathlib import Path

import pytest

import toys
from laureate.lab.claim import Arm, Claim
from laureate.lab.judging.results import ClaimId, ClaimResult
from laureate.lab.running import run as running
from laureate.pages import report

SMOKE = ("--scale", "smoke", "--workers", "1")


def page_of(output: str) -> str:
    return Path(output.rpartition("the page: ")[2].strip()).read_text()


def test_run_prints_the_verdicts_and_where_the_page_is(laureate):
    done = laureate("run", "toy", *SMOKE)
    assert done.code == 0
    assert re.search(r"toy/better\s+✔ supported\s+2 loss \[2, 2\] over seeds", done.out)
    assert "✘ refuted" in done.out
    assert "6 cells: 6 computed, 0 kept, 0 failed" in done.out
    assert "[6/6] done toy/toy · third · seeds 5–9" in done.err
    assert "On &lt;script&gt; Toys" in page_of(done.out)
    again = laureate("run", "toy", *SMOKE)
    assert "0 computed, 6 kept" in again.out
    assert again.err == ""


def test_run_json_is_one_object_as_documented(laureate):
    done = laureate("run", "toy/better", *SMOKE, "--json", "--quiet")
    told = json.loads(done.out)
    assert done.err == ""
    assert (told["scale"], told["seeds"]) == ("smoke", 10)
    assert told["cells"] == {"total": 4, "computed": 4, "cached": 0, "failed": 0}
    (claim,) = told["claims"]
    types = {"id": str, "statement": str, "verdict": str, "effect": float, "low": float, "high": float, "p": float}
    types |= {"seeds": int, "metric": str, "method": str, "baseline": str, "seconds": float}
    assert {name: type(claim[name]) for name in types} == types


@pytest.mark.parametrize(("claim", "code"), [("toy/better", 0), ("toy/worse", 3)])
def test_the_gate(laureate, claim, code):
    assert laureate("run", claim, *SMOKE, "--gate", "--quiet").code == code


def test_the_gate_holds_where_every_claim_is_supported_and_nowhere_else(laureate, monkeypatch):
    """What is open is not shown: a gate lets nothing pass of which that was not said."""
    monkeypatch.setattr(report, "write_report", lambda *given: None)
    words = ("supported", "refuted", "inconclusive", "not run")
    for verdicts in [[], *([word] for word in words), *(["supported", word] for word in words)]:
        facts = {"experiment": "toy", "statement": "s", "kind": "better", "scale": "smoke", "seeds": 10, "run": 1}
        claims = [ClaimResult(id=ClaimId("toy", f"c{n}"), verdict=word, **facts) for n, word in enumerate(verdicts)]
        found = running.Summary(1, "smoke", 10, "default", claims, [], {"total": 0})
        monkeypatch.setattr(running, "run_claims", lambda *given, found=found, **more: found)
        holds = set(verdicts) <= {"supported"}
        assert laureate("run", "toy", *SMOKE, "--quiet", "--json", "--gate").code == (0 if holds else 3), verdicts
        assert laureate("run", "toy", *SMOKE, "--quiet", "--json").code == 0


def test_a_failing_cell_makes_the_command_fail(laureate, toy):
    arms = (Arm("ours", shift=0.0, fails=0), Arm("theirs", shift=2.0, fails=1))
    claim = Claim("better", "s", metric="loss", method="ours", baseline="theirs", role="extension")
    toy.paper = toys.paper(toys.experiment(trial="broken", arms=arms, claims=(claim,)))
    done = laureate("run", "toy", *SMOKE)
    assert done.code == 1
    assert "failed: toy/toy · theirs · seeds 0–4" in done.err
    assert "FloatingPointError: the arm is broken on purpose" in done.err
    assert "Traceback" not in done.out + done.err
    assert "Traceback" in page_of(done.out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "There is no 'rnu'. Did you mean run?"),
        (["run"], "Say what to run: a paper, a claim, or --all. There are: toy."),
        (["run", "tpy"], "There is no 'tpy'. Did you mean toy?"),
        (["run", "toy/bettr"], "Did you mean toy/better?"),
        (["run", "toy", "--scale", "full"], "Nothing to run: toy/toy has no scale full, only smoke and desk."),
        (["run", "toy", "--problem", "nothing.py:x"], "there is no file 'nothing.py'"),
        (["run", "toy", "--problem", "nothing"], "--problem must be FILE.py:NAME; got 'nothing'."),
        (["run", "toy", "--seeds", "0"], "Invalid value for '--seeds'"),
        (["run", "toy", "--workers", "many"], "a number of processes, or auto"),
        (["show", "tpy"], "Did you mean toy?"),
        (["cite", "tpy"], "Did you mean toy?"),
        (["report", "7"], "There is no run 7."),
        (["compare", "1", "2"], "There is no run 1."),
        (["export"], "There is no run yet."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_a_user_can_mend_are_one_line_with_the_remedy(laureate, words, message):
    done = laureate(*words)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) <= 4  # click adds usage lines to its own


def test_a_problem_file_that_is_wrong(laureate, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def bowl(:\n")
    assert "does not parse" in laureate("run", "toy", "--problem", f"{file}:bowl").err
    file.write_text("bowl = 1\n_hidden = 2\n")
    assert "defines no 'bwl'. It defines: bowl." in laureate("run", "toy", "--problem", f"{file}:bwl").err


def test_a_users_problem_has_its_own_line_on_the_board(laureate, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("class Hill:\n    offset = 3.0\n")
    laureate("run", "toy/better", *SMOKE, "--quiet")
    laureate("run", "toy/better", *SMOKE, "--quiet", "--problem", f"{file}:Hill")
    told = json.loads(laureate("board", "--json").out)
    assert [row["problem"] for row in told["claims"]] == ["default", "default"]
    assert [(row["id"], row["problem"]) for row in told["own_problems"]] == [("toy/better", "mine.py:Hill")]
    assert sum(sum(words.values()) for words in told["counts"].values()) == 2, "yours are not the paper's"
    assert "On your own problems\n mine.py:Hill" in laureate("board").out


def test_the_board_says_how_to_run_what_is_not(laureate):
    done = laureate("board")
    assert "· not run" in done.out
    assert "Not measured here yet: laureate run toy" in done.out
    rows = json.loads(laureate("board", "--json").out)["claims"]
    assert [row["verdict"] for row in rows] == ["not run", "not run"]


def test_the_board_counts_our_reference_and_lists_what_was_measured_here(laureate, monkeypatch):
    """Hundreds of claims that nobody here ran would hide the person's own."""
    shipped = ClaimResult(
        id=ClaimId("toy", "better"), experiment="toy", statement="s", kind="better", metric="loss", verdict="refuted",
        effect=-1.0, low=-2.0, high=-0.5, p=1.0, scale="desk", seeds=20, machine="an abacus", versions="jax 1.0",
        started="2026-11-17T00:00:00", reference=True,
    )  # fmt: skip
    monkeypatch.setattr("laureate.lab.reference.reference", lambda _: {"toy/better": shipped})
    out = laureate("board").out
    assert "1 of 2 verdicts is our reference (an abacus, jax 1.0, 2026-11-17)" in out
    assert "✘ 1 refuted" in out
    assert "toy/better" not in out
    for words in (["toy"], ["--claims"]):
        out = laureate("board", *words).out
        assert "toy/better" in out
        assert out.count("an abacus") == 1, "told once"
    assert laureate("board", "nope").code == 2
    assert laureate("show", "toy").out.count("an abacus") == 1
    laureate("run", "toy/better", *SMOKE, "--quiet")
    assert "toy/better" in laureate("board").out


def test_show_has_the_cost_of_what_was_asked_for(laureate, toy):
    toy.paper = toys.paper(
        toys.experiment(),
        toys.experiment("second", claims=(Claim("third", "s", "loss", "ours", "theirs", role="extension"),)),
    )
    whole, part = (laureate("show", name).out.partition("The cost")[2] for name in ("toy", "toy/third"))
    assert "laureate run toy/third --scale" in part
    assert whole != part


def test_show(laureate):
    out = laureate("show", "toy").out
    for heading in ("The problem", "The equation", "In your code", "The claims", "What differs", "The cost"):
        assert heading in out
    told = json.loads(laureate("show", "toy/better", "--json").out)
    assert [claim["id"] for claim in told["claims"]] == ["toy/better"]
    assert told["deviations"] == {"toy": ["It is a toy."]}


def test_show_takes_every_id_of_the_catalogue(laureate):
    """As find prints it or as people capitalise it; of what does not run, where it is and what is nearest."""
    out = laureate("show", "MLL-SGD").out
    for text in ("Multi-Level Local SGD", "https://", "cannot be measured here yet"):
        assert text in out
    told = json.loads(laureate("show", "fno", "--json").out)
    assert (told["id"], told["runs"]) == ("fno", False)
    error = laureate("show", "zzzzqqq").err
    assert "There is no 'zzzzqqq'." in error
    assert len(error) < 2000


def test_compare(laureate):
    for _ in range(2):
        laureate("run", "toy", *SMOKE, "--quiet", "--fresh")
    out = laureate("compare", "1", "2").out
    assert out.count("supported") == 2
    assert "change" in out
    assert "differs" not in out
    told = json.loads(laureate("compare", "1", "2", "--json").out)
    assert told["claims"][0]["change"] == 0.0


def test_export(laureate, tmp_path):
    laureate("run", "toy", *SMOKE, "--quiet")
    rows = list(csv.DictReader(io.StringIO(laureate("export", "--csv").out)))
    assert len([row for row in rows if row["metric"] == "loss"]) == 30
    assert len(json.loads(laureate("export", "--json").out)) == len(rows)
    laureate("export", "1", "-o", str(tmp_path / "out.csv"))
    assert len((tmp_path / "out.csv").read_text().splitlines()) == len(rows) + 1


def test_cite_and_doctor(laureate):
    cited = laureate("cite", "pes").out
    assert "Persistent Evolution Strategies" in cited
    assert json.loads(laureate("cite", "pes", "--json").out) == [{"id": "pes", "bibtex": cited.strip()}]
    told = json.loads(laureate("doctor", "--json").out)
    assert {"versions", "machine", "threads", "folders", "store", "data sets"} <= told.keys()


def test_report_goes_where_it_is_told(laureate, tmp_path):
    laureate("run", "toy", *SMOKE, "--quiet")
    for name, words in (("run", ["1"]), ("all", [])):
        page = tmp_path / "deep" / f"{name}.html"
        assert laureate("report", *words, "-o", str(page)).out.strip() == str(page)
        html = page.read_text()
        assert "http://" not in html
        assert "https://" not in html
        assert html.count("<script>") == 1, "only our own script"
        assert "toy/better" in html
    told = json.loads(laureate("report", "--json").out)
    assert told["bytes"] < 3e6, "the whole site in one file"
