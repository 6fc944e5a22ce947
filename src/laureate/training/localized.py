"""LoCal+SGD: blocks below a boundary learn by a local rule during the forward pass, the others by gradients.

(Sarada Krithivasan, Sanchari Sen, Swagath Venkataramani, Anand Raghunathan, ICLR 2021 submission; Frontiers in
Neuroscience 15, 2022.)
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float, Int

from laureate._core import Status, as_key, require
from laureate.training.blocks import advance, trainable
from laureate.training.checks import check_blocks
from laureate.training.collapse import measure, renewed, reports, warn_of_collapse
from laureate.training.rules import AbstractRule, Frozen
from laureate.training.schedules import EpochReport, History
from laureate.training.sites import LAYERS, LinearLayer, local_block, unsupported
from laureate.training.supervision import WeakSupervision

__all__ = ["Boundary", "LocalizedInfo", "LocalizedState", "LocalizedTraining", "cross_entropy"]

RESET = (
    "Boundary {} to {}: {} entries of the optimiser's state were dropped or begun anew. Gradient clipping and weight "
    "decay act on the blocks from the boundary on alone."
)
NORMS = {"l2": jnp.linalg.norm, "l1": lambda d: jnp.sum(jnp.abs(d)), "max": lambda d: jnp.max(jnp.abs(d))}


def _python_int(index: Any) -> int:
    if type(index) is not int:
        raise TypeError(
            f"Boundary.index must be a Python int; got {index!r}. It selects the compiled program: move it between "
            "compiled steps, by end_epoch or move, and let a schedule return an int."
        )
    return index


class Boundary(eqx.Module):
    """How many blocks are local: known to the compiler, so that each boundary has a program of its own.

    index: a Python integer.
    """

    index: int = eqx.field(static=True, converter=_python_int)


class LocalizedState(NamedTuple):
    """What the next step needs.

    blocks: the network. boundary: static. optimiser: Optax's state, of the blocks from the boundary on. key: its bits.
    step: steps done. average: the running loss of the supervision. loss_sum, norm_sum, epoch_steps: of this epoch.
    reference: of each weight below the last block, its norm at the beginning of the epoch and its participation ratio
        when its block became local.
    """

    blocks: tuple[Any, ...]
    boundary: Boundary
    optimiser: Any
    key: Array
    step: Int[Array, ""]
    average: Float[Array, ""]
    loss_sum: Float[Array, ""]
    norm_sum: Float[Array, ""]
    epoch_steps: Int[Array, ""]
    reference: Float[Array, "weights 2"]


class LocalizedInfo(NamedTuple):
    """What a step reports.

    loss: before the update. factor: the supervision's. update_norm: ‖ΔW_T‖ of the transition block. cost: blocks that a
    gradient was computed for. status: DIVERGED where loss or update is not finite; then nothing is changed but the
    count of steps.
    """

    loss: Float[Array, ""]
    factor: Float[Array, ""]
    update_norm: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


def cross_entropy(outputs: Float[Array, "b c"], targets: Int[Array, " b"]) -> Float[Array, ""]:
    """The mean negative log-likelihood of integer labels under a softmax of the outputs."""
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(outputs, targets))


class LocalizedTraining(eqx.Module):
    """Cheaper training: no gradient is computed below a boundary that moves up through the network.

    With T the first block that learns by gradients, and a_l what leaves block l::

        l < T:   ΔW_l by the rule from a_{l−1} and z_l = W_l a_{l−1};   W_l ← W_l + s η ‖W_l‖ ΔW_l / ‖ΔW_l‖
        l >= T:  ∂loss/∂W_l by backpropagation that ends at T;          any Optax optimiser

    Below T nothing is kept for a backward pass. With ``Fixed(0)`` it is plain training, bit by bit, with ``Frozen()``
    it leaves early blocks as they are: that costs less than any rule, so compare with it first. Gradient clipping and
    weight decay of the optimiser act on the blocks from T on alone. Biases and normalisations below T stay as they are.
    A skip connection within a block is fine; blocks follow one another, so none can lead back below the boundary.

    schedule: where the boundary lies (``Staircase``, ``NormRule``, ...; any function of the history and the number of
        blocks). It never passes the last block.
    rule: ``Hebbian()``, ``Oja()``, ``RandomDirection()``, ``Frozen()`` or your own.
    optimiser: of Optax.
    loss: ``loss(outputs, targets) -> number``.
    supervision: what the loss makes of local updates; by default nothing.
    local_rate: η >= 0.
    normalise: by which norm ΔW is divided, "l2", "l1", "max", or None for ΔW as it is.
    relative: whether η is a share of ‖W‖ (the norm's own kind), which needs a norm.
    monotone: whether a boundary that moves back is an error.
    on_unsupported: what becomes of local blocks without linear layers, or with other parameters (attention, recurrent
        cells): an "error" that lists them, or "freeze".
    batch_statistics: what local blocks do that keep running statistics (``train``): "update" normalises by the batch
        and goes on averaging, "freeze" uses the running ones as they are. To be said where there is such a block.
    layers: kinds of linear layers that rules change.

    >>> import jax, jax.numpy as jnp, optax
    >>> from laureate.training import Chain, Dense, Hebbian, LocalizedTraining, Staircase
    >>> draw = jax.random.normal(jax.random.key(0), (3, 4, 4))
    >>> blocks = [Chain((Dense(d), jax.nn.relu)) for d in draw[:2]] + [Dense(draw[2])]
    >>> trainer = LocalizedTraining(Staircase(start=1, every=1), Hebbian(), optax.sgd(0.1), local_rate=1e-3)
    >>> state = trainer.init(jax.random.key(1), blocks)
    >>> state, info = trainer.step(state, jnp.ones((2, 4)), jnp.array([0, 3]))
    >>> state, report = trainer.end_epoch(state, history=())
    >>> report.boundary, state.boundary.index
    (0, 1)
    """

    schedule: Callable[[History, int], int]
    rule: AbstractRule
    optimiser: optax.GradientTransformation
    loss: Callable[[Array, Array], Array] = eqx.field(static=True, default=cross_entropy)
    supervision: WeakSupervision = WeakSupervision()
    local_rate: float | Array = 1e-4
    normalise: Literal["l2", "l1", "max"] | None = eqx.field(static=True, default="l2")
    relative: bool = eqx.field(static=True, default=True)
    monotone: bool = eqx.field(static=True, default=True)
    on_unsupported: Literal["error", "freeze"] = eqx.field(static=True, default="error")
    batch_statistics: Literal["update", "freeze"] | None = eqx.field(static=True, default=None)
    layers: tuple[LinearLayer, ...] = eqx.field(static=True, default=LAYERS)

    def __check_init__(self):
        owner = "LocalizedTraining"
        require(owner, "schedule", "callable", self.schedule, callable, "Try Fixed(0), Staircase() or NormRule().")
        remedy = "Try Hebbian(), Oja(), RandomDirection(), Frozen() or a subclass of AbstractRule."
        require(owner, "rule", "a local rule", self.rule, lambda r: isinstance(r, AbstractRule), remedy)
        transformation = lambda o: hasattr(o, "init") and hasattr(o, "update")  # noqa: E731
        require(owner, "optimiser", "an Optax optimiser", self.optimiser, transformation, "Try optax.sgd(0.1).")
        require(owner, "local_rate", "finite and >= 0", self.local_rate, lambda r: 0 <= r < math.inf)
        require(owner, "normalise", "'l2', 'l1', 'max' or None", self.normalise, lambda n: n is None or n in NORMS)
        remedy = "A share of ‖W‖ is meant for a direction of length one: name a norm, or set relative=False."
        require(owner, "relative", "False without a norm", self.relative, lambda r: not r or self.normalise, remedy)
        require(owner, "on_unsupported", "'error' or 'freeze'", self.on_unsupported, ("error", "freeze").__contains__)
        known = (None, "update", "freeze").__contains__
        require(owner, "batch_statistics", "'update', 'freeze' or None", self.batch_statistics, known)

    def init(self, key: Array, blocks: Sequence[Any]) -> LocalizedState:
        """The state before the first step, with the boundary that the schedule gives for the first epoch."""
        blocks = tuple(blocks)
        check_blocks(blocks, self.rule, self.layers, self.on_unsupported, self.batch_statistics)
        boundary = Boundary(self.schedule((), len(blocks)))
        self._within(boundary.index, len(blocks))
        dtype = jnp.result_type(*jax.tree.leaves(eqx.filter(blocks, eqx.is_inexact_array)), jnp.float32)
        nothing, none = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
        state = LocalizedState(
            blocks,
            boundary,
            self.optimiser.init(self._learning(blocks, boundary)[0]),
            jax.random.key_data(key),
            none,
            jnp.full((), jnp.inf, dtype),
            nothing,
            nothing,
            none,
            jnp.zeros((0, 2), dtype),
        )
        return state._replace(reference=measure(blocks[:-1], self.layers).astype(dtype))

    def step(self, state: LocalizedState, inputs: Array, targets: Any) -> tuple[LocalizedState, LocalizedInfo]:
        """One batch: a forward pass with local updates on the way, backpropagation from the loss to the boundary."""
        first = state.boundary.index  # T, the transition block
        key = as_key(state.key)
        hidden, below, directions = self.local_pass(key, state.step, state.blocks[:first], inputs)
        params, rest = self._learning(state.blocks, state.boundary)

        def objective(params: Any) -> tuple[Array, Any]:
            outputs, after = hidden, []
            for block in eqx.combine(params, rest)[first:]:
                outputs, block = advance(block, outputs)
                after.append(eqx.filter(trainable(block)[1], eqx.is_array))
            loss = self.loss(outputs, targets)
            remedy = "Weak supervision and the gradient need one number, such as a mean over the batch."
            require("LocalizedTraining", "loss", "a scalar", jnp.shape(loss), lambda shape: shape == (), remedy)
            return loss, after

        (loss, after), slopes = jax.value_and_grad(objective, has_aux=True)(params)  # of the blocks from T on alone
        updates, optimiser = self.optimiser.update(slopes, state.optimiser, params)
        learned = optax.apply_updates(params, updates)
        above = tuple(
            eqx.combine(p, a, r)
            for p, a, r in zip(
                learned[first:],  # pyright: ignore[reportIndexIssue, reportArgumentType]  (Optax: any tree)
                after,
                rest[first:],
                strict=True,
            )
        )

        s = self.supervision(loss, state.average)
        below = tuple(self._moved(block, moves, s) for block, moves in zip(below, directions, strict=True))
        norm = _length(updates[first]).astype(state.norm_sum.dtype)  # pyright: ignore[reportIndexIssue]
        fine = jnp.isfinite(loss) & jnp.isfinite(norm) & _finite(updates) & _finite(_moved_by_rule(below, directions))
        new = state._replace(
            blocks=below + above,
            optimiser=optimiser,
            average=self.supervision.average(loss, state.average),
            loss_sum=state.loss_sum + loss.astype(state.loss_sum.dtype),
            norm_sum=state.norm_sum + norm,
            epoch_steps=state.epoch_steps + 1,
        )
        new = _where(fine, new, state)._replace(step=state.step + 1)
        status = jnp.where(fine, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)
        return new, LocalizedInfo(loss, s, norm, jnp.asarray(len(above), jnp.int32), status)

    def local_pass(
        self, key: Array, step: Array, blocks: Sequence[Any], inputs: Array
    ) -> tuple[Array, list[Any], list[dict[str, Array | None]]]:
        """Through blocks that are local: the outputs of the last, the blocks after it, and ΔW of each by path."""
        after, directions = [], []
        training = self.batch_statistics != "freeze"
        for number, block in enumerate(blocks):
            asked = hasattr(block, "local") or not unsupported(block, self.layers)
            rule = self.rule if asked else Frozen()
            own = jax.random.fold_in(key, number)
            inputs, block, moves = local_block(own, step, rule, block, inputs, training=training, layers=self.layers)
            after.append(block)
            directions.append(moves)
        return inputs, after, directions

    def move(self, state: LocalizedState, boundary: int) -> tuple[LocalizedState, tuple[str, ...]]:
        """The state with another boundary, and which entries of the optimiser's state were dropped or begun anew.

        What the optimiser knows of blocks that go on learning by gradients is kept, to the last bit.
        """
        self._within(boundary, len(state.blocks))
        if self.monotone and boundary < state.boundary.index:
            raise ValueError(
                f"LocalizedTraining.schedule must be non-decreasing; got {boundary} after {state.boundary.index}. Set "
                "monotone=False to let blocks learn by gradients again."
            )
        if boundary == state.boundary.index:
            return state, ()
        fresh = self.optimiser.init(self._learning(state.blocks, Boundary(boundary))[0])
        old = dict(_by_path(state.optimiser))
        kept = {path for path, leaf in _by_path(fresh) if path in old and jnp.shape(old[path]) == jnp.shape(leaf)}
        paths, form = jax.tree_util.tree_flatten_with_path(fresh)
        named = [(jax.tree_util.keystr(path), leaf) for path, leaf in paths]
        optimiser = form.unflatten([old[path] if path in kept else leaf for path, leaf in named])
        reset = tuple(sorted((set(old) | {path for path, _ in named}) - kept))
        return state._replace(boundary=Boundary(boundary), optimiser=optimiser), reset

    def end_epoch(self, state: LocalizedState, history: History) -> tuple[LocalizedState, EpochReport]:
        """Between two epochs, on the host: ask the schedule for the next boundary, look for collapse, begin anew.

        history: the reports of all epochs before; append the one that is returned.
        """
        steps = int(state.epoch_steps)
        mean = lambda total: float(total) / steps if steps else math.nan  # noqa: E731
        now, zero = state.boundary.index, jnp.zeros_like(state.loss_sum)
        measured = measure(state.blocks[:-1], self.layers).astype(state.reference.dtype)
        weights = reports(state.blocks[:-1], now, measured, state.reference, self.layers)
        report = EpochReport(len(history), now, now, mean(state.loss_sum), mean(state.norm_sum))
        boundary = self.schedule((*history, report), len(state.blocks))
        state, reset = self.move(state, boundary)
        warned = warn_of_collapse(weights, float(self.local_rate))
        state = state._replace(
            loss_sum=zero,
            norm_sum=zero,
            epoch_steps=jnp.zeros_like(state.epoch_steps),
            reference=renewed(state.blocks[:-1], now, measured, state.reference, warned, self.layers),
        )
        note = RESET.format(now, boundary, len(reset)) if reset else ""
        return state, report._replace(next_boundary=boundary, reset=reset, weights=weights, note=note)

    def _learning(self, blocks: tuple[Any, ...], boundary: Boundary) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What gradients change, with None for local blocks, and the rest."""
        parts = [trainable(block) if i >= boundary.index else (None, block) for i, block in enumerate(blocks)]
        return tuple(part for part, _ in parts), tuple(rest for _, rest in parts)

    def _moved(self, block: Any, moves: dict[str, Array | None], s: Array) -> Any:
        paths, form = jax.tree_util.tree_flatten_with_path(block)
        named = [(jax.tree_util.keystr(path), leaf) for path, leaf in paths]
        if unknown := sorted(set(moves) - {path for path, _ in named}):
            raise ValueError(f"{type(block).__name__}.local must name arrays of its own by path; got {unknown}.")
        return form.unflatten([self._stepped(leaf, moves[path], s) if path in moves else leaf for path, leaf in named])

    def _stepped(self, weight: Array, direction: Array | None, s: Array) -> Array:
        if direction is None:
            return weight
        wide = jnp.promote_types(weight.dtype, jnp.float32)
        length = s * self.local_rate
        if self.normalise is not None:
            norm = NORMS[self.normalise]
            flat = direction.astype(wide).ravel()
            length = length / jnp.maximum(norm(flat), jnp.finfo(wide).tiny)
            length = length * norm(weight.astype(wide).ravel()) if self.relative else length
        return weight + (length * direction.astype(wide)).astype(weight.dtype)  # W + s η ‖W‖ ΔW / ‖ΔW‖

    def _within(self, boundary: int, num_blocks: int) -> None:
        _python_int(boundary)
        rule = f"within 0 and {num_blocks - 1}, the number of blocks less one"
        remedy = "The last block always learns by gradients."
        require("LocalizedTraining", "schedule", rule, boundary, lambda b: 0 <= b < num_blocks, remedy)


def _by_path(tree: Any) -> list[tuple[str, Array]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _length(tree: Any) -> Array:
    """‖·‖ of all arrays of a tree together."""
    squares = [jnp.sum(leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32)) ** 2) for leaf in jax.tree.leaves(tree)]
    return jnp.sqrt(sum(squares, jnp.zeros(())))


def _moved_by_rule(blocks: Sequence[Any], directions: Sequence[dict[str, Array | None]]) -> list[Any]:
    """The blocks that a rule moved; what it left alone may hold anything, an infinite mask for one."""
    return [
        block for block, moves in zip(blocks, directions, strict=True) if any(m is not None for m in moves.values())
    ]


def _finite(tree: Any) -> Array:
    """Whether all its numbers are finite."""
    arrays = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    return jnp.all(jnp.asarray([jnp.all(jnp.isfinite(leaf)) for leaf in arrays], bool))


def _where(fine: Array, new: LocalizedState, old: LocalizedState) -> LocalizedState:
    """The new state where all was finite; what is no array is the same in both."""
    return jax.tree.map(lambda a, b: jnp.where(fine, a, b) if eqx.is_array(a) else a, new, old)
