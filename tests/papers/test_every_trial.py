"""Every trial of every paper at its ``tiny`` scale, through the lab's own worker: it runs and reports what is read.

A trial is a program, and compiling it is all that this costs: one arm of one trial of each paper runs in ``make test``
(of some only in ``make test PAPER=<id>``), all others, and the trials that read a clock or start processes, in ``make
test-all``. Of papers of which none runs ``make test`` looks at the names and shapes that one trial would report, which
compiles nothing; ``make test PAPER=<id>`` at those of all its trials.
"""

import os
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from laureate.lab.claim import SCALES, Settings
from laureate.lab.judging.guards import applies
from laureate.lab.running.plan import Selection, plan
from laureate.lab.running.references import load
from laureate.lab.running.worker import _make_problem, _problem, _split, compute
from laureate.papers import all_papers

# Of papers: trials whose smallest program takes more than three seconds to compile; another runs in `make test`.
LONG = {
    "biggan": {"images", "few_images"},
    "cgml": {"ring", "completion"},
    "dreamer-v2": {"agents", "ends", "crossroads"},
    "gradvac": {"dialects"},
    "gumbel-rao": {"vae", "samples", "temperature"},
    "imtl": {"units", "sharing"},
    "mesh-graph-nets": {"transitions", "reach"},
    "quant-noise": {"product", "depth"},
    "rnd": {"explore", "actors", "stale", "television", "interference"},
    "spline-calibration": {"networks"},
    "vdb": {"real_images", "gap", "imitation", "transfer"},
}
# Papers whose shortest trial takes about two seconds and more, and whose own tests compute with their trials: of these
# one runs through the worker in `make test PAPER=<id>`, and in a whole `make test` they are traced.
OWN_TESTS = {"cgml", "directpred", "gibbs-with-gradients", "gumbel-rao", "hopfield-rbm", "important-neurons", "imtl"}
OWN_TESTS |= {"knockoff-gan", "localized-learning", "logit-adjustment", "lure", "mesh-graph-nets", "quant-noise"}
OWN_TESTS |= {"raps", "sksd", "tensor-train-pde", "vdb"}
# Those that take two seconds and more even to be traced; tests of the paper's own call them in `make test`.
CALLED = {"imtl": {"units"}, "directpred": {"parity"}, "gradvac": {"dialects"}}
# Those of which the data cannot be traced.
LONG_DATA = {"mesh-graph-nets": {"features"}}
# Regression of hopfield-rbm's features stops after the declared steps, which a tiny trial reaches.
STOPS = pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
ASKED = os.environ.get("PAPER", "")  # make test PAPER=<id>
CHOSEN = [paper for paper in all_papers() if ASKED in ("", paper.id)]
EXPERIMENTS = {f"{paper.id}/{one.name}": (paper, one) for paper in CHOSEN for one in paper.experiments}


def cells():
    """A row for each arm of each experiment, slow but for one a paper; and a row for each trial that is only traced."""
    rows, traced, seen, ran, looked_at = [], [], set(), set(), set()
    for name, (paper, experiment) in EXPERIMENTS.items():
        trial = experiment.trial.partition(":")[2]
        may = experiment.over_seeds != "loop" and trial not in LONG_DATA.get(paper.id, ())
        for arm in experiment.arms:
            first = may and experiment.trial not in seen
            runs = first and paper.id not in ran and trial not in LONG.get(paper.id, ())
            runs = runs and (bool(ASKED) or paper.id not in OWN_TESTS)
            if runs:
                ran.add(paper.id)
            elif first and trial not in CALLED.get(paper.id, ()):
                dear = not ASKED and paper.id in looked_at | ran
                looked_at.add(paper.id)
                traced.append(pytest.param(name, arm.name, id=f"{name}-{arm.name}", marks=[pytest.mark.slow] * dear))
            seen.add(experiment.trial)
            rows.append(pytest.param(name, arm.name, id=f"{name}-{arm.name}", marks=[] if runs else [pytest.mark.slow]))
    return rows, traced


CELLS, TRACED_CELLS = cells()


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


@STOPS
@pytest.mark.parametrize(("name", "arm"), CELLS)
def test_a_trial_reports_what_its_claims_and_curves_read(name, arm):
    cell = cell_of(name, arm)
    outcome = compute(cell)
    check_outcome(outcome)
    for metric, values in outcome.metrics.items():
        assert len(values) == cell.count, metric
        assert np.isfinite(values).all(), metric
    check_report(name, arm, outcome.metrics)


@pytest.mark.parametrize(("name", "arm"), TRACED_CELLS)
def test_another_trial_would_report_what_its_claims_and_curves_read(name, arm):
    cell = cell_of(name, arm)
    found = traced(cell, eqx.filter_eval_shape)
    metrics = {metric: jax.ShapeDtypeStruct((cell.count, *one.shape), one.dtype) for metric, one in found.items()}
    check_report(name, arm, metrics)


def check_report(name, arm, metrics):
    """``metrics``: arrays, or what is known of their shapes."""
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
