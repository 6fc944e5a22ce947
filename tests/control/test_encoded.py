"""An actor and critic on an encoder of one's own, against NumPy."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate._core import light_options

QUICK: Any = {"compiler_options": light_options(0)}
RNG = np.random.default_rng(0)
ENCODE, POLICY, VALUES = (RNG.normal(size=shape).astype(np.float32) for shape in ((4, 6), (3, 4), (2, 4)))
SEEN = RNG.normal(size=(2, 3)).astype(np.float32)


class Matrix(eqx.Module):
    """A linear map of an array of any shape, from a table."""

    matrix: jax.Array = eqx.field(converter=lambda table: jnp.asarray(table, jnp.float32))

    def __call__(self, x):
        return self.matrix @ jnp.ravel(x)


def elu(x):
    return np.where(x > 0, x, np.expm1(x))


def test_policy_and_values_are_of_the_encoded_observation_and_all_train_the_encoder():
    """Linear parts by hand: d output_i / d E = (row i of the head) ⊗ s."""
    network = c.EncodedActorCritic(Matrix(ENCODE), Matrix(POLICY), (Matrix(VALUES[:1]), Matrix(VALUES[1:])))
    both = eqx.filter_jit(lambda net: (net(SEEN), jax.jacrev(lambda n: jnp.concatenate(n(SEEN)))(net)), **QUICK)
    (logits, values), slope = both(network)
    features = ENCODE @ SEEN.ravel()
    np.testing.assert_allclose(logits, POLICY @ features, rtol=1e-4)
    np.testing.assert_allclose(values, VALUES @ features, rtol=1e-4)
    rows = np.concatenate([POLICY, VALUES])
    np.testing.assert_allclose(slope.encoder.matrix, rows[:, :, None] * SEEN.ravel(), rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def trained():
    """A network, and its weights after one and after two steps of PPO on one batch."""

    def run(key):
        network = c.make_encoded_actor_critic(key, Matrix(ENCODE), jnp.asarray(SEEN), 3, num_heads=2, width=5, depth=2)
        ppo = c.PPO(network, c.Categorical(3), gamma=(0.9, 0.8), episodic=(1, 0), learning_rate=0.1)
        row = jnp.ones(4)
        seen = jnp.stack([jnp.asarray(SEEN) * k for k in (1, -1, 2, 0.5)])
        batch = c.PPOBatch(seen, jnp.array([0, 1, 2, 1]), -1.1 * row, jnp.array([1.0, -1, 2, 0.5]), jnp.ones((4, 2)))
        once, info = ppo.step(batch, ppo.init())
        return network, network(jnp.asarray(SEEN)), once.parameters, ppo.step(batch, once)[0].parameters, info

    return eqx.filter_jit(run, **QUICK)(jax.random.key(0))


def test_heads_are_as_the_actor_of_dreamer_and_the_first_policy_is_uniform(trained):
    network, (logits, values), *_ = trained
    assert logits.tolist() == [0, 0, 0]
    assert values.tolist() == [0, 0]
    agent = eqx.filter_eval_shape(
        c.make_dreamer, jax.random.key(0), (6,), c.OneHot(1, 3), latent=c.OneHot(1, 2), memory=2, width=5
    )
    shapes = lambda head: [leaf.shape for leaf in jax.tree.leaves(head) if hasattr(leaf, "shape")]  # noqa: E731
    assert shapes(network.policy) == shapes(agent.actor)  # there the four features are [z, h]
    assert shapes(network.heads[0]) == shapes(network.heads[1]) == shapes(agent.critic)
    first, second = (np.asarray(layer.weight) for layer in network.policy.layers[:4:2])
    np.testing.assert_allclose(first.T @ first, np.eye(4), atol=1e-5)
    np.testing.assert_allclose(second.T @ second, np.eye(5), atol=1e-5)
    begun = [np.asarray(head.layers[at].weight) for head in (network.policy, *network.heads) for at in (0, 2)]
    assert len({layer.tobytes() for layer in begun}) == 6, "all are drawn apart"
    # The hidden layers by hand, up to the last, which is of zeros.
    hidden = eqx.filter_jit(eqx.nn.Sequential(network.policy.layers[:-1]), **QUICK)(jnp.asarray(ENCODE @ SEEN.ravel()))
    np.testing.assert_allclose(hidden, elu(second @ elu(first @ (ENCODE @ SEEN.ravel()))), rtol=1e-4, atol=1e-5)


def test_it_learns_end_to_end(trained):
    """Through last layers of zeros nothing reaches the encoder; from the second step on it moves."""
    network, _, once, twice, info = trained
    assert int(info.status) == 0
    np.testing.assert_array_equal(once.encoder.matrix, network.encoder.matrix)
    assert np.any(np.asarray(once.policy.layers[-1].weight) != 0)
    assert np.abs(np.asarray(twice.encoder.matrix - network.encoder.matrix)).max() > 1e-3


def test_images_go_through_the_encoder_of_a_world_model():
    def made(key):
        world = c.make_world_model(key, (64, 64, 3), 2, law=c.OneHot(2, 2), memory=2, width=2, depth=2)
        seen = jax.ShapeDtypeStruct((64, 64, 3), jnp.uint8)
        network = c.make_encoded_actor_critic(key, world.encoder, seen, 4, width=3, depth=1)
        return network, network(jnp.zeros(seen.shape, seen.dtype))

    network, (logits, values) = eqx.filter_eval_shape(made, jax.random.key(0))
    assert network.policy.layers[0].weight.shape == (3, 64)
    assert (logits.shape, values.shape) == ((4,), (1,))


@pytest.mark.parametrize(
    ("encoder", "more", "said"),
    [
        (lambda s: s, {}, r"encoder must be one that gives a vector; got \(2, 3\)\. Flatten what it gives"),
        (Matrix(ENCODE), {"depth": 0}, "make_encoded_actor_critic.depth must be >= 1; got 0"),
        (Matrix(ENCODE), {"num_heads": 0}, "make_encoded_actor_critic.num_heads must be >= 1; got 0"),
    ],
)
def test_bad_settings(encoder, more, said):
    with pytest.raises(ValueError, match=said):
        c.make_encoded_actor_critic(jax.random.key(0), encoder, SEEN, 2, **more)


def test_a_network_without_values_is_refused():
    with pytest.raises(ValueError, match=r"EncodedActorCritic\.heads must be at least one; got 0"):
        c.EncodedActorCritic(Matrix(ENCODE), Matrix(POLICY), ())
