"""Noise-reuse evolution strategies: one noise an episode, many updates from it."""

from typing import Any, ClassVar

from jax import Array

from laureate.gradients.antithetic import Antithetic, carried, check_step, estimate, finish
from laureate.gradients.noise import Shard
from laureate.gradients.pairs import ONCE_AN_EPISODE, run_pairs, unstarted_pairs
from laureate.gradients.reports import EstimatorState, Info, unused_key

__all__ = ["NoiseReuseES"]


class NoiseReuseES(Antithetic):
    """NRES: an update every K inner steps, with the same noise for the whole episode.

    For long unrolls whose truncations' gradients cancel, as with fresh data in every step: the variance, about
    (P+1)‖g‖²/N for P parameters, does not grow with the number of truncations as that of ``PersistentES`` does::

        g_t = 1/(2 N σ²) Σ_i ε⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾),    ε ~ N(0, σ²) once an episode

    Over an episode the g_t add up to the full-unroll ES estimate with the same noise. Use ``phase="random"``, for in
    lockstep all updates of an episode look along the same few directions.

    Oscar Li, James Harrison, Jascha Sohl-Dickstein, Virginia Smith and Luke Metz: Variance-Reduced Gradient Estimation
    via Noise-Reuse in Online Evolution Strategies. NeurIPS 2023. The same idea: Paul Vicol, Zico Kolter and Kevin
    Swersky, Low-Variance Gradient Estimation in Unrolled Computation Graphs with ES-Single. ICML 2023.

    The arguments are those of ``PersistentES``. A new sigma takes effect with the next episode.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = NoiseReuseES(Decay(), num_pairs=500, truncation=5, horizon=50, sigma=0.1, phase="random")
    >>> theta = jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> bool(gradient > 0)
    True
    """

    whole_episodes: ClassVar[bool] = False
    has_center: ClassVar[bool] = False

    @property
    def redraw_every(self) -> int | None:
        """When: ε ~ N(0, σ²) once, as an episode begins."""
        return ONCE_AN_EPISODE

    def accumulate(self, past: Any, drawn: Any) -> Any:
        """How: ξ = ε, the episode's only noise."""
        del past
        return drawn

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """The pairs of one device, before their first episodes."""
        return EstimatorState(pairs=unstarted_pairs(self, key, theta, shard), last_key=unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """One truncation of the pairs of one device."""
        theta, has_done = check_step(self, theta, state.pairs, batches, shard)
        # new episodes for the pairs whose last one ended, each with its ε ~ N(0, σ²);
        # then K inner steps: s⁺ with θ + ε and s⁻ with θ − ε, on the same keys and data; L_t⁺ and L_t⁻ sum their losses
        pairs, tally = run_pairs(self, key, theta, state.pairs, batches, shard, has_done)
        # g_t = 1/(2 N σ²) Σ_i ε⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾)
        gradient, info = estimate(self, theta, pairs, tally, shard)
        return finish(self, key, gradient, info, state, pairs=carried(self, pairs, tally, has_done))
