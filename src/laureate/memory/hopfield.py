"""Hopfield networks: couplings that remember patterns."""

import functools
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require

__all__ = ["HopfieldNetwork", "Rule", "check_one", "check_rows", "check_spins", "library_of", "store"]

Rule = Literal["projection", "pseudo-inverse", "hebbian", "storkey"]


class HopfieldNetwork(eqx.Module):
    """Binary units with pairwise couplings, p(s) ∝ exp(-β H(s)).

    H(s) = -½ sᵀJs - bᵀs,  s in {-1, +1}ᴺ                                   (Hopfield 1982)

    couplings: J, symmetric ``[units, units]``. Its diagonal shifts every energy alike: it matters for recall alone.
    field: b, ``[units]``.
    patterns: what was stored, ``[patterns, units]``; None where that is not known.
    rule: by which rule it was stored; empty where that is not known.

    >>> network = store([[1, 1, -1, -1], [1, -1, 1, -1]])
    >>> float(network.energy(jnp.array([1.0, 1.0, -1.0, -1.0])))  # -N/2, the least there is, for every pattern
    -2.0
    """

    couplings: Float[Array, "units units"]
    field: Float[Array, "units"]
    patterns: Float[Array, "patterns units"] | None = None
    rule: str = eqx.field(default="", static=True)

    def energy(self, spins: Float[Array, "units"]) -> Float[Array, ""]:
        """H(s)."""
        return -0.5 * spins @ self.couplings @ spins - self.field @ spins

    @property
    def num_units(self) -> int:
        """N."""
        return self.couplings.shape[0]


def store(patterns: Any, rule: Rule = "projection", field: Any = None) -> HopfieldNetwork:
    """The network that remembers these patterns, ξ in {-1, +1}, one a row.

    ==================  ==================================================================================
    projection          J = ξᵀ(ξξᵀ)⁻¹ξ: Jξ_μ = ξ_μ and H(ξ_μ) = -N/2 for every pattern, however correlated
    pseudo-inverse      the same with ξ's pseudo-inverse, for patterns that depend on each other
    hebbian             J = ξᵀξ/N: equals the projection for orthogonal patterns alone
    storkey             Hebb's rule with the local fields subtracted, pattern by pattern (Storkey 1997)
    ==================  ==================================================================================

    Computed in double precision, whatever the precision of the result; under jit in that of the patterns, unchecked.

    Personnaz, Guyon, Dreyfus: "Collective computational properties of neural networks", 1986, for the projection rule;
    Smart, Zilman: "On the mapping between Hopfield networks and restricted Boltzmann machines", ICLR 2021.
    """
    spins, xp = check_spins("store", "patterns", patterns), library_of(patterns)
    units = spins.shape[1]
    require("store", "rule", "a name in its table", rule, lambda r: r in RULES)
    if rule == "projection" and xp is np:
        _check_independent(spins)
    couplings = RULES[rule](spins, xp)
    couplings = jnp.asarray(0.5 * (couplings + couplings.T))
    bias = jnp.asarray(np.zeros(units) if field is None else field, couplings.dtype)
    require("store", "field", f"of shape ({units},)", bias.shape, lambda shape: shape == (units,))
    return HopfieldNetwork(couplings, bias, jnp.asarray(spins, couplings.dtype), rule)


def _projection(spins: Any, xp: Any) -> Any:
    return spins.T @ xp.linalg.solve(spins @ spins.T, spins)


def _pseudo_inverse(spins: Any, xp: Any) -> Any:
    return xp.linalg.pinv(spins) @ spins


def _hebbian(spins: Any, xp: Any) -> Any:
    return spins.T @ spins / spins.shape[1]


def _storkey(spins: Any, xp: Any) -> Any:
    units = spins.shape[1]

    def learn(couplings, pattern):
        # h_ij = Σ_{k ≠ i, j} J_ik ξ_k; the diagonal of J is nought, so k = i adds nothing.
        fields = (couplings @ pattern)[:, None] - couplings * pattern
        change = xp.outer(pattern, pattern) - pattern[:, None] * fields.T - fields * pattern
        return couplings + (change - xp.diag(xp.diag(change))) / units

    if xp is np:
        return functools.reduce(learn, spins, np.zeros((units, units)))
    spins = jnp.asarray(spins, float)
    one = lambda couplings, pattern: (learn(couplings, pattern), None)  # noqa: E731
    return jax.lax.scan(one, jnp.zeros((units, units), spins.dtype), spins)[0]


RULES = {"projection": _projection, "pseudo-inverse": _pseudo_inverse, "hebbian": _hebbian, "storkey": _storkey}


def library_of(values: Any) -> Any:
    """NumPy, which computes in double precision, for what is known; jax.numpy for what is traced."""
    return jnp if isinstance(values, Tracer) else np


def check_spins(owner: str, name: str, values: Any) -> np.ndarray:
    """``values`` as float64 of shape [rows, units]; ``ValueError`` where they are not all -1 or +1.

    What is traced is let through as it is.
    """
    if isinstance(values, Tracer):
        return values  # pyright: ignore[reportReturnType]
    spins = np.asarray(values, np.float64)
    require(
        owner, name, "two-dimensional, a pattern a row", spins.shape, lambda shape: len(shape) == 2 and 0 not in shape
    )
    remedy = "Zeros and ones become spins by 2 * x - 1." if np.isin(spins, (0, 1)).all() else "Binarise it first."
    wrong = spins[~np.isin(spins, (-1, 1))]
    require(owner, name, "-1 or +1 everywhere", wrong[:3].tolist(), lambda found: not found, remedy)
    return spins


def check_one(owner: str, name: str, values: Any, num_units: int) -> None:
    """``ValueError`` unless ``values`` are of shape [units] and, where they are known, all -1 or +1."""
    require(owner, name, f"of shape ({num_units},)", jnp.shape(values), lambda shape: shape == (num_units,))
    if not isinstance(values, Tracer):
        check_spins(owner, name, np.asarray(values)[None])


def check_rows(owner: str, name: str, values: Any, num_units: int) -> None:
    """The same of shape [rows, units]."""
    wanted = f"of shape (rows, {num_units})"
    require(owner, name, wanted, jnp.shape(values), lambda shape: len(shape) == 2 and shape[1] == num_units)
    check_spins(owner, name, values)


def _check_independent(spins: np.ndarray) -> None:
    count, units = spins.shape
    remedy = "Are they transposed? A pattern is a row." if count > units else ""
    require("store", "patterns", f"at most as many as the {units} units", count, lambda p: p <= units, remedy)
    _, triangle, order = scipy.linalg.qr(spins.T, mode="economic", pivoting=True)  # pyright: ignore[reportAssignmentType]
    size = np.abs(np.diag(triangle))
    dependent = sorted(order[size < 1e-9 * size[0]].tolist())
    remedy = "Leave these rows out, or ask for rule='pseudo-inverse', which has fewer hidden units."
    require("store", "patterns", "linearly independent", dependent, lambda rows: not rows, remedy)
