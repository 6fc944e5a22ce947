"""What averaging costs: a step of an autoencoder with ten samples beside one with one."""

import jax
import jax.numpy as jnp

from laureate.gradients import gumbel_rao, st_gumbel_softmax, zgr
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS"]

BATCH, PIXELS, VARIABLES, OPTIONS, WIDTH = 128, 784, 20, 16, 256


def _step(draw) -> Side:
    """The gradient of an autoencoder of about 600,000 parameters, whose code is drawn."""
    keys = jax.random.split(jax.random.key(0), 5)
    sizes = ((PIXELS, WIDTH), (WIDTH, VARIABLES * OPTIONS), (VARIABLES * OPTIONS, WIDTH), (WIDTH, PIXELS))
    params = [jax.random.normal(key, size) / jnp.sqrt(size[0]) for key, size in zip(keys, sizes, strict=False)]
    x = jax.random.uniform(keys[4], (BATCH, PIXELS))

    def loss(params, key):
        logits = (jnp.tanh(x @ params[0]) @ params[1]).reshape(BATCH, VARIABLES, OPTIONS)
        z = draw(key, logits).reshape(BATCH, -1)
        return jnp.mean((jax.nn.sigmoid(jnp.tanh(z @ params[2]) @ params[3]) - x) ** 2)

    step = jax.jit(jax.grad(loss))
    return Side(lambda: step(params, jax.random.key(1)))


WORK = f"the gradient of an autoencoder with {VARIABLES} choices of {OPTIONS}, {BATCH} rows"

COMPARISONS = (
    Comparison(
        work=f"{WORK}: ten samples against one",
        peer="straight-through Gumbel-softmax",
        package="",
        ours=lambda: _step(lambda key, logits: gumbel_rao(key, logits, 0.5, 10)),
        theirs=lambda: _step(lambda key, logits: st_gumbel_softmax(key, logits, 0.5)),
    ),
    Comparison(
        work=f"{WORK}: the limit against one sample",
        peer="straight-through Gumbel-softmax",
        package="",
        ours=lambda: _step(zgr),
        theirs=lambda: _step(lambda key, logits: st_gumbel_softmax(key, logits, 0.5)),
    ),
)
