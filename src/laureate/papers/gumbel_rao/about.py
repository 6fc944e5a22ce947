"""Straight-through Gumbel-softmax with its noise averaged out given the draw."""

from laureate.lab.claim import Paper
from laureate.papers.gumbel_rao.experiments import GRADIENT, SAMPLES, TEMPERATURE, VAE

__all__ = ["PAPER"]

PAPER = Paper(
    id="gumbel-rao",
    area="gradients",
    problem=(
        "Inside my network one of n options is drawn, and I need a gradient through that choice: it is noise at low "
        "temperature and wrong at high temperature."
    ),
    idea=(
        "Straight-through Gumbel-softmax draws an option as the largest of logits with noise, and differentiates a "
        "softmax of the same noisy logits. Given the option, the noise is still random, and it can be drawn again "
        "and again without computing what follows again: the mean over such draws has the same expectation and "
        "less variance (Rao-Blackwell)."
    ),
    equation=(
        "D = onehot argmax(θ + G),   θ̄ = (1/K) Σ_k J_τ(y_k)ᵀ v,   y_k ~ θ + G | D\n"
        "J_τ(y) = (diag s − s sᵀ)/τ,   s = softmax(y/τ),   v = ∂f/∂D"
    ),
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.gradients import gumbel_rao\n"
        "\n"
        "def loss(logits, key):\n"
        "    z = gumbel_rao(key, logits, temperature=0.5, num_samples=100)  # one-hot\n"
        "    return jnp.sum((z - jnp.array([0.2, 0.3, 0.5])) ** 2)  # yours: any function of the choice\n"
        "\n"
        "print(jax.grad(loss)(jnp.zeros(3), jax.random.key(0)))\n"
    ),
    meaning=(
        "Averaging the noise given the draw keeps the mean, removes most of the variance at low temperature and trains "
        "a better model than straight-through Gumbel-softmax, at each one's best temperature and at both that were "
        "compared; but no gain over its limit without samples could be shown, two draws of an unbiased estimate, which "
        "decode twice, do better here, ten samples at τ = 0.5 and below err more than no gradient at all, and plain "
        "straight-through, which errs less than a hundred samples at τ = 1, trains a worse model."
    ),
    experiments=(VAE, GRADIENT, SAMPLES, TEMPERATURE),
)
