"""A training step of cGML beside PyTorch's: 64-64 perceptrons, twenty steps in the latent, batches of 64.

The same networks, batch, inner steps and optimisers on both sides. The peer is a plain loop as one would write it:
autograd for the latent's gradient, then a step of Adam for the flow and the length at each inner step, then one for
encoder and decoder.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from laureate.generative import make_model
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS", "Work"]


class Work(NamedTuple):
    """What is measured: rows of a batch, width of the hidden layers, inner steps, training steps of a run."""

    batch: int = 64
    width: int = 64
    inner: int = 20
    steps: int = 20
    answers: int = 3


def pairs(work: Work) -> tuple[np.ndarray, np.ndarray]:
    """Two right answers for every x, the same for both sides."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(1024, 1)).astype(np.float32)
    signs = rng.choice([-1.0, 1.0], size=(1024, 1))
    return x, (signs * x ** np.arange(1, work.answers + 1)).astype(np.float32)


def our_side(work: Work) -> Side:
    """All steps in one compiled scan."""
    x, y = (jnp.asarray(values) for values in pairs(work))
    model = make_model(jax.random.key(0), "latent-flow", x, y, width=work.width, num_inner=work.inner)
    train = jax.jit(lambda key, state: model.train(key, x, y, state, num_steps=work.steps, batch=work.batch))
    state = model.init()

    def run():
        nonlocal state
        state, infos = train(jax.random.key(1), state)
        return infos.loss

    return Side(run, 1 / work.steps)


def torch_side(work: Work) -> Side:
    """The same by autograd, one inner step after another."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = (torch.from_numpy(values) for values in pairs(work))

    def perceptron(*sizes: int) -> Any:
        layers: list[Any] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1])

    width, codes, latent = work.width, 8, 2
    encoder = perceptron(1, width, codes)
    decoder = perceptron(codes + latent, width, width, work.answers)
    flow, length = perceptron(codes + latent, width, width, latent), perceptron(codes + latent, width, 1)
    answer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    find = torch.optim.Adam([*flow.parameters(), *length.parameters()], lr=1e-3)

    def step():
        rows = torch.randint(len(x), (work.batch,))
        inputs, targets = x[rows], y[rows]
        with torch.no_grad():
            h = encoder(inputs)
        z = torch.nn.functional.normalize(torch.randn(work.batch, latent), dim=1)
        for _ in range(work.inner):
            z = z.detach().requires_grad_(True)
            cost = (decoder(torch.cat([h, z], 1)) - targets).abs().mean(1).sum()
            (gradient,) = torch.autograd.grad(cost, z)
            with torch.no_grad():
                along = gradient - (gradient * z).sum(1, keepdim=True) * z
                after = torch.nn.functional.normalize(z - 0.5 * along, dim=1)
                steps = (after - z).norm(dim=1)
            seen = torch.cat([h, z.detach()], 1)
            loss = ((flow(seen) - after) ** 2).sum(1).mean() + ((length(seen)[:, 0] - steps) ** 2).mean()
            find.zero_grad()
            loss.backward()
            find.step()
            z = after
        loss = (decoder(torch.cat([encoder(inputs), z], 1)) - targets).abs().mean()
        answer.zero_grad()
        loss.backward()
        answer.step()
        return loss.detach()

    return Side(lambda: [step() for _ in range(work.steps)][-1], 1 / work.steps)


def draw_side(work: Work, kind: str, **settings: Any) -> Side:
    """A thousand answers of a model of this kind, untrained. settings: how many moves or steps each takes."""
    x, y = (jnp.asarray(values) for values in pairs(work))
    model = make_model(jax.random.key(0), kind, x, y, width=work.width, **settings)
    state = model.init()
    draw = jax.jit(lambda key, state: model.sample(key, state, x[:100], 10))
    calls = 0

    def run():
        nonlocal calls
        calls += 1
        return draw(jax.random.key(calls), state)

    return Side(run)


def _compared(work: Work) -> Comparison:
    sizes = f"width {work.width}, batch {work.batch}, {work.inner} inner steps"
    return Comparison(
        work=f"a cGML training step: {sizes}",
        peer="a PyTorch loop",
        package="torch",
        ours=lambda: our_side(work),
        theirs=lambda: torch_side(work),
    )


COMPARISONS = (
    _compared(Work()),
    _compared(Work(batch=32, width=32, inner=10, steps=50)),
    Comparison(
        work="a thousand answers of cGML, 20 moves each",
        peer="our diffusion, 20 steps each",
        package="",
        ours=lambda: draw_side(Work(), "latent-flow", num_inner=Work().inner),
        theirs=lambda: draw_side(Work(), "diffusion", num_levels=Work().inner),
    ),
)
