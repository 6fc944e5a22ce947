"""A discriminator that learns to tell real from made examples, behind any regularisers: for GANs and for imitation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from laureate._core import require
from laureate.generative.adversarial import _adam as adam
from laureate.generative.conditional import Optimiser, status_of
from laureate.generative.losses import LOSSES
from laureate.generative.regularisers import AbstractRegulariser, Examples, rows_of
from laureate.generative.stateful import SpectralReport, as_network

__all__ = ["Judge", "JudgeInfo", "JudgeState", "accumulated", "adam", "keys_of"]

# A loss whose derivative by the logit is smaller has nothing more to teach.
LEARNED = 0.01


class JudgeState(NamedTuple):
    """What the next step needs.

    parameters: arrays of the discriminator and, one for each regulariser, of what it learns. optimiser: its state.
    regularisers: their states; a bottleneck's has β, I_c and ``collapsed``. network: the discriminator's own state,
    where it has one, such as singular vectors.
    """

    parameters: Any
    optimiser: Any
    regularisers: tuple[Any, ...]
    network: Any = ()


class JudgeInfo(NamedTuple):
    """What a step of the discriminator tells, before it.

    loss: with penalties. margin: the mean logit of real examples less that of made ones. accuracy: the share of both on
    the right side of the loss's middle. saturated: the share of both from which there is nothing more to learn. nats:
    what regularisers cost, ½ real + ½ made. spectrum: the largest singular values of the discriminator's normalised
    weights. cost: passes (a network forward and backward over the batch). status: DIVERGED where the loss is not
    finite; the step is taken all the same.
    """

    loss: Array
    margin: Array
    accuracy: Array
    saturated: Array
    nats: Array
    spectrum: SpectralReport
    cost: Array
    status: Array


def keys_of(key: Array, number: int) -> Array:
    """So many keys; of one, itself: each call of the generator is a tenth of a second of compiling."""
    return key[None] if number == 1 else jax.random.split(key, number)


def accumulated(function: Callable, *batches: Any) -> tuple[Any, Any]:
    """A function of parts of a batch, one after the other over the first axis of its arguments.

    It hands back two pytrees: the first is averaged over the parts, the second is kept of each.
    """
    first = jax.tree.map(lambda leaf: leaf[0], batches)
    number = len(jax.tree.leaves(batches)[0])
    if number == 1:
        mean, kept = function(*first)
        return mean, jax.tree.map(lambda leaf: leaf[None], kept)

    def one(sums, batch):
        found, kept = function(*batch)
        return jax.tree.map(jnp.add, sums, found), kept

    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, *first)[0])
    total, kept = jax.lax.scan(one, zeros, batches)
    return jax.tree.map(lambda leaf: leaf / number, total), kept


class Judge(eqx.Module):
    """A discriminator with its loss, its regularisers and its optimiser (half of a GAN, or of an imitator)::

        min_D E ℓ_real(l(x)) + E ℓ_made(l(x̃)) + Σ penalties,   l(x) = D(see(x))

    discriminator: D, from what is seen of one example (and its conditions) to one number, or an
        ``AbstractNetwork`` of whole batches.
    loss: "non-saturating", "saturating", "hinge", "wasserstein" or "lsgan".
    regulariser: None, a regulariser, or a tuple of them: the first sees the example, the next what it lets through.
    learning_rate: > 0.
    optimiser: from a learning rate to an Optax optimiser; Adam with b1 = 0.5 unless given.
    num_accumulated: a batch is dealt out in so many parts, whose gradients are averaged, >= 1.

    >>> judge = Judge(jnp.sum, learning_rate=0.1)
    >>> state, info = judge.step(jax.random.key(0), jnp.ones((4, 2)), jnp.zeros((4, 2)), judge.init())
    >>> float(info.margin), int(info.cost)
    (2.0, 2)
    """

    discriminator: Callable[..., Array]
    loss: str = eqx.field(static=True, default="non-saturating")
    regulariser: Any = None
    learning_rate: float | Array = 1e-3
    optimiser: Optimiser = eqx.field(static=True, default=adam)
    num_accumulated: int = eqx.field(static=True, default=1)

    def __check_init__(self):
        require("Judge", "loss", f"one of {', '.join(LOSSES)}", self.loss, lambda name: name in LOSSES)
        require("Judge", "learning_rate", "> 0", self.learning_rate, lambda v: v > 0)
        require("Judge", "num_accumulated", ">= 1", self.num_accumulated, lambda n: n >= 1)
        kinds = [type(one).__name__ for one in self.regularisers if not isinstance(one, AbstractRegulariser)]
        rule, remedy = "a regulariser or a tuple of them", "GradientPenalty, InstanceNoise, VariationalBottleneck."
        require("Judge", "regulariser", rule, kinds, lambda wrong: not wrong, remedy)

    @property
    def regularisers(self) -> tuple[Any, ...]:
        """As a tuple."""
        return () if self.regulariser is None else rows_of(self.regulariser)

    @property
    def networks(self) -> Any:
        """D, then what the regularisers learn."""
        return (self.discriminator, tuple(one.networks for one in self.regularisers))

    def init(self) -> JudgeState:
        """The first weights."""
        parameters = eqx.filter(self.networks, eqx.is_inexact_array)
        states = tuple(one.init() for one in self.regularisers)
        network = as_network(self.discriminator).init()
        return JudgeState(parameters, self.optimiser(self.learning_rate).init(parameters), states, network)

    def seen(
        self, key: Array | None, parameters: Any, x: Array, states: tuple[Any, ...], learner: str
    ) -> tuple[Array, tuple[Array, ...]]:
        """What D sees of a batch, and what each regulariser asks for it, in nats [n]; None for a key: no noise."""
        _, learned = eqx.combine(parameters, self.networks)
        nats = []
        for number, one in enumerate(self.regularisers):
            own = None if key is None else jax.random.fold_in(key, number)
            x, price = one.see(own, learned[number], x, states[number], learner=learner)
            nats.append(price)
        return x, tuple(nats)

    def logits(
        self,
        key: Array | None,
        parameters: Any,
        examples: Examples,
        states: tuple[Any, ...],
        learner: str,
        network: Any = (),
    ) -> tuple[Float[Array, " n"], tuple[Array, ...]]:
        """l = D(see(x)) of a batch, and the nats; ``network``: the discriminator's own state."""
        return self._logits(key, parameters, examples, states, learner, self._bound(parameters, network))

    def _bound(self, parameters: Any, network: Any) -> Callable[..., tuple[Array, Any]]:
        return as_network(eqx.combine(parameters, self.networks)[0]).bound(network)

    def _logits(self, key, parameters, examples, states, learner, discriminator):
        x, *beside = rows_of(examples)
        seen, nats = self.seen(key, parameters, x, states, learner)
        return discriminator(seen, *beside)[0].reshape(len(x)), nats

    def score(self, state: JudgeState, examples: Examples) -> Float[Array, " n"]:
        """l of a batch, without noise."""
        return self.logits(None, state.parameters, examples, state.regularisers, "generator", state.network)[0]

    def step(self, key: Array, real: Examples, made: Examples, state: JudgeState) -> tuple[JudgeState, JudgeInfo]:
        """One step of D and of what regularisers learn; then each regulariser learns what its nats were."""
        play = LOSSES[self.loss]
        network, spectrum = as_network(eqx.combine(state.parameters, self.networks)[0]).refresh(state.network)
        shapes = rows_of(real)[0].shape[1:], rows_of(made)[0].shape[1:]
        require("Judge", "made", "examples of the shape of real ones", shapes, lambda both: both[0] == both[1])

        def part(key, real, made):
            """Gradient, reports and nats of one part of the batch."""

            def objective(parameters):
                real_key, made_key, penalty_key = jax.random.split(key, 3)
                know = state.regularisers, "discriminator", self._bound(parameters, network)
                on_real, real_nats = self._logits(real_key, parameters, real, *know)
                on_made, made_nats = self._logits(made_key, parameters, made, *know)
                # E over the mixture ½ p* + ½ G, whatever the sizes of the batches.
                nats = tuple(0.5 * (jnp.mean(a) + jnp.mean(b)) for a, b in zip(real_nats, made_nats, strict=True))
                value = jnp.mean(play.real(on_real)) + jnp.mean(play.made(on_made))

                def judge(x, *beside):
                    one = tuple(leaf[None] for leaf in (x, *beside))
                    return self._logits(None, parameters, one, *know)[0][0]

                for number, one in enumerate(self.regularisers):
                    own = jax.random.fold_in(penalty_key, number)
                    value += one.penalty(own, judge, real, made, nats[number], state.regularisers[number])
                return value, (on_real, on_made, nats)

            found = eqx.filter_value_and_grad(objective, has_aux=True)(state.parameters)
            (value, (on_real, on_made, nats)), gradient = found
            return (gradient, self._told(value, on_real, on_made), nats), ()

        number = self.num_accumulated
        deal = lambda rows: tuple(leaf.reshape(number, -1, *leaf.shape[1:]) for leaf in rows_of(rows))  # noqa: E731
        (gradient, told, nats), _ = accumulated(part, keys_of(key, number), deal(real), deal(made))
        rule = self.optimiser(self.learning_rate)
        updates, optimiser = rule.update(gradient, state.optimiser, state.parameters)
        after = tuple(
            one.update(own, price) for one, own, price in zip(self.regularisers, state.regularisers, nats, strict=True)
        )
        cost = jnp.asarray(2 + sum(one.passes for one in self.regularisers))  # in however many parts
        loss, margin, accuracy, saturated = told
        paid = sum(nats, jnp.zeros_like(loss))
        info = JudgeInfo(loss, margin, accuracy, saturated, paid, spectrum, cost, status_of(loss))
        return JudgeState(eqx.apply_updates(state.parameters, updates), optimiser, after, network), info

    def _told(self, value: Array, on_real: Array, on_made: Array) -> tuple[Array, ...]:
        """Loss, margin, accuracy and the share of examples from which nothing is left to learn."""
        play, middle = LOSSES[self.loss], 0.5 if self.loss == "lsgan" else 0.0
        half = lambda real, made: 0.5 * (jnp.mean(real, dtype=value.dtype) + jnp.mean(made, dtype=value.dtype))  # noqa: E731
        slopes = jax.vmap(jax.grad(play.real))(on_real), jax.vmap(jax.grad(play.made))(on_made)
        accuracy = half(on_real > middle, on_made < middle)
        saturated = half(jnp.abs(slopes[0]) < LEARNED, jnp.abs(slopes[1]) < LEARNED)
        return value, jnp.mean(on_real) - jnp.mean(on_made), accuracy, saturated
