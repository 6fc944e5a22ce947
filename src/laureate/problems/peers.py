"""What peers without a server train on: quadratics whose optima differ, and images sorted by label."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate._core import require
from laureate.problems.datasets import IMAGE_SETS, small_images

__all__ = ["ImagesOverNodes", "JudgedImages", "Quadratics", "judged_images"]


class Quadratics(eqx.Module):
    """f_i(x) = ½ ‖A_i x − b_i‖², another A_i and b_i on every node; gradients with noise of deviation σ.

    ``sample(key)`` draws a network's data; ``gradient(key, x, data_i, noise)`` is one node's; ``optimum(data)`` the
    minimum of the mean. Entries of A_i have variance 1/P, those of b_i variance 1.

    nodes: n >= 1. dimension: P >= 1.

    >>> import jax
    >>> problem = Quadratics(nodes=4, dimension=3)
    >>> data = problem.sample(jax.random.key(0))
    >>> best = problem.optimum(data)
    >>> slopes = jax.vmap(lambda d: problem.gradient(jax.random.key(1), best, d, 0.0))(data)
    >>> bool(abs(slopes.mean(0)).max() < 1e-5), bool(abs(slopes).max() > 0.1)
    (True, True)
    """

    nodes: int = eqx.field(static=True)
    dimension: int = eqx.field(static=True)

    def __init__(self, nodes: int = 16, dimension: int = 10):
        require("Quadratics", "nodes", ">= 1", nodes, lambda n: n >= 1)
        require("Quadratics", "dimension", ">= 1", dimension, lambda p: p >= 1)
        self.nodes, self.dimension = nodes, dimension

    def sample(self, key: Array) -> tuple[Array, Array]:
        """H_i = A_iᵀ A_i ``[n, P, P]`` and c_i = A_iᵀ b_i ``[n, P]``."""
        shape = (self.nodes, self.dimension, self.dimension)
        matrix_key, shift_key = jax.random.split(key)
        a = jax.random.normal(matrix_key, shape) / np.sqrt(self.dimension)
        b = jax.random.normal(shift_key, shape[:2])
        return jnp.einsum("nkp,nkq->npq", a, a), jnp.einsum("nkp,nk->np", a, b)

    def gradient(self, key: Array, x: Array, data: tuple[Array, Array], noise: float | Array) -> Array:
        """A_iᵀ (A_i x − b_i) + σ ε, of one node."""
        hessian, shift = data
        return hessian @ x - shift + noise * jax.random.normal(key, x.shape, x.dtype)

    def optimum(self, data: tuple[Array, Array]) -> Array:
        """The minimum of the mean of all f_i."""
        return jnp.linalg.solve(data[0].mean(0), data[1].mean(0))


class ImagesOverNodes(eqx.Module):
    """A classifier of images, whose training set is cut into one part a node: sorted by label, shuffled, or between.

    images: "digits" (scikit-learn's, 8 × 8), "mnist-5k" or "fashion-mnist" (both averaged to 14 × 14).
    model: "linear" (softmax regression) or "conv" (3 × 3 convolution, ReLU, 2 × 2 maximum, softmax).
    nodes: n >= 2. per_node: images a node. channels: of the convolution. batch: images a gradient, drawn anew each
    time.
    pool: averages pool × pool pixels first.
    penalty: λ of λ/2 ‖θ‖² over all parameters, biases too, which makes softmax regression's optimum unique.

    >>> import jax
    >>> problem = ImagesOverNodes(nodes=4, per_node=50)
    >>> images, labels = problem.parts(jax.random.key(0), shuffle=0.0)
    >>> images.shape, [int(part.max() - part.min()) for part in labels]  # sorted: few labels a node
    ((4, 50, 64), [2, 3, 2, 2])
    """

    images: Array
    labels: Array
    nodes: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    model: str = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    side: int = eqx.field(static=True)
    penalty: float = eqx.field(static=True)

    def __init__(
        self,
        nodes: int = 8,
        per_node: int = 200,
        images: str = "digits",
        model: str = "linear",
        channels: int = 4,
        batch: int = 8,
        pool: int = 1,
        penalty: float = 1e-3,
    ):
        owner = "ImagesOverNodes"
        for name, value, least in (
            ("nodes", nodes, 2),
            ("per_node", per_node, 1),
            ("batch", batch, 1),
            ("pool", pool, 1),
        ):
            require(owner, name, f">= {least}", value, lambda v, least=least: v >= least)
        require(owner, "images", f"one of {', '.join(IMAGE_SETS)}", images, lambda i: i in IMAGE_SETS)
        require(owner, "model", "'linear' or 'conv'", model, lambda m: m in ("linear", "conv"))
        require(owner, "channels", ">= 1", channels, lambda c: c >= 1)
        require(owner, "penalty", ">= 0", penalty, lambda p: p >= 0)
        pictures, labels = _read(images)
        total = nodes * per_node
        rule = f"at most {len(labels) // nodes} ({len(labels)} images for {nodes} nodes)"
        require(owner, "per_node", rule, per_node, lambda p: nodes * p <= len(labels))
        chosen = np.random.default_rng(0).permutation(len(labels))[:total]
        order = chosen[np.argsort(labels[chosen], kind="stable")]
        pictures = pictures[order]
        if pool > 1:
            side = pictures.shape[1] // pool
            pictures = pictures[:, : side * pool, : side * pool].reshape(total, side, pool, side, pool).mean((2, 4))
        self.side = pictures.shape[1]
        self.images = jnp.asarray(pictures.reshape(total, -1), jnp.float32)
        self.labels = jnp.asarray(labels[order], jnp.int32)
        self.nodes, self.batch, self.model, self.channels, self.penalty = nodes, batch, model, channels, penalty

    def parts(self, key: Array, shuffle: float | Array) -> tuple[Array, Array]:
        """Images ``[n, per_node, pixels]`` and labels: sorted by label, a random share ``shuffle`` of them mixed up."""
        total = len(self.labels)
        mixed_key, order_key = jax.random.split(key)
        mixed = jax.random.uniform(mixed_key, (total,)) < shuffle
        places = jnp.argsort(jnp.where(mixed, jnp.arange(total), total), stable=True)
        drawn = jnp.argsort(jnp.where(mixed, jax.random.uniform(order_key, (total,)), 2.0), stable=True)
        order = jnp.zeros(total, jnp.int32).at[places].set(drawn.astype(jnp.int32))
        shape = (self.nodes, total // self.nodes)
        return self.images[order].reshape(*shape, -1), self.labels[order].reshape(shape)

    def theta0(self, key: Array) -> dict[str, Array]:
        """One node's parameters at the start."""
        if self.model == "linear":
            return {"weights": jnp.zeros((self.side**2, 10)), "bias": jnp.zeros(10)}
        first, second = jax.random.split(key)
        inner = ((self.side - 2) // 2) ** 2 * self.channels
        return {
            "kernel": jax.random.normal(first, (9, self.channels)) / 3.0,
            "shift": jnp.zeros(self.channels),
            "weights": jax.random.normal(second, (inner, 10)) / np.sqrt(inner),
            "bias": jnp.zeros(10),
        }

    def logits(self, params: dict[str, Array], images: Array) -> Array:
        """``[batch, 10]`` for images ``[batch, pixels]``."""
        if self.model == "linear":
            return images @ params["weights"] + params["bias"]
        # A convolution as a product with all 3 × 3 patches: with another kernel on every node that is far quicker.
        square, size = images.reshape(-1, self.side, self.side), self.side - 2
        patches = jnp.stack([square[:, i : i + size, j : j + size] for i in range(3) for j in range(3)], axis=-1)
        hidden = jax.nn.relu(patches @ params["kernel"] + params["shift"])
        half = size // 2
        pooled = hidden[:, : 2 * half, : 2 * half].reshape(-1, half, 2, half, 2, self.channels).max((2, 4))
        return pooled.reshape(len(images), -1) @ params["weights"] + params["bias"]

    def loss(self, params: dict[str, Array], images: Array, labels: Array) -> Array:
        """Mean cross-entropy, and the penalty."""
        log_p = jax.nn.log_softmax(self.logits(params, images))
        entropy = -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))
        return entropy + self.penalty / 2 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params))

    def gradient(self, key: Array, params: dict[str, Array], data: tuple[Array, Array]) -> Any:
        """Of the loss on one batch of a node's own images."""
        images, labels = data
        drawn = jax.random.randint(key, (self.batch,), 0, len(labels))
        return jax.grad(self.loss)(params, images[drawn], labels[drawn])

    def whole_loss(self, params: dict[str, Array]) -> Array:
        """On everybody's images."""
        return self.loss(params, self.images, self.labels)


class JudgedImages(eqx.Module):
    """The same with images that no node has, to be judged by.

    training: what the nodes have.
    test_images, test_labels: to judge by.
    """

    training: ImagesOverNodes
    test_images: Array
    test_labels: Array

    @property
    def nodes(self) -> int:
        """n."""
        return self.training.nodes

    def accuracy(self, params: dict[str, Array]) -> Array:
        """The share of test images that are classified correctly; NaN where a logit is not finite."""
        logits = self.training.logits(params, self.test_images)
        right = jnp.mean((jnp.argmax(logits, axis=1) == self.test_labels).astype(logits.dtype))
        return jnp.where(jnp.isfinite(logits).all(), right, jnp.nan)


def judged_images(nodes: int = 8, per_node: int = 150, test: int = 500, images: str = "digits") -> JudgedImages:
    """Softmax regression on a part of the images, cut into one part a node, and ``test`` others.

    >>> judged_images(nodes=4, per_node=50, test=30).test_images.shape
    (30, 64)
    """
    training = ImagesOverNodes(nodes, per_node, images)
    pictures, labels = _read(images)
    rule = f"at most {len(labels) - nodes * per_node}, the images that are left"
    require("judged_images", "test", rule, test, lambda t: nodes * per_node + t <= len(labels))
    # The same order as in ImagesOverNodes: these are the ones that it did not choose.
    others = np.random.default_rng(0).permutation(len(labels))[nodes * per_node :][:test]
    flat = pictures[others].reshape(test, -1)
    return JudgedImages(training, jnp.asarray(flat, jnp.float32), jnp.asarray(labels[others], jnp.int32))


def _read(name: str) -> tuple[np.ndarray, np.ndarray]:
    found = small_images(name, train=20_000)
    images = found.train_images
    if images.shape[1] == 28:
        images = images.reshape(-1, 14, 2, 14, 2).mean((2, 4))
    return images, found.train_labels
