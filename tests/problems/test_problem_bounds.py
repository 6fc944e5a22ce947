"""Where settings of problems begin and end: the last value that is allowed is taken, the next one refused by name."""

import numpy as np
import pytest

from laureate.problems import (
    answers,
    classifiers,
    confidences,
    environments,
    gaussians,
    long_tails,
    mazes,
    novelty,
    peers,
    points,
    pools,
    recovery,
    score_tables,
    scores,
    seen_worlds,
    small_worlds,
    spins,
    supernets,
    supports,
    tables,
    two_bodies,
    two_models,
    unrolls,
    views,
)
from laureate.problems.unrolls.training_runs import CarInValley, TrainingRun

TINY = 1e-6
# What is made, one of its settings, values at the ends of what is allowed, and those beyond; other settings that fit.
ENDS = [
    (score_tables.ScoreTables, "games", (2,), (1,), {}),
    (score_tables.ScoreTables, "median", (TINY,), (0.0,), {}),
    (score_tables.ScoreTables, "mean", (2.15,), (2.14,), {}),
    (environments.Chain, "size", (2,), (1,), {}),
    (environments.Chain, "limit", (0, 4), (3, -1), {"size": 5}),
    (environments.NoisyTV, "side", (2,), (1,), {}),
    (environments.NoisyTV, "pixels", (1,), (0,), {}),
    (environments.NoisyTV, "pictures", (0,), (-1,), {}),
    (environments.NoisyTV, "limit", (1,), (0,), {}),
    (small_worlds.Room, "side", (2,), (1,), {}),
    (small_worlds.Room, "limit", (1,), (0,), {}),
    (small_worlds.Hearth, "side", (2,), (1,), {}),
    (small_worlds.Hearth, "limit", (1,), (0,), {}),
    (small_worlds.Hearth, "bright", (TINY,), (0.0,), {}),
    (small_worlds.Ledge, "cells", (1,), (0,), {}),
    (small_worlds.PointMass, "limit", (1,), (0,), {}),
    (small_worlds.Crossroads, "branches", (2, 8), (1, 9), {}),
    (seen_worlds.Pendulum, "limit", (1,), (0,), {}),
    *((seen_worlds.Pendulum, name, (TINY,), (0.0,), {}) for name in ("gravity", "mass", "length", "dt")),
    (seen_worlds.PixelRoom, "cell", (1,), (0,), {"room": small_worlds.Room(2)}),
    (mazes.Maze, "side", (5, 7), (3, 6), {}),
    (mazes.Maze, "gap", ("left", "right"), ("middle",), {}),
    (two_bodies.Joints, "mass", (TINY,), (0.0,), {}),
    (two_bodies.TwoBodies, "sensor", ("network", "pixels", "same"), ("none",), {}),
    (two_bodies.FreeMass, "kind", ("plane", "circle"), ("line",), {}),
    (recovery.GaussianDictionary, "rows", (1,), (0,), {}),
    (recovery.GaussianDictionary, "columns", (5,), (4,), {"rows": 4}),
    (recovery.GaussianDictionary, "density", (TINY, 1.0), (0.0, 1 + TINY), {}),
    (recovery.DigitPatches, "side", (1, 8), (0, 9), {"number": 3}),
    (supports.PlanarRing, "dim", (2,), (1,), {}),
    (supports.PlanarRing, "spread", (0.0,), (-TINY,), {}),
    (answers.TwoCurves, "share", (TINY, 1 - TINY), (0.0, 1.0), {}),
    (answers.DigitHalves, "train", (2,), (1,), {"validation": 2, "test": 2}),
    (answers.LabelledDigits, "test", (2, 1793), (1, 1794), {"train": 2, "validation": 2}),
    (views.SharedDirections, "shared", (1, 5), (0, 6), {"inputs": 5}),
    (views.LabelledPairs, "side", (4, 8), (3, 5), {"data": "digits", "train": 20, "test": 5}),
    (views.ImagePairs, "pool", (1, 8), (0, 3), {"data": "digits"}),
    (points.PointClouds, "num_points", (3,), (2,), {"num_clouds": 1, "num_neighbors": 1}),
    (points.PointClouds, "num_neighbors", (1, 3), (0, 4), {"num_clouds": 1, "num_points": 4}),
    (points.PointClouds, "stretch", (TINY,), (0.0,), {"num_clouds": 1, "num_points": 4, "num_neighbors": 1}),
    (tables.Design, "num_variables", (1,), (0,), {}),
    (tables.Design, "rho", (-0.99, 0.99), (-1.0, 1.0), {}),
    (gaussians.GaussianTarget, "dimension", (1,), (0,), {}),
    (gaussians.GaussianTarget, "correlation", (-0.99, 0.99), (-1.0, 1.0), {"dimension": 2}),
    (peers.Quadratics, "nodes", (1,), (0,), {}),
    (peers.Quadratics, "dimension", (1,), (0,), {}),
    (peers.ImagesOverNodes, "nodes", (2,), (1,), {"per_node": 3}),
    (peers.ImagesOverNodes, "per_node", (1, 898), (0, 899), {"nodes": 2}),
    *((peers.ImagesOverNodes, name, (1,), (0,), {"per_node": 3}) for name in ("batch", "pool", "channels")),
    (peers.ImagesOverNodes, "penalty", (0.0,), (-TINY,), {"per_node": 3}),
    (peers.judged_images, "test", (1, 1791), (1792,), {"nodes": 2, "per_node": 3}),
    (novelty.RareImages, "pool", (1, 8), (0, 3), {"num_train": 3, "num_held": 2}),
    (novelty.RareImages, "num_train", (172,), (173,), {"num_held": 2}),
    (long_tails.LongTailedDigits, "head", (94,), (95,), {"test": 80}),
    (long_tails.LongTailedDigits, "ratio", (1, 90), (0.99, 91), {"head": 90, "test": 80}),
    (confidences.TrainedNetworks, "train", (1, 1796), (0, 1797), {}),
    (confidences.TrainedNetworks, "noise", (0.0, 1.0), (-TINY, 1 + TINY), {}),
    (two_models.FastAndSlow, "train", (10, 1796), (9, 1797), {}),
    (scores.DigitNumbers, "train", (10, 1796), (9, 1797), {}),
    (scores.DigitNumbers, "digits", (1, 3), (0, 4), {}),
    (spins.SpinImages, "threshold", (0.0, 1 - TINY), (-TINY, 1.0), {"train": 20, "test": 5}),
    (pools.DigitsPool, "num_train", (10,), (9,), {"num_pool": 5}),
    (pools.DigitsPool, "num_pool", (1, 1787), (0, 1788), {"num_train": 10}),
    (pools.NoisyDigits, "num_pool", (1787,), (1788,), {"num_test": 10}),
    (pools.Pool, "scores", ([0.0, TINY],), ([0.0, 0.0], [-TINY, 1.0], [1.0], [1.0, np.inf]), {"losses": [1.0, 2.0]}),
    (classifiers.ImageClasses, "pool", (1, 8), (0, 3), {"train": 20, "test": 5}),
    *(
        (supernets.CellSupernet, n, (low,), (low - 1,), {"train": 20, "test": 5})
        for n, low in (("num_nodes", 2), ("num_cells", 1), ("channels", 1))
    ),
    (unrolls.LinearQuadratic, "horizon", (1,), (0,), {}),
    (unrolls.LinearQuadratic, "memory", (TINY, 1 - TINY), (0.0, 1.0), {}),
    (unrolls.InfluenceBalancing, "loss_every", (1,), (0,), {}),
    (unrolls.InfluenceBalancing, "num_positive", (0, 6), (-1, 3, 7), {"size": 6}),
    (unrolls.ToySchedule, "horizon", (1,), (0,), {}),
    (unrolls.CharacterLSTM, "horizon", (1,), (0,), {}),
    (unrolls.CharacterLSTM, "hidden", (1,), (0,), {"horizon": 1}),
    (unrolls.LearnedOptimiser, "horizon", (1,), (0,), {}),
    (unrolls.LearnedOptimiser, "hidden", (0,), (-1,), {}),
    (unrolls.LearnedOptimiser, "pool", (1, 2, 4), (0, 3, 8), {}),
    (unrolls.RidgeCoefficient, "train_share", (0.01, 0.99), (0.0, 1.0), {}),
    (unrolls.RidgeCoefficient, "step_size", (TINY,), (0.0,), {}),
    (unrolls.RidgeFamily, "size", (1,), (0,), {}),
    *((TrainingRun, name, (1,), (0,), {}) for name in ("horizon", "truncation", "hidden", "batch")),
    *((CarInValley, name, (1,), (0,), {}) for name in ("horizon", "truncation")),
]


@pytest.mark.parametrize(
    ("make", "field", "inside", "outside", "others"), ENDS, ids=[f"{one.__name__}-{field}" for one, field, *_ in ENDS]
)
def test_the_last_value_is_taken_and_the_next_one_refused(make, field, inside, outside, others):
    for value in inside:
        make(**{field: value}, **others)
    for value in outside:
        with pytest.raises(ValueError, match=rf"{make.__name__}\..*\b{field}\b.* must be "):
            make(**{field: value}, **others)
