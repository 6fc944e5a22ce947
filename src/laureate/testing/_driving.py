"""How drivers cut and keep a run changes nothing of what is computed: chunks, records, stops and watching, by pairs."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from laureate.testing._checks import Check
from laureate.testing._options import Options, pairwise

__all__ = ["training_by_pairs"]

UPDATES = 4
TRAINING: Options = {"every": (1, 2), "stop": (None, 2), "recorded": (True, False), "watched": (False, True)}


def watching(wanted: bool) -> dict[str, Any]:
    """The argument ``progress``, where somebody watches."""
    return {"progress": lambda progress: None} if wanted else {}


def joined(first: Any, second: Any) -> Any:
    """The rows of one after those of the other."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), first, second)


def training_by_pairs(
    check: Check,
    call: Callable[..., tuple[Any, Any]],
    record: Callable[[Any], Any],
    each: Sequence[str] = (),
) -> None:
    """``train`` with records, stops and watching in all pairs: the parameters and the history are those of one go.

    call: ``call(number, **more) -> (parameters, history)``, with ``every``, ``record``, ``start`` and ``progress``.
    record: a function of the parameters. each: fields of the history with a row an update, and not a record.
    """
    if not check.wants("options of the driver by pairs"):
        return
    whole, told = call(UPDATES, record=record)
    told = {name: value for name, value in _fields(told).items() if name != "last"}
    for row in pairwise(TRAINING):
        every, stop, watched = row["every"], row["stop"], watching(row["watched"])
        more = {**watched, "every": every, **({"record": record} if row["recorded"] else {})}
        params, history = call(UPDATES if stop is None else stop, **more)
        found = {name: getattr(history, name) for name in told}
        if stop is not None:
            params, rest = call(UPDATES - stop, start=history.last, **more)
            found = joined(found, {name: getattr(rest, name) for name in told})
        kept = {name: value for name, value in told.items() if name != "recorded" or row["recorded"]}
        expected = {name: value if name in each else _every(value, every) for name, value in kept.items()}
        said = f"with {row} "
        check.bits(params, whole, said + "the parameters of one go", "Draw by the absolute number of the update.")
        remedy = "A record is of the parameters and the cost after its update, since the very start."
        check.bits({name: found[name] for name in kept}, expected, said + "the history of one go", remedy)


def _every(tree: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[number - 1 :: number], tree)


def _fields(history: Any) -> dict[str, Any]:
    """Of a NamedTuple or a module."""
    return history._asdict() if hasattr(history, "_asdict") else vars(history)
