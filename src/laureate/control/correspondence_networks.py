"""Networks for correspondences: perceptrons for vectors, patches for pixels."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require
from laureate.control.bonuses import Transitions
from laureate.control.critics import PooledCritic
from laureate.control.cycle_gan import CycleGAN
from laureate.control.dynamics_cycle import DynamicsCycle
from laureate.control.policies import Layers, make_perceptrons
from laureate.control.rnd import Flat
from laureate.control.two_domains import Units

__all__ = ["PatchEncoder", "make_cycle_gan", "make_dynamics_cycle", "make_patch_encoder"]


class PatchEncoder(eqx.Module):
    """A small encoder of pixels: one layer for every patch (a convolution whose stride is its size), then a network.

    patches: from a flattened patch to features. network: from all features to the code. size: of a patch, static.
    """

    patches: Callable[[Array], Array]
    network: Callable[[Array], Array]
    size: int = eqx.field(static=True)

    def __call__(self, image: Float[Array, "h w c"]) -> Array:
        """The code of one image."""
        height, width, channels = image.shape
        s = self.size
        cut = image.reshape(height // s, s, width // s, s, channels).transpose(0, 2, 1, 3, 4)
        return self.network(jnp.ravel(jax.vmap(self.patches)(cut.reshape(-1, s * s * channels))))


def make_patch_encoder(
    key: Array, shape: tuple[int, int, int], num_outputs: int, *, size: int = 4, channels: int = 8, width: int = 64
) -> PatchEncoder:
    """An encoder of images [height, width, channels]; the sides have to be multiples of ``size``.

    key: of the weights. shape: of an image. num_outputs: numbers of the code. size: pixels along an edge of a patch.
    channels: of a patch's features. width: of the two hidden layers behind them.
    """
    height, breadth, depth = shape
    rule = f"multiples of size = {size}"
    require("make_patch_encoder", "shape", rule, shape, lambda s: s[0] % size == 0 and s[1] % size == 0)
    patches, network = make_perceptrons(
        key,
        Layers((size * size * depth, channels), last=True),
        Layers((height * breadth // size**2 * channels, width, width, num_outputs)),
    )
    return PatchEncoder(patches, network, size)


class Ahead(eqx.Module):
    """F(y, u) = y + network(y, u)."""

    network: Callable[[Array], Array]

    def __call__(self, y: Array, u: Array) -> Array:
        """The next state."""
        return y + self.network(jnp.concatenate([y, u]))


class Towards(eqx.Module):
    """An action map: prior(action) + network(state, action)."""

    network: Callable[[Array], Array]
    prior: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, state: Array, action: Array) -> Array:
        """The action in the other domain; not clipped."""
        return self.prior(action) + self.network(jnp.concatenate([jnp.ravel(state), action]))


def same(action: Array) -> Array:
    """The action as it is."""
    return action


def make_dynamics_cycle(
    key: Array,
    x: Transitions,
    y: Transitions,
    *,
    width: int = 64,
    depth: int = 2,
    acts: bool = False,
    prior: Callable[[Array], Array] = same,
    back_prior: Callable[[Array], Array] = same,
    num_kept: int = 128,
    loss: Any = "lsgan",
    encoder: Callable[[Array], Array] | None = None,
    **settings: Any,
) -> DynamicsCycle:
    """Networks that suit two domains of vectors, and units from their steps: perceptrons with orthogonal weights.

    x, y: steps of both. width, depth: of hidden layers. acts: whether actions differ, so that H and P are learned; they
    begin at ``prior`` and ``back_prior`` (the same action where not given). num_kept, loss: see ``PooledCritic``.
    encoder: G, where it is not a perceptron of the flattened observation. settings: of ``DynamicsCycle``.
    """
    for name, value in (("width", width), ("depth", depth)):
        require("make_dynamics_cycle", name, ">= 1", value, lambda n: n >= 1)
    num_x, num_y = x.observation[0].size, y.observation.shape[-1]
    num_a, num_u, hidden = x.action.shape[-1], y.action.shape[-1], (width,) * depth
    plans = [Layers((num_x, *hidden, num_y)), Layers((num_y + num_u, *hidden, num_y)), Layers((num_y, *hidden, 1))]
    if acts:
        plans += [Layers((num_u, *hidden, 1)), Layers((num_a, *hidden, 1))]
        plans += [Layers((num_x + num_a, *hidden), last=True), Layers((num_y + num_u, *hidden), last=True)]
        plans += [Layers((width, num_u), 0.01), Layers((width, num_a), 0.01)]  # the maps begin near their priors
    made = make_perceptrons(key, *plans)
    judge = lambda network: PooledCritic(network, num_kept=num_kept, loss=loss)  # noqa: E731
    more: dict[str, Any] = {"x_units": Units.of(x.observation), "y_units": Units.of(y.observation)}
    if acts:
        h, p = (eqx.nn.Sequential([eqx.nn.Lambda(made[at]), eqx.nn.Lambda(made[at + 2])]) for at in (5, 6))
        more |= {"action_map": Towards(h, prior), "action_back": Towards(p, back_prior)}
        more |= {"action_critic": judge(made[3]), "back_critic": judge(made[4])}
    g = Flat(made[0]) if encoder is None else encoder
    return DynamicsCycle(g, Ahead(made[1]), judge(made[2]), **more | settings)


def make_cycle_gan(
    key: Array, x: Transitions, y: Transitions, *, width: int = 64, depth: int = 2, num_kept: int = 128, **settings: Any
) -> CycleGAN:
    """Both maps and both critics as perceptrons, of the sizes of ``make_dynamics_cycle``.

    key: of the weights. x, y: steps of both domains. width, depth: of hidden layers. num_kept: see ``PooledCritic``.
    settings: of ``CycleGAN``.
    """
    num_x, num_y, hidden = x.observation[0].size, y.observation.shape[-1], (width,) * depth
    plans = ((num_x, *hidden, num_y), (num_y, *hidden, num_x), (num_y, *hidden, 1), (num_x, *hidden, 1))
    g, k, d_y, d_x = make_perceptrons(key, *map(Layers, plans))
    critics = PooledCritic(d_y, num_kept=num_kept), PooledCritic(d_x, num_kept=num_kept)
    units: dict[str, Any] = {"x_units": Units.of(x.observation), "y_units": Units.of(y.observation)}
    return CycleGAN(g, k, *critics, **units | settings)
