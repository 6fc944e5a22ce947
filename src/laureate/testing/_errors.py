"""What every estimate with a standard error promises."""

from collections.abc import Callable, Collection
from typing import Any

import jax
import numpy as np

from laureate.testing._checks import Check, Program, keys_used_once
from laureate.testing._random import keys_of

__all__ = ["check_standard_error"]


def check_standard_error(
    function: Callable[[Any], tuple[Any, Any]],
    *,
    exact: Any = None,
    name: str = "",
    num_repeats: int = 300,
    tolerance: float = 0.25,
    shared_keys: int = 1,
    skip: Collection[str] = (),
) -> list[str]:
    """Check that an estimate spreads over keys as its own standard error says.

    function: from a key to (estimate, standard error), each a number or an array of one shape; vmapped over keys.
    exact: what it estimates, where that is known.
    name: in messages.
    num_repeats: how many keys. The spread of a normal number is then known within 1/√(2 repeats).
    tolerance: how far the spread over keys may be from the root mean square of the standard errors, as a share.
    shared_keys: how often one and the same draw may come from one key on purpose: 2 for antithetic pairs.
    skip: properties to leave out: those in the list that is returned.

    Properties: no key is used twice, as correlated draws have another spread; the errors are positive; the spread over
    keys is what they say; on average the estimate is ``exact``, within 4.5 errors of that average.
    """
    check = Check(name or getattr(function, "__name__", type(function).__name__), skip)
    if check.wants("keys are used once"):
        recorder, _ = keys_of(function, jax.random.key(17))
        keys_used_once(check, recorder, shared_keys)
    keys = jax.random.split(jax.random.key(17), num_repeats)
    estimates, errors = (np.asarray(leaf, np.float64) for leaf in Program(jax.vmap(function))(keys))
    if check.wants("errors are positive"):
        fine = np.isfinite(errors).all() and (errors > 0).all() and np.isfinite(estimates).all()
        check.require(fine, "finite estimates with errors above 0", errors.min(), "Is the sample larger than one?")
    reported, spread = np.sqrt(np.mean(errors**2, axis=0)), np.std(estimates, axis=0, ddof=1)
    if check.wants("spread is the standard error"):
        share = spread / reported
        inside = np.all((share > 1 - tolerance) & (share < 1 / (1 - tolerance)))
        remedy = "Divide by the root of the number of independent samples, and by nothing else."
        check.require(
            inside, f"a spread over {num_repeats} keys of {np.round(reported, 6)}", np.round(spread, 6), remedy
        )
    if exact is not None and check.wants("right on average"):
        off = np.abs(estimates.mean(axis=0) - np.asarray(exact)) / (spread / np.sqrt(num_repeats))
        check.require(np.all(off < 4.5), f"{exact} on average", estimates.mean(axis=0), "Is it biased?")
    return check.finish()
