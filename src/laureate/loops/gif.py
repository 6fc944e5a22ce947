"""Pictures as an animated GIF, without a library."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from laureate._core import require

__all__ = ["gif_of", "save_gif"]

MOST = 4096  # codes of a table


def save_gif(path: str | Path, frames: Any, seconds: float = 0.1, loop: bool = True) -> Path:
    """Write pictures to a file that every browser and viewer plays.

    path: of the file, replaced where there is one. frames, seconds, loop: as for ``gif_of``.
    """
    found = Path(path)
    found.write_bytes(gif_of(frames, seconds, loop))
    return found


def gif_of(frames: Any, seconds: float = 0.1, loop: bool = True) -> bytes:
    """Pictures as the bytes of an animated GIF.

    frames: bytes [frames, height, width, 3], or [frames, height, width] for grey; colours beyond 256 are rounded to six
        levels of red, green and blue.
    seconds: that a picture stays, 0.02 to 655, in hundredths; browsers show quicker ones more slowly.
    loop: whether it begins anew at the end.

    >>> picture = np.zeros((2, 3, 3), np.uint8)
    >>> picture[1, 0, 0] = 255
    >>> gif_of(picture)[:10]
    b'GIF89a\\x03\\x00\\x03\\x00'
    """
    frames = np.asarray(frames)
    remedy = "Multiply floats within 0 and 1 by 255 and round them."
    require("gif_of", "frames", "of bytes (uint8)", frames.dtype.name, lambda kind: kind == "uint8", remedy)
    rule = "of shape [frames, height, width, 3] or [frames, height, width], none of them 0 or above 65535"
    require("gif_of", "frames", rule, frames.shape, _is_film)
    require("gif_of", "seconds", "within 0.02 and 655", seconds, lambda s: 0.02 <= s <= 655)
    palette, pictures = _indexed(frames)
    bits = max(1, (len(palette) - 1).bit_length())
    colours = np.zeros((2**bits, 3), np.uint8)
    colours[: len(palette)] = palette
    high, wide = pictures.shape[1:]
    parts = [b"GIF89a", struct.pack("<HHBBB", wide, high, 0xF0 | (bits - 1), 0, 0), colours.tobytes()]
    if loop:
        parts.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")
    before = None
    for picture in pictures:
        top, left, below, right = _changed(before, picture)
        before = picture
        # What was there stays, so that only what has changed is drawn.
        parts.append(b"\x21\xf9\x04" + struct.pack("<BHBB", 0x04, round(100 * seconds), 0, 0))
        parts.append(b"\x2c" + struct.pack("<HHHHB", left, top, right - left, below - top, 0))
        parts.append(_blocks(picture[top:below, left:right].tobytes(), max(2, bits)))
    return b"".join([*parts, b"\x3b"])


def _is_film(shape: tuple[int, ...]) -> bool:
    colours = len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
    return colours and min(shape) > 0 and max(shape[1:3]) < 2**16


def _indexed(frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The colours that there are, at most 256, and every pixel's number among them."""
    frames = np.repeat(frames[..., None], 3, axis=-1) if frames.ndim == 3 else frames

    def numbered(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        red, green, blue = (pixels[..., i].astype(np.uint32) for i in range(3))
        return np.unique(red << 16 | green << 8 | blue, return_inverse=True)

    codes, places = numbered(frames)
    if len(codes) > 256:
        codes, places = numbered((np.round(frames / 51.0) * 51).astype(np.uint8))
    palette = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1).astype(np.uint8)
    return palette, places.reshape(frames.shape[:3]).astype(np.uint8)


def _changed(before: np.ndarray | None, now: np.ndarray) -> tuple[int, int, int, int]:
    """Top, left, below and right of what differs; one pixel where nothing does."""
    if before is None:
        return 0, 0, *now.shape  # pyright: ignore[reportReturnType]
    rows, columns = (np.flatnonzero((before != now).any(axis=axis)) for axis in (1, 0))
    return (rows[0], columns[0], rows[-1] + 1, columns[-1] + 1) if len(rows) else (0, 0, 1, 1)


def _blocks(pixels: bytes, size: int) -> bytes:
    """Pixels after Lempel, Ziv and Welch, in blocks of at most 255 bytes."""
    clear, codes, wide = 1 << size, {}, size + 1
    following, prefix = clear + 2, pixels[0]
    found, buffer, held = bytearray(), clear, wide  # the first code clears the table

    def put(code: int) -> None:
        nonlocal buffer, held
        buffer |= code << held
        held += wide
        while held >= 8:
            found.append(buffer & 255)
            buffer >>= 8
            held -= 8

    for pixel in pixels[1:]:
        code = codes.get((prefix, pixel))
        if code is not None:
            prefix = code
            continue
        put(prefix)
        if following < MOST:
            codes[prefix, pixel] = following
            wide += following == 1 << wide  # who reads is one code behind
            following += 1
        else:
            put(clear)
            codes.clear()
            following, wide = clear + 2, size + 1
        prefix = pixel
    put(prefix)
    wide += following == 1 << wide and wide < 12
    put(clear + 1)
    if held:
        found.append(buffer & 255)
    cut = [bytes(found[at : at + 255]) for at in range(0, len(found), 255)]
    return bytes([size]) + b"".join(bytes([len(one)]) + one for one in cut) + b"\x00"
