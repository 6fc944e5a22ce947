"""Quant-Noise: what a step sees, what the gradient is, and that the weights are never touched."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate.compression import (
    ProductQuantizer,
    ScalarQuantizer,
    dequantize,
    excess,
    match,
    quantize,
    refresh,
)
from laureate.compression import quant_noise as quant_noise_outside_jit
from laureate.testing import KeyRecorder

RNG = np.random.default_rng(0)
MODEL = {
    "first": {"weight": jnp.asarray(RNG.normal(size=(20, 16)), jnp.float32), "bias": jnp.ones(20)},
    "second": {"weight": jnp.asarray(RNG.normal(size=(12, 20)), jnp.float32), "bias": jnp.ones((2, 6))},
    "norm": jnp.ones((3, 4)),
    "steps": jnp.arange(6).reshape(2, 3),
    "name": "a word",
}
INT3 = ScalarQuantizer(3)
SPEC = match({"first.*": INT3, "second.*": ProductQuantizer(4, 8, 3)})
KEY = jax.random.key(7)
arrays = lambda tree: eqx.filter(tree, eqx.is_array)  # noqa: E731
quant_noise = eqx.filter_jit(quant_noise_outside_jit)  # one program; outside jit every operation is one


@functools.cache
def begun():
    """The state before training; not at import, which every worker of the tests does."""
    return refresh(MODEL, SPEC, jax.random.key(1))


@pytest.fixture(autouse=True, scope="module")
def _outside_jit():
    begun()


@eqx.filter_jit
def _noised(model, rate, key, state, clamp):
    return quant_noise(model, SPEC, rate, key, state=state, clamp=clamp)


def noised(model, rate, key, state=None, clamp=True):
    return _noised(model, rate, key, begun() if state is None else state, clamp)


def test_rate_0_is_the_model_to_the_bit_and_rate_1_is_what_is_shipped():
    same = noised(MODEL, jnp.asarray(0.0), KEY)
    assert all(
        a.tobytes() == b.tobytes() for a, b in zip(*map(jax.tree.leaves, map(arrays, (same, MODEL))), strict=True)
    )
    shipped = dequantize(quantize(MODEL, INT3)[0])["first"]["weight"]
    full = noised(MODEL, jnp.asarray(1.0), KEY)
    np.testing.assert_array_equal(full["first"]["weight"], shipped)
    evaluated = quant_noise(MODEL, SPEC, 0.1, state=begun(), inference=True)
    proxied = quant_noise(MODEL, SPEC, 0.1, state=begun(), inference=True, proxy="zero", rescale=True)
    for name in ("first", "second"):
        np.testing.assert_array_equal(evaluated[name]["weight"], full[name]["weight"])
        np.testing.assert_array_equal(proxied[name]["weight"], full[name]["weight"])
        assert (evaluated[name]["weight"] != MODEL[name]["weight"]).mean() > 0.9
    own = begun().weights[1]
    np.testing.assert_array_equal(full["second"]["weight"], own.parameters.centroids[own.codes].reshape(12, 20))


def test_biases_norms_integers_and_words_are_left_alone():
    full = noised(MODEL, jnp.asarray(1.0), KEY)
    for name in ("norm", "steps"):
        np.testing.assert_array_equal(full[name], MODEL[name])
    np.testing.assert_array_equal(full["second"]["bias"], MODEL["second"]["bias"])
    assert full["name"] == "a word"
    both = match({r"second\.bias": ScalarQuantizer(1), ".*": None}, everything=True)
    noisy = quant_noise({"second": {"bias": MODEL["second"]["bias"] * jnp.array([1, 2, 1, 2, 1, 2.0])}}, both, 1.0, KEY)
    assert len(np.unique(noisy["second"]["bias"])) == 2


def test_the_share_that_is_chosen_is_the_rate_and_keys_decide_who():
    """64,000 + 9,600 draws: within four standard errors; and whole blocks of a codebook at once."""
    rate = 0.3
    keys = jax.random.split(KEY, 200)
    model, state = arrays(MODEL), begun()
    noisy = jax.jit(jax.vmap(lambda key: noised(eqx.combine(model, MODEL), rate, key, state)["first"]["weight"]))(keys)
    scalar = np.asarray(noisy != MODEL["first"]["weight"])
    full = np.asarray(noised(MODEL, jnp.asarray(1.0), KEY)["first"]["weight"] != MODEL["first"]["weight"])
    share = scalar[:, full].mean()
    assert abs(share - rate) < 4 * np.sqrt(rate * (1 - rate) / scalar[:, full].size)
    assert len({row.tobytes() for row in scalar}) == 200
    single = noised(MODEL, jnp.asarray(rate), keys[3])
    np.testing.assert_array_equal(single["first"]["weight"], noisy[3])  # one key, the same mask: vmap or not
    eager = quant_noise_outside_jit(MODEL, SPEC, rate, keys[3], state=state)
    np.testing.assert_array_equal(eager["second"]["weight"], single["second"]["weight"])
    blocks = np.asarray(single["second"]["weight"] != MODEL["second"]["weight"]).reshape(-1, 4)
    assert ((blocks.sum(1) == 0) | (blocks.sum(1) == 4)).all()
    assert 0 < blocks.mean() < 1


def test_the_share_is_the_rate_at_both_ends_of_its_range_too():
    """256 p is rounded at random, not for ever: rates of less than a step of 1/256 from 0 and from 1."""
    weights, rates = jnp.ones((32, 64)), np.array([0.0025, 0.9975], np.float32)
    dropped = lambda key, rate: quant_noise({"w": weights}, INT3, rate, key, proxy="zero")["w"] == 0  # noqa: E731
    shares = jax.jit(jax.vmap(jax.vmap(dropped, (0, None)), (None, 0)))(jax.random.split(KEY, 100), rates).mean((2, 3))
    # In a call k/256 with k = 0 or 1 (255 or 256): a Bernoulli variable of mean 0.64, in 256ths.
    spread = 1 / 256 * np.sqrt(0.64 * 0.36) + np.sqrt(0.0025 / 2048)
    np.testing.assert_allclose(shares.mean(1), rates, atol=4 * spread / np.sqrt(100))


def test_masks_of_two_weights_are_independent():
    twins = {"a": jnp.full((40, 40), 0.3), "b": jnp.full((40, 40), 0.3) + 0}
    noisy = quant_noise(twins, ScalarQuantizer(8), 0.5, KEY, proxy="zero")
    a, b = (np.asarray(noisy[name] == 0) for name in "ab")
    assert abs((a & b).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 1600)


def test_the_gradient_goes_straight_through_whatever_the_key():
    slope = {
        name: jnp.asarray(RNG.normal(size=MODEL[name]["weight"].shape), jnp.float32) for name in ("first", "second")
    }
    numbers, rest = eqx.partition(MODEL, eqx.is_inexact_array)

    @jax.jit
    def gradient(numbers, rate, key, proxied, state):
        def loss(numbers):
            model = eqx.combine(numbers, rest)
            exact = quant_noise(model, SPEC, rate, key, state=state)
            proxy = quant_noise(model, SPEC, rate, key, proxy="zero")
            seen = jax.tree.map(lambda a, b: jnp.where(proxied, a, b), arrays(proxy), arrays(exact))
            return sum(jnp.sum(seen[name]["weight"] * slope[name]) for name in slope)

        return jax.grad(loss)(numbers)

    for rate, number, proxied in ((0.0, 0, False), (0.5, 1, False), (1.0, 2, False), (0.5, 3, True)):
        found = gradient(numbers, rate, jax.random.key(number), proxied, begun())
        for name in slope:
            np.testing.assert_array_equal(found[name]["weight"], slope[name])
    # An old range: selected weights beyond it are clipped, and get no gradient; with rate 0 nobody is selected.
    small = begun()._replace(
        weights=(
            begun().weights[0]._replace(parameters=INT3.fit(None, MODEL["first"]["weight"] / 4)),
            begun().weights[1],
        )
    )
    beyond = ~np.asarray(INT3.inside(MODEL["first"]["weight"], small.weights[0].parameters))
    assert 0.2 < beyond.mean() < 0.8
    found = gradient(numbers, 1.0, KEY, False, small)["first"]["weight"]
    np.testing.assert_array_equal(found, np.where(beyond, 0, slope["first"]))
    np.testing.assert_array_equal(gradient(numbers, 0.0, KEY, False, small)["first"]["weight"], slope["first"])
    old = small._replace(weights=small.weights[:1])
    seen = lambda w: quant_noise({"w": w}, INT3, 1.0, KEY, state=old, clamp=False)["w"]  # noqa: E731
    free = jax.grad(lambda w: jnp.sum(seen(w)))(MODEL["first"]["weight"])
    assert (np.asarray(free) == 1).all()


def test_the_proxy_drops_blocks_and_rescales_only_when_asked():
    weights = {"w": jnp.asarray(RNG.normal(size=(64, 32)), jnp.float32)}
    spec = ProductQuantizer(8, 16)
    plain, scaled, own = (
        quant_noise(weights, spec, 0.25, KEY, **more)["w"]
        for more in ({"proxy": "zero"}, {"proxy": "zero", "rescale": True}, {"proxy": lambda w: 2 * w})
    )
    dropped = np.asarray(plain == 0)
    assert 0.1 < dropped.mean() < 0.4
    assert set(dropped.reshape(-1, 8).mean(1)) == {0.0, 1.0}
    np.testing.assert_array_equal(np.asarray(plain)[~dropped], np.asarray(weights["w"])[~dropped])
    np.testing.assert_allclose(scaled, plain / 0.75, rtol=1e-6)
    np.testing.assert_array_equal(own, np.where(dropped, 2, 1) * weights["w"])


def test_a_hundred_steps_without_a_rate_of_learning_change_no_bit():
    """The released module overwrites the weights at each forward pass (fairseq issues 3195 and 3783)."""
    optimiser = optax.sgd(0.0)

    @jax.jit
    def trained(numbers):
        def step(carry, key):
            numbers, own = carry
            loss = lambda n: jnp.sum(quant_noise(n, spec, 0.5, key, proxy="zero", rescale=True)["w"] ** 2)  # noqa: E731
            changes, own = optimiser.update(jax.grad(loss)(numbers), own)
            return (optax.apply_updates(numbers, changes), own), None

        return jax.lax.scan(step, (numbers, optimiser.init(numbers)), jax.random.split(KEY, 100))[0][0]

    spec, before = ProductQuantizer(4, 4), {"w": MODEL["first"]["weight"]}
    assert np.asarray(trained(before)["w"]).tobytes() == np.asarray(before["w"]).tobytes()


def test_refresh_follows_the_weights_and_goes_on_from_its_centroids():
    grown = jax.tree.map(lambda leaf: 3 * leaf if eqx.is_inexact_array(leaf) else leaf, MODEL)
    assert float(excess(MODEL, SPEC, begun())) == pytest.approx(1, abs=0.15)
    assert float(excess(grown, SPEC, begun())) == pytest.approx(3 * float(excess(MODEL, SPEC, begun())), rel=1e-5)
    with pytest.warns(UserWarning, match=r"quant_noise.state is old: a weight is .* times .*refresh"):
        quant_noise_outside_jit(grown, SPEC, 0.5, KEY, state=begun())
    fresh = refresh(grown, SPEC, jax.random.key(2), begun())
    np.testing.assert_allclose(fresh.weights[0].parameters.scale, 3 * begun().weights[0].parameters.scale, rtol=1e-6)
    again = [refresh(MODEL, SPEC, jax.random.key(number), begun()).weights[1] for number in (3, 4)]
    np.testing.assert_array_equal(again[0].parameters.centroids, again[1].parameters.centroids)  # warm: no key decides
    assert not jax.grad(lambda w: jnp.sum(refresh({"w": w}, INT3).weights[0].parameters.scale))(jnp.eye(3)).any()
    cold = refresh(MODEL, SPEC, jax.random.key(3)).weights[1]
    assert (cold.parameters.centroids != again[0].parameters.centroids).any()

    def error(own):
        seen = own.parameters.centroids[own.codes].reshape(12, 20)
        return float(jnp.sum((seen - MODEL["second"]["weight"]) ** 2))

    assert error(again[0]) <= error(begun().weights[1]) + 1e-5


def test_equal_weights_get_codebooks_of_their_own():
    """Each k-means begins with a key of its own, in training and when all is shipped."""
    twins = {"a": MODEL["second"]["weight"], "b": MODEL["second"]["weight"] + 0}
    spec = ProductQuantizer(4, 8, 3)
    a, b = refresh(twins, spec, KEY).weights
    assert (a.parameters.centroids != b.parameters.centroids).any()
    shipped = dequantize(quantize(twins, spec, KEY)[0])
    assert (shipped["a"] != shipped["b"]).any()


def test_codes_of_a_codebook_are_those_of_the_last_refresh():
    moved = {"w": MODEL["first"]["weight"]}
    spec = ProductQuantizer(4, 8, 3)
    state = refresh(moved, spec, KEY)
    seen = quant_noise({"w": -moved["w"]}, spec, 1.0, KEY, state=state)["w"]
    np.testing.assert_array_equal(seen, quant_noise(moved, spec, 1.0, KEY, state=state)["w"])


def test_the_share_and_who_is_chosen_have_keys_of_their_own():
    weights = {"w": MODEL["first"]["weight"]}
    with KeyRecorder() as recorder:
        jax.jit(lambda key: quant_noise_outside_jit(weights, INT3, 0.5, key, proxy="zero"))(jax.random.key(11))
        assert not recorder.reused()
    assert sorted(name for uses in recorder.uses.values() for name in uses) == ["bits", "split", "uniform"]


def test_keys_are_used_once_and_numbers_compile_nothing():
    with KeyRecorder() as recorder:
        jax.block_until_ready(
            quant_noise_outside_jit(arrays(MODEL), SPEC, 0.5, jax.random.key(11), state=begun())["first"]["weight"]
        )
        jax.block_until_ready(refresh(arrays(MODEL), SPEC, jax.random.key(12)).weights[1].codes)
        jax.effects_barrier()
    assert recorder.uses
    assert not recorder.reused()
    traces = []

    @jax.jit
    def counted(weights, rate, key):
        traces.append(1)
        return quant_noise({"w": weights}, INT3, rate, key)["w"]

    known = jax.jit(
        lambda key: quant_noise(arrays(MODEL), SPEC, jnp.asarray(0.5), key, state=begun())
    )  # all but the key
    assert known(KEY)["first"]["weight"].shape == (20, 16)
    for rate in (0.1, 0.5):
        counted(MODEL["first"]["weight"], rate, jax.random.key(int(10 * rate)))
    assert len(traces) == 1


@pytest.mark.parametrize(
    "dtype", ["bfloat16", *(pytest.param(d, marks=pytest.mark.slow) for d in ("float16", "float64"))]
)
def test_types_are_kept(dtype):
    with jax.enable_x64(True):
        weights = {"w": jnp.asarray(RNG.normal(size=(6, 8)), dtype)}
        for spec in (INT3, ProductQuantizer(4, 3, 2)):
            noisy = lambda some, spec=spec: quant_noise(some, spec, 1.0, KEY, state=refresh(some, spec, KEY))  # noqa: E731
            seen = jax.eval_shape(noisy, weights)["w"]
            packed, report = quantize(weights, spec, KEY)
            shipped = dequantize(packed)["w"]
            assert str(seen.dtype) == str(shipped.dtype) == dtype
            assert report.bytes_before == 48 * jnp.dtype(dtype).itemsize
            # What is computed of half precision is computed in single precision.
            wide, apart = (np.asarray(some, np.float64) for some in (weights["w"], shipped))
            apart = np.linalg.norm(apart - wide) / np.linalg.norm(wide)
            assert report.rows[0].error == pytest.approx(apart, rel=1e-5)
            if spec is INT3:
                np.testing.assert_allclose(packed["w"].parameters[0], (wide.max() - wide.min()) / 7, rtol=1e-6)
