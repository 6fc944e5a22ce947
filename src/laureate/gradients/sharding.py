"""Particles split over devices: states and noise stay where they are, one theta-sized reduction an update."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from laureate._core import require
from laureate.gradients.antithetic import Antithetic, Shard
from laureate.gradients.reports import EstimatorState, Info

__all__ = ["Sharded"]


class Sharded(eqx.Module):
    """Sharded."""

    estimator: Antithetic
    mesh: Mesh = eqx.field(static=True)
    axis: str = eqx.field(static=True, default="pairs")

    def __check_init__(self):
        require(
            "Sharded", "axis", f"an axis of the mesh {self.mesh.axis_names}", self.axis, self.mesh.shape.__contains__
        )
        require(
            "Sharded",
            "estimator.num_pairs",
            f"a multiple of the {self.mesh.shape[self.axis]} devices on axis {self.axis!r}",
            self.estimator.num_pairs,
            lambda n: n % self.mesh.shape[self.axis] == 0,
        )

    def init(self, key: Array, theta: Any) -> EstimatorState:
        """As the estimator's, with the pairs split over the axis."""
        run = lambda key, theta: self.estimator.local_init(key, theta, self._shard())  # noqa: E731
        return self._over_devices(run, (Spec(), Spec()), self._state_spec())(key, theta)

    def step(self, key: Array, theta: Any, state: EstimatorState, batches: Any = None) -> tuple[Any, Any, Info]:
        """As the estimator's: the same gradient, up to the order in which numbers are added."""
        data = Spec(None, self.axis) if self.estimator.batches_per_pair else Spec()
        info = Info(*[Spec()] * 7, Spec(self.axis))
        run = lambda *args: self.estimator.local_step(*args, self._shard())  # noqa: E731
        step = self._over_devices(run, (Spec(), Spec(), self._state_spec(), data), (Spec(), self._state_spec(), info))
        return step(key, theta, state, batches)

    def _shard(self) -> Shard:
        local = self.estimator.num_pairs // self.mesh.shape[self.axis]
        return Shard(jax.lax.axis_index(self.axis) * local + jnp.arange(local), self.axis)

    def _state_spec(self) -> EstimatorState:
        return EstimatorState(pairs=Spec(self.axis), center=Spec(), last_key=Spec())

    def _over_devices(self, run, in_specs, out_specs):
        return jax.shard_map(run, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
