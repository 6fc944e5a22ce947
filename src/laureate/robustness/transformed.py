"""Attacks whose gradient is taken elsewhere or made smooth: VR, TI, DI; and SGM, another way through a network."""

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.robustness.attack import PGD, AbstractAttack, require_attack

__all__ = ["DI", "SGM", "TI", "VR", "decay_gradient"]


class VR(AbstractAttack):
    """Variance-reduced gradient: the mean over noisy copies of the images.

        g = 1/m Σ_i ∇_δ L(f(x + δ + ξ_i), y),      ξ_i ~ N(0, σ²)

    Wu et al.: "Understanding and enhancing the transferability of adversarial attacks", 2018.

    attack: whose gradient is averaged.
    num_copies: m, >= 1.
    sigma: σ, in the unit of the images' values, >= 0.

    >>> from laureate.robustness import Linf
    >>> VR(PGD(lambda x: x, Linf(0.1)), num_copies=20).num_passes
    20
    """

    attack: AbstractAttack
    num_copies: int = eqx.field(default=20, static=True)
    sigma: float | Array = 15 / 255

    def __check_init__(self):
        require_attack("VR", self.attack)
        require("VR", "num_copies", "an integer >= 1", self.num_copies, lambda m: isinstance(m, int) and m >= 1)
        require("VR", "sigma", ">= 0", self.sigma, lambda s: s >= 0)

    @property
    def walk(self) -> PGD:
        """That of the attack."""
        return self.attack.walk

    @property
    def num_passes(self) -> int:
        """As many as copies, each with what the attack needs."""
        return self.num_copies * self.attack.num_passes

    def gradient(self, key, logits, images, delta, labels):
        """The mean of the attack's gradients, all copies at once."""
        key, noise_key = jax.random.split(key)
        noise = self.sigma * jax.random.normal(noise_key, (self.num_copies, *images.shape[1:]), images.dtype)

        def of_copy(key, xi):
            return self.attack.gradient(key, lambda seen: logits(seen + xi), images, delta, labels)

        found = jax.vmap(of_copy)(jax.random.split(key, self.num_copies), noise)
        return jax.tree.map(lambda values: jnp.mean(values, axis=0), found)


class TI(AbstractAttack):
    """Translation-invariant gradient: smoothed by a Gaussian kernel, as if the image had been moved about.

        g ← W * g,      W_uv ∝ exp(-(u² + v²) / 2s²),  zeros beyond the border

    Dong et al.: "Evading defenses to transferable adversarial examples by translation-invariant attacks", CVPR 2019.

    attack: whose gradient is smoothed; images must be ``[b, height, width, ...]``.
    side: of the kernel in pixels, odd; the authors' 15 is for 299 pixels.
    spread: where the kernel is cut off, in standard deviations: s = (side - 1) / (2 spread), > 0.

    >>> from laureate.robustness import Linf
    >>> [round(float(weight), 3) for weight in TI(PGD(lambda x: x, Linf(0.1)), side=3).kernel]
    [0.011, 0.978, 0.011]
    """

    attack: AbstractAttack
    side: int = eqx.field(default=5, static=True)
    spread: float | Array = 3.0

    def __check_init__(self):
        require_attack("TI", self.attack)
        require("TI", "side", "odd and >= 1", self.side, lambda s: isinstance(s, int) and s >= 1 and s % 2 == 1)
        require("TI", "spread", "> 0", self.spread, lambda s: s > 0)

    @property
    def kernel(self) -> Float[Array, "side"]:
        """One factor of W, which is a product over the two axes; its sum is 1."""
        half = self.side // 2
        density = jnp.exp(-((self.spread * jnp.arange(-half, half + 1) / max(half, 1)) ** 2) / 2)
        return density / jnp.sum(density)

    @property
    def walk(self) -> PGD:
        """That of the attack."""
        return self.attack.walk

    @property
    def num_passes(self) -> int:
        """Those of the attack."""
        return self.attack.num_passes

    def gradient(self, key, logits, images, delta, labels):
        """The attack's gradient, smoothed along both axes."""
        require("TI", "images", "[b, height, width, ...]", list(images.shape), lambda shape: len(shape) >= 3)
        objective, gradient = self.attack.gradient(key, logits, images, delta, labels)
        rows, columns = (self._matrix(n).astype(gradient.dtype) for n in gradient.shape[1:3])
        return objective, jnp.einsum("ij,bjk...,lk->bil...", rows, gradient, columns)

    def _matrix(self, length: int) -> Array:
        """The kernel along an axis: entry (i, j) is the weight of pixel j in pixel i."""
        place = np.arange(length)[None] - np.arange(length)[:, None] + self.side // 2
        inside = (place >= 0) & (place < self.side)
        return jnp.where(inside, self.kernel[np.clip(place, 0, self.side - 1)], 0.0)


class DI(AbstractAttack):
    """Diverse inputs: the gradient is taken through an image that was shrunk at random and put at a random place.

        g = ∇_δ L(f(T(x + δ)), y),      T shrinks with probability p, and fills with zeros

    Xie et al.: "Improving transferability of adversarial examples with input diversity", CVPR 2019.

    attack: whose gradient it is; images must be ``[b, height, width, channels]``.
    probability: p of shrinking, in [0, 1].
    smallest: of the side that remains, as a share, in (0, 1].

    >>> from laureate.robustness import Linf
    >>> DI(PGD(lambda x: x, Linf(0.1)), probability=0.5).num_passes
    1
    """

    attack: AbstractAttack
    probability: float | Array = 0.5
    smallest: float | Array = 0.9

    def __check_init__(self):
        require_attack("DI", self.attack)
        require("DI", "probability", "in [0, 1]", self.probability, lambda p: 0 <= p <= 1)
        require("DI", "smallest", "in (0, 1]", self.smallest, lambda s: 0 < s <= 1)

    @property
    def walk(self) -> PGD:
        """That of the attack."""
        return self.attack.walk

    @property
    def num_passes(self) -> int:
        """Those of the attack."""
        return self.attack.num_passes

    def gradient(self, key, logits, images, delta, labels):
        """The attack's, of a network that sees the shrunk image."""
        key, view_key = jax.random.split(key)
        view = self.view(view_key, images)
        return self.attack.gradient(key, lambda seen: logits(view(seen)), images, delta, labels)

    def view(self, key: Key[Array, ""], images: Float[Array, "b h w c"]) -> Callable[[Array], Array]:
        """A random T for images of this shape, the same for all of a batch."""
        require("DI", "images", "[b, height, width, channels]", list(images.shape), lambda shape: len(shape) == 4)
        chance, size, top, left = jax.random.uniform(key, (4,), images.dtype)
        share = jnp.where(chance < self.probability, self.smallest + size * (1 - self.smallest), 1.0)
        scale = jnp.stack([share, share]).astype(images.dtype)
        offset = (1 - scale) * jnp.asarray(images.shape[1:3], images.dtype) * jnp.stack([top, left])
        place = lambda image: jax.image.scale_and_translate(image, image.shape, (0, 1), scale, offset, "linear")  # noqa: E731
        return jax.vmap(place)


class SGM(eqx.Module):
    """Skip gradient: a residual network whose gradient prefers the skip connections; hand it to any attack.

        z_{i+1} = z_i + f_i(z_i),      backwards  ∂z_{i+1}/∂z_i = 1 + γ ∂f_i/∂z_i

    The logits are the same to the last bit; only what flows back through the branches is multiplied by γ.

    Wu et al.: "Skip connections matter: on the transferability of adversarial examples generated with ResNets", ICLR
    2020.

    network: ``network(images, branch) -> logits``, which applies the function ``branch`` to what each residual branch
        f_i gives. Networks without branches have no such gradient.
    gamma: γ, in [0, 1]; 1 is the ordinary gradient.

    >>> network = lambda x, branch: x + branch(3 * x)
    >>> jax.grad(lambda x: SGM(network, gamma=0.5)(x).sum())(jnp.ones(2)).tolist()
    [2.5, 2.5]
    """

    network: Any
    gamma: float | Array = 0.2

    def __check_init__(self):
        require("SGM", "gamma", "in [0, 1]", self.gamma, lambda g: 0 <= g <= 1)
        remedy = "Give a function of images and branch, and apply branch(...) to each residual branch in it."
        require("SGM", "network", "a function of two arguments", self.network, _takes_two, remedy)

    def __call__(self, images: Float[Array, "b ..."]) -> Float[Array, "b c"]:
        """The network's logits."""
        return self.network(images, lambda values: decay_gradient(values, self.gamma))


def decay_gradient(values: Float[Array, "..."], gamma: float | Array) -> Float[Array, "..."]:
    """The same values; the gradient that flows back is multiplied by γ.

    >>> jax.value_and_grad(lambda x: decay_gradient(x**2, 0.25))(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(1.5, dtype=float32, weak_type=True))
    """
    fixed = jax.lax.stop_gradient(values)
    return fixed + gamma * (values - fixed)


def _takes_two(network: Any) -> bool:
    try:
        inspect.signature(network).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
