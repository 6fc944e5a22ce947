"""The adjusted loss and its gradient beside plain cross-entropy: what the prior costs."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.imbalance import log_prior, logit_adjusted_cross_entropy
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS"]

ROWS, CLASSES = 4096, 1000


def _batch():
    rng = np.random.default_rng(0)
    prior = log_prior(jnp.asarray(1000.0 / np.arange(1, CLASSES + 1)))
    return (
        jnp.asarray(rng.normal(size=(ROWS, CLASSES)), jnp.float32),
        jnp.asarray(rng.integers(CLASSES, size=ROWS)),
        prior,
    )


def ours() -> Side:
    """Gradient of the mean adjusted loss."""
    logits, labels, prior = _batch()
    run = jax.jit(jax.grad(lambda f: logit_adjusted_cross_entropy(f, labels, prior).mean()))
    return Side(lambda: run(logits))


def theirs() -> Side:
    """Gradient of Optax's mean cross-entropy."""
    logits, labels, _ = _batch()
    run = jax.jit(jax.grad(lambda f: optax.softmax_cross_entropy_with_integer_labels(f, labels).mean()))
    return Side(lambda: run(logits))


COMPARISONS = (
    Comparison(
        work=f"loss and gradient of {ROWS:,} rows with {CLASSES:,} classes",
        peer="Optax's cross-entropy, without a prior",
        package="optax",
        ours=ours,
        theirs=theirs,
    ),
)
