"""The selector with its options by pairs, each row beside a second writing of all that it does: nothing is trained."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.utils import check_random_state

from by_pairs import by_pairs
from laureate.selection import InvalidKnockoffsError, KnockoffSelector, ValidityReport, filters, selector

N, P = 100, 12
GENERATOR = np.random.default_rng(3)
X = GENERATOR.normal(size=(N, P))
X[:, 3] = X[:, 3] > 0
Y = X[:, :6] @ np.array([3, 2, -2, 2, 1, 1.0]) + GENERATOR.normal(size=N)


def bits(key):
    return np.asarray(jax.random.key_data(key)).tolist()


def noise(key, size):
    return np.random.default_rng(bits(key)).normal(size=size)


class Noise:
    """A sampler of NumPy: what it draws depends on the rows it was fitted to, the key and the table."""

    key: Any
    rows: Any

    def fit(self, key, x):
        fitted = Noise()
        fitted.key, fitted.rows = bits(key), np.asarray(x)
        return fitted

    def sample(self, key, x):
        x = np.asarray(x)
        return 0.1 * x + noise(key, x.shape) + self.rows.mean(0)


class Mapped:
    """In the place of the copula's sampler: that of other columns is moved."""

    key: Any
    rows: Any

    def __init__(self, sampler, columns):
        self.sampler, self.columns = sampler, columns

    def fit(self, key, x):
        fitted = Mapped(self.sampler.fit(key, x), self.columns)
        fitted.key, fitted.rows = fitted.sampler.key, fitted.sampler.rows
        return fitted

    def sample(self, key, x):
        return self.sampler.sample(key, x) + np.isin(np.arange(P), self.columns)


def products(key, x, knockoff, y):
    """|xᵀy| − |x̃ᵀy|, which no draw of the key enters but by a hair that tells which key it was."""
    x, knockoff, y = (np.asarray(one, float) for one in (x, knockoff, y))
    return np.abs(x.T @ y) - np.abs(knockoff.T @ y) + 1e-3 * noise(key, P)


def correlations(key, x, knockoff, y):
    return products(key, np.asarray(x) / np.std(x, axis=0), np.asarray(knockoff) / np.std(knockoff, axis=0), y)


def threshold(w, q, offset):
    passing = [t for t in np.abs(w) if t > 0 and (offset + np.sum(w <= -t)) / max(1, np.sum(w >= t)) <= q]
    return min(passing, default=np.inf)


def selected(ws, q, offset):
    """The statistics, the threshold and the list, of one draw or of several."""
    if len(ws) == 1:
        t = threshold(ws[0], q, offset)
        return ws[0], t, ws[0] >= t
    each = []
    for w in ws:
        t = threshold(w, q / 2, 1)
        each.append(P * (w >= t) / (1 + np.sum(w <= -t)))
    e = np.mean(each, axis=0)
    count = max((k for k in range(1, P + 1) if k * np.sort(e)[-k] >= P / q * (1 - 1e-9)), default=0)
    chosen = e >= np.sort(e)[-count] if count else np.zeros(P, bool)
    return e, min(e[chosen], default=np.inf), chosen


OPTIONS: dict[str, tuple] = {
    "statistic": ("lasso", "ridge"),
    "q": (0.3, 0.6),
    "offset": (1, 0),
    "num_draws": (1, 2, 3),
    "discrete": (None, "auto", [5, 3], np.arange(P) == 3, ()),
    "validation_fraction": (0.0, 0.3, 0.6),
    "validity_level": (0.0, 0.01, 0.5),
    "allow_invalid": (False, True),
    "random_state": (0, 7, "state"),
    "dtype": (np.float64, np.float32),
}


def test_a_selection_with_options_by_pairs_is_that_of_a_second_writing(monkeypatch):
    judged: list[Any] = []

    def judge(x, knockoff, key):
        judged.append((x, knockoff, bits(key)))
        shares: Any = [*map(jnp.float32, (0.6, 0.1, 0, 0, 0)), np.zeros(P)]
        return ValidityReport(*shares, num_rows=len(x))

    monkeypatch.setattr(selector, "_validity", judge)
    monkeypatch.setattr(selector, "CopulaKnockoffs", Mapped)
    monkeypatch.setattr(selector, "STATISTICS", {"lasso": lambda: products, "ridge": lambda: correlations})
    for name, static in (("knockoff_filter", (2,)), ("e_values", ()), ("select_by_e_values", ())):
        monkeypatch.setattr(selector, name, jax.jit(getattr(filters, name), static_argnums=static))
    lists, refused = set(), 0
    for row in by_pairs(OPTIONS, lambda row: row["offset"] == 1 or row["num_draws"] == 1):
        x = X.astype(row["dtype"])
        settings: dict[str, Any] = {name: value for name, value in row.items() if name != "dtype"}
        state = lambda row=row: np.random.RandomState(5) if row["random_state"] == "state" else row["random_state"]  # noqa: E731
        made = KnockoffSelector(Noise(), **(settings | {"random_state": state()}))
        kept = int(row["validation_fraction"] * N)
        held = kept if kept >= 40 else 0
        invalid = held > 0 and row["validity_level"] > 0.1
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if invalid and not row["allow_invalid"]:
                with pytest.raises(InvalidKnockoffsError, match="allow_invalid=True to select all the same"):
                    made.fit(x, Y)
                refused += 1
                continue
            made.fit(x, Y)
        # What it warned of.
        expected = ["hold few whole numbers"] if row["discrete"] is None else []
        expected += ["Selected all the same"] if invalid else []
        expected += ["the knockoffs are untested"] if row["validation_fraction"] > 0 and not held else []
        words = [str(one.message) for one in told]
        assert len(words) == len(expected), (words, row)
        assert all(any(word in one for one in words) for word in expected), (words, row)
        # What it did.
        key = jax.random.key(int(check_random_state(state()).randint(2**31 - 1)))
        order_key, fit_key, draw_key, test_key, statistic_key = jax.random.split(key, 5)
        order = np.asarray(jax.random.permutation(order_key, N))
        fitted: Any = made.sampler_
        np.testing.assert_array_equal(fitted.rows, np.float32(X[order[held:]]))
        assert fitted.key == bits(fit_key)
        columns = {"None": None, "[5, 3]": (5, 3), "()": None}.get(str(row["discrete"]), (3,))
        assert getattr(fitted, "columns", None) == columns, row
        keys = jax.random.split(draw_key, row["num_draws"])
        knockoffs = [np.asarray(fitted.sample(k, np.float32(X)), row["dtype"]) for k in keys]
        if held:
            seen, drawn, its_key = judged.pop()
            np.testing.assert_array_equal(seen, x[order[:held]])
            np.testing.assert_array_equal(drawn, knockoffs[0][order[:held]])
            assert its_key == bits(test_key)
            assert made.validity_.num_rows == held
        else:
            assert made.validity_ is None
        statistic = {"lasso": products, "ridge": correlations}[row["statistic"]]
        ws = [np.float32(statistic(statistic_key, x, knockoff, Y)) for knockoff in knockoffs]
        statistics, tau, chosen = selected(ws, row["q"], row["offset"])
        np.testing.assert_allclose(made.statistics_, statistics, rtol=1e-5, err_msg=str(row))
        assert made.threshold_ == pytest.approx(tau, rel=1e-5)
        np.testing.assert_array_equal(made.support_, chosen, err_msg=str(row))
        np.testing.assert_array_equal(made.get_support(), chosen)
        tested = "p = 0.1 on" if held else "too few rows" if row["validation_fraction"] > 0 else "untested"
        assert tested in made.explanation_
        assert f"{chosen.sum()} of {P} variables at q = {row['q']:g}" in made.explanation_ or not chosen.any()
        lists.add(tuple(chosen.tolist()))
    assert len(lists) > 3
    assert refused
    assert len(judged) == refused
