"""What categorical estimators are held against: the gradient by enumeration, an unbiased estimate, and their errors."""

import itertools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import Status, require

__all__ = ["EstimateInfo", "all_choices", "estimate", "exact_gradient", "rloo", "rloo_loss"]

MOST_STATES = 4096


class EstimateInfo(NamedTuple):
    """How far an estimator is from the exact gradient, summed over the logits.

    bias2: ‖E ĝ − g‖², without the part that the finite number of draws adds; may be slightly negative.
    variance: E‖ĝ − E ĝ‖². mse: E‖ĝ − g‖². size2: ‖g‖², the error of the gradient 0.
    cost: evaluations of f. status: whether all of it is finite.
    """

    bias2: Array
    variance: Array
    mse: Array
    size2: Array
    cost: Array
    status: Array


def all_choices(num_variables: int, num_options: int) -> Float[Array, "states variables options"]:
    """Every joint choice, one-hot.

    >>> all_choices(2, 3).shape
    (9, 2, 3)
    """
    number = num_options**num_variables
    remedy = "Compare with rloo instead."
    require("all_choices", "options ** variables", f"<= {MOST_STATES}", number, lambda n: n <= MOST_STATES, remedy)
    chosen = np.array(list(itertools.product(range(num_options), repeat=num_variables)), int).reshape(
        number, num_variables
    )
    return jnp.asarray(np.eye(num_options, dtype=np.float32)[chosen])


def exact_gradient(
    f: Callable[[Array], Array], logits: Float[Array, "variables options"]
) -> Float[Array, "variables options"]:
    """∇ E f(D), D ~ Π softmax(θ), by visiting every joint choice; refused beyond 4,096 of them.

    f: from one-hot choices [variables, options], or [options] where the logits have one axis, to a number.

    >>> jax.jit(lambda logits: exact_gradient(lambda z: z @ jnp.array([1.0, 0.0]), logits))(jnp.zeros(2)).tolist()
    [0.25, -0.25]
    """
    theta, shape = jnp.atleast_2d(logits), np.shape(logits)
    choices = all_choices(*theta.shape).astype(theta.dtype)
    values = jax.lax.map(lambda z: f(z.reshape(shape)), choices, batch_size=min(256, len(choices)))
    centred = jax.lax.stop_gradient(values - jnp.mean(values))

    def expectation(theta):
        log_p = jnp.sum(jnp.where(choices > 0, jax.nn.log_softmax(theta), 0), axis=(1, 2))
        return jnp.sum(jnp.exp(log_p) * centred)

    return jax.grad(expectation)(theta).reshape(shape)


def rloo(
    key: Array, f: Callable[[Array], Array], logits: Float[Array, "*variables options"], num_samples: int = 2
) -> Float[Array, "*variables options"]:
    """An unbiased estimate of ∇ E f(D) from values of f alone: each draw has the mean of the others as its baseline.

    ::

        ĝ = 1/(S − 1) Σ_s (f(D_s) − f̄) ∇ ln p(D_s)     (REINFORCE leave-one-out)

    num_samples: S >= 2 evaluations of f.

    >>> jax.jit(lambda key: rloo(key, lambda z: z[0], jnp.zeros(3), num_samples=4))(jax.random.key(0)).shape
    (3,)
    """
    require("rloo", "num_samples", ">= 2", num_samples, lambda s: s >= 2)
    logits = jnp.asarray(logits)
    noise = jax.random.gumbel(key, (num_samples, *logits.shape), logits.dtype)
    drawn = jax.nn.one_hot(jnp.argmax(logits + noise, axis=-1), logits.shape[-1], dtype=logits.dtype)
    values = jax.vmap(f)(drawn)
    score = drawn - jax.nn.softmax(logits)  # ∇ ln p(D)
    return jnp.tensordot(values - jnp.mean(values), score, axes=1) / (num_samples - 1)


def rloo_loss(
    key: Array, f: Callable[[Array], Array], logits: Float[Array, "*rows variables options"], num_samples: int = 2
) -> Float[Array, "*rows"]:
    """Losses of rows whose gradient, by the logits as by what f is made of, is unbiased: `rloo` for one's own network.

    ::

        mean_s f(D_s), with the gradient of mean_s f(D_s) + Σ_s [f(D_s) − f̄]/(S − 1) ln p(D_s), the bracket fixed

    f: from one-hot choices of the logits' shape to a number, or one for each row.
    num_samples: S >= 2 evaluations of f.

    >>> follows = lambda z: jnp.sum(z * jnp.arange(3.0), axis=-1)
    >>> loss = lambda logits: rloo_loss(jax.random.key(0), follows, logits, num_samples=4).mean()
    >>> jax.jit(jax.grad(loss))(jnp.zeros((5, 3))).shape
    (5, 3)
    """
    require("rloo_loss", "num_samples", ">= 2", num_samples, lambda s: s >= 2)
    logits = jnp.asarray(logits)
    noise = jax.random.gumbel(key, (num_samples, *logits.shape), logits.dtype)
    fixed = jax.lax.stop_gradient(logits)
    drawn = jax.nn.one_hot(jnp.argmax(fixed + noise, axis=-1), logits.shape[-1], dtype=logits.dtype)
    values = jax.vmap(f)(drawn)
    chosen = jnp.where(drawn > 0, jax.nn.log_softmax(logits), 0)
    log_p = jnp.sum(chosen, axis=tuple(range(values.ndim, drawn.ndim)))
    gain = jax.lax.stop_gradient(values - jnp.mean(values, axis=0)) / (num_samples - 1)
    return jnp.mean(values, axis=0) + jnp.sum(gain * (log_p - jax.lax.stop_gradient(log_p)), axis=0)


def estimate(
    key: Array,
    f: Callable[[Array], Array],
    logits: Float[Array, "*variables options"],
    estimator: Callable[[Array, Array], Array],
    num_repeats: int = 1000,
) -> tuple[Float[Array, "*variables options"], EstimateInfo]:
    """The mean gradient of an estimator over many draws, with its bias and variance held against enumeration.

    f: from one-hot choices of the logits' shape to a number. estimator: ``estimator(key, logits)``, one-hot.
    num_repeats: draws, >= 2.

    >>> from laureate.gradients import straight_through
    >>> f = lambda z: z @ jnp.array([1.0, 0.0, -2.0])
    >>> run = jax.jit(lambda key, logits: estimate(key, f, logits, straight_through, 50)[1].bias2)
    >>> bool(abs(run(jax.random.key(0), jnp.array([0.5, 0.2, -1.0]))) < 1e-9)  # exact where f is linear
    True
    """
    require("estimate", "num_repeats", ">= 2", num_repeats, lambda r: r >= 2)
    logits = jnp.asarray(logits)

    def one(key):
        z, pull = jax.vjp(lambda theta: estimator(key, theta), logits)
        v = jax.grad(f)(z)
        return pull(v)[0], jnp.any(v != 0)

    gradients, moved = jax.vmap(one)(jax.random.split(key, num_repeats))
    if not isinstance(moved, Tracer) and not np.any(moved):
        warnings.warn("estimate: f has derivative 0 in every draw; is an argmax within?", UserWarning, stacklevel=2)
    return held_against(gradients, exact_gradient(f, logits))


def held_against(gradients: Array, exact: Array) -> tuple[Array, EstimateInfo]:
    """The mean of gradients [draws, ...] and how far they are from the exact one."""
    repeats, mean = len(gradients), jnp.mean(gradients, axis=0)
    variance = jnp.sum((gradients - mean) ** 2) / (repeats - 1)
    bias2 = jnp.sum((mean - exact) ** 2) - variance / repeats
    mse = jnp.sum((gradients - exact) ** 2) / repeats
    errors = bias2, variance, mse, jnp.sum(exact**2)
    status = jnp.where(jnp.all(jnp.isfinite(jnp.stack(errors))), int(Status.OK), int(Status.DIVERGED))
    return mean, EstimateInfo(*errors, jnp.asarray(repeats), status)
