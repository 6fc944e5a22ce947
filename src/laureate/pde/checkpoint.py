"""Keep the finished steps of a long solve on disk, so that the same call resumes where it was stopped."""

import hashlib
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from laureate.pde.steps import StepInfo

__all__ = ["Checkpoint"]


class Checkpoint:
    """One ``.npz`` file, replaced whole after every step: a killed run leaves the last good one.

    The paths are not kept: they follow from the key. A file of other settings, equation or key is refused.
    """

    def __init__(self, path: str | Path | None, solver: Any, key: PRNGKeyArray, pde: Any):
        self.path = None if path is None else Path(path)
        if self.path is not None:
            leaves = [np.asarray(leaf) for leaf in jax.tree.leaves((solver, pde)) if not callable(leaf)]
            text = repr((jax.tree.structure((solver, pde)), [(a.shape, a.tolist()) for a in leaves]))
            text += repr(np.asarray(jax.random.key_data(key)).tolist())
            self.fingerprint = hashlib.sha256(text.encode()).hexdigest()

    def load(self) -> list[tuple[Any, Any]]:
        """The finished steps, the last in time first; none where there is no file."""
        if self.path is None or not self.path.exists():
            return []
        with np.load(self.path, allow_pickle=False) as file:
            if str(file["fingerprint"]) != self.fingerprint:
                raise ValueError(
                    f"{self.path} was written by another key, solver or equation. Remove it or name another checkpoint."
                )
            parts = [file[f"part{i}"] for i in range(3)]
            info = {name: file[f"info_{name}"] for name in StepInfo._fields}
        count = len(parts[0])
        return [
            (tuple(part[i] for part in parts), StepInfo(**{name: info[name][i] for name in info})) for i in range(count)
        ]

    def save(self, done: list[tuple[Any, Any]]) -> None:
        """Write the finished steps, then put the file in the place of the old one."""
        if self.path is None:
            return
        arrays = {f"part{i}": np.stack([np.asarray(part[i]) for part, _ in done]) for i in range(3)}
        for name in done[0][1]._fields:
            arrays[f"info_{name}"] = np.stack([np.asarray(getattr(info, name)) for _, info in done])
        temporary = self.path.with_name(self.path.name + ".writing")
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, fingerprint=np.array(self.fingerprint), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)
