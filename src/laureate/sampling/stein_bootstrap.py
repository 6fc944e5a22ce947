"""Do these draws come from that density? Tests by Stein's identity, their null distribution by a bootstrap."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from laureate._core import Status, require
from laureate.sampling.stein_discrepancy import (
    Bandwidth,
    Kernel,
    Scores,
    Slices,
    bandwidth_of,
    checked,
    full_gram,
    slice_bandwidths,
    sliced_gram,
    summed,
    unit_slices,
)
from laureate.sampling.stein_slices import first_part, fit_slices, random_slices

__all__ = ["BOUNDED", "MOMENTS", "SteinTest", "stein_mean_test", "stein_test"]

SLOWNESS = 3.0  # times the chain's own correlation time that signs keep theirs
# Functions of a standardised coordinate whose Stein means are tested: bounded ones, and those of mean and variance.
BOUNDED = (jnp.ones_like, jnp.tanh, lambda x: x * jnp.exp(-(x**2) / 2), lambda x: jnp.sin(2 * x))
MOMENTS = (jnp.ones_like, lambda x: x)


class SteinTest(NamedTuple):
    """What a test of goodness of fit found.

    p_value: (1 + draws at least as large)/(1 + draws); NaN where something is not finite. value: the statistic. null:
    its bootstrap draws under the null, [draws]. status: DIVERGED where the statistic or a draw is not finite.
    """

    p_value: Float[Array, ""]
    value: Float[Array, ""]
    null: Float[Array, "draws"]
    status: Int[Array, ""]


def stein_test(
    key: Array,
    samples: Float[Array, "n d"] | Float[Array, "chains n d"],
    scores: Scores,
    *,
    slices: Literal["max", "identity", "random"] | Slices | None = "max",
    split: float = 0.2,
    kernel: Kernel = "rbf",
    bandwidth: Bandwidth = "median",
    bootstrap: Literal["multinomial", "wild"] = "multinomial",
    flip: float | Array | None = None,
    num_bootstrap: int = 1000,
    **settings: Any,
) -> SteinTest:
    """Test whether draws come from a density known up to a constant.

    ::

        U = Σ_{i≠j} h(x_i, x_j)/(n(n − 1)),   null: Σ_{i≠j} (w_i − 1/n) h(x_i, x_j) (w_j − 1/n),   n w ~ Multinomial

    "wild", for chains: Σ_{i≠j} w_i w_j h/(n(n − 1)), w_i = ±1 changing its sign with probability ``flip``
    (Chwialkowski, Strathmann & Gretton 2016). The multinomial null holds for independent draws alone: a perfect chain
    whose effective sample size is a third of its length is rejected half of the time. Slow signs hold the level but
    roughly: of perfect chains of 300 draws that correlate by 0.9 they reject a tenth at 5 %. A test that does not
    reject certifies nothing that its slices cannot see; the axes are blind to dependence between coordinates.

    samples: draws, as rows, independent or in the order of a chain; several chains only with "wild".
    scores: ∇ log p at the draws; or a function of one point, the log density or its gradient.
    slices: "max", fitted to the first draws, which do not test; "identity", the axes; "random"; one's own; None for the
        kernelized Stein discrepancy of whole points.
    split: share of the draws that "max" fits slices to; settings: of `fit_slices`.
    kernel, bandwidth: as for `ksd`; "max" is fitted at the median whatever the bandwidth of the test.
    flip: in (0, 0.5]; by default from the effective sample size, so that signs last three times as long as the chain's
        own correlation.
    num_bootstrap: draws of the null; at least 19, for with fewer no p-value is below 0.05.

    >>> x = jax.random.normal(jax.random.key(0), (300, 10))
    >>> test = jax.jit(lambda key, x: stein_test(key, x, lambda x: -x @ x / 2, slices="identity").p_value)
    >>> p_values = test(jax.random.key(1), x), test(jax.random.key(1), x.at[:, 3].multiply(0.5))
    >>> [bool(p < 0.05) for p in p_values]
    [False, True]
    """
    _check_bootstrap("stein_test", samples, bootstrap, flip, num_bootstrap)
    if isinstance(slices, str):
        known = ("max", "identity", "random")
        require("stein_test", "slices", f"one of {known}, Slices or None", slices, lambda name: name in known)
    if settings and slices != "max":
        raise TypeError(f'stein_test: {", ".join(settings)} are settings of fit_slices, for slices="max" alone.')
    chains, s = _as_chains("stein_test", samples, scores, kernel)
    fitting, weighing = jax.random.split(key)
    d = chains.shape[-1]
    if slices == "max":
        known = first_part("stein_test", chains.shape[1], split)
        first = (part[:, :known].reshape(-1, d) for part in (chains, s))
        slices = fit_slices(fitting, *first, kernel=kernel, **settings)
        chains, s = chains[:, known:], s[:, known:]
    elif slices == "random":
        slices = random_slices(fitting, d)
    x, s = chains.reshape(-1, d), s.reshape(-1, d)
    if slices is None:
        gram = full_gram(x, s, bandwidth_of("stein_test", bandwidth, x), kernel)
    else:
        lines = unit_slices("stein_test", None if slices == "identity" else slices, x)  # pyright: ignore[reportArgumentType]
        rows = (slice_bandwidths("stein_test", bandwidth, x, lines.g), *lines)

        def add(total, row):
            ell, r, g = row
            return total + sliced_gram(x, s, r, g, ell, kernel), None

        gram = jax.lax.scan(add, jnp.zeros((len(x), len(x)), x.dtype), rows)[0]
    w = bootstrap_weights(weighing, num_bootstrap, chains, bootstrap, flip)
    apart = gram - jnp.diag(jnp.diag(gram))
    return _judged(summed(gram, "u"), jnp.sum((w @ apart) * w, axis=1))


def stein_mean_test(
    key: Array,
    samples: Float[Array, "n d"] | Float[Array, "chains n d"],
    scores: Scores,
    *,
    functions: Sequence[Callable[[Array], Array]] = BOUNDED,
    bootstrap: Literal["multinomial", "wild"] = "multinomial",
    flip: float | Array | None = None,
    num_bootstrap: int = 1000,
) -> SteinTest:
    """Test the same with a few functions of each coordinate instead of a kernel: O(n d), and hard to beat.

    ::

        ξ_{jf}(x) = s_j(x) f(z_j) + f'(z_j)/σ_j,   z_j = (x_j − m_j)/σ_j,   E_p ξ = 0
        U = Σ_{jf} [(Σ_i ξ_i)² − Σ_i ξ_i²]/(n(n − 1) var ξ)

    m and σ are the draws' own mean and standard deviation.

    functions: of a standardised coordinate, elementwise; `BOUNDED`: 1, tanh z, z exp(−z²/2), sin 2z. `MOMENTS`: 1, z.
    samples, scores, bootstrap, flip, num_bootstrap: as for `stein_test`.

    >>> x = jax.random.laplace(jax.random.key(0), (300, 10)) / jnp.sqrt(2)
    >>> test = jax.jit(lambda key, x: stein_mean_test(key, x, -x).p_value)
    >>> bool(test(jax.random.key(1), x) < 0.05)
    True
    """
    _check_bootstrap("stein_mean_test", samples, bootstrap, flip, num_bootstrap)
    require("stein_mean_test", "functions", "at least one", len(functions), lambda count: count >= 1)
    chains, s = _as_chains("stein_mean_test", samples, scores, "rbf")
    x, s = (part.reshape(-1, chains.shape[-1]) for part in (chains, s))
    features = _stein_features(x, s, functions)
    n = len(x)
    w = bootstrap_weights(key, num_bootstrap, chains, bootstrap, flip)
    squares = jnp.sum(features**2, axis=1)
    value = (jnp.sum(jnp.sum(features, axis=0) ** 2) - jnp.sum(squares)) / (n * (n - 1))
    return _judged(value, jnp.sum((w @ features) ** 2, axis=1) - w**2 @ squares)


def _stein_features(x: Array, s: Array, functions: Sequence[Callable[[Array], Array]]) -> Float[Array, "n features"]:
    """ξ over its standard deviation."""
    sigma = jnp.std(x, axis=0)
    z = (x - jnp.mean(x, axis=0)) / sigma
    found = []
    for function in functions:
        value, slope = jax.jvp(function, (z,), (jnp.ones_like(z),))
        found.append(s * value + slope / sigma)
    xi = jnp.concatenate(found, axis=1)
    return xi / jnp.std(xi, axis=0)


def _judged(value: Array, null: Array) -> SteinTest:
    finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(null))
    p = (1 + jnp.sum(null >= value)) / (1 + len(null))
    status = jnp.where(finite, int(Status.OK), int(Status.DIVERGED))
    return SteinTest(jnp.where(finite, p, jnp.nan), value, null, status)


def bootstrap_weights(
    key: Array, number: int, chains: Float[Array, "chains n d"], kind: str, flip: float | Array | None
) -> Float[Array, "number draws"]:
    """w of which the null is a quadratic form: counts less their mean, or signs that change now and then."""
    c, draws = chains.shape[:2]
    n = c * draws
    if kind == "multinomial":
        picks = jax.random.randint(key, (number, n), 0, n)
        counts = jax.vmap(lambda row: jnp.zeros(n, chains.dtype).at[row].add(1))(picks)
        return (counts - 1) / n
    flip = flip_from_chains(chains) if flip is None else flip
    # The first sign of every chain is a coin, the next ones change with probability `flip`.
    chance = jnp.broadcast_to(jnp.where(jnp.arange(draws) == 0, 0.5, flip), (c, draws)).reshape(n)
    changes = jax.random.bernoulli(key, chance, (number, n))
    signs = 1 - 2 * (jnp.cumsum(changes, axis=1) % 2)
    return signs.astype(chains.dtype) / np.sqrt(n * (n - 1))


def flip_from_chains(chains: Float[Array, "chains n d"]) -> Array:
    """The probability at which signs last ``SLOWNESS`` times as long as the slowest coordinate: (1 − a)/a = 3 n/ESS."""
    from blackjax.diagnostics import effective_sample_size  # a second to import

    draws = chains.shape[0] * chains.shape[1]
    time = jnp.maximum(draws / jnp.min(effective_sample_size(chains)), 1.0)
    return 1 / (1 + SLOWNESS * time)


def _as_chains(owner: str, samples: Array, scores: Scores, kernel: Kernel) -> tuple[Array, Array]:
    """Draws and scores as [chains, n, d]."""
    remedy = "Draws of one coordinate: samples[:, None]." if np.ndim(samples) < 2 else ""
    require(owner, "samples", "[n, d] or [chains, n, d]", np.shape(samples), lambda s: len(s) in (2, 3), remedy)
    shape = np.shape(samples) if np.ndim(samples) == 3 else (1, *np.shape(samples))
    if not callable(scores):
        rule, remedy = f"of the shape of samples, {np.shape(samples)}", "Are the draws transposed?"
        require(owner, "scores", rule, np.shape(scores), lambda s: s == np.shape(samples), remedy)
        scores = jnp.reshape(scores, (-1, shape[-1]))
    x, s = checked(owner, jnp.reshape(samples, (-1, shape[-1])), scores, kernel)
    return x.reshape(shape), s.reshape(shape)


def _check_bootstrap(owner: str, samples: Array, bootstrap: str, flip: Any, num_bootstrap: int) -> None:
    kinds = ("multinomial", "wild")
    require(owner, "bootstrap", f"one of {kinds}", bootstrap, lambda kind: kind in kinds)
    require(owner, "flip", "None or in (0, 0.5]", flip, lambda a: a is None or bool(np.all((a > 0) & (a <= 0.5))))
    rule = ">= 19: with fewer no p-value is below 0.05"
    require(owner, "num_bootstrap", rule, num_bootstrap, lambda count: count >= 19)
    if bootstrap == "multinomial":
        rule, remedy = "left out with independent draws", 'Signs that change are of bootstrap="wild".'
        require(owner, "flip", rule, flip, lambda a: a is None, remedy)
        chains = 'Several chains: bootstrap="wild", or thin and concatenate them.'
        remedy = chains if np.ndim(samples) > 2 else "Draws of one coordinate: samples[:, None]."
        require(owner, "samples", "[n, d] for independent draws", np.shape(samples), lambda s: len(s) == 2, remedy)
        if not isinstance(samples, Tracer):
            x = np.asarray(samples, np.float64)
            x = x - x.mean(0)
            size = np.sum(x**2, axis=0)
            rho = float(np.mean(np.sum(x[1:] * x[:-1], axis=0) / np.where(size > 0, size, 1)))
            if rho > 1 / 3:
                warnings.warn(
                    f"{owner}.samples look like a chain: neighbours correlate by {rho:.2f}, so that fewer than half of "
                    'the draws count. The multinomial null then rejects perfect chains: bootstrap="wild", or thin.',
                    UserWarning,
                    stacklevel=3,
                )
