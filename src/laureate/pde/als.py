"""Alternating least squares for functional tensor trains of fixed rank."""

import equinox as eqx
from jaxtyping import Array, Float

from laureate._core import require
from laureate.pde.sweep import FitInfo, Rules, Samples, descend
from laureate.pde.tensor_train import FunctionalTensorTrain

__all__ = ["ALS"]


class ALS(eqx.Module):
    """Alternating least squares: min_V mean_k |V(X_k) − y_k|² over trains of fixed rank, one core after another.

    The plain regression: fast, and enough where the rank is known and samples abound. Where the rank is a guess, take
    ``SALSA``. Reference: Holtz, Rohwedder and Schneider 2012; Richter, Sallandt and Nüsken 2021, section 3.2.

    ridge: >= 0, added to each local problem relative to its diagonal, against collinear columns.
    damping: >= 0; times the residual it is the weight of |w|² against |B w − y|²: where the samples hardly move, the
        coefficients they do not determine are kept small. Without it the implicit scheme breaks down near t = 0.
    tolerance: > 0; a sweep that lowers the residual by a smaller share counts as a stall.
    max_sweeps: sweeps (there and back) at most, >= 1.
    patience: stalls in a row that end the fit, >= 1.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.pde import FunctionalTensorTrain, Polynomials
    >>> with jax.enable_x64(True):
    ...     x = jax.random.uniform(jax.random.key(0), (200, 4), minval=-1.0)
    ...     start = FunctionalTensorTrain.start(jax.random.key(1), 4, Polynomials(-1.0, 1.0, degree=2), rank=2)
    ...     train, info = start.fit(x, jnp.sum(x**2, axis=1), ALS())
    ...     bool(info.residual < 1e-6)
    True
    """

    ridge: Array | float = eqx.field(default=1e-10)
    damping: Array | float = eqx.field(default=1.0)
    tolerance: Array | float = eqx.field(default=1e-4)
    max_sweeps: int = eqx.field(static=True, default=50)
    patience: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require("ALS", "ridge", ">= 0", self.ridge, lambda w: w >= 0)
        require("ALS", "damping", ">= 0", self.damping, lambda w: w >= 0)
        require("ALS", "tolerance", "> 0", self.tolerance, lambda w: w > 0)
        require("ALS", "max_sweeps", ">= 1", self.max_sweeps, lambda n: n >= 1)
        require("ALS", "patience", ">= 1", self.patience, lambda n: n >= 1)

    def fit(
        self, start: FunctionalTensorTrain, samples: Samples, test: Samples | None = None
    ) -> tuple[FunctionalTensorTrain, Float[Array, " e"], FitInfo]:
        """The fitted train, the weights of the global functions, and how it went."""
        rules = Rules(self.ridge, self.damping, self.tolerance, self.max_sweeps, self.patience, adaptive=False)
        cores, extras, info = descend(start.cores, samples, test, rules)
        return FunctionalTensorTrain(cores, start.basis), extras, info
