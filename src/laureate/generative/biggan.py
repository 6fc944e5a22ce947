"""BigGAN's generator and discriminator, of convolutions or of linear layers, and a trainer with the usual settings."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from laureate._core import require
from laureate.generative.biggan_parts import (
    LABELS,
    Affine,
    ConditionalBatchNorm,
    ProjectionHead,
    SelfAttention,
    grown,
    halved,
    split_latents,
)
from laureate.generative.orthogonal import OrthogonalPenalty, orthogonal
from laureate.generative.stateful import SpectrallyNormalised, WholeBatch
from laureate.generative.trainer import Adversarial
from laureate.layers import BatchNorm

__all__ = [
    "BigGANDiscriminator",
    "BigGANGenerator",
    "GrowingBlock",
    "ShrinkingBlock",
    "biggan_settings",
    "images_and_labels",
    "make_biggan",
]

SIDES = (8, 16, 32)


class GrowingBlock(eqx.Module):
    """A generator's block: x' + short(x), x' = conv(relu(norm(conv(up(relu(norm(x))))))), norms by the condition.

    norms, layers: two each. shortcut: 1 × 1, or None for the identity. grows: whether height and width are doubled.
    """

    norms: tuple[ConditionalBatchNorm, ConditionalBatchNorm]
    layers: tuple[Affine, Affine]
    shortcut: Affine | None
    grows: bool = eqx.field(static=True)

    def __call__(self, x: Array, condition: Array, statistics: Any, other: Any = None) -> tuple[Array, Any]:
        """The block's output, and the statistics of both norms. other: the second's condition, where it differs."""
        before, after = (None, None) if statistics is None else statistics
        up = grown if self.grows else lambda images: images
        inner, first = self.norms[0](x, condition, before)
        inner = self.layers[0](up(jax.nn.relu(inner)))
        inner, second = self.norms[1](inner, condition if other is None else other, after)
        # A 1 × 1 convolution of an enlarged image is the enlarged 1 × 1 convolution.
        short = x if self.shortcut is None else self.shortcut(x)
        return self.layers[1](jax.nn.relu(inner)) + up(short), (first, second)


class ShrinkingBlock(eqx.Module):
    """A discriminator's block: pool(conv(relu(conv(relu(x))))) + short(x).

    layers: two. shortcut: 1 × 1, or None for the identity. shrinks: whether height and width are halved. first: whether
    it sees the image itself, which has no relu before it, and is pooled before the shortcut.
    """

    layers: tuple[Affine, Affine]
    shortcut: Affine | None
    shrinks: bool = eqx.field(static=True)
    first: bool = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        """The block's output."""
        down = halved if self.shrinks else lambda images: images
        inner = self.layers[0](x if self.first else jax.nn.relu(x))
        inner = down(self.layers[1](jax.nn.relu(inner)))
        # Pooling and a 1 × 1 convolution commute: the order of the first block serves all.
        short = down(x)
        return inner + (short if self.shortcut is None else self.shortcut(short))


class BigGANGenerator(eqx.Module):
    """From latents and labels to images in [−1, 1] (Brock et al. 2019, appendix B)::

        z = (z_0, ..., z_k),   h_0 = W z_0,   h_i = block_i(h_{i−1}; e(y), z_i),   x = tanh(last(relu(norm(h_k))))

    embedding: e, [1, classes, size], shared by all norms; or [norms, classes, size], one for each.
    first: the linear layer of z_0. blocks: of one condition each. attention: before the last block, or None.
    norm, last: before the output.
    start: the shape of h_0. shape: of an image.
    num_classes: 0 for none.
    hierarchical: False where all of z goes into the first layer.
    """

    embedding: Float[Array, "norms classes size"]
    first: Affine
    blocks: tuple[GrowingBlock, ...]
    attention: SelfAttention | None
    norm: BatchNorm
    last: Affine
    start: tuple[int, ...] = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    num_classes: int = eqx.field(static=True)
    hierarchical: bool = eqx.field(static=True)

    def init(self) -> Any:
        """Statistics of nothing: two for every block, and that before the output."""
        last = jax.tree.map(lambda leaf: leaf.astype(self.last.weight.dtype) if leaf.ndim else leaf, self.norm.init())
        return (*((block.norms[0].init(), block.norms[1].init()) for block in self.blocks), last)

    def check(self, images: Any, labels: Any = None) -> None:
        """Raise for images beyond ±1 (None where they are to be made), and for labels that are none of the classes."""
        if images is not None:
            most = float(np.max(np.abs(images)))
            require("BigGAN", "images", "within -1 and 1", most, lambda m: m <= 1, "Scale images to [-1, 1].")
        if not self.num_classes:
            return
        require("BigGAN", "labels", LABELS, labels, lambda given: given is not None)
        if isinstance(labels, Tracer):
            return
        labels = np.asarray(labels)
        if not np.issubdtype(labels.dtype, np.integer):
            raise TypeError(f"BigGAN.labels must be integers; got {labels.dtype}. Use labels.astype(int).")
        span, most = (int(labels.min()), int(labels.max())), self.num_classes - 1
        require("BigGAN", "labels", f"within 0 and {most}", span, lambda s: s[0] >= 0 and s[1] <= most)

    def __call__(
        self, z: Float[Array, "b n"], y: Int[Array, " b"] | None = None, statistics: Any = None
    ) -> tuple[Float[Array, "b *shape"], Any]:
        """Images, and the statistics that were used: the batch's own where none are given."""
        if statistics is None:
            rule, remedy = "at least two rows to normalise by", "Give standing statistics to make one image."
            require("BigGANGenerator", "z", rule, len(z), lambda n: n >= 2, remedy)
        given = (None,) * (len(self.blocks) + 1) if statistics is None else statistics
        if self.num_classes:
            require("BigGANGenerator", "y", LABELS, y, lambda labels: labels is not None)
        told = self.embedding[:, y if self.num_classes else jnp.zeros(len(z), int)]  # [1 or norms, b, size]
        pieces = split_latents(z, len(self.blocks) + 1) if self.hierarchical else [z]
        h, used = self.first(pieces[0]).reshape(-1, *self.start), []
        for number, (block, own) in enumerate(zip(self.blocks, given[:-1], strict=True)):
            if self.attention is not None and number == len(self.blocks) - 1:
                h = self.attention(h)
            piece = pieces[number + 1 : number + 2]
            own_told = told[2 * number : 2 * number + 2] if len(told) > 1 else told
            conditions = [jnp.concatenate([one, *piece], axis=1) for one in own_told]
            h, both = block(h, conditions[0], own, conditions[-1])
            used.append(both)
        h, own = self.norm(h, given[-1])
        return jnp.tanh(self.last(jax.nn.relu(h))).reshape(-1, *self.shape), (*used, own)


class BigGANDiscriminator(eqx.Module):
    """From images and labels to one number each: blocks, then a projection (Brock et al. 2019, appendix B).

    blocks: from the image to features. attention: after the first block, or None. head: what knows the class.
    flat: whether images are taken as rows of numbers, for linear layers.
    """

    blocks: tuple[ShrinkingBlock, ...]
    attention: SelfAttention | None
    head: ProjectionHead
    flat: bool = eqx.field(static=True)

    def __call__(
        self, x: Float[Array, "b *shape"], y: Int[Array, " b"] | None = None, statistics: Any = None
    ) -> tuple[Float[Array, " b"], tuple[()]]:
        """One number a row; there are no statistics."""
        h = x.reshape(len(x), -1) if self.flat else x
        for number, block in enumerate(self.blocks):
            h = block(h)
            if self.attention is not None and number == 0:
                h = self.attention(h)
        return self.head(h, y), ()


def adam(learning_rate: Any) -> optax.GradientTransformation:
    """Adam without momentum, as in the paper; on one vector of all weights, which compiles and runs faster."""
    return optax.flatten(optax.adam(learning_rate, b1=0.0))


# Rows up to which a preset is meant, and what it sets: where to begin, not what was found best for your images.
PRESETS: tuple[tuple[float, dict[str, Any]], ...] = (
    (2_000, {"channels": 16, "batch": 32, "decay": 0.99, "num_steps": 3_000, "learning_rate": 5e-4}),
    (20_000, {"channels": 32, "batch": 64, "decay": 0.999, "num_steps": 20_000, "learning_rate": 2e-4}),
    (math.inf, {"channels": 64, "batch": 256, "decay": 0.9999, "num_steps": 100_000, "learning_rate": 5e-5}),
)


def biggan_settings(num_images: int) -> dict[str, Any]:
    """Where to begin for so many images: channels, batch, decay of the average, steps and learning rate.

    ``batch`` and ``num_steps`` are for ``fit``, the others for ``make_biggan``::

        settings = biggan_settings(len(images))
        training = {name: settings.pop(name) for name in ("batch", "num_steps")}
        make_biggan(key, images.shape[1:], 10, **settings).fit(key, (images, labels), **training)

    >>> biggan_settings(1797)["channels"], biggan_settings(60_000)["batch"]
    (16, 256)
    """
    require("biggan_settings", "num_images", ">= 2", num_images, lambda n: n >= 2)
    return dict(next(settings for most, settings in PRESETS if num_images <= most))


def images_and_labels(images: Any, labels: Any = None, num_classes: int | None = None) -> tuple[Array, ...]:
    """One's own arrays as ``Adversarial.fit`` takes them, or an error that says what is wrong with them.

    images: [n, height, width, channels] in [−1, 1]. labels: integers [n] from 0 on, of at least two classes, or None.
    num_classes: what labels must stay below, where it is known.

    >>> x, y = images_and_labels(np.zeros((4, 8, 8, 1)), [0, 1, 2, 1])
    >>> x.dtype.name, int(y.max())
    ('float32', 2)
    """
    images = np.asarray(images)
    remedy = "Add the axis of channels, images[..., None]." if images.ndim == 3 else ""
    rule = "[n, height, width, channels]"
    require("images_and_labels", "images", rule, list(images.shape), lambda shape: len(shape) == 4, remedy)
    span = (float(images.min()), float(images.max()))
    remedy = "Scale images to [-1, 1]: images / 127.5 - 1 for bytes."
    require("images_and_labels", "images", "within -1 and 1", span, lambda s: s[0] >= -1 and s[1] <= 1, remedy)
    if labels is None:
        return (jnp.asarray(images, jnp.float32),)
    labels = np.asarray(labels)
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"images_and_labels.labels must be integers; got {labels.dtype}. Use labels.astype(int).")
    remedy = "Of rows with a single 1 take labels.argmax(1)." if labels.ndim == 2 else ""
    rule = f"one for each image, [{len(images)}]"
    require("images_and_labels", "labels", rule, list(labels.shape), lambda shape: shape == [len(images)], remedy)
    require("images_and_labels", "labels", ">= 0", int(labels.min()), lambda n: n >= 0)
    remedy = "One class tells nothing: leave labels out."
    number = len(np.unique(labels))
    require("images_and_labels", "labels", "of two classes at least", number, lambda n: n >= 2, remedy)
    most = np.inf if num_classes is None else num_classes
    require("images_and_labels", "labels", f"below {most}", int(labels.max()), lambda n: n < most, "Count from 0.")
    return jnp.asarray(images, jnp.float32), jnp.asarray(labels, jnp.int32)


def make_biggan(
    key: Array,
    shape: tuple[int, ...],
    num_classes: int = 0,
    *,
    kind: str = "convolution",
    channels: int = 16,
    num_blocks: int = 2,
    num_latents: int = 12,
    num_shared: int = 8,
    shared: bool = True,
    hierarchical: bool = True,
    attention: bool = False,
    penalty: float | Array = 1e-4,
    penalty_kind: str = "off-diagonal",
    spectral: bool = True,
    **settings: Any,
) -> Adversarial:
    """A trainer with BigGAN's networks: hinge loss, spectral normalisation, Adam without momentum.

    shape: [height, width, channels] of an image in [−1, 1]. num_classes: 0 for none; labels are integers below.
    kind: "convolution" (square images of 8, 16 or 32 pixels) or "dense" (linear layers, images of any shape).
    channels: of every layer, as in the authors' networks for 32 pixels.
    num_blocks: of "dense"; convolutions have one for every doubling from 4 × 4.
    num_latents: numbers in z, a multiple of the blocks + 1 where ``hierarchical``.
    num_shared: numbers of the embedding that all norms share; False for ``shared`` gives each norm one of its own.
    attention: a block of it, for convolutions. penalty, penalty_kind: see ``OrthogonalPenalty``.
    spectral: False for weights as they are.
    settings: of ``Adversarial``, such as ``learning_rate``, ``num_discriminator_steps``, ``decay``, ``regulariser``.

    >>> gan = make_biggan(jax.random.key(0), (8, 8, 1), 10, channels=8, num_latents=4)
    >>> images = gan.make(gan.init().generator, jnp.ones((2, 4)), jnp.array([3, 4]))
    >>> images.shape
    (2, 8, 8, 1)
    """
    require("make_biggan", "kind", "'convolution' or 'dense'", kind, lambda k: k in ("convolution", "dense"))
    for name, value in (("channels", channels), ("num_blocks", num_blocks), ("num_shared", num_shared)):
        require("make_biggan", name, ">= 1", value, lambda n: n >= 1)
    rule, remedy = ">= 0 and not 1", "One class tells nothing: use 0, for no classes."
    require("make_biggan", "num_classes", rule, num_classes, lambda n: n >= 0 and n != 1, remedy)
    if kind == "convolution":
        rule, remedy = f"[side, side, channels] with a side of {SIDES}", "Resize, or use kind='dense'."
        require("make_biggan", "shape", rule, shape, lambda s: len(s) == 3 and s[0] == s[1] and s[0] in SIDES, remedy)
        num_blocks = int(math.log2(shape[0])) - 2
    pieces = num_blocks + 1
    remedy = f"The next size that works is {-(-num_latents // pieces) * pieces}."
    fits = lambda n: not hierarchical or n % pieces == 0  # noqa: E731
    require("make_biggan", "num_latents", f"a multiple of blocks + 1 = {pieces}", num_latents, fits, remedy)
    price = OrthogonalPenalty(penalty, penalty_kind)
    own_key, judge_key = jax.random.split(key)
    condition = num_shared + (num_latents // pieces if hierarchical else 0)
    sizes = (shape, num_classes, channels, num_blocks, attention, kind == "dense")
    entry = num_latents // pieces if hierarchical else num_latents
    about = (entry, condition, num_shared, 1 if shared else 2 * num_blocks, hierarchical)
    generator: Any = WholeBatch(_dealt(own_key, lambda weight: _generator(weight, *sizes, *about)))
    discriminator: Any = WholeBatch(_dealt(judge_key, lambda weight: _discriminator(weight, *sizes)))
    if spectral:
        generator = SpectrallyNormalised(generator, where=_not_shared)
        discriminator = SpectrallyNormalised(discriminator)
    usual = {"loss": "hinge", "ratio": 4.0, "optimiser": adam, "decay": 0.99, "learning_rate": 5e-4}
    return Adversarial(
        generator,
        discriminator,
        num_latents=num_latents,
        generator_penalty=price,
        **usual | settings,
    )


def _not_shared(path: str) -> bool:
    """The authors found that a normalised embedding can break the generator."""
    return "embedding" not in path


def _dealt(key: Array, build: Callable[[Callable[[tuple[int, ...]], Array]], Any]) -> Any:
    """What ``build`` makes with orthogonal weights, all from one draw: it is asked once for the shapes."""
    shapes: list[tuple[int, ...]] = []

    def noted(shape: tuple[int, ...]) -> Any:
        shapes.append(shape)
        return np.zeros(shape, np.float32)

    build(noted)
    weights = iter(orthogonal(key, *shapes))
    return build(lambda shape: next(weights))


def _affine(weight: Callable, inputs: int, outputs: int, *, side: int, bias: bool = True) -> Affine:
    """side: of a kernel, 0 for a linear layer."""
    shape = (side, side, inputs, outputs) if side else (inputs, outputs)
    return Affine(weight(shape), jnp.zeros(outputs) if bias else None)


def _attention(weight: Callable, channels: int) -> SelfAttention:
    rule, remedy = "a multiple of 8 where there is attention", ""
    require("make_biggan", "channels", rule, channels, lambda c: c % 8 == 0, remedy)
    small, half = channels // 8, channels // 2
    shapes = ((channels, small), (channels, small), (channels, half), (half, channels))
    return SelfAttention(*(weight(shape) for shape in shapes), jnp.zeros(()))  # pyright: ignore[reportCallIssue]


def _generator(weight, shape, num_classes, channels, num_blocks, attention, flat, entry, condition, told, own, deep):
    """entry: numbers into the first layer. condition: of a norm. told: numbers of an embedding. own: embeddings."""
    start, side, blocks = (channels,) if flat else (4, 4, channels), 0 if flat else 3, []
    for _ in range(num_blocks):
        norms = [ConditionalBatchNorm(weight((condition, channels)), weight((condition, channels))) for _ in range(2)]
        layers = [_affine(weight, channels, channels, side=side) for _ in range(2)]
        shortcut = None if flat else _affine(weight, channels, channels, side=1)
        blocks.append(GrowingBlock((norms[0], norms[1]), (layers[0], layers[1]), shortcut, grows=not flat))
    return BigGANGenerator(
        embedding=jnp.stack([weight((max(num_classes, 1), told)) for _ in range(own)]),
        first=_affine(weight, entry, math.prod(start), side=0),
        blocks=tuple(blocks),
        attention=_attention(weight, channels) if attention and not flat else None,
        norm=BatchNorm(channels),
        last=_affine(weight, channels, math.prod(shape) if flat else shape[-1], side=side),
        start=start,
        shape=shape,
        num_classes=num_classes,
        hierarchical=deep,
    )


def _discriminator(weight, shape, num_classes, channels, num_blocks, attention, flat):
    """A block more than the generator has; the first two halve the image, where that leaves 4 × 4 at least."""
    inputs, side, blocks = math.prod(shape) if flat else shape[-1], 0 if flat else 3, []
    for number in range(num_blocks + 1):
        layers = (_affine(weight, inputs, channels, side=side), _affine(weight, channels, channels, side=side))
        shortcut = None if inputs == channels else _affine(weight, inputs, channels, side=min(side, 1))
        shrinks = not flat and number < min(2, num_blocks)
        blocks.append(ShrinkingBlock(layers, shortcut, shrinks=shrinks, first=number == 0))
        inputs = channels
    embedding = weight((num_classes, channels)) if num_classes else None
    seen = _attention(weight, channels) if attention and not flat else None
    head = ProjectionHead(weight((channels, 1)), jnp.zeros(1), embedding)
    return BigGANDiscriminator(tuple(blocks), seen, head, flat)
