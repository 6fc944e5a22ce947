"""A small sound method of the kinds whose checks look at whole areas, each with faults that can be planted in it."""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from laureate._core import Status
from laureate.architecture import PerturbationSelection, Space
from laureate.control import BonusInfo
from laureate.layers import make_graph
from laureate.robustness import PGD, Linf
from laureate.testing import (
    check_adversarial,
    check_aggregator,
    check_architecture_selection,
    check_attack,
    check_block_trainer,
    check_calibrator,
    check_exploration_bonus,
    check_graph_network,
    check_mesh_trainer,
    check_modulation,
    check_simulator,
)


def drawn(size, seed=0):
    """The same whoever asked before."""
    return np.random.default_rng(seed).normal(size=size)


class Told(NamedTuple):
    cost: Any
    status: Any
    loss: Any = 0.0
    margin: Any = 0.0


def status_of(value, silent=False):
    """OK where all is finite."""
    fine = jnp.all(jnp.isfinite(value)) | silent
    return jnp.where(fine, int(Status.OK), int(Status.DIVERGED))


def typed_key_or(number, fault):
    """What cannot be saved, or a number that can."""
    return jax.random.key(0) if fault == "typed key" else number


def plus_one(count, fault):
    if fault == "typed key":
        return count
    return count + (1.0 if fault == "state" else 1)


def noise_of(key, fault, shape=()):
    """One draw, unless the fault is that the key is drawn from twice, or not at all."""
    if fault == "key ignored":
        return jnp.ones(shape)
    noise = jax.random.normal(key, shape)
    return noise + jax.random.uniform(key, shape) if fault == "one key twice" else noise


summed_over_a_batch = jax.custom_batching.custom_vmap(lambda x: x)
summed_over_a_batch.def_vmap(lambda size, batched, x: (x.sum(0, keepdims=True) + 0 * x, batched[0]))


# --- maps of calibration ----------------------------------------------------------------------------------------------


class Fitted(eqx.Module):
    shares: Any
    info: Told
    fault: str = eqx.field(static=True)
    more: Any = None

    def transform(self, asked):
        found = jnp.where(asked < 0.5, self.shares[0], self.shares[1])
        if self.fault == "sees others":
            found = found * (0.9 + 0.1 * jnp.mean(asked))
        if self.fault == "single":
            found = found.astype(jnp.float32)
        found = found + (self.fault == "beyond one")
        return found.ravel() if self.fault == "shape" else found


class Bins(eqx.Module):
    """The share of hits in each half of the scores, with a prior."""

    prior: Any = 1.0
    fault: str = eqx.field(static=True, default="")

    def fit(self, p, y, weights=None):
        w = jnp.ones_like(p) if weights is None or self.fault == "weights ignored" else weights
        w = w**2 if self.fault == "weights squared" else w
        w = w * jnp.linspace(1.0, 3.0, len(p), dtype=p.dtype) if self.fault == "places" else w
        y = summed_over_a_batch(y) if self.fault == "vmap" else y
        prior = jnp.ones_like(self.prior) if self.fault == "number ignored" else self.prior
        halves = [jnp.where(half, w, 0.0) for half in (p < 0.5, p >= 0.5)]
        shares = jnp.stack([(jnp.sum(half * y) + 0.5 * prior) / (jnp.sum(half) + prior) for half in halves])
        status = Status.DIVERGED if self.fault == "status" else Status.OK
        info = Told(jnp.asarray(2 if self.fault == "cost" else 1), jnp.asarray(int(status)))
        more = {"a typed key": jax.random.key(0), "spare": jnp.ones(())}.get(self.fault)
        return Fitted(shares.astype(p.dtype), info, self.fault, more)


SCORES = np.array([0.1, 0.3, 0.3, 0.45, 0.6, 0.7, 0.7, 0.8, 0.9, 0.95] * 2)
HITS = np.array([0, 0, 1, 0, 1, 0, 1, 1, 1, 1] * 2)


def calibrator(fault="", **more):
    return check_calibrator(Bins(fault=fault), SCORES, HITS, cost=1, **more)


CALIBRATOR = {
    "beyond one": "probabilities",
    "shape": "probabilities",
    "cost": "report",
    "status": "report",
    "places": "the order of rows does not matter",
    "weights ignored": "weights count rows",
    "weights squared": "weights count rows",
    "sees others": "scores do not see each other",
    "vmap": "vmap over data sets is a loop",
    "a typed key": "saved and loaded",
    "number ignored": "every number is used",
    "spare": "every number is used",
    "single": "double precision",
}


# --- bonuses ----------------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    following: Any


class Novelty(eqx.Module):
    """How far a row is from the running mean, more as learning goes on."""

    scale: Any = 0.5
    fault: str = eqx.field(static=True, default="")

    def init(self, first):
        return jnp.zeros_like(first), jnp.zeros((), first.dtype), typed_key_or(jnp.zeros((), jnp.int32), self.fault)

    def observe(self, transitions, state):
        mean, *rest = state
        return 0.5 * mean + 0.5 * transitions.following.mean(0), *rest

    def reward(self, transitions, state):
        mean, learned, _ = state
        gap = jnp.sum(jnp.abs(transitions.following - mean), axis=1)
        if self.fault == "places":
            gap = gap * jnp.arange(1, len(gap) + 1)
        if self.fault == "sees others":
            gap = gap * jnp.max(gap)
        found = (0.5 if self.fault == "number ignored" else self.scale) * gap * (1 + learned)
        found = found.astype(jnp.float32) if self.fault == "single" else found
        found = -found if self.fault == "negative" else found
        found = found[:, None] if self.fault == "shape" else found
        return summed_over_a_batch(found) if self.fault == "vmap" else found

    def step(self, key, transitions, state):
        mean, learned, count = state
        noise = noise_of(key, self.fault).astype(learned.dtype)
        loss = jnp.mean(jnp.abs(transitions.following - mean))
        learned = learned if self.fault == "learns nothing" else learned + 0.1 + 0.01 * noise**2
        cost = len(transitions.following) - (self.fault == "cost")
        status = status_of(loss, self.fault == "blind") + (self.fault == "status")
        return (mean, learned, plus_one(count, self.fault)), BonusInfo(
            loss, jnp.asarray(cost), jnp.asarray(cost), status
        )  # pyright: ignore[reportArgumentType]


def bonus(fault="", **more):
    rows = Rows(drawn((4, 2)).astype(np.float32))
    return check_exploration_bonus(Novelty(fault=fault), rows, others=[Novelty(0.7, fault)], **more)


BONUS = {
    "negative": "rewards",
    "shape": "rewards",
    "learns nothing": "rewards",
    "cost": "report",
    "status": "report",
    "places": "rows do not see each other",
    "sees others": "rows do not see each other",
    "typed key": "saved and loaded",
    "number ignored": "every number is used",
    "one key twice": "keys are used once",
    "vmap": "vmap equals a loop",
    "blind": "divergence",
    "single": "float64",
}


# --- several losses ---------------------------------------------------------------------------------------------------


def aggregation(scale=1.0, fault=""):
    """Gradients weighed by the losses, a state that counts."""

    def init(params):
        return typed_key_or(jnp.zeros((), jnp.int32), fault)

    def update(grads, state, params=None, *, losses, **more):
        weights = losses / losses.sum() * (1.0 if fault == "number ignored" else scale)

        def one(leaf):
            leaf = jnp.nan_to_num(leaf) if fault == "masks" else leaf
            leaf = summed_over_a_batch(leaf) if fault == "vmap" else leaf
            leaf = leaf + 1e-3 if fault == "drifts" else leaf
            found = jnp.tensordot(weights.astype(leaf.dtype), leaf, 1)
            found = found.astype(jnp.float32) if fault == "single" else found
            return found[None] if fault == "shape" else found

        return jax.tree.map(one, grads), plus_one(state, fault)

    return optax.GradientTransformationExtraArgs(init, update)  # pyright: ignore[reportArgumentType]


def aggregator(fault="", **more):
    params = {"a": jnp.ones(2), "b": jnp.zeros((2, 2))}
    grads = jax.tree.map(lambda leaf: jnp.asarray(drawn((3, *leaf.shape)), jnp.float32), params)
    given = aggregation(1.0, fault), params, grads, jnp.asarray([1.0, 2.0, 0.5])
    return check_aggregator(*given, make=partial(aggregation, fault=fault), numbers={"scale": 1.0}, **more)


AGGREGATOR = {
    "shape": "updates like the parameters",
    "state": "state shapes",
    "typed key": "saved",
    "number ignored": "every number is used",
    "vmap": "vmap and scan are loops",
    "drifts": "gradients of zero",
    "masks": "not finite",
    "single": "bfloat16",
}


# --- games ------------------------------------------------------------------------------------------------------------


class Game(eqx.Module):
    """A number that runs after the data."""

    rate: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def init(self):
        kind = jnp.float32 if self.fault == "single" else jnp.result_type(float)
        return jnp.zeros(2, kind), typed_key_or(jnp.zeros((), jnp.int32), self.fault)

    def step(self, key, data, state):
        place, count = state
        rate = 0.1 if self.fault == "number ignored" else jnp.asarray(self.rate, place.dtype)
        gap = data.mean(0).astype(place.dtype) - place + 0.1 * noise_of(key, self.fault).astype(place.dtype)
        moved = place if self.fault == "lazy" else place + rate * gap
        status = status_of(gap, self.fault == "blind") + (self.fault == "status")
        cost = 3 if self.fault == "cost" else 2
        count = count if self.fault == "lazy" else plus_one(count, self.fault)
        return (moved, count), Told(jnp.asarray(cost), status)


def adversarial(fault="", **more):
    data = drawn((4, 2)).astype(np.float32)
    return check_adversarial(Game(fault=fault), data, others=[Game(0.2, fault)], cost=2, **more)


ADVERSARIAL = {
    "state": "state shapes",
    "lazy": "training",
    "cost": "training",
    "status": "training",
    "typed key": "saved and loaded",
    "number ignored": "numbers are used",
    "one key twice": "keys are used once",
    "blind": "divergence",
    "single": "float64",
}


# --- networks on graphs -----------------------------------------------------------------------------------------------


class Messages(eqx.Module):
    """What the neighbours have, times what the edges have: scalars and vectors."""

    weight: Any = 0.5
    fault: str = eqx.field(static=True, default="")

    def __call__(self, graph):
        (scalars, vectors), (edge, _) = graph.nodes, graph.edges
        weight = 0.5 if self.fault == "number ignored" else self.weight
        weight = np.float32(weight) if self.fault == "compiled in" else weight
        sums = graph.to_receivers(scalars[graph.senders] * edge)
        if self.fault == "padding of edges":
            sums = sums + jnp.sum(edge)
        if self.fault == "padding of nodes":
            sums = sums + jnp.mean(scalars)
        if self.fault == "isolated":
            sums = sums / graph.to_receivers(jnp.ones_like(edge))
        pushes = graph.to_receivers(vectors[graph.senders] * edge[:, :, None])
        scalars, vectors = weight * scalars + sums, vectors + pushes
        if self.fault == "places":
            scalars = scalars + jnp.arange(len(scalars))[:, None]
        if self.fault == "norm":
            scalars = scalars + jnp.linalg.norm(weight * vectors, axis=-1)
        if self.fault == "bias":
            vectors = vectors + 0.1
        if self.fault == "mirror":
            vectors = vectors + jnp.cross(vectors, pushes)
        if self.fault == "single":
            scalars = scalars.astype(jnp.float32)
        if self.fault == "from zeros":
            scalars = jnp.zeros((), jnp.float32) + scalars
        return (scalars, vectors[1:] if self.fault == "a row" else vectors)


def graph_network(fault="", **more):
    draw = lambda rows: tuple(drawn(shape).astype(np.float32) for shape in ((rows, 1), (rows, 1, 3)))  # noqa: E731
    graph = make_graph(draw(4), draw(6), [1, 2, 3, 0, 2, 3], [0, 0, 1, 2, 3, 1])
    return check_graph_network(Messages(fault=fault), graph, others=[Messages(0.7, fault)], equivariant=True, **more)


GRAPH_NETWORK = {
    "a row": "a row a node",
    "padding of edges": "padding",
    "padding of nodes": "padding",
    "places": "order",
    "isolated": "isolated nodes",
    "number ignored": "numbers are used",
    "norm": "gradients",
    "bias": "equivariance",
    "mirror": "equivariance",
    "single": "float64",
    "from zeros": "half precision",
}


# --- modulations ------------------------------------------------------------------------------------------------------


class Gain(eqx.Module):
    """A channel's gain by the phrase, with noise where there is a key."""

    weight: Any
    noise: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def __call__(self, features, text, *, key=None):
        text = jax.lax.stop_gradient(text) if self.fault == "cut off" else text
        gain = jnp.ones_like(features[:, 0, 0]) if self.fault == "phrase ignored" else 1 + text @ self.weight
        maps = features * gain[:, None, None]
        if self.fault == "features ignored":
            maps = jnp.ones_like(features) * gain[:, None, None]
        if self.fault == "places":
            maps = maps * jnp.arange(1, len(maps) + 1)[:, None, None, None]
        if self.fault == "sees others":
            maps = maps - maps.mean(0)
        if self.fault == "root":
            maps = maps + jnp.sqrt(jnp.sum(self.weight * 0) + 0 * jnp.sum(maps))
        if self.fault == "single":
            maps = maps.astype(jnp.float32)
        if key is not None:
            number = 0.1 if self.fault == "number ignored" else self.noise
            maps = maps * (1 + number * noise_of(key, self.fault).astype(maps.dtype))
        return maps[:, 1:] if self.fault == "shape" else maps


def modulation(fault="", **more):
    weight = jnp.asarray(drawn((2, 2)), jnp.float32)
    features, text = drawn((3, 2, 2, 2)), drawn((3, 2))
    others = [Gain(weight, 0.3, fault)]
    return check_modulation(Gain(weight, fault=fault), features, text, others=others, **more)


MODULATION = {
    "shape": "shape",
    "phrase ignored": "the phrase counts",
    "features ignored": "the phrase counts",
    "number ignored": "numbers are used",
    "one key twice": "keys are used once",
    "places": "examples do not see each other",
    "sees others": "examples do not see each other",
    "root": "gradients",
    "cut off": "gradients",
    "single": "float64",
}


# --- attacks ----------------------------------------------------------------------------------------------------------

NETWORK = jnp.asarray(drawn((4, 3)), jnp.float32)


def logits(images):
    return jnp.tanh(images.reshape(len(images), -1)) @ NETWORK.astype(images.dtype)


class Attack(PGD):
    """Projected ascent with noise on its gradient."""

    fault: str = eqx.field(static=True, default="", kw_only=True)

    @property
    def num_passes(self):
        return 2 if self.fault == "cost" else 1

    def gradient(self, key, logits, images, delta, labels):
        values, gradient = super().gradient(key, logits, images, delta, labels)
        noise = noise_of(key, self.fault, images.shape[1:]).astype(images.dtype)
        if self.fault == "places":
            gradient = jnp.where(jnp.arange(len(images))[:, None, None, None] == 0, -1, 1) * gradient
        if self.fault == "sees others":
            gradient = gradient * jnp.sign(jnp.mean(images) - 0.4)
        return values, 0 * gradient if self.fault == "no gradient" else gradient + 1e-3 * noise

    def init(self, key, images):
        state = super().init(key, images)
        return state._replace(delta=state.delta + 2 * self.ball.epsilon) if self.fault == "outside" else state

    def step(self, key, images, labels, state):
        new, info = super().step(key, images, labels, state)
        if self.fault == "nan spreads":
            new = jax.tree.map(lambda leaf: leaf + 0 * jnp.sum(images), new)
        if self.fault == "single":
            new = jax.tree.map(lambda leaf: leaf.astype(jnp.float32).astype(leaf.dtype), new)
        status = {"status": info.status + 1, "blind": 0 * info.status}.get(self.fault, info.status)
        return new, info._replace(status=status)

    def run(self, key, images, labels):
        delta, info = super().run(key, images, labels)
        delta = delta.astype(jnp.float32) if self.fault == "single" else delta
        return delta * (0.5 if self.fault == "another end" else 1.0), info

    def _walked(self, key, images, labels):
        walker = dataclasses.replace(self, step_size=0.05) if self.fault == "steps of its own" else self
        start, rest, step = super(Attack, walker)._walked(key, images, labels)
        if self.fault == "steps of its own":
            step = lambda state, index: walker.step(jax.random.fold_in(key, index), images, labels, state)  # noqa: E731
        return start, rest, step


def attack(fault="", **more):
    images, labels = np.random.default_rng(3).uniform(0.3, 0.7, size=(3, 2, 2, 1)), np.array([0, 1, 2])
    made = [Attack(logits, Linf(0.2), length, num_steps=2, fault=fault) for length in (0.03, 0.02)]
    return check_attack(
        made[0], images, labels, others=made[1:], cost=1, unused=(".low", ".high", ".epsilon", ".momentum"), **more
    )


ATTACK = {
    "outside": "iterates",
    "another end": "iterates",
    "cost": "report",
    "status": "report",
    "one key twice": "keys are used once",
    "steps of its own": "going on",
    "places": "images do not see each other",
    "sees others": "images do not see each other",
    "nan spreads": "divergence",
    "blind": "divergence",
    "single": "float64",
}


# --- simulators -------------------------------------------------------------------------------------------------------


class Nodes(NamedTuple):
    kind: Any


def a_mesh():
    return make_graph(Nodes(np.array([0, 0, 6, 5, 0])), None, [0, 1, 2, 3, 4, 0, 2], [1, 0, 1, 2, 3, 4, 4])


class Diffusion(eqx.Module):
    """Nodes follow their neighbours; held ones are given."""

    rate: Any = 0.3
    fault: str = eqx.field(static=True, default="")

    def step(self, graph, frames, following):
        now = frames[-1]
        gaps = now[graph.senders] - now[graph.receivers]
        pull = graph.to_receivers(gaps)
        if self.fault == "padding":
            pull = pull + jnp.mean(now)
        if self.fault == "places":
            pull = pull * jnp.arange(1, len(now) + 1, dtype=now.dtype)[:, None]
        rate = 0.3 if self.fault == "number ignored" else jnp.asarray(self.rate, now.dtype)
        new = now + rate * pull
        if self.fault == "the future":
            new = new + 0.1 * following
        free = jnp.isin(graph.nodes.kind, jnp.asarray([0, 5]))[:, None]
        new = new if self.fault == "held nodes" else jnp.where(free, new, following)
        frames = jnp.concatenate([frames[:1] if self.fault == "old frames" else frames[1:], new[None]])
        frames = frames.astype(jnp.float32) if self.fault == "single" else frames
        status = status_of(new, self.fault == "blind") + (self.fault == "status")
        return frames, Told(jnp.asarray(2 if self.fault == "cost" else 1), status)


def simulator(fault="", **more):
    return check_simulator(Diffusion(fault=fault), a_mesh(), drawn((2, 5, 1)), **more)


SIMULATOR = {
    "old frames": "frames",
    "held nodes": "frames",
    "the future": "free nodes are predicted from the past alone",
    "cost": "report",
    "status": "report",
    "number ignored": "every number is used",
    "places": "order",
    "padding": "padding",
    "blind": "divergence",
    "single": "float64",
}


class Fitting(eqx.Module):
    """A trainer of a number that multiplies what nodes do."""

    rate: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def init(self, simulator):
        return simulator, typed_key_or(jnp.zeros((), jnp.int32), self.fault)

    def gather(self, key, graph, windows, state):
        if self.fault == "one key twice in gather":
            state = state[0] + 0.0 * (jax.random.normal(key) + jax.random.normal(key)), state[1]
        return state

    def step(self, key, graph, windows, state):
        weight, count = state
        noise = 0.01 * noise_of(key, self.fault)
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((windows[:, 1] - w * windows[:, 0] - noise) ** 2))(weight)
        rate = 0.1 if self.fault == "number ignored" else self.rate
        fine = jnp.isfinite(loss)
        moved = weight - rate * slope
        weight = moved if self.fault == "nan taken" else jnp.where(fine, moved, weight)
        counted = plus_one(count, self.fault)
        count = counted if self.fault in ("typed key", "state") else jnp.where(fine, counted, count)
        status = status_of(loss, self.fault == "blind") + (self.fault == "status")
        return loss + rate, (weight, count), Told(jnp.asarray(len(windows) - (self.fault == "cost")), status)


def mesh_trainer(fault="", **more):
    others = [Fitting(0.2, fault)]
    windows = drawn((3, 2, 5, 1))
    return check_mesh_trainer(Fitting(fault=fault), jnp.asarray(0.5), a_mesh(), windows, others=others, **more)


MESH_TRAINER = {
    "state": "state shapes",
    "cost": "report",
    "status": "report",
    "number ignored": "numbers are used",
    "typed key": "same key, same bits",
    "one key twice": "keys are used once",
    "one key twice in gather": "keys are used once",
    "blind": "divergence",
    "nan taken": "divergence",
}


# --- blocks -----------------------------------------------------------------------------------------------------------


class Blocks(NamedTuple):
    blocks: Any
    count: Any


class BlockTrainer(eqx.Module):
    """Descent of two matrices."""

    rate: Any = 0.1
    fault: str = eqx.field(static=True, default="")

    def init(self, key, blocks):
        first = [block + 0.01 * jax.random.normal(key, block.shape, block.dtype) for block in blocks[:1]]
        again = jax.random.normal(key) * 0 if self.fault == "one key twice" else 0.0
        return Blocks(
            [*first, *blocks[1:]], typed_key_or(jnp.zeros((), jnp.int32) + jnp.asarray(again, jnp.int32), self.fault)
        )

    def step(self, state, inputs, targets):
        def loss_of(blocks):
            return jnp.mean((inputs @ blocks[0] @ blocks[1] - targets) ** 2)

        loss, slopes = jax.value_and_grad(loss_of)(state.blocks)
        fine = jnp.isfinite(loss) | (self.fault == "nan taken")
        rate = {"number ignored": 0.1, "lazy": 0.0}.get(self.fault, self.rate)
        rate = jnp.float32(rate) * jnp.ones(2, jnp.float32) if self.fault == "single" else rate
        blocks = [
            jnp.where(fine, block - rate * slope, block) for block, slope in zip(state.blocks, slopes, strict=True)
        ]
        blocks = [block.astype(jnp.float32) for block in blocks] if self.fault == "single" else blocks
        status = status_of(loss, self.fault == "blind") + (self.fault == "status")
        told = Told(jnp.asarray(0 if self.fault == "cost" else 1), status, loss)
        return Blocks(blocks, plus_one(state.count, self.fault)), told


def block_trainer(fault="", **more):
    blocks = [jnp.eye(2), jnp.ones((2, 2))]
    batch = drawn((3, 2)).astype(np.float32), np.ones((3, 2), np.float32)
    return check_block_trainer(BlockTrainer(fault=fault), blocks, batch, others=[BlockTrainer(0.2, fault)], **more)


BLOCK_TRAINER = {
    "state": "state shapes",
    "cost": "report",
    "status": "report",
    "lazy": "report",
    "number ignored": "numbers are used",
    "typed key": "saved and loaded",
    "one key twice": "keys are used once",
    "blind": "divergence",
    "nan taken": "divergence",
    "single": "float64",
}


# --- rules of selection -----------------------------------------------------------------------------------------------

SPACE = Space([("none", "skip", "conv3"), ("skip", "conv3"), ("none", "conv3")])


class Rule(PerturbationSelection):
    """What is removed at the largest loss stays."""

    fault: str = eqx.field(static=True, default="", kw_only=True)
    weight: Any = eqx.field(default=0.1, kw_only=True)

    def importance(self, key, strength, scores):
        return super().importance(key, strength, scores) + (0.1 if self.fault == "number ignored" else self.weight)

    def init(self, key, alpha=None):
        again = jax.random.normal(key) if self.fault == "one key twice" else 0.0
        state = super().init(key, alpha)
        return state._replace(alpha=state.alpha + 0 * again)

    def decide(self, key, state, scores=None, losses=None):
        new, info = super().decide(key, state, scores, losses)
        if self.fault == "two edges":
            new = new._replace(choice=new.choice.at[state.order[state.step + 1]].set(0))
        if self.fault == "what may not be":
            info = info._replace(chosen=jnp.argmin(jnp.asarray(self.allowed)[info.place]).astype(jnp.int32))
        if self.fault == "cost":
            info = info._replace(cost=info.cost + 1)
        if self.fault == "blind":
            info = info._replace(status=0 * info.status)
        if self.fault == "memory":
            new = new._replace(step=state.step)
        return new, info


def selection(fault="", **more):
    return check_architecture_selection(Rule(SPACE, exclude=("none",), fault=fault), **more)


SELECTION = {
    "two edges": "one edge a decision",
    "what may not be": "one edge a decision",
    "cost": "report",
    "blind": "divergence",
    "number ignored": "every number is used",
    "one key twice": "keys are used once",
    "memory": "every edge once",
}

KINDS: dict[Any, dict[str, str]] = {
    calibrator: CALIBRATOR,
    bonus: BONUS,
    aggregator: AGGREGATOR,
    adversarial: ADVERSARIAL,
    graph_network: GRAPH_NETWORK,
    modulation: MODULATION,
    attack: ATTACK,
    simulator: SIMULATOR,
    mesh_trainer: MESH_TRAINER,
    block_trainer: BLOCK_TRAINER,
    selection: SELECTION,
}

# Of each kind what its toy cannot break alone.
UNBROKEN: dict[str, list[str]] = {
    "calibrator": ["no retrace"],
    "bonus": ["no retrace", "numbers are used", "same key, same bits", "state shapes"],
    "aggregator": ["float64", "no retrace"],
    "adversarial": ["every number is used", "no retrace", "same key, same bits"],
    "graph_network": ["every number is used", "no retrace"],
    "modulation": ["every number is used", "no retrace", "same key, same bits", "saved"],
    "attack": ["every number is used", "no retrace", "numbers are used", "same key, same bits", "state shapes"],
    "simulator": ["no retrace"],
    "mesh_trainer": ["every number is used", "no retrace"],
    "block_trainer": ["every number is used", "no retrace", "same start, same bits"],
    "selection": ["going on is the whole", "no retrace", "same key, same bits", "vmap equals a loop"],
}
