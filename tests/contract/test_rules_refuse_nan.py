"""No rule about a number is met by what is none: every one that an object asks where it is made is asked with nan."""

import dataclasses
import sys

import jax
import numpy as np
import pytest
import test_decentralized_contract as decentralized
import test_pde_contract as pde
import test_recovery_contract as recovery
import test_representation_contract as representation

from laureate import _core
from laureate.decentralized import Network, TopK, random
from laureate.pde import ALS, SALSA, Fourier, Hermite, Polynomials, Splines
from laureate.recovery import BernoulliGaussian, SupportSchedule, UnrolledCoherence
from laureate.representation import LinearDynamics, ModeDynamics
from laureate.representation.views import Brightness, Noise


def again(made):
    """The same once more, and what it is made of."""
    parts = [part for part in vars(made).values() if dataclasses.is_dataclass(part) and hasattr(part, "__check_init__")]
    return dataclasses.replace(made), [dataclasses.replace(part) for part in parts if type(part).__name__ != "Gossip"]


MADE = {
    "recovery": lambda: (
        [recovery.made(name) for name in recovery.SOLVERS],
        BernoulliGaussian(4, density=0.2),
        SupportSchedule(),
        UnrolledCoherence(np.eye(3)),
    ),
    "pde": lambda: (
        [again(make(0.01)) for make in pde.ROWS.values()],
        *(ALS(), SALSA(), Hermite(), Polynomials(-1.0, 1.0, 2), Fourier(0, 1, 1), Splines(0, 1, 2)),
    ),
    "decentralized": lambda: (
        [make(0.1) for make in decentralized.ROWS.values()],
        *(Network(), TopK(0.5), random(3, 0.9)),
    ),
    "representation": lambda: (
        [again(row[0]) for row in (*representation.LOSSES.values(), *representation.TRAINERS.values())],
        *(LinearDynamics(np.eye(2), np.eye(2)), ModeDynamics(variance=0.1), Noise(), Brightness()),
    ),
}


@pytest.mark.parametrize("area", MADE)
def test_no_rule_about_a_number_is_met_by_nan(area, monkeypatch):
    require, asked, met = _core.require, set(), []

    def noted(owner, field, rule, value, holds, remedy=""):
        require(owner, field, rule, value, holds, remedy)
        number = isinstance(value, int | float | np.number | np.ndarray | jax.Array) and not isinstance(value, bool)
        if number and np.asarray(value).dtype.kind in "fiu":
            asked.add((owner, field))
            nan = np.full(np.shape(value), np.nan) if np.ndim(value) else float("nan")
            met.extend([f"{owner}.{field} must be {rule}"] * bool(np.all(holds(nan))))

    for name, module in list(sys.modules.items()):
        if name.startswith("laureate.") and getattr(module, "require", None) is require:
            monkeypatch.setattr(module, "require", noted)
    with jax.enable_x64(area == "pde"):
        assert MADE[area]()
    assert not met
    assert len(asked) >= 10
