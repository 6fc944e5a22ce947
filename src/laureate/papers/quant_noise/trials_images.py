"""Quant-Noise on real images: how good a convolutional network is at so many bytes on disk."""

import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate import compression
from laureate.compression import IterativeQuantization, ProductQuantizer, Rules, ScalarQuantizer, match, quant_noise
from laureate.lab.claim import Settings
from laureate.layers import Convolution, max_pool
from laureate.loops import repeat
from laureate.papers.quant_noise.trials import Part, dealt, majority

__all__ = ["SmallNetwork", "bytes_and_accuracy", "spec_of"]


class SmallNetwork(eqx.Module):
    """Two convolutions of 3 x 3, each with pooling by two, and two dense layers; images are rows of pixels."""

    convolutions: list[Convolution]
    biases: list[Array]
    dense: eqx.nn.Linear
    head: eqx.nn.Linear
    side: int = eqx.field(static=True)

    def __init__(self, key: Array, side: int, outputs: int, channels: int, width: int):
        keys = jax.random.split(key, 4)
        draw = lambda key, inputs, outputs: Convolution(jax.random.normal(key, (3, 3, inputs, outputs)))  # noqa: E731
        self.convolutions = [draw(keys[0], 1, channels), draw(keys[1], channels, 2 * channels)]
        self.biases = [jnp.zeros(channels), jnp.zeros(2 * channels)]
        self.dense = eqx.nn.Linear((side // 4) ** 2 * 2 * channels, width, key=keys[2])
        self.head = eqx.nn.Linear(width, outputs, key=keys[3])
        self.side = side

    def __call__(self, rows: Array) -> Array:
        """The logits of a batch."""
        x = rows.reshape(len(rows), self.side, self.side, 1)
        for convolution, bias in zip(self.convolutions, self.biases, strict=True):
            x = max_pool(jax.nn.relu(convolution(x) + bias))
        x = jax.nn.relu(jax.vmap(self.dense)(x.reshape(len(rows), -1)))
        return jax.vmap(self.head)(x)


def spec_of(kind: str, scale: Settings) -> Rules:
    """How the weights are written; the first convolution and the last layer are few, and always in 8 bits."""
    few = ScalarQuantizer(8)
    if kind == "int4":
        return match({r"(convolutions\.1|dense).*": ScalarQuantizer(4), ".*": few})
    settings: dict[str, Any] = {"num_steps": scale.kmeans_steps, "codebook_bits": 8}
    kernels = ProductQuantizer(9, scale.kernel_centroids, outputs="last", **settings)
    dense = ProductQuantizer(8, scale.centroids, **settings)
    return match({r"convolutions\.1.*": kernels, r"dense.*": dense, ".*": few})


def bytes_and_accuracy(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Accuracy in % and the file's bytes, of the network at the rate of learning that validation images choose."""
    init_key, train_key, *parts = dealt(key, problem, scale)
    if arm.kind == "majority":
        found = majority(problem)
        return {"accuracy": found["accuracy"], "rate": found["rate"], "kilobytes": jnp.zeros(()), "ratio": jnp.ones(())}
    train_key, tune_key = jax.random.split(train_key)
    side = round(problem.inputs.shape[1] ** 0.5)
    network = SmallNetwork(init_key, side, problem.num_classes, scale.channels, scale.width)
    best: tuple[float, float, Any] = (-1.0, 0.0, None)
    for rate in scale.rates:
        model = _trained(train_key, network, parts[0], jnp.asarray(rate), jnp.asarray(arm.rate), arm.kind, scale)
        small = _compressed(tune_key, model, parts[0], jnp.asarray(rate), jnp.asarray(arm.rate), arm.kind, scale)
        value = float(_accuracy(compression.dequantize(small), parts[1]))
        if value > best[0]:
            best = value, rate, small
    _, rate, small = best
    with tempfile.TemporaryDirectory() as folder:
        on_disk = compression.save(Path(folder, "model"), small)
    original = sum(array.nbytes for array in jax.tree.leaves(eqx.filter(network, eqx.is_array)))
    return {
        "accuracy": _accuracy(compression.dequantize(small), parts[2]),
        "rate": jnp.asarray(rate),
        "kilobytes": jnp.asarray(on_disk / 1e3),
        "ratio": jnp.asarray(original / on_disk),
    }


@eqx.filter_jit
def _trained(
    key: Array, network: SmallNetwork, part: Part, learning: Array, rate: Array, kind: str, scale: Settings
) -> SmallNetwork:
    """An epoch is a loop over batches; codebooks are fitted at its start."""
    optimiser = optax.adam(learning)
    spec = None if kind == "float" else spec_of(kind, scale)
    updates = len(part.labels) // scale.batch

    def epoch(carry, number):
        epoch_key = jax.random.fold_in(key, number)
        fit_key, order_key, noise_key = jax.random.split(epoch_key, 3)
        state = None if spec is None else compression.refresh(carry[0], spec, fit_key)
        order = jax.random.permutation(order_key, len(part.labels))

        def step(carry, index):
            model, optimiser_state = carry
            rows = jax.lax.dynamic_slice_in_dim(order, index * scale.batch, scale.batch)

            def loss(model):
                if spec is not None:
                    model = quant_noise(model, spec, rate, jax.random.fold_in(noise_key, index), state=state)
                return _loss(model, Part(part.inputs[rows], part.labels[rows]))

            changes, optimiser_state = optimiser.update(eqx.filter_grad(loss)(model), optimiser_state)
            return (eqx.apply_updates(model, changes), optimiser_state), None

        return repeat(step, carry, 0, updates)[0], None

    start = network, optimiser.init(eqx.filter(network, eqx.is_inexact_array))
    return repeat(epoch, start, 0, scale.epochs)[0][0]


def _compressed(key: Array, model: Any, part: Part, learning: Array, rate: Array, kind: str, scale: Settings) -> Any:
    """As it is shipped: as it is, rounded, or stage by stage; all after as many more updates."""
    if kind != "product":
        model = _tuned(key, model, part, learning, rate, kind, scale)
        return model if kind == "float" else compression.quantize(model, spec_of(kind, scale))[0]
    for stage in range(2):
        model = _staged(jax.random.fold_in(key, stage), model, part, learning, stage, scale)
    return compression.quantize(model, match({r"(convolutions\.0|head).*": ScalarQuantizer(8)}))[0]


@eqx.filter_jit
def _tuned(key: Array, model: Any, part: Part, learning: Array, rate: Array, kind: str, scale: Settings) -> Any:
    """The updates that the stages of codebooks have together, at their rate of learning, with the arm's own noise."""
    spec = None if kind == "float" else spec_of(kind, scale)
    optimiser = optax.adam(scale.fine_tuning * learning)

    def step(carry, number):
        model, optimiser_state = carry
        batch_key, noise_key = jax.random.split(jax.random.fold_in(key, number))
        rows = jax.random.randint(batch_key, (scale.batch,), 0, len(part.labels))

        def loss(model):
            seen = model if spec is None else quant_noise(model, spec, rate, noise_key)
            return _loss(seen, Part(part.inputs[rows], part.labels[rows]))

        changes, optimiser_state = optimiser.update(eqx.filter_grad(loss)(model), optimiser_state)
        return (eqx.apply_updates(model, changes), optimiser_state), None

    start = model, optimiser.init(eqx.filter(model, eqx.is_inexact_array))
    return repeat(step, start, 0, 2 * scale.tuned)[0][0]


@eqx.filter_jit
def _staged(key: Array, model: Any, part: Part, learning: Array, stage: int, scale: Settings) -> Any:
    """The dense layer, then the kernels, as the paper goes from large to small; centroids and the rest learn on."""
    kernels, dense, _ = spec_of("product", scale).rules
    stages = tuple(match(dict([rule])) for rule in (dense, kernels))
    method = IterativeQuantization(stages, optax.adam(scale.fine_tuning * learning))
    fit_key, tune_key = jax.random.split(key)
    state = method.advance(fit_key, method.init(model)._replace(stage=stage))

    def step(state, number):
        rows = jax.random.randint(jax.random.fold_in(tune_key, number), (scale.batch,), 0, len(part.labels))
        return method.step(state, lambda model: _loss(model, Part(part.inputs[rows], part.labels[rows])))[0], None

    return repeat(step, state, 0, scale.tuned)[0].model


def _loss(model: Any, part: Part) -> Array:
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(model(part.inputs), part.labels))


@eqx.filter_jit
def _accuracy(model: Any, part: Part) -> Array:
    return 100 * jnp.mean(jnp.argmax(model(part.inputs), axis=1) == part.labels)
