"""Analytic weights for unrolled sparse recovery."""

from laureate.lab.claim import Paper
from laureate.papers.alista.experiments import NOISE, RECOVERY
from laureate.papers.alista.experiments_drift import CONDITIONING, DRIFT
from laureate.papers.alista.experiments_exact import CERTIFICATE, CLOSED_FORM, CONV_THRESHOLD, DENOISING

__all__ = ["PAPER"]

PAPER = Paper(
    id="alista",
    area="recovery",
    problem=(
        "I know how my signals are made, b = D x with few entries of x not zero, and must find x for very many of "
        "them: hundreds of iterations for each are too slow, and a network with millions of weights is too much to "
        "train, and to train again whenever D changes."
    ),
    idea=(
        "Unroll a few steps of thresholding into a network. Theory says which weight every layer wants: the one that "
        "is least coherent with D while w_mᵀ d_m = 1, a least-squares problem that needs no data and has a closed "
        "form. Only a step size and a threshold a layer are left to learn: 32 numbers for sixteen layers instead of "
        "millions."
    ),
    equation=(
        "x ← η_{θ_k}(x − γ_k W̃ᵀ(D x − b)),   η_θ(v) = sign(v) max(|v| − θ, 0)\n"
        "W̃ = argmin ‖WᵀD‖² with w_mᵀ d_m = 1\n"
        "w_m = G d_m / (d_mᵀ G d_m),   G = (D Dᵀ)⁻¹"
    ),
    example=(
        "import jax, jax.numpy as jnp, optax\n"
        "from laureate.recovery import ALISTA, BernoulliGaussian, fit, nmse_db\n"
        "\n"
        "key = jax.random.key(0)\n"
        "D = jax.random.normal(key, (20, 40))  # or your own: an array, or matvec and rmatvec\n"
        "solver = ALISTA(D, num_layers=6, normalise=True)\n"
        "prior = BernoulliGaussian(40, density=0.05)  # or an array of your codes\n"
        "solver, losses = fit(key, solver, prior, optimiser=optax.adam(0.01), num_steps=100)\n"
        "x = prior(jax.random.key(1), 100)\n"
        "print(nmse_db(solver(x @ D.T), x))\n"
    ),
    meaning=(
        "If you know D, compute the weight and train two numbers a layer: with equal training that beats learning "
        "matrices without noise and equals it at 20 dB, a layer is worth about eight iterations of FISTA, and when D "
        "drifts the weight is computed anew at no loss; but for convolutions on real images filters learned layer by "
        "layer stay 0.8 dB better, and FISTA with ten times as many iterations as layers is still the most exact "
        "without noise."
    ),
    experiments=(CLOSED_FORM, CERTIFICATE, CONV_THRESHOLD, RECOVERY, NOISE, DRIFT, DENOISING, CONDITIONING),
)
