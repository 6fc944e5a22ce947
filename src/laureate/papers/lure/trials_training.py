"""Training with weights: a line on chosen points, and networks on labels that they chose."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from laureate.active import WEIGHTS, Acquisition, AcquisitionState, bias_report
from laureate.lab.claim import Settings
from laureate.problems.classifiers import Perceptron
from laureate.problems.pools import LabelledPool, nats_and_entropy

__all__ = ["line", "network"]


def chosen_weights(estimator: Array | float, log_q: Array, num_pool: int) -> Array:
    """The weights of a number: 0 LURE, 1 PURE, 2 importance weights, 3 none."""
    found = jnp.stack([weights(log_q, num_pool, log=True) for weights in WEIGHTS.values()])
    return found[jnp.asarray(estimator).astype(jnp.int32)]


def line(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """The error on the pool of lines fitted to labels chosen by their distance to earlier ones."""
    pool_key, pick_key = jax.random.split(key)
    x, y = problem.draw(pool_key)
    num_pool = x.shape[0]
    acquisition = Acquisition(floor=arm.floor)
    features = jnp.stack([jnp.ones_like(x), x], axis=1)

    def session(key):
        def step(carry, key):
            nearest, state = carry
            pick, state, info = acquisition.step(key, nearest, state)
            return (jnp.minimum(nearest, jnp.abs(x - x[pick]) + 1e-6), state), (pick, info.log_q)

        far = jnp.full(x.shape, 10.0)  # before the first label all points are equally far
        keys = jax.random.split(key, max(scale.labels))
        _, (picks, log_q) = jax.lax.scan(step, (far, acquisition.init(num_pool)), keys)

        def fitted(count):
            a, b = features[picks[:count]], y[picks[:count]]
            v = chosen_weights(arm.estimator, log_q[:count], num_pool)
            gram = (a * v[:, None]).T @ a / count + scale.ridge * jnp.eye(2)
            coefficients = jnp.linalg.solve(gram, a.T @ (v * b) / count)
            return jnp.log(jnp.mean((features @ coefficients - y) ** 2))

        return jnp.stack([fitted(count) for count in scale.labels])

    log_error = jnp.mean(jax.vmap(session)(jax.random.split(pick_key, scale.runs)), axis=0)
    return {"log_error_ten": log_error[1], "log_error": log_error, "labels": jnp.asarray(scale.labels, x.dtype)}


def network(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """A network that chooses its labels, then trained on them with weights; its accuracy and both biases."""
    data_key, choose_key, train_key = jax.random.split(key, 3)
    pool = problem.draw(data_key)
    num_pool = pool.inputs.shape[0]
    picks, log_q = choose(choose_key, arm, pool, scale)
    inputs, labels = pool.inputs[picks], pool.labels[picks]
    v = chosen_weights(arm.estimator, log_q, num_pool) ** arm.alpha
    v = jnp.where(arm.reduced > 0.5, jnp.mean(v), v)
    model = train(train_key, arm.hidden, inputs, labels, v, scale)
    nats, _ = nats_and_entropy(model(pool.test_inputs), pool.test_labels)
    report = bias_report(nats_and_entropy(model(inputs), labels)[0], log_q, num_pool, jnp.mean(nats), log=True)
    right = jnp.argmax(model(pool.test_inputs), axis=1) == pool.test_truth
    return {
        "accuracy": jnp.mean(right.astype(nats.dtype)),
        "nats": jnp.mean(nats),
        "active_bias": report.active,
        "overfitting_bias": report.overfitting,
        "opposite": jnp.minimum(-report.active, report.overfitting),
        "excess": report.overfitting - jnp.abs(report.active),
        "effective": jnp.sum(v) ** 2 / jnp.sum(v**2),
    }


def choose(key: Array, arm: Settings, pool: LabelledPool, scale: Settings) -> tuple[Array, Array]:
    """Picks and log q: ``scale.first`` at random, then rounds of ``scale.batch`` by the entropy of a model so far."""
    first_key, round_key = jax.random.split(key)
    count = scale.first + scale.rounds * scale.batch
    num_pool = pool.inputs.shape[0]
    acquisition = Acquisition(beta=scale.beta, floor=arm.floor, kind="softmax")
    uniform = Acquisition(floor=1.0)

    def several(rule: Acquisition, key: Array, scores: Array, state: AcquisitionState, number: int) -> Any:
        def step(state, key):
            pick, state, info = rule.step(key, scores, state)
            return state, (pick, info.log_q)

        return jax.lax.scan(step, state, jax.random.split(key, number))

    state, (picks, log_q) = several(uniform, first_key, jnp.ones(num_pool), uniform.init(num_pool), scale.first)
    picks, log_q = (jnp.zeros(count, x.dtype).at[: scale.first].set(x) for x in (picks, log_q))

    def one_round(carry, number):
        picks, log_q, state = carry
        train_key, pick_key = jax.random.split(jax.random.fold_in(round_key, number))
        known = scale.first + number * scale.batch
        # Slots without a label yet have weight 0; the mean is over those that have one.
        weights = jnp.where(jnp.arange(count) < known, count / known, 0.0)
        model = train(train_key, arm.hidden, pool.inputs[picks], pool.labels[picks], weights, scale)
        _, entropy = nats_and_entropy(model(pool.inputs), pool.labels)
        state, found = several(acquisition, pick_key, entropy, state, scale.batch)
        picks, log_q = (
            jax.lax.dynamic_update_slice(old, new.astype(old.dtype), (known,))
            for old, new in zip((picks, log_q), found, strict=True)
        )
        return (picks, log_q, state), None

    (picks, log_q, _), _ = jax.lax.scan(one_round, (picks, log_q, state), jnp.arange(scale.rounds))
    return picks, log_q


def train(key: Array, hidden: int, inputs: Array, labels: Array, weights: Array, scale: Settings) -> Perceptron:
    """Full-batch Adam from new weights on the weighted mean of the losses."""
    start = Perceptron(key, (inputs.shape[1], hidden, 10) if hidden else (inputs.shape[1], 10))
    optimiser = optax.adam(scale.rate)

    def cost(model):
        return jnp.mean(weights * nats_and_entropy(model(inputs), labels)[0])

    def step(carry, _):
        model, state = carry
        updates, state = optimiser.update(jax.grad(cost)(model), state)
        return (optax.apply_updates(model, updates), state), None

    return jax.lax.scan(step, (start, optimiser.init(start)), length=scale.steps)[0][0]  # pyright: ignore
