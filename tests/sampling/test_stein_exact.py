"""Stein discrepancies, tests and particles against formulas written again in NumPy, closed forms and BlackJAX."""

import itertools

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import norm

from laureate._core import Status
from laureate.sampling import (
    BOUNDED,
    MOMENTS,
    Slices,
    SteinVariational,
    fit_slices,
    ksd,
    max_sliced_ksd,
    random_slices,
    sliced_ksd,
    stein_mean_test,
    stein_test,
    svgd,
)
from laureate.sampling.stein_bootstrap import _stein_features, bootstrap_weights, flip_from_chains
from laureate.sampling.stein_discrepancy import floored, median_distance

RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, 3)).astype(np.float32)
S = RNG.normal(size=(7, 3)).astype(np.float32)
LINES = RNG.normal(size=(2, 4, 3))
LINES = (LINES / np.linalg.norm(LINES, axis=2, keepdims=True)).astype(np.float32)
PROFILES = {
    "rbf": lambda t: np.exp(-t / 2),
    "imq": lambda t: (1 + t) ** -0.5,
    "own": lambda t: 1 / (1 + t**2),
}
KERNELS = {"rbf": "rbf", "imq": "imq", "own": lambda t: 1 / (1 + t**2)}
ELL = 1.3


def by_differences(x, s, profile, ell=ELL, step=1e-4):
    """h of every pair with derivatives of k by central differences: x and s are [n, d]."""
    x, s = np.asarray(x, np.float64), np.asarray(s, np.float64)
    n, d = x.shape
    k = lambda a, b: profile(np.sum((a - b) ** 2) / ell**2)  # noqa: E731
    unit, gram = step * np.eye(d), np.empty((n, n))
    for i, j in itertools.product(range(n), range(n)):
        a, b = x[i], x[j]
        by_a = np.array([k(a + e, b) - k(a - e, b) for e in unit]) / (2 * step)
        by_b = np.array([k(a, b + e) - k(a, b - e) for e in unit]) / (2 * step)
        trace = sum(k(a + e, b + e) - k(a + e, b - e) - k(a - e, b + e) + k(a - e, b - e) for e in unit) / (4 * step**2)
        gram[i, j] = s[i] @ s[j] * k(a, b) + s[i] @ by_b + s[j] @ by_a + trace
    return gram


def sliced_by_differences(x, s, r, g, profile, ell=ELL, step=1e-4):
    """h_{r,g}: the score on r, the point on g, a the product of both."""
    u, s_r, a = np.asarray(x, np.float64) @ g, np.asarray(s, np.float64) @ r, float(r @ g)
    k = lambda p, q: profile((p - q) ** 2 / ell**2)  # noqa: E731
    gram = np.empty((len(u), len(u)))
    for i, j in itertools.product(range(len(u)), range(len(u))):
        p, q = u[i], u[j]
        by_p, by_q = (k(p + step, q) - k(p - step, q)) / (2 * step), (k(p, q + step) - k(p, q - step)) / (2 * step)
        both = (k(p + step, q + step) - k(p + step, q - step) - k(p - step, q + step) + k(p - step, q - step)) / (
            4 * step**2
        )
        gram[i, j] = s_r[i] * s_r[j] * k(p, q) + a * s_r[i] * by_q + a * s_r[j] * by_p + a * a * both
    return gram


def u_and_v(gram):
    n = len(gram)
    return (gram.sum() - np.trace(gram)) / (n * (n - 1)), gram.mean()


@pytest.fixture(scope="module")
def values():
    """Every kernel and statistic in one program."""

    def run(x, s):
        found = {}
        for name, kernel in KERNELS.items():
            for statistic in ("u", "v"):
                more = {"kernel": kernel, "statistic": statistic, "bandwidth": ELL}
                found[name, statistic] = ksd(x, s, **more), sliced_ksd(x, s, Slices(*map(jnp.asarray, LINES)), **more)
        return list(found.values())

    found = jax.tree.map(np.asarray, jax.jit(run)(X, S))
    return dict(zip(itertools.product(KERNELS, ("u", "v")), found, strict=True))


@pytest.mark.parametrize("name", PROFILES)
def test_whole_and_sliced_are_their_definition(values, name):
    whole = u_and_v(by_differences(X, S, PROFILES[name]))
    lines = [u_and_v(sliced_by_differences(X, S, r, g, PROFILES[name])) for r, g in zip(*LINES, strict=True)]
    for place, statistic in enumerate(("u", "v")):
        plain, sliced = values[name, statistic]
        assert plain == pytest.approx(whole[place], abs=2e-5)
        np.testing.assert_allclose(sliced.per_slice, [line[place] for line in lines], atol=2e-5)
        assert sliced.value == pytest.approx(sum(line[place] for line in lines), abs=5e-5)


# --- closed forms: points that stand for a Gaussian law ---------------------------------------------------------------


def normal_grid(side):
    """Points of a grid that stand for N(0, I) in two dimensions."""
    line = norm.ppf((np.arange(side) + 0.5) / side)
    line = line / line.std()
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)


NORMAL = normal_grid(40)
PRECISION = np.array([[1.5, -0.6], [-0.6, 0.8]])
COVARIANCE = np.array([[0.7, 0.3], [0.3, 1.4]])
MEAN = np.array([0.4, -0.2])
POINTS = (MEAN + NORMAL @ np.linalg.cholesky(COVARIANCE).T).astype(np.float32)
R, G = np.array([0.6, 0.8]), np.array([0.28, -0.96])


def sliced_closed(r, g, ell, precision=PRECISION, covariance=COVARIANCE, mean=MEAN):
    """SKSD² of q = N(m, C) and p = N(0, Λ⁻¹): ℓ/√(ℓ²+2σ²) [(rᵀΛm)² + (rᵀ(ΛC − I)g)²/(ℓ²+2σ²)], σ² = gᵀCg."""
    wide = ell**2 + 2 * g @ covariance @ g
    return (
        ell / np.sqrt(wide) * ((r @ precision @ mean) ** 2 + (r @ (precision @ covariance - np.eye(2)) @ g) ** 2 / wide)
    )


def test_gaussian_draws_have_the_values_of_the_closed_forms():
    one = jax.jit(lambda x, ell: ksd(x, -x, bandwidth=ell, statistic="v"))
    line = np.repeat(norm.ppf((np.arange(1600) + 0.5) / 1600)[:, None], 2, axis=1).astype(np.float32)

    def both(x):
        s = -x @ jnp.asarray(PRECISION, jnp.float32)
        lines = Slices(jnp.asarray(R, jnp.float32)[None], jnp.asarray(G, jnp.float32)[None])
        return ksd(x, s, bandwidth=ELL, statistic="v"), sliced_ksd(x, s, lines, bandwidth=ELL, statistic="v").value

    whole, sliced = jax.jit(both)(POINTS)
    assert float(sliced) == pytest.approx(sliced_closed(R, G, ELL), rel=0.1)
    # KSD²: |I + 2C/ℓ²|^−½ [tr(B C(ℓ²I + 2C)⁻¹C Bᵀ) + |Λm|²], B = Λ − C⁻¹
    b = PRECISION - np.linalg.inv(COVARIANCE)
    inner = COVARIANCE @ np.linalg.inv(ELL**2 * np.eye(2) + 2 * COVARIANCE) @ COVARIANCE
    size = np.linalg.det(np.eye(2) + 2 * COVARIANCE / ELL**2) ** -0.5
    closed = size * (np.trace(b @ inner @ b.T) + np.sum((PRECISION @ MEAN) ** 2))
    assert float(whole) == pytest.approx(closed, rel=0.03)
    narrow, wide = (float(one(np.sqrt(v) * line[:, :1], 1.0)) for v in (0.3, 2.0))
    assert narrow == pytest.approx(0.24211188, rel=0.01)  # .7²/1.6^1.5
    assert wide == pytest.approx(0.08944272, rel=0.02)  # 5^−1.5


def test_the_axes_are_blind_to_a_mean_field_law_and_turned_slices_are_not():
    """C = diag(1/Λ_ii): diag(ΛC) = 1 and m = 0. No slice of the axes sees it, and no particle of it moves."""
    field = np.diag(1 / np.diag(PRECISION))
    points = jnp.asarray(NORMAL @ np.sqrt(field), jnp.float32)
    score = lambda x: -x @ jnp.asarray(PRECISION, jnp.float32)  # noqa: E731
    turned = np.array([[0.6, 0.8], [-0.8, 0.6]])

    def run(x):
        found = [sliced_ksd(x, score(x), bandwidth=ELL, statistic="v").value]
        found += [sliced_ksd(x, score(x), Slices(*[jnp.asarray(turned, x.dtype)] * 2), bandwidth=ELL).value]
        for slices in ("identity", "rotate", "none"):
            sampler = SteinVariational(score, optax.sgd(0.1), slices=slices, bandwidth=ELL)
            found.append(sampler.step(jax.random.key(0), sampler.init(x))[1].force)
        return jnp.stack(found)

    axes, lines, still, moved, whole = np.asarray(jax.jit(run)(points))
    assert abs(axes) < 2e-3
    assert lines == pytest.approx(
        sum(sliced_closed(g, g, ELL, covariance=field, mean=0 * MEAN) for g in turned), rel=0.05
    )
    assert still < 0.2 * min(moved, whole)


# --- bandwidths, invariances, gradients -------------------------------------------------------------------------------


def test_bandwidths():
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(X, 2)]
    many = RNG.normal(size=(300, 2)).astype(np.float32)
    all_pairs = np.median([np.linalg.norm(a - b) for a, b in itertools.combinations(many, 2)])

    def run(x, s, many):
        given = [ksd(x, s, bandwidth=b) for b in ("median", "log", np.median(distances))]
        g = jnp.asarray(LINES[1])
        ells = jnp.asarray([np.median([abs(a - b) for a, b in itertools.combinations(X @ g, 2)]) for g in LINES[1]])
        lines = Slices(jnp.asarray(LINES[0]), g)
        each = sliced_ksd(x, s, lines).per_slice, sliced_ksd(x, s, lines, bandwidth=ells).per_slice
        small = ksd(x, s, bandwidth=np.median(distances) / np.sqrt(2 * np.log(7)))
        # No gradient passes through the bandwidth.
        slopes = [jax.grad(lambda g, b=b: sliced_ksd(x, s, Slices(lines.r, g), bandwidth=b).value)(g)
                  for b in ("median", ells)]  # fmt: skip
        none = jax.grad(lambda b: ksd(x, s, bandwidth=b))(1.3)
        return given, small, each, slopes, none, median_distance(many)

    (median, log, number), small, (own, told), slopes, none, few = jax.tree.map(np.asarray, jax.jit(run)(X, S, many))
    assert median == pytest.approx(number, abs=1e-6)
    assert log == pytest.approx(small, abs=1e-6)
    np.testing.assert_allclose(own, told, atol=1e-6)
    np.testing.assert_allclose(*slopes, atol=1e-5)
    assert np.abs(slopes[0]).max() > 1e-3
    assert none == 0
    assert few == pytest.approx(all_pairs, rel=0.03)


def test_the_median_is_of_all_pairs_or_of_about_four_thousand_and_has_no_gradient():
    """Draws that repeat after half of them, of which 300 have more pairs than are looked at; more draws than pairs."""
    rng = np.random.default_rng(11)
    half, long = rng.normal(size=(150, 2)).astype(np.float32), rng.normal(size=(5000, 1)).astype(np.float32)

    def run(x, twice, long):
        medians = median_distance(x), median_distance(x[:4]), median_distance(twice), median_distance(long)
        return medians, jax.grad(median_distance)(x), jax.grad(floored)(jnp.float32(1.3)), floored(jnp.float32(0.0))

    medians, slope, of_given, least = jax.tree.map(np.asarray, jax.jit(run)(X, np.tile(half, (2, 1)), long))
    pairs = [np.sort([np.linalg.norm(a - b) for a, b in itertools.combinations(x, 2)]) for x in (X, X[:4], half)]
    # The smallest that half of the pairs do not exceed: of 21 the eleventh, of six the third.
    np.testing.assert_allclose(medians[:2], [pairs[0][10], pairs[1][2]], rtol=1e-5)
    assert medians[2] == pytest.approx(np.median(pairs[2]), rel=0.15)  # one lag in 13 has distances of zero
    assert medians[3] == pytest.approx(np.sqrt(2) * norm.ppf(0.75), rel=0.1)
    assert not slope.any()
    assert of_given == 0
    assert 0 < least**4 < 1e-30


def test_what_changes_nothing_and_what_scales():
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0].astype(np.float32)

    def run(x, s, r, g):
        return ksd(x, s, kernel="imq"), sliced_ksd(x, s, Slices(r, g)).per_slice

    run = jax.jit(run)
    plain = run(X, S, *LINES)
    turned = run(X @ turn, S @ turn, *(part @ turn for part in LINES))
    moved, scaled = run(X + 5, S, *LINES), run(2 * X, S / 2, *LINES)
    mirrored = run(X, S, -LINES[0], LINES[1])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), turned, plain)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), moved, plain)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b / 4, atol=2e-5), scaled, plain)
    np.testing.assert_allclose(mirrored[1], plain[1], atol=2e-5)


def test_a_function_gives_the_scores_of_its_gradient():
    density = lambda x: -jnp.sum(x**4) / 4 + 7.0  # noqa: E731
    run = jax.jit(lambda x: jnp.stack([ksd(x, density), ksd(x, lambda x: -(x**3)), ksd(x, -(x**3))]))
    found = np.asarray(run(X))
    np.testing.assert_allclose(found, found[0], rtol=1e-5)


# --- particles --------------------------------------------------------------------------------------------------------


def force_by_hand(x, s, slices, ells):
    """Σ_r r φ_r, RBF."""
    found = np.zeros_like(x, np.float64)
    for r, g, ell in zip(*slices, ells, strict=True):
        u, s_r, a = x @ g, s @ r, r @ g
        delta = u[:, None] - u[None, :]
        k = np.exp(-(delta**2) / (2 * ell**2))
        found += np.outer(np.mean(s_r[:, None] * k - a * k * delta / ell**2, axis=0), r)
    return found


def test_steps_are_those_of_blackjax_and_of_a_second_writing():
    tree = {"b": X[:, :1], "a": X[:, 1:]}
    density = lambda p, scale: -scale * (jnp.sum(p["a"] ** 4) + jnp.sum(p["b"] ** 2))  # noqa: E731
    one = lambda x: -jnp.sum(x**4)  # noqa: E731
    raw = 2 * LINES[1][:3]

    def run(tree, x):
        samplers = {
            "svgd": SteinVariational(density, optax.sgd(0.1), bandwidth="log"),
            "fixed": SteinVariational(density, optax.sgd(0.1), bandwidth=ELL),
            "learned": SteinVariational(density, optax.sgd(0.1), slices="learned", slice_optimiser=optax.sgd(0.0)),
        }
        found = {}
        for name, sampler in samplers.items():
            state = sampler.init(tree)
            state = state._replace(g=jnp.asarray(raw)) if name == "learned" else state
            found[name] = sampler.step(jax.random.key(0), state, 0.5)
        line = SteinVariational(one, optax.sgd(0.1), slices="identity", bandwidth=ELL)
        found["line"] = line.step(jax.random.key(0), line.init(x[:, :1]))
        peers = {}
        for name, scale in (("fixed", 2 * ELL**2), ("svgd", None)):
            peer = blackjax.svgd(jax.grad(lambda p: density(p, 0.5)), optax.sgd(0.1))
            state = peer.init(tree, {"length_scale": scale})
            state = blackjax.vi.svgd.update_median_heuristic(state) if scale is None else state
            peers[name] = peer.step(state).particles  # pyright: ignore[reportCallIssue]
        peer = blackjax.svgd(jax.grad(one), optax.sgd(0.1))
        peers["line"] = peer.step(peer.init(x[:, :1], {"length_scale": 2 * ELL**2})).particles  # pyright: ignore[reportCallIssue]
        return found, peers

    found, peers = jax.tree.map(np.asarray, jax.jit(run)(tree, X))
    for name, wanted in peers.items():
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), found[name][0].position, wanted)
    state, info = found["learned"]
    flat = np.concatenate([tree["a"], tree["b"]], axis=1).astype(np.float64)
    s = np.concatenate([-2 * flat[:, :2] ** 3, -flat[:, 2:]], axis=1)
    lines = np.eye(3), raw / np.linalg.norm(raw, axis=1, keepdims=True)
    ells = [np.median([abs(a - b) for a, b in itertools.combinations(flat @ g, 2)]) for g in lines[1]]
    phi = force_by_hand(flat, s, lines, ells)
    np.testing.assert_allclose(
        np.concatenate([state.position["a"], state.position["b"]], 1), flat + 0.1 * phi, atol=1e-5
    )
    np.testing.assert_allclose(info.bandwidth, ells, rtol=1e-5)
    assert info.force == pytest.approx(np.mean(np.linalg.norm(phi, axis=1)), rel=1e-4)
    assert info.alignment == pytest.approx(np.mean(np.abs(np.diag(lines[1]))), rel=1e-4)
    assert info.cost == 7


def test_learned_slices_climb_before_the_particles_move():
    """One step of SGD on g: along the gradient of the V-statistic at the particles as they were."""
    sampler = SteinVariational(lambda x: -x, optax.sgd(0.0), slices="learned", slice_optimiser=optax.sgd(0.5))

    def run(x):
        state, _ = sampler.step(jax.random.key(0), sampler.init(x))
        value = lambda g: sliced_ksd(x, -x, Slices(jnp.eye(3), g), statistic="v").value  # noqa: E731
        return state.g, jnp.eye(3) + 0.5 * jax.grad(value)(jnp.eye(3)), state.position

    g, wanted, position = jax.tree.map(np.asarray, jax.jit(run)(X))
    np.testing.assert_allclose(g, wanted, atol=1e-6)
    assert np.abs(g - np.eye(3)).max() > 1e-3
    np.testing.assert_array_equal(position, X)


def test_turned_slices_are_a_rotation_and_another_each_key():
    sampler = SteinVariational(lambda x: -x, optax.sgd(0.1), slices="rotate")

    def run(x):
        lines = [sampler._slices(jax.random.key(k), jnp.eye(0), x) for k in range(2)]
        return lines, [sampler.step(jax.random.key(k), sampler.init(x)) for k in range(2)]

    run = jax.jit(run)
    lines, steps = jax.tree.map(np.asarray, run(X))
    positions = [state.position for state, _ in steps]
    for state, info in steps:  # the optimiser's rate is 0.1
        assert info.force == pytest.approx(np.mean(np.linalg.norm((state.position - X) / 0.1, axis=1)), rel=1e-4)
        assert (info.alignment, info.cost, info.status) == (pytest.approx(1.0), 7, 0)
    np.testing.assert_array_equal(lines[0].r, lines[0].g)
    np.testing.assert_allclose(lines[0].r @ lines[0].r.T, np.eye(3), atol=1e-5)
    assert np.abs(lines[0].r - lines[1].r).max() > 0.1
    assert np.abs(positions[0] - positions[1]).max() > 1e-4
    broken = np.where(np.arange(21).reshape(7, 3) == 10, np.float32(np.nan), X)
    assert [int(info.status) for _, info in run(broken)[1]] == [Status.DIVERGED] * 2


# --- slices -----------------------------------------------------------------------------------------------------------


def test_fitted_slices_are_the_best_of_a_fan():
    """For r = e₁, against the V-statistic of the same points at every angle, ℓ the median of each, by hand."""
    angles = np.linspace(0, np.pi, 181)
    fan = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = (normal_grid(14) @ np.linalg.cholesky(COVARIANCE).T).astype(np.float32)
    heights = []
    for g in fan:
        delta = (points @ g)[:, None] - points @ g
        ell, s_r = np.median(np.abs(delta[np.triu_indices(196, 1)])), -points @ PRECISION[0]
        pulls = (s_r[:, None] - g[0] * delta / ell**2) * (s_r[None, :] + g[0] * delta / ell**2) + g[0] ** 2 / ell**2
        heights.append(np.mean(np.exp(-(delta**2) / (2 * ell**2)) * pulls))
    best = fan[int(np.argmax(heights))]

    def run(key, x):
        s = -x @ jnp.asarray(PRECISION, jnp.float32)
        more = {"num_steps": 100, "batch": None, "optimiser": optax.adam(0.05)}
        axes = fit_slices(key, x, s, r=jnp.array([[2.0, 0.0]]), **more)
        both = fit_slices(key, x, s, learn_r=True, objective="u", **more)
        lines = jnp.stack([sliced_ksd(x, s, lines).value for lines in (both, random_slices(key, 2))])
        return axes, both, lines

    axes, both, lines = jax.tree.map(np.asarray, jax.jit(run)(jax.random.key(2), points))
    np.testing.assert_allclose(axes.r, [[1, 0]], atol=1e-6)
    assert abs(axes.g[0] @ best) > 0.99
    assert np.abs(both.r - np.eye(2)).max() > 0.05
    np.testing.assert_allclose(np.linalg.norm(both.g, axis=1), 1, atol=1e-5)
    assert lines[0] > lines[1]


def test_the_value_is_of_draws_that_found_no_slice():
    """The first fifth differs along the first axis, the others do not differ at all."""
    x = RNG.normal(size=(100, 2)).astype(np.float32)
    x[:20, 0] *= 0.2

    def run(key, x):
        found = max_sliced_ksd(key, x, -x, num_steps=20, batch=8)
        again = fit_slices(key, x[:20], -x[:20], num_steps=20, batch=8)
        test = stein_test(key, x, -x, slices="max", num_steps=1, num_bootstrap=19)
        short = fit_slices(jax.random.split(key)[0], x[:20], -x[:20], num_steps=1)
        return found, again, sliced_ksd(x[20:], -x[20:], again), test, sliced_ksd(x[20:], -x[20:], short).value

    found, slices, value, test, tested = jax.tree.map(np.asarray, jax.jit(run)(jax.random.key(0), x))
    assert test.value == pytest.approx(tested, abs=1e-5)
    np.testing.assert_allclose(found.slices.g, slices.g, atol=1e-6)
    np.testing.assert_allclose(found.per_slice, value.per_slice, atol=1e-6)
    assert abs(found.value) < 0.1


# --- tests ------------------------------------------------------------------------------------------------------------


def test_weights_have_the_law_they_should():
    chains = jnp.asarray(RNG.normal(size=(2, 6, 1)), jnp.float32)

    def run(key):
        counts = bootstrap_weights(key, 20000, chains, "multinomial", None)
        return counts, bootstrap_weights(key, 20000, chains, "wild", 0.1)

    counts, signs = (np.asarray(part) for part in jax.jit(run)(jax.random.key(0)))
    np.testing.assert_allclose(counts.sum(1), 0, atol=1e-5)
    wanted = (np.eye(12) - 1 / 12) / 144  # cov of Multinomial(n)/n
    np.testing.assert_allclose(np.cov(counts.T, bias=True), wanted, atol=3e-4)
    np.testing.assert_allclose(np.abs(signs), 1 / np.sqrt(12 * 11), rtol=1e-5)
    together = np.corrcoef(signs.T)
    lags = 0.8 ** np.abs(np.arange(6)[:, None] - np.arange(6))
    np.testing.assert_allclose(together[:6, :6], lags, atol=0.04)
    np.testing.assert_allclose(together[:6, 6:], 0, atol=0.04)  # chains have signs of their own


def test_signs_last_as_long_as_the_chain_asks_for():
    noise, walk = RNG.normal(size=(2000, 2)), np.zeros((2000, 2))
    for t in range(1, 2000):
        walk[t] = 0.9 * walk[t - 1] + np.sqrt(1 - 0.81) * noise[t]
    run = jax.jit(lambda *given: [flip_from_chains(chains) for chains in given])
    # The slowest coordinate says how long, of one chain as of the four that are its parts.
    mixed = np.stack([noise[:, 0], walk[:, 0]], axis=1).astype(np.float32)
    independent, slow, apart = run(noise.astype(np.float32)[None], mixed[None], mixed.reshape(4, 500, 2))
    assert float(independent) == pytest.approx(1 / 4, abs=0.03)
    for found in (slow, apart):
        assert float(found) == pytest.approx(1 / (1 + 3 * 19), rel=0.5)  # correlation time (1 + .9)/(1 − .9)


def test_the_functions_means_do_not_depend_on_units():
    """Draws in other units about another zero, and scores in theirs: the coordinates are standardised."""
    units = np.float32([0.1, 3.0, 20.0])
    features = jax.jit(lambda x, s: _stein_features(x, s, BOUNDED))
    plain = np.asarray(features(X, S))
    np.testing.assert_allclose(features(X * units + 5 * units, S / units), plain, atol=1e-4)
    np.testing.assert_allclose(plain.std(axis=0), 1, rtol=1e-5)


def test_p_values_are_those_of_a_second_writing():
    """The statistic, the null and the p-value, from the weights and h by hand; and the means of functions."""
    key = jax.random.key(5)
    more = {"num_bootstrap": 19, "bandwidth": ELL}

    def run(x, s):
        lines = Slices(*map(jnp.asarray, LINES))
        whole = stein_test(key, x, s, slices=None, kernel="imq", **more)
        own = stein_test(key, x, s, slices=lines, bootstrap="wild", flip=0.2, **more)
        axes = (
            stein_test(key, x, s, slices="identity", **more),
            stein_test(key, x, s, slices=Slices(jnp.eye(3), jnp.eye(3)), **more),
        )
        means = stein_mean_test(key, x, s, functions=(*BOUNDED, MOMENTS[1]), num_bootstrap=19)
        weigh = jax.random.split(key)[1]
        counts = bootstrap_weights(weigh, 19, x[None], "multinomial", None)
        signs = bootstrap_weights(weigh, 19, x[None], "wild", 0.2)
        return whole, own, axes, means, counts, signs, bootstrap_weights(key, 19, x[None], "multinomial", None)

    whole, own, axes, means, counts, signs, plain = jax.tree.map(np.asarray, jax.jit(run)(X, S))
    jax.tree.map(np.testing.assert_array_equal, *axes)
    lines = sum(sliced_by_differences(X, S, r, g, PROFILES["rbf"]) for r, g in zip(*LINES, strict=True))
    z = (X - X.mean(0)) / X.std(0)
    slopes = [0 * z, 1 / np.cosh(z) ** 2, (1 - z**2) * np.exp(-(z**2) / 2), 2 * np.cos(2 * z), 1 + 0 * z]
    functions = [1 + 0 * z, np.tanh(z), z * np.exp(-(z**2) / 2), np.sin(2 * z), z]
    xi = np.concatenate([S * f + slope / X.std(0) for f, slope in zip(functions, slopes, strict=True)], axis=1)
    xi = xi / xi.std(0)
    for found, gram, w in (
        (whole, by_differences(X, S, PROFILES["imq"]), counts),
        (own, lines, signs),
        (means, xi @ xi.T, plain),
    ):
        np.fill_diagonal(gram, 0)
        null = np.einsum("bi,ij,bj->b", w, gram, w)
        assert found.value == pytest.approx(gram.sum() / 42, abs=2e-4)  # pyright: ignore[reportAttributeAccessIssue]
        np.testing.assert_allclose(found.null, null, atol=2e-4)
        assert found.p_value == pytest.approx((1 + np.sum(null >= gram.sum() / 42)) / 20, abs=1e-6)  # pyright: ignore[reportAttributeAccessIssue]
        assert found.status == 0


@pytest.mark.slow  # the parts are exact above; the lab measures levels
def test_levels():
    """Independent draws of the density keep the level; a chain keeps it with slow signs and not with counts."""

    def one(key):
        first, second, third = jax.random.split(key, 3)
        noise = jax.random.normal(first, (60, 2))
        walk = jax.lax.scan(lambda x, e: (0.8 * x + 0.6 * e,) * 2, jax.random.normal(second, (2,)), noise)[1]
        p = jax.lax.map(
            lambda x: stein_test(third, x, -x, slices="identity", num_bootstrap=59).p_value, jnp.stack([noise, walk])
        )
        wild = stein_test(third, walk, -walk, slices=None, bootstrap="wild", num_bootstrap=59).p_value
        return jnp.append(p, wild)

    p = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), 200)))
    level, naive, wild = (p < 0.051).mean(0)
    assert 0.005 < level < 0.1  # of 200 at 5 %: three standard errors
    assert wild < 0.12
    assert naive > 0.5


def test_svgd_by_name_is_the_whole_one():
    sampler = svgd(lambda x: -x, optax.sgd(0.1), kernel="imq", bandwidth=0.7)
    assert (sampler.slices, sampler.kernel, sampler.bandwidth) == ("none", "imq", 0.7)
