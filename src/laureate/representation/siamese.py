"""Two views trained against each other without negatives: BYOL, SimSiam and DirectPred are one loop.

They differ in the predictor (set directly, trained, none) and in the target (a slow copy, or the network itself).
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.core import Tracer
from jax.tree_util import keystr
from jaxtyping import Float, Int

from laureate._core import Status, require
from laureate.layers import RunningStatistics
from laureate.representation.predictors import DirectCopy, DirectPred, DirectSet, PredictorInfo

__all__ = ["Siamese", "SiameseInfo", "SiameseState", "apply_to_batch"]


class Predictor(Protocol):
    """What the loop asks of a predictor; those of this area are models for one's own."""

    def init(self, key: Array) -> Any: ...
    def trained(self, state: Any) -> Any: ...
    def __call__(self, state: Any, z: Array) -> Array: ...
    def update(self, state: Any, z1: Array, z2: Array) -> tuple[Any, PredictorInfo]: ...


class SiameseState(NamedTuple):
    """All that training needs to go on: a pytree to be saved.

    online: the model; after training its encoder is what one wanted. target: the slow copy (None without one).
    predictor, optimiser: theirs. step: steps taken.
    """

    online: Any
    target: Any
    predictor: Any
    optimiser: Any
    step: Int[Array, ""]


class SiameseInfo(NamedTuple):
    """loss: lowest where everything has collapsed, so never judge by it.

    spread: standard deviation of the l2-normalised outputs × √D: about 1 in health, 0 in collapse.
    predictor: what the predictor's update says.
    cost: examples seen. status: DIVERGED where the loss is not finite; the step is then not taken.
    """

    loss: Float[Array, ""]
    spread: Float[Array, ""]
    predictor: PredictorInfo
    cost: Int[Array, ""]
    status: Int[Array, ""]


# What a model carries along instead of training it: running statistics, explicit ones and Equinox's.
STATISTICS = (RunningStatistics, eqx.nn.State)


def trained_part(model: Any) -> Any:
    """Which leaves are trained, as a prefix of the model: arrays of floats, but no running statistics."""

    def is_statistics(node: Any) -> bool:
        return isinstance(node, STATISTICS)

    return jax.tree.map(
        lambda node: not is_statistics(node) and eqx.is_inexact_array(node), model, is_leaf=is_statistics
    )


def outputs_of(apply: Callable[[Any, Any], Any], model: Any, batch: Any) -> tuple[Array, Any]:
    """The outputs, and the model with the statistics that ``apply`` has brought up to date, where it returns one."""
    found = apply(model, batch)
    return found if isinstance(found, tuple) else (found, model)


def check_pair(owner: str, z1: Array, z2: Array) -> None:
    """Raise unless both views gave outputs [batch, D] of one shape."""
    rule = "of the same examples, with outputs [batch, D] of one shape"
    remedy = "two_views(key, view, batch) makes such pairs."
    fits = lambda shapes: len(shapes[0]) == 2 and shapes[0] == shapes[1]  # noqa: E731
    require(owner, "view1 and view2", rule, (jnp.shape(z1), jnp.shape(z2)), fits, remedy)


def with_statistics(model: Any, after: Any) -> Any:
    """The model with the statistics of another, ``after``."""
    spec = trained_part(model)
    return eqx.combine(eqx.filter(model, spec), eqx.filter(after, spec, inverse=True))


def apply_to_batch(model: Any, batch: Array) -> Array:
    """An Equinox model is of one example: over the batch by vmap."""
    return jax.vmap(model)(batch)


class Siamese(eqx.Module):
    """Learn a representation from pairs of views: the online network predicts the target's output of the other view.

    ::

        loss = E d(p(z₁), sg(z̄₂)) + d(p(z₂), sg(z̄₁)),   z = online(view),  z̄ = target(view)
        target ← m target + (1 − m) online

    BYOL: m = 0.996 and ``TwoLayer``. SimSiam: momentum=None (the target is the network itself) and ``TwoLayer``.
    DirectPred: any target and ``DirectPred``. The order within a step is the authors': the loss uses the W_p of the
    step before; then the optimiser; then F and W_p, from the outputs the loss has seen; then the target.

    predictor: of this area, or your own with the same four methods.
    optimiser: any of Optax, over the model and what the predictor lets be trained.
    momentum: m in [0, 1), or None for the online network itself.
    loss: "cosine", ‖p/‖p‖ − z̄/‖z̄‖‖² = 2 − 2 cos; or "l2", ½‖p − z̄‖², the theory's.
    stop_gradient: False lets the gradient through the target as well (only with momentum=None): then it collapses.
    target_init: "copy" of the online network, or "independent" (the authors' code, by accident or not).
    apply: from (model, batch of views) to outputs [batch, D]; by default vmap over the batch. For a model with batch
        normalisation it returns (outputs, model): what it has changed in the model's ``layers.RunningStatistics`` (or
        in an ``equinox.nn.State``, where the model is a pair with one) is carried on, and is neither trained nor
        averaged into the target, which keeps statistics of its own.

    >>> import equinox as eqx, jax, jax.numpy as jnp, optax
    >>> from laureate.representation import DirectPred
    >>> key = jax.random.key(0)
    >>> model = eqx.nn.Linear(6, 4, key=key)
    >>> siamese = Siamese(DirectPred(dim=4), optax.sgd(0.05))
    >>> state = siamese.init(key, model)
    >>> x = jax.random.normal(key, (32, 6))
    >>> state, info = eqx.filter_jit(siamese.step)(state, x, x + 0.1)
    >>> bool(info.loss > 0), int(info.cost)
    (True, 64)
    """

    predictor: Any
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    momentum: Any = eqx.field(default=0.996, kw_only=True)
    loss: str = eqx.field(static=True, default="cosine", kw_only=True)
    stop_gradient: bool = eqx.field(static=True, default=True, kw_only=True)
    target_init: str = eqx.field(static=True, default="copy", kw_only=True)
    apply: Callable[[Any, Any], Array] = eqx.field(default=apply_to_batch, kw_only=True)

    def __check_init__(self):
        require("Siamese", "momentum", "None or in [0, 1)", self.momentum, lambda m: m is None or 0 <= m < 1)
        require("Siamese", "loss", "'cosine' or 'l2'", self.loss, lambda name: name in ("cosine", "l2"))
        rule = "'copy' or 'independent'"
        require("Siamese", "target_init", rule, self.target_init, lambda t: t in ("copy", "independent"))
        if not self.stop_gradient:
            remedy = "A slow copy gets no gradient anyway."
            require("Siamese", "momentum", "None with stop_gradient=False", self.momentum, lambda m: m is None, remedy)
        if self.loss == "l2" and isinstance(self.predictor, DirectPred | DirectSet | DirectCopy):
            remedy = "scale='max' fixes the size of what is predicted, and with it the l2 loss's own scale."
            require("Siamese", "predictor.scale", "'none' with loss='l2'", self.predictor.scale, _is_none, remedy)

    def init(self, key: Array, model: Any, target: Any = None) -> SiameseState:
        """Before the first step. ``target``: another random initialisation, for target_init="independent"."""
        independent = self.target_init == "independent"
        if independent != (target is not None):
            wants = "needs a" if independent else "takes no"
            raise ValueError(f"Siamese.init: target_init={self.target_init!r} {wants} target model.")
        predictor = self.predictor.init(key)
        trained = eqx.filter((model, predictor), self._spec(model, predictor))
        slow = None if self.momentum is None else (target if independent else model)
        check_like("target", slow, model)
        return SiameseState(model, slow, predictor, self.optimiser.init(trained), jnp.asarray(0, jnp.int32))

    def step(self, state: SiameseState, view1: Any, view2: Any) -> tuple[SiameseState, SiameseInfo]:
        """One update from a batch of pairs of views; nothing is drawn here, so there is no key."""
        spec = self._spec(state.online, state.predictor)
        trained, fixed = eqx.partition((state.online, state.predictor), spec)

        def objective(trained):
            model, predictor = eqx.combine(trained, fixed)
            z1, after = outputs_of(self.apply, model, view1)
            z2, after = outputs_of(self.apply, after, view2)
            check_pair("Siamese.step", z1, z2)
            # the same outputs where the target is the network itself: they need not be computed twice
            t1, t2, slow = z1, z2, None
            if state.target is not None:
                t1, slow = outputs_of(self.apply, state.target, view1)
                t2, slow = outputs_of(self.apply, slow, view2)
            if self.stop_gradient:
                t1, t2 = jax.lax.stop_gradient((t1, t2))
            first, second = self.predictor(predictor, z1), self.predictor(predictor, z2)
            kept = eqx.filter((after, slow), eqx.is_array)
            return self.distance(first, t2) + self.distance(second, t1), (z1, z2, kept)

        (loss, (z1, z2, kept)), gradient = jax.value_and_grad(objective, has_aux=True)(trained)
        updates, memory = self.optimiser.update(gradient, state.optimiser, trained)
        moved: Any = optax.apply_updates(trained, updates)
        online, predictor = eqx.combine(moved, fixed)
        online = with_statistics(online, eqx.combine(kept[0], online))
        predictor, report = self.predictor.update(predictor, z1, z2)
        target = None
        if state.target is not None:
            target = with_statistics(ema(self.momentum, state.target, online), eqx.combine(kept[1], online))
        new = SiameseState(online, target, predictor, memory, state.step + 1)
        finite = jnp.isfinite(loss)
        arrays, rest = eqx.partition(new, eqx.is_array)
        kept = jax.tree.map(lambda a, b: jnp.where(finite, a, b), arrays, eqx.filter(state, eqx.is_array))
        info = SiameseInfo(
            loss=loss,
            spread=spread(jnp.concatenate([z1, z2])),
            predictor=report,
            cost=jnp.asarray(2 * z1.shape[0], jnp.int32),
            status=jnp.where(finite, int(Status.OK), int(Status.DIVERGED)),
        )
        return eqx.combine(kept, rest), info

    def distance(self, prediction: Float[Array, "n d"], target: Float[Array, "n d"]) -> Float[Array, ""]:
        """The mean over the batch of d(p, z̄)."""
        if self.loss == "l2":
            return 0.5 * jnp.mean(jnp.sum((prediction - target) ** 2, axis=1))
        return jnp.mean(2.0 - 2.0 * jnp.sum(normalised(prediction) * normalised(target), axis=1))

    def _spec(self, model: Any, predictor: Any) -> Any:
        return trained_part(model), self.predictor.trained(predictor)


def normalised(z: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Rows of length one; a row of zeros stays, with a finite gradient."""
    return z * jax.lax.rsqrt(jnp.sum(z**2, axis=1, keepdims=True) + 1e-12)


def spread(z: Float[Array, "n d"]) -> Float[Array, ""]:
    """√D times the mean standard deviation of the normalised outputs' entries."""
    return jnp.mean(jnp.std(normalised(z), axis=0)) * z.shape[1] ** 0.5


def ema(momentum: Any, target: Any, online: Any) -> Any:
    """M target + (1 − m) online, for the arrays of floats; all else is the online network's."""
    slow, fast = eqx.filter(target, eqx.is_inexact_array), eqx.filter(online, eqx.is_inexact_array)
    mixed = jax.tree.map(lambda t, o: (momentum * t + (1 - momentum) * o).astype(o.dtype), slow, fast)
    return eqx.combine(mixed, online)


def check_like(name: str, other: Any, model: Any) -> None:
    """Raise where two models' arrays differ in their places or shapes, naming the paths."""
    if other is None or other is model:
        return
    shapes = [
        {keystr(path): leaf.shape for path, leaf in jax.tree_util.tree_leaves_with_path(tree) if eqx.is_array(leaf)}
        for tree in (model, other)
    ]
    wrong = [path for path in {**shapes[0], **shapes[1]} if shapes[0].get(path) != shapes[1].get(path)]
    if wrong:
        raise ValueError(f"Siamese.init: the {name} must be like the model; it differs in {', '.join(wrong)}.")


def _is_none(scale: Any) -> bool:
    return isinstance(scale, Tracer) or scale == "none"
