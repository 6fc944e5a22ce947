"""Attacks against literal loops and finite differences of what they say they make large."""

from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.ndimage

from laureate import robustness as r
from laureate._core import Status
from laureate.testing import KeyRecorder

RNG = np.random.default_rng(0)
SIDE, CLASSES, BATCH = 4, 3, 3
IMAGES = RNG.uniform(0.25, 0.85, size=(BATCH, SIDE, SIDE, 1))
DELTA = RNG.uniform(-0.1, 0.1, size=IMAGES.shape)
LABELS = np.array([0, 2, 1])
INNER, OUTER = RNG.normal(size=(SIDE * SIDE, 8)), RNG.normal(size=(8, CLASSES))
PLAYERS = r.grid_players((SIDE, SIDE), 2)
KEY = jax.random.key(7)


@pytest.fixture(autouse=True)
def in_double_precision():
    with jax.enable_x64(True):
        yield


class Network(eqx.Module):
    inner: jax.Array
    outer: jax.Array

    def __call__(self, images):
        return jnp.tanh(images.reshape(len(images), -1) @ self.inner) @ self.outer


def network(scale=1.0):
    return Network(jnp.asarray(INNER), scale * jnp.asarray(OUTER))


def numpy_logits(images):
    return np.tanh(images.reshape(len(images), -1) @ INNER) @ OUTER


def cross_entropy(images, labels=LABELS):
    z = numpy_logits(images)
    return np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), labels]


def numpy_margin(z, labels=LABELS):
    others = np.where(np.arange(CLASSES) == labels[:, None], -np.inf, z)
    return others.max(1) - z[np.arange(len(z)), labels]


def slopes(function, at=DELTA, h=1e-5):
    """Finite differences of a function of δ that gives one number an image."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape[1:]):
        moved = np.zeros_like(at)
        moved[(slice(None), *place)] = h
        found[(slice(None), *place)] = (function(at + moved) - function(at - moved)) / (2 * h)
    return found


@eqx.filter_jit
def gradient_of(attack, key, delta):
    return attack.gradient(key, attack.walk.logits, jnp.asarray(IMAGES), delta, jnp.asarray(LABELS))


@eqx.filter_jit
def trajectory_of(attack, key, images, labels):
    return attack.trajectory(key, images, labels)


def walked(attack, images=IMAGES, labels=LABELS, key=KEY):
    iterates, info = trajectory_of(attack, key, jnp.asarray(images), jnp.asarray(labels))
    return np.asarray(iterates), info


def pgd(**settings):
    return r.PGD(network(), r.Linf(jnp.asarray(0.1)), **{"num_steps": 4} | settings)


# --- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("loss", ["cross-entropy", "margin"])
def test_the_gradient_of_pgd(loss, targeted):
    literal = {"cross-entropy": cross_entropy, "margin": lambda images: numpy_margin(numpy_logits(images))}[loss]
    signed = lambda delta: (-1 if targeted else 1) * literal(IMAGES + delta)  # noqa: E731
    values, gradient = gradient_of(pgd(loss=loss, targeted=targeted), KEY, jnp.asarray(DELTA))
    np.testing.assert_allclose(values, signed(DELTA), rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes(signed), atol=1e-7)


def cut_by_hand(subsets, targeted=False):
    """T of each set, averaged, literally; a function of δ with the rival fixed at DELTA."""
    z = numpy_logits(IMAGES + DELTA)
    rival = np.where(np.arange(CLASSES) == LABELS[:, None], -np.inf, z).argmax(1)
    rows, unit = np.arange(BATCH), np.asarray(PLAYERS.labels)

    def reward(delta, kept):
        z = numpy_logits(IMAGES + delta * kept[unit][None, :, :, None])
        return (-1 if targeted else 1) * (z[rows, rival] - z[rows, LABELS])

    def cuts(delta):
        whole, none = np.ones(4), np.zeros(4)
        return np.array(
            [reward(delta, whole) - reward(delta, 1 - s) - reward(delta, s) + reward(delta, none) for s in subsets]
        )

    return cuts


@pytest.mark.parametrize(
    ("penalty", "shape", "targeted"),
    [
        ("signed", lambda t: t, False),
        ("positive", lambda t: np.maximum(t, 0), False),
        ("absolute", np.abs, False),
        ("signed", lambda t: t, True),
    ],
)
def test_the_gradient_of_the_interaction_reduced_attack(penalty, shape, targeted):
    settings = {"num_subsets": 5, "subset_size": 2, "penalty": penalty, "replacement": penalty != "absolute"}
    attack = r.InteractionReduced(pgd(targeted=targeted), PLAYERS, jnp.asarray(0.7), **settings)
    subsets = np.asarray(attack.subsets(jax.random.split(KEY)[1]))
    assert subsets.shape == (5, 4)
    cuts = cut_by_hand(subsets, targeted)
    sign = -1 if targeted else 1
    literal = lambda delta: sign * cross_entropy(IMAGES + delta) - 0.7 * shape(cuts(delta)).mean(0)  # noqa: E731
    values, gradient = gradient_of(attack, KEY, jnp.asarray(DELTA))
    np.testing.assert_allclose(values, literal(DELTA), rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes(literal), atol=1e-7)


def test_a_target_turns_the_whole_objective_round(monkeypatch):
    """The loss and, signed, the penalty: labels that are wanted are made likely, and not left."""
    monkeypatch.setattr(r.InteractionReduced, "subsets", lambda *_: jnp.array([[1.0, 0.0]]))
    players, logits = r.players_from([0, 1]), lambda x: x[:, :1] * x[:, 1:] * jnp.array([1.0, -2.0, 4.0]) + x[:, :1]
    images, delta = (jnp.asarray(values.reshape(BATCH, -1)[:, :2]) for values in (IMAGES, DELTA))

    def gradients(targeted):
        fast = r.FGSM(logits, r.Linf(0.1), targeted=targeted)
        for attack in (fast, r.InteractionReduced(fast, players, 2.0, num_subsets=1)):
            yield attack.gradient(KEY, attack.walk.logits, images, delta, jnp.asarray(LABELS))

    (plain, left), (wanted_plain, wanted) = jax.jit(lambda: [list(gradients(targeted)) for targeted in (False, True)])()
    for one, other in ((plain, wanted_plain), (left, wanted)):
        for values, turned in zip(one, other, strict=True):
            np.testing.assert_allclose(values, -np.asarray(turned), atol=1e-12)
    assert np.abs(np.asarray(left[1] - plain[1])).min() > 1e-3  # there is a penalty


def test_infinite_strength_follows_the_penalty_alone():
    made = lambda s: r.InteractionReduced(pgd(), PLAYERS, jnp.asarray(s), num_subsets=3, subset_size=1)  # noqa: E731
    (_, alone), (_, none), (_, one) = (gradient_of(made(s), KEY, jnp.asarray(DELTA)) for s in (np.inf, 0.0, 1.0))
    np.testing.assert_allclose(alone, one - none, atol=1e-12)
    np.testing.assert_array_equal(none, gradient_of(pgd(), KEY, jnp.asarray(DELTA))[1])


def test_the_gradient_of_vr_is_the_mean_over_noisy_copies():
    attack = r.VR(pgd(), num_copies=3, sigma=jnp.asarray(0.2))
    noise = 0.2 * jax.random.normal(jax.random.split(KEY)[1], (3, SIDE, SIDE, 1))
    literal = lambda delta: np.mean([cross_entropy(IMAGES + delta + np.asarray(n)) for n in noise], axis=0)  # noqa: E731
    values, gradient = gradient_of(attack, KEY, jnp.asarray(DELTA))
    np.testing.assert_allclose(values, literal(DELTA), rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes(literal), atol=1e-7)
    assert attack.num_passes == 3


def test_the_gradient_of_ti_is_smoothed_with_zeros_beyond_the_border():
    attack = r.TI(pgd(), side=3, spread=jnp.asarray(1.0))
    kernel = np.exp(-np.array([1.0, 0, 1]) / 2)
    kernel = np.outer(kernel, kernel) / kernel.sum() ** 2
    _, plain = gradient_of(pgd(), KEY, jnp.asarray(DELTA))
    wanted = scipy.ndimage.convolve(np.asarray(plain), kernel[None, :, :, None], mode="constant")
    np.testing.assert_allclose(gradient_of(attack, KEY, jnp.asarray(DELTA))[1], wanted, atol=1e-12)


def test_di_shrinks_and_places_the_image(monkeypatch):
    drawn = jnp.array([0.0, 0.0, 1.0, 0.0])  # shrink, to the smallest, at the bottom, at the left
    monkeypatch.setattr(jax.random, "uniform", lambda *_: drawn)
    attack = r.DI(pgd(), probability=0.5, smallest=0.5)
    seen = attack.view(KEY, jnp.asarray(IMAGES))(jnp.asarray(IMAGES))
    small = jax.image.resize(jnp.asarray(IMAGES), (BATCH, 2, 2, 1), "linear")
    wanted = np.zeros_like(IMAGES)
    wanted[:, 2:, :2] = small
    np.testing.assert_allclose(seen, wanted, atol=1e-12)


def test_di_without_chance_is_the_attack_itself_and_with_it_another():
    plain = gradient_of(pgd(), KEY, jnp.asarray(DELTA))[1]
    never, always = (r.DI(pgd(), probability=jnp.asarray(p), smallest=jnp.asarray(0.6)) for p in (0.0, 1.0))
    np.testing.assert_allclose(gradient_of(never, KEY, jnp.asarray(DELTA))[1], plain, atol=1e-12)
    assert np.abs(np.asarray(gradient_of(always, KEY, jnp.asarray(DELTA))[1] - plain)).max() > 0.01


def test_what_is_wrapped_around_acts_on_the_penalty_and_what_is_within_does_not():
    smoothed = lambda attack: r.TI(attack, side=3, spread=1.0)  # noqa: E731
    reduced = lambda attack: r.InteractionReduced(attack, PLAYERS, 1.0, num_subsets=3)  # noqa: E731
    grad = lambda attack: np.asarray(gradient_of(attack, KEY, jnp.asarray(DELTA))[1])  # noqa: E731
    penalty = grad(reduced(pgd())) - grad(pgd())
    np.testing.assert_allclose(grad(reduced(smoothed(pgd()))), grad(smoothed(pgd())) + penalty, atol=1e-12)
    around = smoothed(reduced(pgd()))
    matrix = np.asarray(around._matrix(SIDE))
    smooth = np.einsum("ij,bjkc,lk->bilc", matrix, penalty, matrix)
    np.testing.assert_allclose(grad(around), grad(smoothed(pgd())) + smooth, atol=1e-12)


def test_sgm_has_the_same_logits_and_less_of_the_branches():
    u, v = jnp.asarray(INNER[:, :CLASSES]), jnp.asarray(RNG.normal(size=(CLASSES, CLASSES)))

    def residual(images, branch):
        z = images.reshape(len(images), -1) @ u
        return z + branch(jnp.tanh(z @ v))

    images = jnp.asarray(IMAGES)
    for gamma in (0.0, 0.3, 1.0):
        made = r.SGM(residual, gamma=gamma)
        np.testing.assert_array_equal(made(images), residual(images, lambda b: b))
        jacobian = jax.jacobian(lambda x, made=made: made(x[None])[0])(images[0])
        z = np.asarray(images[0]).reshape(-1) @ np.asarray(u)
        inner = np.asarray(v) * (1 - np.tanh(z @ np.asarray(v)) ** 2)
        wanted = np.asarray(u) @ (np.eye(CLASSES) + gamma * inner)
        np.testing.assert_allclose(jacobian.reshape(CLASSES, -1).T, wanted, atol=1e-10)


def test_what_flows_back_through_branches_is_multiplied_and_nothing_else_is():
    """For every share of the gradient: a branch three times as steep as the skip."""
    network = lambda x, branch: x + branch(3 * x)  # noqa: E731
    gammas = np.array([0.0, 0.3, 1.0])
    value, slope = jax.jit(jax.vmap(lambda g: jax.value_and_grad(r.SGM(network, g))(2.0)))(gammas)
    np.testing.assert_array_equal(value, 8.0)
    np.testing.assert_allclose(slope, 1 + 3 * gammas, rtol=1e-12)


# --- the walk ---------------------------------------------------------------------------------------------------------


def step_by_hand(delta, momentum, gradient, mu, alpha, epsilon, norm):
    momentum = mu * momentum + gradient / np.abs(gradient).sum((1, 2, 3), keepdims=True)
    length = lambda values: np.sqrt((values**2).sum((1, 2, 3), keepdims=True))  # noqa: E731
    if norm == "linf":
        delta = np.clip(delta + alpha * np.sign(momentum), -epsilon, epsilon)
    else:
        delta = delta + alpha * momentum / length(momentum)
        delta = delta * np.minimum(1, epsilon / length(delta))
    return np.clip(IMAGES + delta, 0.2, 0.9) - IMAGES, momentum


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_walk_step_by_step(norm):
    """With momentum, steps that reach the border of the ball, and a range that cuts."""
    ball = {"linf": r.Linf(0.15, 0.2, 0.9), "l2": r.L2(0.4, 0.2, 0.9)}[norm]
    alpha = {"linf": 0.06, "l2": 0.2}[norm]
    attack = r.MI(r.PGD(network(), ball, step_size=alpha, num_steps=5), momentum=0.6)
    iterates, info = walked(attack)
    delta, momentum = np.zeros_like(IMAGES), np.zeros_like(IMAGES)
    np.testing.assert_array_equal(iterates[0], delta)
    for t in range(5):
        gradient = slopes(lambda d: cross_entropy(IMAGES + d), delta)
        np.testing.assert_allclose(info.objective[t], cross_entropy(IMAGES + delta), rtol=1e-6)
        np.testing.assert_allclose(info.gradient_norm[t], np.abs(gradient).sum((1, 2, 3)), rtol=1e-6)
        delta, momentum = step_by_hand(delta, momentum, gradient, 0.6, alpha, float(ball.epsilon), norm)
        np.testing.assert_allclose(iterates[t + 1], delta, atol=1e-6)
    assert np.isin(np.round(IMAGES + delta, 6), (0.2, 0.9)).any()
    assert info.cost.tolist() == [1] * 5


def attacks(ball, steps=6):
    plain = r.PGD(network(), ball, num_steps=steps, random_start=True)
    reduced = r.InteractionReduced(plain, PLAYERS, jnp.asarray(1.0), num_subsets=2)
    return {"fgsm": r.FGSM(network(), ball), "nested": r.MI(r.TI(r.VR(r.DI(reduced), num_copies=2), side=3), 0.9)}


@pytest.mark.parametrize("ball", [r.Linf(0.3), r.L2(0.8)], ids=["linf", "l2"])
def test_every_iterate_is_within_the_ball_and_the_range(ball):
    images = np.where(RNG.uniform(size=IMAGES.shape) < 0.4, np.round(IMAGES), IMAGES)  # many values at the ends
    # What is wrapped around steps in the ball that it is given: one of the two is enough.
    plain = {"pgd": r.PGD(network(), ball, num_steps=6, random_start=True)}
    for attack in (attacks(ball) if isinstance(ball, r.Linf) else plain).values():
        iterates, info = walked(attack, images)
        assert np.isfinite(iterates).all()
        for delta in iterates:
            assert float(ball.norm(jnp.asarray(delta)).max()) <= ball.epsilon + 1e-7
            assert (images + delta).min() >= -1e-7
            assert (images + delta).max() <= 1 + 1e-7
        assert (np.asarray(info.status) == Status.OK).all()


def test_the_last_iterate_is_what_run_gives_and_one_step_of_fgsm_is_the_whole_ball():
    attack = pgd()
    iterates, _ = walked(attack)
    assert iterates.shape == (5, *IMAGES.shape)
    last, _ = attack.run(KEY, jnp.asarray(IMAGES), jnp.asarray(LABELS))
    np.testing.assert_allclose(last, iterates[-1], atol=1e-12)
    single, _ = walked(r.FGSM(network(), r.Linf(0.03)))
    _, gradient = gradient_of(pgd(), KEY, jnp.zeros(IMAGES.shape))
    np.testing.assert_allclose(single[1], 0.03 * np.sign(gradient), atol=1e-12)


def test_steps_are_a_tenth_of_the_ball_unless_said():
    iterates, _ = walked(pgd())
    np.testing.assert_allclose(np.abs(iterates[1]), 0.01, atol=1e-12)


def test_a_linear_network_has_no_interaction_and_the_reduced_attack_is_pgd_to_the_bit():
    weights = jnp.asarray(RNG.normal(size=(SIDE * SIDE, CLASSES)))
    linear = lambda images: images.reshape(len(images), -1) @ weights  # noqa: E731
    plain = r.PGD(linear, r.Linf(0.2), num_steps=6)
    reduced = r.InteractionReduced(plain, PLAYERS, 3.0, num_subsets=4)
    np.testing.assert_array_equal(walked(reduced)[0], walked(plain)[0])


@pytest.mark.slow
def test_momentum_may_stand_within_or_around():
    reduced = lambda attack: r.InteractionReduced(attack, PLAYERS, 1.0, num_subsets=2)  # noqa: E731
    one, two = walked(r.MI(reduced(pgd()), 0.8))[0], walked(reduced(r.MI(pgd(), 0.8)))[0]
    np.testing.assert_allclose(one, two, atol=1e-12)
    assert np.abs(one - walked(reduced(pgd()))[0]).max() > 1e-3


def test_a_targeted_attack_nears_the_class_asked_for():
    wanted = (LABELS + 1) % CLASSES
    attack = r.PGD(network(), r.Linf(0.5), num_steps=15, targeted=True)
    iterates, info = walked(attack, labels=wanted)
    np.testing.assert_allclose(info.objective[0], -cross_entropy(IMAGES, wanted), rtol=1e-6)
    assert np.all(numpy_logits(IMAGES + iterates[-1]).argmax(1) == wanted)


def test_larger_logits_make_larger_interactions():
    """So the strength of the penalty depends on the scale of the logits."""
    images, delta, labels = (jnp.asarray(values) for values in (IMAGES, DELTA, LABELS))
    found = [r.mean_interaction(r.perturbation_game(network(c), images, delta, labels, PLAYERS), 4) for c in (1.0, 3.0)]
    np.testing.assert_allclose(found[1], 3 * found[0], rtol=1e-9)


# --- random numbers ---------------------------------------------------------------------------------------------------


def test_draws_with_replacement_have_as_many_distinct_players_as_they_should():
    players = r.players_from(np.arange(256))
    attack = r.InteractionReduced(pgd(), players, num_subsets=4000, subset_size=32)
    subsets = np.asarray(attack.subsets(KEY))
    assert abs(subsets.sum(1).mean() - 256 * (1 - (1 - 1 / 256) ** 32)) < 0.1
    np.testing.assert_allclose(subsets.mean(0), subsets.mean(), atol=0.035)
    without = r.InteractionReduced(pgd(), players, num_subsets=500, subset_size=32, replacement=False)
    drawn = np.asarray(without.subsets(KEY))
    assert np.all(drawn.sum(1) == 32)
    assert drawn.mean(0).max() < 0.2
    assert attack.num_passes == 8003
    assert r.InteractionReduced(pgd(), players).size == 32


def test_every_set_is_drawn_as_often_as_it_should_however_few_there_are():
    """Two sets of two of four players a draw, by all sets that there are; each of the two as if it were alone."""
    made = lambda again: r.InteractionReduced(pgd(), PLAYERS, num_subsets=2, subset_size=2, replacement=again)  # noqa: E731
    draw = jax.jit(jax.vmap(lambda key: (made(True).subsets(key), made(False).subsets(key))))
    sizes = ((np.arange(16)[:, None] >> np.arange(4)) & 1).sum(1)
    laws = np.where(sizes == 1, 1 / 16, np.where(sizes == 2, 2 / 16, 0)), np.where(sizes == 2, 1 / 6, 0)
    for found, law in zip(draw(jax.random.split(KEY, 3000)), laws, strict=True):
        assert found.shape == (3000, 2, 4)
        codes = (np.asarray(found) @ 2 ** np.arange(4)).astype(int)
        both = np.bincount(codes[:, 0] * 16 + codes[:, 1], minlength=256).reshape(16, 16) / 3000
        expected = np.outer(law, law)
        # Five standard errors of a share; what cannot be has none.
        assert np.all(np.abs(both - expected) <= 5 * np.sqrt(expected * (1 - expected) / 3000))


class Thrown(r.AbstractAttack):
    """An attack of one's own, whose gradient is a throw: it shows which key it was given."""

    plain: r.PGD

    @property
    def walk(self):
        return self.plain

    @property
    def num_passes(self):
        return 1

    def gradient(self, key, logits, images, delta, labels):
        return jnp.zeros(len(images)), jnp.broadcast_to(jax.random.normal(key, images.shape[1:]), images.shape)


def test_start_steps_copies_and_views_have_keys_of_their_own(monkeypatch):
    """Without a network and with draws that are none: only keys are made. In L2 a start is a direction and a length.

    As jax is set for users, where ``split(key)[i]`` is ``fold_in(key, i)``: what was split must not be folded as well.
    """
    for name in ("normal", "uniform"):
        monkeypatch.setattr(jax.random, name, lambda key, shape, dtype=float: jnp.ones(shape, dtype))
    monkeypatch.setattr(jax.random, "randint", lambda key, shape, low, high: jnp.zeros(shape, int))
    logits = lambda images: images.reshape(len(images), -1)[:, :CLASSES]  # noqa: E731
    thrown = Thrown(r.PGD(logits, r.L2(0.8), num_steps=2, random_start=True))
    attack = r.VR(r.InteractionReduced(r.DI(thrown), PLAYERS, num_subsets=1), num_copies=3)
    with jax.threefry_partitionable(True), KeyRecorder() as recorder:
        eqx.filter_jit(attack.run)(KEY, jnp.asarray(IMAGES), jnp.asarray(LABELS))
        assert recorder.reused() == []
    drawn = sum(recorder.uses.values(), start=Counter())
    # A start; in each of two steps the noise of all copies, and three of them, each with sets, a view and a throw.
    steps = {"normal": 2 * (1 + 3), "uniform": 2 * 3, "randint": 2 * 3, "split": 2 * (2 + 3 + 3)}
    assert drawn == Counter(steps) + Counter(normal=1, uniform=1, split=2)


@pytest.mark.slow
def test_no_key_is_used_twice():
    attack = attacks(r.L2(0.8), steps=2)["nested"]
    with KeyRecorder() as recorder:
        jax.block_until_ready(attack.run(KEY, jnp.asarray(IMAGES), jnp.asarray(LABELS)))
    assert not recorder.reused()


@pytest.mark.parametrize("ball", [r.Linf(0.3), r.L2(0.8)], ids=["linf", "l2"])
def test_random_starts_fill_the_ball(ball):
    """Of an image, however many there are in the batch, which all have the same."""
    images = jnp.zeros((3, 2, 1))

    @jax.jit
    def drawn(key):
        draws = jax.vmap(lambda key: ball.draw(key, images))(jax.random.split(key, 2000))
        return draws, ball.norm(draws[:, 0])

    draws, norms = map(np.asarray, drawn(KEY))
    # Uniform in a ball of two dimensions: the share within a radius is its square.
    for share in (0.25, 0.5, 0.9):
        assert abs((norms <= share * ball.epsilon).mean() - share**2) < 0.04
    np.testing.assert_allclose(draws.mean((0, 1)), 0, atol=0.03)
    np.testing.assert_array_equal(draws, draws[:, :1].repeat(3, axis=1))


# --- failures inside jit ----------------------------------------------------------------------------------------------


def test_an_image_without_a_finite_gradient_stays_and_says_so():
    broken = IMAGES.copy()
    broken[1, 0, 0, 0] = np.nan
    plain, _ = walked(pgd())
    iterates, info = walked(pgd(), broken)
    assert info.status.tolist() == [[Status.OK, Status.DIVERGED, Status.OK]] * 4
    np.testing.assert_array_equal(iterates[:, [0, 2]], plain[:, [0, 2]])
    np.testing.assert_array_equal(iterates[:, 1], 0)


def test_a_step_without_a_finite_gradient_leaves_all_of_the_images_state():
    """The momentum, too: where the next gradient is finite again, the walk goes on. Others do not notice."""
    broken, state = IMAGES.copy(), r.AttackState(jnp.asarray(DELTA), jnp.asarray(DELTA[::-1]))
    step = jax.jit(lambda images: pgd(momentum=0.6).step(KEY, images, jnp.asarray(LABELS), state))
    broken[1, 0, 0, 0] = np.nan
    (plain, _), (after, info) = step(IMAGES), step(broken)
    assert info.status.tolist() == [Status.OK, Status.DIVERGED, Status.OK]
    for new, fine, old in zip(after, plain, state, strict=True):
        np.testing.assert_array_equal(new[1], old[1])
        np.testing.assert_array_equal(np.asarray(new)[[0, 2]], np.asarray(fine)[[0, 2]])
        assert (np.asarray(fine) != np.asarray(old)).any(axis=(1, 2, 3)).all()


def test_no_direction_is_told_and_nothing_moves():
    for ball in (r.Linf(0.1), r.L2(0.1)):
        flat = r.PGD(lambda images: jnp.zeros((len(images), 2)) + 0 * images.sum(), ball, num_steps=2)
        iterates, info = walked(flat, labels=np.zeros(BATCH, int))
        assert (np.asarray(info.status) == Status.NOT_CONVERGED).all()
        np.testing.assert_array_equal(iterates, 0)


def test_values_at_the_end_of_the_range_are_no_nan_in_l2():
    """The authors' projection divides 0 by 0 there."""
    images = np.zeros_like(IMAGES)
    iterates, _ = walked(r.PGD(network(), r.L2(0.05), step_size=0.2, num_steps=3), images)
    assert np.isfinite(iterates).all()
    assert (iterates[-1] == 0).any()
    assert (iterates[-1] > 0).any()
