"""Do the trials of the sliced Stein discrepancy measure what they say?"""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kurtosis, spearmanr

from laureate.lab.claim import Settings
from laureate.papers.sksd import trials, trials_particles
from laureate.problems.gaussians import GaussianTarget
from laureate.sampling import ksd, stein_test

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_posterior.py"


@pytest.fixture(scope="module")
def draws():
    return np.asarray(
        jax.jit(lambda key: jnp.stack([trials.drawn(key, k, 20000, 4) for k in range(5)]))(jax.random.key(0))
    )


def test_the_kinds_of_draws_differ_as_they_should_and_not_otherwise(draws):
    null, variance, laplace, student, turned = draws
    along = np.full(4, 0.5)
    for x in draws:
        np.testing.assert_allclose(x.mean(0), 0, atol=0.03)
    for x in (null, laplace, student):
        np.testing.assert_allclose(np.cov(x.T), np.eye(4), atol=0.06)
    np.testing.assert_allclose(np.cov(variance.T), np.diag([0.3, 1, 1, 1]), atol=0.05)
    np.testing.assert_allclose(np.cov(turned.T), np.eye(4) - 0.7 * np.outer(along, along), atol=0.05)
    assert kurtosis(laplace.ravel()) == pytest.approx(3, abs=0.3)
    assert kurtosis(student.ravel()) > 2
    assert abs(kurtosis(null.ravel())) < 0.1
    counts = np.histogram(np.abs(laplace.ravel()), [0, np.log(2) / np.sqrt(2), np.inf])[0]
    assert counts[0] / counts.sum() == pytest.approx(0.5, abs=0.01)  # its median


def key_draws(key):
    return jax.random.normal(key, (60, 2)) * jnp.array([0.5, 1.0])


def by_hand(key, x):
    """Signal of each width on the first fifth, and the value of the others at each width."""
    choice = jax.random.split(key)[0]
    ells = jnp.asarray(trials.WIDTHS) * jnp.median(
        jnp.linalg.norm((x[:12, None] - x[:12])[np.triu_indices(12, 1)], axis=1)
    )

    def each(ell):
        found = stein_test(choice, x[:12], -x[:12], slices=None, bandwidth=ell, num_bootstrap=19)
        return found.value / jnp.std(found.null), ksd(x[12:], -x[12:], bandwidth=ell)

    return jax.lax.map(each, ells)


@pytest.fixture(scope="module")
def shares():
    """All trials of tests on a coin, whose p-values are uniform, and of one real test, in one program."""
    coin, means = Settings(test="coin"), Settings(test="means")
    small = {"draws": 60, "replicates": 19, "steps": 2, "rate": 0.03, "sets": 40}
    problem = GaussianTarget(3, 0.5)

    def run(key):
        return {
            "level": trials.level(key, coin, None, Settings(small, dimensions=(2, 3), sets=400)),
            "power": trials.power(key, means, None, Settings(small, dimensions=(2, 3))),
            "chain": trials.chain(key, coin, None, Settings(small, dimension=2, sets=400)),
            "walk": trials.walked(key, jnp.asarray(0.9), 20000, 2),
            "tuned": trials.tuned_kernel(key, key_draws(key), -key_draws(key), {"num_bootstrap": 19}).value,
            "by hand": by_hand(key, key_draws(key)),
            "diagnosis": trials.diagnosis(
                key, means, problem, Settings(small, shares=(0.05, 0.3, 0.9), times=(0.5, 3.0, 9.0), repeats=4)
            ),
        }

    return jax.tree.map(np.asarray, jax.jit(run)(jax.random.key(2)))


@pytest.mark.slow
def test_a_coin_rejects_one_in_twenty_and_the_interval_is_wilsons(shares):
    found = shares["level"]
    for d in (2, 3):
        rate = found[f"rejected_{d}"]
        assert 0.015 < rate < 0.09
        z, n = 2.5758, 400
        ends = [
            (rate + z**2 / 2 / n + s * z * np.sqrt(rate * (1 - rate) / n + z**2 / 4 / n**2)) / (1 + z**2 / n)
            for s in (-1, 1)
        ]
        np.testing.assert_allclose([found[f"low_{d}"], found[f"high_{d}"]], ends, rtol=1e-4)
    assert found["rejected_2"] != found["rejected_3"]
    assert all(0.015 < rate < 0.09 for rate in shares["chain"].values())


def test_power_is_by_kind_and_dimension(shares):
    found = shares["power"]
    np.testing.assert_allclose(found["log_dimensions"], np.log([2, 3]), rtol=1e-6)
    for kind in trials.KINDS:
        np.testing.assert_array_equal(found[kind], [found[f"{kind}_2"], found[f"{kind}_3"]])
    for place, d in enumerate((2, 3)):
        wanted = np.mean([found[kind][place] for kind in ("variance", "laplace", "student")])
        assert found[f"along_axes_{d}"] == pytest.approx(wanted, abs=1e-6)
    assert found["variance_2"] > 0.9


def test_chains_have_the_law_they_should(shares):
    walk = shares["walk"]
    np.testing.assert_allclose(walk.var(0), 1, atol=0.15)
    assert np.corrcoef(walk[1:, 0], walk[:-1, 0])[0, 1] == pytest.approx(0.9, abs=0.01)


def test_the_tuned_kernel_takes_the_width_of_the_largest_signal(shares):
    signals, values = shares["by hand"]
    assert shares["tuned"] == pytest.approx(values[int(np.argmax(signals))], rel=0.05)
    assert abs(values[int(np.argmin(signals))] / values[int(np.argmax(signals))] - 1) > 0.1


def test_the_worst_sampler_ranks_last(shares):
    found = shares["diagnosis"]
    assert found["mean_field"] < 0.2  # coordinate by coordinate its scores are right
    assert found["rank_steps"] > 0.6
    assert found["rank_times"] > 0.6
    ranks = jax.jit(trials.rank_correlation)
    a, b = np.array([3.0, 1.0, 2.0, 5.0]), np.array([2.0, 4.0, 1.0, 9.0])
    assert float(ranks(a, b)) == pytest.approx(spearmanr(a, b)[0], abs=1e-6)


@pytest.fixture(scope="module")
def particles():
    problem = GaussianTarget(4, 0.6)
    scale = Settings(particles=400, steps=100, rates=(0.0, 0.1))

    def run(key):
        names = {"independent": {}, "start": {}, "langevin": {}, "svgd": {"bandwidth": "median"}}
        few = Settings(scale, particles=40)
        arms = {name: Settings(more, sampler=name) for name, more in names.items()}
        return {
            n: trials_particles.particles(key, arm, problem, few if n == "svgd" else scale) for n, arm in arms.items()
        }

    return jax.tree.map(np.asarray, jax.jit(run)(jax.random.key(3)))


@pytest.mark.slow
def test_errors_are_those_of_known_laws(particles):
    """400 independent draws are near; the start has four times the variance; the rate that moves is chosen."""
    assert abs(particles["independent"]["log_variance"]) < 0.15
    assert particles["independent"]["covariance_error"] < 0.2
    assert particles["start"]["log_variance"] == pytest.approx(np.log(4), abs=0.2)
    assert particles["start"]["mean_error"] == pytest.approx(1, abs=0.25)
    assert "rate" not in particles["start"]
    for name in ("langevin", "svgd"):
        assert particles[name]["rate"] == pytest.approx(0.1)
        assert particles[name]["covariance_error"] < 0.3 * particles["start"]["covariance_error"]


def test_what_diverges_has_the_worst_error():
    problem = GaussianTarget(2)
    x = np.array([[np.inf, 0.0], [1.0, 2.0], [0.0, 1.0]], np.float32)
    found = jax.jit(lambda x: trials_particles.errors(x, problem))(x)
    assert all(abs(float(value)) == trials_particles.WORST for value in found.values())


def test_the_targets_covariance_is_that_of_its_scores():
    target = GaussianTarget(3, 0.4)
    np.testing.assert_allclose(np.asarray(target.precision) @ np.asarray(target.covariance), np.eye(3), atol=1e-5)
    with pytest.raises(ValueError, match="correlation must be in"):
        GaussianTarget(3, 1.0)


@pytest.mark.slow
def test_the_example_runs(capsys):
    found = runpy.run_path(str(EXAMPLE))["main"](num_draws=200, num_steps=400)
    assert found["exact"]["KSD"] > 0.01
    assert found["mean field"]["axes"] > 0.01  # blind
    assert found["sliced SVGD, the axes"]["variance"] < 0.7
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_the_examples_posterior_is_that_of_its_log_density():
    target = runpy.run_path(str(EXAMPLE))["Diabetes"]()
    slope, bend = jax.jit(lambda x: (jax.grad(target.logdensity)(x), jax.hessian(target.logdensity)(x)))(target.mean)
    np.testing.assert_allclose(slope, 0, atol=1e-2)
    np.testing.assert_allclose(bend, -np.asarray(target.precision), rtol=1e-3, atol=1e-2)
