"""A calibration error without bins, and a map that is the slope of a spline."""

from laureate.lab.claim import Paper
from laureate.papers.spline_calibration.experiments import MEASURE, NETWORKS, NOISY, TRUTH

__all__ = ["PAPER"]

PAPER = Paper(
    id="spline-calibration",
    area="uncertainty",
    problem=(
        "My network says 95 % and is right 80 % of the time, and the calibration error that I report moves with the "
        "number of bins. I hold scores and labels of rows it was not trained on, and will not train it again."
    ),
    idea=(
        "Sort the rows by score and add up hits and scores: the largest gap between the two sums is the KS error, and "
        "needs no bins. The slope of the sum of hits against the share of rows is the probability of a hit at that "
        "score. So fit a smooth curve to the sum, a cubic spline with six knots, and its slope is the calibrated "
        "confidence: of the first class, the second, or any other score."
    ),
    equation=(
        "KS = max_i |d_i|,   d_i = (1/n) Σ_{j ≤ i} (y_j − s_j),   s_1 ≤ … ≤ s_n\n"
        "h(t) = P(hit, score ≤ s(t)),   γ(s(t)) = h'(t) = P(hit | score = s(t))"
    ),
    example=(
        "import numpy as np\n"
        "from laureate.uncertainty import SplineCalibrator, ks_test\n"
        "\n"
        "rng = np.random.default_rng(0)\n"
        "p = rng.beta(4, 1, 2000)  # yours: the confidence of each held-out row\n"
        "y = rng.random(2000) < p**2  # and whether it was right\n"
        "print(ks_test(p, y))  # the error, its floor by chance, a p-value\n"
        "map = SplineCalibrator().fit(p, y)\n"
        "print(map.transform(np.array([0.5, 0.9])))\n"
    ),
    meaning=(
        "Where confidence is wrong in more than its slope a spline comes far nearer than a temperature, and "
        "everywhere nearer than isotonic regression; but on real networks the beta family's three numbers did as "
        "well, where a slope suffices a temperature is nearer, with right labels the likelihood was no better than "
        "the network's own, and a constant, which is of no use, beats them all on KS and ECE: judge by Brier's "
        "score and the likelihood."
    ),
    experiments=(NETWORKS, NOISY, TRUTH, MEASURE),
)
