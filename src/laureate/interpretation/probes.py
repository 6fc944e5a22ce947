"""What does a unit say? One Gaussian a class and unit, and the variance that a condition explains."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from laureate._core import require

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


def fit_probe(activations: Float[Array, "n d"], labels: Int[Array, "n"], num_classes: int = 2) -> GaussianProbe:
    """Means, variances and shares of the classes.

    activations: ``[tokens, units]``. labels: 0..num_classes − 1, each at least once.

    >>> x, y = jnp.array([[0.0], [0.2], [1.0], [1.2]]), jnp.array([0, 0, 1, 1])
    >>> fit_probe(x, y).predict(jnp.array([[0.3], [0.9]])).ravel().tolist()
    [0, 1]
    """
    x, weights = _by_class("fit_probe", activations, labels, num_classes)
    counts = jnp.sum(weights, axis=1)
    means = weights @ x / counts[:, None]
    spread = jnp.sum(weights[:, :, None] * (x - means[:, None]) ** 2, axis=1) / counts[:, None]
    # A class in which a unit never varies would be certain: no variance is below a millionth of the unit's own.
    floor = 1e-6 * jnp.var(x, axis=0) + jnp.finfo(x.dtype).tiny
    return GaussianProbe(means, jnp.maximum(spread, floor), counts / jnp.sum(counts))


class ProbeResult(NamedTuple):
    """How well each unit alone says the class.

    accuracy: share of tokens. f1: of each class, ``[classes, units]``; 0 where nothing is rightly found.
    majority: the accuracy of who always says the most frequent class.
    """

    accuracy: Float[Array, "d"]
    f1: Float[Array, "c d"]
    majority: Float[Array, ""]


def score_probe(probe: GaussianProbe, activations: Float[Array, "n d"], labels: Int[Array, "n"]) -> ProbeResult:
    """Accuracy and F1 of each unit, on tokens that the probe has not seen."""
    _, weights = _by_class("score_probe", activations, labels, len(probe.means), every=False)
    said = probe.predict(activations)
    right = jnp.asarray(labels)[:, None] == said
    classes = jnp.arange(len(probe.means))[:, None, None]
    hits = jnp.sum((said == classes) & right, axis=1)
    named = jnp.sum(said == classes, axis=1) + jnp.sum(weights, axis=1)[:, None]
    f1 = jnp.where(named > 0, 2 * hits / jnp.maximum(named, 1), 0.0)
    return ProbeResult(jnp.mean(right, axis=0), f1, jnp.max(jnp.mean(weights, axis=1)))


def explained_variance(
    activations: Float[Array, "n d"], condition: Int[Array, "n"], num_values: int
) -> Float[Array, "d"]:
    """How much of a unit's variance a condition explains: 1 − E[Var(x | c)]/Var(x), of token, position or label.

    In [0, 1]; 0 for a unit that is constant. A condition with nearly as many values as tokens explains everything.

    condition: 0..num_values − 1 of every token.

    >>> explained_variance(jnp.array([[1.0, 1.0], [1.0, 2.0], [3.0, 1.0], [3.0, 2.0]]), jnp.array([0, 0, 1, 1]), 2)
    Array([1., 0.], dtype=float32)
    """
    x, weights = _by_class("explained_variance", activations, condition, num_values, every=False)
    x = x - jnp.mean(x, axis=0)
    counts = jnp.sum(weights, axis=1)
    means = weights @ x / jnp.maximum(counts, 1)[:, None]
    between = jnp.sum(counts[:, None] * means**2, axis=0) / len(x)
    whole = jnp.mean(x**2, axis=0)
    return jnp.where(whole > 0, jnp.clip(between / jnp.where(whole > 0, whole, 1.0), 0.0, 1.0), 0.0)


def _by_class(owner: str, activations: Array, labels: Array, num_classes: int, every: bool = True):
    """Activations, and 1 where a token is of a class, ``[classes, tokens]``."""
    x, labels = jnp.asarray(activations), jnp.asarray(labels)
    require(owner, "activations", "[tokens, units]", x.shape, lambda shape: len(shape) == 2, "Use flatten_tokens.")
    rule = f"whole numbers, one a token, [{len(x)}]"
    fine = lambda y: y.shape == (len(x),) and np.issubdtype(y.dtype, np.integer)  # noqa: E731
    require(owner, "labels", rule, labels if labels.size < 20 else labels.shape, lambda _: fine(labels))
    least = 2 if every else 1
    require(owner, "num_classes", f">= {least}", num_classes, lambda n: n >= least)
    known = lambda y: bool(np.all((y >= 0) & (y < num_classes)))  # noqa: E731
    require(owner, "labels", f"in 0..{num_classes - 1}", labels, known)
    if every:
        remedy = "A probe needs tokens of every class."
        present = lambda y: len(np.unique(y)) == num_classes  # noqa: E731
        require(owner, "labels", f"of all {num_classes} classes", labels, present, remedy)
    return x, (labels == jnp.arange(num_classes)[:, None]).astype(x.dtype)
