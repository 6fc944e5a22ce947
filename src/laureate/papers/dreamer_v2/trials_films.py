"""Agents that were trained as in the experiments, each in one more episode, and what those that dream expect of it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from laureate import control as c
from laureate.lab.claim import Settings
from laureate.loops import Scene, Stroke
from laureate.papers.dreamer_v2.trials import candidates, dreamer_of, ppo_of
from laureate.problems.drawings import scene

__all__ = ["at_work"]


def at_work(key: Array, arm: Settings, problem: Any, scale: Settings) -> tuple[Scene, str]:
    """An episode in the room of the agent with the middle of the grids of rates and entropies: nothing is tuned.

    Of one that dreams, its dream of the whole episode from the first observation on is shown beside it.
    """
    world_key, run_key = jax.random.split(key)
    world = problem.drawn(world_key)
    rate, entropy = map(float, candidates(scale.rates, scale.entropies)[0])
    make_key, run_key = jax.random.split(run_key)
    dreams = arm.agent == "dreamer"
    if dreams:
        training: Any = dreamer_of(make_key, world, scale, mix=arm.mix, entropy=entropy, actor_rate=rate)
        updates = scale.updates
    else:
        training = ppo_of(make_key, arm, world, scale, rate, entropy)
        updates = scale.rollout * (scale.updates + scale.warmup) // scale.ppo_rollout
    state = training.run(run_key, updates).state
    policy, memory = c.player(training, state)
    recorded = eqx.filter_jit(lambda key: c.record(key, world, policy, world.limit, memory))
    episode = recorded(jax.random.fold_in(run_key, 1))
    drawing = scene(world, episode.state)
    if dreams:
        seen = dreamt(jax.random.fold_in(run_key, 2), training, state, episode.observation[0], world.limit)
        drawing = with_dream(drawing, world, seen)
    return drawing, f"on the warm cell after {int(episode.reward.sum())} of {int(episode.length)} steps"


def dreamt(key: Array, training: c.DreamerTraining, state: Any, first: Array, horizon: int) -> np.ndarray:
    """What the model shows of an episode that it has seen the beginning of, and whose actions are its actor's.

    It stays where the model says that the episode ends.
    """
    learner = training.learner
    world, actor = (eqx.combine(getattr(state.learner, n), getattr(learner, n)) for n in ("world", "actor"))

    @eqx.filter_jit
    def dream(key: Array) -> tuple[Array, Array]:
        start_key, dream_key = jax.random.split(key)
        memory = learner.remember(1)
        known, _ = world.rssm.step(start_key, memory.state, memory.action, world.embed(first[None]), jnp.ones(1, bool))
        rolled = c.imagine(dream_key, world, actor, learner.law, known, jnp.zeros(1, bool), horizon, learner.gamma)
        return jax.vmap(world.decoder)(rolled.features[:, 0]), rolled.discount[:, 0]

    seen, discount = map(np.asarray, dream(key))
    ends = np.flatnonzero(discount < 0.5 * float(learner.gamma))
    last = int(ends[0]) if len(ends) else len(seen) - 1
    return seen[np.minimum(np.arange(len(seen)), last)]


def with_dream(drawing: Scene, world: Any, seen: np.ndarray) -> Scene:
    """The drawing with the cells that were dreamt, small, and the one of now. A dream may jump: no line joins them."""
    cells = np.stack(np.divmod(seen.argmax(-1), world.side), axis=-1)[:, ::-1] + 0.72  # beside the true ones
    ever = (Stroke(cell[None, None], 0.14, "lit") for cell in np.unique(cells, axis=0))
    return drawing._replace(strokes=(*drawing.strokes, *ever, Stroke(cells[:, None], 0.3, "lit")))
