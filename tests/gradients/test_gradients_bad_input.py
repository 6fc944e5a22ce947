"""What is wrong is said at once, by name, and with what to do."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
from laureate.gradients import (
    GPES,
    RTRL,
    AnalyticPES,
    EstimatorState,
    FullES,
    NoiseReuseES,
    PersistentES,
    Sharded,
    TruncatedBackprop,
    TruncatedES,
    train,
)
from laureate.gradients.reports import checked

ES = {"num_pairs": 4, "truncation": 2, "horizon": 4, "sigma": 0.1}
KEY = jax.random.key(0)


class Good:
    def init(self, key, theta):
        return {"s": jnp.zeros(())}

    def step(self, key, theta, state):
        return {"s": state["s"] + theta["a"]}, state["s"] ** 2


THETA = {"a": jnp.asarray(0.5)}


def unroll(step=None, init=None):
    """``Good`` with another step or init."""
    return type("Odd", (Good,), {k: v for k, v in (("step", step), ("init", init)) if v is not None})()


@pytest.mark.parametrize("make", [PersistentES, FullES, TruncatedES, NoiseReuseES])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sigma": -1.0}, r"\.sigma must be > 0 and finite; got -1\.0\."),
        ({"sigma": 0.0}, r"\.sigma must be > 0 and finite; got 0\.0\."),
        ({"sigma": float("nan")}, r"\.sigma must be > 0 and finite; got nan\."),
        ({"sigma": {"a": 0.1, "b": -0.1}}, r"\.sigma must be > 0 and finite; got"),
        ({"num_pairs": 0}, r"\.num_pairs must be an integer >= 1; got 0"),
        ({"num_pairs": 2.5}, r"\.num_pairs must be an integer >= 1; got 2\.5"),
        ({"noise": "laplace"}, r"\.noise must be 'gaussian'; got 'laplace'\. The weight .* score function"),
        ({"phase": "staggered"}, r"\.phase must be 'lockstep' or 'random'; got 'staggered'"),
        ({"restart": "later"}, r"\.restart must be 'inside' or 'border'; got 'later'"),
        ({"telescope": "sums"}, r"\.telescope must be .*; got 'sums'"),
        ({"horizon": (5, 3)}, r"\.horizon must be \(low, high\), integers with 1 <= low <= high; got \(5, 3\)"),
    ],
)
def test_wrong_settings(make, settings, message):
    with pytest.raises(ValueError, match=make.__name__ + message):
        make(Good(), **(ES | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"truncation": 0}, r"\.truncation must be an integer >= 1; got 0"),
        ({"truncation": 5}, r"\.horizon must be an integer >= truncation \(5\); got 4\. Take a shorter truncation"),
        ({"horizon": 0}, r"\.horizon must be an integer >= truncation \(2\); got 0"),
        ({"horizon": None, "phase": "random"}, r"\.horizon must be known where phase is 'random'; got None"),
    ],
)
@pytest.mark.parametrize("make", [PersistentES, TruncatedES, TruncatedBackprop, RTRL])
def test_wrong_episodes(make, settings, message):
    known = {} if make in (TruncatedBackprop, RTRL) else {"num_pairs": 4, "sigma": 0.1}
    with pytest.raises(ValueError, match=make.__name__ + message):
        make(Good(), **({"truncation": 2, "horizon": 4} | known | settings))


def test_borders_only_names_both_numbers():
    with pytest.raises(ValueError, match=r"horizon must be a multiple of truncation \(2\) .* borders only; got 5"):
        PersistentES(Good(), **(ES | {"horizon": 5, "restart": "border"}))


def test_settings_of_one_estimator():
    with pytest.raises(ValueError, match=r"GPES\.noise_steps must be an integer >= 1, or None; got 0"):
        GPES(Good(), **ES, noise_steps=0)
    with pytest.raises(ValueError, match=r"FullES\.horizon must be an integer, or \(low, high\); got None"):
        FullES(Good(), **(ES | {"horizon": None}))
    with pytest.raises(ValueError, match=r"AnalyticPES\.phase must be 'lockstep'; got 'random'"):
        AnalyticPES(Good(), **ES, phase="random")
    with pytest.raises(ValueError, match=r"AnalyticPES\.horizon must be None or a multiple of truncation \(2\); got 5"):
        AnalyticPES(Good(), **(ES | {"horizon": 5}))
    with pytest.raises(ValueError, match=r"AnalyticPES\.telescope must be True or False; got 'products'"):
        AnalyticPES(Good(), **ES, telescope="products")
    with pytest.raises(ValueError, match=r"TruncatedBackprop\.num_workers must be an integer >= 1; got 0"):
        TruncatedBackprop(Good(), truncation=2, horizon=4, num_workers=0)
    with pytest.raises(ValueError, match=r"RTRL\.telescope must be True or False; got 'products'"):
        RTRL(Good(), truncation=2, horizon=4, telescope="products")
    with pytest.raises(TypeError, match="unexpected keyword argument 'population'"):
        PersistentES(Good(), population=7, **ES)  # type: ignore  # an odd population cannot even be asked for


def test_an_unroll_without_its_methods():
    with pytest.raises(TypeError, match=r"unroll must have a method 'init'; got int\. Give an object with init"):
        PersistentES(3, **ES)


@pytest.mark.parametrize("make", [PersistentES, TruncatedBackprop])
@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ({"a": jnp.asarray(0.5), "b": {"c": jnp.arange(3)}}, r"theta leaf 'b/c' has dtype int32; .* mark it static"),
        ({"a": jnp.asarray(0.5), "b": True}, r"theta leaf 'b' has dtype bool"),
        ({"a": jnp.asarray(0.5), "f": jax.nn.relu}, r"theta leaf 'f' is a custom_jvp; .*equinox\.partition"),
        ({}, r"theta must have at least one float leaf"),
    ],
)
def test_theta_that_cannot_be_perturbed(make, theta, message):
    known = {} if make is TruncatedBackprop else {"num_pairs": 4, "sigma": 0.1}
    estimator = make(Good(), truncation=2, horizon=4, **known)
    with pytest.raises(TypeError, match=message):
        estimator.init(KEY, theta)


def test_sigma_that_does_not_match_theta():
    with pytest.raises(ValueError, match="sigma must be a scalar or a tree like theta; the sigma tree does"):
        PersistentES(Good(), **(ES | {"sigma": {"b": 0.1}})).init(KEY, THETA)
    with pytest.raises(ValueError, match=r"scalars or shaped like theta's; got shape \[3\] where .* \[\]"):
        PersistentES(Good(), **(ES | {"sigma": {"a": np.full(3, 0.1)}})).init(KEY, THETA)
    with pytest.raises(ValueError, match="the sigma tree does not match theta"):
        PersistentES(Good(), **(ES | {"sigma": np.full(3, 0.1)})).init(KEY, THETA)


@pytest.mark.parametrize("make", [PersistentES, TruncatedBackprop])
@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            lambda self, key, theta, state: (state, theta["a"][None]),
            r"loss as a scalar .* floating; got float32\[1\]",
        ),
        (lambda self, key, theta, state: (state, 3), r"loss as a scalar of type floating; got int"),
        (lambda self, key, theta, state: (state, theta["a"], 1.0), r"done as a scalar of type bool; got float"),
        (lambda self, key, theta, state: state, r"must return \(state, loss\) or \(state, loss, done\); got dict"),
        (
            lambda self, key, theta, state: ({"s": jnp.zeros(2)}, theta["a"]),
            r"a state like the one it was given; leaf 's' was float32\[\] and became float32\[2\]",
        ),
        (
            lambda self, key, theta, state: ({"s": state["s"].astype(jnp.int32)}, theta["a"]),
            r"leaf 's' was float32\[\] and became int32\[\]",
        ),
        (
            lambda self, key, theta, state: ({"s": state["s"], "more": theta["a"]}, theta["a"]),
            r"its structure was .* and became .*more",
        ),
    ],
)
def test_a_step_that_does_not_fit(make, step, message):
    known = {} if make is TruncatedBackprop else {"num_pairs": 4, "sigma": 0.1}
    estimator = make(unroll(step), truncation=2, horizon=4, **known)
    with pytest.raises(TypeError, match=message):
        jax.eval_shape(lambda: estimator.step(KEY, THETA, estimator.init(KEY, THETA)))


def test_analytic_pes_refuses_a_done():
    estimator = AnalyticPES(unroll(lambda self, key, theta, state: (state, theta["a"], state["s"] > 1)), **ES)
    with pytest.raises(TypeError, match="AnalyticPES: an unroll that says `done` does not run in lockstep"):
        jax.eval_shape(lambda: estimator.step(KEY, THETA, estimator.init(KEY, THETA)))


def test_batches_of_the_wrong_length():
    with_batch = unroll(lambda self, key, theta, state, batch: (state, theta["a"] * batch))
    shape = lambda e, data: jax.eval_shape(lambda: e.step(KEY, THETA, e.init(KEY, THETA), data))  # noqa: E731
    message = r"step: batches must lead with \[2\] \(truncation\); got leaf '' of shape \[3\]"
    with pytest.raises(ValueError, match=message):
        shape(PersistentES(with_batch, **ES), np.zeros(3, np.float32))
    message = r"batches must lead with \[2, 4\] \(truncation, pairs\); got leaf 'x' of shape \[2, 8\]"
    with pytest.raises(ValueError, match=message):  # never an axis of particles: both signs must see the same
        shape(PersistentES(with_batch, **ES, batches_per_pair=True), {"x": np.zeros((2, 8), np.float32)})
    message = r"batches must lead with \[2, 3\] \(truncation, workers\); got leaf '' of shape \[2\]"
    workers = TruncatedBackprop(with_batch, truncation=2, horizon=4, num_workers=3, batches_per_worker=True)
    with pytest.raises(ValueError, match=message):
        shape(workers, np.zeros(2, np.float32))


def test_a_theta_of_another_shape_than_the_states():
    estimator = PersistentES(Good(), **ES)
    state = estimator.init(KEY, THETA)
    with pytest.raises(ValueError, match=r"for another theta; leaf 'a' was float32\[\] and became float32\[2\]"):
        estimator.step(KEY, {"a": jnp.zeros(2)}, state)
    with pytest.raises(ValueError, match="state was built for another theta; its structure"):
        estimator.step(KEY, {"a": 1.0, "b": 1.0}, state)
    estimator = RTRL(Good(), truncation=2, horizon=4)
    state = estimator.init(KEY, THETA)
    with pytest.raises(ValueError, match=r"state was built for theta with 1 numbers; got 2\. Call init again"):
        estimator.step(KEY, {"a": jnp.zeros(2)}, state)


@pytest.mark.parametrize("make", [PersistentES, TruncatedBackprop])
def test_checked_mode_raises_for_a_key_given_twice(make):
    known = {} if make is TruncatedBackprop else {"num_pairs": 2, "sigma": 0.1}
    estimator = make(Good(), truncation=2, horizon=4, checked=True, **known)
    step = eqx.filter_jit(estimator.step)
    state = estimator.init(KEY, THETA)
    _, state, _ = step(jax.random.key(1), THETA, state)
    _, state, _ = step(jax.random.key(2), THETA, state)
    with pytest.raises(eqx.EquinoxRuntimeError, match="the same key was given twice"):
        step(jax.random.key(2), THETA, state)


def test_checked_mode_raises_for_a_loss_that_is_not_finite():
    estimator = PersistentES(unroll(lambda self, key, theta, state: (state, jnp.log(-theta["a"]))), **ES, checked=True)
    with pytest.raises(eqx.EquinoxRuntimeError, match="a particle's loss is not finite"):
        eqx.filter_jit(estimator.step)(jax.random.key(1), THETA, estimator.init(KEY, THETA))


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("status", [Status.OK, Status.DIVERGED])
@pytest.mark.parametrize("num_nonfinite", [0, 1])
def test_checked_mode_raises_for_each_of_its_reasons_alone(num_nonfinite, status, same):
    """Of all estimators: a loss left out, a gradient that is not finite though all losses are, the last step's key."""
    info = SimpleNamespace(num_nonfinite=jnp.asarray(num_nonfinite), status=jnp.asarray(int(status)))
    last = EstimatorState(last_key=jax.random.key_data(jax.random.key(2 if same else 1)))
    given = (SimpleNamespace(checked=True), jax.random.key(2), jnp.zeros(2), last, info)
    if num_nonfinite or same or status != Status.OK:
        words = "loss is not finite" if num_nonfinite or status != Status.OK else "the same key was given twice"
        with pytest.raises(RuntimeError, match=words):
            checked(*given)
    else:
        np.testing.assert_array_equal(checked(*given)[1], jax.random.key_data(jax.random.key(2)))


def test_training():
    estimator = PersistentES(Good(), **ES)
    with pytest.raises(ValueError, match=r"train\.num_updates must be an integer >= 1; got 0"):
        train(KEY, estimator, optax.sgd(0.1), THETA, 0)
    with pytest.raises(ValueError, match=r"train.every must be a divisor of num_updates \(10\); got 3"):
        train(KEY, estimator, optax.sgd(0.1), THETA, 10, every=3)
    with pytest.raises(TypeError, match="theta leaf 'a' has dtype int32"):
        train(KEY, estimator, optax.sgd(0.1), {"a": 1}, 10)


def test_sharding():
    mesh = jax.make_mesh((1,), ("pairs",))
    with pytest.raises(ValueError, match=r"Sharded.axis must be one of the mesh's axes \('pairs',\); got 'workers'"):
        Sharded(PersistentES(Good(), **ES), mesh, "workers")
    with pytest.raises(ValueError, match=r"batches_per_pair must be False; got True\. The shared state"):
        Sharded(TruncatedES(Good(), **ES, batches_per_pair=True), mesh)
