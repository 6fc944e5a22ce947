"""Networks that are told where to look: trained, their threshold chosen on validation, scored on the test.

Trials are called once a seed (a convolution under vmap over its weights is slow): training and scoring are one program,
compiled once for all seeds of an arm. The threshold has the best cumulative IoU on validation examples.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from laureate import grounding as g
from laureate._core import light_options
from laureate.lab.claim import Settings
from laureate.problems.scenes import COLOURS, KINDS

__all__ = ["composed", "segmented"]

# Compiled lightly, as the lab compiles what it vmaps: a third of the time to compile, a tenth more to run.
LIGHT: dict[str, Any] = {"compiler_options": light_options(1)}
_prepared: dict[tuple, tuple[Any, "Prepared"]] = {}


class Prepared(NamedTuple):
    """The examples of a seed. looks: what is scored, by name: rows of ``images`` and ``masks``, and phrases.

    kinds: of the test's phrases, as numbers of the grammar.
    """

    train: g.Referred
    images: np.ndarray
    masks: np.ndarray
    looks: dict[str, tuple[np.ndarray, ...]]
    kinds: np.ndarray
    num_words: int


def prepared(key: Array, problem: Any, scale: Settings) -> Prepared:
    """Drawn once a seed for all arms that a worker trains."""
    # The problem is kept beside them: as long as it lives its id is no other's.
    name = (np.asarray(jax.random.key_data(key)).tobytes(), scale.train, scale.validation, scale.test, id(problem))
    if name not in _prepared:
        if len(_prepared) >= 10:  # a block of seeds or two; the oldest is forgotten
            del _prepared[next(iter(_prepared))]
        _prepared[name] = problem, _prepare(key, problem, scale)
    return _prepared[name][1]


def _prepare(key: Array, problem: Any, scale: Settings) -> Prepared:
    draw_key, novel_key = jax.random.split(key)
    asked = np.array([scale.train, scale.validation, scale.test])
    drawn = problem.draw(draw_key, int(asked.sum()))
    images, masks, phrases, kinds = drawn[:4]
    # Who has fewer examples than asked for splits them in the same shares.
    first, second = np.floor(np.cumsum(asked)[:2] / asked.sum() * len(phrases)).astype(int)
    words = getattr(problem, "words", None)
    longest = max(8, *(len(phrase.split()) for phrase in phrases))
    vocabulary = g.Vocabulary(words, longest) if words else g.Vocabulary.of(phrases, longest)
    tokens = vocabulary.encode(phrases)
    valid = np.ones(masks[:first].shape, bool)
    train = g.Referred(images[:first], tokens.words[:first], tokens.lengths[:first], masks[:first], valid)
    test = np.arange(second, len(phrases))
    said, lengths = tokens.words[second:], tokens.lengths[second:]
    hidden = np.isin(said, [vocabulary.words.index(word) for word in COLOURS if word in vocabulary.words])
    looks: dict[str, tuple[np.ndarray, ...]] = {
        "validation": (np.arange(first, second), tokens.words[first:second], tokens.lengths[first:second]),
        "test": (test, said, lengths),
        # What is said of another image, half of the test away.
        "shuffled": (test, np.roll(said, len(test) // 2, axis=0), np.roll(lengths, len(test) // 2)),
        "without colours": (test, np.where(hidden, 1, said), lengths),
    }
    if getattr(problem, "novel", None):  # pairs that are held out, and the same scenes with others in their place
        for look, more in (
            ("novel", problem.draw_novel(novel_key, scale.test)),
            ("familiar", problem.draw_familiar(novel_key, scale.test)),
        ):
            looks[look] = (len(images) + np.arange(scale.test), *vocabulary.encode(more.phrases))
            images, masks = np.concatenate([images, more.images]), np.concatenate([masks, more.masks])
    looks = {look: (rows - first, *what) for look, (rows, *what) in looks.items()}
    return Prepared(train, images[first:], masks[first:], looks, np.asarray(kinds)[second:], len(vocabulary))


def make_network(key: Array, arm: Settings, scale: Settings, num_words: int) -> g.Segmenter:
    """The network of an arm; ``wider``: channels more than the scale's width."""
    return g.Segmenter(
        key,
        num_words,
        text_size=scale.text_size,
        depth=scale.depth,
        width=scale.width + arm.wider,
        conditioning=arm.conditioning,
        modulation=arm.modulation,
        filter_size=arm.filter_size,
        kernel_size=scale.kernel_size,
        stem_width=scale.width,
    )


@eqx.filter_jit(**LIGHT)
def _scored(key, rate, arm, scale, num_words, train, images, masks, looks):
    """Train a network; the overlaps of every look, [examples, thresholds], and the last tenth's mean loss."""
    network_key, train_key = jax.random.split(key)
    network = make_network(network_key, arm, scale, num_words)
    network, losses = g.train(train_key, network, train, scale.steps, batch=scale.batch, learning_rate=rate)

    def look(rows, words, lengths):
        # In a few parts: the maps of all examples at once do not fit any cache.
        parts = next(n for n in (8, 4, 2, 1) if len(rows) % n == 0)
        cut = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), (rows, words, lengths))

        def some(what):
            rows, words, lengths = what
            return g.overlaps(jax.nn.sigmoid(network(images[rows], words, lengths)[-1]), masks[rows])

        both, either = jax.lax.map(some, cut)
        return both.reshape(len(rows), -1), either.reshape(len(rows), -1)

    # All looks in one call: what is compiled is compiled once.
    joined = [jnp.concatenate(parts) for parts in zip(*looks.values(), strict=True)]
    both, either = look(*joined)
    ends = np.cumsum([len(rows) for rows, *_ in looks.values()])[:-1]
    pairs = zip(jnp.split(both, ends), jnp.split(either, ends), strict=True)
    return dict(zip(looks, pairs, strict=True)), jnp.mean(losses[-max(1, scale.steps // 10) :])


def _plainly(arm: Settings, found: Prepared) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The overlaps of what does not look: nothing, everything, or the mean of the masks to train on."""
    whole = {"background": np.zeros, "foreground": np.ones}
    shape = found.masks.shape[1:]
    guess = found.train.masks.mean(0) if arm.modulation == "mean-mask" else whole[arm.modulation](shape)
    at = guess[None] > np.array(g.THRESHOLDS)[:, None, None]
    result = {}
    for name, (rows, *_) in found.looks.items():
        masks = found.masks[rows][:, None]
        result[name] = (masks & at).sum((2, 3)), (masks | at).sum((2, 3))
    return result


def trained(
    key: Array, arm: Settings, problem: Any, scale: Settings
) -> tuple[Prepared, dict[str, Any], dict[str, Any]]:
    """The examples of a seed, the overlaps of every look at the best threshold, and what was chosen."""
    draw_key, train_key = jax.random.split(key)
    found = prepared(draw_key, problem, scale)
    if not arm.conditioning:
        scores, told = _plainly(arm, found), {}
    else:
        shapes = Settings({name: scale[name] for name in SHAPING})
        kind = Settings({name: value for name, value in arm.items() if name != "label"})
        rate = jnp.asarray(scale.rate)
        overlaps, loss = _scored(train_key, rate, kind, shapes, found.num_words, *_arrays(found))
        scores = {look: tuple(map(np.asarray, pair)) for look, pair in overlaps.items()}
        told = {"loss": float(loss)}
    place, threshold = g.choose_threshold(g.count_masks(*scores["validation"]), "validation")
    return (
        found,
        {look: (both[:, place], either[:, place]) for look, (both, either) in scores.items()},
        told | {"threshold": threshold},
    )


# What of a scale is compiled in.
SHAPING = ("text_size", "depth", "width", "kernel_size", "steps", "batch")


def _arrays(found: Prepared) -> tuple:
    return jax.tree.map(jnp.asarray, (found.train, found.images, found.masks, found.looks))


def ious(pair: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Of every example; 1 where both masks are empty."""
    both, either = pair
    return np.where(either == 0, 1.0, both / np.maximum(either, 1))


def segmented(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Mean IoU on the test, by kind of phrase, with another image's phrase, and with the colour words hidden.

    A kind that the problem does not draw has no mean: it is nan, and what is claimed of it stays undecided.
    """
    found, scores, told = trained(key, arm, problem, scale)
    each = ious(scores["test"])
    counts = g.count_masks(*(values[:, None] for values in scores["test"]))
    mean = {}
    for kind in ("attribute", "place", "relation"):
        chosen = found.kinds == KINDS.index(kind)
        mean[kind] = each[chosen].mean() if chosen.any() else np.nan
    shuffled, hidden = ious(scores["shuffled"]).mean(), ious(scores["without colours"]).mean()
    metrics = {
        "iou": each.mean(),
        "cumulative_iou": counts.cumulative_iou()[0],
        "precision_50": counts.precision()[0, 0],
        "shuffled_iou": shuffled,
        "shuffle_drop": each.mean() - shuffled,
        "colour_word_drop": each.mean() - hidden,
        "attribute_minus_place": mean["attribute"] - mean["place"],
        "relation_minus_attribute": mean["relation"] - mean["attribute"],
        **{f"iou_{kind}": value for kind, value in mean.items()},
        **told,
    }
    found_at = {"precision": jnp.asarray(counts.precision()[0]), "level": jnp.asarray(g.LEVELS)}
    return {name: jnp.asarray(float(value)) for name, value in metrics.items()} | found_at


def composed(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Mean IoU on phrases of colour and shape: pairs that were in no scene to train on, and others in their place."""
    _, scores, told = trained(key, arm, problem, scale)
    seen, novel = ious(scores["familiar"]).mean(), ious(scores["novel"]).mean()
    metrics = {
        "iou": ious(scores["test"]).mean(),
        "seen_iou": seen,
        "novel_iou": novel,
        "novel_gap": seen - novel,
        **told,
    }
    return {name: jnp.asarray(float(value)) for name, value in metrics.items()}
