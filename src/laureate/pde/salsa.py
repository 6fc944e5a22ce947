"""Stable alternating least squares: the regression that finds the ranks itself."""

import equinox as eqx
from jaxtyping import Array, Float

from laureate._core import require
from laureate.pde.sweep import FitInfo, Rules, Samples, descend
from laureate.pde.tensor_train import FunctionalTensorTrain

__all__ = ["SALSA"]


class SALSA(eqx.Module):
    """Rank-adaptive alternating least squares: each local problem is damped by the singular values of its two bonds.

    min |B w − y|² + ω² (|Γ w|² + |Θ w|²),  Γ, Θ = diag(1 / max(s_min, σ)) of the left and right bond,

    with ω the residual (shrinking at least by ``shrink`` a sweep) and s_min = 0.2 min(ω, relative decrease). A slot
    whose σ is below s_min is a scout; when a bond has none and two sweeps changed no rank, it is given one. Ranks are
    padded to the start's rank, which is thus the largest allowed. As a fit stalls, s_min goes to zero and every slot
    comes into use: with noisy targets hand over test samples, and the best train on those is kept. Reference: Grasedyck
    and Krämer 2019; Richter, Sallandt and Nüsken 2021, section 3.2.

    ridge, damping, tolerance, max_sweeps: as for ``ALS``.
    shrink: by how much ω shrinks a sweep at least, > 1.
    patience: stalls in a row that end the fit, >= 3.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.pde import FunctionalTensorTrain, Polynomials
    >>> with jax.enable_x64(True):
    ...     x = jax.random.uniform(jax.random.key(0), (200, 4), minval=-1.0)
    ...     start = FunctionalTensorTrain.start(jax.random.key(1), 4, Polynomials(-1.0, 1.0, degree=2), rank=3)
    ...     train, info = start.fit(x, jnp.sum(x**2, axis=1), SALSA())
    ...     bool(info.residual < 1e-3)
    True
    """

    ridge: Array | float = eqx.field(default=1e-10)
    damping: Array | float = eqx.field(default=1.0)
    tolerance: Array | float = eqx.field(default=1e-4)
    shrink: Array | float = eqx.field(default=1.05)
    max_sweeps: int = eqx.field(static=True, default=100)
    patience: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        require("SALSA", "ridge", ">= 0", self.ridge, lambda w: w >= 0)
        require("SALSA", "damping", ">= 0", self.damping, lambda w: w >= 0)
        require("SALSA", "tolerance", "> 0", self.tolerance, lambda w: w > 0)
        require("SALSA", "shrink", "> 1", self.shrink, lambda w: w > 1)
        require("SALSA", "max_sweeps", ">= 1", self.max_sweeps, lambda n: n >= 1)
        remedy = "A rank is added after two quiet sweeps."
        require("SALSA", "patience", ">= 3", self.patience, lambda n: n >= 3, remedy)

    def fit(
        self, start: FunctionalTensorTrain, samples: Samples, test: Samples | None = None
    ) -> tuple[FunctionalTensorTrain, Float[Array, " e"], FitInfo]:
        """The fitted train, the weights of the global functions, and how it went."""
        rules = Rules(
            self.ridge, self.damping, self.tolerance, self.max_sweeps, self.patience, adaptive=True, shrink=self.shrink
        )
        cores, extras, info = descend(start.cores, samples, test, rules)
        return FunctionalTensorTrain(cores, start.basis), extras, info
