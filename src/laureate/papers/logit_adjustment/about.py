"""Rare classes through the class prior, in the loss or after training."""

from laureate.lab.claim import Paper
from laureate.papers.logit_adjustment.experiments import CONSISTENCY, FAMILY, IDENTITY, POSTERIORS
from laureate.papers.logit_adjustment.experiments_digits import CLASSIFIERS, NETWORKS

__all__ = ["PAPER"]

PAPER = Paper(
    id="logit-adjustment",
    area="imbalance",
    problem=(
        "My classifier's accuracy is high, but the rare classes are hardly ever predicted. All classes should count "
        "the same, if possible without training again."
    ),
    idea=(
        "The best rule for the balanced error divides each class's probability by its frequency. On the scale of "
        "logits that is a subtraction of log π, which any trained model allows; or log π is added to the logits "
        "inside the softmax of the loss, so that the raw logits learn what is left. Both are consistent, as weighted "
        "cross-entropy is; the paper argues that, unlike it, they also act where a network fits every training row."
    ),
    equation="after training: argmax_y f_y(x) − τ log π_y\nin the loss: ℓ(y, f) = −log softmax(f + τ log π)_y",
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.imbalance import adjust, class_counts, log_prior, logit_adjusted_cross_entropy\n"
        "\n"
        "labels = jnp.array([0] * 90 + [1] * 9 + [2])  # yours\n"
        "prior = log_prior(class_counts(labels, 3))\n"
        "logits = jax.random.normal(jax.random.key(0), (100, 3))  # of your network\n"
        "loss = logit_adjusted_cross_entropy(logits, labels, prior).mean()  # then predict with argmax logits\n"
        "predicted = adjust(logits, prior).argmax(-1)  # or: train with plain cross-entropy, then this\n"
    ),
    meaning=(
        "Rare classes come back, at once and around the classifiers we tried, by seven to eight points over a network "
        "trained plainly and by four once that is trained long; more plain error under the training frequencies is the "
        "price. Loss and correction are one once training is long enough; weighted cross-entropy is consistent too, "
        "pays no such price here, is better after short training and later behind by a point that our seeds do not "
        "settle; a nearest centroid is not far away."
    ),
    experiments=(NETWORKS, CONSISTENCY, FAMILY, POSTERIORS, IDENTITY, CLASSIFIERS),
)
