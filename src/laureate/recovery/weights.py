"""The analytic weight: W̃ = argmin ‖WᵀD‖_F² with w_mᵀ d_m = 1 (Liu et al. 2019, eq. 16), without data or training.

Columns decouple, and each is a least-squares problem with one constraint. With G = (DDᵀ)⁻¹ the solution is
w_m = G d_m / (d_mᵀ G d_m), which the authors' own code approaches by projected gradients instead.
"""

import warnings
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular

from laureate._core import require
from laureate.recovery.dictionary import AbstractDictionary, Dense, as_dictionary

__all__ = ["OperatorWeight", "Weight", "analytic_weight", "as_weight", "coherence", "coherence_loss"]

SINGULAR = 1e12  # condition number of DDᵀ


class Weight(eqx.Module):
    """A matrix W of D's shape, of which solvers use Wᵀ r."""

    matrix: Array

    def rmatvec(self, r: Array) -> Array:
        """Wᵀ r for every row of r."""
        return r @ self.matrix


class OperatorWeight(eqx.Module):
    """The analytic weight of an operator: Wᵀ r = Dᵀ (DDᵀ)⁻¹ r / diag(P), at the price of one solve with N unknowns.

    factor: Cholesky's of DDᵀ. leverage: diag P = d_mᵀ (DDᵀ)⁻¹ d_m.
    """

    dictionary: AbstractDictionary
    factor: Array
    leverage: Array

    def rmatvec(self, r: Array) -> Array:
        """Wᵀ r for every row of r."""
        solve = jnp.vectorize(lambda r: cho_solve((self.factor, True), r), signature="(n)->(n)")
        return self.dictionary.rmatvec(solve(r)) / self.leverage


def analytic_weight(
    D: Any,  # noqa: N803
    method: Literal["closed_form", "iterative", "minimax"] = "closed_form",
    *,
    ridge: float | Array = 0.0,
    num_steps: int = 1000,
    step_size: float = 0.1,
) -> Any:
    """The weight of a dictionary: an array [N, M], or an `OperatorWeight` where D is an operator.

    method: ``"closed_form"``; ``"iterative"``, the authors' projected gradients (``num_steps`` of ``step_size``), which
        also serve a D without full rank; ``"minimax"``, the weight of least mutual coherence, a linear program a
        column (slow: for small D, on the host).
    ridge: added to the diagonal of DDᵀ, for a D that is close to rank-deficient; the closed form alone has one.

    >>> D = jax.random.normal(jax.random.key(0), (5, 8))
    >>> D = D / jnp.linalg.norm(D, axis=0)
    >>> W = analytic_weight(D)
    >>> bool(jnp.allclose(jnp.diag(W.T @ D), 1, atol=1e-5)), bool(coherence_loss(D, W) < coherence_loss(D, D))
    (True, True)
    """
    require("analytic_weight", "ridge", ">= 0", ridge, lambda r: r >= 0)
    if method != "closed_form":
        remedy = f"method={method!r} has none."
        require("analytic_weight", "ridge", "0 without the closed form", ridge, lambda r: r == 0, remedy)
    dictionary = as_dictionary(D)
    if not isinstance(dictionary, Dense):
        if method != "closed_form":
            raise ValueError(f"analytic_weight.method must be 'closed_form' for an operator; got {method!r}.")
        return _of_operator(dictionary, ridge)
    matrix = dictionary.matrix
    if method == "closed_form":
        concrete_ridge = 0.0 if isinstance(ridge, Tracer) else float(ridge)
        if not isinstance(matrix, Tracer):
            _check_rank(np.asarray(matrix, np.float64), concrete_ridge)
        return _closed_form(matrix, ridge)
    if method == "iterative":
        return _iterative(matrix, num_steps, step_size)
    if method == "minimax":
        return _minimax(matrix)
    raise ValueError(f"analytic_weight.method must be 'closed_form', 'iterative' or 'minimax'; got {method!r}.")


def as_weight(W: Any, shape: tuple[int, int]) -> Any:  # noqa: N803
    """What offers ``rmatvec``: an array [N, M] is wrapped."""
    if hasattr(W, "rmatvec"):
        return W
    matrix = jnp.asarray(W)
    if matrix.shape != shape:
        advice = " Pass its transpose: a solver applies Wᵀ." if matrix.shape == shape[::-1] else ""
        raise ValueError(f"W must have D's shape {shape}; got {matrix.shape}.{advice}")
    return Weight(matrix)


def coherence(D: Any, W: Any = None) -> Array:  # noqa: N803
    """max_{i≠j} |w_iᵀ d_j|, the mutual coherence of D with W (with D itself without one)."""
    matrix, weight = _pair(D, W)
    return jnp.max(jnp.abs(weight.T @ matrix) * (1 - jnp.eye(matrix.shape[1], dtype=matrix.dtype)))


def coherence_loss(D: Any, W: Any = None) -> Array:  # noqa: N803
    """‖WᵀD − I‖_F², which the analytic weight minimises among those with w_mᵀ d_m = 1."""
    matrix, weight = _pair(D, W)
    return jnp.sum((weight.T @ matrix - jnp.eye(matrix.shape[1], dtype=matrix.dtype)) ** 2)


def _pair(D: Any, W: Any) -> tuple[Array, Array]:  # noqa: N803
    matrix = jnp.asarray(D)
    return matrix, matrix if W is None else jnp.asarray(W)


def _closed_form(matrix: Array, ridge: float | Array) -> Array:
    """w_m = G d_m / (d_mᵀ G d_m). With Dᵀ = QR it is R⁻¹ q_m / ‖q_m‖²: DDᵀ = RᵀR is never formed, nor squared its
    condition number. A ridge r stands as rows √r I beneath Dᵀ. Where D has as many rows as columns or more, W̃ is the
    dual basis, with a ridge that of D over √r I: (DDᵀ + rI)⁻¹ D = D (DᵀD + rI)⁻¹.
    """
    rows, columns = matrix.shape
    stacked = matrix if rows >= columns else matrix.T
    if isinstance(ridge, Tracer | Array) or ridge > 0:
        stacked = jnp.concatenate([stacked, jnp.sqrt(ridge) * jnp.eye(min(rows, columns), dtype=matrix.dtype)])
    if rows >= columns:
        dual = jnp.linalg.pinv(stacked).T[:rows]
        return dual / jnp.sum(dual * matrix, axis=0)
    q, r = jnp.linalg.qr(stacked)
    q = q[:columns]
    return solve_triangular(r, q.T) / jnp.sum(q**2, axis=1)


def _iterative(matrix: Array, num_steps: int, step_size: float) -> Array:
    """W ← W − η D(DᵀW − I), then W ← W + d_m (1 − d_mᵀ w_m)/‖d_m‖² for every column."""
    eye = jnp.eye(matrix.shape[1], dtype=matrix.dtype)
    powers = jnp.sum(matrix**2, axis=0)

    def step(_, weight):
        weight = weight - step_size * matrix @ (matrix.T @ weight - eye)
        return weight + matrix * ((1 - jnp.sum(matrix * weight, axis=0)) / powers)

    return jax.lax.fori_loop(0, num_steps, step, matrix / powers)


def _minimax(matrix: Array) -> Array:
    """For every column m: min t with |d_jᵀ w| <= t for j ≠ m and d_mᵀ w = 1."""
    from scipy.optimize import linprog

    if isinstance(matrix, Tracer):
        raise ValueError("analytic_weight.method 'minimax' runs on the host and cannot be traced; call it outside jit.")
    d = np.asarray(matrix, np.float64)
    rows, columns = d.shape
    weight = np.empty_like(d)
    for m in range(columns):
        others = np.delete(d, m, axis=1).T
        slack = -np.ones((columns - 1, 1))
        found = linprog(
            np.r_[np.zeros(rows), 1.0],
            A_ub=np.block([[others, slack], [-others, slack]]),
            b_ub=np.zeros(2 * (columns - 1)),
            A_eq=np.r_[d[:, m], 0.0][None],
            b_eq=[1.0],
            bounds=[(None, None)] * rows + [(0, None)],
        )
        if not found.success:
            raise np.linalg.LinAlgError(f"The linear program of column {m} was not solved: {found.message}")
        weight[:, m] = found.x[:rows]
    return jnp.asarray(weight, matrix.dtype)


def _of_operator(dictionary: AbstractDictionary, ridge: float | Array) -> OperatorWeight:
    rows, columns = dictionary.shape
    gram = jax.lax.map(lambda unit: dictionary.matvec(dictionary.rmatvec(unit)), jnp.eye(rows))
    gram = (gram + gram.T) / 2 + ridge * jnp.eye(rows, dtype=gram.dtype)
    factor, _ = cho_factor(gram, lower=True)
    if not isinstance(factor, Tracer) and not bool(jnp.isfinite(factor).all()):
        rank = int(np.linalg.matrix_rank(np.asarray(gram, np.float64)))
        raise np.linalg.LinAlgError(f"DDᵀ is singular (rank {rank} < {rows}). Pass ridge=1e-3, or a D of full rank.")

    def leverage(unit):
        d = dictionary.matvec(unit)
        return d @ cho_solve((factor, True), d)

    return OperatorWeight(dictionary, factor, jax.lax.map(leverage, jnp.eye(columns)))


def _check_rank(matrix: np.ndarray, ridge: float) -> None:
    rows, columns = matrix.shape
    if rows >= columns:
        warnings.warn(
            f"D is not overcomplete ({rows} >= {columns}); W̃ is the dual basis{' with a ridge' * (ridge > 0)}.",
            stacklevel=3,
        )
    elif columns > 2000 and jnp.result_type(float) != jnp.float64:
        warnings.warn(
            f"D has {columns} columns in single precision; for an exact weight enable double precision "
            "(jax.config.update('jax_enable_x64', True)) while it is computed.",
            stacklevel=3,
        )
    values = np.linalg.svd(matrix, compute_uv=False) ** 2 + ridge
    if values.max() > SINGULAR * values.min():
        rank = int(np.sum(values > values.max() / SINGULAR))
        raise np.linalg.LinAlgError(
            f"DDᵀ is singular (rank {rank} < {min(rows, columns)}). Pass ridge=1e-3, or method='iterative'."
        )
