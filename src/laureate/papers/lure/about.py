"""Weights that undo the choice of labels, and when to use them."""

from laureate.lab.claim import Paper
from laureate.papers.lure.experiments import EVALUATION, EXACT, GREEDY, SHARE
from laureate.papers.lure.experiments_training import ELSEWHERE, LINE, NETWORK

__all__ = ["PAPER"]

PAPER = Paper(
    id="lure",
    area="active",
    problem=(
        "I chose which points to label, the uncertain or disputed ones. My error estimate is now wrong: give me an "
        "honest one with an error bar. And should I weight the training loss as well?"
    ),
    idea=(
        "Pick at random, with probabilities that you write down. What was picked at each moment then gives an unbiased "
        "estimate of the whole pool's loss; the M estimates are put together by weights that depend on the order and "
        "on the pool's size, so that random picks have weight 1 and a pool labelled whole has no error. Trained "
        "models have a second bias, of overfitting, with the opposite sign, and weights also cost variance: whether "
        "they help training is another question than whether they are right for evaluation."
    ),
    equation=("R_LURE = 1/M Σ_m v_m L(i_m)\nv_m = 1 + (N−M)/(N−m) · (1/((N−m+1) q_m) − 1)"),
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.active import lure_risk, lure_weights, plackett_luce\n"
        "\n"
        "entropy = jnp.linspace(0.01, 1.0, 200)  # yours: a score for each point of the pool\n"
        "picks, log_q = plackett_luce(jax.random.key(0), jnp.log(entropy), 30)\n"
        "losses = entropy[picks] ** 2  # yours: label these, and compute the model's loss\n"
        "risk = lure_risk(losses, log_q, 200, log=True)\n"
        "print(risk.value, risk.interval(0.95), (entropy**2).mean())\n"
        "sample_weight = lure_weights(log_q, 200, log=True)  # for scikit-learn's fit\n"
    ),
    meaning=(
        "The weights do what the theorem says: the error from chosen labels becomes honest, and its standard error "
        "has the right size, though with 50 labels 95 % intervals hold the truth nine times in ten. LURE is better "
        "than PURE only once much of the pool is labelled, greedy picks make it worse than random labels, and in "
        "training the weights gain 2 or 5 % for a line, by the pool, and nothing for a network that fits its "
        "labels."
    ),
    experiments=(EVALUATION, SHARE, LINE, ELSEWHERE, NETWORK, GREEDY, EXACT),
)
