"""How much a response prefers each variable to its knockoff: W_j, whose sign flips when the two are exchanged.

Every statistic is ``statistic(key, X, X_knockoff, y) -> W [p]``; ``y`` is ``[n]``, or ``[n, k]`` with a column a class.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.selection.tables import swap

__all__ = ["LassoDifference", "LassoEntry", "RandomForestDifference", "RidgeDifference", "check_antisymmetry"]

SWEEPS = 300
TOLERANCE = 1e-5  # of the largest coefficient's change in a sweep; standardised columns


class LassoDifference(eqx.Module):
    """W_j = |β_j| - |β̃_j| of one lasso on [X, X̃].

    min_β ‖y - [X, X̃] β‖² / 2n + λ ‖β‖₁ on standardised columns,  λ = penalty · sd(y) √(2 log(2p) / n)

    λ depends on y and on numbers that no swap changes, so that W stays antisymmetric.

    >>> import jax
    >>> x, noise = jax.random.normal(jax.random.key(0), (2, 100, 2))
    >>> w = LassoDifference()(jax.random.key(1), x, noise, x[:, 0])
    >>> bool(w[0] > 0.5), bool(abs(w[1]) < 0.1)
    (True, True)
    """

    penalty: float | Array = 0.5

    def __check_init__(self):
        require("LassoDifference", "penalty", "> 0", self.penalty, lambda v: v > 0)

    def __call__(self, key: Array, x: Any, knockoff: Any, y: Any) -> Array:
        """W ``[p]``."""
        gram, correlation, deviation = _moments(x, knockoff, y)
        n, p = jnp.shape(x)
        strength = self.penalty * deviation * jnp.sqrt(2.0 * jnp.log(2.0 * p) / n)
        beta = jax.vmap(lambda c, d: lasso(gram, c, d))(correlation, strength)  # [k, p, 2]
        size = jnp.sum(jnp.abs(beta), axis=0)
        return size[:, 0] - size[:, 1]


class LassoEntry(eqx.Module):
    """W_j = max(Z_j, Z̃_j) sign(Z_j - Z̃_j): Z is the largest penalty λ at which a variable enters the lasso.

    On a geometric grid of ``num_points`` penalties from the largest that matters to ``last`` of it.
    """

    num_points: int = eqx.field(static=True, default=60)
    last: float | Array = 0.02

    def __check_init__(self):
        require("LassoEntry", "num_points", ">= 2", self.num_points, lambda v: v >= 2)
        require("LassoEntry", "last", "in (0, 1)", self.last, lambda v: 0 < v < 1)

    def __call__(self, key: Array, x: Any, knockoff: Any, y: Any) -> Array:
        """W ``[p]``."""
        gram, correlation, _ = _moments(x, knockoff, y)
        shares = jnp.exp(jnp.linspace(0.0, 1.0, self.num_points) * jnp.log(self.last))

        def path(c):
            largest = jnp.max(jnp.abs(c))

            def point(beta, share):
                beta = lasso(gram, c, share * largest, beta)
                return beta, jnp.where(jnp.abs(beta) > 0, share * largest, 0.0)

            return jnp.max(jax.lax.scan(point, jnp.zeros_like(c), shares)[1], axis=0)

        z = jnp.max(jax.vmap(path)(correlation), axis=0)
        return jnp.max(z, axis=1) * jnp.sign(z[:, 0] - z[:, 1])


class RidgeDifference(eqx.Module):
    """W_j = |β_j| - |β̃_j| of a ridge regression: β = (ZᵀZ/n + penalty I)⁻¹ Zᵀy/n, Z = [X, X̃] standardised."""

    penalty: float | Array = 0.1

    def __check_init__(self):
        require("RidgeDifference", "penalty", "> 0", self.penalty, lambda v: v > 0)

    def __call__(self, key: Array, x: Any, knockoff: Any, y: Any) -> Array:
        """W ``[p]``."""
        gram, correlation, _ = _moments(x, knockoff, y)
        p = gram.shape[0]
        matrix = gram.reshape(2 * p, 2 * p) + self.penalty * jnp.eye(2 * p, dtype=gram.dtype)
        beta = jnp.linalg.solve(matrix, correlation.reshape(-1, 2 * p).T).T.reshape(-1, p, 2)
        size = jnp.sum(jnp.abs(beta), axis=0)
        return size[:, 0] - size[:, 1]


class RandomForestDifference:
    """W_j = difference of impurity importances in scikit-learn's random forest on [X, X̃].

    A forest draws columns by their place, so exchanging two changes it. So each pair is first put in an order that
    the pair itself decides (by its products with random weights), and the sign put back: exactly antisymmetric.

    num_trees: how many. classify: for a response of classes; None decides by its kind.
    """

    def __init__(self, num_trees: int = 200, classify: bool | None = None):
        require("RandomForestDifference", "num_trees", ">= 1", num_trees, lambda v: v >= 1)
        self.num_trees, self.classify = num_trees, classify

    def __call__(self, key: Array, x: Any, knockoff: Any, y: Any) -> np.ndarray:
        """W ``[p]``."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        x, knockoff, y = np.asarray(x), np.asarray(knockoff), np.asarray(y)
        seed = int(jax.random.randint(key, (), 0, 2**31 - 1))
        weights = np.random.default_rng(seed).normal(size=len(x))
        turned = weights @ knockoff > weights @ x
        first, second = np.where(turned, knockoff, x), np.where(turned, x, knockoff)
        classify = y.ndim == 2 if self.classify is None else self.classify
        forest = (RandomForestClassifier if classify else RandomForestRegressor)(self.num_trees, random_state=seed)
        labels = y.argmax(1) if classify and y.ndim == 2 else y
        importance = forest.fit(np.hstack([first, second]), labels).feature_importances_.reshape(2, -1)
        return np.where(turned, -1.0, 1.0) * (importance[0] - importance[1])


def lasso(gram: Array, correlation: Array, penalty: Array, start: Array | None = None) -> Array:
    """The coefficients ``[p, 2]`` of a variable and its knockoff, from their moments.

    gram: ``[p, 2, p, 2]``, the correlations of all 2p columns. correlation: ``[p, 2]``, theirs with y.
    Pair after pair, a proximal gradient step with the Lipschitz constant 1 + |r_j| of the pair: both at once, so that a
    variable never gains from being looked at first. With X̃ = X the two stay equal; plain coordinate descent would
    give all to the first.
    """
    p = gram.shape[0]
    within = jnp.abs(gram[jnp.arange(p), 0, jnp.arange(p), 1])

    def pair(j, carry):
        beta, change = carry
        gradient = jnp.einsum("apb,pb->a", gram[j], beta) - correlation[j]
        bound = 1.0 + within[j]
        moved = beta[j] - gradient / bound
        new = jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - penalty / bound, 0.0)
        return beta.at[j].set(new), jnp.maximum(change, jnp.max(jnp.abs(new - beta[j])))

    def sweep(carry):
        beta, _, count = carry
        beta, change = jax.lax.fori_loop(0, p, pair, (beta, jnp.zeros((), gram.dtype)))
        return beta, change, count + 1

    def unfinished(carry):
        _, change, count = carry
        return (change > TOLERANCE) & (count < SWEEPS)

    beta = jnp.zeros_like(correlation) if start is None else start
    return jax.lax.while_loop(unfinished, sweep, (beta, jnp.asarray(jnp.inf, gram.dtype), 0))[0]


def check_antisymmetry(
    key: Array, statistic: Callable[..., Any], num_rows: int = 60, num_variables: int = 5, response: Any = None
) -> None:
    """``ValueError`` unless swapping variables with their knockoffs flips the sign of just these W.

    Tried on Gaussian tables with two random sets S. A statistic that draws numbers must do so from ``key`` alone.
    response: ``[n]`` or ``[n, k]``, of the kind that the statistic is for: y is tried with its values, such as classes.

    >>> import jax
    >>> check_antisymmetry(jax.random.key(0), LassoDifference())
    >>> check_antisymmetry(jax.random.key(0), lambda key, x, knockoff, y: jnp.abs(x.T @ y))
    Traceback (most recent call last):
    ValueError: statistic must be antisymmetric: swapping variable 0 with its knockoff must turn W[0] into -W[0]; ...
    """
    table_key, swap_key, call_key = jax.random.split(key, 3)
    x, knockoff = jax.random.normal(table_key, (2, num_rows, num_variables))
    y = x[:, 0] + 0.5 * x[:, 1] + 0.5 * knockoff[:, 2]
    if response is not None:
        values = np.unique(np.asarray(response), axis=0)  # in order, and each as often as any other
        rank = np.argsort(np.argsort(np.asarray(y)))
        y = values[rank * len(values) // num_rows]
    w = np.asarray(statistic(call_key, x, knockoff, y))
    if w.shape != (num_variables,):
        raise ValueError(f"statistic must return one number a variable, shape {(num_variables,)}; got {w.shape}.")
    random = np.asarray(jax.random.bernoulli(swap_key, 0.5, (num_variables,)))
    for swapped in (random, ~random):
        found = np.asarray(statistic(call_key, *swap(x, knockoff, jnp.asarray(swapped)), y))
        expected = np.where(swapped, -w, w)
        wrong = np.abs(found - expected) > 1e-3 * max(np.abs(w).max(), 1e-30)
        if wrong.any():
            j = int(np.flatnonzero(wrong)[0])
            who, what = (f"variable {j} with its knockoff", f"-W[{j}]") if swapped[j] else ("others", f"W[{j}]")
            raise ValueError(
                f"statistic must be antisymmetric: swapping {who} must turn W[{j}] into {what}; got "
                f"{float(found[j]):.3g} for {float(w[j]):.3g}. Treat X and X_knockoff alike, and take differences last."
            )


def _moments(x: Any, knockoff: Any, y: Any) -> tuple[Array, Array, Array]:
    """Correlations of all columns ``[p, 2, p, 2]``, with y ``[k, p, 2]``, and y's standard deviations ``[k]``."""
    x, knockoff = jnp.asarray(x), jnp.asarray(knockoff)
    y = jnp.asarray(y, x.dtype)
    y = y[:, None] if y.ndim == 1 else y
    both = jnp.stack([x, knockoff], axis=-1)  # [n, p, 2]
    both = both - jnp.mean(both, axis=0)
    scale = jnp.sqrt(jnp.mean(both**2, axis=0))
    both = both / jnp.where(scale > 0, scale, 1.0)
    centred = y - jnp.mean(y, axis=0)
    n, p, _ = both.shape
    flat = both.reshape(n, 2 * p)
    gram = (flat.T @ flat / n).reshape(p, 2, p, 2)
    return gram, (centred.T @ flat / n).reshape(-1, p, 2), jnp.sqrt(jnp.mean(centred**2, axis=0))
