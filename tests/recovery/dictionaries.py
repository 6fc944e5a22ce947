"""Random dictionaries and codes in NumPy, which the tests of this area share."""

import numpy as np


def random_dictionary(rows=6, columns=10, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(rows, columns))
    return matrix / np.linalg.norm(matrix, axis=0)


def sparse_codes(number, columns, entries=1, seed=0):
    draw = np.random.default_rng(seed)
    codes = np.zeros((number, columns))
    for row in codes:
        row[draw.choice(columns, entries, replace=False)] = draw.uniform(-1, 1, entries)
    return codes
