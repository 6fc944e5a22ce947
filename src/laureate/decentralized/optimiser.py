"""What the decentralised optimisers share: settings, checks of the trees they are given, the cost of an update."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from laureate._core import Status, require
from laureate.decentralized.gossip import Gossip

__all__ = ["DecentralizedOptimiser", "Info", "node_bytes"]

IDENTITY = optax.identity()  # one object: a new one would compile anew


Rate = Array | optax.Schedule


def _as_rate(value: float | Rate) -> Rate:
    return value if callable(value) else jnp.asarray(value, float)


def _as_local(local: optax.GradientTransformation | None) -> optax.GradientTransformation:
    return IDENTITY if local is None else local


def _keeps_sign(local: optax.GradientTransformation) -> bool:
    """Whether a first gradient of ones stays positive; ``optax.adam(lr)`` turns it into a step downhill."""
    with jax.ensure_compile_time_eval():
        ones = jnp.ones(2)
        try:
            moved, _ = local.update(ones, local.init(ones), ones)
            return not bool(np.all(np.asarray(moved) < 0))
        except Exception:  # it wants another tree than ours: nothing can be said
            return True


def _first(rate: Rate) -> Any:
    """A number itself, and of a schedule its first."""
    if not callable(rate):
        return rate
    with jax.ensure_compile_time_eval():
        return np.asarray(rate(jnp.zeros((), jnp.int32)))


class Info(NamedTuple):
    """How a run stands, see ``DecentralizedOptimiser.inspect``.

    cost: bytes sent by all nodes together in one update.
    status: ``Status.DIVERGED`` where a parameter is not finite.
    consensus: mean over the nodes of ‖x_i − x̄‖².
    num_nonfinite: nodes with parameters that are not finite.
    """

    cost: Array
    status: Array
    consensus: Array
    num_nonfinite: Array


class DecentralizedOptimiser(eqx.Module):
    """An optimiser in Optax's form over node-stacked trees: every leaf has a leading axis of n nodes.

    ``init(params) -> state``; ``update(grads, state, params) -> (updates, state)``, with a gradient a node, each taken
    at the node's own parameters on its own data. It goes into ``optax.chain`` and ``optax.apply_updates`` as any other.

    ``over("nodes")`` gives the same optimiser for one node's own trees inside ``jax.vmap`` or ``jax.shard_map`` over an
    axis of that name: nothing but ``ppermute`` along the graph's edges then leaves a node.

    gossip: the network, see ``Gossip``.
    learning_rate: α > 0; another value compiles nothing. Or a schedule, as of Optax: a function from the number of
        steps already made (``DeTAG`` and ``DeFacto`` make one a phase) to α.
    local: an Optax transformation between the direction and the step −α · local(direction), run by every node for
        itself, such as ``optax.trace(0.9)`` or ``optax.scale_by_adam()``.
    """

    gossip: Gossip
    learning_rate: Rate = eqx.field(converter=_as_rate)
    local: optax.GradientTransformation = eqx.field(static=True, default=IDENTITY, converter=_as_local, kw_only=True)

    def __check_init__(self):
        owner = type(self).__name__
        remedy = "Gossip(ring(8)), for example."
        require(owner, "gossip", "a Gossip", self.gossip, lambda g: isinstance(g, Gossip), remedy)
        positive = lambda a: bool(np.all(np.isfinite(a)) and np.all(np.asarray(a) > 0))  # noqa: E731
        first, rule = _first(self.learning_rate), "> 0 and finite"
        if callable(self.learning_rate):
            rule = "a schedule that begins >= 0 and finite"
            positive = lambda a: jnp.ndim(a) == 0 and bool(np.isfinite(a)) and float(a) >= 0  # noqa: E731
        require(owner, "learning_rate", rule, first, positive, "See optax.cosine_decay_schedule, for example.")
        remedy = "It steps downhill by itself: take optax.scale_by_adam() for optax.adam(lr), and learning_rate=lr."
        require(owner, "local", "a transformation that keeps the gradient's sign", self.local, _keeps_sign, remedy)

    @abc.abstractmethod
    def init(self, params: Any) -> Any:
        """The state before the first update."""

    @abc.abstractmethod
    def update(self, grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        """One round: what to add to the parameters, and the new state."""

    def over(self, axis: str | None) -> Any:
        """The same over a named axis, or (None) over stacked trees."""
        return eqx.tree_at(lambda o: o.gossip, self, self.gossip.over(axis), is_leaf=lambda x: isinstance(x, Gossip))

    def inspect(self, params: Any) -> Info:
        """Consensus, cost and health of stacked parameters. It looks at all nodes: for watching, not for a node."""
        self.check(params, stacked=True)
        square = jnp.zeros(())
        sound = jnp.ones(self.gossip.size, bool)
        for leaf in jax.tree.leaves(params):
            wide = leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))  # half precision does not hold the squares
            square += jnp.sum((wide - wide.mean(0, keepdims=True)) ** 2).astype(square.dtype)
            sound &= jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim)))
        bad = jnp.sum(~sound)
        status = jnp.where(bad > 0, Status.DIVERGED, Status.OK)
        return Info(jnp.asarray(self.over(None).sent(params), float), status, square / self.gossip.size, bad)

    @abc.abstractmethod
    def sent(self, params: Any) -> float:
        """Bytes that all nodes together send in one update of these parameters (the mean over a phase)."""

    def gossiped(self, params: Any, vectors: float) -> float:
        """``sent``, where so many vectors like the parameters cross each directed edge in an update."""
        return vectors * self.gossip.messages * node_bytes(params, self.gossip)

    def check(self, params: Any, stacked: bool | None = None) -> None:
        """Raise unless every leaf is floating and, where nodes are stacked, has their axis in front."""
        owner, size = type(self).__name__, self.gossip.size
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            name = jax.tree_util.keystr(path) or "params"
            if not jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating):
                raise TypeError(
                    f"{owner}: leaf {name} has dtype {jnp.asarray(leaf).dtype}; only floating leaves can be averaged. "
                    "Keep others out of params (equinox.partition)."
                )
            if (self.gossip.axis is None or stacked) and (jnp.ndim(leaf) == 0 or jnp.shape(leaf)[0] != size):
                raise ValueError(
                    f"{owner}: leaf {name} must have a leading axis of {size} nodes; got shape {jnp.shape(leaf)}. "
                    "stack(params, size) makes such trees."
                )
        if self.gossip.axis is not None and not stacked:
            present = jax.lax.axis_size(self.gossip.axis)
            rule = f"as long as the topology has nodes ({size})"
            remedy = "Start one process a node, or leave the axis out to hold all nodes in one."
            require(owner, f"axis {self.gossip.axis!r}", rule, present, lambda n: n == size, remedy)

    def check_gradients(self, grads: Any, params: Any) -> None:
        """Raise unless the gradients are like the parameters."""
        if params is None:
            raise ValueError(f"{type(self).__name__}.update needs the parameters: update(grads, state, params).")
        if jax.tree.structure(grads) != jax.tree.structure(params):
            raise ValueError(
                f"{type(self).__name__}.update: gradients must have the parameters' tree "
                f"{jax.tree.structure(params)}; got {jax.tree.structure(grads)}."
            )
        for (path, g), x in zip(jax.tree_util.tree_leaves_with_path(grads), jax.tree.leaves(params), strict=True):
            if jnp.shape(g) != jnp.shape(x):
                name = jax.tree_util.keystr(path) or "params"
                raise ValueError(
                    f"{type(self).__name__}.update: the gradient of {name} must have shape {jnp.shape(x)}; "
                    f"got {jnp.shape(g)}."
                )

    @property
    def scaled(self) -> optax.GradientTransformation:
        """The local transformation; with a schedule α times it, for the step's number is part of its memory."""
        rate = self.learning_rate
        return optax.chain(self.local, optax.scale_by_schedule(rate)) if callable(rate) else self.local

    def local_init(self, params: Any) -> Any:
        """The local optimiser's memory, a node each."""
        return self.scaled.init(params) if self.gossip.axis is not None else jax.vmap(self.scaled.init)(params)

    def local_step(self, direction: Any, memory: Any, params: Any) -> tuple[Any, Any]:
        """−α · local(direction), every node for itself: a clipping by norm must not see the others."""
        update = self.scaled.update if self.gossip.axis is not None else jax.vmap(self.scaled.update)
        moved, memory = update(direction, memory, params)
        if callable(rate := self.learning_rate):
            return jax.tree.map(lambda d, given: -d.astype(given.dtype), moved, direction), memory
        return jax.tree.map(lambda d: -rate.astype(d.dtype) * d, moved), memory


def node_bytes(params: Any, gossip: Gossip) -> int:
    """Bytes of one node's parameters."""
    total = sum(leaf.size * leaf.dtype.itemsize for leaf in map(jnp.asarray, jax.tree.leaves(params)))
    return total if gossip.axis is not None else total // gossip.size
