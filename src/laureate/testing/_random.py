"""What every function that draws random numbers promises."""

import itertools
from collections.abc import Callable, Collection
from contextlib import nullcontext
from typing import Any

import equinox as eqx
import jax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters import partial_eval

from laureate.testing._checks import QUICK, Check, keys_used_once, same_bits
from laureate.testing._keys import KeyRecorder

__all__ = ["check_keys", "check_random_function", "keys_of", "traced_anew"]

_context = jax.make_user_context(0) if hasattr(jax, "make_user_context") else lambda number: nullcontext()
_numbers = itertools.count(1)


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
    check = Check(name or _name(function), skip)
    arrays = lambda tree: eqx.filter(tree, eqx.is_array)  # noqa: E731
    with KeyRecorder() as recorder:
        first = arrays(function(jax.random.key(11)))
        jax.effects_barrier()
    if not recorder.uses:  # it was jitted and traced before, and such a program tells nothing
        with KeyRecorder() as recorder, traced_anew():
            function(jax.random.key(11))
    keys_used_once(check, recorder, shared_keys)
    if check.wants("same key, same bits"):
        check.bits(arrays(function(jax.random.key(11))), first, "the same from the same key", "Draw from it alone.")
    if check.wants("another key, other bits"):
        same = same_bits(arrays(function(jax.random.key(12))), first)
        check.require(not same, "something else from another key", "the same", "Is the key used?")
    return check.finish()


def check_keys(function: Callable[[Any], Any], *, name: str = "", shared_keys: int = 1) -> list[str]:
    """Check of a function of a key only that no key is consumed twice, and compute nothing that keys do not depend on.

    It is traced, and of the program only what makes and consumes keys is compiled: a whole training takes a fraction of
    a second. What is handed a key by the function (an environment, a problem) should draw from it, or nobody sees that
    two had the same.

    function, name, shared_keys: as of ``check_random_function``; the function is one that can be jitted.

    Property: no key is consumed twice.

    >>> check_keys(lambda key: [jax.random.normal(one) for one in jax.random.split(key)])
    ['keys are used once']
    """
    check = Check(name or _name(function), ())
    recorder, _ = keys_of(lambda key: eqx.filter(function(key), eqx.is_array), jax.random.key(11))
    keys_used_once(check, recorder, shared_keys)
    check.require(recorder.uses, "draws from its key", "none", "Is the key used?")
    return check.finish()


def keys_of(
    function: Callable[..., Any], *arguments: Any, place: Callable[[], str] | None = None
) -> tuple[KeyRecorder, Any]:
    """The keys that a function of arrays consumes, of which all else is only traced, and the shapes that it returns.

    Also what it calls and was jitted and traced before. place: as of `KeyRecorder`.
    """
    with KeyRecorder(place) as recorder, traced_anew():
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        left, _ = partial_eval.dce_jaxpr(traced.jaxpr, [False] * len(traced.jaxpr.outvars), instantiate=True)
        program = jax.jit(jaxpr_as_fun(ClosedJaxpr(left, traced.consts)), compiler_options=QUICK)
        program(*jax.tree.leaves(arguments))
        jax.effects_barrier()
    return recorder, shapes


def traced_anew() -> Any:
    """A context inside which jax knows nothing that it has traced before, and of which it keeps nothing afterwards."""
    return _context(next(_numbers))


def _name(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)
