"""The adversarial trainer: any generator against any discriminator, with any loss, regularisers and Optax optimiser."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array

from laureate._core import require
from laureate.generative.adversarial_checks import after_training, before_training, data_of
from laureate.generative.conditional import Optimiser, check_key, status_of
from laureate.generative.judge import Judge, JudgeState, accumulated, adam, keys_of
from laureate.generative.losses import LOSSES
from laureate.generative.regularisers import Examples, rows_of

__all__ = ["Adversarial", "AdversarialInfo", "AdversarialState", "FittedAdversarial"]

# When training is about to collapse: nothing left to learn for the discriminator, or nothing to learn from it.
SATURATED, FLAT = 0.95, 0.5


class AdversarialState(NamedTuple):
    """What the next step needs.

    step: steps taken. generator: its arrays. average: their moving average, to sample with. optimiser: of the
    generator. judge: the discriminator's state, with those of the regularisers.
    """

    step: Array
    generator: Any
    average: Any
    optimiser: Any
    judge: JudgeState


class AdversarialInfo(NamedTuple):
    """What a step tells; of several discriminator steps, the last.

    generator_loss, discriminator_loss. margin, accuracy, saturated, nats: see ``JudgeInfo``. slope: the mean length of
    the generator's gradient at made examples. flat: the share of them where it is below ``Adversarial.below``.
    endangered: whether training is about to collapse: saturated > 0.95 or flat > 0.5. regularisers: their states after
    the step. cost: passes (a network forward and backward over a batch). status.
    """

    generator_loss: Array
    discriminator_loss: Array
    margin: Array
    accuracy: Array
    saturated: Array
    nats: Array
    slope: Array
    flat: Array
    endangered: Array
    regularisers: tuple[Any, ...]
    cost: Array
    status: Array


class Adversarial(eqx.Module):
    """A generative adversarial network, trained step by step (Goodfellow et al. 2014)::

        k times:  min_D E ℓ_real(l(x)) + E ℓ_made(l(G(z))) + Σ penalties,   z ~ N(0, I)
        once:     min_G E ℓ_G(l(G(z)))
        average ← decay · average + (1 − decay) · G

    With a ``VariationalBottleneck`` l(x) = D(z_x), and D is a function of the code: VGAN (Peng et al. 2019).

    generator: G, from z [num_latents] (and what is told beside, such as a label) to one example.
    discriminator: D, from what is seen of one example (and what is told beside) to one number.
    loss: "non-saturating", "saturating" (as the paper writes it), "hinge", "wasserstein" or "lsgan".
    regulariser: None, ``GradientPenalty``, ``InstanceNoise``, ``VariationalBottleneck``, or a tuple of them.
    num_latents: numbers in z, >= 1.
    learning_rate: of the generator, > 0.
    ratio: the discriminator's learning rate over the generator's, > 0.
    optimiser: from a learning rate to an Optax optimiser; Adam with b1 = 0.5 unless given.
    num_discriminator_steps: k, >= 1, each on rows of its own.
    num_accumulated: parts of a batch whose gradients are averaged, >= 1.
    decay: of the generator's moving average, within 0 and 1; 0 for none.
    below: the length under which a gradient at a made example counts as vanished.

    >>> gan = Adversarial(lambda z: z, lambda x: jnp.sum(x), num_latents=2)
    >>> state, info = gan.step(jax.random.key(0), jnp.ones((8, 2)), gan.init())
    >>> int(info.cost), float(info.accuracy)
    (4, 0.875)
    """

    generator: Callable[..., Array]
    discriminator: Callable[..., Array]
    loss: str = eqx.field(static=True, default="non-saturating")
    regulariser: Any = None
    num_latents: int = eqx.field(static=True, default=8)
    learning_rate: float | Array = 1e-3
    ratio: float | Array = 1.0
    optimiser: Optimiser = eqx.field(static=True, default=adam)
    num_discriminator_steps: int = eqx.field(static=True, default=1)
    num_accumulated: int = eqx.field(static=True, default=1)
    decay: float | Array = 0.0
    below: float | Array = 1e-4

    def __check_init__(self):
        require("Adversarial", "loss", f"one of {', '.join(LOSSES)}", self.loss, lambda name: name in LOSSES)
        for name in ("num_latents", "num_discriminator_steps", "num_accumulated"):
            require("Adversarial", name, ">= 1", getattr(self, name), lambda n: n >= 1)
        for name in ("learning_rate", "ratio", "below"):
            require("Adversarial", name, "> 0", getattr(self, name), lambda v: v > 0)
        require("Adversarial", "decay", "within 0 and 1", self.decay, lambda d: 0 <= d < 1)

    @property
    def judge(self) -> Judge:
        """The discriminator with its regularisers and its optimiser."""
        rate = self.learning_rate * self.ratio
        return Judge(self.discriminator, self.loss, self.regulariser, rate, self.optimiser, self.num_accumulated)

    def init(self) -> AdversarialState:
        """Zero steps, the first weights: networks bring them, so nothing is drawn."""
        arrays = eqx.filter(self.generator, eqx.is_inexact_array)
        optimiser = self.optimiser(self.learning_rate).init(arrays)
        return AdversarialState(jnp.zeros((), jnp.int32), arrays, arrays, optimiser, self.judge.init())

    def make(self, arrays: Any, z: Array, *beside: Array) -> Array:
        """G of a batch of z."""
        return jax.vmap(eqx.combine(arrays, self.generator))(z, *beside)

    def step(self, key: Array, x: Examples, state: AdversarialState) -> tuple[AdversarialState, AdversarialInfo]:
        """k steps of D, then one of G against the new D. x: k · n rows, or a tuple of them with what is told beside."""
        judge, number = self.judge, self.num_discriminator_steps
        rows = tuple(leaf.reshape(number, -1, *leaf.shape[1:]) for leaf in rows_of(x))
        size = rows[0].shape[1]
        latent_key, judge_key, own_key = jax.random.split(key, 3)
        z = jax.random.normal(latent_key, (number + 1, size, self.num_latents), rows[0].dtype)

        def discriminate(judged, part):
            key, z, (real, *beside) = part
            made = self.make(state.generator, z, *beside)
            return judge.step(key, (real, *beside), (made, *beside), judged)

        parts = keys_of(judge_key, number), z[:-1], rows
        if number == 1:  # without a loop: it compiles faster
            judged, told = discriminate(state.judge, jax.tree.map(lambda leaf: leaf[0], parts))
            told = jax.tree.map(lambda leaf: leaf[None], told)
        else:
            judged, told = jax.lax.scan(discriminate, state.judge, parts)
        beside = [leaf[-1] for leaf in rows[1:]]

        def part(key, z, *beside):
            """Gradient of G, its loss and the lengths of its gradient at the examples it made."""
            made, back = jax.vjp(lambda arrays: self.make(arrays, z, *beside), state.generator)

            def objective(made):
                found, _ = judge.logits(key, judged.parameters, (made, *beside), judged.regularisers, "generator")
                return jnp.mean(LOSSES[self.loss].generator(found))

            value, by_made = jax.value_and_grad(objective)(made)
            lengths = len(made) * jnp.sqrt(jnp.sum(by_made.reshape(len(made), -1) ** 2, axis=1))
            return (back(by_made)[0], value), lengths

        deal = lambda leaf: leaf.reshape(self.num_accumulated, -1, *leaf.shape[1:])  # noqa: E731
        keys = keys_of(own_key, self.num_accumulated)
        (gradient, value), lengths = accumulated(part, keys, deal(z[-1]), *map(deal, beside))
        lengths = lengths.reshape(-1)
        rule = self.optimiser(self.learning_rate)
        updates, optimiser = rule.update(gradient, state.optimiser, state.generator)
        generator = eqx.apply_updates(state.generator, updates)
        average = jax.tree.map(lambda a, g: self.decay * a + (1 - self.decay) * g, state.average, generator)
        both = zip(judge.regularisers, judged.regularisers, strict=True)
        judged = judged._replace(regularisers=tuple(one.respond(own, lengths) for one, own in both))

        last = jax.tree.map(lambda leaf: leaf[-1], told)
        flat = jnp.mean(lengths < self.below, dtype=value.dtype)
        info = AdversarialInfo(
            value,
            last.loss,
            last.margin,
            last.accuracy,
            last.saturated,
            last.nats,
            jnp.mean(lengths),
            flat,
            (last.saturated > SATURATED) | (flat > FLAT),
            judged.regularisers,
            jnp.sum(told.cost) + 2 * self.num_accumulated,
            status_of(value + jnp.sum(told.loss)),
        )
        return AdversarialState(state.step + 1, generator, average, optimiser, judged), info

    def train(
        self, key: Array, x: Examples, state: AdversarialState, *, num_steps: int, batch: int = 64
    ) -> tuple[AdversarialState, AdversarialInfo]:
        """So many steps on batches drawn with replacement; infos have a leading axis of steps.

        A step's key comes from its number in ``state``, so that training in parts changes nothing.
        """
        data = rows_of(x)
        total = self.num_discriminator_steps * batch

        def one(state, _):
            rows_key, step_key = jax.random.split(jax.random.fold_in(key, state.step))
            # The product may round up to n; one draw of numbers in [0, 1) compiles faster than one of integers.
            drawn = jax.random.uniform(rows_key, (total,)) * len(data[0])
            rows = jnp.minimum(drawn.astype(jnp.int32), len(data[0]) - 1)
            return self.step(step_key, tuple(leaf[rows] for leaf in data), state)

        return jax.lax.scan(one, state, length=num_steps)

    def sample(self, key: Array, state: AdversarialState, num_samples: int, *beside: Array) -> Array:
        """Made examples [num_samples, ...], by the averaged generator."""
        dtype = jnp.result_type(*jax.tree.leaves(state.average), jnp.float32)
        return self.make(state.average, jax.random.normal(key, (num_samples, self.num_latents), dtype), *beside)

    def fit(self, key: Array, x: Any, *, num_steps: int = 2000, batch: int = 64) -> "FittedAdversarial":
        """Train on rows x [n, ...], or on a tuple with what is told beside, in one compiled program."""
        check_key("Adversarial", key)
        data = data_of("Adversarial", x)
        require("Adversarial", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
        whole = "a multiple of num_accumulated, >= 1"
        require("Adversarial", "batch", whole, batch, lambda n: n >= 1 and n % self.num_accumulated == 0)
        known = not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((data, self)))
        if known:
            z = jax.ShapeDtypeStruct((2, self.num_latents), data[0].dtype)
            made = jax.eval_shape(self.make, self.init().generator, z, *[leaf[:2] for leaf in data[1:]])
            before_training("Adversarial", self.judge.regularisers, data, made.shape[1:])
        state, infos = _trained(self, key, data, num_steps, batch)
        if known:
            after_training("Adversarial", infos)
        return FittedAdversarial(self, state, infos)


@eqx.filter_jit
def _trained(model, key, data, num_steps, batch):
    return model.train(key, data, model.init(), num_steps=num_steps, batch=batch)


@eqx.filter_jit
def _sampled(model, key, state, num_samples, beside):
    return model.sample(key, state, num_samples, *beside)


class FittedAdversarial(eqx.Module):
    """A trained generator: ``sample(key, num_samples)``.

    model: with its first weights. state: what was learned. history: the infos of all steps.
    """

    model: Adversarial
    state: AdversarialState
    history: AdversarialInfo

    def sample(self, key: Array, num_samples: int = 1, *beside: Any) -> Array:
        """Made examples [num_samples, ...]; what is told beside has as many rows."""
        check_key("Adversarial", key)
        require("Adversarial", "num_samples", ">= 1", num_samples, lambda n: n >= 1)
        return _sampled(self.model, key, self.state, num_samples, tuple(map(jnp.asarray, beside)))
