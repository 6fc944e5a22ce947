"""Rare classes of your own: a network and a forest that forget them, and the correction.

    python examples/own_rare_classes.py
    laureate run logit-adjustment/networks --problem examples/own_rare_classes.py:rows --scale smoke

Wines of three growers, one of whom has sent five bottles. The second line tries every loss of the paper on these rows.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from laureate.imbalance import LogitAdjusted, adjust, balanced_error, class_counts, log_prior
from laureate.imbalance import logit_adjusted_cross_entropy as adjusted_loss
from laureate.problems.long_tails import RareRows

KEPT = (35, 40, 5)  # rows of each class to train on; the others are for testing


def split():
    """Inputs and labels to train on and to test on: whatever you have instead."""
    x, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = np.log(x[order][:, [0, 1, 2]]), y[order]  # three of its measurements
    known = np.concatenate([np.flatnonzero(y == c)[:count] for c, count in enumerate(KEPT)])
    held = np.setdiff1d(np.arange(len(y)), known)
    return x[known], y[known], x[held], y[held]


def rows() -> RareRows:
    return RareRows(*split())


def fit(x, y, loss, steps) -> Any:
    """A linear model and your own Optax loop; only the loss is ours."""
    optimiser, start = optax.adam(0.02), {"w": jnp.zeros((x.shape[1], 3)), "b": jnp.zeros(3)}

    def step(carry, _):
        model, state = carry
        gradient = jax.grad(lambda m: loss(x @ m["w"] + m["b"], y).mean())(model)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(model, updates), state), None

    return jax.lax.scan(step, (start, optimiser.init(start)), length=steps)[0][0]


def main(steps: int = 60, trees: int = 100) -> dict[str, float]:
    data = rows().draw(jax.random.key(0))
    prior = log_prior(class_counts(data.labels, 3))
    plain = fit(data.inputs, data.labels, optax.softmax_cross_entropy_with_integer_labels, steps)
    adjusted = fit(data.inputs, data.labels, lambda f, y: adjusted_loss(f, y, prior), steps)
    logits = data.test_inputs @ plain["w"] + plain["b"]
    found: dict[str, Any] = {
        "network": jnp.argmax(logits, -1),
        "network, adjusted after training": jnp.argmax(adjust(logits, prior), -1),
        "network, adjusted loss": jnp.argmax(data.test_inputs @ adjusted["w"] + adjusted["b"], -1),
    }
    x, y, held, _ = split()
    forest = RandomForestClassifier(trees, random_state=0)
    found["forest"] = forest.fit(x, y).predict(held)
    found["forest, adjusted"] = LogitAdjusted(forest).fit(x, y).predict(held)
    return {name: float(balanced_error(guess, data.test_labels, 3)) for name, guess in found.items()}


if __name__ == "__main__":
    for name, error in main().items():
        print(f"{name}: balanced error {error:.3f}")
