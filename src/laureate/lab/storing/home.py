"""Where everything the user owns lies: the store, the caches, the pages."""

import contextlib
import os
import zlib
from pathlib import Path

from laureate.lab.errors import UserError

__all__ = ["compilation_cache", "home", "mend_compilation_cache", "reports", "store_path"]


def home() -> Path:
    """The folder of ``LAUREATE_HOME``, by default the platform's data folder; made if it is not there."""
    if chosen := os.environ.get("LAUREATE_HOME"):
        folder = Path(chosen)
    else:
        import platformdirs

        folder = Path(platformdirs.user_data_dir("laureate", appauthor=False))
    try:
        folder = folder.expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise UserError(
            f"The folder for results cannot be made: {folder}: {what}.", "Set LAUREATE_HOME to one of your own."
        ) from error
    return folder


def store_path() -> Path:
    """The one file that holds all results."""
    return home() / "store.sqlite"


def compilation_cache() -> Path:
    """Compiled programs, shared by all workers and runs; safe to delete."""
    return home() / "cache" / "xla"


def mend_compilation_cache() -> None:
    """Remove compiled programs that were cut off, by a kill or a full disk, while they were written.

    jax neither writes them in one go nor replaces a bad one: it would compile that program again in every run.
    """
    for entry in compilation_cache().glob("*-cache"):
        with contextlib.suppress(OSError):
            if _cut_off(entry):
                entry.unlink()


def _cut_off(entry: Path) -> bool:
    data = entry.read_bytes()
    if data[:1] != b"\x78":  # zlib's first byte; jax may have written zstd, which only tells if it is empty
        return not data
    unpacker = zlib.decompressobj()
    try:
        unpacker.decompress(data)
    except zlib.error:
        return True
    return not unpacker.eof


def reports() -> Path:
    """The pages that runs write."""
    folder = home() / "reports"
    folder.mkdir(exist_ok=True)
    return folder
