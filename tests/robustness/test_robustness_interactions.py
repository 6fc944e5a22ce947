"""Interaction indices against their definitions, summed by hand over all sets of small games, in double precision."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import robustness as r
from laureate.robustness import interactions
from laureate.robustness.interactions import LAWS, cuts, law_of_sizes

N = 6
POWERS = 2 ** np.arange(N)
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(2**N, 2))  # two games at once: the trailing axis is a batch
WEIGHTS = np.triu(RNG.normal(size=(N, N)), 1)
INDICES = ("shapley", "banzhaf", "faith-shap")


@pytest.fixture(autouse=True)
def in_double_precision():
    with jax.enable_x64(True):
        yield


def table_game(table):
    return lambda masks: jnp.asarray(table)[(masks @ jnp.asarray(POWERS, float)).astype(int)]


def pairwise(masks):
    return jnp.einsum("mi,ij,mj->m", masks, jnp.asarray(WEIGHTS), masks) + masks @ jnp.arange(1.0, N + 1) + 3


def code(players):
    return sum(2**i for i in players)


def phi(value, players, who):
    """The Shapley value of ``who``, a tuple that joins and leaves together, among ``players`` that hold it not."""
    others, n = [p for p in players if p not in who], len(players) - len(who) + 1
    total = 0.0
    for size in range(n):
        for chosen in itertools.combinations(others, size):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            total = total + weight * (value[code((*chosen, *who))] - value[code(chosen)])
    return total


def by_merging(value):
    """The paper's definition: φ of the pair as one player, less φ of each where the other is absent."""
    found = np.zeros((N, N, *value.shape[1:]))
    for i, j in itertools.permutations(range(N), 2):
        everyone = range(N)
        alone_i, alone_j = [p for p in everyone if p != j], [p for p in everyone if p != i]
        found[i, j] = phi(value, everyone, (i, j)) - phi(value, alone_i, (i,)) - phi(value, alone_j, (j,))
    return found


def faithful(value):
    """Faith-Shap by its own definition: least squares with the Shapley kernel, the empty and the whole set met."""
    masks = (np.arange(2**N)[:, None] >> np.arange(N)) & 1
    pairs = list(itertools.combinations(range(N), 2))
    design = np.concatenate([np.ones((2**N, 1)), masks, *[masks[:, [i]] * masks[:, [j]] for i, j in pairs]], axis=1)
    sizes = masks.sum(1)
    weight = [(N - 1) / (math.comb(N, s) * s * (N - s)) if 0 < s < N else 0.0 for s in sizes]
    ends = design[[0, -1]]
    columns = design.shape[1]
    normal = design.T @ (np.array(weight)[:, None] * design)
    system = np.block([[normal, ends.T], [ends, np.zeros((2, 2))]])
    right = np.concatenate([design.T @ (np.array(weight) * value), value[[0, -1]]])
    solution = np.linalg.lstsq(system, right, rcond=None)[0][:columns]
    found = np.zeros((N, N))
    for (i, j), coefficient in zip(pairs, solution[1 + N :], strict=True):
        found[i, j] = found[j, i] = coefficient
    return found


def averaged(value):
    """Banzhaf: the mean of Δ over every context alike."""
    found = np.zeros((N, N))
    for i, j in itertools.permutations(range(N), 2):
        rest = [p for p in range(N) if p not in (i, j)]
        contexts = [c for size in range(N - 1) for c in itertools.combinations(rest, size)]
        delta = lambda c: value[code((*c, i, j))] - value[code((*c, i))] - value[code((*c, j))] + value[code(c)]  # noqa: B023, E731
        found[i, j] = np.mean([delta(c) for c in contexts])
    return found


def test_shapley_is_the_papers_definition_of_merged_players():
    found = r.exact_interactions(table_game(TABLE), N)
    np.testing.assert_allclose(found, by_merging(TABLE), atol=1e-12)
    np.testing.assert_array_equal(np.diagonal(found), 0)


def test_sets_that_are_asked_for_in_parts_are_all_summed(monkeypatch):
    monkeypatch.setattr(interactions, "CHUNK", 16)
    game = table_game(TABLE)
    np.testing.assert_allclose(r.exact_interactions(game, N), by_merging(TABLE), atol=1e-12)
    np.testing.assert_allclose(r.exact_interactions(r.tabulate(game, N), N), by_merging(TABLE), atol=1e-12)


def test_a_grid_on_an_image_that_is_no_square():
    assert r.grid_players((2, 6), 2).labels.tolist() == [[0, 0, 0, 1, 1, 1], [2, 2, 2, 3, 3, 3]]


def test_banzhaf_and_faith_shap_are_what_their_definitions_say():
    first = table_game(TABLE[:, 0])
    np.testing.assert_allclose(r.exact_interactions(first, N, "banzhaf"), averaged(TABLE[:, 0]), atol=1e-12)
    np.testing.assert_allclose(r.exact_interactions(first, N, "faith-shap"), faithful(TABLE[:, 0]), atol=1e-10)


def test_shapley_values_share_all_there_is():
    found = r.shapley_values(table_game(TABLE), N)
    wanted = [phi(TABLE, range(N), (i,)) for i in range(N)]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(found.sum(0), TABLE[-1] - TABLE[0], atol=1e-12)


def test_sums_and_the_mean_need_only_2n_plus_2_rewards():
    game = table_game(TABLE)
    all_pairs = r.exact_interactions(game, N)
    asked = []
    counting = lambda masks: (asked.append(len(masks)), game(masks))[1]  # noqa: E731
    np.testing.assert_allclose(r.interaction_sums(counting, N), all_pairs.sum(1), atol=1e-12)
    assert asked == [2 * N + 2]
    np.testing.assert_allclose(r.mean_interaction(game, N), r.mean_of_pairs(all_pairs), atol=1e-12)
    off = ~np.eye(N, dtype=bool)
    np.testing.assert_allclose(r.mean_of_pairs(all_pairs), np.asarray(all_pairs)[off].mean(0), atol=1e-12)


@pytest.mark.parametrize("index", INDICES)
def test_games_whose_interactions_are_known(index):
    exact = lambda game: np.asarray(r.exact_interactions(game, N, index))  # noqa: E731
    np.testing.assert_allclose(exact(lambda masks: masks @ jnp.arange(1.0, N + 1)), 0, atol=1e-12)
    np.testing.assert_allclose(exact(pairwise), WEIGHTS + WEIGHTS.T, atol=1e-12)


def test_everybody_is_needed():
    found = np.asarray(r.exact_interactions(lambda masks: (masks.sum(1) == N).astype(float), N))
    np.testing.assert_allclose(found[~np.eye(N, dtype=bool)], 1 / (N - 1), atol=1e-12)


def test_renaming_players_renames_interactions_and_scaling_scales_them():
    order = np.array([3, 1, 5, 0, 2, 4])
    game = table_game(TABLE)
    found = np.asarray(r.exact_interactions(game, N))
    renamed = lambda masks: game(jnp.zeros_like(masks).at[:, order].set(masks))  # noqa: E731
    np.testing.assert_allclose(r.exact_interactions(renamed, N), found[np.ix_(order, order)], atol=1e-12)
    np.testing.assert_allclose(r.exact_interactions(lambda masks: 3 * game(masks), N), 3 * found, atol=1e-12)


def test_a_tabulated_game_is_the_same_and_asks_once():
    game = table_game(TABLE)
    asked = []
    counting = lambda masks: (asked.append(len(masks)), game(masks))[1]  # noqa: E731
    table = r.tabulate(counting, N)
    assert sum(asked) == 2**N
    masks = jnp.asarray(RNG.integers(2, size=(20, N)), float)
    np.testing.assert_array_equal(table(masks), game(masks))
    np.testing.assert_allclose(r.exact_interactions(table, N), r.exact_interactions(game, N), atol=1e-12)
    assert sum(asked) == 2**N


def test_the_cut_of_a_pairwise_game_is_unbiased_for_every_size():
    mean = WEIGHTS.sum() / math.comb(N, 2)
    for size in range(1, N):
        sets = np.array([[i in chosen for i in range(N)] for chosen in itertools.combinations(range(N), size)], float)
        found = cuts(pairwise, jnp.asarray(sets))
        np.testing.assert_allclose(found.mean() / (size * (N - size)), mean, atol=1e-12)


@pytest.mark.parametrize("index", INDICES)
def test_the_law_of_contexts(index):
    for n in (2, 3, 7, 40):
        np.testing.assert_allclose(law_of_sizes(index, n).sum(), 1)
    sizes = np.arange(N - 1)
    wanted = {
        "shapley": [math.factorial(s) * math.factorial(N - s - 2) / math.factorial(N - 1) for s in sizes],
        "banzhaf": [2.0 ** (2 - N)] * (N - 1),
        "faith-shap": [6 * math.factorial(s + 1) * math.factorial(N - s - 1) / math.factorial(N + 1) for s in sizes],
    }[index]
    np.testing.assert_allclose(LAWS[index](N) / [math.comb(N - 2, s) for s in sizes], wanted)


@pytest.mark.parametrize("index", INDICES)
def test_estimates_are_unbiased_and_say_how_far_off_they_are(index):
    game = table_game(TABLE[:, 0])
    exact = float(r.mean_of_pairs(r.exact_interactions(game, N, index)))
    keys = jax.random.split(jax.random.key(0), 400)
    found = jax.jit(jax.vmap(lambda key: r.estimate_interaction(key, game, N, index, num_samples=50)))(keys)
    spread = float(found.mean.std(ddof=1))
    assert abs(float(found.mean.mean()) - exact) < 4 * spread / 20
    np.testing.assert_allclose(jnp.sqrt(jnp.mean(found.standard_error**2)), spread, rtol=0.15)
    assert int(found.cost[0]) == 4 * 50


def test_estimates_by_subsets_are_unbiased_where_they_promise_it():
    keys = jax.random.split(jax.random.key(1), 300)
    game = table_game(TABLE[:, 0])
    wanted = {1: (game, float(r.mean_interaction(game, N))), 4: (pairwise, WEIGHTS.sum() / math.comb(N, 2))}
    for size, (chosen, mean) in wanted.items():
        found = jax.vmap(lambda key, s=size, g=chosen: r.estimate_by_subsets(key, g, N, s, 20))(keys)
        spread = float(found.mean.std(ddof=1))
        assert abs(float(found.mean.mean()) - mean) < 4 * spread / math.sqrt(300), size
        np.testing.assert_allclose(jnp.sqrt(jnp.mean(found.standard_error**2)), spread, rtol=0.2)
        assert int(found.cost[0]) == 42


@pytest.mark.parametrize("n", [2, 3])
def test_where_all_pairs_are_alike_every_exact_way_gives_their_interaction(n):
    """Two games at once, w for each pair within a set, with the fewest players that there can be."""
    w = np.array([1.5, -0.5])

    def game(masks):
        size = masks.sum(1)
        return (size * (size - 1) / 2)[:, None] * w + (masks @ jnp.arange(1.0, n + 1) + 7)[:, None]

    @jax.jit
    def every():
        table = r.tabulate(game, n)
        return r.exact_interactions(table, n), r.mean_interaction(table, n), r.interaction_sums(game, n)

    exact, mean, sums = every()
    np.testing.assert_allclose(exact, (1 - np.eye(n))[..., None] * w, atol=1e-12)
    np.testing.assert_allclose(mean, w, atol=1e-12)
    np.testing.assert_allclose(sums, [(n - 1) * w] * n, atol=1e-12)


def test_two_samples_are_unbiased_for_every_game():
    """Rewards of one set alone are a basis of all games, here 64 at once; few samples must not prefer any player."""
    basis = np.eye(2**N)
    exact = by_merging(basis)[~np.eye(N, dtype=bool)].mean(0)
    game = table_game(basis)
    both = lambda key: (r.estimate_interaction(key, game, N, num_samples=2), r.estimate_by_subsets(key, game, N, 1, 2))  # noqa: E731
    for found in jax.jit(jax.vmap(both))(jax.random.split(jax.random.key(3), 3000)):
        mean, spread = np.asarray(found.mean).mean(0), np.asarray(found.mean).std(0)
        assert np.all(np.abs(mean - exact) <= 5 * spread / math.sqrt(3000) + 1e-12)


@pytest.mark.slow  # estimates and their errors are checked above
def test_the_error_falls_with_the_root_of_the_samples():
    game = table_game(TABLE[:, 0])
    keys = jax.random.split(jax.random.key(2), 300)
    spread = [
        float(jax.vmap(lambda key, m=m: r.estimate_by_subsets(key, game, N, 2, m).mean)(keys).var()) for m in (5, 20)
    ]
    assert 3 < spread[0] / spread[1] < 5.3


def quadratic_network(hessian):
    """Logits (0, ½ xᵀHx + gᵀx): a game of pairwise terms alone."""
    slope = jnp.linspace(-1, 1, len(hessian))

    def logits(images):
        flat = images.reshape(len(images), -1)
        value = 0.5 * jnp.einsum("bi,ij,bj->b", flat, hessian, flat) + flat @ slope
        return jnp.stack([jnp.zeros_like(value), value], axis=1)

    return logits


@pytest.mark.parametrize("targeted", [False, True])
def test_the_interactions_of_a_quadratic_network_are_blocks_of_its_hessian(targeted):
    hessian = RNG.normal(size=(16, 16))
    hessian = jnp.asarray(hessian + hessian.T)
    players = r.grid_players((4, 4), 2)
    images, delta = RNG.uniform(size=(3, 4, 4, 1)), RNG.normal(size=(3, 4, 4, 1))
    labels = jnp.array([0, 1, 0])
    game = r.perturbation_game(
        quadratic_network(hessian), jnp.asarray(images), jnp.asarray(delta), labels, players, targeted
    )
    found = np.asarray(r.exact_interactions(game, 4))
    unit = np.asarray(players.labels).ravel()
    flat, sign = delta.reshape(3, 16), np.where(np.asarray(labels) == 0, 1, -1) * (-1 if targeted else 1)
    for i, j in itertools.permutations(range(4), 2):
        block = np.asarray(hessian)[np.ix_(unit == i, unit == j)]
        wanted = sign * np.einsum("bi,ij,bj->b", flat[:, unit == i], block, flat[:, unit == j])
        np.testing.assert_allclose(found[i, j], wanted, atol=1e-10)


def test_the_game_keeps_the_perturbation_on_the_set_alone_and_the_rival_fixed():
    weights = jnp.asarray(RNG.normal(size=(4, 3)))
    logits = lambda images: images.reshape(len(images), -1) @ weights  # noqa: E731
    images, delta = RNG.uniform(size=(2, 2, 2)), RNG.normal(size=(2, 2, 2))
    game = r.perturbation_game(
        logits, jnp.asarray(images), jnp.asarray(delta), jnp.array([0, 2]), r.players_from([0, 1])
    )
    masks = np.array([[1.0, 0], [0, 1], [0, 0]])
    found = np.asarray(game(jnp.asarray(masks)))
    whole = np.asarray(logits(jnp.asarray(images + delta)))
    for b, label in enumerate((0, 2)):
        others = [c for c in range(3) if c != label]
        rival = others[int(np.argmax(whole[b, others]))]
        for m, mask in enumerate(masks):
            z = (images[b] + delta[b] * mask[:, None]).ravel() @ np.asarray(weights)  # the first axis are the players
            np.testing.assert_allclose(found[m, b], z[rival] - z[label], atol=1e-12)


@pytest.mark.parametrize("targeted", [False, True])
def test_rewards_are_margins_over_the_rival_of_the_whole_perturbation(targeted):
    """Every set of four players for three images at once, by a network that is not linear; nobody else's class."""
    weights, labels = RNG.normal(size=(8, 5)), np.array([4, 0, 2])
    images, delta, unit = RNG.uniform(size=(3, 4, 2)), RNG.normal(size=(3, 4, 2)), np.array([[0, 1], [2, 3]] * 2)
    masks = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(float)
    sines = lambda x: np.sin(x.reshape(-1, 8) @ weights)  # noqa: E731

    @jax.jit
    def rewards(images, delta, labels, masks):
        logits = lambda x: jnp.sin(x.reshape(-1, 8) @ weights)  # noqa: E731
        return r.perturbation_game(logits, images, delta, labels, r.players_from(unit), targeted)(masks)

    seen = sines(images + delta * masks[:, unit][:, None]).reshape(16, 3, 5)
    rival = np.where(np.arange(5) == labels[:, None], -np.inf, seen[-1]).argmax(1)
    wanted = seen[:, np.arange(3), rival] - seen[:, np.arange(3), labels]
    np.testing.assert_allclose(rewards(images, delta, labels, masks), -wanted if targeted else wanted, atol=1e-12)


def test_against_shapiq():
    shapiq = pytest.importorskip("shapiq")
    game = lambda coalitions: TABLE[coalitions @ POWERS, 0]  # noqa: E731
    computer = shapiq.ExactComputer(n_players=N, game=game)
    for index, name in (("shapley", "SII"), ("banzhaf", "BII"), ("faith-shap", "FSII")):
        peer = computer(index=name, order=2)
        found = np.asarray(r.exact_interactions(table_game(TABLE[:, 0]), N, index))
        for i, j in itertools.combinations(range(N), 2):
            np.testing.assert_allclose(found[i, j], peer[(i, j)], atol=1e-9)
