"""Gradients of the log density say which discrete variable to change next."""

from laureate.lab.claim import Paper
from laureate.papers.gibbs_with_gradients.experiments_learning import DEEP, LEARN_ISING, LEARN_POTTS
from laureate.papers.gibbs_with_gradients.experiments_samplers import LEARN_GRAPH, RIVALS, TRAINED_RBM
from laureate.papers.gibbs_with_gradients.experiments_sampling import EXACT, FHMM, GAP, ISING, POTTS, RBM, SECONDS

__all__ = ["PAPER"]

PAPER = Paper(
    id="gibbs-with-gradients",
    area="sampling",
    problem=(
        "I have an unnormalised probability over discrete variables: an energy-based model, an RBM, an Ising or Potts "
        "model, a posterior over switches or categories. Gibbs sampling spends nearly all its steps on variables that "
        "do not want to change, and trying every change costs one evaluation each."
    ),
    idea=(
        "Most such densities are written as differentiable functions that are only evaluated at discrete points. One "
        "gradient then estimates the effect of every single change at once. Propose changes in proportion to the "
        "square root of their estimated gain, and correct the estimate's error by accepting or rejecting with the same "
        "proposal at the other end: exact, at one gradient a step."
    ),
    equation=(
        "d̃(x)_m = ∇f(x)·(x'_m − x) for every move m\n"
        "q(m | x) = softmax(d̃(x) / 2)_m\n"
        "accept with min{1, exp(f(x') − f(x)) q(m' | x') / q(m | x)}"
    ),
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.sampling import Binary, GibbsWithGradients, run\n"
        "\n"
        "def logdensity(x):  # x: floats 0.0 and 1.0\n"
        "    s = 2 * x - 1\n"
        "    return 0.4 * jnp.sum(s * (jnp.roll(s, 1, 0) + jnp.roll(s, 1, 1)))\n"
        "\n"
        "kernel = GibbsWithGradients(logdensity, Binary())\n"
        "result = run(jax.random.key(0), kernel, jnp.zeros((8, 10, 10), bool), num_steps=500)  # eight chains\n"
    ),
    meaning=(
        "For each evaluation of the model Gibbs-With-Gradients gives several times the effective samples of block "
        "Gibbs and of the Hamming ball on an Ising lattice and of plain Gibbs on a Potts lattice, and couplings are "
        "learnt more exactly with few steps (on an Ising lattice no couplings at all are nearer still); but by the "
        "second, with all chains in one compiled program, plain Gibbs was ahead on all four models, "
        "and on a trained machine no sampler could be told from another."
    ),
    experiments=(
        EXACT,
        GAP,
        ISING,
        RIVALS,
        POTTS,
        RBM,
        TRAINED_RBM,
        FHMM,
        SECONDS,
        LEARN_ISING,
        LEARN_GRAPH,
        LEARN_POTTS,
        DEEP,
    ),
)
