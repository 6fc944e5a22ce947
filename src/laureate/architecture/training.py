"""Training a supernet: weights alone, or weights and alpha in turn (first-order DARTS), with decided edges frozen."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from laureate._core import Status, require
from laureate.architecture.space import Space
from laureate.architecture.supernet import cross_entropy
from laureate.architecture.weights import check_alpha, effective_weights
from laureate.loops import run

__all__ = ["SupernetTraining", "SupernetTrainingInfo", "SupernetTrainingState", "train_supernet"]


class SupernetTrainingState(NamedTuple):
    """What training carries.

    params: the supernet's parameters. net_state: its own state, such as running statistics. alpha: [edges, ops], the
    logits of the operations. optimiser_state, alpha_state: Optax's, of the parameters and of alpha; the second is None
    where alpha is fixed.
    """

    params: Any
    net_state: Any
    alpha: Float[Array, "edges ops"]
    optimiser_state: Any
    alpha_state: Any


class SupernetTrainingInfo(NamedTuple):
    """What a step reports.

    loss: of the training batch, before the step. cost: gradients computed. status: DIVERGED where the loss is not
    finite; the step is taken all the same.
    """

    loss: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class SupernetTraining(eqx.Module):
    """Train a supernet's weights, and alpha beside them if it has an optimiser.

    α ← α - η_α ∇_α L_validation(w, α),   w ← w - η ∇_w L_training(w, α)

    The first line is DARTS of first order (Hanxiao Liu, Karen Simonyan and Yiming Yang, ICLR 2019); without it alpha
    stays as it is, the paper's "fixed alpha". Given the same batch twice, both learn from it: one level. Rows of
    decided edges never move, whatever the optimiser adds to a zero gradient.

    supernet: a `Supernet`.
    optimiser: an Optax transformation for the weights.
    alpha_optimiser: the same for alpha; None: alpha is fixed.
    measure: ``measure(output, targets) -> (loss, accuracy)`` of every example.

    >>> class Net:
    ...     ops = (("skip", "scale"),)
    ...     def apply(self, params, state, weights, x, *, key, train):
    ...         return weights[0, 0] * x + weights[0, 1] * params * x, state
    >>> training = SupernetTraining(Net(), optax.sgd(0.1), alpha_optimiser=optax.sgd(1.0))
    >>> state = training.init(jnp.asarray(2.0), None)
    >>> batch = (jnp.eye(2), jnp.arange(2))
    >>> state, info = training.darts_step(jax.random.key(0), state, batch, batch)
    >>> bool(state.alpha[0, 1] > state.alpha[0, 0])  # twice the logits have the smaller loss
    True
    """

    supernet: Any
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    alpha_optimiser: optax.GradientTransformation | None = eqx.field(default=None, static=True, kw_only=True)
    measure: Callable[[Any, Any], tuple[Array, Array]] = eqx.field(default=cross_entropy, static=True, kw_only=True)

    @property
    def space(self) -> Space:
        """What the supernet leaves to choose."""
        return Space.of(self.supernet)

    def init(
        self, params: Any, net_state: Any, alpha: Float[Array, "edges ops"] | None = None
    ) -> SupernetTrainingState:
        """Begin with these; without alpha it is zero everywhere."""
        alpha = jnp.zeros(self.space.shape) if alpha is None else check_alpha("SupernetTraining", self.space, alpha)
        alpha_state = None if self.alpha_optimiser is None else self.alpha_optimiser.init(alpha)
        return SupernetTrainingState(params, net_state, alpha, self.optimiser.init(params), alpha_state)

    def loss(
        self, key: Key[Array, ""], params: Any, net_state: Any, weights: Array, batch: tuple[Any, Any]
    ) -> tuple[Float[Array, ""], Any]:
        """(the batch's mean loss, the supernet's new state)."""
        inputs, targets = batch
        output, net_state = self.supernet.apply(params, net_state, weights, inputs, key=key, train=True)
        return jnp.mean(self.measure(output, targets)[0]), net_state

    def fixed_step(
        self,
        key: Key[Array, ""],
        state: SupernetTrainingState,
        batch: tuple[Any, Any],
        choice: Int[Array, " edges"] | None = None,
        kept: Bool[Array, " edges"] | None = None,
    ) -> tuple[SupernetTrainingState, SupernetTrainingInfo]:
        """One step of the weights; alpha stays."""
        weights = effective_weights(self.space, state.alpha, choice, kept)
        slope = jax.value_and_grad(self.loss, argnums=1, has_aux=True)
        (loss, net_state), gradient = slope(key, state.params, state.net_state, weights, batch)
        changes, optimiser_state = self.optimiser.update(gradient, state.optimiser_state, state.params)
        params = optax.apply_updates(state.params, changes)
        status = jnp.where(jnp.isfinite(loss), int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)
        state = state._replace(params=params, net_state=net_state, optimiser_state=optimiser_state)
        return state, SupernetTrainingInfo(loss, jnp.asarray(1, jnp.int32), status)

    def darts_step(
        self,
        key: Key[Array, ""],
        state: SupernetTrainingState,
        batch: tuple[Any, Any],
        validation_batch: tuple[Any, Any],
        choice: Int[Array, " edges"] | None = None,
        kept: Bool[Array, " edges"] | None = None,
    ) -> tuple[SupernetTrainingState, SupernetTrainingInfo]:
        """One step of alpha on the validation batch, then one of the weights on the training batch."""
        if self.alpha_optimiser is None:
            raise ValueError("SupernetTraining.alpha_optimiser must be given for darts_step; got None. Or fixed_step.")
        alpha_key, weight_key = jax.random.split(key)

        def validation(alpha: Array) -> Array:
            weights = effective_weights(self.space, alpha, choice, kept)
            return self.loss(alpha_key, state.params, state.net_state, weights, validation_batch)[0]

        gradient = jax.grad(validation)(state.alpha)
        changes, alpha_state = self.alpha_optimiser.update(gradient, state.alpha_state, state.alpha)
        if choice is not None:  # weight decay and momentum would move decided rows
            changes = jnp.where((choice >= 0)[:, None], 0.0, changes)  # pyright: ignore
        state = state._replace(alpha=state.alpha + changes, alpha_state=alpha_state)  # pyright: ignore
        state, info = self.fixed_step(weight_key, state, batch, choice, kept)
        return state, info._replace(cost=info.cost + 1)


class _Steps(eqx.Module):
    """A step by its number; what is here is an argument of the compiled program: new numbers compile nothing."""

    key: Key[Array, ""]
    training: SupernetTraining
    data: Any
    validation: Any
    choice: Int[Array, " edges"]
    kept: Bool[Array, " edges"]
    batch_size: int = eqx.field(static=True)

    def _drawn(self, key: Array, source: Any) -> Any:
        chosen = jax.random.randint(key, (self.batch_size,), 0, _rows(source))
        return jax.tree.map(lambda rows: rows[chosen], source)

    def __call__(
        self, state: SupernetTrainingState, index: Array
    ) -> tuple[SupernetTrainingState, SupernetTrainingInfo]:
        batch_key, validation_key, step_key = jax.random.split(jax.random.fold_in(self.key, index), 3)
        batch = self._drawn(batch_key, self.data)
        if self.training.alpha_optimiser is None:
            return self.training.fixed_step(step_key, state, batch, self.choice, self.kept)
        other = batch if self.validation is None else self._drawn(validation_key, self.validation)
        return self.training.darts_step(step_key, state, batch, other, self.choice, self.kept)


def train_supernet(
    key: Key[Array, ""],
    training: SupernetTraining,
    state: SupernetTrainingState,
    data: tuple[Any, Any],
    validation: tuple[Any, Any] | None,
    num_steps: int,
    batch_size: int,
    *,
    choice: Int[Array, " edges"] | None = None,
    kept: Bool[Array, " edges"] | None = None,
    first: int = 0,
    **more: Any,
) -> tuple[SupernetTrainingState, SupernetTrainingInfo]:
    """``num_steps`` steps on batches drawn from the rows of the data, compiled once for any number of steps.

    data: (inputs, targets), arrays with examples first. validation: the same for alpha, where it is learned; None:
        alpha learns from the batches of the weights (one level).
    choice, kept: what is decided, as in ``effective_weights``; with every edge decided one network is trained alone.
    first: the number of the first step: the keys come from it, so that a run in parts is the run in one.
    more: ``progress`` and ``checkpoint`` of ``laureate.loops.run``.
    key: of the batches and of whatever the supernet draws.
    training, state: what trains, and where it stands (``SupernetTraining.init``). batch_size: rows a step.
    """
    rows, space = _rows(data), training.space
    require("train_supernet", "batch_size", f"in 1..{rows}", batch_size, lambda b: 1 <= b <= rows)
    choice = jnp.full(space.num_edges, -1, jnp.int32) if choice is None else jnp.asarray(choice, jnp.int32)
    kept = jnp.ones(space.num_edges, bool) if kept is None else jnp.asarray(kept)
    steps = _Steps(key, training, data, validation, choice, kept, batch_size)
    outcome = run(steps, state, num_steps, first=first, **more)
    return outcome.state, outcome.seen


def _rows(data: Any) -> int:
    return len(jax.tree.leaves(data)[0])
