"""The terms of KnockoffGAN by hand, and one small training."""

import contextlib
import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.selection import GaussianKnockoffs, KnockoffGAN, RefinedKnockoffs, critic_loss, information, swap_loss
from laureate.selection import gan as gan_module
from laureate.selection.gan import FittedKnockoffGAN, _Base, _correlations, _Draw, _layers, _network, _Players, _Terms
from laureate.selection.gaussian import SecondOrderKnockoffs
from laureate.selection.losses import hints, moment_gap
from laureate.testing import KeyRecorder

KEY = jax.random.key(0)


def test_the_swap_loss_by_hand():
    x, knockoff = jnp.array([[1.0, 2.0]]), jnp.array([[3.0, 4.0]])
    s, b = jnp.array([[True, False]]), jnp.array([[False, True]])
    seen = {}

    def logits(u, hint):
        seen.update(u=u, hint=hint)
        return jnp.array([[1.0, -2.0]])

    total, asked = swap_loss(logits, x, knockoff, s, b, 0.5)
    expected = np.log(1 / (1 + np.exp(-1.0)))  # variable 0 alone is asked; it was swapped, and D gives it sigmoid(1)
    assert float(total) == pytest.approx(expected, rel=1e-6)
    assert float(asked) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_array_equal(seen["u"], [[3.0, 2.0, 1.0, 4.0]])
    np.testing.assert_array_equal(seen["hint"], [[0.5, 0.0]])
    np.testing.assert_array_equal(hints(jnp.array([True, True]), jnp.array([True, False]), 0.25), [1.0, 0.25])


def test_what_is_revealed_is_not_asked():
    """O7: the loss does not change with D's answers on revealed coordinates."""
    x, knockoff = jax.random.normal(KEY, (2, 8, 3))
    s = jax.random.bernoulli(KEY, 0.5, (8, 3))
    b = jnp.array([True, False, True])[None] & jnp.ones((8, 1), bool)
    slope = jax.grad(lambda out: swap_loss(lambda u, h: out, x, knockoff, s, b)[0])(jnp.ones((8, 3)))
    np.testing.assert_array_equal(slope[:, [0, 2]], 0.0)
    assert (np.asarray(slope[:, 1]) != 0).all()


@pytest.mark.slow
def test_no_discriminator_beats_log_two_on_exact_knockoffs():
    """O6: trained on exact knockoffs, its loss on fresh rows is at least log 2 - 0.01 a coordinate."""
    sigma = 0.5 ** jnp.abs(jnp.subtract(*jnp.meshgrid(jnp.arange(4.0), jnp.arange(4.0))))
    sampler, root = GaussianKnockoffs(jnp.zeros(4), sigma), jnp.linalg.cholesky(sigma)
    optimiser = optax.adam(3e-3)

    def loss(layers, key, wrong):
        a, b, c, d = jax.random.split(key, 4)
        x = jax.random.normal(a, (256, 4)) @ root.T
        knockoff = jnp.where(wrong, jax.random.normal(b, x.shape), sampler.sample(b, x))
        s, told = jax.random.bernoulli(c, 0.5, x.shape), jax.random.bernoulli(d, 0.5, x.shape)
        play = lambda u, h: _network(layers, jnp.concatenate([u, h], -1), jnp.tanh)  # noqa: E731
        return -swap_loss(play, x, knockoff, s, told)[1]

    @jax.jit
    def trained(wrong):
        def step(carry, i):
            layers, state = carry
            updates, state = optimiser.update(jax.grad(loss)(layers, jax.random.fold_in(KEY, i), wrong), state)
            return (optax.apply_updates(layers, updates), state), None

        layers = _layers(KEY, [12, 16, 4])
        (layers, _), _ = jax.lax.scan(step, (layers, optimiser.init(layers)), jnp.arange(600))
        return jnp.mean(jax.vmap(lambda i: loss(layers, jax.random.fold_in(KEY, 10_000 + i), wrong))(jnp.arange(40)))

    assert float(trained(False)) > np.log(2) - 0.01
    assert float(trained(True)) < np.log(2) - 0.01  # and it can find what is wrong


def test_the_gradient_penalty_of_a_unit_slope_is_nothing():
    """O11."""
    draw = np.random.default_rng(0)
    x, knockoff = draw.normal(size=(2, 16, 3)).astype(np.float32)
    direction, mix = np.array([0.6, 0.8, 0.0], np.float32), draw.uniform(size=(16, 1)).astype(np.float32)
    found = critic_loss(lambda v: v @ direction, x, knockoff, mix)
    assert float(found) == pytest.approx(float(jnp.mean((x - knockoff) @ direction)), abs=1e-5)
    steep = critic_loss(lambda v: 3.0 * v @ direction, x, knockoff, mix)
    assert float(steep) == pytest.approx(3 * float(jnp.mean((x - knockoff) @ direction)) - 10 * 4, abs=1e-3)


def test_mine_of_a_constant_is_nothing_and_of_anything_at_most_log_n():
    """O12."""
    x, knockoff = jax.random.normal(KEY, (2, 50, 3))
    constant = information(lambda a, b: 0 * a + 7.0, x, knockoff, x[::-1])
    np.testing.assert_allclose(constant, 0, atol=1e-5)
    # T that knows the pair: 40 on the joint, and 40 on the one row that the shuffle left in place.
    known = information(lambda a, b: jnp.where(a == b, 40.0, -40.0), x, x, jnp.roll(x, 1, 0).at[0].set(x[0]))
    np.testing.assert_allclose(known, np.log(50), rtol=1e-4)


@pytest.mark.slow
def test_the_gap_of_moments_is_zero_on_average_for_knockoffs_alone():
    sigma = jnp.array([[1.0, 0.6], [0.6, 1.0]])
    sampler = GaussianKnockoffs(jnp.zeros(2), sigma)

    def one(key):
        x = jax.random.normal(key, (200, 2)) @ jnp.linalg.cholesky(sigma).T
        return moment_gap(x, sampler.sample(jax.random.fold_in(key, 1), x)), moment_gap(x, jnp.roll(x, 1, 0))

    good, bad = (np.asarray(v) for v in jax.jit(jax.vmap(one))(jax.random.split(KEY, 400)))
    assert abs(good.mean()) < 4 * good.std() / 20
    assert (good < 0).any()  # halves are multiplied: no bias of a square
    assert bad.mean() > 0.1


SMALL = {"num_steps": 20, "batch": 16, "num_checkpoints": 2}


QUICK = {"xla_backend_optimization_level": 0}  # compiling is all the time these take
TRACES = []


def _fit(key, gan, x):
    TRACES.append(x.shape)
    return gan.fit(key, x)


options: dict[str, Any] = {"compiler_options": QUICK}
fit = eqx.filter_jit(_fit, **options)


sample = eqx.filter_jit(lambda sampler, x: sampler.sample(jax.random.key(1), x))


def fitted(gan, x):
    """One program for all settings that are numbers."""
    return fit(KEY, jax.tree.map(jnp.asarray, gan), x)


@pytest.mark.slow
def test_training_is_by_key_moves_the_networks_and_numbers_do_not_retrace():
    x = jax.random.normal(KEY, (60, 3))
    first, again = fitted(KnockoffGAN(**SMALL), x), fitted(KnockoffGAN(**SMALL), x)
    drawn = sample(first, x)
    np.testing.assert_array_equal(drawn, sample(again, x))
    assert drawn.shape == (60, 3)
    assert np.isfinite(drawn).all()
    assert first.history.swap.shape == (2,)
    assert first.history.accuracy.shape == (0,)
    released = KnockoffGAN.released(**SMALL)
    assert (released.power, released.hidden, released.uniform) == (0.01, 0.0, 0.0)
    strong = eqx.tree_at(lambda g: (g.power, g.learning_rate), KnockoffGAN(**SMALL), (50.0, 1e-2))
    assert not np.allclose(fitted(strong, x).generator[0][0], first.generator[0][0])
    assert TRACES.count((60, 3)) == 1


def test_the_order_of_the_three_rivals_cannot_matter():
    """D, f and T see the same minibatch and no other's parameters: the gradient of one term by another's is 0."""
    gan = KnockoffGAN(**SMALL)
    players, rows = gan._init(KEY, 3), jax.random.normal(KEY, (30, 3))
    draw = gan._draw(KEY, rows, 0.9)

    def terms(rivals):
        found = gan._terms(players.with_rivals(rivals), draw, draw.other)
        return jnp.stack([found.swap, found.critic, jnp.sum(found.information)])

    slopes = jax.tree.map(np.asarray, jax.jit(jax.jacrev(terms), compiler_options=QUICK)(players.rivals))
    for term in range(3):
        for rival in range(3):
            size = sum(float(np.abs(leaf[term]).max()) for leaf in jax.tree.leaves(slopes[rival]))
            assert (size > 0) == (term == rival)


def test_correlations_are_numpys():
    x, knockoff = np.random.default_rng(0).normal(size=(2, 40, 3)) + np.arange(6).reshape(2, 1, 3)
    knockoff = 3 * knockoff + x
    wanted = [np.corrcoef(a, b)[0, 1] for a, b in zip(x.T, knockoff.T, strict=True)]
    np.testing.assert_allclose(jax.jit(_correlations)(x, knockoff), wanted, atol=1e-4)


def test_one_update_reports_its_terms_moves_the_generator_and_uses_no_key_twice():
    """At a rate of next to nothing the rivals are as they began when G is asked, and so are the terms it reports."""
    x = np.random.default_rng(1).normal(size=(24, 2)).astype(np.float32)
    gan = KnockoffGAN(num_steps=1, num_checkpoints=1, batch=8, num_inner_steps=2)

    def at_rate(rate):
        return fit(KEY, jax.tree.map(jnp.asarray, eqx.tree_at(lambda g: g.learning_rate, gan, rate)), x)

    @functools.partial(jax.jit, **options)
    def begun(key):
        order_key, base_key, init_key, train_key, _ = jax.random.split(key, 5)
        rows = jnp.asarray((x - x.mean(0)) / x.std(0))[jax.random.permutation(order_key, 24)]
        base = _Base.of(SecondOrderKnockoffs("mvr", shrinkage="ledoit-wolf").fit(base_key, rows))
        players = gan._init(init_key, 2)
        draw = gan._draw(jax.random.fold_in(jax.random.fold_in(train_key, 0), 1_000_003), rows, 0.0)
        knockoff = gan._generate(players.generator, base, draw)
        terms = gan._terms(players, draw, knockoff)
        return players.generator, terms, moment_gap(draw.x, knockoff)

    with KeyRecorder() as recorder:
        still = at_rate(1e-30)
        assert recorder.reused() == []
    generator, terms, gap = jax.tree.map(np.asarray, begun(KEY))
    jax.tree.map(lambda new, old: np.testing.assert_allclose(new, old, atol=1e-20), still.generator, generator)
    reported = [float(value[0]) for value in still.history[:4]]
    wanted = [terms.asked, terms.critic, terms.information.mean(), gap]
    np.testing.assert_allclose(reported, wanted, rtol=1e-3, atol=1e-5)
    moved = at_rate(1e-2).generator
    assert all(
        np.abs(new - old).max() > 1e-4 for new, old in zip(*map(jax.tree.leaves, (moved, generator)), strict=True)
    )


def test_the_validity_test_of_a_checkpoint_uses_no_key_twice():
    """Noise, draw and judge have keys of their own. Both states meet the same draws: they differ by the generator."""
    x = np.random.default_rng(1).normal(size=(24, 2)).astype(np.float32)
    with KeyRecorder() as recorder:
        found = fit(KEY, KnockoffGAN(num_steps=1, num_checkpoints=1, batch=8, num_inner_steps=1, validation=0.5), x)
        assert all(used.endswith(", 2 times") for used in recorder.reused())  # never by two kinds of draws
    assert found.history.accuracy.shape == (2,)


def test_a_game_of_numbers_is_played_as_written(monkeypatch):
    """One number for each network and slopes of 1: Adam then moves by the rate, up for the rivals, down for G.

    So all that training decides is known: which keys it draws from, whom G answers, what a checkpoint reports, and
    which of its states is kept: the best of all, however they come, by accuracies that the rows kept back hold.
    """
    parts, each, inner, rate = 2, 12, 2, 0.25  # of twelve steps the last ten are reported
    drawn: list[tuple[Any, ...]] = []

    def draw(self, key, rows, revealed):
        bits = jax.random.key_data(key)
        jax.debug.callback(lambda bits, share: drawn.append((*bits.tolist(), float(share))), bits, revealed)
        return _Draw(*[(bits[-1] % 1024).astype(float)] * len(_Draw._fields))

    def terms(self, players, draw, knockoff):
        still = jax.lax.stop_gradient(knockoff)
        return _Terms(
            players.discriminator + knockoff, players.discriminator, players.critic + still, players.power + draw.x
        )

    def judge(key, held, knockoff, *others):
        return (jnp.interp(-jnp.mean(knockoff) / (rate * each), jnp.arange(3.0), held[:3, 0]),)

    for owner, name, stub in (
        (KnockoffGAN, "_draw", draw),
        (KnockoffGAN, "_terms", terms),
        (KnockoffGAN, "_noise", lambda self, key, shape: jnp.zeros(shape)),
        (KnockoffGAN, "_generate", lambda self, generator, base, draw: generator + 0.0 * draw.x),
        (gan_module, "_critic", lambda critic, knockoff: 0.0 * knockoff),
        (gan_module, "_correlations", lambda x, knockoff: knockoff),
        (gan_module, "moment_gap", lambda x, knockoff: knockoff),
        (gan_module, "discrimination", judge),
    ):
        monkeypatch.setattr(owner, name, stub)

    @functools.partial(jax.jit, **options)
    def train(key, accuracies, simultaneous):
        gan = KnockoffGAN(
            simultaneous=simultaneous,
            num_inner_steps=inner,
            learning_rate=rate,
            num_steps=parts * each,
            num_checkpoints=parts,
        )
        start, held = _Players(*jnp.zeros(4)), jnp.resize(accuracies, (8, 1))
        base = _Base(*jnp.zeros(4))
        return gan._train(key, jax.random.key(1), start, base, held, held, None)

    steps = np.arange(parts * each).reshape(parts, each)
    for number, accuracies in enumerate(itertools.permutations((0.1, 0.3, 0.5))):
        drawn.clear()
        simultaneous = float(number % 2)
        found, history = jax.tree.map(np.asarray, train(KEY, jnp.array(accuracies), simultaneous))
        assert float(found) == pytest.approx(-rate * each * accuracies.index(0.1), abs=1e-4)
        jax.effects_barrier()
        assert len(set(drawn)) == len(drawn)  # no minibatch twice
        assert sorted(share for *_, share in drawn) == pytest.approx([0.0] * steps.size + [0.9] * inner * steps.size)
        told = np.reshape([bits % 1024 for _, bits, share in drawn if share == 0], steps.shape)
        rivals = rate * inner * (steps + (not simultaneous))
        rows = rivals, rivals - rate * steps, rivals + told, -rate * steps
        for name, values in zip(history._fields, rows, strict=False):
            np.testing.assert_allclose(getattr(history, name), values[:, -10:].mean(1), atol=1e-3, err_msg=name)
        np.testing.assert_allclose(history.accuracy, accuracies, atol=1e-3)


def test_rows_are_kept_back_where_the_validity_test_can_use_them(monkeypatch):
    """As many as asked for, by no row twice; where they are too few for the test all rows train, and that is told."""
    x, parts = np.random.default_rng(1).normal(size=(32, 2)).astype(np.float32), []

    def train(self, key, test_key, players, base, rows, held, progress):
        parts.append((len(rows), len(held)))
        return players.generator, None

    monkeypatch.setattr(KnockoffGAN, "_train", train)
    for validation, told in ((0.0, ""), (0.25, ""), (0.6, ""), (0.2, "keeps 6 of 32"), (0.01, "keeps 0 of 32")):
        gan = KnockoffGAN(validation=validation)
        with pytest.warns(UserWarning, match=told) if told else contextlib.nullcontext():
            eqx.filter_eval_shape(lambda key, gan=gan: gan.fit(key, x).generator, KEY)
    assert parts == [(32, 0), (24, 8), (13, 19), (32, 0), (32, 0)]
    # What draws is what was trained: with the same activation, start and noise.
    for activation, start, uniform in (("tanh", 0.0, 1.0), ("relu", 0.3, 0.0), ("relu", 1.0, 0.4)):
        gan = KnockoffGAN(activation=activation, start=start, uniform=uniform)
        drawer = eqx.filter_eval_shape(lambda key, gan=gan: gan.fit(key, x), KEY)
        assert (drawer.activation, drawer.start, drawer.uniform) == (activation, start, uniform)


@pytest.mark.parametrize("n", [6, 7])
def test_the_gap_of_moments_by_hand_in_odd_batches_too(n):
    """Gaps of means, of covariances and of cross-covariances of (x, x²), off the diagonals: of two halves, multiplied.

    Of an odd batch the last row is in neither half.
    """
    x, knockoff = np.random.default_rng(n).normal(size=(2, n, 2)).astype(np.float32) * [1.0, 2.5]
    v, w = (np.hstack([a, np.clip(a**2 - 1, -1, 8) / np.sqrt(2)]) for a in (x, knockoff))
    halves = []
    for rows in (slice(0, 3), slice(3, 6)):
        one, other = v[rows], w[rows]
        cross = (one.T @ one - one.T @ other) / 3
        cross[np.arange(4), np.arange(4)] = 0  # a variable with its own knockoff, and with its square
        cross[[0, 1, 2, 3], [2, 3, 0, 1]] = 0
        halves.append([(one - other).mean(0), (one.T @ one - other.T @ other) / 3, cross])
    wanted = sum(np.sum(a * b) for a, b in zip(*halves, strict=True)) / 2
    assert float(jax.jit(moment_gap)(x, knockoff)) == pytest.approx(wanted, rel=1e-4)


def test_noise_is_of_the_kind_asked_for_and_no_key_is_used_twice():
    noise = functools.partial(jax.jit, **options)(lambda key, kind: KnockoffGAN(uniform=kind)._noise(key, (400, 2)))
    with KeyRecorder() as recorder:
        uniform = np.asarray(noise(KEY, 1.0))
        assert recorder.reused() == []
        assert len(recorder.uses) == 3  # the split, uniform and normal
    normal = np.asarray(noise(KEY, 0.0))
    assert 0 <= uniform.min() < 0.01
    assert 0.99 < uniform.max() <= 1
    assert abs(normal.mean()) < 4 / np.sqrt(800)
    assert normal.std() == pytest.approx(1, abs=4 / np.sqrt(1600))


def test_without_a_correction_it_draws_the_gaussian_knockoffs_of_its_third_key():
    sigma = np.array([[1.0, 0.6, 0.2], [0.6, 1.0, 0.5], [0.2, 0.5, 1.0]])
    x, mean, scale = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32), np.ones(3), np.arange(1.0, 4.0)

    @functools.partial(jax.jit, **options)
    def both(key):
        law = GaussianKnockoffs(jnp.array([0.1, -0.2, 0.3]), jnp.asarray(sigma), "equi")
        nothing = jax.tree.map(jnp.zeros_like, KnockoffGAN()._init(key, 3).generator)
        place = map(jnp.asarray, (mean, scale, 1.0, 0.0))
        found = FittedKnockoffGAN(nothing, _Base.of(law), *place, None).sample(key, mean + scale * x)  # pyright: ignore
        return found, law.sample(jax.random.split(key, 3)[2], x)

    found, wanted = both(KEY)
    np.testing.assert_allclose(found, mean + scale * np.asarray(wanted), atol=1e-4)


@pytest.mark.slow
def test_what_corrects_starts_as_second_order_knockoffs():
    """With a learning rate of next to nothing the corrected ones are Gaussian knockoffs."""
    x = jax.random.normal(KEY, (2000, 3)) @ jnp.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    sampler = RefinedKnockoffs(**(SMALL | {"learning_rate": 1e-12}))
    found = fitted(sampler, x)
    assert found.history.accuracy.shape == (3,)
    drawn = np.asarray(sample(found, x))
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(np.asarray(x).T), atol=0.15)
    assert np.abs(np.corrcoef(drawn.T, np.asarray(x).T)[0, 4] - np.corrcoef(np.asarray(x).T)[0, 1]) < 0.1
