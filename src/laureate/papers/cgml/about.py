"""Regression with many right answers, by learning how to find the latent of one."""

from laureate.lab.claim import Paper
from laureate.papers.cgml.experiments import MODES, RIVALS
from laureate.papers.cgml.experiments_beyond import CLASSES, COMPLETION, CONTINUUM

__all__ = ["PAPER"]

PAPER = Paper(
    id="cgml",
    area="generative",
    problem=(
        "One input of mine has several right answers, or a continuum of them, and my network returns their average. I "
        "want to keep a plain regression cost and draw several sharp, different answers for a new input."
    ),
    idea=(
        "Give the network a latent beside its input. In training, descend on the cost in the latent until it explains "
        "the answer at hand, and only then teach the decoder, so that each answer has a latent of its own. A second "
        "network watches every step of that descent and learns to take it without the answer; the length of a step is "
        "learned apart, for between two answers the average step is nothing. To answer, draw a latent, let the flow "
        "move it, decode: other draws give other answers."
    ),
    equation=(
        "z_{t+1} = Π(z_t − β ∂E/∂z),   E = d(G(H(x), z), y)\n"
        "Z(h, z_t) → z_{t+1},   ρ(h, z_t) → ‖z_{t+1} − z_t‖\n"
        "z ← Π(z + ρ (Z(h, z) − z) / ‖Z(h, z) − z‖),   y = G(H(x), z)"
    ),
    example=(
        "import jax, jax.numpy as jnp\n"
        "from laureate.generative import make_model\n"
        "\n"
        "x = jax.random.uniform(jax.random.key(0), (500, 1))  # yours: any arrays with rows first\n"
        "y = jnp.where(jnp.arange(500)[:, None] % 2, x, -x)  # two right answers for every x\n"
        'model = make_model(jax.random.key(1), "latent-flow", x, y, learning_rate=1e-2, num_inner=10)\n'
        "fitted = model.fit(jax.random.key(2), x, y, num_steps=300)\n"
        "answers = fitted.sample(jax.random.key(3), x[:5], num_samples=16)  # [16, 5, 1]\n"
        "found = fitted.infer(jax.random.key(4), x, y)  # the latents of known pairs\n"
    ),
    meaning=(
        "For a few separate answers it mostly works: of two usually both are drawn, 82 % of draws right where raw "
        "latents give 38 %, yet answers of the nearest training inputs are all right. At equal updates it beats a "
        "cGAN; with equal computing that is undecided, and a CVAE and a diffusion come nearer, on digits even the "
        "nearest training images do. An answer of 10 % of the data is hardly drawn, and of a circle of answers a "
        "tenth is kept: for a continuum take another model."
    ),
    experiments=(MODES, RIVALS, CONTINUUM, COMPLETION, CLASSES),
)
