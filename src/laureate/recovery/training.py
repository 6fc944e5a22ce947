"""Training of a solver's parameters, end to end or layer by layer, with any Optax optimiser, in one compiled scan.

Greedy training follows the authors' code: layer t alone, then all layers up to t with a fifth and with a fiftieth of
the rate, the loss always at layer t.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from laureate import loops
from laureate._core import require
from laureate.recovery.solver import AbstractSolver, add_noise

__all__ = ["BernoulliGaussian", "fit", "squared_error"]

Solver = TypeVar("Solver", bound=AbstractSolver)
STAGES = (1.0, 0.2, 0.02)  # of a layer's greedy training: the rate's factor; in the first the layer is alone


class BernoulliGaussian(eqx.Module):
    """Sparse codes [n, size]: an entry is not zero with probability ``density``, and then normal of size ``scale``.

    >>> codes = BernoulliGaussian(100, density=0.1)(jax.random.key(0), 50)
    >>> codes.shape, bool(abs((codes != 0).mean() - 0.1) < 0.02)
    ((50, 100), True)
    """

    size: int = eqx.field(static=True)
    density: float | Array = 0.1
    scale: float | Array = 1.0

    def __check_init__(self):
        require("BernoulliGaussian", "size", ">= 1", self.size, lambda n: n >= 1)
        require("BernoulliGaussian", "density", "within 0 and 1", self.density, lambda p: 0 < p <= 1)
        require("BernoulliGaussian", "scale", "> 0", self.scale, lambda s: s > 0)

    def __call__(self, key: Array, number: int) -> Array:
        """So many codes."""
        where, what = jax.random.split(key)
        shape = number, self.size
        return (
            jnp.where(jax.random.uniform(where, shape) < self.density, jax.random.normal(what, shape), 0) * self.scale
        )


class _Plan(NamedTuple):
    """One training step: up to which layer, whether that layer alone, the rate's factor, whether a stage begins."""

    last: Array
    alone: Array
    factor: Array
    fresh: Array


def squared_error(solver: Any, estimate: Array, target: Array) -> Array:
    """The mean over the batch of ‖x̂ − x*‖².

    solver: not used; other losses read it. estimate, target: x̂ and x*.
    """
    del solver
    return jnp.sum((estimate - target) ** 2) / target.shape[0]


def fit(
    key: Array,
    solver: Solver,
    prior: Any,
    *,
    optimiser: optax.GradientTransformation,
    num_steps: int = 1000,
    batch: int = 64,
    snr: float | Array = jnp.inf,
    mode: Literal["end_to_end", "greedy"] = "end_to_end",
    loss: Callable[[Any, Array, Array], Array] = squared_error,
    redraw: Callable[[Array, Any], Any] | None = None,
    num_dictionaries: int = 4,
    progress: Callable[[loops.Progress], None] | None = None,
) -> tuple[Solver, Array]:
    """The trained solver and the losses, [num_steps] (greedy: so many for each of three stages of every layer).

    prior: a sampler ``prior(key, n) -> codes`` or an array of codes, from which signals are made with noise of ``snr``
        decibels; or a pair (signals, targets) of arrays, as they were measured.
    loss: of (solver, estimate, target). Thresholds are kept >= 0 throughout.
    redraw: ``redraw(key, solver) -> solver`` gives the solver another dictionary: ``num_dictionaries`` of them share
        a batch.
    progress: called about every second with a ``laureate.loops.Progress``; not within jit.
    """
    require("fit", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
    require("fit", "batch", ">= 1", batch, lambda n: n >= 1)
    require("fit", "num_dictionaries", ">= 1", num_dictionaries, lambda n: n >= 1)
    if mode not in ("end_to_end", "greedy"):
        raise ValueError(f"fit.mode must be 'end_to_end' or 'greedy'; got {mode!r}.")
    share = 1 if redraw is None else num_dictionaries
    rule, remedy = f"a multiple of num_dictionaries ({share})", "They share a batch in equal parts."
    require("fit", "batch", rule, batch, lambda n: n % share == 0, remedy)
    draw = _sampler(prior, batch // share)
    names = solver.trainable
    start = {name: getattr(solver, name) for name in names}

    def with_parameters(values):
        return eqx.tree_at(lambda s: [getattr(s, name) for name in names], solver, [values[name] for name in names])

    def one(values, key, last):
        made = with_parameters(values)
        redraw_key, draw_key, noise_key = jax.random.split(key, 3)
        if redraw is not None:
            made = redraw(redraw_key, made)
        signals, targets = draw(draw_key, made)
        if not isinstance(prior, tuple):
            signals = add_noise(noise_key, signals, snr, signals.ndim - 1)  # all axes but the batch's
        estimate = made(signals) if mode == "end_to_end" else made.trace(signals)[last]
        return loss(made, estimate, targets)

    def objective(values, key, last):
        if redraw is None:
            return one(values, key, last)
        keys = jax.random.split(key, num_dictionaries)
        return jnp.mean(jax.vmap(one, in_axes=(None, 0, None))(values, keys, last))

    def mask(plan, tree):
        """Zero what this step does not train."""

        def keep(name, leaf):
            if mode == "end_to_end" or name in solver.shared:
                return leaf
            at = jnp.arange(solver.num_layers)
            trained = jnp.where(plan.alone, at == plan.last, at <= plan.last)
            return leaf * trained.reshape(-1, *(1,) * (leaf.ndim - 1)).astype(leaf.dtype)

        return {name: keep(name, leaf) for name, leaf in tree.items()}

    def step(carry, at):
        values, state = carry
        key, plan = at
        state = jax.tree.map(lambda new, old: jnp.where(plan.fresh, new, old), optimiser.init(values), state)
        value, slope = jax.value_and_grad(objective)(values, key, plan.last)
        updates, state = optimiser.update(mask(plan, slope), state, values)
        updates = jax.tree.map(lambda u: u * plan.factor.astype(u.dtype), mask(plan, updates))
        return (_projected(optax.apply_updates(values, updates)), state), value

    plan = _plan(mode, solver.num_layers, num_steps)
    keys = jax.random.split(key, len(plan.last))
    (values, _), losses = loops.scan(step, (start, optimiser.init(start)), (keys, plan), progress=progress)
    return with_parameters(values), losses


def _plan(mode: str, num_layers: int, num_steps: int) -> _Plan:
    if mode == "end_to_end":
        fresh = np.arange(num_steps) == 0
        return _Plan(
            *map(
                jnp.asarray, (np.full(num_steps, num_layers - 1), np.zeros(num_steps, bool), np.ones(num_steps), fresh)
            )
        )
    stages = np.tile(np.arange(len(STAGES)), num_layers)
    last = np.repeat(np.repeat(np.arange(num_layers), len(STAGES)), num_steps)
    stage = np.repeat(stages, num_steps)
    fresh = np.arange(len(last)) % num_steps == 0
    return _Plan(*map(jnp.asarray, (last, stage == 0, np.asarray(STAGES)[stage], fresh)))


def _projected(values: Any) -> dict[str, Array]:
    """θ >= 0, and λ, of which it is made: a negative threshold would push entries away from zero."""
    return {name: jnp.maximum(leaf, 0) if name in ("theta", "penalty") else leaf for name, leaf in values.items()}


def _sampler(prior: Any, batch: int) -> Callable[[Array, Any], tuple[Array, Array]]:
    if isinstance(prior, tuple):
        signals, targets = jnp.asarray(prior[0]), jnp.asarray(prior[1])
        if len(signals) != len(targets):
            raise ValueError(f"fit.prior must pair signals with targets; got {len(signals)} and {len(targets)}.")

        def pairs(key, made):
            chosen = jax.random.randint(key, (batch,), 0, len(signals))
            return signals[chosen], targets[chosen]

        return pairs
    if not callable(prior):
        codes: Array = jnp.asarray(prior)

        def rows(key, made):
            chosen = codes[jax.random.randint(key, (batch,), 0, len(codes))]
            return made.synthesise(chosen), chosen

        return rows

    def drawn(key: Array, made: Any) -> tuple[Array, Array]:
        chosen: Any = prior(key, batch)
        return made.synthesise(chosen), chosen

    return drawn
