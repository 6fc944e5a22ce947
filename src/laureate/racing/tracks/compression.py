"""A model rounded to what fits into so many bytes, and judged on examples that it has not seen."""

import itertools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate.compression import dequantize, expected_bytes, freeze
from laureate.lab.claim import Settings
from laureate.lab.errors import UserError
from laureate.racing.tracks.clock import Clock, made, view

__all__ = ["facts", "trial"]

# What fits is looked for among these, and the largest that fits is taken.
CHOICES = {"num_bits": range(1, 17), "block": (1, 2, 4, 8, 16), "num_centroids": (4, 8, 16, 32, 64, 128, 256)}


def facts(problem: Any) -> dict[str, Any]:
    """The size, which is the budget."""
    problem = view(problem)
    whole = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(problem.model) if hasattr(leaf, "dtype"))
    size = int(problem.size)
    if not 0 < size < whole:
        raise UserError(f"trained.size must be between 1 and the model's own {whole} bytes; got {size}.")
    if len(problem.labels) < 8:
        raise UserError(f"trained.labels must be at least 8; got {len(problem.labels)}.")
    return {"budget": size}


def trial(key: Any, arm: Settings, problem: Any, scale: Settings) -> dict[str, np.ndarray]:
    """A seed draws half of the examples, and where codebooks begin."""
    clock, trained = Clock(scale), view(problem)
    half = len(trained.labels) // 2
    pick, run = jax.random.split(key)
    order = np.asarray(jax.random.permutation(pick, half))[: max(1, half // 2)]
    rows = order if scale.phase == "tune" else half + order
    inputs, labels = jnp.asarray(trained.inputs)[rows], jnp.asarray(trained.labels)[rows]
    for target in clock.targets():
        found = _finest(arm, trained.model, target)
        if found is None:
            clock.note(target, loss=np.nan, error=np.nan, **{f"chosen_{name}": np.nan for name in _names(arm)})
            continue
        chosen, quantizer, size = found
        small = clock.run(_small, trained.model, quantizer, run)
        loss, error = clock.run(_judge, trained.apply, small, inputs, labels, free=True)
        clock.note(size, loss=loss, error=error, **{f"chosen_{name}": value for name, value in chosen.items()})
    return clock.record()


def _names(arm: Settings) -> list[str]:
    return [name for name in CHOICES if name in arm.code]


def _finest(arm: Settings, model: Any, target: int) -> tuple[dict[str, int], Any, int] | None:
    """The settings of most bytes that fit; None where none does."""
    best = None
    for values in itertools.product(*(CHOICES[name] for name in _names(arm))):
        chosen = dict(zip(_names(arm), values, strict=True))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                quantizer = made(arm, **chosen)
                size = expected_bytes(model, quantizer)
        except (ValueError, UserWarning):  # not for this model: blocks that do not divide, more centroids than blocks
            continue
        if size <= target and (best is None or size > best[2]):
            best = chosen, quantizer, size
    return best


def _small(model: Any, quantizer: Any, key: Any) -> Any:
    """The numbers that ``quantize`` would pack, in one program."""
    return dequantize(freeze(model, quantizer, key))


def _judge(apply: Any, model: Any, inputs: Any, labels: Any) -> tuple[Any, Any]:
    logits = apply(model, inputs)
    loss = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))
    return loss, jnp.mean((jnp.argmax(logits, axis=-1) != labels).astype(logits.dtype))
