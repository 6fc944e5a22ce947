"""Gradient tracking (DSGT): every node follows an estimate of everybody's gradient."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from laureate.decentralized.optimiser import DecentralizedOptimiser

__all__ = ["GradientTracking", "TrackingState"]


class TrackingState(NamedTuple):
    """tracker: Y; gradient: the gradients it last took in; local: the local optimiser's memory."""

    tracker: Any
    gradient: Any
    local: Any


class GradientTracking(DecentralizedOptimiser):
    """Y_t = W Y_{t−1} + G_t − G_{t−1},  X_{t+1} = W (X_t − α · local(Y_t)),  Y_{−1} = G_{−1} = 0.

    The mean of the trackers is the mean of the newest gradients in every step, whatever the data, and each tracker
    tends to it: the nodes step together towards the common optimum. Two vectors a round. As trackers agree in the end,
    any local transformation may stand between.

    Paolo Di Lorenzo and Gesualdo Scutari: NEXT: In-Network Nonconvex Optimization. 2016; Shi Pu and Angelia Nedić:
    Distributed Stochastic Gradient Tracking Methods. 2021.

    gossip, learning_rate, local: see ``DecentralizedOptimiser``.

    >>> import jax.numpy as jnp
    >>> from laureate.decentralized import Gossip, ring
    >>> optimiser = GradientTracking(Gossip(ring(4)), learning_rate=0.1)
    >>> params, gradient = jnp.zeros((4, 1)), jnp.arange(4.0)[:, None]
    >>> updates, state = optimiser.update(gradient, optimiser.init(params), params)
    >>> float(state.tracker.mean()) == float(gradient.mean())
    True
    """

    def init(self, params: Any) -> TrackingState:
        """No gradient seen, nothing tracked."""
        self.check(params)
        zeros = jax.tree.map(jnp.zeros_like, params)
        return TrackingState(zeros, zeros, self.local_init(params))

    def update(self, grads: Any, state: TrackingState, params: Any = None) -> tuple[Any, TrackingState]:
        """One round: take the new gradient in, step, mix."""
        self.check_gradients(grads, params)
        mixed = self.gossip.mix(state.tracker)
        tracker = jax.tree.map(lambda w, new, old: w + new - old, mixed, grads, state.gradient)  # Y_t
        step, local = self.local_step(tracker, state.local, params)
        moved = self.gossip.mix(jax.tree.map(jnp.add, params, step))  # W (X − α Y)
        updates = jax.tree.map(lambda w, x: w - x, moved, params)
        return updates, TrackingState(tracker, grads, local)

    def sent(self, params: Any) -> float:
        """Bytes of parameters and trackers."""
        return self.gossiped(params, vectors=2)
