"""See collapse coming: what the outputs of a network still span, and whether a predictor is aligned with them."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from laureate._core import require
from laureate.representation.siamese import spread

__all__ = ["CollapseReport", "alignment", "collapse_report", "effective_rank"]


class CollapseReport(NamedTuple):
    """eigenvalues: of E[z zᵀ], uncentred, largest first. effective_rank: exp of the entropy of their shares, 1 to D.

    spread: √D × standard deviation of the normalised outputs, 1 in health and 0 in collapse.
    collapsed: the spread is below ``threshold``, or more than 1 − ``threshold`` of E‖z‖² lies in one direction (D > 1).
    """

    eigenvalues: Float[Array, " d"]
    effective_rank: Float[Array, ""]
    spread: Float[Array, ""]
    collapsed: Bool[Array, ""]


def collapse_report(z: Float[Array, "n d"], threshold: Any = 0.1) -> CollapseReport:
    """What the outputs z, one a row, still tell apart.

    Nothing is centred before the eigenvalues are taken: centring hides the complete collapse, in which all outputs are
    one vector and a little noise.

    threshold: below which spread, or with which share of E‖z‖² left outside the first direction, it counts as collapse;
        in (0, 1).

    >>> import jax, jax.numpy as jnp
    >>> z = jax.random.normal(jax.random.key(0), (1000, 8))
    >>> healthy, dead = collapse_report(z), collapse_report(jnp.ones((1000, 8)) + 1e-6 * z)
    >>> bool(healthy.collapsed), bool(dead.collapsed), round(float(dead.effective_rank), 2)
    (False, True, 1.0)
    """
    require("collapse_report", "threshold", "in (0, 1)", threshold, lambda t: 0 < t < 1)
    if z.ndim != 2:
        raise ValueError(f"collapse_report: z must be [examples, D]; got shape {list(z.shape)}.")
    eigenvalues = jnp.maximum(jnp.linalg.eigvalsh(z.T @ z / z.shape[0])[::-1], 0.0)
    own = spread(z)
    healthy = own >= threshold  # NaN is no health
    if z.shape[1] > 1:
        healthy = healthy & (jnp.sum(eigenvalues[1:]) >= threshold * jnp.sum(eigenvalues))
    return CollapseReport(eigenvalues, effective_rank(eigenvalues), own, ~healthy)


def effective_rank(eigenvalues: Float[Array, " d"]) -> Float[Array, ""]:
    """exp(−Σ q log q), q the eigenvalues' shares (Roy and Vetterli 2007); 1 where all are zero.

    >>> import jax.numpy as jnp
    >>> round(float(effective_rank(jnp.array([2.0, 2.0, 0.0]))), 6)
    2.0
    """
    total = jnp.sum(eigenvalues)
    share = eigenvalues / jnp.where(total > 0, total, jnp.ones_like(total))
    return jnp.exp(-jnp.sum(jnp.where(share > 0, share * jnp.log(jnp.where(share > 0, share, 1.0)), 0.0)))


def alignment(correlation: Float[Array, "d d"], predictor: Float[Array, "d d"]) -> Float[Array, ""]:
    """‖F W_p − W_p F‖/(2 ‖F‖ ‖W_p‖): 0 where predictor and correlation have the same eigenspaces, at most 1.

    >>> import jax.numpy as jnp
    >>> f = jnp.diag(jnp.array([2.0, 1.0]))
    >>> float(alignment(f, f @ f)), bool(alignment(f, jnp.array([[0.0, 1.0], [1.0, 0.0]])) > 0.1)
    (0.0, True)
    """
    size = 2 * jnp.linalg.norm(correlation) * jnp.linalg.norm(predictor)
    apart = jnp.linalg.norm(correlation @ predictor - predictor @ correlation)
    return apart / jnp.where(size > 0, size, jnp.ones_like(size))
