"""The files in ``examples``, loaded and run as a user does."""

import importlib.util
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[1] / "examples"


def loaded(path: Path) -> ModuleType:
    """The module that a file is, without its folder being on the path.

    >>> sorted(name for name in vars(loaded(Path(__file__))) if name.isupper())
    ['EXAMPLES']
    """
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def run_with_problem(monkeypatch, home: Path, claims: str, problem: str) -> None:
    """``laureate run CLAIMS --problem FILE.py:name --scale smoke``, with a store in ``home``."""
    from laureate.cli import cli

    monkeypatch.setenv("LAUREATE_HOME", str(home))
    command = ["run", claims, "--problem", problem, "--scale", "smoke", "--quiet"]
    assert not cli.main(command, standalone_mode=False)
