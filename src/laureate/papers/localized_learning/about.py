"""Early layers learn by a local rule during the forward pass, later ones by SGD."""

from laureate.lab.claim import Paper
from laureate.papers.localized_learning.experiments import DELAY, DENSE
from laureate.papers.localized_learning.experiments_host import CONVOLUTIONAL, COST, SCHEDULES

__all__ = ["PAPER"]

PAPER = Paper(
    id="localized-learning",
    area="training",
    problem=(
        "Training my network takes too long, and most of it is the backward pass through layers that hardly change any "
        "more. Which of them may I update more cheaply, or not at all, and when?"
    ),
    idea=(
        "A boundary splits the network. Layers before it are updated by a local, Hebbian rule while the batch passes "
        "through them: one matrix product instead of two, and no activation is kept. The boundary layer and all behind "
        "it learn by gradients, and backpropagation ends there. The boundary begins at the input and moves up from "
        "epoch to epoch, by the clock or once the boundary layer hardly changes. The training loss, one bit of it, "
        "controls the local updates. What the rule adds to simply freezing the layers is the question here."
    ),
    equation=(
        "l < T:  ΔW_l = E[z_l a_{l−1}ᵀ],   z_l = W_l a_{l−1},   W_l ← W_l + s η ‖W_l‖ ΔW_l / ‖ΔW_l‖\n"
        "l ≥ T:  W_l ← W_l − α ∂L/∂W_l\n"
        "s = 1 if the loss fell, else −1"
    ),
    example=(
        "import jax, jax.numpy as jnp, optax\n"
        "from laureate.training import Chain, Dense, Frozen, LocalizedTraining, NormRule, cost_table, fit\n"
        "\n"
        "inputs, labels = jax.random.normal(jax.random.key(0), (64, 8)), jnp.arange(64) % 3  # yours\n"
        "draw = lambda i, o, n: jax.random.normal(jax.random.key(n), (o, i))\n"
        "blocks = [Chain((Dense(draw(8, 16, 1)), jax.nn.relu)), Chain((Dense(draw(16, 16, 2)), jax.nn.relu)), "
        "Dense(draw(16, 3, 3))]\n"
        "trainer = LocalizedTraining(NormRule(fraction=0.95), Frozen(), optax.adam(0.01))  # or Hebbian(), Oja()\n"
        "state = trainer.init(jax.random.key(4), blocks)\n"
        "state, history = fit(jax.random.key(5), trainer, state, inputs, labels, batch=16, num_epochs=4)\n"
        "cost_table(trainer, blocks, inputs[:16], labels[:16])  # operations and kept bytes at every boundary\n"
    ),
    meaning=(
        "In our small networks Hebb's rule was nowhere better than freezing the same layers, which costs less; both "
        "lose one and a half points (dense) to three and a half (convolutional) to full backpropagation, more than "
        "reported. At a rate that ruins the rule weak supervision seems to save it (held back: no learning rate suits "
        "a ruined network, so the chosen one stands at an edge), and a random direction does better still; at tuned "
        "rates it does not help. A plain staircase of boundaries does as well as the dynamic rule."
    ),
    experiments=(DENSE, CONVOLUTIONAL, SCHEDULES, COST, DELAY),
)
