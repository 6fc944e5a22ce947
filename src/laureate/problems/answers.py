"""Inputs with several right answers, whose conditional law is known; and halves of real images, whose is not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require
from laureate.problems.datasets import digits

__all__ = ["DigitHalves", "LabelledDigits", "Ring", "TwoCurves"]


class TwoCurves(eqx.Module):
    """y = ±4 (x, x², x³), x ~ U(0, 1): two right answers for every x, the authors' toy.

    share: how often the sign is +.

    >>> problem = TwoCurves(share=0.9)
    >>> x, y = problem.pairs(jax.random.key(0), 5)
    >>> x.shape, y.shape, problem.answers(x[0]).shape
    ((5, 1), (5, 3), (2, 3))
    """

    share: Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.5)

    def __check_init__(self):
        require("TwoCurves", "share", "within 0 and 1", self.share, lambda p: 0 < p < 1)

    def answers(self, x: Float[Array, "1"]) -> Float[Array, "2 3"]:
        """The two right answers for one x: +, then −."""
        curve = 4 * jnp.concatenate([x, x**2, x**3])
        return jnp.stack([curve, -curve])

    def draw(self, key: Array, x: Float[Array, "1"], number: int) -> Float[Array, "number 3"]:
        """Answers for one x, by the true law."""
        positive = jax.random.uniform(key, (number,)) < self.share
        plus, minus = self.answers(x)
        return jnp.where(positive[:, None], plus[None], minus[None])

    def pairs(self, key: Array, number: int) -> tuple[Array, Array]:
        """x [number, 1] and an answer y [number, 3] for each."""
        drawn = jax.random.uniform(key, (number, 2))
        x = drawn[:, :1]
        plus, minus = jnp.moveaxis(jax.vmap(self.answers)(x), 1, 0)
        return x, jnp.where(drawn[:, 1:] < self.share, plus, minus)

    def tests(self, number: int) -> Float[Array, "number 1"]:
        """Inputs to be judged by, evenly within [0.2, 1]: below, the two answers can hardly be told apart."""
        return jnp.linspace(0.2, 1.0, number)[:, None]


class Ring(eqx.Module):
    """y = (1 + x)(cos θ, sin θ), θ ~ U(0, 2π): for every x a circle of right answers.

    >>> x, y = Ring().pairs(jax.random.key(0), 4)
    >>> bool(jnp.allclose(jnp.linalg.norm(y, axis=1), 1 + x[:, 0]))
    True
    """

    def radius(self, x: Float[Array, "1"]) -> Array:
        """Of the circle for one x."""
        return 1 + x[0]

    def draw(self, key: Array, x: Float[Array, "1"], number: int) -> Float[Array, "number 2"]:
        """Answers for one x, by the true law."""
        angles = 2 * jnp.pi * jax.random.uniform(key, (number,))
        return self.radius(x) * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)

    def pairs(self, key: Array, number: int) -> tuple[Array, Array]:
        """x [number, 1] and an answer y [number, 2] for each."""
        drawn = jax.random.uniform(key, (number, 2))
        x, angles = drawn[:, :1], 2 * jnp.pi * drawn[:, 1]
        return x, (1 + x) * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)

    def tests(self, number: int) -> Float[Array, "number 1"]:
        """Inputs to be judged by, evenly within [0, 1]."""
        return jnp.linspace(0.0, 1.0, number)[:, None]


class DigitHalves(eqx.Module):
    """Scikit-learn's 8 × 8 digits in [0, 1]: the upper half is given, the lower half is asked for.

    The data set's first ``train`` rows are to learn from, the next ``validation`` to choose settings by, and the last
    ``test`` are those that count: other writers wrote them.

    >>> problem = DigitHalves(train=50, validation=20, test=10)
    >>> problem.x.shape, problem.y.shape, problem.test_y.shape
    ((50, 4, 8), (50, 4, 8), (10, 4, 8))
    """

    x: Float[Array, "train 4 8"]
    y: Float[Array, "train 4 8"]
    validation_x: Float[Array, "validation 4 8"]
    validation_y: Float[Array, "validation 4 8"]
    test_x: Float[Array, "test 4 8"]
    test_y: Float[Array, "test 4 8"]

    def __init__(self, train: int = 1200, validation: int = 200, test: int = 300):
        images, _ = digits()
        parts = _split("DigitHalves", images, train, validation, test)
        halves = [jnp.asarray(half) for part in parts for half in (part[:, :4], part[:, 4:])]
        self.x, self.y, self.validation_x, self.validation_y, self.test_x, self.test_y = halves


class LabelledDigits(eqx.Module):
    """Scikit-learn's 8 × 8 digits in [0, 1] given their label as ten numbers of which one is 1: from class to image.

    train, validation, test: as for ``DigitHalves``.

    >>> problem = LabelledDigits(train=50, validation=20, test=10)
    >>> problem.x.shape, problem.y.shape
    ((50, 10), (50, 8, 8))
    """

    x: Float[Array, "train 10"]
    y: Float[Array, "train 8 8"]
    validation_x: Float[Array, "validation 10"]
    validation_y: Float[Array, "validation 8 8"]
    test_x: Float[Array, "test 10"]
    test_y: Float[Array, "test 8 8"]

    def __init__(self, train: int = 1200, validation: int = 200, test: int = 300):
        images, labels = digits()
        named = _split("LabelledDigits", np.eye(10, dtype=np.float32)[labels], train, validation, test)
        shown = _split("LabelledDigits", images, train, validation, test)
        parts = [jnp.asarray(part) for pair in zip(named, shown, strict=True) for part in pair]
        self.x, self.y, self.validation_x, self.validation_y, self.test_x, self.test_y = parts


def _split(owner: str, rows: np.ndarray, train: int, validation: int, test: int) -> list[np.ndarray]:
    for name, value in (("train", train), ("validation", validation), ("test", test)):
        require(owner, name, ">= 2", value, lambda n: n >= 2)
    total = train + validation + test
    require(owner, "train + validation + test", f"<= {len(rows)}", total, lambda n: n <= len(rows))
    return [rows[:train], rows[train : train + validation], rows[-test:]]
