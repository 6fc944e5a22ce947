"""Models of every kind, each with every learning rate; the best by fresh pairs answers, and is measured."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from laureate import generative as g
from laureate.lab.claim import Settings
from laureate.problems.answers import Ring, TwoCurves

__all__ = ["completion", "modes", "ring"]

TOLERANCE = 0.2  # of an answer to be one of the two: mean absolute error, as in the method note's pilot
NEAR = 0.1  # of a point to be on the ring, as a share of its radius
BINS = 64
NEIGHBOURS = 16
LEAST_SPREAD = 1e-6  # of a curve that does not move, whose logarithm must be finite
UNTRAINED = ("mean", "marginal", "neighbours", "truth")


class Data(NamedTuple):
    """Pairs to learn from and pairs to choose by."""

    x: Array
    y: Array
    validation_x: Array
    validation_y: Array


class Units(NamedTuple):
    """Mean 0 and deviation 1 over all entries, for every arm, and the way back."""

    x_mean: Array
    x_scale: Array
    y_mean: Array
    y_scale: Array

    def inputs(self, x: Array) -> Array:
        """As networks see them."""
        return (x - self.x_mean[None]) / self.x_scale

    def answers(self, y: Array) -> Array:
        """As networks see them."""
        return (y - self.y_mean[None]) / self.y_scale

    def back(self, y: Array) -> Array:
        """Draws [n, rows, ...] in the problem's unit."""
        return y * self.y_scale + self.y_mean[None, None]


class Trained(NamedTuple):
    """The best of the learning rates: its model, its arrays at every checkpoint, its rate and its score.

    passes: through a network, forward and backward over the usual batch, up to every checkpoint.
    """

    model: Any
    parameters: Any
    units: Units
    rate: Array
    score: Array
    passes: Array

    def sample(self, key: Array, x: Array, number: int, checkpoint: int = -1, **options: Any) -> Array:
        """Answers [number, rows, ...] in the problem's unit."""
        parameters = jax.tree.map(lambda leaf: leaf[checkpoint], self.parameters)
        return self.drawn(key, x, number, parameters, **options)

    def drawn(self, key: Array, x: Array, number: int, parameters: Any, **options: Any) -> Array:
        """The same with given arrays."""
        state = g.ConditionalState(jnp.zeros((), jnp.int32), parameters, None)
        return self.units.back(self.model.sample(key, state, self.units.inputs(x), number, **options))


class OnCircle(eqx.Module):
    """A generator whose normal latent is brought to length 1: to the cGAN the law that cGML's latents have."""

    network: Any

    def __call__(self, x: Array, z: Array) -> Array:
        """g(x, z / ‖z‖)."""
        return self.network(x, z / jnp.linalg.norm(z))


def make_units(data: Data) -> Units:
    """From the pairs to learn from."""
    scale = lambda values: jnp.sqrt(jnp.mean((values - values.mean(0, keepdims=True)) ** 2)) + 1e-6  # noqa: E731
    return Units(data.x.mean(0), scale(data.x), data.y.mean(0), scale(data.y))


def make(key: Array, arm: Settings, data: Data, scale: Settings, rate: Array) -> Any:
    """The model of an arm."""
    own = {"latent-flow": {"inner_rate": arm.inner_rate, "num_inner": scale.inner}, "cgan": {"weight": arm.weight}}
    settings = own.get(arm.kind, {}) | {"learning_rate": rate, "width": scale.width}
    model = g.make_model(key, arm.kind, data.x, data.y, num_latents=scale.latents, **settings)
    return eqx.tree_at(lambda m: m.generator, model, replace_fn=OnCircle) if arm.circle else model


def updates_of(arm: Settings, scale: Settings) -> int:
    """Those between two checkpoints: as for all, or so many that the passes are cGML's."""
    return scale.steps * (scale.longer if arm.long else 1) // scale.checkpoints


def scores(samples: Array, y: Array) -> Array:
    """The mean energy score of samples [n, rows, ...] for y [rows, ...]."""
    return jnp.mean(jax.vmap(g.energy_score, (1, 0))(samples, y))


def trained(key: Array, arm: Settings, data: Data, scale: Settings) -> Trained:
    """Train with every rate from the same weights and batches; keep the one with the best score on fresh pairs."""
    net_key, fit_key, choose_key = jax.random.split(key, 3)
    units = make_units(data)
    x, y = units.inputs(data.x), units.answers(data.y)
    every, batch = updates_of(arm, scale), scale.batch * arm.wider

    rates = jnp.asarray(scale.rates)
    model = make(net_key, arm, data, scale, rates[0])

    def at(rate):
        model_at = eqx.tree_at(lambda m: m.learning_rate, model, rate)

        def part(state, _):
            state, infos = model_at.train(fit_key, x, y, state, num_steps=every, batch=batch)
            return state, (state.parameters, jnp.sum(infos.cost))

        return jax.lax.scan(part, model_at.init(), length=scale.checkpoints)[1]

    kept, spent = jax.vmap(at)(rates)
    passes = arm.wider * jnp.cumsum(spent[0]).astype(float)
    # To draw with: the rate plays no part.
    one = Trained(model, None, units, rates[0], rates[0], passes)

    def score(parameters):
        last = jax.tree.map(lambda leaf: leaf[-1], parameters)
        samples = one.drawn(choose_key, data.validation_x, scale.chosen_by, last)
        return scores(samples, data.validation_y)

    found = jax.vmap(score)(kept)
    found = jnp.where(jnp.isfinite(found), found, jnp.inf)
    best = jnp.argmin(found)
    return Trained(model, jax.tree.map(lambda leaf: leaf[best], kept), units, rates[best], found[best], passes)


def untrained(key: Array, arm: Settings, data: Data, x: Array, number: int) -> Array:
    """Answers [number, rows, ...] of who learns nothing.

    The mean of all answers, those of pairs drawn at random, or those of the inputs nearest to x, at random.
    """
    if arm.kind == "mean":
        return jnp.broadcast_to(data.y.mean(0)[None, None], (number, len(x), *data.y.shape[1:]))
    if arm.kind == "marginal":
        return data.y[jax.random.randint(key, (number, len(x)), 0, len(data.y))]
    apart = jnp.sum((x.reshape(len(x), 1, -1) - data.x.reshape(1, len(data.x), -1)) ** 2, axis=-1)
    near = min(NEIGHBOURS, len(data.x))
    _, nearest = jax.lax.top_k(-apart, near)  # [rows, near]
    chosen = jax.random.randint(key, (number, len(x)), 0, near)
    return data.y[nearest[jnp.arange(len(x))[None], chosen]]


def answered(key: Array, arm: Settings, problem: Any, scale: Settings) -> tuple[dict[str, Array], Any, Array, Array]:
    """Train on pairs of a problem whose law is known; metrics, the model, the test inputs and its answers to them."""
    data_key, fresh_key, train_key, draw_key, truth_key = jax.random.split(key, 5)
    data = Data(*problem.pairs(data_key, scale.rows), *problem.pairs(fresh_key, scale.fresh))
    x = problem.tests(scale.tests)
    truth_keys = jax.random.split(truth_key, scale.tests)
    truth = jax.vmap(lambda k, row: problem.draw(k, row, scale.samples))(truth_keys, x)  # [tests, samples, ...]
    updates = jnp.arange(1.0, scale.checkpoints + 1) * updates_of(arm, scale)

    def distance(samples):
        return jnp.mean(jax.vmap(g.energy_distance, (1, 0))(samples, truth))

    if arm.kind in UNTRAINED:
        made = None
        if arm.kind == "truth":  # other draws than those that answers are compared with
            each = jax.random.split(draw_key, scale.tests)
            samples = jax.vmap(lambda k, row: problem.draw(k, row, scale.samples), out_axes=1)(each, x)
        else:
            samples = untrained(draw_key, arm, data, x, scale.samples)
        # Who learns nothing passes nothing; the line of the picture is as long as cGML's.
        found, metrics = jnp.full(scale.checkpoints, distance(samples)), {"passes": updates * (3 * scale.inner + 2)}
    else:
        made = trained(train_key, arm, data, scale)
        # The same draws at every checkpoint: what moves is the networks.
        every = jax.lax.map(lambda p: made.drawn(draw_key, x, scale.samples, p), made.parameters)
        found, samples = jax.lax.map(distance, every), every[-1]
        metrics = {"chosen_rate": made.rate, "score": made.score, "passes": made.passes}
    late = found[scale.checkpoints // 2 :]
    metrics |= {
        "energy_distance": distance(samples),
        "distance_curve": found,
        "updates": updates,
        "area": jnp.mean(found),
        "log_late_spread": jnp.log(jnp.std(late) + LEAST_SPREAD),
        "share_below": (jnp.arange(scale.samples) + 0.5) / scale.samples,
        "diversity": jnp.mean(jax.vmap(g.diversity, 1)(samples)),
    }
    return metrics, made, x, samples


def hits(samples: Array, x: Array, problem: TwoCurves) -> g.ModeReport:
    """The two answers that samples [n, tests, 3] hit, for each test input."""
    report = lambda drawn, row: g.mode_report(drawn, problem.answers(row), TOLERANCE)  # noqa: E731
    return jax.vmap(report, (1, 0))(samples, x)


def modes(key: Array, arm: Settings, problem: TwoCurves, scale: Settings) -> dict[str, Array]:
    """Two answers for every x: how many samples hit one, whether both are given, and how often each."""
    problem = eqx.tree_at(lambda p: p.share, problem, jnp.asarray(arm.share))
    metrics, made, x, samples = answered(key, arm, problem, scale)
    report = hits(samples, x, problem)
    metrics |= {
        "hit": jnp.mean(report.hit),
        "rarer": jnp.mean(jnp.min(report.shares, axis=-1)),
        "both": jnp.mean(jnp.all(report.shares > 0, axis=-1).astype(float)),
        "plus_share": jnp.mean(report.nearest[:, 0]),
        "share_error": jnp.abs(jnp.mean(report.nearest[:, 0]) - arm.share),
        "sorted_answers": jnp.sort(samples[:, -1, 0]),
    }
    if arm.kind == "latent-flow":
        # The same training and the same first latents, brought to an answer in other ways.
        _, _, _, draw_key, _ = jax.random.split(key, 5)
        for mode in ("raw", "iterated"):
            other = made.sample(draw_key, x, scale.samples, mode=mode)
            metrics[f"{mode}_hit"] = jnp.mean(hits(other, x, problem).hit)
            metrics[f"more_than_{mode}"] = metrics["hit"] - metrics[f"{mode}_hit"]
    return metrics


def ring(key: Array, arm: Settings, problem: Ring, scale: Settings) -> dict[str, Array]:
    """A circle of answers for every x: how much of it the samples that lie on it cover."""
    metrics, made, x, samples = answered(key, arm, problem, scale)
    radii = jax.vmap(problem.radius)(x)

    def covered(samples):
        near = jnp.abs(jnp.linalg.norm(samples, axis=-1) - radii[None]) <= NEAR * radii[None]  # [n, tests]
        arcs = jax.vmap(lambda points, on: g.covered_arc(points, on, BINS), (1, 1))(samples, near)
        return jnp.mean(arcs), jnp.mean(near.astype(float))

    metrics["covered"], metrics["near"] = covered(samples)
    metrics["sorted_radii"] = jnp.sort(jnp.linalg.norm(samples[:, -1], axis=-1)) / radii[-1]
    if arm.kind == "latent-flow":
        _, _, _, draw_key, _ = jax.random.split(key, 5)
        raw = made.sample(draw_key, x, scale.samples, mode="raw")
        metrics["raw_covered"], metrics["raw_near"] = covered(raw)
    return metrics


def completion(key: Array, arm: Settings, problem: Any, scale: Settings) -> dict[str, Array]:
    """Pairs of real data, or one's own: how well answers foretell the one that came, how far apart they are, and more.

    ``problem`` has x, y, validation_x, validation_y, test_x and test_y, of any shapes with rows first.
    """
    train_key, draw_key = jax.random.split(key)
    data = Data(problem.x, problem.y, problem.validation_x, problem.validation_y)
    x, y = problem.test_x, problem.test_y
    made: Any = None
    if arm.kind in UNTRAINED:
        samples, metrics = untrained(draw_key, arm, data, x, scale.samples), {}
    else:
        made = trained(train_key, arm, data, scale)
        samples = made.sample(draw_key, x, scale.samples)
        metrics = {"chosen_rate": made.rate, "passes": made.passes[-1]}

    def measured(samples):
        apart = jnp.mean(jnp.abs(samples - y[None]), axis=tuple(range(2, samples.ndim)))  # [n, rows]
        return {
            "energy_score": scores(samples, y),
            "mean_error": jnp.mean(apart),
            "best_error": jnp.mean(jnp.min(apart, axis=0)),
            "diversity": jnp.mean(jax.vmap(g.diversity, 1)(samples)),
        }

    metrics |= measured(samples)
    joined = lambda answers: jnp.concatenate([x.reshape(len(x), -1), answers.reshape(len(x), -1)], axis=1)  # noqa: E731
    precision, recall = g.precision_recall(joined(y), joined(samples[0]))
    metrics |= {"precision": precision, "recall": recall}
    if arm.kind == "latent-flow":
        raw = measured(made.sample(draw_key, x, scale.samples, mode="raw"))
        metrics |= {f"raw_{name}": value for name, value in raw.items()}
        metrics["gain_of_flow"] = raw["energy_score"] - metrics["energy_score"]
    return metrics
