"""Perturbations whose units interact less transfer better, and a loss that makes them so."""

from laureate.lab.claim import Paper
from laureate.papers.interaction_attack.experiments import CONVOLUTIONAL, TRANSFER
from laureate.papers.interaction_attack.experiments_strength import INDEX, STRENGTH

__all__ = ["PAPER"]

PAPER = Paper(
    id="interaction-attack",
    area="robustness",
    problem=(
        "I want to know how robust my network is to perturbations that were made for another one, why some of them "
        "transfer and others do not, and how to measure that honestly."
    ),
    idea=(
        "Take the units of a perturbation for players of a game whose reward is the margin by which the network errs. "
        "Two units interact when they gain more together than each alone (the Shapley interaction index). The authors "
        "find that perturbations with less interaction transfer better, and subtract the interaction across random "
        "cuts of the units from the loss of any attack. The mean over all pairs needs 2n + 2 rewards instead of 2ⁿ."
    ),
    equation=(
        "I_ij = Σ_S w(|S|) [v(S ∪ ij) − v(S ∪ i) − v(S ∪ j) + v(S)],  w(s) = 1 / ((n − 1) C(n − 2, s))\n"
        "E I_ij = E_i[v(N) − v(N∖i) − v(i) + v(∅)] / (n − 1)\n"
        "J(δ) = L(f(x + δ), y) − λ E_S[v(N) − v(N∖S) − v(S) + v(∅)]"
    ),
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.robustness import PGD, InteractionReduced, Linf, generate, grid_players, transfer\n"
        "\n"
        "weights = jax.random.normal(jax.random.key(0), (2, 64, 10))  # yours: any functions from images to logits\n"
        "mine, other = (lambda x, w=w: jnp.tanh(x.reshape(len(x), -1) @ w) for w in weights)\n"
        "images = jax.random.uniform(jax.random.key(1), (5, 8, 8, 1))\n"
        "labels = mine(images).argmax(1)\n"
        "attack = InteractionReduced(PGD(mine, Linf(8 / 255)), grid_players((8, 8), 4), strength=1.0)\n"
        "delta, info = generate(jax.random.key(2), attack, images, labels)\n"
        "report = transfer(delta, [other], images, labels, also=[mine])\n"
    ),
    meaning=(
        "On small networks momentum and single steps do lower interaction, and perturbations with less of it fool more "
        "networks, though not clearly so once the white-box margin is held fixed. Making interaction small added 0.6 "
        "points to transfer at most, which ten seeds cannot tell from nothing and tuning λ does not change; VR has, at "
        "the same margin, more interaction than PGD, so that interaction does not explain all attacks here."
    ),
    experiments=(TRANSFER, STRENGTH, CONVOLUTIONAL, INDEX),
)
