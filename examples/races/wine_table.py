"""Which measurements of a wine, and which of their products, tell its colour? The table; the response is its colour.

laureate race examples/races/wine_table.py:table --seconds 20
"""

import numpy as np
from sklearn.datasets import load_wine


def table():
    """178 wines; colour intensity, from the other twelve measurements and their pairwise products."""
    measured = np.asarray(load_wine(return_X_y=True)[0])
    colour = np.log(measured[:, 9])
    others = np.delete(measured, 9, axis=1)
    others = (others - others.mean(0)) / others.std(0)
    pairs = [others[:, i] * others[:, j] for i in range(4) for j in range(i + 1, 12)]
    return {"X": np.column_stack([others, *pairs]), "y": colour}
