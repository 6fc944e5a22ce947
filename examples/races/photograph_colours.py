"""Which colour has a pixel of a grey photograph? Most of a temple is grey and blue: rare colours are easily lost.

laureate race examples/races/photograph_colours.py:rows --seconds 40
"""

import numpy as np
from sklearn.datasets import load_sample_image


def rows():
    """4,000 pixels: the grey of the 5 × 5 around it, and its place; a colour is what stands out of red, green, blue."""
    picture = load_sample_image("china.jpg")[::3, ::3] / 255
    grey = picture.mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(grey, (5, 5)).reshape(-1, 25)
    inner = picture[2:-2, 2:-2]
    down, across = (place.ravel() for place in np.indices(inner.shape[:2]))
    # Above, about or below the pixel's own grey, channel by channel: hue without brightness.
    hue = np.digitize(inner - inner.mean(axis=2, keepdims=True), (-0.03, 0.03)) @ np.array([1, 3, 9])
    chosen = np.random.default_rng(0).permutation(hue.size)[:4000]
    _, labels, counts = np.unique(hue.ravel()[chosen], return_inverse=True, return_counts=True)
    kept = counts[labels] >= 12
    _, labels = np.unique(labels[kept], return_inverse=True)
    features = np.column_stack([windows, down, across])[chosen][kept]
    return {"features": features.astype(np.float32), "labels": labels}
