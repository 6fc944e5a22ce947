"""Agents that learn in their own model: against PPO, with both gradients of the actor, and at the ends of episodes."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings

PARTS = 10  # points of a learning curve

__all__ = ["agents", "best_of", "dreamer_of", "ends", "late_return"]


def plain(reward: Array) -> Array:
    """Rewards as they are."""
    return reward


def law_of(space: Any) -> c.OneHot | c.TruncatedNormal:
    """The law of actions."""
    return c.OneHot(1, space.num) if hasattr(space, "num") else c.TruncatedNormal(space.shape[0])


def dreamer_of(key: Array, world: Any, scale: Settings, *, discount: bool = True, **numbers: Any) -> c.DreamerTraining:
    """DreamerV2 in an environment, with networks of the scale's sizes."""
    latent = c.OneHot(scale.variables, scale.classes)
    learner = c.make_dreamer(
        key,
        world.observation_space.shape,
        law_of(world.action_space),
        latent=latent,
        memory=scale.memory,
        width=scale.width,
        discount=discount,
        gamma=scale.gamma,
        model_rate=scale.model_rate,
        critic_rate=scale.critic_rate,
        horizon=scale.horizon,
        slow_every=scale.slow_every,
        transform=plain,
        **numbers,
    )
    replay = c.Replay(scale.capacity, scale.length)
    return c.DreamerTraining(
        world, learner, replay, scale.actors, scale.rollout, scale.gradients, scale.batch, scale.warmup
    )


def late_return(returns: Array, episodes: Array) -> tuple[Array, Array]:
    """From every update the sum of returns of its episodes, and their number: the mean return of the last third of
    updates, and of all."""
    number = returns.shape[0]
    late = jnp.arange(number) >= number - max(1, number // 3)
    mean = lambda which: jnp.sum(jnp.where(which, returns, 0)) / jnp.maximum(jnp.sum(jnp.where(which, episodes, 0)), 1)  # noqa: E731
    return mean(late), mean(late | True)


def run_of(key: Array, training: Any, updates: int) -> dict[str, Array]:
    """A whole run: ``late`` and ``area`` of its returns, the curve, and the share of updates that were finite."""
    init_key, run_key = jax.random.split(key)

    def update(state: Any, number: Array) -> tuple[Any, tuple[Array, ...]]:
        state, info = training.step(jax.random.fold_in(run_key, number), state)
        return state, (info.episode_return * info.episodes, info.episodes, info.status == int(Status.OK))

    _, (returns, episodes, fine) = jax.lax.scan(update, training.init(init_key), jnp.arange(updates))
    late, area = late_return(returns, episodes)
    part = jnp.arange(updates) * PARTS // updates
    total = lambda rows: jnp.zeros(PARTS).at[part].add(rows)  # noqa: E731
    curve = total(returns) / jnp.maximum(total(episodes), 1)
    return {"late": late, "area": area, "curve": curve, "finite": jnp.mean(fine.astype(jnp.float32))}


def best_of(key: Array, rates: tuple[float, ...], run: Any) -> dict[str, Array]:
    """Each rate in two runs, tuning and test: the rate with the best ``late`` in the first, and what it gives in the
    second. ``run(key, rate)`` is one run. finite: the least of all."""
    tune_key, test_key = jax.random.split(key)
    grid = jnp.asarray(rates, jnp.float32)

    # One scan, so that a run is compiled once: every rate, and after the last the best of them with another key.
    def one(carry: tuple[Array, Array], at: tuple[Array, Array]) -> tuple[Any, dict[str, Array]]:
        (best, level), (rate, tests) = carry, at
        bits = jnp.where(tests, jax.random.key_data(test_key), jax.random.key_data(tune_key))
        found = run(jax.random.wrap_key_data(bits), jnp.where(tests, best, rate))
        better = found["late"] > level
        carry = jnp.where(better & ~tests, rate, best), jnp.where(better, found["late"], level)
        return carry, found

    tests = jnp.arange(len(rates) + 1) == len(rates)
    start = grid[0], jnp.asarray(-jnp.inf)
    (best, _), every = jax.lax.scan(one, start, (jnp.append(grid, grid[0]), tests))
    found = jax.tree.map(lambda leaf: leaf[-1], every)
    return found | {"finite": jnp.min(every["finite"]), "rate": best}


def agents(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """One agent: its rate chosen on the grid in one run, measured in another."""
    world_key, run_key = jax.random.split(key)
    world = problem.drawn(world_key) if hasattr(problem, "drawn") else problem

    def dreamer(key: Array, rate: Array) -> dict[str, Array]:
        make_key, key = jax.random.split(key)
        training = dreamer_of(make_key, world, scale, mix=arm.mix, entropy=arm.entropy, actor_rate=rate * arm.speed)
        return run_of(key, training, scale.updates)

    def ppo(key: Array, rate: Array) -> dict[str, Array]:
        make_key, key = jax.random.split(key)
        inputs = math.prod(world.observation_space.shape)
        law = c.law_of(world.action_space)
        network = c.make_actor_critic(make_key, inputs, law.size, num_heads=1, width=scale.width, depth=2)
        policy = c.PPO(network, law, gamma=scale.gamma, entropy=arm.entropy, learning_rate=rate * arm.speed, clip=0.2)
        learner = c.BonusPPO(policy, num_epochs=scale.epochs, num_minibatches=2)
        training = c.Training(world, learner, scale.actors, scale.ppo_rollout, 0)
        steps = scale.rollout * (scale.updates + scale.warmup)  # those before learning are Dreamer's too
        return run_of(key, training, steps // scale.ppo_rollout)

    found = best_of(run_key, scale.rates, dreamer if arm.agent == "dreamer" else ppo)
    total = scale.actors * scale.rollout * (scale.updates + scale.warmup)
    return found | {"step": (1.0 + jnp.arange(PARTS)) / PARTS * total}


def ends(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The value of random steps, learned in imagination, beside the exact one.

    log_error: log of the mean of |v − V| over the mean V, of states within episodes. bias: mean (v − V) / mean V.
    """
    make_key, init_key, run_key, look_key, sample_key = jax.random.split(key, 5)
    training = dreamer_of(make_key, problem, scale, discount=arm.ends == "predicted", actor_rate=0.0, decay=0.0)

    def update(state: Any, number: Array) -> tuple[Any, Array]:
        state, info = training.step(jax.random.fold_in(run_key, number), state)
        return state, info.status == int(Status.OK)

    state, fine = jax.lax.scan(update, training.init(init_key), jnp.arange(scale.updates))
    batch = training.replay.sample(sample_key, 64, state.replay)
    learner = training.learner
    world = eqx.combine(state.learner.world, learner.world)
    critic = eqx.combine(state.learner.critic, learner.critic)
    posterior, _ = world.observe(look_key, batch)
    found = jax.vmap(jax.vmap(critic))(posterior.features)[..., 0]
    exact = problem.values(scale.gamma)[jnp.minimum(jnp.argmax(batch.observation, axis=-1), problem.cells - 1)]
    counted = (~batch.first & ~batch.terminal).astype(found.dtype)
    counted = counted.at[0].set(0.0)
    mean = lambda x: jnp.sum(counted * x) / jnp.sum(counted)  # noqa: E731
    found = jnp.where(arm.trivial > 0, mean(exact), found)  # one number for all states, the best there is
    error, level = mean(jnp.abs(found - exact)), mean(exact)
    return {
        "log_error": jnp.log(error / level),
        "bias": mean(found - exact) / level,
        "finite": jnp.mean(fine.astype(jnp.float32)),
    }
