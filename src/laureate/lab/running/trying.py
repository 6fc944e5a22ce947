"""A user's problem before anything starts: made and traced once, so that what is wrong with it is reported in one line.

Nothing is computed and nothing is stored; the line of their file stands in the message.
"""

import traceback
from collections.abc import Iterable
from pathlib import Path

from laureate.lab.cell import Cell
from laureate.lab.errors import UserError
from laureate.lab.running.references import bindings, parsed
from laureate.lab.running.worker import attempt

__all__ = ["in_their_file", "try_problem"]

LONGEST = 300


def try_problem(problem: str, cells: Iterable[Cell]) -> None:
    """``UserError`` where one of the experiments cannot use the problem; each is traced with its first cell."""
    firsts: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        firsts.setdefault((cell.paper, cell.experiment), cell)
    for cell in firsts.values():
        made, error = attempt(cell)
        if error is not None:
            raise UserError(_message(cell, problem, error), "Nothing was run.")
        if missing := [name for name in cell.accepts if getattr(made, name, ...) is ...]:
            raise UserError(
                f"{_label(problem)}{_defined(problem)} lacks {', '.join(missing)}.",
                f"{cell.paper}/{cell.experiment} needs a problem with: {', '.join(cell.accepts)}. Nothing was run.",
            )


def _label(problem: str) -> str:
    file, _, name = problem.rpartition(":")
    return f"{Path(file).name}:{name}"


def _defined(problem: str) -> str:
    """Where the file defines the problem: `` (line 4)``; empty where that cannot be seen."""
    file, _, name = problem.rpartition(":")
    line = bindings(parsed(Path(file))).get(name)
    return f" (line {line})" if line else ""


def in_their_file(problem: str, error: BaseException) -> str:
    """What went wrong, at the last line of the user's file that it passed through; empty where it passed none."""
    file = problem.rpartition(":")[0]
    mine = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if not mine:
        return ""
    inside = f" in {mine[-1].name}" if mine[-1].name != "<module>" else ""
    return f"{Path(file).name}, line {mine[-1].lineno}{inside}: {_what(error)}."


def _what(error: BaseException) -> str:
    words = " ".join(str(error).splitlines()[:1])[:LONGEST].rstrip(".")
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _message(cell: Cell, problem: str, error: BaseException) -> str:
    """What went wrong: in their file, else where in ours it ended."""
    if isinstance(error, UserError):
        return error.message
    if mine := in_their_file(problem, error):
        return mine
    what, frames = _what(error), traceback.extract_tb(error.__traceback__)
    ours = next((frame for frame in reversed(frames) if "laureate" in Path(frame.filename).parts), None)
    where = f" ({Path(ours.filename).name}, line {ours.lineno}, in {ours.name})" if ours else ""
    what += f"{where}. What each part must give: laureate show {cell.paper}/{cell.experiment}"
    return f"{cell.paper}/{cell.experiment} cannot use {_label(problem)}{_defined(problem)}: {what}."
