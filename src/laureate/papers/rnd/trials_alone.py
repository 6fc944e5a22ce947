"""The bonus without a far reward: its fall with exposure, a noisy television, and what its head does to the other."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings
from laureate.papers.rnd.trials import bonus_of, training_of
from laureate.problems.environments import Chain, NoisyTV

__all__ = ["decay", "interference", "television"]


def decay(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A bonus fitted to images of two classes: the error on new images of the rarer, by how many of it were there.

    Pixels are whitened by the statistics of all images of both classes, whatever is learned from: those of the mixture
    would change the error with n though nothing is learned.
    """
    draw_key, make_key, fit_key = jax.random.split(key, 3)
    images = problem.draw(draw_key)
    total, inputs = images.common.shape
    size = {"width": scale.width, "learning_rate": scale.rate * arm.speed}
    if arm.bonus == "autoencoder":
        bonus = c.make_autoencoder(make_key, inputs, num_features=scale.code, **size)
    else:
        bonus = c.make_rnd(make_key, inputs, num_features=scale.features, **size)

    both = jnp.concatenate([images.common, images.rare])
    start = bonus.observe(c.Transitions(both, None, both), bonus.init(both[0]))  # pyright: ignore[reportArgumentType]

    def error(count: Array) -> tuple[Array, Array]:
        rows = jnp.where(jnp.arange(total)[:, None] < count, images.rare, images.common)

        def fit(state, number):
            index_key, keep_key = jax.random.split(jax.random.fold_in(fit_key, number))
            batch = rows[jax.random.randint(index_key, (scale.batch,), 0, total)]
            return bonus.step(keep_key, c.Transitions(batch, None, batch), state)[0], None  # pyright: ignore[reportArgumentType]

        state, _ = jax.lax.scan(fit, start, jnp.arange(scale.steps))
        return jnp.mean(bonus.novelty(images.held, state)), jnp.mean(bonus.novelty(images.common, state))

    counts = jnp.asarray(scale.counts)
    rare, common = jax.vmap(error)(counts)
    logs, at = jnp.log(rare), jnp.log(counts.astype(jnp.float32))
    middle = at - jnp.mean(at)
    return {
        "log_error": logs,
        "log_count": at,
        "slope": jnp.sum(middle * logs) / jnp.sum(middle**2),
        "error": rare,
        "count": counts.astype(jnp.float32),
        "log_common": jnp.log(common[0]),
    }


def television(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """An agent that is paid by the bonus alone in a room with a television: how long does it stay there at the end?"""
    del problem
    make_key, run_key = jax.random.split(key)
    world = NoisyTV(scale.side, scale.pixels, arm.pictures, scale.limit)
    cells = scale.side**2

    def make(key):
        if arm.bonus == "count":  # of the cells alone
            return c.CountBonus(lambda seen: jnp.argmax(seen[:cells]), cells)
        return bonus_of(key, arm.bonus, scale.keep, world, scale)

    training = training_of(make_key, arm, world, scale, scale.actors, make)
    init_key, run_key = jax.random.split(run_key)

    def update(state, number):
        collect_key, learn_key = jax.random.split(jax.random.fold_in(run_key, number))
        rollout, _, state = training.collect(collect_key, state)
        learner, info = training.learner.step(learn_key, rollout, state.learner)
        place = jnp.argmax(rollout.following[..., :cells], axis=-1)
        watching = jnp.mean((place == cells - 1).astype(jnp.float32))
        told = watching, jnp.zeros(cells).at[place].add(1.0), info.status == int(Status.OK)
        return state._replace(learner=learner), told

    _, (watching, visits, fine) = jax.lax.scan(update, training.init(init_key), jnp.arange(scale.updates))
    late = scale.updates - scale.updates // 4
    share = jnp.sum(visits[late:], axis=0) / jnp.sum(visits[late:])
    return {
        "watching": jnp.mean(watching[late:]),
        "cells_seen": jnp.mean((jnp.sum(visits, axis=0) > 0).astype(jnp.float32)),
        "entropy": -jnp.sum(jnp.where(share > 0, share * jnp.log(jnp.maximum(share, 1e-9)), 0.0)),
        "finite": jnp.mean(fine.astype(jnp.float32)),
        "watching_curve": watching,
        "step": (1.0 + jnp.arange(scale.updates)) * scale.rollout * scale.actors,
    }


class ValuesOnly(eqx.Module):
    """A network whose policy is uniform, whatever its trunk says: it stays the same while values are learned."""

    network: c.ActorCritic

    def __call__(self, observation: Array) -> tuple[Array, Array]:
        """Equal logits, and the values."""
        wanted, values = self.network(observation)
        return jnp.zeros_like(jax.lax.stop_gradient(wanted)), values


class Amplified(eqx.Module):
    """A scale of rewards, times a factor."""

    scale: c.ReturnScale
    factor: Array | float

    def init(self, num_environments: int) -> c.ReturnScaleState:
        """As the scale's."""
        return self.scale.init(num_environments)

    def step(self, reward: Array, state: c.ReturnScaleState) -> tuple[Array, c.ReturnScaleState]:
        """Scaled, times the factor."""
        scaled, state = self.scale.step(reward, state)
        return self.factor * scaled, state

    def deviation(self, state: c.ReturnScaleState) -> Array:
        """As the scale's."""
        return self.scale.deviation(state)


def interference(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """The values of a fixed policy by two heads; how wrong are the extrinsic ones, as the bonus is scaled up?

    log_error: log of the root mean square error over the states of a short chain, of which the values are known, as a
        share of the values' own root mean square. trivial values of 0 have 0.
    """
    del problem
    world_key, network_key, bonus_key, init_key, run_key = jax.random.split(key, 5)
    world = Chain(scale.size, 4 * scale.size).drawn(world_key)
    network = c.make_actor_critic(network_key, scale.size, 2, num_heads=2, width=scale.width, kind=arm.trunk)
    ppo = c.PPO(
        ValuesOnly(network),
        c.Categorical(2),
        gamma=(scale.gamma_e, 0.99),
        episodic=(1.0, 0.0),
        entropy=0.0,
        learning_rate=scale.rate * arm.speed,
    )
    bonus = bonus_of(bonus_key, "rnd", scale.keep, world, scale)
    louder = Amplified(c.ReturnScale(0.99), arm.factor)
    learner = c.BonusPPO(ppo, bonus, louder, (2.0, 1.0), scale.epochs, scale.minibatches)  # pyright: ignore[reportArgumentType]
    training = c.Training(world, learner, scale.actors, scale.rollout, scale.warmup)
    step = lambda state, number: training.step(jax.random.fold_in(run_key, number), state)  # noqa: E731
    state, told = jax.lax.scan(step, training.init(init_key), jnp.arange(scale.updates))
    truth = world.values(0.5, scale.gamma_e)[:-1]
    _, values = ppo.evaluate(jnp.eye(scale.size)[:-1], state.learner.ppo)
    error = 0.5 * jnp.log(jnp.mean((values[:, 0] - truth) ** 2) / jnp.mean(truth**2))
    return {"log_error": error, "finite": jnp.mean((told.status == int(Status.OK)).astype(jnp.float32))}
