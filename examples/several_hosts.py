"""One program over several hosts: PES with its particles, and a sampler with its chains, split over all of them.

    laureate decentralized launch -n 2 examples/several_hosts.py     # two processes on this machine
    python examples/several_hosts.py                                 # one, the same numbers

docs/clusters.md starts it on SLURM and on Kubernetes.
"""

import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.decentralized import connect
from laureate.gradients import PersistentES, Sharded
from laureate.sampling import Binary, GibbsWithGradients, run


class Pendulum:
    """A pendulum that theta brakes; the loss is how far it still swings."""

    def init(self, key, theta):
        return jnp.array([1.0, 0.0]) + 0.1 * jax.random.normal(key, (2,))

    def step(self, key, theta, state):
        angle, speed = state
        speed = speed - 0.1 * jnp.sin(angle) - 0.1 * theta * speed
        angle = angle + 0.1 * speed
        return jnp.array([angle, speed]), angle**2 + speed**2


def chain_of_spins(x):
    """Log-probability of twelve spins that want to agree with their neighbours."""
    spins = 2.0 * x - 1.0
    return 0.5 * jnp.sum(spins[1:] * spins[:-1])


def main(updates=50, steps=500):
    # First of all, before anything else of jax. Without other processes this is a mesh of the devices here.
    alone = "LAUREATE_COORDINATOR" not in os.environ
    mesh = jax.make_mesh((jax.device_count(),), ("nodes",)) if alone else connect()

    estimator = Sharded(PersistentES(Pendulum(), num_pairs=64, truncation=10, horizon=100, sigma=0.1), mesh, "nodes")
    optimiser = optax.adam(0.1)
    theta: Any = jnp.zeros(())
    state, memory = estimator.init(jax.random.key(0), theta), optimiser.init(theta)
    step, losses = eqx.filter_jit(estimator.step), []
    for update in range(updates):
        # Wait for each: queued programs that talk to each other can hang on few cores.
        gradient, state, info = jax.block_until_ready(step(jax.random.key(update), theta, state))
        change, memory = optimiser.update(gradient, memory)
        theta = optax.apply_updates(theta, change)
        losses.append(float(info.loss))

    start = np.zeros((16, 12), bool)
    chains = run(jax.random.key(0), GibbsWithGradients(chain_of_spins, Binary()), start, steps, thin=5, mesh=mesh)
    agree = float(np.mean(chains.samples[..., 1:] == chains.samples[..., :-1]))
    if jax.process_index() == 0:
        told = f"brake {float(theta):.3f}, loss {losses[-1]:.3f}, neighbours agree {agree:.3f}"
        print(f"{mesh.size} devices: {told}")
    return float(theta), agree


if __name__ == "__main__":
    main()
