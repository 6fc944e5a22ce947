"""Ties, bad input, supernets in JAX: what a user meets."""

import itertools
import warnings
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.architecture import (
    Decision,
    Genotype,
    MagnitudeSelection,
    ParetoPoint,
    PerturbationSelection,
    RandomSelection,
    ResolutionWarning,
    Space,
    SupernetScore,
    SupernetTraining,
    Table,
    TieWarning,
    check_supernet,
    choice_noise,
    effective_weights,
    hypervolume,
    pareto,
    score_weights,
    select,
    tabular,
    train_supernet,
)
from laureate.architecture.training import _Steps
from laureate.problems.supernets import CellSupernet

KEY = jax.random.key(0)
NAMES = ("none", "skip", "conv3")
SPACE = Space([NAMES] * 2)


# --- ties -----------------------------------------------------------------------------------------------------------


def test_ties_are_told_and_broken_by_the_rule():
    score = lambda weights: float(weights[:, 1].sum() == 0)  # noqa: E731  (skip hurts: its removal is never chosen)
    with pytest.warns(TieWarning, match=r"2 of 3 ops within 0 of each other on edge 0: .* ties='first'"):
        first = select(KEY, PerturbationSelection(Space([NAMES]), ties="first"), score_fn=score)
    assert first.choice == (0,)
    assert first.history[0].tied == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TieWarning)
        rule = PerturbationSelection(Space([NAMES]), ties="random")
        found = [select(jax.random.key(k), rule, score_fn=score).choice[0] for k in range(40)]
    assert set(found) == {0, 2}
    assert 8 < found.count(0) < 32


def test_chance_takes_each_of_two_that_tie_equally_often_and_never_the_third():
    """40 of the test above, and 4,000 as one program: within four standard errors."""
    rules = [PerturbationSelection(Space([NAMES]), order="fixed", ties=ties) for ties in ("random", "first")]
    scores = np.array([0.5, 0.7, 0.5])
    decide = lambda key: [rule.decide(key, rule.init(key), scores)[0].choice[0] for rule in rules]  # noqa: E731
    chance, first = map(np.asarray, jax.jit(jax.vmap(decide))(jax.random.split(KEY, 4000)))
    counts = np.bincount(chance, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 2000) < 4 * np.sqrt(4000 / 4)
    assert not first.any()


def test_ties_may_be_broken_by_the_loss():
    losses = np.array([1.0, 5.0, 3.0])
    both = lambda weights: (0.5, float(losses @ (1 - weights[0])))  # noqa: E731
    found = select(KEY, PerturbationSelection(Space([NAMES]), ties="loss"), score_fn=both)
    assert found.choice == (1,)
    assert found.history[0].tied == 1

    class Many:
        __call__ = staticmethod(both)

        def many(self, weights):
            answers = [both(w) for w in weights]
            return np.array([a for a, _ in answers]), np.array([b for _, b in answers])

    assert select(KEY, PerturbationSelection(Space([NAMES]), ties="loss"), score_fn=Many()).choice == (1,)


def test_edges_that_tie_are_told_too():
    space = Space([("skip",)] * 3, nodes=(0, 0, 0))
    with pytest.warns(TieWarning, match="3 of 3 edges within 0 of each other at crowded node 0"):
        select(KEY, PerturbationSelection(space), score_fn=lambda weights: 1.0)


def test_what_may_not_be_chosen_is_not_scored():
    asked = []
    rule = PerturbationSelection(SPACE, exclude=("none",))
    found = select(KEY, rule, score_fn=lambda w: asked.append(w) or float(w[:, 2].sum()))
    assert found.num_scores == len(asked) == 4
    assert found.choice == (2, 2)


# --- bad input ------------------------------------------------------------------------------------------------------

RULE = PerturbationSelection(SPACE)
LOSS = PerturbationSelection(SPACE, criterion="loss")
ONES = lambda weights: float(weights.sum())  # noqa: E731
BAD = {
    "no operation": (lambda: Space([("a",), ()]), r"Space.ops\[1\] must be at least one operation; got \(\)"),
    "no edge": (lambda: Space([]), "Space.ops must be a list of names"),
    "twice the same": (lambda: Space([("a", "a")]), r"Space.ops\[0\] must be distinct names"),
    "nodes": (lambda: Space([("a",)], nodes=(0, 1)), "Space.nodes must be None or one entry for each of 1 edges"),
    "keep": (lambda: Space([("a",)], keep=0), "Space.keep must be an integer >= 1; got 0"),
    "no ops": (lambda: Space.of(object()), "Space.of.supernet must be an object with ops"),
    "criterion": (lambda: PerturbationSelection(SPACE, criterion="acc"), "criterion must be 'accuracy' or 'loss'"),
    "order": (lambda: RandomSelection(SPACE, order="up"), "RandomSelection.order must be 'random', 'fixed'"),
    "ties": (lambda: MagnitudeSelection(SPACE, ties="last"), "MagnitudeSelection.ties must be"),
    "space": (lambda: RandomSelection(NAMES), "RandomSelection.space must be a Space; .* Space.of"),
    "exclude": (lambda: RandomSelection(SPACE, exclude=NAMES), "such that edge 0 has an operation left"),
    "exclude a word": (lambda: RandomSelection(SPACE, exclude="none"), "exclude must be a tuple of names"),
    "exclude what is not there": (
        lambda: RandomSelection(SPACE, exclude=("zero",)),
        r"exclude must be among conv3, none, skip; got \('zero',\)",
    ),
    "an order that lacks edges": (
        lambda: select(KEY, RandomSelection(SPACE, order=lambda key, space: (0, 0))),
        r"each of 0..1 once; got \[0, 0\]",
    ),
    "alpha's shape": (lambda: select(KEY, RULE, np.zeros((3, 3)), ONES), r"alpha must be of shape \(2, 3\)"),
    "alpha's columns": (
        lambda: select(KEY, RULE, np.zeros((2, 2)), ONES),
        "edge 0 has 3 operations, and 2 columns were given",
    ),
    "alpha not finite": (lambda: select(KEY, RULE, np.full((2, 3), np.nan), ONES), "alpha must be finite"),
    "no score": (lambda: select(KEY, RULE), "score_fn must be a function, for PerturbationSelection"),
    "an array": (
        lambda: select(KEY, RULE, score_fn=lambda w: w),
        r"one number; got ndarray of shape \(2, 3\) for edge",
    ),
    "nothing": (lambda: select(KEY, RULE, score_fn=lambda w: None), "must return one number; got NoneType"),
    "nan": (
        lambda: select(
            KEY, PerturbationSelection(SPACE, order="fixed"), score_fn=lambda w: np.nan if w[0, 1] == 0 else 1
        ),
        "finite number; got nan for edge 0 without 'skip'",
    ),
    "no pair": (lambda: select(KEY, PerturbationSelection(SPACE, ties="loss"), score_fn=ONES), "a pair"),
    "many of the wrong shape": (
        lambda: select(KEY, RULE, score_fn=type("M", (), {"__call__": ONES, "many": lambda self, w: w})()),
        "score_fn.many must be one score for each of 3 weights",
    ),
    "normalised inside": (
        lambda: select(KEY, LOSS, score_fn=lambda w: float((w / w.sum(1, keepdims=True))[0, 0])),
        "must use the weights as they are; got the same loss .* normalisation",
    ),
    "decided rows": (
        lambda: select(
            KEY, MagnitudeSelection(SPACE, order="fixed"), [[0.0, 1, 2]] * 2, tune_fn=lambda k, w, s: s.alpha + 1
        ),
        r"leave decided rows alone; got another alpha\[0\]",
    ),
    "another tree": (
        lambda: select(KEY, MagnitudeSelection(SPACE), [[0.0, 1, 2]] * 2, tune_fn=lambda k, w, s: {"alpha": s.alpha}),
        r"one array; got a dict with leaves at \['alpha'\]",
    ),
    "another shape": (
        lambda: select(KEY, MagnitudeSelection(SPACE), [[0.0, 1, 2]] * 2, tune_fn=lambda k, w, s: s.alpha[:1]),
        r"tune_fn's answer must be alpha of shape \(2, 3\)",
    ),
    "decisions": (
        lambda: select(KEY, RandomSelection(SPACE), num_decisions=-1),
        "num_decisions must be None or an integer >= 0; got -1",
    ),
    "genotype": (lambda: SPACE.genotype((0, -1)), r"choice\[1\] must be in 0..2; got -1. Decide every edge"),
    "too many": (lambda: tabular(Space([NAMES] * 20), ONES), "at most 100,000 architectures"),
    "a value that is none": (lambda: tabular(SPACE, lambda c: np.nan), r"train_fn\(\(0, 0\)\) must be finite"),
    "values": (lambda: Table(SPACE, np.zeros((2, 1))), r"Table.values must be of shape \(9, values\)"),
    "one candidate": (lambda: choice_noise(KEY, np.zeros((1, 4))), r"\[candidates >= 2, examples >= 1\]"),
    "size": (lambda: choice_noise(KEY, np.zeros((2, 4)), size=0), "size must be None or >= 1"),
    "no snapshots": (lambda: pareto(select(KEY, RandomSelection(SPACE)).history, ONES), "snapshots=True"),
    "score's criterion": (
        lambda: SupernetScore(None, None, None, (np.zeros(300), np.zeros(300)), criterion="acc"),
        "SupernetScore.criterion",
    ),
    "batch": (
        lambda: SupernetScore(None, None, None, (np.zeros(300), np.zeros(300)), batch_size=0),
        "SupernetScore.batch_size must be None or >= 1; got 0",
    ),
    "no alpha optimiser": (
        lambda: SupernetTraining(CellSupernet(train=20, test=5), optax.sgd(0.1)).darts_step(KEY, None, None, None),
        "alpha_optimiser must be given for darts_step",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("ignore::laureate.architecture.TieWarning")
def test_bad_input_says_what_is_wrong(name):
    attempt, words = BAD[name]
    with pytest.raises((ValueError, TypeError), match=words):
        attempt()


def test_probabilities_and_small_validation_sets_are_told():
    with pytest.warns(UserWarning, match="all rows sum to 1, as probabilities do, but logits are expected"):
        select(KEY, MagnitudeSelection(SPACE), [[0.2, 0.3, 0.5]] * 2)
    with pytest.warns(ResolutionWarning, match=r"accuracy on 50 examples moves in steps of 1/50 = 2 points"):
        SupernetScore(None, None, None, (np.zeros(50), np.zeros(50)))


class Noisy:
    """Two edges that add noise, with one key or with keys of their own."""

    ops = (("skip", "noise"),) * 2

    def __init__(self, fold):
        self.fold = fold

    def apply(self, params, state, weights, x, *, key, train):
        for edge in range(2):
            own = jax.random.fold_in(key, edge) if self.fold else key
            x = weights[edge, 0] * x + weights[edge, 1] * jax.random.normal(own, x.shape)
        return x, state


def test_a_key_used_by_two_operations_is_found():
    check_supernet(KEY, Noisy(True), None, None, jnp.ones((2, 3)), key_reuse=True)
    check_supernet(KEY, Noisy(False), None, None, jnp.ones((2, 3)))
    with pytest.raises(ValueError, match=r"must use every key once; .* Fold the number of the edge"):
        check_supernet(KEY, Noisy(False), None, None, jnp.ones((2, 3)), key_reuse=True)


class InHalf:
    """Gives its input, or as much for every class, in bfloat16; or the same whatever the weights are."""

    ops = (("none", "skip"),)

    def __init__(self, normalised=False):
        self.normalised = normalised

    def apply(self, params, state, weights, x, *, key, train):
        weights = weights / weights.sum(1, keepdims=True) if self.normalised else weights
        return (weights[0, 1] * x).astype(jnp.bfloat16), state


def test_a_supernet_in_half_precision_is_checked_and_scored_in_single():
    """Of 512 examples 257, 259 and 261 are right: bfloat16 has no such shares."""
    for right in (257, 259, 261):
        x = np.eye(3, dtype=np.float32)[np.r_[np.ones(right, int), np.full(512 - right, 2)]]
        score = SupernetScore(InHalf(), None, None, (x, np.ones(512, int)))
        assert score(np.array([[0.0, 1.0]])) == right / 512
    check_supernet(KEY, InHalf(), None, None, jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="must use the weights as they are"):
        check_supernet(KEY, InHalf(normalised=True), None, None, jnp.ones((2, 3)))


def test_nodes_and_cells_may_be_lists():
    listed = Space([["skip", "none"]] * 3, nodes=[1, 1, 1], cells=["a"] * 3)
    given = Space((("skip", "none"),) * 3, nodes=(1, 1, 1), cells=("a",) * 3)
    assert hash(listed) == hash(given)
    assert listed == given


def test_candidates_have_noise_of_their_own():
    weights = jnp.zeros((3, 2, 2)).at[:, :, 1].set(1.0)
    loss, _ = score_weights(Noisy(True), None, None, weights, (jnp.ones((4, 3)), jnp.zeros(4, int)), key=KEY)
    assert len(np.unique(np.asarray(loss)[:, 0])) == 3


def test_scores_in_batches_are_those_of_each_batch():
    class Centred:
        """Takes the batch's mean away: batches are seen in the output, and so is the key."""

        ops = (("skip", "noise"),)

        def apply(self, params, state, weights, x, *, key, train):
            return weights[0, 0] * (x - x.mean(0)) + weights[0, 1] * jax.random.normal(key, x.shape), state

    x, labels = jax.random.normal(KEY, (7, 3)), jnp.arange(7) % 3
    more = {"criterion": "loss", "key": KEY, "batch_size": 3}
    loss, _ = SupernetScore(Centred(), None, None, (x, labels), **more).examples(jnp.array([[[1.0, 0.0]]]))
    parts = [np.asarray(x[at : at + 3]) for at in (0, 3, 6)]
    logits = np.concatenate([part - part.mean(0) for part in parts])
    expected = np.log(np.exp(logits).sum(1)) - logits[np.arange(7), np.asarray(labels)]
    np.testing.assert_allclose(loss[0], expected, rtol=1e-5)
    same = SupernetScore(Centred(), None, None, (x, labels * 0), **more).examples(jnp.array([[[0.0, 1.0]]]))[0]
    assert len(np.unique(np.asarray(same))) == 7  # a batch draws noise of its own


def test_alpha_and_weights_have_batches_of_their_own():
    class Spy:
        alpha_optimiser = "some"
        darts_step = staticmethod(lambda key, state, batch, other, choice, kept: (batch, other))

    rows, nothing = jnp.arange(1000), (None, None)
    batch, other = _Steps(KEY, Spy(), (rows, rows), (rows, -rows), *nothing, 20)(None, 3)
    assert (batch[0] == batch[1]).all()
    assert (other[0] == -other[1]).all()
    assert np.mean(np.asarray(batch[0] == other[0])) < 0.2
    batch, other = _Steps(KEY, Spy(), (rows, rows), None, *nothing, 20)(None, 3)
    assert other is batch  # one level


def test_steps_draw_by_their_number_and_are_told_what_is_decided():
    class Spy(eqx.Module):
        space: ClassVar = SPACE
        alpha_optimiser: ClassVar = None

        def fixed_step(self, key, state, batch, choice, kept):
            return state + 1, (batch, choice, kept)

    rows = jnp.arange(1000)
    go = lambda *numbers, **more: train_supernet(KEY, Spy(), jnp.asarray(0), (rows, -rows), None, *numbers, **more)  # noqa: E731
    done, ((inputs, targets), choice, kept) = go(4, 20)
    assert int(done) == 4
    assert (inputs == -targets).all()
    assert len(np.unique(inputs)) > 70  # each step has a batch of its own
    assert (choice == -1).all()
    assert kept.all()
    _, ((rest, _), choice, kept) = go(2, 20, choice=[1, 2], kept=[True, False], first=2)
    np.testing.assert_array_equal(rest, inputs[2:])
    assert (choice.tolist(), kept.tolist()) == ([[1, 2]] * 2, [[True, False]] * 2)


# --- the small supernet, trained ------------------------------------------------------------------------------------

NET = CellSupernet(train=60, test=20, channels=3, num_cells=2)
DATA = (NET.inputs[:30], NET.labels[:30])
OTHER = (NET.inputs[30:], NET.labels[30:])


def by_hand(params, weights, x):
    """The supernet in NumPy, float64, by loops over positions; train mode."""
    stem, kernels, head, bias = (np.asarray(leaf, np.float64) for leaf in params)
    x = np.asarray(x, np.float64) @ stem

    def norm(y):
        return (y - y.mean((0, 1))) / np.sqrt(y.var((0, 1)) + 1e-5)

    def around(y, place):
        row, column = divmod(place, 4)
        for k in range(9):
            r, c = row + k // 3 - 1, column + k % 3 - 1
            if 0 <= r < 4 and 0 <= c < 4:
                yield k, y[:, 4 * r + c]

    for cell in range(kernels.shape[0]):
        nodes = [x]
        for target in (1, 2):
            total = 0.0
            for edge, (source, into) in enumerate(((0, 1), (0, 2), (1, 2))):
                if into == target:
                    y, kernel = nodes[source], kernels[cell, edge].reshape(9, 3, 3)
                    mean = np.stack([np.mean([v for _, v in around(y, p)], axis=0) for p in range(16)], axis=1)
                    conv = np.stack([sum(np.maximum(v, 0) @ kernel[k] for k, v in around(y, p)) for p in range(16)], 1)
                    w = weights[edge]
                    total = total + w[1] * y + w[2] * norm(mean) + w[3] * norm(conv)
            nodes.append(total)
        x = nodes[-1]
    return x.mean(1) @ head + bias


@pytest.fixture(scope="module")
def trained():
    """One program for everything: alpha learned, sgd with momentum."""
    adam = optax.chain(optax.add_decayed_weights(0.1), optax.adam(0.1))
    training = SupernetTraining(NET, optax.sgd(0.1, momentum=0.9), alpha_optimiser=adam)
    return training, training.init(*NET.init(jax.random.key(1)))


def test_the_supernet_is_what_its_docstring_says():
    params, state = NET.init(jax.random.key(1))
    weights = np.random.default_rng(0).uniform(size=(3, 4)).astype(np.float32)
    apply = jax.jit(lambda w, train: NET.apply(params, state, w, NET.inputs[:7], train=train), static_argnums=1)
    found, new = apply(weights, True)
    np.testing.assert_allclose(found, by_hand(params, weights, NET.inputs[:7]), rtol=1e-4, atol=1e-4)
    assert (np.asarray(apply(weights * [1, 1, 0, 1], True)[0]) != np.asarray(found)).any()
    zero = weights * [1, 1, 0, 1]
    more = np.where(np.arange(4) == 0, 9.0, zero).astype(np.float32)  # none adds nothing, whatever it weighs
    assert (np.asarray(apply(more, True)[0]) == np.asarray(apply(zero.astype(np.float32), True)[0])).all()
    # The statistics of one batch are the running ones after it; with those an example does not see the others.
    alone = jax.jit(lambda state, x: NET.apply(params, state, weights, x, train=False)[0])
    np.testing.assert_allclose(alone(new, NET.inputs[:7]), found, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(alone(new, NET.inputs[5:7]), found[5:7], rtol=1e-3, atol=1e-3)
    assert int(new[0].count) == 7 * 16
    assert new[1].mean.shape == (2, 2 * 2 * 3)


def test_one_operation_of_weight_one_is_the_network_alone():
    """conv3, skip, conv3 written out from layers, on the supernet's own parameters."""
    from laureate.layers import convolve

    params, state = NET.init(jax.random.key(2))
    found, _ = NET.apply(params, state, jnp.eye(4)[jnp.array([3, 1, 3])], NET.inputs[:5])
    norm = lambda y: (y - y.mean((0, 1, 2))) / jnp.sqrt(y.var((0, 1, 2)) + 1e-5)  # noqa: E731
    x = (NET.inputs[:5] @ params.stem).reshape(5, 4, 4, 3)
    for cell in range(2):
        kernel = lambda edge, cell=cell: params.kernels[cell, edge].reshape(3, 3, 3, 3)  # noqa: E731
        first = norm(convolve(jax.nn.relu(x), kernel(0)))
        x = x + norm(convolve(jax.nn.relu(first), kernel(2)))
    np.testing.assert_allclose(found, x.mean((1, 2)) @ params.head + params.bias, rtol=1e-4, atol=1e-5)


def test_a_step_is_alpha_on_validation_then_weights_on_training(trained):
    _, start = trained
    choice = jnp.array([-1, 2, -1])
    sgd = SupernetTraining(NET, optax.sgd(0.1), alpha_optimiser=optax.sgd(0.5))
    begin = sgd.init(start.params, start.net_state, jnp.ones((3, 4)) * jnp.arange(4.0))
    state, info = jax.jit(lambda s: sgd.darts_step(KEY, s, DATA, OTHER, choice))(begin)

    @jax.jit
    def slopes(params, alpha, new_alpha):
        loss = lambda p, a, batch: sgd.loss(  # noqa: E731
            KEY, p, start.net_state, effective_weights(sgd.space, a, choice), batch
        )[0]
        return jax.grad(loss, 1)(params, alpha, OTHER), jax.value_and_grad(loss)(params, new_alpha, DATA)

    for_alpha, (loss, for_params) = slopes(begin.params, begin.alpha, state.alpha)
    np.testing.assert_allclose(state.alpha, begin.alpha - 0.5 * for_alpha, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.params.kernels, begin.params.kernels - 0.1 * for_params.kernels, atol=1e-6)
    assert float(info.loss) == pytest.approx(float(loss), rel=1e-5)
    assert int(info.cost) == 2
    assert int(info.status) == 0
    assert not np.asarray(for_alpha)[1].any()
    assert np.asarray(for_alpha)[[0, 2]].any()


def test_a_step_of_darts_by_hand():
    """Edges that skip or scale, of three two decided, under a squared loss: NumPy knows both gradients."""

    class Scaling:
        ops = (("skip", "scale"),) * 3

        def apply(self, params, state, weights, x, *, key, train):
            return jnp.sum(weights[:, 0] + weights[:, 1] * params) * x, state

    draw = np.random.default_rng(0)
    batch, other = ((draw.normal(size=9), draw.normal(size=9)) for _ in range(2))
    decaying = optax.chain(optax.add_decayed_weights(0.1), optax.sgd(0.5))
    measure = lambda output, targets: ((output - targets) ** 2, output)  # noqa: E731
    training = SupernetTraining(Scaling(), optax.sgd(0.2), alpha_optimiser=decaying, measure=measure)
    alpha, scale = np.array([[0.3, -0.4], [2.0, 1.0], [1.0, 3.0]]), 2.0
    begin = training.init(jnp.asarray(scale), None, jnp.asarray(alpha))
    step = jax.jit(lambda state: training.darts_step(KEY, state, batch, other, jnp.array([-1, 1, 0])))
    state, info = step(begin)

    def by_hand(alpha, batch):
        """The share of "scale" on the first edge, the loss, and its slope in the factor of x."""
        share, (x, y) = 1 / (1 + np.exp(alpha[0, 0] - alpha[0, 1])), batch
        factor = (1 - share + share * scale) + scale + 1
        return share, np.mean((factor * x - y) ** 2), 2 * np.mean(x * (factor * x - y))

    share, _, slope = by_hand(alpha, other)
    gradient = slope * (scale - 1) * share * (1 - share) * np.array([-1, 1])
    moved = np.stack([alpha[0] - 0.5 * (gradient + 0.1 * alpha[0]), *alpha[1:]])  # no decay of what is decided
    np.testing.assert_allclose(state.alpha, moved, rtol=1e-5)
    share, loss, slope = by_hand(moved, batch)
    assert float(state.params) == pytest.approx(scale - 0.2 * slope * (share + 1), rel=1e-5)
    assert float(info.loss) == pytest.approx(loss, rel=1e-5)


def test_steps_of_darts_see_what_is_decided_and_dropped():
    """Every set of edges that is kept, with none, one and all of them decided: both slopes of a sum in closed form."""

    class Sum:
        ops = (("skip", "scale"),) * 3

        def apply(self, params, state, weights, x, *, key, train):
            return jnp.sum(weights[:, 0] + weights[:, 1] * params) * x, state

    measure = lambda output, targets: (output * targets, output)  # noqa: E731
    training = SupernetTraining(Sum(), optax.sgd(0.2), alpha_optimiser=optax.sgd(0.5), measure=measure)
    draw = np.random.default_rng(0)
    batch, other, alpha = draw.normal(size=(2, 9)), draw.normal(size=(2, 9)), draw.normal(size=(3, 2))
    choices = np.array([[-1, -1, -1], [-1, 1, -1], [0, -1, 1], [1, 0, 1]])
    kepts = np.array(list(itertools.product([False, True], repeat=3)))
    rows = [(choice, kept) for choice in choices for kept in kepts]
    begin = training.init(jnp.asarray(2.0), None, jnp.asarray(alpha))

    @jax.jit
    @jax.vmap
    def steps(choice, kept):
        return training.darts_step(KEY, begin, tuple(batch), tuple(other), choice, kept)

    state, info = steps(*(np.array(column) for column in zip(*rows, strict=True)))
    for number, (choice, kept) in enumerate(rows):
        size, to_weights = (float(np.mean(x * y)) for x, y in (other, batch))
        share = lambda a: np.exp(a[:, 1]) / np.exp(a).sum(1)  # noqa: E731
        free = kept & (choice < 0)
        # d/dα of Σ (1 − p) + 2 p is p (1 − p) (2 − 1), upwards for "scale"
        slope = np.where(free, share(alpha) * (1 - share(alpha)), 0) * size
        moved = alpha - 0.5 * np.stack([-slope, slope], axis=1)
        np.testing.assert_allclose(state.alpha[number], moved, atol=1e-6, err_msg=f"{choice} {kept}")
        scaled = np.where(kept, np.where(choice < 0, share(moved), choice), 0)
        np.testing.assert_allclose(state.params[number], 2 - 0.2 * scaled.sum() * to_weights, rtol=1e-5)
        total = np.where(kept, 1 + scaled, 0).sum()
        np.testing.assert_allclose(info.loss[number], total * to_weights, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_training_in_parts_is_training_and_decided_rows_never_move(trained):
    training, start = trained
    begin = start._replace(alpha=jnp.ones((3, 4)) * jnp.arange(4.0))
    go = lambda state, steps, first: train_supernet(  # noqa: E731
        KEY, training, state, DATA, OTHER, steps, 8, choice=jnp.array([-1, 2, -1]), first=first
    )
    whole, info = go(begin, 6, 0)
    half, _ = go(begin, 2, 0)
    half, rest = go(half, 4, 2)
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(half), jax.tree.leaves(whole), strict=True))
    assert (info.loss[2:] == rest.loss).all()
    assert len(info.loss) == 6
    assert int(info.cost.sum()) == 12
    moved = np.asarray(whole.alpha != begin.alpha).any(1)
    assert moved.tolist() == [True, False, True]  # although weight decay and momentum act on all rows
    assert int(whole.net_state[0].count) == 6 * 8 * 16  # the statistics of the weights' batches alone


def test_scores_discard_statistics_and_many_is_one_by_one(trained):
    _, start = trained
    weights = np.random.default_rng(0).uniform(size=(4, 3, 4)).astype(np.float32)
    score = SupernetScore(NET, start.params, start.net_state, OTHER, criterion="loss")
    before = jax.tree.leaves(score.state)
    many = score.many(weights)
    for w, found in zip(weights, many, strict=True):
        logits = by_hand(start.params, w, OTHER[0])
        logits = logits - logits.max(1, keepdims=True)
        nll = np.log(np.exp(logits).sum(1)) - logits[np.arange(30), np.asarray(OTHER[1])]
        assert found == pytest.approx(nll.mean(), rel=1e-3)
    assert all(a is b for a, b in zip(before, jax.tree.leaves(score.state), strict=True))
    both = SupernetScore(NET, start.params, start.net_state, OTHER, criterion="both")
    accuracy, loss = both.many(weights)
    np.testing.assert_allclose(loss, many, rtol=1e-5)
    logits = by_hand(start.params, weights[1], OTHER[0])
    assert accuracy[1] == pytest.approx((logits.argmax(1) == np.asarray(OTHER[1])).mean())
    check_supernet(KEY, NET, start.params, start.net_state, OTHER[0], key_reuse=True)


def test_the_whole_way_in_jax_equals_one_call_an_operation(trained):
    training, start = trained
    score = SupernetScore(NET, start.params, start.net_state, OTHER, criterion="loss")
    rule = PerturbationSelection(training.space, criterion="loss", exclude=("none",))
    alone = lambda weights: score(weights)  # noqa: E731  (has no ``many``)
    assert select(KEY, rule, score_fn=score).choice == select(KEY, rule, score_fn=alone).choice


# --- fronts ---------------------------------------------------------------------------------------------------------


def test_fronts_and_their_area():
    points = [(3.0, 0.9), (1.0, 0.2), (2.0, 0.6), (2.0, 0.5), (2.5, 0.6)]
    history = [Decision("operation", 0, 0, np.zeros(1), 1, np.array([[cost]]), score) for cost, score in points]
    front = pareto(history, lambda weights: weights[0, 0])
    assert front == (ParetoPoint(1.0, 0.2, 1), ParetoPoint(2.0, 0.6, 2), ParetoPoint(3.0, 0.9, 0))
    assert hypervolume(front, 4.0) == pytest.approx(0.2 + 0.6 + 0.9)
    assert hypervolume(front, 2.5, 0.1) == pytest.approx(0.1 + 0.5 * 0.5)
    assert hypervolume((), 2.0) == 0.0


def test_a_front_is_what_is_left_when_all_that_is_beaten_is_gone():
    """By its definition, of few costs and scores, so that many are equal; of those that are the same the first."""
    rng = np.random.default_rng(0)
    for many in (1, 2, 3, 5, 8, 13) * 20:
        points = [(float(cost), float(score)) for cost, score in rng.integers(0, 4, (many, 2))]
        history = [Decision("operation", 0, 0, np.zeros(1), 1, np.array([[cost]]), score) for cost, score in points]
        left = []
        for number, (cost, score) in enumerate(points):
            # What costs no more and is better, or as good and cheaper, or the same and earlier.
            rivals = [(s, -c, -other) for other, (c, s) in enumerate(points) if c <= cost]
            if max(rivals) == (score, -cost, -number):
                left.append(ParetoPoint(cost, score, number))
        front = pareto(history, lambda weights: weights[0, 0])
        assert front == tuple(sorted(left))
        best = [max([0.5, *(s for c, s in points if c <= cost)]) - 0.5 for cost in (0, 1, 2)]
        assert hypervolume(front, 3.0, 0.5) == pytest.approx(sum(best))


def test_no_logit_of_a_decided_row_may_be_moved_and_every_other_may():
    """One at a time, after each decision: all but the columns of decided edges are free."""
    rule = MagnitudeSelection(SPACE, order="fixed")
    for place in np.ndindex(*SPACE.shape):
        for last in range(1, SPACE.num_edges + 1):

            def moved(key, weights, state, place=place, last=last):
                alpha = np.array(state.alpha)
                alpha[place] += 0.5 * (int(state.step) == last)
                return alpha

            if place[0] < last:
                with pytest.raises(ValueError, match=rf"leave decided rows alone; got another alpha\[{place[0]}\]"):
                    select(KEY, rule, [[0.0, 1, 2]] * 2, tune_fn=moved)
            else:
                found = select(KEY, rule, [[0.0, 1, 2]] * 2, tune_fn=moved)
                assert float(found.state.alpha[place]) == place[1] + 0.5


def test_snapshots_are_scored_and_genotypes_travel():
    found = select(KEY, RULE, score_fn=lambda w: float(w[:, 2].sum()), snapshots=True)
    assert [round(float(step.score or 0), 5) for step in found.history] == [round(1 + 1 / 3, 5), 2.0]
    assert Genotype.from_json(found.genotype.to_json()) == found.genotype
    assert hash(found.genotype)
    assert found.num_scores == 6
