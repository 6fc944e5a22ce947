"""The way back: which binary patterns does a trained machine remember?"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate import loops
from laureate._core import Status, require
from laureate.memory.machine import BoltzmannMachine

__all__ = ["ReverseInfo", "reverse_patterns"]


class ReverseInfo(NamedTuple):
    """How near a search came.

    mixing: X, a column a pattern, with patterns ≈ (WX)ᵀ.
    residual: the mean of (WX - sign WX)², a number a pattern.
    binary: the share of entries of WX within 0.1 of -1 or +1, a number a pattern.
    cost: steps of gradient descent.
    status: ``Status.NOT_CONVERGED`` unless every entry of every pattern is that near; nothing is rounded.
    """

    mixing: Float[Array, "hidden patterns"]
    residual: Float[Array, "patterns"]
    binary: Float[Array, "patterns"]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def reverse_patterns(
    key: Key[Array, ""],
    machine: BoltzmannMachine,
    num_patterns: int | None = None,
    sharpness: float = 200.0,
    learning_rate: float = 0.05,
    num_steps: int = 2000,
    progress: Callable[[loops.Progress], None] | None = None,
) -> tuple[Float[Array, "patterns units"], ReverseInfo]:
    """Search combinations of the weights that are binary: WX with entries -1 and +1.

    Gradient descent on ‖WX - tanh(αWX)‖² from X uniform in [-1, 1], each column by itself; two may find the same
    pattern. Any machine equals a Hopfield network with J = WWᵀ; only one with such an X has binary patterns.

    num_patterns: columns of X; by default as many as there are hidden units.
    sharpness: α.
    progress: called about every second with a ``laureate.loops.Progress``; not within jit.

    >>> from laureate.memory import store, to_boltzmann_machine
    >>> machine = to_boltzmann_machine(store([[1, 1, 1, 1, -1, 1, -1, 1]]))
    >>> found, info = reverse_patterns(jax.random.key(0), machine)
    >>> round(abs(float(found[0] @ jnp.array([1.0, 1, 1, 1, -1, 1, -1, 1]))), 3), int(info.status)
    (8.0, 0)
    """
    owner = "reverse_patterns"
    require(owner, "sharpness", "> 0", sharpness, lambda a: a > 0)
    require(owner, "num_steps", ">= 1", num_steps, lambda n: n >= 1)
    weights = machine.weights
    hidden = weights.shape[1]
    count = hidden if num_patterns is None else num_patterns
    require(owner, "num_patterns", ">= 1", count, lambda n: n >= 1)
    # An orthonormal W has entries of about N^-½: the search is for X of about N^½.
    start = jax.random.uniform(key, (hidden, count), weights.dtype, -1.0, 1.0)

    def misfit(mixing):
        image = weights @ mixing
        return jnp.sum((image - jnp.tanh(sharpness * image)) ** 2)

    def descend(mixing, _):
        return mixing - learning_rate * jax.grad(misfit)(mixing), None

    mixing, _ = loops.scan(descend, start, jnp.arange(num_steps), progress=progress)
    image = (weights @ mixing).T
    distance = jnp.abs(jnp.abs(image) - 1)
    binary = jnp.mean(distance < 0.1, axis=1)
    status = jnp.where(jnp.all(binary == 1), int(Status.OK), int(Status.NOT_CONVERGED)).astype(jnp.int32)
    info = ReverseInfo(mixing, jnp.mean(distance**2, axis=1), binary, jnp.asarray(num_steps, jnp.int32), status)
    return image, info
