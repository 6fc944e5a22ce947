"""What computes: how often tests reject, on many data sets, and whether their statistics rank samplers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.sampling import BOUNDED, MOMENTS, stein_mean_test, stein_test
from laureate.sampling.stein_discrepancy import median_distance

__all__ = ["chain", "diagnosis", "level", "power"]

ALPHA = 0.05 + 1e-6  # a share of 5 of 100 in single precision may be either side of it
KINDS = ("variance", "laplace", "student", "turned")
WIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of the median, which the tuned kernel chooses from


def tested(key, arm, x, s, scale):
    """The p-value and the statistic of an arm's test."""
    more = {"num_bootstrap": scale.replicates}
    if arm.test == "coin":
        return (jax.random.uniform(key),) * 2
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
    choice, test = jax.random.split(key)
    known = int(np.floor(0.2 * len(x)))
    ells = jnp.asarray(WIDTHS) * median_distance(x[:known])

    def signal(ell):
        found = stein_test(choice, x[:known], s[:known], slices=None, bandwidth=ell, num_bootstrap=19)
        return found.value / jnp.std(found.null)

    best = ells[jnp.argmax(jax.lax.map(signal, ells))]
    return stein_test(test, x[known:], s[known:], slices=None, bandwidth=best, **more)


def drawn(key, kind, n, d):
    """Draws that differ from N(0, I) in the way of a number: 0 not at all, then as in ``KINDS``."""
    noise = jax.random.normal(key, (6, n, d))
    x, along, narrow = noise[0], jnp.full(d, 1 / np.sqrt(d)), np.sqrt(0.3) - 1
    u = jax.scipy.special.ndtr(x) - 0.5
    laplace = -jnp.sign(u) * jnp.log1p(-2 * jnp.minimum(jnp.abs(u), 0.5 - 1e-7)) / np.sqrt(2)  # variance 1
    student = x / jnp.sqrt(jnp.mean(noise[1:] ** 2, axis=0)) * np.sqrt(3 / 5)  # t with 5 degrees of freedom, variance 1
    turned = x + narrow * jnp.outer(x @ along, along)  # variance 0.3 along (1, …, 1)
    return jnp.stack([x, x.at[:, 0].add(narrow * x[:, 0]), laplace, student, turned])[kind]


def shares(key, arm, kinds, d, scale):
    """How many of ``scale.sets`` data sets of each kind are rejected."""

    def one(row):
        key, kind = row
        data, test = jax.random.split(key)
        x = drawn(data, kind, scale.draws, d)
        return tested(test, arm, x, -x, scale)[0]

    number = len(kinds) * scale.sets
    p = jax.lax.map(one, (jax.random.split(key, number), jnp.repeat(jnp.asarray(kinds), scale.sets)))
    return jnp.mean(p.reshape(len(kinds), scale.sets) <= ALPHA, axis=1)


def level(key, arm, problem, scale):
    """How often draws of the density itself are rejected, with 99 % intervals of Wilson for this seed's data sets."""
    found = {}
    for d, own in zip(scale.dimensions, jax.random.split(key, len(scale.dimensions)), strict=True):
        rate = shares(own, arm, (0,), d, scale)[0]
        z2 = 2.5758**2 / scale.sets
        middle, half = rate + z2 / 2, jnp.sqrt(z2 * (rate * (1 - rate) + z2 / 4))
        found |= {f"rejected_{d}": rate}
        found |= {f"low_{d}": (middle - half) / (1 + z2), f"high_{d}": (middle + half) / (1 + z2)}
    return found


def power(key, arm, problem, scale):
    """How often draws that differ from N(0, I) are rejected, by dimension and kind."""
    each = jax.random.split(key, len(scale.dimensions))
    kinds = range(1, 1 + len(KINDS))
    rates = [shares(own, arm, kinds, d, scale) for d, own in zip(scale.dimensions, each, strict=True)]
    found = {"log_dimensions": jnp.log(jnp.asarray(scale.dimensions, float))}
    for place, kind in enumerate(KINDS):
        found[kind] = jnp.stack([rate[place] for rate in rates])
        found |= {f"{kind}_{d}": rate[place] for d, rate in zip(scale.dimensions, rates, strict=True)}
    return found | {f"along_axes_{d}": jnp.mean(rate[:3]) for d, rate in zip(scale.dimensions, rates, strict=True)}


def walked(key, rho, n, d):
    """A perfect chain of N(0, I) whose neighbours correlate by ρ."""
    start, noise = jax.random.split(key)
    steps = jnp.sqrt(1 - rho**2) * jax.random.normal(noise, (n, d))
    return jax.lax.scan(lambda x, e: (rho * x + e,) * 2, jax.random.normal(start, (d,)), steps)[1]


def chain(key, arm, problem, scale):
    """How often a perfect chain is rejected, by how slowly it moves, and how often a wrong one."""

    def one(row):
        key, rho, width = row
        data, test = jax.random.split(key)
        x = walked(data, rho, scale.draws, scale.dimension).at[:, 0].multiply(width)[:: arm.get("thin", 1)]
        return tested(test, arm, x, -x, scale)[0]

    narrow = np.sqrt(0.3)
    cases = {"still": (0.0, 1.0), "slow": (0.5, 1.0), "slower": (0.9, 1.0)}
    cases |= {"wrong": (0.5, narrow), "wrong_slower": (0.9, narrow)}
    rho, width = jnp.repeat(jnp.asarray(list(cases.values())), scale.sets, axis=0).T
    p = jax.lax.map(one, (jax.random.split(key, len(rho)), rho, width))
    return dict(zip(cases, jnp.mean(p.reshape(len(cases), -1) <= ALPHA, axis=1), strict=True))


def diagnosis(key, arm, problem, scale):
    """Do statistics rank samplers as the distance to the truth does? And who sees a law without correlations?

    Langevin's limit at step ε is N(0, Λ⁻¹(I − εΛ/2)⁻¹); the diffusion at time t, begun at N(3, I), is Gaussian too: so
    independent draws of either are made at once. Both families come nearer to the target the smaller ε or the larger
    t, in 2-Wasserstein distance as in any other.
    """
    values, vectors = jnp.linalg.eigh(problem.precision)
    steps, times = jnp.asarray(scale.shares) * 2 / jnp.max(values), jnp.asarray(scale.times)
    left = jnp.exp(-values * times[:, None])
    spreads = jnp.concatenate([1 / (values * (1 - steps[:, None] * values / 2)), (1 - left**2) / values + left**2])
    factors = vectors * jnp.sqrt(spreads)[:, None, :]  # of each law's covariance
    begun = 3 * vectors.T @ jnp.ones(len(values))
    means = jnp.concatenate([jnp.zeros((len(steps), len(values))), (left * begun) @ vectors.T])
    field = jnp.diag(1 / jnp.sqrt(jnp.diag(problem.precision)))  # the mean-field law: variances 1/Λ_jj

    def one(row):
        key, mean, factor = row
        data, test = jax.random.split(key)
        x = mean + jax.random.normal(data, (scale.draws, len(values))) @ factor.T
        return tested(test, arm, x, -x @ problem.precision, scale)

    def repeated(array, last):
        """The laws of both families, over and over, and then the last so many times."""
        again = jnp.tile(array, (scale.repeats, *[1] * last.ndim))
        return jnp.concatenate([again, jnp.repeat(last[None], scale.sets, axis=0)])

    rows = repeated(means, jnp.zeros(len(values))), repeated(factors, field)
    p, value = jax.lax.map(one, (jax.random.split(key, len(rows[0])), *rows))
    value = value[: -scale.sets].reshape(scale.repeats, -1)
    wrong, early = value[:, : len(steps)], value[:, len(steps) :]
    return {
        "rank_steps": jnp.mean(jax.vmap(lambda v: rank_correlation(v, steps))(wrong)),
        "rank_times": jnp.mean(jax.vmap(lambda v: rank_correlation(v, -times))(early)),
        "mean_field": jnp.mean(p[-scale.sets :] <= ALPHA),
    }


def rank_correlation(a, b):
    """Spearman's."""
    ranks = [jnp.argsort(jnp.argsort(part)).astype(float) for part in (a, b)]
    return jnp.corrcoef(*ranks)[0, 1]  # pyright: ignore[reportArgumentType]
