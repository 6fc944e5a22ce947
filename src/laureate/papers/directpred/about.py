"""Self-supervision without negatives, and a predictor set directly."""

from laureate.lab.claim import Paper
from laureate.papers.directpred.experiments import COLLAPSE, IMAGES, INVARIANT_SUBSPACE, MODES
from laureate.papers.directpred.experiments_accuracy import ACCURACY
from laureate.papers.directpred.experiments_parity import PARITY

__all__ = ["PAPER"]

PAPER = Paper(
    id="directpred",
    area="representation",
    problem=(
        "I have images or signals and no labels. I train a network so that two views of one example agree, without "
        "negatives, and fear that it collapses to a constant; the predictor network that prevents it needs tuning."
    ),
    idea=(
        "In a linear model one can solve how online network, predictor and slow target learn together: predictor and "
        "correlation of the outputs come to share their eigenvectors, and each mode lives or dies by an equation of "
        "its own. So do not train the predictor: compute it from the running correlation of the outputs, with the same "
        "eigenvectors, the roots of the eigenvalues, and a floor that keeps weak directions alive."
    ),
    equation=(
        "F ← ρF + (1 − ρ) mean(z zᵀ),   F = U diag(s) Uᵀ\n"
        "p_j = √(s_j / max s) + ε,   W_p = U diag(p) Uᵀ\n"
        "loss = ‖p(z₁) − sg(z̄₂)‖² + ‖p(z₂) − sg(z̄₁)‖² of normalised vectors,   p(z) = W_p z"
    ),
    example=(
        "import equinox as eqx, jax, optax\n"
        "from laureate.problems.views import ImagePairs  # or your own views\n"
        "from laureate.representation import DirectPred, Siamese, collapse_report\n"
        "\n"
        "key, data = jax.random.key(0), ImagePairs('digits', pool=1)\n"
        "siamese = Siamese(DirectPred(dim=data.dim), optax.sgd(0.05), apply=data.apply)\n"
        "state = siamese.init(key, data.model0(key))  # or any Equinox model\n"
        "state, info = eqx.filter_jit(siamese.step)(state, *data.views(key, 128))\n"
        "report = collapse_report(data.outputs(state.online, key, 512))\n"
    ),
    meaning=(
        "A predictor that is computed from the features' correlation is no worse than a trained one of two layers and "
        "four to five points better than a trained linear one on 5,000 images of MNIST, and keeps more than twice as "
        "many directions as the linear one; the floor under the eigenvalues made them fewer here, and a slow target "
        "could not be told from none."
    ),
    experiments=(MODES, INVARIANT_SUBSPACE, COLLAPSE, IMAGES, ACCURACY, PARITY),
)
