"""Draws of one of n options that carry a gradient: one-hot forwards, an estimate of the derivative backwards.

    z = estimator(key, logits)          # one-hot, a drop-in for one_hot(categorical(key, logits))
    jax.grad(lambda logits: f(estimator(key, logits)))(logits)

Unlike the estimators of unrolls these are pure functions with a gradient of their own, and keep no state. The same key
draws the same option with all of them.
"""

import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from laureate._core import require

__all__ = ["conditional_gumbel", "gumbel_rao", "st_gumbel_softmax", "straight_through", "zgr"]

SMALLEST = 1e-30  # an exponential variable of exactly 0 would be an infinite Gumbel one; float16 knows none so small
LARGEST_BLOCK = 2**22  # numbers drawn at a time


def gumbel_rao(
    key: Array,
    logits: Float[Array, "*batch n"],
    temperature: float | Array = 0.5,
    num_samples: int = 10,
    *,
    axis: int = -1,
    chunk: int | None = None,
) -> Float[Array, "*batch n"]:
    """A one-hot draw whose gradient is that of straight-through Gumbel-softmax, its noise averaged out given the draw.

    ::

        D = onehot argmax(θ + G),   θ̄ = (1/K) Σ_k J_τ(y_k)ᵀ v,   y_k ~ θ + G | D,
        J_τ(y) = (diag s − s sᵀ)/τ,   s = softmax(y/τ)     (Paulus, Maddison & Krause 2021)

    v: the derivative of what follows at the one-hot D, computed once whatever K. The mean is that of K = 1, the
    variance never larger. The y_k are constants: no derivative is taken through their draw.

    logits: θ, any leading axes, each a variable of its own; −inf for options that cannot be.
    temperature: τ > 0; may be traced, has no gradient. Below 0.02 use ``zgr``, its limit.
    num_samples: K >= 1, static.
    axis: of the options.
    chunk: how many of the K are drawn at a time; by default as many as hold four million numbers. The result is the
        same.

    >>> logits = jnp.array([0.5, 0.2, -1.0])
    >>> value = lambda logits: gumbel_rao(jax.random.key(0), logits, 0.5, num_samples=100) @ jnp.array([1.0, 0.0, -2.0])
    >>> value, gradient = jax.jit(jax.value_and_grad(value))(logits)
    >>> print(value, f"{gradient.sum():.3f}")
    0.0 0.000
    """
    require("gumbel_rao", "num_samples", ">= 1", num_samples, lambda k: k >= 1)
    _check("gumbel_rao", logits, axis)
    _check_temperature("gumbel_rao", temperature, num_samples)
    size = max(1, LARGEST_BLOCK // max(1, np.size(logits))) if chunk is None else chunk
    require("gumbel_rao", "chunk", ">= 1 or None", size, lambda c: c >= 1)

    def pullback(key, theta, tau, y, v):
        index = jnp.argmax(y, axis=-1)

        def block(total, first):
            number = first + jnp.arange(min(size, num_samples))
            each = jax.vmap(lambda k: jax.random.fold_in(key, k))(number)
            fresh = jax.vmap(lambda one: _conditional(one, theta, index))(each)
            counted = (number < num_samples).reshape(-1, *[1] * theta.ndim)
            return total + jnp.sum(jnp.where(counted, _softmax_pullback(fresh, tau, v), 0), axis=0), None

        return (
            jax.lax.scan(block, jnp.zeros_like(theta), jnp.arange(0, num_samples, min(size, num_samples)))[0]
            / num_samples
        )

    return _draw(key, logits, axis, pullback, temperature)


def st_gumbel_softmax(
    key: Array, logits: Float[Array, "*batch n"], temperature: float | Array = 0.5, *, axis: int = -1
) -> Float[Array, "*batch n"]:
    """A one-hot draw with the gradient of its relaxation, θ̄ = J_τ(θ + G)ᵀ v (Jang et al. 2017, Maddison et al. 2017).

    The arguments are those of `gumbel_rao`, of which it is the case K = 1, in law.

    >>> jax.jit(st_gumbel_softmax)(jax.random.key(0), jnp.array([0.5, 0.2, -1.0])).tolist()
    [0.0, 1.0, 0.0]
    """
    _check("st_gumbel_softmax", logits, axis)
    _check_temperature("st_gumbel_softmax", temperature, 1)

    def pullback(key, theta, tau, y, v):
        return _softmax_pullback(y, tau, v)  # the very noise that chose D

    return _draw(key, logits, axis, pullback, temperature)


def straight_through(key: Array, logits: Float[Array, "*batch n"], *, axis: int = -1) -> Float[Array, "*batch n"]:
    """A one-hot draw with the gradient of its mean, θ̄ = (diag p − p pᵀ) v, p = softmax(θ) (Bengio et al. 2013).

    Exact where what follows is linear in the draw.

    >>> jax.jit(straight_through)(jax.random.key(0), jnp.array([0.5, 0.2, -1.0])).tolist()
    [0.0, 1.0, 0.0]
    """
    _check("straight_through", logits, axis)

    def pullback(key, theta, tau, y, v):
        return _softmax_pullback(theta, 1.0, v)

    return _draw(key, logits, axis, pullback, 1.0)


def zgr(key: Array, logits: Float[Array, "*batch n"], *, axis: int = -1) -> Float[Array, "*batch n"]:
    """A one-hot draw with the limit of `gumbel_rao` for τ → 0, K → ∞, in closed form and without a setting.

    ::

        θ̄ = ½ Σ_{j ≠ i} p_j (v_i − v_j) (e_i − e_j),   i the option drawn     (Shekhovtsov 2023)

    Exact where what follows is linear or quadratic in one draw. Draw by draw it is ReinMax at temperature 1.

    >>> jax.jit(zgr)(jax.random.key(0), jnp.array([0.5, 0.2, -1.0])).tolist()
    [0.0, 1.0, 0.0]
    """
    _check("zgr", logits, axis)

    def pullback(key, theta, tau, y, v):
        p, drawn = jax.nn.softmax(theta), _one_hot(y)
        gap = jnp.sum(drawn * v, axis=-1, keepdims=True) - v  # v_i − v_j
        return 0.5 * (drawn * jnp.sum(p * gap, axis=-1, keepdims=True) - p * gap)

    return _draw(key, logits, axis, pullback, 1.0)


def conditional_gumbel(
    key: Array, logits: Float[Array, "*batch n"], index: Int[Array, "*batch"], num_samples: int = 1
) -> Float[Array, "samples *batch n"]:
    """Draws of θ + G, G Gumbel noise, given that option ``index`` is the largest; no gradient.

    ::

        E_j ~ Exp(1),   y_i = ln Z − ln E_i,   y_j = −ln(E_j e^{−θ_j} + E_i/Z),   Z = Σ_j e^{θ_j}

    Computed in logarithms throughout, so that no logit overflows.

    >>> draw = jax.jit(lambda key: conditional_gumbel(key, jnp.array([0.0, 5.0]), jnp.array(0), num_samples=3))
    >>> y = draw(jax.random.key(0))
    >>> y.shape, bool((y.argmax(-1) == 0).all())
    ((3, 2), True)
    """
    require("conditional_gumbel", "num_samples", ">= 1", num_samples, lambda k: k >= 1)
    _check("conditional_gumbel", logits, -1)
    require("conditional_gumbel", "index", f"{logits.shape[:-1]}", np.shape(index), lambda s: s == logits.shape[:-1])
    logits = jax.lax.stop_gradient(jnp.asarray(logits))
    total = jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    keys = jax.vmap(lambda k: jax.random.fold_in(key, k))(jnp.arange(num_samples))
    return total + jax.vmap(lambda one: _conditional(one, logits, jnp.asarray(index)))(keys)


def _conditional(key: Array, logits: Array, index: Array) -> Array:
    """A draw of ℓ + G given the index, ℓ = ln softmax(θ), e = ln E: y_i = −e_i, y_j = −ln(exp(e_j − ℓ_j) + exp e_i)."""
    smallest = max(SMALLEST, float(jnp.finfo(logits.dtype).tiny))
    e = jnp.log(jnp.maximum(jax.random.exponential(key, logits.shape, logits.dtype), smallest))
    chosen = jnp.take_along_axis(e, index[..., None], axis=-1)
    others = -jnp.logaddexp(e - jax.nn.log_softmax(logits), chosen)
    return jnp.where(jnp.arange(logits.shape[-1]) == index[..., None], -chosen, others)


def _softmax_pullback(y: Array, tau: Array | float, v: Array) -> Array:
    """J_τ(y)ᵀ v = (s v − s (s · v))/τ, s = softmax(y/τ)."""
    s = jax.nn.softmax(y / tau)
    return (s * v - s * jnp.sum(s * v, axis=-1, keepdims=True)) / tau


def _draw(key: Array, logits: Array, axis: int, pullback: Callable, temperature: float | Array) -> Array:
    """One-hot of argmax(θ + G), with ``pullback(key, θ, τ, y, v)`` for its gradient, y = θ + G."""

    @jax.custom_vjp
    def sample(keys, theta, tau):
        return forward(keys, theta, tau)[0]

    def forward(keys, theta, tau):
        y = theta + jax.random.gumbel(keys[0], theta.shape, theta.dtype)
        return _one_hot(y), (keys[1], theta, tau, y)

    def backward(kept, v):
        key, theta, tau, y = kept
        return None, pullback(key, theta, tau, y, v).astype(theta.dtype), jnp.zeros_like(tau)

    sample.defvjp(forward, backward)
    theta = jnp.moveaxis(jnp.asarray(logits), axis, -1)
    tau = jnp.asarray(temperature, theta.dtype)
    return jnp.moveaxis(sample(jax.random.split(key), theta, tau), -1, axis)


def _one_hot(y: Array) -> Array:
    return jax.nn.one_hot(jnp.argmax(y, axis=-1), y.shape[-1], dtype=y.dtype)


def _check(owner: str, logits: Array, axis: int) -> None:
    kind = jnp.result_type(logits)
    if not jnp.issubdtype(kind, jnp.floating):
        raise TypeError(f"{owner}.logits must be of a floating type; got {kind}. Convert them: logits.astype(float).")
    rule = f"[..., options], these along axis {axis}"
    require(owner, "logits", rule, np.shape(logits), lambda s: -len(s) <= axis < len(s) and s[axis] >= 1)
    if isinstance(logits, Tracer):
        return
    known = np.moveaxis(np.asarray(logits), axis, -1)
    require(owner, "logits", "free of nan", bool(np.isnan(known).any()), lambda found: not found)
    hopeless = bool(np.any(np.all(known == -np.inf, axis=-1)))
    rule, remedy = "finite for one option at least", "Those of some variable are all -inf."
    require(owner, "logits", rule, hopeless, lambda found: not found, remedy)
    if known.shape[-1] > 1 and np.all((known >= 0) & (known <= 1)) and np.allclose(known.sum(-1), 1, atol=1e-5):
        warnings.warn(f"{owner}.logits look like probabilities: take their logarithm.", UserWarning, stacklevel=3)


def _check_temperature(owner: str, temperature: float | Array, num_samples: int) -> None:
    remedy = "For several map over them with jax.vmap."
    require(owner, "temperature", "one number", np.shape(temperature), lambda shape: shape == (), remedy)
    require(owner, "temperature", "> 0", temperature, lambda t: t > 0, "zgr is the limit.")
    if not isinstance(temperature, Tracer) and float(temperature) < 0.02 and num_samples < 100:
        warnings.warn(
            f"{owner}.temperature is {float(temperature):.3g} with {num_samples} samples: the variance grows as 1/τ, "
            f"here to about {1 / float(temperature):.0f} times that of τ = 1. zgr is the limit, without that noise.",
            UserWarning,
            stacklevel=3,
        )
