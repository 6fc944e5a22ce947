"""Truncated backpropagation through time: the usual way, and blind beyond the truncation."""

from typing import Any

import jax
from jax import Array

from laureate.gradients.episodes import Episode
from laureate.gradients.workers import Report, Workers, run_worker, unstarted_worker

__all__ = ["TruncatedBackprop"]


class TruncatedBackprop(Workers):
    """TBPTT: backpropagation through the last K inner steps; the state they start from counts as a constant.

    The baseline for unrolls that can be differentiated: no variance from noise, but a bias towards what pays within K
    steps, and no protection against exploding gradients::

        g_t = ∂/∂θ Σ_{k in truncation t} L_k,    with s at the start of the truncation held constant

    Ronald Williams and Jing Peng: An Efficient Gradient-Based Algorithm for On-Line Training of Recurrent Network
    Trajectories. Neural Computation 2, 1990.

    unroll: the recurrence, see ``Unroll``; differentiable in theta and its state.
    truncation: K >= 1 inner steps an update. K = T is exact backpropagation.
    horizon: T >= K inner steps an episode; (low, high) draws each length log-uniformly; None leaves it to ``done``.
    num_workers: independent episodes whose gradients are averaged, >= 1; more than one helps only if the unroll uses
        its keys or has batches of its own.
    phase: "lockstep", or "random" (the first episodes are cut to random lengths).
    telescope: the unroll gives levels and only the last of an episode counts.
    batches_per_worker: whether batches have a second axis, of workers.
    checked: raise for non-finite losses or gradients and for a key given twice running.

    A worker whose loss or gradient is not finite is left out and counted, and begins anew unless all run in lockstep.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = TruncatedBackprop(Decay(), truncation=5, horizon=50)
    >>> theta = jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> int(info.cost), bool(gradient > 0)
    (5, True)
    """

    def unstarted(self, key: Array, theta: Any) -> Episode:
        """A worker before its first episode."""
        return unstarted_worker(self, key, theta)

    def episode_of(self, worker: Episode) -> Episode:
        """The worker is its episode."""
        return worker

    def check_state(self, theta: Any, workers: Episode) -> None:
        """Nothing in the state depends on theta."""

    def differentiate(
        self, key: Array, theta: Any, worker: Episode, batches: Any, has_done: bool
    ) -> tuple[Any, Episode, Report]:
        """∇_θ of one worker's losses in this truncation."""

        def loss(theta):
            episode, report = run_worker(self, key, theta, worker, batches, has_done)
            return report.loss, (episode, report)

        gradient, (episode, report) = jax.grad(loss, has_aux=True)(theta)
        return gradient, episode, report
