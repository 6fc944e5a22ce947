"""Real-time recurrent learning: the exact gradient, forwards."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from laureate.gradients.episodes import Episode, ends_inside, run_on
from laureate.gradients.unroll import advance, loss_dtype
from laureate.gradients.workers import Report, Workers, restart_worker, unstarted_worker

__all__ = ["RTRL"]


class Sensitive(eqx.Module):
    """An episode and how its state depends on theta.

    sensitivity: ds_t/dθ of the floating leaves of the inner state, theta's flat axis leading.
    slope: dL_{t−1}/dθ, for telescoping losses.
    """

    episode: Episode
    sensitivity: Any
    slope: Array


class RTRL(Workers):
    """RTRL."""

    def unstarted(self, key: Array, theta: Any) -> Sensitive:
        """A worker before its first episode."""
        episode = unstarted_worker(self, key, theta)
        size = ravel_pytree(theta)[0].size
        floats = eqx.filter(episode.inner, eqx.is_inexact_array)
        sensitivity = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape), leaf.dtype), floats)
        return Sensitive(episode, sensitivity, jnp.zeros(size, loss_dtype(theta)))

    def episode_of(self, worker: Sensitive) -> Episode:
        """The worker's episode."""
        return worker.episode

    def check_state(self, theta: Any, workers: Sensitive) -> None:
        """Raise where the state was built for a theta of another size."""
        size = sum(leaf.size for leaf in jax.tree.leaves(theta))
        if workers.slope.shape[-1] != size:
            raise ValueError(
                f"RTRL.step: the state was built for theta with {workers.slope.shape[-1]} numbers; got {size}. Call init again."
            )

    def differentiate(
        self, key: Array, theta: Any, worker: Sensitive, batches: Any, has_done: bool
    ) -> tuple[Any, Sensitive, Report]:
        """Σ_k dL_k/dθ of one worker in this truncation, with all of the episode's past."""
        flat, unravel = ravel_pytree(theta)
        directions = jnp.eye(flat.size, dtype=flat.dtype)
        dtype = loss_dtype(theta)
        unaligned = ends_inside(self.window, self.horizon, has_done)

        def fresh(worker, k):
            def start(flat):
                episode = restart_worker(self, jax.random.fold_in(key, k), unravel(flat), worker.episode, has_done)
                floats, rest = eqx.partition(episode.inner, eqx.is_inexact_array)
                return floats, (rest, eqx.tree_at(lambda e: e.inner, episode, None))

            floats, tangent, (rest, episode) = jax.linearize(start, flat, has_aux=True)
            episode = Episode(eqx.combine(floats, rest), *jax.tree.leaves(episode))
            return Sensitive(episode, jax.vmap(tangent)(directions), jnp.zeros_like(worker.slope))

        def restarted(worker, k):
            return jax.lax.cond(worker.episode.over, lambda w: fresh(w, k), lambda w: w, worker)

        def body(carry, x):
            worker, gradient, report = carry
            k, batch = x
            if unaligned:
                worker = restarted(worker, k)
            before = worker.episode
            floats, rest = eqx.partition(before.inner, eqx.is_inexact_array)

            def step(flat, floats):
                step_key = jax.random.fold_in(before.key, before.clock)
                inner, level, done = advance(self.unroll, step_key, unravel(flat), eqx.combine(floats, rest), batch)
                floats, others = eqx.partition(inner, eqx.is_inexact_array)
                return (floats, level), (others, done)

            # ds_{t+1}/dθ = ∂f/∂θ + ∂f/∂s · ds_t/dθ,  dL_t/dθ likewise: one linear map, all directions at once
            (floats, level), tangent, (others, done) = jax.linearize(step, flat, floats, has_aux=True)
            sensitivity, slope = jax.vmap(tangent)(directions, worker.sensitivity)
            after, loss, alive = run_on(
                before, eqx.combine(floats, others), level, done, telescope=self.telescope, masked=unaligned
            )
            gradient = gradient + (slope - worker.slope if self.telescope else slope)
            report = Report(
                report.loss + loss,
                report.level + level,
                report.alive + alive.astype(jnp.int32),
                report.done + (after.over & ~before.over).astype(jnp.int32),
            )
            return (Sensitive(after, sensitivity, slope), gradient, report), None

        if not unaligned:
            worker = restarted(worker, 0)
        zero, none = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
        carry = (worker, jnp.zeros(flat.size, dtype), Report(zero, zero, none, none))
        (worker, gradient, report), _ = jax.lax.scan(body, carry, (jnp.arange(self.window), batches))
        return unravel(gradient.astype(flat.dtype)), worker, report
