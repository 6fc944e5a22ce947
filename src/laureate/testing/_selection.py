"""What every sampler of knockoffs promises."""

from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    on_host,
    same_bits,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_knockoff_sampler"]


def check_knockoff_sampler(
    sampler: Any, table: Any, *, unused: Collection[str] = (), skip: Collection[str] = ()
) -> list[str]:
    """Check ``sample(key, x) -> x̃`` of a fitted sampler, for a table x [rows, columns].

    sampler: an Equinox module, fitted; or a function from a key to one, whose keys are then watched as well.
    table: finite float32 numbers like those it was fitted to.
    unused: numbers of the sampler that rightly change nothing, by the ends of their paths (``".tolerance"``).
    skip: properties to leave out: those in the list that is returned.

    Properties: a finite table of x's shape and type that is not x; no retrace on a second call; the same key gives the
    same bits, another others; saved and loaded it draws alike; every number of the sampler changes the table; vmap over
    keys is a loop; no key is consumed twice.
    """
    fitting = KeyRecorder()
    if not hasattr(sampler, "sample"):
        with fitting:
            sampler = sampler(jax.random.key(0))
    sampler = numbers_as_arrays(sampler)
    check = Check(type(sampler).__name__, skip)
    keys_used_once(check, fitting)
    x, keys = np.asarray(table, np.float32), [jax.random.key(3), jax.random.key(4)]
    program = Program(lambda sampler, key, x: sampler.sample(key, x))
    first, second = (on_host(program(sampler, key, x)) for key in keys)
    if check.wants("table"):
        fits = first.shape == x.shape and first.dtype == x.dtype
        check.require(fits, f"{x.dtype}{list(x.shape)}", f"{first.dtype}{list(first.shape)}", "One row a row of x.")
        check.require(np.isfinite(first).all(), "finite numbers", "nan or inf", "Is the covariance definite?")
        check.require(not same_bits(first, x), "a table that is not x itself", "x", "A copy selects nothing.")
    no_retrace(check, program, [lambda: program(sampler, keys[1], x[::-1])], 0)
    if check.wants("same key, same bits"):
        check.bits(program(sampler, keys[0], x), first, "the same table from the same key", "Draw from the key alone.")
    if check.wants("another key, other bits"):
        check.require(not same_bits(first, second), "another table from another key", "the same", "Is the key used?")
    if check.wants("saved and loaded"):
        numbers, others = eqx.partition(sampler, eqx.is_array)
        loaded = eqx.combine(check.saved(numbers), others)
        check.bits(program(loaded, keys[0], x), first, "the same table of a loaded sampler", "Keep arrays in it.")
    every_number_is_used(check, sampler, lambda which: program(which, keys[0], x), unused)
    vmap, keys_once = check.wants("vmap over keys is a loop"), check.wants("keys are used once")
    if vmap or keys_once:
        arrays, rest = eqx.partition(sampler, eqx.is_array)
        with KeyRecorder() as recorder:
            every = lambda arrays, keys: jax.vmap(lambda key: eqx.combine(arrays, rest).sample(key, x))(keys)  # noqa: E731
            together = Program(every)(arrays, jnp.stack(keys))
        if vmap:
            check.wants("vmap over keys is a loop")
            check.close(together, np.stack([first, second]), 1e-4, "the tables of a loop", "")
        keys_used_once(check, recorder)
    return check.finish()
