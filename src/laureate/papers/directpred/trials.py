"""DirectPred: the linear theory, and training with each predictor on any pair of views."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.lab.claim import Settings
from laureate.problems.views import SharedDirections
from laureate.representation import (
    DirectCopy,
    DirectPred,
    Identity,
    Linear,
    LinearDynamics,
    LinearState,
    ModeDynamics,
    Siamese,
    alignment,
    collapse_report,
    effective_rank,
    knn_probe,
    linear_probe,
)

__all__ = ["accuracy", "collapse", "modes", "pairs", "shared_directions"]


def modes(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """A random isotropic problem a seed: the matrices' flow against the two equations of each mode, and the basin."""
    del arm, problem
    draws = jax.random.uniform(jax.random.fold_in(key, 0), (4,))
    theory = ModeDynamics(
        variance=draws[0], decay=0.005 + 0.045 * draws[1], ratio=0.7 + 0.6 * draws[2], predictor_rate=0.5 + draws[3]
    )
    size, inputs = scale.size, 2 * scale.size
    flow = LinearDynamics(
        jnp.eye(inputs),
        theory.variance * jnp.eye(inputs),
        decay=theory.decay,
        ratio=theory.ratio,
        predictor_rate=theory.predictor_rate,
        target_rate=None,
        symmetric=True,
    )
    u, _ = jnp.linalg.qr(jax.random.normal(jax.random.fold_in(key, 1), (size, size)))
    rows, _ = jnp.linalg.qr(jax.random.normal(jax.random.fold_in(key, 2), (inputs, size)))
    p, s = jax.random.uniform(jax.random.fold_in(key, 3), (2, size), minval=0.1, maxval=1.0)
    w = (u * jnp.sqrt(s)[None, :]) @ rows.T
    last = flow.simulate(LinearState(w, (u * p[None, :]) @ u.T, w), time=10.0, num_steps=scale.steps)
    expected_p, expected_s = theory.simulate(p, s, 10.0, scale.steps)
    found_p = jnp.diag(u.T @ last.predictor @ u)
    found_s = jnp.diag(u.T @ last.online @ last.online.T @ u)
    error = jnp.maximum(jnp.max(jnp.abs(found_p - expected_p)), jnp.max(jnp.abs(found_s - expected_s)))

    # From a predictor with eigenvectors of its own: they turn into those of the correlation.
    v, _ = jnp.linalg.qr(jax.random.normal(jax.random.fold_in(key, 4), (size, size)))
    late = flow.simulate(LinearState(w, (v * p[None, :]) @ v.T, w), time=200.0, num_steps=20 * scale.steps)

    below, above = theory.rests()
    starts = below * jnp.linspace(0.5, 1.5, 10)  # five below the boundary, five above; none on it
    ends, _ = theory.simulate(starts, starts**2 / theory.predictor_rate, 4000.0, 40 * scale.steps)
    right = jnp.where(starts < below, jnp.abs(ends) < 0.1 * above, jnp.abs(ends - above) < 0.1 * above)
    return {
        "mode_error": error,
        "misalignment": alignment(late.online @ late.online.T, late.predictor),
        "right_fates": jnp.mean(right.astype(jnp.float32)),
    }


def shared_directions(key: Array, arm: Settings, problem: SharedDirections, scale: Settings) -> dict[str, Array]:
    """A linear network on Gaussian views: does it keep every shared direction, and nothing else?"""
    model, state, _ = _train(key, arm, problem, scale)
    correlation = _correlation(problem.outputs(model, jax.random.fold_in(key, 2), 1024))
    return {
        "energy": problem.energy(model),
        "rank": effective_rank(problem.spectrum(model)),
        "misalignment": alignment(correlation, _matrix(arm, state, problem.dim)),
    }


def collapse(key: Array, arm: Settings, problem: SharedDirections, scale: Settings) -> dict[str, Array]:
    """log10 of E‖z‖² over its start, with the theory's l2 loss; uncentred, for a constant would be dead as well."""
    model, _, _ = _train(key, arm, problem, scale)
    first = problem.model0(jax.random.fold_in(key, 0))
    size = lambda m: jnp.mean(jnp.sum(problem.outputs(m, jax.random.fold_in(key, 2), 1024) ** 2, axis=1))  # noqa: E731
    log_size = jnp.log10(jnp.maximum(size(model) / size(first), 1e-12))
    # Without a predictor d log‖W‖²/dt = −2σ² in every direction; two losses a step double the rate.
    predicted = jnp.log10(jnp.exp(-4.0 * problem.floor**2 * arm.learning_rate * scale.steps))
    return {"log_size": log_size, "rate_ratio": log_size / jnp.maximum(predicted, -12.0)}


def pairs(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Any network on any pairs of views: the outputs' effective rank and spread, and the predictor's alignment."""
    model, state, spreads = _train(key, arm, problem, scale)
    z = problem.outputs(model, jax.random.fold_in(key, 2), scale.judged)
    report = collapse_report(z)
    return {
        "rank": report.effective_rank,
        "log_rank": jnp.log10(report.effective_rank),
        "spread": report.spread,
        "misalignment": alignment(_correlation(z), _matrix(arm, state, problem.dim)),
        "spread_curve": spreads.reshape(scale.points, -1).mean(axis=1),
        "steps": (jnp.arange(scale.points) + 1.0) * (scale.steps // scale.points),
    }


def accuracy(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """What the frozen features know of labels that training never saw, on plain and on augmented test images.

    The same few labelled images, test images and views for every arm of a seed; the random encoder is the one that
    training starts from.
    """
    if arm.predictor == "random":
        model = problem.model0(jax.random.fold_in(key, 0))
    else:
        model, _, _ = _train(key, arm, problem, scale)
    features = lambda images: problem.features(model, images)  # noqa: E731
    few = problem.few(jax.random.fold_in(key, 4), scale.per_class)
    bank = problem.few(jax.random.fold_in(key, 5), scale.bank_per_class)
    tests = jnp.stack(
        [
            features(problem.test_images),
            features(problem.augmented(jax.random.fold_in(key, 6), problem.test_images)),
        ]
    )

    def both(probe: Any, chosen: Array, **settings: Any) -> Array:
        known, labels = features(problem.images[chosen]), problem.labels[chosen]
        judge = lambda test: probe(known, labels, test, problem.test_labels, problem.classes, **settings).value  # noqa: E731
        return jax.vmap(judge)(tests)

    few_label, neighbours = both(linear_probe, few), both(knn_probe, bank, k=20)
    return {
        "few_label": few_label[0],
        "few_label_augmented": few_label[1],
        "neighbours": neighbours[0],
        "neighbours_augmented": neighbours[1],
    }


def _train(key: Array, arm: Settings, problem: Any, scale: Settings) -> tuple[Any, Any, Array]:
    """The trained model, the predictor's last state, and the spread at every step."""
    descent = optax.sgd(arm.learning_rate, momentum=arm.get("heavy_ball"))
    optimiser = optax.chain(optax.add_decayed_weights(arm.decay), descent)
    siamese = Siamese(
        _predictor(arm, problem.dim),
        optimiser,
        momentum=None if arm.target == "itself" else arm.momentum,
        loss=arm.loss,
        stop_gradient=arm.stop_gradient,
        apply=problem.apply,
    )
    start = siamese.init(jax.random.fold_in(key, 1), problem.model0(jax.random.fold_in(key, 0)))
    batches = jax.random.fold_in(key, 3)

    def step(state, t):
        state, info = siamese.step(state, *problem.views(jax.random.fold_in(batches, t), scale.batch))
        return state, info.spread

    last, spreads = jax.lax.scan(step, start, jnp.arange(scale.steps))
    return last.online, last.predictor, spreads


def _predictor(arm: Settings, dim: int) -> Any:
    if arm.predictor == "direct-pred":
        return DirectPred(dim, rho=arm.rho, epsilon=arm.eps, freq=arm.freq)
    if arm.predictor == "direct-copy":
        return DirectCopy(dim, rho=arm.rho, epsilon=arm.eps, freq=arm.freq)
    return {"none": Identity, "linear": Linear}[arm.predictor](dim)


def _matrix(arm: Settings, state: Any, dim: int) -> Array:
    """W_p, whichever predictor it is."""
    if arm.predictor == "none":
        return jnp.eye(dim)
    return state if arm.predictor == "linear" else state.matrix


def _correlation(z: Array) -> Array:
    return z.T @ z / z.shape[0]
