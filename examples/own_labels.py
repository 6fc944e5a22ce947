"""Labels of your own, chosen by how unsure the model is: an honest error rate, with an interval.

    python examples/own_labels.py
    laureate run lure/evaluation --problem examples/own_labels.py:pool --scale smoke

A random forest tells tumours apart. Of 400 patients whom it has not seen, 40 are examined, those preferred of whom it
is unsure. The second line repeats that on this pool, beside random labels and the plain mean.
"""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from laureate.active import lure_ratio, lure_risk, lure_weights, plackett_luce, plain_risk
from laureate.problems.pools import Pool


def predictions(trees: int = 50):
    """What your own model says of the pool: the probability of class 1, the classes, and the inputs."""
    x, y = map(np.asarray, load_breast_cancer(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(y))
    known, pool = order[:100], order[100:500]
    forest = RandomForestClassifier(trees, random_state=0).fit(x[known], y[known])
    return forest.predict_proba(x[pool])[:, 1], y[pool], x[pool]


def pool() -> Pool:
    p, y, _ = predictions()
    return Pool(-np.log(np.clip(np.where(y == 1, p, 1 - p), 0.01, 1)), p * (1 - p) + 0.01)


def main(trees: int = 50) -> dict[str, float]:
    p, y, x = predictions(trees)
    unsure = jnp.asarray(p * (1 - p) + 0.01)  # never 0: every patient must have a chance
    picks, log_q = plackett_luce(jax.random.key(0), jnp.log(unsure), 40)
    picks = np.asarray(picks)
    wrong = jnp.asarray((p[picks] > 0.5) != y[picks], float)  # only these 40 are examined
    honest, naive = lure_risk(wrong, log_q, len(p), log=True), plain_risk(wrong, log_q, len(p), log=True)
    hit = jnp.asarray((p[picks] > 0.5) & (y[picks] == 1), float)
    recall = lure_ratio(hit, jnp.asarray(y[picks], float), log_q, len(p), log=True)
    # A model fitted to the 40, as if they were a random sample.
    weights = np.asarray(lure_weights(log_q, len(p), log=True))
    scaled = (x - x.mean(0)) / x.std(0)
    fitted = LogisticRegression(C=0.1).fit(scaled[picks], y[picks], sample_weight=weights)
    return {
        "error": float(honest.value),
        "standard error": float(honest.standard_error),
        "plain mean": float(naive.value),
        "truth": float(((p > 0.5) != y).mean()),
        "recall": float(recall.value),
        "true recall": float((p > 0.5)[y == 1].mean()),
        "accuracy of the fitted model": float(fitted.score(scaled, y)),
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.3f}")
