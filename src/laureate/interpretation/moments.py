"""Second moments of the units of several models on the same tokens, in memory that does not grow with the tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from laureate._core import Status, require

__all__ = ["Moments", "MomentsInfo", "MomentsState", "RunningMoments"]


class MomentsState(NamedTuple):
    """What was seen so far.

    count: tokens. means: of each model's units. products: Σ (x − mean)(y − mean)ᵀ of the models a ≤ b, row by row.
    """

    count: Int[Array, ""]  # pyright: ignore[reportIncompatibleMethodOverride]
    means: tuple[Float[Array, "d"], ...]
    products: tuple[Float[Array, "d e"], ...]


class MomentsInfo(NamedTuple):
    """How an update ended.

    cost: tokens that counted. status: DIVERGED where one of them was not finite.
    """

    cost: Int[Array, ""]
    status: Int[Array, ""]


class Moments(NamedTuple):
    """Means, covariances and correlations of the units of several models; what rankings are made from.

    count: tokens. means: of each model's units. products: Σ (x − mean)(y − mean)ᵀ of the models a ≤ b, row by row.
    """

    count: Int[Array, ""]  # pyright: ignore[reportIncompatibleMethodOverride]
    means: tuple[Float[Array, "d"], ...]
    products: tuple[Float[Array, "d e"], ...]

    @property
    def num_models(self) -> int:
        """How many models were compared."""
        return len(self.means)

    def subset(self, models: Sequence[int]) -> "Moments":
        """Those of some models, in the order given."""
        known = lambda chosen: all(0 <= model < self.num_models for model in chosen)  # noqa: E731
        require("Moments", "models", f"in 0..{self.num_models - 1}", tuple(models), known)
        require("Moments", "models", "each once", tuple(models), lambda chosen: len(set(chosen)) == len(chosen) > 0)
        pairs = [(a, b) for place, a in enumerate(models) for b in models[place:]]
        products = tuple(self._product(a, b) for a, b in pairs)
        return Moments(self.count, tuple(self.means[model] for model in models), products)

    def covariance(self, first: int, second: int) -> Float[Array, "d e"]:
        """Cov(x_i of model ``first``, x_j of model ``second``), divided by the number of tokens."""
        return self._product(first, second) / jnp.maximum(self.count, 1)

    def _product(self, first: int, second: int) -> Float[Array, "d e"]:
        product = self.products[place_of(min(first, second), max(first, second), self.num_models)]
        return product if first <= second else product.T

    def deviation(self, model: int) -> Float[Array, "d"]:
        """Each unit's standard deviation; 0 where it is constant but for rounding."""
        variance = jnp.diagonal(self.covariance(model, model))
        # A mean of equal numbers is off by a few units of the last digit, and so is the deviation from it.
        rounding = 16 * jnp.finfo(variance.dtype).eps * jnp.abs(self.means[model])
        deviation = jnp.sqrt(jnp.maximum(variance, 0.0))
        return jnp.where(deviation > rounding, deviation, jnp.where(jnp.isnan(deviation), deviation, 0.0))

    def correlation(self, first: int, second: int) -> Float[Array, "d e"]:
        """Pearson's ρ between the units of two models; 0 for a unit that is constant."""
        left, right = self.deviation(first), self.deviation(second)
        scale = left[:, None] * right
        found = self.covariance(first, second) / jnp.where(scale == 0, 1.0, scale)
        return jnp.where(scale == 0, 0.0, jnp.clip(found, -1.0, 1.0))


class RunningMoments(eqx.Module):
    """Correlations between the units of several models, chunk by chunk, for those whose tokens do not fit in memory.

    With n tokens before and k in a chunk, whose means differ by δ (Chan, Golub & LeVeque 1983)::

        mean ← mean + δ k/(n + k)
        S ← S + Σ_chunk (x − mean_chunk)(y − mean_chunk)ᵀ + δ_x δ_yᵀ n k/(n + k)

    so that the deviations are small before they are squared, which sums of squares are not. States of several machines
    are merged by the same formula. The tokens must be the same, in the same order, for all models.

    sizes: units of each model.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.normal(size=(100, 3)), rng.normal(size=(100, 2))
    >>> stats = RunningMoments((3, 2))
    >>> state = stats.init()
    >>> for rows in (slice(0, 60), slice(60, 100)):
    ...     state, info = stats.update(state, (first[rows], second[rows]))
    >>> whole = np.corrcoef(first.T, second.T)[:3, 3:]
    >>> bool(np.allclose(stats.finish(state).correlation(0, 1), whole, atol=1e-5))
    True
    """

    sizes: tuple[int, ...] = eqx.field(static=True, converter=tuple)

    def __check_init__(self):
        rule = "at least one size, all >= 1"
        require("RunningMoments", "sizes", rule, self.sizes, lambda sizes: len(sizes) > 0 and min(sizes) >= 1)

    def init(self) -> MomentsState:
        """No token seen."""
        means = tuple(jnp.zeros(size) for size in self.sizes)
        pairs = [(a, b) for a in range(len(self.sizes)) for b in range(a, len(self.sizes))]
        products = tuple(jnp.zeros((self.sizes[a], self.sizes[b])) for a, b in pairs)
        return MomentsState(jnp.asarray(0, jnp.int32), means, products)

    def update(
        self,
        state: MomentsState,
        activations: Sequence[Float[Array, "n d"]],
        mask: Bool[Array, "n"] | None = None,
    ) -> tuple[MomentsState, MomentsInfo]:
        """Take in a chunk.

        activations: one array ``[tokens, units]`` a model. mask: False for tokens that do not count, as padding.
        """
        values = self._checked(state, activations)
        num_tokens = len(values[0])
        shown = jnp.ones(num_tokens, bool) if mask is None else jnp.asarray(mask, bool)
        rule = f"one entry a token, [{num_tokens}]"
        require("RunningMoments", "mask", rule, shown.shape, lambda shape: shape == (num_tokens,))
        count = jnp.sum(shown, dtype=jnp.int32)
        divisor = jnp.maximum(count, 1)
        if mask is not None:  # what is masked may be anything, also nan
            values = [jnp.where(shown[:, None], x, 0.0) for x in values]
        means = tuple(jnp.sum(x, axis=0) / divisor for x in values)
        centred = [x - mean for x, mean in zip(values, means, strict=True)]
        if mask is not None:
            centred = [jnp.where(shown[:, None], x, 0.0) for x in centred]
        products = tuple(centred[a].T @ centred[b] for a in range(len(centred)) for b in range(a, len(centred)))
        chunk = MomentsState(count, means, products)
        # A sum is finite if all that it adds up is, but for overflow, which is a failure as well.
        fine = jnp.all(jnp.stack([jnp.all(jnp.isfinite(mean)) for mean in means]))
        return self.merge(state, chunk), MomentsInfo(count, jnp.where(fine, Status.OK, Status.DIVERGED))

    def merge(self, first: MomentsState, second: MomentsState) -> MomentsState:
        """What both have seen; the order does not matter but for rounding."""
        count = first.count + second.count
        dtype = first.means[0].dtype
        share = second.count.astype(dtype) / jnp.maximum(count, 1).astype(dtype)
        weight = first.count.astype(dtype) * share  # n k / (n + k)
        shifts = [b - a for a, b in zip(first.means, second.means, strict=True)]
        means = tuple(a + shift * share for a, shift in zip(first.means, shifts, strict=True))
        pairs = [(a, b) for a in range(len(shifts)) for b in range(a, len(shifts))]
        products = tuple(
            one + two + weight * shifts[a][:, None] * shifts[b]
            for (a, b), one, two in zip(pairs, first.products, second.products, strict=True)
        )
        return MomentsState(count, means, products)

    def finish(self, state: MomentsState) -> Moments:
        """What rankings are made from."""
        return Moments(*state)

    def _checked(self, state: MomentsState, activations: Sequence[Float[Array, "n d"]]) -> list[Array]:
        values = [jnp.asarray(x) for x in activations]
        shapes = [x.shape for x in values]
        rule = f"{len(self.sizes)} arrays [tokens, units] with {self.sizes} units and equally many tokens"
        fine = lambda shapes: (  # noqa: E731
            len(shapes) == len(self.sizes)
            and all(len(shape) == 2 for shape in shapes)
            and tuple(shape[1] for shape in shapes) == self.sizes
            and len({shape[0] for shape in shapes}) == 1
        )
        require("RunningMoments", "activations", rule, shapes, fine, "Flatten sentences with flatten_tokens.")
        return [x.astype(state.means[0].dtype) for x in values]


def at_least_single(x: Array) -> jnp.dtype:
    """The type to sum in: single precision at least, whatever the activations come in."""
    return jnp.promote_types(x.dtype, jnp.float32)


def place_of(first: int, second: int, num_models: int) -> int:
    """Where the pair first ≤ second stands among the pairs of models, row by row.

    >>> [place_of(a, b, 3) for a in range(3) for b in range(a, 3)]
    [0, 1, 2, 3, 4, 5]
    """
    return first * num_models - first * (first - 1) // 2 + second - first
