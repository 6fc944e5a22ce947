"""DeFacto: exact averaging in as few rounds as news needs, then one step."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate.decentralized.optimiser import DecentralizedOptimiser
from laureate.decentralized.topologies import Topology, hypercube

__all__ = ["DeFacto", "DeFactoState", "exact_factors"]


@functools.lru_cache(maxsize=32)
def exact_factors(topology: Topology) -> np.ndarray:
    """``[R, n, n]``: matrices with weights on edges alone, whose product W_R … W_1 is the exact mean.

    A complete graph needs one. A hypercube averages along one dimension after the other, which takes its diameter. Any
    other graph sums up a spanning tree to its centre and sends the mean back down, in twice its radius, which is at
    most twice the diameter.

    >>> from laureate.decentralized import ring
    >>> import numpy as np
    >>> factors = exact_factors(ring(5))
    >>> len(factors), bool(np.allclose(np.linalg.multi_dot(factors[::-1]), 1 / 5))
    (4, True)
    """
    n = topology.size
    if 2 * len(topology.edges) == n * (n - 1):
        return np.full((1, n, n), 1.0 / n)
    bits = n.bit_length() - 1
    if n == 2**bits and topology == hypercube(bits):
        factors = np.zeros((bits, n, n))
        for bit in range(bits):
            for i in range(n):
                factors[bit, i, [i, i ^ (1 << bit)]] = 0.5
        return factors
    reach = [max(topology.distances(i)) for i in range(n)]
    depth = topology.distances(int(np.argmin(reach)))
    height = min(reach)
    parent = [next((j for j in topology.neighbours[i] if depth[j] == depth[i] - 1), i) for i in range(n)]
    up, down = (np.repeat(np.eye(n)[None], height, axis=0) for _ in range(2))
    for i in range(n):
        if depth[i]:
            up[height - depth[i], parent[i], i] = 1.0  # the deepest first: their sum goes to the parent
            down[depth[i] - 1, i] = 0.0
            down[depth[i] - 1, i, parent[i]] = 1.0
    up[-1] /= n
    return np.concatenate([up, down])


class DeFactoState(NamedTuple):
    """round: in 0 … 2R−1; total: gradients gathered, then being averaged; local: the local optimiser's memory."""

    round: Array
    total: Any
    local: Any


class DeFacto(DecentralizedOptimiser):
    """DeFacto: with matrices whose product is the exact mean, decentralised training is centralised training, delayed.

    The paper's construction that attains its lower bound Ω(… + D/ε²), D the diameter. A phase is 2R rounds, R the
    number of factors (``exact_factors``): in the first R every node gathers gradients at its frozen parameters and says
    nothing; in the next R they are averaged exactly, W_R … W_1 = J, and the gradients given are not used; then all
    nodes make the same step x ← x − α · local(ḡ). The order is ours, as the paper's text could not be checked.

    It needs agreement on one matrix a round and equal parameters at the start, and a lost message spoils a mean: it is
    the theory's algorithm, and a yardstick. ``gossip`` gives the graph; its weights are not used.

    gossip, learning_rate, local: see ``DecentralizedOptimiser``.

    >>> import jax.numpy as jnp
    >>> from laureate.decentralized import Gossip, hypercube
    >>> optimiser = DeFacto(Gossip(hypercube(2)), learning_rate=1.0)
    >>> params = jnp.zeros((4, 1))
    >>> state = optimiser.init(params)
    >>> for _ in range(4):  # R = 2: two rounds gather, two average
    ...     updates, state = optimiser.update(jnp.arange(4.0)[:, None], state, params)
    >>> updates[:, 0].tolist()
    [-1.5, -1.5, -1.5, -1.5]
    """

    def __check_init__(self):
        exact_factors(self.gossip.topology)  # raises where there are none

    @property
    def factors(self) -> Array:
        """W_1, …, W_R, whose product is the exact mean."""
        return jnp.asarray(exact_factors(self.gossip.topology), float)

    def init(self, params: Any) -> DeFactoState:
        """Nothing gathered."""
        self.check(params)
        zeros = jax.tree.map(jnp.zeros_like, params)
        return DeFactoState(jnp.zeros((), jnp.int32), zeros, self.local_init(params))

    def update(self, grads: Any, state: DeFactoState, params: Any = None) -> tuple[Any, DeFactoState]:
        """One round; the updates are zero but for the last of a phase."""
        self.check_gradients(grads, params)
        factors, r = self.factors, state.round
        rounds = len(factors)
        gather = lambda: jax.tree.map(lambda t, g: t + g / rounds, state.total, grads)  # noqa: E731
        average = lambda: self._apply(factors[jnp.maximum(r - rounds, 0)], state.total)  # noqa: E731
        total = jax.lax.cond(r < rounds, gather, average)

        def finish():
            step, local = self.local_step(total, state.local, params)
            return step, DeFactoState(jnp.zeros_like(r), jax.tree.map(jnp.zeros_like, total), local)

        def go_on():
            return jax.tree.map(jnp.zeros_like, params), DeFactoState(r + 1, total, state.local)

        return jax.lax.cond(r + 1 >= 2 * rounds, finish, go_on)

    def sent(self, params: Any) -> float:
        """Bytes of one vector in every second round."""
        return self.gossiped(params, vectors=0.5)

    def _apply(self, matrix: Array, tree: Any) -> Any:
        if self.gossip.axis is None:
            return jax.tree.map(lambda x: jnp.tensordot(matrix.astype(x.dtype), x, axes=1), tree)
        node, axis = jax.lax.axis_index(self.gossip.axis), self.gossip.axis
        total = jax.tree.map(lambda x: matrix[node, node].astype(x.dtype) * x, tree)
        for senders in self.gossip.topology.senders:
            pairs = [(int(sender), i) for i, sender in enumerate(senders)]
            mine = jnp.asarray(senders)[node]
            weight = jnp.where(mine == node, 0.0, matrix[node, mine])
            received = jax.lax.ppermute(tree, axis, pairs)
            total = jax.tree.map(lambda t, x, w=weight: t + w.astype(x.dtype) * x, total, received)
        return total
