"""The track of exploration: what it charges, and which episodes it judges by."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.claim import Settings
from laureate.loops import Box, Discrete, Timestep
from laureate.racing.tracks.clock import traced
from laureate.racing.tracks.exploration import ACTORS, ROLLOUT, _begin, facts, trial

UPDATE = ACTORS * ROLLOUT


class Turns(eqx.Module):
    """Episodes of three steps with rewards of 1, 2 and 4, whatever one does."""

    observation_space = Box((1,))
    action_space = Discrete(2)

    def reset(self, key):
        return jnp.asarray(0), jnp.zeros(1)

    def step(self, key, state, action):
        reward = 2.0**state
        return state + 1, Timestep(jnp.ones(1) * state, reward, state == 2, jnp.asarray(False))


def entrant(bonus, heads):
    network = f"make_actor_critic(key, inputs, outputs, num_heads={heads}, width=2, depth=1)"
    gammas = "(0.9, 0.9), (1, 0)" if heads == 2 else "0.9"
    code = f"lambda key, other: BonusPPO(PPO({network}, law_of(environment.action_space), {gammas}), {bonus}, num_epochs=1, num_minibatches=1)"  # noqa: E501
    found = {name: value for name, value in facts(Turns()).items() if name not in ("smallest", "absent")}
    return Settings({"code": code, "area": "control", "swept": "", **found})


def raced(bonus, heads, longest, cost):
    scale = Settings(cost=cost, points=2, seconds=100.0, phase="score", judges=3, longest=longest)
    return trial(jax.random.key(0), entrant(bonus, heads), Turns(), scale)


def test_an_entrant_is_judged_by_first_episodes_and_charged_for_all_its_steps():
    told = raced("None", 1, longest=5, cost=4 * UPDATE)
    np.testing.assert_array_equal(told["cost"], [2 * UPDATE, 4 * UPDATE])
    np.testing.assert_allclose(told["fresh"], 7.0)  # and not the first two steps of the next
    np.testing.assert_allclose(told["earned"], 7.0, rtol=1e-6)


def test_the_warm_up_of_a_bonus_is_charged_and_an_episode_that_goes_on_counts_what_it_has():
    told = raced("CountBonus(lambda seen: 0, 1)", 2, longest=2, cost=2 * UPDATE)
    np.testing.assert_array_equal(told["cost"], [2 * UPDATE, 2 * UPDATE])  # the first point is one update and it
    np.testing.assert_allclose(told["fresh"], 3.0)


def test_only_who_has_a_bonus_pays_for_its_warm_up():
    """Nothing but the cost is asked for, so that nothing else is compiled."""
    keys = jax.random.split(jax.random.key(0), 3)

    def warm(bonus, heads):
        return int(jax.jit(lambda: _begin(traced(entrant(bonus, heads)), Turns(), keys)[2])())

    assert warm("None", 1) == 0
    assert warm("CountBonus(lambda seen: 0, 1)", 2) == UPDATE
