"""What a number was measured with: commit, versions, machine, command."""

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import laureate
from laureate._compiler import REMEDY, complaint
from laureate.lab.errors import UserError
from laureate.lab.running.executors import cores
from laureate.lab.running.fingerprint import versions

__all__ = ["check_compiler", "environment"]


def environment() -> dict[str, Any]:
    """The facts every stored run carries."""
    return {
        "commit": _commit(),
        "versions": versions() | {"python": platform.python_version()},
        "machine": f"{_cpu()}, {cores()} cores",
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "executable": Path(sys.executable).name,
    }


def check_compiler() -> None:
    """Raise where the compiler is known to compute wrong numbers: what it measures decides nothing."""
    if wrong := complaint():
        raise UserError(wrong, REMEDY)


def _commit() -> str:
    """The commit of a source checkout, with a plus sign where files were changed; empty for an installed wheel."""
    folder = Path(laureate.__file__).parent
    describe = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--abbrev=12", "--match", ""]
    try:
        tracked = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", "__init__.py"], capture_output=True, timeout=5
        )
        if tracked.returncode:
            return ""
        return subprocess.run(describe, capture_output=True, text=True, timeout=5).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown cpu"


def _memory_gib() -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal"):
                return round(int(line.split()[1]) / 2**20, 1)
    except (OSError, ValueError):
        pass
    return None
