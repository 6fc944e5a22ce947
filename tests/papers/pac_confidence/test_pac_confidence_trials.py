"""The claims of PAC confidence: the ids promised, trials that measure what they say, and models of one's own."""

from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

from example_files import loaded
from laureate.lab.claim import Settings
from laureate.papers.pac_confidence import speed, trials
from laureate.papers.pac_confidence.about import PAPER
from laureate.problems.two_models import Answers, AnswerTable, FastAndSlow
from laureate.uncertainty import PACConfidence, SafeCascade, clopper_pearson, fit_temperature

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}
EXAMPLE = Path(__file__).parents[3] / "examples" / "own_confidence.py"
KEY = jax.random.key(0)


def arm(experiment, name):
    return EXPERIMENTS[experiment].arm(name).settings


def test_the_ids_are_the_ones_promised():
    assert {"guarantee", "others-miss", "cascade-gap", "cascade-saves"} <= {claim.name for claim in PAPER.claims}


def test_the_intervals_of_an_arm_are_the_estimators():
    generator = np.random.default_rng(0)
    score = generator.uniform(size=400)
    right = generator.uniform(size=400) < score
    for name in ("clopper-pearson", "sidak", "no-union", "wilson", "jeffreys", "wald", "hoeffding"):
        settings = arm("bins", name)
        model = PACConfidence(0.2, bins=4, method=settings.method, levels=settings.levels).fit(score, right)
        counts = model.counts_
        found = trials.intervals(settings, counts.correct, counts.count, 0.2)
        np.testing.assert_allclose(found, (model.lo_, model.hi_))
    point, _ = trials.intervals(arm("bins", "histogram"), np.array([1, 0]), np.array([4, 0]), 0.1)
    assert point.tolist() == [0.25, 0.5]


def test_misses_of_one_bin_are_those_of_enumeration():
    """With one bin all rows are in it, and the trial's share is binomial around the exact miss."""
    scale = Settings(bins=1, draws=4000, delta=0.1)
    rate = np.clip(0.5 + _after_the_masses(KEY, 1).uniform(-0.1, 0.1, 1), 0, 1)[0]
    k = np.arange(301)
    for name, interval in (("clopper-pearson", clopper_pearson), ("wald", plain_wald)):
        lo, hi = interval(k, 300, 0.1)
        exact = stats.binom.pmf(k, 300, rate)[(rate < lo) | (rate > hi)].sum()
        found = trials.bins(KEY, arm("bins", name), None, scale)
        assert abs(found["miss_300"] - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)
        assert found["miss_worst"] == max(found[f"miss_{rows}"] for rows in (300, 1000, 5000))


def _after_the_masses(key, num_bins):
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    generator.dirichlet(np.ones(num_bins))
    return generator


def plain_wald(k, n, delta):
    p = k / n
    half = stats.norm.isf(delta / 2) * np.sqrt(p * (1 - p) / n)
    return p - half, p + half


def pool(n=3000, seed=0):
    """A pool of two classes whose fast model is wrong at known scores."""
    generator = np.random.default_rng(seed)
    score = generator.uniform(0.5, 1, size=n)
    right = generator.uniform(size=n) < score
    logits = np.stack([np.log(score), np.log(1 - score)], axis=1)
    return AnswerTable(logits, np.where(right, 0, 1), generator.uniform(size=n) < 0.97)


def test_scores_are_judged_against_the_pool():
    """Points miss always, [0, 1] never; a calibrated score over-claims nowhere much, a doubled one everywhere."""
    scale = Settings(bins=5, rows=400, draws=60, delta=0.1)
    found = {name: trials.scores(KEY, arm("scores", name), pool(), scale) for name in ("clopper-pearson", "histogram")}
    found |= {name: trials.scores(KEY, arm("scores", name), pool(), scale) for name in ("anything", "raw", "isotonic")}
    assert found["histogram"]["miss"] == found["isotonic"]["miss"] == 1
    assert (found["anything"]["miss"], found["anything"]["width"]) == (0, pytest.approx(1))
    assert found["clopper-pearson"]["miss"] <= 0.2
    assert found["histogram"]["overclaims"] > 0.5 > found["clopper-pearson"]["overclaims"]
    assert found["raw"]["width"] == 0
    sure = AnswerTable(3 * np.asarray(pool().logits), pool().labels, pool().slow)
    assert trials.scores(KEY, arm("scores", "raw"), sure, scale)["overclaims"] == 1
    assert trials.scores(KEY, arm("scores", "temperature"), sure, scale)["overclaims"] < 1


def test_only_bins_with_enough_scores_count_as_too_sure():
    """Twenty rows of 3,000 that are all wrong at 0.55 are no bin of 1 %; forty are one."""
    scale = Settings(bins=10, rows=100, draws=2, delta=0.1)
    for light, expected in ((20, 0), (40, 1)):
        score = np.where(np.arange(3000) < light, 0.55, 0.95)
        labels = np.where((np.arange(3000) < light) | (np.arange(3000) % 50 == 0), 1, 0)
        table = AnswerTable(np.stack([np.log(score), np.log(1 - score)], axis=1), labels, np.ones(3000))
        assert trials.scores(KEY, arm("scores", "raw"), table, scale)["overclaims"] == expected


def test_a_calibrator_sees_the_rows_of_its_draw_alone():
    answers = pool().pool(KEY)
    logits, y, right = (np.asarray(part) for part in (answers.logits, answers.labels, answers.fast))
    score = np.asarray(jax.nn.softmax(answers.logits)).max(axis=1)
    place, rows = np.minimum((score * 5).astype(int), 4), np.random.default_rng(0).integers(0, len(y), 80)
    size = np.bincount(place, minlength=5)
    found = trials._calibrated("temperature", logits, y, score, right, rows, place, size)
    claim = np.asarray(jax.nn.softmax(answers.logits / float(fit_temperature(logits[rows], y[rows])))).max(axis=1)
    for one in (2, 3, 4):
        assert found[one] == pytest.approx(claim[place == one].mean(), rel=1e-4)
    assert abs(float(fit_temperature(logits[rows], y[rows])) - float(fit_temperature(logits, y))) > 0.02


def test_a_drawn_cascade_is_the_estimators():
    """Counts of cells give the threshold that SafeCascade finds on the rows themselves."""
    answers = pool().pool(KEY)
    score = np.asarray(jax.nn.softmax(answers.logits)).max(axis=1)
    fast, slow = np.asarray(answers.fast), np.asarray(answers.slow)
    grid = np.linspace(1, 0, 21)
    exits = score >= grid[:, None]
    worse, better = (np.sum(exits & event, axis=1)[None] for event in (~fast & slow, fast & ~slow))
    for method in ("sequence", "difference", "union", "hoeffding", "empirical"):
        for gap in (0.03, 0.1):
            model = SafeCascade(None, gap, 0.1, method=method, thresholds=grid).fit(score, fast, slow)
            passed = trials.chosen_threshold(worse, better, len(score), 0.1, method, gap)[0]
            assert model.threshold_ == (grid[passed - 1] if passed else np.inf)
    assert trials.chosen_threshold(worse, better, 9, 0.1, "slow", 0.1).tolist() == [0]
    assert trials.chosen_threshold(worse, better, 9, 0.1, "fast", 0.1).tolist() == [21]


def test_cascades_are_judged_against_the_pool():
    scale = Settings(rows=500, draws=300, delta=0.1, grids=(5, 51))
    names = [one.name for one in EXPERIMENTS["cascade"].arms]
    found = {name: trials.cascade(KEY, arm("cascade", name), pool(), scale) for name in names}
    answers = pool().pool(KEY)
    gap = np.asarray(answers.slow).mean() - np.asarray(answers.fast).mean()
    assert found["always-fast"]["excess_2"] == pytest.approx(gap - 0.02, abs=1e-5)
    assert (found["always-fast"]["violation_2"], found["always-fast"]["share_2"]) == (1, 1)
    assert (found["always-slow"]["violation_2"], found["always-slow"]["share_2"]) == (0, 0)
    assert found["empirical"]["violation_2"] > 0.3 > 0.1 >= found["sequence"]["violation_2"]
    assert found["sequence"]["share_2"] >= found["union"]["share_2"]
    best = found["always-slow"]["regret_2"]
    for name in ("sequence", "union", "empirical"):
        assert found[name]["regret_2"] == pytest.approx(best - found[name]["share_2"], abs=1e-5)
    assert found["sequence"]["grid_shares"][1] == pytest.approx(found["sequence"]["share_2"])


def test_the_best_threshold_of_the_pool_is_the_loosest_that_keeps_the_gap():
    answers = pool().pool(KEY)
    score = np.asarray(jax.nn.softmax(answers.logits)).max(axis=1)
    fast, slow = np.asarray(answers.fast), np.asarray(answers.slow)
    shares = [0.0]
    for gamma in np.linspace(0, 1, 51):
        out = score >= gamma
        if np.mean(out & ~fast & slow) - np.mean(out & fast & ~slow) <= 0.02:
            shares.append(out.mean())
    scale = Settings(rows=500, draws=5, delta=0.1, grids=(5,))
    found = trials.cascade(KEY, arm("cascade", "always-slow"), pool(), scale)
    assert found["regret_2"] == pytest.approx(max(shares), abs=1e-5)


def test_shields_are_judged_by_their_law():
    scale = Settings(rows=1000, draws=500, delta=0.1, risk=0.05, unsafe=0.7)
    found = {one.name: trials.shield(KEY, one.settings, None, scale) for one in EXPERIMENTS["shield"].arms}
    assert found["product"]["violation"] <= 0.1
    assert found["direct"]["violation"] <= 0.13
    assert found["empirical"]["violation"] > 0.3
    assert (found["fallback"]["use"], found["fallback"]["risk"]) == (0, 0)
    assert max(found[name]["risk"] for name in ("product", "direct")) < 0.05
    assert found["product"]["use"] > 0.9
    generator = np.random.default_rng(np.asarray(jax.random.key_data(KEY)))
    b, grid = generator.uniform(3, 6), np.linspace(1, 0, 201)
    missed = (1 - grid) ** b
    seen = np.cumsum(generator.multinomial(1000, np.diff(missed, prepend=0.0), size=500), axis=1)
    becomes = generator.binomial(1000, 0.7, size=(500, 1))
    upper = clopper_pearson(becomes, 1000, 0.05, "upper")[1] * clopper_pearson(seen, 1000, 0.05, "upper")[1]
    last = np.argmax(upper > 0.05, axis=1)  # the first that fails; the one before it is taken
    assert found["product"]["risk"] == pytest.approx(np.mean(np.append(0.0, 0.7 * missed)[last]), rel=1e-5)


def test_the_slow_model_is_the_better_one_and_the_pool_was_not_trained_on():
    problem = FastAndSlow("digits", train=200, steps=60)
    answers = problem.pool(KEY)
    assert isinstance(answers, Answers)
    assert answers.logits.shape == (1597, 10)
    fast, slow = float(answers.fast.mean()), float(answers.slow.mean())
    assert 0.6 < fast < slow
    assert slow > 0.9
    np.testing.assert_array_equal(answers.fast, answers.logits.argmax(axis=1) == answers.labels)
    with pytest.raises(ValueError, match=r"FastAndSlow.train must be in \[10, 1797\); got 5000"):
        FastAndSlow(train=5000)
    with pytest.raises(ValueError, match=r"AnswerTable.labels must be one for each row, and slow as well"):
        AnswerTable(np.zeros((3, 2)), [0, 1], [True] * 3)


def test_the_example_keeps_its_gap_and_its_problem_runs():
    module = loaded(EXAMPLE)
    confidence, cascade, accuracy = module.main()
    assert confidence.table().count.sum() == 469
    assert cascade.bound_ <= 0.05
    assert accuracy > 0.85
    scale = Settings(rows=300, draws=20, delta=0.1, grids=(5,))
    found = trials.cascade(KEY, arm("cascade", "sequence"), module.answers(), scale)
    assert np.isfinite(found["share_2"])


def test_both_sides_of_the_benchmark_agree():
    k, n = speed.counts(20)
    known = [stats.binomtest(int(a), int(b)).proportion_ci(0.99, "exact") for a, b in zip(k, n, strict=True)]
    np.testing.assert_allclose(np.stack(speed.our_side(20).run(), axis=1), known, atol=1e-10)
    pytest.importorskip("statsmodels")
    np.testing.assert_allclose(np.stack(speed.our_side(20).run()), speed.their_side(20).run(), atol=1e-10)
