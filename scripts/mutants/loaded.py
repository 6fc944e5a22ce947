"""What the tests of most areas load, with the settings of ``tests/conftest.py``, for processes forked from it."""

import importlib
import os
import sys
from pathlib import Path

TESTS = Path(os.environ["MUTANTS_ROOT"]) / "tests"
sys.path.insert(0, str(TESTS))
importlib.import_module("conftest")  # sets what jax reads when it is imported

sys.path.remove(str(TESTS))
del sys.modules["conftest"], sys.modules["program_budget"]

import equinox  # noqa: E402, F401
import optax  # noqa: E402, F401
import scipy.stats  # noqa: E402, F401
import sklearn.linear_model  # noqa: E402, F401
