"""A method beside its peers: the vocabulary of a paper's ``speed.py``, which holds ``COMPARISONS``.

Peers are no dependencies: they are imported when a comparison is made ready, and one that is not installed is left out.
Nothing heavy is loaded here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Comparison", "Side"]


class Side(NamedTuple):
    """One contestant, made ready.

    run: one repeat; what it returns is waited for. The first call compiles.
    times: by which the time of a repeat is multiplied: 1/20 where it makes twenty steps and that of one is reported.
    note: what must be known to read the number.
    """

    run: Callable[[], Any]
    times: float = 1.0
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """The same work done here and elsewhere.

    peer: the other side's name. package: its distribution; empty where it is a baseline of our own.
    ours, theirs: make a side ready. ``theirs`` is only called where the package is installed.
    """

    work: str
    peer: str
    package: str
    ours: Callable[[], Side]
    theirs: Callable[[], Side]
