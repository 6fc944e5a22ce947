"""Which weights of a model are quantised, and how: chosen by their paths, the first rule that matches wins."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from laureate.compression.arrays import is_quantized, is_stored
from laureate.compression.quantizer import Quantizer

__all__ = ["Chosen", "Leaf", "Rules", "choose", "match"]

# Part of a path in lower case: what belongs to no layer's matrix stays as it is.
BIAS_OR_NORM = re.compile(r"bias|norm")
# Scales and centroids are stored in single precision, and a scale is a difference of two weights.
LARGEST = float(np.finfo(np.float32).max) / 2


class Rules(NamedTuple):
    """What ``match`` makes.

    rules: (pattern, quantiser or None), in the order in which they are tried. everything: whether biases and norms may
    be matched too.
    """

    rules: tuple[tuple[str, Quantizer | None], ...]
    everything: bool = False


class Leaf(NamedTuple):
    """A leaf of a model: its path, and the quantiser that a rule chose, or why there is none."""

    path: str
    value: Any
    quantizer: Quantizer | None
    reason: str


class Chosen(NamedTuple):
    """All leaves of a model in order, and how to put it together again."""

    leaves: tuple[Leaf, ...]
    structure: Any

    def rebuilt(self, values: list[Any]) -> Any:
        """The model with these leaves."""
        return jax.tree.unflatten(self.structure, values)


def match(rules: Mapping[str, Quantizer | None], *, everything: bool = False) -> Rules:
    r"""Choose weights by path: the first pattern that fits the whole path wins, and None leaves a weight as it is.

    rules: regular expressions for paths as ``layers.0.weight``, in the order in which they are tried.
    everything: whether they may fit biases and norms as well, which are known by their paths.

    Arrays of fewer than two axes, and those that are not real, are never quantised.

    >>> from laureate.compression import ProductQuantizer, ScalarQuantizer
    >>> spec = match({r".*attention.*": ProductQuantizer(4), r"head\..*": None, r".*": ScalarQuantizer(8)})
    >>> [pattern for pattern, _ in spec.rules]
    ['.*attention.*', 'head\\..*', '.*']
    """
    if not rules:
        raise ValueError("match.rules must hold at least one pattern; got {}. r'.*' fits every path.")
    for pattern, quantizer in rules.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"match.rules must be regular expressions; got {pattern!r}: {error}.") from None
        if quantizer is not None and not isinstance(quantizer, Quantizer):
            raise TypeError(
                f"match.rules[{pattern!r}] must be a Quantizer or None; got {quantizer!r}. "
                "As ScalarQuantizer(8), or a class of your own that inherits from Quantizer."
            )
    return Rules(tuple(rules.items()), everything)


def choose(model: Any, spec: Quantizer | Rules, owner: str) -> Chosen:
    """The leaves of the model with what the spec says of each; checked, with the path in every error."""
    rules = match({".*": spec}) if isinstance(spec, Quantizer) else spec
    if not isinstance(rules, Rules):
        raise TypeError(f"{owner}.spec must be a Quantizer or what match(...) makes; got {type(spec).__name__}.")
    found, structure = jax.tree_util.tree_flatten_with_path(model, is_leaf=is_quantized)
    leaves, fitting = [], dict.fromkeys((pattern for pattern, _ in rules.rules), 0)
    seen: dict[int, str] = {}
    for keys, value in found:
        path = jax.tree_util.keystr(keys, simple=True, separator=".")
        quantizer, reason = _decide(path, value, rules, fitting)
        if quantizer is not None and (first := seen.setdefault(id(value), path)) != path:
            raise ValueError(
                f"{owner}.spec must match a shared array once; got it at {first} and {path}. Tie weights by "
                "equinox.nn.Shared, or leave one of them out with None."
            )
        leaves.append(Leaf(path, value if quantizer is None else jnp.asarray(value), quantizer, reason))
    chosen = [leaf for leaf in leaves if leaf.quantizer is not None]
    could = [leaf.path for leaf in leaves if leaf.reason in ("", "no rule", "by rule")]
    for pattern, times in fitting.items():
        if not times:
            raise ValueError(
                f"{owner}.spec must match a weight with every pattern; got {pattern!r}, which fits no whole path. "
                f"There are: {', '.join(could) or 'no weights of two or more axes'}."
            )
    if not chosen:
        raise ValueError(f"{owner}.spec must choose at least one weight; got none of {', '.join(could)}.")
    _check(chosen, owner)
    return Chosen(tuple(leaves), structure)


def _decide(path: str, value: Any, rules: Rules, fitting: dict[str, int]) -> tuple[Quantizer | None, str]:
    if is_quantized(value):
        return None, "quantised already"
    if not is_stored(value):
        return None, "not an array"
    if not jnp.issubdtype(value.dtype, jnp.floating):
        return None, f"of type {value.dtype}"
    if value.ndim < 2:
        return None, "fewer than two axes"
    if BIAS_OR_NORM.search(path.lower()) and not rules.everything:
        return None, "a bias or norm"
    if value.size == 0:
        return None, "empty"
    fit = [(pattern, quantizer) for pattern, quantizer in rules.rules if re.fullmatch(pattern, path)]
    for pattern, _ in fit:
        fitting[pattern] += 1
    if not fit:
        return None, "no rule"
    quantizer = fit[0][1]
    return quantizer, "" if quantizer is not None else "by rule"


def _check(chosen: list[Leaf], owner: str) -> None:
    for path, value, quantizer, _ in chosen:
        if quantizer is not None:
            quantizer.check(path, value.shape)
        if isinstance(value, Tracer):
            continue
        largest = np.abs(np.asarray(value, np.float64)).max()
        if not np.isfinite(largest):
            raise ValueError(f"{owner}.model must be finite; got NaN or infinity in {path}. Has training diverged?")
        if largest > LARGEST:
            raise ValueError(
                f"{owner}.model must be at most {LARGEST:.2g} in size; got {largest:.2g} in {path}. "
                "Has training diverged?"
            )
