"""Training with quantisation noise."""

from laureate.lab.claim import Paper
from laureate.papers.quant_noise.experiments import BITS, PRODUCT, TWO_BITS
from laureate.papers.quant_noise.experiments_limits import DEPTH, OVERHEAD
from laureate.papers.quant_noise.experiments_models import BYTES, TEXT

__all__ = ["PAPER"]

PAPER = Paper(
    id="quant-noise",
    area="compression",
    problem=(
        "My model must become much smaller, a few bits a weight or one byte for eight weights, but rounding it after "
        "training ruins it, and training with everything quantised does not learn well."
    ),
    idea=(
        "At each step of training a random part of the weights is quantised, and the others are left exact. The "
        "gradient passes straight through the quantised ones, where it is biased; the others get their exact ones. "
        "So the network learns to live with quantisation while it still learns. In the end all weights are quantised: "
        "rounded, or written as numbers of centroids in a codebook."
    ),
    equation=(
        "ψ(W)_b = φ(W)_b  if b ∈ J,  W_b  otherwise,   P(b ∈ J) = p,   ∂ψ/∂W := 1\n"
        "φ(w) = (clip(round(w/s) + z, 0, 2ᴺ − 1) − z) s,   s = (max − min)/(2ᴺ − 1)\n"
        "φ(W_b) = c_k,   k = argmin_k |W_b − c_k|²"
    ),
    example=(
        "import equinox as eqx, jax, jax.numpy as jnp, optax\n"
        "from laureate.compression import ScalarQuantizer, dequantize, quant_noise, quantize\n"
        "\n"
        "model = eqx.nn.MLP(4, 1, 32, 2, key=jax.random.key(0))  # yours\n"
        "x = jax.random.normal(jax.random.key(1), (64, 4))\n"
        "spec, tx = ScalarQuantizer(4), optax.adam(1e-2)\n"
        "state = tx.init(eqx.filter(model, eqx.is_inexact_array))\n"
        "\n"
        "@eqx.filter_jit\n"
        "def step(key, model, state):\n"
        "    def loss(model):\n"
        "        noisy = quant_noise(model, spec, 0.5, key)  # the one new line\n"
        "        return jnp.mean((jax.vmap(noisy)(x) - jnp.sin(x[:, :1])) ** 2)\n"
        "\n"
        "    changes, state = tx.update(eqx.filter_grad(loss)(model), state)\n"
        "    return eqx.apply_updates(model, changes), state\n"
        "\n"
        "for key in jax.random.split(jax.random.key(2), 20):\n"
        "    model, state = step(key, model, state)\n"
        "packed, report = quantize(model, spec)  # print(report); save('model', packed)\n"
        "small = dequantize(packed)\n"
    ),
    meaning=(
        "Where quantisation hurts, training with noise helps: by four and a half points at two bits a weight, most of "
        "it in the last tenth of training; with codebooks noise on a part seemed better than on all (nine points, p "
        "0.08). But for rounding to two bits noise on all weights (quantisation-aware training) was better than on "
        "half, three bits cost these small networks nothing that noise would win back, codebooks that are fine-tuned "
        "in stages showed no gain from it, and on a CPU it costs more than 5 % of the time."
    ),
    experiments=(TWO_BITS, PRODUCT, BYTES, TEXT, BITS, DEPTH, OVERHEAD),
)
