"""Where the best rule is known: two Gaussians, losses minimised at one input, true posteriors, and an identity."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.stats import norm
from jaxtyping import Array

from laureate.imbalance import (
    LOSSES,
    adjust,
    class_counts,
    cross_entropy,
    log_prior,
    logit_adjusted_cross_entropy,
    pairwise_margin_cross_entropy,
)
from laureate.lab.claim import Settings
from laureate.problems.classifiers import Perceptron

__all__ = ["family", "gaussians", "identity", "posteriors"]

BAYES = 0.07864960352514258  # Φ(-√2), the balanced error of the best rule


def gaussians(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Balanced error beyond the best rule's of logistic regression on two Gaussians at ±(1, 1), one of them rare.

    An arm is a weight 1/π_y^weight of each row, an offset τ log π in the loss, one after training, or undersampling.
    """
    del problem

    def excess(key, n):
        label_key, row_key, drop_key = jax.random.split(key, 3)
        positive = jnp.arange(n) < jnp.maximum(2, jnp.round(n * scale.rare))
        positive = jax.random.permutation(label_key, positive)
        x = jax.random.normal(row_key, (n, 2)) + jnp.where(positive, 1.0, -1.0)[:, None]
        prior = log_prior(class_counts(positive.astype(jnp.int32), 2))
        odds = prior[1] - prior[0]
        weights = jnp.exp(-arm.weight * prior[positive.astype(jnp.int32)])
        # Undersampling: as many negative rows as there are positive ones, by chance.
        rank = jnp.argsort(jnp.argsort(jnp.where(positive, jnp.inf, jax.random.uniform(drop_key, (n,)))))
        weights = jnp.where(arm.under > 0.5, positive | (rank < jnp.sum(positive)), weights)
        slope, bias = _newton(x, positive, weights / jnp.sum(weights), arm.inside * odds, scale.ridge / n)
        bias = bias - arm.after * odds
        means = [jnp.sum(jnp.where(side[:, None], x, 0.0), axis=0) / jnp.sum(side) for side in (positive, ~positive)]
        centre = means[0] - means[1]
        middle = -centre @ (means[0] + means[1]) / 2
        slope = jnp.where(arm.centroid > 0.5, centre, slope)
        bias = jnp.where(arm.centroid > 0.5, middle, bias)
        length = jnp.linalg.norm(slope)
        wrong = norm.cdf(-(jnp.sum(slope) + bias) / length) + norm.cdf(-(jnp.sum(slope) - bias) / length)
        return wrong / 2 - BAYES

    found = []
    for place, n in enumerate(scale.rows):
        keys = jax.random.split(jax.random.fold_in(key, place), scale.runs)
        found.append(jnp.mean(jax.lax.map(lambda k, n=n: excess(k, n), keys)))
    log_excess = jnp.log(jnp.stack(found))
    return {
        "excess_most": found[-1],
        "log_excess_some": log_excess[1],
        "log_excess": log_excess,
        "log_rows": jnp.log(jnp.asarray(scale.rows, log_excess.dtype)),
    }


def _newton(x: Array, positive: Array, weights: Array, offset: Array, ridge: Array) -> tuple[Array, Array]:
    """Weighted logistic regression with an offset inside the loss and a penalty on the slope, by Newton's method."""
    features = jnp.concatenate([x, jnp.ones((x.shape[0], 1))], axis=1)
    penalty = ridge * jnp.diag(jnp.array([1.0, 1.0, 1e-3]))

    def step(theta, _):
        p = jax.nn.sigmoid(features @ theta + offset)
        gradient = features.T @ (weights * (p - positive)) + penalty @ theta
        hessian = (features.T * (weights * p * (1 - p))) @ features + penalty
        move = jnp.linalg.solve(hessian, gradient)
        return theta - move * jnp.minimum(1.0, 3.0 / jnp.linalg.norm(move)), None

    # From the offset's own bias, so that all arms begin with the same predictions.
    start = jnp.array([0.0, 0.0, 0.0]).at[2].set(-offset)
    theta, _ = jax.lax.scan(step, start, length=25)
    return theta[:2], theta[2]


def family(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Minimise a loss at one input with known class probabilities: is log η/π found, and the right class?"""
    del problem

    def one(key):
        eta_key, prior_key, delta_key = jax.random.split(key, 3)
        eta = jax.nn.softmax(1.5 * jax.random.normal(eta_key, (scale.classes,)))
        prior = jax.nn.softmax(1.5 * jax.random.normal(prior_key, (scale.classes,)))
        delta = jnp.exp(jax.random.normal(delta_key, (scale.classes,)))
        labels = jnp.arange(scale.classes)

        def risk(free):
            logits = jnp.broadcast_to(jnp.append(free, 0.0), (scale.classes, scale.classes))
            if arm.loss == "family":
                margin = jnp.log(delta[None, :] / delta[:, None])
                losses = pairwise_margin_cross_entropy(logits, labels, delta / prior, margin)
            else:
                losses = LOSSES[arm.loss](logits, labels, jnp.log(prior))
            return eta @ losses

        def step(free, _):
            move = jnp.linalg.solve(jax.hessian(risk)(free) + 1e-12 * jnp.eye(free.size), jax.grad(risk)(free))
            return free - move * jnp.minimum(1.0, 0.5 / jnp.linalg.norm(move)), None

        free, _ = jax.lax.scan(step, jnp.zeros(scale.classes - 1), length=scale.steps)
        logits, best = jnp.append(free, 0.0), jnp.log(eta / prior)
        distance = jnp.max(jnp.abs(logits - logits.mean() - best + best.mean()))
        return distance, jnp.argmax(logits) != jnp.argmax(best)

    distance, wrong = jax.vmap(one)(jax.random.split(key, scale.inputs))
    return {"log10_distance": jnp.log10(jnp.max(distance) + 1e-17), "wrong": jnp.mean(wrong.astype(distance.dtype))}


def posteriors(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Balanced and plain error by τ, with the true posteriors of three Gaussians in the plane at random places."""
    del arm, problem
    place_key, row_key = jax.random.split(key)
    means = 1.5 * jax.random.normal(place_key, (3, 2))
    prior = jnp.log(jnp.asarray(scale.prior))
    rows = means[:, None] + jax.random.normal(row_key, (3, scale.rows, 2))
    logits = -0.5 * jnp.sum((rows[:, :, None] - means) ** 2, axis=-1) + prior

    def errors(tau):
        wrong = jnp.argmax(adjust(logits, prior, tau=tau), axis=-1) != jnp.arange(3)[:, None]
        each = jnp.mean(wrong.astype(prior.dtype), axis=1)
        return jnp.mean(each), jnp.exp(prior) @ each

    taus = jnp.asarray(scale.taus)
    balanced, plain = jax.vmap(errors)(taus)
    one = int(np.argmin(np.abs(np.asarray(scale.taus) - 1)))
    return {
        "gap": balanced[one] - jnp.min(balanced),
        "price": plain[one] - jnp.min(plain),
        "balanced": balanced,
        "plain": plain,
        "tau": taus,
    }


def identity(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """Train with the adjusted loss, and plainly from a bias of τ log π: how far apart are the parameters?"""
    data_key, start_key = jax.random.split(key)
    split = problem.draw(data_key)
    prior = log_prior(class_counts(split.labels, problem.num_classes))
    start = Perceptron(start_key, (split.inputs.shape[1], scale.hidden, problem.num_classes))
    moved = _shifted(start, arm.tau * prior)
    optimiser = optax.adam(1e-2)

    def trained(loss, model):
        def cost(model):
            decay = arm.decay * sum(jnp.sum(b**2) for b in model.biases)
            return jnp.mean(loss(model(split.inputs))) + decay

        def step(carry, _):
            model, state = carry
            updates, state = optimiser.update(jax.grad(cost)(model), state)
            return (optax.apply_updates(model, updates), state), None

        return jax.lax.scan(step, (model, optimiser.init(model)), length=scale.steps)[0][0]

    inside = trained(lambda f: logit_adjusted_cross_entropy(f, split.labels, prior, tau=arm.tau), start)
    plain = _shifted(trained(lambda f: cross_entropy(f, split.labels, prior), moved), -arm.tau * prior)  # pyright: ignore
    apart = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), inside, plain)
    return {"log10_apart": jnp.log10(jnp.max(jnp.stack(jax.tree.leaves(apart))) + 1e-17)}


def _shifted(model: Perceptron, shift: Array) -> Perceptron:
    return jax.tree.unflatten(
        jax.tree.structure(model), [*jax.tree.leaves(model)[:-1], jax.tree.leaves(model)[-1] + shift]
    )
