"""Does a perturbation made for one network fool others? Success image by image, two protocols, paired tests."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from laureate._core import require
from laureate.robustness.objectives import Logits

__all__ = [
    "PairedResult",
    "TransferReport",
    "compare_transfer",
    "fooled",
    "leave_one_out",
    "partial_rank_correlation",
    "rank_correlation",
    "transfer",
]


class TransferReport(NamedTuple):
    """Which networks were fooled by which image.

    success: whether the network errs (or gives the class wanted), ``[networks, images]``.
    counted: images that every network classifies rightly without perturbation; the others count nowhere.
    rates: success among those, one a network; nan where none is counted.
    num_dropped: images that are not counted.
    """

    success: Bool[Array, "t b"]
    counted: Bool[Array, "b"]
    rates: Float[Array, "t"]
    num_dropped: Int[Array, ""]


def fooled(
    logits: Logits, images: Float[Array, "b ..."], labels: Int[Array, "b"], targeted: bool = False
) -> Bool[Array, "b"]:
    """Whether the largest logit is not the label's; ``targeted``: whether it is.

    logits: a function from images to logits. images, labels: a row an example.
    """
    found = jnp.argmax(logits(images), axis=-1)
    return found == labels if targeted else found != labels


def transfer(
    delta: Float[Array, "b ..."],
    networks: Sequence[Logits],
    images: Float[Array, "b ..."],
    labels: Int[Array, "b"],
    wanted: Int[Array, "b"] | None = None,
    also: Sequence[Logits] = (),
) -> TransferReport:
    """The honest protocol: what one perturbation an image, the last one, does to networks that it has not seen.

    networks: those it is tried on, not the one it was made for.
    labels: the true ones. wanted: the classes a targeted attack was to reach; None: any error counts.
    also: networks that must classify an image rightly as well for it to count, as the one it was made for.

    >>> right, left = (lambda x: x), (lambda x: x[:, ::-1])
    >>> images = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    >>> report = transfer(-images, [right, left], images, jnp.array([0, 1]))
    >>> report.rates.tolist(), int(report.num_dropped)  # ``left`` errs on all images without being attacked
    ([nan, nan], 2)
    """
    require("transfer", "networks", "one or more", len(networks), lambda count: count >= 1)
    require("transfer", "delta", f"of the images' shape {images.shape}", delta.shape, lambda s: s == images.shape)
    for name, classes in (("labels", labels), ("wanted", labels if wanted is None else wanted)):
        rule = f"{len(images)}, one an image"
        require("transfer", name, rule, list(jnp.shape(classes)), lambda shape: shape == [len(images)])
    clean = jnp.stack([fooled(network, images, labels) for network in (*networks, *also)])
    counted = ~jnp.any(clean, axis=0)
    if wanted is None:
        success = jnp.stack([fooled(network, images + delta, labels) for network in networks])
    else:
        success = jnp.stack([fooled(network, images + delta, wanted, targeted=True) for network in networks])
    total = jnp.sum(counted)
    rates = jnp.sum(success & counted, axis=1) / jnp.where(total > 0, total, jnp.nan)
    return TransferReport(success, counted, rates, len(counted) - total)


def leave_one_out(success: Any, counted: Any = None) -> np.ndarray:
    """The authors' protocol: for each image the iterate that does best *on the target* for all the other images.

    success: ``[iterates, images]`` of one target. The authors' iterates are those before each step, so the first is
        the clean image and the last is missing: ``trajectory[:-1]``. counted: images that count; all, if None.

    Of iterates that do equally well the first is taken. It asks the target how it did, which whoever attacks a network
    that they cannot see may not: read it beside the last iterate, not instead.

    >>> leave_one_out([[False, False, False], [True, True, False]]).tolist()
    [True, True, False]
    """
    found = np.asarray(success, bool)
    require("leave_one_out", "success", "[iterates, images]", list(found.shape), lambda shape: len(shape) == 2)
    counted = np.ones(found.shape[1], bool) if counted is None else np.asarray(counted, bool)
    totals = (found & counted).sum(1, keepdims=True) - (found & counted)  # of the others, [iterates, images]
    return found[totals.argmax(0), np.arange(found.shape[1])]


class PairedResult(NamedTuple):
    """Two attacks on the same images and networks.

    gain: success of the first less that of the second, a mean over networks and images.
    by_network: the same for each network. p_values_by_network: exact McNemar tests, two-sided.
    p_value_pooled: Cochran, Mantel and Haenszel's over the networks, which takes an image's fate on several for
        independent. p_value: exact sign-flip test of each image's whole gain over the networks, two-sided: the one to
        read.
    """

    gain: float
    by_network: np.ndarray
    p_values_by_network: np.ndarray
    p_value_pooled: float
    p_value: float


def compare_transfer(first: TransferReport, second: TransferReport) -> PairedResult:
    """Whether one attack transfers better than another, image by image, where both are counted.

    The tests are over images, for these networks and these draws of the attacks: sets and noise that a batch shares
    are not averaged over. To speak of the method, repeat with other keys and networks.

    >>> report = lambda success: TransferReport(jnp.array([success]), jnp.ones(6, bool), jnp.zeros(1), jnp.array(0))
    >>> found = compare_transfer(report([True] * 6), report([False] * 6))
    >>> found.gain, found.p_value
    (1.0, 0.03125)
    """
    shapes = first.success.shape, second.success.shape
    require("compare_transfer", "second", f"of the first's shape {shapes[0]}", shapes[1], lambda s: s == shapes[0])
    counted = np.asarray(first.counted) & np.asarray(second.counted)
    require("compare_transfer", "counted", "one image or more", int(counted.sum()), lambda count: count >= 1)
    one, two = (np.asarray(report.success)[:, counted].astype(int) for report in (first, second))
    difference = one - two
    wins, losses = (difference > 0).sum(1), (difference < 0).sum(1)
    discordant = int((wins + losses).sum())
    pooled = math.erfc(abs(int((wins - losses).sum())) / math.sqrt(2 * discordant)) if discordant else 1.0
    return PairedResult(
        gain=float(difference.mean()),
        by_network=difference.mean(1),
        p_values_by_network=np.array([_mcnemar(int(w), int(lost)) for w, lost in zip(wins, losses, strict=True)]),
        p_value_pooled=pooled,
        p_value=_sign_flips(difference.sum(0)),
    )


def _mcnemar(wins: int, losses: int) -> float:
    """Two-sided binomial test of a half among the discordant pairs."""
    total, fewer = wins + losses, min(wins, losses)
    return min(1.0, 2 * sum(math.comb(total, k) for k in range(fewer + 1)) / 2**total)


def _sign_flips(gains: np.ndarray) -> float:
    """P(|Σ ± g_i| >= |Σ g_i|), exactly: the law of a sum of signed integers, one after the other."""
    law = np.ones(1)
    for size in np.abs(gains[gains != 0]):
        wide = np.zeros(len(law) + 2 * size)
        wide[: len(law)] += law / 2
        wide[2 * size :] += law / 2
        law = wide
    sums = np.arange(len(law)) - (len(law) - 1) // 2
    return float(min(1.0, law[np.abs(sums) >= abs(int(gains.sum()))].sum()))


def rank_correlation(x: Any, y: Any) -> float:
    """Spearman's: the correlation of ranks, equal values sharing theirs; 0 where one does not vary.

    >>> round(rank_correlation([1, 2, 3, 4], [1, 4, 9, 16]), 6)
    1.0
    """
    return _correlation(_ranks(x), _ranks(y))


def partial_rank_correlation(x: Any, y: Any, given: Any) -> float:
    """Of the ranks of x and y, with what the ranks of ``given`` explain of both by a straight line taken away.

    >>> x, y, given = [2, 1, 4, 3, 6, 5], [2, 1, 4, 3, 6, 5], [1, 2, 3, 4, 5, 6]
    >>> round(partial_rank_correlation(x, y, given), 6)
    1.0
    """
    ranks = _ranks(given)
    line = np.stack([np.ones_like(ranks), ranks], axis=1)

    def rest(values):
        mine = _ranks(values)
        left = mine - line @ np.linalg.lstsq(line, mine, rcond=None)[0]
        return left if np.linalg.norm(left) > 1e-9 * max(np.linalg.norm(mine), 1) else np.zeros_like(left)

    return _correlation(rest(x), rest(y))


def _ranks(values: Any) -> np.ndarray:
    values = np.asarray(values, np.float64)
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse.reshape(-1)]


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    size = np.linalg.norm(x) * np.linalg.norm(y)
    return float(x @ y / size) if size > 0 else 0.0
