"""Particles moved towards a density whose mean and covariance are known, at each arm's best rate."""

import jax
import jax.numpy as jnp
import optax

from laureate.sampling import ksd, sliced_svgd, svgd

__all__ = ["particles"]

WORST = 10.0  # what an error is reported as at most


def particles(key, arm, problem, scale):
    """Errors of the particles' variances and covariance; the rate is chosen without the truth, by another start.

    Particles choose the rate that leaves the smallest force, Langevin sampling that of the smallest KSD.
    """
    tuning, scoring = jax.random.split(key)
    if arm.sampler in ("independent", "start"):
        return errors(moved(scoring, arm, problem, scale, 1.0)[0], problem)
    rates = jnp.asarray(scale.rates)

    def attempt(best, index):
        """A rate of the grid on the one start; after all of them the best on the other."""
        last = index == len(rates)
        rate = jnp.where(last, best[0], rates[jnp.minimum(index, len(rates) - 1)])
        own = jnp.where(last, jax.random.key_data(scoring), jax.random.key_data(tuning))
        x, unrest = moved(jax.random.wrap_key_data(own), arm, problem, scale, rate)
        better = ~last & (unrest < best[1])  # never where it is not a number
        return (jnp.where(better, rate, best[0]), jnp.where(better, unrest, best[1])), errors(x, problem)

    (rate, _), found = jax.lax.scan(attempt, (rates[0], jnp.asarray(jnp.inf)), jnp.arange(1 + len(rates)))
    return {name: values[-1] for name, values in found.items()} | {"rate": rate}


def moved(key, arm, problem, scale, rate):
    """Where the particles are at the end, and how far from rest."""
    start_key, run_key = jax.random.split(key)
    noise = jax.random.normal(start_key, (scale.particles, len(problem.mean)))
    if arm.sampler == "independent":
        return problem.mean + noise @ jnp.linalg.cholesky(problem.covariance).T, jnp.zeros(())
    spread = jnp.sqrt(jnp.diag(problem.covariance))
    start = problem.mean + spread * (1 + 2 * noise)
    keys = jax.random.split(run_key, scale.steps)
    falling = lambda count: 0.5 * (1 + jnp.cos(jnp.pi * count / scale.steps))  # noqa: E731
    if arm.sampler == "start":
        return start, jnp.zeros(())
    if arm.sampler == "langevin":
        score = jax.vmap(jax.grad(problem.logdensity))

        def walk(x, key):
            step = rate * spread**2
            return x + step * score(x) + jnp.sqrt(2 * step) * jax.random.normal(key, x.shape), None

        x = jax.lax.scan(walk, start, keys)[0]
        return x, ksd(x, score(x), statistic="v")
    optimiser = optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(lambda count: -rate * falling(count)))
    if arm.sampler == "svgd":
        sampler = svgd(problem.logdensity, optimiser, bandwidth=arm.bandwidth)
    else:
        inner = optax.adam(arm.slice_rate) if arm.sampler == "learned" else None
        sampler = sliced_svgd(problem.logdensity, optimiser, slices=arm.sampler, slice_optimiser=inner)

    def step(carry, key):
        state, info = sampler.step(key, carry[0])
        return (state, info.force), None

    state, force = jax.lax.scan(step, (sampler.init(start), jnp.zeros(())), keys)[0]
    return state.position, force


def errors(x, problem):
    """Relative to the known mean and covariance; variances in logarithms, so that half is as wrong as twice."""
    centred = x - jnp.mean(x, axis=0)
    covariance = centred.T @ centred / len(x)
    true = problem.covariance
    log_variance = jnp.log(jnp.mean(jnp.diag(covariance) / jnp.diag(true)))
    whole = jnp.linalg.norm(covariance - true) / jnp.linalg.norm(true)
    off = jnp.mean((jnp.mean(x, axis=0) - problem.mean) ** 2 / jnp.diag(true))
    capped = {
        "log_variance": jnp.clip(log_variance, -WORST, WORST),
        "variance_error": jnp.minimum(jnp.abs(log_variance), WORST),
        "covariance_error": jnp.minimum(whole, WORST),
        "mean_error": jnp.minimum(jnp.sqrt(off), WORST),
    }
    return {name: jnp.where(jnp.isfinite(value), value, WORST) for name, value in capped.items()}
