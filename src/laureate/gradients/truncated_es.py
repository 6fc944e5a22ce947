"""Truncated evolution strategies: the biased baseline."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate.gradients.antithetic import (
    Antithetic,
    Pairs,
    Shard,
    check_step,
    drive,
    estimate,
)
from laureate.gradients.episodes import Episode
from laureate.gradients.reports import EstimatorState, Info, checked, unused_key
from laureate.gradients.workers import run_worker, unstarted_worker

__all__ = ["TruncatedES"]


class TruncatedES(Antithetic):
    """TES."""

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """One state, the same on every device."""
        return EstimatorState(center=unstarted_worker(self, key, theta), last_key=unused_key(self, key))

    def local_step(self, key, theta, state, batches, shard) -> tuple[Any, EstimatorState, Info]:
        """``step`` for the pairs of one device."""
        theta, has_done = check_step(self, theta, None, batches, shard)
        pairs, tally = drive(self, key, theta, around(state.center, theta, shard), batches, shard, has_done)
        gradient, info = estimate(self, theta, pairs, tally, shard, (2 * self.num_pairs + 1) * self.window)
        shared = jax.tree.map(lambda leaf: leaf[:, 0], batches) if self.batches_per_pair else batches
        center, _ = run_worker(self, center_key(self, key), theta, state.center, shared, has_done)
        gradient, last_key = checked(self, key, gradient, state, info)
        return gradient, EstimatorState(center=center, last_key=last_key), info


def center_key(est: Antithetic, key: Array) -> Array:
    """The centre's own: the index after the last pair's."""
    return jax.random.fold_in(key, est.num_pairs)


def around(center: Episode, theta: Any, shard: Shard) -> Pairs:
    """All pairs at the centre's state, with no noise behind them."""

    def place(i):
        twice = lambda leaf: jnp.stack([leaf, leaf])  # noqa: E731
        return Episode(
            inner=jax.tree.map(twice, center.inner),
            key=jax.random.fold_in(center.key, i),
            clock=center.clock,
            length=center.length,
            over=center.over,
            ended=twice(center.ended),
            previous=twice(center.previous),
        )

    zeros = jax.tree.map(lambda leaf: jnp.zeros((shard.pairs.size, *leaf.shape), leaf.dtype), theta)
    return Pairs(jax.vmap(place)(shard.pairs), zeros, None)
