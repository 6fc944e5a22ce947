"""What every modulation of a feature map by language promises."""

from collections.abc import Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

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

__all__ = ["check_modulation"]


def check_modulation(
    layer: Any,
    features: Any,
    text: Any,
    *,
    others: Sequence[Any] = (),
    unused: Collection[str] = (),
    skip: Collection[str] = (),
) -> list[str]:
    """Check ``layer(features, text, key=None)`` of a modulation, or of a network that is called in the same way.

    layer: an Equinox module.
    features: [b, h, w, c] with b >= 3. text: [b, d].
    others: the same with other numbers; each must differ and compile nothing.
    unused: numbers of the layer that rightly change nothing, by the ends of their paths.
    skip: properties to leave out: those in the list that is returned.

    Properties: a map of the same height and width for every example; the phrase changes it, and the features do; no
    retrace on a second call nor with other numbers; every number changes the maps; the same key gives the same bits, no
    key is used twice, and without a key nothing is drawn; what becomes of an example does not depend on the others,
    also where one is not finite; gradients of every weight and of the text are finite and not all zero; saved and
    loaded it is the same; double precision stays so.
    """
    check = Check(type(layer).__name__, skip)
    layer, others = numbers_as_arrays(layer), [numbers_as_arrays(other) for other in others]
    x, r = np.asarray(features, np.float32), np.asarray(text, np.float32)
    key = jax.random.key(5)

    def total(given, x):
        layer, r, key = given
        keyed, plain = layer(x, r, key=key), layer(x, r)
        # Weighted, for a sum of normalised values does not depend on them.
        weights = jnp.cos(jnp.arange(plain.size, dtype=plain.dtype)).reshape(plain.shape)
        return jnp.sum(weights * plain), (keyed, plain)

    def whole(layer, x, r, key):
        arrays, rest = eqx.partition(layer, eqx.is_inexact_array)
        loss = lambda arrays, r: total((eqx.combine(arrays, rest), r, key), x)  # noqa: E731
        slopes, (keyed, plain) = jax.grad(loss, argnums=(0, 1), has_aux=True)(arrays, r)
        return keyed, plain, slopes

    program = Program(whole)
    with KeyRecorder() as recorder:
        keyed, plain, slopes = on_host(program(layer, x, r, key))
        keys_used_once(check, recorder)
    if check.wants("shape"):
        check.require(plain.shape[:3] == x.shape[:3], f"maps of {x.shape[:3]}", plain.shape, "Pad at the borders.")
    if check.wants("the phrase counts"):
        other = program(layer, x, r[::-1] + 1, key)[1]
        check.require(not np.allclose(other, plain, atol=1e-5), "another map for another phrase", "the same", "")
        other = program(layer, x[:, ::-1], r, key)[1]
        check.require(not np.allclose(other, plain, atol=1e-5), "another map for other features", "the same", "")
    calls = [
        lambda: program(layer, x, r, jax.random.key(6)),
        *(lambda other=other: program(other, x, r, key) for other in others),
    ]
    no_retrace(check, program, calls, len(others))
    if others and check.wants("numbers are used"):
        for other in others:
            check.require(not same_bits(program(other, x, r, key)[0], keyed), "other maps", "the same", "")
    every_number_is_used(check, layer, lambda which: program(which, x, r, key)[:2], unused)
    if check.wants("same key, same bits"):
        check.bits(program(layer, x, r, key)[0], keyed, "the same maps from the same key", "")
        check.bits(program(layer, x, r, jax.random.key(9))[1], plain, "no draw without a key", "")
    if check.wants("examples do not see each other"):
        remedy = "Reduce over an example's own axes alone."
        turned = on_host(program(layer, x[::-1], r[::-1], key)[1])[::-1]
        check.close(turned, plain, 1e-3, "the maps in the order of the examples", remedy)
        broken = on_host(program(layer, with_nan(x), r, key)[1])
        check.close(broken[1:], plain[1:], 1e-3, "the others' maps where one example is nan", remedy)
    if check.wants("gradients"):
        for leaf in jax.tree.leaves(slopes):
            check.require(np.all(np.isfinite(leaf)), "finite gradients", "nan or inf", "Guard roots and quotients.")
        check.require(np.any(slopes[1] != 0), "a gradient for the text", "zeros", "Is it cut off?")
    if check.wants("saved"):
        check.bits(program(check.saved(layer), x, r, key)[1], plain, "the same maps after saving and loading", "")
    if check.wants("float64"):
        with jax.enable_x64(True):
            wide = np.asarray(x, np.float64), np.asarray(r, np.float64)
            double = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), layer)
            types = inexact_types(jax.eval_shape(lambda x, r: double(x, r), *wide))
        check.require(types == {"float64"}, "maps of float64", types, "Take the features' type for all numbers.")
    return check.finish()
