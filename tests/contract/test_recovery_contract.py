"""A row for every solver of sparse recovery; ``laureate.testing`` has the checks."""

import numpy as np
import pytest

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
# Made when a row is tried and not at import, which every worker of the tests does.
SOLVERS = {
    "ista": lambda: (ISTA(D, layers=4, penalty=0.1), ISTA(D, layers=4, penalty=0.2), SIGNALS),
    "fista": lambda: (FISTA(D, layers=4, penalty=0.1), FISTA(D, layers=4, penalty=0.2), SIGNALS),
    "lista": lambda: (LISTA(D, layers=3), None, SIGNALS),
    "lista-cp": lambda: (LISTACP(D, layers=3), None, SIGNALS),
    "ti-lista": lambda: (TiLISTA(D, layers=3), None, SIGNALS),
    "alista": lambda: (ALISTA(D, layers=3, theta=0.1), ALISTA(D, layers=3, theta=0.2), SIGNALS),
    "hyper-lista": lambda: (HyperLISTA(D, layers=3), None, SIGNALS),
    "conv-alista": lambda: (ConvALISTA(FILTERS, (6, 6), weight(), layers=2), None, IMAGES),
    "conv-lista": lambda: (ConvLISTA(FILTERS, (6, 6), weight(), layers=2), None, IMAGES),
}
TYPES = {ISTA, FISTA, LISTA, LISTACP, TiLISTA, ALISTA, HyperLISTA, ConvALISTA, ConvLISTA}
# Twins of rows that run: the learned ones share one layer.
SLOW = {"lista-cp", "ti-lista", "conv-lista", "ista"}


def weight():
    return analytic_conv_weight(FILTERS)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in SOLVERS])
def test_solver(name):
    solver, other, signals = SOLVERS[name]()
    assert type(solver) in TYPES
    check_recovery_solver(solver, signals, others=[] if other is None else [other])
