"""What is said of bytes is what is there, whatever stage a model is at; and what is written is what is read."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.compression import (
    ProductQuantizer,
    ScalarQuantizer,
    expected_bytes,
    freeze,
    load,
    match,
    quant_noise,
    quantize,
    save,
)


def _model():
    keys = jax.random.split(jax.random.key(0), 2)
    return {"a": jax.random.normal(keys[0], (6, 8)), "b": jax.random.normal(keys[1], (4, 16)), "bias": jnp.ones(5)}


@pytest.mark.parametrize(
    "quantizer", [ScalarQuantizer(3), ScalarQuantizer(12, granularity="channel"), ProductQuantizer(4, num_centroids=5)]
)
def test_bytes_are_the_same_by_whichever_way_a_model_got_small(quantizer):
    """Frozen first or not: bytes before are the weights', and those after are what is there and expected."""
    model, key = _model(), jax.random.key(1)
    whole = quantize(model, quantizer, key)[1]
    half = freeze(model, match({"a": quantizer}), key)
    packed, report = quantize(half, match({"b": quantizer}), key)
    assert [row.bytes_before for row in report.rows] == [array.nbytes for array in jax.tree.leaves(model)]
    assert [row.bytes_after for row in report.rows] == [row.bytes_after for row in whole.rows]
    assert report.bytes_after == expected_bytes(half, match({"b": quantizer})) == expected_bytes(model, quantizer)
    assert report.bytes_after == sum(array.nbytes for array in jax.tree.leaves(packed))


@pytest.mark.filterwarnings("ignore:ProductQuantizer.num_centroids")
@pytest.mark.parametrize("asked", [2, 3, 8, 9, 64, 65_536])
def test_a_code_has_the_bits_that_its_own_centroids_need(asked):
    """A weight with few blocks gets few centroids, and codes no longer than those need."""
    weights = {"w": jax.random.normal(jax.random.key(0), (4, 8))}  # 8 blocks of 4
    quantizer = ProductQuantizer(4, num_centroids=asked)
    used = min(asked, 8)
    assert 2 ** quantizer.bits((4, 8)) >= used > 2 ** (quantizer.bits((4, 8)) - 1)
    _, report = quantize(weights, quantizer, jax.random.key(1))
    assert report.bytes_after == -(-8 * int(np.ceil(np.log2(used))) // 8) + 4 * 4 * used


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.6])
def test_noise_that_rescales_scales_the_gradient_with_the_weights(rate):
    """With zeros for what is dropped, the others are linear in the weights: value = slope · weight, entry by entry."""
    weights = {"w": jax.random.normal(jax.random.key(0), (16, 16))}

    def seen(model):
        return quant_noise(model, ScalarQuantizer(4), rate, jax.random.key(2), proxy="zero", rescale=True)["w"]

    slope = jax.grad(lambda model: jnp.sum(seen(model)))(weights)["w"]
    kept = seen(weights) != 0
    np.testing.assert_allclose(np.where(kept, slope * weights["w"], 0), seen(weights), rtol=1e-6)
    np.testing.assert_allclose(slope[kept], 1 / (1 - rate), rtol=1e-6)


def test_numbers_of_64_bits_come_back_whole(tmp_path):
    model = {"w": jnp.ones((8, 8)), "count": np.array([2**40, 3]), "share": np.array([1 / 3])}
    packed, _ = quantize(model, ScalarQuantizer(4))
    save(tmp_path / "model", packed)
    found = load(tmp_path / "model", model)
    for name in ("count", "share"):
        assert found[name].dtype == model[name].dtype
        np.testing.assert_array_equal(found[name], model[name])


def test_weights_of_any_size_have_the_error_and_the_range_of_their_shape():
    """Times a power of two, up to what is let through: the squares of most leave single precision."""
    weights = np.random.default_rng(0).standard_t(2.5, size=(4, 24)).astype(np.float32)
    weights /= np.abs(weights).max()
    quantizers = [ScalarQuantizer(3, granularity=part, observer="mse") for part in ("tensor", "channel")]
    scales = jax.jit(lambda w: [quantizer.fit(None, w).scale for quantizer in quantizers])
    wanted, error = scales(weights), quantize({"w": weights}, quantizers[0])[1].rows[0].error
    assert error > 0.01
    assert not np.array_equal(wanted[0], ScalarQuantizer(3).fit(None, weights).scale)  # outliers are cut off
    for power in (-80, -40, 66, 126):
        size = np.float32(2.0**power)
        for one, other in zip(scales(size * weights), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one) / size, other, rtol=1e-5)
        assert quantize({"w": size * weights}, quantizers[0])[1].rows[0].error == pytest.approx(error, rel=1e-4)


def test_the_bytes_before_are_those_of_what_was_given():
    """Of NumPy's double precision, too, for which JAX has single alone."""
    model = {"w": np.random.default_rng(0).normal(size=(4, 8)), "bias": np.ones(3)}
    packed, report = quantize(model, ScalarQuantizer(4))
    assert [row.bytes_before for row in report.rows] == [24, 256]
    assert report.bytes_before == 280
    assert packed["w"].decoded().dtype == np.float32
