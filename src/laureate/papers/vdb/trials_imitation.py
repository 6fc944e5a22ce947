"""Imitation and inverse reinforcement learning in small mazes, with an exact inner solver."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate import generative as g
from laureate.lab.claim import Settings
from laureate.problems.mazes import MazeTables

__all__ = ["imitation", "transfer"]

DISCOUNT = 0.95
# Of the expert, in the unit of the reward: it errs, as people do.
EXPERT = 0.05
UNSEEN = 1e-6


def environment_of(tables: MazeTables) -> g.FiniteEnvironment:
    """A maze as what is imitated in; its reward is not part of it."""
    return g.FiniteEnvironment(tables.following, tables.start, tables.features, DISCOUNT)


def regulariser_of(arm: Settings, encoder: Any, knob: Array) -> Any:
    """The arm's bottleneck, noise, or nothing; ``knob``: the number that the arm's grid tries."""
    if arm.kind == "bottleneck":
        beta = knob if arm.knob == "betas" else arm.beta
        return g.VariationalBottleneck(encoder, arm.information, beta=beta, beta_rate=arm.beta_rate)
    return g.InstanceNoise(knob) if arm.kind == "noise" else None


def grid_of(arm: Settings, scale: Settings) -> Array:
    """Every number of the arm's grid with every rate, [pairs, 2]."""
    knobs, rates = jnp.asarray(scale[arm.knob] if arm.knob else (0.0,)), jnp.asarray(scale.rates)
    return jnp.stack(jnp.meshgrid(knobs, rates, indexing="ij"), axis=-1).reshape(-1, 2)


def share(world: g.FiniteEnvironment, policy: Array, tables: MazeTables) -> Array:
    """The return as a share of what the best policy has above a random one: 0 for random, 1 for the best."""
    chance = jnp.full(policy.shape, 1 / policy.shape[1])
    best = world.solve(tables.reward)
    found, least, most = (world.worth(one, tables.reward) for one in (policy, chance, best))
    return (found - least) / (most - least)


def chosen(scores: Array) -> Array:
    """The rate with the lowest score; what is not finite is never chosen."""
    return jnp.argmin(jnp.where(jnp.isfinite(scores), scores, jnp.inf))


def imitation(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """One demonstration's states: how far are the states that the imitator visits from those of the expert?"""
    demo_key, held_key, net_key, fit_key = jax.random.split(key, 4)
    tables = problem.learned_in
    world = environment_of(tables)
    expert = world.solve(tables.reward, temperature=EXPERT)
    demonstrated = problem.demonstration(demo_key, tables, expert, DISCOUNT, scale.length)
    held = problem.demonstration(held_key, tables, expert, DISCOUNT, scale.length)[:, 0]
    metrics = {}
    if arm.kind == "random":
        policy = jnp.full(expert.shape, 1 / expert.shape[1])
    elif arm.kind == "cloning":
        counts = jnp.zeros(expert.shape).at[demonstrated[:, 0], demonstrated[:, 1]].add(1.0) + UNSEEN
        policy = counts / jnp.sum(counts, axis=1, keepdims=True)
    else:
        head_key, encoder_key = jax.random.split(net_key)
        coded = arm.kind == "bottleneck"
        layers = (scale.codes, 1) if coded else (2, scale.width, scale.width, 1)
        (head,) = g.perceptrons(head_key, layers, activation=jax.nn.leaky_relu)
        encoder = g.make_encoder(encoder_key, (2, scale.width, scale.width), scale.codes)
        states = tables.features[demonstrated[:, 0]]

        def at(pair):
            regulariser = regulariser_of(arm, encoder, pair[0])
            model = g.AdversarialImitation(world, head, regulariser, learning_rate=pair[1], batch=scale.batch)

            def one(state, number):
                state, info = model.step(jax.random.fold_in(fit_key, number), states, state)
                return state, (info.nats, info.accuracy)

            state, told = jax.lax.scan(one, model.init(), jnp.arange(scale.steps))
            policy = jnp.exp(state.log_policy)
            score = -jnp.mean(jnp.log(g.visits(world, policy)[held] + UNSEEN))
            return policy, score, tuple(jnp.mean(part[-(scale.steps // 5 + 1) :]) for part in told)

        every = grid_of(arm, scale)
        policies, scores, told = jax.vmap(at)(every)
        best = chosen(scores)
        policy = policies[best]
        metrics = {"chosen_knob": every[best, 0], "chosen_rate": every[best, 1]}
        metrics |= {"nats": told[0][best], "accuracy": told[1][best]}
    truth, found = g.visits(world, expert), g.visits(world, policy)
    distance = 0.5 * jnp.sum(jnp.abs(truth - found))
    return metrics | {
        "distance": distance,
        "return_share": share(world, policy, tables),
        "likelihood": jnp.mean(jnp.log(found[held] + UNSEEN)),
    }


def transfer(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A reward learned in one maze: what is the best policy for it worth in the mirror image?"""
    demo_key, held_key, net_key, fit_key = jax.random.split(key, 4)
    tables, mirrored = problem.learned_in, problem.tried_in
    world, other = environment_of(tables), environment_of(mirrored)
    expert = world.solve(tables.reward, temperature=EXPERT)
    demonstrated = problem.demonstration(demo_key, tables, expert, DISCOUNT, scale.length)
    held = problem.demonstration(held_key, tables, expert, DISCOUNT, scale.length)
    metrics = {}
    if arm.kind == "random":
        reward = jnp.zeros(len(tables.start))
    elif arm.kind == "expert-policy":
        # What was done there is done here: no reward is learned.
        return {name: share(where, expert, told) for name, where, told in _both(world, other, tables, mirrored)}
    else:
        keys, width = jax.random.split(net_key, 4), scale.width
        coded = arm.kind == "bottleneck"
        layers = (scale.codes, 1) if coded else (2, width, width, 1)
        (reward_net,) = g.perceptrons(keys[0], layers, activation=jax.nn.leaky_relu)
        (potential,) = g.perceptrons(keys[1], layers, activation=jax.nn.leaky_relu)
        shaped = g.ShapedDiscriminator(reward_net, potential, DISCOUNT)
        encoders = [g.make_encoder(key, (2, width, width), scale.codes) for key in keys[2:]]

        def at(pair):
            regulariser = regulariser_of(arm, g.ShapedEncoder(*encoders), pair[0])
            model = g.AdversarialIRL(world, shaped, regulariser, learning_rate=pair[1], batch=scale.batch)

            def one(state, number):
                state, info = model.step(jax.random.fold_in(fit_key, number), demonstrated, state)
                return state, (info.nats, info.accuracy)

            state, told = jax.lax.scan(one, model.init(), jnp.arange(scale.steps))
            score = -jnp.mean(state.log_policy[held[:, 0], held[:, 1]])
            return model.reward(state), score, tuple(jnp.mean(part[-(scale.steps // 5 + 1) :]) for part in told)

        every = grid_of(arm, scale)
        rewards, scores, told = jax.vmap(at)(every)
        best = chosen(scores)
        reward = rewards[best]
        metrics = {"chosen_knob": every[best, 0], "chosen_rate": every[best, 1]}
        metrics |= {"nats": told[0][best], "accuracy": told[1][best]}
        metrics["held_likelihood"] = -scores[best]
    for name, where, told in _both(world, other, tables, mirrored):
        metrics[name] = share(where, where.solve(reward), told)
    return metrics


def _both(world: Any, other: Any, tables: MazeTables, mirrored: MazeTables) -> list[tuple[str, Any, MazeTables]]:
    """Where rewards are tried: at home, and in the mirror image."""
    return [("home_share", world, tables), ("transfer_share", other, mirrored)]
