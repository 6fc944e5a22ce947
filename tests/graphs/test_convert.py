"""Graphs from and to NumPy, networkx and jraph."""

import sys
from types import SimpleNamespace

import networkx
import numpy as np
import pytest

from laureate.graphs import (
    batch_graphs,
    from_jraph,
    from_networkx,
    make_graph,
    pad_graph,
    to_jraph,
    to_networkx,
    to_numpy,
)

NODES, EDGES = np.arange(3.0), np.array([[0.5, 1.0], [2.0, 3.0]])


def one():
    return make_graph(NODES, EDGES, [0, 1], [1, 2])


def test_numpy_leaves_padding_out():
    found = to_numpy(pad_graph(batch_graphs([one(), one()]), 9, 11))
    assert found["senders"].tolist() == [0, 1, 3, 4]
    assert found["receivers"].tolist() == [1, 2, 4, 5]
    assert found["graph_of"].tolist() == [0, 0, 0, 1, 1, 1]
    assert found["edges"].shape == (4, 2)
    again = make_graph(found["nodes"], found["edges"], found["senders"], found["receivers"])
    assert again.num_nodes == 6


def test_networkx_there_and_back():
    made = networkx.Graph()
    made.add_node("a", mass=1.0, place=[0.0, 1.0])
    made.add_node("b", mass=2.0, place=[2.0, 3.0])
    made.add_edge("a", "b", length=5.0)
    made.add_edge("b", "b", length=7.0)  # a loop is one edge
    graph = from_networkx(made, ("mass", "place"), ("length",))
    assert graph.nodes[0].tolist() == [1.0, 2.0]
    assert graph.nodes[1].shape == (2, 2)
    assert list(zip(graph.senders.tolist(), graph.receivers.tolist(), graph.edges.tolist(), strict=True)) == [
        (0, 1, 5.0),
        (1, 0, 5.0),
        (1, 1, 7.0),
    ]
    directed = from_networkx(networkx.DiGraph([(0, 1), (2, 1)]))
    assert directed.senders.tolist() == [0, 2]
    back = to_networkx(pad_graph(graph, 5, 8))
    assert back.number_of_nodes() == 2
    assert sorted((a, b, float(data["0"])) for a, b, data in back.edges(data=True)) == [
        (0, 1, 5.0),
        (1, 0, 5.0),
        (1, 1, 7.0),
    ]
    assert float(back.nodes[1]["0"]) == 2.0
    alone = from_networkx(made, "mass", "length")  # one name is no row of letters
    np.testing.assert_array_equal(alone.nodes, graph.nodes[0])
    np.testing.assert_array_equal(alone.edges, graph.edges)
    for names in (("charge",), "charge"):
        with pytest.raises(ValueError, match=r"'charge' is lacking at; got \[0, 1\]"):
            from_networkx(made, names)
    with pytest.raises(ValueError, match=r"from_networkx.graph must be a graph with nodes; got 0"):
        from_networkx(networkx.Graph())


def test_jraph_there_and_back(monkeypatch):
    """jraph is archived and seldom installed: its one class is a tuple of arrays by name."""
    stand_in = SimpleNamespace(GraphsTuple=lambda **fields: SimpleNamespace(**fields))
    monkeypatch.setitem(sys.modules, "jraph", stand_in)
    both = to_jraph(pad_graph(batch_graphs([one(), one()]), 9, 11))
    assert both.n_node.tolist() == [3, 3]
    assert both.n_edge.tolist() == [2, 2]
    again = from_jraph(both)
    assert again.num_graphs == 2
    assert again.receivers.tolist() == [1, 2, 4, 5]
    assert again.graph_of.tolist() == [0, 0, 0, 1, 1, 1]
    monkeypatch.setitem(sys.modules, "jraph", None)
    with pytest.raises(ImportError, match="Install it with: pip install jraph"):
        to_jraph(one())
