"""Choosing what to label at random, so that the choice can be undone: sequential proposals and Plackett-Luce orders."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import Status, require

__all__ = ["Acquisition", "AcquisitionInfo", "AcquisitionState", "plackett_luce"]

KINDS = ("proportional", "softmax", "greedy")


class AcquisitionState(NamedTuple):
    """Which points of the pool are still without a label.

    left: True for these, [N].
    """

    left: Bool[Array, "N"]


class AcquisitionInfo(NamedTuple):
    """What a pick was worth: keep ``log_q``, the weights need it.

    log_q, q: the pick's probability among the points left. cost: labels bought, 1. status: DIVERGED where nothing was
        left, or where no proposal could be made of the scores: q is then not a number, the index means nothing, the
        pool stays as it was, and the cost is 0.
    """

    log_q: Float[Array, ""]
    q: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class Acquisition(eqx.Module):
    """Picks the next point to label from scores, at random, and says with which probability.

    On the points that are left::

        q = (1 - floor) · law(score) + floor · uniform
        law = score^β / Σ score^β ("proportional"),  softmax(β score) ("softmax"),  all on the largest ("greedy")

    (Farquhar, Gal & Rainforth 2021, the stochastic relaxation of a deterministic rule.) Scores may come from a model
    that has seen every label so far. Several picks with the same scores are a batch: call it again with the new state.

    beta: β, how sharp, >= 0; 0 is uniform, and greedy ignores it.
    floor: share of uniform mass, in [0, 1]; it bounds the weights, without it a corrected estimate can be worse than
        one from random labels.
    kind: the law, one of ``"proportional"`` (scores >= 0), ``"softmax"``, ``"greedy"``.

    >>> acquisition = Acquisition(beta=2.0)
    >>> state = acquisition.init(4)
    >>> pick, state, info = acquisition.step(jax.random.key(0), jnp.array([0.1, 0.5, 0.2, 0.4]), state)
    >>> bool(state.left[pick]), int(state.left.sum())
    (False, 3)
    """

    beta: float | Array = 1.0
    floor: float | Array = 0.1
    kind: Literal["proportional", "softmax", "greedy"] = eqx.field(static=True, default="proportional")

    def __check_init__(self):
        require("Acquisition", "beta", ">= 0", self.beta, lambda b: b >= 0)
        require("Acquisition", "floor", "in [0, 1]", self.floor, lambda share: 0 <= share <= 1)
        require("Acquisition", "kind", f"one of {', '.join(KINDS)}", self.kind, lambda k: k in KINDS)

    def init(self, num_pool: int) -> AcquisitionState:
        """A pool without labels."""
        require("Acquisition", "num_pool", ">= 1", num_pool, lambda n: n >= 1)
        return AcquisitionState(jnp.ones(num_pool, bool))

    def log_proposal(self, scores: Float[Array, "N"], state: AcquisitionState) -> Float[Array, "N"]:
        """log q of every point; -inf for those that have a label."""
        left = state.left
        require("Acquisition", "scores", f"of shape {left.shape}", np.shape(scores), lambda s: s == left.shape)
        scores = jnp.asarray(scores)
        scores = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
        if self.kind == "softmax":
            logits = self.beta * scores
        elif self.kind == "proportional":
            # 0^0 = 1: with β = 0 a score of 0 is as good as any. The log of a negative score is not a number.
            logits = jnp.where((self.beta == 0) & (scores >= 0), 0.0, self.beta * jnp.log(scores))
        else:
            best = jnp.argmax(jnp.where(left, scores, -jnp.inf))
            logits = jnp.where(jnp.arange(len(scores)) == best, 0.0 * scores, -jnp.inf)
        law = jax.nn.log_softmax(jnp.where(left, logits, -jnp.inf))
        uniform = -jnp.log(jnp.sum(left).astype(law.dtype))
        mixed = jnp.logaddexp(jnp.log1p(-self.floor) + law, jnp.log(self.floor) + uniform)
        # A floor of 1 asks for no scores at all.
        return jnp.where(left, jnp.where(self.floor == 1, uniform, mixed), -jnp.inf)

    def step(
        self, key: Key[Array, ""], scores: Float[Array, "N"], state: AcquisitionState
    ) -> tuple[Int[Array, ""], AcquisitionState, AcquisitionInfo]:
        """The index of the next point, the pool without it, and its probability."""
        log_q = self.log_proposal(scores, state)
        fine = jnp.any(state.left) & ~jnp.any(jnp.isnan(log_q))
        pick = jax.random.categorical(key, jnp.where(jnp.isnan(log_q), -jnp.inf, log_q))
        found = jnp.where(fine, log_q[pick], jnp.nan)
        status = jnp.where(fine, Status.OK, Status.DIVERGED)
        info = AcquisitionInfo(found, jnp.exp(found), jnp.where(fine, 1, 0), status)
        return pick, AcquisitionState(state.left.at[pick].set(state.left[pick] & ~fine)), info


def plackett_luce(
    key: Key[Array, ""], log_scores: Float[Array, "N"], num_picks: int
) -> tuple[Int[Array, "M"], Float[Array, "M"]]:
    """Many picks without replacement from scores that do not change, at once: the indices in order, and log q of each.

    ::

        i_1..i_M = the M largest of log s_n + Gumbel noise,    q_m = s_{i_m} / Σ_{left at m} s_n

    The same law as one pick after the other, each in proportion to s among those left (Yellott 1977).

    log_scores: log s, up to a constant; -inf for points that must not be picked.
    num_picks: M, in 1..N.

    >>> picks, log_q = plackett_luce(jax.random.key(0), jnp.log(jnp.array([1.0, 2.0, 3.0, 4.0])), 4)
    >>> sorted(picks.tolist()), float(log_q[-1])  # the last one was certain
    ([0, 1, 2, 3], 0.0)
    """
    require("plackett_luce", "log_scores", "a vector, [N]", np.shape(log_scores), lambda s: len(s) == 1)
    scores = jnp.asarray(log_scores)
    scores = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    count = scores.shape[0]
    require("plackett_luce", "num_picks", f"in 1..{count}", num_picks, lambda m: 1 <= m <= count)
    if not isinstance(scores, Tracer):
        allowed = int(np.sum(np.asarray(scores) > -np.inf))
        require("plackett_luce", "num_picks", f"<= {allowed}, the points that may be picked", num_picks, allowed.__ge__)
    _, picks = jax.lax.top_k(scores + jax.random.gumbel(key, scores.shape, scores.dtype), num_picks)
    picked = scores[picks]
    never = jax.scipy.special.logsumexp(scores.at[picks].set(-jnp.inf))
    # Mass left before the m-th pick: what is never picked, and the picks from m on. No difference of large sums.
    left = jnp.logaddexp(jax.lax.cumlogsumexp(picked, reverse=True), never)
    return picks, picked - left
