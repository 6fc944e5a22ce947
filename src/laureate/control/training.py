"""Training in environments that are pure functions: many at once, whole runs compiled, resumable."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate import loops
from laureate._core import as_key, require
from laureate.control.exploration import BonusPPO, BonusPPOInfo, BonusPPOState
from laureate.control.ppo import Rollout
from laureate.control.rnd import BonusWarning

__all__ = ["Training", "TrainingInfo", "TrainingState"]

COLLAPSED = 1e-12  # of the variance of the bonus's returns


class TrainingState(NamedTuple):
    """What the next update needs.

    learner: its state. environments: their states. observation: what is seen of each, to be acted on. returns: rewards
    of each one's episode so far, [environments].
    """

    learner: BonusPPOState
    environments: Any
    observation: Array
    returns: Float[Array, " environments"]


class TrainingInfo(NamedTuple):
    """What an update reports.

    episodes: that ended in its rollout. episode_return: their mean sum of rewards; 0 where none ended. best: the
    largest reward of a step. learner: see ``BonusPPOInfo``. cost: environment steps. status: the learner's.
    """

    episodes: Array
    episode_return: Array
    best: Array
    learner: BonusPPOInfo
    cost: Array
    status: Array


class Training(eqx.Module):
    """An agent in many copies of an environment that is a pure function.

    ::

        repeat:  T steps in each of E environments with π  ←  collect;    π, bonus  ←  learner.step(rollout)

    environment: with ``reset``, ``step`` and spaces, see ``laureate.loops.Environment``.
    learner: ``BonusPPO``.
    num_environments: E, >= 1, a multiple of ``learner.num_minibatches``.
    num_steps: T of a rollout, >= 1.
    num_warmup: rollouts of the first policy, for the statistics of observations alone; >= 1 with a bonus.

    >>> from laureate.control import PPO, make_actor_critic, make_rnd, Categorical
    >>> from laureate.problems.environments import Chain
    >>> network = make_actor_critic(jax.random.key(0), 5, 2, width=8)
    >>> ppo = PPO(network, Categorical(2), gamma=(0.99, 0.9), episodic=(1, 0))
    >>> learner = BonusPPO(ppo, make_rnd(jax.random.key(1), 5, width=8), num_minibatches=1)
    >>> outcome = Training(Chain(5), learner, num_environments=2, num_steps=4).run(jax.random.key(2), 3)
    >>> outcome.seen.cost.tolist(), int(outcome.status)
    ([8, 8, 8], 0)
    """

    environment: Any
    learner: BonusPPO
    num_environments: int = eqx.field(static=True, default=16)
    num_steps: int = eqx.field(static=True, default=128)
    num_warmup: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        for name in ("num_environments", "num_steps"):
            require("Training", name, ">= 1", getattr(self, name), lambda n: n >= 1)
        parts = self.learner.num_minibatches
        rule = f"a multiple of learner.num_minibatches = {parts}"
        require("Training", "num_environments", rule, self.num_environments, lambda n: n % parts == 0)
        least = 0 if self.learner.bonus is None else 1
        require("Training", "num_warmup", f">= {least}", self.num_warmup, lambda n: n >= least)

    def init(self, key: Array) -> TrainingState:
        """Every environment at its start, and the statistics of the warm-up."""
        start_key, warm_key = jax.random.split(key)
        keys = jax.random.split(start_key, self.num_environments)
        environments, observation = jax.vmap(self.environment.reset)(keys)
        learner = self.learner.init(observation[0], self.num_environments)
        state = TrainingState(learner, environments, observation, jnp.zeros(self.num_environments))
        if self.learner.bonus is None or not self.num_warmup:
            return state

        def warm(state: TrainingState, key: Array) -> tuple[TrainingState, None]:
            rollout, _, state = self.collect(key, state)
            return state._replace(learner=self.learner.observe(rollout, state.learner)), None

        return jax.lax.scan(warm, state, jax.random.split(warm_key, self.num_warmup))[0]

    def collect(self, key: Array, state: TrainingState) -> tuple[Rollout, tuple[Array, Array], TrainingState]:
        """A rollout with the policy as it is; beside it the number of episodes that ended and the sum of returns."""

        def move(carry: TrainingState, key: Array) -> tuple[TrainingState, Any]:
            act_key, step_key = jax.random.split(key)
            action, log_probability = self.learner.act(act_key, carry.observation, carry.learner)
            keys = jax.random.split(step_key, self.num_environments)
            one = lambda key, state, action: loops.step_or_reset(key, self.environment, state, action)  # noqa: E731
            environments, observation, timestep = jax.vmap(one)(keys, carry.environments, action)
            ended = timestep.terminated | timestep.truncated
            returns = carry.returns + timestep.reward
            row = (carry.observation, action, log_probability, timestep.observation, timestep.reward)
            row += (timestep.terminated, ended, jnp.where(ended, returns, 0.0))
            carry = TrainingState(carry.learner, environments, observation, jnp.where(ended, 0.0, returns))
            return carry, row

        state, (*rows, returns) = jax.lax.scan(move, state, jax.random.split(key, self.num_steps))
        rollout = Rollout(*rows, state.observation)  # pyright: ignore[reportCallIssue]
        return rollout, (jnp.sum(rollout.ended), jnp.sum(returns)), state

    def step(self, key: Array, state: TrainingState) -> tuple[TrainingState, TrainingInfo]:
        """One rollout and one update."""
        collect_key, learn_key = jax.random.split(key)
        rollout, (episodes, total), state = self.collect(collect_key, state)
        learner, info = self.learner.step(learn_key, rollout, state.learner)
        mean = total / jnp.maximum(episodes, 1)
        told = TrainingInfo(episodes, mean, jnp.max(rollout.reward), info, info.cost, info.status)
        return state._replace(learner=learner), told

    def run(
        self,
        key: Array,
        num_updates: int,
        *,
        progress: Callable[[loops.Progress], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> loops.Outcome:
        """``num_updates`` updates in one program; ``outcome.seen`` has a ``TrainingInfo`` of every update.

        key: the whole run's; update u uses a key made from u alone. progress, checkpoint: see ``laureate.loops.run``;
        the same call again, or one for more updates, goes on from the checkpoint. Within jit and vmap one scan.
        """
        init_key, run_key = jax.random.split(key)
        updates = _Updates(self, jax.random.key_data(run_key))
        start = eqx.filter_jit(self.init)(init_key)
        outcome = loops.run(updates, start, num_updates, progress=progress, checkpoint=checkpoint)
        warn_if_collapsed(self.learner, outcome.state.learner)
        return outcome


class _Updates(eqx.Module):
    """``step(state, index)`` of a run, with its numbers as leaves."""

    training: Training
    bits: Array

    def __call__(self, state: TrainingState, index: Array) -> tuple[TrainingState, TrainingInfo]:
        return self.training.step(jax.random.fold_in(as_key(self.bits), index), state)


def warn_if_collapsed(learner: BonusPPO, state: BonusPPOState) -> None:
    """Where a run has ended with a bonus that says nothing any more, say so."""
    if state.scale is None or isinstance(state.scale.filtered, Tracer) or not int(state.scale.returns.count):
        return
    if float(state.scale.returns.variance()) < COLLAPSED:
        said = "BonusPPO.bonus has collapsed: its deviation is below 1e-6. The predictor has converged, and the bonus "
        warnings.warn(said + "says nothing any more.", BonusWarning, stacklevel=3)
