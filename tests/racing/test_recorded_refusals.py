"""What tracks say of problems that they cannot take, word by word: each part of a good one made wrong in turn."""

import numpy as np
import pytest
from test_track_facts import FACTS

from laureate.lab.errors import UserError


def wrongs(value):
    """Other things of the same name: too few, not finite, all alike, of another kind."""
    yield "nothing", 0
    if isinstance(value, np.ndarray | list | range):
        numbers = np.asarray(value)
        yield "one", numbers[:1]
        yield "flat", numbers.ravel()[:50]
        yield "square", np.ones((30, 30))
        if numbers.dtype.kind == "f":
            yield "lost", np.full_like(numbers, np.nan)
            yield "large", np.full_like(numbers, 3.0)
        else:
            yield "negative", -1 - numbers
    elif isinstance(value, int | float):
        yield "negative", -value
        yield "half", 0.5
        yield "many", 10**9


DATA = [name for name, (_, problem, _) in FACTS.items() if not any(map(callable, problem.values()))]


@pytest.mark.parametrize("name", DATA)
def test_what_a_track_does_not_take(recorded, name):
    track, problem, _ = FACTS[name]
    for part, value in problem.items():
        if isinstance(value, dict):
            continue
        for how, wrong in wrongs(value):
            try:
                track.facts(problem | {part: wrong})
            except UserError as error:
                said = str(error)
            except (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
                said = f"no words of ours: {type(error).__name__}"
            else:
                said = "taken"
            recorded(f"{part}: {how}", said)
