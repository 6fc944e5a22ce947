"""Arrays as the store keeps them: in NumPy's own format, never pickled, with a sum that tells them from others."""

import io
import zlib

import numpy as np

__all__ = ["label_of", "pack", "readable", "unpack"]

SUM_BYTES = 8


def pack(values: np.ndarray, label: str = "") -> bytes:
    """NumPy's own format; with a label also a sum over label and numbers, which ``np.load`` leaves unread."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    data = buffer.getvalue()
    return data + _sum(data, label) if label else data


def unpack(data: bytes, label: str) -> np.ndarray:
    """The array that was packed under that label; ValueError where it is another, or none."""
    if data[-SUM_BYTES:] == _sum(data[:-SUM_BYTES], label):
        return np.load(io.BytesIO(data), allow_pickle=False)
    stream = io.BytesIO(data)
    try:
        values = np.load(stream, allow_pickle=False)
    except Exception as error:  # NumPy reads the head as Python, and complains of a damaged one in many ways
        raise ValueError("this is no array") from error
    # Stores of schema 1 have no sum, and nothing behind the numbers.
    if stream.tell() != len(data):
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
    except ValueError:
        return False
