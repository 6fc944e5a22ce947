"""Two domains of one thing: joints seen by other sensors, in other bodies; a free mass of which dynamics tell less.

The second domain Y shows the state itself; the first, X, shows ``see(state)``. Both can be stepped, so that pairs are
known to who measures, and to nobody else.
"""

import math
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["FreeMass", "Joints", "Sensor", "TwoBodies", "collect", "starts", "walk"]


class Joints(eqx.Module):
    """Two joints on a spring between them, under gravity.

    ::

        m v̇ = power u − damping v − gravity (1, 0.6) sin(q + tilt) − spring (q − q̃),    q̃: the other joint's angle

    in steps of dt, the new velocity first. The tilt breaks the mirror symmetry q, v, u → −q, −v, −u,
    and gravity that which exchanges the joints.

    mass: of both joints, > 0.

    >>> Joints().step(jnp.zeros(4), jnp.array([2.0, 0.0])).shape
    (4,)
    """

    mass: float | Array = 1.0
    power: float = 3.0
    damping: float = 0.5
    gravity: float = 1.5
    spring: float = 0.7
    tilt: float = 0.4
    dt: float = 0.1

    def __check_init__(self):
        require("Joints", "mass", "> 0", self.mass, lambda m: m > 0)

    def load(self, y: Float[Array, "4"]) -> Array:
        """Torque of all but the motors."""
        q, v = y[:2], y[2:]
        return (
            -self.damping * v
            - self.gravity * jnp.array([1.0, 0.6]) * jnp.sin(q + self.tilt)
            - self.spring * (q - q[::-1])
        )

    def step(self, y: Float[Array, "4"], u: Float[Array, "2"]) -> Float[Array, "4"]:
        """The next state; actions are cut to ±1."""
        v = y[2:] + self.dt * (self.power * jnp.clip(u, -1, 1) + self.load(y)) / self.mass
        return jnp.concatenate([y[:2] + self.dt * v, v])


class Sensor(eqx.Module):
    """A random network of the state, x = W₂ tanh(W₁ y + b), or pictures of two links now and a moment ago.

    first, bias: W₁ and b.
    second: W₂.
    """

    first: Array
    bias: Array
    second: Array

    def __call__(self, y: Array) -> Array:
        """What is seen."""
        return self.second @ jnp.tanh(self.first @ y + self.bias)


def pictures(y: Float[Array, "4"], side: int, dt: float) -> Float[Array, "side side 2"]:
    """Both links as rows of soft dots, where they are and where they were one step before."""
    at = jnp.asarray((np.arange(side) + 0.5) * 2.4 / side - 1.2, jnp.float32)
    along = jnp.linspace(0.0, 1.0, 4)[1:, None]

    def picture(q):
        upper = jnp.stack([jnp.sin(q[0]), -jnp.cos(q[0])]) * 0.6
        lower = upper + jnp.stack([jnp.sin(q[0] + q[1]), -jnp.cos(q[0] + q[1])]) * 0.6
        dots = jnp.concatenate([along * upper, upper + along * (lower - upper)])
        near = jnp.exp(
            -((at[None, :, None] - dots[:, None, None, 1]) ** 2 + (at[None, None] - dots[:, None, None, 0]) ** 2)
            / (2 * 0.12**2)
        )
        return jnp.max(near, axis=0)

    return jnp.stack([picture(y[:2]), picture(y[:2] - dt * y[2:])], axis=-1)


class TwoBodies(eqx.Module):
    """Joints of which Y shows angles and velocities, and X what another sensor sees; X may be heavier or geared.

    sensor: "network": 12 numbers of a random network, drawn anew by ``drawn``. "pixels": two pictures. "same".
    mass: of X's joints; Y's have 1.
    turn: X's actions are turned by so many radians before they reach the joints.
    side: of a picture.
    seed: of the first sensor.

    >>> pair = TwoBodies()
    >>> y = pair.reset(jax.random.key(0))
    >>> y.shape, pair.see(y).shape
    ((4,), (12,))
    """

    body: Joints
    other: Joints
    glass: Sensor
    gears: Float[Array, "2 2"]
    sensor: Literal["network", "pixels", "same"] = eqx.field(static=True)
    side: int = eqx.field(static=True)

    num_actions = 2

    def __init__(
        self,
        sensor: Literal["network", "pixels", "same"] = "network",
        mass: float = 1.0,
        turn: float = 0.0,
        side: int = 16,
        seed: int = 0,
    ):
        kinds = ("network", "pixels", "same")
        require("TwoBodies", "sensor", f"one of {', '.join(kinds)}", sensor, lambda s: s in kinds)
        rng = np.random.default_rng(seed)
        draws = rng.normal(size=(64, 4)) * 0.5, rng.normal(size=64) * 0.5, rng.normal(size=(12, 64)) / 4
        self.body, self.other = Joints(), Joints(mass)
        self.glass = Sensor(*(jnp.asarray(draw, jnp.float32) for draw in draws))
        turned = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
        self.gears, self.sensor, self.side = jnp.asarray(turned, jnp.float32), sensor, side

    def drawn(self, key: Array) -> "TwoBodies":
        """The same with another random network as sensor."""
        pool = jax.random.normal(key, (64 * 17,))
        first, bias, second = pool[:256].reshape(64, 4), pool[256:320], pool[320:].reshape(12, 64)
        return eqx.tree_at(lambda pair: pair.glass, self, Sensor(0.5 * first, 0.5 * bias, second / 4))

    def reset(self, key: Array) -> Float[Array, "4"]:
        """Angles within ±1.2, velocities within ±1."""
        return jax.random.uniform(key, (4,), minval=-1.0, maxval=1.0) * jnp.array([1.2, 1.2, 1.0, 1.0])

    def step(self, y: Array, u: Array) -> Array:
        """A step of Y."""
        return self.body.step(y, u)

    def step_x(self, y: Array, a: Array) -> Array:
        """A step of X, in terms of the state that its sensor sees."""
        return self.other.step(y, self.gears @ a)

    def see(self, y: Array) -> Array:
        """X's observation."""
        if self.sensor == "same":
            return y
        return self.glass(y) if self.sensor == "network" else pictures(y, self.side, self.body.dt)

    def policy(self, y: Array) -> Array:
        """A policy of Y: torques that bring the joints to 0.8 and −0.6, against all loads."""
        q, v = y[:2], y[2:]
        wanted = 6.0 * (jnp.array([0.8, -0.6]) - q) - 4.0 * v - self.body.load(jnp.concatenate([q, 0 * v]))
        return jnp.clip(wanted / self.body.power, -1, 1)

    def reward(self, y: Array) -> Array:
        """−‖q − target‖²."""
        return -jnp.sum((y[:2] - jnp.array([0.8, -0.6])) ** 2)

    def exact_back(self, y: Array, u: Array) -> Array:
        """The action of X that does what u does in Y, where it is within ±1: the load is the same, the mass is not."""
        load = self.body.load(y)
        torque = (self.body.power * u + load) * self.other.mass / self.body.mass - load
        return self.gears.T @ (torque / self.other.power)


class FreeMass(eqx.Module):
    """A mass that nothing holds: the same dynamics everywhere, so that no dynamics tell where it is.

    On the plane the state is position and velocity, [4], about (2, −1) at first; on the circle cosine and sine of the
    angle and its velocity, [3], the angle at first anywhere alike. X shows a random network of it.

    kind: "plane", where the law of positions tells the offset, or "circle", where nothing tells the rotation.

    >>> FreeMass("circle").step(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0])).tolist()
    [1.0, 0.0, 0.0]
    """

    kind: Literal["plane", "circle"] = eqx.field(static=True, default="plane")
    glass: Sensor | None = None
    dt: float = 0.2

    def __check_init__(self):
        kinds = ("plane", "circle")
        require("FreeMass", "kind", f"one of {', '.join(kinds)}", self.kind, lambda k: k in kinds)

    @property
    def num_actions(self) -> int:
        """Two forces, or one torque."""
        return 2 if self.kind == "plane" else 1

    @property
    def size(self) -> int:
        """Numbers of a state."""
        return 4 if self.kind == "plane" else 3

    def drawn(self, key: Array) -> "FreeMass":
        """The same, seen by a random network."""
        size = self.size
        pool = jax.random.normal(key, (64 * (size + 13),))
        first, bias, second = jnp.split(pool, [64 * size, 64 * (size + 1)])
        glass = Sensor(0.5 * first.reshape(64, size), 0.5 * bias, second.reshape(12, 64) / 4)
        return FreeMass(self.kind, glass, self.dt)

    def reset(self, key: Array) -> Array:
        """Where it begins."""
        drawn = jax.random.uniform(key, (4,), minval=-1.0, maxval=1.0)
        if self.kind == "plane":  # squares: a law that is not its own mirror image
            return jnp.concatenate([jnp.array([2.0, -1.0]) + 1.5 * drawn[:2] ** 2, drawn[2:]])
        angle = math.pi * drawn[0]
        return jnp.stack([jnp.cos(angle), jnp.sin(angle), drawn[1]])

    def step(self, y: Array, u: Array) -> Array:
        """Velocity first, then the place."""
        u = jnp.clip(u, -1, 1)
        if self.kind == "plane":
            v = y[2:] + self.dt * u
            return jnp.concatenate([y[:2] + self.dt * v, v])
        v = y[2] + self.dt * 3.0 * u[0]
        c, s = jnp.cos(self.dt * v), jnp.sin(self.dt * v)
        return jnp.stack([c * y[0] - s * y[1], s * y[0] + c * y[1], v])

    def step_x(self, y: Array, a: Array) -> Array:
        """X moves alike."""
        return self.step(y, a)

    def see(self, y: Array) -> Array:
        """X's observation."""
        return y if self.glass is None else self.glass(y)


def starts(key: Array, reset: Callable[[Array], Array], num_episodes: int, length: int, num_actions: int):
    """First states of episodes, and noise within ±1 for the actions of every step: [episodes, ...].

    key: of the draws. reset: key → state. num_episodes, length: how many, and steps of each. num_actions: numbers of an
        action.
    """
    reset_key, noise_key = jax.random.split(key)
    noise = jax.random.uniform(noise_key, (num_episodes, length, num_actions), minval=-1.0, maxval=1.0)
    return jax.vmap(reset)(jax.random.split(reset_key, num_episodes)), noise


def walk(
    first: Array, noise: Array, step: Callable[[Array, Array], Array], act: Callable[[Array, Array], Array]
) -> tuple[Array, Array, Array]:
    """States, actions and next states of episodes, [episodes · length, ...], by ``act(noise, state)``."""

    def move(y, noise):
        u = jax.vmap(act)(noise, y)
        following = jax.vmap(step)(y, u)
        return following, (y, u, following)

    _, rows = jax.lax.scan(move, first, noise.swapaxes(0, 1))
    return tuple(part.swapaxes(0, 1).reshape(-1, *part.shape[2:]) for part in rows)  # pyright: ignore[reportReturnType]


def collect(
    key: Array,
    step: Callable[[Array, Array], Array],
    reset: Callable[[Array], Array],
    act: Callable[[Array, Array], Array],
    num_episodes: int,
    length: int,
    num_actions: int = 2,
) -> tuple[Array, Array, Array]:
    """``walk`` from ``starts``: states, actions and next states, one episode after the other.

    key: of the draws. step: (state, action) → next state. reset: key → state. act: (noise, state) → action.
    num_episodes, length: how many, and steps of each. num_actions: numbers of an action.
    """
    return walk(*starts(key, reset, num_episodes, length, num_actions), step, act)
