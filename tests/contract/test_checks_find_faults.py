"""A small sound method of each kind passes its check; each fault planted in it is reported by the right property."""

import itertools
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import Tracer
from jax.experimental import io_callback
from planted_methods import KINDS, UNBROKEN, bonus
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from laureate import loops
from laureate._core import Status
from laureate.testing import (
    ContractError,
    KeyRecorder,
    check_confidence_intervals,
    check_decentralized_optimiser,
    check_function,
    check_gradient_estimator,
    check_keys,
    check_knockoff_sampler,
    check_learner,
    check_pde_solver,
    check_prediction_sets,
    check_random_function,
    check_recovery_solver,
    check_representation_loss,
    check_representation_trainer,
    check_resumable,
    check_sampler,
    check_settings,
    check_standard_error,
    pairwise,
)
from laureate.testing._checks import Check, every_number_is_used, same_bits
from laureate.testing._driving import training_by_pairs
from laureate.uncertainty import PACConfidence


def reported(check, *arguments, **settings):
    """The property that a check finds broken, and its words."""
    with pytest.raises(ContractError) as caught:
        check(*arguments, **settings)
    words = str(caught.value)
    assert "expected" in words
    assert "got" in words
    return caught.value.property


@cache
def properties(check):
    """Those that the sound method passes: all."""
    return frozenset(check())


# The property alone, which compiles less; and, slow, all in their order: none before it reports the fault either.
ALONE = pytest.mark.parametrize("alone", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["alone", "of all"])


def reported_of(check, fault, property, alone):
    return reported(check, fault, skip=properties(check) - {property} if alone else ())


class Info(NamedTuple):
    cost: Any
    status: Any
    loss: Any = 0.0
    num_nonfinite: Any = 0
    acceptance_rate: Any = 1.0
    spread: Any = 1.0


OK = jnp.asarray(int(Status.OK))


class Estimator(eqx.Module):
    """∇ of ½(1 + sigma)‖θ‖² with noise, and a count of steps in its state."""

    sigma: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def init(self, key, theta):
        count = jnp.zeros((), jnp.int32)
        if self.fault == "key of init":  # drawn from here, and handed on
            return count, jax.random.key_data(key) + 0 * jax.random.bits(key)
        return (count, jax.random.key(0)) if self.fault == "typed key" else (count, jnp.zeros(()))

    def step(self, key, theta, state):
        count, memory = state
        first, second = jax.random.split(key)
        if self.fault == "one key twice":
            second = first
        if self.fault == "key of init":
            second = jax.random.fold_in(jax.random.wrap_key_data(memory), 0)
            second = jax.lax.cond(count == 0, lambda: jax.random.wrap_key_data(memory), lambda: second)
        noise = jax.random.normal(first, theta.shape) + jax.random.uniform(second, theta.shape)
        if self.fault == "key ignored":
            noise = jnp.ones(theta.shape)
        sigma = 0.1 if self.fault == "number ignored" else self.sigma
        if self.fault == "vmap":  # a sum over what vmap has made a batch of
            noise = jax.custom_batching.custom_vmap(lambda x: x)
            noise.def_vmap(lambda size, batched, x: (x.sum(0, keepdims=True) + 0 * x, batched[0]))
            noise = noise(jax.random.normal(first, theta.shape))
        gradient = (1 + sigma) * theta + sigma * noise.astype(theta.dtype) + 0.01 * count
        gradient = (gradient if self.fault == "dtype" else gradient.astype(theta.dtype)) * jnp.ones_like(gradient)
        if self.fault == "dtype":
            gradient = gradient + np.ones(theta.shape, np.float32)
        gradient = gradient[:1] if self.fault == "shape" else gradient
        gradient = 0 * gradient if self.fault == "zero" else gradient
        count = count + 1.0 if self.fault == "state" else count + 1
        status = Status.DIVERGED if self.fault == "status" else Status.OK
        cost = 3 if self.fault == "cost" else 2
        return gradient, (count, memory), Info(jnp.asarray(cost), jnp.asarray(int(status)), jnp.asarray(1.0))


class Static(Estimator):
    """The number is compiled in."""

    sigma: Any = eqx.field(static=True, default=0.1)


class Forgetful(Estimator):
    """It remembers outside its state."""

    calls: list = eqx.field(static=True, default_factory=list)

    def step(self, key, theta, state):
        gradient, state, info = super().step(key, theta, state)
        extra = io_callback(lambda: np.float32(self.calls.append(1) or len(self.calls)), OK_FLOAT)
        return gradient + extra, state, info


COUNT = itertools.count()
OK_FLOAT = jax.ShapeDtypeStruct((), np.float32)
THETA = jnp.asarray([1.0, -2.0])


def check_estimator(fault="", kind: Any = Estimator, **settings):
    given = {"others": [kind(sigma=0.2, fault=fault)], "cost": 2} | settings
    return check_gradient_estimator(kind(sigma=0.1, fault=fault), THETA, **given)


def test_a_sound_estimator_passes_all():
    names = properties(check_estimator)
    assert {"saved and loaded", "vmap over keys is a loop", "keys are used once", "float64", "bfloat16"} <= names
    assert len(names) == 13


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("shape", "gradient like theta"),
        ("zero", "gradient like theta"),
        ("status", "report"),
        ("cost", "report"),
        ("state", "state shapes"),
        ("key ignored", "another key, other bits"),
        ("number ignored", "every number is used"),
        ("typed key", "saved and loaded"),
        ("one key twice", "keys are used once"),
        ("key of init", "keys are used once"),
        ("vmap", "vmap over keys is a loop"),
        ("dtype", "bfloat16"),
    ],
)
def test_faults_of_an_estimator(fault, property, alone):
    assert reported_of(check_estimator, fault, property, alone) == property


class OfTwo(eqx.Module):
    """Theta has two leaves; the longer type of the two is taken for both, or for what is kept."""

    sigma: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def init(self, key, theta):
        return jax.tree.map(jnp.zeros_like, theta)

    def step(self, key, theta, state):
        wide = jnp.result_type(*jax.tree.leaves(theta))
        draw = lambda x: self.sigma.astype(x.dtype) * jax.random.normal(key, x.shape, x.dtype)  # noqa: E731
        gradient = jax.tree.map(lambda x: x + draw(x), theta)
        state = jax.tree.map(lambda x: (x + 1).astype(wide if self.fault == "state" else x.dtype), state)
        gradient = jax.tree.map(lambda x: x.astype(wide), gradient) if self.fault == "gradient" else gradient
        return gradient, state, Info(jnp.asarray(2), OK, jnp.asarray(1.0))


@pytest.mark.parametrize("fault", ["gradient", "state"])
def test_a_leaf_that_takes_the_type_of_another_is_found(fault):
    theta = {"long": jnp.ones(2), "short": jnp.asarray([1.0, -2.0])}
    skip = {"keys are used once"}  # one for both leaves
    check = lambda fault: check_gradient_estimator(OfTwo(fault=fault), theta, skip=skip)  # noqa: E731
    assert "several types" in check("")
    assert reported(check, fault) == "several types"


def test_a_number_that_is_compiled_in_is_found():
    assert reported(check_estimator, kind=Static) == "no retrace"


def test_what_is_remembered_outside_the_state_is_found():
    assert reported(check_estimator, kind=Forgetful, others=()) == "same key, same bits"


def test_an_unknown_property_is_refused():
    with pytest.raises(ValueError, match="skip must be among"):
        check_estimator(skip=("floats",))


class ChainState(NamedTuple):
    position: Any
    logdensity: Any


class Chain(eqx.Module):
    """A random walk over four numbers on a ring, with Metropolis's rule."""

    slope: Any = 0.3
    lazy: Any = 0.0
    fault: str = eqx.field(static=True, default="")

    def init(self, position):
        return ChainState(position, self.logdensity(position))

    def logdensity(self, position):
        return -self.slope * position.sum().astype(jnp.result_type(float))

    def step(self, key, state):
        first, second = jax.random.split(key)
        if self.fault == "one key twice":
            second = first
        move = jax.random.bernoulli(first, shape=(2,)).astype(jnp.int32)
        proposal = (state.position + move) % 4
        density = self.logdensity(proposal)
        ratio = density - state.logdensity
        rest = 1.0 if self.fault == "number ignored" else 1.0 - self.lazy
        accepted = jax.random.uniform(second) < rest * jnp.exp(jnp.minimum(ratio, 0.0))
        if self.fault == "stuck":
            accepted = jnp.asarray(False)
        new = jnp.where(accepted, proposal, state.position)
        kept = density if self.fault == "stale" else jnp.where(accepted, density, state.logdensity)
        rate = jnp.exp(ratio) if self.fault == "rate" else rest * jnp.exp(jnp.minimum(ratio, 0.0))
        rate = rate.astype(np.float32) if self.fault == "single" else rate
        cost = 0 if self.fault == "cost" else 1
        kept = kept.astype(jnp.result_type(self.slope)) if self.fault == "own type" else kept
        return ChainState(new, kept), Info(jnp.asarray(cost), OK, 0, 0, rate, 0)

    def adapt(self, key, state, num_steps):
        """One key for all steps is the fault that no single step shows."""
        fold = (lambda i: key) if self.fault == "one key for all" else (lambda i: jax.random.fold_in(key, i))
        return jax.lax.scan(lambda s, i: (self.step(fold(i), s)[0], None), state, jnp.arange(num_steps))[0]


@eqx.filter_jit
def stepped(kernel, keys, states):
    return jax.vmap(lambda key, state: kernel.step(key, state)[0])(keys, states)


def driver(fault):
    """A loop in the form of ``laureate.sampling.run``."""

    class Result(NamedTuple):
        samples: Any
        state: Any
        cost: Any

    def run(key, kernel, position=None, num_steps=1, *, state=None, first_step=0, thin=1, chunk=None, progress=None):
        state = jax.vmap(kernel.init)(position) if state is None else state
        samples, first_step = [], 0 if fault == "continued" else first_step
        left = num_steps % chunk if fault == "the short chunk" and chunk else 0
        for number in range(num_steps - left):
            place = number % chunk if fault == "chunks" and chunk else number
            now = jax.random.fold_in(key, place + first_step)
            now = key if fault == "key twice" else now
            if thin > 1 and (fault == "thinning" or (fault == "two options" and chunk)):
                now = jax.random.fold_in(now, thin)
            state = stepped(kernel, jax.random.split(now, len(state.logdensity)), state)
            samples += [np.asarray(state.position)] if (number + 1) % thin == 0 else []
        cost = num_steps // thin if fault == "cost" else num_steps
        return Result(np.stack(samples, axis=1), state, np.full(3, cost))

    return run


def check_chain(fault="", **settings):
    return check_sampler(Chain(fault=fault), jnp.asarray([1, 2]), others=[Chain(0.5, fault=fault)], **settings)


def test_a_sound_sampler_passes_all():
    assert len(check_chain(driver=driver(""))) == 13


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("stuck", "report"),
        ("rate", "report"),
        ("cost", "report"),
        ("stale", "caches are fresh"),
        ("number ignored", "every number is used"),
        ("one key twice", "keys are used once"),
        ("one key for all", "keys are used once"),
        ("single", "float64"),
        ("own type", "several types"),
    ],
)
def test_faults_of_a_sampler(fault, property, alone):
    assert reported_of(check_chain, fault, property, alone) == property


@pytest.mark.parametrize("fault", ["chunks", "the short chunk", "thinning", "cost", "continued", "two options"])
def test_faults_of_a_driver(fault):
    skip = properties(check_chain)
    assert reported(check_chain, driver=driver(fault), skip=skip) == "options of the driver by pairs"


def test_a_driver_that_uses_a_key_twice_is_found():
    skip = properties(check_chain) - {"keys are used once"}
    assert reported(check_chain, driver=driver("key twice"), skip=skip) == "keys are used once"


class Optimiser(eqx.Module):
    """Gradient descent of every node for itself, with momentum."""

    rate: Any
    fault: str = eqx.field(static=True, default="")

    def init(self, params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return (zeros, jax.random.key(0)) if self.fault == "typed key" else (zeros, jnp.zeros((), jnp.int32))

    def update(self, grads, state, params):
        memory = jax.tree.map(lambda m, g: 0.9 * m + g, state[0], grads)
        rate = 0.1 if self.fault == "number ignored" else self.rate
        rate = jnp.float32(rate) if self.fault == "dtype" else rate
        cast = (lambda m: m) if self.fault == "dtype" else (lambda m: m * jnp.asarray(1, m.dtype))
        number = jnp.asarray(rate)
        if self.fault == "one key twice":
            number = number + 0.01 * jax.random.normal(jax.random.key(0))
        updates = jax.tree.map(
            lambda m: -(number if self.fault == "dtype" else number.astype(m.dtype)) * cast(m), memory
        )
        count = state[1] if self.fault == "typed key" else state[1] + (1.0 if self.fault == "state" else 1)
        return updates, (memory, count)

    def sent(self, params):
        return 8.0

    def inspect(self, params):
        class Health(NamedTuple):
            cost: Any
            status: Any
            consensus: Any
            num_nonfinite: Any

        sound = jnp.all(jnp.isfinite(params), axis=1)
        bad = jnp.sum(~sound) if self.fault != "blind" else jnp.zeros((), int)
        apart = jnp.mean(jnp.sum((params - params.mean(0)) ** 2, axis=1))
        apart = apart / 2 if self.fault == "consensus" else apart
        status = jnp.where(bad > 0, int(Status.DIVERGED), int(Status.OK))
        return Health(jnp.asarray(4.0 if self.fault == "cost" else 8.0), status, apart, bad)


def check_descent(fault="", skip=()):
    return check_decentralized_optimiser(
        lambda rate: Optimiser(jnp.asarray(rate), fault), jnp.arange(6.0).reshape(3, 2), skip=skip
    )


def test_a_sound_optimiser_passes_all():
    assert len(properties(check_descent)) == 10


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("state", "state shapes"),
        ("number ignored", "every number is used"),
        ("one key twice", "keys are used once"),
        ("typed key", "saved and loaded"),
        ("dtype", "bfloat16"),
        ("cost", "report"),
        ("consensus", "report"),
        ("blind", "report"),
    ],
)
def test_faults_of_an_optimiser(fault, property, alone):
    assert reported_of(check_descent, fault, property, alone) == property


class Value(NamedTuple):
    v0: Any
    cost: Any
    status: Any


class Solver(eqx.Module):
    """The mean of g over samples of a Gaussian."""

    shift: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def run(self, key, pde):
        first, second = jax.random.split(key)
        second = first if self.fault == "one key twice" else second
        draws = jax.random.normal(first, (2,), pde.dtype) + jax.random.normal(second, (2,), pde.dtype)
        value = jnp.mean(draws) + (0.0 if self.fault == "number ignored" else self.shift.astype(pde.dtype))
        value = 1.0 + self.shift if self.fault == "key ignored" else value
        value = value.astype(jnp.float32) if self.fault == "single" else value
        value = value * jnp.nan if self.fault == "nan" else value
        cost = 3 if self.fault == "cost" else 2
        return Value(value, jnp.asarray(cost), OK)


def check_solver(fault="", skip=()):
    with jax.enable_x64(True):
        pde = jnp.zeros(2)
        return check_pde_solver(Solver(0.1, fault), pde, others=[Solver(0.2, fault)], cost=2, skip=skip)


def test_a_sound_solver_passes_all():
    assert len(properties(check_solver)) == 10


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("nan", "value"),
        ("single", "value"),
        ("cost", "report"),
        ("key ignored", "another key, other bits"),
        ("number ignored", "every number is used"),
        ("one key twice", "keys are used once"),
    ],
)
def test_faults_of_a_solver(fault, property, alone):
    assert reported_of(check_solver, fault, property, alone) == property


class Loss(eqx.Module):
    """Mean squared distance of the two views, weighted."""

    weight: Any = 1.0
    fault: str = eqx.field(static=True, default="")

    def __call__(self, z1, z2):
        if self.fault == "order":
            z2 = z2 * jnp.arange(1.0, len(z2) + 1, dtype=z2.dtype)[:, None]
        if self.fault == "stopped":
            z2 = jax.lax.stop_gradient(z2)
        if self.fault == "views":
            z2 = 2 * z2
        weight = 1.0 if self.fault == "number ignored" else self.weight
        loss = weight * jnp.mean((z1 - z2) ** 2)
        return loss.astype(jnp.float32) if self.fault == "single" else loss


def check_loss(fault="", skip=()):
    return check_representation_loss(Loss(fault=fault), others=[Loss(2.0, fault)], skip=skip)


def test_a_sound_loss_passes_all():
    assert len(properties(check_loss)) == 9


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("order", "order of examples"),
        ("views", "order of views"),
        ("stopped", "gradient is the slope"),
        ("number ignored", "numbers are used"),
        ("single", "float64"),
    ],
)
def test_faults_of_a_loss(fault, property, alone):
    assert reported_of(check_loss, fault, property, alone) == property


class TrainerState(eqx.Module):
    online: Any
    step: Any


class Trainer(eqx.Module):
    rate: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def init(self, key, model):
        return TrainerState(model, jax.random.key(0) if self.fault == "typed key" else jnp.zeros((), jnp.int32))

    def step(self, state, one, two):
        loss, gradient = jax.value_and_grad(lambda m: jnp.mean((one @ m - two @ m - 1) ** 2))(state.online)
        finite = jnp.isfinite(loss)
        moved = state.online - (0.1 if self.fault == "number ignored" else self.rate) * gradient
        if self.fault == "one key twice":  # in every step
            moved = moved + 0.01 * jax.random.normal(jax.random.key(0), moved.shape)
        online = moved if self.fault == "nan taken" else jnp.where(finite, moved, state.online)
        cost = len(one) if self.fault == "cost" else 2 * len(one)
        status = jnp.where(finite, int(Status.OK), int(Status.OK if self.fault == "status" else Status.DIVERGED))
        count = state.step if self.fault == "typed key" else state.step + 1
        return TrainerState(online, count), Info(jnp.asarray(cost), status, loss, 0, 1.0, jnp.asarray(1.0))


def check_trainer(fault="", skip=()):
    views = jnp.arange(6.0).reshape(3, 2), jnp.ones((3, 2))
    return check_representation_trainer(
        Trainer(fault=fault), jnp.ones(2), views, others=[Trainer(0.2, fault)], skip=skip
    )


def test_a_sound_trainer_passes_all():
    assert len(properties(check_trainer)) == 9


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("cost", "report"),
        ("typed key", "saved and loaded"),
        ("number ignored", "numbers are used"),
        ("one key twice", "keys are used once"),
        ("status", "divergence"),
        ("nan taken", "divergence"),
    ],
)
def test_faults_of_a_trainer(fault, property, alone):
    assert reported_of(check_trainer, fault, property, alone) == property


class Learner(eqx.Module):
    """Regression of rewards on observations, with noise, and a count of steps in its state."""

    weights: Any
    rate: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def init(self):
        return self.weights, jax.random.key(0) if self.fault == "typed key" else jnp.zeros((), jnp.int32)

    def step(self, key, rollout, state):
        (observation, reward), (weights, count) = rollout, state
        first = jax.random.split(key)[0]
        noise = jax.random.normal(first, weights.shape)
        if self.fault == "one key twice":
            noise = noise + jax.random.uniform(first, weights.shape)
        if self.fault == "split and folded":
            noise = noise + jax.random.uniform(jax.random.fold_in(key, 1), weights.shape)
        if self.fault == "key ignored":
            noise = jnp.ones(weights.shape)
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((observation @ w - reward) ** 2))(weights)
        rate = 0.1 if self.fault == "number ignored" else self.rate
        rate = 0.0 if self.fault == "lazy" else rate
        finite = jnp.isfinite(loss)
        moved = weights - rate * (slope + 0.01 * noise)
        weights = moved if self.fault == "nan taken" else jnp.where(finite, moved, weights)
        bad = Status.OK if self.fault == "blind" else Status.DIVERGED
        status = jnp.where(finite, int(Status.DIVERGED if self.fault == "status" else Status.OK), int(bad))
        if self.fault != "typed key":
            count = count + (1.0 if self.fault == "state" else 1)
        return (weights, count), Info(jnp.asarray(len(reward) - (self.fault == "cost")), status)


class StaticLearner(Learner):
    """The number is compiled in."""

    rate: Any = eqx.field(static=True, default=0.1)


class ForgetfulLearner(Learner):
    """It remembers outside its state."""

    calls: list = eqx.field(static=True, default_factory=list)

    def step(self, key, rollout, state):
        extra = io_callback(lambda: np.float32(self.calls.append(1) or len(self.calls)), OK_FLOAT)
        (weights, count), info = super().step(key, rollout, state)
        return (weights + 0.01 * extra, count), info


ROLLOUT = np.arange(6, dtype=np.float32).reshape(3, 2) / 6, np.ones(3, np.float32)


def check_learning(fault="", skip=(), kind: Any = Learner):
    first = jnp.asarray([1.0, -1.0])
    learned, others = (lambda state: state[0]), [kind(first, 0.2, fault)]
    return check_learner(
        kind(first, fault=fault), ROLLOUT, learned=learned, others=others, cost=3, keeps=True, skip=skip
    )


def test_a_sound_learner_passes_all():
    assert len(properties(check_learning)) == 11


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("one key twice", "keys are used once"),
        ("split and folded", "keys are used once"),
        ("state", "state shapes"),
        ("cost", "report"),
        ("status", "report"),
        ("lazy", "report"),
        ("number ignored", "numbers are used"),
        ("typed key", "saved and loaded"),
        ("key ignored", "another key, other bits"),
        ("blind", "divergence is reported"),
        ("nan taken", "divergence leaves the parameters"),
    ],
)
def test_faults_of_a_learner(fault, property, alone):
    assert reported_of(check_learning, fault, property, alone) == property


def test_a_number_that_a_learner_ignores_is_found_without_others():
    learner = Learner(jnp.asarray([1.0, -1.0]), fault="number ignored")
    assert reported(check_learner, learner, ROLLOUT, learned=lambda state: state[0]) == "every number is used"


def test_a_learner_with_a_number_compiled_in_and_one_that_remembers_elsewhere_are_found():
    alone = properties(check_learning)
    assert reported(check_learning, kind=StaticLearner, skip=alone - {"no retrace"}) == "no retrace"
    skip = alone - {"same start, same bits"}
    assert reported(check_learning, kind=ForgetfulLearner, skip=skip) == "same start, same bits"


class Sets(BaseEstimator):
    """The labels whose 1 − p − 0.1 u is at most the conformal quantile on calibration rows."""

    def __init__(self, alpha=0.1, randomized=True, width=0.1, fault=""):
        self.alpha, self.randomized, self.width, self.fault = alpha, randomized, width, fault
        if fault == "constructor":
            self.alpha = 1.0 * alpha
        if fault == "fitted at once":
            self.seen_ = 0

    def refuse(self, call, wrong):
        """What is wrong, unless the fault is that this call goes through."""
        if wrong and self.fault != call:
            raise (TypeError if self.fault == "TypeError" else ValueError)(call)

    def fit(self, key, logits, y):
        self.refuse(f"an alpha of {self.alpha:g}", not 0 < self.alpha < 1)
        self.refuse("the label -1", y.min() < 0)
        self.refuse("the label 5", y.max() == logits.shape[1])
        self.refuse("fewer labels than rows", len(y) < len(logits))
        scores = self.scores(logits, "calibration rows")[np.arange(len(y)), y]
        u_key, width = jax.random.split(key)[0], 0.1 if self.fault == "number ignored" else self.width
        scores = scores - width * np.asarray(jax.random.uniform(u_key, y.shape))
        if self.fault == "one key twice":
            scores = scores + 1e-9 * np.asarray(jax.random.normal(u_key, y.shape))
        if self.fault == "split and folded":
            scores = scores + 1e-9 * np.asarray(jax.random.normal(jax.random.fold_in(key, 0), y.shape))
        if self.fault == "remembers":
            scores = scores + next(COUNT) % 2 / 10
        rank = int(np.ceil((len(y) + 1) * (1 - self.alpha)))
        self.tau_ = np.sort(scores)[min(rank, len(y)) - 1]
        if self.fault == "uncalibrated":
            self.tau_ = 0.5 - self.alpha
        if self.fault == "too wide":
            self.tau_ = self.tau_ + 0.1
        if self.fault == "alpha ignored":
            self.tau_ = np.quantile(scores, 0.9)
        if self.fault == "alpha reversed":
            self.tau_ = np.quantile(scores, self.alpha)
        if self.fault == "settings":
            self.alpha = 0.5 * self.alpha
        if self.fault in ("hidden", "an object"):
            setattr(self, "more" if self.fault == "hidden" else "more_", 0.05 if self.fault == "hidden" else object())
        self.classes_ = logits.shape[1]
        return None if self.fault == "no self" else self

    def scores(self, logits, which):
        self.refuse(f"{which} of nan", np.isnan(logits).any())
        self.refuse(f"{which} of inf", np.isinf(logits).any())
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return 1 - p / p.sum(axis=1, keepdims=True)

    def predict_set(self, key, logits):
        if self.fault != "sets before fit":
            check_is_fitted(self, "tau_")
        self.refuse("another number of classes", logits.shape[1] != self.classes_)
        scores = self.scores(logits, "rows")
        if self.fault == "sees others":
            scores = scores + 0.2 * scores[1, 0]
        if self.fault == "sees places":
            scores = scores + np.linspace(0, 0.5, len(scores))[:, None]
        u = np.asarray(jax.random.uniform(jax.random.key(0) if self.fault == "key ignored" else key, (len(scores),)))
        width = 0.1 if self.fault == "number ignored" else self.width
        sets = scores - width * (u[:, None] if self.randomized else 0.5) <= self.tau_ + getattr(self, "more", 0)
        return sets.astype(int) if self.fault == "integers" else sets


# A call each that must not go through.
REFUSED = ["sets before fit", "another number of classes", "fewer labels than rows", "the label -1", "the label 5"]
REFUSED += [f"{which} of {value}" for which in ("calibration rows", "rows") for value in ("nan", "inf")]
REFUSED += [f"an alpha of {alpha}" for alpha in ("-0.1", "0", "1", "1.1")]


def check_sets(fault="", skip=()):
    return check_prediction_sets(Sets(fault=fault), num_repeats=10, skip=skip)


def test_sound_sets_pass_all():
    assert len(properties(check_sets)) == 12


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("one key twice", "keys are used once"),
        ("split and folded", "keys are used once"),
        ("integers", "sets"),
        ("remembers", "same key, same bits"),
        ("key ignored", "another key, other bits"),
        ("hidden", "saved and loaded"),
        ("an object", "saved and loaded"),
        ("number ignored", "every number is used"),
        ("alpha ignored", "a larger alpha gives subsets"),
        ("alpha reversed", "a larger alpha gives subsets"),
        ("sees others", "rows do not see each other"),
        ("sees places", "order of rows"),
        *((call, "refusals") for call in REFUSED),
        ("TypeError", "refusals"),
        ("constructor", "settings"),
        ("fitted at once", "settings"),
        ("settings", "settings"),
        ("no self", "settings"),
        ("uncalibrated", "coverage"),
        ("too wide", "coverage"),
    ],
)
def test_faults_of_sets(fault, property, alone):
    assert reported_of(check_sets, fault, property, alone) == property


class Intervals(BaseEstimator):
    """Hoeffding's intervals of the share that is right at each of four scores, a row a group."""

    def __init__(self, delta=0.1, slack=0.0, fault=""):
        self.delta, self.slack, self.fault = delta, slack, fault
        if fault == "constructor":
            self.delta = 1.0 * delta

    def refuse(self, call, wrong):
        """What is wrong, unless the fault is that this call goes through."""
        if wrong and self.fault != call:
            raise (TypeError if self.fault == "TypeError" else ValueError)(call)

    def scores(self, score, which):
        for value, wrong in (
            ("-0.1", score < 0),
            ("nan", np.isnan(score)),
            ("inf", np.isinf(score)),
            ("1.1", (score > 1) & np.isfinite(score)),
        ):
            self.refuse(f"{which} of {value}", np.any(wrong))
        return np.clip((np.nan_to_num(score) / 0.3).astype(int), 0, 3)

    def fit(self, score, correct, groups=None):
        self.refuse(f"a delta of {self.delta:g}", not 0 < self.delta < 1)
        self.refuse("fewer events than scores", len(correct) < len(score))
        self.refuse("an event of 2", np.any(correct == 2))
        self.refuse("an event of nan", np.any(np.isnan(correct)))
        place, group = (
            self.scores(score, "a calibration score"),
            np.zeros(len(score), int) if groups is None else groups,
        )
        place, group = place[: len(correct)], group[: len(correct)]
        cell = (group.max() + 1, 4)
        index = np.ravel_multi_index((group, place), cell)
        count, right = (np.bincount(index, one, 4 * cell[0]).reshape(cell) for one in (np.ones(len(correct)), correct))
        delta = np.clip(0.1 if self.fault == "delta ignored" else self.delta, 1e-9, 1 - 1e-9) / (4 * cell[0])
        if self.fault == "delta reversed":
            delta = (1 - self.delta) / (4 * cell[0])
        self.shift_ = np.sqrt(np.log(2 / delta) / (2 * (0 * count + 100 if self.fault == "counts ignored" else count)))
        if self.fault == "narrow":
            self.shift_ = self.shift_ / 2.5
        self.middle_ = right / count
        if self.fault == "calibration's places":
            self.middle_ = self.middle_ + 1e-3 * np.mean(correct[: len(correct) // 2])
        if self.fault == "hidden":
            self.more = 0.05
        if self.fault == "settings":
            self.delta = 0.5 * self.delta
        return None if self.fault == "no self" else self

    def interval(self, score, groups=None):
        if self.fault != "intervals before fit":
            check_is_fitted(self, "middle_")
        place, group = self.scores(score, "a score"), 0 if groups is None else groups
        if self.fault == "intervals before fit" and not hasattr(self, "middle_"):
            return 0 * score, 0 * score + 1
        middle, shift = self.middle_[group, place], self.shift_[group, place]
        shift = shift + getattr(self, "more", 0) + (0 if self.fault == "number ignored" else self.slack)
        if self.fault == "sees others":
            shift = shift + 0.1 * score.mean()
        if self.fault == "sees places":
            shift = shift + np.linspace(0, 0.1, len(score))
        most = 2 if self.fault == "beyond one" else 1
        lo, hi = np.clip(middle - shift, 0, most), np.clip(middle + shift, 0, most)
        return (hi, lo) if self.fault == "ends swapped" else (lo, hi)


UNWANTED = ["intervals before fit", "fewer events than scores", "an event of 2", "an event of nan"]
UNWANTED += [f"{which} of {v}" for which in ("a calibration score", "a score") for v in ("-0.1", "1.1", "nan", "inf")]
UNWANTED += [f"a delta of {delta}" for delta in ("-0.1", "0", "1", "1.1")]


def check_intervals(fault="", skip=()):
    return check_confidence_intervals(Intervals(fault=fault), groups=True, num_repeats=60, skip=skip)


def test_sound_intervals_pass_all():
    assert len(properties(check_intervals)) == 11


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("beyond one", "intervals"),
        ("ends swapped", "intervals"),
        ("hidden", "saved and loaded"),
        ("number ignored", "every number is used"),
        ("delta ignored", "a larger delta gives narrower intervals"),
        ("delta reversed", "a larger delta gives narrower intervals"),
        ("counts ignored", "more rows give narrower intervals"),
        ("sees others", "rows do not see each other"),
        ("sees places", "rows do not see each other"),
        ("calibration's places", "order of the calibration rows"),
        *((call, "refusals") for call in UNWANTED),
        ("TypeError", "refusals"),
        ("constructor", "settings"),
        ("settings", "settings"),
        ("no self", "settings"),
        ("narrow", "coverage"),
    ],
)
def test_faults_of_intervals(fault, property, alone):
    assert reported_of(check_intervals, fault, property, alone) == property


@pytest.mark.parametrize(
    ("settings", "property"),
    [
        ({"method": "wald", "levels": "none"}, "coverage"),
        ({"method": "wilson", "levels": "none"}, "coverage of groups"),
    ],
)
def test_intervals_that_promise_nothing_are_found_out(settings, property):
    skip = properties(check_intervals) - {property}
    assert reported(check_confidence_intervals, PACConfidence(**settings), groups=True, skip=skip) == property


class Recovery(NamedTuple):
    cost: Any
    residual: Any
    status: Any


class Shrink(eqx.Module):
    """Soft thresholds, of a dictionary that is the identity."""

    threshold: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def __call__(self, b):
        threshold = 0.1 if self.fault == "number ignored" else self.threshold
        if self.fault == "sees others":
            threshold = threshold * jnp.max(jnp.abs(b))
        x = jnp.sign(b) * jnp.maximum(jnp.abs(b) - threshold, 0.0)
        return x.astype(jnp.float32) if self.fault == "single" else x

    def synthesise(self, x):
        return x

    def solve(self, b):
        x = self(b)
        residual = jnp.linalg.norm(x - b, axis=-1) * (2.0 if self.fault == "residual" else 1.0)
        sound = jnp.isfinite(residual) | (self.fault == "blind")
        cost = jnp.asarray(2 if self.fault == "cost" else 1)
        return x, Recovery(cost, residual, jnp.where(sound, int(Status.OK), int(Status.DIVERGED)))


def check_shrink(fault="", skip=()):
    signals = np.random.default_rng(0).normal(size=(3, 4))
    return check_recovery_solver(Shrink(fault=fault), signals, others=[Shrink(0.2, fault)], cost=1, skip=skip)


def test_a_sound_recovery_passes_all():
    assert len(properties(check_shrink)) == 10


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("residual", "report"),
        ("cost", "report"),
        ("number ignored", "numbers are used"),
        ("sees others", "signals do not see each other"),
        ("blind", "divergence"),
        ("single", "float64"),
    ],
)
def test_faults_of_a_recovery(fault, property, alone):
    assert reported_of(check_shrink, fault, property, alone) == property


class Knockoffs(eqx.Module):
    """Independent columns: any draw of the same law is a knockoff."""

    spread: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def sample(self, key, x):
        if self.fault == "copy":
            return x
        if self.fault == "key ignored":
            key = jax.random.key(0)
        other = key if self.fault == "one key twice" else jax.random.fold_in(key, 1)
        draws = jax.random.normal(jax.random.fold_in(key, 0) if not self.fault else key, x.shape)
        drawn = draws + (0.1 if self.fault == "number ignored" else self.spread) * jax.random.normal(other, x.shape)
        return drawn[:, :1] if self.fault == "shape" else drawn


def test_a_sound_knockoff_sampler_passes_all():
    assert len(check_knockoff_sampler(Knockoffs(), np.zeros((5, 2)))) == 8


@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("copy", "table"),
        ("shape", "table"),
        ("key ignored", "another key, other bits"),
        ("number ignored", "every number is used"),
        ("one key twice", "keys are used once"),
    ],
)
def test_faults_of_a_knockoff_sampler(fault, property):
    assert reported(check_knockoff_sampler, Knockoffs(0.1, fault), np.zeros((5, 2))) == property


def test_a_key_used_twice_while_a_knockoff_sampler_is_fitted_is_found():
    def fitted(key):
        return Knockoffs(0.1 + 0 * (jax.random.uniform(key) + jax.random.normal(key)))

    assert reported(check_knockoff_sampler, fitted, np.zeros((5, 2))) == "keys are used once"


def mean_of_normals(fault=""):
    def function(key):
        draws = 1.0 + jax.random.normal(key, (16,))
        error = jnp.std(draws, ddof=1) / (1.0 if fault == "root" else 4.0)
        error = error * (-1.0 if fault == "sign" else 1.0)
        error = error + (0.0 * jax.random.uniform(key) if fault == "one key twice" else 0.0)
        return draws.sum() / (14.0 if fault == "biased" else 16.0), error

    return function


def test_faults_of_a_standard_error():
    assert len(check_standard_error(mean_of_normals(), exact=1.0)) == 4
    for fault, property in (
        ("root", "spread is the standard error"),
        ("sign", "errors are positive"),
        ("biased", "right on average"),
    ):
        assert reported(check_standard_error, mean_of_normals(fault), exact=1.0) == property


def test_an_estimate_whose_draws_share_a_key_is_found():
    assert reported(check_standard_error, mean_of_normals("one key twice"), exact=1.0) == "keys are used once"


RANDOM_FUNCTIONS = {
    "": lambda key: jax.random.normal(key),
    "keys are used once": lambda key: jax.random.normal(key) + jax.random.uniform(key),
    "same key, same bits": lambda key: jax.random.normal(key) + next(COUNT),
    "another key, other bits": lambda key: 0.0 * jax.random.normal(key),
}


def test_faults_of_a_random_function():
    assert len(check_random_function(RANDOM_FUNCTIONS[""])) == 3
    for property, function in RANDOM_FUNCTIONS.items():
        if property:
            assert reported(check_random_function, function, name="toy") == property


def test_keys_are_watched_without_the_rest():
    """What keys do not depend on is not even compiled: here it could not be run."""

    def never(x):
        raise AssertionError("called")

    def run(turns):
        def function(key):
            def step(total, index):
                own = jax.random.fold_in(key, index % turns)
                return total + jax.random.normal(own), jax.pure_callback(never, total, total)

            return jax.lax.scan(step, 0.0, jnp.arange(3))

        return function

    assert check_keys(run(3)) == ["keys are used once"]
    assert check_keys(run(2), shared_keys=2) == ["keys are used once"]
    assert reported(check_keys, run(2), name="toy") == "keys are used once"
    assert reported(check_keys, lambda key: jnp.zeros(3), name="toy") == "keys are used once"


# --- settings by pairs ------------------------------------------------------------------------------------------------


class Power(eqx.Module):
    """Of what it has, with a sign."""

    exponent: int = eqx.field(static=True, default=2)
    sign: str = eqx.field(static=True, default="plus")
    rounded: bool = eqx.field(static=True, default=False)
    fault: str = eqx.field(static=True, default="")

    def __check_init__(self):
        if self.fault == "a pair is refused" and self.rounded and self.sign == "minus":
            raise ValueError("no.")

    def step(self, state):
        state = state ** (2 if self.fault == "a count is ignored" else self.exponent)
        if self.fault == "only in a pair" and not (self.rounded and self.exponent == 3):
            return state
        state = -state if self.sign == "minus" else state
        if self.fault.startswith("no number") and self.rounded and self.sign == "minus":
            state = jnp.sqrt(state)
        if not self.rounded:
            return state
        return jnp.round(state).astype(int) if self.fault == "a type changes" else jnp.round(state)


class Told(NamedTuple):
    status: jax.Array


def powers(fault="", **settings):
    start = jnp.ones(3)
    options = {"exponent": (2, 3), "sign": ("plus", "minus"), "rounded": (False, True)}
    options = {name: values for name, values in options.items() if (fault, name) != ("unknown", "sign")}
    more = {"unused": ("fault",), **settings}
    status = Told(jnp.int32(fault == "no number, and says so"))
    return check_settings(Power(fault=fault), lambda power: (start, power.step(start), status), options, **more)


def test_sound_settings_pass_all():
    assert len(powers()) == len(powers("only in a pair")) == 4
    allowed = lambda row: not (row["rounded"] and row["sign"] == "minus")  # noqa: E731
    assert len(powers("a pair is refused", allowed=allowed)) == 4
    assert len(powers("no number, and says so")) == 4


@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("unknown", "every setting is known"),
        ("a pair is refused", "settings by pairs"),
        ("a type changes", "settings by pairs"),
        ("a count is ignored", "every setting is used"),
        ("no number", "settings compute"),
    ],
)
def test_faults_of_settings(fault, property):
    assert reported(powers, fault) == property


# --- drivers with a file ----------------------------------------------------------------------------------------------


def counted(fault=""):
    """A driver on the host that adds up the numbers of its steps."""
    elsewhere = [0]

    def run(rate, size, num_steps, progress=None, checkpoint=None):
        def advance(state, done, count):
            if fault == "remembers elsewhere":
                elsewhere[0] += 1
            rows = rate * (state + np.arange(done, done + count)) + elsewhere[0]
            return rows[-1:].sum(keepdims=True), rows

        settings = {} if fault == "setting left out" else {"rate": rate}
        settings |= {"size": size} if fault == "more than it depends on" else {}
        kept = None if checkpoint is None or fault == "no file" else loops.Checkpoint(checkpoint, settings)
        told = None if fault == "untold" else progress
        if fault == "begins anew" and checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
        more: Any = {"shapes": lambda: np.zeros(1), "progress": told, "checkpoint": kept}
        with jax.enable_x64(True):
            state, rows = loops.chunks(advance, np.zeros(1), num_steps, size, **more)
        return np.asarray(state), rows[:0] if fault == "rows of the call" and progress and len(rows) == 4 else rows

    given, free = {"rate": 0.5, "size": 1, "num_steps": 4}, {} if fault == "an argument unknown" else {"size": 2}
    return check_resumable(run, given, others={"rate": 0.25}, free=free)


def test_a_sound_driver_with_a_file_passes_all():
    assert len(counted()) == 7


@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("an argument unknown", "every argument is known"),
        ("no file", "watched and kept changes nothing"),
        ("rows of the call", "watched and kept changes nothing"),
        ("remembers elsewhere", "watched and kept changes nothing"),
        ("untold", "stopped it goes on"),
        ("begins anew", "stopped it goes on"),
        ("setting left out", "another's file is refused"),
        ("more than it depends on", "what is free is taken up"),
    ],
)
def test_faults_of_a_driver_with_a_file(fault, property):
    assert reported(counted, fault) == property


# --- functions of arrays ----------------------------------------------------------------------------------------------


class Scaled(eqx.Module):
    """A number that is a leaf, or one that is compiled in."""

    factor: Any

    def __call__(self, x):
        return self.factor * x


class CompiledIn(Scaled):
    factor: Any = eqx.field(static=True)


def shares(fault, scale, x):
    """Softmax of what is scaled, and the row's mean."""
    if fault == "branches":
        x = x if x[0] > 0 else -x
    if fault == "impure":
        x = x + next(COUNT)
    if fault == "another type inside":
        x = x.astype(jnp.bfloat16).astype(x.dtype) if isinstance(x, Tracer) else x
    if fault == "alters its argument" and isinstance(x, np.ndarray):
        x *= 0.5
        return jax.nn.softmax(scale(2 * x)), jnp.mean(2 * x)
    if fault == "needs jax's methods":
        x = x.at[0].add(0.0)
    if fault == "vmap":
        x = summed_over_a_batch(x)
    if fault == "overflows":
        return jnp.exp(scale(x)) / jnp.sum(jnp.exp(20 * scale(x))) * jnp.exp(19 * x[0]), jnp.mean(x)
    mean = jnp.mean(x)
    if fault == "not of half precision":
        mean = mean + jnp.linalg.eigvalsh(x[:, None] * x)[0]
    mean = mean.astype(jnp.float32) if fault == "single" else mean
    mean = jnp.float32(mean).astype(mean.dtype) + 1e-3 * (mean.dtype == jnp.float64) if fault == "apart" else mean
    return jax.nn.softmax(scale(x)), mean


summed_over_a_batch = jax.custom_batching.custom_vmap(lambda x: x)
summed_over_a_batch.def_vmap(lambda size, batched, x: (x.sum(0, keepdims=True) + 0 * x, batched[0]))


def check_shares(fault="", skip=()):
    kind = CompiledIn if fault == "compiled in" else Scaled
    factors = (1.0, 2.0) if fault == "compiled in" else (jnp.asarray(1.0), jnp.asarray(2.0))
    x = jnp.asarray([0.5, 0.3, 1.0])
    given, others = ((kind(factor), x / factor) for factor in factors)
    function = lambda scale, x: shares(fault, scale, x)  # noqa: E731
    return check_function(function, *given, others=others, half=True, name="shares", skip=skip)


def test_a_sound_function_passes_all():
    assert len(properties(check_shares)) == 6


@ALONE
@pytest.mark.parametrize(
    ("fault", "property"),
    [
        ("alters its argument", "NumPy is taken"),
        ("needs jax's methods", "NumPy is taken"),
        ("branches", "the same inside jit"),
        ("impure", "the same inside jit"),
        ("another type inside", "the same inside jit"),
        ("compiled in", "no retrace"),
        ("vmap", "batches are a loop"),
        ("single", "float64 agrees"),
        ("apart", "float64 agrees"),
        ("overflows", "half precision"),
        ("not of half precision", "half precision"),
    ],
)
def test_faults_of_a_function(fault, property, alone):
    assert reported_of(check_shares, fault, property, alone) == property


def test_the_recorder_sees_loops_vmap_and_jit_and_lets_shared_keys_be():
    def draws(key):
        inside = jax.lax.scan(lambda c, i: (c, jax.random.normal(jax.random.fold_in(key, i))), 0, jnp.arange(3))[1]
        return inside.sum()

    keys, normal = jax.random.split(jax.random.key(0), 2), jax.random.normal
    with KeyRecorder() as recorder:
        jax.jit(jax.vmap(draws))(keys)
    assert len(recorder.uses) == 6
    assert recorder.reused() == []
    with KeyRecorder() as recorder:
        jax.jit(jax.vmap(draws))(keys[jnp.asarray([0, 0])])
    assert recorder.reused() == ["normal, 2 times"] * 3
    assert recorder.reused(shared=2) == []
    with KeyRecorder() as recorder:  # the same key in every turn of a loop
        jax.lax.scan(lambda c, i: (c, jax.random.uniform(keys[0])), 0, jnp.arange(3))
    assert recorder.reused() == ["uniform, 3 times"]
    assert jax.random.normal is normal


@pytest.mark.parametrize("partitionable", [False, True])
def test_the_recorder_tells_a_key_that_is_split_and_folded_into(partitionable):
    def children(key, first):
        parts = jax.random.split(key, (3, 1))[:, 0]
        folded = jax.vmap(lambda number: jax.random.fold_in(key, number))(first + jnp.arange(2))
        return jax.random.key_data(parts), jax.random.key_data(folded)

    with jax.threefry_partitionable(partitionable):
        for first, found in ((2, ["split into 3 and fold_in of 2"]), (3, [])):
            with KeyRecorder() as recorder:
                parts, folded = jax.jit(children)(jax.random.key(0), first)
            assert recorder.reused() == found
            if partitionable:  # why it is told
                assert np.array_equal(parts[2], folded[0]) == bool(found)
            recorder.forget()
            assert recorder.reused() == []


def test_the_recorder_tells_a_key_that_is_drawn_from_and_folded_into():
    key, fold = jax.random.key(0), lambda key, number: jax.random.fold_in(key, number)
    with jax.threefry_partitionable(True):
        made = jax.random.key_data(fold(key, 0))
        assert jax.random.bits(key) == made[0] ^ made[1]  # why it is told
    with KeyRecorder() as recorder:
        _ = jax.random.uniform(key) + jax.random.normal(fold(key, 1))
    assert recorder.reused() == ["fold_in and uniform"]
    with KeyRecorder() as recorder:
        _ = jax.random.uniform(key) + jax.random.normal(fold(fold(key, 1), 2))
    assert recorder.reused() == ["fold_in and uniform"]
    with KeyRecorder() as recorder:  # folded, and not used
        _ = jax.random.uniform(key), fold(key, 1)
    assert recorder.reused() == []


def test_the_recorder_tells_draws_after_folding_a_number_twice_and_lets_folds_of_folds_be():
    key, fold = jax.random.key(0), jax.random.fold_in
    with KeyRecorder() as recorder:
        _ = jax.random.uniform(fold(fold(key, 1), 2)) + jax.random.uniform(fold(fold(key, 1), 3))
    assert recorder.reused() == []
    with KeyRecorder() as recorder:
        _ = jax.random.uniform(fold(key, 1)) + jax.random.normal(fold(key, data=1))
    assert recorder.reused() == ["normal and uniform"]


def test_every_pair_of_options_occurs_and_forbidden_ones_do_not():
    options = {"a": [1, 2, 3], "b": ["x", "y"], "c": [True, False], "d": [0.1, 0.2]}
    rows = pairwise(options, lambda row: not (row["a"] == 3 and row["b"] == "y"))
    assert len(rows) <= 8
    for first in options:
        for second in options:
            if first < second:
                found = {(row[first], row[second]) for row in rows}
                wanted = {(x, y) for x in options[first] for y in options[second]}
                assert found == wanted - ({(3, "y")} if (first, second) == ("a", "b") else set())


# --- what checks compare by -------------------------------------------------------------------------------------------

ONE, KEY = np.float32(1.0), jax.random.key(0)
# What two results are, and whether they are the same to the last bit, and close within 1e-5 of the largest entry.
PAIRS: dict[str, tuple[Any, Any, bool, bool]] = {
    "equal": (np.arange(3.0), np.arange(3.0), True, True),
    "rounded": (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-6]), False, True),
    "apart": (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-4]), False, False),
    "one of two": ((np.array([1e6]), np.array([1.0])), (np.array([1e6]), np.array([1.1])), False, False),
    "nan and a number": (np.array([np.nan, 1.0]), np.array([1.0, 1.0]), False, False),
    "a number and nan": (np.array([1.0, 1.0]), np.array([1.0, np.nan]), False, False),
    "nan twice": (np.array([np.nan]), np.array([np.nan]), True, False),
    "inf twice": (np.array([np.inf, 1.0]), np.array([np.inf, 1.0]), True, True),
    "inf of another sign": (np.array([np.inf]), np.array([-np.inf]), False, False),
    "a sign of nought": (np.array([0.0]), np.array([-0.0]), False, True),
    "whole numbers": (np.array([3, 4]), np.array([3, 5]), False, False),
    "flags": (np.array([True]), np.array([False]), False, False),
    "another shape": (np.ones((2, 3)), np.ones((3, 2)), False, False),
    "one for all": (np.ones(3), np.ones(1), False, False),
    "a number for all": (np.ones(3), np.ones(()), False, False),
    "nothing for all": (np.ones((0, 3)), np.ones((1, 3)), False, False),
    "another type": (ONE, np.float64(1.0), False, True),
    "keys": (KEY, jax.random.clone(KEY), True, True),
    "another key": (KEY, jax.random.key(1), False, False),
    "Python's numbers": ({"a": 1}, {"a": 1}, True, True),
    "other numbers of Python": ({"a": 1}, {"a": 2}, False, False),
    "another word": (("a", ONE), ("b", ONE), False, True),
    "functions": (len, max, True, True),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_the_same_and_what_is_close(name):
    one, two, same, close = PAIRS[name]

    def told(compare):
        check = Check("toy")
        check.wants("it")
        try:
            compare(check)
        except ContractError:
            return False
        return True

    assert told(lambda check: check.bits(one, two, "the same", "")) == same
    assert same_bits(one, two) == same
    if (not callable(one) and not isinstance(one, tuple)) or name == "one of two":
        assert told(lambda check: check.close(one, two, 1e-5, "about the same", "")) == close


class Weighed(eqx.Module):
    """Weights of which only the ratios count, a number, and one that is read by nobody."""

    weights: Any = eqx.field(default_factory=lambda: jnp.asarray([1.0, 2.0, 5.0]))
    shift: Any = eqx.field(default_factory=lambda: jnp.zeros(()))
    idle: Any = eqx.field(default_factory=lambda: jnp.ones(()))

    def compute(self):
        return np.asarray(self.weights / jnp.sum(self.weights) + self.shift)


def test_a_number_is_used_where_ratios_alone_count_and_where_it_is_nought():
    def check(unused=()):
        made = Check("toy")
        every_number_is_used(made, Weighed(), lambda which: which.compute(), unused)
        return made.checked

    assert check(unused=(".idle",)) == ["every number is used"]
    with pytest.raises(ContractError, match=r"at \.idle"):
        check()


class History(NamedTuple):
    recorded: Any
    cost: Any
    loss: Any
    last: Any


def trains(fault=""):
    """A driver of NumPy: parameters that go on by the number of the update."""

    def run(number, *, every=1, record=None, start=None, progress=None):
        params, done, cost = (np.zeros(2), 0, 0) if start is None else start
        recorded, costs, losses = [], [], []
        for index in range(number):
            place = index if fault == "numbered anew" else done + index
            params = params + np.cos([place, 2.0 * place])
            params = params * (2.0 if fault == "watching" and progress else 1.0)
            params = params + (1.0 if fault == "two options" and progress and every > 1 else 0.0)
            cost += 1
            losses.append(params.sum())
            now = index % every == 0 if fault == "the first of every" else (index + 1) % every == 0
            if now:
                recorded.append(params if record is None else record(params))
                costs.append(cost if fault != "cost of the call" else index + 1)
        kept = costs[:1] if fault == "the last record" and every > 1 else costs
        return params, History(np.array(recorded), np.array(kept), np.array(losses), (params, done + number, cost))

    check = Check("toy")
    training_by_pairs(check, run, lambda params: params[0], ("loss",))
    return check.finish()


def test_faults_of_a_driver_of_training():
    assert trains() == ["options of the driver by pairs"]
    for fault in (
        "numbered anew",
        "watching",
        "two options",
        "the first of every",
        "cost of the call",
        "the last record",
    ):
        assert reported(trains, fault) == "options of the driver by pairs", fault


def test_one_wrong_standard_error_of_two_is_found():
    def function(fault):
        def two(key):
            draws = 1.0 + jax.random.normal(key, (2, 16))
            error = jnp.std(draws, axis=1, ddof=1) / 4.0
            return draws.mean(axis=1), error * (jnp.asarray([1.0, 2.0]) if fault else 1.0)

        return two

    assert len(check_standard_error(function(False), exact=1.0)) == 4
    assert reported(check_standard_error, function(True), exact=1.0) == "spread is the standard error"


def test_the_recorder_tells_a_fold_below_the_parts_whatever_else_is_folded():
    key = jax.random.key(0)
    with KeyRecorder() as recorder:
        _ = jax.random.split(key, 2), [jax.random.fold_in(key, number) for number in (5, 1, 9)]
    assert recorder.reused() == ["split into 2 and fold_in of 1"]


def test_keys_of_what_was_compiled_before_are_seen():
    """Whether a function draws elsewhere too or not; else a check would pass for having seen nothing."""
    once = jax.jit(lambda key: jax.random.normal(key))
    twice = jax.jit(lambda key: jax.random.normal(key) + jax.random.uniform(key))
    for function in (once, twice):
        function(jax.random.key(0))

    def partly(key):
        first, second = jax.random.split(key)
        return jax.random.normal(first) + twice(second)

    for check in (check_keys, check_random_function):
        assert check(once, name="toy")[0] == "keys are used once"
        with pytest.raises(ContractError, match="got 1: normal and uniform"):
            check(twice, name="toy")
    with pytest.raises(ContractError, match="got 1: normal and uniform"):
        check_keys(partly, name="toy")


# --- methods of areas -------------------------------------------------------------------------------------------------

OF_AREAS = [(check, fault, property) for check, faults in KINDS.items() for fault, property in faults.items()]


@pytest.mark.parametrize(("check", "fault", "property"), OF_AREAS, ids=lambda part: getattr(part, "__name__", part))
def test_faults_of_methods_of_areas(check, fault, property):
    """The property alone, which compiles less."""
    assert reported(check, fault, skip=properties(check) - {property}) == property


def test_a_bonus_that_comes_back_otherwise_is_found(monkeypatch):
    """No toy of arrays alone forgets anything on its way to a file and back."""
    others, saved = properties(bonus) - {"saved and loaded"}, Check.saved
    forgotten = lambda check, state: jax.tree.map(np.zeros_like, saved(check, state))  # noqa: E731
    monkeypatch.setattr(Check, "saved", forgotten)
    assert reported(bonus, skip=others) == "saved and loaded"


def test_every_property_is_broken_by_some_fault():
    """But for what a toy cannot break alone: programs that are traced anew, and what is the same by construction."""
    unbroken = {check.__name__: sorted(properties(check) - set(faults.values())) for check, faults in KINDS.items()}
    assert unbroken == UNBROKEN
