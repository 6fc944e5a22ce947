"""What every rule promises that turns a supernet into one network."""

import warnings
from collections.abc import Collection
from functools import partial
from typing import Any

import jax
import numpy as np

from laureate._core import Status
from laureate.architecture import TieWarning, select
from laureate.testing._checks import (
    Check,
    Program,
    every_number_is_used,
    is_float,
    keys_used_once,
    no_retrace,
    numbers_as_arrays,
    row,
    with_nan,
)
from laureate.testing._keys import KeyRecorder

__all__ = ["check_architecture_selection"]


def check_architecture_selection(
    selection: Any, *, unused: Collection[str] = (), skip: Collection[str] = ()
) -> list[str]:
    """Check ``init``, ``decide`` and ``select`` of a rule, ours or your own (an ``AbstractSelection``).

    selection: over a space with at least two edges and no nodes.
    unused: ends of paths (".floor") of numbers that rightly change no decision here.
    skip: properties to leave out: those in the list that is returned.

    Properties: every edge is decided once, by an operation that may be chosen, and its row becomes one-hot; cost and
    status set, and scores that are not finite reported; no retrace for other numbers; every number of the rule changes
    what it decides or tells; vmap equals a loop; the same key
    gives the same bits; no key is used twice; a state can be saved, and going on from it is the whole.
    """
    check = Check(type(selection).__name__, skip)
    space = selection.space
    generator = np.random.default_rng(0)
    alpha = generator.normal(size=space.shape).astype(np.float32)
    scores = generator.uniform(size=space.shape[1]).astype(np.float32)
    key = jax.random.key(0)
    every = Program(lambda rule, key, alpha, scores: rule.decide(key, rule.init(key, alpha), scores))
    with_numbers = numbers_as_arrays(selection)
    program = partial(every, with_numbers)
    first = state, info = program(key, alpha, scores)
    if check.wants("one edge a decision"):
        edge = int(info.place)
        decided = np.flatnonzero(np.asarray(state.choice) >= 0).tolist()
        check.require(decided == [edge], f"edge {edge} decided, and no other", decided, "")
        check.require(selection.allowed[edge, int(info.chosen)], "an operation that may be chosen", info.chosen, "")
        weights = np.asarray(selection.weights(state))
        one_hot = np.eye(space.shape[1])[int(info.chosen)]
        check.require((weights[edge] == one_hot).all(), "a row that is one-hot", weights[edge], "")
    if check.wants("report"):
        expected = int(selection.allowed[int(info.place)].sum()) if selection.uses_scores else 0
        check.require(int(info.cost) == expected, f"a cost of {expected}", info.cost, "Networks scored.")
        check.require(int(info.status) == Status.OK, "status OK", info.status, "All scores are finite.")
    if selection.uses_scores and check.wants("divergence"):
        for index in (..., np.flatnonzero(selection.allowed[int(info.place)])[-1]):  # all, and a single one
            _, ill = program(key, alpha, with_nan(scores, index))
            check.require(int(ill.status) == Status.DIVERGED, "status DIVERGED where scores are nan", ill.status, "")
    no_retrace(check, every, [lambda: program(jax.random.key(1), alpha + 1, scores * 2)], 1)
    if any(map(is_float, jax.tree.leaves(with_numbers))):
        every_number_is_used(check, with_numbers, lambda which: every(which, key, alpha, scores), unused)
    if check.wants("same key, same bits"):
        check.bits(program(key, alpha, scores), first, "the same decision from the same key", "")
    if check.wants("vmap equals a loop"):
        keys = jax.random.split(key, 3)
        together = Program(jax.vmap(lambda key: selection.decide(key, selection.init(key, alpha), scores)))(keys)
        for number in range(3):
            (state, info), (alone, alone_info) = row(together, number), program(keys[number], alpha, scores)
            found, expected = (state, info.chosen, info.tied), (alone, alone_info.chosen, alone_info.tied)
            check.close(found, expected, 1e-6, "each decision as it is alone", "")
    value = lambda weights: float((weights * np.arange(1, space.shape[1] + 1)).sum() + weights[0].max())  # noqa: E731
    with warnings.catch_warnings(), KeyRecorder() as recorder:
        warnings.simplefilter("ignore", TieWarning)
        whole = select(jax.random.key(7), selection, alpha, value)
        keys_used_once(check, recorder)
        if check.wants("every edge once"):
            places = [decision.place for decision in whole.history]
            check.require(sorted(places) == list(range(space.num_edges)), "every edge once", places, "")
        if check.wants("going on is the whole"):
            part = select(jax.random.key(7), selection, alpha, value, num_decisions=1)
            rest = select(jax.random.key(7), selection, alpha, value, state=check.saved(part.state))
            check.bits(rest.state, whole.state, "the same end after saving and going on", "")
    return check.finish()
