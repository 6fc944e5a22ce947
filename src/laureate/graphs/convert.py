"""Graphs from and to NumPy, networkx and jraph; the last two only where they are installed."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate._core import require
from laureate.layers import Graph, batch_graphs, make_graph

__all__ = ["from_jraph", "from_networkx", "to_jraph", "to_networkx", "to_numpy"]


def to_numpy(graph: Graph) -> dict[str, Any]:
    """What is no padding, as NumPy arrays by name: ``make_graph(nodes, edges, senders, receivers)`` takes most of it.

    >>> found = to_numpy(make_graph(jnp.ones(3), None, [0, 1], [1, 2]))
    >>> sorted(found), found["receivers"].tolist()
    (['edges', 'graph_of', 'nodes', 'receivers', 'senders'], [1, 2])
    """
    nodes, edges = np.asarray(graph.node_mask), np.asarray(graph.edge_mask)
    # Padding may stand between graphs: numbers count what is left.
    place = np.cumsum(nodes) - 1
    return {
        "nodes": jax.tree.map(lambda leaf: np.asarray(leaf)[nodes], graph.nodes),
        "edges": jax.tree.map(lambda leaf: np.asarray(leaf)[edges], graph.edges),
        "senders": place[np.asarray(graph.senders)[edges]],
        "receivers": place[np.asarray(graph.receivers)[edges]],
        "graph_of": np.asarray(graph.graph_of)[nodes],
    }


def from_networkx(
    graph: Any, node_features: str | Sequence[str] = (), edge_features: str | Sequence[str] = ()
) -> Graph:
    """A networkx graph, its nodes in their order; an edge without direction becomes two.

    node_features, edge_features: names of attributes, numbers or arrays; one name gives an array, several a tuple.

    >>> import networkx
    >>> path = networkx.path_graph(3)
    >>> from_networkx(path).senders.tolist()
    [0, 1, 1, 2]
    """
    place = {node: number for number, node in enumerate(graph.nodes)}
    require("from_networkx", "graph", "a graph with nodes", len(place), lambda n: n >= 1)
    links = [(place[a], place[b], data) for a, b, data in graph.edges(data=True)]
    if not graph.is_directed():
        links = [pair for a, b, data in links for pair in ([(a, b, data)] if a == b else [(a, b, data), (b, a, data)])]
    links.sort(key=lambda link: link[:2])
    nodes = _columns("from_networkx", "node_features", node_features, [data for _, data in graph.nodes(data=True)])
    edges = _columns("from_networkx", "edge_features", edge_features, [data for *_, data in links])
    ends = [np.asarray([link[side] for link in links], int) for side in (0, 1)]
    return make_graph(nodes, edges, *ends, num_nodes=len(place))


def to_networkx(graph: Graph) -> Any:
    """A ``networkx.MultiDiGraph`` without padding; leaf i of the nodes or edges is the attribute ``"i"``.

    >>> to_networkx(make_graph(jnp.ones(3), None, [0, 1], [1, 2])).number_of_edges()
    2
    """
    networkx = _library("networkx")
    found = to_numpy(graph)
    made = networkx.MultiDiGraph()
    nodes, edges = jax.tree.leaves(found["nodes"]), jax.tree.leaves(found["edges"])
    for number, which in enumerate(found["graph_of"]):
        made.add_node(number, graph=int(which), **{str(i): leaf[number] for i, leaf in enumerate(nodes)})
    for number, ends in enumerate(zip(found["senders"].tolist(), found["receivers"].tolist(), strict=True)):
        made.add_edge(*ends, **{str(i): leaf[number] for i, leaf in enumerate(edges)})
    return made


def from_jraph(graphs: Any) -> Graph:
    """A ``jraph.GraphsTuple`` of one or more graphs; what it says of whole graphs (``globals``) is left out."""
    sizes, links = np.asarray(graphs.n_node), np.asarray(graphs.n_edge)
    require("from_jraph", "graphs", "one graph or more", sizes.tolist(), lambda n: len(n) >= 1)
    node, edge = np.cumsum([0, *sizes]), np.cumsum([0, *links])
    cut = lambda tree, at: jax.tree.map(lambda leaf: jnp.asarray(leaf)[slice(*at)], tree)  # noqa: E731
    parts = [
        make_graph(
            cut(graphs.nodes, nodes),
            cut(graphs.edges, edges),
            np.asarray(graphs.senders)[slice(*edges)] - nodes[0],
            np.asarray(graphs.receivers)[slice(*edges)] - nodes[0],
            num_nodes=int(nodes[1] - nodes[0]),
        )
        for nodes, edges in zip(itertools.pairwise(node), itertools.pairwise(edge), strict=True)
    ]
    return batch_graphs(parts)


def to_jraph(graph: Graph) -> Any:
    """A ``jraph.GraphsTuple`` without padding; its graphs must stand one after the other, as in a batch."""
    jraph = _library("jraph")
    found = to_numpy(graph)
    of_edge = found["graph_of"][found["receivers"]]
    ordered = lambda values: bool(np.all(np.diff(values) >= 0))  # noqa: E731
    rule = "graphs one after the other, nodes and edges"
    require("to_jraph", "graph", rule, "mixed", lambda _: ordered(found["graph_of"]) and ordered(of_edge))
    count = lambda of: np.bincount(of, minlength=graph.num_graphs)  # noqa: E731
    return jraph.GraphsTuple(
        nodes=found["nodes"],
        edges=found["edges"],
        senders=found["senders"],
        receivers=found["receivers"],
        n_node=count(found["graph_of"]),
        n_edge=count(of_edge),
        globals=None,
    )


def _columns(owner: str, field: str, names: str | Sequence[str], rows: list[dict]) -> Any:
    names = (names,) if isinstance(names, str) else names
    if not names:
        return None
    for name in names:
        lacking = [number for number, row in enumerate(rows) if name not in row]
        require(owner, field, f"attributes that all have; {name!r} is lacking at", lacking[:5], lambda bad: not bad)
    columns = tuple(np.asarray([row[name] for row in rows], np.float32) for name in names)
    return columns[0] if len(columns) == 1 else columns


def _library(name: str) -> Any:
    try:
        if name == "networkx":
            import networkx

            return networkx
        import jraph  # pyright: ignore[reportMissingImports]  (only where it is installed)

        return jraph
    except ImportError:
        raise ImportError(f"This needs {name}, which is not installed. Install it with: pip install {name}") from None
