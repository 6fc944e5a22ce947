"""The prediction sets that RAPS is compared with, and those of one's own score, all with the same calls."""

from collections.abc import Callable, Sequence

import numpy as np

from laureate._core import require
from laureate.uncertainty.prediction_sets import AbstractRankedSets, AbstractSets
from laureate.uncertainty.ranks import (
    Ranked,
    conformal_quantile,
    lac_score,
    rank_all,
    rank_label,
    raps_score,
    saps_score,
    top_k_score,
)

__all__ = ["APS", "LAC", "SAPS", "NaiveSets", "ScoreSets", "TopK"]

SAPS_GRID = (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class APS(AbstractRankedSets):
    """Adaptive prediction sets (Romano et al. 2020), the score ρ(x, y) + u p_y: `RAPS` with λ = 0.

    alpha, temperature, tune_fraction, randomized, empty, input: as for `AbstractSets`.
    """

    def _score(self, at: Ranked, u: np.ndarray) -> np.ndarray:
        return raps_score(at, u, 0, 0.0)


class NaiveSets(AbstractRankedSets):
    """The most probable labels until their probabilities sum to 1 − α: what `APS` is before calibration.

    Promises nothing; only the temperature is fitted.

    alpha, temperature, tune_fraction, randomized, empty, input: as for `AbstractSets`.
    """

    def _score(self, at: Ranked, u: np.ndarray) -> np.ndarray:
        return raps_score(at, u, 0, 0.0)

    def _threshold(self, scores: np.ndarray) -> float:
        return 1 - self.alpha


class LAC(AbstractRankedSets):
    """The least ambiguous sets (Sadinle et al. 2019): all labels whose probability is at least 1 − τ.

    The smallest sets on average where the probabilities are right, paid for by the hard inputs, which are covered least
    (read `by_rank`). Draws nothing after the split.

    alpha, temperature, tune_fraction, randomized, empty, input: as for `AbstractSets`.
    """

    draws = False

    def _score(self, at: Ranked, u: np.ndarray) -> np.ndarray:
        return lac_score(at)


class TopK(AbstractRankedSets):
    """The k most probable labels for every input, or k − 1: the score o(x, y) − 1 + u.

    alpha, temperature, tune_fraction, randomized, empty, input: as for `AbstractSets`.
    """

    def _score(self, at: Ranked, u: np.ndarray) -> np.ndarray:
        return top_k_score(at, u)


class SAPS(AbstractRankedSets):
    """Sorted adaptive prediction sets (Huang et al. 2024): only the largest probability counts, the rest by rank.

    alpha, temperature, tune_fraction, randomized, empty, input: as for `AbstractSets`.
    lam: λ, the score of a further rank; "auto": of ``lams``, that of the smallest mean size on the tuning rows.
    lams: the values tried.

    Fitted, beside those of `AbstractSets`: ``lam_``.
    """

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        lam: float | str = "auto",
        lams: Sequence[float] = SAPS_GRID,
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
        self.lam = lam
        self.lams = lams

    def _tunes(self) -> bool:
        return isinstance(self.lam, str)

    def _tune(self, p: np.ndarray, y: np.ndarray, u: np.ndarray) -> None:
        rule = "'auto' or a number > 0"
        require("SAPS", "lam", rule, self.lam, lambda v: v == "auto" if isinstance(v, str) else v > 0)
        require("SAPS", "lams", "numbers > 0", self.lams, lambda v: len(v) > 0 and min(v) > 0)
        self.lam_ = self.lam
        if self._tunes():
            labels, ranks = rank_label(p, y), rank_all(p)
            taus = [conformal_quantile(saps_score(labels, u, lam), self.alpha) for lam in self.lams]
            tried = zip(taus, self.lams, strict=True)
            sizes = [np.mean(np.sum(saps_score(ranks, u[:, None], lam) <= tau, axis=1)) for tau, lam in tried]
            self.lam_ = float(self.lams[int(np.argmin(sizes))])

    def _score(self, at: Ranked, u: np.ndarray) -> np.ndarray:
        return saps_score(at, u, self.lam_)


class ScoreSets(AbstractSets):
    """Prediction sets by a score of one's own, of any form: the labels whose score is at most τ.

    alpha, temperature, tune_fraction, randomized, empty, input: as for `AbstractSets`; nothing is fitted but τ, unless
        a temperature is asked for.
    score: ``f(p, u) -> [n, K]`` for probabilities p ``[n, K]`` and u ``[n]``, low for labels that fit; a fixed
        function, not one made from the calibration rows. Without ``randomized`` u is 0 where sets are made.

    >>> import jax, numpy as np
    >>> p = np.random.default_rng(0).dirichlet(np.ones(4), size=300)
    >>> y = np.array([np.random.default_rng(i).choice(4, p=row) for i, row in enumerate(p)])
    >>> odds = ScoreSets(lambda p, u: (1 - p) / p, input="proba").fit(jax.random.key(0), p[:200], y[:200])
    >>> odds.predict_set(jax.random.key(1), p[200:]).shape
    (100, 4)
    """

    def __init__(
        self,
        score: Callable[[np.ndarray, np.ndarray], np.ndarray],
        alpha: float = 0.1,
        *,
        temperature: float | str = 1.0,
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
        self.score = score

    def _scores(self, p: np.ndarray, u: np.ndarray) -> np.ndarray:
        scores = np.asarray(self.score(p, u))
        if scores.shape != p.shape or np.isnan(scores).any():
            raise ValueError(f"ScoreSets.score must return numbers of shape {p.shape}; got NaN or {scores.shape}.")
        return scores

    def _label_scores(self, p: np.ndarray, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        return self._scores(p, u)[np.arange(len(y)), y]

    def _sizes(self, p: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return np.sum(self._sets(p, u, tau), axis=1)

    def _sets(self, p: np.ndarray, u: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return self._scores(p, u) <= tau[:, None]
