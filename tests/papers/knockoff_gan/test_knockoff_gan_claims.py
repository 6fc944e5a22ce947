"""The claims of KnockoffGAN: the ids promised, trials that measure what they say, and a table of one's own."""

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import loaded
from laureate.lab.claim import Settings
from laureate.lab.running.references import load
from laureate.papers.knockoff_gan import speed, trials, trials_training
from laureate.papers.knockoff_gan.about import PAPER
from laureate.problems.tables import Design, Table

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
KEY = jax.random.key(0)
EXAMPLE = Path(__file__).parents[3] / "examples" / "own_table.py"


def test_the_ids_are_the_ones_promised():
    promised = (
        "fdr-gaussian bh-fails permuted-fails validity-test validity-gan frontier training-order non-gaussian-fdr "
        "non-gaussian-power stability-term mixture-baseline null-response mutual-information real-features architecture"
    )
    claims = {claim.name: claim for claim in PAPER.claims}
    assert set(promised.split()) <= set(claims)
    assert claims["architecture"].kind == "question"


def test_responses_have_as_many_true_variables_as_asked_and_this_size():
    x = np.asarray(jax.random.normal(KEY, (4000, 10)))
    y, truth = map(np.asarray, jax.jit(lambda key, x: trials.respond(key, x, 3, 20.0))(KEY, x))
    assert int(truth.sum()) == 3
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(np.abs(coefficients), np.where(truth, 20 / np.sqrt(4000), 0), atol=0.07)


def test_false_and_found_by_hand():
    truth, selected = jnp.array([True, True, False, False]), jnp.array([True, False, True, False])
    assert [float(v) for v in trials.score(selected, truth)] == [0.5, 0.5]
    assert [float(v) for v in trials.score(jnp.zeros(4, bool), truth)] == [0.0, 0.0]


def test_benjamini_hochberg_by_hand():
    """Twelve values against scipy's own."""
    from scipy.stats import false_discovery_control

    x, noise = np.asarray(jax.random.normal(KEY, (200, 12))), np.asarray(jax.random.normal(jax.random.key(1), (200,)))
    y = x[:, 0] + np.float32(0.3) * x[:, 1] + noise
    z = np.array([np.corrcoef(column, y)[0, 1] for column in x.T]) * np.sqrt(200)
    from scipy.stats import norm

    expected = false_discovery_control(2 * norm.cdf(-np.abs(z))) <= 0.1
    np.testing.assert_array_equal(jax.jit(trials._benjamini_hochberg)(x, y, 0.1), expected)
    assert expected.any()


@pytest.mark.parametrize("kind", ["uniform", "mixture", "student"])
def test_designs_are_standardised(kind):
    x = np.asarray(jax.jit(lambda key: Design(kind, 6).sample(key, 20_000))(KEY))
    np.testing.assert_allclose(x.mean(0), 0, atol=0.05)
    if kind != "student":  # whose fourth moment is infinite
        np.testing.assert_allclose(x.std(0), 1, atol=0.03)
    if kind == "uniform":
        assert np.abs(x).max() <= np.sqrt(3) + 1e-4


def test_the_untrained_arm_is_second_order_and_arms_differ_in_numbers_alone():
    training = EXPERIMENTS["training"]
    for arm in training.arms:
        assert all(isinstance(value, float) for value in arm.settings.values())
        assert set(arm.settings) == set(training.arms[0].settings)
    untrained = training.arm("second-order").settings
    sampler = trials_training._network(untrained, Settings(steps=2, batch=4, learning_rate=1e-3))
    assert sampler.start == 1.0
    assert float(sampler.learning_rate) < 1e-11  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_a_table_of_ones_own_is_taken_and_run():
    table = load(f"{EXAMPLE}:table")()
    assert all(hasattr(table, name) for name in EXPERIMENTS["real"].accepts)
    scale = Settings(num_true=4, amplitude=8.0, q=0.3, responses=2)
    small = Table(np.asarray(table.inputs)[:, :8], np.asarray(table.response))
    found = jax.jit(lambda key: trials.real(key, Settings(sampler="second-order"), small, scale))(KEY)
    assert all(np.isfinite(value) for value in found.values())
    with pytest.raises(ValueError, match=r"Table\.response must be of shape \(3,\); got \(2,\)"):
        Table(np.eye(3), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"Table\.inputs must be without constant columns; got \[1\]"):
        Table([[1.0, 2.0], [3.0, 2.0]], [1.0, 2.0])


@pytest.mark.slow
def test_the_example_runs():
    module = loaded(EXAMPLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(module.main(), list)


@pytest.mark.slow
def test_our_side_of_the_benchmark_runs():
    assert speed.our_side(replications=2).run().shape == (2, speed.VARIABLES)


def test_the_same_statistics_give_knockpys_selection():
    """Its rule for a stored case: W, and what knockpy 1.3.5's data_dependent_threshhold selects at q = 0.3 by hand."""
    from laureate.selection import knockoff_filter

    w = np.array([4.0, -0.5, 3.0, 2.5, 0.0, -2.0, 1.5, 1.2, 1.1, 0.9, -0.1], np.float32)
    # t = 2.5: (1 + 0) / 3 > 0.3; t = 1.1: (1 + 1) / 6 > 0.3; t = 0.9: 2/7 <= 0.3; t = 0.5: 3/7; t = 0.1: 4/7.
    found = knockoff_filter(w, 0.3)
    assert float(found.threshold) == pytest.approx(0.9)
    np.testing.assert_array_equal(found.selected, w >= 0.9)
    knockpy = pytest.importorskip("knockpy.knockoff_stats")
    generator = np.random.default_rng(0)
    for _ in range(50):
        w = generator.normal(0.5, 1, 40).astype(np.float32)
        threshold = knockpy.data_dependent_threshhold(w, fdr=0.2)
        np.testing.assert_array_equal(knockoff_filter(w, 0.2).selected, w >= threshold)
