"""PES with the analytic gradient of the current truncation: less variance where the unroll can be differentiated."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import Status, require
from laureate.gradients.antithetic import Antithetic, carried, check_step, is_finite, mean_over_pairs, weighted_sum
from laureate.gradients.episodes import ends_inside, is_count, where
from laureate.gradients.noise import Shard
from laureate.gradients.pairs import drive, unstarted
from laureate.gradients.reports import EstimatorState, Info, checked, status_of, unused_key
from laureate.gradients.truncated_es import center_data, center_key
from laureate.gradients.workers import run_worker, unstarted_worker

__all__ = ["AnalyticPES"]


class AnalyticPES(Antithetic):
    """PES-A: the current truncation's share by backpropagation, the past's by the noise it left behind.

    For unrolls that can be differentiated for K steps but not for T. One more episode runs with unperturbed parameters
    (state s̄), its gradient over the current truncation replaces the noisiest part of PES, and serves as a control
    variate for the rest::

        a   = ∇_θ L_t(θ, s̄)
        g_t = a + 1/(2 N σ²) Σ_i ξ_{t−1}⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾ − 2 ε_t⁽ⁱ⁾·a),    then ξ_t = ξ_{t−1} + ε_t

    Unbiased where the loss is quadratic, otherwise up to the smoothing that a leaves out.

    Paul Vicol, Luke Metz and Jascha Sohl-Dickstein, ICML 2021 (the variant "PES+Analytic").

    The arguments are those of ``PersistentES``. The one backpropagated episode runs in step with all pairs, so phase
    must be "lockstep", horizon a multiple of truncation (or None), and the unroll must not say ``done``. Give data by
    batches: what an unroll draws from its keys differs between the centre and the pairs, and a then explains less.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = AnalyticPES(Decay(), num_pairs=500, truncation=5, horizon=50, sigma=0.1)
    >>> theta = jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> int(info.cost), bool(gradient > 0)
    (5005, True)
    """

    def __check_init__(self):
        require("AnalyticPES", "truncation", "an integer >= 1", self.truncation, is_count)
        remedy = "Its one backpropagated episode runs in step with all pairs; PersistentES has no such limit."
        require("AnalyticPES", "phase", "'lockstep'", self.phase, lambda phase: phase == "lockstep", remedy)
        rule = f"None or a multiple of truncation ({self.truncation})"
        require("AnalyticPES", "horizon", rule, self.horizon, lambda h: not ends_inside(self.window, h, False), remedy)
        require("AnalyticPES", "telescope", "True or False", self.telescope, lambda t: isinstance(t, bool))

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """The pairs, and one unperturbed episode, the same on every device."""
        pairs, center = unstarted(self, key, theta, shard), unstarted_worker(self, key, theta)
        return EstimatorState(pairs, center, unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """``step`` for the pairs of one device."""
        theta, has_done = check_step(self, theta, state.pairs, batches, shard)
        if has_done:
            raise TypeError("AnalyticPES: an unroll that says `done` does not run in lockstep; use PersistentES.")

        def loss(theta):
            data = center_data(self, batches)
            center, report = run_worker(self, center_key(self, key), theta, state.center, data, has_done)
            return report.loss, center

        analytic, center = jax.grad(loss, has_aux=True)(theta)  # a = ∇_θ L_t(θ, s̄)
        past = where(state.pairs.episode.over, jax.tree.map(jnp.zeros_like, state.pairs.score), state.pairs.score)
        pairs, tally = drive(self, key, theta, state.pairs, batches, shard, has_done)
        dot = lambda eps, a: jnp.tensordot(eps, a, a.ndim).astype(tally.weight.dtype)  # noqa: E731
        along = sum(jax.tree.leaves(jax.tree.map(dot, pairs.noise, analytic)))  # ε_t · a
        weight = jnp.where(is_finite(tally), tally.weight - 2 * along, jnp.zeros_like(tally.weight))
        sums = jax.tree.map(lambda score: weighted_sum(weight, score), past)  # past = ξ_{t−1}/σ², without ε_t
        cost = (2 * self.num_pairs + 1) * self.window
        gradient, info = mean_over_pairs(self, theta, sums, pairs, tally, shard, cost)
        gradient, info = with_analytic(gradient, analytic, info)
        gradient, last_key = checked(self, key, gradient, state, info)
        return gradient, EstimatorState(carried(self, pairs, tally, has_done), center, last_key), info


def with_analytic(gradient: Any, analytic: Any, info: Info) -> tuple[Any, Info]:
    """Add a; where it is not finite there is no estimate, and the status says so."""
    usable = info.status == int(Status.OK)
    for leaf in jax.tree.leaves(analytic):
        usable = usable & jnp.all(jnp.isfinite(leaf))
    gradient = jax.tree.map(lambda g, a: jnp.where(usable, g + a, jnp.zeros_like(g)), gradient, analytic)
    return gradient, eqx.tree_at(lambda i: i.status, info, status_of(usable))
