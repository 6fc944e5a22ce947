"""Contrastive divergence: training a Boltzmann machine on data."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from laureate import loops
from laureate._core import Status, require
from laureate.memory.gibbs import LayerGibbs
from laureate.memory.hopfield import check_rows
from laureate.memory.machine import BoltzmannMachine

__all__ = ["ContrastiveDivergence", "ContrastiveInfo", "ContrastiveState", "train"]


class ContrastiveState(NamedTuple):
    """What training carries.

    machine: as trained so far. optimiser_state: Optax's. chains: the persistent ones, [chains, units]; None where they
    start anew from the data.
    """

    machine: BoltzmannMachine
    optimiser_state: Any
    chains: Float[Array, "chains units"] | None


class ContrastiveInfo(NamedTuple):
    """What an update reports.

    gap: mean free energy of data minus that of samples, in units of 1/β; near zero when trained.
    gradient_norm: of all parameters together.
    cost: layer updates.
    status: ``Status.DIVERGED`` where the gradient is not finite or data are not −1 and 1; the step is taken all the
        same.
    """

    gap: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class ContrastiveDivergence(eqx.Module):
    """Fit a `BoltzmannMachine` to data by following chains for a few steps.

    ∇ log-likelihood = -β (E_data[∇F(s)] - E_model[∇F(s)]),   ∂F/∂W = -s (Wᵀs + c)ᵀ

    The second mean is over chains moved ``num_steps`` times from the data (Hinton 2002), or kept from update to update
    (``num_chains``; Tieleman 2008). The hidden units enter by their means, in both.

    optimiser: any Optax gradient transformation; it minimises.
    num_steps: Gibbs steps an update, >= 1.
    train_bias: train b and c, too; without, a machine that begins at nought stays symmetric, p(s) = p(-s).

    >>> trainer = ContrastiveDivergence(optax.sgd(0.1), num_steps=2)
    >>> machine = BoltzmannMachine(0.1 * jnp.ones((3, 1)), jnp.zeros(3), jnp.zeros(1))
    >>> state, info = trainer.update(jax.random.key(0), trainer.init(machine), jnp.ones((20, 3)))
    >>> bool(jnp.all(state.machine.visible_bias > 0))
    True
    """

    optimiser: optax.GradientTransformation = eqx.field(static=True)
    num_steps: int = eqx.field(default=1, static=True, kw_only=True)
    train_bias: bool = eqx.field(default=True, static=True, kw_only=True)

    def __check_init__(self):
        require("ContrastiveDivergence", "num_steps", ">= 1", self.num_steps, lambda n: n >= 1)

    def init(self, machine: BoltzmannMachine, chains: Float[Array, "chains units"] | None = None) -> ContrastiveState:
        """Begin with this machine; ``chains`` are the persistent ones, where there are any."""
        if chains is not None:
            check_rows("ContrastiveDivergence", "chains", chains, len(machine.visible_bias))
            chains = jnp.asarray(chains, machine.weights.dtype)
        return ContrastiveState(machine, self.optimiser.init(self._parameters(machine)), chains)

    def _parameters(self, machine: BoltzmannMachine) -> tuple[Array, ...]:
        fields = (machine.weights, machine.visible_bias, machine.hidden_bias)
        return fields if self.train_bias else fields[:1]

    def update(
        self, key: Key[Array, ""], state: ContrastiveState, data: Float[Array, "rows units"]
    ) -> tuple[ContrastiveState, ContrastiveInfo]:
        """One step of the optimiser on a batch."""
        machine = state.machine
        check_rows("ContrastiveDivergence.update", "data", data, len(machine.visible_bias))
        data = jnp.asarray(data, machine.weights.dtype)
        kernel = LayerGibbs(machine)
        starts = data if state.chains is None else state.chains.astype(data.dtype)

        def walk(key, spins):
            keys = jax.random.split(key, self.num_steps)
            return jax.lax.scan(lambda s, k: (kernel.step(k, s)[0], None), kernel.init(spins), keys)[0].position

        samples = jax.vmap(walk)(jax.random.split(key, len(starts)), starts)

        def loss(parameters):
            free_energy = jax.vmap(eqx.tree_at(self._parameters, machine, parameters).free_energy)
            # The samples are held fixed: the gradient of log Z is the mean of -β∇F over the model.
            return machine.beta * (jnp.mean(free_energy(data)) - jnp.mean(free_energy(samples)))

        parameters = self._parameters(machine)
        gap, gradient = jax.value_and_grad(loss)(parameters)
        changes, optimiser_state = self.optimiser.update(gradient, state.optimiser_state, parameters)
        updated = optax.apply_updates(parameters, changes)
        machine = eqx.tree_at(self._parameters, machine, updated)
        norm = optax.tree.norm(gradient)
        sound = jnp.all(jnp.abs(data) == 1) & jnp.isfinite(norm)
        status = jnp.where(sound, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)
        cost = jnp.asarray(2 * self.num_steps * len(starts), jnp.int32)
        chains = None if state.chains is None else samples
        return ContrastiveState(machine, optimiser_state, chains), ContrastiveInfo(gap, norm, cost, status)


def train(
    key: Key[Array, ""],
    trainer: ContrastiveDivergence,
    state: ContrastiveState,
    data: Float[Array, "rows units"],
    num_updates: int,
    batch_size: int,
    progress: Callable[[loops.Progress], None] | None = None,
) -> tuple[ContrastiveState, ContrastiveInfo]:
    """``num_updates`` updates on batches drawn from the rows of the data, as one compiled loop.

    The key of an update comes from its number, so repeating the call with the state it returned, and a key of its own,
    goes on.

    progress: called about every second with a ``laureate.loops.Progress``; not within jit.
    """
    check_rows("train", "data", data, len(state.machine.visible_bias))
    require("train", "batch_size", f"in 1..{len(data)}", batch_size, lambda b: 1 <= b <= len(data))
    require("train", "num_updates", ">= 1", num_updates, lambda n: n >= 1)
    data = jnp.asarray(data, state.machine.weights.dtype)

    def one(state, number):
        batch_key, walk_key = jax.random.split(jax.random.fold_in(key, number))
        rows = jax.random.randint(batch_key, (batch_size,), 0, len(data))
        return trainer.update(walk_key, state, data[rows])

    return loops.scan(one, state, jnp.arange(num_updates), progress=progress)
