"""Codes of any number of bits as bytes: 8 codes of b bits are b bytes, and nothing is left over but the last byte."""

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt8

from laureate._core import require

__all__ = ["num_bytes", "pack", "unpack"]


def num_bytes(count: int, bits: int) -> int:
    """⌈count · bits / 8⌉."""
    return -(-count * bits // 8)


def pack(codes: Int[Array, "count"], bits: int) -> UInt8[Array, "bytes"]:
    """Codes in 0 … 2^bits - 1 as ⌈count · bits / 8⌉ bytes, the lowest bit of the first code first.

    bits: of a code, 1 to 16. What a code has above them is cut off.

    >>> packed = pack(jnp.array([1, 0, 3, 2, 1]), bits=2)
    >>> packed.tolist(), unpack(packed, 2, 5).tolist()
    ([177, 1], [1, 0, 3, 2, 1])
    """
    require("pack", "bits", "in 1..16", bits, lambda b: 1 <= b <= 16)
    (count,) = codes.shape
    whole = jnp.pad(codes.astype(jnp.uint32), (0, -count % 8))
    single = (whole[:, None] >> jnp.arange(bits, dtype=jnp.uint32)) & 1  # [codes, bits]
    weights = 1 << jnp.arange(8, dtype=jnp.uint32)
    return jnp.sum(single.reshape(-1, 8) * weights, axis=1).astype(jnp.uint8)[: num_bytes(count, bits)]


def unpack(packed: UInt8[Array, "bytes"], bits: int, count: int) -> Int[Array, "count"]:
    """The ``count`` codes that ``pack`` put into these bytes, as int32."""
    wanted = num_bytes(count, bits)
    require("unpack", "packed", f"of {wanted} bytes for {count} codes of {bits} bits", packed.shape, (wanted,).__eq__)
    if bits == 8:
        return packed.astype(jnp.int32)
    whole = jnp.pad(packed, (0, num_bytes(-(-count // 8) * 8, bits) - wanted))
    single = (whole[:, None] >> jnp.arange(8, dtype=jnp.uint8)) & 1  # [bytes, 8]
    weights = 1 << jnp.arange(bits, dtype=jnp.int32)
    return jnp.sum(single.reshape(-1, bits) * weights, axis=1, dtype=jnp.int32)[:count]
