"""Functions of many variables as a tensor train over one-dimensional bases: evaluate, differentiate, add, round."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

from laureate._core import require
from laureate.pde.bases import Basis

if TYPE_CHECKING:
    from laureate.pde.als import ALS
    from laureate.pde.salsa import SALSA
    from laureate.pde.sweep import FitInfo

__all__ = ["FunctionalTensorTrain", "rank_caps"]


def rank_caps(dimension: int, size: int, rank: int) -> np.ndarray:
    """The largest useful ranks of the bonds 0 … d: min(rank, m^i, m^(d−i)); more would be padding."""
    powers = [min(i, dimension - i) for i in range(dimension + 1)]
    return np.array([min(rank, size ** min(p, 64)) for p in powers], dtype=np.int32)


def reverse(cores: Float[Array, "d r m r"]) -> Float[Array, "d r m r"]:
    """The same tensor read from its last coordinate to its first."""
    return jnp.flip(jnp.swapaxes(cores, 1, 3), axis=0)


class FunctionalTensorTrain(eqx.Module):
    """V(x) = Σ_i c[i_1, …, i_d] φ_{i_1}(x_1) ⋯ φ_{i_d}(x_d) with c[i] = G_1[i_1] G_2[i_2] ⋯ G_d[i_d].

    For anybody with a smooth function of ten to a hundred variables and a few thousand samples of it: d·r²·m numbers
    in place of m^d. Reference: Oseledets 2011; Richter, Sallandt and Nüsken 2021, section 3.

    All cores have one shape, the first entered and the last left through slot 0, so that one scan serves every
    coordinate and compile time does not grow with d. Slots beyond a bond's rank are zero.

    cores: [d, r, m, r].
    basis: the one-dimensional functions φ, the same in every coordinate.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.pde import Polynomials
    >>> train = FunctionalTensorTrain.constant(3.0, 5, Polynomials(-1.0, 1.0, degree=2))
    >>> float(train(jnp.zeros(5)))
    3.0
    """

    cores: Float[Array, "d r m r"]
    basis: Basis

    def __check_init__(self):
        size, rule = self.basis.size, f"of shape [d, r, {self.basis.size}, r]"
        fits = lambda s: len(s) == 4 and s[0] >= 1 and s[1] == s[3] >= 1 and s[2] == size  # noqa: E731
        require("FunctionalTensorTrain", "cores", rule, jnp.shape(self.cores), fits)

    @classmethod
    def constant(cls, value: Array | float, dimension: int, basis: Basis, rank: int = 1) -> "FunctionalTensorTrain":
        """The constant function."""
        one = jnp.zeros((dimension, rank, basis.size, rank)).at[:, 0, :, 0].set(jnp.asarray(basis.constant)[None])
        return cls(one.at[0].multiply(value), basis)

    @classmethod
    def start(
        cls, key: PRNGKeyArray, dimension: int, basis: Basis, rank: int = 1, noise: float = 1e-3
    ) -> "FunctionalTensorTrain":
        """The zero function, ready to be fitted: every core but the first is the constant plus a little noise.

        Orthogonalised, the second and further slots of such a train are random sums of one-coordinate functions.
        Random orthonormal cores instead overflow in a hundred dimensions.
        """
        caps = rank_caps(dimension, basis.size, rank)
        live = jnp.arange(rank)[None, :] < jnp.asarray(caps)[:, None]
        mask = live[:-1, :, None, None] & live[1:, None, None, :]
        straight = jnp.eye(rank)[None, :, None, :] * jnp.asarray(basis.constant)[None, None, :, None]
        cores = straight + noise * jax.random.normal(key, (dimension, rank, basis.size, rank))
        return cls(jnp.where(mask, cores, 0.0).at[0].set(0.0), basis)

    @classmethod
    def random(cls, key: PRNGKeyArray, dimension: int, basis: Basis, rank: int) -> "FunctionalTensorTrain":
        """Gaussian cores, scaled so that the coefficients have about unit norm: a target to recover in tests."""
        caps = rank_caps(dimension, basis.size, rank)
        live = jnp.arange(rank)[None, :] < jnp.asarray(caps)[:, None]
        mask = live[:-1, :, None, None] & live[1:, None, None, :]
        cores = jnp.where(mask, jax.random.normal(key, (dimension, rank, basis.size, rank)), 0.0)
        size = jnp.sqrt(jnp.sum(cores**2, axis=(1, 2, 3)) / jnp.asarray(caps[1:]))
        return cls(cores / size[:, None, None, None], basis)

    @property
    def dimension(self) -> int:
        """d."""
        return self.cores.shape[0]

    @property
    def rank(self) -> int:
        """The padded rank r, a shape; ``ranks`` gives those in use."""
        return self.cores.shape[1]

    def _ends(self) -> Float[Array, " r"]:
        return jnp.zeros(self.rank, self.cores.dtype).at[0].set(1.0)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """V(x) of one point; vmap for many."""
        return self.value_and_gradient(x)[0] if x.shape == (self.dimension,) else self._wrong(x)

    def _wrong(self, x: Array) -> Array:
        raise ValueError(
            f"FunctionalTensorTrain takes one point of shape ({self.dimension},); got {x.shape}. Use jax.vmap for many."
        )

    def value_and_gradient(self, x: Float[Array, " d"]) -> tuple[Float[Array, ""], Float[Array, " d"]]:
        """V(x) and ∇V(x), for two evaluations: core i meets φ' between the partial products."""
        dimension, rank, size, _ = self.cores.shape
        if size == 1:  # the constant alone: nothing depends on x
            features, slopes = self.basis(jnp.zeros(dimension, x.dtype)), None
        else:
            features, slopes = self.basis(x), self.basis.derivative(x)

        def right(vector, core_and_feature):
            core, feature = core_and_feature  # R_{i−1}[a] = Σ_jb G_i[a, j, b] φ_j(x_i) R_i[b]
            return core.reshape(rank, size * rank) @ jnp.outer(feature, vector).ravel(), vector

        value, after = lax.scan(right, self._ends(), (self.cores, features), reverse=True)
        if slopes is None:
            return value[0], jnp.zeros_like(x)

        def left(vector, inputs):
            core, feature, slope, right_vector = inputs
            unfolded = core.reshape(rank * size, rank)
            partial = jnp.outer(vector, slope).ravel() @ unfolded @ right_vector
            return jnp.outer(vector, feature).ravel() @ unfolded, partial

        _, gradient = lax.scan(left, self._ends(), (self.cores, features, slopes, after))
        return value[0], gradient

    def gradient(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """∇V(x)."""
        return self.value_and_gradient(x)[1]

    def __add__(self, other: "FunctionalTensorTrain") -> "FunctionalTensorTrain":
        """The sum, of rank r + s; ``round`` brings it down again."""
        if not isinstance(other, FunctionalTensorTrain):
            return NotImplemented
        self._same_space(other)
        (d, r, m, _), s = self.cores.shape, other.rank
        cores = jnp.zeros((d, r + s, m, r + s), self.cores.dtype)
        cores = cores.at[:, :r, :, :r].set(self.cores).at[:, r:, :, r:].set(other.cores)
        # Both parts are entered and left through slot 0 of the sum; the second part's slot 0 is slot r.
        cores = cores.at[0, 0].add(cores[0, r])
        cores = cores.at[-1, :, :, 0].add(cores[-1, :, :, r])
        cores = cores.at[0, 1:].set(0.0).at[-1, :, :, 1:].set(0.0)
        return FunctionalTensorTrain(cores, self.basis)

    def __mul__(self, factor: Array | float) -> "FunctionalTensorTrain":
        """The function times a number."""
        return FunctionalTensorTrain(self.cores.at[0].multiply(factor), self.basis)

    __rmul__ = __mul__

    def __sub__(self, other: "FunctionalTensorTrain") -> "FunctionalTensorTrain":
        """The difference."""
        return self + other * -1.0

    def _same_space(self, other: "FunctionalTensorTrain") -> None:
        require(
            "FunctionalTensorTrain",
            "other",
            f"a train of {self.dimension} coordinates with {self.basis.size} functions each",
            (other.dimension, other.basis.size),
            lambda s: s == (self.dimension, self.basis.size),
        )
        remedy = "Coefficients of different functions cannot be added or multiplied."
        require("FunctionalTensorTrain", "other", f"over {self.basis}", other.basis, self._is_my_basis, remedy)

    def _is_my_basis(self, basis: Basis) -> bool:
        if jax.tree.structure(self.basis) != jax.tree.structure(basis):
            return False
        pairs = zip(jax.tree.leaves(self.basis), jax.tree.leaves(basis), strict=True)
        known = [pair for pair in pairs if not any(isinstance(leaf, Tracer) for leaf in pair)]
        return all(np.shape(one) == np.shape(two) and np.allclose(one, two, rtol=1e-5) for one, two in known)

    def inner(self, other: "FunctionalTensorTrain") -> Float[Array, ""]:
        """⟨c, c'⟩ of the coefficients: the inner product of the functions where the basis is orthonormal."""
        self._same_space(other)

        def contract(carry, cores):  # carry[a, a'] ← Σ carry[a, a'] G[a, j, b] H[a', j, b']
            first, second = cores
            return jnp.einsum("ac,ajb,cjd->bd", carry, first, second), None

        start = jnp.zeros((self.rank, other.rank), self.cores.dtype).at[0, 0].set(1.0)
        return lax.scan(contract, start, (self.cores, other.cores))[0][0, 0]

    def norm(self) -> Float[Array, ""]:
        """‖c‖, by orthogonalisation: without the cancellation of √⟨c, c⟩."""
        return jnp.linalg.norm(self.orthogonalise(0).cores[0, 0, :, :])

    def orthogonalise(self, centre: int = 0) -> "FunctionalTensorTrain":
        """The same function, cores before ``centre`` orthonormal from the left and those after it from the right."""
        require(
            "FunctionalTensorTrain",
            "centre",
            f"in 0 … {self.dimension - 1}",
            centre,
            lambda k: 0 <= k < self.dimension,
        )
        cores = _left_orthogonalise(_no_loose_ends(self.cores), centre)
        cores = reverse(_left_orthogonalise(reverse(cores), self.dimension - 1 - centre))
        return FunctionalTensorTrain(cores, self.basis)

    def round(self, tolerance: float = 1e-12) -> "FunctionalTensorTrain":
        """A train of lower rank within ``tolerance``·‖c‖: each bond drops what is below tolerance·‖c‖/√(d−1).

        Outside jit the padding is cut off too; inside it stays, since a shape cannot depend on a value.
        """
        rounded = FunctionalTensorTrain(_truncate(self.cores, tolerance)[0], self.basis)
        return rounded if isinstance(self.cores, Tracer) else rounded._trim()

    def singular_values(self) -> Float[Array, "bonds r"]:
        """The singular values at each of the d − 1 bonds, falling."""
        return _truncate(self.cores, 0.0)[1][:-1]

    def ranks(self, tolerance: float = 1e-12) -> Array:
        """How many singular values at each bond exceed ``tolerance`` times the largest."""
        values = self.singular_values()
        return jnp.sum(values > tolerance * jnp.max(values, axis=1, keepdims=True), axis=1)

    def _trim(self) -> "FunctionalTensorTrain":
        used = np.any(np.asarray(self.cores) != 0, axis=2)  # [d, r, r]
        rank = 1 + max(np.max(np.nonzero(used)[1], initial=0), np.max(np.nonzero(used)[2], initial=0))
        return FunctionalTensorTrain(self.cores[:, :rank, :, :rank], self.basis)

    def dense(self) -> Float[Array, "..."]:
        """The whole coefficient tensor, m^d numbers: for small d."""
        full = self.cores[0, 0]  # [m, r]
        for core in self.cores[1:]:
            full = jnp.tensordot(full, core, axes=1)
        return full[..., 0]

    def fit(
        self,
        inputs: Float[Array, "k d"],
        targets: Float[Array, " k"],
        method: "ALS | SALSA | None" = None,
        test: tuple[Float[Array, "q d"], Float[Array, " q"]] | None = None,
    ) -> tuple["FunctionalTensorTrain", "FitInfo"]:
        """Least squares from this train as the start (default: ``ALS()``); the fitted train and how it went.

        One core is solved for while the others stand still, so the first sweeps see what the targets share with
        functions of few coordinates. Where interactions weaken with their order, as in value functions, trains of rank
        three in twenty dimensions are found to rounding from 5,000 samples. Where they do not (independent Gaussian
        cores, as of ``random``), twelve dimensions are found and twenty are not, from 20,000 samples neither.
        """
        from laureate.pde.als import ALS
        from laureate.pde.sweep import Samples

        samples = Samples.of(self.basis, inputs, targets)
        held_out = None if test is None else Samples.of(self.basis, *test)
        train, _, info = (ALS() if method is None else method).fit(self, samples, test=held_out)
        return train, info


def _left_orthogonalise(cores: Array, centre: int) -> Array:
    _, rank, size, _ = cores.shape

    def body(push, inputs):
        index, core = inputs
        core = jnp.tensordot(push, core, axes=1)
        q, r = jnp.linalg.qr(core.reshape(rank * size, rank))
        before = index < centre
        return jnp.where(before, r, jnp.eye(rank, dtype=core.dtype)), jnp.where(before, q.reshape(core.shape), core)

    start = jnp.eye(rank, dtype=cores.dtype)
    return lax.scan(body, start, (jnp.arange(cores.shape[0]), cores))[1]


def _truncate(cores: Array, tolerance: float | Array) -> tuple[Array, Array]:
    dimension, rank, size, _ = cores.shape
    cores = reverse(_left_orthogonalise(reverse(_no_loose_ends(cores)), dimension - 1))
    cutoff = tolerance * jnp.linalg.norm(cores[0, 0]) / np.sqrt(max(dimension - 1, 1))

    def body(push, inputs):
        index, core = inputs
        core = jnp.tensordot(push, core, axes=1)
        u, s, vt = jnp.linalg.svd(core.reshape(rank * size, rank), full_matrices=False)
        tail = jnp.sqrt(jnp.cumsum(s[::-1] ** 2))[::-1]  # what is lost by dropping s_k, s_{k+1}, …
        s = jnp.where(tail > cutoff, s, 0.0)
        u = jnp.where((s > 0)[None, :], u, 0.0)
        last = index == dimension - 1
        return s[:, None] * vt, (jnp.where(last, core, u.reshape(core.shape)), s)

    start = jnp.eye(rank, dtype=cores.dtype)
    return lax.scan(body, start, (jnp.arange(dimension), cores))[1]


def _no_loose_ends(cores: Array) -> Array:
    """Zero the slots that no path from the first slot to the last goes through at the two ends."""
    rank = cores.shape[1]
    first = jnp.arange(rank) == 0
    cores = cores.at[0].set(jnp.where(first[:, None, None], cores[0], 0.0))
    return cores.at[-1].set(jnp.where(first[None, None, :], cores[-1], 0.0))
