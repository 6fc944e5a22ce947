"""How we time: compile first, block, repeat, interleave, medians, ratios in one process, compile time apart."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

__all__ = ["compare", "print_rows", "seconds_of"]


def seconds_of(work: Callable[[], Any], repeats: int = 7) -> np.ndarray:
    """Seconds of each repeat, after one that is not counted; the result is waited for."""
    import jax

    jax.block_until_ready(work())
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(work())
        times.append(time.perf_counter() - started)
    return np.array(times)


def compare(ours: Callable[[], Any], peer: Callable[[], Any], repeats: int = 15) -> dict[str, float]:
    """Both, interleaved: medians, and how many times faster ours is with the 95 % interval of the paired ratio."""
    for warm in (ours, peer):
        seconds_of(warm, 0)
    pairs = np.array([(seconds_of_once(ours), seconds_of_once(peer)) for _ in range(repeats)])
    ratios = np.log(pairs[:, 1] / pairs[:, 0])
    draws = np.random.default_rng(0).choice(ratios, (4000, repeats)).mean(1)
    low, high = np.exp(np.quantile(draws, (0.025, 0.975)))
    ours_s, peer_s = np.median(pairs, axis=0)
    return {"ours_s": ours_s, "peer_s": peer_s, "ratio": float(np.exp(ratios.mean())), "low": low, "high": high}


def seconds_of_once(work: Callable[[], Any]) -> float:
    """One repeat, waited for."""
    import jax

    started = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - started


def print_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """A table, or with ``--json`` on the command line a JSON list."""
    rows = list(rows)
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=2, default=float))
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_text(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(columns)]
    for line in (columns, *cells):
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
