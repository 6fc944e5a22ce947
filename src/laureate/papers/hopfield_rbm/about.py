"""Every Hopfield network of the projection rule is a restricted Boltzmann machine."""

from laureate.lab.claim import Paper
from laureate.papers.hopfield_rbm.experiments import CAPACITY, EXACT, FEATURES, REVERSE, SAMPLING, SPEED
from laureate.papers.hopfield_rbm.experiments_training import DIGITS, PLANTED

__all__ = ["PAPER"]

PAPER = Paper(
    id="hopfield-rbm",
    area="memory",
    problem=(
        "I have binary patterns and want a memory that restores damaged ones and can be sampled quickly; or I train a "
        "restricted Boltzmann machine and want a better start than noise; or I have a trained machine and want to know "
        "what it remembers."
    ),
    idea=(
        "The projection rule stores even strongly correlated patterns in couplings that are a projection, J = QQᵀ with "
        "orthonormal columns from a QR decomposition of the patterns. A Gaussian integral for each column turns the "
        "quadratic energy into a machine with one hidden unit a pattern and Q as its weights: the same law over the "
        "units, exactly. Sampling then alternates between two layers instead of visiting unit after unit, the patterns "
        "are initial weights for training, and J = WWᵀ leads back from any trained machine."
    ),
    equation=(
        "H(s) = −½ sᵀJs − bᵀs,   J = ξᵀ(ξξᵀ)⁻¹ξ = QQᵀ\n"
        "E(s, h) = ½ hᵀh − sᵀQh − bᵀs,   Σ_s over h integrated out: p(s) ∝ exp(−βH(s))\n"
        "h | s ~ N(Qᵀs, 1/β),   P(s_i = +1 | h) = σ(2β(Qh + b)_i)"
    ),
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.memory import LayerGibbs, recall, store, to_boltzmann_machine\n"
        "\n"
        "patterns = [[1, 1, 1, -1, -1, -1, 1, 1], [1, -1, 1, -1, 1, -1, 1, -1]]  # yours: -1 and +1, one a row\n"
        "network = store(patterns)\n"
        "damaged = jnp.array([-1.0, 1, 1, -1, -1, -1, 1, 1])\n"
        "restored, info = recall(jax.random.key(0), network, damaged)\n"
        "kernel = LayerGibbs(to_boltzmann_machine(network, beta=2.0))  # in BlackJAX's form\n"
        "state, info = kernel.step(jax.random.key(1), kernel.init(restored))\n"
    ),
    meaning=(
        "The mapping is exact and the projection rule remembers far more than Hebb's; stored patterns are a better "
        "start for training than noise, but on real digits principal components and plain class means are better "
        "still, and visiting spins with the machine's weights samples as fast as its layers do."
    ),
    experiments=(PLANTED, DIGITS, FEATURES, SPEED, REVERSE, CAPACITY, EXACT, SAMPLING),
)
