"""Evolution strategies over whole episodes: unbiased, and one update an episode."""

from typing import Any, ClassVar

from jax import Array

from laureate._core import require
from laureate.gradients.antithetic import Antithetic, check_step, estimate, finish
from laureate.gradients.noise import Shard
from laureate.gradients.pairs import EVERY_TRUNCATION, run_pairs, unstarted_pairs
from laureate.gradients.reports import EstimatorState, Info, unused_key

__all__ = ["FullES"]


class FullES(Antithetic):
    """Full-unroll ES: one update from whole episodes, all with fresh noise.

    The yardstick for the methods that update more often: unbiased for the smoothed loss, variance (P+1)‖g‖²/N to first
    order for P parameters, but one update costs 2 N T inner steps::

        g = 1/(2 N σ²) Σ_i ε⁽ⁱ⁾ (L⁺⁽ⁱ⁾ − L⁻⁽ⁱ⁾),    L = Σ_t L_t over the episode,   ε ~ N(0, σ²)

    Tim Salimans, Jonathan Ho, Xi Chen, Szymon Sidor and Ilya Sutskever: Evolution Strategies as a Scalable Alternative
    to Reinforcement Learning, 2017.

    The arguments are those of ``PersistentES``, with two differences. horizon: T, or (low, high); not None, for one
    update must have an end. truncation, phase and restart: accepted so that one word changes the method, but without
    effect. Batches lead with [T] (or [high]).

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = FullES(Decay(), num_pairs=500, horizon=50, sigma=0.1)
    >>> theta = jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> int(info.cost), bool(gradient > 0)
    (50000, True)
    """

    whole_episodes: ClassVar[bool] = True
    has_center: ClassVar[bool] = False

    def __check_init__(self):
        require("FullES", "horizon", "an integer, or (low, high)", self.horizon, lambda h: h is not None)

    @property
    def redraw_every(self) -> int | None:
        """When: ε ~ N(0, σ²) at the start of every step, which is a whole episode."""
        return EVERY_TRUNCATION

    def accumulate(self, past: Any, drawn: Any) -> Any:
        """How: ξ = ε, nothing is carried from one step to the next."""
        del past
        return drawn

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """Nothing is carried."""
        return EstimatorState(last_key=unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """One whole episode of the pairs of one device."""
        theta, has_done = check_step(self, theta, None, batches, shard)
        # ε ~ N(0, σ²) for every pair, then T inner steps from init(θ ± ε); L⁺ and L⁻ sum their losses
        pairs = unstarted_pairs(self, key, theta, shard, clock=0)
        pairs, tally = run_pairs(self, key, theta, pairs, batches, shard, has_done)
        # g = 1/(2 N σ²) Σ_i ε⁽ⁱ⁾ (L⁺⁽ⁱ⁾ − L⁻⁽ⁱ⁾)
        gradient, info = estimate(self, theta, pairs, tally, shard)
        return finish(self, key, gradient, info, state)
