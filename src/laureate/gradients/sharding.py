"""Particles split over devices: states and noise stay where they are, one theta-sized reduction an update."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from laureate._core import as_key, require
from laureate.gradients.antithetic import Antithetic
from laureate.gradients.noise import Shard
from laureate.gradients.reports import EstimatorState, Info

__all__ = ["Sharded"]

REDUCED = ("loss", "cost", "status", "num_nonfinite", "num_done", "num_unequal", "noise_rms")


class Sharded(eqx.Module):
    """Any evolution-strategies estimator with its pairs split over an axis of a device mesh.

    Particles are independent, so inner states and noise never travel; an update is one reduction of a tree like theta
    over all devices. Noise is drawn by a pair's global index: the gradient is that of the estimator on one device, up
    to the order in which numbers are added.

    estimator: with ``num_pairs`` a multiple of the axis' devices.
    mesh: of devices, also of several hosts under ``jax.distributed``.
    axis: the mesh axis the pairs are split over. A centre (truncated ES, PES-A) is computed on every device.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> from laureate.gradients import PersistentES
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    >>> estimator = PersistentES(Decay(), num_pairs=512, truncation=5, horizon=50, sigma=0.1)
    >>> estimator, theta = Sharded(estimator, mesh), jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> bool(gradient > 0)
    True
    """

    estimator: Antithetic
    mesh: Mesh = eqx.field(static=True)
    axis: str = eqx.field(static=True, default="pairs")

    def __check_init__(self):
        names = self.mesh.axis_names
        require("Sharded", "axis", f"one of the mesh's axes {names}", self.axis, lambda axis: axis in names)
        devices = self.mesh.shape[self.axis]
        rule = f"a multiple of the {devices} devices on axis {self.axis!r}"
        require("Sharded", "estimator.num_pairs", rule, self.estimator.num_pairs, lambda n: n % devices == 0)
        if self.estimator.has_center:  # which must be the same on all devices
            separate = self.estimator.batches_per_pair
            remedy = "The shared state needs shared data."
            require("Sharded", "estimator.batches_per_pair", "False", separate, lambda given: not given, remedy)

    def init(self, key: Array, theta: Any) -> EstimatorState:
        """As the estimator's, with the pairs split over the axis."""
        run = lambda key, theta: self.estimator.local_init(key, theta, self._shard())  # noqa: E731
        return self._over_devices(run, (Spec(), Spec()), self._state_spec())(as_key(key), theta)

    def step(self, key: Array, theta: Any, state: EstimatorState, batches: Any = None) -> tuple[Any, Any, Info]:
        """As the estimator's: the same gradient, up to the order in which numbers are added."""
        data = Spec(None, self.axis) if self.estimator.batches_per_pair else Spec()
        info: Any = Info(**dict.fromkeys(REDUCED, Spec()), difference=Spec(self.axis))  # pyright: ignore

        def run(key, theta, state, batches):
            return self.estimator.local_step(key, theta, state, batches, self._shard())

        if batches is not None:
            batches = jax.device_put(batches, NamedSharding(self.mesh, data))
        ins, outs = (Spec(), Spec(), self._state_spec(), data), (Spec(), self._state_spec(), info)
        return self._over_devices(run, ins, outs)(as_key(key), theta, state, batches)

    def _shard(self) -> Shard:
        local = self.estimator.num_pairs // self.mesh.shape[self.axis]
        return Shard(jax.lax.axis_index(self.axis) * local + jnp.arange(local), self.axis)

    def _state_spec(self) -> EstimatorState:
        return EstimatorState(pairs=Spec(self.axis), center=Spec(), last_key=Spec())

    def _over_devices(self, run: Any, in_specs: Any, out_specs: Any) -> Any:
        return jax.shard_map(run, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
