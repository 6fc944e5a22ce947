"""A problem of one's own: what is asked is answered, what is wrong is told before anything starts."""

import ast
import json
import re
from pathlib import Path

import pytest

import toys
from laureate.lab.claim import Claim
from laureate.lab.running.skeleton import skeleton, wanted
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store
from laureate.papers import paper as load_paper
from laureate.papers import paper_ids

SMOKE = ("--scale", "smoke", "--workers", "1", "--quiet")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("class Hill:\n    offset = 3.0\n")
    return tmp_path / "mine.py"


def test_the_answer_is_a_table_of_arms_and_the_paper_comes_second(laureate, mine):
    out = laureate("run", "toy", *SMOKE, "--problem", f"{mine}:Hill").out
    assert "toy/toy on mine.py:Hill: loss" in out
    table, _, claims = out.partition("What the paper claims, on mine.py:Hill")
    assert [line.split()[0] for line in table.splitlines() if line.startswith("    ")] == ["ours", "theirs", "third"]
    assert "Best here: ours, by 2 [" in table
    assert "toy/better on mine.py:Hill" in claims
    assert "count for no paper" in claims
    told = json.loads(laureate("run", "toy", *SMOKE, "--problem", f"{mine}:Hill", "--json").out)
    (standing,) = told["standings"]
    assert standing["places"][0]["arm"] == "ours"
    assert standing["places"][1]["beaten"]
    assert "Best here: ours" in laureate("board").out.replace("\n    ", " ")


def test_the_family_is_what_was_run(laureate, toy, mine):
    claim = Claim("elsewhere", "s", "loss", "ours", "theirs", role="extension")
    closed = toys.experiment("closed", accepts=(), claims=(claim,))
    toy.paper = toys.paper(toys.experiment(), closed)
    ours = json.loads(laureate("run", "toy", *SMOKE, "--json").out)
    own = json.loads(laureate("run", "toy", *SMOKE, "--problem", f"{mine}:Hill", "--json").out)
    assert {row["family"] for row in ours["claims"]} == {3}
    assert {row["family"] for row in own["claims"]} == {2}
    one = json.loads(laureate("run", "toy/better", *SMOKE, "--problem", f"{mine}:Hill", "--json").out)
    assert [row["family"] for row in one["claims"]] == [1]
    assert "with one claim of this run" in one["claims"][0]["reason"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("class Hill:\n    pass\n", "mine.py:Hill (line 1) lacks offset."),
        ("class Hill:\n    offset = ...  # fill in\n", "lacks offset."),
        (
            "class Hill:\n    @property\n    def offset(self):\n        return no_such\n",
            "line 4 in offset: Name",
        ),
        ("import nowhere_at_all\nclass Hill:\n    offset = 1.0\n", "mine.py, line 1: ModuleNotFoundError"),
        ("class Hill:\n    offset = 'three'\n", "toy/toy cannot use mine.py:Hill (line 1): TypeError"),
        ("def Hill():\n    raise ValueError('no\\nbut')\n", "mine.py, line 2 in Hill: ValueError: no."),
    ],
)
def test_what_is_wrong_is_told_with_its_line_before_anything_starts(laureate, mine, text, told):
    mine.write_text(text)
    done = laureate("run", "toy/better", *SMOKE, "--problem", f"{mine}:Hill")
    assert done.code == 2
    assert told in done.err
    where = re.search(r"TypeError: .+ \(\w+\.py, line \d+, in .+\)\. What each part must give: ", done.err)
    assert bool(where) == ("cannot use" in told), "where in ours it ended, where it never was in theirs"
    assert len(done.err.splitlines()) == 1
    store = Store(store_path())
    assert store.counts()["runs"] == 0
    store.close()


def test_a_skeleton_to_fill_in(laureate, mine):
    done = laureate("run", "toy", "--problem", "new")
    assert "my_toy.py: fill it in" in done.out
    assert "offset = ...  # fill in" in Path("my_toy.py").read_text()
    done = laureate("run", "toy", *SMOKE, "--problem", "my_toy.py:Mine")
    assert (done.code, "lacks offset" in done.err) == (2, True)
    assert "is there already" in laureate("run", "toy", "--problem", "new").err
    text = Path("my_toy.py").read_text().replace("offset = ...  # fill in", "offset = 1.0")
    Path("my_toy.py").write_text(text)
    assert laureate("run", "toy/better", *SMOKE, "--problem", "my_toy.py:Mine").code == 0


def test_a_first_try_is_at_a_scale_that_there_is(laureate, toy, mine):
    assert "laureate run toy --scale smoke --problem my_toy.py:Mine" in laureate("run", "toy", "--problem", "new").out
    assert "--scale smoke" in Path("my_toy.py").read_text()
    Path("my_toy.py").unlink()
    scales = toys.experiment().scales
    toy.paper = toys.paper(toys.experiment(scales={"desk": scales["smoke"]}))
    assert "laureate run toy --problem my_toy.py:Mine" in laureate("run", "toy", "--problem", "new").out
    text = Path("my_toy.py").read_text()
    assert "smoke" not in text
    assert "traced once before anything starts" in " ".join(text.split())


def test_show_says_who_takes_a_problem(laureate, toy):
    out = laureate("show", "toy").out
    assert "toy/toy takes any problem that offers\n    offset" in out
    assert json.loads(laureate("show", "toy", "--json").out)["own_problem"] == {"toy": ["offset"]}
    toy.paper = toys.paper(toys.experiment(accepts=()))
    assert "None of these takes another problem" in laureate("show", "toy").out


@pytest.mark.parametrize("paper_id", paper_ids())
def test_every_paper_that_takes_a_problem_has_a_skeleton(paper_id):
    paper = load_paper(paper_id)
    taking = [experiment for experiment in paper.experiments if experiment.accepts]
    tree = ast.parse(skeleton(paper, taking, "my.py"))
    text = ast.unparse(tree)
    for experiment in taking:
        assert [want.name for want in wanted(experiment)] == list(experiment.accepts)
        assert all(f"{name} = ..." in text or f"def {name}(" in text for name in experiment.accepts)


def test_what_is_wanted_says_its_kind_and_shape():
    (unbiased,) = (e for e in load_paper("pes").experiments if e.name == "unbiased")
    said = {want.name: want.gives for want in wanted(unbiased)}
    assert said == {
        "init": "floats [n]",
        "step": "(floats [n], one float)",
        "theta0": "floats [p]",
        "horizon": "an integer",
    }
    text = skeleton(load_paper("pes"), [unbiased], "my.py")
    assert "Gives (floats [n], one float). The paper's own: One step of the system:" in text
    assert "give the same kind of thing" in " ".join(text.split())


def test_a_claim_is_asked_for_by_its_name_and_shown_with_its_own_deviations(laureate, toy):
    namesake = Claim("second", "s", "loss", "ours", "theirs", role="extension")
    other = Claim("third-one", "s", "loss", "ours", "theirs", role="extension")
    second = toys.experiment("second", claims=(namesake, other), deviations=("It is another.",))
    toy.paper = toys.paper(toys.experiment(), second)
    told = json.loads(laureate("run", "toy/second", *SMOKE, "--json").out)
    assert [claim["id"] for claim in told["claims"]] == ["toy/second"]
    out = laureate("show", "toy/second").out
    assert "It is another." in out
    assert "It is a toy." not in out
