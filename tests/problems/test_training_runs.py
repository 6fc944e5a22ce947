"""Training runs and the car in its valley, against numbers worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems.unrolls.training_runs import CarInValley, TrainingRun

KEY = jax.random.key(0)


def by_hand(problem, weights, images, labels):
    """Cross-entropy and its gradient in NumPy, double precision."""
    first, last = (np.asarray(weights[name], np.float64) for name in ("first", "last"))
    hidden = np.tanh(images @ first)
    logits = hidden @ last
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    n = len(labels)
    loss = -np.log(p[np.arange(n), labels]).mean()
    delta = (p - np.eye(10)[labels]) / n
    return loss, {"first": images.T @ (delta @ last.T * (1 - hidden**2)), "last": hidden.T @ delta}


@pytest.mark.parametrize("kind", ["layers", "schedule"])
def test_two_steps_by_hand(kind):
    """Rate and momentum of each layer; a schedule's rate is that of its time; L_t is after the step, on others."""
    problem = TrainingRun(kind, horizon=4, hidden=3, batch=5)
    theta = {"log_rate": jnp.array([-1.0, -2.0])}
    if kind == "layers":
        theta["momentum"] = jnp.array([0.5, -0.5])
    state = problem.init(KEY, theta)
    weights = {name: np.asarray(w, np.float64) for name, w in state[0].items()}
    velocity = {name: np.zeros_like(w) for name, w in weights.items()}
    images, labels = np.asarray(problem.images, np.float64), np.asarray(problem.labels)
    others, other_labels = np.asarray(problem.others, np.float64), np.asarray(problem.other_labels)
    for t in range(2):
        key = jax.random.key(10 + t)
        state, loss = problem.step(key, theta, state)
        chosen = np.floor(np.asarray(jax.random.uniform(key, (5,)), np.float64) * len(labels)).astype(int)
        _, gradient = by_hand(problem, weights, images[chosen], labels[chosen])
        if kind == "layers":
            rates, momenta = np.exp([-1.0, -2.0]), 1 / (1 + np.exp([-0.5, 0.5]))
        else:
            rates, momenta = np.full(2, np.exp(-1.0 - t / 4)), np.full(2, 0.9)
        for i, name in enumerate(("first", "last")):
            velocity[name] = momenta[i] * velocity[name] - rates[i] * gradient[name]
            weights[name] = weights[name] + velocity[name]
        expected, _ = by_hand(problem, weights, others, other_labels)
        assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_accuracy_is_the_share_told_wrong_and_nan_is_the_worst():
    problem = TrainingRun("schedule", "accuracy", horizon=4, hidden=10)
    first = jnp.zeros((64, 10))
    state = ({"first": first, "last": jnp.zeros((10, 10))}, {"first": first, "last": jnp.zeros((10, 10))}, jnp.array(0))
    theta = {"log_rate": jnp.array([-50.0, -50.0])}  # as good as no step: all logits are 0, class 0 of all
    _, wrong = problem.step(KEY, theta, state)
    assert float(wrong) == pytest.approx(float(np.mean(np.asarray(problem.other_labels) != 0)))
    broken = jax.tree.map(lambda x: x * jnp.nan, state[0])
    assert float(problem.step(KEY, theta, (broken, *state[1:]))[1]) == problem.worst == 2.0
    loss = TrainingRun("layers", "loss", horizon=4, hidden=10)
    theta = loss.theta0(KEY)
    assert float(loss.step(KEY, theta, (broken, *state[1:]))[1]) == loss.worst == 10.0


def test_validation_images_are_not_trained_on():
    problem = TrainingRun()
    mine = {row.tobytes() for row in np.asarray(problem.images)}
    assert len(problem.other_labels) == 200
    assert not mine & {row.tobytes() for row in np.asarray(problem.others)}


def test_the_car_swings_out_only_by_going_back_first():
    """Full force uphill fails; force along the speed arrives, and stays there at no cost."""
    problem = CarInValley(horizon=200)

    def ride(theta):
        start = (jnp.array(-0.5), jnp.array(0.0))
        return jax.lax.scan(lambda s, _: problem.step(KEY, theta, s), start, length=200)

    run = jax.jit(ride)
    (straight, _), costs = run(jnp.array([50.0, 0.0, 0.0]))
    assert float(straight) < 0.5
    assert float(costs.min()) > 0.1
    (swung, speed), costs = run(jnp.array([0.1, 0.0, 50.0]))
    assert (float(swung), float(speed)) == (0.5, 0.0)
    assert float(costs[-1]) == pytest.approx(1 - np.sin(1.5), rel=1e-4)
    assert float(costs.mean()) < 1.2
    # one step by hand, from a place and a speed of its own
    (x, v), cost = problem.step(KEY, jnp.array([0.2, 0.3, -0.1]), (jnp.array(-0.7), jnp.array(0.02)))
    force = np.tanh(0.2 + 0.3 * -0.2 - 0.1 * 20 * 0.02)
    expected = 0.02 + 0.0015 * force - 0.0025 * np.cos(-2.1)
    assert (float(v), float(x)) == (pytest.approx(expected, rel=1e-5), pytest.approx(-0.7 + expected, rel=1e-5))
    assert float(cost) == pytest.approx(1 - np.sin(3 * (-0.7 + expected)), rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "depth"}, "kind must be 'layers' or 'schedule'"),
        ({"objective": "f1"}, "objective must be 'loss' or 'accuracy'"),
        ({"horizon": 0}, "horizon must be >= 1"),
        ({"batch": 0}, "batch must be >= 1"),
    ],
)
def test_bad_settings_are_told(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingRun(**settings)
    with pytest.raises(ValueError, match=r"CarInValley.truncation must be >= 1"):
        CarInValley(truncation=0)
