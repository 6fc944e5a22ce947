"""Files for the user: there whole, or as they were before."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

__all__ = ["written_whole"]


@contextlib.contextmanager
def written_whole(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    """A stream to write a text file by: what was written takes the file's place at the end, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        # A pipe or a device: to be written to, not to be replaced.
        with path.open("w", encoding="utf-8", newline=newline) as stream:
            yield stream
        return
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline=newline) as stream:
            yield stream
        os.chmod(scratch, 0o644)
        # Through a link to where it leads.
        os.replace(scratch, path.resolve() if path.is_symlink() else path)
    except BaseException:
        os.unlink(scratch)
        raise
