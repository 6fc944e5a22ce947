"""What every quantiser promises."""

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    is_float,
    keys_used_once,
    numbers_as_arrays,
    on_host,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_quantizer"]


def check_quantizer(
    quantizer: Any,
    shape: tuple[int, ...] = (6, 16),
    *,
    rtol: float = 1e-6,
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``fit``, ``encode``, ``decode`` and what else a `laureate.compression.Quantizer` of your own must offer.

    quantizer: of your own. shape: of a weight that suits it. rtol: of the largest weight, for what is quantised twice.
    unused: ends of paths (".limit") of numbers of the quantizer that rightly change nothing here.
    skip: properties to leave out: those in the list that is returned.

    Properties: codes are whole numbers of ``bits`` bits, ``count`` of them; decoding keeps the shape and is finite;
    what is quantised stays so when it is quantised again; stored parameters decode as they did, saved and loaded ones
    too; every number of them and of the quantizer counts; a block's mask covers the weights whose values its code
    decides, and no others; weights in range let a gradient pass, and what is fitted to is in range; no key is consumed
    twice; no retrace with other weights.
    """
    check = Check(type(quantizer).__name__, skip)
    quantizer.check("weight", shape)
    weights = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    count, bits = quantizer.count(shape), quantizer.bits(shape)

    def whole(quantizer, key, weights):
        parameters = quantizer.fit(key, weights)
        codes = quantizer.encode(weights, parameters)
        seen = quantizer.decode(codes, parameters, shape)
        again = quantizer.decode(quantizer.encode(seen, parameters), parameters, shape)
        restored = quantizer.restore(quantizer.store(parameters), shape)
        other = quantizer.decode(codes.at[count // 2].set((codes[count // 2] + 1) % 2), parameters, shape)
        mask = quantizer.spread(jnp.arange(count) == count // 2, shape)
        reach = quantizer.inside(weights, parameters), quantizer.excess(weights, parameters)
        return codes, seen, again, quantizer.decode(codes, restored, shape), restored, (other, mask), reach

    program, with_numbers = Program(whole), numbers_as_arrays(quantizer)
    with KeyRecorder() as recorder:
        found = program(with_numbers, jax.random.key(0), weights)
        restored = found[4]
        codes, seen, again, after, _, (other, mask), (inside, excess) = on_host(found)
        keys_used_once(check, recorder)
    if check.wants("codes"):
        fine = codes.shape == (count,) and jnp.issubdtype(codes.dtype, jnp.integer)
        remedy = "encode gives one row of integers, `count(shape)` of them."
        check.require(fine, f"{count} integers", f"{codes.dtype}{list(codes.shape)}", remedy)
        check.require((codes >= 0).all() and (codes < 2**bits).all(), f"codes in 0..{2**bits - 1}", codes, "")
    if check.wants("decoding"):
        check.require(seen.shape == shape and np.isfinite(seen).all(), f"finite {list(shape)}", seen, "")
    if check.wants("quantised twice"):
        check.close(again, seen, rtol, "the same when it is quantised again", "encode must find what decode gave.")
    if check.wants("stored"):
        decode = lambda codes, kept: quantizer.decode(codes, quantizer.restore(quantizer.store(kept), shape), shape)  # noqa: E731
        stored = Program(decode)
        check.close(stored(codes, restored), after, rtol, "parameters that survive being stored twice", "")
        if check.wants("saved and loaded"):
            loaded = stored(codes, check.saved(restored))
            check.bits(loaded, stored(codes, restored), "the same of a loaded file", "Keep arrays in the parameters.")
        # A scale that decode forgets leaves the weights as they were.
        every_number_is_used(check, restored, lambda parameters: stored(codes, parameters))
    if check.wants("blocks"):
        remedy = "spread gives a code's value to the weights that decode makes of it."
        changed = other != seen
        check.require(mask.shape == shape, f"a mask of {list(shape)}", mask.shape, remedy)
        check.require(not (changed & ~mask).any(), "changes inside its block alone", changed, remedy)
        check.require(changed.any(), "another value for another code", "none", "Does decode read the codes?")
        check.require(mask.sum() * count == mask.size, "blocks of one size that cover the weight", mask.sum(), remedy)
    if check.wants("range"):
        check.require(inside.shape == shape, f"a mask of {list(shape)}", inside.shape, "")
        check.require(excess.shape == () and float(excess) < 2, "an excess below 2 after a fit", excess, "")
    if check.wants("no retrace"):
        before = program.traces
        program(with_numbers, jax.random.key(1), 2 * weights)
        check.require(program.traces == before, "no new trace for other weights", program.traces - before, "")
    if any(map(is_float, jax.tree.leaves(with_numbers))):
        every_number_is_used(check, with_numbers, lambda which: program(which, jax.random.key(0), weights), unused)
    return check.finish()
