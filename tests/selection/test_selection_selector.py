"""KnockoffSelector: scikit-learn's contract, refusal, derandomisation, discrete columns, and bad input."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import fisher_exact
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from laureate.selection import (
    GaussianKnockoffs,
    InvalidKnockoffsError,
    InvalidKnockoffWarning,
    KnockoffGAN,
    KnockoffSelector,
    MixtureKnockoffs,
    RandomForestDifference,
    RidgeDifference,
    SecondOrderKnockoffs,
    blind_list,
    check_antisymmetry,
    score_blind_list,
    validity_report,
)
from laureate.selection.filters import e_values, knockoff_filter, select_by_e_values
from laureate.testing import KeyRecorder

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 20))
Y = X[:, :10].sum(1) + GENERATOR.normal(size=300)
KEY = jax.random.key(0)


@pytest.mark.slow
def test_it_keeps_scikit_learns_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(KnockoffSelector(random_state=0))


class Rows:
    """A user's own sampler: rows in another order, which are no knockoffs of dependent variables."""

    def fit(self, key, x):
        return self

    def sample(self, key, x):
        return jax.random.permutation(key, x)


class Copies:
    def fit(self, key, x):
        return self

    def sample(self, key, x):
        return x


class Fixed:
    """A sampler that compiles nothing: independent normal columns."""

    def fit(self, key, x):
        return self

    def sample(self, key, x):
        return np.random.default_rng(1).normal(size=x.shape)


class Holed(Fixed):
    """Of its numbers one is not finite."""

    def sample(self, key, x):
        return np.where(np.arange(x.size).reshape(x.shape) == 7, np.nan, super().sample(key, x))


class Seen(Fixed):
    """Remembers the rows that it was fitted to."""

    def fit(self, key, x):
        self.rows = np.asarray(x)
        return self


@pytest.mark.slow
def test_it_selects_in_a_pipeline_and_clones():
    pipeline = make_pipeline(StandardScaler(), KnockoffSelector(q=0.2, random_state=0)).fit(X, Y)
    assert pipeline.transform(X).shape == (300, 10)
    selector = clone(KnockoffSelector(GaussianKnockoffs(np.zeros(20), np.eye(20)), q=0.2, random_state=1))
    assert isinstance(selector, KnockoffSelector)
    selector.fit(X, Y)
    assert selector.get_support()[:10].all()
    np.testing.assert_array_equal(selector.support_, knockoff_filter(selector.statistics_, 0.2).selected)
    assert "of 20 variables" in selector.explanation_
    names = [f"v{i}" for i in range(20)]
    assert selector.get_feature_names_out(names)[0] == "v0"
    labels = np.where(Y > 0, "ill", "well")
    selector = KnockoffSelector(Fixed(), q=0.3, validation_fraction=0, random_state=0).fit(X, labels)
    assert selector.get_support()[:10].sum() >= 5


class Drawn(Fixed):
    """Independent normal columns, others for another key."""

    def sample(self, key, x):
        return np.random.default_rng(np.asarray(jax.random.key_data(key))).normal(size=x.shape)


def test_several_draws_are_averaged_as_e_values(monkeypatch):
    """By hand: e = p 1{W >= τ(q/2)} / (1 + #{W <= -τ(q/2)}) of every draw, and e-BH of their mean at q."""
    seen = []
    for function in (e_values, select_by_e_values):  # each as one program
        monkeypatch.setattr(f"laureate.selection.selector.{function.__name__}", jax.jit(function))

    def products(key, x, knockoff, y):
        w = np.abs(np.asarray(x).T @ np.asarray(y)) - np.abs(np.asarray(knockoff).T @ np.asarray(y))
        seen.append(np.round(w, -1))  # with ties
        return seen[-1] if len(w) == 20 else w

    selector = KnockoffSelector(Drawn(), products, q=0.5, num_draws=4, validation_fraction=0, random_state=0).fit(X, Y)
    ws = np.array(seen[-4:])
    assert len({w.tobytes() for w in ws}) == 4  # every draw has its own key
    each = []
    for w in ws:
        passing = [t for t in np.abs(w) if t > 0 and (1 + np.sum(w <= -t)) / max(1, np.sum(w >= t)) <= 0.25]
        each.append(20 * (w >= min(passing)) / (1 + np.sum(w <= -min(passing))))
    e = np.mean(each, axis=0)
    np.testing.assert_allclose(selector.statistics_, e, rtol=1e-6)
    largest = max((k for k in range(1, 21) if np.sort(e)[-k] >= 20 / (0.5 * k)), default=0)
    assert 0 < largest < 20
    np.testing.assert_array_equal(selector.support_, e >= np.sort(e)[-largest])
    assert selector.threshold_ == pytest.approx(e[selector.support_].min())
    assert len(set(e[selector.support_])) > 1
    # At q/2 twenty variables are too few, though not at q.
    with pytest.warns(UserWarning, match="q = 0.08 takes at least 25 .* 2 draws, .* 20. Raise q to 0.1 or more, or"):
        KnockoffSelector(Drawn(), products, q=0.08, num_draws=2, validation_fraction=0, random_state=0).fit(X, Y)


def test_knockoffs_that_fail_are_refused_with_a_remedy():
    root = np.linalg.cholesky(0.7 ** np.abs(np.subtract.outer(np.arange(20), np.arange(20))))
    dependent = X @ root.T
    with pytest.raises(InvalidKnockoffsError, match=r"No selection: .*held-out accuracy 0\.\d+.*allow_invalid=True"):
        KnockoffSelector(Rows(), q=0.2, random_state=0).fit(dependent, Y)
    with pytest.warns(InvalidKnockoffWarning, match=r"Selected all the same.*accuracy"):
        selector = KnockoffSelector(Rows(), q=0.2, allow_invalid=True, random_state=0).fit(dependent, Y)
    assert float(selector.validity_.p_value) < 0.01
    assert KnockoffSelector(q=0.2, random_state=0).fit(dependent, Y).validity_.num_rows == 45


def test_copies_select_nothing_and_it_says_why():
    """O9."""
    selector = KnockoffSelector(Copies(), random_state=0).fit(X, Y)
    assert not selector.get_support().any()
    assert "every statistic is 0" in selector.explanation_


@pytest.mark.slow
def test_permuting_variables_permutes_the_selection():
    """O13, with knockoffs that are drawn before."""
    knockoff = GENERATOR.normal(size=X.shape)
    order = GENERATOR.permutation(20)
    first = RidgeDifference()(KEY, X, knockoff, Y)
    second = RidgeDifference()(KEY, X[:, order], knockoff[:, order], Y)
    np.testing.assert_allclose(np.asarray(first)[order], second, atol=1e-5)


@pytest.mark.slow
def test_discrete_columns_stay_discrete():
    table = X.copy()
    table[:, 3] = table[:, 3] > 0
    with pytest.warns(UserWarning, match=r"columns \[3\] hold few whole numbers.*discrete='auto'"):
        KnockoffSelector(Fixed(), q=0.2, validation_fraction=0, random_state=0).fit(table, Y)
    selector = KnockoffSelector(q=0.2, discrete="auto", validation_fraction=0, random_state=0).fit(table, Y)
    drawn = np.asarray(selector.sampler_.sample(KEY, table))
    assert set(drawn[:, 3]) == {0.0, 1.0}
    assert len(set(drawn[:, 4])) > 100


def spoiled(column, values):
    table = X.copy()
    table[:, column] = values
    return table


BAD = [
    (lambda: SecondOrderKnockoffs().fit(KEY, X, Y), TypeError, "knockoffs must not see y"),
    (lambda: KnockoffGAN().fit(KEY, X, Y), TypeError, "KnockoffGAN.fit takes the inputs alone"),
    (lambda: MixtureKnockoffs().fit(KEY, X, y=Y), TypeError, "Give y to the statistic"),
    (lambda: KnockoffSelector().fit(spoiled(2, np.nan), Y), ValueError, "finite; got NaN in column 2. Impute"),
    (lambda: SecondOrderKnockoffs().fit(KEY, spoiled(7, np.inf)), ValueError, "got inf in column 7"),
    (lambda: KnockoffSelector().fit(spoiled(5, 3.0), Y), ValueError, "got 3.0 throughout column 5. Leave it out"),
    (lambda: KnockoffSelector().fit(spoiled(5, X[:, 1]), Y), ValueError, "got column 5 equal to column 1"),
    (lambda: SecondOrderKnockoffs().fit(KEY, X[:15]), ValueError, "got \\(15, 20\\).*shrinkage='ledoit-wolf'"),
    (lambda: SecondOrderKnockoffs(shrinkage=2.0), ValueError, "shrinkage must be None, 'ledoit-wolf' or in"),
    (lambda: SecondOrderKnockoffs("best"), ValueError, "method must be one of"),
    (lambda: GaussianKnockoffs(np.zeros(2), np.ones((2, 2))), ValueError, "positive definite; got .*leave out columns"),
    (lambda: GaussianKnockoffs(np.zeros(3), np.eye(2)), ValueError, r"covariance must be of shape \(3, 3\)"),
    (lambda: KnockoffSelector(q=0.0).fit(X, Y), ValueError, r"KnockoffSelector.q must be in \(0, 1\); got 0.0"),
    (lambda: KnockoffSelector(q=1).fit(X, Y), ValueError, r"in \(0, 1\); got 1"),
    (lambda: KnockoffSelector(statistic="best").fit(X, Y), ValueError, "statistic must be one of lasso"),
    (lambda: KnockoffSelector(statistic=lambda k, x, o, y: x.T @ y).fit(X, Y), ValueError, "must be antisymmetric"),
    (lambda: KnockoffSelector(sampler="gan").fit(X, Y), ValueError, "sampler must be an object with fit"),
    (lambda: KnockoffSelector(Holed()).fit(X, Y), ValueError, r"finite knockoffs of X's shape \(300, 20\)"),
    (lambda: KnockoffSelector(offset=2).fit(X, Y), ValueError, "offset must be 0 or 1; got 2"),
    (lambda: KnockoffSelector(num_draws=0).fit(X, Y), ValueError, "draws must be >= 1; got 0"),
    (lambda: KnockoffSelector(discrete="yes").fit(X, Y), ValueError, "discrete must be None, 'auto' or columns"),
    (lambda: MixtureKnockoffs(num_components=0), ValueError, "num_components must be >= 1; got 0"),
    (lambda: KnockoffGAN(power=-1.0), ValueError, "KnockoffGAN.power must be >= 0; got -1.0"),
    (lambda: KnockoffGAN(learning_rate=0.0), ValueError, "learning_rate must be > 0"),
    (lambda: KnockoffGAN(num_steps=5), ValueError, "num_steps must be a multiple of num_checkpoints = 10; got 5"),
    (lambda: validity_report(X, X[:, :3]), ValueError, r"X_knockoff must be of X's shape \(300, 20\); got"),
    (lambda: validity_report(X[0], X[0]), ValueError, r"X must be a matrix \[n, p\]"),
    (lambda: blind_list([False, False], ["a", "b"], KEY), ValueError, "at least one variable; got 0"),
    (lambda: blind_list([True], ["a", "b"], KEY), ValueError, "one a variable, 1; got 2"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_input_is_refused_with_field_rule_value_and_remedy(case):
    act, error, message = BAD[case]
    with pytest.raises(error, match=message):
        act()


def test_what_is_odd_is_warned_of():
    with pytest.warns(UserWarning, match="no selection is possible: q = 0.04 takes at least 25.*Raise q to 0.05"):
        selector = KnockoffSelector(q=0.04, random_state=0).fit(X, Y)
    assert not selector.get_support().any()
    with pytest.warns(UserWarning, match="standard deviations of the columns differ by a factor of"):
        KnockoffSelector(q=0.2, random_state=0).fit(X * np.where(np.arange(20) == 0, 1e4, 1.0), Y)
    gan = KnockoffGAN(num_steps=1, batch=4, num_checkpoints=1)
    with pytest.warns(UserWarning, match="12 rows are fewer than 5 for each of 3 columns"):
        eqx.filter_eval_shape(lambda key: gan.fit(key, X[:12, :3]), KEY)


def test_no_key_is_used_twice():
    """Rows dealt out, sampler, two draws of it, validity, the trial of a statistic; that trial itself; a blind list."""

    class Independent:
        def fit(self, key, x, y=None):
            jax.random.uniform(key)
            return self

        def sample(self, key, x):
            return jax.random.normal(key, x.shape)

    def difference(key, x, knockoff, y):
        return jnp.abs(x.T @ y) - jnp.abs(knockoff.T @ y)

    def drawing(key, x, knockoff, y):
        jax.random.gumbel(key)
        return difference(key, x, knockoff, y)

    with KeyRecorder() as recorder:
        more = {"statistic": difference, "num_draws": 2, "validation_fraction": 0.7, "q": 0.5, "random_state": 0}
        KnockoffSelector(sampler=Independent(), **more).fit(X[:60, :4], Y[:60])
        assert not recorder.reused()
        recorder.forget()
        check_antisymmetry(KEY, drawing)
        assert not recorder.reused(shared=3), "one key for the three calls of a statistic"
        recorder.forget()
        blind_list(np.arange(6) < 3, list("abcdef"), KEY)
        assert not recorder.reused()


def test_the_blind_list_hides_and_scores(tmp_path):
    names = [f"v{i}" for i in range(12)]
    selected = np.arange(12) < 4
    path = tmp_path / "list.csv"
    listed = blind_list(selected, names, KEY, path)
    assert len(listed) == 8
    assert set(names[:4]) < set(listed)
    assert listed != sorted(listed)
    text = path.read_text()
    assert "selected" not in text
    with pytest.raises(ValueError, match="yes or no for every variable; got ''"):
        score_blind_list(path, selected, names)
    rows = [f"{name},{'yes' if name in names[:3] else 'no'}" for name in listed]
    path.write_text("variable,relevant\n" + "\n".join(rows) + "\n")
    score = score_blind_list(path, selected, names)
    assert score[:4] == (3, 4, 0, 4)
    assert score.p_value == pytest.approx(4 / 56)  # C(4,3) C(4,0) / C(8,3)
    path.write_text("variable,relevant\nother,yes\n")
    with pytest.raises(ValueError, match="known variables; got 'other'"):
        score_blind_list(path, selected, names)


SPELLED = {
    True: ("yes", "Yes", " YES ", "y", "Y", "1", "true", "TRUE", "x", "X"),
    False: ("no", "No", "NO", "n", " N", "0", "false", "False", "FALSE ", "-"),
}


def test_a_list_that_a_person_filled_in_is_read_as_it_is_meant(tmp_path):
    """In every spelling, with columns beside ours, with a spreadsheet's mark at the start; names may be numbers."""
    selected, names, path = np.arange(12) < 4, list(range(100, 112)), tmp_path / "list.csv"
    listed = blind_list(selected, names, KEY, path)
    assert {"100", "101", "102", "103"} < set(listed)
    others = [name for name in listed if int(name) >= 104]
    for number, (yes, no) in enumerate(zip(SPELLED[True], SPELLED[False], strict=True)):
        relevant = {*listed[:3], *others[: number % 5]}
        counts = [sum(name in relevant for name in group) for group in (set(listed) - set(others), others)]
        rows = [f'{name},"so, so",{yes if name in relevant else no}' for name in listed]
        encoding = "utf-8-sig" if number % 2 else "utf-8"
        path.write_text("variable,remark,relevant\n" + "\n".join(rows) + "\n", encoding=encoding)
        score = score_blind_list(path, selected, names)
        assert score[:4] == (counts[0], 4, counts[1], 4), (yes, no)
        table = [[counts[0], 4 - counts[0]], [counts[1], 4 - counts[1]]]
        exact: Any = fisher_exact(table, "greater")
        assert score.p_value == pytest.approx(exact.pvalue)
    path.write_text(path.read_text(encoding="utf-8-sig") + f"{listed[0]},,yes\n")
    with pytest.raises(ValueError, match=f"every variable once; got '{listed[0]}' again"):
        score_blind_list(path, selected, names)


def test_statistics_under_jit_and_in_double_precision():
    with jax.enable_x64(True):
        knockoff = np.random.default_rng(1).normal(size=X.shape)
        w = jax.jit(RidgeDifference())(KEY, X, knockoff, Y)
        assert w.dtype == jnp.float64
        draw = lambda key: SecondOrderKnockoffs().fit(key, X).sample(key, X)  # noqa: E731
        assert jax.eval_shape(draw, KEY).dtype == jnp.float64


def test_statistics_must_be_finite_and_one_a_variable():
    def broken(key, x, knockoff, y):
        w = np.abs(x.T @ y) - np.abs(knockoff.T @ y)
        return np.where(np.arange(len(w)) == 7, np.nan, w)  # the check's own table has five variables

    with pytest.raises(ValueError, match=r"statistic must return finite W of shape \(20,\); got NaN or inf. Return 0"):
        KnockoffSelector(Fixed(), broken, q=0.2, validation_fraction=0).fit(X, Y)


def test_sampler_and_statistic_get_their_rows_and_the_tables_own_precision():
    """The sampler those that are not tested, 70 %, each once; the statistic all, as many bits as they came with."""
    seen = []

    def products(key, x, knockoff, y):
        seen.append((x, knockoff.dtype))
        return np.abs(np.asarray(x).T @ np.asarray(y)) - np.abs(np.asarray(knockoff).T @ np.asarray(y))

    for dtype in (np.float64, np.float32):
        sampler, table = Seen(), X.astype(dtype)
        selector = KnockoffSelector(sampler, products, q=0.2, random_state=0).fit(table, Y)
        assert sampler.rows.shape == (210, 20)
        fitted_to = np.isin(np.float32(X[:, 0]), sampler.rows[:, 0])
        assert fitted_to.sum() == 210
        assert selector.validity_.num_rows == 45
        np.testing.assert_array_equal(seen[-1][0], table)
        assert (seen[-1][0].dtype, seen[-1][1]) == (dtype, dtype)


def test_a_statistic_for_classes_is_checked_on_classes():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    for y in (labels > 0, labels):
        statistic = RandomForestDifference(num_trees=5, classify=True)
        selector = KnockoffSelector(Fixed(), statistic, q=0.2, validation_fraction=0, random_state=0).fit(X, y)
        assert np.argmax(selector.statistics_) == 0


def test_discrete_columns_as_a_mask_or_as_indices_and_nothing_else():
    mask = np.arange(20) == 3
    for given in (mask, [3], np.array([3])):
        assert KnockoffSelector(discrete=given)._sampler(X).columns == (3,)
    for given in (mask[:5], mask.astype(int), [25], [-1], [1.5], ["v3"]):
        with pytest.raises(ValueError, match=r"discrete must be a mask of 20 bools, or distinct ind"):
            KnockoffSelector(discrete=given).fit(X, Y)


def test_too_few_rows_for_the_validity_test_are_warned_of():
    with pytest.warns(InvalidKnockoffWarning, match="untested: too few rows, for 39 would be held out"):
        selector = KnockoffSelector(Fixed(), q=0.2, random_state=0).fit(X[:133], Y[:133])
    assert selector.validity_ is None
    assert "too few rows to test" in selector.explanation_
