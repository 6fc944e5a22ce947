"""The models that cGML is compared with, against closed forms; all that they compute is one program."""

from typing import Any

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


class Thrown(g.AbstractOneLoss):
    """(y − m − noise)², which shows the key that a pair was given."""

    m: float | jax.Array
    learning_rate: float = 0.1
    optimiser: Any = optax.sgd

    @property
    def networks(self):
        return {"m": jnp.asarray(self.m)}

    @property
    def passes(self):
        return 1

    def loss(self, key, networks, x, y):
        return jnp.mean((y - networks["m"] - jax.random.normal(key, y.shape)) ** 2)

    def draw(self, key, state, x, **options):
        return state.parameters["m"]


def test_a_step_is_down_the_mean_loss_of_its_pairs_each_with_draws_of_its_own():
    model = Thrown(M)
    noise = lambda: jax.vmap(lambda key: jax.random.normal(key, (1,)))(jax.random.split(KEY, 5))  # noqa: E731
    run = jax.jit(lambda: (model.step(KEY, jnp.zeros((5, 1)), jnp.asarray(TRUE), model.init()), noise()))
    (state, info), drawn_for = run()
    left = TRUE - M - np.asarray(drawn_for)
    assert len(np.unique(drawn_for)) == 5
    np.testing.assert_allclose(info.loss, (left**2).mean(), rtol=1e-5)
    np.testing.assert_allclose(state.parameters["m"], M + 0.1 * 2 * left.mean(), rtol=1e-5)
    assert (int(info.cost), int(info.status), int(state.step)) == (1, Status.OK, 1)


def test_a_diffusion_learns_at_the_levels_that_a_draw_passes_and_at_each_as_often(monkeypatch):
    """From noise alone, s = 1, to the last before an answer; with noise that is known, the whole draw in NumPy."""
    levels, start = 3, RNG.normal(size=2).astype(np.float32)
    network = lambda x, y, s: 0.3 * y + s[0] - 0.5 * s[1] * y + 0.2 * s[2] * x  # noqa: E731
    model = g.ConditionalDiffusion(network, (2,), levels)
    blind = g.ConditionalDiffusion(lambda x, y, s: 0 * y, (2,), levels)
    monkeypatch.setattr(jax.random, "normal", lambda key, shape, dtype: jnp.asarray(start, dtype))

    @jax.jit
    def run():
        # Of 0 for v = α ε − σ y: with y = 0 what is left is α² ε².
        losses = jax.vmap(lambda key: blind.loss(key, blind.networks, jnp.zeros(1), jnp.zeros(2)))
        given = jnp.array([0.7]), jnp.array([-0.4, 1.1])
        return (
            losses(jax.random.split(KEY, 300)),
            model.draw(KEY, model.init(), jnp.array([0.7])),
            model.loss(KEY, model.networks, *given),
            jax.random.randint(jax.random.split(KEY)[0], (), 0, levels),
        )

    losses, answer, loss, number = map(np.asarray, run())
    rates = lambda s: (np.cos(np.pi * s / 2), np.sin(np.pi * s / 2))  # noqa: E731
    of_level = rates(np.arange(1, 4) / 3)[0] ** 2 * (start**2).mean()
    found = np.abs(losses[:, None] - of_level)
    assert found.min(1).max() < 1e-5
    shares = np.bincount(found.argmin(1), minlength=3) / 300
    assert np.all(np.abs(shares - 1 / 3) < 5 * (2 / 9 / 300) ** 0.5)
    y = start.astype(float)
    for s in (1, 2 / 3, 1 / 3):
        (alpha, sigma), (after, left) = rates(s), rates(s - 1 / 3)
        v = network(0.7, y, (s, alpha, sigma))
        y = after * (alpha * y - sigma * v) + left * (sigma * y + alpha * v)
    np.testing.assert_allclose(answer, y, rtol=1e-4, atol=1e-5)
    s = (number + 1) / 3
    (alpha, sigma), true = rates(s), np.array([-0.4, 1.1])
    told = network(0.7, alpha * true + sigma * start, (s, alpha, sigma))
    np.testing.assert_allclose(loss, ((told - (alpha * start - sigma * true)) ** 2).mean(), rtol=1e-4)


def test_every_kind_counts_its_steps_once():
    """By which the keys of the next are made, so that training in parts is training; nothing else is computed."""
    x, y = np.ones((4, 2), np.float32), np.ones((4, 3), np.float32)

    @jax.jit
    def after(number):
        models = [g.make_model(KEY, kind, x, y, width=2) for kind in g.KINDS]
        states = [model.init()._replace(step=number) for model in models]
        return [model.step(KEY, x, y, state)[0].step for model, state in zip(models, states, strict=True)]

    assert [int(number) for number in after(7)] == [8] * len(g.KINDS)


@pytest.mark.parametrize("kind", g.KINDS)
def test_every_kind_takes_images_for_answers(kind):
    x, y = jnp.zeros((10, 3)), jnp.zeros((10, 2, 2))

    def answers():
        model = g.make_model(KEY, kind, x, y, width=4)
        return model.sample(KEY, model.init(), x, 2)

    assert jax.eval_shape(answers).shape == (2, 10, 2, 2)
    with pytest.raises(ValueError, match=r"make_model.kind must be one of latent-flow"):
        g.make_model(KEY, "gan", x, y)
