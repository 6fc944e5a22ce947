"""Proposals, orders, bad input, and the weights in other people's estimators."""

import itertools
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from laureate._core import Status
from laureate.active import (
    RISKS,
    WEIGHTS,
    Acquisition,
    AcquisitionState,
    WeightWarning,
    check_log,
    lure_ratio,
    lure_risk,
    lure_weights,
    plackett_luce,
)

SCORES = np.array([0.1, 0.4, 0.3, 0.2])


@pytest.fixture(scope="module")
def orders():
    """Two picks of four by both ways, 20,000 times, and log q of each."""

    def sequential(key):
        acquisition, state = Acquisition(beta=2.0, floor=0.0), Acquisition().init(4)
        keys = jax.random.split(key)
        first, state, one = acquisition.step(keys[0], SCORES, state)
        second, state, two = acquisition.step(keys[1], SCORES, state)
        return jnp.stack([first, second]), jnp.stack([one.log_q, two.log_q])

    keys = jax.random.split(jax.random.key(3), 20_000)
    at_once = jax.jit(jax.vmap(lambda key: plackett_luce(key, 2 * jnp.log(SCORES), 2)))
    return {"sequential": jax.jit(jax.vmap(sequential))(keys), "at once": at_once(keys)}


@pytest.mark.parametrize("way", ["sequential", "at once"])
def test_orders_have_the_law_of_sequential_picking_and_say_so(orders, way):
    picks, log_q = map(np.asarray, orders[way])
    mass = SCORES**2
    statistic = 0.0
    for i in range(4):
        for j in set(range(4)) - {i}:
            rows = (picks == [i, j]).all(1)
            q = np.array([mass[i] / mass.sum(), mass[j] / (mass.sum() - mass[i])])
            np.testing.assert_allclose(np.exp(log_q[rows]), np.tile(q, (rows.sum(), 1)), rtol=1e-5)
            statistic += (rows.sum() - 20_000 * q.prod()) ** 2 / (20_000 * q.prod())
    assert statistic < 31.3  # χ² of 11 degrees of freedom, 0.1 %


def test_proposals_are_what_they_say():
    state = AcquisitionState(np.array([True, False, True, True]))
    left = np.array([0.1, 0.3, 0.2])

    @eqx.filter_jit
    def all_kinds(beta, floor, state):
        kinds = ("proportional", "softmax", "greedy")
        laws = [jnp.exp(Acquisition(beta, floor, kind).log_proposal(SCORES, state)) for kind in kinds]
        return [*laws, jnp.exp(Acquisition(beta, floor).log_proposal(SCORES - SCORES[0], state))]

    for beta, floor in ((1.0, 0.0), (3.0, 0.2), (0.0, 0.3), (2.0, 1.0)):
        laws = [left**beta / (left**beta).sum(), np.exp(beta * left) / np.exp(beta * left).sum(), [0, 1, 0]]
        above = left - left[0]  # a score of 0, and 0^0 = 1
        laws.append(above**beta / (above**beta).sum())
        for found, law in zip(all_kinds(jnp.asarray(beta), jnp.asarray(floor), state), laws, strict=True):
            expected = (1 - floor) * np.asarray(law) + floor / 3
            np.testing.assert_allclose(found, [expected[0], 0, *expected[1:]], rtol=1e-5, atol=1e-7)


def law_by_hand(kind, scores, left, beta, floor):
    """The proposal as the docstring has it, NaN where there is none; 0^0 = 1, and the first of equal scores is best."""
    law = np.full(len(scores), np.nan)
    if kind == "greedy":
        law = np.eye(len(scores))[np.argmax(np.where(left, scores, -np.inf))]
    elif kind == "softmax":
        law = np.where(left, np.exp(beta * scores), 0)
    elif (scores[left] >= 0).all():
        law = np.where(left, np.abs(scores) ** beta, 0)
    law = law / law.sum() if law.sum() > 0 else np.full(len(scores), np.nan)
    uniform = left / left.sum()
    return uniform if floor == 1 else (1 - floor) * law + floor * uniform


def test_all_laws_on_all_pools_are_those_of_the_docstring():
    """Scores of every sign, zeros and ties, every set of points left, no, some and full sharpness and floor."""
    scores = np.array(list(itertools.product([-1.0, 0.0, 2.0], repeat=3)))
    pools = np.array([left for left in itertools.product([False, True], repeat=3) if any(left)])
    rows = list(itertools.product(scores, pools, (0.0, 0.5, 2.0), (0.0, 0.3, 1.0)))
    kinds = ("proportional", "softmax", "greedy")

    @jax.jit
    @jax.vmap
    def found(key, scores, left, beta, floor):
        each = [Acquisition(beta, floor, kind) for kind in kinds]
        state = AcquisitionState(left)
        return [(one.log_proposal(scores, state), one.step(key, scores, state)) for one in each]

    given = [np.array(column) for column in zip(*rows, strict=True)]
    laws = jax.tree.map(np.asarray, found(jax.random.split(jax.random.key(0), len(rows)), *given))
    for kind, (log_q, (pick, after, info)) in zip(kinds, laws, strict=True):
        wanted = np.array([law_by_hand(kind, *row) for row in rows])
        fails = np.isnan(wanted).any(1)
        np.testing.assert_allclose(np.exp(log_q)[~fails], wanted[~fails], atol=1e-6, err_msg=kind)
        np.testing.assert_array_equal(info.status, np.where(fails, Status.DIVERGED, Status.OK), kind)
        picked = np.where(fails, np.nan, wanted[np.arange(len(rows)), pick])
        np.testing.assert_allclose(info.q, picked, rtol=1e-5)
        np.testing.assert_allclose(np.exp(info.log_q), picked, rtol=1e-5)
        assert given[1][np.arange(len(rows)), pick][~fails].all()
        assert fails.any() == (kind == "proportional")
        np.testing.assert_array_equal(after.left.sum(1)[~fails], given[1].sum(1)[~fails] - 1)


def test_points_that_must_not_be_picked_are_not():
    scores = np.array([0.0, -np.inf, 1.0, -np.inf, -2.0], np.float32)
    picks, log_q = jax.jit(lambda key: plackett_luce(key, scores, 3))(jax.random.key(0))
    assert sorted(picks.tolist()) == [0, 2, 4]
    assert float(log_q[-1]) == pytest.approx(0, abs=1e-6)
    with pytest.raises(ValueError, match="num_picks must be <= 3, the points that may be picked; got 4"):
        plackett_luce(jax.random.key(0), scores, 4)


def test_a_step_takes_its_point_and_failure_is_a_value():
    acquisition = Acquisition(floor=0.0)
    step = eqx.filter_jit(acquisition.step)
    state, seen = acquisition.init(4), []
    for number in range(4):
        pick, state, info = step(jax.random.key(number), SCORES, state)
        seen.append(int(pick))
        assert int(info.status) == Status.OK
        assert int(info.cost) == 1
        assert float(info.q) == pytest.approx(float(jnp.exp(info.log_q)))
    assert sorted(seen) == [0, 1, 2, 3]
    assert not state.left.any()
    for scores, left in ((SCORES, np.zeros(4, bool)), (-SCORES, np.ones(4, bool)), (0 * SCORES, np.ones(4, bool))):
        _, after, info = step(jax.random.key(9), scores, AcquisitionState(left))
        assert int(info.status) == Status.DIVERGED
        assert np.isnan(info.q)
        assert int(info.cost) == 0
        np.testing.assert_array_equal(after.left, left)  # nothing was bought


def test_a_score_that_is_not_finite_fails_every_law_that_asks_for_it():
    """Every pool of four that has a point left, with the bad score at each place, under every law and floor."""
    pools = np.array([left for left in itertools.product([False, True], repeat=4) if any(left)])
    left, place, bad, floor = (
        np.array(column)
        for column in zip(*itertools.product(pools, range(4), (np.nan, np.inf), (0.0, 0.2, 1.0)), strict=True)
    )
    scores = np.where(np.arange(4) == place[:, None], bad[:, None], SCORES)

    @jax.jit
    @jax.vmap
    def picks(key, scores, left, floor):
        rules = [Acquisition(2.0, floor, kind) for kind in ("proportional", "softmax", "greedy")]
        steps = [rule.step(key, scores, AcquisitionState(left)) for rule in rules]
        return [(pick, after.left, info) for pick, after, info in steps]

    asked = left[np.arange(len(left)), place] & (floor < 1)  # a floor of 1 asks for no scores at all
    for pick, after, info in picks(jax.random.split(jax.random.key(0), len(left)), scores, left, floor):
        np.testing.assert_array_equal(info.status, np.where(asked, Status.DIVERGED, Status.OK))
        np.testing.assert_array_equal(np.isnan(info.q), asked)
        np.testing.assert_array_equal(np.isnan(info.log_q), asked)
        assert left[~asked, np.asarray(pick)[~asked]].all()
        np.testing.assert_array_equal(after, left & (asked[:, None] | (np.arange(4) != np.asarray(pick)[:, None])))
        np.testing.assert_array_equal(info.cost, ~asked)


def test_sharp_scores_do_not_cancel():
    """The mass left after a point with nearly all of it is not a difference of large numbers."""
    _, log_q = plackett_luce(jax.random.key(0), jnp.array([60.0, 0.0, 0.0, 0.0, 0.0]), 5)
    np.testing.assert_allclose(np.exp(log_q), [1, 1 / 4, 1 / 3, 1 / 2, 1], rtol=1e-5)


def test_no_retrace_gradient_and_both_precisions():
    traces = []

    @jax.jit
    def risk(losses, q):
        traces.append(1)
        return lure_risk(losses, q, 30).value

    losses, q = np.array([0.4, 1.0, 0.1], np.float32), np.array([0.2, 0.1, 0.3], np.float32)
    for scale in (1, 2):
        risk(scale * losses, q / scale)
    assert len(traces) == 1
    assert risk(losses, q).dtype == jnp.float32
    np.testing.assert_allclose(jax.grad(risk)(losses, q), lure_weights(q, 30) / 3, rtol=1e-6)
    half = lure_risk(losses.astype(np.float16), q.astype(np.float16), 30)
    assert half.value.dtype == jnp.float32


def test_all_is_computed_in_the_precision_given_and_in_single_at_least():
    q, scores, left = np.array([0.2, 0.125, 0.3]), np.array([0.1, 0.7, 0.3]), np.array([True, False, True])
    types = {"bfloat16": "float32", "float16": "float32", "float32": "float32", "float64": "float64"}

    @jax.jit
    def found(q, scores):
        law = Acquisition(2.0, 0.1, "softmax").log_proposal(scores, AcquisitionState(left))
        return [weights(q, 30) for weights in WEIGHTS.values()], law, plackett_luce(jax.random.key(0), scores, 2)

    with jax.enable_x64(True):
        for given, kept in types.items():
            rounded = [jnp.asarray(numbers, given) for numbers in (q, scores)]
            weights, law, (picks, log_q) = found(*rounded)
            assert {str(array.dtype) for array in (*weights, law, log_q)} == {kept}
            p, s = (np.asarray(numbers, np.float64) for numbers in rounded)
            m, rtol = np.arange(1, 4), 1e-12 if kept == "float64" else 1e-6
            np.testing.assert_allclose(weights[0], 1 + 27 / (30 - m) * (1 / ((31 - m) * p) - 1), rtol=rtol)
            mass = np.exp(2 * s) * left
            np.testing.assert_allclose(np.exp(law)[left], (0.9 * mass / mass.sum() + 0.05)[left], rtol=rtol)
            mass = np.exp(s)
            mass_left = mass.sum() - np.r_[0, mass[picks[0]]]
            np.testing.assert_allclose(np.exp(log_q), mass[np.asarray(picks)] / mass_left, rtol=rtol)
        # Neither certain nor impossible, though single precision takes them for that.
        extreme = np.asarray(lure_weights(np.array([1 - 1e-12, 1e-50]), 5))
        np.testing.assert_allclose(extreme, [1 - 3 / 4 * 4 / 5, 1 + 1e50 / 4], rtol=1e-11)


def test_weights_are_sample_weights():
    rng = np.random.default_rng(0)
    x, y, q = rng.normal(size=(20, 2)), rng.normal(size=20), rng.uniform(0.01, 0.05, 20)
    for weights in WEIGHTS.values():
        v = np.asarray(weights(q, 60), np.float64)
        found: Any = LinearRegression().fit(x, y, sample_weight=v)
        a = np.column_stack([x, np.ones(20)])
        np.testing.assert_allclose([*found.coef_, found.intercept_], np.linalg.solve((a.T * v) @ a, a.T @ (v * y)))


ALL = [*WEIGHTS.values()]


@pytest.mark.parametrize("weights", ALL)
@pytest.mark.parametrize(
    ("q", "pool", "log", "said"),
    [
        ([0.5, 0.0, 0.2], 9, False, r"in \(0, 1\]; got 0.0 at position 1"),
        ([0.5, 0.1, float("nan")], 9, False, "got nan at position 2"),
        ([0.5, 1.2], 9, False, "got 1.2 at position 1"),
        (
            [0.5, 1.0, 0.5],
            9,
            False,
            "below 1 while other points are left; got 1 at position 1. A pick that was certain",
        ),
        ([-0.5, 0.3], 9, True, "<= 0, as a logarithm; got 0.3 at position 1"),
        ([-0.5, float("-inf")], 9, True, "finite and <= 0"),
        ([0.0, -1.0], 9, True, "got 1 at position 0"),
        ([0.5, 0.5, 0.5], 2, False, r"num_pool must be >= the number of picks, 3; got 2"),
        ([[0.5, 0.5]], 9, False, r"q must be one number a pick, \[M\] with M >= 1; got \(1, 2\)"),
        ([], 9, False, r"got \(0,\)"),
    ],
)
def test_wrong_probabilities(weights, q, pool, log, said):
    with pytest.raises(ValueError, match=said):
        weights(np.array(q), pool, log=log)


@pytest.mark.parametrize("log", [False, True])
def test_the_last_pick_of_a_whole_pool_may_be_certain_and_no_earlier_one(log):
    m, q = np.arange(1, 4), np.array([0.5, 0.25, 1.0])
    wanted = {"lure": np.ones(3), "pure": 1 / (3 * q) + (3 - m) / 3, "importance": 1 / (3 * q), "plain": np.ones(3)}
    given, rest = (np.log(p) if log else p for p in (q, q[1:]))
    for name, weights in WEIGHTS.items():
        np.testing.assert_allclose(weights(given, 3, log=log), wanted[name], rtol=1e-6, err_msg=name)
        for pool in (3, 4):  # of which one or two are left
            with pytest.raises(ValueError, match="below 1 while other points are left; got 1 at position 1"):
                weights(rest, pool, log=log)
    check_log([2, 0, 1], given, 3, log=log)
    with pytest.raises(ValueError, match="below 1 while other points are left; got 1 at position 2"):
        check_log([2, 0, 1], given, 4, log=log)


def test_wrong_losses_and_settings():
    for risk in RISKS.values():
        with pytest.raises(ValueError, match=r"losses must be of shape \(2,\) or \(2, models\), as q; got \(3,\)"):
            risk(np.ones(3), np.array([0.5, 0.25]), 5)
    with pytest.raises(ValueError, match=r"denominator must be of shape \(2,\); got \(3,\)"):
        lure_ratio(np.ones(2), np.ones(3), np.array([0.5, 0.25]), 5)
    for settings in ({"beta": -1.0}, {"floor": 1.5}, {"kind": "best"}):
        with pytest.raises(ValueError, match=f"Acquisition.{next(iter(settings))} must be"):
            Acquisition(**settings)
    with pytest.raises(ValueError, match=r"scores must be of shape \(4,\); got \(3,\)"):
        Acquisition().step(jax.random.key(0), np.ones(3), Acquisition().init(4))
    with pytest.raises(ValueError, match=r"num_picks must be in 1..4; got 5"):
        plackett_luce(jax.random.key(0), jnp.zeros(4), 5)
    with pytest.raises(ValueError, match="num_pool must be >= 1"):
        Acquisition().init(0)
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\)"):
        lure_risk(np.ones(2), np.array([0.5, 0.25]), 5).interval(1.5)


@pytest.mark.parametrize(
    ("picks", "said"),
    [([3, 3], "without repetition"), ([3, 5], "in 0..4"), ([1.0, 2.0], "whole numbers"), ([1], "one for each q")],
)
def test_logs_that_cannot_be(picks, said):
    with pytest.raises(ValueError, match=said):
        check_log(picks, [0.5, 0.25], 5)


def test_what_looks_wrong_is_warned_of():
    n, m = 200, 40
    q = np.full(m, 1 / 300) * np.exp(0.1 * np.random.default_rng(0).normal(size=m))
    with pytest.warns(WeightWarning, match="should average 1. Is q normalised"):
        lure_risk(np.ones(m), q, n)
    few = np.array([300.0, 340, 380, 300, 320, 390, 310, 330, 350, 360]) / 1e5
    v = 1 + (n - 10) / (n - np.arange(1, 11)) * (1 / ((n - np.arange(10)) * few) - 1)
    told = f"the weights average {v.mean():.3g} ± {v.std(ddof=1) / np.sqrt(10):.2g} and should average 1"
    with pytest.warns(WeightWarning, match=told):
        lure_risk(np.ones(10), few, n)
    sharp = np.r_[np.full(39, 0.01), 1e-5]
    with pytest.warns(WeightWarning, match="40 labels are worth"):
        RISKS["pure"](np.ones(m), sharp, n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lure_risk(np.ones(m), 1 / (n - np.arange(m)), n)
        RISKS["plain"](np.ones(m), sharp, n)


def test_few_labels_that_decide_are_warned_of_by_share_and_by_number():
    """Weights w by hand, from q = 1/(N w): a share above a fifth, few effective labels, both, neither, nine picks."""
    flat = np.full(60, 1.0)
    cases = {
        "one share": np.r_[np.full(10, 1.0), 3.0],  # 3/13 of the weight; 169/19 labels of 11
        "few effective": np.r_[np.full(6, 60.0), flat],  # 60/420 of the weight; 176400/21660 labels of 66
        "both": np.r_[300.0, flat],
        "neither": np.r_[5.0, flat],
        "nine": np.r_[np.full(8, 1.0), 30.0],
    }
    for name, w in cases.items():
        share, effective = w.max() / w.sum(), w.sum() ** 2 / (w**2).sum()
        told = len(w) >= 10 and (share > 0.2 or effective < len(w) / 5)
        assert told == (name not in ("neither", "nine"))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            RISKS["importance"](np.ones(len(w)), 1 / (1e5 * w), 10**5)
        texts = [str(one.message) for one in said if issubclass(one.category, WeightWarning)]
        assert len(texts) == told, name
        if told:
            assert f"{len(w)} labels are worth {effective:.1f}; one has {share:.0%} of the weight" in texts[0]


@pytest.mark.parametrize("pool", [46_341, 50_000, np.int64(10**6), 3 * 10**9])
def test_a_pool_may_be_large(pool):
    """N² and N are beyond 32 bits: all weights, estimates and errors by their formulas in double precision."""
    rng = np.random.default_rng(0)
    count, n = 12, float(pool)
    losses, q, m = rng.uniform(1, 2, count), rng.uniform(0.8, 1.2, count) / n, np.arange(1, count + 1)
    v = 1 + (n - count) / (n - m) * (1 / ((n - m + 1) * q) - 1)
    a = losses / (n * q) + (np.cumsum(losses) - losses) / n
    weights = {"lure": v, "pure": 1 / (n * q) + (count - m) / n, "importance": 1 / (n * q), "plain": np.ones(count)}
    terms = {"lure": n * (n - count) / (count * (n - m) * (n - m + 1)), "pure": np.full(count, 1 / count)}
    run = jax.jit(lambda losses, q: {name: (WEIGHTS[name](q, pool), RISKS[name](losses, q, pool)) for name in RISKS})
    estimates = run(losses, q)
    for name, of_picks in weights.items():
        found_weights, found = estimates[name]
        np.testing.assert_allclose(found_weights, of_picks, rtol=1e-5)
        np.testing.assert_allclose(found.value, (of_picks * losses).mean(), rtol=1e-5)
        if name in terms:
            p = terms[name]
            w = p**2 / (1 - 2 * p)
            variance = (w * (a - p @ a) ** 2).sum() / (1 + w.sum())
            np.testing.assert_allclose(found.standard_error, np.sqrt(variance), rtol=1e-3)
    np.testing.assert_allclose(lure_ratio(losses, 2 * losses, q, pool).value, 0.5, rtol=1e-6)
