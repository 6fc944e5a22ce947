"""A car in a valley whose engine is too weak for the hill, paid 1 at the top and nothing before (Moore 1990).

laureate race examples/races/mountain_car.py:environment --seconds 60
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from laureate.loops import Box, Discrete, Timestep


class Car(NamedTuple):
    """Where it is, how fast, and for how long it has driven."""

    position: jax.Array
    velocity: jax.Array
    clock: jax.Array


class MountainCar:
    """Back, nothing or forward for 200 steps at most; random pushes hardly ever reach the top."""

    observation_space = Box((2,), -1.0, 1.0)
    action_space = Discrete(3)

    def observe(self, car):
        return jnp.stack([(car.position + 0.3) / 0.9, car.velocity / 0.07])

    def reset(self, key):
        car = Car(jax.random.uniform(key, (), minval=-0.6, maxval=-0.4), jnp.asarray(0.0), jnp.asarray(0))
        return car, self.observe(car)

    def step(self, key, car, action):
        velocity = car.velocity + 0.001 * (action - 1) - 0.0025 * jnp.cos(3 * car.position)
        velocity = jnp.clip(velocity, -0.07, 0.07)
        position = jnp.clip(car.position + velocity, -1.2, 0.6)
        velocity = jnp.where((position <= -1.2) & (velocity < 0), 0.0, velocity)
        car = Car(position, velocity, car.clock + 1)
        top = position >= 0.5
        return car, Timestep(self.observe(car), top.astype(jnp.float32), top, (car.clock >= 200) & ~top)


def environment():
    """The classical sizes."""
    return MountainCar()
