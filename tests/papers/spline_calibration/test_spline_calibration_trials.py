"""The trials of spline calibration: the ids promised, numbers known from elsewhere, a problem of one's own."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import run_with_problem
from laureate.lab.claim import Settings
from laureate.papers.spline_calibration import trials
from laureate.papers.spline_calibration.about import PAPER
from laureate.papers.spline_calibration.experiments import ARMS, TRUTH
from laureate.problems.confidences import TRUTHS, TrainedNetworks, known_truth, scores_of_rank
from laureate.uncertainty import fit_temperature

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_calibration.py"


class Fixed:
    """300 rows whose first class is right as often as it says, squared."""

    def predictions(self, key):
        rng = np.random.default_rng(0)
        first = rng.uniform(0.5, 1, 300)
        rows = np.stack([first, 0.8 * (1 - first), 0.2 * (1 - first)], axis=1)
        missed = 1 + (rng.random(300) < 0.6)  # seldom the second class, which is then written off
        labels = np.where(rng.random(300) > first**2, missed, 0)
        return jnp.asarray(rows, jnp.float32), jnp.asarray(labels, jnp.int32)


def test_the_ids_are_the_ones_promised():
    assert {"ks-lower", "ece", "accuracy-kept", "data-needed"} <= {claim.name for claim in PAPER.claims}
    assert {arm.settings.map for arm in (*ARMS, *TRUTH.arms)} == {arm.name for arm in TRUTH.arms}


def test_a_map_is_fitted_to_one_part_and_judged_by_the_other():
    run = jax.jit(lambda key: trials.networks(key, Settings(map="constant"), Fixed(), Settings(calibration=100)))
    found = run(jax.random.key(3))
    rows, labels = map(np.asarray, Fixed().predictions(None))
    order = np.asarray(jax.random.permutation(jax.random.split(jax.random.key(3))[1], 300))
    hits = np.asarray(rows.argmax(1) == labels, float)[order]
    share, test = hits[:100].mean(), hits[100:]
    assert float(found["brier"]) == pytest.approx(100 * np.mean((share - test) ** 2), rel=1e-4)
    assert float(found["ks"]) == pytest.approx(100 * abs(share - test.mean()), rel=1e-3)
    assert float(found["ece"]) == pytest.approx(float(found["ks"]), rel=1e-3)
    place = np.argmax(np.where(np.arange(3) == rows.argmax(1)[:, None], share, rows), axis=1)
    assert float(found["accuracy"]) == pytest.approx(100 * np.mean((place == labels)[order][100:]), rel=1e-5)
    second = np.asarray(labels == 1, float)[order]
    assert float(found["ks_second"]) == pytest.approx(100 * abs(second[:100].mean() - second[100:].mean()), rel=1e-3)


def binned(p, y, bins):
    """The expected calibration error by a loop over bins that are closed above."""
    inside = [(p > k / bins) & (p <= (k + 1) / bins) for k in range(bins)]
    return sum(abs(np.sum((y - p)[one])) for one in inside) / len(p)


def test_the_temperature_is_that_of_the_calibration_rows_and_ece_has_25_bins():
    """And it is the one of the prediction sets, which is found another way."""
    run = jax.jit(lambda key: trials.networks(key, Settings(map="temperature"), Fixed(), Settings(calibration=60)))
    found = run(jax.random.key(3))
    rows, labels = (np.asarray(part) for part in Fixed().predictions(None))
    order = np.asarray(jax.random.permutation(jax.random.split(jax.random.key(3))[1], 300))
    known, asked = order[:60], order[60:]
    temperatures = [float(fit_temperature(np.log(rows[part]).astype(float), labels[part])) for part in (known, asked)]
    assert abs(temperatures[0] - temperatures[1]) > 0.02
    p = (rows[asked] ** (1 / temperatures[0])).astype(float)
    p, y = p.max(1) / p.sum(1), 1.0 * (rows[asked].argmax(1) == labels[asked])
    assert float(found["brier"]) == pytest.approx(100 * np.mean((p - y) ** 2), rel=1e-3)
    assert float(found["nll"]) == pytest.approx(-np.mean(np.log(np.where(y == 1, p, 1 - p))), rel=1e-3)
    assert float(found["ece"]) == pytest.approx(100 * binned(p, y, 25), rel=1e-3)


def test_measures_are_those_of_their_draws():
    run = jax.jit(lambda key: trials.measure(key, Settings(power=1.3), None, Settings(rows=60, draws=6)))
    found = run(jax.random.key(5))
    ks, errors = [], []
    for key in jax.random.split(jax.random.key(5), 6):
        rank, coin = np.asarray(jax.random.uniform(key, (2, 60)), float)
        p = np.sort(rank**0.25)
        y = 1.0 * (coin < rank ** (0.25 * 1.3))[np.argsort(rank)]
        ks.append(np.abs(np.cumsum(y - p)).max() / 60)
        errors.append([binned(p, y, bins) for bins in (5, 10, 15, 25, 50, 100)])
    errors = np.array(errors)
    assert float(found["log_ratio"]) == pytest.approx(np.log(np.mean(ks) / errors[:, 3].mean()), abs=1e-4)
    assert float(found["log_bins"]) == pytest.approx(np.log(np.median(errors.max(1) / errors.min(1))), abs=1e-4)


def test_errors_to_the_truth_are_distances():
    run = jax.jit(
        lambda key: trials.truth(key, Settings(map="none"), None, Settings(rows=(40,), judged=40, wanted=3.0))
    )
    found = run(jax.random.key(0))
    test = (np.arange(2000) + 0.5) / 2000
    for k, name in enumerate(TRUTHS):
        s = test**0.25
        wanted = 100 * np.mean(np.abs(s - known_truth(jnp.asarray(k), jnp.asarray(s))))
        assert float(found[f"error_{name}"]) == pytest.approx(wanted, rel=1e-4)
    assert float(found["error_calibrated"]) == pytest.approx(0, abs=1e-4)


def test_rows_needed_are_those_from_which_the_error_stays_low():
    x = np.log10([100.0, 1000.0, 10000.0])
    read = jax.jit(trials.rows_needed)
    for errors, wanted in (
        ((4.0, 2.0, 1.0), 2.5),
        ((2.0, 4.0, 2.0), 3.5),
        ((2.0, 1.0, 1.0), 2.0),
        ((9.0, 8.0, 7.0), 4.0),
    ):
        assert float(read(x, np.array(errors), 3.0)) == pytest.approx(wanted, abs=1e-4)


def test_scores_are_quantiles_of_a_beta_law():
    from scipy.stats import beta

    ranks = np.linspace(0.05, 0.95, 7)
    np.testing.assert_allclose(scores_of_rank(ranks), beta(4, 1).ppf(ranks), rtol=1e-6)


def test_wrong_labels_are_as_many_as_asked_and_rows_are_dealt_anew():
    problem = TrainedNetworks("digits", train=100, noise=0.5, steps=2, width=4)
    run = jax.jit(lambda key: problem.predictions(key))
    (rows, labels), (_, again) = run(jax.random.key(0)), run(jax.random.key(1))
    np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-5)
    assert labels.shape == (1697,)
    # Were rows and wrong labels the same, all would agree; by chance a tenth does.
    assert 0.05 < float(jnp.mean(labels == again)) < 0.15


@pytest.mark.slow  # tests/test_form.py sees that its imports are there
def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["Identity", "Constant", "Beta", "SplineCalibrator"]
    briers = [float(line.rsplit(" ", 1)[1]) for line in lines]
    assert briers[3] < briers[1]


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "spline-calibration/networks", f"{EXAMPLE}:Tumours")
