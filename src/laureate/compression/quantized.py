"""A model with quantised weights: how small it is, and the model again."""

from typing import Any, NamedTuple

import jax
import numpy as np

from laureate.compression.arrays import encoded, is_quantized, is_stored, shipped_bytes
from laureate.compression.quantizer import Quantizer
from laureate.compression.selection import Chosen, Rules, choose

__all__ = ["Report", "Row", "dequantize", "expected_bytes", "freeze", "package", "quantize"]


class Row(NamedTuple):
    """One array of a model: what became of it.

    path: in the model, as ``layers.0.weight``. shape: of the array. bytes_before, bytes_after: its size. error: |φ(W) -
    W| / |W|, 0 for what is kept. reason: why it is kept; empty where it is quantised.
    """

    path: str
    shape: tuple[int, ...]
    bytes_before: int
    bytes_after: int
    error: float
    reason: str


class Report(NamedTuple):
    """What ``quantize`` did. Printed, it is a table; megabytes are 10⁶ bytes.

    rows: one for every array. bytes_before, bytes_after: of all arrays; after, as they lie on disk, in a file that is
    longer by its header alone.
    """

    rows: tuple[Row, ...]
    bytes_before: int
    bytes_after: int

    @property
    def kept(self) -> tuple[Row, ...]:
        """The arrays that stay as they are."""
        return tuple(row for row in self.rows if row.reason)

    def __str__(self) -> str:
        lines = [
            f"{row.path}  {list(row.shape)}  {row.bytes_before:,} → {row.bytes_after:,} bytes  "
            + (f"kept: {row.reason}" if row.reason else f"error {100 * row.error:.2f} %")
            for row in self.rows
        ]
        ratio = self.bytes_before / max(self.bytes_after, 1)
        total = f"{self.bytes_before / 1e6:.4g} MB → {self.bytes_after / 1e6:.4g} MB, {ratio:.1f} times smaller"
        return "\n".join([*lines, total])


def quantize(model: Any, spec: Quantizer | Rules, key: Any = None) -> tuple[Any, Report]:
    """The model with its weights as packed codes, and a report of bytes and errors.

    W → (c, θ),   θ = fit(W),   c = encode(W, θ), ⌈bits · count / 8⌉ bytes

    model: any pytree. Biases, norms, and what is no real array of two or more axes, stay (`match`).
    spec: a quantiser for all weights, or rules by path, as of ``match``.
    key: for codebooks, whose k-means begins at random; rounding needs none.

    ``dequantize`` gives the model back, ``save`` and ``load`` write it to disk and read it.

    >>> import equinox as eqx, jax
    >>> from laureate.compression import ScalarQuantizer
    >>> model = eqx.nn.MLP(64, 10, 128, 2, key=jax.random.key(0))
    >>> packed, report = quantize(model, ScalarQuantizer(4))
    >>> report.bytes_before, report.bytes_after  # 25,856 weights, two a byte; 266 biases; three steps and zero points
    (104488, 14007)
    >>> dequantize(packed)(jax.numpy.ones(64)).shape
    (10,)
    """
    chosen = choose(model, spec, "quantize")
    made = chosen.rebuilt([_package(leaf) for leaf in _encoded(key, chosen)])
    rows = [
        _row(leaf.path, given, new, leaf.reason)
        for leaf, given, new in zip(chosen.leaves, _leaves(model), _leaves(made), strict=True)
        if is_stored(given)
    ]
    return made, Report(tuple(rows), sum(row.bytes_before for row in rows), sum(row.bytes_after for row in rows))


def dequantize(model: Any) -> Any:
    """The model with ordinary weights, in the types they had (float64 where JAX has it); under jit and grad as well.

    Its gradient reaches the parameters of what is quantised (the sum over all that a centroid stands for), not codes.
    """
    return jax.tree.map(lambda leaf: leaf.decoded() if is_quantized(leaf) else leaf, model, is_leaf=is_quantized)


def freeze(model: Any, spec: Quantizer | Rules, key: Any = None) -> Any:
    """The model with the chosen weights as codes that stay and parameters that can be trained on.

    key: for codebooks, as for ``quantize``. What is frozen already stays as it is.

    ``dequantize`` in the loss makes a model of it, ``package`` makes it small.
    """
    chosen = choose(model, spec, "freeze")
    return chosen.rebuilt(_encoded(key, chosen))


def package(model: Any) -> Any:
    """A frozen model as ``quantize`` would give it: packed codes, parameters as they are stored."""
    return jax.tree.map(_package, model, is_leaf=is_quantized)


def expected_bytes(model: Any, spec: Quantizer | Rules) -> int:
    """Bytes of all arrays that ``quantize`` would give, from shapes alone: for choosing a spec, and under jit.

    >>> import jax.numpy as jnp
    >>> from laureate.compression import ProductQuantizer
    >>> expected_bytes({"w": jnp.ones((256, 512))}, ProductQuantizer())  # 16,384 codes and a codebook of 256 x 8 floats
    24576
    """
    return sum(
        _kept_bytes(leaf.value) if leaf.quantizer is None else shipped_bytes(leaf.quantizer, leaf.value)
        for leaf in choose(model, spec, "expected_bytes").leaves
        if is_stored(leaf.value)
    )


def _encoded(key: Any, chosen: Chosen) -> list[Any]:
    keys = (None if key is None else jax.random.fold_in(key, number) for number in range(len(chosen.leaves)))
    return [
        leaf.value if leaf.quantizer is None else encoded(own, leaf.quantizer, leaf.value)
        for own, leaf in zip(keys, chosen.leaves, strict=True)
    ]


def _package(leaf: Any) -> Any:
    return leaf.package() if is_quantized(leaf) else leaf


def _kept_bytes(value: Any) -> int:
    """Of an array that stays; what is frozen is packed then."""
    if not is_quantized(value):
        return value.nbytes
    packed = jax.eval_shape(lambda frozen: frozen.package(), value)
    return sum(part.size * part.dtype.itemsize for part in jax.tree.leaves((packed.data, packed.parameters)))


def _row(path: str, before: Any, after: Any, reason: str) -> Row:
    if is_quantized(before):
        return Row(path, before.shape, before.original_nbytes, after.nbytes, 0.0, reason)
    error = _relative_error(after.decoded(), before) if is_quantized(after) else 0.0
    return Row(path, before.shape, before.nbytes, after.nbytes, error, reason)


def _leaves(model: Any) -> list[Any]:
    return jax.tree.leaves(model, is_leaf=is_quantized)


def _relative_error(found: Any, wanted: Any) -> float:
    """In double precision, which holds the square of every weight of single precision."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    norm = np.linalg.norm(wanted)
    return float(np.linalg.norm(found - wanted) / norm) if norm else 0.0
