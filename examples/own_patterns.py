"""Letters drawn as text as a memory: damaged and restored.

Also a problem for the lab: laureate run hopfield-rbm --problem examples/own_patterns.py:Letters
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.memory import recall, store

DRAWN = {
    "A": ".###. #...# ##### #...# #...#",
    "C": ".#### #.... #.... #.... .####",
    "H": "#...# #...# ##### #...# #...#",
    "L": "#.... #.... #.... #.... #####",
    "T": "##### ..#.. ..#.. ..#.. ..#..",
    "X": "#...# .#.#. ..#.. .#.#. #...#",
}


def spins_of(drawing: str) -> list[float]:
    return [1.0 if sign == "#" else -1.0 for sign in drawing.replace(" ", "")]


class Letters(eqx.Module):
    """Noisy letters: rows to train on, rows to test on, and the letters themselves as patterns."""

    patterns: jax.Array
    spins: jax.Array
    labels: jax.Array
    test_spins: jax.Array
    test_labels: jax.Array

    def __init__(self):
        rng = np.random.default_rng(0)
        letters = np.array([spins_of(drawing) for drawing in DRAWN.values()])
        labels = rng.integers(len(letters), size=600)
        rows = letters[labels] * np.where(rng.random((600, letters.shape[1])) < 0.1, -1.0, 1.0)
        self.patterns = jnp.asarray(letters, jnp.float32)
        self.spins, self.test_spins = jnp.asarray(rows[:400], jnp.float32), jnp.asarray(rows[400:], jnp.float32)
        self.labels, self.test_labels = jnp.asarray(labels[:400]), jnp.asarray(labels[400:])


def shown(spins) -> str:
    return "\n".join("".join("#" if s > 0 else "." for s in row) for row in np.asarray(spins).reshape(5, 5))


if __name__ == "__main__":
    problem = Letters()
    network = store(problem.patterns)
    damaged = problem.patterns[0].at[jnp.array([0, 7])].multiply(-1)
    restored, info = recall(jax.random.key(0), network, damaged)
    print(shown(damaged), shown(restored), sep="\n\n")
    print(f"\nrestored: {bool(jnp.all(restored == problem.patterns[0]))} after {int(info.num_sweeps)} sweeps")
