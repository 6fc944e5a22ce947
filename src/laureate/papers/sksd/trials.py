"""What computes: how often tests reject, on many data sets, and whether their statistics rank samplers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.sampling import BOUNDED, MOMENTS, stein_mean_test, stein_test
from laureate.sampling.stein_discrepancy import median_distance

__all__ = ["chain", "diagnosis", "level", "power"]

ALPHA = 0.05 + 1e-6  # a share of 5 of 100 in single precision may be either side of it
WIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of the median, which the tuned kernel chooses from


def tested(key, arm, x, s, scale):
    """The p-value and the statistic of an arm's test."""
    more = {"num_bootstrap": scale.replicates}
    if arm.test == "coin":
        return jax.random.uniform(key), jax.random.normal(key)
    if arm.test in ("means", "moments"):
        functions = BOUNDED if arm.test == "means" else MOMENTS
        found = stein_mean_test(key, x, s, functions=functions, bootstrap=arm.get("bootstrap", "multinomial"), **more)
    elif arm.test == "tuned":
        found = tuned_kernel(key, x, s, more)
    else:
        more |= {"kernel": arm.get("kernel", "rbf"), "bootstrap": arm.get("bootstrap", "multinomial")}
        if arm.test == "max":
            more |= {"num_steps": scale.steps, "optimiser": optax.adam(scale.rate, b2=0.99)}
            more |= {"learn_r": bool(arm.learn_r)}
        slices = None if arm.test == "whole" else arm.test
        found = stein_test(key, x, s, slices=slices, **more)
    return found.p_value, found.value


def tuned_kernel(key, x, s, more):
    """The kernel of whole points, its bandwidth the one of five with the largest value on the fifth of draws that
    "max" fits its slices to, each relative to what chance makes of it there."""
    known = int(np.floor(0.2 * len(x)))
    ells = jnp.asarray(WIDTHS) * median_distance(x[:known])

    def signal(ell):
        found = stein_test(key, x[:known], s[:known], slices=None, bandwidth=ell, num_bootstrap=19)
        return found.value / jnp.std(found.null)

    best = ells[jnp.argmax(jax.lax.map(signal, ells))]
    return stein_test(key, x[known:], s[known:], slices=None, bandwidth=best, **more)


def drawn(key, kind, n, d):
    """Draws that differ from N(0, I) in the way ``kind`` says, or not."""
    noise = jax.random.normal(key, (6, n, d))
    x = noise[0]
    narrow = np.sqrt(0.3) - 1
    if kind == "variance":
        return x.at[:, 0].add(narrow * x[:, 0])
    if kind == "turned":  # the same along (1, …, 1)
        along = jnp.full(d, 1 / np.sqrt(d))
        return x + narrow * jnp.outer(x @ along, along)
    if kind == "laplace":  # variance 1
        u = jax.scipy.special.ndtr(x) - 0.5
        return -jnp.sign(u) * jnp.log1p(-2 * jnp.minimum(jnp.abs(u), 0.5 - 1e-7)) / np.sqrt(2)
    if kind == "student":  # five degrees of freedom, variance 1
        return x / jnp.sqrt(jnp.mean(noise[1:] ** 2, axis=0)) * np.sqrt(3 / 5)
    return x


def share(key, arm, kind, d, scale):
    """How many of ``scale.sets`` data sets are rejected."""

    def one(key):
        data, test = jax.random.split(key)
        x = drawn(data, kind, scale.draws, d)
        return tested(test, arm, x, -x, scale)[0]

    return jnp.mean(jax.lax.map(one, jax.random.split(key, scale.sets)) <= ALPHA)


def level(key, arm, problem, scale):
    """How often draws of the density itself are rejected, with 99 % intervals of Wilson for this seed's data sets."""
    found = {}
    for d, own in zip(scale.dimensions, jax.random.split(key, len(scale.dimensions)), strict=True):
        rate = share(own, arm, "null", d, scale)
        z2 = 2.5758**2 / scale.sets
        middle, half = rate + z2 / 2, jnp.sqrt(z2 * (rate * (1 - rate) + z2 / 4))
        found |= {f"rejected_{d}": rate}
        found |= {f"low_{d}": (middle - half) / (1 + z2), f"high_{d}": (middle + half) / (1 + z2)}
    return found


def power(key, arm, problem, scale):
    """How often draws that differ from N(0, I) are rejected, by dimension and kind."""
    found = {"log_dimensions": jnp.log(jnp.asarray(scale.dimensions, float))}
    for kind, own in zip(scale.kinds, jax.random.split(key, len(scale.kinds)), strict=True):
        each = jax.random.split(own, len(scale.dimensions))
        rates = [share(k, arm, kind, d, scale) for d, k in zip(scale.dimensions, each, strict=True)]
        found |= {f"{kind}_{d}": rate for d, rate in zip(scale.dimensions, rates, strict=True)}
        found[kind] = jnp.stack(rates)
    return found


def chain(key, arm, problem, scale):
    """How often a perfect chain is rejected, by how slowly it moves, and how often a wrong one."""

    def one(key, rho, kind):
        data, start, test = jax.random.split(key, 3)
        noise = jnp.sqrt(1 - rho**2) * jax.random.normal(data, (scale.draws, scale.dimension))
        first = jax.random.normal(start, (scale.dimension,))
        x = jax.lax.scan(lambda x, e: (rho * x + e,) * 2, first, noise)[1]
        x = x.at[:, 0].multiply(np.sqrt(0.3)) if kind == "wrong" else x
        x = x[:: arm.get("thin", 1)]
        return tested(test, arm, x, -x, scale)[0]

    found = {}
    cases = (("still", 0.0), ("slow", 0.5), ("slower", 0.9), ("wrong", 0.5))
    for (kind, rho), own in zip(cases, jax.random.split(key, len(cases)), strict=True):
        rho = jnp.asarray(rho)
        p = jax.lax.map(lambda k, rho=rho, kind=kind: one(k, rho, kind), jax.random.split(own, scale.sets))
        found[kind] = jnp.mean(p <= ALPHA)
    return found


def diagnosis(key, arm, problem, scale):
    """Do statistics rank samplers as the distance to the truth does? And who sees a law without correlations?

    Langevin's limit at step ε is N(0, Λ⁻¹(I − εΛ/2)⁻¹); the diffusion at time t, begun at N(m, I), is Gaussian too: so
    independent draws of either are made at once. Both families come nearer to the target the smaller ε or the larger
    t, in 2-Wasserstein distance as in any other.
    """
    values, vectors = jnp.linalg.eigh(problem.precision)
    steps = jnp.asarray(scale.shares) * 2 / jnp.max(values)
    begun = 3 * vectors.T @ jnp.ones(len(values))
    keys = jax.random.split(key, 4)

    def statistic(key, mean, variance):
        data, test = jax.random.split(key)
        z = mean + jnp.sqrt(variance) * jax.random.normal(data, (scale.draws, len(values)))
        x = z @ vectors.T
        return tested(test, arm, x, -x @ problem.precision, scale)

    def by_step(row):
        key, step = row
        return statistic(key, 0.0, 1 / (values * (1 - step * values / 2)))[1]

    def by_time(row):
        key, time = row
        left = jnp.exp(-values * time)
        return statistic(key, left * begun, (1 - left**2) / values + left**2)[1]

    def without_correlations(key):
        data, test = jax.random.split(key)
        x = jax.random.normal(data, (scale.draws, len(values))) / jnp.sqrt(jnp.diag(problem.precision))
        return tested(test, arm, x, -x @ problem.precision, scale)[0]

    times = jnp.asarray(scale.times)
    wrong = jax.lax.map(by_step, (jax.random.split(keys[0], len(steps)), steps))
    early = jax.lax.map(by_time, (jax.random.split(keys[1], len(times)), times))
    field = jax.lax.map(without_correlations, jax.random.split(keys[2], scale.sets))
    return {
        "rank_steps": rank_correlation(wrong, steps),
        "rank_times": rank_correlation(early, -times),
        "mean_field": jnp.mean(field <= ALPHA),
    }


def rank_correlation(a, b):
    """Spearman's."""
    ranks = [jnp.argsort(jnp.argsort(part)).astype(float) for part in (a, b)]
    return jnp.corrcoef(*ranks)[0, 1]
