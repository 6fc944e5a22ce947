"""Predictors for self-supervision without negatives: set from second moments (DirectPred and its siblings), or trained.

All have ``init(key) -> state``, ``predictor(state, z)`` and ``update(state, z1, z2) -> (state, info)``. What of a state
an optimiser may train, ``trained(state)`` says.
"""

import abc
import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jaxtyping import Bool, Float, Int

from laureate._core import Status, require
from laureate.representation.roots import power_by_eigh, root_by_newton_schulz, spectral_norm

__all__ = ["DirectCopy", "DirectPred", "DirectSet", "DirectState", "Identity", "Linear", "PredictorInfo", "TwoLayer"]

COLLAPSED = 1e-12  # a largest eigenvalue below this is no representation any more


class DirectState(NamedTuple):
    """What a directly set predictor carries on.

    correlation: F, the running mean of z zᵀ, uncentred, of the online outputs of both views.
    mean: the running mean of z; subtracted from F only with ``zero_mean``.
    matrix: W_p.
    updates: how many batches F has seen.
    """

    correlation: Float[Array, "d d"]
    mean: Float[Array, " d"]
    matrix: Float[Array, "d d"]
    updates: Int[Array, ""]


class PredictorInfo(NamedTuple):
    """What a predictor's update reports.

    nonfinite: the batch was not finite, and nothing was updated. collapsed: all outputs are zero by now. cost: outputs
    seen. status: DIVERGED where the batch was not finite.
    """

    nonfinite: Bool[Array, ""]
    collapsed: Bool[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class _Direct(eqx.Module):
    """What the directly set predictors share: the running correlation F, and when W_p is set from it by ``rule``."""

    dim: int = eqx.field(static=True)
    rho: Any = eqx.field(default=0.3, kw_only=True)
    epsilon: Any = eqx.field(default=0.1, kw_only=True)
    freq: int = eqx.field(static=True, default=1, kw_only=True)
    scale: str = eqx.field(static=True, default="max", kw_only=True)
    zero_mean: bool = eqx.field(static=True, default=False, kw_only=True)
    trainable: bool = eqx.field(static=True, default=False, kw_only=True)
    root: str = eqx.field(static=True, default="eigh", kw_only=True)
    axis_name: str | None = eqx.field(static=True, default=None, kw_only=True)

    power: eqx.AbstractVar[Any]

    def __check_init__(self):
        owner = type(self).__name__
        require(owner, "dim", "an integer >= 1", self.dim, _is_count)
        require(owner, "rho", "in [0, 1)", self.rho, lambda r: 0 <= r < 1)
        require(owner, "epsilon", ">= 0 and finite", self.epsilon, lambda e: 0 <= e < float("inf"))
        require(owner, "freq", "an integer >= 1", self.freq, _is_count)
        require(owner, "power", "> 0", self.power, lambda p: p > 0)
        require(owner, "scale", "'max' or 'none'", self.scale, lambda s: s in ("max", "none"))
        require(owner, "root", "'eigh' or 'newton-schulz'", self.root, lambda r: r in ("eigh", "newton-schulz"))
        if self.root == "newton-schulz":
            remedy = "Newton and Schulz's iteration finds square roots; other powers need root='eigh'."
            require(owner, "power", "0.5 with root='newton-schulz'", self.power, lambda p: p == 0.5, remedy)

    def init(self, key: Array) -> DirectState:
        """The identity as predictor until the first batch has been seen."""
        del key
        zeros, eye = jnp.zeros((self.dim, self.dim)), jnp.eye(self.dim)
        return DirectState(zeros, jnp.zeros(self.dim), eye, jnp.asarray(0, jnp.int32))

    def trained(self, state: DirectState) -> DirectState:
        """Nothing of it, or W_p with ``trainable``: what is set directly must not go into an optimiser."""
        nothing = jax.tree.map(lambda _: False, state)
        return eqx.tree_at(lambda s: s.matrix, nothing, self.trainable)

    def __call__(self, state: DirectState, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """W_p z, row by row; no gradient reaches W_p unless it is trainable."""
        matrix = state.matrix if self.trainable else jax.lax.stop_gradient(state.matrix)
        return z @ matrix.T.astype(z.dtype)

    @abc.abstractmethod
    def rule(self, correlation: Float[Array, "d d"]) -> tuple[Float[Array, "d d"], Bool[Array, ""]]:
        """W_p from F, and whether F is nothing any more."""

    def update(
        self, state: DirectState, z1: Float[Array, "n d"], z2: Float[Array, "n d"]
    ) -> tuple[DirectState, PredictorInfo]:
        """F from the online outputs of both views, before the predictor; then W_p, if it is time."""
        self._check(z1, z2)
        z = jax.lax.stop_gradient(jnp.concatenate([z1, z2])).astype(jnp.promote_types(z1.dtype, jnp.float32))
        moments = z.T @ z / z.shape[0], z.mean(axis=0)
        if self.axis_name is not None:
            moments = jax.lax.pmean(moments, self.axis_name)
        finite = jnp.all(jnp.isfinite(moments[0]))
        first = state.updates == 0
        correlation, mean = (  # ρ multiplies the old value; the first batch has no old value
            jnp.where(first, new, self.rho * old + (1 - self.rho) * new)
            for old, new in zip((state.correlation, state.mean), moments, strict=True)
        )
        used = correlation - jnp.outer(mean, mean) if self.zero_mean else correlation
        due = finite & ((state.updates + 1) % self.freq == 0)
        safe = jnp.where(finite, used, jnp.eye(self.dim, dtype=used.dtype))  # eigh of a NaN is NaN everywhere
        # F has no negative eigenvalues: where their sum is nothing, the largest is
        keep = lambda f: (state.matrix.astype(used.dtype), jnp.trace(f) < COLLAPSED)  # noqa: E731
        # not self.rule itself: a method is hashed with its object, whose numbers may be traced
        matrix, collapsed = jax.lax.cond(due, lambda f: self.rule(f), keep, safe)
        new = DirectState(correlation, mean, matrix.astype(state.matrix.dtype), state.updates + 1)
        kept = jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, state)
        status = jnp.where(finite, int(Status.OK), int(Status.DIVERGED))
        return kept, PredictorInfo(~finite, collapsed, jnp.asarray(z.shape[0], jnp.int32), status)

    def _check(self, z1: Array, z2: Array) -> None:
        owner = type(self).__name__
        if z1.shape != z2.shape or z1.ndim != 2 or z1.shape[1] != self.dim:
            raise ValueError(
                f"{owner}.update: the two views' outputs must both be [batch, {self.dim}]; "
                f"got {list(z1.shape)} and {list(z2.shape)}."
            )
        few = 2 * z1.shape[0] < self.dim and not isinstance(self.rho, Tracer) and self.rho == 0
        if few and not isinstance(self.epsilon, Tracer):
            problem = (
                f"{owner}: {2 * z1.shape[0]} outputs span less than {self.dim} dimensions, and rho = 0 forgets all"
            )
            if self.epsilon == 0:
                raise ValueError(f"{problem} others; epsilon must be > 0 then, got 0. Take rho > 0 or a larger batch.")
            warnings.warn(f"{problem} others: F is rank-deficient.", stacklevel=3)


def _set_eigenvalues(
    predictor: _Direct, correlation: Float[Array, "d d"]
) -> tuple[Float[Array, "d d"], Bool[Array, ""]]:
    """U diag(s^power + floor) Uᵀ from F, and whether F is nothing any more."""
    symmetric = 0.5 * (correlation + correlation.T)
    if predictor.root == "eigh":
        powered, largest = power_by_eigh(symmetric, predictor.power, relative=predictor.scale == "max")
    else:
        powered, largest = root_by_newton_schulz(symmetric, relative=predictor.scale == "max")
    eye = jnp.eye(predictor.dim, dtype=powered.dtype)
    floor = jnp.asarray(predictor.epsilon) if predictor.scale == "max" else jnp.asarray(predictor.epsilon) * largest
    collapsed = largest < COLLAPSED
    return jnp.where(collapsed, predictor.epsilon * eye, powered + floor.astype(powered.dtype) * eye), collapsed


class DirectPred(_Direct):
    """The predictor that training would find, computed: it shares the eigenvectors of the outputs' correlation.

    For people with images or signals and no labels, who train two views against each other and do not want to tune a
    predictor network. In the linear theory the predictor's eigenspaces align with those of F = E[z zᵀ], and its
    eigenvalues p_j grow to √s_j; so set them::

        F ← ρF + (1 − ρ) mean(z zᵀ),   F = U diag(s) Uᵀ,   W_p = U diag(p) Uᵀ
        p_j = (s_j/max s)^{1/2} + ε       (scale="max": the authors' code; another size of z changes nothing)
        p_j = s_j^{1/2} + ε max s         (scale="none": as printed)

    Yuandong Tian, Xinlei Chen and Surya Ganguli: Understanding Self-Supervised Learning Dynamics without Contrastive
    Pairs. ICML 2021.

    dim: D, length of the outputs z.
    rho: ρ, memory of the OLD F, in [0, 1). The first batch sets F.
    epsilon: ε, the floor under the eigenvalues, >= 0: without it, directions that have died stay dead.
    freq: set W_p after every ``freq``-th batch, >= 1.
    power: the exponent 1/2, > 0 (``DirectSet`` of Wang et al. varies it).
    scale: "max" or "none". An l2 loss needs "none": "max" fixes the size of what is predicted.
    zero_mean: use the covariance F − μμᵀ instead of the correlation (the authors' option; off as theirs).
    trainable: an optimiser trains W_p in between settings (only of use with freq > 1).
    root: "eigh", or "newton-schulz" for power 1/2: products of matrices only, for devices without a
        good eigen-decomposition; on CPUs it is slower at every width.
    axis_name: of a surrounding ``shard_map`` or ``vmap``: F is the mean over all its devices.

    >>> import jax, jax.numpy as jnp
    >>> predictor = DirectPred(dim=2, epsilon=0.1)
    >>> z = jnp.array([[2.0, 0.0], [0.0, 1.0], [-2.0, 0.0], [0.0, -1.0]])
    >>> state, info = predictor.update(predictor.init(jax.random.key(0)), z, z)  # F = diag(2, 1/2)
    >>> [round(float(p), 3) for p in jnp.diag(state.matrix)]  # 1 + ε and √(1/4) + ε
    [1.1, 0.6]
    """

    power: Any = eqx.field(default=0.5, kw_only=True)

    def rule(self, correlation: Float[Array, "d d"]) -> tuple[Float[Array, "d d"], Bool[Array, ""]]:
        """W_p from F, and whether F is nothing any more."""
        return _set_eigenvalues(self, correlation)


class DirectSet(_Direct):
    """``DirectPred`` with another power: W_p = (F/max s)^α + ε (Xiang Wang, Xinlei Chen, Simon Du, Yuandong Tian 2021).

    The arguments are those of ``DirectPred``.

    >>> import jax, jax.numpy as jnp
    >>> matrix, _ = DirectSet(dim=2, power=2.0, epsilon=0.0).rule(jnp.diag(jnp.array([4.0, 2.0])))
    >>> jnp.diag(matrix).tolist()
    [1.0, 0.25]
    """

    power: Any = eqx.field(default=0.5, kw_only=True)

    def rule(self, correlation: Float[Array, "d d"]) -> tuple[Float[Array, "d d"], Bool[Array, ""]]:
        """W_p from F, and whether F is nothing any more."""
        return _set_eigenvalues(self, correlation)


class DirectCopy(_Direct):
    """W_p = F/‖F‖₂ + ε: no eigen-decomposition at all (Xiang Wang, Xinlei Chen, Simon Du, Yuandong Tian 2021).

    ‖F‖₂ comes from the power iteration, a per cent too small at worst. With ``scale="none"``, W_p = F + ε‖F‖₂.

    The arguments are those of ``DirectPred``, but that ``power`` must be 1.

    >>> import jax, jax.numpy as jnp
    >>> matrix, _ = DirectCopy(dim=2, epsilon=0.1).rule(jnp.diag(jnp.array([4.0, 2.0])))
    >>> [round(float(p), 3) for p in jnp.diag(matrix)]
    [1.1, 0.6]
    """

    power: Any = eqx.field(default=1.0, kw_only=True)

    def __check_init__(self):
        require("DirectCopy", "power", "1", self.power, lambda p: p == 1, "DirectSet takes any power.")

    def rule(self, correlation: Float[Array, "d d"]) -> tuple[Float[Array, "d d"], Bool[Array, ""]]:
        """W_p from F, and whether F is nothing any more."""
        symmetric = 0.5 * (correlation + correlation.T)
        largest = spectral_norm(symmetric)
        eye = jnp.eye(self.dim, dtype=symmetric.dtype)
        collapsed = largest < COLLAPSED
        safe = jnp.where(collapsed, jnp.ones_like(largest), largest)
        scaled = (
            symmetric / safe + self.epsilon * eye if self.scale == "max" else symmetric + self.epsilon * largest * eye
        )
        return jnp.where(collapsed, self.epsilon * eye, scaled), collapsed


class _Untouched(eqx.Module):
    """What an optimiser trains, or nothing at all, needs no update from the outputs."""

    dim: int = eqx.field(static=True)

    def __check_init__(self):
        require(type(self).__name__, "dim", "an integer >= 1", self.dim, _is_count)

    @abc.abstractmethod
    def init(self, key: Array) -> Any:
        """What the optimiser trains."""

    @abc.abstractmethod
    def __call__(self, state: Any, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The prediction of every row of z."""

    def trained(self, state: Any) -> Any:
        """All of it."""
        return jax.tree.map(eqx.is_inexact_array, state)

    def update(self, state: Any, z1: Array, z2: Array) -> tuple[Any, PredictorInfo]:
        """Nothing to do."""
        del z2
        no = jnp.asarray(False)
        return state, PredictorInfo(no, no, jnp.asarray(2 * z1.shape[0], jnp.int32), jnp.asarray(int(Status.OK)))


class Identity(_Untouched):
    """No predictor, W_p = 1: what collapses. The baseline that shows why one is needed.

    dim: D, length of the outputs z, >= 1.

    >>> import jax, jax.numpy as jnp
    >>> predictor = Identity(dim=2)
    >>> predictor(predictor.init(jax.random.key(0)), jnp.ones((1, 2))).tolist()
    [[1.0, 1.0]]
    """

    def init(self, key: Array) -> None:
        """Nothing."""
        del key

    def __call__(self, state: None, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Z itself."""
        del state
        return z


class Linear(_Untouched):
    """A linear predictor without bias, p = W_p z, trained by the optimiser: the paper's baseline.

    dim: D, length of the outputs z, >= 1.
    symmetric: use (W_p + W_pᵀ)/2, as the theory assumes.

    >>> import jax, jax.numpy as jnp
    >>> predictor = Linear(dim=2, symmetric=True)
    >>> predictor(jnp.array([[1.0, 2.0], [0.0, 1.0]]), jnp.array([[1.0, 0.0]])).tolist()
    [[1.0, 1.0]]
    """

    symmetric: bool = eqx.field(static=True, default=False, kw_only=True)

    def init(self, key: Array) -> Float[Array, "d d"]:
        """Uniform in ±1/√D, as torch's and Equinox's linear layers."""
        bound = self.dim**-0.5
        return jax.random.uniform(key, (self.dim, self.dim), minval=-bound, maxval=bound)

    def __call__(self, state: Float[Array, "d d"], z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """W_p z, row by row."""
        matrix = 0.5 * (state + state.T) if self.symmetric else state
        return z @ matrix.T


class TwoLayer(_Untouched):
    """BYOL's predictor: linear, batch normalisation over the batch at hand, ReLU, linear; trained.

    p = W_2 relu(scale · normalised(W_1 z) + shift)   (Grill et al., NeurIPS 2020)

    dim: D, length of the outputs z, >= 1.
    hidden: units in between, >= 1.

    >>> import jax, jax.numpy as jnp
    >>> predictor = TwoLayer(dim=2, hidden=8)
    >>> predictor(predictor.init(jax.random.key(0)), jnp.eye(2)).shape
    (2, 2)
    """

    hidden: int = eqx.field(static=True, default=512, kw_only=True)

    def __check_init__(self):
        require("TwoLayer", "hidden", "an integer >= 1", self.hidden, _is_count)

    def init(self, key: Array) -> dict[str, Array]:
        """Uniform in ±1/√inputs."""
        first, last = jax.random.split(key)
        draw = lambda k, m, n: jax.random.uniform(k, (m, n), minval=-(m**-0.5), maxval=m**-0.5)  # noqa: E731
        return {
            "first": draw(first, self.dim, self.hidden),
            "scale": jnp.ones(self.hidden),
            "shift": jnp.zeros(self.hidden),
            "last": draw(last, self.hidden, self.dim),
        }

    def __call__(self, state: dict[str, Array], z: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The network, row by row but for the normalisation."""
        hidden = z @ state["first"]
        centred = hidden - hidden.mean(axis=0, keepdims=True)
        hidden = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=0, keepdims=True) + 1e-5)
        return jax.nn.relu(hidden * state["scale"][None, :] + state["shift"][None, :]) @ state["last"]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
