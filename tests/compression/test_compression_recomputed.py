"""Ranges, shares, codebooks, choices and reports, again by enumeration in NumPy; types and paths in combination."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.compression import (
    IterativeQuantization,
    ProductQuantizer,
    Report,
    Row,
    ScalarQuantizer,
    dequantize,
    excess,
    expected_bytes,
    freeze,
    kmeans,
    load,
    match,
    quant_noise,
    quantize,
    refresh,
    save,
)
from laureate.compression.quantizer import as_rows
from laureate.compression.scalar import SHARES
from laureate.compression.selection import choose

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)


# --- grids ------------------------------------------------------------------------------------------------------------


WAYS = [ScalarQuantizer(3, scheme, part) for scheme in ("affine", "symmetric") for part in ("tensor", "channel")]


def test_a_grid_reaches_as_far_as_its_codes():
    """By decoding every code: what is inside is what no end cuts, and the excess is over the largest that there is."""
    rng = np.random.default_rng(1)
    ends = ((-1, 1), (-1, 0.1), (-0.1, 1), (-1, -0.5), (0.5, 1))
    ranges = np.stack([rng.uniform(low, high, (2, 3)) for low, high in ends]).astype(np.float32)
    weights = rng.uniform(-1.6, 1.6, (12, 2, 3)).astype(np.float32)
    ways = [*WAYS, *(ScalarQuantizer(3, scheme, "channel", outputs="last") for scheme in ("affine", "symmetric"))]

    @jax.jit
    def told():
        def each(quantizer, own):
            grid = quantizer.fit(None, own)
            codes = jnp.broadcast_to(jnp.arange(quantizer.top + 1)[:, None], (quantizer.top + 1, 6))
            values = jax.vmap(lambda c: quantizer.decode(c, grid, (2, 3)))(codes)
            inside, over = jax.vmap(lambda w: (quantizer.inside(w, grid), quantizer.excess(w, grid)))(weights)
            return values, jnp.broadcast_to(grid.scale, (2, 3)), inside, over

        return [jax.vmap(lambda own, quantizer=quantizer: each(quantizer, own))(ranges) for quantizer in ways]

    for quantizer, found in zip(ways, jax.tree.map(np.asarray, told()), strict=True):
        for values, step, inside, over in zip(*found, strict=True):
            assert len(values) == (8 if quantizer.scheme == "affine" else 7)
            assert np.abs(values).min(axis=0).max() == 0
            apart = np.abs(values - weights[:, None]).min(axis=1)
            np.testing.assert_array_equal(inside, apart <= step / 2)
            np.testing.assert_allclose(over, (np.abs(weights) / np.abs(values).max(axis=0)).max(axis=(1, 2)), rtol=1e-5)


def test_the_observer_takes_the_share_with_the_least_squared_error():
    """Of all shares, by NumPy; of heavy tails another than the one with the least absolute error."""
    drawn = np.stack([np.random.default_rng(seed).standard_t(2.5, size=(3, 40)) for seed in range(6)]).astype(
        np.float32
    )
    observers = [ScalarQuantizer(3, way.scheme, way.granularity, "mse") for way in WAYS]
    fit = jax.jit(lambda: [jax.vmap(lambda w, q=q: q.fit(None, w).scale)(drawn) for q in observers])
    differing = []
    for quantizer, scales_found in zip(observers, fit(), strict=True):
        affine, top = quantizer.scheme == "affine", quantizer.top
        for weights, found in zip(drawn, np.asarray(scales_found), strict=True):
            rows = weights if quantizer.granularity == "channel" else [weights.ravel()]
            for row, scale in zip(rows, found.ravel(), strict=True):
                low, high = min(row.min(), 0), max(row.max(), 0)
                scales, errors = [], []
                for share in SHARES:
                    step = share * ((high - low) / 7 if affine else max(-low, high) / 3)
                    zero = np.round(-share * low / step) if affine else 3
                    apart = (np.clip(np.round(row / step) + zero, 0, top) - zero) * step - row
                    scales.append(step)
                    errors.append([np.sum(apart**2), np.sum(np.abs(apart))])
                squared, absolute = np.argmin(errors, axis=0)
                assert scale == pytest.approx(scales[squared], rel=1e-5)
                differing.append(squared != absolute)
    assert SHARES[0] == 1
    assert any(differing)


# --- codebooks --------------------------------------------------------------------------------------------------------


def test_empty_centroids_move_each_beside_another_of_the_worst():
    """One step by hand: means; the j-th that lost its points a hundredth of the radius beside the j-th worst."""
    points = np.concatenate([RNG.normal(size=(9, 2)), 5 + 2 * RNG.normal(size=(7, 2)), [[-9.0, 9.0]]])
    start = np.array([[90.0, 90], [0, 0], [91, 90], [5, 5], [-9, 9], [92, 90]])
    with jax.enable_x64(True):
        found = jax.jit(lambda: kmeans(KEY, jnp.asarray(points), 6, 1, start=jnp.asarray(start)))()
        directions = np.asarray(jax.random.normal(jax.random.split(KEY)[1], (6, 2)))
    distances = ((points[:, None] - start) ** 2).sum(2)
    codes = distances.argmin(1)
    errors = np.bincount(codes, distances.min(1), 6)
    counts = np.bincount(codes, minlength=6)
    means = np.stack([points[codes == k].mean(0) if counts[k] else start[k] for k in range(6)])
    wanted, worst = means.copy(), np.argsort(-errors, kind="stable")
    for at, k in enumerate(np.flatnonzero(counts == 0)):
        donor = worst[at]
        wanted[k] = means[donor] + 0.01 * np.sqrt(errors[donor] / max(counts[donor], 1)) * directions[k]
    assert sorted(np.flatnonzero(counts == 0)) == [0, 2, 5]
    np.testing.assert_allclose(found.centroids, wanted, rtol=1e-9)
    after = ((points[:, None] - wanted) ** 2).sum(2)
    np.testing.assert_array_equal(found.codes, after.argmin(1))
    np.testing.assert_allclose(found.objective, [distances.min(1).sum(), after.min(1).sum()], rtol=1e-9)


def test_a_codebook_of_bytes_is_one_scale_and_whole_numbers():
    """s = max|c|/127, and c/s to the nearest; trained with what is shipped, in whichever layout."""
    outputs = "last"
    quantizer = ProductQuantizer(2, 5, 2, codebook_bits=8, outputs=outputs)
    weights = jnp.asarray(RNG.normal(size=(6, 4)) - 0.4, jnp.float32)

    @jax.jit
    def both(key):
        book = quantizer.fit(key, weights)
        stored = quantizer.store(book)
        restored = quantizer.restore(stored, weights.shape)
        codes = quantizer.encode(weights, restored)
        return book.centroids, stored, restored.centroids, codes, quantizer.decode(codes, restored, weights.shape)

    centroids, (whole, scale), restored, codes, decoded = jax.tree.map(np.asarray, both(KEY))
    step = np.abs(centroids).max() / 127
    assert (whole.dtype, scale.shape) == (np.int8, (1,))
    np.testing.assert_allclose(scale, step, rtol=1e-6)
    np.testing.assert_array_equal(whole, np.round(centroids / step))
    np.testing.assert_allclose(restored, whole * step, rtol=1e-5)
    blocks = np.asarray(as_rows(weights, outputs)).reshape(-1, 2)
    np.testing.assert_array_equal(codes, ((blocks[:, None] - restored) ** 2).sum(2).argmin(1))
    np.testing.assert_allclose(np.asarray(as_rows(decoded, outputs)).reshape(-1, 2), restored[codes], rtol=1e-6)


@pytest.mark.parametrize(("many", "num_steps"), [(1, 2), (3, 0)])
def test_as_many_centroids_as_points_are_the_points(many, num_steps):
    points = np.arange(6.0).reshape(3, 2)[:many] ** 2
    found = jax.jit(lambda points: kmeans(KEY, points, many, num_steps))(jnp.asarray(points, jnp.bfloat16))
    np.testing.assert_array_equal(np.asarray(found.centroids)[found.codes], points)
    np.testing.assert_array_equal(found.objective, np.zeros(num_steps + 1))
    assert found.centroids.dtype == jnp.float32


# --- choices ----------------------------------------------------------------------------------------------------------


def test_every_leaf_is_chosen_or_kept_for_its_reason():
    """Biases and norms by any part of their path, in any capitals; then shapes; then the first rule that fits."""
    q = ScalarQuantizer(4)
    frozen = freeze({"w": jnp.ones((2, 2))}, q)["w"]
    wide = jnp.ones((2, 3))
    model = {
        "Bias": wide + 1,
        "LayerNorm_0": {"kernel": wide + 2},
        "RMSNORM": wide + 3,
        "dense": {"kernel": wide + 4, "kernel2": wide + 5, "bias": jnp.ones(3)},
        "head": {"kernel": wide + 6},
        "empty": jnp.ones((0, 3)),
        "other": np.ones((2, 3), np.float16),
        "steps": jnp.ones((2, 2), int),
        "phase": jnp.ones((2, 2), complex),
        "done": frozen,
        "name": "a word",
    }
    rules = {r".*\.kernel": q, "head.*": None, "done": q, "other": None}
    spec = match({k: v for k, v in rules.items() if k != "done"})
    found = {leaf.path: (leaf.reason, leaf.quantizer) for leaf in choose(model, spec, "test").leaves}
    kept = "a bias or norm"
    reasons = {
        **{"Bias": kept, "LayerNorm_0.kernel": kept, "RMSNORM": kept, "dense.bias": "fewer than two axes"},
        **{"dense.kernel": "", "dense.kernel2": "no rule", "head.kernel": "", "empty": "empty", "other": "by rule"},
        **{"steps": "of type int32", "phase": "of type complex64", "done": "quantised already", "name": "not an array"},
    }
    assert {path: reason for path, (reason, _) in found.items()} == reasons
    assert {path for path, (_, chosen) in found.items() if chosen is q} == {"dense.kernel", "head.kernel"}
    everything = choose(model, match({".*": q}, everything=True), "test").leaves
    assert [leaf.path for leaf in everything if leaf.quantizer is None] == [
        *("dense.bias", "done", "empty", "name", "phase", "steps"),
    ]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.8e38, -1.8e38])
@pytest.mark.parametrize("owner", ["quantize", "refresh", "freeze", "expected_bytes", "excess", "quant_noise"])
def test_a_weight_that_cannot_be_is_refused_by_all_with_its_path(value, owner):
    q, fine = ScalarQuantizer(4), {"w": jnp.ones((2, 2)), "v": jnp.ones((2, 2))}
    model = {**fine, "v": np.array([[1.0, 2.0], [value, 3.0]], np.float32)}
    calls = {
        "quantize": lambda: quantize(model, q),
        "refresh": lambda: refresh(model, q),
        "freeze": lambda: freeze(model, q),
        "expected_bytes": lambda: expected_bytes(model, q),
        "excess": lambda: excess(model, q, refresh(fine, q)),
        "quant_noise": lambda: quant_noise(model, q, 0.5, KEY),
    }
    with pytest.raises(ValueError, match=rf"{owner}.model must be (finite|at most 1.7e\+38 in size); got .* in v\."):
        calls[owner]()


# --- reports ----------------------------------------------------------------------------------------------------------


def test_the_table_of_a_report_says_its_numbers():
    rows = (
        Row("a.weight", (1000, 2000), 8_000_000, 1_000_008, 0.12345, ""),
        Row("a.bias", (1000,), 4_000, 4_000, 0.0, "fewer than two axes"),
    )
    assert str(Report(rows, 8_004_000, 1_004_008)).splitlines() == [
        "a.weight  [1000, 2000]  8,000,000 → 1,000,008 bytes  error 12.35 %",
        "a.bias  [1000]  4,000 → 4,000 bytes  kept: fewer than two axes",
        "8.004 MB → 1.004 MB, 8.0 times smaller",
    ]
    assert [row.path for row in Report(rows, 1, 1).kept] == ["a.bias"]
    assert str(Report((), 0, 0)) == "0 MB → 0 MB, 0.0 times smaller"


def test_bytes_of_half_precision_are_half_at_every_stage():
    """Whole, frozen, packed, read again; expected within a program as well; the numbers are single precision's."""
    spec, dtype = ScalarQuantizer(4, granularity="channel"), jnp.dtype("float16")
    model = {"a": jnp.asarray(RNG.normal(size=(4, 6)), dtype), "b": jnp.asarray(RNG.normal(size=(2, 3)), dtype)}
    frozen = freeze(model, match({"a": spec}))
    assert (frozen["a"].original_nbytes, model["b"].nbytes) == (48, 12)
    packed, report = quantize(frozen, match({"b": spec}))
    after = [12 + 4 * 4 + 4, 3 + 2 * 4 + 2]
    assert [(row.bytes_before, row.bytes_after) for row in report.rows] == list(zip((48, 12), after, strict=True))
    assert expected_bytes(model, spec) == sum(after)
    told = []
    jax.eval_shape(lambda model: told.append(expected_bytes(model, match({"a": spec}))) or model, model)
    assert told == [after[0] + 12]
    for name, array in dequantize(packed).items():
        assert array.dtype == dtype
        wide = np.asarray(model[name], np.float64)
        step = (np.maximum(wide.max(1), 0) - np.minimum(wide.min(1), 0)) / 15
        assert (np.abs(np.asarray(array, np.float64) - wide) <= (step / 2 + 0.01 * np.abs(wide).max())[:, None]).all()


# --- files ------------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_whatever_its_type_and_shape(tmp_path):
    """Arrays of JAX and NumPy, without axes, empty, turned about, of every width, in their order."""
    model = {
        "w": jnp.asarray(RNG.normal(size=(4, 6)), jnp.float32),
        "number": jnp.asarray(2.5, jnp.bfloat16),
        "turned": np.arange(6.0, dtype=np.float32).reshape(2, 3).T,
        "bits": np.array([[True, False, True]]),
        "bytes": jnp.arange(5, dtype=jnp.uint8),
        "empty": np.zeros((0, 3), np.float32),
        "last": np.zeros((2, 0), np.int16),
        "text": "kept by like",
    }
    packed, report = quantize(model, match({"w": ScalarQuantizer(3, granularity="channel", outputs="last")}))
    written = save(tmp_path / "model", packed)
    like = {
        name: leaf if isinstance(leaf, str) else jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
        for name, leaf in model.items()
    }
    found = load(tmp_path / "model", like)
    assert found["text"] == "kept by like"
    for name in set(model) - {"w", "text"}:
        assert found[name].dtype == model[name].dtype, name
        np.testing.assert_array_equal(found[name], model[name])
    np.testing.assert_array_equal(dequantize(found)["w"], dequantize(packed)["w"])
    whole = (tmp_path / "model").read_bytes()
    length = int.from_bytes(whole[21:25], "little")
    assert written == len(whole) == 25 + length + report.bytes_after
    settings = {entry["path"]: entry.get("settings") for entry in json.loads(whole[25 : 25 + length])}
    assert settings["w"] == {
        **{"num_bits": 3, "scheme": "affine", "granularity": "channel", "observer": "minmax", "outputs": "last"},
    }


def test_two_arrays_at_one_path_are_refused_and_not_lost(tmp_path):
    """A path joins names by dots, and a name may have dots of its own."""
    model = {"a.b": jnp.ones((2, 2)), "a": {"b": jnp.zeros((2, 2))}, "w": jnp.eye(4)}
    packed, _ = quantize(model, match({"w": ScalarQuantizer(4)}))
    with pytest.raises(ValueError, match=r"save.model must have one array at every path; got two at a\.b\. Rename"):
        save(tmp_path / "model", packed)
    assert not list(tmp_path.iterdir())
    save(tmp_path / "model", {**packed, "a": 3})
    with pytest.raises(ValueError, match=r"load.like must have one array at every path; got two at a\.b\."):
        load(tmp_path / "model", model)


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("proxy", [None, "zero", jnp.float32, lambda w: 2 * w], ids=["none", "zero", "wide", "twice"])
def test_noise_keeps_the_type_of_a_weight_whatever_the_rate_and_the_proxy(dtype, proxy):
    """Also of its gradient; a rate that is an array is wider than half precision."""
    weights = {"w": jnp.asarray(RNG.normal(size=(4, 6)), dtype)}
    for rescale in (False, True)[: 1 if proxy is None else 2]:
        for rate in (0.5, jnp.asarray(0.5), np.float32(0.5)):

            def seen(model, rate=rate, rescale=rescale):
                return quant_noise(model, ScalarQuantizer(4), rate, KEY, proxy=proxy, rescale=rescale)["w"]

            slope = jax.eval_shape(jax.grad(lambda model, seen=seen: jnp.sum(seen(model))), weights)["w"]
            assert jax.eval_shape(seen, weights).dtype == slope.dtype == dtype


def test_each_of_several_weights_has_its_own_scale_and_the_worst_is_told():
    q = ScalarQuantizer(3, "symmetric")
    model = {"a": jnp.asarray(RNG.normal(size=(3, 4))), "b": jnp.asarray(9 * RNG.normal(size=(2, 5)))}
    state = refresh(model, q)
    for own, name in zip(state.weights, "ab", strict=True):
        assert float(own.parameters.scale.item()) == pytest.approx(float(jnp.abs(model[name]).max()) / 3, rel=1e-6)
        assert own.codes is None
    for factors in ((1.5, 0.5), (0.5, 1.5), (-1.5, 1.0)):
        grown = {name: factor * model[name] for name, factor in zip("ab", factors, strict=True)}
        assert float(excess(grown, q, state)) == pytest.approx(1.5, rel=1e-6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for factor in (1.9, 2.1):
            quant_noise({"a": model["a"], "b": factor * model["b"]}, q, 0.5, KEY, state=state)
    assert ["is 2.1 times as large" in str(one.message) for one in caught] == [True]  # twice is let pass


# --- training in stages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "fine"),
    [
        (lambda x: jnp.sum(x), True),
        (lambda x: jnp.sum(jnp.sqrt(jnp.abs(x - x))), False),  # 0, whose gradient is not
        (lambda x: jnp.nan + 0 * jnp.sum(x), False),
        (lambda x: jnp.inf + jnp.sum(x), False),  # whose gradient is fine
        (lambda x: jnp.sum(x) * 1e30 * 1e30, False),
    ],
)
def test_a_step_is_fine_where_the_loss_and_its_gradient_are(loss, fine):
    method = IterativeQuantization((ScalarQuantizer(4),), optax.sgd(0.0))
    state = method.init({"w": jnp.ones((2, 2))})
    after, info = method.step(state, lambda model: loss(model["w"]))
    assert int(info.status) == (0 if fine else 1)
    assert (int(info.cost), after.stage) == (1, 0)
    value, slope = jax.value_and_grad(lambda w: loss(w))(jnp.ones((2, 2)))
    np.testing.assert_array_equal(info.loss, value)
    np.testing.assert_allclose(info.gradient_norm, jnp.linalg.norm(slope), rtol=1e-6)
