"""A discriminator that may learn only so much about an example."""

from laureate.lab.claim import Paper
from laureate.papers.vdb.experiments import GAP, IMAGES, SUPPORTS
from laureate.papers.vdb.experiments_imitation import IMITATION, TRANSFER

__all__ = ["PAPER"]

PAPER = Paper(
    id="vdb",
    area="generative",
    problem=(
        "My discriminator wins too early: it tells real from made at once, and the generator, or the policy that "
        "imitates, gets no gradient or reward that says where to go."
    ),
    idea=(
        "Let the discriminator see an example only as a noisy code, and charge it for every nat that the code says. "
        "The price is no knob: dual ascent moves it until the code says as much as a budget of about half a nat "
        "allows. So the discriminator stays right on the whole, but never sure, and there is a slope to follow "
        "between laws that do not meet. The same code serves GANs, imitation, and rewards learned from demonstrations."
    ),
    equation=(
        "z ~ N(μ(x), σ²(x)),   D = σ(wᵀz + b)\n"
        "min_{D,E} max_{β≥0} E[−log D(z)] + E[−log(1 − D(z̃))] + β (E KL(E(z | x) ‖ N(0, I)) − I_c)\n"
        "β ← max(0, β + α_β (KL − I_c)),   r(s) = −log(1 − D(μ(s)))"
    ),
    example=(
        "import jax\n"
        "from laureate.generative import Adversarial, VariationalBottleneck, make_encoder, perceptrons\n"
        "\n"
        "x = jax.random.normal(jax.random.key(0), (500, 3))  # yours: an array of images or rows\n"
        "generator, head = perceptrons(jax.random.key(1), (4, 32, 3), (8, 1))  # any functions of one example\n"
        "encoder = make_encoder(jax.random.key(2), (3, 32), 8)\n"
        "bottleneck = VariationalBottleneck(encoder, information=0.5, beta_rate=1e-2)\n"
        'gan = Adversarial(generator, head, loss="non-saturating", regulariser=bottleneck, num_latents=4)\n'
        "fitted = gan.fit(jax.random.key(3), x, num_steps=300)\n"
        "print(fitted.sample(jax.random.key(4), 5), fitted.history.regularisers[0].beta[-1])\n"
    ),
    meaning=(
        "The mechanism does what it says: dual ascent keeps the code at its budget from 0.1 to 10 nats, and the "
        "minimax loss has a gradient left where a plain discriminator's is seven powers of ten shorter. Better GANs "
        "or imitators were not shown at our sizes: on the ring differences are within the spread of ten seeds; on "
        "digits VGAN and a GAN did not surely differ, beside a gradient penalty the bottleneck made images worse; in "
        "a maze GAIL and a tuned fixed β imitated better, and AIRL's rewards were not beaten."
    ),
    experiments=(GAP, SUPPORTS, IMAGES, IMITATION, TRANSFER),
)
