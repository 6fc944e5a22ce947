"""BigGAN's parts against NumPy, closed forms, autodiff through the exact norm, and one another."""

import inspect
from dataclasses import fields

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats

from laureate import generative as g
from laureate.generative.biggan import adam
from laureate.generative.biggan_parts import halved
from laureate.generative.stateful import joined_statistics
from laureate.layers import BatchNorm, RunningStatistics, SpectralNorm
from laureate.testing import KeyRecorder

RNG = np.random.default_rng(5)
KEY = jax.random.key(3)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


# --- spectral normalisation of a network ------------------------------------------------------------------------------

W0, W1 = normal(5, 3), normal(1, 5)
MLP = g.Perceptron((jnp.asarray(W0), jnp.asarray(W1)), (jnp.zeros(5), jnp.ones(1)), activation=jnp.tanh)
ROWS = normal(4, 3)


def only_first(path):
    return path.endswith("weights[0]")


@pytest.fixture(scope="module")
def divided():
    """Both and one weight divided, once and when converged; with the gradient of the exact norm beside."""

    def settled(network, number):
        return jax.lax.fori_loop(0, number, lambda _, state: network.refresh(state)[0], network.init())

    def exact(weights):
        scaled = [w / jnp.linalg.svd(w, compute_uv=False)[0] for w in weights]
        return jnp.sum(jnp.sin(jax.vmap(eqx.tree_at(lambda n: n.weights, MLP, tuple(scaled)))(jnp.asarray(ROWS))))

    def ours(weights, state):
        network = g.SpectrallyNormalised(eqx.tree_at(lambda n: n.weights, MLP, weights))
        return jnp.sum(jnp.sin(network.apply(state, jnp.asarray(ROWS))[0]))

    @jax.jit
    def every():
        both, one = g.SpectrallyNormalised(MLP), g.SpectrallyNormalised(MLP, num_steps=3, where=only_first)
        cold, ready = both.init(), settled(both, 100)
        third = settled(both, 3)
        return {
            "cold": both.refresh(cold)[1],
            "ready": both.refresh(ready)[1],
            "output": both.apply(ready, jnp.asarray(ROWS))[0],
            "one": one.apply(settled(one, 40), jnp.asarray(ROWS))[0],
            "thrice": one.refresh(one.init())[0].singular[0].right,
            "third": third.singular[0].right,
            "slopes": (jax.grad(ours)(MLP.weights, ready), jax.grad(exact)(MLP.weights)),
        }

    return every()


def forward(first, second):
    return np.tanh(ROWS @ first.T) @ second.T + 1


def test_every_weight_is_divided_by_its_largest_singular_value(divided):
    norms = [np.linalg.norm(w, 2) for w in (W0, W1)]
    np.testing.assert_allclose(divided["ready"].sigma, norms, rtol=1e-5)
    np.testing.assert_allclose(divided["output"], forward(W0 / norms[0], W1 / norms[1]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(divided["one"], forward(W0 / norms[0], W1), rtol=1e-4, atol=1e-5)


def test_singular_values_are_told_in_the_order_of_names():
    """Weights of one shape are divided together, wherever they stand."""
    weights = tuple(normal(*shape) for shape in ((3, 2), (2, 3), (3, 2), (2, 3)))
    network = g.SpectrallyNormalised(g.Perceptron(tuple(map(jnp.asarray, weights)), (jnp.zeros(()),) * 4))
    report = jax.jit(lambda: jax.lax.fori_loop(0, 60, lambda _, s: network.refresh(s)[0], network.init()))()
    report = jax.jit(lambda state: network.refresh(state)[1])(report)
    np.testing.assert_allclose(report.sigma, [np.linalg.norm(w, 2) for w in weights], rtol=1e-4)
    assert [name[-3:] for name in network.names] == ["[0]", "[1]", "[2]", "[3]"]


def test_a_first_iteration_is_below_and_says_so(divided):
    cold, ready = divided["cold"], divided["ready"]
    assert float(cold.sigma[0]) < 0.999 * float(ready.sigma[0])
    assert float(cold.residual[0]) > 0.01 > float(ready.residual[0])
    assert float(cold.residual[1]) < 1e-5  # of a single row one iteration is exact


def test_iterations_are_as_many_as_said(divided):
    np.testing.assert_allclose(divided["thrice"], divided["third"], rtol=1e-5)


def test_the_gradient_is_that_through_the_exact_norm(divided):
    for mine, theirs in zip(*divided["slopes"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)


class Weighted(eqx.Module):
    """A weight to divide, and statistics to carry."""

    w: jax.Array

    def init(self):
        return (RunningStatistics.empty((2,)),)


def test_what_is_kept_and_told_has_no_gradient():
    def total(both):
        network, state = both
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(network.refresh(state)) if eqx.is_inexact_array(leaf))

    network = g.SpectrallyNormalised(g.WholeBatch(Weighted(jnp.asarray(W0))))  # pyright: ignore[reportArgumentType]
    slopes = eqx.filter_jit(eqx.filter_grad(total))((network, network.init()))
    assert not any(np.any(leaf) for leaf in leaves(slopes))


def test_a_kernel_as_a_matrix_is_not_the_norm_of_its_convolution():
    """Circular: the operator's singular values are those of the kernel's Fourier transform at every frequency."""
    kernel = normal(3, 3, 4, 8)
    norm = SpectralNorm(12)
    sigma = float(jax.jit(lambda w: norm(w, norm.init(KEY, w))[2].sigma)(kernel))
    waves = np.fft.fft2(kernel, s=(16, 16), axes=(0, 1))
    operator = np.linalg.svd(waves, compute_uv=False).max()
    assert 1.0 < operator / sigma <= 3.0 + 1e-4


def test_top_singular_values_are_exact_and_named():
    found = jax.jit(lambda: g.top_singular_values(MLP, 2))()
    assert list(found) == [".weights[0]", ".weights[1]"]
    np.testing.assert_allclose(found[".weights[0]"], np.linalg.svd(W0, compute_uv=False)[:2], rtol=1e-5)
    assert found[".weights[1]"].shape == (1,)


# --- the orthogonal penalty -------------------------------------------------------------------------------------------


LENGTHS = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
PENALISED = normal(6, 4)


@pytest.fixture(scope="module")
def priced():
    """Penalties of both kinds of a matrix, and of weights at right angles but of several lengths; one program."""

    def every(w):
        kernel, narrow, wide = g.orthogonal(KEY, (3, 3, 2, 4), (5, 2), (2, 5))
        longer = {"w": kernel * LENGTHS, "embedding": jnp.ones((5, 2)), "bias": jnp.ones(4)}
        kinds = {"off": g.OrthogonalPenalty(0.3), "full": g.OrthogonalPenalty(0.3, "full")}
        kinds["everywhere"] = g.OrthogonalPenalty(0.3, where=lambda path: True)
        found = {name: (*jax.value_and_grad(kind)(w), kind(longer)) for name, kind in kinds.items()}
        return found | {"weights": (kernel, narrow, wide)}

    return jax.tree.map(np.asarray, jax.jit(every)(jnp.asarray(PENALISED)))


def test_the_penalty_and_its_gradient(priced):
    gram = PENALISED.T @ PENALISED
    for name, rest in (("off", gram * (1 - np.eye(4))), ("full", gram - np.eye(4))):
        value, slope, _ = priced[name]
        np.testing.assert_allclose(value, 0.3 * np.sum(rest**2), rtol=1e-5)
        # The released code has 2 where the gradient has 4.
        np.testing.assert_allclose(slope, 0.3 * 4 * PENALISED @ rest, rtol=1e-4, atol=1e-4)


def test_at_right_angles_only_the_full_penalty_sees_lengths(priced):
    matrix = priced["weights"][0].reshape(-1, 4)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(4), atol=1e-5)
    assert priced["off"][2] < 1e-8
    np.testing.assert_allclose(priced["full"][2], 0.3 * (3**2 + 8**2 + 15**2), rtol=1e-4)
    np.testing.assert_allclose(priced["everywhere"][2], 0.3 * 2 * 5.0**2, rtol=1e-4)  # the embedding, too


def test_a_wide_weight_has_orthonormal_rows(priced):
    _, narrow, wide = priced["weights"]
    np.testing.assert_allclose(wide @ wide.T, np.eye(2), atol=1e-5)
    assert not np.allclose(narrow, wide.T)  # from other numbers of the draw


# --- normalisation by class, projection, attention --------------------------------------------------------------------

X, LABELS = normal(6, 2, 2, 3), np.array([0, 1, 1, 0, 1, 0])


def normalised(x):
    return (x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-5)


@pytest.fixture(scope="module")
def parts():
    """Norms, heads and attention on the same images; one program."""
    tables = {"gain": normal(2, 3), "bias": normal(2, 3), "w": normal(3, 1), "e": normal(2, 3), "c": normal(3)}
    tables |= {"seen": normal(2, 4, 2, 8), "query": normal(8, 1), "keys": normal(8, 1)}
    tables |= {"values": normal(8, 4), "output": normal(4, 8), "rows": normal(9, 3)}

    def every(t):
        x, y = jnp.asarray(X), jnp.asarray(LABELS)
        told = jax.nn.one_hot(y, 2)
        plain = g.ConditionalBatchNorm(jnp.zeros((2, 3)), jnp.zeros((2, 3)))
        norm = g.ConditionalBatchNorm(t["gain"], t["bias"])
        frozen = RunningStatistics.of(t["rows"])
        head = lambda w, e: g.ProjectionHead(w, jnp.array([0.5]), e)(x, y)  # noqa: E731
        attend = lambda gamma: g.SelfAttention(*(t[n] for n in ("query", "keys", "values", "output")), gamma)  # noqa: E731  # pyright: ignore[reportCallIssue]
        return {
            "plain": plain(x, told),
            "batch": BatchNorm(3, affine=False)(x),
            "norm": norm(x, told)[0],
            "frozen": norm(x[:1], told[:1], frozen),
            "head": head(t["w"], t["e"]),
            "moved": (head(t["w"], t["e"] + t["c"]), head(t["w"] + t["c"][:, None], t["e"])),
            "classless": head(t["w"], None),
            "attention": (attend(jnp.zeros(()))(t["seen"]), attend(jnp.asarray(0.7))(t["seen"])),
        }

    return jax.tree.map(np.asarray, jax.jit(every)(jax.tree.map(jnp.asarray, tables))), tables


def test_without_weights_it_is_plain_batch_normalisation(parts):
    found, _ = parts
    (mine, used), (plain, their) = found["plain"], found["batch"]
    np.testing.assert_allclose(mine, plain, rtol=1e-6)
    np.testing.assert_array_equal(used.mean, their.mean)
    np.testing.assert_allclose(mine, normalised(X), rtol=1e-4, atol=1e-5)


def test_of_one_hot_labels_it_has_a_scale_and_a_shift_a_class(parts):
    found, t = parts
    expected = normalised(X) * (1 + t["gain"][LABELS])[:, None, None] + t["bias"][LABELS][:, None, None]
    np.testing.assert_allclose(found["norm"], expected, rtol=1e-4, atol=1e-5)
    scaled = (X[:1] - t["rows"].mean(0)) / np.sqrt(t["rows"].var(0) + 1e-5)
    with_given, used = found["frozen"]
    np.testing.assert_allclose(with_given, scaled * (1 + t["gain"][0]) + t["bias"][0], rtol=1e-4, atol=1e-5)
    assert int(used.count) == 9


def test_a_vector_added_to_all_classes_is_one_added_to_the_weight(parts):
    found, t = parts
    np.testing.assert_allclose(*found["moved"], rtol=1e-4, atol=1e-4)
    hidden = np.maximum(X, 0).sum((1, 2))
    expected = hidden @ t["w"][:, 0] + 0.5
    np.testing.assert_allclose(found["classless"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["head"], expected + np.sum(t["e"][LABELS] * hidden, 1), rtol=1e-4, atol=1e-5)


def test_attention_by_hand_and_none_at_first(parts):
    found, t = parts
    x = t["seen"]
    np.testing.assert_array_equal(found["attention"][0], x)

    def halved(part):
        return part.reshape(2, 2, 2, 1, 2, -1).max((2, 4)).reshape(2, 2, -1)

    scores = np.einsum("bqk,bpk->bqp", (x @ t["query"]).reshape(2, 8, 1), halved(x @ t["keys"]))
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    told = np.einsum("bqp,bpv->bqv", weights, halved(x @ t["values"])) @ t["output"]
    np.testing.assert_allclose(found["attention"][1], x + 0.7 * told.reshape(x.shape), rtol=1e-4, atol=1e-4)


# --- the truncated law ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut():
    thresholds = jnp.array([0.1, 0.5, 2.0, jnp.inf])
    draw = lambda t: g.truncated_normal(KEY, (20_000,), t)  # noqa: E731
    return np.asarray(thresholds), np.asarray(jax.jit(jax.vmap(draw))(thresholds))


def test_truncated_latents_have_the_law_of_drawing_anew(cut):
    for t, z in zip(*cut, strict=True):
        t = float(t)
        law = scipy.stats.truncnorm(-t, t)
        assert np.abs(z).max() <= t
        assert scipy.stats.kstest(z, law.cdf).pvalue > 0.01
        assert np.isclose(g.truncated_variance(t), law.var(), rtol=1e-6)
        assert np.isclose(z.var(), law.var(), rtol=0.05)


def test_the_truncated_variance_keeps_its_digits_however_small_the_threshold():
    """Against Gauss's quadrature of z² = t² s² over 0 < s < 1, a mean of positive terms."""
    s, weight = np.polynomial.legendre.leggauss(80)
    s, weight = (s + 1) / 2, weight / 2
    for t in (1e-200, 1e-12, 1e-9, 2e-8, 1e-6, 1e-4, 0.01, 0.3, 1.0, 3.0, 8.0):
        density = weight * np.exp(-0.5 * (t * s) ** 2)
        assert g.truncated_variance(t) == pytest.approx(t**2 * (density @ s**2) / density.sum(), rel=1e-12, abs=0)
    assert g.truncated_variance(1e200) == g.truncated_variance(np.inf) == 1.0


def test_no_threshold_is_the_normal_law():
    plain = jax.random.normal(KEY, (5,))
    np.testing.assert_array_equal(g.truncated_normal(KEY, (5,)), plain)
    np.testing.assert_allclose(g.truncated_normal(KEY, (5,), jnp.inf), plain, rtol=1e-6)


def test_the_lowest_number_of_the_generator_is_no_infinite_latent(monkeypatch):
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype, low, high: jnp.broadcast_to(low, shape))
    assert -6 < float(g.truncated_normal(KEY, (1,), jnp.inf)[0]) < -5
    np.testing.assert_allclose(g.truncated_normal(KEY, (1,), 0.5), [-0.5], rtol=1e-5)


def test_a_curve_has_the_means_and_students_intervals():
    draw = lambda key, t: g.truncated_normal(key, (50,), t)  # noqa: E731
    run = jax.jit(lambda: g.truncation_curve(KEY, draw, [0.3, jnp.inf], {"a": jnp.std, "b": jnp.max}, num_repeats=5))
    curve = run()
    keys = jax.random.split(KEY, 5)
    every = np.asarray(jax.jit(jax.vmap(lambda t: jax.vmap(lambda key: draw(key, t))(keys)))(jnp.array([0.3, jnp.inf])))
    for place in range(2):
        values = every[place].std(axis=1)
        low, high = scipy.stats.t.interval(0.95, 4, np.mean(values), scipy.stats.sem(values))
        found = [float(part["a"][place]) for part in (curve.mean, curve.low, curve.high)]
        np.testing.assert_allclose(found, [np.mean(values), low, high], rtol=1e-4)
    assert sorted(curve.mean) == ["a", "b"]


# --- statistics of many batches ---------------------------------------------------------------------------------------


def test_joined_statistics_are_those_of_all_rows():
    parts = normal(3, 4, 2)
    found = jax.jit(lambda x: joined_statistics(jax.lax.map(RunningStatistics.of, x)))(jnp.asarray(parts))
    rows = parts.reshape(12, 2)
    np.testing.assert_allclose(found.mean, rows.mean(0), atol=1e-6)
    np.testing.assert_allclose(found.variance(), rows.var(0), rtol=1e-5)
    # The average of the batches' variances is less by the variance between their means.
    between = parts.mean(1).var(0)
    np.testing.assert_allclose(parts.var(1).mean(0), rows.var(0) - between, rtol=1e-4, atol=1e-6)


# --- the networks -----------------------------------------------------------------------------------------------------


def gan(shape=(8, 8, 1), classes=3, **more):
    usual = {"kind": "dense", "channels": 4, "num_blocks": 2, "num_latents": 6, "num_shared": 2, "optimiser": optax.sgd}
    return g.make_biggan(KEY, shape, classes, **usual | more)


def bare(model):
    """The generator within."""
    return model.generator.network.function


Z, Y, SEEN = normal(4, 6), np.array([0, 1, 2, 1]), normal(4, 8, 8, 1)


@pytest.fixture(scope="module")
def built():
    """Generators of all kinds; one program."""

    @jax.jit
    def every():
        z, y = jnp.asarray(Z), jnp.asarray(Y)
        deep, wide, own, none = gan(), gan(hierarchical=False), gan(shared=False), gan(classes=0)
        used = {n: bare(deep)(z.at[:, 2 * n : 2 * n + 2].add(1.0), y)[1] for n in range(3)}
        picture = gan((16, 16, 2), kind="convolution", channels=8, attention=True, num_latents=6)
        images, statistics = bare(picture)(z, y)
        told = picture.discriminator.network.function  # pyright: ignore[reportFunctionMemberAccess]
        judge, rule = deep.discriminator.network.function, adam(0.1)  # pyright: ignore[reportFunctionMemberAccess]
        _, moved = rule.update(jnp.ones(2), rule.init(jnp.ones(2)))
        return {
            "plain": bare(deep)(z, y),
            "first": bare(deep).first.weight,
            "moved": used,
            "wide": bare(wide)(z, y)[0],
            "own": (bare(own), *bare(own)(z, y)),
            "judge": (judge, judge(jnp.asarray(SEEN), y)[0]),
            "halved": halved(jnp.asarray(SEEN)),
            "still": rule.update(jnp.zeros(2), moved)[0],
            "none": bare(none)(z)[0],
            "labels-told-in-vain": bare(none)(z, y)[0],
            "image": images,
            "again": bare(picture)(z[:1], y[:1], statistics)[0],
            "logits": told(images, y)[0],
        }

    return every()


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(leaves(first), leaves(second), strict=True))


def test_a_piece_of_z_acts_from_its_block_on(built):
    """What a block's first norm sees comes from the blocks before; its second norm sees its own piece."""
    _, before = built["plain"]
    for piece in range(3):
        after = built["moved"][piece]
        for block in range(2):
            assert same(before[block][0], after[block][0]) == (block < piece), (piece, block)
            assert same(before[block][1], after[block][1]) == (block + 1 < piece), (piece, block)
        assert not same(before[2], after[2])


def test_images_have_their_shape_and_range(built):
    assert built["plain"][0].shape == (4, 8, 8, 1)
    assert built["image"].shape == (4, 16, 16, 2)
    assert built["logits"].shape == (4,)
    assert np.abs(built["image"]).max() <= 1
    assert np.asarray(built["image"]).std(0).mean() > 1e-3


def test_frozen_statistics_make_an_image_alone(built):
    np.testing.assert_allclose(built["again"][0], built["image"][0], rtol=1e-4, atol=1e-5)


def test_without_classes_labels_tell_nothing(built):
    np.testing.assert_array_equal(built["none"], built["labels-told-in-vain"])
    none = jax.eval_shape(lambda: gan(classes=0))
    assert bare(none).embedding.shape == (1, 1, 2)
    assert none.discriminator.network.function.head.embedding is None


def test_shared_and_own_embeddings_by_their_numbers():
    def size(**kind):
        return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(lambda: bare(gan(**kind)))))

    shared, own = size(), size(shared=False)
    assert own - shared == (4 - 1) * 3 * 2  # 4 norms with one of [3 classes, 2 numbers] each, against one
    once = size(hierarchical=False)
    assert shared - once == 4 * 2 * 4 * 2 - 4 * 4  # the norms' pieces of z, less four more inputs of the first layer


def test_weights_begin_orthogonal_and_the_shared_embedding_is_not_divided(built):
    first = np.asarray(built["first"])  # [2, 4]
    np.testing.assert_allclose(first @ first.T, np.eye(2), atol=1e-5)
    assert isinstance(jax.eval_shape(lambda: gan(spectral=False)).generator, g.WholeBatch)
    divided = []
    for shared in (True, False):
        jax.eval_shape(lambda shared=shared: divided.append(gan(shared=shared).generator.names))  # pyright: ignore[reportFunctionMemberAccess]
    assert divided[0] == divided[1]
    assert divided[0][0] == ".function.first.weight"  # σ₀ of the monitor
    assert not any("embedding" in path for path in divided[0])


def test_every_norm_has_the_embedding_of_its_own(built):
    """The first block by hand: its two norms are told by two embeddings."""
    network, _, used = built["own"]
    embedding, block = np.asarray(network.embedding), network.blocks[0]
    assert embedding.shape == (4, 3, 2)
    h = Z[:, :2] @ np.asarray(network.first.weight) + np.asarray(network.first.bias)
    for number, norm in enumerate(block.norms):
        np.testing.assert_allclose(used[0][number].mean, h.mean(0), rtol=1e-4, atol=1e-5)
        condition = np.concatenate([embedding[number][Y], Z[:, 2:4]], axis=1)
        scaled = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
        h = np.maximum(scaled * (1 + condition @ np.asarray(norm.gain)) + condition @ np.asarray(norm.bias), 0)
        h = h @ np.asarray(block.layers[number].weight) + np.asarray(block.layers[number].bias)
    start = Z[:, :2] @ np.asarray(network.first.weight) + np.asarray(network.first.bias)
    np.testing.assert_allclose(used[1][0].mean, (h + start).mean(0), rtol=1e-4, atol=1e-5)


def test_the_discriminator_by_hand(built):
    """No relu before the first block, one before each later one; the class in the head."""
    judge, found = built["judge"]
    affine = lambda layer, x: x @ np.asarray(layer.weight) + np.asarray(layer.bias)  # noqa: E731
    h = SEEN.reshape(4, -1)
    for number, block in enumerate(judge.blocks):
        inner = affine(block.layers[0], np.maximum(h, 0) if number else h)
        h = affine(block.layers[1], np.maximum(inner, 0)) + (h if block.shortcut is None else affine(block.shortcut, h))
    hidden, head = np.maximum(h, 0), judge.head
    expected = hidden @ np.asarray(head.weight)[:, 0] + np.sum(np.asarray(head.embedding)[Y] * hidden, axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert len(judge.blocks) == 3


@pytest.mark.parametrize("number", [500, 5_000, 50_000])
def test_presets_are_settings_of_the_maker_and_of_its_fit(number):
    names = set(g.biggan_settings(number))
    of_fit = set(inspect.signature(g.Adversarial.fit).parameters)
    of_maker = set(inspect.signature(g.make_biggan).parameters) | {one.name for one in fields(g.Adversarial)}
    assert names & of_fit == {"batch", "num_steps"}
    assert names - of_fit <= of_maker


def test_pooling_takes_means(built):
    np.testing.assert_allclose(built["halved"][:, 1, 2], SEEN[:, 2:4, 4:6].mean((1, 2)), rtol=1e-5, atol=1e-6)


def test_adam_has_no_momentum(built):
    np.testing.assert_array_equal(built["still"], np.zeros(2))


# --- the trainer with networks that carry something -------------------------------------------------------------------


class Column(eqx.Module):
    """l = (wᵀx)(label): of one column the norm is its length, so that one iteration is exact."""

    w: jax.Array

    def __call__(self, x, label):
        return (x @ self.w)[0] * label


class Shift(eqx.Module):
    """x = (z + label + shift − mean) / deviation + shift: normalised by the batch, where the first shift is lost."""

    shift: jax.Array

    def init(self):
        return (RunningStatistics.empty((2,)),)

    def __call__(self, z, label, statistics=None):
        given = None if statistics is None else statistics[0]
        x, used = BatchNorm(2, affine=False)(z + label[:, None] + self.shift[None], given)
        return x + self.shift[None], (used,)


WEIGHT, SHIFT, DATA = normal(2, 1), normal(2), normal(16, 2)
TOLD = np.where(np.arange(16) % 2, 1.0, 0.5).astype(np.float32)


def playing(**more):
    usual = {"num_latents": 2, "learning_rate": 0.1, "ratio": 2.0, "optimiser": optax.sgd, "decay": 0.5}
    generator = g.WholeBatch(Shift(jnp.asarray(SHIFT)), momentum=0.75)
    judge = g.SpectrallyNormalised(Column(jnp.asarray(WEIGHT)))
    return g.Adversarial(generator, judge, "wasserstein", **usual | more)


@pytest.fixture(scope="module")
def played():
    """Three steps, one with a penalty of the shift; one program."""

    @jax.jit
    def every():
        x, labels = jnp.asarray(DATA), jnp.asarray(TOLD)
        model, paid = playing(average_from=2), playing(generator_penalty=lambda n: 3.0 * jnp.sum(n.function.shift**2))
        states, infos = [model.init()], []
        for number in range(3):
            state, info = model.step(jax.random.fold_in(KEY, number), (x, labels), states[-1])
            states, infos = [*states, state], [*infos, info]
        standing = model.standing(KEY, states[-1], labels, num_batches=3, batch=5, truncation=0.7)
        return {
            "states": states,
            "infos": infos,
            "paid": paid.step(jax.random.fold_in(KEY, 0), (x, labels), paid.init()),
            "standing": standing,
            "sample": model.sample(KEY, states[-1], 4, labels[:4], truncation=0.3, statistics=standing),
        }

    return every()


def test_a_step_against_a_normalised_discriminator_is_that_by_hand(played):
    state, info = played["states"][1], played["infos"][0]
    z = np.asarray(jax.random.normal(jax.random.split(jax.random.fold_in(KEY, 0), 3)[0], (2, 16, 2))) + TOLD[:, None]
    scaled = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
    made = scaled + SHIFT
    w, length = WEIGHT[:, 0], np.linalg.norm(WEIGHT)
    unit = w / length
    by_scaled = np.mean(-TOLD[:, None] * DATA, 0) + np.mean(TOLD[:, None] * made[0], 0)
    # d (w/‖w‖) = (I − ŵŵᵀ) dw / ‖w‖
    after = w - 0.2 * (by_scaled - unit * (unit @ by_scaled)) / length
    np.testing.assert_allclose(state.judge.parameters[0].network.w[:, 0], after, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(info.spectra[1].sigma, [length], rtol=1e-5)
    np.testing.assert_allclose(info.margin, np.mean(TOLD * (DATA @ unit)) - np.mean(TOLD * (made[0] @ unit)), rtol=1e-4)
    new = after / np.linalg.norm(after)
    np.testing.assert_allclose(state.generator.function.shift, SHIFT + 0.1 * np.mean(TOLD) * new, rtol=1e-5)
    np.testing.assert_allclose(info.slope, np.mean(TOLD), rtol=1e-5)
    np.testing.assert_allclose(info.clipped, np.mean(np.abs(made[1]) > 0.99), rtol=1e-5)
    assert info.spectra[0].sigma.shape == (0,)
    # The statistics of the generator's own batch are kept whole the first time.
    np.testing.assert_allclose(state.network[0].mean, z[1].mean(0) + SHIFT, atol=1e-6)


def test_batch_statistics_are_averaged_along_the_steps(played):
    first, second = (played["states"][n].network[0] for n in (1, 2))
    z = np.asarray(jax.random.normal(jax.random.split(jax.random.fold_in(KEY, 1), 3)[0], (2, 16, 2)))[1]
    z = z + TOLD[:, None] + np.asarray(played["states"][1].generator.function.shift)
    np.testing.assert_allclose(second.mean, 0.75 * np.asarray(first.mean) + 0.25 * z.mean(0), atol=1e-6)
    variance = 0.75 * np.asarray(first.variance()) + 0.25 * z.var(0)
    np.testing.assert_allclose(second.variance(), variance, rtol=1e-5)


def test_the_average_copies_first_and_then_decays(played):
    shifts = [np.asarray(state.generator.function.shift) for state in played["states"]]
    averages = [np.asarray(state.average.function.shift) for state in played["states"]]
    np.testing.assert_array_equal(averages[1], shifts[1])
    np.testing.assert_array_equal(averages[2], shifts[2])
    np.testing.assert_allclose(averages[3], 0.5 * shifts[2] + 0.5 * shifts[3], rtol=1e-6)


def test_the_generators_penalty_is_descended_on(played):
    (state, info), (plain, told) = played["paid"], (played["states"][1], played["infos"][0])
    moved = np.asarray(state.generator.function.shift) - np.asarray(plain.generator.function.shift)
    np.testing.assert_allclose(moved, -0.1 * 6.0 * SHIFT, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(float(info.generator_loss - told.generator_loss), 3.0 * np.sum(SHIFT**2), rtol=1e-4)


def test_standing_statistics_are_those_of_all_latents_and_say_how_they_were_made(played):
    standing = played["standing"]
    """Of the averaged weights, with rows of the labels at random."""
    latent_key, rows_key = jax.random.split(KEY)
    average = np.asarray(played["states"][3].average.function.shift)
    told = TOLD[(np.asarray(jax.random.uniform(rows_key, (3, 5))) * 16).astype(int)].reshape(15, 1)
    assert len(set(told[:, 0].tolist())) == 2
    z = np.asarray(g.truncated_normal(latent_key, (3, 5, 2), 0.7)).reshape(15, 2) + told + average
    (found,) = standing.statistics
    np.testing.assert_allclose(found.mean, z.mean(0), atol=1e-6)
    np.testing.assert_allclose(found.variance(), z.var(0), rtol=1e-4)
    assert (round(float(standing.truncation), 3), int(standing.num_batches), int(standing.batch)) == (0.7, 3, 5)
    latents = np.asarray(g.truncated_normal(KEY, (4, 2), 0.3)) + TOLD[:4, None] + average
    expected = (latents - z.mean(0)) / np.sqrt(z.var(0) + 1e-5) + average
    np.testing.assert_allclose(played["sample"], expected, rtol=1e-4, atol=1e-5)


def test_a_fit_is_its_steps_and_samples_with_its_statistics_or_others():
    """In parts it is the same; no key is used twice, by the steps and by the statistics after them."""
    model, told = playing(), TOLD[:4]
    with KeyRecorder() as recorder:
        fitted = model.fit(KEY, (DATA, TOLD), num_steps=3, batch=4)
        assert not recorder.reused()

    @jax.jit
    def by_parts(statistics):
        x, labels, infos = jnp.asarray(DATA), jnp.asarray(TOLD), []
        state = model.init()
        for number in (2, 1):
            state, info = model.train(KEY, (x, labels), state, num_steps=number, batch=4)
            infos.append(info)
        other = model.standing(KEY, state, labels, num_batches=2, batch=3)
        draw = lambda of: model.sample(KEY, state, 4, labels[:4], truncation=0.3, statistics=of)  # noqa: E731
        return (
            (state, jax.tree.map(lambda *parts: jnp.concatenate(parts), *infos)),
            other,
            draw(statistics),
            draw(other),
        )

    whole, other, by_own, by_other = by_parts(fitted.statistics)
    for mine, theirs in zip(leaves((fitted.state, fitted.history)), leaves(whole), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    standing = fitted.statistics
    assert (float(standing.truncation), int(standing.num_batches), int(standing.batch)) == (np.inf, 16, 4)
    np.testing.assert_allclose(fitted.sample(KEY, 4, told, truncation=0.3), by_own, rtol=1e-5, atol=1e-6)
    drawn = fitted.sample(KEY, 4, told, truncation=0.3, statistics=other)
    np.testing.assert_allclose(drawn, by_other, rtol=1e-5, atol=1e-6)
    assert np.abs(by_own - by_other).max() > 1e-3


def test_a_fit_hands_its_statistics_and_thresholds_to_what_is_compiled(monkeypatch):
    """The statistics come from a key that no step had; sampling uses them unless others are given."""
    given = {}

    def watch(name, answer):
        monkeypatch.setattr(f"laureate.generative.trainer.{name}", lambda *all: (given.update({name: all}), answer)[1])

    def standing(threshold):
        return g.StandingStatistics((), (), jnp.asarray(threshold, jnp.float32), jnp.asarray(1), jnp.asarray(2))

    model, own, other = playing(), standing(np.inf), standing(0.3)
    infos = type("Infos", (), {"status": np.zeros(3, int), "regularisers": ()})
    watch("_trained", (model.init(), infos))
    watch("_standing", own)
    watch("_sampled", "made")
    fitted = model.fit(KEY, (DATA, TOLD), num_steps=3, batch=4)
    numbers = [jax.random.key_data(key).tolist() for key in (KEY, *(jax.random.fold_in(KEY, n) for n in range(3)))]
    assert jax.random.key_data(given["_standing"][1]).tolist() not in numbers
    for asked, used in ((None, own), (other, other)):
        assert fitted.sample(KEY, 4, TOLD[:4], truncation=0.3, statistics=asked) == "made"
        *_, threshold, statistics = given["_sampled"]
        assert statistics is used
        assert (threshold.dtype, threshold.item()) == (np.float32, np.float32(0.3))
    fitted.sample(KEY, 4, TOLD[:4])
    assert given["_sampled"][-2] is None


def test_hinge_leaves_a_sure_discriminator_alone():
    judge = g.Judge(g.SpectrallyNormalised(Column(jnp.asarray(WEIGHT))), "hinge", optimiser=optax.sgd)
    unit = WEIGHT[:, 0] / np.linalg.norm(WEIGHT)
    far = jnp.asarray(np.stack([3 * unit, 4 * unit]).astype(np.float32))
    step = jax.jit(lambda real, made: judge.step(KEY, (real, jnp.ones(2)), (made, jnp.ones(2)), judge.init()))
    after, info = step(far, -far)
    np.testing.assert_array_equal(after.parameters[0].network.w, WEIGHT)
    assert (float(info.loss), float(info.saturated)) == (0.0, 1.0)
    unsure, _ = step(far, jnp.asarray(np.stack([unit[::-1]] * 2) * np.array([1.0, -1.0], np.float32)))  # logits of 0
    assert not np.array_equal(unsure.parameters[0].network.w, WEIGHT)


@pytest.mark.slow  # two steps of two networks to compile; tests/generative/test_adversarial_exact.py has parts, too
def test_parts_of_a_batch_are_the_batch_where_nothing_couples_it():
    """Spectral vectors move once a step, whatever the number of parts."""
    (generator,) = g.perceptrons(KEY, (2, 4, 2))
    (judge,) = g.perceptrons(jax.random.key(1), (2, 4, 1))

    def model(parts):
        networks = g.SpectrallyNormalised(generator), g.SpectrallyNormalised(judge)
        return g.Adversarial(*networks, "hinge", num_latents=2, num_accumulated=parts, optimiser=optax.sgd)

    run = jax.jit(lambda x: [model(parts).step(KEY, x, model(parts).init())[0] for parts in (1, 4)])
    whole, parted = run(jnp.asarray(DATA))
    for mine, theirs in zip(leaves(whole), leaves(parted), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


# --- data and metrics -------------------------------------------------------------------------------------------------


def test_images_and_labels_stay_what_they_are():
    images = np.linspace(-1, 1, 2 * 8 * 8).reshape(2, 8, 8, 1)
    (alone,), (both, labels) = g.images_and_labels(images), g.images_and_labels(images, [1, 0])
    for found in (alone, both):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, images.astype(np.float32))
    assert (labels.dtype, labels.tolist()) == (np.int32, [1, 0])


def test_the_share_of_copies():
    train, held = normal(20, 3), normal(20, 3)
    made = np.concatenate([train[:6] + 1e-3, held[:2] + 1e-3])
    apart = [np.linalg.norm(made[:, None] - part[None], axis=2).min(1) for part in (train, held)]
    found = jax.jit(g.copy_share)(made, train, held)
    np.testing.assert_allclose(found, np.mean(apart[0] < apart[1]))
    assert float(found) == 0.75


def test_what_is_as_near_to_both_is_half_a_copy():
    """Duplicates in both sets, and what lies half-way: exchanging the sets always gives the rest to one."""
    train, held = np.array([[0.0], [4], [9]]), np.array([[0.0], [6], [12]])
    made = np.array([[0.0], [5], [4], [3], [7]])  # in both, half-way, a copy, near train, near held-out
    share = jax.jit(g.copy_share)
    assert float(share(made, train, held)) == pytest.approx((0.5 + 0.5 + 1 + 1 + 0) / 5)
    assert float(share(made, held, train)) == pytest.approx((0.5 + 0.5 + 0 + 0 + 1) / 5)
    assert float(share(made, train, train)) == 0.5


# --- one step, both networks divided, by hand -------------------------------------------------------------------------


class Product(eqx.Module):
    """x @ w, or the sum of its entries."""

    w: jax.Array
    summed: bool = eqx.field(static=True)

    def __call__(self, x):
        return jnp.sum(x @ self.w) if self.summed else x @ self.w


def iterated(w):
    """u, v and σ̂ = uᵀWv after one iteration from the first direction."""
    v = np.random.default_rng(0).normal(size=(1, 2))[0]
    v = w.T @ (w @ v)
    v /= np.linalg.norm(v)
    u = w @ v / np.linalg.norm(w @ v)
    return u, v, u @ w @ v


def test_a_step_divides_by_vectors_that_were_moved_once():
    a, w, x = (
        np.array([[1.0, 0.6], [-0.3, 0.9]], np.float32),
        np.array([[0.4, -1.1], [0.9, 0.7]], np.float32),
        normal(6, 2),
    )
    networks = (g.SpectrallyNormalised(Product(jnp.asarray(part), part is w)) for part in (a, w))
    model = g.Adversarial(*networks, "wasserstein", num_latents=2, learning_rate=0.1, ratio=1e-8, optimiser=optax.sgd)  # pyright: ignore[reportCallIssue]
    other = normal(2, 2)

    def run(x):
        averaged = jax.tree.map(lambda leaf: jnp.asarray(other), model.init().average)
        return *model.step(KEY, x, model.init()), model.settled(model.init()._replace(average=averaged))

    state, info, settled = jax.jit(run)(jnp.asarray(x))
    z = np.asarray(jax.random.normal(jax.random.split(KEY, 3)[0], (2, 6, 2)))
    (u, v, sigma), (_, right, length) = iterated(a), iterated(w)
    assert sigma < 0.999 * np.linalg.norm(a, 2)  # once is not enough to converge, and tells it
    first = np.random.default_rng(0).normal(size=2)
    assert np.linalg.norm(w @ first) / np.linalg.norm(first) < 0.95 * length  # and changes what G learns from
    slope = w.sum(1) / length  # ∂D/∂x
    margin = np.mean(x @ slope) - np.mean(z[0] @ a @ slope) / sigma
    np.testing.assert_allclose(info.margin, margin, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose([*info.spectra[0].sigma, *info.spectra[1].sigma], [sigma, length], rtol=1e-5)
    mean = z[1].mean(0)
    by_a = -(np.outer(mean, slope) / sigma - (mean @ a @ slope) / sigma**2 * np.outer(u, v))
    np.testing.assert_allclose(state.generator.network.w, a - 0.1 * by_a, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.abs(state.judge.network.singular[0].right[0]), np.abs(right), rtol=1e-4)
    np.testing.assert_allclose(np.abs(state.network.singular[0].right[0]), np.abs(v), rtol=1e-4)
    # What is sampled with has the vectors of the averaged weights.
    top = np.linalg.svd(other)[2][0]
    np.testing.assert_allclose(np.abs(settled.singular[0].right[0]), np.abs(top), atol=1e-3)
