"""A blur that stops at edges, learned from a photograph: can a network on the pixels' mesh do what the filter does?

laureate race examples/races/photograph_blur.py:motion --seconds 60
"""

import numpy as np
from sklearn.datasets import load_sample_image

SIDE, FRAMES = 9, 12


def smoothed(grey):
    """One step of Perona and Malik's filter (1990): differences flow, those of more than 0.1 hardly at all."""
    flow = np.zeros_like(grey)
    for axis in (1, 2):
        step = np.diff(grey, axis=axis)
        step = step / (1 + (step / 0.1) ** 2)
        ends = [(0, 0), (0, 0), (0, 0)]
        flow += np.pad(step, [*ends[:axis], (0, 1), *ends[axis + 1 :]])
        flow -= np.pad(step, [*ends[:axis], (1, 0), *ends[axis + 1 :]])
    return grey + 0.2 * flow


def motion():
    """Twelve frames of 96 patches of the temple; a patch is a mesh of 81 pixels, in triangles."""
    grey = load_sample_image("china.jpg").mean(axis=2)[::2, ::2] / 255
    corners = np.random.default_rng(0).integers(0, np.array(grey.shape) - SIDE, size=(96, 2))
    frames = [np.stack([grey[i : i + SIDE, j : j + SIDE] for i, j in corners])]
    for _ in range(FRAMES - 1):
        frames.append(smoothed(frames[-1]))
    number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    a, b, c, d = (part.ravel() for part in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]))
    return {
        "positions": np.stack(np.divmod(number.ravel(), SIDE), axis=1).astype(np.float32),
        "cells": np.concatenate([np.stack([a, b, c], axis=1), np.stack([b, d, c], axis=1)]),
        "states": np.stack(frames, axis=1).reshape(len(corners), FRAMES, -1, 1).astype(np.float32),
    }
