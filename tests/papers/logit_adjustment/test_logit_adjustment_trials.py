"""Do the trials measure what they say? Against closed forms and scikit-learn on the same rows."""

import warnings
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from trial_runner import QUICK, run

from example_files import loaded
from laureate.imbalance import LOSSES
from laureate.lab.claim import Settings
from laureate.papers.logit_adjustment import trials, trials_digits
from laureate.papers.logit_adjustment.experiments import CONSISTENCY
from laureate.papers.logit_adjustment.experiments_digits import NETWORKS
from laureate.problems.long_tails import LongTailedDigits, RareRows

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_rare_classes.py"
BLOBS = np.random.default_rng(0)


def test_newton_is_scikit_learns_regression_with_weights_and_an_offset():
    x = BLOBS.normal(size=(80, 2))
    positive = BLOBS.uniform(size=80) < 1 / (1 + np.exp(1 - x @ [1.0, 2.0]))
    weights = BLOBS.uniform(0.5, 2, 80)
    found = jax.jit(trials._newton)(x, positive, weights / 80, 0.0, 1 / 80)
    peer = LogisticRegression(tol=1e-8, max_iter=1000).fit(x, positive, sample_weight=weights)
    np.testing.assert_allclose(found[0], peer.coef_[0], rtol=2e-3)
    np.testing.assert_allclose(found[1], peer.intercept_[0], rtol=5e-3)
    moved = jax.jit(trials._newton)(x, positive, weights / 80, 0.7, 1 / 80)
    np.testing.assert_allclose(moved[1], found[1] - 0.7, rtol=5e-3)


@pytest.fixture(scope="module")
def excesses():
    scale = {"rows": (400, 3000), "runs": 4, "rare": 0.05, "ridge": 0.01}
    problem = None

    def every(floats):
        return jax.lax.map(lambda f: trials.gaussians(jax.random.key(0), Settings(f), problem, Settings(scale)), floats)

    names = [arm.name for arm in CONSISTENCY.arms]
    stacked = {key: jnp.array([arm.settings[key] for arm in CONSISTENCY.arms]) for key in CONSISTENCY.arms[0].settings}
    program = jax.jit(every).lower(stacked).compile(compiler_options=QUICK)
    found = jax.tree.map(np.asarray, program(stacked))
    return {name: {key: value[i] for key, value in found.items()} for i, name in enumerate(names)}


@pytest.mark.slow
def test_on_gaussians_all_but_plain_training_approach_the_best(excesses):
    assert excesses["plain"]["excess_most"] > 0.08
    for name in ("loss", "after", "weighted", "under", "centroid"):
        assert 0 < excesses[name]["excess_most"] < 0.005, name
    np.testing.assert_allclose(excesses["loss"]["log_excess"], excesses["after"]["log_excess"], atol=0.02)
    assert abs(excesses["loss"]["log_excess"][0] - excesses["weighted"]["log_excess"][0]) > 0.001
    assert pytest.approx(0.0786496, abs=1e-6) == trials.BAYES


def test_posteriors_have_the_notes_order_of_errors():
    scale = {"rows": 4000, "prior": (0.9, 0.08, 0.02), "taus": (0.0, 0.5, 1.0, 1.5, 2.0)}
    found = run(trials.posteriors, {}, None, scale, seeds=3)
    assert (found["gap"] < 0.01).all()
    assert (found["balanced"][:, 0] > found["balanced"][:, 2]).all()
    assert (np.diff(found["plain"], axis=1) > -0.01).all()  # balance has its price
    np.testing.assert_allclose(found["price"], found["plain"][:, 2] - found["plain"].min(1), atol=1e-6)


def test_arms_number_the_losses_in_their_order():
    numbers = {arm.name: int(arm.settings.loss) for arm in NETWORKS.arms}
    order = list(LOSSES)
    expected = {"loss": "logit-adjusted", "weighted": "weighted", "label-margin": "label-margin"}
    expected |= {"equalised": "equalised", "focal": "focal", "scaling": "vector-scaling", "after": "cross-entropy"}
    assert {name: order[numbers[name]] for name in expected} == expected


def test_long_tails_are_as_long_as_said_and_split():
    problem = LongTailedDigits(head=60, ratio=20.0, test=50)
    split = eqx.filter_jit(problem.draw)(jax.random.key(3))
    counts = np.bincount(np.asarray(split.labels))
    assert sorted(counts.tolist(), reverse=True) == list(problem.counts)
    assert problem.counts[0] == 60
    assert problem.counts[-1] == 3
    assert np.bincount(np.asarray(split.test_labels)).tolist() == [50] * 10
    known = {row.tobytes() for row in np.asarray(split.inputs)}
    assert not known & {row.tobytes() for row in np.asarray(split.test_inputs)}
    nearest = np.asarray(trials_digits._nearest(split, 10))
    assert np.mean(nearest == np.asarray(split.test_labels)) > 0.7  # rows and labels belong together


def test_the_tail_and_who_pays_are_told_by_frequency(monkeypatch):
    """Of the nearest mean, which needs no training; every step is left out. The third class is the most frequent."""
    monkeypatch.setattr(jax.lax, "fori_loop", lambda first, last, step, carry: carry)
    monkeypatch.setattr(trials_digits, "TAUS", (1.0,))  # less to compile
    generator = np.random.default_rng(1)
    y, held = np.repeat([0, 1, 2, 3], [12, 4, 60, 6]), np.repeat([0, 1, 2, 3], 10)
    centres = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    x, told = (centres[labels] + 0.6 * generator.normal(size=(len(labels), 2)) for labels in (y, held))
    arm = next(arm for arm in NETWORKS.arms if arm.name == "centroid")
    scale = {"hidden": 2, "rate": 0.02, "steps": (1, 2, 3)}
    found = run(trials_digits.networks, arm.settings, RareRows(x, y, told, held), scale, seeds=1)
    means = np.stack([x[y == c].mean(0) for c in range(4)])
    nearest = ((told[:, None] - means) ** 2).sum(-1).argmin(1)
    wrong = np.array([np.mean(nearest[held == c] != c) for c in range(4)])
    assert wrong[2] < wrong[[0, 1, 3]].min()
    for name in ("short", "middle", "long"):
        assert found[f"error_{name}"][0] == pytest.approx(wrong.mean(), abs=1e-6)
        assert found[f"tail_{name}"][0] == pytest.approx(wrong[[0, 1, 3]].mean(), abs=1e-6)
        assert found[f"prior_error_{name}"][0] == pytest.approx(wrong @ (np.bincount(y) / 82), abs=1e-6)


@pytest.fixture(scope="module")
def trained():
    """Blobs of one's own through the trial of networks; arms in one program."""
    y, held = np.repeat([0, 1, 2, 3], [60, 12, 6, 4]), np.repeat([0, 1, 2, 3], 40)
    centres = 1.2 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    rows = [centres[labels] + 0.5 * BLOBS.normal(size=(len(labels), 2)) for labels in (y, held)]
    problem = RareRows(rows[0], y, rows[1], held)
    scale = Settings(hidden=8, rate=0.02, steps=(10, 60, 120))
    arms = [
        arm for arm in NETWORKS.arms if arm.name in ("loss", "after", "plain", "resampled", "normalised", "centroid")
    ]
    stacked = {key: jnp.array([arm.settings[key] for arm in arms]) for key in arms[0].settings}

    def every(floats):
        return jax.lax.map(lambda f: trials_digits.networks(jax.random.key(0), Settings(f), problem, scale), floats)

    program = jax.jit(every).lower(stacked).compile(compiler_options=QUICK)
    found = jax.tree.map(np.asarray, program(stacked))
    return {arm.name: {key: value[i] for key, value in found.items()} for i, arm in enumerate(arms)}, problem


@pytest.mark.slow
def test_networks_report_errors_tau_and_who_pays(trained):
    found, problem = trained
    split = problem.draw(jax.random.key(0))
    assert found["after"]["error_middle"] < found["plain"]["error_middle"]
    assert found["loss"]["error_middle"] < found["plain"]["error_middle"]
    assert found["after"]["prior_error_middle"] >= found["plain"]["prior_error_middle"] - 0.02
    np.testing.assert_allclose(found["plain"]["error"][1], found["plain"]["error_middle"])
    # The gap of τ = 1 is that of the same network, corrected afterwards.
    assert found["plain"]["tau_gap_middle"] == pytest.approx(found["after"]["tau_gap_middle"])
    assert found["plain"]["tau_gap_middle"] <= found["after"]["error_middle"] + 1e-6
    assert found["resampled"]["error_long"] != found["plain"]["error_long"]
    assert found["normalised"]["error_middle"] != found["plain"]["error_middle"]
    means = np.stack([np.asarray(split.inputs)[np.asarray(split.labels) == c].mean(0) for c in range(4)])
    nearest = ((np.asarray(split.test_inputs)[:, None] - means) ** 2).sum(-1).argmin(1)
    wrong = [np.mean(nearest[np.asarray(split.test_labels) == c] != c) for c in range(4)]
    assert found["centroid"]["error_short"] == pytest.approx(np.mean(wrong), abs=1e-6)
    # The first class is the most frequent; the tail is the other three.
    assert found["centroid"]["tail_short"] == pytest.approx(np.mean(wrong[1:]), abs=1e-6)
    assert found["centroid"]["prior_error_short"] == pytest.approx(wrong @ (np.array([60, 12, 6, 4]) / 82), abs=1e-6)
    assert wrong[0] != wrong[3]


def test_classifiers_are_corrected(trained):
    _, problem = trained
    scale = Settings(iterations=100, trees=5)

    def error(classifier, correction):
        arm = Settings(classifier=classifier, correction=correction)
        return float(trials_digits.classifiers(jax.random.key(0), arm, problem, scale)["error"])

    assert error("logistic", "adjusted") < error("logistic", "")
    assert error("forest", "adjusted") <= error("forest", "")
    assert error("logistic", "weighted") < error("logistic", "")


@pytest.mark.slow  # tests/test_form.py sees that its imports are there
def test_your_own_rows():
    example = loaded(EXAMPLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = example.main(trees=10)
    assert found["forest, adjusted"] < found["forest"]
    assert found["network, adjusted after training"] <= found["network"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1.0], [0], [[1.0]], [0]), "a matrix"),
        (([[1.0], [2.0]], [0], [[1.0]], [0]), "of shape"),
        (([[1.0], [2.0]], [0, 2], [[1.0]], [0]), "with every class"),
    ],
)
def test_rows_that_cannot_be(arguments, said):
    with pytest.raises(ValueError, match=said):
        RareRows(*arguments)
