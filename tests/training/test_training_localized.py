"""The trainer: exact gradients above the boundary, exact steps below it, what is reset, reported and warned of."""

import io
import itertools
import re
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
from laureate.layers import BatchNorm
from laureate.testing import pairwise
from laureate.training import (
    Chain,
    Dense,
    Fixed,
    Frozen,
    Hebbian,
    HebbianCollapseWarning,
    LocalizedTraining,
    Normalised,
    NormRule,
    OfEpoch,
    RandomDirection,
    Staircase,
    WeakSupervision,
    cross_entropy,
    fit,
    local_block,
    predict,
    train,
)
from laureate.training.collapse import measure
from laureate.training.sites import LAYERS

SIZES = (5, 7, 6, 4, 3)


def network(seed=0, sizes=SIZES):
    generator = np.random.default_rng(seed)
    drawn = [jnp.asarray(generator.normal(size=(o, i)), jnp.float32) for i, o in itertools.pairwise(sizes)]
    return [*(Chain((Dense(d), jax.nn.relu)) for d in drawn[:-1]), Dense(drawn[-1])]


def data(count=12, seed=1, inputs=SIZES[0]):
    generator = np.random.default_rng(seed)
    return jnp.asarray(generator.normal(size=(count, inputs)), jnp.float32), jnp.asarray(
        generator.integers(SIZES[-1], size=count)
    )


def equal(first, second):
    for one, two in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        if eqx.is_array(one):
            np.testing.assert_array_equal(one, two)


def weights(state):
    layers: list[Any] = [block.layers[0] if isinstance(block, Chain) else block for block in state.blocks]
    return [layer.weight for layer in layers]


# --- above the boundary -----------------------------------------------------------------------------------------------


def plain_training(optimiser, blocks, batches):
    """What everybody writes with Optax."""
    params, rest = eqx.partition(tuple(blocks), eqx.is_inexact_array)
    state = optimiser.init(params)
    slope = jax.grad(lambda p, inputs, targets: cross_entropy(predict(eqx.combine(p, rest), inputs), targets))
    for batch in batches:
        slopes = slope(params, *batch)
        updates, state = optimiser.update(slopes, state, params)
        params = optax.apply_updates(params, updates)
    return eqx.combine(params, rest)


OPTIMISERS = {
    "momentum": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "clipped-decayed": optax.chain(optax.clip_by_global_norm(0.3), optax.adamw(0.01, weight_decay=0.1)),
}


@pytest.mark.parametrize("name", [pytest.param("momentum", marks=pytest.mark.slow), "clipped-decayed"])
def test_boundary_zero_is_plain_training_bit_by_bit(name):
    blocks, batches = network(), [data(seed=s) for s in range(3)]
    trainer = LocalizedTraining(Fixed(0), Hebbian(), OPTIMISERS[name])
    state = trainer.init(jax.random.key(0), blocks)
    for batch in batches:
        state, _ = trainer.step(state, *batch)
    equal(state.blocks, plain_training(OPTIMISERS[name], blocks, batches))


@pytest.mark.parametrize("boundary", [1, 3])
def test_gradients_above_the_boundary_are_those_of_backpropagation_and_below_nothing_moves(boundary):
    blocks, (inputs, targets) = network(), data()
    trainer = LocalizedTraining(Fixed(boundary), Frozen(), optax.sgd(1.0))
    start = trainer.init(jax.random.key(0), blocks)
    state, info = trainer.step(start, inputs, targets)
    params, rest = eqx.partition(tuple(blocks), eqx.is_inexact_array)
    loss, slopes = jax.value_and_grad(lambda p: cross_entropy(predict(eqx.combine(p, rest), inputs), targets))(params)
    assert float(info.loss) == float(loss)
    outputs = np.asarray(predict(blocks, inputs), np.float64)
    likelihood = outputs[np.arange(len(targets)), targets] - np.log(np.exp(outputs).sum(1))
    assert float(loss) == pytest.approx(-likelihood.mean(), rel=1e-5)
    equal(state.blocks[:boundary], blocks[:boundary])
    # W − 1·∂W, as Optax takes it.
    equal(
        eqx.filter(state.blocks[boundary:], eqx.is_array),
        jax.tree.map(lambda w, g: w + -1.0 * g, params, slopes)[boundary:],
    )
    norm = np.sqrt(sum(float(jnp.sum(g**2)) for g in jax.tree.leaves(slopes[boundary])))
    assert float(info.update_norm) == pytest.approx(norm, rel=1e-5)
    assert int(info.cost) == len(blocks) - boundary


@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg"])
def test_keys_of_other_generators_are_taken(kind):
    trainer = LocalizedTraining(Fixed(1), RandomDirection(hold=0), optax.sgd(1.0))
    state = trainer.init(jax.random.key(0, impl=kind), network())
    new, _ = eqx.filter_eval_shape(trainer.step, state, *data())
    assert (new.key.shape, new.key.dtype) == (state.key.shape, state.key.dtype)


def test_clipping_and_decay_act_on_the_blocks_that_learn_alone():
    blocks, batch = network(), data()
    trainer = LocalizedTraining(Fixed(2), Frozen(), optax.chain(optax.clip_by_global_norm(1e-3), optax.sgd(1.0)))
    state = trainer.init(jax.random.key(0), blocks)
    new, _ = trainer.step(state, *batch)
    moved = [np.asarray(a - b) for a, b in zip(weights(new), weights(state), strict=True)]
    biases = [np.asarray(a.bias - b.bias) for a, b in ((new.blocks[3], state.blocks[3]),)]
    biases.append(np.asarray(new.blocks[2].layers[0].bias - state.blocks[2].layers[0].bias))
    assert np.sqrt(sum((m**2).sum() for m in (*moved, *biases))) == pytest.approx(1e-3, rel=1e-3)


# --- below the boundary -----------------------------------------------------------------------------------------------

NUMPY_NORMS = {"l2": np.linalg.norm, "l1": lambda d: np.abs(d).sum(), "max": lambda d: np.abs(d).max()}
ROWS = pairwise(
    {"normalise": ["l2", "l1", "max", None], "relative": [True, False], "rising": [1.0, -1.0, 0.1], "boundary": [1, 2]},
    lambda row: row["normalise"] is not None or not row["relative"],
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_local_step_by_hand(row):
    blocks, (inputs, targets) = network(), data()
    trainer = LocalizedTraining(
        Fixed(row["boundary"]),
        Hebbian(),
        optax.sgd(0.1),
        supervision=WeakSupervision(rising=row["rising"]),
        local_rate=0.02,
        normalise=row["normalise"],
        relative=row["relative"],
    )
    state = trainer.init(jax.random.key(0), blocks)._replace(average=jnp.asarray(0.0))  # the loss has risen
    new, info = trainer.step(state, inputs, targets)
    assert float(info.factor) == np.float32(row["rising"])
    seen = np.asarray(inputs, np.float64)
    for number in range(row["boundary"]):
        weight = np.asarray(blocks[number].layers[0].weight, np.float64)
        z = seen @ weight.T
        move = z.T @ seen / len(seen)
        norm = NUMPY_NORMS.get(row["normalise"] or "", lambda d: 1.0)
        length = row["rising"] * 0.02 / norm(move.ravel()) * (norm(weight.ravel()) if row["relative"] else 1.0)
        np.testing.assert_allclose(new.blocks[number].layers[0].weight, weight + length * move, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(new.blocks[number].layers[0].bias, blocks[number].layers[0].bias)
        seen = np.maximum(z + np.asarray(blocks[number].layers[0].bias), 0)  # all see the weights of before the step


def test_the_sign_takes_a_held_direction_back():
    """Losses that alternate give s = +1, −1, +1, −1: after an even number of steps the weights are where they were."""
    blocks, (inputs, _) = network(), data()
    trainer = LocalizedTraining(
        Fixed(2),
        RandomDirection(hold=0),
        optax.sgd(0.0),
        loss=lambda outputs, targets: targets + 0 * jnp.sum(outputs),
        supervision=WeakSupervision(rising=-1.0),
        local_rate=0.1,
        relative=False,
    )
    state = start = trainer.init(jax.random.key(0), blocks)
    factors, apart = [], []
    for loss in (1.0, 2.0, 1.0, 2.0):
        state, info = trainer.step(state, inputs, jnp.asarray(loss))
        factors.append(float(info.factor))
        apart.append(float(jnp.linalg.norm(weights(state)[0] - weights(start)[0])))
    assert factors == [1.0, -1.0, 1.0, -1.0]
    np.testing.assert_allclose(apart, [0.1, 0.0, 0.1, 0.0], atol=1e-6)


def test_a_window_compares_with_the_running_loss():
    supervision = WeakSupervision(rising=-1.0, window=4.0)
    average, found = jnp.asarray(jnp.inf), []
    for loss in (1.0, 2.0, 1.2, 1.3):
        found.append(float(supervision(jnp.asarray(loss), average)))
        average = supervision.average(jnp.asarray(loss), average)
    running = [1.0, 1.25, 1.2375, 1.253125]
    assert float(average) == pytest.approx(running[-1])
    assert found == [1.0, -1.0, 1.0, -1.0]  # 1.2 < 1.25 although 1.3 > 1.2375


def test_a_dead_layer_stays():
    blocks = network()
    blocks[0] = eqx.tree_at(lambda b: b.layers[0].bias, blocks[0], jnp.full(SIZES[1], -1e6))
    trainer = LocalizedTraining(Fixed(2), Hebbian(), optax.sgd(0.1), local_rate=0.1)
    state = trainer.init(jax.random.key(0), blocks)
    new, info = trainer.step(state, *data())
    np.testing.assert_array_equal(weights(new)[1], weights(state)[1])  # its inputs are zero, and so is ΔW
    assert int(info.status) == 0


def test_what_is_not_finite_changes_nothing():
    inputs, targets = data()
    trainer = LocalizedTraining(Fixed(2), Hebbian(), optax.adam(0.1), local_rate=0.1)
    state = trainer.init(jax.random.key(0), network())
    new, info = trainer.step(state, inputs.at[0, 0].set(jnp.nan), targets)
    assert int(info.status) == 1
    equal(new.blocks, state.blocks)
    equal(new.optimiser, state.optimiser)
    assert (int(new.step), int(new.epoch_steps), float(new.loss_sum)) == (1, 0, 0.0)


def test_a_gradient_that_is_not_finite_changes_nothing_though_the_loss_is_finite():
    trainer = LocalizedTraining(Fixed(2), Frozen(), optax.adam(0.1), loss=lambda o, _: jnp.sqrt(jnp.sum(0 * o)))
    state = trainer.init(jax.random.key(0), network())
    new, info = eqx.filter_jit(trainer.step)(state, *data())
    assert (float(info.loss), int(info.status)) == (0.0, Status.DIVERGED)
    equal(new.blocks, state.blocks)
    equal(new.optimiser, state.optimiser)


def test_an_update_above_the_transition_block_that_is_not_finite_changes_nothing():
    """Loss and gradient are finite, and so is the update of block T; the last block's alone is not."""

    def update(slopes, state, params=None):
        return (*slopes[:-1], jax.tree.map(lambda slope: slope / 0.0, slopes[-1])), state

    broken = optax.GradientTransformation(lambda params: optax.EmptyState(), update)
    trainer = LocalizedTraining(Fixed(1), Frozen(), broken)
    state = trainer.init(jax.random.key(0), network())
    new, info = eqx.filter_jit(trainer.step)(state, *data())
    assert np.isfinite(info.loss)
    assert np.isfinite(info.update_norm)
    assert int(info.status) == Status.DIVERGED
    equal(new.blocks, state.blocks)


def test_a_local_update_that_overflows_changes_nothing_though_the_loss_is_finite():
    small = lambda z: jnp.tanh(1e-30 * z)  # noqa: E731
    blocks = [Chain((Dense(jnp.ones((4, 4))), small)), Dense(jnp.ones((2, 4)))]
    trainer = LocalizedTraining(Fixed(1), Hebbian(), optax.sgd(0.1))
    state = trainer.init(jax.random.key(0), blocks)
    after, info = trainer.step(state, jnp.full((3, 4), 1e25), jnp.array([0, 1, 0]))  # z aᵀ is beyond float32
    assert np.isfinite(info.loss)
    assert int(info.status) == Status.DIVERGED
    equal(after.blocks, state.blocks)


# --- the boundary moves -----------------------------------------------------------------------------------------------


def test_moving_keeps_what_the_optimiser_knows_of_the_others_and_reports_the_rest():
    trainer = LocalizedTraining(Fixed(0), Frozen(), optax.adam(optax.constant_schedule(0.1)), monotone=False)
    state = trainer.init(jax.random.key(0), network())
    for _ in range(2):
        state, _ = trainer.step(state, *data())
    moved, reset = trainer.move(state, 2)
    adam, old = moved.optimiser[0], state.optimiser[0]
    assert adam.mu[:2] == (None, None)
    equal(adam.mu[2:], old.mu[2:])
    assert int(adam.count) == 2
    assert len(reset) == 2 * 2 * 2  # mean and square of weight and bias of two blocks
    assert all("[0]" in path or "[1]" in path for path in reset)
    back, again = trainer.move(moved, 0)
    assert set(again) == set(reset)
    equal(jax.tree.leaves(back.optimiser[0].mu[:2]), [jnp.zeros_like(leaf) for leaf in jax.tree.leaves(old.mu[:2])])
    equal(back.optimiser[0].mu[2:], old.mu[2:])
    assert trainer.move(state, 0)[1] == ()


def test_an_epoch_ends_with_a_report():
    trainer = LocalizedTraining(
        OfEpoch([0, 2, 2].__getitem__), Hebbian(), optax.sgd(0.1, momentum=0.9), local_rate=1e-3
    )
    state, told = trainer.init(jax.random.key(0), network()), []
    losses, norms, before = [], [], weights(state)
    for epoch in range(2):
        for seed in range(2):
            state, info = trainer.step(state, *data(seed=seed))
            losses.append(float(info.loss))
            norms.append(float(info.update_norm))
        before = weights(state)
        state, report = trainer.end_epoch(state, tuple(told))
        told.append(report)
        assert report.loss == pytest.approx(np.mean(losses[-2:]), rel=1e-6)
        assert report.update_norm == pytest.approx(np.mean(norms[-2:]), rel=1e-6)
        assert (report.epoch, int(state.epoch_steps), float(state.loss_sum)) == (epoch, 0, 0.0)
    first, second = told
    assert (first.boundary, first.next_boundary, second.boundary) == (0, 2, 2)
    assert len(first.reset) == 4
    assert "0 to 2: 4 entries" in first.note
    assert "weight decay" in first.note
    assert (first.weights, second.reset, second.note) == ((), (), "")
    assert [(w.block, w.path) for w in second.weights] == [(0, ".layers[0].weight"), (1, ".layers[0].weight")]
    assert second.weights[1].norm == pytest.approx(float(jnp.linalg.norm(before[1])), rel=1e-5)
    assert second.weights[1].growth == pytest.approx(1.002, rel=1e-3)  # two steps of a thousandth along W itself


STRETCH = jnp.array([3.0, 1.0, 0.5, 0.3, 0.1])  # inputs with one direction that stands out


def stretched():
    inputs, targets = data(64)
    return inputs * STRETCH, targets


@pytest.mark.slow
def test_collapse_is_warned_of_with_numbers_and_then_measured_anew():
    trainer = LocalizedTraining(Fixed(2), Hebbian(), optax.sgd(0.0), local_rate=0.5)
    state = trainer.init(jax.random.key(0), network())
    for _ in range(6):
        state, _ = trainer.step(state, *stretched())
    with pytest.warns(HebbianCollapseWarning) as told:
        state, report = trainer.end_epoch(state, ())
    for number, warning in enumerate(told):
        pattern = rf"Block {number}, .*factor \d.*directions, \d+%.*local_rate \(now 0\.5\)"
        assert re.search(pattern, str(warning.message))
    assert len(told) == 2
    assert report.weights[0].growth > 2
    assert report.weights[0].kept < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state, again = trainer.end_epoch(state, (report,))  # an epoch without a step
    assert again.weights[0].kept == pytest.approx(1.0)


def test_norms_are_compared_within_an_epoch_and_directions_since_a_block_became_local_or_was_warned_of():
    """Block 0, local after the first epoch, with weights by hand: equal singular values, as many as directions."""
    trainer = LocalizedTraining(OfEpoch(lambda epoch: min(epoch, 1)), Hebbian(), optax.sgd(0.1))
    state, told = trainer.init(jax.random.key(0), network()), []
    epochs = [  # (singular value, directions, growth, share of directions kept, whether it is warned of)
        (3.0, 2, None, None, False),  # by gradients
        (4.5, 2, 1.5, 1.0, False),
        (6.75, 2, 1.5, 1.0, False),
        (6.75, 4, np.sqrt(2), 2.0, False),
        (6.75, 2, np.sqrt(0.5), 1.0, False),
        (6.0, 1, 6 / np.sqrt(2) / 6.75, 0.5, True),  # just half of its directions
        (12.0, 1, 2.0, 1.0, True),  # just doubled
        (23.5, 1, 23.5 / 12, 1.0, False),
    ]
    for value, directions, growth, kept, warned in epochs:
        weight = jnp.asarray(value * np.eye(SIZES[1], SIZES[0]) * (np.arange(SIZES[0]) < directions), jnp.float32)
        blocks = eqx.tree_at(lambda blocks: blocks[0].layers[0].weight, state.blocks, weight)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            state, report = trainer.end_epoch(state._replace(blocks=blocks), tuple(told))
        told.append(report)
        assert [issubclass(one.category, HebbianCollapseWarning) for one in said] == [True] * warned
        wanted = [(value * np.sqrt(directions), growth, directions, kept)] if growth else []
        assert [found[2:] for found in report.weights] == [pytest.approx(numbers, rel=1e-6) for numbers in wanted]


def test_an_epoch_without_a_finite_step_has_no_loss_and_moves_nothing():
    inputs, targets = data()
    trainer = LocalizedTraining(NormRule(0.9), Frozen(), optax.sgd(0.1))
    state, told, step = trainer.init(jax.random.key(0), network()), (), eqx.filter_jit(trainer.step)
    for bad in (False, True, True):
        state, info = step(state, inputs.at[0, 0].set(jnp.nan) if bad else inputs, targets)
        state, report = trainer.end_epoch(state, told)
        told = (*told, report)
        assert (np.isnan(report.loss), np.isnan(report.update_norm)) == (bad, bad)
        assert bad or (report.loss, report.update_norm) == (float(info.loss), float(info.update_norm))
        assert (report.next_boundary, state.boundary.index) == (0, 0)
    state, _ = step(step(state, inputs.at[0, 0].set(jnp.nan), targets)[0], inputs, targets)
    report = trainer.end_epoch(state, told)[1]
    assert np.isfinite([report.loss, report.update_norm]).all()  # over the steps that were finite


def test_a_weight_of_zeros_that_stays_so_has_not_collapsed():
    blocks = network()
    blocks[0] = eqx.tree_at(lambda block: block.layers[0].weight, blocks[0], jnp.zeros((SIZES[1], SIZES[0])))
    trainer = LocalizedTraining(Fixed(2), Frozen(), optax.sgd(0.1))
    state = trainer.init(jax.random.key(0), blocks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state, report = trainer.end_epoch(state, ())
    assert report.weights[0][2:] == (0.0, 1.0, 0.0, 1.0)
    assert report.weights[1][2:] == pytest.approx((report.weights[1].norm, 1, report.weights[1].participation, 1))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_weights_are_measured_in_single_precision(kind):
    """Norms of which half precision does not hold the square, beside NumPy's."""
    rng = np.random.default_rng(0)
    blocks = [Dense(jnp.asarray(size * rng.normal(size=(4, 8)), kind)) for size in (1e-4, 1.0, 2e3)]
    for (norm, participation), block in zip(measure(blocks, LAYERS), blocks, strict=True):
        values = np.linalg.svd(np.asarray(block.weight, np.float64), compute_uv=False) ** 2
        assert float(norm) == pytest.approx(np.sqrt(values.sum()), rel=1e-5)
        assert float(participation) == pytest.approx(values.sum() ** 2 / (values**2).sum(), rel=1e-4)


# --- blocks of other kinds --------------------------------------------------------------------------------------------


class Attention(eqx.Module):
    """One token an example: it only has to be there."""

    inner: eqx.nn.MultiheadAttention

    def __call__(self, inputs):
        return jax.vmap(lambda row: self.inner(row[None], row[None], row[None])[0])(inputs)


def attention_first():
    return [Attention(eqx.nn.MultiheadAttention(1, SIZES[0], key=jax.random.key(9))), *network()]


def test_what_no_rule_knows_may_be_frozen():
    trainer = LocalizedTraining(Fixed(2), Hebbian(), optax.sgd(0.1), local_rate=0.1, on_unsupported="freeze")
    state = trainer.init(jax.random.key(0), attention_first())
    new, _ = trainer.step(state, *data())
    equal(new.blocks[0], state.blocks[0])
    assert not np.allclose(new.blocks[1].layers[0].weight, state.blocks[1].layers[0].weight)
    LocalizedTraining(Fixed(2), Frozen(), optax.sgd(0.1)).init(jax.random.key(0), attention_first())


def test_the_last_block_is_never_local_and_may_be_anything():
    """No rule need know it, and nobody need say what its running statistics do while they are local."""
    attention = Attention(eqx.nn.MultiheadAttention(1, SIZES[-1], key=jax.random.key(9)))
    for last in (attention, Normalised(Dense(jnp.eye(SIZES[-1])), BatchNorm(SIZES[-1]))):
        trainer = LocalizedTraining(Fixed(len(SIZES) - 1), Hebbian(), optax.sgd(0.1))
        assert trainer.init(jax.random.key(0), [*network(), last]).boundary.index == len(SIZES) - 1


class Scaled(eqx.Module):
    """A dense layer beside a parameter that no rule knows."""

    dense: Dense
    scale: jax.Array

    def __call__(self, inputs):
        return self.scale * self.dense(inputs)


@pytest.mark.parametrize("statistics", ["update", "freeze"])
def test_a_local_pass_goes_on_averaging_or_not_and_leaves_what_no_rule_knows(statistics):
    """The first block is one that no rule knows, the second normalises, by the batch or by what was averaged."""
    inputs = data()[0]
    blocks = [Scaled(Dense(jnp.eye(5)), jnp.asarray(2.0)), Normalised(Dense(jnp.eye(5)), BatchNorm(5))]
    more = {"on_unsupported": "freeze", "batch_statistics": statistics}
    trainer = LocalizedTraining(Fixed(2), Hebbian(), optax.sgd(0.1), **more)
    outputs, after, moves = eqx.filter_jit(trainer.local_pass)(jax.random.key(0), jnp.asarray(0), blocks, inputs)
    seen = np.asarray(blocks[0](inputs))
    assert moves[0] == {".dense.weight": None}
    hebb = np.asarray(blocks[1].layer.weight) @ seen.T @ seen / len(seen)
    np.testing.assert_allclose(np.asarray(moves[1][".layer.weight"]), hebb, atol=1e-5)
    assert int(after[1].statistics.count) == (len(seen) if statistics == "update" else 0)
    wanted = blocks[1].train(seen)[0] if statistics == "update" else blocks[1](seen)
    np.testing.assert_allclose(outputs, wanted, atol=1e-4)


class Gain(eqx.Module):
    """A block with a rule of its own: its gain follows the mean square of what it sees."""

    gain: jax.Array

    def __call__(self, inputs):
        return self.gain * inputs

    def local(self, key, step, rule, inputs):
        return self(inputs), self, {".gain": jnp.mean(inputs**2, axis=0)}


def test_a_block_with_a_rule_of_its_own():
    (inputs, targets), blocks = data(), [Gain(jnp.ones(SIZES[0])), *network()]
    trainer = LocalizedTraining(Fixed(1), Hebbian(), optax.sgd(0.1), local_rate=0.5, normalise=None, relative=False)
    state, _ = trainer.step(trainer.init(jax.random.key(0), blocks), inputs, targets)
    np.testing.assert_allclose(state.blocks[0].gain, 1 + 0.5 * np.mean(np.asarray(inputs) ** 2, axis=0), rtol=1e-6)


def test_half_precision_is_added_up_in_single_precision():
    """257 ones have the norm 257, and bfloat16 knows 256 and 258 alone."""
    half = jnp.bfloat16
    blocks = [Gain(jnp.zeros(257, half)), Dense(jnp.ones((2, 257), half))]
    trainer = LocalizedTraining(Fixed(1), Hebbian(), optax.sgd(0.1), local_rate=256.0, normalise="l1", relative=False)
    state = trainer.init(jax.random.key(0), blocks)
    new, info = eqx.filter_jit(trainer.step)(state, jnp.ones((2, 257), half), jnp.array([0, 1]))
    np.testing.assert_array_equal(new.blocks[0].gain, half(256 / 257))
    assert new.blocks[1].weight.dtype == half
    sums = (new.average, new.loss_sum, new.norm_sum, new.reference, info.update_norm)
    assert {str(leaf.dtype) for leaf in sums} == {"float32"}


def test_running_statistics_move_with_gradients_and_are_no_parameters():
    inputs, targets = data()
    blocks = [Normalised(Dense(jnp.eye(5)), BatchNorm(5)), Normalised(Dense(jnp.eye(5)), BatchNorm(5)), *network()]
    for how in ("update", "freeze"):
        trainer = LocalizedTraining(Fixed(1), Frozen(), optax.adam(0.1), batch_statistics=how)
        state = trainer.init(jax.random.key(0), blocks)
        assert "statistics" not in str([path for path, _ in jax.tree_util.tree_leaves_with_path(state.optimiser)])
        new, _ = trainer.step(state, inputs, targets)
        assert int(new.blocks[0].statistics.count) == (len(inputs) if how == "update" else 0)
        assert int(new.blocks[1].statistics.count) == len(inputs)
        np.testing.assert_array_equal(new.blocks[0].norm.scale, 1.0)
        assert not np.allclose(new.blocks[1].norm.scale, 1.0)


# --- whole runs -------------------------------------------------------------------------------------------------------


def test_saved_and_loaded_it_goes_on_as_if_it_had_not_been_stopped():
    inputs, targets = data(12)
    trainer = LocalizedTraining(
        Staircase(start=1, every=1, max_boundary=2), RandomDirection(), optax.adam(0.01), local_rate=jnp.asarray(1e-2)
    )
    start = trainer.init(jax.random.key(0), network())
    options = {"batch": 5}  # two of twelve wait
    whole, told = fit(jax.random.key(1), trainer, start, inputs, targets, num_epochs=4, **options)
    half, history = fit(jax.random.key(1), trainer, start, inputs, targets, num_epochs=2, **options)
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, half)
    file.seek(0)
    half = eqx.tree_deserialise_leaves(file, half)
    seen = []
    whole_again, again = fit(
        jax.random.key(1), trainer, half, inputs, targets, num_epochs=2, history=history,
        after_epoch=lambda state, report: seen.append(report.epoch), **options,
    )  # fmt: skip
    equal(whole, whole_again)
    assert told == again
    assert seen == [2, 3]
    assert [report.boundary for report in told] == [0, 1, 2, 2]
    assert all(weight.growth != 1.0 for report in told for weight in report.weights)  # the rule is at work
    assert int(whole.step) == 8


def test_every_epoch_has_its_number_its_rule_and_what_comes_before_and_after_it(monkeypatch):
    """Two calls are as one: what is handed to the epochs, without any step."""
    asked: list[Any] = []

    def epoch(key, trainer, state, inputs, targets, batch, first):
        asked.append((int(first), type(trainer.rule), int(state.step), batch))
        return state._replace(epoch_steps=state.epoch_steps + 1), None

    monkeypatch.setattr("laureate.training.fitting._epoch", epoch)
    trainer = LocalizedTraining(Staircase(start=1, every=1, max_boundary=2), Hebbian(), optax.sgd(0.1))
    state, told, after = trainer.init(jax.random.key(0), network()), (), []
    for num_epochs in (1, 3):
        state, told = fit(
            jax.random.key(1), trainer, state, *data(), batch=5, num_epochs=num_epochs, history=told,
            before_epoch=lambda state, number: state._replace(step=jnp.asarray(10 * number)),
            after_epoch=lambda state, report: after.append((report.epoch, state.boundary.index)),
        )  # fmt: skip
    assert asked == [(0, Frozen, 0, 5), (1, Hebbian, 10, 5), (2, Hebbian, 20, 5), (3, Hebbian, 30, 5)]
    assert [(report.epoch, report.boundary, report.next_boundary) for report in told] == [
        (0, 0, 1), (1, 1, 2), (2, 2, 2), (3, 2, 2),
    ]  # fmt: skip
    assert after == [(0, 1), (1, 2), (2, 2), (3, 2)]


def test_every_example_is_seen_once_an_epoch_in_another_order():
    inputs, targets = jnp.arange(6.0)[:, None] * jnp.ones(SIZES[0]), jnp.zeros(6, int)
    seen = []

    def loss(outputs, targets):
        return jnp.mean(outputs) + 0 * targets.sum()

    blocks = [
        Chain((Dense(jnp.eye(5)), lambda x: (jax.debug.callback(lambda r: seen.append(r), x[:, 0]), x)[1])),
        *network(),
    ]
    trainer = LocalizedTraining(Fixed(1), Frozen(), optax.sgd(0.0), loss=loss)
    state = trainer.init(jax.random.key(0), blocks)
    train(jax.random.key(3), trainer, state, inputs, targets, batch=2, num_epochs=2)
    jax.effects_barrier()
    rows = np.concatenate(seen).reshape(2, 6)
    assert (np.sort(rows, axis=1) == np.sort(rows[0])).all()
    assert len(np.unique(rows[0])) == 6
    assert (rows[0] != rows[1]).any()
    seen.clear()
    train(jax.random.key(3), trainer, state, inputs, targets, batch=2, num_epochs=2, first=1)
    jax.effects_barrier()
    later = np.concatenate(seen).reshape(2, 6)
    np.testing.assert_array_equal(later[0], rows[1])  # the order depends on the epoch's absolute number
    assert (later[1] != rows[0]).any()


def test_examples_that_fill_no_batch_are_others_in_every_epoch():
    """Of seven in batches of three one waits: another from epoch to epoch, with its target, and each at some time."""

    class Spy:
        def step(self, state, inputs, targets):
            return state, (inputs, targets)

    rows, targets = jnp.arange(7), {"tenfold": 10 * jnp.arange(7)}
    trainer: Any = Spy()
    epochs = jax.jit(lambda key: train(key, trainer, jnp.zeros(()), rows, targets, batch=3, num_epochs=60)[1])  # pyright: ignore
    seen, told = jax.device_get(epochs(jax.random.key(0)))
    np.testing.assert_array_equal(told["tenfold"], 10 * seen)
    waiting = [set(range(7)) - set(epoch) for epoch in seen.reshape(60, 6).tolist()]
    assert {len(one) for one in waiting} == {1}
    assert set().union(*waiting) == set(range(7))


def test_outputs_of_a_local_pass_are_those_of_the_network():
    blocks, (inputs, _) = network(), data()
    hidden = inputs
    for block in blocks[:2]:
        hidden, _, _ = local_block(jax.random.key(0), jnp.asarray(0), Hebbian(), block, hidden)
    np.testing.assert_array_equal(hidden, predict(blocks[:2], inputs))
