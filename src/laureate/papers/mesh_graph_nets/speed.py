"""A MeshGraphNet on a mesh of 1,800 nodes beside PyTorch: prediction, a step of training; growth with the edges.

The same weights' shapes, mesh and features on both sides. The peer is written as one would in PyTorch: features of both
ends concatenated along the edges, ``index_add`` to the receivers, autograd, Adam. Ours computes the inside of a step
again for the gradient (``recompute``), as is best for meshes of this size.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.graphs import MeshGraphNet
from laureate.lab.running.comparison import Comparison, Side
from laureate.layers import Graph
from laureate.problems.meshes import edges_of, grid_cells

__all__ = ["COMPARISONS", "Work", "made", "our_side", "torch_side"]


class Work(NamedTuple):
    """What is measured: a grid of rows × columns nodes, features a node and edge, the network, training or not."""

    rows: int = 36
    columns: int = 50
    node_size: int = 12
    edge_size: int = 7
    outputs: int = 3
    latent: int = 64
    steps: int = 5
    training: bool = False


def made(work: Work) -> tuple[np.ndarray, ...]:
    """Senders, receivers, features of nodes and edges, targets."""
    rng = np.random.default_rng(0)
    senders, receivers = edges_of(grid_cells(work.rows, work.columns))
    count = work.rows * work.columns
    shapes = (count, work.node_size), (len(senders), work.edge_size), (count, work.outputs)
    return senders, receivers, *(rng.normal(size=shape).astype(np.float32) for shape in shapes)


def made_network(work: Work) -> MeshGraphNet:
    """The network whose weights both sides have."""
    settings: Any = {"latent": work.latent, "num_steps": work.steps, "recompute": work.training}
    make = lambda key: MeshGraphNet(key, work.node_size, work.edge_size, work.outputs, **settings)  # noqa: E731
    return eqx.filter_jit(make)(jax.random.key(0))


def our_side(work: Work) -> Side:
    """One compiled program."""
    senders, receivers, nodes, edges, targets = map(jnp.asarray, made(work))
    count = len(nodes)
    masks = jnp.ones(count, bool), jnp.ones(len(senders), bool)
    graph = Graph(None, None, senders, receivers, jnp.zeros(count, jnp.int32), *masks, 1)
    network = made_network(work)
    if not work.training:
        arrays, rest = eqx.partition(network, eqx.is_array)
        given = arrays, graph, nodes, edges
        program = jax.jit(lambda arrays, graph, x, e: eqx.combine(arrays, rest)(graph, x, e)).lower(*given).compile()
        temporary = getattr(program.memory_analysis(), "temp_size_in_bytes", 0) / len(senders)
        return Side(
            lambda: program(*given), note=f"{temporary:.0f} bytes of temporaries an edge ({len(senders)} edges)."
        )
    optimiser = optax.adam(1e-3)

    @eqx.filter_jit
    def update(network: Any, state: Any) -> tuple[Any, Any, Any]:
        loss = lambda n: jnp.mean(jnp.sum((n(graph, nodes, edges) - targets) ** 2, 1))  # noqa: E731
        value, slope = eqx.filter_value_and_grad(loss)(network)
        updates, state = optimiser.update(slope, state)
        return value, eqx.apply_updates(network, updates), state

    kept = [network, optimiser.init(eqx.filter(network, eqx.is_inexact_array))]

    def again():
        value, *kept[:] = update(*kept)
        return value

    return Side(again)


def torch_side(work: Work) -> Side:
    """The same in PyTorch, on one thread."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    senders, receivers, nodes, edges, targets = map(torch.from_numpy, made(work))
    senders, receivers = senders.long(), receivers.long()
    width = work.latent

    def perceptron(inputs: int, outputs: int = width, normalised: bool = True) -> Any:
        layers = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs)]
        return nn.Sequential(*layers, *([nn.LayerNorm(outputs)] if normalised else []))

    encoders = nn.ModuleList([perceptron(work.node_size), perceptron(work.edge_size)])
    blocks = nn.ModuleList([nn.ModuleList([perceptron(3 * width), perceptron(2 * width)]) for _ in range(work.steps)])
    decoder = perceptron(width, work.outputs, normalised=False)
    _copied(torch, made_network(work), [*encoders, decoder], blocks)

    def network() -> Any:
        v, e = encoders[0](nodes), encoders[1](edges)
        for along, at in blocks:
            messages = along(torch.cat([v[senders], v[receivers], e], 1))
            total = torch.zeros_like(v).index_add(0, receivers, messages)
            v, e = v + at(torch.cat([v, total], 1)), e + messages
        return decoder(v)

    if not work.training:

        def predict() -> Any:
            with torch.no_grad():
                return network()

        return Side(predict)
    parameters = [p for module in (encoders, blocks, decoder) for p in module.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=1e-3)

    def update() -> Any:
        optimiser.zero_grad()
        loss = ((network() - targets) ** 2).sum(1).mean()
        loss.backward()
        optimiser.step()
        return loss.detach()

    return Side(update)


def _copied(torch: Any, ours: MeshGraphNet, ends: Any, blocks: Any) -> None:
    """Our weights into PyTorch's perceptrons, whose matrices are transposed."""
    pairs = [(ours.node_encoder, ends[0]), (ours.edge_encoder, ends[1]), (ours.decoder, ends[2])]
    for number, (along, at) in enumerate(blocks):
        block = jax.tree.map(lambda leaf, number=number: leaf[number], ours.blocks)
        pairs += [(block.mesh, along), (block.node, at)]
    with torch.no_grad():
        for mine, theirs in pairs:
            given = [x for pair in zip(mine.weights, mine.biases, strict=True) for x in pair] + list(mine.norm or ())
            for parameter, values in zip(theirs.parameters(), given, strict=True):
                parameter.copy_(torch.from_numpy(np.array(values).T))


def _compared(work: Work, what: str) -> Comparison:
    return Comparison(
        work=f"{what}, {work.rows * work.columns} nodes, {work.steps} message-passing steps of width {work.latent}",
        peer="PyTorch with index_add",
        package="torch",
        ours=lambda: our_side(work),
        theirs=lambda: torch_side(work),
    )


# Ten times the edges each (10.1, for the grids are square), by the same network of few channels.
GROWTH = [Work(side, side, latent=16, steps=2) for side in (41, 129, 409)]
COMPARISONS = (
    _compared(Work(), "a prediction of MeshGraphNet"),
    _compared(Work(training=True), "a training step of MeshGraphNet"),
    *(
        Comparison(
            f"{few} edges, 2 message-passing steps of width 16, prediction",
            f"the same on {many} edges: 10.1 times is linear",
            "",
            lambda k=k: our_side(GROWTH[k]),
            lambda k=k: our_side(GROWTH[k + 1]),
        )
        for k, (few, many) in enumerate([("10⁴", "10⁵"), ("10⁵", "10⁶")])
    ),
)
