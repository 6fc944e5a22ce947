"""Estimates from chosen labels: enumerated over all orders of picking, and repeated on pools of a model's losses."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from laureate.active import RISKS, Acquisition, RiskEstimate, plackett_luce
from laureate.lab.claim import Settings

__all__ = ["all_orders", "evaluation", "exact", "greedy", "share"]

PROPOSALS = ("uniform", "fixed", "adaptive", "optimal", "adversarial")


def estimate(estimator: Array | float, losses: Array, log_q: Array, num_pool: int) -> RiskEstimate:
    """The estimate of a number: 0 LURE, 1 PURE, 2 importance weights, 3 the plain mean."""
    found = [risk(losses, log_q, num_pool, log=True) for risk in RISKS.values()]
    chosen = jnp.asarray(estimator).astype(jnp.int32)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves)[chosen], *found)


def exact(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Bias and variance of an estimator over every order, for five proposals on one random pool."""
    del problem
    loss_key, score_key = jax.random.split(key)
    losses = jnp.exp(jax.random.normal(loss_key, (scale.pool,)))
    scores = losses * jnp.exp(0.5 * jax.random.normal(score_key, (scale.pool,)))
    risk = jnp.mean(losses)
    biases, gaps, variances = [], [], []
    for proposal in PROPOSALS:
        orders, log_q = all_orders(proposal, losses, scores, scale.picks)
        found = jax.vmap(lambda i, q: estimate(arm.estimator, losses[i], q, scale.pool))(orders, log_q)
        chance = jnp.exp(jnp.sum(log_q, axis=1))
        mean = jnp.sum(chance * found.value)
        variance = jnp.sum(chance * (found.value - mean) ** 2)
        biases.append(jnp.abs(mean - risk) / risk)
        gaps.append(jnp.abs(jnp.sum(chance * found.standard_error**2) - variance) / jnp.maximum(variance, risk**2))
        variances.append(variance / risk**2)
    return {
        "log10_bias": jnp.log10(jnp.max(jnp.stack(biases)) + 1e-17),
        "log10_variance_gap": jnp.log10(jnp.max(jnp.stack(gaps)) + 1e-17),
        "log_variance_fixed": jnp.log(variances[PROPOSALS.index("fixed")]),
        "log_variance_adversarial": jnp.log(variances[PROPOSALS.index("adversarial")]),
    }


def all_orders(proposal: str, losses: Array, scores: Array, num_picks: int) -> tuple[Array, Array]:
    """Every sequence of picks, ``[sequences, M]``, and log q of each pick under a proposal that may see labels."""
    orders = np.array(list(itertools.permutations(range(losses.shape[0]), num_picks)))

    def one(order):
        left, log_q = jnp.ones(losses.shape, bool), []
        for m in range(num_picks):
            seen = jnp.sum(losses[order[:m]]) / max(m, 1)
            logits = {
                "uniform": 0 * losses,
                "fixed": jnp.log(scores),
                "adaptive": (1 + seen) * jnp.log(scores),
                "optimal": jnp.log(losses),
                "adversarial": jnp.log(losses) if m == 0 else -jnp.log(losses),
            }[proposal]
            log_q.append(jax.nn.log_softmax(jnp.where(left, logits, -jnp.inf))[order[m]])
            left = left.at[order[m]].set(False)
        return jnp.stack(log_q)

    return jnp.asarray(orders), jax.vmap(one)(jnp.asarray(orders))


def evaluation(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """Bias, error and standard errors of an estimator over repeated labelling of one pool, by numbers of labels."""
    found, losses = _repeated(key, arm, problem, scale)
    risk = jnp.mean(losses)
    bias = jnp.stack([jnp.mean(one.value) / risk - 1 for one in found])
    error = jnp.stack([jnp.sqrt(jnp.mean((one.value / risk - 1) ** 2)) for one in found])
    some = found[1]
    said, spread = jnp.sqrt(jnp.mean(some.standard_error**2)), jnp.std(some.value, ddof=1)
    metrics = {"bias_some": bias[1], "bias_many": bias[2], "bias": bias, "error": error}
    metrics |= {"log_error_some": jnp.log(error[1]), "log_error_many": jnp.log(error[2])}
    metrics |= {"log_error_ratio": jnp.log(said / spread), "effective": jnp.mean(some.effective)}
    for name, kind in (("coverage", "linear"), ("coverage_log", "log")):
        low, high = some.interval(0.95, kind)  # pyright: ignore[reportArgumentType]
        metrics[name] = jnp.mean(((low <= risk) & (risk <= high)).astype(risk.dtype))
    return metrics | {"labels": jnp.asarray(scale.labels, risk.dtype)}


def share(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """The variance of an estimator over repeated labelling of one pool, by the number of labels."""
    found, losses = _repeated(key, arm, problem, scale)
    risk = jnp.mean(losses)
    log_variance = jnp.log(jnp.stack([jnp.var(one.value / risk, ddof=1) for one in found]))
    half = int(np.argmin(np.abs(2 * np.asarray(scale.labels) - losses.shape[0])))
    return {
        "log_variance_half": log_variance[half],
        "log_variance": log_variance,
        "labels": jnp.asarray(scale.labels, risk.dtype),
    }


def _repeated(key: Array, arm: Settings, problem, scale: Settings) -> tuple[list[RiskEstimate], Array]:
    """Estimates over ``scale.runs`` sessions for each number of labels, and the pool's losses."""
    pool_key, pick_key = jax.random.split(key)
    losses, scores = problem.draw(pool_key)
    num_pool = losses.shape[0]
    powered = jnp.where(scores > 0, scores, 0.0) ** arm.power
    mixed = (1 - scale.floor) * powered / jnp.sum(powered) + scale.floor / num_pool

    def session(key):
        picks, log_q = plackett_luce(key, jnp.log(mixed), max(scale.labels))
        return [estimate(arm.estimator, losses[picks[:m]], log_q[:m], num_pool) for m in scale.labels]

    return jax.vmap(session)(jax.random.split(pick_key, scale.runs)), losses


def greedy(key: Array, arm: Settings, problem, scale: Settings) -> dict[str, Array]:
    """The error of an estimator where all picks but a share ``arm.floor`` are the highest score that is left."""
    pool_key, pick_key = jax.random.split(key)
    losses, scores = problem.draw(pool_key)
    acquisition = Acquisition(floor=arm.floor, kind="greedy")

    def session(key):
        def step(state, key):
            pick, state, info = acquisition.step(key, scores, state)
            return state, (pick, info.log_q)

        start = acquisition.init(losses.shape[0])
        _, (picks, log_q) = jax.lax.scan(step, start, jax.random.split(key, scale.picks))
        return estimate(arm.estimator, losses[picks], log_q, losses.shape[0])

    risk = jnp.mean(losses)
    share = jax.vmap(session)(jax.random.split(pick_key, scale.runs)).value / risk - 1
    return {"log_error": jnp.log(jnp.sqrt(jnp.mean(share**2))), "bias": jnp.mean(share)}
