"""The loop most users write: estimate, update, repeat; compiled, resumable anywhere."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.core import Tracer

from laureate import loops
from laureate._core import require
from laureate.gradients.episodes import is_count
from laureate.gradients.unroll import as_theta

__all__ = ["History", "TrainState", "train"]


class TrainState(NamedTuple):
    """All that training needs to go on: a pytree to be saved, and given back as ``train(start=...)``.

    theta: the parameters. estimator, optimiser: their states. update, cost: updates and inner steps done so far.
    """

    theta: Any
    estimator: Any
    optimiser: Any
    update: Array
    cost: Array


class History(NamedTuple):
    """What training recorded, update by update.

    loss, status, num_nonfinite: of every update, from the estimator's ``Info``.
    num_unequal: the same, None for the methods that differentiate.
    update, cost: at every record, the updates and the inner steps done since the very start.
    recorded: ``record(theta)`` at every record.
    last: from where to go on.
    """

    loss: Array
    status: Array
    num_nonfinite: Array
    num_unequal: Array | None
    update: Array
    cost: Array
    recorded: Any
    last: TrainState


def train(
    key: Array,
    estimator: Any,
    optimiser: optax.GradientTransformation,
    theta: Any,
    num_updates: int,
    *,
    start: TrainState | None = None,
    record: Callable[[Any], Any] | None = None,
    every: int = 1,
    batches: Callable[[Array], Any] | None = None,
    progress: Callable[[loops.Progress], None] | None = None,
    checkpoint: str | Path | None = None,
) -> tuple[Any, History]:
    """Minimise an unroll's loss: ``num_updates`` updates of theta, compiled in chunks; a new number compiles nothing.

    key: the whole run's; update u uses a key made from u alone, so that a run in parts equals a run in one go.
    estimator: any of this area (or anything with their ``init`` and ``step``).
    optimiser: any of Optax.
    theta: where to begin; not looked at if ``start`` is given.
    num_updates: how many updates to do now, >= 1.
    start: the ``History.last`` of an earlier call with the same key, to go on from.
    record: a function of theta, computed after every ``every`` updates; ``every`` must divide ``num_updates``.
    batches: a function from the absolute index of an update (traced) to that update's batches.
    progress: called about every second with a ``laureate.loops.Progress``.
    checkpoint: a file; the same call again, with as many updates or more, goes on from it.

    Returns theta and a ``History``. It can be jitted, and vmapped over keys and settings (without progress and
    checkpoint). Hold on to ``optimiser``, ``record`` and ``batches``: a new function object compiles anew.

    >>> import jax, jax.numpy as jnp, optax
    >>> from laureate.gradients import PersistentES, full_unroll_loss
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = PersistentES(Decay(), num_pairs=100, truncation=5, horizon=20, sigma=0.1)
    >>> loss = lambda theta: full_unroll_loss(jax.random.key(0), Decay(), theta, horizon=20)
    >>> theta, history = train(jax.random.key(0), estimator, optax.sgd(1e-4), 0.3, 40, record=loss, every=20)
    >>> bool(history.recorded[-1] < history.recorded[0]), history.cost.tolist()
    (True, [20000.0, 40000.0])
    """
    require("train", "num_updates", "an integer >= 1", num_updates, is_count)
    rule = f"a divisor of num_updates ({num_updates})"
    require("train", "every", rule, every, lambda n: is_count(n) and num_updates % n == 0)
    if start is None:
        theta = as_theta("train", theta)
        state = estimator.init(jax.random.fold_in(key, 0), theta)
        start = TrainState(theta, state, optimiser.init(theta), jnp.asarray(0, jnp.int32), jnp.asarray(0.0))
    step = Update(key, estimator, optimiser, batches)
    watch = Record(record)
    more = {"first": start.update, "every": every, "record": watch, "progress": progress, "checkpoint": checkpoint}
    last, seen, (updates, cost, recorded), _ = loops.run(step, start, num_updates, **more)
    history = History(*seen, update=updates, cost=cost, recorded=recorded, last=last)
    unequal = history.num_unequal
    if unequal is not None and not isinstance(unequal, Tracer) and unequal.any():
        warnings.warn(
            f"In {int((unequal > 0).sum())} updates the two signs of a pair ended at different steps; who ends first "
            "waits with zero loss for the other. That is right, but costs steps.",
            stacklevel=2,
        )
    return last.theta, history


class Update(eqx.Module):
    """One update of theta, by its absolute index."""

    key: Array
    estimator: Any
    optimiser: optax.GradientTransformation
    batches: Callable[[Array], Any] | None

    def __call__(self, state: TrainState, index: Array) -> tuple[TrainState, Any]:
        """The next state, and what the estimator said."""
        own = jax.random.fold_in(self.key, index + 1)  # by the absolute update: parts change nothing
        data = None if self.batches is None else self.batches(index)
        gradient, carried, info = self.estimator.step(own, state.theta, state.estimator, data)
        updates, memory = self.optimiser.update(gradient, state.optimiser, state.theta)
        theta = optax.apply_updates(state.theta, updates)
        cost = state.cost + info.cost.astype(state.cost.dtype)
        seen = (info.loss, info.status, info.num_nonfinite, info.num_unequal)
        return TrainState(theta, carried, memory, index + 1, cost), seen


class Record(eqx.Module):
    """What is kept of a state."""

    function: Callable[[Any], Any] | None

    def __call__(self, state: TrainState) -> tuple[Array, Array, Any]:
        """The updates and the cost so far, and the user's function of theta."""
        return state.update, state.cost, None if self.function is None else self.function(state.theta)
