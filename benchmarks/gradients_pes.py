"""One PES update against evosax's PersistentES driven by hand, and how time and memory grow.

The inner problem is the training of a two-layer MLP by gradient descent; theta holds a log learning rate a weight
(or one for every layer). Both sides run the same inner problem on the same batches with as many particles, in one
process, interleaved; compile time is told apart. Ratio = theirs / ours: above 1 we are faster.

    python benchmarks/gradients_pes.py [--json] [--rounds 15] [--quick] [--clock cpu]
"""

import argparse
import json
import statistics
import time
from typing import Any

import jax

from laureate.papers.pes.speed import TrainMLP, Work, our_side, their_side


def compiled(side: Any, work: Work):
    """Carry, compiled update, compile seconds, megabytes while it runs."""
    carry, update = side(work)
    batches = TrainMLP(work).batches(jax.random.key(3))
    begin = time.perf_counter()
    program = jax.jit(update).lower(jax.random.key(0), carry, batches).compile()
    seconds = time.perf_counter() - begin
    memory: Any = program.memory_analysis()
    size = (memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes) / 1e6
    return carry, program, batches, seconds, size


def measure(work: Work, rounds: int, clock: Any) -> dict:
    """Medians of interleaved updates, and the ratio with its quartiles over the rounds."""
    ours, theirs = compiled(our_side, work), compiled(their_side, work)
    times: tuple[list[float], list[float]] = ([], [])
    carries = [ours[0], theirs[0]]
    for turn in range(rounds + 2):
        for which, side in enumerate((ours, theirs)):
            begin = clock()
            carries[which], loss = side[1](jax.random.key(turn), carries[which], side[2])
            jax.block_until_ready((carries[which], loss))
            if turn >= 2:
                times[which].append(clock() - begin)
    ratios = sorted(b / a for a, b in zip(*times, strict=True))
    size = sum(leaf.size for leaf in jax.tree.leaves(TrainMLP(work).theta()))
    return {
        "id": f"pes-{work.pairs}-{work.steps}-{size}",
        "work": f"one PES update: {work.pairs} pairs, {work.steps} inner steps, {size} parameters ({work.theta})",
        "ours_s": statistics.median(times[0]),
        "peer": "evosax PersistentES",
        "peer_s": statistics.median(times[1]),
        "ratio": statistics.median(ratios),
        "low": ratios[len(ratios) // 4],
        "high": ratios[(3 * len(ratios)) // 4],
        "ours_compile_s": ours[3],
        "peer_compile_s": theirs[3],
        "ours_mb": ours[4],
        "peer_mb": theirs[4],
    }


BASE = Work()
GROWTH = (
    *(BASE._replace(pairs=n) for n in (100, 300, 3000)),
    *(BASE._replace(hidden=n) for n in (4, 64)),
    *(BASE._replace(steps=n) for n in (1, 50)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a list of rows instead of a table")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: for a busy machine")
    parser.add_argument("--quick", action="store_true", help="the main comparison only")
    options = parser.parse_args()
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    works = (BASE, BASE._replace(theta="per layer"), *(() if options.quick else GROWTH))
    rows = [measure(work, options.rounds, clock) for work in works]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'work':78} {'ours':>9} {'evosax':>9} {'ratio (quartiles)':>20} {'MB ours/theirs':>16} {'compile s':>11}")
    for row in rows:
        print(
            f"{row['work']:78} {1e3 * row['ours_s']:6.1f} ms {1e3 * row['peer_s']:6.1f} ms "
            f"{row['ratio']:6.2f} ({row['low']:.2f}-{row['high']:.2f}) {row['ours_mb']:8.1f}/{row['peer_mb']:<7.1f} "
            f"{row['ours_compile_s']:5.1f}/{row['peer_compile_s']:<5.1f}"
        )


if __name__ == "__main__":
    main()
