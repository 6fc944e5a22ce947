"""Episodes with unperturbed parameters: for the methods that differentiate, and for the centre of truncated ES."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import as_key, require
from laureate.gradients.episodes import (
    Episode,
    Horizon,
    as_horizon,
    check_episodes,
    draw_length,
    ends_inside,
    in_lockstep,
    is_count,
    new_episode,
    run_on,
    step_key,
)
from laureate.gradients.noise import wide
from laureate.gradients.reports import EstimatorState, Info, all_finite, as_cost, checked, status_of, unused_key
from laureate.gradients.unroll import (
    adopt,
    advance,
    as_theta,
    begin,
    check_batches,
    check_unroll,
    loss_dtype,
    placeholder,
)


class Report(NamedTuple):
    """What a worker saw in one truncation: its loss, the unroll's own losses over how many steps, episodes ended."""

    loss: Array
    level: Array
    alive: Array
    done: Array


def no_report(theta: Any) -> Report:
    """Before the first step."""
    zero, none = jnp.zeros((), loss_dtype(theta)), jnp.zeros((), jnp.int32)
    return Report(zero, zero, none, none)


def unstarted_worker(est: Any, key: Array, theta: Any) -> Episode:
    """A worker marked as over, so that the next step begins its first episode."""
    start = placeholder(est.unroll, key, theta)
    none = jnp.asarray(0, jnp.int32)
    episode = new_episode(key, lambda _: start, lambda _: none, jnp.zeros((), loss_dtype(theta)))
    return replace(episode, clock=jnp.asarray(-1, jnp.int32), over=jnp.asarray(True))


def restart_worker(est: Any, key: Array, theta: Any, episode: Episode, has_done: bool) -> Episode:
    """A new episode from init(θ)."""
    grain = 1 if ends_inside(est.window, est.horizon, has_done) else est.window
    return new_episode(
        key,
        lambda k: begin(est.unroll, k, theta),
        lambda k: draw_length(k, est.horizon, est.phase, grain, episode.clock < 0),
        jnp.zeros_like(episode.previous),
    )


def step_on(
    est: Any, before: Episode, inner: Any, level: Array, done: Array, report: Report, *, masked: bool
) -> tuple[Episode, Report]:
    """The worker after an inner step, and the step entered into the report."""
    after, loss, alive = run_on(before, inner, level, done, telescope=est.telescope, masked=masked)
    level = jnp.where(alive, level, jnp.zeros_like(level)) if masked else level
    ended = (after.over & ~before.over).astype(jnp.int32)
    alive = alive.astype(jnp.int32)
    return after, Report(report.loss + loss, report.level + level, report.alive + alive, report.done + ended)


def run_worker(
    est: Any, key: Array, theta: Any, episode: Episode, batches: Any, has_done: bool
) -> tuple[Episode, Report]:
    """One worker through one truncation; differentiable in theta, through a start inside it too."""
    unaligned = ends_inside(est.window, est.horizon, has_done)
    inside = unaligned and est.begins_inside

    def restarted(episode, k):
        fresh = lambda e: restart_worker(est, jax.random.fold_in(key, k), theta, e, has_done)  # noqa: E731
        return jax.lax.cond(episode.over, fresh, lambda e: e, episode)

    def body(carry, x):
        episode, report = carry
        k, batch = x
        episode = restarted(episode, k) if inside else episode
        inner, level, done = advance(est.unroll, step_key(episode), theta, episode.inner, batch)
        return step_on(est, episode, inner, level, done, report, masked=unaligned), None

    episode = episode if inside else restarted(episode, 0)
    steps = (jnp.arange(est.window), batches)
    return jax.lax.scan(body, (episode, no_report(theta)), steps, length=est.window)[0]


def center_key(est: Any, key: Array) -> Array:
    """The key of the one unperturbed episode beside the pairs: the index after all that the pairs may use in a step."""
    index = 2 * est.window * est.num_pairs
    key = jax.random.fold_in(key, index // 2**31) if index >= 2**31 else key
    return jax.random.fold_in(key, index % 2**31)


def center_data(est: Any, batches: Any) -> Any:
    """Its data: the shared batches, or those of the first pair."""
    return jax.tree.map(lambda leaf: leaf[:, 0], batches) if est.batches_per_pair else batches


def mean_over_workers(gradients: Any, report: Report, cost: int) -> tuple[Any, Info, Array]:
    """The mean gradient of the workers whose loss and gradient are finite, the info, and which these are."""
    finite = jnp.isfinite(report.loss)
    for leaf in jax.tree.leaves(gradients):
        finite = finite & jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim)))
    count = jnp.sum(finite, dtype=jnp.int32)

    def mean(leaf):
        kept = jnp.where(finite.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, jnp.zeros_like(leaf)).astype(wide(leaf))
        return (kept.sum(axis=0) / jnp.maximum(count, 1).astype(kept.dtype)).astype(leaf.dtype)

    gradient = jax.tree.map(mean, gradients)
    usable = (count > 0) & all_finite(gradient)
    level = jnp.sum(jnp.where(finite, report.level, jnp.zeros_like(report.level)))
    alive = jnp.sum(jnp.where(finite, report.alive, jnp.zeros_like(report.alive)), dtype=jnp.int32)
    info = Info(
        loss=level / jnp.maximum(alive, 1).astype(level.dtype),
        cost=as_cost(cost),
        status=status_of(usable),
        num_nonfinite=finite.size - count,
        num_done=jnp.sum(report.done, dtype=jnp.int32),
    )
    return jax.tree.map(lambda leaf: jnp.where(usable, leaf, jnp.zeros_like(leaf)), gradient), info, finite


class Workers(eqx.Module):
    """The settings and the round of every estimator that differentiates; see ``TruncatedBackprop`` for the meaning."""

    unroll: Any = eqx.field(converter=adopt)
    truncation: int = eqx.field(static=True, kw_only=True)
    horizon: Horizon = eqx.field(static=True, kw_only=True, converter=as_horizon)
    num_workers: int = eqx.field(static=True, kw_only=True, default=1)
    phase: str = eqx.field(static=True, kw_only=True, default="lockstep")
    telescope: bool = eqx.field(static=True, kw_only=True, default=False)
    batches_per_worker: bool = eqx.field(static=True, kw_only=True, default=False)
    checked: bool = eqx.field(static=True, kw_only=True, default=False)

    def __check_init__(self):
        owner = type(self).__name__
        require(owner, "num_workers", "an integer >= 1", self.num_workers, is_count)
        require(owner, "telescope", "True or False", self.telescope, lambda t: isinstance(t, bool))
        check_episodes(owner, self.truncation, self.horizon, self.phase, "inside", self.telescope)

    @property
    def window(self) -> int:
        """Inner steps of one ``step``."""
        return self.truncation

    @property
    def begins_inside(self) -> bool:
        """A new episode begins as soon as the old one is over."""
        return True

    @abstractmethod
    def unstarted(self, key: Array, theta: Any) -> Any:
        """A worker before its first episode."""

    @abstractmethod
    def episode_of(self, worker: Any) -> Episode:
        """A worker's episode."""

    @abstractmethod
    def check_state(self, theta: Any, workers: Any) -> None:
        """Raise where the state was built for another theta."""

    @abstractmethod
    def differentiate(self, key: Array, theta: Any, worker: Any, batches: Any, has_done: bool) -> Any:
        """One worker's gradient over a truncation, the worker after it, and its report."""

    def init(self, key: Array, theta: Any) -> EstimatorState:
        """The state before the first step. Episodes begin in the first step."""
        theta, key = as_theta(type(self).__name__, theta), as_key(key)
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(self.num_workers))
        workers = jax.vmap(lambda k: self.unstarted(k, theta))(keys)
        return EstimatorState(center=workers, last_key=unused_key(self, key))

    def step(self, key: Array, theta: Any, state: EstimatorState, batches: Any = None) -> tuple[Any, Any, Info]:
        """The gradient from the next ``truncation`` inner steps, the next state, and an ``Info``.

        key: a fresh one for every step.
        theta: the parameters now; any pytree of floats.
        batches: None, or data for the unroll's steps with leading axis [truncation], or [truncation, num_workers] with
            ``batches_per_worker=True``.
        """
        owner = type(self).__name__
        theta, key = as_theta(owner, theta), as_key(key)
        self.check_state(theta, state.center)
        leading = (self.truncation, self.num_workers) if self.batches_per_worker else (self.truncation,)
        meaning = "truncation, workers" if self.batches_per_worker else "truncation"
        has_done = check_unroll(self.unroll, theta, check_batches(owner, batches, leading, meaning))
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(self.num_workers))
        run = lambda k, worker, data: self.differentiate(k, theta, worker, data, has_done)  # noqa: E731
        run = jax.vmap(run, in_axes=(0, 0, 1 if self.batches_per_worker else None))
        gradients, workers, report = run(keys, state.center, batches)
        gradient, info, finite = mean_over_workers(gradients, report, self.num_workers * self.truncation)
        if not in_lockstep(self.horizon, self.phase, has_done):  # a worker that blew up begins anew
            over = lambda workers: self.episode_of(workers).over  # noqa: E731
            workers = eqx.tree_at(over, workers, over(workers) | ~finite)
        gradient, last_key = checked(self, key, gradient, state, info)
        return gradient, EstimatorState(center=workers, last_key=last_key), info
