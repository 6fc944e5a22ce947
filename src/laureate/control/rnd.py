"""Random network distillation: the error of predicting a fixed random network is a bonus for what is new."""

import abc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import Status, require
from laureate.control.bonuses import AbstractBonus, BonusInfo, Transitions
from laureate.control.policies import Layers, make_perceptrons
from laureate.control.ppo import Optimiser, adam
from laureate.layers import RunningStatistics

__all__ = ["RND", "AbstractPredictionBonus", "BonusWarning", "PredictionState", "make_rnd"]


class BonusWarning(UserWarning):
    """A bonus that can be computed and says little."""


class PredictionState(NamedTuple):
    """What the next step needs.

    parameters: the predictor's arrays. optimiser: Optax's state for them. observations: mean and variance of every
    entry of an observation.
    """

    parameters: Any
    optimiser: Any
    observations: RunningStatistics


class AbstractPredictionBonus(AbstractBonus):
    """A bonus that is an error of prediction, on observations with mean 0 and deviation 1.

    ::

        s̄ = clip((s − μ) / σ, ±c),    i = mean_k (prediction_k − truth_k)²

    Who inherits says what is predicted from what.
    """

    predictor: eqx.AbstractVar[Callable[..., Array]]
    keep: eqx.AbstractVar[float | Array]
    clip: eqx.AbstractVar[float | Array]
    learning_rate: eqx.AbstractVar[float | Array]
    optimiser: eqx.AbstractVar[Optimiser]
    whiten: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def pair(self, predictor: Any, before: Array, action: Array, after: Array) -> tuple[Array, Array]:
        """Prediction and truth of one transition, from the normalised observations s̄ and s̄'."""

    def init(self, observation: Any) -> PredictionState:
        """The first weights, which the predictor brings, and no statistics: ``observe`` some transitions first."""
        parameters = eqx.filter(self.predictor, eqx.is_inexact_array)
        empty = RunningStatistics.empty(jnp.shape(observation), jnp.result_type(observation))
        return PredictionState(parameters, self.optimiser(self.learning_rate).init(parameters), empty)

    def observe(self, transitions: Transitions, state: PredictionState) -> PredictionState:
        """Mean and variance with the observations that were reached. After their rewards, or a scale would jump."""
        return state._replace(observations=state.observations.update(self._rows(transitions.following, state)))

    def normalise(self, rows: Array, state: PredictionState) -> Array:
        """s̄ = clip((s − μ) / √(σ² + 1e-8), ±c); without statistics not a number."""
        rows = self._rows(rows, state)
        if not self.whiten:
            return rows
        known = state.observations.count > 0
        rule, remedy = "with statistics of observations", "Call observe with steps of a random policy first."
        require("Bonus", "state", rule, known, bool, remedy)
        scaled = jnp.clip(state.observations.normalise(rows), -self.clip, self.clip)
        return jnp.where(known, scaled, jnp.nan)

    def errors(self, parameters: Any, transitions: Transitions, state: PredictionState) -> Float[Array, " n"]:
        """i of every transition."""
        predictor = eqx.combine(parameters, self.predictor)
        before, after = (self.normalise(s, state) for s in (transitions.observation, transitions.following))
        prediction, truth = jax.vmap(lambda s, a, t: self.pair(predictor, s, a, t))(before, transitions.action, after)
        rule = f"of shape {truth.shape[1:]}, as what is predicted"
        require("Bonus", "predictor", rule, prediction.shape[1:], lambda s: s == truth.shape[1:])
        squares = (prediction - jax.lax.stop_gradient(truth)) ** 2
        return jnp.mean(squares, axis=tuple(range(1, squares.ndim)))

    def reward(self, transitions: Transitions, state: PredictionState) -> Float[Array, " n"]:
        """The raw bonus i."""
        return self.errors(state.parameters, transitions, state)

    def step(self, key: Array, transitions: Transitions, state: PredictionState) -> tuple[PredictionState, BonusInfo]:
        """One step of the predictor on a share ``keep`` of the transitions, drawn at random."""
        kept = jax.random.uniform(key, transitions.following.shape[:1]) < self.keep

        def loss(parameters):
            each = self.errors(parameters, transitions, state)
            return jnp.sum(jnp.where(kept, each, 0.0)) / jnp.maximum(jnp.sum(kept), 1)

        value, slope = jax.value_and_grad(loss)(state.parameters)
        updates, optimiser = self.optimiser(self.learning_rate).update(slope, state.optimiser, state.parameters)
        status = jnp.where(jnp.isfinite(value), int(Status.OK), int(Status.DIVERGED))
        info = BonusInfo(value, jnp.sum(kept), jnp.asarray(kept.size), status)
        return state._replace(parameters=eqx.apply_updates(state.parameters, updates), optimiser=optimiser), info

    def _rows(self, rows: Array, state: PredictionState) -> Array:
        shape = state.observations.mean.shape
        remedy = "Of stacked frames it wants the last: BonusPPO(view=lambda o: o[..., -1:])."
        require("Bonus", "observation", f"of shape {shape}", rows.shape[1:], lambda s: s == shape, remedy)
        return rows.astype(jnp.promote_types(rows.dtype, jnp.float32))


class RND(AbstractPredictionBonus):
    """A bonus for observations unlike those seen before: the error of a network that learns to imitate a fixed one.

    ::

        i_t = mean_k (f̂_k(s̄_{t+1}) − f_k(s̄_{t+1}))²,    s̄ = clip((s − μ) / σ, ±c)

    (Burda, Edwards, Storkey & Klimov 2019, sections 2.2 and 2.4; their code takes the mean over k.) The target f is
    random and never trained: what it says of an observation is certain and can be learned, so that the error tells
    what was rarely seen and not what cannot be predicted. Divide by ``ReturnScale`` before use. Without an agent,
    ``novelty`` scores data.

    target: f, from one observation to features; fixed.
    predictor: f̂, likewise; it brings its first weights, and should have as many as the target.
    keep: share of the transitions that a step learns from, in (0, 1]; 32 / environments in the paper's code, so that
        with more actors the bonus does not vanish earlier.
    clip: c, > 0.
    learning_rate: > 0.
    optimiser: from a learning rate to an Optax optimiser.
    whiten: whether observations are normalised.

    >>> rnd = make_rnd(jax.random.key(0), 2, width=16)
    >>> old, new = jnp.array([[0.0, 0.0], [1.0, 0.1]]), jnp.array([[0.0, 1.0]])
    >>> fit = jax.jit(lambda state, key: (rnd.step(key, Transitions(old, None, old), state)[0], None))
    >>> state = rnd.observe(Transitions(old, None, old), rnd.init(old[0]))
    >>> state, _ = jax.lax.scan(fit, state, jax.random.split(jax.random.key(1), 500))
    >>> bool(rnd.novelty(new, state)[0] > 10 * rnd.novelty(old, state).max())
    True
    """

    target: Callable[[Array], Array]
    predictor: Callable[[Array], Array]
    keep: float | Array = 1.0
    clip: float | Array = 5.0
    learning_rate: float | Array = 1e-4
    optimiser: Optimiser = eqx.field(static=True, default=adam)
    whiten: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_prediction("RND", self)
        fewer = size_of(self.predictor) < size_of(self.target)
        if fewer and size_of(self.predictor):
            told = f"{size_of(self.predictor):,} numbers, the target {size_of(self.target):,}"
            said = f"RND.predictor has {told}: what it cannot represent stays a bonus for ever. Make it larger."
            warnings.warn(said, BonusWarning, stacklevel=3)

    def pair(self, predictor: Any, before: Array, action: Array, after: Array) -> tuple[Array, Array]:
        """f̂(s̄') and f(s̄'): on the observation that was reached."""
        del before, action
        return predictor(after), self.target(after)

    def novelty(self, x: Float[Array, "n ..."], state: PredictionState) -> Float[Array, " n"]:
        """i of every row of data, without an agent."""
        if not self.whiten and isinstance(x, np.ndarray | jax.Array) and not isinstance(x, jax.core.Tracer):  # pyright: ignore[reportAttributeAccessIssue]
            largest = float(np.max(np.abs(np.asarray(x)), initial=0.0))
            if largest > 10:
                said = f"RND.novelty got numbers up to {largest:.3g} and does not normalise them: whiten=True does."
                warnings.warn(said, BonusWarning, stacklevel=2)
        return self.reward(Transitions(x, None, x), state)  # pyright: ignore[reportArgumentType]


def size_of(network: Any) -> int:
    """How many numbers a network learns."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))


def check_prediction(owner: str, bonus: Any) -> None:
    """Raise where a setting is wrong."""
    require(owner, "keep", "in (0, 1]", bonus.keep, lambda k: 0 < k <= 1)
    require(owner, "clip", "> 0", bonus.clip, lambda c: c > 0)
    require(owner, "learning_rate", "> 0", bonus.learning_rate, lambda r: r > 0)


def make_rnd(
    key: Array, num_inputs: int, *, num_features: int = 32, width: int = 64, depth: int = 1, **settings: Any
) -> RND:
    """RND for small observations: leaky perceptrons with orthogonal weights, the predictor with two more layers.

    num_inputs: numbers of an observation. num_features: of f. width: of hidden layers. depth: hidden layers of the
    target. settings: of ``RND``.
    """
    for name, value in (("num_features", num_features), ("width", width), ("depth", depth)):
        require("make_rnd", name, ">= 1", value, lambda n: n >= 1)
    common, leaky = (num_inputs, *[width] * depth), {"activation": jax.nn.leaky_relu}
    wider = Layers((*common, width, width, num_features), **leaky)  # pyright: ignore[reportArgumentType]
    target, predictor = make_perceptrons(key, Layers((*common, num_features), **leaky), wider)  # pyright: ignore[reportArgumentType]
    return RND(Flat(target), Flat(predictor), **settings)  # pyright: ignore[reportArgumentType]


class Flat(eqx.Module):
    """A network of a vector as one of arrays of any shape, put in a row."""

    network: Callable[[Array], Array]

    def __call__(self, *parts: Array) -> Array:
        """Its output."""
        return self.network(jnp.concatenate([jnp.ravel(part) for part in parts]))
