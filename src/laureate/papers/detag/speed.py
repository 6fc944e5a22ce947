"""What a round of DeTAG costs, beside a round of plain all-reduce with Optax: 64 nodes in one process.

The gradient is the cheapest there is, so that the optimiser and the mixing are what is timed; every node keeps its own
parameters. All-reduce does less: one mean over all nodes, which no sparse network offers. The ratio is the price of a
round in arithmetic; how many rounds are needed, and what they cost on a network, is the claims' matter.
"""

import jax
import jax.numpy as jnp
import optax

from laureate.decentralized import DPSGD, DeTAG, Gossip, ring, train
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS"]

NODES, PARAMETERS, ROUNDS, RATE = 64, 10_000, 20, 0.01


def pull(key, x, target):
    """The gradient of ½‖x − target‖²."""
    return x - target


def targets():
    """Another for every node."""
    return jax.random.normal(jax.random.key(0), (NODES, PARAMETERS))


def peers(optimiser) -> Side:
    """So many rounds of one of our optimisers."""
    target, start, key = targets(), jnp.zeros((NODES, PARAMETERS)), jax.random.key(1)

    def work():
        return train(key, optimiser, pull, start, ROUNDS, data=target, every=ROUNDS)[1].last.params

    return Side(work, 1 / ROUNDS)


def all_reduce() -> Side:
    """As one would write it with Optax: on every node the same mean gradient and an optimiser."""
    target, optimiser = targets(), optax.sgd(RATE)

    @jax.jit
    def rounds(start):
        def one(carry, index):
            params, memory = carry
            keys = jax.random.split(jax.random.fold_in(jax.random.key(1), index), NODES)
            gradients = jax.vmap(pull)(keys, params, target)
            mean = jnp.broadcast_to(gradients.mean(axis=0), gradients.shape)
            updates, memory = optimiser.update(mean, memory)
            return (optax.apply_updates(params, updates), memory), None

        return jax.lax.scan(one, (start, optimiser.init(start)), jnp.arange(ROUNDS))[0][0]

    return Side(lambda: rounds(jnp.zeros((NODES, PARAMETERS))), 1 / ROUNDS)


def gossip() -> Gossip:
    """On a ring."""
    return Gossip(ring(NODES), kappa=0.5)


WORK = f"a round of DeTAG: {NODES} nodes on a ring, {PARAMETERS:,} parameters each, one process"
COMPARISONS = (
    Comparison(WORK, "all-reduce with optax.sgd", "optax", lambda: peers(DeTAG(gossip(), RATE, 5)), all_reduce),
    Comparison(
        WORK, "D-PSGD (ours)", "", lambda: peers(DeTAG(gossip(), RATE, 5)), lambda: peers(DPSGD(gossip(), RATE))
    ),
)
