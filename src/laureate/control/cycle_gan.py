"""CycleGAN: a correspondence that knows nothing of actions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from laureate._core import Status, require
from laureate.control.bonuses import Transitions
from laureate.control.critics import CriticState, PooledCritic
from laureate.control.dynamics_cycle import normalised, rows_of
from laureate.control.two_domains import Units, check_domains

__all__ = ["CycleGAN", "CycleGANInfo", "CycleGANState"]


class CycleGANState(NamedTuple):
    """What the next step needs.

    step: steps taken. maps: the arrays of both maps. optimiser: Adam's state for them. critics: the states of D_Y and
    D_X.
    """

    step: Array
    maps: Any
    optimiser: Any
    critics: tuple[CriticState, CriticState]


class CycleGANInfo(NamedTuple):
    """What a step reports.

    loss: all that the maps make small, weighed. cycle_error: how far rows are from themselves after both maps, the mean
    absolute error of X plus that of Y. adversarial: the critics' part of it, not weighed. critics: the sum of both
    critics' own losses. cost: transitions of X. status: DIVERGED where one of these losses is not finite; the step is
    taken all the same.
    """

    loss: Array
    cycle_error: Array
    adversarial: Array
    critics: Array
    cost: Array
    status: Array


class CycleGAN(eqx.Module):
    """A map between two sets of observations that are not paired, by two adversaries and a way back.

    ::

        L = λ_c [‖K(G(x)) − x‖₁ + ‖G(K(y)) − y‖₁] + adv(G(x)) + adv(K(y))

    (Zhu, Park, Isola & Efros 2017.) It sees observations alone, no actions and no time.

    state_map, state_back: G and K.
    critic, back_critic: of Y and of X.
    cycle: λ_c, >= 0.
    learning_rate: > 0.
    x_units, y_units: of the observations.

    >>> same = lambda x: x
    >>> critic = PooledCritic(lambda row: jnp.sum(row), num_kept=2)
    >>> gan = CycleGAN(same, same, critic, critic)
    >>> steps = Transitions(jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.ones((2, 1)))
    >>> float(gan.step(jax.random.key(0), steps, steps, gan.init(steps, steps))[1].cycle_error)
    0.0
    """

    state_map: Callable[[Array], Array]
    state_back: Callable[[Array], Array]
    critic: PooledCritic
    back_critic: PooledCritic
    cycle: float | Array = 10.0
    learning_rate: float | Array = 1e-4
    x_units: Units | None = None
    y_units: Units | None = None

    def __check_init__(self):
        require("CycleGAN", "cycle", ">= 0", self.cycle, lambda w: w >= 0)
        require("CycleGAN", "learning_rate", "> 0", self.learning_rate, lambda r: r > 0)

    def init(self, x: Transitions, y: Transitions) -> CycleGANState:
        """The first weights, which the maps bring, and empty pools."""
        maps = eqx.filter((self.state_map, self.state_back), eqx.is_inexact_array)
        critics = self.critic.init(y.observation[0]), self.back_critic.init(x.observation[0])
        return CycleGANState(jnp.asarray(0), maps, optax.adam(self.learning_rate).init(maps), critics)

    def step(
        self, key: Array, x: Transitions, y: Transitions, state: CycleGANState
    ) -> tuple[CycleGANState, CycleGANInfo]:
        """A step of both maps, then one of each critic."""
        real_x, real_y = normalised(x, self.x_units).observation, normalised(y, self.y_units).observation

        def loss(maps):
            g, k = eqx.combine(maps, (self.state_map, self.state_back))
            made_y, made_x = jax.vmap(g)(real_x), jax.vmap(k)(real_y)
            back = jnp.mean(jnp.abs(jax.vmap(k)(made_y) - real_x)) + jnp.mean(jnp.abs(jax.vmap(g)(made_x) - real_y))
            fooled = self.critic.fooled(made_y, state.critics[0]) + self.back_critic.fooled(made_x, state.critics[1])
            return self.cycle * back + fooled, (back, fooled, made_y, made_x)

        (value, (back, fooled, made_y, made_x)), slopes = jax.value_and_grad(loss, has_aux=True)(state.maps)
        updates, optimiser = optax.adam(self.learning_rate).update(slopes, state.optimiser, state.maps)
        one_key, two_key = jax.random.split(key)
        one, told = self.critic.step(one_key, real_y, made_y, state.critics[0])
        two, also = self.back_critic.step(two_key, real_x, made_x, state.critics[1])
        status = jnp.where(jnp.isfinite(value + told.loss + also.loss), int(Status.OK), int(Status.DIVERGED))
        info = CycleGANInfo(value, back, fooled, told.loss + also.loss, jnp.asarray(len(x.action)), status)
        maps = eqx.apply_updates(state.maps, updates)
        return CycleGANState(state.step + 1, maps, optimiser, (one, two)), info

    def train(
        self, key: Array, x: Transitions, y: Transitions, state: CycleGANState, *, num_steps: int, batch: int = 32
    ) -> tuple[CycleGANState, CycleGANInfo]:
        """So many steps on batches drawn with replacement; see ``DynamicsCycle.train``."""
        check_domains(x, y, bounded=False)

        def one(state, _):
            rows_key, step_key = jax.random.split(jax.random.fold_in(key, state.step))
            drawn = jax.random.uniform(rows_key, (2, batch))
            batches = rows_of(drawn[0], x, len(x.action)), rows_of(drawn[1], y, len(y.action))
            return self.step(step_key, *batches, state)

        return jax.lax.scan(one, state, length=num_steps)

    def translate(self, x: Float[Array, "n ..."], state: CycleGANState) -> Array:
        """ŷ of every row, in the units of Y."""
        g = eqx.combine(state.maps[0], self.state_map)
        found = jax.vmap(g)(x if self.x_units is None else self.x_units(x))
        return found if self.y_units is None else self.y_units.restore(found)

    def transfer(self, policy: Callable[[Array], Array], state: CycleGANState) -> Callable[[Array], Array]:
        """A policy of Y as one of X, with the same actions."""
        return lambda x: policy(self.translate(x[None], state)[0])
