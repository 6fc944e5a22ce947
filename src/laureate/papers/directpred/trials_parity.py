"""DirectPred beside BYOL's own predictor of two layers: what a probe of the frozen features gets from each."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.lab.claim import Settings
from laureate.representation import DirectPred, Siamese, TwoLayer, knn_probe, linear_probe

__all__ = ["parity"]


def parity(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Accuracy of two probes on plain test images; the random encoder is the one that training starts from.

    The same few labelled images and the same views for every arm of a seed.
    """
    model = problem.model0(jax.random.fold_in(key, 0))
    if arm.predictor != "random":
        model = _trained(key, arm, problem, scale, model)

    def judged(probe: Any, chosen: Array, **settings: Any) -> Array:
        known, labels = problem.features(model, problem.images[chosen]), problem.labels[chosen]
        tests = problem.features(model, problem.test_images)
        return probe(known, labels, tests, problem.test_labels, problem.classes, **settings).value

    return {
        "few_label": judged(linear_probe, problem.few(jax.random.fold_in(key, 4), scale.per_class)),
        "neighbours": judged(knn_probe, problem.few(jax.random.fold_in(key, 5), scale.bank_per_class), k=20),
    }


def _trained(key: Array, arm: Settings, problem: Any, scale: Settings, model: Any) -> Any:
    """The online network after ``scale.steps`` steps with the arm's predictor."""
    predictors = {
        "direct-pred": lambda: DirectPred(problem.dim, rho=arm.rho, epsilon=arm.eps, freq=arm.freq),
        "two-layer": lambda: TwoLayer(problem.dim, hidden=4 * problem.dim),  # the authors' 512 for 128
    }
    descent = optax.chain(optax.add_decayed_weights(arm.decay), optax.sgd(arm.learning_rate, momentum=arm.heavy_ball))
    siamese = Siamese(predictors[arm.predictor](), descent, momentum=arm.momentum, loss=arm.loss, apply=problem.apply)
    start = siamese.init(jax.random.fold_in(key, 1), model)
    batches = jax.random.fold_in(key, 3)

    def step(state, t):
        state, _ = siamese.step(state, *problem.views(jax.random.fold_in(batches, t), scale.batch))
        return state, None

    last, _ = jax.lax.scan(step, start, jnp.arange(scale.steps))
    return last.online
