"""PPO that is also paid for what is new: one rollout in, better networks out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import Status, require
from laureate.control.bonuses import AbstractBonus, Transitions
from laureate.control.ppo import PPO, PPOBatch, PPOInfo, PPOState, Rollout, as_row, minibatches
from laureate.control.returns import ReturnScale, ReturnScaleState

__all__ = ["BonusPPO", "BonusPPOInfo", "BonusPPOState"]


def everything(observation: Array) -> Array:
    """An observation as it is."""
    return observation


class BonusPPOState(NamedTuple):
    """What the next update needs; without a bonus the last two are None.

    ppo: of the policy. bonus: of the bonus. scale: of the bonus's scale.
    """

    ppo: PPOState
    bonus: Any
    scale: ReturnScaleState | None


class BonusPPOInfo(NamedTuple):
    """What an update reports.

    reward, bonus: means a step, of the environment's reward and of the bonus as it is before it is scaled. deviation:
    by which the bonus was divided. distillation: the bonus's own loss. ppo: see ``PPOInfo``. Both are means over the
    gradient steps, the status of ppo the worst. cost: environment steps. status: DIVERGED where a loss was not finite;
    the steps are taken all the same.
    """

    reward: Array
    bonus: Array
    deviation: Array
    distillation: Array
    ppo: PPOInfo
    cost: Array
    status: Array


class BonusPPO(eqx.Module):
    """Proximal policy optimisation with an exploration bonus (Burda et al. 2019, algorithm 1)::

        i ← bonus(s, a, s') / √Var(Σ γᵗ i_t),    A = c_E A_E + c_I A_I,    num_epochs × num_minibatches steps

    With two heads the advantages are added, each with a discount of its own and, by ``PPO.episodic``, within episodes
    or across them. With one head the rewards are added. Without a bonus it is PPO.

    ppo: with two heads, the environment's first; with one for a single return or without a bonus.
    bonus: ``RND``, ``CountBonus``, ``DynamicsBonus``, ``AutoencoderBonus``, your own, or None.
    scale: what divides the bonus.
    coefficients: c_E and c_I, >= 0.
    num_epochs, num_minibatches: passes over a rollout, and parts of its environments, >= 1.
    view: from one observation to what the bonus sees of it, e.g. the last of stacked frames, ``lambda o: o[..., -1:]``.

    >>> from laureate.control import PPO, Categorical
    >>> learner = BonusPPO(PPO(lambda s: (s, s[:1]), Categorical(2)), num_epochs=2, num_minibatches=1)
    >>> one, two = jnp.ones((3, 2, 2)), jnp.zeros((3, 2))
    >>> steps = Rollout(one, two.astype(int), two - 0.693, one, two + 1, two > 0, two > 0, one[0])
    >>> state, info = learner.step(jax.random.key(0), steps, learner.init(jnp.ones(2), 2))
    >>> int(info.cost), float(info.reward)
    (6, 1.0)
    """

    ppo: PPO
    bonus: AbstractBonus | None = None
    scale: ReturnScale = ReturnScale()
    coefficients: Float[Array, "2"] = eqx.field(converter=as_row, default=(2.0, 1.0))
    num_epochs: int = eqx.field(static=True, default=4)
    num_minibatches: int = eqx.field(static=True, default=4)
    view: Callable[[Array], Array] = eqx.field(static=True, default=everything)

    def __check_init__(self):
        heads = 2 if self.bonus is not None else 1
        rule, remedy = f"1 or {heads}" if heads > 1 else "1 without a bonus", "Each entry of PPO.gamma is a head."
        require("BonusPPO", "ppo.num_heads", rule, self.ppo.num_heads, lambda n: 1 <= n <= heads, remedy)
        require("BonusPPO", "coefficients", "two", self.coefficients.shape, lambda s: s == (2,))
        require("BonusPPO", "coefficients", ">= 0", self.coefficients, lambda c: (c >= 0).all())
        for name in ("num_epochs", "num_minibatches"):
            require("BonusPPO", name, ">= 1", getattr(self, name), lambda n: n >= 1)

    def init(self, observation: Array, num_environments: int) -> BonusPPOState:
        """First weights, for observations as this one. A bonus with statistics wants ``observe`` before ``step``."""
        require("BonusPPO", "num_environments", ">= 1", num_environments, lambda n: n >= 1)
        if self.bonus is None:
            return BonusPPOState(self.ppo.init(), None, None)
        bonus = self.bonus.init(self.view(observation))
        return BonusPPOState(self.ppo.init(), bonus, self.scale.init(num_environments))

    def act(self, key: Array, observation: Array, state: BonusPPOState) -> tuple[Array, Array]:
        """An action for every environment, and log π of it."""
        return self.ppo.act(key, observation, state.ppo)[:2]

    def observe(self, rollout: Rollout, state: BonusPPOState) -> BonusPPOState:
        """The state with the bonus's statistics of a rollout, as of a random policy before the first step."""
        if self.bonus is None:
            return state
        return state._replace(bonus=self.bonus.observe(self.seen(rollout), state.bonus))

    def rewards(self, rollout: Rollout, state: BonusPPOState) -> tuple[Array, Array, BonusPPOState]:
        """The rewards of every head [T, E, heads], the raw bonus [T, E], and the new state of scale and statistics."""
        if self.bonus is None:
            return rollout.reward[..., None], jnp.zeros_like(rollout.reward), state
        raw = self.bonus.reward(self.seen(rollout), state.bonus).reshape(rollout.reward.shape)
        scaled, scale = self.scale.step(raw, state.scale)  # pyright: ignore[reportArgumentType]
        both = jnp.stack([rollout.reward, scaled], axis=-1)
        if self.ppo.num_heads == 1:
            both = jnp.sum(self.coefficients * both, axis=-1, keepdims=True)
        # After the bonus of these transitions: their own statistics must not change its scale.
        return both, raw, self.observe(rollout, state._replace(scale=scale))

    def seen(self, rollout: Rollout) -> Transitions:
        """The steps of all environments as rows, as the bonus sees them."""
        flat = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])  # noqa: E731
        before, after = (jax.vmap(self.view)(flat(leaf)) for leaf in (rollout.observation, rollout.following))
        return Transitions(before, flat(rollout.action), after)

    def step(self, key: Array, rollout: Rollout, state: BonusPPOState) -> tuple[BonusPPOState, BonusPPOInfo]:
        """One update: rewards, advantages, and the gradient steps of policy and bonus on the same minibatches."""
        order_key, keep_key = jax.random.split(key)
        reward, raw, state = self.rewards(rollout, state)
        advantage, target = self.ppo.advantages(rollout, reward, state.ppo)
        # A = c_E A_E + c_I A_I; the rewards of one head have been added already.
        weights = self.coefficients if self.ppo.num_heads == 2 else jnp.ones(1)
        advantage = jnp.sum(weights * advantage, axis=-1)
        batch = PPOBatch(rollout.observation, rollout.action, rollout.log_probability, advantage, target)
        rows = minibatches(order_key, rollout.reward.shape[1], self.num_minibatches, self.num_epochs)
        nothing = jnp.asarray(0.0)

        def learn(carry: tuple[PPOState, Any], at: tuple[Array, Array]) -> tuple[Any, Any]:
            (ppo, bonus), (rows, key) = carry, at
            ppo, told = self.ppo.step(jax.tree.map(lambda leaf: leaf[:, rows], batch), ppo)
            if self.bonus is None:
                return (ppo, bonus), (told, nothing, told.status)
            part = Rollout(*(leaf[:, rows] for leaf in rollout[:-1]), rollout.last)  # pyright: ignore[reportCallIssue]
            bonus, learned = self.bonus.step(key, self.seen(part), bonus)
            return (ppo, bonus), (told, learned.loss, jnp.maximum(told.status, learned.status))

        keys = jax.random.split(keep_key, rows.shape[0])
        (ppo, bonus), (told, loss, status) = jax.lax.scan(learn, (state.ppo, state.bonus), (rows, keys))
        deviation = nothing if state.scale is None else self.scale.deviation(state.scale)
        worst = lambda status: jnp.where(jnp.all(status == int(Status.OK)), int(Status.OK), int(Status.DIVERGED))  # noqa: E731
        means = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), told)
        told = means._replace(status=worst(told.status))
        means = jnp.mean(rollout.reward), jnp.mean(raw), deviation, jnp.mean(loss)
        info = BonusPPOInfo(*means, told, jnp.asarray(rollout.reward.size), worst(status))
        return BonusPPOState(ppo, bonus, state.scale), info
