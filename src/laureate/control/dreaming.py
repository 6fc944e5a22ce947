"""DreamerV2 in environments that are pure functions: acting, remembering and dreaming in one program."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from laureate import loops
from laureate._core import as_key, require
from laureate.control.dreamer import DreamerInfo, DreamerMemory, DreamerState, DreamerV2
from laureate.control.laws import OneHot
from laureate.control.pixels import RULE, PixelEncoder
from laureate.control.replay import Replay, ReplayState
from laureate.control.world_model import Sequences

__all__ = ["DreamerTraining", "DreamerTrainingInfo", "DreamerTrainingState"]


class DreamerTrainingState(NamedTuple):
    """What the next update needs.

    learner: its state. replay: what was lived. memory: what the agent remembers of every episode. environments: their
    states. row: what each showed last, to be acted on. over: whether its episode ends with that, so that it begins anew
    with the next step. returns: rewards of each one's episode so far.
    """

    learner: DreamerState
    replay: ReplayState
    memory: DreamerMemory
    environments: Any
    row: Sequences
    over: Bool[Array, " environments"]
    returns: Float[Array, " environments"]


class DreamerTrainingInfo(NamedTuple):
    """What an update reports.

    episodes: that ended in its steps. episode_return: their mean sum of rewards; 0 where none ended. learner: of the
    last gradient step, see ``DreamerInfo``. cost: environment steps, beginnings counted. status: the worst.
    """

    episodes: Array
    episode_return: Array
    learner: DreamerInfo
    cost: Array
    status: Array


class DreamerTraining(eqx.Module):
    """An agent in copies of an environment that is a pure function.

    ::

        repeat:  T steps in each of E environments  →  replay;    num_gradients times:  learner ← step(sequences)

    Where an episode has ended, the next step is its environment's ``reset``: one row a step, the last observation of an
    episode too, and so the ends that the model learns to predict.

    environment: with ``reset``, ``step`` and spaces, see ``laureate.loops.Environment``.
    learner: ``DreamerV2``; one-hot actions are handed to the environment as numbers, others from [−1, 1] to its bounds.
    replay: ``Replay``.
    num_environments, num_steps: E and T, >= 1.
    num_gradients: gradient steps an update, >= 1.
    batch: sequences of a gradient step, >= 1.
    num_warmup: updates' worth of steps by the first policy before anything is learned, enough for a sequence.

    >>> from laureate.control import OneHot, make_dreamer
    >>> from laureate.problems.environments import Chain
    >>> agent = make_dreamer(jax.random.key(0), (4,), OneHot(1, 2), latent=OneHot(2, 2), memory=4, width=4, horizon=2)
    >>> training = DreamerTraining(Chain(4), agent, Replay(32, 4), 2, 4, batch=2)
    >>> outcome = training.run(jax.random.key(1), 3)
    >>> outcome.seen.cost.tolist(), int(outcome.status)
    ([8, 8, 8], 0)
    """

    environment: Any
    learner: DreamerV2
    replay: Replay
    num_environments: int = eqx.field(static=True, default=1)
    num_steps: int = eqx.field(static=True, default=16)
    num_gradients: int = eqx.field(static=True, default=1)
    batch: int = eqx.field(static=True, default=16)
    num_warmup: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        for name in ("num_environments", "num_steps", "num_gradients", "batch"):
            require("DreamerTraining", name, ">= 1", getattr(self, name), lambda n: n >= 1)
        least = -(-self.replay.length // self.num_steps)
        rule = f">= {least}, so that num_warmup * num_steps >= replay.length"
        require("DreamerTraining", "num_warmup", rule, self.num_warmup, lambda n: n >= least)
        space, law = self.environment.action_space, self.learner.law
        wanted = space.num if isinstance(space, loops.Discrete) else space.shape[0]
        kind = law.num_classes if isinstance(law, OneHot) else law.num
        discrete = isinstance(space, loops.Discrete) == isinstance(law, OneHot)
        rule = f"of the environment's {wanted} {'choices' if isinstance(space, loops.Discrete) else 'numbers'}"
        one = not isinstance(law, OneHot) or law.num_variables == 1
        require("DreamerTraining", "learner.law", rule, law, lambda _: discrete and one and kind == wanted)
        if not isinstance(space, loops.Discrete):
            bounds, remedy = (space.low, space.high), "Actions within -1 and 1 are stretched to them."
            require("DreamerTraining", "environment.action_space", "bounded", bounds, _finite, remedy)
        seen = self.environment.observation_space
        if isinstance(self.learner.world.encoder, PixelEncoder) and not np.issubdtype(np.dtype(seen.dtype), np.integer):
            bounds, within = (seen.low, seen.high), lambda b: b[0] >= -0.5 and b[1] <= 0.5
            require("DreamerTraining", "environment.observation_space", RULE, bounds, within)

    def init(self, key: Array) -> DreamerTrainingState:
        """Every environment at its start, and the steps of the warm-up."""
        start_key, warm_key = jax.random.split(key)
        number, learner = self.num_environments, self.learner.init()
        environments, seen = jax.vmap(self.environment.reset)(jax.random.split(start_key, number))
        memory, none = self.learner.remember(number), jnp.zeros(number, bool)
        row = Sequences(seen, memory.action, jnp.zeros(number), none, ~none)
        replay = self.replay.init(jax.tree.map(lambda leaf: leaf[None], row))
        replay = self.replay.add(jax.tree.map(lambda leaf: leaf[None], row), replay)
        state = DreamerTrainingState(learner, replay, memory, environments, row, none, jnp.zeros(number))

        def warm(state: DreamerTrainingState, key: Array) -> tuple[DreamerTrainingState, None]:
            return self.collect(key, state)[0], None

        return jax.lax.scan(warm, state, jax.random.split(warm_key, self.num_warmup))[0]

    def collect(self, key: Array, state: DreamerTrainingState) -> tuple[DreamerTrainingState, tuple[Array, Array]]:
        """T steps of every environment into the replay; beside it the episodes that ended and the sum of returns."""

        def move(carry: Any, key: Array) -> tuple[Any, Any]:
            memory, environments, row, over, returns = carry
            act_key, step_key = jax.random.split(key)
            memory = self.learner.act(act_key, row.observation, row.first, memory, state.learner)
            keys = jax.random.split(step_key, self.num_environments)
            environments, row = jax.vmap(self._step_or_reset)(keys, environments, memory.action, over)
            row, ended = row
            returns = jnp.where(over, 0.0, returns) + row.reward
            return (memory, environments, row, ended, returns), (row, ended, jnp.where(ended, returns, 0.0))

        start = state.memory, state.environments, state.row, state.over, state.returns
        carry, (rows, ended, returns) = jax.lax.scan(move, start, jax.random.split(key, self.num_steps))
        replay = self.replay.add(rows, state.replay)
        return DreamerTrainingState(state.learner, replay, *carry), (jnp.sum(ended), jnp.sum(returns))

    def _step_or_reset(self, key: Array, state: Any, action: Array, over: Array) -> tuple[Any, Any]:
        """One environment a step on, or at its beginning where its episode was over."""
        step_key, reset_key = jax.random.split(key)
        reached, timestep = self.environment.step(step_key, state, self.decode(action))
        begun, beginning = self.environment.reset(reset_key)
        choose = lambda new, old: jnp.where(over, new, old)  # noqa: E731
        going = ~over
        row = Sequences(
            choose(beginning, timestep.observation),
            jnp.where(over, 0.0, jax.lax.stop_gradient(action)),
            jnp.where(over, 0.0, timestep.reward),
            timestep.terminated & going,
            over,
        )
        return jax.tree.map(choose, begun, reached), (row, (timestep.terminated | timestep.truncated) & going)

    def decode(self, action: Float[Array, " actions"]) -> Array:
        """An action as the environment takes it."""
        if isinstance(self.learner.law, OneHot):
            return jnp.argmax(action).astype(jnp.int32)
        space = self.environment.action_space
        return space.low + 0.5 * (action + 1) * (space.high - space.low)

    def step(self, key: Array, state: DreamerTrainingState) -> tuple[DreamerTrainingState, DreamerTrainingInfo]:
        """T steps in every environment, then the gradient steps."""
        live_key, learn_key = jax.random.split(key)
        state, (episodes, total) = self.collect(live_key, state)

        def learn(learner: DreamerState, key: Array) -> tuple[DreamerState, DreamerInfo]:
            sample_key, step_key = jax.random.split(key)
            return self.learner.step(step_key, self.replay.sample(sample_key, self.batch, state.replay), learner)

        learner, told = jax.lax.scan(learn, state.learner, jax.random.split(learn_key, self.num_gradients))
        last = jax.tree.map(lambda leaf: leaf[-1], told)
        cost, mean = jnp.asarray(self.num_steps * self.num_environments), total / jnp.maximum(episodes, 1)
        info = DreamerTrainingInfo(episodes, mean, last, cost, jnp.max(told.status))
        return state._replace(learner=learner), info

    def run(
        self,
        key: Array,
        num_updates: int,
        *,
        progress: Callable[[loops.Progress], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> loops.Outcome:
        """``num_updates`` updates in one program; ``outcome.seen`` has a ``DreamerTrainingInfo`` of every update.

        key: the whole run's; update u uses a key made from u alone. progress, checkpoint: see ``laureate.loops.run``;
        the same call again, or one for more updates, goes on from the checkpoint. Within jit and vmap one scan.
        """
        init_key, run_key = jax.random.split(key)
        updates = _Updates(self, jax.random.key_data(run_key))
        start = eqx.filter_jit(self.init)(init_key)
        return loops.run(updates, start, num_updates, progress=progress, checkpoint=checkpoint)


def _finite(bounds: tuple[float, float]) -> bool:
    return bool(np.isfinite(bounds).all())


class _Updates(eqx.Module):
    """``step(state, index)`` of a run, with its numbers as leaves."""

    training: DreamerTraining
    bits: Array

    def __call__(self, state: DreamerTrainingState, index: Array) -> tuple[DreamerTrainingState, DreamerTrainingInfo]:
        return self.training.step(jax.random.fold_in(as_key(self.bits), index), state)
