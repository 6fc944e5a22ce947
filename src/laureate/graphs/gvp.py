"""Geometric vector perceptrons: scalars that no rotation changes and vectors that turn with the input, in one layer.

Features are a pair of scalars ``[..., s]`` and vectors ``[..., v, 3]``; where there are no vectors, ``[..., 0, 3]``.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import require

__all__ = ["GVP", "Dims", "Features", "VectorDropout", "VectorLayerNorm", "check_features", "rotate", "safe_norm"]

Features = tuple[Float[Array, "*b s"], Float[Array, "*b v 3"]]
Dims = tuple[int, int]
SMALLEST = 1e-8  # of a squared length: below it the root's gradient is 0 and not infinite


class GVP(eqx.Module):
    """A dense layer on scalars and vectors whose scalars are invariant and whose vectors turn with the input.

    With ``V_h = W_h V``, ``V_μ = W_μ V_h`` and σ, σ⁺ the activations (Jing et al. 2021, algorithm 1)::

        s_m = W_m [s; ‖V_h‖] + b        s' = σ(s_m)
        V' = σ⁺(‖V_μ‖) ⊙ V_μ                        without a gate
        V' = sigmoid(W_g σ⁺(s_m) + b_g) ⊙ V_μ       with one (Jing et al. 2021, equivariant GNNs for atoms)

    No map of vectors has a bias, which would not turn. Reflections count as rotations do: a signed volume is out of
    reach. Without a gate no scalar can scale a vector.

    key: for the weights, uniform in ±1/√inputs.
    in_dims, out_dims: numbers of scalars and of vectors, each >= 0.
    num_hidden: rows of V_h; the larger number of vectors where None. 4 v − 6 suffice for any invariant of v vectors.
    activations: σ and σ⁺, each a function or None.
    gated: whether scalars scale the vectors.
    map_vectors: False for V_μ = V_h, the authors' ablation; then num_hidden is the number of vectors that come out.

    >>> layer = GVP(jax.random.key(0), (5, 2), (4, 3))
    >>> scalars, vectors = layer(jnp.ones((7, 5)), jnp.ones((7, 2, 3)))
    >>> scalars.shape, vectors.shape
    ((7, 4), (7, 3, 3))
    """

    hidden_map: Float[Array, "h v"]
    output_map: Float[Array, "u h"] | None
    scalar_map: Float[Array, "t s"]
    norm_map: Float[Array, "t h"]
    bias: Float[Array, " t"]
    gate_map: Float[Array, "u t"] | None
    gate_bias: Float[Array, " u"] | None
    activation: Callable[[Array], Array] | None = eqx.field(static=True)
    vector_activation: Callable[[Array], Array] | None = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        in_dims: Dims,
        out_dims: Dims,
        *,
        num_hidden: int | None = None,
        activations: tuple[Callable[[Array], Array] | None, Callable[[Array], Array] | None] = (
            jax.nn.relu,
            jax.nn.sigmoid,
        ),
        gated: bool = False,
        map_vectors: bool = True,
    ):
        for name, dims in (("in_dims", in_dims), ("out_dims", out_dims)):
            require("GVP", name, "two integers >= 0: scalars, vectors", dims, _are_dims)
        (s, v), (t, u) = in_dims, out_dims
        hidden = max(v, u) if num_hidden is None else num_hidden
        hidden = hidden if v and (u or t) else 0
        if num_hidden is not None:
            require("GVP", "num_hidden", "an integer >= 1", num_hidden, lambda h: isinstance(h, int) and h >= 1)
        if not map_vectors:
            require("GVP", "num_hidden", "None without a map of vectors", num_hidden, lambda h: h is None)
            hidden = u if v else 0
        # One draw dealt out: each call of the generator costs compile time.
        shapes = [(hidden, v), (u, hidden), (t, s), (t, hidden), (t,), (u, t), (u,)]
        inputs = [v, hidden, s + hidden, s + hidden, s + hidden, t, t]
        sizes = [math.prod(shape) for shape in shapes]
        parts = jnp.split(jax.random.uniform(key, (sum(sizes),), minval=-1.0), np.cumsum(sizes)[:-1])
        drawn = [
            part.reshape(shape) / math.sqrt(max(fan, 1)) for part, shape, fan in zip(parts, shapes, inputs, strict=True)
        ]
        self.hidden_map, output_map, self.scalar_map, self.norm_map, self.bias, gate_map, gate_bias = drawn
        self.output_map = output_map if map_vectors else None
        self.gate_map, self.gate_bias = (gate_map, gate_bias) if gated else (None, None)
        self.activation, self.vector_activation = activations

    @property
    def in_dims(self) -> Dims:
        """Numbers of scalars and vectors that go in."""
        return self.scalar_map.shape[1], self.hidden_map.shape[1]

    @property
    def out_dims(self) -> Dims:
        """Numbers of scalars and vectors that come out."""
        return len(self.bias), len(self.hidden_map) if self.output_map is None else len(self.output_map)

    def __call__(self, scalars: Float[Array, "*b s"], vectors: Float[Array, "*b v 3"]) -> Features:
        """(s', V')."""
        check_features("GVP", (scalars, vectors), self.in_dims)
        return self._finished(scalars @ self.scalar_map.T, _mapped(self.hidden_map, vectors))

    def of_parts(self, parts: Sequence[tuple[Features, Int[Array, " e"] | None]]) -> Features:
        """The same of features side by side, each perhaps gathered at an index first.

        The maps are linear: they are applied before the gathering, to each node once and not to each of its edges.
        """
        scalars: Any = 0.0  # of no type, as vectors: an array would widen half precision
        vectors: Any = 0.0
        s = v = 0
        for (part_scalars, part_vectors), index in parts:
            t, u = s + part_scalars.shape[-1], v + part_vectors.shape[-2]
            mapped = part_scalars @ self.scalar_map[:, s:t].T, _mapped(self.hidden_map[:, v:u], part_vectors)
            here, there = mapped if index is None else (mapped[0][index], mapped[1][index])
            scalars, vectors, s, v = scalars + here, vectors + there, t, u
        found = s, v
        require("GVP", "in_dims", f"those of its parts together, {found}", self.in_dims, lambda d: d == found)
        return self._finished(scalars, vectors)

    def _finished(self, scalars: Float[Array, "*b t"], hidden: Float[Array, "*b h 3"]) -> Features:
        """From W_s s and V_h."""
        mixed = scalars + safe_norm(hidden) @ self.norm_map.T + self.bias  # s_m
        vectors = hidden if self.output_map is None else _mapped(self.output_map, hidden)  # V_μ
        squash = self.vector_activation
        if self.gate_map is not None and self.gate_bias is not None:
            gate = (mixed if squash is None else squash(mixed)) @ self.gate_map.T + self.gate_bias
            vectors = jax.nn.sigmoid(gate)[..., None] * vectors
        elif squash is not None:
            vectors = squash(safe_norm(vectors))[..., None] * vectors
        return (mixed if self.activation is None else self.activation(mixed)), vectors


class VectorLayerNorm(eqx.Module):
    """Layer norm: scalars as usual, with scale and shift; vectors divided by the root mean square of their lengths.

    ``V / √(mean_i ‖v_i‖²)`` of each node: a vector's length alone is lost, so carry lengths as scalars.

    num_scalars: >= 0; the number of vectors may be any.

    >>> scalars, vectors = VectorLayerNorm(4)(jnp.arange(4.0), 5 * jnp.eye(3))
    >>> round(float(scalars.mean()), 6), vectors.tolist() == jnp.eye(3).tolist()
    (0.0, True)
    """

    scale: Float[Array, " s"]
    shift: Float[Array, " s"]

    def __init__(self, num_scalars: int):
        require("VectorLayerNorm", "num_scalars", "an integer >= 0", num_scalars, lambda n: n >= 0)
        self.scale, self.shift = jnp.ones(num_scalars), jnp.zeros(num_scalars)

    def __call__(self, scalars: Float[Array, "*b s"], vectors: Float[Array, "*b v 3"]) -> Features:
        """The same shapes."""
        check_features("VectorLayerNorm", (scalars, vectors), (len(self.scale), vectors.shape[-2]))
        if scalars.shape[-1]:
            wide = _wide(scalars)
            centred = wide - wide.mean(-1, keepdims=True)
            variance = jnp.mean(centred**2, -1, keepdims=True)
            normed = centred * jax.lax.rsqrt(variance + 1e-5) * _wide(self.scale) + _wide(self.shift)
            scalars = normed.astype(scalars.dtype)
        if vectors.shape[-2]:
            wide = _wide(vectors)
            square = jnp.mean(jnp.maximum(jnp.sum(wide**2, -1), SMALLEST), -1)
            vectors = (wide * jax.lax.rsqrt(square)[..., None, None]).astype(vectors.dtype)
        return scalars, vectors


class VectorDropout(eqx.Module):
    """Dropout of single scalars and of whole vectors; what is left is divided by 1 − rate.

    rate: the share that is dropped, in [0, 1).

    >>> scalars, vectors = VectorDropout(0.5)(jax.random.key(0), jnp.ones(8), jnp.ones((8, 3)))
    >>> sorted(set(scalars.tolist())), bool((vectors == vectors[:, :1]).all())
    ([0.0, 2.0], True)
    """

    rate: float | Array = 0.1

    def __check_init__(self):
        require("VectorDropout", "rate", "in [0, 1)", self.rate, lambda r: 0 <= r < 1)

    def __call__(
        self, key: Key[Array, ""] | None, scalars: Float[Array, "*b s"], vectors: Float[Array, "*b v 3"]
    ) -> Features:
        """Without a key nothing is dropped."""
        if key is None:
            return scalars, vectors
        count = scalars.shape[-1]
        kept = jax.random.uniform(key, (*scalars.shape[:-1], count + vectors.shape[-2])) >= self.rate
        keep = lambda values, mask: _where(mask, values / (1 - self.rate))  # noqa: E731
        return keep(scalars, kept[..., :count]), keep(vectors, kept[..., count:, None])


def rotate(features: Features, matrix: Any) -> Features:
    """Features whose vectors a matrix ``[3, 3]`` has turned or mirrored: what a layer's output must become, too.

    >>> rotate((jnp.ones(2), jnp.eye(3)), -jnp.eye(3))[1].tolist() == (-jnp.eye(3)).tolist()
    True
    """
    require("rotate", "matrix", "[3, 3]", np.shape(matrix), lambda shape: shape == (3, 3))
    scalars, vectors = features
    return scalars, vectors @ jnp.asarray(matrix, vectors.dtype).T


def safe_norm(vectors: Float[Array, "*b 3"]) -> Float[Array, "*b"]:
    """√max(Σ v², 1e-8): finite, and of gradient 0 at the zero vector."""
    squares = jnp.sum(_wide(vectors) ** 2, -1)
    return jnp.sqrt(jnp.maximum(squares, SMALLEST)).astype(vectors.dtype)


def _wide(values: Array) -> Array:
    """In float32 at least: half precision has no 1e-8."""
    return values.astype(jnp.float32) if values.dtype.itemsize < 4 else values


def check_features(owner: str, features: Any, dims: Dims) -> None:
    """Raise where features are no pair of scalars [..., s] and vectors [..., v, 3] with these numbers of both."""
    rule = "a pair of arrays: scalars [..., s] and vectors [..., v, 3]"
    require(owner, "features", rule, type(features).__name__, lambda _: _is_pair(features))
    shapes: list[list[int]] = [list(np.shape(part)) for part in features]
    scalars, vectors = shapes
    if len(vectors) >= 2 and vectors[-1] != 3 and vectors[-2] == 3:
        remedy = "It looks like [..., 3, v]: swap the last two axes."
    else:
        remedy = "Where there are no vectors, their shape is [..., 0, 3]."
    fits = len(vectors) >= 2 and vectors[-1] == 3 and scalars[:-1] == vectors[:-2]
    require(owner, "features", rule, (tuple(scalars), tuple(vectors)), lambda _: fits, remedy)
    found = scalars[-1], vectors[-2]
    require(owner, "features", f"of {dims[0]} scalars and {dims[1]} vectors", found, lambda f: f == tuple(dims))


def _mapped(weights: Float[Array, "h v"], vectors: Float[Array, "*b v 3"]) -> Float[Array, "*b h 3"]:
    return jnp.einsum("hv,...vc->...hc", weights, vectors)


def _where(mask: Bool[Array, "..."], values: Array) -> Array:
    return jnp.where(mask, values, jnp.zeros((), values.dtype))


def _are_dims(dims: Any) -> bool:
    pair = isinstance(dims, tuple | list) and len(dims) == 2
    return pair and all(isinstance(number, int | np.integer) and number >= 0 for number in dims)


def _is_pair(features: Any) -> bool:
    return (
        isinstance(features, tuple | list) and len(features) == 2 and all(hasattr(part, "shape") for part in features)
    )
