"""What every sampler of knockoffs asks of a table: finite, no constant column, none twice, and no response."""

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

__all__ = ["as_table", "check_table", "location_and_scale", "refuse_response", "swap"]

SPREAD = 1e3  # columns whose standard deviations differ by more are warned of: units may have been mixed up


def refuse_response(owner: str, y: Any) -> None:
    """Knockoffs that saw the response are no knockoffs: X̃ ⟂ y | X is what the filter rests on."""
    if y is not None:
        raise TypeError(
            f"{owner}.fit takes the inputs alone: knockoffs must not see y. Give y to the statistic or the selector."
        )


def as_table(owner: str, x: Any) -> Array:
    """``x`` as a matrix of floats ``[n, p]``; ``ValueError`` where it is none."""
    table = jnp.asarray(x)
    table = table if jnp.issubdtype(table.dtype, jnp.floating) else table.astype(float)
    if table.ndim != 2 or min(table.shape) < 1:
        raise ValueError(f"{owner}.X must be a matrix [n, p] with n, p >= 1; got shape {table.shape}.")
    return table


def check_table(owner: str, x: Any) -> Array:
    """``x`` as a table that a sampler can be fitted to; a traced one is let through unseen.

    >>> check_table("SecondOrderKnockoffs", [[1.0, 2.0], [1.0, 3.0]])
    Traceback (most recent call last):
    ValueError: SecondOrderKnockoffs.X must be without constant columns; got 1.0 throughout column 0. Leave it out.
    """
    table = as_table(owner, x)
    if isinstance(table, Tracer):
        return table
    values = np.asarray(table, np.float64)
    broken = ~np.isfinite(values)
    if broken.any():
        column = int(np.flatnonzero(broken.any(0))[0])
        found = "NaN" if np.isnan(values[:, column]).any() else "inf"
        raise ValueError(f"{owner}.X must be finite; got {found} in column {column}. Impute or leave out such rows.")
    spread = np.ptp(values, axis=0)
    constant = np.flatnonzero(spread <= 1e-12 * np.abs(values).max(0))
    if len(values) > 1 and constant.size:
        column = int(constant[0])
        raise ValueError(
            f"{owner}.X must be without constant columns; got {float(values[0, column])!r} throughout column {column}."
            " Leave it out."
        )
    _, first, group = np.unique(values, axis=1, return_index=True, return_inverse=True)
    if len(first) < values.shape[1]:
        group = np.asarray(group).reshape(-1)
        twice = next(j for j in range(values.shape[1]) if first[group[j]] != j)
        other = int(first[group[twice]])
        raise ValueError(
            f"{owner}.X must be without duplicated columns; got column {twice} equal to column {other}"
            ": neither can be told from the other. Leave one out."
        )
    if len(values) > 1:
        deviations = values.std(0)
        if deviations.max() > SPREAD * deviations.min():
            warnings.warn(
                f"{owner}: standard deviations of the columns differ by a factor of "
                f"{deviations.max() / deviations.min():.0f}; they are standardised inside.",
                stacklevel=3,
            )
    return table


def location_and_scale(x: Array) -> tuple[Array, Array]:
    """Mean and standard deviation ``[p]`` of the columns; 1 where a column is constant."""
    deviation = jnp.std(x, axis=0)
    return jnp.mean(x, axis=0), jnp.where(deviation > 0, deviation, 1.0)


def swap(x: Array, knockoff: Array, swapped: Array) -> tuple[Array, Array]:
    """(X, X̃)_swap(S): exchange the columns, or the entries, where ``swapped`` is true.

    >>> first, second = swap(jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0]]), jnp.array([True, False]))
    >>> first.tolist(), second.tolist()
    ([[3.0, 2.0]], [[1.0, 4.0]])
    """
    swapped = jnp.asarray(swapped, bool)
    return jnp.where(swapped, knockoff, x), jnp.where(swapped, x, knockoff)
