"""A row for every simulator and trainer on graphs; ``laureate.testing`` has the checks."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.graphs import (
    FirstOrder,
    MeshSimulator,
    MeshTrainer,
    SecondOrder,
    TrainingNoise,
    make_simulator,
    mesh_graph,
)
from laureate.testing.simulators import check_mesh_trainer, check_simulator

RNG = np.random.default_rng(0)
POSITIONS = np.array([[0.0, 0], [1, 0], [0, 1], [1.1, 1], [0.5, 1.7]])
GRAPH = mesh_graph(POSITIONS, [[0, 1, 2], [2, 1, 3], [2, 3, 4]], kinds=[3, 0, 0, 5, 0])
FIRST = {"latent": 6, "num_steps": 2, "hidden_layers": 1, "scripted": True}
SECOND = FIRST | {"spaces": "both", "world_radius": 1.3, "max_world_edges": 12, "scripted": False}


def made(integrator, size, settings):
    return make_simulator(jax.random.key(0), GRAPH, integrator, size, **settings)


SIMULATORS = {
    "first": (made(FirstOrder(), 2, FIRST), RNG.normal(size=(1, 5, 2))),
    "second": (made(SecondOrder(), 2, SECOND), POSITIONS + 0.1 * RNG.normal(size=(2, 5, 2))),
}
OPTIMISER = optax.adam(0.01)
TYPES = {MeshSimulator, MeshTrainer}


@pytest.mark.parametrize("name", SIMULATORS)
def test_simulator(name):
    simulator, frames = SIMULATORS[name]
    check_simulator(simulator, GRAPH, frames)


def test_trainer():
    trainers = [
        MeshTrainer(OPTIMISER, TrainingNoise(jnp.asarray(sigma), jnp.asarray(gamma)))
        for sigma, gamma in ((0.1, 0.1), (0.2, 0.1), (0.1, 1.0))
    ]
    windows = RNG.normal(size=(3, 2, 5, 2))
    check_mesh_trainer(trainers[0], SIMULATORS["first"][0], GRAPH, windows, others=trainers[1:])
