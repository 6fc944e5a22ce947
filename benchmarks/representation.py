"""A step of self-supervised training of a small residual network, and what a predictor costs as it grows wider.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false PJRT_NPROC=1 \
        python -m benchmarks representation [--json] [--quick]

1. One DirectPred step: two views of 256 images of 28 x 28, online network forward and backward, slow target forward,
   SGD with momentum, the running correlation and its eigen-decomposition. Ours beside the same step in plain PyTorch
   (channels last, written for this benchmark) and beside Equinox's own layers. Losses are compared first.
2. What a predictor adds to a step of 256 pairs, for outputs of 128 to 2,048 entries: set by eigen-decomposition, by
   Newton and Schulz's iteration, by the power iteration alone (DirectCopy), or trained.
"""

import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.timing import compare, print_rows, seconds_of
from laureate.layers import ResNet
from laureate.problems.views import ConvolutionalNetwork, project
from laureate.representation import DirectCopy, DirectPred, Linear, Siamese

CHANNELS, HIDDEN, DIM = (16, 32, 64), 512, 128
RATE, HEAVY_BALL, EMA, RHO, EPS = 0.03, 0.9, 0.99, 0.3, 0.1


class StockNetwork(eqx.Module):
    """The same network of Equinox's layers, of one image [1, 28, 28] at a time, as they are meant to be used."""

    stems: list[eqx.nn.Conv2d]
    residuals: list[tuple[eqx.nn.Conv2d, eqx.nn.Conv2d]]
    norms: list[tuple[eqx.nn.GroupNorm, ...]]
    projector: tuple[jax.Array, jax.Array]

    def __init__(self, model: ConvolutionalNetwork):
        key = jax.random.key(0)

        def layer(ours):
            inputs, outputs = ours.kernel.shape[2:]
            stock = eqx.nn.Conv2d(inputs, outputs, 3, padding=1, use_bias=False, key=key)
            return eqx.tree_at(lambda c: c.weight, stock, ours.kernel.transpose(3, 2, 0, 1))

        self.stems = [layer(stem) for stem in model.encoder.stems]
        self.residuals = [(layer(b.layers[0]), layer(b.layers[1])) for (b,) in model.encoder.residuals]
        self.norms = [tuple(eqx.nn.GroupNorm(4, channels) for _ in range(3)) for channels in CHANNELS]
        self.projector = model.projector

    def features(self, image):
        x = image
        for i, (stem, (first, second), norms) in enumerate(zip(self.stems, self.residuals, self.norms, strict=True)):
            x = eqx.nn.MaxPool2d(2, 2)(x) if i else x
            x = jax.nn.relu(norms[0](stem(x)))
            x = jax.nn.relu(x + norms[2](second(jax.nn.relu(norms[1](first(x))))))
        return x.mean((1, 2))


def torch_step(torch, model, first, second):
    """The step in plain PyTorch from the same weights, as a function to be called again and again."""
    functional = torch.nn.functional

    def tensor(array):
        return torch.from_numpy(np.array(array, np.float32))

    def kernel(layer):
        return tensor(layer.kernel.transpose(3, 2, 0, 1)).to(memory_format=torch.channels_last)

    def make():
        encoder = model.encoder
        kernels = [
            [kernel(stem), *(kernel(layer) for layer in block.layers)]
            for stem, (block,) in zip(encoder.stems, encoder.residuals, strict=True)
        ]
        norms = [[(torch.ones(c), torch.zeros(c)) for _ in range(3)] for c in CHANNELS]
        return kernels, norms, [tensor(matrix) for matrix in model.projector]

    def flat(network):
        kernels, norms, projector = network
        return [k for stage in kernels for k in stage] + [p for s in norms for n in s for p in n] + projector

    def forward(network, x):
        kernels, norms, (one, two) = network
        for i, (stage, own) in enumerate(zip(kernels, norms, strict=True)):
            x = functional.max_pool2d(x, 2) if i else x
            norm = lambda y, n, own=own: functional.group_norm(y, 4, *own[n])  # noqa: E731
            x = functional.relu(norm(functional.conv2d(x, stage[0], padding=1), 0))
            hidden = functional.relu(norm(functional.conv2d(x, stage[1], padding=1), 1))
            x = functional.relu(x + norm(functional.conv2d(hidden, stage[2], padding=1), 2))
        hidden = functional.batch_norm(x.mean((2, 3)) @ one, None, None, training=True)
        return functional.relu(hidden) @ two

    online, target = make(), make()
    params, slow = flat(online), flat(target)
    for p in params:
        p.requires_grad_()
    optimiser = torch.optim.SGD(params, RATE, momentum=HEAVY_BALL)
    views = [tensor(v)[:, None].to(memory_format=torch.channels_last) for v in (first, second)]
    memory = {"correlation": None, "matrix": torch.eye(DIM)}

    def distance(prediction, goal):
        return (2 - 2 * functional.cosine_similarity(prediction, goal, dim=1)).mean()

    def step():
        z1, z2 = (forward(online, v) for v in views)
        with torch.no_grad():
            t1, t2 = (forward(target, v) for v in views)
        w = memory["matrix"]
        loss = distance(z1 @ w.T, t2) + distance(z2 @ w.T, t1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            z = torch.cat([z1, z2])
            new, old = z.T @ z / len(z), memory["correlation"]
            memory["correlation"] = new if old is None else RHO * old + (1 - RHO) * new
            values, vectors = torch.linalg.eigh(memory["correlation"])
            values = values.clamp(min=0)
            memory["matrix"] = (vectors * ((values / values[-1]).sqrt() + EPS)) @ vectors.T
            torch._foreach_mul_(slow, EMA)
            torch._foreach_add_(slow, [p.detach() for p in params], alpha=1 - EMA)
        return loss.item()

    return step


def compiled(siamese, state, first, second):
    """The step as a function without arguments, its loss, and the seconds it took to compile."""
    arrays, rest = eqx.partition(state, eqx.is_array)

    def step(arrays, first, second):
        new, info = siamese.step(eqx.combine(arrays, rest), first, second)
        return eqx.filter(new, eqx.is_array), info.loss

    began = time.perf_counter()
    program = jax.jit(step).lower(arrays, first, second).compile()
    seconds = time.perf_counter() - began
    kept = [arrays]

    def run():
        kept[0], loss = program(kept[0], first, second)
        return jax.block_until_ready((kept[0], loss))[1]

    return run, float(program(arrays, first, second)[1]), seconds


def steps(quick):
    batch, repeats = (32, 3) if quick else (256, 15)
    key = jax.random.key(0)
    draws = jax.random.normal(key, (CHANNELS[-1] + DIM, HIDDEN)) * 0.1
    model = ConvolutionalNetwork(ResNet(key, channels=CHANNELS, num_blocks=1), (draws[:64], draws[64:].T))
    first, second = jax.random.normal(jax.random.key(1), (2, batch, 28, 28))
    optimiser = optax.sgd(RATE, momentum=HEAVY_BALL)
    settings: dict[str, Any] = {"momentum": EMA}
    ours = Siamese(DirectPred(DIM, rho=RHO, epsilon=EPS), optimiser, apply=lambda m, x: m(x), **settings)
    stock = Siamese(
        DirectPred(DIM, rho=RHO, epsilon=EPS),
        optimiser,
        apply=lambda m, x: project(jax.vmap(m.features)(x[:, None]), *m.projector),
        **settings,
    )
    run, loss, compile_seconds = compiled(ours, ours.init(key, model), first, second)
    equinox_run, equinox_loss, equinox_compile = compiled(stock, stock.init(key, StockNetwork(model)), first, second)
    peers: dict[str, tuple[Any, float, float | None]] = {
        "Equinox's layers": (equinox_run, equinox_loss, equinox_compile)
    }
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: pip install torch for the comparison.", file=sys.stderr)
    else:
        torch.set_num_threads(1)
        peers["PyTorch"] = (torch_step(torch, model, first, second), torch_step(torch, model, first, second)(), None)
    rows = []
    for peer, (peer_run, peer_loss, peer_compile) in peers.items():
        if abs(peer_loss / loss - 1) > 1e-3:
            sys.exit(f"{peer} computes another loss: {peer_loss} instead of {loss}.")
        rows.append(
            {
                "id": f"resnet-step-{peer.split()[0].split(chr(39))[0].lower()}",
                "work": f"DirectPred step, residual network at 28 x 28, batch {batch}, one thread",
                "peer": peer,
                **compare(run, peer_run, repeats),
                "compile_s": compile_seconds,
                "peer_compile_s": peer_compile,
            }
        )
    return rows


def seconds_of_predictor(predictor, z1, z2, repeats):
    """Forward and backward through the predictor, its SGD step if it is trained, and its update."""
    start = predictor.init(jax.random.key(1))
    spec = predictor.trained(start)

    @jax.jit
    def work(state, z1, z2):
        trained, fixed = eqx.partition(state, spec)

        def call(trained, a, b):
            own = eqx.combine(trained, fixed)
            return predictor(own, a), predictor(own, b)

        outputs, back = jax.vjp(call, trained, z1, z2)
        slope, for_z1, for_z2 = back((z2, z1))
        moved = jax.tree.map(lambda p, g: p - 0.01 * g, trained, slope)
        return outputs, for_z1, for_z2, predictor.update(eqx.combine(moved, fixed), z1, z2)[0]

    return float(np.median(seconds_of(lambda: work(start, z1, z2), repeats)))


def predictors(quick):
    rows, batch = [], 256
    for width in (128, 256) if quick else (128, 256, 512, 1024, 2048):
        decaying = jnp.exp(-jnp.linspace(0.0, 3.0, width))
        z1, z2 = jax.random.normal(jax.random.key(0), (2, batch, width)) * decaying
        kinds = {
            "trained": Linear(width),
            "eigh": DirectPred(width),
            "newton-schulz": DirectPred(width, root="newton-schulz"),
            "power-iteration": DirectCopy(width),
        }
        repeats = {name: 2 if width >= 1024 and name != "trained" else 7 for name in kinds}
        found = {name: seconds_of_predictor(kind, z1, z2, repeats[name]) for name, kind in kinds.items()}
        for name in kinds:
            rows.append(
                {
                    "id": f"predictor-{name}-{width}",
                    "work": f"predictor of width {width} in a step of {batch} pairs: {name}",
                    "ours_s": found[name],
                    "peer": "trained linear predictor",
                    "peer_s": found["trained"],
                    "ratio": found["trained"] / found[name],
                }
            )
    return rows


def main() -> None:
    quick = "--quick" in sys.argv
    print_rows(steps(quick) + predictors(quick))


if __name__ == "__main__":
    main()
