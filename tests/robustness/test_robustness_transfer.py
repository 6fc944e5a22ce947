"""Transfer by both protocols, paired tests and rank correlations, against counting by hand and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from laureate import robustness as r
from laureate.robustness.evaluation import _mcnemar, _sign_flips

RNG = np.random.default_rng(3)


def test_who_errs_without_attack_counts_nowhere():
    images = jnp.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.6, 0.4, 0.0], [0.2, 0.1, 0.7]])
    labels = jnp.array([0, 1, 0, 2])
    same, strict = (lambda x: x), (lambda x: x + jnp.array([-0.3, 0.0, 0.0]))  # errs on the third, clean
    delta = jnp.array([[-0.9, 0, 0], [0, 0.0, 0], [0, 0, 0.0], [0, 0.0, -0.55]])
    report = r.transfer(delta, [same, strict], images, labels)
    assert report.counted.tolist() == [True, True, False, True]
    assert report.success.tolist() == [[True, False, False, True], [True, False, True, False]]
    np.testing.assert_allclose(report.rates, [2 / 3, 1 / 3], rtol=1e-6)
    assert int(report.num_dropped) == 1
    wanted = jnp.array([1, 0, 1, 0])
    aimed = r.transfer(delta, [same, strict], images, labels, wanted)
    assert aimed.success.tolist() == [[True, False, False, True], [True, False, True, False]]
    alone = r.transfer(delta, [same], images, labels, also=[strict])
    assert alone.counted.tolist() == [True, True, False, True]
    assert alone.success.shape == (1, 4)


def test_a_targeted_success_is_the_class_asked_for_and_no_other():
    images, labels = jnp.array([[0.9, 0.1, 0.0]]), jnp.array([0])
    delta = jnp.array([[-0.9, 0.0, 0.3]])
    hits = [r.transfer(delta, [lambda x: x], images, labels, jnp.array([c])).success[0, 0] for c in (1, 2)]
    assert [bool(hit) for hit in hits] == [False, True]


def test_leave_one_out_by_hand():
    """Many small tables: in a single one the image itself seldom decides which iterate does best."""
    for _ in range(30):
        success = RNG.uniform(size=(7, 11)) < 0.5
        counted = RNG.uniform(size=11) < 0.8
        wanted = []
        for image in range(11):
            others = [j for j in range(11) if j != image and counted[j]]
            totals = [sum(success[t, j] for j in others) for t in range(7)]
            wanted.append(success[totals.index(max(totals)), image])
        assert r.leave_one_out(success, counted).tolist() == wanted
        assert r.leave_one_out(success).tolist() == r.leave_one_out(success, np.ones(11, bool)).tolist()


def report(success, counted=None):
    success = jnp.asarray(success)
    counted = jnp.ones(success.shape[1], bool) if counted is None else jnp.asarray(counted)
    return r.TransferReport(success, counted, success.mean(1), jnp.asarray(0))


def test_paired_tests_against_scipy():
    one, two = RNG.uniform(size=(3, 60)) < 0.6, RNG.uniform(size=(3, 60)) < 0.45
    first, second = RNG.uniform(size=(2, 60)) < 0.9
    found = r.compare_transfer(report(one, first), report(two, second))
    counted = first & second
    one, two = one[:, counted].astype(int), two[:, counted].astype(int)
    np.testing.assert_allclose(found.by_network, one.mean(1) - two.mean(1))
    np.testing.assert_allclose(found.gain, (one - two).mean())
    wins, losses = ((one - two) > 0).sum(1), ((one - two) < 0).sum(1)
    exact = [scipy.stats.binomtest(int(w), int(w + lost)).pvalue for w, lost in zip(wins, losses, strict=True)]
    np.testing.assert_allclose(found.p_values_by_network, np.asarray(exact, float))
    statistic = (wins - losses).sum() ** 2 / (wins + losses).sum()
    np.testing.assert_allclose(found.p_value_pooled, scipy.stats.chi2.sf(statistic, 1))


def test_sign_flips_by_trying_all():
    for gains in ([2, -1, 3, 1, 0, 1], [0, 0], [1], [2, -2, 1, 1]):
        signs = np.array(np.meshgrid(*[[-1, 1]] * len(gains))).reshape(len(gains), -1)
        sums = np.abs(np.asarray(gains) @ signs)
        np.testing.assert_allclose(_sign_flips(np.asarray(gains)), (sums >= abs(sum(gains))).mean())
    assert _mcnemar(0, 0) == 1.0


def test_the_same_attack_twice_differs_in_nothing():
    success = RNG.uniform(size=(2, 30)) < 0.5
    found = r.compare_transfer(report(success), report(success))
    assert (found.gain, found.p_value, found.p_value_pooled) == (0.0, 1.0, 1.0)


def spearman(x, y):
    return float(np.asarray(scipy.stats.spearmanr(x, y))[0])


def test_rank_correlations_against_scipy():
    x, y, z = (np.round(RNG.normal(size=40), 1) for _ in range(3))
    y = y + 0.5 * x
    np.testing.assert_allclose(r.rank_correlation(x, y), spearman(x, y))
    a, b, c = (spearman(*pair) for pair in ((x, y), (x, z), (y, z)))
    np.testing.assert_allclose(r.partial_rank_correlation(x, y, z), (a - b * c) / np.sqrt((1 - b**2) * (1 - c**2)))
    assert r.rank_correlation(x, np.ones(40)) == 0.0
    assert r.partial_rank_correlation(x, x + 1, x) == 0.0


def test_own_players_on_a_table():
    """Rows of a table, features as players, a network that multiplies two of them."""
    logits = lambda rows: jnp.stack([jnp.zeros(len(rows)), rows[:, 0] * rows[:, 2]], axis=1)  # noqa: E731
    rows, delta = jnp.zeros((2, 3)), jnp.array([[0.5, 0.1, 0.4], [0.0, 1.0, 1.0]])
    game = r.perturbation_game(logits, rows, delta, jnp.zeros(2, int), r.players_from([0, 1, 2]))
    found = r.exact_interactions(game, 3)
    np.testing.assert_allclose(found[0, 2], [0.2, 0.0], atol=1e-6)
    np.testing.assert_allclose(found[0, 1], 0, atol=1e-6)


def test_generate_gives_the_attacks_own_iterates():
    attack = r.PGD(lambda x: x @ jnp.array([[1.0, -1], [-2, 2]]), r.Linf(0.1), num_steps=3)
    images, labels = np.full((2, 2), 0.5, np.float32), np.array([0, 1])
    last, info = r.generate(jax.random.key(0), attack, images, labels)
    iterates, _ = r.generate(jax.random.key(0), attack, images, labels, iterates=True)
    np.testing.assert_array_equal(iterates[-1], last)
    assert iterates.shape == (4, 2, 2)
    assert info.objective.shape == (3, 2)
    assert last.tolist() == pytest.approx(np.array([[-0.03, 0.03], [0.03, -0.03]]), abs=1e-6)


def test_generate_runs_or_walks_the_attack_on_what_it_has_checked(monkeypatch):
    """Lists become arrays of one type; the attack and the key stay what they are; nothing is compiled here."""
    attack = r.PGD(lambda x: x @ jnp.array([[1.0, -1], [-2, 2]]), r.Linf(0.1), num_steps=3)
    key, given = jax.random.key(5), {}
    info = r.AttackInfo(jnp.zeros((3, 2)), jnp.ones((3, 2)), jnp.ones(3, int), jnp.zeros((3, 2), int))
    for name in ("_run", "_trajectory"):
        answer = lambda *all, name=name: (given.update({name: all}), (name, info))[1]  # noqa: E731
        monkeypatch.setattr(f"laureate.robustness.driver.{name}", answer)
    for iterates, name in ((False, "_run"), (True, "_trajectory")):
        assert r.generate(key, attack, [[0.5, 0.25], [0.0, 1.0]], [0, 1], iterates=iterates) == (name, info)
        own_key, own, images, labels = given.pop(name)
        assert not given
        assert (own_key is key, own is attack, labels.dtype, labels.tolist()) == (True, True, np.int32, [0, 1])
        np.testing.assert_array_equal(images, [[0.5, 0.25], [0.0, 1.0]])
