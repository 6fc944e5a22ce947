"""Simulators that are learnt on meshes, by message passing in mesh and world space."""

from laureate.lab.claim import Paper
from laureate.papers.mesh_graph_nets.experiments import TRANSITIONS
from laureate.papers.mesh_graph_nets.experiments_features import FEATURES, REACH
from laureate.papers.mesh_graph_nets.experiments_flow import CYLINDER
from laureate.papers.mesh_graph_nets.experiments_noise import NOISE, RUNTIME

__all__ = ["PAPER"]

PAPER = Paper(
    id="mesh-graph-nets",
    area="graphs",
    problem=(
        "I have a slow simulator on meshes (cloth, finite elements, flow) and trajectories of it, and want a learned "
        "model that takes the next step, rolls out for long without blowing up, and works on meshes it has not seen."
    ),
    idea=(
        "Make the mesh a graph. Edges know the offset of their ends in mesh space and in the world; nodes their kind "
        "and their last change. Encode both, pass messages along the edges a number of times, each with weights of its "
        "own and a residual, and decode a change or an acceleration at every node, which a fixed rule integrates. In "
        "training the state is disturbed by noise, and the target corrects it, so that the model comes back from its "
        "own errors. Further edges between nodes that are close in the world carry contact."
    ),
    equation=(
        "m_ij = f_M([v_j, v_i, e_ij]),  e_ij ← e_ij + m_ij\n"
        "v_i ← v_i + f_V([v_i, Σ_j m_ij, Σ_j m_ij of the world])\n"
        "x_{t+1} = x_t + p   or   x_{t+1} = 2 x_t − x_{t−1} + p\n"
        "x̃_t = x_t + n,  target of a − (1 + γ) n"
    ),
    example=(
        "import jax, jax.numpy as jnp, optax\n"
        "from laureate.graphs import FirstOrder, MeshTrainer, TrainingNoise\n"
        "from laureate.graphs import fit_simulator, make_simulator, mesh_graph, rollout\n"
        "\n"
        "graph = mesh_graph([[0., 0], [1, 0], [0, 1], [1, 1]], [[0, 1, 2], [2, 1, 3]], kinds=[6, 0, 0, 0])  # yours\n"
        "runs = 0.9 ** jnp.arange(20.)[None, :, None, None] * jnp.array([0., 1, 2, 3])[:, None]  # run, time, node, 1\n"
        "simulator = make_simulator(jax.random.key(0), graph, FirstOrder(), state_size=1, latent=8, num_steps=2)\n"
        "trainer = MeshTrainer(optax.adam(0.01), TrainingNoise(0.01, gamma=1.0))\n"
        "simulator, info = fit_simulator(\n"
        "    jax.random.key(1), simulator, graph, runs, trainer=trainer, num_steps=50, batch=4, num_warmup=5)\n"
        "states, how = rollout(simulator, graph, runs[0, :1], 30)  # how.failed_at tells where it broke, if it did\n"
    ),
    meaning=(
        "On meshes of 16 to 49 nodes, after a minute of training, a network on the mesh predicts a transported "
        "field better than the nearest training state and least squares that are told the next inflow too, and "
        "stays stable over 500 steps. But of a pulled plate a corrected extrapolation predicts the next step "
        "better, on a mesh twice as fine the error triples, it is nine times slower than a solver tuned to its "
        "error, and noise in training, where data were plentiful, made rollouts fail in 50 instead of 8 of 100 "
        "cases."
    ),
    experiments=(TRANSITIONS, FEATURES, REACH, NOISE, RUNTIME, CYLINDER),
)
