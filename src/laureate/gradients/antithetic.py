"""What the evolution-strategies estimators share: their settings, and the mean over pairs.

Every estimator has two rules of its own: when the noise ε is drawn (``redraw_every``), and with which sum of noise ξ
the difference of two losses is weighted (``accumulate``)::

    g = 1/(2N) Σ_i (L⁺_i − L⁻_i) ξ_i/σ²

The score Σ_τ ε_τ/σ_τ² is accumulated instead of ξ, so that σ may change inside an episode.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.flatten_util import ravel_pytree

from laureate._core import as_key, require
from laureate.gradients.episodes import Horizon, as_horizon, check_episodes, in_lockstep, is_count, where
from laureate.gradients.noise import Shard, per_leaf, wide
from laureate.gradients.pairs import EVERY_TRUNCATION, Pairs, Tally
from laureate.gradients.reports import EstimatorState, Info, all_finite, as_cost, checked, status_of
from laureate.gradients.unroll import adopt, as_theta, check_batches, check_unroll, differences


def as_sigma(sigma: Any) -> Any:
    """Sigma as arrays, so that a new value never recompiles."""
    return jax.tree.map(jnp.asarray, sigma)


class Antithetic(eqx.Module):
    """The settings of every antithetic estimator; ``PersistentES`` says what they mean."""

    unroll: Any = eqx.field(converter=adopt)
    num_pairs: int = eqx.field(static=True, kw_only=True)
    truncation: int | None = eqx.field(static=True, kw_only=True, default=None)
    horizon: Horizon = eqx.field(static=True, kw_only=True, converter=as_horizon)
    sigma: Any = eqx.field(kw_only=True, converter=as_sigma)
    phase: str = eqx.field(static=True, kw_only=True, default="lockstep")
    telescope: bool | str = eqx.field(static=True, kw_only=True, default=False)
    restart: str = eqx.field(static=True, kw_only=True, default="inside")
    batches_per_pair: bool = eqx.field(static=True, kw_only=True, default=False)
    noise: str = eqx.field(static=True, kw_only=True, default="gaussian")
    checked: bool = eqx.field(static=True, kw_only=True, default=False)

    whole_episodes: ClassVar[bool]  # whether a step is one whole episode, instead of one truncation
    has_center: ClassVar[bool]  # whether one more episode runs, with unperturbed parameters

    def __check_init__(self):
        owner = type(self).__name__
        require(owner, "num_pairs", "an integer >= 1", self.num_pairs, is_count)
        for sigma in jax.tree.leaves(self.sigma):
            value = sigma if isinstance(sigma, Tracer) else np.asarray(sigma).tolist()
            require(owner, "sigma", "> 0 and finite", value, lambda s: np.all(np.isfinite(s)) and np.min(s) > 0)
        remedy = "The weight ε/σ² is the score function of a Gaussian; another noise has another."
        require(owner, "noise", "'gaussian'", self.noise, lambda n: n == "gaussian", remedy)
        check_episodes(owner, self.window, self.horizon, self.phase, self.restart, self.telescope)

    @property
    @abstractmethod
    def redraw_every(self) -> int | None:
        """When noise is drawn: after so many inner steps of an episode, EVERY_TRUNCATION or ONCE_AN_EPISODE."""

    @abstractmethod
    def accumulate(self, past: Any, drawn: Any) -> Any:
        """How noise accumulates: the score ξ/σ² after a draw, from that before it (0 at a reset) and the draw's own."""

    @abstractmethod
    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """``init`` for the pairs of one device."""

    @abstractmethod
    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """``step`` for the pairs of one device."""

    def init(self, key: Array, theta: Any) -> EstimatorState:
        """The state before the first step. Episodes begin in the first step, with that step's noise."""
        theta = as_theta(type(self).__name__, theta)
        per_leaf(type(self).__name__, self.sigma, theta)
        return self.local_init(as_key(key), theta, Shard(jnp.arange(self.num_pairs), None))

    def step(self, key: Array, theta: Any, state: EstimatorState, batches: Any = None) -> tuple[Any, Any, Info]:
        """One gradient estimate from the next ``truncation`` inner steps of every particle.

        key: a fresh one for every step.
        theta: the parameters now; any pytree of floats.
        batches: None, or data for the unroll's steps with leading axis [truncation] (the same for all pairs), or
            [truncation, num_pairs] with ``batches_per_pair=True``. Both signs of a pair always see the same.

        Returns the gradient (like theta, for any Optax optimiser), the next state, and an ``Info``.
        """
        return self.local_step(as_key(key), theta, state, batches, Shard(jnp.arange(self.num_pairs), None))

    @property
    def window(self) -> Any:
        """Inner steps of one ``step``."""
        if not self.whole_episodes:
            return self.truncation
        return self.horizon[-1] if isinstance(self.horizon, tuple) else self.horizon

    @property
    def begins_inside(self) -> bool:
        """Whether an episode may begin inside a step; otherwise a pair that is through waits for the next step."""
        return self.restart == "inside" and not self.whole_episodes


def check_step(est: Antithetic, theta: Any, pairs: Pairs | None, batches: Any, shard: Shard) -> tuple[Any, bool]:
    """Theta as arrays, and whether the unroll says ``done``; raises where theta, state, unroll and data do not fit."""
    owner = type(est).__name__
    theta = as_theta(owner, theta)
    per_leaf(owner, est.sigma, theta)
    if pairs is not None:
        built = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), pairs.score)
        given = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, wide(leaf)), theta)
        if problems := differences(built, given):
            built_for = f"{owner}.step: the estimator state was built for another theta"
            raise ValueError(f"{built_for}; {'; '.join(problems)}. Call init again.")
    leading = (est.window, shard.pairs.size) if est.batches_per_pair else (est.window,)
    meaning = "truncation, pairs" if est.batches_per_pair else "truncation"
    return theta, check_unroll(est.unroll, theta, check_batches(owner, batches, leading, meaning))


def estimate(est: Antithetic, theta: Any, pairs: Pairs, tally: Tally, shard: Shard) -> tuple[Any, Info]:
    """g = 1/(2N) Σ_i (L⁺_i − L⁻_i) ξ_i/σ² over the pairs with finite losses."""
    finite = is_finite(tally)
    weight = jnp.where(finite, tally.weight, jnp.zeros_like(tally.weight))
    gradient = jax.tree.map(lambda score: weighted_sum(weight, score), pairs.score)
    if tally.total is not None:
        earlier = where(finite, tally.total, jax.tree.map(jnp.zeros_like, tally.total))
        gradient = jax.tree.map(lambda g, total: g + total.sum(axis=0), gradient, earlier)
    return mean_over_pairs(est, theta, gradient, pairs, tally, shard)


def is_finite(tally: Tally) -> Array:
    """Which pairs had only finite losses in this truncation."""
    return jnp.isfinite(tally.difference) & jnp.isfinite(tally.loss)


def weighted_sum(weight: Array, score: Array) -> Array:
    """Σ_i w_i ξ_i/σ² over the pairs here, as one product."""
    return jnp.tensordot(weight.astype(score.dtype), score, axes=1, precision=jax.lax.Precision.HIGHEST)


def mean_over_pairs(
    est: Antithetic, theta: Any, sums: Any, pairs: Pairs, tally: Tally, shard: Shard, center: Any = None
) -> tuple[Any, Info]:
    """From sums over the pairs here to the mean over all finite pairs everywhere, in one reduction; and the report.

    center: what the centre's episode adds to that mean, like theta; None where there is no centre.
    """
    finite = is_finite(tally)
    sigma = per_leaf(type(est).__name__, est.sigma, theta)
    square = lambda score, s: jnp.sum((score * s.astype(score.dtype)) ** 2).astype(tally.loss.dtype)  # noqa: E731
    everything = (
        sums,
        jnp.sum(finite, dtype=jnp.int32),
        jnp.sum(jnp.where(finite, tally.loss, jnp.zeros_like(tally.loss))),
        jnp.sum(jnp.where(finite, tally.alive, jnp.zeros_like(tally.alive)), dtype=jnp.int32),
        jnp.sum(tally.done, dtype=jnp.int32),
        jnp.sum(tally.unequal > 0, dtype=jnp.int32),
        sum(jax.tree.leaves(jax.tree.map(square, pairs.score, sigma))),
    )
    if shard.axis is not None:  # packed into one vector, so that it is one message
        packed, unpack = ravel_pytree(everything)
        everything = unpack(jax.lax.psum(packed, shard.axis))
    sums, num_finite, loss, alive, done, unequal, squares = everything
    twice = 2 * jnp.maximum(num_finite, 1)
    gradient = jax.tree.map(lambda leaf, x: (leaf / twice.astype(leaf.dtype)).astype(x.dtype), sums, theta)
    usable = num_finite > 0
    if center is not None:
        usable = usable & all_finite(center)
        gradient = jax.tree.map(lambda g, a: jnp.where(usable, g + a, jnp.zeros_like(g)), gradient, center)
    usable = usable & all_finite(gradient)  # a sum of finite numbers may overflow, in float16 above all
    size = sum(leaf.size for leaf in jax.tree.leaves(theta))
    info = Info(
        loss=loss / jnp.maximum(alive, 1).astype(loss.dtype),
        cost=as_cost((2 * est.num_pairs + est.has_center) * est.window),
        status=status_of(usable),
        num_nonfinite=est.num_pairs - num_finite,
        num_done=done,
        num_unequal=unequal,
        noise_rms=jnp.sqrt(squares / (est.num_pairs * size)),
        difference=tally.difference,
    )
    return jax.tree.map(lambda leaf: jnp.where(usable, leaf, jnp.zeros_like(leaf)), gradient), info


def carried(est: Antithetic, pairs: Pairs, tally: Tally, has_done: bool) -> Pairs:
    """The pairs for the next step.

    A pair that blew up begins anew, unless all episodes run in lockstep: then it waits for the common end.
    """
    episode = pairs.episode
    if not in_lockstep(est.horizon, est.phase, has_done):
        episode = eqx.tree_at(lambda e: e.over, episode, episode.over | ~is_finite(tally))
    return Pairs(episode, pairs.score, None if est.redraw_every == EVERY_TRUNCATION else pairs.noise)


def finish(
    est: Antithetic,
    key: Array,
    gradient: Any,
    info: Info,
    state: EstimatorState,
    *,
    pairs: Any = None,
    center: Any = None,
) -> tuple[Any, EstimatorState, Info]:
    """What ``step`` returns; in checked mode this is where it raises."""
    gradient, last_key = checked(est, key, gradient, state, info)
    return gradient, EstimatorState(pairs, center, last_key), info
