"""From images to perturbations with everything checked: what is wrong is said before the first step, or with it."""

import warnings
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from laureate._core import Status, require
from laureate.robustness.attack import AbstractAttack, AttackInfo
from laureate.robustness.objectives import Logits

__all__ = ["check_network", "generate"]


def generate(
    key: Key[Array, ""],
    attack: AbstractAttack,
    images: Any,
    labels: Any,
    iterates: bool = False,
) -> tuple[Float[Array, "..."], AttackInfo]:
    """Run an attack with its input and its network checked, compiled; see ``attack.run`` for use inside jit.

    images: floats within the ball's range, batch first. labels: integers, one an image.
    iterates: every perturbation from the start on, ``[num_steps + 1, b, ...]``, instead of the last.

    A gradient that is not finite raises with the step; one that is 0 all along warns.

    >>> import jax
    >>> from laureate.robustness import Linf, PGD
    >>> attack = PGD(lambda x: x @ jnp.array([[1.0, -1], [-2, 2]]), Linf(0.1))
    >>> generate(jax.random.key(0), attack, [[0.5, 0.5]], [0])[0].round(3).tolist()
    [[-0.10000000149011612, 0.10000000149011612]]
    >>> generate(jax.random.key(0), attack, [[12.0, 3.0]], [0])
    Traceback (most recent call last):
    ValueError: generate.images must be within [0.0, 1.0]; got 3.0 to 12.0. Divide by 255, or set the ball's low, high.
    """
    walk = attack.walk
    images = _checked_images(images, float(walk.ball.low), float(walk.ball.high))
    labels = _checked_labels(labels, len(images))
    check_network(walk.logits, images, labels)
    found, info = (_trajectory if iterates else _run)(key, attack, images, labels)
    _tell(info)
    return found, info


@eqx.filter_jit
def _run(key, attack, images, labels):
    return attack.run(key, images, labels)


@eqx.filter_jit
def _trajectory(key, attack, images, labels):
    return attack.trajectory(key, images, labels)


def _checked_images(images: Any, low: float, high: float) -> Array:
    found = np.asarray(images)
    is_float = jnp.issubdtype(found.dtype, jnp.floating)
    require("generate", "images", "floats", str(found.dtype), lambda _: is_float, "Divide by 255.")
    require("generate", "images", "[b, ...] with b >= 1", list(found.shape), lambda s: len(s) >= 2 and s[0] >= 1)
    range_found = f"{found.min()} to {found.max()}"
    remedy = "Divide by 255, or set the ball's low, high."
    fine = bool((found >= low).all() and (found <= high).all())
    if not fine:
        raise ValueError(f"generate.images must be within [{low}, {high}]; got {range_found}. {remedy}")
    return jnp.asarray(found)


def _checked_labels(labels: Any, count: int) -> Array:
    found = np.asarray(labels)
    require("generate", "labels", "integers", str(found.dtype), lambda _: np.issubdtype(found.dtype, np.integer))
    require("generate", "labels", f"{count}, one an image", list(found.shape), lambda s: s == [count])
    return jnp.asarray(found, jnp.int32)


def check_network(logits: Logits, images: Float[Array, "b ..."], labels: Int[Array, "b"]) -> None:
    """Raise where a network cannot be attacked as it is: it draws random numbers, mixes images, knows fewer classes.

    It is called three times. Probabilities instead of logits only warn: margins and λ lose their scale.

    >>> check_network(lambda x: x - x.mean(0), jnp.array([[0.1, 0.9], [0.3, 0.2]]), jnp.array([0, 1]))
    Traceback (most recent call last):
    ValueError: check_network.logits must be of each image alone; got others in a batch. Is batch norm in training mode?
    """
    owner, found = "check_network", np.asarray(logits(images))
    rule = f"[{len(images)}, classes] with 2 classes or more"
    require(owner, "logits", rule, list(found.shape), lambda s: len(s) == 2 and s[0] == len(images) and s[1] >= 2)
    require(owner, "logits", "finite for the images as they are", found, lambda z: np.isfinite(z).all())
    classes = found.shape[1]
    outside = [int(y) for y in np.asarray(labels) if not 0 <= y < classes]
    require(owner, "labels", f"in 0 .. {classes - 1}", outside[:5], lambda y: not y)
    scale = 1e-3 * (1 + np.abs(found).max())
    if np.abs(np.asarray(logits(images)) - found).max() > scale:
        remedy = "Is dropout on? Fix its key, or average over draws inside the function."
        raise ValueError(f"{owner}.logits must be the same when called twice; got others. {remedy}")
    if len(images) > 1 and np.abs(np.asarray(logits(images[:1])) - found[:1]).max() > scale:
        dependence = "others in a batch. Is batch norm in training mode?"
        raise ValueError(f"{owner}.logits must be of each image alone; got {dependence}")
    if np.allclose(found.sum(1), 1, atol=1e-4) and (found >= 0).all():
        text = "logits seem to be probabilities (rows sum to 1): margins and strengths lose their scale; give logits"
        warnings.warn(f"{owner}: {text}.", stacklevel=3)


def _tell(info: AttackInfo) -> None:
    """Raise or warn by the status of the steps."""
    status = np.asarray(info.status)
    if (status == Status.DIVERGED).any():
        step, image = (int(places[0]) for places in np.nonzero(status == Status.DIVERGED))
        raise FloatingPointError(
            f"generate: the gradient of image {image} is not finite at step {step}. Is the network finite within the "
            "ball? In float64?"
        )
    if stuck := int((status == Status.NOT_CONVERGED).all(0).sum()):
        remedy = "A saturated softmax? Try loss='margin'."
        warnings.warn(f"generate: the gradient of {stuck} images is 0 at every step. {remedy}", stacklevel=3)
