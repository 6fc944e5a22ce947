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

# Fréchet distances below are as good as none; those above are all as bad.
FLOOR, FAR = 1e-3, 1e4
CLIPPED = 0.99
UNCUT = 8.0  # a threshold beyond every draw in float32


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

    (network, _), _ = jax.lax.scan(step, (network, adam.init(network)), jnp.arange(scale.lessons))  # pyright: ignore[reportArgumentType]
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
        average_from=scale.average_from,
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


class View(NamedTuple):
    """What is looked at: the threshold of the latents, and of which latents the statistics are.

    statistics: 0 for standing ones cut at ``standing``, 1 for those of the sampled batch itself.
    """

    threshold: Any
    standing: Any
    statistics: Any


def drawn(key: Array, model: g.Adversarial, state: Any, problem: Any, scale: Settings, view: View) -> Array:
    """Images of every class as often; the same latents, but for their cut, in all views."""
    standing_key, sample_key = jax.random.split(key)
    size = {"num_batches": scale.standing, "batch": scale.rows}
    standing = model.standing(standing_key, state, problem.train_labels, truncation=view.standing, **size)
    generate = model.network(state.average).bound(standing.network)
    z = g.truncated_normal(sample_key, (scale.samples, scale.latents), view.threshold)
    told = labels_of(problem, scale)
    _, own = generate(z, told)
    used = jax.tree.map(lambda a, b: jnp.where(view.statistics == 1, a, b), own, standing.statistics)
    return generate(z, told, statistics=used)[0]


def labels_of(problem: Any, scale: Settings) -> Array:
    """Every class as often."""
    return jnp.arange(scale.samples) % problem.num_classes


def chosen(key: Array, made: Trained, problem: Any, scale: Settings, eye: Eye) -> Array:
    """log of the Fréchet distance to rows to choose by, [rates, checkpoints]; what is not finite is far."""
    real = eye.features(problem.validation)

    def one(state):
        shown = drawn(key, made.model, state, problem, scale, View(UNCUT, UNCUT, 0))
        return logged(g.frechet_distance(eye.features(shown), real))

    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), made.states)
    return jax.lax.map(one, flat).reshape(len(scale.rates), scale.checkpoints)


def views(scale: Settings) -> View:
    """All checkpoints without truncation; then every threshold, with three kinds of statistics, [views]."""
    none, cuts = jnp.full(scale.checkpoints, UNCUT), jnp.asarray(scale.thresholds)
    end = jnp.full(len(cuts), UNCUT)
    kinds = jnp.concatenate([jnp.zeros(scale.checkpoints + 2 * len(cuts)), jnp.ones(len(cuts))])
    return View(jnp.concatenate([none, cuts, cuts, cuts]), jnp.concatenate([none, end, cuts, end]), kinds)


def untrained(key: Array, arm: Settings, problem: Any, labels: Array) -> Array:
    """Images of who learns nothing: training rows of the class, its mean, or a normal law around it."""
    told = jax.nn.one_hot(problem.train_labels, problem.num_classes)
    flat = problem.train.reshape(len(problem.train), -1)
    means = (told.T @ flat) / jnp.maximum(told.sum(0), 1)[:, None]
    rows_key, noise_key = jax.random.split(key)
    # Gumbel's noise picks one of the rows of a class at random.
    noise = jax.random.gumbel(rows_key, (len(labels), len(flat)))
    rows = jnp.argmax(jnp.where(problem.train_labels[None] == labels[:, None], noise, -jnp.inf), axis=1)
    if arm.kind == "rows":
        return problem.train[rows]
    made = means[labels]
    if arm.kind == "gaussian":
        # Σ ε_i (x_i − mean) / √n has the covariance of the class.
        weights = told.T[labels] / jnp.sqrt(jnp.maximum(told.sum(0), 1))[labels][:, None]
        drawn = jax.random.normal(noise_key, weights.shape) * weights
        made = made + drawn @ (flat - means[problem.train_labels])
    return made.reshape(len(labels), *problem.train.shape[1:])


def logged(distance: Array) -> Array:
    """Its logarithm; what is not finite is as far as a generator can be."""
    return jnp.log(jnp.clip(jnp.nan_to_num(distance, nan=FAR, posinf=FAR), FLOOR, FAR))


def after_as_many(scale: Settings, batch: int) -> int:
    """The checkpoint at which batches of this size have seen as many images as the smallest ones at the end."""
    return scale.checkpoints * scale.smallest // batch - 1


def images(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Labelled images, real or one's own: the best of the learning rates by rows to choose by, judged by others."""
    train_key, choose_key, draw_key = jax.random.split(key, 3)
    eye = eye_of(problem, scale)
    right = jnp.argmax(eye.log_chance(problem.test), axis=1) == problem.test_labels
    told = {"eye_accuracy": jnp.mean(right.astype(float)), "thresholds": jnp.log10(jnp.asarray(scale.thresholds))}
    labels = labels_of(problem, scale)
    every = scale.steps // scale.checkpoints
    if arm.kind != "gan":
        found = measured(untrained(draw_key, arm, problem, labels), labels, problem, eye)
        flat = jnp.full(scale.checkpoints, logged(found["frechet"]))
        curve = {"distance_curve": flat, "updates": jnp.arange(1.0, scale.checkpoints + 1) * every}
        return told | found | curve | {"log_frechet": flat[-1], "log_frechet_samples": flat[-1]}
    made = trained(train_key, arm, problem, scale)
    by = chosen(choose_key, made, problem, scale, eye)
    rate = jnp.argmin(by, axis=0)  # the best so far, at every checkpoint
    best, last = rate[-1], scale.checkpoints - 1

    def judged(place):
        which, checkpoint, view = place
        shown = drawn(draw_key, made.model, made.at(which, checkpoint), problem, scale, view)
        return measured(shown, labels, problem, eye)

    number = 3 * len(scale.thresholds)
    places = (
        jnp.concatenate([rate, jnp.full(number, best)]),
        jnp.concatenate([jnp.arange(scale.checkpoints), jnp.full(number, last)]),
        views(scale),
    )
    found = jax.lax.map(judged, places)
    curve = {name: values[: scale.checkpoints] for name, values in found.items()}
    frozen, own, batch = (
        {name: part for name, values in found.items() for part in [values[start : start + len(scale.thresholds)]]}
        for start in range(scale.checkpoints, scale.checkpoints + number, len(scale.thresholds))
    )
    samples = after_as_many(scale, arm.batch)
    late = jax.tree.map(lambda leaf: leaf[best], made.late)
    half, none = scale.half, len(scale.thresholds) - 1  # the places of t = 0.5 and of no truncation
    gain = lambda name: frozen[name][half] - frozen[name][none]  # noqa: E731
    lost = lambda kind: kind["spread"][none] - kind["spread"][0]  # noqa: E731
    # As the note of the method defines it: not less precise, and not twice as often at the ends of tanh.
    calm = frozen["clipped"][half] < 2 * frozen["clipped"][none] + 1e-3
    weights = eqx.filter(made.model.generator, eqx.is_inexact_array)
    return (
        told
        | {name: values[-1] for name, values in curve.items()}
        | {
            "log_frechet": logged(curve["frechet"][-1]),
            "log_frechet_samples": logged(curve["frechet"][samples]),
            "distance_curve": logged(curve["frechet"]),
            "updates": jnp.arange(1.0, scale.checkpoints + 1) * every,
            "distance_by_rate": by[:, -1],
            "rates": jnp.asarray(scale.rates),
            "chosen_rate": jnp.asarray(scale.rates)[best],
            "chosen_rate_samples": jnp.asarray(scale.rates)[jnp.argmin(by[:, samples])],
            "spread_by_threshold": frozen["spread"],
            "own_spread_by_threshold": own["spread"],
            "batch_spread_by_threshold": batch["spread"],
            "fidelity_by_threshold": frozen["fidelity"],
            "precision_by_threshold": frozen["precision"],
            "frechet_by_threshold": logged(frozen["frechet"]),
            "clipped_by_threshold": frozen["clipped"],
            "fidelity_gain": gain("fidelity"),
            "precision_gain": gain("precision"),
            "spread_lost": lost(frozen),
            "batch_spread_lost": lost(batch),
            "own_spread_lost": lost(own),
            "spread_difference": lost(frozen) - lost(batch),
            "amenable": ((gain("precision") >= 0) & calm).astype(float),
            "parameters": jnp.asarray(sum(leaf.size for leaf in jax.tree.leaves(weights)), float),
            "orthogonality": g.OrthogonalPenalty(1.0)(made.at(best, -1).average),
            "margin": late.margin,
            "saturated": late.saturated,
            "residual": jnp.max(late.spectra[0].residual),
        }
    )


def monitored(sigma: Array, distances: Array, growth: float) -> dict[str, Array]:
    """When σ₀ has grown so many times, and when the distance has doubled from its best; what never happens, at the end.

    sigma: [parts, steps, weights], of which the first is that of the first linear layer. distances: after every part.
    """
    begun, ends, never = sigma[0, 0, 0], sigma[:, -1, 0], len(distances)
    first = lambda happened: jnp.where(jnp.any(happened), jnp.argmax(happened), never)  # noqa: E731
    alarm, doubled = first(ends >= growth * begun), first(distances >= 2 * jax.lax.cummin(distances))
    return {
        "lead": (doubled - alarm).astype(float),
        "alarmed": (alarm < never).astype(float),
        "doubled": (doubled < never).astype(float),
        "alarm_share": alarm / never,
        "doubled_share": doubled / never,
        "log_growth": jnp.log(ends[-1] / begun),
        "sigma_curve": ends,
    }


def few_images(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Training on the first ``arm.rows`` images at one rate: what the monitors tell, and when the images are lost."""
    net_key, fit_key, draw_key = jax.random.split(key, 3)
    eye, every = eye_of(problem, scale), scale.steps // scale.checkpoints
    # Rows beyond the first so many are these again: a number that is traced needs no other shapes.
    rows = jnp.arange(len(problem.train)) % jnp.asarray(arm.rows, int)
    data = (problem.train[rows], problem.train_labels[rows])
    model = make(net_key, arm, problem, scale, arm.rate)

    def part(state, _):
        state, infos = model.train(fit_key, data, state, num_steps=every, batch=arm.batch)
        return state, (kept(state), infos)

    state, (states, infos) = jax.lax.scan(part, model.init(), length=scale.checkpoints)

    def judged(state):
        shown = drawn(draw_key, model, state, problem, scale, View(UNCUT, UNCUT, 0))
        return jnp.exp(logged(g.frechet_distance(eye.features(shown), eye.features(problem.test)))), shown

    distances, shown = jax.lax.map(judged, states)
    sure = lambda x, y: jnp.mean((model.judge.score(state.judge, (x, y)) > 0).astype(float))  # noqa: E731
    # As many different held-out images as there were to learn from, by the same writers: the next rows of a shuffle.
    as_many = jnp.arange(len(problem.validation)) % jnp.asarray(arm.rows, int)
    known, fresh = problem.train[as_many], problem.validation[as_many]
    seen, held = sure(known, problem.train_labels[as_many]), sure(fresh, problem.validation_labels[as_many])
    return monitored(infos.spectra[0].sigma, distances, scale.growth) | {
        "log_frechet": jnp.log(distances[-1]),
        "log_least": jnp.log(jnp.min(distances)),
        "distance_curve": jnp.log(distances),
        "clipped_curve": jnp.mean(infos.clipped, axis=1),
        "margin_curve": jnp.mean(infos.margin, axis=1),
        "updates": jnp.arange(1.0, scale.checkpoints + 1) * every,
        "judge_on_train": seen,
        "judge_on_held_out": held,
        "judge_on_others": sure(problem.test, problem.test_labels),
        "judge_gap": seen - held,
        "copies": g.copy_share(shown[-1], known, fresh),
    }
