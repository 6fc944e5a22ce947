"""Long-tailed data: networks with every loss, and scikit-learn's classifiers with and without the correction."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from laureate.imbalance import (
    LOSSES,
    LogitAdjusted,
    adjust,
    balanced_indices,
    class_counts,
    class_errors,
    log_prior,
    normalise_weights,
)
from laureate.lab.claim import Settings
from laureate.problems.classifiers import Perceptron

__all__ = ["classifiers", "networks"]

TAUS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
NAMES = ("short", "middle", "long")


def networks(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """Balanced errors of a network after three lengths of training, by an arm's loss and correction."""
    data_key, start_key, row_key = jax.random.split(key, 3)
    split = problem.draw(data_key)
    num, classes = split.labels.shape[0], problem.num_classes
    prior = log_prior(class_counts(split.labels, classes))
    optimiser = optax.adam(scale.rate)
    number = jnp.asarray(arm.loss).astype(jnp.int32)
    losses = [lambda f, y, one=one: one(f, y, prior) for one in LOSSES.values()]

    def cost(model, rows):
        return jnp.mean(jax.lax.switch(number, losses, model(split.inputs[rows]), split.labels[rows]))

    def step(i, carry):
        model, state = carry
        drawn = balanced_indices(jax.random.fold_in(row_key, i), split.labels, classes, num)
        rows = jnp.where(arm.resampled > 0.5, drawn, jnp.arange(num))
        updates, state = optimiser.update(jax.grad(cost)(model, rows), state)
        return optax.apply_updates(model, updates), state

    def length(carry, bounds):
        """Train on from one number of steps to the next, and look."""
        carry = jax.lax.fori_loop(bounds[0], bounds[1], step, carry)
        logits = _logits(carry[0], split, arm)
        predicted = jnp.argmax(adjust(logits, prior, tau=arm.after), axis=-1)
        predicted = jnp.where(arm.centroid > 0.5, _nearest(split, classes), predicted)
        each = class_errors(predicted, split.test_labels, classes)
        by_frequency = each[jnp.argsort(prior)]
        by_tau = jnp.stack(
            [
                jnp.mean(class_errors(jnp.argmax(logits - tau * prior, axis=-1), split.test_labels, classes))
                for tau in TAUS
            ]
        )
        return carry, {
            "error": jnp.mean(each),
            "tail": jnp.mean(by_frequency[:3]),
            "prior_error": jnp.exp(prior) @ each,  # under the training frequencies: who pays
            "tau_gap": by_tau[TAUS.index(1.0)] - jnp.min(by_tau),
            "best_tau": jnp.asarray(TAUS)[jnp.argmin(by_tau)],
        }

    model = Perceptron(start_key, (split.inputs.shape[1], scale.hidden, classes))
    bounds = jnp.asarray([(0, *scale.steps[:-1]), scale.steps]).T
    _, found = jax.lax.scan(length, (model, optimiser.init(model)), bounds)  # pyright: ignore[reportArgumentType]
    metrics = {f"{key}_{name}": values[i] for key, values in found.items() for i, name in enumerate(NAMES)}
    return metrics | {"error": found["error"], "steps": jnp.asarray(scale.steps, jnp.float32)}


def _logits(model: Perceptron, split, arm: Settings) -> Array:
    """Of the test rows; with the last layer's weights normalised and its bias left out where the arm says so."""
    hidden = jax.nn.relu(split.test_inputs @ model.weights[0] + model.biases[0])
    plain = hidden @ model.weights[1] + model.biases[1]
    return jnp.where(arm.normalised > 0.5, hidden @ normalise_weights(model.weights[1]), plain)


def _nearest(split, classes: int) -> Array:
    """The class whose mean is nearest: no training, no prior."""
    members = jax.nn.one_hot(split.labels, classes)
    means = members.T @ split.inputs / jnp.sum(members, axis=0)[:, None]
    return jnp.argmin(jnp.sum((split.test_inputs[:, None] - means) ** 2, axis=-1), axis=1)


def classifiers(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """Balanced error of a scikit-learn classifier, adjusted or weighted; on the host."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import NearestCentroid

    split = jax.tree.map(np.asarray, problem.draw(key))
    weight = "balanced" if arm.correction == "weighted" else None
    made: Any = {
        "logistic": LogisticRegression(max_iter=scale.iterations, class_weight=weight),
        "forest": RandomForestClassifier(scale.trees, random_state=0, class_weight=weight),
        "centroid": NearestCentroid(),
    }[arm.classifier]
    if arm.correction in ("adjusted", "tuned"):
        made = LogitAdjusted(made, tau="cv" if arm.correction == "tuned" else 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zeros of the forest are expected; so are classes with fewer rows than folds
        predicted = made.fit(split.inputs, split.labels).predict(split.test_inputs)
    each = np.array([np.mean(predicted[split.test_labels == c] != c) for c in range(problem.num_classes)])
    return {"error": jnp.asarray(each.mean()), "tau": jnp.asarray(getattr(made, "tau_", 0.0))}
