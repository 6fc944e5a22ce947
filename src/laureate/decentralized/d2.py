"""D²: the difference of two gradients removes the bias of different data."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from laureate._core import require
from laureate.decentralized.optimiser import IDENTITY, DecentralizedOptimiser

__all__ = ["D2", "D2State"]


class D2State(NamedTuple):
    """stepped: ψ of the last round, X − α G before it was mixed; at first X itself. local: a schedule's step number."""

    stepped: Any
    local: Any


class D2(DecentralizedOptimiser):
    """D² (exact diffusion): X_{t+1} = W (2 X_t − X_{t−1} − α (G_t − G_{t−1})), X_1 = W (X_0 − α G_0).

    One vector a round, exact on different data, and on problems without noise as good as anything here. It needs all
    eigenvalues of W above −1/3: on an even ring, a torus or a hypercube use ``Gossip(..., kappa=0.5)``. There is no
    ``local``: what is tracked is a difference of plain gradient steps, which a non-linear transformation would bias.

    Hanlin Tang, Xiangru Lian, Ming Yan, Ce Zhang and Ji Liu: D²: Decentralized Training over Decentralized Data. ICML
    2018.

    gossip, learning_rate: see ``DecentralizedOptimiser``.
    local: must be left out.

    >>> import jax.numpy as jnp
    >>> from laureate.decentralized import Gossip, ring
    >>> optimiser = D2(Gossip(ring(4), kappa=0.5), learning_rate=0.1)
    >>> params = jnp.zeros((4, 1))
    >>> updates, state = optimiser.update(jnp.arange(4.0)[:, None], optimiser.init(params), params)
    >>> [round(float(u), 3) for u in updates[:, 0]]
    [-0.067, -0.1, -0.2, -0.233]
    """

    def __check_init__(self):
        remedy = "What is tracked is a difference of plain gradient steps; GradientTracking allows a local optimiser."
        require("D2", "local", "left out", self.local, lambda local: local is IDENTITY, remedy)
        low, _ = self.gossip.spectrum()
        lowest = low if isinstance(low, Tracer) else float(np.min(low))
        remedy = "Use Gossip(..., kappa=0.5)."
        require("D2", "gossip's smallest eigenvalue", "> −1/3", lowest, lambda x: x > -1 / 3 + 1e-6, remedy)

    def init(self, params: Any) -> D2State:
        """ψ_{−1} = X_0, which makes the first round X_1 = W (X_0 − α G_0)."""
        self.check(params)
        return D2State(params, self.local_init(params))

    def update(self, grads: Any, state: D2State, params: Any = None) -> tuple[Any, D2State]:
        """One round: X_{t+1} = W (ψ_t + X_t − ψ_{t−1}) with ψ_t = X_t − α G_t."""
        self.check_gradients(grads, params)
        step, local = self.local_step(grads, state.local, params)
        stepped = jax.tree.map(jnp.add, params, step)
        corrected = jax.tree.map(lambda new, x, old: new + x - old, stepped, params, state.stepped)
        mixed = self.gossip.mix(corrected)
        return jax.tree.map(lambda w, x: w - x, mixed, params), D2State(stepped, local)

    def sent(self, params: Any) -> float:
        """Bytes of the parameters."""
        return self.gossiped(params, vectors=1)
