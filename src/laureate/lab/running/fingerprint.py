"""What a cell's result depends on, as one hash: its configuration, the sources it imports, the versions beneath.

The sources are followed by reading import statements, so nothing is loaded: a fully cached run never starts jax.
"""

import ast
import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import laureate
from laureate.lab.errors import UserError
from laureate.lab.running.references import is_file, parsed

__all__ = ["fingerprint", "source_files", "versions"]

# Raise it when the worker changes how a trial is called or compiled (keys, precision, batching): old cells no longer
# count then.
PROTOCOL = 3
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax", "blackjax", "scikit-learn")
_PACKAGE = Path(laureate.__file__).parent


def fingerprint(configuration: Mapping[str, Any], references: tuple[str, ...]) -> str:
    """The hash of a configuration (JSON values), of all sources behind the references, and of the versions."""
    depends_on = {
        "protocol": PROTOCOL,
        "configuration": configuration,
        "sources": _sources_hash(references),
        "versions": versions(),
    }
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions that can move a number."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "laureate": laureate.__version__}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _sources_hash(references: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for path in sorted(source_files(references)):
        # A user's file may lie anywhere: its place is not part of the result, its name tells it from its neighbours.
        name = path.relative_to(_PACKAGE).as_posix() if path.is_relative_to(_PACKAGE) else path.name
        digest.update(f"{name}\0{_read(path, path.stat().st_mtime_ns).meaning}\0".encode())
    return digest.hexdigest()


def source_files(references: tuple[str, ...]) -> set[Path]:
    """The files of Laureate and of the user's folder that the referenced modules import, followed to the end."""
    found: set[Path] = set()
    open_ends = [_file_of(reference.rpartition(":")[0], is_file(reference)) for reference in references if reference]
    while open_ends:
        path = open_ends.pop()
        if path is None or path in found:
            continue
        found.add(path)
        open_ends.extend(_read(path, path.stat().st_mtime_ns).imports)
    return found


def _file_of(module: str, is_path: bool = False) -> Path | None:
    if is_path:
        return Path(module)
    root, *rest = module.split(".")
    if root != "laureate":
        return None
    base = _PACKAGE.joinpath(*rest)
    if base.with_suffix(".py").is_file():
        return base.with_suffix(".py")
    return base / "__init__.py" if (base / "__init__.py").is_file() else None


class _Source(NamedTuple):
    imports: tuple[Path | None, ...]
    meaning: str


@cache
def _read(path: Path, modified: int) -> _Source:
    """One file parsed once, and again when it was modified (a web page lives longer than a command)."""
    tree = parsed(path)
    imports = tuple(_imports(tree, path))
    try:
        meaning = _meaning(tree)
    except RecursionError:
        raise UserError(f"{path.name} is nested too deep to be read.", f"It lies in {path.parent}.") from None
    return _Source(imports, hashlib.sha256(meaning.encode("utf-8", "backslashreplace")).hexdigest())


def _imports(tree: ast.Module, path: Path) -> Iterator[Path | None]:
    """Files behind the import statements of one file, wherever in it they stand."""
    inside = path.is_relative_to(_PACKAGE)
    package = ["laureate", *path.relative_to(_PACKAGE).parent.parts] if inside else []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            # `from a import b`: b may be a module itself.
            modules = [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            yield _file_of(module)
            if not inside and (neighbour := path.parent / f"{module.partition('.')[0]}.py").is_file():
                yield neighbour


def _meaning(tree: ast.Module) -> str:
    """The program without comments, layout and docstrings: rewording one does not throw results away."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
            and isinstance(node.body[0].value, ast.Constant)
            and isinstance(node.body[0].value.value, str)
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
