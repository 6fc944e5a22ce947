"""Correspondences in closed form: baselines from moments, pairs and linear dynamics, and what dynamics cannot tell."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require
from laureate.control.bonuses import Transitions

__all__ = ["Affine", "KernelRegression", "LinearDynamics", "dynamics_alignment", "fit_linear_dynamics",
           "kernel_regression", "moment_alignment", "symmetries"]  # fmt: skip


class Affine(eqx.Module):
    """A map M x + c of a flattened observation.

    matrix, offset: M and c.
    """

    matrix: Float[Array, "out in"]
    offset: Float[Array, " out"]

    def __call__(self, x: Array) -> Array:
        """M x + c."""
        return self.matrix @ jnp.ravel(x) + self.offset


class LinearDynamics(NamedTuple):
    """y' = A y + B u + c.

    transition: A, [s, s]. control: B, [s, a]. constant: c, [s].
    """

    transition: Float[Array, "s s"]
    control: Float[Array, "s a"]
    constant: Float[Array, " s"]


def moment_alignment(x: Float[Array, "n p"], y: Float[Array, "m q"]) -> Affine:
    """The affine map that gives x the mean and the covariance of y; without pairs and without actions.

    ::

        G(x) = μ_y + Σ_y^½ Q Σ_x^{-½} (x − μ_x),    Q: the q directions of x that vary most, in order

    Q is not determined by moments; it pairs principal directions by their variance, with signs by their skewness.
    """

    def parts(rows):
        mean = jnp.mean(rows, axis=0)
        values, vectors = jnp.linalg.eigh(jnp.atleast_2d(jnp.cov(rows.T, ddof=0)))
        vectors = vectors[:, ::-1][:, : y.shape[1]]
        skew = jnp.mean(((rows - mean) @ vectors) ** 3, axis=0)
        return mean, vectors * jnp.where(skew < 0, -1.0, 1.0), jnp.maximum(values[::-1][: y.shape[1]], 1e-9)

    rule = f"of at least {y.shape[1]} numbers a row, as y"
    require("moment_alignment", "x", rule, x.shape[1], lambda n: n >= y.shape[1])
    (mean_x, out, size_x), (mean_y, into, size_y) = parts(x), parts(y)
    matrix = (into * jnp.sqrt(size_y / size_x)) @ out.T
    return Affine(matrix, mean_y - matrix @ mean_x)


def fit_linear_dynamics(steps: Transitions, ridge: float | Array = 1e-6) -> LinearDynamics:
    """Least squares of the next observation on the observation and the action."""
    y, u = steps.observation, steps.action
    rows = jnp.concatenate([y, u, jnp.ones((len(y), 1), y.dtype)], axis=1)
    gram = rows.T @ rows / len(rows)
    gram = gram + ridge * jnp.trace(gram) / len(gram) * jnp.eye(len(gram), dtype=gram.dtype)
    found = jnp.linalg.solve(gram, rows.T @ steps.following / len(rows)).T
    size = y.shape[1]
    return LinearDynamics(found[:, :size], found[:, size:-1], found[:, -1])


def dynamics_alignment(x: Transitions, y: Transitions, num_steps: int = 8, ridge: float | Array = 1e-4) -> Affine:
    """The linear map under which two linear systems answer alike to the same actions: the dynamics cycle, solved.

    ::

        G B_x = B_y,  G A_x = A_y G   ⇒   G [B_x, A_x B_x, …, A_x^k B_x] = [B_y, A_y B_y, …, A_y^k B_y]

    solved by least squares, the offset by the means. Exact for linear systems seen linearly that can be controlled;
    both domains take the same actions.

    num_steps: k, >= 1. ridge: share of the mean eigenvalue that is added; > 0.
    """
    require("dynamics_alignment", "num_steps", ">= 1", num_steps, lambda n: n >= 1)

    def answers(steps):
        a, b, _ = fit_linear_dynamics(steps)
        columns = [b]
        for _ in range(num_steps):
            columns.append(a @ columns[-1])
        return jnp.concatenate(columns, axis=1)

    one, two = answers(x), answers(y)
    gram = one @ one.T
    gram = gram + ridge * jnp.trace(gram) / len(gram) * jnp.eye(len(gram), dtype=gram.dtype)
    matrix = jnp.linalg.solve(gram, one @ two.T).T
    return Affine(matrix, jnp.mean(y.observation, axis=0) - matrix @ jnp.mean(x.observation, axis=0))


class KernelRegression(eqx.Module):
    """ŷ = Σ_i α_i exp(−‖x − x_i‖² / 2h²) + c, fitted to pairs.

    rows, weights, offset, width: x_i, α, c and h. penalty: the one that was chosen.
    """

    rows: Float[Array, "n p"]
    weights: Float[Array, "n q"]
    offset: Float[Array, " q"]
    width: Float[Array, ""]
    penalty: Float[Array, ""]

    def __call__(self, x: Array) -> Array:
        """ŷ of one observation."""
        square = jnp.sum((self.rows - jnp.ravel(x)) ** 2, axis=1)
        return jnp.exp(-square / (2 * self.width**2)) @ self.weights + self.offset


def kernel_regression(
    x: Float[Array, "n p"],
    y: Float[Array, "n q"],
    penalties: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
) -> KernelRegression:
    """Kernel ridge regression on paired rows, the penalty by the leave-one-out error in closed form.

    ::

        α = (K + λ I)^{-1} (y − ȳ),    left out: (y − ŷ)_i = α_i / [(K + λ I)^{-1}]_ii

    The mean ȳ and the width h, the median distance between rows, are those of all rows, also of the one left out. A
    penalty so small that K + λ I is singular in the precision of x is passed over.
    """
    rule = "at least two rows, as many as y"
    require("kernel_regression", "x", rule, (len(x), len(y)), lambda n: n[0] == n[1] >= 2)
    x = x.reshape(len(x), -1).astype(jnp.promote_types(x.dtype, jnp.float32))  # pixels wrap, and penalties would be 0
    square = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    upper = np.triu_indices(len(x), 1)
    width = jnp.maximum(jnp.sqrt(jnp.median(square[upper])), 1e-6)
    kernel, mean = jnp.exp(-square / (2 * width**2)), jnp.mean(y, axis=0)

    def solved(penalty):
        eye = jnp.eye(len(x), dtype=kernel.dtype)
        inverse = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(kernel + penalty * eye), eye)
        weights = inverse @ (y - mean)
        return weights, jnp.mean((weights / jnp.diagonal(inverse)[:, None]) ** 2)

    tried = jnp.asarray(penalties, x.dtype)
    weights, left_out = jax.lax.map(solved, tried)
    best = jnp.argmin(jnp.where(jnp.isfinite(left_out), left_out, jnp.inf))
    return KernelRegression(x, weights[best], mean, width, tried[best])


def symmetries(transition: np.ndarray, control: np.ndarray, tolerance: float = 1e-8) -> tuple[np.ndarray, np.ndarray]:
    """What no loss of the dynamics can tell: directions of affine maps S y + c that commute with y' = A y + B u.

    ::

        S A = A S,  S B = B,  A c = c       (the tangent at the identity: δS A = A δS, δS B = 0, A δc = δc)

    Gives a basis [k, s, s] of δS and one [l, s] of δc: k + l directions in which L_dyn is flat.

    transition, control: A ``[s, s]`` and B ``[s, a]``. tolerance: singular values below it, relative to the
        largest or to 1, count as 0.

    >>> dt = 0.1
    >>> offsets = symmetries(np.array([[1.0, dt], [0.0, 1.0]]), np.array([[0.0], [dt]]))
    >>> [basis.shape for basis in offsets]  # of a free mass only where it is cannot be told
    [(0, 2, 2), (1, 2)]
    """
    a, b = np.asarray(transition, float), np.asarray(control, float)
    size, eye = len(a), np.eye(len(a))
    # Row-major: vec(P S Q) = (P ⊗ Qᵀ) vec(S).
    equations = np.concatenate([np.kron(eye, a.T) - np.kron(a, eye), np.kron(eye, b.T)])
    return _null(equations, tolerance).reshape(-1, size, size), _null(a - eye, tolerance)


def _null(matrix: np.ndarray, tolerance: float) -> np.ndarray:
    _, values, vectors = np.linalg.svd(matrix)
    values = np.concatenate([values, np.zeros(matrix.shape[1] - len(values))])
    return vectors[values < tolerance * max(values.max(), 1.0)]
