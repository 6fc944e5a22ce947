"""What every attack promises."""

from collections.abc import Collection, Sequence
from typing import Any

import jax
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
    with_nan,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_attack"]


def check_attack(
    attack: Any,
    images: Any,
    labels: Any,
    *,
    others: Sequence[Any] = (),
    cost: int | None = None,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init``, ``step``, ``run`` and ``trajectory`` of an attack on a batch of images.

    attack: an Equinox module; its walk names the ball.
    images, labels: at least three, float32 within the ball's range; classes.
    others: the same attack with other numbers; each must differ and compile nothing.
    cost: forward and backward passes of a step, where it is known.
    unused: numbers of the attack that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: every iterate in the ball and in the range; cost and status of every step; the last iterate is what
    ``run`` gives, and steps taken one by one from a saved state give it as well; no retrace on a second call nor with
    another number; every number is used; the same key gives the same bits, and no key is used twice; what becomes of an
    image does not depend on the others; an image that is not finite is reported and leaves the others alone; double
    precision stays so.
    """
    check = Check(type(attack).__name__, skip)
    attack, others = numbers_as_arrays(attack), [numbers_as_arrays(other) for other in others]
    x, y, key = np.asarray(images, np.float32), np.asarray(labels), jax.random.key(5)

    def whole(attack, key, x, y):
        iterates, info = attack.trajectory(key, x, y)
        return iterates, info, attack.run(key, x, y)[0]

    program = Program(whole)
    with KeyRecorder() as recorder:
        iterates, info, last = on_host(program(attack, key, x, y))
        keys_used_once(check, recorder, shared=2)  # the trajectory and the run draw alike
    ball, steps = attack.walk.ball, attack.walk.num_steps
    if check.wants("iterates"):
        check.require(iterates.shape == (steps + 1, *x.shape), f"{steps + 1} iterates", iterates.shape, "")
        size = float(np.max(Program(jax.vmap(ball.norm))(iterates)))
        check.require(size <= float(ball.epsilon) + 1e-6, f"norms up to {float(ball.epsilon)}", size, "Project.")
        ends = float(np.min(x + iterates)), float(np.max(x + iterates))
        fine = ends[0] >= float(ball.low) - 1e-6 and ends[1] <= float(ball.high) + 1e-6
        check.require(fine, f"values in [{float(ball.low)}, {float(ball.high)}]", ends, "Clip x + δ.")
        check.require(np.any(iterates[-1] != 0), "a perturbation", "none", "Does the gradient reach δ?")
        check.close(last, iterates[-1], 1e-5, "run to give the last iterate", "")
    if check.wants("report"):
        found = {name: check.attribute(info, name, "See AttackInfo.") for name in ("objective", "cost", "status")}
        wanted = attack.num_passes if cost is None else cost
        check.require(np.all(found["cost"] == wanted), f"a cost of {wanted} a step", found["cost"], "")
        check.require(np.all(found["status"] == Status.OK), "status OK", found["status"], "All images are finite.")
        check.require(found["objective"].shape == (steps, len(x)), "an objective a step and image", found, "")
    calls = [
        lambda: program(attack, jax.random.key(6), x, y),
        *(lambda other=other: program(other, key, x, y) for other in others),
    ]
    no_retrace(check, program, calls, len(others))
    if others and check.wants("numbers are used"):
        for other in others:
            check.require(not same_bits(program(other, key, x, y)[0], iterates), "other iterates", "the same", "")
    every_number_is_used(check, attack, lambda which: program(which, key, x, y)[0], unused)
    if check.wants("same key, same bits"):
        check.bits(program(attack, key, x, y)[0], iterates, "the same iterates from the same key", "")
    if check.wants("going on"):
        start_key, walk_key = jax.random.split(key)
        state = Program(lambda attack, key, x: attack.init(key, x))(attack, start_key, x)
        step = Program(lambda attack, key, x, y, state: attack.step(key, x, y, state)[0])
        for index in range(steps):
            after = step(attack, jax.random.fold_in(walk_key, index), x, y, check.saved(state))
            check.fixed_shapes(state, after)
            check.wants("going on")
            state = after
        check.close(state.delta, last, 1e-4, "what the whole run gives", "Make a step of its key and state alone.")
    elif "state shapes" in skip:
        check.wants("state shapes")  # which is looked at on the way
    if check.wants("images do not see each other"):
        remedy = "Reduce over an image's own axes alone, and draw nothing by its place."
        turned = on_host(program(attack, key, x[::-1], y[::-1])[0])[:, ::-1]
        check.close(turned, iterates, 1e-3, "the iterates in the order of the images", remedy)
        strangers = np.concatenate([x[:1], 0.5 * x[1:]])
        among = on_host(program(attack, key, strangers, y)[0])[:, 0]
        check.close(among, iterates[:, 0], 1e-3, "those among others", remedy)
    if check.wants("divergence"):
        broken, info, _ = on_host(program(attack, key, with_nan(x, (0, 0)), y))
        status = np.asarray(info.status)
        expected = [int(Status.DIVERGED)] + [int(Status.OK)] * (len(x) - 1)
        check.require(np.all(status == expected), f"status {expected} where one image is nan", status.tolist(), "")
        check.close(broken[:, 1:], iterates[:, 1:], 1e-3, "the other images' iterates as before", "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide = np.asarray(x, np.float64)
            types = inexact_types(jax.eval_shape(lambda x: attack.run(jax.random.key(5), x, y)[0], wide))
        check.require(types == {"float64"}, "perturbations of float64", types, "Take the images' type for all numbers.")
    return check.finish()
