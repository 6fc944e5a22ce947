"""Networks that carry something beside their weights: singular vectors to divide by, statistics to normalise with."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from laureate._core import require
from laureate.layers import RunningStatistics, SpectralNorm, SpectralState

__all__ = [
    "AbstractNetwork",
    "EachExample",
    "NormalisedState",
    "SpectralReport",
    "SpectrallyNormalised",
    "WholeBatch",
    "as_network",
    "by_shape",
    "joined_statistics",
    "named_weights",
    "top_singular_values",
]


class SpectralReport(NamedTuple):
    """The largest singular value of every normalised weight, as the power method knows it.

    sigma: σ̂, in the order of ``SpectrallyNormalised.names``. residual: ‖Wᵀu − σ̂v‖ / σ̂, 0 where it has converged.
    """

    sigma: Float[Array, " weights"]
    residual: Float[Array, " weights"]


class NormalisedState(NamedTuple):
    """What a spectrally normalised network carries.

    singular: right singular vectors, those of weights of one shape together. inner: the state of the network within.
    """

    singular: tuple[SpectralState, ...]
    inner: Any


class AbstractNetwork(eqx.Module):
    """A generator or discriminator of whole batches, with a state that is not learned by descent.

    The trainer calls ``refresh`` once before a step of the network, ``bound`` for what it calls with that state, and
    ``observe`` once after the step, with the batch statistics that came back.
    """

    @property
    @abc.abstractmethod
    def needs_statistics(self) -> bool:
        """Whether outputs depend on the batch unless statistics are given."""

    @abc.abstractmethod
    def init(self) -> Any:
        """The state before the first step; nothing is drawn."""

    @abc.abstractmethod
    def refresh(self, state: Any) -> tuple[Any, SpectralReport]:
        """The state that suits the weights of now, and the singular values."""

    @abc.abstractmethod
    def bound(self, state: Any) -> Callable[..., tuple[Array, Any]]:
        """The network as a function ``(*inputs, statistics=None) -> (outputs, statistics)`` of batches.

        The statistics handed back are those used: the batch's own where none are given.
        """

    @abc.abstractmethod
    def observe(self, state: Any, statistics: Any) -> Any:
        """The state after a step whose batch had these statistics."""

    @abc.abstractmethod
    def check(self, examples: Any, *beside: Any) -> None:
        """Raise for examples (None where they are to be made) and conditions that do not suit the network."""

    def apply(self, state: Any, *inputs: Array, statistics: Any = None) -> tuple[Array, Any]:
        """Outputs of a batch, and the statistics that were used."""
        return self.bound(state)(*inputs, statistics=statistics)


def _nothing() -> SpectralReport:
    return SpectralReport(jnp.zeros(0), jnp.zeros(0))


class EachExample(AbstractNetwork):
    """A function of one example, called for every row of a batch; it carries nothing.

    function: from one example, and its conditions, to an output.

    >>> EachExample(lambda x: 2 * x).apply((), jnp.ones((3, 2)))[0].shape
    (3, 2)
    """

    function: Callable[..., Array]

    @property
    def needs_statistics(self) -> bool:
        """No."""
        return False

    def init(self) -> Any:
        """Nothing."""
        return ()

    def refresh(self, state: Any) -> tuple[Any, SpectralReport]:
        """Nothing to do."""
        return state, _nothing()

    def bound(self, state: Any) -> Callable[..., tuple[Array, Any]]:
        """Row by row."""
        return lambda *inputs, statistics=None: (jax.vmap(self.function)(*inputs), ())

    def check(self, examples: Any, *beside: Any) -> None:
        """Nothing is known of the function."""

    def observe(self, state: Any, statistics: Any) -> Any:
        """Nothing to keep."""
        return state


class WholeBatch(AbstractNetwork):
    """A function of a batch that may normalise by it; an exponential average of its statistics is carried along.

    function: ``function(*inputs, statistics=None) -> (outputs, statistics)``. Where ``statistics`` is None it takes the
        batch's own; it hands back those used, a pytree of ``RunningStatistics`` as its ``init()`` gives it. Without an
        ``init`` it has none, and hands back ().
    momentum: of the average, within 0 and 1. A discriminator's average is not kept: it sees real and made batches.

    >>> plain = WholeBatch(lambda x, statistics=None: (x, ()))
    >>> plain.init(), plain.needs_statistics
    ((), False)
    """

    function: Callable[..., tuple[Array, Any]]
    momentum: float = eqx.field(static=True, default=0.9)

    def __check_init__(self):
        require("WholeBatch", "momentum", "within 0 and 1", self.momentum, lambda m: 0 <= m < 1)

    @property
    def needs_statistics(self) -> bool:
        """Whether the function has any."""
        return hasattr(self.function, "init")

    def init(self) -> Any:
        """Statistics of nothing."""
        function: Any = self.function
        return function.init() if self.needs_statistics else ()

    def refresh(self, state: Any) -> tuple[Any, SpectralReport]:
        """Nothing to do."""
        return state, _nothing()

    def bound(self, state: Any) -> Callable[..., tuple[Array, Any]]:
        """All rows together."""
        return self.function

    def check(self, examples: Any, *beside: Any) -> None:
        """As the function does, where it has a ``check``."""
        getattr(self.function, "check", lambda *_: None)(examples, *beside)

    def observe(self, state: Any, statistics: Any) -> Any:
        """momentum · state + (1 − momentum) · statistics, the first whole."""
        return _each(lambda old, new: old.average(new, self.momentum), state, statistics)


class SpectrallyNormalised(AbstractNetwork):
    """Any network with its weights divided by their largest singular value (Miyato et al. 2018)::

        once a step:  v ← Wᵀu / ‖Wᵀu‖,   u ← Wv / ‖Wv‖;   at every call:  W / σ̂,   σ̂ = uᵀWv

    The gradient flows through σ̂ with u and v held. A weight is an array of at least two axes, taken as the matrix of
    its last axis against all others; for a convolution that is not the norm as an operator, which is up to √(h · w) of
    the kernel larger.

    network: a function of one example, or an ``AbstractNetwork``.
    num_steps: of the power method a step, >= 1.
    where: whether to normalise a weight, from its path, such as ".blocks[0].weight".

    >>> from laureate.generative import perceptrons
    >>> network = SpectrallyNormalised(perceptrons(jax.random.key(0), (4, 8, 1))[0])
    >>> state, report = network.refresh(network.init())
    >>> network.names, report.sigma.shape
    (('.function.weights[0]', '.function.weights[1]'), (2,))
    """

    network: Any
    num_steps: int = eqx.field(static=True, default=1)
    where: Callable[[str], bool] = eqx.field(static=True, default=lambda path: True)

    def __check_init__(self):
        remedy = "Without iterations the first random direction would be divided by."
        require("SpectrallyNormalised", "num_steps", ">= 1", self.num_steps, lambda n: n >= 1, remedy)
        rule = "true for at least one weight (an array of two axes or more)"
        require("SpectrallyNormalised", "where", rule, self.names, lambda names: len(names) > 0)

    @property
    def within(self) -> AbstractNetwork:
        """The network, of whole batches."""
        return as_network(self.network)

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the weights that are normalised."""
        return tuple(path for path, _ in self._weights())

    @property
    def needs_statistics(self) -> bool:
        """As the network within."""
        return self.within.needs_statistics

    def init(self) -> NormalisedState:
        """A direction for each weight: a generic one, for which no key is needed."""
        return NormalisedState(tuple(_start(stack) for _, stack in self._groups()), self.within.init())

    def refresh(self, state: NormalisedState) -> tuple[NormalisedState, SpectralReport]:
        """So many power iterations of every weight."""
        _, singular, report = self._divided(state.singular, self.num_steps)
        inner, _ = self.within.refresh(state.inner)
        return jax.lax.stop_gradient(NormalisedState(singular, inner)), jax.lax.stop_gradient(report)

    def bound(self, state: NormalisedState) -> Callable[..., tuple[Array, Any]]:
        """The network within, with the divided weights; the state stays."""
        network, _, _ = self._divided(state.singular, 0)
        return network.bound(state.inner)

    def check(self, examples: Any, *beside: Any) -> None:
        """As the network within."""
        self.within.check(examples, *beside)

    def observe(self, state: NormalisedState, statistics: Any) -> NormalisedState:
        """As the network within."""
        return state._replace(inner=self.within.observe(state.inner, statistics))

    def _groups(self) -> list[tuple[list[int], Array]]:
        return by_shape([leaf for _, leaf in self._weights()])

    def _weights(self) -> list[tuple[str, Array]]:
        return [(path, leaf) for path, leaf in named_weights(self.within) if self.where(path)]

    def _divided(self, singular: tuple[SpectralState, ...], num_steps: int) -> tuple[Any, Any, SpectralReport]:
        """The network with W / σ̂, the vectors after so many iterations, and the report."""
        norm, weights = SpectralNorm(num_steps), self._weights()
        scaled, sigma, residual, vectors = {}, {}, {}, []
        for (places, stack), own in zip(self._groups(), singular, strict=True):
            divided, after, told = jax.vmap(norm)(stack, own)
            vectors.append(after)
            for n, place in enumerate(places):
                path, weight = weights[place]
                scaled[path] = divided[n].reshape(weight.shape)
                sigma[place], residual[place] = told.sigma[n], told.residual[n]
        paths, tree = jax.tree_util.tree_flatten_with_path(self.within)
        leaves = [scaled.get(jax.tree_util.keystr(path), leaf) for path, leaf in paths]
        report = SpectralReport(*(jnp.stack([one[n] for n in range(len(weights))]) for one in (sigma, residual)))
        return jax.tree_util.tree_unflatten(tree, leaves), tuple(vectors), report


def _start(stack: Float[Array, "k m n"]) -> SpectralState:
    drawn = np.random.default_rng(0).normal(size=(stack.shape[0], stack.shape[2]))
    return SpectralState(jnp.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), stack.dtype))


def as_network(function: Any) -> AbstractNetwork:
    """Functions of one example are called for every row; networks of whole batches stay what they are."""
    return function if isinstance(function, AbstractNetwork) else EachExample(function)


def top_singular_values(network: Any, num_values: int = 3) -> dict[str, Float[Array, " k"]]:
    """The largest singular values of every weight of a network, exactly, by its path.

    Before a GAN collapses a few of them grow, as Brock et al. (2019) found; whether they do is for a monitor to say.

    num_values: how many of each, >= 1; fewer where a weight has fewer.

    >>> found = top_singular_values({"w": jnp.diag(jnp.array([1.0, 3.0]))}, 1)
    >>> found["['w']"].tolist()
    [3.0]
    """
    require("top_singular_values", "num_values", ">= 1", num_values, lambda n: n >= 1)
    values = lambda weight: jnp.linalg.svd(weight.reshape(-1, weight.shape[-1]), compute_uv=False)  # noqa: E731
    return {path: values(weight)[:num_values] for path, weight in named_weights(network)}


def named_weights(network: Any) -> list[tuple[str, Array]]:
    """Paths and arrays of two axes at least."""
    leaves = jax.tree_util.tree_flatten_with_path(network)[0]
    return [(jax.tree_util.keystr(p), leaf) for p, leaf in leaves if eqx.is_inexact_array(leaf) and leaf.ndim >= 2]


def by_shape(weights: list[Array]) -> list[tuple[list[int], Float[Array, "k m n"]]]:
    """Weights as matrices of the last axis against all others, those of one shape stacked, and where they stood.

    A network has many weights and few shapes: so it is compiled in half the time.
    """
    groups: dict[Any, list[int]] = {}
    for place, weight in enumerate(weights):
        groups.setdefault((weight.size, weight.shape[-1], weight.dtype), []).append(place)
    matrix = lambda place: weights[place].reshape(-1, weights[place].shape[-1])  # noqa: E731
    return [(places, jnp.stack([matrix(place) for place in places])) for places in groups.values()]


def joined_statistics(parts: Any) -> Any:
    """Statistics of all rows of several batches, from trees whose leaves have the batches first."""
    first = jax.tree.map(lambda leaf: leaf[0], parts)
    rest = jax.tree.map(lambda leaf: leaf[1:], parts)

    def add(sums, part):
        return _each(lambda a, b: a.merge(b), sums, part), None

    alone = all(len(leaf) == 1 for leaf in jax.tree.leaves(parts))
    return first if alone else jax.lax.scan(add, first, rest)[0]


def _each(function: Callable, *trees: Any) -> Any:
    """Over trees of ``RunningStatistics``."""
    return jax.tree.map(function, *trees, is_leaf=lambda leaf: isinstance(leaf, RunningStatistics))
