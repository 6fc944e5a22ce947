"""One update of Persistent Evolution Strategies beside evosax's, driven by hand.

The inner problem is the training of a two-layer MLP by gradient descent; theta holds a log learning rate a weight (or
one for every layer). Both sides run the same inner problem on the same batches with as many particles.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from laureate.gradients import PersistentES
from laureate.lab.running.comparison import Comparison, Side

__all__ = ["COMPARISONS", "TrainMLP", "Work", "our_side", "their_side"]

SIGMA = 0.1
OUTER = optax.sgd(1e-3)


class Work(NamedTuple):
    """What is measured: particles/2, inner steps an update, hidden units, and what theta holds."""

    pairs: int = 1000
    steps: int = 10
    hidden: int = 16
    theta: str = "per weight"
    horizon: int = 100
    inputs: int = 8
    outputs: int = 4
    batch: int = 16


class TrainMLP(eqx.Module):
    """Gradient descent on a two-layer MLP; theta is the logarithm of the learning rates."""

    work: Work = eqx.field(static=True)

    def init(self, key, theta):
        """Random weights."""
        work = self.work
        first, second = jax.random.split(key)
        return {
            "a": jax.random.normal(first, (work.inputs, work.hidden)) / math.sqrt(work.inputs),
            "b": jnp.zeros(work.hidden),
            "c": jax.random.normal(second, (work.hidden, work.outputs)) / math.sqrt(work.hidden),
            "d": jnp.zeros(work.outputs),
        }

    def step(self, key, theta, weights, batch):
        """One step of gradient descent."""
        x, y = batch

        def loss(weights):
            hidden = jnp.tanh(x @ weights["a"] + weights["b"])
            return jnp.mean((hidden @ weights["c"] + weights["d"] - y) ** 2)

        value, slope = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g, rate: w - jnp.exp(rate) * g, weights, slope, theta), value

    def theta(self):
        """Where the learning rates begin."""
        weights = self.init(jax.random.key(0), None)
        shape = (lambda w: w.shape) if self.work.theta == "per weight" else (lambda w: ())
        return jax.tree.map(lambda w: jnp.full(shape(w), -3.0), weights)

    def batches(self, key):
        """Data for one update."""
        work = self.work
        x = jax.random.normal(key, (work.steps, work.batch, work.inputs))
        return x, jnp.sin(x[..., : work.outputs])


def our_side(work: Work):
    """(carry, update): one outer update with our estimator."""
    unroll = TrainMLP(work)
    theta = unroll.theta()
    estimator = PersistentES(unroll, num_pairs=work.pairs, truncation=work.steps, horizon=work.horizon, sigma=SIGMA)

    def update(key, carry, batches):
        theta, state, memory = carry
        gradient, state, info = estimator.step(key, theta, state, batches)
        updates, memory = OUTER.update(gradient, memory, theta)
        return (optax.apply_updates(theta, updates), state, memory), info.loss

    return (theta, estimator.init(jax.random.key(1), theta), OUTER.init(theta)), update


def their_side(work: Work):
    """The same with evosax: ask, unroll the particles, tell; the caller keeps and resets the inner states."""
    from evosax.algorithms import PersistentES as TheirPES  # pyright: ignore[reportMissingImports]

    unroll = TrainMLP(work)
    theta = unroll.theta()
    population = 2 * work.pairs
    peer = TheirPES(population, theta, optimizer=OUTER, std_schedule=optax.constant_schedule(SIGMA))
    params: Any = peer.default_params
    params = params.replace(T=work.horizon, K=work.steps)

    def start(key, particles):
        keys = jax.random.split(key, work.pairs)  # both signs of a pair begin alike
        return jax.vmap(unroll.init)(jnp.concatenate([keys, keys]), particles)

    def update(key, carry, batches):
        state, inner = carry
        ask_key, tell_key, reset_key = jax.random.split(key, 3)
        particles, state = peer.ask(ask_key, state, params)
        inner = jax.lax.cond(
            state.inner_step_counter == 0, lambda inner: start(reset_key, particles), lambda inner: inner, inner
        )

        def body(carry, batch):
            inner, total = carry
            inner, loss = jax.vmap(unroll.step, in_axes=(None, 0, 0, None))(key, particles, inner, batch)
            return (inner, total + loss), None

        (inner, fitness), _ = jax.lax.scan(body, (inner, jnp.zeros(population)), batches)
        state, _ = peer.tell(tell_key, particles, fitness, state, params)
        return (state, inner), fitness.mean()

    state = peer.init(jax.random.key(1), theta, params)
    particles, _ = peer.ask(jax.random.key(2), state, params)
    return (state, start(jax.random.key(2), particles)), update


def repeated(side: Callable[[Work], Any], work: Work) -> Side:
    """One update a repeat; the carry goes on from repeat to repeat."""
    carry, update = side(work)
    batches, program = TrainMLP(work).batches(jax.random.key(3)), jax.jit(update)
    turn = 0

    def run():
        nonlocal carry, turn
        turn += 1
        carry, loss = program(jax.random.key(turn), carry, batches)
        return carry, loss

    return Side(run)


COMPARISONS = (
    Comparison(
        work="one update: 1,000 pairs, 10 inner steps of an MLP of 212 weights, a learning rate a weight",
        peer="evosax PersistentES",
        package="evosax",
        ours=lambda: repeated(our_side, Work()),
        theirs=lambda: repeated(their_side, Work()),
    ),
)
