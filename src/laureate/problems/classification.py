"""Rows with labels, of a data set by name, for classifiers."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from laureate.problems.datasets import descriptions, small_images

__all__ = ["ImageRows", "Prose"]


class ImageRows(eqx.Module):
    """Images of a data set (``small_images``) as rows of pixels in [0, 1], with their labels from 0 on.

    >>> problem = ImageRows("digits", train=1000, test=300)
    >>> problem.inputs.shape, problem.test_labels.shape, problem.num_classes
    ((1000, 64), (300,), 10)
    """

    inputs: Float[Array, "rows pixels"]
    labels: Int[Array, "rows"]
    test_inputs: Float[Array, "test pixels"]
    test_labels: Int[Array, "test"]
    num_classes: int = eqx.field(static=True)

    def __init__(self, data: str = "digits", train: int = 1400, test: int = 359):
        found = small_images(data, train, test)
        rows = lambda images: jnp.asarray(images.reshape(len(images), -1))  # noqa: E731
        self.inputs, self.test_inputs = rows(found.train_images), rows(found.test_images)
        self.labels, self.test_labels = jnp.asarray(found.train_labels), jnp.asarray(found.test_labels)
        self.num_classes = int(found.train_labels.max()) + 1


class Prose(eqx.Module):
    """English text (``descriptions``) as numbers of characters: the last sixth for testing, the sixth before to choose.

    >>> text = Prose()
    >>> len(text.train) > 20_000, int(text.train.max()) < text.num_characters
    (True, True)
    """

    train: Int[Array, "train"]
    validation: Int[Array, "validation"]
    test: Int[Array, "test"]
    num_characters: int = eqx.field(static=True)

    def __init__(self):
        words = descriptions()
        alphabet = {character: number for number, character in enumerate(sorted(set(words)))}
        numbers = jnp.asarray([alphabet[character] for character in words], jnp.int32)
        part = len(words) // 6
        self.train, self.validation, self.test = numbers[: -2 * part], numbers[-2 * part : -part], numbers[-part:]
        self.num_characters = len(alphabet)
