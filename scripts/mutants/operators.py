"""Small faults of the kind people make, from the syntax tree: each is one replacement of text in one file.

A mutant is made only where behaviour can change: not in docstrings, annotations, ``__all__``, the texts of errors and
warnings, nor in arguments that only a message reads. ``mutants_of`` gives all of a file, in the order of the text.
"""

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["OPERATORS", "Mutant", "is_sound", "mutants_of", "sample"]

Replacement = tuple[ast.AST, str]  # a node, and the text to stand in its place


@dataclass(frozen=True, order=True)
class Mutant:
    """``new`` in place of ``old``, which stands at ``start`` in the text of ``path``; ``line`` counts from 1."""

    path: str
    start: int
    operator: str
    new: str
    old: str
    line: int
    last_line: int

    def apply(self, source: str) -> str:
        """The source with the fault."""
        return source[: self.start] + self.new + source[self.start + len(self.old) :]


class Text:
    """A source with its offsets: the syntax tree counts bytes in lines."""

    def __init__(self, source: str):
        self.source, self.lines = source, source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends."""
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        """A node's own text, in parentheses where it would fall apart elsewhere."""
        start, end = self.span(node)
        text = self.source[start:end]
        simple = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant | ast.Tuple | ast.List | ast.Dict
        return text if isinstance(node, simple) else f"({text})"

    def _offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())


def name_of(node: ast.AST) -> str:
    """The last part of a dotted name: ``where`` of ``jnp.where``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def whole(node: ast.AST) -> int | None:
    """The value of an integer constant, also a negative one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and (value := whole(node.operand)) is not None:
        return -value
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)
    return node.value if is_number else None  # type: ignore[union-attr]


def is_text(node: ast.AST) -> bool:
    """Whether an expression is a string for sure."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def index_shifted(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``x[0]`` to ``x[1]``, ``x[1:]`` to ``x[2:]``, ``x[:n]`` to ``x[:n - 1]``, ``range(n)`` to ``range(n - 1)``."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if (value := whole(part)) is not None:
                yield part, str(value - 1 if value < 0 else value + 1)
            for bound in (part.lower, part.upper) if isinstance(part, ast.Slice) else ():
                if bound is not None:
                    value = whole(bound)
                    yield bound, str(value + 1) if value is not None else f"{text.of(bound)} - 1"
    if isinstance(node, ast.Call) and name_of(node.func) in ("range", "arange") and node.args and not node.keywords:
        last = node.args[min(1, len(node.args) - 1)]
        yield last, f"{text.of(last)} - 1"


REDUCED = {"sum", "mean", "max", "min", "argmax", "argmin", "any", "all", "prod", "cumsum", "var", "std", "median"}
REDUCED |= {"concatenate", "stack", "take", "sort", "argsort", "flip", "expand_dims"}
LIBRARIES = {"np", "jnp", "numpy", "lax"}


def axis_changed(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``axis=0`` to ``axis=1``, ``axis=-1`` to ``axis=0``, ``axis=(0, 1)`` to ``axis=(0,)``; the same by place."""
    axis: ast.AST | None = None
    if isinstance(node, ast.keyword) and node.arg in ("axis", "in_axes", "out_axes"):
        axis = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REDUCED:
        axis = next(iter(node.args[name_of(node.func.value) in LIBRARIES :]), None)
    if axis is not None and (value := whole(axis)) is not None:
        yield axis, str({0: 1}.get(value, 0))
    if isinstance(axis, ast.Tuple) and len(axis.elts) > 1 and all(whole(one) is not None for one in axis.elts):
        yield axis, f"({text.of(axis.elts[0])},)"


def factor_dropped(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``a * b`` to ``a``, ``a / b`` to ``a``, ``x**2`` and ``sqrt(x)`` to ``x``; a constant factor goes first."""
    factors = ast.Mult | ast.Div | ast.Pow | ast.FloorDiv
    if isinstance(node, ast.BinOp) and isinstance(node.op, factors) and not is_text(node):
        number = isinstance(node.left, ast.Constant) and isinstance(node.op, ast.Mult)
        yield node, text.of(node.right if number else node.left)
    if isinstance(node, ast.Call) and name_of(node.func) == "sqrt" and len(node.args) == 1:
        yield node, text.of(node.args[0])


TURNED: dict[type, tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">="),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<="),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}


def comparison_turned(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``<`` to ``<=`` or ``>``, ``==`` to ``!=``; ``not a`` to ``a``, ``a and b`` to ``a``."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in TURNED[type(node.ops[0])]:
            yield node, f"{text.of(node.left)} {other} {text.of(node.comparators[0])}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, text.of(node.operand)
    if isinstance(node, ast.BoolOp):
        yield node, text.of(node.values[0])


SYMMETRIC = {"maximum", "minimum", "max", "min", "add", "multiply", "isinstance", "hasattr", "getattr", "zip", "where"}
SYMMETRIC |= {"apply_updates", "allclose", "array_equal", "stack", "require", "range", "arange", "print", "join"}


TYPES = {"bool", "str", "bytes", "complex", "dtype", "uint8", "uint32"}


def arguments_swapped(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``f(a, b)`` to ``f(b, a)`` where both are names."""
    if isinstance(node, ast.Call) and name_of(node.func) not in SYMMETRIC and len(node.args) >= 2:
        first, second = node.args[-2:]
        plain = ast.Name | ast.Attribute | ast.Subscript
        both = isinstance(first, plain) and isinstance(second, plain) and text.of(first) != text.of(second)
        # A type in place of a value fails at once, whatever the tests are.
        if both and not any(name_of(one) in TYPES or name_of(one).startswith(("float", "int")) for one in node.args):
            between = text.source[text.span(first)[1] : text.span(second)[0]]
            yield _Join(first, second), text.of(second) + between + text.of(first)


HARMLESS = {"strict", "encoding", "stacklevel", "check", "flush", "daemon", "compiler_options"}


def keyword_dropped(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``f(a, b=c)`` to ``f(a)``."""
    if isinstance(node, ast.Call) and name_of(node.func) != "field":
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in HARMLESS:
                continue
            start, end = text.span(keyword)
            after = text.source[end:]
            if (comma := len(after) - len(after.lstrip())) < len(after) and after[comma] == ",":
                yield _Piece(keyword, start, end + comma + 1), ""
            else:
                before = text.source[:start].rstrip()
                begin = len(before) - 1 if before.endswith(",") else start
                yield _Piece(keyword, begin, end), ""


def stop_gradient_removed(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``stop_gradient(x)`` to ``x``; ``fixed = lax.stop_gradient`` to a function that changes nothing."""
    if isinstance(node, ast.Call) and name_of(node.func) == "stop_gradient" and len(node.args) == 1:
        yield node, text.of(node.args[0])
    for child in ast.iter_child_nodes(node):
        called = isinstance(node, ast.Call) and child is node.func
        if not called and isinstance(child, ast.expr) and text.of(child).endswith("lax.stop_gradient"):
            yield child, "(lambda x: x)"


def key_reused(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """A key that stands for another: of all parts, of the one after it, of the first or of what is folded in.

    ``split(key, n)`` to n times ``key``, ``a, b, c = split(key, 3)`` to a, a, c and to a, b, b; ``keys[way, level]`` to
    ``keys[0, level]`` and ``keys[way, 0]``; ``fold_in(key, i)`` to ``key``, ``fold_in(key, a * n + i)`` to
    ``fold_in(key, a + i)``, ``fold_in(key, a * n)`` and ``fold_in(key, i)``, and ``fold_in(key, 3)`` to
    ``fold_in(key, 0)``.
    """
    unpacked = dict(_unpacked(node.targets[0], node.value)) if isinstance(node, ast.Assign) else {}
    for call, number in unpacked.items():
        for part in range(1, number):
            order = [other - (other == part) for other in range(number)]
            yield call, f"{text.of(call)}[jax.numpy.array({order})]"
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and _splits(child) and child not in unpacked:
            number = text.of(child.args[1]) if len(child.args) > 1 else "2"
            yield child, f"jax.numpy.broadcast_to({text.of(child.args[0])}, {number})"
    if isinstance(node, ast.Subscript) and name_of(node.value).endswith("keys"):
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if not isinstance(part, ast.Slice) and whole(part) != 0:
                yield part, "0"
    if isinstance(node, ast.Call) and name_of(node.func) == "fold_in" and len(node.args) == 2:
        yield node, text.of(node.args[0])
        for part in ast.walk(node.args[1]):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Mult):
                kept = (part.left,) if isinstance(part.op, ast.Mult) else (part.left, part.right)
                yield from ((part, text.of(side)) for side in kept if not isinstance(side, ast.Constant))
        if whole(node.args[1]):
            yield node.args[1], "0"


def _unpacked(target: ast.AST, value: ast.AST) -> Iterator[tuple[ast.Call, int]]:
    """The calls of ``split`` whose parts are given names, and how many: ``a, b = split(key)``, also one of several."""
    if isinstance(value, ast.IfExp):
        yield from [*_unpacked(target, value.body), *_unpacked(target, value.orelse)]
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for pair in zip(target.elts, value.elts, strict=False):
            yield from _unpacked(*pair)
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Call) and _splits(value):
        starred = any(isinstance(one, ast.Starred) for one in target.elts)
        yield from () if starred else [(value, len(target.elts))]


def _splits(call: ast.Call) -> bool:
    return name_of(call.func) == "split" and name_of(getattr(call.func, "value", call)) in ("random", "jr")


MASKS = ("mask", "free", "valid", "done", "finite", "alive", "active", "kept", "inside", "held", "accept")


def mask_ignored(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``where(c, a, b)`` to ``a``; ``a & b`` to ``a``; ``x * mask`` to ``x``."""
    if isinstance(node, ast.Call) and name_of(node.func) == "where" and len(node.args) == 3 and not node.keywords:
        yield node, text.of(node.args[1])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield node, text.of(node.left)
        yield node, text.of(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for kept, mask in ((node.left, node.right), (node.right, node.left)):
            if any(word in text.of(mask) for word in MASKS):
                yield node, text.of(kept)


def branches_swapped(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``where(c, a, b)`` to ``where(c, b, a)``; the same for ``cond`` and for ``a if c else b``."""
    if isinstance(node, ast.Call) and name_of(node.func) in ("where", "cond", "select") and len(node.args) >= 3:
        first, second = node.args[1:3]
        between = text.source[text.span(first)[1] : text.span(second)[0]]
        yield _Join(first, second), text.of(second) + between + text.of(first)
    if isinstance(node, ast.IfExp):
        test = text.of(node.test)
        yield node, f"{text.of(node.orelse)} if {test} else {text.of(node.body)}"


def renamed(node: ast.AST, text: Text, pairs: dict[str, str]) -> Iterator[Replacement]:
    """A function called by another's name."""
    if isinstance(node, ast.Call) and (name := name_of(node.func)) in pairs:
        function = text.of(node.func)
        yield node.func, function[: len(function) - len(name)] + pairs[name]


def both_ways(pairs: dict[str, str]) -> dict[str, str]:
    """Each for the other."""
    return pairs | {value: key for key, value in pairs.items()}


EXTREMES = both_ways({"min": "max", "minimum": "maximum", "argmin": "argmax", "amin": "amax", "nanmin": "nanmax"})
EXTREMES |= both_ways({"floor": "ceil", "any": "all"})


def min_for_max(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``min`` for ``max``, ``floor`` for ``ceil``, ``any`` for ``all``, and back."""
    yield from renamed(node, text, EXTREMES)


def mean_for_sum(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``mean`` for ``sum`` and back; ``var`` for ``std``; only as ``a.sum`` or ``jnp.sum``, for Python has no mean."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from renamed(node, text, both_ways({"mean": "sum", "var": "std", "nanmean": "nansum", "psum": "pmean"}))


def state_not_updated(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``x += 1``, ``x = f(x)`` to ``pass``; ``x.at[i].set(v)``, ``x._replace(...)``, ``tree_at(f, x, v)`` to ``x``."""
    if isinstance(node, ast.AugAssign):
        yield node, "pass"
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        target = node.targets[0].id
        if any(isinstance(part, ast.Name) and part.id == target for part in ast.walk(node.value)):
            yield node, "pass"
    if isinstance(node, ast.Call) and name_of(node.func) in ("set", "add", "multiply") and ".at[" in text.of(node.func):
        place = node.func.value  # type: ignore[union-attr]
        if isinstance(place, ast.Subscript) and isinstance(place.value, ast.Attribute) and place.value.attr == "at":
            yield node, text.of(place.value.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.keywords:
        if node.func.attr == "_replace":
            yield node, text.of(node.func.value)
        elif node.func.attr == "replace" and name_of(node.func.value) == "dataclasses" and node.args:
            yield node, text.of(node.args[0])
    if isinstance(node, ast.Call) and name_of(node.func) == "tree_at" and len(node.args) > 1:
        yield node, text.of(node.args[1])


LOWERED = {"float64": "float32", "float32": "bfloat16", "int64": "int32"}


def dtype_lowered(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``jnp.float64`` to ``jnp.float32``, also as a word that is handed over."""
    if isinstance(node, ast.Attribute) and node.attr in LOWERED:
        yield node, f"{text.of(node.value)}.{LOWERED[node.attr]}"
    given = [*node.args, *(one.value for one in node.keywords)] if isinstance(node, ast.Call) else []
    for one in given:
        if isinstance(one, ast.Constant) and one.value in LOWERED:
            yield one, f'"{LOWERED[one.value]}"'


def escape_removed(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``escape(x)`` and ``quote(x)`` to ``x``."""
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        name = name_of(node.func).lower()
        if "escape" in name or "quote" in name:
            yield node, text.of(node.args[0])


def sign_changed(node: ast.AST, text: Text) -> Iterator[Replacement]:
    """``a + b`` to ``a - b`` and back; ``-a`` to ``a``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not is_text(node):
        other = "-" if isinstance(node.op, ast.Add) else "+"
        lists = (ast.List, ast.Tuple, ast.ListComp)
        if not isinstance(node.left, lists) and not isinstance(node.right, lists):
            yield node, f"{text.of(node.left)} {other} {text.of(node.right)}"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield node, text.of(node.operand)


OPERATORS: dict[str, Callable[[ast.AST, Text], Iterator[Replacement]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        key_reused, index_shifted, axis_changed, factor_dropped, comparison_turned, arguments_swapped, keyword_dropped,
        stop_gradient_removed, mask_ignored, branches_swapped, min_for_max, mean_for_sum, state_not_updated,
        dtype_lowered, escape_removed, sign_changed,
    )
}  # fmt: skip


class _Piece(ast.AST):
    """A stretch of text that is no node: the comma of a dropped keyword belongs to it."""

    def __init__(self, node: ast.AST, start: int, end: int):
        self.node, self.start, self.end = node, start, end


class _Join(ast.AST):
    """From the beginning of one node to the end of another."""

    def __init__(self, first: ast.AST, second: ast.AST):
        self.first, self.second = first, second


def mutants_of(path: Path, name: str = "") -> list[Mutant]:
    """All mutants of a file; ``name`` is how they call it. Some may say the same in other words: see ``is_sound``.

    What two operators make is the first one's: a factor dropped from what is folded into a key is a key reused.
    """
    source = path.read_text(encoding="utf-8")
    text, found = Text(source), {}
    for node in _behaviour(ast.parse(source)):
        for operator, make in OPERATORS.items():
            for target, new in make(node, text):
                start, end = _span(text, target)
                line, last = source.count("\n", 0, start) + 1, source.count("\n", 0, end) + 1
                mutant = Mutant(name or str(path), start, operator, new, source[start:end], line, last)
                found.setdefault((start, end, new), mutant)
    return sorted(found.values())


def is_sound(mutant: Mutant, source: str) -> bool:
    """Whether it is a program, and another one."""
    try:
        return ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def sample(
    mutants: list[Mutant], number: int, seed: int, sound: Callable[[Mutant], bool] = lambda mutant: True
) -> list[Mutant]:
    """``number`` of them, the same for the same seed: an operator by chance first, so that the rare ones occur."""
    draw, left = random.Random(seed), {}
    for mutant in sorted(mutants):
        left.setdefault(mutant.operator, []).append(mutant)
    chosen = []
    while left and len(chosen) < number:
        operator = draw.choice(sorted(left))
        mutant = left[operator].pop(draw.randrange(len(left[operator])))
        if sound(mutant):
            chosen.append(mutant)
        left = {name: rest for name, rest in left.items() if rest}
    return chosen


def _span(text: Text, target: ast.AST) -> tuple[int, int]:
    if isinstance(target, _Piece):
        return target.start, target.end
    if isinstance(target, _Join):
        return text.span(target.first)[0], text.span(target.second)[1]
    return text.span(target)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below that decide what a program does."""
    for child in ast.iter_child_nodes(node):
        yield from _visit(child)


def _visit(node: ast.AST) -> Iterator[ast.AST]:
    if _is_words(node):
        return
    if isinstance(node, ast.Call) and name_of(node.func) == "require":
        # Of require(owner, field, rule, value, holds, remedy) only the value and the condition are no words.
        parts: list[ast.AST] = list(node.args[3:5])
    elif isinstance(node, ast.AnnAssign):
        parts = [node.value] if node.value is not None else []
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = [default for default in node.args.kw_defaults if default is not None]
        parts = [*node.decorator_list, *node.args.defaults, *defaults, *node.body]
    else:
        yield node
        yield from _behaviour(node)
        return
    for part in parts:
        yield from _visit(part)


def _is_words(node: ast.AST) -> bool:
    """Errors, warnings, docstrings, imports, ``__all__``, and what only a type checker reads."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and name_of(node.value.func) == "warn":
        return True
    if isinstance(node, ast.If) and name_of(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.Assign) and any(name_of(target) == "__all__" for target in node.targets)
