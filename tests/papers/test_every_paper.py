"""What holds for the claims of every paper: declared as data, decidable, in time, with an example that runs."""

import ast
import importlib
import re
import subprocess
import sys

import pytest

from laureate.lab.judging.results import not_run
from laureate.lab.judging.statistics import smallest_p
from laureate.lab.judging.verdict import ALPHA
from laureate.lab.running.definitions import program
from laureate.papers import all_papers, paper_ids

PAPERS = {paper.id: paper for paper in all_papers()}
# Seconds on two cores for a whole paper. DirectPred, Quant-Noise, cGML and VDB train networks on real images, for which
# issues allow more; dynamics cycle-consistency and DreamerV2 compile many programs that are long.
LIMITS = {"smoke": 30, "desk": 300}
LONGER = {
    ("directpred", "desk"): 480,
    ("quant-noise", "desk"): 480,
    ("cgml", "desk"): 480,
    ("vdb", "desk"): 480,
    ("dynamics-cycle", "desk"): 480,
    ("dreamer-v2", "desk"): 480,
}


def test_declarations_load_without_jax():
    names = ", ".join(f"laureate.papers.{name.replace('-', '_')}.about" for name in paper_ids())
    code = f"import sys, {names}; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("paper", PAPERS)
def test_enough_seeds_to_decide_every_claim_after_holm(paper):
    family = sum(claim.kind != "question" for claim in PAPERS[paper].claims)
    for experiment in PAPERS[paper].experiments:
        for name, scale in experiment.scales.items():
            if name != "tiny" and any(claim.kind != "question" for claim in experiment.claims):
                assert smallest_p(scale.seeds) * family < ALPHA, (experiment.name, name)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_scale_says_what_it_costs_and_the_paper_fits_its_time(paper):
    for scale, limit in LIMITS.items():
        costs = [
            experiment.scales[scale].cost for experiment in PAPERS[paper].experiments if scale in experiment.scales
        ]
        assert min(costs) > 0
        assert sum(costs) <= LONGER.get((paper, scale), limit)


@pytest.mark.parametrize("paper", PAPERS)
def test_who_wrote_it_stands_in_the_catalogue_alone(paper):
    folder = f"laureate.papers.{paper.replace('-', '_')}"
    docs = " ".join(importlib.import_module(f"{folder}{module}").__doc__ or "" for module in ("", ".about"))
    assert str(PAPERS[paper].year) not in docs
    assert not [name for name in PAPERS[paper].authors if name.split()[-1] in re.findall(r"[\w-]+", docs)]


@pytest.mark.parametrize("paper", PAPERS)
def test_what_the_verdicts_mean_is_said_and_can_be_read_at_a_glance(paper):
    assert 10 <= len(PAPERS[paper].meaning.split()) <= 100


@pytest.mark.parametrize("paper", PAPERS)
def test_the_example_imports_what_there_is(paper):
    """In `make test` the page's own text is compiled, and its imports are run."""
    tree = ast.parse(PAPERS[paper].example)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports
    exec(compile(ast.Module(imports, []), paper, "exec"), {})


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_the_example_runs(paper):
    exec(PAPERS[paper].example, {})  # the page's own text


@pytest.mark.parametrize("paper", PAPERS)
def test_what_differs_from_the_paper_is_said(paper):
    for experiment in PAPERS[paper].experiments:
        assert experiment.deviations, experiment.name


@pytest.mark.parametrize("paper", PAPERS)
def test_what_reads_a_data_set_names_it(paper):
    """By what its trial and problem use: the loaders of data sets, the game, the chains that ship with the package."""
    loaders = {"datasets.py", "atari.py", "proteins.py"}
    for experiment in PAPERS[paper].experiments:
        used = {path.name for path, _ in program((experiment.trial, experiment.problem)).definitions}
        for scale in experiment.scales:
            named = not_run(PAPERS[paper], experiment, experiment.claims[0], scale=scale).data
            assert bool(named) == bool(used & loaders), (experiment.name, scale, named)


@pytest.mark.parametrize("paper", PAPERS)
def test_who_chooses_among_rates_says_where_the_winner_stands(paper):
    for experiment in PAPERS[paper].experiments:
        decided = any(claim.kind != "question" for claim in experiment.claims)
        if decided and any(len(scale.settings.get("rates", ())) > 1 for scale in experiment.scales.values()):
            assert any(guard.kind == "grid" for guard in experiment.guards), experiment.name
