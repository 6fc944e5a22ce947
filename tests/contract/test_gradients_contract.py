"""What every estimator must do, whatever it is: one table, every check."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import laureate.gradients as gradients
from laureate._core import Status
from laureate.gradients import (
    GPES,
    RTRL,
    AnalyticPES,
    FullES,
    NoiseReuseES,
    PersistentES,
    TruncatedBackprop,
    TruncatedES,
)

QUICK = {"xla_backend_optimization_level": 0}  # most of a test's time is compiling


class Swing(eqx.Module):
    """A damped, driven swing with a learned start; random in init and steps; a tree of parameters."""

    friction: jax.Array = eqx.field(default=0.1, converter=jnp.asarray)

    def init(self, key, theta):
        place = theta["start"] + 0.1 * jax.random.normal(key, (), theta["start"].dtype)
        return {"place": place, "speed": jnp.zeros_like(place), "t": jnp.zeros((), jnp.int32)}

    def step(self, key, theta, state) -> Any:
        drive = theta["push"] @ jax.random.normal(key, (2,), theta["push"].dtype)
        drive = drive.astype(theta["start"].dtype)
        friction = self.friction.astype(drive.dtype)
        speed = state["speed"] + 0.3 * (drive - jnp.sin(state["place"]) - friction * state["speed"])
        place = state["place"] + 0.3 * speed
        return {"place": place, "speed": speed, "t": state["t"] + 1}, place**2


class Ending(Swing):
    """The same, and it ends when it has swung through."""

    def step(self, key, theta, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        state, loss = super().step(key, theta, state)
        return state, loss, state["place"] < 0


ES: dict[str, Any] = {"num_pairs": 3, "truncation": 2, "horizon": 6, "sigma": 0.1}
WORKERS: dict[str, Any] = {"truncation": 2, "horizon": 6, "num_workers": 3}
CASES = {
    "pes": lambda unroll: PersistentES(unroll, **ES),
    "pes-random": lambda unroll: PersistentES(unroll, **ES, phase="random", telescope=True),
    "pes-unaligned": lambda unroll: PersistentES(unroll, **(ES | {"horizon": (2, 5)}), telescope="products"),
    "gpes": lambda unroll: GPES(unroll, **ES, noise_steps=3),
    "nres": lambda unroll: NoiseReuseES(unroll, **(ES | {"horizon": 5})),
    "pes-analytic": lambda unroll: AnalyticPES(unroll, **ES),
    "full-es": lambda unroll: FullES(unroll, **ES),
    "truncated-es": lambda unroll: TruncatedES(unroll, **ES),
    "truncated-backprop": lambda unroll: TruncatedBackprop(unroll, **WORKERS),
    "rtrl": lambda unroll: RTRL(unroll, **(WORKERS | {"horizon": 5})),
    "pes-done": lambda unroll: PersistentES(Ending(unroll.friction), **(ES | {"horizon": None})),
    "nres-border": lambda unroll: NoiseReuseES(Ending(unroll.friction), **ES, restart="border"),
    "rtrl-done": lambda unroll: RTRL(Ending(unroll.friction), **(WORKERS | {"horizon": None})),
}
THETA = {"start": jnp.asarray(1.0), "push": jnp.asarray([0.2, -0.1])}
KEY = jax.random.key(3)


class Bench:
    """One estimator with its step compiled once, and how often it was traced."""

    def __init__(self, make):
        self.make, self.traces = make, 0

        def step(estimator, key, theta, state):
            self.traces += 1
            return estimator.step(key, theta, state)

        self.step = jax.jit(step, compiler_options=QUICK)
        self.init = jax.jit(lambda estimator, key, theta: estimator.init(key, theta), compiler_options=QUICK)
        self.estimator = make(Swing())
        self.state = self.init(self.estimator, KEY, THETA)

    def run(self, estimator, number, key=KEY, state=None, start=0):
        """The gradients of ``number`` steps from ``start`` on, the last state and info."""
        state = self.init(estimator, key, THETA) if state is None else state
        out, info = [], None
        for i in range(start, start + number):
            gradient, state, info = self.step(estimator, jax.random.fold_in(key, i), THETA, state)
            out.append(gradient)
        return out, state, info


@pytest.fixture(params=CASES, scope="module")
def bench(request):
    return Bench(CASES[request.param])


def test_every_public_estimator_has_a_row():
    estimators = {
        thing
        for thing in vars(gradients).values()
        if isinstance(thing, type) and hasattr(thing, "step") and hasattr(thing, "init")
    } - {gradients.Unroll, gradients.Sharded}
    assert {type(make(Swing())) for make in CASES.values()} == estimators


def test_the_gradient_is_like_theta_and_the_info_is_complete(bench):
    out, _, info = bench.run(bench.estimator, 1)
    assert jax.tree.structure(out[0]) == jax.tree.structure(THETA)
    assert jax.tree.map(lambda g, x: (g.shape, g.dtype) == (x.shape, x.dtype), out[0], THETA)
    assert any(np.any(np.asarray(leaf) != 0) for leaf in jax.tree.leaves(out[0]))
    assert int(info.cost) >= 2 * 3 or int(info.cost) == 6
    assert int(info.status) == Status.OK
    assert int(info.num_nonfinite) == 0
    assert np.isfinite(info.loss)


def test_no_retrace_on_a_second_call_nor_for_new_numbers(bench):
    _, state, _ = bench.run(bench.estimator, 1)
    before = bench.traces
    _, state, _ = bench.run(bench.estimator, 2, state=state)
    bench.run(bench.make(Swing(0.2)), 1, state=state)
    if hasattr(bench.estimator, "sigma"):
        other = eqx.tree_at(lambda e: e.sigma, bench.estimator, jnp.asarray(0.3))
        # In its first truncation analytic PES is backpropagation alone: sigma is seen from the second on.
        one, same = (bench.run(estimator, 2)[0][-1]["push"] for estimator in (other, bench.estimator))
        assert np.any(np.asarray(one) != np.asarray(same))
    assert bench.traces == before


def test_the_shapes_of_the_state_are_fixed(bench):
    _, state, _ = bench.run(bench.estimator, 1)
    describe = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, getattr(leaf, "weak_type", None)), tree)  # noqa: E731
    assert jax.tree.structure(state) == jax.tree.structure(bench.state)
    assert jax.tree.leaves(describe(state)) == jax.tree.leaves(describe(bench.state))


def test_same_key_same_bits_and_another_key_others(bench):
    once, _, _ = bench.run(bench.estimator, 4)
    again, _, _ = bench.run(bench.estimator, 4)
    other, _, _ = bench.run(bench.estimator, 4, key=jax.random.key(4))
    for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(again), strict=True):
        assert_array_equal(a, b)
    assert any(np.any(a != b) for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(other), strict=True))


def test_vmap_over_keys_is_a_loop(bench):
    """Episodes are begun by branches that vmap turns into selections: nothing may change by it."""
    keys = jax.random.split(jax.random.key(5), 2)
    step = jax.jit(jax.vmap(bench.estimator.step, in_axes=(0, None, 0)), compiler_options=QUICK)
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(bench.init(bench.estimator, k, THETA) for k in keys))
    alone = [bench.run(bench.estimator, 4, key=key)[0] for key in keys]
    for i in range(4):
        gradient, together, _ = step(jax.vmap(lambda key, i=i: jax.random.fold_in(key, i))(keys), THETA, together)
        for name in THETA:
            expected = np.stack([run[i][name] for run in alone])
            assert_allclose(gradient[name], expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


def test_parts_are_the_whole(bench):
    """Interrupted, saved as plain arrays and taken up again: the same bits as in one go."""
    whole, _, _ = bench.run(bench.estimator, 4)
    first, state, _ = bench.run(bench.estimator, 2)
    saved = [np.asarray(jax.random.key_data(leaf) if is_key(leaf) else leaf) for leaf in jax.tree.leaves(state)]
    leaves = zip(jax.tree.leaves(state), saved, strict=True)
    loaded = [jax.random.wrap_key_data(data) if is_key(leaf) else jnp.asarray(data) for leaf, data in leaves]
    state = jax.tree.unflatten(jax.tree.structure(state), loaded)
    rest, _, _ = bench.run(bench.estimator, 2, state=state, start=2)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(first + rest), strict=True):
        assert_array_equal(a, b)


def is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.bfloat16])
def test_other_precisions(bench, dtype):
    """The gradient has theta's type, and double precision agrees with single where nothing is random but the noise."""
    with jax.enable_x64(dtype == jnp.float64):
        theta = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), THETA)
        shape = jax.eval_shape(lambda key: bench.estimator.step(key, theta, bench.estimator.init(key, theta)), KEY)
    assert {leaf.dtype for leaf in jax.tree.leaves(shape[0])} == {jnp.dtype(dtype)}
    assert shape[2].loss.dtype == jnp.promote_types(dtype, jnp.float32)


def test_bad_values_raise(bench):
    known = {"truncation": 0} if type(bench.estimator) is not FullES else {"num_pairs": 0}
    settings = (WORKERS if hasattr(bench.estimator, "num_workers") else ES) | known
    extra = {"noise_steps": 1} if isinstance(bench.estimator, GPES) else {}
    with pytest.raises(ValueError, match=r"must be an integer >= 1; got 0"):
        type(bench.estimator)(Swing(), **settings, **extra)
    with pytest.raises(TypeError, match="theta leaf 'start' has dtype int32"):
        bench.estimator.init(KEY, {"start": 1, "push": THETA["push"]})


def test_it_has_an_example(bench):
    assert ">>> " in (type(bench.estimator).__doc__ or "")
