"""Where everything the user owns lies: the store, the caches, the pages."""

import os
from pathlib import Path

__all__ = ["compilation_cache", "home", "reports", "store_path"]


def home() -> Path:
    """The folder of ``LAUREATE_HOME``, by default the platform's data folder; made if it is not there."""
    if chosen := os.environ.get("LAUREATE_HOME"):
        folder = Path(chosen).expanduser()
    else:
        import platformdirs

        folder = Path(platformdirs.user_data_dir("laureate", appauthor=False))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def store_path() -> Path:
    """The one file that holds all results."""
    return home() / "store.sqlite"


def compilation_cache() -> Path:
    """Compiled programs, shared by all workers and runs; safe to delete."""
    return home() / "cache" / "xla"


def reports() -> Path:
    """The pages that runs write."""
    folder = home() / "reports"
    folder.mkdir(exist_ok=True)
    return folder
