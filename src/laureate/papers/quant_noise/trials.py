"""Quant-Noise on small networks: trained with noise, quantised as a whole, and judged on rows not seen."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate.compression import (
    IterativeQuantization,
    ProductQuantizer,
    Quantizer,
    ScalarQuantizer,
    dequantize,
    expected_bytes,
    freeze,
    match,
    quant_noise,
    refresh,
)
from laureate.lab.claim import Settings
from laureate.loops import repeat

__all__ = ["Part", "depth", "loss_of", "product", "scalar"]


class Part(NamedTuple):
    """Rows and their labels."""

    inputs: Array
    labels: Array


def scalar(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """A network trained with noise of rate ``arm.rate`` from the share ``arm.begin`` of training on, then rounded."""
    init_key, train_key, *parts = dealt(key, problem, scale)
    if arm.kind == "majority":
        return majority(problem)
    spec = ScalarQuantizer(arm.bits)
    network = perceptron(init_key, problem, scale)

    def trained(rate: Array) -> Any:
        def noise(model, step, key):
            late = step >= jnp.round(arm.begin * scale.updates)
            return quant_noise(model, spec, jnp.where(late, arm.rate, 0.0), key)

        return train(train_key, network, parts[0], optax.adam(rate), noise, scale)

    found = chosen(trained, lambda model, rate: dequantize(freeze(model, spec)), parts, scale)
    return found | {"ratio": size_ratio(network, spec)}


def product(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """The same with codebooks: refitted every epoch, and at the end all at once or in stages with fine-tuning."""
    init_key, train_key, *parts = dealt(key, problem, scale)
    if arm.kind == "majority":
        return majority(problem)
    init_key, fit_key, epoch_key, tune_key = jax.random.split(init_key, 4)
    spec = ProductQuantizer(scale.block_length, scale.centroids, scale.kmeans_steps)
    network = perceptron(init_key, problem, scale)
    more: dict[str, Any] = {"proxy": None if arm.kind == "exact" else "zero", "rescale": arm.kind == "rescaled"}

    def trained(rate: Array) -> Any:
        optimiser = optax.adam(rate)

        def epoch(carry, number):
            model, _ = carry
            state = refresh(model, spec, jax.random.fold_in(epoch_key, number)) if arm.kind == "exact" else None
            noise = lambda model, step, key: quant_noise(model, spec, arm.rate, key, state=state, **more)  # noqa: E731
            step = update_of(train_key, parts[0], optimiser, noise, scale.batch)
            return repeat(step, carry, number * scale.updates, scale.updates)[0], None

        start = network, optimiser.init(eqx.filter(network, eqx.is_inexact_array))
        return repeat(epoch, start, 0, scale.epochs)[0][0]

    def quantized(model: Any, rate: Array) -> Any:
        if not arm.stages:
            return dequantize(freeze(model, spec, fit_key))
        layers = tuple(match({rf"layers\.{layer}\.weight": spec}) for layer in range(len(network.layers)))
        method = IterativeQuantization(layers, optax.adam(scale.fine_tuning * rate))
        state = method.init(model)
        for stage in range(len(layers)):
            state = method.advance(jax.random.fold_in(fit_key, stage), state)
            state = fine_tuned(jax.random.fold_in(tune_key, stage), method, state, parts[0], scale)
        return dequantize(state.model)

    return chosen(trained, quantized, parts, scale) | {"ratio": size_ratio(network, spec)}


def depth(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """By how much half the noise beats full noise, in points of rounded accuracy, in networks of several depths."""
    init_key, train_key, *parts = dealt(key, problem, scale)
    spec = ScalarQuantizer(arm.bits)
    found = []
    for layers in scale.depths:
        network = DeepNetwork(init_key, problem, scale.width, layers, arm.kind)

        def accuracy(rate: Array, network=network) -> Array:
            noise = lambda model, step, key: NoisyNetwork(model, spec, rate, key)  # noqa: E731
            trained = lambda learning: train(train_key, network, parts[0], optax.adam(learning), noise, scale)  # noqa: E731
            whole = lambda model, learning: NoisyNetwork(model, spec, jnp.asarray(1.0), train_key)  # noqa: E731
            found = chosen(trained, whole, parts, scale)
            return jnp.stack([found["accuracy"], found["rate"]])

        found.append(jax.lax.map(accuracy, jnp.asarray([0.5, 1.0])))
    half, full = jnp.stack(found)[:, :, 0].T
    return {
        "advantage": half - full,
        "half": half,
        "full": full,
        "log2_depth": jnp.asarray([math.log2(layers) for layers in scale.depths]),
        "deepest": half[-1],
        "smallest_rate": jnp.min(jnp.stack(found)[:, :, 1]),
        "largest_rate": jnp.max(jnp.stack(found)[:, :, 1]),
    }


# --- what they share --------------------------------------------------------------------------------------------------


def dealt(key: Array, problem: Any, scale: Settings) -> tuple[Array, Array, Part, Part, Part]:
    """A key for the network, one for training, and the rows to train, to choose and to test; the first two shuffled."""
    split_key, init_key, train_key = jax.random.split(key, 3)
    order = jax.random.permutation(split_key, len(problem.labels))
    rows = Part(problem.inputs[order], problem.labels[order])
    held = scale.validation
    train, validation = Part(rows.inputs[held:], rows.labels[held:]), Part(rows.inputs[:held], rows.labels[:held])
    return init_key, train_key, train, validation, Part(problem.test_inputs, problem.test_labels)


def perceptron(key: Array, problem: Any, scale: Settings) -> eqx.nn.MLP:
    """A network with ``scale.hidden`` hidden layers of ``scale.width``."""
    return eqx.nn.MLP(problem.inputs.shape[1], problem.num_classes, scale.width, scale.hidden, key=key)


def loss_of(model: Any, part: Part) -> Array:
    """The mean cross entropy."""
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(part.inputs), part.labels))


def accuracy_of(model: Any, part: Part) -> Array:
    """In %."""
    return 100 * jnp.mean(jnp.argmax(jax.vmap(model)(part.inputs), axis=1) == part.labels)


def update_of(
    key: Array, part: Part, optimiser: optax.GradientTransformation, noise: Callable, batch: int
) -> Callable[[Any, Array], Any]:
    """A step of training: a batch by the step's number, and the gradient of the loss that the noisy model has on it."""

    def step(carry, number):
        model, optimiser_state = carry
        batch_key, noise_key = jax.random.split(jax.random.fold_in(key, number))
        rows = jax.random.randint(batch_key, (batch,), 0, len(part.labels))
        some = Part(part.inputs[rows], part.labels[rows])
        gradient = eqx.filter_grad(lambda model: loss_of(noise(model, number, noise_key), some))(model)
        changes, optimiser_state = optimiser.update(gradient, optimiser_state)
        return (eqx.apply_updates(model, changes), optimiser_state), None

    return step


def train(
    key: Array, network: Any, part: Part, optimiser: optax.GradientTransformation, noise: Callable, scale: Settings
) -> Any:
    """``scale.updates`` steps."""
    start = network, optimiser.init(eqx.filter(network, eqx.is_inexact_array))
    return repeat(update_of(key, part, optimiser, noise, scale.batch), start, 0, scale.updates)[0][0]


def fine_tuned(key: Array, method: IterativeQuantization, state: Any, part: Part, scale: Settings) -> Any:
    """``scale.tuned`` steps for what is not yet codes."""

    def step(state, number):
        rows = jax.random.randint(jax.random.fold_in(key, number), (scale.batch,), 0, len(part.labels))
        some = Part(part.inputs[rows], part.labels[rows])
        return method.step(state, lambda model: loss_of(model, some))[0], None

    return repeat(step, state, 0, scale.tuned)[0]


def chosen(trained: Callable, quantized: Callable, parts: list[Part], scale: Settings) -> dict[str, Array]:
    """Accuracies on the test rows at the rate of learning whose *quantised* network is best on the validation rows."""
    _, validation, test = parts

    def tried(rate: Array) -> tuple[Array, Array, Array]:
        model = trained(rate)
        small = quantized(model, rate)
        return accuracy_of(small, validation), accuracy_of(small, test), accuracy_of(model, test)

    rates = jnp.asarray(scale.rates)
    judged, small, whole = jax.vmap(tried)(rates)
    best = jnp.argmax(judged)
    return {"accuracy": small[best], "float_accuracy": whole[best], "rate": rates[best]}


def majority(problem: Any) -> dict[str, Array]:
    """The accuracy of the commonest label."""
    counts = jnp.zeros(problem.num_classes).at[problem.labels].add(1)
    accuracy = 100 * jnp.mean(problem.test_labels == jnp.argmax(counts))
    return {"accuracy": accuracy, "float_accuracy": accuracy, "rate": jnp.zeros(()), "ratio": jnp.ones(())}


def size_ratio(network: Any, spec: Quantizer) -> Array:
    """How many times smaller the quantised model is, biases and codebooks counted."""
    before = sum(array.size * array.dtype.itemsize for array in jax.tree.leaves(eqx.filter(network, eqx.is_array)))
    return jnp.asarray(before / expected_bytes(network, spec))


class DeepNetwork(eqx.Module):
    """Hidden layers of equal width, stacked, so that one loop runs through them; with or without shortcuts."""

    first: dict[str, Array]
    hidden: dict[str, Array]
    last: dict[str, Array]
    kind: str = eqx.field(static=True)

    def __init__(self, key: Array, problem: Any, width: int, layers: int, kind: str):
        drawn = jax.random.split(key, 3)
        inputs, outputs = problem.inputs.shape[1], problem.num_classes
        gain = 2 / layers if kind == "residual" else 2.0  # the variance after all layers as after none
        normal = lambda key, shape, gain: jax.random.normal(key, shape) * jnp.sqrt(gain / shape[-1])  # noqa: E731
        self.first = {"weight": normal(drawn[0], (width, inputs), 2.0), "bias": jnp.zeros(width)}
        self.hidden = {"weight": normal(drawn[1], (layers, width, width), gain), "bias": jnp.zeros((layers, width))}
        self.last = {"weight": normal(drawn[2], (outputs, width), 1.0), "bias": jnp.zeros(outputs)}
        self.kind = kind

    def __call__(self, x: Array) -> Array:
        return self.applied(x, lambda weight, number: weight)

    def applied(self, x: Array, seen: Callable[[Array, Any], Array]) -> Array:
        """The outputs with ``seen(weight, number)`` for the weight of each layer."""
        apply = lambda layer, number, x: seen(layer["weight"], number) @ x + layer["bias"]  # noqa: E731

        def inner(x, numbered):
            number, layer = numbered
            made = jax.nn.relu(apply(layer, number, x))
            return (x + made if self.kind == "residual" else made), None

        layers = len(self.hidden["bias"])
        x = jax.nn.relu(apply(self.first, layers, x))
        x, _ = jax.lax.scan(inner, x, (jnp.arange(layers), self.hidden))
        return apply(self.last, layers + 1, x)


class NoisyNetwork(eqx.Module):
    """A `DeepNetwork` whose layers get their noise, and their scale, one by one."""

    network: DeepNetwork
    spec: Quantizer
    rate: Array
    key: Array

    def __call__(self, x: Array) -> Array:
        def seen(weight, number):
            return quant_noise({"weight": weight}, self.spec, self.rate, jax.random.fold_in(self.key, number))["weight"]

        return self.network.applied(x, seen)
