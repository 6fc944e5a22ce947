"""A step of Gradient Vaccine beside TorchJD's, and beside the plain sum."""

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.multitask import gradvac, uniform

__all__ = ["COMPARISONS"]

TASKS, PARAMETERS, STEPS = 8, 20_000, 20


def rows() -> np.ndarray:
    """Gradients of eight tasks, a matrix a step."""
    return np.random.default_rng(0).normal(size=(STEPS, TASKS, PARAMETERS)).astype(np.float32)


def scanned(tx) -> Side:
    """One step after the other, targets carried on."""
    start = tx.init(jnp.zeros(PARAMETERS))

    @jax.jit
    def run(matrices):
        return jax.lax.scan(lambda state, one: tx.update(one, state)[::-1], start, matrices)

    matrices = jnp.asarray(rows())
    return Side(lambda: run(matrices), times=1 / STEPS)


def ours() -> Side:
    """With β = 0.5, as TorchJD has it."""
    return scanned(gradvac(jax.random.key(0), TASKS, beta=0.5))


def theirs() -> Side:
    """TorchJD's aggregator, which keeps its targets in itself."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer)
    from torchjd.aggregation import GradVac  # pyright: ignore[reportMissingImports]  (a peer)

    torch.set_num_threads(1)
    aggregator, matrices = GradVac(), torch.from_numpy(rows())
    return Side(lambda: [aggregator(one) for one in matrices], times=1 / STEPS)


WORK = f"a step of {TASKS} gradients with {PARAMETERS:,} numbers"
COMPARISONS = (
    Comparison(WORK, "TorchJD", "torchjd", ours, theirs),
    Comparison(WORK, "the plain sum, ours", "", ours, lambda: scanned(uniform())),
)
