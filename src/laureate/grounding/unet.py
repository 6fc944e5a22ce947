"""A U-Net whose way down, way up or both are modulated by language, without leaks between the two."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.grounding.modulation import AbstractModulation, LanguageFilter
from laureate.grounding.strides import double, halve
from laureate.layers import Convolution, GroupNorm

__all__ = ["Conditioning", "LanguageUNet", "UNetMaps", "add_locations"]

Conditioning = Literal["both", "bottom-up", "top-down", "none"]
WAYS = ("both", "bottom-up", "top-down", "none")
Maps = tuple[Float[Array, "b ? ? w"], ...]


class UNetMaps(NamedTuple):
    """What a `LanguageUNet` computes on its way.

    skips: F₁ to F_m as the way up reads them, the deepest last. rising: G_m to G₁, the last as large as the input.
    """

    skips: tuple[Array, ...]
    rising: tuple[Array, ...]


class LanguageUNet(eqx.Module):
    """A feature map and a phrase in, a feature map of the same size out; language enters where you say.

    With F₀ the features, r split into m parts r₁ … r_m, f and f′ modulations (the identity where language does not
    enter), [;] concatenation, ↓ a convolution of stride 2 and ↑ a transposed one::

        F_i = ReLU(norm(↓[F_{i−1} ; f_i(F_{i−1}, r_i)]))                i = 1 … m     (bottom-up)
        G_j = ReLU(norm(↑[G_{j+1} ; f′_j(F_j, r_j)])),  no G_{m+1},     j = m … 1     (top-down)

    (Kesen et al., ICLR 2021 submission, section 3). With language on the way down alone, F₁ … F_{m−1} would carry it
    past the bottom: as the authors do, a second, purely visual branch then gives these skips,
    V_i = ReLU(norm(↓V_{i−1})), and F_m is the only map that knows the phrase. Normalisation is within an image
    (`GroupNorm`), not over the batch.

    key: of the initial weights. channels: of F₀. text_size: numbers of r, a multiple of depth.
    depth: m; height and width must be at least 2^m. width: channels of every level.
    conditioning: "both", "bottom-up", "top-down" or "none".
    modulation: makes f and f′: called with (key, channels, text_size / depth); `LanguageFilter`, `FiLM`,
        `Concatenation`, a ``functools.partial`` of them or one's own.
    kernel_size: of ↓ and ↑, odd; 5 is the authors'.

    >>> import jax, jax.numpy as jnp
    >>> network = LanguageUNet(jax.random.key(0), channels=3, text_size=8, depth=2, width=4, kernel_size=3)
    >>> network(jnp.ones((2, 9, 12, 3)), jnp.ones((2, 8))).shape
    (2, 9, 12, 4)
    """

    down: tuple[Convolution, ...]
    up: tuple[Convolution, ...]
    visual: tuple[Convolution, ...]
    down_norms: tuple[GroupNorm, ...]
    up_norms: tuple[GroupNorm, ...]
    visual_norms: tuple[GroupNorm, ...]
    down_filters: tuple[AbstractModulation, ...]
    up_filters: tuple[AbstractModulation, ...]
    text_size: int = eqx.field(static=True)
    conditioning: Conditioning = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        channels: int,
        text_size: int,
        *,
        depth: int = 3,
        width: int = 16,
        conditioning: Conditioning = "both",
        modulation: Callable[[Key[Array, ""], int, int], AbstractModulation] = LanguageFilter,
        kernel_size: int = 5,
    ):
        owner = "LanguageUNet"
        require(owner, "depth", ">= 1", depth, lambda d: d >= 1)
        require(owner, "width", ">= 1", width, lambda w: w >= 1)
        require(owner, "kernel_size", "odd and >= 1", kernel_size, lambda k: k >= 1 and k % 2 == 1)
        require(owner, "conditioning", f"one of {', '.join(WAYS)}", conditioning, lambda c: c in WAYS)
        remedy = "Each level reads a part of its own; choose a multiple of depth."
        require(
            owner, "text_size", f"a multiple of depth {depth}", text_size, lambda t: t > 0 and t % depth == 0, remedy
        )
        weights_key, filters_key = jax.random.split(key)
        before = (channels, *(width,) * (depth - 1))  # channels of F_0 … F_{m−1}
        squares = (kernel_size, kernel_size)
        downs = [(*squares, 2 * count, width) for count in before]
        ups = [(*squares, width * (1 if level == depth - 1 else 2), width) for level in range(depth)]
        visuals = [(*squares, count, width) for count in before[:-1]] if conditioning == "bottom-up" else []
        drawn = _dealt(weights_key, [*downs, *ups, *visuals])
        made = [Convolution(kernel) for kernel in drawn]
        self.down, self.up, self.visual = tuple(made[:depth]), tuple(made[depth : 2 * depth]), tuple(made[2 * depth :])
        norm = lambda: GroupNorm(width, math.gcd(width, 4))  # noqa: E731
        self.down_norms, self.up_norms = (tuple(norm() for _ in range(depth)) for _ in range(2))
        self.visual_norms = tuple(norm() for _ in visuals)
        # The keys of the filters are the same whichever of them there are.
        keys = jax.random.split(filters_key, (2, depth))
        part = text_size // depth
        descends, rises = conditioning in ("both", "bottom-up"), conditioning in ("both", "top-down")
        pairs = zip(keys[0], before, strict=True)
        self.down_filters = tuple(modulation(k, count, part) for k, count in pairs) if descends else ()
        self.up_filters = tuple(modulation(k, width, part) for k in keys[1]) if rises else ()
        self.text_size, self.conditioning = text_size, conditioning

    @property
    def depth(self) -> int:
        """m."""
        return len(self.down)

    @property
    def num_parameters(self) -> int:
        """Numbers that are trained."""
        return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array)))

    def __call__(
        self, features: Float[Array, "b h w c"], text: Float[Array, "b d"], *, key: Key[Array, ""] | None = None
    ) -> Float[Array, "b h w width"]:
        """G₁; ``key`` for dropout while training."""
        return self.maps(features, text, key=key).rising[-1]

    def maps(
        self, features: Float[Array, "b h w c"], text: Float[Array, "b d"], *, key: Key[Array, ""] | None = None
    ) -> UNetMaps:
        """All maps on the way, to look at."""
        least = 2**self.depth
        rule = f"[batch, height, width, channels] of at least {least} × {least} positions for depth {self.depth}"
        require("LanguageUNet", "features", rule, features.shape, lambda s: len(s) == 4 and min(s[1:3]) >= least)
        rule = f"[{len(features)}, {self.text_size}], a row an example"
        require("LanguageUNet", "text", rule, text.shape, lambda s: s == (len(features), self.text_size))
        parts = jnp.split(text, self.depth, axis=1)
        keys = None if key is None else jax.random.split(key, (2, self.depth))

        def told(filters: tuple[AbstractModulation, ...], way: int, level: int, values: Array) -> Array:
            if not filters:  # language does not enter here
                return values
            return filters[level](values, parts[level], key=None if keys is None else keys[way, level])

        skips, sizes, values, seen = [], [], features, features
        for level in range(self.depth):
            sizes.append((values.shape[1], values.shape[2]))
            both = jnp.concatenate([values, told(self.down_filters, 0, level, values)], axis=-1)
            values = jax.nn.relu(self.down_norms[level](halve(both, self.down[level].kernel)))
            if self.visual and level < self.depth - 1:
                seen = jax.nn.relu(self.visual_norms[level](halve(seen, self.visual[level].kernel)))
                skips.append(seen)
            else:
                skips.append(values)
        rising: list[Array] = []
        for level in reversed(range(self.depth)):
            skip = told(self.up_filters, 1, level, skips[level])
            both = jnp.concatenate([rising[-1], skip], axis=-1) if rising else skip
            raised = double(both, self.up[level].kernel, sizes[level])
            rising.append(jax.nn.relu(self.up_norms[level](raised)))
        return UNetMaps(tuple(skips), tuple(rising))


def add_locations(features: Float[Array, "b h w c"]) -> Float[Array, "b h w c+8"]:
    """Eight channels that say where a cell lies: its left, top, right, bottom and centre in [−1, 1], 1/width, 1/height.

    >>> import jax.numpy as jnp
    >>> add_locations(jnp.zeros((1, 2, 2, 1)))[0, 0, 1].tolist()  # the upper right one
    [0.0, 0.0, -1.0, 1.0, 0.0, 0.5, -0.5, 0.5, 0.5]
    """
    batch, height, width, _ = features.shape
    top, left = np.meshgrid(np.linspace(-1, 1, height + 1)[:-1], np.linspace(-1, 1, width + 1)[:-1], indexing="ij")
    tall, wide = 2 / height, 2 / width
    cells = [left, top, left + wide, top + tall, left + wide / 2, top + tall / 2]
    cells += [np.full_like(left, 1 / width), np.full_like(left, 1 / height)]
    where = jnp.asarray(np.stack(cells, axis=-1), features.dtype)
    return jnp.concatenate([features, jnp.broadcast_to(where, (batch, height, width, 8))], axis=-1)


def _dealt(key: Key[Array, ""], shapes: list[tuple[int, ...]]) -> list[Array]:
    """Normal numbers of these shapes, one draw dealt out: each call of the generator costs a tenth of a second."""
    sizes = [math.prod(shape) for shape in shapes]
    parts = jnp.split(jax.random.normal(key, (sum(sizes),)), np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
