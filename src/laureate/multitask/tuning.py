"""Several aggregators in one program, and a learning rate for each, chosen on other rows than it is judged by."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.multitask.training import Tasks, train

__all__ = ["TunedResult", "select", "tune"]


class TunedResult(NamedTuple):
    """What the best rate gave.

    scores: of every task on the test part, ``failed`` where they or the parameters are not finite. rate: the chosen
    one. watched: of its run.
    """

    scores: Float[Array, "T"]
    rate: Float[Array, ""]
    watched: Any


def tune(
    key: Key[Array, ""],
    tasks: Tasks,
    optimiser: Callable[[Array], optax.GradientTransformation],
    params: Any,
    rates: Sequence[float],
    num_steps: int,
    *,
    choose: Literal["worst", "mean"] = "mean",
    failed: float | Array = -jnp.inf,
    **more: Any,
) -> TunedResult:
    """Train once with every rate, side by side, and keep the one with the best scores on the validation part.

    ::

        rate = argmax over rates of min_t or mean_t score_t(validation), −∞ where it is not finite

    tasks: a problem, `Tasks`. optimiser: from a rate to a transformation that begins with an aggregator.
    params: where all start. rates: to be tried. num_steps: of each.
    choose: whether the worst task counts or their mean. failed: the score that stands for one that is not finite, below
    all that can be: −1 does for accuracies, which can then be averaged. more: ``gram`` and ``watch`` of `train`.

    >>> from laureate.multitask import uniform
    >>> class Point:
    ...     def batch(self, key):
    ...         return jnp.array([1.0, 3.0])
    ...     def losses(self, params, batch):
    ...         return (params - batch) ** 2
    ...     def scores(self, params, part):
    ...         return -self.losses(params, jnp.array([1.0, 3.0]))
    >>> make = lambda rate: optax.chain(uniform(), optax.sgd(rate))
    >>> tune(jax.random.key(0), Point(), make, jnp.zeros(()), (0.01, 0.25, 2.0), 3).rate.item()
    0.25
    """
    require("tune", "choose", "'worst' or 'mean'", choose, lambda word: word in ("worst", "mean"))
    require("tune", "rates", "at least one", len(rates), lambda count: count > 0)

    def run(rate):
        found, history = train(key, tasks, optimiser(rate), params, num_steps, **more)
        parts = [tasks.scores(found, part) for part in ("validation", "test")]
        # argmax of NaN is the first class: scores alone do not show a network that diverged
        sound = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(found)]))
        validation, test = (jnp.where(sound & jnp.isfinite(part), part, -jnp.inf) for part in parts)
        return validation, jnp.where(test > -jnp.inf, test, failed), history.watched

    tried = jnp.asarray(rates)
    validation, test, watched = jax.vmap(run)(tried)
    quality = jnp.min(validation, axis=1) if choose == "worst" else jnp.mean(validation, axis=1)
    best = jnp.argmax(quality)
    return TunedResult(test[best], tried[best], jax.tree.map(lambda leaf: leaf[best], watched))


def select(
    number: Array, transformations: Sequence[optax.GradientTransformationExtraArgs]
) -> optax.GradientTransformationExtraArgs:
    """One of several transformations, by a number that may be traced: all of them share one compiled program.

    number: from 0 on. transformations: with updates of one shape; only the state of the chosen one moves.

    >>> from laureate.multitask import uniform, unit_sum
    >>> tx = select(jnp.asarray(1), (uniform(), unit_sum()))
    >>> jax.jit(tx.update)(jnp.array([[2.0, 0.0], [0.0, 4.0]]), tx.init(jnp.zeros(2)))[0].tolist()
    [1.0, 1.0]
    """

    def init(params):
        return tuple(tx.init(params) for tx in transformations)

    def update(grads, states, params=None, **extra):
        def branch(index):
            def call(grads, states, extra):
                updates, state = transformations[index].update(grads, states[index], params, **extra)
                return updates, (*states[:index], state, *states[index + 1 :])

            return call

        branches = [branch(index) for index in range(len(transformations))]
        return jax.lax.switch(jnp.asarray(number).astype(jnp.int32), branches, grads, states, extra)

    return optax.GradientTransformationExtraArgs(init, update)  # pyright: ignore[reportArgumentType]
