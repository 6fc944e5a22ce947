"""Names of code, ``"module:attribute"`` or ``"FILE.py:attribute"``: checked without importing, loaded in the worker."""

import ast
import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import CodeType
from typing import Any

from laureate.lab.errors import UserError

__all__ = ["bindings", "check_file", "is_file", "load", "parsed"]


def is_file(reference: str) -> bool:
    """Whether the reference names a file (``mine.py:unroll``) rather than an importable module."""
    return reference.partition(":")[0].endswith(".py")


def check_file(reference: str, asked: str = "--problem") -> str:
    """The reference with its path made absolute; ``UserError`` where file or name is not there. Runs nothing.

    asked: who wants it, as the error says.
    """
    file, _, name = reference.rpartition(":")
    if not file.endswith(".py") or not name:
        raise UserError(f"{asked} must be FILE.py:NAME; got {reference!r}.", f"For example: {asked} mine.py:unroll")
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise UserError(f"{asked}: there is no file {file!r}.", f"Looked in {path.parent}.")
    try:
        tree = parsed(path)
    except OSError as error:
        raise UserError(f"{asked}: {file} cannot be read: {error.strerror}.") from None
    names = bindings(tree)
    if name not in names:
        public = ", ".join(sorted(n for n in names if not n.startswith("_"))) or "nothing"
        raise UserError(f"{asked}: {file} defines no {name!r}.", f"It defines: {public}.")
    return f"{path}:{name}"


def parsed(path: Path) -> ast.Module:
    """The syntax of a file; ``UserError`` where it is not Python."""
    try:
        return ast.parse(path.read_bytes(), filename=path.name)
    except SyntaxError as error:
        where = f" (line {error.lineno})" if error.lineno else ""
        raise UserError(f"{path.name} does not parse: {error.msg}{where}.", f"It lies in {path.parent}.") from None
    except ValueError as error:
        raise UserError(f"{path.name} does not parse: {error}.", f"It lies in {path.parent}.") from None
    except (RecursionError, MemoryError):
        raise UserError(f"{path.name} is nested too deep to be read.", f"It lies in {path.parent}.") from None


def bindings(tree: ast.Module) -> dict[str, int]:
    """The names at the top of a module, also in its blocks (``if``, ``try``), and the lines that first bind them."""
    found: dict[str, int] = {}
    ahead: list[ast.AST] = list(reversed(tree.body))
    while ahead:
        node = ahead.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.setdefault(node.name, node.lineno)
                continue
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    found.setdefault((alias.asname or alias.name).partition(".")[0], node.lineno)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.Name(ctx=ast.Store()):
                found.setdefault(node.id, node.lineno)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                found.setdefault(name, node.lineno)
        ahead.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


class _FromSource(importlib.machinery.SourceFileLoader):
    """Compiles a file whenever it is loaded: bytecode counts as new by the second and the size, and both may agree."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load(reference: str) -> Any:
    """Import the module, or execute the file, and return the attribute."""
    where, _, name = reference.rpartition(":")
    if not is_file(reference):
        return getattr(importlib.import_module(where), name)
    path = Path(where)
    module_name = f"laureate_user_{path.stem}"
    specification = importlib.util.spec_from_file_location(module_name, path, loader=_FromSource(module_name, where))
    if specification is None or specification.loader is None:
        raise UserError(f"--problem: {where} cannot be loaded as Python.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[module_name] = module
    # A user's file may import its neighbours, as it can when run as a script.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    specification.loader.exec_module(module)
    return getattr(module, name)
