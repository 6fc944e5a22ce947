"""One very small problem of each kind, by the name of its discipline."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.decentralized import Topology, ring
from laureate.problems.environments import Chain


class Coins(eqx.Module):
    """Six coins that like to agree."""

    def __call__(self, x):
        s = 2 * x - 1
        return 0.3 * jnp.sum(s * jnp.roll(s, 1))

    def start(self, key):
        return jax.random.bernoulli(key, 0.5, (6,))


class Decay(eqx.Module):
    """A push that should balance a decay."""

    horizon: int = eqx.field(static=True, default=4)

    def theta0(self, key):
        return jnp.asarray(0.5) + 0.1 * jax.random.normal(key)

    def init(self, key, theta):
        return jnp.ones(())

    def step(self, key, theta, state):
        state = 0.9 * state + theta
        return state, state**2


class Targets(eqx.Module):
    """Four nodes, each pulled to a number of its own."""

    data: jax.Array
    graph: Topology = eqx.field(static=True)

    def theta0(self, key):
        return jnp.zeros(2)

    def gradient(self, key, params, data):
        return params - data + 0.1 * jax.random.normal(key, (2,))

    def loss(self, params):
        return jnp.mean((params[None, :] - self.data) ** 2)


class Rows(eqx.Module):
    """Two clusters of rows; a view jostles them."""

    images: jax.Array
    labels: jax.Array
    test_images: jax.Array
    test_labels: jax.Array
    dim: int = eqx.field(static=True, default=3)

    def model0(self, key):
        return eqx.nn.Linear(4, self.dim, key=key)

    def apply(self, model, batch):
        return jax.vmap(model)(batch)

    def features(self, model, examples):
        return jax.vmap(model)(examples)

    def views(self, key, number):
        keys = jax.random.split(key, 3)
        rows = self.images[jax.random.randint(keys[0], (number,), 0, len(self.labels))]
        return tuple(rows + 0.1 * jax.random.normal(k, rows.shape) for k in keys[1:])


class Heat(eqx.Module):
    """V(0, 0) = d T = 1 in two dimensions."""

    x0: jax.Array
    horizon: float = 0.5

    def drift(self, t, x):
        return jnp.zeros_like(x)

    def diffusion(self, t, x):
        return jnp.ones((), x.dtype)

    def driver(self, t, x, y, z):
        return 0.0 * y

    def terminal(self, x):
        return jnp.sum(x**2)

    def exact(self, t, x):
        return jnp.sum(x**2) + x.shape[0] * (self.horizon - t)


class Stripes(eqx.Module):
    """Images whose left or right half is brighter, and a linear reader of them."""

    images: jax.Array
    labels: jax.Array
    epsilon: float = eqx.field(static=True, default=0.2)

    def logits(self, images):
        left, right = images[:, :, :4].mean((1, 2, 3)), images[:, :, 4:].mean((1, 2, 3))
        return jnp.stack([left - right, right - left], axis=-1)


class Trained(eqx.Module):
    """A linear model that tells two clusters apart, and half the bytes that it has."""

    model: dict
    inputs: jax.Array
    labels: jax.Array
    size: int = eqx.field(static=True, default=80)

    def apply(self, model, inputs):
        return inputs @ model["weights"].T


class Pick(eqx.Module):
    """Rows with a mark at one of three places, which is to be picked."""

    inputs: jax.Array
    targets: jax.Array

    def theta0(self, key):
        return 0.1 * jax.random.normal(key, (3, 3))

    def logits(self, params, inputs):
        return inputs @ params

    def loss(self, params, z, inputs, targets):
        return (jnp.sum(z * inputs, axis=-1) - targets) ** 2


class Lines(eqx.Module):
    """Two lines through the same features."""

    rows: jax.Array

    def params0(self, key):
        return {"shared": 0.1 * jax.random.normal(key, (3, 2)), "own": jnp.ones(2)}

    def shared(self, path):
        return "shared" in path

    def batch(self, key):
        return jax.random.randint(key, (8,), 0, 40)

    def losses(self, params, batch):
        error = self.rows[batch] @ params["shared"] * params["own"] - self.rows[batch][:, :2] * jnp.array([1.0, 50.0])
        return jnp.mean(error**2, axis=0)

    def scores(self, params, part):
        return -self.losses(params, jnp.arange(40, 50) if part == "validation" else jnp.arange(50, 60))


def problem(kind):
    """The small problem of a discipline."""
    rng = np.random.default_rng(0)
    if kind == "sampling":
        return Coins()
    if kind == "gradients":
        return Decay()
    if kind == "categorical-gradients":
        marks = jax.nn.one_hot(jnp.arange(80) % 3, 3)
        return Pick(marks, jnp.ones(80))
    if kind == "decentralized":
        return Targets(jnp.asarray(rng.normal(size=(4, 2)), jnp.float32), ring(4))
    if kind == "representation":
        labels = rng.integers(2, size=60)
        rows = jnp.asarray(rng.normal(size=(60, 4)) + 3 * labels[:, None], jnp.float32)
        return Rows(rows[:40], jnp.asarray(labels[:40]), rows[40:], jnp.asarray(labels[40:]))
    if kind == "pde":
        return Heat(jnp.zeros(2))
    if kind == "robustness":
        labels = rng.integers(2, size=16)
        images = 0.5 + 0.1 * rng.normal(size=(16, 8, 8, 1))
        images[:, :, :4] += 0.15 * (1 - labels)[:, None, None, None]
        images[:, :, 4:] += 0.15 * labels[:, None, None, None]
        return Stripes(jnp.asarray(images.clip(0, 1), jnp.float32), jnp.asarray(labels))
    if kind == "recovery":
        dictionary = rng.normal(size=(6, 10)) / np.sqrt(6)
        codes = rng.normal(size=(32, 10)) * (rng.uniform(size=(32, 10)) < 0.2)
        return {
            "dictionary": jnp.asarray(dictionary, jnp.float32),
            "signals": jnp.asarray(codes @ dictionary.T + 0.01, jnp.float32),
        }
    if kind == "compression":
        labels = rng.integers(2, size=32)
        inputs = rng.normal(size=(32, 16)) + labels[:, None]
        weights = np.stack([-np.ones(16), np.ones(16)]) + 0.2 * rng.normal(size=(2, 16))
        model = {"weights": jnp.asarray(weights, jnp.float32)}
        return Trained(model, jnp.asarray(inputs, jnp.float32), jnp.asarray(labels))
    if kind == "selection":
        table = rng.normal(size=(120, 8))
        return {"X": table, "y": table[:, 0] + rng.normal(size=120), "q": 0.5}
    if kind == "prediction-sets":
        scores = 2 * rng.normal(size=(1000, 6))
        return {"scores": scores, "labels": (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), "alpha": 0.2}
    if kind == "calibration":
        first = rng.uniform(0.5, 1, 240)
        rows = np.stack([first, 1 - first], axis=1).astype(np.float32)
        return {"probabilities": rows, "labels": (rng.uniform(size=240) > first**2).astype(int)}
    if kind == "multitask":
        return Lines(jnp.asarray(rng.normal(size=(60, 3)), jnp.float32))
    if kind == "generative":
        x = rng.uniform(size=(40, 1))
        return {"x": x, "y": np.where(rng.uniform(size=(40, 1)) < 0.5, x, -x)}
    if kind == "simulators":
        still = rng.normal(size=(8, 1, 4, 1))
        frames = still * 0.8 ** np.arange(6)[None, :, None, None]
        return {
            "positions": np.eye(4)[:, :2] + np.arange(4)[:, None],
            "cells": [[0, 1, 2], [1, 2, 3]],
            "states": frames,
        }
    if kind == "imbalance":
        labels = np.repeat([0, 1], [80, 16])
        return {"features": rng.normal(size=(96, 2)) + 2 * labels[:, None], "labels": labels}
    if kind == "active":
        scores = rng.uniform(0.5, 1, size=100)
        return {"losses": scores * rng.uniform(size=100), "scores": scores}
    if kind == "exploration":
        return Chain(4, 6)
    raise KeyError(kind)


# A budget with which an entrant can make a few steps.
BUDGETS = {
    "sampling": 4000,
    "gradients": 2000,
    "categorical-gradients": 4000,
    "decentralized": 20000,
    "representation": 4000,
    "pde": 16000,
    "robustness": 20,
    "recovery": 8,
    "compression": 80,
    "selection": 1,
    "prediction-sets": 250,
    "calibration": 80,
    "generative": 500,
    "multitask": 64,
    "exploration": 8192,
    "simulators": 600,
    "imbalance": 2000,
    "active": 12,
}
# Of each, two that are quick to compile.
QUICK = {
    "sampling": "gibbs,discrete-langevin",
    "gradients": "pes,truncated-backprop",
    "categorical-gradients": "straight-through,zgr",
    "decentralized": "dpsgd,detag",
    "representation": "simclr,untrained",
    "pde": "monte-carlo,deep-bsde",
    "robustness": "fgsm,pgd",
    "recovery": "ista,alista",
    "compression": "scalar,product",
    "selection": "second-order,copula",
    "prediction-sets": "raps,lac",
    "calibration": "spline,constant",
    "generative": "regression,mixture-density",
    "multitask": "imtl-g,inverse-loss",
    "exploration": "rnd,ppo",
    "simulators": "one-hop,neighbours",
    "imbalance": "logit-adjusted,resampled",
    "active": "lure,random",
}
