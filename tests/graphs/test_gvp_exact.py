"""Geometric vector perceptrons against NumPy, closed forms and what must not depend on what."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from meshes_drawn import drawn

from laureate._core import light_options
from laureate.graphs import (
    GVP,
    DesignModel,
    GVPConv,
    GVPConvLayer,
    QualityModel,
    VectorDropout,
    VectorLayerNorm,
    backbone_features,
    batch_graphs,
    featurize_backbone,
    make_graph,
    pad_graph,
    pad_to_bucket,
    quality_loss,
    rotate,
)
from laureate.problems.proteins import synthetic_chains

RNG = np.random.default_rng(1)
KEY = jax.random.key(0)
CHAIN = synthetic_chains(1, 9)[0]
LIGHT = light_options(0)
MIRROR = np.diag([1.0, -1.0, 1.0])
TURN = np.array([[0.0, -0.8, 0.6], [1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])  # a rotation; its inverse is another
FEW: dict[str, Any] = {"num_layers": 1, "num_message": 1, "num_feedforward": 1}  # less to compile


def draw(rows, scalars, vectors):
    return tuple(np.asarray(RNG.normal(size=shape), np.float32) for shape in ((rows, scalars), (rows, vectors, 3)))


def of(gvp):
    """The weights as NumPy arrays."""
    return {
        name: None if value is None else np.asarray(value) for name, value in vars(gvp).items() if "map" in name
    } | {
        "bias": np.asarray(gvp.bias),
        "gate_bias": None if gvp.gate_bias is None else np.asarray(gvp.gate_bias),
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(gvp, scalars, vectors, last=False):
    """One node, in the paper's order of operations."""
    w = of(gvp)
    hidden = w["hidden_map"] @ vectors
    mixed = w["scalar_map"] @ scalars + w["norm_map"] @ np.sqrt((hidden**2).sum(-1)) + w["bias"]
    out = hidden if w["output_map"] is None else w["output_map"] @ hidden
    if w["gate_map"] is not None:
        squashed = mixed if last or gvp.vector_activation is None else sigmoid(mixed)
        out = sigmoid(w["gate_map"] @ squashed + w["gate_bias"])[:, None] * out
    elif not last:
        out = sigmoid(np.sqrt((out**2).sum(-1)))[:, None] * out
    return (mixed if last else np.maximum(mixed, 0)), out


def test_a_gvp_is_the_equation():
    scalars, vectors = draw(6, 4, 3)
    settings = [{}, {"gated": True}, {"gated": True, "activations": (jax.nn.relu, None)}, {"num_hidden": 7}]
    settings.append({"map_vectors": False})
    made = drawn(lambda: [GVP(KEY, (4, 3), (5, 2), **how) for how in settings])
    found = eqx.filter_jit(lambda made: [gvp(scalars, vectors) for gvp in made])(made)
    for gvp, (new_scalars, new_vectors) in zip(made, found, strict=True):
        assert gvp.in_dims == (4, 3)
        assert gvp.out_dims == (5, 2)
        for row in range(6):
            s, v = by_hand(gvp, scalars[row], vectors[row])
            np.testing.assert_allclose(new_scalars[row], s, atol=2e-6)
            np.testing.assert_allclose(new_vectors[row], v, atol=2e-6)


def test_a_layer_is_a_loop_over_its_edges():
    senders, receivers = np.array([1, 2, 0, 3, 3]), np.array([0, 0, 1, 1, 2])  # no edge leads to node 3
    nodes, edges = draw(4, 3, 2), draw(5, 2, 1)
    graph = make_graph(nodes, edges, senders, receivers)
    layer = drawn(lambda: GVPConvLayer(KEY, (3, 2), (2, 1)))
    arrived, after = eqx.filter_jit(lambda layer: (layer.conv(graph), layer(graph).nodes))(layer)
    expected = np.zeros((4, 3)), np.zeros((4, 2, 3))
    for e, (j, i) in enumerate(zip(senders, receivers, strict=True)):
        message = tuple(
            np.concatenate([part[k][row] for part, row in ((nodes, j), (edges, e), (nodes, i))]) for k in (0, 1)
        )
        for number, gvp in enumerate(layer.conv.message):
            message = by_hand(gvp, *message, last=number == 2)
        for total, part in zip(expected, message, strict=True):
            total[i] += part / (receivers == i).sum()
    np.testing.assert_allclose(arrived[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(arrived[1], expected[1], atol=1e-6)
    assert not np.any(arrived[1][3])

    def norm(which, scalars, vectors):
        centred = scalars - scalars.mean(-1, keepdims=True)
        length = np.sqrt((vectors**2).sum(-1).mean(-1))[:, None, None]
        normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return normed * np.asarray(which.scale) + np.asarray(which.shift), vectors / length

    inner = norm(layer.norms[0], nodes[0] + expected[0], nodes[1] + expected[1])
    block = [by_hand(layer.feedforward[0], *row) for row in zip(*inner, strict=True)]
    block = [by_hand(layer.feedforward[1], *row, last=True) for row in block]
    last = norm(layer.norms[1], inner[0] + np.stack([s for s, _ in block]), inner[1] + np.stack([v for _, v in block]))
    np.testing.assert_allclose(after[0], last[0], atol=1e-5)
    np.testing.assert_allclose(after[1], last[1], atol=1e-5)


def test_special_cases():
    @jax.jit
    def found():
        dense = GVP(KEY, (3, 0), (4, 0))
        only = GVP(KEY, (0, 2), (0, 3))
        gate = GVP(KEY, (3, 2), (3, 2), gated=True, activations=(None, None))
        none = lambda gvp: (gvp.gate_map, gvp.gate_bias)  # noqa: E731
        halved = eqx.tree_at(none, gate, replace_fn=jnp.zeros_like)
        bare = eqx.tree_at(none, gate, (None, None))
        scalars, vectors = jnp.ones((5, 3)), jnp.ones((5, 2, 3))
        norm = VectorLayerNorm(3)
        slope = jax.grad(lambda v: sum(jnp.sum(p) for p in only(jnp.ones((5, 0)), *norm(scalars, v)[1:])))
        return (
            dense(scalars, vectors[:, :0]),
            jax.nn.relu(scalars @ dense.scalar_map.T + dense.bias),
            only(scalars[:, :0], vectors)[1].shape[1],
            halved(scalars, vectors)[1],
            bare(scalars, vectors)[1],
            norm(scalars, vectors * jnp.arange(1.0, 3.0)[:, None])[1],
            slope(jnp.zeros((5, 2, 3))),
        )

    dense, plain, count, halved, bare, normed, slope = found()
    np.testing.assert_allclose(dense[0], plain, atol=1e-6)
    assert dense[1].shape == (5, 0, 3)
    assert count == 3
    np.testing.assert_allclose(halved, bare / 2, atol=1e-6)  # sigmoid(0)
    np.testing.assert_allclose((normed**2).sum(-1).mean(-1), 1.0, rtol=1e-5)
    assert np.isfinite(slope).all()


def test_half_precision_has_finite_gradients_at_zero_vectors():
    """1e-8 is 0 in float16: lengths are summed in float32."""
    half = lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.float16) if eqx.is_array(leaf) else leaf, tree)  # noqa: E731

    @jax.jit
    def found(scalars, vectors):
        gvp, norm = half((GVP(KEY, (3, 2), (3, 2)), VectorLayerNorm(3)))
        out = gvp(*norm(scalars, vectors))
        slope = jax.grad(lambda v: sum(jnp.sum(part) for part in gvp(*norm(scalars, v))))(vectors)
        return (*out, slope)

    for zero in (1.0, 0.0):
        parts = found(np.ones((2, 3), "f2"), np.full((2, 2, 3), zero, "f2"))
        assert all(part.dtype == jnp.float16 and np.isfinite(part).all() for part in parts)


def test_dropout_drops_whole_vectors_and_keeps_the_mean():
    drop = VectorDropout(0.25)
    scalars, vectors = jax.jit(lambda: drop(KEY, jnp.ones((2000, 4)), jnp.ones((2000, 4, 3))))()
    assert set(np.unique(np.round(vectors, 4))) == {0.0, np.float32(1.3333)}
    assert np.all(vectors == vectors[..., :1])
    error = 4 * np.sqrt(0.25 / 0.75 / 8000)
    assert abs(scalars.mean() - 1) < error
    assert abs(vectors[..., 0].mean() - 1) < error
    same = drop(None, scalars, vectors)
    assert same[0] is scalars
    assert same[1] is vectors


@pytest.fixture(scope="module")
def design():
    graph, _ = featurize_backbone(CHAIN.coords, num_neighbours=4)
    few = {"num_layers": 2, "num_message": 2, "num_feedforward": 1}
    model = drawn(lambda: DesignModel(KEY, node_dims=(6, 2), edge_dims=(5, 1), **few))
    return model, graph


def test_design_sees_no_residue_at_or_behind_a_place(design):
    model, graph = design

    usual = np.asarray(CHAIN.residues)
    changed = np.where(np.eye(9, dtype=bool), (usual + 7) % 20, usual)  # row j: another residue at j
    logits = eqx.filter_jit(lambda model, rows: jax.vmap(lambda residues: model(graph, residues))(rows))
    found = np.asarray(logits(model, np.concatenate([usual[None], changed])))
    seen = np.abs(found[1:] - found[0]).max(-1).T  # [logits of i, residue j]
    assert not np.triu(seen).any()
    direct = [(i, j) for j, i in zip(*map(np.asarray, (graph.senders, graph.receivers)), strict=True) if j < i]
    assert all(seen[place] > 0 for place in direct)


def test_samples_have_the_probability_that_the_model_gives_them():
    graph, _ = featurize_backbone(CHAIN.coords, num_neighbours=4)
    padded = pad_graph(graph, 11, 40)
    few = {"num_layers": 2, "num_message": 1, "num_feedforward": 1}
    model = drawn(lambda: DesignModel(KEY, node_dims=(3, 1), edge_dims=(2, 1), **few))

    @eqx.filter_jit(compiler_options={"xla_backend_optimization_level": 0})  # pyright: ignore[reportCallIssue]
    def sampled(model, key, temperature):
        residues, told = model.sample(key, padded, 3, temperature, num_incoming=4)
        logits = jax.vmap(lambda own: jax.nn.log_softmax(model(padded, own)))(residues)
        return residues, told, jnp.take_along_axis(logits, residues[..., None], -1)[..., 0]

    residues, told, expected = sampled(model, KEY, np.float32(1))
    assert np.isfinite(told).all()
    np.testing.assert_allclose(told[:, :9], expected[:, :9], atol=1e-5)
    assert len(np.unique(residues[:, :9])) > 3
    greedy = [np.asarray(sampled(model, jax.random.key(seed), np.float32(1e-6))[0][:, :9]) for seed in (0, 1)]
    assert (greedy[0] == greedy[1]).all()  # at no temperature chance has no say
    with pytest.raises(ValueError, match=r"DesignModel.num_incoming must be >= 4, the largest in-degree; got 2"):
        model.sample(KEY, graph, num_incoming=2)


class Sums(eqx.Module):
    """A layer of a decoder that is quick to compile: messages and nodes are sums, each part weighed differently."""

    weight: jax.Array

    @property
    def conv(self):
        return self

    def of_edges(self, senders, edges, receivers):
        scalars = jnp.tanh(self.weight * senders[0] + edges[0] @ jnp.ones((edges[0].shape[-1], 1)) - 3 * receivers[0])
        return scalars, senders[1] + 2 * edges[1] - self.weight * receivers[1]

    def updated(self, nodes, arrived):
        return nodes[0] + 0.5 * arrived[0], nodes[1] - arrived[1]


class Bare(DesignModel):
    """The encoder shows nodes and edges as they are."""

    def encode(self, graph, key=None):
        return graph


def test_a_sample_is_told_with_its_probability_by_hand():
    """Edges from before and from behind, up to three to a node and none to another, in no order; padding beside."""
    ends = [(3, 1), (0, 1), (4, 3), (2, 1), (1, 0), (0, 3), (1, 4), (3, 4)]
    (scalars, vectors), (links, turns) = draw(5, 2, 1), draw(8, 1, 1)
    read, weight = RNG.normal(size=(5, 20)).astype(np.float32), 0.7
    readout = lambda s, v: (jnp.concatenate([s, v[0]]) @ read, v)  # noqa: E731
    sizes: dict[str, Any] = {"num_layers": 1, "node_dims": (2, 1), "edge_dims": (1, 1)}
    model = drawn(lambda: Bare(KEY, **sizes))  # pyright: ignore[reportCallIssue]
    model = eqx.tree_at(lambda one: (one.decoder, one.readout), model, ((Sums(jnp.float32(weight)),) * 2, readout))

    @eqx.filter_jit(compiler_options=LIGHT)  # pyright: ignore[reportCallIssue]
    def sample(model, key):
        graph = pad_graph(make_graph((scalars, vectors), (links, turns), *np.array(ends).T), 6, 10)
        return model.sample(key, graph, 2, 2.5, num_incoming=3)  # its probability is that at 1 all the same

    samples, told = map(np.asarray, sample(model, KEY))
    assert (samples[0] != samples[1]).any()
    for residues, found in zip(samples, told, strict=True):
        now = scalars, vectors
        for _ in range(2):
            arrived = np.zeros_like(scalars), np.zeros_like(vectors)
            for (j, i), link, turn in zip(ends, links, turns, strict=True):
                s, v = now if j < i else (scalars, vectors)  # of what comes later nothing is said
                known = np.asarray(model.embedding)[residues[j]].sum() * (j < i)
                share = sum(to == i for _, to in ends)
                arrived[0][i] += np.tanh(weight * s[j] + link.sum() + known - 3 * s[i]) / share
                arrived[1][i] += (v[j] + 2 * turn - weight * v[i]) / share
            now = now[0] + 0.5 * arrived[0], now[1] - arrived[1]
        logits = np.concatenate([now[0], now[1][:, 0]], 1) @ read
        chosen = logits[np.arange(5), residues[:5]] - np.log(np.exp(logits).sum(1))
        np.testing.assert_allclose(found[:5], chosen, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_too_few_edges_a_node_are_told_inside_jit(design):
    model, graph = design
    sample = eqx.filter_jit(lambda graph, number: model.sample(KEY, graph, 1, 1.0, num_incoming=number)[1])
    assert np.isnan(sample(graph, 2)).all()
    assert np.isfinite(sample(graph, 5)).all()


@pytest.mark.slow
def test_forces_turn_with_the_molecule_and_add_up_to_nothing():
    graph, _ = featurize_backbone(CHAIN.coords, num_neighbours=4)
    model = drawn(lambda: QualityModel(KEY, with_residues=False, node_dims=(6, 2), **FEW))
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    linked, same = np.ones(8, bool), np.ones(len(senders), bool)

    def score(coords):
        nodes, edges = backbone_features(coords, senders, receivers, linked, senders - receivers, same)
        return model(replace(graph, nodes=nodes, edges=edges))[0]

    both = eqx.filter_jit(jax.value_and_grad(score))
    coords = np.asarray(CHAIN.coords[:, :3], "f4")
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    value, force = both(coords)
    moved_value, moved = both(coords @ turn.T.astype(np.float32) + 3.0)
    size = np.abs(force).max()
    np.testing.assert_allclose(moved_value, value, atol=1e-5)
    np.testing.assert_allclose(moved, force @ turn.T, atol=2e-3 * size)
    np.testing.assert_allclose(force.sum((0, 1)), 0.0, atol=2e-3 * size)
    torque = np.cross(CHAIN.coords[:, :3], force).sum((0, 1))
    np.testing.assert_allclose(torque, 0.0, atol=2e-2 * size)


def test_a_batch_is_its_graphs_and_a_bucket_is_shared():
    chains = synthetic_chains(3, 12)
    graphs = [
        featurize_backbone(chain.coords[:n], num_neighbours=4)[0] for chain, n in zip(chains, (10, 11, 12), strict=True)
    ]
    model = drawn(lambda: QualityModel(KEY, node_dims=(6, 2), **FEW))
    traces = []

    @eqx.filter_jit
    def score(model, graph, residues):
        traces.append(graph.num_nodes)
        return model(graph, residues)

    def padded(residues, graph):
        return np.pad(np.concatenate(residues), (0, graph.num_nodes - sum(map(len, residues))), constant_values=5)

    residues = [chain.residues[:n] for chain, n in zip(chains, (10, 11, 12), strict=True)]
    buckets = [pad_to_bucket(graph, growth=2.0) for graph in graphs]
    alone = [score(model, graph, padded([own], graph))[0] for graph, own in zip(buckets, residues, strict=True)]
    assert len(traces) == 1  # 10, 11 and 12 residues: one program
    other = np.where(np.arange(10) == 4, (residues[0] + 1) % 20, residues[0])
    assert score(model, buckets[0], padded([other], buckets[0]))[0] != alone[0]
    whole = pad_to_bucket(batch_graphs(graphs))
    np.testing.assert_allclose(score(model, whole, padded(residues, whole)), alone, atol=1e-5)


def test_losses_and_turning():
    predicted, actual = np.array([[0.2, 0.9], [2.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 0.0]])
    first = (0.09 + 0.16 + 0.49) / 2
    second = 1.5 + 0.0 + 1.5
    np.testing.assert_allclose(jax.jit(quality_loss)(predicted, actual), (first + second) / 2, rtol=1e-6)
    scalars, vectors = draw(2, 3, 4)
    turn = jax.jit(lambda matrix, *features: rotate(features, matrix))
    for matrix in (MIRROR, TURN, TURN @ MIRROR, TURN.T):  # a turn is another one backwards
        turned = turn(matrix, scalars, vectors)
        np.testing.assert_allclose(turned[1], np.einsum("ij,bvj->bvi", matrix, vectors), atol=1e-6)
        assert (np.asarray(turned[0]) == scalars).all()


def test_of_parts_is_the_whole_gathered_first():
    nodes, edges = draw(4, 3, 2), draw(5, 2, 1)
    senders, receivers = np.array([1, 2, 0, 3, 3]), np.array([0, 0, 1, 1, 2])
    conv = drawn(lambda: GVPConv(KEY, (3, 2), (4, 3), (2, 1), aggregate="sum"))
    graph = make_graph(nodes, edges, senders, receivers)
    ends = [tuple(part[which] for part in nodes) for which in (senders, receivers)]
    first, second, total = eqx.filter_jit(
        lambda conv: (conv.messages(graph), conv.of_edges(ends[0], edges, ends[1]), conv(graph))
    )(conv)
    for one, two, summed in zip(first, second, total, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
        np.testing.assert_allclose(summed[1], two[2] + two[3], atol=1e-6)
