"""Run once a node by test_processes.py: every optimiser over real sockets; node 0 prints what became of it."""

import json

import jax
import jax.numpy as jnp
import numpy as np

from laureate.decentralized import (
    D2,
    DPSGD,
    AllReduceSGD,
    ChocoSGD,
    DeFacto,
    DeTAG,
    Gossip,
    GradientTracking,
    TopK,
    connect,
    ring,
    train,
)

NODES, SIZE, ROUNDS = 4, 3, 12


def optimisers():
    gossip = Gossip(ring(NODES), kappa=0.5)
    return {
        "detag": DeTAG(gossip, 0.1, 3),
        "tracking": GradientTracking(gossip, 0.1),
        "d2": D2(gossip, 0.1),
        "d-psgd": DPSGD(gossip, 0.1),
        "choco": ChocoSGD(gossip, 0.1, TopK(0.5), 0.5),
        "defacto": DeFacto(gossip, 0.1),
        "all-reduce": AllReduceSGD(gossip, 0.1),
    }


def gradient(key, params, data):
    return {"a": data * params["a"] - 1.0 + 0.1 * jax.random.normal(key, (SIZE,)), "b": params["b"] - data.sum()}


def run(mesh, names):
    draw = np.random.default_rng(0)
    params = {"a": jnp.asarray(draw.normal(size=(NODES, SIZE)), jnp.float32), "b": jnp.zeros(NODES)}
    data = jnp.asarray(draw.uniform(0.5, 1.5, size=(NODES, SIZE)), jnp.float32)
    found = {}
    for name in names:
        method = optimisers()[name]
        key = jax.random.key(3)
        _, history = train(
            key, method, gradient, params, ROUNDS, data=data, record=lambda p: p, every=ROUNDS // 2, mesh=mesh
        )
        seen = jax.tree.map(
            lambda leaf: np.asarray(leaf).tolist(), (history.recorded, history.cost, history.info.consensus)
        )
        found[name] = seen
    return found


if __name__ == "__main__":
    mesh = connect()
    found = run(mesh, list(optimisers()))
    if jax.process_index() == 0:
        print(json.dumps({"processes": jax.process_count(), "found": found}))
