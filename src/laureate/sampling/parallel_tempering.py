"""Parallel tempering: hot replicas carry a cold one across the valleys."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import require
from laureate.sampling._kernel import TEMPERABLE, TEMPERABLE_REMEDY, Tree, is_temperable

__all__ = ["ParallelTempering", "TemperingInfo", "TemperingState"]


class TemperingState(NamedTuple):
    """What the next step needs.

    replicas: their states, stacked, the first the coldest. num_steps: steps made, which says who may swap.
    """

    replicas: Any
    num_steps: Int[Array, ""]

    @property
    def position(self) -> Tree:
        """The coldest replica's position: the sample."""
        return jax.tree.map(lambda leaf: leaf[0], self.replicas.position)

    @property
    def logdensity(self) -> Float[Array, ""]:
        """f at the coldest replica's position, not tempered."""
        return self.replicas.logdensity[0]


class TemperingInfo(NamedTuple):
    """What a step reports.

    acceptance_rate: the kernel's mean, [replicas]. swapped: whether neighbours did, [pairs]. swap_rate: the probability
    with which they do, 0 for pairs whose turn it is not, [pairs]. cost: evaluations of the log density by all replicas.
    status: the worst of the kernel's.
    """

    acceptance_rate: Float[Array, "replicas"]
    swapped: Bool[Array, "pairs"]
    swap_rate: Float[Array, "pairs"]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class ParallelTempering(eqx.Module):
    """Run a kernel at several temperatures and let neighbours exchange positions.

    Replica r samples exp(β_r f). After `steps_per_swap` steps, pairs (0,1), (2,3), ... and in the next step
    (1,2), (3,4), ... swap with probability min{1, exp((β_i - β_j)(f(x_j) - f(x_i)))}.

    Geyer: "Markov chain Monte Carlo maximum likelihood", 1991.

    kernel: any `DiscreteKernel`; its ``inverse_temperature`` is replaced, so its state must not depend on it, as does
        that of `IncrementalGibbsWithGradients`.
    inverse_temperatures: β, at least two, falling from the coldest, usually 1; one kernel serves them all.
    steps_per_swap: kernel steps between swaps, >= 1.

    >>> from laureate.sampling import Binary, GibbsWithGradients
    >>> kernel = GibbsWithGradients(lambda x: 5.0 * jnp.abs(jnp.sum(x) - 4.0), Binary())
    >>> ladder = ParallelTempering(kernel, jnp.array([1.0, 0.5, 0.1]))
    >>> state, info = eqx.filter_jit(ladder.step)(jax.random.key(0), ladder.init(jnp.zeros(8, bool)))
    >>> state.position.shape, int(info.cost)
    ((8,), 3)
    """

    kernel: Any
    inverse_temperatures: Float[Array, "replicas"] = eqx.field(converter=jnp.asarray)
    steps_per_swap: int = eqx.field(default=1, static=True, kw_only=True)

    def __check_init__(self):
        owner = "ParallelTempering"
        rule = "at least two, falling, >= 0"
        betas = self.inverse_temperatures

        def holds(b):
            b = np.asarray(b)  # NumPy: under jit even constants are tracers to jax.numpy
            return b.ndim == 1 and b.size >= 2 and bool(np.all(np.diff(b) < 0)) and bool(b[-1] >= 0)

        require(owner, "inverse_temperatures", rule, betas, holds)
        require(owner, "steps_per_swap", ">= 1", self.steps_per_swap, lambda n: n >= 1)
        kind = type(self.kernel).__name__
        require(owner, "kernel", TEMPERABLE, kind, lambda _: is_temperable(self.kernel), TEMPERABLE_REMEDY)

    def init(self, position: Tree, key: Key[Array, ""] | None = None) -> TemperingState:
        """Start every replica at ``position``. ``key`` is ignored; BlackJAX's drivers pass one."""
        state = self.kernel.init(position)
        count = self.inverse_temperatures.size
        replicas = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], count, axis=0), state)
        return TemperingState(replicas, jnp.zeros((), jnp.int32))

    def step(self, key: Key[Array, ""], state: TemperingState) -> tuple[TemperingState, TemperingInfo]:
        """`steps_per_swap` steps of every replica, then one round of swaps."""
        walk_key, swap_key = jax.random.split(key)
        count = self.inverse_temperatures.size

        def walk(key, beta, replica):
            kernel = eqx.tree_at(lambda k: k.inverse_temperature, self.kernel, beta)
            return jax.lax.scan(lambda s, k: kernel.step(k, s), replica, jax.random.split(key, self.steps_per_swap))

        keys = jax.random.split(walk_key, count)
        # States hold f and d̃ untempered, so a replica can change its temperature without being evaluated anew.
        replicas, info = jax.vmap(walk)(keys, self.inverse_temperatures, state.replicas)
        log_ratio = self.swap_log_ratio(replicas.logdensity)
        turn = jnp.arange(count - 1) % 2 == state.num_steps % 2
        swapped = turn & (jnp.log(jax.random.uniform(swap_key, (count - 1,))) < log_ratio)
        zero = jnp.zeros(1, jnp.int32)
        order = jnp.arange(count) + jnp.append(swapped, zero) - jnp.append(zero, swapped)
        replicas = jax.tree.map(lambda leaf: leaf[order], replicas)
        report = TemperingInfo(
            acceptance_rate=jnp.mean(info.acceptance_rate, axis=1),
            swapped=swapped,
            swap_rate=jnp.where(turn, jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0),
            cost=jnp.sum(info.cost),
            status=jnp.max(info.status),
        )
        return TemperingState(replicas, state.num_steps + 1), report

    def swap_log_ratio(self, logdensity: Float[Array, "replicas"]) -> Float[Array, "pairs"]:
        """(β_i - β_j)(f(x_j) - f(x_i)) for j = i + 1; not a number where a position has no probability: no swap."""
        betas = self.inverse_temperatures.astype(logdensity.dtype)
        return (betas[:-1] - betas[1:]) * (logdensity[1:] - logdensity[:-1])
