"""What all solvers share: one call, ``x = solver(b)``, and ``solver.trace(b)`` for the code after every layer.

A solver is an Equinox module. Its parameters stand in fields with a leading axis of layers; those that `fit` trains are
named by ``trainable``. A layer is pure: (parameters of the layer, b, x, the x before) -> the next x.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from laureate._core import Status, require
from laureate.recovery.dictionary import AbstractDictionary, Dense, as_dictionary, warn_unless_normalised

__all__ = ["AbstractSolver", "RecoveryInfo", "add_noise", "nmse_db", "spectral_norm"]


class RecoveryInfo(NamedTuple):
    """How a solve went.

    cost: applications of D or of a matrix of its size. residual: ‖Dx − b‖ of every signal. status: of every signal,
    DIVERGED where its residual is not finite.
    """

    cost: Array
    residual: Array
    status: Array


class AbstractSolver(eqx.Module):
    """x = solver(b) for signals b [..., N] gives codes [..., M]; the same for every solver of this area."""

    dictionary: eqx.AbstractVar[Any]
    scale: eqx.AbstractVar[Array | None]
    num_layers: eqx.AbstractVar[int]
    trainable: ClassVar[tuple[str, ...]] = ()  # fields that `fit` trains
    shared: ClassVar[tuple[str, ...]] = ()  # trainable fields without an axis of layers
    products: ClassVar[tuple[int, int]] = (2, 0)  # with matrices of D's size: of a layer, and once a solve

    @abstractmethod
    def parameters(self) -> Any:
        """What each layer needs, with a leading axis of layers."""

    @abstractmethod
    def layer(self, parameters: Any, b: Array, x: Array, previous: Array) -> Array:
        """One layer: the next code from this one and the one before."""

    def trace(self, b: Array, x0: Array | None = None) -> Array:
        """The codes after each layer, [layers, ..., M]."""
        return self._run(b, x0, keep=True)

    def __call__(self, b: Array, x0: Array | None = None) -> Array:
        """The codes [..., M] after the last layer, from ``x0`` (zero without one)."""
        return self._run(b, x0, keep=False)

    def solve(self, b: Array, x0: Array | None = None) -> tuple[Array, RecoveryInfo]:
        """The codes and how it went: `Status.DIVERGED` where one of a signal's numbers is not finite."""
        x = self(b, x0)
        difference = self.synthesise(x) - b
        residual = jnp.sqrt(jnp.sum(difference**2, axis=tuple(range(-self._signal_axes(x, b), 0))))
        status = jnp.where(jnp.isfinite(residual), Status.OK, Status.DIVERGED)
        each, once = self.products
        return x, RecoveryInfo(jnp.asarray(each * self.num_layers + once), residual, status)

    def synthesise(self, x: Array) -> Array:
        """D x, in the units of the user's D."""
        return self.dictionary.matvec(x if self.scale is None else x * self.scale)

    def _signal_axes(self, x: Array, b: Array) -> int:
        return b.ndim - (x.ndim - self.dictionary.code_axes)

    def _run(self, b: Array, x0: Array | None, keep: bool) -> Array:
        leaves = jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array))
        if not isinstance(b, Tracer) and (wrong := int((~np.isfinite(np.asarray(b))).sum())):
            raise FloatingPointError(f"b must be finite; {wrong} of its entries are not.")
        b = jnp.asarray(b, jnp.result_type(b, *leaves))  # the wider of the signals' and the solver's precision
        start = self.dictionary.zeros(b)
        if x0 is not None:
            start = jnp.broadcast_to(jnp.asarray(x0, start.dtype), start.shape)
            start = start if self.scale is None else start * self.scale

        def step(carry, parameters):
            x, previous = carry
            new = self.layer(parameters, b, x, previous)
            return (new, x), (new if keep else jnp.zeros(()))

        (last, _), every = jax.lax.scan(step, (start, start), self.parameters())
        found = every if keep else last
        return found if self.scale is None else found / self.scale


def prepare(owner: str, D: Any, num_layers: int, normalise: bool) -> tuple[AbstractDictionary, Array | None]:  # noqa: N803
    """The checked dictionary, and the column norms where it was normalised."""
    require(owner, "num_layers", "an integer >= 1", num_layers, lambda n: isinstance(n, int | np.integer) and n >= 1)
    dictionary = as_dictionary(D)
    if not normalise:
        warn_unless_normalised(dictionary)
        return dictionary, None
    norms = dictionary.norms()
    return dictionary.divided_by(norms), norms


def spectral_norm(forward: Any, start: Array, num_steps: int = 100) -> Array:
    """The largest singular value of a square operator with (close to) real dominant eigenvalue, by power iteration.

    Used for L = ‖DᵀD‖; it comes from below, so solvers take 1.001 of it.
    """

    def step(_, carry):
        v, _ = carry
        w = forward(v)
        size = jnp.sqrt(jnp.sum(w**2))
        return w / jnp.where(size > 0, size, 1), size

    first = start / jnp.sqrt(jnp.sum(start**2))
    return jax.lax.fori_loop(0, num_steps, step, (first, jnp.zeros((), start.dtype)))[1]


def lipschitz(dictionary: AbstractDictionary) -> Array:
    """1.001 ‖D‖², the Lipschitz constant of the gradient of ½‖Dx − b‖² with a little room."""
    if isinstance(dictionary, Dense):
        return 1.001 * jnp.linalg.norm(dictionary.matrix, 2) ** 2
    start = dictionary.start()
    return 1.001 * spectral_norm(lambda x: dictionary.rmatvec(dictionary.matvec(x)), start)


def nmse_db(estimate: Array, target: Array) -> Array:
    """10 log₁₀ (Σ‖x̂ − x‖² / Σ‖x‖²) over the whole batch: a ratio of sums, not a mean of ratios.

    >>> round(float(nmse_db(jnp.array([[1.1, 0.0]]), jnp.array([[1.0, 0.0]]))), 3)
    -20.0
    """
    return 10 * jnp.log10(jnp.sum((estimate - target) ** 2) / jnp.sum(target**2))


def add_noise(key: Array, b: Array, snr: float | Array, signal_axes: int = 1) -> Array:
    """Gaussian noise of ``snr`` decibels: its deviation is each signal's own, times 10^(−snr/20). Infinity: none.

    key: of the draw. b: signals. signal_axes: how many of the last axes are one signal: 2 for images.
    """
    axes = tuple(range(-signal_axes, 0))
    deviation = jnp.std(b, axis=axes, keepdims=True) * 10 ** (-jnp.asarray(snr, b.dtype) / 20)
    return b + deviation * jax.random.normal(key, b.shape, b.dtype)
