"""Weights from a matrix of gradients beside TorchJD's, and a step that removes the axis of tasks."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.multitask import imtl_g, imtl_weights, mgda, pcgrad, uniform

__all__ = ["COMPARISONS"]

TASKS, PARAMETERS, MATRICES, GRAMS = 8, 20_000, 20, 500


def matrices() -> np.ndarray:
    """Gradients of eight tasks, as many times as a repeat asks for."""
    return np.random.default_rng(0).normal(size=(MATRICES, TASKS, PARAMETERS)).astype(np.float32)


def grams() -> np.ndarray:
    """Inner products of gradients, in double precision; of few numbers, for weights cost the same for all."""
    rows = np.random.default_rng(0).normal(size=(GRAMS, TASKS, 50))
    return rows @ rows.transpose(0, 2, 1)


def weights() -> Side:
    """IMTL-G's, from Gram matrices in float64, one after the other."""
    with jax.enable_x64(True):
        rows = jnp.asarray(grams())
        run = jax.jit(lambda rows: jax.lax.map(lambda gram: imtl_weights(gram, "sum")[0], rows)).lower(rows).compile()
    return Side(lambda: run(rows), times=1 / GRAMS)


def torch_weights() -> Side:
    """The same by TorchJD; raises where the weights are others."""
    import torch  # pyright: ignore[reportMissingImports]  (a peer)
    from torchjd.aggregation import IMTLG  # pyright: ignore[reportMissingImports]  (a peer)

    torch.set_num_threads(1)
    weighting, rows = IMTLG().gramian_weighting, torch.from_numpy(grams())
    run = lambda: [weighting(one) for one in rows]  # noqa: E731
    apart = np.abs(np.asarray(weights().run()) - torch.stack(run()).numpy()).max()
    if apart > 1e-9:
        raise RuntimeError(f"the weights differ by {apart:.1e}")
    return Side(run, times=1 / GRAMS, note=f"The weights differ by {apart:.0e}.")


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


GRAM = f"weights from the Gram matrix of {TASKS} tasks, float64"
WORK = f"of {TASKS} gradients with {PARAMETERS:,} numbers"
COMPARISONS = (
    Comparison(f"IMTL-G's {GRAM}, the same", "TorchJD", "torchjd", weights, torch_weights),
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
