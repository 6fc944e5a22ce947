"""The known operator D of b = D x: a matrix, an operator of the user's own, or a convolution.

A solver asks three things of it: D x, Dᵀ r and the zero code of a signal. Everything acts on the last axes, so batches
need no word.
"""

import sys
import warnings
from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

__all__ = ["AbstractDictionary", "Dense", "Operator", "as_dictionary", "dense_matrix"]


class AbstractDictionary(eqx.Module):
    """What every dictionary offers: D x, Dᵀ r, the zero code for a signal, and its size as a matrix (N, M)."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(N, M): numbers in a signal, numbers in a code."""

    @property
    @abstractmethod
    def code_shape(self) -> tuple[int, ...]:
        """The shape of one code, M numbers in all."""

    @property
    def code_axes(self) -> int:
        """How many last axes of an array are one code."""
        return len(self.code_shape)

    def start(self) -> Array:
        """A code that is orthogonal to no singular vector, but by accident: where a power iteration begins."""
        return jax.random.normal(jax.random.key(0), self.code_shape)

    @abstractmethod
    def matvec(self, x: Array) -> Array:
        """D x."""

    @abstractmethod
    def rmatvec(self, r: Array) -> Array:
        """Dᵀ r."""

    @abstractmethod
    def zeros(self, b: Array) -> Array:
        """The code x = 0 for the signals ``b``; ``ValueError`` where they are not signals of this dictionary."""

    @abstractmethod
    def norms(self) -> Array:
        """‖d_m‖ of all atoms."""

    @abstractmethod
    def divided_by(self, norms: Array) -> "AbstractDictionary":
        """The dictionary with its atoms divided by these numbers."""


class Dense(AbstractDictionary):
    """A matrix [N, M]; signals are [..., N], codes [..., M]: samples are rows."""

    matrix: Array

    @property
    def shape(self) -> tuple[int, int]:
        """(N, M)."""
        return self.matrix.shape[-2], self.matrix.shape[-1]

    @property
    def code_shape(self) -> tuple[int]:
        """(M,)."""
        return (self.matrix.shape[-1],)

    def matvec(self, x: Array) -> Array:
        """D x for every row of x."""
        return x @ self.matrix.T

    def rmatvec(self, r: Array) -> Array:
        """Dᵀ r for every row of r."""
        return r @ self.matrix

    def zeros(self, b: Array) -> Array:
        """[..., M] zeros for signals [..., N]."""
        return _zeros(b, self.shape)

    def norms(self) -> Array:
        """‖d_m‖ of all columns."""
        return jnp.linalg.norm(self.matrix, axis=0)

    def divided_by(self, norms: Array) -> AbstractDictionary:
        """The matrix with its columns divided by these numbers."""
        return Dense(self.matrix / norms)


class Operator(AbstractDictionary):
    """An object with ``matvec``, ``rmatvec`` (of one vector each, traceable by jax) and ``shape``, such as the user's.

    Its arrays are leaves if it is a pytree (an Equinox module), and constants else.
    """

    operator: Any

    @property
    def shape(self) -> tuple[int, int]:
        """(N, M)."""
        rows, columns = self.operator.shape
        return int(rows), int(columns)

    @property
    def code_shape(self) -> tuple[int]:
        """(M,)."""
        return (self.shape[1],)

    def matvec(self, x: Array) -> Array:
        """D x for every row of x."""
        return jnp.vectorize(self.operator.matvec, signature="(m)->(n)")(x)

    def rmatvec(self, r: Array) -> Array:
        """Dᵀ r for every row of r."""
        return jnp.vectorize(self.operator.rmatvec, signature="(n)->(m)")(r)

    def zeros(self, b: Array) -> Array:
        """[..., M] zeros for signals [..., N]."""
        return _zeros(b, self.shape)

    def norms(self) -> Array:
        """‖d_m‖ of all atoms, one column at a time."""
        return jax.lax.map(lambda unit: jnp.linalg.norm(self.matvec(unit)), jnp.eye(self.shape[1]))

    def divided_by(self, norms: Array) -> AbstractDictionary:
        """The operator with its columns divided by these numbers."""
        return Operator(_Divided(self, norms))


class _Divided(eqx.Module):
    """An operator with its columns divided by numbers."""

    dictionary: AbstractDictionary
    norms: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.dictionary.shape

    def matvec(self, x: Array) -> Array:
        return self.dictionary.matvec(x / self.norms)

    def rmatvec(self, r: Array) -> Array:
        return self.dictionary.rmatvec(r) / self.norms


class _Lineax(eqx.Module):
    """A lineax operator under the names of scipy's."""

    operator: Any

    @property
    def shape(self) -> tuple[int, int]:
        return self.operator.out_size(), self.operator.in_size()

    def matvec(self, x: Array) -> Array:
        return self.operator.mv(x)

    def rmatvec(self, r: Array) -> Array:
        return self.operator.T.mv(r)


def as_dictionary(D: Any) -> AbstractDictionary:  # noqa: N803
    """A dictionary from an array [N, M], an object with ``matvec`` and ``rmatvec``, or lineax's or scipy's operator.

    scipy's operators compute in NumPy, which jax cannot compile: they are turned into a matrix, column by column.

    >>> as_dictionary(jnp.ones((2, 3))).shape
    (2, 3)
    """
    if isinstance(D, AbstractDictionary):
        return D
    if _is_of_scipy(D):
        matmat = getattr(D, "matmat", None)
        return as_dictionary(matmat(np.eye(D.shape[1])) if matmat else D.toarray())
    if hasattr(D, "mv") and hasattr(D, "in_size"):
        return Operator(_Lineax(D))
    if hasattr(D, "matvec") and hasattr(D, "rmatvec"):
        if len(getattr(D, "shape", ())) != 2:
            raise ValueError(f"D.shape must be (N, M) for an operator; got {getattr(D, 'shape', None)!r}.")
        _check_real(getattr(D, "dtype", None))
        return Operator(D)
    matrix = jnp.asarray(D)
    _check_real(matrix.dtype)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"D must be a matrix [N, M] with a column for every atom; got an array of shape {matrix.shape}. "
            "An operator needs matvec, rmatvec and shape."
        )
    if matrix.dtype not in (jnp.float32, jnp.float64):  # factorisations know no shorter floats
        matrix = matrix.astype(jnp.float32)
    if not isinstance(matrix, Tracer):
        _check_matrix(np.asarray(matrix))
    return Dense(matrix)


def dense_matrix(dictionary: AbstractDictionary) -> Array:
    """The matrix [N, M], column by column where it is an operator."""
    if isinstance(dictionary, Dense):
        return dictionary.matrix
    return jax.lax.map(dictionary.matvec, jnp.eye(dictionary.shape[1])).T


def warn_unless_normalised(dictionary: AbstractDictionary) -> None:
    """The theory and one threshold for all atoms suppose columns of norm 1."""
    norms = dictionary.norms()
    if not isinstance(norms, Tracer) and (worst := float(jnp.max(jnp.abs(norms - 1)))) > 1e-3:
        warnings.warn(
            f"The columns of D should have norm 1; one is off by {worst:.3g}. Pass normalise=True: the solver then "
            "works with unit columns and gives codes in the units of your D.",
            stacklevel=3,
        )


def _is_of_scipy(D: Any) -> bool:  # noqa: N803
    """Whether D is scipy's sparse matrix or linear operator, or a subclass (pylops'); scipy is not loaded for it."""
    sparse, linalg = sys.modules.get("scipy.sparse"), sys.modules.get("scipy.sparse.linalg")
    operator = linalg is not None and isinstance(D, linalg.LinearOperator)
    return operator or (sparse is not None and bool(sparse.issparse(D)))


def _check_real(dtype: Any) -> None:
    if dtype is not None and jnp.issubdtype(dtype, jnp.complexfloating):
        raise ValueError(
            f"D must be real; got {jnp.dtype(dtype).name}. Stack real and imaginary parts: "
            "[[Re D, −Im D], [Im D, Re D]] for signals [Re b, Im b] and codes [Re x, Im x]."
        )


def _check_matrix(matrix: np.ndarray) -> None:
    if not np.isfinite(matrix).all():
        raise FloatingPointError(f"D must be finite; {np.count_nonzero(~np.isfinite(matrix))} entries are not.")
    if (zero := np.flatnonzero(~matrix.any(axis=0))).size:
        raise ValueError(f"D must have no zero column; column {zero[0]} is zero. Leave it out: nothing can use it.")


def _zeros(b: Array, shape: tuple[int, int]) -> Array:
    if b.ndim < 1 or b.shape[-1] != shape[0]:
        raise ValueError(
            f"b must be [..., {shape[0]}], samples as rows, for D of shape {shape}; got {b.shape}."
            + (" Pass b.T: your samples are columns." if b.ndim == 2 and b.shape[0] == shape[0] else "")
        )
    return jnp.zeros((*b.shape[:-1], shape[1]), b.dtype)
