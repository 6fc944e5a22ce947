"""A row for every conditional model; ``laureate.testing`` has the checks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from row_types import of_rows, types_in

from laureate.generative import (
    AdaptiveBudget,
    Adversarial,
    AdversarialImitation,
    AdversarialIRL,
    Affine,
    ConditionalBatchNorm,
    FiniteEnvironment,
    GaussianEncoder,
    GradientPenalty,
    InstanceNoise,
    Judge,
    OrthogonalPenalty,
    Perceptron,
    ShapedDiscriminator,
    ShapedEncoder,
    SpectrallyNormalised,
    VariationalBottleneck,
    WholeBatch,
    make_biggan,
    make_model,
)
from laureate.testing import check_adversarial, check_conditional_model

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


def made(kind, settings):
    return make_model(jax.random.key(1), kind, X, Y, width=4, **settings)


@pytest.mark.parametrize("kind", MODELS)
def test_model(kind):
    settings, other, cost = MODELS[kind]
    alone = kind == "regression"
    check_conditional_model(made(kind, settings), X, Y, others=[made(kind, other)], cost=cost, one_answer=alone)


def linear(inputs, outputs):
    """A perceptron of one layer, from a table: no key is spent."""
    table = np.random.default_rng(inputs + outputs).normal(size=(outputs, inputs)).astype(np.float32)
    return Perceptron((jnp.asarray(table),), (jnp.zeros(outputs),))


def bottleneck(encoder, **numbers):
    return VariationalBottleneck(encoder, **{"information": 0.5, "beta": 0.3, "beta_rate": 0.1} | numbers)


def gan(sigma=0.1, weight=0.5, budget=None, **numbers):
    own = {name: numbers.pop(name) for name in ("information", "beta", "beta_rate", "beta_cap") if name in numbers}
    coded = bottleneck(GaussianEncoder(linear(3, 4)), budget=budget or AdaptiveBudget(below=1.0), **own)
    parts = InstanceNoise(sigma, horizon=numbers.pop("horizon", 9.0)), coded, GradientPenalty(weight, "interpolated")
    return Adversarial(linear(2, 3), linear(2, 1), "hinge", parts, num_latents=2, **{"decay": 0.5} | numbers)


GAN = gan(beta_cap=9.0)
LIMITS = (".beta_cap", ".below", ".min_information", ".max_information")  # that nothing comes near, unless others do


def test_adversarial():
    numbers = [{"sigma": 0.3}, {"weight": 0.1}, {"horizon": 2.0}, {"information": 0.1}, {"beta": 0.9}]
    numbers += [{"beta_rate": 0.9}, {"beta_cap": 0.29}, {"decay": 0.1}, {"learning_rate": 0.1}, {"ratio": 3.0}]
    numbers += [{"budget": AdaptiveBudget(below=1.0, rate=0.3)}, {"budget": AdaptiveBudget(below=1.0, target=0.9)}]
    numbers += [{"budget": AdaptiveBudget(below=100.0)}, {"budget": AdaptiveBudget(below=1.0, max_information=0.3)}]
    others = [gan(**{"beta_cap": 9.0} | one) for one in numbers]
    check_adversarial(GAN, Y, others=others, cost=6, unused=LIMITS)


LINE = FiniteEnvironment(jnp.array([[0, 1], [0, 2], [1, 2]]), jnp.array([0.5, 0.5, 0.0]), jnp.eye(3), discount=0.8)


def imitation(**numbers):
    return AdversarialImitation(LINE, linear(2, 1), bottleneck(GaussianEncoder(linear(3, 4))), batch=4, **numbers)


def inverse(**numbers):
    encoder = ShapedEncoder(GaussianEncoder(linear(3, 4)), GaussianEncoder(linear(3, 4)))
    shaped = ShapedDiscriminator(linear(2, 1), linear(2, 1), 0.8)
    return AdversarialIRL(LINE, shaped, bottleneck(encoder), batch=4, **numbers)


IMITATION, INVERSE = imitation(), inverse()
STARTS = (".environment.start", *LIMITS)  # probabilities: few draws seldom fall between two


def test_imitation():
    others = [imitation(temperature=0.3), imitation(policy_rate=0.5), imitation(learning_rate=0.1)]
    check_adversarial(IMITATION, jnp.eye(3)[1:], others=others, cost=2, unused=STARTS)


def test_inverse_reinforcement_learning():
    others = [inverse(policy_rate=0.5), inverse(learning_rate=0.1)]
    check_adversarial(INVERSE, jnp.array([[0, 1], [1, 1]]), others=others, cost=2, unused=STARTS, skip=["divergence"])


class Carrier(eqx.Module):
    """A generator that normalises by its batch, with z as the condition."""

    layer: Affine
    norm: ConditionalBatchNorm

    def init(self):
        return (self.norm.init(),)

    def __call__(self, z, statistics=None):
        made, used = self.norm(self.layer(z), z, None if statistics is None else statistics[0])
        return made, (used,)


def carrying(penalty=0.01, **numbers):
    """All that networks may carry: singular vectors, batch statistics, and a penalty of the generator."""
    table = lambda number: jnp.asarray(np.random.default_rng(number).normal(size=(2, 3)), jnp.float32)  # noqa: E731
    carrier = Carrier(Affine(table(0), jnp.zeros(3)), ConditionalBatchNorm(table(1), table(2)))
    networks = SpectrallyNormalised(WholeBatch(carrier)), SpectrallyNormalised(linear(3, 1))
    more = {"generator_penalty": OrthogonalPenalty(penalty), "decay": 0.5, "average_from": jnp.asarray(0)}
    return Adversarial(*networks, "hinge", num_latents=2, optimiser=optax.sgd, **more | numbers)


CARRYING = carrying()


def test_adversarial_networks_with_a_state():
    numbers = [
        {"penalty": 0.1},
        {"learning_rate": 0.1},
        {"ratio": 2.0},
        {"decay": 0.3},
        {"average_from": jnp.asarray(2)},
    ]
    check_adversarial(CARRYING, Y, others=[carrying(**one) for one in numbers], cost=4, unused=LIMITS)


def judge(weight=0.5, learning_rate=0.01):
    return Judge(linear(3, 1), "lsgan", GradientPenalty(weight, "real"), learning_rate)


JUDGE = judge()


def test_judge():
    others = [judge(weight=0.1), judge(learning_rate=0.1)]
    check_adversarial(JUDGE, Y, -2 * Y, others=others, cost=4)  # the slopes of its penalty are two passes more


def biggan(**numbers):
    """BigGAN's networks of linear layers, with all they carry."""
    sizes = {"channels": 2, "num_blocks": 1, "num_latents": 2, "num_shared": 2}
    return make_biggan(jax.random.key(0), (2, 2, 1), 2, kind="dense", **sizes, **numbers)


@pytest.mark.slow  # the same with less inside runs, and the networks have closed forms in tests/generative
def test_biggan():
    numbers = [{"penalty": 0.1}, {"learning_rate": 0.1}]
    images = RNG.normal(size=(4, 2, 2, 1)).astype(np.float32)
    models = eqx.filter_jit(lambda: [biggan(**one) for one in ({}, *numbers)])()
    check_adversarial(models[0], (images, jnp.arange(4) % 2), others=models[1:], cost=4, unused=LIMITS)


def TYPES():  # noqa: N802
    """Called by the one test that asks, for tracing takes time."""
    models = eqx.filter_eval_shape(lambda: {kind: made(kind, row[0]) for kind, row in MODELS.items()})
    single = {"test_adversarial": GAN, "test_imitation": IMITATION, "test_inverse_reinforcement_learning": INVERSE}
    single |= {"test_adversarial_networks_with_a_state": CARRYING, "test_judge": JUDGE}
    single |= {"test_biggan": eqx.filter_eval_shape(biggan)}
    rows = of_rows("test_model", models) | {test: {type(one)} for test, one in single.items()}
    return rows, types_in(models, single)[1]
