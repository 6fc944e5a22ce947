"""An episode to look at: what an agent does in an environment, step by step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require
from laureate.control.bridge import INSTALL
from laureate.control.bridge_dreaming import GymnasiumDreamerState, GymnasiumDreamerTraining
from laureate.control.dreaming import DreamerTraining, DreamerTrainingState
from laureate.control.exploration import BonusPPO, BonusPPOState
from laureate.control.training import Training, TrainingState

__all__ = ["Episode", "GymnasiumEpisode", "player", "record", "record_gymnasium"]

Policy = Callable[[Array, Array, Any], tuple[Array, Any]]


class Episode(NamedTuple):
    """An episode of at most T steps.

    state, observation: before the first step and after each, [T + 1, ...]. action, reward: of each step, [T, ...] and
    [T]. length: steps until the episode ended, T where it did not; what follows repeats its last state, with rewards of
    0. terminated, truncated: whether it ended there, by a rule or by a time limit.
    """

    state: Any
    observation: Array
    action: Array
    reward: Float[Array, " T"]
    length: Int[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


def record(key: Array, environment: Any, policy: Policy, num_steps: int, memory: Any = None) -> Episode:
    """One episode of an environment that is a pure function, as a program that can be compiled and vmapped.

    environment: with ``reset`` and ``step``, see ``laureate.loops.Environment``.
    policy: ``policy(key, observation, memory) -> (action, memory)``; ``player`` makes one of a trained agent.
    num_steps: T, >= 1: an episode that is longer is cut.
    memory: that the policy begins with.

    >>> from laureate.problems.environments import Chain
    >>> chain = Chain(4)
    >>> on = lambda key, seen, memory: (chain.forward[seen.argmax()], memory)
    >>> episode = record(jax.random.key(0), chain, on, 5)
    >>> episode.state.place.tolist(), int(episode.length), bool(episode.terminated)
    ([0, 1, 2, 3, 3, 3], 3, True)
    """
    require("record", "num_steps", "an integer >= 1", num_steps, lambda n: isinstance(n, int) and n >= 1)
    reset_key, run_key = jax.random.split(key)
    state, observation = environment.reset(reset_key)

    def move(carry: Any, key: Array) -> tuple[Any, Any]:
        state, seen, memory, (terminated, truncated) = carry
        over = terminated | truncated
        act_key, step_key = jax.random.split(key)
        action, memory = policy(act_key, seen, memory)
        reached, timestep = environment.step(step_key, state, action)
        stay = lambda old, new: jnp.where(over, old, new)  # noqa: E731
        state, seen = jax.tree.map(stay, state, reached), stay(seen, timestep.observation)
        ends = stay(terminated, timestep.terminated), stay(truncated, timestep.truncated)
        row = state, seen, action, jnp.where(over, 0.0, timestep.reward), ~over
        return (state, seen, memory, ends), row

    start = state, observation, memory, (jnp.asarray(False), jnp.asarray(False))
    (*_, ends), (states, seen, action, reward, going) = jax.lax.scan(move, start, jax.random.split(run_key, num_steps))
    joined = lambda first, rest: jnp.concatenate([jnp.asarray(first, rest.dtype)[None], rest])  # noqa: E731
    states, seen = jax.tree.map(joined, state, states), joined(observation, seen)
    return Episode(states, seen, action, reward, jnp.sum(going), *ends)


def player(learner: BonusPPO | Training | DreamerTraining | GymnasiumDreamerTraining, state: Any) -> tuple[Policy, Any]:
    """A trained agent as a policy for ``record``, and the memory that it begins an episode with.

    learner, state: ``Training`` or ``DreamerTraining`` with the state of its outcome, ``GymnasiumDreamerTraining`` with
        the state of its run, or ``BonusPPO`` with its own, as of ``GymnasiumTraining.run``.

    Actions are drawn as they are in training.
    """
    dreaming = (DreamerTraining, DreamerTrainingState), (GymnasiumDreamerTraining, GymnasiumDreamerState)
    kinds = ((BonusPPO, BonusPPOState), (Training, TrainingState), *dreaming)
    rule = "the state of learner = " + type(learner).__name__
    fits = (type(learner), type(state)) in kinds
    require("player", "state", rule, type(state).__name__, lambda _: fits, "Hand over outcome.state.")
    if isinstance(learner, DreamerTraining | GymnasiumDreamerTraining):
        agent = learner.learner
        decode = learner.decode if isinstance(learner, DreamerTraining) else lambda a: learner.decode(a[None])[0]

        def dream(key: Array, observation: Array, memory: Any) -> tuple[Array, Any]:
            known, first = memory
            known = agent.act(key, observation[None], first, known, state.learner)
            return decode(known.action[0]), (known, first & False)

        return dream, (agent.remember(1), jnp.ones(1, bool))
    agent, own = (learner.learner, state.learner) if isinstance(learner, Training) else (learner, state)

    def act(key: Array, observation: Array, memory: Any) -> tuple[Array, Any]:
        return agent.act(key, observation[None], own)[0][0], memory

    return act, None


class GymnasiumEpisode(NamedTuple):
    """An episode of a Gymnasium environment.

    frames: pictures before the first step and after each, [T + 1, height, width, 3]. reward: of each step, [T].
    terminated, truncated: whether it ended by a rule or by a time limit; neither where it was cut.
    """

    frames: np.ndarray
    reward: np.ndarray
    terminated: bool
    truncated: bool


def record_gymnasium(
    key: Array,
    make: Any,
    policy: Policy,
    num_steps: int,
    *,
    memory: Any = None,
    seed: int = 0,
    part: str = "",
    **options: Any,
) -> GymnasiumEpisode:
    """One episode of a Gymnasium environment in the pictures that it draws itself, on the host.

    make: the name of a registered environment, or a function ``make(render_mode="rgb_array")`` that makes one.
    policy, num_steps, memory: as for ``record``. seed: of the environment. part: as for ``GymnasiumEnvironments``.
    options: for ``gymnasium.make``.
    """
    try:
        import gymnasium  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise ModuleNotFoundError(INSTALL) from missing
    require("record_gymnasium", "num_steps", "an integer >= 1", num_steps, lambda n: isinstance(n, int) and n >= 1)
    one = (lambda **more: gymnasium.make(make, **more)) if isinstance(make, str) else make
    environment: Any = one(render_mode="rgb_array", **options)
    act, space = eqx.filter_jit(policy), environment.action_space
    bounds = (space.low, space.high) if isinstance(space, gymnasium.spaces.Box) else None
    try:
        seen, _ = environment.reset(seed=seed)
        frames, rewards, terminated, truncated = [environment.render()], [], False, False
        rule, remedy = "a picture [height, width, 3]", "The environment must draw itself with render_mode='rgb_array'."
        require("record_gymnasium", "render()", rule, np.shape(frames[0]), lambda s: s[2:] == (3,), remedy)
        for one_key in jax.random.split(key, num_steps):
            action, memory = act(one_key, jnp.asarray(seen[part] if part else seen), memory)
            action = np.asarray(action)
            action = int(action) if bounds is None and action.ndim == 0 else action
            action = action if bounds is None else np.clip(action, *bounds)
            seen, reward, terminated, truncated, _ = environment.step(action)
            frames.append(environment.render())
            rewards.append(float(reward))
            if terminated or truncated:
                break
    finally:
        environment.close()
    return GymnasiumEpisode(np.stack(frames), np.array(rewards, np.float32), bool(terminated), bool(truncated))
