"""The track of simulators: known motions and laws whose errors are known, and what training is charged."""

import jax
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.racing.disciplines.simulators import DISCIPLINE
from laureate.racing.tracks.simulators import facts, trial

PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
SPEED = np.random.default_rng(0).normal(size=(8, 1, 4, 1))
# Nodes that move evenly; the last one is held by somebody else, who moves it as he likes.
STATES = SPEED * np.arange(8.0)[None, :, None, None]
STATES[:, :, 3] = np.random.default_rng(1).normal(size=(8, 8, 1))
MOTION = {"positions": PLACES, "cells": [[0, 1, 2], [1, 3, 2]], "states": STATES, "kinds": [0, 0, 0, 3]}


def raced(code, cost=1000, points=2, **settings):
    shared = facts(MOTION)
    integrator = shared.pop("code")["integrator"]
    arm = Settings(code=code.replace("integrator", integrator), area="graphs", swept="", **shared, **settings)
    scale = Settings(cost=cost, points=points, seconds=100.0, phase="score", batch=4, warmup=10)
    return trial(jax.random.key(0), arm, MOTION, scale)


def test_laws_have_the_errors_that_they_must():
    moving, still = (DISCIPLINE.entrant(name).code for name in ("moving-on", "still"))
    told = raced(moving, share=1.0)
    assert told["error"] == pytest.approx([0.0, 0.0], abs=1e-5)  # the held node counts for nothing
    assert told["cost"].tolist() == [500, 1000]  # a law costs nothing: it is as good at any budget
    # Standing at t = 1: Σ (t - 1)² over Σ (t - mean)² for t = 2, ..., 7, for every node the same.
    times = np.arange(2, 8)
    expected = np.sqrt(((times - 1) ** 2).sum() / ((times - times.mean()) ** 2).sum())
    assert raced(still)["error"] == pytest.approx([expected, expected], rel=1e-5)


def test_nodes_that_somebody_holds_are_where_he_holds_them():
    """By a law that puts every node where the held one was a frame before: it is told, and not foretold."""
    found = raced("lambda key, graph: (lambda frames: 0 * frames[-1] + frames[-1, 3], None)", points=1)
    order = np.random.default_rng(0).permutation(8)[6:]  # the recordings that score
    errors = []
    for states in STATES[order]:
        truth, foretold = states[2:, :3], np.repeat(states[1:-1, 3:], 3, axis=1)
        errors.append(np.sqrt(((foretold - truth) ** 2).sum() / ((truth - truth.mean(0)) ** 2).sum()))
    assert found["error"] == pytest.approx([np.mean(errors)], rel=1e-4)


@pytest.mark.parametrize("broken", ["jnp.nan", "jnp.inf"])
def test_who_blows_up_on_one_recording_has_no_score(broken):
    """Not the mean of the others; one that is well on it has one."""
    one, other = STATES[np.random.default_rng(0).permutation(8)[6:]]  # the recordings that score
    node = int(np.flatnonzero((one[1, :3] > 0) != (other[1, :3] > 0))[0])
    code = f"lambda key, graph: (lambda frames: jnp.where(frames[-1, {node}, 0] > 0, {{}}, 1.0) * frames[-1], None)"
    assert np.isnan(raced(code.format(broken), points=1)["error"]).all()
    assert np.isfinite(raced(code.format("2.0"), points=1)["error"]).all()


def test_facts_say_how_the_nodes_move():
    told = facts(MOTION)
    assert told["change"] == pytest.approx(np.diff(STATES, axis=1)[:, :, :3].std(), rel=1e-2)
    assert (told["scripted"], told["spaces"], told["code"]) == (True, "mesh", {"integrator": "FirstOrder()"})
    assert facts(MOTION | {"order": 2})["code"] == {"integrator": "SecondOrder()"}


@pytest.mark.slow  # the whole race of two entrants in test_disciplines is slow, too
def test_normalisers_are_charged_and_training_stays_within_the_budget():
    code = DISCIPLINE.entrant("one-hop").code.replace("latent=32", "latent=4")
    told = raced(code, cost=200, learning_rate=0.01, noise=0.1)
    assert told["cost"].tolist() == [100, 200]  # ten batches of four to begin with
    assert np.isfinite(told["error"]).all()
