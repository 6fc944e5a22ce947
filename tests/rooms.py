"""The rooms of the package: what is no room of another kind is an area of methods, so that a new one is found."""

from pathlib import Path

import laureate
from laureate.cli.new import ROOMS

PACKAGE = Path(laureate.__file__).parent
SHARED = {"layers", "loops"}  # what areas and problems may share
AREAS = sorted({path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()} - ROOMS)
