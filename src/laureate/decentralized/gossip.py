"""Gossip: averaging with neighbours only, plain, accelerated or by Chebyshev's polynomials."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from laureate._core import require
from laureate.decentralized.mixing import (
    check_matrix,
    constant_weights,
    metropolis_weights,
    optimal_weights,
    spectrum_ends,
)
from laureate.decentralized.topologies import Topology

__all__ = ["Gossip"]

Method = Literal["plain", "accelerated", "chebyshev"]
WEIGHTS: dict[str, Callable[[Topology], np.ndarray]] = {
    "metropolis": metropolis_weights,
    "constant": constant_weights,
    "optimal": optimal_weights,
}
DENSE = 64  # up to so many nodes, or where most pairs talk, one small matrix product is quicker than gathering


class Gossip(eqx.Module):
    """Averaging over a network, a round at a time: each node hears from its neighbours alone.

    A round multiplies with the mixing matrix W, which keeps the mean over the nodes and shrinks what differs. Two
    further methods remember the round before, and need about √ as many rounds::

        plain         X⁽ʳ⁺¹⁾ = W X⁽ʳ⁾                                                  differences × λ a round
        accelerated   X⁽ʳ⁺¹⁾ = (1 + η) W X⁽ʳ⁾ − η X⁽ʳ⁻¹⁾,   X⁽⁻¹⁾ = X⁽⁰⁾,              the paper's
                      η = (1 − √(1−λ²)) / (1 + √(1−λ²))
        chebyshev     X⁽ʳ⁾ = p_r(W) X⁽⁰⁾,  p_r(z) = T_r((z−m)/h) / T_r((1−m)/h)        differences × 1 / T_R((1−m)/h)
                      m, h = middle and half width of [λ_n, λ_2]

    with 1 > λ_2 >= … >= λ_n > −1 the eigenvalues of W and λ = max(|λ_2|, |λ_n|). No polynomial of degree R does better
    than Chebyshev's on that interval; it never expands, and R = 1 is plain gossip at its best constant step. The
    accelerated method's own bound needs W ⪰ 0: with negative eigenvalues its first rounds can *expand* differences,
    and ``contraction`` says by how much. κ = ½ makes any W positive.

    topology: the graph.
    weights: "metropolis", "constant" (the best single weight), "optimal", or a symmetric, row-stochastic matrix whose
        off-diagonal weights lie on edges of the graph.
    method: see above. The methods of this package hold the memory of a phase and restart it.
    kappa: κ in (0, 1]: W ← κ W + (1 − κ) I. ½ is the lazy walk; small ones imitate sparse networks, as the paper does.
        May be traced: another value compiles nothing.
    axis: None: all leaves have a leading axis of nodes, all in this process. A name: inside ``jax.vmap`` or
        ``jax.shard_map`` over an axis of that name, leaves are one node's own, and only ``ppermute`` along edges of the
        graph carries them. ``over(axis)`` turns the one into the other.

    Ji Liu and A. Stephen Morse: Accelerated linear iterations for distributed averaging. Annual Reviews in Control
    2011.

    >>> import jax.numpy as jnp
    >>> from laureate.decentralized import ring
    >>> gossip = Gossip(ring(8), method="chebyshev")
    >>> values = jnp.arange(8.0)
    >>> mixed = gossip.average(values, num_rounds=6)
    >>> bool(jnp.abs(mixed - 3.5).max() < 0.1), round(float(gossip.contraction(6)), 4)
    (True, 0.0158)
    """

    table: Array
    matrix: Array | None
    ends: Array
    kappa: Array
    topology: Topology = eqx.field(static=True)
    method: Method = eqx.field(static=True)
    axis: str | None = eqx.field(static=True)

    def __init__(
        self,
        topology: Topology,
        weights: str | np.ndarray = "metropolis",
        method: Method = "chebyshev",
        kappa: float | Array = 1.0,
        axis: str | None = None,
    ):
        remedy = "See from_graph."
        if isinstance(topology, list | tuple) or callable(topology):
            remedy = "A network that changes with time is not offered: the gap of the one graph sets all rates."
        require("Gossip", "topology", "a Topology", topology, lambda t: isinstance(t, Topology), remedy)
        methods = ("plain", "accelerated", "chebyshev")
        require("Gossip", "method", f"one of {methods}", method, lambda m: m in methods)
        require(
            "Gossip", "kappa", "in (0, 1]", kappa, lambda k: bool(np.all((np.asarray(k) > 0) & (np.asarray(k) <= 1)))
        )
        if isinstance(weights, str):
            require("Gossip", "weights", f"a matrix or one of {tuple(WEIGHTS)}", weights, lambda w: w in WEIGHTS)
            matrix = WEIGHTS[weights](topology)
        else:
            matrix = check_matrix(weights, topology)
        low, high = spectrum_ends(matrix)
        self.kappa = jnp.asarray(kappa, float)
        if not isinstance(kappa, Tracer):
            lowest, highest = (1 - float(np.min(kappa)) * (1 - end) for end in (low, high))
            lowest = min(lowest, 1 - float(np.max(kappa)) * (1 - low))
            remedy = "Use kappa=0.5: a graph without weights on the diagonal swings for ever."
            require("Gossip", "smallest eigenvalue", "> −1", lowest, lambda x: x > -1 + 1e-9, remedy)
            require("Gossip", "second eigenvalue", "< 1", highest, lambda x: x < 1 - 1e-9, "The weights cut the graph.")
        senders = topology.senders
        rows = np.arange(topology.size)
        self.table = jnp.asarray(np.where(senders != rows, matrix[rows, senders], 0.0), float)
        turns = len(senders)
        self.matrix = jnp.asarray(matrix, float) if topology.size <= max(DENSE, 8 * turns) else None
        self.ends = jnp.asarray([low, high], float)
        self.topology, self.method, self.axis = topology, method, axis

    @property
    def size(self) -> int:
        """Number of nodes n."""
        return self.topology.size

    def over(self, axis: str | None) -> "Gossip":
        """The same over a named axis of ``vmap`` or ``shard_map``, or (None) over stacked leaves."""
        new = object.__new__(type(self))
        for name, value in vars(self).items():
            object.__setattr__(new, name, axis if name == "axis" else value)
        return new

    def spectrum(self) -> tuple[Array, Array]:
        """(λ_n, λ_2) of the matrix in use, after κ."""
        ends = 1.0 - self.kappa[..., None] * (1.0 - self.ends)
        return ends[..., 0], ends[..., 1]

    @property
    def gap(self) -> Array:
        """1 − λ, λ = max(|λ_2|, |λ_n|)."""
        low, high = self.spectrum()
        return 1.0 - jnp.maximum(jnp.abs(low), jnp.abs(high))

    def mix(self, tree: Any) -> Any:
        """W X: one exchange with all neighbours."""
        if self.axis is None:
            return jax.tree.map(self._mix_stacked, tree)
        return self._mix_named(tree, lambda message: message)

    def mix_decoded(self, message: Any, decode: Callable[[Any], Any]) -> Any:
        """W X for X = ``decode(message)``, a function of one node's message: only the message travels."""
        if self.axis is None:
            return jax.tree.map(self._mix_stacked, jax.vmap(decode)(message))
        return self._mix_named(message, decode)

    def _mix_named(self, message: Any, decode: Callable[[Any], Any]) -> Any:
        own = decode(message)
        total = jax.tree.map(jnp.zeros_like, own)
        node = jax.lax.axis_index(self.axis)
        for senders, weights in zip(self.topology.senders, self.table, strict=True):
            pairs = [(int(sender), i) for i, sender in enumerate(senders)]
            received = decode(jax.tree.map(lambda leaf, pairs=pairs: jax.lax.ppermute(leaf, self.axis, pairs), message))
            weight = weights[node]
            total = jax.tree.map(lambda t, r, x, w=weight: t + w.astype(x.dtype) * (r - x), total, received, own)
        # (W X)_i = x_i + κ Σ_j W_ij (x_j − x_i), for the rows of W sum to 1
        return jax.tree.map(lambda x, t: x + self.kappa.astype(x.dtype) * t, own, total)

    def _mix_stacked(self, x: Array) -> Array:
        if self.matrix is not None:
            wide = jnp.promote_types(x.dtype, jnp.float32)  # rows that add up to 1
            flat = x.reshape(self.size, -1).astype(wide)
            mixed = jnp.matmul(self.matrix.astype(wide), flat, precision=jax.lax.Precision.HIGHEST)
            return (flat + self.kappa.astype(wide) * (mixed - flat)).astype(x.dtype).reshape(x.shape)
        total = jnp.zeros_like(x)
        for senders, weights in zip(self.topology.senders, self.table, strict=True):
            weight = weights.astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - 1))
            total = total + weight * (x[senders] - x)
        return x + self.kappa.astype(x.dtype) * total

    def advance(self, index: Array | int, tree: Any, before: Any) -> Any:
        """X⁽ʳ⁺¹⁾ from X⁽ʳ⁾ and X⁽ʳ⁻¹⁾; ``index`` is r, 0 for the first round, where ``before`` is not looked at."""
        a, b, c = self._coefficients(jnp.asarray(index))
        mixed = self.mix(tree)

        def combine(w, x, y):
            # The three add up to 1, which in half precision they would not: equal nodes would drift.
            wide = jnp.promote_types(x.dtype, jnp.float32)
            kind, y = x.dtype, jnp.where(index == 0, x, y)
            w, x, y = (part.astype(wide) for part in (w, x, y))
            return (a.astype(wide) * w + b.astype(wide) * x + c.astype(wide) * y).astype(kind)

        return jax.tree.map(combine, mixed, tree, before)

    def average(self, tree: Any, num_rounds: int) -> Any:
        """``num_rounds`` rounds of the method, from scratch."""
        require("Gossip", "num_rounds", ">= 0", num_rounds, lambda r: r >= 0)

        def step(carry, index):
            now, before = carry
            return (self.advance(index, now, before), now), None

        return jax.lax.scan(step, (tree, tree), jnp.arange(num_rounds))[0][0]

    def contraction(self, num_rounds: int) -> Array:
        """The largest factor by which so many rounds can leave a difference between nodes: exact, from the spectrum.

        For "plain" and "chebyshev" the closed forms above; for "accelerated" the largest |p_R| over the eigenvalues.
        """
        low, high = self.spectrum()
        if self.method == "plain":
            return jnp.maximum(jnp.abs(low), jnp.abs(high)) ** num_rounds
        if self.method == "chebyshev":
            s = self._chebyshev_ratio()
            return 2.0 * s ** (num_rounds / 2) / (1.0 + s**num_rounds)  # 1/cosh(Rθ), e^{−2θ} = s
        values = np.linalg.eigvalsh(self.dense())[:-1] if self.size > 1 else np.zeros(1)
        eta, now, before = np.asarray(self._eta()), np.ones_like(values), np.ones_like(values)
        for _ in range(num_rounds):
            now, before = (1 + eta) * values * now - eta * before, now
        return jnp.max(jnp.abs(jnp.asarray(now)))

    def dense(self) -> np.ndarray:
        """The mixing matrix in use, after κ, in double precision."""
        matrix = np.zeros((self.size, self.size))
        kappa = float(self.kappa)
        for senders, weights in zip(self.topology.senders, np.asarray(self.table, np.float64), strict=True):
            matrix[np.arange(self.size), senders] += kappa * weights
        return matrix + np.diag(1.0 - matrix.sum(1))

    @property
    def messages(self) -> int:
        """How many node-to-node messages a round sends: two for every edge."""
        return 2 * len(self.topology.edges)

    def _eta(self) -> Array:
        root = jnp.sqrt(self.gap * (2.0 - self.gap))  # √(1 − λ²)
        return (1.0 - root) / (1.0 + root)

    def _chebyshev_ratio(self) -> Array:
        """s = e^{−2θ} with cosh θ = μ = (1 − m)/h, from 1/μ so that a complete graph (h = 0) is no exception."""
        low, high = self.spectrum()
        inverse = (high - low) / (2.0 - high - low)  # h / (1 − m)
        return (inverse / (1.0 + jnp.sqrt(1.0 - inverse**2))) ** 2

    def _coefficients(self, index: Array) -> tuple[Array, Array, Array]:
        """(a, b, c) of X⁽ʳ⁺¹⁾ = a W X⁽ʳ⁾ + b X⁽ʳ⁾ + c X⁽ʳ⁻¹⁾."""
        zero = jnp.zeros_like(self.kappa)
        if self.method == "plain":
            return zero + 1.0, zero, zero
        if self.method == "accelerated":
            eta = self._eta()
            return 1.0 + eta, zero, -eta
        low, high = self.spectrum()
        middle, s, r = (low + high) / 2, self._chebyshev_ratio(), index.astype(zero.dtype)
        # ω_{r+1} = 2 μ T_r(μ) / T_{r+1}(μ), and half of that in the first round, as T_1 = z T_0
        omega = jnp.where(index == 0, 1.0, (1.0 + s) * (1.0 + s**r) / (1.0 + s ** (r + 1)))
        return omega / (1.0 - middle), -omega * middle / (1.0 - middle), 1.0 - omega
