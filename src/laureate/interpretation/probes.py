"""What does a unit say? One Gaussian a class and unit, and the variance that a condition explains."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require
from laureate.interpretation.moments import at_least_single

__all__ = ["GaussianProbe", "ProbeResult", "explained_variance", "fit_probe", "score_probe"]


class GaussianProbe(eqx.Module):
    """A class predicted from one unit at a time, by the Gaussian that explains its activation best.

    argmax_c log prior_c + log N(x; mean_c, variance_c), for every unit alone.

    means, variances: ``[classes, units]``. priors: shares of the classes.
    """

    means: Float[Array, "c d"]
    variances: Float[Array, "c d"]
    priors: Float[Array, "c"]

    def predict(self, activations: Float[Array, "n d"]) -> Int[Array, "n d"]:
        """The class that each unit alone would say, ``[tokens, units]``; of equals the first."""
        x = jnp.asarray(activations)[:, None]
        score = jnp.log(self.priors)[:, None] - 0.5 * jnp.log(self.variances)
        return jnp.argmax(score - 0.5 * (x - self.means) ** 2 / self.variances, axis=1)


def fit_probe(
    activations: Float[Array, "n d"],
    labels: Int[Array, "n"],
    num_classes: int = 2,
    mask: Bool[Array, "n"] | None = None,
) -> GaussianProbe:
    """Means, variances and shares of the classes.

    activations: ``[tokens, units]``. labels: 0..num_classes − 1, each at least once. mask: False for tokens that do not
        count, whose label may be anything.

    >>> x, y = jnp.array([[0.0], [0.2], [1.0], [1.2]]), jnp.array([0, 0, 1, 1])
    >>> fit_probe(x, y).predict(jnp.array([[0.3], [0.9]])).ravel().tolist()
    [0, 1]
    """
    x, weights = _by_class("fit_probe", activations, labels, num_classes, mask)
    counts = jnp.sum(weights, axis=1)
    means = weights @ x / counts[:, None]
    spread = jnp.sum(weights[:, :, None] * (x - means[:, None]) ** 2, axis=1) / counts[:, None]
    # A class in which a unit never varies would be certain: no variance is below a millionth of the unit's own.
    priors = counts / jnp.sum(counts)
    whole = priors @ (spread + means**2) - (priors @ means) ** 2
    floor = 1e-6 * jnp.maximum(whole, 0.0) + jnp.finfo(x.dtype).tiny
    return GaussianProbe(means, jnp.maximum(spread, floor), priors)


class ProbeResult(NamedTuple):
    """How well each unit alone says the class.

    accuracy: share of tokens. f1: of each class, ``[classes, units]``; 0 where nothing is rightly found.
    majority: the accuracy of who always says the most frequent class.
    """

    accuracy: Float[Array, "d"]
    f1: Float[Array, "c d"]
    majority: Float[Array, ""]


def score_probe(
    probe: GaussianProbe,
    activations: Float[Array, "n d"],
    labels: Int[Array, "n"],
    mask: Bool[Array, "n"] | None = None,
) -> ProbeResult:
    """Accuracy and F1 of each unit, on tokens that the probe has not seen. The arguments are those of `fit_probe`."""
    x, weights = _by_class("score_probe", activations, labels, len(probe.means), mask, every=False)
    said = probe.predict(x) == jnp.arange(len(probe.means))[:, None, None]  # [classes, tokens, units]
    hits = jnp.sum(said * weights[:, :, None], axis=1)
    counts, counted = jnp.sum(weights, axis=1), jnp.sum(weights, axis=0)
    named = jnp.sum(said * counted[:, None], axis=1) + counts[:, None]
    total = jnp.maximum(jnp.sum(counts), 1)
    f1 = jnp.where(named > 0, 2 * hits / jnp.maximum(named, 1), 0.0)
    return ProbeResult(jnp.sum(hits, axis=0) / total, f1, jnp.max(counts) / total)


def explained_variance(
    activations: Float[Array, "n d"],
    condition: Int[Array, "n"],
    num_values: int,
    mask: Bool[Array, "n"] | None = None,
) -> Float[Array, "d"]:
    """How much of a unit's variance a condition explains: 1 − E[Var(x | c)]/Var(x), of token, position or label.

    In [0, 1]; 0 for a unit that is constant. A condition with nearly as many values as tokens explains everything.

    condition: 0..num_values − 1 of every token. mask: False for tokens that do not count, as for `fit_probe`.

    >>> explained_variance(jnp.array([[1.0, 1.0], [1.0, 2.0], [3.0, 1.0], [3.0, 2.0]]), jnp.array([0, 0, 1, 1]), 2)
    Array([1., 0.], dtype=float32)
    """
    x, weights = _by_class("explained_variance", activations, condition, num_values, mask, every=False)
    counts, counted = jnp.sum(weights, axis=1), jnp.sum(weights, axis=0)
    total = jnp.maximum(jnp.sum(counted), 1)
    # By the values themselves: beside a mean that is off by a rounding a constant deviates, in every class alike.
    inside = counted[:, None] > 0
    varies = jnp.max(jnp.where(inside, x, -jnp.inf), axis=0) > jnp.min(jnp.where(inside, x, jnp.inf), axis=0)
    x = x - counted @ x / total
    means = weights @ x / jnp.maximum(counts, 1)[:, None]
    between = counts @ means**2 / total
    whole = counted @ x**2 / total
    varies &= whole > 0
    return jnp.where(varies, jnp.clip(between / jnp.where(varies, whole, 1.0), 0.0, 1.0), 0.0)


def _by_class(owner: str, activations: Array, labels: Array, num_classes: int, mask: Array | None, every: bool = True):
    """Activations, and 1 where a token counts and is of a class, ``[classes, tokens]``."""
    x, labels = jnp.asarray(activations), jnp.asarray(labels)
    x = x.astype(at_least_single(x))
    require(owner, "activations", "[tokens, units]", x.shape, lambda shape: len(shape) == 2, "Use flatten_tokens.")
    rule = f"whole numbers, one a token, [{len(x)}]"
    integer = lambda y: y[0] == (len(x),) and np.issubdtype(y[1], np.integer)  # noqa: E731
    require(owner, "labels", rule, (labels.shape, labels.dtype), integer)
    least = 2 if every else 1
    require(owner, "num_classes", f">= {least}", num_classes, lambda n: n >= least)
    if mask is not None:
        mask = jnp.asarray(mask, bool)
        require(owner, "mask", f"one entry a token, [{len(x)}]", mask.shape, lambda shape: shape == (len(x),))
        x = jnp.where(mask[:, None], x, 0.0)
    if not isinstance(labels, Tracer):  # under jit their worth is not known
        seen = np.unique(np.asarray(labels if mask is None else labels[mask])).tolist()
        known = lambda found: all(0 <= label < num_classes for label in found)  # noqa: E731
        require(owner, "labels", f"in 0..{num_classes - 1}", seen, known)
        remedy = "A probe needs tokens of every class."
        present = lambda found: not every or len(found) == num_classes  # noqa: E731
        require(owner, "labels", f"of all {num_classes} classes", seen, present, remedy)
    found = labels == jnp.arange(num_classes)[:, None]
    return x, (found if mask is None else found & mask).astype(x.dtype)
