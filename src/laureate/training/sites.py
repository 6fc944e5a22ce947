"""The linear layers inside a block, and the forward pass on which a local rule reads them.

A layer is given a backward pass of its own: whatever comes back from above is ignored, and the rule's contribution is
returned as if it were the gradient of the weight. So a rule reaches every layer of any block, however the block calls
it (within vmap, a residual branch, a loop), at one product a layer, and what the compiler does not need it drops.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate.layers import BatchNorm, Convolution, GroupNorm, RunningStatistics
from laureate.training.blocks import Dense, advance
from laureate.training.rules import AbstractRule, Site

__all__ = ["LAYERS", "LinearLayer", "local_block", "output_axes", "unsupported", "weights_of"]


class LinearLayer(NamedTuple):
    """A kind of layer that local rules may change: linear in one array, beside an optional ``bias``.

    kind: the class. weight: the field. weight_axis: the axis of the weight that counts output channels.
    channels_last: whether the channels are the last axis of the outputs (of a batch) or the first (of one example).
    """

    kind: type
    weight: str = "weight"
    weight_axis: int = 0
    channels_last: bool = False


LAYERS = (
    LinearLayer(Dense, channels_last=True),
    LinearLayer(Convolution, "kernel", weight_axis=-1, channels_last=True),
    LinearLayer(eqx.nn.Linear),
    LinearLayer(eqx.nn.Conv),
)
# Parameters that stay as they are below the boundary.
LEFT_ALONE = (BatchNorm, GroupNorm, RunningStatistics, eqx.nn.LayerNorm, eqx.nn.GroupNorm, eqx.nn.RMSNorm)
# Made of linear layers, but no local rule is known to suit them.
STRANGERS = (eqx.nn.MultiheadAttention,)


def _kind_of(node: Any, layers: tuple[LinearLayer, ...]) -> LinearLayer | None:
    return next((layer for layer in layers if isinstance(node, layer.kind)), None)


def _parts(block: Any, layers: tuple[LinearLayer, ...]) -> tuple[list[tuple[str, Any]], Any]:
    """The block's leaves with their paths, linear layers whole, and how to put them together again."""
    whole = lambda node: isinstance(node, (*LEFT_ALONE, *STRANGERS)) or _kind_of(node, layers) is not None  # noqa: E731
    paths, form = jax.tree_util.tree_flatten_with_path(block, is_leaf=whole)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in paths], form


def weights_of(block: Any, layers: tuple[LinearLayer, ...] = LAYERS) -> dict[str, Array]:
    """The weights that a local rule would change, by their paths in the block.

    >>> list(weights_of(Dense(jnp.ones((3, 5)))))
    ['.weight']
    """
    kinds = [(path, leaf, _kind_of(leaf, layers)) for path, leaf in _parts(block, layers)[0]]
    return {f"{path}.{kind.weight}": getattr(leaf, kind.weight) for path, leaf, kind in kinds if kind is not None}


def output_axes(block: Any, layers: tuple[LinearLayer, ...] = LAYERS) -> dict[str, int]:
    """Which axis of each of these weights counts the outputs."""
    kinds = [(path, _kind_of(leaf, layers)) for path, leaf in _parts(block, layers)[0]]
    return {f"{path}.{kind.weight}": kind.weight_axis for path, kind in kinds if kind is not None}


def unsupported(block: Any, layers: tuple[LinearLayer, ...] = LAYERS) -> list[str]:
    """Why no local rule applies to a block that offers none of its own: parameters of layers that are not linear.

    >>> unsupported(eqx.nn.LayerNorm(3))
    ['no linear layer']
    """
    parts, _ = _parts(block, layers)
    strange = [
        path or type(leaf).__name__
        for path, leaf in parts
        if isinstance(leaf, STRANGERS) or (eqx.is_inexact_array(leaf) and _kind_of(leaf, layers) is None)
    ]
    has_parameters = bool(jax.tree.leaves(eqx.filter(block, eqx.is_inexact_array)))
    return strange or (["no linear layer"] if has_parameters and not weights_of(block, layers) else [])


class _Ruled(eqx.Module):
    """A linear layer whose backward pass is a rule's contribution."""

    layer: Any
    kind: LinearLayer = eqx.field(static=True)
    rule: AbstractRule
    reached: Callable[[], None] = eqx.field(static=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.layer, name)  # a block may ask a layer for its sizes

    def __call__(self, inputs: Array, *more: Any, **options: Any) -> Array:
        field, axis = self.kind.weight, self.kind.weight_axis

        def apply(weight: Array, inputs: Array) -> Array:
            return eqx.tree_at(lambda layer: getattr(layer, field), self.layer, weight)(inputs, *more, **options)

        @jax.custom_vjp
        def call(weight: Array, inputs: Array) -> Array:
            return apply(weight, inputs)

        def forward(weight: Array, inputs: Array) -> tuple[Array, tuple[Array, Array, Array]]:
            outputs = apply(weight, inputs)
            return outputs, (weight, inputs, outputs)

        def backward(saved: tuple[Array, Array, Array], _: Array) -> tuple[Array, Array]:
            weight, inputs, outputs = saved
            self.reached()
            bias = getattr(self.layer, "bias", None)
            others = tuple(i for i in range(weight.ndim) if i != axis % weight.ndim)
            site = Site(
                weight,
                inputs,
                outputs if bias is None else outputs - bias,
                lambda change: jax.vjp(lambda w: apply(w, inputs), weight)[1](change)[0],
                lambda row: jnp.expand_dims(row, others),
                self.kind.channels_last,
            )
            return self.rule.contribution(site), jnp.zeros_like(inputs)

        call.defvjp(forward, backward)
        return call(getattr(self.layer, field), inputs)


def local_block(
    key: Array,
    step: Array,
    rule: AbstractRule,
    block: Any,
    inputs: Array,
    *,
    training: bool = True,
    layers: tuple[LinearLayer, ...] = LAYERS,
) -> tuple[Array, Any, dict[str, Array | None]]:
    """One block's forward pass under a rule: its outputs, the block after it, and ΔW of its weights by their paths.

    Nothing but the outputs goes on to the next block. A block that offers ``local(key, step, rule, inputs)`` is asked
    itself; it returns the same three, and its directions are named by paths of ``jax.tree_util.keystr``.

    key, step: for rules that draw numbers. training: whether running statistics are updated.
    """
    if hasattr(block, "local"):
        return block.local(key, step, rule, inputs)
    weights = weights_of(block, layers)
    if not rule.reads_activity:
        outputs, block = advance(block, inputs, training)
        means: dict[str, Array | None] = dict.fromkeys(weights)
    else:
        outputs, block, means = _activity(rule, block, inputs, training, layers, weights)
    keys = (jax.random.fold_in(key, number) for number in range(len(weights)))
    return (
        outputs,
        block,
        {p: rule.direction(k, step, weights[p], means[p]) for k, p in zip(keys, weights, strict=True)},
    )


def _activity(
    rule: AbstractRule,
    block: Any,
    inputs: Array,
    training: bool,
    layers: tuple[LinearLayer, ...],
    weights: dict[str, Array],
) -> tuple[Array, Any, dict[str, Array | None]]:
    """The forward pass, and the contributions of all examples, averaged."""
    parts, form = _parts(block, layers)
    reached: set[str] = set()

    def ruled(path: str, leaf: Any, weights: dict[str, Array]) -> Any:
        kind = _kind_of(leaf, layers)
        if kind is None:
            return leaf
        path = f"{path}.{kind.weight}"
        layer = eqx.tree_at(lambda one: getattr(one, kind.weight), leaf, weights[path])
        return _Ruled(layer, kind, rule, lambda: reached.add(path))

    def forward(weights: dict[str, Array]) -> tuple[Array, Any]:
        outputs, after = advance(form.unflatten([ruled(*part, weights) for part in parts]), inputs, training)
        is_ruled = lambda node: isinstance(node, _Ruled)  # noqa: E731
        after = jax.tree.map(lambda node: node.layer if is_ruled(node) else node, after, is_leaf=is_ruled)
        return outputs, eqx.filter(after, eqx.is_array)

    outputs, back, after = jax.vjp(forward, weights, has_aux=True)
    (sums,) = back(jnp.zeros_like(outputs))  # what comes back from above is ignored
    if missing := sorted(set(weights) - reached):
        raise ValueError(
            f"LocalizedTraining: no way leads back from the outputs of {type(block).__name__} to {', '.join(missing)}. "
            "A local rule needs layers that are called, and no stop_gradient after them; or give the block a method "
            "local(key, step, rule, inputs)."
        )
    means = {path: total / len(inputs) for path, total in sums.items()}
    return outputs, eqx.combine(after, block), means
