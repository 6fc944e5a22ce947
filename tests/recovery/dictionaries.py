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


def learned_round(signals, atoms, penalty, num_steps):
    """A round of learning by NumPy: so many steps of FISTA from these atoms, least squares, columns of norm 1."""
    power, number = np.sqrt(np.mean(signals**2)), atoms.shape[1]
    step = 1 / (1.001 * np.linalg.norm(atoms, 2) ** 2)
    x = previous = np.zeros((len(signals), number))
    before, t = 1.0, 1.0
    for _ in range(num_steps):
        y = x + (before - 1) / t * (x - previous)
        v = y - step * (y @ atoms.T - signals / power) @ atoms
        x, previous = np.sign(v) * np.maximum(np.abs(v) - penalty * step, 0), x
        before, t = t, (1 + np.sqrt(1 + 4 * t**2)) / 2
    gram = x.T @ x
    solved = np.linalg.solve(gram + 1e-4 * (np.trace(gram) / number + 1) * np.eye(number), x.T @ signals).T
    return solved / np.linalg.norm(solved, axis=0)
