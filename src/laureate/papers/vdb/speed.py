"""A training step of a small VGAN beside PyTorch's: perceptrons, batches of 32 and 64.

The same networks, losses, optimisers and dual ascent on both sides. The peer is a plain loop as one would write it: a
step of Adam for discriminator and encoder, one of β, one for the generator.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from laureate.generative import Adversarial, VariationalBottleneck, make_encoder, perceptrons
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS", "Work"]


class Work(NamedTuple):
    """What is measured: rows of a batch, width of the hidden layers, numbers of an example, training steps of a run."""

    batch: int = 64
    width: int = 64
    inputs: int = 16
    steps: int = 200
    codes: int = 8
    latents: int = 4


def rows(work: Work) -> np.ndarray:
    """The examples, the same for both sides."""
    return np.random.default_rng(0).normal(size=(1024, work.inputs)).astype(np.float32)


def our_side(work: Work) -> Side:
    """All steps in one compiled scan."""
    x, width = jnp.asarray(rows(work)), work.width
    shapes = (work.latents, width, width, work.inputs), (work.codes, 1)
    generator, head = perceptrons(jax.random.key(0), *shapes, activation=jax.nn.leaky_relu)
    encoder = make_encoder(jax.random.key(1), (work.inputs, width, width), work.codes)
    bottleneck = VariationalBottleneck(encoder, beta_rate=1e-2)
    model = Adversarial(generator, head, regulariser=bottleneck, num_latents=work.latents)
    train = jax.jit(lambda key, state: model.train(key, x, state, num_steps=work.steps, batch=work.batch))
    state = model.init()

    def run():
        nonlocal state
        state, infos = train(jax.random.key(2), state)
        return infos.generator_loss

    return Side(run, 1 / work.steps)


def torch_side(work: Work) -> Side:
    """The same by autograd, one step after another."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, width, codes = torch.from_numpy(rows(work)), work.width, work.codes

    def perceptron(*sizes: int) -> Any:
        layers: list[Any] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.LeakyReLU()]
        return torch.nn.Sequential(*layers[:-1])

    generator = perceptron(work.latents, width, width, work.inputs)
    encoder, head = perceptron(work.inputs, width, width, 2 * codes), torch.nn.Linear(codes, 1)
    with torch.no_grad():
        encoder[-1].weight *= 0.02
    judging = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3, betas=(0.5, 0.999))
    making = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    softplus, beta = torch.nn.functional.softplus, 0.1

    def judge(examples: Any) -> tuple[Any, Any]:
        mean, log_deviation = encoder(examples).chunk(2, dim=1)
        log_deviation = log_deviation.clamp(-6.0, 3.0)
        z = mean + log_deviation.exp() * torch.randn_like(mean)
        nats = (-log_deviation + 0.5 * ((2 * log_deviation).exp() + mean**2) - 0.5).sum(1).mean()
        return head(z), nats

    def step():
        nonlocal beta
        real = x[torch.randint(len(x), (work.batch,))]
        with torch.no_grad():
            made = generator(torch.randn(work.batch, work.latents))
        (on_real, real_nats), (on_made, made_nats) = judge(real), judge(made)
        nats = 0.5 * (real_nats + made_nats)
        loss = softplus(-on_real).mean() + softplus(on_made).mean() + beta * (nats - 0.5)
        judging.zero_grad()
        loss.backward()
        judging.step()
        beta = max(0.0, beta + 1e-2 * (float(nats.detach()) - 0.5))
        mean = encoder(generator(torch.randn(work.batch, work.latents))).chunk(2, dim=1)[0]
        loss = softplus(-head(mean)).mean()
        making.zero_grad()
        loss.backward()
        making.step()
        return loss.detach()

    return Side(lambda: [step() for _ in range(work.steps)][-1], 1 / work.steps)


def _compared(work: Work) -> Comparison:
    return Comparison(
        work=f"a VGAN training step: width {work.width}, batch {work.batch}, examples of {work.inputs} numbers",
        peer="a PyTorch loop",
        package="torch",
        ours=lambda: our_side(work),
        theirs=lambda: torch_side(work),
    )


COMPARISONS = (_compared(Work()), _compared(Work(batch=32, width=32)))
