"""A training loop for problems with several losses: any aggregator, any Optax optimiser after it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from laureate._core import require

__all__ = ["Tasks", "TrainingHistory", "train"]


class Tasks(Protocol):
    """A problem with T losses: what `train`, the papers' experiments and races ask for.

    It may also offer ``shared(path) -> bool``, which leaves of the parameters all tasks share.
    """

    def params0(self, key: Key[Array, ""]) -> Any:
        """Parameters to start from."""
        ...

    def batch(self, key: Key[Array, ""]) -> Any:
        """What one step sees."""
        ...

    def losses(self, params: Any, batch: Any) -> Float[Array, "T"]:
        """One number a task."""
        ...

    def scores(self, params: Any, part: str) -> Float[Array, "T"]:
        """How good each task is, more is better, on the ``"validation"`` or the ``"test"`` part of the data."""
        ...


class TrainingHistory(NamedTuple):
    """What was seen at every step.

    losses: [steps, T]. watched: what ``watch`` returned, with a leading axis of steps; () without one.
    """

    losses: Float[Array, "steps T"]
    watched: Any


def train(
    key: Key[Array, ""],
    tasks: Tasks,
    optimiser: optax.GradientTransformation,
    params: Any,
    num_steps: int,
    *,
    gram: Callable[[Any, Any], Array] | None = None,
    watch: Callable[[Any, Any, Array, Any], Any] | None = None,
) -> tuple[Any, TrainingHistory]:
    """Train with one gradient a task at every step.

    ::

        losses, J = jax.jacrev(L)(θ),     θ ← θ + optimiser(J, losses)

    The batch of step i depends on the key and i alone.

    tasks: a problem of yours, `Tasks`. optimiser: an aggregator, and what follows it: ``optax.chain(imtl_g(), adam)``.
    params: where to start. num_steps: how many.
    gram: ``gram(params, batch)``, a Gram matrix [T, T] from elsewhere for the weights, as of `aggregator`.
    watch: ``watch(grads, updates, losses, state)``, what to keep of every step; updates and state are those of the
        whole chain.

    >>> from laureate.multitask import imtl_g
    >>> class Points:
    ...     def batch(self, key):
    ...         return jnp.array([[0.0, 1.0], [0.0, 3.0]])
    ...     def losses(self, params, batch):
    ...         return jnp.sum((params - batch) ** 2, axis=1)
    >>> optimiser = optax.chain(imtl_g(), optax.sgd(0.05))
    >>> found, history = train(jax.random.key(0), Points(), optimiser, jnp.array([1.0, 2.0]), 40)
    >>> bool(abs(found[0]) < 0.1), history.losses.shape  # on the line between the points
    (True, (40, 2))
    """
    require("train", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
    optimiser = optax.with_extra_args_support(optimiser)

    def losses(params, batch):
        values = tasks.losses(params, batch)
        return values, values

    def step(carry, index):
        params, state = carry
        batch = tasks.batch(jax.random.fold_in(key, index))
        grads, values = jax.jacrev(losses, has_aux=True)(params, batch)
        extra = {} if gram is None else {"gram": gram(params, batch)}
        updates, state = optimiser.update(grads, state, params, losses=values, **extra)
        seen = () if watch is None else watch(grads, updates, values, state)
        return (optax.apply_updates(params, updates), state), TrainingHistory(values, seen)

    (params, _), history = jax.lax.scan(step, (params, optimiser.init(params)), jnp.arange(num_steps))
    return params, history
