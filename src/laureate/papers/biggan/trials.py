"""BigGANs on labelled images, each with every learning rate; what truncation, statistics and the parts do to them."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from laureate import generative as g
from laureate.lab.claim import Settings

__all__ = ["few_images", "images"]

# Fréchet distances and spreads below are as good as none.
FLOOR = 1e-3
CLIPPED = 0.99


class Eye(NamedTuple):
    """A small classifier of the real training rows: what fidelity and distances are measured with."""

    network: Any

    def features(self, images: Array) -> Array:
        """Its hidden layer, [n, features]."""
        first = lambda image: jax.nn.relu(self.network.weights[0] @ image.ravel() + self.network.biases[0])  # noqa: E731
        return jax.vmap(first)(images)

    def log_chance(self, images: Array) -> Array:
        """log p(class | image), [n, classes]."""
        return jax.nn.log_softmax(jax.vmap(self.network)(images))


def eye_of(problem: Any, scale: Settings) -> Eye:
    """The same for every seed and arm: its key is fixed."""
    pixels = problem.train[0].size
    (network,) = g.perceptrons(jax.random.key(0), (pixels, scale.features, problem.num_classes))
    adam, size = optax.adam(3e-3), len(problem.train)

    def loss(network, rows):
        chance = Eye(network).log_chance(problem.train[rows])
        return -jnp.mean(jnp.take_along_axis(chance, problem.train_labels[rows][:, None], axis=1))

    def step(carry, start):
        network, state = carry
        rows = (start * 64 + jnp.arange(64)) % size
        slope = jax.grad(loss)(network, rows)
        updates, state = adam.update(slope, state, network)
        return (eqx.apply_updates(network, updates), state), None

    (network, _), _ = jax.lax.scan(step, (network, adam.init(network)), jnp.arange(scale.lessons))
    return Eye(network)


def make(key: Array, arm: Settings, problem: Any, scale: Settings, rate: Any) -> g.Adversarial:
    """The GAN of an arm."""
    return g.make_biggan(
        key,
        problem.train.shape[1:],
        problem.num_classes,
        kind=scale.network,
        channels=scale.channels,
        num_blocks=scale.blocks,
        num_latents=scale.latents,
        num_shared=scale.shared,
        shared=arm.embedding == "shared",
        hierarchical=arm.latents == "hierarchical",
        penalty=arm.penalty,
        learning_rate=rate,
        decay=scale.decay,
    )


def spread(images: Array, labels: Array, classes: int) -> Array:
    """The deviation of images of one class from its mean, over all classes and pixels."""
    told = jax.nn.one_hot(labels, classes)
    flat = images.reshape(len(images), -1)
    means = (told.T @ flat) / jnp.maximum(told.sum(0), 1)[:, None]
    return jnp.sqrt(jnp.mean((flat - means[labels]) ** 2))


def measured(images: Array, labels: Array, problem: Any, eye: Eye) -> dict[str, Array]:
    """Of made images: what they are like beside those that count."""
    chance = eye.log_chance(images)
    precision, recall = g.precision_recall(eye.features(problem.test), eye.features(images))
    whole = spread(problem.test, problem.test_labels, problem.num_classes)
    return {
        "frechet": g.frechet_distance(eye.features(images), eye.features(problem.test)),
        "fidelity": jnp.mean(jnp.take_along_axis(chance, labels[:, None], axis=1)),
        "accuracy": jnp.mean((jnp.argmax(chance, axis=1) == labels).astype(float)),
        "spread": spread(images, labels, problem.num_classes) / whole,
        "precision": precision,
        "recall": recall,
        "clipped": jnp.mean((jnp.abs(images) > CLIPPED).astype(float)),
    }


class Trained(NamedTuple):
    """GANs of all learning rates at all checkpoints, leaves [rates, checkpoints, ...]."""

    model: g.Adversarial
    states: g.AdversarialState
    late: Any

    def at(self, rate: Array, checkpoint: Any) -> g.AdversarialState:
        """One of them."""
        return jax.tree.map(lambda leaf: leaf[rate, checkpoint], self.states)


def kept(state: g.AdversarialState) -> g.AdversarialState:
    """What is needed to sample with."""
    return state._replace(optimiser=(), generator=(), judge=())


def trained(key: Array, arm: Settings, problem: Any, scale: Settings) -> Trained:
    """Train with every rate from the same weights and batches; keep the averaged weights at every checkpoint."""
    net_key, fit_key = jax.random.split(key)
    every, data = scale.steps // scale.checkpoints, (problem.train, problem.train_labels)
    rates = jnp.asarray(scale.rates)

    def at(rate):
        model = make(net_key, arm, problem, scale, rate)

        def part(state, _):
            state, infos = model.train(fit_key, data, state, num_steps=every, batch=arm.batch)
            return state, (kept(state), infos)

        _, (states, infos) = jax.lax.scan(part, model.init(), length=scale.checkpoints)
        return states, jax.tree.map(lambda leaf: jnp.mean(leaf[-1].astype(float), axis=0), infos)

    states, late = jax.vmap(at)(rates)
    return Trained(make(net_key, arm, problem, scale, rates[0]), states, late)


def drawn(key: Array, made: Trained, state: Any, problem: Any, scale: Settings, **how: Any) -> tuple[Array, Array]:
    """Images by standing statistics without truncation, and their labels: every class as often."""
    standing_key, sample_key = jax.random.split(key)
    labels = jnp.arange(scale.samples) % problem.num_classes
    standing = made.model.standing(
        standing_key, state, problem.train_labels, num_batches=scale.standing, batch=scale.rows
    )
    return made.model.sample(sample_key, state, scale.samples, labels, statistics=standing, **how), labels


def chosen(key: Array, made: Trained, problem: Any, scale: Settings, eye: Eye) -> Array:
    """log of the Fréchet distance to rows to choose by, [rates, checkpoints]; what is not finite is far."""
    real = eye.features(problem.validation)

    def one(state):
        images, _ = drawn(key, made, state, problem, scale)
        found = g.frechet_distance(eye.features(images), real)
        return jnp.where(jnp.isfinite(found), jnp.log(jnp.maximum(found, FLOOR)), jnp.inf)

    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), made.states)
    return jax.lax.map(one, flat).reshape(len(scale.rates), scale.checkpoints)


def truncated(key: Array, made: Trained, state: Any, problem: Any, scale: Settings, eye: Eye) -> dict[str, Array]:
    """Measures at every threshold, with three kinds of statistics, [thresholds] each: the same draws for all.

    "": standing ones without truncation. "own_": standing ones of latents cut at the same threshold. "batch_": those of
    the sampled batch itself.
    """
    standing_key, sample_key = jax.random.split(key)
    labels = jnp.arange(scale.samples) % problem.num_classes
    model, size = made.model, {"num_batches": scale.standing, "batch": scale.rows}
    whole = model.standing(standing_key, state, problem.train_labels, **size)
    short = lambda found: {name: found[name] for name in ("spread", "fidelity", "frechet")}  # noqa: E731

    def at(threshold):
        own = model.standing(standing_key, state, problem.train_labels, truncation=threshold, **size)
        take = lambda used: model.sample(  # noqa: E731
            sample_key, state, scale.samples, labels, truncation=threshold, statistics=used
        )
        z = g.truncated_normal(sample_key, (scale.samples, scale.latents), threshold)
        batch = model.make(state.average, z, labels, network=whole.network)
        found = measured(take(whole), labels, problem, eye)
        others = {"own": take(own), "batch": batch}
        beside = {kind: short(measured(images, labels, problem, eye)) for kind, images in others.items()}
        return found | {f"{kind}_{name}": value for kind, told in beside.items() for name, value in told.items()}

    return jax.lax.map(at, jnp.asarray(scale.thresholds))
