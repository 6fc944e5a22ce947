"""From statistics W to a list of variables: the knockoff filters, and e-values over several draws of knockoffs."""

import itertools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from laureate._core import require

__all__ = ["Selection", "e_values", "knockoff_filter", "knockoff_threshold", "select_by_e_values", "unattainable"]


class Selection(NamedTuple):
    """What a filter selects.

    selected: ``[p]`` of bool. threshold: inf where nothing is. estimate: the estimated share of false ones.
    """

    selected: Array
    threshold: Array
    estimate: Array


def knockoff_threshold(w: Any, q: Any, offset: int = 1) -> Array:
    """τ = min {t > 0: (offset + #{W_j <= -t}) / max(1, #{W_j >= t}) <= q} among t = |W_j|; inf where there is none.

    inf too where a W_j is NaN.

    offset: 1 for knockoff+, which bounds the false discovery rate; 0 for the knockoff filter, which bounds a
        slightly smaller one (Barber & Candès 2015).

    >>> float(knockoff_threshold(jnp.array([3.0, 2.0, -1.0, 0.5]), q=0.5))
    2.0
    """
    require("knockoff_threshold", "q", "in (0, 1)", q, lambda q: 0 < q < 1)
    require("knockoff_threshold", "offset", "0 or 1", offset, lambda o: o in (0, 1))
    w = jnp.asarray(w)
    ordered, t = jnp.sort(w), jnp.abs(w)
    at_least = w.shape[0] - jnp.searchsorted(ordered, t, side="left")  # #{W >= t}
    at_most = jnp.searchsorted(ordered, -t, side="right")  # #{W <= -t}
    ratio = (offset + at_most) / jnp.maximum(1, at_least)
    # NaN is sorted last and would count as W >= t: where there is one, nothing can be selected.
    return jnp.min(jnp.where((t > 0) & (ratio <= q) & ~jnp.any(jnp.isnan(w)), t, jnp.inf))


def knockoff_filter(w: Any, q: Any, offset: int = 1) -> Selection:
    """The variables with W_j >= τ.

    >>> knockoff_filter(jnp.array([3.0, 2.0, -1.0, 0.5]), q=0.5).selected.tolist()
    [True, True, False, False]
    """
    w = jnp.asarray(w)
    threshold = knockoff_threshold(w, q, offset)
    selected = (w >= threshold) & jnp.isfinite(threshold)
    estimate = (offset + jnp.sum(w <= -threshold)) / jnp.maximum(1, jnp.sum(selected))
    return Selection(selected, threshold, jnp.where(jnp.isfinite(threshold), estimate, 0.0))


def e_values(w: Any, q: Any) -> Array:
    """e_j = p 1{W_j >= τ(q)} / (1 + #{W_j <= -τ(q)}), whose sum over null variables has mean at most p.

    (Ren & Barber 2024, eq. 6.) Averages over draws of knockoffs are e-values again: derandomisation.
    """
    w = jnp.asarray(w)
    threshold = knockoff_threshold(w, q)
    return w.shape[0] * ((w >= threshold) & jnp.isfinite(threshold)) / (1.0 + jnp.sum(w <= -threshold))


def select_by_e_values(e: Any, q: Any) -> Array:
    """e-BH: the k̂ largest, k̂ = max {k: e_(k) >= p / (q k)} (Wang & Ramdas 2022).

    >>> select_by_e_values(jnp.array([8.0, 9.0, 0.0, 1.0]), q=0.25).tolist()
    [True, True, False, False]
    """
    require("select_by_e_values", "q", "in (0, 1)", q, lambda q: 0 < q < 1)
    e = jnp.asarray(e)
    p = e.shape[0]
    ordered = jnp.sort(e)[::-1]
    rank = jnp.arange(1, p + 1)
    # A whisker below the bound, so that k e_(k) q = p is not lost to rounding.
    last = jnp.max(jnp.where(ordered * rank * q >= p * (1 - 1e-6), rank, 0))
    cut = jnp.where(last > 0, ordered[jnp.maximum(last - 1, 0)], jnp.inf)
    return e >= cut


def unattainable(num_variables: int, q: float, offset: int = 1, num_draws: int = 1) -> str:
    """Why nothing can be selected at q with so few variables; empty where something can.

    num_draws: of knockoffs; of several each is filtered at q/2, and their e-values are averaged.

    >>> unattainable(8, 0.1)
    'q = 0.1 takes at least 10 selected variables with offset 1, and there are 8. Raise q to 0.125 or more.'
    """
    part = 1 if num_draws == 1 else 2  # the filter works at q / part
    # The filter's own comparison, of which offset / q is off by rounding: 1/3 is enough for three.
    needed = next(count for count in itertools.count(max(1, int(offset * part / q))) if offset / count <= q / part)
    if num_variables >= needed:
        return ""
    enough = math.ceil(1000 * offset * part / num_variables) / 1000
    remedy = f"Raise q to {enough:g} or more" if enough < 1 else "No q below 1 is enough"
    fewer = ", or take one draw" if part > 1 else "" if enough < 1 else ", but offset 0 is"
    draws = "" if part == 1 else f" and {num_draws} draws"
    return (
        f"q = {q:g} takes at least {needed} selected variables with offset {offset}{draws}, and there are "
        f"{num_variables}. {remedy}{fewer}."
    )
