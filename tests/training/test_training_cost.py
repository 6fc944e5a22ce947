"""The cost model against formulas and against XLA's own count; what is kept for the backward pass."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.layers import BatchNorm, Convolution
from laureate.training import (
    Chain,
    Dense,
    Fixed,
    Frozen,
    Hebbian,
    LocalizedTraining,
    Normalised,
    Oja,
    cost_table,
    count_operations,
    step_cost,
)
from laureate.training.blocks import advance

SIZES, BATCH = (11, 13, 17, 19, 23, 3), 8
PRODUCTS = [2 * BATCH * i * o for i, o in itertools.pairwise(SIZES)]
INPUTS, TARGETS = jax.ShapeDtypeStruct((BATCH, SIZES[0]), jnp.float32), jax.ShapeDtypeStruct((BATCH,), jnp.int32)


def network(sizes=SIZES):
    drawn = [
        jnp.asarray(np.random.default_rng(0).normal(size=(o, i)), jnp.float32) for i, o in itertools.pairwise(sizes)
    ]
    return [*(Chain((Dense(d), jax.nn.relu)) for d in drawn[:-1]), Dense(drawn[-1])]


def trainer(rule, boundary=0):
    return LocalizedTraining(Fixed(boundary), rule, optax.sgd(0.1))


@pytest.mark.parametrize("boundary", range(len(SIZES) - 1))
def test_products_are_those_of_the_formula(boundary):
    """Forward one a layer; backward two, but one at the boundary, where nobody asks for the error of the inputs."""
    forward = sum(PRODUCTS)
    backward = sum(2 * p for p in PRODUCTS[boundary:]) - PRODUCTS[boundary]
    for rule, local in ((Frozen(), 0), (Hebbian(), sum(PRODUCTS[:boundary])), (Oja(), sum(PRODUCTS[:boundary]))):
        found = step_cost(trainer(rule), network(), INPUTS, TARGETS, boundary, elementwise=False)
        assert (found.forward, found.local, found.backward) == (forward, local, backward)
        assert found.total == forward + local + backward


@pytest.mark.slow
def test_at_most_one_and_a_half_times_as_fast():
    """All blocks but the last local: two products a layer instead of three. Frozen: one instead of three."""
    blocks, boundary = network((16,) * 41), 39
    costs = [step_cost(trainer(rule), blocks, jax.ShapeDtypeStruct((4, 16), jnp.float32),
                       jax.ShapeDtypeStruct((4,), jnp.int32), t, elementwise=False).total
             for rule, t in ((Frozen(), 0), (Hebbian(), boundary), (Frozen(), boundary))]  # fmt: skip
    full, localized, frozen = costs
    assert full / localized == pytest.approx(119 / 80)  # (3·40 − 1)/(2·40)
    assert full / frozen == pytest.approx(119 / 41)


@pytest.mark.parametrize("boundary", [0, 1, 2])
def test_a_pass_that_normalises_by_what_was_averaged_costs_less_and_freezing_nothing(boundary):
    """The parts of a step are what is computed: of local blocks with the statistics that they use."""
    blocks = [*(Normalised(Dense(jnp.ones((4, 4)) / n), BatchNorm(4)) for n in (1, 2)), Dense(jnp.ones((3, 4)))]
    batch = jax.ShapeDtypeStruct((8, 4), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.int32)
    found = {}
    for how in ("update", "freeze"):
        method = LocalizedTraining(Fixed(boundary), Frozen(), optax.sgd(0.1), batch_statistics=how)
        found[how] = step_cost(method, blocks, *batch, boundary)
        passed = lambda x, m=method: m.local_pass(jax.random.key(0), jnp.asarray(0), blocks[:boundary], x)[0]  # noqa: E731
        above = lambda x: functools.reduce(lambda x, block: advance(block, x)[0], blocks[boundary:], x)  # noqa: E731
        loss = lambda x, y, m=method, above=above: m.loss(above(x), y)  # noqa: E731
        assert (found[how].local > 0) == (how == "update" and boundary > 0)  # averaging goes beyond a forward pass
        assert found[how].forward == count_operations(passed, batch[0]) + count_operations(loss, *batch)
    assert found["update"].backward == found["freeze"].backward
    assert (found["freeze"].forward < found["update"].forward) == (boundary > 0)


def test_nothing_below_the_boundary_is_kept():
    """A block that becomes local leaves nothing: neither its inputs, four bytes each, nor which units were active."""
    kept = [step_cost(trainer(Hebbian()), network(), INPUTS, TARGETS, t).kept for t in range(len(SIZES) - 1)]
    saved = [BATCH * (4 * SIZES[t] + SIZES[t + 1]) for t in range(len(SIZES) - 2)]
    assert [before - after for before, after in itertools.pairwise(kept)] == saved


def test_the_compiler_computes_no_gradient_below_the_boundary():
    """XLA's own count of a compiled step: what it saves is what the model says, and the error product is gone."""
    blocks = network((32,) * 7)
    batch = jnp.ones((64, 32)), jnp.zeros(64, int)
    found, said = [], []
    for rule, boundary in ((Frozen(), 0), (Frozen(), 4), (Hebbian(), 4)):
        method = trainer(rule, boundary)
        state = method.init(jax.random.key(0), blocks)
        compiled = compiled_step(method, state, batch)
        found.append(compiled.cost_analysis()["flops"])
        said.append(step_cost(method, blocks, *batch, boundary).total)
    np.testing.assert_allclose(np.array(found) / found[0], np.array(said) / said[0], rtol=0.05)
    assert found[1] < found[2] < found[0]


def compiled_step(method, state, batch):
    arrays, rest = eqx.partition(state, eqx.is_array)
    step = jax.jit(lambda arrays, *batch: eqx.filter(method.step(eqx.combine(arrays, rest), *batch), eqx.is_array))
    return step.lower(arrays, *batch).compile()


def test_convolutions_loops_and_dead_code_are_counted():
    images = jax.ShapeDtypeStruct((2, 5, 5, 3), jnp.float32)
    layer = Convolution(jnp.ones((3, 3, 3, 4)))
    assert count_operations(layer, images, elementwise=False) == 2 * 2 * 25 * 4 * 27
    matrix = jnp.ones((3, 3))
    looped = lambda x: jax.lax.scan(lambda c, _: (c @ matrix, None), x, None, length=5)[0]  # noqa: E731
    assert count_operations(looped, matrix) == 5 * 54
    assert count_operations(lambda x: (x @ matrix, x + 1)[1], matrix) == 9
    branches = lambda x: jax.lax.cond(x[0, 0] > 0, lambda: x @ matrix, lambda: x + 1)  # noqa: E731
    assert count_operations(branches, matrix) == 54


def test_a_table_of_all_boundaries():
    rows = cost_table(trainer(Hebbian()), network(), INPUTS, TARGETS)
    assert [row.boundary for row in rows] == list(range(5))
    assert rows[0][1:] == (1.0, 1.0, 1.0)
    for row in rows[1:]:
        assert row.frozen < row.localized < 1
        assert row.kept < 1
