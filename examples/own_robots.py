"""Two robots of one's own: a cart that reports its state, and one of which only three distance sensors are seen.

Steps of both are recorded separately; no row of one belongs to a row of the other. Any object with these methods is a
problem for the lab:

    laureate run dynamics-cycle/sensors --problem examples/own_robots.py:Carts
"""

import jax
import jax.numpy as jnp

from laureate.control import Transitions, make_dynamics_cycle

WALLS = jnp.array([-2.0, 0.5, 2.5])


class Carts:
    """A cart on a spring; y = (place, velocity)."""

    num_actions = 1

    def drawn(self, key):
        """There is one such world."""
        return self

    def reset(self, key):
        """Anywhere near the middle."""
        return jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0)

    def step(self, y, u):
        """A spring that is softer on one side."""
        push = 2.0 * jnp.clip(u[0], -1, 1) - y[0] - 0.5 * jnp.tanh(y[0]) ** 2 - 0.4 * y[1]
        velocity = y[1] + 0.1 * push
        return jnp.stack([y[0] + 0.1 * velocity, velocity])

    def step_x(self, y, a):
        """The other cart moves alike."""
        return self.step(y, a)

    def see(self, y):
        """What the other cart's sensors show: distances, now and a moment ago."""
        look = lambda place: jnp.log1p((place - WALLS) ** 2)  # noqa: E731
        return jnp.concatenate([look(y[0]), 10 * (look(y[0]) - look(y[0] - 0.1 * y[1]))])

    def policy(self, y):
        """Made for the first cart: to 0.6, and stay."""
        return jnp.clip(jnp.array([2.0 * (0.6 - y[0]) - 1.5 * y[1] + 0.4]), -1, 1)

    def reward(self, y):
        """Minus the squared distance."""
        return -((y[0] - 0.6) ** 2)


def record(key, step, see, num_steps=2000):
    """Random actions; a new start every ten steps."""
    carts = Carts()

    def one(y, key):
        start_key, act_key, end_key = jax.random.split(key, 3)
        u = jax.random.uniform(act_key, (1,), minval=-1.0, maxval=1.0)
        after = step(y, u)
        again = jax.random.uniform(end_key) < 0.1
        return jnp.where(again, carts.reset(start_key), after), (see(y), u, see(after))

    return Transitions(*jax.jit(lambda: jax.lax.scan(one, jnp.zeros(2), jax.random.split(key, num_steps))[1])())


def transfer(num_forward=1500, num_steps=1500):
    """The policy of the first cart, for the second."""
    carts = Carts()
    y = record(jax.random.key(0), carts.step, lambda y: y)
    x = record(jax.random.key(1), carts.step_x, carts.see)
    cycle = make_dynamics_cycle(jax.random.key(2), x, y, width=32, learning_rate=1e-3)
    cycle, state, _ = cycle.fit(jax.random.key(3), x, y, num_forward=num_forward, num_steps=num_steps, num_rounds=1)
    return cycle.transfer(carts.policy, state)


if __name__ == "__main__":
    carts, policy = Carts(), transfer()
    y = jnp.array([-0.8, 0.0])
    for _ in range(60):
        y = carts.step(y, policy(carts.see(y)))
    print(f"the second cart has come to {float(y[0]):.2f}; it was sent to 0.60")
