"""A round of decentralised training: its cost against nodes and processes, bytes counted, and 4,096 nodes on paper.

    python benchmarks/decentralized.py [--json] [--quick]

1. Seconds a round in one process, 4 to 256 nodes on a ring, 10,000 parameters a node: DeTAG, gradient tracking, D²,
   D-PSGD and all-reduce; the bytes of a round are read off the traced program.
2. The same with 1, 2 and 4 processes, one a node, over loopback sockets.
3. What the model of the network says for 4,096 nodes: 1,000 rounds of gossip on an exponential graph against as many
   ring all-reduces, over links of a data centre and of the open internet. Computed, not measured.
"""

import json
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import print_rows, seconds_of
from laureate.decentralized import (
    D2,
    DPSGD,
    AllReduceSGD,
    DeTAG,
    Gossip,
    GradientTracking,
    Network,
    connect,
    count_bytes,
    exponential,
    launch,
    ring,
    train,
)

PARAMETERS, ROUNDS = 10_000, 20
MAKE = {
    "DeTAG": lambda gossip: DeTAG(gossip, 0.01, 5),
    "GradientTracking": lambda gossip: GradientTracking(gossip, 0.01),
    "D2": lambda gossip: D2(gossip, 0.01),
    "DPSGD": lambda gossip: DPSGD(gossip, 0.01),
    "AllReduceSGD": lambda gossip: AllReduceSGD(gossip, 0.01),
}
ON_A_NODE = "from benchmarks.decentralized import on_a_node; on_a_node()"


def pull(key, x, target):
    """The cheapest gradient there is: what is timed is the optimiser and the network."""
    return x - target


def seconds_a_round(nodes, optimiser, mesh=None, rounds=ROUNDS, repeats=5):
    """Median over repeats of a compiled run of so many rounds."""
    target = np.random.default_rng(0).normal(size=(nodes, PARAMETERS)).astype(np.float32)
    start, key = np.zeros_like(target), jax.random.key(0)
    work = lambda: train(key, optimiser, pull, start, rounds, data=target, every=rounds, mesh=mesh)[1].last.params  # noqa: E731
    return float(np.median(seconds_of(work, repeats))) / rounds


def bytes_a_round(nodes, optimiser):
    """Of all nodes together, from the program of one."""
    peer, one = optimiser.over("nodes"), jnp.zeros(PARAMETERS)
    return count_bytes(lambda g, p: peer.update(g, peer.init(p), p), one, one, axis="nodes", size=nodes)


def in_one_process(quick):
    rows = []
    for nodes in (4, 16) if quick else (4, 16, 64, 256):
        gossip = Gossip(ring(nodes), kappa=0.5)
        for name, make in MAKE.items():
            optimiser = make(gossip)
            rows.append(
                {
                    "id": f"{name}-{nodes}-nodes",
                    "work": f"a round of {name}, {nodes} nodes on a ring, {PARAMETERS} parameters each, one process",
                    "ours_s": seconds_a_round(nodes, optimiser),
                    "bytes": bytes_a_round(nodes, optimiser),
                }
            )
    return rows


def on_a_node() -> None:
    """What each process of the second part runs."""
    mesh = connect()
    nodes = jax.process_count()
    found = {
        name: seconds_a_round(nodes, MAKE[name](Gossip(ring(nodes), kappa=0.5)), mesh) for name in ("DeTAG", "DPSGD")
    }
    if jax.process_index() == 0:
        print(json.dumps(found))


def over_processes(quick):
    rows = []
    for nodes in (1, 2) if quick else (1, 2, 4):
        began = time.perf_counter()
        found = json.loads(launch([sys.executable, "-c", ON_A_NODE], nodes)[0].splitlines()[-1])
        whole = time.perf_counter() - began
        for name, seconds in found.items():
            rows.append(
                {
                    "id": f"{name}-{nodes}-processes",
                    "work": f"a round of {name}, {nodes} processes over loopback, {PARAMETERS} parameters each",
                    "ours_s": seconds,
                    "bytes": bytes_a_round(nodes, MAKE[name](Gossip(ring(nodes), kappa=0.5))) if nodes > 1 else 0,
                    "whole_run_s": whole,
                }
            )
    return rows


def on_paper(quick):
    nodes, rounds, model = (256 if quick else 4096), 1000, 4 * 25_000_000  # a model of 25 million parameters
    graph = exponential(nodes)
    places: dict[str, dict[str, Any]] = {
        "data centre": {"latency": 50e-6, "bandwidth": 1.25e9, "straggle": 0.01, "slowdown": 3.0},
        "open internet": {"latency": 0.05, "bandwidth": 1.25e7, "loss": 0.01, "straggle": 0.01, "slowdown": 3.0},
    }
    rows, key = [], jax.random.key(0)
    for place, links in places.items():
        network = Network(compute=0.2, **links)
        for what, times in (
            ("gossip, one vector", lambda n=network: n.rounds(key, graph, float(model), rounds)),
            ("gossip, two vectors", lambda n=network: n.rounds(key, graph, 2.0 * model, rounds)),
            ("ring all-reduce", lambda n=network: n.all_reduces(key, nodes, float(model), rounds)),
        ):
            hours = float(jax.jit(times)()[-1]) / 3600
            rows.append(
                {
                    "id": f"{place}-{what}".replace(" ", "-"),
                    "work": f"{rounds} rounds of {what}, {nodes} nodes, {place} (modelled)",
                    "modelled_hours": hours,
                }
            )
    return rows


def main() -> None:
    quick = "--quick" in sys.argv
    print_rows(in_one_process(quick) + over_processes(quick) + on_paper(quick))


if __name__ == "__main__":
    main()
