"""Intervals for a classifier's confidence with a proof, and thresholds from them."""

from laureate.lab.claim import Paper
from laureate.papers.pac_confidence.experiments import BINS, SCORES
from laureate.papers.pac_confidence.experiments_thresholds import CASCADE, SHIELD

__all__ = ["PAPER"]

PAPER = Paper(
    id="pac-confidence",
    area="uncertainty",
    problem=(
        "My classifier says 0.95, and somebody's safety hangs on whether that is true. A calibrated number is right on "
        "average and too sure somewhere; I need one that I can put into a safety file, and thresholds that follow from "
        "it: when may a fast model answer alone, when must a policy hand over?"
    ),
    idea=(
        "Cut the scores into bins before looking at data. In a bin, how many of the held-out predictions are right is "
        "binomial, so Clopper and Pearson's interval holds the bin's accuracy with a probability that is known for any "
        "number of examples; with δ shared among the bins all hold at once. The same bounds, along thresholds from "
        "strict to loose, certify how much error a cascade adds and how often a shielded policy fails."
    ),
    equation=(
        "s_k | n_k ~ Bin(n_k, c_k),   [lo_k, hi_k] = ClopperPearson(s_k, n_k, δ/K)\n"
        "P(c_k in [lo_k, hi_k] for all k) ≥ 1 − δ\n"
        "γ̂ = the loosest γ with U(#{exit at γ, fast wrong, slow right}, n, δ) ≤ ξ   ⇒   P(gap(γ̂) ≤ ξ) ≥ 1 − δ"
    ),
    example=(
        "import numpy as np\n"
        "from laureate.uncertainty import PACConfidence, SafeCascade\n"
        "\n"
        "rng = np.random.default_rng(0)\n"
        "score = rng.uniform(size=2000)  # the largest probability, on rows that the model was not trained on\n"
        "right = rng.uniform(size=2000) < score\n"
        "lo, hi = PACConfidence(delta=0.1).fit(score, right).interval(np.array([0.3, 0.95]))\n"
        "cascade = SafeCascade(error_gap=0.05).fit(score, right, right_slow=rng.uniform(size=2000) < 0.95)\n"
        "print(lo, hi, cascade.certificate())\n"
    ),
    meaning=(
        "The intervals keep their promise for all bins at once: with 1,000 rows 5 % of calibration sets are wrong "
        "somewhere where 10 % may be; shares counted in bins are too sure somewhere in nine of ten, as any point "
        "must be. A certified threshold (by our sequence of tests, not the paper's rule) spared the slow model "
        "seven inputs in ten at 0.02 of error, broken in under 1 % of calibration sets where the threshold that "
        "just fits broke it in 45 %."
    ),
    experiments=(BINS, SCORES, CASCADE, SHIELD),
)
