"""What steps of adversarial training report, options in pairs, ends of presets and laws of first weights, in NumPy."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import generative as g
from laureate._core import Status
from laureate.generative import biggan_parts
from laureate.layers import RunningStatistics

RNG = np.random.default_rng(8)
KEY = jax.random.key(11)


def softplus(x):
    return np.logaddexp(0, x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Of each loss: at real and made logits its value and slope, the middle between the two, and what G makes small.
LOSSES = {
    "non-saturating": (lambda v: softplus(-v), lambda v: -sigmoid(-v), softplus, sigmoid, 0, lambda v: softplus(-v)),
    "saturating": (lambda v: softplus(-v), lambda v: -sigmoid(-v), softplus, sigmoid, 0, lambda v: -softplus(v)),
    "hinge": (
        lambda v: np.maximum(0, 1 - v),
        lambda v: -1.0 * (v < 1),
        lambda v: np.maximum(0, 1 + v),
        lambda v: 1.0 * (v > -1),
        0,
        np.negative,
    ),
    "wasserstein": (np.negative, lambda v: -1 + 0 * v, np.positive, lambda v: 1 + 0 * v, 0, np.negative),
    "lsgan": (
        lambda v: (v - 1) ** 2,
        lambda v: 2 * (v - 1),
        lambda v: v**2,
        lambda v: 2 * v,
        0.5,
        lambda v: (v - 1) ** 2,
    ),
}


class Line(eqx.Module):
    """w x of one number, which is told a number beside it and does not look at it."""

    w: jax.Array

    def __call__(self, x, *beside):
        return self.w * x[0]


class Told(eqx.Module):
    """A generator that makes what it is told, and learns a shift."""

    shift: jax.Array

    def __call__(self, z, told):
        return told[None] + self.shift


SIZE, W = 8, 1.5
STEPS = 3
# Three steps of D on rows of their own; what is told is made. Some are at the middle of a loss, far or clipped.
X = np.concatenate([RNG.normal(1, 2, size=3 * SIZE - 3), [0.2, 4.0, -4.0]]).astype(np.float32)[:, None]
MADE = np.concatenate([RNG.normal(-1, 2, size=3 * SIZE - 4), [0.3, 0.995, -0.98, 6.0]]).astype(np.float32)


def gan(loss, regulariser=None, **more):
    usual = {"num_latents": 2, "learning_rate": 0.002, "ratio": 2.0, "optimiser": optax.sgd, "below": 0.4}
    made = Told(jnp.zeros(())), Line(jnp.asarray(W))
    return g.Adversarial(*made, loss, regulariser, num_discriminator_steps=STEPS, **usual | more)  # pyright: ignore


@pytest.fixture(scope="module")
def reported():
    """One step of every loss, plain and with a penalty of D and of G, whole and in two parts; one program."""
    price = g.GradientPenalty(0.25)
    cost = lambda network: 3.0 * (network.shift + 1.0) ** 2  # noqa: E731

    def every():
        models = {(loss, 1): gan(loss) for loss in LOSSES}
        models["lsgan", 2] = gan("lsgan", num_accumulated=2)
        models["priced", 1] = gan("hinge", price, generator_penalty=cost)
        models["priced", 2] = gan("hinge", price, generator_penalty=cost, num_accumulated=2)
        return {name: model.step(KEY, (X, MADE), model.init()) for name, model in models.items()}

    return jax.tree.map(np.asarray, jax.jit(every)())


@pytest.mark.parametrize("name", [*((loss, 1) for loss in LOSSES), ("lsgan", 2), ("priced", 1), ("priced", 2)])
def test_all_numbers_of_a_step_are_those_of_its_last_step_of_the_discriminator(reported, name):
    (state, info), (loss, _) = reported[name], name
    real, real_slope, fake, fake_slope, middle, wish = LOSSES["hinge" if loss == "priced" else loss]
    w, told = W, {}
    for x, made in zip(X[:, 0].reshape(STEPS, SIZE), MADE.reshape(STEPS, SIZE), strict=True):
        on_real, on_made = w * x, w * made
        priced = 0.25 * w**2 if loss == "priced" else 0.0
        told = {
            "discriminator_loss": real(on_real).mean() + fake(on_made).mean() + priced,
            "margin": on_real.mean() - on_made.mean(),
            "accuracy": 0.5 * ((on_real > middle).mean() + (on_made < middle).mean()),
            "saturated": 0.5
            * ((np.abs(real_slope(on_real)) < 0.01).mean() + (np.abs(fake_slope(on_made)) < 0.01).mean()),
            "nats": 0.0,
        }
        slope = (real_slope(on_real) * x).mean() + (fake_slope(on_made) * made).mean()
        w = w - 0.004 * (slope + (0.5 * w if loss == "priced" else 0.0))
    made = MADE.reshape(STEPS, SIZE)[-1].astype(np.float64)
    # Central differences of what G makes small, by each made example.
    slopes = np.abs(wish(w * (made + 1e-4)) - wish(w * (made - 1e-4))) / 2e-4
    told |= {
        "generator_loss": wish(w * made).mean() + (3.0 if loss == "priced" else 0.0),
        "slope": slopes.mean(),
        "flat": (slopes < 0.4).mean(),
        "clipped": (np.abs(made) > 0.99).mean(),
        "cost": STEPS * (4 if loss == "priced" else 2) + 2,  # passes over a batch, in however many parts
        "status": Status.OK,
    }
    told["endangered"] = told["saturated"] > 0.95 or told["flat"] > 0.5
    for field, wanted in told.items():
        np.testing.assert_allclose(getattr(info, field), wanted, rtol=1e-3, atol=1e-4, err_msg=field)
    np.testing.assert_allclose(state.judge.parameters[0].w, w, rtol=1e-4)
    assert [len(spectrum.sigma) for spectrum in info.spectra] == [0, 0]


def test_training_is_endangered_just_beyond_its_two_shares():
    """Above 0.95 with nothing left for D to learn, or above one half without a slope for G; at the shares it is not."""

    def step(far, flat):
        """So many of 80 logits of a hinge that D is sure of; so many of 40 squares that do not move G."""
        rows = jnp.arange(40)
        sure = jnp.where(rows < far - 40, 2.0, 0.0), jnp.where(rows < 40, -2.0, 0.0)
        model = g.Adversarial(Told(jnp.zeros(())), Line(jnp.ones(())), "hinge", learning_rate=1e-9, optimiser=optax.sgd)
        _, one = model.step(KEY, (sure[0][:, None], sure[1]), model.init())
        made = jnp.where(rows < flat, 1.0, 3.0)
        model = g.Adversarial(
            Told(jnp.zeros(())), Line(jnp.ones(())), "lsgan", learning_rate=1e-9, optimiser=optax.sgd, below=0.1
        )
        _, two = model.step(KEY, (jnp.zeros((40, 1)), made), model.init())
        return (one.saturated, one.flat, one.endangered), (two.saturated, two.flat, two.endangered)

    hinge, squares = jax.jit(jax.vmap(step))(np.array([75, 76, 77, 80]), np.array([19, 20, 21, 40]))
    np.testing.assert_allclose(hinge[0], np.array([75, 76, 77, 80]) / 80, rtol=1e-6)
    assert not np.asarray(hinge[1]).any()
    assert hinge[2].tolist() == [False, False, True, True]
    np.testing.assert_allclose(squares[1], np.array([19, 20, 21, 40]) / 40, rtol=1e-6)
    assert not np.asarray(squares[0]).any()
    assert squares[2].tolist() == [False, False, True, True]


# --- the bottleneck's options -----------------------------------------------------------------------------------------


def test_every_pair_of_options_of_a_bottleneck(monkeypatch):
    """What either learner sees, what it costs, and how the price of it moves; with noise that is known."""
    log_deviation, x = np.array([-0.5, 0.2], np.float32), RNG.normal(size=(3, 4, 2)).astype(np.float32)
    drawn, paid = RNG.normal(size=x.shape).astype(np.float32), np.array([0.0, 0.5, 1.1, 90.0], np.float32)
    monkeypatch.setattr(jax.random, "normal", lambda key, shape, dtype: jnp.asarray(drawn, dtype).reshape(shape))
    encoder = lambda x: (2 * x, jnp.broadcast_to(log_deviation, x.shape))  # noqa: E731
    names, learners = ("logarithmic", "through", "noise", "sites"), ("generator", "discriminator")
    options = list(itertools.product((False, True), ("mean", "sample"), (False, True), ("sum", "mean")))

    def run(made):
        seen = {who: made.see(KEY, encoder, x, made.init(), learner=who) for who in learners}
        seen["nobody"] = made.see(None, encoder, x, made.init(), learner="discriminator")
        moved = jax.vmap(lambda nats: made.update(made.init(), nats))(paid)
        return seen, moved, made.penalty(KEY, None, x, x, jnp.asarray(1.1), made.init())

    build = lambda one: g.VariationalBottleneck(encoder, 0.5, 0.3, 0.1, 0.45, **dict(zip(names, one, strict=True)))  # noqa: E731
    found = jax.tree.map(np.asarray, jax.jit(lambda: [run(build(one)) for one in options])())
    each = (-log_deviation + 0.5 * (np.exp(2 * log_deviation) + (2 * x) ** 2) - 0.5).sum(-1)
    shaken = 2 * x + np.exp(log_deviation) * drawn
    for one, (seen, moved, price) in zip(options, found, strict=True):
        logarithmic, through, noise, sites = one
        noisy = {"generator": noise and through == "sample", "discriminator": noise, "nobody": False}
        for who, (code, nats) in seen.items():
            np.testing.assert_allclose(code, shaken if noisy[who] else 2 * x, rtol=1e-5, atol=1e-6, err_msg=f"{one}")
            np.testing.assert_allclose(nats, each.mean(1) if sites == "mean" else each.sum(1), rtol=1e-5)
        free = 0.3 * np.exp(0.1 * (paid - 0.5)) if logarithmic else 0.3 + 0.1 * (paid - 0.5)
        np.testing.assert_allclose(moved.beta, np.clip(free, 0, 0.45), rtol=1e-5)
        assert moved.silent.tolist() == [1, 0, 0, 0]
        np.testing.assert_array_equal(moved.information, 0.5)
        np.testing.assert_allclose(price, 0.3 * (1.1 - 0.5), rtol=1e-6)


@pytest.mark.parametrize("at", ["real", "made", "interpolated"])
def test_penalties_of_images_that_are_told_a_label(at):
    """Of a logit whose slope is 2 (label) x: one share an image between the two, and the label of the real one."""
    real, made = RNG.normal(size=(2, 5, 3, 2, 1)).astype(np.float32)
    labels, others = RNG.uniform(0.5, 2, size=(2, 5)).astype(np.float32)
    judge = lambda x, label: label * jnp.sum(x**2)  # noqa: E731
    penalty = g.GradientPenalty(0.7, at)
    price, share = jax.jit(
        lambda: (
            penalty.penalty(KEY, judge, (real, labels), (made, others), jnp.zeros(()), ()),
            jax.random.uniform(KEY, (5, 1, 1, 1)),
        )
    )()
    share = np.asarray(share)
    x, label = {
        "real": (real, labels),
        "made": (made, others),
        "interpolated": (share * real + (1 - share) * made, labels),
    }[at]
    squares = (2 * label) ** 2 * (x**2).sum((1, 2, 3))
    wanted = ((np.sqrt(squares) - 1) ** 2 if at == "interpolated" else squares).mean()
    np.testing.assert_allclose(price, 0.7 * wanted, rtol=1e-4)


# --- BigGAN -----------------------------------------------------------------------------------------------------------

# shared, hierarchical, classes: every pair occurs.
FLAGS = [(True, True, 3), (True, False, 0), (False, True, 0), (False, False, 3)]
Z, Y = RNG.normal(size=(5, 6)).astype(np.float32), np.array([0, 2, 1, 1, 0])


def maker(shared, hierarchical, classes, **more):
    sizes = {"kind": "dense", "channels": 4, "num_blocks": 2, "num_latents": 6, "num_shared": 2}
    return g.make_biggan(KEY, (2, 1, 3), classes, shared=shared, hierarchical=hierarchical, **sizes | more)


@pytest.fixture(scope="module")
def made():
    def every():
        models: Any = [maker(*flags) for flags in FLAGS]
        networks = [model.generator.network.function for model in models]
        return [(one, one(jnp.asarray(Z), jnp.asarray(Y))[0]) for one in networks]

    return dict(zip(FLAGS, jax.jit(every)(), strict=True))


@pytest.mark.parametrize("flags", FLAGS)
def test_a_generator_by_hand_with_every_pair_of_flags(made, flags):
    """All blocks: each norm with the embedding and the piece of z that are its own."""
    shared, hierarchical, classes = flags
    network, images = made[flags]
    affine = lambda layer, x: x @ np.asarray(layer.weight) + np.asarray(layer.bias)  # noqa: E731
    scaled = lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)  # noqa: E731
    embedding = np.asarray(network.embedding)
    assert embedding.shape == (1 if shared else 4, max(classes, 1), 2)
    labels = Y if classes else 0 * Y
    h = affine(network.first, Z[:, :2] if hierarchical else Z)
    for number, block in enumerate(network.blocks):
        inner = h
        for place, (norm, layer) in enumerate(zip(block.norms, block.layers, strict=True)):
            told = embedding[0 if shared else 2 * number + place][labels]
            if hierarchical:
                told = np.concatenate([told, Z[:, 2 * (number + 1) : 2 * (number + 2)]], axis=1)
            inner = scaled(inner) * (1 + told @ np.asarray(norm.gain)) + told @ np.asarray(norm.bias)
            inner = affine(layer, np.maximum(inner, 0))
        h = inner + h
    last = scaled(h) * np.asarray(network.norm.scale) + np.asarray(network.norm.shift)
    wanted = np.tanh(affine(network.last, np.maximum(last, 0))).reshape(-1, 2, 1, 3)
    np.testing.assert_allclose(images, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("spectral", [True, False])
@pytest.mark.parametrize("kind", ["off-diagonal", "full"])
def test_a_maker_hands_on_its_settings(spectral, kind):
    names = []

    def make():
        found = maker(True, True, 3, spectral=spectral, penalty=0.25, penalty_kind=kind, learning_rate=0.5, decay=0.75)
        names.extend(getattr(part, "names", ()) for part in (found.generator, found.discriminator))
        return found

    model = eqx.filter_eval_shape(make)
    assert isinstance(model.generator, g.SpectrallyNormalised) == spectral
    assert isinstance(model.discriminator, g.SpectrallyNormalised) == spectral
    price = model.generator_penalty
    assert (type(price), price.kind, price.weight) == (g.OrthogonalPenalty, kind, 0.25)
    assert (model.loss, model.ratio, model.learning_rate, model.decay) == ("hinge", 4.0, 0.5, 0.75)
    of_generator, of_discriminator = (any("embedding" in name for name in some) for some in names)
    assert (of_generator, of_discriminator) == (False, spectral)


@pytest.mark.parametrize(("side", "blocks", "seen"), [(8, 1, 4), (16, 2, 8), (32, 3, 16)])
@pytest.mark.parametrize("attention", [True, False])
def test_convolutions_have_a_block_for_every_doubling_and_attention_where_it_is_said(
    monkeypatch, side, blocks, seen, attention
):
    """G attends before its last block and D after its first, at half the side; D ends at 4 by 4, or at 8 of 32."""
    looked = []
    monkeypatch.setattr(biggan_parts.SelfAttention, "__call__", lambda self, x: (looked.append(x.shape), x)[1])
    sizes = {"channels": 8, "num_latents": 2 * (blocks + 1), "num_shared": 2, "attention": attention}

    def run(z, y):
        model: Any = g.make_biggan(KEY, (side, side, 2), 3, **sizes)
        images, statistics = model.generator.network.function(z, y)
        judge = model.discriminator.network.function
        features = [images]
        for block in judge.blocks:
            features.append(block(features[-1]))
        return judge, images, judge(images, y)[0], [part.shape for part in features], len(statistics)

    judge, images, logits, shapes, number = eqx.filter_eval_shape(
        run, jnp.ones((2, 2 * (blocks + 1))), jnp.array([0, 2])
    )
    assert (images.shape, logits.shape, number) == ((2, side, side, 2), (2,), blocks + 1)
    assert looked == [(2, seen, seen, 8)] * (2 if attention else 0)
    assert [block.first for block in judge.blocks] == [True] + [False] * blocks
    halvings = [number < min(2, blocks) for number in range(blocks + 1)]
    assert [block.shrinks for block in judge.blocks] == halvings
    sides = [side // 2 ** min(number, 2, blocks) for number in range(blocks + 2)]
    assert [shape[1:3] for shape in shapes] == [(s, s) for s in sides]
    assert [block.shortcut is None for block in judge.blocks] == [False] + [True] * blocks


def test_images_are_enlarged_pixel_by_pixel_and_made_smaller_by_means():
    images = RNG.normal(size=(2, 4, 6, 3)).astype(np.float32)
    large, small = biggan_parts.grown(jnp.asarray(images)), biggan_parts.halved(jnp.asarray(images))
    np.testing.assert_array_equal(large, images.repeat(2, axis=1).repeat(2, axis=2))
    np.testing.assert_allclose(small, images.reshape(2, 2, 2, 3, 2, 3).mean((2, 4)), rtol=1e-5, atol=1e-6)
    pieces = g.split_latents(jnp.arange(12.0).reshape(2, 6), 3)
    np.testing.assert_array_equal(np.stack(pieces, axis=1), np.arange(12.0).reshape(2, 3, 2))


def test_presets_at_the_ends_of_their_ranges():
    rows = {number: g.biggan_settings(number)["channels"] for number in (2, 2_000, 2_001, 20_000, 20_001, 10**7)}
    assert list(rows.values()) == [16, 16, 32, 32, 64, 64]
    g.biggan_settings(2)["channels"] = 1  # one's own copy
    assert g.biggan_settings(2)["channels"] == 16


class Centred(eqx.Module):
    """z less its mean over the batch, and a shift that is learned; told as its statistics."""

    shift: jax.Array

    def init(self):
        return RunningStatistics.empty((2,), jnp.float32)

    def __call__(self, z, statistics=None):
        used = RunningStatistics.of(z) if statistics is None else statistics
        return z - used.mean[None] + self.shift[None], used


def test_statistics_of_a_step_are_those_of_all_its_parts():
    judge = lambda x: x[0]  # noqa: E731
    network = g.WholeBatch(Centred(jnp.zeros(2)), momentum=0.25)
    model = g.Adversarial(network, judge, "wasserstein", num_latents=2, num_accumulated=2, optimiser=optax.sgd)

    def two():
        first, _ = model.step(KEY, jnp.zeros((8, 2)), model.init())
        second, _ = model.step(jax.random.key(1), jnp.zeros((8, 2)), first)
        return first.network, second.network

    first, second = jax.jit(two)()
    z = [np.asarray(jax.random.normal(jax.random.split(key, 3)[0], (2, 8, 2)))[1] for key in (KEY, jax.random.key(1))]
    np.testing.assert_allclose(first.mean, z[0].mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(first.variance(), z[0].var(0), rtol=1e-4)
    np.testing.assert_allclose(second.mean, 0.25 * z[0].mean(0) + 0.75 * z[1].mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(second.variance(), 0.25 * z[0].var(0) + 0.75 * z[1].var(0), rtol=1e-4)


# --- first weights, and the way of a descent --------------------------------------------------------------------------


def test_laws_of_first_weights():
    """He's for layers that a relu follows, half of that variance for the last; orthogonal ones of all turns alike."""
    shapes = (1, 1), (2, 2), (3, 1, 2), (2, 5)
    every = jax.jit(
        lambda key: (
            g.perceptrons(key, (60, 50, 40), (30, 20)),
            jax.vmap(lambda one: g.orthogonal(one, *shapes))(jax.random.split(key, 400)),
        )
    )
    networks, (ones, twos, tall, wide) = jax.tree.map(np.asarray, every(KEY))
    layers = [(networks[0].weights[0], 2), (networks[0].weights[1], 1), (networks[1].weights[0], 1)]
    for weight, gain in layers:
        assert np.var(weight) == pytest.approx(gain / weight.shape[1], rel=5 * (2 / weight.size) ** 0.5)
        assert np.mean(weight) == pytest.approx(0, abs=5 * (gain / weight.shape[1] / weight.size) ** 0.5)
    assert not any(np.asarray(bias).any() for network in networks for bias in network.biases)
    assert [network.activation for network in networks] == [jax.nn.relu] * 2
    assert set(np.round(ones.ravel(), 5).tolist()) == {-1.0, 1.0}
    assert abs(ones.mean()) < 5 / 400**0.5
    # Of a uniform turn every entry has mean 0 and variance 1/2, and mirror images are as frequent as turns.
    assert np.abs(twos.mean(0)).max() < 5 * (0.5 / 400) ** 0.5
    assert abs(np.linalg.det(twos).mean()) < 5 / 400**0.5
    for matrix in (tall.reshape(400, 3, 2), np.swapaxes(wide, 1, 2)):
        np.testing.assert_allclose(np.swapaxes(matrix, 1, 2) @ matrix, np.tile(np.eye(2), (400, 1, 1)), atol=1e-5)


def test_makers_of_networks_hand_on_what_is_between_layers():
    """Told beside shapes and alone; nothing is computed."""

    def make(key):
        tanh = g.perceptrons(key, (3, 2), (3, 4), shapes=[None, (2, 2)], activation=jnp.tanh)
        return tanh, g.make_encoder(key, (3, 4), 2), g.make_encoder(key, (3, 4), 2, activation=jnp.sin)

    tanh, usual, sine = eqx.filter_eval_shape(make, KEY)
    assert [(one.activation, one.shape) for one in tanh] == [(jnp.tanh, None), (jnp.tanh, (2, 2))]
    assert (usual.network.activation, sine.network.activation) == (jax.nn.leaky_relu, jnp.sin)


def test_the_costs_of_a_descent_are_those_at_its_latents_and_risen_are_those_beside_the_first():
    """From a drawn start to the last, [steps + 1, pairs]; linear answers and a rate that is too large, by hand."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 3, 2)).astype(np.float32)
    x, y = rng.normal(size=(40, 2)).astype(np.float32), rng.normal(size=(40, 3)).astype(np.float32)
    model = g.LatentFlowRegressor(
        lambda x: x,
        lambda h, z: jnp.asarray(a) @ h + jnp.asarray(b) @ z,
        lambda h, z: z,
        lambda h, z: jnp.ones(()),
        latent=g.Box(2, 0.6),
        inner_rate=0.6,
        num_inner=3,
        cost=lambda prediction, target: 0.5 * jnp.sum((prediction - target) ** 2),
    )
    start = [model.latent.draw(key, (40,)) for key in (KEY, jax.random.split(KEY)[0])]
    found, (_, info) = jax.jit(lambda: (model.descent(KEY, model.init(), x, y), model.step(KEY, x, y, model.init())))()
    for told, z in zip((found, info), np.asarray(start, float), strict=True):
        costs = []
        for _ in range(3):
            left = x @ a.T + z @ b.T - y
            costs.append(0.5 * (left**2).sum(1))
            z = np.clip(z - 0.6 * left @ b, -0.6, 0.6)
        costs = np.array([*costs, 0.5 * ((x @ a.T + z @ b.T - y) ** 2).sum(1)])
        if told is found:
            np.testing.assert_allclose(found.costs, costs, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(found.latents, z, rtol=1e-4, atol=1e-4)
            continue
        shares = [(costs[-1] > costs[n]).mean() for n in range(3)]
        assert len(set(shares)) == 3
        for name, wanted in (("risen", shares[0]), ("first_loss", costs[0].mean()), ("loss", costs[-1].mean())):
            np.testing.assert_allclose(getattr(info, name), wanted, rtol=1e-4, err_msg=name)


# --- measures and warnings at their ends ------------------------------------------------------------------------------


def test_measures_of_points_on_a_grid_with_all_their_ties():
    """Whole numbers, where distances are equal to each other and to the tolerance; counted one by one."""
    rng = np.random.default_rng(1)
    real, made, others = rng.integers(0, 4, size=(3, 9, 2)).astype(np.float32)
    modes = np.array([[0.0, 0], [1, 1], [3, 2]], np.float32)  # nearer to each other than twice the tolerance

    @jax.jit
    def measured():
        return g.mode_report(made, modes, 1.0), g.precision_recall(real, made, 2), g.copy_share(made, real, others)

    report, (precision, recall), copies = measured()
    apart = np.abs(made[:, None] - modes).mean(-1)
    nearest = [int(np.flatnonzero(row == row.min())[0]) for row in apart]  # of equals the first
    hits = [place if apart[n, place] <= 1 else None for n, place in enumerate(nearest)]
    assert (apart <= 1).sum(1).max() > 1
    np.testing.assert_allclose(report.hit, np.mean([place is not None for place in hits]), rtol=1e-6)
    np.testing.assert_allclose(report.shares, [np.mean([one == m for one in hits]) for m in range(3)], rtol=1e-6)
    np.testing.assert_allclose(report.nearest, [np.mean([one == m for one in nearest]) for m in range(3)], rtol=1e-6)
    squares = lambda one, two: ((one[:, None] - two) ** 2).sum(-1)  # noqa: E731
    radius = lambda part: np.sort(squares(part, part), axis=1)[:, 2]  # noqa: E731
    across = squares(made, real)
    np.testing.assert_allclose(precision, (across <= radius(real)).any(1).mean(), rtol=1e-6)
    np.testing.assert_allclose(recall, (across <= radius(made)[:, None]).any(0).mean(), rtol=1e-6)
    near, far = across.min(1), squares(made, others).min(1)
    assert (near == far).any()
    np.testing.assert_allclose(copies, ((near < far) + 0.5 * (near == far)).mean(), rtol=1e-6)


@pytest.mark.parametrize(
    ("beta", "warns"),
    [
        (np.r_[np.full(50, 0.1), np.full(100, 1.1)], True),  # eleven times within a hundred steps
        (np.r_[np.full(50, 0.1), np.full(100, 0.95)], False),
        (0.1 * 1.02 ** np.arange(300), False),  # seven times
        (0.1 * 1.03 ** np.arange(300), True),  # nineteen times
        (np.r_[0.0, np.full(149, 5.0)], False),  # from nothing it may begin
        (np.r_[np.full(50, 1.0), np.full(50, 0.01), np.full(100, 5.0)], False),  # beside the first it is no jump
        (np.r_[0.1, np.full(99, 9.0)], False),  # too few steps to tell
    ],
)
def test_a_price_that_runs_away_is_warned_of(beta, warns, recwarn):
    from laureate.generative.adversarial_checks import after_training

    count = len(beta)
    state = g.BottleneckState(beta, np.ones(count), np.zeros(count, int), np.zeros(count, bool))
    after_training("Adversarial", type("Infos", (), {"status": np.zeros(count, int), "regularisers": (state,)}))
    assert len(recwarn) == warns
    assert not warns or f"to {beta.max():.3g}: lower beta_rate" in str(recwarn[0].message)


def test_settings_of_models_by_kind_reach_what_they_are_for():
    """Sizes and passes of every kind; nothing is computed."""
    x, y = np.zeros((9, 3)), np.zeros((9, 2, 2))
    numbers = {"width": 5, "num_codes": 7, "num_latents": 3, "num_components": 6, "learning_rate": 0.25}
    passes = {"regression": 1, "mixture-density": 1, "best-of-k": 1, "diffusion": 1, "cvae": 2}
    # Inputs and outputs of every network.
    sizes = {
        "latent-flow": {"encoder": (3, 7), "decoder": (10, 4), "flow": (10, 3), "length": (10, 1)},
        "regression": {"network": (3, 4)},
        "cvae": {"posterior": (7, 6), "decoder": (6, 4)},
        "cgan": {"generator": (6, 4), "discriminator": (7, 1)},
        "mixture-density": {"network": (3, 6 * 9)},
        "best-of-k": {"network": (3, 6 * 5)},
        "diffusion": {"network": (3 + 4 + 3, 4)},
    }
    for kind, networks in sizes.items():
        model = eqx.filter_eval_shape(lambda key, kind=kind: g.make_model(key, kind, x, y, **numbers), KEY)
        assert model.learning_rate == 0.25
        assert passes.get(kind) == getattr(model, "passes", None)
        for name, (inputs, outputs) in networks.items():
            weights = getattr(model, name).weights
            assert (weights[0].shape, weights[-1].shape) == ((5, inputs), (outputs, 5)), (kind, name)
            assert len(weights) == (2 if name in ("encoder", "length") else 3)


def infos_of(risen, flow=(0.0,), copy=(1.0,)):
    nothing = np.zeros(len(risen))
    rest = {"length_loss": nothing, "cost": nothing, "status": nothing.astype(int)}
    return g.LatentFlowInfo(nothing, nothing, np.asarray(risen), np.asarray(flow), np.asarray(copy), **rest)


@pytest.mark.parametrize(
    ("risen", "share"),
    [
        ([1.0] * 9 + [0.5] * 3, None),  # the last quarter decides, and a half is not more
        ([0.0] * 9 + [0.6, 0.5, 0.5], "53%"),
        ([0.0, 1.0, 0.51], "51%"),  # of fewer than four steps the last
        ([1.0, 1.0, 0.5], None),
    ],
)
def test_a_descent_is_judged_by_its_last_quarter(monkeypatch, risen, share):
    from laureate.generative import latent_flow

    monkeypatch.setattr(latent_flow, "_curvature", lambda *_: 4.0)
    model = g.make_model(KEY, "latent-flow", np.zeros((3, 1)), np.zeros((3, 1)), width=2)
    ask = lambda: model.hooks.after_training(KEY, None, np.zeros((3, 1)), np.zeros((3, 1)), infos_of(risen))  # noqa: E731  # pyright: ignore
    if share is None:
        ask()
        return
    with pytest.raises(g.InnerDivergenceError, match=rf"got 0\.5, with which it rises for {share}.* 1 / L = 0\.25"):
        ask()


@pytest.mark.parametrize(
    ("flow", "copy", "refused"),
    [
        ([9.0] * 18 + [0.4, 0.5], [0.1] * 18 + [0.5, 0.5], False),  # the last tenth: 0.45 beside 0.5
        ([0.0] * 18 + [0.5, 0.5], [9.0] * 18 + [0.5, 0.5], True),  # as good as standing still is not trained
        ([0.3, 0.1], [0.2, 0.2], False),  # of fewer than ten steps the last
        ([0.1, 0.3], [0.2, 0.2], True),
    ],
)
def test_a_flow_is_used_where_it_beats_standing_still(flow, copy, refused):
    model = g.make_model(KEY, "latent-flow", np.zeros((3, 1)), np.zeros((3, 1)), width=2)
    hooks, infos = model.hooks, infos_of([0.0], flow, copy)
    for allowed in ({"mode": "raw"}, {"num_moves": 0}, {"untrained": True}):
        assert hooks.before_sampling(infos, dict(allowed)) == {k: v for k, v in allowed.items() if k != "untrained"}
    if refused:
        with pytest.raises(ValueError, match="flow must be trained"):
            hooks.before_sampling(infos, {"mode": "iterated"})
    else:
        assert hooks.before_sampling(infos, {"mode": "iterated"}) == {"mode": "iterated"}


def test_imitation_reports_what_its_discriminator_does():
    """Where all states look alike and all that is shown is one other thing, whatever is drawn."""
    shown, look = np.tile([0.2, 1.0], (3, 1)).astype(np.float32), np.tile([1.5, -0.5], (2, 1)).astype(np.float32)
    world = g.FiniteEnvironment(jnp.array([[0, 1], [1, 0]]), jnp.array([1.0, 0.0]), jnp.asarray(look))
    code = lambda x: (x, jnp.full_like(x, -1.0))  # noqa: E731
    bottleneck = g.VariationalBottleneck(code, 0.5, beta=0.3, beta_rate=0.1, noise=False)
    model = g.AdversarialImitation(world, lambda x: x[0] - 2 * x[1], bottleneck, batch=4)

    def both():
        state = model.init()
        alone = model.judge.step(jax.random.key(9), jnp.asarray(shown), jnp.asarray(look), state.judge)
        return model.step(KEY, jnp.asarray(shown), state), alone

    (_, info), (judged, told) = jax.tree.map(np.asarray, jax.jit(both)())
    for name in ("loss", "margin", "accuracy", "saturated", "nats", "cost", "status"):
        np.testing.assert_allclose(getattr(info, name), getattr(told, name), rtol=1e-5, err_msg=name)
    assert (info.margin, info.accuracy) == (pytest.approx(-1.8 - 2.5), 0.0)
    assert info.regularisers[0].beta == pytest.approx(judged.regularisers[0].beta)
    assert info.regularisers[0].beta != pytest.approx(0.3)
