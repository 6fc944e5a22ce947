"""What the checks of estimators in scikit-learn's manner share: clones, settings that stay as they are, refusals."""

import io
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import jax
import numpy as np

from laureate.testing._checks import Check, same_bits

__all__ = ["LOADED", "clone", "every_setting_is_used", "refuses", "settings_stay", "spoiled", "with_fitted"]

LOADED = "What fit finds belongs into names that end in _, as numbers and arrays."


def clone(check: Check, original: Any) -> Any:
    """A copy that is not fitted; a constructor that alters a setting is reported, for then nothing can be checked."""
    from sklearn import base

    try:
        return cast("Callable[[Any], Any]", base.clone)(original)
    except RuntimeError as error:
        check.wants("settings")
        check.fail("a constructor that keeps what it is given", str(error), "Check and convert settings in fit.")


def settings_stay(check: Check, estimator: Any, fitted: Any, returned: Any) -> None:
    """``fit`` returns the estimator and leaves the settings alone, and a clone of it is not fitted.

    estimator: as given. fitted: a clone after ``fit``, which returned ``returned``.
    """
    if not check.wants("settings"):
        return
    words = lambda one: {name: repr(value) for name, value in one.get_params().items()}  # noqa: E731
    check.require(returned is fitted, "fit to return the estimator", type(returned).__name__, "return self")
    before, after = words(estimator), words(fitted)
    check.require(before == after, f"the settings {before}", after, "Keep what is fitted under names with _.")
    fresh = [name for name in vars(clone(check, fitted)) if name.endswith("_")]
    check.require(not fresh, "a clone that is not fitted", fresh, "Fit in fit alone.")


def every_setting_is_used(
    check: Check, estimator: Any, compute: Callable[[Any], Any], unused: Collection[str] = ()
) -> None:
    """Each number among the settings, changed on its own, changes what is computed from the estimator, not fitted.

    unused: names of settings that rightly change nothing here.
    """
    if not check.wants("every number is used"):
        return
    before = compute(clone(check, estimator))
    for name, value in estimator.get_params().items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or name in unused:
            continue
        share = not isinstance(value, int | np.integer) and 0 <= value < 1
        another = value + 0.3 * (1 - value) if share else value + 1  # of a share another share
        changed = compute(clone(check, estimator).set_params(**{name: another}))
        remedy = "Is it read, and handed on? Name it in `unused` where it rightly changes nothing here."
        check.require(not same_bits(changed, before), f"another result for {name}={another:g}", "the same", remedy)


def with_fitted(check: Check, fresh: Any, fitted: Any) -> Any:
    """``fresh`` with all that ``fit`` has found, which must end in ``_`` and go through a file of arrays, no pickle."""
    for name, value in vars(fitted).items():
        if not name.endswith("_"):
            continue
        leaves, structure = jax.tree.flatten(value)
        file = io.BytesIO()
        try:
            np.savez(file, allow_pickle=False, **{str(i): np.asarray(leaf) for i, leaf in enumerate(leaves)})
        except ValueError as error:
            check.fail(f"numbers and arrays in {name}", str(error), LOADED)
        file.seek(0)
        with np.load(file, allow_pickle=False) as kept:
            loaded = [kept[str(i)] for i in range(len(leaves))]
        setattr(fresh, name, jax.tree.unflatten(structure, [one.item() if one.ndim == 0 else one for one in loaded]))
    return fresh


def refuses(check: Check, calls: Mapping[str, Callable[[], Any]]) -> None:
    """Every call raises a ValueError; the name of each says what is wrong with it."""
    if not check.wants("refusals"):
        return
    for name, call in calls.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
        except ValueError:
            continue
        except Exception as error:  # whatever it is, it does not say what was wrong with the input
            got = f"{type(error).__name__}: {error}"
            check.fail(f"a ValueError for {name}", got, "Say what was given and why not.")
        check.fail(f"a refusal of {name}", "none", "Raise a ValueError that says what was given.")


def spoiled(good: np.ndarray, place: Any, value: Any) -> np.ndarray:
    """A copy with one entry exchanged."""
    bad = good.copy()
    bad[place] = value
    return bad
