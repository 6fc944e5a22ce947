"""D-PSGD: average with the neighbours, step along the own gradient."""

from typing import Any

import jax

from laureate.decentralized.optimiser import DecentralizedOptimiser

__all__ = ["DPSGD"]


class DPSGD(DecentralizedOptimiser):
    """Decentralised SGD: X ← W X − α · local(G(X)). One vector a round, no memory but the local optimiser's.

    Where nodes have different data, every node keeps pulling towards its own optimum, and with a constant α the nodes
    settle apart and off the common optimum: on quadratics at the solution of (I − W) X + α G(X) = 0, an error that
    grows as α / (1 − λ). ``D2``, ``GradientTracking`` and ``DeTAG`` do not have it.

    Xiangru Lian, Ce Zhang, Huan Zhang, Cho-Jui Hsieh, Wei Zhang and Ji Liu: Can Decentralized Algorithms Outperform
    Centralized Algorithms? NeurIPS 2017.

    gossip, learning_rate, local: see ``DecentralizedOptimiser``.

    >>> import jax.numpy as jnp, optax
    >>> from laureate.decentralized import Gossip, ring
    >>> optimiser = DPSGD(Gossip(ring(4)), learning_rate=0.1, local=optax.trace(0.9))
    >>> params = jnp.zeros((4, 1))
    >>> updates, state = optimiser.update(jnp.arange(4.0)[:, None], optimiser.init(params), params)
    >>> [round(float(u), 2) for u in updates[:, 0]]
    [0.0, -0.1, -0.2, -0.3]
    """

    def init(self, params: Any) -> Any:
        """The local optimiser's memory."""
        self.check(params)
        return self.local_init(params)

    def update(self, grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        """One round: mix the parameters, step along the gradient taken before mixing."""
        self.check_gradients(grads, params)
        step, state = self.local_step(grads, state, params)
        mixed = self.gossip.mix(params)
        return jax.tree.map(lambda w, x, s: w - x + s, mixed, params, step), state

    def sent(self, params: Any) -> float:
        """Bytes of the parameters."""
        return self.gossiped(params, vectors=1)
