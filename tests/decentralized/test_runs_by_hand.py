"""Whole runs in NumPy, of every optimiser with local transformations that remember, that look at the parameters and at
a node's own length, over every kind of gossip and compressor; the leaves are of two types beside each other."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.polynomial.chebyshev import chebval
from numpy.testing import assert_allclose

from laureate.decentralized import (
    D2,
    DPSGD,
    AllReduceSGD,
    ChocoSGD,
    DeFacto,
    DeTAG,
    Gossip,
    GradientTracking,
    ScaledSign,
    TopK,
    exact_factors,
    from_graph,
)

ALPHA, KAPPA, GAMMA = 0.1, 0.6, 0.4
EDGES = [(0, 1), (1, 2), (2, 3), (2, 4), (3, 4)]
GRAPH, NODES = from_graph(EDGES), 5
DRAW = np.random.default_rng(0)
START, TARGET = DRAW.normal(size=(2, NODES, 4))
LOCALS = {
    "none": None,
    "decay": optax.chain(optax.add_decayed_weights(0.3), optax.trace(0.8)),
    "adam": optax.scale_by_adam(0.7, 0.9),
    "clip": optax.clip_by_global_norm(0.5),
}
# A maker from gossip and local transformation; then method, local, rounds.
ROWS = {
    "d-psgd": (lambda g, **more: DPSGD(g, ALPHA, **more), [("plain", name, 4) for name in ("decay", "adam", "clip")]),
    "tracking": (
        lambda g, **more: GradientTracking(g, ALPHA, **more),
        [("plain", name, 4) for name in ("decay", "adam", "clip")],
    ),
    "all-reduce": (
        lambda g, **more: AllReduceSGD(g, ALPHA, **more),
        [("plain", name, 4) for name in ("decay", "adam", "clip")],
    ),
    "d2": (lambda g, local: D2(g, ALPHA), [("plain", "none", 5)]),
    "choco-top": (
        lambda g, **more: ChocoSGD(g, ALPHA, TopK(0.5), GAMMA, **more),
        [("plain", name, 4) for name in ("decay", "adam")],
    ),
    "choco-sign": (
        lambda g, **more: ChocoSGD(g, ALPHA, ScaledSign(), GAMMA, **more),
        [("plain", name, 4) for name in ("decay", "clip")],
    ),
    "defacto": (lambda g, **more: DeFacto(g, ALPHA, **more), [("plain", name, 16) for name in ("decay", "adam")]),
    "detag": (
        lambda g, **more: DeTAG(g, ALPHA, 3, **more),
        [("plain", "decay", 9), ("accelerated", "adam", 9), ("chebyshev", "clip", 9)],
    ),
}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def gradient(x, t):
    return x - TARGET * (1 + t / 3)


def split(x):
    return {"a": jnp.asarray(x[:, :3], jnp.float32), "b": jnp.asarray(x[:, 3], jnp.float64)}


def run(optimiser, rounds):
    """The parameters after every round."""

    def step(carry, t):
        x, state = carry
        grads = {"a": x["a"] - split(TARGET)["a"] * (1 + t / 3), "b": x["b"] - TARGET[:, 3] * (1 + t / 3)}
        grads = jax.tree.map(lambda g, p: g.astype(p.dtype), grads, x)
        updates, state = optimiser.update(grads, state, x)
        new = optax.apply_updates(x, updates)
        return (new, state), new

    start = split(START)
    return jax.lax.scan(step, (start, optimiser.init(start)), jnp.arange(float(rounds)))[1]


class Local:
    """A local transformation in NumPy, a node a row."""

    def __init__(self, name):
        self.name, self.count, self.first, self.second = name, 0, 0.0, 0.0

    def __call__(self, direction, x):
        if self.name == "clip":
            return direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True) / 0.5, 1)
        if self.name == "decay":
            self.first = 0.8 * self.first + direction + 0.3 * x
            return self.first
        if self.name == "adam":
            self.count += 1
            self.first = 0.7 * self.first + 0.3 * direction
            self.second = 0.9 * self.second + 0.1 * direction**2
            mean, square = self.first / (1 - 0.7**self.count), self.second / (1 - 0.9**self.count)
            return mean / (np.sqrt(square) + 1e-8)
        return direction


def mixing():
    """Metropolis' weights of the graph, lazy by κ."""
    degrees, w = np.bincount(np.ravel(EDGES)), np.zeros((NODES, NODES))
    for i, j in EDGES:
        w[i, j] = w[j, i] = 1 / (1 + max(degrees[i], degrees[j]))
    w += np.diag(1 - w.sum(axis=1))
    return KAPPA * w + (1 - KAPPA) * np.eye(NODES)


def polynomial(method, rounds):
    """What so many rounds of a method do, by the eigenvalues."""
    values, vectors = np.linalg.eigh(mixing())
    low, high = values[0], values[-2]
    if method == "plain":
        p = values**rounds
    elif method == "accelerated":
        root = np.sqrt(1 - max(abs(low), abs(high)) ** 2)
        eta, before, p = (1 - root) / (1 + root), np.ones(NODES), np.ones(NODES)
        for _ in range(rounds):
            before, p = p, (1 + eta) * values * p - eta * before
    else:
        middle, half, order = (low + high) / 2, (high - low) / 2, np.eye(rounds + 1)[rounds]
        p = chebval((values - middle) / half, order) / chebval((1 - middle) / half, order)
    return vectors * p @ vectors.T


def by_hand(name, method, local, rounds):
    """The parameters after every round, as the papers' formulas have them."""
    w, x, local, seen = mixing(), START.copy(), Local(local), []
    tracker, old, public = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    before, gathered, size = x, [], len(exact_factors(GRAPH))
    for t in range(rounds):
        g = gradient(x, t)
        if name == "d-psgd":
            x = w @ x - ALPHA * local(g, x)
        elif name == "tracking":
            tracker, old = w @ tracker + g - old, g
            x = w @ (x - ALPHA * local(tracker, x))
        elif name == "all-reduce":
            x = x - ALPHA * local(np.tile(g.mean(axis=0), (NODES, 1)), x)
        elif name == "d2":
            x, before, old = w @ (x - ALPHA * g if t == 0 else 2 * x - before - ALPHA * (g - old)), x, g
        elif name.startswith("choco"):
            half = x - ALPHA * local(g, x)
            sent = half - public
            if name == "choco-sign":
                sent = np.where(sent >= 0, 1, -1) * np.abs(sent).mean(axis=1, keepdims=True)
            else:
                sent = np.where(np.abs(sent) >= np.sort(np.abs(sent), axis=1)[:, -2:-1], sent, 0)
            public = public + sent
            x = half + GAMMA * (w @ public - public)
        elif name == "defacto":
            gathered = [*gathered, g.mean(axis=0)] if t % (2 * size) < size else gathered
            if t % (2 * size) == 2 * size - 1:
                x, gathered = x - ALPHA * local(np.tile(np.mean(gathered, axis=0), (NODES, 1)), x), []
        else:
            gathered = [*gathered, g]
            if len(gathered) == 3:
                p, new = polynomial(method, 3), np.mean(gathered, axis=0)
                mixed = p @ tracker
                x, tracker, old, gathered = p @ x - ALPHA * local(mixed, x), mixed + new - old, new, []
        seen.append(x)
    return np.array(seen)


@pytest.mark.parametrize("name", ROWS)
def test_a_run_is_that_by_hand(name):
    """The wide leaf to many digits, unless a norm or a scale of the whole vector reads the narrow one as well."""
    make, rows = ROWS[name]
    makers = [make(Gossip(GRAPH, method=method, kappa=KAPPA), local=LOCALS[local]) for method, local, _ in rows]
    found = jax.jit(lambda: [run(one, rounds) for one, (_, _, rounds) in zip(makers, rows, strict=True)])()
    for got, (method, local, rounds) in zip(found, rows, strict=True):
        wanted = by_hand(name, method, local, rounds)
        assert (got["a"].dtype, got["b"].dtype) == (jnp.float32, jnp.float64)
        shared = local == "clip" or name == "choco-sign"
        told = f"{method}, {local}"
        assert_allclose(got["a"], wanted[..., :3], atol=2e-5, err_msg=told)
        assert_allclose(got["b"], wanted[..., 3], atol=2e-6 if shared else 1e-11, err_msg=told)
