"""How good is last year's model on this year's patients, if only 25 of them can be examined?

laureate race examples/races/tumour_pool.py:pool --seconds 10
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression


def pool():
    """Trained on ten measurements of 80 tumours; the loss is in nats, the score its expectation by the model itself."""
    table, labels = map(np.asarray, load_breast_cancer(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(labels))
    table = ((table - table.mean(0)) / table.std(0))[order, :10]
    labels = labels[order]
    model = LogisticRegression().fit(table[:80], labels[:80])
    chance = np.clip(model.predict_proba(table[80:]), 1e-3, 1.0)
    losses = -np.log(chance[np.arange(len(chance)), labels[80:]])
    return {"losses": losses, "scores": -(chance * np.log(chance)).sum(axis=1), "num_labels": 25}
