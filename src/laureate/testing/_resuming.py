"""What every driver promises that takes ``checkpoint=``: stopped and called again it goes on, and only its own file."""

import inspect
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from laureate.testing._checks import Check

__all__ = ["check_resumable"]

TOTAL = 4  # steps of the whole run
MIDDLE = 2  # where it is stopped


class _StoppedError(Exception):
    """Raised by the one who watches."""


def check_resumable(
    run: Callable[..., Any],
    given: Mapping[str, Any],
    *,
    others: Mapping[str, Any],
    free: Mapping[str, Any] | None = None,
    apart: Collection[str] = (),
    names: Mapping[str, str] | None = None,
    number: str | None = "num_steps",
    skip: Collection[str] = (),
) -> list[str]:
    """Check a driver with the arguments ``progress`` and ``checkpoint``, as ``laureate.loops.run`` has.

    run: returns a tree of arrays. given: its arguments, by name, for a run of four steps.
    others: for every argument that decides what is computed another value, with which the file must be refused.
    free: for every argument that a file does not depend on another value, with which it must be taken up.
    apart: arguments that are not tried, as one that forbids a file.
    names: what arguments are called where a file is refused, if not as in the signature.
    number: of these that for the number of steps; None where it is a setting like others.
    skip: properties to leave out: those in the list that is returned.

    Properties: every argument of the signature stands in one of the three; a run that is watched and kept computes what
    one without does; a run that was stopped goes on with the step after the last, and ends with the same bits; so does
    one that is asked for more steps; a whole one computes nothing; one for fewer steps, and every argument changed
    alone, are refused by an error that names it; what is free is taken up.

    >>> import jax.numpy as jnp
    >>> from laureate import loops
    >>> def halve(x, t):
    ...     return 0.5 * x, x
    >>> checked = check_resumable(
    ...     loops.run,
    ...     {"step": halve, "state": jnp.ones(()), "num_steps": 4},
    ...     others={"state": jnp.zeros(()), "step": lambda x, t: (x, x), "first": 1, "every": 2, "settings": {"a": 1}}
    ...     | {"record": lambda x: x},
    ...     free={"chunk": 3},
    ...     names={"state": "start", "settings": "step"},
    ... )
    >>> checked[-1]
    'what is free is taken up'
    """
    free = {} if free is None else free
    check = Check(getattr(run, "__qualname__", type(run).__name__), skip)
    if check.wants("every argument is known"):
        named = {*others, *free, *apart, "progress", "checkpoint", *([] if number is None else [number])}
        lacking = [name for name in inspect.signature(run).parameters if name not in named]
        remedy = "Name it in `others` where it decides what is computed, in `free` where a file does not depend on it."
        check.require(not lacking, "another value for every argument", f"none for {', '.join(lacking)}", remedy)
    with tempfile.TemporaryDirectory() as folder:
        _Files(check, run, given, Path(folder), number).all(others, free, names or {})
    return check.finish()


class _Files:
    """One driver, and where its files are."""

    def __init__(self, check: Check, run: Callable, given: Mapping[str, Any], folder: Path, number: str | None):
        self.check, self.run, self.given, self.folder, self.number = check, run, dict(given), folder, number

    def __call__(self, name: str, stop: int | None = None, **instead: Any) -> tuple[Any, list[int]]:
        """What a run with this file returns, and the steps after which it told; ``stop``: by the one who watches."""
        told: list[int] = []

        def watch(progress: Any) -> None:
            told.append(progress.done)
            if progress.done == stop:
                raise _StoppedError

        return self.run(**{**self.given, "checkpoint": self.folder / name, "progress": watch, **instead}), told

    def all(self, others: Mapping[str, Any], free: Mapping[str, Any], names: Mapping[str, str]) -> None:
        check = self.check
        whole = self.run(**self.given)
        if check.wants("watched and kept changes nothing"):
            remedy = "A step is made from its absolute number alone."
            check.bits(self("whole")[0], whole, "what a run without a file computes", remedy)
            check.require((self.folder / "whole").exists(), "a file", "none", "Hand `checkpoint` on.")
        if check.wants("stopped it goes on"):
            try:
                self("stopped", MIDDLE)
                check.fail(f"a run that ends where progress raises after {MIDDLE} steps", "a whole run", "Is it told?")
            except _StoppedError:
                pass
            self._onward("stopped", whole)
        if self.number is not None and check.wants("asked for more it goes on"):
            self("more", **{self.number: MIDDLE})
            self._onward("more", whole)
        if check.wants("a whole file is enough"):
            again, told = self("whole")
            check.require(not told, "no step to be done again", f"told of {told}", "Begin after the steps of the file.")
            check.bits(again, whole, "what the run has computed", "Keep all that is returned.")
        if check.wants("another's file is refused"):
            for name, value in others.items():
                self._refused(name, value, names.get(name, name))
            if self.number is not None:
                self._refused(self.number, MIDDLE, names.get(self.number, "done"))
        if free and check.wants("what is free is taken up"):
            for name, value in free.items():
                self._taken_up(name, value)

    def _onward(self, name: str, whole: Any) -> None:
        result, told = self(name)
        remedy = "Hand `checkpoint` on, and begin where the file ends."
        check = self.check
        check.require(told[:1] == [MIDDLE + 1], f"to be told of step {MIDDLE + 1} first", told, remedy)
        check.bits(result, whole, "the bits of one go", "Keep all that the next step needs, and what was recorded.")

    def _refused(self, name: str, value: Any, called: str) -> None:
        check, expected = self.check, f"for another {name} a ValueError that names {called!r}"
        remedy = "Put all that decides what is computed among the settings of the checkpoint."
        try:
            self("whole", **{name: value})
        except ValueError as error:
            check.require(re.search(rf"Checkpoint.*\b{re.escape(called)}\b", str(error)), expected, error, remedy)
            return
        check.fail(expected, "none", remedy)

    def _taken_up(self, name: str, value: Any) -> None:
        remedy = "Leave it out of the settings of the checkpoint."
        expected = f"the file to serve another {name} as well"
        try:
            _, told = self("whole", **{name: value})
        except ValueError as error:
            self.check.fail(expected, str(error), remedy)
        self.check.require(not told, expected, f"steps done again, {told}", remedy)
