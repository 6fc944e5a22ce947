"""Networks for tests that only need one."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def drawn(make: Callable[[jax.Array], Any], seed: int = 0) -> Any:
    """What ``make(key)`` gives, with weights drawn by NumPy.

    Drawing them in jax compiles a program a shape, and what stands at the head of a file of tests is made by every
    process that collects them.
    """
    generator = np.random.default_rng(seed)

    def draw(leaf: Any) -> Any:
        if not hasattr(leaf, "shape"):
            return leaf
        return jnp.asarray(generator.normal(size=leaf.shape) / np.sqrt(max(leaf.shape, default=1)), leaf.dtype)

    return jax.tree.map(draw, eqx.filter_eval_shape(make, jax.random.key(seed)))
