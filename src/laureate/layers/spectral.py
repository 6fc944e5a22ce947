"""Spectral normalisation: a weight divided by its largest singular value, which power iterations follow."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from laureate._core import Status, require

__all__ = ["SpectralInfo", "SpectralNorm", "SpectralState"]


class SpectralState(NamedTuple):
    """The estimate of the leading right singular vector, carried from one call to the next.

    right: that vector, of length 1.
    """

    right: Float[Array, " o"]


class SpectralInfo(NamedTuple):
    """How good the estimate of the largest singular value is.

    sigma: the estimate, never above it but for rounding.
    residual: ‖Wᵀu − σv‖ / σ, zero at a singular value; some singular value lies within residual × σ of the estimate.
        A residual that stays large says that the weight changes faster than the iterations follow.
    cost: products of the weight with a vector.
    status: DIVERGED where the estimate is not finite; the weight is divided by it all the same.
    """

    sigma: Float[Array, ""]
    residual: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class SpectralNorm(eqx.Module):
    """Bound a layer's Lipschitz constant: W / σ(W), σ the largest singular value (Miyato et al., ICLR 2018).

    ::

        u ← Wv / ‖Wv‖,   v ← Wᵀu / ‖Wᵀu‖,   σ = uᵀWv

    The gradient flows through σ with u and v held fixed, ∂σ/∂W = u vᵀ. A kernel of more than two axes is taken as the
    matrix of its last axis against all others; for a convolution this is not its exact norm as an operator.

    num_steps: of the power method a call, >= 0; one is enough beside training, more before reading σ.

    >>> import jax, jax.numpy as jnp
    >>> norm = SpectralNorm(num_steps=30)
    >>> weight = jnp.diag(jnp.array([3.0, 1.0]))
    >>> scaled, state, info = norm(weight, norm.init(jax.random.key(0), weight))
    >>> round(float(info.sigma), 3), round(float(scaled[0, 0]), 3), bool(info.residual < 1e-3)
    (3.0, 1.0, True)
    """

    num_steps: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require("SpectralNorm", "num_steps", "an integer >= 0", self.num_steps, lambda n: isinstance(n, int) and n >= 0)

    def init(self, key: Array, weight: Float[Array, "*_ o"]) -> SpectralState:
        """A random direction."""
        require("SpectralNorm", "weight", "of two axes at least", weight.shape, lambda s: len(s) >= 2)
        return SpectralState(_unit(jax.random.normal(key, weight.shape[-1:], weight.dtype)))

    def __call__(
        self, weight: Float[Array, "*rest o"], state: SpectralState
    ) -> tuple[Float[Array, "*rest o"], SpectralState, SpectralInfo]:
        """The weight over the estimate of its largest singular value; the state to go on from; how good it is.

        To evaluate a trained network, drop the state that comes back: nothing is then changed.
        """
        matrix = weight.reshape(-1, weight.shape[-1])
        fixed = jax.lax.stop_gradient(matrix)
        right = jax.lax.stop_gradient(state.right)
        for _ in range(self.num_steps):
            right = _unit(fixed.T @ _unit(fixed @ right))
        left = _unit(fixed @ right)
        sigma = left @ matrix @ right
        slack = jnp.linalg.norm(fixed.T @ left - jax.lax.stop_gradient(sigma) * right)
        tiny = jnp.finfo(weight.dtype).tiny
        bounded = jnp.maximum(sigma, tiny)  # a weight of zeros stays one
        info = SpectralInfo(
            sigma,
            residual=slack / jax.lax.stop_gradient(bounded),
            cost=jnp.asarray(2 * self.num_steps + 3),  # u, σ and Wᵀu after the steps
            status=jnp.where(jnp.isfinite(sigma), int(Status.OK), int(Status.DIVERGED)),
        )
        return weight / bounded, SpectralState(right), info


def _unit(vector: Float[Array, " n"]) -> Float[Array, " n"]:
    return vector / jnp.maximum(jnp.linalg.norm(vector), jnp.finfo(vector.dtype).tiny)
