"""Iterative product quantisation: layers are frozen to codes stage by stage, and the rest learns to live with it."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from laureate._core import Status, require
from laureate.compression.arrays import is_quantized
from laureate.compression.product import Codebook
from laureate.compression.quantized import dequantize, freeze
from laureate.compression.quantizer import Quantizer
from laureate.compression.selection import Rules

__all__ = ["IterativeInfo", "IterativeQuantization", "IterativeState"]


class IterativeState(NamedTuple):
    """What training carries.

    model: some of its weights are codes. optimiser_state: Optax's, of what can still be trained. stage: how many stages
    are frozen.
    """

    model: Any
    optimiser_state: Any
    stage: int


class IterativeInfo(NamedTuple):
    """What a step reports.

    loss: before it. gradient_norm: of what can be trained. cost: gradients computed, 1. status: DIVERGED where loss or
    gradient is not finite; the step is taken all the same.
    """

    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    cost: Int[Array, ""]
    status: Int[Array, ""]


class IterativeQuantization(eqx.Module):
    """Quantises a trained model in stages and fine-tunes between them, so that later layers make good earlier errors.

    for stage in stages:  (c, k) ← k-means(W of the stage);  codes k stay;  then many steps of
    c ← c - η Σ_{b: k(b) = c} ∂L/∂W_b,   W ← W - η ∂L/∂W for what is not yet quantised       (Stock et al. 2020, 2021)

    stages: rules or quantisers, one a stage; the paper takes feed-forward layers, then embeddings, then attention.
        Of a `ScalarQuantizer` the step is trained as well, a small number that large steps of Adam spoil: round last.
    optimiser: any of Optax; it begins anew with every stage, for its parameters are others then.
    centroid_gradient: the ``"sum"`` over the blocks of a centroid, which is the gradient, or their ``"mean"``.

    >>> import equinox as eqx, jax, jax.numpy as jnp, optax
    >>> from laureate.compression import ProductQuantizer, match
    >>> model = eqx.nn.MLP(8, 8, 16, 1, key=jax.random.key(0))
    >>> pq = ProductQuantizer(8, num_centroids=4)
    >>> method = IterativeQuantization((match({r"layers\\.0.*": pq}), match({r"layers\\.1.*": pq})), optax.sgd(0.01))
    >>> state = method.init(model)
    >>> loss = lambda model: jnp.mean(jax.vmap(model)(jnp.eye(8)) ** 2)
    >>> for stage in range(2):
    ...     state = method.advance(jax.random.key(stage), state)
    ...     state, info = method.step(state, loss)
    >>> from laureate.compression import dequantize, package
    >>> small = package(state.model)  # as of quantize
    >>> int(info.status), dequantize(small)(jnp.ones(8)).shape
    (0, (8,))
    """

    stages: tuple[Quantizer | Rules, ...]
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    centroid_gradient: Literal["sum", "mean"] = eqx.field(default="sum", static=True)

    def __check_init__(self):
        name = "IterativeQuantization"
        require(name, "stages", "at least one", self.stages, lambda stages: len(stages) >= 1)
        require(name, "centroid_gradient", "'sum' or 'mean'", self.centroid_gradient, ("sum", "mean").__contains__)

    def init(self, model: Any) -> IterativeState:
        """Before the first stage: nothing is quantised."""
        return IterativeState(model, self.optimiser.init(eqx.filter(model, eqx.is_inexact_array)), 0)

    def advance(self, key: Any, state: IterativeState) -> IterativeState:
        """Freeze the weights of the next stage, and begin with a new state of the optimiser."""
        last = len(self.stages)
        require("IterativeQuantization", "state.stage", f"< {last}: all are done", state.stage, lambda s: s < last)
        model = freeze(state.model, self.stages[state.stage], key)
        return self.init(model)._replace(stage=state.stage + 1)

    def step(self, state: IterativeState, loss: Callable[[Any], Any]) -> tuple[IterativeState, IterativeInfo]:
        """One step of the optimiser for ``loss(model)``, of a model with ordinary weights."""
        trained, rest = eqx.partition(state.model, eqx.is_inexact_array)
        self._check(state.optimiser_state, trained)
        value, gradient = jax.value_and_grad(lambda some: loss(dequantize(eqx.combine(some, rest))))(trained)
        if self.centroid_gradient == "mean":
            gradient = _averaged(gradient, state.model)
        changes, optimiser_state = self.optimiser.update(gradient, state.optimiser_state, trained)
        model = eqx.combine(optax.apply_updates(trained, changes), rest)
        norm = optax.tree.norm(gradient)
        fine = jnp.isfinite(norm) & jnp.isfinite(value)
        status = jnp.where(fine, int(Status.OK), int(Status.DIVERGED)).astype(jnp.int32)
        return IterativeState(model, optimiser_state, state.stage), IterativeInfo(
            value, norm, jnp.asarray(1, jnp.int32), status
        )

    def _check(self, optimiser_state: Any, trained: Any) -> None:
        wanted = jax.eval_shape(self.optimiser.init, trained)
        form = lambda tree: [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]  # noqa: E731
        same = jax.tree.structure(wanted) == jax.tree.structure(optimiser_state)
        if not same or form(wanted) != form(optimiser_state):
            raise ValueError(
                "IterativeQuantization.state.optimiser_state must belong to the model as it is now; got one of another "
                "stage. Make it anew: optimiser.init(eqx.filter(model, eqx.is_inexact_array)); advance does so."
            )


def _averaged(gradient: Any, model: Any) -> Any:
    """The gradient of each centroid divided by the number of blocks that it stands for."""

    def mean(leaf: Any, own: Any) -> Any:
        if not is_quantized(leaf) or not isinstance(leaf.parameters, Codebook):
            return own
        centroids = own.parameters.centroids
        counts = jnp.zeros(len(centroids)).at[leaf.data].add(1.0)
        averaged = centroids / jnp.maximum(counts, 1)[:, None]
        return eqx.tree_at(lambda array: array.parameters.centroids, own, averaged)

    return jax.tree.map(mean, model, gradient, is_leaf=is_quantized)
