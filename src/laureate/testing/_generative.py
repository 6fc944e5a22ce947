"""What every conditional model promises."""

from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate._core import Status
from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    inexact_types,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    on_host,
    same_bits,
    saved_goes_on,
    widened,
    with_nan,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_adversarial", "check_conditional_model"]


def check_conditional_model(
    model: Any,
    x: Any,
    y: Any,
    *,
    others: Sequence[Any] = (),
    cost: int | None = None,
    one_answer: bool = False,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init``, ``train`` and ``sample`` of a conditional model on pairs.

    model: an Equinox module, as ``laureate.generative.AbstractConditional``.
    x, y: at least four pairs, rows first, float32.
    others: the same model with other numbers; each must differ and compile nothing.
    cost: passes of a step, where it is known.
    one_answer: whether it answers alike whatever the key.
    unused: numbers of the model that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: a state of fixed shapes that counts its steps and whose arrays move; cost and status of every step;
    answers of y's shape, finite, other ones from another key; no retrace on a second call nor with another number;
    every number changes what is learned or answered; the same key gives the same bits, and no key is used twice; saved
    and loaded it goes on as if it had not been stopped; an answer does not depend on the other inputs; pairs that are
    not finite are reported; double precision stays so.
    """
    check = Check(type(model).__name__, skip)
    model, others = numbers_as_arrays(model), [numbers_as_arrays(other) for other in others]
    x, y, key = np.asarray(x, np.float32), np.asarray(y, np.float32), jax.random.key(7)
    train = Program(lambda model, key, x, y, state: model.train(key, x, y, state, num_steps=2, batch=3))
    draw = Program(lambda model, key, state, x: model.sample(key, state, x, 3))
    begin = Program(lambda model: model.init())
    first = begin(model)
    with KeyRecorder() as recorder:
        state, info = jax.block_until_ready(train(model, key, x, y, first))
        # Two steps share nothing; x is drawn for, and trained with, other keys.
        answers = on_host(draw(model, jax.random.key(8), state, x))
        keys_used_once(check, recorder)
    check.fixed_shapes(first, state)
    if check.wants("training"):
        check.require(not same_bits(first.parameters, state.parameters), "other arrays", "the same", "Does it learn?")
        found = {name: check.attribute(info, name, "See ConditionalInfo.") for name in ("loss", "cost", "status")}
        check.require(found["loss"].shape == (2,), "a loss a step", found["loss"].shape, "")
        check.require(np.all(found["status"] == Status.OK), "status OK", found["status"], "All pairs are finite.")
        check.require(np.all(found["cost"] > 0), "a cost above 0", found["cost"], "")
        check.require(cost is None or np.all(found["cost"] == cost), f"a cost of {cost} a step", found["cost"], "")
        number, remedy = check.attribute(state, "step", "See ConditionalState."), "By it the next step's key is made."
        check.require(number == 2, "a step of 2 after two", number, remedy)
    if check.wants("answers"):
        shape = (3, len(x), *y.shape[1:])
        check.require(answers.shape == shape, f"answers {shape}", answers.shape, "Samples first, then rows.")
        check.require(np.isfinite(answers).all(), "finite answers", "nan or inf", "")
        same = bool(np.all(answers[0] == answers[1]))
        check.require(same == one_answer, "draws that differ" if not one_answer else "one answer", answers[:2, 0], "")
    calls = [
        lambda: train(model, jax.random.key(9), x, y, state),
        *(lambda other=other: train(other, key, x, y, first) for other in others),
    ]
    no_retrace(check, train, calls, len(others))
    if others and check.wants("numbers are used"):
        for other in others:
            after = train(other, key, x, y, first)[0]
            check.require(not same_bits(after.parameters, state.parameters), "other arrays", "the same", "")

    def taught(which):
        after, told = train(which, key, x, y, begin(which))
        return after, told, draw(which, jax.random.key(8), after, x)

    every_number_is_used(check, model, taught, unused)
    if check.wants("same key, same bits"):
        check.bits(train(model, key, x, y, first)[0], state, "the same state from the same key", "")
        check.bits(draw(model, jax.random.key(8), state, x), answers, "the same answers from the same key", "")
    saved_goes_on(check, train, lambda state: train(model, key, x, y, state)[0], state, first)
    if check.wants("inputs do not see each other"):
        strangers = np.concatenate([x[:1], 0.5 * x[1:]])
        among = on_host(draw(model, jax.random.key(8), state, strangers))[:, 0]
        check.close(among, answers[:, 0], 1e-4, "the first input's answers among others", "Answer one row at a time.")
    if check.wants("divergence"):
        status = np.asarray(train(model, key, x, with_nan(y, ...), first)[1].status)
        check.require(np.all(status == Status.DIVERGED), "status DIVERGED where y is nan", status, "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide = jax.tree.map(widened, model)
            rows, targets = np.asarray(x, np.float64), np.asarray(y, np.float64)

            def both(rows, targets):
                after, _ = wide.train(jax.random.key(7), rows, targets, wide.init(), num_steps=1, batch=3)
                return after.parameters, wide.sample(jax.random.key(8), after, rows, 2)

            types = inexact_types(jax.eval_shape(both, rows, targets))
        check.require(types == {"float64"}, "arrays and answers of float64", types, "Take y's type for all numbers.")
    return check.finish()


def check_adversarial(
    model: Any,
    *data: Any,
    others: Sequence[Any] = (),
    cost: int | None = None,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init()`` and ``step(key, *data, state)`` of what learns by playing against a discriminator.

    model: an Equinox module, as ``laureate.generative.Adversarial`` or ``AdversarialImitation``.
    data: what a step is given, rows first, float32 or integers; a tuple where there are conditions.
    others: the same model with another number each; each must differ after two steps and compile nothing.
    cost: passes of a step, where it is known.
    unused: numbers of the model that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: a state of fixed shapes whose arrays move; cost and status of a step; no retrace on a second call nor
    with another number; every number changes the state after two steps; the same key gives the same bits, and no key is
    used twice; saved and loaded it goes on as if it had not been stopped; data that are not finite are reported; double
    precision stays so.
    """
    check = Check(type(model).__name__, skip)
    model, others = numbers_as_arrays(model), [numbers_as_arrays(other) for other in others]
    data, key = jax.tree.map(jnp.asarray, data), jax.random.key(7)

    def two_steps(model, key, data, state):
        first, second = jax.random.split(key)
        state, _ = model.step(first, *data, state)
        return model.step(second, *data, state)

    program, init = Program(two_steps), Program(lambda model: model.init())
    first = init(model)
    with KeyRecorder() as recorder:
        state, info = jax.block_until_ready(program(model, key, data, first))
        keys_used_once(check, recorder)
    check.fixed_shapes(first, state)
    if check.wants("training"):
        check.require(not same_bits(first, state), "other arrays", "the same", "Does it learn?")
        found = {name: check.attribute(info, name, "See JudgeInfo.") for name in ("cost", "status", "margin")}
        check.require(found["status"] == Status.OK, "status OK", found["status"], "All data are finite.")
        check.require(cost is None or found["cost"] == cost, f"a cost of {cost} a step", found["cost"], "")
    calls = [
        lambda: program(model, jax.random.key(9), data, state),
        *(lambda other=other: program(other, key, data, first) for other in others),
    ]
    no_retrace(check, program, calls, len(others))
    if check.wants("numbers are used"):
        for number, other in enumerate(others):
            after = program(other, key, data, init(other))[0]
            check.require(not same_bits(after, state), "another state", f"the same for others[{number}]", "")
    every_number_is_used(check, model, lambda which: program(which, key, data, init(which)), unused)
    if check.wants("same key, same bits"):
        check.bits(program(model, key, data, first)[0], state, "the same state from the same key", "")
    saved_goes_on(check, program, lambda state: program(model, key, data, state)[0], state, first)
    if check.wants("divergence"):
        lost = with_nan(data, ...)
        status = np.asarray(program(model, key, lost, first)[1].status)
        check.require(status == Status.DIVERGED, "status DIVERGED where data are nan", status, "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide, rows = jax.tree.map(widened, (model, data))
            step = lambda: wide.step(jax.random.key(7), *rows, wide.init())[0]  # noqa: E731
            types = inexact_types(jax.eval_shape(step))
        check.require(types == {"float64"}, "a state of float64", types, "Take the data's type for all numbers.")
    return check.finish()
