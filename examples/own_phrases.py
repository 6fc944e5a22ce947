"""Images, masks and phrases of one's own: rings and discs on grey paper, and which of them a phrase means.

Where should the phrase enter the network? Also a problem for the lab:

    laureate run referring-segmentation/where --problem examples/own_phrases.py:Paper --scale smoke
"""

import jax
import numpy as np

from laureate.grounding import (
    Segmenter,
    Vocabulary,
    choose_threshold,
    count_masks,
    fit,
    make_examples,
    overlaps,
    predict,
)
from laureate.problems.scenes import Pool

PHRASES = ("the ring", "the disc", "the upper one", "the lower one")


def draw(rng, count, side=16):
    """Pictures with a ring and a disc, one above the other; a phrase each, and the pixels that it means."""
    rows, columns = np.mgrid[:side, :side]
    images, masks, phrases = np.empty((count, side, side, 3)), np.empty((count, side, side), bool), []
    for image, mask in zip(images, masks, strict=True):
        ring_above = rng.random() < 0.5
        middles = rng.uniform(3.5, side - 4.5, size=2)
        upper, lower = (np.hypot(rows - row, columns - m) for row, m in zip((3.5, side - 4.5), middles, strict=True))
        ring, disc = (upper, lower) if ring_above else (lower, upper)
        ring, disc = (ring < 3.6) & (ring > 1.8), disc < 3.2
        grey = 0.8 - 0.6 * (ring | disc) + 0.05 * rng.normal(size=(side, side))
        image[:] = np.clip(grey, 0, 1)[..., None]
        phrases.append(str(rng.choice(PHRASES)))
        above, below = (ring, disc) if ring_above else (disc, ring)
        mask[:] = {"ring": ring, "disc": disc, "upper": above, "lower": below}[phrases[-1].split()[1]]
    return images, masks, phrases


class Paper:
    """What the lab asks for: ``draw(key, num)``. `Pool` does that for arrays."""

    def __init__(self):
        self.pool = Pool(*draw(np.random.default_rng(0), 1200))

    def draw(self, key, num):
        """At most so many, in an order that the key tells."""
        return self.pool.draw(key, num)


def main(steps=150):
    """Train with language both ways, top-down alone and without, and score each on pictures that it has not seen."""
    rng = np.random.default_rng(1)
    vocabulary = Vocabulary.of(PHRASES)
    parts = {"train": draw(rng, 600), "validation": draw(rng, 100), "test": draw(rng, 200)}
    images, masks, phrases = parts["train"]
    examples = make_examples(images, phrases, masks, vocabulary)
    scores = {}
    for way in ("both", "top-down", "none"):
        network = Segmenter(
            jax.random.key(0), len(vocabulary), depth=1, width=8, text_size=16, kernel_size=3, conditioning=way
        )
        network, _ = fit(jax.random.key(1), network, examples, steps, learning_rate=0.02)

        def counted(name, network=network):
            images, masks, phrases = parts[name]
            return count_masks(*overlaps(predict(network, images, vocabulary.encode(phrases)), masks))

        place, threshold = choose_threshold(counted("validation"), "validation")
        scores[way] = float(counted("test").mean_iou()[place])
        print(f"language {way:9} mean IoU {scores[way]:.2f} at threshold {threshold}")
    return scores


if __name__ == "__main__":
    main()
