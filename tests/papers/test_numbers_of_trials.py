"""What every kind of arm of a trial reports at its tiny scale, beside what was recorded of it; nothing is compiled.

A trial decides verdicts: which rows choose a rate and which judge it, what an arm may spend, what is divided by what.
One arm of each trial is held as the lab computes it (test_every_trial.py); to compile the others would take an hour.
Here their programs are traced and computed in NumPy (`in_numpy`), for the first seed, and all that they report is held,
to the digits that rounding leaves alone. A row that is no longer what was recorded means cells that are not what was
measured either.

Trials that read a clock, start processes or decide on the host (``over_seeds="loop"``) cannot be traced, and those that
train long or convolve are not computed here.
"""

import json

import jax
import pytest
from in_numpy import evaluate
from test_every_trial import ASKED, EXPERIMENTS, cell_of, traced

from laureate.lab.running.worker import _split
from recording import merged, plain

# Trials that are looked at, by paper: in `make test` those of less than about half a second, in `make check` all.
QUICK = {
    "alista": "closed_form certificate conv_threshold conditioning drift",
    "detag": "consensus quadratics lower_bound images sweep",
    "directpred": "shared_directions collapse pairs",
    "gradvac": "pairs steady",
    "gumbel-rao": "gradient samples temperature",
    "hopfield-rbm": "planted_start start reverse capacity exact sampling",
    "important-neurons": "planted null_level localised",
    "logit-adjustment": "gaussians posteriors identity",
    "lure": "exact share line network",
    "pes": "unbiased variance l2_coefficient character_lstm tuning training",
    "raps": "law tuning",
    "rnd": "decay",
    "spline-calibration": "truth measure",
}
LONGER = {
    "alista": "recovery denoising",
    "directpred": "modes",
    "gradvac": "dialects",
    "gumbel-rao": "vae",
    "knockoff-gan": "filters validity mutual_information real",
    "logit-adjustment": "networks family",
    "lure": "evaluation greedy",
    "pes": "influence_balancing",
    "rnd": "explore actors television interference stale",
    "spline-calibration": "networks",
}


def programs():
    """Of each trial, by name: arms that share a program, with their experiment, each kind of arm once."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for name, (paper, experiment) in EXPERIMENTS.items():
        if experiment.over_seeds == "loop":
            continue
        kinds = found.setdefault(f"{paper.id}:{experiment.trial.partition(':')[2]}", {})
        for arm in experiment.arms:
            kind = json.dumps({n: v for n, v in arm.settings.items() if not isinstance(v, float)}, sort_keys=True)
            rows = kinds.setdefault(kind, [])
            if not rows or rows[0][0] == name:  # another experiment computes the same with other numbers
                rows.append((name, arm.name))
    few = lambda rows: rows if len(rows) <= 3 else [*rows[:2], rows[-1]]  # noqa: E731  (they differ in floats alone)
    return {trial: list(map(few, kinds.values())) for trial, kinds in found.items()}


PROGRAMS = programs()


def rows():
    """By paper and trial; of another paper than the one asked for there are none."""
    for table, marks in ((QUICK, []), (LONGER, [pytest.mark.thorough])):
        for paper, names in table.items():
            for trial in (f"{paper}:{name}" for name in names.split()):
                if trial in PROGRAMS:
                    yield pytest.param(trial, marks=marks)


def program_of(name, arm):
    """The traced program of one seed, and the form of what it reports."""
    look = lambda trial, *given: jax.make_jaxpr(trial, return_shape=True)(*given)  # noqa: E731
    return traced(cell_of(name, arm), look)


def numbers_of(program, name, arm, **more):
    """What it reports for the first seed of an arm."""
    closed, form = program
    cell = cell_of(name, arm)
    with jax.threefry_partitionable(False):
        given = jax.tree.leaves((jax.random.key(cell.start), _split(cell.arm_settings)[0]))
    return jax.tree.unflatten(jax.tree.structure(form), evaluate(closed, *given, **more))


@pytest.mark.parametrize("trial", list(rows()))
def test_what_is_reported_is_what_was_recorded(trial, recorded):
    for arms in PROGRAMS[trial]:
        program = program_of(*arms[0])
        for name, arm in arms:
            found = plain(numbers_of(program, name, arm))
            if recorded.mode != "compare":  # only the digits that rounding leaves alone are written
                found = merged(found, plain(numbers_of(program, name, arm, nudged=True)))
            recorded(f"{name} {arm}", found)


def test_what_is_held_is_a_trial():
    named = {f"{paper}:{name}" for table in (QUICK, LONGER) for paper, names in table.items() for name in names.split()}
    assert named <= set(PROGRAMS) or ASKED
