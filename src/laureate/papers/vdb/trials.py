"""GANs of every kind, each with every learning rate; the best by fresh rows answers, and is measured."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from laureate import generative as g
from laureate.lab.claim import Settings

__all__ = ["real_images", "supports"]

# Distances below are as good as none: an unbiased estimate may be 0 or less.
FLOOR = 1e-3
NEAR = 0.3  # of a made point to its cluster: three standard deviations


class Rows(NamedTuple):
    """Rows to learn from, to choose by and to be judged by."""

    train: Array
    validation: Array
    test: Array


def regulariser_of(key: Array, arm: Settings, scale: Settings, inputs: int, knob: Array) -> Any:
    """What an arm puts between examples and the discriminator; ``knob``: the number that its grid tries."""
    number: dict[str, Any] = {arm.knob: knob}
    penalty = g.GradientPenalty(number.get("weights", arm.weight), at=arm.at)
    if arm.kind == "noise":
        return g.InstanceNoise(number.get("sigmas", arm.sigma))
    if arm.kind == "penalty":
        return penalty
    if arm.kind not in ("bottleneck", "both"):
        return None
    encoder = g.make_encoder(key, (inputs, scale.width, scale.width), scale.codes)
    bottleneck = g.VariationalBottleneck(
        encoder,
        information=number.get("budgets", arm.information),
        beta=number.get("betas", arm.beta),
        beta_rate=arm.beta_rate,
        budget=g.AdaptiveBudget() if arm.adaptive else None,
    )
    return (bottleneck, penalty) if arm.kind == "both" else bottleneck


def make(key: Array, arm: Settings, shape: tuple[int, ...], scale: Settings, rate: Array, knob: Array) -> g.Adversarial:
    """The GAN of an arm: perceptrons of one width; a linear unit on the code, or the same layers without a code."""
    generator_key, judge_key, head_key = jax.random.split(key, 3)
    inputs = 1
    for size in shape:
        inputs *= size
    width = scale.width
    sizes = (scale.latents, width, width, inputs)
    (generator,) = g.perceptrons(generator_key, sizes, shapes=(shape,), activation=jax.nn.leaky_relu)
    coded = arm.kind in ("bottleneck", "both")
    layers = (scale.codes, 1) if coded else (inputs, width, width, 1)
    (discriminator,) = g.perceptrons(head_key if coded else judge_key, layers, activation=jax.nn.leaky_relu)
    regulariser = regulariser_of(judge_key, arm, scale, inputs, knob)
    return g.Adversarial(
        generator,
        discriminator,
        arm.loss,
        regulariser,
        num_latents=scale.latents,
        learning_rate=rate,
        num_discriminator_steps=arm.steps,
        decay=scale.decay,
    )


def trained(key: Array, arm: Settings, rows: Rows, scale: Settings) -> tuple[Array, dict[str, Array]]:
    """Train with every rate and every number of the arm's grid from the same weights and batches; keep the best.

    Samples of the best, chosen by the energy distance to fresh rows, and what is known about it.
    """
    net_key, fit_key, choose_key, draw_key = jax.random.split(key, 4)
    knobs = jnp.asarray(scale[arm.knob] if arm.knob else (0.0,))
    rates = jnp.asarray(scale.rates)
    every = jnp.stack(jnp.meshgrid(knobs, rates, indexing="ij"), axis=-1).reshape(-1, 2)
    shape = rows.train.shape[1:]

    def at(pair):
        model = make(net_key, arm, shape, scale, pair[1], pair[0])
        state, infos = model.train(fit_key, rows.train, model.init(), num_steps=scale.steps, batch=scale.batch)
        late = jax.tree.map(lambda leaf: jnp.mean(leaf[-(scale.steps // 5 + 1) :].astype(float), axis=0), infos)
        return state.average, late, jnp.sum(infos.cost)

    averages, late, passes = jax.vmap(at)(every)
    one = make(net_key, arm, shape, scale, rates[0], knobs[0])

    def draw(key, average):
        z = jax.random.normal(key, (len(rows.test), scale.latents))
        return one.make(average, z)

    found = jax.lax.map(lambda average: g.energy_distance(draw(choose_key, average), rows.validation), averages)
    found = jnp.where(jnp.isfinite(found), found, jnp.inf)
    best = jnp.argmin(found)
    chosen = lambda tree: jax.tree.map(lambda leaf: leaf[best], tree)  # noqa: E731
    told = chosen(late)
    by_rate = jnp.min(found.reshape(len(knobs), len(rates)), axis=0)
    by_rate = jnp.where(jnp.isfinite(by_rate), by_rate, 1e3)
    metrics = {
        "chosen_rate": every[best, 1],
        "chosen_knob": every[best, 0],
        "distance_by_rate": jnp.log10(jnp.maximum(by_rate, FLOOR)),
        "passes": passes[0],
        "slope": told.slope,
        "flat": told.flat,
        "saturated": told.saturated,
        "nats": told.nats,
        "margin": told.margin,
    }
    if arm.kind in ("bottleneck", "both"):
        state = told.regularisers[0]
        metrics |= {"beta": state.beta, "budget": state.information, "collapsed": state.collapsed}
    return draw(draw_key, chosen(averages)), metrics


def answered(key: Array, arm: Settings, rows: Rows, scale: Settings) -> tuple[Array, dict[str, Array]]:
    """Made rows and how far their law is from that of the rows that count."""
    number = len(rows.test)
    metrics: dict[str, Array] = {}
    if arm.kind == "gaussian":
        # A normal law with the mean and the covariance of the rows to learn from.
        middle = jnp.mean(rows.train, axis=0, keepdims=True)
        noise = jax.random.normal(key, (number, len(rows.train))) / len(rows.train) ** 0.5
        made = middle + jnp.tensordot(noise, rows.train - middle, axes=1)
    elif arm.kind == "rows":
        made = rows.train[jax.random.randint(key, (number,), 0, len(rows.train))]
    else:
        made, metrics = trained(key, arm, rows, scale)
    distance = g.energy_distance(made, rows.test)
    flat = jnp.log10(jnp.maximum(distance, FLOOR))
    metrics = {"distance_by_rate": jnp.full(len(scale.rates), flat)} | metrics
    return made, metrics | {
        "distance": distance,
        "log_distance": jnp.log(jnp.maximum(distance, FLOOR)),
        "frechet": g.frechet_distance(made, rows.test),
        "rates": jnp.asarray(scale.rates),
    }


def supports(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Few points of clusters in a plane of a larger space: how near, how many clusters, how far off the plane."""
    train_key, fresh_key, test_key, own_key = jax.random.split(key, 4)
    rows = Rows(
        problem.draw(train_key, scale.rows), problem.draw(fresh_key, scale.fresh), problem.draw(test_key, scale.tests)
    )
    made, metrics = answered(own_key, arm, rows, scale)
    apart = jnp.linalg.norm(made[:, None] - problem.modes[None], axis=-1)
    near = apart <= NEAR
    within = (made @ problem.plane.T) @ problem.plane
    return metrics | {
        "hit": jnp.mean(jnp.any(near, axis=1).astype(float)),
        "clusters": jnp.sum(jnp.any(near, axis=0).astype(float)),
        "off_plane": jnp.mean(jnp.linalg.norm(made - within, axis=1)),
    }


def real_images(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Images, or rows of any shape, of the problem's ``train``, ``validation`` and ``test``."""
    rows = Rows(problem.train, problem.validation, problem.test)
    made, metrics = answered(key, arm, rows, scale)
    precision, recall = g.precision_recall(rows.test, made)
    return metrics | {"precision": precision, "recall": recall}
