"""What happens in an environment as a drawing that moves; ``scene.register`` adds environments of one's own."""

import functools
import math
from typing import Any

import numpy as np

from laureate.loops import Scene, Stroke
from laureate.problems.environments import Chain, NoisyTV
from laureate.problems.seen_worlds import Pendulum, PixelRoom
from laureate.problems.small_worlds import Hearth, PointMass, Room
from laureate.problems.two_bodies import TwoBodies

__all__ = ["scene"]


@functools.singledispatch
def scene(environment: Any, states: Any) -> Scene:
    """States of an episode, with a leading axis of time, as a drawing.

    environment: one of ours. For one's own class: ``@scene.register`` a function from environment and states.

    >>> from laureate.problems.environments import ChainState
    >>> found = scene(Chain(4), ChainState(np.array([0, 1, 2]), np.array([0, 1, 2])))
    >>> found.width, len(found.strokes[-1].points)
    (4.0, 3)
    """
    kind = type(environment).__name__
    said = f"scene.environment must be one that can be drawn; got {kind}. Register a function: @scene.register({kind})."
    raise TypeError(said)


def _along(places: np.ndarray, top: float, height: float) -> tuple[Stroke, Stroke]:
    """Where something was, with time running downwards, and where it is on that line now."""
    down = top + height * np.arange(len(places)) / max(1, len(places) - 1)
    line = np.stack([places, down], axis=-1)
    return Stroke(line[None], height / 60, "trace"), Stroke(line[:, None], height / 18)


def _dots(places: np.ndarray, width: float, look: Any) -> tuple[Stroke, ...]:
    return tuple(Stroke(place[None, None], width, look, True) for place in places)


@scene.register
def _chain(environment: Chain, states: Any) -> Scene:
    """The states in a row; beneath it the way, with time downwards."""
    size = float(environment.size)
    at = np.asarray(states.place) + 0.5
    row = np.stack([np.arange(size) + 0.5, np.full(environment.size, 0.7)], axis=-1)
    way = _along(at, 1.8, 0.4 * size)
    cells = (*_dots(row[:-1], 0.8, "ground"), *_dots(row[-1:], 0.8, "goal"))
    now = np.stack([at, np.full(len(at), 0.7)], axis=-1)[:, None]
    return Scene(size, 0.4 * size + 2.4, (*cells, *way, Stroke(now, 0.8, "body", True)))


@scene.register
def _mass(environment: PointMass, states: Any) -> Scene:
    """The line with its middle; beneath it the way, with time downwards."""
    del environment
    at = np.asarray(states.place) + 1.7
    line, middle = np.array([[[0.2, 0.25], [3.2, 0.25]]]), np.array([[[1.7, 0.1], [1.7, 1.75]]])
    now = np.stack([at, np.full(len(at), 0.25)], axis=-1)[:, None]
    return Scene(
        3.4, 1.9, (Stroke(middle, 0.03, "goal"), Stroke(line, 0.04, "wall"), *_along(at, 0.5, 1.25), Stroke(now, 0.22))
    )


def _grid(side: int, places: Any, marked: tuple[tuple[float, float], ...] = ()) -> tuple[Stroke, ...]:
    """Cells, those that are marked, the way through their middles, and who walks it; rows are downwards."""
    rows, columns = np.divmod(np.arange(side**2), side)
    cells = _dots(np.stack([columns, rows], axis=-1) + 0.5, 0.92, "ground")
    goals = _dots(np.array(marked).reshape(-1, 2)[:, ::-1] + 0.5, 0.92, "goal")
    way = np.asarray(places, float)[:, ::-1] + 0.5
    return (*cells, *goals, Stroke(way[None], 0.12, "trace"), Stroke(way[:, None], 0.5))


@scene.register
def _room(environment: Room, states: Any) -> Scene:
    """The room from above."""
    goal = divmod(int(environment.goal), environment.side)
    return Scene(float(environment.side), float(environment.side), _grid(environment.side, states.place, (goal,)))


@scene.register
def _hearth(environment: Hearth, states: Any) -> Scene:
    """The room from above, with its warm cell."""
    warm = divmod(int(environment.warm), environment.side)
    return Scene(float(environment.side), float(environment.side), _grid(environment.side, states.place, (warm,)))


@scene.register
def _pixel_room(environment: PixelRoom, states: Any) -> Scene:
    """As the room."""
    return _room(environment.room, states)


@scene.register
def _television(environment: NoisyTV, states: Any) -> Scene:
    """The room from above, and beside its last cell the screen; dark pixels are those of a screen that is off."""
    side, across = environment.side, math.isqrt(environment.pixels - 1) + 1
    size = min(2.0, side - 0.2) / across
    rows, columns = np.divmod(np.arange(environment.pixels), across)
    left, top = side + 0.4, side - 0.1 - size * across
    screen = np.asarray(states.screen)
    places = np.stack([left + size * (columns + 0.5), top + size * (rows + 0.5)], axis=-1)
    dark = _dots(places, 0.9 * size, "wall")
    lit = [
        Stroke(place[None, None], 0.9 * size, "lit", True, screen[:, i] > 0)
        for i, place in enumerate(places)
        if (screen[:, i] > 0).any()
    ]
    marked = ((side - 1.0, side - 1.0),)
    return Scene(left + size * across + 0.1, float(side), (*_grid(side, states.place, marked), *dark, *lit))


@scene.register
def _pendulum(environment: Pendulum, states: Any) -> Scene:
    """The rod and its pivot; upright is where it shall be."""
    del environment
    angle = np.asarray(states.angle)
    middle = np.array([1.2, 1.2])
    end = middle + np.stack([np.sin(angle), -np.cos(angle)], axis=-1)
    rod = np.stack([np.broadcast_to(middle, end.shape), end], axis=1)
    wished = np.stack([middle, middle + np.array([0.0, -1.0])])[None]
    return Scene(2.4, 2.4, (Stroke(wished, 0.2, "ghost"), Stroke(end[None], 0.04, "trace"), Stroke(rod, 0.14)))


@scene.register
def _arm(environment: TwoBodies, states: Any) -> Scene:
    """Both links, the way of the hand, and where the policy of Y wants them."""
    del environment

    def links(angles: np.ndarray) -> np.ndarray:
        total = np.cumsum(angles, axis=-1)
        hands = np.cumsum(0.6 * np.stack([np.sin(total), np.cos(total)], axis=-1), axis=-2)
        return np.concatenate([np.zeros_like(hands[..., :1, :]), hands], axis=-2) + 1.3

    now, wished = links(np.asarray(states)[..., :2]), links(np.array([[0.8, -0.6]]))
    way, pivot = Stroke(now[None, :, -1], 0.03, "trace"), Stroke(now[:1, :1], 0.22, "wall")
    return Scene(2.6, 2.6, (Stroke(wished, 0.14, "ghost"), way, Stroke(now, 0.1), pivot))
