"""A run on disk: one ``.npz`` file of arrays and a JSON text, replaced whole; never a pickle."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes  # noqa: F401  (NumPy knows bfloat16 and its like by name once this is imported)
import numpy as np

from laureate.loops.settings import describe

__all__ = ["Checkpoint"]

FORMAT = 1


class Checkpoint:
    """Where a run keeps what it has done, so that the same call again goes on from there.

    path: of the file. settings: all that decides the results; a file made with others is refused, naming the field. The
        code of functions counts, and of classes that no library brings: a step that was edited does not go on from
        what the old one did. What these call, and the classes of libraries, this one too, count by name and fields
        alone: a run goes on after a release.

    A file is written beside the old one and then put in its place: whenever a process is killed, a whole one is there.

    >>> import tempfile, jax, jax.numpy as jnp
    >>> path = Path(tempfile.mkdtemp()) / "run.npz"
    >>> Checkpoint(path, {"rate": 0.1}).save(3, {"key": jax.random.key(7)}, jnp.arange(3.0))
    >>> done, state, rows = Checkpoint(path, {"rate": 0.1}).load({"key": jax.random.key(0)}, jnp.zeros(1))
    >>> done, bool(state["key"] == jax.random.key(7)), rows.tolist()
    (3, True, [0.0, 1.0, 2.0])
    >>> Checkpoint(path, {"rate": 0.2}).load({"key": jax.random.key(0)}, jnp.zeros(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Checkpoint.settings must be those of .../run.npz: rate was 0.1, is 0.2. Name another file, or remove it.
    """

    def __init__(self, path: str | Path, settings: Any):
        self.path = Path(path)
        self.settings = describe(settings)

    def save(self, done: int, state: Any, rows: Any) -> None:
        """Keep the number of steps done, the state then, and the rows gathered so far (leaves with a leading axis)."""
        arrays, leaves = {}, []
        for name, tree in (("state", state), ("rows", rows)):
            for path, leaf in _arrays(tree):
                array, generator = _plain(leaf)
                leaves.append({"path": name + path, "dtype": str(array.dtype), "generator": generator})
                # NumPy's format knows no bfloat16: the bits of such numbers travel as integers.
                arrays[str(len(arrays))] = array if array.dtype.kind != "V" else array.view(f"u{array.itemsize}")
        text = json.dumps({"format": FORMAT, "done": done, "settings": self.settings, "leaves": leaves})
        temporary = self.path.with_name(self.path.name + ".writing")
        try:
            with open(temporary, "wb") as file:
                np.savez(file, allow_pickle=False, json=np.array(text), **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def load(self, state: Any, rows: Any) -> tuple[int, Any, Any] | None:
        """(done, state, rows) in the form of the given ones, or None where there is no file.

        state: its arrays' shapes and dtypes must be those of the file; what is no array is taken from it. rows: the
        same but for the leading axis.
        """
        if not self.path.exists():
            return None
        try:
            with open(self.path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                told = json.loads(str(file["json"]))
                arrays = [file[str(i)] for i in range(len(told["leaves"]))]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as problem:
            raise self._refuse("path", "a file that a checkpoint wrote", f"{self.path} ({problem})") from problem
        if told.get("format") != FORMAT:
            raise self._refuse("format", str(FORMAT), f"{told.get('format')} in {self.path}")
        self._same_settings(told["settings"])
        stored = {leaf["path"]: (leaf, array) for leaf, array in zip(told["leaves"], arrays, strict=True)}
        return told["done"], self._fill("state", state, stored, 0), self._fill("rows", rows, stored, 1)

    def _same_settings(self, stored: dict[str, str]) -> None:
        for name in {**stored, **self.settings}:
            was, now = stored.get(name, "(absent)"), self.settings.get(name, "(absent)")
            if was != now:
                raise self._refuse("settings", f"those of {self.path}: {name} was {was}, is {now}", None)

    def _fill(self, name: str, like: Any, stored: dict[str, Any], free: int) -> Any:
        found = dict(_arrays(like))
        paths = {path for path in stored if path.startswith(name)}
        if other := paths ^ {name + path for path in found}:
            raise self._refuse("state", f"of the same structure as in {self.path}", f"another at {min(other)}")
        new = []
        for path, leaf in found.items():
            told, array = stored[name + path]
            array = array if str(array.dtype) == told["dtype"] else array.view(np.dtype(told["dtype"]))
            wanted, generator = _plain(leaf)
            have = (str(array.dtype), array.shape[free:], told["generator"])
            want = (str(wanted.dtype), wanted.shape[free:], generator)
            if have != want:
                raise self._refuse("state", f"as in {self.path}, {name}{path} {have}", want)
            new.append(array if generator is None else jax.random.wrap_key_data(array, impl=generator))
        leaves, structure = jax.tree.flatten(like)
        filled = iter(new)
        return jax.tree.unflatten(structure, [_put(next(filled)) if _is_array(leaf) else leaf for leaf in leaves])

    def _refuse(self, field: str, rule: str, got: Any) -> ValueError:
        told = "." if got is None else f"; got {got}."
        return ValueError(f"Checkpoint.{field} must be {rule}{told} Name another file, or remove it.")


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def _put(array: Any) -> jax.Array:
    return array if isinstance(array, jax.Array) else jnp.asarray(array)


def _arrays(tree: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves if _is_array(leaf)]


def _plain(leaf: Any) -> tuple[Any, str | None]:
    """An array that NumPy can keep, and the generator where it was a typed key."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf)), str(jax.random.key_impl(leaf))
    return (leaf if isinstance(leaf, jax.ShapeDtypeStruct) else np.asarray(leaf)), None
