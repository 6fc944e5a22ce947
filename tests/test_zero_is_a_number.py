"""A setting that may be left out and may be zero is asked whether it is None, and never whether it is true."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "laureate"
# The rooms that compute for their users; words of the command line and of runs have checks of their own before them.
OTHERS = {"catalogue", "cli", "lab", "pages", "papers", "racing", "testing"}
ROOMS = sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name not in {*OTHERS, "__pycache__"})
KNOWN = {"graphs/gvp_models.py": ["_incoming(number)"]}  # for the eyes of the type checker: it is no None any more


def numbers_or_none(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Its parameters that are a number or None, as they are annotated."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    kinds = {one.arg: set(ast.unparse(one.annotation).split(" | ")) for one in every if one.annotation is not None}
    return {name for name, kind in kinds.items() if "None" in kind and kind & {"int", "float", "Array"}}


def taken_for_truth(node: ast.AST) -> list[ast.expr]:
    """What in a node is asked whether it is true."""
    if isinstance(node, ast.BoolOp):
        return node.values[:-1]
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    return [node.operand] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else []


def mistaken(source: str) -> list[str]:
    """The parameters of its functions of which zero is taken for nothing."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            names = numbers_or_none(function)
            asked = [one for node in ast.walk(function) for one in taken_for_truth(node)]
            found += [f"{function.name}({one.id})" for one in asked if isinstance(one, ast.Name) and one.id in names]
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_zero_that_is_given_is_not_taken_for_none(room):
    found = {str(path.relative_to(SOURCE)): mistaken(path.read_text()) for path in (SOURCE / room).rglob("*.py")}
    assert {path: wrong for path, wrong in found.items() if wrong != KNOWN.get(path, [])} == {}


def test_what_is_taken_for_truth_is_found():
    body = "return ({} or 3), (1 if {} else 2), not {}, {} is None, [x for x in y if {}], y or {}"
    source = f"def f(a: int | None, b: str | None, *, c: 'Any' = None): {body.format(*'aaaaaa')}, b or 'x', c or 3"
    assert mistaken(source) == ["f(a)"] * 4
