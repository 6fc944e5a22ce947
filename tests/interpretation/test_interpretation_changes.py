"""Interventions, erasure, steering and hooks: they touch what they name and nothing else."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import interpretation as i
from networks import drawn

RNG = np.random.default_rng(0)
H = RNG.normal(size=(4, 5, 6)).astype(np.float32)  # sentences, places, units
WEIGHTS = RNG.normal(size=(6, 3)).astype(np.float32)
PLACES = RNG.uniform(size=(4, 5)) < 0.5
UNITS = np.array([True, False, False, True, False, False])
MLP = drawn(lambda key: eqx.nn.MLP(3, 2, 5, 2, key=key))


_changed = eqx.filter_jit(lambda change, h: change(h))  # outside jit every operation is a program


def changed(change, h=H):
    return np.asarray(_changed(change, h))


def test_setting_touches_only_what_is_named():
    values = np.arange(6, dtype=np.float32)
    found = changed(i.SetUnits(UNITS, values, PLACES))
    where = PLACES[..., None] & UNITS
    np.testing.assert_array_equal(found[~where], H[~where])
    np.testing.assert_array_equal(found[where], np.broadcast_to(values, H.shape)[where])


def test_resampling_takes_the_donors_values():
    donors = H[::-1]
    found = changed(i.Resample(UNITS, donors))
    np.testing.assert_array_equal(found[..., ~UNITS], H[..., ~UNITS])
    np.testing.assert_array_equal(found[..., UNITS], donors[..., UNITS])


def test_a_direction_is_set_and_what_is_orthogonal_stays():
    v = np.array([1.0, 2.0, 0.0, -1.0, 0.5, 0.0], np.float32)
    found = changed(i.SetDirection(v, 0.7, PLACES))
    component = found @ v / (v @ v)
    np.testing.assert_allclose(component[PLACES], 0.7, atol=1e-5)
    np.testing.assert_array_equal(found[~PLACES], H[~PLACES])
    other = np.linalg.qr(np.column_stack([v, RNG.normal(size=(6, 5))]))[0][:, 1:]
    np.testing.assert_allclose(found @ other, H @ other, atol=1e-5)
    np.testing.assert_allclose(changed(i.SetDirection(v, 0.7)) @ v / (v @ v), 0.7, atol=1e-5)


def test_a_projection_around_a_centre_keeps_the_centre():
    matrix, centre = np.diag(np.array([1, 0, 1, 1, 1, 1], np.float32)), np.arange(6, dtype=np.float32)
    found = changed(i.Project(matrix, centre))
    np.testing.assert_allclose(found[..., 1], 1.0)
    np.testing.assert_allclose(np.delete(found, 1, axis=-1), np.delete(H, 1, axis=-1), atol=1e-6)
    np.testing.assert_allclose(changed(i.Project(matrix))[..., 1], 0.0)


def test_masks_count_from_either_end():
    order = jnp.array([3, 1, 0, 2])
    top = i.erasure_masks(order, jnp.array([0.0, 0.25, 0.5, 1.0]), "top")
    bottom = i.erasure_masks(order, jnp.array([0.25, 0.75]), "bottom")
    assert [np.flatnonzero(mask).tolist() for mask in top] == [[], [3], [1, 3], [0, 1, 2, 3]]
    assert [np.flatnonzero(mask).tolist() for mask in bottom] == [[2], [0, 1, 2]]


def loss(intervention):
    return jnp.mean((intervention(H) @ WEIGHTS) ** 2)


def test_curves_and_single_effects_are_those_of_a_loop():
    means = H.mean((0, 1))
    order = jnp.array([5, 4, 3, 2, 1, 0])
    fractions = jnp.array([0.0, 0.5, 1.0])
    curve = jax.jit(lambda: i.erase_curve(loss, order, fractions, values=means))()
    evaluate = eqx.filter_jit(loss)
    host = i.erase_curve(lambda f: float(evaluate(f)), order, fractions, values=means, traced=False)
    np.testing.assert_allclose(curve.values, host.values, rtol=1e-5)
    lost = lambda units: np.mean((np.where(units, means, H) @ WEIGHTS) ** 2)  # noqa: E731
    np.testing.assert_allclose(np.asarray(curve.values)[1], lost(np.arange(6) >= 3), rtol=1e-5)
    assert curve.counts.tolist() == [0, 3, 6]
    np.testing.assert_allclose(np.asarray(curve.values)[0], curve.intact, rtol=1e-6)
    # All units erased by zero is feeding zeros.
    zero = jax.jit(lambda: i.erase_curve(loss, order, jnp.ones(1)).values[0])()
    assert float(zero) == 0.0
    found = jax.jit(lambda: i.ablation_effects(loss, 6, values=means, batch=4))()
    expected = [lost(np.arange(6) == u) - lost(np.zeros(6, bool)) for u in range(6)]
    np.testing.assert_allclose(found.effects, expected, atol=1e-5)


def test_a_hook_that_changes_the_model_is_found():
    def broken(intervention):
        return loss(lambda h: intervention(h) + (0.0 if isinstance(intervention, i.Identity) else 0.1))

    with pytest.raises(ValueError, match=r"erase_curve.evaluate must be the same within .* the hook itself"):
        i.erase_curve(broken, jnp.arange(6), jnp.array([0.5]))


def test_steering_lands_on_the_class_wanted_and_beyond():
    assert float(i.steer(1.0, 3.0, 0.0)) == 3.0
    assert float(i.steer(1.0, 3.0, 1.0)) == 5.0  # away from where it was
    assert float(i.steer(3.0, 1.0, 1.0)) == -1.0
    for beta in (-3.0, -1.0, 0.5):  # the paper's α = μ₁ + β(μ₁ − μ₂), from 1 to 2
        assert float(i.steer(1.0, 3.0, -beta - 1)) == pytest.approx(1.0 + beta * (1.0 - 3.0))


def test_control_flips_a_decision_and_only_where_it_is_asked_for():
    """The answer is the sign of the first unit; the probe knows its means."""
    labels = np.tile([0, 1], 50)
    rng = np.random.default_rng(5)
    x = np.column_stack([2.0 * labels - 1, rng.normal(size=100)]) + 0.2 * rng.normal(size=(100, 2))
    probe = i.fit_probe(x, labels)
    best = i.property_units(i.score_probe(probe, x, labels).accuracy, 1)
    assert best.tolist() == [0]
    places = jnp.asarray((labels == 0) & (np.arange(100) < 50))
    with pytest.warns(i.OffDistributionWarning, match=r"units \[0\] are set more than 5"):
        intervention, plan = i.control(probe, best, (0, 1), 0.0, places)
    positive = changed(intervention, x.astype(np.float32))[:, 0] > 0
    np.testing.assert_array_equal(positive, (labels == 1) | np.asarray(places))
    assert plan.units.tolist() == [True, False]
    assert float(plan.values[0]) == pytest.approx(x[labels == 1, 0].mean(), rel=1e-4)
    assert float(plan.distance[0]) == pytest.approx(2 / 0.2, rel=0.3)


def test_a_plan_says_what_is_set_to_what_and_how_far_that_is():
    """From class 2 to class 0 of three that differ in mean and spread; units that are not set are left alone."""
    means, variances = RNG.normal(size=(3, 4)), RNG.uniform(0.5, 2, size=(3, 4))
    probe, positions = i.GaussianProbe(means, variances, np.ones(3) / 3), np.array([True, False])
    h = RNG.normal(size=(2, 4)).astype(np.float32)

    @jax.jit
    def run(strength, h):
        intervention, plan = i.control(probe, np.array([3, 1]), (2, 0), strength, positions)
        return intervention(h), plan

    after, plan = run(0.5, h)
    values = means[0] + 0.5 * (means[0] - means[2])
    assert plan.units.tolist() == [False, True, False, True]
    np.testing.assert_allclose(plan.values, values, rtol=1e-5)
    np.testing.assert_allclose(plan.distance, np.abs(values - means[2]) / np.sqrt(variances[2]), rtol=1e-5)
    np.testing.assert_allclose(after, np.where(positions[:, None] & plan.units, values, h), rtol=1e-5)


def test_the_difference_of_means():
    x, labels = RNG.normal(size=(30, 3)), RNG.integers(2, size=30)
    expected = x[labels == 1].mean(0) - x[labels == 0].mean(0)
    np.testing.assert_allclose(i.mean_difference(x, labels), expected, atol=1e-5)


def test_hooks_see_and_change_a_part_by_its_path():
    assert [path for path in i.module_paths(MLP) if "." in path] == ["layers.0", "layers.1", "layers.2"]
    inputs = RNG.normal(size=(7, 3)).astype(np.float32)
    states, outputs = map(np.asarray, i.record(lambda model, x: model(x), MLP, "layers.1", inputs))
    layer = lambda number, x: x @ np.asarray(MLP.layers[number].weight).T + np.asarray(MLP.layers[number].bias)  # noqa: E731
    np.testing.assert_allclose(states, layer(1, np.maximum(layer(0, inputs), 0)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(outputs, layer(2, np.maximum(states, 0)), rtol=1e-4, atol=1e-6)
    units = np.arange(5) == 2
    other = i.insert(MLP, "layers.1", i.SetUnits(units, 3.0))
    expected = layer(2, np.maximum(np.where(units, 3.0, states), 0))
    apply = eqx.filter_jit(lambda model, x: jax.vmap(model)(x))
    np.testing.assert_allclose(apply(other, inputs), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(other(inputs[0]), expected[0], rtol=1e-4, atol=1e-6)  # outside jit too
    np.testing.assert_allclose(apply(MLP, inputs), outputs, rtol=1e-6)  # the model itself is as it was


def test_rank_agreement_is_scipys():
    from scipy.stats import kendalltau, spearmanr

    first = RNG.normal(size=30).round(1)
    second = first + RNG.normal(size=30).round(1)
    assert i.rank_agreement(first, second) == pytest.approx(spearmanr(first, second)[0])
    assert i.rank_agreement(first, second, "kendall") == pytest.approx(kendalltau(first, second)[0])
    assert i.rank_agreement(np.ones(5), np.arange(5)) == 0.0
    for kind in ("spearman", "kendall"):
        assert np.isnan(i.rank_agreement([1.0, np.nan, 2.0], [1.0, 2.0, 3.0], kind))


@pytest.mark.parametrize("kind", ["spearman", "kendall"])
def test_rank_agreement_takes_its_two_lists_alike(kind):
    """Doubles that single precision holds for equal are in order, and what is not finite has no rank in either list."""
    close = 1 + 1e-12 * np.array([2.0, 0.0, 3.0, 1.0])
    assert i.rank_agreement(close, [2, 0, 3, 1], kind) == i.rank_agreement([2, 0, 3, 1], close, kind) == 1.0
    for wrong in ([1.0, np.nan, 2.0], [1.0, 3.0, np.inf]):
        assert np.isnan(i.rank_agreement(wrong, [1.0, 2.0, 3.0], kind))
        assert np.isnan(i.rank_agreement([1.0, 2.0, 3.0], wrong, kind))


def test_half_precision_comes_back_as_single_and_double_as_double():
    """All that is summed; nothing is computed for it."""
    labels = np.tile([0, 1], 3)
    probe = i.GaussianProbe(np.zeros((2, 3)), np.ones((2, 3)), np.array([0.5, 0.5]))

    def summed(x):
        explained, told = i.explained_variance(x, labels, 2), i.score_probe(probe, x, labels).f1
        return i.mean_difference(x, labels), i.output_norm(x).scores, i.fit_probe(x, labels), explained, told

    for given, wanted in (("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32")):
        found = jax.eval_shape(summed, jax.ShapeDtypeStruct((6, 3), given))
        assert {leaf.dtype.name for leaf in jax.tree.leaves(found)} == {wanted}, given
    with jax.enable_x64(True):
        found = jax.eval_shape(summed, jax.ShapeDtypeStruct((6, 3), "float64"))
        assert {leaf.dtype.name for leaf in jax.tree.leaves(found)} == {"float64"}


def test_half_precision_is_summed_in_single():
    """3000 ones are more than half precision counts, and a direction's squared length more than it can hold."""
    rng = np.random.default_rng(0)
    labels = np.arange(3000) % 2
    x = (rng.normal(size=(3000, 2)) + labels[:, None]).astype(np.float16)
    probe, wide = i.fit_probe(x, labels), i.fit_probe(x.astype(np.float32), labels)
    np.testing.assert_allclose(probe.means, wide.means, rtol=1e-5)
    np.testing.assert_allclose(i.mean_difference(x, labels), wide.means[1] - wide.means[0], rtol=1e-5)
    np.testing.assert_allclose(i.output_norm(np.full((2, 2), 300, np.float16)).scores, 300 * np.sqrt(2), rtol=1e-5)
    long = np.full(6, 200.0, np.float16)
    moved = changed(i.SetDirection(long, 0.01), H.astype(np.float16))
    assert moved.dtype == np.float16
    np.testing.assert_allclose(moved.astype(float).sum(-1), 12.0, atol=0.05)
