"""Annealed importance sampling: estimates of a normalising constant with their error."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from laureate import loops
from laureate._core import Status, require
from laureate.sampling._kernel import TEMPERABLE, TEMPERABLE_REMEDY, Tree, is_temperable
from laureate.sampling.gibbs import is_systematic
from laureate.sampling.gibbs_with_gradients import InformedKernel

__all__ = ["AnnealedImportance", "annealed_importance_sampling"]


class Annealed(eqx.Module):
    """f_β(x) = (1 - β) f_0(x) + β f(x)."""

    base: Callable
    target: Callable
    beta: Float[Array, ""]

    def __call__(self, x: Tree) -> Float[Array, ""]:
        """The annealed log density of relaxed x."""
        return (1 - self.beta) * self.base(x) + self.beta * self.target(x)


class AnnealedImportance(NamedTuple):
    """The estimate.

    log_ratio: log of the mean weight, an estimate of log(Z / Z_0); the mean weight is unbiased, so its log is low on
        average, and a likelihood computed from it is high.
    standard_error: of log_ratio, to first order: sd(w) / (mean(w) √chains). Meaningful only where effective is large.
    effective: effective number of the weights, (Σw)² / Σw².
    log_weights: one a chain.
    position: the chains' ends, approximate samples of the target when weighted.
    cost: evaluations of f, and as many of f_0, over all chains: of weights, and of the kernel's starts and steps.
    status: ``Status.NOT_CONVERGED`` unless effective >= 2: else one chain carries the estimate, or a weight is NaN.
    """

    log_ratio: Float[Array, ""]
    standard_error: Float[Array, ""]
    effective: Float[Array, ""]
    log_weights: Float[Array, "chains"]
    position: Tree
    cost: Int[Array, ""]
    status: Int[Array, ""]


def annealed_importance_sampling(
    key: Key[Array, ""],
    kernel: Any,
    base_logdensity: Callable[[Tree], Float[Array, ""]],
    sample_base: Callable[[Key[Array, ""]], Tree],
    betas: Float[Array, "temperatures"],
    num_chains: int = 100,
    steps_per_beta: int = 1,
    progress: Callable[[loops.Progress], None] | None = None,
) -> AnnealedImportance:
    """Estimate log(Z / Z_0) of the kernel's target against a base that can be sampled exactly.

    From β_0 = 0 to β_T = 1, with x_t drawn by the kernel at f_β = (1 - β) f_0 + β f::

        log w = Σ_t (β_t - β_{t-1}) (f(x_{t-1}) - f_0(x_{t-1})),      E[w] = Z / Z_0

    Neal: "Annealed importance sampling", 2001.

    kernel: any sampler of this package with a ``logdensity_fn``; its target is f.
    base_logdensity: f_0, of relaxed x. Where it is normalised, Z_0 = 1 and the result is log Z.
    sample_base: from a key to a position drawn from exp(f_0).
    betas: rising from 0 to 1.
    progress: called about every second with a ``laureate.loops.Progress``, in temperatures; not within jit.

    >>> from laureate.sampling import Binary, GibbsWithGradients
    >>> kernel = GibbsWithGradients(lambda x: jnp.sum(x), Binary())
    >>> uniform = lambda x: -x.size * jnp.log(2.0) + 0.0 * jnp.sum(x)
    >>> draw = lambda key: jax.random.bernoulli(key, 0.5, (4,))
    >>> result = annealed_importance_sampling(jax.random.key(0), kernel, uniform, draw, jnp.linspace(0, 1, 50))
    >>> exact = 4 * jnp.log1p(jnp.exp(1.0))
    >>> bool(jnp.abs(result.log_ratio - exact) < 4 * result.standard_error)
    True
    """
    where = "annealed_importance_sampling"
    require(where, "betas", "rising from 0 to 1", betas, _rising)
    betas = jnp.asarray(betas)
    require(where, "num_chains", ">= 2", num_chains, lambda n: n >= 2)
    require(where, "steps_per_beta", ">= 1", steps_per_beta, lambda n: n >= 1)
    kind = type(kernel).__name__
    require(where, "kernel", TEMPERABLE, kind, lambda _: is_temperable(kernel), TEMPERABLE_REMEDY)
    rule, remedy = "1", "Put the temperature into the log density: what is annealed is f itself."
    at = kernel.inverse_temperature
    require(where, "kernel.inverse_temperature", rule, at, lambda b: np.all(np.asarray(b) == 1), remedy)
    target = kernel.logdensity_fn

    keys = jax.vmap(jax.random.split)(jax.random.split(key, num_chains))
    start = jax.vmap(lambda key: jax.tree.map(jnp.asarray, sample_base(key)))(keys[:, 0])
    first = jax.tree.map(lambda leaf: leaf[0], start)
    at_start = kernel.num_evaluations(kernel.layout(first)) if isinstance(kernel, InformedKernel) else 1
    zeros = jnp.zeros(num_chains, jax.eval_shape(lambda x: target(kernel.layout(x).relax(x)), first).dtype)

    def anneal(chains, pair):
        number, last, beta = pair

        def one(walk_key, position, log_weight):
            relaxed = kernel.layout(position).relax(position)
            log_weight = log_weight + (beta - last) * (target(relaxed) - base_logdensity(relaxed))
            annealed = eqx.tree_at(lambda k: k.logdensity_fn, kernel, Annealed(base_logdensity, target, beta))
            state = annealed.init(position)
            if is_systematic(kernel):  # the scan goes on where it was
                state = state._replace(num_steps=number * steps_per_beta)

            def advance(i, carry):
                state, info = annealed.step(jax.random.fold_in(walk_key, number * steps_per_beta + i), carry[0])
                return state, carry[1] + info.cost

            state, cost = jax.lax.fori_loop(0, steps_per_beta, advance, (state, jnp.int32(1 + at_start)))
            return (state.position, log_weight), cost

        chains, cost = jax.vmap(one)(keys[:, 1], *chains)
        return chains, jnp.sum(cost)

    pairs = (jnp.arange(betas.size - 1), betas[:-1], betas[1:])
    (position, log_weights), cost = loops.scan(anneal, (start, zeros), pairs, progress=progress)
    top = jnp.max(log_weights)
    weights = jnp.exp(log_weights - top)
    mean = jnp.mean(weights)
    effective = jnp.sum(weights) ** 2 / jnp.sum(weights**2)
    return AnnealedImportance(
        log_ratio=top + jnp.log(mean),
        standard_error=jnp.std(weights, ddof=1) / (mean * jnp.sqrt(float(num_chains))),
        effective=effective,
        log_weights=log_weights,
        position=position,
        cost=jnp.sum(cost).astype(jnp.int32),
        status=jnp.where(effective >= 2, int(Status.OK), int(Status.NOT_CONVERGED)).astype(jnp.int32),
    )


def _rising(betas: Array) -> bool:
    b = np.asarray(betas)  # NumPy: under jit even constants are tracers to jax.numpy
    return bool(b[0] == 0 and b[-1] == 1 and np.all(np.diff(b) > 0))
