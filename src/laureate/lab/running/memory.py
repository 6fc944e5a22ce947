"""How much memory this process held at most."""

import contextlib
import sys
from pathlib import Path

__all__ = ["forget_peak", "peak"]


def forget_peak() -> None:
    """Count the peak anew from here. Only Linux can; elsewhere the peak stays that of the whole process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int | None:
    """Bytes resident at most since the last ``forget_peak``; None on a system that does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
