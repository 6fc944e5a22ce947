"""Finite environments and tabular imitation against NumPy, and what theory says of AIRL."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.generative import (
    AdversarialImitation,
    AdversarialIRL,
    FiniteEnvironment,
    ShapedDiscriminator,
    ShapedEncoder,
    VariationalBottleneck,
    visits,
)
from laureate.generative.imitation import improved
from laureate.problems.mazes import Maze, Mazes

RNG = np.random.default_rng(1)
FOLLOWING = np.array([[0, 1, 2], [1, 3, 0], [3, 3, 1], [2, 0, 3]])
START = np.array([0.7, 0.3, 0.0, 0.0], np.float32)
GAMMA = 0.8
WORLD = FiniteEnvironment(jnp.asarray(FOLLOWING), jnp.asarray(START), jnp.eye(4), discount=GAMMA)
POLICY = RNG.dirichlet(np.ones(3), 4).astype(np.float32)
REWARD = RNG.normal(size=(4, 3)).astype(np.float32)
CHAIN = np.zeros((4, 4))
for s in range(4):
    for a in range(3):
        CHAIN[s, FOLLOWING[s, a]] += POLICY[s, a]


class Table(eqx.Module):
    """A number for each state."""

    numbers: jax.Array

    def __call__(self, x):
        return self.numbers @ x


@pytest.fixture(scope="module")
def solved():
    """All that is solved of the little world; one program."""
    shape = jnp.asarray([0.5, -1.0, 2.0, 0.3])
    shaped = jnp.asarray(REWARD) + GAMMA * shape[WORLD.following] - shape[:, None]
    halved = FiniteEnvironment(WORLD.following, WORLD.start, WORLD.features, discount=0.5)

    def every():
        soft = WORLD.solve(jnp.asarray(REWARD), temperature=1.0)
        log_soft = jnp.log(soft)
        return {
            "values": WORLD.values(jnp.asarray(POLICY), jnp.asarray(REWARD)),
            "state_values": WORLD.values(jnp.asarray(POLICY), jnp.asarray(REWARD[:, 0])),
            "visits": visits(WORLD, jnp.asarray(POLICY)),
            "soft": soft,
            "soft_shaped": WORLD.solve(shaped, temperature=1.0),
            "cold": WORLD.solve(jnp.asarray(REWARD), temperature=0.2),
            "best": WORLD.solve(jnp.asarray(REWARD)),
            "best_shaped": WORLD.solve(shaped),
            "half": [halved.solve(jnp.asarray(unit * REWARD)) for unit in (np.float32(1), np.float32(2) ** 103)],
            "stays": improved(WORLD, log_soft, jnp.asarray(REWARD), 1.0, 1.0),
            "own_logarithm": improved(WORLD, log_soft, log_soft, 1.0, 0.7),
            "moved": improved(WORLD, jnp.log(jnp.asarray(POLICY)), jnp.asarray(REWARD), 0.5, 0.25),
        }

    return jax.tree.map(np.asarray, jax.jit(every)())


def test_values_and_visits_are_sums_over_time(solved):
    values, state_values, law, visited = np.zeros(4), np.zeros(4), START.astype(float), np.zeros(4)
    mean = np.sum(POLICY * REWARD, axis=1)
    power = np.eye(4)
    for t in range(200):
        values += GAMMA**t * power @ mean
        state_values += GAMMA**t * power @ REWARD[:, 0]
        visited += (1 - GAMMA) * GAMMA**t * law
        power, law = power @ CHAIN, law @ CHAIN
    np.testing.assert_allclose(solved["values"], values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(solved["state_values"], state_values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(solved["visits"], visited, rtol=1e-4, atol=1e-6)


def test_the_soft_best_policy(solved):
    for name, temperature in (("soft", 1.0), ("cold", 0.2)):
        values, q = np.zeros(4), REWARD
        for _ in range(300):
            q = REWARD + GAMMA * values[FOLLOWING]
            values = temperature * np.log(np.sum(np.exp(q / temperature), axis=1))
        np.testing.assert_allclose(solved[name], np.exp((q - values[:, None]) / temperature), rtol=1e-3, atol=1e-5)
    # It is where the policy's own steps stand still.
    np.testing.assert_allclose(np.exp(solved["stays"]), solved["soft"], rtol=1e-4)
    # log π is a reward for which π itself is the soft best: AIRL's f at its optimum.
    np.testing.assert_allclose(np.exp(solved["own_logarithm"]), solved["soft"], rtol=1e-4)


def test_the_best_policy_by_enumeration(solved):
    worths = {}
    for actions in itertools.product(range(3), repeat=4):
        chain = np.eye(4)[[FOLLOWING[s, a] for s, a in enumerate(actions)]]
        reward = REWARD[np.arange(4), actions]
        worths[actions] = START @ np.linalg.solve(np.eye(4) - GAMMA * chain, reward)
    best = max(worths, key=lambda actions: worths[actions])
    reached = START @ np.eye(4)
    for _ in range(4):
        reached = reached + reached @ np.eye(4)[[FOLLOWING[s, a] for s, a in enumerate(best)]]
    for state in np.flatnonzero(reached):
        assert solved["best"][state].argmax() == best[state]


def test_shaping_leaves_policies_as_they_are(solved):
    np.testing.assert_allclose(solved["soft_shaped"], solved["soft"], rtol=1e-3)
    np.testing.assert_array_equal(solved["best_shaped"], solved["best"])


def test_the_best_policy_is_that_of_any_unit_of_the_reward(solved):
    """Also of one in which a soft maximum, however cold, leaves single precision; powers of two round nothing."""
    one, large = solved["half"]
    np.testing.assert_array_equal(one.sum(1), np.ones(4))
    np.testing.assert_array_equal(large, one)


def test_the_best_policy_is_a_policy_where_values_are_large():
    """Above 16 the last digit of single precision is more than a millionth: what ties may differ by grows with it."""
    rewards = 100 * np.random.default_rng(2).normal(size=(60, 4, 3)).astype(np.float32)
    solve = jax.jit(lambda reward: WORLD.solve(reward))
    policies = np.stack([solve(reward) for reward in rewards])
    np.testing.assert_allclose(policies.sum(2), 1)


def test_a_step_of_the_policy_by_hand(solved):
    bonus = REWARD - 0.5 * np.log(POLICY)
    values = np.linalg.solve(np.eye(4) - GAMMA * CHAIN, np.sum(POLICY * bonus, axis=1))
    q = REWARD + GAMMA * values[FOLLOWING]
    logits = 0.75 * np.log(POLICY) + 0.25 * q / 0.5
    expected = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    np.testing.assert_allclose(solved["moved"], expected, rtol=1e-3, atol=1e-4)


def test_airl_is_at_one_half_where_f_is_the_logarithm_of_the_policy():
    shaped = ShapedDiscriminator(lambda z: z[0], lambda z: z[1], 0.9)
    seen = jnp.asarray([[2.0, 0.0], [0.0, 0.7], [0.0, -0.4]])
    f = 2.0 + 0.9 * -0.4 - 0.7
    np.testing.assert_allclose(shaped(seen, jnp.asarray(-1.5)), f + 1.5, rtol=1e-6)
    np.testing.assert_allclose(jax.nn.sigmoid(shaped(seen, jnp.asarray(f))), 0.5, rtol=1e-6)


def test_the_parts_of_a_shaped_code_are_paid_for_together():
    reward, potential = lambda x: (x, 0 * x), lambda x: (2 * x, 0 * x - 1)
    encoder = ShapedEncoder(reward, potential)
    x = jnp.asarray(RNG.normal(size=(5, 3, 2)), jnp.float32)
    made = VariationalBottleneck(encoder)
    z, nats = made.see(None, encoder, x, made.init(), learner="generator")
    values = np.asarray(x)
    np.testing.assert_allclose(z, np.stack([values[:, 0], 2 * values[:, 1], 2 * values[:, 2]], axis=1), rtol=1e-6)
    of = lambda m, s: np.sum(-s + 0.5 * (np.exp(2 * s) + m**2) - 0.5, axis=-1)  # noqa: E731
    expected = of(values[:, 0], 0.0) + of(2 * values[:, 1], -1.0) + of(2 * values[:, 2], -1.0)
    np.testing.assert_allclose(nats, expected, rtol=1e-5)


TRUE = np.array([0.0, 1.0, -1.0, 2.0], np.float32)


@pytest.fixture(scope="module")
def learned():
    """AIRL with tables for g and h, on pairs as frequent as the expert's: one program."""
    expert = WORLD.solve(jnp.asarray(TRUE), temperature=1.0)
    law = (visits(WORLD, expert)[:, None] * expert).reshape(-1)
    rows = jnp.searchsorted(jnp.cumsum(law), (jnp.arange(2000) + 0.5) / 2000)
    demonstrated = jnp.stack([rows // 3, rows % 3], axis=1)
    shaped = ShapedDiscriminator(Table(jnp.zeros(4)), Table(jnp.zeros(4)), GAMMA)
    airl = AdversarialIRL(WORLD, shaped, policy_rate=0.3, learning_rate=0.02, batch=256)

    def every(key):
        one = lambda state, key: (airl.step(key, demonstrated, state)[0], None)  # noqa: E731
        state, _ = jax.lax.scan(one, airl.init(), jax.random.split(key, 800))
        after, _ = one(state, key)
        shaped = after.judge.parameters[0]
        return jnp.exp(state.log_policy), airl.reward(state), after.log_policy, shaped.reward, shaped.potential

    return [np.asarray(leaf) for leaf in jax.tree.leaves((*jax.jit(every)(jax.random.key(3)), expert))]


def stepped_from(policy, reward, temperature, rate):
    """The policy after one step towards the soft best one for a reward of states and actions."""
    chain = np.zeros((4, 4))
    for s in range(4):
        for a in range(3):
            chain[s, FOLLOWING[s, a]] += policy[s, a]
    bonus = np.sum(policy * (reward - temperature * np.log(policy)), axis=1)
    values = np.linalg.solve(np.eye(4) - GAMMA * chain, bonus)
    logits = (1 - rate) * np.log(policy) + rate * (reward + GAMMA * values[FOLLOWING]) / temperature
    return np.exp(logits) / np.sum(np.exp(logits), axis=1, keepdims=True)


def test_the_policy_answers_what_the_discriminator_has_just_learned(learned):
    """One more step of both: f is that of the discriminator after its step, not before."""
    policy, before, after, reward, potential, _ = learned
    assert np.ptp(reward - before) > 1e-3
    f = (reward - potential)[:, None] + GAMMA * potential[FOLLOWING]
    np.testing.assert_allclose(np.exp(after), stepped_from(policy.astype(float), f, 1.0, 0.3), rtol=5e-5)


def test_airl_finds_the_policy_and_the_reward_up_to_a_constant(learned):
    policy, reward, *_, expert = learned
    assert np.abs(policy - expert).max() < 0.06 < 0.2 < np.abs(1 / 3 - expert).max()
    np.testing.assert_allclose(reward - reward.mean(), TRUE - TRUE.mean(), atol=0.3)


def test_the_reward_of_imitation_and_what_it_learns_from():
    """r = softplus(l) of every state; D takes a step, then the policy one towards the best for the new D's reward."""
    table = Table(jnp.asarray([0.5, -1.0, 2.0, 0.0]))
    made = AdversarialImitation(WORLD, table, temperature=0.5, policy_rate=0.25, learning_rate=0.3, batch=4)
    run = jax.jit(lambda key: (made.step(key, jnp.eye(4)[1:3], made.init())[0], made.reward(made.init())))
    state, reward = run(jax.random.key(0))
    np.testing.assert_allclose(reward, np.log1p(np.exp(np.asarray(table.numbers))), rtol=1e-5)
    after = np.log1p(np.exp(np.asarray(state.judge.parameters[0].numbers)))
    assert np.abs(after - np.asarray(reward)).max() > 0.05
    policy = stepped_from(np.full((4, 3), 1 / 3), np.repeat(after[:, None], 3, axis=1), 0.5, 0.25)
    np.testing.assert_allclose(np.exp(state.log_policy), policy, rtol=1e-4)


# --- mazes ------------------------------------------------------------------------------------------------------------


def test_the_mirrored_maze_is_the_mirror_image():
    left, right = Maze(5, "left").tables(), Maze(5, "right").tables()
    swap = np.arange(25).reshape(5, 5)[:, ::-1].reshape(-1)
    flipped = [0, 2, 1, 3, 4]  # left and right steps change places
    mirrored = swap[np.asarray(left.following)[swap][:, flipped]]
    np.testing.assert_array_equal(right.following, mirrored)
    np.testing.assert_array_equal(np.asarray(right.reward)[swap], left.reward)
    # Nobody steps into a wall, nor comes through the middle but at the end.
    middle = np.asarray(left.following)[:10]
    assert set(middle.reshape(-1)) & set(range(10, 15)) == {10}


def test_a_demonstration_follows_its_policy_and_begins_anew():
    mazes = Mazes(5)
    tables = mazes.learned_in
    up = np.zeros((25, 5), np.float32)
    up[:, 4] = 1.0
    run = jax.jit(lambda key: mazes.demonstration(key, tables, jnp.asarray(up), 0.5, 400))
    pairs = np.asarray(run(jax.random.key(0)))
    assert (pairs[:, 1] == 4).all()
    follows = pairs[1:, 0] == np.asarray(tables.following)[pairs[:-1, 0], 4]
    starts = pairs[1:, 0] >= 20
    assert (follows | starts).all()
    share = np.mean(~follows)  # of those that begin anew, one in five begins where it would have been only by a wall
    assert 0.4 < share < 0.6


def test_airl_needs_its_own_discriminator():
    with pytest.raises(ValueError, match=r"AdversarialIRL.discriminator must be a ShapedDiscriminator"):
        AdversarialIRL(WORLD, lambda x: x)
