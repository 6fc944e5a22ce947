"""The models that cGML is compared with, against closed forms; all that they compute is one program."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import norm

from laureate import generative as g
from laureate._core import Status
from laureate.generative.conditional import status_of

RNG = np.random.default_rng(2)
KEY = jax.random.key(0)
NUMBERS = RNG.normal(size=(3, 5)).astype(np.float32)  # a mixture of three laws of two numbers
POINT, THREE = RNG.normal(size=2), RNG.normal(size=3)
Q_MEAN, Q_LOG_DEVIATION, LOG_SCALE = np.array([0.3, -0.2]), np.array([-0.5, 0.1]), -0.3
W, M, RATE, WEIGHT = 0.4, 0.2, 0.05, 0.3  # of the small GAN
TRUE = RNG.normal(size=(5, 1)).astype(np.float32)
MEAN, DEVIATION = 0.7, 0.5  # of the law that a diffusion is to give
BEST = (0.5, 1.0, -0.5, -2.0)  # two answers: log weight and value each


class Free(eqx.Module):
    """Numbers to be learned, whatever the input."""

    values: jax.Array

    def __call__(self, *inputs):
        return self.values


class Judge(eqx.Module):
    """w y."""

    w: jax.Array

    def __call__(self, x, y):
        return self.w * y


class Shift(eqx.Module):
    """m + z."""

    m: jax.Array

    def __call__(self, x, z):
        return self.m + z


def free(*values):
    return Free(jnp.asarray(values, jnp.float32))


def loss_of(model, y):
    return model.loss(KEY, model.networks, jnp.zeros(1), jnp.asarray(y, jnp.float32))


def draws_of(model, number):
    return model.sample(KEY, model.init(), jnp.zeros((1, 1)), number)[:, 0]


def velocity(x, y, features):
    """The best v for y ~ N(m, s²)."""
    _, alpha, sigma = features
    variance = alpha**2 * DEVIATION**2 + sigma**2
    clean = MEAN + alpha * DEVIATION**2 / variance * (y - alpha * MEAN)
    noise = sigma / variance * (y - alpha * MEAN)
    return alpha * noise - sigma * clean


def mean_loss(network):
    made, keys = g.ConditionalDiffusion(network, (1,)), jax.random.split(KEY, 3000)
    y = MEAN + DEVIATION * jax.random.normal(jax.random.key(1), (3000, 1))
    return jnp.mean(jax.vmap(lambda k, row: made.loss(k, made.networks, jnp.zeros(1), row))(keys, y))


@pytest.fixture(scope="module")
def found():
    regression = g.Regression(free(0.8), learning_rate=0.1, optimiser=optax.sgd)
    mixture = g.MixtureDensity(free(*NUMBERS.ravel()), 3, (2,))
    nearest = g.BestOfK(free(*BEST), 2, (1,), relaxation=0.2)
    q = free(*Q_MEAN, *Q_LOG_DEVIATION)
    shown = g.CVAE(q, lambda x, z: z, 2)
    gan = g.ConditionalGAN(
        Shift(jnp.asarray(M)), Judge(jnp.asarray(W)), 1, WEIGHT, RATE, g.squared_error, optimiser=optax.sgd
    )

    def bound(key):
        return shown.loss(key, shown.networks, jnp.zeros(1), jnp.zeros(2))

    @jax.jit
    def computed():
        signs = jnp.array([[1.0], [-1.0], [1.0], [-1.0]])
        return {
            "regression": regression.step(KEY, jnp.zeros((4, 1)), signs, regression.init()),
            "mixture": (loss_of(mixture, POINT), draws_of(mixture, 4000)),
            "rows": mixture.sample(KEY, mixture.init(), jnp.zeros((2, 1)), 3),
            "floor": loss_of(g.MixtureDensity(free(0.0, 1.0, -20.0), 1, (1,)), [1.0]),
            "nearest": (loss_of(nearest, [0.4]), draws_of(nearest, 2000)),
            "cvae": loss_of(g.CVAE(q, lambda x, z: jnp.zeros(3), 2, weight=0.7, log_scale=LOG_SCALE), THREE),
            "bound": jnp.mean(jax.vmap(bound)(jax.random.split(KEY, 4000))),
            "gan": gan.step(KEY, jnp.zeros((5, 1)), jnp.asarray(TRUE), gan.init()),
            "diffusion": draws_of(g.ConditionalDiffusion(velocity, (1,), num_levels=60), 4000),
            "noise": loss_of(g.ConditionalDiffusion(lambda *_: jnp.array([-0.6]), (1,), num_levels=1), [0.6]),
            "right and wrong": (mean_loss(velocity), mean_loss(lambda *given: velocity(*given) + 0.2)),
        }

    return jax.tree.map(np.asarray, computed())


def test_costs_are_means_over_all_numbers_of_an_answer():
    """Not sums: a rate that suits an answer of one number suits an image."""
    one, two = np.random.default_rng(3).normal(size=(2, 2, 3)).astype(np.float32)
    absolute, squared = jax.jit(lambda a, b: (g.absolute_error(a, b), g.squared_error(a, b)))(one, two)
    np.testing.assert_allclose(absolute, np.abs(one - two).mean(), rtol=1e-6)
    np.testing.assert_allclose(squared, ((one - two) ** 2).mean(), rtol=1e-6)


def test_one_number_that_is_not_finite_is_a_divergence():
    values = np.array([[1.0, -2.0], [1.0, np.nan], [np.inf, 1.0], [np.nan, -np.inf]], np.float32)
    found = jax.jit(jax.vmap(status_of))(values)
    assert found.dtype == np.int32
    assert found.tolist() == [Status.OK] + 3 * [Status.DIVERGED]


def test_a_regression_by_squares_learns_the_average_of_two_answers(found):
    state, info = found["regression"]
    np.testing.assert_allclose(info.loss, (0.04 + 3.24) / 2, rtol=1e-5)
    np.testing.assert_allclose(state.parameters.values, 0.8 - 0.1 * 2 * 0.8, rtol=1e-5)


def test_the_mixture_is_the_density_of_scipy(found):
    loss, drawn = found["mixture"]
    weights = np.exp(NUMBERS[:, 0]) / np.exp(NUMBERS[:, 0]).sum()
    densities = norm.pdf(POINT, NUMBERS[:, 1:3], np.exp(NUMBERS[:, 3:])).prod(1)
    constant = np.log(2 * np.pi)  # of two numbers, which the loss leaves out
    np.testing.assert_allclose(loss, (-np.log((weights * densities).sum()) - constant) / 2, rtol=1e-4)
    mean = weights @ NUMBERS[:, 1:3]
    spread = weights @ (np.exp(2 * NUMBERS[:, 3:]) + NUMBERS[:, 1:3] ** 2) - mean**2
    np.testing.assert_allclose(drawn.mean(0), mean, atol=5 * np.sqrt(spread.max() / 4000))
    np.testing.assert_allclose(drawn.var(0), spread, rtol=0.25)


def test_equal_inputs_of_a_batch_have_draws_of_their_own(found):
    drawn = found["rows"].reshape(6, 2)
    assert len(np.unique(drawn, axis=0)) == 6


def test_a_mixture_on_a_point_has_a_finite_density(found):
    np.testing.assert_allclose(found["floor"], -5.0, rtol=1e-5)  # log σ is at its floor


def test_the_nearest_of_k_answers_learns(found):
    loss, drawn = found["nearest"]
    costs = np.array([(1.0 - 0.4) ** 2, (-2.0 - 0.4) ** 2])
    log_weights = np.array([0.5, -0.5]) - np.log(np.exp([0.5, -0.5]).sum())
    np.testing.assert_allclose(loss, 0.8 * costs[0] + 0.2 * costs.mean() - log_weights[0], rtol=1e-5)
    assert set(drawn.ravel().tolist()) == {1.0, -2.0}
    np.testing.assert_allclose((drawn == 1.0).mean(), np.exp(log_weights[0]), atol=5 * (0.25 / 2000) ** 0.5)


def test_the_bound_of_a_linear_cvae_is_known(found):
    """g = 0 and q = N(m, s²): ‖y‖² / 2σ² + D log σ + KL, a number of y."""
    divergence = (0.5 * (Q_MEAN**2 + np.exp(2 * Q_LOG_DEVIATION) - 1) - Q_LOG_DEVIATION).sum()
    wanted = (THREE @ THREE) / (2 * np.exp(2 * LOG_SCALE)) + 3 * LOG_SCALE + 0.7 * divergence
    np.testing.assert_allclose(found["cvae"], wanted / 3, rtol=1e-4)
    # z has the mean and the deviation that q says.
    expected = (0.5 * (Q_MEAN**2 + np.exp(2 * Q_LOG_DEVIATION)).sum() + divergence) / 2
    np.testing.assert_allclose(found["bound"], expected, rtol=0.1)


def test_a_step_of_the_gan_by_hand(found):
    """D first, on true and made answers, then g against the new D; least squares; plain descent."""
    made = M + np.asarray(jax.random.normal(KEY, (5, 1)))
    new_w = W - RATE * (2 * (W * TRUE - 1) * TRUE + 2 * W * made * made).mean()
    new_m = M - RATE * (2 * (new_w * made - 1) * new_w + WEIGHT * 2 * (made - TRUE)).mean()
    state, info = found["gan"]
    np.testing.assert_allclose(state.parameters["discriminator"].w, new_w, rtol=1e-5)
    np.testing.assert_allclose(state.parameters["generator"].m, new_m, rtol=1e-5)
    wanted = ((new_w * made - 1) ** 2).mean() + WEIGHT * ((made - TRUE) ** 2).mean()
    np.testing.assert_allclose(info.loss, wanted, rtol=1e-5)


def test_diffusion_with_the_true_velocity_gives_the_law(found):
    """y ~ N(m, s²): the best v is known, and 60 steps bring noise to that law."""
    drawn = found["diffusion"]
    np.testing.assert_allclose(drawn.mean(), MEAN, atol=5 * DEVIATION / 4000**0.5)
    np.testing.assert_allclose(drawn.std(), DEVIATION, rtol=0.06)
    # One level is that of pure noise: the velocity is −y.
    np.testing.assert_allclose(found["noise"], 0, atol=1e-10)
    # The loss is that of the same velocity: nothing beats the truth.
    right, wrong = found["right and wrong"]
    np.testing.assert_allclose(wrong - right, 0.04, atol=0.02)


@pytest.mark.parametrize("kind", g.KINDS)
def test_every_kind_takes_images_for_answers(kind):
    x, y = jnp.zeros((10, 3)), jnp.zeros((10, 2, 2))

    def answers():
        model = g.make_model(KEY, kind, x, y, width=4)
        return model.sample(KEY, model.init(), x, 2)

    assert jax.eval_shape(answers).shape == (2, 10, 2, 2)
    with pytest.raises(ValueError, match=r"make_model.kind must be one of latent-flow"):
        g.make_model(KEY, "gan", x, y)
