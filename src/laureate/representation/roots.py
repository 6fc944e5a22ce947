"""Powers of a symmetric positive semi-definite matrix: by its eigenvectors, or by products alone."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

__all__ = ["power_by_eigh", "root_by_newton_schulz", "spectral_norm"]


def power_by_eigh(
    matrix: Float[Array, "d d"], power: Any, relative: bool
) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    """(A/max s)^power or A^power, and max s. Eigenvalues that rounding has made negative count as zero."""
    values, vectors = jnp.linalg.eigh(matrix)
    values = jnp.maximum(values, 0.0)
    largest = values[-1]
    base = values / jnp.where(largest > 0, largest, jnp.ones_like(largest)) if relative else values
    return (vectors * base[None, :] ** power) @ vectors.T, largest


def root_by_newton_schulz(
    matrix: Float[Array, "d d"], relative: bool, num_steps: int = 30
) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    """(A/‖A‖₂)^{1/2} or A^{1/2}, and ‖A‖₂, by products of matrices only.

    Y ← Y(3 − ZY)/2, Z ← (3 − ZY)Z/2 from Y = A/‖A‖, Z = 1: then Y → A^{1/2}. A root below 1.5^{−iterations} of the
    largest is not reached, and comes out too small; in a predictor it drowns in ε.
    """
    largest = spectral_norm(matrix)
    # The iteration converges for eigenvalues up to 3; the norm may be found a little too small.
    scaled = matrix / jnp.where(largest > 0, largest, jnp.ones_like(largest))
    eye = jnp.eye(matrix.shape[0], dtype=matrix.dtype)

    def step(_, carry):
        y, z = carry
        middle = 1.5 * eye - 0.5 * (z @ y)
        return y @ middle, middle @ z

    root, _ = jax.lax.fori_loop(0, num_steps, step, (scaled, eye))
    return root if relative else root * jnp.sqrt(largest), largest


def spectral_norm(matrix: Float[Array, "d d"], num_steps: int = 200) -> Float[Array, ""]:
    """The largest eigenvalue by the power iteration, from a fixed start that favours no direction.

    However close the next eigenvalues are, it is too small by a share of at most about log(D)/(4 · 200): the start has
    about 1/D of its square along the first eigenvector.
    """
    d = matrix.shape[0]
    start = jnp.cos(jnp.arange(1, d + 1, dtype=matrix.dtype) * 1.7) + 0.5  # no symmetry that a matrix might share

    def step(_, v):
        w = matrix @ v
        return w / (jnp.linalg.norm(w) + jnp.finfo(matrix.dtype).tiny)

    v = jax.lax.fori_loop(0, num_steps, step, start / jnp.linalg.norm(start))
    return v @ (matrix @ v)
