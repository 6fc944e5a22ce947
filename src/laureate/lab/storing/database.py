"""What SQLite complains about, in words for the person at the keyboard: what happened, and what to do."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from laureate.lab.errors import UserError

__all__ = ["is_json", "readable_errors"]

SPACE = "Free some space (or set LAUREATE_HOME to another disk), then repeat the command: what was finished is kept."
# The beginning of SQLite's own name of the error -> what happened, and what to do.
MESSAGES = {
    "SQLITE_FULL": ("is not written: the disk is full", SPACE),
    "SQLITE_IOERR": ("is not written: the disk refuses ({error})", SPACE),
    "SQLITE_BUSY": (
        "has been held by another program for a minute",
        "Wait for it or stop it, then repeat the command: what was finished is kept.",
    ),
    "SQLITE_READONLY": (
        "may not be written",
        "Change its permissions, or set LAUREATE_HOME to a folder of your own.",
    ),
    "SQLITE_CANTOPEN": (
        "cannot be opened: {error}",
        "Look at the permissions of its folder, or set LAUREATE_HOME to another.",
    ),
    "SQLITE_PERM": ("cannot be opened: {error}", "Change its permissions, or set LAUREATE_HOME to another folder."),
    "SQLITE_CORRUPT": ("is damaged: {error}", "{repair}"),
    "SQLITE_NOTADB": ("is damaged: {error}", "{repair}"),
    "SQLITE_CONSTRAINT": ("contradicts itself: {error}", "{repair}"),
    "SQLITE_ERROR": ("cannot be used: {error}", "{repair}"),
}


def is_json(text: Any) -> bool:
    """Whether a record is one: SQLite does not look into its texts."""
    try:
        json.loads(text)
    except (ValueError, TypeError):
        return False
    return True


@contextmanager
def readable_errors(path: Path, what: str, repair: str) -> Iterator[None]:
    """Errors of the database at ``path`` that a user can mend, as ``UserError``; ``repair`` mends a damaged file."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        # What has no code is raised by Python's module itself, such as text that is not UTF-8 in a damaged file.
        name = getattr(error, "sqlite_errorname", "") or ("SQLITE_CORRUPT" if "decode" in str(error) else "")
        for beginning, (happened, remedy) in MESSAGES.items():
            if name.startswith(beginning):
                message = f"{what} {path} {happened.format(error=error)}."
                raise UserError(message, remedy.format(repair=repair)) from error
        raise
