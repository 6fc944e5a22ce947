"""Activations brought from anywhere: checked, flattened, read from files and ranked chunk by chunk."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from laureate._core import Status, require
from laureate.interpretation.moments import Moments, RunningMoments
from laureate.interpretation.ranking import (
    RankingResult,
    linear_regression,
    max_corr,
    min_corr,
    output_norm,
    random_order,
    standard_deviation,
)
from laureate.interpretation.significance import expected_null

__all__ = ["FewTokensWarning", "collect", "flatten_tokens", "open_activations", "rank_neurons"]

Method = Literal["max-corr", "min-corr", "linear-regression", "standard-deviation", "output-norm", "random"]
AGREEMENT = {"max-corr": max_corr, "min-corr": min_corr, "linear-regression": linear_regression}


class FewTokensWarning(UserWarning):
    """So few tokens that the best of many correlations is high by chance."""


def flatten_tokens(activations: Any, mask: Any) -> np.ndarray:
    """Sentences ``[sentences, length, units]`` as tokens ``[tokens, units]``, without those that the mask leaves out.

    mask: True for tokens, False for padding, ``[sentences, length]``.

    >>> flatten_tokens(np.arange(8.0).reshape(2, 2, 2), [[True, False], [True, True]]).tolist()
    [[0.0, 1.0], [4.0, 5.0], [6.0, 7.0]]
    """
    values, shown = np.asarray(activations), np.asarray(mask, bool)
    require("flatten_tokens", "activations", "[sentences, length, units]", values.shape, lambda s: len(s) == 3)
    require("flatten_tokens", "mask", f"of shape {values.shape[:2]}", shown.shape, lambda s: s == values.shape[:2])
    return values[shown]


def open_activations(path: str | Path) -> dict[str, Any]:
    """Arrays by name from a file of any framework: ``.npz``, ``.npy`` or ``.safetensors``.

    A ``.npy`` file (its array is called as the file) and a ``.safetensors`` file stay on disk and are read where they
    are sliced, so that `collect` takes them in flat memory; each array of a ``.npz`` is read whole. Pickled objects are
    refused.
    """
    path = Path(path)
    require("open_activations", "path", "a file", str(path), lambda _: path.is_file())
    if path.suffix == ".npy":
        return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    known = ".npz, .npy or .safetensors"
    require("open_activations", "path", known, str(path), lambda _: path.suffix == ".safetensors")
    try:
        from safetensors import safe_open
    except ImportError:
        raise ImportError("open_activations needs safetensors for this file: pip install safetensors.") from None
    file = safe_open(str(path), framework="numpy")
    return {name: _Slices(file.get_slice(name)) for name in file.keys()}  # noqa: SIM118 (it is no mapping)


class _Slices:
    """An array of a safetensors file that is read where it is sliced."""

    def __init__(self, slices: Any):
        self._slices = slices
        self.shape = tuple(slices.get_shape())
        self.ndim = len(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray:
        return self._slices[index]

    def __len__(self) -> int:
        return self.shape[0]


def collect(
    activations: Mapping[str, Any] | Sequence[Any], *, chunk: int = 4096, mask: Any = None
) -> tuple[RunningMoments, Moments]:
    """The moments of several models' units from arrays of any size, a chunk at a time.

    activations: one array ``[tokens, units]`` a model, by name or in order: NumPy's or JAX's, or as of
        `open_activations`; all of the same tokens in the same order.
    chunk: tokens at a time, >= 1. mask: False for tokens that do not count.
    """
    named = _named(activations)
    require("collect", "chunk", ">= 1", chunk, lambda size: size >= 1)
    count = len(next(iter(named.values())))
    shown = None if mask is None else np.asarray(mask, bool)
    if shown is not None:
        require("collect", "mask", f"one entry a token, [{count}]", shown.shape, lambda shape: shape == (count,))
    stats = RunningMoments(tuple(x.shape[1] for x in named.values()))
    state = stats.init()
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        values = [np.asarray(x[start:stop]) for x in named.values()]
        part = None if shown is None else shown[start:stop]
        # The last chunk may be shorter: one more program, and no padding that is computed for nothing.
        state, info = _update(stats, state, values, part)
        if int(info.status) != Status.OK:
            _report_not_finite(dict(zip(named, values, strict=True)), part, start)
    if shown is not None:
        require("collect", "mask", "True for at least one token", int(shown.sum()), lambda n: n >= 1)
    return stats, stats.finish(state)


@jax.jit
def _one(state, values, mask):
    stats = RunningMoments(tuple(x.shape[1] for x in values))
    return stats.update(state, values, mask)


def _update(stats, state, values, mask):
    return _one(state, [jnp.asarray(x, state.means[0].dtype) for x in values], mask)


def _report_not_finite(values: dict[str, np.ndarray], mask: Any, start: int) -> None:
    for name, x in values.items():
        bad = ~np.isfinite(x) if mask is None else ~np.isfinite(x) & np.asarray(mask)[:, None]
        if bad.any():
            token, unit = np.argwhere(bad)[0]
            raise ValueError(
                f"collect.activations must be finite; got {x[token, unit]} in model {name!r}, unit {unit}, token "
                f"{start + token}. Leave such tokens out with a mask, or look for where the model overflows."
            )
    raise ValueError(f"collect.activations must be finite; got sums that overflow in the chunk at token {start}.")


def rank_neurons(
    activations: Mapping[str, Any] | Sequence[Any],
    model: str | int = 0,
    method: Method = "max-corr",
    *,
    chunk: int = 4096,
    mask: Any = None,
    weights: Float[Array, "d o"] | None = None,
    key: Key[Array, ""] | None = None,
) -> RankingResult:
    """The units of a model by importance, from arrays of any framework and any size.

    activations, chunk, mask: as for `collect`. model: its name, or its place.
    method: ``max-corr``, ``min-corr`` or ``linear-regression`` by the agreement with the other models;
        ``standard-deviation``, ``output-norm`` (of ``weights``, [units, outputs]) or ``random`` (with ``key``) without.

    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(500, 1))
    >>> models = [np.hstack([rng.normal(size=(500, 2)), shared]), np.hstack([-shared, rng.normal(size=(500, 2))])]
    >>> found = rank_neurons(models)
    >>> int(found.order[0]), int(found.partner_model[2]), int(found.partner_unit[2])
    (2, 1, 0)
    """
    names = (*AGREEMENT, "standard-deviation", "output-norm", "random")
    require("rank_neurons", "method", f"one of {', '.join(names)}", method, lambda name: name in names)
    named = _named(activations)
    known = list(named)
    remedy = "Models are named by their keys, or by their places."
    require("rank_neurons", "model", f"among {known}", model, lambda m: m in known or _is_place(m, len(known)), remedy)
    place = known.index(model) if model in known else int(model)
    if method == "random":
        require("rank_neurons", "key", "given for method 'random'", key, lambda k: k is not None)
        return random_order(jnp.asarray(key), named[known[place]].shape[1])
    if method == "output-norm":
        units = named[known[place]].shape[1]
        rule, shape = f"[{units}, outputs] for method 'output-norm'", () if weights is None else np.shape(weights)
        require("rank_neurons", "weights", rule, shape, lambda s: len(s) == 2 and s[0] == units)
        return output_norm(jnp.asarray(weights))
    if method in AGREEMENT:
        remedy = "Cross-model ranking needs another model; use method 'standard-deviation', or ablation_effects."
        require("rank_neurons", "activations", "of at least 2 models", len(named), lambda n: n >= 2, remedy)
    _, moments = collect(named, chunk=chunk, mask=mask)
    if method == "standard-deviation":
        return standard_deviation(moments, place)
    units, count = max(x.shape[1] for x in named.values()), int(moments.count)
    if count < 10 * units:
        warnings.warn(
            f"{count} tokens for {units} units: by chance alone the best of so many correlations is about "
            f"{min(1.0, expected_null(units, max(count, 1))):.2f}. Bring more tokens, or see permutation_null.",
            FewTokensWarning,
            stacklevel=2,
        )
    return AGREEMENT[method](moments, place)


def _is_place(model: Any, count: int) -> bool:
    return isinstance(model, int | np.integer) and bool(0 <= model < count)


def _named(activations: Mapping[str, Any] | Sequence[Any]) -> dict[Any, Any]:
    """Arrays by name; checked but for their numbers, which are read chunk by chunk."""
    pairs: Iterator[tuple[Any, Any]]
    pairs = iter(activations.items()) if isinstance(activations, Mapping) else enumerate(activations)
    named = {name: x if hasattr(x, "shape") else np.asarray(x) for name, x in pairs}
    require("collect", "activations", "of at least one model", len(named), lambda n: n >= 1)
    for name, x in named.items():
        remedy = "Flatten sentences with flatten_tokens, which needs a mask." if len(x.shape) == 3 else ""
        rule = f"[tokens, units] in model {name!r}"
        require("collect", "activations", rule, x.shape, lambda shape: len(shape) == 2 and min(shape) > 0, remedy)
    counts = {name: x.shape[0] for name, x in named.items()}
    remedy = "Are words cut into other pieces? Average the pieces of a word, so that all models have the same tokens."
    require("collect", "activations", "of equally many tokens", counts, lambda c: len(set(c.values())) == 1, remedy)
    return named
