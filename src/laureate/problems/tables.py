"""Tables for choosing variables: random designs whose truth is known, and real ones with a response."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.problems.datasets import breast_cancer

__all__ = ["BreastCancer", "Design", "Table", "autoregressive"]

KINDS = ("gaussian", "uniform", "mixture", "student")
COMPONENTS = 4


class Design(eqx.Module):
    """Rows of ``num_variables`` with mean 0 and variance 1, neighbours correlated.

    gaussian: N(0, Σ), Σ_jk = rho^|j-k|. uniform: its copula with uniform marginals. mixture: four such Gaussians
    with centres at random corners of ±separation. student: a multivariate t of three degrees of freedom.
    """

    kind: str = eqx.field(static=True)
    num_variables: int = eqx.field(static=True)
    rho: Array
    centres: Array  # [4, p]

    def __init__(self, kind: str = "gaussian", num_variables: int = 20, rho: float = 0.5, separation: float = 1.5):
        require("Design", "kind", f"one of {', '.join(KINDS)}", kind, lambda k: k in KINDS)
        require("Design", "num_variables", ">= 1", num_variables, lambda p: p >= 1)
        require("Design", "rho", "in (-1, 1)", rho, lambda r: -1 < r < 1)
        self.kind, self.num_variables, self.rho = kind, num_variables, jnp.asarray(rho, jnp.float32)
        corners = np.random.default_rng(0).choice([-1.0, 1.0], size=(COMPONENTS, num_variables))
        self.centres = jnp.asarray(separation * corners, jnp.float32)

    def sample(self, key: Array, n: int) -> Array:
        """``[n, p]`` independent rows."""
        normal_key, other_key = jax.random.split(key)
        p = self.num_variables
        rows = jax.random.normal(normal_key, (n, p)) @ jnp.linalg.cholesky(autoregressive(p, self.rho)).T
        if self.kind == "uniform":
            return jnp.sqrt(12.0) * (jax.scipy.stats.norm.cdf(rows) - 0.5)
        if self.kind == "mixture":
            centres = self.centres - jnp.mean(self.centres, axis=0)
            scale = jnp.sqrt(1.0 + jnp.mean(centres**2, axis=0))
            return (rows + centres[jax.random.randint(other_key, (n,), 0, COMPONENTS)]) / scale
        if self.kind == "student":
            # t with 3 degrees of freedom has variance 3.
            chi_square = jnp.sum(jax.random.normal(other_key, (n, 3)) ** 2, axis=1, keepdims=True)
            return rows / jnp.sqrt(chi_square)
        return rows


def autoregressive(num_variables: int, rho: Array | float) -> Array:
    """Σ_jk = rho^|j-k|.

    >>> autoregressive(3, 0.5)[0].tolist()
    [1.0, 0.5, 0.25]
    """
    lag = jnp.abs(jnp.arange(num_variables)[:, None] - jnp.arange(num_variables)[None, :])
    return jnp.asarray(rho, jnp.float32) ** lag


class Table(eqx.Module):
    """Your own inputs ``[n, p]`` and response ``[n]``, as floats; columns are standardised.

    >>> Table([[1.0, 2.0], [3.0, 5.0]], [0.0, 1.0]).inputs.tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """

    inputs: Array
    response: Array

    def __init__(self, inputs: Any, response: Any):
        x, y = np.asarray(inputs, np.float64), np.asarray(response, np.float64)
        require("Table", "inputs", "a matrix [n, p]", x.shape, lambda s: len(s) == 2)
        require("Table", "response", f"of shape {x.shape[:1]}", y.shape, lambda s: s == x.shape[:1])
        require("Table", "inputs", "finite", bool(np.isfinite(x).all()), lambda ok: ok, "Impute or leave out rows.")
        deviation = x.std(0)
        require("Table", "inputs", "without constant columns", np.flatnonzero(deviation == 0).tolist(), lambda c: not c)
        self.inputs = jnp.asarray((x - x.mean(0)) / deviation, jnp.float32)
        self.response = jnp.asarray(y, jnp.float32)


def BreastCancer() -> Table:  # noqa: N802  (a problem like the classes)
    """569 tumours, 30 measurements, benign or malignant (Wolberg, Street & Mangasarian 1995)."""
    return Table(*breast_cancer())
