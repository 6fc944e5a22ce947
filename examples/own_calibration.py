"""A classifier of one's own whose confidence is to be believed: a random forest that tells benign tumours from others.

Prints how wrong its confidence is before and after each map. Also a problem for the lab:

    laureate run spline-calibration/networks --problem examples/own_calibration.py:Tumours
"""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from laureate.uncertainty import Beta, Constant, Identity, SplineCalibrator, brier, ks_test, top_scores


def forest_probabilities(columns=4):
    """Out-of-fold probabilities [rows, 2] of a small forest that sees the first columns, and the labels."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(30, random_state=0)
    inputs, labels = np.asarray(inputs)[:, :columns], np.asarray(labels)
    return np.asarray(cross_val_predict(forest, inputs, labels, cv=4, method="predict_proba")), labels


class Tumours:
    """What the lab's experiment asks for: held-out predictions; these are the same for every seed, the split is not."""

    def __init__(self):
        probabilities, labels = forest_probabilities()
        # A forest's votes are ties by the hundred; a little noise tells them apart.
        noise = np.random.default_rng(0).uniform(0, 1e-3, len(labels))
        second = np.clip(probabilities[:, 1] + noise, 0, 1)
        self.probabilities = jnp.asarray(np.stack([1 - second, second], axis=1), jnp.float32)
        self.labels = jnp.asarray(labels)

    def predictions(self, key):
        """Probabilities and labels of rows that the classifier has not seen."""
        return self.probabilities, self.labels


if __name__ == "__main__":
    problem = Tumours()
    p, y = top_scores(*problem.predictions(jax.random.key(0)))
    known = np.random.default_rng(1).permutation(len(p)) < 300
    for calibrator in (Identity(), Constant(), Beta(), SplineCalibrator(knots=4)):
        gamma = calibrator.fit(p[known], y[known]).transform(p[~known])
        found = ks_test(gamma, y[~known])
        print(
            f"{type(calibrator).__name__:18} KS {100 * found.statistic:5.2f} (by chance {100 * found.floor:.2f}), "
            f"p-value {found.p_value:.2f}, Brier {100 * brier(gamma, y[~known]):.2f}"
        )
