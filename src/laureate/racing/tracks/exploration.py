"""PPO with a bonus in an environment: the return of fresh episodes at equal numbers of environment steps."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.control import Training, TrainingState, law_of
from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.loops import Discrete
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]

ACTORS, ROLLOUT = 16, 32


def facts(problem: Any) -> dict[str, Any]:
    """Numbers of an observation and of what the policy's law wants, and the cost of a few updates."""
    environment, key = view(problem), jax.random.key(0)
    try:
        law = law_of(environment.action_space)
    except ValueError as error:
        raise UserError(f"environment.action_space: {error}") from None
    shape = tuple(environment.observation_space.shape)
    action = jax.eval_shape(law.sample, key, jax.ShapeDtypeStruct((law.size,), jnp.float32))
    state, seen = jax.eval_shape(environment.reset, key)
    _, timestep = jax.eval_shape(environment.step, key, state, action)
    for what, found in (("reset", seen), ("step", timestep.observation)):
        if found.shape != shape:
            raise UserError(f"environment.{what} must show {list(shape)} numbers; got {list(found.shape)}.")
    if timestep.reward.shape != ():
        raise UserError(f"environment.step must have a reward of one number; got {list(timestep.reward.shape)}.")
    absent = {} if isinstance(environment.action_space, Discrete) else {"dynamics": "its actions are choices"}
    numbers = {"inputs": math.prod(shape), "outputs": law.size, "actors": ACTORS, "rollout": ROLLOUT}
    return numbers | {"smallest": 8 * ACTORS * ROLLOUT, "absent": absent}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same first network, environments and judges for all entrants of a seed."""
    clock, environment, settings = Clock(scale), view(problem), traced(arm)
    *keys, run_key, judge_key = jax.random.split(key, 5)
    carry = clock.run(_begin, settings, environment, keys)
    size = int(scale.judges), int(scale.longest)
    for target in clock.targets():
        carry = clock.run(_advance, settings, environment, keys, run_key, carry, jnp.asarray(target, jnp.int32))
        (state, episodes, total), _, cost = carry
        fresh = 0.0
        if not clock.pilot:
            fresh = clock.run(_judge, settings, environment, keys, judge_key, state.learner, *size, free=True)
        clock.note(int(cost), fresh=fresh, earned=float(total) / max(float(episodes), 1.0))
    return clock.record()


def _training(settings: dict, environment: Any, keys: Any, actors: int = ACTORS, rollout: int = ROLLOUT) -> Training:
    learner = made(settings, environment=environment)(keys[0], keys[1])
    return Training(environment, learner, actors, rollout)


def _begin(settings: dict, environment: Any, keys: Any) -> Any:
    training = _training(settings, environment, keys)
    warm = 0 if training.learner.bonus is None else training.num_warmup * ACTORS * ROLLOUT
    zero = jnp.asarray(0.0)
    return (training.init(keys[2]), zero, zero), jnp.asarray(0, jnp.int32), jnp.asarray(warm, jnp.int32)


def _advance(settings: dict, environment: Any, keys: Any, key: Any, carry: Any, target: Any) -> Any:
    training = _training(settings, environment, keys)

    def update(told, index):
        state, episodes, total = told
        state, info = training.step(jax.random.fold_in(key, index), state)
        return (state, episodes + info.episodes, total + info.episodes * info.episode_return), info.cost

    state, count, cost = carry
    return spend(update, state, count, cost, target)


def _judge(settings: dict, environment: Any, keys: Any, key: Any, learner: Any, judges: int, longest: int) -> Any:
    """The first episode of every environment; one that has not ended counts what it has so far."""
    training = _training(settings, environment, keys, judges, longest)
    start_key, act_key = jax.random.split(key)
    states, seen = jax.vmap(environment.reset)(jax.random.split(start_key, judges))
    rollout, _, _ = training.collect(act_key, TrainingState(learner, states, seen, jnp.zeros(judges)))
    first = jnp.cumsum(rollout.ended, axis=0) - rollout.ended == 0
    return jnp.mean(jnp.sum(jnp.where(first, rollout.reward, 0.0), axis=0))
