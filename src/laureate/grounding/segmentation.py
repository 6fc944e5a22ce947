"""From an image and a phrase to a mask: a stem, a `LanguageUNet`, logits at every scale, and the loss over them."""

import functools
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import require
from laureate.grounding.modulation import AbstractModulation, Concatenation, FiLM, LanguageFilter
from laureate.grounding.strides import double, halve
from laureate.grounding.text import PhraseEncoder
from laureate.grounding.unet import Conditioning, LanguageUNet, add_locations
from laureate.layers import Convolution

__all__ = ["Segmenter", "multiscale_loss", "resize_nearest"]

KINDS: dict[str, Callable[..., AbstractModulation]] = {
    "filter": LanguageFilter,
    "film": functools.partial(FiLM, hidden="matched"),
    "concatenation": functools.partial(Concatenation, hidden="matched"),
}


class Segmenter(eqx.Module):
    """Which pixels does the phrase speak of? A small network for images of tens of pixels, trained from nothing.

    With e the encoder, F₀ = [ReLU(↓x) ; locations] and G the maps of the way up of a `LanguageUNet`::

        r = e(phrase),    G = unet(F₀, r),    logits = ↑ G₁,    and  1 × 1 convolutions of G_m … G₁ for the loss

    Bring features of your own network instead of images by calling `LanguageUNet` itself.

    key: of the initial weights. num_words: as ``len(vocabulary)``. inputs: channels of the images.
    text_size, depth, width, conditioning, kernel_size: as for `LanguageUNet`; the image is halved once more before it.
    modulation: "filter", "film" or "concatenation" (both with as many weights as the filter), or a function as for
        `LanguageUNet`. filter_size: side of the language-conditional filters, where ``modulation`` names a kind.
    stem_width: channels of the stem; None: as many as width. The others do not depend on it.
    dropout: of the phrase's vector while training, where ``modulation`` names a kind; a function brings its own.

    >>> import jax, jax.numpy as jnp
    >>> network = Segmenter(jax.random.key(0), num_words=7, text_size=8, depth=2, width=4)
    >>> images, words, lengths = jnp.zeros((2, 16, 16, 3)), jnp.ones((2, 5), int), jnp.array([3, 5])
    >>> [logits.shape for logits in network(images, words, lengths)]
    [(2, 4, 4), (2, 8, 8), (2, 16, 16)]
    """

    encoder: PhraseEncoder
    stem: Convolution
    stem_shift: Float[Array, " s"]
    unet: LanguageUNet
    heads: Float[Array, "m w"]
    head_shifts: Float[Array, " m"]
    last: Convolution
    last_shift: Float[Array, ""]

    def __init__(
        self,
        key: Key[Array, ""],
        num_words: int,
        *,
        inputs: int = 3,
        text_size: int = 32,
        depth: int = 2,
        width: int = 16,
        conditioning: Conditioning = "both",
        modulation: str | Callable[..., AbstractModulation] = "filter",
        filter_size: int = 1,
        kernel_size: int = 5,
        stem_width: int | None = None,
        dropout: float | Array = 0.1,
    ):
        rule = f"one of {', '.join(KINDS)}, or a function"
        require(
            "Segmenter", "modulation", rule, modulation, lambda m: m in KINDS if isinstance(m, str) else callable(m)
        )
        make = modulation
        if isinstance(modulation, str):
            make = functools.partial(KINDS[modulation], kernel_size=filter_size, dropout=dropout)
        words_key, unet_key, stem_key, heads_key = jax.random.split(key, 4)
        stem = width if stem_width is None else stem_width
        self.encoder = PhraseEncoder(words_key, num_words, text_size)
        self.stem = Convolution(jax.random.normal(stem_key, (3, 3, inputs, stem)))
        self.stem_shift = jnp.zeros(stem)
        self.unet = LanguageUNet(
            unet_key,
            stem + 8,
            text_size,
            depth=depth,
            width=width,
            conditioning=conditioning,
            modulation=make,  # pyright: ignore[reportArgumentType]  (a word was made a function)
            kernel_size=kernel_size,
        )
        drawn = jax.random.normal(heads_key, (depth + 9, width)) / math.sqrt(width)
        self.heads, self.head_shifts = drawn[:depth], jnp.zeros(depth)
        self.last, self.last_shift = Convolution(drawn[depth:].reshape(3, 3, width, 1)), jnp.zeros(())

    @property
    def num_parameters(self) -> int:
        """Numbers that are trained."""
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array)))

    def __call__(
        self,
        images: Float[Array, "b h w i"],
        words: Int[Array, "b t"],
        lengths: Int[Array, " b"],
        *,
        key: Key[Array, ""] | None = None,
    ) -> list[Float[Array, "b p q"]]:
        """Logits from the coarsest to the finest, which is as large as the images; ``key`` while training."""
        channels = self.stem.kernel.shape[2]
        rule = f"[batch, height, width, {channels}], channels last"
        require("Segmenter", "images", rule, images.shape, lambda s: len(s) == 4 and s[-1] == channels)
        features = jax.nn.relu(halve(images, self.stem.kernel) + self.stem_shift)
        maps = self.unet.maps(add_locations(features), self.encoder(words, lengths), key=key)
        logits = [
            rising @ head + shift for rising, head, shift in zip(maps.rising, self.heads, self.head_shifts, strict=True)
        ]
        size = images.shape[1], images.shape[2]
        return [*logits, double(maps.rising[-1], self.last.kernel, size)[..., 0] + self.last_shift]


def resize_nearest(masks: Array, size: tuple[int, int]) -> Array:
    """Masks [b, h, w] at another size: each new pixel takes the old one at ⌊place · old / new⌋, as PyTorch's nearest.

    >>> import numpy as np
    >>> resize_nearest(np.arange(4).reshape(1, 1, 4), (1, 2)).tolist()
    [[[0, 2]]]
    """
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, masks.shape[1:], strict=True))
    return masks[:, rows][:, :, columns]


def multiscale_loss(
    logits: Sequence[Float[Array, "b ? ?"]],
    masks: Float[Array, "b h w"] | Bool[Array, "b h w"],
    valid: Bool[Array, "b h w"] | None = None,
) -> Float[Array, ""]:
    """Σ_s (H_s / H) · the mean binary cross-entropy over the pixels at scale s that are no padding.

    logits: [batch, H_s, W_s] of every scale, the finest as large as the masks. masks: of 0 and 1, made smaller by
        taking the nearest pixel. valid: True where there is an image, False for padding; None: everywhere.

    >>> import jax.numpy as jnp
    >>> loss = multiscale_loss([jnp.zeros((1, 1, 1)), jnp.zeros((1, 2, 2))], jnp.ones((1, 2, 2)))
    >>> round(float(loss) / math.log(2), 4)
    1.5
    """
    require("multiscale_loss", "logits", "a list, one entry a scale", type(logits), lambda t: t in (list, tuple))
    swapped = logits[-1].shape == (masks.shape[0], *masks.shape[:0:-1]) != masks.shape
    remedy = "Are height and width swapped?" if swapped else "Scale or pad the masks with their images."
    rule = f"as large as the finest logits, {list(logits[-1].shape)}"
    require("multiscale_loss", "masks", rule, masks.shape, lambda shape: shape == logits[-1].shape, remedy)
    if valid is not None:
        require(
            "multiscale_loss", "valid", f"of the masks' shape {masks.shape}", valid.shape, lambda s: s == masks.shape
        )
    total = jnp.zeros(())
    for values in logits:
        values = values.astype(jnp.promote_types(values.dtype, jnp.float32))  # half precision cannot count the pixels
        size = values.shape[1], values.shape[2]
        target = resize_nearest(masks, size).astype(values.dtype)
        # −log σ(z) for 1, −log σ(−z) for 0
        entropy = jax.nn.softplus(values) - values * target
        counted = jnp.ones(values.shape, values.dtype) if valid is None else resize_nearest(valid, size)
        mean = jnp.sum(jnp.where(counted, entropy, 0)) / jnp.maximum(jnp.sum(counted), 1)
        total = total + size[0] / masks.shape[1] * mean
    return total
