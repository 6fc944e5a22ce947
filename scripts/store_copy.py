"""A store as the scripts read it: a copy, so that the file is not written to and a run may go on writing."""

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from laureate.lab.storing.store import Store


@contextlib.contextmanager
def copied(path: Path) -> Iterator[Store]:
    """A copy of the store.sqlite at ``path``, brought up to date where that is older; it is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "store.sqlite"
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with (
            contextlib.closing(sqlite3.connect(uri, uri=True)) as theirs,
            contextlib.closing(sqlite3.connect(copy)) as ours,
        ):
            theirs.backup(ours)
        with contextlib.closing(Store(copy)) as store:
            yield store
