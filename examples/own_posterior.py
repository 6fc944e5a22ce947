"""Draws of a posterior of one's own: do they match it? Four growers of error bars for a regression of diabetes.

A linear regression with ten inputs has a Gaussian posterior, so the truth is known here; where yours is not, the tests
need only the log density. The same posterior is a problem for the lab:

    laureate run sksd/correlated --problem examples/own_posterior.py:Diabetes
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_diabetes

from laureate.sampling import sliced_svgd, stein_mean_test, stein_test, svgd

DATA: Any = load_diabetes()
INPUTS = jnp.asarray((DATA.data - DATA.data.mean(0)) / DATA.data.std(0), jnp.float32)
PROGRESS = jnp.asarray((DATA.target - DATA.target.mean()) / DATA.target.std(), jnp.float32)
NOISE = 0.5  # variance that the inputs do not explain


class Diabetes:
    """Ten coefficients with a prior of N(0, 0.1), in units of a tenth; some inputs are blood values nearly the same."""

    def __init__(self):
        self.precision = 0.01 * (INPUTS.T @ INPUTS / NOISE + 10 * jnp.eye(10))
        self.covariance = jnp.linalg.inv(self.precision)
        self.mean = self.covariance @ (0.1 * INPUTS.T @ PROGRESS / NOISE)

    def logdensity(self, x):
        residual = PROGRESS - INPUTS @ (0.1 * x)
        return -jnp.sum(residual**2) / (2 * NOISE) - jnp.sum((0.1 * x) ** 2) / (2 * 0.1)


def moved(sampler, particles, keys):
    """Where they are after as many steps as there are keys."""
    step = lambda state, key: (sampler.step(key, state)[0], None)  # noqa: E731
    return jax.jit(lambda x: jax.lax.scan(step, sampler.init(x), keys)[0].position)(particles)


def candidates(key, target, num_draws=300, num_steps=600):
    """Rows that pretend to be draws of the posterior."""
    noise = jax.random.normal(key, (num_draws, 10))
    particles = {
        "sliced SVGD, the axes": sliced_svgd(target.logdensity, optax.adam(0.1)),
        "SVGD": svgd(target.logdensity, optax.adam(0.1)),
    }
    made = {
        "exact": target.mean + noise @ jnp.linalg.cholesky(target.covariance).T,
        "mean field": target.mean + noise / jnp.sqrt(jnp.diag(target.precision)),
    }
    for name, sampler in particles.items():
        made[name] = moved(sampler, noise, jax.random.split(key, num_steps))
    return made


def main(num_draws=300, num_steps=600):
    target = Diabetes()
    tests = jax.jit(
        lambda key, x: {
            "axes": stein_test(key, x, target.logdensity, slices="identity").p_value,
            "fitted": stein_test(key, x, target.logdensity, num_steps=100).p_value,
            "KSD": stein_test(key, x, target.logdensity, slices=None).p_value,
            "means": stein_mean_test(key, x, target.logdensity).p_value,
        }
    )
    found = {}
    for name, x in candidates(jax.random.key(0), target, num_draws, num_steps).items():
        p = {test: float(value) for test, value in tests(jax.random.key(1), x).items()}
        ratio = float(np.mean(np.var(np.asarray(x), axis=0) / np.diag(np.asarray(target.covariance))))
        found[name] = {"variance": ratio, **p}
        words = ", ".join(f"{test} {value:.3f}" for test, value in p.items())
        print(f"{name:22} variance {ratio:.2f} of the truth; p-values: {words}")
    return found


if __name__ == "__main__":
    main()
