"""Steps of two domains as arrays: units, what is refused, and a distance that needs no pairs."""

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require
from laureate.control.bonuses import Transitions

__all__ = ["CorrespondenceWarning", "Simulator", "Units", "check_domains", "transition_distance", "transitions_of"]


class CorrespondenceWarning(UserWarning):
    """A correspondence that can be computed and is likely worth nothing."""


class Units(eqx.Module):
    """Mean and deviation of every number of an observation; those that hardly vary (deviation < 0.1) keep their size.

    mean, deviation: of every entry.

    >>> units = Units.of(jnp.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> units(jnp.array([4.0, 5.0])).tolist(), units.restore(jnp.array([2.0, 0.0])).tolist()
    ([2.0, 0.0], [4.0, 5.0])
    """

    mean: Array
    deviation: Array

    @classmethod
    def of(cls, rows: Float[Array, "n ..."]) -> "Units":
        """Of rows."""
        spread = jnp.std(rows, axis=0)
        return cls(jnp.mean(rows, axis=0), jnp.where(spread < 0.1, 1.0, spread))

    def __call__(self, rows: Array) -> Array:
        """(s − mean) / deviation."""
        return (rows - self.mean) / self.deviation

    def restore(self, rows: Array) -> Array:
        """The inverse."""
        return rows * self.deviation + self.mean


class Simulator(eqx.Module):
    """A simulator of one's own as the forward model F, in the units that the maps work in.

    advance: from state and action, in their own units, to the next state; differentiable.
    units: of the state.
    """

    advance: Callable[[Array, Array], Array]
    units: Units

    def __call__(self, y: Array, u: Array) -> Array:
        """F(y, u)."""
        return self.units(self.advance(self.units.restore(y), u))


def transitions_of(observations: Any, actions: Any, episodes: Any = None) -> Transitions:
    """Transitions of a walk that is given as rows; those that cross into another episode are dropped.

    observations: [n, ...]. actions: [n, ...]; the last one is not used. episodes: [n], a number for each; one episode
    where it is not given.

    >>> steps = transitions_of(np.arange(4.0)[:, None], np.zeros((4, 1)), [0, 0, 1, 1])
    >>> steps.observation[:, 0].tolist(), steps.following[:, 0].tolist()
    ([0.0, 2.0], [1.0, 3.0])
    """
    observations, actions = np.asarray(observations), np.asarray(actions)
    episodes = np.zeros(len(observations), int) if episodes is None else np.asarray(episodes)
    rule, lengths = "of one length", (len(observations), len(actions), len(episodes))
    require("transitions_of", "observations, actions, episodes", rule, lengths, lambda n: len(set(n)) == 1)
    kept = np.flatnonzero(episodes[1:] == episodes[:-1])
    return Transitions(*map(jnp.asarray, (observations[kept], actions[kept], observations[kept + 1])))


def check_domains(x: Transitions, y: Transitions, *, bounded: bool = True) -> None:
    """Raise where steps cannot be learned from, warn where two domains are the same arrays.

    bounded: whether actions have to lie within [−1, 1]. Arrays that are being traced have no values to look at.
    """
    if any(isinstance(part, Tracer) for part in (*x, *y)):
        return
    for name, domain in (("x", x), ("y", y)):
        parts = {field: np.asarray(part) for field, part in zip(domain._fields, domain, strict=True)}
        lengths = {field: len(part) for field, part in parts.items()}
        require("DynamicsCycle", name, "of one length", lengths, lambda n: len(set(n.values())) == 1)
        shapes = parts["observation"].shape, parts["following"].shape
        require("DynamicsCycle", name, "of one shape before and after", shapes, lambda s: s[0] == s[1])
        for field, part in parts.items():
            whole = "Give choices as one-hot numbers." if field == "action" else "Divide pixels by 255."
            remedy, floats = whole if part.dtype.kind in "iu" else "", jnp.issubdtype(part.dtype, jnp.floating)
            require("DynamicsCycle", f"{name}.{field}", "of floats", part.dtype.name, lambda _, f=floats: f, remedy)
            faults = int(np.sum(~np.isfinite(part)))
            require("DynamicsCycle", f"{name}.{field}", "finite", f"{faults} that are not", lambda _, n=faults: n == 0)
        rows = parts["observation"].reshape(len(parts["observation"]), -1)
        still = np.flatnonzero(np.ptp(rows, axis=0) == 0).tolist() if name == "y" and len(rows) > 1 else []
        remedy = "Leave out what never changes, or add it to what F and the policy get by hand."
        require(
            "DynamicsCycle",
            "y.observation",
            "numbers that vary",
            f"constant at {still}",
            lambda _, s=still: not s,
            remedy,
        )
        largest = float(np.max(np.abs(parts["action"]), initial=0.0))
        remedy = "Divide the actions by their largest size, and multiply what transfer(policy) gives by it."
        inside = lambda size: not bounded or size <= 1 + 1e-6  # noqa: E731
        require("DynamicsCycle", f"{name}.action", "within [-1, 1]", largest, inside, remedy)
    if x.observation is y.observation or np.array_equal(np.asarray(x.observation), np.asarray(y.observation)):
        said = "DynamicsCycle got the same observations for both domains: there is nothing to be found."
        warnings.warn(said, CorrespondenceWarning, stacklevel=3)


def transition_distance(made: Transitions, given: Transitions) -> Float[Array, ""]:
    """The energy distance between mapped steps (G(x), H(x, a), G(x')) and given ones: a score without any pairs.

    ::

        2 E‖s − t‖ − E‖s − s'‖ − E‖t − t'‖,    s, t = (state, action, next state − state)

    0 for one law and positive for two (Székely & Rizzo 2013). It takes a number for every pair of rows: give hundreds.
    Maps that only match the states have another law of steps; symmetries of the dynamics that keep the law are not
    seen, here as everywhere.
    """

    def rows(steps: Transitions) -> Array:
        parts = (steps.observation, steps.action, steps.following - steps.observation)
        return jnp.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    s, t = rows(made), rows(given)
    spread = jnp.where(jnp.std(t, axis=0) > 0, jnp.std(t, axis=0), 1.0)
    s, t = s / spread, t / spread

    def mean(a: Array, b: Array) -> Array:
        square = jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1) - 2 * a @ b.T
        return jnp.mean(jnp.sqrt(jax.nn.relu(square)))

    return 2 * mean(s, t) - mean(s, s) - mean(t, t)
