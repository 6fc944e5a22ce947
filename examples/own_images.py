"""A GAN with a bottleneck on images of one's own: here, 10 × 10 drawings of crosses and boxes.

Hand in any array [n, height, width] with numbers near 1. Also a problem for the lab:

    laureate run vdb/images --problem examples/own_images.py:images
"""

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from laureate.generative import Adversarial, VariationalBottleneck, energy_distance, make_encoder, perceptrons


def drawings(rng, count, side=10):
    """Crosses and boxes of several sizes and places, in [−1, 1]."""
    canvas = -np.ones((count, side, side), np.float32)
    for image in canvas:
        size = rng.integers(3, 6)
        top, left = rng.integers(0, side - size, 2)
        part = image[top : top + size, left : left + size]
        if rng.random() < 0.5:
            part[size // 2], part[:, size // 2] = 1, 1
        else:
            part[[0, -1]], part[:, [0, -1]] = 1, 1
    return jnp.asarray(canvas)


class Images(NamedTuple):
    """What the lab's experiment asks for: rows to learn from, to choose settings by and to be judged by."""

    train: jax.Array
    validation: jax.Array
    test: jax.Array


def images():
    """The problem for the lab."""
    rng = np.random.default_rng(0)
    return Images(drawings(rng, 1000), drawings(rng, 200), drawings(rng, 200))


def main(num_steps=3000):
    """Train with and without the bottleneck; tell how near the drawings come, and what the monitors say."""
    data = images()
    sizes, shape = (8, 64, 64, 100), (10, 10)
    found = {}
    for name in ("GAN", "GAN with a bottleneck"):
        coded = name != "GAN"
        layers = (16, 1) if coded else (100, 64, 64, 1)
        keys = jax.random.split(jax.random.key(0), 3)
        generator, judge = perceptrons(keys[0], sizes, layers, shapes=(shape, None), activation=jax.nn.leaky_relu)
        encoder = make_encoder(keys[1], (100, 64, 64), 16)
        bottleneck = VariationalBottleneck(encoder, information=0.5, beta_rate=1e-2) if coded else None
        gan = Adversarial(generator, judge, regulariser=bottleneck, num_latents=8, learning_rate=1e-3, decay=0.99)
        fitted = gan.fit(keys[2], data.train, num_steps=num_steps)
        made = fitted.sample(jax.random.key(1), 200)
        found[name] = float(energy_distance(made, data.test))
        last = jax.tree.map(lambda leaf: leaf[-1], fitted.history)
        told = f"accuracy {float(last.accuracy):.2f}, gradient at made images {float(last.slope):.3f}"
        if coded:
            told += f", {float(last.nats):.2f} nats at β = {float(last.regularisers[0].beta):.2f}"
        print(f"{name:22} energy distance {found[name]:6.3f}; {told}")
    for row in np.asarray(made[0]):
        print("".join("█" if pixel > 0 else "·" for pixel in row))
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
