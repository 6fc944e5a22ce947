"""What every function of arrays that draws nothing promises."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.testing._checks import (
    Check,
    Program,
    describe,
    difference,
    is_float,
    no_retrace,
    numbers_as_arrays,
    widened,
)

__all__ = ["check_function"]

INSIDE, TWICE, BATCHES = "the same inside jit", "no retrace", "batches are a loop"
DOUBLE, HALF, NUMPY = "float64 agrees", "half precision", "NumPy is taken"
HALVES = (jnp.bfloat16, jnp.float16)


def check_function(
    function: Callable[..., Any],
    *arguments: Any,
    others: Sequence[Any] | None = None,
    name: str = "",
    float64: bool = True,
    half: bool = False,
    tolerance: float = 1e-5,
    skip: Collection[str] = (),
) -> list[str]:
    """Check a pure function of arrays; fix what selects code (words, counts, functions) with a lambda.

    function: from trees of arrays to a tree of arrays (other leaves of the result are not looked at). Several functions
        share their programs as one that returns a dictionary; a message then tells its key.
    arguments: of the function; floating numbers of Python are made arrays.
    others: arguments of the same shapes with other numbers; ``None`` is 0.9 times every floating one.
    name: in messages.
    float64, half: whether to look at double precision, and at half precision in both types; a program each.
    tolerance: what rounding may change of a leaf, as a share of its largest entry; tenfold between float32 and float64.
    skip: properties to leave out: those in the list that is returned.

    Properties: inside ``jit`` it returns what it returns outside, of the same structure, shapes and types; other
    numbers do not trace it again; ``vmap`` equals a loop; NumPy's arrays give the same and are left as they were; of
    float64 it makes float64, near what float32 gave; in half precision what was finite stays so, within a tenth.

    >>> check_function(lambda x: x / jnp.sum(x), jnp.arange(1.0, 4.0), float64=False)
    ['the same inside jit', 'no retrace', 'batches are a loop', 'NumPy is taken']
    """
    check = Check(name or getattr(function, "__name__", type(function).__name__), skip)
    first = tuple(_arrays(one) for one in arguments)
    scaled = jax.tree.map(lambda leaf: 0.9 * np.asarray(leaf) if is_float(leaf) else leaf, first)
    second = tuple(_arrays(one) for one in (scaled if others is None else others))

    def results(*arguments):
        return eqx.filter(function(*arguments), _is_array)

    def both(arguments, pair):
        each, fixed = eqx.partition(pair, _is_array)
        return results(*arguments), jax.vmap(lambda one: results(*eqx.combine(one, fixed)))(each)

    outside = None
    if check.wants(INSIDE) or NUMPY not in check.skip:
        outside = _ran(check, lambda: results(*first), "Does it run with JAX's arrays?")
    if check.wants(TWICE):
        alike = describe(first) == describe(second)
        remedy = "Make what is swept a leaf: a static field or a number that is compiled in compiles anew each time."
        check.require(alike, f"other arguments to be {describe(first)}", describe(second), remedy)
    pair = jax.tree.map(lambda one, two: np.stack([one, two]) if _is_array(one) else one, first, second)
    program = Program(both)
    batches, inside = check.wants(BATCHES), INSIDE not in check.skip
    if inside:  # what a trace raises is told under it
        check.wants(INSIDE)
    single, batch = _ran(check, lambda: program(first, pair), "Branch with jnp.where and lax.cond, not by `if`.")
    if inside:
        remedy = "Does it depend on something else than its arguments, or is a type chosen by hand?"
        found, wanted = describe(single), describe(outside)
        check.require(found == wanted, f"as outside jit, {wanted}", found, remedy)
        check.close(single, outside, tolerance, "as outside jit", remedy)
    no_retrace(check, program, [lambda: program(second, pair)], 1)
    if batches and check.wants(BATCHES):
        loop = jax.tree.map(lambda *leaves: np.stack(leaves), single, program(second, pair)[0])
        remedy = "Sum over the axes of one example alone, and name axes from the end."
        check.require(describe(batch)[1] == describe(loop)[1], f"{describe(loop)[1]}", describe(batch)[1], remedy)
        check.close(batch, loop, tolerance, "under vmap what single calls return", remedy)
    if check.wants(NUMPY):
        _of_numpy(check, results, first, outside, tolerance)
    if float64 and check.wants(DOUBLE):
        _double(check, results, first, single, 10 * tolerance)
    if half and check.wants(HALF):
        _half(check, results, first, single)
    return check.finish()


def _of_numpy(check: Check, results: Callable, arguments: Any, outside: Any, tolerance: float) -> None:
    """NumPy's arrays in place of JAX's, outside jit."""
    remedy = "Begin with jnp.asarray, and change a copy."
    given, before = (jax.tree.map(lambda leaf: np.array(leaf) if _is_array(leaf) else leaf, arguments) for _ in "12")
    taken = _ran(check, lambda: results(*given), remedy)
    place = difference(given, before)
    check.require(place is None, "NumPy's arguments left as they were", f"another value at {place}", remedy)
    same = jax.tree.structure(taken) == jax.tree.structure(outside)
    check.require(same, "of NumPy's arrays the same", jax.tree.structure(taken), remedy)
    check.close(taken, outside, tolerance, "of NumPy's arrays the same", remedy)


def _double(check: Check, results: Callable, arguments: Any, single: Any, tolerance: float) -> None:
    """Double precision, in a program of its own."""
    remedy = "Take the type from the arguments (jnp.result_type), not from a constant of float32."
    with jax.enable_x64(True):
        wide = jax.tree.map(widened, arguments)
        double = _ran(check, lambda: Program(results)(*wide), remedy)
        places = jax.tree_util.tree_leaves_with_path(double)
        for (path, leaf), before in zip(places, jax.tree.leaves(single), strict=True):
            place = jax.tree_util.keystr(path) or "the value"
            if before.dtype == jnp.float32:
                check.require(leaf.dtype == jnp.float64, f"float64 at {place}", leaf.dtype, remedy)
        check.close(single, double, tolerance, "float64 to agree with float32", "Is a difference of large sums taken?")


def _half(check: Check, results: Callable, arguments: Any, single: Any) -> None:
    """Both types of half precision, in a program each."""
    program = Program(results)
    remedy = "Sum, divide and take exponentials in float32 at least."
    for kind in HALVES:
        narrow = jax.tree.map(lambda leaf, kind=kind: jnp.asarray(leaf, kind) if is_float(leaf) else leaf, arguments)
        found = _ran(check, lambda narrow=narrow: program(*narrow), remedy)
        places = jax.tree_util.tree_leaves_with_path(single)
        for (path, one), two in zip(places, jax.tree.leaves(found), strict=True):
            one, two = np.asarray(one, np.float64), np.asarray(two, np.float64)
            place = f"{jax.tree_util.keystr(path) or 'the value'} of {jnp.dtype(kind).name}"
            fine = np.isfinite(one)
            check.require(np.isfinite(two[fine]).all(), f"finite numbers at {place}", two, remedy)
            size = np.max(np.abs(one[fine]), initial=1e-30)
            apart = np.max(np.abs(one - two)[fine], initial=0.0) / size
            check.require(apart <= 0.1, f"within a tenth at {place}", f"{apart:.3g}", remedy)


def _ran(check: Check, call: Callable[[], Any], remedy: str) -> Any:
    """What a call returns; what it raises breaks the property that was begun last."""
    try:
        return call()
    except Exception as error:  # whatever the function raises
        check.fail("a result", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", remedy)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic)


def _arrays(tree: Any) -> Any:
    """Arrays and floating numbers as JAX's arrays, of no weak type."""
    tree = numbers_as_arrays(tree)
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)) if _is_array(leaf) else leaf, tree)
