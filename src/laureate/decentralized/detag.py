"""DeTAG: gradient tracking with accelerated gossip, in phases."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from laureate._core import require
from laureate.decentralized.gossip import Gossip
from laureate.decentralized.optimiser import DecentralizedOptimiser

__all__ = ["DeTAG", "DeTAGState"]


def _as_rounds(num_rounds: int | Array) -> Array:
    whole = lambda r: bool(np.all(np.asarray(r) >= 1) and np.all(np.asarray(r) % 1 == 0))  # noqa: E731
    require("DeTAG", "num_rounds", "an integer >= 1", num_rounds, whole)
    return jnp.asarray(num_rounds, jnp.int32)


class DeTAGState(NamedTuple):
    """Where a phase stands.

    round: r in 0 … R−1, rounds of this phase already done.
    model, model_before: the gossip iterates X⁽ʳ⁾ and X⁽ʳ⁻¹⁾ of the frozen parameters.
    tracker, tracker_before: the gossip iterates of Y.
    total: the gradients of this phase so far, each times 1/R; gradient: those of the last phase.
    local: the local optimiser's memory.
    """

    round: Array
    model: Any
    model_before: Any
    tracker: Any
    tracker_before: Any
    total: Any
    gradient: Any
    local: Any


class DeTAG(DecentralizedOptimiser):
    """DeTAG: for sparse networks and data that differ from node to node.

    A phase is R rounds. In every round each node takes one more micro-batch gradient at its *frozen* parameters, while
    one round of accelerated gossip runs on parameters and trackers; at the end of phase k::

        X_{k+1} = AG(X_k, R) − α · local(AG(Y_k, R))
        Y_{k+1} = AG(Y_k, R) + G_k − G_{k−1},      G_k = (1/R) Σ_r ∇f(X_k; batch r),    Y_0 = G_{−1} = 0

    where AG(·, R) is R rounds of ``gossip``, begun anew in every phase. The mean tracker is the mean gradient of the
    last finished phase, at every phase; so the first phase averages the parameters and makes no step, and every step
    uses gradients one phase old. Each ``update`` is *one round*: it returns zeros until the last round of a phase.

    Per round two vectors are sent, as by ``GradientTracking``; a step sees n · R micro-batches. R ≈ 1/√(1 − λ) is the
    size at which the network averages within a phase (``DeTAG.advised_rounds``); larger R trade steps for larger
    batches. Any local transformation may stand between, as trackers agree in the end; it runs once a phase.

    gossip, learning_rate, local: see ``DecentralizedOptimiser``. The paper's gossip is ``method="accelerated"``;
        "chebyshev" is the better polynomial, and the default.
    num_rounds: R >= 1 rounds a phase; another value compiles nothing.

    Yucheng Lu and Christopher De Sa: Optimal Complexity in Decentralized Training. ICML 2021 (honourable mention).

    >>> import equinox as eqx, jax.numpy as jnp, optax
    >>> from laureate.decentralized import Gossip, ring
    >>> optimiser = DeTAG(Gossip(ring(4)), learning_rate=0.3, num_rounds=3)
    >>> target = jnp.arange(4.0)[:, None]  # ½ (x − i)² on node i: the common optimum is 1.5
    >>> params = jnp.zeros((4, 1))
    >>> state, update = optimiser.init(params), eqx.filter_jit(optimiser.update)
    >>> for _ in range(90):
    ...     updates, state = update(params - target, state, params)
    ...     params = optax.apply_updates(params, updates)
    >>> [round(float(x), 2) for x in params[:, 0]]
    [1.5, 1.5, 1.5, 1.5]
    """

    num_rounds: Array = eqx.field(converter=_as_rounds)

    def __check_init__(self):
        gossip, rounds = self.gossip, self.num_rounds
        known = jnp.ndim(rounds) == jnp.ndim(gossip.kappa) == 0
        if known and gossip.method == "accelerated" and not any(isinstance(v, Tracer) for v in (rounds, gossip.kappa)):
            remedy = (
                "Accelerated gossip expands some differences in so few rounds, as W has negative eigenvalues. Use "
                "method='chebyshev', kappa=0.5 or more rounds."
            )
            with jax.ensure_compile_time_eval():  # where something is traced, what is known is still a number
                factor = float(gossip.contraction(int(rounds)))
            require("DeTAG", "gossip's factor in a phase", "< 1", factor, lambda c: c < 1, remedy)

    @staticmethod
    def advised_rounds(gossip: Gossip, scale: float = 1.0) -> int:
        """⌈scale / √(1 − λ)⌉, the rounds in which accelerated gossip averages; the paper's theory has scale ~ log n.

        >>> from laureate.decentralized import Gossip, ring
        >>> DeTAG.advised_rounds(Gossip(ring(32)))
        9
        """
        return max(1, int(np.ceil(scale / np.sqrt(float(gossip.gap)) - 1e-9)))

    def init(self, params: Any) -> DeTAGState:
        """Nothing tracked, at the start of a phase."""
        self.check(params)
        zeros = jax.tree.map(jnp.zeros_like, params)
        start = jnp.zeros((), jnp.int32)
        return DeTAGState(start, params, params, zeros, zeros, zeros, zeros, self.local_init(params))

    def update(self, grads: Any, state: DeTAGState, params: Any = None) -> tuple[Any, DeTAGState]:
        """One round of a phase; the updates are zero but for the last."""
        self.check_gradients(grads, params)
        r = state.round
        share = 1.0 / self.num_rounds.astype(jnp.asarray(0.0).dtype)
        total = jax.tree.map(lambda t, g: t + share.astype(g.dtype) * g, state.total, grads)  # G_k so far
        # A phase's first round begins at the parameters as they are now, and without a round before.
        model = jax.tree.map(lambda x, m: jnp.where(r == 0, x, m), params, state.model)
        mixed_model = self.gossip.advance(r, model, state.model_before)
        mixed_tracker = self.gossip.advance(r, state.tracker, state.tracker_before)

        def finish(_):
            step, local = self.local_step(mixed_tracker, state.local, params)
            updates = jax.tree.map(lambda m, x, s: m - x + s, mixed_model, params, step)
            tracker = jax.tree.map(lambda y, new, old: y + new - old, mixed_tracker, total, state.gradient)
            zeros = jax.tree.map(jnp.zeros_like, params)
            return updates, DeTAGState(jnp.zeros_like(r), mixed_model, model, tracker, tracker, zeros, total, local)

        def go_on(_):
            zeros = jax.tree.map(jnp.zeros_like, params)
            carried = DeTAGState(
                r + 1, mixed_model, model, mixed_tracker, state.tracker, total, state.gradient, state.local
            )
            return zeros, carried

        return jax.lax.cond(r + 1 >= self.num_rounds, finish, go_on, None)

    def sent(self, params: Any) -> float:
        """Bytes of parameters and trackers."""
        return self.gossiped(params, vectors=2)
