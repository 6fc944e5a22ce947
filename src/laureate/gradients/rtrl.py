"""Real-time recurrent learning: the exact gradient, carried forwards."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from laureate.gradients.episodes import Episode, ends_inside, step_key
from laureate.gradients.unroll import advance, loss_dtype
from laureate.gradients.workers import Report, Workers, no_report, restart_worker, step_on, unstarted_worker

__all__ = ["RTRL"]


class Sensitive(eqx.Module):
    """An episode and how its state depends on theta.

    sensitivity: ds_t/dθ of the floating leaves of the inner state, with theta's flat axis leading.
    slope: dL_{t−1}/dθ, for telescoping losses.
    """

    episode: Episode
    sensitivity: Any
    slope: Array


class RTRL(Workers):
    """RTRL: the exact gradient of the whole unroll in every update, for small systems.

    For checking the other estimators, and for real use where the state times the parameters fits in memory: time and
    memory grow with P = |θ| times the inner step's. It carries the sensitivity J_t = ds_t/dθ forwards::

        J_{t+1} = ∂f/∂θ + ∂f/∂s · J_t,      g_t = Σ_{k in truncation t} (∂L_k/∂θ + ∂L_k/∂s · J_k)

    With θ held still, the g_t of an episode add up to the exact gradient of its total loss.

    Ronald Williams and David Zipser: A Learning Algorithm for Continually Running Fully Recurrent Neural Networks.
    Neural Computation 1, 1989.

    The arguments are those of ``TruncatedBackprop``; ``Info.cost`` counts inner steps, each of which does the work of
    about 1 + P.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Sum:
    ...     def init(self, key, theta):
    ...         return jnp.zeros(())
    ...     def step(self, key, theta, state):
    ...         return state + theta, state + theta
    >>> estimator = RTRL(Sum(), truncation=1, horizon=3)
    >>> theta, total = jnp.asarray(2.0), 0.0
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> step = eqx.filter_jit(estimator.step)
    >>> for i in range(3):
    ...     gradient, state, info = step(jax.random.key(i), theta, state)
    ...     total += float(gradient)
    >>> total  # d/dθ (θ + 2θ + 3θ)
    6.0
    """

    def unstarted(self, key: Array, theta: Any) -> Sensitive:
        """A worker before its first episode."""
        episode = unstarted_worker(self, key, theta)
        size = ravel_pytree(theta)[0].size
        floats = eqx.filter(episode.inner, eqx.is_inexact_array)
        sensitivity = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape), leaf.dtype), floats)
        return Sensitive(episode, sensitivity, jnp.zeros(size, loss_dtype(theta)))

    def episode_of(self, worker: Sensitive) -> Episode:
        """A worker's episode."""
        return worker.episode

    def check_state(self, theta: Any, workers: Sensitive) -> None:
        """Raise where the state was built for a theta of another size."""
        built, size = workers.slope.shape[-1], sum(leaf.size for leaf in jax.tree.leaves(theta))
        if built != size:
            raise ValueError(
                f"RTRL.step: the estimator state was built for theta with {built} numbers; got {size}. Call init again."
            )

    def differentiate(
        self, key: Array, theta: Any, worker: Sensitive, batches: Any, has_done: bool
    ) -> tuple[Any, Sensitive, Report]:
        """Σ_k dL_k/dθ of one worker in this truncation, with all of the episode's past."""
        flat, unravel = ravel_pytree(theta)
        directions = jnp.eye(flat.size, dtype=flat.dtype)
        unaligned = ends_inside(self.window, self.horizon, has_done)

        def fresh(worker, k):
            def start(flat):
                own = jax.random.fold_in(key, k)
                episode = restart_worker(self, own, unravel(flat), worker.episode, has_done)
                floats, rest = eqx.partition(episode.inner, eqx.is_inexact_array)
                return floats, replace(episode, inner=rest)

            floats, tangent, episode = jax.linearize(start, flat, has_aux=True)
            episode = replace(episode, inner=eqx.combine(floats, episode.inner))
            return Sensitive(episode, jax.vmap(tangent)(directions), jnp.zeros_like(worker.slope))

        def restarted(worker, k):
            return jax.lax.cond(worker.episode.over, lambda w: fresh(w, k), lambda w: w, worker)

        def body(carry, x):
            worker, gradient, report = carry
            k, batch = x
            worker = restarted(worker, k) if unaligned else worker
            before = worker.episode
            floats, rest = eqx.partition(before.inner, eqx.is_inexact_array)

            def step(flat, floats):
                own = step_key(before)
                inner, level, done = advance(self.unroll, own, unravel(flat), eqx.combine(floats, rest), batch)
                floats, others = eqx.partition(inner, eqx.is_inexact_array)
                return (floats, level), (others, done)

            # J_{t+1} = ∂f/∂θ + ∂f/∂s · J_t, and dL_t/dθ likewise: one linear map applied to all directions at once
            (floats, level), tangent, (others, done) = jax.linearize(step, flat, floats, has_aux=True)
            sensitivity, slope = jax.vmap(tangent)(directions, worker.sensitivity)
            inner = eqx.combine(floats, others)
            after, report = step_on(self, before, inner, level, done, report, masked=unaligned)
            gradient = gradient + (slope - worker.slope if self.telescope else slope)
            return (Sensitive(after, sensitivity, slope), gradient, report), None

        worker = worker if unaligned else restarted(worker, 0)
        carry = (worker, jnp.zeros(flat.size, loss_dtype(theta)), no_report(theta))
        steps = (jnp.arange(self.window), batches)
        (worker, gradient, report), _ = jax.lax.scan(body, carry, steps, length=self.window)
        return unravel(gradient.astype(flat.dtype)), worker, report
