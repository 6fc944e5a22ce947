"""Stein discrepancies one line at a time, for tests and for particles."""

from laureate.lab.claim import Paper
from laureate.papers.sksd.experiments import CHAIN, DIAGNOSIS, LEVEL, POWER
from laureate.papers.sksd.experiments_particles import CORRELATED, VARIANCE

__all__ = ["PAPER"]

PAPER = Paper(
    id="sksd",
    area="sampling",
    problem=(
        "I have draws from MCMC, variational inference or particles and a log density up to a constant: do they match, "
        "in fifty dimensions? And why are the error bars of my SVGD far too small?"
    ),
    idea=(
        "Stein's identity turns the score of a density into functions whose mean under it is 0; a kernel searches all "
        "of them at once, and finds less and less in more dimensions, as particles that it moves lose their variance. "
        "Sliced, the score is projected on one line and the point on another, so that the kernel has one dimension "
        "alone; the lines are fitted to the draws."
    ),
    equation=(
        "SKSD² = Σ_r max_g E h_{r,g}(x, y),   u = g·x,   s_r = r·∇log p,   a = r·g\n"
        "h_{r,g}(x, y) = s_r(x)s_r(y) k + a s_r(x) ∂_{u'}k + a s_r(y) ∂_u k + a² ∂_u∂_{u'}k"
    ),
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.sampling import stein_test\n"
        "\n"
        "draws = jax.random.normal(jax.random.key(0), (400, 20)).at[:, 3].multiply(0.5)  # yours\n"
        "log_density = lambda x: -jnp.sum(x**2) / 2  # yours, up to a constant\n"
        "test = jax.jit(lambda key, x: stein_test(key, x, log_density, num_steps=100))\n"
        "print(test(jax.random.key(1), draws).p_value)\n"
    ),
    meaning=(
        "In thirty dimensions slices find differences along axes where KSD, its bandwidth tuned or not, finds next "
        "to none; but slices along the axes need no fitting for that, and the means of four bounded functions, "
        "without a kernel, find as many and rank biased samplers better. Off the axes nobody finds much, "
        "dependence only fitted slices and KSD. For chains slow signs still reject a tenth of perfect ones at a "
        "correlation of 0.9. Sliced SVGD keeps the variance that SVGD loses, and loses correlations, as mean-field "
        "inference does."
    ),
    experiments=(POWER, LEVEL, CHAIN, DIAGNOSIS, VARIANCE, CORRELATED),
)
