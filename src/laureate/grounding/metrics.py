"""How well masks are found: counts that add up over batches, and the threshold chosen on one split for another."""

import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from laureate._core import require

__all__ = ["LEVELS", "THRESHOLDS", "MaskCounts", "choose_threshold", "count_masks", "overlaps"]

# Of the probability from which a pixel belongs to the mask; the authors also try 0, at which every pixel does.
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
# Of the IoU from which an example counts as found.
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)


class MaskCounts(NamedTuple):
    """What the scores are made of, for every threshold; add up those of several batches with `merge`.

    intersections, unions: Σ of pixels over the examples, [thresholds]. ious: Σ of each example's IoU, [thresholds].
    found: examples whose IoU reaches each of `LEVELS`, [thresholds, levels]. empty: examples whose mask and prediction
    are both empty, whose IoU is 1 by definition, [thresholds]. examples: how many.
    """

    intersections: Any
    unions: Any
    ious: Any
    found: Any
    empty: Any
    examples: Any

    def merge(self, other: "MaskCounts") -> "MaskCounts":
        """Those of both batches."""
        return MaskCounts(*(one + two for one, two in zip(self, other, strict=True)))

    def cumulative_iou(self) -> Any:
        """ΣI / ΣU for every threshold: large objects decide; 1 where nothing was to be found and nothing was."""
        return (self.intersections + (self.unions == 0)) / (self.unions + (self.unions == 0))

    def mean_iou(self) -> Any:
        """The mean over the examples of I / U for every threshold; 1 where both masks are empty."""
        return self.ious / self.examples

    def precision(self) -> Any:
        """The share of examples whose IoU reaches 0.5, 0.6, …, 0.9, for every threshold."""
        return self.found / self.examples


def overlaps(
    probabilities: Float[Array | np.ndarray, "n h w"],
    masks: Bool[Array | np.ndarray, "n h w"],
    valid: Bool[Array | np.ndarray, "n h w"] | None = None,
    thresholds: tuple[float, ...] = THRESHOLDS,
) -> tuple[Array, Array]:
    """Pixels in both masks and in either, [n, thresholds]; found is a pixel whose probability is above the threshold.

    valid: False for padding, which counts nowhere. For use inside jit.

    >>> import numpy as np
    >>> both, either = overlaps(np.array([[[0.9, 0.6, 0.1]]]), np.array([[[True, False, False]]]), None, (0.5, 0.7))
    >>> both.tolist(), either.tolist()
    ([[1, 1]], [[2, 1]])
    """
    require("overlaps", "masks", f"of shape {probabilities.shape}", masks.shape, lambda s: s == probabilities.shape)
    chance = jnp.asarray(probabilities)
    if not jnp.issubdtype(chance.dtype, jnp.floating):  # a mask that is cut already: its thresholds would be whole, too
        chance = chance.astype(jnp.float32)
    inside = jnp.ones(masks.shape, bool) if valid is None else jnp.asarray(valid, bool)
    target = jnp.asarray(masks, bool) & inside

    def at(threshold: Array) -> tuple[Array, Array]:
        found = (chance > threshold) & inside
        return jnp.sum(found & target, axis=(1, 2)), jnp.sum(found | target, axis=(1, 2))

    return jax.vmap(at, out_axes=1)(jnp.asarray(thresholds, chance.dtype))


def count_masks(intersections: Any, unions: Any) -> MaskCounts:
    """The counts of a batch from its `overlaps`, by NumPy.

    >>> counts = count_masks([[3], [0]], [[4], [0]])
    >>> float(counts.mean_iou()[0]), float(counts.cumulative_iou()[0]), int(counts.empty[0])
    (0.875, 0.75, 1)
    """
    both, either = np.asarray(intersections), np.asarray(unions)
    rule = "[examples, thresholds], as unions"
    require("count_masks", "intersections", rule, both.shape, lambda s: len(s) == 2 and s == either.shape)
    nothing = either == 0
    ious = np.where(nothing, 1.0, both / np.maximum(either, 1))
    found = (ious[..., None] >= np.array(LEVELS) - 1e-9).sum(0)
    return MaskCounts(both.sum(0), either.sum(0), ious.sum(0), found, nothing.sum(0), len(both))


def choose_threshold(counts: MaskCounts, split: str, thresholds: tuple[float, ...] = THRESHOLDS) -> tuple[int, float]:
    """The place and value of the threshold with the best cumulative IoU; of equals the lowest.

    split: the name of the examples that were counted. Those that are reported must not choose: "test" is refused.

    >>> choose_threshold(count_masks([[3, 4, 2]], [[6, 5, 5]]), "validation", (0.3, 0.5, 0.7))
    (1, 0.5)
    """
    remedy = "Choose on validation examples, and report those of the test at that threshold."
    require("choose_threshold", "split", "another than the one reported", split, _is_another, remedy)
    require(
        "choose_threshold", "thresholds", f"{len(counts.unions)}", thresholds, lambda t: len(t) == len(counts.unions)
    )
    place = int(np.argmax(np.asarray(counts.cumulative_iou())))
    return place, thresholds[place]


def _is_another(split: str) -> bool:
    """Whether no word of a split's name begins with "test": "testA" and "my_test" are refused, "latest" is not."""
    return re.search(r"(?<![a-z])test", split.lower()) is None
