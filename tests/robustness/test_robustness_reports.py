"""What attacks, games and comparisons report, recomputed by hand: objectives, costs, statuses, errors and p-values."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import robustness as r
from laureate._core import Status

RNG = np.random.default_rng(9)
IMAGES = RNG.uniform(0.3, 0.7, size=(3, 4, 4)).astype(np.float32)
LABELS = np.array([0, 2, 1])
MATRIX = jnp.asarray(RNG.normal(size=(16, 3)), jnp.float32)
PLAYERS = r.grid_players((4, 4), 2)
KEY = jax.random.key(1)


def logits(images):
    return jnp.tanh(images.reshape(len(images), -1) @ MATRIX) * 3


def pgd(**settings):
    return r.PGD(logits, r.Linf(0.1), **{"num_steps": 2} | settings)


# --- attacks ----------------------------------------------------------------------------------------------------------


def reduced(attack, **settings):
    return r.InteractionReduced(attack, PLAYERS, **{"num_subsets": 3, "subset_size": 2} | settings)


def test_the_objective_is_what_is_made_large_with_every_strength():
    """With an infinite one the loss is left out of the number too; its slope is that of the number, by differences."""
    delta, images, labels = jnp.asarray(0.05 * np.sign(IMAGES - 0.5)), jnp.asarray(IMAGES), jnp.asarray(LABELS)
    strengths = jnp.array([0.0, 0.5, 2.0, np.inf])

    def every(delta):
        made = lambda s, targeted: reduced(pgd(targeted=targeted), strength=s)  # noqa: E731
        ask = lambda s, targeted: made(s, targeted).gradient(KEY, logits, images, delta, labels)  # noqa: E731
        return {t: jax.vmap(lambda s, t=t: ask(s, t))(strengths) for t in (False, True)}

    program, move = jax.jit(every), np.random.default_rng(2).normal(size=IMAGES.shape).astype(np.float32)
    found, up, down = program(delta), program(delta + 1e-2 * move), program(delta - 1e-2 * move)
    for targeted in (False, True):
        (loss, half, two, alone), slope = found[targeted][0], found[targeted][1][3]
        penalty = loss - half  # a half of the mean cut
        assert np.abs(penalty).min() > 1e-4
        np.testing.assert_allclose(two, loss - 4 * penalty, atol=1e-4)
        np.testing.assert_allclose(alone, -2 * penalty, atol=1e-4)
        steep = np.asarray(up[targeted][0][3] - down[targeted][0][3]) / 2e-2
        np.testing.assert_allclose((slope * move).sum((1, 2)), steep, rtol=0.05, atol=0.02)


NESTED = {
    "pgd": (pgd(), 1),
    "fgsm": (r.FGSM(logits, r.Linf(0.1)), 1),
    "reduced": (reduced(pgd()), 9),
    "vr of reduced": (r.VR(reduced(pgd()), num_copies=4), 36),
    "reduced of vr": (reduced(r.VR(pgd(), num_copies=4)), 12),
    "mi of ti of vr of di": (r.MI(r.TI(r.VR(r.DI(pgd()), num_copies=5))), 5),
    "di of mi of reduced": (r.DI(r.MI(reduced(pgd(), num_subsets=1))), 5),
    "vr of vr": (r.VR(r.VR(pgd(), num_copies=2), num_copies=3), 6),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_gradient_costs_what_its_parts_ask_of_the_network(name):
    """The rival of a game is a forward pass beside, and not counted."""
    attack, passes = NESTED[name]
    assert attack.num_passes == passes


def test_each_image_has_the_status_of_its_own_loss_and_gradient():
    """A loss that is infinite with a finite gradient diverges as well; 0 gives no direction; others go on."""

    def loss(z, labels):
        # Of class 2 infinite, with a slope that is not; of class 1 nothing.
        return jnp.where(labels == 2, jnp.inf, 0.0) + jnp.where(labels == 1, 0.0, z[:, 0])

    attack = pgd(loss=loss, num_steps=3, momentum=0.5)
    delta, info = jax.jit(lambda: attack.run(KEY, jnp.asarray(IMAGES), jnp.asarray(LABELS)))()
    wanted = [Status.OK, Status.DIVERGED, Status.NOT_CONVERGED]
    np.testing.assert_array_equal(info.status, [wanted] * 3)
    assert (np.asarray(info.gradient_norm[0, :2]) > 0).all()
    assert np.isfinite(info.gradient_norm).all()
    assert np.asarray(delta[0]).any()
    assert not np.asarray(delta[1:]).any()
    assert info.cost.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("count", "size"), [(2, 1), (7, 1), (8, 1), (16, 2), (40, 5)])
def test_sets_have_an_eighth_of_the_players_and_one_at_least(count, size):
    players = r.players_from(np.arange(count))
    assert r.InteractionReduced(pgd(), players).size == size
    assert r.InteractionReduced(pgd(), players, subset_size=1).size == 1


# --- games ------------------------------------------------------------------------------------------------------------


def table_of(game, n):
    return np.asarray(game(((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float32)), float)


def by_definition(values, n):
    """Shapley's index: every size of a context alike, and every context of a size."""
    found = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        for context in (c for c in range(2**n) if not (c >> i & 1 or c >> j & 1)):
            a, b = 1 << i, 1 << j
            change = values[context | a | b] - values[context | a] - values[context | b] + values[context]
            found[i, j] += change / (n - 1) / math.comb(n - 2, bin(context).count("1"))
    return found


VOTES = {
    "count": lambda masks: (jnp.sum(masks, axis=1) ** 2).astype(int) + (masks[:, 0] * masks[:, 2]).astype(int),
    "won": lambda masks: (masks @ jnp.array([3.0, 2.0, 1.0, 1.0]) > 3).astype(jnp.int8),
    "yes": lambda masks: masks @ jnp.array([3.0, 2.0, 1.0, 1.0]) > 3,
    "half": lambda masks: (jnp.mean(masks, axis=1) ** 3).astype(jnp.float16),
}


@pytest.mark.parametrize("kind", VOTES)
def test_games_of_any_kind_of_number_have_the_interactions_of_their_definition(kind):
    """Rewards may be votes or counts: what is weighted is their value, in single precision at least."""
    game, n = VOTES[kind], 4
    values = table_of(game, n)

    def every():
        return r.exact_interactions(game, n), r.shapley_values(game, n), r.mean_interaction(game, n)

    exact, alone, mean = jax.jit(every)()
    pairs, room = by_definition(values, n), 1e-3 if kind == "half" else 1e-5
    np.testing.assert_allclose(exact, pairs, atol=room)
    orders = list(itertools.permutations(range(n)))
    wanted = np.zeros(n)
    for order in orders:
        before = 0
        for player in order:
            wanted[player] += (values[before | 1 << player] - values[before]) / len(orders)
            before |= 1 << player
    np.testing.assert_allclose(alone, wanted, atol=room)
    assert float(mean) == pytest.approx(pairs.sum() / (n * (n - 1)), abs=room)


def test_estimates_report_the_mean_and_the_error_of_their_own_samples():
    """Recomputed from the sets that were asked for; with as few as two samples too."""
    asked = []
    table = jnp.asarray(RNG.normal(size=(32, 2)), jnp.float32)

    def game(masks):
        asked.append(np.asarray(masks))
        return table[(masks @ jnp.asarray(2.0 ** np.arange(5), masks.dtype)).astype(int)]

    for estimate, samples, size in (
        (lambda m: r.estimate_by_subsets(KEY, game, 5, 2, m), 2, 6),
        (lambda m: r.estimate_interaction(KEY, game, 5, "banzhaf", m), 5, 1),
    ):
        cost = 2 * samples + 2 if size == 6 else 4 * samples
        asked.clear()
        found = estimate(samples)
        (masks,) = asked
        assert (len(masks), int(found.cost)) == (cost, cost)
        rewards = np.asarray(table)[(masks @ 2.0 ** np.arange(5)).astype(int)].astype(float)
        if size == 6:
            each = (rewards[-2] - rewards[samples:-2] - rewards[:samples] + rewards[-1]) / 6
            assert (masks[:samples].sum(1) == 2).all()
        else:
            both, one, two, none = np.split(rewards, 4)
            each = both - one - two + none
            assert (np.split(masks, 4)[0].sum(1) == np.split(masks, 4)[3].sum(1) + 2).all()
        np.testing.assert_allclose(found.mean, each.mean(0), rtol=1e-4, atol=1e-5)
        error = each.std(0, ddof=1) / math.sqrt(samples)
        np.testing.assert_allclose(found.standard_error, error, rtol=1e-4, atol=1e-5)


def test_the_rival_is_the_largest_other_class_of_all_logits_that_there_may_be():
    """Every order, sign and tie of three classes; of equals the first. And a game's is that of what is perturbed."""
    z = np.repeat(np.array(list(itertools.product((-3.0, -1.0, 0.0, 2.0), repeat=3)), np.float32), 3, axis=0)
    labels = np.tile(np.arange(3), 64)
    others = np.where(np.arange(3) == labels[:, None], -np.inf, z)

    def every(z, labels):
        game = r.perturbation_game(lambda x: -x, jnp.zeros_like(z), -z, labels, r.players_from([0, 1, 2]))
        moved = r.perturbation_game(lambda x: x, z[::-1], z - z[::-1], labels, r.players_from([0, 1, 2]))
        return r.margin(z, labels), game.rival, moved.rival

    found, rival, moved = jax.jit(every)(z, labels)
    np.testing.assert_array_equal(rival, others.argmax(1))
    np.testing.assert_array_equal(moved, others.argmax(1))
    np.testing.assert_array_equal(found, others.max(1) - z[np.arange(192), labels])


# --- transfer ---------------------------------------------------------------------------------------------------------


def report(success, counted):
    return r.TransferReport(jnp.asarray(success), jnp.asarray(counted), jnp.zeros(len(success)), jnp.asarray(0))


def test_the_paired_test_is_that_of_all_signs_of_the_counted_images():
    for networks, images in ((1, 6), (2, 7), (3, 9), (4, 5)):
        one, two = RNG.random((networks, images)) < 0.7, RNG.random((networks, images)) < 0.3
        first, second = RNG.random((2, images)) < 0.9
        first[0] = second[0] = True
        found = r.compare_transfer(report(one, first), report(two, second))
        gains = (one.astype(int) - two)[:, first & second].sum(0)
        signs = np.array(list(itertools.product((-1, 1), repeat=len(gains))))
        assert found.p_value == pytest.approx((np.abs(signs @ gains) >= abs(gains.sum())).mean())
        assert found.gain == pytest.approx(gains.sum() / (networks * len(gains)))
        swapped = r.compare_transfer(report(two, second), report(one, first))
        assert (swapped.p_value, swapped.gain) == (pytest.approx(found.p_value), pytest.approx(-found.gain))
        assert swapped.p_value_pooled == pytest.approx(found.p_value_pooled)


def test_rates_of_no_images_are_no_numbers_and_networks_that_disagree_do_not_add_up():
    images, labels = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([1, 0])
    none = r.transfer(0 * images, [lambda x: x], images, labels)
    assert np.isnan(none.rates).all()
    assert (int(none.num_dropped), none.success.tolist()) == (2, [[True, True]])
    wins = report([[True] * 4, [False] * 4], [True] * 4)
    losses = report([[False] * 4, [True] * 4], [True] * 4)
    found = r.compare_transfer(wins, losses)
    assert (found.gain, found.p_value, found.p_value_pooled) == (0.0, 1.0, 1.0)
    assert found.p_values_by_network.tolist() == [0.125, 0.125]
