"""ALISTA: unrolled thresholding with an analytic weight; only a step size and a threshold a layer are learned."""

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.recovery.dictionary import AbstractDictionary, as_dictionary
from laureate.recovery.shrinkage import SupportSchedule, select_and_shrink
from laureate.recovery.solver import AbstractSolver, lipschitz, prepare, spectral_norm
from laureate.recovery.weights import analytic_weight, as_weight

__all__ = ["ALISTA"]

LAMBDA = 0.4  # θ starts at λ/L, as in the authors' code
PAPER_SUPPORT = SupportSchedule()


class ALISTA(AbstractSolver):
    """Analytic-weight LISTA (Liu et al. 2019): x ← η_{θ_k}(x − γ_k W̃ᵀ(Dx − b)).

    D: dictionary [N, M] or an operator with ``matvec`` and ``rmatvec``.
    W: the weight [N, M]; the analytic one without.
    num_layers: K, >= 1.
    support: which entries pass unshrunk; None: none do.
    threshold: one θ_k for all entries (``"scalar"``), or one for each (``"coordinate"``).
    gamma, theta: to start from; 1 and 0.4/L with the analytic weight. With another one γ starts at 1/‖WᵀD‖: with W = D
        and γ = 1 it would diverge.
    normalise: work with unit columns; codes stay in the units of D.

    >>> import jax
    >>> D = jax.random.normal(jax.random.key(0), (10, 20))
    >>> solver = ALISTA(D, num_layers=4, normalise=True)
    >>> solver(jnp.ones((3, 10))).shape, solver.num_parameters
    ((3, 20), 8)
    """

    dictionary: AbstractDictionary
    weight: Any
    scale: Array | None
    gamma: Array
    theta: Array
    num_layers: int = eqx.field(static=True)
    support: SupportSchedule | None = eqx.field(static=True)
    trainable: ClassVar[tuple[str, ...]] = ("gamma", "theta")

    def __init__(
        self,
        D: Any,  # noqa: N803
        W: Any = None,  # noqa: N803
        num_layers: int = 16,
        *,
        support: SupportSchedule | None = PAPER_SUPPORT,
        threshold: Literal["scalar", "coordinate"] = "scalar",
        gamma: Any = None,
        theta: Any = None,
        normalise: bool = False,
    ):
        self.dictionary, self.scale = prepare("ALISTA", D, num_layers, normalise)
        if threshold not in ("scalar", "coordinate"):
            raise ValueError(f"ALISTA.threshold must be 'scalar' or 'coordinate'; got {threshold!r}.")
        self.weight = _weight_of(self.dictionary, W)
        self.num_layers, self.support = num_layers, support
        if gamma is None:
            gamma = 1.0 if W is None else _safe_step(self.dictionary, self.weight)
        if theta is None:
            theta = LAMBDA / lipschitz(self.dictionary)
        rule = "of [layers] numbers > 0"
        require("ALISTA", "gamma", rule, gamma, lambda g: np.all(np.asarray(g) > 0))
        require("ALISTA", "theta", "of [layers] numbers >= 0", theta, lambda t: np.all(np.asarray(t) >= 0))
        entries = (num_layers,) if threshold == "scalar" else (num_layers, self.dictionary.shape[1])
        _check_entries("gamma", gamma, ((), (num_layers,)))
        _check_entries("theta", theta, ((), (num_layers,), entries))
        dtype = jnp.result_type(*jax.tree.leaves(eqx.filter((self.dictionary, self.weight), eqx.is_array)), jnp.float32)
        self.gamma = jnp.broadcast_to(jnp.asarray(gamma, dtype), (num_layers,))
        theta = jnp.asarray(theta, dtype)
        self.theta = jnp.broadcast_to(theta[:, None] if theta.ndim < len(entries) and theta.ndim else theta, entries)

    @property
    def num_parameters(self) -> int:
        """How many numbers are learned."""
        return self.gamma.size + self.theta.size

    def parameters(self) -> Any:
        """γ_k, θ_k and how many entries pass unshrunk."""
        return self.gamma, self.theta, jnp.asarray(counts(self.support, self.num_layers, self.dictionary.shape[1]))

    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """x ← η_{θ_k}(x − γ_k W̃ᵀ(Dx − b)), the largest entries unshrunk."""
        gamma, theta, count = parameters
        v = x - gamma * self.weight.rmatvec(self.dictionary.matvec(x) - b)
        most = int(counts(self.support, self.num_layers, self.dictionary.shape[1]).max())
        return select_and_shrink(v, theta, count, most, self.dictionary.code_axes)

    def at(
        self,
        D: Any,  # noqa: N803
        weight: Any = "closed_form",
        decoder: Literal["perturbed", "nominal"] = "perturbed",
    ) -> "ALISTA":
        """The same γ and θ for a dictionary that has drifted.

        weight: ``"closed_form"``, that of the new D; ``"stale"``, that of the old one; or a function of D, such as a
            trained `UnrolledCoherence`. decoder: which dictionary the residual Dx − b is computed with.
        A solver made with ``normalise=True`` normalises the new D as well; its codes are in the units of the new D.
        """
        if decoder not in ("perturbed", "nominal"):
            raise ValueError(f"ALISTA.at.decoder must be 'perturbed' or 'nominal'; got {decoder!r}.")
        drifted = as_dictionary(D)
        if drifted.shape != self.dictionary.shape:
            raise ValueError(f"ALISTA.at: D must have the shape {self.dictionary.shape}; got {drifted.shape}.")
        if self.scale is not None:
            scale = drifted.norms()
            drifted = drifted.divided_by(scale)
            D = getattr(drifted, "matrix", drifted)  # noqa: N806  (a function of D sees the columns that are used)
            self = eqx.tree_at(lambda s: s.scale, self, scale)
        if callable(weight):
            fresh = as_weight(weight(D), drifted.shape)
        elif weight in ("closed_form", "stale"):
            fresh = self.weight if weight == "stale" else _weight_of(drifted, None)
        else:
            raise ValueError(f"ALISTA.at.weight must be 'closed_form', 'stale' or a function of D; got {weight!r}.")
        dictionary = drifted if decoder == "perturbed" else self.dictionary
        return eqx.tree_at(lambda s: (s.dictionary, s.weight), self, (dictionary, fresh))


def counts(support: SupportSchedule | None, num_layers: int, size: int) -> np.ndarray:
    """How many entries pass unshrunk in every layer; none without a schedule."""
    return np.zeros(num_layers, np.int32) if support is None else support.counts(num_layers, size)


def _check_entries(field: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    if (shape := jnp.asarray(value).shape) not in shapes:
        allowed = ", ".join(map(str, dict.fromkeys(shapes)))
        raise ValueError(
            f"ALISTA.{field} must be of one of the shapes {allowed}; got {shape}. Give one number, or one a layer."
        )


def _weight_of(dictionary: AbstractDictionary, W: Any) -> Any:  # noqa: N803
    if W is not None:
        return as_weight(W, dictionary.shape)
    matrix = getattr(dictionary, "matrix", None)
    return as_weight(analytic_weight(dictionary if matrix is None else matrix), dictionary.shape)


def _safe_step(dictionary: AbstractDictionary, weight: Any) -> Array:
    """1/‖WᵀD‖, at most 1."""
    norm = spectral_norm(lambda x: weight.rmatvec(dictionary.matvec(x)), dictionary.start())
    return jnp.minimum(1.0, 1 / (1.001 * norm))
