"""Knockoffs with known laws: false discoveries, the validity test, mutual information and real tables."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.lab.claim import Settings
from laureate.problems.tables import Design, Table, autoregressive
from laureate.selection import (
    CopulaKnockoffs,
    GaussianKnockoffs,
    LassoDifference,
    MixtureKnockoffs,
    SecondOrderKnockoffs,
    information,
    knockoff_filter,
    mine_networks,
    mine_values,
    validity_report,
)

__all__ = ["filters", "judged_on_real", "mutual_information", "real", "respond", "score", "selections", "validity"]

CORRELATIONS = (0.0, 0.3, 0.6)
INFORMATION = (0.0, 0.5, 0.7, 0.9)
LEVEL = 0.01


def respond(key: Array, x: Array, num_true: int, amplitude: Array | float) -> tuple[Array, Array]:
    """y = Xβ + ε with ``num_true`` random variables of coefficient ±amplitude/√n, and which they are."""
    place_key, sign_key, noise_key = jax.random.split(key, 3)
    n, p = x.shape
    truth = jnp.argsort(jax.random.uniform(place_key, (p,))) < num_true
    beta = truth * jax.random.rademacher(sign_key, (p,), x.dtype) * amplitude / jnp.sqrt(n)
    return x @ beta + jax.random.normal(noise_key, (n,)), truth


def score(selected: Array, truth: Array) -> tuple[Array, Array]:
    """The share of false ones among the selected, and of true ones that were found."""
    false = jnp.sum(selected & ~truth) / jnp.maximum(1, jnp.sum(selected))
    return false, jnp.sum(selected & truth) / jnp.sum(truth)


def selections(key: Array, x: Array, knockoff: Array, scale: Settings) -> dict[str, Array]:
    """FDP and TPR over ``scale.responses`` made-up responses to one table, by the lasso statistic and knockoff+."""

    def one(key):
        y, truth = respond(key, x, scale.num_true, scale.amplitude)
        w = LassoDifference()(key, x, knockoff, y)
        return score(knockoff_filter(w, scale.q).selected, truth)

    false, found = jax.vmap(one)(jax.random.split(key, scale.responses))
    return {"fdp": jnp.mean(false), "tpr": jnp.mean(found), "exceeds": jnp.mean(false > scale.q)}


def filters(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """FDP and TPR on Gaussian tables of three correlations, over ``scale.replications`` tables and responses each."""
    del problem
    n, p = scale.rows, scale.variables

    def table(key, rho):
        row_key, response_key, knockoff_key, order_key, list_key = jax.random.split(key, 5)
        law = GaussianKnockoffs(jnp.zeros(p), autoregressive(p, rho))
        x = jax.random.normal(row_key, (n, p)) @ jnp.linalg.cholesky(law.covariance).T
        y, truth = respond(response_key, x, scale.num_true, scale.amplitude)
        exact, shuffled = law.sample(knockoff_key, x), x[jnp.argsort(jax.random.uniform(order_key, (n,)))]
        w = LassoDifference()(key, x, jnp.where(arm.permuted > 0.5, shuffled, exact), y)
        selected = knockoff_filter(w, scale.q, arm.offset).selected
        selected = jnp.where(arm.marginal > 0.5, _benjamini_hochberg(x, y, scale.q), selected)
        at_random = jnp.argsort(jax.random.uniform(list_key, (p,))) < scale.num_true
        return score(jnp.where(arm.random > 0.5, at_random, selected), truth)

    def correlation(rho):
        # The same keys for every correlation, so that these are compared on the same draws.
        return jax.vmap(lambda k: table(k, rho))(jax.random.split(key, scale.replications))

    false, found = jax.lax.map(correlation, jnp.asarray(CORRELATIONS) + 1e-6)  # [3, replications]
    rates, powers = jnp.mean(false, axis=1), jnp.mean(found, axis=1)
    metrics = {f"fdp_{int(10 * rho)}": rates[i] for i, rho in enumerate(CORRELATIONS)}
    metrics |= {f"tpr_{int(10 * rho)}": powers[i] for i, rho in enumerate(CORRELATIONS)}
    return metrics | {"fdp_worst": jnp.max(rates), "exceeds": jnp.mean(false > scale.q)}


def _benjamini_hochberg(x: Array, y: Array, q: Array) -> Array:
    """BH on the p-values of marginal correlations: p_j = 2 Φ(-|z_j|), the largest k with p_(k) <= q k / p."""
    n, p = x.shape
    z, centred = (x - jnp.mean(x, axis=0)) / jnp.std(x, axis=0), (y - jnp.mean(y)) / jnp.std(y)
    values = 2.0 * jax.scipy.stats.norm.cdf(-jnp.abs(z.T @ centred) / jnp.sqrt(n))
    ordered = jnp.sort(values)
    below = ordered <= q * jnp.arange(1, p + 1) / p
    cut = jnp.max(jnp.where(below, ordered, -1.0))
    return values <= cut


def validity(key: Array, arm: Settings, problem: Design, scale: Settings) -> dict[str, Array]:
    """Accuracy and rejections of the validity test on exact, corrupted and copied knockoffs of Gaussian tables."""
    p = problem.num_variables
    right = GaussianKnockoffs(jnp.zeros(p), autoregressive(p, problem.rho))
    # Knockoffs of a law with weaker correlations: marginals right, neighbours wrong.
    wrong = GaussianKnockoffs(jnp.zeros(p), autoregressive(p, arm.share * problem.rho))

    def one(key):
        row_key, knockoff_key, order_key, test_key = jax.random.split(key, 4)
        x = problem.sample(row_key, scale.rows)
        knockoff = jnp.where(arm.share < 1.0, wrong.sample(knockoff_key, x), right.sample(knockoff_key, x))
        shuffled = x[jnp.argsort(jax.random.uniform(order_key, (scale.rows,)))]
        knockoff = jnp.where(arm.permuted > 0.5, shuffled, jnp.where(arm.copied > 0.5, x, knockoff))
        report = validity_report(x, knockoff, test_key)
        return report.accuracy, report.p_value < LEVEL

    accuracy, rejected = jax.lax.map(one, jax.random.split(key, scale.replications))
    return {"accuracy": jnp.mean(accuracy), "rejected": jnp.mean(rejected.astype(accuracy.dtype))}


def mutual_information(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """MINE on pairs of Gaussians with four correlations, trained on some rows and read on others.

    I = -½ log(1 - ρ²).
    """
    del problem
    rho = jnp.asarray(INFORMATION)
    init_key, train_key, test_key = jax.random.split(key, 3)

    def values(networks: Any):
        return lambda a, b: mine_values(networks, a, b)

    def pairs(key, n):
        x, noise, other = jax.random.normal(key, (3, n, rho.size))
        return x, rho * x + jnp.sqrt(1.0 - rho**2) * noise, other

    optimiser = optax.adam(scale.learning_rate)
    rows = pairs(train_key, scale.rows)

    def step(carry, i):
        networks, state = carry
        index = jax.random.randint(jax.random.fold_in(train_key, i), (2, scale.batch), 0, scale.rows)
        x, knockoff, shuffled = rows[0][index[0]], rows[1][index[0]], rows[0][index[1]]

        def cost(networks):
            return -jnp.sum(information(values(networks), x, knockoff, shuffled))

        updates, state = optimiser.update(jax.grad(cost)(networks), state)
        return (optax.apply_updates(networks, updates), state), None

    networks = mine_networks(init_key, rho.size, arm.units)
    (networks, _), _ = jax.lax.scan(step, (networks, optimiser.init(networks)), jnp.arange(scale.steps))
    found = information(values(networks), *pairs(test_key, scale.rows))
    truth = -0.5 * jnp.log(1.0 - rho**2)
    return {"error": jnp.max(jnp.abs(found - truth)), "estimate": found, "truth": truth}


def real(key: Array, arm: Settings, problem: Table, scale: Settings) -> dict[str, Array]:
    """Knockoffs of real inputs by an arm's sampler."""
    return judged_on_real(key, _sampler(arm.sampler), problem, scale)


def judged_on_real(key: Array, sampler: Any, problem: Table, scale: Settings) -> dict[str, Array]:
    """Knockoffs of real inputs: made-up responses, no response, the real one, and the validity test.

    As in KnockoffSelector the sampler is fitted to seven tenths of the rows and tested on the others.
    """
    x = problem.inputs
    n, p = x.shape
    fit_key, draw_key, response_key, null_key, order_key = jax.random.split(key, 5)
    order = jnp.argsort(jax.random.uniform(order_key, (n,)))
    held, known = order[: 3 * n // 10], order[3 * n // 10 :]
    knockoff = sampler.fit(fit_key, x[known]).sample(draw_key, x)
    report = validity_report(x[held], knockoff[held], order_key)
    made_up = selections(response_key, x, knockoff, Settings(dict(scale), num_true=min(scale.num_true, max(1, p // 2))))

    def count(y):
        return jnp.sum(knockoff_filter(LassoDifference()(key, x, knockoff, y), scale.q).selected)

    orders = jax.vmap(lambda k: jnp.argsort(jax.random.uniform(k, (n,))))(jax.random.split(null_key, scale.responses))
    # The response as it is, and shuffled.
    counts = jax.vmap(count)(jnp.concatenate([problem.response[None], problem.response[orders]]))
    return made_up | {
        "any_null": jnp.mean((counts[1:] > 0).astype(x.dtype)),
        "selected": counts[0].astype(x.dtype),
        "accuracy": report.accuracy,
        "correlation": jnp.mean(report.correlation),
    }


def _sampler(name: str) -> Any:
    if name == "mixture":
        return MixtureKnockoffs(num_components=2)
    second_order = SecondOrderKnockoffs(shrinkage="ledoit-wolf")
    return CopulaKnockoffs(second_order) if name == "copula" else second_order
