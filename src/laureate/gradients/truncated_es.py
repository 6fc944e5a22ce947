"""Truncated evolution strategies: cheap, and blind beyond the truncation."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from laureate.gradients.antithetic import Antithetic, check_step, estimate
from laureate.gradients.episodes import Episode
from laureate.gradients.noise import Shard
from laureate.gradients.pairs import Pairs, drive
from laureate.gradients.reports import EstimatorState, Info, checked, unused_key
from laureate.gradients.workers import run_worker, unstarted_worker

__all__ = ["TruncatedES"]


class TruncatedES(Antithetic):
    """ES on one truncation at a time: the biased baseline that PES repairs.

    All particles continue from ONE state, which is then advanced with the unperturbed parameters. How θ shaped that
    state before is not seen, so short-horizon effects decide::

        g_t = 1/(2 N σ²) Σ_i ε⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾),    L_t from s̄_t,    s̄_{t+1} = s̄ after K steps with θ

    In the first truncation of an episode it is ``PersistentES``, number for number.

    Luke Metz, Niru Maheswaranathan, Jeremy Nixon, C. Daniel Freeman and Jascha Sohl-Dickstein: Understanding and
    Correcting Pathologies in the Training of Learned Optimizers. ICML 2019.

    The arguments are those of ``PersistentES``. With ``batches_per_pair`` the shared state is advanced with the data of
    the first pair.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = TruncatedES(Decay(), num_pairs=500, truncation=5, horizon=50, sigma=0.1)
    >>> theta = jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> int(info.cost), bool(gradient > 0)
    (5005, True)
    """

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """One state, the same on every device."""
        return EstimatorState(center=unstarted_worker(self, key, theta), last_key=unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """``step`` for the pairs of one device."""
        theta, has_done = check_step(self, theta, None, batches, shard)
        pairs, tally = drive(self, key, theta, around(state.center, theta, shard), batches, shard, has_done)
        gradient, info = estimate(self, theta, pairs, tally, shard, (2 * self.num_pairs + 1) * self.window)
        data = center_data(self, batches)
        center, _ = run_worker(self, center_key(self, key), theta, state.center, data, has_done)
        gradient, last_key = checked(self, key, gradient, state, info)
        return gradient, EstimatorState(center=center, last_key=last_key), info


def center_key(est: Antithetic, key: Array) -> Array:
    """The centre's own: the index after all that the pairs may use in a step."""
    return jax.random.fold_in(key, 2 * est.window * est.num_pairs)


def center_data(est: Antithetic, batches: Any) -> Any:
    """The centre's data: the shared batches, or those of the first pair."""
    return jax.tree.map(lambda leaf: leaf[:, 0], batches) if est.batches_per_pair else batches


def around(center: Episode, theta: Any, shard: Shard) -> Pairs:
    """All pairs at the centre's state, with no noise behind them."""
    twice = lambda leaf: jnp.stack([leaf, leaf])  # noqa: E731

    def place(i):
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
