"""Small charts as inline SVG: they follow the page's theme, need no script, and print.

Every function takes plain numbers and gives a string. Colours come from the page's style sheet (classes ``s0`` to
``s7`` for series), so that dark and light need no second drawing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from laureate.pages.wording import plural

__all__ = ["PALETTE", "Series", "Tile", "curve_chart", "interval_chart", "strip", "topic_map", "treemap"]

# The colours s0 to s7 of the light theme, for pictures that leave the page.
PALETTE = ("#17569a", "#b84e14", "#17713a", "#8e3b9c", "#b3261e", "#6b6200", "#007a7a", "#5c666e")

Numbers = Sequence[float]
# Where a claim holds: from, to; infinite where there is no limit.
Region = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """A line with its band; the four sequences have one length. colour: its number, the same in every picture."""

    label: str
    x: Numbers
    middle: Numbers
    low: Numbers
    high: Numbers
    colour: int = 0

    @property
    def look(self) -> str:
        """Its classes: one of eight colours; from the ninth on the lines are dashed."""
        return f"s{self.colour % 8}" + " dashed" * (self.colour >= 8)


class Axis:
    """A mapping from data to pixels with round ticks, linear or logarithmic."""

    def __init__(self, values: Numbers, start: float, end: float, log: bool = False, pad: float = 0.06):
        usable = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
        self.log = log
        low, high = self._scaled(min(usable)), self._scaled(max(usable))
        # One value alone stands in the middle.
        alone = 1.0 if log else max(abs(high), 1.0) * 0.1
        pad, spread = (pad, high - low) if high > low else (max(pad, 0.5), alone)
        self.low, self.high = low - pad * spread, high + pad * spread
        self.start, self.end = start, end

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def __call__(self, value: float) -> float:
        """The pixel of a value; what lies outside is held at the edge."""
        if not math.isfinite(value) or (self.log and value <= 0):
            share = 0.0 if value <= 0 else 1.0
        else:
            share = (self._scaled(value) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))

    def ticks(self, count: int = 5) -> list[float]:
        """Round values inside the axis."""
        if self.log and self.high - self.low >= 1.2:
            stride = max(1, math.ceil((self.high - self.low) / count))
            return [10.0**e for e in range(math.ceil(self.low), math.floor(self.high) + 1, stride)]
        low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
        rough = (high - low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def label(value: float) -> str:
    """A tick's text."""
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        power = f"10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
        return (power if mantissa == "1" else f"{mantissa}·{power}").replace("-", "−")
    # From ten thousand on four digits would be "2e+04".
    return f"{value:.4g}".replace("-", "−") if abs(value) < 9999.5 else f"{value:.0f}".replace("-", "−")


def interval_chart(
    seeds: Numbers,
    effect: float,
    low: float,
    high: float,
    lines: Sequence[tuple[float, str]],
    description: str,
    holds: Region | None = None,
) -> str:
    """Seeds as points, their mean with its interval, the lines that decide, and the side where the claim holds."""
    width, left, right = 400, 12, 388
    axis = Axis([*seeds, effect, low, high, *(value for value, _ in lines)], left, right)
    # Two lines close together: the second's name goes a row higher.
    places = [axis(value) for value, _ in lines]
    stacked = len(places) == 2 and abs(places[1] - places[0]) < 110
    top = 14 if stacked else 0
    height = 92 + top
    parts = [_open(width, height, description), _holding(axis, holds, top + 14, 56)]
    for i, (x, (_, name)) in enumerate(zip(places, lines, strict=True)):
        anchor, shift = ("start", 4) if x < width / 2 else ("end", -4)
        y = 11 if i or not stacked else 11 + top
        parts.append(f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{66 + top}"/>')
        parts.append(f'<text class="note" x="{x + shift:.1f}" y="{y}" text-anchor="{anchor}">{escape(name)}</text>')
    for i, value in enumerate(seeds):
        # A fixed scatter: the same record always gives the same picture.
        y = top + 28 + 9 * math.sin(2.4 * i)
        point = f'<circle class="seed" cx="{axis(value):.1f}" cy="{y:.1f}" r="2.6">'
        parts.append(f"{point}<title>seed {i}: {value:.4g}</title></circle>")
    y = top + 52
    parts.append(f'<line class="span" x1="{axis(low):.1f}" x2="{axis(high):.1f}" y1="{y}" y2="{y}"/>')
    parts.append(f'<circle class="mean" cx="{axis(effect):.1f}" cy="{y}" r="5"/>')
    parts.append(_x_axis(axis, top + 70, left, right))
    return "".join([*parts, "</svg>"])


def strip(effect: float, low: float, high: float, lines: Numbers, holds: Region | None, description: str) -> str:
    """An interval and the line it is judged by, small enough for a row of a table."""
    axis = Axis([effect, low, high, *lines], 4, 116, pad=0.12)
    parts = [
        f'<svg class="strip" viewBox="0 0 120 20" role="img" aria-label="{escape(description)}">',
        _holding(axis, holds, 2, 16),
    ]
    for value in lines:
        parts.append(f'<line class="rule" x1="{axis(value):.1f}" x2="{axis(value):.1f}" y1="2" y2="18"/>')
    parts.append(f'<line class="span" x1="{axis(low):.1f}" x2="{axis(high):.1f}" y1="10" y2="10"/>')
    parts.append(f'<circle class="mean" cx="{axis(effect):.1f}" cy="10" r="3.6"/></svg>')
    return "".join(parts)


def _holding(axis: Axis, holds: Region | None, y: float, height: float) -> str:
    """The side of the axis on which the claim is right, shaded."""
    if holds is None:
        return ""
    first, last = (axis(value) if math.isfinite(value) else (axis.start, axis.end)[value > 0] for value in holds)
    return f'<rect class="holds" x="{first:.1f}" y="{y}" width="{max(0.0, last - first):.1f}" height="{height}"/>'


Box = tuple[float, float, float, float]


def treemap(sizes: Numbers, width: float, height: float) -> list[Box]:
    """Rectangles (x, y, width, height) whose areas are as the sizes, largest first and near to squares.

    Rows are filled along the shorter side for as long as that makes the worst rectangle squarer (Bruls, Huizing &
    van Wijk 2000).

    >>> treemap([1, 1], 2, 1)
    [(0.0, 0.0, 1.0, 1.0), (1.0, 0.0, 1.0, 1.0)]
    """
    scale = width * height / (sum(sizes) or 1.0)
    left = [size * scale for size in sizes]
    x, y, boxes = 0.0, 0.0, []
    while left:
        side = min(width, height)
        row = left[:1]
        while len(row) < len(left) and _worst(left[: len(row) + 1], side) <= _worst(row, side):
            row = left[: len(row) + 1]
        thick = sum(row) / side if side else 0.0
        along = 0.0
        for area in row:
            long = area / thick if thick else 0.0
            boxes.append((x, y + along, thick, long) if width >= height else (x + along, y, long, thick))
            along += long
        if width >= height:
            x, width = x + thick, width - thick
        else:
            y, height = y + thick, height - thick
        left = left[len(row) :]
    return boxes


@dataclass(frozen=True)
class Tile:
    """A field of the map: its name, how many papers it has, and where it leads."""

    name: str
    count: int
    href: str


def topic_map(tiles: Sequence[Tile], width: float, height: float, kind: str) -> str:
    """Fields as large as their papers are many, each a link. ``kind``: the class by which a style sheet picks one."""
    tiles = sorted(tiles, key=lambda tile: -tile.count)
    most = max((tile.count for tile in tiles), default=1)
    parts = [f'<svg class="map {kind}" viewBox="0 0 {width:g} {height:g}" role="group" aria-label="Map of the topics">']
    for tile, (x, y, wide, high) in zip(tiles, treemap([t.count for t in tiles], width, height), strict=True):
        shade = 0.1 + 0.25 * tile.count / most
        label_text = f"{tile.name}, {plural('paper', tile.count)}"
        parts.append(
            f'<a href="{escape(tile.href)}" aria-label="{escape(label_text)}"><title>{escape(label_text)}</title>'
        )
        box = f'x="{x + 1.5:.1f}" y="{y + 1.5:.1f}" width="{max(0.0, wide - 3):.1f}" height="{max(0.0, high - 3):.1f}"'
        parts.append(f'<rect class="tile" {box} rx="5" fill-opacity="{shade:.2f}"/>')
        for look, x_shift, y_shift, line in _lettering(tile, wide, high):
            place = f'x="{x + x_shift:.1f}" y="{y + y_shift:.1f}"'
            turn = f' transform="rotate(90 {x + x_shift:.1f} {y + y_shift:.1f})"' if look.endswith("turned") else ""
            parts.append(f'<text class="{look}" {place}{turn}>{escape(line)}</text>')
        parts.append("</a>")
    return "".join([*parts, "</svg>"])


def _lettering(tile: Tile, wide: float, high: float) -> list[tuple[str, float, float, str]]:
    """(class, x, y, text) of a tile's lines: in full, smaller, turned, or cut, whatever fits first."""
    words = tile.name.replace("-", " ").split()
    for letter, step, look in ((7.7, 16, "place"), (6.6, 13, "place small"), (5.4, 11, "place tiny")):
        lines = _fitted(words, wide - 14, letter)
        if lines and step * len(lines) + 8 <= high:
            rows = [(look, line) for line in lines]
            if step * (len(lines) + 1) + 8 <= high:
                rows.append(("count", str(tile.count)))
            return [(kind, 9, 3 + step * (i + 1), line) for i, (kind, line) in enumerate(rows)]
    for letter, look in ((6.6, "place small turned"), (5.4, "place tiny turned")):
        if letter * len(" ".join(words)) <= high - 14 and wide >= 2 * letter + 4:
            return [(look, wide / 2 - letter / 2, 8, " ".join(words))]
    room = int((wide - 14) / 7.6) - 1
    return [("place small", 7, 16, f"{words[0][:room]}…")] if room >= 3 and high >= 22 else []


def _fitted(words: Sequence[str], width: float, letter: float) -> list[str]:
    """Words in lines of a width, a letter so wide; nothing where one of them is too long."""
    lines: list[str] = []
    for word in words:
        if letter * len(word) > width:
            return []
        if lines and letter * (len(lines[-1]) + 1 + len(word)) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _worst(row: Numbers, side: float) -> float:
    total = sum(row)
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) for area in row)


def curve_chart(
    series: Sequence[Series], x_label: str, y_label: str, description: str, log_x: bool = False, log_y: bool = False
) -> str:
    """A line a series with its band, and a legend beneath."""
    width, height, left, right, top, bottom = 460, 300, 58, 438, 12, 250
    x_axis = Axis([v for s in series for v in s.x], left, right, log_x, pad=0.0)
    y_axis = Axis([v for s in series for v in (*s.middle, *s.low, *s.high)], bottom, top, log_y)
    parts = [_open(width, height, description)]
    for tick in y_axis.ticks():
        y = y_axis(tick)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label(tick)}</text>')
    for one in series:
        upper = [f"{x_axis(x):.1f},{y_axis(y):.1f}" for x, y in zip(one.x, one.high, strict=True)]
        lower = [f"{x_axis(x):.1f},{y_axis(y):.1f}" for x, y in zip(one.x, one.low, strict=True)]
        line = [f"{x_axis(x):.1f},{y_axis(y):.1f}" for x, y in zip(one.x, one.middle, strict=True)]
        parts.append(f'<polygon class="band {one.look}" points="{" ".join([*upper, *reversed(lower)])}"/>')
        parts.append(
            f'<polyline class="line {one.look}" points="{" ".join(line)}"><title>{escape(one.label)}</title></polyline>'
        )
    parts.append(_x_axis(x_axis, bottom, left, right))
    parts.append(
        f'<text class="note" x="{(left + right) / 2}" y="{height - 8}" text-anchor="middle">{escape(x_label)}</text>'
    )
    turned = f'text-anchor="middle" transform="translate(12 {(top + bottom) / 2}) rotate(-90)"'
    parts.append(f'<text class="note" {turned}>{escape(y_label)}</text>')
    parts.append("</svg>")
    legend = "".join(f'<li class="{one.look}">{escape(one.label)}</li>' for one in series)
    return f'{"".join(parts)}<ul class="legend">{legend}</ul>'


# A film holds its last frame for so many, then begins anew.
HELD = 12


def film_chart(scene: Mapping[str, Any], description: str, seconds: float) -> str:
    """A scene that moves by itself (SMIL): strokes in the colours of the theme; ``seconds`` a frame.

    What moves has the class ``moving``: where a reader wants no motion, the script stops it at its end, and without
    the script a style sheet leaves what is at rest, which has the whole way.
    """
    width, height, frames = scene["width"], scene["height"], scene["frames"]
    clock = f'dur="{(frames + HELD) * seconds:.2f}s" repeatCount="indefinite"'
    parts = [
        f'<svg class="film" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(description)}">'
        f"<desc>{escape(description)}</desc>"
    ]
    parts += [_stroke(stroke, clock) for stroke in scene["strokes"]]
    return "".join([*parts, "</svg>"])


def _stroke(stroke: Mapping[str, Any], clock: str) -> str:
    """A stroke as an element, with an animation of what changes."""
    rows, wide, shown = stroke["points"], stroke["width"], stroke.get("shown")
    if len(rows[0]) > 2:
        tag, size = "polyline", f'stroke-width="{wide}"'
        tracks = {"points": [" ".join(map(str, row)) for row in rows]}
    elif stroke.get("square"):
        tag, size = "rect", f'width="{wide}" height="{wide}" rx="{wide // 8}"'
        tracks = {"x": [row[0] - wide // 2 for row in rows], "y": [row[1] - wide // 2 for row in rows]}
    else:
        tag, size = "circle", f'r="{wide / 2:g}"'
        tracks = {"cx": [row[0] for row in rows], "cy": [row[1] for row in rows]}
    moves = {name: track for name, track in tracks.items() if len(set(track)) > 1}
    at = " ".join(f'{name}="{track[0]}"' for name, track in tracks.items())
    parts = [_animation(name, track, clock, "linear") for name, track in moves.items()]
    if shown is not None:
        at += f' opacity="{shown[0]}"'
        parts.append(_animation("opacity", list(shown), clock, "discrete"))
    inside = "".join(parts)
    look = f"stroke-{stroke['look']}{' moving' if inside else ''}{' path' if tag == 'polyline' else ''}"
    return f'<{tag} class="{look}" {size} {at}>{inside}</{tag}>' if inside else f'<{tag} class="{look}" {size} {at}/>'


def _animation(name: str, track: Sequence[Any], clock: str, mode: str) -> str:
    values = ";".join(map(str, [*track, *[track[-1]] * HELD]))
    return f'<animate attributeName="{name}" calcMode="{mode}" values="{values}" {clock}/>'


def _open(width: int, height: int, description: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(description)}">'
        f"<desc>{escape(description)}</desc>"
    )


def _x_axis(axis: Axis, y: float, left: float, right: float) -> str:
    parts = [f'<line class="axis" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>']
    for tick in axis.ticks():
        x = axis(tick)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 4}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{y + 17}" text-anchor="middle">{label(tick)}</text>')
    return "".join(parts)
