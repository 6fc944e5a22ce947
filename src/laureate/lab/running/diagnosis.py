"""What ``laureate doctor`` tells: what is installed, what the machine offers, where things lie, what data is there."""

import os
from pathlib import Path
from typing import Any

from laureate.lab.running.environment import environment
from laureate.lab.running.executors import SINGLE_THREAD, cores
from laureate.lab.storing.home import compilation_cache, home
from laureate.lab.storing.store import Store

__all__ = ["diagnose"]

FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


def diagnose(store: Store) -> dict[str, dict[str, Any]]:
    """Everything, by heading; values are plain words and numbers."""
    facts = environment()
    cache = compilation_cache()
    cached = [file for file in cache.rglob("*") if file.is_file()] if cache.is_dir() else []
    threads = {name: os.environ.get(name, f"not set; workers use {value!r}") for name, value in SINGLE_THREAD.items()}
    return {
        "versions": facts["versions"] | {"commit": facts["commit"] or "installed, no checkout"},
        "machine": {"cpu": facts["machine"], "cores for us": cores(), "memory (GiB)": facts["memory_gib"]},
        "threads": threads,
        "folders": {
            "LAUREATE_HOME": str(home()),
            "store": f"{store.path} ({store.path.stat().st_size / 2**20:.1f} MiB)",
            "compiled programs": f"{cache} ({len(cached)} files, {_size(cached):.1f} MiB; safe to delete)",
        },
        "store": store.counts() | {"state": _state(store)},
        "data sets": {"digits, diabetes": _scikit_learn(), "fashion-mnist": _fashion_mnist()},
    }


def _state(store: Store) -> str:
    complaint = store.complaint()
    return f"damaged: {complaint}; laureate doctor --repair" if complaint else "whole"


def _size(files: list[Path]) -> float:
    return sum(file.stat().st_size for file in files) / 2**20


def _scikit_learn() -> str:
    from importlib.util import find_spec

    return "with scikit-learn" if find_spec("sklearn") else "missing; pip install scikit-learn"


def _fashion_mnist() -> str:
    if (FASHION_MNIST / "train-images-idx3-ubyte.gz").is_file():
        return str(FASHION_MNIST)
    return "not found (digits are used instead); Debian: apt-get install dataset-fashion-mnist"
