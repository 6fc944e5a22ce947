"""The alternating sweep that both regressions share: one core at a time by least squares, there and back again.

With all other cores orthonormal, the best core i is a linear least-squares problem in r·m·r unknowns (and one for each
global function, as the terminal condition is): A[k, (a, j, b)] = L_i[k, a] φ_j(X_k,i) R_i[k, b].
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float, Int

from laureate._core import Status
from laureate.pde.bases import Basis
from laureate.pde.tensor_train import rank_caps, reverse

__all__ = ["FitInfo", "Rules", "Samples", "descend"]


class Samples(NamedTuple):
    """What is fitted: features [d, k, m] of the inputs, global functions [k, e] of the inputs, targets [k]."""

    features: Float[Array, "d k m"]
    extras: Float[Array, "k e"]
    targets: Float[Array, " k"]

    @classmethod
    def of(cls, basis: Basis, inputs: Array, targets: Array, extras: Array | None = None) -> "Samples":
        """The samples of plain inputs [k, d]."""
        if inputs.ndim != 2 or targets.shape != inputs.shape[:1]:
            raise ValueError(f"inputs must be [k, d] and targets [k]; got {inputs.shape} and {targets.shape}.")
        return cls(basis(inputs.T), jnp.zeros((len(inputs), 0), inputs.dtype) if extras is None else extras, targets)


class FitInfo(NamedTuple):
    """How a regression went.

    residual: root mean square, relative to that of the targets. test_residual: the same of test samples; where there
    are none, ``residual`` again. cost: sweeps. ranks: in use at each bond, [bonds]. status: NOT_CONVERGED where sweeps
    ran out before the residual stalled, DIVERGED where something is not finite.
    """

    residual: Float[Array, ""]
    test_residual: Float[Array, ""]
    cost: Int[Array, ""]
    ranks: Int[Array, " bonds"]
    status: Int[Array, ""]


class Rules(NamedTuple):
    """How to sweep. ``adaptive`` and ``max_sweeps`` are compiled in; the rest may be traced."""

    ridge: Array | float
    damping: Array | float
    tolerance: Array | float
    max_sweeps: int
    patience: int
    adaptive: bool
    shrink: Array | float = 1.05


class _Train(NamedTuple):
    """Cores with what SALSA must know of every bond 0 … d: slots in use and singular values."""

    cores: Float[Array, "d r m r"]
    live: Int[Array, " bonds"]
    sigma: Float[Array, "bonds r"]

    def reversed(self) -> "_Train":
        return _Train(reverse(self.cores), self.live[::-1], self.sigma[::-1])


class _Loop(NamedTuple):
    train: _Train
    right: Float[Array, "d k r"]
    extras: Float[Array, " e"]
    omega: Float[Array, ""]
    floor: Float[Array, ""]
    residual: Float[Array, ""]
    best_train: _Train
    best_extras: Float[Array, " e"]
    best: Float[Array, ""]
    best_residual: Float[Array, ""]
    stalled: Int[Array, ""]
    unchanged: Int[Array, ""]
    sweeps: Int[Array, ""]
    finite: Bool[Array, ""]


def stacks(cores: Float[Array, "d r m r"], features: Float[Array, "d k m"]) -> tuple[Array, Array]:
    """The values of the train at all samples, and what stands to the right of each core, R_i[k, b]."""
    _, rank, size, _ = cores.shape

    def body(vectors, inputs):
        core, feature = inputs
        product = (feature[:, :, None] * vectors[:, None, :]).reshape(-1, size * rank)
        return product @ core.reshape(rank, size * rank).T, vectors

    ends = jnp.zeros((features.shape[1], rank), cores.dtype).at[:, 0].set(1.0)
    first, right = lax.scan(body, ends, (cores, features), reverse=True)
    return first[:, 0], right


def _solve(left, feature, right, samples: Samples, used, penalty, ridge):
    """The best core, given the rest: (BᵀB/K + penalty) w = Bᵀy/K with B = [L ⊗ φ ⊗ R, extras]."""
    count, size = feature.shape
    rank = left.shape[1]
    product = (left[:, :, None, None] * feature[:, None, :, None]) * right[:, None, None, :]
    matrix = jnp.concatenate([product.reshape(count, rank * size * rank), samples.extras], axis=1)
    normal = matrix.T @ matrix / count
    free = jnp.ones(samples.extras.shape[1], bool)
    used = jnp.concatenate([used.ravel(), free])
    penalty = jnp.concatenate([penalty.ravel(), jnp.zeros(samples.extras.shape[1], normal.dtype)])
    # A slot beyond the rank has a zero row: one on its diagonal keeps the system regular and its weight zero.
    normal = normal + jnp.diag(jnp.where(used, penalty, 1.0))
    # Scaled to a unit diagonal, Cholesky stands much worse conditioned features, as of paths near their start.
    scale = 1 / jnp.sqrt(jnp.maximum(jnp.diagonal(normal), 1e-300))
    scaled = normal * scale[:, None] * scale[None, :] + ridge * jnp.eye(len(scale), dtype=normal.dtype)
    factor = jnp.linalg.cholesky(scaled)
    weights = scale * cho_solve((factor, True), scale * (matrix.T @ samples.targets / count))
    weights = jnp.where(used, weights, 0.0)
    return weights[: product[0].size].reshape(rank, size, rank), weights[product[0].size :], matrix @ weights


def _half_sweep(train: _Train, right: Array, samples: Samples, backward, caps, rules: Rules, omega, floor, grow, damp):
    """Solve core after core from the first to the last, leaving orthonormal cores behind.

    backward: whether the train is reversed, so that its first core belongs to the last coordinate.
    """
    dimension, rank, size, _ = train.cores.shape
    slots = jnp.arange(rank)
    count = samples.targets.shape[0]
    direction = jnp.asarray(np.random.default_rng(0).standard_normal(rank * size), train.cores.dtype)

    def weight(sigma, inner):  # ω² / max(s_min, σ)², per sample; the two ends of the train are no bonds
        return jnp.where(inner, omega**2 / count / jnp.maximum(floor, sigma) ** 2, 0.0)

    def body(carry, inputs):
        left, live_left, sigma_left = carry
        index, right_vectors, live_right, sigma_right, cap = inputs
        feature = samples.features[jnp.where(backward, dimension - 1 - index, index)]
        in_left, in_right = slots < live_left, slots < live_right
        used = jnp.broadcast_to(in_left[:, None, None] & in_right[None, None, :], (rank, size, rank))
        penalty = jnp.full((rank, size, rank), damp, left.dtype)
        if rules.adaptive:
            penalty += weight(sigma_left, index > 0)[:, None, None]
            penalty += weight(sigma_right, index < dimension - 1)[None, None, :]
        core, extras, _ = _solve(left, feature, right_vectors, samples, used, penalty, rules.ridge)

        unfolded = core.reshape(rank * size, rank)
        if rules.adaptive:
            q, sigma, _ = jnp.linalg.svd(unfolded, full_matrices=False)
            # Keep what exceeds s_min and one slot more, the scout through which the rank may grow.
            strong = jnp.sum(sigma > floor).astype(live_right.dtype)
            live = jnp.minimum(jnp.where(grow, jnp.maximum(live_right, strong + 1), live_right), cap)
            live = jnp.maximum(jnp.minimum(live, strong + 1), 1)
            rows = jnp.broadcast_to(in_left[:, None], (rank, size)).ravel()
            kept = jnp.where((slots < live_right)[None, :], q, 0.0)
            scout = jnp.where(rows, direction, 0.0)
            for _ in range(2):  # twice is enough for orthogonality to rounding
                scout = scout - kept @ (kept.T @ scout)
            scout = scout / jnp.maximum(jnp.linalg.norm(scout), 1e-300)
            fresh = (slots >= live_right) & (slots < live)
            q = jnp.where(fresh[None, :], scout[:, None], kept)
            sigma = jnp.where(fresh, 0.01 * floor, sigma)
        else:
            q, _ = jnp.linalg.qr(unfolded)
            live, sigma = live_right, sigma_right
        q = jnp.where((slots < live)[None, :], q, 0.0)
        last = index == dimension - 1
        q = jnp.where(last, unfolded, q).reshape(core.shape)
        after = (left[:, :, None] * feature[:, None, :]).reshape(count, rank * size) @ q.reshape(rank * size, rank)
        live = jnp.where(last, 1, live).astype(live_left.dtype)
        return (after, live, sigma), (q, live, sigma, left, extras)

    ends = jnp.zeros((count, rank), train.cores.dtype).at[:, 0].set(1.0)
    carry = (ends, train.live[0], train.sigma[0])
    inputs = (jnp.arange(dimension), right, train.live[1:], train.sigma[1:], caps[1:])
    (values, *_), (cores, live, sigma, left, extras) = lax.scan(body, carry, inputs)
    swept = _Train(
        cores, jnp.concatenate([train.live[:1], live]), jnp.concatenate([train.sigma[:1], sigma]).astype(cores.dtype)
    )
    return swept, left, extras[-1], values[:, 0] + samples.extras @ extras[-1]


def descend(
    cores: Float[Array, "d r m r"], samples: Samples, test: Samples | None, rules: Rules
) -> tuple[Array, Array, FitInfo]:
    """Sweep until the residual (of the test samples, where there are any) stalls; the best train met on the way."""
    dimension, rank, size, _ = cores.shape
    scale = jnp.sqrt(jnp.mean(samples.targets**2))
    scale = jnp.where(scale > 0, scale, 1.0)
    samples = samples._replace(targets=samples.targets / scale)
    test = None if test is None else test._replace(targets=test.targets / scale)
    if size == 1 or dimension == 1:
        return _linear(cores, samples, test, rules, scale)

    caps = jnp.asarray(rank_caps(dimension, size, rank))  # the same read from either end
    live = jnp.sum(jnp.any(cores != 0, axis=(2, 3)), axis=1, dtype=jnp.int32)  # by rows: the first core may be zero
    live = jnp.concatenate([jnp.ones(1, jnp.int32), live[1:], jnp.ones(1, jnp.int32)])
    train = _Train(_right_orthogonal(cores, live), live, jnp.ones((dimension + 1, rank), cores.dtype))
    one, zero = jnp.ones((), cores.dtype), jnp.zeros((), jnp.int32)
    nothing = jnp.zeros(samples.extras.shape[1], cores.dtype)
    start = _Loop(
        *(train, stacks(train.cores, samples.features)[1], nothing, one, 0.2 * one, one),
        *(train, nothing, jnp.inf * one, jnp.inf * one, zero, zero, zero, jnp.array(True)),
    )

    def going(loop: _Loop):
        exact = loop.best_residual < 1e-15
        return (loop.sweeps < rules.max_sweeps) & (loop.stalled < rules.patience) & loop.finite & ~exact

    def body(loop: _Loop):
        grow = loop.unchanged >= 2
        damp = rules.damping * loop.residual / samples.targets.shape[0]

        def half(carry, backward):
            arguments = (samples, backward, caps, rules, loop.omega, loop.floor, grow, damp)
            train, left, extras, values = _half_sweep(carry[0], carry[1], *arguments)
            # Read from the other end, what stood to the left of a core stands to its right.
            return (train.reversed(), jnp.flip(left, axis=0), extras, values), None

        # A scan over there and back, so that the half sweep is compiled once.
        carry = (loop.train, loop.right, loop.extras, samples.targets)
        (swept, right, extras, values), _ = lax.scan(half, carry, jnp.array([False, True]))
        residual = jnp.sqrt(jnp.mean((values - samples.targets) ** 2))
        score = residual
        if test is not None:
            held_out = stacks(swept.cores, test.features)[0] + test.extras @ extras
            score = jnp.sqrt(jnp.mean((held_out - test.targets) ** 2))
        finite = jnp.isfinite(residual) & jnp.isfinite(score) & jnp.all(jnp.isfinite(swept.cores))
        changed = jnp.any(swept.live != loop.train.live)
        improved = finite & (score < loop.best)
        decrease = jnp.clip((loop.residual - residual) / jnp.maximum(loop.residual, 1e-300), 0.0, 1.0)
        progress = improved & (score < (1 - rules.tolerance) * loop.best)
        omega = jnp.minimum(loop.omega / rules.shrink, residual)
        # s_min = 0.2 min(ω, relative decrease): slots below it are noise as yet
        floor = jnp.maximum(0.2 * jnp.minimum(omega, decrease), 1e-10)

        def best(new, old):
            return jax.tree.map(lambda a, b: jnp.where(improved, a, b), new, old)

        return _Loop(
            train=swept,
            right=right,
            extras=extras,
            omega=omega,
            floor=floor,
            residual=residual,
            best_train=best(swept, loop.best_train),
            best_extras=best(extras, loop.best_extras),
            best=best(score, loop.best),
            best_residual=best(residual, loop.best_residual),
            stalled=jnp.where(progress | changed, 0, loop.stalled + 1),
            unchanged=jnp.where(changed, 0, loop.unchanged + 1),
            sweeps=loop.sweeps + 1,
            finite=finite,
        )

    loop = lax.while_loop(going, body, start)
    status = jnp.where(
        ~loop.finite,
        Status.DIVERGED,
        jnp.where((loop.stalled < rules.patience) & (loop.best_residual >= 1e-15), Status.NOT_CONVERGED, Status.OK),
    )
    info = FitInfo(loop.best_residual, loop.best, loop.sweeps, loop.best_train.live[1:-1], status.astype(jnp.int32))
    return loop.best_train.cores.at[0].multiply(scale), loop.best_extras * scale, info


def _linear(cores: Array, samples: Samples, test: Samples | None, rules: Rules, scale: Array):
    """One coordinate, or the constant alone: the model is linear, and one solve is the whole regression."""
    dimension, rank, size, _ = cores.shape
    ends = jnp.zeros((samples.targets.shape[0], rank), cores.dtype).at[:, 0].set(1.0)
    feature = samples.features[0] if dimension == 1 else jnp.ones_like(samples.features[0])
    corner = (jnp.arange(rank) == 0)[:, None, None] & (jnp.arange(rank) == 0)[None, None, :]
    used = jnp.broadcast_to(corner, (rank, size, rank))
    zero = jnp.zeros(used.shape, cores.dtype)
    core, extras, values = _solve(ends, feature, ends, samples, used, zero, rules.ridge)
    residual = jnp.sqrt(jnp.mean((values - samples.targets) ** 2))
    if size > 1:  # once more, now that the residual is known by which to damp
        damp = zero + rules.damping * residual / samples.targets.shape[0]
        core, extras, values = _solve(ends, feature, ends, samples, used, damp, rules.ridge)
        residual = jnp.sqrt(jnp.mean((values - samples.targets) ** 2))
    score = residual
    if test is not None:
        held_out = (test.features[0] if dimension == 1 else jnp.ones_like(test.features[0])) @ core[0, :, 0]
        score = jnp.sqrt(jnp.mean((held_out + test.extras @ extras - test.targets) ** 2))
    ones = jnp.zeros_like(cores).at[:, 0, 0, 0].set(1.0)
    status = jnp.where(jnp.isfinite(residual), Status.OK, Status.DIVERGED)
    ranks = jnp.ones(dimension - 1, jnp.int32)
    info = FitInfo(residual, score, jnp.ones((), jnp.int32), ranks, status.astype(jnp.int32))
    return ones.at[0].set(core * scale), extras * scale, info


def _right_orthogonal(cores: Array, live: Array) -> Array:
    """Cores 2 … d orthonormal from the right, slots in use only; the first is left to be solved for."""
    _, rank, size, _ = cores.shape
    slots = jnp.arange(rank)

    def body(push, inputs):
        core, live_left = inputs  # of the reversed train: push comes from the right, the column index is the left bond
        core = jnp.tensordot(push, core, axes=1)
        q, r = jnp.linalg.qr(core.reshape(rank * size, rank))
        q = jnp.where((slots < live_left)[None, :], q, 0.0)
        return r, q.reshape(core.shape)

    start = jnp.eye(rank, dtype=cores.dtype)
    swept = lax.scan(body, start, (reverse(cores), live[:-1][::-1]))[1]
    return reverse(swept).at[0].set(cores[0])


def enough_samples(rank: int, size: int, dimension: int, extras: int) -> int:
    """Three samples an unknown of the largest local problem: how many are needed."""
    caps = np.asarray(rank_caps(dimension, size, rank))
    return int(3 * (np.max(caps[:-1] * caps[1:]) * size + extras))
