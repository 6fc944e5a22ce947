"""Units that independently trained models agree on matter, say something, and can be set."""

from laureate.lab.claim import Paper
from laureate.papers.important_neurons.experiments import LOCALISED, NULL, PLANTED
from laureate.papers.important_neurons.experiments_control import CONTROL
from laureate.papers.important_neurons.experiments_models import ERASURE, HOW_MANY, INTERPRETABLE, TRANSFORMER

__all__ = ["PAPER"]

PAPER = Paper(
    id="important-neurons",
    area="interpretation",
    problem=(
        "I have a trained network and want to know which of its units matter, what they say, and whether I can change "
        "what it says by setting a few of them, without labels and without trying every unit."
    ),
    idea=(
        "Train the same network a few times. What is needed for the task will be learned every time, what is chance "
        "will not: so rank a unit by how well its activations correlate with those of some unit of another model "
        "(MaxCorr), of every other model (MinCorr), or can be predicted from all units of another (LinReg); SVCCA "
        "ranks directions instead. No labels are used. Then erase units from the top and from the bottom, look at what "
        "the top ones say, and set them to change tense, number or gender of a translation."
    ),
    equation=(
        "MaxCorr(i, m) = max_{j, m' ≠ m} |ρ(x_i^m, x_j^m')|\n"
        "MinCorr(i, m) = min_{m' ≠ m} max_j |ρ(x_i^m, x_j^m')|\n"
        "LinReg(i, m) = mean_{m' ≠ m} R²(x_i^m | x^m')"
    ),
    example=(
        "import numpy as np\n"
        "from laureate.interpretation import permutation_null, rank_neurons\n"
        "import jax\n"
        "\n"
        "rng = np.random.default_rng(0)  # yours: activations [tokens, units] of each model, on the same tokens\n"
        "shared = rng.normal(size=(2000, 3))\n"
        'models = {name: np.hstack([shared @ rng.normal(size=(3, 3)), rng.normal(size=(2000, 5))]) for name in "abc"}\n'
        'found = rank_neurons(models, model="a", method="max-corr")\n'
        "null = permutation_null(jax.random.key(0), list(models.values()), 0, num_permutations=50)\n"
        "print(found.order[:3], found.partner_unit[:3], null.adjusted)\n"
    ),
    meaning=(
        "On small translators, erasing the quarter of the units that models agree on most costs more than erasing the "
        "quarter they agree on least (MaxCorr and MinCorr; for LinReg ten seeds cannot tell), and setting the five "
        "units that tell tense, number or gender best changes the form of most words, a single unit that of a quarter "
        "of the verbs. But a unit's standard deviation, or the weights that read it, tell top from bottom better than "
        "MaxCorr, and their product, which needs one model alone, orders units far more as their single effects do."
    ),
    experiments=(PLANTED, NULL, LOCALISED, ERASURE, INTERPRETABLE, CONTROL, HOW_MANY, TRANSFORMER),
)
