"""Your own problem: tune a controller through a long, bouncing simulation that no gradient gets through.

A ball is kept in the air by a paddle for 200 steps. The rule that moves the paddle has three parameters; the loss is
how far the ball strays from a height, summed over the flight. Bounces make the derivative useless and 200 steps make
whole episodes slow, so we update every 10 steps with PES. To compare, change one word: ``TruncatedES``,
``NoiseReuseES``, ...

    python examples/own_unroll.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from laureate.gradients import PersistentES, full_unroll_loss, train


class Juggler(eqx.Module):
    """An unroll: ``init`` makes an episode's first state, ``step`` moves it on and says what the step cost."""

    target: jax.Array = eqx.field(default=1.0, converter=jnp.asarray)

    def init(self, key, theta):
        height = 1.0 + 0.2 * jax.random.normal(key)
        return {"height": height, "speed": jnp.zeros(())}

    def step(self, key, theta, state):
        gust = 0.05 * jax.random.normal(key)
        speed = state["speed"] - 0.1 + gust
        height = state["height"] + 0.1 * speed
        strike = jnp.exp(theta["strength"]) + theta["lift"] * (self.target - height) + theta["damp"] * speed
        hit = height < 0.5
        speed = jnp.where(hit, jnp.clip(strike, 0.0, 3.0), speed)
        return {"height": jnp.maximum(height, 0.0), "speed": speed}, (height - self.target) ** 2


def main(num_updates: int = 600) -> tuple[float, float]:
    unroll = Juggler()
    theta = {"strength": jnp.asarray(0.5), "lift": jnp.asarray(0.0), "damp": jnp.asarray(0.0)}
    estimator = PersistentES(unroll, num_pairs=100, truncation=10, horizon=200, sigma=0.1, phase="random")

    keys = jax.random.split(jax.random.key(1), 64)

    def flight(theta):
        return jax.vmap(lambda key: full_unroll_loss(key, unroll, theta, horizon=200))(keys).mean()

    before = float(jax.jit(flight)(theta))
    theta, history = train(
        jax.random.key(0), estimator, optax.adam(0.01), theta, num_updates, record=flight, every=num_updates // 6
    )
    for updates, steps, loss in zip(history.update, history.cost, history.recorded, strict=True):
        print(f"{int(updates):4d} updates, {float(steps):9.0f} inner steps: loss of a flight {float(loss):6.2f}")
    print("found", {name: round(float(value), 2) for name, value in theta.items()}, f"(loss before: {before:.2f})")
    return before, float(history.recorded[-1])


if __name__ == "__main__":
    main()
