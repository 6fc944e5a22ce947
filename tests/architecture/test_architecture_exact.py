"""Selection against what is known exactly: closed forms, enumeration, and supernets whose losses are written down."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate._core import Status
from laureate.architecture import (
    Genotype,
    MagnitudeSelection,
    PerturbationSelection,
    RandomSelection,
    Space,
    Table,
    choice_noise,
    effective_weights,
    optimal_mixture,
    select,
    tabular,
    without_edges,
    without_operations,
)
from laureate.architecture.loop import _projections
from laureate.architecture.weights import check_alpha
from laureate.testing import KeyRecorder

KEY = jax.random.key(0)
NAMES = ("none", "skip", "avg3", "conv3")


# --- proposition 1 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "skip", "covariance"), [(1.0, 3.0, 0.0), (2.0, 0.5, 0.3), (0.4, 0.9, -0.2)])
def test_the_mixture_of_proposition_1_minimises_the_variance(op, skip, covariance):
    errors = np.random.default_rng(0).normal(size=(2, 4000))
    errors -= errors.mean(1, keepdims=True)
    white = np.linalg.solve(np.linalg.cholesky(np.cov(errors, bias=True)), errors)  # exactly uncorrelated, variance 1
    o, x = np.linalg.cholesky([[op, covariance], [covariance, skip]]) @ white
    # A parabola in θ: three values of the variance give its lowest point, with no grid and no formula of ours.
    at = np.array([0.0, 0.5, 1.0])
    a, b, _ = np.polyfit(at, [(t * o + (1 - t) * x).var() for t in at], 2)
    assert float(optimal_mixture(op, skip, covariance)) == pytest.approx(-b / (2 * a), abs=1e-6)


# --- weights --------------------------------------------------------------------------------------------------------


def test_weights_are_softmax_one_hot_or_zero():
    space = Space([NAMES, NAMES[:2], NAMES[:3]])
    alpha = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    weights = np.asarray(effective_weights(space, alpha, jnp.array([-1, 1, 2]), jnp.array([True, True, False])))
    np.testing.assert_allclose(weights[0], np.exp(alpha[0]) / np.exp(alpha[0]).sum(), rtol=1e-6)
    assert weights[1:].tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    alone = np.asarray(effective_weights(space, alpha))
    np.testing.assert_allclose(alone.sum(1), 1, rtol=1e-6)
    assert not alone[1, 2:].any()
    assert alone[2, 3] == 0


def test_decided_rows_have_no_gradient_and_undecided_ones_have():
    space, target = Space([NAMES, NAMES[:3], NAMES]), jnp.arange(12.0).reshape(3, 4) ** 2
    value = lambda alpha: jnp.sum(target * effective_weights(space, alpha, jnp.array([2, -1, 0])))  # noqa: E731
    slope = np.asarray(jax.grad(value)(jnp.ones((3, 4))))
    assert not slope[[0, 2]].any()
    assert slope[1, :3].all()
    assert slope[1, 3] == 0


def test_what_is_removed_is_zero_and_nothing_else_changes():
    weights = np.random.default_rng(0).uniform(0.1, 1, (3, 4)).astype(np.float32)
    found = np.asarray(without_operations(jnp.asarray(weights), jnp.asarray(1)))
    for op in range(4):
        expected = weights.copy()
        expected[1, op] = 0
        assert (found[op] == expected).all()  # the same bits: the others are not renormalised
    found = np.asarray(without_edges(jnp.asarray(weights), jnp.array([2, 0, -1])))
    assert (found[0] == weights * [[1], [1], [0]]).all()
    assert (found[1] == weights * [[0], [1], [1]]).all()
    assert (found[2] == weights).all()  # -1 is no edge


# --- selection ------------------------------------------------------------------------------------------------------


def additive(edges, ops, seed=0):
    """f = Σ_e Σ_o w_eo c_eo against a target, with a squared loss, in float64."""
    rng = np.random.default_rng(seed)
    parts, target = rng.normal(size=(edges, ops, 5)), 2 * rng.normal(size=5)
    loss = lambda weights: float(((np.tensordot(weights, parts, 2) - target) ** 2).sum())  # noqa: E731
    return parts, target, loss


def test_the_additive_supernets_loss_change_is_the_closed_form():
    parts, target, loss = additive(3, 4)
    space = Space([NAMES] * 3)
    selection = PerturbationSelection(space, criterion="loss", order="fixed")
    alpha = np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)
    found = select(KEY, selection, alpha, loss, num_decisions=1)
    weights = np.asarray(effective_weights(space, alpha), np.float64)
    residual = np.tensordot(weights, parts, 2) - target
    w = weights[0]
    change = w**2 * (parts[0] ** 2).sum(1) - 2 * w * (parts[0] @ residual)
    np.testing.assert_allclose(found.history[0].importance - loss(weights), change, rtol=1e-4, atol=1e-5)
    assert found.choice == (int(np.argmax(change)), -1, -1)
    assert found.genotype is None


def by_hand(loss, order, edges, ops):
    """The algorithm box in plain Python."""
    weights = np.full((edges, ops), 1 / ops)
    for edge in order:
        scores = []
        for op in range(ops):
            tried = weights.copy()
            tried[edge, op] = 0
            scores.append(loss(tried))
        weights[edge] = np.eye(ops)[int(np.argmax(scores))]
    return tuple(np.argmax(weights, axis=1).tolist())


@pytest.mark.parametrize("order", ["fixed", "reverse", lambda key, space: (1, 2, 0)])
def test_select_is_the_algorithm_box(order):
    for seed in range(3):
        _, _, loss = additive(3, 4, seed)
        edges = (
            {"fixed": [0, 1, 2], "reverse": [2, 1, 0]}.get(order, [1, 2, 0]) if isinstance(order, str) else [1, 2, 0]
        )
        found = select(KEY, PerturbationSelection(Space([NAMES] * 3), criterion="loss", order=order), score_fn=loss)
        assert [decision.place for decision in found.history] == edges
        assert found.choice == by_hand(loss, edges, 3, 4)
        accuracy = lambda weights, loss=loss: -loss(weights)  # noqa: E731
        same = select(KEY, PerturbationSelection(Space([NAMES] * 3), order=order), score_fn=accuracy)
        assert same.choice == found.choice


def test_one_edge_is_brute_force():
    _, _, loss = additive(1, 4, 3)
    found = select(KEY, PerturbationSelection(Space([NAMES]), criterion="loss"), score_fn=loss)
    without = [loss(np.where(np.arange(4) == op, 0, 0.25)[None]) for op in range(4)]
    assert found.choice == (int(np.argmax(without)),)
    assert found.num_scores == 4


def test_relabelling_operations_relabels_the_answer():
    _, _, loss = additive(3, 4, 5)
    for shuffled in itertools.islice(itertools.permutations(range(4)), 1, 24, 7):
        names = [NAMES[i] for i in shuffled]
        back = np.argsort(shuffled)
        rule = PerturbationSelection(Space([names] * 3), criterion="loss")
        found = select(KEY, rule, score_fn=lambda weights, back=back: loss(weights[:, back]))
        plain = select(KEY, PerturbationSelection(Space([NAMES] * 3), criterion="loss"), score_fn=loss)
        assert found.genotype == plain.genotype
        assert [shuffled[i] for i in found.choice] == list(plain.choice)


def test_every_edge_is_decided_once_and_rows_become_one_hot():
    seen = []

    def score(weights):
        seen.append(np.asarray(weights))
        return float(weights[:, 1].sum())

    rule = PerturbationSelection(Space([NAMES, NAMES[:2], NAMES, NAMES[:3]]))
    found = select(KEY, rule, score_fn=score)
    places = [decision.place for decision in found.history]
    assert sorted(places) == [0, 1, 2, 3]
    assert found.num_scores == len(seen) == 4 + 2 + 4 + 3
    for number, decision in enumerate(found.history):
        decided = places[: number + 1]
        assert (decision.weights[decided] == np.eye(4)[[found.choice[e] for e in decided]]).all()
        assert not np.isin(decision.weights[places[number + 1 :]], (0.0, 1.0))[:, :2].any()
    assert {tuple(select(jax.random.key(k), rule, score_fn=score).state.order.tolist()) for k in range(8)} != {
        (0, 1, 2, 3)
    }


def test_tuning_after_every_projection_and_a_new_alpha_is_used():
    space, calls = Space([NAMES[:2]] * 3), []

    def tune(key, weights, state):
        calls.append((key, weights, int(state.step)))
        return jnp.where(state.choice[:, None] >= 0, state.alpha, jnp.asarray([0.0, 1.0 * len(calls)]))

    found = select(KEY, MagnitudeSelection(space, order="fixed"), [[2.0, 0.0]] * 3, tune_fn=tune)
    assert found.choice == (0, 1, 1)
    assert [step for *_, step in calls] == [1, 2, 3]
    assert found.state.alpha.tolist() == [[2, 0], [0, 1], [0, 2]]
    assert (calls[0][1][0] == [1, 0]).all()
    # A snapshot is what the tuning left: one-hot where decided, the new alpha's softmax elsewhere.
    np.testing.assert_allclose(found.history[0].weights[1:], [[1 / (1 + np.e), np.e / (1 + np.e)]] * 2, rtol=1e-6)
    assert found.num_scores == 0
    data = [tuple(jax.random.key_data(key).tolist()) for key, *_ in calls]
    assert len(set(data)) == 3


def test_cell_types_are_decided_side_by_side():
    cells = ("normal", "normal", "reduce", "normal", "reduce")
    tuned = []
    rule = RandomSelection(Space([NAMES] * 5, cells=cells))
    found = select(KEY, rule, tune_fn=lambda key, weights, state: tuned.append(int(state.step)))
    kinds = [cells[decision.place] for decision in found.history]
    assert kinds == ["normal", "reduce", "normal", "reduce", "normal"]
    assert tuned == [2, 4, 5]
    seen = {tuple(select(jax.random.key(k), rule).state.order.tolist()) for k in range(20)}
    assert len(seen) > 3  # the order within a type is drawn


def test_edges_and_crowded_nodes_of_both_cell_types_take_turns_and_a_turn_is_tuned_once():
    """Two cells with three edges into their first node and four into their second: one and two too many."""
    cells = ("normal",) * 7 + ("reduce",) * 7
    space = Space([NAMES[:2]] * 14, nodes=(0, 0, 0, 1, 1, 1, 1) * 2, cells=cells)
    rule = RandomSelection(space)
    orders, drops = jax.jit(jax.vmap(lambda key: rule.init(key)[3:5]))(jax.random.split(KEY, 20))
    assert (np.asarray(cells)[np.asarray(orders)] == ["normal", "reduce"] * 7).all()
    assert len(set(map(tuple, np.asarray(orders).tolist()))) > 3  # the order within a type is drawn
    assert (np.sort(orders, axis=1) == np.arange(14)).all()
    nodes = {tuple(dict.fromkeys(order)) for order in np.asarray(drops).tolist()}
    assert nodes == {(normal, reduce, 1 - normal, 5 - reduce) for normal in (0, 1) for reduce in (2, 3)}
    # After every second edge; then after the drops of the first node of both cells, and of the second of both.
    pairs = set(range(1, 14, 2))
    assert _projections(space, np.array([0, 2, 1, 1, 3, 3])) == pairs | {15, 19}
    assert _projections(space, np.array([1, 1, 2, 0, 3, 3])) == pairs | {16, 19}


@pytest.mark.slow
def test_two_cells_of_darts_take_seventeen_projections():
    """Fourteen edges of each type side by side, then three crowded nodes of each: one tuning a pair."""
    nodes = (0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3)
    space = Space([NAMES[1:3]] * 28, nodes=nodes * 2, cells=("normal",) * 14 + ("reduce",) * 14)
    for order, expected in {"reverse": (3, 2, 1), "random": None}.items():  # "fixed" is the order of the tests above
        tuned = []
        tune = lambda key, weights, state, tuned=tuned: tuned.append(int(state.step))  # noqa: E731
        found = select(KEY, RandomSelection(space, order=order), tune_fn=tune)
        drops = [decision.chosen for decision in found.history[28:]]
        places = list(dict.fromkeys((space.cells[edge], space.nodes[edge]) for edge in drops))
        assert [cell for cell, _ in places] == ["normal", "reduce"] * 3
        if expected:
            assert tuple(node for _, node in places[::2]) == tuple(node for _, node in places[1::2]) == expected
        assert len(tuned) == 17
        assert tuned[:14] == list(range(2, 30, 2))
        too_many = [nodes.count(node) - 2 for _, node in places]
        assert tuned[14:] == [28 + sum(too_many[: 2 * turn]) for turn in (1, 2, 3)]
        assert sorted(np.bincount(np.asarray(nodes * 2)[list(found.genotype.kept)])) == [4, 4, 4, 4]


@pytest.mark.parametrize("alpha", [np.zeros((1, 4), np.float16), np.zeros((1, 4), np.float32)])
def test_scores_keep_their_digits(alpha):
    """Sums of losses that differ in the eleventh digit; and alpha of half precision, in which 0.8126 is 0.8125."""
    extra = np.array([0.3, 0.1, 0.4, 0.2])
    loss = lambda weights: 1e9 - float(extra @ weights[0])  # noqa: E731
    found = select(KEY, PerturbationSelection(Space([NAMES]), criterion="loss", order="fixed"), alpha, loss)
    assert found.choice == (2,)
    assert found.history[0].tied == 1
    accuracy = lambda weights: 0.8125 + 1e-4 * float(extra @ weights[0])  # noqa: E731
    found = select(KEY, PerturbationSelection(Space([NAMES])), alpha, accuracy)
    assert (found.choice, found.history[0].tied) == ((2,), 1)


@pytest.mark.parametrize(("given", "kept"), [("float16", "float16"), ("float64", "float64"), ("int32", "float32")])
def test_alpha_keeps_its_precision_and_whole_numbers_have_single_precision(given, kept):
    with jax.enable_x64(True):
        alpha = check_alpha("", Space([NAMES]), np.full((1, 4), 257, given))
        assert (alpha.dtype, np.unique(alpha).tolist()) == (kept, [257])


def test_crowded_nodes_come_in_the_order_of_the_rule_and_one_is_finished_before_the_next():
    space = Space([NAMES[:2]] * 10, nodes=(0, 0, 0, 1, 1, 1, 1, 2, 2, 2))  # one, two and one too many
    orders = ("fixed", "reverse", "random")
    rules = [RandomSelection(space, order=order) for order in orders]
    found = jax.jit(jax.vmap(lambda key: [rule.init(key).drops for rule in rules]))(jax.random.split(KEY, 60))
    fixed, reverse, random = (set(map(tuple, np.asarray(drops).tolist())) for drops in found)
    assert (fixed, reverse) == ({(0, 1, 1, 2)}, {(2, 1, 1, 0)})
    assert random == {
        tuple(np.repeat(order, np.array([1, 2, 1])[list(order)])) for order in itertools.permutations(range(3))
    }


@pytest.mark.parametrize("ops", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_the_least_needed_edges_are_dropped_one_at_a_time(ops):
    """Nodes 1 and 2 with 3 and 4 inputs; an edge's worth is known, and one depends on whether another is there."""
    space = Space([NAMES[:ops]] * 8, nodes=(0, 1, 1, 1, 2, 2, 2, 2))
    assert space.crowded == ((1, 2, 3), (4, 5, 6, 7))
    worth, tuned = np.array([9.0, 3, 1, 2, 1.5, 4, 3, 2]), []

    def score(weights):
        there = weights.sum(1)
        # Without edge 4, edge 7 is worth more: that 4 was dropped must be seen when the others are scored again.
        return float(there @ worth + (there[4] == 0) * 2 * there[7] + 0.01 * weights[:, 1].sum())

    tune = lambda key, weights, state: tuned.append(int(state.step))  # noqa: E731
    for key in (0, 1, 2):
        tuned.clear()
        found = select(jax.random.key(key), PerturbationSelection(space), score_fn=score, tune_fn=tune)
        assert found.genotype.kept == (True, True, False, True, False, True, False, True)
        drops = [(d.place, d.chosen) for d in found.history if d.kind == "edge"]
        assert drops in ([(0, 2), (1, 4), (1, 6)], [(1, 4), (1, 6), (0, 2)])
        assert found.num_scores == 8 * ops + 3 + 4 + 3
        # What is there to be dropped: the three edges of the first node are filled up to four by one that is none.
        candidates = [(d.place, int(np.isfinite(d.importance).sum())) for d in found.history if d.kind == "edge"]
        assert sorted(candidates) == [(0, 3), (1, 3), (1, 4)]
        assert tuned == [1, 2, 3, 4, 5, 6, 7, 8, *([9, 11] if drops[0][0] == 0 else [10, 11])]


def test_magnitude_keeps_the_edges_with_the_largest_weights_of_what_may_be_chosen():
    weights = np.array([[0.9, 0.06, 0.04], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])
    rule = MagnitudeSelection(Space([NAMES[:3]] * 4, nodes=(0, 0, 0, 0)), exclude=("none",))
    found = select(KEY, rule, np.log(weights))
    assert found.genotype == Genotype(("skip", "skip", "avg3", "skip"), (False, True, True, False))


def test_operations_and_edges_go_by_the_weights_of_what_may_be_chosen():
    """Every report of every decision, against sorting; edges differ in their operations, nodes in their inputs."""
    ops = [NAMES, NAMES[1:], NAMES, NAMES[:2], NAMES, NAMES[:3], NAMES[::-1]]
    space, keys = Space(ops, nodes=(5, 3, 5, 3, 3, 3, 5)), jax.random.split(KEY, 40)
    rule = MagnitudeSelection(space, exclude=("none", "avg3"))
    alphas = 2 * np.random.default_rng(0).normal(size=(40, 7, 4)).astype(np.float32)

    @jax.jit
    @jax.vmap
    def run(key, alpha):
        state = rule.init(key, alpha)
        state, edges = jax.lax.scan(lambda state, _: rule.decide(key, state), state, length=7)
        return jax.lax.scan(lambda state, _: rule.drop(key, state), state, length=3), edges

    (states, drops), edges = jax.tree.map(np.asarray, run(keys, alphas))
    for told in (edges, drops):
        assert (told.tied == 1).all()
        assert not told.cost.any()
        assert not told.status.any()
    allowed = np.array([[name in ("skip", "conv3") for name in (*names, *["none"] * 4)[:4]] for names in ops])
    valid = np.arange(4) < np.array([len(names) for names in ops])[:, None]
    for i, alpha in enumerate(alphas):
        soft = np.where(valid, np.exp(alpha), 0)
        weights = np.where(allowed, soft / soft.sum(1, keepdims=True), -np.inf)
        np.testing.assert_allclose(edges.importance[i], weights[edges.place[i]], rtol=1e-5)
        np.testing.assert_array_equal(edges.chosen[i], weights.argmax(1)[edges.place[i]])
        np.testing.assert_array_equal(states.choice[i], weights.argmax(1))
        kept = np.ones(7, bool)
        for told, place, chosen in zip(drops.importance[i], drops.place[i], drops.chosen[i], strict=True):
            inputs = np.array([[0, 2, 6, -1], [1, 3, 4, 5]][place])
            there = np.where((inputs >= 0) & kept[inputs], weights.max(1)[inputs], -np.inf)
            np.testing.assert_allclose(told, there, rtol=1e-5)
            assert chosen == inputs[np.where(np.isfinite(there), there, np.inf).argmin()]
            kept[chosen] = False
        np.testing.assert_array_equal(states.kept[i], kept)


def test_decisions_by_scores_report_what_they_cost_and_whether_a_score_is_not_finite():
    """Every edge and every drop, with the bad number at each place, among the scores and among the losses for ties."""
    ops = [NAMES, NAMES[1:], NAMES[:2], NAMES[::-1]]
    space = Space(ops, nodes=(0, 0, 0, 0), keep=2)
    rule = PerturbationSelection(space, exclude=("none",), order="fixed", ties="loss")
    cases = [(step, place, which) for step in range(6) for place in range(5) for which in (0, 1)]
    step, place, which = map(np.asarray, zip(*cases, strict=True))
    numbers = np.tile([0.5, 0.25, 0.5, 0.5], (2, len(cases), 1))  # three equal scores: the losses decide
    numbers[1] = [0.1, 0.2, 0.4, 0.3]
    bad = np.flatnonzero(place < 4)  # a place beyond the last: all are finite
    numbers[which[bad], bad, place[bad]] = np.nan
    before = np.array([[True] * 4] * 5 + [[True, False, True, True]])  # edge 1 was dropped first

    @jax.jit
    @jax.vmap
    def run(step, kept, scores, losses):
        state = rule.init(KEY)._replace(step=step, kept=kept)
        # Beyond the last edge, or the last drop, an index takes the last one: of each only its own steps are looked at.
        return rule.decide(KEY, state, scores, losses)[1], rule.drop(KEY, state, scores, losses)[1]

    decided, dropped = (jax.tree.map(np.asarray, told) for told in run(step, before[step], *numbers))
    names = np.array([(*one, *[""] * 4)[:4] for one in ops])
    for i, (at, spoilt, _) in enumerate(cases):
        told = decided if at < 4 else dropped
        there = np.isin(names[at], NAMES[1:]) if at < 4 else before[at]
        assert told.cost[i] == there.sum()
        fine = spoilt == 4 or not there[spoilt]
        assert told.status[i] == (Status.OK if fine else Status.DIVERGED), cases[i]
        if fine:
            sign = 1 if at < 4 else -1  # the lowest accuracy without it, then the highest loss; of edges the other end
            ranks = [(-sign * numbers[0, i, j], sign * numbers[1, i, j], j) for j in np.flatnonzero(there)]
            best = max(ranks)
            assert told.chosen[i] == best[2]
            assert told.tied[i] == sum(rank[:2] == best[:2] for rank in ranks)


@pytest.mark.parametrize("rule", [PerturbationSelection, MagnitudeSelection, RandomSelection])
def test_going_on_is_the_whole(rule):
    space = Space([NAMES] * 3, nodes=(0, 0, 0), keep=1)
    _, _, loss = additive(3, 4)
    alpha = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    whole = select(KEY, rule(space), alpha, loss)
    part = select(KEY, rule(space), alpha, loss, num_decisions=1)
    for _ in range(4):
        part = select(KEY, rule(space), alpha, loss, state=part.state, num_decisions=1)
    assert part.genotype == whole.genotype
    assert len(whole.history) == 5
    assert all((a == b).all() for a, b in zip(part.state, whole.state, strict=True))


def test_random_choices_are_uniform_over_what_is_allowed():
    space = Space([NAMES])
    rule = RandomSelection(space, exclude=("none",))

    @jax.jit
    @jax.vmap
    def choose(key):
        return rule.decide(key, rule.init(key))[0].choice[0]

    counts = np.bincount(np.asarray(choose(jax.random.split(KEY, 3000))), minlength=4)
    assert counts[0] == 0
    assert (abs(counts[1:] - 1000) < 4 * np.sqrt(3000 * 2 / 9)).all()


def test_no_key_is_used_twice():
    with KeyRecorder() as recorder:

        def draw(key, weights, state):
            jax.random.normal(key)

        space = Space([NAMES] * 3, nodes=(0, 0, 0), cells=("a", "a", "a"))
        select(jax.random.key(3), RandomSelection(space), tune_fn=draw)
    assert recorder.reused() == []


# --- tables and noise -----------------------------------------------------------------------------------------------


def test_ranks_of_a_table_are_counted():
    space = Space([("a", "b"), ("a", "b", "c")])
    values = np.array([[0.1, 0.3], [0.5, 0.5], [0.9, 0.7], [0.2, 0.2], [0.5, 0.5], [0.4, 0.4]])
    table = Table(space, values)
    assert [table.rank(choice) for choice in space.choices()] == [4.5, 1.5, 0, 4.5, 1.5, 3]
    assert table.value((1, 2)) == pytest.approx(0.4)
    assert table.best() == (0, 2)
    assert table.index((1, 0)) == 3


def test_a_table_that_was_stopped_goes_on_and_a_finished_one_is_read(tmp_path):
    space, calls, stop_at = Space([("a", "b"), ("a", "b", "c")]), [], [3]

    def train(choice):
        calls.append(choice)
        if len(calls) > stop_at[0]:
            raise KeyboardInterrupt
        return [choice[0] + 0.1 * choice[1], 0.0]

    ask = lambda: tabular(space, train, num_values=2, path=tmp_path / "table.npz", settings="mine")  # noqa: E731
    with pytest.raises(KeyboardInterrupt):
        ask()
    calls.clear()
    stop_at[0] = 100
    table = ask()
    assert calls == list(space.choices())[3:]  # only what was missing
    calls.clear()
    assert (ask().values == table.values).all()
    assert not calls
    np.testing.assert_allclose(table.values[:, 0], [c[0] + 0.1 * c[1] for c in space.choices()], rtol=1e-6)
    with pytest.raises(ValueError, match=r"Checkpoint.settings .* train_fn was 'mine', is 'other'"):
        tabular(space, train, num_values=2, path=tmp_path / "table.npz", settings="other")


def test_a_table_of_anything_else_is_refused(tmp_path):
    """Each of what decides its numbers: the operations' names, how many values, the function, what it closes over."""
    ask = lambda names, values, train, **more: tabular(Space([names] * 2), train, num_values=values, **more)  # noqa: E731
    made = lambda number: lambda choice: [0.1 * choice[0] + number] * 2  # noqa: E731
    kept = {"path": tmp_path / "table.npz"}
    whole = ask(("a", "b"), 2, made(1.0), **kept)
    np.testing.assert_array_equal(ask(("a", "b"), 2, made(1.0), **kept).values, whole.values)
    for names, values, train in (
        (("a", "c"), 2, made(1.0)),
        (("a", "b"), 1, lambda choice: 0.5),
        (("a", "b"), 2, lambda choice: [0.1 * choice[0] + 1.0, 0.5]),
        (("a", "b"), 2, made(2.0)),
    ):
        with pytest.raises(ValueError, match="Checkpoint"):
            ask(names, values, train, **kept)


@pytest.mark.filterwarnings("ignore::laureate.architecture.TieWarning")
@pytest.mark.parametrize("ties", ["first", "loss"])
def test_all_at_once_is_one_after_the_other_and_costs_as_much(ties):
    """Edges and nodes of different sizes, names left out, snapshots between: choices, reports and counts are one."""
    space = Space([NAMES, NAMES[1:], NAMES[::-1], NAMES[:2], NAMES], nodes=(0, 0, 0, 1, 0))
    rng = np.random.default_rng(7)
    worth = rng.normal(size=(2, 5, 4))
    asked = []

    class Scorer:
        def __call__(self, weights):
            asked.append(1)
            score, loss = np.round(np.tensordot(worth, weights, 2), 1).tolist()
            return (score, loss) if ties == "loss" else score

        def many(self, weights):
            answers = [self(one) for one in weights]
            asked.clear()
            return tuple(map(np.array, zip(*answers, strict=True))) if ties == "loss" else np.array(answers)

    for exclude in ((), ("none",), ("none", "avg3")):
        rule = PerturbationSelection(space, exclude=exclude, ties=ties)
        alone = select(KEY, rule, score_fn=lambda weights: Scorer()(weights))
        asked_alone = len(asked) - 2 * (ties == "loss")  # the whole supernet, twice, to see that it does not normalise
        together = select(KEY, rule, score_fn=Scorer(), snapshots=True)
        assert alone.num_scores == together.num_scores == asked_alone
        per_edge = [sum(name not in exclude for name in names) for names in space.ops]
        assert alone.num_scores == sum(per_edge) + 4 + 3
        assert (alone.choice, alone.genotype) == (together.choice, together.genotype)
        for one, two in zip(alone.history, together.history, strict=True):
            assert one[:3] == two[:3]
            np.testing.assert_allclose(one.importance, two.importance, atol=1e-6)
            assert one.tied == two.tied
        asked.clear()


def test_agreement_is_the_binomial_of_two_candidates():
    """Candidate 1 is right on 12 of 20 examples, candidate 0 on 10, on the same 10 and 2 more: a binomial."""
    values = np.zeros((2, 20))
    values[:, :10] = 1
    values[1, 10:12] = 1
    report = jax.jit(lambda key: choice_noise(key, values, size=5, num_resamples=4000))(KEY)
    none = (18 / 20) ** 5  # no example that tells them apart was drawn: a tie, half of which is won
    expected = 1 - none + none / 2
    assert int(report.chosen) == 0
    assert abs(float(report.agreement) - expected) < 4 * np.sqrt(0.25 / 4000)
    assert float(report.margin) == pytest.approx(0.1)
    assert float(report.standard_error) == pytest.approx((values[1] - values[0]).std() / np.sqrt(5))
    flipped = choice_noise(KEY, values, criterion="loss", num_resamples=2)
    assert int(flipped.chosen) == 1
