"""Scoring all operations of an edge: in one compiled call, one call an operation, and in PyTorch.

The supernet is that of the experiments, with 16 channels: two cells, three edges, none, skip, avg3 and conv3 each.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.architecture import effective_weights, score_weights, without_operations
from laureate.architecture.space import Space
from laureate.lab.running.comparison import Comparison, Side
from laureate.problems.supernets import SIDE, CellSupernet

__all__ = ["COMPARISONS", "torch_supernet"]

CHANNELS, EXAMPLES = 16, 700


def _supernet() -> tuple[CellSupernet, Any, Any]:
    net = CellSupernet(train=EXAMPLES, test=10, channels=CHANNELS)
    return net, *net.init(jax.random.key(0))


def _proposals(net: CellSupernet) -> jax.Array:
    space = Space.of(net)
    return without_operations(effective_weights(space, jnp.zeros(space.shape)), jnp.asarray(1))


def one_call() -> Side:
    """All operations at once, vmapped over weights."""
    net, params, state = _supernet()
    weights, data = _proposals(net), (net.inputs, net.labels)
    return Side(lambda: score_weights(net, params, state, weights, data))


def call_by_call() -> Side:
    """The same program for one array of weights, called for each."""
    net, params, state = _supernet()
    weights, data = _proposals(net), (net.inputs, net.labels)
    return Side(lambda: [score_weights(net, params, state, one[None], data) for one in weights])


def torch_supernet(params: Any, weights: Any, inputs: Any) -> Any:
    """The same supernet in PyTorch, with its convolutions: logits of a batch, by the batch's statistics."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    norm = lambda x: functional.batch_norm(x, None, None, training=True, eps=1e-5)  # noqa: E731
    stem, kernels, head, bias = params
    cells, _, _, width = kernels.shape
    x = (inputs @ stem).transpose(1, 2).reshape(len(inputs), width, SIDE, SIDE)
    for cell in range(cells):
        nodes = [x]
        for into in ([(0, 0)], [(1, 0), (2, 1)]):
            total = torch.zeros_like(x)
            for edge, source in into:
                y = nodes[source]
                kernel = kernels[cell, edge].reshape(3, 3, width, width).permute(3, 2, 0, 1)
                average = functional.avg_pool2d(y, 3, 1, 1, count_include_pad=False)
                convolved = functional.conv2d(functional.relu(y), kernel, padding=1)
                w = weights[edge]
                total = total + w[1] * y + w[2] * norm(average) + w[3] * norm(convolved)
            nodes.append(total)
        x = nodes[-1]
    return x.mean((2, 3)) @ head + bias


def torch_side() -> Side:
    """One call an operation, as the released code does, without gradients."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch.nn import functional  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    net, params, _ = _supernet()
    given = [torch.from_numpy(np.array(leaf)) for leaf in params]
    weights, inputs = torch.from_numpy(np.array(_proposals(net))), torch.from_numpy(np.array(net.inputs))
    labels = torch.from_numpy(np.array(net.labels, np.int64))

    def scores() -> Any:
        with torch.no_grad():
            outputs = [torch_supernet(given, one, inputs) for one in weights]
            return [(functional.cross_entropy(y, labels), (y.argmax(1) == labels).float().mean()) for y in outputs]

    return Side(scores, note="Convolutions there, products with the kernel's matrix here.")


WORK = f"scoring the four operations of an edge on {EXAMPLES} images, {CHANNELS} channels"
COMPARISONS = (
    Comparison(work=WORK, peer="one call an operation", package="", ours=one_call, theirs=call_by_call),
    Comparison(work=WORK, peer="PyTorch", package="torch", ours=one_call, theirs=torch_side),
)
