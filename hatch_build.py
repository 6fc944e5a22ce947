"""Hatchling calls this when the package is built or installed: the catalogue's search index is made beforehand.

Without it the first search of a user would build the index, for more than a second. It is never trusted blindly: an
index whose fingerprint is not that of the papers and the code is left aside, and a build goes on without one.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class IndexHook(BuildHookInterface):
    """Adds ``catalogue/index.sqlite``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the files are collected."""
        sys.path.insert(0, str(Path(self.root) / "src"))
        try:
            from laureate.catalogue import index
            from laureate.catalogue.entry import entries

            index.write(index.READY, entries(), index.fingerprint(""))
        except Exception as error:
            self.app.display_warning(f"no search index was made, the first search will make it: {error}")
            return
        finally:
            sys.path.pop(0)
        build_data["artifacts"].append("src/laureate/catalogue/index.sqlite")
