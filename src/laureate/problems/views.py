"""What self-supervision is tried on: pairs of views, of Gaussian vectors with a known answer and of small real images.

A problem offers ``dim`` (length of a network's output), ``model0(key)``, ``views(key, n)``, ``apply(model, batch)`` and
``outputs(model, key, n)``, fresh outputs to judge a representation by.
"""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from laureate._core import require
from laureate.problems.datasets import DatasetError, digits, fashion_mnist

__all__ = ["ImageNetwork", "ImagePairs", "SharedDirections"]


class SharedDirections(eqx.Module):
    """Gaussian vectors of which a view keeps ``shared`` entries and jostles the others; the network is linear.

    A representation is right if it keeps all shared directions and nothing else: both can be read off its weights.

    inputs: entries of a vector. shared: how many a view leaves alone (up to ``floor``). dim: D.
    strength: standard deviation of what a view adds to the others. floor: of what it adds to the shared ones.

    >>> problem = SharedDirections(inputs=5, shared=2, dim=3)
    >>> first, second = problem.views(jax.random.key(0), 4)
    >>> bool((first[:, :2] == second[:, :2]).all()), bool((first[:, 2:] == second[:, 2:]).any())
    (True, False)
    """

    inputs: int = eqx.field(static=True, default=40)
    shared: int = eqx.field(static=True, default=8)
    dim: int = eqx.field(static=True, default=16)
    strength: float = eqx.field(static=True, default=1.5)
    floor: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        rule = f"in 1..inputs ({self.inputs})"
        require("SharedDirections", "shared", rule, self.shared, lambda s: 1 <= s <= self.inputs)

    def model0(self, key: Array) -> Float[Array, "d n"]:
        """W, Gaussian with variance 1/inputs."""
        return jax.random.normal(key, (self.dim, self.inputs)) * self.inputs**-0.5

    def apply(self, model: Float[Array, "d n"], batch: Float[Array, "b n"]) -> Float[Array, "b d"]:
        """W x, row by row."""
        return batch @ model.T

    def views(self, key: Array, number: int) -> tuple[Array, Array]:
        """Two views of ``number`` fresh vectors."""
        drawn = jax.random.normal(key, (3, number, self.inputs))
        scale = jnp.where(jnp.arange(self.inputs) < self.shared, self.floor, self.strength)
        return drawn[0] + scale[None, :] * drawn[1], drawn[0] + scale[None, :] * drawn[2]

    def outputs(self, model: Float[Array, "d n"], key: Array, number: int) -> Float[Array, "b d"]:
        """The network's outputs of fresh views."""
        return self.apply(model, self.views(key, number)[0])

    def energy(self, model: Float[Array, "d n"]) -> Float[Array, ""]:
        """Which share of ‖W‖² acts on the shared directions."""
        return jnp.sum(model[:, : self.shared] ** 2) / jnp.maximum(jnp.sum(model**2), 1e-30)

    def spectrum(self, model: Float[Array, "d n"]) -> Float[Array, " s"]:
        """Eigenvalues of WᵀW within the shared directions."""
        part = model[:, : self.shared]
        return jnp.maximum(jnp.linalg.eigvalsh(part.T @ part), 0.0)


class ImageNetwork(eqx.Module):
    """Two hidden layers of ReLU, and a projector: batch-normalised, ReLU, linear. Normalised over the batch at hand.

    The representation proper is ``features``; the projector is thrown away after training.
    """

    layers: tuple[Array, ...]

    def features(self, images: Float[Array, "b p"]) -> Float[Array, "b h"]:
        """The second hidden layer."""
        return jax.nn.relu(jax.nn.relu(images @ self.layers[0]) @ self.layers[1])

    def __call__(self, images: Float[Array, "b p"]) -> Float[Array, "b d"]:
        """The projector's output."""
        hidden = self.features(images) @ self.layers[2]
        centred = hidden - hidden.mean(axis=0, keepdims=True)
        hidden = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=0, keepdims=True) + 1e-5)
        return jax.nn.relu(hidden) @ self.layers[3]


class ImagePairs(eqx.Module):
    """Views of real images, moved, mirrored, brightened and made noisy, for a network of two hidden layers.

    data: "fashion-mnist", "digits", or "auto": the first where Debian's dataset-fashion-mnist is installed.
    pool: images are averaged over pool × pool pixels. hidden, dim: units of the layers, and of the output.

    >>> problem = ImagePairs("digits", pool=1, hidden=8, dim=4)
    >>> first, second = problem.views(jax.random.key(0), 6)
    >>> first.shape, problem.outputs(problem.model0(jax.random.key(1)), jax.random.key(2), 6).shape
    ((6, 64), (6, 4))
    """

    images: Float[Array, "n side side"]
    labels: Int[Array, " n"]
    hidden: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __init__(self, data: str = "auto", pool: int = 2, hidden: int = 128, dim: int = 32):
        known = "'auto', 'digits' or 'fashion-mnist'"
        require("ImagePairs", "data", known, data, lambda d: d in ("auto", "digits", "fashion-mnist"))
        images, labels = _images(data)
        side = images.shape[1]
        require("ImagePairs", "pool", f"a divisor of {side}", pool, lambda p: p >= 1 and side % p == 0)
        images = images.reshape(-1, side // pool, pool, side // pool, pool).mean((2, 4))
        self.images = jnp.asarray((images - images.mean()) / images.std(), jnp.float32)
        self.labels = jnp.asarray(labels)
        self.hidden = hidden
        self.dim = dim

    def model0(self, key: Array) -> ImageNetwork:
        """He's initialisation: normal with variance 2/inputs."""
        pixels = self.images.shape[1] * self.images.shape[2]
        sizes = [pixels, self.hidden, self.hidden, self.hidden, self.dim]
        shapes = list(pairwise(sizes))
        # one draw, dealt out: each call of the generator costs a tenth of a second to compile
        drawn = jax.random.normal(key, (sum(m * n for m, n in shapes),))
        parts = jnp.split(drawn, np.cumsum([m * n for m, n in shapes])[:-1])
        return ImageNetwork(tuple(x.reshape(m, n) * np.sqrt(2 / m) for x, (m, n) in zip(parts, shapes, strict=True)))

    def apply(self, model: ImageNetwork, batch: Float[Array, "b p"]) -> Float[Array, "b d"]:
        """The projector's output of a batch."""
        return model(batch)

    def views(self, key: Array, number: int) -> tuple[Array, Array]:
        """Two views of ``number`` random images, flattened."""
        side = self.images.shape[1]
        drawn = jax.random.uniform(key, (number, 11))  # one for the choice, five for each view
        noise = jax.random.normal(jax.random.fold_in(key, 1), (2, number, side, side))
        chosen = self.images[(drawn[:, 0] * self.images.shape[0]).astype(jnp.int32)]
        return self._view(drawn[:, 1:6], noise[0], chosen), self._view(drawn[:, 6:], noise[1], chosen)

    def _view(
        self, drawn: Float[Array, "b 5"], noise: Float[Array, "b s s"], images: Float[Array, "b s s"]
    ) -> Float[Array, "b p"]:
        """Moved by up to an eighth of the side, mirrored or not, contrast and brightness ± 40 %, noise of 0.1."""
        number, side, _ = images.shape
        margin = max(1, side // 8)
        padded = jnp.pad(images, ((0, 0), (margin, margin), (margin, margin)), mode="edge")
        corner = (drawn[:, :2] * (2 * margin + 1)).astype(jnp.int32)
        moved = jax.vmap(lambda image, at: jax.lax.dynamic_slice(image, (at[0], at[1]), (side, side)))(padded, corner)
        mirrored = jnp.where((drawn[:, 2] < 0.5)[:, None, None], moved[:, :, ::-1], moved)
        factor, shift = (0.8 * drawn[:, i, None, None] - 0.4 for i in (3, 4))
        seen = (1 + factor) * mirrored + shift + 0.1 * noise
        return seen.reshape(number, side * side)

    def outputs(self, model: ImageNetwork, key: Array, number: int) -> Float[Array, "b d"]:
        """The projector's outputs of fresh views."""
        return model(self.views(key, number)[0])


def _images(data: str) -> tuple[np.ndarray, np.ndarray]:
    if data == "digits":
        return digits()
    try:
        found = fashion_mnist()
    except DatasetError:
        if data == "fashion-mnist":
            raise
        return digits()
    return found.train_images.astype(np.float32) / 255, found.train_labels
