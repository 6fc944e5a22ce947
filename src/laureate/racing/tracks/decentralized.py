"""Rounds of a network until the bytes are spent: how good every node's own model is then."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.decentralized import DeTAG, Gossip, Topology, from_graph, stack
from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]

ROUNDS = 20  # that the least budget pays for, with two vectors over every edge


def facts(problem: Any) -> dict[str, Any]:
    """The graph as code, the number of nodes, the rounds of a phase, and what a few rounds cost."""
    problem = view(problem)
    graph = problem.graph if isinstance(problem.graph, Topology) else from_graph(problem.graph)
    rows = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(problem.data)}
    if rows != {(graph.size,)}:
        raise UserError(
            f"network.data must have a first axis of {graph.size} nodes, as the graph has; got {sorted(rows)}.",
            f"data.reshape({graph.size}, -1, ...) deals equal shares out in order.",
        )
    params = jax.eval_shape(problem.theta0, jax.random.key(0))
    vector = sum(int(np.prod(leaf.shape, dtype=int)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(params))
    gossip = Gossip(graph)
    named = "network.graph" if isinstance(problem.graph, Topology) else "from_graph(network.graph)"
    return {
        "nodes": graph.size,
        "rounds": DeTAG.advised_rounds(gossip),
        "smallest": 2 * ROUNDS * max(gossip.messages, graph.size) * vector,
        "code": {"graph": named},
    }


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same start and the same batches for all entrants of a seed."""
    clock, network, settings = Clock(scale), view(problem), traced(arm)
    start_key, run_key = jax.random.split(key)
    carry = clock.run(_begin, settings, network, start_key)
    for target in clock.targets():
        carry = clock.run(_advance, settings, network, run_key, carry, jnp.asarray(target, jnp.int32))
        clock.note(int(carry[2]), **clock.run(_judge, network, carry[0][0], free=True))
    return clock.record()


def _begin(settings: dict, network: Any, key: Any) -> Any:
    params = stack(network.theta0(key), settings["nodes"])
    state = params, made(settings, network=network).init(params)
    return state, jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32)


def _advance(settings: dict, network: Any, key: Any, carry: Any, target: Any) -> Any:
    optimiser = made(settings, network=network)
    data = jax.tree.map(jnp.asarray, network.data)

    def update(state, index):
        params, memory = state
        own = jax.random.fold_in(key, index)
        keys = jax.vmap(lambda node: jax.random.fold_in(own, node))(jnp.arange(settings["nodes"]))
        gradients = jax.vmap(network.gradient)(keys, params, data)
        updates, memory = optimiser.update(gradients, memory, params)
        return (optax.apply_updates(params, updates), memory), jnp.asarray(round(optimiser.sent(params)), jnp.int32)

    state, count, cost = carry
    return spend(update, state, count, cost, target)


def _judge(network: Any, params: Any) -> dict[str, Any]:
    middle = jax.tree.map(lambda x: x.mean(0), params)
    return {"loss": jnp.mean(jax.vmap(network.loss)(params)), "mean_model_loss": network.loss(middle)}
