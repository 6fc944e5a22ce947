"""When a test of this folder runs: `make test` (quick), `make check` (thorough) or `make test-all` (slow)."""

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

HERE = Path(__file__).parent
THOROUGH = frozenset((HERE.parent / "thorough.txt").read_text(encoding="utf-8").splitlines())
QUICK, LATER, SLOW = "quick", "thorough", "slow"


def tiers(module: ModuleType) -> dict[str, str]:
    """Of every test of a module, with its parameters as pytest names them."""
    tests = {name: one for name, one in vars(module).items() if name.startswith("test_") and callable(one)}
    found = {}
    for name, test in tests.items():
        for parameters, slow in _rows(test):
            whole = f"{name}[{parameters}]" if parameters else name
            listed = f"tests/contract/{module.__name__}.py::{whole}" in THOROUGH
            found[whole] = SLOW if slow else LATER if listed else QUICK
    return found


def _rows(test: FunctionType) -> Iterator[tuple[str, bool]]:
    marks = getattr(test, "pytestmark", [])
    always = any(mark.name == "slow" for mark in marks)
    tables = [_table(*mark.args, **mark.kwargs) for mark in marks if mark.name == "parametrize"]
    for rows in itertools.product(*tables):
        yield "-".join(name for name, _ in rows), always or any(slow for _, slow in rows)


def _table(_: Any, values: Any, ids: Any = None) -> list[tuple[str, bool]]:
    told = []
    for place, value in enumerate(values):
        marks = getattr(value, "marks", ())
        given = value.values if hasattr(value, "marks") else value if isinstance(value, tuple) else (value,)
        name = getattr(value, "id", None) or (ids[place] if ids else "-".join(map(_named, given)))
        told.append((name, any(mark.name == "slow" for mark in marks)))
    return told


def _named(value: Any) -> str:
    return getattr(value, "__name__", None) or str(value)


def calls(module: str) -> dict[str, set[str]]:
    """The functions that each test of a module calls, but of those that want to see an error."""
    tree = ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    found = {
        test.name: {ast.unparse(one.func) for one in ast.walk(test) if isinstance(one, ast.Call)} for test in tests
    }
    return {name: called for name, called in found.items() if "pytest.raises" not in called}
