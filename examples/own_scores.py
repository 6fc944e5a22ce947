"""Short lists of classes for your own classifier, and what the methods would be worth on it.

    python examples/own_scores.py
    laureate run raps/smaller-than-aps --problem examples/own_scores.py:scores

Your model is its logits on rows that it was not trained on, and the true labels. The second line compares all methods
there: calibrated on some of the rows, judged on others.
"""

import jax
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from laureate.problems.scores import ScoreTable
from laureate.uncertainty import RAPS, coverage, coverage_law, mean_size


def logits_and_labels(trees: int = 30):
    """A random forest on a few of scikit-learn's digits: votes, whose logarithms are its logits."""
    images, labels = map(np.asarray, load_digits(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(labels))
    known, others = order[:150], order[150:]
    forest = RandomForestClassifier(trees, max_depth=6, random_state=0).fit(images[known], labels[known])
    votes = forest.predict_proba(images[others])
    return np.log(np.maximum(votes, 1e-4)), labels[others]


def scores():
    return ScoreTable(*logits_and_labels())


def main():
    logits, y = logits_and_labels()
    raps = RAPS(alpha=0.05).fit(jax.random.key(0), logits[:800], y[:800])
    sets = raps.predict_set(jax.random.key(1), logits[800:])
    law = coverage_law(raps.n_cal_, 0.05)
    print(f"{coverage(sets, y[800:]):.1%} covered with {mean_size(sets):.2f} classes a set")
    print(f"of calibration sets of {raps.n_cal_} rows, nine in ten cover {law.ppf(0.05):.1%} to {law.ppf(0.95):.1%}")
    print("the first five:", [np.flatnonzero(row).tolist() for row in sets[:5]])
    return sets, y[800:]


if __name__ == "__main__":
    main()
