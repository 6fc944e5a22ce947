"""Moments, rankings and SVCCA against closed forms, NumPy and the invariances that they must and must not have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import interpretation as i

RNG = np.random.default_rng(0)
N = 400
SHARED = RNG.normal(size=(N, 3))


def mixed(rng, units=6):
    """Activations that share three factors: mixed, and with noise, means and scales of their own."""
    signal = SHARED @ rng.normal(size=(3, units)) + 0.7 * rng.normal(size=(N, units))
    return (signal + rng.normal(size=units)) * rng.uniform(0.5, 3, size=units)


MODELS = [mixed(np.random.default_rng(seed)) for seed in (1, 2, 3)]


def moments_of(activations):
    stats = i.RunningMoments(tuple(x.shape[1] for x in activations))
    return stats.finish(stats.update(stats.init(), activations)[0])


@jax.jit
def scores(activations):
    """All of the first model's scores; for three models, and for the first two alone."""
    moments = moments_of(activations)
    rules = {"max": i.max_corr, "min": i.min_corr, "regression": i.linear_regression, "std": i.standard_deviation}
    more = {
        "ridge": i.linear_regression(moments.subset((0, 1)), 0, ridge=0.5).scores,
        "worst": i.linear_regression(moments, 0, aggregate="min"),
        "best": i.linear_regression(moments, 0, aggregate="max"),
        "partners": [rule(moments, model)[2:] for rule in (i.max_corr, i.min_corr) for model in (0, 2)],
    }
    return (
        {name: rule(moments, 0).scores for name, rule in rules.items()} | more,
        {name: rule(moments.subset((0, 1)), 0).scores for name, rule in rules.items()},
        i.svcca(moments, 0, 1, variance=1.0),
    )


@pytest.fixture(scope="module")
def plain():
    with jax.enable_x64(True):
        return scores(MODELS)


def changed(*models):
    with jax.enable_x64(True):
        return scores(list(models))


def test_streams_as_numpy_does_and_merges(plain):
    whole = np.asarray(np.corrcoef(np.hstack(MODELS).T))
    with jax.enable_x64(True):
        stats = i.RunningMoments((6, 6, 6))
        update, merge = jax.jit(stats.update), jax.jit(stats.merge)
        states = [update(stats.init(), [x[part : part + 100] for x in MODELS])[0] for part in range(0, N, 100)]
        left = merge(merge(merge(states[0], states[1]), states[2]), states[3])
        right = merge(merge(states[0], states[1]), merge(states[2], states[3]))
        for state in (left, right):
            moments = stats.finish(state)
            for a in range(3):
                for b in range(3):
                    expected = whole[6 * a : 6 * a + 6, 6 * b : 6 * b + 6]
                    np.testing.assert_allclose(moments.correlation(a, b), expected, atol=1e-10)
        np.testing.assert_allclose(moments.deviation(1), MODELS[1].std(0), rtol=1e-10)
        assert int(moments.count) == N


def test_a_large_mean_does_not_swallow_single_precision():
    x = 1000 + RNG.normal(size=(N, 2))
    y = x[:, :1] + 0.1 * RNG.normal(size=(N, 1))
    found = moments_of([x.astype(np.float32), y.astype(np.float32)]).correlation(0, 1)
    np.testing.assert_allclose(found, np.corrcoef(x.T, y.T)[:2, 2:], atol=1e-3)


def test_rankings_are_their_definitions(plain):
    """Straight from the formulas, in NumPy: correlations, and least squares with an intercept."""
    all_three, first_two, _ = plain
    rho = [np.abs(np.corrcoef(MODELS[0].T, other.T)[:6, 6:]).max(1) for other in MODELS[1:]]
    np.testing.assert_allclose(all_three["max"], np.maximum(*rho), atol=1e-9)
    np.testing.assert_allclose(all_three["min"], np.minimum(*rho), atol=1e-9)
    explained = []
    for other in MODELS[1:]:
        design = np.hstack([other, np.ones((N, 1))])
        left = MODELS[0] - design @ np.linalg.lstsq(design, MODELS[0], rcond=None)[0]
        explained.append(1 - left.var(0) / MODELS[0].var(0))
    np.testing.assert_allclose(all_three["regression"], np.mean(explained, axis=0), atol=1e-9)
    np.testing.assert_allclose(first_two["regression"], explained[0], atol=1e-9)


def test_partners_aggregates_and_ridges_are_their_definitions(plain):
    """In NumPy: who agrees most with each unit of the first and of the last model; R² of each of the others."""
    found = iter(plain[0]["partners"])
    for choose in (np.argmax, np.argmin):
        for model, others in ((0, (1, 2)), (2, (0, 1))):
            rho = [np.abs(np.corrcoef(MODELS[model].T, MODELS[other].T)[:6, 6:]) for other in others]
            chosen = choose([one.max(1) for one in rho], axis=0)
            partner_model, partner_unit = next(found)
            np.testing.assert_array_equal(partner_model, np.array(others)[chosen])
            np.testing.assert_array_equal(partner_unit, [rho[c][u].argmax() for u, c in enumerate(chosen)])

    def explained(other, ridge):
        """1 − MSE of the ridge regression of standardised units."""
        target, given = ((x - x.mean(0)) / x.std(0) for x in (MODELS[0], other))
        weights = np.linalg.solve(given.T @ given / N + ridge * np.eye(6), given.T @ target / N)
        return 1 - ((target - given @ weights) ** 2).mean(0)

    each = np.stack([explained(other, 0.0) for other in MODELS[1:]])
    np.testing.assert_allclose(plain[0]["ridge"], explained(MODELS[1], 0.5), atol=1e-9)
    np.testing.assert_allclose(plain[0]["worst"].scores, each.min(0), atol=1e-9)
    np.testing.assert_array_equal(plain[0]["worst"].partner_model, 1 + each.argmin(0))
    np.testing.assert_allclose(plain[0]["best"].scores, each.max(0), atol=1e-9)
    np.testing.assert_array_equal(plain[0]["best"].partner_model, 1 + each.argmax(0))


def test_what_is_not_finite_comes_last_and_of_equals_the_first():
    scores = np.array([0.1, np.inf, 0.9, np.nan, 0.1, -np.inf, 0.9], np.float32)
    found = i.ranked(scores)
    assert found.order.tolist() == [2, 6, 0, 4, 1, 3, 5]
    np.testing.assert_array_equal(found.scores, scores)
    assert i.output_norm(scores[:, None]).order.tolist() == [2, 6, 0, 4, 1, 3, 5]


def test_order_among_rankings(plain):
    all_three, first_two, _ = plain
    assert (np.asarray(all_three["min"]) <= np.asarray(all_three["max"])).all()
    np.testing.assert_array_equal(first_two["min"], first_two["max"])  # one other model: nothing to choose
    assert (np.asarray(first_two["regression"]) >= np.asarray(first_two["max"]) ** 2 - 1e-12).all()


def test_invariances(plain):
    rng, (first, second, third) = np.random.default_rng(7), MODELS
    scaled = [x * rng.uniform(0.1, 5, size=6) + rng.normal(size=6) for x in MODELS]
    flipped = (second * rng.choice([-1, 1], size=6))[:, rng.permutation(6)]
    turned = second @ rng.normal(size=(6, 6))
    for name in ("max", "min", "regression"):
        np.testing.assert_allclose(changed(*scaled)[0][name], plain[0][name], atol=1e-8, err_msg=name)
        np.testing.assert_allclose(changed(first, flipped, third)[0][name], plain[0][name], atol=1e-8, err_msg=name)
    after = changed(first, turned, third)
    np.testing.assert_allclose(after[0]["regression"], plain[0]["regression"], atol=1e-8)
    np.testing.assert_allclose(after[2].correlations, plain[2].correlations, atol=1e-8)
    # MaxCorr looks at units, and is another after a rotation.
    assert np.abs(np.asarray(after[1]["max"] - plain[1]["max"])).max() > 0.05


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_the_unit_that_activations_are_given_in_changes_nothing(plain, unit):
    """Variances of 1e-24 are no rounding, and rounding of 1e24 is no variance."""
    scaled = changed(*(unit * x for x in MODELS))
    for name in ("max", "min", "regression"):
        np.testing.assert_allclose(scaled[0][name], plain[0][name], atol=1e-8, err_msg=name)
    np.testing.assert_allclose(scaled[0]["std"], unit * np.asarray(plain[0]["std"]), rtol=1e-8)
    np.testing.assert_allclose(scaled[2].correlations, plain[2].correlations, atol=1e-8)
    assert (int(scaled[2].num_kept), scaled[2].components.tolist()) == (6, [6, 6])
    found, wanted = (np.abs(np.asarray(one.directions)) for one in (scaled[2], plain[2]))
    np.testing.assert_allclose(unit * found, wanted, atol=1e-7)


def test_a_state_keeps_its_types_in_double_precision():
    """As a loop of jax asks for; nothing is computed for it."""
    stats = i.RunningMoments((6, 6, 6))
    with jax.enable_x64(True):
        start = jax.eval_shape(stats.init)
        after, info = jax.eval_shape(stats.update, start, MODELS, np.ones(N, bool))
        assert (after, jax.eval_shape(stats.merge, start, after)) == (start, start)
        assert info.cost.dtype == start.count.dtype


def test_partners_are_whom_they_agree_with():
    noise = RNG.normal(size=(N, 4))
    first = np.stack([noise[:, 0], SHARED[:, 0], SHARED[:, 1]], axis=1)
    second = np.stack([noise[:, 1], -SHARED[:, 1]], axis=1)
    third = np.stack([SHARED[:, 0] + 0.1 * noise[:, 3], noise[:, 2]], axis=1)
    moments = moments_of([first, second, third])
    # MinCorr names the model that agrees least with the unit, and that model's unit which agrees most.
    least = i.min_corr(moments, 0)
    assert [int(least.partner_model[unit]) for unit in (1, 2)] == [1, 2]
    rho = np.abs(np.corrcoef(first.T, second.T)[:3, 3:])
    assert int(least.partner_unit[1]) == rho[1].argmax()
    # Seen from the last model, the same pair.
    back = i.max_corr(moments, 2)
    assert (int(back.partner_model[0]), int(back.partner_unit[0])) == (0, 1)
    found = i.max_corr(moments, 0)
    assert set(found.order[:2].tolist()) == {1, 2}
    assert found.order[2] == 0
    assert (int(found.partner_model[1]), int(found.partner_unit[1])) == (2, 0)
    assert (int(found.partner_model[2]), int(found.partner_unit[2])) == (1, 1)


@jax.jit
def regressions(activations):
    """By aggregate over the other models, and with a ridge against the first of them alone."""
    moments = moments_of(activations)
    found = {a: i.linear_regression(moments, 0, aggregate=a) for a in ("min", "mean", "max")}
    return found, i.linear_regression(moments.subset((0, 1)), 0, ridge=0.5).scores


def test_a_ridge_and_aggregates_are_their_definitions():
    copy, noise = MODELS[0] @ RNG.normal(size=(6, 6)), RNG.normal(size=(N, 6))
    with jax.enable_x64(True):
        _, shrunk = jax.device_get(regressions(MODELS))
        found, _ = jax.device_get(regressions([MODELS[0], copy, noise]))
    # 1 − MSE of the ridge regression of standardised units.
    target, given = ((x - x.mean(0)) / x.std(0) for x in MODELS[:2])
    weights = np.linalg.solve(given.T @ given / N + 0.5 * np.eye(6), given.T @ target / N)
    np.testing.assert_allclose(shrunk, 1 - ((target - given @ weights) ** 2).mean(0), atol=1e-9)
    # One of the others is a copy and one is noise, so that the best and the worst are known.
    np.testing.assert_allclose(found["max"].scores, 1.0, atol=1e-9)
    assert (found["min"].scores < 0.1).all()
    np.testing.assert_allclose(found["mean"].scores, (found["min"].scores + found["max"].scores) / 2, atol=1e-9)
    # The partner is the one that the score counts: of the worst the noise, of the mean and the best the copy.
    assert {a: set(found[a].partner_model.tolist()) for a in found} == {"min": {2}, "mean": {1}, "max": {1}}


@pytest.mark.slow
def test_units_that_say_the_same_do_no_harm_to_a_regression():
    doubled = np.hstack([MODELS[1], MODELS[1]])
    found = i.linear_regression(moments_of([MODELS[0], doubled]), 0).scores
    expected = i.linear_regression(moments_of(MODELS[:2]), 0).scores
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1234.5])
def test_a_constant_unit_scores_nothing(constant):
    values = np.column_stack([np.full(N, constant), SHARED[:, 0]]).astype(np.float32)
    moments = moments_of([values, MODELS[1]])
    for rule in (i.max_corr, i.min_corr, i.linear_regression, i.standard_deviation):
        found = rule(moments, 0)
        assert float(found.scores[0]) == 0.0, rule.__name__
        assert np.isfinite(found.scores).all()
        assert int(found.order[-1]) == 0


def test_svcca_of_a_model_with_itself_turned():
    with jax.enable_x64(True):
        turned = MODELS[0] @ np.random.default_rng(1).normal(size=(6, 6))
        moments = moments_of([MODELS[0], turned])
        found = i.svcca(moments, 0, 1, variance=1.0)
        np.testing.assert_allclose(found.correlations, 1.0, atol=1e-9)
        assert int(found.num_kept) == 6


def test_svcca_against_the_definition():
    """Principal components by NumPy's SVD, canonical correlations by QR (Björck & Golub)."""
    first, second = (x - x.mean(0) for x in MODELS[:2])

    def components(x, share):
        left, values, _ = np.linalg.svd(x, full_matrices=False)
        kept = int(np.searchsorted(np.cumsum(values**2) / np.sum(values**2), share)) + 1
        return left[:, :kept]

    one, two = components(first, 0.9), components(second, 0.9)
    expected = np.linalg.svd(one.T @ two, compute_uv=False)
    with jax.enable_x64(True):
        found = i.svcca(moments_of(MODELS), 0, 1, variance=0.9)
    assert found.components.tolist() == [one.shape[1], two.shape[1]]
    assert one.shape[1] < 6  # something was left out
    np.testing.assert_allclose(found.correlations[: len(expected)], expected, atol=1e-8)
    np.testing.assert_array_equal(found.correlations[len(expected) :], 0)
    # The directions make these: x C has unit variance, is uncorrelated, and correlates so with the other's space.
    made = first @ np.asarray(found.directions)[:, : len(expected)]
    np.testing.assert_allclose(made.T @ made / N, np.eye(len(expected)), atol=1e-8)
    explained = np.linalg.norm(two.T @ made / np.sqrt(N), axis=0)
    np.testing.assert_allclose(explained, expected, atol=1e-8)


def test_a_ridge_of_svcca_is_a_share_of_the_largest_variance():
    """So the unit of activations does not matter, and the variances that whiten are those with it."""
    with jax.enable_x64(True):
        found = i.svcca(moments_of(MODELS[:2]), 0, 1, variance=1.0, ridge=0.1)
        scaled = i.svcca(moments_of([100 * MODELS[0], 0.01 * MODELS[1]]), 0, 1, variance=1.0, ridge=0.1)
    covariance = np.cov(np.concatenate(MODELS[:2], axis=1), rowvar=False)
    whitening = []
    for part in (slice(0, 6), slice(6, None)):
        values, vectors = np.linalg.eigh(covariance[part, part])
        whitening.append(vectors / np.sqrt(values + 0.1 * values.max()))
    expected = np.linalg.svd(whitening[0].T @ covariance[:6, 6:] @ whitening[1], compute_uv=False)
    np.testing.assert_allclose(found.correlations[: len(expected)], expected, atol=1e-8)
    np.testing.assert_allclose(scaled.correlations, found.correlations, atol=1e-8)


def test_svcca_of_models_with_different_ranks_keeps_the_smaller():
    """The other has two directions alone: no more can be shared, and only these correlate."""
    with jax.enable_x64(True):
        flat = MODELS[0][:, :2] @ np.random.default_rng(2).normal(size=(2, 6))
        moments = moments_of([MODELS[0], flat])
        found, back = i.svcca(moments, 0, 1, variance=1.0), i.svcca(moments, 1, 0, variance=1.0)
    assert (int(found.num_kept), found.components.tolist()) == (2, [6, 2])
    assert (int(back.num_kept), back.components.tolist()) == (2, [2, 6])
    np.testing.assert_allclose(found.correlations, [1, 1, 0, 0, 0, 0], atol=1e-6)
    np.testing.assert_array_equal(np.asarray(found.directions)[:, 2:], 0)
    np.testing.assert_allclose(np.asarray(found.directions)[2:], 0, atol=1e-6)  # of the first model's first two units


def test_projections_on_directions():
    with jax.enable_x64(True):
        columns = jnp.asarray(np.random.default_rng(3).normal(size=(5, 4)))
        matrix = i.keep_directions(columns, jnp.array([True, False, True, True]))
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        np.testing.assert_allclose(matrix @ matrix, matrix, atol=1e-12)
        assert float(jnp.trace(matrix)) == pytest.approx(3)
        chosen = np.asarray(columns)[:, [0, 2, 3]]
        np.testing.assert_allclose(matrix, chosen @ np.linalg.solve(chosen.T @ chosen, chosen.T), atol=1e-10)
        every = i.keep_directions(columns, jnp.ones(4, bool))
        np.testing.assert_allclose(columns.T @ every, columns.T, atol=1e-10)  # erasing none: the span stays
        np.testing.assert_allclose(i.keep_directions(1e-9 * columns, jnp.ones(4, bool)), every, atol=1e-9)


def test_moments_of_some_models(plain):
    with jax.enable_x64(True):
        moments = moments_of(MODELS)
        turned = moments.subset((2, 0))
        np.testing.assert_array_equal(turned.covariance(0, 1), moments.covariance(2, 0))
        np.testing.assert_array_equal(turned.covariance(1, 1), moments.covariance(0, 0))
        np.testing.assert_array_equal(turned.covariance(1, 0), moments.covariance(0, 2))


def test_output_norm_and_random_order():
    weights = np.array([[3.0, 4.0], [0.0, 1.0], [6.0, 0.0]])
    assert i.output_norm(weights).order.tolist() == [2, 0, 1]
    np.testing.assert_allclose(i.output_norm(weights).scores, [5, 1, 6])
    orders = {tuple(i.random_order(jax.random.key(seed), 5).order.tolist()) for seed in range(5)}
    assert len(orders) > 1
    assert all(sorted(order) == list(range(5)) for order in orders)


@pytest.mark.slow
def test_memory_is_a_tenth_of_all_activations_at_most():
    """500 units of 4 models on 10⁶ tokens are 16 GB in double precision; a chunk and the moments are far less."""
    stats, chunk = i.RunningMoments((500,) * 4), 4096
    arrays = [jax.ShapeDtypeStruct((chunk, 500), jnp.float32)] * 4
    used = jax.jit(stats.update).lower(stats.init(), arrays).compile().memory_analysis()
    sizes = used.argument_size_in_bytes, used.output_size_in_bytes, used.temp_size_in_bytes
    assert sum(sizes) < 0.1 * 8 * 4 * 500 * 10**6


def test_a_mask_goes_with_its_chunk():
    """Chunks of five, five and two tokens, of which others count in each; what does not is not a number."""
    rng = np.random.default_rng(3)
    first, second, mask = rng.normal(size=(12, 2)), rng.normal(size=(12, 3)), np.arange(12) % 3 != 1
    spoilt = [np.where(mask[:, None], x, np.nan) for x in (first, second)]
    _, moments = i.collect(spoilt, chunk=5, mask=mask)
    exact = np.cov(np.hstack([first, second])[mask].T, bias=True)
    assert int(moments.count) == mask.sum()
    for a, b, wanted in ((0, 0, exact[:2, :2]), (0, 1, exact[:2, 2:]), (1, 0, exact[2:, :2]), (1, 1, exact[2:, 2:])):
        np.testing.assert_allclose(moments.covariance(a, b), wanted, atol=1e-5)
