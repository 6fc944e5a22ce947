"""Bytes counted, not estimated: what a program sends, read off the program itself."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

__all__ = ["count_bytes"]

REDUCTIONS = {"psum", "psum_invariant", "pmax", "pmin"}


def count_bytes(function: Callable, *args: Any, axis: str, size: int) -> int:
    """Bytes that all nodes together send when ``function`` runs once on each of ``size`` nodes of ``axis``.

    It reads the traced program: every ``ppermute`` sends its operand once a pair of different nodes; a reduction over
    all nodes counts as a ring all-reduce, 2 (n−1)/n of the operand a node. Of two branches the dearer counts. A loop
    that sends must have a known length.

    >>> import jax, jax.numpy as jnp
    >>> shift = lambda x: jax.lax.ppermute(x, "nodes", [(0, 1), (1, 2), (2, 0)])
    >>> count_bytes(shift, jnp.zeros(10), axis="nodes", size=3)  # three messages of ten floats
    120
    """
    return _count(jax.make_jaxpr(function, axis_env=[(axis, size)])(*args).jaxpr, axis, size)


def _count(jaxpr: Any, axis: str, size: int) -> int:
    total = 0
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        operand = sum(
            int(np.prod(v.aval.shape)) * v.aval.dtype.itemsize for v in equation.invars if hasattr(v.aval, "shape")
        )
        if name == "ppermute":
            total += operand * sum(i != j for i, j in params["perm"])
        elif name in REDUCTIONS and axis in params["axes"]:
            total += 2 * (size - 1) * operand
        elif name in ("all_gather", "all_to_all", "reduce_scatter"):
            raise ValueError(f"count_bytes knows ppermute and reductions; got {name}.")
        elif name == "scan":
            total += params["length"] * _count(params["jaxpr"].jaxpr, axis, size)
        elif name == "cond":
            total += max(_count(branch.jaxpr, axis, size) for branch in params["branches"])
        else:
            for value in params.values():
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns"):
                    within = _count(inner, axis, size)
                    if name == "while" and within:
                        raise ValueError("count_bytes must be given loops of a known length; got a while loop.")
                    total += within
    return total
