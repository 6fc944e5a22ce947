"""Environments end when they say, and a sweep of the lattice draws from its own energy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems.energies import IsingLattice
from laureate.problems.environments import Chain, NoisyTV
from laureate.problems.seen_worlds import Pendulum
from laureate.problems.small_worlds import Room

LIMITED = {
    "chain": (Chain(4, limit=6), 0),
    "chain-deadly": (Chain(4, limit=6, deadly=True), 0),
    "television": (NoisyTV(2, pixels=2, limit=5), 4),
    "pendulum": (Pendulum(limit=3), jnp.zeros(1)),
    "room": (Room(3, limit=4), 0),
}


@pytest.mark.parametrize("name", LIMITED)
def test_an_episode_ends_after_its_limit_and_not_before(name):
    environment, still = LIMITED[name]

    @jax.jit
    def ends(key):
        def step(state, one):
            state, found = environment.step(one, state, still)
            return state, (found.terminated, found.truncated)

        return jax.lax.scan(step, environment.reset(key)[0], jax.random.split(key, environment.limit))[1]

    terminated, truncated = map(np.asarray, ends(jax.random.key(0)))
    expected = np.arange(environment.limit) == environment.limit - 1
    np.testing.assert_array_equal(terminated, expected & (name == "chain-deadly"))
    np.testing.assert_array_equal(truncated, expected & (name != "chain-deadly"))


def test_a_room_ends_at_its_goal_or_at_its_limit_and_never_by_both():
    """Every walk of as many steps as the limit, to a goal that some reach with the very last."""
    room = Room(2, limit=3, goal=3)
    walks = np.array(list(itertools.product(range(4), repeat=3)))

    @jax.jit
    @jax.vmap
    def walked(walk):
        key = jax.random.key(0)
        step = lambda state, action: room.step(key, state, action)  # noqa: E731
        return jax.lax.scan(step, room.reset(key)[0], walk)[1]

    found = jax.tree.map(np.asarray, walked(walks))
    for number, walk in enumerate(walks):
        place = np.zeros(2, int)
        for clock, action in enumerate(walk, 1):
            place = np.clip(place + [(0, 1), (0, -1), (1, 0), (-1, 0)][action], 0, 1)
            there, ended = place.tolist() == [1, 1], clock == 3
            seen, reward, terminated, truncated = (leaf[number, clock - 1] for leaf in found[:4])
            assert (seen.argmax(), terminated, truncated) == (place @ [2, 1], there, ended and not there)
            assert reward == pytest.approx(there - 1 / 3)
    assert found.terminated[:, 2].any()


def test_a_sweep_draws_every_site_from_the_energys_conditional():
    """First the even sites, then the odd ones: p(x_i = 1 | rest) = sigmoid(f(x with 1) − f(x with 0))."""
    lattice, key = IsingLattice(4, 0.3, 0.4), jax.random.key(1)
    x = np.random.default_rng(0).integers(0, 2, (4, 4))
    uniforms = np.asarray(jax.random.uniform(key, (4, 4)))

    def energy(x):
        s = 2.0 * x - 1
        return 0.6 * np.sum(s * (np.roll(s, 1, 0) + np.roll(s, 1, 1))) + 0.4 * s.sum()

    expected = x.copy()
    for colour in range(2):
        before = expected.copy()
        for i, j in np.argwhere(np.indices((4, 4)).sum(0) % 2 == colour):
            up, down = before.copy(), before.copy()
            up[i, j], down[i, j] = 1, 0
            expected[i, j] = uniforms[i, j] < 1 / (1 + np.exp(energy(down) - energy(up)))
    found = jax.jit(lattice.sweep)(key, jnp.asarray(x, bool))
    np.testing.assert_array_equal(found, expected)
    assert 0 < np.sum(expected != x) < 16
