"""From a supernet to one network, decision by decision: what all rules share. ``select`` is the loop around it."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import Status, require
from laureate.architecture.space import Space
from laureate.architecture.weights import check_alpha, effective_weights, without_edges, without_operations

__all__ = ["AbstractSelection", "SelectionInfo", "SelectionState"]

Order = Literal["random", "fixed", "reverse"] | Callable[[Array, Space], Sequence[int]]
Ties = Literal["random", "first", "loss"]


class SelectionState(NamedTuple):
    """What the next decision needs.

    alpha: the logits. choice: the number of each edge's operation, -1 while undecided. kept: False for dropped edges.
    order: the edges in the order of their decisions. drops: after them, of which crowded node an edge is dropped next.
    step: decisions made.
    """

    alpha: Float[Array, "edges ops"]
    choice: Int[Array, " edges"]
    kept: Bool[Array, " edges"]
    order: Int[Array, " edges"]
    drops: Int[Array, " drops"]
    step: Int[Array, ""]


class SelectionInfo(NamedTuple):
    """What a decision reports.

    place: the edge that was decided, or the crowded node that lost an edge. chosen: the operation's number, or the edge
    dropped. importance: of each candidate; -inf for what may not be chosen. tied: candidates that no score told apart
    from the chosen one, itself included. cost: networks scored. status: DIVERGED where a score, or a
    loss that breaks ties, is not finite.
    """

    place: Int[Array, ""]
    chosen: Int[Array, ""]
    importance: Float[Array, " candidates"]
    tied: Int[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def _in_turn(before: Int[Array, " n"], kinds: Sequence[str]) -> Int[Array, " n"]:
    """One of every cell type in turn: sorted by its place among those of its type, then by type."""
    types = jnp.asarray([sorted(set(kinds)).index(kind) for kind in kinds], jnp.int32)
    place = jnp.sum((types == types[:, None]) & (before < before[:, None]), axis=1)
    return jnp.argsort(place * len(set(kinds)) + types).astype(jnp.int32)


class AbstractSelection(eqx.Module):
    """The base of the rules that turn a supernet into one network: only what makes a candidate important differs."""

    space: Space
    exclude: tuple[str, ...] = eqx.field(default=(), static=True, kw_only=True)
    order: Order = eqx.field(default="random", static=True, kw_only=True)
    ties: Ties = eqx.field(default="random", static=True, kw_only=True)
    uses_scores: eqx.AbstractClassVar[bool]

    def __check_init__(self):
        owner = type(self).__name__
        require(owner, "space", "a Space", self.space, lambda s: isinstance(s, Space), "Space.of(supernet) makes one.")
        orders = "'random', 'fixed', 'reverse' or a function (key, space) -> edges"
        known = ("random", "fixed", "reverse")
        require(owner, "order", orders, self.order, lambda order: callable(order) or order in known)
        require(owner, "ties", "'random', 'first' or 'loss'", self.ties, lambda t: t in ("random", "first", "loss"))
        require(owner, "exclude", "a tuple of names", self.exclude, lambda names: isinstance(names, tuple))
        known = {name for ops in self.space.ops for name in ops}
        require(owner, "exclude", f"among {', '.join(sorted(known))}", self.exclude, lambda names: known >= set(names))
        for edge, allowed in enumerate(self.allowed):
            rule = f"such that edge {edge} has an operation left of {self.space.ops[edge]}"
            require(owner, "exclude", rule, self.exclude, lambda _, left=allowed: bool(left.any()))

    @abc.abstractmethod
    def importance(
        self, key: Key[Array, ""], strength: Float[Array, " k"], scores: Float[Array, " k"]
    ) -> Float[Array, " k"]:
        """How much each candidate is needed: of operations the most important is taken, of edges the least dropped.

        strength: softmax(α) of the operations; of an edge, the largest of those that may be chosen.
        scores: of the supernet without the candidate, up to a constant; zeros where the rule does not use them.
        """

    @property
    def allowed(self) -> np.ndarray:
        """Which operations may be chosen, bool ``[edges, ops]``."""
        names = np.zeros(self.space.shape, bool)
        for edge, ops in enumerate(self.space.ops):
            names[edge, : len(ops)] = [name not in self.exclude for name in ops]
        return names

    def init(self, key: Key[Array, ""], alpha: Float[Array, "edges ops"] | None = None) -> SelectionState:
        """Nothing is decided yet; the order of all decisions is drawn here. Without alpha it is zero everywhere."""
        space = self.space
        alpha = jnp.zeros(space.shape) if alpha is None else check_alpha(type(self).__name__, space, alpha)
        edge_key, node_key = jax.random.split(key)
        kinds = space.cells or ("",) * space.num_edges
        order = _in_turn(self._priority(edge_key), kinds)
        nodes = jnp.arange(len(space.crowded))
        if self.order == "random":
            nodes = jax.random.permutation(node_key, nodes)
        elif self.order == "reverse":
            nodes = nodes[::-1]
        nodes = _in_turn(nodes, [kinds[inputs[0]] for inputs in space.crowded])
        # A node that is begun is finished before the next.
        too_many = np.asarray([len(inputs) - space.keep for inputs in space.crowded], int)
        drops = jnp.repeat(nodes, jnp.asarray(too_many)[nodes], total_repeat_length=int(too_many.sum()))
        undecided = jnp.full(space.num_edges, -1, jnp.int32)
        return SelectionState(alpha, undecided, undecided < 0, order, drops, jnp.asarray(0, jnp.int32))

    def _priority(self, key: Array) -> Array:
        """The place of each edge in the order of decisions, before cell types take turns."""
        edges = self.space.num_edges
        if self.order == "random":
            return jax.random.permutation(key, edges)
        if not callable(self.order):
            return jnp.arange(edges) if self.order == "fixed" else jnp.arange(edges)[::-1]
        found = [int(edge) for edge in self.order(key, self.space)]
        rule = f"a function that gives each of 0..{edges - 1} once"
        require(type(self).__name__, "order", rule, found, lambda given: sorted(given) == list(range(edges)))
        return jnp.argsort(jnp.asarray(found))

    def weights(self, state: SelectionState) -> Float[Array, "edges ops"]:
        """What the supernet is applied with now: see ``effective_weights``."""
        return effective_weights(self.space, state.alpha, state.choice, state.kept)

    def proposals(self, state: SelectionState) -> Float[Array, "ops edges ops"]:
        """The weights to score for the next edge: the present ones without each of its operations in turn."""
        return without_operations(self.weights(state), state.order[state.step])

    def decide(
        self,
        key: Key[Array, ""],
        state: SelectionState,
        scores: Float[Array, " ops"] | np.ndarray | None = None,
        losses: Float[Array, " ops"] | np.ndarray | None = None,
    ) -> tuple[SelectionState, SelectionInfo]:
        """Give the next edge its operation, from the scores of ``proposals``. For use within jit and vmap, too."""
        edge = state.order[state.step]
        strength = effective_weights(self.space, state.alpha)[edge]
        allowed = jnp.asarray(self.allowed)[edge]
        chosen, info = self._pick(key, strength, allowed, scores, losses, 1)
        choice = state.choice.at[edge].set(chosen)
        return state._replace(choice=choice, step=state.step + 1), info._replace(place=edge)

    def edge_proposals(self, state: SelectionState) -> Float[Array, "inputs edges ops"]:
        """The weights to score for the next drop: the present ones without each edge into its node in turn."""
        return without_edges(self.weights(state), self._inputs(state)[1])

    def _inputs(self, state: SelectionState) -> tuple[Array, Array]:
        """The next crowded node and the edges into it; short lists are filled up with -1, which is no edge."""
        longest = max(map(len, self.space.crowded), default=1)
        padded = [[*edges, *[-1] * (longest - len(edges))] for edges in self.space.crowded]
        node = state.drops[state.step - self.space.num_edges]
        return node, jnp.asarray(padded, jnp.int32)[node]

    def drop(
        self,
        key: Key[Array, ""],
        state: SelectionState,
        scores: Float[Array, " inputs"] | np.ndarray | None = None,
        losses: Float[Array, " inputs"] | np.ndarray | None = None,
    ) -> tuple[SelectionState, SelectionInfo]:
        """Take the least important edge from the next crowded node, from the scores of ``edge_proposals``."""
        node, edges = self._inputs(state)
        soft = jnp.where(self.allowed, effective_weights(self.space, state.alpha), 0.0)
        there = (edges >= 0) & state.kept[edges]
        index, info = self._pick(key, soft.max(1)[edges], there, scores, losses, -1)
        kept = state.kept.at[edges[index]].set(False)
        return state._replace(kept=kept, step=state.step + 1), info._replace(place=node, chosen=edges[index])

    def _pick(
        self, key: Array, strength: Array, allowed: Array, scores: Any, losses: Any, sign: int
    ) -> tuple[Array, SelectionInfo]:
        """The most (sign 1) or least (sign -1) important candidate; ties by the rule."""
        rule_key, tie_key = jax.random.split(key)
        exact = jnp.result_type(float)  # alpha may have half the bits, in which accuracies would be equal
        strength = strength.astype(exact)
        scores = jnp.zeros_like(strength) if scores is None else jnp.asarray(scores, exact)
        importance = self.importance(rule_key, strength, scores)
        candidates = jnp.where(allowed, sign * importance, -jnp.inf)
        tied = allowed & (candidates >= candidates.max())
        chance = jnp.zeros_like(strength) if self.ties == "first" else jax.random.uniform(tie_key, strength.shape)
        finite = jnp.isfinite(importance)
        if self.ties == "loss" and losses is not None:  # what raises the loss more is needed more; then chance
            second = jnp.where(tied, sign * jnp.asarray(losses, exact), -jnp.inf)
            tied, finite = tied & (second >= second.max()), finite & jnp.isfinite(jnp.asarray(losses, exact))
        chosen = jnp.argmax(jnp.where(tied, chance, -1.0)).astype(jnp.int32)
        fine = jnp.all(jnp.where(allowed, finite, True))
        status = jnp.where(fine, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)
        shown, count = jnp.where(allowed, importance, -jnp.inf), lambda which: jnp.sum(which).astype(jnp.int32)
        cost = count(allowed) if self.uses_scores else count(False)
        return chosen, SelectionInfo(chosen, chosen, shown, count(tied), cost, status)
