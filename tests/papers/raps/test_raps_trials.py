"""The claims of RAPS: the ids promised, trials that measure what they say, the peer's sets, and one's own logits."""

import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import loaded
from laureate.lab.claim import Settings
from laureate.papers.raps import speed, trials, trials_adaptive
from laureate.papers.raps.about import PAPER
from laureate.problems.scores import DigitNumbers, NoisyScores, ScoreTable, numbers_of_one_to_three
from laureate.uncertainty import APS, coverage, coverage_law

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
EXAMPLE = Path(__file__).parents[3] / "examples" / "own_scores.py"
KEY = jax.random.key(0)
QUICK: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
SCALE = Settings(tune=100, calibrate=200, test=300)


def test_the_ids_are_the_ones_promised():
    claims = {claim.name: claim for claim in PAPER.claims}
    assert {"coverage", "naive-misses", "smaller-than-aps", "adaptivity", "lac", "many-classes"} <= set(claims)
    assert claims["many-classes"].kind == "question"


def test_arms_of_the_law_differ_in_numbers_alone_and_have_one_score():
    for name in ("law", "tuning"):
        for arm in EXPERIMENTS[name].arms:
            assert all(isinstance(value, float) for value in arm.settings.values())
    for arm in EXPERIMENTS["law"].arms:
        assert sum(arm.settings[score] for score in ("raps", "lac", "top_k", "saps")) == 1


def test_the_released_quantile_is_numpys():
    scores = np.random.default_rng(0).normal(size=105)
    for n in (15, 20, 105):
        known = np.quantile(scores[:n], 0.9, method="higher")
        assert float(trials.released_quantile(jnp.asarray(scores[:n]), 0.1)) == pytest.approx(known)
        k = math.ceil((n - 1) * 0.9 - 1e-9) + 1
        assert known == np.sort(scores[:n])[k - 1]


@pytest.fixture(scope="module")
def law():
    problem, scale = NoisyScores(5, noise=0.5), Settings(rows=35, worlds=200, reference=10_000)
    compiled = jax.jit(
        lambda weights: jax.vmap(lambda key: trials.law(key, Settings(weights), problem, scale))(
            jax.random.split(KEY, 4)
        ),
        **QUICK,
    )
    return lambda arm: jax.tree.map(np.asarray, compiled(dict(EXPERIMENTS["law"].arm(arm).settings)))


@pytest.mark.parametrize("arm", ["raps", "aps", "lac", "top-k", "saps"])
def test_coverage_and_its_law(law, arm):
    found, exact = law(arm), coverage_law(35, 0.1)
    assert abs(found["coverage"].mean() - exact.mean) < 4 * np.hypot(exact.sd / np.sqrt(800), 0.3 / np.sqrt(40_000))
    assert found["kolmogorov"].mean() < 1.36
    np.testing.assert_allclose(found["below"].mean(), exact.cdf(0.9), atol=0.08)


def test_one_score_less_is_seen(law):
    """At n = 35 the released quantile is the 32nd smallest where the 33rd is right."""
    np.testing.assert_allclose(law("raps")["coverage"].mean(), 33 / 36, atol=0.008)
    np.testing.assert_allclose(law("released")["coverage"].mean(), 32 / 36, atol=0.008)
    assert (law("naive")["kolmogorov"] > 5).all()


@pytest.mark.slow
def test_tuning_on_the_same_rows_covers_less():
    problem, scale = NoisyScores(6, noise=1.0), Settings(rows=50, worlds=150, test=100)
    compiled = jax.jit(lambda weights: trials.tuning(KEY, Settings(weights), problem, scale), **QUICK)
    found = {arm.name: float(compiled(dict(arm.settings))["coverage"]) for arm in EXPERIMENTS["tuning"].arms}
    assert found["shared"] < found["split"] - 0.005
    assert abs(found["split"] - 46 / 51) < 0.02
    assert abs(found["fixed"] - 46 / 51) < 0.02


def arm(name, experiment="digits"):
    return EXPERIMENTS[experiment].arm(name).settings


def test_what_is_judged_is_recomputed_by_hand():
    """All metrics of an arm from its own sets, on rows that did not calibrate."""
    problem = NoisyScores(30, noise=1.0)
    found = trials.judged(KEY, arm("raps"), problem, SCALE)
    row_key, fit_key, set_key, other_key = jax.random.split(KEY, 4)
    logits, y = (np.asarray(v) for v in problem.sample(row_key, 600))
    method = trials._method(arm("raps"), 1 / 3).fit(fit_key, logits[300:], y[300:])
    assert method.n_cal_ == 200
    sets = method.predict_set(set_key, logits[:300])
    covered = sets[np.arange(300), y[:300]]
    assert found["coverage"] == pytest.approx(coverage(sets, y[:300]))
    assert found["size"] == pytest.approx(sets.sum(axis=1).mean())
    assert found["log_size"] == pytest.approx(np.log(sets.sum(axis=1).mean()))
    rank = np.array([1 + np.sum(row > row[label]) for row, label in zip(logits[:300], y[:300], strict=True)])
    assert found["hard_count"] == (rank >= 4).sum() > 0
    assert found["hard"] == pytest.approx(covered[rank >= 4].mean())
    other = method.predict_set(other_key, logits[:300])
    assert found["changes"] == pytest.approx((sets != other).any(axis=1).mean())
    assert found["accuracy"] == pytest.approx((logits[:300].argmax(axis=1) == y[:300]).mean())
    # Of numbers of several digits the classes are told apart by the last.
    digits = [covered[y[:300] % 10 == digit].mean() for digit in range(10)]
    assert found["class_spread"] == pytest.approx(np.std(digits), rel=1e-5)


def test_arms_are_what_their_names_say():
    problem = NoisyScores(30, noise=1.0)
    found = {one.name: trials.judged(KEY, one.settings, problem, SCALE) for one in EXPERIMENTS["noise"].arms}
    found |= {name: trials.judged(KEY, arm(name), problem, SCALE) for name in ("raps-joint", "raps-rounded")}
    assert found["raps-rounded"]["size"] > found["raps"]["size"]
    assert found["raps-rounded"]["changes"] == found["lac"]["changes"] == 0
    assert found["raps-adaptive"]["lam"] <= 0.002
    assert found["naive-overconfident"]["temperature"] == 1.0
    undoubled = Settings(dict(arm("naive-overconfident", "noise")) | {"sharpen": 1.0})
    assert found["naive-overconfident"]["size"] < trials.judged(KEY, undoubled, problem, SCALE)["size"] - 0.1
    assert found["naive-overconfident"]["coverage"] < found["naive"]["coverage"] - 0.05
    assert found["top-k"]["size"] > found["lac"]["size"]


def test_grids_for_adaptiveness_end_where_they_say():
    from laureate.uncertainty.raps import ADAPTIVE_GRID

    assert tuple(lam for lam in trials_adaptive.PENALTIES if lam <= 0.002) == ADAPTIVE_GRID
    arms = {one.name: one.settings for one in EXPERIMENTS["adaptive"].arms}
    found = {name: trials_adaptive.adaptive(KEY, arms[name], NoisyScores(30, noise=1.0), SCALE) for name in arms}
    assert found["aps"]["lam"] == 0
    assert found["paper-grid"]["lam"] <= 0.002
    row_key, fit_key, set_key = jax.random.split(KEY, 3)
    logits, y = (np.asarray(v) for v in NoisyScores(30, noise=1.0).sample(row_key, 600))
    aps = APS(tune_fraction=1 / 3).fit(fit_key, logits[300:], y[300:])
    assert found["aps"]["size"] == pytest.approx(aps.predict_size(set_key, logits[:300]).mean())


def test_noise_keeps_the_draws_and_changes_the_noise_alone():
    quiet, loud = NoisyScores(20).sample(KEY, 2000), NoisyScores(20, noise=2.0).sample(KEY, 2000)
    np.testing.assert_array_equal(quiet[1], loud[1])
    assert float(jnp.std(loud[0] - quiet[0])) == pytest.approx(2.0, rel=0.02)
    p = np.asarray(jax.nn.softmax(quiet[0]))
    top = p.max(axis=1)
    right = np.asarray(quiet[1]) == p.argmax(axis=1)
    assert abs((right - top).mean()) < 4 * np.sqrt((top * (1 - top)).mean() / 2000)  # the labels follow softmax(z)


def test_numbers_are_digits_in_a_row_and_their_probabilities_products():
    one, two, three = numbers_of_one_to_three("digits", train=100, steps=60)
    for problem, number in ((one, 10), (three, 1000)):
        assert jax.eval_shape(lambda key, problem=problem: problem.sample(key, 5), KEY)[0].shape == (5, number)
    logits, y = two.sample(KEY, 300)
    np.testing.assert_allclose(np.exp(logits).sum(axis=1), 1, atol=1e-4)
    joint = np.exp(np.asarray(logits)).reshape(300, 10, 10)
    np.testing.assert_allclose(joint, joint.sum(2)[:, :, None] * joint.sum(1)[:, None, :], atol=1e-4)
    right = [(joint.sum(2).argmax(1) == y // 10).mean(), (joint.sum(1).argmax(1) == y % 10).mean()]
    assert min(right) > 0.75


def test_own_logits_are_divided_in_the_same_proportions():
    table = ScoreTable(np.random.default_rng(0).normal(size=(400, 12)), np.arange(400) % 12)
    logits, y = table.sample(KEY, 10_000)
    assert len(np.unique(np.asarray(logits)[:, 0])) == 400
    np.testing.assert_array_equal(np.bincount(y), np.bincount(np.arange(400) % 12))
    with pytest.raises(ValueError, match=r"ScoreTable.labels must be one for each row"):
        ScoreTable(np.zeros((3, 2)), [0, 1])
    found = trials.judged(KEY, arm("aps"), table, SCALE)
    assert np.isfinite(list(found.values())).all()


def test_the_digits_need_room():
    with pytest.raises(ValueError, match=r"DigitNumbers.train must be in \[10, 1797\); got 5"):
        DigitNumbers("digits", train=5)


@pytest.mark.slow  # tests/test_form.py sees that its imports are there
def test_the_example_covers_and_its_problem_runs():
    module = loaded(EXAMPLE)
    sets, y = module.main()
    assert coverage(sets, y) > 0.9
    found = trials.sets(KEY, arm("lac"), module.scores(), Settings(tune=500, calibrate=1000, test=3000))
    assert abs(float(found["coverage"]) - 0.9) < 0.05


def test_mapie_gives_the_same_sets():
    """From the same probabilities, threshold and u (MAPIE's is 1 − u)."""
    pytest.importorskip("mapie")
    p, y = speed.rows(1200, 20)
    theirs = speed.their_classifier("aps", 20).conformalize(p[:600], y[:600])
    made = theirs._mapie_classifier.conformity_score_function_
    made.random_state = 0
    sets = theirs.predict_set(p[600:], {"include_last_label": "randomized"})[1][:, :, 0]
    from laureate.uncertainty import rank_all, raps_score, set_of_size

    u = 1 - np.random.RandomState(0).uniform(size=(600, 1))
    size = np.sum(raps_score(rank_all(p[600:]), u, 0, 0.0) <= made.quantiles_[0], axis=1)
    differ = set_of_size(p[600:], size) != sets
    assert p[600:][differ].max(initial=0.0) < 1e-7  # MAPIE takes labels that are within 1e-8 of the last one as well
    assert differ.sum() <= 2


def test_our_side_of_the_benchmark_covers():
    for score in ("aps", "raps"):
        sets = speed.our_side(score, 20, 400).run()
        assert abs(coverage(sets, speed.rows(800, 20)[1][400:]) - 0.9) < 0.06
