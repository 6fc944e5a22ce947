"""Plain NumPy versions of the estimators, written from the equations, and the small systems they are tried on.

Pairs are the first axis everywhere. Nothing here is shared with the package but the noise, which is given.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from laureate.gradients.noise import Shard, draw_noise, pair_keys

QUICK = {"xla_backend_optimization_level": 0}  # most of a test's time is compiling

A = np.array([[0.9, 0.2], [-0.1, 0.8]])
B = np.array([[1.0, 0.3], [-0.2, 0.7]])
START = np.array([1.0, -0.5])
Q = np.diag([1.0, 0.5])
THETA = np.array([0.5, -0.2])


class Tank(eqx.Module):
    """s ← A s + B θ, L = ½ sᵀ Q s + offset; the first state is START + learned·θ. ``ends``: it says done at step T."""

    learned: Any = eqx.field(default=0.0, converter=np.asarray)
    offset: Any = eqx.field(default=0.0, converter=np.asarray)
    scale: Any = eqx.field(default=1.0, converter=np.asarray)
    ends: int = eqx.field(static=True, default=0)

    def init(self, key, theta):
        return jnp.asarray(START, theta.dtype) + self.learned * theta, jnp.zeros((), jnp.int32)

    def step(self, key, theta, state) -> Any:
        s, t = state
        s = jnp.asarray(A, s.dtype) @ s + jnp.asarray(B, s.dtype) @ theta
        loss = self.scale * (0.5 * s @ jnp.asarray(Q, s.dtype) @ s) + self.offset
        return ((s, t + 1), loss, t + 1 >= self.ends) if self.ends else ((s, t + 1), loss)


def tank_step(theta, s):
    """The same for all pairs: theta [N, 2], s [N, 2]."""
    s = s @ A.T + theta @ B.T
    return s, 0.5 * (s @ Q * s).sum(axis=1)


def tank_gradient(horizon, theta=THETA, learned=0.0, last=False):
    """The exact gradient of Σ_t L_t (or of L_T), by carrying ds/dθ along."""
    s, slope, total = START + learned * theta, learned * np.eye(2), np.zeros(2)
    for _ in range(horizon):
        s, slope = A @ s + B @ theta, A @ slope + B
        total = (0.0 if last else total) + slope.T @ Q @ s
    return total


def worker_by_truncation(number, truncation, horizon, telescope, learned=0.0, carried=True):
    """One worker's gradients, mean levels and ended episodes of ``number`` truncations, resets inside them included.

    carried: whether ds/dθ is carried from truncation to truncation (RTRL) or the state they start from is a constant.
    """
    t, gradients, levels, ended = horizon, [], [], []
    s, slope, before = np.zeros(2), np.zeros((2, 2)), np.zeros(2)
    for _ in range(number):
        gradient, level, done = np.zeros(2), 0.0, 0
        if not carried:
            slope, before = np.zeros((2, 2)), np.zeros(2)
        for _ in range(truncation):
            if t == horizon:
                s, slope, before, t = START + learned * THETA, learned * np.eye(2), np.zeros(2), 0
            s, slope, t = A @ s + B @ THETA, A @ slope + B, t + 1
            now = slope.T @ Q @ s  # dL_t/dθ
            gradient, before = gradient + now - (before if telescope else 0.0), now
            level, done = level + 0.5 * s @ Q @ s, done + (t == horizon)
        gradients.append(gradient)
        levels.append(level / truncation)
        ended.append(done)
    return np.array(gradients), levels, ended


def noise_of(key, num_pairs, theta, sigma, draw=0):
    """The noise ε an estimator draws in a step with this key: [N, P]."""
    shard = Shard(jnp.arange(num_pairs), None)
    return np.asarray(sigma * draw_noise(pair_keys(key, num_pairs, shard, draw), jnp.asarray(theta)))


def pes_by_truncation(noise, truncation, horizon, sigma, rule="right", learned=0.0):
    """PES as in section 2 of the method's notes, with resets inside truncations: per pair, [truncations, N, P].

    rule: "right"; or one of the ways to get it wrong: "zero" (ξ = 0 at any reset), "inclusive" (the last loss of an
    episode counted to the next), "late" (ε joins ξ after the weighting).
    """
    pairs = noise.shape[1]
    plus = minus = np.zeros((pairs, 2))
    xi, t, pending, estimates = np.zeros((pairs, 2)), 0, True, []
    for eps in noise:
        difference, done = np.zeros((truncation, pairs)), np.zeros(truncation, int)
        for k in range(truncation):
            if pending:
                plus, minus, t = START + learned * (THETA + eps), START + learned * (THETA - eps), 0
                plus, minus = np.broadcast_to(plus, eps.shape), np.broadcast_to(minus, eps.shape)
            plus, loss_plus = tank_step(THETA + eps, plus)
            minus, loss_minus = tank_step(THETA - eps, minus)
            difference[k], t = loss_plus - loss_minus, t + 1
            done[k] = pending = t == horizon
        old = xi if rule == "late" else xi + eps
        after = (np.cumsum(done) if rule == "inclusive" else np.cumsum(done) - done) > 0
        weight_old = (difference * ~after[:, None]).sum(0)
        weight_new = (difference * after[:, None]).sum(0)
        estimates.append((weight_old[:, None] * old + weight_new[:, None] * eps) / (2 * sigma**2))
        ran = not done[-1] and rule != "zero"  # whether the new episode has known this truncation's noise
        xi = xi + eps if not done.any() else eps if ran else np.zeros_like(eps)
    return np.array(estimates)


STEPS = 8


def steps(key, estimator, theta, number=STEPS):
    """``number`` steps with θ held still: the gradients, the states and the infos, each stacked."""

    def step(state, i):
        gradient, state, info = estimator.step(jax.random.fold_in(key, i), theta, state)
        return state, (gradient, state, info)

    return jax.lax.scan(step, estimator.init(key, theta), jnp.arange(number))[1]


compiled_steps = jax.jit(steps, static_argnums=3, compiler_options=QUICK)


def run_steps(estimator, theta, number, anew=False):
    """The first ``number`` of ``steps``: the gradients stacked, the last state, the infos stacked.

    Compiled once for estimators that differ in numbers only, and for any number of steps up to STEPS; ``anew`` after
    something was patched.
    """
    theta = jax.tree.map(jnp.asarray, theta)
    if anew:
        run = jax.jit(lambda key: steps(key, estimator, theta, number), compiler_options=QUICK)
        gradients, states, infos = jax.tree.map(np.asarray, run(jax.random.key(0)))
    else:
        stacked = compiled_steps(jax.random.key(0), estimator, theta, max(number, STEPS))
        gradients, states, infos = jax.tree.map(lambda leaf: np.asarray(leaf)[:number], stacked)
    return gradients, jax.tree.map(lambda leaf: leaf[-1], states), infos


def step_keys(number):
    """The keys ``run_steps`` uses."""
    return [jax.random.fold_in(jax.random.key(0), i) for i in range(number)]
