"""Local rules against closed forms: einsum, sums over positions, autodiff, eigenvectors; and where they reach."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.layers import BatchNorm, Convolution, GroupNorm, ResidualBlock, max_pool
from laureate.testing import KeyRecorder
from laureate.training import (
    AbstractRule,
    Chain,
    Dense,
    Fixed,
    Frozen,
    Hebbian,
    LinearLayer,
    LocalizedTraining,
    Normalised,
    Oja,
    PerExample,
    RandomDirection,
    local_block,
    participation_ratio,
    weights_of,
)
from laureate.training.collapse import measure
from laureate.training.sites import LAYERS

GENERATOR = np.random.default_rng(0)
KEY, STEP = jax.random.key(0), jnp.asarray(0)


def normal(*shape):
    return jnp.asarray(GENERATOR.normal(size=shape), jnp.float32)


def directions(rule, block, inputs, **more) -> dict[str, Any]:
    return dict(local_block(KEY, STEP, rule, block, inputs, **more)[2])


def close(found, wanted, rtol=2e-5):
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.abs(np.asarray(wanted)).max())


# --- dense ------------------------------------------------------------------------------------------------------------


def with_bias(dense):
    return eqx.tree_at(lambda d: d.bias, dense, normal(dense.weight.shape[0]))


def test_hebb_of_a_dense_layer_is_the_mean_outer_product_and_the_slope_of_the_power():
    dense, inputs = with_bias(Dense(normal(4, 3))), normal(6, 3)
    found = directions(Hebbian(), Chain((dense, jax.nn.relu)), inputs)[".layers[0].weight"]
    outputs = np.asarray(inputs) @ np.asarray(dense.weight).T  # z = W a: neither bias nor ReLU
    close(found, np.einsum("bo,bi->oi", outputs, inputs) / 6)
    close(found, jax.grad(lambda w: 0.5 * jnp.mean(jnp.sum((inputs @ w.T) ** 2, 1)))(dense.weight))


def test_equinox_layers_under_vmap_give_the_same():
    linear = eqx.nn.Linear(3, 4, key=KEY)
    inputs = normal(6, 3)
    block = PerExample(eqx.nn.Sequential([linear, eqx.nn.Lambda(jax.nn.relu)]))
    (found,) = directions(Hebbian(), block, inputs).values()
    outputs = np.asarray(inputs) @ np.asarray(linear.weight).T
    close(found, np.einsum("bo,bi->oi", outputs, inputs) / 6)
    (oja,) = directions(Oja(), block, inputs).values()
    close(oja, found - (outputs**2).mean(0)[:, None] * np.asarray(linear.weight))


def test_a_response_stands_before_the_product():
    dense, inputs = Dense(normal(4, 3)), normal(6, 3)
    (found,) = directions(Hebbian(response=jax.nn.relu), dense, inputs).values()
    active = np.maximum(np.asarray(inputs) @ np.asarray(dense.weight).T, 0)
    close(found, np.einsum("bo,bi->oi", active, inputs) / 6)


def test_oja_subtracts_each_rows_own_power():
    dense, inputs = with_bias(Dense(normal(4, 3))), normal(6, 3)
    outputs, weight = np.asarray(inputs) @ np.asarray(dense.weight).T, np.asarray(dense.weight)
    hebb = np.einsum("bo,bi->oi", outputs, inputs) / 6
    for decay in (1.0, 0.25):
        (found,) = directions(Oja(decay), dense, inputs).values()
        close(found, hebb - decay * (outputs**2).mean(0)[:, None] * weight)


def test_hebb_is_a_power_iteration_and_oja_rests_at_the_unit_principal_component():
    scales = jnp.array([2.0, 1.0, 0.5])
    rotation = jnp.linalg.qr(normal(3, 3))[0]
    inputs = normal(200, 3) * scales @ rotation
    top = np.linalg.eigh(np.asarray(inputs.T @ inputs, np.float64))[1][:, -1]
    start = Dense(normal(2, 3))

    @jax.jit
    def iterate(start):
        def both(pair, _):
            hebb, oja = pair
            (move,) = directions(Hebbian(), hebb, inputs).values()
            unit = hebb.weight + 0.5 * move / jnp.linalg.norm(move)
            hebb = eqx.tree_at(lambda d: d.weight, hebb, unit / jnp.linalg.norm(unit, axis=1, keepdims=True))
            (move,) = directions(Oja(), oja, inputs).values()
            return (hebb, eqx.tree_at(lambda d: d.weight, oja, oja.weight + 0.05 * move)), None

        return jax.lax.scan(both, (start, start), None, length=300)[0]

    for dense in iterate(start):
        for row in np.asarray(dense.weight, np.float64):
            assert abs(np.linalg.norm(row) - 1) < 1e-3
            assert np.arccos(min(1.0, abs(row @ top) / np.linalg.norm(row))) < 1e-3


# --- convolutions -----------------------------------------------------------------------------------------------------


def patches_of(images):
    padded = np.pad(np.asarray(images), ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = images.shape[1:3]
    return np.stack([[padded[:, i : i + height, j : j + width] for j in range(3)] for i in range(3)])


@pytest.mark.parametrize("inputs", [1, 2])
def test_hebb_of_a_convolution_sums_over_the_positions_that_share_the_weight(inputs):
    images, layer = normal(3, 4, 5, inputs), Convolution(normal(3, 3, inputs, 2))
    found = directions(Hebbian(), Chain((layer, GroupNorm(2, 1), jax.nn.relu)), images)[".layers[0].kernel"]
    moved, outputs = patches_of(images), np.asarray(layer(images))
    close(found, np.einsum("uvbhwi,bhwo->uvio", moved, outputs) / 3)
    pulled = jax.vjp(lambda k: eqx.tree_at(lambda c: c.kernel, layer, k)(images), layer.kernel)[1](layer(images))[0]
    close(found, pulled / 3)
    (oja,) = directions(Oja(), layer, images).values()
    close(oja, found - (outputs**2).sum((0, 1, 2)) / 3 * np.asarray(layer.kernel))


def test_equinox_convolutions_too():
    layer = eqx.nn.Conv2d(2, 3, 3, padding=1, key=KEY)
    images = normal(4, 5, 5, 2)
    (found,) = directions(Hebbian(), PerExample(layer), images.transpose(0, 3, 1, 2)).values()
    outputs = np.einsum("uvbhwi,oiuv->bhwo", patches_of(images), np.asarray(layer.weight))
    close(found, np.einsum("uvbhwi,bhwo->oiuv", patches_of(images), outputs) / 4, rtol=1e-4)
    (oja,) = directions(Oja(), PerExample(layer), images.transpose(0, 3, 1, 2)).values()
    power = (outputs**2).sum((0, 1, 2))[:, None, None, None] / 4
    close(oja, found - power * np.asarray(layer.weight), rtol=1e-4)


def test_a_residual_block_is_one_unit_in_which_every_layer_sees_its_own_inputs():
    block = ResidualBlock(iter([normal(3, 3, 4, 4), normal(3, 3, 4, 4)]), 4)
    images = normal(2, 4, 4, 4)
    outputs, after, found = local_block(KEY, STEP, Hebbian(), block, images)
    np.testing.assert_array_equal(outputs, block(images))
    hidden = jax.nn.relu(block.norms[0](block.layers[0](images)))
    for number, seen in enumerate((images, hidden)):
        alone = directions(Hebbian(), block.layers[number], seen)[".kernel"]
        close(found[f".layers[{number}].kernel"], alone)
    assert jax.tree.structure(after) == jax.tree.structure(block)


# --- where rules reach, and where not ---------------------------------------------------------------------------------


def test_a_layer_called_twice_adds_up_both_calls():
    class Twice(eqx.Module):
        layer: Dense

        def __call__(self, inputs):
            return self.layer(jax.nn.relu(self.layer(inputs)))

    block, inputs = Twice(Dense(normal(3, 3))), normal(4, 3)
    (found,) = directions(Hebbian(), block, inputs).values()
    calls = [directions(Hebbian(), block.layer, seen)[".weight"] for seen in (inputs, jax.nn.relu(block.layer(inputs)))]
    close(found, calls[0] + calls[1])


def test_a_layer_that_nothing_leads_back_to_is_an_error():
    block = Chain((Dense(normal(3, 3)), jax.lax.stop_gradient))
    with pytest.raises(ValueError, match=r"no way leads back .* \.layers\[0\]\.weight.*stop_gradient"):
        directions(Hebbian(), block, normal(4, 3))
    assert list(directions(RandomDirection(), block, normal(4, 3))) == [".layers[0].weight"]


def test_a_kind_of_layer_of_ones_own():
    class Scaled(eqx.Module):
        matrix: jax.Array

        def __call__(self, inputs):
            return inputs @ self.matrix

    block, inputs = Scaled(normal(3, 4)), normal(5, 3)
    assert weights_of(block) == {}
    layers = (*LAYERS, LinearLayer(Scaled, "matrix", weight_axis=-1, channels_last=True))
    (found,) = directions(Oja(), block, inputs, layers=layers).values()
    outputs = np.asarray(block(inputs))
    wanted = np.einsum("bi,bo->io", inputs, outputs) / 5 - (outputs**2).mean(0) * np.asarray(block.matrix)
    close(found, wanted)


def test_a_rule_of_ones_own():
    class Anti(AbstractRule):
        @property
        def reads_activity(self):
            return True

        def contribution(self, site):
            return -jnp.outer(jnp.sum(site.outputs, 0), jnp.sum(site.inputs, 0))

        def direction(self, key, step, weight, mean: Any):
            return 2 * mean

    dense, inputs = Dense(normal(4, 3)), normal(6, 3)
    (found,) = directions(Anti(), dense, inputs).values()
    close(found, -2 * np.outer(np.asarray(inputs @ dense.weight.T).sum(0), np.asarray(inputs).sum(0)) / 6)


def test_statistics_of_a_local_block_go_on_or_stay():
    block, inputs = Normalised(Dense(normal(4, 3)), BatchNorm(4)), normal(6, 3)
    outputs, after, _ = local_block(KEY, STEP, Hebbian(), block, inputs, training=True)
    close(outputs, block.train(inputs)[0])
    close(after.statistics.mean, np.asarray(block.layer(inputs)).mean(0))
    assert isinstance(after.layer, Dense)
    _, still, _ = local_block(KEY, STEP, Hebbian(), after, 2 * inputs, training=False)
    np.testing.assert_array_equal(still.statistics.mean, after.statistics.mean)


# --- random directions ------------------------------------------------------------------------------------------------


def test_random_directions_differ_by_weight_and_step_and_are_held():
    block, inputs = Chain((Dense(normal(3, 3)), Dense(normal(3, 3)))), normal(2, 3)

    def drawn(hold, step):
        found = local_block(KEY, jnp.asarray(step), RandomDirection(hold), block, inputs)[2]
        return [np.asarray(one) for one in found.values()]

    first, second = drawn(1, 0)
    assert not np.allclose(first, second)
    assert not np.allclose(first, drawn(1, 1)[0])
    for hold, together, apart in ((2, 1, 2), (0, 1000, None)):
        np.testing.assert_array_equal(drawn(hold, 0)[0], drawn(hold, together)[0])
        assert apart is None or not np.allclose(drawn(hold, 0)[0], drawn(hold, apart)[0])


def test_no_key_is_used_twice():
    blocks = [Dense(normal(3, 3)) for _ in range(3)]
    trainer = LocalizedTraining(Fixed(2), RandomDirection(), optax.sgd(0.1))
    recorder = KeyRecorder()
    state = trainer.init(jax.random.key(3), blocks)
    with recorder:
        for _ in range(2):
            state, _ = trainer.step(state, normal(4, 3), jnp.zeros(4, int))
    assert not recorder.reused(1)


# --- how many directions ----------------------------------------------------------------------------------------------


def test_the_participation_ratio_is_that_of_the_singular_values():
    for weight, axis in ((normal(5, 3), 0), (normal(3, 3, 2, 4), -1), (1e25 * normal(4, 6), 0)):
        matrix = np.moveaxis(np.asarray(weight, np.float64), axis, 0).reshape(weight.shape[axis], -1)
        squares = np.linalg.svd(matrix, compute_uv=False) ** 2
        assert float(participation_ratio(weight, axis)) == pytest.approx(
            squares.sum() ** 2 / (squares**2).sum(), rel=1e-4
        )


def test_what_is_measured_of_a_weight_counts_its_own_outputs():
    """The norm, and the directions along the axis that the kind of layer says, whichever it is: in NumPy."""

    class Scaled(eqx.Module):
        matrix: jax.Array

    kinds = (*LAYERS, LinearLayer(Scaled, "matrix", weight_axis=1))
    blocks = [
        Chain((Dense(normal(4, 3)), Convolution(normal(3, 2, 2, 5)))),
        PerExample(eqx.nn.Conv2d(2, 3, 3, key=KEY)),
        PerExample(eqx.nn.Linear(6, 4, key=KEY)),
        Scaled(normal(6, 2, 3)),
    ]
    axes, found = (0, -1, 0, 0, 1), np.asarray(jax.jit(lambda: measure(blocks, kinds))())
    weights = [weight for block in blocks for weight in weights_of(block, kinds).values()]
    for weight, axis, (norm, participation) in zip(weights, axes, found, strict=True):
        matrix = np.moveaxis(np.asarray(weight, np.float64), axis, 0).reshape(weight.shape[axis], -1)
        squares = np.linalg.svd(matrix, compute_uv=False) ** 2
        assert norm == pytest.approx(np.sqrt(squares.sum()), rel=1e-5)
        assert participation == pytest.approx(squares.sum() ** 2 / (squares**2).sum(), rel=1e-4)


def test_frozen_and_pooling_need_no_weights():
    block = Chain((Convolution(normal(3, 3, 1, 2)), max_pool))
    outputs, after, found = local_block(KEY, STEP, Frozen(), block, normal(2, 4, 4, 1))
    assert outputs.shape == (2, 2, 2, 2)
    assert list(found.values()) == [None]
    assert after is block


def test_a_block_forgets_earlier_batches_by_its_momentum():
    """Batches that differ: the first counts whole, and each further one 1 − momentum, in mean and variance."""
    momenta, batches = (0.0, 0.4, 0.9), np.random.default_rng(2).normal(size=(4, 6, 3)) * np.arange(1, 5)[:, None, None]

    @jax.jit
    def trained(batches):
        blocks = [Normalised(Dense(jnp.eye(3)), BatchNorm(3), momentum=momentum) for momentum in momenta]
        for batch in batches:
            blocks = [block.train(batch)[1] for block in blocks]
        return [(b.statistics.mean, b.statistics.variance(), b.statistics.count) for b in blocks]

    outputs = np.asarray(batches, np.float32).astype(np.float64) * np.sqrt(2 / 3)
    for momentum, (mean, variance, count) in zip(momenta, trained(jnp.asarray(batches, jnp.float32)), strict=True):
        wanted = outputs[0].mean(0), outputs[0].var(0)
        for batch in outputs[1:]:
            now = batch.mean(0), batch.var(0)
            wanted = [momentum * old + (1 - momentum) * new for old, new in zip(wanted, now, strict=True)]
        np.testing.assert_allclose(mean, wanted[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(variance, wanted[1], rtol=1e-4)
        assert int(count) == 24
