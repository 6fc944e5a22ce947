"""How fast training among peers can be, and DeTAG, which nearly is."""

from laureate.lab.claim import Paper
from laureate.papers.detag.experiments_quadratics import CONSENSUS, LOWER_BOUND, QUADRATICS
from laureate.papers.detag.experiments_sweep import SWEEP
from laureate.papers.detag.experiments_training import CONV_NET, REAL_PROCESSES, SORTED_IMAGES

__all__ = ["PAPER"]

PAPER = Paper(
    id="detag",
    area="decentralized",
    problem=(
        "Many machines or parties train one model with no server: each has data of its own kind, and talks to a few "
        "neighbours only. Averaging with neighbours after every step is slow on a sparse network, and with different "
        "data it settles in the wrong place."
    ),
    idea=(
        "Let every node follow an estimate of everybody's gradient, which it corrects by what is new in its own. Work "
        "in phases: while gradients of several micro-batches are gathered at frozen parameters, accelerated gossip, "
        "which remembers the round before, averages parameters and estimates almost exactly. The number of rounds then "
        "grows with the square root of the inverse spectral gap, which a lower bound proves to be the best possible "
        "but for a logarithm."
    ),
    equation=(
        "AG: X⁽ʳ⁺¹⁾ = (1 + η) W X⁽ʳ⁾ − η X⁽ʳ⁻¹⁾,   η = (1 − √(1−λ²)) / (1 + √(1−λ²))\n"
        "X_{k+1} = AG(X_k, R) − α AG(Y_k, R)\n"
        "Y_{k+1} = AG(Y_k, R) + G_k − G_{k−1},   G_k = (1/R) Σ_r ∇f(X_k; batch r)\n"
        "mean of Y_{k+1} = mean of G_k, at every phase"
    ),
    example=(
        "import jax\n"
        "from laureate.decentralized import DeTAG, Gossip, ring, stack, train\n"
        "from laureate.problems.peers import ImagesOverNodes  # or your own gradient(key, params, data)\n"
        "\n"
        "problem, key = ImagesOverNodes(nodes=8, per_node=20), jax.random.key(0)\n"
        "gossip = Gossip(ring(8))\n"
        "detag = DeTAG(gossip, learning_rate=0.3, num_rounds=DeTAG.advised_rounds(gossip))\n"
        "data = problem.parts(key, shuffle=0.0)  # sorted by label: a leading axis of nodes\n"
        "params, history = train(key, detag, problem.gradient, stack(problem.theta0(key), 8), 60, data=data)\n"
    ),
    meaning=(
        "On sparse networks whose nodes have unlike data, DeTAG's nodes are as accurate as with shuffled data where "
        "D-PSGD's lose most of their accuracy, and its rounds grow with the gap as the lower bound does (D²'s do, "
        "too); but D² has the lower loss on sorted images, the mean of D-PSGD's convolutional networks could not be "
        "told from DeTAG's, and DeTAG too loses accuracy on sparser networks, six to ten points for every decade of κ."
    ),
    experiments=(REAL_PROCESSES, CONSENSUS, QUADRATICS, LOWER_BOUND, SORTED_IMAGES, SWEEP, CONV_NET),
)
