"""One-dimensional bases φ_0, …, φ_{m−1}: what a functional tensor train is made of, one coordinate at a time.

Every basis says how the constant function 1 is written in it (``constant``), because a train in a hundred dimensions
must start at a constant: a product of a hundred random functions over- or underflows.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["Basis", "CustomBasis", "Fourier", "Hermite", "Polynomials", "Splines"]


class Basis(eqx.Module):
    """What a basis offers: features, their derivatives, its size, the constant, and where it may be trusted."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """m, the number of functions."""

    @property
    @abc.abstractmethod
    def constant(self) -> np.ndarray:
        """Coefficients [m] of the constant function 1."""

    @property
    @abc.abstractmethod
    def interval(self) -> tuple[float, float]:
        """Where the basis was made for; far outside, polynomials explode."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "... m"]:
        """φ_j(x) for every entry of ``x``."""

    def derivative(self, x: Float[Array, "..."]) -> Float[Array, "... m"]:
        """φ_j'(x) for every entry of ``x``."""
        return jax.jvp(self, (x,), (jnp.ones_like(x),))[1]


def _as_interval(ends: Any) -> tuple[float, float]:
    low, high = ends
    return float(low), float(high)


def _first(size: int) -> np.ndarray:
    return np.eye(size)[0]


def _legendre(x: Array, degree: int) -> Array:
    """P_0, …, P_degree at x, by (k+1) P_{k+1} = (2k+1) x P_k − k P_{k−1}."""
    columns = [jnp.ones_like(x), x]
    for k in range(1, degree):
        columns.append(((2 * k + 1) * x * columns[k] - k * columns[k - 1]) / (k + 1))
    return jnp.stack(columns[: degree + 1], axis=-1)


def _h2_coefficients(low: float, high: float, degree: int) -> np.ndarray:
    """Rows: φ_k in Legendre polynomials of s = (2x − a − b)/(b − a), orthonormal in H²(a, b), over the constant φ_0."""
    nodes, weights = np.polynomial.legendre.leggauss(degree + 1)
    half = (high - low) / 2
    gram = np.zeros((degree + 1, degree + 1))
    for order in range(3):  # ⟨p, q⟩ = Σ_{k=0..2} ∫ p^(k) q^(k) dx
        columns = []
        for k in range(degree + 1):
            polynomial = np.polynomial.legendre.Legendre.basis(k)
            columns.append((polynomial.deriv(order) if order else polynomial)(nodes) / half**order)
        values = np.stack(columns)
        gram += half * (values * weights) @ values.T
    rows = np.linalg.inv(np.linalg.cholesky(gram))  # Gram-Schmidt: φ = L⁻¹ P where L Lᵀ is the Gram matrix
    return rows / rows[0, 0]


class Polynomials(Basis):
    """Polynomials orthonormal in H²(low, high), all divided by the constant one, so that φ_0 ≡ 1 (the paper's basis).

    low, high: the interval; it should cover the coordinates the basis will see.
    degree: >= 0; the size is ``degree + 1``. Degree 0 leaves the constant alone.
    clip: hold every function at its end value outside the interval, so that one stray path cannot explode.

    >>> import jax.numpy as jnp
    >>> Polynomials(-1.0, 1.0, degree=2)(jnp.array(0.0)).shape
    (3,)
    """

    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    clip: bool = eqx.field(static=True)
    rows: np.ndarray

    def __init__(self, low: float, high: float, degree: int, clip: bool = False):
        require("Polynomials", "degree", ">= 0", degree, lambda n: n >= 0)
        require("Polynomials", "high", f"> low = {low}", high, lambda b: b > low)
        self.low, self.high, self.degree, self.clip = float(low), float(high), int(degree), bool(clip)
        self.rows = _h2_coefficients(self.low, self.high, self.degree)

    @property
    def size(self) -> int:
        """m = degree + 1."""
        return self.degree + 1

    @property
    def constant(self) -> np.ndarray:
        """φ_0 ≡ 1."""
        return _first(self.size)

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "... m"]:
        """φ_j(x)."""
        x = jnp.clip(x, self.low, self.high) if self.clip else x
        s = (2 * x - self.low - self.high) / (self.high - self.low)
        return _legendre(s, self.degree) @ jnp.asarray(self.rows.T, dtype=s.dtype)


class Hermite(Basis):
    """Hermite polynomials orthonormal under N(mean, scale²): the natural basis where the paths are Gaussian.

    scale: > 0, in the unit of x. degree: >= 0.

    >>> import jax.numpy as jnp
    >>> [round(float(v), 4) for v in Hermite(0.0, 1.0, degree=2)(jnp.array(2.0))]
    [1.0, 2.0, 2.1213]
    """

    mean: float = 0.0
    scale: float = 1.0
    degree: int = eqx.field(static=True, default=2, converter=int)

    def __check_init__(self):
        require("Hermite", "scale", "> 0", self.scale, lambda s: s > 0)
        require("Hermite", "degree", ">= 0", self.degree, lambda n: n >= 0)

    @property
    def size(self) -> int:
        """m = degree + 1."""
        return self.degree + 1

    @property
    def constant(self) -> np.ndarray:
        """φ_0 ≡ 1."""
        return _first(self.size)

    @property
    def interval(self) -> tuple[float, float]:
        """Mean plus or minus six scales: a Gaussian path all but never leaves it."""
        return self.mean - 6 * self.scale, self.mean + 6 * self.scale

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "... m"]:
        """φ_k(x) = He_k((x − mean)/scale) / √k!, by √(k+1) φ_{k+1} = s φ_k − √k φ_{k−1}."""
        s = (x - self.mean) / self.scale
        columns = [jnp.ones_like(s), s]
        for k in range(1, self.degree):
            columns.append((s * columns[k] - np.sqrt(k) * columns[k - 1]) / np.sqrt(k + 1))
        return jnp.stack(columns[: self.degree + 1], axis=-1)


class Fourier(Basis):
    """1, √2 cos(kω(x − low)), √2 sin(kω(x − low)) with ω = 2π/(high − low): for periodic coordinates.

    degree: the largest frequency k, >= 0; the size is ``2 * degree + 1``.
    """

    low: float = eqx.field(static=True, converter=float)
    high: float = eqx.field(static=True, converter=float)
    degree: int = eqx.field(static=True, converter=int)

    def __check_init__(self):
        require("Fourier", "degree", ">= 0", self.degree, lambda n: n >= 0)
        require("Fourier", "high", f"> low = {self.low}", self.high, lambda b: b > self.low)

    @property
    def size(self) -> int:
        """m = 2 degree + 1."""
        return 2 * self.degree + 1

    @property
    def constant(self) -> np.ndarray:
        """φ_0 ≡ 1."""
        return _first(self.size)

    @property
    def interval(self) -> tuple[float, float]:
        """The whole line: a periodic function is at home everywhere."""
        return -np.inf, np.inf

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "... m"]:
        """φ_j(x)."""
        s = 2 * np.pi / (self.high - self.low) * (x - self.low)
        waves = [f(k * s) * np.sqrt(2) for k in range(1, self.degree + 1) for f in (jnp.cos, jnp.sin)]
        return jnp.stack([jnp.ones_like(s), *waves], axis=-1)


class Splines(Basis):
    """Cubic B-splines on equal pieces of (low, high), held at their end values outside.

    num_pieces: the number of intervals, >= 1; the size is ``pieces + 3``. Their sum is the constant 1.
    """

    low: float = eqx.field(static=True, converter=float)
    high: float = eqx.field(static=True, converter=float)
    num_pieces: int = eqx.field(static=True, converter=int)

    def __check_init__(self):
        require("Splines", "num_pieces", ">= 1", self.num_pieces, lambda n: n >= 1)
        require("Splines", "high", f"> low = {self.low}", self.high, lambda b: b > self.low)

    @property
    def size(self) -> int:
        """m = pieces + 3."""
        return self.num_pieces + 3

    @property
    def constant(self) -> np.ndarray:
        """Σ_j B_j ≡ 1 within the interval."""
        return np.ones(self.size)

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "... m"]:
        """B_j(x) = β(s − j + 1), β the cardinal cubic B-spline on (−2, 2) and s the position in pieces."""
        s = (jnp.clip(x, self.low, self.high) - self.low) / (self.high - self.low) * self.num_pieces
        centres = jnp.arange(-1.0, self.num_pieces + 2.0, dtype=s.dtype)
        distance = jnp.abs(s[..., None] - centres.reshape((1,) * s.ndim + (-1,)))
        near = 2 / 3 - distance**2 + distance**3 / 2
        far = (2 - distance) ** 3 / 6
        return jnp.where(distance < 1, near, jnp.where(distance < 2, far, 0.0))


class CustomBasis(Basis):
    """The user's own functions of one real variable; the constant 1 is put before them.

    functions: traceable callables of a scalar.
    trusted: the interval where they make sense.

    >>> import jax.numpy as jnp
    >>> CustomBasis((jnp.sin, jnp.exp))(jnp.array(0.0)).tolist()
    [1.0, 0.0, 1.0]
    """

    functions: tuple[Callable[[Array], Array], ...] = eqx.field(static=True, converter=tuple)
    trusted: tuple[float, float] = eqx.field(static=True, default=(-np.inf, np.inf), converter=_as_interval)

    def __check_init__(self):
        require("CustomBasis", "functions", "callables", self.functions, lambda fs: all(callable(f) for f in fs))

    @property
    def size(self) -> int:
        """m = 1 + the number of functions."""
        return 1 + len(self.functions)

    @property
    def constant(self) -> np.ndarray:
        """φ_0 ≡ 1."""
        return _first(self.size)

    @property
    def interval(self) -> tuple[float, float]:
        """``trusted``."""
        return self.trusted

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "... m"]:
        """φ_j(x)."""
        return jnp.stack([jnp.ones_like(x), *(jnp.vectorize(f)(x) for f in self.functions)], axis=-1)
