"""Iterative product quantisation: codes stay, centroids learn, and every stage has an optimiser of its own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.compression import (
    IterativeQuantization,
    ProductQuantizer,
    dequantize,
    expected_bytes,
    freeze,
    match,
    package,
    quantize,
)

RNG = np.random.default_rng(0)
MODEL = {"a": jnp.asarray(RNG.normal(size=(8, 8)), jnp.float32), "b": jnp.asarray(RNG.normal(size=(4, 8)), jnp.float32)}
PQ = ProductQuantizer(4, 3, 3)
STAGES = (match({"a": PQ}), match({"b": PQ}))
INPUTS, TARGETS = (jnp.asarray(RNG.normal(size=shape), jnp.float32) for shape in ((20, 8), (20, 4)))


def loss(model):
    return jnp.mean((jnp.tanh(INPUTS @ model["a"].T) @ model["b"].T - TARGETS) ** 2)


def test_the_gradient_of_a_centroid_is_the_sum_over_its_blocks():
    frozen = freeze(MODEL, STAGES[0], jax.random.key(0))
    of_weights = np.asarray(jax.grad(loss)(dequantize(frozen))["a"]).reshape(-1, 4)
    codes = np.asarray(frozen["a"].data)
    wanted = np.zeros((3, 4))
    np.add.at(wanted, codes, of_weights)
    for kind, count in (("sum", np.ones(3)), ("mean", np.bincount(codes, minlength=3))):
        method = IterativeQuantization(STAGES, optax.sgd(1.0), kind)
        state = method.init(MODEL)._replace(model=frozen)
        state = state._replace(optimiser_state=method.init(frozen).optimiser_state)
        after, info = method.step(state, loss)
        before = frozen["a"].parameters.centroids
        moved = before - after.model["a"].parameters.centroids
        np.testing.assert_allclose(moved, wanted / np.maximum(count, 1)[:, None], atol=1e-5)
        np.testing.assert_array_equal(after.model["a"].data, codes)
        assert int(info.status) == 0
        assert float(info.loss) == pytest.approx(float(loss(dequantize(frozen))), rel=1e-5)


def test_the_mean_gradient_of_a_centroid_is_divided_by_the_number_of_its_blocks():
    """Under a linear loss the gradient of a weight is its slope, wherever the centroids are; of no blocks it is 0."""
    slopes = RNG.normal(size=(8, 8))
    method = IterativeQuantization(STAGES, optax.sgd(1.0), "mean")
    begun = method.advance(jax.random.key(0), method.init(MODEL))
    step = eqx.filter_jit(lambda state: method.step(state, lambda model: jnp.sum(slopes * model["a"])))
    codes = np.asarray(begun.model["a"].data)
    assert len(set(np.bincount(codes, minlength=3).tolist())) > 1
    for used in (codes, np.where(codes == 1, 0, codes)):  # the second is not of all centroids
        begun = begun._replace(model=eqx.tree_at(lambda model: model["a"].data, begun.model, jnp.asarray(used)))
        after, info = step(begun)
        before, moved = (np.asarray(state.model["a"].parameters.centroids) for state in (begun, after))
        own = [slopes.reshape(-1, 4)[used == number] for number in range(3)]
        means = np.array([some.mean(0) if len(some) else np.zeros(4) for some in own])
        np.testing.assert_allclose(before - moved, means, atol=1e-5)
        assert float(info.gradient_norm) == pytest.approx(np.linalg.norm(means), rel=1e-5)
        assert int(info.status) == 0


def test_stages_freeze_one_after_the_other_and_fine_tuning_helps():
    method = IterativeQuantization(STAGES, optax.adamw(0.03))  # which reads the parameters
    state = method.init(MODEL)
    step = eqx.filter_jit(lambda state: method.step(state, loss)[0])
    for stage in range(2):
        state = method.advance(jax.random.key(stage), state)
        assert state.stage == stage + 1
        frozen = state.model
        for _ in range(30):
            state = step(state)
        np.testing.assert_array_equal(state.model["a"].data, frozen["a"].data)
        assert (state.model["a"].parameters.centroids != frozen["a"].parameters.centroids).any()
        assert isinstance(state.model["b"], jax.Array) == (stage == 0)
    small = package(state.model)
    both = match({"a|b": PQ})
    at_once, report = quantize(MODEL, both, jax.random.key(0))
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(small)) == report.bytes_after == expected_bytes(MODEL, both)
    assert float(loss(dequantize(small))) < 0.5 * float(loss(dequantize(at_once)))
    np.testing.assert_array_equal(dequantize(small)["a"], dequantize(state.model)["a"])
    with pytest.raises(ValueError, match=r"state.stage must be < 2: all are done; got 2"):
        method.advance(jax.random.key(3), state)


def test_an_optimiser_of_another_stage_is_refused():
    method = IterativeQuantization(STAGES, optax.adam(0.1))
    before = method.init(MODEL)
    after = method.advance(jax.random.key(0), before)
    with pytest.raises(ValueError, match=r"optimiser_state must belong to the model as it is now.*Make it anew"):
        method.step(after._replace(optimiser_state=before.optimiser_state), loss)


def test_a_loss_that_is_not_finite_is_a_status():
    method = IterativeQuantization(STAGES, optax.sgd(0.1))
    _, info = method.step(method.init(MODEL), lambda model: jnp.nan * jnp.sum(model["a"]))
    assert int(info.status) == 1
