"""Montezuma's Revenge, on the host: is the bonus large where a room is entered for the first time?"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from laureate import control as c
from laureate.lab.claim import Settings

__all__ = ["area_under_curve", "montezuma"]


class Pixels(eqx.Module):
    """Three convolutions over frames [frames, height, width], as in the paper, then a network of a vector."""

    convolutions: eqx.nn.Sequential
    network: Callable[[Array], Any]
    scale: float = eqx.field(static=True)

    def __call__(self, frames: Array) -> Any:
        """Of one observation."""
        return self.network(jnp.ravel(self.convolutions(frames.astype(jnp.float32) / self.scale)))


def pixels_of(key: Array, shape: tuple[int, ...], channels: int, scale: float, network: Callable[[int], Any]) -> Pixels:
    """Convolutions for frames of a shape, and what ``network`` makes for so many features."""
    keys, activation = jax.random.split(key, 3), eqx.nn.Lambda(jax.nn.leaky_relu)
    sizes = ((shape[0], channels, 8, 4), (channels, 2 * channels, 4, 2), (2 * channels, 2 * channels, 3, 1))
    layers = [eqx.nn.Conv2d(*size, padding="SAME", key=one) for size, one in zip(sizes, keys, strict=True)]
    convolutions = eqx.nn.Sequential([part for layer in layers for part in (layer, activation)])
    features = math.prod(jax.eval_shape(convolutions, jnp.zeros(shape)).shape)
    return Pixels(convolutions, network(features), scale)


def montezuma(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """One run; over all its steps, how well the bonus tells those that enter a room nobody had been in."""
    environments = c.GymnasiumEnvironments(problem.make, scale.actors)
    frames, actions = environments.observation_space.shape, c.law_of(environments.action_space)  # pyright: ignore[reportAttributeAccessIssue]
    keys, width = jax.random.split(key, 9), scale.width
    critic = lambda inputs: c.make_actor_critic(keys[0], inputs, actions.size, width=width, depth=1)  # noqa: E731
    network = pixels_of(keys[1], frames, scale.channels, 255.0, critic)
    last, short, long = (1, *frames[1:]), (width,), (width, width, width)
    target = pixels_of(keys[2], last, scale.channels, 1.0, lambda n: _dense(keys[3], (n, *short)))
    predictor = pixels_of(keys[4], last, scale.channels, 1.0, lambda n: _dense(keys[5], (n, *long)))
    bonus = c.RND(target, predictor, keep=min(1.0, 32 / scale.actors), learning_rate=scale.rate)  # pyright: ignore[reportCallIssue]
    ppo = c.PPO(network, actions, gamma=(0.999, 0.99), episodic=(1, 0), learning_rate=scale.rate)
    learner = c.BonusPPO(ppo, bonus, coefficients=(2.0, 1.0), num_minibatches=scale.minibatches, view=last_frame)
    training = c.GymnasiumTraining(environments, learner, scale.rollout, scale.warmup)
    state = training.init(keys[6], int(jax.random.bits(keys[7]) >> 1))
    reward = eqx.filter_jit(lambda rollout, state: bonus.reward(learner.seen(rollout), state.bonus))
    learn = eqx.filter_jit(learner.step)
    copies = environments.vector.envs  # pyright: ignore[reportAttributeAccessIssue]
    visited = set().union(*(env.get_wrapper_attr("rooms") for env in copies))
    first, bonuses = [], []
    for number in range(scale.updates):
        for env in copies:
            env.get_wrapper_attr("rooms").clear()
        collect_key, learn_key = jax.random.split(jax.random.fold_in(keys[8], number))
        rollout, _ = training.collect(collect_key, state)
        bonuses.append(np.asarray(reward(rollout, state)).reshape(scale.rollout, scale.actors))
        for rooms in np.array([env.get_wrapper_attr("rooms") for env in copies]).T:
            first.append([room not in visited for room in rooms])
            visited |= set(rooms.tolist())
        state, _ = learn(learn_key, rollout, state)
    environments.close()
    flags = np.array(first)
    area = area_under_curve(np.concatenate(bonuses).reshape(-1), flags.reshape(-1))
    return {"area": np.float32(area), "rooms": np.float32(len(visited)), "entered": np.float32(flags.sum())}  # pyright: ignore[reportReturnType]


def _dense(key: Array, sizes: tuple[int, ...]) -> Callable[[Array], Array]:
    return c.make_perceptrons(key, c.Layers(sizes, activation=jax.nn.leaky_relu))[0]


def last_frame(frames: Array) -> Array:
    """Of stacked frames the newest, with an axis."""
    return frames[-1:]


def area_under_curve(scores: np.ndarray, positive: np.ndarray) -> float:
    """The share of pairs in which a positive has the higher score, ties counted half; ½ without any."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    values, places = np.unique(scores, return_inverse=True)
    ranks = (np.bincount(places, ranks) / np.bincount(places))[places] if len(values) < len(scores) else ranks
    some = positive.sum()
    if not 0 < some < len(scores):
        return 0.5
    return float((ranks[positive].sum() - some * (some + 1) / 2) / (some * (len(scores) - some)))
