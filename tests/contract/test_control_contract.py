"""A row for every bonus, and for whole runs; ``laureate.testing`` has the checks."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate.problems.environments import Chain
from laureate.testing import KeyRecorder, check_exploration_bonus, check_random_function
from laureate.testing._checks import numbers_as_arrays

QUICK: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
RNG = np.random.default_rng(0)
TYPES = {c.RND, c.AutoencoderBonus, c.DynamicsBonus, c.CountBonus, c.PPO, c.BonusPPO, c.ReturnScale, c.Training}
STEPS = c.Transitions(
    jnp.asarray(RNG.normal(size=(8, 3)), jnp.float32),
    jnp.arange(8) % 2,
    jnp.asarray(3 * RNG.normal(size=(8, 3)), jnp.float32),
)


class Line(eqx.Module):
    """A linear map of all that it is given."""

    matrix: jax.Array

    def __call__(self, *parts):
        return self.matrix @ jnp.concatenate(parts)


def line(outputs, inputs, seed=0):
    table = np.random.default_rng(seed).normal(size=(outputs, inputs))
    return Line(jnp.asarray(table, jnp.float32))


def one_hot(action):
    return jax.nn.one_hot(action, 2)


NUMBERS = {"keep": 0.5, "clip": 1.0, "learning_rate": 0.1}
# The same seen a moment ago by NumPy: kind -> a function of the numbers.
BONUSES = {
    "rnd": lambda **numbers: c.RND(line(2, 3), line(2, 3, 1), **NUMBERS | numbers),
    "autoencoder": lambda **numbers: c.AutoencoderBonus(line(3, 3), **NUMBERS | numbers),
    "dynamics": lambda **numbers: c.DynamicsBonus(line(2, 3), line(2, 5, 1), one_hot, **NUMBERS | numbers),
}


# What they share has a row, and their errors have closed forms in tests/control.
SIBLINGS = ("autoencoder", "dynamics")
SIDE_BY_SIDE = ("vmap equals a loop",)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in SIBLINGS)) for k in BONUSES])
def test_bonus(kind):
    others = [BONUSES[kind](**one) for one in ({"keep": 0.9}, {"clip": 0.5}, {"learning_rate": 0.2})]
    # Every trial puts seeds side by side, and the slow rows do.
    check_exploration_bonus(BONUSES[kind](), STEPS, others=others, skip=() if kind in SIBLINGS else SIDE_BY_SIDE)


def test_count_bonus():
    bonus = c.CountBonus(c.SimHash(line(3, 3).matrix), 8)
    check_exploration_bonus(
        bonus, STEPS, learns=False, unused=(".directions",), skip=("divergence", "float64", *SIDE_BY_SIDE)
    )


class Tables(eqx.Module):
    """Logits and two values from tables, for one-hot observations."""

    logits: jax.Array
    values: jax.Array

    def __call__(self, x):
        return x @ self.logits, x @ self.values


def training(**numbers):
    """Every number of a whole run, by name."""
    given = {"lam": 0.9, "clip": 0.1, "entropy": 0.01, "learning_rate": 0.1}
    ppo = {name: numbers.pop(name, value) for name, value in given.items()}
    network = Tables(line(4, 2).matrix, line(4, 2, 1).matrix)
    gamma, scale = numbers.pop("gamma", (0.9, 0.8)), c.ReturnScale(numbers.pop("scale", 0.7))
    policy = c.PPO(network, c.Categorical(2), gamma=gamma, episodic=numbers.pop("episodic", (1, 0)), **ppo)
    bonus = c.RND(line(2, 4), line(2, 4, 1), keep=0.5)  # pyright: ignore[reportCallIssue]
    learner = c.BonusPPO(policy, bonus, scale, numbers.pop("coefficients", (2.0, 1.0)), num_epochs=2, num_minibatches=2)
    return c.Training(Chain(4, 4), learner, num_environments=4, num_steps=6)


@pytest.fixture(scope="module")
def walk():
    """A compiled run of three updates with its traces counted; numbers are arguments."""
    traces = []

    def run(training, key):
        traces.append(1)  # once a trace
        init_key, run_key = jax.random.split(key)
        step = lambda state, number: training.step(jax.random.fold_in(run_key, number), state)  # noqa: E731
        state, told = jax.lax.scan(step, training.init(init_key), jnp.arange(3))
        return state, told

    compiled = eqx.filter_jit(run, **QUICK)
    return (lambda training, key: compiled(numbers_as_arrays(training), key)), traces


def test_every_number_of_a_run_counts_none_compiles_and_no_key_is_used_twice(walk):
    run, traces = walk
    with KeyRecorder() as recorder:
        state, told = jax.block_until_ready(run(training(), jax.random.key(0)))
        assert not recorder.reused()
    np.testing.assert_array_equal(told.cost, 24)
    np.testing.assert_array_equal(told.status, 0)
    policy = state.learner.ppo.parameters
    others = ({"lam": 0.5}, {"clip": 0.01}, {"entropy": 0.5}, {"learning_rate": 0.01}, {"gamma": (0.5, 0.8)})
    others += ({"gamma": (0.9, 0.5)}, {"episodic": (1, 1)}, {"coefficients": (1.0, 1.0)}, {"coefficients": (2.0, 0.5)})
    for numbers in (*others, {"scale": 0.1}):
        found = run(training(**numbers), jax.random.key(0))[0].learner.ppo.parameters
        assert not np.array_equal(found.logits, policy.logits), numbers
    assert len(traces) == 1


@pytest.mark.slow  # every trial does it
def test_seeds_side_by_side_are_seeds_one_by_one(walk):
    run, _ = walk
    keys = jax.random.split(jax.random.key(1), 2)
    agent = training()

    both = eqx.filter_jit(jax.vmap(lambda key: agent.run(key, 3).seen.learner.bonus), **QUICK)(keys)
    for row, key in enumerate(keys):
        np.testing.assert_allclose(both[row], run(agent, key)[1].learner.bonus, rtol=1e-4)


@pytest.mark.slow
def test_networks_are_made_of_keys_that_are_used_once():
    def made(key):
        one, two, three, four, five = jax.random.split(key, 5)
        networks = c.make_actor_critic(one, 2, 2, width=2, kind="separate"), c.make_rnd(two, 2, width=2, num_features=2)
        others = c.make_autoencoder(three, 2, width=2), c.make_dynamics(four, 2, 2, width=2, num_features=2)
        return eqx.filter((networks, others, c.minibatches(five, 4, 2, 2)), eqx.is_array)

    check_random_function(eqx.filter_jit(made, **QUICK), name="make")
