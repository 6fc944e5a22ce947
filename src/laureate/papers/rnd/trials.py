"""Agents that look for a far reward: when it is found first, and how often at the end."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings

__all__ = ["Stale", "actors", "explore", "stale", "training_of"]


def bonus_of(
    key: Array, kind: str, keep: float | Array, world: Any, scale: Settings, speed: float | Array = 1.0
) -> c.AbstractBonus | None:
    """The bonus of a name, with networks of one size; ``speed``: of its learning."""
    inputs = math.prod(world.observation_space.shape)
    size = {"num_features": scale.features, "width": scale.width, "keep": keep}
    size |= {"learning_rate": scale.rate * speed}
    if kind == "rnd":
        return c.make_rnd(key, inputs, **size)
    if kind == "dynamics":
        return c.make_dynamics(key, inputs, world.action_space.num, **size)
    if kind == "autoencoder":
        return c.make_autoencoder(key, inputs, **size)
    return c.CountBonus(jnp.argmax, inputs) if kind == "count" else None


def training_of(
    key: Array, arm: Settings, world: Any, scale: Settings, num_environments: int, bonus: Any
) -> c.Training:
    """An agent as the arm says; ``bonus``: a function from a key to one."""
    network_key, bonus_key = jax.random.split(key)
    made = bonus(bonus_key)
    heads = 1 if made is None else arm.heads
    outputs = c.law_of(world.action_space).size
    inputs = math.prod(world.observation_space.shape)
    network = c.make_actor_critic(network_key, inputs, outputs, num_heads=heads, width=scale.width)
    gammas, episodic = (arm.gamma_e, arm.gamma_i)[:heads], (1.0, arm.episodic)[:heads]
    ppo = c.PPO(
        network,
        c.law_of(world.action_space),
        gamma=gammas,
        episodic=episodic,
        entropy=arm.entropy,
        learning_rate=scale.rate * arm.speed,
    )
    scaled = c.ReturnScale(arm.gamma_i)
    learner = c.BonusPPO(ppo, made, scaled, (2.0, arm.coefficient), scale.epochs, scale.minibatches)
    return c.Training(world, learner, num_environments, scale.rollout, scale.warmup)


def drawn(key: Array, problem: Any) -> Any:
    """A problem of this seed where it offers one: another chain for every seed."""
    return problem.drawn(key) if hasattr(problem, "drawn") else problem


def found_first(rewarded: Array, returns: Array, episodes: Array) -> dict[str, Array]:
    """From every update whether there was a reward, and the sum of returns of its episodes.

    log_share: log of the share of the budget that was spent at the middle of the update that saw the first reward; 0
    where none was seen.
    success: the mean return of the episodes of the last quarter. area: of all episodes. curve: of those of each update.
    """
    updates = rewarded.shape[0]
    first = jnp.where(jnp.any(rewarded), jnp.argmax(rewarded) + 0.5, updates)
    late = jnp.arange(updates) >= updates - max(1, updates // 4)
    mean = lambda which: jnp.sum(jnp.where(which, returns, 0)) / jnp.maximum(jnp.sum(jnp.where(which, episodes, 0)), 1)  # noqa: E731
    return {
        "log_share": jnp.log(first / updates),
        "found": jnp.any(rewarded).astype(jnp.float32),
        "success": mean(late),
        "area": mean(late | True),
        "curve": returns / jnp.maximum(episodes, 1),
    }


def trained(key: Array, training: c.Training, updates: int) -> tuple[dict[str, Array], Array]:
    """What ``found_first`` says of a run, and its mean bonus in every update.

    finite: the share of updates whose losses were finite; weights that are not take action 0 for ever.
    """
    init_key, run_key = jax.random.split(key)

    def update(state, number):
        state, info = training.step(jax.random.fold_in(run_key, number), state)
        told = info.best > 0, info.episode_return * info.episodes, info.episodes
        return state, (told, info.learner.bonus, info.status == int(Status.OK))

    _, (told, bonus, fine) = jax.lax.scan(update, training.init(init_key), jnp.arange(updates))
    return found_first(*told) | {"finite": jnp.mean(fine.astype(jnp.float32))}, bonus


def explore(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """One agent on a chain of this seed."""
    world_key, make_key, run_key = jax.random.split(key, 3)
    world = drawn(world_key, problem)
    make = lambda key: bonus_of(key, arm.bonus, scale.keep, world, scale, arm.distil)  # noqa: E731
    training = training_of(make_key, arm, world, scale, scale.actors, make)
    found, _ = trained(run_key, training, scale.updates)
    return found | {"step": (1.0 + jnp.arange(scale.updates)) * scale.actors * scale.rollout}


def actors(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Agents with more and more actors and the same number of environment steps in all.

    log_steps: environment steps until the first reward, by the number of actors. most_area: ``area`` with the most
    actors. worst_share: the largest ``log_share``. finite: the least, with any number of actors.
    """
    world_key, make_key, run_key = jax.random.split(key, 3)
    world = drawn(world_key, problem)
    runs, steps = [], []
    for number in scale.actors:
        keep = jnp.where(arm.thinned > 0, jnp.minimum(1.0, scale.kept / number), 1.0)
        make = lambda key, keep=keep: bonus_of(key, "rnd", keep, world, scale)  # noqa: E731
        training = training_of(make_key, arm, world, scale, number, make)
        count = scale.steps // (number * scale.rollout)
        found, _ = trained(run_key, training, count)
        runs.append(found)
        steps.append(found["log_share"] + jnp.log(float(count * number * scale.rollout)))
    return {
        "log_steps": jnp.stack(steps),
        "log_actors": jnp.log(jnp.asarray(scale.actors, jnp.float32)),
        "most_area": runs[-1]["area"],
        "worst_share": jnp.max(jnp.stack([found["log_share"] for found in runs])),
        "finite": jnp.min(jnp.stack([found["finite"] for found in runs])),
    }


class Stale(c.AbstractBonus):
    """A bonus whose rewards come from the predictor as it was ``delay`` rollouts ago.

    bonus: an error of prediction. delay: rollouts, 0 … depth. depth: how many predictors are remembered.
    """

    bonus: c.AbstractPredictionBonus
    delay: Array
    depth: int = eqx.field(static=True)

    def init(self, observation: Any) -> Any:
        """All that is remembered is the first predictor."""
        state = self.bonus.init(observation)
        past = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.depth, *leaf.shape)), state.parameters)
        return state, past

    def observe(self, transitions: c.Transitions, state: Any) -> Any:
        """Statistics, and the predictor as it is now becomes the newest of the past."""
        now, past = state
        shifted = jax.tree.map(lambda new, old: jnp.concatenate([new[None], old[:-1]]), now.parameters, past)
        return self.bonus.observe(transitions, now), shifted

    def reward(self, transitions: c.Transitions, state: Any) -> Array:
        """From the predictor of then, with the statistics of now."""
        now, past = state
        back = jnp.maximum(self.delay.astype(jnp.int32) - 1, 0)
        choose = lambda new, old: jnp.where(self.delay > 0, old[back], new)  # noqa: E731
        return self.bonus.reward(transitions, now._replace(parameters=jax.tree.map(choose, now.parameters, past)))

    def step(self, key: Array, transitions: c.Transitions, state: Any) -> tuple[Any, c.BonusInfo]:
        """The newest predictor learns."""
        now, info = self.bonus.step(key, transitions, state[0])
        return (now, state[1]), info


def stale(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """An agent whose bonus lags behind; beside ``found_first``, how much the mean bonus swings.

    log_swing: log of the variance of log mean bonus at periods from the delay to four times the longest delay asked
        about, in the second half of the run, after a straight line is taken away.
    """
    world_key, make_key, run_key = jax.random.split(key, 3)
    world = drawn(world_key, problem)
    make = lambda key: Stale(bonus_of(key, "rnd", scale.keep, world, scale), jnp.asarray(arm.delay), scale.depth)  # noqa: E731  # pyright: ignore[reportArgumentType]
    training = training_of(make_key, arm, world, scale, scale.actors, make)
    found, bonus = trained(run_key, training, scale.updates)
    return found | {"log_swing": swing(jnp.log(bonus[scale.updates // 2 :]), scale.depth, 4 * scale.depth)}


def swing(series: Array, shortest: int, longest: int) -> Array:
    """log of the variance within a band of periods, after a straight line is taken away."""
    number = series.shape[0]
    at = jnp.arange(number) - (number - 1) / 2
    level = jnp.mean(series)
    rest = series - level - at * jnp.sum(at * (series - level)) / jnp.sum(at**2)
    power = jnp.abs(jnp.fft.rfft(rest)) ** 2 * 2 / number**2
    period = number / jnp.maximum(jnp.arange(power.shape[0]), 1e-9)
    return jnp.log(jnp.sum(jnp.where((period >= shortest) & (period <= longest), power, 0.0)) + 1e-12)
