"""Real backbones: secondary structure, the quality of decoys, the design of sequences.

Trials are called once a seed: what computes is compiled once for all seeds of an arm, graphs are made once a process.
"""

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate.graphs import GVP, DesignModel, Graph, GVPNetwork, QualityModel, featurize_backbone, quality_loss
from laureate.lab.claim import Settings
from laureate.papers.gvp.trials import Held, compiled, divided, in_dims, trained, tuned
from laureate.problems.proteins import AMINO_ACIDS, gdt_ts, hinge_decoys

__all__ = ["decoys", "design", "residue_labels"]


class Stacked(NamedTuple):
    """Chains padded to one length, features with a leading axis of chains; NumPy arrays.

    nodes, edges: features [c, n, ...], [c, e, ...]. senders, receivers: [c, e]. mask: [c, n], what is no padding.
    kept: which residues of each chain have a node.
    """

    nodes: tuple[np.ndarray, np.ndarray]
    edges: tuple[np.ndarray, np.ndarray]
    senders: np.ndarray
    receivers: np.ndarray
    node_mask: np.ndarray
    edge_mask: np.ndarray
    kept: tuple[np.ndarray, ...]


def stack(chains: Any, neighbors: int) -> Stacked:
    """Graphs of backbones, each padded to the longest and by one node at least, to which the padding's edges lead."""
    found = [featurize_backbone(coords, num_neighbours=neighbors) for coords in chains]
    graphs = [graph for graph, _ in found]
    nodes, edges = max(graph.num_nodes for graph in graphs) + 1, max(graph.num_edges for graph in graphs)

    def padded(leaves, size, value=0):
        made = np.full((len(leaves), size, *np.shape(leaves[0])[1:]), value, np.asarray(leaves[0]).dtype)
        for row, leaf in zip(made, leaves, strict=True):
            row[: len(leaf)] = leaf
        return made

    each = lambda get, size, value=0: padded([get(graph) for graph in graphs], size, value)  # noqa: E731
    return Stacked(
        (each(lambda g: g.nodes[0], nodes), each(lambda g: g.nodes[1], nodes)),
        (each(lambda g: g.edges[0], edges), each(lambda g: g.edges[1], edges)),
        each(lambda g: g.senders, edges, nodes - 1),
        each(lambda g: g.receivers, edges, nodes - 1),
        each(lambda g: g.node_mask, nodes),
        each(lambda g: g.edge_mask, edges),
        tuple(report.residues for _, report in found),
    )


def joined(data: Stacked, rows: Array, seen: Array) -> Graph:
    """The graph of some chains side by side. seen: [2], what scalars and vectors are multiplied by, 1 or 0."""
    take = lambda leaf: leaf[rows]  # noqa: E731
    flat = lambda leaf: leaf[rows].reshape(-1, *leaf.shape[2:])  # noqa: E731
    size, number = data.node_mask.shape[1], len(rows)
    shift = (jnp.arange(number) * size)[:, None]
    own = jnp.broadcast_to(jnp.arange(number)[:, None], (number, size))
    (s, v), (es, ev) = (jax.tree.map(flat, part) for part in (data.nodes, data.edges))
    mask = flat(data.node_mask)
    return Graph(
        (s * seen[0], v * seen[1]),
        (es * seen[0], ev * seen[1]),
        (take(data.senders) + shift).reshape(-1),
        (take(data.receivers) + shift).reshape(-1),
        jnp.where(mask, own.reshape(-1), number),
        mask,
        flat(data.edge_mask),
        number,
    )


class DenseLayer(eqx.Module):
    """The ablation "MLP layer": in a GVP's place a dense layer on scalars and all components of vectors."""

    weights: Array
    bias: Array
    vectors: int = eqx.field(static=True)
    in_dims: tuple[int, int] = eqx.field(static=True)
    active: bool = eqx.field(static=True)

    def __init__(self, key: Array, gvp: GVP):
        (s, v), (t, u) = gvp.in_dims, gvp.out_dims
        inputs = s + 3 * v
        self.weights = jax.random.uniform(key, (t + 3 * u, inputs), minval=-1.0) / np.sqrt(inputs)
        self.bias = jnp.zeros(t + 3 * u)
        self.vectors, self.in_dims, self.active = u, (s, v), gvp.activation is not None

    def __call__(self, scalars: Array, vectors: Array) -> tuple[Array, Array]:
        """As a GVP's."""
        flat = jnp.concatenate([scalars, vectors.reshape(*vectors.shape[:-2], -1)], -1)
        out = flat @ self.weights.T + self.bias
        out = jax.nn.relu(out) if self.active else out
        cut = out.shape[-1] - 3 * self.vectors
        return out[..., :cut], out[..., cut:].reshape(*out.shape[:-1], self.vectors, 3)

    def of_parts(self, parts: Any) -> tuple[Array, Array]:
        """As a GVP's."""
        taken = [(s, v) if index is None else (s[index], v[index]) for (s, v), index in parts]
        return self(jnp.concatenate([s for s, _ in taken], -1), jnp.concatenate([v for _, v in taken], -2))


def changed(key: Array, model: Any, layer: str) -> Any:
    """The model with every GVP replaced where the layer is to be dense."""
    if layer != "dense":
        return model
    is_gvp = lambda node: isinstance(node, GVP)  # noqa: E731
    leaves, structure = jax.tree.flatten(model, is_leaf=is_gvp)
    keys = jax.random.split(key, len(leaves))
    made = [DenseLayer(k, leaf) if is_gvp(leaf) else leaf for k, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, made)


def sizes(layer: str, scale: Settings) -> dict[str, Any]:
    """Settings of a network."""
    how: dict[str, Any] = {"node_dims": scale.dims, "edge_dims": scale.edge_dims, "num_layers": scale.layers}
    return how | ({"map_vectors": False} if layer == "no-map" else {})


@cache
def _graphs(held: Held, neighbors: int) -> Stacked:
    return stack(held.thing.chains, neighbors)


def _per_residue(data: Stacked, values: Any) -> np.ndarray:
    """[c, n], integers: of the residues that have a node; 0 for padding."""
    made = np.zeros(data.node_mask.shape, np.int32)
    for row, kept, given in zip(made, data.kept, values, strict=True):
        row[: len(kept)] = np.asarray(given)[kept]
    return made


# --- secondary structure ----------------------------------------------------------------------------------------------


def _arrays(data: Stacked) -> Stacked:
    return jax.tree.map(jnp.asarray, data._replace(kept=()))


def _seen(arm: Settings) -> Array:
    """An argument and no constant: what is seen and what is not share a program."""
    return jnp.asarray([arm.scalars, arm.vectors])


def residue_labels(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The share of residues of new chains whose label is found."""
    data, labels = _labels(Held(problem), scale.neighbors)
    known, _, new = (np.asarray(part) for part in divided(jax.random.split(key)[0], len(labels), scale.test))
    mask = data.node_mask
    more = {}
    if arm.model == "majority":
        found = np.full(labels[new].shape, np.bincount(labels[known][mask[known]]).argmax())
    elif arm.model == "trees":
        found, rate = tuned(_trees, key, arm, problem, Settings(scale, rates=scale.tree_rates))
        more = {"tree_rate": rate}
    else:
        found, rate = tuned(_labelling, key, arm, problem, scale)
        more = {"rate": rate}
    right = (np.asarray(found) == labels[new]) & mask[new]
    by_chain = right.sum(1) / mask[new].sum(1)
    shares = {"accuracy": right.sum() / mask[new].sum(), "accuracy_by_chain": by_chain.mean()}
    return {name: jnp.asarray(share) for name, share in shares.items()} | more


@cache
def _labels(held: Held, neighbors: int) -> tuple[Stacked, np.ndarray]:
    data = _graphs(held, neighbors)
    return data, _per_residue(data, held.thing.labels)


def _labelling(key, rate, arm, problem, scale):
    data, labels = _labels(Held(problem), scale.neighbors)
    split, learn = jax.random.split(key)
    rows = divided(split, len(labels), scale.test)
    given = _arrays(data), jnp.asarray(labels), _seen(arm), rows
    return _labelled(learn, rate, arm.layer, scale, int(labels.max()) + 1, *given)


def _trees(key, rate, arm, problem, scale):
    """Boosted trees on the angles of a residue and of ``window`` residues on either side."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    data, labels = _labels(Held(problem), scale.neighbors)
    known, valid, new = (np.asarray(part) for part in divided(jax.random.split(key)[0], len(labels), scale.test))
    angles, mask, window = data.nodes[0], data.node_mask, scale.window
    wide = np.pad(angles, ((0, 0), (window, window), (0, 0)))
    length = angles.shape[1]
    inputs = np.concatenate([wide[:, shift : shift + length] for shift in range(2 * window + 1)], -1)
    of = lambda rows: (inputs[rows][mask[rows]], labels[rows][mask[rows]])  # noqa: E731
    trees = HistGradientBoostingClassifier(learning_rate=float(rate), random_state=0).fit(*of(known))
    found = np.zeros(labels[new].shape, np.int32)
    found[mask[new]] = trees.predict(of(new)[0])
    return 1 - trees.score(*of(valid)), found


@compiled
def _labelled(key, rate, layer, scale, classes, data, labels, seen, rows):
    make, other, train = jax.random.split(key, 3)
    known, valid, new = rows
    graph = joined(data, known[:1], seen)
    model = GVPNetwork(make, *in_dims(graph), (classes, 0), dropout=scale.dropout, **sizes(layer, scale))
    model = changed(other, model, layer)

    def missed(graph, rows, logits):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[rows].reshape(-1, 1), 1)[:, 0]
        return -jnp.sum(jnp.where(graph.node_mask, chosen, 0.0)), jnp.sum(graph.node_mask)

    def loss(model, places, key):
        graph = joined(data, known[places], seen)
        total, count = missed(graph, known[places], model(graph, key)[0])
        return total / count

    model = trained(train, model, loss, len(known), scale.steps, scale.batch, rate)

    def of(row):
        graph = joined(data, row[None], seen)
        logits = model(graph)[0]
        return missed(graph, row[None], logits), logits.argmax(-1)

    (total, count), answers = jax.lax.map(of, jnp.concatenate([valid, new]))
    return total[: len(valid)].sum() / count[: len(valid)].sum(), answers[len(valid) :]


# --- the quality of decoys --------------------------------------------------------------------------------------------


@cache
def _decoys(held: Held, number: int, neighbors: int) -> tuple[Stacked, np.ndarray, np.ndarray]:
    """Graphs of [chain × decoy], their quality [c, d], and contacts a residue [c, d]; the same for all seeds."""
    rng = np.random.default_rng(0)
    models, quality, contacts = [], [], []
    for coords in held.thing.chains:
        made = hinge_decoys(rng, coords, number)
        alpha = made[:, :, 1]
        models.extend(made)
        quality.append(gdt_ts(alpha, coords[:, 1]))
        apart = np.linalg.norm(alpha[:, :, None] - alpha[:, None], axis=-1)
        far = np.abs(np.subtract.outer(np.arange(len(coords)), np.arange(len(coords)))) > 3
        contacts.append(((apart < 8.0) & far).sum((1, 2)) / len(coords))
    return stack(models, neighbors), np.asarray(quality), np.asarray(contacts)


def decoys(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Correlation of predicted and actual quality of decoys of new chains: within each chain, and over all."""
    _, quality, contacts = _decoys(Held(problem), scale.decoys, scale.neighbors)
    known, _, new = (np.asarray(part) for part in divided(jax.random.split(key)[0], len(quality), scale.test))
    more = {}
    if arm.model == "mean":
        found = np.full(quality[new].shape, quality[known].mean())
    elif arm.model == "contacts":
        slope, start = np.polyfit(contacts[known].reshape(-1), quality[known].reshape(-1), 1)
        found = start + slope * contacts[new]
    else:
        found, rate = tuned(_scoring, key, arm, problem, scale)
        more = {"rate": rate}
    found = np.asarray(found)
    each = [_pearson(one, two) for one, two in zip(found, quality[new], strict=True)]
    return {
        "per_target": jnp.asarray(np.mean(each)),
        "overall": jnp.asarray(_pearson(found.reshape(-1), quality[new].reshape(-1))),
        "error": jnp.asarray(np.sqrt(np.mean((found - quality[new]) ** 2))),
    } | more


def _scoring(key, rate, arm, problem, scale):
    data, quality, _ = _decoys(Held(problem), scale.decoys, scale.neighbors)
    split, learn = jax.random.split(key)
    residues = _per_residue(data, [chain for chain in problem.residues for _ in range(scale.decoys)])
    given = _arrays(data), jnp.asarray(residues), jnp.asarray(quality, jnp.float32), _seen(arm)
    return _scored(learn, rate, arm.layer, scale, *given, divided(split, len(quality), scale.test))


def _pearson(one: np.ndarray, two: np.ndarray) -> float:
    """0 where one of them is constant."""
    a, b = one - one.mean(), two - two.mean()
    size = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / size) if size > 1e-9 else 0.0


@compiled
def _scored(key, rate, layer, scale, data, residues, quality, seen, rows):
    make, other, train = jax.random.split(key, 3)
    known, valid, new = rows
    model = changed(other, QualityModel(make, dropout=scale.dropout, **sizes(layer, scale)), layer)
    each = quality.shape[1]

    def predicted(model, rows, key=None):
        return model(joined(data, rows, seen), residues[rows].reshape(-1), key)

    def loss(model, places, key):
        targets = known[places]
        draw, drop = jax.random.split(key)
        # Two different decoys of each target.
        first, more = jax.random.randint(draw, (2, len(places)), 0, jnp.array([[each], [each - 1]]))
        pair = jnp.stack([first, (first + 1 + more) % each], -1)
        rows = (targets[:, None] * each + pair).reshape(-1)
        return quality_loss(predicted(model, rows, drop).reshape(-1, 2), quality[targets[:, None], pair])

    model = trained(train, model, loss, len(known), scale.steps, scale.batch, rate)
    rows = jnp.concatenate([valid, new])
    found = jax.lax.map(lambda row: predicted(model, row * each + jnp.arange(each)), rows)
    # The rate is chosen by what is reported: the correlation within each target.
    a, b = (part - part.mean(1, keepdims=True) for part in (found[: len(valid)], quality[valid]))
    size = jnp.sqrt((a**2).sum(1) * (b**2).sum(1))
    return -jnp.mean((a * b).sum(1) / jnp.maximum(size, 1e-9)), found[len(valid) :]


# --- the design of sequences ------------------------------------------------------------------------------------------


def design(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """How likely the real residues of new chains are given those before, and how often the likeliest is right."""
    data, residues = _sequences(Held(problem), scale.neighbors)
    known, _, new = (np.asarray(part) for part in divided(jax.random.split(key)[0], len(residues), scale.test))
    mask = data.node_mask
    more = {}
    if arm.model == "unigram":
        counts = 1.0 + np.bincount(residues[known][mask[known]], minlength=len(AMINO_ACIDS))
        logits = np.broadcast_to(np.log(counts / counts.sum()), (*residues[new].shape, len(AMINO_ACIDS)))
    else:
        logits, rate = tuned(_designing, key, arm, problem, scale)
        logits, more = np.asarray(logits), {"rate": rate}
    chosen = np.take_along_axis(logits, residues[new][..., None], -1)[..., 0]
    recovered = ((logits.argmax(-1) == residues[new]) & mask[new]).sum(1) / mask[new].sum(1)
    missed = -chosen[mask[new]].mean()
    return {
        "nats": jnp.asarray(missed),
        "perplexity": jnp.asarray(np.exp(missed)),
        "recovery": jnp.asarray(np.median(recovered)),
    } | more


@cache
def _sequences(held: Held, neighbors: int) -> tuple[Stacked, np.ndarray]:
    data = _graphs(held, neighbors)
    return data, _per_residue(data, held.thing.residues)


def _designing(key, rate, arm, problem, scale):
    data, residues = _sequences(Held(problem), scale.neighbors)
    split, learn = jax.random.split(key)
    given = _arrays(data), jnp.asarray(residues), _seen(arm), divided(split, len(residues), scale.test)
    return _designed(learn, rate, arm.model, arm.layer, scale, *given)


class Local(eqx.Module):
    """Residues from the angles of their own place alone: no neighbours, no sequence."""

    inner: eqx.nn.MLP

    def __call__(self, graph: Graph, residues: Array, key: Array | None = None) -> Array:
        """Logits."""
        return jax.vmap(self.inner)(graph.nodes[0])


@compiled
def _designed(key, rate, kind, layer, scale, data, residues, seen, rows):
    make, train = jax.random.split(key)
    known, valid, new = rows
    if kind == "local":
        model = Local(eqx.nn.MLP(6, len(AMINO_ACIDS), 64, 2, key=make))
    else:
        model = DesignModel(make, dropout=scale.dropout, **sizes(layer, scale))

    def log_probabilities(model, rows, key=None):
        graph = joined(data, rows, seen)
        return graph.node_mask, jax.nn.log_softmax(model(graph, residues[rows].reshape(-1), key))

    def missed(rows, mask, found):
        chosen = jnp.take_along_axis(found, residues[rows].reshape(-1, 1), 1)[:, 0]
        return -jnp.sum(jnp.where(mask, chosen, 0.0)), jnp.sum(mask)

    def loss(model, places, key):
        total, count = missed(known[places], *log_probabilities(model, known[places], key))
        return total / count

    model = trained(train, model, loss, len(known), scale.steps, scale.batch, rate)

    def of(row):
        mask, found = log_probabilities(model, row[None])
        return missed(row[None], mask, found), found

    (total, count), found = jax.lax.map(of, jnp.concatenate([valid, new]))
    return total[: len(valid)].sum() / count[: len(valid)].sum(), found[len(valid) :]
