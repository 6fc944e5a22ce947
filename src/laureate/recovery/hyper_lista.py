"""HyperLISTA: three numbers for the whole network; step, threshold, momentum and support follow from the residual."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from laureate._core import require
from laureate.recovery.dictionary import AbstractDictionary, Dense, dense_matrix
from laureate.recovery.shrinkage import select_and_shrink
from laureate.recovery.solver import AbstractSolver, prepare
from laureate.recovery.weights import Weight, analytic_weight, as_weight, coherence

__all__ = ["HyperLISTA"]


class HyperLISTA(AbstractSolver):
    """ALISTA whose step, threshold and support adapt to every signal; three numbers are learned (Chen et al. 2021).

    x ← η^{p}_{θ}(x − Wᵀ(Dx − b) + β (x − x⁻)) with, for every signal,
    θ = c₁ μ ‖D⁺(Dx − b)‖₁,   β = c₂ μ ‖x‖₀,   p = c₃ min(log(‖D⁺b‖₁ / ‖D⁺(Dx − b)‖₁), M).

    D: dictionary [N, M]; an operator is turned into a matrix.
    W: the weight [N, M]; the analytic one without. The original computes a symmetric one, W = (GᵀG)D, by a search
        without closed form; pass it here to use it.
    num_layers: K, >= 1.
    c: (c₁, c₂, c₃), >= 0, all that is learned; p counts entries. c₃ acts through a choice and has no gradient: search
        it.
    max_count: at most so many entries pass unshrunk, all without a number.
    normalise: work with unit columns; codes stay in the units of D.

    >>> D = jnp.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> solver = HyperLISTA(D, num_layers=4)
    >>> solver(jnp.ones((3, 2))).shape, solver.num_parameters
    ((3, 3), 3)
    """

    dictionary: AbstractDictionary
    weight: Weight
    inverse: Array
    mu: Array
    scale: Array | None
    c: Array
    num_layers: int = eqx.field(static=True)
    max_count: int = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("c",)
    shared: ClassVar[tuple[str, ...]] = ("c",)
    products: ClassVar[tuple[int, int]] = (3, 1)  # D, D⁺ and W of the residual; D⁺ of the signal

    def __init__(
        self,
        D: Any,  # noqa: N803
        W: Any = None,  # noqa: N803
        num_layers: int = 16,
        *,
        c: tuple[float, float, float] = (0.5, 0.01, 1.0),
        max_count: int | None = None,
        normalise: bool = False,
    ):
        require("HyperLISTA", "c", "three numbers >= 0", c, lambda c: len(c) == 3 and min(c) >= 0)
        dictionary, self.scale = prepare("HyperLISTA", D, num_layers, normalise)
        matrix = dense_matrix(dictionary)
        self.dictionary = Dense(matrix)
        self.weight = as_weight(analytic_weight(matrix) if W is None else W, dictionary.shape)
        self.inverse = jnp.linalg.pinv(matrix)
        self.mu = coherence(matrix, self.weight.matrix)
        self.c = jnp.asarray(c, matrix.dtype)
        self.num_layers, self.max_count = num_layers, dictionary.shape[1] if max_count is None else max_count
        require(
            "HyperLISTA",
            "max_count",
            f"within 0 and {dictionary.shape[1]}",
            self.max_count,
            lambda n: 0 <= n <= matrix.shape[1],
        )

    @property
    def num_parameters(self) -> int:
        """Three."""
        return self.c.size

    def parameters(self) -> Any:
        """Nothing that differs between layers."""
        return jnp.arange(self.num_layers)

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η^{p}_{θ}(x − Wᵀ(Dx − b) + β (x − x⁻))."""
        residual = self.dictionary.matvec(x) - b
        error = jnp.sum(jnp.abs(residual @ self.inverse.T), axis=-1, keepdims=True)  # ≈ ‖x − x*‖₁
        whole = jnp.sum(jnp.abs(b @ self.inverse.T), axis=-1)
        theta = self.c[0] * self.mu * error
        beta = self.c[1] * self.mu * jnp.sum(x != 0, axis=-1, keepdims=True)
        tiny = jnp.finfo(x.dtype).tiny
        ratio = jnp.log(jnp.maximum(whole, tiny) / jnp.maximum(error[..., 0], tiny))
        count = jnp.clip(self.c[2] * jnp.minimum(ratio, x.shape[-1]), 0, self.max_count).astype(jnp.int32)
        v = x - self.weight.rmatvec(residual) + beta * (x - previous)
        return select_and_shrink(v, theta, count, self.max_count)
