"""PES against a full factorial of signs: with every pattern of ±σ once, its mean must be the gradient exactly.

For a loss linear in the parameters of all truncations, E[ξ_t L_t]/σ² needs only E[ε]=0 and E[εεᵀ]=σ²I, which the
2^{MP} sign patterns have to the last bit. A wrong sign, a shared inner state, noise that joins the sum too late, other
data for the two signs: each changes the mean here, with no Monte Carlo error to hide in.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.gradients import GPES, FullES, NoiseReuseES, PersistentES, TruncatedES, pairs

TRUNCATIONS, PARAMETERS, SIGMA, STEPS = 4, 2, 0.5, 2
PATTERNS = 2 ** (TRUNCATIONS * PARAMETERS)


class Memory(eqx.Module):
    """s' = s + C_t θ, L_t = w_t·s: every loss is linear in the parameters of all steps up to its own."""

    mix: jax.Array
    weights: jax.Array

    def init(self, key, theta):
        return {"s": jnp.zeros(3), "t": jnp.asarray(0)}

    def step(self, key, theta, state):
        s = state["s"] + self.mix[state["t"]] @ theta
        # Randomness that both signs must share: it cancels exactly in L⁺ − L⁻, and only then.
        shared = 100.0 * jax.random.normal(key)
        return {"s": s, "t": state["t"] + 1}, self.weights[state["t"]] @ s + shared


@pytest.fixture(scope="module")
def memory():
    draw = np.random.default_rng(0)
    horizon = TRUNCATIONS * STEPS
    mix, weights = draw.normal(size=(horizon, 3, 2)), draw.normal(size=(horizon, 3))
    return Memory(jnp.asarray(mix, jnp.float32), jnp.asarray(weights, jnp.float32))


@pytest.fixture
def signs(monkeypatch):
    """The noise of truncation t is the t-th group of bits of the pair's number: all patterns, each once."""
    bits = (np.arange(PATTERNS)[:, None] >> np.arange(TRUNCATIONS * PARAMETERS)) & 1
    table = jnp.asarray(2.0 * bits - 1.0, jnp.float32).reshape(PATTERNS, TRUNCATIONS, PARAMETERS)
    turn = {"t": 0}
    monkeypatch.setattr(pairs, "draw_noise", lambda *_: table[:, turn["t"]])
    return turn


def exact(memory):
    """∇_θ Σ_t w_t·s_t = Σ_t Σ_{τ≤t} C_τᵀ w_t."""
    return sum(
        np.asarray(memory.mix[: t + 1]).sum(0).T @ np.asarray(memory.weights[t]) for t in range(TRUNCATIONS * STEPS)
    )


def summed(estimator, signs, theta=None):
    """The estimates of one episode at frozen θ, added up."""
    theta = jnp.zeros(PARAMETERS) if theta is None else theta

    def update(state, t):
        signs["t"] = t
        gradient, state, _ = estimator.step(jax.random.fold_in(jax.random.key(2), t), theta, state)
        return state, gradient

    @jax.jit
    def episode():
        _, gradients = jax.lax.scan(update, estimator.init(jax.random.key(1), theta), jnp.arange(TRUNCATIONS))
        return gradients.sum(axis=0)

    return np.asarray(episode())


SETTINGS = {"num_pairs": PATTERNS, "truncation": STEPS, "horizon": TRUNCATIONS * STEPS, "sigma": SIGMA}


def test_pes_is_exact_over_all_sign_patterns(memory, signs):
    np.testing.assert_allclose(summed(PersistentES(memory, **SETTINGS), signs), exact(memory), rtol=2e-4)


def test_gpes_with_the_truncation_as_its_noise_steps_is_pes(memory, signs):
    estimator = GPES(memory, **SETTINGS, noise_steps=STEPS)
    np.testing.assert_allclose(summed(estimator, signs), exact(memory), rtol=2e-4)


def test_one_noise_an_episode_is_exact_too(memory, signs):
    np.testing.assert_allclose(summed(NoiseReuseES(memory, **SETTINGS), signs), exact(memory), rtol=2e-4)


def test_truncated_es_is_not(memory, signs):
    error = summed(TruncatedES(memory, **SETTINGS), signs) - exact(memory)
    assert np.linalg.norm(error) > 0.3 * np.linalg.norm(exact(memory))


@pytest.mark.parametrize("other", [FullES, TruncatedES])
def test_with_one_truncation_an_episode_all_are_antithetic_es(memory, other):
    whole = {"num_pairs": 8, "horizon": TRUNCATIONS * STEPS, "sigma": SIGMA}
    cut = {} if other is FullES else {"truncation": TRUNCATIONS * STEPS}
    theta, key = jnp.asarray([0.3, -0.2]), jax.random.key(5)
    pes = PersistentES(memory, truncation=TRUNCATIONS * STEPS, **whole)
    peer = other(memory, **cut, **whole)
    ours, theirs = (jax.jit(lambda e=e: e.step(key, theta, e.init(key, theta))[0])() for e in (pes, peer))
    np.testing.assert_array_equal(ours, theirs)


def test_a_constant_loss_has_no_gradient():
    class Constant:
        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state, 7.0 + jax.random.normal(key)

    estimator = PersistentES(Constant(), num_pairs=16, truncation=2, horizon=6, sigma=0.1)
    theta, step = jnp.ones(3), eqx.filter_jit(estimator.step)
    state = estimator.init(jax.random.key(0), theta)
    for t in range(4):
        gradient, state, _ = step(jax.random.key(t), theta, state)
        np.testing.assert_array_equal(gradient, 0.0)
