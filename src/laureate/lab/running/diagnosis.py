"""What ``laureate doctor`` reports: what is installed, what the machine offers, where things lie, which data it has."""

import os
from pathlib import Path
from typing import Any

from laureate._compiler import REMEDY, complaint
from laureate._data import DATA_SETS, find
from laureate.lab.running.environment import environment
from laureate.lab.running.executors import SINGLE_THREAD, cores
from laureate.lab.storing.home import compilation_cache, home
from laureate.lab.storing.store import Store

__all__ = ["diagnose"]


def diagnose(store: Store) -> dict[str, dict[str, Any]]:
    """Everything, by heading; values are plain words and numbers."""
    facts = environment()
    cache = compilation_cache()
    cached = [file for file in cache.rglob("*") if file.is_file()] if cache.is_dir() else []
    threads = {name: os.environ.get(name, f"not set; workers use {value!r}") for name, value in SINGLE_THREAD.items()}
    return {
        "versions": facts["versions"] | {"commit": facts["commit"] or "installed, no checkout"} | _wrong_compiler(),
        "machine": {"cpu": facts["machine"], "cores for us": cores(), "memory (GiB)": facts["memory_gib"]},
        "threads": threads,
        "folders": {
            "LAUREATE_HOME": str(home()),
            "store": f"{store.path} ({store.path.stat().st_size / 2**20:.1f} MiB)",
            "compiled programs": f"{cache} ({len(cached)} files, {_size(cached):.1f} MiB; safe to delete)",
        },
        "store": store.counts() | {"state": _state(store)},
        "data sets": {name: _data_set(name) for name in DATA_SETS},
    }


def _wrong_compiler() -> dict[str, str]:
    return {"to be replaced": f"{complaint()} {REMEDY}"} if complaint() else {}


def _state(store: Store) -> str:
    complaint = store.complaint()
    return f"damaged: {complaint}; laureate doctor --repair" if complaint else "whole"


def _size(files: list[Path]) -> float:
    return sum(file.stat().st_size for file in files) / 2**20


def _data_set(name: str) -> str:
    made = DATA_SETS[name]
    return made.title if find(name) else f"missing, its experiments are not run; install it with: {made.install}"
