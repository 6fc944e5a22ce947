"""Any Gymnasium environment, many at once on the host, for the same learners; needs the extra ``control``."""

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
from laureate.control.exploration import BonusPPO, BonusPPOState
from laureate.control.ppo import Rollout
from laureate.control.training import TrainingInfo, warn_if_collapsed

__all__ = ["GymnasiumEnvironments", "GymnasiumTraining"]

INSTALL = "Gymnasium is not installed. Install it: pip install 'laureate[control]'"


class Reached(NamedTuple):
    """What a step in all environments shows; ``observation`` is acted in next, ``following`` was reached."""

    observation: np.ndarray
    following: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


class GymnasiumEnvironments:
    """Several copies of a Gymnasium environment, begun anew as soon as they end.

    make: the name of a registered environment, a function that makes one, or a ``gymnasium.vector.VectorEnv`` of
        autoreset mode ``SAME_STEP`` or ``DISABLED`` (of one that resets a step late, every episode's first step would
        be a step that nobody took).
    num_environments: copies; not asked for where a vector environment is given.
    part: of observations that are dictionaries, as MiniGrid's, the entry that is seen; "" where they are arrays.
    late: whether what has ended begins anew with its next step, whose action counts for nothing, as
        ``GymnasiumDreamerTraining`` wants it; of a vector environment the mode is then ``NEXT_STEP``.
    options: for ``gymnasium.make``, where a name is given.

    Observations and actions must be arrays or choices; others have to be wrapped.
    """

    def __init__(self, make: Any, num_environments: int = 1, *, part: str = "", late: bool = False, **options: Any):
        try:
            import gymnasium  # pyright: ignore[reportMissingImports]
        except ImportError as missing:
            raise ModuleNotFoundError(INSTALL) from missing
        modes = gymnasium.vector.AutoresetMode
        if isinstance(make, gymnasium.vector.VectorEnv):
            self.vector = make
        else:
            require("GymnasiumEnvironments", "num_environments", ">= 1", num_environments, lambda n: n >= 1)
            one = (lambda: gymnasium.make(make, **options)) if isinstance(make, str) else make
            copies, mode = [one] * num_environments, modes.NEXT_STEP if late else modes.DISABLED
            self.vector = gymnasium.vector.SyncVectorEnv(copies, autoreset_mode=mode)
        self.mode = self.vector.metadata.get("autoreset_mode")
        allowed = (modes.NEXT_STEP,) if late else (modes.SAME_STEP, modes.DISABLED)
        rule, last = " or ".join(mode.name for mode in allowed), allowed[-1].name
        remedy = f"Make the vector environment with autoreset_mode=AutoresetMode.{last}."
        require("GymnasiumEnvironments", "autoreset_mode", rule, self.mode, lambda m: m in allowed, remedy)
        self.by_mask, self.late, self.part = self.mode == modes.DISABLED, late, part
        self.num_environments = int(self.vector.num_envs)
        seen = _entry(self.vector.single_observation_space, part, gymnasium)
        self.observation_space = _space(seen, gymnasium, "observation")
        self.action_space = _space(self.vector.single_action_space, gymnasium, "action")

    @property
    def settings(self) -> dict[str, Any]:
        """What tells them from others, for a checkpoint: names, wrappers, options and spaces; no simulator's state."""
        told = {"name": str(self.vector), "each": [str(one) for one in getattr(self.vector, "envs", ())]}
        told |= {"options": getattr(self.vector.spec, "kwargs", {}), "number": self.num_environments}
        spaces = self.vector.single_observation_space, self.vector.single_action_space
        return told | {"spaces": [str(space) for space in spaces], "part": self.part, "mode": str(self.mode)}

    def _seen(self, told: Any) -> np.ndarray:
        return np.array(told[self.part] if self.part else told)

    def reset(self, seed: int | None = None) -> np.ndarray:
        """The first observations."""
        return self._seen(self.vector.reset(seed=seed)[0])

    def step(self, action: Any) -> Reached:
        """One step in all of them; actions outside a box are clipped to it."""
        action = np.asarray(action)
        if isinstance(self.action_space, loops.Box):
            action = np.clip(action, self.vector.single_action_space.low, self.vector.single_action_space.high)
        seen, reward, terminated, truncated, told = self.vector.step(action)
        following = self._seen(seen)
        observation = following.copy()
        ended = terminated | truncated
        if ended.any() and self.by_mask:
            observation = self._seen(self.vector.reset(options={"reset_mask": ended})[0])
            observation[~ended] = following[~ended]
        elif ended.any() and not self.late:
            for row in np.flatnonzero(ended):
                following[row] = self._seen(told["final_obs"][row])
        return Reached(observation, following, np.array(reward, np.float32), np.array(terminated), np.array(truncated))

    def close(self) -> None:
        """Close them."""
        self.vector.close()


def updates_on_the_host(
    key: Array, update: Callable[[Array, Any], tuple[Any, Any]], begin_anew: Callable[[Any, int], Any]
) -> Callable[[Any, int, int], tuple[Any, Any]]:
    """``advance`` for ``loops.chunks``: updates one by one, their keys by their absolute number, a row of infos each.

    begin_anew: ``begin_anew(state, done) -> state``, called where a run goes on from a checkpoint, for the environments
        do not stand where the updates so far have left them.
    """
    begun = False

    def advance(state: Any, done: int, count: int) -> tuple[Any, Any]:
        nonlocal begun
        if done and not begun:
            state = begin_anew(state, done)
        begun = True
        told = []
        for number in range(done, done + count):
            state, info = update(jax.random.fold_in(key, number), state)
            told.append(jax.tree.map(np.asarray, info))
        return state, jax.tree.map(lambda *rows: np.stack(rows), *told)

    return advance


class GymnasiumTraining:
    """``Training`` in Gymnasium environments: acting and learning are compiled, the environments run on the host.

    environments: ``GymnasiumEnvironments``.
    learner: ``BonusPPO``.
    num_steps: T of a rollout, >= 1.
    num_warmup: rollouts of the first policy, for the statistics of observations alone; >= 1 with a bonus.
    """

    def __init__(
        self, environments: GymnasiumEnvironments, learner: BonusPPO, num_steps: int = 128, num_warmup: int = 1
    ):
        require("GymnasiumTraining", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
        remedy = "Make them without late=True: their first steps would be steps that nobody took."
        require("GymnasiumTraining", "environments.late", "False", environments.late, lambda late: not late, remedy)
        least, parts = 0 if learner.bonus is None else 1, learner.num_minibatches
        require("GymnasiumTraining", "num_warmup", f">= {least}", num_warmup, lambda n: n >= least)
        rule = f"a multiple of learner.num_minibatches = {parts}"
        found = environments.num_environments
        require("GymnasiumTraining", "num_environments", rule, found, lambda n: n % parts == 0)
        self.environments, self.learner = environments, learner
        self.num_steps, self.num_warmup = num_steps, num_warmup
        self._act, self._learn = eqx.filter_jit(learner.act), eqx.filter_jit(learner.step)
        self._observe = eqx.filter_jit(learner.observe)
        self._observation = np.zeros(0)
        self._returns = np.zeros(found)

    def init(self, key: Array, seed: int = 0) -> BonusPPOState:
        """Every environment at its start, seeded, and the learner's state with the statistics of the warm-up."""
        self._begin(seed)
        state = self.learner.init(jnp.asarray(self._observation[0]), self.environments.num_environments)
        for one in jax.random.split(key, self.num_warmup) if self.learner.bonus is not None else ():
            state = self._observe(self.collect(one, state)[0], state)
        return state

    def collect(self, key: Array, state: BonusPPOState) -> tuple[Rollout, np.ndarray]:
        """A rollout with the policy as it is, and the returns of the episodes that ended in it."""
        rows, returns = [], []
        for one in jax.random.split(key, self.num_steps):
            action, log_probability = self._act(one, jnp.asarray(self._observation), state)
            reached = self.environments.step(action)
            ended = reached.terminated | reached.truncated
            row = (self._observation, np.asarray(action), np.asarray(log_probability), reached.following)
            rows.append((*row, reached.reward, reached.terminated, ended))
            self._returns += reached.reward
            returns.extend(self._returns[ended])
            self._returns[ended] = 0.0
            self._observation = reached.observation
        columns = [jnp.asarray(np.stack(column)) for column in zip(*rows, strict=True)]
        return Rollout(*columns, jnp.asarray(self._observation)), np.array(returns)  # pyright: ignore[reportCallIssue]

    def run(
        self,
        key: Array,
        num_updates: int,
        *,
        seed: int = 0,
        progress: Callable[[loops.Progress], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> tuple[BonusPPOState, TrainingInfo]:
        """``num_updates`` updates; the learner's state, and a ``TrainingInfo`` with a row an update.

        seed: of the environments. progress, checkpoint: as for ``Training.run``. What a Gymnasium environment holds
        cannot be kept: where a run goes on from a checkpoint, episodes begin anew, seeded by the updates done.
        """
        init_key, run_key = jax.random.split(key)
        state = self.init(init_key, seed)

        def begin_anew(state: BonusPPOState, done: int) -> BonusPPOState:
            self._begin(seed + done)
            return state

        settings = {"learner": self.learner, "key": key, "num_steps": self.num_steps, "seed": seed}
        settings |= {"num_warmup": self.num_warmup, "environments": self.environments.settings}
        kept = None if checkpoint is None else loops.Checkpoint(checkpoint, settings)
        advance = updates_on_the_host(run_key, self._update, begin_anew)
        state, told = loops.chunks(
            advance, state, num_updates, 100, shapes=self._rows, progress=progress, checkpoint=kept
        )
        warn_if_collapsed(self.learner, state)
        return state, told

    def _update(self, key: Array, state: BonusPPOState) -> tuple[BonusPPOState, TrainingInfo]:
        collect_key, learn_key = jax.random.split(key)
        rollout, returns = self.collect(collect_key, state)
        state, info = self._learn(learn_key, rollout, state)
        mean, best = returns.mean() if len(returns) else 0.0, float(rollout.reward.max())
        return state, _as_numpy(TrainingInfo(len(returns), mean, best, info, info.cost, info.status))  # pyright: ignore[reportArgumentType]

    def _begin(self, seed: int) -> None:
        self._observation = self.environments.reset(seed)
        self._returns[:] = 0.0

    def _rows(self) -> Any:
        """What an update tells, as shapes with a leading axis."""
        axes = self.num_steps, self.environments.num_environments
        seen = jnp.asarray(self._observation)
        whole = jax.ShapeDtypeStruct((self.num_steps, *seen.shape), seen.dtype)

        def told(key: Array, whole: Array, last: Array) -> Any:
            state = self.learner.init(last[0], axes[1])
            action, log_probability = self.learner.act(key, last, state)
            steps = [jnp.broadcast_to(leaf, (axes[0], *leaf.shape)) for leaf in (action, log_probability)]
            reward = jnp.zeros(axes)
            rollout = Rollout(whole, *steps, whole, reward, reward > 0, reward > 0, last)  # pyright: ignore[reportCallIssue]
            info = self.learner.step(key, rollout, state)[1]
            row = TrainingInfo(jnp.asarray(0), jnp.asarray(0.0), jnp.asarray(0.0), info, info.cost, info.status)
            return jax.tree.map(lambda leaf: leaf[None], row)

        return eqx.filter_eval_shape(told, jax.random.key(0), whole, seen)


def _as_numpy(info: TrainingInfo) -> Any:
    """In the types that jax would give them, as the rows of a checkpoint have."""
    kinds = {"i": np.int32, "f": np.float32}
    as_jax = lambda leaf: leaf.astype(kinds.get(leaf.dtype.kind, leaf.dtype))  # noqa: E731
    return jax.tree.map(lambda leaf: as_jax(np.asarray(leaf)), info)


def _entry(space: Any, part: str, gymnasium: Any) -> Any:
    """The space of what is seen: a part where observations are dictionaries."""
    if not isinstance(space, gymnasium.spaces.Dict):
        require("GymnasiumEnvironments", "part", "'' where observations are no dictionaries", part, lambda p: not p)
        return space
    arrays = [name for name, one in space.spaces.items() if isinstance(one, gymnasium.spaces.Box)]
    rule = f"one of the arrays {', '.join(map(repr, arrays))}, for observations are dictionaries"
    remedy = "To see several at once, wrap the environment in gymnasium.wrappers.FlattenObservation."
    require("GymnasiumEnvironments", "part", rule, part, lambda p: p in arrays, remedy)
    return space[part]


def _space(space: Any, gymnasium: Any, what: str) -> loops.Box | loops.Discrete:
    if isinstance(space, gymnasium.spaces.Discrete) and what == "action" and int(space.start) == 0:
        return loops.Discrete(int(space.n))
    if isinstance(space, gymnasium.spaces.Box):
        return loops.Box(tuple(space.shape), float(np.min(space.low)), float(np.max(space.high)), str(space.dtype))
    wrapper = {"observation": "FlattenObservation", "action": "TransformAction"}[what]
    rule = {"observation": "a Box", "action": "a Box, or Discrete from 0 on"}[what]
    remedy = f"Wrap the environment, e.g. in gymnasium.wrappers.{wrapper}, before it is handed over."
    raise TypeError(f"GymnasiumEnvironments.{what}_space must be {rule}; got {space}. {remedy}")
