"""A model of the network: rounds and bytes into seconds, before anybody rents a machine."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.decentralized.topologies import Topology

__all__ = ["Network"]


def _as_number(value: float | Array) -> Array:
    return jnp.asarray(value, float)


class Network(eqx.Module):
    """How long rounds take on machines that are not alike, over links that are slow and lose messages.

    Nobody waits for all, only for neighbours. With t_i(r) the time at which node i is ready for round r::

        t_i(r+1) = max over j in {i} and i's neighbours of  t_j(r) + c_j(r) + d_j + ℓ_ij(r)

        c_j   compute · slowdown with probability ``straggle``, else compute
        d_j   (messages of j) · bytes / bandwidth: a node sends to its neighbours one after the other
        ℓ_ij  latency + (attempts − 1) · timeout, where each attempt fails with probability ``loss``; 0 for i itself

    compute: seconds a node needs for one round's gradient, >= 0.
    latency: seconds a message takes, >= 0.
    bandwidth: bytes a second out of a node, > 0.
    loss: probability in [0, 1) that a message must be sent again.
    timeout: seconds until it is, >= 0.
    straggle: probability in [0, 1] that a node is slow in a round.
    slowdown: how many times slower it then computes, >= 1.
    overlap: whether a node computes while it sends (D-PSGD and DeTAG can, as both use the same parameters), so that a
        round costs it max(c_j, d_j + ℓ) instead of their sum.

    >>> import jax
    >>> from laureate.decentralized import ring
    >>> network = Network(compute=0.010, latency=0.001, bandwidth=1e8)
    >>> times = network.rounds(jax.random.key(0), ring(8), message=1_000_000, num_rounds=10)
    >>> round(float(times[-1]), 3)  # 10 × (10 ms + 1 ms + 2 messages of 10 ms)
    0.31
    """

    compute: Array = eqx.field(default=0.0, converter=_as_number)
    latency: Array = eqx.field(default=1e-4, converter=_as_number)
    bandwidth: Array = eqx.field(default=1.25e8, converter=_as_number)
    loss: Array = eqx.field(default=0.0, converter=_as_number)
    timeout: Array = eqx.field(default=0.2, converter=_as_number)
    straggle: Array = eqx.field(default=0.0, converter=_as_number)
    slowdown: Array = eqx.field(default=1.0, converter=_as_number)
    overlap: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        for name, rule, holds in (
            ("compute", ">= 0", lambda v: v >= 0),
            ("latency", ">= 0", lambda v: v >= 0),
            ("bandwidth", "> 0", lambda v: v > 0),
            ("loss", "in [0, 1)", lambda v: 0 <= v < 1),
            ("timeout", ">= 0", lambda v: v >= 0),
            ("straggle", "in [0, 1]", lambda v: 0 <= v <= 1),
            ("slowdown", ">= 1", lambda v: v >= 1),
        ):
            require("Network", name, rule, getattr(self, name), holds)

    def rounds(self, key: Array, topology: Topology, message: float | Array, num_rounds: int) -> Array:
        """``[num_rounds]``: when the last node has finished each round of gossip; ``message`` in bytes, all vectors."""
        require("Network", "num_rounds", ">= 1", num_rounds, lambda n: n >= 1)
        senders = np.concatenate([np.arange(topology.size)[None], topology.senders])
        foreign = jnp.asarray(senders != np.arange(topology.size))
        sending = jnp.asarray(topology.degrees, float) * message / self.bandwidth  # d_j

        def step(ready, index):
            slow, lost = jax.random.split(jax.random.fold_in(key, index))
            computing = self._computing(slow, topology.size)
            attempts = self._retries(lost, foreign.shape)
            links = jnp.where(foreign, self.latency + attempts * self.timeout, 0.0)  # ℓ_ij
            sent = sending[senders] + links  # d_j + ℓ_ij, also a node's own
            if self.overlap:
                arrival = ready[senders] + jnp.maximum(jnp.where(foreign, 0.0, computing[senders]), sent)
            else:
                arrival = ready[senders] + computing[senders] + sent
            ready = arrival.max(0)
            return ready, ready.max()

        return jax.lax.scan(step, jnp.zeros(topology.size), jnp.arange(num_rounds))[1]

    def all_reduces(self, key: Array, size: int, vector: float | Array, num_rounds: int) -> Array:
        """``[num_rounds]``: the same for a ring all-reduce of ``vector`` bytes over ``size`` nodes, which waits for
        all.

        2 (n−1) steps of vector/n bytes each; a step is over when its slowest message has arrived.
        """
        require("Network", "size", ">= 1", size, lambda n: n >= 1)
        require("Network", "num_rounds", ">= 1", num_rounds, lambda n: n >= 1)
        steps = 2 * (size - 1)

        def step(now, index):
            slow, lost = jax.random.split(jax.random.fold_in(key, index))
            computing = self._computing(slow, size).max()
            worst = self._retries(lost, (steps,), size) if steps else jnp.zeros(1)
            talking = steps * (self.latency + vector / size / self.bandwidth) + jnp.sum(worst) * self.timeout
            now = now + computing + talking
            return now, now

        return jax.lax.scan(step, jnp.zeros(()), jnp.arange(num_rounds))[1]

    def _computing(self, key: Array, size: int) -> Array:
        slow = jax.random.uniform(key, (size,)) < self.straggle
        return self.compute * jnp.where(slow, self.slowdown, 1.0)

    def _retries(self, key: Array, shape: tuple[int, ...], of: int = 1) -> Array:
        """Attempts beyond the first: geometric, P(K >= k) = loss^k; with ``of`` the largest of so many."""
        u = jax.random.uniform(key, shape, minval=1e-12)
        tail = -jnp.expm1(jnp.log(u) / of)  # 1 − u^{1/of}: the tail's value at the largest of ``of`` draws
        rate = jnp.where(self.loss > 0, jnp.log(jnp.maximum(self.loss, 1e-30)), -1.0)
        return jnp.where(self.loss > 0, jnp.floor(jnp.log(jnp.maximum(tail, 1e-30)) / rate), 0.0)
