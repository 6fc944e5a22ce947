"""How bright is the next pixel? Naive Bayes, far too sure, learns from one photograph and is asked about another.

laureate race examples/races/pixel_confidence.py:scored --seconds 20
"""

import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.naive_bayes import GaussianNB

LEVELS = (0.25, 0.5, 0.75)


def pixels(name):
    """The eight neighbours before a pixel, and which of four levels of brightness it has."""
    grey = load_sample_image(name).mean(axis=2)[::4, ::4] / 255
    shifts = ((1, 0), (0, 1), (1, 1), (1, -1), (2, 0), (0, 2), (2, 1), (1, 2))
    before = [np.roll(grey, shift, axis=(0, 1)) for shift in shifts]
    inner = (slice(2, -2), slice(2, -2))
    return np.stack([part[inner].ravel() for part in before], axis=1), np.digitize(grey[inner].ravel(), LEVELS)


def scored():
    """4,000 pixels of the flower, by a classifier that has seen the temple."""
    classifier = GaussianNB().fit(*pixels("china.jpg"))
    inputs, labels = pixels("flower.jpg")
    rows = np.random.default_rng(0).permutation(len(labels))[:4000]
    probabilities = classifier.predict_proba(inputs[rows])
    return {"probabilities": probabilities.astype(np.float32), "labels": labels[rows]}
