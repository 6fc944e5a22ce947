"""Work that asks for more memory than there is: the cell fails in words, the others are computed."""

import pytest

import toys
from laureate.lab.claim import Arm, Claim, Scale
from laureate.lab.running.run import run_claims
from laureate.lab.storing.home import store_path
from laureate.lab.storing.store import Store

ARMS = (Arm("ours", how="not"), Arm("theirs", how="killed"), Arm("third", how="refused"))
CLAIM = Claim("better", "s", metric="loss", method="ours", baseline="theirs", role="extension")


def run(arms, workers):
    scales = {"smoke": Scale(seeds=2, block=2)}
    made = toys.paper(toys.experiment(trial="hungry", arms=arms, claims=(CLAIM,), over_seeds="loop", scales=scales))
    store = Store(store_path())
    summary = run_claims(store, toys.selections(made), scale="smoke", workers=workers)
    store.close()
    return summary


def test_memory_that_is_refused_is_a_failed_cell(home):
    summary = run((ARMS[0], Arm("theirs", how="refused")), workers=1)
    assert summary.cells == {"total": 2, "computed": 2, "cached": 0, "failed": 1}
    assert summary.failures[0]["error"].splitlines()[0].startswith("MemoryError")
    assert summary.claims[0].verdict == "not run"


@pytest.mark.slow
def test_a_worker_that_the_system_kills_for_its_memory(home):
    summary = run(ARMS, workers=2)
    assert summary.cells == {"total": 3, "computed": 3, "cached": 0, "failed": 2}
    told = {failure["cell"].split(" · ")[1]: failure["error"].splitlines()[0] for failure in summary.failures}
    assert told["theirs"] == "The worker died while computing this cell (out of memory?)."
    assert told["third"].startswith("MemoryError")
