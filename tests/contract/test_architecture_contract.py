"""A row for every rule of selection; ``laureate.testing`` has the checks."""

import pytest

from laureate.architecture import MagnitudeSelection, PerturbationSelection, RandomSelection, Space
from laureate.testing import check_architecture_selection

SPACE = Space([("none", "skip", "conv3"), ("skip", "conv3"), ("none", "conv3", "avg3")])
RULES = {
    "perturbation": PerturbationSelection(SPACE),
    "magnitude": MagnitudeSelection(SPACE, exclude=("none",)),
    "random": RandomSelection(SPACE, order="reverse"),
}
TYPES = {type(rule) for rule in RULES.values()}


@pytest.mark.parametrize("name", RULES)
def test_selection(name):
    assert check_architecture_selection(RULES[name])
