"""An interaction-reduced step beside PyTorch's, on a perceptron and on a convolutional network; PGD beside PyTorch's.

The same networks, images, steps and number of sets on both sides; all sets of a step in one call on both. The peer is
a plain loop as one would write it: autograd for the images' gradient alone.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.layers import convolve, max_pool
from laureate.robustness import PGD, InteractionReduced, Linf, grid_players

__all__ = ["COMPARISONS", "Work"]


class Work(NamedTuple):
    """What is measured: pictures of side × side, the network's kind, sets a step (0: plain PGD), steps a run."""

    network: str = "perceptron"
    images: int = 64
    side: int = 28
    grid: int = 7
    subsets: int = 8
    steps: int = 5
    epsilon: float = 16 / 255


def made(work: Work) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Images, labels and the weights of the network."""
    rng = np.random.default_rng(0)
    images = rng.uniform(size=(work.images, work.side, work.side, 1)).astype(np.float32)
    pixels, quarter = work.side**2, (work.side // 4) ** 2
    shapes = {
        "perceptron": [(pixels, 128), (128, 128), (128, 10)],
        "convolutional": [(3, 3, 1, 8), (3, 3, 8, 16), (16 * quarter, 10)],
    }[work.network]
    weights = [(rng.normal(size=s) * np.sqrt(2 / np.prod(s[:-1]))).astype(np.float32) for s in shapes]
    return images, rng.integers(10, size=work.images).astype(np.int32), weights


class Network(eqx.Module):
    """The network of either kind, here."""

    weights: list[Any]
    kind: str = eqx.field(static=True)

    def __call__(self, images):
        """One row of logits an image."""
        first, second, last = self.weights
        if self.kind == "perceptron":
            values = jax.nn.relu(images.reshape(len(images), -1) @ first)
            return jax.nn.relu(values @ second) @ last
        values = max_pool(jax.nn.relu(convolve(images, first)))
        values = max_pool(jax.nn.relu(convolve(values, second)))
        return values.reshape(len(values), -1) @ last


def our_side(work: Work) -> Side:
    """The attack as one compiled loop."""
    images, labels, weights = made(work)
    network = Network([jnp.asarray(weight) for weight in weights], work.network)
    attack: Any = PGD(network, Linf(work.epsilon), num_steps=work.steps)
    if work.subsets:
        attack = InteractionReduced(attack, grid_players((work.side, work.side), work.grid), num_subsets=work.subsets)
    program = eqx.filter_jit(lambda attack, x, y: attack.run(jax.random.key(0), x, y)[0])
    x, y = jnp.asarray(images), jnp.asarray(labels)
    return Side(lambda: program(attack, x, y), 1 / work.steps)


def torch_side(work: Work) -> Side:
    """The same in PyTorch, on one thread."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)
    import torch.nn.functional as f  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    images, labels, weights = made(work)
    x = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    y = torch.from_numpy(labels).long()
    cells, size = work.grid**2, work.side // work.grid
    if work.network == "perceptron":
        first, second, last = (torch.from_numpy(weight) for weight in weights)

        def logits(z):
            return torch.relu(torch.relu(z.flatten(1) @ first) @ second) @ last
    else:
        first, second = (torch.from_numpy(weight).permute(3, 2, 0, 1).contiguous() for weight in weights[:2])
        last = torch.from_numpy(weights[2])

        def logits(z):
            z = f.max_pool2d(torch.relu(f.conv2d(z, first, padding=1)), 2)
            z = f.max_pool2d(torch.relu(f.conv2d(z, second, padding=1)), 2)
            return z.flatten(1) @ last

    def mean_cut(delta, whole):
        others = whole.detach().scatter(1, y[:, None], -torch.inf)
        rival = others.argmax(1)
        chosen = torch.randint(cells, (work.subsets, max(1, cells // 8)))
        sets = torch.zeros(work.subsets, cells).scatter_(1, chosen, 1.0)
        masks = torch.cat([sets, 1 - sets, torch.ones(1, cells), torch.zeros(1, cells)])
        masks = masks.view(-1, 1, 1, work.grid, work.grid)
        masks = masks.repeat_interleave(size, 3).repeat_interleave(size, 4)
        z = logits((x + masks * delta).flatten(0, 1)).view(len(masks), len(x), -1)
        pick = lambda classes: z.gather(2, classes.expand(len(masks), -1)[..., None])[..., 0]  # noqa: E731
        v = pick(rival) - pick(y)
        m = work.subsets
        return (v[-2] - v[m : 2 * m] - v[:m] + v[-1]).mean(0).sum()

    def run():
        delta = torch.zeros_like(x)
        for _ in range(work.steps):
            delta.requires_grad_(True)
            whole = logits(x + delta)
            loss = f.cross_entropy(whole, y, reduction="sum")
            if work.subsets:
                loss = loss - mean_cut(delta, whole)
            (gradient,) = torch.autograd.grad(loss, delta)
            with torch.no_grad():
                delta = (delta + work.epsilon / 10 * gradient.sign()).clamp(-work.epsilon, work.epsilon)
                delta = (x + delta).clamp(0, 1) - x
        return delta

    return Side(run, 1 / work.steps)


def _compared(work: Work, what: str) -> Comparison:
    return Comparison(
        work=f"{what}, {work.images} images of {work.side} × {work.side}",
        peer="a PyTorch loop",
        package="torch",
        ours=lambda: our_side(work),
        theirs=lambda: torch_side(work),
    )


COMPARISONS = (
    _compared(Work(), "an interaction-reduced step on a perceptron (784-128-128-10), 8 sets"),
    _compared(
        Work("convolutional"), "an interaction-reduced step on a convolutional network (8 and 16 channels), 8 sets"
    ),
    _compared(Work(images=256, subsets=0, steps=20), "a PGD step on a perceptron (784-128-128-10)"),
)
