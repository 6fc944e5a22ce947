"""What an attack makes large: losses of logits, and the margin that counts as the reward of a game."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from laureate._core import require

__all__ = ["LOSSES", "Logits", "Loss", "cross_entropy", "loss_of", "margin", "rivals"]

Logits = Callable[[Array], Array]  # images [b, ...] to logits [b, classes]
Loss = Callable[[Array, Array], Array]  # logits and labels to one number an image, large where the label is missed


def cross_entropy(logits: Float[Array, "b c"], labels: Int[Array, "b"]) -> Float[Array, "b"]:
    """-log softmax(z)_y, one an image."""
    return -_of(jax.nn.log_softmax(logits), labels)


def margin(logits: Float[Array, "b c"], labels: Int[Array, "b"]) -> Float[Array, "b"]:
    """max_{y' ≠ y} z_{y'} - z_y: by how much another class leads; above 0 where the label is missed.

    >>> margin(jnp.array([[1.0, 3.0, 2.0]]), jnp.array([2])).tolist()
    [1.0]
    """
    return _of(logits, rivals(logits, labels)) - _of(logits, labels)


def rivals(logits: Float[Array, "b c"], labels: Int[Array, "b"]) -> Int[Array, "b"]:
    """The largest of the other classes."""
    classes = jnp.arange(logits.shape[-1])
    return jnp.argmax(jnp.where(classes == labels[:, None], -jnp.inf, logits), axis=-1)


def _of(values: Array, classes: Array) -> Array:
    return jnp.take_along_axis(values, classes[:, None], axis=-1)[:, 0]


LOSSES: dict[str, Loss] = {"cross-entropy": cross_entropy, "margin": margin}


def loss_of(loss: str | Loss) -> Loss:
    """The function behind a name, or the function itself."""
    if isinstance(loss, str):
        rule = f"{', '.join(map(repr, LOSSES))} or a function of logits and labels"
        require("attack", "loss", rule, loss, lambda name: name in LOSSES)
        return LOSSES[loss]
    return loss
