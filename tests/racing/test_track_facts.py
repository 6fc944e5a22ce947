"""What entrants are told of a problem, found by hand for every track: sizes, parts, least budgets, who stays out."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.decentralized import Gossip, ring
from laureate.lab.errors import UserError
from laureate.racing.tracks import (
    active,
    calibration,
    compression,
    decentralized,
    generative,
    gradients,
    imbalance,
    multitask,
    pde,
    prediction_sets,
    recovery,
    representation,
    robustness,
    sampling,
    selection,
    simulators,
)

DRAW = np.random.default_rng(0)


def coins(*shape, **more):
    return {"start": lambda key: jax.random.bernoulli(key, 0.5, shape)} | more


def unroll(size=3, **more):
    return {"theta0": lambda key: {"w": jnp.zeros(size - 1), "b": jnp.zeros(())}} | more


def several(tasks):
    scores = lambda params, part: jnp.zeros(tasks)  # noqa: E731
    return {
        "params0": lambda key: 0.0,
        "batch": lambda key: 0.0,
        "losses": lambda p, b: jnp.zeros(tasks),
        "scores": scores,
    }


def moving(**more):
    """Eight recordings of six frames of a triangle; the third node is held."""
    states = DRAW.normal(size=(8, 6, 3, 2))
    return {"positions": np.eye(3)[:, :2], "cells": [[0, 1, 2]], "states": states, "kinds": [0, 0, 3]} | more


MOTION = moving()
FREE = MOTION["states"][:, :, :2]
LABELS = {"labels": np.arange(30) % 3, "test_labels": np.array([0, 1, 4, 2]), "dim": 5}
FACTS = {
    "coins": (
        sampling,
        coins(2, 3),
        {"longest": 6, "smallest": 8 * 16 * 7, "code": {"domain": "Binary()"}, "absent": {}},
    ),
    "categories": (
        sampling,
        coins(20, num_categories=4),
        {"longest": 16, "smallest": 8 * 16 * (1 + 3 * 20), "code": {"domain": "Categorical(4)"}, "absent": {}},
    ),
    "ordered": (
        sampling,
        coins(3, ordinal=(-1, 5)),
        {"longest": 3, "smallest": 8 * 16 * (1 + 2 * 3), "code": {"domain": "Ordinal(-1, 5)"}, "absent": {}},
    ),
    "two sites": (
        sampling,
        coins(2),
        {"longest": 2, "smallest": 8 * 16 * 3, "code": {"domain": "Binary()"}}
        | {"absent": {"hamming-ball": "its blocks have three sites or more, the problem has 2"}},
    ),
    "unroll": (
        gradients,
        unroll(horizon=40),
        {"horizon": 40, "truncation": 4, "middle": 8, "num_pairs": 8, "smallest": 4 * 17 * 40, "absent": {}},
    ),
    "unroll of a length by numpy": (
        gradients,
        unroll(horizon=np.int64(40)),
        {"horizon": 40, "truncation": 4, "middle": 8, "num_pairs": 8, "smallest": 4 * 17 * 40, "absent": {}},
    ),
    # The largest divisor of the horizon up to what was asked for.
    "odd truncation": (
        gradients,
        unroll(horizon=20, truncation=7),
        {"horizon": 20, "truncation": 5, "middle": 10, "num_pairs": 8, "smallest": 4 * 17 * 20, "absent": {}},
    ),
    "short unroll": (
        gradients,
        unroll(horizon=7, truncation=9),
        {"horizon": 7, "truncation": 7, "middle": 7, "num_pairs": 8, "smallest": 4 * 17 * 7, "absent": {}},
    ),
    "large unroll": (
        gradients,
        unroll(501, horizon=10),
        {"horizon": 10, "truncation": 1, "middle": 2, "num_pairs": 8, "smallest": 4 * 17 * 10}
        | {"absent": {"rtrl": "theta has 501 numbers, and each step would do the work of as many"}},
    ),
    "unroll of the most": (
        gradients,
        unroll(500, horizon=10),
        {"horizon": 10, "truncation": 1, "middle": 2, "num_pairs": 8, "smallest": 4 * 17 * 10, "absent": {}},
    ),
    "tasks": (multitask, several(3), {"num_tasks": 3, "smallest": 48}),
    "pairs": (generative, {"x": np.ones((40, 2)), "y": np.ones((40, 1))}, {"batch": 20, "seed": 0, "smallest": 8 * 62}),
    "many pairs": (
        generative,
        {"x": np.ones((400, 2)), "y": np.ones((400, 1))},
        {"batch": 64, "seed": 0, "smallest": 496},
    ),
    "views": (representation, LABELS, {"dim": 5, "batch": 30, "classes": 5, "smallest": 2 * 30 * 8}),
    "images": (
        robustness,
        {"images": DRAW.uniform(size=(8, 5, 7, 1)), "labels": range(8)},
        {"epsilon": 8 / 255, "height": 5, "width": 7, "code": {"ball": f"Linf({8 / 255!r})"}},
    ),
    "images in a larger ball": (
        robustness,
        {"images": DRAW.uniform(size=(8, 5, 7, 1)), "labels": range(8), "epsilon": 0.25},
        {"epsilon": 0.25, "height": 5, "width": 7, "code": {"ball": "Linf(0.25)"}},
    ),
    "signals": (
        recovery,
        {"dictionary": np.ones((4, 6)), "signals": np.ones((16, 4))},
        {"snr": 15.0, "learning_rate": 0.0},
    ),
    "loud signals": (
        recovery,
        {"dictionary": np.ones((4, 6)), "signals": np.ones((16, 4)), "snr": 3},
        {"snr": 3.0, "learning_rate": 0.0},
    ),
    "table": (selection, {"X": np.ones((40, 5)), "y": np.ones(40)}, {"q": 0.2}),
    "strict table": (selection, {"X": np.ones((40, 5)), "y": np.ones(40), "q": 0.05}, {"q": 0.05}),
    "scores": (
        prediction_sets,
        {"scores": np.ones((1001, 2)), "labels": np.ones(1001)},
        {"alpha": 0.1, "largest": 250},
    ),
    "bold scores": (
        prediction_sets,
        {"scores": np.ones((800, 2)), "labels": np.ones(800), "alpha": 0.3},
        {"alpha": 0.3, "largest": 200},
    ),
    "confidences": (
        calibration,
        {"probabilities": np.full((201, 2), 0.5, np.float32), "labels": np.zeros(201, int)},
        {"largest": 100},
    ),
    "model": (
        compression,
        {"model": {"w": np.ones(6, np.float32), "b": np.ones(2, np.float64)}, "labels": range(8), "size": 39},
        {"budget": 39},
    ),
    "rows": (
        imbalance,
        {"features": np.ones((40, 2)), "labels": np.repeat(np.arange(4), 10)},
        {"classes": 4, "batch": 32, "smallest": 512},
    ),
    "pool": (active, {"losses": DRAW.uniform(1, 2, 400), "scores": np.ones(400)}, {"budget": 20, "largest": 100}),
    "motion": (
        simulators,
        MOTION,
        {"size": 2, "gamma": 1.0, "change": np.diff(FREE, axis=1).std(), "spaces": "mesh", "scripted": True}
        | {"smallest": 512, "code": {"integrator": "FirstOrder()"}},
    ),
    "motion of the second order": (
        simulators,
        MOTION | {"order": 2},
        {"size": 2, "gamma": 0.1, "change": np.diff(FREE, n=2, axis=1).std(), "spaces": "both", "scripted": True}
        | {"smallest": 512, "code": {"integrator": "SecondOrder()"}},
    ),
    "motion of nodes that are held still": (
        simulators,
        MOTION | {"states": MOTION["states"] * [[1], [1], [0]]},
        {"size": 2, "gamma": 1.0, "change": np.diff(FREE, axis=1).std(), "spaces": "mesh", "scripted": False}
        | {"smallest": 512, "code": {"integrator": "FirstOrder()"}},
    ),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_are_those_that_a_hand_finds(name):
    track, problem, expected = FACTS[name]
    found = track.facts(problem)
    assert set(found) == set(expected)
    for fact, value in expected.items():
        near = 0.005 if fact == "change" else 1e-12  # that one in three digits
        assert found[fact] == (pytest.approx(value, rel=near) if isinstance(value, float) else value), fact


@pytest.mark.parametrize("given", ["topology", "matrix"])
def test_nodes_pay_for_twenty_rounds_of_two_vectors_over_every_edge(given):
    topology = ring(6)
    matrix = np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0)
    network = {"graph": topology if given == "topology" else matrix, "data": {"x": np.ones((6, 9)), "y": np.ones(6)}}
    network["theta0"] = lambda key: {"w": jnp.zeros((3, 5)), "b": jnp.zeros(2, jnp.float16)}
    found = decentralized.facts(network)
    assert found["nodes"] == 6
    assert found["smallest"] == 2 * 20 * Gossip(topology).messages * (15 * 4 + 2 * 2)
    assert Gossip(topology).messages == 12  # each to both of its neighbours
    assert found["code"] == {"graph": "network.graph" if given == "topology" else "from_graph(network.graph)"}
    with pytest.raises(UserError, match="first axis of 6 nodes"):
        decentralized.facts(network | {"data": np.ones((5, 9))})


def test_a_value_is_judged_by_the_best_truth_there_is_within_the_interval_that_is_given(monkeypatch):
    """An exact solution before a reference, that before a simulation; by default the interval of pilot paths, wider."""
    paths = jnp.asarray([[0.5, -1.0], [2.0, 1.0]])
    monkeypatch.setattr(pde, "simulate", lambda key, problem, number, steps: paths)

    def facts(simulated=("linear", 7.0), **offered):
        monkeypatch.setattr(pde, "_monte_carlo", lambda problem: simulated)
        with jax.enable_x64(True):
            return pde.facts(SimpleNamespace(x0=jnp.zeros(2, jnp.float64), **offered))

    found = facts()
    assert (found["low"], found["high"]) == (-1.75, 2.75)  # a quarter of the width on either side
    assert (found["truth"], found["form"], found["steps"], found["absent"]) == (7.0, "linear", 20, {})
    assert found["smallest"] == 4 * 20 * 200
    within = facts(interval=(-3.0625, 5), reference=4)
    assert (within["low"], within["high"], within["truth"]) == (-3.0625, 5.0, 4.0)  # to the last digit
    assert facts(exact=lambda t, x: jnp.sum(x) + 3.0, reference=4.0)["truth"] == 3.0
    alone = facts(("", None), reference=4.0)
    assert alone["form"] == "linear"  # which nobody uses
    assert list(alone["absent"]) == ["monte-carlo"]
    assert facts(("exponential", 2.0))["form"] == "exponential"
    with pytest.raises(UserError, match="pde must offer exact"):
        facts(("", None))
    with pytest.raises(UserError, match="must be finite and not 0"):
        facts(reference=0.0)
