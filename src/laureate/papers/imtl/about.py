"""Several losses train one network, and none takes over."""

from laureate.lab.claim import Paper
from laureate.papers.imtl.experiments import GEOMETRY
from laureate.papers.imtl.experiments_networks import EQUAL_DIALECTS, QUESTIONS, UNEQUAL_DIALECTS, UNITS, UNITS_SGD

__all__ = ["PAPER"]

PAPER = Paper(
    id="imtl",
    area="multitask",
    problem=(
        "Several losses in different units share a network; one of them takes over, and I do not want to tune weights. "
        "Going from metres to millimetres must not ruin training."
    ),
    idea=(
        "Weights for the tasks' gradients, in closed form, such that their sum has the same projection onto every "
        "task's unit gradient: no task is favoured, whatever the unit of its loss (IMTL-G). Besides, each loss is "
        "multiplied by a learned scale that brings it to 1 (IMTL-L). With two tasks the first part is the sum of unit "
        "gradients."
    ),
    equation=(
        "g = Σ a_t g_t with ⟨g, u_t⟩ equal for all t,   u_t = g_t / ‖g_t‖\n"
        "a_t ∝ (K⁻¹ 1)_t / ‖g_t‖,   K_st = ⟨u_s, u_t⟩\n"
        "each loss: e^{s_t} L_t − s_t"
    ),
    example=(
        "import jax, jax.numpy as jnp, optax\n"
        "from laureate.multitask import imtl_g\n"
        "\n"
        "def losses(params):  # yours: one number a task\n"
        "    return jnp.array([jnp.sum((params - 1) ** 2), 1000 * jnp.sum((params + 1) ** 2)])\n"
        "\n"
        "params, optimiser = jnp.array([3.0, 0.5]), optax.chain(imtl_g(), optax.adam(0.1))\n"
        "updates, state = optimiser.update(jax.jacrev(losses)(params), optimiser.init(params), params)\n"
        "params = optax.apply_updates(params, updates)\n"
    ),
    meaning=(
        "With one of two losses a hundred times too large, IMTL-G reads 84 % of the worse digit (IMTL 83 %), the plain "
        "sum 36 %, less than with an untrained shared layer; PCGrad and MGDA suffer too. The sum of unit gradients "
        "(for two tasks the same), uncertainty weighting and dividing by the loss come as far. In equal units no gain "
        "over the plain sum shows. Over six questions IMTL-G's mean is ahead; its worst answer not clearly, and "
        "PCGrad's is better. Published weights can point uphill for all; our default cannot."
    ),
    experiments=(UNITS, QUESTIONS, UNITS_SGD, UNEQUAL_DIALECTS, EQUAL_DIALECTS, GEOMETRY),
)
