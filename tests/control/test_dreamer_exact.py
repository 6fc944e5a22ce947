"""DreamerV2 against closed forms, enumeration, finite differences and loops of NumPy."""

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate._core import light_options
from laureate.loops import Box, Discrete
from laureate.problems.environments import Chain
from laureate.problems.score_tables import ScoreTables
from laureate.problems.small_worlds import Crossroads, Hearth, Ledge, PointMass, Room, WalkState
from laureate.testing import KeyRecorder

QUICK: Any = {"compiler_options": light_options(0)}
RNG = np.random.default_rng(0)


def quick(function):
    return eqx.filter_jit(function, **QUICK)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# --- laws -------------------------------------------------------------------------------------------------------------


def test_one_hot_divergence_entropy_and_probability_are_those_of_enumeration():
    law = c.OneHot(2, 3)
    q, p = RNG.normal(size=(2, 6)).astype(np.float32)
    each = np.eye(3)[np.array(list(np.ndindex(3, 3)))].reshape(9, 6).astype(np.float32)
    kl, entropy, log = quick(lambda q, p: (law.kl(q, p), law.entropy(q), law.log_probability(q[None], each)))(q, p)
    both = [softmax(x.reshape(2, 3)) for x in (q, p)]
    probability = [np.outer(one[0], one[1]).reshape(-1) for one in both]
    np.testing.assert_allclose(np.exp(log), probability[0], rtol=1e-5)
    np.testing.assert_allclose(kl, np.sum(probability[0] * np.log(probability[0] / probability[1])), rtol=1e-5)
    np.testing.assert_allclose(entropy, -np.sum(probability[0] * np.log(probability[0])), rtol=1e-5)


def test_a_straight_through_draw_is_one_hot_falls_where_it_should_and_has_the_gradient_of_its_probabilities():
    law, logits = c.OneHot(2, 3), np.array([0.0, 1.0, -1.0, 2.0, 0.0, 0.5], np.float32)
    p = softmax(logits.reshape(2, 3))
    edges = np.cumsum(p, axis=1)
    noise = np.array([edges[0, 0] + 1e-3, edges[1, 1] - 1e-3], np.float32)
    row = np.arange(6, dtype=np.float32)
    value = lambda logits: (row @ law.draw(logits, jnp.asarray(noise)), law.draw(logits, jnp.asarray(noise)))  # noqa: E731
    (_, drawn), slope = quick(jax.value_and_grad(value, has_aux=True))(logits)
    assert drawn.tolist() == [0, 1, 0, 0, 1, 0]
    jacobian = [np.diag(one) - np.outer(one, one) for one in p]
    np.testing.assert_allclose(
        slope, np.concatenate([jacobian[i] @ row[3 * i : 3 * i + 3] for i in range(2)]), rtol=1e-4
    )


def test_a_choice_without_probability_is_never_drawn_whatever_the_noise():
    logits = np.array([[-np.inf, 0.0, -np.inf, 1.0, -np.inf]], np.float32)
    edge = 1 / (1 + np.e)
    noise = np.array([0.0, edge - 1e-4, edge + 1e-4, np.nextafter(np.float32(1), np.float32(0))], np.float32)
    drawn = quick(lambda noise: c.straight_through_one_hot(jnp.asarray(logits), noise))(noise)
    np.testing.assert_array_equal(np.asarray(drawn).argmax(-1), [1, 1, 3, 3])
    choices = quick(lambda key: c.Categorical(5).sample(key, jnp.broadcast_to(jnp.asarray(logits[0]), (500, 5))))
    assert set(np.asarray(choices(jax.random.key(0))).tolist()) == {1, 3}


def test_normal_laws_are_what_their_densities_say():
    mean, raw = 0.4, -1.5
    stats, other = np.array([mean, raw], np.float32), np.array([-0.3, 0.7], np.float32)
    normal, cut = c.DiagonalNormal(1), c.TruncatedNormal(1)
    grid = np.linspace(-1, 1, 20001)[:, None].astype(np.float32)
    noise = np.array([0.1, 0.5, 0.9], np.float32)[:, None]

    def found(stats):
        drawn = cut.draw(stats, noise)
        slope = jax.jacobian(lambda s: cut.draw(s, noise)[:, 0])(stats)
        return (
            normal.kl(stats, other),
            normal.entropy(stats),
            cut.log_probability(stats, grid),
            cut.entropy(stats),
            drawn,
            slope,
            several(two, jnp.array([0.1, -0.6, 0.4, 1.0]), jnp.array([0.3, -0.7])),
        )

    two = jnp.array([0.4, -0.2, -1.5, 0.3])

    def several(stats, other, at):  # of two numbers: all together, then summed one by one
        whole, cutting = c.DiagonalNormal(2), c.TruncatedNormal(2)
        whole = whole.kl(stats, other), whole.entropy(stats), cutting.log_probability(stats, at), cutting.entropy(stats)
        each = jax.vmap(
            lambda s, o, a: (normal.kl(s, o), normal.entropy(s), cut.log_probability(s, a), cut.entropy(s))
        )(stats.reshape(2, 2).T, other.reshape(2, 2).T, at[:, None])
        return jnp.array([whole, [jnp.sum(one) for one in each]])

    *most, both = quick(found)(stats)
    np.testing.assert_allclose(both[0], both[1], rtol=1e-5)
    kl, entropy, log, spread, drawn, slope = (np.asarray(x, np.float64) for x in most)
    sigma = lambda raw: 2 / (1 + np.exp(-raw / 2)) + 0.1  # noqa: E731
    s, t = sigma(raw), sigma(0.7)
    np.testing.assert_allclose(kl, np.log(t / s) + (s**2 + 0.7**2) / (2 * t**2) - 0.5, rtol=1e-5)
    np.testing.assert_allclose(entropy, np.log(s * np.sqrt(2 * np.pi * np.e)), rtol=1e-5)
    at = grid[:, 0].astype(np.float64)
    density = lambda m, s: np.exp(-0.5 * ((at - np.tanh(m)) / s) ** 2)  # noqa: E731
    whole = density(mean, s) / np.trapezoid(density(mean, s), at)
    np.testing.assert_allclose(np.exp(log), whole, rtol=1e-3)
    np.testing.assert_allclose(spread, -np.trapezoid(whole * np.log(whole), at), rtol=1e-3)

    def quantiles(m, raw):  # by the sums of the density
        below = np.cumsum(density(m, sigma(raw)))
        return np.interp(noise[:, 0], below / below[-1], at)

    np.testing.assert_allclose(drawn[:, 0], quantiles(mean, raw), atol=1e-3)
    step = 1e-2
    by_mean = (quantiles(mean + step, raw) - quantiles(mean - step, raw)) / (2 * step)
    by_raw = (quantiles(mean, raw + step) - quantiles(mean, raw - step)) / (2 * step)
    np.testing.assert_allclose(slope, np.stack([by_mean, by_raw], axis=1), atol=0.02)


def test_a_mode_is_where_a_law_is_likeliest_and_a_sample_is_a_draw_of_its_noise():
    """Also where the mean that a network gives lies far beyond the bounds."""
    laws = c.OneHot(2, 3), c.DiagonalNormal(2), c.TruncatedNormal(2)
    stats = [RNG.normal(size=(5, law.size)).astype(np.float32) for law in laws]
    stats[2][:2] = [[3.0, -4.0, 0.0, 1.0], [0.1, 2.0, -3.0, -3.0]]
    grid = np.linspace(-1, 1, 2001).astype(np.float32)[1:-1]

    @quick
    def found(stats):
        key = jax.random.key(0)
        modes = [law.mode(own) for law, own in zip(laws, stats, strict=True)]
        samples = [law.sample(key, own) for law, own in zip(laws, stats, strict=True)]
        draws = [law.draw(own, law.noise(key, (5,))) for law, own in zip(laws, stats, strict=True)]
        one = c.TruncatedNormal(1)
        each = stats[2].reshape(5, 2, 2).swapaxes(1, 2)  # a row a number: of the mean and of the deviation
        return modes, samples, draws, one.log_probability(each[:, :, None], jnp.asarray(grid)[:, None])

    modes, samples, draws, log = found(stats)
    for law, mode, sample, draw in zip(laws, modes, samples, draws, strict=True):
        assert mode.shape == (5, law.width)
        np.testing.assert_array_equal(sample, draw)
    np.testing.assert_array_equal(modes[0].reshape(5, 2, 3).argmax(-1), stats[0].reshape(5, 2, 3).argmax(-1))
    np.testing.assert_array_equal(modes[0].sum(-1), 2)
    np.testing.assert_array_equal(modes[1], stats[1][:, :2])
    np.testing.assert_allclose(modes[2], grid[np.asarray(log).argmax(-1)], atol=1e-3)  # the grid's step


@pytest.mark.parametrize("law", [c.OneHot(2, 3), c.DiagonalNormal(3)])
def test_balance_scales_both_gradients_and_free_nats_hold_for_the_mean(law):
    q, p = RNG.normal(size=(2, 4, law.size)).astype(np.float32)
    p[0] = q[0]  # a row without any divergence

    def found(q, p, free):
        slopes = jax.grad(lambda q, p: c.kl_balance(law, q, p, 0.7, free)[0], (0, 1))(q, p)
        plain = jax.grad(lambda q, p: jnp.mean(law.kl(q, p)), (0, 1))(q, p)
        value, each = c.kl_balance(law, q, p, 0.7, free)
        return slopes, plain, value, each, law.kl(q, p)

    compiled = quick(found)
    slopes, plain, value, each, kl = compiled(q, p, jnp.asarray(0.0))
    np.testing.assert_allclose(slopes[0], 0.3 * plain[0], atol=1e-6)
    np.testing.assert_allclose(slopes[1], 0.7 * plain[1], atol=1e-6)
    np.testing.assert_allclose([value, *each], [np.mean(kl), *kl], rtol=1e-5)
    below = compiled(q, p, jnp.asarray(0.5 * float(np.mean(kl))))  # the mean is above it, some rows are not
    np.testing.assert_allclose(below[0][1], slopes[1], atol=1e-6)
    np.testing.assert_allclose(below[2], np.mean(kl), rtol=1e-5)  # the first row's 0 is not lifted to it
    above = compiled(q, p, jnp.asarray(2 * float(np.mean(kl))))
    assert not np.any(above[0][0])
    assert not np.any(above[0][1])
    np.testing.assert_allclose(above[2], 2 * np.mean(kl), rtol=1e-5)


# --- the model --------------------------------------------------------------------------------------------------------


def agent_of(key, law=None, **numbers):
    given = {"horizon": 3, "slow_every": 2, "model_rate": 0.01, "actor_rate": 0.02, "critic_rate": 0.03, "decay": 0.01}
    sizes = {"latent": c.OneHot(2, 3), "memory": 4, "width": 5}
    return c.make_dreamer(key, (4,), c.OneHot(1, 2) if law is None else law, **sizes, **given | numbers)


@pytest.fixture(scope="module")
def agent():
    return quick(lambda: agent_of(jax.random.key(0)))()


@pytest.fixture(scope="module")
def model(agent):
    return agent.world


def test_the_cell_is_the_code_of_the_authors_and_remembers_at_first(model):
    cell = model.rssm.cell
    x, h = RNG.normal(size=5).astype(np.float32), RNG.normal(size=4).astype(np.float32)
    weight, bias = (np.asarray(leaf) for leaf in (cell.linear.layers[0].weight, cell.linear.layers[0].bias))
    before = weight @ np.concatenate([x, h]) + bias
    before = (before - before.mean()) / np.sqrt(before.var() + 1e-5)
    reset, candidate, update = np.split(before, 3)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    update = sigmoid(update - 1)
    wanted = update * np.tanh(sigmoid(reset) * candidate) + (1 - update) * h
    zero = eqx.tree_at(lambda one: one.norm.weight, cell, jnp.zeros(12))
    found, still = quick(lambda one, two: (one(x, h), two(x, h)))(cell, zero)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(still, (1 - sigmoid(-1.0)) * h, rtol=1e-5)


def test_sequences_are_steps_one_by_one_and_an_episode_knows_nothing_of_the_one_before(model):
    rssm, key = model.rssm, jax.random.key(3)
    action, embedded = RNG.normal(size=(6, 2, 2)).astype(np.float32), RNG.normal(size=(6, 2, 5)).astype(np.float32)
    first = np.zeros((6, 2), bool)
    first[0] = first[3, 0] = True

    def found(rssm, action, embedded):
        whole = rssm.observe(key, action, embedded, first)
        noise = rssm.law.noise(key, (2, 6, 2))
        state, rows = rssm.init(2), []
        for t in range(6):
            kept = jax.tree.map(lambda leaf, t=t: leaf * ~first[t][:, None], state)
            ahead = rssm.predict(kept, action[t] * ~first[t][:, None], noise[0, t])
            state = rssm.update(ahead, embedded[t], noise[1, t])
            rows.append((state, ahead))
        return whole, jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)

    compiled = quick(found)
    whole, steps = compiled(rssm, action, embedded)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), whole, steps)
    other, seen = action.copy(), embedded.copy()
    other[:4, 0], seen[:3, 0] = 7.0, -7.0  # before the second episode of the first row, and the action that led to it
    again, _ = compiled(rssm, other, seen)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[3:, 0], b[3:, 0]), whole, again)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:, 1], b[:, 1]), whole, again)
    assert not np.array_equal(whole[0].memory[2, 0], again[0].memory[2, 0])


def test_the_loss_is_its_parts(model):
    rng = np.random.default_rng(3)
    batch = c.Sequences(
        rng.integers(0, 4, size=(4, 2, 4)).astype(np.uint8),
        rng.normal(size=(4, 2, 2)).astype(np.float32),
        rng.normal(size=(4, 2)).astype(np.float32),
        np.arange(8).reshape(4, 2) % 3 == 2,
        np.arange(4)[:, None] * np.ones((1, 2)) == 0,
    )
    numbers: Any = {"gamma": 0.9, "beta": 0.3, "alpha": 0.6, "discount_weight": 2.0}
    shades = 80 * batch.observation

    def found(model, free):
        numbers["free"] = free
        loss, (info, states) = c.world_model_loss(jax.random.key(1), model, batch, **numbers)
        posterior, prior = model.observe(jax.random.key(1), batch)
        rows = lambda net: jax.vmap(jax.vmap(net))(posterior.features)  # noqa: E731
        # The same numbers as images of 80 times as much: then integers are shades of 256.
        seeing = (lambda image: model.encoder(image.reshape(4) / 80), lambda x: model.decoder(x).reshape(1, 2, 2))
        eyes = eqx.tree_at(lambda one: (one.encoder, one.decoder), model, seeing)
        shown = batch._replace(observation=shades.reshape(4, 2, 1, 2, 2))
        _, (seen, _) = c.world_model_loss(jax.random.key(1), eyes, shown, **numbers)
        told = rows(model.decoder), rows(model.reward), rows(model.discount), seen.observation
        return loss, info, states, prior.stats, *told

    compiled = quick(found)
    loss, info, states, prior, made, reward, logit, of_images = compiled(model, jnp.asarray(0.0))
    observation = 0.5 * np.sum((made - batch.observation) ** 2, -1).mean()
    np.testing.assert_allclose(of_images, 0.5 * np.sum((made - (shades / 255 - 0.5)) ** 2, -1).mean(), 1e-4)
    rewards = 0.5 * np.mean((reward[..., 0] - batch.reward) ** 2)
    goes_on, p = 0.9 * (1 - batch.terminal), 1 / (1 + np.exp(-np.asarray(logit[..., 0])))
    discount = -np.mean(goes_on * np.log(p) + (1 - goes_on) * np.log(1 - p))
    q, p = (softmax(np.asarray(x).reshape(4, 2, 2, 3)) for x in (states.stats, prior))
    kl = np.sum(q * np.log(q / p), axis=(-1, -2)).mean()
    parts = [info.observation, info.reward, info.discount, info.kl]
    np.testing.assert_allclose(parts, [observation, rewards, discount, kl], rtol=1e-4)
    np.testing.assert_allclose(loss, observation + rewards + 2 * discount + 0.3 * kl, rtol=1e-4)
    np.testing.assert_allclose(info.posterior_entropy, -np.sum(q * np.log(q), axis=(-1, -2)).mean(), rtol=1e-4)
    np.testing.assert_allclose(info.prior_entropy, -np.sum(p * np.log(p), axis=(-1, -2)).mean(), rtol=1e-4)
    # With free nats the loss has these in place of the divergence, which is told as it is.
    lifted, told, *_ = compiled(model, jnp.asarray(kl + 1.0))
    np.testing.assert_allclose(lifted, observation + rewards + 2 * discount + 0.3 * (kl + 1), rtol=1e-4)
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-5), told, info)
    assert int(info.cost) == 8
    assert int(info.status) == 0


def test_convolutions_are_those_of_the_compiler():
    image, small = RNG.normal(size=(11, 14, 2)).astype(np.float32), RNG.normal(size=(3, 2, 2)).astype(np.float32)
    down, five, six = (RNG.normal(size=(s, s, 2, 3)).astype(np.float32) for s in (4, 5, 6))
    names = ("NHWC", "HWIO", "NHWC")

    def found():
        wanted = jax.lax.conv_general_dilated(image[None], down, (2, 2), "VALID", dimension_numbers=names)[0]
        up = [
            jax.lax.conv_transpose(small[None], k[::-1, ::-1], (2, 2), "VALID", dimension_numbers=names)[0]
            for k in (five, six)
        ]
        return [wanted, *up], [c.convolve_down(image, down), *(c.convolve_up(small, k) for k in (five, six))]

    wanted, mine = quick(found)()
    # conv_transpose without transpose_kernel correlates: mirrored, so that a point gives the kernel.
    for one, two in zip(wanted, mine, strict=True):
        assert one.shape == two.shape
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


def test_an_image_is_encoded_to_what_the_paper_says_and_decoded_to_its_own_size():
    shapes = eqx.filter_eval_shape(c.make_pixels, jax.random.key(0), (64, 64, 3), 20, depth=48)
    code = eqx.filter_eval_shape(lambda pair, x: pair[0](x), shapes, jnp.zeros((64, 64, 3), jnp.uint8))
    picture = eqx.filter_eval_shape(lambda pair, x: pair[1](x), shapes, jnp.zeros(20))
    assert code.shape == (1536,)
    assert picture.shape == (64, 64, 3)


def test_images_are_encoded_and_decoded_layer_by_layer():
    """With two convolutions each, of whatever size: shades about 0, exponential linear units but behind the last."""
    rng = np.random.default_rng(7)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    down, up = (draw(4, 4, 2, 3), draw(4, 4, 3, 2)), (draw(3, 3, 5, 4), draw(4, 4, 4, 2))
    shifts = [draw(kernel.shape[-1]) for kernel in (*down, *up)]
    linear = eqx.tree_at(
        lambda one: (one.weight, one.bias),
        eqx.filter_eval_shape(eqx.nn.Linear, 6, 5, key=jax.random.key(0)),
        (draw(5, 6), draw(5)),
    )
    image, features = rng.integers(0, 256, (11, 12, 2)).astype(np.uint8), draw(6)
    encoder = c.PixelEncoder(down, tuple(shifts[:2]))  # pyright: ignore[reportArgumentType]
    decoder = c.PixelDecoder(linear, up, tuple(shifts[2:]))  # pyright: ignore[reportArgumentType]

    @quick
    def found(image, features):
        shades = image.astype(jnp.float32) / 255 - 0.5
        first = jax.nn.elu(c.convolve_down(shades, down[0]) + shifts[0])
        code = jax.nn.elu(c.convolve_down(first, down[1]) + shifts[1])
        begin = (linear.weight @ features + linear.bias)[None, None]
        middle = jax.nn.elu(c.convolve_up(begin, up[0]) + shifts[2])
        return (encoder(image), decoder(features)), (code.reshape(-1), c.convolve_up(middle, up[1]) + shifts[3])

    mine, wanted = found(jnp.asarray(image), jnp.asarray(features))
    for one, two in zip(mine, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)
    assert np.asarray(mine[1]).min() < -1, "nothing bounds what is decoded"


def test_the_first_policy_is_uniform_and_the_first_values_are_nothing(agent):
    for network, outputs in ((agent.actor, 2), (agent.critic, 1)):
        last = network.layers[-1]
        assert last.weight.shape == (outputs, 5)
        assert not np.any(last.weight)
        assert not np.any(last.bias)


def test_first_kernels_are_as_wide_as_glorots():
    """Variances of 2 / (inputs + outputs of all places), up to five standard errors; shifts of 0."""
    encoder, decoder = quick(lambda key: c.make_pixels(key, (64, 64, 3), 20, depth=2))(jax.random.key(0))
    kernels = [*encoder.kernels, *decoder.kernels, decoder.linear.weight[None, None]]
    for kernel in map(np.asarray, kernels):
        side, _, inputs, outputs = kernel.shape
        wanted = 2 / (side**2 * (inputs + outputs))
        assert np.mean(kernel**2) == pytest.approx(wanted, rel=5 * np.sqrt(2 / kernel.size))
        assert abs(kernel.mean()) < 5 * np.sqrt(wanted / kernel.size)
    assert not any(np.any(shift) for shift in (*encoder.shifts, *decoder.shifts, decoder.linear.bias))


def test_networks_are_planned_as_their_makers_say(monkeypatch):
    """Sizes, gains of 1 and exponential linear units, without a weight."""
    from laureate.control import rssm, world_model

    for module in (rssm, world_model):
        monkeypatch.setattr(module, "make_perceptrons", lambda key, *plans: list(plans))
    law, elu = c.OneHot(2, 5), jax.nn.elu
    made: Any = c.make_world_model(jax.random.key(0), (3, 4), 6, law=law, memory=7, width=8)
    assert made.encoder.network == c.Layers((12, 8, 8), 1.0, True, elu)
    assert made.decoder.network == c.Layers((17, 8, 12), 1.0, False, elu)
    assert made.decoder.shape == (3, 4)
    assert made.reward == made.discount == c.Layers((17, 8, 1), 1.0, False, elu)
    model: Any = made.rssm
    assert model.inputs == c.Layers((16, 8), 1.0, True, elu)
    assert model.cell.linear == c.Layers((15, 21), 1.0)
    assert model.prior == c.Layers((7, 8, 10), 1.0, False, elu)
    assert model.posterior == c.Layers((15, 8, 10), 1.0, False, elu)
    assert (model.num_memory, model.num_actions, model.law, model.cell.norm.shape) == (7, 6, law, (21,))
    sizes: Any = {"law": law, "memory": 7, "width": 8, "discount": False}
    assert c.make_world_model(jax.random.key(0), (3,), 6, **sizes).discount is None
    usual: Any = c.make_world_model(jax.random.key(0), (3,), 6).rssm
    assert (usual.law, usual.num_memory) == (c.OneHot(32, 32), 64)


# --- imagination ------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A state of the line: where one is."""

    memory: jax.Array
    stats: jax.Array
    latent: jax.Array

    @property
    def features(self):
        return self.memory


class Line(eqx.Module):
    """A model whose state is a number, moved by an action."""

    law: Any = c.DiagonalNormal(1)

    def predict(self, state, action, noise):
        return Place(state.memory + action, state.stats, state.latent)


class World(eqx.Module):
    """What ``imagine`` asks of a model: rewards −s², discounts 0.9 or less."""

    rssm: Line = Line()
    discount: Any = True

    def rewards(self, features):
        return -(features[..., 0] ** 2)

    def discounts(self, features, gamma):
        return gamma * jax.nn.sigmoid(features[..., 0])


class Constant(eqx.Module):
    """An actor whose action may depend on the place by a slope."""

    stats: jax.Array
    slope: jax.Array

    def __call__(self, features):
        return self.stats + self.slope * features[0]


def dreamed(actor, mix, entropy=0.0, lam=0.8, value=0.3):
    start = Place(jnp.array([[0.2], [-0.5]]), jnp.zeros((2, 2)), jnp.zeros((2, 1)))
    law, ends = c.TruncatedNormal(1), jnp.array([False, True])
    rollout = c.imagine(jax.random.key(0), World(), actor, law, start, ends, 4, 0.9)  # pyright: ignore[reportArgumentType]
    target, values = c.imagined_returns(rollout, lambda s: value * s**2 - 0.1, lam)
    loss, spread = c.actor_loss(rollout, actor, law, target, values, mix, entropy)
    wrong = c.critic_loss(rollout, lambda s: 2 * s, target)
    return loss, (rollout, target, values, spread, wrong)


@pytest.fixture(scope="module")
def dream():
    return quick(jax.value_and_grad(dreamed, has_aux=True))


def test_returns_and_weights_of_a_dream_are_those_of_a_loop(dream):
    actor = Constant(jnp.array([0.3, -1.0]), jnp.array([0.5, 0.0]))
    (loss, (rollout, target, values, spread, wrong)), _ = dream(actor, jnp.asarray(0.25), jnp.asarray(0.7))
    s = np.asarray(rollout.features[..., 0], np.float64)
    np.testing.assert_allclose(np.diff(s, axis=0), rollout.action[1:, :, 0], atol=1e-6)
    reward, discount, value = -(s**2), 0.9 / (1 + np.exp(-s)), 0.3 * s**2 - 0.1
    discount[0] = [0.9, 0.0]  # what is known of the first
    np.testing.assert_allclose(rollout.discount, discount, rtol=1e-5)
    weight = np.stack([np.prod(discount[:t], axis=0) for t in range(5)])
    np.testing.assert_allclose(rollout.weight, weight, rtol=1e-5)
    wanted, ahead = [], value[4]
    for t in reversed(range(4)):
        ahead = reward[t] + discount[t] * (0.2 * value[t + 1] + 0.8 * ahead)
        wanted.insert(0, ahead)
    np.testing.assert_allclose(target, wanted, rtol=1e-4)
    # The loss, term by term: the action that led to t + 1, its return, the value where it was chosen.
    law, gain = c.TruncatedNormal(1), []
    stats = np.asarray(actor.stats) + np.asarray(actor.slope) * s[..., None]
    log = jax.jit(lambda stats, a: (law.log_probability(stats, a), law.entropy(stats)))(
        stats[:-2], rollout.action[1:-1]
    )
    for t in range(3):
        advantage = wanted[t + 1] - value[t]
        gain.append(weight[t] * (0.25 * log[0][t] * advantage + 0.75 * wanted[t + 1] + 0.7 * log[1][t]))
    np.testing.assert_allclose(loss, -np.mean(gain), rtol=1e-4)
    np.testing.assert_allclose(spread, np.mean(log[1]), rtol=1e-4)
    np.testing.assert_allclose(values, value, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(wrong, np.mean(weight[:-1] * 0.5 * (2 * s[:-1] - wanted) ** 2), rtol=1e-4)


class Endless(World):
    """A world that predicts no ends."""

    discount: Any = None

    def discounts(self, features, gamma):
        return c.WorldModel.discounts(self, features, gamma)  # pyright: ignore[reportArgumentType]


def test_where_no_ends_are_predicted_none_counts():
    """Not even one that is known: the discount is γ everywhere, and so are the weights its powers."""
    start = Place(jnp.array([[0.2], [-0.5]]), jnp.zeros((2, 2)), jnp.zeros((2, 1)))
    actor = lambda features: jnp.zeros(2)  # noqa: E731
    dream = lambda ends: c.imagine(jax.random.key(0), Endless(), actor, c.TruncatedNormal(1), start, ends, 3, 0.9)  # noqa: E731  # pyright: ignore[reportArgumentType]
    rollout = quick(dream)(np.array([False, True]))
    np.testing.assert_allclose(rollout.discount, np.full((4, 2), 0.9), rtol=1e-6)
    np.testing.assert_allclose(rollout.weight, 0.9 ** np.arange(4)[:, None] * np.ones(2), rtol=1e-6)


def test_only_the_critic_learns_from_its_loss():
    rng = np.random.default_rng(5)
    rollout = c.Imagined(*(rng.normal(size=(4, 2, *rest)).astype(np.float32) for rest in ((1,), (1,), (), (), ())))
    target = rng.normal(size=(3, 2)).astype(np.float32)

    def loss(slope, features, target):
        return c.critic_loss(rollout._replace(features=features), lambda s: slope * s, target)

    slopes = quick(jax.grad(loss, (0, 1, 2)))(np.float32(2.0), rollout.features, target)
    seen = rollout.features[:-1, :, 0]
    np.testing.assert_allclose(slopes[0], np.mean(rollout.weight[:-1] * (2 * seen - target) * seen), rtol=1e-4)
    assert not np.any(slopes[1])
    assert not np.any(slopes[2])


def test_the_gradient_of_the_dynamics_is_a_finite_difference_of_the_dream(dream):
    actor = Constant(jnp.array([0.3, -1.0]), jnp.zeros(2))  # does not look: no gradient is stopped
    at = lambda numbers: dream(Constant(jnp.asarray(numbers), jnp.zeros(2)), jnp.asarray(0.0), jnp.asarray(0.0))  # noqa: E731
    weights, slope = at([0.3, -1.0])[0][1][0].weight, at([0.3, -1.0])[1]

    def frozen(numbers):  # the weights have no gradient
        (_, (_, target, *_)), _ = at(numbers)
        return -np.mean(np.asarray(weights[:-2] * target[1:], np.float64))

    for number in range(2):
        step = 0.01 * np.eye(2, dtype=np.float32)[number]
        both = [frozen(np.asarray(actor.stats) + sign * step) for sign in (1, -1)]
        np.testing.assert_allclose(slope.stats[number], (both[0] - both[1]) / 0.02, rtol=0.02, atol=1e-4)


def test_gradients_of_an_actor_that_looks_are_those_of_what_it_saw_held_fixed(dream):
    """By finite differences: what the actor sees does not move with its numbers, in both kinds of gradient."""
    numbers, slope, law = np.array([0.3, -1.0], np.float32), np.array([0.5, -0.4], np.float32), c.TruncatedNormal(1)
    actor = Constant(jnp.asarray(numbers), jnp.asarray(slope))
    (_, (rollout, target, values, *_)), through = dream(actor, jnp.asarray(0.0), jnp.asarray(0.0))
    _, score = dream(actor, jnp.asarray(1.0), jnp.asarray(0.0))
    weight, seen = rollout.weight[:-2], slope * np.asarray(rollout.features[:-1])  # what each step adds to the numbers
    noise = law.noise(jax.random.split(jax.random.key(0))[0], (4, 2))
    fixed = np.asarray(target[1:] - values[:-2])

    def losses(numbers):
        moves = law.draw(numbers + seen, noise)
        place = jnp.concatenate([rollout.features[:1], rollout.features[:1] + jnp.cumsum(moves, axis=0)])[..., 0]
        value, discount = 0.3 * place**2 - 0.1, (0.9 * jax.nn.sigmoid(place)).at[0].set(jnp.array([0.9, 0.0]))
        ahead, gains = value[4], []
        for t in reversed(range(4)):
            ahead = -(place[t] ** 2) + discount[t] * (0.2 * value[t + 1] + 0.8 * ahead)
            gains.insert(0, ahead)
        log = law.log_probability(numbers + seen[:-1], rollout.action[1:-1])
        return -jnp.mean(weight * jnp.stack(gains[1:])), -jnp.mean(weight * log * fixed)

    both = quick(jax.vmap(losses))(numbers + 0.01 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32))
    for found, each in zip((through, score), both, strict=True):
        np.testing.assert_allclose(found.stats, (each[::2] - each[1::2]) / 0.02, rtol=0.02, atol=1e-4)


def test_reinforce_is_the_gradient_of_the_expected_return_by_enumeration():
    """Three states in a ring, two actions, three steps: all sequences of actions, with their probabilities."""
    reward, gamma, horizon, law = np.array([0.0, 1.0, -2.0], np.float32), 0.8, 3, c.OneHot(1, 2)
    table = RNG.normal(size=(3, 2)).astype(np.float32)
    rows = []
    for actions in itertools.product((0, 1), repeat=horizon):
        place = [0]
        for action in actions:
            place.append((place[-1] + 1 + action) % 3)
        rows.append((np.eye(3, dtype=np.float32)[place], np.eye(2, dtype=np.float32)[[0, *actions]], place, actions))
    features, action = (np.stack([row[i] for row in rows], axis=1) for i in (0, 1))
    place, actions = np.array([row[2] for row in rows]).T, np.array([row[3] for row in rows]).T
    discount = np.full(place.shape, gamma, np.float32)
    weight = gamma ** np.arange(horizon + 1, dtype=np.float32)[:, None] * np.ones_like(discount)
    rollout = c.Imagined(features, action, reward[place], discount, weight)

    def expected(table):  # the loss of every sequence, weighed by its probability
        def one(number):
            own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[:, number, None], rollout)
            actor = lambda x: x @ table  # noqa: E731
            target, values = c.imagined_returns(own, lambda x: 0.7 * x[1:2], 1.0)
            return c.actor_loss(own, actor, law, target, values, 1.0, 0.0)[0]

        log = jax.nn.log_softmax(table)[place[:-1], actions].sum(0)
        return jnp.sum(jax.lax.stop_gradient(jnp.exp(log)) * jax.vmap(one)(jnp.arange(8)))

    found = quick(jax.grad(expected))(table)

    def expected_return(moving):  # E[G_0], the last value 0.7 [state 1]; the last action, in no loss, is held fixed
        log, still = np.log(softmax(moving.astype(np.float64))), np.log(softmax(table.astype(np.float64)))
        early = log[place[:-2], actions[:-1]].sum(0) + still[place[-2], actions[-1]]
        gains = sum(gamma**t * reward[place[t]] for t in range(horizon)) + gamma**horizon * 0.7 * (place[horizon] == 1)
        return float(np.sum(np.exp(early) * gains))

    wanted = np.zeros((3, 2))
    for index in np.ndindex(3, 2):
        step = np.zeros((3, 2), np.float32)
        step[index] = 1e-3
        wanted[index] = (expected_return(table + step) - expected_return(table - step)) / 2e-3
    # Weighed by γᵗ, not γᵗ⁺¹, and the mean of two steps.
    np.testing.assert_allclose(found, -wanted / gamma / (horizon - 1), rtol=0.01, atol=1e-3)


# --- replay, learner, training ----------------------------------------------------------------------------------------


def test_a_ring_keeps_the_newest_and_no_sequence_runs_over_its_seam():
    replay = c.Replay(7, 3)
    counter = np.arange(10, dtype=np.float32)[:, None] + np.array([0.0, 100.0], np.float32)
    rows = c.Sequences(counter[..., None], counter[..., None], counter, counter < 0, counter < 0)

    def found(key):
        state = replay.init(jax.tree.map(lambda leaf: leaf[:5], rows))
        for part in (slice(0, 5), slice(5, 10)):
            state = replay.add(jax.tree.map(lambda leaf, part=part: leaf[part], rows), state)
        return replay.sample(key, 500, state), state.count

    sample, count = quick(found)(jax.random.key(0))
    reward = np.asarray(sample.reward)
    assert int(count) == 10
    np.testing.assert_array_equal(np.diff(reward, axis=0), 1)
    np.testing.assert_array_equal(sample.observation[..., 0], reward)
    number, each = np.unique(reward[0] % 100, return_counts=True)
    assert number.tolist() == [3, 4, 5, 6, 7]  # 0 … 2 were overwritten, 8 is too near the end
    assert each.min() > 60
    assert 200 < np.sum(reward[0] >= 100) < 300
    assert np.asarray(sample.first).tolist() == [[True] * 500, [False] * 500, [False] * 500]


@pytest.mark.parametrize("capacity", [3, 5])
def test_every_sequence_that_is_kept_may_be_drawn_and_no_other(capacity):
    """From the moment that there is one: of 3 rows in one way, of more in as many as fit, whatever was overwritten."""
    replay = c.Replay(capacity, 3)
    counter = np.arange(8, dtype=np.float32)[:, None]
    rows = c.Sequences(counter[..., None], counter[..., None], counter, counter < 0, counter < 0)
    add = quick(replay.add)
    draw = quick(lambda state: replay.sample(jax.random.key(0), 200, state).reward[0])
    state = replay.init(rows)
    for number in range(8):
        if number < 3:
            with pytest.raises(ValueError, match=rf"Replay\.count must be >= length = 3; got {number}\. Add more"):
                replay.sample(jax.random.key(0), 1, state)
        state = add(jax.tree.map(lambda leaf, at=number: leaf[at : at + 1], rows), state)
        if number >= 2:
            first = max(0, number + 1 - capacity)
            assert sorted(set(draw(state).tolist())) == list(range(first, number - 1))


NUMBERS = {"gamma": 0.9, "lam": 0.8, "beta": 0.3, "alpha": 0.7, "free": 0.01, "discount_weight": 2.0, "mix": 0.5}
NUMBERS |= {"entropy": 0.1, "model_rate": 0.01, "actor_rate": 0.02, "critic_rate": 0.03, "clip": 0.5, "decay": 0.01}


@pytest.fixture(scope="module")
def live(agent):
    """Four updates on a chain, as one program; the agent's numbers are its arguments."""
    traces = []

    def run(agent, key):
        traces.append(1)  # once a trace
        training = c.DreamerTraining(Chain(4, 5), agent, c.Replay(40, 4), 2, 6, 1, 3, 2)
        start = training.init(jax.random.fold_in(key, 100))

        def one(state, number):
            state, info = training.step(jax.random.fold_in(key, number), state)
            return state, (state, info)

        return start, *jax.lax.scan(one, start, jnp.arange(4))[1]

    compiled = quick(run)

    def called(**numbers):
        given = {name: jnp.asarray(value) for name, value in (NUMBERS | numbers).items()}
        pick = lambda agent: [getattr(agent, name) for name in given]  # noqa: E731
        return compiled(eqx.tree_at(pick, agent, list(given.values())), jax.random.key(1))

    return called, traces


@pytest.fixture(scope="module")
def lived(live):
    with KeyRecorder() as recorder:
        found = jax.block_until_ready(live[0]())
        assert not recorder.reused()
    return found


@pytest.mark.slow
def test_every_number_of_an_agent_counts_and_none_compiles(live, lived):
    call, traces = live
    whole = lambda states: np.concatenate([np.ravel(leaf[-1]) for leaf in jax.tree.leaves(states.learner[:4])])  # noqa: E731
    usual = whole(lived[1])
    assert np.isfinite(usual).all()
    others = {"gamma": 0.5, "lam": 0.1, "beta": 0.9, "alpha": 0.2, "free": 5.0, "discount_weight": 0.5, "mix": 0.9}
    others |= {"entropy": 0.5, "model_rate": 0.02, "actor_rate": 0.1, "critic_rate": 0.1, "clip": 0.01, "decay": 0.1}
    for name, value in others.items():
        assert not np.array_equal(whole(call(**{name: value})[1]), usual), name
    assert len(traces) == 1


def test_a_step_is_its_parts_and_an_episode_begins_without_memory(agent):
    """Rewards are transformed, the dream is in the model just learned, and its values are the slow critic's."""
    first = np.arange(4)[:, None] * np.ones((1, 2)) == 0
    numbers = [RNG.normal(size=(4, 2, *rest)).astype(np.float32) for rest in ((4,), (2,), ())]
    batch = c.Sequences(*numbers, first & False, first)  # pyright: ignore[reportCallIssue]

    def found(agent, key, slow_by, count):
        state = agent.init()
        state = state._replace(slow=jax.tree.map(lambda leaf: leaf + slow_by, state.slow), count=count)
        new, info = agent.step(key, batch, state)
        model_key, dream_key = jax.random.split(key)
        own = {name: getattr(agent, name) for name in ("gamma", "beta", "alpha", "free", "discount_weight")}
        changed = batch._replace(reward=jnp.tanh(batch.reward))
        loss, (_, posterior) = c.world_model_loss(model_key, agent.world, changed, **own)
        start, ends = jax.tree.map(lambda leaf: leaf.reshape(8, -1), posterior), jnp.zeros(8, bool)
        world, slow = eqx.combine(new.world, agent.world), eqx.combine(state.slow, agent.critic)
        rollout = c.imagine(dream_key, world, agent.actor, agent.law, start, ends, agent.horizon, agent.gamma)
        target, _ = c.imagined_returns(rollout, slow, agent.lam)
        memory = lambda by: jax.tree.map(lambda leaf: leaf + by, agent.remember(2))  # noqa: E731
        act = lambda by: agent.act(key, batch.observation[0], first[0], memory(by), state)  # noqa: E731
        acted = jax.vmap(act)(jnp.array([0.0, 3.0]))
        return (info.loss, info.target), (loss, jnp.mean(target)), acted, (new.critic, new.slow, state.slow)

    compiled = quick(found)
    mine, parts, acted, critics = compiled(agent, jax.random.key(5), jnp.asarray(0.5), jnp.asarray(3))
    jax.tree.map(np.testing.assert_array_equal, critics[1], critics[2])  # not copied, every second time
    critic, slow, _ = compiled(agent, jax.random.key(5), jnp.asarray(0.5), jnp.asarray(4))[3]
    jax.tree.map(np.testing.assert_array_equal, critic, slow)
    np.testing.assert_allclose(mine, parts, rtol=1e-4)
    jax.tree.map(lambda leaf: np.testing.assert_array_equal(leaf[0], leaf[1]), acted)


@pytest.mark.slow
def test_without_rates_nothing_but_the_slow_critic_is_copied(live):
    start, states, _ = live[0](model_rate=0.0, actor_rate=0.0, critic_rate=0.0, decay=0.0)
    for name in ("world", "actor", "critic", "slow"):
        before, after = (jax.tree.leaves(getattr(one.learner, name)) for one in (start, states))
        for one, two in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, two[-1])


def test_what_is_kept_is_what_happened(agent):
    chain = Chain(4, 5)

    def live(agent, key):
        training = c.DreamerTraining(chain, agent, c.Replay(40, 4), 2, 6, 1, 3, 2)
        start = training.init(jax.random.fold_in(key, 100))
        return jax.lax.scan(lambda state, key: training.collect(key, state), start, jax.random.split(key, 4))

    state, (ended, returns) = quick(live)(agent, jax.random.key(1))
    assert int(state.replay.count) == 37
    rows = jax.tree.map(np.asarray, state.replay.rows)
    forward, episodes, total = np.asarray(chain.forward), 0, 0.0
    for row in range(2):
        clock = 0
        assert rows.first[0, row]
        for t in range(1, 37):
            place, before = rows.observation[t, row].argmax(), rows.observation[t - 1, row].argmax()
            over = rows.terminal[t - 1, row] or clock == 5
            assert rows.first[t, row] == over
            if over:
                clock = 0
                assert place == 0
                assert rows.reward[t, row] == 0
                assert not rows.action[t, row].any()
                continue
            clock += 1
            assert rows.action[t, row].sum() == 1
            on = 1 if rows.action[t, row].argmax() == forward[before] else -1
            assert place == np.clip(before + on, 0, 3)
            assert rows.terminal[t, row] == (place == 3) == rows.reward[t, row]
            if t >= 13 and (rows.terminal[t, row] or clock == 5):
                episodes, total = episodes + 1, total + rows.reward[t, row]
    assert total > 0
    assert int(ended.sum()) == episodes
    np.testing.assert_allclose(returns.sum(), total, rtol=1e-5)


@pytest.mark.slow
def test_the_slow_critic_is_the_critic_of_the_last_copy(lived):
    start, states, infos = lived
    np.testing.assert_array_equal(infos.cost, 12)
    np.testing.assert_array_equal(infos.status, 0)
    leaves = lambda tree, at: np.concatenate([np.ravel(leaf[at]) for leaf in jax.tree.leaves(tree)])  # noqa: E731
    np.testing.assert_array_equal(states.learner.count, [1, 2, 3, 4])
    critics, slow = ([leaves(tree, at) for at in range(4)] for tree in (states.learner.critic, states.learner.slow))
    for at, copied in enumerate((0, 0, 2, 2)):  # after the first update, and every second one from there
        np.testing.assert_array_equal(slow[at], critics[copied])
    assert len({critic.tobytes() for critic in critics}) == 4
    for name in ("world", "actor"):
        before = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(getattr(start.learner, name))])
        assert not np.array_equal(before, leaves(getattr(states.learner, name), 0))


def test_the_optimiser_clips_then_moves_then_lets_weights_shrink():
    agent = eqx.filter_eval_shape(agent_of, jax.random.key(0))
    agent = eqx.tree_at(lambda a: (a.clip, a.decay), agent, (0.5, 0.1), is_leaf=lambda x: x is None)

    def found(slopes):
        optimiser, w = agent.optimiser(0.2), jnp.array([1.0, -2.0])
        state, each = optimiser.init(w), []
        for slope in slopes:
            updates, state = optimiser.update(slope, state, w)
            w = w + updates
            each.append(w)
        return jnp.stack(each)

    slopes = np.array([[3.0, 4.0], [0.1, -0.2], [0.0, 1.0]], np.float32)
    each, w, m, v = [], np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for t, slope in enumerate(slopes.astype(np.float64), 1):
        slope = slope * min(1.0, 0.5 / np.linalg.norm(slope))
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        w = 0.9 * w - 0.2 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-5)
        each.append(w)
    np.testing.assert_allclose(quick(found)(slopes), each, rtol=1e-4)


# --- worlds and scores ------------------------------------------------------------------------------------------------


def test_worlds_do_what_they_say():
    def found(key):
        ledge, room, mass = Ledge(3, 0.5), Room(4, 9).drawn(key), PointMass(3)
        falls = [
            ledge.step(key, ledge.reset(key)[0]._replace(place=jnp.asarray(p)), a)[1]
            for p, a in ((0, 0), (2, 1), (1, 1))
        ]
        near = room.reset(key)[0]._replace(place=jnp.stack([room.goal // 4, room.goal % 4 - 1]))
        into = room.step(key, near, 0)[1]
        late = [room.step(key, room.reset(key)[0]._replace(clock=jnp.asarray(at)), 3)[1].truncated for at in (7, 8)]
        pushed = mass.step(
            key, mass.reset(key)[0]._replace(place=jnp.asarray(0.5), clock=jnp.asarray(2)), jnp.array([2.0])
        )
        pictures = Crossroads(4).draw(key, 3, 200)
        return falls, (into, room.goal, late), pushed, (pictures, Crossroads(4).ends), ScoreTables(4000).draw(key)

    falls, (into, goal, late), (state, pushed), (pictures, ends), table = quick(found)(jax.random.key(0))
    assert [bool(one.terminated) for one in falls] == [True, True, False]
    np.testing.assert_allclose([one.reward for one in falls], [0, 0, 0.5])
    assert [int(one.observation.argmax()) for one in falls] == [3, 3, 2]
    assert bool(into.terminated) == (int(goal) % 4 > 0)
    assert [bool(one) for one in late] == [False, True]
    assert int(goal) // 4 + int(goal) % 4 >= 4
    assert float(state.speed) == pytest.approx(0.4)
    assert bool(pushed.truncated)
    assert not bool(pushed.terminated)
    np.testing.assert_allclose(pushed.reward, np.exp(-8 * 0.62**2), rtol=1e-4)
    assert (pictures[0] == pictures[2]).all()
    assert (pictures[0, :, 4] == 1).all()
    np.testing.assert_allclose(np.mean(pictures[1], axis=0) @ np.asarray(ends).T, 0.25, atol=0.12)
    ratio = np.asarray(table.scores)
    assert abs(np.log(np.median(ratio) / 2.15)) < 0.1
    assert abs(np.log(ratio.mean() / 11.33)) < 0.35


def test_a_hearth_warms_who_stands_there_and_its_best_is_that_of_dynamic_programming():
    """V_k(s) = max_a r(s') + V_{k−1}(s') over all cells and actions, by what ``step`` says of each."""
    side, limit = 3, 5
    cells = np.stack(np.divmod(np.arange(side**2), side), axis=-1)

    def found(key):
        hearth = Hearth(side, limit, bright=2.5).drawn(key)
        at = lambda place, action: hearth.step(key, WalkState(place, jnp.asarray(limit - 1)), action)  # noqa: E731
        state, timestep = jax.vmap(lambda place: jax.vmap(lambda a: at(place, a))(jnp.arange(5)))(jnp.asarray(cells))
        starts = jax.vmap(hearth.reset)(jax.random.split(key, 900))[0].place
        early = hearth.step(key, WalkState(jnp.asarray(cells[0]), jnp.asarray(limit - 2)), 4)[1].truncated
        drawn = jax.vmap(lambda one: Hearth(side, limit).drawn(one).warm)(jax.random.split(key, 900))
        return hearth.warm, hearth.best(), state, timestep, early, starts, drawn

    warm, best, state, timestep, early, starts, drawn = quick(found)(jax.random.key(3))
    reached = np.asarray(state.place) @ np.array([side, 1])
    steps = np.abs(np.asarray(state.place) - cells[:, None]).sum(-1)
    assert (steps[:, 4] == 0).all()
    assert steps[4, :4].tolist() == [1, 1, 1, 1]  # from the middle
    assert steps.sum() == 2 * 2 * side * (side - 1)  # and walls stop
    np.testing.assert_array_equal(timestep.reward, reached == int(warm))
    np.testing.assert_allclose(timestep.observation, 2.5 * np.eye(side**2)[reached])
    assert timestep.truncated.all()
    assert not bool(early)
    assert not timestep.terminated.any()
    value = np.zeros(side**2)
    for _ in range(limit):
        value = ((reached == int(warm)) + value[reached]).max(1)
    assert float(best) == pytest.approx(value.mean(), rel=1e-6)
    for place in (np.asarray(starts) @ np.array([side, 1]), np.asarray(drawn)):  # all cells as likely
        np.testing.assert_allclose(np.bincount(place, minlength=side**2) / 900, 1 / 9, atol=4.5 * np.sqrt(8 / 81 / 900))


def test_aggregates_are_means_medians_and_clipped_means():
    scores, nothing, gamer = (
        np.array([3.0, 1.0, 12.0, 2.0], np.float32),
        np.ones(4, np.float32),
        np.full(4, 3.0, np.float32),
    )
    names = ("gamer-median", "gamer-mean", "record-mean", "clipped-record-mean")
    seeds = np.stack([scores, [9.0, 5.0, 3.0, 1.0], [2.0, 7.0, 2.0, 4.0]])  # a row each
    below = 1 - scores  # an agent that is worse than nothing: an influence is a share all the same
    both = quick(
        lambda: [
            (
                c.aggregate_scores(seeds, nothing, gamer, how),
                [c.top_influence(each, nothing, gamer, how) for each in (scores, below)],
            )
            for how in names
        ]
    )()
    normal = (seeds - 1) / 2
    clipped = np.minimum(normal, 1)
    for (value, influences), table, mean in zip(
        both, (normal, normal, normal, clipped), (np.median, *[np.mean] * 3), strict=True
    ):
        np.testing.assert_allclose(value, [mean(x) for x in table], rtol=1e-5)
        for x, influence in zip((table[0], (below - 1) / 2), influences, strict=True):
            wanted = max(abs(mean(np.delete(x, i)) - mean(x)) for i in range(4)) / abs(mean(x))
            assert float(influence) == pytest.approx(wanted, rel=1e-4)


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: c.OneHot(2, 1), "OneHot.num_classes must be >= 2; got 1"),
        (lambda: c.DiagonalNormal(0), "DiagonalNormal.num must be >= 1"),
        (lambda: c.TruncatedNormal(0), "TruncatedNormal.num must be >= 1"),
        (
            lambda: c.kl_balance(c.OneHot(1, 2), jnp.zeros(2), jnp.zeros(2), 1.2),
            "kl_balance.alpha must be within 0 and 1",
        ),
        (lambda: c.Replay(3, 4), "Replay.capacity must be >= length = 4; got 3"),
        (lambda: agent_of(jax.random.key(0), horizon=1), "DreamerV2.horizon must be >= 2; got 1"),
        (lambda: agent_of(jax.random.key(0), gamma=1.0), r"DreamerV2.gamma must be in \[0, 1\); got 1.0"),
        (lambda: agent_of(jax.random.key(0), lam=1.1), "DreamerV2.lam must be within 0 and 1"),
        (lambda: agent_of(jax.random.key(0), beta=-1.0), "DreamerV2.beta must be >= 0"),
        (lambda: agent_of(jax.random.key(0), mix=2.0), "DreamerV2.mix must be within 0 and 1"),
        (lambda: c.make_pixels(jax.random.key(0), (32, 32, 3), 4), "make_pixels.shape must be"),
        (
            lambda: c.DreamerTraining(Chain(4), agent_of(jax.random.key(0), c.OneHot(1, 3)), c.Replay(8, 4), 1, 4),
            "learner.law",
        ),
        (
            lambda: c.DreamerTraining(Chain(4), agent_of(jax.random.key(0)), c.Replay(8, 8), 1, 4),
            "num_warmup must be >= 2",
        ),
        (
            lambda: c.aggregate_scores(np.ones(2), np.ones(2), np.ones(2), "gamer-mean"),  # pyright: ignore[reportArgumentType]
            "nowhere 0",
        ),
    ],
)
def test_wrong_settings_say_what_is_wrong(call, said):
    with pytest.raises(ValueError, match=said):
        eqx.filter_eval_shape(call)


class Bounds(eqx.Module):
    """Spaces of an environment, and nothing else."""

    action_space: Any
    observation_space: Any = Box((4,))


def pushing(low, high):
    agent = eqx.filter_eval_shape(agent_of, jax.random.key(0), c.TruncatedNormal(2))
    return c.DreamerTraining(Bounds(Box((2,), low, high)), agent, c.Replay(8, 4), 1, 4)


def test_actions_are_stretched_to_bounds_which_must_be_finite():
    np.testing.assert_allclose(pushing(-2.0, 4.0).decode(jnp.array([-1.0, 0.5])), [-2.0, 2.5])
    with pytest.raises(ValueError, match=r"environment\.action_space must be bounded; got \(-2\.0, inf\)"):
        pushing(-2.0, float("inf"))
    agent = eqx.filter_eval_shape(agent_of, jax.random.key(0), c.OneHot(2, 4))
    with pytest.raises(ValueError, match=r"learner\.law must be of the environment's 4 choices"):
        c.DreamerTraining(Bounds(Discrete(4)), agent, c.Replay(8, 4), 1, 4)


def test_sequences_and_images_that_cannot_be_learned_from_are_refused(model):
    zeros = np.zeros((3, 2), np.float32)
    batch = c.Sequences(zeros[..., None], zeros[..., None], zeros, zeros > 0, np.arange(6).reshape(3, 2) < 2)
    c.check_sequences(batch)
    wrong = zeros.copy()
    wrong[1, 1] = np.nan
    with pytest.raises(ValueError, match=r"reward must be finite; got 1\. The first that is not: step 1 of sequence 1"):
        c.check_sequences(batch._replace(reward=wrong))
    with pytest.raises(ValueError, match=r"Sequences\.first must be true in the first step"):
        c.world_model_loss(jax.random.key(0), model, batch._replace(first=zeros > 0))
    seeing = eqx.tree_at(lambda one: one.encoder, model, c.PixelEncoder((), ()))
    with pytest.raises(ValueError, match=r"floats within -0\.5 and 0\.5; got 255"):
        seeing.embed(np.full((2, 3, 3, 1), 255.0, np.float32))
    seen = Bounds(Discrete(2), Box((3, 3, 1), 0.0, 255.0))
    agent = eqx.filter_eval_shape(agent_of, jax.random.key(0))
    agent = eqx.tree_at(lambda one: one.world.encoder, agent, c.PixelEncoder((), ()))
    with pytest.raises(ValueError, match=r"observation_space must be uint8, or floats within"):
        c.DreamerTraining(seen, agent, c.Replay(8, 4), 1, 4)


def test_wrong_kinds_of_input_say_what_is_wrong(model):
    state = eqx.filter_eval_shape(lambda: model.rssm.init(1))
    with pytest.raises(TypeError, match="one-hot where discrete; got int32"):
        eqx.filter_eval_shape(model.rssm.predict, state, jnp.zeros((1, 2), jnp.int32), jnp.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"uint8, or floats within -0\.5 and 0\.5; got 255"):
        c.PixelEncoder((), ())(np.full((2, 2, 1), 255.0, np.float32))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"DreamerV2\.law must be OneHot or TruncatedNormal"):
        eqx.filter_eval_shape(lambda: c.DreamerV2(model, None, None, c.Gaussian(2)))  # pyright: ignore[reportArgumentType]
