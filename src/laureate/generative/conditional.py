"""What every model of y given x shares: training in one compiled scan, and drawing answers without the answer."""

import abc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array

from laureate._core import Status, require

__all__ = [
    "AbstractConditional",
    "AbstractOneLoss",
    "AbstractOneNetwork",
    "ConditionalInfo",
    "ConditionalState",
    "FittedConditional",
    "ScaleWarning",
    "absolute_error",
    "squared_error",
]

Optimiser = Callable[[Any], optax.GradientTransformation]
# Rows that are drawn at a time; more are drawn in turn, with the same numbers.
ROWS_AT_ONCE = 16384
# Costs are in y's unit: answers far from 1 make every learning rate wrong.
LARGE = 100.0


class ScaleWarning(UserWarning):
    """The answers are so large that rates meant for numbers near 1 do not fit."""


class ConditionalState(NamedTuple):
    """What the next step needs.

    step: steps taken. parameters: the networks' arrays. optimiser: the optimisers' states.
    """

    step: Array
    parameters: Any
    optimiser: Any


class ConditionalInfo(NamedTuple):
    """What a step reports.

    loss: before it. cost: passes (a network forward and backward over the batch). status: DIVERGED where a loss is not
    finite; the step is taken all the same.
    """

    loss: Array
    cost: Array
    status: Array


def absolute_error(prediction: Array, target: Array) -> Array:
    """d(ŷ, y) = mean |ŷ − y|, the paper's cost."""
    return jnp.mean(jnp.abs(prediction - target))


def squared_error(prediction: Array, target: Array) -> Array:
    """d(ŷ, y) = mean (ŷ − y)²."""
    return jnp.mean((prediction - target) ** 2)


class Hooks:
    """What a kind of model asks for on the host beside the usual; inside jit nothing of it is called."""

    def before_training(self, key: Array, x: Array, y: Array) -> None:
        """Raise where the networks cannot learn."""

    def after_training(self, key: Array, state: ConditionalState, x: Array, y: Array, infos: Any) -> None:
        """Raise where training went wrong."""

    def before_sampling(self, infos: Any, options: dict[str, Any]) -> dict[str, Any]:
        """The options of ``draw``; none, unless a kind knows some."""
        if options:
            raise TypeError(f"sample takes no {', '.join(sorted(options))} for this model.")
        return options

    def infer(self, key: Array, state: ConditionalState, x: Array, y: Array) -> Any:
        """The latents of pairs, where a model finds any."""
        raise TypeError("This model has no latent that is found from a pair. Use LatentFlowRegressor.")


class AbstractConditional(eqx.Module):
    """A model of answers y given x: ``fit`` it to pairs, ``sample`` answers for a new x.

    Its networks are functions of one example, with their first weights; what is learned lies in the state.
    """

    @property
    @abc.abstractmethod
    def networks(self) -> Any:
        """The networks with their first weights, as a pytree."""

    @abc.abstractmethod
    def init(self) -> ConditionalState:
        """The state before the first step; the networks bring their weights, so nothing is drawn."""

    @abc.abstractmethod
    def step(self, key: Array, x: Array, y: Array, state: ConditionalState) -> tuple[ConditionalState, Any]:
        """One training step on a batch of pairs: the new state and an info."""

    @abc.abstractmethod
    def draw(self, key: Array, state: ConditionalState, x: Array, **options: Any) -> Array:
        """One answer for one x. There is no y here: an answer that saw the answer is a reconstruction."""

    @property
    @abc.abstractmethod
    def hooks(self) -> "Hooks":
        """What is asked of this kind beside the usual; ``Hooks()`` for nothing."""

    def trained(self, parameters: Any) -> Any:
        """The networks with these arrays."""
        return eqx.combine(parameters, self.networks)

    def arrays(self) -> Any:
        """The networks' arrays that are learned."""
        return eqx.filter(self.networks, eqx.is_inexact_array)

    def train(
        self, key: Array, x: Array, y: Array, state: ConditionalState, *, num_steps: int, batch: int = 64
    ) -> tuple[ConditionalState, Any]:
        """So many steps on batches drawn with replacement; infos have a leading axis of steps.

        A step's key comes from its number in ``state``, so that training in parts changes nothing.
        """

        def one(state, _):
            rows_key, step_key = jax.random.split(jax.random.fold_in(key, state.step))
            # The product may round up to n; one draw of numbers in [0, 1) compiles faster than one of integers.
            drawn = jax.random.uniform(rows_key, (min(batch, len(x)),)) * len(x)
            rows = jnp.minimum(drawn.astype(jnp.int32), len(x) - 1)
            return self.step(step_key, x[rows], y[rows], state)

        return jax.lax.scan(one, state, length=num_steps)

    def fit(self, key: Array, x: Any, y: Any, *, num_steps: int = 2000, batch: int = 64) -> "FittedConditional":
        """Train on pairs x [n, ...], y [n, ...] in one compiled program."""
        owner = type(self).__name__
        check_key(owner, key)
        x, y = check_pairs(owner, x, y)
        require(owner, "num_steps", ">= 1", num_steps, lambda n: n >= 1)
        require(owner, "batch", ">= 1", batch, lambda n: n >= 1)
        if any(isinstance(part, eqx.nn.BatchNorm) for part in _modules(self.networks)):
            raise ValueError(
                f"{owner}.networks must be functions of one example; got a BatchNorm, which couples the batch, so that "
                "an example's latent depends on the others. Use LayerNorm or GroupNorm, or fold the statistics in."
            )
        if not _traced(x, y, self.arrays()):
            self.hooks.before_training(key, x, y)
        state, infos = _trained(self, key, x, y, num_steps, batch)
        if not _traced(infos):
            lost = int(np.sum(np.asarray(infos.status) == Status.DIVERGED))
            if lost:
                raise FloatingPointError(
                    f"{owner}.learning_rate must be small enough to train; got {lost} of {num_steps} steps not "
                    "finite. Lower it, or scale y to numbers near 1."
                )
            self.hooks.after_training(key, state, x, y, infos)
        return FittedConditional(self, state, infos, x.shape[1:])

    def sample(self, key: Array, state: ConditionalState, x: Array, num_samples: int = 1, **options: Any) -> Array:
        """Answers [num_samples, batch, ...] for x [batch, ...]; options are those of ``draw``."""
        # A sample's key depends on its number alone, so that neither chunks nor num_samples change the others.
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(num_samples))

        def one(key):
            each = jax.random.split(key, len(x))
            return jax.vmap(lambda k, row: self.draw(k, state, row, **options))(each, x)

        return jax.lax.map(one, keys, batch_size=max(1, min(num_samples, ROWS_AT_ONCE // max(1, len(x)))))


@eqx.filter_jit
def _trained(model, key, x, y, num_steps, batch):
    return model.train(key, x, y, model.init(), num_steps=num_steps, batch=batch)


@eqx.filter_jit
def _sampled(model, key, state, x, num_samples, options):
    return model.sample(key, state, x, num_samples, **dict(options))


class FittedConditional(eqx.Module):
    """A trained model: ``sample(key, x, num_samples)``, and ``infer(key, x, y)`` where it has latents to find.

    model: with its first weights. state: what was learned. history: the infos of all steps. shape: of one x.
    """

    model: AbstractConditional
    state: ConditionalState
    history: Any
    shape: tuple[int, ...] | None = eqx.field(static=True, default=None)

    @property
    def networks(self) -> Any:
        """The trained networks."""
        return self.model.trained(self.state.parameters)

    def sample(self, key: Array, x: Any, num_samples: int = 1, *, y: Any = None, **options: Any) -> Array:
        """Answers [num_samples, batch, ...] for x [batch, ...]; more rows than fit at once are drawn in turn."""
        owner = type(self.model).__name__
        if y is not None:
            raise TypeError(
                f"{owner}.sample takes no y: an answer found with the answer is a reconstruction and measures nothing. "
                "Use infer(key, x, y) for the latent of a known pair."
            )
        check_key(owner, key)
        require(owner, "num_samples", ">= 1", num_samples, lambda n: n >= 1)
        x = self._inputs(x)
        options = self.model.hooks.before_sampling(self.history, options)
        return _sampled(self.model, key, self.state, x, num_samples, tuple(sorted(options.items())))

    def infer(self, key: Array, x: Any, y: Any) -> Any:
        """The latent of each known pair; a diagnosis, never a sample."""
        owner = type(self.model).__name__
        check_key(owner, key)
        x, y = check_pairs(owner, self._inputs(x), y, varied=False, method="infer")
        return self.model.hooks.infer(key, self.state, x, y)

    def _inputs(self, x: Any) -> Array:
        """Rows of the shape that was trained on, finite where they are known."""
        owner, x = type(self.model).__name__, _floats(x)
        if self.shape is not None and (x.ndim < 1 or x.shape[1:] != self.shape):
            rule = f"rows of the shape trained on, {self.shape}"
            raise ValueError(f"{owner}.x must be {rule}; got {x.shape}. One input alone is x[None].")
        if not _traced(x):
            _check_finite(owner, "x", x)
        return x


class AbstractOneLoss(AbstractConditional):
    """A model that learns by descent on one loss; it has fields ``learning_rate`` and ``optimiser``."""

    @property
    @abc.abstractmethod
    def passes(self) -> int:
        """How many networks a step passes, forward and backward."""

    @property
    def rule(self) -> optax.GradientTransformation:
        """The optimiser with its learning rate."""
        # Declared here, these fields would come before a subclass's networks in its constructor.
        model: Any = self
        return model.optimiser(model.learning_rate)

    @property
    def hooks(self) -> Hooks:
        """Nothing beside the usual."""
        return Hooks()

    @abc.abstractmethod
    def loss(self, key: Array, networks: Any, x: Array, y: Array) -> Array:
        """The loss of one pair."""

    def init(self) -> ConditionalState:
        """Zero steps, the first weights."""
        parameters = self.arrays()
        state = self.rule.init(parameters)
        return ConditionalState(jnp.zeros((), jnp.int32), parameters, state)

    def step(self, key: Array, x: Array, y: Array, state: ConditionalState) -> tuple[ConditionalState, ConditionalInfo]:
        """θ ← θ − update(∇ mean loss)."""

        def mean(parameters):
            keys = jax.random.split(key, len(x))
            return jnp.mean(jax.vmap(self.loss, (0, None, 0, 0))(keys, self.trained(parameters), x, y))

        value, after = descend(self.rule, mean, state.parameters, state.optimiser)
        info = ConditionalInfo(value, jnp.asarray(self.passes), status_of(value))
        return ConditionalState(state.step + 1, *after), info


class AbstractOneNetwork(AbstractOneLoss):
    """A model that learns by descent on one loss of one network."""

    network: eqx.AbstractVar[Callable[..., Array]]

    @property
    def networks(self) -> Any:
        """The network."""
        return self.network

    @property
    def passes(self) -> int:
        """The network alone."""
        return 1


def descend(
    optimiser: optax.GradientTransformation, loss: Callable, parameters: Any, state: Any
) -> tuple[Array, tuple]:
    """The loss, and parameters and optimiser after one step down."""
    value, gradient = eqx.filter_value_and_grad(loss)(parameters)
    updates, state = optimiser.update(gradient, state, parameters)
    return value, (eqx.apply_updates(parameters, updates), state)


def status_of(value: Array) -> Array:
    """DIVERGED where a number is not finite."""
    return jnp.where(jnp.isfinite(value).all(), Status.OK, Status.DIVERGED).astype(jnp.int32)


def check_key(owner: str, key: Any) -> None:
    """A random key comes first; data in its place is the usual mistake."""
    if not isinstance(key, jax.Array) or not jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.ndim:
        raise TypeError(f"{owner} takes a key first, made by jax.random.key(0); got {type(key).__name__}.")


def check_pairs(owner: str, x: Any, y: Any, varied: bool = True, method: str = "fit") -> tuple[Array, Array]:
    """Pairs as arrays; what cannot be learned from is refused, what is far from 1 is warned of."""
    x, y = _floats(x), _floats(y)
    if x.ndim < 1 or y.ndim < 1 or len(x) != len(y) or not len(x):
        rule = "as many x as y, at least one"
        raise ValueError(f"{owner}.{method} must be given {rule}; got shapes {x.shape} and {y.shape}.")
    if _traced(x, y):
        return x, y
    for name, values in (("x", x), ("y", y)):
        _check_finite(owner, name, values)
    wide = np.asarray(y, np.float64)
    if varied and len(y) > 1 and not np.ptp(wide, axis=0).any():
        raise ValueError(f"{owner}.y must differ between rows; got {len(y)} equal ones. There is nothing to learn.")
    if varied and (size := float(np.abs(wide).mean())) > LARGE:
        told = f"{owner}.y should be near 1; its mean size is {size:.3g}. Divide it, or costs and rates do not fit."
        warnings.warn(told, ScaleWarning, stacklevel=3)
    return x, y


def _check_finite(owner: str, name: str, values: Array) -> None:
    rows = np.flatnonzero(~np.isfinite(np.asarray(values, np.float64)).reshape(len(values), -1).all(axis=1))
    if len(rows):
        raise ValueError(
            f"{owner}.{name} must be finite; got {len(rows)} rows that are not, the first {rows[0]}. Drop them."
        )


def _floats(values: Any) -> Array:
    """As an array of floats: labels and counts come as integers."""
    array = values if isinstance(values, jax.Array) else jnp.asarray(np.asarray(values))
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))


def _modules(tree: Any) -> list[Any]:
    return jax.tree.leaves(tree, is_leaf=lambda leaf: isinstance(leaf, eqx.nn.BatchNorm))


def _traced(*trees: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))
