"""One call for every rule: decide, tune, decide, until one network is left. The supernet may be in any framework."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from laureate._core import require
from laureate.architecture.selection import AbstractSelection, SelectionInfo, SelectionState
from laureate.architecture.space import Genotype, Space

__all__ = ["Decision", "SelectionResult", "TieWarning", "select"]


class TieWarning(UserWarning):
    """Candidates could not be told apart by their scores, and the rule for ties decided."""


class Decision(NamedTuple):
    """A decision in the history of a selection, in plain numbers, with the weights after it: a snapshot.

    kind: "operation" or "edge". place, chosen, importance, tied: as in `SelectionInfo`. weights: after it and after
    the tuning that follows it. score: of these weights, where snapshots were asked for, else None.
    """

    kind: str
    place: int
    chosen: int
    importance: np.ndarray
    tied: int
    weights: np.ndarray
    score: float | None


class SelectionResult(NamedTuple):
    """One architecture, and how it came about.

    genotype: by names, None while edges are undecided. choice: by numbers, -1 where undecided. state: to go on from.
    history: every decision of this call. num_scores: networks scored for them.
    """

    genotype: Genotype | None
    choice: tuple[int, ...]
    state: SelectionState
    history: tuple[Decision, ...]
    num_scores: int


def select(
    key: Key[Array, ""],
    selection: AbstractSelection,
    alpha: Float[Array, "edges ops"] | None = None,
    score_fn: Callable[..., Any] | None = None,
    tune_fn: Callable[..., Any] | None = None,
    *,
    state: SelectionState | None = None,
    num_decisions: int | None = None,
    snapshots: bool = False,
) -> SelectionResult:
    """Turn a supernet into one network: decide every edge, then drop what is too much, tuning in between.

    key: of the order, the ties and the tuning. Decision number t has a key of its own, whatever came before.
    selection: the rule: `PerturbationSelection`, `MagnitudeSelection`, `RandomSelection` or one of your own.
    alpha: the logits of the supernet as it was trained; without, all operations weigh the same.
    score_fn: ``score_fn(weights) -> float`` of a NumPy array ``[edges, ops]``: all that is asked of a supernet, in any
        framework. With ``ties="loss"`` it returns a pair, (score, loss). Where it has a method ``many``, that is called
        once with all weights of a decision, ``[candidates, edges, ops]``, and returns an array, or a pair of arrays.
    tune_fn: ``tune_fn(key, weights, state) -> None | alpha``, called after each projection (one decision for each cell
        type): trains the supernet on, decided rows as they are. A new alpha is taken over, but for decided rows, which
        must be the old.
    state: that an earlier call had reached (``result.state``): with the same key the rest is the same.
    num_decisions: how many to make now; None: all that remain.
    snapshots: score the supernet after each decision, for ``pareto``.

    >>> from laureate.architecture import PerturbationSelection, Space
    >>> rule = PerturbationSelection(Space([("skip", "conv3"), ("skip", "conv3")]), criterion="loss")
    >>> loss = lambda weights: (weights[0, 0] - 1) ** 2 + (weights[1, 1] - 1) ** 2
    >>> found = select(jax.random.key(0), rule, score_fn=loss)
    >>> found.genotype.ops, found.num_scores
    (('skip', 'conv3'), 4)
    """
    space, owner = selection.space, "select"
    wanted = selection.uses_scores or snapshots
    require(
        owner, "score_fn", f"a function, for {type(selection).__name__}", score_fn, lambda f: callable(f) or not wanted
    )
    require(owner, "tune_fn", "None or a function", tune_fn, lambda f: f is None or callable(f))
    if state is None:
        state = selection.init(jax.random.fold_in(key, 0), alpha)
    scorer = _Scorer(selection, score_fn)
    if selection.uses_scores and int(state.step) == 0:
        scorer.refuse_renormalisation(np.asarray(selection.weights(state)))
    total, first = space.num_edges + len(state.drops), int(state.step)
    require(
        owner,
        "num_decisions",
        "None or an integer >= 0",
        num_decisions,
        lambda n: n is None or (isinstance(n, int) and n >= 0),
    )
    last = total if num_decisions is None else min(total, first + num_decisions)
    ends, history = _projections(space, np.asarray(state.drops)), []
    for step in range(first, last):
        pick_key, tune_key = jax.random.split(jax.random.fold_in(key, step + 1))
        kind = "operation" if step < space.num_edges else "edge"
        propose, decide = (
            (selection.proposals, selection.decide)
            if kind == "operation"
            else (selection.edge_proposals, selection.drop)
        )
        scores = scorer(state, propose(state), kind) if selection.uses_scores else (None, None)
        state, info = decide(pick_key, state, *scores)
        _tell_ties(kind, info, selection.ties)
        if tune_fn is not None and step in ends:
            weights = np.asarray(selection.weights(state))
            state = state._replace(alpha=_tuned(tune_fn(tune_key, weights, state), state))
        weights = np.asarray(selection.weights(state))
        told = [kind, int(info.place), int(info.chosen), np.asarray(info.importance), int(info.tied), weights]
        history.append(Decision(*told, scorer.one(weights, f"after decision {step}")[0] if snapshots else None))  # pyright: ignore
    choice = tuple(np.asarray(state.choice).tolist())
    genotype = space.genotype(choice, np.asarray(state.kept).tolist()) if int(state.step) == total else None
    return SelectionResult(genotype, choice, state, tuple(history), scorer.count)


def _projections(space: Space, drops: np.ndarray) -> set[int]:
    """The decisions after which the supernet is tuned: one edge of each cell type, then one crowded node of each."""
    kinds = space.cells or ("",) * space.num_edges
    # The last drop of each node, in their order; then of each turn of nodes.
    last = [i for i in range(len(drops)) if i + 1 == len(drops) or drops[i + 1] != drops[i]]
    turns = _turns([kinds[inputs[0]] for inputs in space.crowded])
    return set(_turns(kinds)) | {space.num_edges + last[turn] for turn in turns}


def _turns(kinds: Sequence[str]) -> list[int]:
    """Where the p-th of every cell type has had its turn; a type may have fewer than another."""
    sizes = [list(kinds).count(kind) for kind in set(kinds)]
    turns = [sum(size > place for size in sizes) for place in range(max(sizes, default=0))]
    return (np.cumsum(turns, dtype=int) - 1).tolist()


class _Scorer:
    """Asks the user's function, counts, and refuses what is no score."""

    def __init__(self, selection: AbstractSelection, score_fn: Callable[..., Any] | None):
        self.selection, self.score_fn, self.count = selection, score_fn, 0

    def __call__(self, state: SelectionState, proposals: Array, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
        """(scores, losses or None) of a decision's candidates; those that may not be chosen are left at 0."""
        selection, space = self.selection, self.selection.space
        if kind == "operation":
            edge = int(state.order[state.step])
            candidates = np.flatnonzero(selection.allowed[edge])
            names = {i: f"edge {edge} without {space.ops[edge][i]!r}" for i in candidates}
        else:
            edges = space.crowded[int(state.drops[state.step - space.num_edges])]
            names = {i: f"the supernet without edge {edge}" for i, edge in enumerate(edges) if state.kept[edge]}
        given = np.asarray(proposals)
        if hasattr(self.score_fn, "many"):
            found = self._many(given, names)
        else:
            found = {i: self.one(given[i], name) for i, name in names.items()}
            self.count += len(names)
        scores, losses = np.zeros((2, len(given)))
        here = list(found)
        scores[here], losses[here] = (_told_apart(np.asarray(column)) for column in zip(*found.values(), strict=True))  # pyright: ignore
        return scores, losses if selection.ties == "loss" else None

    def _many(self, given: np.ndarray, names: dict[Any, str]) -> dict[int, tuple[float, float]]:
        answer = self.score_fn.many(given)  # type: ignore[union-attr]
        columns = answer if self.selection.ties == "loss" and isinstance(answer, tuple) else (answer,)
        rule = f"one score for each of {len(given)} weights"
        for column in columns:
            require("select", "score_fn.many", rule, np.shape(column), lambda shape: shape == (len(given),))
        self.count += len(names)
        rows = zip(*(np.asarray(column) for column in columns), strict=True)
        answers = [row if len(columns) > 1 else row[0] for row in rows]
        return {i: self._number(answers[i], name) for i, name in names.items()}

    def one(self, weights: np.ndarray, name: str) -> tuple[float, float]:
        """(score, loss) of one array of weights; the loss is 0 where the rule for ties asks for none."""
        return self._number(self.score_fn(weights), name)  # type: ignore[misc]

    def _number(self, answer: Any, name: str) -> tuple[float, float]:
        pair = self.selection.ties == "loss"
        if pair and not (isinstance(answer, tuple) and len(answer) == 2):
            raise TypeError(
                f"select.score_fn must return a pair (score, loss) with ties='loss'; got {type(answer).__name__} for "
                f"{name}. Choose another rule for ties, or return both."
            )
        numbers = []
        for number in answer if pair else (answer,):
            if np.shape(number) != () or isinstance(number, str | bytes | tuple | dict | None.__class__):
                raise TypeError(
                    f"select.score_fn must return one number; got {type(number).__name__} of shape {np.shape(number)} "  # pyright: ignore
                    f"for {name}. Average over the validation examples."
                )
            value = float(number)
            if not np.isfinite(value):
                raise ValueError(
                    f"select.score_fn must return a finite number; got {value} for {name}. A supernet that diverged "
                    "cannot be searched: train it with a smaller learning rate."
                )
            numbers.append(value)
        return numbers[0], numbers[1] if pair else 0.0

    def refuse_renormalisation(self, weights: np.ndarray) -> None:
        """A supernet that normalises the weights by itself undoes the removal of an operation.

        Rows are scaled, each by another power of two; a loss that stays the same to the last bit has not seen it. An
        accuracy may stay the same by chance, and tells nothing.
        """
        pair = self.selection.ties == "loss"
        if not pair and getattr(self.selection, "criterion", "") != "loss":
            return
        scale = (2.0 ** (1 + np.arange(len(weights)) % 3)).astype(weights.dtype)
        losses = [self.one(w, "the whole supernet")[int(pair)] for w in (weights, weights * scale[:, None])]
        if losses[0] == losses[1]:
            raise ValueError(
                f"select.score_fn must use the weights as they are; got the same loss {losses[0]} with rows multiplied "
                "by 2, 4 and 8. Does the supernet normalise them? Then removing an operation only strengthens the "
                "others: take the normalisation out, weights are given normalised."
            )


def _told_apart(scores: np.ndarray) -> np.ndarray:
    """The scores, less their mean where single precision would take different ones for equal: a sum of many losses."""
    exact = jnp.result_type(float)
    return scores if len(set(scores.astype(exact))) == len(set(scores)) else scores - scores.mean()


def _tuned(answer: Any, state: SelectionState) -> Array:
    """The alpha that tuning returned, if any, once it is known to fit."""
    if answer is None:
        return state.alpha
    given, wanted = jax.tree.structure(answer), jax.tree.structure(state.alpha)
    if given != wanted:
        paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(answer)]
        raise TypeError(
            f"select.tune_fn must return None or alpha, one array; got a {type(answer).__name__} with leaves at "
            f"{', '.join(paths) or 'no path'}. Keep the parameters on your side and return alpha."
        )
    alpha = jnp.asarray(answer, state.alpha.dtype)
    rule = f"alpha of shape {state.alpha.shape}"
    require("select", "tune_fn's answer", rule, alpha.shape, lambda shape: shape == state.alpha.shape)
    require("select", "tune_fn's answer", "finite", alpha, lambda a: bool(jnp.isfinite(a).all()))
    decided = np.asarray(state.choice >= 0)
    moved = np.flatnonzero(decided & (np.asarray(alpha) != np.asarray(state.alpha)).any(1))
    if len(moved):
        raise ValueError(
            f"select.tune_fn must leave decided rows alone; got another alpha[{moved[0]}], and edge {moved[0]} is "
            "decided. Take weights from effective_weights, whose gradient is zero there, and no weight decay on them."
        )
    return alpha


def _tell_ties(kind: str, info: SelectionInfo, rule: str) -> None:
    """Say that scores did not make a decision."""
    tied, count = int(info.tied), int(np.isfinite(np.asarray(info.importance)).sum())
    if tied > 1:
        where = f"ops within 0 of each other on edge {int(info.place)}"
        if kind == "edge":
            where = f"edges within 0 of each other at crowded node {int(info.place)}"
        warnings.warn(
            f"{tied} of {count} {where}: the scores do not decide, but the rule ties={rule!r}. Score more validation "
            "examples, or by the loss.",
            TieWarning,
            stacklevel=3,
        )
