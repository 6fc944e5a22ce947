"""What an exploration bonus offers, and bonuses that count."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from laureate._core import Status, require

__all__ = ["AbstractBonus", "BonusInfo", "CountBonus", "CountState", "SimHash", "Transitions"]


class Transitions(NamedTuple):
    """Rows of steps.

    observation: acted in, [n, ...]. action: taken. following: the observation that was reached.
    """

    observation: Float[Array, "n ..."]
    action: Array
    following: Float[Array, "n ..."]


class BonusInfo(NamedTuple):
    """What a learning step reports.

    loss: what was minimised. kept: transitions that were learned from. cost: transitions passed through the networks.
    status: DIVERGED where the loss is not finite; the step is taken all the same.
    """

    loss: Array
    kept: Array
    cost: Array
    status: Array


class AbstractBonus(eqx.Module):
    """A reward for what is new, to be added to that of an environment; inherit from it for one of your own.

    In a rollout: ``reward`` of all its transitions, then ``observe`` them once, then ``step`` on each minibatch.
    """

    @abc.abstractmethod
    def init(self, observation: Any) -> Any:
        """The first state, for observations as this one."""

    @abc.abstractmethod
    def observe(self, transitions: Transitions, state: Any) -> Any:
        """The state with the statistics of these transitions, or their counts, too."""

    @abc.abstractmethod
    def reward(self, transitions: Transitions, state: Any) -> Float[Array, " n"]:
        """The raw bonus of every transition."""

    @abc.abstractmethod
    def step(self, key: Array, transitions: Transitions, state: Any) -> tuple[Any, BonusInfo]:
        """One learning step."""


class CountState(NamedTuple):
    """What was seen so far.

    counts: how often each cell was reached, [cells].
    """

    counts: Int[Array, " cells"]


class CountBonus(AbstractBonus):
    """The classical bonus where states can be counted.

    ::

        i = 1 / √(1 + n(s')),    n: visits before this rollout

    cell: from one observation to the number of its cell, e.g. ``jnp.argmax`` of a one-hot one, or a ``SimHash``.
    num_cells: cells, >= 1; what lies beyond is counted in the last.

    >>> bonus = CountBonus(jnp.argmax, 2)
    >>> seen = Transitions(jnp.eye(2), jnp.zeros(2), jnp.array([[1.0, 0.0], [1.0, 0.0]]))
    >>> state = bonus.observe(seen, bonus.init(jnp.zeros(2)))
    >>> state.counts.tolist(), [round(float(i), 4) for i in bonus.novelty(jnp.eye(2), state)]
    ([2, 0], [0.5774, 1.0])
    """

    cell: Callable[[Array], Array]
    num_cells: int = eqx.field(static=True)

    def __check_init__(self):
        require("CountBonus", "num_cells", ">= 1", self.num_cells, lambda n: n >= 1)

    def init(self, observation: Any) -> CountState:
        """Nothing was visited."""
        del observation
        return CountState(jnp.zeros(self.num_cells, jnp.int32))

    def novelty(self, x: Float[Array, "n ..."], state: CountState) -> Float[Array, " n"]:
        """1 / √(1 + n) of every row of data."""
        return jax.lax.rsqrt(1.0 + state.counts[self._cells(x)])

    def reward(self, transitions: Transitions, state: CountState) -> Array:
        """1 / √(1 + n(s'))."""
        return self.novelty(transitions.following, state)

    def observe(self, transitions: Transitions, state: CountState) -> CountState:
        """Count what was reached."""
        return CountState(state.counts.at[self._cells(transitions.following)].add(1))

    def step(self, key: Array, transitions: Transitions, state: CountState) -> tuple[CountState, BonusInfo]:
        """Nothing is learned: a minibatch may be seen in several epochs, and counts once."""
        del key, transitions
        nothing = jnp.asarray(0)
        return state, BonusInfo(jnp.asarray(0.0), nothing, nothing, jnp.asarray(int(Status.OK)))

    def _cells(self, x: Array) -> Array:
        return jnp.clip(jax.vmap(self.cell)(x), 0, self.num_cells - 1)


class SimHash(eqx.Module):
    """Cells for observations that cannot be counted: the signs of random projections (Tang et al. 2017)::

        cell = Σ_k 2ᵏ [a_k · x > 0]

    directions: a, [bits, numbers of an observation]; normal random numbers.

    >>> int(SimHash(jnp.array([[1.0, 0.0], [0.0, 1.0]]))(jnp.array([-1.0, 1.0])))
    2
    """

    directions: Float[Array, "bits inputs"]

    @property
    def num_cells(self) -> int:
        """2 to the number of bits."""
        return 2 ** self.directions.shape[0]

    def __call__(self, x: Array) -> Array:
        """The cell of one observation."""
        signs = self.directions @ jnp.ravel(x) > 0
        return jnp.sum(jnp.where(signs, 2 ** jnp.arange(len(signs)), 0))
