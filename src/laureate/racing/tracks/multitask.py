"""Adam behind an aggregator: the scores of all tasks at equal numbers of gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]


def facts(problem: Any) -> dict[str, Any]:
    """The number of tasks, and the cost of a few steps."""
    tasks, key = view(problem), jax.random.key(0)
    losses = jax.eval_shape(lambda: tasks.losses(tasks.params0(key), tasks.batch(key)))
    shape = jnp.shape(losses)
    if len(shape) != 1 or shape[0] < 2:
        raise UserError(
            f"tasks.losses must be an array [T] of at least two losses; got {list(shape)}.", "One number a task."
        )
    for part in ("validation", "test"):
        scores = jnp.shape(jax.eval_shape(lambda part=part: tasks.scores(tasks.params0(key), part)))
        if scores != shape:
            raise UserError(f"tasks.scores must be of shape {list(shape)}, as the losses; got {list(scores)}.")
    return {"num_tasks": shape[0], "smallest": 16 * shape[0]}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same start and batches for all entrants of a seed; tuning is judged by the validation part."""
    clock, tasks, settings = Clock(scale), view(problem), traced(arm)
    start_key, run_key = jax.random.split(key)
    carry = clock.run(_begin, settings, tasks, start_key)
    part = "validation" if scale.phase == "tune" else "test"
    for target in clock.targets():
        carry = clock.run(_advance, settings, tasks, run_key, carry, jnp.asarray(target, jnp.int32))
        clock.note(int(carry[2]), **clock.run(_judge, tasks, carry[0][0], part, free=True))
    return clock.record()


def _optimiser(settings: dict, tasks: Any) -> optax.GradientTransformationExtraArgs:
    return optax.chain(made(settings, tasks=tasks), optax.adam(settings["learning_rate"]))


def _begin(settings: dict, tasks: Any, key: Any) -> Any:
    params = tasks.params0(key)
    return (params, _optimiser(settings, tasks).init(params)), jnp.asarray(0, jnp.int32), jnp.asarray(0, jnp.int32)


def _advance(settings: dict, tasks: Any, key: Any, carry: Any, target: Any) -> Any:
    optimiser = _optimiser(settings, tasks)

    def update(state, index):
        params, memory = state
        batch = tasks.batch(jax.random.fold_in(key, index))
        grads, losses = jax.jacrev(lambda p: (tasks.losses(p, batch),) * 2, has_aux=True)(params)
        updates, memory = optimiser.update(grads, memory, params, losses=losses)
        return (optax.apply_updates(params, updates), memory), jnp.asarray(settings["num_tasks"])

    state, count, cost = carry
    return spend(update, state, count, cost, target)


def _judge(tasks: Any, params: Any, part: str) -> dict[str, Any]:
    scores = tasks.scores(params, part)
    return {"worst": jnp.min(scores), "mean": jnp.mean(scores)}
