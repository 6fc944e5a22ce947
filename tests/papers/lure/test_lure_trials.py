"""Do the trials measure what they say? Against NumPy on the same draws, and where the answer is known."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_numpy import computed
from trial_runner import run

from example_files import loaded
from laureate.active import RiskEstimate
from laureate.lab.claim import Settings
from laureate.papers.lure import trials, trials_training
from laureate.problems.pools import LinePool, NoisyDigits, Pool

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_labels.py"
LOSSES = np.array([0.1, 0.3, 0.2, 1.5, 0.8, 0.05, 0.4, 0.9])


def test_all_orders_are_all_and_their_probabilities_sum_to_one():
    losses = jnp.asarray(LOSSES[:5])
    every = jax.jit(lambda x: [trials.all_orders(proposal, x, x**0.5, 3) for proposal in trials.PROPOSALS])
    for proposal, (orders, log_q) in zip(trials.PROPOSALS, every(losses), strict=True):
        assert orders.shape == (60, 3)
        assert float(jnp.exp(log_q.sum(1)).sum()) == pytest.approx(1, abs=1e-5)
        (row,) = np.flatnonzero((np.asarray(orders) == [3, 4, 0]).all(1))
        if proposal == "adversarial":  # a good first pick, then large losses are avoided
            left = 1 / np.delete(LOSSES[:5], 3)
            expected = [1.5 / LOSSES[:5].sum(), left[3] / left.sum()]
            np.testing.assert_allclose(np.exp(log_q[row, :2]), expected, rtol=1e-5)
        if proposal == "adaptive":
            mass = np.delete(LOSSES[:5] ** 0.5, 3) ** (1 + 1.5)
            assert float(jnp.exp(log_q[row, 1])) == pytest.approx(mass[3] / mass.sum(), rel=1e-5)


@pytest.fixture(scope="module")
def evaluated():
    """Eight points, repeated often; plain mean by a proposal in proportion to the loss, and LURE."""
    pool = Pool(LOSSES, LOSSES)
    scale = {"labels": (2, 4, 6), "runs": 4000, "floor": 0.0}
    arms = {
        n: {"estimator": e, "power": p} for n, e, p in (("lure", 0.0, 0.5), ("plain", 3.0, 0.5), ("best", 0.0, 1.0))
    }
    return {name: run(trials.evaluation, arm, pool, scale, seeds=1) for name, arm in arms.items()}


def test_evaluation_reports_bias_error_and_coverage_of_the_arm(evaluated):
    lure, plain, best = (evaluated[name] for name in ("lure", "plain", "best"))
    spread = np.exp(lure["log_error_some"]) / np.sqrt(4000)
    assert abs(lure["bias_some"][0]) < 4 * spread[0]
    assert plain["bias_some"][0] > 0.2
    assert best["log_error_some"][0] < -10  # zero variance, up to rounding
    np.testing.assert_allclose(lure["bias"][:, 1], lure["bias_some"])
    np.testing.assert_allclose(np.log(lure["error"][:, 2]), lure["log_error_many"], rtol=1e-5)
    assert abs(lure["log_error_ratio"][0]) < 0.1
    assert 0.5 < lure["coverage"][0] <= 1
    np.testing.assert_array_equal(lure["labels"][0], [2, 4, 6])


def test_the_variance_at_half_of_the_pool_is_that_of_half_as_many_labels(monkeypatch):
    """Estimates that are written down: of eight points, those from two, four and six labels."""
    values = np.array([[0.0, 6.0, 0.0], [2.0, 4.0, 3.0], [3.0, 4.0, 8.0]])
    found = [Settings(value=one) for one in values]
    monkeypatch.setattr(trials, "_repeated", lambda *given: (found, LOSSES))
    told = trials.share(jax.random.key(0), Settings(), None, Settings(labels=(2, 4, 6)))
    variances = (values / LOSSES.mean()).var(1, ddof=1)
    np.testing.assert_allclose(told["log_variance"], np.log(variances), rtol=1e-5)
    assert float(told["log_variance_half"]) == pytest.approx(np.log(variances[1]), rel=1e-5)


def test_all_that_is_told_of_repeated_estimates_by_hand(monkeypatch):
    """Estimates of three numbers of labels that are written down, with their standard errors."""
    rng, risk = np.random.default_rng(0), LOSSES.mean()
    values, errors = rng.uniform(0.3, 0.8, size=(3, 40)), rng.uniform(0.01, 0.3, size=(3, 40))
    effective = rng.uniform(2, 5, size=(3, 40))
    rows = zip(values, errors, effective, strict=True)
    found = [RiskEstimate(*map(jnp.asarray, row), max_weight=jnp.ones(40)) for row in rows]
    monkeypatch.setattr(trials, "_repeated", lambda *_: (found, LOSSES))
    scale = Settings(labels=(2, 4, 6))
    told = computed(lambda key: trials.evaluation(key, Settings(), None, scale), jax.random.key(0))
    bias, error = values.mean(1) / risk - 1, np.sqrt(((values / risk - 1) ** 2).mean(1))
    reach = 1.959964 * errors[1]
    linear = np.abs(values[1] - risk) <= reach
    log = np.abs(np.log(values[1] / risk)) <= reach / values[1]
    wanted = {"bias": bias, "bias_some": bias[1], "bias_many": bias[2], "error": error, "labels": [2, 4, 6]}
    wanted |= {"log_error_some": np.log(error[1]), "log_error_many": np.log(error[2]), "effective": effective[1].mean()}
    wanted |= {"log_error_ratio": np.log(np.sqrt((errors[1] ** 2).mean()) / values[1].std(ddof=1))}
    wanted |= {"coverage": linear.mean(), "coverage_log": log.mean()}
    assert set(told) == set(wanted)
    assert 0 < wanted["coverage"] < wanted["coverage_log"] + 0.2
    for name, value in wanted.items():
        np.testing.assert_allclose(told[name], value, rtol=1e-4, err_msg=name)


def test_all_that_is_told_of_a_network_that_chose_its_labels_by_hand(monkeypatch):
    """A network that says what stands in its inputs; labels are noisy, and accuracy is by the truth."""
    rng, number = np.random.default_rng(1), 12
    rows = lambda count: (rng.normal(size=(count, 10)), rng.integers(10, size=count))  # noqa: E731
    (inputs, labels), (tests, noisy) = rows(number), rows(7)
    truth = np.where(np.arange(7) < 4, tests.argmax(1), (tests.argmax(1) + 1) % 10)
    told_of = {"inputs": inputs, "labels": labels, "test_inputs": tests, "test_labels": noisy, "test_truth": truth}
    pool = Settings({name: jnp.asarray(values) for name, values in told_of.items()})
    picks, log_q = np.array([3, 0, 7, 5]), np.log([0.1, 0.2, 0.05, 0.3])
    seen = []
    monkeypatch.setattr(trials_training, "choose", lambda *_: (jnp.asarray(picks), jnp.asarray(log_q)))
    monkeypatch.setattr(trials_training, "train", lambda key, hidden, x, y, v, scale: seen.append(v) or (lambda x: x))
    problem = Settings(draw=lambda key: pool)

    def told_by(reduced):
        arm = Settings(estimator=0.0, alpha=0.5, reduced=reduced, hidden=0)
        network = lambda key: (trials_training.network(key, arm, problem, Settings()), seen[-1])  # noqa: E731
        return computed(network, jax.random.key(0))

    m = np.arange(1, 5)
    v = 1 + (number - 4) / (number - m) * (1 / ((number - m + 1) * np.exp(log_q)) - 1)
    nats = lambda z, y: -(z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(len(y)), y]  # noqa: E731
    test, train = nats(tests, noisy).mean(), nats(inputs[picks], labels[picks])
    for reduced, weights in ((0.0, np.sqrt(v)), (1.0, np.full(4, np.sqrt(v).mean()))):
        told, used = told_by(reduced)
        np.testing.assert_allclose(used, weights, rtol=1e-4)
        active, overfitting = (v * train).mean() - train.mean(), test - (v * train).mean()
        wanted = {"accuracy": 4 / 7, "nats": test, "effective": weights.sum() ** 2 / (weights**2).sum()}
        wanted |= {"active_bias": active, "overfitting_bias": overfitting}
        wanted |= {"opposite": min(-active, overfitting), "excess": overfitting - abs(active)}
        assert {name: float(value) for name, value in told.items()} == pytest.approx(wanted, rel=1e-4)


def test_half_of_the_pool_is_half_of_it():
    scale = {"labels": (2, 4, 6), "runs": 4, "floor": 0.0}
    found = run(trials.share, {"estimator": 0.0, "power": 0.5}, Pool(LOSSES, LOSSES), scale, seeds=1)
    assert found["log_variance_half"][0] == found["log_variance"][0, 1]
    assert len(set(found["log_variance"][0].tolist())) == 3


def test_training_obeys_its_weights():
    """A row of weight 0 is as good as none; a loss that is averaged before it is weighted would not see it."""
    x, y = np.array([[1.0, 0.0], [0.3, 1.0], [-1.0, 2.0]], np.float32), np.array([0, 1, 2])
    scale, key = Settings(rate=0.1, steps=5), jax.random.key(0)
    weighted, without = jax.jit(
        lambda: (
            trials_training.train(key, 0, x, y, jnp.array([1.0, 2.0, 0.0]), scale),
            trials_training.train(key, 0, x[:2], y[:2], jnp.array([2.0, 4.0]) / 3, scale),
        )
    )()
    for one, other in zip(jax.tree.leaves(weighted), jax.tree.leaves(without), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_greedy_session_without_chance_takes_the_highest_scores():
    pool = Pool(LOSSES, LOSSES)
    found = run(trials.greedy, {"estimator": 3.0, "floor": 1e-7}, pool, {"picks": 3, "runs": 4}, seeds=1)
    assert found["bias"][0] == pytest.approx(np.sort(LOSSES)[-3:].mean() / LOSSES.mean() - 1, rel=1e-5)


def test_a_line_through_the_whole_pool_is_least_squares():
    problem = LinePool(num_common=10, num_rare=2)
    scale = {"labels": (3, 12), "runs": 2, "ridge": 0.0}
    found = run(trials_training.line, {"estimator": 0.0, "floor": 0.2}, problem, scale, seeds=1)
    x, y = map(np.asarray, problem.draw(jax.random.split(jax.random.key(0))[0]))
    residual = y - np.polyval(np.polyfit(x, y, 1), x)
    assert found["log_error_ten"][0] == pytest.approx(np.log((residual**2).mean()), rel=1e-3)
    assert (found["log_error"][:, 0] > found["log_error"][:, 1]).all()


def test_a_network_chooses_new_points_and_says_how_likely_they_were():
    scale = Settings(first=4, rounds=2, batch=3, steps=2, rate=0.01, beta=3.0)
    problem = NoisyDigits(num_pool=30, num_test=10)

    @jax.jit
    def chosen(key, floor):
        pool = problem.draw(key)
        return trials_training.choose(key, Settings(hidden=0, floor=floor), pool, scale)

    picks, log_q = chosen(jax.random.key(0), 0.05)
    assert len(set(picks.tolist())) == 10
    np.testing.assert_allclose(np.exp(log_q[:4]), 1 / (30 - np.arange(4)), rtol=1e-5)
    assert np.ptp(np.exp(log_q[4:]) * (26 - np.arange(6))) > 0.01  # by entropy from then on
    _, uniform = chosen(jax.random.key(0), 1.0)
    np.testing.assert_allclose(np.exp(uniform), 1 / (30 - np.arange(10)), rtol=1e-5)


def test_noisy_digits_are_rare_and_wrong_as_said():
    problem = NoisyDigits(num_pool=400, num_test=400)
    draws = eqx.filter_jit(lambda key: jax.vmap(problem.draw)(jax.random.split(key, 16)))(jax.random.key(1))
    pool = jax.tree.map(lambda leaf: np.asarray(leaf)[0], draws)
    wrong = np.mean(pool.test_labels != pool.test_truth)
    assert 0.05 < wrong < 0.14  # a tenth, of which a tenth is right by chance
    counts = np.bincount(pool.test_truth, minlength=10)
    assert counts[:3].sum() > 2 * counts[-3:].sum()
    rows = {row.tobytes() for row in pool.inputs}
    assert not rows & {row.tobytes() for row in pool.test_inputs}
    # Pool and test rows have one law: the means of their classes differ by four standard errors at most.
    classes = np.stack([draws.labels, draws.test_labels]).reshape(2, -1)
    assert abs(np.diff(classes.mean(1))[0]) < 4 * np.sqrt(classes.var(1).sum() / 6400)


@pytest.mark.slow  # tests/test_form.py sees that its imports are there
def test_your_own_pool():
    example = loaded(EXAMPLE)
    found = example.main(trees=10)
    assert abs(found["error"] - found["truth"]) < 4 * found["standard error"]
    assert found["plain mean"] > found["truth"] + 0.02
    losses, scores = example.pool().draw(None)
    assert losses.shape == scores.shape == (400,)


@pytest.mark.parametrize(
    ("losses", "scores", "said"),
    [([1.0, float("nan")], [1, 1], "finite"), ([1.0, 2.0], [1.0], "of shape"), ([1.0, 2.0], [-1.0, 1.0], ">= 0")],
)
def test_pools_that_cannot_be(losses, scores, said):
    with pytest.raises(ValueError, match=said):
        Pool(losses, scores)
