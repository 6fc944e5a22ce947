"""A row for every bonus, and for whole runs; ``laureate.testing`` has the checks."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from row_types import of_rows, types_in
from test_control_cycle import CYCLES, CYCLING

from laureate import control as c
from laureate.problems.environments import Chain
from laureate.testing import check_exploration_bonus, check_learner, check_random_function

QUICK: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
RNG = np.random.default_rng(0)
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


SIDE_BY_SIDE = ("vmap equals a loop",)  # every trial puts seeds side by side


@pytest.mark.parametrize("kind", BONUSES)
def test_bonus(kind):
    others = [BONUSES[kind](**one) for one in ({"keep": 0.9}, {"clip": 0.5}, {"learning_rate": 0.2})]
    check_exploration_bonus(BONUSES[kind](), STEPS, others=others, skip=SIDE_BY_SIDE if kind == "rnd" else ())


COUNTS = c.CountBonus(c.SimHash(line(3, 3).matrix), 8)


def test_count_bonus():
    check_exploration_bonus(
        COUNTS, STEPS, learns=False, unused=(".directions",), skip=("divergence", "float64", *SIDE_BY_SIDE)
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


TRAINING = training()
NUMBERS_OF_A_RUN = ({"lam": 0.5}, {"clip": 0.01}, {"entropy": 0.5}, {"learning_rate": 0.01}, {"gamma": (0.5, 0.8)})
NUMBERS_OF_A_RUN += ({"gamma": (0.9, 0.5)}, {"episodic": (1, 1)}, {"coefficients": (1.0, 1.0)}, {"scale": 0.1})
NUMBERS_OF_A_RUN += ({"coefficients": (2.0, 0.5)},)


def test_every_number_of_a_run_counts_none_compiles_and_no_key_is_used_twice():
    check_learner(
        TRAINING,
        None,  # it makes its own
        init=lambda training, key: training.init(key),
        step=lambda training, key, _, state: training.step(key, state),
        learned=lambda state: state.learner.ppo.parameters,
        others=[training(**numbers) for numbers in NUMBERS_OF_A_RUN],
        cost=24,
        unused=(".episodic",),  # 0 or 1
    )


def seen(*shape):
    return jnp.asarray(RNG.normal(size=(3, 4, *shape)), jnp.float32)


ROLLOUT = c.Rollout(
    seen(4), jnp.arange(12).reshape(3, 4) % 2, -abs(seen()), seen(4), seen(), seen() > 1, seen() > 0.5, seen(4)[0]
)


def test_bonus_ppo():
    check_learner(
        TRAINING.learner,
        ROLLOUT,
        init=lambda learner, key: learner.observe(ROLLOUT, learner.init(jnp.zeros(4), 4)),
        learned=lambda state: (state.ppo.parameters, state.bonus),
        cost=12,
        unused=(".episodic", ".clip"),  # what is cut here is so by far, and the bonus cuts nothing
    )


def ppo_step(ppo, key, rollout, state):
    """One gradient step on the whole rollout, with its reward for both heads."""
    advantage, target = ppo.advantages(rollout, jnp.stack([rollout.reward] * 2, axis=-1), state)
    taken = rollout.observation, rollout.action, rollout.log_probability
    return ppo.step(c.PPOBatch(*taken, jnp.sum(advantage, axis=-1), target), state)


def test_ppo():
    check_learner(
        TRAINING.learner.ppo,
        ROLLOUT,
        step=ppo_step,
        learned=lambda state: state.parameters,
        cost=12,
        draws=False,
        unused=(".episodic",),
    )


def critic_step(critic, key, rows, state):
    """Given rows, and what was made of them."""
    return critic.step(key, rows, 2 * rows + 1, state)


def test_pooled_critic():
    critic = CYCLES["dynamics-cycle"].critic
    check_learner(
        critic,
        seen(2)[0],
        init=lambda critic, key: critic.init(jnp.zeros(2)),
        step=critic_step,
        learned=lambda state: state.parameters,
        others=[c.PooledCritic(critic.network, 0.5, num_kept=critic.num_kept)],
        cost=8,
    )


def dreamer(free=0.01):
    """Of linear layers, with every number at work."""
    numbers = {"horizon": 3, "slow_every": 2, "free": free, "mix": 0.5, "entropy": 0.1, "decay": 0.01, "clip": 0.5}
    rates = {"model_rate": 0.01, "actor_rate": 0.02, "critic_rate": 0.03}
    sizes = {"latent": c.OneHot(2, 3), "memory": 4, "width": 5}
    return c.make_dreamer(jax.random.key(0), (4,), c.OneHot(1, 2), **sizes, **numbers, **rates)


def test_dreamer():
    batch = c.Sequences(seen(4), seen(2), seen(), seen() > 1, seen() > 1)
    learned = lambda state: (state.world, state.actor, state.critic)  # noqa: E731
    agent, other = eqx.filter_jit(lambda: (dreamer(), dreamer(free=5.0)), **QUICK)()
    # Free nats count where the divergence is below them, and then nothing else of it does.
    check_learner(agent, batch, learned=learned, others=[other], cost=12, unused=(".free",))


def TYPES():  # noqa: N802
    """Called by the one test that asks, for tracing takes time."""
    bonuses = {kind: make() for kind, make in BONUSES.items()}
    single = {"test_count_bonus": COUNTS, "test_bonus_ppo": TRAINING.learner, "test_ppo": TRAINING.learner.ppo}
    single |= {"test_every_number_of_a_run_counts_none_compiles_and_no_key_is_used_twice": TRAINING}
    single |= {"test_dreamer": eqx.filter_eval_shape(dreamer), "test_pooled_critic": CYCLES["dynamics-cycle"].critic}
    rows = of_rows("test_bonus", bonuses) | {test: {type(one)} for test, one in single.items()}
    return rows | of_rows(CYCLING, CYCLES), types_in(bonuses, single, CYCLES)[1]


@pytest.mark.slow  # every trial does it
def test_seeds_side_by_side_are_seeds_one_by_one():
    keys = jax.random.split(jax.random.key(1), 2)
    run = lambda key: TRAINING.run(key, 3).seen.learner.bonus  # noqa: E731
    both = eqx.filter_jit(jax.vmap(run), **QUICK)(keys)
    for row, key in enumerate(keys):
        np.testing.assert_allclose(both[row], run(key), rtol=1e-4)


@pytest.mark.slow
def test_networks_are_made_of_keys_that_are_used_once():
    def made(key):
        one, two, three, four, five = jax.random.split(key, 5)
        networks = c.make_actor_critic(one, 2, 2, width=2, kind="separate"), c.make_rnd(two, 2, width=2, num_features=2)
        others = c.make_autoencoder(three, 2, width=2), c.make_dynamics(four, 2, 2, width=2, num_features=2)
        return eqx.filter((networks, others, c.minibatches(five, 4, 2, 2)), eqx.is_array)

    check_random_function(eqx.filter_jit(made, **QUICK), name="make")
