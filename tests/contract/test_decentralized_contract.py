"""What every decentralised optimiser must do, whatever it is: one table, every check."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import laureate.decentralized as area
from laureate._core import Status
from laureate.decentralized import (
    D2,
    DPSGD,
    AllReduceSGD,
    ChocoSGD,
    DecentralizedOptimiser,
    DeFacto,
    DeTAG,
    Gossip,
    GradientTracking,
    ScaledSign,
    ring,
)

ADAM, MOMENTUM = optax.scale_by_adam(), optax.trace(0.9)  # new objects would compile anew
QUICK = {"xla_backend_optimization_level": 0}
CASES = {
    "detag": lambda rate: DeTAG(Gossip(ring(4)), rate, 2),
    "detag-adam": lambda rate: DeTAG(Gossip(ring(4)), rate, 2, local=ADAM),
    "tracking": lambda rate: GradientTracking(Gossip(ring(4)), rate, local=MOMENTUM),
    "d2": lambda rate: D2(Gossip(ring(4), kappa=0.5), rate),
    "d-psgd": lambda rate: DPSGD(Gossip(ring(4)), rate),
    "choco": lambda rate: ChocoSGD(Gossip(ring(4)), rate, ScaledSign(), 0.5),
    "defacto": lambda rate: DeFacto(Gossip(ring(4)), rate),
    "all-reduce": lambda rate: AllReduceSGD(Gossip(ring(4)), rate),
}
PARAMS = {"a": jnp.arange(8.0).reshape(4, 2), "b": jnp.ones(4)}


class Bench:
    def __init__(self, make):
        self.make, self.traces = make, 0

        def update(optimiser, grads, state, params):
            self.traces += 1
            updates, state = optimiser.update(grads, state, params)
            return optax.apply_updates(params, updates), state

        self.update = jax.jit(update, compiler_options=QUICK)

    def run(self, optimiser, number, params=None, state=None):
        params = PARAMS if params is None else params
        state = optimiser.init(params) if state is None else state
        for _ in range(number):
            params, state = self.update(optimiser, jax.tree.map(lambda x: 0.5 * x, params), state, params)
        return params, state


@pytest.fixture(params=CASES, scope="module")
def bench(request):
    return Bench(CASES[request.param])


def test_every_public_optimiser_has_a_row():
    kinds = {
        thing for thing in vars(area).values() if isinstance(thing, type) and issubclass(thing, DecentralizedOptimiser)
    }
    assert {type(make(0.1)) for make in CASES.values()} == kinds - {DecentralizedOptimiser}


def test_it_moves_keeps_shapes_and_compiles_once(bench):
    first = bench.make(0.1)
    params, state = bench.run(first, 8)
    before = bench.traces
    other, _ = bench.run(bench.make(0.2), 8)
    assert bench.traces == before == 1
    describe = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)  # noqa: E731
    assert describe(state) == describe(first.init(PARAMS))
    assert describe(params) == describe(PARAMS)
    assert np.any(np.asarray(params["a"]) != np.asarray(other["a"]))


def test_parts_are_the_whole_and_the_same_again(bench):
    optimiser = bench.make(0.1)
    whole, _ = bench.run(optimiser, 7)
    params, state = bench.run(optimiser, 3)
    state = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), state)  # saved and loaded
    parts, _ = bench.run(optimiser, 4, params, state)
    jax.tree.map(assert_array_equal, parts, whole)


def test_vmap_over_rates_is_a_loop(bench):
    def four(rate):
        optimiser = bench.make(rate)
        params, state = PARAMS, optimiser.init(PARAMS)
        for _ in range(4):
            updates, state = optimiser.update(params, state, params)
            params = optax.apply_updates(params, updates)
        return params

    rates = jnp.asarray([0.05, 0.2])
    together = jax.jit(jax.vmap(four), compiler_options=QUICK)(rates)
    one = jax.jit(four, compiler_options=QUICK)
    for i, rate in enumerate(rates):
        jax.tree.map(lambda a, b, i=i: assert_allclose(a[i], b, rtol=1e-5, atol=1e-5), together, one(rate))


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.bfloat16])
def test_other_precisions(bench, dtype):
    with jax.enable_x64(dtype == jnp.float64):
        params = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), PARAMS)
        optimiser = bench.make(0.1)
        shape = jax.eval_shape(lambda p: optimiser.update(p, optimiser.init(p), p), params)
    assert {leaf.dtype for leaf in jax.tree.leaves(shape[0])} == {jnp.dtype(dtype)}


def test_cost_status_and_example(bench):
    optimiser = bench.make(0.1)
    info = eqx.filter_jit(optimiser.inspect)(PARAMS)
    assert int(info.status) == Status.OK
    assert float(info.cost) == optimiser.sent(PARAMS) > 0
    assert ">>> " in (type(optimiser).__doc__ or "")
