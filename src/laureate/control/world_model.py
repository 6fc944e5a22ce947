"""World models: what an agent may imagine in, learned from sequences of observations, actions and rewards."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from laureate._core import Status, require
from laureate.control.laws import DiagonalNormal, OneHot, kl_balance
from laureate.control.pixels import PixelEncoder, check_images, make_pixels, scaled
from laureate.control.policies import Layers, make_perceptrons
from laureate.control.rssm import RSSM, RSSMState, make_rssm

__all__ = ["Sequences", "WorldModel", "WorldModelInfo", "check_sequences", "make_world_model", "world_model_loss"]


class Sequences(NamedTuple):
    """Steps as a world model wants them, time first; all but the first two are [T, batch].

    observation: [T, batch, ...]. action: that led to it, floats, one-hot where discrete; not read where ``first``.
    reward: for reaching it. terminal: nothing follows by the rules (a time limit is no end). first: of an episode.
    """

    observation: Float[Array, "T batch ..."]
    action: Float[Array, "T batch actions"]
    reward: Float[Array, "T batch"]
    terminal: Bool[Array, "T batch"]
    first: Bool[Array, "T batch"]


def check_sequences(batch: Sequences) -> None:
    """Refuse rewards that are not finite, and sequences whose first step is not marked ``first``.

    Within jit no value is known and nothing is refused: call it on data of your own before. ``world_model_loss`` does.
    """
    reward, first = batch.reward, batch.first
    if not isinstance(reward, Tracer):
        wrong = np.argwhere(~np.isfinite(np.asarray(reward)))
        at = "" if not len(wrong) else f"The first that is not: step {wrong[0][0]} of sequence {wrong[0][1]}."
        require("Sequences", "reward", "finite", len(wrong), lambda n: n == 0, at)
    if not isinstance(first, Tracer):
        begins, remedy = np.asarray(first)[0], "Replay.sample does so. What was before is not known to the model."
        require("Sequences", "first", "true in the first step of every sequence", begins, np.all, remedy)


class WorldModelInfo(NamedTuple):
    """What the loss is made of, means a step.

    observation, reward, discount: negative log-likelihoods, the first two without their constants. kl: KL(q‖p).
    prior_entropy, posterior_entropy: of the latents. cost: steps. status: DIVERGED where the loss is not finite.
    """

    observation: Array
    reward: Array
    discount: Array
    kl: Array
    prior_entropy: Array
    posterior_entropy: Array
    cost: Array
    status: Array


class WorldModel(eqx.Module):
    """The networks of a world model; replace any of them by your own.

    encoder: from one observation to a vector. rssm: ``RSSM``. decoder: from features [z, h] to the mean of the
    observation. reward: to the mean of the reward, [1]. discount: to the logit of the probability that times γ an
    episode goes on, [1]; None: it always does.
    """

    encoder: Callable[[Array], Array]
    rssm: RSSM
    decoder: Callable[[Array], Array]
    reward: Callable[[Array], Array]
    discount: Callable[[Array], Array] | None

    def embed(self, observation: Float[Array, "batch ..."]) -> Float[Array, "batch embedded"]:
        """Encoded observations."""
        if isinstance(self.encoder, PixelEncoder):
            check_images(observation)  # before vmap, which hides what it holds
        return jax.vmap(self.encoder)(observation)

    def observe(self, key: Array, batch: Sequences) -> tuple[RSSMState, RSSMState]:
        """Posteriors and priors, [T, batch, ...]."""
        if isinstance(self.encoder, PixelEncoder):
            check_images(batch.observation)
        return self.rssm.observe(key, batch.action, jax.vmap(self.embed)(batch.observation), batch.first)

    def rewards(self, features: Float[Array, "... features"]) -> Float[Array, "..."]:
        """The mean reward of each row."""
        return over_rows(self.reward, features)[..., 0]

    def discounts(self, features: Float[Array, "... features"], gamma: float | Array) -> Float[Array, "..."]:
        """γ times the probability that an episode goes on, of each row."""
        if self.discount is None:
            return jnp.full(features.shape[:-1], gamma)
        return jax.nn.sigmoid(over_rows(self.discount, features)[..., 0])


def world_model_loss(
    key: Array,
    world: WorldModel,
    batch: Sequences,
    *,
    gamma: float | Array = 0.995,
    beta: float | Array = 0.1,
    alpha: float | Array = 0.8,
    free: float | Array = 0.0,
    discount_weight: float | Array = 5.0,
) -> tuple[Array, tuple[WorldModelInfo, RSSMState]]:
    """The loss of a world model, beside what it is made of and the posterior states [T, batch, ...].

    ::

        L = mean_t  ½‖x − x̂‖² + ½(r − r̂)² − w log Bernoulli(γ (1 − terminal); d̂)  +  β KL_balanced(q‖p)

    (Hafner et al. 2021, equation 2; the sum over pixels, the mean over steps.) The label of the discount is soft.

    batch: sequences. gamma: γ, in [0, 1). beta: β >= 0. alpha, free: of ``kl_balance``. discount_weight: w >= 0.
    """
    require("world_model_loss", "gamma", "in [0, 1)", gamma, lambda g: 0 <= g < 1)
    require("world_model_loss", "beta", ">= 0", beta, lambda b: b >= 0)
    require("world_model_loss", "discount_weight", ">= 0", discount_weight, lambda w: w >= 0)
    check_sequences(batch)
    posterior, prior = world.observe(key, batch)
    features = posterior.features
    images = batch.observation.ndim == 5 and jnp.issubdtype(batch.observation.dtype, jnp.integer)  # [T, batch, h, w, c]
    seen = scaled(batch.observation) if images else batch.observation.astype(features.dtype)
    wrong = (over_rows(world.decoder, features) - seen) ** 2
    observation = 0.5 * jnp.mean(jnp.sum(wrong, axis=tuple(range(2, wrong.ndim))))
    reward = 0.5 * jnp.mean((world.rewards(features) - batch.reward) ** 2)
    balanced, kl = kl_balance(world.rssm.law, posterior.stats, prior.stats, alpha, free)
    discount = jnp.asarray(0.0)
    if world.discount is not None:
        logit, goes_on = over_rows(world.discount, features)[..., 0], gamma * (1.0 - batch.terminal)
        discount = jnp.mean(jax.nn.softplus(logit) - goes_on * logit)  # −log Bernoulli
    loss = observation + reward + discount_weight * discount + beta * balanced
    entropies = (jnp.mean(world.rssm.law.entropy(state.stats)) for state in (prior, posterior))
    status = jnp.where(jnp.isfinite(loss), int(Status.OK), int(Status.DIVERGED))
    info = WorldModelInfo(
        observation, reward, discount, jnp.mean(kl), *entropies, cost=jnp.asarray(batch.reward.size), status=status
    )
    return loss, (info, posterior)


def make_world_model(
    key: Array,
    observation_shape: tuple[int, ...],
    num_actions: int,
    *,
    law: OneHot | DiagonalNormal | None = None,
    memory: int = 64,
    width: int = 64,
    depth: int = 48,
    discount: bool = True,
) -> WorldModel:
    """A world model of perceptrons, or of convolutions for images of 64 × 64.

    observation_shape: of one; three axes mean an image. num_actions: numbers of an action. law: of the latents;
    without it 32 choices among 32. memory, width: of ``make_rssm``, and of hidden layers. depth: channels of an
    image's first convolution. discount: whether the ends of episodes are predicted.

    >>> world = make_world_model(jax.random.key(0), (3,), 2, law=OneHot(2, 4), memory=8, width=8)
    >>> steps = jnp.zeros((4, 1))
    >>> batch = Sequences(jnp.ones((4, 1, 3)), jnp.zeros((4, 1, 2)), steps, steps > 0, steps == 0)
    >>> loss, (info, states) = world_model_loss(jax.random.key(1), world, batch)
    >>> int(info.cost), states.features.shape
    (4, (4, 1, 16))
    """
    law = OneHot(32, 32) if law is None else law
    network_key, rssm_key, pixel_key = jax.random.split(key, 3)
    features, numbers, elu = law.width + memory, math.prod(observation_shape), jax.nn.elu
    head = Layers((features, width, 1), 1.0, False, elu)
    plans = [head, head]
    pixels = len(observation_shape) == 3
    if not pixels:
        plans += [Layers((numbers, width, width), 1.0, True, elu), Layers((features, width, numbers), 1.0, False, elu)]
    reward, ends, *others = make_perceptrons(network_key, *plans)
    if pixels:
        encoder, decoder = make_pixels(pixel_key, observation_shape, features, depth=depth)  # pyright: ignore[reportArgumentType]
        embedded = 32 * depth
    else:
        encoder, decoder = Flattened(others[0]), Shaped(others[1], observation_shape)
        embedded = width
    rssm = make_rssm(rssm_key, embedded, num_actions, law=law, memory=memory, width=width)
    return WorldModel(encoder, rssm, decoder, reward, ends if discount else None)


class Flattened(eqx.Module):
    """A network of vectors, for arrays of any shape."""

    network: Callable[[Array], Array]

    def __call__(self, x: Array) -> Array:
        """Its output."""
        return self.network(jnp.ravel(x).astype(jnp.promote_types(x.dtype, jnp.float32)))


class Shaped(eqx.Module):
    """A network whose output is given a shape."""

    network: Callable[[Array], Array]
    shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, features: Array) -> Array:
        """Its output."""
        return self.network(features).reshape(self.shape)


def over_rows(network: Callable[[Array], Array], features: Float[Array, "... features"]) -> Array:
    """A network of one vector, for any leading axes."""
    lead = features.shape[:-1]
    found = jax.vmap(network)(features.reshape(-1, features.shape[-1]))
    return found.reshape(*lead, *found.shape[1:])
