"""Every trial of every paper at its ``tiny`` scale, through the lab's own worker: it runs, reports what is read, and
finds the numbers that were recorded.

A trial is a program, and compiling it is all that this costs: one arm of each trial runs in ``make check`` and, where
that takes less than about two seconds, in ``make test``; all others, those that take longest, and the trials that read
a clock or start processes, in ``make test-all``.
"""

import os
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest
from skeletons import marked

from laureate.lab.claim import SCALES, Settings
from laureate.lab.judging.guards import applies
from laureate.lab.running.plan import Selection, plan
from laureate.lab.running.references import load
from laureate.lab.running.worker import _make_problem, _problem, _split, compute
from laureate.papers import all_papers

# Trials that read a clock, start processes or need a simulator: no number of theirs is the same twice.
CLOCKS = {
    "detag": {"real_processes"},
    "gibbs-with-gradients": {"seconds"},
    "hopfield-rbm": {"speed"},
    "localized-learning": {"cost"},
    "mesh-graph-nets": {"runtime"},
    "quant-noise": {"overhead"},
    "rnd": {"montezuma"},
    "tensor-train-pde": {"dimension", "against_networks"},
}
# Regression of hopfield-rbm's features stops after the declared steps, which a tiny trial reaches.
STOPS = pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
ASKED = os.environ.get("PAPER", "")  # make test PAPER=<id>
CHOSEN = [paper for paper in all_papers() if ASKED in ("", paper.id)]
EXPERIMENTS = {f"{paper.id}/{one.name}": (paper, one) for paper in CHOSEN for one in paper.experiments}


def cells():
    """A row for one arm of each trial, and a slow one for each of all the others."""
    first, others, seen = [], [], set()
    for name, (paper, experiment) in EXPERIMENTS.items():
        held = experiment.trial.partition(":")[2] not in CLOCKS.get(paper.id, ())
        for arm in experiment.arms:
            row = first if held and experiment.trial not in seen else others
            row.append(pytest.param(name, arm.name, id=f"{name}-{arm.name}"))
            seen.add(experiment.trial)
    return first, others


FIRST_CELLS, OTHER_CELLS = cells()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_all_scales_are_declared_in_order_with_the_same_settings_and_the_first_is_tiny(name):
    _, experiment = EXPERIMENTS[name]
    scales = list(experiment.scales)
    assert scales[0] == "tiny", f"{name} declares no tiny scale: give it the smallest sizes that its trial accepts"
    assert scales == [scale for scale in SCALES if scale in scales]
    assert len({frozenset(scale.settings) for scale in experiment.scales.values()}) == 1


def cell_of(name, arm):
    paper, experiment = EXPERIMENTS[name]
    selection = Selection(paper, experiment, experiment.claims)
    first = next(cell for cell in plan([selection], "tiny") if cell.arm == arm)
    return replace(first, compilation="lightest")  # it runs for milliseconds


def traced(cell, look):
    """``look(trial, key, floats)`` at the trial of one seed, a function of the key and of the floats of its arm.

    For all seeds at once it takes twice as long, and the lab's worker adds the axis of seeds.
    """
    arm_floats, arm_static = _split(cell.arm_settings)

    def looked_at(problem):
        def one(key, floats):
            return load(cell.trial)(key, Settings(arm_static, **floats), problem(), Settings(cell.scale_settings))

        return look(one, jax.random.key(cell.start), arm_floats)

    with jax.enable_x64(cell.x64), jax.threefry_partitionable(False):
        try:
            return looked_at(lambda: _problem(cell))  # traced too, which compiles none of its operations
        except jax.errors.JAXTypeError:
            _make_problem.cache_clear()
            problem = _problem(cell)
            return looked_at(lambda: problem)
        finally:
            _make_problem.cache_clear()  # it may hold what was traced


def check_outcome(outcome):
    """No error, but for what this machine lacks."""
    if outcome.error.startswith("ModuleNotFoundError: Gymnasium is not installed"):
        pytest.skip("Gymnasium is not installed")
    assert not outcome.error, outcome.error


def metrics_of(name, arm):
    """What a trial reports, where that is what its claims and curves read."""
    cell = cell_of(name, arm)
    outcome = compute(cell)
    check_outcome(outcome)
    for metric, values in outcome.metrics.items():
        assert len(values) == cell.count, metric
        assert np.isfinite(values).all(), metric
    check_report(name, arm, outcome.metrics)
    return outcome.metrics


@STOPS
@pytest.mark.parametrize(("name", "arm"), FIRST_CELLS)
def test_a_trial_reports_what_was_recorded(name, arm, recorded):
    found = metrics_of(name, arm)
    if not marked(name.partition("/")[0]):  # of a paper that nobody has finished there is nothing to hold yet
        recorded("metrics", found)


@pytest.mark.slow
@STOPS
@pytest.mark.parametrize(("name", "arm"), OTHER_CELLS)
def test_a_trial_reports_what_its_claims_and_curves_read(name, arm):
    metrics_of(name, arm)


def check_report(name, arm, metrics):
    _, experiment = EXPERIMENTS[name]
    for claim in experiment.claims:
        if claim.kind != "question" and arm not in (claim.method, claim.baseline, claim.trivial):
            continue
        wanted = [claim.metric, claim.against] if claim.kind == "trend" else [claim.metric]
        for metric in wanted:
            assert metrics[metric].ndim == (2 if claim.kind == "trend" else 1), (claim.name, metric)
    for guard in experiment.guards:
        guarded = [claim for claim in experiment.claims if claim.kind != "question" and applies(guard, claim)]
        # Without names a guard speaks of all arms that report its metric: of a claim's two at least one must.
        for claim in guarded:
            wanted = arm in (claim.method, claim.baseline) and arm in (guard.arms or (claim.method,))
            if wanted and guard.metric not in metrics:
                assert arm not in guard.arms, guard
                assert guard.metric in traced(cell_of(name, claim.baseline), eqx.filter_eval_shape), (guard, claim)
    for curve in experiment.curves:
        if arm == experiment.arms[0].name or curve.y in metrics:  # a curve need not have a line for every arm
            assert metrics[curve.x].shape == metrics[curve.y].shape, curve
