"""One source file: what each name at its top is bound to, as text without layout and with the names it uses in turn."""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laureate.lab.errors import UserError
from laureate.lab.running.references import parsed

__all__ = ["EFFECTS", "WHOLE", "Import", "Module", "Part", "too_deep"]

# Names whose use cannot be seen by reading: of other modules, and of names in the same module.
ANY_MODULE = {"import_module", "__import__", "__subclasses__", "__init_subclass__"}
ANY_NAME = {"eval", "exec", "globals"}
# The two parts of a module besides its definitions.
WHOLE, EFFECTS = "whole module", "effects"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_BLOCKS = (ast.If, ast.Try, ast.TryStar, ast.For, ast.While, ast.With, ast.Match)
_LAYOUT = {"ctx", "type_comment", "kind"}


@dataclass(frozen=True)
class Import:
    """A name bound by an import: ``from module import name``, or ``import module`` without a name.

    loaded: the ``a.b.c`` of ``import a.b.c``, which binds ``a`` alone.
    """

    module: str
    name: str = ""
    loaded: str = ""


@dataclass
class Part:
    """Some statements as text, with the names they use in the order of their appearance."""

    words: list[str] = field(default_factory=list)
    names: dict[tuple[str, ...], None] = field(default_factory=dict)
    imports: dict[str, list[Import]] = field(default_factory=dict)
    strings: dict[str, None] = field(default_factory=dict)
    any_module: bool = False
    any_name: bool = False

    @property
    def digest(self) -> str:
        """The hash of the text."""
        return hashlib.sha256("\0".join(self.words).encode("utf-8", "backslashreplace")).hexdigest()


class _Writer:
    """Writes statements into a part."""

    def __init__(self, package: str, root: str):
        self.part = Part()
        self._package = package
        # The package's modules in a string: "module:name", or a program for another process.
        self._path = re.compile(rf"\b{re.escape(root)}(?:\.\w+)+")
        self._locals: list[set[str]] = []
        self._in_class = self._in_message = False

    def write(self, node: Any) -> None:
        """Add a node with all below it."""
        match node:
            case list():
                self.part.words.append("[")
                for each in node:
                    if not _is_text(each):
                        self.write(each)
                self.part.words.append("]")
            case ast.Import() | ast.ImportFrom():
                # Where a name comes from is told by what it refers to, not by the path of a module.
                self.part.words.append("import")
                for bound, imported in imports_of(node, self._package):
                    self.part.words.append(bound)
                    self.part.imports.setdefault(bound, []).append(imported)
            case ast.Name():
                self._use((node.id,))
            case ast.Attribute() if chain := _chain(node):
                self._use(chain)
            case ast.Raise() | ast.Expr(value=ast.Call()) if _is_message(node):
                # That it is raised, when and as what, decides a result; how it is worded does not.
                within, self._in_message = self._in_message, True
                self._fields(node)
                self._in_message = within
            case ast.JoinedStr() | ast.Constant(value=str()) if self._in_message:
                self.part.words.append("text")
            case ast.Constant():
                self._constant(node.value)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._function(node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                # Only the first sequence is looked up outside.
                first = node.generators[0]
                self.write(first.iter)
                with self._scope(_stored(generator.target for generator in node.generators)):
                    self._fields(node, but={"generators"})
                    self._fields(first, but={"iter"})
                    self.write(node.generators[1:])
            case ast.AnnAssign() if self._locals and not self._in_class:
                self._fields(node, but={"annotation"})
            case ast.ClassDef():
                # Its fields are what their annotations say, also in a function.
                within, self._in_class = self._in_class, True
                self._fields(node)
                self._in_class = within
            case ast.AST():
                self._fields(node)
            case _:
                self.part.words.append(repr(node))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """What stands before the body is looked up outside. Types of arguments are left out, unless for a decorator."""
        arguments = list(_arguments(node.args))
        if isinstance(node, ast.Lambda):
            before = {"body"}
        else:
            before = {"body"} if node.decorator_list else {"body", "returns"}
            self.part.any_module |= node.name in ANY_MODULE
        if not getattr(node, "decorator_list", ()):
            for argument in arguments:
                argument.annotation = None
        self._fields(node, but=before)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        with self._scope({argument.arg for argument in arguments} | _bound(body)):
            within, self._in_class = self._in_class, False
            self.write(body)
            self._in_class = within

    @contextmanager
    def _scope(self, names: set[str]) -> Iterator[None]:
        """Within it these names are not the module's."""
        self._locals.append(names)
        yield
        self._locals.pop()

    def _fields(self, node: ast.AST, but: Iterable[str] = ()) -> None:
        self.part.words.append(type(node).__name__)
        for name in node._fields:
            if name not in _LAYOUT and name not in but:
                self.part.words.append(name)
                self.write(getattr(node, name, None))

    def _use(self, chain: tuple[str, ...]) -> None:
        self.part.words.append(".".join(chain))
        self.part.any_module |= bool(ANY_MODULE & set(chain))
        self.part.any_name |= chain[0] in ANY_NAME
        if not any(chain[0] in names for names in self._locals):
            self.part.names.setdefault(chain)

    def _constant(self, value: Any) -> None:
        if isinstance(value, str):
            self.part.strings |= dict.fromkeys(self._path.findall(value))
            value = self._path.sub("module", value)
        # A number of many digits cannot be shown in decimals.
        self.part.words.append(hex(value) if type(value) is int else repr(value))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that are assigned in these nodes."""
    every = (below for node in nodes for below in ast.walk(node))
    return {node.id for node in every if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _bound(body: Iterable[ast.AST]) -> set[str]:
    """The names that are local to a function with that body, but for those it imports."""
    bound: set[str] = set()
    elsewhere: set[str] = set()
    open_ends = list(body)
    while open_ends:
        node = open_ends.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
                continue
            case ast.Lambda():
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                # Of what is bound in there, only `:=` binds out here.
                bound |= _stored(n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
                continue
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere |= set(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                elsewhere |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
        open_ends.extend(ast.iter_child_nodes(node))
    return bound - elsewhere


def _is_text(node: Any) -> bool:
    """A docstring, or any other string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_message(node: ast.Raise | ast.Expr) -> bool:
    """An exception that is raised, or a call of ``warnings.warn``."""
    return isinstance(node, ast.Raise) or _chain(node.value.func)[-1:] == ("warn",)  # type: ignore[attr-defined]


def _arguments(node: ast.arguments) -> Iterator[ast.arg]:
    yield from (*node.posonlyargs, *node.args, *node.kwonlyargs)
    yield from filter(None, (node.vararg, node.kwarg))


def _chain(node: ast.expr) -> tuple[str, ...]:
    """``("a", "b", "c")`` of ``a.b.c``; empty where it does not begin with a name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()


def imports_of(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, Import]]:
    """What an import statement in a module of the package binds."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, Import(alias.name)
            else:
                root = alias.name.partition(".")[0]
                yield root, Import(root, loaded=alias.name)
        return
    base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    origin = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        yield alias.asname or alias.name, Import(origin, alias.name)


class Module:
    """One source file, parsed once.

    ours: whether it belongs to the package, and is not a user's.
    defined: the statements that bind or change a name at the top of the module.
    imports: what the names that are imported there stand for.
    effects: the statements that are no definitions.
    outward: whether one of those may change something outside of the module.
    executed: the names of all modules, and perhaps of other things, that importing this one and calling it executes.
    """

    def __init__(self, path: Path, name: str, root: str, ours: bool):
        self.path = path
        self.name = name
        self.ours = ours
        self._root = root
        self.package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self._body = [s for s in parsed(path).body if not _is_text(s) and not _is_not_run(s)]
        self.defined: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, list[Import]] = {}
        self.stars: list[Import] = []
        self.effects: list[ast.stmt] = []
        self._parts: dict[str, Part] = {}
        for statement in self._body:
            self._bind(statement)
        for statement in self._body:
            self._attach(statement)
        self.outward = any(_reaches_out(node) for statement in self.effects for node in ast.walk(statement))
        executed = {name}
        for statement in _statements(self._body):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for _, imported in imports_of(statement, self.package):
                    executed |= {imported.loaded or imported.module, f"{imported.module}.{imported.name}"}
        # A module's packages are executed before it.
        executed |= {name[:end] for name in executed for end, letter in enumerate(name) if letter == "."}
        self.executed = sorted(executed)

    def _bind(self, statement: ast.stmt) -> None:
        """Note what a statement binds, in its blocks too."""
        for node in _statements([statement]) if isinstance(statement, _BLOCKS) else (statement,):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for bound, imported in imports_of(node, self.package):
                    if bound == "*":
                        self.stars.append(imported)
                    else:
                        self.imports.setdefault(bound, []).append(imported)
                continue
            for name in {node.name} if isinstance(node, _DEFINITIONS) else _stored([node]):
                if statement not in self.defined.setdefault(name, []):
                    self.defined[name].append(statement)

    def _attach(self, statement: ast.stmt) -> None:
        """A statement that changes something: a part of the definition it changes, or else an effect of the module."""
        changed: list[ast.expr] = []
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Pass():
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                changed = [d.func if isinstance(d, ast.Call) else d for d in statement.decorator_list]
                changed = [d for d in changed if (root := _chain(d)[:1]) and self._is_ours(root[0])]
            case ast.Expr(value=ast.Call(func=ast.Attribute() as function)):
                changed = [function]
            case ast.Assign(targets=targets):
                changed = [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                changed = [target] if isinstance(target, ast.Attribute | ast.Subscript) else []
            case _:
                self.effects.append(statement)
        for target in changed:
            while isinstance(target, ast.Attribute | ast.Subscript):
                target = target.value
            if isinstance(target, ast.Name) and target.id in self.defined:
                self.defined[target.id].append(statement)
            else:
                self.effects.append(statement)

    def _is_ours(self, name: str) -> bool:
        """Whether the name may be defined in this package, and not in a library."""
        imported = self.imports.get(name, ())
        return name in self.defined or any(each.module.partition(".")[0] == self._root for each in imported)

    def binds(self, name: str) -> bool:
        """Whether the name stands for something at the top of the module."""
        return name in self.defined or name in self.imports

    def part(self, name: str) -> Part:
        """The definition of that name, or all effects, or the whole."""
        if name not in self._parts:
            # Imports at the top bind names and no more; those are followed.
            whole = [s for s in self._body if not isinstance(s, ast.Import | ast.ImportFrom)]
            body = whole if name == WHOLE else self.effects if name == EFFECTS else self.defined[name]
            writer = _Writer(self.package, self._root)
            try:
                writer.write(body)
            except RecursionError:
                raise too_deep(self.path) from None
            self._parts[name] = writer.part
        return self._parts[name]


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """All statements, with those in blocks, functions and classes."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(below := getattr(node, name, None), list):
                yield from _statements(below)


def _is_not_run(statement: ast.stmt) -> bool:
    """``if TYPE_CHECKING:`` and ``if __name__ == "__main__":``."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.unparse(statement.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")


def _reaches_out(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call()):
            return True
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
        case ast.AugAssign(target=target):
            return isinstance(target, ast.Attribute | ast.Subscript)
    return False


def too_deep(path: Path) -> UserError:
    """The error for a file that Python's own limits keep from being read."""
    return UserError(f"{path.name} is nested too deep to be read.", f"It lies in {path.parent}.")
