"""The reference: everybody's gradients averaged exactly, every step."""

from typing import Any

import jax
import jax.numpy as jnp

from laureate.decentralized.optimiser import DecentralizedOptimiser, node_bytes

__all__ = ["AllReduceSGD"]


class AllReduceSGD(DecentralizedOptimiser):
    """x ← x − α · local(ḡ), with ḡ the mean gradient of all nodes: what a network without limits would do.

    It needs a collective operation over all nodes; the topology only says how many there are. Its cost is that of a
    ring all-reduce, 2 (n−1)/n vectors a node.

    gossip, learning_rate, local: see ``DecentralizedOptimiser``.

    >>> import jax.numpy as jnp
    >>> from laureate.decentralized import Gossip, ring
    >>> optimiser = AllReduceSGD(Gossip(ring(4)), learning_rate=0.5)
    >>> params = jnp.zeros((4, 1))
    >>> updates, state = optimiser.update(jnp.arange(4.0)[:, None], optimiser.init(params), params)
    >>> updates[:, 0].tolist()
    [-0.75, -0.75, -0.75, -0.75]
    """

    def init(self, params: Any) -> Any:
        """The local optimiser's memory."""
        self.check(params)
        return self.local_init(params)

    def update(self, grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        """One step of all nodes, along the mean of their gradients."""
        self.check_gradients(grads, params)
        axis = self.gossip.axis
        if axis is not None:
            mean = jax.lax.pmean(grads, axis)
        else:
            mean = jax.tree.map(lambda g: jnp.broadcast_to(g.mean(0, keepdims=True), g.shape), grads)
        return self.local_step(mean, state, params)

    def sent(self, params: Any) -> float:
        """Bytes of a ring all-reduce: every node sends 2 (n−1)/n of its vector."""
        return 2 * (self.gossip.size - 1) * node_bytes(params, self.gossip)
