"""A row for every solver of sparse recovery; ``laureate.testing`` has the checks."""

import numpy as np
import pytest
from row_types import of_rows

from laureate.recovery import (
    ALISTA,
    FISTA,
    ISTA,
    LISTA,
    LISTACP,
    ConvALISTA,
    ConvLISTA,
    HyperLISTA,
    TiLISTA,
    analytic_conv_weight,
)
from laureate.testing import check_recovery_solver

GENERATOR = np.random.default_rng(0)
D = GENERATOR.normal(size=(8, 14)).astype(np.float32)
D /= np.linalg.norm(D, axis=0)
CODES = GENERATOR.normal(size=(4, 14)) * (GENERATOR.random((4, 14)) < 0.2)
CODES[:, 0] = 1.5
SIGNALS = (CODES @ D.T).astype(np.float32)
FILTERS = GENERATOR.normal(size=(2, 3, 3)).astype(np.float32)
FILTERS /= np.linalg.norm(FILTERS, axis=(1, 2), keepdims=True)
IMAGES = GENERATOR.normal(size=(3, 6, 6)).astype(np.float32)
# The class, its settings, and other numbers. Made when a row is tried and not at import, which every worker does.
SOLVERS = {
    "ista": (ISTA, {"num_layers": 4, "penalty": 0.1}, {"penalty": 0.2}),
    "fista": (FISTA, {"num_layers": 4, "penalty": 0.1}, {"penalty": 0.2}),
    "lista": (LISTA, {"num_layers": 3}, None),
    "lista-cp": (LISTACP, {"num_layers": 3}, None),
    "ti-lista": (TiLISTA, {"num_layers": 3}, None),
    "alista": (ALISTA, {"num_layers": 3, "theta": 0.1}, {"theta": 0.2}),
    "hyper-lista": (HyperLISTA, {"num_layers": 3}, None),
    "conv-alista": (ConvALISTA, {"num_layers": 2}, None),
    "conv-lista": (ConvLISTA, {"num_layers": 2}, None),
}
TYPES = of_rows("test_solver", SOLVERS, lambda row: row[0])


def convolves(name):
    return name.startswith("conv")


def made(name, **more):
    kind, settings, _ = SOLVERS[name]
    given = (FILTERS, (6, 6), analytic_conv_weight(FILTERS)) if convolves(name) else (D,)
    return kind(*given, **settings | more)


@pytest.mark.parametrize("name", SOLVERS)
def test_solver(name):
    numbers = SOLVERS[name][2]
    others = [] if numbers is None else [made(name, **numbers)]
    solver, signals = made(name), IMAGES if convolves(name) else SIGNALS
    # Forth and back; HyperLISTA measures the error by the pseudoinverse as well, and once the signal.
    cost = 3 * 3 + 1 if name == "hyper-lista" else 2 * solver.num_layers
    check_recovery_solver(solver, signals, others=others, cost=cost)
