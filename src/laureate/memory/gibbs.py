"""Sampling: a layer at a time in the Boltzmann machine, or spin by spin in the Hopfield network."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from laureate._core import Status, require
from laureate.memory.hopfield import HopfieldNetwork, check_one, check_rows
from laureate.memory.machine import BoltzmannMachine

__all__ = ["LayerGibbs", "LowRankSpinGibbs", "SpinGibbs", "SpinInfo", "SpinState"]


class SpinState(NamedTuple):
    """What both samplers carry.

    position: the spins, −1 or 1, [units].
    """

    position: Float[Array, "units"]


class SpinInfo(NamedTuple):
    """What a step reports.

    hidden: the hidden units drawn on the way; empty where there are none.
    acceptance_rate: 1, as for every Gibbs sampler; drivers that adapt to it expect one.
    cost: multiplications with a coupling or a weight.
    status: always ``Status.OK``: a Gibbs step cannot fail.
    """

    hidden: Float[Array, "hidden"]
    acceptance_rate: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class LayerGibbs(eqx.Module):
    """Block Gibbs sampling of a `BoltzmannMachine`: all hidden units at once, then all spins at once.

    h ~ N(Wᵀs + c, 1/β),   then   s_i = ±1 with log odds 2β (Wh + b)_i

    In BlackJAX's form. A step multiplies twice by a matrix of N × p, where the spins of the equal Hopfield network
    must be visited one after another with N × N couplings.

    machine: what is sampled.

    >>> from laureate.memory import store, to_boltzmann_machine
    >>> kernel = LayerGibbs(to_boltzmann_machine(store([[1, 1, 1, -1]]), beta=9.0))
    >>> state = kernel.init(jnp.array([1.0, 1, 1, 1]))
    >>> for i in range(3):
    ...     state, info = kernel.step(jax.random.key(i), state)
    >>> abs(float(state.position @ jnp.array([1.0, 1, 1, -1])))
    4.0
    """

    machine: BoltzmannMachine

    def init(self, position: Float[Array, "units"], key: Key[Array, ""] | None = None) -> SpinState:
        """Start from these spins. ``key`` is ignored; BlackJAX's drivers pass one."""
        return SpinState(_spins("LayerGibbs", position, self.machine.weights))

    def check_positions(self, positions: Float[Array, "chains units"]) -> None:
        """Raise unless all stacked positions are spins; ``laureate.sampling.run`` asks before its first step."""
        check_rows("LayerGibbs", "position", positions, len(self.machine.weights))

    def step(self, key: Key[Array, ""], state: SpinState) -> tuple[SpinState, SpinInfo]:
        """One transition: both layers."""
        machine = self.machine
        units, count = machine.weights.shape
        hidden_key, visible_key = jax.random.split(key)
        noise = jax.random.normal(hidden_key, (count,), machine.weights.dtype)
        hidden = machine.hidden_mean(state.position) + noise * jnp.asarray(machine.beta, noise.dtype) ** -0.5
        uniform = jax.random.uniform(visible_key, (units,), machine.weights.dtype)
        up = uniform < jax.nn.sigmoid(machine.visible_logits(hidden))
        spins = jnp.where(up, 1, -1).astype(state.position.dtype)
        return SpinState(spins), _info(hidden, 2 * units * count)


class SpinGibbs(eqx.Module):
    """Gibbs sampling of a `HopfieldNetwork`, spin by spin: the baseline.

    P(s_i = +1 | the others) = σ(2β (Σ_{j≠i} J_ij s_j + b_i)); one step is a sweep over all spins in order.

    network: what is sampled.
    beta: the inverse temperature, > 0.

    >>> from laureate.memory import store
    >>> kernel = SpinGibbs(store([[1, 1, 1, -1]]), beta=9.0)
    >>> state, info = kernel.step(jax.random.key(0), kernel.init(jnp.array([1.0, 1, 1, 1])))
    >>> float(state.position @ jnp.array([1.0, 1, 1, -1]))
    4.0
    """

    network: HopfieldNetwork
    beta: float | Float[Array, ""] = 1.0

    def __check_init__(self):
        require("SpinGibbs", "beta", "> 0", self.beta, lambda beta: beta > 0)

    def init(self, position: Float[Array, "units"], key: Key[Array, ""] | None = None) -> SpinState:
        """Start from these spins. ``key`` is ignored; BlackJAX's drivers pass one."""
        return SpinState(_spins("SpinGibbs", position, self.network.couplings))

    def check_positions(self, positions: Float[Array, "chains units"]) -> None:
        """Raise unless all stacked positions are spins; ``laureate.sampling.run`` asks before its first step."""
        check_rows("SpinGibbs", "position", positions, len(self.network.couplings))

    def step(self, key: Key[Array, ""], state: SpinState) -> tuple[SpinState, SpinInfo]:
        """One transition: a sweep."""
        couplings, units = self.network.couplings, self.network.num_units
        uniforms = jax.random.uniform(key, (units,), couplings.dtype)
        own = jnp.diag(couplings)

        def visit(i, carry):
            spins, fields = carry
            odds = 2 * self.beta * (fields[i] - own[i] * spins[i])
            change = jnp.where(uniforms[i] < jax.nn.sigmoid(odds), 1, -1).astype(spins.dtype) - spins[i]
            return spins.at[i].add(change), fields + couplings[i] * change

        fields = couplings @ state.position + self.network.field
        spins, _ = jax.lax.fori_loop(0, units, visit, (state.position, fields))
        return SpinState(spins), _info(jnp.zeros((0,), couplings.dtype), 2 * units * units)


class LowRankSpinGibbs(eqx.Module):
    """Gibbs sampling of a `BoltzmannMachine`'s visible units, spin by spin, without its hidden units.

    The field of a spin is Σ_{j≠i} (WWᵀ)_ij s_j + (b + Wc)_i; with m = Wᵀs carried along a sweep takes N p operations
    instead of the N² of `SpinGibbs`.

    machine: what is sampled.

    >>> from laureate.memory import store, to_boltzmann_machine
    >>> kernel = LowRankSpinGibbs(to_boltzmann_machine(store([[1, 1, 1, -1]]), beta=9.0))
    >>> state, info = kernel.step(jax.random.key(0), kernel.init(jnp.array([1.0, 1, 1, 1])))
    >>> float(state.position @ jnp.array([1.0, 1, 1, -1]))
    4.0
    """

    machine: BoltzmannMachine

    def init(self, position: Float[Array, "units"], key: Key[Array, ""] | None = None) -> SpinState:
        """Start from these spins. ``key`` is ignored; BlackJAX's drivers pass one."""
        return SpinState(_spins("LowRankSpinGibbs", position, self.machine.weights))

    def check_positions(self, positions: Float[Array, "chains units"]) -> None:
        """Raise unless all stacked positions are spins; ``laureate.sampling.run`` asks before its first step."""
        check_rows("LowRankSpinGibbs", "position", positions, len(self.machine.weights))

    def step(self, key: Key[Array, ""], state: SpinState) -> tuple[SpinState, SpinInfo]:
        """One transition: a sweep."""
        weights, beta = self.machine.weights, self.machine.beta
        units, count = weights.shape
        uniforms = jax.random.uniform(key, (units,), weights.dtype)
        own = jnp.sum(weights**2, axis=1)
        field = self.machine.visible_bias + weights @ self.machine.hidden_bias

        def visit(i, carry):
            spins, mean = carry
            odds = 2 * beta * (weights[i] @ mean - own[i] * spins[i] + field[i])
            change = jnp.where(uniforms[i] < jax.nn.sigmoid(odds), 1, -1).astype(spins.dtype) - spins[i]
            return spins.at[i].add(change), mean + weights[i] * change

        spins, _ = jax.lax.fori_loop(0, units, visit, (state.position, state.position @ weights))
        return SpinState(spins), _info(jnp.zeros((0,), weights.dtype), 3 * units * count)


def _info(hidden: Array, cost: int) -> SpinInfo:
    accepted = jnp.ones((), hidden.dtype)
    return SpinInfo(hidden, accepted, jnp.asarray(cost, jnp.int32), jnp.asarray(int(Status.OK), jnp.int32))


def _spins(owner: str, position: Array, matrix: Array) -> Array:
    check_one(owner, "position", position, matrix.shape[0])
    return jnp.asarray(position, matrix.dtype)
