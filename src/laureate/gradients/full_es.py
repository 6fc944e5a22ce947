"""Evolution strategies over whole episodes."""

from typing import Any

import equinox as eqx
from jax import Array

from laureate._core import require
from laureate.gradients.antithetic import (
    Antithetic,
    Shard,
    check_step,
    drive,
    estimate,
    unstarted,
)
from laureate.gradients.reports import EstimatorState, Info, checked, unused_key

__all__ = ["FullES"]


class FullES(Antithetic):
    """Full ES."""

    truncation: int | None = eqx.field(static=True, kw_only=True, default=None)

    def __check_init__(self):
        require("FullES", "horizon", "an integer, or (low, high)", self.horizon, lambda h: h is not None)

    @property
    def window(self) -> int:
        """A step is a whole episode."""
        return self.horizon[1] if isinstance(self.horizon, tuple) else self.horizon

    @property
    def begins_inside(self) -> bool:
        """A step is one episode, never two."""
        return False

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """Nothing is carried."""
        return EstimatorState(last_key=unused_key(self, key))

    def local_step(self, key, theta, state, batches, shard) -> tuple[Any, EstimatorState, Info]:
        """One whole episode of the pairs of one device."""
        theta, has_done = check_step(self, theta, None, batches, shard)
        pairs, tally = drive(self, key, theta, unstarted(self, key, theta, shard, clock=0), batches, shard, has_done)
        gradient, info = estimate(self, theta, pairs, tally, shard, 2 * self.num_pairs * self.window)
        gradient, last_key = checked(self, key, gradient, state, info)
        return gradient, EstimatorState(last_key=last_key), info
