"""What a traced program computes, in NumPy and in double precision, without compiling it.

To compile a trial takes seconds, to trace it a tenth of one, and at its tiny scale there is hardly anything to compute.
All floats are held in double precision, whatever the program declares: what is left of rounding is then far below the
digits that a record keeps, on every processor, and a number that another order of additions would change is not one of
them. Keys are drawn from as jax does where ``jax_threefry_partitionable`` is off, which is how the lab's worker runs.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from scipy import special

__all__ = ["UnknownError", "computed", "evaluate"]


class UnknownError(NotImplementedError):
    """A primitive that is not written here."""


NUDGE = 1e-12  # a thousand times what processors differ by
_nudges = [0.0]


def evaluate(closed: Any, *arguments: Any, nudged: bool = False) -> list[np.ndarray]:
    """The outputs of a closed jaxpr; keys as they are in jax.

    nudged: with every number that is rounded off by a little: what then comes out otherwise is a matter of rounding.
    """
    _nudges[0] = NUDGE * nudged
    with np.errstate(all="ignore"):
        return _run(closed.jaxpr, list(map(_given, closed.consts)), list(map(_given, arguments)))


def computed(function: Callable, *arguments: Any) -> Any:
    """What a function returns, traced and computed: arrays where it has arrays."""
    closed, form = jax.make_jaxpr(function, return_shape=True)(*arguments)
    return jax.tree.unflatten(jax.tree.structure(form), evaluate(closed, *jax.tree.leaves(arguments)))


def _nudged(x: Any) -> np.ndarray:
    """Equal numbers stay equal, and those of few digits, such as counts and shares of a few, what they are."""
    if x.dtype.kind not in "fc":
        return x
    return np.where(
        x == x.astype(np.complex64 if x.dtype.kind == "c" else np.float32),
        x,
        x * (1 + _nudges[0] * np.cos(1e7 * x.real)),
    )


def _given(value: Any) -> np.ndarray:
    if jnp.issubdtype(getattr(value, "dtype", np.float32), jax.dtypes.prng_key):
        return _packed(np.asarray(jax.random.key_data(value)))
    return _held(np.asarray(value), np.asarray(value).dtype)


def _held(value: Any, dtype: Any) -> np.ndarray:
    """As it is held here: a key is one whole number of 64 bits."""
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return np.asarray(value, np.uint64)
    if jnp.issubdtype(dtype, np.complexfloating):
        return np.asarray(value, np.complex128)
    return np.asarray(value, np.float64 if jnp.issubdtype(dtype, np.floating) else dtype)


def _run(jaxpr: Any, consts: Sequence[np.ndarray], arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arguments], strict=True))
    read = lambda atom: _given(atom.val) if hasattr(atom, "val") else known[atom]  # noqa: E731
    for equation in jaxpr.eqns:
        name, operands = equation.primitive.name, list(map(read, equation.invars))
        if name in ELEMENTWISE:
            found: Any = ELEMENTWISE[name](*operands)
        elif name in OTHERS:
            found = OTHERS[name](equation, *operands)
        else:
            raise UnknownError(name)
        several = found if equation.primitive.multiple_results else [found]
        for variable, value in zip(equation.outvars, several, strict=True):
            held = _held(value, variable.aval.dtype)
            known[variable] = _nudged(held) if _nudges[0] and name in ROUNDED else held
    return list(map(read, jaxpr.outvars))


# --- keys -------------------------------------------------------------------------------------------------------------


def _packed(words: np.ndarray) -> np.ndarray:
    return words[..., 0].astype(np.uint64) << np.uint64(32) | words[..., 1]


def _threefry(key: Any, counts: np.ndarray) -> np.ndarray:
    """Threefry 2x32 of counts [n], the first half of them paired with the second (Salmon et al. 2011)."""
    half = -(-len(counts) // 2)
    padded = np.zeros(2 * half, np.uint32)
    padded[: len(counts)] = counts
    x, y = padded[:half].copy(), padded[half:].copy()
    first, second = np.uint32(int(key) >> 32), np.uint32(int(key) & 0xFFFFFFFF)
    words = (first, second, first ^ second ^ np.uint32(0x1BD11BDA))
    turns = ((13, 15, 26, 6), (17, 29, 16, 24))
    x += words[0]
    y += words[1]
    for block in range(5):
        for turn in turns[block % 2]:
            x += y
            y = (y << np.uint32(turn)) | (y >> np.uint32(32 - turn))
            y ^= x
        x += words[(block + 1) % 3]
        y += words[(block + 2) % 3] + np.uint32(block + 1)
    return np.concatenate([x, y])[: len(counts)]


def _bits(key: Any, width: int, shape: tuple[int, ...]) -> np.ndarray:
    size = math.prod(shape)
    drawn = _threefry(key, np.arange(-(-width * size // 32), dtype=np.uint32))
    if width == 64:
        high, low = np.split(drawn.astype(np.uint64), 2)
        drawn = high << np.uint64(32) | low
    elif width < 32:
        parts = np.arange(32 // width, dtype=np.uint32) * np.uint32(width)
        drawn = ((drawn[None] >> parts[:, None]) & np.uint32(2**width - 1)).T.reshape(-1)[:size]
    return drawn.reshape(shape)


def _each(function: Callable, keys: np.ndarray, shape: tuple[int, ...], *more: np.ndarray) -> np.ndarray:
    """The function of every key."""
    rows = [function(*row) for row in zip(keys.ravel(), *(part.ravel() for part in more), strict=True)]
    return np.stack(rows).reshape((*keys.shape, *shape)) if rows else np.zeros((*keys.shape, *shape), np.uint64)


def _random_bits(equation: Any, keys: np.ndarray) -> np.ndarray:
    shape, width = equation.params["shape"], equation.params["bit_width"]
    return _each(lambda key: _bits(key, width, shape), keys, shape)


def _random_split(equation: Any, keys: np.ndarray) -> np.ndarray:
    shape = equation.params["shape"]
    counts = np.arange(2 * math.prod(shape), dtype=np.uint32)
    return _each(lambda key: _packed(_threefry(key, counts).reshape(-1, 2)), keys, shape)


def _random_fold_in(equation: Any, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    keys, numbers = np.broadcast_arrays(keys, numbers)
    return _each(
        lambda key, n: _packed(_threefry(key, np.array([0, int(n) & 0xFFFFFFFF], np.uint32))), keys, (), numbers
    )


def _unpacked(equation: Any, keys: np.ndarray) -> np.ndarray:
    return np.stack([keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)], -1)


# --- where numbers go -------------------------------------------------------------------------------------------------


def _broadcast(equation: Any, x: np.ndarray, *_: Any) -> np.ndarray:
    shape, places = equation.params["shape"], equation.params["broadcast_dimensions"]
    wide = [1] * len(shape)
    for place, size in zip(places, x.shape, strict=True):
        wide[place] = size
    return np.broadcast_to(x.reshape(wide), shape)


def _pad(equation: Any, x: np.ndarray, filling: np.ndarray) -> np.ndarray:
    config = equation.params["padding_config"]
    inner = [
        max(0, (size - 1) * (gap + 1) + 1) if size else 0 for size, (_, _, gap) in zip(x.shape, config, strict=True)
    ]
    spread = np.full(inner, filling, x.dtype)
    spread[tuple(slice(None, None, gap + 1) for _, _, gap in config)] = x
    wide = np.pad(spread, [(max(low, 0), max(high, 0)) for low, high, _ in config], constant_values=filling)
    return wide[
        tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high, _) in zip(wide.shape, config, strict=True))
    ]


def _dynamic_slice(equation: Any, x: np.ndarray, *starts: Any) -> np.ndarray:
    return x[_windows(x, equation.params["slice_sizes"], starts)]


def _dynamic_update_slice(equation: Any, x: np.ndarray, new: np.ndarray, *starts: Any) -> np.ndarray:
    x = x.copy()
    x[_windows(x, new.shape, starts)] = new
    return x


def _windows(x: np.ndarray, sizes: Sequence[int], starts: Sequence[Any]) -> tuple[slice, ...]:
    firsts = [int(np.clip(start, 0, whole - size)) for start, size, whole in zip(starts, sizes, x.shape, strict=True)]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _places(
    shape: Sequence[int],
    indices: np.ndarray,
    windows: Sequence[int],
    sizes: Sequence[int],
    to: Any,
    pairs: Any,
    clip: bool,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Of a gather or scatter the index arrays of every axis, [batch, window], and which batches lie within the array.

    windows: the axes a window has; sizes: of a window along every axis; to: the axis of each number of an index.
    """
    batch, number = indices.shape[:-1], len(windows)
    starts = [np.zeros(batch, np.int64) for _ in shape]
    for place, axis in enumerate(to):
        starts[axis] = indices[..., place].astype(np.int64)
    for axis, own in pairs:
        starts[axis] = np.broadcast_to(
            np.arange(batch[own]).reshape([-1 if k == own else 1 for k in range(len(batch))]), batch
        )
    last = [whole - size for whole, size in zip(shape, sizes, strict=True)]
    inside = np.ones(batch, bool)
    for axis, start in enumerate(starts):
        inside = inside & (start >= 0) & (start <= last[axis])
    found = []
    for axis, start in enumerate(starts):
        start = np.clip(start, 0, max(last[axis], 0)) if clip else start
        along = np.zeros((1,) * number, np.int64)
        if axis in windows:
            own = windows.index(axis)
            along = np.arange(sizes[axis]).reshape([-1 if k == own else 1 for k in range(number)])
        found.append(start.reshape((*batch, *(1,) * number)) + along)
    return found, inside


def _is_clipped(mode: Any) -> bool:
    return "clip" in str(mode).lower()


def _gather(equation: Any, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    how, sizes, mode = (equation.params[name] for name in ("dimension_numbers", "slice_sizes", "mode"))
    gone = (*how.collapsed_slice_dims, *how.operand_batching_dims)
    windows = [axis for axis in range(x.ndim) if axis not in gone]
    pairs = zip(how.operand_batching_dims, how.start_indices_batching_dims, strict=True)
    places, inside = _places(x.shape, indices, windows, sizes, how.start_index_map, pairs, True)
    found = x[tuple(places)] if x.size else np.zeros(np.broadcast_shapes(*(p.shape for p in places)), x.dtype)
    if "fill" in str(mode).lower():
        told = equation.params.get("fill_value")
        empty = told if told is not None else _filling(equation.outvars[0].aval.dtype)
        found = np.where(
            inside.reshape((*inside.shape, *(1,) * len(windows))), found, np.asarray(empty).astype(found.dtype)
        )
    batch = len(indices.shape) - 1
    rest = [axis for axis in range(found.ndim) if axis not in how.offset_dims]
    return np.moveaxis(found, range(found.ndim), [*rest[:batch], *how.offset_dims])


def _filling(dtype: Any) -> Any:
    if jnp.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == np.bool_:
        return True
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return np.uint64(2**64 - 1)
    return np.iinfo(dtype).min if np.iinfo(dtype).min else np.iinfo(dtype).max


def _scatter(
    put: Callable | None, equation: Any, x: np.ndarray, indices: np.ndarray, updates: np.ndarray
) -> np.ndarray:
    how, mode = equation.params["dimension_numbers"], equation.params["mode"]
    gone = (*how.inserted_window_dims, *how.operand_batching_dims)
    windows = [axis for axis in range(x.ndim) if axis not in gone]
    sizes = [1] * x.ndim
    for axis, own in zip(windows, how.update_window_dims, strict=True):
        sizes[axis] = updates.shape[own]
    pairs = zip(how.operand_batching_dims, how.scatter_indices_batching_dims, strict=True)
    clip = _is_clipped(mode)
    places, inside = _places(x.shape, indices, windows, sizes, how.scatter_dims_to_operand_dims, pairs, clip)
    batch = [axis for axis in range(updates.ndim) if axis not in how.update_window_dims]
    new = np.transpose(updates, [*batch, *how.update_window_dims])
    kept = np.ones(inside.shape, bool) if clip else inside
    whole = np.broadcast_shapes(new.shape, *(place.shape for place in places))
    rows = tuple(np.broadcast_to(place, whole)[kept] for place in places)
    x, new = x.copy(), np.broadcast_to(new, whole)[kept]
    if put is None:
        x[rows] = new
    else:
        put(x, rows, new)
    return x


def _sort(equation: Any, *operands: np.ndarray) -> list[np.ndarray]:
    axis, number = equation.params["dimension"], equation.params["num_keys"]
    order: Any = None
    for one in reversed(operands[:number]):
        now = one if order is None else np.take_along_axis(one, order, axis)
        step = np.argsort(now, axis=axis, kind="stable")
        order = step if order is None else np.take_along_axis(order, step, axis)
    return [np.take_along_axis(one, order, axis) for one in operands]


def _top_k(equation: Any, x: np.ndarray) -> list[np.ndarray]:
    axis = equation.params.get("axis", -1)
    order = np.argsort(-x.astype(np.float64), axis=axis, kind="stable")
    order = np.take(order, np.arange(equation.params["k"]), axis=axis)
    return [np.take_along_axis(x, order, axis), order]


def _first(pick: Callable, equation: Any, x: np.ndarray) -> np.ndarray:
    """argmax and argmin, for both of which what is no number comes first."""
    (axis,) = equation.params["axes"]
    unknown = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    return np.where(unknown.any(axis), np.argmax(unknown, axis), pick(x, axis))


def _cumulative(accumulate: Callable, equation: Any, x: np.ndarray) -> np.ndarray:
    axis, reverse = equation.params["axis"], equation.params["reverse"]
    found = accumulate(np.flip(x, axis) if reverse else x, axis=axis)
    return np.flip(found, axis) if reverse else found


def _split(equation: Any, x: np.ndarray) -> list[np.ndarray]:
    ends = np.cumsum(equation.params["sizes"])[:-1]
    return np.split(x, ends, equation.params["axis"])


def _reshape(equation: Any, x: np.ndarray, *_: Any) -> np.ndarray:
    order = equation.params["dimensions"]
    return (x if order is None else np.transpose(x, order)).reshape(equation.params["new_sizes"])


def _slice(equation: Any, x: np.ndarray) -> np.ndarray:
    starts, ends, steps = (equation.params[name] for name in ("start_indices", "limit_indices", "strides"))
    return x[tuple(map(slice, starts, ends, steps or (1,) * x.ndim))]


def _iota(equation: Any, *_: Any) -> np.ndarray:
    shape, axis = equation.params["shape"], equation.params["dimension"]
    return np.broadcast_to(np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)


def _bitcast(equation: Any, x: np.ndarray) -> np.ndarray:
    return x.astype(equation.invars[0].aval.dtype).view(equation.params["new_dtype"])


def _converted(equation: Any, x: Any) -> np.ndarray:
    new, dtype = equation.params["new_dtype"], x.dtype.kind
    if new == np.bool_:
        return x != 0
    if dtype == "f" and np.issubdtype(new, np.integer):
        info = np.iinfo(new)
        return np.clip(np.nan_to_num(np.trunc(x), nan=0.0), float(info.min), float(info.max)).astype(new)
    return x.real if dtype == "c" and not np.issubdtype(new, np.complexfloating) else x


# --- products and matrices --------------------------------------------------------------------------------------------


def _dot(equation: Any, a: np.ndarray, b: np.ndarray, *_: Any) -> np.ndarray:
    (of_a, of_b), (same_a, same_b) = equation.params["dimension_numbers"]
    rest_a = [axis for axis in range(a.ndim) if axis not in (*of_a, *same_a)]
    rest_b = [axis for axis in range(b.ndim) if axis not in (*of_b, *same_b)]
    size = lambda x, axes: math.prod(x.shape[axis] for axis in axes)  # noqa: E731
    batch = [a.shape[axis] for axis in same_a]
    left = np.transpose(a, [*same_a, *rest_a, *of_a]).reshape(math.prod(batch), size(a, rest_a), size(a, of_a))
    right = np.transpose(b, [*same_b, *of_b, *rest_b]).reshape(math.prod(batch), size(b, of_b), size(b, rest_b))
    shape = [*batch, *(a.shape[axis] for axis in rest_a), *(b.shape[axis] for axis in rest_b)]
    return (left @ right).reshape(shape)


def _matrices(function: Callable, *operands: np.ndarray) -> list[np.ndarray]:
    """The function of every pair of matrices of a batch."""
    batch = operands[0].shape[:-2]
    rows = [function(*(part[place] for part in operands)) for place in np.ndindex(*batch)]
    return [np.stack(part).reshape(*batch, *part[0].shape) for part in zip(*rows, strict=True)]


def _triangular_solve(equation: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    p = equation.params
    a = np.tril(a) if p["lower"] else np.triu(a)
    if p["unit_diagonal"]:
        eye = np.eye(a.shape[-1], dtype=bool)
        a = np.where(eye, 1.0, a)
    a = np.swapaxes(a, -1, -2) if p["transpose_a"] else a
    if p["left_side"]:
        return _solve(a, b)
    return np.swapaxes(_solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def _solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.full(b.shape, np.nan)


def _cholesky(equation: Any, a: np.ndarray) -> np.ndarray:
    def one(matrix: np.ndarray) -> list[np.ndarray]:
        try:
            return [np.linalg.cholesky(matrix)]
        except np.linalg.LinAlgError:
            return [np.full(matrix.shape, np.nan)]

    return _matrices(one, a)[0]


def _eigh(equation: Any, a: np.ndarray) -> list[np.ndarray]:
    values, vectors = np.linalg.eigh(a, "L" if equation.params["lower"] else "U")
    return [vectors, values]


def _svd(equation: Any, a: np.ndarray) -> list[np.ndarray]:
    if not equation.params["compute_uv"]:
        return [np.linalg.svd(a, compute_uv=False)]
    u, s, v = np.linalg.svd(a, full_matrices=equation.params["full_matrices"])
    return [s, u, v]


def _lu(equation: Any, a: np.ndarray) -> list[np.ndarray]:
    def one(matrix: np.ndarray) -> list[np.ndarray]:
        both, pivots = scipy.linalg.lu_factor(matrix, check_finite=False)
        order = np.arange(len(matrix))
        for row, pivot in enumerate(pivots):
            order[[row, pivot]] = order[[pivot, row]]
        return [both, pivots, order]

    return _matrices(one, a)


def _qr(equation: Any, a: np.ndarray) -> list[np.ndarray]:
    mode: Any = "complete" if equation.params["full_matrices"] else "reduced"
    return list(np.linalg.qr(a, mode))


def _fft(equation: Any, x: np.ndarray) -> np.ndarray:
    kind, sizes = str(equation.params["fft_type"]).rpartition(".")[2].lower(), equation.params["fft_lengths"]
    names = {"0": "fft", "1": "ifft", "2": "rfft", "3": "irfft"}
    make = getattr(np.fft, names.get(kind, kind) + "n")
    return make(x, sizes, axes=range(x.ndim - len(sizes), x.ndim))


# --- programs within programs -----------------------------------------------------------------------------------------


def _inner(closed: Any, *operands: np.ndarray) -> list[np.ndarray]:
    if hasattr(closed, "jaxpr"):
        return _run(closed.jaxpr, list(map(_given, closed.consts)), operands)
    return _run(closed, [], operands)


def _called(name: str, equation: Any, *operands: np.ndarray) -> list[np.ndarray]:
    return _inner(equation.params[name], *operands)


def _scan(equation: Any, *operands: np.ndarray) -> list[np.ndarray]:
    p = equation.params
    consts, carry, rows = (
        operands[: p["num_consts"]],
        list(operands[p["num_consts"] :][: p["num_carry"]]),
        operands[p["num_consts"] + p["num_carry"] :],
    )
    kept: list[Any] = [None] * p["length"]
    for place in range(p["length"])[:: -1 if p["reverse"] else 1]:
        found = _inner(p["jaxpr"], *consts, *carry, *(part[place] for part in rows))
        carry, kept[place] = found[: p["num_carry"]], found[p["num_carry"] :]
    outs = equation.outvars[p["num_carry"] :]
    empty = [np.zeros(variable.aval.shape) for variable in outs]
    return carry + ([np.stack(parts) for parts in zip(*kept, strict=True)] if kept else empty)


def _while(equation: Any, *operands: np.ndarray) -> list[np.ndarray]:
    p = equation.params
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    state = list(operands[second:])
    # Where the condition has an axis of its own, each of its rows stops by itself.
    while np.any(goes := _inner(p["cond_jaxpr"], *operands[:first], *state)[0]):
        after = _inner(p["body_jaxpr"], *operands[first:second], *state)
        wide = [goes.reshape(goes.shape + (1,) * (one.ndim - goes.ndim)) for one in after]
        state = [np.where(own, new, old) for own, new, old in zip(wide, after, state, strict=True)]
    return state


def _cond(equation: Any, index: np.ndarray, *operands: np.ndarray) -> list[np.ndarray]:
    branches = equation.params["branches"]
    return _inner(branches[int(np.clip(int(index), 0, len(branches) - 1))], *operands)


def _linear_solve(equation: Any, *operands: np.ndarray) -> list[np.ndarray]:
    lengths = equation.params["const_lengths"]
    ends = np.cumsum([lengths.matvec, lengths.vecmat, lengths.solve, lengths.transpose_solve])
    return _inner(equation.params["jaxprs"].solve, *operands[ends[1] : ends[2]], *operands[ends[3] :])


def _platform(equation: Any) -> np.ndarray:
    names = equation.params["platforms"]
    chosen = [place for place, some in enumerate(names) if some is None or "cpu" in some]
    return np.asarray(chosen[0])


# --- all of them ------------------------------------------------------------------------------------------------------


def _divided(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind in "fc":
        return a / b
    quotient = np.floor_divide(np.abs(a), np.maximum(np.abs(b), 1)) if a.dtype.kind == "i" else a // np.maximum(b, 1)
    return quotient * np.sign(a) * np.sign(b) if a.dtype.kind == "i" else quotient


def _power(equation: Any, x: np.ndarray) -> np.ndarray:
    number = equation.params["y"]
    return reduce(np.multiply, itertools.repeat(x, number)) if 0 < number <= 4 else x ** float(number)


def _rounded(equation: Any, x: np.ndarray) -> np.ndarray:
    to_even = "even" in str(equation.params["rounding_method"]).lower() or equation.params["rounding_method"] == 1
    return np.round(x) if to_even else np.sign(x) * np.floor(np.abs(x) + 0.5)


def _reduced(function: Callable, equation: Any, x: np.ndarray) -> np.ndarray:
    return function(x, axis=tuple(equation.params["axes"]))


def _shifted(shift: Callable, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    bits = 8 * a.dtype.itemsize
    return np.where(b.astype(unsigned) < bits, shift(a.astype(unsigned), b.astype(unsigned) % bits), 0).astype(a.dtype)


def _negated(x: np.ndarray) -> np.ndarray:
    return ~x


def _same(x: np.ndarray, *_: Any) -> np.ndarray:
    return x


def _less(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In the total order: what is no number comes last."""
    return (a < b) | (np.isnan(b) & ~np.isnan(a))


# Of which the last digits differ between processors and libraries.
ROUNDED = {"dot_general", "reduce_sum", "cumsum", "cumlogsumexp", "scatter-add", "fft"}
ROUNDED |= {"exp", "expm1", "log", "log1p", "tanh", "sin", "cos", "logistic", "pow", "erf", "erfc", "erf_inv"}
ROUNDED |= {"triangular_solve", "cholesky", "eigh", "svd", "lu", "qr", "regularized_incomplete_beta"}
ELEMENTWISE: dict[str, Callable] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _divided,
    "rem": np.fmod,
    "max": np.maximum,
    "min": np.minimum,
    "pow": np.power,
    "atan2": np.arctan2,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": _negated,
    "shift_left": partial(_shifted, np.left_shift),
    "shift_right_logical": partial(_shifted, np.right_shift),
    "shift_right_arithmetic": lambda a, b: np.right_shift(a, np.minimum(b, 8 * a.dtype.itemsize - 1).astype(a.dtype)),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt_to": _less,
    "le_to": lambda a, b: ~_less(b, a),
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "logistic": special.expit,
    "erf": special.erf,
    "erfc": special.erfc,
    "erf_inv": special.erfinv,
    "lgamma": special.gammaln,
    "digamma": special.psi,
    "regularized_incomplete_beta": special.betainc,
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "floor": np.floor,
    "ceil": np.ceil,
    "is_finite": np.isfinite,
    "conj": np.conj,
    "real": np.real,
    "imag": np.imag,
    "stop_gradient": _same,
    "copy": _same,
    "copy_p": _same,
    "optimization_barrier": lambda *parts: list(parts),
    "reduce_precision": _same,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "select_n": lambda which, *cases: (
        np.choose(which.astype(int), cases) if len(cases) > 2 else np.where(which, *cases[::-1])
    ),
    "random_wrap": _packed,
}

OTHERS: dict[str, Callable] = {
    "random_bits": _random_bits,
    "random_split": _random_split,
    "random_fold_in": _random_fold_in,
    "random_unwrap": _unpacked,
    "random_seed": lambda equation, seeds: seeds.astype(np.int64).astype(np.uint64) & np.uint64(0xFFFFFFFF),
    "nextafter": lambda equation, a, b: np.nextafter(*(x.astype(equation.outvars[0].aval.dtype) for x in (a, b))),
    "integer_pow": _power,
    "round": _rounded,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda equation, x: np.squeeze(x, tuple(equation.params["dimensions"])),
    "expand_dims": lambda equation, x: np.expand_dims(x, tuple(equation.params["dimensions"])),
    "transpose": lambda equation, x: np.transpose(x, equation.params["permutation"]),
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "concatenate": lambda equation, *parts: np.concatenate(parts, equation.params["dimension"]),
    "stack": lambda equation, *parts: np.stack(parts, equation.params["axis"]),
    "unstack": lambda equation, x: list(np.moveaxis(x, equation.params["axis"], 0)),
    "tile": lambda equation, x: np.tile(x, equation.params["reps"]),
    "pad": _pad,
    "rev": lambda equation, x: np.flip(x, equation.params["dimensions"]),
    "iota": _iota,
    "convert_element_type": _converted,
    "bitcast_convert_type": _bitcast,
    "split": _split,
    "sort": _sort,
    "top_k": _top_k,
    "argmax": partial(_first, np.argmax),
    "argmin": partial(_first, np.argmin),
    "reduce_sum": partial(_reduced, np.sum),
    "reduce_prod": partial(_reduced, np.prod),
    "reduce_max": partial(_reduced, np.max),
    "reduce_min": partial(_reduced, np.min),
    "reduce_and": partial(_reduced, np.all),
    "reduce_or": partial(_reduced, np.any),
    "cumsum": partial(_cumulative, np.cumsum),
    "cumprod": partial(_cumulative, np.cumprod),
    "cummax": partial(_cumulative, np.maximum.accumulate),
    "cummin": partial(_cumulative, np.minimum.accumulate),
    "cumlogsumexp": partial(_cumulative, np.logaddexp.accumulate),
    "gather": _gather,
    "scatter": partial(_scatter, None),
    "scatter-add": partial(_scatter, np.add.at),
    "scatter_add": partial(_scatter, np.add.at),
    "scatter-mul": partial(_scatter, np.multiply.at),
    "scatter_mul": partial(_scatter, np.multiply.at),
    "scatter_min": partial(_scatter, np.minimum.at),
    "scatter_max": partial(_scatter, np.maximum.at),
    "dot_general": _dot,
    "triangular_solve": _triangular_solve,
    "cholesky": _cholesky,
    "eigh": _eigh,
    "svd": _svd,
    "lu": _lu,
    "qr": _qr,
    "fft": _fft,
    "jit": partial(_called, "jaxpr"),
    "pjit": partial(_called, "jaxpr"),
    "closed_call": partial(_called, "call_jaxpr"),
    "core_call": partial(_called, "call_jaxpr"),
    "checkpoint": partial(_called, "jaxpr"),
    "remat2": partial(_called, "jaxpr"),
    "custom_jvp_call": partial(_called, "call_jaxpr"),
    "custom_vjp_call": partial(_called, "call_jaxpr"),
    "custom_vjp_call_jaxpr": partial(_called, "fun_jaxpr"),
    "custom_linear_solve": _linear_solve,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "platform_index": _platform,
    "check": lambda equation, *_: [],
}
