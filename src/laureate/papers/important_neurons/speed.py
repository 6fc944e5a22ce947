"""Correlations between the units of four models beside ``numpy.corrcoef`` on all of them at once.

NumPy needs every activation in memory and a copy in double precision (500 units of 4 models on 10⁶ tokens: 16 GB beside
the array itself), so that the comparison in one process is made at a tenth of the tokens; time grows with the tokens on
both sides, our memory does not. A chunk is cut anew from a table of random numbers on our side; NumPy's array is
made before the clock starts.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from laureate.interpretation import RunningMoments
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS", "Work", "our_side", "their_side"]


class Work(NamedTuple):
    """What is measured: units of each model, models, tokens, tokens of a chunk."""

    units: int = 500
    models: int = 4
    tokens: int = 100_000
    chunk: int = 5_000


def table(work: Work) -> np.ndarray:
    """Activations of one chunk, ``[models, chunk, units]``; later chunks are the same in another order."""
    return np.random.default_rng(0).normal(size=(work.models, work.chunk, work.units)).astype(np.float32)


def our_side(work: Work) -> Side:
    """All chunks in one program, in single precision; the correlations of all pairs of models."""
    stats, values = RunningMoments((work.units,) * work.models), jnp.asarray(table(work))
    twice = jnp.concatenate([values, values], axis=1)

    @jax.jit
    def run(twice):
        def step(state, number):
            # Another order for every chunk: what does not change is computed only once by XLA.
            chunk = jax.lax.dynamic_slice_in_dim(twice, number, work.chunk, axis=1)
            return stats.update(state, list(chunk))[0], None

        state, _ = jax.lax.scan(step, stats.init(), jnp.arange(work.tokens // work.chunk))
        moments = stats.finish(state)
        return [moments.correlation(a, b) for a in range(work.models) for b in range(a + 1, work.models)]

    return Side(lambda: run(twice), note="single precision, chunk by chunk")


def their_side(work: Work) -> Side:
    """``numpy.corrcoef`` of all units, which computes in double precision."""
    chunk = np.concatenate(list(table(work)), axis=1).T  # [all units, tokens of a chunk]
    whole = np.tile(chunk, work.tokens // work.chunk)
    return Side(lambda: np.corrcoef(whole), note="double precision, everything in memory")


def _compared(work: Work) -> Comparison:
    return Comparison(
        work=f"correlations of {work.units} units of {work.models} models, {work.tokens:,} tokens",
        peer="numpy.corrcoef",
        package="numpy",
        ours=lambda: our_side(work),
        theirs=lambda: their_side(work),
    )


COMPARISONS = (_compared(Work()), _compared(Work(units=64, tokens=200_000)))
