"""What computes: networks and their maps, scores with known truth, and the measures on data without an error."""

import jax
import jax.numpy as jnp

from laureate.problems.confidences import TRUTHS, known_truth, scores_of_rank
from laureate.uncertainty import (
    Beta,
    Constant,
    HistogramBinning,
    Identity,
    Isotonic,
    Platt,
    SplineCalibrator,
    Temperature,
    brier,
    ece,
    ks_test,
    nll,
    top_scores,
)

__all__ = ["calibrator", "measure", "networks", "truth"]


def calibrator(name):
    """The map of an arm, with the settings that all experiments share."""
    made = {
        "none": Identity(),
        "constant": Constant(),
        "temperature": Temperature(),
        "platt": Platt(),
        "beta": Beta(),
        "isotonic": Isotonic(),
        "histogram": HistogramBinning(15),
        "spline": SplineCalibrator(6),
        "spline-4": SplineCalibrator(4),
        "spline-free": SplineCalibrator(6, ends="free"),
        "spline-text": SplineCalibrator(6, target="direct", ends="free"),
    }
    return made[name]


def networks(key, arm, problem, scale):
    """Predictions of one network, split in two: maps are fitted to the first part and judged by the second."""
    draw, split = jax.random.split(key)
    probabilities, labels = problem.predictions(draw)
    order = jax.random.permutation(split, len(labels))
    known, asked = order[: scale.calibration], order[scale.calibration :]
    confidence, hits, rows = _confidences(arm.map, probabilities, labels, known, asked)
    tested = jax.vmap(ks_test)(confidence, hits)
    first, right = confidence[0], hits[0]
    return {
        "ks": 100 * tested.statistic[0],
        "ks_range": 100 * tested.range[0],
        "floor": 100 * tested.floor[0],
        "ks_second": 100 * tested.statistic[1],
        "ece": 100 * ece(first, right, 25),
        "brier": 100 * brier(first, right),
        "nll": nll(first, right),
        "accuracy": 100 * jnp.mean(jnp.argmax(rows, axis=1) == labels[asked]),
    }


def _confidences(name, probabilities, labels, known, asked):
    """First and second confidence after the map, their hits, [2, rows] each, and rows with the first written back."""
    if name == "temperature":  # of whole rows, as the paper's baseline; the order of the classes stays
        rows = calibrator(name).fit(probabilities[known], labels[known]).transform(probabilities[asked])
        return *_ranked(rows, labels[asked]), rows
    p, y = _ranked(probabilities[asked], labels[asked])
    maps = jax.vmap(calibrator(name).fit)(*_ranked(probabilities[known], labels[known]))
    gamma = jax.vmap(lambda found, p: found.transform(p))(maps, p)
    place = jnp.argmax(probabilities[asked], axis=1)
    return gamma, y, probabilities[asked].at[jnp.arange(len(asked)), place].set(gamma[0])


def _ranked(rows, labels):
    """The scores and hits of the first and of the second class, [2, rows] each."""
    both = [top_scores(rows, labels, r) for r in (1, 2)]
    return tuple(jnp.stack(part) for part in zip(*both, strict=True))


def truth(key, arm, problem, scale):
    """How far a map fitted to scores whose true probability is known lies from it, for more and more rows."""
    test = scores_of_rank((jnp.arange(2000) + 0.5) / 2000)

    def error(key, which, rows):
        rank, coin = jax.random.uniform(key, (2, rows))
        score = scores_of_rank(rank)
        hits = (coin < known_truth(which, score)).astype(score.dtype)
        gamma = calibrator(arm.map).fit(score, hits).transform(test)
        return 100 * jnp.mean(jnp.abs(gamma - known_truth(which, test)))

    sizes = jnp.asarray(scale.rows, float)
    keys = jax.random.split(key, len(scale.rows) * len(TRUTHS)).reshape(len(scale.rows), len(TRUTHS))
    which = jnp.arange(len(TRUTHS))
    errors = jnp.stack(
        [jax.vmap(lambda k, w, n=n: error(k, w, n))(keys[i], which) for i, n in enumerate(scale.rows)]
    )  # [sizes, truths]
    middle, mean = errors[scale.rows.index(scale.judged)], jnp.mean(errors, axis=1)
    return {
        **{f"error_{name}": middle[k] for k, name in enumerate(TRUTHS)},
        **{f"errors_{name}": errors[:, k] for k, name in enumerate(TRUTHS)},
        "error": jnp.mean(middle),
        "errors": mean,
        "rows": sizes,
        "log10_rows": rows_needed(jnp.log10(sizes), mean, scale.wanted),
    }


def rows_needed(log_rows, errors, wanted):
    """Where the errors fall to ``wanted`` for good, along straight lines; the ends where they always or never do."""
    later = jax.lax.cummax(errors, reverse=True)  # what follows is no larger
    return jnp.interp(-wanted, -later, log_rows)


def measure(key, arm, problem, scale):
    """KS, its test and ECE with many numbers of bins, on draws of scores whose hits follow a known truth."""
    bins = (5, 10, 15, 25, 50, 100)

    def one(key):
        rank, coin = jax.random.uniform(key, (2, scale.rows))
        score = scores_of_rank(rank)
        hits = (coin < score**arm.power).astype(score.dtype)
        return ks_test(score, hits), jnp.stack([ece(score, hits, number) for number in bins])

    tested, errors = jax.lax.map(one, jax.random.split(key, scale.draws), batch_size=min(50, scale.draws))
    return {
        "rejected": 100 * jnp.mean(tested.p_value < 0.05),
        "log_floor": jnp.log(jnp.mean(tested.statistic) / jnp.mean(tested.floor)),
        "log_bins": jnp.log(jnp.median(jnp.max(errors, 1) / jnp.min(errors, 1))),
        "log_ratio": jnp.log(jnp.mean(tested.statistic) / jnp.mean(errors[:, bins.index(25)])),
    }
