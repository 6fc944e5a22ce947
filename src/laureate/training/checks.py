"""What may be trained: a list of blocks is looked through before the first step, not after hours."""

from typing import Any

import equinox as eqx
import jax

from laureate._core import require
from laureate.training.blocks import keeps_statistics
from laureate.training.rules import AbstractRule, Frozen
from laureate.training.sites import LinearLayer, unsupported

__all__ = ["check_blocks"]

OWNER = "LocalizedTraining"


def check_blocks(
    blocks: tuple[Any, ...],
    rule: AbstractRule,
    layers: tuple[LinearLayer, ...],
    on_unsupported: str,
    batch_statistics: str | None,
) -> None:
    """Raise with the numbers of the blocks that cannot be trained so, and why."""
    require(OWNER, "blocks", "two or more", len(blocks), lambda n: n >= 2, "A boundary lies between blocks.")
    kinds = [type(block).__name__ for block in blocks]
    remedy = "A block takes a batch: wrap what takes one example in PerExample, several layers in Chain."
    require(OWNER, "blocks", "callable", kinds, lambda _: all(callable(block) for block in blocks), remedy)
    _own_arrays(blocks)
    if on_unsupported == "error" and not isinstance(rule, Frozen):
        bad = [
            f"{number} ({kinds[number]}: {', '.join(found)})"
            for number, block in enumerate(blocks[:-1])
            if not hasattr(block, "local") and (found := unsupported(block, layers))
        ]
        remedy = "Give them a method local(key, step, rule, inputs), or set on_unsupported='freeze'."
        require(OWNER, "blocks", "made of linear layers and normalisations", bad, lambda b: not b, remedy)
    keeping = [number for number, block in enumerate(blocks[:-1]) if keeps_statistics(block)]
    remedy = f"Blocks {keeping} keep running statistics: say what they do while they are local."
    holds = lambda how: how is not None or not keeping  # noqa: E731
    require(OWNER, "batch_statistics", "'update' or 'freeze'", batch_statistics, holds, remedy)


def _own_arrays(blocks: tuple[Any, ...]) -> None:
    """No array may stand in two blocks: it would be two after the first step, or be fought over."""
    first: dict[int, int] = {}
    for number, block in enumerate(blocks):
        for leaf in jax.tree.leaves(eqx.filter(block, eqx.is_inexact_array)):
            if first.setdefault(id(leaf), number) != number:
                raise ValueError(
                    f"{OWNER}.blocks must not share arrays; got one of shape {list(leaf.shape)} in blocks "
                    f"{first[id(leaf)]} and {number}. Local and gradient updates would fight over it: put both layers "
                    "into one block."
                )
