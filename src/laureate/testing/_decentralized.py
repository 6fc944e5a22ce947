"""What every decentralised optimiser promises."""

from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate._core import Status
from laureate.testing._checks import (
    Check,
    Program,
    describe,
    every_number_is_used,
    in_turn,
    inexact_types,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    row,
    same_bits,
    with_nan,
)
from laureate.testing._driving import training_by_pairs
from laureate.testing._keys import KeyRecorder
from laureate.testing._options import Allowed, Options, every_row, settings_by_pairs

__all__ = ["check_decentralized_optimiser"]

ROUNDS = 8


def check_decentralized_optimiser(
    make: Callable[[Any], Any],
    params: Any,
    *,
    rates: tuple[float, float] = (0.1, 0.2),
    driver: Callable[..., Any] | None = None,
    options: Options | None = None,
    allowed: Allowed = every_row,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init(params) -> state`` and ``update(grads, state, params) -> (updates, state)`` over stacked trees.

    make: from a learning rate, a number or a traced one, to the optimiser.
    params: what all nodes hold: a tree of arrays with a leading axis of nodes, not all equal.
    rates: two learning rates at which a quadratic does not blow up.
    driver: ``laureate.decentralized.train`` or your own, to see that no pair of ``every``, ``record``, stopping and
        watching changes a round; it compiles four programs more.
    options: values of the optimiser's static settings to try by pairs, as for ``check_settings``; of ``allowed`` rows.
    unused: numbers of the optimiser that rightly change nothing, by the ends of their paths (``".tolerance"``), and
        static settings.
    skip: properties to leave out: those in the list that is returned.

    Properties: parameters and state keep their shapes; another rate changes the result and compiles nothing; every
    number of the optimiser is used and no key twice; saved and loaded, it goes on as if it had not been stopped; vmap
    over rates is a loop; parameters in double or half precision stay so; ``inspect`` reports the bytes that ``sent``
    counts, consensus and status as computed apart, and sees a node that is not finite; pairs of options.
    """
    optimiser, other = (numbers_as_arrays(make(rate)) for rate in rates)
    check = Check(type(optimiser).__name__, skip)

    def update(optimiser, state, params):
        grads = jax.tree.map(lambda x: 0.5 * x, params)
        updates, state = optimiser.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    program = Program(update)

    def run(number, which=optimiser, params=params, state=None):
        state = which.init(params) if state is None else state
        for _ in range(number):
            params, state = program(which, state, params)
        return params, state

    with KeyRecorder() as recorder:
        whole, last = run(ROUNDS)
        keys_used_once(check, recorder)
    check.fixed_shapes((params, optimiser.init(params)), (whole, last))
    no_retrace(check, program, [lambda: run(2), lambda: run(1, which=other)], 1)
    every_number_is_used(check, optimiser, lambda which: run(ROUNDS, which=which)[0], unused)
    if check.wants("numbers are used"):
        check.require(
            not same_bits(run(ROUNDS, which=other)[0], whole), "other parameters at another rate", "the same", ""
        )
    if check.wants("saved and loaded"):
        middle, state = run(ROUNDS // 2)
        rest, _ = run(ROUNDS - ROUNDS // 2, params=middle, state=check.saved(state))
        check.bits(
            rest, whole, "the rounds after loading to be those of one go", "Put all that is needed into the state."
        )
    if check.wants("vmap over rates is a loop"):

        def some(rate):
            method = make(rate)
            state, now = method.init(params), params
            for _ in range(2):
                now, state = update(method, state, now)
            return now

        together = Program(jax.vmap(some))(jnp.asarray(rates))
        for number, which in enumerate((optimiser, other)):
            check.close(row(together, number), run(2, which)[0], 1e-5, "the parameters of a loop", "")
    for name in ("float64", "bfloat16"):
        if check.wants(name):
            types = _types_of_updates(optimiser, params, name)
            remedy = "Cast the rate and the mixing weights to the leaf's type."
            check.require(types == {name}, f"updates of {name} for parameters of {name}", types, remedy)
    _report(check, optimiser, params)

    def for_some_steps(optimiser):
        def step(before, _):
            new, state = update(optimiser, before[1], before[0])
            return (new, state), None

        before = params, optimiser.init(params)
        return before, *in_turn(step, before, jnp.arange(3))

    settings_by_pairs(check, optimiser, for_some_steps, options, allowed, unused)
    if driver is not None:
        train = lambda number, **more: driver(jax.random.key(2), optimiser, _noisy, params, number, **more)  # noqa: E731
        training_by_pairs(check, train, lambda params: jax.tree.leaves(params)[0])
    return check.finish()


def _noisy(key: Any, params: Any, data: Any) -> Any:
    """The gradient of half a square, and noise: who draws otherwise goes elsewhere."""
    return jax.tree.map(lambda leaf: leaf + jax.random.normal(key, leaf.shape, leaf.dtype), params)


def _types_of_updates(optimiser: Any, params: Any, name: str) -> set[str]:
    with jax.enable_x64(name == "float64"):
        cast = jax.tree.map(lambda leaf: np.asarray(leaf, jnp.dtype(name)), params)
        return inexact_types(jax.eval_shape(lambda p: optimiser.update(p, optimiser.init(p), p)[0], cast))


def _report(check: Check, optimiser: Any, params: Any) -> None:
    if not check.wants("report"):
        return
    inspect = Program(lambda params: optimiser.inspect(params))
    info = inspect(params)
    remedy = "inspect(params) returns cost, status, consensus and num_nonfinite."
    found = {n: check.attribute(info, n, remedy) for n in ("cost", "status", "consensus", "num_nonfinite")}
    sent = optimiser.sent(params)
    check.require(found["cost"] == sent and sent > 0, f"cost {sent}, the bytes sent, above 0", found["cost"], remedy)
    check.require(found["status"] == Status.OK, "status OK", found["status"], "All parameters are finite.")
    leaves = [np.asarray(leaf, np.float64).reshape(len(leaf), -1) for leaf in jax.tree.leaves(params)]
    apart = sum(np.sum((leaf - leaf.mean(axis=0)) ** 2) for leaf in leaves) / len(leaves[0])
    close = np.isclose(found["consensus"], apart, rtol=1e-4)
    check.require(close, f"consensus {apart:.6g}, the mean of ‖x_i − x̄‖²", found["consensus"], remedy)
    broken = with_nan(params)
    ill = inspect(broken)
    right = int(ill.status) == Status.DIVERGED and int(ill.num_nonfinite) == 1
    reported = f"{int(ill.status)} and {int(ill.num_nonfinite)}"
    check.require(right, "status DIVERGED and num_nonfinite 1 where a node holds nan", reported, remedy)
    check.require(describe(info) == describe(ill), "a report of fixed shapes", describe(ill), remedy)
