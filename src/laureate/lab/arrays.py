"""Arrays as the store keeps them: in NumPy's own format, never pickled, with a sum that tells them from others."""

import io
import zlib

import numpy as np

__all__ = ["label_of", "pack", "readable", "unpack"]


def pack(values: np.ndarray, label: str = "") -> bytes:
    """NumPy's own format; with a label also a sum over label and numbers, which ``np.load`` leaves unread."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    data = buffer.getvalue()
    return data + _sum(data, label) if label else data


def unpack(data: bytes, label: str) -> np.ndarray:
    """The array that was packed under that label; ValueError where it is another, or none."""
    stream = io.BytesIO(data)
    values = np.load(stream, allow_pickle=False)
    end = stream.tell()
    # Stores of schema 1 have no sum.
    if data[end:] and data[end:] != _sum(data[:end], label):
        raise ValueError("these are not the numbers that were written")
    return values


def _sum(data: bytes, label: str) -> bytes:
    return b"CRC " + zlib.crc32(data, zlib.crc32(label.encode())).to_bytes(4, "little")


def label_of(fingerprint: str, start: int, metric: str) -> str:
    """Whose numbers they are: a cell's, one metric's. A damaged file must not pass them off as another's."""
    return f"{fingerprint} {start} {metric}"


def readable(data: object, label: str) -> bool:
    """Whether what the store keeps is what was written under that label."""
    try:
        return isinstance(data, bytes) and unpack(data, label) is not None
    except (ValueError, EOFError, SyntaxError, TypeError):
        return False
