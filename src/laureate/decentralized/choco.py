"""CHOCO-SGD: gossip of compressed differences."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from laureate._core import require
from laureate.decentralized.optimiser import DecentralizedOptimiser

__all__ = ["ChocoSGD", "ChocoState"]


def _as_number(value: float | Array) -> Array:
    return jnp.asarray(value, float)


class ChocoState(NamedTuple):
    """public: x̂_i, what all neighbours know of a node; around: Σ_j W_ij x̂_j; local: the local optimiser's memory."""

    public: Array
    around: Array
    local: Any


class ChocoSGD(DecentralizedOptimiser):
    """CHOCO-SGD: nodes send compressed differences to what the others already know of them.

    With C a compressor and x̂ the public copies, which neighbours keep alike from the messages alone::

        x ← x − α · local(g);   q = C(x − x̂);   x̂ ← x̂ + q;   x ← x + γ Σ_j W_ij (x̂_j − x̂_i)

    As ``DPSGD`` it is off the common optimum where data differ; it is for slow links. Only q travels.

    gossip, learning_rate, local: see ``DecentralizedOptimiser``.
    compressor: ``TopK(fraction)``, ``ScaledSign()``, or your own with ``encode(vector)`` and ``decode(message, size)``.
    gamma: γ in (0, 1], the consensus step; the harder the compression, the smaller. With none, 1 is gossip.

    Anastasia Koloskova, Sebastian Stich and Martin Jaggi: Decentralized Stochastic Optimization and Gossip Algorithms
    with Compressed Communication. ICML 2019.

    >>> import jax.numpy as jnp
    >>> from laureate.decentralized import Gossip, TopK, ring
    >>> optimiser = ChocoSGD(Gossip(ring(4)), learning_rate=0.1, compressor=TopK(0.1), gamma=0.2)
    >>> params = jnp.zeros((4, 100))
    >>> optimiser.sent(params)  # 8 messages of ten values and ten places
    640
    """

    compressor: Any
    gamma: Array = eqx.field(converter=_as_number)

    def __check_init__(self):
        offers = lambda c: hasattr(c, "encode") and hasattr(c, "decode")  # noqa: E731
        require("ChocoSGD", "compressor", "something with encode and decode", self.compressor, offers)
        within = lambda g: bool(np.all((np.asarray(g) > 0) & (np.asarray(g) <= 1)))  # noqa: E731
        require("ChocoSGD", "gamma", "in (0, 1]", self.gamma, within)

    def init(self, params: Any) -> ChocoState:
        """Nothing is known of anyone."""
        self.check(params)
        flat = self._flatten(params)
        return ChocoState(jnp.zeros_like(flat), jnp.zeros_like(flat), self.local_init(params))

    def update(self, grads: Any, state: ChocoState, params: Any = None) -> tuple[Any, ChocoState]:
        """One round."""
        self.check_gradients(grads, params)
        step, local = self.local_step(grads, state.local, params)
        stepped = self._flatten(jax.tree.map(jnp.add, params, step))
        size = stepped.shape[-1]
        decode = lambda message: self.compressor.decode(message, size)  # noqa: E731
        encode = self.compressor.encode
        each = (lambda f: f) if self.gossip.axis is not None else jax.vmap
        message = each(encode)(stepped - state.public)  # q
        public = state.public + each(decode)(message)
        around = state.around + self.gossip.mix_decoded(message, decode)  # Σ_j W_ij x̂_j, kept up to date
        moved = stepped + self.gamma.astype(stepped.dtype) * (around - public)
        updates = jax.tree.map(jnp.subtract, self._unflatten(params, moved), params)
        return updates, ChocoState(public, around, local)

    def sent(self, params: Any) -> float:
        """Bytes of the compressed messages."""
        one = params if self.gossip.axis is not None else jax.tree.map(lambda x: x[0], params)
        message = jax.eval_shape(lambda p: self.compressor.encode(ravel_pytree(p)[0]), one)
        return self.gossip.messages * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(message))

    def _flatten(self, params: Any) -> Array:
        if self.gossip.axis is not None:
            return ravel_pytree(params)[0]
        return jax.vmap(lambda p: ravel_pytree(p)[0])(params)

    def _unflatten(self, like: Any, flat: Array) -> Any:
        if self.gossip.axis is not None:
            return ravel_pytree(like)[1](flat)
        return jax.vmap(lambda p, f: ravel_pytree(p)[1](f))(like, flat)
