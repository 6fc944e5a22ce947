"""Quantised models on disk: a short header in JSON, then the bytes of all arrays, one after the other."""

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.compression.arrays import QuantizedArray, is_quantized, is_stored
from laureate.compression.product import ProductQuantizer
from laureate.compression.quantized import package
from laureate.compression.quantizer import Quantizer
from laureate.compression.scalar import ScalarQuantizer

__all__ = ["load", "save"]

MAGIC = b"laureate quantized 1\n"


def save(path: str | Path, model: Any) -> int:
    """Write what ``quantize`` or ``freeze`` made; returns the bytes of the file.

    The file is ``Report.bytes_after`` bytes of arrays, and a header with the name, shape and type of each.
    """
    arrays = _arrays(package(model))
    header = json.dumps([_described(name, leaf) for name, leaf in arrays.items()], separators=(",", ":")).encode()
    content = [MAGIC, len(header).to_bytes(4, "little"), header]
    content += [np.asarray(part).tobytes() for leaf in arrays.values() for part in _parts(leaf)]
    path, whole = Path(path), b"".join(content)
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(whole)
    partial.replace(path)  # whole or not at all
    return len(whole)


def load(path: str | Path, like: Any, quantizers: tuple[type[Quantizer], ...] = ()) -> Any:
    """Read what ``save`` wrote: the model as ``quantize`` gave it.

    like: a model of the same structure, quantised or not; its numbers do not matter (``eqx.filter_eval_shape`` makes
        one without any).
    quantizers: classes of your own that the file may name; the file holds settings and numbers, no code.
    """
    whole = Path(path).read_bytes()
    start = len(MAGIC) + 4
    header = whole[start : start + int.from_bytes(whole[len(MAGIC) : start], "little")]
    if not whole.startswith(MAGIC):
        raise ValueError(f"load.path must be a file that save wrote; got {path}, which begins otherwise.")
    try:
        described = {entry["path"]: entry for entry in json.loads(header)}
    except ValueError:
        raise ValueError(
            f"load.path must be a whole file; the header of {path} cannot be read. Write it again."
        ) from None
    numbers = _Reader(whole, start + len(header), str(path))
    known = {made.__name__: made for made in (ScalarQuantizer, ProductQuantizer, *quantizers)}
    values = {name: _value(entry, numbers, known) for name, entry in described.items()}
    numbers.finish()
    wanted = _arrays(like, "load.like")
    if different := sorted(values.keys() ^ wanted.keys()):
        raise ValueError(f"load.like must have the arrays of the file; got a difference in {', '.join(different)}.")
    for name, leaf in wanted.items():
        if tuple(leaf.shape) != tuple(values[name].shape):
            raise ValueError(f"load.like must have {name} of shape {values[name].shape}; got {tuple(leaf.shape)}.")

    def replaced(keys: Any, leaf: Any) -> Any:
        return values.get(_name(keys), leaf) if _has_shape(leaf) else leaf

    return jax.tree_util.tree_map_with_path(replaced, like, is_leaf=is_quantized)


class _Reader:
    """The bytes of a file, array by array."""

    def __init__(self, whole: bytes, place: int, path: str):
        self.whole, self.place, self.path = whole, place, path

    def array(self, shape: list[int], dtype: str) -> Any:
        size = math.prod(shape) * jnp.dtype(dtype).itemsize
        if self.place + size > len(self.whole):
            raise ValueError(f"load.path must be a whole file; {self.path} is cut short. Write it again.")
        found = np.frombuffer(self.whole, jnp.dtype(dtype), math.prod(shape), self.place).reshape(shape)
        self.place += size
        # Numbers of 64 bits stay NumPy's where JAX would cut them to 32.
        fits = jax.dtypes.canonicalize_dtype(found.dtype) == found.dtype
        return jnp.asarray(found) if fits else found.copy()

    def finish(self) -> None:
        if self.place != len(self.whole):
            raise ValueError(f"load.path must end with its arrays; {self.path} is longer than its header says.")


def _value(entry: dict[str, Any], numbers: _Reader, known: dict[str, type[Quantizer]]) -> Any:
    parts = [numbers.array(shape, dtype) for shape, dtype in entry["arrays"]]
    if "quantizer" not in entry:
        return parts[0]
    if entry["quantizer"] not in known:
        kind, name = entry["quantizer"], entry["path"]
        raise ValueError(f"load.quantizers must hold the class {kind!r}, which made {name}; got {sorted(known)}.")
    quantizer = known[entry["quantizer"]](**entry["settings"])
    return QuantizedArray(parts[0], tuple(parts[1:]), quantizer, tuple(entry["shape"]), entry["dtype"], packed=True)


def _described(name: str, leaf: Any) -> dict[str, Any]:
    arrays = [[list(part.shape), str(part.dtype)] for part in _parts(leaf)]
    if not is_quantized(leaf):
        return {"path": name, "arrays": arrays}
    kind = type(leaf.quantizer).__name__
    settings = {field.name: getattr(leaf.quantizer, field.name) for field in dataclasses.fields(leaf.quantizer)}
    for field, value in settings.items():
        if not isinstance(value, bool | int | float | str | None):
            raise TypeError(
                f"save.model must have quantisers whose fields are numbers or words; got {type(value).__name__} in "
                f"{kind}.{field}, of {name}. Keep arrays in what `fit` returns: `store` writes those."
            )
    shape, dtype = list(leaf.shape), leaf.dtype
    return {"path": name, "shape": shape, "dtype": dtype, "quantizer": kind, "settings": settings, "arrays": arrays}


def _arrays(model: Any, owner: str = "save.model") -> dict[str, Any]:
    """The arrays of a model by path, also those that are only shapes."""
    found = jax.tree_util.tree_leaves_with_path(model, is_leaf=is_quantized)
    arrays: dict[str, Any] = {}
    for keys, leaf in found:
        if _has_shape(leaf) and arrays.setdefault(name := _name(keys), leaf) is not leaf:
            raise ValueError(f"{owner} must have one array at every path; got two at {name}. Rename one of them.")
    return arrays


def _has_shape(leaf: Any) -> bool:
    return is_stored(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _parts(leaf: Any) -> Iterator[Any]:
    yield from (leaf.data, *leaf.parameters) if is_quantized(leaf) else (leaf,)


def _name(keys: Any) -> str:
    return jax.tree_util.keystr(keys, simple=True, separator=".")
