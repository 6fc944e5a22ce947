"""Prediction sets: the law of their coverage, what tuning on the same rows costs, sizes, and who is covered."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate.lab.claim import Settings
from laureate.problems.scores import DigitNumbers, NoisyScores
from laureate.uncertainty import (
    APS,
    LAC,
    RAPS,
    SAPS,
    NaiveSets,
    TopK,
    by_class,
    conformal_quantile,
    coverage_law,
    fit_temperature,
    lac_score,
    rank_label,
    raps_score,
    saps_score,
    top_k_score,
    tune_raps,
    worst_violation,
)

__all__ = ["classes", "judged", "law", "noise", "released_quantile", "sets", "tuning"]

ALPHA = 0.1
NOISES = (0.0, 1.0, 2.0)
HARD = 4  # the rank from which on an input counts as hard


def released_quantile(scores: Array, alpha: float) -> Array:
    """The authors' np.quantile(scores, 1 − α, 'higher'): the (⌈(n − 1)(1 − α)⌉ + 1)-th smallest."""
    return jnp.quantile(scores, 1 - alpha, method="higher")


def law(key: Array, arm: Settings, problem: NoisyScores, scale: Settings) -> dict[str, Array]:
    """Coverage of the thresholds of ``scale.worlds`` calibration sets, each of ``scale.rows`` fresh rows."""

    def scores(key, num_rows):
        row_key, u_key = jax.random.split(key)
        logits, y = problem.sample(row_key, num_rows)
        at, u = rank_label(jax.nn.softmax(logits), y), jax.random.uniform(u_key, (num_rows,))
        # One of the weights is 1: one program serves all arms.
        ranked = arm.raps * raps_score(at, u, 2, arm.lam) + arm.saps * saps_score(at, u, arm.lam)
        return ranked + arm.lac * lac_score(at) + arm.top_k * top_k_score(at, u)

    def threshold(key):
        found = scores(key, scale.rows)
        tau = jnp.where(arm.released > 0.5, released_quantile(found, ALPHA), conformal_quantile(found, ALPHA))
        return jnp.where(arm.naive > 0.5, 1 - ALPHA, tau)

    reference_key, world_key = jax.random.split(key)
    taus = jax.vmap(threshold)(jax.random.split(world_key, scale.worlds))
    fresh = jnp.sort(scores(reference_key, scale.reference))
    covered = jnp.sort(jnp.searchsorted(fresh, taus, side="right") / scale.reference)
    exact = coverage_law(scale.rows, ALPHA)
    expected = jax.scipy.special.betainc(float(exact.a), float(exact.b), covered)
    steps = jnp.arange(scale.worlds + 1) / scale.worlds
    distance = jnp.max(jnp.maximum(expected - steps[:-1], steps[1:] - expected))
    return {
        "coverage": jnp.mean(covered),
        "below": jnp.mean(covered < 1 - ALPHA),
        "kolmogorov": jnp.sqrt(1.0 * scale.worlds) * distance,
    }


def tuning(key: Array, arm: Settings, problem: NoisyScores, scale: Settings) -> dict[str, Array]:
    """Coverage over ``scale.worlds`` calibration sets with k_reg and λ from the same or from other rows."""
    n, total = scale.rows, 2 * scale.rows + scale.test

    def world(key):
        row_key, u_key = jax.random.split(key)
        logits, y = problem.sample(row_key, total)
        u = jax.random.uniform(u_key, (total,))
        others, held, test = slice(0, n), slice(n, 2 * n), slice(2 * n, None)
        # Weights again: where settings come from is a number, so that one program serves all arms.
        logits = logits / jnp.where(arm.temperature > 0.5, fit_temperature(logits[held], y[held]), 1.0)
        p = jax.nn.softmax(logits)
        known_p, known_y, known_u = (jnp.where(arm.others > 0.5, v[others], v[held]) for v in (p, y, u))
        tuned_k, tuned_lam = tune_raps(known_p, known_y, known_u, ALPHA)
        k_reg, lam = jnp.where(arm.tuned > 0.5, tuned_k, 2), jnp.where(arm.tuned > 0.5, tuned_lam, 0.1)
        scores = raps_score(rank_label(p, y), u, k_reg, lam)
        return jnp.mean(scores[test] <= conformal_quantile(scores[held], ALPHA)), lam

    covered, lams = jax.vmap(world)(jax.random.split(key, scale.worlds))
    return {"coverage": jnp.mean(covered), "lam": jnp.median(lams)}


def _method(arm: Settings, tune_fraction: float) -> Any:
    temperature = "fit" if arm.temperature == "fit" else 1.0
    common: dict[str, Any] = {"temperature": temperature, "tune_fraction": tune_fraction}
    common["randomized"] = arm.last == "drawn"
    if arm.method == "raps":
        return RAPS(ALPHA, k_reg=arm.k_reg, criterion=arm.criterion, **common)
    return {"aps": APS, "lac": LAC, "saps": SAPS, "top-k": TopK, "naive": NaiveSets}[arm.method](ALPHA, **common)


def judged(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, float]:
    """Sets of an arm's method: calibrated on some rows of a problem, judged on others."""
    row_key, fit_key, set_key, other_key = jax.random.split(key, 4)
    parts = np.array([scale.tune, scale.calibrate, scale.test])
    logits, y = (np.asarray(v) for v in problem.sample(row_key, int(parts.sum())))
    num_test = int(len(y) * parts[2] / parts.sum())
    logits = arm.sharpen * logits
    method = _method(arm, scale.tune / (scale.tune + scale.calibrate))
    method.fit(fit_key, logits[num_test:], y[num_test:])
    logits, y = logits[:num_test], y[:num_test]
    size = method.predict_size(set_key, logits)
    rank = rank_label(logits, y).rank
    covered, hard = rank <= size, rank >= HARD
    return {
        "coverage": covered.mean(),
        "size": size.mean(),
        "log_size": np.log(size.mean()),
        "empty": (size == 0).mean(),
        "violation": worst_violation(size, covered, ALPHA),
        "hard": covered[hard].sum() / max(hard.sum(), 1),
        "hard_count": hard.sum(),
        "changes": (size != method.predict_size(other_key, logits)).mean(),
        "class_spread": by_class(y % 10, covered, 10).coverage.std(),
        "accuracy": (rank == 1).mean(),
        "lam": getattr(method, "lam_", 0.0),
        "k_reg": getattr(method, "k_reg_", 0),
        "temperature": method.temperature_,
    }


def sets(key: Array, arm: Settings, problem: DigitNumbers, scale: Settings) -> dict[str, Array]:
    """Sizes, coverage and violations on the problem's rows."""
    return {name: jnp.asarray(value, jnp.float32) for name, value in judged(key, arm, problem, scale).items()}


def noise(key: Array, arm: Settings, problem: NoisyScores, scale: Settings) -> dict[str, Array]:
    """The same on simulated rows whose logits have noise of three sizes; the draws are the same for each."""
    found = [judged(key, arm, eqx.tree_at(lambda p: p.noise, problem, sigma), scale) for sigma in NOISES]
    metrics = {
        f"{name}_{place}": jnp.asarray(one[name], jnp.float32)
        for place, one in enumerate(found)
        for name in ("coverage", "log_size", "violation", "hard", "accuracy", "lam")
    }
    return metrics | {
        "log_growth": metrics["log_size_2"] - metrics["log_size_0"],
        "noises": jnp.asarray(NOISES),
        "sizes": jnp.asarray([one["size"] for one in found]),
        "coverages": jnp.asarray([one["coverage"] for one in found]),
    }


def classes(key: Array, arm: Settings, problem: tuple[DigitNumbers, ...], scale: Settings) -> dict[str, Array]:
    """The same on numbers of one, two and three digits, by the same classifier."""
    found = [judged(key, arm, one, scale) for one in problem]
    counts = [10**one.digits for one in problem]
    metrics = {f"size_{k}": jnp.asarray(one["size"], jnp.float32) for k, one in zip(counts, found, strict=True)}
    return metrics | {
        "classes": jnp.asarray(counts, jnp.float32),
        "sizes": jnp.asarray([one["size"] for one in found]),
        "coverages": jnp.asarray([one["coverage"] for one in found]),
    }
