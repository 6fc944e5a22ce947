"""The code to paste: what ran, with the chosen settings put in. It is made from the same text that the track runs."""

import ast
import builtins
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laureate.lab.running.references import is_file
from laureate.racing.discipline import Discipline, Entrant
from laureate.racing.objects import is_held

__all__ = ["filled", "script", "uses"]

LIBRARIES = {"jax": "import jax", "jnp": "import jax.numpy as jnp", "optax": "import optax"}


def filled(code: str, values: Mapping[str, Any], fragments: Mapping[str, str] | None = None) -> str:
    """An expression with names replaced: by the values of settings, and by other expressions.

    >>> filled("Gibbs(energy, domain, num=n)", {"n": 2}, {"domain": "Binary()"})
    'Gibbs(energy, Binary(), num=2)'
    """
    parts = dict(fragments or {})

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id in parts:
                return ast.parse(parts[node.id], mode="eval").body
            return ast.Constant(values[node.id]) if node.id in values else node

    return ast.unparse(Fill().visit(ast.parse(code, mode="eval")))


def area_names(discipline: Discipline, code: str, values: Mapping[str, Any]) -> list[str]:
    """The names in an expression that the discipline's area must define."""
    known = {discipline.problem, *values, *LIBRARIES, *dir(builtins)}
    bound = {node.arg for node in ast.walk(ast.parse(code)) if isinstance(node, ast.arg)}
    names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    return sorted(name for name in names - known - bound if name.isidentifier())


def uses(discipline: Discipline, code: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """References to all that an entrant's code names, for its fingerprint."""
    ours = tuple(f"laureate.{discipline.area}:{name}" for name in area_names(discipline, code, values))
    return ours + (("optax:optax",) if "optax" in code else ())


def script(
    discipline: Discipline,
    entrant: Entrant,
    settings: Mapping[str, Any],
    fragments: Mapping[str, str],
    reference: str,
    factory: bool = False,
    dictionary: bool = False,
) -> str:
    """The whole of what is pasted, to the loop that runs it.

    settings: those chosen, and the facts of the problem; reference: where the problem is from; factory: whether what
        is there makes the problem when called; dictionary: whether the problem is one, whose keys become attributes.
    """
    method = filled(entrant.code, settings, fragments)
    body = discipline.script.format_map({name: _text(value) for name, value in settings.items()} | {"method": method})
    tree = ast.parse(body)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound |= {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    free = names - bound - {discipline.problem, *dir(builtins)}
    lines = ["from types import SimpleNamespace", ""] if dictionary else []
    lines += [line for name, line in LIBRARIES.items() if name in free]
    ours = sorted(free - LIBRARIES.keys())
    if ours:
        lines += ["", f"from laureate.{discipline.area} import {', '.join(ours)}"]
    head = "\n".join([*lines, *_problem_line(discipline, reference, factory, dictionary)]).strip("\n")
    return re.sub("\n{3,}", "\n\n", head) + f"\n\n{body.strip()}\n"


def _problem_line(discipline: Discipline, reference: str, factory: bool, dictionary: bool) -> list[str]:
    where, _, name = reference.rpartition(":")
    if is_held(reference) or not reference:
        ours = discipline.problem
        made = [f"{ours} = SimpleNamespace(**{ours})"] if dictionary else []
        return ["", f"# {ours}: {discipline.kind}, yours", *made]
    module = Path(where).stem if is_file(reference) else where
    value = f"{name}()" if factory else name
    if dictionary or factory:
        value = f"SimpleNamespace(**{value})" if dictionary else value
        return [f"from {module} import {name}", "", f"{discipline.problem} = {value}"]
    given = name if name == discipline.problem else f"{name} as {discipline.problem}"
    return [f"from {module} import {given}"]


def _text(value: Any) -> str:
    return repr(value)
