"""Vectors and point sets: what does a pose change, what can be learned, what does a gate add?"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from laureate._core import light_options
from laureate.graphs import GVP, Graph, GVPNetwork, QualityModel
from laureate.lab.claim import Settings
from laureate.loops import repeat
from laureate.problems.points import PointClouds, off_centre, perimeter, to_marked

__all__ = ["gate", "invariants", "pose", "trend"]

RADIAL = 16
TUNING = 2**31  # no seed
# What is compiled once and called for every seed: a third of XLA's time to compile, a tenth more to run.
LIGHT = light_options(1)
GATED: dict[str, Any] = {"gated": True, "activations": (jax.nn.relu, None)}


def compiled(function: Callable) -> Callable:
    """A program for each set of settings, compiled lightly."""
    return eqx.filter_jit(function, compiler_options=LIGHT)  # pyright: ignore[reportCallIssue]  (goes to jax.jit)


def trained(key: Array, model: Any, loss: Callable, count: int, steps: int, batch: int, rate: Any) -> Any:
    """Adam, its rate falling to 0 as a cosine. ``loss(model, rows, key)``; rows are drawn anew in every pass."""
    optimiser = optax.adam(lambda step: rate * 0.5 * (1 + jnp.cos(jnp.pi * step / steps)))
    draw, drop = jax.random.split(key)
    rows = jax.random.randint(draw, (steps, batch), 0, count)
    arrays, rest = eqx.partition(model, eqx.is_array)

    def step(state, index):
        arrays, moments = state
        value = lambda arrays: loss(eqx.combine(arrays, rest), rows[index], jax.random.fold_in(drop, index))  # noqa: E731
        updates, moments = optimiser.update(jax.grad(value)(arrays), moments)
        return (optax.apply_updates(arrays, updates), moments), None

    (arrays, _), _ = repeat(step, (arrays, optimiser.init(arrays)), 0, steps)
    return eqx.combine(arrays, rest)


class Held:
    """Something kept by what it is, not by what it equals."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.thing is other.thing


def tuned(fit: Callable, key: Array, arm: Settings, problem: Any, scale: Settings) -> tuple[Any, Array]:
    """What ``fit(key, rate, arm, problem, scale) -> (errors on validation, found)`` finds at the best rate.

    The rate is chosen once for an arm, by a training of its own with a key that no seed has: the least error on what
    nobody learns from or is tested on. Where there are several errors, each has its rate.
    """
    rate = jnp.asarray(_best_rate(fit, arm, Held(problem), scale))
    return fit(key, rate, arm, problem, scale)[1], rate


@cache
def _best_rate(fit: Callable, arm: Settings, held: Held, scale: Settings) -> np.ndarray:
    key, rates = jax.random.key(TUNING), np.asarray(scale.rates, np.float32)
    missed = np.stack([np.asarray(fit(key, jnp.asarray(rate), arm, held.thing, scale)[0]) for rate in rates])
    return rates[np.argmin(np.where(np.isfinite(missed), missed, np.inf), axis=0)]


def divided(key: Array, count: int, test: int) -> tuple[Array, Array, Array]:
    """Rows to learn from, ``test`` to choose the rate by, the same for all keys, and ``test`` to be tested on."""
    order = np.random.default_rng(0).permutation(count)
    rest = jax.random.permutation(key, jnp.asarray(order[test:]))
    return rest[test:], jnp.asarray(order[:test]), rest[:test]


def orthogonal(key: Array, count: int) -> Array:
    """[count, 3, 3]: rotations and, every second, a reflection, uniform."""
    q, r = jnp.linalg.qr(jax.random.normal(key, (count, 3, 3)))
    q = q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None, :]
    wanted = jnp.where(jnp.arange(count) % 2 == 0, 1.0, -1.0)
    return q.at[:, :, 0].multiply((wanted * jnp.linalg.det(q))[:, None])


def cloud_graph(points: Array, marked: Array, neighbors: Array, directions: Array | None, vectors: bool) -> Graph:
    """Clouds side by side: [n, p, ...] as one graph. Without vectors the directions are told as products with edges."""
    n, p, k = neighbors.shape
    shift = (jnp.arange(n) * p)[:, None, None]
    senders, receivers = (neighbors + shift).reshape(-1), jnp.repeat(jnp.arange(n * p), k)
    flat = points.reshape(-1, 3)
    between = flat[senders] - flat[receivers]
    length = jnp.sqrt(jnp.maximum((between**2).sum(-1, keepdims=True), 1e-8))
    unit = between / length
    edge = jnp.exp(-(((length - jnp.linspace(0.0, 10.0, RADIAL)) / (10.0 / RADIAL)) ** 2))
    edge = jnp.concatenate([edge, length / 10], -1)
    node = jnp.stack([marked.reshape(-1), 1 - marked.reshape(-1)], -1)  # two, for a layer norm of one number is 0
    own = jnp.zeros((n * p, 0, 3)) if directions is None else directions.reshape(-1, 1, 3)
    if not vectors:
        if directions is not None:
            there, here = own[senders, 0], own[receivers, 0]
            products = [(there * unit).sum(-1), (here * unit).sum(-1), (there * here).sum(-1)]
            edge = jnp.concatenate([edge, jnp.stack(products, -1)], -1)
        own, unit = own[:, :0], unit[:, None][:, :0]
    else:
        unit = unit[:, None]
    ones = jnp.ones(n * p, bool), jnp.ones(n * p * k, bool)
    return Graph((node, own), (edge, unit), senders, receivers, jnp.repeat(jnp.arange(n), p), *ones, n)


def in_dims(graph: Graph) -> tuple[tuple[int, int], tuple[int, int]]:
    """Numbers of scalars and vectors of nodes and of edges."""
    return tuple((part[0].shape[-1], part[1].shape[-2]) for part in (graph.nodes, graph.edges))  # type: ignore[return-value]


class DeepSets(eqx.Module):
    """A perceptron on the raw coordinates of each point, and one on their mean; vectors for each point if wanted."""

    first: eqx.nn.MLP
    last: eqx.nn.MLP

    def __init__(self, key: Array, width: int, outputs: int):
        one, two = jax.random.split(key)
        self.first = eqx.nn.MLP(4, width, width, 2, key=one)
        self.last = eqx.nn.MLP(width + (4 if outputs > 1 else 0), outputs, width, 2, key=two)

    def __call__(self, points: Array, marked: Array) -> Array:
        """[n, outputs], or [n, p, outputs] where there are several."""
        given = jnp.concatenate([points / 5, marked[..., None]], -1)
        pooled = jax.vmap(jax.vmap(self.first))(given).mean(1)
        if self.last.out_size == 1:
            return jax.vmap(self.last)(pooled)[:, 0]
        spread = jnp.broadcast_to(pooled[:, None], (*given.shape[:2], pooled.shape[-1]))
        return jax.vmap(jax.vmap(self.last))(jnp.concatenate([spread, given], -1))


def pose(key: Array, arm: Settings, problem: PointClouds, scale: Settings) -> dict[str, Array]:
    """Trained on clouds that all stand in one pose, tested in it and turned or mirrored at random."""
    if arm.model == "mean":
        return _pose_of_mean(key, problem, scale)
    (still, moved), rate = tuned(_pose, key, arm, problem, scale)
    ratio = jnp.log10(moved / still)
    gap, learned = jnp.abs(ratio), 1 - still
    return {
        "error": still,
        "moved_error": moved,
        "log10_ratio": ratio,
        "pose_gap": gap,
        "learned": learned,
        "rate": rate,
    }


def _perimeters(problem, key, scale):
    """Targets, standardised by those that are learned from, and the division."""
    known, valid, new = divided(key, len(problem.points), scale.test)
    answer = perimeter(problem.points)
    return (answer - answer[known].mean()) / answer[known].std(), known, valid, new


@eqx.filter_jit
def _pose_of_mean(key, problem, scale):
    answer, _, _, new = _perimeters(problem, jax.random.split(key, 4)[0], scale)
    error = jnp.mean(answer[new] ** 2)
    return {"error": error, "moved_error": error}


@compiled
def _pose(key, rate, arm, problem, scale):
    split, make, train, move = jax.random.split(key, 4)
    answer, known, valid, new = _perimeters(problem, split, scale)
    if arm.model == "gvp":
        graph = cloud_graph(problem.points[:1], problem.marked[:1], problem.neighbors[:1], None, True)
        model = QualityModel(make, *in_dims(graph), node_dims=scale.dims, with_residues=False, **_small(scale))
    else:
        model = DeepSets(make, scale.width, 1)

    def error(model, rows, turns):
        points = problem.points[rows] if turns is None else problem.points[rows] @ turns
        marked = problem.marked[rows]
        if arm.model == "gvp":
            found = model(cloud_graph(points, marked, problem.neighbors[rows], None, True))
        else:
            found = model(points, marked)
        return jnp.mean((found - answer[rows]) ** 2)

    def loss(model, rows, key):
        return error(model, known[rows], orthogonal(key, len(rows)) if arm.augmented else None)

    model = trained(train, model, loss, len(known), scale.steps, scale.batch, rate)
    turns = orthogonal(move, scale.test)
    # Who learned from turned clouds chooses by turned ones; nobody else knows of them.
    chosen_by = error(model, valid, turns if arm.augmented else None)
    return chosen_by, (error(model, new, None), error(model, new, turns))


def _small(scale: Settings) -> dict[str, Any]:
    return {"edge_dims": scale.edge_dims, "num_layers": scale.layers, "dropout": 0.0}


def gate(key: Array, arm: Settings, problem: PointClouds, scale: Settings) -> dict[str, Array]:
    """From each point to the centre of the marked ones, as a vector: lengths are scalars, directions are vectors."""
    if arm.model == "zero":
        still, moved, more = *_gate_of_zero(key, problem, scale), {}
    else:
        (still, moved), rate = tuned(_gate, key, arm, problem, scale)
        more = {"rate": rate}
    return {"error": still, "log10_error": jnp.log10(still), "moved_log10_error": jnp.log10(moved)} | more


def _displacements(problem, key, scale):
    """Targets, of mean square 1 among those that are learned from, and the division."""
    known, valid, new = divided(key, len(problem.points), scale.test)
    answer = to_marked(problem.points, problem.marked)
    return answer / jnp.sqrt(jnp.mean(jnp.sum(answer[known] ** 2, -1))), known, valid, new


@eqx.filter_jit
def _gate_of_zero(key, problem, scale):
    answer, _, _, new = _displacements(problem, jax.random.split(key, 4)[0], scale)
    error = jnp.mean(jnp.sum(answer[new] ** 2, -1))
    return error, error


@compiled
def _gate(key, rate, arm, problem, scale):
    split, make, train, move = jax.random.split(key, 4)
    answer, known, valid, new = _displacements(problem, split, scale)
    if arm.model == "raw":
        model = DeepSets(make, scale.width, 3)
    else:
        graph = cloud_graph(problem.points[:1], problem.marked[:1], problem.neighbors[:1], None, True)
        settings = GATED if arm.model == "gated" else {}
        model = GVPNetwork(make, *in_dims(graph), (0, 1), node_dims=scale.dims, **_small(scale), **settings)

    def error(model, rows, turns=None):
        turned = lambda vectors: vectors[rows] if turns is None else vectors[rows] @ turns  # noqa: E731
        points, marked, wanted = turned(problem.points), problem.marked[rows], turned(answer)
        if arm.model == "raw":
            found = model(points, marked)
        else:
            found = model(cloud_graph(points, marked, problem.neighbors[rows], None, True))[1]
        return jnp.mean(jnp.sum((found.reshape(points.shape) - wanted) ** 2, -1))

    loss = lambda model, rows, key: error(model, known[rows])  # noqa: E731
    model = trained(train, model, loss, len(known), scale.steps, scale.batch, rate)
    return error(model, valid), (error(model, new), error(model, new, orthogonal(move, scale.test)))


def invariants(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """Areas and volumes of four vectors from one GVP and a perceptron: R² on new vectors."""
    if arm.target == "mean":
        return {"r2": jnp.zeros(()), "log10_missed": jnp.zeros(())}
    left, rate = tuned(_invariants, key, arm, problem, scale)
    return {"r2": 1 - left, "log10_missed": jnp.log10(left), "rate": rate}


class Fitted(eqx.Module):
    """Scalars from one GVP, and a perceptron on them."""

    first: GVP
    rest: eqx.nn.MLP


@compiled
def _invariants(key, rate, arm, problem, scale):
    make, deep, train, draw = jax.random.split(key, 4)
    outputs = 2 if arm.target == "squares" else 1
    model = Fitted(
        GVP(make, (0, 4 + arm.cross), (scale.width, 0), num_hidden=arm.hidden),
        eqx.nn.MLP(scale.width, outputs, scale.width, 2, key=deep),
    )

    def drawn(key, number):
        vectors = jax.random.uniform(key, (number, 4, 3), minval=-1.0)
        a, b, c = vectors[:, 0], vectors[:, 1], vectors[:, 2]
        cross = jnp.cross(a, b)
        signed = (cross * c).sum(-1)
        squares = jnp.stack([(cross**2).sum(-1), signed**2], -1)
        given = jnp.concatenate([vectors, cross[:, None]], 1) if arm.cross else vectors
        return given, squares if arm.target == "squares" else signed[:, None]

    # Three draws: to scale the targets, to choose the rate, to test.
    (_, first), *others = (drawn(one, scale.test) for one in jax.random.split(draw, 3))
    mean, spread = first.mean(0), first.std(0)

    def predicted(model, inputs):
        scalars, _ = model.first(jnp.zeros((len(inputs), 0)), inputs)
        return jax.vmap(model.rest)(scalars) * spread + mean

    def missed(model, inputs, wanted):
        """1 − R², the mean of all targets."""
        return jnp.mean(jnp.mean((predicted(model, inputs) - wanted) ** 2, 0) / wanted.var(0))

    def loss(model, rows, key):
        inputs, wanted = drawn(key, scale.batch)
        return jnp.mean(((predicted(model, inputs) - wanted) / spread) ** 2)

    model = trained(train, model, loss, 1, scale.steps, 1, rate)
    return missed(model, *others[0]), missed(model, *others[1])


def trend(key: Array, arm: Settings, problem: None, scale: Settings) -> dict[str, Array]:
    """The off-centre task for sets of several sizes: errors with vectors and without, and the gap between them."""
    data = _padded(scale.clouds, scale.points, scale.neighbors)
    both = [tuned(_errors, key, Settings(vectors=vectors), data, scale) for vectors in (True, False)]
    (errors, rates), (scalar_errors, scalar_rates) = both
    return {
        "gap": scalar_errors - errors,
        "doublings": jnp.log2(jnp.asarray(scale.points, jnp.float32)),
        "error": errors,
        "scalar_error": scalar_errors,
        "largest_gap": scalar_errors[-1] - errors[-1],
        "largest_error": errors[-1],
        "learned": 1 - jnp.minimum(errors[-1], scalar_errors[-1]),
        "rate": rates,
        "scalar_rate": scalar_rates,
    }


def _errors(key, rate, arm, data, scale):
    """One rate for all sizes, or one each."""
    return _off_centre_errors(key, jnp.broadcast_to(rate, (len(scale.points),)), arm, data, scale)


class Padded(NamedTuple):
    """Clouds of several sizes, padded to the largest, with a leading axis of sizes; ``real`` is no padding."""

    points: Array
    directions: Array
    marked: Array
    neighbors: Array
    real: Array
    answer: Array


@cache
def _padded(count: int, sizes: tuple[int, ...], neighbors: int) -> Padded:
    """One program for all sizes: padding's edges lead from padding to itself."""
    made, most = [PointClouds(count, number, neighbors) for number in sizes], max(sizes)
    own = np.broadcast_to(np.arange(most)[:, None], (count, most, neighbors))

    def wide(part, clouds):
        values = np.asarray(getattr(clouds, part))
        found = own.copy() if part == "neighbors" else np.zeros((count, most, *values.shape[2:]), values.dtype)
        found[:, : values.shape[1]] = values
        return found

    parts = ("points", "directions", "marked", "neighbors")
    stacked = [jnp.asarray(np.stack([wide(part, clouds) for clouds in made])) for part in parts]
    real = jnp.asarray(np.stack([np.arange(most) < number for number in sizes]))
    answers = np.stack([np.asarray(off_centre(clouds.points, clouds.marked)) for clouds in made])
    return Padded(*stacked, real=real, answer=jnp.asarray(answers))


@compiled
def _off_centre_errors(key, rate, arm, data, scale):
    split, make, train = jax.random.split(key, 3)
    known, valid, new = divided(split, data.points.shape[1], scale.test)
    dims = scale.dims if arm.vectors else scale.scalar_dims
    edges = scale.edge_dims if arm.vectors else (scale.edge_dims[0] + 3 * scale.edge_dims[1], 0)
    settings = {"edge_dims": edges, "num_layers": scale.layers, "dropout": 0.0, "with_residues": False}

    def of_size(given):
        data, rate = given

        def graph_of(rows):
            given = (part[rows] for part in (data.points, data.marked, data.neighbors, data.directions))
            graph = cloud_graph(*given, vectors=arm.vectors)
            real = jnp.tile(data.real, len(rows))
            return replace(
                graph,
                graph_of=jnp.where(real, graph.graph_of, graph.num_graphs),
                node_mask=real,
                edge_mask=real[graph.receivers],
            )

        answer = (data.answer - data.answer[known].mean()) / data.answer[known].std()
        model = QualityModel(make, *in_dims(graph_of(np.arange(1))), node_dims=dims, **settings)
        error = lambda model, rows: jnp.mean((model(graph_of(rows)) - answer[rows]) ** 2)  # noqa: E731
        loss = lambda model, rows, key: error(model, known[rows])  # noqa: E731
        model = trained(train, model, loss, len(known), scale.steps, scale.batch, rate)
        return error(model, valid), error(model, new)

    return jax.lax.map(of_size, (data, rate))
