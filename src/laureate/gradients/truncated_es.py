"""Truncated evolution strategies: cheap, and blind beyond the truncation."""

from dataclasses import replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from laureate._core import as_key
from laureate.gradients.antithetic import Antithetic, check_step, estimate, finish
from laureate.gradients.episodes import NO_END, Episode, in_lockstep
from laureate.gradients.noise import Shard, zero_scores
from laureate.gradients.pairs import EVERY_TRUNCATION, Pairs, run_pairs
from laureate.gradients.reports import EstimatorState, Info, unused_key
from laureate.gradients.workers import center_data, center_key, run_worker, unstarted_worker

__all__ = ["TruncatedES"]


class TruncatedES(Antithetic):
    """ES on one truncation at a time: the biased baseline that PES repairs.

    All particles continue from ONE state, which is then advanced with the unperturbed parameters. How θ shaped that
    state before is not seen, so short-horizon effects decide::

        g_t = 1/(2 N σ²) Σ_i ε⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾),    L_t from s̄_t,    s̄_{t+1} = s̄ after K steps with θ

    In the first truncation of an episode it is ``PersistentES``, number for number.

    Luke Metz, Niru Maheswaranathan, Jeremy Nixon, C. Daniel Freeman and Jascha Sohl-Dickstein: Understanding and
    Correcting Pathologies in the Training of Learned Optimizers. ICML 2019.

    The arguments are those of ``PersistentES``. With ``batches_per_pair`` the shared state is advanced with the data of
    the first pair.

    >>> import equinox as eqx, jax, jax.numpy as jnp
    >>> class Decay:
    ...     def init(self, key, theta):
    ...         return jnp.ones(())
    ...     def step(self, key, theta, state):
    ...         state = 0.9 * state + theta
    ...         return state, state**2
    >>> estimator = TruncatedES(Decay(), num_pairs=500, truncation=5, horizon=50, sigma=0.1)
    >>> theta = jnp.asarray(0.3)
    >>> state = estimator.init(jax.random.key(0), theta)
    >>> gradient, state, info = eqx.filter_jit(estimator.step)(jax.random.key(1), theta, state)
    >>> int(info.cost), bool(gradient > 0)
    (5005, True)
    """

    whole_episodes: ClassVar[bool] = False
    has_center: ClassVar[bool] = True

    @property
    def redraw_every(self) -> int | None:
        """When: ε ~ N(0, σ²) anew at the start of every truncation."""
        return EVERY_TRUNCATION

    def accumulate(self, past: Any, drawn: Any) -> Any:
        """How: ξ = ε, the past is forgotten: that is the bias."""
        del past
        return drawn

    def local_init(self, key: Array, theta: Any, shard: Shard) -> EstimatorState:
        """One state, the same on every device."""
        return EstimatorState(center=unstarted_worker(self, key, theta), last_key=unused_key(self, key))

    def local_step(
        self, key: Array, theta: Any, state: EstimatorState, batches: Any, shard: Shard
    ) -> tuple[Any, EstimatorState, Info]:
        """One truncation of the pairs of one device, and of the shared state."""
        theta, has_done = check_step(self, theta, None, batches, shard)
        # ε ~ N(0, σ²) for every pair, then K inner steps, all from s̄_t, with θ ± ε; L_t⁺ and L_t⁻ sum their losses
        pairs = around(state.center, theta, shard)
        pairs, tally = run_pairs(self, key, theta, pairs, batches, shard, has_done)
        # g_t = 1/(2 N σ²) Σ_i ε⁽ⁱ⁾ (L_t⁺⁽ⁱ⁾ − L_t⁻⁽ⁱ⁾)
        gradient, info = estimate(self, theta, pairs, tally, shard)
        # s̄_{t+1} = s̄_t after K steps with θ itself
        data = center_data(self, batches)
        center, report = run_worker(self, center_key(self, key), theta, state.center, data, has_done)
        if not in_lockstep(self.horizon, self.phase, has_done):  # a state that blew up is left behind
            center = replace(center, over=center.over | ~jnp.isfinite(report.loss))
        return finish(self, key, gradient, info, state, center=center)


def around(center: Episode, theta: Any, shard: Shard) -> Pairs:
    """All pairs at the centre's state, with no noise behind them.

    Their keys count down from the last number, for the centre's own steps count up.
    """
    twice = lambda leaf: jnp.stack([leaf, leaf])  # noqa: E731

    def place(i):
        return Episode(
            inner=jax.tree.map(twice, center.inner),
            key=jax.random.key_data(jax.random.fold_in(as_key(center.key), NO_END - 1 - i)),
            clock=center.clock,
            length=center.length,
            over=center.over,
            ended=twice(center.ended),
            previous=twice(center.previous),
        )

    return Pairs(jax.vmap(place)(shard.pairs), zero_scores(theta, shard), None)
