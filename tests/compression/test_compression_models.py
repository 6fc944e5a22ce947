"""Whole models: Equinox modules quantised, packed, saved, loaded; reports that equal the bytes."""

import functools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import compression
from laureate.compression import ProductQuantizer, ScalarQuantizer, dequantize, expected_bytes, match, quantize
from networks import drawn

MODEL = drawn(lambda key: eqx.nn.MLP(16, 10, 24, 2, key=key))
PQ = ProductQuantizer(8, 16, 2, codebook_bits=8)
SPEC = match({r"layers\.0\.weight": PQ, r"layers\.2.*": None, ".*": ScalarQuantizer(3, granularity="channel")})


@functools.cache
def quantized():
    """Packed, with its report; not at import, which every worker of the tests does."""
    return quantize(MODEL, SPEC, jax.random.key(1))


def test_the_report_is_arithmetic():
    rows = {row.path: row for row in quantized()[1].rows}
    # 24 x 16 weights: 48 codes of 4 bits, 16 x 8 int8 and a scale; 24 x 24 in 3 bits, 24 scales and zero points.
    assert rows["layers.0.weight"].bytes_after == 24 + 128 + 4
    assert rows["layers.1.weight"].bytes_after == 216 + 24 * 4 + 24
    assert rows["layers.2.weight"].bytes_after == 960
    assert rows["layers.2.weight"].reason == "by rule"
    assert rows["layers.1.bias"].reason == "fewer than two axes"
    assert quantized()[1].bytes_before == 4 * (24 * 16 + 24 * 24 + 240 + 58)
    assert quantized()[1].bytes_after == 156 + 336 + 960 + 4 * 58 == expected_bytes(MODEL, SPEC)
    kept = [row.path for row in quantized()[1].kept]
    assert kept == ["layers.0.bias", "layers.1.bias", "layers.2.weight", "layers.2.bias"]
    seen = dequantize(quantized()[0])
    for place, path in enumerate(["layers.0.weight", "layers.1.weight"]):
        apart = np.linalg.norm(seen.layers[place].weight - MODEL.layers[place].weight)
        assert rows[path].error == pytest.approx(apart / np.linalg.norm(MODEL.layers[place].weight), rel=1e-5)
        assert rows[path].error > 0.01
    assert "layers.1.weight  [24, 24]  2,304 → 336 bytes" in str(quantized()[1])
    assert "times smaller" in str(quantized()[1])


def test_a_file_is_its_header_and_the_bytes_of_the_report(tmp_path):
    path = tmp_path / "model.bin"
    written = compression.save(path, quantized()[0])
    whole = path.read_bytes()
    assert written == len(whole) == path.stat().st_size
    start = len(b"laureate quantized 1\n") + 4
    length = int.from_bytes(whole[start - 4 : start], "little")
    assert len(whole) == start + length + quantized()[1].bytes_after
    assert json.loads(whole[start : start + length])[0]["settings"]["num_centroids"] == 16
    for like in (MODEL, quantized()[0], eqx.filter_eval_shape(lambda: MODEL)):
        again = compression.load(path, like)
        assert eqx.tree_equal(eqx.filter(again, eqx.is_array), eqx.filter(quantized()[0], eqx.is_array))
        np.testing.assert_array_equal(dequantize(again)(jnp.ones(16)), dequantize(quantized()[0])(jnp.ones(16)))
    assert list(tmp_path.iterdir()) == [path]
    frozen = compression.freeze(MODEL, SPEC, jax.random.key(1))  # the same, not packed yet
    assert compression.save(path, frozen) == len(whole)
    assert path.read_bytes() == whole


def test_what_was_packed_is_not_lost_again():
    seen = dequantize(quantized()[0])
    again = dequantize(quantize(seen, SPEC, jax.random.key(2))[0])
    np.testing.assert_allclose(again.layers[1].weight, seen.layers[1].weight, atol=1e-6)
    repacked, report = quantize(quantized()[0], match({r"layers\.2\.weight": ScalarQuantizer(2)}))
    rows = {row.path: row for row in report.rows}
    assert rows["layers.0.weight"].reason == "quantised already"
    assert rows["layers.0.weight"].bytes_before == 4 * 24 * 16
    assert rows["layers.2.weight"].bytes_after == 60 + 5
    assert report.bytes_before == quantized()[1].bytes_before
    np.testing.assert_array_equal(dequantize(repacked).layers[0].weight, seen.layers[0].weight)


def test_the_first_rule_wins():
    ordered = match({r"layers\.0.*": ScalarQuantizer(2), r".*weight": ScalarQuantizer(8)})
    turned = match({r".*weight": ScalarQuantizer(8), r"layers\.0.*": ScalarQuantizer(2)})
    sizes = [quantize(MODEL, spec)[1].rows[0].bytes_after for spec in (ordered, turned)]
    assert sizes == [24 * 16 // 4 + 5, 24 * 16 + 5]


def test_integers_alone_compute_the_layer():
    """Codes, an int8 codebook and int8 inputs: sums of whole numbers and two scales, within 1e-3 of floating point."""
    layer = quantized()[0].layers[0].weight
    codebook, scale = np.asarray(layer.parameters[0]), float(np.asarray(layer.parameters[1]).item())
    assert codebook.dtype == np.int8
    codes = np.asarray(compression.unpack(layer.data, 4, 48))
    inputs = np.random.default_rng(0).normal(size=(32, 16))
    step = np.abs(inputs).max() / 127
    whole = np.round(inputs / step).astype(np.int32)
    products = whole @ codebook[codes].reshape(24, 16).astype(np.int32).T
    assert products.dtype.kind == "i"
    wanted = (whole * step) @ np.asarray(dequantize(quantized()[0]).layers[0].weight, np.float64).T
    assert np.abs(products * (scale * step) - wanted).max() < 1e-3
    assert np.abs(wanted).max() > 0.5


def test_other_trees_and_shared_layers():
    shared = eqx.nn.Shared((MODEL.layers[1], MODEL.layers[1]), where=lambda p: p[1], get=lambda p: p[0])
    _, report = quantize(shared, ScalarQuantizer(4))
    assert [row.path for row in report.rows if not row.reason] == ["pytree.0.weight"]
    tree = [(np.ones((4, 4), np.float32),), {"kernel": jnp.eye(4)}, None, jax.nn.relu]
    packed, _ = quantize(tree, ScalarQuantizer(8, outputs="last", granularity="channel"))
    np.testing.assert_allclose(dequantize(packed)[1]["kernel"], jnp.eye(4), atol=1e-6)
    assert dequantize(packed)[3] is jax.nn.relu
