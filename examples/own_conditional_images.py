"""A small class-conditional GAN on images of one's own: here, 8 × 8 drawings of bars, crosses and boxes.

Hand in an array of images [n, height, width, channels] and one of labels. Also a problem for the lab:

    laureate run biggan/images --problem examples/own_conditional_images.py:images
"""

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from laureate.generative import biggan_settings, images_and_labels, make_biggan, truncation_curve


def drawings(rng, count, side=8):
    """Bars, crosses and boxes of several sizes and places, as bytes, and which is which."""
    canvas, labels = np.zeros((count, side, side, 1), np.uint8), rng.integers(0, 3, count)
    for image, label in zip(canvas[..., 0], labels, strict=True):
        size = rng.integers(3, 6)
        top, left = rng.integers(0, side - size + 1, 2)
        part = image[top : top + size, left : left + size]
        if label == 0:
            part[size // 2] = 255
        elif label == 1:
            part[size // 2], part[:, size // 2] = 255, 255
        else:
            part[[0, -1]], part[:, [0, -1]] = 255, 255
    return canvas, labels


class Images(NamedTuple):
    """What the lab's experiment asks for: rows to learn from, to choose settings by and to be judged by."""

    train: jax.Array
    train_labels: jax.Array
    validation: jax.Array
    validation_labels: jax.Array
    test: jax.Array
    test_labels: jax.Array
    num_classes: int


def images():
    """The problem for the lab."""
    rng = np.random.default_rng(0)
    parts = [drawings(rng, count) for count in (1000, 256, 256)]
    arrays = [array for x, y in parts for array in images_and_labels(x / 127.5 - 1, y)]
    return Images(*arrays, num_classes=3)


def main(num_steps=2000):
    """Train; tell what the monitors say, and what a threshold gives and takes; show one image of each class."""
    data = images()
    settings = biggan_settings(len(data.train))
    gan = make_biggan(
        jax.random.key(0),
        data.train.shape[1:],
        data.num_classes,
        kind="dense",
        channels=32,
        learning_rate=2e-3,
        decay=settings["decay"],
    )
    fitted = gan.fit(jax.random.key(1), (data.train, data.train_labels), num_steps=num_steps, batch=settings["batch"])
    last = jax.tree.map(lambda leaf: leaf[-1], fitted.history)
    print(
        f"margin {float(last.margin):.2f}, clipped {float(last.clipped):.2f}, largest singular value "
        f"{float(last.spectra[0].sigma.max()):.2f}, endangered: {bool(last.endangered)}"
    )
    labels = jnp.arange(99) % 3

    def draw(key, threshold):
        return gan.sample(key, fitted.state, 99, labels, truncation=threshold, statistics=fitted.statistics)

    def nearest(made):
        apart = jnp.linalg.norm(made.reshape(99, 1, -1) - data.test.reshape(1, len(data.test), -1), axis=-1)
        return jnp.mean(jnp.min(apart, axis=1))

    measures = {"spread": lambda made: jnp.mean(jnp.std(made.reshape(33, 3, -1), axis=0)), "to a real one": nearest}
    curve = jax.jit(lambda key: truncation_curve(key, draw, [0.25, 0.5, 1.0, jnp.inf], measures))(jax.random.key(2))
    for name, values in curve.mean.items():
        shown = (f"{v:.2f} ± {h - v:.2f}" for v, h in zip(values, curve.high[name], strict=True))
        print(f"{name:14} at t = 0.25, 0.5, 1, none: {', '.join(shown)}")
    typical = fitted.sample(jax.random.key(3), 3, labels[:3], truncation=0.5)
    for row in np.asarray(typical[..., 0]).transpose(1, 0, 2):
        print("   ".join("".join("█" if pixel > 0 else "·" for pixel in one) for one in row))
    return curve


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
