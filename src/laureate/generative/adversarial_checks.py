"""What is looked at on the host before and after adversarial training: bad data, encoders, budgets, collapse."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from laureate._core import Status, require
from laureate.generative.bottleneck import BottleneckCollapsedWarning, BottleneckState, VariationalBottleneck
from laureate.generative.conditional import _check_finite as check_finite
from laureate.generative.conditional import _floats as floats
from laureate.generative.regularisers import rows_of

__all__ = ["after_training", "before_training", "check_truncation", "data_of"]

# β that moves so many times within so many steps is driven by its step length, not by the constraint.
JUMP, WITHIN = 10.0, 100
# A budget that no encoder here spends.
UNFELT = 50.0
# The mean log σ of an encoder that hands back σ or σ² instead is mostly above the largest sensible one.
LARGEST = 3.0


def data_of(owner: str, x: Any) -> tuple[Array, ...]:
    """The examples as floats, then their conditions; as many rows each."""
    first, *beside = rows_of(x)
    data = floats(first), *map(jnp.asarray, beside)
    rule = "at least two rows, as many as of what is told beside"
    require(owner, "x", rule, [len(leaf) for leaf in data], lambda n: n[0] >= 2 and len(set(n)) == 1)
    return data


def before_training(owner: str, regularisers: tuple[Any, ...], data: tuple[Array, ...], made: tuple[int, ...]) -> None:
    """Raise for rows that are not finite, examples of another shape and encoders without log σ; warn of vain budgets.

    made: the shape of one example of the generator.
    """
    shape = data[0].shape[1:]
    rule, remedy = f"makes examples of the shape of real ones, {shape}", "Reshape its output."
    require(owner, "generator", f"a function that {rule}", made, lambda other: other == shape, remedy)
    check_finite(owner, "x", data[0])
    if not np.ptp(np.asarray(data[0], np.float64), axis=0).any():
        raise ValueError(f"{owner}.x must differ between rows; got {len(data[0])} equal ones. Nothing can be learned.")
    for number, one in enumerate(regularisers):
        if not isinstance(one, VariationalBottleneck):
            continue
        if np.max(np.asarray(one.information)) > UNFELT:
            told = (
                f"VariationalBottleneck.information of {one.information} nats is never used up; it constrains nothing"
            )
            warnings.warn(told, UserWarning, stacklevel=4)
        if number:  # what it sees is another regulariser's output
            continue
        outputs = jax.vmap(one.encoder)(data[0][:64])
        pair = isinstance(outputs, tuple) and len(outputs) == 2 and outputs[0].shape == outputs[1].shape
        mean = float(jnp.mean(outputs[1])) if pair else np.nan
        require(
            "VariationalBottleneck",
            "encoder",
            f"a function to (mean, log deviation) of one shape, with a mean log deviation of at most {LARGEST}",
            f"a mean of {mean:.3g}" if pair else type(outputs).__name__,
            lambda _, mean=mean: mean <= LARGEST,
            "Hand back log σ, neither σ nor σ².",
        )


def after_training(owner: str, infos: Any) -> None:
    """Raise where training was lost; warn where an encoder fell silent or β ran away."""
    status = np.asarray(infos.status)
    lost = int(np.sum(status == Status.DIVERGED))
    if lost:
        raise FloatingPointError(
            f"{owner}.learning_rate must be small enough to train; got {lost} of {len(status)} steps not finite. "
            "Lower it, or scale the examples to numbers near 1."
            + _last_spectrum(infos, int(np.argmax(status == Status.DIVERGED)))
        )
    for state in infos.regularisers:
        if not isinstance(state, BottleneckState):
            continue
        if np.asarray(state.collapsed)[-1]:
            told = (
                f"The bottleneck has fallen silent: KL below a twentieth of I_c for {int(state.silent[-1])} steps, β = "
                f"{float(state.beta[-1]):.3g}. Begin with smaller heads (make_encoder), cap β or lower beta_rate."
            )
            warnings.warn(told, BottleneckCollapsedWarning, stacklevel=4)
        beta = np.asarray(state.beta, np.float64)
        if len(beta) > WITHIN and beta[0] > 0 and np.any(beta[WITHIN:] > JUMP * np.maximum(beta[:-WITHIN], beta[0])):
            told = f"β grew more than {JUMP:.0f} times within {WITHIN} steps, to {beta.max():.3g}: lower beta_rate."
            warnings.warn(told, UserWarning, stacklevel=4)


def _last_spectrum(infos: Any, lost: int) -> str:
    """The largest singular values of the step before the first that was lost, where any are reported."""
    spectra = getattr(infos, "spectra", ())
    sigma = np.asarray(spectra[0].sigma) if spectra else np.zeros(0)
    known = sigma.size > 0 and lost > 0
    return f" The generator's largest singular value was {sigma[lost - 1].max():.3g} before." if known else ""


def check_truncation(statistics: Any, truncation: Any) -> None:
    """Warn of statistics that were made with another truncation than the one asked for; those without any suit all."""
    asked = np.inf if truncation is None else truncation
    if any(isinstance(value, Tracer) for value in (asked, statistics.truncation)):
        return
    made, asked = np.float32(statistics.truncation), np.float32(asked)  # recorded as float32
    if np.isfinite(made) and made != asked:
        told = (
            f"These statistics were made with latents cut at {made:.3g}, and {asked:.3g} is asked for: what is "
            "normalised has then neither size. Use statistics without truncation, or make them anew."
        )
        warnings.warn(told, UserWarning, stacklevel=3)
