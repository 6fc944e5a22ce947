"""What is wrong is refused with the field, the rule, the value and the remedy."""

import contextlib
import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import generative as g
from laureate.generative.conditional import check_pairs

KEY = jax.random.key(0)
X = np.linspace(0, 1, 40, dtype=np.float32)[:, None]
Y = np.where(np.arange(40)[:, None] % 2, X, -X)


class Shift(eqx.Module):
    """y = x + shift."""

    shift: jax.Array

    def __call__(self, x):
        return x + self.shift


def flow(**settings):
    return g.make_model(KEY, "latent-flow", X, Y, width=8, num_inner=2, **settings)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: g.Sphere(1), r"Sphere.dim must be an integer >= 2; got 1. S⁰ .* use Box\(1\)"),
        (lambda: g.Box(0), "Box.dim must be an integer >= 1; got 0"),
        (lambda: g.Box(2, 0.0), "Box.radius must be > 0; got 0.0"),
        (lambda: flow(inner_rate=0.0), "LatentFlowRegressor.inner_rate must be > 0; got 0.0"),
        (lambda: flow(learning_rate=-1.0), "LatentFlowRegressor.learning_rate must be > 0; got -1.0"),
        (lambda: flow(flow_rate=0.0), "LatentFlowRegressor.flow_rate must be > 0 or None; got 0.0"),
        (lambda: flow(smoothness=-0.1), "LatentFlowRegressor.smoothness must be >= 0; got -0.1"),
        (lambda: flow(nearby=0.0), "LatentFlowRegressor.nearby must be > 0"),
        (lambda: flow(num_moves=-1), "LatentFlowRegressor.num_moves must be >= 0 or None; got -1"),
        (lambda: g.make_model(KEY, "latent-flow", X, Y, num_inner=0), "num_inner must be >= 1; got 0"),
        (lambda: g.make_model(KEY, "latent-flow", X, Y, width=0), "make_model.width must be >= 1; got 0"),
        (lambda: g.CVAE(jnp.sum, jnp.sum, 0), "CVAE.num_latents must be >= 1; got 0"),
        (lambda: g.CVAE(jnp.sum, jnp.sum, weight=0.0), "CVAE.weight must be > 0; got 0.0"),
        (lambda: g.ConditionalGAN(jnp.sum, jnp.sum, weight=-1.0), "ConditionalGAN.weight must be >= 0; got -1.0"),
        (lambda: g.MixtureDensity(jnp.sum, 0, (1,)), "MixtureDensity.num_components must be >= 1; got 0"),
        (lambda: g.BestOfK(jnp.sum, 2, (1,), relaxation=1.0), "BestOfK.relaxation must be within 0 and 1; got 1.0"),
        (lambda: g.ConditionalDiffusion(jnp.sum, (1,), 0), "ConditionalDiffusion.num_levels must be >= 1; got 0"),
        (lambda: g.Regression(jnp.sum, 0.0), "Regression.learning_rate must be > 0; got 0.0"),
        (lambda: g.perceptrons(KEY, (3,)), "perceptrons.sizes must be at least an input and an output"),
        (lambda: g.Perceptron((jnp.ones((1, 1)),), ()), "Perceptron.biases must be as many as there are weights"),
    ],
)
def test_settings(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (X[:30], Y, r"as many x as y, at least one; got shapes \(30, 1\) and \(40, 1\)"),
        (X[:0], Y[:0], "at least one; got shapes"),
        (X, np.where(np.arange(40)[:, None] == 7, np.nan, Y), "y must be finite; got 1 rows that are not, the first 7"),
        (np.where(np.arange(40)[:, None] == 3, np.inf, X), Y, "x must be finite; got 1 rows that are not, the first 3"),
        (X, np.ones_like(Y), "y must differ between rows; got 40 equal ones"),
    ],
)
def test_pairs(x, y, said):
    with pytest.raises(ValueError, match=said):
        flow().fit(KEY, x, y)


def test_numbers_of_fit():
    with pytest.raises(ValueError, match=r"LatentFlowRegressor.num_steps must be >= 1; got 0"):
        flow().fit(KEY, X, Y, num_steps=0)
    with pytest.raises(ValueError, match=r"LatentFlowRegressor.batch must be >= 1; got 0"):
        flow().fit(KEY, X, Y, batch=0)


def test_a_missing_key_is_told():
    for call in (lambda: flow().fit(X, Y, X), lambda: flow().fit(0, X, Y)):
        with pytest.raises(TypeError, match=r"takes a key first, made by jax.random.key\(0\); got"):
            call()


def test_a_batch_norm_is_refused():
    network, _ = eqx.nn.make_with_state(eqx.nn.BatchNorm)(1, "batch", mode="batch")
    model = eqx.tree_at(lambda m: m.encoder, flow(), network)
    with pytest.raises(ValueError, match="functions of one example; got a BatchNorm"):
        model.fit(KEY, X, Y)


def test_a_decoder_that_ignores_the_latent_is_refused():
    model: Any = flow()
    last = model.decoder.weights[-1]
    silent = eqx.tree_at(lambda m: m.decoder.weights[-1], model, jnp.zeros_like(last))
    with pytest.raises(ValueError, match=r"decoder must be a function of z .* got 0.0. Is its last layer 0"):
        silent.fit(KEY, X, Y)
    loud = eqx.tree_at(lambda m: m.encoder.biases[-1], model, jnp.full(8, 1e6))
    with pytest.raises(ValueError, match=r"at least 0.001 of its size between two latents; got .*e-0"):
        loud.fit(KEY, X, Y)


def test_a_decoder_that_hardly_hears_the_latent_is_refused_with_its_share():
    """1 + z / 1000 of z uniform within ±1: two answers differ by two thirds of a thousandth, whatever the rows."""
    faint = g.LatentFlowRegressor(
        lambda x: x, lambda h, z: 1 + 1e-3 * z + 0 * h, lambda h, z: z, lambda h, z: jnp.ones(()), latent=g.Box(1, 1.0)
    )
    with pytest.raises(ValueError, match=r"at least 0.001 of its size between two latents; got 0\.000[5-8]"):
        faint.fit(KEY, X, Y, num_steps=1)


def test_rows_are_equal_where_all_their_numbers_are_and_finite_in_their_own_precision():
    number = np.arange(1.0, 5.0)[:, None] / 4
    check_pairs("Regression", number, np.concatenate([number, np.ones((4, 1))], axis=1))
    equal = np.tile([[1.0, 0.5]], (4, 1))
    check_pairs("Regression", number, equal, varied=False)
    with pytest.raises(ValueError, match="y must differ between rows; got 4 equal ones"):
        check_pairs("Regression", number, equal)
    with jax.enable_x64(True):
        assert check_pairs("Regression", 1e300 * number, number)[0].dtype == np.float64


def test_answers_far_from_one_are_warned_of():
    with pytest.warns(g.ScaleWarning, match=r"Regression.y should be near 1; its mean size is 512"):
        check_pairs("Regression", X, 1000 * Y + np.sign(Y) * 12)


def test_a_descent_that_rises_is_told_with_a_better_rate():
    """G = 3 z and squares: L = 9, and β = 5 throws z from one wall of the box to the other."""
    model = g.LatentFlowRegressor(
        lambda x: x,
        lambda h, z: 3 * z + 0 * h,
        lambda h, z: z,
        lambda h, z: jnp.ones(()),
        latent=g.Box(1, 1.0),
        inner_rate=5.0,
        num_inner=3,
        cost=lambda prediction, target: 0.5 * jnp.sum((prediction - target) ** 2),
    )
    with pytest.raises(g.InnerDivergenceError, match=r"got 5.0, with which it rises for .*% of the pairs. .* = 0.11"):
        model.fit(KEY, X, 0.1 * Y, num_steps=3, batch=16)


def test_a_rate_that_diverges_is_told():
    with pytest.raises(FloatingPointError, match=r"Regression.learning_rate must be small enough to train; got"):
        g.Regression(Shift(jnp.zeros(1)), learning_rate=1e30).fit(KEY, X, Y, num_steps=5)


@pytest.fixture(scope="module")
def barely():
    """As after training that taught the flow nothing: it is further from the next latent than standing still."""
    model = flow()
    history = jax.tree.map(np.asarray, g.LatentFlowInfo(*([np.ones(4)] * 8)))
    history = history._replace(flow_loss=np.full(4, 0.52), copy_loss=np.full(4, 0.125))
    return g.FittedConditional(model, model.init(), history, (1,))


def test_an_untrained_flow_is_refused_with_both_numbers(barely):
    with pytest.raises(ValueError, match=r"below 0.125, that of standing still; got 0.52"):
        barely.sample(KEY, X, 2)
    assert barely.sample(KEY, X, 2, untrained=True).shape == (2, 40, 1)
    assert barely.sample(KEY, X, 2, mode="raw").shape == (2, 40, 1)


def test_an_untrained_flow_is_refused_just_where_it_would_move(barely):
    """By every number of the model and of the call, given or left out: None is the next one's choice."""
    asked: list[dict[str, Any]] = [{}, {"num_moves": None}, {"num_moves": 0}, {"num_moves": 2}]
    for own, options in itertools.product((None, 0, 3), asked):
        hooks = dataclasses.replace(barely.model, num_moves=own).hooks
        chosen = next(n for n in (options.get("num_moves"), own, barely.model.num_inner) if n is not None)
        with pytest.raises(ValueError, match="standing still") if chosen else contextlib.nullcontext():
            hooks.before_sampling(barely.history, dict(options))
        for free in ({"mode": "raw"}, {"untrained": True}):
            hooks.before_sampling(barely.history, options | free)


def test_integers_and_lists_are_inputs_too(barely):
    wanted = barely.sample(KEY, np.ones((40, 1), np.float32), 2, mode="raw")
    for ones in (np.ones((40, 1), int), [[1]] * 40):
        np.testing.assert_array_equal(barely.sample(KEY, ones, 2, mode="raw"), wanted)


def test_what_sampling_refuses(barely):
    with pytest.raises(TypeError, match=r"sample takes no y: .* a reconstruction .* Use infer"):
        barely.sample(KEY, X, 2, y=Y)
    with pytest.raises(TypeError, match="takes a key first"):
        barely.sample(X, 2)
    with pytest.raises(ValueError, match="num_samples must be >= 1; got 0"):
        barely.sample(KEY, X, 0)
    with pytest.raises(TypeError, match="sample takes mode, num_moves and untrained; got steps"):
        barely.sample(KEY, X, 2, steps=3)
    with pytest.raises(ValueError, match=r"mode must be one of .* got 'momentum'"):
        barely.sample(KEY, X, 2, mode="momentum", untrained=True)
    with pytest.raises(
        ValueError, match=r"x must be rows of the shape trained on, \(1,\); got \(40,\). One input alone"
    ):
        barely.sample(KEY, X[:, 0], 2, mode="raw")
    with pytest.raises(ValueError, match=r"x must be finite; got 1 rows that are not, the first 3"):
        barely.sample(KEY, np.where(np.arange(40)[:, None] == 3, np.nan, X), 2, mode="raw")
    with pytest.raises(ValueError, match=r"x must be rows of the shape trained on"):
        barely.infer(KEY, np.zeros((40, 2)), Y)
    with pytest.raises(ValueError, match=r"LatentFlowRegressor.infer must be given as many x as y, at least one; got"):
        barely.infer(KEY, X, Y[:3])


def test_what_baselines_do_not_have():
    model = g.Regression(lambda x: x)
    fitted = g.FittedConditional(model, model.init(), None)
    with pytest.raises(TypeError, match=r"has no latent that is found from a pair. Use LatentFlowRegressor"):
        fitted.infer(KEY, X, Y)
    with pytest.raises(TypeError, match="sample takes no mode for this model"):
        fitted.sample(KEY, X, 2, mode="raw")
