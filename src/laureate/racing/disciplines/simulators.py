"""Learned simulators on a mesh or a graph, from recordings of how its nodes have moved."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.001, 0.003, 0.01)}
NOISY = RATES | {"noise": (0.03, 0.1, 0.3)}


def _network(noise: str = "noise * change", hops: int = 4, more: str = "") -> str:
    """A simulator and its trainer; noise in deviations of what is to be predicted."""
    made = f"make_simulator(key, graph, integrator, size, spaces=spaces, scripted=scripted, latent=32, num_steps={hops}"
    return (
        f"lambda key, graph: ({made}{more}), "
        f"MeshTrainer(optax.adam(learning_rate), TrainingNoise({noise}, gamma=gamma)))"
    )


def _law(next_state: str) -> str:
    """The next state from the last two, without training."""
    return f"lambda key, graph: (lambda frames: {next_state}, None)"


DISCIPLINE = Discipline(
    name="simulators",
    title="Which simulator predicts these nodes best?",
    kind="motion on a mesh",
    problem="motion",
    area="graphs",
    needs={
        "positions": "[nodes, 1 to 3]: where the nodes of the mesh are at rest",
        "cells": "triangles, tetrahedra or edges [cells, 2 to 4], as node numbers",
        "states": "recordings [at least 8, frames, nodes, numbers]: half train, a quarter tunes, a quarter scores",
    },
    offers={
        "kinds": "[nodes] of laureate.graphs.NodeKind; those that are not NORMAL or OUTFLOW are given, not predicted",
        "order": "1 where the next state follows from the last, 2 where it needs the last two; by default 1",
    },
    metrics=(
        Metric("error", "of whole recordings predicted from two frames, relative to how much the nodes move", log=True),
        Metric("step", "the same of the first step alone", log=True),
    ),
    unit="transitions",
    entrants=(
        Entrant("mesh-graph-net", _network(), NOISY),
        Entrant("mesh-graph-net-mean", _network(more=", aggregate='mean'"), NOISY),
        Entrant("one-hop", _network(hops=1), NOISY),
        Entrant("without-noise", _network(noise="0.0"), RATES),
        Entrant("still", _law("frames[-1]")),
        Entrant("moving-on", _law("frames[-1] + share * (frames[-1] - frames[-2])"), {"share": (0.5, 0.8, 0.9, 1.0)},
                natural={"share": "high"}),
        Entrant("neighbours", _law("frames[-1] + share * graph.mean_to_receivers("
                                   "frames[-1][graph.senders] - frames[-1][graph.receivers])"),
                {"share": (0.01, 0.03, 0.1, 0.3, 0.6)}),
    ),
    trial="laureate.racing.tracks.simulators:trial",
    facts="laureate.racing.tracks.simulators:facts",
    script="""
kinds = getattr(motion, "kinds", jnp.zeros(len(motion.positions), int))
graph, states = mesh_graph(motion.positions, motion.cells, kinds), jnp.asarray(motion.states, jnp.float32)
model, trainer = ({method})(jax.random.key(0), graph)
if trainer is None:
    predicted = model(states[0, :2])
else:
    model, info = fit_simulator(jax.random.key(1), model, graph, states[1:], trainer=trainer, num_steps=200)
    frames = states[0, 2 - model.integrator.num_frames : 2]
    predicted = model.step(graph, frames, states[0, 2])[0][-1]
print(jnp.abs(predicted - states[0, 2]).mean())
""",
    settings={"batch": 4, "warmup": 10},
    absent={
        "MeshSimulator": "enters as make_simulator makes it",
        "DesignModel": "tells the amino acids of a backbone, and simulates nothing",
    },
    notes=(
        "networks of width 32, four hops of messages; what the given nodes do next is known to all",
        "seeds train anew and are judged by the same recordings: chance in those is not in the intervals",
    ),
)  # fmt: skip
