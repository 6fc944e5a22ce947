"""What all checks share: how a broken property is reported, programs that count their traces, comparisons of trees."""

import io
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.testing._keys import KeyRecorder

__all__ = [
    "Check",
    "ContractError",
    "Program",
    "describe",
    "every_number_is_used",
    "in_turn",
    "numbers_as_arrays",
    "same_bits",
]

# These programs run for milliseconds, so the compiler need not optimise.
QUICK = {"xla_backend_optimization_level": 0}
MISSING = object()


class ContractError(AssertionError):
    """A method does not keep what is promised of all methods of its kind; ``property`` names the promise."""

    def __init__(self, owner: str, property: str, expected: str, got: str, remedy: str):
        super().__init__(f"{owner} breaks {property!r}: expected {expected}; got {got}. {remedy}")
        self.property = property


class Check:
    """The properties of one method, one after the other.

    owner: the name in messages. skip: properties not to be checked; an unknown name raises, as it would hide a fault.
    """

    def __init__(self, owner: str, skip: Collection[str] = ()):
        self.owner, self.skip = owner, frozenset(skip)
        self.checked: list[str] = []
        self._skipped: set[str] = set()
        self._property = ""

    def wants(self, property: str) -> bool:
        """Begin a property, or take it up again; False where it is skipped."""
        self._property = property
        if property in self.skip:
            self._skipped.add(property)
            return False
        if property not in self.checked:
            self.checked.append(property)
        return True

    def fail(self, expected: str, got: str, remedy: str) -> NoReturn:
        """Report the property that was begun last."""
        raise ContractError(self.owner, self._property, expected, got, remedy)

    def require(self, holds: Any, expected: str, got: Any, remedy: str) -> None:
        """Report unless ``holds``."""
        if not bool(holds):
            self.fail(expected, str(got), remedy)

    def attribute(self, report: Any, name: str, remedy: str) -> Any:
        """``report.name`` as a numpy array."""
        value = getattr(report, name, MISSING)
        if value is MISSING:
            self.fail(f"a report with the field {name!r}", type(report).__name__, remedy)
        return np.asarray(value)

    def bits(self, first: Any, second: Any, expected: str, remedy: str) -> None:
        """Report unless two trees are equal to the last bit."""
        place = difference(first, second)
        if place is not None:
            self.fail(expected, f"another value at {place}", remedy)

    def close(self, first: Any, second: Any, rtol: float, expected: str, remedy: str, floor: float = 1e-30) -> None:
        """Report unless two trees agree, each leaf within ``rtol`` of its largest entry, or of ``floor``."""
        paths = jax.tree_util.tree_leaves_with_path(first)
        for (path, one), two in zip(paths, jax.tree.leaves(second), strict=True):
            one, two, place = np.asarray(data_of(one)), np.asarray(data_of(two)), jax.tree_util.keystr(path)
            if one.shape != two.shape:  # NumPy would repeat what has one entry
                self.fail(expected, f"the shape {one.shape} and not {two.shape} at {place or 'the value'}", remedy)
            if not np.issubdtype(one.dtype, np.inexact):
                apart = float(np.any(one != two))
            else:
                one, two = one.astype(np.float64), two.astype(np.float64)
                size = max(float(np.max(np.abs(two), initial=0.0, where=np.isfinite(two))), floor)
                with np.errstate(invalid="ignore"):  # inf twice is the same
                    apart = float(np.max(np.where(one == two, 0.0, np.abs(one - two)) / size, initial=0.0))
            if not apart <= rtol:
                self.fail(expected, f"a difference of {apart:.3g} at {place or 'the value'}", remedy)

    def fixed_shapes(self, before: Any, after: Any) -> None:
        """A state keeps its structure, its shapes and its types."""
        if not self.wants("state shapes"):
            return
        remedy = "A state that changes its type compiles anew at the second step and cannot be carried by lax.scan."
        old, new = describe(before), describe(after)
        self.require(old == new, f"the state of init, {old}", new, remedy)

    def saved(self, state: Any, into: Any = None) -> Any:
        """The state after ``eqx.tree_serialise_leaves`` and back, ``into`` another of its form where there is one."""
        file = io.BytesIO()
        try:
            eqx.tree_serialise_leaves(file, state)
            file.seek(0)
            return eqx.tree_deserialise_leaves(file, state if into is None else into)
        except Exception as error:  # whatever a leaf raises
            cause = error.__cause__ or error
            remedy = "Keep arrays in a state: jax.random.key_data of a typed key, no functions, no Python objects."
            self.fail("a state that equinox can save and load", f"{type(error).__name__}: {error} ({cause})", remedy)

    def finish(self) -> list[str]:
        """The properties that were checked; names in ``skip`` that no property has are an error."""
        if unknown := self.skip - self._skipped:
            known = sorted(set(self.checked) | self._skipped)
            raise ValueError(f"skip must be among {known}; got {sorted(unknown)}.")
        return self.checked


def keys_used_once(check: Check, recorder: KeyRecorder, shared: int = 1) -> None:
    """No key that the recorder saw was consumed twice."""
    if check.wants("keys are used once"):
        found = recorder.reused(shared)
        remedy = "Split a key, or fold a number into it, before each draw."
        check.require(not found, "no key to be consumed twice", f"{len(found)}: {'; '.join(found[:3])}", remedy)


class Program:
    """A function compiled once for all checks, and how often it was traced."""

    def __init__(self, function: Callable):
        self.traces = 0

        def counted(*arguments):
            self.traces += 1
            return function(*arguments)

        options: dict[str, Any] = {"compiler_options": QUICK}
        self._call = eqx.filter_jit(counted, **options)

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self._call(*arguments)


def no_retrace(check: Check, program: Program, calls: Sequence[Callable[[], Any]], others: int) -> None:
    """``program`` was called before; these calls, with the same shapes and other numbers, must not trace it again."""
    if not check.wants("no retrace"):
        return
    before = program.traces
    for number, call in enumerate(calls):
        call()
        what = "on a second call" if number < len(calls) - others else "for another number"
        remedy = (
            "Make what is swept a leaf (not static, no Python branch on it), and let a state keep its types."
            if what == "for another number"
            else "Is a new function or object made at every call, or does the state change its type?"
        )
        check.require(program.traces == before, f"no new trace {what}", f"{program.traces - before}", remedy)


def numbers_as_arrays(method: Any) -> Any:
    """The same with Python's floats as arrays: traced, where a float would be compiled in."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, method)


def every_number_is_used(
    check: Check, method: Any, compute: Callable[[Any], Any], unused: Collection[str] = ()
) -> None:
    """Each floating leaf of the method, changed on its own, changes what is computed.

    unused: ends of paths (``".tolerance"``) of numbers that rightly change nothing here.
    """
    if not check.wants("every number is used"):
        return
    before = compute(method)
    leaves, structure = jax.tree_util.tree_flatten_with_path(method)
    for place, (path, leaf) in enumerate(leaves):
        name = jax.tree_util.keystr(path)
        if not eqx.is_inexact_array(leaf) or leaf.size == 0 or name.endswith(tuple(unused)):
            continue
        changed = [one for _, one in leaves]
        # Entries by different factors: a common one leaves ratios, and with them many results, as they were.
        factors = np.linspace(0.8, 0.5, leaf.size).reshape(leaf.shape)
        value = np.where(np.asarray(leaf) == 0, 0.1, factors * np.asarray(leaf, np.float64))
        weak = leaf.ndim == 0 and getattr(leaf, "weak_type", False)  # of a Python number: else all is compiled anew
        changed[place] = jnp.asarray(value.item()) if weak else jnp.asarray(value, leaf.dtype)
        same = same_bits(compute(jax.tree.unflatten(structure, changed)), before)
        remedy = "Is it read, and handed on? Name it in `unused` where it rightly changes nothing here."
        check.require(not same, f"another result for another number at {name}", "the same", remedy)


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a typed key."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def data_of(leaf: Any) -> Any:
    """A leaf as plain numbers."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def describe(tree: Any) -> tuple[str, tuple]:
    """Structure, shapes and types, to be compared and to be read."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "shape")]
    return str(jax.tree.structure(tree)), tuple(f"{leaf.dtype}{list(leaf.shape)}" for leaf in leaves)


def difference(first: Any, second: Any) -> str | None:
    """Where two trees differ in a bit, a shape or a type, or None; of Python's objects numbers and words count."""
    paths = jax.tree_util.tree_leaves_with_path(first)
    others = jax.tree.leaves(second)
    if len(paths) != len(others):
        return "the structure"
    for (path, one), two in zip(paths, others, strict=True):
        if _as_it_is(one) != _as_it_is(two):
            return jax.tree_util.keystr(path) or "the value"
    return None


def _as_it_is(leaf: Any) -> Any:
    """What two leaves must share to be the same: nothing, where they are neither arrays nor numbers nor words."""
    if hasattr(leaf, "shape"):
        array = np.asarray(data_of(leaf))
        return array.shape, array.dtype, array.tobytes()
    return (type(leaf), repr(leaf)) if isinstance(leaf, bool | int | float | complex | str) else None


def same_bits(first: Any, second: Any) -> bool:
    """Whether two trees are equal to the last bit."""
    return difference(first, second) is None


def in_turn(step: Callable[[Any, Any], tuple[Any, Any]], state: Any, xs: Any) -> tuple[Any, Any]:
    """The state after ``step(state, x)`` for each x, and what each step told, in one scan: of any state, its arrays."""
    arrays, rest = eqx.partition(state, eqx.is_array)

    def one(arrays: Any, x: Any) -> tuple[Any, Any]:
        after, told = step(eqx.combine(arrays, rest), x)
        return eqx.filter(after, eqx.is_array), eqx.filter(told, eqx.is_array)

    arrays, told = jax.lax.scan(one, arrays, xs)
    return eqx.combine(arrays, rest), told


# The following compute on the host: outside a program, jax compiles every operation on a new shape.
def on_host(tree: Any) -> Any:
    """The same with NumPy's arrays; typed keys stay."""
    return jax.tree.map(lambda leaf: leaf if is_key(leaf) else np.asarray(leaf), tree)


def stacked(trees: Sequence[Any]) -> Any:
    """A tree with a leading axis."""
    return jax.tree.map(lambda *leaves: (jnp if is_key(leaves[0]) else np).stack(leaves), *trees)


def row(tree: Any, index: int) -> Any:
    """One entry of the leading axis."""
    return jax.tree.map(lambda leaf: leaf[index], on_host(tree))


def is_float(leaf: Any) -> bool:
    """Whether a leaf is an array of floating numbers, of JAX or NumPy."""
    return isinstance(leaf, jax.Array | np.ndarray) and jnp.issubdtype(leaf.dtype, jnp.floating)


def widened(leaf: Any) -> Any:
    """A floating leaf in double precision, within ``jax.enable_x64``."""
    return jnp.asarray(np.asarray(leaf, np.float64)) if is_float(leaf) else leaf


def with_nan(tree: Any, index: Any = 0) -> Any:
    """A copy in which ``leaf[index]`` is nan, of every floating leaf; all of it for ``...``."""

    def spoiled(leaf):
        if not is_float(leaf):
            return leaf
        copy = np.array(leaf)
        copy[index] = np.nan
        return copy

    return jax.tree.map(spoiled, tree)


def inexact_types(tree: Any) -> set[str]:
    """The floating types in a tree of arrays or shapes."""
    leaves = (leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype"))
    return {str(leaf.dtype) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)}
