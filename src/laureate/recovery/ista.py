"""ISTA and FISTA, the classical solvers of ½‖Dx − b‖² + λ‖x‖₁ that learned ones are measured against."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.recovery.dictionary import AbstractDictionary
from laureate.recovery.shrinkage import soft_threshold
from laureate.recovery.solver import AbstractSolver, lipschitz, prepare

__all__ = ["FISTA", "ISTA"]


class ISTA(AbstractSolver):
    """Proximal gradient descent on the lasso: x ← η_{λ/L}(x − Dᵀ(Dx − b)/L) (Daubechies et al. 2004).

    D: dictionary [N, M] or an operator with ``matvec`` and ``rmatvec``.
    num_layers: iterations, >= 1.
    penalty: λ, >= 0.
    lipschitz_constant: L, > 0; 1.001 ‖D‖² unless given.
    normalise: work with unit columns; codes stay in the units of D.

    >>> x = ISTA(jnp.eye(2), num_layers=200, penalty=0.1)(jnp.array([1.0, 0.05]))
    >>> [round(float(v), 4) for v in x]
    [0.9, 0.0]
    """

    dictionary: AbstractDictionary
    scale: Array | None
    penalty: Array
    step: Array
    num_layers: int = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("penalty",)
    shared: ClassVar[tuple[str, ...]] = ("penalty",)

    def __init__(
        self,
        D: Any,  # noqa: N803
        num_layers: int = 100,
        *,
        penalty: float | Array = 0.1,
        lipschitz_constant: float | Array | None = None,
        normalise: bool = False,
    ):
        self.dictionary, self.scale, self.penalty, self.step = _lasso(
            "ISTA", D, num_layers, penalty, lipschitz_constant, normalise
        )
        self.num_layers = num_layers

    def parameters(self) -> Any:
        """Nothing that differs between iterations."""
        return jnp.arange(self.num_layers)

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η_{λ/L}(x − Dᵀ(Dx − b)/L)."""
        residual = self.dictionary.matvec(x) - b
        return soft_threshold(x - self.step * self.dictionary.rmatvec(residual), self.step * self.penalty)


class FISTA(AbstractSolver):
    """ISTA with Nesterov's momentum (Beck & Teboulle 2009): t ← (1 + √(1 + 4t²))/2, y = x + (t_k − 1)/t_{k+1} (x − x⁻).

    The arguments are those of ``ISTA``.

    >>> x = FISTA(jnp.eye(2), num_layers=50, penalty=0.1)(jnp.array([1.0, 0.05]))
    >>> [round(float(v), 4) for v in x]
    [0.9, 0.0]
    """

    dictionary: AbstractDictionary
    scale: Array | None
    penalty: Array
    step: Array
    num_layers: int = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("penalty",)
    shared: ClassVar[tuple[str, ...]] = ("penalty",)

    def __init__(
        self,
        D: Any,  # noqa: N803
        num_layers: int = 100,
        *,
        penalty: float | Array = 0.1,
        lipschitz_constant: float | Array | None = None,
        normalise: bool = False,
    ):
        self.dictionary, self.scale, self.penalty, self.step = _lasso(
            "FISTA", D, num_layers, penalty, lipschitz_constant, normalise
        )
        self.num_layers = num_layers

    def parameters(self) -> Any:
        """The momentum of every iteration, (t_k − 1)/t_{k+1} with t_1 = 1; the first looks at nothing before it."""
        t = [1.0]
        for _ in range(self.num_layers):
            t.append((1 + np.sqrt(1 + 4 * t[-1] ** 2)) / 2)
        momentum = [0.0] + [(t[k] - 1) / t[k + 1] for k in range(self.num_layers - 1)]
        return jnp.asarray(momentum, self.step.dtype)

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """y = x + β (x − x⁻), x ← η_{λ/L}(y − Dᵀ(Dy − b)/L)."""
        y = x + parameters * (x - previous)
        residual = self.dictionary.matvec(y) - b
        return soft_threshold(y - self.step * self.dictionary.rmatvec(residual), self.step * self.penalty)


def _lasso(owner: str, D: Any, num_layers: int, penalty: Any, constant: Any, normalise: bool) -> tuple:  # noqa: N803
    require(owner, "penalty", ">= 0", penalty, lambda value: np.all(np.asarray(value) >= 0))
    if constant is not None:
        require(owner, "lipschitz_constant", "> 0", constant, lambda value: value > 0)
    dictionary, scale = prepare(owner, D, num_layers, normalise)
    step = 1 / (lipschitz(dictionary) if constant is None else jnp.asarray(constant))
    return dictionary, scale, jnp.asarray(penalty, step.dtype), step
