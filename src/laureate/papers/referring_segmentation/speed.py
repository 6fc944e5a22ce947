"""Language-conditional filtering of a batch beside PyTorch's grouped convolution, which the authors use.

The same features, phrases, weights and steps on both sides: the dense layer, the normalised kernels, the convolution of
every example with its own.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.grounding import LanguageFilter
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS", "Work"]


class Work(NamedTuple):
    """A batch of feature maps of side × side with channels, filters of kernel × kernel; with or without gradients."""

    batch: int = 32
    side: int = 16
    channels: int = 32
    text_size: int = 64
    kernel: int = 1
    gradient: bool = False


def made(work: Work) -> list[np.ndarray]:
    """Features [b, h, w, c], text, weight [d, s s c c] (rows tap by tap, inputs, outputs) and bias."""
    rng = np.random.default_rng(0)
    numbers = (work.kernel * work.channels) ** 2
    shapes = [
        (work.batch, work.side, work.side, work.channels),
        (work.batch, work.text_size),
        (work.text_size, numbers),
        (numbers,),
    ]
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def our_side(work: Work) -> Side:
    """The module, compiled; the gradient is for features, text and weights."""
    features, text, weight, bias = (jnp.asarray(array) for array in made(work))
    layer = LanguageFilter(jax.random.key(0), work.channels, work.text_size, kernel_size=work.kernel)
    layer = eqx.tree_at(lambda one: (one.weight, one.bias), layer, (weight, bias))

    def forward(given):
        layer, features, text = given
        return layer(features, text)

    slope = eqx.filter_grad(lambda given: jnp.sum(jnp.square(forward(given))))
    program = eqx.filter_jit(lambda given: slope(given) if work.gradient else forward(given))
    return Side(lambda: program((layer, features, text)))


def torch_side(work: Work) -> Side:
    """The same in PyTorch, on one thread: a grouped convolution, a group an example."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)
    import torch.nn.functional as f  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    features, text, weight, bias = made(work)
    size, count = work.kernel, work.channels
    maps = torch.from_numpy(features).permute(0, 3, 1, 2).contiguous()
    # From taps, inputs, outputs to outputs, inputs, taps.
    turn = lambda array: array.reshape(-1, size, size, count, count).transpose(0, 4, 3, 1, 2)  # noqa: E731
    dense = torch.from_numpy(turn(weight).reshape(work.text_size, -1).copy())
    shift = torch.from_numpy(turn(bias).reshape(-1).copy())
    said = torch.from_numpy(text)
    leaves = [maps, said, dense, shift]

    def forward():
        kernels = (said @ dense + shift).view(work.batch, count, count, size, size)
        kernels = f.normalize(kernels, dim=1).view(work.batch * count, count, size, size)
        joined = maps.reshape(1, work.batch * count, work.side, work.side)
        return f.conv2d(joined, kernels, padding=size // 2, groups=work.batch).view(maps.shape)

    def run():
        if not work.gradient:
            with torch.no_grad():
                return forward()
        for leaf in leaves:
            leaf.requires_grad_(True)
        return torch.autograd.grad(forward().square().sum(), leaves)

    return Side(run)


def _compared(work: Work) -> Comparison:
    what = "language-conditional filtering and its gradient" if work.gradient else "language-conditional filtering"
    return Comparison(
        work=(
            f"{what}, {work.batch} maps of {work.side} × {work.side} × {work.channels}, filters of {work.kernel} × "
            f"{work.kernel}"
        ),
        peer="a grouped convolution in PyTorch",
        package="torch",
        ours=lambda: our_side(work),
        theirs=lambda: torch_side(work),
    )


COMPARISONS = (
    _compared(Work()),
    _compared(Work(kernel=3)),
    _compared(Work(gradient=True)),
    _compared(Work(kernel=3, gradient=True)),
)
