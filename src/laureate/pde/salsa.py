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

    ridge, damping, tolerance, max_sweeps, patience: as in ``ALS``. shrink: > 1.
    """

    ridge: Array | float
    damping: Array | float
    tolerance: Array | float
    shrink: Array | float
    max_sweeps: int = eqx.field(static=True)
    patience: int = eqx.field(static=True)

    def __init__(
        self,
        ridge: float = 1e-10,
        damping: float = 1.0,
        tolerance: float = 1e-4,
        shrink: float = 1.05,
        max_sweeps: int = 100,
        patience: int = 4,
    ):
        require("SALSA", "ridge", ">= 0", ridge, lambda w: w >= 0)
        require("SALSA", "damping", ">= 0", damping, lambda w: w >= 0)
        require("SALSA", "tolerance", "> 0", tolerance, lambda w: w > 0)
        require("SALSA", "shrink", "> 1", shrink, lambda w: w > 1)
        require("SALSA", "max_sweeps", ">= 1", max_sweeps, lambda n: n >= 1)
        require("SALSA", "patience", ">= 3", patience, lambda n: n >= 3, "A rank is added after two quiet sweeps.")
        self.ridge, self.damping, self.tolerance, self.shrink = ridge, damping, tolerance, shrink
        self.max_sweeps, self.patience = max_sweeps, patience

    def fit(
        self, start: FunctionalTensorTrain, samples: Samples, test: Samples | None = None
    ) -> tuple[FunctionalTensorTrain, Float[Array, " e"], FitInfo]:
        """The fitted train, the weights of the global functions, and how it went."""
        rules = Rules(
            self.ridge, self.damping, self.tolerance, self.max_sweeps, self.patience, adaptive=True, shrink=self.shrink
        )
        cores, extras, info = descend(start.cores, samples, test, rules)
        return FunctionalTensorTrain(cores, start.basis), extras, info
