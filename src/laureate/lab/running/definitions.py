"""What a reference such as ``"module:function"`` really uses, as a graph of definitions, without importing anything.

A definition is what binds a name at the top of a module: a function, a class, an assignment. From the referenced one,
names are followed to the definitions they stand for, through imports and re-exports, to the end. What a trial does not
name it does not depend on: a new sibling in an area, another paper or a new release leave its graph as it was.

Where names cannot be followed, more is taken rather than less: the whole module for ``from module import *``, for a
module that is used as a value (``getattr(module, name)``) and for a module named in a string; a module's own statements
that are no definitions as soon as anything of it is used; every module of the package for an import whose name is
computed. Of a user's file, and of its neighbours, everything counts.

The hash holds no module path, comment, docstring, layout or type of an argument, nor the wording of an exception or a
warning.
"""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import laureate
from laureate.lab.errors import UserError
from laureate.lab.running.references import is_file
from laureate.lab.running.source import EFFECTS, WHOLE, Import, Module, too_deep

__all__ = ["Program", "program", "source_files"]

PACKAGE = Path(laureate.__file__).parent


@dataclass(frozen=True)
class Program:
    """What references use.

    hash: of the definitions and of how they refer to each other.
    libraries: the roots of the modules outside that they use.
    definitions: ``(file, name)`` of each.
    """

    hash: str
    libraries: frozenset[str]
    definitions: frozenset[tuple[Path, str]]


@cache
def _read(path: Path, name: str, root: str, ours: bool, modified: tuple[int, int] | None) -> Module:
    """Parsed again when it was modified: a web page lives longer than a command."""
    try:
        return Module(path, name, root, ours)
    except RecursionError:
        raise too_deep(path) from None


class _Tree:
    """Finds and reads the modules of one package, and of the folder in which a user's file lies."""

    def __init__(self, package: Path):
        self.package = package
        self.modified: dict[Path, tuple[int, int] | None] = {}
        self._folder: Path | None = None
        self._modules: dict[tuple[str, bool], Module | None] = {}

    def start(self, reference: str) -> Module | None:
        """The module that a reference names; None where it is neither ours nor a file."""
        where = reference.rpartition(":")[0]
        if is_file(reference):
            self._folder = Path(where).parent
            return self.read(Path(where))
        return self.find(where)

    def find(self, name: str, importer: Module | None = None) -> Module | None:
        """The module of that name: ours, or a neighbour of the user's file that imports it."""
        key = name, importer is None or importer.ours
        if key not in self._modules:
            path = self._file(*key)
            self._modules[key] = self.read(path) if path else None
        return self._modules[key]

    def _file(self, name: str, ours: bool) -> Path | None:
        root, *rest = name.split(".")
        if not all(part.isidentifier() for part in (root, *rest)):
            return None
        if root == self.package.name:
            base = self.package.joinpath(*rest)
        elif self._folder and not ours:
            base = self._folder.joinpath(root, *rest)
        else:
            return None
        return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)

    def read(self, path: Path) -> Module:
        """The module in a file."""
        self.modified[path] = _modified(path)
        ours = path.is_relative_to(self.package)
        top = self.package.parent if ours or self._folder is None else self._folder
        *parents, last = path.relative_to(top).with_suffix("").parts
        name = ".".join(parents if last == "__init__" else [*parents, last])
        return _read(path, name, self.package.name, ours, self.modified[path])

    def closure(self, modules: Iterable[Module]) -> dict[Path, Module]:
        """These modules and all that importing them executes, to the end."""
        found: dict[Path, Module] = {}
        open_ends = list(modules)
        while open_ends:
            module = open_ends.pop()
            if module.path not in found:
                found[module.path] = module
                open_ends.extend(filter(None, (self.find(name, module) for name in module.executed)))
        return found


class _Graph:
    """Vertices numbered in the order in which they are met, which depends on the sources alone."""

    def __init__(self, tree: _Tree):
        self.tree = tree
        self.numbers: dict[tuple[Path, str], int] = {}
        self.open_ends: deque[tuple[Module, str]] = deque()
        self.passed: dict[Path, Module] = {}
        self.libraries: set[str] = set()
        self.digest = hashlib.sha256()
        self.any_module = False

    def root(self, reference: str) -> None:
        """Begin at ``module:name`` or ``FILE.py:name``."""
        where, _, name = reference.rpartition(":")
        module = self.tree.start(reference)
        self._record("root", name)
        if module is None:
            self._record("outside", where)
            self.libraries.add(where.partition(".")[0])
            return
        self.passed[module.path] = module
        self._record(*(list(self._targets(module, (name,), {})) or [self._vertex(module, WHOLE)]))

    def finish(self) -> None:
        """Follow every name, then what the modules on the way do when they are imported."""
        while True:
            while self.open_ends:
                self._visit(*self.open_ends.popleft())
            added = [key for key in self._besides() if (key[0].path, key[1]) not in self.numbers]
            for module, name in sorted(added, key=lambda key: (key[0].part(key[1]).digest, str(key[0].path))):
                self._record(self._vertex(module, name))
            if not added:
                return

    def _besides(self) -> list[tuple[Module, str]]:
        """The vertices that no name leads to."""
        if self.any_module:
            return [(self.tree.read(path), WHOLE) for path in sorted(self.tree.package.rglob("*.py"))]
        return [
            (module, EFFECTS)
            for path, module in self.tree.closure(self.passed.values()).items()
            if (module.effects if path in self.passed else module.outward) and (path, WHOLE) not in self.numbers
        ]

    def _record(self, *words: str) -> None:
        self.digest.update(("\0".join(words) + "\n").encode("utf-8", "backslashreplace"))

    def _vertex(self, module: Module, name: str) -> str:
        key = module.path, name if module.ours else WHOLE
        if key not in self.numbers:
            self.numbers[key] = len(self.numbers)
            self.open_ends.append((module, key[1]))
        return str(self.numbers[key])

    def _visit(self, module: Module, name: str) -> None:
        part = module.part(name)
        self.passed[module.path] = module
        self.any_module |= part.any_module
        names = dict(part.names)
        if name == WHOLE and module.ours:
            names |= {(bound,): None for bound in sorted(module.imports)}
        self._record(part.digest)
        for chain in names:
            if targets := list(self._targets(module, chain, part.imports)):
                self._record(*chain, *targets)
        for star in module.stars:
            self._record("*", *self._through(module, Import(star.module), ()))
        for text in part.strings:
            named, path = None, text
            while "." in path and named is None:
                named, path = self.tree.find(path, module), path.rpartition(".")[0]
            self._record("text", self._vertex(named, WHOLE) if named else text)
        if part.any_name:
            self._record("any name", self._vertex(module, WHOLE))

    def _targets(self, module: Module, chain: tuple[str, ...], nearer: dict[str, list[Import]]) -> Iterator[str]:
        """What a name with its attributes stands for in a module."""
        name, *rest = chain
        for imported in (*nearer.get(name, ()), *module.imports.get(name, ())):
            yield from self._through(module, imported, tuple(rest))
        if name in module.defined:
            yield self._vertex(module, name)

    def _through(self, module: Module, imported: Import, chain: tuple[str, ...]) -> Iterator[str]:
        """What an imported name with its attributes stands for: a definition, a whole module, a library."""
        current = self.tree.find(imported.module, module)
        if current is None:
            self.libraries.add(imported.module.partition(".")[0])
            yield "outside " + ".".join(filter(None, (imported.module, imported.name)))
            return
        names = [*filter(None, (imported.name,)), *chain]
        self.passed[current.path] = current
        # A package that imports from itself binds a name to what lies below it, or to what it defines.
        itself = current.path == module.path
        while names and (itself or not current.binds(names[0])):
            below = self.tree.find(f"{current.name}.{names[0]}", current)
            if below is None:
                break
            current, itself = below, False
            self.passed[below.path] = below
            names.pop(0)
        if itself and names:
            yield self._vertex(current, names[0] if names[0] in current.defined else WHOLE)
            return
        if names and current.binds(names[0]):
            yield from self._targets(current, tuple(names), {})
            return
        yield self._vertex(current, WHOLE)
        if not chain and imported.loaded and (loaded := self.tree.find(imported.loaded, module)):
            yield self._vertex(loaded, WHOLE)


_programs: dict[tuple[tuple[str, ...], Path], tuple[dict[Path, tuple[int, int] | None], Program]] = {}


def program(references: tuple[str, ...], package: Path = PACKAGE) -> Program:
    """What the references use, from the sources of the package and of the user's files as they are now."""
    known = _programs.get((references, package))
    if known and all(_modified(path) == modified for path, modified in known[0].items()):
        return known[1]
    tree = _Tree(package)
    graph = _Graph(tree)
    try:
        for reference in references:
            if reference:
                graph.root(reference)
        graph.finish()
    except RecursionError:
        theirs = next(filter(is_file, references), references[0])
        raise UserError(f"The imports of {theirs} go round in a circle.") from None
    found = Program(graph.digest.hexdigest(), frozenset(graph.libraries), frozenset(graph.numbers))
    _programs[references, package] = (tree.modified, found)
    return found


def _modified(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def source_files(references: tuple[str, ...]) -> set[Path]:
    """The files of Laureate and of the user's folder that the referenced modules import, followed to the end."""
    tree = _Tree(PACKAGE)
    return set(tree.closure(filter(None, (tree.start(reference) for reference in references if reference))))
