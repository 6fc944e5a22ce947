"""What every estimator of a gradient promises."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import equinox as eqx
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
    stacked,
)
from laureate.testing._driving import training_by_pairs
from laureate.testing._keys import KeyRecorder
from laureate.testing._options import Allowed, Options, every_row, settings_by_pairs

__all__ = ["check_gradient_estimator"]

STEPS = 4
DESCENT = optax.sgd(0.1, momentum=0.9)  # one object: a new one would compile anew
START = 2**20  # folded into a walk's key for init; a step's number is smaller


def check_gradient_estimator(
    estimator: Any,
    theta: Any,
    *,
    others: Sequence[Any] = (),
    driver: Callable[..., Any] | None = None,
    options: Options | None = None,
    allowed: Allowed = every_row,
    cost: int | None = None,
    shared_keys: int = 1,
    rtol: float = 2e-3,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``init(key, theta) -> state`` and ``step(key, theta, state) -> (gradient, state, info)``.

    estimator: an Equinox module (or any pytree), small enough to be compiled in a second.
    theta: parameters, a tree of float32 arrays.
    others: the same estimator with other numbers; each must differ in its gradients and compile nothing.
    driver: ``laureate.gradients.train`` or your own, to see that no pair of ``every``, ``record``, stopping and
        watching changes an update; it compiles four programs more.
    options: values of the estimator's static settings to try by pairs, as for ``check_settings``; of ``allowed`` rows.
    cost: what ``info.cost`` must be at every step; without it, any positive number will do.
    shared_keys: how many particles draw from one key on purpose: 2 for antithetic pairs.
    rtol: how far a gradient under vmap may be from that of a loop, of its largest entry; sums change their order.
    unused: numbers of the estimator that rightly change nothing, by the ends of their paths (``".tolerance"``), and
        static settings.
    skip: properties to leave out: those in the list that is returned.

    Properties: the gradient is like theta and not zero; status, cost and loss are set; the state keeps its shapes; no
    retrace on a second call nor with another number; every number of the estimator changes the gradients; the same key
    gives the same bits, another key others; saved and loaded, it goes on as if it had not been stopped; vmap over keys
    is a loop; no key is consumed twice, those of init included; theta in double or half precision gives gradients of
    its type, and theta whose leaves are of several types gives each leaf its own; pairs of options.
    """
    check = Check(type(estimator).__name__, skip)
    estimator, others = numbers_as_arrays(estimator), [numbers_as_arrays(other) for other in others]
    init = Program(lambda estimator, key: estimator.init(key, theta))
    step = Program(lambda estimator, key, state: estimator.step(key, theta, state))

    def walk(number, key=3, which=estimator, state=None, start=0):
        """The gradients and reports of ``number`` steps from ``start`` on, and the last state."""
        key = jax.random.key(key)
        state = init(which, jax.random.fold_in(key, START)) if state is None else state
        gradients, infos = [], []
        for index in range(start, start + number):
            gradient, state, info = step(which, jax.random.fold_in(key, index), state)
            gradients.append(gradient)
            infos.append(info)
        return gradients, infos, state

    whole, infos, last = walk(STEPS)
    _gradient(check, whole, theta)
    _report(check, infos, cost)
    check.fixed_shapes(init(estimator, jax.random.key(3)), last)
    every_number_is_used(check, estimator, lambda which: walk(STEPS, which=which)[:2], unused)
    calls = [lambda: walk(1), *(lambda other=other: walk(1, which=other) for other in others)]
    no_retrace(check, step, calls, len(others))
    _bits(check, walk, whole, others)
    if check.wants("saved and loaded"):
        first, _, state = walk(STEPS // 2)
        rest, _, _ = walk(STEPS - STEPS // 2, state=check.saved(state), start=STEPS // 2)
        remedy = "All that the next step needs belongs into the state, and nothing else may be remembered."
        check.bits(first + rest, whole, "the steps after loading to be those of one go", remedy)
    _over_keys(check, estimator, theta, walk, rtol, shared_keys)
    _precisions(check, estimator, theta)
    _several_types(check, estimator, theta)

    def for_some_steps(estimator):
        def step(state, key):
            gradient, after, info = estimator.step(key, theta, state)
            return after, (gradient, info)

        state = estimator.init(jax.random.key(0), theta)
        return state, *in_turn(step, state, jax.random.split(jax.random.key(1), 6))

    settings_by_pairs(check, estimator, for_some_steps, options, allowed, unused)
    if driver is not None:
        train = lambda number, **more: driver(jax.random.key(2), estimator, DESCENT, theta, number, **more)  # noqa: E731
        training_by_pairs(check, train, _first, ("loss", "status", "num_nonfinite", "num_unequal"))
    return check.finish()


def _first(theta: Any) -> Any:
    return jax.tree.leaves(theta)[0]


def _gradient(check: Check, gradients: list, theta: Any) -> None:
    if not check.wants("gradient like theta"):
        return
    remedy = "Return a tree of theta's structure, shapes and types."
    expected, got = describe(theta), describe(gradients[0])
    check.require(got == expected, f"a gradient of {expected}", got, remedy)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(gradients)]
    check.require(
        all(np.isfinite(leaf).all() for leaf in leaves), "finite gradients", "nan or inf", "Is the loss finite?"
    )
    remedy = "Does theta reach the loss, and is the state updated?"
    check.require(any(np.any(leaf != 0) for leaf in leaves), "gradients that are not all zero", "zeros", remedy)


def _report(check: Check, infos: list, cost: int | None) -> None:
    if not check.wants("report"):
        return
    for number, info in enumerate(infos):
        remedy = "A step returns (gradient, state, info); info has cost, status, loss and num_nonfinite."
        found = {name: check.attribute(info, name, remedy) for name in ("cost", "status", "loss", "num_nonfinite")}
        where = f"at step {number}"
        check.require(found["status"] == Status.OK, f"status OK {where}", found["status"], "Nothing was wrong here.")
        check.require(np.isfinite(found["loss"]), f"a finite loss {where}", found["loss"], remedy)
        check.require(found["num_nonfinite"] == 0, f"num_nonfinite 0 {where}", found["num_nonfinite"], remedy)
        rule = "> 0" if cost is None else f"{cost}"
        right = np.all(found["cost"] > 0 if cost is None else found["cost"] == cost)
        check.require(right, f"cost {rule} {where}", found["cost"], "Count the inner steps of all particles.")


def _bits(check: Check, walk: Any, whole: list, others: Sequence[Any]) -> None:
    if check.wants("same key, same bits"):
        remedy = "Draw from the key alone; no clock, no global state."
        check.bits(walk(STEPS)[0], whole, "the same gradients from the same key", remedy)
    if check.wants("another key, other bits"):
        other = walk(STEPS, key=4)[0]
        check.require(not same_bits(other, whole), "other gradients from another key", "the same", "Is the key used?")
    if others and check.wants("numbers are used"):
        for other in others:
            same = same_bits(walk(STEPS, which=other)[0], whole)
            check.require(not same, "other gradients from another number", "the same", "Is the number used?")


def _over_keys(check: Check, estimator: Any, theta: Any, walk: Any, rtol: float, shared_keys: int) -> None:
    """Two walks from init on, in one program: as each alone, and all their keys, those of init too, used once."""
    vmap, keys_once = check.wants("vmap over keys is a loop"), check.wants("keys are used once")
    if not (vmap or keys_once):
        return
    arrays, rest = eqx.partition(estimator, eqx.is_array)
    keys = [jax.random.key(5), jax.random.key(6)]
    with KeyRecorder() as recorder:

        def every(arrays, keys):
            each = eqx.combine(arrays, rest)

            def step(key, state, index):
                gradient, state, _ = each.step(jax.random.fold_in(key, index), theta, state)
                return state, gradient

            def one(key):
                start = each.init(jax.random.fold_in(key, START), theta)
                return jax.lax.scan(lambda state, index: step(key, state, index), start, jnp.arange(STEPS))[1]

            return jax.vmap(one)(keys)

        gradients = Program(every)(arrays, jnp.stack(keys))
    if vmap:
        check.wants("vmap over keys is a loop")
        remedy = "Under vmap both branches of a cond run: is a state changed where it should not be?"
        for number in range(2):
            alone = walk(STEPS, key=5 + number)[0]
            check.close(row(gradients, number), stacked(alone), rtol, "the gradients of a loop", remedy)
    keys_used_once(check, recorder, shared_keys)


def _precisions(check: Check, estimator: Any, theta: Any) -> None:
    for name in ("float64", "bfloat16"):
        if check.wants(name):
            types = _types_of_gradient(estimator, theta, name)
            remedy = "Take the type of theta's leaves for what is drawn and added up, and return it."
            check.require(types == {name}, f"gradients of {name} for theta of {name}", types, remedy)


def _several_types(check: Check, estimator: Any, theta: Any) -> None:
    """Whole steps with leaves of two types in turn, beginning with either; of a theta that has two leaves."""
    leaves, structure = jax.tree.flatten(theta)
    if len(leaves) < 2 or not check.wants("several types"):
        return
    for kinds in (("bfloat16", "float32"), ("float32", "bfloat16"), ("float32", "float64")):
        with jax.enable_x64("float64" in kinds):
            cast = [np.asarray(leaf, jnp.dtype(kinds[place % 2])) for place, leaf in enumerate(leaves)]
            mixed = structure.unflatten(cast)
            start = jax.eval_shape(estimator.init, jax.random.key(0), mixed)
            step = lambda key, state, mixed=mixed: estimator.step(key, mixed, state)[:2]  # noqa: E731
            gradient, state = jax.eval_shape(step, jax.random.key(0), start)
        remedy = "Take the type of each leaf of theta for what is drawn for it, added up and returned."
        found, wanted = describe(gradient), describe(mixed)
        check.require(found == wanted, f"for theta of {kinds} a gradient of {wanted}", found, remedy)
        found, wanted = describe(state), describe(start)
        check.require(found == wanted, f"for theta of {kinds} the state of init, {wanted}", found, remedy)


def _types_of_gradient(estimator: Any, theta: Any, name: str) -> set[str]:
    with jax.enable_x64(name == "float64"):
        cast = jax.tree.map(lambda leaf: np.asarray(leaf, jnp.dtype(name)), theta)
        step = lambda key: estimator.step(key, cast, estimator.init(key, cast))[0]  # noqa: E731
        return inexact_types(jax.eval_shape(step, jax.random.key(0)))
