"""Learning a correspondence in one program that shows how far it is and goes on from where it stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from laureate import loops
from laureate._core import as_key, require
from laureate.control.bonuses import Transitions
from laureate.control.cycle_gan import CycleGAN
from laureate.control.dynamics_cycle import DynamicsCycle, warn_if_collapsed
from laureate.control.two_domains import check_domains

__all__ = ["CorrespondenceTraining"]


class CorrespondenceTraining(eqx.Module):
    """``DynamicsCycle`` or ``CycleGAN`` on the steps at hand, for runs that are long enough to be watched and stopped.

    ::

        repeat:  G for ``turn`` steps, then H and P for as many;    without H, G alone

    The steps are those of ``train``, and so are the numbers. Both domains are checked when it is made.

    method: ``DynamicsCycle`` with its forward model fitted (``fit_forward``), or ``CycleGAN``.
    x, y: steps of both domains, not paired.
    batch: transitions of a step, >= 1.
    turn: steps of a turn, >= 1, where there are maps of actions; 0 where there are none.

    >>> import jax.numpy as jnp
    >>> at = jnp.array([[0.0], [0.5], [0.25], [1.0]])
    >>> x, y = Transitions(at, 0 * at, at), Transitions(at + 1, 0 * at, at + 1)
    >>> training = CorrespondenceTraining(DynamicsCycle(lambda x: x + 1, lambda y, u: y + u, None), x, y)
    >>> outcome = training.run(jax.random.key(0), 3)
    >>> outcome.seen.dynamics.tolist(), int(outcome.status)
    ([0.0, 0.0, 0.0], 0)
    """

    method: DynamicsCycle | CycleGAN
    x: Transitions
    y: Transitions
    batch: int = eqx.field(static=True, default=32)
    turn: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        require("CorrespondenceTraining", "batch", ">= 1", self.batch, lambda n: n >= 1)
        rule = ">= 1, for there are maps of actions" if self._acts else "0, for there are no maps of actions"
        require("CorrespondenceTraining", "turn", rule, self.turn, lambda n: n >= 1 if self._acts else n == 0)
        check_domains(self.x, self.y, bounded=self._acts)

    @property
    def _acts(self) -> bool:
        return isinstance(self.method, DynamicsCycle) and self.method.action_map is not None

    def init(self) -> Any:
        """The method's first state."""
        return self.method.init(self.x, self.y)

    def step(self, key: Array, state: Any) -> tuple[Any, Any]:
        """One step on batches that are drawn by its number in ``state``."""
        steps = {"num_steps": 1, "batch": self.batch}

        def turned(phase: Any) -> Callable[[Any], tuple[Any, Any]]:
            more = {"phase": phase} if isinstance(self.method, DynamicsCycle) else {}
            return lambda state: self.method.train(key, self.x, self.y, state, **steps, **more)

        if self._acts:
            first = (state.step // self.turn) % 2 == 0
            state, info = jax.lax.cond(first, turned("states"), turned("actions"), state)
        else:
            state, info = turned("states")(state)
        return state, jax.tree.map(lambda leaf: leaf[0], info)

    def run(
        self,
        key: Array,
        num_steps: int,
        *,
        progress: Callable[[loops.Progress], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> loops.Outcome:
        """``num_steps`` steps in one program; ``outcome.state`` is for ``translate`` and ``transfer``.

        progress, checkpoint: see ``laureate.loops.run``; the same call again, or one for more steps, goes on from the
        checkpoint. Within jit and vmap one scan.
        """
        outcome = loops.run(
            _Steps(self, jax.random.key_data(key)), self.init(), num_steps, progress=progress, checkpoint=checkpoint
        )
        if isinstance(self.method, DynamicsCycle) and num_steps:
            warn_if_collapsed(outcome.seen)
        return outcome


class _Steps(eqx.Module):
    """``step(state, index)`` of a run, with its numbers as leaves."""

    training: CorrespondenceTraining
    bits: Array

    def __call__(self, state: Any, index: Array) -> tuple[Any, Any]:
        del index  # the state counts its steps
        return self.training.step(as_key(self.bits), state)
