"""What every sampler promises."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate._core import Status
from laureate.testing._checks import (
    Check,
    Program,
    describe,
    every_number_is_used,
    in_turn,
    inexact_types,
    is_float,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    row,
    same_bits,
    stacked,
    widened,
)
from laureate.testing._driving import watching
from laureate.testing._keys import KeyRecorder
from laureate.testing._options import Allowed, Options, every_row, pairwise, settings_by_pairs

__all__ = ["check_sampler"]

STEPS = 24
# Twelve steps: a chunk that neither they nor a thinning of three divide, and a stop within a chunk.
DRIVER: Options = {"chunk": (None, 11), "thin": (1, 3), "stop": (None, 9), "watched": (False, True)}


def check_sampler(
    kernel: Any,
    position: Any,
    *,
    others: Sequence[Any] = (),
    driver: Callable[..., Any] | None = None,
    options: Options | None = None,
    allowed: Allowed = every_row,
    cost: int | None = None,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check a kernel in BlackJAX's form: ``init(position) -> state`` and ``step(key, state) -> (state, info)``.

    kernel: an Equinox module (or any pytree).
    position: where the chain starts.
    others: the same kernel with other numbers; each must compile nothing.
    driver: ``laureate.sampling.run`` or your own, to see that no pair of ``chunk``, ``thin``, stopping and watching
        changes a sample; it compiles four programs more.
    options: values of the kernel's static settings to try by pairs, as for ``check_settings``; of ``allowed`` rows.
    cost: what ``info.cost`` must be at every step; without it, any positive number will do.
    unused: numbers of the kernel that rightly change nothing, by the ends of their paths (``".tolerance"``), and static
        settings.
    skip: properties to leave out: those in the list that is returned.

    Properties: the state keeps its shapes; the chain moves, with status, cost and acceptance rate set; what the state
    caches is what its position gives; no retrace; every number of the kernel changes the chain; the same key gives the
    same bits, another others; saved and loaded it goes on as if it had not been stopped; vmap over keys is a loop; no
    key is consumed twice, by ``adapt`` and the driver neither; in double precision nothing is single; a kernel whose
    numbers are of several types keeps the types of its state; pairs of options.
    """
    check = Check(type(kernel).__name__, skip)
    kernel, others = numbers_as_arrays(kernel), [numbers_as_arrays(other) for other in others]
    init = Program(lambda kernel, position: kernel.init(position))
    step = Program(lambda kernel, key, state: kernel.step(key, state))

    def walk(number=STEPS, key=0, which=kernel, state=None, start=0):
        """The states after every step, and the reports."""
        key, states, infos = jax.random.key(key), [], []
        state = init(which, position) if state is None else state
        for index in range(start, start + number):
            state, info = step(which, jax.random.fold_in(key, index), state)
            states.append(state)
            infos.append(info)
        return states, infos

    states, infos = walk()
    check.fixed_shapes(init(kernel, position), states[-1])
    _report(check, states, infos, position, cost)
    if check.wants("caches are fresh"):
        remedy = "After a rejection the old position's caches must stay, after an acceptance the new one's be there."
        for state in states:
            kept, fresh = (eqx.filter(one, eqx.is_inexact_array) for one in (state, init(kernel, state.position)))
            check.close(kept, fresh, 1e-4, "a state as init makes it at its position", remedy, floor=1.0)
    calls = [lambda: walk(1), *(lambda other=other: walk(1, which=other) for other in others)]
    no_retrace(check, step, calls, len(others))
    every_number_is_used(check, kernel, lambda which: walk(4 * STEPS, which=which), unused)
    if check.wants("same key, same bits"):
        check.bits(walk()[0], states, "the same states from the same key", "Draw from the key alone.")
    if check.wants("another key, other bits"):
        same = same_bits([state.position for state in walk(key=1)[0]], [state.position for state in states])
        check.require(not same, "another chain from another key", "the same", "Is the key used?")
    if check.wants("saved and loaded"):
        rest, _ = walk(STEPS // 2, state=check.saved(states[STEPS // 2 - 1]), start=STEPS // 2)
        remedy = "All that the next step needs belongs into the state."
        check.bits(rest, states[STEPS // 2 :], "the steps after loading to be those of one go", remedy)
    _over_keys(check, kernel, init, position, walk)
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide = jax.tree.map(widened, kernel)
            result = jax.eval_shape(lambda key: wide.step(key, wide.init(position)), jax.random.key(0))
        remedy = "Take the log density's type for all numbers."
        check.require(inexact_types(result) == {"float64"}, "float64 alone", inexact_types(result), remedy)
    _several_types(check, kernel, position)

    def for_some_steps(kernel):
        state = kernel.init(position)
        step = lambda state, key: kernel.step(key, state)  # noqa: E731
        return state, *in_turn(step, state, jax.random.split(jax.random.key(0), 6))

    settings_by_pairs(check, kernel, for_some_steps, options, allowed, unused)
    if driver is not None:
        _driver(check, kernel, position, driver)
    if hasattr(kernel, "adapt") and check.wants("keys are used once"):
        with KeyRecorder() as recorder:
            Program(lambda kernel, key, state: kernel.adapt(key, state, STEPS))(kernel, jax.random.key(3), states[-1])
        keys_used_once(check, recorder)
    return check.finish()


def _several_types(check: Check, kernel: Any, position: Any) -> None:
    """A step with numbers in single and double precision in turn, beginning with either; of kernels that have two."""
    numbers = [place for place, leaf in enumerate(jax.tree.leaves(kernel)) if is_float(leaf)]
    if len(numbers) < 2 or not check.wants("several types"):
        return
    for first in (0, 1):
        with jax.enable_x64(True):
            leaves, structure = jax.tree.flatten(kernel)
            for turn, place in enumerate(numbers):
                kind = np.float32 if turn % 2 == first else np.float64
                leaves[place] = jnp.asarray(np.asarray(leaves[place], kind))
            mixed = structure.unflatten(leaves)
            start = jax.eval_shape(mixed.init, position)
            state = jax.eval_shape(lambda key, state, mixed=mixed: mixed.step(key, state)[0], jax.random.key(0), start)
        remedy = "Take the log density's type for all that a state keeps, whatever the numbers' own types are."
        found, wanted = describe(state), describe(start)
        check.require(found == wanted, f"the state of init, {wanted}", found, remedy)


def _report(check: Check, states: list, infos: list, position: Any, cost: int | None) -> None:
    if not check.wants("report"):
        return
    remedy = "A step returns (state, info); info has acceptance_rate, cost and status, state has position."
    for number, info in enumerate(infos):
        found = {name: check.attribute(info, name, remedy) for name in ("acceptance_rate", "cost", "status")}
        where = f"at step {number}"
        rate = found["acceptance_rate"]
        inside = np.all((rate >= 0) & (rate <= 1 + 1e-6))
        check.require(inside, f"an acceptance rate in [0, 1] {where}", rate, "It is a probability.")
        check.require(np.all(found["status"] == Status.OK), f"status OK {where}", found["status"], "Is a ratio NaN?")
        rule = ">= 1" if cost is None else f"{cost}"
        right = np.all(found["cost"] >= 1 if cost is None else found["cost"] == cost)
        check.require(right, f"cost {rule} {where}", found["cost"], "Count the evaluations of the log density.")
    moved = not same_bits(states[-1].position, position)
    check.require(moved, f"a chain that moves within {STEPS} steps", "where it began", "Does it ever accept?")


def _over_keys(check: Check, kernel: Any, init: Program, position: Any, walk: Callable) -> None:
    vmap, keys_once = check.wants("vmap over keys is a loop"), check.wants("keys are used once")
    if not (vmap or keys_once):
        return
    arrays, rest = eqx.partition(kernel, eqx.is_array)
    numbers, positions = 8, []
    with KeyRecorder() as recorder:

        def step(arrays, keys, states):
            each = eqx.combine(arrays, rest)

            def one(key, state):
                state = each.step(key, state)[0]
                return state, state.position  # here, for a state may compute it

            return jax.vmap(one)(keys, states)

        keys, program = [jax.random.key(5), jax.random.key(6)], Program(step)
        states = stacked([init(kernel, position)] * 2)
        for index in range(numbers):
            now = jnp.stack([jax.random.fold_in(key, index) for key in keys])
            states, position_now = program(arrays, now, states)
            positions.append(position_now)
    if vmap:
        check.wants("vmap over keys is a loop")
        for number in range(2):
            alone = [state.position for state in walk(numbers, key=5 + number)[0]]
            remedy = "Does a chain look at another's state, or a cond at all chains at once?"
            check.bits(row(positions, number), alone, "the chain of a loop", remedy)
    keys_used_once(check, recorder)


def _driver(check: Check, kernel: Any, position: Any, driver: Callable[..., Any]) -> None:
    """Twelve steps in one go, and in all pairs of chunks, thinning, stops and watching."""
    key, start = jax.random.key(2), stacked([position] * 3)
    with KeyRecorder() as recorder:
        whole = driver(key, kernel, start, 12)
        keys_used_once(check, recorder)
    if not check.wants("options of the driver by pairs"):
        return
    for chosen in pairwise(DRIVER):
        thin, stop = chosen["thin"], chosen["stop"]
        more = {**watching(chosen["watched"]), "thin": thin, "chunk": chosen["chunk"]}
        run = driver(key, kernel, start, 12 if stop is None else stop, **more)
        samples, cost = run.samples, run.cost
        if stop is not None:
            run = driver(key, kernel, num_steps=12 - stop, state=run.state, first_step=stop, **more)
            # Chains first, then kept steps.
            samples = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), samples, run.samples)
            cost = cost + run.cost
        kept = jax.tree.map(lambda leaf, thin=thin: np.asarray(leaf)[:, thin - 1 :: thin], whole.samples)
        said = f"with {chosen} "
        remedy = "Derive a step's key from the chain and the absolute step, and keep the last, shorter chunk."
        check.bits(samples, kept, said + "the samples of one go", remedy)
        check.bits(run.state, whole.state, said + "the states of one go", remedy)
        check.bits(cost, whole.cost, said + "the cost of one go", "Count every step once, also those not kept.")
