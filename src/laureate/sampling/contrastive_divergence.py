"""Persistent contrastive divergence: training energy-based models with chains that are never restarted."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import Status, require
from laureate.sampling._kernel import Tree
from laureate.sampling.gibbs import is_systematic

__all__ = ["ContrastiveInfo", "ContrastiveState", "PersistentContrastiveDivergence"]


class ContrastiveState(NamedTuple):
    """What training carries. The replay buffer is part of it: checkpoints without it restart the chains.

    energy: the model.
    optimiser_state: Optax's.
    buffer: positions of all persistent chains, stacked.
    """

    energy: Any
    optimiser_state: Any
    buffer: Tree


class ContrastiveInfo(NamedTuple):
    """What an update reports.

    energy_gap: mean f on data minus mean f on samples; near zero when trained. acceptance_rate: of the chains' steps,
    the mean. gradient_norm: of all parameters together. cost: evaluations of the log density in all chains' steps.
    status: DIVERGED where the gradient is not finite, though the step is taken, or data are outside the domain, and it
    is not; else the worst of the chains.
    """

    energy_gap: Float[Array, ""]
    acceptance_rate: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class PersistentContrastiveDivergence(eqx.Module):
    """Fit an energy-based model p(x) ∝ exp(f_θ(x)) to data.

    ∇_θ log-likelihood = E_data[∇_θ f_θ(x)] - E_p[∇_θ f_θ(x)]; the second mean is over chains kept in a replay buffer
    and moved by `num_steps` sampler steps an update.

    Tieleman: "Training restricted Boltzmann machines using approximations to the likelihood gradient", ICML 2008.

    make_kernel: from an energy to the sampler that moves the chains: ``lambda f: GibbsWithGradients(f, Binary())``.
        A systematic scan begins at a random site in every update.
    optimiser: any Optax gradient transformation; it minimises.
    num_steps: sampler steps an update, >= 1.
    num_chains: chains of the buffer moved an update, chosen at random; None moves them all.
    restart: probability with which a chosen chain starts anew, in [0, 1]; needs ``sample_start``.
    sample_start: from a key to a position.
    penalty: from an energy to a number that is added to the loss, such as an l1 norm.

    >>> from laureate.sampling import Binary, GibbsWithGradients
    >>> class Coins(eqx.Module):
    ...     biases: jax.Array
    ...     def __call__(self, x): return self.biases @ x
    >>> def make_kernel(energy): return GibbsWithGradients(energy, Binary())
    >>> trainer = PersistentContrastiveDivergence(make_kernel, optax.adam(0.1), num_steps=4)
    >>> data = jnp.ones((20, 3), bool)
    >>> state = trainer.init(Coins(jnp.zeros(3)), jnp.zeros((20, 3), bool))
    >>> state, info = eqx.filter_jit(trainer.update)(jax.random.key(0), state, data)
    >>> bool(jnp.all(state.energy.biases > 0))
    True
    """

    make_kernel: Callable[[Any], Any] = eqx.field(static=True)
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    num_steps: int = eqx.field(default=10, static=True, kw_only=True)
    num_chains: int | None = eqx.field(default=None, static=True, kw_only=True)
    restart: float | Float[Array, ""] = eqx.field(default=0.0, kw_only=True)
    sample_start: Callable[[Key[Array, ""]], Tree] | None = eqx.field(default=None, static=True, kw_only=True)
    penalty: Callable[[Any], Float[Array, ""]] | None = eqx.field(default=None, static=True, kw_only=True)

    def __check_init__(self):
        owner = "PersistentContrastiveDivergence"
        require(owner, "num_steps", ">= 1", self.num_steps, lambda n: n >= 1)
        require(owner, "num_chains", ">= 1 or None", self.num_chains, lambda n: n is None or n >= 1)
        require(owner, "restart", "in [0, 1]", self.restart, lambda p: 0 <= float(p) <= 1)
        if not isinstance(self.restart, Tracer) and float(self.restart) > 0:
            rule = "a function where restart > 0"
            require(owner, "sample_start", rule, self.sample_start, lambda sample: sample is not None)

    def init(self, energy: Any, buffer: Tree) -> ContrastiveState:
        """Start from a model and a stack of positions, one a persistent chain."""
        size = jax.tree.leaves(buffer)[0].shape[0]
        self._check_codes("buffer", self.make_kernel(energy), buffer)
        rule = f"<= the buffer's {size} chains"
        require("PersistentContrastiveDivergence", "num_chains", rule, self.num_chains or 0, lambda n: n <= size)
        parameters = eqx.filter(energy, eqx.is_inexact_array)
        return ContrastiveState(energy, self.optimiser.init(parameters), jax.tree.map(jnp.asarray, buffer))

    def update(
        self, key: Key[Array, ""], state: ContrastiveState, data: Tree
    ) -> tuple[ContrastiveState, ContrastiveInfo]:
        """One optimiser step on a batch of ``data``, positions stacked along the first axis.

        Data outside the domain raise; under jit, where nothing can be raised, the model stays as it is, DIVERGED.
        """
        pick_key, restart_key, fresh_key, walk_key = jax.random.split(key, 4)
        size = jax.tree.leaves(state.buffer)[0].shape[0]
        count = size if self.num_chains is None else self.num_chains
        chosen = jnp.arange(size) if count == size else jax.random.permutation(pick_key, size)[:count]
        chains = jax.tree.map(lambda leaf: leaf[chosen], state.buffer)
        if self.sample_start is not None:
            fresh = jax.vmap(self.sample_start)(jax.random.split(fresh_key, count))
            anew = jax.random.bernoulli(restart_key, jnp.asarray(self.restart), (count,))
            chains = jax.tree.map(
                lambda a, b: jnp.where(anew.reshape(-1, *[1] * (b.ndim - 1)), a.astype(b.dtype), b), fresh, chains
            )
        kernel = self.make_kernel(state.energy)
        sound = self._check_codes("data", kernel, data)

        systematic = is_systematic(kernel)

        def walk(key, position):
            keys, state = jax.random.split(key, self.num_steps + systematic), kernel.init(position)
            if systematic:  # anywhere: from the first site in every update, the scan would not reach the last
                state = state._replace(num_steps=jax.random.randint(keys[-1], (), 0, 2**30))
            final, info = jax.lax.scan(lambda s, k: kernel.step(k, s), state, keys[: self.num_steps])
            return final.position, (jnp.mean(info.acceptance_rate), jnp.sum(info.cost), jnp.max(info.status))

        chains, (acceptance, cost, status) = jax.vmap(walk)(jax.random.split(walk_key, count), chains)
        parameters, rest = eqx.partition(state.energy, eqx.is_inexact_array)
        relax = kernel.layout(jax.tree.map(lambda leaf: leaf[0], chains)).relax

        def loss(parameters):
            energy = eqx.combine(parameters, rest)
            # -log-likelihood's gradient: samples are held fixed, only θ is differentiated.
            gap = jnp.mean(jax.vmap(lambda x: energy(relax(x)))(data)) - jnp.mean(
                jax.vmap(lambda x: energy(relax(x)))(chains)
            )
            return -gap + (0.0 if self.penalty is None else self.penalty(energy)), gap

        gradient, gap = jax.grad(loss, has_aux=True)(parameters)
        changes, optimiser_state = self.optimiser.update(gradient, state.optimiser_state, parameters)
        moved = optax.apply_updates(parameters, changes), optimiser_state
        kept = lambda new, old: jnp.where(sound, new, old) if eqx.is_array(new) else new  # noqa: E731
        parameters, optimiser_state = jax.tree.map(kept, moved, (parameters, state.optimiser_state))
        energy = eqx.combine(parameters, rest)
        buffer = jax.tree.map(lambda all_, some: all_.at[chosen].set(some), state.buffer, chains)
        norm = optax.tree.norm(gradient)
        info = ContrastiveInfo(
            energy_gap=gap,
            acceptance_rate=jnp.mean(acceptance),
            gradient_norm=norm,
            cost=jnp.sum(cost),
            status=jnp.where(jnp.isfinite(norm) & sound, jnp.max(status), int(Status.DIVERGED)).astype(jnp.int32),
        )
        return ContrastiveState(energy, optimiser_state, buffer), info

    def _check_codes(self, name: str, kernel: Any, positions: Tree) -> Bool[Array, ""]:
        layout = kernel.layout(jax.tree.map(lambda leaf: leaf[0], positions))
        where = f"PersistentContrastiveDivergence.{name}"
        return layout.check_all(where, positions, getattr(kernel, "category_mask", None))
