"""Worlds as simulators and cameras show them: a pendulum that has to be swung up, and a room in pixels."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.loops import Box, Discrete, Timestep
from laureate.problems.small_worlds import Room, WalkState

__all__ = ["Pendulum", "PendulumState", "PixelRoom"]


class PendulumState(NamedTuple):
    """How a pendulum swings.

    angle: from the upright, in radians and not wrapped. speed: radians a second. clock: steps done.
    """

    angle: Float[Array, ""]
    speed: Float[Array, ""]
    clock: Int[Array, ""]


class Pendulum(eqx.Module):
    """A rod with a motor at its pivot that is too weak to lift it at once: it has to be swung up.

    ::

        v ← clip(v + (3g/2l sin θ + 3u/ml²) dt, ±8),    θ ← θ + v dt,    reward = −(θ² + 0.1 v² + 0.001 u²), θ in ±π

    The equations are Gymnasium's Pendulum-v1. One begins at any angle with a speed within ±1; the observation is
    (cos θ, sin θ, v), and nothing terminates.

    limit: steps of an episode, which is truncated, >= 1.
    gravity, mass, length, dt: g, m, l and the length of a step, > 0.

    >>> pendulum = Pendulum()
    >>> state, seen = pendulum.reset(jax.random.key(0))
    >>> seen.shape, pendulum.action_space.high
    ((3,), 2.0)
    """

    limit: int = eqx.field(static=True, default=200)
    gravity: float = 10.0
    mass: float = 1.0
    length: float = 1.0
    dt: float = 0.05

    def __check_init__(self):
        require("Pendulum", "limit", ">= 1", self.limit, lambda n: n >= 1)
        for name in ("gravity", "mass", "length", "dt"):
            require("Pendulum", name, "> 0", getattr(self, name), lambda value: value > 0)

    @property
    def observation_space(self) -> Box:
        """Cosine, sine, speed."""
        return Box((3,), -8.0, 8.0)

    @property
    def action_space(self) -> Box:
        """The torque."""
        return Box((1,), -2.0, 2.0)

    def reset(self, key: Array) -> tuple[PendulumState, Array]:
        """Anywhere, slowly."""
        angle, speed = jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0) * jnp.array([jnp.pi, 1.0])
        state = PendulumState(angle, speed, jnp.asarray(0, jnp.int32))
        return state, self.observe(state)

    def observe(self, state: PendulumState) -> Float[Array, "3"]:
        """(cos θ, sin θ, v)."""
        return jnp.stack([jnp.cos(state.angle), jnp.sin(state.angle), state.speed])

    def step(self, key: Array, state: PendulumState, action: Array) -> tuple[PendulumState, Timestep]:
        """Turn the motor; what a step costs follows from the state that it leaves."""
        del key
        u = jnp.clip(jnp.reshape(action, ()), -2.0, 2.0)
        wrapped = jnp.mod(state.angle + jnp.pi, 2 * jnp.pi) - jnp.pi
        cost = wrapped**2 + 0.1 * state.speed**2 + 0.001 * u**2
        push = 1.5 * self.gravity / self.length * jnp.sin(state.angle) + 3.0 / (self.mass * self.length**2) * u
        speed = jnp.clip(state.speed + push * self.dt, -8.0, 8.0)
        state = PendulumState(state.angle + speed * self.dt, speed, state.clock + 1)
        return state, Timestep(self.observe(state), -cost, jnp.asarray(False), state.clock >= self.limit)


class PixelRoom(eqx.Module):
    """``Room`` seen from above: a picture with the walker in blue and, where it may be seen, the goal in green.

    room: ``Room``.
    cell: pixels of a cell's side, >= 1: pictures have ``room.side * cell`` a side. Cells of a room of 4 with 16 make
        the 64 × 64 pixels that DreamerV2's encoder takes.
    goal_seen: whether the picture shows the goal.

    >>> room = PixelRoom(Room(4), 16)
    >>> state, seen = room.reset(jax.random.key(0))
    >>> seen.shape, seen[0, 0].tolist(), seen[-1, -1].tolist()
    ((64, 64, 3), [23, 86, 154], [46, 139, 87])
    """

    room: Room
    cell: int = eqx.field(static=True, default=8)
    goal_seen: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        require("PixelRoom", "cell", ">= 1", self.cell, lambda n: n >= 1)

    @property
    def observation_space(self) -> Box:
        """A picture of bytes."""
        side = self.room.side * self.cell
        return Box((side, side, 3), 0, 255, "uint8")

    @property
    def action_space(self) -> Discrete:
        """Four moves."""
        return self.room.action_space

    def drawn(self, key: Array) -> "PixelRoom":
        """The same with another goal."""
        return PixelRoom(self.room.drawn(key), self.cell, self.goal_seen)

    def observe(self, state: WalkState) -> Array:
        """The picture, [side · cell, side · cell, 3]."""
        side = self.room.side
        cells = jnp.arange(side**2)
        here, goal = state.place[0] * side + state.place[1], self.room.goal
        ground, blue, green = (jnp.array(c, jnp.uint8) for c in ((232, 229, 222), (23, 86, 154), (46, 139, 87)))
        shown = jnp.where((cells == goal)[:, None] & self.goal_seen, green, ground)
        picture = jnp.where((cells == here)[:, None], blue, shown).reshape(side, side, 3)
        return jnp.repeat(jnp.repeat(picture, self.cell, axis=0), self.cell, axis=1)

    def reset(self, key: Array) -> tuple[WalkState, Array]:
        """The corner."""
        state, _ = self.room.reset(key)
        return state, self.observe(state)

    def step(self, key: Array, state: WalkState, action: Array) -> tuple[WalkState, Timestep]:
        """As in the room."""
        state, timestep = self.room.step(key, state, action)
        return state, timestep._replace(observation=self.observe(state))
