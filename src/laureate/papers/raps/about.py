"""Short lists of classes that hold the true one as often as promised."""

from laureate.lab.claim import Paper
from laureate.papers.raps.experiments import LAW, NOISE, TUNING
from laureate.papers.raps.experiments_digits import ADAPTIVE, CLASSES, DIGITS

__all__ = ["PAPER"]

PAPER = Paper(
    id="raps",
    area="uncertainty",
    problem=(
        "My classifier is right often enough to be useful and wrong too often to be believed. For every input I want a "
        "short list of classes that holds the true one nine times in ten, without training anew and without trusting "
        "its probabilities."
    ),
    idea=(
        "Sort the classes by probability, and score a class by the mass before it, a random share of its own, and a "
        "penalty for every rank after the k_reg-th. On held-out rows find the threshold that nine in ten true classes "
        "stay below; a set holds all classes below it. Whatever the model, that covers as often as promised; the "
        "penalty keeps the long, unreliable tail out."
    ),
    equation=(
        "s(x, y, u) = ρ(x, y) + u p_y + λ (o(x, y) − k_reg)⁺\n"
        "τ = the ⌈(n + 1)(1 − α)⌉-th smallest of s(X_i, Y_i, U_i)\n"
        "C(x) = {y: s(x, y, u) ≤ τ},   1 − α ≤ P(Y in C(X)) ≤ 1 − α + 1 / (n + 1)"
    ),
    example=(
        "import jax, numpy as np\n"
        "from laureate.uncertainty import RAPS, coverage_law\n"
        "\n"
        "rng = np.random.default_rng(0)\n"
        "logits = 2 * rng.normal(size=(900, 10))  # of your model, on rows it was not trained on\n"
        "y = (logits + rng.gumbel(size=(900, 10))).argmax(axis=1)\n"
        "raps = RAPS(alpha=0.1).fit(jax.random.key(0), logits[:500], y[:500])\n"
        "sets = raps.predict_set(jax.random.key(1), logits[500:])  # bool [400, 10]\n"
        "print(sets.sum(axis=1).mean(), coverage_law(raps.n_cal_, 0.1).sd)  # labels a set; its coverage's sd\n"
    ),
    meaning=(
        "Coverage is as promised, on average over calibration sets and whatever the model, if nothing is tuned on "
        "the rows that give the threshold (of sets of 105 rows two in five cover less). Sets are smaller than "
        "top-k's, and with 300 simulated classes clearly smaller than APS's, with digits not surely; LAC's were "
        "smaller still. Tuned for adaptiveness RAPS is more even than LAC, at nearly APS's size: try LAC first, "
        "and look at coverage by size and rank."
    ),
    experiments=(LAW, DIGITS, ADAPTIVE, NOISE, CLASSES, TUNING),
)
