"""Critics that tell given rows from made ones, with a pool of what was made before."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from laureate._core import Status, require

__all__ = ["CriticInfo", "CriticState", "PooledCritic"]

# What is to be made small, of the critic's outputs: at given rows, at made rows.
LOSSES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "lsgan": (lambda d: (d - 1) ** 2, jnp.square),  # the authors' code
    "log": (lambda d: jax.nn.softplus(-d), jax.nn.softplus),  # the paper's text; not saturating for the maker
}


class CriticState(NamedTuple):
    """What the next step of a critic needs.

    parameters: the network's arrays. optimiser: Adam's state. pool: rows that were made before, [num_kept, ...].
    filled: how many of these there are.
    """

    parameters: Any
    optimiser: Any
    pool: Array
    filled: Array


class CriticInfo(NamedTuple):
    """What a step of a critic reports.

    loss: half the sum of both sides. cost: rows passed through the critic. status: DIVERGED where the loss is not
    finite; the step is taken all the same.
    """

    loss: Array
    cost: Array
    status: Array


class PooledCritic(eqx.Module):
    """A discriminator D that learns from given rows and from a pool of rows made earlier.

    ::

        min_D ½ E (D(s) − 1)² + ½ E D(ŝ)²,    the maker: min E (D(ŝ) − 1)²

    (Mao et al. 2017; the pool is that of Shrivastava et al. 2017, one row at a time.) A made row enters a pool that has
    room; afterwards, with probability ½, it takes the place of a random one, and that old one is shown to D instead.

    network: D, of one row, with any number of outputs, over which the loss is averaged.
    learning_rate: > 0; of Adam.
    num_kept: rows of the pool, >= 0; without one D sees what is made now.
    loss: "lsgan", or "log" for the cross-entropy of the paper's text.

    >>> critic = PooledCritic(lambda row: jnp.sum(row), num_kept=2)
    >>> state = critic.init(jnp.zeros(1))
    >>> shown, pool, filled = critic.exchange(jax.random.key(0), jnp.array([[1.0], [2.0]]), state)
    >>> shown.tolist(), pool.tolist(), int(filled)
    ([[1.0], [2.0]], [[1.0], [2.0]], 2)
    """

    network: Callable[[Array], Array]
    learning_rate: float | Array = 1e-3
    num_kept: int = eqx.field(static=True, default=128)
    loss: Literal["lsgan", "log"] = eqx.field(static=True, default="lsgan")

    def __check_init__(self):
        require("PooledCritic", "learning_rate", "> 0", self.learning_rate, lambda r: r > 0)
        require("PooledCritic", "num_kept", ">= 0", self.num_kept, lambda n: n >= 0)
        require("PooledCritic", "loss", f"one of {', '.join(LOSSES)}", self.loss, lambda name: name in LOSSES)

    def init(self, row: Array) -> CriticState:
        """The first weights, which the network brings, and an empty pool for rows of this one's shape."""
        parameters = eqx.filter(self.network, eqx.is_inexact_array)
        # What is made is no pixel, though the row may be one: an integer or half precision would round it.
        pool = jnp.zeros((self.num_kept, *jnp.shape(row)), jnp.promote_types(jnp.result_type(row), jnp.float32))
        return CriticState(parameters, optax.adam(self.learning_rate).init(parameters), pool, jnp.asarray(0, jnp.int32))

    def judge(self, parameters: Any, rows: Float[Array, "n ..."]) -> Array:
        """D of every row."""
        return jax.vmap(eqx.combine(parameters, self.network))(rows)

    def fooled(self, made: Float[Array, "n ..."], state: CriticState) -> Array:
        """What the maker makes small: the loss as if what it made had been given. D is held fixed, not its input."""
        return jnp.mean(LOSSES[self.loss][0](self.judge(jax.lax.stop_gradient(state.parameters), made)))

    def exchange(self, key: Array, made: Float[Array, "n ..."], state: CriticState) -> tuple[Array, Array, Array]:
        """What is shown to D in place of the rows made now, the new pool, and how many rows it has."""
        if not self.num_kept:
            return made, state.pool, state.filled
        drawn, number = jax.random.uniform(key, (len(made), 2)), jnp.arange(len(made))
        room = state.filled + number < self.num_kept
        place = jnp.minimum((drawn[:, 0] * self.num_kept).astype(jnp.int32), self.num_kept - 1)
        place = jnp.where(room, state.filled + number, place)
        enters = room | (drawn[:, 1] < 0.5)
        # As if row by row: what a row finds at its place is the last row before it that entered there, or the pool's.
        there = (place[:, None] == place[None]) & enters[None]
        last = jnp.max(jnp.where(there & (number[None] < number[:, None]), number[None], -1), axis=1)
        wide = lambda mask: mask.reshape(-1, *(1,) * (made.ndim - 1))  # noqa: E731
        found = jnp.where(wide(last >= 0), made[last], state.pool[place])
        shown = jnp.where(wide(enters & ~room), found, made)
        overwritten = jnp.any(there & (number[None] > number[:, None]), axis=1)
        into = jnp.where(enters & ~overwritten, place, self.num_kept)  # beyond the end: dropped
        pool = state.pool.at[into].set(made, mode="drop")
        return shown, pool, jnp.minimum(state.filled + len(made), self.num_kept)

    def step(
        self, key: Array, given: Float[Array, "n ..."], made: Float[Array, "n ..."], state: CriticState
    ) -> tuple[CriticState, CriticInfo]:
        """One step of D on rows that were given and rows that were made, of which no gradient comes back."""
        shown, pool, filled = self.exchange(key, jax.lax.stop_gradient(made), state)
        real, fake = LOSSES[self.loss]

        def loss(parameters):
            return 0.5 * jnp.mean(real(self.judge(parameters, given))) + 0.5 * jnp.mean(
                fake(self.judge(parameters, shown))
            )

        value, slope = jax.value_and_grad(loss)(state.parameters)
        updates, optimiser = optax.adam(self.learning_rate).update(slope, state.optimiser, state.parameters)
        status = jnp.where(jnp.isfinite(value), int(Status.OK), int(Status.DIVERGED))
        info = CriticInfo(value, jnp.asarray(len(given) + len(made)), status)
        return CriticState(eqx.apply_updates(state.parameters, updates), optimiser, pool, filled), info
