"""Options by pairs: most faults need two options away from their defaults, few need three."""

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import equinox as eqx
import jax
import numpy as np

from laureate.testing._checks import Check, Program, describe, is_float

__all__ = ["check_settings", "pairwise", "settings_by_pairs"]

Options = Mapping[str, Sequence[Any]]
Allowed = Callable[[dict[str, Any]], bool]


def every_row(chosen: dict[str, Any]) -> bool:
    """No combination is forbidden."""
    return True


def pairwise(options: Options, allowed: Allowed = every_row) -> list[dict[str, Any]]:
    """Few combinations of options in which every pair of values occurs, of those that are ``allowed``.

    Greedy: of all combinations, again and again the one with the most pairs not yet seen. Meant for a handful of
    options with two or three values each.

    >>> rows = pairwise({"thin": [1, 2], "chunk": [1, 3], "lazy": [0.0, 0.1]})
    >>> len(rows), rows[0]
    (4, {'thin': 1, 'chunk': 1, 'lazy': 0.0})
    """
    rows = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    rows = [row for row in rows if allowed(row)]
    size = min(2, len(options))
    wanted = [{tuple((name, repr(row[name])) for name in some) for some in combinations(options, size)} for row in rows]
    missing, chosen = set().union(*wanted), []
    while missing:
        best = max(range(len(rows)), key=lambda index: len(wanted[index] & missing))
        chosen.append(rows[best])
        missing -= wanted[best]
    return chosen


def check_settings(
    method: Any,
    compute: Callable[[Any], tuple[Any, Any, Any]],
    options: Options,
    *,
    make: Callable[..., Any] | None = None,
    allowed: Allowed = every_row,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check the static settings of a method (words, flags, counts), by pairs: all in one program, the rest is traced.

    method: an Equinox module, one row of those that ``options`` allow.
    compute: from the method to a state, the state after a step, and what else it tells.
    options: from the names of static settings to the values to try.
    make: from settings to the method, where it cannot be made of its fields.
    allowed: whether a row of settings may be; those that the method refuses have to be left out.
    unused: static settings that rightly change no program, as a limit beyond which it raises.
    skip: properties to leave out: those in the list that is returned.

    Properties: every static word, flag and count of the method stands in ``options`` or ``unused``; all pairs of values
    make a method that computes, with a state that keeps its shapes and types; nothing that it computes is nan where
    its status is OK or it has none; each value, changed alone in some row, makes another program.

    >>> import jax.numpy as jnp
    >>> class Power(eqx.Module):
    ...     exponent: int = eqx.field(static=True, default=2)
    ...     signed: bool = eqx.field(static=True, default=False)
    ...     def step(self, state):
    ...         return state**self.exponent * (-1 if self.signed else 1)
    >>> compute = lambda power: (jnp.ones(3), power.step(jnp.ones(3)), None)
    >>> check_settings(Power(), compute, {"exponent": (2, 3), "signed": (False, True)})
    ['every setting is known', 'settings by pairs', 'settings compute', 'every setting is used']
    """
    check = Check(type(method).__name__, skip)
    settings_by_pairs(check, method, compute, options, allowed, unused, make)
    return check.finish()


def settings_by_pairs(
    check: Check,
    method: Any,
    compute: Callable[[Any], tuple[Any, Any, Any]],
    options: Options | None,
    allowed: Allowed = every_row,
    unused: Collection[str] = (),
    make: Callable[..., Any] | None = None,
) -> None:
    """The properties of ``check_settings``; none without options."""
    if not options:
        return
    own = {name: getattr(method, name) for name in options}
    if check.wants("every setting is known"):
        lacking = sorted(_static(method) - {*options, *(name.removeprefix(".") for name in unused)})
        remedy = "Name it in `options` with the values to try, or in `unused` where it rightly changes no program."
        check.require(not lacking, "values to try of every static setting", f"none for {', '.join(lacking)}", remedy)
    make = (lambda **row: dataclasses.replace(method, **row)) if make is None else make
    traced, rows = _Traced(check, make, compute), pairwise(options, allowed)
    if check.wants("settings by pairs"):
        for row in rows:
            traced(row)
    if check.wants("settings compute"):
        computed = Program(lambda: {str(row): eqx.filter(compute(make(**row)), eqx.is_array) for row in rows})()
        remedy = "What is no number is never Status.OK."
        for row, found in computed.items():
            check.require(_numbers_where_ok(found), f"for {row} numbers where the status is OK", "nan", remedy)
    if check.wants("every setting is used"):
        # In some row at least: one need not matter where another is at its default.
        remedy = "Is it read, and handed on? Name it in `unused` where it rightly changes no program."
        for name, value in ((name, value) for name, values in options.items() for value in values):
            twins = [({**row, name: own[name]}, {**row, name: value}) for row in (own, *rows)]
            allows = [(one, other) for one, other in twins if allowed(one) and allowed(other)]
            told = value == own[name] or any(traced(one) != traced(other) for one, other in allows)
            expected = f"another program where {name} is {value!r} and not {own[name]!r}"
            check.require(told, expected, "the same", remedy)


class _Traced:
    """The programs of a method with other settings, each traced once: its text and its constants."""

    def __init__(self, check: Check, make: Callable[..., Any], compute: Callable[[Any], tuple[Any, Any, Any]]):
        self.check, self.make, self.compute = check, make, compute
        self.known: dict[str, Any] = {}

    def __call__(self, row: dict[str, Any]) -> Any:
        if repr(row) not in self.known:
            self.known[repr(row)] = self._trace(row)
        return self.known[repr(row)]

    def _trace(self, row: dict[str, Any]) -> Any:
        check, expected = self.check, f"{row} to make a method that computes"
        try:
            made = self.make(**row)
            outputs = lambda: eqx.filter(self.compute(made), eqx.is_array)  # noqa: E731
            program, (before, after, _) = jax.make_jaxpr(outputs, return_shape=True)()
        except Exception as error:  # whatever it raises
            check.fail(expected, f"{type(error).__name__}: {error}", "Leave out by `allowed` what it rightly refuses.")
        remedy = "A state that changes its type cannot be carried by lax.scan."
        old, new = describe(before), describe(after)
        check.require(old == new, f"for {row} a state that stays {old}", new, remedy)
        constants = [np.asarray(leaf).tobytes() for leaf in program.consts if not _is_key(leaf)]
        return re.sub(r"0x[0-9a-f]+", "", str(program.jaxpr)), constants


def _numbers_where_ok(computed: Any) -> bool:
    """Whether nothing is nan, or some status is another than OK."""
    has_status = lambda node: hasattr(node, "status")  # noqa: E731
    reports = [node for node in jax.tree.leaves(computed, is_leaf=has_status) if has_status(node)]
    if any(np.any(np.asarray(report.status) != 0) for report in reports):
        return True
    floats = filter(is_float, jax.tree.leaves(computed))
    return not any(np.isnan(np.asarray(leaf, np.float64)).any() for leaf in floats)


def _is_key(leaf: Any) -> bool:
    return jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _static(method: Any) -> set[str]:
    """The names of static fields that hold words, flags or counts."""
    fields = [field.name for field in dataclasses.fields(method) if field.metadata.get("static")]
    return {name for name in fields if isinstance(getattr(method, name), bool | int | str)}
