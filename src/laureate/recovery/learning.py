"""A dictionary from data, where none is known: sparse coding and least squares in turn."""

import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require
from laureate.recovery.dictionary import Dense
from laureate.recovery.ista import FISTA

__all__ = ["learn_dictionary"]


def learn_dictionary(
    key: Array, signals: Array, atoms: int, *, rounds: int = 20, penalty: float | Array = 0.1, iterations: int = 30
) -> Array:
    """D [N, atoms] with unit columns for which signals [n, N] have sparse codes (Engan et al. 1999).

    Each round codes the signals (``iterations`` of FISTA with this penalty) and then solves
    D = argmin ‖B − X Dᵀ‖² + a little ‖D‖². It starts from random signals; atoms that nothing uses are replaced by some.

    >>> signals = jax.random.normal(jax.random.key(0), (40, 6))
    >>> D = learn_dictionary(jax.random.key(1), signals, 8, rounds=3)
    >>> D.shape, bool(jnp.allclose(jnp.linalg.norm(D, axis=0), 1, atol=1e-5))
    ((6, 8), True)
    """
    signals = jnp.asarray(signals)
    if signals.ndim != 2 or signals.shape[0] < 1:
        raise ValueError(f"learn_dictionary.signals must be [n, N], a signal a row; got shape {signals.shape}.")
    require("learn_dictionary", "atoms", ">= 1", atoms, lambda n: n >= 1)
    require("learn_dictionary", "rounds", ">= 1", rounds, lambda n: n >= 1)
    power = jnp.sqrt(jnp.mean(signals**2)) + jnp.finfo(signals.dtype).tiny

    def unit(columns, key):
        """Normalise; a column without length becomes a random direction."""
        sizes = jnp.linalg.norm(columns, axis=0)
        spare = jax.random.normal(key, columns.shape, columns.dtype)
        columns = jnp.where(sizes > 1e-6 * power, columns, spare)
        return columns / jnp.linalg.norm(columns, axis=0)

    def step(matrix, key):
        # Codes in units of the signals' size, so that one penalty serves any.
        codes = FISTA(Dense(matrix), iterations, penalty=penalty, normalize=False)(signals / power)
        gram = codes.T @ codes
        gram = gram + 1e-4 * (jnp.trace(gram) / atoms + 1) * jnp.eye(atoms, dtype=gram.dtype)
        return unit(jnp.linalg.solve(gram, codes.T @ signals).T, key), None

    first, *rest = jax.random.split(key, 2)
    chosen = jax.random.randint(first, (atoms,), 0, signals.shape[0])
    noise = 0.1 * power * jax.random.normal(rest[0], (signals.shape[1], atoms), signals.dtype)
    start = unit(signals[chosen].T + noise, first)
    return jax.lax.scan(step, start, jax.random.split(rest[0], rounds))[0]
