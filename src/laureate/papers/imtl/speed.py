"""Weights from a matrix of gradients beside TorchJD's, and a step that removes the axis of tasks."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.multitask import imtl_g, imtl_weights, mgda, pcgrad, task_gram, uniform

__all__ = ["COMPARISONS"]

TASKS, PARAMETERS, MATRICES = 8, 20_000, 20


def matrices() -> np.ndarray:
    """Gradients of eight tasks, as many times as a repeat asks for."""
    return np.random.default_rng(0).normal(size=(MATRICES, TASKS, PARAMETERS)).astype(np.float32)


def weights() -> Side:
    """IMTL-G's, one matrix after the other."""
    run = jax.jit(lambda rows: jax.lax.map(lambda one: imtl_weights(task_gram(one), "sum")[0], rows))
    rows = jnp.asarray(matrices())
    return Side(lambda: run(rows), times=1 / MATRICES)


def torch_weights() -> Side:
    """The same by TorchJD, from the Gram matrix as well."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer)
    from torchjd.aggregation import IMTLG  # pyright: ignore[reportMissingImports]  (a peer)

    torch.set_num_threads(1)
    weighting, rows = IMTLG().gramian_weighting, torch.from_numpy(matrices())
    return Side(lambda: [weighting(one @ one.T) for one in rows], times=1 / MATRICES)


def step(make: Callable[[], Any]) -> Side:
    """Updates from a matrix of gradients, one after the other."""
    tx = make()
    state = tx.init(jnp.zeros(PARAMETERS))
    run = jax.jit(lambda rows: jax.lax.map(lambda one: tx.update(one, state)[0], rows))
    rows = jnp.asarray(matrices())
    return Side(lambda: run(rows), times=1 / MATRICES)


def torch_step(name: str) -> Side:
    """The same by one of TorchJD's aggregators."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer)
    from torchjd import aggregation  # pyright: ignore[reportMissingImports]  (a peer)

    torch.set_num_threads(1)
    aggregator, rows = getattr(aggregation, name)(), torch.from_numpy(matrices())
    return Side(lambda: [aggregator(one) for one in rows], times=1 / MATRICES)


WORK = f"of {TASKS} gradients with {PARAMETERS:,} numbers"
COMPARISONS = (
    Comparison(f"IMTL-G's weights {WORK}", "TorchJD", "torchjd", weights, torch_weights),
    Comparison(f"IMTL-G's step {WORK}", "TorchJD", "torchjd", lambda: step(imtl_g), lambda: torch_step("IMTLG")),
    Comparison(f"MGDA's step {WORK}", "TorchJD", "torchjd", lambda: step(mgda), lambda: torch_step("MGDA")),
    Comparison(
        f"PCGrad's step {WORK}",
        "TorchJD",
        "torchjd",
        lambda: step(lambda: pcgrad(jax.random.key(0), TASKS)),
        lambda: torch_step("PCGrad"),
    ),
    Comparison(f"IMTL-G's step {WORK}", "the plain sum, ours", "", lambda: step(imtl_g), lambda: step(uniform)),
)
