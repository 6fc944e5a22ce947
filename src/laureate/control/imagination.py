"""Learning behaviour inside a world model: imagined rollouts, and the losses of actor and critic."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from laureate._core import require
from laureate.control.returns import lambda_return
from laureate.control.rssm import RSSMState
from laureate.control.world_model import WorldModel, over_rows

__all__ = ["Imagined", "actor_loss", "critic_loss", "imagine", "imagined_returns"]


class Imagined(NamedTuple):
    """A rollout in a model, H + 1 states of N starts; every leaf is [H + 1, N, ...].

    features: [z, h]. action: that led to the state; zeros for the first. reward: of being in the state. discount: γ
    times the probability that something follows it. weight: of the state in all losses, the product of the discounts
    before it, without a gradient.
    """

    features: Float[Array, "H+1 N features"]
    action: Float[Array, "H+1 N actions"]
    reward: Float[Array, "H+1 N"]
    discount: Float[Array, "H+1 N"]
    weight: Float[Array, "H+1 N"]


def imagine(
    key: Array,
    world: WorldModel,
    actor: Callable[[Array], Array],
    law: Any,
    start: RSSMState,
    terminal: Bool[Array, " N"],
    horizon: int = 15,
    gamma: float | Array = 0.995,
) -> Imagined:
    """Roll a policy out in a model, from states that were observed.

    The gradient runs through actions, states, rewards and discounts, but not into the features that an actor sees.

    world: the model. actor: from features to the numbers of ``law``, the law of actions, ``OneHot`` or
    ``TruncatedNormal``. start: N states; they get no gradient. terminal: whether episodes ended there, which is known
    and replaces the first predicted discount. horizon: H >= 2. gamma: γ, in [0, 1).
    """
    require("imagine", "horizon", ">= 2", horizon, lambda h: h >= 2, "The actor's loss leaves two states out.")
    require("imagine", "gamma", "in [0, 1)", gamma, lambda g: 0 <= g < 1)
    number = terminal.shape[0]
    action_key, latent_key = jax.random.split(key)
    noise = law.noise(action_key, (horizon, number)), world.rssm.law.noise(latent_key, (horizon, number))
    start = jax.lax.stop_gradient(start)

    def on(state: RSSMState, noise: tuple[Array, Array]) -> tuple[RSSMState, tuple[Array, Array]]:
        action = law.draw(jax.vmap(actor)(jax.lax.stop_gradient(state.features)), noise[0])
        state = world.rssm.predict(state, action, noise[1])
        return state, (state.features, action)

    _, (features, action) = jax.lax.scan(on, start, noise)
    features = jnp.concatenate([start.features[None], features])
    action = jnp.concatenate([jnp.zeros_like(action[:1]), action])
    known = jnp.where(terminal, 0.0, gamma)
    if world.discount is None:
        known = jnp.full(terminal.shape, gamma)
    discount = world.discounts(features, gamma).at[0].set(known)
    before = jnp.concatenate([jnp.ones_like(discount[:1]), discount[:-1]])
    weight = jax.lax.stop_gradient(jnp.cumprod(before, axis=0))
    return Imagined(features, action, world.rewards(features), discount, weight)


def imagined_returns(
    rollout: Imagined, critic: Callable[[Array], Array], lam: float | Array = 0.95
) -> tuple[Float[Array, "H N"], Float[Array, "H+1 N"]]:
    """λ-returns of the first H states, and the values of all, by a critic that is the slow one in DreamerV2.

    ::

        G_t = r_t + d_t ((1 − λ) v_{t+1} + λ G_{t+1}),    G_H = v_H

    The reward is that of the state itself. rollout: imagined. critic: from features to a value, [1]. lam: λ.
    """
    value = over_rows(critic, rollout.features)[..., 0]
    return lambda_return(rollout.reward[:-1], value[1:], rollout.discount[:-1], lam=lam), value


def critic_loss(rollout: Imagined, critic: Callable[[Array], Array], target: Float[Array, "H N"]) -> Array:
    """The weighted mean of ½ (v(s_t) − sg(G_t))², t < H; only the critic gets a gradient.

    rollout: imagined. critic: from features to a value, [1]. target: G of ``imagined_returns``.
    """
    features = jax.lax.stop_gradient(rollout.features[:-1])
    wrong = over_rows(critic, features)[..., 0] - jax.lax.stop_gradient(target)
    return jnp.mean(rollout.weight[:-1] * 0.5 * wrong**2)


def actor_loss(
    rollout: Imagined,
    actor: Callable[[Array], Array],
    law: Any,
    target: Float[Array, "H N"],
    baseline: Float[Array, "H+1 N"],
    mix: float | Array = 1.0,
    entropy: float | Array = 1e-3,
) -> tuple[Array, Array]:
    """The loss of an actor, and its mean entropy.

    ::

        −mean w_t [ρ log π(a_{t+1} | s_t) sg(G_{t+1} − v(s_t)) + (1 − ρ) G_{t+1} + η H(π(· | s_t))],    t < H − 1

    (Hafner et al. 2021, equation 6; a_{t+1} is what leads from s_t to s_{t+1}, whose return G_{t+1} it earned.)

    rollout: imagined with this actor, so that the second term has a gradient. actor, law: as for ``imagine``.
    target: G of ``imagined_returns``. baseline: v of it. mix: ρ within 0 and 1; 1: REINFORCE, 0: the gradient of the
    dynamics. entropy: η >= 0.
    """
    require("actor_loss", "mix", "within 0 and 1", mix, lambda m: 0 <= m <= 1)
    require("actor_loss", "entropy", ">= 0", entropy, lambda e: e >= 0)
    fixed = jax.lax.stop_gradient
    stats = over_rows(actor, fixed(rollout.features[:-2]))
    advantage = fixed(target[1:] - baseline[:-2])
    reinforce = law.log_probability(stats, fixed(rollout.action[1:-1])) * advantage
    spread = law.entropy(stats)
    gain = mix * reinforce + (1 - mix) * target[1:] + entropy * spread
    return -jnp.mean(rollout.weight[:-2] * gain), jnp.mean(spread)
