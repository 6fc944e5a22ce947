"""The models that cGML is compared with, against closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import generative as g

RNG = np.random.default_rng(2)
KEY = jax.random.key(0)


class Free(eqx.Module):
    """Numbers to be learned, whatever the input."""

    values: jax.Array

    def __call__(self, *inputs):
        return self.values


def free(*values):
    return Free(jnp.asarray(values, jnp.float32))


def loss_of(model, y, x=None):
    x = jnp.zeros(1) if x is None else x
    return float(model.loss(KEY, model.networks, x, jnp.asarray(y, jnp.float32)))


def test_a_regression_by_squares_learns_the_average_of_two_answers():
    model = g.Regression(free(0.8), learning_rate=0.1, optimiser=optax.sgd)
    x, y = jnp.zeros((4, 1)), jnp.array([[1.0], [-1.0], [1.0], [-1.0]])
    state, info = jax.jit(lambda: model.step(KEY, x, y, model.init()))()
    np.testing.assert_allclose(info.loss, (0.04 + 3.24) / 2, rtol=1e-5)
    np.testing.assert_allclose(state.parameters.values, 0.8 - 0.1 * 2 * 0.8, rtol=1e-5)


def test_the_mixture_is_the_density_of_scipy():
    from scipy.stats import norm

    numbers = RNG.normal(size=(3, 5)).astype(np.float32)
    model = g.MixtureDensity(free(*numbers.ravel()), 3, (2,))
    y = RNG.normal(size=2)
    weights = np.exp(numbers[:, 0]) / np.exp(numbers[:, 0]).sum()
    densities = norm.pdf(y, numbers[:, 1:3], np.exp(numbers[:, 3:])).prod(1)
    constant = np.log(2 * np.pi)  # of two numbers, which the loss leaves out
    np.testing.assert_allclose(loss_of(model, y), (-np.log((weights * densities).sum()) - constant) / 2, rtol=1e-4)
    drawn = np.asarray(jax.jit(lambda: model.sample(KEY, model.init(), jnp.zeros((1, 1)), 4000))())[:, 0]
    mean = weights @ numbers[:, 1:3]
    spread = weights @ (np.exp(2 * numbers[:, 3:]) + numbers[:, 1:3] ** 2) - mean**2
    np.testing.assert_allclose(drawn.mean(0), mean, atol=5 * np.sqrt(spread.max() / 4000))
    np.testing.assert_allclose(drawn.var(0), spread, rtol=0.25)


def test_a_mixture_on_a_point_has_a_finite_density():
    model = g.MixtureDensity(free(0.0, 1.0, -20.0), 1, (1,))
    np.testing.assert_allclose(loss_of(model, [1.0]), -5.0, rtol=1e-5)  # log σ is at its floor


def test_the_nearest_of_k_answers_learns():
    model = g.BestOfK(free(0.5, 1.0, -0.5, -2.0), 2, (1,), relaxation=0.2)
    costs = np.array([(1.0 - 0.4) ** 2, (-2.0 - 0.4) ** 2])
    log_weights = np.array([0.5, -0.5]) - np.log(np.exp([0.5, -0.5]).sum())
    np.testing.assert_allclose(loss_of(model, [0.4]), 0.8 * costs[0] + 0.2 * costs.mean() - log_weights[0], rtol=1e-5)
    drawn = np.asarray(jax.jit(lambda: model.sample(KEY, model.init(), jnp.zeros((1, 1)), 2000))()).ravel()
    assert set(drawn.tolist()) == {1.0, -2.0}
    np.testing.assert_allclose((drawn == 1.0).mean(), np.exp(log_weights[0]), atol=5 * (0.25 / 2000) ** 0.5)


def test_the_bound_of_a_linear_cvae_is_known():
    """g = 0 and q = N(m, s²): ‖y‖² / 2σ² + D log σ + KL, a number of y."""
    mean, log_deviation, log_scale = np.array([0.3, -0.2]), np.array([-0.5, 0.1]), -0.3
    model = g.CVAE(free(*mean, *log_deviation), lambda x, z: jnp.zeros(3), 2, weight=0.7, log_scale=log_scale)
    y = RNG.normal(size=3)
    divergence = (0.5 * (mean**2 + np.exp(2 * log_deviation) - 1) - log_deviation).sum()
    wanted = (y @ y) / (2 * np.exp(2 * log_scale)) + 3 * log_scale + 0.7 * divergence
    np.testing.assert_allclose(loss_of(model, y), wanted / 3, rtol=1e-4)
    # z has the mean and the deviation that q says.
    shown = g.CVAE(free(*mean, *log_deviation), lambda x, z: z, 2)
    spread = lambda y: jax.vmap(lambda k: shown.loss(k, shown.networks, jnp.zeros(1), y))(jax.random.split(KEY, 4000))  # noqa: E731
    found = float(jnp.mean(jax.jit(spread)(jnp.zeros(2))))
    expected = (0.5 * (mean**2 + np.exp(2 * log_deviation)).sum() + divergence) / 2
    np.testing.assert_allclose(found, expected, rtol=0.1)


def test_a_step_of_the_gan_by_hand():
    """D first, on true and made answers, then g against the new D; least squares; plain descent."""

    class Judge(eqx.Module):
        w: jax.Array

        def __call__(self, x, y):
            return self.w * y

    class Shift(eqx.Module):
        m: jax.Array

        def __call__(self, x, z):
            return self.m + z

    w, m, rate, weight = 0.4, 0.2, 0.05, 0.3
    model = g.ConditionalGAN(
        Shift(jnp.asarray(m)), Judge(jnp.asarray(w)), 1, weight, rate, g.squared_error, optimiser=optax.sgd
    )
    x, y = np.zeros((5, 1), np.float32), RNG.normal(size=(5, 1)).astype(np.float32)
    z = np.asarray(jax.random.normal(KEY, (5, 1)))
    made = m + z
    new_w = w - rate * (2 * (w * y - 1) * y + 2 * w * made * made).mean()
    new_m = m - rate * (2 * (new_w * made - 1) * new_w + weight * 2 * (made - y)).mean()
    state, info = jax.jit(lambda: model.step(KEY, jnp.asarray(x), jnp.asarray(y), model.init()))()
    np.testing.assert_allclose(state.parameters["discriminator"].w, new_w, rtol=1e-5)
    np.testing.assert_allclose(state.parameters["generator"].m, new_m, rtol=1e-5)
    wanted = ((new_w * made - 1) ** 2).mean() + weight * ((made - y) ** 2).mean()
    np.testing.assert_allclose(info.loss, wanted, rtol=1e-5)


def test_diffusion_with_the_true_velocity_gives_the_law():
    """y ~ N(m, s²): the best v is known, and 60 steps bring noise to that law."""
    mean, deviation = 0.7, 0.5

    def velocity(x, y, features):
        _, alpha, sigma = features
        variance = alpha**2 * deviation**2 + sigma**2
        clean = mean + alpha * deviation**2 / variance * (y - alpha * mean)
        noise = sigma / variance * (y - alpha * mean)
        return alpha * noise - sigma * clean

    model = g.ConditionalDiffusion(velocity, (1,), num_levels=60)
    drawn = np.asarray(jax.jit(lambda: model.sample(KEY, model.init(), jnp.zeros((1, 1)), 4000))()).ravel()
    np.testing.assert_allclose(drawn.mean(), mean, atol=5 * deviation / 4000**0.5)
    np.testing.assert_allclose(drawn.std(), deviation, rtol=0.06)
    # One level is that of pure noise: the velocity is −y.
    noisy = g.ConditionalDiffusion(lambda x, y, features: jnp.array([-0.6]), (1,), num_levels=1)
    np.testing.assert_allclose(loss_of(noisy, [0.6]), 0, atol=1e-10)
    # The loss is that of the same velocity: nothing beats the truth.
    y = mean + deviation * jax.random.normal(jax.random.key(1), (3000, 1))

    def loss(network):
        made = g.ConditionalDiffusion(network, (1,))
        keys = jax.random.split(KEY, 3000)
        return jnp.mean(jax.vmap(lambda k, row: made.loss(k, made.networks, jnp.zeros(1), row))(keys, y))

    off = lambda x, y, features: velocity(x, y, features) + 0.2  # noqa: E731
    truth, wrong = jax.jit(lambda: (loss(velocity), loss(off)))()
    np.testing.assert_allclose(float(wrong - truth), 0.04, atol=0.02)


@pytest.mark.parametrize("kind", g.KINDS)
def test_every_kind_takes_images_for_answers(kind):
    x, y = jnp.zeros((10, 3)), jnp.zeros((10, 2, 2))

    def answers():
        model = g.make_model(KEY, kind, x, y, width=4)
        return model.sample(KEY, model.init(), x, 2)

    assert jax.eval_shape(answers).shape == (2, 10, 2, 2)
    with pytest.raises(ValueError, match=r"make_model.kind must be one of latent-flow"):
        g.make_model(KEY, "gan", x, y)
