"""Losses and corrections held to closed forms: the note's numbers, gradients, minimisers, identities, Bayes rules."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.imbalance import (
    LOSSES,
    adjust,
    balanced_error,
    balanced_indices,
    class_counts,
    class_errors,
    focal_cross_entropy,
    label_margin_cross_entropy,
    log_prior,
    logit_adjusted_cross_entropy,
    normalise_weights,
    pairwise_margin_cross_entropy,
    tune_tau,
    vector_scaling_cross_entropy,
    weighted_cross_entropy,
)

PRIOR = np.array([0.7, 0.2, 0.1])
LOGITS = np.array([1.0, 0.0, -1.0])
RNG = np.random.default_rng(0)
BATCH, LABELS = RNG.normal(size=(6, 3)), np.array([0, 1, 2, 2, 1, 0], np.int32)
WEIGHT, MARGIN = np.array([0.5, 2.0, 3.0]), np.random.default_rng(1).normal(size=(3, 3))  # its diagonal is no margin


def log_softmax(f):
    return f - np.log(np.exp(f).sum(-1, keepdims=True))


@pytest.fixture(scope="module")
def values():
    """Every loss, at its own and another strength, on one batch, with gradients; in float64 and one program."""

    def compute(logits, prior):
        def total(name, tau, **more):
            def losses(f):
                return LOSSES[name](f, LABELS, prior, tau=tau, **more)

            return losses(logits), jax.grad(lambda f: losses(f).sum())(logits)

        found = {f"{name} {tau}": total(name, tau) for name in LOSSES for tau in (0.0, 0.5, 1.0, 2.0)}
        found["margin"] = total("label-margin", 0.5, margin=2.0)
        found["gamma"] = total("vector-scaling", 1.5, gamma=0.7)
        found["pairs"] = pairwise_margin_cross_entropy(logits, LABELS, WEIGHT, MARGIN)
        return found

    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(compute)(BATCH, np.log(PRIOR)))


@pytest.mark.parametrize(
    ("tau", "expected"),
    [
        (0.0, (0.407606, 1.407606, 2.407606)),
        (1.0, (0.117287, 2.370050, 4.063197)),
        (2.0, (0.032267, 3.537793, 5.924087)),
    ],
)
def test_the_notes_numbers(tau, expected):
    rows = np.tile(LOGITS, (3, 1))
    found = logit_adjusted_cross_entropy(rows, np.arange(3), np.log(PRIOR), tau=tau)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    after = adjust(LOGITS, np.log(PRIOR), tau=tau)
    assert int(jnp.argmax(after)) == int(tau)  # 0, 1 and 2


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
def test_the_gradient_is_softmax_of_the_adjusted_logits_less_the_label(values, tau):
    loss, gradient = values[f"logit-adjusted {tau}"]
    p = np.exp(log_softmax(BATCH + tau * np.log(PRIOR)))
    np.testing.assert_allclose(gradient, p - np.eye(3)[LABELS], atol=1e-12)
    np.testing.assert_allclose(loss, -np.log(p[np.arange(6), LABELS]), atol=1e-12)


@pytest.mark.parametrize("tau", [0.5, 1.0, 2.0])
def test_rivals_are_their_formulas(values, tau):
    log_p, rows = log_softmax(BATCH), np.arange(6)
    weighted, _ = values[f"weighted {tau}"]
    np.testing.assert_allclose(weighted, -((3 * PRIOR[LABELS]) ** -tau) * log_p[rows, LABELS], rtol=1e-12)
    shifted = BATCH.copy()
    shifted[rows, LABELS] -= (PRIOR.min() / PRIOR[LABELS]) ** tau
    np.testing.assert_allclose(values[f"label-margin {tau}"][0], -log_softmax(shifted)[rows, LABELS], rtol=1e-12)
    apart = np.exp(BATCH - BATCH[rows, LABELS][:, None]) * PRIOR**tau
    apart[rows, LABELS] = 0
    np.testing.assert_allclose(values[f"equalised {tau}"][0], np.log1p(apart.sum(1)), rtol=1e-12)
    p = np.exp(log_p[rows, LABELS])
    np.testing.assert_allclose(values[f"focal {tau}"][0], -((1 - p) ** tau) * np.log(p), rtol=1e-12)
    scaled = BATCH * (PRIOR / 0.7) ** 0.2 + tau * np.log(PRIOR)
    np.testing.assert_allclose(values[f"vector-scaling {tau}"][0], -log_softmax(scaled)[rows, LABELS], rtol=1e-12)
    np.testing.assert_allclose(values[f"cross-entropy {tau}"][0], -log_p[rows, LABELS], rtol=1e-12)


def test_rivals_away_from_their_defaults(values):
    rows, shifted = np.arange(6), BATCH.copy()
    shifted[rows, LABELS] -= 2 * (PRIOR.min() / PRIOR[LABELS]) ** 0.5
    np.testing.assert_allclose(values["margin"][0], -log_softmax(shifted)[rows, LABELS], rtol=1e-12)
    scaled = BATCH * (PRIOR / 0.7) ** 0.7 + 1.5 * np.log(PRIOR)
    np.testing.assert_allclose(values["gamma"][0], -log_softmax(scaled)[rows, LABELS], rtol=1e-12)


def test_a_weight_a_class_and_a_margin_a_pair(values):
    apart = np.exp(MARGIN[LABELS] + BATCH - BATCH[np.arange(6), LABELS][:, None])
    apart[np.arange(6), LABELS] = 0
    np.testing.assert_allclose(values["pairs"], WEIGHT[LABELS] * np.log1p(apart.sum(1)), rtol=1e-12)


def test_without_strength_or_with_equal_classes_it_is_optax_to_the_bit():
    batch, prior, uniform = (x.astype(np.float32) for x in (BATCH, np.log(PRIOR), np.full(3, np.log(1 / 3))))
    plain = optax.softmax_cross_entropy_with_integer_labels(batch, LABELS)
    np.testing.assert_array_equal(logit_adjusted_cross_entropy(batch, LABELS, prior, tau=0.0), plain)
    for name in ("weighted", "equalised"):
        np.testing.assert_allclose(LOSSES[name](batch, LABELS, prior, tau=0.0), plain, rtol=2e-6)
    for name in ("logit-adjusted", "weighted", "vector-scaling"):
        np.testing.assert_allclose(LOSSES[name](batch, LABELS, uniform), plain, rtol=2e-6)
    # π_k acts on wrong answers, even where all are equal.
    assert np.abs(LOSSES["equalised"](batch, LABELS, uniform) - plain).max() > 0.1


def test_invariances(values):
    """A constant in log π changes nothing; permuted classes permute; (z, τ) → (sz, sτ) scales what is adjusted."""
    order = np.array([2, 0, 1])

    @jax.jit
    def changed(prior):
        shifted = logit_adjusted_cross_entropy(BATCH, LABELS, prior - 3.0, tau=2.0)
        turned = [
            one(BATCH[:, order], np.argsort(order).astype(np.int32)[LABELS], prior[order], tau=0.5)
            for one in LOSSES.values()
        ]
        twice = adjust(adjust(BATCH, prior, tau=0.4), prior, tau=0.3)
        return shifted, turned, adjust(BATCH, prior, tau=0.7), adjust(4 * BATCH, prior, tau=2.8), twice

    with jax.enable_x64(True):
        shifted, turned, one, scaled, twice = jax.tree.map(np.asarray, changed(np.log(PRIOR)))
    np.testing.assert_allclose(shifted, values["logit-adjusted 2.0"][0], rtol=1e-12)
    for name, found in zip(LOSSES, turned, strict=True):
        np.testing.assert_allclose(found, values[f"{name} 0.5"][0], rtol=1e-12)
    np.testing.assert_allclose(scaled, 4 * one, rtol=1e-12)
    np.testing.assert_allclose(twice, one, rtol=1e-12)


def test_the_family_contains_adjusted_and_weighted_and_has_one_minimiser():
    """η = (.85, .1, .05), π = (.7, .2, .1): any δ gives the centred log η/π; LDAM's margin gives something else."""
    eta, labels = np.array([0.85, 0.1, 0.05]), np.arange(3)
    deltas = [PRIOR, np.ones(3), np.sqrt(PRIOR), np.array([2.0, 0.3, 5.0])]

    def pairs(delta):
        return lambda f: pairwise_margin_cross_entropy(f, labels, delta / PRIOR, np.log(delta[None] / delta[:, None]))

    losses = [pairs(delta) for delta in deltas]
    losses.append(lambda f: pairwise_margin_cross_entropy(f, labels, np.ones(3), (PRIOR**-0.25)[:, None] * np.ones(3)))
    losses.append(lambda f: logit_adjusted_cross_entropy(f, labels, np.log(PRIOR)))
    losses.append(lambda f: weighted_cross_entropy(f, labels, np.log(PRIOR)))
    losses.append(lambda f: label_margin_cross_entropy(f, labels, np.log(PRIOR)))

    def risks(f):
        return jnp.stack([eta @ loss(jnp.broadcast_to(f, (3, 3))) for loss in losses])

    best = np.log(eta / PRIOR)
    best -= best.mean()
    np.testing.assert_allclose(best, [0.59154, -0.29577, -0.29577], atol=1e-5)
    other = np.array([2.29, -0.79, -1.50])  # the note's minimiser with LDAM's margin
    with jax.enable_x64(True):
        slopes = jax.jit(jax.vmap(jax.jacrev(risks)))(np.stack([best, other]))
        f = np.tile(BATCH[:1], (3, 1))
        both = [pairs(PRIOR)(f), logit_adjusted_cross_entropy(f, labels, np.log(PRIOR))]
        weighted = [pairs(np.ones(3))(f) / 3, weighted_cross_entropy(f, labels, np.log(PRIOR))]
    size = np.abs(slopes).max(-1)  # these are convex: a minimum is where the gradient is 0
    consistent = [0, 1, 2, 3, 5, 6]
    assert (size[0, consistent] < 1e-14).all()
    assert (size[1, consistent] > 0.05).all()
    assert size[0, 4] > 0.05
    assert size[1, 4] < 1e-3
    assert size[0, 7] > 0.05
    np.testing.assert_allclose(*both, rtol=1e-12)
    np.testing.assert_allclose(*weighted, rtol=1e-12)


def test_posteriors_of_gaussians_adjusted_are_the_equal_prior_rule():
    means = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    x = RNG.normal(size=(50, 2)) * 2
    densities = -((x[:, None] - means) ** 2).sum(-1) / 2
    adjusted = adjust(densities + np.log(PRIOR), np.log(PRIOR))
    np.testing.assert_allclose(adjusted, densities, atol=1e-5)
    elsewhere = adjust(densities + np.log(PRIOR), np.log(PRIOR), target=np.log([0.1, 0.1, 0.8]))
    np.testing.assert_allclose(elsewhere, densities + np.log([0.1, 0.1, 0.8]), atol=1e-5)


def test_a_correction_is_its_formula_for_every_strength_and_target():
    """Of one prior and target or one for each row; τ acts on the prior alone."""
    rng = np.random.default_rng(4)
    rows = np.log(rng.dirichlet(np.ones(3), size=6))

    def corrected(tau):
        targets = (None, np.log(PRIOR[::-1]), rows)
        return [adjust(BATCH, prior, tau=tau, target=one) for prior in (np.log(PRIOR), rows[::-1]) for one in targets]

    with jax.enable_x64(True):
        run = jax.jit(corrected)
        for tau in (0.0, 0.5, 1.0, 2.5):
            wanted = [
                BATCH - tau * prior + (0 if one is None else one)
                for prior in (np.log(PRIOR), rows[::-1])
                for one in (None, np.log(PRIOR[::-1]), rows)
            ]
            for found, by_hand in zip(run(tau), wanted, strict=True):
                np.testing.assert_allclose(found, by_hand, rtol=1e-12)


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_norms_of_any_size_are_equalised(kind):
    """Columns of norms from 10⁻³ to 10³, the squares of which half precision does not hold; ‖w‖^(1−τ) is left."""
    size = np.array([1e-3, 0.1, 1.0, 30.0, 1e3])
    weights = (np.random.default_rng(5).choice([-1.0, 1.0], size=(64, 5)) * size / 8).astype(kind)
    for tau in (0.0, 0.5, 1.0):
        found = normalise_weights(weights, tau=tau)
        assert found.dtype == kind
        norms = np.linalg.norm(np.asarray(found, np.float64), axis=0)
        np.testing.assert_allclose(norms, size ** (1 - tau), rtol=5e-3 if kind == "float16" else 1e-5)


def test_priors_for_each_row_broadcast():
    priors = np.log(np.stack([PRIOR, [0.05, 0.15, 0.8], np.ones(3) / 3] * 2))  # each row has its own extremes

    @jax.jit
    def both(logits, priors):
        together = [one(logits, LABELS, priors) for one in LOSSES.values()]
        return together, [[one(logits[i], LABELS[i], priors[i]) for i in range(2)] for one in LOSSES.values()]

    for together, alone in zip(*both(BATCH.astype(np.float32), priors.astype(np.float32)), strict=True):
        np.testing.assert_allclose(together[:2], alone, rtol=1e-5)


@pytest.mark.parametrize("kind", [jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64])
def test_losses_are_of_the_type_of_their_logits(kind):
    with jax.enable_x64(True):
        logits, prior = (jax.ShapeDtypeStruct(shape, kind) for shape in ((6, 3), (3,)))
        for name, one in LOSSES.items():
            assert jax.eval_shape(lambda f, p, one=one: one(f, LABELS, p), logits, prior).dtype == kind, name


def test_what_is_finite_in_double_precision_is_not_refused():
    with jax.enable_x64(True):
        np.testing.assert_allclose(log_prior(np.array([1e300, 3e300])), np.log([0.25, 0.75]), rtol=1e-12)
        np.testing.assert_allclose(adjust(np.zeros(2), np.array([-1e300, 0.0])), [1e300, 0])


def test_counts_errors_and_priors():
    np.testing.assert_array_equal(class_counts(np.array([2, 0, 2]), 4), [1, 0, 2, 0])
    np.testing.assert_allclose(np.exp(log_prior(np.array([3, 0, 1]), smoothing=1.0)), [4 / 7, 1 / 7, 2 / 7], rtol=1e-6)
    predicted, labels = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 2, 2])
    np.testing.assert_allclose(class_errors(predicted, labels, 3), [1 / 3, 1, 0], rtol=1e-6)
    assert float(balanced_error(predicted, labels, 3)) == pytest.approx(4 / 9)
    assert np.isnan(class_errors(predicted, labels, 4)[3])
    weights = RNG.normal(size=(5, 3)) * [1, 0, 1]  # a class of no weights keeps them
    norms = np.where(weights.any(0), np.linalg.norm(weights, axis=0), 1)
    np.testing.assert_allclose(normalise_weights(weights), weights / norms, rtol=1e-5)
    np.testing.assert_allclose(normalise_weights(weights, tau=0.5), weights / np.sqrt(norms), rtol=1e-5)
    np.testing.assert_array_equal(normalise_weights(weights.tolist()), normalise_weights(weights))


@pytest.mark.parametrize("most", [2**18, 1])  # one draw for a row, or one for its class and one for its rank
def test_resampling_is_uniform_over_classes_and_within_them(most, monkeypatch):
    monkeypatch.setattr("laureate.imbalance.priors.MOST", most)
    labels = np.random.default_rng(0).permutation(np.array([0] * 6 + [1] * 3 + [2]))
    draw = jax.jit(lambda key, labels: balanced_indices(key, labels, 3, 30_000))
    rows = np.asarray(draw(jax.random.key(0), labels))
    known = jax.jit(lambda key: balanced_indices(key, labels, 3, 30_000))  # then they are sorted on the host
    np.testing.assert_array_equal(known(jax.random.key(0)), rows)
    expected = 30_000 / 3 / np.array([6, 3, 1])[labels]
    statistic = ((np.bincount(rows, minlength=10) - expected) ** 2 / expected).sum()
    assert statistic < 27.9  # χ² of 9 degrees of freedom, 0.1 %


def test_every_row_of_many_can_be_drawn():
    """Of half a million rows of one class among 32: a uniform number of 23 bits would reach every other one."""
    labels = np.zeros(2**19, np.int32)
    labels[:31] = np.arange(1, 32)
    draw = jax.jit(lambda key, labels: balanced_indices(key, labels, 32, 2**19))
    rows = np.asarray(draw(jax.random.key(0), labels))
    drawn = rows[labels[rows] == 0]
    again = len(drawn) - len(np.unique(drawn))
    expected = len(drawn) ** 2 / 2 / 2**19  # pairs of draws that meet in one row
    assert abs(again - expected) < 5 * np.sqrt(expected)


def test_tau_is_tuned_by_the_balanced_error_with_its_standard_error():
    logits, labels = np.log(RNG.dirichlet([9, 2, 1], size=60)), np.repeat([0, 1, 2], [40, 15, 5])
    grid = np.array([0.0, 0.5, 1.0, 1.5])
    best, errors, spread = tune_tau(logits, labels, np.log(PRIOR), grid)
    for tau, error, deviation in zip(grid, errors, spread, strict=True):
        wrong = (logits - tau * np.log(PRIOR)).argmax(1) != labels
        each = np.array([wrong[labels == c].mean() for c in range(3)])
        assert float(error) == pytest.approx(each.mean(), abs=1e-6)
        assert float(deviation) == pytest.approx(np.sqrt((each * (1 - each) / [40, 15, 5]).sum()) / 3, abs=1e-6)
    assert float(best) == grid[np.argmin(errors)]
    same, _, _ = tune_tau(np.zeros((3, 3)), np.arange(3), np.log([1 / 3] * 3), grid)
    assert float(same) == 1.0  # all alike: the one that theory gives


def test_of_equally_good_tau_the_one_nearest_to_one_is_taken():
    """The first row is right up to τ = 1.58, the second from 0.3 on and the third from 2.1 on; the error by hand."""
    logits, labels = np.log([[0.9, 0.1], [0.6, 0.4], [0.95, 0.05]]).astype(np.float32), np.array([0, 1, 1])
    prior, grid = np.log([0.8, 0.2]), np.array([2.0, 0.0, 0.25, 1.5, 0.5, 1.25])
    best, errors, spread = jax.jit(lambda logits: tune_tau(logits, labels, prior, grid))(logits)
    np.testing.assert_allclose(errors, [0.75, 0.5, 0.5, 0.25, 0.25, 0.25], atol=1e-6)
    half = np.sqrt(0.5 * 0.5 / 2) / 2  # one of two rows is wrong; where all or none is there is no spread
    np.testing.assert_allclose(spread, [half, 0, 0, half, half, half], atol=1e-6)
    assert float(best) == 1.25


def test_a_certain_example_has_a_gradient():
    prior = np.log(PRIOR).astype(np.float32)

    @jax.jit
    def gradients(logits):
        both = (focal_cross_entropy, vector_scaling_cross_entropy)
        return [jax.grad(lambda f, one=one: one(f, 0, prior, tau=0.5))(logits) for one in both]

    assert np.isfinite(gradients(np.array([60.0, 0.0, 0.0], np.float32))).all()
