"""Weights, estimates and their variances, held to enumeration over all orders of picking and to the note's numbers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.active import RISKS, WEIGHTS, bias_report, lure_ratio, lure_risk, lure_weights, pure_risk

LOSSES = np.array([0.1, 0.3, 0.2, 1.5, 0.8, 0.05, 0.4])
SCORES = np.array([0.2, 0.5, 0.3, 1.0, 0.4, 0.3, 0.2])
ALL = tuple(RISKS)


def enumerated(law, picks, losses=LOSSES):
    """All orders with the probability of each pick; ``law(order so far) -> unnormalised mass of every point``."""
    orders = np.array(list(itertools.permutations(range(len(losses)), picks)))
    q = np.empty(orders.shape)
    for row, order in enumerate(orders):
        for m in range(picks):
            mass = np.asarray(law(order[:m]), float).copy()
            mass[order[:m]] = 0
            q[row, m] = mass[order[m]] / mass.sum()
    return orders, q


LAWS = {
    "uniform": lambda past: np.ones(7),
    "fixed": lambda past: SCORES,
    "adaptive": lambda past: SCORES ** (1 + 2 * LOSSES[past].sum()),
    "optimal": lambda past: LOSSES,
    "adversarial": lambda past: LOSSES if len(past) == 0 else 1 / LOSSES,
}


@pytest.fixture(scope="module")
def estimates():
    """Every estimator over every order of three and of five of seven picks, from q and from log q."""
    tables = {(name, m): enumerated(law, m) for name, law in LAWS.items() for m in (3, 5)}

    def compute(losses, q):
        found = {name: risk(losses, q, 7) for name, risk in RISKS.items()}
        logs = {name: risk(losses, jnp.log(q), 7, log=True) for name, risk in RISKS.items()}
        return found, logs, lure_weights(q, 7), lure_ratio(losses, 1 + losses, q, 7)

    with jax.enable_x64(True):
        run = jax.jit(jax.vmap(compute))
        out = {}
        for case, (orders, q) in tables.items():
            out[case] = (orders, q, np.prod(q, 1), jax.tree.map(np.asarray, run(LOSSES[orders], q)))
    return out


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("picks", [3, 5])
@pytest.mark.parametrize("name", ["lure", "pure"])
def test_the_mean_over_all_orders_is_the_pools_and_the_variance_is_right(estimates, law, picks, name):
    _, _, chance, (found, logs, _, _) = estimates[law, picks]
    value = found[name].value
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    assert (chance * value).sum() == pytest.approx(LOSSES.mean(), abs=1e-13)
    variance = (chance * (value - LOSSES.mean()) ** 2).sum()
    assert (chance * found[name].standard_error ** 2).sum() == pytest.approx(variance, abs=1e-13)
    for one, other in zip(found[name], logs[name], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_the_notes_numbers(estimates):
    _, _, chance, (found, _, _, _) = estimates["fixed", 3]
    mean = {name: (chance * found[name].value).sum() for name in ALL}
    spread = {name: (chance * (found[name].value - mean[name]) ** 2).sum() for name in ALL}
    assert LOSSES.mean() == pytest.approx(0.478571, abs=1e-6)
    assert spread["lure"] == pytest.approx(0.013783, abs=1e-6)
    assert spread["pure"] == pytest.approx(0.01568, abs=1e-5)
    assert mean["plain"] - LOSSES.mean() == pytest.approx(0.160, abs=1e-3)
    assert mean["importance"] - LOSSES.mean() == pytest.approx(-0.101, abs=1e-3)


def test_weights_average_one_and_have_a_lower_bound(estimates):
    for (_, picks), (_, _, chance, (_, _, v, _)) in estimates.items():
        np.testing.assert_allclose(chance @ v, np.ones(picks), atol=1e-12)
        m = np.arange(1, picks + 1)
        assert (v >= (picks - m + 1) / (7 - m + 1) - 1e-12).all()


def test_lure_is_not_always_the_better(estimates):
    """Usually, yes; a good first pick and bad later ones turn it round."""
    for law, smaller in (("uniform", "lure"), ("fixed", "lure"), ("adversarial", "pure")):
        _, _, chance, (found, _, _, _) = estimates[law, 3]
        spread = {n: (chance * (found[n].value - LOSSES.mean()) ** 2).sum() for n in ("lure", "pure")}
        assert min(spread, key=spread.__getitem__) == smaller, law


def test_a_proposal_in_proportion_to_the_loss_has_no_variance(estimates):
    _, _, _, (found, _, _, _) = estimates["optimal", 3]
    for name in ("lure", "pure"):
        np.testing.assert_allclose(found[name].value, LOSSES.mean(), rtol=1e-14)
        assert found[name].standard_error.max() < 1e-14


def test_uniform_picks_have_weight_one_and_the_plain_mean(estimates):
    orders, _, chance, (found, _, v, _) = estimates["uniform", 5]
    np.testing.assert_allclose(v, 1, rtol=1e-15)
    np.testing.assert_allclose(found["lure"].value, LOSSES[orders].mean(1), rtol=1e-14)
    np.testing.assert_allclose(found["lure"].effective, 5, rtol=1e-14)
    np.testing.assert_allclose(found["lure"].max_weight, 0.2, rtol=1e-14)
    # The plain mean's own error is that of picks without replacement.
    spread = (chance * (found["plain"].value - LOSSES.mean()) ** 2).sum()
    assert (chance * found["plain"].standard_error ** 2).sum() == pytest.approx(spread, rel=1e-12)
    assert np.ptp(found["pure"].value[(np.sort(orders, 1) == np.arange(5)).all(1)]) > 0.01  # PURE depends on the order


def test_reports_are_what_they_say(estimates):
    orders, q, _, (found, _, v, ratio) = estimates["adaptive", 5]
    order, q, v = orders[1234], q[1234], v[1234]
    np.testing.assert_allclose(found["lure"].effective[1234], v.sum() ** 2 / (v**2).sum(), rtol=1e-13)
    np.testing.assert_allclose(found["lure"].max_weight[1234], v.max() / v.sum(), rtol=1e-13)
    np.testing.assert_allclose(found["importance"].value[1234], (LOSSES[order] / (7 * q)).mean(), rtol=1e-13)
    terms = LOSSES[order] / (7 * q)
    np.testing.assert_allclose(found["importance"].standard_error[1234], terms.std(ddof=1) / np.sqrt(5), rtol=1e-13)
    above, below = (v * LOSSES[order]).sum(), (v * (1 + LOSSES[order])).sum()
    np.testing.assert_allclose(ratio.value[1234], above / below, rtol=1e-13)


def test_the_error_of_a_ratio_is_that_of_its_residuals(estimates):
    """The delta method, by hand: V of the terms a_m of A - T B, over the squared mean of B."""
    orders, q, _, (_, _, v, ratio) = estimates["adaptive", 5]
    losses, q, v, n, m = LOSSES[orders[77]], q[77], v[77], 7, np.arange(1, 6)
    residual = losses - ratio.value[77] * (1 + losses)
    a = residual / (n * q) + (np.cumsum(residual) - residual) / n
    p = n * (n - 5) / (5 * (n - m) * (n - m + 1))
    w = p**2 / (1 - 2 * p)
    variance = (w * (a - p @ a) ** 2).sum() / (1 + w.sum())
    np.testing.assert_allclose(ratio.standard_error[77], np.sqrt(variance) / (v * (1 + losses)).mean(), rtol=1e-11)


def test_the_whole_pool_has_no_error_and_all_but_one_no_standard_error():
    q = np.array([0.5, 0.2, 0.5, 1.0])
    losses = np.array([[1.0, 4.0], [2.0, 0.0], [3.0, 1.0], [0.5, 2.0]])
    calls = [(lure_risk, 4, 4), (pure_risk, 4, 4), (lure_risk, 3, 4), (lure_risk, 2, 9), (lure_risk, 1, 9)]
    compute = jax.jit(lambda losses, q: [risk(losses[:m], q[:m], n) for risk, m, n in calls] + [lure_weights(q, 4)])
    found, pure, *undefined, weights = compute(losses, q)
    np.testing.assert_allclose(found.value, losses.mean(0), rtol=1e-6)
    np.testing.assert_array_equal(found.standard_error, [0, 0])
    np.testing.assert_array_equal(weights, np.ones(4))
    assert abs(float(pure.value[0]) - losses[:, 0].mean()) > 0.01
    assert all(np.isnan(one.standard_error).all() and np.isfinite(one.value).all() for one in undefined)


def test_several_models_are_several_calls():
    rng = np.random.default_rng(0)
    losses, q = rng.uniform(size=(6, 3)), rng.uniform(0.05, 0.2, 6)

    @jax.jit
    def both(losses, q):
        alone = [[risk(losses[:, k], q, 30) for k in range(3)] for risk in RISKS.values()]
        return [risk(losses, q, 30) for risk in RISKS.values()], alone

    for together, alone in zip(*both(losses, q), strict=True):
        for field in ("value", "standard_error"):
            np.testing.assert_allclose(getattr(together, field), [getattr(one, field) for one in alone], rtol=1e-5)


def test_note_example_and_equal_calls():
    np.testing.assert_allclose(lure_weights(jnp.array([0.5, 0.25]), 5), [0.55, 1.0], rtol=1e-6)
    assert list(WEIGHTS) == list(RISKS) == ["lure", "pure", "importance", "plain"]
    losses, q = np.array([0.4, 1.0, 0.1]), np.array([0.2, 0.1, 0.3])
    for name, weights in WEIGHTS.items():
        np.testing.assert_allclose(RISKS[name](losses, q, 9).value, (weights(q, 9) * losses).mean(), rtol=1e-6)


def test_biases_add_up_with_the_right_signs():
    losses, q = np.array([0.9, 0.2]), np.array([0.5, 0.25])  # the likely pick is the hard one
    report = bias_report(losses, q, 5, 0.8)
    corrected, plain = (0.55 * 0.9 + 0.2) / 2, 0.55
    np.testing.assert_allclose(report, [corrected - plain, 0.8 - corrected, 0.8 - plain], rtol=1e-6)
    assert report.active < 0 < report.overfitting
    np.testing.assert_allclose(bias_report(losses, np.log(q), 5, 0.8, log=True), report, rtol=1e-5)
    # Two models, as many as there are picks: the weights go with the picks.
    several = jax.jit(lambda losses, risk: bias_report(losses, q, 5, risk))
    both = several(np.stack([losses, [0.1, 0.7]], axis=1), np.array([0.8, 0.6]))
    np.testing.assert_allclose([part[0] for part in both], report, rtol=1e-6)
    np.testing.assert_allclose(both.active[1], (0.55 * 0.1 + 0.7) / 2 - 0.4, rtol=1e-5)


def test_a_ratio_below_zero_has_an_error_above_it():
    q, hit = np.array([0.2, 0.1, 0.3, 0.1]), np.array([1.0, 0.0, 1.0, 0.0])
    ratio = jax.jit(lambda below: lure_ratio(hit, below, q, 20))
    found, turned = (ratio(sign * np.array([1.0, 2.0, 1.5, 0.5])) for sign in (1, -1))
    assert float(found.standard_error) > 0
    np.testing.assert_allclose(turned.value, -found.value, rtol=1e-6)
    np.testing.assert_allclose(turned.standard_error, found.standard_error, rtol=1e-5)


def test_sharp_proposals_keep_their_weights_as_logarithms():
    """A probability of exp(-60) is a weight of 10^24, in float32 as in float64."""
    log_q = np.array([-60.0, -1.0, -2.0], np.float32)
    with jax.enable_x64(True):
        exact = np.asarray(lure_weights(log_q.astype(np.float64), 50, log=True))
    np.testing.assert_allclose(lure_weights(log_q, 50, log=True), exact, rtol=1e-5)


def test_intervals():
    found = lure_risk(np.array([0.4, 1.0, 0.1, 0.7]), np.array([0.2, 0.1, 0.3, 0.1]), 20)
    value, error = float(found.value), float(found.standard_error)
    np.testing.assert_allclose(found.interval(0.9), [value - 1.644854 * error, value + 1.644854 * error], rtol=1e-5)
    low, high = found.interval(0.9, "log")
    np.testing.assert_allclose(low * high, value**2, rtol=1e-5)
    np.testing.assert_allclose(np.log(high / low), 2 * 1.644854 * error / value, rtol=1e-5)
