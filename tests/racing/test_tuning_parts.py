"""Tuning is judged by other examples than scoring: those that score are made useless, and tuning does not notice."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_problems import BUDGETS, problem

from laureate.lab.claim import Settings
from laureate.lab.running.references import load
from laureate.racing.disciplines import disciplines

ALL = {one.name: one for one in disciplines()}
TRAINS_LONG = pytest.mark.slow  # whose siblings do the same with the same helpers


class Marked(eqx.Module):
    """Several losses whose scores say by which part they are judged."""

    problem: eqx.Module

    def __getattr__(self, name):
        return getattr(self.problem, name)

    def scores(self, params, part):
        return jnp.full(2, jnp.nan if part == "test" else 1.0)


def spoilt(kind):
    """The small problem of a kind with all that scores made NaN, by what its declaration says of its parts."""
    made: Any = problem(kind)
    if kind == "multitask":
        return Marked(made)
    if kind == "prediction-sets":
        return made | {"scores": _spoilt(made["scores"], np.arange(500, 1000))}
    if kind == "compression":
        return eqx.tree_at(lambda p: p.inputs, made, _spoilt(made.inputs, np.arange(16, 32)))
    if kind == "representation":
        return eqx.tree_at(lambda p: p.test_images, made, _spoilt(made.test_images, np.arange(10, 20)))
    names = {"categorical-gradients": "targets", "recovery": "signals", "generative": "y"}
    values = made[names[kind]] if isinstance(made, dict) else getattr(made, names[kind])
    count = len(values)
    rows = np.random.default_rng(0).permutation(count)[count // 2 + count // 4 :]
    if isinstance(made, dict):
        return made | {names[kind]: _spoilt(values, rows)}
    return eqx.tree_at(lambda p: getattr(p, names[kind]), made, _spoilt(values, rows))


def _spoilt(values, rows):
    found = np.array(values, np.float32)
    found[rows] = np.nan
    return jnp.asarray(found)


@pytest.mark.parametrize(
    ("kind", "entrant"),
    [
        ("multitask", "uniform"),
        ("compression", "scalar"),
        ("prediction-sets", "lac"),
        pytest.param("categorical-gradients", "straight-through", marks=TRAINS_LONG),
        pytest.param("recovery", "ista", marks=TRAINS_LONG),
        pytest.param("representation", "untrained", marks=TRAINS_LONG),
        pytest.param("generative", "regression", marks=TRAINS_LONG),
    ],
)
def test_tuning_never_sees_what_scores(kind, entrant):
    one = ALL[kind]
    chosen = one.entrant(entrant)
    shared = dict(load(one.facts)(problem(kind)))
    fragments = shared.pop("code", {})
    assert not fragments
    shared = {name: value for name, value in shared.items() if name not in ("absent", "budget")}
    arm = Settings({"code": chosen.code, "area": one.area, "swept": ",".join(chosen.grid), **shared, **chosen.default})
    metric = one.metrics[0].name
    told = {}
    for phase in ("tune", "score"):
        scale = Settings({**one.settings, "cost": BUDGETS[kind], "points": 1, "seconds": 100.0, "phase": phase})
        try:
            told[phase] = load(one.trial)(jax.random.key(0), arm, spoilt(kind), scale)[metric]
        except (ValueError, FloatingPointError):  # what is not finite may be refused
            told[phase] = np.array([np.nan])
    assert np.isfinite(told["tune"]).all(), told
    assert not np.isfinite(told["score"]).any(), told
