"""Operations are chosen by what their removal costs, not by weight."""

from laureate.lab.claim import Paper
from laureate.papers.darts_pt.experiments import BILEVEL, PROPOSITION, SELECTION
from laureate.papers.darts_pt.experiments_around import ALPHA_RATE, FRONTS, RELEASED, TRAJECTORY, VALIDATION

__all__ = ["PAPER"]

PAPER = Paper(
    id="darts-pt",
    area="architecture",
    problem=(
        "I have trained a supernet, in which every edge mixes candidate operations, and must turn it into one network. "
        "Taking the operation with the largest weight gives degenerate networks: all skips, or nothing at all."
    ),
    idea=(
        "The weight of an operation says little about its worth: the better the supernet already is, the more it leans "
        "on skip connections, whatever the operation could do. So take one edge after the other, remove each of its "
        "operations in turn, and keep the one without which the supernet's validation accuracy falls most; then train "
        "the supernet on a little with that edge decided. Any supernet will do, also one whose architecture weights "
        "were never trained."
    ),
    equation=(
        "f_e(x) = Σ_o w_eo o(x),   w_e = softmax(α_e)\n"
        "o*_e = argmin_o accuracy(supernet | w_eo = 0)\n"
        "θ* = argmin var(θ o + (1 − θ) x − m) = (V_x − C) / (V_x + V_o − 2C)"
    ),
    example=(
        "import jax\n"
        "from laureate.architecture import PerturbationSelection, Space, select\n"
        "\n"
        'space = Space([("none", "skip", "conv3")] * 2)  # the operations of every edge\n'
        "def accuracy(weights):  # yours: the supernet's validation accuracy with these weights, in any framework\n"
        "    return 0.1 + 0.6 * weights[0, 2] + 0.3 * weights[1, 1]\n"
        "found = select(jax.random.key(0), PerturbationSelection(space), score_fn=accuracy)\n"
        'assert found.genotype.ops == ("conv3", "skip")\n'
    ),
    meaning=(
        "The failure that the paper repairs does not occur in our small space: whatever alpha's rate, the largest "
        "weights hardly ever choose none and give one of the best networks, so that perturbation is as good as "
        "magnitude and not better; nothing here speaks against it where magnitude fails. Where weights say nothing, "
        "because alpha was never trained, it takes a far better network than chance does, though one about three "
        "points worse than with learned alpha."
    ),
    experiments=(SELECTION, BILEVEL, ALPHA_RATE, TRAJECTORY, VALIDATION, RELEASED, FRONTS, PROPOSITION),
)
