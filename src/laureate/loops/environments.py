"""What an environment is, for agents and problems alike: spaces, one step, and a step that begins anew after an end."""

from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from laureate._core import require

__all__ = ["Box", "Discrete", "Environment", "Timestep", "step_or_reset"]


class Discrete(eqx.Module):
    """Whole numbers 0 … num − 1.

    num: how many, >= 1.
    """

    num: int = eqx.field(static=True)

    def __check_init__(self):
        require("Discrete", "num", "an integer >= 1", self.num, lambda n: isinstance(n, int) and n >= 1)


class Box(eqx.Module):
    """Arrays of one shape, within bounds where there are any.

    shape: of one of them.
    low, high: bounds of every entry.
    dtype: its name.
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    low: float = eqx.field(static=True, default=-float("inf"))
    high: float = eqx.field(static=True, default=float("inf"))
    dtype: str = eqx.field(static=True, default="float32")

    def __check_init__(self):
        require("Box", "low", f"<= high = {self.high}", self.low, lambda low: low <= self.high)


class Timestep(NamedTuple):
    """What a step shows.

    observation: of the state that was reached, also where the episode ends there.
    reward: for reaching it.
    terminated: nothing follows by the rules of the environment, so what follows is worth nothing.
    truncated: a time limit was met; something would have followed, and its worth must be estimated.
    """

    observation: Any
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Environment(Protocol):
    """An environment as pure functions of one state; ``jax.vmap`` makes many.

    A frozen ``equinox.Module`` with arrays as leaves can be an argument of compiled programs; any object will do.
    """

    @property
    def observation_space(self) -> Any:
        """A ``Box``."""
        ...

    @property
    def action_space(self) -> Any:
        """``Discrete`` or ``Box``."""
        ...

    def reset(self, key: Array) -> tuple[Any, Array]:
        """A first state, and what is seen of it."""
        ...

    def step(self, key: Array, state: Any, action: Array) -> tuple[Any, Timestep]:
        """The next state, and what it shows."""
        ...


def step_or_reset(key: Array, environment: Any, state: Any, action: Array) -> tuple[Any, Array, Timestep]:
    """One step; where the episode ends with it, the state is already the first of the next one.

    Returns the state to go on from, what is seen of it, and the ``Timestep``, whose observation is still that of the
    episode which has ended.

    >>> class Coin:  # one step an episode
    ...     def reset(self, key):
    ...         return jnp.asarray(0), jnp.asarray(0.0)
    ...
    ...     def step(self, key, state, action):
    ...         return state + 1, Timestep(jnp.asarray(1.0), jnp.asarray(2.0), jnp.asarray(True), jnp.asarray(False))
    >>> state, seen, timestep = step_or_reset(jax.random.key(0), Coin(), jnp.asarray(0), None)
    >>> int(state), float(seen), float(timestep.observation)
    (0, 0.0, 1.0)
    """
    step_key, reset_key = jax.random.split(key)
    reached, timestep = environment.step(step_key, state, action)
    first, beginning = environment.reset(reset_key)
    ended = timestep.terminated | timestep.truncated
    choose = lambda new, old: jnp.where(ended, new, old)  # noqa: E731
    return jax.tree.map(choose, first, reached), choose(beginning, timestep.observation), timestep
