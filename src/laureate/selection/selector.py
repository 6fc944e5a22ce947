"""A scikit-learn selector: variables with a bounded share of false discoveries, by knockoffs that were tested."""

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from laureate import loops
from laureate._core import require
from laureate.selection.columns import CopulaKnockoffs, column_indices, discrete_columns, fit_sampler
from laureate.selection.filters import e_values, knockoff_filter, select_by_e_values, unattainable
from laureate.selection.gaussian import GaussianKnockoffs, SecondOrderKnockoffs
from laureate.selection.statistics import (
    LassoDifference,
    LassoEntry,
    RandomForestDifference,
    RidgeDifference,
    check_antisymmetry,
)
from laureate.selection.tables import check_table
from laureate.selection.validity import InvalidKnockoffWarning, refuse_or_warn, validity_report

__all__ = ["KnockoffSelector"]

STATISTICS: dict[str, Callable[[], Any]] = {
    "lasso": LassoDifference,
    "lasso-entry": LassoEntry,
    "ridge": RidgeDifference,
    "random-forest": RandomForestDifference,
}
FEWEST = 40  # held-out rows below which the validity test says nothing


class KnockoffSelector(SelectorMixin, BaseEstimator):
    """Select the variables of X that tell something about y, with a false discovery rate of at most q.

    sampler: an object with ``fit(key, X)`` that returns one with ``sample(key, X)``; None: second-order knockoffs with
        shrunk correlations. It never sees y.
    statistic: "lasso", "lasso-entry", "ridge", "random-forest", or ``f(key, X, X_knockoff, y) -> W``.
    q: the bound on the expected share of false ones.
    offset: 1 (knockoff+) or 0.
    num_draws: of knockoffs; with more than one, e-values are averaged, and the list depends less on chance.
    discrete: columns that are binary or codes, whose knockoffs must be so too: their indices, or a mask ``[p]`` of
        bool; "auto" finds them.
    validation_fraction: the share of rows kept from the sampler for the validity test. With fewer than 40 rows to hold
        out nothing is tested, which is warned of.
    validity_level: at which p-value a selection is refused.
    allow_invalid: True turns the refusal into a warning.
    random_state: as in scikit-learn: an integer, a ``numpy.random.RandomState``, or None for another draw every time.

    Fitted: ``statistics_`` (W, or mean e-values), ``threshold_``, ``validity_``, ``sampler_``, ``explanation_``.

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(300, 20))
    >>> y = X[:, :10].sum(axis=1) + generator.normal(size=300)
    >>> KnockoffSelector(q=0.2, random_state=0).fit(X, y).get_support().nonzero()[0].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(
        self,
        sampler: Any = None,
        statistic: Any = "lasso",
        q: float = 0.1,
        *,
        offset: int = 1,
        num_draws: int = 1,
        discrete: Any = None,
        validation_fraction: float = 0.3,
        validity_level: float = 0.01,
        allow_invalid: bool = False,
        random_state: Any = None,
    ):
        self.sampler = sampler
        self.statistic = statistic
        self.q = q
        self.offset = offset
        self.num_draws = num_draws
        self.discrete = discrete
        self.validation_fraction = validation_fraction
        self.validity_level = validity_level
        self.allow_invalid = allow_invalid
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        X: Any,  # noqa: N803  (scikit-learn's name)
        y: Any,
        progress: Callable[[loops.Progress], None] | None = None,
    ) -> "KnockoffSelector":
        """Fit knockoffs to X, test them, and select by y.

        progress: called with a ``laureate.loops.Progress`` of the sampler's training, where the sampler takes one.
        """
        self._check()
        x, y = validate_data(
            self, X, y, dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_samples=4, y_numeric=False
        )
        check_table("KnockoffSelector", x)
        x = np.asarray(x)
        response = _response(y)
        key = jax.random.key(int(check_random_state(self.random_state).randint(2**31 - 1)))
        order_key, fit_key, draw_key, test_key, statistic_key = jax.random.split(key, 5)

        statistic = STATISTICS[self.statistic]() if isinstance(self.statistic, str) else self.statistic
        if not isinstance(self.statistic, str):
            check_antisymmetry(statistic_key, statistic, response=response)

        n, p = x.shape
        order = np.asarray(jax.random.permutation(order_key, n))
        kept = int(self.validation_fraction * n)
        held = order[:kept] if kept >= FEWEST else order[:0]
        known = order[len(held) :]
        self.sampler_ = fit_sampler(self._sampler(x), fit_key, jnp.asarray(x[known]), progress)
        keys = jax.random.split(draw_key, self.num_draws)
        knockoffs = [np.asarray(_call(self.sampler_, "sample", k, jnp.asarray(x)), x.dtype) for k in keys]
        if any(knockoff.shape != x.shape or not np.isfinite(knockoff).all() for knockoff in knockoffs):
            raise ValueError(f"sampler.sample must return finite knockoffs of X's shape {x.shape}; got others.")
        self.validity_ = None
        if len(held):
            self.validity_ = _validity(x[held], knockoffs[0][held], test_key)
            refuse_or_warn(self.validity_, self.validity_level, self.allow_invalid)
        elif self.validation_fraction > 0:
            warnings.warn(
                f"KnockoffSelector: the knockoffs are untested: too few rows, for {kept} would be held out and the "
                f"test takes {FEWEST}. Whether the bound q holds is not known; give more rows or a larger "
                "validation_fraction, or 0 to do without the test.",
                InvalidKnockoffWarning,
                stacklevel=2,
            )

        ws = [np.asarray(_call(statistic, "__call__", statistic_key, x, k, response)) for k in knockoffs]
        if any(w.shape != (p,) or not np.isfinite(w).all() for w in ws):
            shape = next(w.shape for w in ws if w.shape != (p,) or not np.isfinite(w).all())
            found = f"shape {shape}" if shape != (p,) else "NaN or inf"
            raise ValueError(
                f"KnockoffSelector.statistic must return finite W of shape {(p,)}; got {found}. Return 0 for a "
                "variable of which nothing is known."
            )
        if self.num_draws == 1:
            selection = knockoff_filter(ws[0], self.q, self.offset)
            self.statistics_, self.support_ = ws[0], np.asarray(selection.selected)
            self.threshold_ = float(selection.threshold)
        else:
            self.statistics_ = np.mean([np.asarray(e_values(w, self.q / 2)) for w in ws], axis=0)
            self.support_ = np.asarray(select_by_e_values(self.statistics_, self.q))
            chosen = self.statistics_[self.support_]
            self.threshold_ = float(chosen.min()) if chosen.size else float("inf")
        self.explanation_ = self._explain(p, len(held))
        return self

    def _sampler(self, x: np.ndarray) -> Any:
        sampler = SecondOrderKnockoffs(shrinkage="ledoit-wolf") if self.sampler is None else self.sampler
        require("KnockoffSelector", "sampler", "an object with fit(key, X)", sampler, lambda s: hasattr(s, "fit"))
        if self.discrete is None:
            found = discrete_columns(x)
            if found and not isinstance(sampler, CopulaKnockoffs):
                warnings.warn(
                    f"KnockoffSelector: columns {list(found)} hold few whole numbers, and their knockoffs will not. "
                    "Give discrete='auto' or the columns.",
                    stacklevel=3,
                )
            return sampler
        if isinstance(self.discrete, str):
            columns = discrete_columns(x)
        else:
            columns = column_indices("KnockoffSelector", "discrete", self.discrete, x.shape[1])
        return CopulaKnockoffs(sampler, columns) if columns else sampler

    def _check(self) -> None:
        owner = "KnockoffSelector"
        require(owner, "q", "in (0, 1)", self.q, lambda q: 0 < q < 1)
        require(owner, "offset", "0 or 1", self.offset, lambda o: o in (0, 1))
        require(owner, "num_draws", ">= 1", self.num_draws, lambda d: d >= 1)
        require(owner, "num_draws", "1 with offset 0", self.num_draws, lambda d: d == 1 or self.offset == 1)
        require(owner, "validation_fraction", "in [0, 1)", self.validation_fraction, lambda v: 0 <= v < 1)
        require(owner, "validity_level", "in [0, 1]", self.validity_level, lambda v: 0 <= v <= 1)
        require(
            owner, "discrete", "None, 'auto' or columns", self.discrete, lambda d: not isinstance(d, str) or d == "auto"
        )
        require(
            owner,
            "statistic",
            f"one of {', '.join(STATISTICS)}, or a function",
            self.statistic,
            lambda s: s in STATISTICS if isinstance(s, str) else callable(s),
        )

    def _explain(self, p: int, held: int) -> str:
        """What the list is worth, in words; warned of where it is empty by necessity."""
        few = unattainable(p, self.q, self.offset, self.num_draws)
        if few:
            warnings.warn(f"KnockoffSelector: no selection is possible: {few}", stacklevel=3)
            return f"Nothing selected: {few}"
        few_rows = (
            "too few rows to test the knockoffs" if self.validation_fraction > 0 else "the knockoffs are untested"
        )
        tested = f"the knockoffs: {self.validity_}" if held else few_rows
        if not np.any(self.statistics_):
            return f"Nothing selected: every statistic is 0, no variable differs from its knockoff; {tested}"
        if not self.support_.any():
            return f"Nothing selected: no threshold has an estimated share of false ones <= {self.q:g}; {tested}"
        return f"{int(self.support_.sum())} of {p} variables at q = {self.q:g}; {tested}"

    def _get_support_mask(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  (its stub has None)
        check_is_fitted(self)
        return self.support_


# Compiled once for all tables of one shape: outside jit, every fit would compile the loops anew.
OURS = (GaussianKnockoffs, LassoDifference, LassoEntry, RidgeDifference)
_validity = eqx.filter_jit(validity_report)
_compiled = eqx.filter_jit(lambda owner, method, *arguments: getattr(owner, method)(*arguments))


def _call(owner: Any, method: str, *arguments: Any) -> Any:
    """A method of our own, compiled, or of the user's, as it is."""
    return (_compiled if isinstance(owner, OURS) else _plain)(owner, method, *arguments)


def _plain(owner: Any, method: str, *arguments: Any) -> Any:
    return getattr(owner, method)(*arguments)


def _response(y: np.ndarray) -> np.ndarray:
    """Numbers ``[n]``, or a column a class where y names three classes or more."""
    kind = type_of_target(y)
    if kind.startswith("continuous"):
        return np.asarray(y, float)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) <= 2 or (np.issubdtype(y.dtype, np.number) and len(classes) > 20):
        return codes.astype(float) if len(classes) <= 2 else np.asarray(y, float)
    return np.eye(len(classes))[codes]
