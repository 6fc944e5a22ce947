"""A step of training with Quant-Noise beside the plain one and beside PyTorch; k-means beside scikit-learn's."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.compression import ProductQuantizer, Quantizer, ScalarQuantizer, kmeans, quant_noise, refresh
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS"]

INPUTS, WIDTH, CLASSES, BATCH, LARGE, STEPS, RATE = 784, 512, 10, 128, 512, 20, 0.1
EPOCH = 469  # steps of 128 among 60,000 images
INT8, PQ = ScalarQuantizer(8), ProductQuantizer(8, 256, 10)


def _data(batch: int = BATCH) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(batch, INPUTS)).astype(np.float32)
    return inputs, generator.integers(CLASSES, size=batch).astype(np.int32)


def our_steps(spec: Quantizer | None, proxy: Any = None, *, batch: int = BATCH, steps: int = STEPS) -> Side:
    """Steps of Adam of a perceptron; codebooks are fitted once for all of them."""
    x, y = map(jnp.asarray, _data(batch))
    model = eqx.nn.MLP(INPUTS, CLASSES, WIDTH, 2, key=jax.random.key(0))
    arrays, rest = eqx.partition(model, eqx.is_array)
    optimiser = optax.adam(1e-3)

    def loss(arrays, key, state):
        model = eqx.combine(arrays, rest)
        if spec is not None:
            model = quant_noise(model, spec, RATE, key, state=state, proxy=proxy)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y))

    @jax.jit
    def epoch(key, arrays, optimiser_state):
        fit_key, step_key = jax.random.split(key)
        state = None
        if spec is not None and spec.keeps_codes and proxy is None:
            state = refresh(eqx.combine(arrays, rest), spec, fit_key)

        def step(carry, key):
            arrays, optimiser_state = carry
            changes, optimiser_state = optimiser.update(jax.grad(loss)(arrays, key, state), optimiser_state)
            return (optax.apply_updates(arrays, changes), optimiser_state), None

        return jax.lax.scan(step, (arrays, optimiser_state), jax.random.split(step_key, steps))[0]

    start = optimiser.init(arrays)
    return Side(lambda: epoch(jax.random.key(1), arrays, start), times=1 / steps)


def torch_steps(kind: str) -> Side:
    """The module that fairseq-like code has: rounding or dropped blocks before each product, straight through."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = (torch.from_numpy(part) for part in _data())

    class Noisy(torch.nn.Linear):
        def forward(self, rows):
            weight = self.weight
            if kind == "int8":
                low, high = weight.detach().min().clamp(max=0), weight.detach().max().clamp(min=0)
                scale = (high - low) / 255
                zero = torch.round(-low / scale)
                seen = (torch.clamp(torch.round(weight / scale) + zero, 0, 255) - zero) * scale
                seen = torch.where(torch.rand_like(weight) < RATE, seen, weight)
            else:
                blocks = torch.rand(weight.shape[0], weight.shape[1] // 8) < RATE
                seen = weight.masked_fill(blocks.repeat_interleave(8, 1), 0)
            return torch.nn.functional.linear(rows, weight + (seen - weight).detach(), self.bias)

    sizes = [(INPUTS, WIDTH), (WIDTH, WIDTH), (WIDTH, CLASSES)]
    layers = [Noisy(*size) for size in sizes]
    model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)

    def steps():
        for _ in range(STEPS):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y.long()).backward()
            optimiser.step()
        return model[0].weight.detach().numpy()

    return Side(steps, times=1 / STEPS, note="eager PyTorch")


POINTS, BLOCK, CENTROIDS, LLOYD = 1_000_000, 8, 256, 5
OURS_FOR_BATCHES = 6  # as many of our steps reach the objective of mini-batches; both are told beside the seconds


def _points() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(POINTS, BLOCK)).astype(np.float32)


def _note(objective: Any) -> str:
    return f"mean squared distance {objective / POINTS:.4f}"


def our_kmeans(num_steps: int, begun: bool = True) -> Side:
    """Lloyd's iteration on all points, from the first ones; or from k-means++ among a sample."""
    points = jnp.asarray(_points())
    start = points[:CENTROIDS] if begun else None
    run = jax.jit(lambda key, points: kmeans(key, points, CENTROIDS, num_steps, start=start))
    objective = float(run(jax.random.key(0), points).objective[-1])
    return Side(lambda: run(jax.random.key(0), points).centroids, note=_note(objective))


def their_kmeans() -> Side:
    """``KMeans`` with as many iterations from the same centroids: its own k-means++ alone would take longer."""
    from sklearn.cluster import KMeans

    points = _points()
    settings: dict[str, Any] = {"n_init": 1, "max_iter": LLOYD, "tol": 0, "init": points[:CENTROIDS]}
    make = lambda: KMeans(CENTROIDS, **settings).fit(points)  # noqa: E731
    return Side(lambda: make().cluster_centers_, note=_note(make().inertia_))


def their_mini_batches() -> Side:
    """``MiniBatchKMeans``, one pass; with its usual 1,024 points a batch it takes thrice as long for a thousandth."""
    from sklearn.cluster import MiniBatchKMeans

    points = _points()
    settings: dict[str, Any] = {"n_init": 1, "max_iter": 1, "batch_size": 4096, "random_state": 0}
    make = lambda: MiniBatchKMeans(CENTROIDS, **settings).fit(points)  # noqa: E731
    return Side(lambda: make().cluster_centers_, note=_note(make().inertia_))


STEP = f"a step of Adam, perceptron {INPUTS}-{WIDTH}-{WIDTH}-{CLASSES}, batch {BATCH}"
MANY = STEP.replace(f"batch {BATCH}", f"batch {LARGE}")  # noise costs by the weight, and a step by weight and example
PLAIN = "the same step without noise"
TORCH = "PyTorch, a module as fairseq's"
COMPARISONS = (
    Comparison(f"{STEP}, noise of 8 bits", PLAIN, "", lambda: our_steps(INT8), lambda: our_steps(None)),
    Comparison(
        f"{MANY}, noise of 8 bits",
        PLAIN,
        "",
        lambda: our_steps(INT8, batch=LARGE),
        lambda: our_steps(None, batch=LARGE),
    ),
    Comparison(
        f"{STEP}, codebooks fitted every {EPOCH} steps, an epoch",
        PLAIN,
        "",
        lambda: our_steps(PQ, steps=EPOCH),
        lambda: our_steps(None, steps=EPOCH),
    ),
    Comparison(f"{STEP}, blocks dropped", PLAIN, "", lambda: our_steps(PQ, "zero"), lambda: our_steps(None)),
    Comparison(f"{STEP}, noise of 8 bits", TORCH, "torch", lambda: our_steps(INT8), lambda: torch_steps("int8")),
    Comparison(f"{STEP}, blocks dropped", TORCH, "torch", lambda: our_steps(PQ, "zero"), lambda: torch_steps("zero")),
    Comparison(
        f"k-means of {POINTS:,} blocks of {BLOCK}, {CENTROIDS} centroids, {LLOYD} iterations from the same start",
        "scikit-learn's KMeans",
        "scikit-learn",
        lambda: our_kmeans(LLOYD),
        their_kmeans,
    ),
    Comparison(
        f"k-means of {POINTS:,} blocks of {BLOCK}, {CENTROIDS} centroids, to the objective of mini-batches",
        "scikit-learn's MiniBatchKMeans",
        "scikit-learn",
        lambda: our_kmeans(OURS_FOR_BATCHES, begun=False),
        their_mini_batches,
    ),
)
