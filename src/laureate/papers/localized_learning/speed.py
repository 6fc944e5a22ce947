"""A training step with the boundary at half depth, beside full backpropagation and beside PyTorch's frozen layers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.lab.running.comparison import Comparison, Side
from laureate.training import AbstractRule, Chain, Dense, Fixed, Frozen, Hebbian, LocalizedTraining

__all__ = ["COMPARISONS"]

WIDTH, LAYERS, BATCH, RATE = 1024, 8, 128, 1e-3
HALF = LAYERS // 2


def our_step(rule: AbstractRule, boundary: int, note: str = "") -> Side:
    """One compiled step; the state goes on from call to call."""
    generator = np.random.default_rng(0)
    drawn = [jnp.asarray(generator.normal(size=(WIDTH, WIDTH)), jnp.float32) for _ in range(LAYERS)]
    blocks = [*(Chain((Dense(d), jax.nn.relu)) for d in drawn[:-1]), Dense(drawn[-1])]
    inputs = jnp.asarray(generator.normal(size=(BATCH, WIDTH)), jnp.float32)
    labels = jnp.arange(BATCH)
    trainer = LocalizedTraining(Fixed(boundary), rule, optax.sgd(RATE))
    arrays, rest = eqx.partition(trainer.init(jax.random.key(0), blocks), eqx.is_array)

    def one(arrays, inputs, labels):
        return eqx.filter(trainer.step(eqx.combine(arrays, rest), inputs, labels)[0], eqx.is_array)

    step = jax.jit(one, donate_argnums=0)
    arrays = jax.tree.map(jnp.copy, arrays)

    def work():
        nonlocal arrays
        arrays = step(arrays, inputs, labels)
        return arrays.loss_sum

    return Side(work, note=note)


def their_step() -> Side:
    """The same network in PyTorch, the first half without gradients."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer, not a dependency)
    from torch import nn  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    for layer in layers[:HALF]:
        layer.requires_grad_(False)
    optimiser = torch.optim.SGD([p for layer in layers[HALF:] for p in layer.parameters()], RATE)
    inputs, labels = torch.randn(BATCH, WIDTH), torch.arange(BATCH)

    def work():
        hidden = inputs
        for layer in layers[:-1]:
            hidden = torch.relu(layer(hidden))
        loss = nn.functional.cross_entropy(layers[-1](hidden), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return float(loss)

    return Side(work, note="requires_grad_(False) for the first half there.")


NETWORK = f"{LAYERS} dense layers of width {WIDTH:,}, a batch of {BATCH}"
COMPARISONS = (
    Comparison(
        work=f"a step with the lower half frozen: {NETWORK}",
        peer="full backpropagation",
        package="",
        ours=lambda: our_step(Frozen(), HALF, "By products alone 0.65 of the time."),
        theirs=lambda: our_step(Frozen(), 0),
    ),
    Comparison(
        work=f"a step with Hebb's rule in the lower half: {NETWORK}",
        peer="full backpropagation",
        package="",
        ours=lambda: our_step(Hebbian(), HALF, "By products alone 0.83 of the time."),
        theirs=lambda: our_step(Frozen(), 0),
    ),
    Comparison(
        work=f"a step with the lower half frozen: {NETWORK}",
        peer="PyTorch",
        package="torch",
        ours=lambda: our_step(Frozen(), HALF),
        theirs=their_step,
    ),
)
