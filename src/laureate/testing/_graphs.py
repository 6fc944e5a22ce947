"""What every network on graphs promises."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.layers import Graph, pad_graph
from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    inexact_types,
    no_retrace,
    numbers_as_arrays,
    same_bits,
)

__all__ = ["check_graph_network"]


def check_graph_network(
    network: Any,
    graph: Graph,
    *,
    call: Callable[[Any, Graph], Any] | None = None,
    others: Sequence[Any] = (),
    equivariant: bool = False,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check a network whose output has a row for each node of the graph.

    network: an Equinox module. call: how it is called on a graph; ``network(graph)`` unless said. A graph as the
        answer stands for its nodes.
    graph: a small one without padding, of float32, with an edge to node 0.
    others: the same network with other numbers; each must differ and compile nothing.
    equivariant: whether nodes, edges and the answer are scalars ``[n, s]`` and vectors ``[n, v, 3]``, and the
        vectors must turn with the graph's.
    unused: numbers of the network that rightly change nothing, by the ends of their paths.
    skip: properties to leave out: those in the list that is returned.

    Properties: a row a node; padding changes nothing, whatever stands in it; nodes and edges in another order give the
    same in that order; a node without edges has finite numbers; no retrace on a second call nor with another number;
    every number is used; finite gradients, also where all features are 0; vectors turn, scalars stay, for rotations and
    reflections; double and half precision stay so.
    """
    check = Check(type(network).__name__, skip)
    network, others = numbers_as_arrays(network), [numbers_as_arrays(other) for other in others]

    def answer(network, graph):
        found = call(network, graph) if call else network(graph)
        return found.nodes if isinstance(found, Graph) else found

    program = Program(answer)
    rows, count = graph.num_nodes, graph.num_edges
    padded = pad_graph(graph, rows + 3, count + 4)
    # What is made of graphs and answers is made by NumPy: outside jit every shape would be a program.
    whole = jax.tree.map(np.asarray, program(network, padded))
    real = lambda tree: jax.tree.map(lambda leaf: np.asarray(leaf)[:rows], tree)  # noqa: E731
    usual = real(whole)
    if check.wants("a row a node"):
        shapes = [leaf.shape for leaf in jax.tree.leaves(whole)]
        check.require(all(shape[0] == rows + 3 for shape in shapes), f"{rows + 3} rows", shapes, "Keep the padding.")
    if check.wants("padding"):
        remedy = "Sum by Graph.to_receivers, of_graphs: they leave padding out."
        dirty = replace(padded, nodes=_dirt(padded.nodes, rows), edges=_dirt(padded.edges, count))
        check.bits(real(program(network, dirty)), usual, "the same whatever stands in the padding", remedy)
        alone = Program(answer)(network, graph)
        check.close(usual, alone, 1e-5, "the same without padding", remedy, floor=1e-3)
    if check.wants("order"):
        rng = np.random.default_rng(0)
        order, edges = rng.permutation(rows), rng.permutation(count)
        turned = pad_graph(_reordered(graph, order, edges), rows + 3, count + 4)
        found = real(program(network, turned))
        there = jax.tree.map(lambda leaf: leaf[order], usual)
        check.close(found, there, 1e-4, "the rows in the order of the nodes", "Read no node by its place.", floor=1e-3)
    if check.wants("isolated nodes"):
        lonely = replace(padded, edge_mask=np.asarray(padded.edge_mask) & (np.asarray(padded.receivers) != 0))
        found = program(network, lonely)
        check.require(
            _finite(found), "finite numbers at a node that no edge leads to", "others", "Divide by max(n, 1)."
        )
    calls = [lambda: program(network, padded), *(lambda other=other: program(other, padded) for other in others)]
    no_retrace(check, program, calls, len(others))
    if others and check.wants("numbers are used"):
        for other in others:
            check.require(not same_bits(program(other, padded), whole), "other answers", "the same", "")
    every_number_is_used(check, network, lambda which: program(which, padded), unused)
    if check.wants("gradients"):
        arrays, rest = eqx.partition(network, eqx.is_inexact_array)

        def total(arrays, graph):
            out = answer(eqx.combine(arrays, rest), graph)
            return sum(jnp.sum(jnp.square(leaf[:rows])) for leaf in jax.tree.leaves(out))

        gradient = Program(lambda arrays, graph: jax.grad(total)(arrays, graph))
        zero = lambda tree: jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), tree)  # noqa: E731
        for name, given in (
            ("", padded),
            (" where all is 0", replace(padded, nodes=zero(padded.nodes), edges=zero(padded.edges))),
        ):
            check.require(_finite(gradient(arrays, given)), f"finite gradients{name}", "others", "Clamp norms.")
    if equivariant and check.wants("equivariance"):
        for name, matrix in (("rotation", _rotation()), ("reflection", _rotation() @ np.diag([1.0, 1.0, -1.0]))):
            turn = lambda pair, q=matrix: (pair[0], np.asarray(pair[1]) @ q.T.astype(pair[1].dtype))  # noqa: E731
            found = program(network, replace(padded, nodes=turn(padded.nodes), edges=turn(padded.edges)))
            check.close(
                found, turn(whole), 1e-4, f"vectors that turn and scalars that stay, under a {name}", BIAS, 1e-2
            )
    for name, kind in (("float64", np.float64), ("half precision", jnp.bfloat16)):
        if check.wants(name):
            as_kind = lambda leaf, k=kind: np.asarray(leaf, k) if eqx.is_inexact_array(leaf) else leaf  # noqa: E731
            with jax.enable_x64(True):
                given = replace(
                    graph, nodes=jax.tree.map(as_kind, graph.nodes), edges=jax.tree.map(as_kind, graph.edges)
                )
                types = inexact_types(eqx.filter_eval_shape(answer, jax.tree.map(as_kind, network), given))
            check.require(types <= {np.dtype(kind).name}, name, types, "Take the features' type for all numbers.")
    return check.finish()


BIAS = "A map of vectors must have no bias and no activation of single components."


def _rotation() -> np.ndarray:
    q, r = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.sign(np.linalg.det(q))


def _reordered(graph: Graph, order: np.ndarray, edges: np.ndarray) -> Graph:
    place = np.argsort(order)
    return replace(
        graph,
        nodes=jax.tree.map(lambda leaf: np.asarray(leaf)[order], graph.nodes),
        edges=jax.tree.map(lambda leaf: np.asarray(leaf)[edges], graph.edges),
        senders=place[np.asarray(graph.senders)[edges]].astype(np.int32),
        receivers=place[np.asarray(graph.receivers)[edges]].astype(np.int32),
        graph_of=np.asarray(graph.graph_of)[order],
    )


def _dirt(tree: Any, first: int) -> Any:
    """Sevens from there on."""
    sevens = lambda leaf: np.concatenate([np.asarray(leaf)[:first], np.full_like(np.asarray(leaf)[first:], 7.0)])  # noqa: E731
    return jax.tree.map(sevens, tree)


def _finite(tree: Any) -> bool:
    return all(bool(np.all(np.isfinite(leaf))) for leaf in jax.tree.leaves(tree))
