"""The adversarial trainer: any generator against any discriminator, with any loss, regularisers and Optax optimiser."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array

from laureate._core import require
from laureate.generative.adversarial_checks import after_training, before_training, check_truncation, data_of
from laureate.generative.conditional import Optimiser, check_key, status_of
from laureate.generative.judge import Judge, JudgeState, accumulated, adam, keys_of
from laureate.generative.losses import LOSSES
from laureate.generative.regularisers import Examples, rows_of
from laureate.generative.stateful import AbstractNetwork, SpectralReport, as_network, joined_statistics
from laureate.generative.truncation import StandingStatistics, truncated_normal

__all__ = ["Adversarial", "AdversarialInfo", "AdversarialState", "FittedAdversarial"]

# When training is about to collapse: nothing left to learn for the discriminator, or nothing to learn from it.
SATURATED, FLAT = 0.95, 0.5
# An output so near to ±1, the ends of tanh, counts as clipped.
CLIPPED = 0.99
# Power iterations that bring the singular vectors from the last weights to the averaged ones.
SETTLING = 20


class AdversarialState(NamedTuple):
    """What the next step needs.

    step: steps taken. generator: its arrays. average: their moving average, to sample with. optimiser: of the
    generator. judge: the discriminator's state, with those of the regularisers. network: the generator's own state,
    where it has one: singular vectors, an average of batch statistics.
    """

    step: Array
    generator: Any
    average: Any
    optimiser: Any
    judge: JudgeState
    network: Any = ()


class AdversarialInfo(NamedTuple):
    """What a step reports; of several discriminator steps, the last.

    generator_loss, discriminator_loss: before the step, with penalties. margin, accuracy, saturated, nats: see
    ``JudgeInfo``. slope: the mean length of the generator's gradient at made examples. flat: the share of them where it
    is below ``Adversarial.below``. endangered: whether training is about to collapse: saturated > 0.95 or flat > 0.5.
    clipped: the share of numbers in made examples beyond ±0.99. spectra: the largest singular values of the normalised
    weights, of the generator and of the discriminator. regularisers: their states after the step. cost: passes (a
    network forward and backward over a batch). status: DIVERGED where a loss is not finite; the step is taken all the
    same.
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
    clipped: Array
    spectra: tuple[SpectralReport, SpectralReport]
    regularisers: tuple[Any, ...]
    cost: Array
    status: Array


class Adversarial(eqx.Module):
    """A generative adversarial network, trained step by step (Goodfellow et al. 2014)::

        k times:  min_D E ℓ_real(l(x)) + E ℓ_made(l(G(z))) + Σ penalties,   z ~ N(0, I)
        once:     min_G E ℓ_G(l(G(z))) + penalty(G)
        average ← decay · average + (1 − decay) · G

    With a ``VariationalBottleneck`` l(x) = D(z_x), and D is a function of the code: VGAN (Peng et al. 2019).

    generator: G, from z [num_latents] (and its conditions, such as a label) to one example; or an
        ``AbstractNetwork`` of whole batches, which may normalise by them and divide weights by singular values.
    discriminator: D, from what is seen of one example (and its conditions) to one number; or such a network.
    loss: "non-saturating", "saturating" (as the paper writes it), "hinge", "wasserstein" or "lsgan".
    regulariser: None, ``GradientPenalty``, ``InstanceNoise``, ``VariationalBottleneck``, or a tuple of them.
    num_latents: numbers in z, >= 1.
    learning_rate: of the generator, > 0.
    ratio: the discriminator's learning rate over the generator's, > 0.
    optimiser: from a learning rate to an Optax optimiser; Adam with b1 = 0.5 unless given.
    num_discriminator_steps: k, >= 1, each on rows of its own.
    num_accumulated: parts of a batch whose gradients are averaged, >= 1. A generator that normalises by its batch does
        so over each part when it learns, and over the whole batch when it makes what the discriminator learns from.
    decay: of the generator's moving average, within 0 and 1; 0 for none.
    below: the length under which a gradient at a made example counts as vanished.
    generator_penalty: None, or from the generator to a number, such as ``OrthogonalPenalty``.
    average_from: the step from which on is averaged; before, the average is a copy.

    >>> gan = Adversarial(lambda z: z, lambda x: jnp.sum(x), num_latents=2)
    >>> state, info = gan.step(jax.random.key(0), jnp.ones((8, 2)), gan.init())
    >>> int(info.cost), float(info.accuracy) > 0.5  # most rows are told from what is made
    (4, True)
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
    generator_penalty: Callable[[Any], Array] | None = None
    average_from: int | Array = 0

    def __check_init__(self):
        require("Adversarial", "loss", f"one of {', '.join(LOSSES)}", self.loss, lambda name: name in LOSSES)
        for name in ("num_latents", "num_discriminator_steps", "num_accumulated"):
            require("Adversarial", name, ">= 1", getattr(self, name), lambda n: n >= 1)
        for name in ("learning_rate", "ratio", "below"):
            require("Adversarial", name, "> 0", getattr(self, name), lambda v: v > 0)
        require("Adversarial", "decay", "within 0 and 1", self.decay, lambda d: 0 <= d < 1)
        require("Adversarial", "average_from", ">= 0", self.average_from, lambda n: n >= 0)

    @property
    def judge(self) -> Judge:
        """The discriminator with its regularisers and its optimiser."""
        rate = self.learning_rate * self.ratio
        return Judge(self.discriminator, self.loss, self.regulariser, rate, self.optimiser, self.num_accumulated)

    def init(self) -> AdversarialState:
        """Zero steps, the first weights: networks bring them, so nothing is drawn."""
        arrays = eqx.filter(self.generator, eqx.is_inexact_array)
        optimiser = self.optimiser(self.learning_rate).init(arrays)
        network = as_network(self.generator).init()
        return AdversarialState(jnp.zeros((), jnp.int32), arrays, arrays, optimiser, self.judge.init(), network)

    def network(self, arrays: Any) -> AbstractNetwork:
        """The generator with these arrays, as a network of whole batches."""
        return as_network(eqx.combine(arrays, self.generator))

    def make(self, arrays: Any, z: Array, *beside: Array, network: Any = None, statistics: Any = None) -> Array:
        """G of a batch of z. network: its own state, the first where none is given. statistics: to normalise by."""
        generator = self.network(arrays)
        state = _settled(generator, generator.init()) if network is None else network
        return generator.apply(state, z, *beside, statistics=statistics)[0]

    def step(self, key: Array, x: Examples, state: AdversarialState) -> tuple[AdversarialState, AdversarialInfo]:
        """k steps of D, then one of G against the new D. x: k · n rows, or a tuple of them and their conditions."""
        judge, number = self.judge, self.num_discriminator_steps
        rows = tuple(leaf.reshape(number, -1, *leaf.shape[1:]) for leaf in rows_of(x))
        size = rows[0].shape[1]
        latent_key, judge_key, own_key = jax.random.split(key, 3)
        z = jax.random.normal(latent_key, (number + 1, size, self.num_latents), rows[0].dtype)
        generator = self.network(state.generator)
        network, spectrum = generator.refresh(state.network)
        made_by = generator.bound(network)

        def discriminate(judged, part):
            key, z, (real, *beside) = part
            made, _ = made_by(z, *beside)
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
            forward = lambda arrays: self.network(arrays).apply(network, z, *beside)  # noqa: E731
            made, back, observed = jax.vjp(forward, state.generator, has_aux=True)

            def objective(made):
                know = judged.regularisers, "generator", judged.network
                found, _ = judge.logits(key, judged.parameters, (made, *beside), *know)
                return jnp.mean(LOSSES[self.loss].generator(found))

            value, by_made = jax.value_and_grad(objective)(made)
            lengths = len(made) * jnp.sqrt(jnp.sum(by_made.reshape(len(made), -1) ** 2, axis=1))
            clipped = jnp.mean(jnp.abs(made) > CLIPPED, dtype=value.dtype)
            return (back(by_made)[0], value, clipped), (lengths, observed)

        deal = lambda leaf: leaf.reshape(self.num_accumulated, -1, *leaf.shape[1:])  # noqa: E731
        keys = keys_of(own_key, self.num_accumulated)
        (gradient, value, clipped), (lengths, observed) = accumulated(part, keys, deal(z[-1]), *map(deal, beside))
        lengths = lengths.reshape(-1)
        if self.generator_penalty is not None:
            price = lambda arrays: self.generator_penalty(eqx.combine(arrays, self.generator))  # noqa: E731  # pyright: ignore[reportOptionalCall]
            asked, more = jax.value_and_grad(price)(state.generator)
            value, gradient = value + asked, jax.tree.map(jnp.add, gradient, more)
        rule = self.optimiser(self.learning_rate)
        updates, optimiser = rule.update(gradient, state.optimiser, state.generator)
        generator = eqx.apply_updates(state.generator, updates)
        keep = jnp.where(state.step < self.average_from, 0.0, self.decay)
        average = jax.tree.map(lambda a, g: (keep * a + (1 - keep) * g).astype(g.dtype), state.average, generator)
        network = self.network(state.generator).observe(network, joined_statistics(observed))
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
            clipped,
            (spectrum, last.spectrum),
            judged.regularisers,
            jnp.sum(told.cost) + 2,
            status_of(value + jnp.sum(told.loss)),
        )
        return AdversarialState(state.step + 1, generator, average, optimiser, judged, network), info

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

    def standing(
        self,
        key: Array,
        state: AdversarialState,
        *beside: Array,
        num_batches: int = 16,
        batch: int = 64,
        truncation: float | Array | None = None,
    ) -> StandingStatistics:
        """What the averaged generator samples with: statistics over many batches, singular vectors of its weights.

        Means and variances are those of all rows of all batches together; the average of the batches' variances, which
        others take, is less by the variance between batches.

        beside: rows to draw from, at random, of the conditions of z. num_batches: >= 1. batch: rows of each, >= 2.
        truncation: of the latents, see ``truncated_normal``; it is recorded. Latents that are truncated here, too, are
        normalised back to their full size: for the truncation trick leave it out.
        """
        require("Adversarial", "num_batches", ">= 1", num_batches, lambda n: n >= 1)
        require("Adversarial", "batch", ">= 2", batch, lambda n: n >= 2)
        generator, network = self.network(state.average), self.settled(state)
        latent_key, rows_key = jax.random.split(key)
        z = truncated_normal(latent_key, (num_batches, batch, self.num_latents), truncation, self._dtype(state))
        told = ()
        if beside:
            drawn = jax.random.uniform(rows_key, (num_batches, batch)) * len(beside[0])
            rows = jnp.minimum(drawn.astype(jnp.int32), len(beside[0]) - 1)
            told = tuple(leaf[rows] for leaf in beside)
        found = jax.lax.map(lambda part: generator.apply(network, *part)[1], (z, *told))
        threshold = jnp.asarray(jnp.inf if truncation is None else truncation, jnp.float32)
        return StandingStatistics(
            network, joined_statistics(found), threshold, jnp.asarray(num_batches), jnp.asarray(batch)
        )

    def settled(self, state: AdversarialState) -> Any:
        """The generator's own state for its averaged weights, whose singular vectors are not those of the last ones."""
        return _settled(self.network(state.average), state.network)

    def sample(
        self,
        key: Array,
        state: AdversarialState,
        num_samples: int,
        *beside: Array,
        truncation: float | Array | None = None,
        statistics: StandingStatistics | None = None,
    ) -> Array:
        """Made examples [num_samples, ...], by the averaged generator.

        truncation: of the latents, see ``truncated_normal``. statistics: of ``standing``, for a generator that
        normalises by batches.
        """
        if statistics is None and as_network(self.generator).needs_statistics:
            raise RuntimeError(
                "Adversarial.statistics must be given for a generator that normalises by its batch; got None. Call "
                "standing(key, state, labels) first."
            )
        z = truncated_normal(key, (num_samples, self.num_latents), truncation, self._dtype(state))
        network = self.settled(state) if statistics is None else statistics.network
        used = None if statistics is None else statistics.statistics
        return self.make(state.average, z, *beside, network=network, statistics=used)

    def _dtype(self, state: AdversarialState) -> Any:
        return jnp.result_type(*jax.tree.leaves(state.average), jnp.float32)

    def fit(self, key: Array, x: Any, *, num_steps: int = 2000, batch: int = 64) -> "FittedAdversarial":
        """Train on rows x [n, ...], or on a tuple of them and their conditions, in one compiled program."""
        check_key("Adversarial", key)
        data = data_of("Adversarial", x)
        require("Adversarial", "num_steps", ">= 1", num_steps, lambda n: n >= 1)
        whole = "a multiple of num_accumulated, >= 1"
        require("Adversarial", "batch", whole, batch, lambda n: n >= 1 and n % self.num_accumulated == 0)
        known = not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((data, self)))
        if known:
            as_network(self.generator).check(*data)
            z = jax.ShapeDtypeStruct((2, self.num_latents), data[0].dtype)
            made = jax.eval_shape(self.make, self.init().generator, z, *[leaf[:2] for leaf in data[1:]])
            before_training("Adversarial", self.judge.regularisers, data, made.shape[1:])
        state, infos = _trained(self, key, data, num_steps, batch)
        if known:
            after_training("Adversarial", infos)
        statistics = None
        if as_network(self.generator).needs_statistics:
            statistics = _standing(self, jax.random.fold_in(key, num_steps), state, data[1:], batch)
        return FittedAdversarial(self, state, infos, statistics)


def _settled(generator: AbstractNetwork, state: Any) -> Any:
    """After so many power iterations; nothing where there is nothing to iterate."""
    if not jax.tree.leaves(state):
        return state
    return jax.lax.fori_loop(0, SETTLING, lambda _, own: generator.refresh(own)[0], state)


@eqx.filter_jit
def _trained(model, key, data, num_steps, batch):
    return model.train(key, data, model.init(), num_steps=num_steps, batch=batch)


@eqx.filter_jit
def _standing(model, key, state, beside, batch):
    return model.standing(key, state, *beside, batch=max(2, batch))


@eqx.filter_jit
def _sampled(model, key, state, num_samples, beside, truncation, statistics):
    return model.sample(key, state, num_samples, *beside, truncation=truncation, statistics=statistics)


class FittedAdversarial(eqx.Module):
    """A trained generator: ``sample(key, num_samples)``.

    model: with its first weights. state: what was learned. history: the infos of all steps. statistics: of untruncated
    latents, for a generator that normalises by batches, else None.
    """

    model: Adversarial
    state: AdversarialState
    history: AdversarialInfo
    statistics: StandingStatistics | None = None

    def sample(
        self,
        key: Array,
        num_samples: int = 1,
        *beside: Any,
        truncation: float | Array | None = None,
        statistics: StandingStatistics | None = None,
    ) -> Array:
        """Made examples [num_samples, ...]; conditions have as many rows.

        truncation: the threshold of the latents; lower is more typical and less various. statistics: others than those
        of the fit.
        """
        check_key("Adversarial", key)
        require("Adversarial", "num_samples", ">= 1", num_samples, lambda n: n >= 1)
        if truncation is not None:
            require("Adversarial", "truncation", "> 0", truncation, lambda t: t > 0, "Use None for no truncation.")
            truncation = jnp.asarray(truncation, jnp.float32)  # a leaf: another threshold compiles nothing
        told = tuple(map(jnp.asarray, beside))
        as_network(self.model.generator).check(None, *told)
        rule = f"of {num_samples} rows, one for each sample"
        require("Adversarial", "beside", rule, [len(part) for part in told], lambda n: set(n) <= {num_samples})
        used = self.statistics if statistics is None else statistics
        if used is not None:
            check_truncation(used, truncation)
        return _sampled(self.model, key, self.state, num_samples, told, truncation, used)
