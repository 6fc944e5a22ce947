"""Gradients through a choice against quadrature, enumeration and formulas written again in NumPy."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from laureate._core import Status
from laureate.gradients import (
    all_choices,
    conditional_gumbel,
    estimate,
    exact_gradient,
    gumbel_rao,
    rloo,
    rloo_loss,
    st_gumbel_softmax,
    straight_through,
    zgr,
)
from laureate.gradients.categorical_reference import held_against

THETA = np.array([[0.3, -0.8, 1.1, 0.0], [2.0, -1.0, 0.5, 0.4]], np.float32)
V = np.array([[1.0, -0.5, 0.2, 2.0], [0.3, 0.9, -1.5, 0.0]], np.float32)
P = np.exp(THETA) / np.exp(THETA).sum(1, keepdims=True)
ESTIMATORS = {
    "gumbel-rao": lambda key, theta, tau: gumbel_rao(key, theta, tau, 7, chunk=3),
    "in one block": lambda key, theta, tau: gumbel_rao(key, theta, tau, 7),
    "other axis": lambda key, theta, tau: gumbel_rao(key, theta.T[:, :, None], tau, 7, axis=0)[:, :, 0].T,
    "st-gumbel": st_gumbel_softmax,
    "straight-through": lambda key, theta, tau: straight_through(key, theta),
    "zgr": lambda key, theta, tau: zgr(key, theta),
}


def pulled(estimator):
    def both(key, theta, v, tau):
        z, pull = jax.vjp(lambda theta, tau: estimator(key, theta, tau), theta, tau)
        return z, *pull(v)

    return both


@pytest.fixture(scope="module")
def drawn():
    """Draw, gradient by the logits and by the temperature, of every estimator, over many keys: one program."""
    every = lambda key, theta, v, tau: {n: pulled(e)(key, theta, v, tau) for n, e in ESTIMATORS.items()}  # noqa: E731
    run = jax.jit(jax.vmap(every, in_axes=(0, None, None, None)))
    return lambda theta=THETA, v=V, tau=0.5: jax.tree.map(np.asarray, run(KEYS, theta, v, jnp.float32(tau)))


KEYS = jax.random.split(jax.random.key(1), 400)


def test_draws_are_one_hot_the_same_for_all_and_as_likely_as_they_should_be(drawn):
    found = drawn()
    first = found["gumbel-rao"][0]
    assert set(np.unique(first)) == {0.0, 1.0}
    np.testing.assert_array_equal(first.sum(-1), 1)
    for name in ("in one block", "st-gumbel", "straight-through", "zgr"):
        np.testing.assert_array_equal(found[name][0], first)
    np.testing.assert_allclose(first.mean(0), P, atol=4 * np.sqrt(0.25 / len(KEYS)))


def test_gradients_sum_to_zero_do_not_see_a_shift_and_have_none_for_the_temperature(drawn):
    found, shifted = drawn(), drawn(THETA + 3)
    for name, (z, gradient, by_tau) in found.items():
        np.testing.assert_allclose(gradient.sum(-1), 0, atol=2e-5, err_msg=name)
        same = np.all(z == shifted[name][0], axis=(1, 2))  # rounding may move a draw
        assert same.mean() > 0.98
        np.testing.assert_allclose(gradient[same], shifted[name][1][same], atol=1e-3, err_msg=name)
        np.testing.assert_array_equal(by_tau, 0)


def test_chunks_and_axes_change_nothing(drawn):
    found = drawn()
    np.testing.assert_allclose(found["gumbel-rao"][1], found["in one block"][1], atol=1e-6)
    other = found["other axis"]
    np.testing.assert_array_equal(other[0], found["in one block"][0])
    np.testing.assert_allclose(other[1], found["in one block"][1], atol=1e-6)


def test_every_variable_has_noise_of_its_own(drawn):
    """Two equal variables that drew the same option have different gradients: the noise given it is not shared."""
    found = drawn(THETA[[0, 0]], V[[0, 0]])
    for name in ("gumbel-rao", "st-gumbel"):
        z, gradient, _ = found[name]
        same = np.all(z[:, 0] == z[:, 1], axis=1)
        assert same.any()
        assert (np.abs(gradient[same, 0] - gradient[same, 1]).max(-1) > 1e-6).all(), name


def softmax_jacobian(y, tau):
    s = np.exp((y - y.max()) / tau)
    s /= s.sum()
    return (np.diag(s) - np.outer(s, s)) / tau


@pytest.mark.parametrize("tau", [0.5, 1.3])
def test_closed_forms_draw_by_draw(drawn, tau):
    found = drawn(tau=tau)
    for k in range(5):
        noise = np.asarray(jax.random.gumbel(jax.random.split(KEYS[k])[0], THETA.shape))
        for row in range(2):
            v, p, i = V[row], P[row], found["zgr"][0][k, row].argmax()
            wanted = softmax_jacobian(THETA[row] + noise[row], tau) @ v
            np.testing.assert_allclose(found["st-gumbel"][1][k, row], wanted, atol=2e-5)
            st = softmax_jacobian(THETA[row], 1.0) @ v
            np.testing.assert_allclose(found["straight-through"][1][k, row], st, atol=1e-5)
            unit = np.eye(4)
            tie = sum(0.5 * p[j] * np.outer(unit[i] - unit[j], unit[i] - unit[j]) for j in range(4))
            np.testing.assert_allclose(found["zgr"][1][k, row], tie @ v, atol=1e-5)


def test_the_limit_is_exact_for_quadratic_functions_of_one_draw():
    rng = np.random.default_rng(0)
    q, p = rng.normal(size=(4, 4)), P[0].astype(float)
    unit, mean, plain = np.eye(4), np.zeros(4), np.zeros(4)
    for i in range(4):  # over all draws, with the derivative of zᵀQz at each
        v = (q + q.T)[i]
        mean += p[i] * sum(0.5 * p[j] * (v[i] - v[j]) * (unit[i] - unit[j]) for j in range(4))
        plain += p[i] * (np.diag(p) - np.outer(p, p)) @ v
    f = lambda z: z @ jnp.asarray(q, jnp.float32) @ z  # noqa: E731
    exact, pull = np.asarray(jax.jit(lambda theta: exact_gradient(f, theta))(THETA[0])), np.diag(q)
    np.testing.assert_allclose(exact, p * (pull - p @ pull), atol=1e-5)
    np.testing.assert_allclose(mean, exact, atol=1e-5)
    assert np.abs(plain - exact).max() > 0.01


def slope(d, tau):
    """J₁₁ given that the first of two options was drawn, d = θ₁ − θ₂, by quadrature."""
    bend = lambda x: expit(x) * expit(-x)  # noqa: E731
    value = quad(lambda x: bend(x / tau) / tau * bend(x - d), 0, 60, limit=400, points=[tau, 5 * tau, max(d, 0.1)])[0]
    return value / expit(d)


def test_the_quadrature_has_the_known_values():
    assert slope(0.0, 1.0) == pytest.approx(1 / 6, abs=1e-6)
    assert slope(1.0, 0.5) == pytest.approx(0.155160, abs=1e-6)
    assert slope(-1.0, 0.1) == pytest.approx(0.341420, abs=1e-6)
    assert slope(1.0, 1e-3) == pytest.approx((1 - expit(1.0)) / 2, abs=1e-3)


@pytest.fixture(scope="module")
def two_options():
    """Draw and gradient of θ₁ with 20,000 samples."""

    def run(key, d, tau):
        theta = jnp.stack([d, jnp.zeros_like(d)])
        z, pull = jax.vjp(lambda theta: gumbel_rao(key, theta, tau, 20_000, chunk=5000), theta)
        return z, pull(jnp.array([1.0, 0.0]))[0]

    return jax.jit(run)


@pytest.mark.parametrize(("d", "tau"), [(0.0, 2.0), (1.0, 0.5), (-1.0, 0.1), (1.0, 0.01)])
def test_many_samples_are_the_conditional_expectation(two_options, d, tau):
    seen = set()
    for seed in range(6):
        z, gradient = two_options(jax.random.key(seed), jnp.float32(d), jnp.float32(tau))
        first = bool(z[0] == 1)
        seen.add(first)
        wanted = slope(d if first else -d, tau)
        error = 4 * np.sqrt(wanted * 0.25 / tau / 20_000)  # J lies within 0 and 1/(4τ)
        assert float(gradient[0]) == pytest.approx(wanted, abs=error)
    assert d != 0 or seen == {True, False}


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_conditional_draws_are_finite_in_every_type(kind):
    """Of 100,000 exponential numbers of ten bits a hundred are 0. The largest is Gumbel noise about ln Z."""
    theta = jnp.asarray(np.tile(THETA[0], (250, 1)), kind)
    index = jnp.asarray(np.arange(250) % 4)
    y = np.asarray(jax.jit(lambda key: conditional_gumbel(key, theta, index, 100))(KEY), np.float64)
    assert np.isfinite(y).all()
    largest = np.take_along_axis(y, np.asarray(index)[None, :, None], axis=-1)
    assert (largest >= y).all()  # in half precision others may be as large
    for x in (-0.5, 0.5, 2.0):
        share = np.mean(largest - np.log(np.exp(THETA[0]).sum()) < x)
        assert share == pytest.approx(np.exp(-np.exp(-x)), abs=0.03)  # rounded to 1/64 where it is 2 and more


def test_conditional_draws_obey_their_option_and_mix_to_gumbel_noise():
    theta = jnp.asarray(THETA)  # two variables, of unequal Z

    def one(key):
        draw, noise = jax.random.split(key)
        index = jax.random.categorical(draw, theta)
        return index, conditional_gumbel(noise, theta, index, 2)

    index, y = map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), 20_000)))
    np.testing.assert_array_equal(y.argmax(-1), index[:, None].repeat(2, 1))
    noise = (y[:, 0] - THETA).reshape(-1, 8)
    np.testing.assert_allclose(noise.mean(0), np.euler_gamma, atol=5 * 1.283 / np.sqrt(20_000))
    np.testing.assert_allclose(noise.std(0), np.pi / np.sqrt(6), atol=0.05)
    # Distribution function exp(−exp(−x)) of each, and of the largest of all, shifted by ln Z.
    for x in (-0.5, 0.5, 2.0):
        np.testing.assert_allclose((noise < x).mean(0), np.exp(-np.exp(-x)), atol=0.018)
        largest = y[:, 1].max(-1) - np.log(np.exp(THETA).sum(1))
        np.testing.assert_allclose((largest < x).mean(0), np.exp(-np.exp(-x)), atol=0.018)
    assert np.abs(np.corrcoef(noise.T) - np.eye(8)).max() < 0.04
    assert not np.any(y[:, 0] == y[:, 1])


@pytest.mark.parametrize(
    "theta", [[200.0, -200.0, 0.0, 1.0], [-np.inf, 0.3, 0.1, -np.inf], [100.0, 100.0, 99.0, 100.0]]
)
def test_extreme_and_impossible_options(drawn, theta):
    theta = np.array([theta, THETA[1]], np.float32)
    for name, (z, gradient, _) in drawn(theta).items():
        assert np.isfinite(gradient).all(), name
        assert not z[:, 0][:, theta[0] == -np.inf].any()
        assert not gradient[:, 0][:, theta[0] == -np.inf].any(), name


# --- references -------------------------------------------------------------------------------------------------------

INNER = np.random.default_rng(2).normal(size=(3, 2, 3)).astype(np.float32)


def bent(z):
    return jnp.sum(jnp.tanh(jnp.einsum("kvo,vo->k", INNER, z)) * jnp.array([1.0, -2.0, 0.7]))


def by_hand(theta):
    """E f by loops, of two variables with three options."""
    p = np.exp(theta) / np.exp(theta).sum(1, keepdims=True)
    total = 0.0
    for i, j in itertools.product(range(3), repeat=2):
        h = np.tanh(INNER[:, 0, i].astype(float) + INNER[:, 1, j])
        total += p[0, i] * p[1, j] * (h @ [1.0, -2.0, 0.7])
    return total


@pytest.fixture(scope="module")
def references():
    def run(key, theta):
        mean, info = estimate(key, bent, theta, lambda k, t: gumbel_rao(k, t, 0.7, 3), 50)
        loo = jax.vmap(lambda k: rloo(k, bent, theta, 3))(jax.random.split(key, 4000))
        each = jax.vmap(lambda k: jax.grad(lambda t: bent(gumbel_rao(k, t, 0.7, 3)))(theta))(jax.random.split(key, 50))
        return exact_gradient(bent, theta), mean, info, loo, each

    theta = np.array([[0.2, -0.3, 0.5], [1.0, 0.0, -1.0]], np.float32)
    return theta, jax.tree.map(np.asarray, jax.jit(run)(jax.random.key(3), theta))


def test_enumeration_is_the_difference_of_expectations(references):
    theta, (exact, *_) = references
    for place in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[place] = 1e-5
        wanted = (by_hand(theta.astype(float) + step) - by_hand(theta.astype(float) - step)) / 2e-5
        assert exact[place] == pytest.approx(wanted, abs=1e-5)
    assert all_choices(2, 3).shape == (9, 2, 3)
    assert len(np.unique(np.asarray(all_choices(2, 3)).reshape(9, -1), axis=0)) == 9


def test_many_states_are_visited_in_blocks_and_a_constant_is_not_seen():
    """1,296 states in blocks of 256 and one of 16; f = 1000 + v·z, with the gradient p (v − p·v), also where p is 0."""
    theta, v = np.random.default_rng(3).normal(size=(2, 4, 6)).astype(np.float32)
    theta[[0, 2], [1, 5]] = -np.inf
    blocks = []
    f = jax.custom_batching.custom_vmap(lambda z: 1000 + jnp.sum(z * v))

    @f.def_vmap
    def in_a_block(size, batched, z):
        blocks.append(size)
        return 1000 + jnp.sum(z * v, axis=(1, 2)), True

    found = jax.jit(lambda theta: exact_gradient(f, theta))(theta)
    p = np.exp(theta) / np.exp(theta).sum(1, keepdims=True)
    np.testing.assert_allclose(found, p * (v - np.sum(p * v, axis=1, keepdims=True)), atol=2e-4)
    assert set(blocks) == {256, 16}


@pytest.mark.parametrize("given", ["list", "float64"])
def test_references_take_logits_as_numpy_and_python_have_them(given):
    logits = {"list": LOGITS.tolist(), "float64": LOGITS.astype(np.float64)}[given]
    for call in (
        lambda: rloo(KEY, jnp.sum, logits),
        lambda: rloo_loss(KEY, jnp.sum, logits),
        lambda: estimate(KEY, jnp.sum, logits, zgr, 2)[0],
    ):
        assert jax.eval_shape(call).dtype == jnp.float32


def test_leave_one_out_is_unbiased(references):
    _, (exact, _, _, loo, _) = references
    error = loo.std(0) / np.sqrt(len(loo))
    assert (np.abs(loo.mean(0) - exact) < 4 * error).all()


def test_reported_errors_are_recomputed(references):
    _, (exact, mean, info, _, each) = references
    np.testing.assert_allclose(mean, each.mean(0), atol=1e-6)
    variance = each.var(0, ddof=1).sum()
    assert float(info.variance) == pytest.approx(variance, rel=1e-4)
    assert float(info.mse) == pytest.approx(((each - exact) ** 2).sum() / 50, rel=1e-4)
    assert float(info.bias2) == pytest.approx(((mean - exact) ** 2).sum() - variance / 50, abs=1e-5)
    assert float(info.size2) == pytest.approx((exact**2).sum(), rel=1e-4)
    assert (int(info.cost), int(info.status)) == (50, 0)


def test_errors_that_are_not_finite_are_not_ok():
    """In one draw, in the exact gradient, or only once they are squared."""
    run = jax.jit(lambda gradients, exact: held_against(gradients, exact)[1])
    for place, bad in itertools.product((None, "gradients", "exact"), (np.nan, np.inf, 1e25)):
        given = {"gradients": np.tile(V, (3, 1, 1)), "exact": V.copy()}
        if place is not None:
            given[place].flat[-1] = bad
        info = run(**given)
        numbers = [info.bias2, info.variance, info.mse, info.size2]
        assert np.isfinite(numbers).all() == (place is None)
        assert int(info.status) == (Status.OK if place is None else Status.DIVERGED)


def test_it_is_told_of_a_derivative_that_is_zero_in_all_draws_and_not_in_some(monkeypatch):
    reference = "laureate.gradients.categorical_reference."
    monkeypatch.setattr(reference + "exact_gradient", lambda f, logits: logits)
    monkeypatch.setattr(reference + "held_against", lambda gradients, exact: gradients)  # nothing else is compiled
    keys = jax.random.split(KEY, 6)
    signs = np.asarray(jax.vmap(jax.random.bits)(keys) % 2, np.float32)
    assert set(signs) == {0.0, 1.0}
    estimator = lambda key, logits: logits * (jax.random.bits(key) % 2).astype(logits.dtype)  # noqa: E731
    for f, zero in ((lambda z: jnp.sum(z * z), False), (lambda z: 0.0 * jnp.sum(z), True)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            estimate(KEY, f, jnp.asarray(LOGITS), estimator, 6)
        assert ["derivative 0 in every draw" in str(one.message) for one in said] == [True] * zero


# --- bad input --------------------------------------------------------------------------------------------------------

KEY = jax.random.key(0)
LOGITS = np.array([0.5, -0.2, 0.1], np.float32)
REFUSED = {
    "samples": (
        lambda: gumbel_rao(KEY, LOGITS, num_samples=0),
        ValueError,
        "gumbel_rao.num_samples must be >= 1; got 0",
    ),
    "cold": (lambda: gumbel_rao(KEY, LOGITS, 0.0), ValueError, "temperature must be > 0; got 0.0. zgr is the limit"),
    "chunk": (lambda: gumbel_rao(KEY, LOGITS, chunk=0), ValueError, "chunk must be >= 1 or None; got 0"),
    "integers": (lambda: zgr(KEY, np.array([1, 2])), TypeError, "zgr.logits must be of a floating type; got int"),
    "one nan": (lambda: straight_through(KEY, np.where(LOGITS > 0.4, np.nan, LOGITS)), ValueError, "free of nan"),
    "impossible": (lambda: zgr(KEY, LOGITS - np.inf), ValueError, "all -inf"),
    "no options": (lambda: zgr(KEY, np.zeros((2, 0), np.float32)), ValueError, r"logits must be \[..., options\]"),
    "no such axis": (lambda: zgr(KEY, LOGITS, axis=1), ValueError, "these along axis 1; got"),
    "several temperatures": (
        lambda: jax.jit(gumbel_rao)(KEY, LOGITS, np.array([0.5, 1.0], np.float32)),
        ValueError,
        r"temperature must be one number; got \(2,\). For several",
    ),
    "st several": (
        lambda: st_gumbel_softmax(KEY, LOGITS, np.array([0.5, 1.0])),
        ValueError,
        "st_gumbel_softmax.temperature must be one number",
    ),
    "st cold": (lambda: st_gumbel_softmax(KEY, LOGITS, -1.0), ValueError, "st_gumbel_softmax.temperature must be > 0"),
    "index": (lambda: conditional_gumbel(KEY, LOGITS, np.array([0])), ValueError, "conditional_gumbel.index must be"),
    "draws": (lambda: conditional_gumbel(KEY, LOGITS, np.array(0), 0), ValueError, "num_samples must be >= 1"),
    "states": (lambda: all_choices(5, 10), ValueError, "must be <= 4096; got 100000. Compare with rloo"),
    "one draw": (lambda: rloo(KEY, jnp.sum, LOGITS, 1), ValueError, "rloo.num_samples must be >= 2"),
    "repeats": (lambda: estimate(KEY, jnp.sum, LOGITS, zgr, 1), ValueError, "estimate.num_repeats must be >= 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gumbel_rao(KEY, np.array([0.2, 0.8], np.float32)), "look like probabilities"),
        (lambda: gumbel_rao(KEY, LOGITS, 0.01), "variance grows as 1/τ"),
    ],
)
def test_doubted(call, words):
    with pytest.warns(UserWarning, match=words):
        jax.eval_shape(call)


@pytest.mark.parametrize("estimator", [gumbel_rao, st_gumbel_softmax, straight_through, zgr])
def test_logits_are_looked_at_along_their_axis(estimator):
    """A row is a variable: what is found wrong or doubtful of the rows is found whichever axis they are turned to."""
    inf = np.inf
    rows = {
        "fine": [[-inf, 0.0, 1.0], [-inf, 2.0, 0.5]],  # an option that no variable may take
        "all -inf": [[0.0, 1.0, 2.0], [-inf, -inf, -inf]],
        "look like probabilities": [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]],
        "sums the other way": [[0.2, 0.7, 0.5], [0.8, 0.3, 0.5]],
    }
    told = {"look like probabilities": ["UserWarning"], "all -inf": ["ValueError"]}
    for name, axis in itertools.product(rows, (0, 1, -1)):
        logits = np.moveaxis(np.array(rows[name], np.float32)[None], -1, axis)
        found = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                jax.eval_shape(lambda key, logits=logits, axis=axis: estimator(key, logits, axis=axis), KEY)
            except ValueError as problem:
                found = [type(problem).__name__] if name in str(problem) else [str(problem)]
        found += [type(one.message).__name__ for one in caught]
        assert found == told.get(name, []), (name, axis)


@pytest.mark.slow
def test_a_function_without_a_derivative_is_told():
    with pytest.warns(UserWarning, match="derivative 0"):
        estimate(KEY, lambda z: jnp.argmax(z).astype(float), jnp.asarray(LOGITS), zgr, 3)


def test_the_loss_of_leave_one_out_has_its_gradient_and_that_of_what_follows():
    """Row by row the very estimate of `rloo`; by the weights of f the mean over draws; its value the mean of f."""
    weights = jnp.asarray(V[0])

    def run(key, theta):
        follows = lambda w: lambda z: jnp.tanh(jnp.sum(z * w, axis=-1)).sum()  # noqa: E731
        loss = lambda theta, w: rloo_loss(key, follows(w), theta, 5)  # noqa: E731
        by_theta, by_w = jax.grad(loss, argnums=(0, 1))(theta, weights)
        rows = lambda theta: rloo_loss(key, lambda z: jnp.sum(z * weights, axis=-1), theta, 5)  # noqa: E731
        noise = jax.random.gumbel(key, (5, *theta.shape))
        drawn = jax.nn.one_hot(jnp.argmax(theta + noise, axis=-1), 4)
        wanted_w = jax.grad(lambda w: jnp.mean(jax.vmap(follows(w))(drawn)))(weights)
        plain = jnp.mean(jnp.sum(drawn * weights, axis=-1), axis=0)
        return (
            by_theta,
            rloo(key, follows(weights), theta, 5),
            by_w,
            wanted_w,
            rows(theta),
            plain,
            jax.jacobian(rows)(theta),
            drawn,
        )

    impossible = np.where(np.eye(2, 4) > 0, -np.inf, THETA).astype(np.float32)  # an option a row that cannot be
    run = jax.jit(run)
    for theta in (impossible, THETA):
        by_theta, wanted, by_w, wanted_w, rows, plain, slopes, drawn = run(jax.random.key(4), jnp.asarray(theta))
        assert np.abs(by_theta).max() > 1e-3
        assert not np.asarray(by_theta)[np.isinf(theta)].any()
        np.testing.assert_allclose(by_theta, wanted, atol=1e-6)
        np.testing.assert_allclose(by_w, wanted_w, atol=1e-6)
        np.testing.assert_allclose(rows, plain, atol=1e-6)
        assert np.isfinite(slopes).all()
        # Outside jit too: XLA makes a selection of a product with a truth value, which hides 0 · −∞.
        follows = lambda z: jnp.sum(z * weights, axis=-1)  # noqa: E731
        np.testing.assert_allclose(rloo_loss(jax.random.key(4), follows, theta, 5), plain, atol=1e-6)
    assert np.abs(slopes[0, 1]).max() == 0  # a row's loss is of its own choice
    values = np.asarray(drawn) @ V[0]
    gain, score = (values - values.mean(0)) / 4, np.asarray(drawn) - P  # each row has a baseline of its own
    assert np.ptp(values.mean(0)) > 0.01
    for row in range(2):
        np.testing.assert_allclose(slopes[row, row], gain[:, row] @ score[:, row], atol=1e-6)
    np.testing.assert_allclose(rows, plain, atol=1e-6)
