"""What every trial of every paper reports at its tiny scale, beside what was recorded of it; nothing is compiled.

A trial decides verdicts: which rows choose a rate and which judge it, what an arm may spend, what is divided by what.
Most of that is seen by no oracle of a method, and a wrong one looks like another result. So each program of each trial
is traced and computed in NumPy (`in_numpy`), for the first seed of each of its arms, and all that it reports is held.
Where a row is no longer what was recorded, the cells of its trial are not what was measured either.

Trials that read a clock, start processes or decide on the host (``over_seeds="loop"``) cannot be traced: tests of their
papers look at their parts. Trials that are traced for long are looked at in ``make check``.
"""

import json

import jax
import pytest
from in_numpy import evaluate
from test_every_trial import EXPERIMENTS, cell_of, traced

from laureate.lab.running.worker import _split
from recording import merged, plain

# Of papers: trials that take more than a second in all; `make test` looks at the others.
LONG: dict[str, set[str]] = {}


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
ROWS = [
    pytest.param(
        trial, marks=[pytest.mark.thorough] * (trial.partition(":")[2] in LONG.get(trial.partition(":")[0], ()))
    )
    for trial in PROGRAMS
]


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


@pytest.mark.parametrize("trial", ROWS)
def test_what_is_reported_is_what_was_recorded(trial, recorded):
    for arms in PROGRAMS[trial]:
        program = program_of(*arms[0])
        for name, arm in arms:
            found = plain(numbers_of(program, name, arm))
            if recorded.mode != "compare":  # only the digits that rounding leaves alone are written
                found = merged(found, plain(numbers_of(program, name, arm, nudged=True)))
            recorded(f"{name} {arm}", found)
