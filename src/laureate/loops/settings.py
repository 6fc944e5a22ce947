"""What settings a run was made with, as text: one line a field, so that a difference can be named."""

import copyreg
import dataclasses
import functools
import hashlib
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["describe"]

SHORT = 16  # arrays of so many numbers are written out; of longer ones their digest
PLAIN = re.compile(r"(?!-?\d+$)[^.\[\]]+")  # a word that as part of a path is like no number and no path
LIBRARIES = sys.stdlib_module_names | {"laureate"}
INSTALLED = {"site-packages", "dist-packages"}
WRITTEN = "<string>"  # the file of the functions that dataclasses write
Constant = bool | int | float | complex | str | bytes | tuple | jax.Array | np.ndarray


def describe(value: Any, name: str = "") -> dict[str, str]:
    """Every field of a nested value as ``{path: text}``, the same in every process.

    Modules and other objects by their fields, functions by name, code, defaults and what they close over, partial ones
    by their function and arguments, arrays by dtype, shape and content, typed keys by their generator too; what has no
    fields (slots, ranges, paths, dates) by what a copy is made of. Of classes the name, and of those that no library
    brings, this one or another, the code of their functions as well.

    >>> describe({"rate": 0.1, "sizes": (2, 3)}, "net")
    {'net.rate': '0.1', 'net.sizes[0]': '2', 'net.sizes[1]': '3'}
    """
    found: dict[str, str] = {}
    _walk(value, name, found, set())
    return found


def _walk(value: Any, name: str, found: dict[str, str], above: set[int]) -> None:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.dtype | type):
        found[name] = repr(value)
    elif isinstance(value, jax.Array | np.ndarray | np.generic):
        found[name] = _array(value)
    elif id(value) in above:
        found[name] = "(itself)"
    else:
        above = above | {id(value)}
        kind, parts = _parts(value)
        if kind or not parts:
            found[name] = kind or f"{type(value).__qualname__}()"
        for part, inner in parts:
            _walk(inner, f"{name}{part}".lstrip("."), found, above)


def _parts(value: Any) -> tuple[str, list[tuple[str, Any]]]:
    """What it is, where that is not told by its parts, and its parts."""
    if isinstance(value, dict):
        return "", [(_key(key), inner) for key, inner in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = [(f".{field}", getattr(value, field)) for field in value._fields]  # type: ignore[attr-defined]
        return "", fields + (_functions(type(value)) if callable(value) else [])
    if isinstance(value, list | tuple):
        return "", [(f"[{i}]", inner) for i, inner in enumerate(value)]
    if dataclasses.is_dataclass(value):
        fields = [(f".{f.name}", getattr(value, f.name, None)) for f in dataclasses.fields(value)]
        return f"{type(value).__module__}.{type(value).__qualname__}", fields + _functions(type(value))
    if isinstance(value, types.ModuleType):  # that a function has imported where it was made
        return value.__name__, []
    if isinstance(value, types.MethodType):
        return value.__func__.__qualname__, [(".self", value.__self__)]
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        inner = [(f".{name}", cell.cell_contents) for name, cell in cells]
        inner += [(f".default{i}", default) for i, default in enumerate(value.__defaults__ or ())]
        inner += [(f".{name}=", default) for name, default in sorted((value.__kwdefaults__ or {}).items())]
        return f"{value.__module__}.{value.__qualname__} {_code(value.__code__)}", inner
    if isinstance(value, functools.partial):
        arguments = [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
        return type(value).__qualname__, arguments
    if isinstance(value, set | frozenset):
        members = sorted(str(describe(member)) for member in value)
        return f"{type(value).__qualname__} {members}", []
    if hasattr(value, "__wrapped__"):
        return type(value).__qualname__, [("", value.__wrapped__)]
    kind = f"{type(value).__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    functions = _functions(type(value))
    if fields := getattr(value, "__dict__", None):
        return kind, [(f".{name}", inner) for name, inner in fields.items()] + functions
    try:  # what copying it would take: slots, the ends of a range, the parts of a path
        reduce = copyreg.dispatch_table.get(type(value))
        made = reduce(value) if reduce else value.__reduce_ex__(2)
    except Exception:  # what cannot be copied, as a lock, has no settings
        return kind, functions
    return (f"{kind} {made}", []) if isinstance(made, str) else (kind, [(".made", made[1:3]), *functions])


def _key(key: Any) -> str:
    """A key of a dictionary as part of a path: 1 is not "1", and no key is a path."""
    plain = PLAIN.fullmatch(key) if isinstance(key, str) else type(key) is int
    return f".{key}" if plain else f"[{key!r}]"


def _functions(kind: type) -> list[tuple[str, Any]]:
    """The functions and constants of a class that is one's own, and of what it inherits from.

    A library's classes change with its releases, mostly in what decides no result: a run shall go on after one.
    """
    found = []
    for base in filter(_own, kind.__mro__):
        fields = {field.name for field in dataclasses.fields(base)} if dataclasses.is_dataclass(base) else set()
        for part, value in vars(base).items():
            value = inspect.unwrap(getattr(value, "fget", getattr(value, "__func__", value)))
            constant = isinstance(value, Constant) and part not in fields and not part.startswith("__")
            if constant or (isinstance(value, types.FunctionType) and value.__code__.co_filename != WRITTEN):
                found.append((f".{base.__name__}.{part}", value))
    return found


def _own(kind: type) -> bool:
    """Whether neither Python nor anything that was installed brings it."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return kind.__module__.partition(".")[0] not in LIBRARIES and INSTALLED.isdisjoint(Path(file).parts)


def _code(code: types.CodeType) -> str:
    digest = hashlib.sha256(code.co_code)
    for constant in code.co_consts:
        digest.update(_constant(constant).encode())
    digest.update(repr(code.co_names).encode())
    return digest.hexdigest()[:12]


def _constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return _code(value)
    if isinstance(value, frozenset):  # of ``x in {"a", "b"}``: its order is another in every process
        return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
    return repr(value)


def _array(value: Any) -> str:
    kind = ""
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        kind, value = f"key<{jax.random.key_impl(value)}> ", jax.random.key_data(value)
    array = np.asarray(value)
    if 0 < array.size <= SHORT:  # of none at all the shape is needed
        return f"{kind}{array.tolist()} {array.dtype}"
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]
    return f"{kind}{array.dtype}{list(array.shape)} {digest}"
