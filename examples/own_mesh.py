"""A learned simulator on a mesh of one's own: a membrane that swings, on an annulus that is no problem of ours.

    python examples/own_mesh.py
    python examples/own_mesh.py membrane.vtk     # a mesh file of triangles, through meshio

The same trajectories can be handed to the lab, which asks whether noise in training helps on them:

    laureate run mesh-graph-nets/noise --problem examples/own_mesh.py:Membrane --scale smoke
"""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.graphs import (
    MeshTrainer,
    SecondOrder,
    TrainingNoise,
    edges_from_cells,
    fit_simulator,
    make_simulator,
    mesh_graph,
    read_mesh,
    relative_errors,
    rollout,
)


def annulus(rings=4, spokes=10):
    """Nodes and triangles between two circles."""
    turn = 2 * np.pi * np.arange(spokes) / spokes
    radii = np.linspace(0.4, 1.0, rings)
    positions = np.concatenate([np.stack([r * np.cos(turn), r * np.sin(turn)], 1) for r in radii])
    cells = []
    for ring, k in np.ndindex(rings - 1, spokes):
        a, b = ring * spokes + k, ring * spokes + (k + 1) % spokes
        cells += [[a, b, b + spokes], [a, b + spokes, a + spokes]]
    return positions, np.array(cells)


def swings(rng, positions, cells, number, frames, substeps=5):
    """Heights of the nodes over time: y'' = −L y, with L the graph's Laplacian and the rim held."""
    senders, receivers = edges_from_cells(cells)
    laplacian = np.zeros((len(positions),) * 2)
    np.add.at(laplacian, (receivers, receivers), 1.0)
    np.add.at(laplacian, (receivers, senders), -1.0)
    size = np.linalg.norm(positions, axis=1)
    free = (size > size.min() + 1e-6) & (size < size.max() - 1e-6)
    y = rng.normal(size=(number, 1, 2)) @ np.sin(2 * positions + 1).T[None] * free
    y, v, found = y[:, 0], np.zeros((number, len(positions))), []
    dt = 0.3 / substeps
    for _ in range(frames):
        found.append(y)
        for _ in range(substeps):
            v = (v - dt * y @ laplacian) * free
            y = y + dt * v
    return np.stack(found, 1)[..., None], np.where(free, 0, 3)


class Membrane(eqx.Module):
    """What the lab's experiment on noise asks for."""

    positions: jax.Array
    test_positions: jax.Array
    senders: jax.Array
    receivers: jax.Array
    kinds: jax.Array
    train: jax.Array
    test: jax.Array
    order: int = eqx.field(static=True)
    spaces: str = eqx.field(static=True)
    scripted: bool = eqx.field(static=True)
    shown: bool = eqx.field(static=True)

    def __init__(self, train=8, test=4):
        positions, cells = annulus()
        runs, kinds = swings(np.random.default_rng(0), positions, cells, train + test, 210)
        self.positions, self.test_positions = (
            jnp.broadcast_to(jnp.asarray(positions, jnp.float32), (number, *positions.shape))
            for number in (train, test)
        )
        self.senders, self.receivers = map(jnp.asarray, edges_from_cells(cells))
        self.kinds = jnp.asarray(kinds)
        self.train, self.test = (jnp.asarray(part, jnp.float32) for part in (runs[:train, :100], runs[train:]))
        self.order, self.spaces, self.scripted, self.shown = 2, "both", False, True


if __name__ == "__main__":
    positions, cells = read_mesh(sys.argv[1]) if len(sys.argv) > 1 else annulus()
    runs, kinds = swings(np.random.default_rng(0), positions, cells, 9, 80)
    train, test = (jnp.asarray(part, jnp.float32) for part in (runs[:8], runs[8]))
    graph = mesh_graph(positions, cells, kinds=kinds)
    # The state is a height, so edges know the mesh's offsets and the heights' differences.
    simulator = make_simulator(
        jax.random.key(0), graph, SecondOrder(), 1, spaces="both", latent=16, num_steps=3, num_hidden_layers=1
    )
    trainer = MeshTrainer(optax.adam(optax.cosine_decay_schedule(0.003, 600)), TrainingNoise(1e-3, gamma=0.1))
    simulator, info = fit_simulator(
        jax.random.key(1), simulator, graph, train, trainer=trainer, num_steps=600, batch=4, num_warmup=20
    )
    states, how = rollout(simulator, graph, test[:2], 50)
    by_step, _ = relative_errors(states, test[2:52], graph)
    print(f"{graph.num_nodes} nodes, {graph.num_edges} edges; loss {float(info.loss[:10].mean()):.2g} → "
          f"{float(info.loss[-10:].mean()):.2g}")  # fmt: skip
    print(f"relative error after 1, 10 and 50 steps: {by_step[0]:.1g}, {by_step[9]:.1g}, {by_step[49]:.1g}")
    print("it held" if int(how.failed_at) == 50 else f"it broke in step {int(how.failed_at)}")
