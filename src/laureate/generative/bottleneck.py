"""The variational discriminator bottleneck: a discriminator that may learn only so many nats about an example."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from laureate._core import require
from laureate.generative.networks import Perceptron, perceptrons
from laureate.generative.regularisers import AbstractRegulariser, Examples, Logit

__all__ = [
    "AdaptiveBudget",
    "BottleneckCollapsedWarning",
    "BottleneckState",
    "GaussianEncoder",
    "VariationalBottleneck",
    "divergence",
    "make_encoder",
]

# log σ is kept within these: beyond, σ² overflows before the price of it can be learned.
LOG_DEVIATIONS = (-6.0, 3.0)
# Below this share of the budget the encoder says nothing.
SILENT = 0.05


class BottleneckCollapsedWarning(UserWarning):
    """The encoder carries next to nothing, and β is too large to let it begin again."""


class BottleneckState(NamedTuple):
    """What the next step needs.

    beta: the price β of a nat. information: the budget I_c, in nats. silent: steps in a row with less than a twentieth
    of the budget used. collapsed: whether these are as many as the bottleneck's patience.
    """

    beta: Array
    information: Array
    silent: Array
    collapsed: Array


def divergence(mean: Array, log_deviation: Array) -> Array:
    """KL(N(μ, σ²) ‖ N(0, I)) = Σ_k (−log σ_k + ½ (σ_k² + μ_k²) − ½) over the last axis.

    >>> float(divergence(jnp.array([1.0, 0.0]), jnp.zeros(2)))
    0.5
    """
    return jnp.sum(-log_deviation + 0.5 * (jnp.exp(2 * log_deviation) + mean**2) - 0.5, axis=-1)


class GaussianEncoder(eqx.Module):
    """A network whose output is cut in two: μ and log σ.

    network: from one example to a vector with 2 Z numbers.
    """

    network: Callable[[Array], Array]

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """μ and log σ, [Z] each."""
        mean, log_deviation = jnp.split(self.network(x), 2)
        return mean, log_deviation


def make_encoder(
    key: Array, sizes: tuple[int, ...], num_codes: int, *, scale: float = 0.02, activation: Callable = jax.nn.leaky_relu
) -> GaussianEncoder:
    """A perceptron as encoder, whose last layer begins small.

    That is part of the method: with usual weights the first KL is hundreds of nats, β shoots up and the encoder falls
    silent for ever.

    sizes: of the input and the hidden layers. num_codes: Z, numbers in z. scale: of the last layer's weights.

    >>> mean, log_deviation = make_encoder(jax.random.key(0), (3, 8), 4)(jnp.ones(3))
    >>> mean.shape, log_deviation.shape
    ((4,), (4,))
    """
    require("make_encoder", "num_codes", ">= 1", num_codes, lambda n: n >= 1)
    (network,) = perceptrons(key, (*sizes, 2 * num_codes), activation=activation)
    last = scale * network.weights[-1]
    return GaussianEncoder(Perceptron((*network.weights[:-1], last), network.biases, activation=activation))


class AdaptiveBudget(eqx.Module):
    """A budget that follows the gradients which the generator gets (a reviewer of the paper asked for it)::

        I_c ← I_c · exp(−rate · (share of made examples with ‖gradient‖ < below − target))

    rate: κ, >= 0.
    target: the share of vanished gradients that is accepted, within 0 and 1.
    below: the length under which a gradient has vanished, > 0.
    min_information, max_information: between which I_c stays, in nats, > 0; the first is not above the second.

    >>> float(AdaptiveBudget(rate=1.0, target=0.0, below=0.1).adapt(jnp.asarray(0.5), jnp.array([0.0, 1.0])))
    0.3032653331756592
    """

    rate: float | Array = 0.01
    target: float | Array = 0.05
    below: float | Array = 0.03
    min_information: float | Array = 0.01
    max_information: float | Array = 10.0

    def __check_init__(self):
        require("AdaptiveBudget", "rate", ">= 0", self.rate, lambda r: r >= 0)
        require("AdaptiveBudget", "target", "within 0 and 1", self.target, lambda t: 0 <= t <= 1)
        require("AdaptiveBudget", "below", "> 0", self.below, lambda b: b > 0)
        require("AdaptiveBudget", "min_information", "> 0", self.min_information, lambda v: v > 0)
        least = 0.0 if isinstance(self.min_information, Tracer) else np.asarray(self.min_information)
        rule = f">= min_information, {least}"
        require("AdaptiveBudget", "max_information", rule, self.max_information, lambda v: v >= least)

    def adapt(self, information: Array, slopes: Float[Array, " n"]) -> Array:
        """I_c after a step of the generator."""
        vanished = jnp.mean((slopes < self.below).astype(information.dtype))
        return jnp.clip(
            information * jnp.exp(-self.rate * (vanished - self.target)), self.min_information, self.max_information
        )


class VariationalBottleneck(AbstractRegulariser):
    """The discriminator sees an example only as a noisy code z, and pays for what the code says (Peng et al. 2019)::

        z = μ(x) + σ(x) ε,   l = D(z)
        min_{D,E} max_{β≥0}  E_real ℓ(l) + E_made ℓ(l) + β (½ E_real KL + ½ E_made KL − I_c)
        β ← min(cap, max(0, β + beta_rate (KL − I_c))),   KL of the same batch, before the step

    KL is an upper bound of the information I(X; Z). The generator, and an imitator's reward, sees z = μ(x) and pays
    nothing. The discriminator is then a function of z, in the paper a single linear unit.

    encoder: E, from one example to (μ, log σ), each [..., Z]; see ``make_encoder``. log σ is kept within −6 and 3.
    information: I_c, in nats, > 0. Beyond 50 the constraint is not felt.
    beta: β before the first step, >= 0; > 0 where ``logarithmic``.
    beta_rate: step length of the dual ascent, >= 0; 0 for a fixed β.
    beta_cap: β is at most that.
    logarithmic: whether log β is moved instead, β ← β exp(beta_rate (KL − I_c)).
    through: what the generator learns through, the "mean" as the paper has it, or a "sample" as the authors' code does.
    noise: whether z is noisy; without, only the price is left.
    sites: whether KL is the "mean" over all axes of the code but the last, as the authors' image model, or the "sum".
    budget: an ``AdaptiveBudget``, or None for the same I_c for ever.
    patience: steps in a row with KL < I_c / 20 after which ``collapsed`` is reported.

    >>> bottleneck = VariationalBottleneck(lambda x: (x, 0 * x), beta_rate=0.1, beta=1.0)
    >>> float(bottleneck.update(bottleneck.init(), jnp.asarray(2.5)).beta)
    1.2000000476837158
    """

    encoder: Callable[[Array], tuple[Array, Array]]
    information: float | Array = 0.5
    beta: float | Array = 0.1
    beta_rate: float | Array = 1e-5
    beta_cap: float | Array = jnp.inf
    logarithmic: bool = eqx.field(static=True, default=False)
    through: str = eqx.field(static=True, default="mean")
    noise: bool = eqx.field(static=True, default=True)
    sites: str = eqx.field(static=True, default="sum")
    budget: AdaptiveBudget | None = None
    patience: int = eqx.field(static=True, default=500)

    def __check_init__(self):
        owner, remedy = "VariationalBottleneck", "It is a budget in nats; the paper uses 0.1 to 0.5."
        require(owner, "information", "> 0", self.information, lambda i: i > 0, remedy)
        for name in ("beta", "beta_rate", "beta_cap"):
            require(owner, name, ">= 0", getattr(self, name), lambda b: b >= 0)
        remedy = "From 0 a factor leads nowhere: begin with a small price, or move β itself (logarithmic=False)."
        if self.logarithmic:
            require(owner, "beta", "> 0 where logarithmic", self.beta, lambda b: b > 0, remedy)
        require(owner, "through", "'mean' or 'sample'", self.through, lambda t: t in ("mean", "sample"))
        require(owner, "sites", "'mean' or 'sum'", self.sites, lambda s: s in ("mean", "sum"))
        require(owner, "patience", ">= 1", self.patience, lambda p: p >= 1)

    @property
    def networks(self) -> Any:
        """E."""
        return self.encoder

    @property
    def passes(self) -> int:
        """The encoder is counted as a part of the discriminator."""
        return 0

    def init(self) -> BottleneckState:
        """β and I_c as they are given."""
        beta, information = (jnp.asarray(value, jnp.result_type(float)) for value in (self.beta, self.information))
        return BottleneckState(beta, information, jnp.zeros((), jnp.int32), jnp.zeros((), bool))

    def code(self, networks: Any, x: Array) -> tuple[Array, Array]:
        """μ and log σ of a batch."""
        mean, log_deviation = jax.vmap(networks)(x)
        return mean, jnp.clip(log_deviation, *LOG_DEVIATIONS)

    def see(self, key: Array | None, networks: Any, x: Array, state: Any, *, learner: str) -> tuple[Array, Array]:
        """z = μ + σ ε, and KL(N(μ, σ²) ‖ N(0, I))."""
        mean, log_deviation = self.code(networks, x)
        nats = divergence(mean, log_deviation).reshape(len(x), -1)
        nats = jnp.mean(nats, axis=1) if self.sites == "mean" else jnp.sum(nats, axis=1)
        noisy = self.noise and (learner == "discriminator" or self.through == "sample")
        if key is None or not noisy:
            return mean, nats
        return mean + jnp.exp(log_deviation) * jax.random.normal(key, mean.shape, mean.dtype), nats

    def penalty(self, key: Array, judge: Logit, real: Examples, made: Examples, nats: Array, state: Any) -> Array:
        """β (KL − I_c)."""
        return (state.beta * (nats - state.information)).astype(nats.dtype)

    def update(self, state: BottleneckState, nats: Array) -> BottleneckState:
        """Dual ascent, projected; how long the encoder has been silent."""
        ascent = self.beta_rate * (nats - state.information)
        beta = state.beta * jnp.exp(ascent) if self.logarithmic else state.beta + ascent
        beta = jnp.clip(beta, 0.0, self.beta_cap).astype(state.beta.dtype)
        silent = jnp.where(nats < SILENT * state.information, state.silent + 1, 0)
        return BottleneckState(beta, state.information, silent, silent >= self.patience)

    def respond(self, state: BottleneckState, slopes: Float[Array, " n"]) -> BottleneckState:
        """I_c, where it adapts."""
        if self.budget is None:
            return state
        return state._replace(information=self.budget.adapt(state.information, slopes).astype(state.information.dtype))
