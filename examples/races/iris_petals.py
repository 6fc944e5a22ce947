"""How large is the petal of an iris whose sepal was measured? The species is not told, so there are several answers.

laureate race examples/races/iris_petals.py:pairs --seconds 20
"""

import numpy as np
from sklearn.datasets import load_iris


def pairs():
    """150 flowers: length and width of the sepal, then of the petal, in centimetres."""
    measured = np.asarray(load_iris(return_X_y=True)[0], np.float32)
    return {"x": measured[:, :2], "y": measured[:, 2:]}
