"""Images as sums of small filters: b = Σ_m d_m ∗ x_m, its analytic weight in closed form, and solvers for it.

Images are [..., H, W] and codes [..., H + D − 1, W + D − 1, M] for M filters of D × D, so that every filter may begin
outside the image. Convolutions are matrix products with D² shifts, which vmap over filters as well.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.recovery.alista import counts
from laureate.recovery.dictionary import AbstractDictionary
from laureate.recovery.shrinkage import SupportSchedule, select_and_shrink
from laureate.recovery.solver import AbstractSolver, prepare, spectral_norm

__all__ = [
    "ConvALISTA",
    "ConvDictionary",
    "ConvLISTA",
    "ConvWeight",
    "analytic_conv_weight",
    "circular_conv_weight",
]


def _checked_filters(filters: Any) -> Array:
    array = jnp.asarray(filters)
    if array.ndim != 3 or array.shape[1] != array.shape[2]:
        raise ValueError(f"filters must be [M, D, D], M square filters; got an array of shape {array.shape}.")
    if array.shape[1] % 2 == 0:
        raise ValueError(
            f"filters must have an odd size D, so that 2D − 1 of Theorem 3 is centred; got {array.shape[1]}. "
            "Pad them with a row and a column of zeros."
        )
    return array


def _height_and_width(image: Any) -> tuple[int, int]:
    height, width = image
    return int(height), int(width)


class ConvDictionary(AbstractDictionary):
    """The operator Σ_m d_m ∗ x_m for images of one size, with filters [M, D, D]; for every solver of this area."""

    filters: Array = eqx.field(converter=_checked_filters)
    image: tuple[int, int] = eqx.field(static=True, converter=_height_and_width)

    def __check_init__(self):
        smallest = f"(H, W), at least the filters' {self.filters.shape[-1]}"
        require("ConvDictionary", "image", smallest, self.image, lambda size: min(size) >= self.filters.shape[-1])

    @property
    def shape(self) -> tuple[int, int]:
        """(N, M) as a matrix: pixels, and entries of a code."""
        return int(np.prod(self.image)), int(np.prod(self.code_shape))

    @property
    def code_shape(self) -> tuple[int, int, int]:
        """(H + D − 1, W + D − 1, M)."""
        number, size, _ = self.filters.shape
        return self.image[0] + size - 1, self.image[1] + size - 1, number

    def matvec(self, x: Array) -> Array:
        """b[i] = Σ_m Σ_u d_m[u] x_m[i + D − 1 − u]."""
        number, size, _ = self.filters.shape
        parts = x @ self.filters.reshape(number, size * size)
        height, width = self.image
        shifted = [
            parts[..., size - 1 - u : size - 1 - u + height, size - 1 - v : size - 1 - v + width, u * size + v]
            for u in range(size)
            for v in range(size)
        ]
        return jnp.sum(jnp.stack(shifted), axis=0)

    def rmatvec(self, r: Array) -> Array:
        """The adjoint: x_m[p] = Σ_u d_m[u] r[p − (D − 1) + u], the image zero outside."""
        return _analysis(self.filters, r)

    def zeros(self, b: Array) -> Array:
        """Zero codes for images [..., H, W]."""
        if b.ndim < 2 or b.shape[-2:] != self.image:
            advice = ""
            if b.ndim >= 3 and b.shape[-3:-1] == self.image:
                advice = " Code the channels one by one (move them to the front), or learn one dictionary for all."
            raise ValueError(f"b must be images [..., {self.image[0]}, {self.image[1]}]; got {b.shape}.{advice}")
        return jnp.zeros((*b.shape[:-2], *self.code_shape), b.dtype)

    def norms(self) -> Array:
        """‖d_m‖ of the filters: what is cut off at the border does not count."""
        return jnp.sqrt(jnp.sum(self.filters**2, axis=(1, 2)))

    def divided_by(self, norms: Array) -> "ConvDictionary":
        """The dictionary with its filters divided by these numbers."""
        return ConvDictionary(self.filters / norms[:, None, None], self.image)


class ConvWeight(eqx.Module):
    """Filters w [M, D, D] that look at the residual: Wᵀ r is their correlation with it."""

    filters: Array

    def rmatvec(self, r: Array) -> Array:
        """x_m[p] = Σ_u w_m[u] r[p − (D − 1) + u]."""
        return _analysis(self.filters, r)


class ConvALISTA(AbstractSolver):
    """Convolutional ALISTA (Liu et al. 2019, section 3.2): x_m ← η_{θ_k}(x_m − γ_k w_m ∗̃ (Σ_j d_j ∗ x_j − b)).

    γ starts at 1/‖WᵀD‖, and θ at 0.1 γ.

    filters: [M, D, D], D odd.
    image: (H, W), at least the filters' size.
    weight: filters [M, D, D]; the analytic ones without.
    num_layers: K, >= 1.
    support: which entries pass unshrunk; None: none do.
    normalise: work with filters of norm 1; codes stay in the units of yours.

    >>> import jax
    >>> filters = jax.random.normal(jax.random.key(0), (4, 3, 3))
    >>> solver = ConvALISTA(filters, (8, 8), num_layers=5, normalise=True)
    >>> solver(jnp.ones((2, 8, 8))).shape, solver.num_parameters
    ((2, 10, 10, 4), 10)
    """

    dictionary: ConvDictionary
    weight: ConvWeight
    scale: Array | None
    gamma: Array
    theta: Array
    num_layers: int = eqx.field(static=True)
    support: SupportSchedule | None = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("gamma", "theta")

    def __init__(
        self,
        filters: Any,
        image: tuple[int, int],
        weight: Any = None,
        num_layers: int = 10,
        *,
        support: SupportSchedule | None = None,
        normalise: bool = False,
    ):
        self.dictionary, self.scale = _prepared("ConvALISTA", filters, image, num_layers, normalise)
        chosen = analytic_conv_weight(self.dictionary.filters) if weight is None else _checked_filters(weight)
        self.weight = ConvWeight(chosen)
        forward = lambda x: self.weight.rmatvec(self.dictionary.matvec(x))  # noqa: E731
        step = 1 / (1.001 * spectral_norm(forward, self.dictionary.start()))
        self.gamma, self.theta = jnp.full(num_layers, step), jnp.full(num_layers, 0.1 * step)
        self.num_layers, self.support = num_layers, support

    @property
    def num_parameters(self) -> int:
        """2K."""
        return self.gamma.size + self.theta.size

    def parameters(self) -> Any:
        """γ_k, θ_k and how many entries pass unshrunk."""
        return self.gamma, self.theta, jnp.asarray(counts(self.support, self.num_layers, self.dictionary.shape[1]))

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η_{θ_k}(x − γ_k Wᵀ(Dx − b))."""
        gamma, theta, count = parameters
        v = x - gamma * self.weight.rmatvec(self.dictionary.matvec(x) - b)
        most = int(counts(self.support, self.num_layers, self.dictionary.shape[1]).max())
        return select_and_shrink(v, theta, count, most, code_axes=3)


class ConvLISTA(AbstractSolver):
    """The same layers with filters w of their own in every layer, learned: x ← η_{θ_k}(x − w_k ∗̃ (Σ d ∗ x − b)).

    start: the filters to begin with, times 1/‖WᵀD‖; the dictionary's own without.
    The other arguments are those of ``ConvALISTA``.

    >>> import jax
    >>> filters = jax.random.normal(jax.random.key(0), (4, 3, 3))
    >>> solver = ConvLISTA(filters, (8, 8), num_layers=5, normalise=True)
    >>> solver(jnp.ones((2, 8, 8))).shape, solver.num_parameters
    ((2, 10, 10, 4), 185)
    """

    dictionary: ConvDictionary
    scale: Array | None
    weight: Array
    theta: Array
    num_layers: int = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("weight", "theta")

    def __init__(
        self, filters: Any, image: tuple[int, int], start: Any = None, num_layers: int = 10, *, normalise: bool = False
    ):
        self.dictionary, self.scale = _prepared("ConvLISTA", filters, image, num_layers, normalise)
        first = self.dictionary.filters if start is None else _checked_filters(start)
        forward = lambda x: _analysis(first, self.dictionary.matvec(x))  # noqa: E731
        step = 1 / (1.001 * spectral_norm(forward, self.dictionary.start()))
        self.weight = jnp.tile(step * first, (num_layers, 1, 1, 1))
        self.theta = jnp.full(num_layers, 0.1 * step)
        self.num_layers = num_layers

    @property
    def num_parameters(self) -> int:
        """K (M D² + 1)."""
        return self.weight.size + self.theta.size

    def parameters(self) -> Any:
        """w_k, θ_k."""
        return self.weight, self.theta

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η_{θ_k}(x − w_k ∗̃ (Dx − b))."""
        weight, theta = parameters
        return select_and_shrink(x - _analysis(weight, self.dictionary.matvec(x) - b), theta, 0, 0, code_axes=3)


def analytic_conv_weight(filters: Any, size: int | None = None) -> Array:
    """w = argmin ‖W_cirᵀ D_cir‖_F² with ⟨w_m, d_m⟩ = 1, filters [M, D, D]: w_m = Q⁻¹ d_m / (d_mᵀ Q⁻¹ d_m).

    Q[u, v] = c[u − v], c the autocorrelation Σ_m d_m ⋆ d_m: one system of D² unknowns for all filters.
    size: of the circle the convolutions run on. From 2D − 1 on the answer does not depend on it (Theorem 3).
    """
    checked = _checked_filters(filters)
    smallest = 2 * checked.shape[-1] - 1
    size = smallest if size is None else size
    rule = f">= 2D − 1 = {smallest} (Theorem 3: below, filters meet themselves around the circle)"
    require("analytic_conv_weight", "size", rule, size, lambda n: n >= smallest, "Leave it out.")
    return circular_conv_weight(checked, size)


def circular_conv_weight(filters: Array, size: int | Array) -> Array:
    """The same for circular convolutions on size × size pixels, also where filters meet themselves; size >= D."""
    number, side, _ = filters.shape
    flat = filters.reshape(number, side * side)
    at = jnp.arange(side)
    lag = at[:, None] - at[None, :] + side - 1  # u − v, from 0
    rows = jnp.repeat(jnp.repeat(lag, side, 0), side, 1)
    columns = jnp.tile(lag, (side, side))
    lags = 2 * side - 1
    c = jnp.zeros((lags, lags), flat.dtype).at[rows, columns].add(flat.T @ flat)
    # On a circle of n pixels lags that differ by a multiple of n are one.
    same = ((jnp.arange(lags)[:, None] - jnp.arange(lags)[None, :]) % size == 0).astype(flat.dtype)
    gram = (same @ c @ same)[rows, columns]
    solved = jnp.linalg.solve(gram, flat.T).T
    return (solved / jnp.sum(solved * flat, axis=1, keepdims=True)).reshape(filters.shape)


def _analysis(filters: Array, r: Array) -> Array:
    number, size, _ = filters.shape
    height, width = r.shape[-2] + size - 1, r.shape[-1] + size - 1
    padded = jnp.pad(r, [(0, 0)] * (r.ndim - 2) + [(size - 1, size - 1)] * 2)
    patches = [padded[..., u : u + height, v : v + width] for u in range(size) for v in range(size)]
    return jnp.stack(patches, axis=-1) @ filters.reshape(number, size * size).T


def _prepared(
    owner: str, filters: Any, image: tuple[int, int], num_layers: int, normalise: bool
) -> tuple[ConvDictionary, Array | None]:
    dictionary, scale = prepare(owner, ConvDictionary(filters, image), num_layers, normalise)
    if not isinstance(dictionary, ConvDictionary):
        raise TypeError(f"{owner}.dictionary must be a ConvDictionary; got {type(dictionary).__name__}.")
    return dictionary, scale
