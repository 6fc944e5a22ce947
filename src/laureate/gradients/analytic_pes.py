"""PES with the analytic gradient of the current truncation: less variance where the unroll can be differentiated."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require
from laureate.gradients.antithetic import (
    Antithetic,
    carried,
    check_step,
    finish,
    is_finite,
    mean_over_pairs,
    weighted_sum,
)
from laureate.gradients.episodes import ends_inside, is_count, where
from laureate.gradients.noise import Shard, widen
from laureate.gradients.pairs import EVERY_TRUNCATION, run_pairs, unstarted_pairs
from laureate.gradients.reports import EstimatorState, Info, unused_key
from laureate.gradients.workers import center_data, center_key, run_worker, unstarted_worker

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

    whole_episodes: ClassVar[bool] = False
    has_center: ClassVar[bool] = True

    def __check_init__(self):
        require("AnalyticPES", "truncation", "an integer >= 1", self.truncation, is_count)
        remedy = "Its one backpropagated episode runs in step with all pairs; PersistentES has no such limit."
        require("AnalyticPES", "phase", "'lockstep'", self.phase, lambda phase: phase == "lockstep", remedy)
        rule = f"None or a multiple of truncation ({self.truncation})"
        require("AnalyticPES", "horizon", rule, self.horizon, lambda h: not ends_inside(self.window, h, False), remedy)
        require("AnalyticPES", "telescope", "True or False", self.telescope, lambda t: isinstance(t, bool))

    @property
    def redraw_every(self) -> int | None:
        """When: ε_t ~ N(0, σ²) anew at the start of every truncation."""
        return EVERY_TRUNCATION

    def accumulate(self, past: Any, drawn: Any) -> Any:
        """How: ξ_t = ξ_{t−1} + ε_t, which is 0 + ε_t in the first truncation of an episode."""
        return jax.tree.map(jnp.add, past, drawn)

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """The pairs, and one unperturbed episode, the same on every device."""
        pairs, center = unstarted_pairs(self, key, theta, shard), unstarted_worker(self, key, theta)
        return EstimatorState(pairs, center, unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """One truncation of the pairs of one device, and of the unperturbed episode."""
        theta, has_done = check_step(self, theta, state.pairs, batches, shard)
        if has_done:
            raise TypeError("AnalyticPES: an unroll that says `done` does not run in lockstep; use PersistentES.")

        def loss(theta):
            data = center_data(self, batches)
            center, report = run_worker(self, center_key(self, key), theta, state.center, data, has_done)
            return report.loss, center

        analytic, center = jax.grad(loss, has_aux=True)(theta)  # a = ∇_θ L_t(θ, s̄)
        past = where(state.pairs.episode.over, jax.tree.map(jnp.zeros_like, state.pairs.score), state.pairs.score)
        pairs, tally = run_pairs(self, key, theta, state.pairs, batches, shard, has_done)
        dot = lambda eps, a: jnp.tensordot(eps, a, a.ndim).astype(tally.weight.dtype)  # noqa: E731
        along = sum(jax.tree.leaves(jax.tree.map(dot, widen(pairs.noise), widen(analytic))))  # ε_t · a
        weight = jnp.where(is_finite(tally), tally.weight - 2 * along, jnp.zeros_like(tally.weight))
        sums = jax.tree.map(lambda score: weighted_sum(weight, score), past)  # past = ξ_{t−1}/σ², without ε_t
        gradient, info = mean_over_pairs(self, theta, sums, pairs, tally, shard, center=analytic)
        return finish(self, key, gradient, info, state, pairs=carried(self, pairs, tally, has_done), center=center)
