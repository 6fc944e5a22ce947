"""Patches of a photograph behind noise, cleaned with the cosines of JPEG, twice as many as pixels.

laureate race examples/races/photograph_recording.py:recording --seconds 40
"""

import numpy as np
from sklearn.datasets import load_sample_image


def cosines(side, frequencies):
    """[side², frequencies²]: products of cosines of rows and of columns, each of length one."""
    wave = np.cos(
        np.pi * (np.arange(side)[:, None] + 0.5) * np.arange(frequencies)[None, :] * side / frequencies / side
    )
    pairs = np.einsum("af,bg->abfg", wave, wave).reshape(side * side, frequencies**2)
    return pairs / np.linalg.norm(pairs, axis=0)


def recording():
    """2,000 patches of 6 × 6 pixels of scikit-learn's temple, without their means."""
    grey = load_sample_image("china.jpg").mean(axis=2)[::2, ::2] / 255
    rng = np.random.default_rng(0)
    corners = rng.integers(0, np.array(grey.shape) - 6, size=(2000, 2))
    patches = np.stack([grey[i : i + 6, j : j + 6].ravel() for i, j in corners])
    patches -= patches.mean(axis=1, keepdims=True)
    scale = patches.std()
    return {
        "dictionary": cosines(6, 8).astype(np.float32),
        "signals": (patches / scale).astype(np.float32),
        "snr": 10.0,
    }
