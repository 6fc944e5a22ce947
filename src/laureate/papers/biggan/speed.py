"""A BigGAN training step and truncated sampling beside PyTorch's, channels last: 32 × 32 images, 64 channels.

The same blocks on both sides: conditional batch normalisation, spectral normalisation by one power iteration a step,
projection, hinge loss, Adam without momentum, the moving average, the orthogonal penalty.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from laureate.generative import make_biggan
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS", "Work", "torch_networks"]


class Work(NamedTuple):
    """What is measured: images of a batch, channels of every layer, pixels of a side, steps of a run, images drawn."""

    batch: int = 16
    channels: int = 64
    side: int = 32
    steps: int = 2
    samples: int = 1000
    classes: int = 10
    latents: int = 80
    shared: int = 32

    @property
    def pieces(self) -> int:
        """Of z: one for the first layer and one for every block."""
        return self.side.bit_length() - 2


def images(work: Work) -> tuple[np.ndarray, np.ndarray]:
    """The same for both sides."""
    rng = np.random.default_rng(0)
    shape = (256, work.side, work.side, 3)
    return np.tanh(rng.normal(size=shape)).astype(np.float32), rng.integers(0, work.classes, 256)


def model_of(work: Work) -> Any:
    """The trainer."""
    sizes = {"channels": work.channels, "num_latents": work.latents, "num_shared": work.shared}
    return make_biggan(jax.random.key(0), (work.side, work.side, 3), work.classes, **sizes)  # pyright: ignore[reportArgumentType]


def our_step(work: Work) -> Side:
    """All steps in one compiled scan."""
    model = jax.jit(lambda: model_of(work).init()), model_of(work)
    state, gan = model[0](), model[1]
    x, y = (jnp.asarray(part) for part in images(work))
    train = jax.jit(lambda key, state: gan.train(key, (x, y), state, num_steps=work.steps, batch=work.batch))

    def run():
        nonlocal state
        state, infos = train(jax.random.key(2), state)
        return infos.generator_loss

    return Side(run, 1 / work.steps)


def our_samples(work: Work) -> Side:
    """Images by standing statistics, cut at 0.5."""
    gan = model_of(work)
    state, labels = gan.init(), jnp.arange(work.samples) % work.classes
    standing = jax.jit(lambda key: gan.standing(key, state, labels, num_batches=2, batch=8))(jax.random.key(1))
    draw = lambda key: gan.sample(key, state, work.samples, labels, truncation=0.5, statistics=standing)  # noqa: E731
    compiled, number = jax.jit(draw), 0

    def run():
        nonlocal number
        number += 1
        return compiled(jax.random.key(number))

    return Side(run)


def torch_networks(work: Work) -> tuple[Any, Any, Any]:
    """torch, a generator and a discriminator as one would write them."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer)
    from torch import nn  # pyright: ignore[reportMissingImports]
    from torch.nn.utils.parametrizations import spectral_norm  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    functional, channels = nn.functional, work.channels
    piece = work.latents // work.pieces
    condition = work.shared + piece

    def conv(inputs: int, outputs: int, side: int = 3) -> Any:
        return spectral_norm(nn.Conv2d(inputs, outputs, side, padding=side // 2))

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(channels, affine=False)
            self.gain, self.bias = (spectral_norm(nn.Linear(condition, channels, bias=False)) for _ in range(2))

        def forward(self, x, embedded):
            return self.norm(x) * (1 + self.gain(embedded))[:, :, None, None] + self.bias(embedded)[:, :, None, None]

    class Grow(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([Norm(), Norm()])
            self.layers = nn.ModuleList([conv(channels, channels), conv(channels, channels)])
            self.shortcut = conv(channels, channels, 1)

        def forward(self, x, embedded):
            up = lambda images: functional.interpolate(images, scale_factor=2)  # noqa: E731
            inner = self.layers[0](up(functional.relu(self.norms[0](x, embedded))))
            inner = self.layers[1](functional.relu(self.norms[1](inner, embedded)))
            return inner + up(self.shortcut(x))

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(work.classes, work.shared)
            self.first = spectral_norm(nn.Linear(piece, 16 * channels))
            self.blocks = nn.ModuleList([Grow() for _ in range(work.pieces - 1)])
            self.norm, self.last = nn.BatchNorm2d(channels), conv(channels, 3)

        def forward(self, z, y):
            parts, embedded = z.chunk(work.pieces, dim=1), self.embedding(y)
            h = self.first(parts[0]).reshape(-1, channels, 4, 4).to(memory_format=torch.channels_last)
            for block, part in zip(self.blocks, parts[1:], strict=True):
                h = block(h, torch.cat([embedded, part], dim=1))
            return torch.tanh(self.last(functional.relu(self.norm(h))))

    class Shrink(nn.Module):
        def __init__(self, inputs: int, number: int):
            super().__init__()
            self.layers = nn.ModuleList([conv(inputs, channels), conv(channels, channels)])
            self.shortcut = conv(inputs, channels, 1) if inputs != channels else nn.Identity()
            self.number = number

        def forward(self, x):
            down = functional.avg_pool2d if self.number < 2 else lambda images, size: images
            inner = self.layers[0](x if self.number == 0 else functional.relu(x))
            return down(self.layers[1](functional.relu(inner)), 2) + self.shortcut(down(x, 2))

    class Discriminator(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(*(Shrink(3 if n == 0 else channels, n) for n in range(work.pieces)))
            self.weight = spectral_norm(nn.Linear(channels, 1))
            self.embedding = spectral_norm(nn.Embedding(work.classes, channels))

        def forward(self, x, y):
            hidden = functional.relu(self.blocks(x)).sum((2, 3))
            return self.weight(hidden)[:, 0] + (self.embedding(y) * hidden).sum(1)

    made = (network.to(memory_format=torch.channels_last) for network in (Generator(), Discriminator()))
    return torch, *made


def torch_step(work: Work) -> Side:
    """The same by autograd, one step after another."""
    torch, generator, discriminator = torch_networks(work)
    x, y = images(work)
    rows = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    labels = torch.from_numpy(y)
    making = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.0, 0.999))
    judging = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.0, 0.999))
    average = [parameter.detach().clone() for parameter in generator.parameters()]
    relu = torch.nn.functional.relu
    weights = [p for name, p in generator.named_parameters() if p.ndim >= 2 and "embedding" not in name]

    def penalty() -> Any:
        total = 0.0
        for weight in weights:
            gram = weight.flatten(1) @ weight.flatten(1).T
            total = total + (gram * (1 - torch.eye(len(gram)))).square().sum()
        return 1e-4 * total

    # Power iterations once for all calls of a network between two changes of its weights, as a careful user would.
    cached = torch.nn.utils.parametrize.cached

    def step():
        chosen = torch.randint(len(rows), (work.batch,))
        real, classes = rows[chosen], labels[chosen]
        with torch.no_grad():
            made = generator(torch.randn(work.batch, work.latents), classes)
        with cached():
            loss = relu(1 - discriminator(real, classes)).mean() + relu(1 + discriminator(made, classes)).mean()
        judging.zero_grad()
        loss.backward()
        judging.step()
        discriminator.requires_grad_(False)
        with cached():
            loss = -discriminator(generator(torch.randn(work.batch, work.latents), classes), classes).mean() + penalty()
        making.zero_grad()
        loss.backward()
        making.step()
        discriminator.requires_grad_(True)
        with torch.no_grad():
            for kept, parameter in zip(average, generator.parameters(), strict=True):
                kept.lerp_(parameter, 0.01)
        return loss.detach()

    return Side(lambda: [step() for _ in range(work.steps)][-1], 1 / work.steps)


def torch_samples(work: Work) -> Side:
    """In evaluation, latents drawn anew until all lie within 0.5."""
    torch, generator, _ = torch_networks(work)
    generator.eval()
    labels = torch.arange(work.samples) % work.classes

    def run():
        with torch.no_grad():
            z = torch.nn.init.trunc_normal_(torch.empty(work.samples, work.latents), a=-0.5, b=0.5)
            return generator(z, labels)

    return Side(run)


def _compared(work: Work, what: str, ours: Any, theirs: Any) -> Comparison:
    return Comparison(
        work=f"{what}: {work.side} × {work.side}, {work.channels} channels",
        peer="PyTorch, channels last",
        package="torch",
        ours=lambda: ours(work),
        theirs=lambda: theirs(work),
    )


COMPARISONS = (
    _compared(Work(), f"a BigGAN training step, batch {Work().batch}", our_step, torch_step),
    _compared(Work(), "1,000 images with truncation", our_samples, torch_samples),
)
