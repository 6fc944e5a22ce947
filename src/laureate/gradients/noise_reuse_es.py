"""Noise-reuse evolution strategies: one noise an episode, many updates from it."""

from laureate.gradients.antithetic import Antithetic
from laureate.gradients.pairs import ONCE_AN_EPISODE

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

    @property
    def redraw_every(self) -> None:
        """Once an episode."""
        return ONCE_AN_EPISODE
