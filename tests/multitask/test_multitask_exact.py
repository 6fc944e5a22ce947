"""Impartial learning and what it is compared with, against closed forms, the paper's own equation and NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from multitask_quick import quick

from laureate._core import Status
from laureate.multitask import (
    Weighting,
    aggregator,
    gradnorm,
    imtl,
    imtl_g,
    imtl_l,
    imtl_weights,
    inverse_loss,
    mgda,
    mgda_weights,
    task_geometry,
    task_gram,
    train,
    uncertainty,
    uniform,
    unit_sum,
)

RNG = np.random.default_rng(0)
ORTHOGONAL = np.array([[3.0, 0, 0], [0, 4.0, 0], [1.0, 1.0, 1.0]])
EQUIANGULAR = 0.7 * np.eye(4) + 0.3
FLIP = np.array([[1.0, 0.9, 0.7], [0.9, 1.0, 0.9], [0.7, 0.9, 1.0]])


def gram_of(norms, cosines):
    return np.outer(norms, norms) * cosines


def fair_weights(rows):
    """K⁻¹ 1 over the lengths, so that the coefficients of unit gradients sum to T."""
    return fair_of_gram(rows @ rows.T)


def fair_of_gram(gram):
    lengths = np.sqrt(np.diag(gram))
    x = np.linalg.solve(gram / np.outer(lengths, lengths), np.ones(len(gram)))
    return len(gram) * x / x.sum() / lengths


@pytest.fixture(scope="module")
def solved():
    """Weights of every small case in one program, in double precision, with both normalisations."""
    with np.errstate(all="ignore"):
        cases = {
            "orthogonal": ORTHOGONAL @ ORTHOGONAL.T,
            "equiangular": gram_of([1.0, 2.0, 5.0, 0.1], EQUIANGULAR),
            "flip-no": gram_of([1.0, 1.0, 1.0], FLIP),
            "flip-near": gram_of([1.0, 0.5001, 1.0], FLIP),
            "flip": gram_of([1.0, 0.4, 1.0], FLIP),
            "axes": np.diag([1.0, 4.0, 25.0]),
            "one": np.array([[7.0]]),
            "zero": gram_of([1.0, 0.0, 2.0], FLIP),
            "all-zero": np.zeros((2, 2)),
            "collinear": gram_of([1.0, 2.0], np.ones((2, 2))),
            "collinear-but-for-rounding": gram_of([1.0, 2.0], np.eye(2) + (1 - 1e-15) * (1 - np.eye(2))),
            "opposed": gram_of([1.0, 2.0], np.array([[1.0, -1.0], [-1.0, 1.0]])),
            "nan": np.array([[1.0, np.nan], [np.nan, 1.0]]),
        }
    with jax.enable_x64(True):
        both = lambda given: {k: (imtl_weights(g), imtl_weights(g, "sum")) for k, g in given.items()}  # noqa: E731
        return quick(both, cases), cases


def test_weights_of_cases_by_hand(solved):
    found, cases = solved
    a, info = found["orthogonal"][1]
    np.testing.assert_allclose(a, [0.896037, 0.672028, -0.568065], atol=1e-6)
    np.testing.assert_allclose(a @ ORTHOGONAL, [2.120046, 2.120046, -0.568065], atol=1e-5)
    assert info.projection == pytest.approx(2.120046, abs=1e-6)
    assert (info.negative, info.sign, info.cost, info.status) == (1, 1, 1, Status.OK)
    a, info = found["equiangular"][1]
    np.testing.assert_allclose(a, [0.085470, 0.042735, 0.017094, 0.854701], atol=1e-6)
    assert info.projection == pytest.approx(1.9 / np.sum(1 / np.array([1, 2, 5, 0.1])))
    assert info.condition == pytest.approx(1.9 / 0.7)
    np.testing.assert_allclose(found["axes"][1][0], np.array([1, 1 / 2, 1 / 5]) / 1.7)
    np.testing.assert_allclose(found["axes"][0][0], [1, 1 / 2, 1 / 5])
    assert found["one"][1][0] == pytest.approx([1.0])
    assert found["one"][0][0] == pytest.approx([1 / np.sqrt(7)])
    for name in ("orthogonal", "equiangular", "flip-no", "flip-near", "flip", "axes"):
        for weights, info in found[name]:
            projections = cases[name] @ weights / np.sqrt(np.diag(cases[name]))
            np.testing.assert_allclose(projections, info.projection, rtol=1e-8)


def test_published_weights_can_point_uphill_for_all_and_unit_projections_cannot(solved):
    found, _ = solved
    np.testing.assert_allclose(found["flip-no"][1][0], [1, -1, 1], atol=1e-9)
    assert found["flip-no"][1][1].projection == pytest.approx(0.8)
    assert found["flip-near"][1][1].projection == pytest.approx(2000.4, rel=0.01)
    np.testing.assert_allclose(found["flip"][1][0], [-2, 5, -2], atol=1e-8)
    assert found["flip"][1][1].projection == pytest.approx(-1.6)
    for unit, published in (found["flip"], found["flip-near"]):
        assert unit[1].projection == pytest.approx(2.4)
        assert published[1].sign == unit[1].sign
    assert [found[name][0][1].sign for name in ("flip-no", "flip-near", "flip")] == [1, 1, -1]


def test_zero_collinear_opposed_and_broken_gradients(solved):
    found, _ = solved
    alone = np.linalg.solve([[1, 0.7], [0.7, 1]], [1, 1]) / [1, 2]
    for weights, info in found["zero"]:
        np.testing.assert_allclose(weights / weights.sum(), np.insert(alone, 1, 0) / alone.sum(), atol=1e-9)
        assert info.active.tolist() == [True, False, True]
        assert info.status == Status.OK
    np.testing.assert_allclose(found["zero"][0][0], np.insert(2 * alone / (alone @ [1, 2]), 1, 0), atol=1e-9)
    for weights, info in found["all-zero"]:
        assert (weights.tolist(), info.status, info.projection) == ([0, 0], Status.OK, 0)
    for weights, info in (*found["collinear"], *found["collinear-but-for-rounding"]):
        assert weights[0] * 1 == pytest.approx(weights[1] * 2)
        assert np.isinf(info.condition)
        assert info.status == Status.OK
    assert found["collinear"][0][0] == pytest.approx([1.0, 0.5])
    for weights, info in found["opposed"]:
        assert (weights.tolist(), info.status, info.projection) == ([0, 0], Status.NOT_CONVERGED, 0)
    for weights, info in found["nan"]:
        assert np.isnan(weights).all()
        assert info.status == Status.DIVERGED


@pytest.fixture(scope="module")
def random_tasks():
    """Thirty Jacobians of five tasks with lengths over four decades; all weights in one program, in float64."""
    rows = RNG.normal(size=(30, 5, 12)) * np.exp(RNG.normal(size=(30, 5, 1)) * 2)
    with jax.enable_x64(True):

        def every(rows):
            gram = task_gram(rows)
            units = gram / jnp.sqrt(jnp.outer(jnp.diagonal(gram), jnp.diagonal(gram)))
            stopped = mgda_weights(gram, num_steps=2)
            return imtl_weights(gram, "sum")[0], imtl_weights(gram)[0], mgda_weights(gram), mgda_weights(units), stopped

        return rows, quick(jax.vmap(every), rows)


def test_weights_are_the_papers(random_tasks):
    rows, (published, unit, *_) = random_tasks
    for g, a, b in zip(rows, published, unit, strict=True):
        u = g / np.linalg.norm(g, axis=1, keepdims=True)
        differences, of_units = g[0] - g[1:], u[0] - u[1:]
        rest = g[0] @ of_units.T @ np.linalg.inv(differences @ of_units.T)  # equation 2
        np.testing.assert_allclose(a, [1 - rest.sum(), *rest], rtol=1e-7)
        np.testing.assert_allclose(b / b.sum(), a, rtol=1e-7)
        np.testing.assert_allclose(b, fair_weights(g), rtol=1e-7)
        np.testing.assert_allclose(u @ (b @ g), (u @ (b @ g))[0], rtol=1e-8)


def shortest(gram):
    """The best over all sets of tasks, of weights that are positive, by the conditions of optimality."""
    best, found = np.inf, None
    for number in range(1, 2 ** len(gram)):
        chosen = np.flatnonzero([(number >> t) & 1 for t in range(len(gram))])
        a = np.zeros(len(gram))
        inverse = np.linalg.pinv(gram[np.ix_(chosen, chosen)]) @ np.ones(len(chosen))
        a[chosen] = inverse / inverse.sum()
        if (a >= -1e-12).all() and a @ gram @ a < best:
            best, found = a @ gram @ a, a
    return found


def test_mgda_is_the_shortest_combination(random_tasks):
    rows, (_, _, (a, info), (units, _), _) = random_tasks
    for g, weights, square, status, gap in zip(rows, a, info.square, info.status, info.gap, strict=True):
        best = shortest(g @ g.T)
        np.testing.assert_allclose(weights, best, atol=1e-6)  # pyright: ignore[reportCallIssue]
        assert square == pytest.approx(best @ g @ g.T @ best)
        assert gap <= 1e-12 * np.max(g @ g.T)
        assert status == Status.OK
    assert (info.cost > 0).any()
    for g, weights in zip(rows[:10], units, strict=False):
        u = g / np.linalg.norm(g, axis=1, keepdims=True)
        np.testing.assert_allclose(weights, shortest(u @ u.T), atol=1e-6)  # pyright: ignore[reportCallIssue]


def test_mgda_stopped_early_says_how_far_it_may_be_off(random_tasks):
    """‖g‖² - min_t ⟨g, g_t⟩ in the unit of the gradients, half of what may be missing at most."""
    rows, (*_, (a, info)) = random_tasks
    assert (info.cost <= 2).all()
    late = info.status == Status.NOT_CONVERGED
    assert late.sum() > 10
    for g, weights, square, gap in zip(rows[late], a[late], info.square[late], info.gap[late], strict=True):
        gram = g @ g.T
        best = shortest(gram)
        assert square == pytest.approx(weights @ gram @ weights)
        assert gap == pytest.approx(square - np.min(gram @ weights))
        assert 2 * gap >= square - best @ gram @ best


# --- as transformations -----------------------------------------------------------------------------------------------

PARAMS = {"head": np.zeros(2, np.float32), "trunk": {"b": np.zeros(3, np.float32), "w": np.zeros((3, 2), np.float32)}}
GRADS = jax.tree.map(lambda p: RNG.normal(size=(3, *p.shape)).astype(np.float32), PARAMS)
GRADS["head"][1:] = 0  # of the first task alone
LOSSES = np.array([0.5, 2.0, 8.0], np.float32)
ROUNDED = np.array([246.8, 1555.4, 19.8], np.float32)  # e^{-log L} L is not 1 in float32 for halves of these
TRUNK = lambda path: "trunk" in path  # noqa: E731
AS_TREE = {"head": False, "trunk": True}
LABELS = {"head": "-", "trunk": {"b": "x", "w": "y"}}
GRAM = np.array([[2.0, 0.1, 0.2], [0.1, 1.0, -0.3], [0.2, -0.3, 4.0]], np.float32)


def rows_of(tree, names=("b", "w")):
    return np.concatenate([np.asarray(tree["trunk"][name]).reshape(len(tree["head"]), -1) for name in names], axis=1)


@pytest.fixture(scope="module")
def moved():
    """Two steps of every transformation in one program; the second with other losses."""
    sgd = optax.sgd(0.3)
    made = {
        "uniform": uniform(shared=TRUNK),
        "weighted": uniform((1.0, 2.0, 0.5), shared=TRUNK),
        "unit_sum": unit_sum(shared=AS_TREE),
        "unit_sum-everything": unit_sum(),
        "imtl_g": imtl_g(shared=TRUNK),
        "imtl_g-sum": imtl_g(normalise="sum", shared=TRUNK),
        "imtl_g-rescaled": imtl_g(shared=TRUNK, rescale=True),
        "imtl_g-labels": imtl_g(shared=TRUNK, per=LABELS, rescale=True),
        "mgda": mgda(shared=TRUNK),
        "mgda-unit": mgda(normalise=True, shared=TRUNK),
        "unit_sum-leaf": unit_sum(shared=TRUNK, per="leaf"),
        "imtl_l": imtl_l(3, sgd, shared=TRUNK),
        "imtl_l-zeros": imtl_l(3, sgd, start="zeros", shared=TRUNK),
        "imtl": imtl(3, sgd, shared=TRUNK),
        "imtl-zeros-sum": imtl(3, sgd, start="zeros", normalise="sum", shared=TRUNK),
        "uncertainty": uncertainty(3, optax.sgd(0.6), shared=TRUNK),
        "uncertainty-mixed": uncertainty(3, sgd, factor=(0.5, 1.0, 1.0), shared=TRUNK),
        "gradnorm": gradnorm(3, optax.sgd(0.01), gamma=0.7, shared=TRUNK),
        "gradnorm-floor": gradnorm(3, optax.sgd(10.0), gamma=0.0, shared=TRUNK),
        "inverse": inverse_loss(3, shared=TRUNK),
        "inverse-first": inverse_loss(3, by="first", shared=TRUNK),
    }

    def both(grads, losses):
        def two(tx):
            first, state = tx.update(grads, tx.init(PARAMS), PARAMS, losses=losses)
            second, state = tx.update(grads, state, PARAMS, losses=losses / jnp.array([1.0, 2.0, 4.0]))
            return first, second, state

        found = {name: two(tx) for name, tx in made.items()}
        given, rescaled = (
            made[name].update(grads, made[name].init(PARAMS), PARAMS, gram=GRAM)[0]
            for name in ("imtl_g", "imtl_g-rescaled")
        )
        opposed = jax.tree.map(lambda leaf: jnp.stack([leaf[0], -leaf[0], 0 * leaf[0]]), grads)
        found["geometry"] = task_geometry(grads, found["imtl_g"][0], shared=TRUNK), task_geometry(grads, shared=TRUNK)
        adam = imtl_l(3, optax.adam(0.3), shared=TRUNK)
        found["adam"] = adam.update(grads, adam.init(PARAMS), PARAMS, losses=ROUNDED * losses[0])[1]
        found["opposed"] = made["imtl_g"].update(opposed, made["imtl_g"].init(PARAMS), PARAMS)
        return found | {"imtl_g-given": (given, given, ()), "imtl_g-given-rescaled": (rescaled, rescaled, ())}

    return quick(both, GRADS, LOSSES)


def expect(moved, name, trunk, head, step=0):
    found = moved[name][step]
    got = np.concatenate([found["trunk"]["b"].ravel(), found["trunk"]["w"].ravel()])
    np.testing.assert_allclose(got, trunk @ rows_of(GRADS), rtol=2e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(found["head"], head * GRADS["head"][0], rtol=1e-4, err_msg=name)


def test_gradients_alone(moved):
    g = rows_of(GRADS)
    n, fair = np.linalg.norm(g, axis=1), fair_weights(g)
    expect(moved, "uniform", np.ones(3), 1)
    expect(moved, "weighted", np.array([1, 2, 0.5]), 1)
    expect(moved, "unit_sum", 1 / n, 1)
    expect(moved, "imtl_g", fair, 1)  # heads are not multiplied by a
    expect(moved, "imtl_g", fair, 1, step=1)
    expect(moved, "imtl_g-sum", fair / fair.sum(), 1)
    expect(moved, "mgda", shortest(g @ g.T), 1)
    units = g / n[:, None]
    expect(moved, "mgda-unit", shortest(units @ units.T) / n, 1)
    longer = np.linalg.norm(g.sum(0)) / np.linalg.norm(fair @ g)
    expect(moved, "imtl_g-rescaled", fair * longer, 1)
    all_rows = np.concatenate([g, GRADS["head"]], axis=1)
    every = 1 / np.linalg.norm(all_rows, axis=1)
    expect(moved, "unit_sum-everything", every, every[0])
    given = fair_of_gram(GRAM)
    expect(moved, "imtl_g-given", given, 1)
    # The length is that of the gradients at hand, whatever Gram matrix made the weights.
    expect(moved, "imtl_g-given-rescaled", given * np.linalg.norm(g.sum(0)) / np.linalg.norm(given @ g), 1)
    updates, state = moved["opposed"]
    assert not any(leaf.any() for leaf in jax.tree.leaves(updates["trunk"]))
    assert state.weightings[0].status.tolist() == [Status.NOT_CONVERGED]
    assert moved["imtl_g"][2].weightings[0].status.tolist() == [Status.OK]
    assert moved["imtl_g"][2].weightings[0].negative.tolist() == [(fair < 0).sum()]


def test_groups_have_weights_of_their_own(moved):
    for name in ("b", "w"):
        g = rows_of(GRADS, (name,))
        n, fair = np.linalg.norm(g, axis=1), fair_weights(g)
        fair *= np.linalg.norm(g.sum(0)) / np.linalg.norm(fair @ g)
        got = moved["imtl_g-labels"][0]["trunk"][name].ravel()
        np.testing.assert_allclose(got, fair @ g, rtol=2e-3, atol=1e-4)
        np.testing.assert_allclose(moved["unit_sum-leaf"][0]["trunk"][name].ravel(), (1 / n) @ g, rtol=1e-4, atol=1e-5)


def test_scales_of_losses(moved):
    second = LOSSES / [1, 2, 4]
    expect(moved, "inverse", 1 / LOSSES, 1 / LOSSES[0])
    expect(moved, "inverse", 1 / second, 1 / second[0], step=1)
    expect(moved, "inverse-first", 1 / LOSSES, 1 / LOSSES[0], step=1)
    for name in ("inverse-first", "gradnorm"):  # the first losses stay the first
        np.testing.assert_array_equal(moved[name][2].weightings[0].first, LOSSES[None], err_msg=name)
        assert moved[name][2].weightings[0].count.tolist() == [2]
    # From s = -log L nothing moves at the first step; the second then has e^s L - 1 of the first losses.
    expect(moved, "imtl_l", 1 / LOSSES, 1 / LOSSES[0])
    expect(moved, "imtl_l", 1 / LOSSES, 1 / LOSSES[0], step=1)
    # Adam makes no step of the first slope, which is only rounding.
    np.testing.assert_allclose(moved["adam"].weightings[0].s[0], -np.log(ROUNDED / 2), rtol=1e-5)
    s = -0.3 * (LOSSES - 1)
    expect(moved, "imtl_l-zeros", np.ones(3), 1)
    expect(moved, "imtl_l-zeros", np.exp(s), np.exp(s[0]), step=1)
    np.testing.assert_allclose(
        moved["imtl_l-zeros"][2].weightings[0].s[0], s - 0.3 * (np.exp(s) * second - 1), rtol=1e-5
    )
    g = rows_of(GRADS) / LOSSES[:, None]
    fair = fair_weights(g)
    expect(moved, "imtl", fair / LOSSES, 1 / LOSSES[0])
    g = rows_of(GRADS) * np.exp(s)[:, None]
    fair = fair_weights(g)
    expect(moved, "imtl-zeros-sum", fair / fair.sum() * np.exp(s), np.exp(s[0]), step=1)


def test_uncertainty_is_half_of_imtl_l_and_for_cross_entropy_goes_to_one_half(moved):
    expect(moved, "uncertainty", 0.5 / LOSSES, 0.5 / LOSSES[0])
    two = [moved[name][2].weightings[0].s for name in ("uncertainty", "imtl_l")]
    np.testing.assert_allclose(two[0], two[1], rtol=1e-5)  # half the slope, twice the rate
    mixed = np.array([0.5, 0.5, 0.5]) / LOSSES  # c e^s L = 1/2 for all
    expect(moved, "uncertainty-mixed", mixed, mixed[0])


def test_gradnorm_follows_the_slope_of_its_own_loss(moved):
    n = np.linalg.norm(rows_of(GRADS), axis=1)
    target = n.mean()

    def misfit(w):
        return np.abs(w * n - target).sum()

    slope = [(misfit(1 + 1e-6 * e) - misfit(1 - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    w = 1 - 0.01 * np.array(slope)
    w *= 3 / w.sum()
    expect(moved, "gradnorm", np.ones(3), 1)
    expect(moved, "gradnorm", w, w[0], step=1)
    speed = np.array([1, 0.5, 0.25])
    target = (w * n).mean() * (speed / speed.mean()) ** 0.7
    after = w - 0.01 * np.sign(w * n - target) * n
    np.testing.assert_allclose(moved["gradnorm"][2].weightings[0].weights[0], after * 3 / after.sum(), rtol=1e-4)
    # A weight that would be negative becomes 1e-6 before the sum is made T again.
    w = np.maximum(1 - 10 * np.sign(n - n.mean()) * n, 1e-6)
    expect(moved, "gradnorm-floor", 3 * w / w.sum(), 3 * w[0] / w.sum(), step=1)


def test_geometry_reports_what_is_there(moved):
    fair, plain = moved["geometry"]
    g = rows_of(GRADS)
    n = np.linalg.norm(g, axis=1)
    np.testing.assert_allclose(fair.gram, g @ g.T, rtol=1e-5)
    np.testing.assert_allclose(fair.norms, n, rtol=1e-6)
    np.testing.assert_allclose(fair.cosines, g @ g.T / np.outer(n, n), atol=1e-6)
    np.testing.assert_allclose(fair.projections, fair.projections[0], rtol=1e-4)
    assert fair.projections[0] == pytest.approx(g[0] @ (fair_weights(g) @ g) / n[0], rel=1e-4)
    np.testing.assert_allclose(plain.projections, g @ g.sum(0) / n, rtol=1e-4)
    pairs = (g @ g.T)[np.triu_indices(3, 1)]
    assert fair.conflicts == pytest.approx((pairs < 0).mean())
    assert plain.amplification == pytest.approx(1, rel=1e-5)
    expected = np.linalg.norm(fair_weights(g) @ g)
    assert fair.amplification == pytest.approx(expected / np.linalg.norm(g.sum(0)), rel=1e-3)
    assert (fair.cost, fair.status) == (3, Status.OK)


def test_the_shortest_combination_of_unit_gradients(moved):
    g = rows_of(GRADS)
    n = np.linalg.norm(g, axis=1, keepdims=True)
    expect(moved, "mgda-unit", shortest(g @ g.T / (n * n.T)) / n[:, 0], 1)


def test_half_precision_is_computed_in_single_precision():
    rows = jnp.asarray(RNG.normal(size=(3, 40)), jnp.bfloat16)

    large = jnp.asarray(np.linspace(4e4, 6e4, 15).reshape(3, 5), jnp.float16)  # their sum is beyond the largest

    def both(rows, coarse, large):
        lie = task_geometry(large)
        return task_gram(rows), mgda_weights(coarse)[0], imtl_weights(coarse)[0], lie.projections, lie.amplification

    exact = np.asarray(rows, np.float64)
    coarse = jnp.asarray(exact @ exact.T, jnp.bfloat16)
    gram, *weights, projections, amplification = quick(both, rows, coarse, large)
    assert {str(array.dtype) for array in (gram, *weights, projections)} == {"float32"}
    large = np.asarray(large, np.float64)
    np.testing.assert_allclose(projections, large @ large.sum(0) / np.linalg.norm(large, axis=1), rtol=1e-5)
    assert amplification == pytest.approx(1.0, rel=1e-5)
    np.testing.assert_allclose(gram, exact @ exact.T, rtol=1e-5, atol=1e-5)
    coarse = np.asarray(coarse, np.float64)
    for found, wanted in zip(weights, (shortest(coarse), fair_of_gram(coarse)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)  # pyright: ignore[reportCallIssue]


def test_training_is_the_loop_a_user_would_write():
    class Lines:
        def batch(self, key):
            return jax.random.normal(key, (2, 3))

        def losses(self, params, batch):
            return jnp.sum((params - batch) ** 2, axis=1) + 1.0

    optimiser = optax.chain(imtl_l(2, optax.sgd(0.2)), optax.sgd(0.1))
    watch = lambda grads, updates, losses, state: (jnp.sum(grads), updates, losses[0])  # noqa: E731
    start = jnp.ones(3)
    run = jax.jit(lambda key: train(key, Lines(), optimiser, start, 3, watch=watch))
    params, history = run(jax.random.key(1))
    x, s = np.ones(3), None
    batches = [np.asarray(jax.random.normal(jax.random.fold_in(jax.random.key(1), step), (2, 3))) for step in range(3)]
    for step, batch in enumerate(batches):
        losses, rows = ((x - batch) ** 2).sum(1) + 1, 2 * (x - batch)
        s = -np.log(losses) if s is None else s
        np.testing.assert_allclose(history.losses[step], losses, rtol=1e-5)
        np.testing.assert_allclose(history.watched[0][step], rows.sum(), rtol=1e-4)
        move = -0.1 * np.exp(s) @ rows
        np.testing.assert_allclose(history.watched[1][step], move, rtol=1e-4)
        x, s = x + move, s - 0.2 * (np.exp(s) * losses - 1)
    np.testing.assert_allclose(params, x, rtol=1e-5)
    # A transformation that knows nothing of losses is not handed any.
    summed: Any = lambda grads, state, params=None: (-0.1 * jnp.sum(grads, 0), state)  # noqa: E731
    plain = optax.GradientTransformation(lambda params: (), summed)
    params, _ = jax.jit(lambda key: train(key, Lines(), plain, start, 1))(jax.random.key(1))
    np.testing.assert_allclose(params, 1 - 0.2 * (1 - batches[0]).sum(0), rtol=1e-5)


def test_every_step_of_training_has_a_batch_of_its_own():
    """Losses x b_t, whose gradients are b_t: with their sum as update x is the sum of all that was drawn before."""

    class Draws:
        def batch(self, key):
            return jax.random.normal(key, (2, 1))

        def losses(self, params, batch):
            return batch[:, 0] * params[0]

    # A transformation of Optax's plain form, which is not handed the losses.
    summed: Any = lambda grads, state, params=None: (jnp.sum(grads, 0), state)  # noqa: E731
    plain = optax.GradientTransformation(lambda params: (), summed)

    def both(key):
        drawn = jax.vmap(lambda step: Draws().batch(jax.random.fold_in(key, step)))(jnp.arange(3))
        return drawn, train(key, Draws(), plain, jnp.zeros(1), 3)

    drawn, (params, history) = quick(both, jax.random.key(1))
    before = np.concatenate([[0], drawn.sum((1, 2)).cumsum()])
    np.testing.assert_allclose(params, before[-1:], rtol=1e-5)
    np.testing.assert_allclose(history.losses, drawn[:, :, 0] * before[:-1, None], rtol=1e-5)


# --- what cannot be ---------------------------------------------------------------------------------------------------


def update(tx, grads=GRADS, params=PARAMS, **more):
    return tx.update(grads, tx.init(PARAMS), params, **more)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: update(imtl_g(), PARAMS), r"for the parameter \['head'\].*jax.jacrev"),
        (lambda: update(imtl_g(), {**GRADS, "head": np.zeros((2, 2))}), r"with T = 2 for .*got \(3, 3\).*jax.jacrev"),
        (lambda: update(unit_sum(), {**GRADS, "head": np.float32(1)}), r"\[T, ...\] for \['head'\]"),
        (lambda: update(uniform(), {**GRADS, "head": np.zeros((3, 5))}), r"\[T, \*\[2\]\] for the parameter"),
        (lambda: update(unit_sum(), {}, {}), "at least one leaf"),
        (lambda: update(imtl_g(shared=lambda path: "other" in path)), "true of at least one leaf; the paths are"),
        (lambda: update(imtl_l(2, optax.sgd(1.0)), losses=LOSSES), "imtl_l.num_tasks must be 3.*got 2"),
        (lambda: update(inverse_loss(3), losses=LOSSES[:2]), r"losses must be of shape \(3,\); got \(2,\)"),
        (
            lambda: update(imtl_g(shared=lambda path: "head" in path)),
            "at most the number of shared parameters, 2; got 3",
        ),
        (lambda: update(imtl_g(per="leaf")), "at most the number of shared parameters, 2; got 3"),
        (lambda: update(unit_sum(per="leaf"), gram=GRAM), r"gram must be of shape \(3, 3\), with per='all'"),
        (lambda: update(unit_sum(), gram=GRAM[:2]), "gram must be of shape"),
        (lambda: unit_sum(per="layer"), "per must be 'all', 'leaf' or a tree of labels; got 'layer'"),
        (aggregator, "weightings must be at least one"),
        (lambda: imtl_g(normalise="mean"), "normalise must be 'unit' or 'sum'"),  # pyright: ignore
        (lambda: imtl_weights(GRAM[:2]), r"gram must be a square matrix \[T, T\]; got \(2, 3\)"),
        (lambda: imtl_weights(GRAM, "mean"), "normalise must be"),  # pyright: ignore
        (lambda: imtl_l(0, optax.sgd(1.0)), "num_tasks must be >= 1"),
        (lambda: imtl(3, optax.sgd(1.0), start="one"), "start must be 'loss' or 'zeros'"),  # pyright: ignore
        (lambda: uncertainty(3, optax.sgd(1.0), factor=(1.0, 0.0, 1.0)), "factor must be > 0"),
        (lambda: gradnorm(3, optax.sgd(1.0), gamma=-1.0), "gamma must be >= 0"),
        (lambda: gradnorm(0, optax.sgd(1.0)), "num_tasks must be >= 1"),
        (lambda: inverse_loss(3, by="then"), "by must be 'now' or 'first'"),  # pyright: ignore
        (lambda: uniform((1.0, -1.0)), "weights must be >= 0"),
        (lambda: mgda_weights(GRAM, num_steps=0), "num_steps must be >= 1"),
        (lambda: task_geometry(GRADS, GRADS), "step must be of the gradients' shapes"),
        (lambda: task_geometry(GRADS, {**PARAMS, "head": np.zeros(5)}), "step must be of the gradients' shapes"),
        (lambda: train(jax.random.key(0), None, optax.sgd(1.0), 0.0, 0), "num_steps must be >= 1"),  # pyright: ignore
    ],
)
def test_bad_input(call, said):
    with pytest.raises(ValueError, match=said):
        call()


RULES = {
    "imtl_l": lambda count: imtl_l(count, optax.sgd(1.0)),
    "imtl": lambda count: imtl(count, optax.sgd(1.0)),
    "uncertainty": lambda count: uncertainty(count, optax.sgd(1.0)),
    "gradnorm": lambda count: gradnorm(count, optax.sgd(1.0)),
    "inverse_loss": inverse_loss,
    "uniform": lambda count: uniform((1.0,) * count),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_for_another_number_of_tasks(name):
    with pytest.raises(ValueError, match=rf"{name}.num_tasks must be 3, as the gradients say; got 2"):
        update(RULES[name](2), losses=LOSSES)


def test_losses_are_asked_for_by_name():
    for tx in (imtl_l(3, optax.sgd(1.0)), gradnorm(3, optax.sgd(1.0)), inverse_loss(3), imtl(3, optax.sgd(1.0))):
        with pytest.raises(TypeError, match=r"needs the tasks' losses: update\(grads, state, params, losses=values\)"):
            update(tx)


def test_a_rule_of_ones_own_sees_scaled_gradients_and_losses():
    first = Weighting(
        "first", lambda groups: jnp.zeros((groups, 1)), lambda gram, losses, s: (jnp.array([2.0, 3.0]), s)
    )
    seen = Weighting("seen", lambda groups: (), lambda gram, losses, s: (jnp.diagonal(gram) + losses, s))
    tx = aggregator(first, seen)
    updates, _ = jax.jit(lambda g, v: tx.update(g, tx.init(jnp.zeros(2)), losses=v))(jnp.eye(2), jnp.array([1.0, 10.0]))
    np.testing.assert_allclose(updates, [2 * (4 + 2), 3 * (9 + 30)])
