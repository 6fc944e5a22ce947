"""Persistent evolution strategies: an unbiased gradient every few steps of a very long unroll."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from laureate.gradients.antithetic import Antithetic, carried, check_step, estimate, finish
from laureate.gradients.noise import Shard
from laureate.gradients.pairs import EVERY_TRUNCATION, run_pairs, unstarted_pairs
from laureate.gradients.reports import EstimatorState, Info, unused_key

__all__ = ["PersistentES"]


class PersistentES(Antithetic):
    """PES: one evolution-strategies update every K inner steps, without the bias of truncation.

    For parameters that drive a long computation (a learned optimiser, a schedule of hyper-parameters, a recurrent
    network, a policy), where backpropagation through all T steps is too long or too chaotic, and truncated methods are
    blind to all effects beyond K steps. Nothing need be differentiable. Every particle keeps its state from one
    truncation to the next, and is weighted with the sum of all the noise it has met in its episode::

        g_t = 1/(2 N σ²) Σ_i ξ_t⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾),    ξ_t = Σ_{τ≤t} ε_τ,   ε_τ ~ N(0, σ²) anew each truncation

    where L_t sums the losses of truncation t, so that the g_t of an episode add up (θ held still) to an unbiased
    estimate of the gradient of its smoothed total loss. Its variance is small when the gradients of the truncations
    agree, and grows with T/K times the number of parameters when they cancel; ``NoiseReuseES`` then does better.

    Paul Vicol, Luke Metz and Jascha Sohl-Dickstein: Unbiased Gradient Estimation in Unrolled Computation Graphs with
    Persistent Evolution Strategies. ICML 2021 (outstanding paper).

    unroll: the recurrence, see ``Unroll``.
    num_pairs: N >= 1 antithetic pairs, that is 2N particles. Memory: N times (two inner states and one theta).
    truncation: K >= 1 inner steps an update.
    horizon: T >= K inner steps an episode; (low, high) draws each episode's length log-uniformly; None leaves the end
        to the unroll's ``done``. T need not be a multiple of K.
    sigma: standard deviation of the noise, > 0: a scalar, or a tree like theta (scalars or arrays). Larger smooths the
        loss more, smaller raises the variance where losses are noisy. A new value compiles nothing, and takes effect
        at the next draw of noise, also inside an episode.
    phase: "lockstep" (all episodes begin together) or "random" (the first episodes are cut to random lengths, so that
        every update sees all parts of an episode). Random is better for training: updates are then alike.
    telescope: False: losses are added up. True: the unroll gives levels, and only the last one of an episode counts
        (Σ_t (L_t − L_{t−1}) ξ_t). "products": the same in expectation, as Σ_t (L_t ξ_t − L_{t−1} ξ_{t−1}).
    restart: "inside" (an episode that ends inside a truncation is followed by the next at once) or "border" (the pair
        waits, which costs steps but calls ``init`` once a truncation only; T must then be a multiple of K).
    batches_per_pair: whether batches have a second axis, of pairs.
    noise: "gaussian".
    checked: raise for non-finite losses and for a key given twice running, instead of reporting in ``Info``.

    If the two signs of a pair end at different steps (by ``done``), who ends first waits with zero loss, and both begin
    anew together. A pair with a non-finite loss is left out of the mean, counted, and begins anew; in lockstep it waits
    for the common end. An episode that follows a ``done`` inside a truncation gets noise of its own: the old noise had
    a part in the ending, and keeping it would bias the estimate.

    The gradient is biased to first order in (outer step size × T/K), for the states have seen older parameters.

    >>> import equinox as eqx, jax, jax.numpy as jnp, optax
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta["push"]
    ...         return state, state**2
    >>> estimator = PersistentES(Decay(), num_pairs=500, truncation=5, horizon=50, sigma=0.1)
    >>> theta, optimiser = {"push": jnp.asarray(0.3)}, optax.adam(0.02)
    >>> state, memory = estimator.init(jax.random.key(0), theta), optimiser.init(theta)
    >>> step = eqx.filter_jit(estimator.step)
    >>> for i in range(3):
    ...     gradient, state, info = step(jax.random.key(i), theta, state)
    ...     updates, memory = optimiser.update(gradient, memory)
    ...     theta = optax.apply_updates(theta, updates)
    >>> int(info.cost), round(float(theta["push"]), 2)
    (5000, 0.24)
    """

    whole_episodes: ClassVar[bool] = False
    has_center: ClassVar[bool] = False

    @property
    def redraw_every(self) -> int | None:
        """When: ε_t ~ N(0, σ²) anew at the start of every truncation."""
        return EVERY_TRUNCATION

    def accumulate(self, past: Any, drawn: Any) -> Any:
        """How: ξ_t = ξ_{t−1} + ε_t, which is 0 + ε_t in the first truncation of an episode."""
        return jax.tree.map(jnp.add, past, drawn)

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """The pairs of one device, before their first episodes."""
        return EstimatorState(pairs=unstarted_pairs(self, key, theta, shard), last_key=unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """One truncation of the pairs of one device."""
        theta, has_done = check_step(self, theta, state.pairs, batches, shard)
        # ε_t ~ N(0, σ²) for every pair, ξ_t = ξ_{t−1} + ε_t, and new episodes (with ξ_t = ε_t) for those that ended;
        # then K inner steps: s⁺ with θ + ε and s⁻ with θ − ε, on the same keys and data; L_t⁺ and L_t⁻ sum their losses
        pairs, tally = run_pairs(self, key, theta, state.pairs, batches, shard, has_done)
        # g_t = 1/(2 N σ²) Σ_i ξ_t⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾)
        gradient, info = estimate(self, theta, pairs, tally, shard)
        return finish(self, key, gradient, info, state, pairs=carried(self, pairs, tally, has_done))
