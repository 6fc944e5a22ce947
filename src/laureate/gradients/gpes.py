"""Generalised PES: noise that lasts any number of inner steps, whatever the truncation."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import require
from laureate.gradients.antithetic import Antithetic, carried, check_step, estimate, finish
from laureate.gradients.episodes import is_count
from laureate.gradients.noise import Shard
from laureate.gradients.pairs import ONCE_AN_EPISODE, run_pairs, unstarted_pairs
from laureate.gradients.reports import EstimatorState, Info, unused_key

__all__ = ["GPES"]


class GPES(Antithetic):
    """The family between PES and NRES: noise is drawn anew every ``noise_steps`` inner steps of an episode.

    For choosing the variance apart from how often one updates: more steps with the same noise, less variance where the
    gradients of the steps cancel. All members are unbiased for the loss they smooth::

        g = 1/(2 N σ²) Σ_i Σ_k ξ_k⁽ⁱ⁾ (L_k⁺⁽ⁱ⁾ − L_k⁻⁽ⁱ⁾),    ξ_k = the sum of the noises drawn up to inner step k

    ``noise_steps=truncation`` is ``PersistentES`` (wherever episodes begin on borders; an episode that begins inside a
    truncation gets noise of its own here), ``noise_steps=None`` is ``NoiseReuseES``.

    Oscar Li, James Harrison, Jascha Sohl-Dickstein, Virginia Smith and Luke Metz: Variance-Reduced Gradient Estimation
    via Noise-Reuse in Online Evolution Strategies. NeurIPS 2023.

    noise_steps: inner steps of an episode between two draws, >= 1; None: one draw an episode.
    All other arguments are those of ``PersistentES``.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = GPES(Decay(), num_pairs=500, truncation=5, horizon=50, sigma=0.1, noise_steps=25)
    >>> theta = jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> bool(gradient > 0)
    True
    """

    noise_steps: int | None = eqx.field(static=True, kw_only=True)
    whole_episodes: ClassVar[bool] = False
    has_center: ClassVar[bool] = False

    def __check_init__(self):
        rule = "an integer >= 1, or None"
        require("GPES", "noise_steps", rule, self.noise_steps, lambda n: n is None or is_count(n))

    @property
    def redraw_every(self) -> int | None:
        """When: after every ``noise_steps`` inner steps of an episode, and as one begins."""
        return ONCE_AN_EPISODE if self.noise_steps is None else self.noise_steps

    def accumulate(self, past: Any, drawn: Any) -> Any:
        """How: ξ is the sum of the noises drawn so far in the episode."""
        return jax.tree.map(jnp.add, past, drawn)

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """The pairs of one device, before their first episodes."""
        return EstimatorState(pairs=unstarted_pairs(self, key, theta, shard), last_key=unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """One truncation of the pairs of one device."""
        theta, has_done = check_step(self, theta, state.pairs, batches, shard)
        # new noise ε where it is due, with ξ ← ξ + ε, and new episodes (with ξ = ε) for those that ended;
        # then K inner steps: s⁺ with θ + ε and s⁻ with θ − ε, on the same keys and data; L_t⁺ and L_t⁻ sum their losses
        pairs, tally = run_pairs(self, key, theta, state.pairs, batches, shard, has_done)
        # g = 1/(2 N σ²) Σ_i Σ_k ξ_k⁽ⁱ⁾ (L_k⁺⁽ⁱ⁾ − L_k⁻⁽ⁱ⁾)
        gradient, info = estimate(self, theta, pairs, tally, shard)
        return finish(self, key, gradient, info, state, pairs=carried(self, pairs, tally, has_done))
