"""Adam on a model with a choice inside, its gradient estimated: the loss of other rows at equal losses computed."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, spend, traced, view

__all__ = ["facts", "trial"]

LEAST = 64


def facts(problem: Any) -> dict[str, Any]:
    """Nothing is shared; shapes must agree."""
    model = view(problem)
    rows = np.shape(model.inputs)[:1]
    if rows < (LEAST,) or np.shape(model.targets)[:1] != rows:
        raise UserError(
            f"model.inputs and model.targets must have as many rows, at least {LEAST}; got "
            f"{list(np.shape(model.inputs))} and {list(np.shape(model.targets))}."
        )

    inputs, targets = jnp.asarray(model.inputs), jnp.asarray(model.targets)
    params = jax.eval_shape(model.theta0, jax.random.key(0))
    logits = jax.eval_shape(model.logits, params, inputs)
    if logits.ndim < 2 or logits.shape[:1] != rows or logits.shape[-1] < 2:
        raise UserError(f"model.logits must be [{rows[0]} rows, ..., options >= 2]; got {list(logits.shape)}.")
    loss = jax.eval_shape(model.loss, params, logits, inputs, targets)
    if loss.shape != rows:
        raise UserError(f"model.loss must be a number for each of {rows[0]} rows; got {list(loss.shape)}.")
    return {}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """The same start and batches for all entrants of a seed; tuning and scoring see rows of their own."""
    clock, model, settings = Clock(scale), view(problem), traced(arm)
    start_key, run_key, judge_key = jax.random.split(key, 3)
    count = len(model.inputs)
    order = np.random.default_rng(0).permutation(count)  # which rows are whose does not depend on the seed
    first = count // 2 if scale.phase == "tune" else count // 2 + count // 4
    train, held = order[: count // 2], order[first : first + count // 4]
    rows = tuple(jnp.asarray(part) for part in (model.inputs, model.targets))
    known, other = (tuple(part[index] for part in rows) for index in (train, held))
    carry = clock.run(_begin, settings, model, start_key)
    for target in clock.targets():
        carry = clock.run(_advance, settings, model, known, run_key, carry, jnp.asarray(target, jnp.int32), scale.batch)
        found = clock.run(_judge, model, other, judge_key, carry[0][0], scale.draws, free=True)
        clock.note(int(carry[2]), **found)
    return clock.record()


def _begin(settings: dict, model: Any, key: Any) -> Any:
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), model.theta0(key))
    zero = jnp.asarray(0, jnp.int32)
    return (params, optax.adam(settings["learning_rate"]).init(params)), zero, zero


def _advance(settings: dict, model: Any, known: Any, key: Any, carry: Any, target: Any, batch: int) -> Any:
    estimate, adam = made(settings), optax.adam(settings["learning_rate"])

    def update(state, index):
        params, memory = state
        rows_key, draw_key = jax.random.split(jax.random.fold_in(key, index))
        rows = jax.random.randint(rows_key, (batch,), 0, len(known[0]))
        inputs, targets = (part[rows] for part in known)

        def objective(params):
            logits = model.logits(params, inputs)
            return jnp.mean(estimate(draw_key, lambda z: model.loss(params, z, inputs, targets), logits))

        updates, memory = adam.update(jax.grad(objective)(params), memory)
        return (optax.apply_updates(params, updates), memory), batch * settings.get("samples", 1)

    return spend(update, *carry, target)  # pyright: ignore[reportCallIssue]


def _judge(model: Any, other: Any, key: Any, params: Any, draws: int) -> dict[str, Any]:
    logits = model.logits(params, other[0])

    def of(noise):
        z = jax.nn.one_hot(jnp.argmax(logits + noise, axis=-1), logits.shape[-1], dtype=logits.dtype)
        return jnp.mean(model.loss(params, z, *other))

    noise = jax.random.gumbel(key, (draws, *logits.shape), logits.dtype)
    return {"loss": jnp.mean(jax.vmap(of)(noise)), "greedy": of(jnp.zeros_like(logits))}
