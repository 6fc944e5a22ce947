"""Training on images, phrases and masks of one's own, and masks for others: checked on the host, compiled once."""

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from laureate._core import Status, require
from laureate.grounding.segmentation import Segmenter, multiscale_loss
from laureate.grounding.text import Tokens, Vocabulary
from laureate.loops import repeat

__all__ = ["FitInfo", "Referred", "fit", "make_examples", "predict", "train"]


class Referred(NamedTuple):
    """Images with what phrases say of them, checked by `make_examples`.

    images: [n, h, w, c], float. words, lengths: as `Tokens`. masks: [n, h, w], bool. valid: the same, False for
    padding.
    """

    images: Any
    words: Any
    lengths: Any
    masks: Any
    valid: Any


class FitInfo(NamedTuple):
    """How training went. losses: one a step. cost: examples seen. status: DIVERGED where a loss is not finite."""

    losses: Array
    cost: int
    status: Array


def make_examples(
    images: Any,
    phrases: Sequence[str],
    masks: Any,
    vocabulary: Vocabulary,
    *,
    channels: int = 3,
    allow_empty: bool = False,
) -> Referred:
    """Images, phrases and masks as arrays of one size; what cannot be meant is refused.

    images: [n, h, w, channels] with values in [0, 1], or a list of such images of several sizes: those are padded with
        zeros at the right and below, and the padding counts nowhere. masks: as the images without channels, of 0 and 1.
    phrases: one an image; repeat an image of which several are said. vocabulary: of the network.
    allow_empty: whether a phrase may speak of nothing.

    >>> import numpy as np
    >>> words = Vocabulary.of(["the bright corner"])
    >>> examples = make_examples(np.zeros((1, 4, 4, 3)), ["the bright corner"], np.eye(4)[None], words)
    >>> examples.masks.sum(), examples.valid.all()
    (np.int64(4), np.True_)
    """
    owner = "make_examples"
    images = images if hasattr(images, "shape") and np.ndim(images) == 4 else list(images)
    require(owner, "phrases", f"one an image, {len(images)}", len(phrases), lambda n: n == len(images) > 0)
    require(owner, "masks", f"one an image, {len(images)}", len(masks), lambda n: n == len(images))
    sizes = []
    for image, mask in zip(images, masks, strict=True):
        _check_image(owner, np.asarray(image), channels)
        sizes.append(_check_mask(owner, np.asarray(mask), np.shape(image)[:2], allow_empty))
    filled, valid = _padded(images)
    marked = np.zeros(valid.shape, bool)
    for row, (high, wide) in enumerate(sizes):
        marked[row, :high, :wide] = np.asarray(masks[row]) != 0
    return Referred(filled, *vocabulary.encode(phrases), marked, valid)


def _padded(images: Any) -> tuple[np.ndarray, np.ndarray]:
    """Images of several sizes in one array, zeros at the right and below, and where there is an image."""
    sizes = [np.shape(image) for image in images]
    shape = (len(sizes), *(max(size[axis] for size in sizes) for axis in (0, 1)))
    filled, valid = np.zeros((*shape, sizes[0][2]), np.float32), np.zeros(shape, bool)
    for row, (high, wide, _) in enumerate(sizes):
        filled[row, :high, :wide] = np.asarray(images[row])
        valid[row, :high, :wide] = True
    return filled, valid


def _check_image(owner: str, image: np.ndarray, channels: int) -> None:
    remedy = ""
    if image.ndim == 3 and image.shape[0] == channels != image.shape[2]:
        remedy = "Channels come last here: transpose [channels, height, width] images."
    elif image.ndim == 2 or image.shape[-1] == 1:
        remedy = f"A grey image: repeat it {channels} times along the last axis, or say channels=1."
    rule = f"[height, width, {channels}] each"
    require(owner, "images", rule, image.shape, lambda s: len(s) == 3 and s[2] == channels, remedy)
    require(owner, "images", "finite", "nan or inf", lambda _: bool(np.isfinite(image).all()))
    ends = float(image.min()), float(image.max())
    remedy = "Divide bytes by 255." if image.dtype == np.uint8 or ends[1] > 1 else "Bring them into [0, 1]."
    kind = image.dtype.name
    wrong = image.dtype.kind not in "f" or ends[0] < 0 or ends[1] > 1
    require(owner, "images", "floats in [0, 1]", f"{kind} from {ends[0]:g} to {ends[1]:g}", lambda _: not wrong, remedy)


def _check_mask(owner: str, mask: np.ndarray, size: tuple[int, ...], allow_empty: bool) -> tuple[int, int]:
    remedy = (
        "Is it (width, height)? Transpose it." if mask.shape == size[::-1] != size else "It is given pixel by pixel."
    )
    require(owner, "masks", f"{size}, as large as the image", mask.shape, lambda s: s == size, remedy)
    values = np.unique(mask)[:5].tolist()
    rule = "of 0 and 1 alone"
    require(owner, "masks", rule, values, lambda v: set(v) <= {0, 1}, "Threshold a soft mask, or divide bytes by 255.")
    remedy = "Say allow_empty=True where a phrase may speak of nothing."
    require(
        owner, "masks", "not empty", f"{int((mask != 0).sum())} pixels", lambda _: allow_empty or mask.any(), remedy
    )
    return int(size[0]), int(size[1])


def train(
    key: Key[Array, ""],
    network: Any,
    examples: Referred,
    num_steps: int,
    *,
    batch: int = 32,
    learning_rate: float | Array = 0.01,
) -> tuple[Any, Float[Array, " steps"]]:
    """The network after Adam on `multiscale_loss`, its rate falling to 0 as a cosine, and the losses; for use in jit.

    Batches are drawn with replacement. network: as `Segmenter`: called with images, words, lengths and ``key``.

    examples: of `make_examples`. num_steps: of Adam. batch: examples a step. learning_rate: the first.
    """
    optimiser = optax.adam(lambda count: learning_rate * 0.5 * (1 + jnp.cos(math.pi * count / num_steps)))
    rows_key, steps_key = jax.random.split(key)
    rows = jax.random.randint(rows_key, (num_steps, batch), 0, len(examples.masks))
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    examples = Referred(*(jnp.asarray(leaf) for leaf in examples))

    def loss(arrays: Any, chosen: Referred, step_key: Key[Array, ""]) -> Array:
        logits = eqx.combine(arrays, rest)(chosen.images, chosen.words, chosen.lengths, key=step_key)
        return multiscale_loss(logits, chosen.masks, chosen.valid)

    def step(state: tuple[Any, Any], index: Array) -> tuple[tuple[Any, Any], Array]:
        arrays, moments = state
        chosen = Referred(*(leaf[rows[index]] for leaf in examples))
        value, slope = jax.value_and_grad(loss)(arrays, chosen, jax.random.fold_in(steps_key, index))
        updates, moments = optimiser.update(slope, moments)
        return (optax.apply_updates(arrays, updates), moments), value

    (arrays, _), (losses, _) = repeat(step, (arrays, optimiser.init(arrays)), 0, num_steps)
    return eqx.combine(arrays, rest), losses[:, 0]


_train = eqx.filter_jit(train)


def fit(
    key: Key[Array, ""],
    network: Any,
    examples: Referred,
    num_steps: int,
    *,
    batch: int = 32,
    learning_rate: float | Array = 0.01,
) -> tuple[Any, FitInfo]:
    """Train a network on examples of one's own, as `train`, compiled; another rate or network key compiles nothing.

    num_steps: of Adam, >= 1. batch: examples a step. learning_rate: the first, > 0.

    >>> import jax, numpy as np
    >>> from laureate.grounding import Segmenter, Vocabulary, fit, make_examples
    >>> words = Vocabulary.of(["the left half"])
    >>> masks = np.zeros((2, 8, 8), bool); masks[:, :, :4] = True
    >>> examples = make_examples(np.zeros((2, 8, 8, 3)), ["the left half"] * 2, masks, words)
    >>> network = Segmenter(jax.random.key(0), len(words), depth=1, width=4, text_size=4, kernel_size=3)
    >>> network, info = fit(jax.random.key(1), network, examples, 5)
    >>> info.losses.shape, int(info.cost)
    ((5,), 160)
    """
    require("fit", "examples", "made by make_examples", type(examples).__name__, lambda name: name == "Referred")
    require("fit", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
    require("fit", "batch", ">= 1", batch, lambda n: n >= 1)
    require("fit", "learning_rate", "> 0", learning_rate, lambda r: r > 0)
    if examples.valid is None:
        require("fit", "valid", "given: True everywhere if nothing is padded", None, lambda _: False)
    network, losses = _train(key, network, examples, num_steps, batch=batch, learning_rate=jnp.asarray(learning_rate))
    status = jnp.where(jnp.all(jnp.isfinite(losses)), int(Status.OK), int(Status.DIVERGED))
    if int(status) != Status.OK:
        warnings.warn("fit: a loss is not finite; try a lower learning_rate", UserWarning, stacklevel=2)
    return network, FitInfo(losses, num_steps * batch, status)


@eqx.filter_jit
def _predict(network: Any, images: Any, words: Any, lengths: Any) -> Array:
    return jax.nn.sigmoid(network(images, words, lengths)[-1])


def predict(network: Any, images: Any, tokens: Tokens) -> np.ndarray:
    """The probability of every pixel to be meant, [n, h, w]; images and phrases as for `make_examples`.

    Images of several sizes are padded as there, and of the padding no pixel is meant.
    network: a `Segmenter`, or one's own with the same call.
    """
    require("predict", "tokens", f"one phrase an image, {len(images)}", len(tokens.words), lambda n: n == len(images))
    # A network of one's own says itself how many channels it takes.
    channels = network.stem.kernel.shape[2] if isinstance(network, Segmenter) else np.shape(images[0])[-1]
    for image in images:
        _check_image("predict", np.asarray(image), channels)
    filled, valid = _padded(images)
    found = np.asarray(_predict(network, jnp.asarray(filled), jnp.asarray(tokens.words), tokens.lengths))
    return np.where(valid, found, np.zeros((), found.dtype))
