"""Several losses of your own in one network: a diagnosis, an area in pixels, and a roughness of thousandths.

    python examples/own_tasks.py
    laureate run imtl/units/ --problem examples/own_tasks.py:tasks --scale smoke
    laureate run gradvac/related/ --problem examples/own_tasks.py:tasks --scale smoke

From ten measurements of a tumour's worst cells: is it benign, how large is its mean area, how smooth is it? The second
line tries every way of a paper on these losses, the first of them in three units; the third those of another.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_breast_cancer

from laureate.multitask import imtl_g, task_geometry, train, uniform

PARTS = {"train": slice(0, 300), "validation": slice(300, 400), "test": slice(400, 569)}


class Tumours(eqx.Module):
    """Losses [3] in whatever units they come; scores between 0, for who does not look, and 1."""

    inputs: jax.Array
    benign: jax.Array
    numbers: jax.Array  # area and smoothness, standardised
    units: jax.Array

    def params0(self, key):
        first, second = jax.random.split(key)
        return {"trunk": 0.3 * jax.random.normal(first, (10, 16)), "heads": 0.3 * jax.random.normal(second, (16, 3))}

    def shared(self, path):
        return "trunk" in path

    def batch(self, key):
        return jax.random.randint(key, (32,), 0, 300)

    def answers(self, params, rows):
        out = jnp.tanh(self.inputs[rows] @ params["trunk"]) @ params["heads"]
        return out[:, 0], out[:, 1:]

    def losses(self, params, batch):
        logit, numbers = self.answers(params, batch)
        entropy = optax.sigmoid_binary_cross_entropy(logit, self.benign[batch]).mean()
        return jnp.append(jnp.mean((self.units * (numbers - self.numbers[batch])) ** 2, axis=0), entropy)

    def scores(self, params, part):
        rows = jnp.arange(569)[PARTS[part]]
        logit, numbers = self.answers(params, rows)
        right, truth = jnp.mean((logit > 0) == (self.benign[rows] > 0.5)), self.numbers[rows]
        error, variance = jnp.mean((numbers - truth) ** 2, axis=0), jnp.var(truth, axis=0)
        return jnp.append(jnp.maximum(0.0, 1 - error / variance), right)


def tasks() -> Tumours:
    """Whatever you have instead."""
    table, benign = map(np.asarray, load_breast_cancer(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(benign))
    table, known = table[order], table[order][PARTS["train"]]
    scaled = jnp.asarray((table - known.mean(0)) / known.std(0), jnp.float32)
    wanted = np.array([3, 4])  # mean area, mean smoothness
    units = jnp.asarray(known.std(0)[wanted], jnp.float32)
    return Tumours(scaled[:, 20:], jnp.asarray(benign[order], jnp.float32), scaled[:, wanted], units)


def main(steps: int = 300) -> dict[str, list[float]]:
    problem, key = tasks(), jax.random.key(0)
    found = {}
    for name, rule in (("plain sum", uniform(shared=problem.shared)), ("IMTL-G", imtl_g(shared=problem.shared))):
        optimiser = optax.chain(rule, optax.adam(0.01))

        @jax.jit
        def run(optimiser=optimiser):
            start = problem.params0(key)
            grads = jax.jacrev(problem.losses)(start, problem.batch(key))
            params, _ = train(key, problem, optimiser, start, steps)
            return problem.scores(params, "test"), task_geometry(grads, shared=problem.shared).norms

        scores, lengths = run()
        found |= {name: scores.tolist(), "lengths of the gradients": lengths.tolist()}
    return found


if __name__ == "__main__":
    for name, numbers in main().items():
        print(f"{name}: area {numbers[0]:.3g}, smoothness {numbers[1]:.3g}, diagnosis {numbers[2]:.3g}")
