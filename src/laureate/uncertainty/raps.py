"""Regularised adaptive prediction sets: the estimator, and how its two numbers are chosen."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from laureate._core import require
from laureate.uncertainty.prediction_sets import AbstractRankedSets
from laureate.uncertainty.ranks import (
    Ranked,
    conformal_quantile,
    namespace,
    rank_all,
    rank_label,
    raps_score,
)
from laureate.uncertainty.set_metrics import worst_violation

__all__ = ["RAPS", "tune_raps"]

# The paper's five values and more on both sides; beyond 1 the penalty exceeds every probability and nothing changes.
SIZE_GRID = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0)
# The paper's. Larger values leave few strata, which looks well on few tuning rows and is not: raps/adaptivity-widened.
ADAPTIVE_GRID = (0.0, 1e-5, 1e-4, 8e-4, 9e-4, 1e-3, 1.5e-3, 2e-3)
JOINT_RANKS = (1, 2, 5, 10, 20, 50)
Criterion = str | Callable[[Any, Any], Any]


class RAPS(AbstractRankedSets):
    """Sets of labels that hold the true one with probability 1 − α, small where the model is sure.

    The labels whose score is at most τ, the ⌈(n + 1)(1 − α)⌉-th smallest on calibration rows
    (Angelopoulos et al. 2021)::

        s(x, y, u) = ρ(x, y) + u p_y + λ (o(x, y) − k_reg)⁺
        C(x) = {y: s(x, y, u) ≤ τ}

    where o is the rank of y among the classes and ρ the mass of those before it. The promise is one on the mean over
    calibration sets; `coverage_law` says how far one set may be off.

    alpha, temperature, tune_fraction, randomized, empty, input: as for `AbstractSets`.
    k_reg: the last rank without penalty; "auto": the rank that 1 − α of the tuning rows need; "joint": chosen with λ.
    lam: λ; "auto": of ``lams``, the best by the criterion on the tuning rows.
    criterion: "size" (mean), "adaptive" (the worst violation over strata of sizes), or ``f(size, covered) -> float``.
    lams: the values tried.
    penalty: one's own penalties ``[K]`` of the ranks, instead of ``k_reg`` and ``lam``.

    Fitted, beside those of `AbstractSets`: ``k_reg_``, ``lam_``.

    >>> import jax, numpy as np
    >>> generator = np.random.default_rng(0)
    >>> logits = 2 * generator.normal(size=(900, 10))
    >>> y = (logits + generator.gumbel(size=(900, 10))).argmax(axis=1)
    >>> raps = RAPS(alpha=0.1).fit(jax.random.key(0), logits[:500], y[:500])
    >>> sets = raps.predict_set(jax.random.key(1), logits[500:])
    >>> sets.shape, round(float(sets[np.arange(400), y[500:]].mean()), 2)
    ((400, 10), 0.93)
    """

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        k_reg: int | str = "auto",
        lam: float | str = "auto",
        criterion: Criterion = "size",
        lams: Sequence[float] | None = None,
        penalty: Any = None,
        temperature: float | str = "fit",
        tune_fraction: float = 0.3,
        randomized: bool = True,
        empty: str = "allow",
        input: str = "logits",
    ):
        super().__init__(
            alpha,
            temperature=temperature,
            tune_fraction=tune_fraction,
            randomized=randomized,
            empty=empty,
            input=input,
        )
        self.k_reg = k_reg
        self.lam = lam
        self.criterion = criterion
        self.lams = lams
        self.penalty = penalty

    def _tunes(self) -> bool:
        return self.penalty is None and (isinstance(self.k_reg, str) or isinstance(self.lam, str))

    def _tune(self, p: np.ndarray, y: np.ndarray, u: np.ndarray) -> None:
        self._check_penalty()
        grid = ADAPTIVE_GRID if self.criterion == "adaptive" else SIZE_GRID
        tried = grid if self.lams is None else self.lams
        lams: Any = tried if self.lam == "auto" else (self.lam,)
        if self._tunes():
            k, lam = tune_raps(p, y, u, self.alpha, k_reg=self.k_reg, lams=lams, criterion=self.criterion)
            self.k_reg_, self.lam_ = int(k), float(lam)
        else:
            self.k_reg_, self.lam_ = (self.k_reg, self.lam) if self.penalty is None else (None, None)

    def _score(self, at: Ranked, u: np.ndarray) -> np.ndarray:
        return raps_score(at, u, self.k_reg_, self.lam_, self.penalty)

    def _check_penalty(self) -> None:
        most, words = self.n_classes_, ("auto", "joint")
        rule = f"'auto', 'joint' or a rank in [0, {most}]"
        require("RAPS", "k_reg", rule, self.k_reg, lambda k: k in words if isinstance(k, str) else 0 <= k <= most)
        rule = "'auto' or a number >= 0"
        require("RAPS", "lam", rule, self.lam, lambda v: v == "auto" if isinstance(v, str) else v >= 0)
        rule = "'size', 'adaptive' or a function"
        require("RAPS", "criterion", rule, self.criterion, lambda c: c in ("size", "adaptive") or callable(c))
        require("RAPS", "lams", "numbers >= 0", self.lams, lambda v: v is None or (len(v) > 0 and min(v) >= 0))
        if self.penalty is not None:
            rule = f"{most} numbers that do not fall"
            values = np.asarray(self.penalty)
            require("RAPS", "penalty", rule, values, lambda v: v.shape == (most,) and (np.diff(v) >= 0).all())


def tune_raps(
    p: Any,
    y: Any,
    u: Any,
    alpha: Any,
    *,
    k_reg: int | str = "auto",
    lams: Sequence[float] = SIZE_GRID,
    criterion: Any = "size",
) -> tuple[Any, Any]:
    """Choose k_reg and λ on rows that are not used to calibrate; of equals the first. NumPy or JAX arrays.

    p: ``[n, K]``. y: ``[n]``. u: ``[n]``. The other arguments are those of `RAPS`.
    """
    xp = namespace(p, y, u, alpha)
    labels, ranks = rank_label(p, y), rank_all(p)
    needed = conformal_quantile(xp.asarray(labels.rank, p.dtype), alpha)  # the rank that 1 − α of the rows need
    needed = xp.minimum(needed, p.shape[-1]).astype(int)
    joint = (*(xp.asarray(k) for k in JOINT_RANKS if k <= p.shape[-1]), needed)
    firsts = {"auto": (needed,), "joint": joint}[k_reg] if isinstance(k_reg, str) else (xp.asarray(k_reg),)
    tried = [(k, xp.asarray(lam, p.dtype)) for k in firsts for lam in lams]

    def loss(k, lam):
        scores = raps_score(labels, u, k, lam)
        tau = conformal_quantile(scores, alpha)
        size = xp.sum(raps_score(ranks, u[:, None], k, lam) <= tau, axis=1)
        if criterion == "size":
            return xp.mean(size)
        covered = scores <= tau
        return worst_violation(size, covered, alpha) if criterion == "adaptive" else criterion(size, covered)

    best = xp.argmin(xp.stack([xp.asarray(loss(*one)) for one in tried]))
    return xp.stack([k for k, _ in tried])[best], xp.stack([lam for _, lam in tried])[best]
