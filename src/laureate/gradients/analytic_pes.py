"""PES with the analytic gradient of the current truncation: less variance where the unroll can be differentiated."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import Status, require
from laureate.gradients.antithetic import (
    Antithetic,
    Shard,
    average,
    carried,
    check_step,
    drive,
    is_finite,
    per_leaf,
    reduce,
    unstarted,
)
from laureate.gradients.episodes import ends_inside, where
from laureate.gradients.reports import EstimatorState, Info, checked, unused_key
from laureate.gradients.truncated_es import center_key
from laureate.gradients.workers import run_worker, unstarted_worker

__all__ = ["AnalyticPES"]


class AnalyticPES(Antithetic):
    """pes-a."""

    def __check_init__(self):
        require("AnalyticPES", "phase", "'lockstep'", self.phase, lambda phase: phase == "lockstep")
        require("AnalyticPES", "telescope", "True or False", self.telescope, lambda t: t != "products")
        require(
            "AnalyticPES",
            "horizon",
            f"None or a multiple of truncation ({self.truncation})",
            self.horizon,
            lambda h: not ends_inside(self.truncation, h, False),
            "Its one backpropagated episode runs in step with all pairs; use PersistentES.",
        )

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """The pairs, and one unperturbed episode, the same on every device."""
        return EstimatorState(
            pairs=unstarted(self, key, theta, shard),
            center=unstarted_worker(self, key, theta),
            last_key=unused_key(self, key),
        )

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """``step`` for the pairs of one device."""
        theta, has_done = check_step(self, theta, state.pairs, batches, shard)
        if has_done:
            raise TypeError("AnalyticPES: an unroll that says `done` does not run in lockstep; use PersistentES.")
        shared = jax.tree.map(lambda leaf: leaf[:, 0], batches) if self.batches_per_pair else batches

        def loss(theta):
            center, report = run_worker(self, center_key(self, key), theta, state.center, shared, has_done)
            return report.loss, center

        analytic, center = jax.grad(loss, has_aux=True)(theta)  # a = ∇_θ L_t(θ, s̄)
        past = state.pairs.score
        past = where(state.pairs.episode.over, jax.tree.map(jnp.zeros_like, past), past)  # ξ_{t−1}/σ²
        pairs, tally = drive(self, key, theta, state.pairs, batches, shard, has_done)
        along = [jnp.tensordot(eps, a, a.ndim) for eps, a in zip(*map(jax.tree.leaves, (pairs.noise, analytic)))]
        explained = sum(part.astype(tally.weight.dtype) for part in along)  # ε_t · a
        # g_t = a + 1/(2N) Σ_i ξ_{t−1}/σ² ((L⁺ − ε·a) − (L⁻ + ε·a))
        finite = is_finite(tally)
        weight = jnp.where(finite, tally.weight - 2 * explained, jnp.zeros_like(tally.weight))
        sums = jax.tree.map(lambda score: average(weight, score), past)
        sigma = per_leaf("AnalyticPES", self.sigma, theta)
        cost = (2 * self.num_pairs + 1) * self.window
        gradient, info = reduce(self, sums, sigma, pairs, tally, finite, shard, cost)
        gradient, info = with_analytic(gradient, analytic, info)
        gradient, last_key = checked(self, key, gradient, state, info)
        return gradient, EstimatorState(carried(self, pairs, tally, has_done), center, last_key), info


def with_analytic(gradient: Any, analytic: Any, info: Info) -> tuple[Any, Info]:
    """Add a; where it is not finite there is no estimate, and the status says so."""
    usable = info.status == int(Status.OK)
    for leaf in jax.tree.leaves(analytic):
        usable = usable & jnp.all(jnp.isfinite(leaf))
    gradient = jax.tree.map(lambda g, a: jnp.where(usable, g + a, jnp.zeros_like(g)), gradient, analytic)
    status = jnp.where(usable, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)
    return gradient, eqx.tree_at(lambda i: i.status, info, status)
