"""What is reported of erasures, rankings and intervals, and units that do not vary; recomputed in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from laureate import interpretation as i

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("end", ["top", "bottom"])
def test_as_many_units_are_erased_as_are_nearest_to_the_fraction(size, end):
    """Halves go to the even number, as NumPy rounds; from either end of the order, none to all."""
    fractions = np.array([0.0, 0.1, 0.25, 0.34, 0.5, 0.6, 0.75, 0.9, 1.0], np.float32)
    order = RNG.permutation(size)
    masks = np.asarray(i.erasure_masks(jnp.asarray(order), fractions, end))
    counts = np.round(fractions * size).astype(int)
    for mask, count in zip(masks, counts, strict=True):
        erased = order[:count] if end == "top" else order[size - count :]
        assert set(np.flatnonzero(mask)) == set(erased.tolist())


H, WEIGHTS = RNG.normal(size=(6, 5)).astype(np.float32), RNG.normal(size=(5, 2)).astype(np.float32)
ORDER, FRACTIONS = np.array([3, 0, 4, 1, 2]), np.array([0.3, 0.0, 0.75, 1.0], np.float32)  # in any order


def metric(h):
    """Two numbers, as a loss of two heads."""
    return ((h @ WEIGHTS) ** 2).mean(0)


@pytest.fixture(scope="module")
def erased():
    measure = lambda change: jnp.mean((change(H) @ jnp.asarray(WEIGHTS)) ** 2, axis=0)  # noqa: E731
    set_to = H.mean(0)

    def every():
        curves = {
            (end, name): i.erase_curve(measure, jnp.asarray(ORDER), FRACTIONS, from_=end, values=values)
            for end in ("top", "bottom")
            for name, values in (("zero", 0.0), ("mean", set_to))
        }
        alone = {
            (name, batch): i.ablation_effects(measure, 5, values=values, batch=batch)
            for name, values in (("zero", 0.0), ("mean", set_to))
            for batch in (1, 2)
        }
        return curves, alone, i.erase_curve(measure, jnp.asarray(ORDER), jnp.asarray(0.3))

    return jax.tree.map(np.asarray, jax.jit(every)())


def test_a_curve_tells_fractions_counts_values_and_the_model_as_it_is(erased):
    for (end, name), curve in erased[0].items():
        np.testing.assert_array_equal(curve.fractions, FRACTIONS)
        assert curve.counts.tolist() == [2, 0, 4, 5]
        np.testing.assert_allclose(curve.intact, metric(H), rtol=1e-5)
        for count, found in zip(curve.counts, curve.values, strict=True):
            units = ORDER[:count] if end == "top" else ORDER[5 - count :]
            h = H.copy()
            h[:, units] = 0 if name == "zero" else H.mean(0)[units]
            np.testing.assert_allclose(found, metric(h), rtol=1e-4, atol=1e-6, err_msg=f"{end} {name} {count}")
    single = erased[2]
    assert (single.fractions.shape, single.counts.tolist(), single.values.shape) == ((1,), [2], (1, 2))


def test_effects_are_those_of_each_unit_alone_whatever_it_is_set_to(erased):
    for (name, batch), found in erased[1].items():
        np.testing.assert_allclose(found.intact, metric(H), rtol=1e-5)
        for unit in range(5):
            h = H.copy()
            h[:, unit] = 0 if name == "zero" else H.mean(0)[unit]
            wanted = metric(h) - metric(H)
            np.testing.assert_allclose(found.effects[unit], wanted, rtol=1e-3, atol=1e-5, err_msg=f"{name} {batch}")


# --- units that do not vary -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 0.1, -1 / 3, 1234.5, 7e-7])
@pytest.mark.parametrize("masked", [False, True])
def test_nothing_is_explained_of_a_unit_that_is_constant_but_for_rounding(constant, masked):
    """Its mean is off by a rounding, and so is every deviation from it: of equal size in every class."""
    condition = RNG.integers(3, size=301)
    other = 1e-3 * np.abs(constant) * RNG.normal(size=301)
    x = np.column_stack([np.full(301, constant), constant + other + 1e-2 * condition * np.abs(constant)])
    mask = RNG.random(301) < 0.7 if masked else None
    found = np.asarray(i.explained_variance(x.astype(np.float32), condition, 3, mask))
    assert found[0] == 0.0
    if constant:
        assert found[1] > 0.9


# --- reports about rankings -------------------------------------------------------------------------------------------


def test_what_is_not_finite_is_told_with_its_model_unit_and_token_whatever_the_chunk():
    """The token's place among all, also in later chunks and beside a mask."""
    arrays = {"one": np.zeros((9, 2), np.float32), "two": np.zeros((9, 3), np.float32)}
    arrays["two"][7, 1] = np.inf
    arrays["two"][5, 2] = np.nan
    mask = np.arange(9) != 5
    for chosen, said in ((None, "unit 2, token 5"), (mask, "unit 1, token 7")):
        for chunk in (4, 100):
            with pytest.raises(ValueError, match=rf"in model 'two', {said}\."):
                i.collect(arrays, chunk=chunk, mask=chosen)


def test_every_way_to_rank_is_its_function_by_name_and_by_place():
    arrays = {name: RNG.normal(size=(90, units)).astype(np.float32) for name, units in (("a", 3), ("b", 2), ("c", 4))}
    arrays["b"][:, 0] = -arrays["c"][:, 2]
    weights, mask = RNG.normal(size=(2, 3)), np.arange(90) % 4 > 0
    _, moments = i.collect(arrays, chunk=17, mask=mask)
    wanted = {
        "max-corr": i.max_corr(moments, 1),
        "min-corr": i.min_corr(moments, 1),
        "linear-regression": i.linear_regression(moments, 1),
        "standard-deviation": i.standard_deviation(moments, 1),
        "output-norm": i.output_norm(jnp.asarray(weights)),
        "random": i.random_order(jax.random.key(3), 2),
    }
    for method, ranking in wanted.items():
        for model in ("b", 1) if method == "max-corr" else ("b",):
            more = {"weights": weights} if method == "output-norm" else {"key": jax.random.key(3)}
            found = i.rank_neurons(arrays, model, method, chunk=17, mask=mask, **more)
            for got, expected in zip(found, ranking, strict=True):
                np.testing.assert_array_equal(got, expected, err_msg=f"{method} {model}")
    first = wanted["max-corr"]
    assert (int(first.partner_model[0]), int(first.partner_unit[0]), int(first.order[0])) == (2, 2, 0)
    for method in ("standard-deviation", "output-norm", "random"):
        assert (np.asarray(wanted[method].partner_model) == -1).all()
        assert (np.asarray(wanted[method].partner_unit) == -1).all()


@pytest.mark.parametrize(("level", "groups"), [(0.95, 3), (0.5, 4), (0.8, 7)])
def test_an_interval_stands_around_the_corrected_score_with_students_width(level, groups):
    """Scores of a ranking of one's own that is no maximum, so that the correction is known: θ = (Σx/n)²."""
    rng = np.random.default_rng(groups)
    parts = [rng.normal(0.3, 1, size=(20, 2)).astype(np.float32) for _ in range(groups)]
    stats = i.RunningMoments((2,))
    states = [stats.update(stats.init(), (part,))[0] for part in parts]
    rule = lambda moments, model: i.ranked(moments.means[model] ** 2)  # noqa: E731
    found = i.score_interval(stats, states, 0, ranking=rule, level=level)
    whole = np.concatenate(parts).mean(0, dtype=np.float64) ** 2
    rests = [np.concatenate(parts[:k] + parts[k + 1 :]).mean(0, dtype=np.float64) ** 2 for k in range(groups)]
    error = np.sqrt((groups - 1) / groups * ((rests - np.mean(rests, axis=0)) ** 2).sum(0))
    corrected = groups * whole - (groups - 1) * np.mean(rests, axis=0)
    assert np.abs(corrected - whole).min() > 1e-4
    width = scipy.stats.t.ppf((1 + level) / 2, groups - 1) * error
    for name, wanted in (("scores", whole), ("corrected", corrected), ("standard_error", error)):
        np.testing.assert_allclose(getattr(found, name), wanted, rtol=1e-3, atol=1e-5, err_msg=name)
    np.testing.assert_allclose((found.low + found.high) / 2, found.corrected, rtol=1e-10)
    np.testing.assert_allclose(found.low, corrected - width, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.high, corrected + width, rtol=1e-3, atol=1e-4)
    assert found.order.tolist() == np.argsort(-whole).tolist()


def test_scores_of_probes_on_tokens_that_lack_a_class_or_are_masked():
    """F1 is 0 where a class is never rightly found, and the majority is that of the tokens that count."""
    probe = i.GaussianProbe(jnp.array([[0.0], [1.0], [5.0]]), jnp.ones((3, 1)), jnp.ones(3) / 3)
    x, labels = np.array([[0.1], [0.9], [1.2], [4.9], [0.2]], np.float32), np.array([0, 0, 1, 1, 9])
    mask = np.array([True, True, True, True, False])
    found = i.score_probe(probe, x, labels, mask)
    assert float(found.accuracy[0]) == 0.5
    np.testing.assert_allclose(found.f1[:, 0], [2 / 3, 0.5, 0.0], rtol=1e-6)
    assert float(found.majority) == 0.5
    assert i.property_units(jnp.array([0.5, 0.9, 0.5, 0.9]), 3).tolist() == [1, 3, 0]


def test_what_a_mask_hides_is_of_no_class_in_any_type_of_label():
    """With 256 classes bytes have no number left for tokens that do not count."""
    x, labels = np.array([[0.1], [0.9], [5.0], [0.3]], np.float32), np.array([0, 1, 7, 0])
    mask = np.array([True, True, False, True])
    explained = jax.jit(lambda labels: i.explained_variance(x, labels, 256, mask))
    inside = x[mask, 0]
    within = sum(((part - part.mean()) ** 2).sum() for part in (inside[[0, 2]], inside[[1]]))
    wanted = 1 - within / ((inside - inside.mean()) ** 2).sum()
    for kind in (np.uint8, np.int8, np.int32):
        np.testing.assert_allclose(explained(labels.astype(kind)), [wanted], rtol=1e-5, err_msg=str(kind))


@pytest.mark.parametrize("wide", [False, True], ids=["single", "double"])
def test_a_projection_is_on_the_span_of_directions_however_long_they_are(wide):
    """Lengths over many decades; one direction is 0, one is another's multiple, and one is left out."""
    rng = np.random.default_rng(2)
    unit = rng.normal(size=(6, 3))
    columns = np.column_stack([unit * [1e-9, 1.0, 1e7], np.zeros(6), -3e-5 * unit[:, 1], rng.normal(size=6)])
    keep = np.array([True, True, True, True, True, False])
    with jax.enable_x64(wide):
        found = np.asarray(i.keep_directions(jnp.asarray(columns), jnp.asarray(keep)))
    wanted = unit @ np.linalg.solve(unit.T @ unit, unit.T)
    np.testing.assert_allclose(found, wanted, atol=1e-10 if wide else 1e-5)
