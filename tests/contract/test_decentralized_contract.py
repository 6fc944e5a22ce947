"""A row for every decentralised optimiser; what they must do: ``laureate.testing.check_decentralized_optimiser``."""

from typing import Any

import jax.numpy as jnp
import optax
import pytest
from row_types import of_rows

from laureate.decentralized import (
    D2,
    DPSGD,
    AllReduceSGD,
    ChocoSGD,
    DeFacto,
    DeTAG,
    Gossip,
    GradientTracking,
    ScaledSign,
    TopK,
    ring,
)
from laureate.decentralized.optimiser import IDENTITY
from laureate.testing import check_decentralized_optimiser

ADAM, MOMENTUM = optax.scale_by_adam(), optax.trace(0.9)  # new objects would compile anew
ROWS = {
    "detag": lambda rate: DeTAG(Gossip(ring(4)), rate, 2),
    "detag-adam": lambda rate: DeTAG(Gossip(ring(4)), rate, 2, local=ADAM),
    "tracking": lambda rate: GradientTracking(Gossip(ring(4)), rate, local=MOMENTUM),
    "d2": lambda rate: D2(Gossip(ring(4), kappa=0.5), rate),
    "d-psgd": lambda rate: DPSGD(Gossip(ring(4)), rate),
    "choco": lambda rate: ChocoSGD(Gossip(ring(4)), rate, ScaledSign(), 0.5),
    "defacto": lambda rate: DeFacto(Gossip(ring(4)), rate),
    "all-reduce": lambda rate: AllReduceSGD(Gossip(ring(4)), rate),
}
# The table of neighbours is for networks with an axis. The ends of the spectrum are for averages over several rounds,
# which DeTAG alone takes; DeFacto and all-reduce average exactly, by the graph alone.
UNUSED = dict.fromkeys(ROWS, (".table", ".ends")) | dict.fromkeys(("detag", "detag-adam"), (".table",))
UNUSED |= dict.fromkeys(("defacto", "all-reduce"), (".table", ".ends", ".matrix", ".kappa"))
# Parts that are put together, by pairs: how the network averages, what is sent, what stands between gradient and step.
METHODS = {"gossip": [Gossip(ring(4), method=method) for method in ("chebyshev", "plain", "accelerated")]}
LOCALS = {"local": (IDENTITY, MOMENTUM)}
OPTIONS: dict[str, dict[str, Any]] = {
    "detag": METHODS | LOCALS,
    "tracking": {"local": (MOMENTUM, IDENTITY, ADAM)},
    "d-psgd": {"local": (IDENTITY, ADAM)},
    "choco": {"compressor": (ScaledSign(), TopK(0.5)), "local": (IDENTITY, MOMENTUM, ADAM)},
    "defacto": LOCALS,
    "all-reduce": LOCALS,
}
TYPES = of_rows("test_contract", ROWS, lambda make: type(make(0.1)))
PARAMS = {"a": jnp.arange(8.0).reshape(4, 2), "b": jnp.ones(4)}


@pytest.mark.parametrize("name", ROWS)
def test_contract(name):
    check_decentralized_optimiser(ROWS[name], PARAMS, unused=UNUSED[name], options=OPTIONS.get(name))
