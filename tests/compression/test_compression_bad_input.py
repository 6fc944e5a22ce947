"""Wrong settings, weights and rules: the field, the rule, the value and what to do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate import compression
from laureate.compression import ProductQuantizer, ScalarQuantizer, kmeans, match, quant_noise, quantize, refresh

W = {"w": jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)}
KEY = jax.random.key(0)
INT = ScalarQuantizer(4)
PQ = ProductQuantizer(2, 3)
TIED, HELD = jnp.ones((2, 2)), np.ones((2, 2), np.float32)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ScalarQuantizer(0), r"ScalarQuantizer.num_bits must be an integer in 1..16; got 0"),
        (lambda: ScalarQuantizer(17), "num_bits must be an integer in 1..16; got 17"),
        (lambda: ScalarQuantizer(4.0), "num_bits must be an integer in 1..16; got 4.0"),
        (lambda: ScalarQuantizer(1, "symmetric"), "num_bits must be >= 2 for scheme='symmetric'; got 1. .*'affine'"),
        (lambda: ScalarQuantizer(4, "both"), "scheme must be 'affine' or 'symmetric'; got 'both'"),
        (lambda: ScalarQuantizer(4, granularity="row"), "granularity must be 'tensor' or 'channel'"),
        (lambda: ScalarQuantizer(4, observer="max"), "observer must be 'minmax' or 'mse'"),
        (lambda: ScalarQuantizer(4, outputs="middle"), "outputs must be 'first' or 'last'"),
        (lambda: ProductQuantizer(0), "ProductQuantizer.block must be an integer >= 1; got 0"),
        (lambda: ProductQuantizer(8, 0), r"num_centroids must be in 1..65536; got 0"),
        (lambda: ProductQuantizer(8, 70000), "num_centroids must be in 1..65536; got 70000"),
        (lambda: ProductQuantizer(codebook_bits=4), "codebook_bits must be 8 or 32; got 4"),
        (lambda: ProductQuantizer(num_steps=-1), "num_steps must be >= 0; got -1"),
        (
            lambda: quantize(W, ProductQuantizer(4), KEY),
            r"block must divide the 6 inputs of w \[4, 6\], whose outputs are first; got 4. .* 2, 3, 6",
        ),
        (lambda: quantize({"w": jnp.full((2, 2), jnp.nan)}, INT), "model must be finite; got NaN or infinity in w"),
        (lambda: refresh({"w": jnp.full((2, 2), jnp.inf)}, INT), "refresh.model must be finite; .* in w. Has training"),
        (lambda: quantize({"w": jnp.full((2, 2), -3e38)}, INT), "model must be at most 1.7e.38 in size; got 3e.38 in"),
        (
            lambda: quantize(W, match({"v.*": INT})),
            "match a weight with every pattern; got 'v.*', .*There are: w",
        ),
        (lambda: quantize({"w": jnp.ones(3)}, INT), "There are: no weights of two or more axes"),
        (lambda: quantize(W, match({"w": None})), "spec must choose at least one weight; got none of w"),
        (lambda: quantize({"a": TIED, "b": TIED}, INT), "match a shared array once; got it at a and b. .*Shared"),
        (lambda: quantize({"a": HELD, "b": HELD}, INT), "match a shared array once; got it at a and b"),
        (
            lambda: quant_noise({"w": jnp.ones((4, 8))}, PQ, 0.5, KEY, state=refresh(W, PQ, KEY)),
            r"state must have 16 codes for w \[4, 8\]; got 12. .*refresh",
        ),
        (lambda: match({}), "rules must hold at least one pattern"),
        (lambda: match({"(": INT}), r"rules must be regular expressions; got '\('"),
        (lambda: quant_noise(W, INT, 1.5, KEY), r"quant_noise.rate must be one number in \[0, 1\]; got 1.5"),
        (lambda: quant_noise(W, INT, -1, KEY), r"rate must be one number in \[0, 1\]; got -1"),
        (lambda: quant_noise(W, INT, np.array([0.1, 0.2]), KEY), r"rate must be one number in \[0, 1\]"),
        (lambda: quant_noise(W, INT, 0.5, KEY, proxy="mean"), "proxy must be None, 'zero' or a function; got 'mean'"),
        (lambda: quant_noise(W, INT, 0.5, KEY, rescale=True), "rescale must be False without a proxy"),
        (
            lambda: quant_noise(W, PQ, 0.5, KEY),
            "state must be given for the codebooks of w; .*refresh.*proxy",
        ),
        (lambda: quant_noise(W, PQ, 0.5, inference=True), "state must be given for the codebooks"),
        (
            lambda: quant_noise({"v": W["w"] + 1, **W}, INT, 0.5, KEY, state=refresh(W, INT)),
            "state must have an entry for each of the 2 chosen weights; got 1. .*refresh",
        ),
        (lambda: kmeans(KEY, jnp.ones((3, 2)), 4), r"num_centroids must be in 1..3, the number of points; got 4"),
        (lambda: kmeans(KEY, jnp.ones((3, 2)), 2, -1), "num_steps must be >= 0"),
        (lambda: kmeans(KEY, jnp.ones((3, 2)), 2, start=jnp.ones((3, 2))), r"start must be None or of shape \(2, 2\)"),
        (lambda: compression.pack(jnp.ones(3, int), 17), r"pack.bits must be in 1..16; got 17"),
        (lambda: compression.unpack(jnp.ones(3, jnp.uint8), 4, 9), "packed must be of 5 bytes for 9 codes of 4 bits"),
        (lambda: compression.IterativeQuantization((), optax.sgd(0.1)), "stages must be at least one"),
        (lambda: compression.IterativeQuantization((PQ,), optax.sgd(0.1), "median"), "must be 'sum' or 'mean'"),
    ],
)
def test_bad_input_says_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quant_noise(W, INT, 0.5), "quant_noise.key must be a key in training; got None. .*inference=True"),
        (lambda: quantize(W, PQ), "ProductQuantizer.fit.key must be a key, .*; got None"),
        (lambda: quantize(W, 4), "quantize.spec must be a Quantizer or what match"),
        (lambda: match({"w": 4}), r"match.rules\['w'\] must be a Quantizer or None; got 4"),
    ],
)
def test_the_wrong_kind_says_what_to_do(make, message):
    with pytest.raises(TypeError, match=message):
        make()


class Shifted(ScalarQuantizer):
    shift: jax.Array = eqx.field(default_factory=lambda: jnp.ones(2))


def test_a_quantiser_with_arrays_of_its_own_is_not_written(tmp_path):
    packed, _ = quantize(W, Shifted(4))
    with pytest.raises(TypeError, match=r"got ArrayImpl in Shifted.shift, of w. Keep arrays in what `fit` returns"):
        compression.save(tmp_path / "w", packed)
    assert not list(tmp_path.iterdir())


def test_the_inputs_of_a_weight_are_what_is_not_its_outputs():
    ProductQuantizer(4, 3, outputs="last").check("w", (8, 6))
    ProductQuantizer(4, 3).check("w", (6, 8))
    with pytest.raises(
        ValueError, match=r"block must divide the 6 inputs of w \[6, 8\], whose outputs are last; got 4"
    ):
        ProductQuantizer(4, 3, outputs="last").check("w", (6, 8))


def test_an_integer_rate_is_a_rate():
    assert (quant_noise(W, INT, 0, KEY)["w"] == W["w"]).all()


def test_more_centroids_than_blocks_are_cut_with_a_warning():
    with pytest.warns(UserWarning, match=r"num_centroids = 50 is more than the 12 blocks of w \[4, 6\]: 12 are used"):
        packed, _ = quantize(W, ProductQuantizer(2, 50), KEY)
    np.testing.assert_allclose(compression.dequantize(packed)["w"], W["w"], atol=1e-6)


def test_a_file_that_is_not_whole_or_not_ours(tmp_path):
    path = tmp_path / "w"
    packed, _ = quantize(W, INT)
    compression.save(path, packed)
    whole = path.read_bytes()
    for content, message in (
        (b"something else", "a file that save wrote"),
        (whole[:-1], "is cut short"),
        (whole[:40], "the header of .* cannot be read"),
        (whole + b"1", "longer than its header says"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            compression.load(path, W)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"load.like must have the arrays of the file; got a difference in v"):
        compression.load(path, {**W, "v": jnp.ones(2)})
    with pytest.raises(ValueError, match=r"must have w of shape \(4, 6\); got \(6, 4\)"):
        compression.load(path, {"w": jnp.ones((6, 4))})
    path.write_bytes(whole.replace(b"ScalarQuantizer", b"OtherrQuantizer"))
    with pytest.raises(ValueError, match=r"load.quantizers must hold the class 'OtherrQuantizer', which made w"):
        compression.load(path, W)
