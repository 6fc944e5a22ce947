"""Where a gradient is said to stop it does: what must not change, to first order, with the array it is made from."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control, generative, gradients, grounding, loops, representation
from laureate.layers import BatchNorm, SpectralNorm, SpectralState
from laureate.problems.energies import ConvolutionalEnergy
from laureate.sampling.stein_discrepancy import floored, median_distance

QUICK: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32)
KEY = jax.random.key(0)


class Line(eqx.Module):
    table: jax.Array

    def __call__(self, x):
        return self.table @ x


class World(eqx.Module):
    """Goes where it is told."""

    action_space: Any = loops.Box((3,), -1.0, 1.0)
    observation_space: Any = loops.Box((3,))

    def reset(self, key):
        return X[1], X[1]

    def step(self, key, state, action):
        state = state + action
        return state, loops.Timestep(state, jnp.sum(action), state[0] > 1, state[1] > 1)


class Follower(eqx.Module):
    """A learner that does as it is told."""

    law: Any = control.TruncatedNormal(3)
    world: Any = control.WorldModel(None, None, None, None, None)  # pyright: ignore[reportArgumentType]


def judged(of):
    """Of a critic of rows made before and now: ``of(critic, state, x)``."""
    judge = control.PooledCritic(Line(X[:1]), 0.1, num_kept=2)
    return lambda x: of(judge, judge.init(X[0]), x)


def kept(action):
    """The action of a step as the replay keeps it."""
    training = control.DreamerTraining(World(), Follower(), control.Replay(4, 2), num_steps=2)  # pyright: ignore[reportArgumentType]
    return training._step_or_reset(KEY, X[0], action, jnp.asarray(False))[1][0].action


class Place(NamedTuple):
    features: jax.Array


class Dream(eqx.Module):
    """A model of places, whose ends depend on the place."""

    discount: bool = True
    law: Any = control.DiagonalNormal(3)

    @property
    def rssm(self):
        return self

    def predict(self, state, action, noise):
        return Place(jnp.tanh(state.features + action + 0.1 * noise))

    def discounts(self, features, gamma):
        return gamma * jax.nn.sigmoid(features[..., 0])

    def rewards(self, features):
        return jnp.sum(features, axis=-1)


def dreamed(start, push):
    """What is dreamed from these places by an actor that is pushed, through noise that is drawn once."""
    actor = lambda features: jnp.concatenate([features + push, features])  # noqa: E731
    law = control.TruncatedNormal(3)
    return control.imagine(KEY, Dream(), actor, law, Place(start), jnp.zeros(4, bool), 2)  # pyright: ignore[reportArgumentType]


def normalised(weight):
    network = generative.SpectrallyNormalised(Line(weight))
    return network.refresh(network.init())


def dropped(share):
    made = grounding.LanguageFilter(KEY, 1, 3, dropout=0.5)
    return eqx.tree_at(lambda m: m.dropout, made, share)(X.reshape(4, 3, 1, 1), X, key=KEY)


def set_directly(of):
    predictor = representation.DirectSet(3)
    state = predictor.init(KEY)
    return lambda x: of(predictor, state, x)


SPECTRAL, UNIT = SpectralNorm(), SpectralState(jnp.asarray([0.6, 0.8, 0.0]))
# From an array to what must stand still.
STOPPED = {
    "control.PooledCritic.fooled": (
        judged(lambda judge, state, x: judge.fooled(X, state._replace(parameters=Line(x)))),
        X[:1],
    ),
    "control.PooledCritic.step": (judged(lambda judge, state, x: judge.step(KEY, X, x, state)), X[1:]),
    "control.DreamerTraining": (kept, X[0]),
    "control.imagine.start": (lambda x: dreamed(x, 0.0), X),
    "control.imagine.weight": (lambda push: dreamed(X, push).weight, X[0]),
    "control.kl_balance": (lambda x: control.kl_balance(control.OneHot(1, 3), x, X)[1], X[::-1]),
    "generative.SpectrallyNormalised": (normalised, X),
    "gradients.conditional_gumbel": (lambda x: gradients.conditional_gumbel(KEY, x, jnp.array([0, 1, 2, 0]), 2), X),
    "grounding.LanguageFilter.dropout": (dropped, jnp.asarray(0.5)),
    "layers.BatchNorm": (lambda x: BatchNorm(3)(x)[1], X),
    "layers.SpectralNorm.right": (lambda x: SPECTRAL(x, UNIT)[1], X),
    "layers.SpectralNorm.residual": (lambda x: SPECTRAL(x, UNIT)[2].residual, X),
    "layers.SpectralNorm.state": (lambda v: SPECTRAL(X, SpectralState(v)), UNIT.right),
    "problems.ConvolutionalEnergy.base": (lambda x: ConvolutionalEnergy(KEY, x, 2)(X[:3] > 0), X[:3]),
    "representation.DirectSet": (
        set_directly(lambda predictor, state, x: predictor(state._replace(matrix=x), X)),
        X[:3],
    ),
    "representation.DirectSet.update": (set_directly(lambda predictor, state, x: predictor.update(state, x, -X)), X),
    "sampling.floored": (floored, X),
    "sampling.median_distance": (median_distance, X),
}


@pytest.fixture(scope="module")
def derivatives():
    """The first-order change of all at once, and the change by a step."""

    @eqx.filter_jit(**QUICK)
    def every(given):
        def one(function, x):
            arrays = lambda x: eqx.filter(function(x), eqx.is_inexact_array)  # noqa: E731
            found, change = jax.jvp(arrays, (x,), (1.0 + jnp.abs(x),))
            return change, jax.tree.map(jnp.subtract, arrays(0.9 * x), found)

        return {name: one(function, x) for (name, (function, _)), x in zip(STOPPED.items(), given, strict=True)}

    return every([x for _, x in STOPPED.values()])


@pytest.mark.parametrize("name", STOPPED)
def test_no_gradient_passes(name, derivatives):
    first_order, by_a_step = derivatives[name]
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(first_order))
    assert any(np.any(leaf) for leaf in jax.tree.leaves(by_a_step)), "it must depend on what it is said to hold fixed"
