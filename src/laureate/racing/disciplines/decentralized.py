"""Decentralised optimisers on a network whose nodes have different data."""

from laureate.racing.discipline import Discipline, Entrant, Metric

__all__ = ["DISCIPLINE"]

RATES = {"learning_rate": (0.01, 0.03, 0.1, 0.3, 1.0)}

DISCIPLINE = Discipline(
    name="decentralized",
    title="Which optimiser gets furthest for the bytes that the nodes send?",
    kind="a network of nodes with data",
    problem="network",
    area="decentralized",
    needs={
        "graph": "who is joined to whom: a Topology, a networkx graph, an adjacency matrix or pairs of nodes",
        "data": "a tree of arrays whose first axis is the nodes: node i sees row i alone",
        "theta0": "theta0(key): one node's parameters at the start",
        "gradient": "gradient(key, params, data): of one node, at its parameters on its data",
        "loss": "loss(params): what one node's parameters are judged by, on everybody's data",
    },
    metrics=(
        Metric("loss", "the loss of a node's own parameters, mean over the nodes", "lower"),
        Metric("mean_model_loss", "the loss of the mean of all nodes' parameters", "lower"),
    ),
    unit="bytes sent by all nodes",
    entrants=(
        Entrant("dpsgd", "DPSGD(Gossip(graph), learning_rate)", RATES),
        Entrant("detag", "DeTAG(Gossip(graph), learning_rate, num_rounds=rounds)", RATES),
        Entrant("gradient-tracking", "GradientTracking(Gossip(graph), learning_rate)", RATES),
        Entrant("d2", "D2(Gossip(graph, kappa=0.5), learning_rate)", RATES),
        Entrant("choco", "ChocoSGD(Gossip(graph), learning_rate, compressor=TopK(0.25), gamma=gamma)",
                RATES | {"gamma": (0.1, 0.4)}, natural={"gamma": "both"}),
        Entrant("defacto", "DeFacto(Gossip(graph), learning_rate)", RATES),
        Entrant("all-reduce", "AllReduceSGD(Gossip(graph), learning_rate)", RATES),
    ),
    trial="laureate.racing.tracks.decentralized:trial",
    facts="laureate.racing.tracks.decentralized:facts",
    script="""
optimiser = {method}
params = stack(network.theta0(jax.random.key(0)), {nodes})
params, history = train(jax.random.key(1), optimiser, network.gradient, params, num_rounds=100, data=network.data)
print(jax.vmap(network.loss)(params).mean())
""",
    absent={"ScaledSign": "a compressor of messages, to be tried inside choco"},
    notes=("all-reduce needs a connection of everybody with everybody; the graph does not bind it",),
)  # fmt: skip
