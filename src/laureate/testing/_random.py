"""What every function that draws random numbers promises."""

from collections.abc import Callable, Collection
from typing import Any

import equinox as eqx
import jax

from laureate.testing._checks import Check, keys_used_once, same_bits
from laureate.testing._keys import KeyRecorder

__all__ = ["check_random_function"]


def check_random_function(
    function: Callable[[Any], Any], *, name: str = "", shared_keys: int = 1, skip: Collection[str] = ()
) -> list[str]:
    """Check a function of a key and of nothing else; fix its other arguments with a lambda, and jit it if it may be.

    function: from a typed key to a tree of arrays (other leaves are not looked at).
    name: in messages.
    shared_keys: how often one and the same draw may come from one key on purpose: 2 for antithetic pairs.
    skip: properties to leave out: those in the list that is returned.

    Properties: no key is consumed twice; the same key gives the same bits, another others.
    """
    check = Check(name or getattr(function, "__name__", type(function).__name__), skip)
    arrays = lambda tree: eqx.filter(tree, eqx.is_array)  # noqa: E731
    with KeyRecorder() as recorder:
        first = arrays(function(jax.random.key(11)))
        keys_used_once(check, recorder, shared_keys)
    if check.wants("same key, same bits"):
        check.bits(arrays(function(jax.random.key(11))), first, "the same from the same key", "Draw from it alone.")
    if check.wants("another key, other bits"):
        same = same_bits(arrays(function(jax.random.key(12))), first)
        check.require(not same, "something else from another key", "the same", "Is the key used?")
    return check.finish()
