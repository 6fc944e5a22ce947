"""From where in a photograph is this little square? 48 places, a linear model, and whose short lists are best.

laureate race examples/races/photograph_places.py:scored --seconds 20
"""

import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

SIDE = 8


def scored():
    """Squares of 8 × 8 pixels of a flower; a place is one of 6 × 8; by colours and their spread."""
    picture = load_sample_image("flower.jpg") / 255.0
    down, across = (length // SIDE for length in picture.shape[:2])
    squares = picture[: down * SIDE, : across * SIDE].reshape(down, SIDE, across, SIDE, 3).swapaxes(1, 2)
    squares = squares.reshape(down * across, SIDE, SIDE, 3)
    quarters = squares.reshape(-1, 2, 4, 2, 4, 3).mean((2, 4)).reshape(len(squares), -1)
    features = np.column_stack([quarters, squares.std((1, 2)), np.log(squares.mean((1, 2)) + 0.05)])
    row, column = np.divmod(np.arange(down * across), across)
    place = 8 * (6 * row // down) + 8 * column // across
    order = np.random.default_rng(0).permutation(len(place))
    known, others = order[:1500], order[1500:]
    model = LinearDiscriminantAnalysis().fit(features[known], place[known])
    return {"scores": model.decision_function(features[others]), "labels": place[others]}
