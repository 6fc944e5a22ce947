"""Quant-Noise: training in which a random part of the weights is quantised at each step."""

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require
from laureate.compression.arrays import fitted
from laureate.compression.quantizer import Quantizer
from laureate.compression.selection import Chosen, Rules, choose

__all__ = ["NoiseState", "Proxy", "WeightState", "excess", "quant_noise", "refresh"]

Proxy = Literal["zero"] | Callable[[Array], Array]


class WeightState(NamedTuple):
    """Of one weight, at the last refresh.

    parameters: the quantiser's. codes: where they are dear to find, else None.
    """

    parameters: Any
    codes: Array | None


class NoiseState(NamedTuple):
    """What ``refresh`` makes.

    weights: a `WeightState` for every chosen weight, in the order of the model's leaves.
    """

    weights: tuple[WeightState, ...]


def quant_noise(
    model: Any,
    spec: Quantizer | Rules,
    rate: float | Float[Array, ""],
    key: Any = None,
    *,
    state: NoiseState | None = None,
    proxy: Proxy | None = None,
    rescale: bool = False,
    clamp: bool = True,
    inference: bool = False,
) -> Any:
    """The model as a step of training should see it: a random part of its weights quantised, one line in your loss.

    ψ(W)_b = φ(W)_b for b in J, else W_b,   P(b in J) = p,   ∂ψ/∂W := I        (Stock, Fan et al. 2021)

    Blocks b are single weights (`ScalarQuantizer`) or the blocks of a codebook (`ProductQuantizer`). The gradient goes
    straight through to the weights, which the call leaves as they are: rate 0 is training without noise, rate 1
    quantisation-aware training, and what lies between lets part of the weights have their exact gradients.

    model, spec: as for ``quantize``: biases and norms never get noise unless asked.
    rate: p, in [0, 1]; may be traced. The paper: 0.05 to 0.2 for codebooks, 0.5 for int8 and int4. A block is chosen
        with probability p exactly; in one call all are chosen independently with k/256, k = 256 p rounded at random.
    key: a new one every step.
    state: from ``refresh``. Without it scales are found anew at every step, which is cheap; codebooks need it.
    proxy: noise instead of φ: ``"zero"`` drops the blocks (as good for codebooks, says the paper, and needs no state);
        or a function of the weights that gives what selected ones become.
    rescale: with a proxy, whether the others are divided by 1 - p, as the released code does.
    clamp: whether selected weights beyond the range that codes reach get no gradient (with an old ``state``). The
        released code clamps the weights that are not selected as well.
    inference: quantise everything, as for evaluation, with the scales or codebooks of the state; no key, no proxy then.

    Outside jit it warns when the range of the state is exceeded more than twice; within, look at ``excess``.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.compression import ScalarQuantizer
    >>> model, spec = {"w": jnp.array([[-1.0, 0.2], [0.5, 2.0]])}, ScalarQuantizer(2)
    >>> quant_noise(model, spec, 1.0, jax.random.key(0))["w"].tolist()
    [[-1.0, 0.0], [0.0, 2.0]]
    >>> loss = lambda model, key: jnp.sum(quant_noise(model, spec, 0.5, key)["w"] ** 2)
    >>> jax.grad(loss)(model, jax.random.key(1))["w"].shape
    (2, 2)
    """
    name = "quant_noise"
    require(name, "rate", "one number in [0, 1]", rate, lambda p: np.ndim(p) == 0 and 0 <= np.asarray(p) <= 1)
    require(name, "proxy", "None, 'zero' or a function", proxy, lambda p: p is None or p == "zero" or callable(p))
    require(name, "rescale", "False without a proxy", rescale, lambda r: not r or proxy is not None)
    chosen = choose(model, spec, name)
    weights = _weights(chosen)
    if state is not None:
        _warn_if_stale(weights, state)
    exact = inference or proxy is None
    states = _states(weights, state) if exact else [None] * len(weights)
    others = 1 / (1 - jnp.minimum(rate, 0.999)) if rescale else 1.0  # at p = 1 there are no others

    def seen(leaf: Any, own: WeightState | None, mask: Array) -> tuple[Array, Array]:
        """ψ(W), and its derivative as we want it."""
        values, passes = _constant(leaf), True
        if own is not None:
            codes = leaf.quantizer.encode(values, own.parameters) if own.codes is None else own.codes
            replaced = leaf.quantizer.decode(codes, own.parameters, values.shape).astype(values.dtype)  # φ(W)
            passes = leaf.quantizer.inside(values, own.parameters) if clamp else True
        else:
            replaced = proxy(values) if callable(proxy) else jnp.zeros_like(values)
        slope = jnp.broadcast_to(jnp.where(mask, passes, others), values.shape)
        return jnp.where(mask, replaced, others * values).astype(values.dtype), slope.astype(values.dtype)

    def all_seen(masks: list[Array]) -> list[tuple[Array, Array]]:
        return [seen(*each) for each in zip(weights, states, masks, strict=True)]

    if inference:
        pairs = all_seen([jnp.asarray(True)] * len(weights))
    elif key is None:
        raise TypeError(f"{name}.key must be a key in training; got None. For evaluation say inference=True.")
    else:
        byte_key, threshold_key = jax.random.split(key)
        threshold = _threshold(threshold_key, rate)
        nobody = lambda: all_seen([jnp.asarray(False)] * len(weights))  # noqa: E731
        # Besides saving work, a branch is computed once; else XLA on a CPU would round and draw anew wherever a weight
        # is read, as for every pixel of a convolution.
        pairs = jax.lax.cond(threshold > 0, lambda: all_seen(_masks(byte_key, weights, threshold)), nobody)
    noisy = iter(_straight_through(leaf.value, *pair) for leaf, pair in zip(weights, pairs, strict=True))
    return chosen.rebuilt([leaf.value if leaf.quantizer is None else next(noisy) for leaf in chosen.leaves])


def refresh(model: Any, spec: Quantizer | Rules, key: Any = None, state: NoiseState | None = None) -> NoiseState:
    """Scales, or codebooks and codes, of the weights as they are now; call it every epoch or so, also within jit.

    key: for codebooks alone. state: the one before: k-means goes on from its centroids.

    >>> import jax, jax.numpy as jnp
    >>> from laureate.compression import ProductQuantizer
    >>> model = {"w": jax.random.normal(jax.random.key(0), (16, 32))}
    >>> state = refresh(model, ProductQuantizer(8, num_centroids=4), jax.random.key(1))
    >>> state.weights[0].parameters.centroids.shape, state.weights[0].codes.shape
    ((4, 8), (64,))
    """
    weights = _weights(choose(model, spec, "refresh"))
    before = [None] * len(weights) if state is None else _given(weights, state, "refresh")
    keys = [None if key is None else jax.random.fold_in(key, number) for number in range(len(weights))]
    each = zip(keys, weights, before, strict=True)
    return NoiseState(tuple(_fitted(own, leaf.quantizer, _constant(leaf), old) for own, leaf, old in each))


def excess(model: Any, spec: Quantizer | Rules, state: NoiseState) -> Float[Array, ""]:
    """The largest weight in units of the largest that its old scale can reach: above 1 a refresh is due.

    model: any pytree with weights. spec: a quantizer, or the rules that choose one. state: with the scales of the last
        refresh.
    """
    weights = _weights(choose(model, spec, "excess"))
    return _excess(weights, _given(weights, state, "excess"))


def _weights(chosen: Chosen) -> list[Any]:
    return [leaf for leaf in chosen.leaves if leaf.quantizer is not None]


def _constant(leaf: Any) -> Array:
    return jax.lax.stop_gradient(leaf.value)


@eqx.filter_jit
def _fitted(key: Any, quantizer: Quantizer, values: Array, before: WeightState | None = None) -> WeightState:
    parameters = fitted(key, quantizer, values, None if before is None else before.parameters)
    return WeightState(parameters, quantizer.encode(values, parameters) if quantizer.keeps_codes else None)


def _states(weights: list[Any], state: NoiseState | None) -> list[WeightState]:
    """The given states, or scales of the weights as they are."""
    if state is not None:
        return _given(weights, state, "quant_noise")
    if dear := [leaf.path for leaf in weights if leaf.quantizer.keeps_codes]:
        raise ValueError(
            f"quant_noise.state must be given for the codebooks of {', '.join(dear)}; got None. Make it by "
            "refresh(model, spec, key), once an epoch; or say proxy='zero'."
        )
    return [_fitted(None, leaf.quantizer, _constant(leaf)) for leaf in weights]


def _given(weights: list[Any], state: NoiseState, owner: str) -> list[WeightState]:
    many = (len(weights), len(state.weights))
    if many[0] != many[1]:
        raise ValueError(
            f"{owner}.state must have an entry for each of the {many[0]} chosen weights; got {many[1]}. It belongs to "
            "another model or spec: make it anew by refresh(model, spec, key)."
        )
    for leaf, own in zip(weights, state.weights, strict=True):
        count = leaf.quantizer.count(leaf.value.shape)
        if own.codes is not None and own.codes.shape != (count,):
            raise ValueError(
                f"{owner}.state must have {count} codes for {leaf.path} {list(leaf.value.shape)}; got "
                f"{own.codes.size}. It belongs to another model: make it anew by refresh(model, spec, key)."
            )
    return list(state.weights)


def _excess(weights: list[Any], states: list[WeightState]) -> Array:
    pairs = zip(weights, states, strict=True)
    return jnp.max(jnp.stack([leaf.quantizer.excess(leaf.value, own.parameters) for leaf, own in pairs]))


def _warn_if_stale(weights: list[Any], state: NoiseState) -> None:
    beyond = _excess(weights, _given(weights, state, "quant_noise"))
    if not isinstance(beyond, Tracer) and beyond > 2:
        warnings.warn(
            f"quant_noise.state is old: a weight is {beyond:.1f} times as large as its scale can reach. "
            "Call refresh(model, spec, key) more often.",
            stacklevel=3,
        )


def _threshold(key: Array, rate: Any) -> Array:
    """256 p, rounded up or down at random so that its mean is 256 p: P(byte < ⌊256 p + u⌋) = p."""
    return jnp.floor(256 * jnp.asarray(rate, jnp.float32) + jax.random.uniform(key)).astype(jnp.int32)


def _masks(key: Array, weights: list[Any], threshold: Array) -> list[Array]:
    """Which blocks are in J: one draw for all weights, a byte a block. Random numbers are most of what noise costs."""
    counts = [leaf.quantizer.count(leaf.value.shape) for leaf in weights]
    drawn = jax.random.bits(key, (-(-sum(counts) // 4),), jnp.uint32)
    chosen = jax.lax.bitcast_convert_type(drawn, jnp.uint8).ravel().astype(jnp.int32) < threshold
    masks, first = [], 0
    for leaf, count in zip(weights, counts, strict=True):
        masks.append(leaf.quantizer.spread(chosen[first : first + count], leaf.value.shape))
        first += count
    return masks


@jax.custom_jvp
def _straight_through(weights: Array, seen: Array, slope: Array) -> Array:
    """``seen``, with the derivative ``slope`` for the weights, whatever it was computed from."""
    return seen


@_straight_through.defjvp
def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    _, seen, slope = primals
    return seen, tangents[0] * slope
