"""Run once a process by test_one_program.py: PES particles, sampler chains and decentralised nodes in one program.

Without processes, ``found(None)`` computes the same here.
"""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.decentralized import DeTAG, Gossip, connect, ring
from laureate.decentralized import train as train_peers
from laureate.gradients import PersistentES, Sharded
from laureate.sampling import Binary, GibbsWithGradients
from laureate.sampling import run as run_chains

UPDATES, CHAINS, STEPS, NODES, ROUNDS = 6, 8, 60, 4, 10


class Decay:
    """Two numbers that decay, pushed by theta and by noise."""

    def init(self, key, theta):
        return jax.random.normal(key, (2,))

    def step(self, key, theta, state, batch):
        state = 0.9 * state + theta["a"] + 0.1 * jax.random.normal(key, (2,)) + batch
        return state, jnp.sum(state**2) + theta["b"]


def particles(mesh):
    """Ten updates of theta by PES, with the pairs split over all devices; theta and the last loss."""
    estimator = PersistentES(Decay(), num_pairs=8, truncation=3, horizon=6, sigma=0.1)
    if mesh is not None:
        estimator = Sharded(estimator, mesh, axis=mesh.axis_names[0])
    optimiser = optax.adam(0.1)
    theta = {"a": jnp.asarray([0.3, -0.2]), "b": jnp.asarray(0.1)}
    state, memory = estimator.init(jax.random.key(0), theta), optimiser.init(theta)
    step = eqx.filter_jit(estimator.step)
    losses = []
    for update in range(UPDATES):
        batches = np.random.default_rng(update).normal(size=3).astype(np.float32)
        gradient, state, info = jax.block_until_ready(step(jax.random.key(1 + update), theta, state, batches))
        updates, memory = optimiser.update(gradient, memory, theta)
        theta = optax.apply_updates(theta, updates)
        losses.append(float(info.loss))
    return {"theta": jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), theta), "losses": losses}


def chains(mesh):
    """Chains of Gibbs-With-Gradients on a small chain of spins, run in two parts."""
    coupling = jnp.asarray([0.6, -0.4, 0.8, 0.2, 0.5])

    def energy(x):
        spins = 2.0 * x - 1.0
        return jnp.sum(coupling * spins[1:] * spins[:-1])

    kernel = GibbsWithGradients(energy, Binary())
    start = np.random.default_rng(0).random((CHAINS, 6)) < 0.5
    key, half = jax.random.key(7), STEPS // 2
    first = run_chains(key, kernel, start, half, thin=2, chunk=10, mesh=mesh)
    second = run_chains(key, kernel, state=first.state, first_step=half, num_steps=half, thin=2, chunk=30, mesh=mesh)
    samples = np.concatenate([first.samples, second.samples], axis=1)
    return {
        "samples": samples.astype(int).tolist(),
        "rate": first.acceptance_rate.tolist(),
        "cost": second.cost.tolist(),
    }


def nodes(mesh):
    """DeTAG on a ring, a node a device; None where there are not as many devices as nodes."""
    if mesh is not None and mesh.size != NODES:
        return None
    method = DeTAG(Gossip(ring(NODES), kappa=0.5), 0.1, 3)
    draw = np.random.default_rng(0)
    start = draw.normal(size=(NODES, 3)).astype(np.float32)
    data = draw.uniform(0.5, 1.5, size=(NODES, 3)).astype(np.float32)
    pull = lambda key, x, target: x - target + 0.1 * jax.random.normal(key, (3,))  # noqa: E731
    _, history = train_peers(
        jax.random.key(3), method, pull, start, ROUNDS, data=data, record=lambda p: p, every=5, mesh=mesh
    )
    return {"params": np.asarray(history.recorded).tolist(), "cost": np.asarray(history.cost).tolist()}


def refused(mesh):
    """What is said to chains that cannot be split evenly."""
    kernel = GibbsWithGradients(lambda x: jnp.sum(1.0 * x), Binary())
    try:
        run_chains(jax.random.key(0), kernel, np.zeros((mesh.size + 1, 2), bool), 2, mesh=mesh)
    except ValueError as error:
        return str(error)


def found(mesh):
    """All three."""
    return {"particles": particles(mesh), "chains": chains(mesh), "nodes": nodes(mesh)}


if __name__ == "__main__":
    mesh = connect()
    told = {"processes": jax.process_count(), "devices": jax.device_count(), "found": found(mesh)}
    told["refused"] = refused(mesh)
    print(json.dumps(told))
