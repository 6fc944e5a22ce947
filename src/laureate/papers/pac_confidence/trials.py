"""Calibration sets drawn by the thousand where the truth is known: intervals of bins, cascades, shields."""

from typing import Any

import jax
import numpy as np
from jax import Array
from sklearn.isotonic import IsotonicRegression

from laureate.lab.claim import Settings
from laureate.problems.two_models import FastAndSlow
from laureate.uncertainty import cascade_bounds, fit_temperature, fixed_sequence
from laureate.uncertainty.binomial import INTERVALS

__all__ = ["bins", "cascade", "chosen_threshold", "intervals", "scores", "shield"]

ROWS = (300, 1000, 5000)
GAPS = {"1": 0.01, "2": 0.02}
TOO_SURE, HEAVY = 0.02, 0.01  # how much too sure counts, in bins with more than this share of the scores


def _generator(key: Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def intervals(arm: Settings, correct: np.ndarray, count: np.ndarray, delta: float) -> tuple[Any, Any]:
    """[lo, hi] of bins ``[..., K]`` by an arm; a point is both ends, 0.5 in an empty bin."""
    if arm.method == "anything":
        return np.zeros(count.shape), np.ones(count.shape)
    if arm.method == "histogram":
        point = np.where(count > 0, correct / np.maximum(count, 1), 0.5)
        return point, point
    num_bins = count.shape[-1]
    levels = {"bonferroni": delta / num_bins, "sidak": 1 - (1 - delta) ** (1 / num_bins), "none": delta}
    return INTERVALS[arm.method](correct, count, levels[arm.levels])


def bins(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Any]:
    """In what share of calibration sets some interval is wrong, and how wide they are, for three numbers of rows."""
    del problem
    generator = _generator(key)
    middle = (np.arange(scale.bins) + 0.5) / scale.bins
    mass = generator.dirichlet(np.ones(scale.bins))
    rate = np.clip(middle + generator.uniform(-0.1, 0.1, scale.bins), 0, 1)
    found = {}
    for rows in ROWS:
        count = generator.multinomial(rows, mass, size=scale.draws)
        lo, hi = intervals(arm, generator.binomial(count, rate), count, scale.delta)
        found[f"miss_{rows}"] = np.mean(np.any((rate < lo) | (rate > hi), axis=1))
        found[f"width_{rows}"] = np.mean(hi - lo)
    found["miss_worst"] = max(found[f"miss_{rows}"] for rows in ROWS)
    return {name: np.float32(value) for name, value in found.items()}


def _upper(counts: np.ndarray, rows: int, delta: float) -> np.ndarray:
    """Clopper and Pearson's upper bound."""
    return cascade_bounds(counts, counts, rows, delta, "sequence")


def scores(key: Array, arm: Settings, problem: FastAndSlow, scale: Settings) -> dict[str, Any]:
    """The same for a classifier's scores, with calibration sets drawn from a pool; and who is too sure how often."""
    model_key, draw_key = jax.random.split(key)
    generator = _generator(draw_key)
    answers = problem.pool(model_key)
    logits, y, right = (np.asarray(values) for values in (answers.logits, answers.labels, answers.fast))
    score = np.asarray(jax.nn.softmax(answers.logits)).max(axis=1)
    place = np.minimum((score * scale.bins).astype(int), scale.bins - 1)
    size = np.bincount(place, minlength=scale.bins)
    rate = np.bincount(place, right, scale.bins) / np.maximum(size, 1)
    used, heavy = size > 0, size > HEAVY * len(score)
    miss = overclaims = width = 0.0
    for _ in range(scale.draws):
        rows = generator.integers(0, len(score), scale.rows)
        if arm.method in ("isotonic", "temperature", "raw"):
            lo = hi = _calibrated(arm.method, logits, y, score, right, rows, place, size)
        else:
            count = np.bincount(place[rows], minlength=scale.bins)
            lo, hi = intervals(arm, np.bincount(place[rows], right[rows], scale.bins).astype(int), count, scale.delta)
        miss += np.any(((rate < lo) | (rate > hi))[used])
        overclaims += np.any((lo > rate + TOO_SURE)[heavy])
        width += np.sum((hi - lo) * size) / len(score)
    found = {"miss": miss, "overclaims": overclaims, "width": width}
    return {name: np.float32(value / scale.draws) for name, value in found.items()} | {"accuracy": right.mean()}


def _calibrated(method: str, logits: Any, y: Any, score: Any, right: Any, rows: Any, place: Any, size: Any) -> Any:
    """The mean claim of a calibrator, fitted to some rows, in each bin of the raw score."""
    claim = score
    if method == "isotonic":
        calibrator = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        claim = calibrator.fit(score[rows], right[rows]).predict(score)
    elif method == "temperature":
        z = logits / float(fit_temperature(logits[rows], y[rows]))
        claim = 1 / np.sum(np.exp(z - z.max(axis=1, keepdims=True)), axis=1)
    return np.bincount(place, claim, len(size)) / np.maximum(size, 1)


def chosen_threshold(worse: Any, better: Any, rows: int, delta: float, method: str, gap: float) -> Any:
    """How many thresholds, from strict to loose, are passed in each draw ``[draws, G]``; as in `SafeCascade`."""
    if method in ("slow", "fast"):
        return np.full(len(worse), 0 if method == "slow" else worse.shape[1])
    bounds = cascade_bounds(worse, better, rows, delta, method)
    if method in ("union", "empirical"):
        safe = bounds <= gap
        return np.where(safe.any(axis=1), safe.shape[1] - np.argmax(safe[:, ::-1], axis=1), 0)
    return fixed_sequence(bounds, gap)


def cascade(key: Array, arm: Settings, problem: FastAndSlow, scale: Settings) -> dict[str, Any]:
    """Violations of the error gap and inputs spared, over calibration sets drawn from a pool whose gaps are known."""
    model_key, draw_key = jax.random.split(key)
    answers = problem.pool(model_key)
    fast, slow = np.asarray(answers.fast), np.asarray(answers.slow)
    score = np.asarray(jax.nn.softmax(answers.logits)).max(axis=1)
    found: dict[str, Any] = {"error_fast": 1 - fast.mean(), "error_slow": 1 - slow.mean()}
    shares, share = [], np.zeros(1)
    for grid in (51, *scale.grids):
        thresholds = np.linspace(1, 0, grid)
        # The first threshold that lets a row exit; drawing rows is drawing from the cells of place and event.
        place = np.argmax(score[:, None] >= thresholds, axis=1)
        event = np.where(~fast & slow, 1, np.where(fast & ~slow, 2, 0))
        mass = np.bincount(3 * place + event, minlength=3 * grid) / len(score)
        true = np.cumsum(mass.reshape(grid, 3), axis=0)  # [G, event]
        gaps, exits = true[:, 1] - true[:, 2], true.sum(axis=1)
        drawn = _generator(draw_key).multinomial(scale.rows, mass, size=scale.draws)
        counts = np.cumsum(drawn.reshape(scale.draws, grid, 3), axis=1)
        for name, gap in GAPS.items():
            passed = chosen_threshold(counts[..., 1], counts[..., 2], scale.rows, scale.delta, arm.method, gap)
            share = np.append(0.0, exits)[passed]
            if grid != 51 or f"share_{name}" in found:
                continue
            reached = np.append(0.0, gaps)[passed]
            safe = np.flatnonzero(gaps <= gap)
            best = exits[safe[-1]] if len(safe) else 0.0
            found[f"violation_{name}"] = np.mean(reached > gap + 1e-12)
            found[f"share_{name}"] = share.mean()
            found[f"regret_{name}"] = best - share.mean()
            found[f"excess_{name}"] = np.mean(np.maximum(reached - gap, 0))
        shares.append(share.mean())
    found |= {"grid_sizes": np.asarray(scale.grids), "grid_shares": np.asarray(shares[1:])}
    return {name: np.asarray(value, np.float32) for name, value in found.items()}


def shield(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Any]:
    """Violations of the risk over calibrations, where the score's laws are Beta(1, b) and Beta(b, 1)."""
    del problem
    generator = _generator(key)
    b = generator.uniform(3, 6)
    thresholds = np.linspace(1, 0, 201)
    missed = (1 - thresholds) ** b  # P(score >= γ) at an unsafe state
    risk = scale.unsafe * missed
    trusted = 1 - thresholds**b  # P(score >= γ) elsewhere
    # Of the scores at unsafe states only their places among the thresholds count: [draws, G], as many as are >= γ.
    seen = np.cumsum(generator.multinomial(scale.rows, np.diff(missed, prepend=0.0), size=scale.draws), axis=1)
    becomes = generator.binomial(scale.rows, scale.unsafe, size=(scale.draws, 1))
    if arm.method == "product":
        bounds = _upper(becomes, scale.rows, scale.delta / 2) * _upper(seen, scale.rows, scale.delta / 2)
    elif arm.method == "direct":
        bounds = _upper(generator.binomial(scale.rows, risk, size=seen.shape), scale.rows, scale.delta)
    elif arm.method == "empirical":
        bounds = becomes / scale.rows * seen / scale.rows
    else:
        bounds = np.ones(seen.shape)
    passed = fixed_sequence(bounds, scale.risk)
    reached, use = np.append(0.0, risk)[passed], np.append(0.0, trusted)[passed]
    found = {"violation": np.mean(reached > scale.risk), "use": use.mean(), "risk": reached.mean()}
    return {name: np.float32(value) for name, value in found.items()}
