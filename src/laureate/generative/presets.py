"""A model of every kind for given data, with perceptrons of one width: to start from, and to compare fairly."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from laureate._core import require
from laureate.generative.adversarial import ConditionalGAN
from laureate.generative.baselines import CVAE, BestOfK, MixtureDensity, Regression
from laureate.generative.conditional import AbstractConditional
from laureate.generative.diffusion import ConditionalDiffusion
from laureate.generative.latent_flow import LatentFlowRegressor
from laureate.generative.latents import AbstractLatent, Sphere
from laureate.generative.networks import perceptrons

__all__ = ["KINDS", "make_model"]

KINDS = ("latent-flow", "regression", "cvae", "cgan", "mixture-density", "best-of-k", "diffusion")


def make_model(
    key: Array,
    kind: str,
    x: Any,
    y: Any,
    *,
    width: int = 64,
    num_codes: int = 8,
    num_latents: int = 2,
    num_components: int = 4,
    latent: AbstractLatent | None = None,
    **settings: Any,
) -> AbstractConditional:
    """A model of a kind for pairs x [n, ...], y [n, ...], of which only the shapes are read.

    kind: one of ``KINDS``.
    width: units of both hidden layers of every network; the encoder and the length ρ have one.
    num_codes: numbers in the encoder's h. num_latents: in z. num_components: answers of best-of-k, laws of a mixture.
    latent: where cGML's z lives; the sphere of ``num_latents`` dimensions unless given.
    settings: of the model's class, such as ``learning_rate``.

    >>> import jax
    >>> x, y = jnp.zeros((10, 3)), jnp.zeros((10, 4, 4))
    >>> model = make_model(jax.random.key(0), "best-of-k", x, y, width=16)
    >>> model.draw(jax.random.key(1), model.init(), x[0]).shape
    (4, 4)
    """
    require("make_model", "kind", f"one of {', '.join(KINDS)}", kind, lambda k: k in KINDS)
    for name, value in (("width", width), ("num_codes", num_codes), ("num_components", num_components)):
        require("make_model", name, ">= 1", value, lambda n: n >= 1)
    shape = jnp.shape(y)[1:]
    inputs, outputs = math.prod(jnp.shape(x)[1:]), math.prod(shape)
    hidden = (width, width)
    if kind == "latent-flow":
        latent = Sphere(num_latents) if latent is None else latent
        searched = num_codes + latent.dim
        sizes = (
            (inputs, width, num_codes),
            (searched, *hidden, outputs),
            (searched, *hidden, latent.dim),
            (searched, width, 1),
        )
        networks = perceptrons(key, *sizes, shapes=(None, shape, None, None))
        return LatentFlowRegressor(*networks, latent=latent, **settings)
    if kind == "regression":
        (network,) = perceptrons(key, (inputs, *hidden, outputs), shapes=(shape,))
        return Regression(network, **settings)
    if kind == "cvae":
        sizes = ((inputs + outputs, *hidden, 2 * num_latents), (inputs + num_latents, *hidden, outputs))
        return CVAE(*perceptrons(key, *sizes, shapes=(None, shape)), num_latents=num_latents, **settings)
    if kind == "cgan":
        sizes = ((inputs + num_latents, *hidden, outputs), (inputs + outputs, *hidden, 1))
        return ConditionalGAN(*perceptrons(key, *sizes, shapes=(shape, None)), num_latents=num_latents, **settings)
    if kind == "mixture-density":
        (network,) = perceptrons(key, (inputs, *hidden, num_components * (1 + 2 * outputs)))
        return MixtureDensity(network, num_components, shape, **settings)
    if kind == "best-of-k":
        (network,) = perceptrons(key, (inputs, *hidden, num_components * (1 + outputs)))
        return BestOfK(network, num_components, shape, **settings)
    (network,) = perceptrons(key, (inputs + outputs + 3, *hidden, outputs), shapes=(shape,))
    return ConditionalDiffusion(network, shape, **settings)
