"""How far draws are from a density known up to a constant, by its scores: kernelized Stein discrepancies.

    s(x) = ∇ log p(x),   KSD² = E_{x,y~q} h(x, y),   E_{x~p} h(x, ·) = 0

whole points at once (`ksd`), or *sliced* (`sliced_ksd`): the score on one line r, the point on another g.
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["SlicedKSD", "Slices", "ksd", "sliced_ksd"]

Kernel = Literal["rbf", "imq"] | Callable[[Array], Array]
Bandwidth = Literal["median", "log"] | float | Array
Scores = Array | Callable[[Array], Array]

MOST_POINTS = 16_384  # their matrix has a gigabyte in single precision
PAIRS = 2**12  # whose median distance is the bandwidth
HALVINGS = 24  # of the interval in which it lies: as far as single precision goes, and faster than sorting


class Slices(NamedTuple):
    """Unit vectors, one pair a row.

    r: which the score is projected on, [m, d]. g: which the point is projected on, [m, d].
    """

    r: Float[Array, "m d"]
    g: Float[Array, "m d"]


class SlicedKSD(NamedTuple):
    """A discrepancy along slices.

    value: the sum over slices. per_slice: each slice's own, [m].
    """

    value: Float[Array, ""]
    per_slice: Float[Array, "m"]


def ksd(
    samples: Float[Array, "n d"],
    scores: Scores,
    *,
    kernel: Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    statistic: Literal["u", "v"] = "u",
) -> Float[Array, ""]:
    """How far draws are from a density of which only the gradient of the logarithm is known.

    ::

        h(x, y) = s(x)·s(y) k + s(x)·∇_y k + s(y)·∇_x k + tr ∇_x∇_y k     (Liu, Lee & Jordan 2016)

    The squared discrepancy: 0 for draws of the density itself, in the mean. In more than about ten dimensions it sees
    little: `max_sliced_ksd`.

    samples: draws, as rows, in single or double precision: sums keep their type.
    scores: ∇ log p at the draws; or a function of one point, the log density (up to a constant) or its gradient.
    kernel: "rbf", exp(−δ²/2ℓ²), or "imq", (1 + δ²/ℓ²)^−½, or φ of φ(δ²/ℓ²), elementwise and smooth.
    bandwidth: ℓ; "median", of the distances between draws (of all pairs, or of about 4,096, one a draw at least), or
        "log", median/√(2 ln n), as BlackJAX has it. No gradient passes through it.
    statistic: "u", without bias, may be negative; "v", with the diagonal, never negative.

    >>> x = jax.random.normal(jax.random.key(0), (200, 3))
    >>> program = jax.jit(lambda x: ksd(x, lambda x: -x @ x / 2))
    >>> bool(abs(program(x)) < 0.1), bool(program(x + 1) > 1)  # of the density's own draws, and of others
    (True, True)
    """
    x, s = checked("ksd", samples, scores, kernel, statistic)
    ell = bandwidth_of("ksd", bandwidth, x)
    return summed(full_gram(x, s, ell, kernel), statistic)


def sliced_ksd(
    samples: Float[Array, "n d"],
    scores: Scores,
    slices: Slices | None = None,
    *,
    kernel: Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    statistic: Literal["u", "v"] = "u",
) -> SlicedKSD:
    """How far draws are from a density, one line at a time: differences along a slice count in any dimension.

    ::

        h_{r,g}(x, y) = s_r(x)s_r(y) k + a s_r(x) ∂_{u'}k + a s_r(y) ∂_u k + a² ∂_u∂_{u'}k,
        s_r = r·s,   u = g·x,   a = r·g,   SKSD² = Σ_r E h_{r,g_r}     (Gong, Li & Hernández-Lobato 2021)

    slices: unit vectors r and g; by default the axes, r = g, which cannot see dependence between coordinates.
    samples, scores, kernel, bandwidth, statistic: as for `ksd`; a bandwidth may be one for each slice.

    >>> x = jax.random.normal(jax.random.key(0), (200, 30)).at[:, 0].multiply(0.5)
    >>> found = jax.jit(lambda x: sliced_ksd(x, -x))(x)
    >>> int(found.per_slice.argmax())
    0
    """
    x, s = checked("sliced_ksd", samples, scores, kernel, statistic)
    slices = unit_slices("sliced_ksd", slices, x)

    def one(ell, r, g):
        return summed(sliced_gram(x, s, r, g, ell, kernel), statistic)

    ells = slice_bandwidths("sliced_ksd", bandwidth, x, slices.g)
    per_slice = in_blocks(lambda row: one(*row), (ells, *slices), len(x) ** 2)
    return SlicedKSD(jnp.sum(per_slice), per_slice)


def full_gram(x: Array, s: Array, ell: Array, kernel: Kernel) -> Float[Array, "n n"]:
    """h of every pair, by products of matrices."""
    x = x - jnp.mean(x, axis=0)  # differences alone count; less is lost in single precision
    inner, mixed = x @ x.T, x @ s.T
    squares, own = jnp.diag(inner), jnp.diag(mixed)
    distance = jnp.maximum(squares[:, None] + squares[None, :] - 2 * inner, 0.0)
    towards = mixed + mixed.T - own[:, None] - own[None, :]  # (s(y) − s(x))·(x − y)
    return _stein(s @ s.T, towards, distance, x.shape[1], 1.0, ell, kernel)


def sliced_gram(x: Array, s: Array, r: Array, g: Array, ell: Array, kernel: Kernel) -> Float[Array, "n n"]:
    """h_{r,g} of every pair."""
    u, s_r, a = x @ g, s @ r, r @ g
    delta = u[:, None] - u[None, :]
    towards = (s_r[None, :] - s_r[:, None]) * delta
    return _stein(s_r[:, None] * s_r[None, :], towards, delta**2, 1, a, ell, kernel)


def _stein(inner: Array, towards: Array, distance: Array, dimension: int, a: Any, ell: Array, kernel: Kernel) -> Array:
    """h with k = φ(δ²/ℓ²): ∇_x k = 2φ' δ/ℓ² = −∇_y k,   tr ∇_x∇_y k = −2dφ'/ℓ² − 4φ''δ²/ℓ⁴."""
    phi, first, second = profile(kernel, distance / ell**2)
    slope = 2 * first / ell**2
    return phi * inner + a * slope * towards - a**2 * (dimension * slope + 4 * second * distance / ell**4)


def profile(kernel: Kernel, t: Array) -> tuple[Array, Array, Array]:
    """φ, φ' and φ'' at t = δ²/ℓ²."""
    if kernel == "rbf":
        phi = jnp.exp(-t / 2)
        return phi, -phi / 2, phi / 4
    if kernel == "imq":
        phi = jax.lax.rsqrt(1 + t)
        return phi, -(phi**3) / 2, 0.75 * phi**5
    if isinstance(kernel, str):
        raise ValueError(f"kernel must be 'rbf', 'imq' or a function; got {kernel!r}.")

    def value_and_slope(t):
        return jax.jvp(kernel, (t,), (jnp.ones_like(t),))

    (phi, first), (_, second) = jax.jvp(value_and_slope, (t,), (jnp.ones_like(t),))
    return phi, first, second


def summed(gram: Array, statistic: str) -> Array:
    """The mean over all pairs, or over those of two different draws."""
    n = len(gram)
    return jnp.mean(gram) if statistic == "v" else (jnp.sum(gram) - jnp.trace(gram)) / (n * (n - 1))


def in_blocks(function: Callable, rows: Any, size: int) -> Any:
    """The function of every row, as many at once as hold four million numbers of which each makes ``size``."""
    count = len(jax.tree.leaves(rows)[0])
    return jax.lax.map(function, rows, batch_size=min(count, max(1, 2**22 // size)))


# --- bandwidths -------------------------------------------------------------------------------------------------------


def bandwidth_of(owner: str, bandwidth: Bandwidth, x: Float[Array, "n d"], shape: tuple[int, ...] = ()) -> Array:
    """ℓ, without a gradient; one number, or as many as ``shape`` has."""
    if isinstance(bandwidth, str):
        ell = median_distance(x)
        if not isinstance(ell, Tracer):
            rule, remedy = "above 0 for distinct draws", "Over half of the pairs are equal: pass bandwidth=."
            require(owner, "median distance", rule, float(ell), lambda e: e > 0 or np.isnan(e), remedy)
        ell = scaled(ell, bandwidth, len(x))
    else:
        ell = jnp.asarray(bandwidth, x.dtype)
        require(owner, "bandwidth", "> 0", bandwidth, lambda b: np.all(np.asarray(b) > 0))
        rule = f"one number or {shape[0]}, one a slice" if shape else "one number"
        require(owner, "bandwidth", rule, ell.shape, lambda found: found in ((), shape))
    return floored(ell)


def slice_bandwidths(owner: str, bandwidth: Bandwidth, x: Array, g: Array) -> Float[Array, "m"]:
    """ℓ of each slice, of the points' projections, without a gradient."""
    if not isinstance(bandwidth, str):
        return jnp.broadcast_to(bandwidth_of(owner, bandwidth, x, g.shape[:1]), g.shape[:1])
    ells = jax.vmap(lambda u: median_distance(u[:, None]))(g @ x.T)
    if not isinstance(ells, Tracer):
        for index in np.flatnonzero(np.asarray(ells) == 0)[:1]:
            rule, remedy = f"above 0 along slice {index}", "Draws repeat there: pass bandwidth=."
            require(owner, "median distance", rule, 0.0, lambda _: False, remedy)
    return floored(scaled(ells, bandwidth, len(x)))


def floored(ell: Array) -> Array:
    """ℓ above 0, so that its fourth power is, and without a gradient."""
    return jax.lax.stop_gradient(jnp.maximum(ell, 10 * jnp.finfo(ell.dtype).tiny ** 0.25))


def scaled(median: Array, bandwidth: str, n: int) -> Array:
    """The median itself, or BlackJAX's: ℓ² = median²/(2 ln n)."""
    if bandwidth not in ("median", "log"):
        raise ValueError(f"bandwidth must be 'median', 'log' or a number; got {bandwidth!r}.")
    return median / jnp.sqrt(2 * jnp.log(n)) if bandwidth == "log" else median


def median_distance(x: Float[Array, "n d"]) -> Array:
    """The smallest distance that half of the pairs do not exceed; without a gradient.

    Of all pairs; where they are too many, of pairs far apart in order, for the draws of a chain resemble each other.

    >>> print(f"{median_distance(jnp.array([[0.0], [1.0], [5.0]])):.4f}")
    4.0000
    """
    n, x = len(x), jax.lax.stop_gradient(x)
    if n * (n - 1) // 2 <= PAIRS:
        first, second = np.triu_indices(n, 1)
    else:
        lags = max(1, PAIRS // n)
        shift = (1 + np.arange(lags)) * (n // 2) // lags
        first = np.tile(np.arange(n), lags)
        second = (first + np.repeat(shift, n)) % n
    distances = jnp.sqrt(jnp.sum((x[first] - x[second]) ** 2, axis=1))

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        enough = jnp.mean(distances <= middle, dtype=x.dtype) >= 0.5
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    largest = jnp.max(distances)
    median = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(largest), largest))[1]
    return jnp.where(median > 1e-6 * largest, median, 0.0)


# --- what comes in ----------------------------------------------------------------------------------------------------


def checked(owner: str, samples: Any, scores: Scores, kernel: Kernel = "rbf", statistic: str = "u") -> Any:
    """Draws and their scores as arrays of one floating type; what can be seen is checked."""
    if isinstance(kernel, str):
        require(owner, "kernel", "'rbf', 'imq' or a function", kernel, lambda name: name in ("rbf", "imq"))
    require(owner, "statistic", "'u' or 'v'", statistic, lambda name: name in ("u", "v"))
    if not jnp.issubdtype(jnp.result_type(samples), jnp.floating):
        kind = jnp.result_type(samples)
        raise TypeError(f"{owner}.samples must be of a floating type; got {kind}. Discrete draws have no scores.")
    x = jnp.asarray(samples)
    require(owner, "samples", "[n >= 2, d >= 1]", x.shape, lambda s: len(s) == 2 and s[0] >= 2 and s[1] >= 1)
    remedy = "Thin the draws."
    require(owner, "samples", f"at most {MOST_POINTS} rows", len(x), lambda n: n <= MOST_POINTS, remedy)
    s = scores_at(scores, x) if callable(scores) else jnp.asarray(scores, x.dtype)
    hint = " Are the draws transposed?" if x.shape[1] > len(x) else ""
    require(owner, "scores", f"of the shape of samples, {x.shape}", s.shape, lambda shape: shape == x.shape, hint)
    for name, array in (("samples", x), ("scores", s)):
        if not isinstance(array, Tracer) and not np.isfinite(np.asarray(array)).all():
            row = int(np.flatnonzero(~np.isfinite(np.asarray(array)).all(axis=1))[0])
            remedy = "Is the support bounded, or a transform forgotten? The density must vanish at its boundary."
            require(owner, name, "finite", f"{np.asarray(array)[row]} in row {row}", lambda _: False, remedy)
    return x, s


def scores_at(function: Callable[..., Array], x: Float[Array, "n d"], *more: Any) -> Float[Array, "n d"]:
    """The score at each row, of a log density or of a score function."""
    shape = jax.eval_shape(lambda point: function(point, *more), x[0]).shape
    score = jax.grad(function) if shape == () else function
    return jax.vmap(lambda point: score(point, *more))(x)


def unit_slices(owner: str, slices: Slices | None, x: Float[Array, "n d"]) -> Slices:
    """Slices of unit length, of the points' type; the axes where there are none."""
    dimension = x.shape[1]
    if slices is None:
        return Slices(*[jnp.eye(dimension, dtype=x.dtype)] * 2)
    r, g = (jnp.asarray(part, x.dtype) for part in slices)
    require(owner, "slices", f"two arrays [m, {dimension}]", (r.shape, g.shape),
            lambda s: s[0] == s[1] and len(s[0]) == 2 and s[0][1] == dimension and s[0][0] >= 1)  # fmt: skip
    for name, part in (("r", r), ("g", g)):
        if isinstance(part, Tracer):
            continue
        lengths = np.linalg.norm(np.asarray(part), axis=1)
        for row in np.flatnonzero(lengths == 0)[:1]:
            require(owner, f"slices.{name}", "of length 1", f"0 in row {row}", lambda _: False)
        if np.abs(lengths - 1).max() > 1e-3:
            warnings.warn(f"{owner}.slices.{name} are not of length 1: normalised.", UserWarning, stacklevel=3)
    return Slices(unit(r), unit(g))


def unit(rows: Array) -> Array:
    """Rows of length 1."""
    return rows / jnp.sqrt(jnp.sum(rows**2, axis=-1, keepdims=True))
