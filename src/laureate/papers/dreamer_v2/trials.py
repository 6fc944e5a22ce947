"""Agents that learn in their own model: against PPO, with both gradients of the actor, and at the ends of episodes."""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings

PARTS = 6  # points of a learning curve, so few that episodes end in each

__all__ = ["agents", "best_of", "candidates", "dreamer_of", "ends", "late_return", "true_values"]


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


def candidates(rates: tuple[float, ...], entropies: tuple[float, ...]) -> np.ndarray:
    """All pairs of a rate and an entropy, those in the middle of both grids first: of equal ones the first is taken."""
    off = lambda at, grid: abs(at - (len(grid) - 1) / 2)  # noqa: E731
    pairs = itertools.product(enumerate(rates), enumerate(entropies))
    order = sorted(pairs, key=lambda pair: (off(pair[0][0], rates), off(pair[1][0], entropies)))
    return np.array([(rate, entropy) for (_, rate), (_, entropy) in order], np.float32)


def best_of(key: Array, grid: np.ndarray, run: Any) -> dict[str, Array]:
    """Every row of the grid, [n, 2], in a run for tuning, and in a test what has the best ``late``; there its numbers.

    ``run(key, rate, entropy)`` is one run. A run for tuning that was not finite counts as the worst. ties: rows that
    were as good as the best.
    """
    tune_key, test_key = jax.random.split(key)

    # One scan, so that a run is compiled once: every row, and after the last the best of them with another key.
    def one(carry: tuple[Array, Array], at: tuple[Array, Array]) -> tuple[Any, Any]:
        (best, level), (row, tests) = carry, at
        bits = jnp.where(tests, jax.random.key_data(test_key), jax.random.key_data(tune_key))
        found = run(jax.random.wrap_key_data(bits), *jnp.where(tests, best, row))
        late = jnp.where(found["finite"] < 1, -jnp.inf, found["late"])
        carry = jnp.where((late > level) & ~tests, row, best), jnp.where(tests, level, jnp.maximum(late, level))
        return carry, (found, late)

    tests = jnp.arange(len(grid) + 1) == len(grid)
    rows = jnp.asarray(np.concatenate([grid, grid[:1]]))
    (best, level), (every, late) = jax.lax.scan(one, (rows[0], jnp.asarray(-jnp.inf)), (rows, tests))
    found = jax.tree.map(lambda leaf: leaf[-1], every)
    ties = jnp.sum((late[:-1] == level).astype(jnp.float32))
    return found | {"rate": best[0], "entropy": best[1], "ties": ties}


class Still(eqx.Module):
    """A law of actions that always takes the middle of a space: no force."""

    space: Any
    size: int = eqx.field(static=True, default=1)

    def sample(self, key: Array, parameters: Array) -> Array:
        """The middle."""
        del key
        middle = 0.5 * (self.space.low + self.space.high)
        return jnp.full((*parameters.shape[:-1], *self.space.shape), middle)

    def log_probability(self, parameters: Array, action: Array) -> Array:
        """It is certain."""
        del action
        return 0.0 * parameters[..., 0]

    def entropy(self, parameters: Array) -> Array:
        """None."""
        return 0.0 * parameters[..., 0]


def number_of(*networks: Any) -> Array:
    """How many numbers networks learn."""
    leaves = jax.tree.leaves(eqx.filter(networks, eqx.is_inexact_array))
    return jnp.asarray(float(sum(leaf.size for leaf in leaves)))


def network_of(key: Array, arm: Settings, world: Any, num_outputs: int, scale: Settings) -> Any:
    """The network of a PPO: with the encoder of the seed's world model, or perceptrons of its own."""
    if arm.agent == "encoded":
        # The same functions, the same sizes and, from the same key, the same first weights as DreamerV2's.
        encoder, head_key = dreamer_of(key, world, scale).learner.world.encoder, jax.random.split(key, 3)[2]
        seen = jnp.zeros(world.observation_space.shape)
        return c.make_encoded_actor_critic(head_key, encoder, seen, num_outputs, width=scale.width)
    sizes: dict[str, Any] = {"num_heads": 1, "width": arm.widths * scale.width, "depth": 2, "kind": "separate"}
    return c.make_actor_critic(key, math.prod(world.observation_space.shape), num_outputs, **sizes)


def ppo_of(key: Array, arm: Settings, world: Any, scale: Settings, rate: Any, entropy: Any) -> c.Training:
    """PPO in an environment, without a bonus."""
    law = Still(world.action_space) if arm.agent == "still" else c.law_of(world.action_space)
    network = network_of(key, arm, world, law.size, scale)
    policy = c.PPO(network, law, gamma=scale.gamma, entropy=entropy, learning_rate=rate * arm.speed, clip=0.2)
    learner = c.BonusPPO(policy, num_epochs=scale.epochs, num_minibatches=2)
    return c.Training(world, learner, scale.actors, scale.ppo_rollout, 0)


def runs_of(arm: Settings, world: Any, scale: Settings) -> Any:
    """``run(key, rate, entropy)``: a whole run of an arm, with as many environment steps for all."""
    total = scale.actors * scale.rollout * (scale.updates + scale.warmup)

    def dreamer(key: Array, rate: Array, entropy: Array) -> dict[str, Array]:
        make_key, key = jax.random.split(key)
        training = dreamer_of(make_key, world, scale, mix=arm.mix, entropy=entropy, actor_rate=rate)
        learner, warm = training.learner, scale.actors * scale.rollout * scale.warmup
        step = warm + (1.0 + jnp.arange(PARTS)) / PARTS * (total - warm)  # the curve begins after the warm-up
        parameters = number_of(learner.world, learner.actor, learner.critic)
        return run_of(key, training, scale.updates) | {"step": step, "parameters": parameters}

    def ppo(key: Array, rate: Array, entropy: Array) -> dict[str, Array]:
        make_key, key = jax.random.split(key)
        training = ppo_of(make_key, arm, world, scale, rate, entropy)
        steps = scale.rollout * (scale.updates + scale.warmup)  # those before learning are Dreamer's too
        step = (1.0 + jnp.arange(PARTS)) / PARTS * total
        found = run_of(key, training, steps // scale.ppo_rollout)
        return found | {"step": step, "parameters": number_of(training.learner.ppo.network)}

    return dreamer if arm.agent == "dreamer" else ppo


def agents(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """One agent: its rate and entropy chosen on the grid in one run, measured in another."""
    world_key, run_key = jax.random.split(key)
    world = problem.drawn(world_key) if hasattr(problem, "drawn") else problem
    return best_of(run_key, candidates(scale.rates, scale.entropies), runs_of(arm, world, scale))


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
    exact, counted = true_values(problem, batch, scale.gamma)
    mean = lambda x: jnp.sum(counted * x) / jnp.sum(counted)  # noqa: E731
    found = jnp.where(arm.trivial > 0, mean(exact), found)  # one number for all states, the best there is
    error, level = mean(jnp.abs(found - exact)), mean(exact)
    return {
        "log_error": jnp.log(error / level),
        "bias": mean(found - exact) / level,
        "finite": jnp.mean(fine.astype(jnp.float32)),
    }


def true_values(problem: Any, batch: c.Sequences, gamma: float | Array) -> tuple[Array, Array]:
    """V of what is observed, and 1 where a step counts: within an episode, the first of a sequence left out."""
    place = jnp.minimum(jnp.argmax(batch.observation, axis=-1), problem.cells - 1)
    counted = (~batch.first & ~batch.terminal).astype(jnp.float32)
    return problem.values(gamma)[place], counted.at[0].set(0.0)
