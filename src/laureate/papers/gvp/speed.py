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

__all__ = ["COMPARISONS", "Work", "our_side", "torch_side"]


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


def made_layer(work: Work) -> GVPConvLayer:
    """The layer whose weights both sides have."""
    dims = (work.scalars, work.vectors), (work.edge_scalars, 1)
    return eqx.filter_jit(lambda key: GVPConvLayer(key, *dims, dropout=0.0))(jax.random.key(0))


def our_side(work: Work) -> Side:
    """One layer, compiled."""
    (s, v, es, ev), senders, receivers = made(work)
    layer, graph = made_layer(work), make_graph((s, v), (es, ev), senders, receivers)
    arrays, rest = eqx.partition(layer, eqx.is_array)

    def call(arrays, graph):
        return eqx.combine(arrays, rest)(graph).nodes

    def total(arrays, graph):
        return sum(jnp.sum(part**2) for part in call(arrays, graph))

    program = jax.jit(jax.grad(total) if work.gradient else call).lower(arrays, graph).compile()
    temporary = getattr(program.memory_analysis(), "temp_size_in_bytes", 0) / len(senders)
    return Side(lambda: program(arrays, graph), note=f"{temporary:.0f} bytes of temporaries an edge.")


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
    layer = made_layer(work)
    with torch.no_grad():
        for theirs, ours in zip([*message, *block], [*layer.conv.message, *layer.feedforward], strict=True):
            scalars = np.concatenate([ours.scalar_map, ours.norm_map], 1)
            given = np.array(ours.hidden_map), np.array(ours.output_map), scalars, np.array(ours.bias)
            for parameter, values in zip(theirs.parameters(), given, strict=True):
                parameter.copy_(torch.from_numpy(values))
    (s, v, e, ev), senders, receivers = made(work)
    s, v, e, ev, j, i = (torch.from_numpy(part) for part in (s, v, e, ev, senders, receivers))
    count = torch.bincount(i, minlength=len(s)).clamp(min=1).float()

    def normed(norm, s, v):
        square = torch.clamp(torch.sum(v**2, -1, keepdim=True), min=1e-8)
        return norm(s), v / torch.sqrt(torch.mean(square, -2, keepdim=True))

    def passed():
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
                return passed()
        out = passed()
        return torch.autograd.grad(sum((part**2).sum() for part in out), weights, allow_unused=True)

    return Side(run)


def e3nn_side(work: Work) -> Side:
    """A tensor-product layer of equal width as e3nn's users write it (NequIP's): the weights of every path of the
    product of a sender's features with spherical harmonics come from a perceptron of the edge's scalars; then the sum
    at the receivers, a linear map, gates, a residual and a layer norm.
    """
    import e3nn_jax as e3nn  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)

    (s, v, es, ev), senders, receivers = made(work)
    n, m = work.scalars, work.vectors
    wide, gated = e3nn.Irreps(f"{n}x0e + {m}x1o"), e3nn.Irreps(f"{n + m}x0e + {m}x1o")
    if not hasattr(e3nn, "flax"):
        raise RuntimeError("this e3nn-jax has no e3nn_jax.flax: pip install flax")
    nodes = e3nn.IrrepsArray(wide, jnp.concatenate([s, v.reshape(len(s), -1)], -1))
    scalars, vectors, ends = jnp.asarray(es), e3nn.IrrepsArray("1o", jnp.asarray(ev[:, 0])), jnp.asarray(receivers)

    def product(sent: Any, vectors: Any) -> Any:
        directions = e3nn.spherical_harmonics("0e + 1o", vectors, normalize=True)
        return e3nn.tensor_product(sent, directions).filter(["0e", "1o"]).regroup()

    paths = product(nodes[:1], vectors[:1])
    up, down = e3nn.flax.Linear(wide), e3nn.flax.Linear(gated)
    radial = e3nn.flax.MultiLayerPerceptron((64, 64, paths.irreps.num_irreps), jax.nn.silu)
    keys, rows = jax.random.split(jax.random.key(0), 3), (nodes[:1], scalars[:1], paths)
    parts = zip((up, radial, down), keys, rows, strict=True)
    weights = [part.init(key, row) for part, key, row in parts]

    def call(weights, nodes):
        sent = product(up.apply(weights[0], nodes)[senders], vectors) * radial.apply(weights[1], scalars)
        arrived = e3nn.scatter_sum(sent, dst=ends, output_size=work.nodes) / work.neighbors
        return normed(nodes + e3nn.gate(down.apply(weights[2], arrived), even_act=jax.nn.relu))

    def normed(x):
        scalars, vectors = x.slice_by_mul[:n].array, x.slice_by_mul[n:].array
        centred = scalars - scalars.mean(-1, keepdims=True)
        square = jnp.mean(jnp.sum(vectors.reshape(-1, m, 3) ** 2, -1), -1, keepdims=True)
        parts = centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5), vectors * jax.lax.rsqrt(square)
        return jnp.concatenate(parts, -1)

    total = lambda weights, nodes: jnp.sum(call(weights, nodes) ** 2)  # noqa: E731
    program = jax.jit(jax.grad(total) if work.gradient else call)
    return Side(lambda: program(weights, nodes), note="One tensor product an edge there, three GVPs here.")


TRAINED, ANSWER = Work(), Work(gradient=False)
# Ten times the edges each, by the same layer of few channels: linear growth is a ratio of ten.
GROWTH = [[Work(nodes, 10, 8, 2, 8, slope) for nodes in (1_000, 10_000, 100_000)] for slope in (False, True)]
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
    *(
        Comparison(
            f"{few} edges, (8, 2) channels, {'with gradients' if works[0].gradient else 'forward'}",
            f"the same on {many} edges: ten times is linear",
            "",
            lambda works=works, k=k: our_side(works[k]),
            lambda works=works, k=k: our_side(works[k + 1]),
        )
        for works in GROWTH
        for k, (few, many) in enumerate([("10⁴", "10⁵"), ("10⁵", "10⁶")])
    ),
)
