"""A drawing that moves, of a few strokes: as pictures for a film, and as plain values for a page."""

import itertools
from typing import Any, Literal, NamedTuple

import numpy as np

from laureate._core import require

__all__ = ["Scene", "Stroke", "frames_of", "plain_scene"]

Look = Literal["ground", "wall", "goal", "ghost", "trace", "body", "lit"]
PAPER = (255, 255, 255)
# What a stroke means, and its colour in a film; a page has colours of its own.
LOOKS: dict[str, tuple[int, int, int]] = {
    "ground": (232, 229, 222),
    "wall": (120, 126, 132),
    "goal": (46, 139, 87),
    "ghost": (190, 205, 190),
    "trace": (164, 194, 226),
    "body": (23, 86, 154),
    "lit": (214, 126, 34),
}


class Stroke(NamedTuple):
    """A dot, a square or a line, at rest or moving.

    points: [frames, points, 2], x to the right and y downwards; one frame for what is at rest. One point is a dot,
        several are a line through them.
    width: of the line; the diameter of a dot, the side of a square.
    look: what it means: "ground", "wall", "goal", "ghost" (what is wished for), "trace" (where it was), "body", "lit".
    square: whether a dot is a square.
    shown: [frames], in which frames it is there; None: in all.
    """

    points: Any
    width: float
    look: Look = "body"
    square: bool = False
    shown: Any = None


class Scene(NamedTuple):
    """Strokes on a sheet.

    width, height: of the sheet, in the unit of the points. strokes: in the order in which they are painted.
    """

    width: float
    height: float
    strokes: tuple[Stroke, ...]


def checked(scene: Scene) -> tuple[int, list[Stroke]]:
    """How many frames it has, and its strokes as arrays."""
    require("Scene", "width, height", "> 0", (scene.width, scene.height), lambda size: min(size) > 0)
    strokes, lengths = [], {1}
    for stroke in scene.strokes:
        points = np.asarray(stroke.points, float)
        require("Stroke", "points", "of shape [frames, points, 2]", points.shape, _is_points)
        require("Stroke", "points", "finite", points, lambda p: bool(np.isfinite(p).all()))
        require("Stroke", "width", "> 0", stroke.width, lambda w: w > 0)
        require("Stroke", "look", f"one of {', '.join(LOOKS)}", stroke.look, lambda look: look in LOOKS)
        shown = None if stroke.shown is None else np.asarray(stroke.shown, bool)
        lengths |= {len(points)} if shown is None else {len(points), len(shown)}
        strokes.append(stroke._replace(points=points, shown=shown))
    rule = "of one frame or of one number of frames"
    require("Scene", "strokes", rule, sorted(lengths), lambda n: len(n) <= 2 and n[0] == 1)
    return max(lengths), strokes


def _is_points(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[0] >= 1 and shape[1] >= 1 and shape[2] == 2


def frames_of(scene: Scene, pixels: int = 240) -> np.ndarray:
    """Pictures [frames, height, width, 3] of bytes, on white, with smooth edges.

    pixels: of the width, >= 1.

    >>> dot = Stroke(np.array([[[1.0, 1.0]], [[3.0, 1.0]]]), 2.0)  # moves to the right
    >>> found = frames_of(Scene(4.0, 2.0, (dot,)), pixels=8)
    >>> found.shape, found[0, 2, 2].tolist(), found[1, 2, 2].tolist()
    ((2, 4, 8, 3), [23, 86, 154], [255, 255, 255])
    """
    require("frames_of", "pixels", "an integer >= 1", pixels, lambda n: isinstance(n, int) and n >= 1)
    number, strokes = checked(scene)
    scale = pixels / scene.width
    high = max(1, round(scene.height * scale))
    at = np.stack(np.meshgrid(np.arange(pixels) + 0.5, np.arange(high) + 0.5), axis=-1) / scale
    still = [_cover(one, one.points[0], at, scale) if len(one.points) == 1 else None for one in strokes]
    found = np.empty((number, high, pixels, 3), np.uint8)
    for frame in range(number):
        canvas = np.full((high, pixels, 3), PAPER, float)
        for stroke, kept in zip(strokes, still, strict=True):
            if stroke.shown is not None and not stroke.shown[frame % len(stroke.shown)]:
                continue
            cover = _cover(stroke, stroke.points[frame], at, scale) if kept is None else kept
            canvas += cover[..., None] * (np.array(LOOKS[stroke.look], float) - canvas)
        found[frame] = np.round(canvas)
    return found


def _cover(stroke: Stroke, points: np.ndarray, at: np.ndarray, scale: float) -> np.ndarray:
    """Of every pixel the share that a stroke covers, by its distance from the edge."""
    if len(points) == 1:
        off = np.abs(at - points[0])
        away = np.max(off, axis=-1) if stroke.square else np.hypot(off[..., 0], off[..., 1])
    else:
        away = np.full(at.shape[:2], np.inf)
        for first, last in itertools.pairwise(points):
            along = last - first
            share = np.clip(((at - first) @ along) / max(float(along @ along), 1e-12), 0, 1)
            off = at - first - share[..., None] * along
            away = np.minimum(away, np.hypot(off[..., 0], off[..., 1]))
    return np.clip(0.5 + (stroke.width / 2 - away) * scale, 0, 1)


def plain_scene(scene: Scene) -> dict[str, Any]:
    """The scene as plain values for ``json``, with coordinates to a thousandth of its width.

    A stroke's points are lists of x, y, x, y … a frame; frames in which it is there are "1" in a string.

    >>> plain_scene(Scene(1.0, 1.0, (Stroke([[[0.5, 0.25]]], 0.1, "goal"),)))["strokes"]
    [{'look': 'goal', 'width': 100, 'points': [[500, 250]]}]
    """
    number, strokes = checked(scene)
    unit = 1000 / scene.width
    drawn = []
    for stroke in strokes:
        points = np.round(stroke.points * unit).astype(int).reshape(len(stroke.points), -1).tolist()
        one: dict[str, Any] = {"look": stroke.look, "width": max(1, round(stroke.width * unit)), "points": points}
        if stroke.square:
            one["square"] = True
        if stroke.shown is not None:
            one["shown"] = "".join("01"[int(there)] for there in stroke.shown)
        drawn.append(one)
    return {"width": 1000, "height": round(scene.height * unit), "frames": number, "strokes": drawn}
