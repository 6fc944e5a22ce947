"""A dictionary from data, where none is known: sparse coding and least squares in turn, also for filters."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from laureate import loops
from laureate._core import require
from laureate.recovery.convolutional import ConvDictionary
from laureate.recovery.dictionary import Dense
from laureate.recovery.ista import FISTA

__all__ = ["learn_dictionary", "learn_filters"]


def learn_dictionary(
    key: Array,
    signals: Array,
    num_atoms: int,
    *,
    num_rounds: int = 20,
    penalty: float | Array = 0.1,
    num_steps: int = 30,
    progress: Callable[[loops.Progress], None] | None = None,
) -> Array:
    """D [N, atoms] with unit columns for which signals [n, N] have sparse codes (Engan et al. 1999).

    Each round codes the signals (``num_steps`` of FISTA with this penalty) and then solves
    D = argmin ‖B − X Dᵀ‖² + a little ‖D‖². It starts from random signals; atoms that nothing uses are replaced by some.

    progress: called about every second with a ``laureate.loops.Progress``; not within jit.

    >>> signals = jax.random.normal(jax.random.key(0), (40, 6))
    >>> D = learn_dictionary(jax.random.key(1), signals, 8, num_rounds=3)
    >>> D.shape, bool(jnp.allclose(jnp.linalg.norm(D, axis=0), 1, atol=1e-5))
    ((6, 8), True)
    """
    signals = jnp.asarray(signals)
    if signals.ndim != 2 or signals.shape[0] < 1:
        raise ValueError(f"learn_dictionary.signals must be [n, N], a signal a row; got shape {signals.shape}.")
    require("learn_dictionary", "num_atoms", ">= 1", num_atoms, lambda n: n >= 1)
    require("learn_dictionary", "num_rounds", ">= 1", num_rounds, lambda n: n >= 1)
    power = jnp.sqrt(jnp.mean(signals**2)) + jnp.finfo(signals.dtype).tiny

    def unit(columns, key):
        """Normalise; a column without length becomes a random direction."""
        sizes = jnp.linalg.norm(columns, axis=0)
        spare = jax.random.normal(key, columns.shape, columns.dtype)
        columns = jnp.where(sizes > 1e-6 * power, columns, spare)
        return columns / jnp.linalg.norm(columns, axis=0)

    def step(matrix, key):
        # Codes in units of the signals' size, so that one penalty serves any.
        codes = FISTA(Dense(matrix), num_steps, penalty=penalty, normalise=False)(signals / power)
        gram = codes.T @ codes
        gram = gram + 1e-4 * (jnp.trace(gram) / num_atoms + 1) * jnp.eye(num_atoms, dtype=gram.dtype)
        return unit(jnp.linalg.solve(gram, codes.T @ signals).T, key), None

    choice_key, noise_key, spare_key, round_key = jax.random.split(key, 4)
    chosen = jax.random.randint(choice_key, (num_atoms,), 0, signals.shape[0])
    noise = 0.1 * power * jax.random.normal(noise_key, (signals.shape[1], num_atoms), signals.dtype)
    start = unit(signals[chosen].T + noise, spare_key)
    return loops.scan(step, start, jax.random.split(round_key, num_rounds), progress=progress)[0]


def learn_filters(
    key: Array,
    images: Array,
    num_filters: int,
    side: int,
    *,
    num_rounds: int = 10,
    penalty: float | Array = 0.1,
    num_steps: int = 20,
    progress: Callable[[loops.Progress], None] | None = None,
) -> Array:
    """Filters [number, side, side] of norm 1 for which images [n, H, W] are sums Σ_m d_m ∗ x_m with sparse x_m.

    Each round codes the images by FISTA and solves the least-squares problem in the filters, as images are linear in
    them too. It starts from random filters; one that nothing uses stays as it is.

    progress: called about every second with a ``laureate.loops.Progress``; not within jit.
    key: of the first filters. num_rounds: of coding and solving. penalty: of ‖x‖₁ in the codes. num_steps: of FISTA.
    """
    images = jnp.asarray(images)
    if images.ndim != 3:
        raise ValueError(f"learn_filters.images must be [n, H, W]; got an array of shape {images.shape}.")
    require("learn_filters", "num_filters", ">= 1", num_filters, lambda n: n >= 1)
    require("learn_filters", "side", ">= 1", side, lambda n: n >= 1)
    require("learn_filters", "num_rounds", ">= 1", num_rounds, lambda n: n >= 1)
    size = images.shape[1], images.shape[2]

    def unit(filters, before):
        """Normalise; a filter that no code used stays as it was."""
        sizes = jnp.sqrt(jnp.sum(filters**2, axis=(1, 2), keepdims=True))
        return jnp.where(sizes > 0, filters / jnp.where(sizes > 0, sizes, 1), before)

    def step(filters, _):
        codes = FISTA(ConvDictionary(filters, size), num_steps, penalty=penalty)(images)
        # Entry (m, u, v) of the filters adds codes[..., i + D − 1 − u, j + D − 1 − v, m] to pixel (i, j).
        at = range(side - 1, -1, -1)
        shifted = [codes[:, u : u + size[0], v : v + size[1], :] for u in at for v in at]
        columns = jnp.stack(shifted, axis=-1).reshape(-1, num_filters * side * side)
        gram = columns.T @ columns
        gram = gram + 1e-4 * (jnp.trace(gram) / len(gram) + 1e-6) * jnp.eye(len(gram), dtype=gram.dtype)
        solved = jnp.linalg.solve(gram, columns.T @ images.reshape(-1)).reshape(filters.shape)
        return unit(solved, filters), None

    drawn = jax.random.normal(key, (num_filters, side, side), images.dtype)
    start = unit(drawn, drawn)
    return loops.scan(step, start, jnp.arange(num_rounds), progress=progress)[0]
