"""Whole training runs of a small classifier, and a car in a valley: unrolls whose first steps mislead."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from laureate._core import require
from laureate.problems.datasets import digits

__all__ = ["CarInValley", "TrainingRun"]

Weights = dict[str, Array]


class TrainingRun(eqx.Module):
    """A network of two layers is trained on scikit-learn's digits; θ says how, and L_t is how it does on others.

    kind: ``"layers"``: a learning rate and a momentum for each layer, θ = {log_rate [2], momentum [2]} (its logit).
        ``"schedule"``: one rate, exp((1 − t/T) θ_0 + (t/T) θ_1), momentum 0.9.
    objective: ``"loss"``: cross-entropy on 200 other images, at most ``worst`` = 10. ``"accuracy"``: the share
        classified wrongly, which no derivative sees. Weights that are not finite cost ``worst`` (10, or 2 for shares).
    horizon: T, >= 1. truncation: after how many steps a comparison updates θ. hidden: units. batch: images a step.

    >>> problem = TrainingRun(horizon=5)
    >>> theta = problem.theta0(jax.random.key(0))
    >>> state, loss = problem.step(jax.random.key(1), theta, problem.init(jax.random.key(2), theta))
    >>> bool(1.5 < loss < 4.0)
    True
    """

    images: Float[Array, "n pixels"]
    labels: Int[Array, " n"]
    others: Float[Array, "m pixels"]
    other_labels: Int[Array, " m"]
    kind: str = eqx.field(static=True)
    objective: str = eqx.field(static=True)
    horizon: int = eqx.field(static=True)
    truncation: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def __init__(
        self,
        kind: str = "layers",
        objective: str = "loss",
        horizon: int = 100,
        truncation: int = 10,
        hidden: int = 16,
        batch: int = 32,
    ):
        require("TrainingRun", "kind", "'layers' or 'schedule'", kind, lambda k: k in ("layers", "schedule"))
        require("TrainingRun", "objective", "'loss' or 'accuracy'", objective, lambda o: o in ("loss", "accuracy"))
        for name, value in (("horizon", horizon), ("truncation", truncation), ("hidden", hidden), ("batch", batch)):
            require("TrainingRun", name, ">= 1", value, lambda v: v >= 1)
        images, labels = digits()
        order = np.random.default_rng(0).permutation(len(labels))
        images = images.reshape(len(labels), -1)
        images = jnp.asarray((images - images.mean()) / images.std(), jnp.float32)
        labels = jnp.asarray(labels, jnp.int32)
        self.images, self.labels = images[order[200:]], labels[order[200:]]
        self.others, self.other_labels = images[order[:200]], labels[order[:200]]
        self.kind, self.objective, self.horizon = kind, objective, horizon
        self.truncation, self.hidden, self.batch = truncation, hidden, batch

    @property
    def worst(self) -> float:
        """What a step costs at most."""
        return 10.0 if self.objective == "loss" else 2.0

    def theta0(self, key: PRNGKeyArray) -> dict[str, Array]:
        """Rates between e^{−9} and 1 and momenta between 0.05 and 0.95, uniform in logarithm and logit."""
        draws = jax.random.uniform(key, (4,))
        theta = {"log_rate": -9.0 + 9.0 * draws[:2]}
        return theta | {"momentum": -3.0 + 6.0 * draws[2:]} if self.kind == "layers" else theta

    def init(self, key: PRNGKeyArray, theta: dict[str, Array]) -> tuple[Weights, Weights, Int[Array, ""]]:
        """Weights of variance 1 / inputs, no velocity, and the steps done."""
        del theta
        pixels = self.images.shape[1]
        shapes = {"first": (pixels, self.hidden), "last": (self.hidden, 10)}
        keys = dict(zip(shapes, jax.random.split(key), strict=True))
        weights = {name: jax.random.normal(keys[name], shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
        return weights, jax.tree.map(jnp.zeros_like, weights), jnp.zeros((), jnp.int32)

    def step(
        self, key: PRNGKeyArray, theta: dict[str, Array], state: tuple[Weights, Weights, Int[Array, ""]]
    ) -> tuple[tuple[Weights, Weights, Int[Array, ""]], Float[Array, ""]]:
        """One batch, one step of gradient descent with momentum, and the judgement of the other images."""
        weights, velocity, t = state
        chosen = (jax.random.uniform(key, (self.batch,)) * len(self.labels)).astype(jnp.int32)
        gradient = jax.grad(_entropy)(weights, self.images[chosen], self.labels[chosen])
        if self.kind == "layers":
            rates, momenta = jnp.exp(theta["log_rate"]), jax.nn.sigmoid(theta["momentum"])
        else:
            share = t.astype(jnp.float32) / self.horizon
            log_rate = (1 - share) * theta["log_rate"][0] + share * theta["log_rate"][1]
            rates, momenta = jnp.full(2, jnp.exp(log_rate)), jnp.full(2, 0.9)
        velocity = {
            name: momenta[i] * velocity[name] - rates[i] * gradient[name] for i, name in enumerate(("first", "last"))
        }
        weights = jax.tree.map(jnp.add, weights, velocity)
        return (weights, velocity, t + 1), self._judged(weights)

    def _judged(self, weights: Weights) -> Float[Array, ""]:
        if self.objective == "loss":
            found = _entropy(weights, self.others, self.other_labels)
        else:
            logits = _logits(weights, self.others)
            wrong = jnp.mean((jnp.argmax(logits, axis=1) != self.other_labels).astype(jnp.float32))
            found = jnp.where(jnp.isfinite(logits).all(), wrong, jnp.nan)
        return jnp.where(jnp.isfinite(found), jnp.minimum(found, self.worst), self.worst)


def _logits(weights: Weights, images: Array) -> Array:
    return jnp.tanh(images @ weights["first"]) @ weights["last"]


def _entropy(weights: Weights, images: Array, labels: Array) -> Float[Array, ""]:
    log_p = jax.nn.log_softmax(_logits(weights, images))
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


class CarInValley(eqx.Module):
    """A weak car must swing back before it climbs out: a linear rule of place and speed drives it (mountain car).

    v ← clip(v + 0.0015 u − 0.0025 cos 3x, ±0.07), x ← x + v, u = tanh(θ · (1, x + 0.5, 20 v)); L_t = 1 − sin 3x, two
    at the bottom of the valley and zero at the goal, x = 0.5, where it stays. Whoever looks a few steps ahead drives
    straight uphill and never arrives. The constants are those of Gymnasium's MountainCarContinuous.

    horizon: T, >= 1. truncation: after how many steps a comparison updates θ.

    >>> problem = CarInValley()
    >>> state, loss = problem.step(jax.random.key(0), jnp.zeros(3), (jnp.array(-0.5), jnp.array(0.0)))
    >>> bool(1.9 < loss <= 2.0)
    True
    """

    horizon: int = eqx.field(static=True, default=200)
    truncation: int = eqx.field(static=True, default=10)

    def __check_init__(self) -> None:
        require("CarInValley", "horizon", ">= 1", self.horizon, lambda t: t >= 1)
        require("CarInValley", "truncation", ">= 1", self.truncation, lambda k: k >= 1)

    def theta0(self, key: PRNGKeyArray) -> Float[Array, "3"]:
        """Nearly no force."""
        return 0.1 * jax.random.normal(key, (3,))

    def init(self, key: PRNGKeyArray, theta: Float[Array, "3"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """At rest near the bottom, x uniform in [−0.6, −0.4]."""
        del theta
        return jax.random.uniform(key, minval=-0.6, maxval=-0.4), jnp.zeros(())

    def step(
        self, key: PRNGKeyArray, theta: Float[Array, "3"], state: tuple[Float[Array, ""], Float[Array, ""]]
    ) -> tuple[tuple[Float[Array, ""], Float[Array, ""]], Float[Array, ""]]:
        """One step of time."""
        del key
        x, v = state
        force = jnp.tanh(theta[0] + theta[1] * (x + 0.5) + theta[2] * 20.0 * v)
        faster = jnp.clip(v + 0.0015 * force - 0.0025 * jnp.cos(3 * x), -0.07, 0.07)
        further = jnp.maximum(x + faster, -1.2)
        faster = jnp.where(further <= -1.2, 0.0, faster)  # the wall on the left
        there = x >= 0.5
        x, v = jnp.where(there, 0.5, jnp.minimum(further, 0.5)), jnp.where(there, 0.0, faster)
        return (x, v), 1.0 - jnp.sin(3 * x)
