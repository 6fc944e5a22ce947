"""Wang et al. (ICLR 2021): related tasks are made to agree as much as they usually do."""

from laureate.lab.claim import Paper
from laureate.papers.gradvac.experiments import PAIRS, STEADY
from laureate.papers.gradvac.experiments_dialects import RELATED, RELATED_EQUAL, RELATED_SGD, UNRELATED

__all__ = ["PAPER"]

PAPER = Paper(
    id="gradvac",
    area="multitask",
    problem=(
        "One model serves many related tasks: languages, domains, customers. Their gradients do not quite conflict, "
        "but they could agree more, and small tasks should gain from large ones."
    ),
    idea=(
        "The cosine of every pair of tasks' gradients is tracked along training. Where it falls below its own moving "
        "average, one gradient gets as much of the other as brings the cosine back up. With averages that stay 0 this "
        "is PCGrad, which acts only on conflicts."
    ),
    equation=(
        "if p = cos(g_i, g_j) < h_ij:  g_i ← g_i + ‖g_i‖ (h √(1−p²) − p √(1−h²)) / (‖g_j‖ √(1−h²)) g_j\n"
        "h_ij ← (1−β) h_ij + β p"
    ),
    example=(
        "import jax, jax.numpy as jnp, optax\n"
        "from laureate.multitask import gradvac\n"
        "\n"
        "def losses(params):  # yours: one number a task\n"
        "    return jnp.array([jnp.sum((params - 1) ** 2), jnp.sum((params + 1) ** 2)])\n"
        "\n"
        "params, optimiser = jnp.array([3.0, 0.5]), optax.chain(gradvac(jax.random.key(0), 2), optax.adam(0.1))\n"
        "updates, state = optimiser.update(jax.jacrev(losses)(params), optimiser.init(params), params)\n"
        "params = optax.apply_updates(params, updates)\n"
    ),
    meaning=(
        "On five rotations of digits neither GradVac nor PCGrad differs from the plain sum by as much as half a point, "
        "on the smallest dialects as little, and with the step's length held fixed it is the same: what the paper "
        "reports for languages does not show at this size, where gradients have cosines of about 0.1. Gradients of "
        "rotations that are further apart do agree less, but less tightly than we had asked for. The mechanism does "
        "what it says for a pair; half of all pairs are corrected for ever, unrelated ones too, and the sum of ten "
        "unrelated gradients becomes 1.4 times as long, as it does with PCGrad: compare at tuned rates, or with "
        "rescale=True."
    ),
    experiments=(RELATED, RELATED_EQUAL, RELATED_SGD, UNRELATED, PAIRS, STEADY),
)
