"""A row for every loss, trainer and predictor of representation learning; ``laureate.testing`` has the checks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
from row_types import of_rows

from laureate.representation import (
    BarlowTwins,
    DirectCopy,
    DirectPred,
    DirectSet,
    Identity,
    JointEmbedding,
    Linear,
    Siamese,
    SimCLR,
    TwoLayer,
    VICReg,
)
from laureate.testing import check_representation_loss, check_representation_trainer

SGD = optax.sgd(0.05)  # a new object would compile anew
LOSSES = {
    "simclr": (SimCLR(), SimCLR(temperature=0.7)),
    "barlow-twins": (BarlowTwins(), BarlowTwins(redundancy=0.1)),
    "vicreg": (VICReg(), VICReg(covariance=2.0)),
}
TRAINERS = {
    "direct-pred": (Siamese(DirectPred(4), SGD), Siamese(DirectPred(4, epsilon=0.2), SGD)),
    "direct-pred-every-2": (
        Siamese(DirectPred(4, freq=2, zero_mean=True), SGD, momentum=None),
        Siamese(DirectPred(4, freq=2, zero_mean=True, rho=0.5), SGD, momentum=None),
    ),
    "direct-copy": (Siamese(DirectCopy(4), SGD), Siamese(DirectCopy(4), SGD, momentum=0.5)),
    "direct-set": (Siamese(DirectSet(4), SGD), Siamese(DirectSet(4), SGD, momentum=0.5)),
    "identity": (Siamese(Identity(4), SGD), Siamese(Identity(4), SGD, momentum=0.5)),
    "linear": (Siamese(Linear(4), SGD), Siamese(Linear(4), SGD, momentum=0.5)),
    "two-layer": (Siamese(TwoLayer(4), SGD), Siamese(TwoLayer(4), SGD, momentum=0.5)),
    "vicreg": (JointEmbedding(VICReg(), SGD), JointEmbedding(VICReg(covariance=2.0), SGD)),
}
UNUSED = {"direct-copy": (".power",)}  # which must be 1
TYPES = of_rows("test_loss", LOSSES, lambda row: type(row[0]))
TYPES |= {
    f"test_trainer[{name}]": {type(trainer), *([type(trainer.predictor)] if hasattr(trainer, "predictor") else [])}
    for name, (trainer, _) in TRAINERS.items()
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    loss, other = LOSSES[name]
    check_representation_loss(loss, others=[other])


@pytest.mark.parametrize("name", TRAINERS)
def test_trainer(name):
    trainer, other = TRAINERS[name]
    key = jax.random.key(0)
    model = eqx.nn.Linear(6, 4, key=key)
    x = jax.random.normal(key, (8, 6))
    check_representation_trainer(
        trainer, model, (x, x + 0.3 * jnp.cos(5 * x)), others=[other], unused=UNUSED.get(name, ())
    )
