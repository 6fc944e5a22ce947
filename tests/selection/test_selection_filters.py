"""The filters against brute force, and the false discovery rate of null statistics by simulation."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.selection import e_values, knockoff_filter, select_by_e_values, unattainable


def brute_force(w, q, offset):
    """Of every row the least t > 0 among |W_j| that passes, by counting for each."""
    t = np.abs(w)[:, :, None]
    at_most, at_least = np.sum(w[:, None] <= -t, axis=2), np.sum(w[:, None] >= t, axis=2)
    passes = (t[..., 0] > 0) & ((offset + at_most) / np.maximum(1, at_least) <= np.float32(q))
    return np.min(np.where(passes, t[..., 0], np.inf), axis=1)


def test_the_threshold_by_brute_force():
    """O4, on 10,000 draws with ties and zeros, with what follows; monotone in q, and offset 0 never stricter than 1."""
    generator = np.random.default_rng(0)
    w = np.round(generator.normal(0.5, 1.0, size=(10_000, 12)), 1).astype(np.float32)
    plus = jax.jit(jax.vmap(lambda w, q: (knockoff_filter(w, q), e_values(w, q)), (0, None)))
    plain = jax.jit(jax.vmap(lambda w, q: (knockoff_filter(w, q, 0), None), (0, None)))
    thresholds = {}
    for q, offset in ((0.2, 1), (0.5, 1), (0.2, 0)):
        found, e = jax.tree.map(np.asarray, (plus if offset else plain)(w, q))
        threshold = brute_force(w, q, offset)
        np.testing.assert_array_equal(found.threshold, threshold)
        # A W_j of just τ is selected, and one of just -τ counts against it.
        selected, against = w >= threshold[:, None], np.sum(w <= -threshold[:, None], axis=1)
        assert (w == -threshold[:, None]).any()
        np.testing.assert_array_equal(found.selected, selected)
        share = np.where(np.isinf(threshold), 0, (offset + against) / np.maximum(1, selected.sum(1)))
        np.testing.assert_allclose(found.estimate, share, rtol=1e-6)
        if offset:
            np.testing.assert_allclose(e, 12 * selected / (1 + against[:, None]), rtol=1e-6)
        thresholds[q, offset] = threshold
    assert (thresholds[0.5, 1] <= thresholds[0.2, 1]).all()
    assert (thresholds[0.2, 0] <= thresholds[0.2, 1]).all()


@pytest.mark.slow  # test_the_threshold_by_brute_force pins every number of the filter
def test_null_statistics_of_random_sign_keep_the_rate():
    """O5. Twenty signals among 100, nulls symmetric: mean FDP <= q over 10,000 draws; with offset 0 it is more."""
    generator, q = np.random.default_rng(1), 0.1
    magnitudes = np.abs(generator.normal(size=(10_000, 100)))
    signs = np.where(generator.uniform(size=(10_000, 100)) < 0.5, -1, 1)
    w = np.where(np.arange(100) < 20, magnitudes + 1.5, magnitudes * signs).astype(np.float32)

    def proportion(offset):
        selected = np.asarray(jax.jit(jax.vmap(lambda v: knockoff_filter(v, q, offset).selected))(w))
        return selected[:, 20:].sum(1) / np.maximum(1, selected.sum(1)), selected

    plus, selected = proportion(1)
    assert plus.mean() <= q + 3 * plus.std() / 100
    assert selected[:, :20].mean() > 0.2  # not by selecting nothing
    assert proportion(0)[0].mean() > plus.mean()
    nulls = w[:, 20:] * signs[:, :80]
    anything = np.asarray(jax.jit(jax.vmap(lambda v: knockoff_filter(v, q).selected.any()))(nulls))
    assert anything.mean() <= q + 3 * 0.3 / 100


def test_permuting_variables_permutes_the_selection():
    """O13."""
    w = np.random.default_rng(2).normal(0.8, 1, 40).astype(np.float32)
    order = np.random.default_rng(3).permutation(40)
    first, second = knockoff_filter(w, 0.3), knockoff_filter(w[order], 0.3)
    assert first.selected.any()
    np.testing.assert_array_equal(np.asarray(first.selected)[order], second.selected)
    assert float(first.estimate) <= 0.3
    np.testing.assert_array_equal(first.selected, w >= float(first.threshold))
    assert (w <= -float(first.threshold)).any()  # what is large and negative is not selected


def test_nothing_is_selected_of_zeros_and_of_too_few():
    zero = knockoff_filter(jnp.zeros(10), 0.5)
    assert not zero.selected.any()
    assert np.isinf(zero.threshold)
    assert not knockoff_filter(jnp.arange(0.0, 10.0), 0.1).selected.any()  # nine positives
    assert knockoff_filter(jnp.arange(1.0, 11.0), 0.1).selected.all()  # ten
    assert unattainable(10, 0.1) == ""
    assert "at least 20" in unattainable(19, 0.05)
    assert unattainable(1, 0.1, offset=0) == ""


def test_what_is_called_unattainable_is_what_the_filter_cannot_select_at_best():
    """At best all W are positive: so many variables are enough at q = 1/n as the filter selects, and n - 1 never."""
    assert knockoff_filter(jnp.arange(1.0, 26.0), 1 / 25).selected.all()
    for n in range(2, 50):
        for q in (1 / n, np.nextafter(1 / n, 0), 0.9 / n, 1.1 / n):
            for p, draws in itertools.product((n - 1, n), (1, 2, 5)):
                part = 1 if draws == 1 else 2  # of several draws each is filtered at q/2
                told = unattainable(p, q, 1, draws)
                assert (told == "") == (1 / p <= q / part), (p, q, draws)
                if not told:
                    continue
                assert told.startswith(f"q = {q:g} takes at least")
                assert ("No q below 1" in told) == (p <= part)
                if p > part:  # whoever does as told can select something, and a thousandth less is too little
                    enough = float(told.rpartition("Raise q to ")[2].split()[0])
                    assert enough < 1
                    assert unattainable(p, enough, 1, draws) == ""
                    assert unattainable(p, enough - 0.001, 1, draws) != "" or q > enough - 0.001


def test_e_values_of_one_draw_give_the_filters_list():
    """Ren & Barber: with one draw and the same q, e-BH selects what knockoff+ does."""
    w = np.random.default_rng(4).normal(0.6, 1, (50, 30)).astype(np.float32)
    both = jax.jit(jax.vmap(lambda w: (select_by_e_values(e_values(w, 0.3), 0.3), knockoff_filter(w, 0.3).selected)))
    found, expected = both(w)
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(expected).any()


def test_e_values_by_hand():
    """τ = 1: (1 + #{W <= -1}) / #{W >= 1} = 2/5 <= 0.5, so e = 6 / 2 for the five that reach it."""
    assert e_values(jnp.array([5.0, 4.0, 3.0, 2.0, -1.5, 1.0]), 0.5).tolist() == [3.0, 3.0, 3.0, 3.0, 0.0, 3.0]


def test_e_values_of_nulls_sum_to_p_at_most_on_average():
    w = np.random.default_rng(5).normal(size=(20_000, 20)).astype(np.float32)
    total = np.asarray(jax.jit(jax.vmap(lambda v: e_values(v, 0.3).sum()))(w))
    assert total.mean() <= 20 + 3 * total.std() / np.sqrt(len(w))
    assert total.mean() > 5  # it bounds something


def test_e_bh_by_hand():
    assert select_by_e_values(jnp.array([20.0, 9.9, 0.0]), 0.15).tolist() == [True, False, False]
    assert select_by_e_values(jnp.array([20.0, 10.0, 0.0]), 0.15).tolist() == [True, True, False]
    assert not select_by_e_values(jnp.zeros(3), 0.5).any()


@pytest.mark.parametrize("q", [0.0, 1.0, -1])
def test_q_is_a_share(q):
    with pytest.raises(ValueError, match=r"knockoff_threshold.q must be in \(0, 1\); got"):
        knockoff_filter(jnp.ones(3), q)


def test_nothing_is_selected_where_a_statistic_is_nan():
    w = jnp.arange(1.0, 13.0).at[3].set(jnp.nan)
    found = jax.jit(lambda w: knockoff_filter(w, 0.2))(w)
    assert not found.selected.any()
    assert np.isinf(found.threshold)
    assert not e_values(w, 0.2).any()
