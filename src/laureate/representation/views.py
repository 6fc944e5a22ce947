"""Random views of small images and of time series, as functions ``view(key, example)`` to be composed and vmapped.

An image is [height, width] or [height, width, channels]; a time series is [time] or [time, channels]; entries about in
[0, 1] for ``Brightness``, anything for the rest.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require

__all__ = ["Brightness", "Compose", "Cutout", "Flip", "Noise", "Rescale", "Shift", "TimeMask", "TimeShift", "two_views"]


def _check_floats(owner: str, example: Array) -> None:
    floating = lambda dtype: jnp.issubdtype(dtype, jnp.floating)  # noqa: E731
    remedy = "Bytes become such by image / 255.0."
    require(owner, "example", "of floats", str(jnp.asarray(example).dtype), floating, remedy)


class Shift(eqx.Module):
    """An image moved by up to ``pixels`` in both directions; what comes in repeats the border.

    >>> import jax, jax.numpy as jnp
    >>> Shift(2)(jax.random.key(0), jnp.ones((8, 8))).shape
    (8, 8)
    """

    pixels: int = eqx.field(static=True)

    def __check_init__(self):
        require("Shift", "pixels", "an integer >= 0", self.pixels, lambda p: isinstance(p, int) and p >= 0)

    def __call__(self, key: Array, image: Array) -> Array:
        """The moved image."""
        margin = ((self.pixels, self.pixels), (self.pixels, self.pixels), *((0, 0),) * (image.ndim - 2))
        corner = jax.random.randint(key, (2,), 0, 2 * self.pixels + 1)
        start = (corner[0], corner[1], *(jnp.zeros((), corner.dtype),) * (image.ndim - 2))
        return jax.lax.dynamic_slice(jnp.pad(image, margin, mode="edge"), start, image.shape)


class Flip(eqx.Module):
    """An image mirrored left to right with probability ``probability``."""

    probability: Any = 0.5

    def __check_init__(self):
        require("Flip", "probability", "in [0, 1]", self.probability, lambda p: 0 <= p <= 1)

    def __call__(self, key: Array, image: Array) -> Array:
        """The image or its mirror."""
        return jnp.where(jax.random.bernoulli(key, self.probability), image[:, ::-1], image)


class Brightness(eqx.Module):
    """Contrast around the mean and brightness, each by up to ``strength`` (in [0, 1)).

    x ↦ c (x − mean) + mean + b, c uniform in 1 ± strength, b in ± strength/2.
    """

    strength: Any = 0.4

    def __check_init__(self):
        require("Brightness", "strength", "in [0, 1)", self.strength, lambda s: 0 <= s < 1)

    def __call__(self, key: Array, image: Array) -> Array:
        """The changed image."""
        _check_floats("Brightness", image)
        contrast, shift = self.strength * jax.random.uniform(key, (2,), image.dtype, -1.0, 1.0)
        mean = image.mean()
        return (1 + contrast) * (image - mean) + mean + shift / 2


class Cutout(eqx.Module):
    """A square of ``side`` pixels, somewhere wholly inside the image, replaced by its mean."""

    side: int = eqx.field(static=True)

    def __check_init__(self):
        require("Cutout", "side", "an integer >= 1", self.side, lambda s: isinstance(s, int) and s >= 1)

    def __call__(self, key: Array, image: Array) -> Array:
        """The image with a hole."""
        limit = jnp.array(image.shape[:2]) - self.side + 1
        top, left = jax.random.randint(key, (2,), 0, jnp.maximum(limit, 1))
        rows, columns = jnp.arange(image.shape[0]), jnp.arange(image.shape[1])
        inside = ((rows >= top) & (rows < top + self.side))[:, None]
        inside = inside & ((columns >= left) & (columns < left + self.side))[None, :]
        return jnp.where(inside.reshape(*inside.shape, *(1,) * (image.ndim - 2)), image.mean(), image)


class Noise(eqx.Module):
    """Independent Gaussian noise of standard deviation ``scale`` on every entry, of images and series alike."""

    scale: Any = 0.1

    def __check_init__(self):
        require("Noise", "scale", ">= 0", self.scale, lambda s: s >= 0)

    def __call__(self, key: Array, example: Array) -> Array:
        """The noisy example."""
        _check_floats("Noise", example)
        return example + self.scale * jax.random.normal(key, example.shape, example.dtype)


class Rescale(eqx.Module):
    """Every channel of a series times its own factor, log-normal with ``deviation``."""

    deviation: Any = 0.2

    def __check_init__(self):
        require("Rescale", "deviation", ">= 0", self.deviation, lambda s: s >= 0)

    def __call__(self, key: Array, series: Array) -> Array:
        """The rescaled series."""
        _check_floats("Rescale", series)
        return series * jnp.exp(self.deviation * jax.random.normal(key, series.shape[1:], series.dtype))


class TimeShift(eqx.Module):
    """A series moved round by up to ``max_steps`` either way (what leaves at one end comes in at the other)."""

    max_steps: int = eqx.field(static=True)

    def __check_init__(self):
        require("TimeShift", "max_steps", "an integer >= 0", self.max_steps, lambda s: isinstance(s, int) and s >= 0)

    def __call__(self, key: Array, series: Array) -> Array:
        """The moved series."""
        return jnp.roll(series, jax.random.randint(key, (), -self.max_steps, self.max_steps + 1), axis=0)


class TimeMask(eqx.Module):
    """``length`` successive steps of a series set to its mean."""

    length: int = eqx.field(static=True)

    def __check_init__(self):
        require("TimeMask", "length", "an integer >= 1", self.length, lambda s: isinstance(s, int) and s >= 1)

    def __call__(self, key: Array, series: Array) -> Array:
        """The series with a gap."""
        time = jnp.arange(series.shape[0])
        start = jax.random.randint(key, (), 0, max(series.shape[0] - self.length + 1, 1))
        inside = (time >= start) & (time < start + self.length)
        return jnp.where(inside.reshape(-1, *(1,) * (series.ndim - 1)), series.mean(axis=0, keepdims=True), series)


class Compose(eqx.Module):
    """One view after the other, each with a key of its own.

    >>> import jax, jax.numpy as jnp
    >>> view = Compose(Shift(2), Flip(), Noise(0.1))
    >>> view(jax.random.key(0), jnp.ones((8, 8, 3))).shape
    (8, 8, 3)
    """

    parts: tuple[Any, ...]

    def __init__(self, *parts: Any):
        self.parts = parts

    def __call__(self, key: Array, example: Array) -> Array:
        """The example through all parts."""
        for i, part in enumerate(self.parts):
            example = part(jax.random.fold_in(key, i), example)
        return example


def two_views(key: Array, view: Any, batch: Array) -> tuple[Array, Array]:
    """Two independent views of every example of a batch.

    >>> import jax, jax.numpy as jnp
    >>> a, b = two_views(jax.random.key(0), Noise(1.0), jnp.zeros((4, 8, 8)))
    >>> a.shape, bool((a == b).any())
    ((4, 8, 8), False)
    """
    keys = jax.random.split(key, (2, batch.shape[0]))
    first, second = jax.vmap(jax.vmap(view, in_axes=(0, 0)), in_axes=(0, None))(keys, batch)
    return first, second
