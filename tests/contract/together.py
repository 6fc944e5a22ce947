"""Several kernels as one, so that a check compiles the programs of all of them together."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class Several(NamedTuple):
    """The kernels' states, by name."""

    states: dict[str, Any]

    @property
    def position(self) -> dict[str, Any]:
        """Of each kernel."""
        return {name: state.position for name, state in self.states.items()}


class Reports(NamedTuple):
    """What the kernels' steps said, an entry a kernel, and all of it by name."""

    acceptance_rate: Any
    cost: Any
    status: Any
    each: dict[str, Any]


class Together(eqx.Module):
    """Every kernel makes its own step, with a key and from a position of its own."""

    kernels: dict[str, Any]

    def init(self, position: dict[str, Any]) -> Several:
        """Each at its position."""
        return Several({name: kernel.init(position[name]) for name, kernel in self.kernels.items()})

    def step(self, key: Any, state: Several) -> tuple[Several, Reports]:
        """One of each."""
        made = {
            name: kernel.step(jax.random.fold_in(key, number), state.states[name])
            for number, (name, kernel) in enumerate(sorted(self.kernels.items()))
        }
        infos = [info for _, info in made.values()]
        each = {name: info for name, (_, info) in made.items()}
        rates = jnp.stack([jnp.mean(info.acceptance_rate).astype(float) for info in infos])
        cost, status = (jnp.stack([getattr(info, name) for info in infos]) for name in ("cost", "status"))
        states = {name: after for name, (after, _) in made.items()}
        return Several(states), Reports(rates, cost, status, each)


def costs(wanted: dict[str, int]) -> np.ndarray:
    """Of each kernel, in the order of their names, as jax has them."""
    return np.array([wanted[name] for name in sorted(wanted)])


class Estimates(NamedTuple):
    """What the estimators' steps said: all in all, the cost of each, and all of it by name."""

    loss: Any
    cost: Any
    status: Any
    num_nonfinite: Any
    each: dict[str, Any]


class TogetherEstimators(eqx.Module):
    """Every estimator takes its own step, with keys and a theta of its own: theta is {name: theta}."""

    estimators: dict[str, Any]

    def init(self, key: Any, theta: dict[str, Any]) -> dict[str, Any]:
        """Each with a key of its own."""
        return {name: one.init(key, theta[name]) for name, one, key in self._apart(key)}

    def step(self, key: Any, theta: dict[str, Any], state: dict[str, Any]) -> tuple[Any, Any, Estimates]:
        """One of each."""
        made = {name: one.step(key, theta[name], state[name]) for name, one, key in self._apart(key)}
        infos = [info for _, _, info in made.values()]
        told = {
            "loss": sum(info.loss for info in infos),
            "cost": jnp.stack([info.cost for info in infos]),
            "status": jnp.max(jnp.stack([info.status for info in infos])),
            "num_nonfinite": sum(info.num_nonfinite for info in infos),
            "each": {name: info for name, (_, _, info) in made.items()},
        }
        gradient, state = ({name: row[place] for name, row in made.items()} for place in (0, 1))
        return gradient, state, Estimates(**told)

    def _apart(self, key: Any) -> list[tuple[str, Any, Any]]:
        rows = enumerate(sorted(self.estimators.items()))
        return [(name, one, jax.random.fold_in(key, place)) for place, (name, one) in rows]
