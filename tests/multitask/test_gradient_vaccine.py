"""Gradient Vaccine and PCGrad, against vectors in NumPy, closed forms and limits."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from multitask_quick import quick

from laureate._core import as_key
from laureate.multitask import gradvac, pcgrad, vaccine, visiting_order

RNG = np.random.default_rng(1)


def by_vectors(rows, target, order, beta, track="modified"):
    """The algorithm on explicit gradients: the corrected ones, and the targets."""
    target, result = target.copy(), []
    length = np.linalg.norm
    for i, own in enumerate(rows):
        g = own.copy()
        for j in order[i]:
            if j == i:
                continue
            p, h = g @ rows[j] / (length(g) * length(rows[j])), target[i, j]
            if p < h:
                w = length(g) * (h * np.sqrt(1 - p**2) - p * np.sqrt(1 - h**2)) / (length(rows[j]) * np.sqrt(1 - h**2))
                g = g + w * rows[j]
            seen = p if track == "modified" else own @ rows[j] / (length(own) * length(rows[j]))
            target[i, j] = (1 - beta) * h + beta * seen
        result.append(g)
    return np.stack(result), target


@pytest.fixture(scope="module")
def run():
    """One program in double precision for four tasks: corrections and targets, tracked in both ways."""
    with jax.enable_x64(True):
        both = jax.jit(
            lambda gram, target, order, beta: (
                vaccine(gram, target, order, beta),
                vaccine(gram, target, order, beta, track="raw"),
            )
        )

        def call(*arguments):
            with jax.enable_x64(True):
                return jax.tree.map(np.asarray, both(*arguments))

        yield call


def test_gram_form_is_the_algorithm_on_vectors(run):
    corrected = 0
    for _ in range(20):
        rows = RNG.normal(size=(4, 9)) * np.exp(RNG.normal(size=(4, 1)))
        target, beta = RNG.uniform(-0.5, 0.9, (4, 4)), RNG.uniform()
        order = np.stack([RNG.permutation(4) for _ in range(4)])
        for track, (coefficients, moved) in zip(
            ("modified", "raw"), run(rows @ rows.T, target, order, beta), strict=True
        ):
            expected, targets = by_vectors(rows, target, order, beta, track)
            np.testing.assert_allclose(coefficients @ rows, expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(moved, targets, rtol=1e-9)
            assert (coefficients >= np.eye(4) - 1e-12).all()  # a correction only adds
            corrected += (coefficients > np.eye(4)).sum()
    assert corrected > 100


def test_without_targets_it_is_pcgrad(run):
    for _ in range(10):
        rows = RNG.normal(size=(4, 3))
        order = np.stack([RNG.permutation(4) for _ in range(4)])
        expected = []
        for i, own in enumerate(rows):
            g = own.copy()
            for j in order[i]:
                if j != i and g @ rows[j] < 0:
                    g = g - g @ rows[j] / (rows[j] @ rows[j]) * rows[j]
            expected.append(g)
        coefficients, target = run(rows @ rows.T, np.zeros((4, 4)), order, 0.0)[0]
        np.testing.assert_allclose(coefficients @ rows, expected, atol=1e-12)
        assert not target.any()


def pair(first, second):
    """Two tasks among four; the others have no gradient."""
    rows = np.zeros((4, 5))
    rows[0, :2], rows[1, :2] = first, second
    return rows


ORDER = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


def test_cases_by_hand(run):
    rows = pair((1, 0), (0, 2))
    coefficients, target = run(rows @ rows.T, np.full((4, 4), 0.6), ORDER, 0.5)[0]
    np.testing.assert_allclose(coefficients[:2, :2], [[1, 0.375], [1.5, 1]])
    np.testing.assert_allclose(coefficients[:2] @ rows, [[1, 0.75, 0, 0, 0], [1.5, 2, 0, 0, 0]])
    assert target[0, 1] == pytest.approx(0.3)
    # Tasks without a gradient are passed over and keep their targets.
    np.testing.assert_allclose(coefficients[2:], np.eye(4)[2:])
    assert (target[2:] == 0.6).all()
    assert (target[:2, 2:] == 0.6).all()
    # Above the target nothing happens but to the target; parallel gradients are never corrected.
    for rows in (pair((1, 0), (1, 1)), pair((1, 0), (3, 0))):
        coefficients, target = run(rows @ rows.T, np.full((4, 4), 0.6), ORDER, 0.25)[0]
        np.testing.assert_allclose(coefficients, np.eye(4))
        cosine = rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1])
        assert target[0, 1] == pytest.approx(0.75 * 0.6 + 0.25 * cosine)
    # Opposed: with target 0 nothing is left of either; a further visit finds nothing to divide by.
    rows = pair((1, 0), (-2, 0))
    coefficients, _ = run(rows @ rows.T, np.zeros((4, 4)), ORDER, 0.5)[0]
    np.testing.assert_allclose(coefficients[:2] @ rows, 0, atol=1e-12)
    # A target of 1 cannot be reached and is taken as 0.999.
    rows = pair((1, 0), (0, 1))
    coefficients, _ = run(rows @ rows.T, np.ones((4, 4)), ORDER, 0.0)[0]
    assert coefficients[0, 1] == pytest.approx(0.999 / np.sqrt(1 - 0.999**2))


def test_the_target_is_reached_with_the_length_of_the_law_of_sines(run):
    for _ in range(20):
        rows = pair(RNG.normal(size=2), RNG.normal(size=2))
        h = RNG.uniform(-0.9, 0.95)
        coefficients, _ = run(rows @ rows.T, np.full((4, 4), h), ORDER, 0.3)[0]
        g, length = coefficients @ rows, np.linalg.norm
        p = rows[0] @ rows[1] / length(rows[0]) / length(rows[1])
        reached = g[0] @ rows[1] / length(g[0]) / length(rows[1])
        assert reached == pytest.approx(max(p, h), abs=1e-9)
        if p < h:
            assert length(g[0]) == pytest.approx(length(rows[0]) * np.sqrt(1 - p**2) / np.sqrt(1 - h**2))


def test_what_is_not_finite_moves_no_target(run):
    gram = np.eye(4)
    gram[0, 1] = np.nan
    for coefficients, target in run(gram, np.full((4, 4), 0.2), ORDER, 0.5):
        assert (target == 0.2).all()
        np.testing.assert_allclose(coefficients, np.eye(4))


GRADS = {"a": RNG.normal(size=(3, 4)).astype(np.float32), "b": RNG.normal(size=(3, 2, 3)).astype(np.float32)}
PARAMS = jax.tree.map(lambda leaf: leaf[0], GRADS)


OTHER = jax.random.key(4, impl="rbg")


def order_of(key, group, groups, step):
    own = jax.random.fold_in(jax.random.split(key, groups)[group], step)
    return np.asarray(visiting_order(own, 3))


@pytest.fixture(scope="module")
def stepped():
    """Two steps of each, all in one program."""
    key = jax.random.key(3)
    made = {
        "all": gradvac(key, 3, beta=0.4, target=0.9),
        "leaf": gradvac(key, 3, beta=0.4, target=0.9, track="raw", per="leaf"),
        "fixed": gradvac(key, 3, beta=0.0, target=0.5, rescale=True),
        "old-key": gradvac(jax.random.PRNGKey(3), 3, beta=0.4, target=0.9),
        "other-generator": gradvac(OTHER, 3, beta=0.4, target=0.9),
        "pcgrad": pcgrad(key, 3),
        "gradvac-pcgrad": gradvac(key, 3, beta=0.0),
    }

    def both(grads):
        def two(tx):
            first, state = tx.update(grads, tx.init(PARAMS), PARAMS)
            return first, *tx.update(grads, state, PARAMS)

        return {name: two(tx) for name, tx in made.items()} | {"cancelled": jax.vmap(cancelled)(OPPOSED)}

    def cancelled(rows):
        return vaccine(rows @ rows.T, jnp.zeros((3, 3)), jnp.array([[1, 2], [0, 2], [0, 1]]), 0.5)

    return key, quick(both, GRADS)


# A gradient, a negative multiple of it, and another, in float32.
SIDES = RNG.normal(size=(20, 2, 7))
OPPOSED = np.stack([SIDES[:, 0], -0.3 * SIDES[:, 0], SIDES[:, 1]], axis=1).astype(np.float32)


def flat(tree):
    return np.concatenate([np.asarray(tree["a"]).ravel(), np.asarray(tree["b"]).ravel()])


def test_transformations_use_fresh_orders_and_keep_targets(stepped):
    key, found = stepped
    rows = np.concatenate([GRADS["a"], GRADS["b"].reshape(3, -1)], axis=1).astype(np.float64)
    for name, own in (("other-generator", as_key(OTHER)), ("all", key)):
        target = np.full((3, 3), 0.9)  # all are pulled, and each order gives another sum
        for step in range(2):
            other, _ = by_vectors(rows, target, order_of(own, 0, 1, 1 - step), 0.4)
            expected, target = by_vectors(rows, target, order_of(own, 0, 1, step), 0.4)
            np.testing.assert_allclose(flat(found[name][step]), expected.sum(0), rtol=1e-4, atol=1e-5)
            assert np.abs(other.sum(0) - expected.sum(0)).max() > 0.01 or name == "other-generator"
        state = found[name][2].weightings[0]
        np.testing.assert_allclose(state.target[0], target, rtol=1e-4)
        assert state.count.tolist() == [2]
    assert (flat(found["old-key"][1]) == flat(found["all"][1])).all()
    target = np.full((3, 3), 0.5)
    expected = by_vectors(rows, target, order_of(key, 0, 1, 0), 0.0)[0].sum(0)
    expected *= np.linalg.norm(rows.sum(0)) / np.linalg.norm(expected)
    np.testing.assert_allclose(flat(found["fixed"][0]), expected, rtol=1e-4, atol=1e-5)
    assert (found["fixed"][2].weightings[0].target == 0.5).all()
    assert (flat(found["pcgrad"][1]) == flat(found["gradvac-pcgrad"][1])).all()
    expected = by_vectors(rows, np.zeros((3, 3)), order_of(key, 0, 1, 1), 0.0)[0].sum(0)
    np.testing.assert_allclose(flat(found["pcgrad"][1]), expected, rtol=1e-4, atol=1e-5)


def test_what_rounding_leaves_of_a_cancelled_gradient_visits_nobody(stepped):
    coefficients, target = stepped[1]["cancelled"]
    np.testing.assert_allclose(coefficients[:, 0, 1], 1 / 0.3, rtol=1e-4)
    assert (coefficients[:, :2, 2] == 0).all()
    assert (target[:, :2, 2] == 0).all()
    assert (target[:, 2, :2] != 0).all()


def test_tasks_visit_in_orders_of_their_own():
    orders = np.stack([order_of(jax.random.key(3), 0, 1, step) for step in range(6)])
    assert (np.sort(orders, axis=2) == np.arange(3)).all()
    assert any((rows != rows[0]).any() for rows in orders)


def test_every_leaf_has_targets_and_orders_of_its_own(stepped):
    """Targets so high that all are pulled: with the order of another leaf or step the sum is another one."""
    key, found = stepped
    orders = {(group, step): order_of(key, group, 2, step) for group in range(2) for step in range(2)}
    for group, name in enumerate(("a", "b")):
        rows, target = GRADS[name].reshape(3, -1).astype(np.float64), np.full((3, 3), 0.9)
        for step in range(2):
            sums = {at: by_vectors(rows, target, order, 0.4, "raw")[0].sum(0) for at, order in orders.items()}
            expected, target = sums.pop((group, step)), by_vectors(rows, target, orders[group, step], 0.4, "raw")[1]
            np.testing.assert_allclose(found["leaf"][step][name].ravel(), expected, rtol=1e-4, atol=1e-5)
            assert all(np.abs(other - expected).max() > 0.01 for other in sums.values())
        np.testing.assert_allclose(found["leaf"][2].weightings[0].target[group], target, rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gradvac(jax.random.key(0), 3, beta=1.5), r"beta must be in \[0, 1\]; got 1.5"),
        (lambda: gradvac(jax.random.key(0), 3, target=1.0), r"target must be in \(-1, 1\)"),
        (lambda: gradvac(jax.random.key(0), 0), "num_tasks must be >= 1"),
        (lambda: pcgrad(jax.random.key(0), 0), "num_tasks must be >= 1"),
        (lambda: gradvac(jax.random.key(0), 3, track="best"), "track must be 'modified' or 'raw'"),  # pyright: ignore
        (lambda: gradvac(jax.random.key(0), 2).update(GRADS, None, PARAMS), "gradvac.num_tasks must be 3.*got 2"),
        (lambda: pcgrad(jax.random.key(0), 2).update(PARAMS, None, PARAMS), "jax.jacrev"),
        (lambda: vaccine(jnp.eye(2), jnp.eye(2), jnp.zeros((2, 1), int), -0.1), "beta must be in"),
        (lambda: vaccine(jnp.eye(2), jnp.eye(3), jnp.zeros((2, 1), int)), r"target must be of shape \(2, 2\)"),
        (lambda: vaccine(jnp.eye(2), jnp.eye(2), jnp.zeros(2, int)), r"order must be \[2, visits\]"),
        (lambda: vaccine(jnp.ones((2, 3)), jnp.eye(2), jnp.zeros((2, 1), int)), "gram must be a square matrix"),
    ],
)
def test_bad_input_of_vaccines(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_constant_gradients_bring_targets_to_their_cosine():
    tx = optax.chain(gradvac(jax.random.key(0), 2, beta=0.1), optax.sgd(0.1))
    grads, params = jnp.array([[1.0, 0.0], [0.6, 0.8]]), jnp.zeros(2)

    def many(grads):
        body = lambda state, _: (tx.update(grads, state, params)[1], None)  # noqa: E731
        return jax.lax.scan(body, tx.init(params), length=20)[0]

    target = quick(many, grads)[0].weightings[0].target[0]
    np.testing.assert_allclose(target[0, 1], 0.6 * (1 - 0.9**20), rtol=1e-5)  # h_t = p (1 - (1-β)^t)
