"""Unbiased gradients every few steps of a very long unroll."""

from laureate.lab.claim import Paper
from laureate.papers.pes.experiments_gradient import CHARACTER_LSTM, UNBIASED, VARIANCE
from laureate.papers.pes.experiments_training import (
    INFLUENCE_BALANCING,
    L2_COEFFICIENT,
    LEARNED_OPTIMISER,
    TOY_SCHEDULE,
)
from laureate.papers.pes.experiments_tuning import CONTROL, PER_LAYER, SCHEDULE_ACCURACY

__all__ = ["PAPER"]

PAPER = Paper(
    id="pes",
    area="gradients",
    problem=(
        "My parameters act over and over in a very long computation: hyper-parameters of a training run, a learned "
        "optimiser, a recurrent network, a simulator. Backpropagation through all of it needs too much memory or "
        "explodes, and cutting it into pieces makes the gradient blind to what happens later."
    ),
    idea=(
        "Perturb the parameters anew in each short piece of the computation, run many perturbed copies side by "
        "side, and keep for each copy the sum of all its perturbations since the start. Weighting each piece's loss"
        " with that sum, and not only with the piece's own perturbation, restores the influence of all earlier "
        "pieces: an update after every piece, and no truncation bias. No derivatives and no stored history are "
        "needed."
    ),
    equation=(
        "ε_τ ~ N(0, σ²I) for each truncation τ,   ξ_t = Σ_{τ≤t} ε_τ\n"
        "ĝ_t = 1/(2σ²N) Σ_i ξ_t⁽ⁱ⁾ (L_t(θ + ε⁽ⁱ⁾) − L_t(θ − ε⁽ⁱ⁾))\n"
        "E Σ_t ĝ_t = ∇_θ Σ_t L_t   (θ frozen; exact for losses quadratic in θ)"
    ),
    example=(
        "import equinox, jax, optax\n"
        "from laureate.gradients import PersistentES, train\n"
        "from laureate.problems.unrolls import ToySchedule  # or your own object with init and step\n"
        "\n"
        "unroll, key = ToySchedule(), jax.random.key(0)\n"
        "pes = PersistentES(unroll, num_pairs=50, truncation=10, horizon=100, sigma=0.3)\n"
        "theta, history = train(key, pes, optax.adam(1e-2), unroll.theta0(key), num_updates=200)\n"
        "step = equinox.filter_jit(pes.step)  # for a loop of your own\n"
        "grad, state, info = step(key, theta, history.last.estimator)\n"
    ),
    meaning=(
        "PES follows the whole unroll where truncated ES and truncated backpropagation stop at short-horizon optima: "
        "in influence balancing, on the toy schedule, for an L2 coefficient and a control task, and on the toy "
        "slightly sooner than full ES; but for learned optimisers and learning-rate schedules of small networks it "
        "could not be told from truncated ES, and rates a layer were lower in loss, in the mean, by random search."
    ),
    experiments=(
        UNBIASED,
        VARIANCE,
        INFLUENCE_BALANCING,
        TOY_SCHEDULE,
        L2_COEFFICIENT,
        CHARACTER_LSTM,
        LEARNED_OPTIMISER,
        PER_LAYER,
        SCHEDULE_ACCURACY,
        CONTROL,
    ),
)
