"""What the tests of most areas load, with the settings of ``tests/conftest.py``, for processes forked from it."""

import importlib
import os
import sys
from pathlib import Path

ROOT = Path(os.environ["MUTANTS_ROOT"])
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]
importlib.import_module("conftest")  # sets what jax reads when it is imported

import equinox  # noqa: E402, F401
import hypothesis  # noqa: E402, F401
import optax  # noqa: E402, F401
import scipy.stats  # noqa: E402, F401
import sklearn.linear_model  # noqa: E402, F401

# The copies have files of their own, one with a fault: of package and tests nothing may be loaded before.
del sys.path[:2]
OURS = (ROOT / "src", ROOT / "tests")
for name, module in list(sys.modules.items()):
    if any(Path(getattr(module, "__file__", None) or "/").is_relative_to(place) for place in OURS):
        del sys.modules[name]
