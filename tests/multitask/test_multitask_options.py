"""What rules do with their options in pairs, what tuning reports, and geometry at its ends; all recomputed in NumPy."""

import itertools

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
    imtl_g,
    mgda,
    select,
    task_geometry,
    train,
    tune,
    uniform,
    unit_sum,
)

RNG = np.random.default_rng(4)
# Of three tasks; the first leaf belongs to the first task alone, and the second task's gradient is 0 in one leaf.
GRADS = {
    name: RNG.normal(size=(3, *shape)).astype(np.float32) for name, shape in (("h", (2,)), ("u", (4,)), ("v", (5,)))
}
GRADS["h"][1:] = 0
PARAMS = {name: np.zeros(leaf.shape[1:], np.float32) for name, leaf in GRADS.items()}
GRAM = np.array([[2.0, 0.1, 0.2], [0.1, 1.0, -0.3], [0.2, -0.3, 4.0]], np.float32)
SHARED = {"h": False, "u": True, "v": True}


def shortest(gram):
    """The weights >= 0 of the shortest combination, by the best of all sets of tasks."""
    best, found = np.inf, np.zeros(len(gram))
    for chosen in (list(c) for n in (1, 2, 3) for c in itertools.combinations(range(3), n)):
        a, inverse = np.zeros(3), np.linalg.solve(gram[np.ix_(chosen, chosen)], np.ones(len(chosen)))
        a[chosen] = inverse / inverse.sum()
        if (a >= 0).all() and a @ gram @ a < best:
            best, found = a @ gram @ a, a
    return found


def lengths_of(gram):
    return np.sqrt(np.diag(gram))


def fair(gram, normalise):
    x = np.linalg.solve(gram / np.outer(lengths_of(gram), lengths_of(gram)), np.ones(3))
    a = x / lengths_of(gram)
    return a / a.sum() if normalise == "sum" else 3 * a / x.sum()


def of_units(gram):
    n = lengths_of(gram)
    return shortest(gram / np.outer(n, n)) / n


RULES = {
    "unit_sum": (unit_sum, lambda gram: 1 / lengths_of(gram)),
    "imtl_g": (imtl_g, lambda gram: fair(gram, "unit")),
    "imtl_g-sum": (lambda **more: imtl_g(normalise="sum", **more), lambda gram: fair(gram, "sum")),
    "mgda": (mgda, shortest),
    "mgda-unit": (lambda **more: mgda(normalise=True, **more), of_units),
}
CASES = [
    (name, rescale, per, given)
    for name in RULES
    for rescale in (False, True)
    for per, given in (("all", False), ("all", True), ("leaf", False))
]


@pytest.fixture(scope="module")
def moved():
    def every(grads):
        updates = []
        for name, rescale, per, given in CASES:
            tx = RULES[name][0](shared=SHARED, rescale=rescale, per=per)
            more = {"gram": GRAM} if given else {}
            updates.append(tx.update(grads, tx.init(PARAMS), PARAMS, **more)[0])
        return updates

    return dict(zip(CASES, quick(every, GRADS), strict=True))


@pytest.mark.parametrize("name", RULES)
def test_every_rule_with_every_pair_of_options(moved, name):
    """Weights from each group's own Gram matrix or the one given; the length is that of the plain sum of the group."""
    for rescale, (per, given) in itertools.product((False, True), (("all", False), ("all", True), ("leaf", False))):
        found = moved[name, rescale, per, given]
        np.testing.assert_array_equal(found["h"], GRADS["h"][0])
        for group in (("u", "v"),) if per == "all" else (("u",), ("v",)):
            rows = np.concatenate([GRADS[leaf] for leaf in group], axis=1).astype(np.float64)
            step = RULES[name][1](GRAM.astype(np.float64) if given else rows @ rows.T) @ rows
            if rescale:
                step *= np.linalg.norm(rows.sum(0)) / np.linalg.norm(step)
            got = np.concatenate([found[leaf] for leaf in group])
            np.testing.assert_allclose(got, step, rtol=1e-3, atol=1e-4, err_msg=f"{rescale} {per} {given}")


def test_rules_one_after_the_other_multiply_on_heads_and_on_what_is_shared():
    """Each sees gradients and losses of those before; heads take the factors of those alone that scale losses."""
    double = Weighting(
        "double", lambda n: (), lambda gram, losses, s: (2 * losses / losses, s), heads=True, losses=True
    )
    inverse = Weighting("inverse", lambda n: (), lambda gram, losses, s: (1 / losses, s), heads=True, losses=True)
    length = Weighting("length", lambda n: (), lambda gram, losses, s: (jnp.diagonal(gram), s))
    losses = np.array([0.5, 4.0, 1.0], np.float32)

    def both(grads):
        found = []
        for rules in ((double, inverse, length), (length, double, inverse), (inverse, length, double)):
            tx = aggregator(*rules, shared=SHARED)
            found.append(tx.update(grads, tx.init(PARAMS), losses=losses)[0])
        return found

    for order, found in zip(("dil", "ldi", "ild"), quick(both, GRADS), strict=True):
        rows = np.concatenate([GRADS["u"], GRADS["v"]], axis=1).astype(np.float64)
        weights, head = np.ones(3), np.ones(3)
        for rule in order:
            gram = weights[:, None] * (rows @ rows.T) * weights
            factor = {"d": 2 + 0 * losses, "i": 1 / (weights * losses), "l": np.diag(gram)}[rule]
            weights, head = weights * factor, head * (1 if rule == "l" else factor)
        np.testing.assert_allclose(np.concatenate([found["u"], found["v"]]), weights @ rows, rtol=1e-4, err_msg=order)
        np.testing.assert_allclose(found["h"], head[0] * GRADS["h"][0], rtol=1e-5, err_msg=order)


# --- geometry at its ends ---------------------------------------------------------------------------------------------


def test_geometry_of_orthogonal_opposed_and_missing_gradients():
    """A product of 0 is no conflict; what has no direction has a cosine and a projection of 0; one task has no pair."""
    rows = np.array([[1.0, 0], [0, 2.0], [-3.0, 0], [0, 0]], np.float32)
    opposed, alone, broken = rows[[0, 0]] * np.array([[1.0], [-1.0]], np.float32), rows[:1], np.full((2, 2), np.inf)
    steps = np.array([[1.0, 2.0], [np.inf, 0.0], [np.nan, 1.0]])

    def every(steps, *all_):
        return [task_geometry(one) for one in all_], jax.vmap(lambda step: task_geometry(all_[0], step).status)(steps)

    (whole, two, one, bad), of_steps = quick(every, steps, rows, opposed, alone, broken)
    assert whole.conflicts == pytest.approx(1 / 6)
    np.testing.assert_allclose(whole.cosines, [[1, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(whole.projections, [-2, 2, 2, 0])
    assert (whole.cost, whole.status, whole.amplification) == (4, Status.OK, pytest.approx(1))
    assert (two.conflicts, two.amplification, two.projections.tolist()) == (1, 0, [0, 0])
    assert (one.conflicts, one.amplification, one.cost) == (0, 1, 1)
    assert bad.status == Status.DIVERGED
    assert of_steps.tolist() == [Status.OK, Status.DIVERGED, Status.DIVERGED]


# --- training and tuning ----------------------------------------------------------------------------------------------


class Points:
    """Two tasks that pull one number to 1 and to 3 as hard as 1 and `pull`; both parts of the data score apart."""

    def __init__(self, pull=1.0, blind=False):
        self.pull, self.blind = pull, blind

    def batch(self, key):
        return jnp.array([1.0, 3.0])

    def losses(self, params, batch):
        return jnp.array([1.0, self.pull]) * (params - batch) ** 2

    def scores(self, params, part):
        shift = 0.0 if part == "validation" else 10.0
        # As a classifier's accuracy, which is a number even where the network is none.
        known = jnp.where(jnp.isfinite(params), params, 2.5) if self.blind else params
        return shift - jnp.array([1.0, 4.0]) * jnp.abs(known - jnp.array([1.0, 3.0]))


def path_of(rate, steps, pull=1.0):
    x, path = 0.0, []
    for _ in range(steps):
        path.append([(x - 1) ** 2, pull * (x - 3) ** 2])
        x -= rate * 2 * ((x - 1) + pull * (x - 3))
    return x, np.array(path)


def test_tuning_keeps_the_best_rate_by_the_validation_part_and_tells_of_the_other():
    """All numbers from the path of each rate; a run that was lost is never kept."""
    rates, lost = (0.02, 0.1, 0.4), (50.0, 0.03, 40.0)
    make = lambda rate: optax.chain(uniform(), optax.sgd(rate))  # noqa: E731
    watch = lambda grads, updates, losses, state: losses.sum()  # noqa: E731
    key, start = jax.random.key(0), jnp.zeros(())

    def every():
        chosen = {c: tune(key, Points(), make, start, rates, 3, choose=c, watch=watch) for c in ("worst", "mean")}
        blind = tune(key, Points(blind=True), make, start, lost, 60)
        none = [tune(key, Points(blind=True), make, start, lost[:1], 60, **more) for more in ({}, {"failed": -1.0})]
        return chosen, blind, none, train(key, Points(), make(0.1), start, 3)

    chosen, blind, none, (params, history) = quick(every)
    ends = [path_of(rate, 3)[0] for rate in rates]
    scores = np.array([[-abs(x - 1), -4 * abs(x - 3)] for x in ends])
    for name, quality in (("worst", scores.min(1)), ("mean", scores.mean(1))):
        best = int(quality.argmax())
        assert chosen[name].rate == np.float32(rates[best])
        np.testing.assert_allclose(chosen[name].scores, 10 + scores[best], rtol=1e-5)
        np.testing.assert_allclose(chosen[name].watched, path_of(rates[best], 3)[1].sum(1), rtol=1e-5)
    assert blind.rate == np.float32(0.03)
    assert [one.scores.tolist() for one in none] == [[-np.inf, -np.inf], [-1, -1]]  # below all, or what the user says
    np.testing.assert_allclose(params, path_of(0.1, 3)[0], rtol=1e-6)
    np.testing.assert_allclose(history.losses, path_of(0.1, 3)[1], rtol=1e-5)


def test_the_worst_and_the_mean_choose_otherwise():
    """Scores by hand: of the second rate the mean is better, of the first the worst."""

    class Told(Points):
        def scores(self, params, part):
            return jnp.where(params == 1.0, jnp.array([2.0, 2.0]), jnp.array([1.0, 9.0])) - float(part == "test")

    stay = lambda rate: optax.stateless(lambda grads, params: jnp.full_like(params, rate))  # noqa: E731
    run = lambda choose: tune(jax.random.key(0), Told(), stay, jnp.zeros(()), (1.0, 2.0), 1, choose=choose)  # noqa: E731
    worst, mean = quick(lambda: (run("worst"), run("mean")))
    assert (worst.rate, worst.scores.tolist()) == (1.0, [1, 1])
    assert (mean.rate, mean.scores.tolist()) == (2.0, [0, 8])


def test_training_hands_on_a_gram_matrix_and_lets_look_at_every_step():
    """Unit sums of lengths that are told by parameters and batch before the step; the state is that after it."""
    told = lambda params, batch: jnp.diag((params + batch) ** 2)  # noqa: E731
    watch = lambda grads, updates, losses, state: (grads, updates, state[1].count)  # noqa: E731
    tx = optax.chain(unit_sum(), optax.scale_by_schedule(lambda count: -0.1 * (count + 1)))
    run = lambda: train(jax.random.key(0), Points(), tx, jnp.zeros(()), 3, gram=told, watch=watch)  # noqa: E731
    found, history = quick(run)
    x, target = 0.0, np.array([1.0, 3.0])
    for step in range(3):
        rows, weights = 2 * (x - target), 1 / (x + target)
        move = -0.1 * (step + 1) * rows @ weights
        for got, wanted in zip(history.watched, (rows, move, step + 1), strict=True):
            np.testing.assert_allclose(got[step], wanted, rtol=1e-5)
        np.testing.assert_allclose(history.losses[step], (x - target) ** 2, rtol=1e-5)
        x += move
    np.testing.assert_allclose(found, x, rtol=1e-5)


def test_only_the_chosen_one_of_several_moves_its_state():
    """By a number that is traced; extra arguments reach it."""
    counting = lambda scale: optax.GradientTransformationExtraArgs(  # noqa: E731
        lambda params: jnp.zeros(()),
        lambda grads, state, params=None, *, losses=None: (
            scale * jnp.sum(grads, axis=0) + jnp.sum(losses),
            state + scale,
        ),
    )
    made = tuple(counting(scale) for scale in (1.0, 2.0, 3.0))

    def run(number, grads):
        tx = select(number, made)
        return tx.update(grads, tx.init(jnp.zeros(2)), losses=jnp.array([10.0, 20.0]))

    grads = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
    updates, states = quick(jax.vmap(run, (0, None)), np.arange(3), grads)
    np.testing.assert_allclose(updates, [[scale * 4 + 30, scale * 7 + 30] for scale in (1, 2, 3)])
    np.testing.assert_array_equal(np.stack(states, axis=1), np.diag([1.0, 2.0, 3.0]))
