"""A row for every conditional model; ``laureate.testing`` has the checks."""

import jax
import numpy as np
import pytest

from laureate.generative import (
    CVAE,
    BestOfK,
    ConditionalDiffusion,
    ConditionalGAN,
    LatentFlowRegressor,
    MixtureDensity,
    Regression,
    make_model,
)
from laureate.testing import check_conditional_model

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 2)).astype(np.float32), RNG.normal(size=(4, 3)).astype(np.float32)
# kind -> settings, other numbers, passes of a step
MODELS = {
    "latent-flow": ({"num_inner": 2, "smoothness": 0.1}, {"num_inner": 2, "smoothness": 0.1, "inner_rate": 0.1}, 8),
    "regression": ({}, {"learning_rate": 0.1}, 1),
    "cvae": ({}, {"weight": 0.3}, 2),
    "cgan": ({}, {"weight": 1.0}, 4),
    "mixture-density": ({}, {"learning_rate": 0.1}, 1),
    "best-of-k": ({}, {"relaxation": 0.4}, 1),
    "diffusion": ({"num_levels": 3}, {"num_levels": 3, "learning_rate": 0.1}, 1),
}
TYPES = {LatentFlowRegressor, Regression, CVAE, ConditionalGAN, MixtureDensity, BestOfK, ConditionalDiffusion}


def made(kind, settings):
    return make_model(jax.random.key(1), kind, X, Y, width=4, **settings)


# These share training with the mixture, and their losses and draws have closed forms in tests/generative.
SIBLINGS = {"regression", "best-of-k", "cvae"}


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in SIBLINGS)) for k in MODELS])
def test_model(kind):
    settings, other, cost = MODELS[kind]
    alone = kind == "regression"
    check_conditional_model(made(kind, settings), X, Y, others=[made(kind, other)], cost=cost, one_answer=alone)
