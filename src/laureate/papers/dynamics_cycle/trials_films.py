"""A policy that acts through a map found from unpaired steps, in one episode, to look at."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate.lab.claim import Settings
from laureate.loops import Scene
from laureate.papers.dynamics_cycle.trials import data_of, found_by
from laureate.problems.drawings import scene
from laureate.problems.two_bodies import TwoBodies, starts, walk

__all__ = ["through_the_sensor"]


@eqx.filter_jit
def episode(key: Array, arm: Settings, problem: Any, scale: Settings) -> tuple[Array, Array]:
    """States of X under Y's policy, which sees what the arm's map makes of the sensor; and the mean squared distance
    of its last quarter from where the policy wants to be."""
    world_key, data_key, find_key, act_key = jax.random.split(key, 4)
    problem = problem.drawn(world_key)
    found = found_by(find_key, arm, data_of(data_key, problem, scale), scale)
    act = lambda _, y: problem.policy(found.translate(problem.see(y)))  # noqa: E731
    first = starts(act_key, problem.reset, 1, scale.horizon, problem.num_actions)
    before, _, after = walk(*first, problem.step_x, act)
    reward = jax.vmap(problem.reward)(after)
    return jnp.concatenate([before[:1], after]), jnp.mean(-reward[-len(reward) // 4 :])


def through_the_sensor(key: Array, arm: Settings, problem: Any, scale: Settings) -> tuple[Scene, str]:
    """The arm's links."""
    states, off = episode(key, arm, problem, scale)
    return scene(TwoBodies(), states), f"at the end {float(jnp.sqrt(off)):.2f} radians from where it wants to be"
