"""Every trial of every paper at its ``tiny`` scale, through the lab's own worker: it runs and reports what is read.

A trial is a program, and compiling it is all that this costs: one arm of each runs in ``make test``, the other arms and
experiments, and the trials that read a clock or start processes, in ``make test-all``. Of those that compile for long,
``make test`` looks at the names and shapes that they would report, which compiles nothing.
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
from laureate.lab.running.worker import _problem, _split, compute
from laureate.papers import all_papers

# Of papers: trials whose smallest program takes more than three seconds to compile, where another of the paper's that
# shares their parts runs anyway. These are only traced here; `make test-all` runs them.
LONG = {
    "alista": {"drift", "denoising"},
    "cgml": {"ring", "completion"},
    "directpred": {"accuracy"},
    "gibbs-with-gradients": {"deep"},
    "gumbel-rao": {"samples", "temperature"},
    "knockoff-gan": {"frontier", "non_gaussian", "architecture"},
    "mesh-graph-nets": {"transitions", "reach"},
    "quant-noise": {"product", "depth"},
    "rnd": {"explore", "actors", "stale", "television", "interference"},
    "spline-calibration": {"networks"},
    "tensor-train-pde": {"bond", "interacting", "trajectories"},
    "vdb": {"real_images", "gap", "imitation", "transfer"},
}
# The same, of which the data cannot be traced either.
LONG_DATA = {"mesh-graph-nets": {"features"}}
CHOSEN = [paper for paper in all_papers() if os.environ.get("PAPER", "") in ("", paper.id)]  # make test PAPER=<id>
EXPERIMENTS = {f"{paper.id}/{one.name}": (paper, one) for paper in CHOSEN for one in paper.experiments}


def cells():
    """A row for each arm of each experiment; the first arm of each trial is not slow, unless it is long."""
    rows, long_rows, seen = [], [], set()
    for name, (paper, experiment) in EXPERIMENTS.items():
        trial = experiment.trial.partition(":")[2]
        for arm in experiment.arms:
            long = experiment.over_seeds == "loop" or trial in LONG.get(paper.id, ())
            slow = long or trial in LONG_DATA.get(paper.id, ()) or experiment.trial in seen
            if long and experiment.over_seeds != "loop" and experiment.trial not in seen:
                long_rows.append(pytest.param(name, arm.name, id=f"{name}-{arm.name}"))
            seen.add(experiment.trial)
            rows.append(pytest.param(name, arm.name, id=f"{name}-{arm.name}", marks=[pytest.mark.slow] if slow else []))
    return rows, long_rows


CELLS, LONG_CELLS = cells()


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
    (cell,) = [cell for cell in plan([selection], "tiny") if cell.arm == arm]
    return replace(cell, compilation="lightest")  # it runs for milliseconds


@pytest.mark.parametrize(("name", "arm"), CELLS)
def test_a_trial_reports_what_its_claims_and_curves_read(name, arm):
    cell = cell_of(name, arm)
    outcome = compute(cell)
    assert not outcome.error, outcome.error
    for metric, values in outcome.metrics.items():
        assert len(values) == cell.count, metric
        assert np.isfinite(values).all(), metric
    check_report(name, arm, outcome.metrics)


@pytest.mark.parametrize(("name", "arm"), LONG_CELLS)
def test_a_long_trial_would_report_what_its_claims_and_curves_read(name, arm):
    cell = cell_of(name, arm)
    arm_floats, arm_static = _split(cell.arm_settings)

    def one(key, floats):
        return load(cell.trial)(key, Settings(arm_static, **floats), _problem(cell), Settings(cell.scale_settings))

    with jax.enable_x64(cell.x64), jax.threefry_partitionable(False):
        every = jax.vmap(one, in_axes=(0, None))
        metrics = eqx.filter_eval_shape(every, jax.random.split(jax.random.key(0), cell.count), arm_floats)
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
        if any(arm in (claim.method, claim.baseline) and arm in (guard.arms or (arm,)) for claim in guarded):
            assert guard.metric in metrics, guard
    for curve in experiment.curves:
        if arm == experiment.arms[0].name or curve.y in metrics:  # a curve need not have a line for every arm
            assert metrics[curve.x].shape == metrics[curve.y].shape, curve
