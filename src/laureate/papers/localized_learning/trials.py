"""LoCal+SGD: dense networks on real images; every rule tuned on one grid, and delays simulated."""

from itertools import groupby, pairwise
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from laureate.lab.claim import Settings
from laureate.training import (
    AbstractRule,
    Chain,
    Dense,
    Fixed,
    Frozen,
    LocalizedState,
    LocalizedTraining,
    Oja,
    RandomDirection,
    Staircase,
    WeakSupervision,
    participation_ratio,
    predict,
    train,
)

__all__ = ["accuracy_of", "delayed", "dense", "most_common", "perceptron", "rows"]

MOMENTUM = 0.9


class Rows(NamedTuple):
    """A problem's images as rows, with their labels: to learn from, to choose by, to report."""

    train: tuple[Array, Array]
    validation: tuple[Array, Array]
    test: tuple[Array, Array]


def rows(problem: Any) -> Rows:
    """Flattened inputs of a problem."""
    flat = lambda inputs: jnp.reshape(inputs, (len(inputs), -1))  # noqa: E731
    return Rows(
        (flat(problem.inputs), problem.labels),
        (flat(problem.validation_inputs), problem.validation_labels),
        (flat(problem.test_inputs), problem.test_labels),
    )


def perceptron(key: Array, inputs: int, hidden: int, layers: int, classes: int) -> list[Any]:
    """``layers`` blocks of a dense layer and a ReLU, and a dense head; one draw, dealt out."""
    sizes = [inputs, *[hidden] * layers, classes]
    shapes = [(o, i) for i, o in pairwise(sizes)]
    parts = jnp.split(
        jax.random.normal(key, (sum(o * i for o, i in shapes),)), np.cumsum([o * i for o, i in shapes])[:-1]
    )
    drawn = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    return [*(Chain((Dense(d), jax.nn.relu)) for d in drawn[:-1]), Dense(drawn[-1])]


def accuracy_of(blocks: Any, inputs: Array, labels: Array) -> Array:
    """Share of rows whose largest output is that of their label."""
    return jnp.mean(jnp.argmax(predict(blocks, inputs), axis=-1) == labels)


def most_common(problem: Any, num_classes: int) -> Array:
    """Accuracy of always naming the commonest label of the training rows."""
    common = jnp.argmax(jnp.bincount(problem.labels, length=num_classes))
    return jnp.mean(problem.test_labels == common)


def phases(schedule: str, epochs: int, start: int, every: int, layers: int) -> list[tuple[int, int, int]]:
    """A schedule as (boundary, first epoch, epochs), a row for each boundary; at most all hidden layers but one."""
    most = layers - 1
    stairs = Staircase(start, every, max_boundary=most)
    of_epoch = {"none": lambda e: 0, "stairs": lambda e: stairs.at(e, layers + 1), "scratch": lambda e: most}[schedule]
    parts = [(boundary, list(group)) for boundary, group in groupby(range(epochs), of_epoch)]
    return [(boundary, group[0], len(group)) for boundary, group in parts]


def rule_of(arm: Settings) -> AbstractRule:
    """Without a decay Oja's rule is Hebb's, bit by bit: arms that differ in numbers share a program."""
    return {"random": RandomDirection(), "frozen": Frozen(), "hebb": Oja(decay=arm.decay)}[arm.rule]


def _trainer(arm: Settings, boundary: int, rate: Array, local_rate: Array, steps: int) -> LocalizedTraining:
    return LocalizedTraining(
        Fixed(boundary),
        rule_of(arm),
        optax.sgd(optax.cosine_decay_schedule(rate, steps), momentum=MOMENTUM),
        supervision=WeakSupervision(rising=arm.rising),
        local_rate=local_rate,
    )


def dense(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Test accuracy at the rates that validation rows choose, and at the largest local rate of the grid."""
    start_key, batch_key, rule_key = jax.random.split(key, 3)
    data, num_rates = rows(problem), len(scale.local_rates)
    if arm.rule == "majority":
        accuracy = most_common(problem, scale.classes)
        curve = {"accuracies": jnp.full(num_rates, accuracy), "local_rates": jnp.asarray(scale.local_rates)}
        return {"accuracy": accuracy, "large": accuracy} | curve
    blocks = perceptron(start_key, data.train[0].shape[1], scale.hidden, scale.layers, scale.classes)
    parts = phases(arm.schedule, scale.epochs, scale.start, scale.every, scale.layers)
    steps = scale.epochs * (len(data.train[0]) // scale.batch)

    def trained(local_rate: Array, rate: Array) -> tuple[Array, ...]:
        trainer = _trainer(arm, parts[0][0], rate, local_rate, steps)
        state = trainer.init(rule_key, blocks)
        before = state.blocks[0]
        for boundary, first, epochs in parts:
            if state.boundary.index == 0 < boundary:
                before = state.blocks[0]  # as backpropagation leaves it
            state, _ = trainer.move(state, boundary)
            state, _ = train(batch_key, trainer, state, *data.train, batch=scale.batch, num_epochs=epochs, first=first)
        first, old = state.blocks[0].layers[0].weight, before.layers[0].weight
        return (
            accuracy_of(state.blocks, *data.validation),
            accuracy_of(state.blocks, *data.test),
            participation_ratio(first) / participation_ratio(old),
            alignment(first, data.train[0]),
            jnp.log(jnp.linalg.norm(first) / jnp.linalg.norm(old)),
        )

    rates, local_rates = jnp.asarray(scale.rates), jnp.asarray(scale.local_rates)
    if arm.rule == "frozen":
        local_rates = jnp.zeros(1)  # nothing moves below the boundary
    found = jax.vmap(lambda own: jax.vmap(lambda rate: trained(own, rate))(rates))(local_rates)  # [local rates, rates]
    curve = {"local_rates": jnp.asarray(scale.local_rates)}
    chosen = at_best(found, rates, local_rates)
    return chosen | curve | {"accuracies": jnp.broadcast_to(chosen["accuracies"], (num_rates,))}


def at_best(found: tuple[Array, ...], rates: Array, local_rates: Array) -> dict[str, Array]:
    """What is reported of all pairs of rates: validation rows choose, of equal accuracies the largest local rate.

    found: [local rates, rates] each: accuracy on validation and test rows, then what ``dense`` says of the first layer,
    which is reported for the largest local rate and the learning rate that suits the smallest one.
    """
    best = jnp.argmax(found[0], axis=1)  # the rate for each local rate
    validation, test = (jnp.take_along_axis(each, best[:, None], 1)[:, 0] for each in found[:2])
    # At the largest local rate no learning rate may be good, and one that diverged may be chosen by chance.
    kept, aligned, growth = (each[-1, best[0]] for each in found[2:])
    chosen = len(local_rates) - 1 - jnp.argmax(validation[::-1])  # of equals the largest
    return {
        "accuracy": test[chosen],
        "rate": rates[best[chosen]],
        "local_rate": local_rates[chosen],
        "large": test[-1],
        "large_rate": rates[best[-1]],
        "kept": kept,
        "alignment": aligned,
        "log_growth": growth,
        "accuracies": test,
    }


def alignment(weight: Array, inputs: Array) -> Array:
    """Mean |cosine| between the rows of a weight and the first principal direction of E[a aᵀ], by power iteration."""
    moment = inputs.T @ inputs / len(inputs)
    turn = lambda vector, _: ((moved := moment @ vector) / jnp.linalg.norm(moved), None)  # noqa: E731
    top, _ = jax.lax.scan(turn, jnp.ones(len(moment)) / len(moment) ** 0.5, None, length=50)
    return jnp.mean(jnp.abs(weight @ top) / jnp.maximum(jnp.linalg.norm(weight, axis=1), 1e-30))


def delayed(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A pipeline: after a common start, what leaves the blocks below the boundary is d steps old; for SGD, gradients.

    Blocks below the boundary see their own newest weights; those above it learn from outputs of weights of d steps ago.
    With plain SGD there is no boundary, and gradients are those of all weights of d steps ago. The rate is chosen anew
    for every delay.
    """
    start_key, batch_key, rule_key = jax.random.split(key, 3)
    data = rows(problem)
    if arm.rule == "majority":
        accuracy = most_common(problem, scale.classes)
        delays = jnp.asarray(scale.delays, jnp.float32)
        curve = {"accuracies": jnp.full(len(delays), accuracy), "delays": delays}
        return {"undelayed": accuracy, "delayed": accuracy, "lost": jnp.zeros(())} | curve
    blocks = perceptron(start_key, data.train[0].shape[1], scale.hidden, scale.layers, scale.classes)
    boundary = 0 if arm.schedule == "none" else scale.layers - 1
    per_epoch = len(data.train[0]) // scale.batch
    slots = max(scale.delays) + 1

    def trained(delay: Array, rate: Array, local_rate: Array) -> tuple[Array, Array]:
        trainer = _trainer(arm, 0, rate, local_rate, scale.epochs * per_epoch)
        state = trainer.init(rule_key, blocks)
        state, _ = train(batch_key, trainer, state, *data.train, batch=scale.batch, num_epochs=scale.start)
        state, _ = trainer.move(state, boundary)
        old = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), eqx.filter(state.blocks, eqx.is_array)
        )

        def step(carry: tuple[LocalizedState, Any], at: tuple[Array, Array]) -> tuple[tuple[LocalizedState, Any], None]:
            (state, old), (index, chosen) = carry, at
            batch = data.train[0][chosen], data.train[1][chosen]
            old = jax.tree.map(lambda r, new: r.at[index % slots].set(new), old, eqx.filter(state.blocks, eqx.is_array))
            past = eqx.combine(jax.tree.map(lambda r: r[(index - delay) % slots], old), state.blocks)
            return (_late_step(trainer, state, past, batch), old), None

        count = (scale.epochs - scale.start) * per_epoch
        chosen = jax.random.randint(
            jax.random.fold_in(batch_key, scale.epochs), (count, scale.batch), 0, len(data.train[0])
        )
        arrays, rest = eqx.partition(state, eqx.is_array)

        def scanned(carry: Any, at: tuple[Array, Array]) -> tuple[Any, None]:
            (state, old), _ = step((eqx.combine(carry[0], rest), carry[1]), at)
            return (eqx.filter(state, eqx.is_array), old), None

        (arrays, _), _ = jax.lax.scan(scanned, (arrays, old), (jnp.arange(count) + slots, chosen))
        last = eqx.combine(arrays, rest).blocks
        return accuracy_of(last, *data.validation), accuracy_of(last, *data.test)

    rates, local_rate = jnp.asarray(scale.rates), jnp.asarray(scale.local_rate)
    each = jax.vmap(lambda d: jax.vmap(lambda r: trained(d, r, local_rate))(rates))(jnp.asarray(scale.delays))
    best = jnp.argmax(each[0], axis=1)
    test = jnp.take_along_axis(each[1], best[:, None], 1)[:, 0]
    return {
        "undelayed": test[0],
        "delayed": test[-1],
        "lost": test[0] - test[-1],
        "rate": rates[best[0]],
        "delayed_rate": rates[best[-1]],
        "accuracies": test,
        "delays": jnp.asarray(scale.delays, jnp.float32),
    }


def _late_step(
    trainer: LocalizedTraining, state: LocalizedState, past: Any, batch: tuple[Array, Array]
) -> LocalizedState:
    """One step in which what comes from below the boundary is old; with boundary 0, in which gradients are."""
    boundary = state.boundary.index
    if boundary == 0:
        after, _ = trainer.step(state._replace(blocks=past), *batch)
        moved = lambda now, new, old: now + (new - old) if eqx.is_inexact_array(now) else now  # noqa: E731
        return after._replace(blocks=jax.tree.map(moved, state.blocks, after.blocks, past))
    fresh, _ = trainer.step(state, *batch)  # the local updates of now
    late, _ = trainer.step(state._replace(blocks=past[:boundary] + state.blocks[boundary:]), *batch)
    # Both losses that the sign compares, of this step and of the one before, are the undelayed ones.
    return late._replace(blocks=fresh.blocks[:boundary] + late.blocks[boundary:], average=fresh.average)
