"""Your own graph and your own loss: five clinics with different patients train one model without a server.

In one process:                 python examples/own_network.py
One process a clinic, by TCP:   laureate decentralized launch -n 5 examples/own_network.py
"""

import os

import jax
import jax.numpy as jnp
import numpy as np

from laureate.decentralized import DPSGD, DeTAG, Gossip, Network, connect, from_graph, stack, train

# Who talks to whom: clinics 0, 1, 2 in one town, a long line to 3, and on to 4.
LINKS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]
MEASUREMENTS, PATIENTS = 6, 80


def patients(seed=0):
    """Every clinic sees other people: measurements and an outcome, shifted from clinic to clinic."""
    draw = np.random.default_rng(seed)
    truth = draw.normal(size=MEASUREMENTS)
    shift = 2.0 * draw.normal(size=(5, 1, MEASUREMENTS))
    x = draw.normal(size=(5, PATIENTS, MEASUREMENTS)) + shift
    y = draw.random((5, PATIENTS)) < 1 / (1 + np.exp(-(x @ truth)))
    return jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)


def loss(params, x, y):
    """Logistic regression with a small penalty."""
    logits = x @ params["slope"] + params["offset"]
    return jnp.mean(jnp.logaddexp(0.0, logits) - y * logits) + 0.005 * jnp.sum(params["slope"] ** 2)


def gradient(key, params, data):
    """One clinic's, on sixteen of its own patients."""
    x, y = data
    some = jax.random.randint(key, (16,), 0, len(y))
    return jax.grad(loss)(params, x[some], y[some])


def main(rounds=600):
    mesh = connect() if "LAUREATE_NODE" in os.environ else None
    gossip = Gossip(from_graph(LINKS, name="clinics"))
    data = patients()
    start = stack({"slope": jnp.zeros(MEASUREMENTS), "offset": jnp.zeros(())}, gossip.size)
    everyone = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), data)

    def record(params):
        return jax.vmap(lambda p: loss(p, *everyone))(params).mean()

    phase = DeTAG.advised_rounds(gossip)
    losses = {}
    for name, optimiser in (("D-PSGD", DPSGD(gossip, 0.3)), ("DeTAG", DeTAG(gossip, 0.3, phase))):
        _, history = train(
            jax.random.key(0), optimiser, gradient, start, rounds, data=data, record=record, every=rounds, mesh=mesh
        )
        losses[name] = float(np.asarray(history.recorded)[-1])
        if jax.process_index() == 0:
            sent = float(np.asarray(history.cost)[-1]) / 1e3
            print(f"{name:<7} loss of the clinics' models on all patients {losses[name]:.4f}, {sent:.0f} kB sent")
    if jax.process_index() == 0:
        network = Network(compute=0.02, latency=0.05, bandwidth=1e6, loss=0.01, overlap=True)
        message = 2 * 4 * (MEASUREMENTS + 1)
        seconds = network.rounds(jax.random.key(1), gossip.topology, message, rounds)[-1]
        print(f"over lines of 50 ms that lose 1 % of the messages: about {float(seconds):.0f} s for {rounds} rounds")
    return losses


if __name__ == "__main__":
    main()
