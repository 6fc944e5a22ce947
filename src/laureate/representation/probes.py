"""What a frozen representation is worth: linear probe, nearest neighbours, fine-tuning; each with an interval."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.core import Tracer
from jaxtyping import Float, Int

from laureate import loops
from laureate._core import require
from laureate.representation.siamese import apply_to_batch, normalised, outputs_of, trained_part

__all__ = ["Accuracy", "accuracy", "fine_tune", "knn_probe", "linear_probe"]


class Accuracy(NamedTuple):
    """A share of test examples with Wilson's 95 % interval, which holds near 0 and 1 too.

    value: the share. low, high: the ends of the interval.
    """

    value: Array
    low: Array
    high: Array


def accuracy(predicted: Int[Array, " n"], labels: Int[Array, " n"]) -> Accuracy:
    """How many are right, and between which values that share lies.

    >>> import jax.numpy as jnp
    >>> [round(float(v), 3) for v in accuracy(jnp.array([1, 1, 0, 0]), jnp.array([1, 1, 0, 1]))]
    [0.75, 0.301, 0.954]
    """
    rule, remedy = f"of the shape of what is predicted, {predicted.shape}", "labels.ravel() makes a column such."
    require("accuracy", "labels", rule, jnp.shape(labels), lambda shape: shape == predicted.shape, remedy)
    n, z = predicted.shape[0], 1.959964
    share = jnp.mean((predicted == labels).astype(jnp.float32))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * jnp.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return Accuracy(share, middle - half, middle + half)


def _check_labels(owner: str, num_classes: int, **labels: tuple[Any, Any]) -> Array | bool:
    """Raise unless labels are 0 … num_classes − 1, one an example; of traced labels, whether they are in this range.

    labels: by name, with the examples they belong to.
    """
    sound: Array | bool = True
    for name, (given, examples) in labels.items():
        number, remedy = len(examples), "labels.ravel() makes a column such."
        rule = f"of shape ({number},), one an example"
        require(owner, name, rule, jnp.shape(given), lambda shape, n=number: shape == (n,), remedy)
        rule, remedy = f"integers in 0..{num_classes - 1}", "Labels 1..K become such by subtracting 1."
        if isinstance(given, Tracer):
            whole = given == jnp.floor(given) if jnp.issubdtype(given.dtype, jnp.floating) else True
            sound = sound & jnp.all((given >= 0) & (given < num_classes) & whole)
            continue
        value = np.asarray(given)
        ends = (value.min().item(), value.max().item()) if value.size else (0, 0)
        whole = bool(np.all(value == np.floor(value)))
        require(owner, name, rule, ends, lambda e, whole=whole: whole and e[0] >= 0 and e[1] < num_classes, remedy)
    return sound


def _or_nan(found: Accuracy, sound: Array | bool) -> Accuracy:
    """Under jit nothing can be raised: wrong labels then have an accuracy of NaN."""
    return found if sound is True else Accuracy(*(jnp.where(sound, value, jnp.nan) for value in found))


def linear_probe(
    train: Float[Array, "n d"],
    train_labels: Int[Array, " n"],
    test: Float[Array, "m d"],
    test_labels: Int[Array, " m"],
    num_classes: int,
    *,
    decay: Any = 1e-3,
    num_steps: int = 100,
    progress: Callable[[loops.Progress], None] | None = None,
) -> Accuracy:
    """Multinomial logistic regression on standardised, frozen features, by L-BFGS from zero.

    decay: of the weights, ½ decay ‖w‖²; fixed beforehand, not chosen on the test set.
    progress: called about every second with a ``laureate.loops.Progress``; not within jit.
    Standardised with the training features' mean and deviation. One compiled program, to be vmapped over encoders.

    train, test: features, a row an example. train_labels, test_labels: their classes, 0 to num_classes − 1.
    num_steps: of L-BFGS.

    >>> import jax, jax.numpy as jnp
    >>> x = jax.random.normal(jax.random.key(0), (200, 3))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> bool(linear_probe(x[:100], y[:100], x[100:], y[100:], 2).value > 0.9)
    True
    """
    require("linear_probe", "num_classes", ">= 2", num_classes, lambda n: n >= 2)
    sound = _check_labels(
        "linear_probe", num_classes, train_labels=(train_labels, train), test_labels=(test_labels, test)
    )
    mean, deviation = train.mean(axis=0, keepdims=True), train.std(axis=0, keepdims=True) + 1e-6
    train, test = (train - mean) / deviation, (test - mean) / deviation

    def loss(weights):
        matrix, bias = weights
        logits = train @ matrix + bias[None, :]
        cross = optax.softmax_cross_entropy_with_integer_labels(logits, train_labels)
        return jnp.mean(cross) + 0.5 * decay * jnp.sum(matrix**2)

    optimiser = optax.lbfgs()
    value_and_grad = optax.value_and_grad_from_state(loss)
    start = jnp.zeros((train.shape[1], num_classes), train.dtype), jnp.zeros(num_classes, train.dtype)

    def step(carry: Any, _: None) -> Any:
        weights, memory = carry
        value, slope = value_and_grad(weights, state=memory)
        updates, memory = optimiser.update(slope, memory, weights, value=value, grad=slope, value_fn=loss)
        return (optax.apply_updates(weights, updates), memory), None

    begin: Any = (start, optimiser.init(start))
    ((matrix, bias), _), _ = loops.scan(step, begin, jnp.arange(num_steps), progress=progress)
    return _or_nan(accuracy(jnp.argmax(test @ matrix + bias[None, :], axis=1), test_labels), sound)


def knn_probe(
    train: Float[Array, "n d"],
    train_labels: Int[Array, " n"],
    test: Float[Array, "m d"],
    test_labels: Int[Array, " m"],
    num_classes: int,
    *,
    k: int = 20,
) -> Accuracy:
    """The majority among the ``k`` training features of largest cosine; the nearer class wins a tie.

    train, test: features, a row an example. train_labels, test_labels: their classes, 0 to num_classes − 1.

    >>> import jax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> float(knn_probe(x, jnp.array([0, 0, 1, 1]), x, jnp.array([0, 0, 1, 1]), 2, k=2).value)
    1.0
    """
    sound = _check_labels("knn_probe", num_classes, train_labels=(train_labels, train), test_labels=(test_labels, test))
    require("knn_probe", "k", f"in 1..{train.shape[0]}", k, lambda k: 1 <= k <= train.shape[0])
    # Half precision has no room for what breaks ties.
    kind = jnp.promote_types(jnp.result_type(train, test), jnp.float32)
    cosine, nearest = jax.lax.top_k(normalised(test.astype(kind)) @ normalised(train.astype(kind)).T, k)
    votes = jax.nn.one_hot(jnp.asarray(train_labels)[nearest], num_classes)
    # a vote is worth 1 and a little more for the nearer: it decides ties and nothing else
    weight = 1.0 + 1e-3 * (cosine + 1) / (2 * k)
    found = jnp.argmax(jnp.sum(votes * weight[:, :, None], axis=1), axis=1)
    return _or_nan(accuracy(found, test_labels), sound)


def fine_tune(
    key: Array,
    model: Any,
    train: Array,
    train_labels: Int[Array, " n"],
    test: Array,
    test_labels: Int[Array, " m"],
    num_classes: int,
    *,
    optimiser: optax.GradientTransformation,
    num_steps: int,
    batch: int,
    apply: Callable[[Any, Array], Array] | None = None,
    progress: Callable[[loops.Progress], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Accuracy:
    """The whole encoder and a new linear layer trained on the labels; accuracy on the test set after the last step.

    Not the best step's: that would be chosen on the test set. The batches come from ``key`` and the step's number.

    model: an Equinox encoder from one example to a vector. apply: as for ``Siamese``; statistics stay as they are.
    optimiser: any of Optax. num_steps, batch: updates, and labelled examples of each, drawn with repeats.
    progress: called about every second with a ``laureate.loops.Progress``. checkpoint: a file; the same call again,
        with as many steps or more, goes on from it.
    train, test: examples. train_labels, test_labels: their classes, 0 to num_classes − 1.

    >>> import equinox as eqx, jax, jax.numpy as jnp, optax
    >>> key = jax.random.key(0)
    >>> x = jax.random.normal(key, (200, 2))
    >>> y = (x[:, 0] * x[:, 1] > 0).astype(int)  # no line tells them apart: the encoder itself must learn
    >>> encoder = eqx.nn.MLP(2, 8, 16, 1, key=key)
    >>> found = fine_tune(
    ...     key, encoder, x[:100], y[:100], x[100:], y[100:], 2, optimiser=optax.adam(0.02), num_steps=100, batch=32
    ... )
    >>> bool(found.low > 0.5), bool(found.low < found.value < found.high)
    (True, True)
    """
    require("fine_tune", "num_classes", ">= 2", num_classes, lambda n: n >= 2)
    sound = _check_labels("fine_tune", num_classes, train_labels=(train_labels, train), test_labels=(test_labels, test))
    require("fine_tune", "num_steps", ">= 0", num_steps, lambda n: n >= 0)
    require("fine_tune", "batch", ">= 1", batch, lambda n: n >= 1)
    run = apply_to_batch if apply is None else apply
    width = jax.eval_shape(lambda x: outputs_of(run, model, x)[0], train[:1]).shape[1]
    head = jnp.zeros((width, num_classes)), jnp.zeros(num_classes)
    trained, fixed = eqx.partition((model, head), (trained_part(model), True))

    tuning = FineTuning(key, train, train_labels, fixed, run, optimiser, batch)
    begin = trained, optimiser.init(trained)
    (trained, _), *_ = loops.run(tuning, begin, num_steps, progress=progress, checkpoint=checkpoint)
    return _or_nan(accuracy(jnp.argmax(tuning.logits(trained, test), axis=1), test_labels), sound)


class FineTuning(eqx.Module):
    """One update of the encoder and its head, from a batch drawn by the step's index."""

    key: Array
    train: Array
    labels: Int[Array, " n"]
    fixed: Any
    apply: Callable[[Any, Array], Array]
    optimiser: optax.GradientTransformation
    batch: int = eqx.field(static=True)

    def __call__(self, carry: tuple[Any, Any], index: Array) -> tuple[tuple[Any, Any], None]:
        """The trained arrays and the optimiser's memory after the step."""
        trained, memory = carry
        chosen = jax.random.randint(jax.random.fold_in(self.key, index), (self.batch,), 0, self.train.shape[0])

        def loss(trained):
            out = self.logits(trained, self.train[chosen])
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(out, self.labels[chosen]))

        updates, memory = self.optimiser.update(jax.grad(loss)(trained), memory, trained)
        return (optax.apply_updates(trained, updates), memory), None

    def logits(self, trained: Any, x: Array) -> Float[Array, "n k"]:
        """The head's outputs."""
        model, (matrix, bias) = eqx.combine(trained, self.fixed)
        return outputs_of(self.apply, model, x)[0] @ matrix + bias[None, :]
