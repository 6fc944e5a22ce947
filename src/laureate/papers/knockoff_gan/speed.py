"""Two hundred selections with Gaussian knockoffs beside knockpy's: n = 600, p = 60, known covariance."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from laureate.lab.running.comparison import Comparison, Side
from laureate.problems.tables import autoregressive
from laureate.selection import GaussianKnockoffs, LassoDifference, knockoff_filter

__all__ = ["COMPARISONS"]

ROWS, VARIABLES, TRUE, AMPLITUDE, RHO, Q, REPLICATIONS = 600, 60, 15, 4.5, 0.3, 0.1, 200


def tables(replications: int = REPLICATIONS) -> tuple[Any, Any]:
    """Inputs ``[replications, n, p]`` and responses, the same for both sides."""
    generator = np.random.default_rng(0)
    root = np.linalg.cholesky(np.asarray(autoregressive(VARIABLES, RHO), float))
    x = generator.normal(size=(replications, ROWS, VARIABLES)) @ root.T
    beta = np.where(np.arange(VARIABLES) < TRUE, AMPLITUDE / np.sqrt(ROWS), 0.0)
    return x.astype(np.float32), (x @ beta + generator.normal(size=(replications, ROWS))).astype(np.float32)


def our_side(replications: int = REPLICATIONS) -> Side:
    """All tables in one compiled program."""
    x, y = (jnp.asarray(v) for v in tables(replications))
    sampler = GaussianKnockoffs(jnp.zeros(VARIABLES), autoregressive(VARIABLES, RHO))

    @jax.jit
    def select(keys):
        def one(key, x, y):
            return knockoff_filter(LassoDifference()(key, x, sampler.sample(key, x), y), Q).selected

        return jax.vmap(one)(keys, x, y)

    calls = 0

    def run():
        nonlocal calls
        calls += 1
        return select(jax.random.split(jax.random.key(calls), replications))

    return Side(run, REPLICATIONS / replications)


def their_side(replications: int = 10) -> Side:
    """knockpy's filter with its Gaussian sampler (MVR) and lasso statistic, one table after another."""
    from knockpy.knockoff_filter import KnockoffFilter  # pyright: ignore[reportMissingImports]  (a peer)

    x, y = tables(replications)
    sigma = np.asarray(autoregressive(VARIABLES, RHO), float)

    def run():
        found = []
        for rows, response in zip(x, y, strict=True):
            made = KnockoffFilter(ksampler="gaussian", fstat="lasso", knockoff_kwargs={"method": "mvr"})
            found.append(made.forward(X=rows.astype(float), y=response.astype(float), Sigma=sigma, fdr=Q))
        return np.stack(found)

    return Side(run, REPLICATIONS / replications, note="its lasso is cross-validated, ours has one penalty")


COMPARISONS = (
    Comparison(
        work=f"{REPLICATIONS} selections: n = {ROWS}, p = {VARIABLES}, known covariance, lasso statistic",
        peer="knockpy",
        package="knockpy",
        ours=our_side,
        theirs=their_side,
    ),
)
