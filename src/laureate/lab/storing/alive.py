"""Whether the process behind a run still lives, told by a lock that the system takes back when it dies.

A number of a process would not do: it is given to another one later, and means nothing in a container beside. A time of
its last sign of life would not do either: clocks jump.
"""

import contextlib
import os
import sys
from pathlib import Path

__all__ = ["Alive", "lives"]

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Alive:
    """Holds ``path`` locked until ``end``, or until this process ends in whatever way; workers do not inherit it."""

    def __init__(self, path: Path):
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        _lock(self._handle)

    def end(self) -> None:
        """Let go; the file goes with it."""
        with contextlib.suppress(OSError):
            os.close(self._handle)
        self._path.unlink(missing_ok=True)


def lives(path: Path) -> bool:
    """Whether some process holds ``path``."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        _lock(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
