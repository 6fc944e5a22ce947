"""Whether local updates are ruining a weight: how much it grew, and how many directions it still uses."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from laureate._core import warn
from laureate.training.schedules import WeightReport
from laureate.training.sites import LinearLayer, output_axes, weights_of

__all__ = ["HebbianCollapseWarning", "measure", "participation_ratio", "renewed", "reports", "warn_of_collapse"]

# Within an epoch, and since the block became local.
GROWTH, KEPT = 2.0, 0.5


class HebbianCollapseWarning(UserWarning):
    """A local rule makes a weight explode, or turns all its rows to one direction; the message has the numbers."""


def participation_ratio(weight: Array, axis: int = 0) -> Array:
    """How many directions a weight uses: (Σ σ²)² / Σ σ⁴ of its singular values σ; 1 for rank one.

    axis: that counts the outputs; all others together are the columns.

    >>> float(participation_ratio(jnp.eye(4))), float(participation_ratio(jnp.ones((4, 3))))
    (4.0, 1.0)
    """
    matrix = jnp.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    matrix = matrix.astype(jnp.promote_types(weight.dtype, jnp.float32))
    matrix = matrix / jnp.maximum(jnp.max(jnp.abs(matrix)), jnp.finfo(matrix.dtype).tiny)  # that no square overflows
    # Σ σ² = tr G and Σ σ⁴ = ‖G‖² of G = W Wᵀ: no decomposition is needed.
    gram = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    return jnp.trace(gram) ** 2 / jnp.maximum(jnp.sum(gram**2), jnp.finfo(gram.dtype).tiny)


def measure(blocks: Sequence[Any], layers: tuple[LinearLayer, ...]) -> Array:
    """‖W‖ and the participation ratio of every weight of these blocks, a row each."""
    rows = []
    for block in blocks:
        axes = output_axes(block, layers)
        for path, weight in weights_of(block, layers).items():
            flat = weight.ravel().astype(jnp.promote_types(weight.dtype, jnp.float32))
            rows.append(jnp.stack([jnp.linalg.norm(flat), participation_ratio(weight, axes[path])]))
    return jnp.stack(rows) if rows else jnp.zeros((0, 2))


def _places(blocks: Sequence[Any], layers: tuple[LinearLayer, ...]) -> list[tuple[int, str]]:
    return [(number, path) for number, block in enumerate(blocks) for path in weights_of(block, layers)]


def _share(now: Array, old: Array) -> float:
    """As a factor; a weight of zeros that stays so has not changed."""
    return 1.0 if now == old == 0 else float(now / old)


def reports(
    blocks: Sequence[Any], boundary: int, measured: Array, reference: Array, layers: tuple[LinearLayer, ...]
) -> tuple[WeightReport, ...]:
    """Of the weights below the boundary: what they are, beside what they were."""
    return tuple(
        WeightReport(*place, float(now[0]), _share(now[0], old[0]), float(now[1]), _share(now[1], old[1]))
        for place, now, old in zip(_places(blocks, layers), measured, reference, strict=True)
        if place[0] < boundary
    )


def renewed(
    blocks: Sequence[Any],
    boundary: int,
    measured: Array,
    reference: Array,
    warned: Sequence[WeightReport],
    layers: tuple[LinearLayer, ...],
) -> Array:
    """What the next epoch is compared with: norms of now; directions of when a block became local, or was warned of."""
    known = {(report.block, report.path) for report in warned}
    anew = [place[0] >= boundary or place in known for place in _places(blocks, layers)]
    return jnp.stack([measured[:, 0], jnp.where(jnp.asarray(anew, bool), measured[:, 1], reference[:, 1])], axis=1)


def warn_of_collapse(reports: tuple[WeightReport, ...], rate: float) -> tuple[WeightReport, ...]:
    """Warn of weights that doubled within the epoch or lost half of their directions; returns those."""
    found = tuple(report for report in reports if not report.growth < GROWTH or not report.kept > KEPT)
    for report in found:
        warn(
            f"Block {report.block}, weight {report.path}: its norm grew by a factor {report.growth:.3g} within this "
            f"epoch to {report.norm:.3g}, and it uses {report.participation:.3g} directions, {report.kept:.0%} of what "
            f"it did when it became local. Make local_rate (now {rate:.3g}) ten times smaller, or use Oja's rule with "
            "normalise=None, or Frozen.",
            HebbianCollapseWarning,
        )
    return found
