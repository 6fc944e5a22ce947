"""Networks that learn the weight as well: LISTA, LISTA-CP with support selection, TiLISTA."""

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from laureate.recovery.alista import LAMBDA, PAPER_SUPPORT, counts
from laureate.recovery.dictionary import AbstractDictionary, Dense, dense_matrix
from laureate.recovery.shrinkage import SupportSchedule, select_and_shrink, soft_threshold
from laureate.recovery.solver import AbstractSolver, lipschitz, prepare
from laureate.recovery.weights import analytic_weight

__all__ = ["LISTA", "LISTACP", "TiLISTA"]

Start = Literal["dictionary", "analytic"]


class LISTA(AbstractSolver):
    """Learned ISTA (Gregor & LeCun 2010): x ← η_{θ_k}(W¹_k b + W²_k x), both matrices of every layer learned.

    It starts as ISTA with λ = 0.4: W¹ = Dᵀ/L, W² = I − DᵀD/L.

    D: dictionary [N, M]; an operator is turned into a matrix.
    num_layers: K, >= 1.
    normalise: work with unit columns; codes stay in the units of D.

    >>> x = LISTA(jnp.eye(2), num_layers=30)(jnp.array([1.0, 0.05]))  # untrained: the lasso with λ = 0.4
    >>> [round(float(v), 2) for v in x]
    [0.6, 0.0]
    """

    dictionary: AbstractDictionary
    scale: Array | None
    from_signal: Array
    from_code: Array
    theta: Array
    num_layers: int = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("from_signal", "from_code", "theta")

    def __init__(self, D: Any, num_layers: int = 16, *, normalise: bool = False):  # noqa: N803
        self.dictionary, self.scale, constant = _matrix_of("LISTA", D, num_layers, normalise)
        matrix = self.dictionary.matrix
        self.num_layers = num_layers
        self.from_signal = jnp.tile(matrix.T / constant, (num_layers, 1, 1))
        self.from_code = jnp.tile(
            jnp.eye(matrix.shape[1], dtype=matrix.dtype) - matrix.T @ matrix / constant, (num_layers, 1, 1)
        )
        self.theta = jnp.full(num_layers, LAMBDA / constant)

    @property
    def num_parameters(self) -> int:
        """K (M² + NM + 1)."""
        return self.from_signal.size + self.from_code.size + self.theta.size

    def parameters(self) -> Any:
        """W¹_k, W²_k, θ_k."""
        return self.from_signal, self.from_code, self.theta

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η_{θ_k}(W¹_k b + W²_k x)."""
        from_signal, from_code, theta = parameters
        return soft_threshold(b @ from_signal.T + x @ from_code.T, theta)


class LISTACP(AbstractSolver):
    """LISTA with coupled weights and support selection (Chen et al. 2018): x ← η_{θ_k}(x − W_kᵀ(Dx − b)).

    D: dictionary [N, M]; an operator is turned into a matrix.
    num_layers: K, >= 1.
    support: which entries pass unshrunk; None: none do.
    start: ``"dictionary"``: W_k = D/L, as its authors do; ``"analytic"``: the analytic weight.
    normalise: work with unit columns; codes stay in the units of D.

    >>> solver = LISTACP(jnp.eye(2), num_layers=30, support=None)
    >>> [round(float(v), 2) for v in solver(jnp.array([1.0, 0.05]))], solver.num_parameters
    ([0.6, 0.0], 150)
    """

    dictionary: AbstractDictionary
    scale: Array | None
    weight: Array
    theta: Array
    num_layers: int = eqx.field(static=True)
    support: SupportSchedule | None = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("weight", "theta")

    def __init__(
        self,
        D: Any,  # noqa: N803
        num_layers: int = 16,
        *,
        support: SupportSchedule | None = PAPER_SUPPORT,
        start: Start = "dictionary",
        normalise: bool = False,
    ):
        self.dictionary, self.scale, constant = _matrix_of("LISTACP", D, num_layers, normalise)
        first = _start("LISTACP", start, self.dictionary.matrix, constant)
        self.weight = jnp.tile(first, (num_layers, 1, 1))
        self.theta = jnp.full(num_layers, LAMBDA / constant)
        self.num_layers, self.support = num_layers, support

    @property
    def num_parameters(self) -> int:
        """K (NM + 1)."""
        return self.weight.size + self.theta.size

    def parameters(self) -> Any:
        """W_k, θ_k and how many entries pass unshrunk."""
        return self.weight, self.theta, jnp.asarray(counts(self.support, self.num_layers, self.dictionary.shape[1]))

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η_{θ_k}(x − W_kᵀ(Dx − b))."""
        weight, theta, count = parameters
        v = x - (self.dictionary.matvec(x) - b) @ weight
        most = int(counts(self.support, self.num_layers, self.dictionary.shape[1]).max())
        return select_and_shrink(v, theta, count, most)


class TiLISTA(AbstractSolver):
    """Tied LISTA (Liu et al. 2019): x ← η_{θ_k}(x − γ_k Wᵀ(Dx − b)), one W for all layers, learned.

    start: ``"dictionary"``: W = D, γ = 1/L; ``"analytic"``: the analytic weight, γ = 1.
    The other arguments are those of ``LISTACP``.

    >>> solver = TiLISTA(jnp.eye(2), num_layers=30, support=None)
    >>> [round(float(v), 2) for v in solver(jnp.array([1.0, 0.05]))], solver.num_parameters
    ([0.6, 0.0], 64)
    """

    dictionary: AbstractDictionary
    scale: Array | None
    weight: Array
    gamma: Array
    theta: Array
    num_layers: int = eqx.field(static=True)
    support: SupportSchedule | None = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("weight", "gamma", "theta")
    shared: ClassVar[tuple[str, ...]] = ("weight",)

    def __init__(
        self,
        D: Any,  # noqa: N803
        num_layers: int = 16,
        *,
        support: SupportSchedule | None = PAPER_SUPPORT,
        start: Start = "dictionary",
        normalise: bool = False,
    ):
        self.dictionary, self.scale, constant = _matrix_of("TiLISTA", D, num_layers, normalise)
        first = _start("TiLISTA", start, self.dictionary.matrix, constant)
        step = jnp.ones_like(constant) if start == "analytic" else 1 / constant
        self.weight = first / step
        self.gamma = jnp.full(num_layers, step)
        self.theta = jnp.full(num_layers, LAMBDA / constant)
        self.num_layers, self.support = num_layers, support

    @property
    def num_parameters(self) -> int:
        """NM + 2K."""
        return self.weight.size + self.gamma.size + self.theta.size

    def parameters(self) -> Any:
        """γ_k, θ_k and how many entries pass unshrunk."""
        return self.gamma, self.theta, jnp.asarray(counts(self.support, self.num_layers, self.dictionary.shape[1]))

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η_{θ_k}(x − γ_k Wᵀ(Dx − b))."""
        gamma, theta, count = parameters
        v = x - gamma * ((self.dictionary.matvec(x) - b) @ self.weight)
        most = int(counts(self.support, self.num_layers, self.dictionary.shape[1]).max())
        return select_and_shrink(v, theta, count, most)


def _matrix_of(owner: str, D: Any, num_layers: int, normalise: bool) -> tuple[Dense, Array | None, Array]:  # noqa: N803
    dictionary, scale = prepare(owner, D, num_layers, normalise)
    matrix = Dense(dense_matrix(dictionary))
    return matrix, scale, lipschitz(matrix)


def _start(owner: str, start: str, matrix: Array, constant: Array) -> Array:
    if start not in ("dictionary", "analytic"):
        raise ValueError(f"{owner}.start must be 'dictionary' or 'analytic'; got {start!r}.")
    return matrix / constant if start == "dictionary" else analytic_weight(matrix)
