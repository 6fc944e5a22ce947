"""A GVP layer beside gvp-pytorch's arithmetic in PyTorch and an e3nn-jax layer of equal width; growth with the edges.

300 residues with 30 neighbours each, nodes (100, 16), edges (32, 1), without dropout, forward and with gradients of all
weights. gvp-pytorch needs extensions that no longer install, so its operations stand here: gather, concatenate, three
GVPs, scatter, feed-forward, norms.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.graphs import GVPConvLayer, make_graph
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS", "Work"]


class Work(NamedTuple):
    """What is measured: a graph in which every node has as many neighbours, numbers of features, gradient or not."""

    nodes: int = 300
    neighbors: int = 30
    scalars: int = 100
    vectors: int = 16
    edge_scalars: int = 32
    gradient: bool = True


def made(work: Work) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Features of nodes and edges, senders and receivers."""
    rng = np.random.default_rng(0)
    edges = work.nodes * work.neighbors
    shapes = [(work.nodes, work.scalars), (work.nodes, work.vectors, 3), (edges, work.edge_scalars), (edges, 1, 3)]
    features = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    return features, rng.integers(work.nodes, size=edges), np.repeat(np.arange(work.nodes), work.neighbors)


def our_side(work: Work) -> Side:
    """One layer, compiled."""
    (s, v, es, ev), senders, receivers = made(work)
    graph = make_graph((s, v), (es, ev), senders, receivers)
    layer = GVPConvLayer(jax.random.key(0), (work.scalars, work.vectors), (work.edge_scalars, 1), dropout=0.0)
    return _side(layer, graph, work, lambda layer, graph: layer(graph).nodes)


def _side(layer: Any, graph: Any, work: Work, call: Any) -> Side:
    def total(layer, graph):
        return sum(jnp.sum(part**2) for part in call(layer, graph))

    program = eqx.filter_jit(eqx.filter_grad(total) if work.gradient else call)
    return Side(lambda: program(layer, graph))


def torch_side(work: Work) -> Side:
    """The same in PyTorch, on one thread: concatenated at every edge, as gvp-pytorch does."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    nn = torch.nn

    class Gvp(nn.Module):
        def __init__(self, s, v, t, u, active=True):
            super().__init__()
            hidden = max(v, u)
            self.wh, self.wv = nn.Linear(v, hidden, bias=False), nn.Linear(hidden, u, bias=False)
            self.ws, self.active = nn.Linear(s + hidden, t), active

        def forward(self, s, v):
            hidden = self.wh(v.transpose(-1, -2))
            norm = torch.sqrt(torch.clamp(torch.sum(hidden**2, -2), min=1e-8))
            s = self.ws(torch.cat([s, norm], -1))
            v = self.wv(hidden).transpose(-1, -2)
            if self.active:
                v = v * torch.sigmoid(torch.sqrt(torch.clamp(torch.sum(v**2, -1, keepdim=True), min=1e-8)))
                s = torch.relu(s)
            return s, v

    n, m, es = work.scalars, work.vectors, work.edge_scalars
    whole = 2 * n + es, 2 * m + 1
    message = nn.ModuleList([Gvp(*whole, n, m), Gvp(n, m, n, m), Gvp(n, m, n, m, False)])
    block = nn.ModuleList([Gvp(n, m, 4 * n, 2 * m), Gvp(4 * n, 2 * m, n, m, False)])
    norms = nn.ModuleList([nn.LayerNorm(n), nn.LayerNorm(n)])
    (s, v, e, ev), senders, receivers = made(work)
    s, v, e, ev, j, i = (torch.from_numpy(part) for part in (s, v, e, ev, senders, receivers))
    count = torch.bincount(i, minlength=len(s)).clamp(min=1).float()

    def normed(norm, s, v):
        square = torch.clamp(torch.sum(v**2, -1, keepdim=True), min=1e-8)
        return norm(s), v / torch.sqrt(torch.mean(square, -2, keepdim=True))

    def layer():
        ms, mv = torch.cat([s[j], e, s[i]], -1), torch.cat([v[j], ev, v[i]], -2)
        for gvp in message:
            ms, mv = gvp(ms, mv)
        hs = s + torch.zeros_like(s).index_add(0, i, ms) / count[:, None]
        hv = v + torch.zeros_like(v).index_add(0, i, mv) / count[:, None, None]
        hs, hv = normed(norms[0], hs, hv)
        bs, bv = hs, hv
        for gvp in block:
            bs, bv = gvp(bs, bv)
        return normed(norms[1], hs + bs, hv + bv)

    weights = [*message.parameters(), *block.parameters(), *norms.parameters()]

    def run():
        if not work.gradient:
            with torch.no_grad():
                return layer()
        out = layer()
        return torch.autograd.grad(sum((part**2).sum() for part in out), weights, allow_unused=True)

    return Side(run)


def e3nn_side(work: Work) -> Side:
    """A tensor-product layer of equal width: features of senders times direction, weights from the edges' scalars."""
    import e3nn_jax as e3nn  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)

    (s, v, es, ev), senders, receivers = made(work)
    n, m = work.scalars, work.vectors
    wide = e3nn.Irreps(f"{n}x0e + {m}x1o")
    rng = np.random.default_rng(0)
    nodes = e3nn.IrrepsArray(wide, jnp.concatenate([s, v.reshape(len(s), -1)], -1))
    directions = e3nn.spherical_harmonics("0e + 1o", e3nn.IrrepsArray("1o", jnp.asarray(ev[:, 0])), normalize=True)
    product = e3nn.tensor_product(nodes[:1], directions[:1]).filter(["0e", "1o"]).regroup()
    inner = product.irreps
    paths = inner.num_irreps
    mix = e3nn.flax.Linear(wide) if hasattr(e3nn, "flax") else None
    if mix is None:
        raise RuntimeError("this e3nn-jax has no e3nn_jax.flax: pip install flax")
    edge_map = jnp.asarray(rng.normal(size=(work.edge_scalars, paths)), jnp.float32) / np.sqrt(work.edge_scalars)
    parameters = mix.init(jax.random.key(0), product)
    scalars = jnp.asarray(es)

    def call(weights, nodes):
        edge_map, parameters = weights
        sent = e3nn.tensor_product(nodes[senders], directions).filter(["0e", "1o"]).regroup()
        sent = sent * jax.nn.silu(scalars @ edge_map)
        arrived = e3nn.scatter_sum(sent, dst=jnp.asarray(receivers), output_size=work.nodes) / work.neighbors
        return (nodes + mix.apply(parameters, arrived)).array

    total = lambda weights, nodes: jnp.sum(call(weights, nodes) ** 2)  # noqa: E731
    program = jax.jit(jax.grad(total) if work.gradient else call)
    weights = edge_map, parameters
    note = "one tensor product and one linear map, no feed-forward block: less than a GVP layer does"
    return Side(lambda: program(weights, nodes), note=note)


TRAINED, ANSWER = Work(), Work(gradient=False)
# Ten times the edges each, by the same layer of few channels: linear growth is a ratio of ten.
GROWTH = [Work(nodes, 10, 8, 2, 8, gradient=False) for nodes in (1_000, 10_000, 100_000)]
COMPARISONS = (
    Comparison(
        "a GVP layer on 300 residues, 30 neighbours, with gradients",
        "gvp-pytorch's operations",
        "torch",
        lambda: our_side(TRAINED),
        lambda: torch_side(TRAINED),
    ),
    Comparison(
        "a GVP layer on 300 residues, 30 neighbours, forward",
        "gvp-pytorch's operations",
        "torch",
        lambda: our_side(ANSWER),
        lambda: torch_side(ANSWER),
    ),
    Comparison(
        "a GVP layer on 300 residues, 30 neighbours, with gradients",
        "e3nn-jax, a tensor product of equal width",
        "e3nn-jax",
        lambda: our_side(TRAINED),
        lambda: e3nn_side(TRAINED),
    ),
    Comparison(
        "10⁴ edges, (8, 2) channels, forward",
        "the same on 10⁵ edges: ten times is linear",
        "",
        lambda: our_side(GROWTH[0]),
        lambda: our_side(GROWTH[1]),
    ),
    Comparison(
        "10⁵ edges, (8, 2) channels, forward",
        "the same on 10⁶ edges: ten times is linear",
        "",
        lambda: our_side(GROWTH[1]),
        lambda: our_side(GROWTH[2]),
    ),
)
