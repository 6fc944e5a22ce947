"""DreamerV2 in any Gymnasium environment, many at once on the host; needs the extra ``control``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from laureate import loops
from laureate._core import require
from laureate.control.bridge import GymnasiumEnvironments, updates_on_the_host
from laureate.control.dreamer import DreamerMemory, DreamerState, DreamerV2
from laureate.control.dreaming import DreamerTraining, DreamerTrainingInfo
from laureate.control.laws import OneHot
from laureate.control.replay import Replay, ReplayState
from laureate.control.world_model import Sequences

__all__ = ["GymnasiumDreamerState", "GymnasiumDreamerTraining"]


class GymnasiumDreamerState(NamedTuple):
    """What the next update needs.

    learner: its state. replay: what was lived.
    """

    learner: DreamerState
    replay: ReplayState


class GymnasiumDreamerTraining:
    """``DreamerTraining`` in Gymnasium environments: acting and dreaming are compiled, environments run on the host.

    environments: ``GymnasiumEnvironments`` made with ``late=True``.
    learner, replay, num_steps, num_gradients, batch, num_warmup: as for ``DreamerTraining``. Images must be such as the
        learner's encoder takes; DreamerV2's own takes 64 × 64 (``gymnasium.wrappers.ResizeObservation``).
    """

    def __init__(
        self,
        environments: GymnasiumEnvironments,
        learner: DreamerV2,
        replay: Replay,
        num_steps: int = 16,
        num_gradients: int = 1,
        batch: int = 16,
        num_warmup: int = 1,
    ):
        remedy = "Make them with late=True: an episode's last observation needs a step of its own."
        require("GymnasiumDreamerTraining", "environments.late", "True", environments.late, bool, remedy)
        number = environments.num_environments
        self.plan = DreamerTraining(environments, learner, replay, number, num_steps, num_gradients, batch, num_warmup)
        self.environments, self.learner, self.replay = environments, learner, replay
        self._act, self._add = eqx.filter_jit(learner.act), eqx.filter_jit(replay.add)
        self._learn = eqx.filter_jit(self._gradients)
        self._memory: DreamerMemory = learner.remember(number)
        self._seen = np.zeros(0)
        self._first, self._over = np.ones(number, bool), np.zeros(number, bool)
        self._returns = np.zeros(number)

    def init(self, key: Array, seed: int = 0) -> GymnasiumDreamerState:
        """Every environment at its start, seeded, and the steps of the warm-up."""
        self._seen = self.environments.reset(seed)
        row = self._row(self._seen, np.zeros(len(self._seen)), self._over, ~self._over)
        state = GymnasiumDreamerState(self.learner.init(), self.replay.init(_stacked([row])))
        state = self._begun(state, self._seen)
        for one in jax.random.split(key, self.plan.num_warmup):
            state, _ = self.collect(one, state)
        return state

    def collect(self, key: Array, state: GymnasiumDreamerState) -> tuple[GymnasiumDreamerState, list[float]]:
        """T steps of every environment into the replay; beside it the returns of the episodes that ended in them."""
        rows, returns = [], []
        for one in jax.random.split(key, self.plan.num_steps):
            seen, first = jnp.asarray(self._seen), jnp.asarray(self._first)
            self._memory = self._act(one, seen, first, self._memory, state.learner)
            action = np.asarray(self._memory.action)
            reached, begun = self.environments.step(self.decode(action)), self._over
            reward, ended = np.where(begun, 0.0, reached.reward), (reached.terminated | reached.truncated) & ~begun
            row = self._row(reached.observation, reward, reached.terminated & ~begun, begun)
            rows.append(row._replace(action=np.where(begun[:, None], 0.0, action).astype(np.float32)))
            self._returns = np.where(begun, 0.0, self._returns) + reward
            returns.extend(self._returns[ended])
            self._seen, self._first, self._over = reached.observation, begun, ended
        return state._replace(replay=self._add(_stacked(rows), state.replay)), returns

    def step(self, key: Array, state: GymnasiumDreamerState) -> tuple[GymnasiumDreamerState, DreamerTrainingInfo]:
        """T steps in every environment, then the gradient steps."""
        live_key, learn_key = jax.random.split(key)
        state, returns = self.collect(live_key, state)
        learner, last, status = self._learn(learn_key, state)
        info = self._info(len(returns), float(np.mean(returns)) if returns else 0.0, last, status)
        return state._replace(learner=learner), info

    def run(
        self,
        key: Array,
        num_updates: int,
        *,
        seed: int = 0,
        progress: Callable[[loops.Progress], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> tuple[GymnasiumDreamerState, DreamerTrainingInfo]:
        """``num_updates`` updates; the state, and a ``DreamerTrainingInfo`` with a row an update.

        seed: of the environments. progress, checkpoint: as for ``DreamerTraining.run``. What a Gymnasium environment
        holds cannot be kept: where a run goes on from a checkpoint, episodes begin anew, seeded by the updates done.
        """
        init_key, run_key = jax.random.split(key)
        state = self.init(init_key, seed)

        def begin_anew(state: GymnasiumDreamerState, done: int) -> GymnasiumDreamerState:
            return self._begun(state, self.environments.reset(seed + done))

        def shapes() -> Any:
            _, last, status = eqx.filter_eval_shape(self._gradients, init_key, state)
            row = self._info(0, 0.0, last, status)
            return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape), leaf.dtype), row)

        plan = self.plan
        settings = {"learner": self.learner, "replay": self.replay, "key": key, "seed": seed, "batch": plan.batch}
        settings |= {name: getattr(plan, name) for name in ("num_steps", "num_gradients", "num_warmup")}
        settings |= {"environments": self.environments.settings}
        kept = None if checkpoint is None else loops.Checkpoint(checkpoint, settings)
        advance = updates_on_the_host(run_key, self.step, begin_anew)
        return loops.chunks(advance, state, num_updates, 100, shapes=shapes, progress=progress, checkpoint=kept)

    def _begun(self, state: GymnasiumDreamerState, seen: np.ndarray) -> GymnasiumDreamerState:
        """The beginnings of episodes, remembered as such."""
        self._seen, self._memory = seen, self.learner.remember(len(seen))
        self._first, self._over, self._returns = (
            np.ones(len(seen), bool),
            np.zeros(len(seen), bool),
            np.zeros(len(seen)),
        )
        row = self._row(seen, self._returns, self._over, self._first)
        return state._replace(replay=self._add(_stacked([row]), state.replay))

    def _gradients(self, key: Array, state: GymnasiumDreamerState) -> tuple[DreamerState, Any, Array]:
        def learn(learner: DreamerState, key: Array) -> tuple[DreamerState, Any]:
            sample_key, step_key = jax.random.split(key)
            return self.learner.step(step_key, self.replay.sample(sample_key, self.plan.batch, state.replay), learner)

        learner, infos = jax.lax.scan(learn, state.learner, jax.random.split(key, self.plan.num_gradients))
        return learner, jax.tree.map(lambda leaf: leaf[-1], infos), jnp.max(infos.status)

    def _row(self, seen: np.ndarray, reward: np.ndarray, terminal: np.ndarray, first: np.ndarray) -> Sequences:
        none = np.zeros((len(seen), self.learner.law.width), np.float32)
        return Sequences(seen, none, np.asarray(reward, np.float32), terminal, first)  # pyright: ignore[reportArgumentType]

    def decode(self, action: Any) -> Any:
        """Actions [environments, ...] as the environments take them: each number from [−1, 1] to its own bounds."""
        if isinstance(self.learner.law, OneHot):
            return action.argmax(-1)
        space = self.environments.vector.single_action_space
        return space.low + 0.5 * (action + 1) * (space.high - space.low)

    def _info(self, episodes: int, mean: float, last: Any, status: Any) -> DreamerTrainingInfo:
        cost = self.plan.num_steps * self.environments.num_environments
        numbers = np.asarray(episodes, np.int32), np.asarray(mean, np.float32)
        return DreamerTrainingInfo(*numbers, last, np.asarray(cost, np.int32), status)  # pyright: ignore[reportCallIssue, reportArgumentType]


def _stacked(rows: list[Sequences]) -> Sequences:
    """Rows with a leading axis of time."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *rows)
