"""The loop: resumable anywhere, the same in parts, under vmap, and with any optimiser of Optax."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from laureate.gradients import PersistentES, TruncatedBackprop, full_unroll_loss, train

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_unroll.py"


class Pull(eqx.Module):
    """s ← 0.8 s + θ, L = (s − goal)²; with a batch, the goal is the batch's."""

    goal: jax.Array = eqx.field(default=1.0, converter=jnp.asarray)

    def init(self, key, theta):
        return jnp.zeros((), theta["a"].dtype)

    def step(self, key, theta, state, batch=None):
        state = 0.8 * state + theta["a"]
        return state, (state - (self.goal if batch is None else batch)) ** 2


KEY, THETA = jax.random.key(0), {"a": jnp.asarray(0.0)}
ESTIMATOR = PersistentES(Pull(), num_pairs=20, truncation=2, horizon=8, sigma=0.1, phase="random")
ADAM = optax.adam(0.02)


@jax.jit
def loss(theta):
    return full_unroll_loss(jax.random.key(0), Pull(), theta, 8)


@pytest.fixture(scope="module")
def gradient():
    """Of one step."""
    keys = jax.random.key(0), jax.random.key(1)
    return jax.jit(lambda first, second: ESTIMATOR.step(second, THETA, ESTIMATOR.init(first, THETA))[0])(*keys)


@pytest.fixture(scope="module")
def whole():
    return train(jax.random.key(5), ESTIMATOR, ADAM, THETA, 60, record=loss, every=20)


@pytest.mark.slow
def test_it_minimises(whole):
    theta, history = whole
    best = min(float(loss({"a": jnp.asarray(a)})) for a in np.linspace(0.1, 0.6, 51))
    assert history.recorded.shape == (3,)
    assert history.recorded[-1] < 1.3 * best < 0.5 * float(loss(THETA))
    assert_allclose(history.recorded[-1], loss(theta), rtol=1e-5)


def test_the_history_counts(whole):
    _, history = whole
    assert history.update.tolist() == [20, 40, 60]
    assert history.cost.tolist() == [20 * 80, 40 * 80, 60 * 80]  # 2 · 20 particles, 2 inner steps an update
    assert history.loss.shape == history.status.shape == history.num_nonfinite.shape == (60,)
    assert int(history.last.update) == 60


def test_parts_are_the_whole(whole):
    """Keys come from the absolute update, so neither where a run was interrupted nor how often it records is seen."""
    theta, history = train(jax.random.key(5), ESTIMATOR, ADAM, THETA, 40, record=loss, every=20)
    saved = jax.tree.map(lambda leaf: leaf, history.last)
    theta, history = train(jax.random.key(5), ESTIMATOR, ADAM, theta, 20, start=saved, record=loss, every=10)
    assert_array_equal(theta["a"], whole[0]["a"])
    assert history.update.tolist() == [50, 60]
    assert history.cost.tolist() == [50 * 80, 60 * 80]
    assert_array_equal(history.recorded[-1], whole[1].recorded[2])


@pytest.mark.slow
def test_vmap_over_keys_is_a_loop():
    run = lambda key: train(key, ESTIMATOR, ADAM, THETA, 10)[0]["a"]  # noqa: E731
    keys = jax.random.split(jax.random.key(1), 3)
    together = jax.jit(jax.vmap(run))(keys)
    assert_allclose(together, [run(key) for key in keys], rtol=1e-5)


def test_a_new_sigma_and_a_new_goal_compile_nothing():
    count = {"traces": 0}

    def record(theta):
        count["traces"] += 1
        return theta["a"]

    for sigma, goal in ((0.1, 1.0), (0.2, 1.0), (0.2, 2.0)):
        estimator = PersistentES(Pull(goal), num_pairs=4, truncation=2, horizon=8, sigma=sigma)
        train(jax.random.key(0), estimator, ADAM, THETA, 2, record=record)
    assert count["traces"] == 1


@pytest.mark.parametrize(
    "optimiser", [optax.sgd(0.01), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.01)), optax.lbfgs()]
)
def test_the_gradient_goes_into_any_optax_optimiser(optimiser, gradient):
    value_and_more = {"value": 1.0, "grad": gradient, "value_fn": lambda theta: theta["a"] ** 2}
    extra = value_and_more if isinstance(optimiser, optax.GradientTransformationExtraArgs) else {}
    update = lambda gradient: optimiser.update(gradient, optimiser.init(THETA), THETA, **extra)[0]  # noqa: E731
    assert jax.tree.structure(jax.eval_shape(update, gradient)) == jax.tree.structure(THETA)


def test_batches_come_by_the_absolute_update():
    goals = lambda update: jnp.full(2, 0.1) * update.astype(jnp.float32)  # noqa: E731
    estimator = TruncatedBackprop(Pull(), truncation=2, horizon=None)
    theta, history = train(jax.random.key(0), estimator, optax.sgd(0.0), THETA, 4, batches=goals)
    assert_allclose(history.loss, [0.0, 0.01, 0.04, 0.09], atol=1e-6)  # θ = 0: L = goal²
    _, history = train(jax.random.key(0), estimator, optax.sgd(0.0), theta, 2, start=history.last, batches=goals)
    assert_allclose(history.loss, [0.16, 0.25], atol=1e-6)


class Echo(eqx.Module):
    """An estimator whose loss is a number drawn from the key of its update."""

    def init(self, key, theta):
        return jax.random.uniform(key)

    def step(self, key, theta, state, batches):
        none = jnp.asarray(0)
        info = SimpleNamespace(
            loss=jax.random.uniform(key), status=none, num_nonfinite=none, num_unequal=None, cost=none
        )
        return theta, state, info


def test_no_two_updates_have_the_same_key():
    """Also beyond the twenty after which it records, and neither has that of the start."""

    @jax.jit
    def drawn(key):
        more = {"record": lambda theta: theta, "every": 20}
        history = train(key, Echo(), optax.sgd(0.0), jnp.asarray(0.5), 40, **more)[1]
        return jnp.append(history.loss, history.last.estimator)

    assert len(np.unique(drawn(jax.random.key(0)))) == 41


class Told(eqx.Module):
    """An estimator that counts its steps, and reports another multiple of the count in every field."""

    def init(self, key, theta):
        return jnp.asarray(0)

    def step(self, key, theta, state, batches):
        state = state + 1
        info = SimpleNamespace(
            loss=0.5 * state, status=2 * state, num_nonfinite=3 * state, num_unequal=0 * state, cost=5 * state
        )
        return jax.tree.map(jnp.ones_like, theta), state, info


def test_the_history_is_what_the_estimator_said(tmp_path):
    """In one go and in two, the second with a file of its own; what is recorded is θ after the update beside it."""
    optimiser, record = optax.sgd(0.25), lambda theta: 10 * theta
    _, whole = train(KEY, Told(), optimiser, 3.0, 6, record=record, every=2)
    theta, half = train(KEY, Told(), optimiser, 3.0, 4, record=record, every=2)
    _, rest = train(KEY, Told(), optimiser, theta, 2, start=half.last, record=record, checkpoint=tmp_path / "rest")
    count = np.arange(1, 7)
    for name, factor in {"loss": 0.5, "status": 2, "num_nonfinite": 3, "num_unequal": 0}.items():
        assert_allclose(getattr(whole, name), factor * count)
        assert_allclose([*getattr(half, name), *getattr(rest, name)], factor * count)
    for history, update in ((whole, [2, 4, 6]), (half, [2, 4]), (rest, [5, 6])):
        assert history.update.tolist() == update
        assert history.cost.tolist() == [5 * n * (n + 1) / 2 for n in update]
        assert_allclose(history.recorded, [10 * (3 - 0.25 * n) for n in update])
    assert (float(theta), float(half.last.theta)) == (2.0, 2.0)
    assert (int(rest.last.update), int(rest.last.estimator), float(rest.last.cost)) == (6, 6, 105.0)


def test_it_warns_once_where_the_two_signs_end_apart():
    class Race:
        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state + theta, state, state + theta > 1

    estimator = PersistentES(Race(), num_pairs=8, truncation=6, horizon=None, sigma=0.1)
    with pytest.warns(UserWarning, match="two signs of a pair ended at different steps") as warned:
        train(jax.random.key(0), estimator, optax.sgd(0.0), jnp.asarray(0.3), 3)
    assert len(warned) == 1


@pytest.mark.slow
def test_the_example_runs_and_learns(capsys):
    before, after = runpy.run_path(str(EXAMPLE))["main"](num_updates=120)
    assert after < before / 2
    assert "inner steps" in capsys.readouterr().out
