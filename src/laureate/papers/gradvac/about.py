"""Related tasks are made to agree as much as they usually do."""

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
        "On five rotations of digits, whose gradients have cosines near 0.1, GradVac is not half a point better than "
        "PCGrad or the plain sum under Adam, nor one point on the smallest dialects: the gains that the abstract "
        "reports for languages do not show here. Closer rotations have gradients that agree more; whether as tightly "
        "as we asked stays open. For a pair the correction does what it says. Half of all pairs are corrected for "
        "ever, and ten unrelated gradients sum to 1.4 times the length: tune rates."
    ),
    experiments=(RELATED, RELATED_EQUAL, RELATED_SGD, UNRELATED, PAIRS, STEADY),
)
