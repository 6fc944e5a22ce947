"""Which regressors matter, and how much: Gibbs-With-Gradients for the switches, BlackJAX's NUTS for the weights.

    y = X (z ∘ w) + noise,   z ∈ {0, 1}^D,   w ~ N(0, 1),   P(z_i = 1) = 0.2

A step first draws the switches z given the weights, then the weights w given the switches; each kernel leaves the
posterior invariant, so does one after the other. Nothing joins the two libraries but `init` and `step`.
"""

from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp

from laureate.sampling import Binary, GibbsWithGradients

NOISE = 0.5
PRIOR_LOGIT = jnp.log(0.2 / 0.8)


class Data(NamedTuple):
    features: jax.Array
    response: jax.Array
    switches: jax.Array


def make_data(key: jax.Array, rows: int = 80, columns: int = 12) -> Data:
    feature_key, noise_key = jax.random.split(key)
    features = jax.random.normal(feature_key, (rows, columns))
    switches = jnp.arange(columns) < 3
    weights = jnp.where(switches, jnp.array([1.5, -1.0, 0.8] + [0.0] * (columns - 3)), 0.0)
    return Data(features, features @ weights + NOISE * jax.random.normal(noise_key, (rows,)), switches)


def log_joint(z: jax.Array, w: jax.Array, data: Data) -> jax.Array:
    residual = (data.response - data.features @ (z * w)) / NOISE
    return -0.5 * jnp.sum(residual**2) + PRIOR_LOGIT * jnp.sum(z) - 0.5 * jnp.sum(w**2)


def sample(key: jax.Array, data: Data, num_steps: int = 600) -> tuple[jax.Array, jax.Array]:
    columns = data.features.shape[1]

    def step(carry, number):
        z, w = carry
        switch_key, weight_key = jax.random.split(jax.random.fold_in(key, number))
        switches = GibbsWithGradients(lambda relaxed: log_joint(relaxed, w, data), Binary())
        # Caches belong to a conditional: new weights, new init.
        state, _ = jax.lax.scan(lambda s, k: switches.step(k, s), switches.init(z), jax.random.split(switch_key, 5))
        z = state.position
        weights: Any = blackjax.nuts(lambda w: log_joint(z.astype(float), w, data), 0.05, jnp.ones(columns))
        w = weights.step(weight_key, weights.init(w))[0].position
        return (z, w), (z, w)

    start = (jnp.zeros(columns, bool), jnp.zeros(columns))
    return jax.jit(lambda: jax.lax.scan(step, start, jnp.arange(num_steps))[1])()


def main(num_steps: int = 600) -> jax.Array:
    data = make_data(jax.random.key(0))
    z, w = sample(jax.random.key(1), data, num_steps)
    kept = slice(num_steps // 4, None)
    inclusion = jnp.mean(z[kept], axis=0)
    print("column  P(included)  weight if included")
    for i, probability in enumerate(inclusion):
        weight = jnp.sum(w[kept, i] * z[kept, i]) / jnp.maximum(jnp.sum(z[kept, i]), 1)
        print(f"{i:6d}  {float(probability):11.2f}  {float(weight):18.2f}")
    return inclusion


if __name__ == "__main__":
    main()
