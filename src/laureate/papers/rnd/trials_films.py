"""Agents that were trained as in the experiments, each in one more episode, to look at."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate import control as c
from laureate.lab.claim import Settings
from laureate.loops import Scene
from laureate.papers.rnd.trials import bonus_of, drawn, training_of
from laureate.problems.drawings import scene
from laureate.problems.environments import NoisyTV

__all__ = ["on_the_chain", "with_a_television"]


def played(key: Array, training: c.Training, updates: int, num_steps: int) -> c.Episode:
    """An episode after so many updates, with the keys of the experiment."""
    policy, memory = c.player(training, training.run(key, updates).state)
    recorded = eqx.filter_jit(lambda key: c.record(key, training.environment, policy, num_steps, memory))
    return recorded(jax.random.fold_in(key, 1))


def on_the_chain(key: Array, arm: Settings, problem: Any, scale: Settings) -> tuple[Scene, str]:
    """The way along the chain."""
    world_key, make_key, run_key = jax.random.split(key, 3)
    world = drawn(world_key, problem)
    make = lambda key: bonus_of(key, arm.bonus, scale.keep, world, scale, arm.distil)  # noqa: E731
    training = training_of(make_key, arm, world, scale, scale.actors, make)
    episode = played(run_key, training, scale.updates, world.limit)
    length, furthest = int(episode.length), int(episode.state.place.max()) + 1
    if float(episode.reward.sum()) > 0:
        return scene(world, episode.state), f"at the reward after {length} steps"
    return scene(world, episode.state), f"{length} steps without a reward; no further than state {furthest}"


def with_a_television(key: Array, arm: Settings, problem: None, scale: Settings) -> tuple[Scene, str]:
    """The way through the room, and what the television shows."""
    del problem
    make_key, run_key = jax.random.split(key)
    world = NoisyTV(scale.side, scale.pixels, arm.pictures, scale.limit)
    cells = scale.side**2

    def make(key: Array) -> Any:
        if arm.bonus == "count":  # of the cells alone
            return c.CountBonus(lambda seen: jnp.argmax(seen[:cells]), cells)
        return bonus_of(key, arm.bonus, scale.keep, world, scale)

    training = training_of(make_key, arm, world, scale, scale.actors, make)
    episode = played(run_key, training, scale.updates, world.limit)
    watching = int(jnp.sum(jnp.all(episode.state.place[1:] == world.side - 1, axis=-1)))
    return scene(world, episode.state), f"{watching} of {world.limit} steps before the television"
