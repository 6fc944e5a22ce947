"""Scenes of coloured shapes with phrases that speak of some of them, and the exact masks of those; drawn, never loaded.

The grammar, by kind:

=========  ============================================  =======================================================
attribute  the COLOUR SHAPE                              objects of that colour and shape
place      the COLOUR one on the SIDE                    of that colour, on that side of the middle
relation   the SHAPE RELATION a COLOUR SHAPE             of the first shape that some object of the second is so to
size       the SIZE SHAPE                                of that shape, small or large
negation   the SHAPE that is not COLOUR                  of that shape, of any other colour
absent     the COLOUR SHAPE                              nothing: no such object is in the scene
=========  ============================================  =======================================================

SIDE: left, right, top, bottom. RELATION: left of, right of, above, below. All objects that match are meant.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from laureate._core import require

__all__ = ["COLOURS", "KINDS", "SHAPES", "Drawn", "Objects", "Pool", "Scenes", "evaluate", "render", "shape_area"]

COLOURS = {"red": (1.0, 0.1, 0.1), "green": (0.1, 0.9, 0.1), "blue": (0.15, 0.25, 1.0), "yellow": (0.95, 0.9, 0.1)}
SHAPES = ("square", "cross", "triangle")
KINDS = ("attribute", "place", "relation", "size", "negation", "absent")
SIDES = {"left": (1, -1), "right": (1, 1), "top": (0, -1), "bottom": (0, 1)}  # axis, sign
RELATIONS = {"left of": (1, -1), "right of": (1, 1), "above": (0, -1), "below": (0, 1)}
WORDS = {*COLOURS, *SHAPES, *SIDES, "the", "one", "on", "of", "above", "below", "a", "that", "is", "not"}
WORDS |= {"small", "large"}
SMALL, LARGE = (0.27, 0.32), (0.37, 0.43)  # radii, as shares of a cell


class Objects(NamedTuple):
    """The objects of scenes, [n, k] each.

    colour, shape: places in ``COLOURS`` and ``SHAPES``. large: or small. radius: in pixels. centre: [n, k, 2], (y, x)
    in pixels. brightness: of the colour.
    """

    colour: np.ndarray
    shape: np.ndarray
    large: np.ndarray
    radius: np.ndarray
    centre: np.ndarray
    brightness: np.ndarray


class Drawn(NamedTuple):
    """What a problem draws.

    images: [n, h, w, 3] in [0, 1]. masks: [n, h, w], of what the phrase means. phrases: one an image. kinds: [n], of
    the phrases, places in ``KINDS``. objects: what the images show; None where that is not known.
    """

    images: np.ndarray
    masks: np.ndarray
    phrases: list[str]
    kinds: np.ndarray
    objects: Objects | None = None


class Scenes:
    """Objects on a jittered grid of cells, one a cell, and phrases of some kinds in turn.

    size: pixels a side, a multiple of grid. grid: cells a side; grid² objects.
    kinds: names from the grammar, by spaces.
    held_out: so many pairs of colour and shape are in no scene, but for those of ``draw_novel``; 0, 2 or 3.
    noise: standard deviation, added to every channel before clipping to [0, 1].

    >>> import jax
    >>> drawn = Scenes(size=16).draw(jax.random.key(0), 6)
    >>> drawn.images.shape, drawn.masks.dtype.name, drawn.phrases[0].split()[0]
    ((6, 16, 16, 3), 'bool', 'the')
    """

    def __init__(
        self,
        size: int = 16,
        grid: int = 2,
        kinds: str = "attribute place relation",
        held_out: int = 0,
        noise: float = 0.1,
    ):
        require("Scenes", "grid", ">= 2", grid, lambda g: g >= 2)
        rule = f"a multiple of grid {grid} with cells of at least 6 pixels"
        require("Scenes", "size", rule, size, lambda s: s % grid == 0 and s // grid >= 6)
        self.kinds = tuple(kinds.split())
        require("Scenes", "kinds", f"among {', '.join(KINDS)}", kinds, lambda k: set() < set(k.split()) <= set(KINDS))
        require("Scenes", "held_out", "0, 2 or 3", held_out, lambda h: h in (0, 2, 3))
        require("Scenes", "noise", ">= 0", noise, lambda s: s >= 0)
        self.size, self.grid, self.noise = size, grid, noise
        # Pairs by number, colour · 3 + shape: the first colours and shapes in order are held out; the same colours and
        # the same shapes, paired otherwise, are those that ``draw_familiar`` names.
        self.novel = [colour * len(SHAPES) + colour for colour in range(held_out)]
        self.familiar = [colour * len(SHAPES) + (colour + 1) % held_out for colour in range(held_out)]
        self.words = tuple(sorted(WORDS))

    def draw(self, key: Key[Array, ""], num: int) -> Drawn:
        """So many scenes without pairs that are held out, with a phrase each; the kinds take turns."""
        return self._draw(key, num, self.kinds)

    def draw_novel(self, key: Key[Array, ""], num: int) -> Drawn:
        """Scenes in which one object is of a pair that is held out, and the phrase names it by colour and shape."""
        return self._draw(key, num, ("attribute",), self.novel)

    def draw_familiar(self, key: Key[Array, ""], num: int) -> Drawn:
        """The scenes of ``draw_novel`` with the same key, but for that object: its pair is one that ``draw`` draws.

        The pairs have the same colours and shapes as those held out, as often: what differs is that they were seen.
        """
        return self._draw(key, num, ("attribute",), self.familiar)

    def _draw(self, key: Key[Array, ""], num: int, kinds: tuple[str, ...], pairs: list[int] | None = None) -> Drawn:
        require("Scenes", "num", ">= 1", num, lambda n: n >= 1)
        generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        # Where an object is named by its pair, no other object has a pair that may be named.
        objects = self._objects(generator, num, self.novel if pairs is None else [*self.novel, *self.familiar])
        named = generator.integers(objects.colour.shape[1], size=num)
        if pairs is not None:
            require("Scenes", "held_out", ">= 2 to draw novel scenes", len(pairs), lambda n: n >= 2)
            drawn = np.array(pairs)[generator.integers(len(pairs), size=num)]
            objects.colour[np.arange(num), named], objects.shape[np.arange(num), named] = np.divmod(drawn, len(SHAPES))
        numbers = np.arange(num) % len(kinds)
        self._leave_room(generator, objects, np.flatnonzero(np.array(kinds)[numbers] == "absent"))
        places = [KINDS.index(kind) for kind in kinds]
        said = [
            self._say(generator, kinds[number], Objects(*(leaf[row] for leaf in objects)), first)
            for row, (number, first) in enumerate(zip(numbers, named, strict=True))
        ]
        matches = np.stack([match for _, match in said])
        images, each = render(objects, self.size)
        images = np.clip(
            images + self.noise * generator.standard_normal(images.shape, np.float32), 0, 1, dtype=np.float32
        )
        masks = np.any(each & matches[:, :, None, None], axis=1)
        return Drawn(images, np.asarray(masks), [phrase for phrase, _ in said], np.array(places)[numbers], objects)

    def _objects(self, generator: np.random.Generator, num: int, without: list[int]) -> Objects:
        count, cell = self.grid**2, self.size / self.grid
        allowed = [p for p in range(len(COLOURS) * len(SHAPES)) if p not in without]
        colour, shape = np.divmod(generator.choice(allowed, size=(num, count)), len(SHAPES))
        large = generator.random((num, count)) < 0.5
        low, high = (np.where(large, LARGE[end], SMALL[end]) for end in (0, 1))
        radius = cell * generator.uniform(low, high)
        # Within the cell, and so near its middle that objects of one column are nearer in x than those of two.
        room = np.minimum(0.2 * cell, cell / 2 - radius)[..., None]
        middle = (np.stack(np.divmod(np.arange(count), self.grid), axis=-1) + 0.5) * cell
        centre = middle + room * generator.uniform(-1, 1, size=(num, count, 2))
        return Objects(colour, shape, large, radius, centre, generator.uniform(0.7, 1.0, size=(num, count)))

    def _leave_room(self, generator: np.random.Generator, objects: Objects, rows: np.ndarray) -> None:
        """Draw the objects of scenes that show every pair there is anew, without one pair: something must be absent."""
        allowed = [p for p in range(len(COLOURS) * len(SHAPES)) if p not in self.novel]
        for row in rows:
            if set(allowed) <= set((objects.colour[row] * len(SHAPES) + objects.shape[row]).tolist()):
                others = np.delete(allowed, generator.integers(len(allowed)))
                pairs = generator.choice(others, size=objects.colour.shape[1])
                objects.colour[row], objects.shape[row] = np.divmod(pairs, len(SHAPES))

    def _say(self, generator: np.random.Generator, kind: str, scene: Objects, first: int) -> tuple[str, np.ndarray]:
        """A phrase of this kind that speaks of the object ``first`` if it can, and which objects it speaks of."""
        colours = list(COLOURS)
        cell = self.size / self.grid
        colour, shape = colours[scene.colour[first]], SHAPES[scene.shape[first]]
        same_colour, same_shape = scene.colour == scene.colour[first], scene.shape == scene.shape[first]
        if kind == "attribute":
            return f"the {colour} {shape}", same_colour & same_shape
        if kind == "size":
            word = "large" if scene.large[first] else "small"
            return f"the {word} {shape}", same_shape & (scene.large == scene.large[first])
        if kind == "negation":
            other = generator.choice([c for c in range(len(colours)) if c != scene.colour[first]])
            return f"the {shape} that is not {colours[other]}", same_shape & (scene.colour != other)
        if kind == "absent":
            present = set((scene.colour * len(SHAPES) + scene.shape).tolist()) | set(self.novel)
            pair = generator.choice([p for p in range(len(COLOURS) * len(SHAPES)) if p not in present])
            return f"the {colours[pair // len(SHAPES)]} {SHAPES[pair % len(SHAPES)]}", np.zeros(len(same_shape), bool)
        if kind == "place":
            beside = {
                side: sign * (scene.centre[:, axis] - self.size / 2) > cell / 4 for side, (axis, sign) in SIDES.items()
            }
            if not any(where[first] for where in beside.values()):  # in the middle of an odd grid
                return self._say(generator, kind, scene, 0)
            side = generator.choice([side for side, where in beside.items() if where[first]])
            return f"the {colour} one on the {side}", same_colour & beside[side]
        # so[relation][i, j]: i is so to j
        apart = scene.centre[:, None] - scene.centre[None]
        so = {word: sign * apart[..., axis] > cell / 2 for word, (axis, sign) in RELATIONS.items()}
        pairs = [(word, other) for word, where in so.items() for other in np.flatnonzero(where[first])]
        word, other = pairs[generator.integers(len(pairs))]
        anchors = (scene.colour == scene.colour[other]) & (scene.shape == scene.shape[other])
        phrase = f"the {shape} {word} a {colours[scene.colour[other]]} {SHAPES[scene.shape[other]]}"
        return phrase, same_shape & (so[word] & anchors[None]).any(1)


class Pool:
    """Images, masks and phrases of one's own as a problem: every seed draws from them in another order.

    images: [n, h, w, 3], floats in [0, 1]. masks: [n, h, w], of 0 and 1. phrases: one an image. What is drawn is split
    into training, validation and test by the trial: give one phrase an image, or the same image may be in two of them.

    >>> import jax
    >>> pool = Pool(np.zeros((3, 8, 8, 3)), np.ones((3, 8, 8)), ["all of it"] * 3)
    >>> len(pool.draw(jax.random.key(0), 10).phrases)
    3
    """

    def __init__(self, images: Any, masks: Any, phrases: list[str]):
        self.images, self.masks = np.asarray(images, np.float32), np.asarray(masks, bool)
        self.phrases = list(phrases)
        require("Pool", "images", "[n, height, width, 3]", self.images.shape, lambda s: len(s) == 4 and s[3] == 3)
        require("Pool", "masks", f"{self.images.shape[:3]}", self.masks.shape, lambda s: s == self.images.shape[:3])
        require("Pool", "phrases", f"{len(self.images)}", len(self.phrases), lambda n: n == len(self.images))

    def draw(self, key: Key[Array, ""], num: int) -> Drawn:
        """At most so many, none twice."""
        rows = np.random.default_rng(np.asarray(jax.random.key_data(key))).permutation(len(self.images))[:num]
        kinds = np.zeros(len(rows), int)
        return Drawn(self.images[rows], self.masks[rows], [self.phrases[row] for row in rows], kinds)


def render(objects: Objects, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, size, size, 3] without noise, and the pixels of every object, [n, k, size, size]."""
    pixels = np.arange(size, dtype=np.float32) + 0.5
    centre = objects.centre.astype(np.float32)
    y = pixels[:, None] - centre[..., 0, None, None]
    x = pixels[None, :] - centre[..., 1, None, None]
    radius = objects.radius.astype(np.float32)[..., None, None]
    far, near = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
    forms = {
        "square": far <= 0.85 * radius,
        "cross": (far <= radius) & (near <= radius / 3),
        "triangle": (np.abs(y) <= radius) & (np.abs(x) <= (y + radius) / 2),
    }
    chosen = objects.shape[..., None, None]
    each = np.select([chosen == number for number in range(len(SHAPES))], [forms[name] for name in SHAPES], False)
    tint = np.array(list(COLOURS.values()))[objects.colour] * objects.brightness[..., None]
    count, many = objects.colour.shape
    colours = each.reshape(count, many, size * size).swapaxes(1, 2).astype(np.float32) @ tint.astype(np.float32)
    return colours.reshape(count, size, size, 3), each


def shape_area(shape: int, radius: float) -> float:
    """The area of a shape in the plane, in pixels."""
    return {"square": 1.7**2, "cross": 20 / 9, "triangle": 2.0}[SHAPES[shape]] * radius**2


def evaluate(phrase: str, scene: Objects, size: int, grid: int) -> np.ndarray:
    """Which objects of one scene a phrase speaks of, [k], from its text alone; the kind need not be given."""
    words = phrase.split()
    colours = list(COLOURS)
    cell = size / grid
    require("evaluate", "phrase", "of the grammar", phrase, lambda _: words[0] == "the" and len(words) >= 3)

    def are(word: str) -> np.ndarray:
        if word in colours:
            return scene.colour == colours.index(word)
        if word in SHAPES:
            return scene.shape == SHAPES.index(word)
        return scene.large == {"large": True, "small": False}[word]

    if "not" in words:
        return are(words[1]) & ~are(words[-1])
    if "one" in words:
        axis, sign = SIDES[words[-1]]
        return are(words[1]) & (sign * (scene.centre[:, axis] - size / 2) > cell / 4)
    if "a" in words:
        place = words.index("a")
        axis, sign = RELATIONS[" ".join(words[2:place])]
        anchors = scene.centre[are(words[-1]) & are(words[-2]), axis]
        ahead = [(sign * (mine - anchors) > cell / 2).any() for mine in scene.centre[:, axis]]
        return are(words[1]) & np.array(ahead, bool)
    return are(words[1]) & are(words[2])
