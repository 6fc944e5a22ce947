"""Layers for images against XLA's own convolution, finite differences and the textbook's formulas."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.layers import Convolution, GroupNorm, ResidualBlock, ResNet, convolution, convolve, max_pool
from laureate.testing._checks import Check, Program, every_number_is_used

KEY = jax.random.key(0)


def drawn(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def reference(images, kernel):
    return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def by_hand(images, kernel):
    """The sum of the definition, in double precision."""
    images, kernel = np.asarray(images, float), np.asarray(kernel, float)
    margin = (kernel.shape[0] - 1) // 2
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    result = np.zeros((*images.shape[:3], kernel.shape[3]))
    for h in range(images.shape[1]):
        for w in range(images.shape[2]):
            window = padded[:, h : h + kernel.shape[0], w : w + kernel.shape[1]]
            result[:, h, w] = np.einsum("buvi,uvio->bo", window, kernel)
    return result


@pytest.mark.parametrize("side", [1, 3, 5])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 3), (3, 2)])
def test_convolution_is_the_sum_of_its_definition(side, inputs, outputs):
    images, kernel = drawn(2, 6, 5, inputs), drawn(side, side, inputs, outputs, seed=1)
    np.testing.assert_allclose(convolve(images, kernel), by_hand(images, kernel), atol=1e-5)


@pytest.mark.parametrize("block", [1, 200, 10**9])  # floats at once: one image, a few of the six, all of them
@pytest.mark.parametrize(("side", "inputs"), [(1, 3), (3, 1), (3, 4), (5, 2)])
def test_gradients_are_those_of_xlas_convolution(monkeypatch, block, side, inputs):
    monkeypatch.setattr(convolution, "BLOCK", block * side**2)
    images, kernel, slope = drawn(6, 7, 5, inputs), drawn(side, side, inputs, 3, seed=1), drawn(6, 7, 5, 3, seed=2)
    ours = jax.vjp(convolve, images, kernel)[1](slope)
    expected = jax.vjp(reference, images, kernel)[1](slope)
    for found, right in zip(ours, expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-4)


@pytest.mark.parametrize("outputs", [2, 8])  # few: images and slopes are copied; many: images alone
def test_a_block_has_as_many_images_as_fit(monkeypatch, outputs):
    """Blocks change the time and no number, so how many there are is read from the program."""
    copied = 5 * 4 * min(3 * (2 + outputs), 3 * 3 * 2)  # floats for an image of 5 × 4 with two channels
    monkeypatch.setattr(convolution, "BLOCK", 5 * copied + 1)
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((12, 5, 4, 2), (3, 3, 2, outputs), (12, 5, 4, outputs))]
    program = jax.make_jaxpr(lambda x, k, slope: jax.vjp(convolve, x, k)[1](slope))(*shapes)
    loops = [equation.params["length"] for equation in program.eqns if equation.primitive.name == "scan"]
    assert loops == [3]  # five would fit, and four is the largest number below that divides twelve


def test_gradients_by_finite_differences():
    images, kernel = drawn(2, 4, 4, 2), drawn(3, 3, 2, 2, seed=1)
    toward = drawn(2, 4, 4, 2, seed=2), drawn(3, 3, 2, 2, seed=3)
    loss = lambda x, k: float(np.sum(np.sin(by_hand(x, k))))  # noqa: E731
    slopes = jax.grad(lambda x, k: jnp.sum(jnp.sin(convolve(x, k))), argnums=(0, 1))(images, kernel)
    step = 1e-5
    ends = [
        loss(*(np.asarray(a, float) + s * step * np.asarray(t) for a, t in zip((images, kernel), toward, strict=True)))
        for s in (1, -1)
    ]
    along = sum(float(jnp.vdot(s, t)) for s, t in zip(slopes, toward, strict=True))
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / (2 * step), rtol=1e-4)


@pytest.mark.slow
def test_another_kernel_for_every_seed():
    """Under vmap, as the lab runs a block of seeds, values and gradients are those of a loop."""
    images, kernels = drawn(3, 4, 5, 5, 2), drawn(3, 3, 3, 2, 4, seed=1)
    loss = lambda x, k: jnp.sum(convolve(x, k) ** 2)  # noqa: E731
    together = jax.vmap(jax.value_and_grad(loss, argnums=(0, 1)))(images, kernels)
    for i in range(3):
        alone = jax.value_and_grad(loss, argnums=(0, 1))(images[i], kernels[i])
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(3, 3, 2, 4), (3, 5, 3, 4), (2, 2, 3, 4)])
def test_a_kernel_that_does_not_fit_is_told(shape):
    with pytest.raises(ValueError, match=r"the kernel must be \[s, s, 3, outputs\] with s odd"):
        convolve(drawn(1, 6, 6, 3), drawn(*shape))


@pytest.mark.parametrize("shape", [(2, 6, 6, 3), (2, 7, 5, 3)])
def test_pooling_is_the_windowed_maximum(shape):
    images = drawn(*shape)
    expected = jax.lax.reduce_window(images, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    np.testing.assert_array_equal(max_pool(images), expected)


def test_group_normalisation_is_equinoxs():
    images = 3.0 + 2.0 * drawn(3, 5, 4, 8)
    norm = GroupNorm(8, groups=2)
    norm = eqx.tree_at(lambda n: (n.scale, n.shift), norm, (drawn(8, seed=1), drawn(8, seed=2)))
    peer = eqx.nn.GroupNorm(groups=2, channels=8)
    peer = eqx.tree_at(lambda n: (n.weight, n.bias), peer, (norm.scale, norm.shift))
    expected = jax.vmap(peer)(images.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(norm(images), expected, atol=1e-5)


def test_group_normalisation_keeps_its_digits_where_the_mean_is_large():
    """The difference of two large sums of squares would have lost the variance."""
    images = 1000.0 + 0.1 * drawn(2, 8, 8, 4)
    np.testing.assert_allclose(GroupNorm(4, groups=1)(images).std((1, 2, 3)), 1.0, atol=5e-3)


def test_a_network_of_equinoxs_layers_gives_the_same():
    network = ResNet(KEY, inputs=2, channels=(4, 8), num_blocks=1)
    images = drawn(3, 9, 9, 2)

    def convolution_of(layer):
        o, i = layer.kernel.shape[3], layer.kernel.shape[2]
        peer = eqx.nn.Conv2d(i, o, 3, padding=1, use_bias=False, key=KEY)
        return eqx.tree_at(lambda c: c.weight, peer, layer.kernel.transpose(3, 2, 0, 1))

    def one(image):
        x = image.transpose(2, 0, 1)
        for i, (stem, residuals) in enumerate(zip(network.stems, network.residuals, strict=True)):
            if i:
                x = eqx.nn.MaxPool2d(2, 2)(x)
            norm = eqx.nn.GroupNorm(4, stem.kernel.shape[3])
            x = jax.nn.relu(norm(convolution_of(stem)(x)))
            for block in residuals:
                hidden = jax.nn.relu(norm(convolution_of(block.layers[0])(x)))
                x = jax.nn.relu(x + norm(convolution_of(block.layers[1])(hidden)))
        return x.mean((1, 2))

    np.testing.assert_allclose(network(images), jax.vmap(one)(images), atol=1e-4)


def with_norms_of_their_own(network):
    """The same with another scale and shift for every channel of every normalisation: at first all are 1 and 0."""
    is_norm = lambda node: isinstance(node, GroupNorm)  # noqa: E731
    norms = lambda tree: [node for node in jax.tree.leaves(tree, is_leaf=is_norm) if is_norm(node)]  # noqa: E731
    places = lambda tree: [part for norm in norms(tree) for part in (norm.scale, norm.shift)]  # noqa: E731
    return eqx.tree_at(places, network, [1 + 0.3 * drawn(*p.shape, seed=i) for i, p in enumerate(places(network))])


def test_a_residual_block_by_hand():
    """relu(x + n(K * relu(n(K * x)))) in double precision, each normalisation with a scale and a shift of its own."""
    block = with_norms_of_their_own(ResidualBlock(iter([drawn(3, 3, 8, 8, seed=s) for s in (1, 2)]), 8))
    images = drawn(2, 4, 5, 8)

    def normalised(norm, values):
        groups = values.reshape(2, 20, 4, 2)
        centred = groups - groups.mean((1, 3), keepdims=True)
        unit = centred / np.sqrt((centred**2).mean((1, 3), keepdims=True) + 1e-5)
        return unit.reshape(values.shape) * np.asarray(norm.scale) + np.asarray(norm.shift)

    values = np.asarray(images, float)
    for number, (layer, norm) in enumerate(zip(block.layers, block.norms, strict=True)):
        values = normalised(norm, by_hand(values, layer.kernel))
        values = np.maximum(values + (np.asarray(images, float) if number else 0), 0)
    np.testing.assert_allclose(eqx.filter_jit(block)(images), values, atol=1e-4)


def test_every_array_of_a_network_is_used():
    """Each of the convolutions' and normalisations', changed on its own, changes what comes out."""
    network, images = with_norms_of_their_own(ResNet(KEY, inputs=2, channels=(4, 8))), drawn(2, 4, 4, 2)
    check = Check("ResNet")
    every_number_is_used(check, network, Program(lambda network: network(images)))
    assert check.finish() == ["every number is used"]


@pytest.mark.slow
def test_features_of_an_image_do_not_depend_on_its_neighbours():
    network, images = ResNet(KEY, channels=(4, 8)), drawn(4, 8, 8, 1)
    np.testing.assert_allclose(network(images)[:2], network(images[:2]), atol=1e-5)


def test_weights_start_with_hes_variance():
    network = ResNet(KEY, channels=(16, 32), num_blocks=1)
    kernel = network.residuals[1][0].layers[1].kernel
    # 9,216 draws: the variance's standard error is 1.5 per cent.
    np.testing.assert_allclose(float(kernel.var()), 2 / (9 * 32), rtol=0.06)
    first, second = (layer.kernel for layer in network.residuals[0][0].layers)
    assert not np.allclose(first, second)


def test_wrong_settings_raise():
    with pytest.raises(ValueError, match=r"GroupNorm\.groups must be a divisor of 6; got 4"):
        GroupNorm(6)
    for channels in ((), (6,), (8, 6), (4, 0), (-4, 8)):
        with pytest.raises(ValueError, match=r"ResNet\.channels must be one or more multiples of 4"):
            ResNet(KEY, channels=channels)
    with pytest.raises(ValueError, match=r"ResNet\.num_blocks"):
        ResNet(KEY, num_blocks=-1)
    assert isinstance(ResidualBlock(iter([drawn(3, 3, 4, 4)] * 2), 4).layers[0], Convolution)
