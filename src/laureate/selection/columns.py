"""Skewed, binary and categorical columns: knockoffs of their normal scores, brought back by quantiles."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate import loops
from laureate._core import require
from laureate.selection.gaussian import SecondOrderKnockoffs
from laureate.selection.tables import check_table, refuse_response

__all__ = ["CopulaKnockoffs", "discrete_columns"]

MAX_LEVELS = 20


class CopulaKnockoffs(eqx.Module):
    """Any sampler, in the normal scores of some columns: what goes in binary comes out binary.

    z_j = Φ⁻¹(u),  u ~ U[F_j(x_j-), F_j(x_j)];   (Z, Z̃) from ``sampler``;   x̃_j = F_j⁻¹(Φ(z̃_j))

    x_j = F_j⁻¹(Φ(z_j)) too, and the same map of both halves of an exchangeable pair leaves it exchangeable: the
    knockoffs are as valid as those of the scores. A column of K codes yields codes among these K.

    sampler: fitted to the scores.
    columns: which are mapped; None: all.

    >>> import jax
    >>> x = jnp.stack([jax.random.bernoulli(k, 0.3, (80,)) for k in jax.random.split(jax.random.key(0), 3)], 1)
    >>> fitted = CopulaKnockoffs().fit(jax.random.key(1), x.astype(float))
    >>> sorted(set(fitted.sample(jax.random.key(2), x).ravel().tolist()))
    [0.0, 1.0]
    """

    sampler: Any = SecondOrderKnockoffs(shrinkage="ledoit-wolf")
    columns: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        require("CopulaKnockoffs", "sampler", "an object with fit(key, X)", self.sampler, lambda s: hasattr(s, "fit"))

    def fit(
        self, key: Array, x: Any, y: Any = None, progress: Callable[[loops.Progress], None] | None = None
    ) -> "_Fitted":
        """The sampler fitted to the scores of the table's columns. progress: handed on to it, where it takes one."""
        refuse_response("CopulaKnockoffs", y)
        x = check_table("CopulaKnockoffs", x)
        p = x.shape[1]
        columns = range(p) if self.columns is None else column_indices("CopulaKnockoffs", "columns", self.columns, p)
        mapped = jnp.zeros(p, bool).at[jnp.asarray(list(columns), jnp.int32)].set(True)
        score_key, fit_key = jax.random.split(key)
        ordered = jnp.sort(x, axis=0)
        scores = jnp.where(mapped, _scores(score_key, ordered, x), x)
        return _Fitted(fit_sampler(self.sampler, fit_key, scores, progress), ordered, mapped)


class _Fitted(eqx.Module):
    sampler: Any
    ordered: Array  # [n, p], every column sorted: its empirical distribution
    mapped: Array  # [p]

    def sample(self, key: Array, x: Any) -> Array:
        """One draw of knockoffs ``[n, p]`` for the rows of ``x``."""
        x = jnp.asarray(x, self.ordered.dtype)
        score_key, draw_key = jax.random.split(key)
        scores = jnp.where(self.mapped, _scores(score_key, self.ordered, x), x)
        drawn = self.sampler.sample(draw_key, scores)
        n = self.ordered.shape[0]
        share = jax.scipy.stats.norm.cdf(drawn)
        place = jnp.clip((share * n).astype(jnp.int32), 0, n - 1)
        return jnp.where(self.mapped, jnp.take_along_axis(self.ordered, place, axis=0), drawn)


def fit_sampler(sampler: Any, key: Array, x: Array, progress: Callable[[loops.Progress], None] | None) -> Any:
    """``sampler.fit``, with ``progress`` where there is one and the sampler takes it."""
    takes = progress is not None and "progress" in inspect.signature(sampler.fit).parameters
    return sampler.fit(key, x, progress=progress) if takes else sampler.fit(key, x)


def _scores(key: Array, ordered: Array, x: Array) -> Array:
    """Normal scores with the ties broken at random, a draw within each step of the distribution function."""
    n = ordered.shape[0]

    def column(reference, values):
        return jnp.searchsorted(reference, values, side="left"), jnp.searchsorted(reference, values, side="right")

    below, upto = jax.vmap(column, in_axes=1, out_axes=1)(ordered, x)
    u = jax.random.uniform(key, x.shape, ordered.dtype)
    # A value that was not seen in fitting has no step of its own; it gets half of one around its place.
    low, high = jnp.where(upto > below, below, below - 0.5), jnp.where(upto > below, upto, below + 0.5)
    share = jnp.clip((low + u * (high - low)) / n, 0.25 / n, 1 - 0.25 / n)
    return jax.scipy.stats.norm.ppf(share)


def column_indices(owner: str, field: str, columns: Any, num_columns: int) -> tuple[int, ...]:
    """The columns that a mask ``[p]`` of bool, or a list of indices, names.

    >>> column_indices("CopulaKnockoffs", "columns", [False, True, True], 3)
    (1, 2)
    """
    values = np.asarray(columns)
    whole = values.ndim == 1 and (values.size == 0 or np.issubdtype(values.dtype, np.integer))
    mask = values.dtype == bool and values.shape == (num_columns,)
    require(
        owner,
        field,
        f"a mask of {num_columns} bools, or distinct indices in 0..{num_columns - 1}",
        columns,
        lambda _: (
            mask or (whole and set(values.tolist()) <= set(range(num_columns)) and len(set(values)) == len(values))
        ),
    )
    return tuple(int(j) for j in (np.flatnonzero(values) if mask else values))


def discrete_columns(x: Any, max_levels: int = MAX_LEVELS) -> tuple[int, ...]:
    """The columns of at most ``max_levels`` whole numbers: binary ones, codes, small counts.

    >>> discrete_columns([[0, 0.5, 3], [1, 0.7, 2], [0, 0.1, 3]])
    (0, 2)
    """
    values = np.asarray(x, np.float64)
    whole = (values == np.round(values)).all(0)
    levels: Sequence[int] = [len(np.unique(column)) for column in values.T]
    return tuple(int(j) for j in np.flatnonzero(whole) if levels[j] <= max_levels)
