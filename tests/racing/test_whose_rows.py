"""Which rows train, tune and score in each track: seen by a clock that runs nothing and notes what it was given."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.racing.tracks import (
    active,
    calibration,
    categorical_gradients,
    compression,
    imbalance,
    prediction_sets,
    recovery,
    robustness,
    simulators,
)
from laureate.racing.tracks.clock import Clock

COUNT = 96  # rows; the number of each stands in it
NUMBERS = np.arange(COUNT)
COLUMN = NUMBERS[:, None].astype(np.float32)
CARRY = "state", 0, 7


def rows(values):
    """The numbers of the rows in what a function was given."""
    return {round(float(np.asarray(one).ravel()[0])) for one in np.asarray(values)}


class Sets:
    """Of a method that makes prediction sets: what it is fitted to and asked."""

    def __init__(self, seen):
        self.seen = seen

    def fit(self, key, scores, labels):
        self.seen.append(("fit", (scores, labels)))

    def predict_size(self, key, scores):
        self.seen.append(("asked", (scores,)))
        return np.ones(len(scores))


# Track, problem, what each function returns, and, of what it is given, which rows train and which judge.
TRACKS: dict[str, Any] = {
    "calibration": (
        calibration,
        {"probabilities": COLUMN, "labels": NUMBERS % 2},
        {"_mapped": None, "_judge": {"brier": 0.0}},
        [("_mapped", lambda made, p, y, asked: p)],
        [("_mapped", lambda made, p, y, asked: asked)],
    ),
    "categorical-gradients": (
        categorical_gradients,
        {"inputs": COLUMN, "targets": NUMBERS},
        {"_begin": CARRY, "_advance": CARRY, "_judge": {"loss": 0.0}},
        [("_advance", lambda settings, model, known, *more: known[0])],
        [("_judge", lambda model, other, *more: other[0])],
    ),
    "compression": (
        compression,
        {"inputs": COLUMN, "labels": NUMBERS, "model": None, "apply": None},
        {"_small": None, "_judge": (0.0, 0.0)},
        [],
        [("_judge", lambda apply, small, inputs, labels: inputs)],
    ),
    "prediction-sets": (
        prediction_sets,
        {"scores": COLUMN, "labels": NUMBERS},
        {},
        [("fit", lambda scores, labels: scores)],
        [("asked", lambda scores: scores)],
    ),
    "recovery": (
        recovery,
        {"signals": COLUMN, "dictionary": np.eye(1)},
        {"_solver": None, "_judge": 0.0},
        [("_solver", lambda settings, dictionary, train, *more: train)],
        [("_judge", lambda solver, test, *more: test)],
    ),
    "robustness": (
        robustness,
        {"images": COLUMN, "labels": NUMBERS, "logits": None},
        {"_attack": (0.0, 1), "_right": 0.5},
        [],
        [("_attack", lambda settings, classifier, key, images, *more: images)],
    ),
    "simulators": (
        simulators,
        {"states": COLUMN, "positions": None, "cells": None},
        {"_begin": CARRY, "_advance": CARRY, "_judge": {"error": 0.0}},
        [("_begin", lambda settings, graph, train, *more: train), ("_advance", lambda s, graph, train, *more: train)],
        [("_judge", lambda settings, graph, judged, state: judged)],
    ),
    "active": (
        active,
        {"losses": NUMBERS.astype(np.float32), "scores": 1.0 + NUMBERS},
        {"_sessions": {"error": 0.0}},
        [],
        [("_sessions", lambda settings, losses, *more: losses)],
    ),
}
SCALE = {"cost": 16, "points": 2, "seconds": 9.0, "metric": "any", "batch": 2, "warmup": 2, "draws": 2, "sessions": 2}
ARM = {"code": "None", "area": "", "swept": "", "alpha": 0.1, "snr": 9.0, "batch": 2}


def noted(name, phase, seed, monkeypatch):
    """The rows that train and those that judge."""
    track, problem, results, trains, judges = TRACKS[name]
    seen: list[tuple[str, tuple]] = []

    def run(self, function, *arguments, free=False):
        seen.append((function.__name__, arguments))
        return results[function.__name__]

    monkeypatch.setattr(Clock, "run", run)
    if name == "calibration":
        monkeypatch.setattr(calibration, "top_scores", lambda p, y: (np.asarray(p), np.asarray(y)))
    if name == "compression":
        monkeypatch.setattr(compression, "_finest", lambda arm, model, target: ({}, None, target))
    if name == "prediction-sets":
        monkeypatch.setattr(prediction_sets, "FEWEST", 8)
        monkeypatch.setattr(prediction_sets, "made", lambda arm: Sets(seen))
        monkeypatch.setattr(prediction_sets, "rank_label", lambda *given: SimpleNamespace(rank=np.ones(len(given[0]))))
        monkeypatch.setattr(prediction_sets, "worst_violation", lambda *given: 0.0)
    if name == "simulators":
        monkeypatch.setattr(simulators, "_graph", lambda motion: None)
    track.trial(jax.random.key(seed), Settings(ARM), problem, Settings(SCALE | {"phase": phase}))
    told = lambda which: [rows(of(*given)) for name, of in which for called, given in seen if called == name]  # noqa: E731
    return set().union(*told(trains)), set().union(*told(judges))


@pytest.mark.parametrize("name", TRACKS)
def test_what_scores_neither_trains_nor_tunes(name, monkeypatch):
    tuned: set[int] = set()
    scored: set[int] = set()
    for seed in range(3):
        for phase in ("tune", "score"):
            trained, judged = noted(name, phase, seed, monkeypatch)
            assert judged
            assert not trained & judged, (phase, seed)
            assert bool(trained) == bool(TRACKS[name][3])
            if phase == "tune":
                tuned |= trained | judged
            else:
                scored |= judged
    assert not tuned & scored
    assert tuned | scored <= set(range(COUNT))


@pytest.mark.parametrize("phase", ["tune", "score"])
def test_inputs_are_in_deviations_of_the_rows_that_train_alone(phase, monkeypatch):
    """Of each class a quarter tunes, whatever the seed; nobody else's rows are in the scale."""
    draw = np.random.default_rng(0)
    labels, features = draw.permutation(np.repeat([0, 1, 2], [48, 32, 16])), draw.lognormal(2.0, 1.0, (COUNT, 2))
    seen: dict[str, Any] = {}

    def run(self, function, *arguments, free=False):
        seen[function.__name__] = arguments
        return {"error": 0.0} if function.__name__ == "_judge" else CARRY

    monkeypatch.setattr(Clock, "run", run)
    problem, key = {"features": features, "labels": labels}, jax.random.key(5)
    imbalance.trial(key, Settings(ARM), problem, Settings(SCALE | {"phase": phase}))
    train, held = imbalance.shares(labels, key, phase)
    (known, answers), (other, truth) = seen["_advance"][1], seen["_judge"][2]
    np.testing.assert_allclose(np.mean(known, axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(np.std(known, axis=0), 1.0, atol=1e-4)
    middle, spread = features[train].mean(0), features[train].std(0)
    np.testing.assert_allclose(other, (features[held] - middle) / spread, rtol=1e-3, atol=1e-4)
    assert (answers.tolist(), truth.tolist()) == (labels[train].tolist(), labels[held].tolist())
    assert not set(train) & set(held)
    always = [set(imbalance.shares(labels, jax.random.key(seed), "tune")[1]) for seed in range(3)]
    assert always[0] == always[1] == always[2]
    assert not always[0] & set(train)
    assert phase == "tune" or not always[0] & set(held)
    counts = np.bincount(labels[held])
    assert counts.tolist() == [12, 8, 4]
