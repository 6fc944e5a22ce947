"""Other errors of prediction as bonuses, with RND's interface: of the next observation, of the observation itself."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from laureate.control.bonuses import Transitions
from laureate.control.policies import Layers, make_perceptrons
from laureate.control.ppo import Optimiser, adam
from laureate.control.rnd import AbstractPredictionBonus, Flat, PredictionState, check_prediction

__all__ = ["AutoencoderBonus", "DynamicsBonus", "make_autoencoder", "make_dynamics"]


class AutoencoderBonus(AbstractPredictionBonus):
    """A bonus for observations that an autoencoder cannot restore.

    ::

        i_t = mean_k (g_k(s̄_{t+1}) − s̄_{t+1, k})²

    It stays where the network is too small for the observations, which RND avoids by a target that it can represent.

    predictor: g, from one observation to its like; with a narrow middle, or it learns to copy.
    keep, clip, learning_rate, optimiser, whiten: as for ``RND``.

    >>> bonus = AutoencoderBonus(lambda s: 0 * s, whiten=False)
    >>> bonus.novelty(jax.numpy.array([[1.0, 3.0]]), bonus.init(jax.numpy.zeros(2))).tolist()
    [5.0]
    """

    predictor: Callable[[Array], Array]
    keep: float | Array = 1.0
    clip: float | Array = 5.0
    learning_rate: float | Array = 1e-4
    optimiser: Optimiser = eqx.field(static=True, default=adam)
    whiten: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_prediction("AutoencoderBonus", self)

    def pair(self, predictor: Any, before: Array, action: Array, after: Array) -> tuple[Array, Array]:
        """g(s̄') and s̄'."""
        del before, action
        return predictor(after), after

    def novelty(self, x: Float[Array, "n ..."], state: PredictionState) -> Float[Array, " n"]:
        """i of every row of data."""
        return self.reward(Transitions(x, None, x), state)  # pyright: ignore[reportArgumentType]


class DynamicsBonus(AbstractPredictionBonus):
    """A bonus for transitions that a model of the environment cannot predict.

    ::

        i_t = mean_k (h_k(s̄_t, a_t) − f_k(s̄_{t+1}))²

    (With a random f: Burda et al. 2018, RND's baseline.) Where the environment is random it never vanishes: an agent
    may stay before a screen of noise.

    target: f, from one observation to fixed features; ``lambda s: s`` for the observation itself.
    predictor: h, from an observation and what ``encode`` makes of an action to features.
    encode: from one action to an array, e.g. one-hot.
    keep, clip, learning_rate, optimiser, whiten: as for ``RND``.

    >>> bonus = DynamicsBonus(lambda s: s, lambda s, a: s + a, lambda a: a, whiten=False)
    >>> steps = Transitions(jax.numpy.array([[1.0]]), jax.numpy.array([2.0]), jax.numpy.array([[5.0]]))
    >>> bonus.reward(steps, bonus.init(jax.numpy.zeros(1))).tolist()
    [4.0]
    """

    target: Callable[[Array], Array]
    predictor: Callable[[Array, Array], Array]
    encode: Callable[[Array], Array]
    keep: float | Array = 1.0
    clip: float | Array = 5.0
    learning_rate: float | Array = 1e-4
    optimiser: Optimiser = eqx.field(static=True, default=adam)
    whiten: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_prediction("DynamicsBonus", self)

    def pair(self, predictor: Any, before: Array, action: Array, after: Array) -> tuple[Array, Array]:
        """h(s̄, a) and f(s̄')."""
        return predictor(before, self.encode(action)), self.target(after)


def make_autoencoder(
    key: Array, num_inputs: int, *, num_features: int = 8, width: int = 64, **settings: Any
) -> AutoencoderBonus:
    """An autoencoder of vectors with ``num_features`` in its middle; settings: of ``AutoencoderBonus``.

    key: of the weights. num_inputs: numbers of an observation. width: of hidden layers.
    """
    sizes = (num_inputs, width, num_features, width, num_inputs)
    (network,) = make_perceptrons(key, Layers(sizes, activation=jax.nn.leaky_relu))
    return AutoencoderBonus(network, **settings)


def make_dynamics(
    key: Array, num_inputs: int, num_actions: int, *, num_features: int = 32, width: int = 64, **settings: Any
) -> DynamicsBonus:
    """A model of random features of the next observation, the size of ``make_rnd``'s, for ``num_actions`` choices.

    key: of the weights. num_inputs: numbers of an observation. num_features: of the next observation, which the model
        predicts. width: of hidden layers. settings: of ``DynamicsBonus``.
    """
    features, leaky = (num_inputs, width, num_features), {"activation": jax.nn.leaky_relu}
    model = (num_inputs + num_actions, width, width, width, num_features)
    target, predictor = make_perceptrons(key, Layers(features, **leaky), Layers(model, **leaky))  # pyright: ignore[reportArgumentType]
    return DynamicsBonus(Flat(target), Flat(predictor), OneHot(num_actions), **settings)  # pyright: ignore[reportArgumentType]


class OneHot(eqx.Module):
    """A choice as a vector of zeros and a one."""

    num: int = eqx.field(static=True)

    def __call__(self, action: Array) -> Array:
        """Of one action."""
        return jax.nn.one_hot(action, self.num)
