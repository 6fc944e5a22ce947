"""What problems state of themselves, with settings of all kinds: laws of draws, optima, equations, sentences."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.linalg import solve_banded

from laureate.problems import (
    answers,
    atari,
    confidences,
    grammar,
    peers,
    points,
    pools,
    recovery,
    score_tables,
    scores,
    seen_worlds,
    supports,
    unrolls,
)
from laureate.problems.datasets import diabetes
from laureate.problems.pdes import (
    AllenCahn,
    BlackScholesBasket,
    CIRBond,
    DoubleWell,
    Heat,
    HJBLog,
    InteractingDoubleWell,
    LinearQuadratic,
    QuadraticHJB,
    UnboundedSine,
)
from laureate.problems.small_worlds import Crossroads
from laureate.problems.unrolls.training_runs import CarInValley, TrainingRun

KEY = jax.random.key(3)


def near(found, expected, deviation, number):
    """Within 4.5 standard errors."""
    np.testing.assert_allclose(found, expected, atol=4.5 * deviation / np.sqrt(number) + 1e-6)


# --- laws -------------------------------------------------------------------------------------------------------------


def test_scores_are_log_normal_with_the_median_and_the_mean_that_are_reported():
    table = score_tables.ScoreTables(20_000, median=3.0, mean=9.0, record=5.0, spread=0.7)
    drawn = table.draw(KEY)
    agent, record = np.log(drawn.scores), np.log(np.asarray(drawn.record) - 1)
    near(agent.mean(), np.log(3), np.sqrt(2 * np.log(3)), 20_000)
    assert np.exp(agent.mean() + agent.var() / 2) == pytest.approx(9, rel=0.15)  # the mean of such a law
    assert agent.std() == pytest.approx(np.sqrt(2 * np.log(3)), rel=4.5 / np.sqrt(40_000))
    near(record.mean(), np.log(5), 0.7, 20_000)
    assert record.std() == pytest.approx(0.7, rel=4.5 / np.sqrt(40_000))
    near(np.corrcoef(agent, record)[0, 1], 0, 1, 20_000)
    assert set(np.asarray(drawn.random)) == {0.0}
    assert set(np.asarray(drawn.gamer)) == {1.0}


def test_codes_are_as_dense_as_said_and_columns_have_length_one():
    problem = recovery.GaussianDictionary(rows=6, columns=9, density=0.3)
    codes = np.asarray(problem.sample(KEY, 3000))
    near((codes != 0).mean(), 0.3, np.sqrt(0.21), codes.size)
    near(codes[codes != 0].std(), 1, np.sqrt(0.5), (codes != 0).sum())
    np.testing.assert_allclose(np.linalg.norm(problem.dictionary(KEY), axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("dim", [2, 5])
def test_clusters_lie_on_a_ring_in_a_plane(dim):
    ring = supports.PlanarRing(dim, spread=0.05)
    plane, modes = np.asarray(ring.plane, float), np.asarray(ring.modes, float)
    np.testing.assert_allclose(plane @ plane.T, np.eye(2), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(modes, axis=1), 2, rtol=1e-5)
    np.testing.assert_allclose(modes, np.roll(modes @ plane.T, 0, 0) @ plane, atol=1e-5)
    apart = np.linalg.norm(modes - np.roll(modes, 1, axis=0), axis=1)
    np.testing.assert_allclose(apart, 4 * np.sin(np.pi / 8), rtol=1e-5)
    drawn = np.asarray(ring.draw(KEY, 4000), float)
    which = np.argmin(np.linalg.norm(drawn[:, None] - modes, axis=-1), axis=1)
    near(np.bincount(which, minlength=8) / 4000, 1 / 8, np.sqrt(7) / 8, 4000)
    off = (drawn - modes[which]) @ plane.T
    near(off.std(), 0.05, 0.05 / np.sqrt(2), 8000)
    np.testing.assert_allclose(drawn - drawn @ plane.T @ plane, 0, atol=1e-5)


def test_right_answers_come_as_often_as_said():
    curves, ring, x = answers.TwoCurves(share=0.8), answers.Ring(), jnp.array([0.5])
    inputs, given = map(np.asarray, curves.pairs(KEY, 4000))
    signs = np.sign(given[:, 0])
    np.testing.assert_allclose(given, 4 * signs[:, None] * inputs ** np.arange(1, 4), rtol=1e-4, atol=1e-6)
    near((signs > 0).mean(), 0.8, 0.4, 4000)
    near(inputs.mean(), 0.5, 1 / np.sqrt(12), 4000)
    near(np.corrcoef(inputs[:, 0], signs)[0, 1], 0, 1, 4000)
    one = np.asarray(curves.draw(KEY, x, 4000))
    near((one[:, 0] > 0).mean(), 0.8, 0.4, 4000)
    np.testing.assert_allclose(np.abs(one), np.broadcast_to([2, 1, 0.5], (4000, 3)), rtol=1e-5)
    np.testing.assert_allclose(curves.answers(x), [[2, 1, 0.5], [-2, -1, -0.5]], rtol=1e-5)
    np.testing.assert_allclose(curves.tests(3)[:, 0], [0.2, 0.6, 1.0], rtol=1e-5)
    inputs, given = map(np.asarray, ring.pairs(KEY, 4000))
    for radius, found in ((1 + inputs[:, 0], given), (1.5, np.asarray(ring.draw(KEY, x, 4000)))):
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), radius, rtol=1e-5)
        turned = np.arctan2(found[:, 1], found[:, 0])
        near([np.cos(turned).mean(), np.sin(turned).mean(), np.cos(2 * turned).mean()], 0, np.sqrt(0.5), 4000)
    np.testing.assert_allclose(ring.tests(3)[:, 0], [0, 0.5, 1])


def test_labels_are_drawn_from_the_true_logits_which_the_model_sees_with_noise():
    """Without noise the model's probabilities are right on average; the noise does not move the labels."""
    sure = scores.NoisyScores(6, easiest=3.0, hardest=1.0)
    logits, y = map(np.asarray, sure.sample(KEY, 6000))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    spread = np.sqrt((p * (1 - p)).mean())
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.8), (0.8, 1.0)):
        here = (p >= low) & (p < high)
        near((y[:, None] == np.arange(6))[here].mean(), p[here].mean(), spread, here.sum() / 2)
    noisy, same = map(np.asarray, scores.NoisyScores(6, noise=0.7, easiest=3.0, hardest=1.0).sample(KEY, 6000))
    np.testing.assert_array_equal(y, same)
    near((noisy - logits).std(), 0.7, 0.7 / np.sqrt(2), 36_000)
    scales = np.sqrt((logits**2).mean())  # E s² = (1 + 3 + 9) / 3
    assert scales == pytest.approx(np.sqrt(13 / 3), rel=0.05)


def test_rows_of_ones_own_come_once_each():
    table = scores.ScoreTable(np.arange(100.0).reshape(10, 10) / 5, np.arange(10))
    for asked, number in ((4, 4), (10, 10), (15, 10)):
        logits, labels = map(np.asarray, table.sample(KEY, asked))
        assert len(set(labels.tolist())) == number == len(labels)
        np.testing.assert_array_equal(logits[:, 0], 2 * labels)
    first, second = (np.asarray(table.sample(jax.random.key(k), 10)[1]) for k in (0, 1))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("gap", "common", "rare"), [(0.5, [(0, 0.5), (1, 1.5)], (-1.2, -0.8)), (0.0, [(0, 1)], (-1, -0.5))]
)
def test_points_on_a_line_lie_where_they_are_said_to_lie(gap, common, rare):
    x, y = map(np.asarray, pools.LinePool(300, 200, gap).draw(KEY))
    np.testing.assert_allclose(y, np.maximum(0, x) * (np.abs(x) ** 1.5 + np.sin(20 * x) / 4), atol=1e-5)
    for part, ranges in ((x[:300], common), (x[300:], [rare])):
        whole = sum(high - low for low, high in ranges)
        for low, high in ranges:
            here = part[(part >= low - 1e-6) & (part <= high + 1e-6)]
            near(len(here) / len(part), (high - low) / whole, 0.5, len(part))
            assert (here.min() - low, high - here.max()) < (0.05 * whole, 0.05 * whole)
        assert sum(((part >= low - 1e-6) & (part <= high + 1e-6)).sum() for low, high in ranges) == len(part)


def test_clouds_are_dense_stretched_and_joined_to_their_nearest():
    plain, long = points.PointClouds(4, 9, 3, seed=2), points.PointClouds(4, 9, 3, stretch=1.5, seed=2)
    p = np.asarray(plain.points, float)
    np.testing.assert_allclose(p.mean(1), 0, atol=1e-5)
    np.testing.assert_allclose(long.points, p * [1.5, 1, 1 / 1.5], rtol=1e-4, atol=1e-5)
    apart = np.linalg.norm(p[:, :, None] - p[:, None], axis=-1) + 1e9 * np.eye(9)
    assert apart.min() >= 2 - 1e-5
    np.testing.assert_array_equal(plain.neighbors, np.argsort(apart, -1)[:, :, :3])
    np.testing.assert_allclose(np.linalg.norm(plain.directions, axis=-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(plain.marked, [[1, 1, 1, 0, 0, 0, 0, 0, 0]] * 4)
    drawn = points.draw_points(np.random.default_rng(0), 30, 12, share=0.1)
    radius = np.linalg.norm(drawn, axis=-1)
    assert radius.max() <= 120 ** (1 / 3)
    assert radius.max() > 0.98 * 120 ** (1 / 3)
    moved, marked = long.points + 3, long.marked
    centre, whole = np.asarray(moved)[:, :3].mean(1), np.asarray(moved).mean(1)
    np.testing.assert_allclose(points.off_centre(moved, marked), np.linalg.norm(centre - whole, axis=-1), rtol=1e-4)
    np.testing.assert_allclose(points.to_marked(moved, marked), centre[:, None] - moved, atol=1e-4)
    a, b, c = (np.asarray(moved)[:, i] for i in range(3))
    around = sum(np.linalg.norm(x - y, axis=-1) for x, y in ((a, b), (b, c), (c, a)))
    np.testing.assert_allclose(points.perimeter(moved), around, rtol=1e-4)


def test_truths_of_scores_and_the_scores_themselves():
    s = np.array([0.02, 0.3, 0.6, 0.95, 0.99])
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    steps = 0.2 + 0.5 * sigmoid(20 * (s - 0.6)) + 0.25 * sigmoid(60 * (s - 0.95))
    for number, expected in enumerate((s, sigmoid(0.5 * np.log(s / (1 - s))), steps)):
        np.testing.assert_allclose(confidences.known_truth(jnp.asarray(number), s), expected, rtol=1e-4)
    np.testing.assert_allclose(confidences.scores_of_rank(s), stats.beta(4, 1).ppf(s), rtol=1e-5)


def test_branches_are_the_cells_around_the_middle_all_as_likely():
    world = Crossroads(3)
    drawn = np.asarray(world.draw(KEY, 5, 600))
    np.testing.assert_array_equal(drawn[::2], np.broadcast_to(np.eye(9)[4], (3, 600, 9)))
    near(drawn[1::2].mean((0, 1)), np.isin(np.arange(9), [0, 1, 2]) / 3, np.sqrt(2) / 3, 1200)
    np.testing.assert_array_equal(world.ends, np.eye(9)[:3])
    np.testing.assert_array_equal(Crossroads(8).ends, np.eye(9)[[0, 1, 2, 3, 5, 6, 7, 8]])
    assert [world.last_middle(length) for length in (3, 4, 5)] == [2, 2, 4]


def test_where_training_and_episodes_start():
    keys = jax.random.split(KEY, 500)
    run, car = TrainingRun(), CarInValley()
    theta, start, swing = jax.jit(
        jax.vmap(lambda k: (run.theta0(k), car.init(k, None)[0], seen_worlds.Pendulum().reset(k)[0]))
    )(keys)
    for values, low, high in (
        (theta["log_rate"], -9, 0),
        (theta["momentum"], -3, 3),
        (start, -0.6, -0.4),
        (swing.angle, -np.pi, np.pi),
        (swing.speed, -1, 1),
        (jax.vmap(unrolls.RidgeCoefficient().theta0)(keys), -5, 5),
    ):
        values = np.asarray(values, float)
        assert low <= values.min() < low + 0.03 * (high - low) + 1e-6
        assert high - 0.03 * (high - low) < values.max() <= high + 1e-6
        near(values.mean(), (low + high) / 2, (high - low) / np.sqrt(12), values.size)


def test_a_picture_is_shrunk_to_the_means_of_its_blocks():
    frame = np.random.default_rng(0).integers(0, 256, (210, 160), np.uint8)
    found = atari.shrunk(frame)
    assert (found.shape, found.dtype) == ((42, 40), np.uint8)
    for i, j in ((0, 0), (41, 39), (20, 3)):
        assert found[i, j] == int(frame[5 * i : 5 * i + 5, 4 * j : 4 * j + 4].mean())


def test_a_pool_of_ones_own_is_handed_out_as_it_is():
    pool = pools.Pool([0.123456, 2.0, -0.3], [0.2, 0.0, 0.7654321])
    losses, scores_of = pool.draw(KEY)
    np.testing.assert_allclose(losses, [0.123456, 2.0, -0.3], rtol=1e-6)
    np.testing.assert_allclose(scores_of, [0.2, 0.0, 0.7654321], rtol=1e-6)


def test_accuracy_on_images_that_no_node_has():
    """By the linear logits of each image; one logit that is not finite is enough for NaN."""
    problem = peers.judged_images(3, 20, 50)
    weights, bias = np.random.default_rng(0).normal(size=(64, 10)), np.zeros(10)
    right = np.argmax(np.asarray(problem.test_images, float) @ weights, 1) == np.asarray(problem.test_labels)
    params = {"weights": jnp.asarray(weights, jnp.float32), "bias": jnp.asarray(bias, jnp.float32)}
    accuracy = eqx.filter_jit(problem.accuracy)
    assert float(accuracy(params)) == pytest.approx(right.mean())
    assert np.isnan(accuracy(params | {"bias": params["bias"].at[3].set(np.inf)}))


# --- optima and gradients ---------------------------------------------------------------------------------------------


def test_quadratics_of_peers_have_the_gradients_noise_and_optimum_that_they_state():
    problem = peers.Quadratics(nodes=3, dimension=4)
    hessian, shift = map(np.asarray, problem.sample(KEY))
    matrix_key, shift_key = jax.random.split(KEY)
    a = np.asarray(jax.random.normal(matrix_key, (3, 4, 4)), float) / 2
    b = np.asarray(jax.random.normal(shift_key, (3, 4)), float)
    x = np.array([0.5, -1, 2, 0.1], np.float32)
    noise = np.asarray(jax.random.normal(KEY, (4,)))
    for node in range(3):
        found = problem.gradient(KEY, jnp.asarray(x), (hessian[node], shift[node]), 0.3)
        np.testing.assert_allclose(found, a[node].T @ (a[node] @ x - b[node]) + 0.3 * noise, atol=1e-4)
    best = np.linalg.lstsq(a.reshape(12, 4), b.reshape(12), rcond=None)[0]
    np.testing.assert_allclose(problem.optimum((jnp.asarray(hessian), jnp.asarray(shift))), best, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("model", ["linear", "conv"])
def test_peers_lose_what_the_docstring_says(model):
    """Logits in NumPy, mean cross-entropy, λ/2 of all parameters' squares; a node's gradient is of its own batch."""
    pool = 2 if model == "linear" else 1
    problem = peers.ImagesOverNodes(2, 6, model=model, channels=2, batch=3, pool=pool, penalty=0.3)
    params = {name: 0.1 + np.asarray(leaf) for name, leaf in problem.theta0(KEY).items()}
    x, y = np.asarray(problem.images, float), np.asarray(problem.labels)

    def logits(params, x):
        if model == "linear":
            return x @ params["weights"] + params["bias"]
        square, size = x.reshape(-1, 8, 8), 6
        hidden = np.zeros((len(x), size, size, 2))
        for i, j in np.ndindex(size, size):
            hidden[:, i, j] = square[:, i : i + 3, j : j + 3].reshape(-1, 9) @ params["kernel"] + params["shift"]
        pooled = np.maximum(hidden, 0).reshape(-1, 3, 2, 3, 2, 2).max((2, 4))
        return pooled.reshape(len(x), -1) @ params["weights"] + params["bias"]

    def loss(params, x, y):
        z = logits(params, x)
        entropy = (np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y]).mean()
        return entropy + 0.15 * sum((leaf**2).sum() for leaf in params.values())

    @jax.jit
    def found(params):
        data = problem.images[6:], problem.labels[6:]
        return problem.whole_loss(params), problem.gradient(KEY, params, data), problem.loss(params, *data)

    whole, gradient, mine = found({name: jnp.asarray(leaf) for name, leaf in params.items()})
    params = {name: leaf.astype(float) for name, leaf in params.items()}
    assert float(whole) == pytest.approx(loss(params, x, y), rel=1e-4)
    assert float(mine) == pytest.approx(loss(params, x[6:], y[6:]), rel=1e-4)
    rows = 6 + np.asarray(jax.random.randint(KEY, (3,), 0, 6))
    for name, leaf in params.items():
        for at in (0, leaf.size - 1):
            step = np.zeros(leaf.size)
            step[at] = 1e-5
            up, down = ({**params, name: leaf + sign * step.reshape(leaf.shape)} for sign in (1, -1))
            slope = (loss(up, x[rows], y[rows]) - loss(down, x[rows], y[rows])) / 2e-5
            assert float(np.ravel(gradient[name])[at]) == pytest.approx(slope, rel=1e-2, abs=1e-3)


def test_a_share_of_the_images_is_mixed_and_the_others_stay():
    problem = peers.ImagesOverNodes(4, 100)
    for share in (0.0, 0.3, 1.0):
        images, labels = problem.parts(KEY, share)
        assert images.shape == (4, 100, 64)
        here = (np.asarray(images).reshape(400, 64) == np.asarray(problem.images)).all(1)
        near(here.mean(), 1 - share, 0.5, 400)
        pairs = zip(np.asarray(problem.images), np.asarray(problem.labels), strict=True)
        known = {row.tobytes(): label for row, label in pairs}
        rows = [row.tobytes() for row in np.asarray(images).reshape(400, 64)]
        assert len(set(rows)) == 400
        assert [known[row] for row in rows] == np.asarray(labels).ravel().tolist()


def test_a_ridge_coefficient_of_another_share_and_step():
    problem = unrolls.RidgeCoefficient(split=4, train_share=0.6, step_size=2e-3)
    inputs, targets = diabetes()
    order = np.random.default_rng(4).permutation(442)
    train, held = order[:265], order[265:]
    (x, y), (v, z) = ((inputs[rows], targets[rows]) for rows in (train, held))
    w, w0 = problem.init(KEY, None), np.zeros(10)
    for _ in range(2):
        w, loss = problem.step(KEY, jnp.array(1.0), w)
        w0 = w0 - 2e-3 * (x.T @ (x @ w0 - y) + np.e * w0)
        assert float(loss) == pytest.approx(0.5 * ((v @ w0 - z) ** 2).mean(), rel=1e-4)
    grid = np.linspace(-8, 8, 161)
    losses = [((v @ np.linalg.solve(x.T @ x + np.exp(g) * np.eye(10), x.T @ y) - z) ** 2).mean() for g in grid]
    assert float(problem.best) == pytest.approx(grid[np.argmin(losses)], abs=0.1)


def test_influence_is_balanced_at_its_optimum_for_other_numbers_of_signs():
    for size, positive in ((5, 1), (7, 6)):
        problem = unrolls.InfluenceBalancing(size, positive)
        shift = 0.5 * np.eye(size) + 0.5 * np.eye(size, k=1)
        signs = np.where(np.arange(size) < positive, 1.0, -1.0)
        rest = np.linalg.solve(np.eye(size) - shift, problem.best * signs)
        assert rest[0] == pytest.approx(1)


# --- sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(6, 4, 4, 16), (3, 2, 2, 9)])
def test_sentences_have_the_order_that_the_grammar_gives_them(sizes):
    """An adverb; then clauses of a noun, adjectives and a verb; a bracket only before a noun, never two in a row."""
    rules = grammar.Grammar(*sizes)
    found = grammar.draw(np.random.default_rng(0), rules, 300)
    before = {0: set(), 1: {0, 4}, 2: {0, 1, 4}, 3: {2, 3}, 4: {2, 3}}
    lengths = (found.kind >= 0).sum(1)
    assert set(lengths) == set(range(sizes[3] // 2, sizes[3] + 1))
    for row, length in enumerate(lengths):
        kinds = found.kind[row, :length].tolist()
        assert kinds[0] == 0
        assert all(earlier in before[later] for earlier, later in itertools.pairwise(kinds))
        brackets = [word for word in found.sources[row, :length] if word in (2, 3)]
        assert brackets == [2 + k % 2 for k in range(len(brackets))]
        for place, kind in enumerate(kinds):
            said = (found.number[row, place], found.gender[row, place])
            if 2 not in kinds[: place + 1]:
                assert said == (-1, -1)
            elif kind == 2:
                noun = (found.sources[row, place] - 4) // 2
                assert said == ((found.sources[row, place] - 4) % 2, int(noun >= (sizes[0] + 1) // 2))


# --- equations --------------------------------------------------------------------------------------------------------


@pytest.fixture
def double_precision():
    with jax.enable_x64(True):
        yield


X = np.array([0.4, -0.7, 1.3])


def hermite(function, deviation):
    """E f(σ Z)."""
    z, w = np.polynomial.hermite_e.hermegauss(80)
    return w @ function(deviation * z) / np.sqrt(2 * np.pi)


def of_hjb_log(pde, tau):
    """By the law of ‖x + √(2τ) Z‖², a multiple of a chi-square that is not central."""
    law = lambda q: stats.ncx2.pdf(q, 3, X @ X / (2 * tau))  # noqa: E731
    return -np.log(integrate.quad(lambda q: law(q) * 2 / (1 + 2 * tau * q), 0, 200, epsabs=1e-12, limit=200)[0])


def of_quadratic(pde, tau):
    return -sum(np.log(hermite(lambda z, x=x: np.exp(-pde.a * (x + z) ** 2), pde.s * np.sqrt(tau))) for x in X)


def of_riccati(pde, tau):
    rate = lambda _, pc: [pde.q - 2 * pde.theta * pc[0] - 2 * pde.s**2 * pc[0] ** 2, 3 * pde.s**2 * pc[0]]  # noqa: E731
    p, c = integrate.solve_ivp(rate, (0, tau), [pde.a, 0], rtol=1e-10, atol=1e-12).y[:, -1]
    return p * (X @ X) + c


def of_heat(pde, tau):
    return sum(hermite(lambda z, x=x: (x + z) ** 2, pde.s * np.sqrt(tau)) for x in X)


def of_basket(pde, tau):
    """The price: what a lognormal mean pays above the strike, discounted."""
    shares = np.exp(X)
    mean, deviation = np.log(shares).mean() + (pde.rate - pde.s**2 / 2) * tau, pde.s * np.sqrt(tau / 3)
    low = (np.log(pde.strike) - mean) / deviation
    pay = lambda z: (np.exp(mean + deviation * z) - pde.strike) * stats.norm.pdf(z)  # noqa: E731
    return np.exp(-pde.rate * tau) * integrate.quad(pay, low, 12)[0]


SOLVED = {
    "hjb-log": (HJBLog(3, 0.8), of_hjb_log, X),
    "quadratic": (QuadraticHJB(3, 1.2, a=0.4, s=0.7), of_quadratic, X),
    "linear-quadratic": (LinearQuadratic(3, 0.9, theta=0.3, s=1.4, q=0.2, a=0.5), of_riccati, X),
    "heat": (Heat(3, 0.7, s=1.6), of_heat, X),
    "basket": (BlackScholesBasket(3, 1.3, rate=0.1, s=0.35, strike=1.2), of_basket, np.exp(X)),
}


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.usefixtures("double_precision")
def test_exact_solutions_are_the_expectations_that_they_stand_for_with_any_settings(name):
    pde, expected, x = SOLVED[name]
    t = 0.3 * pde.horizon
    assert float(eqx.filter_jit(pde.exact)(t, x)) == pytest.approx(expected(pde, 0.7 * pde.horizon), rel=1e-6)


def slope(function, x):
    """By central differences in NumPy."""
    steps = 1e-5 * np.eye(len(x))
    return np.array([(function(x + h) - function(x - h)) / 2e-5 for h in steps])


WELL = DoubleWell(3, 0.4, kappa=0.3, eta=0.2)
MANY = InteractingDoubleWell(3, 0.4, eta=0.3, coupling=0.4)
C = np.eye(3) + 0.4 * np.random.default_rng(42).standard_normal((3, 3))
SPEED, LEVEL, VOLATILITY = np.random.default_rng(42).uniform(size=(3, 3))
Z, Y = np.array([0.2, -0.5, 0.9]), 0.7
SUM = np.arange(1.0, 4)
# The equation of each: drift, diffusion, driver without k, and end, as their docstrings give them.
STATED = {
    "hjb-log": (SOLVED["hjb-log"][0], 0 * X, 2**0.5, -Z @ Z / 2, np.log((1 + X @ X) / 2)),
    "quadratic": (SOLVED["quadratic"][0], 0 * X, 0.7, -Z @ Z / 2, 0.4 * X @ X),
    "linear-quadratic": (SOLVED["linear-quadratic"][0], -0.3 * X, 1.4, 0.2 * X @ X - Z @ Z / 2, 0.5 * X @ X),
    "heat": (SOLVED["heat"][0], 0 * X, 1.6, 0.0, X @ X),
    "double-well": (
        WELL,
        -slope(lambda x: 0.3 * ((x**2 - 1) ** 2).sum(), X),
        1.0,
        -Z @ Z / 2,
        0.2 * ((X - 1) ** 2).sum(),
    ),
    "interacting": (
        MANY,
        -slope(lambda x: (x**2 - 1) @ C @ (x**2 - 1), X),
        1.0,
        -Z @ Z / 2,
        0.3 * ((X - 1) ** 2).sum(),
    ),
    "basket": (
        SOLVED["basket"][0],
        0.1 * np.exp(X),
        0.35 * np.exp(X),
        -0.1 * Y,
        max(np.exp(X.mean()) - 1.2, 0),
    ),
    "allen-cahn": (AllenCahn(3, 0.2), 0 * X, 2**0.5, Y - Y**3, 1 / (2 + 0.4 * X @ X)),
    "bond": (
        CIRBond(3, 0.5),
        SPEED * (LEVEL - X),
        (VOLATILITY * np.sqrt(np.abs(X)))[:, None],
        -Y * 1.3,
        1.0,
    ),
}


@pytest.mark.parametrize("name", STATED)
@pytest.mark.usefixtures("double_precision")
def test_equations_are_those_that_are_stated_with_any_settings(name):
    pde, drift, diffusion, driver, end = STATED[name]
    x = np.exp(X) if name == "basket" else X
    found = jax.jit(lambda x: (pde.drift(0.1, x), pde.diffusion(0.1, x), pde.driver(0.1, x, Y, Z), pde.terminal(x)))(x)
    for value, expected in zip(found, (drift, diffusion, driver, end), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-9)
    starts = {"linear-quadratic": 1, "basket": 1, "bond": 1, "double-well": -1, "interacting": -1}
    np.testing.assert_array_equal(pde.x0, np.full(3, starts.get(name, 0)))
    if name == "interacting":
        np.testing.assert_allclose(pde.coupling, C, rtol=1e-6)


@pytest.mark.usefixtures("double_precision")
def test_gradients_at_the_end_are_those_of_the_end():
    basket, hjb, shares = SOLVED["basket"][0], SOLVED["hjb-log"][0], np.exp([[0.4, 0.5, 0.1], [0.1, 0.2, -0.3]])
    found = jax.jit(lambda: (jax.vmap(basket.terminal_gradient)(shares), hjb.terminal_gradient(X)))()
    pays = lambda x: max(np.exp(np.log(x).mean()) - 1.2, 0)  # noqa: E731
    for gradient, share in zip(found[0], shares, strict=True):
        np.testing.assert_allclose(gradient, slope(pays, share), atol=1e-8)
    np.testing.assert_allclose(found[1], slope(lambda x: np.log((1 + x @ x) / 2), X), rtol=1e-7)


@pytest.mark.usefixtures("double_precision")
def test_an_unbounded_solution_solves_its_equation_and_reacts_as_said():
    """∂_t V + ΔV/2d + h(V, ∇V/√d) = 0 by differences of V; elsewhere h moves by y (1·z)/(2√d) + y²/2."""
    pde, t = UnboundedSine(3, 0.8), 0.3

    def value(t, x):
        return (0.8 - t) / 3 * np.where(x < 0, np.sin(x), x).sum() + np.cos(SUM @ x)

    flow = (value(t + 1e-4, X) - value(t - 1e-4, X)) / 2e-4
    flow += sum((value(t, X + h) - 2 * value(t, X) + value(t, X - h)) / 1e-6 for h in 1e-3 * np.eye(3)) / 6
    z = slope(lambda x: value(t, x), X) / np.sqrt(3)
    exact, solved, other, end = jax.jit(
        lambda x: (pde.exact(t, x), pde.driver(t, x, value(t, X), z), pde.driver(t, x, Y, Z), pde.terminal(x))
    )(X)
    assert float(exact) == pytest.approx(value(t, X), rel=1e-9)
    assert float(solved) == pytest.approx(-flow, rel=1e-4)
    reaction = lambda y, z: y * z.sum() / (2 * np.sqrt(3)) + y**2 / 2  # noqa: E731
    assert float(other - solved) == pytest.approx(reaction(Y, Z) - reaction(value(t, X), z), rel=1e-5)
    assert float(end) == pytest.approx(value(0.8, X), rel=1e-9)
    np.testing.assert_array_equal(pde.drift(t, X), np.zeros(3))
    assert float(pde.diffusion(t, X)) == pytest.approx(3**-0.5)
    np.testing.assert_array_equal(pde.x0, np.full(3, 0.5))


@pytest.mark.usefixtures("double_precision")
def test_tables_of_one_dimension_agree_with_finite_differences_and_hold_their_ends():
    """Another rule on another grid, with other constants; outside in place and time the value at the end."""
    x = np.linspace(-4, 4, 801)
    start, h, ends = np.exp(-0.2 * (x - 1) ** 2), x[1] - x[0], 1.0 * (np.arange(801) % 800 != 0)
    drift, spread = -ends * 4 * 0.3 * x * (x**2 - 1) / (2 * h), ends / (2 * h**2)
    bands = np.stack([np.roll(spread + drift, 1), -2 * spread, np.roll(spread - drift, -1)])
    found = []
    for steps in (400, 800):  # first order in time: two lengths of step, extrapolated
        psi, matrix = start, np.array([[0.0], [1.0], [0.0]]) - 0.4 / steps * bands
        for _ in range(steps):
            psi = solve_banded((1, 1), matrix, psi)
        found.append(psi)
    places = np.array([-1.0, 0.2, 1.5])
    expected = -np.log(np.interp(places, x, 2 * found[1] - found[0]))
    table, cold = WELL.table, AllenCahn(2, 0.2).table
    each = jax.jit(lambda t, x: (table(t, x), cold(t, x)))
    np.testing.assert_allclose(each(0.4, places)[0], expected, atol=2e-4)
    assert float(eqx.filter_jit(WELL.exact)(0.0, places)) == pytest.approx(expected.sum(), abs=5e-4)
    for one, (low, high), horizon in ((0, (-4.5, 4.5), 0.4), (1, (0.0, cold.high), 0.2)):
        inside, outside = np.array([low, high, low]), np.array([low - 1, high + 7, low - 30])
        np.testing.assert_allclose(each(0.1, outside)[one], each(0.1, inside)[one], rtol=1e-6)
        np.testing.assert_allclose(each(horizon + 1, places)[one], each(horizon, places)[one], rtol=1e-9)
        np.testing.assert_allclose(each(-1.0, places)[one], each(0.0, places)[one], rtol=1e-9)
