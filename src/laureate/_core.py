"""What three or more areas of methods share: how failures and wrong settings are reported, and keys that are kept."""

import enum
import sys
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from laureate._compiler import REMEDY, complaint, light_options

__all__ = ["Status", "as_key", "light_options", "require", "warn"]

THREEFRY = "threefry2x32"
OURS = {"laureate", "equinox"}  # methods of Equinox's modules are called by way of it

if _wrong := complaint():
    warnings.warn(f"{_wrong} {REMEDY}", RuntimeWarning, stacklevel=2)


class Status(enum.IntEnum):
    """How a step ended. Inside jit a failure is a value; the driver decides whether to raise.

    Whether a step that DIVERGED was taken, or the state left as it was, stands in the docstring of its info.
    """

    OK = 0
    DIVERGED = 1
    NOT_CONVERGED = 2


def require(owner: str, field: str, rule: str, value: Any, holds: Callable[[Any], Any], remedy: str = "") -> None:
    """Raise ``ValueError("Owner.field must be RULE; got VALUE. REMEDY")`` unless ``holds(value)``.

    A traced value is let through: under jit a number's worth is not known, and sweeping it must not retrace.

    >>> require("PersistentES", "sigma", "> 0", -1.0, lambda s: s > 0)
    Traceback (most recent call last):
    ValueError: PersistentES.sigma must be > 0; got -1.0.
    """
    if isinstance(value, Tracer):
        return
    # While something is traced, comparing an array gives a tracer, though the array is known: NumPy compares at once.
    # Keys have no numbers to compare.
    known = isinstance(value, jax.Array) and not jnp.issubdtype(value.dtype, jax.dtypes.extended)
    if not holds(np.asarray(value) if known else value):
        shown = str(np.asarray(value)) if known else repr(value)
        raise ValueError(f"{owner}.{field} must be {rule}; got {shown}." + (f" {remedy}" if remedy else ""))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of whoever called us, however deep in here the reason was found."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def as_key(key: Array) -> Array:
    """Any key, typed or as bits, as a typed threefry key.

    For what keeps bits in a state: they no longer say whose they are. Other generators ("rbg") also give equal keys
    different numbers under ``vmap``. Such a key is folded, word by word, into a threefry key.
    """
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if str(jax.random.key_impl(key)) == THREEFRY:
            return key
        key = jax.random.key_data(key)
    threefry = jax.random.wrap_key_data(key[..., :2], impl=THREEFRY)
    for word in range(2, key.shape[-1]):
        threefry = jax.random.fold_in(threefry, key[..., word])
    return threefry
