"""MiniGrid, ALE and MuJoCo over the bridge, and DreamerV2 in Gymnasium; skipped where the extra is not installed."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate.loops import gif_of
from laureate.problems.atari import Montezuma

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium (extra `control`) is not installed")
MODES = gymnasium.vector.AutoresetMode


def minigrid(**options):
    """A room of 3 × 3 cells whose observations are dictionaries."""
    pytest.importorskip("minigrid", reason="MiniGrid (extra `control`) is not installed")
    return gymnasium.make("MiniGrid-Empty-5x5-v0", **options)


def console(limit=4):
    pytest.importorskip("ale_py", reason="ale-py (extra `control`) is not installed")
    return Montezuma(limit).make()


def mujoco(**options):
    pytest.importorskip("mujoco", reason="MuJoCo (extra `control`) is not installed")
    return gymnasium.make("InvertedPendulum-v5", **options)


def bridged(make, num_environments=2, **more):
    make().close()  # skips where it is not installed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return c.GymnasiumEnvironments(make, num_environments, **more)


@pytest.mark.parametrize(
    ("make", "part", "seen", "law"),
    [
        (minigrid, "image", (7, 7, 3), c.Categorical(7)),
        (console, "", (4, 42, 40), c.Categorical(18)),
        (mujoco, "", (4,), c.Gaussian(1)),
    ],
)
def test_simulators_go_over_the_bridge(make, part, seen, law):
    environments = bridged(make, part=part)
    assert environments.reset(0).shape == (2, *seen)
    assert c.law_of(environments.action_space) == law
    discrete = isinstance(law, c.Categorical)
    *_, reached = (environments.step(np.zeros(2, int) if discrete else np.zeros((2, 1))) for _ in range(5))
    assert reached.following.shape == (2, *seen)
    assert reached.following.dtype == np.dtype(environments.observation_space.dtype)  # pyright: ignore[reportAttributeAccessIssue]
    assert np.isfinite(reached.reward).all()


# --- what ends an episode ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["DISABLED", "SAME_STEP"])
def test_minigrid_tells_its_goal_from_its_time_limit(mode):
    """One walks to the goal in five steps, the other turns around until the limit of seven is met."""
    minigrid().close()
    vector = gymnasium.vector.SyncVectorEnv([lambda: minigrid(max_steps=7)] * 2, autoreset_mode=MODES[mode])
    environments = c.GymnasiumEnvironments(vector, part="image")
    first = environments.reset(0)
    way, rows = [2, 2, 1, 2, 2, 2, 2], []
    for action in way:
        rows.append(environments.step(np.array([action, 0])))
    terminated, truncated = (np.array([getattr(row, name) for row in rows]) for name in ("terminated", "truncated"))
    np.testing.assert_array_equal(np.argwhere(terminated), [[4, 0]])
    np.testing.assert_array_equal(np.argwhere(truncated), [[6, 1]])
    assert rows[4].reward[0] > 0.3
    # What was reached at the goal is not what is acted in next: that is the beginning of another episode.
    np.testing.assert_array_equal(rows[4].observation[0], first[0])
    assert (rows[4].following[0] != first[0]).any()
    np.testing.assert_array_equal(rows[5].following[0], rows[0].following[0])
    np.testing.assert_array_equal(rows[6].observation[1], first[1])


def test_a_dictionary_without_a_part_names_its_arrays():
    minigrid().close()
    with pytest.raises(ValueError, match="part must be one of the arrays 'image'"):
        c.GymnasiumEnvironments(minigrid)


def test_the_console_is_cut_at_its_limit_and_begins_anew():
    environments = bridged(console)
    first = environments.reset(0)
    rows = [environments.step(np.zeros(2, int)) for _ in range(9)]
    ends = np.array([row.truncated for row in rows])
    np.testing.assert_array_equal(np.flatnonzero(ends.any(1)), [3, 7])
    assert not np.array([row.terminated for row in rows]).any()
    assert rows[0].following.dtype == np.uint8
    for at in (3, 7):  # four times the first frame, as after the first reset, and not the last four frames
        np.testing.assert_array_equal(rows[at].observation[:, 0], rows[at].observation[:, -1])
        assert (rows[at].following != rows[at].observation).any()
    np.testing.assert_array_equal(first[:, 0], first[:, -1])
    games = environments.vector.envs  # pyright: ignore[reportAttributeAccessIssue]
    assert [len(game.get_wrapper_attr("rooms")) for game in games] == [9, 9]
    assert {room for game in games for room in game.get_wrapper_attr("rooms")} == {1}, "the first room is number 1"
    environments.close()


def test_a_pole_that_falls_terminates_and_one_that_is_held_is_cut():
    environments = bridged(lambda: mujoco(max_episode_steps=12), 2)
    environments.reset(0)
    rows = []
    seen = environments.reset(0)
    for _ in range(12):
        held = 3.0 * seen[1, 1] + 0.5 * seen[1, 3] + 0.3 * seen[1, 0]
        rows.append(environments.step(np.array([[30.0], [3 * held]])))  # beyond ±3 it is clipped
        seen = rows[-1].observation
    terminated = np.array([row.terminated for row in rows])
    truncated = np.array([row.truncated for row in rows])
    fallen = np.flatnonzero(terminated[:, 0])
    assert len(fallen) >= 1
    assert not terminated[:, 1].any()
    np.testing.assert_array_equal(np.flatnonzero(truncated[:, 1]), [11])
    for at in fallen:
        assert np.abs(rows[at].following[0, 1]) > 0.2, "the pole lies"
        assert np.abs(rows[at].observation[0, 1]) < 0.02, "another one stands"


# --- learners ---------------------------------------------------------------------------------------------------------


class Flat(eqx.Module):
    """A network of the pixels in a row."""

    network: c.ActorCritic

    def __call__(self, picture):
        return self.network(jnp.ravel(picture).astype(jnp.float32) / 10)


def test_no_value_crosses_a_reset_and_a_gaussian_policy_trains_in_mujoco():
    environments = bridged(lambda: mujoco(max_episode_steps=6), 2)
    network = c.make_actor_critic(jax.random.key(0), 4, 2, num_heads=1, width=8)
    ppo = c.PPO(network, c.law_of(environments.action_space), gamma=0.9)
    training = c.GymnasiumTraining(environments, c.BonusPPO(ppo, num_minibatches=1), num_steps=16, num_warmup=0)
    state = training.init(jax.random.key(1))
    rollout, returns = training.collect(jax.random.key(2), state)
    after = np.concatenate([np.asarray(rollout.observation)[1:], np.asarray(rollout.last)[None]])
    ended, terminated = np.asarray(rollout.ended), np.asarray(rollout.terminated)
    crossed = (np.asarray(rollout.following) != after).any(-1)
    np.testing.assert_array_equal(crossed, ended)
    assert (ended & ~terminated).any(), "a limit was met"
    assert len(returns) == ended.sum()
    assert (np.abs(after[ended]) < 0.011).all(), "MuJoCo begins within ±0.01 of upright"
    _, told = training.run(jax.random.key(3), 2)
    np.testing.assert_array_equal(told.status, 0)
    assert np.isfinite(told.learner.reward).all()


def test_a_bonus_trains_on_pictures_of_minigrid():
    environments = bridged(lambda: minigrid(max_steps=8), 2, part="image")
    network = Flat(c.make_actor_critic(jax.random.key(0), 147, 7, width=8))
    ppo = c.PPO(network, c.law_of(environments.action_space), gamma=(0.99, 0.9), episodic=(1, 0))
    look = lambda picture: jnp.ravel(picture).astype(jnp.float32)  # noqa: E731
    bonus = c.make_rnd(jax.random.key(1), 147, width=8)
    learner = c.BonusPPO(ppo, bonus, num_minibatches=1, view=look)
    training = c.GymnasiumTraining(environments, learner, num_steps=12)
    state, told = training.run(jax.random.key(2), 2)
    np.testing.assert_array_equal(told.status, 0)
    assert (np.asarray(told.learner.bonus) > 0).all()
    policy, _ = c.player(learner, state)
    film = c.record_gymnasium(jax.random.key(3), minigrid, policy, 8, part="image", max_steps=8)
    assert len(gif_of(film.frames)) > 1000
    assert film.truncated or film.terminated


class Counting(gymnasium.Env):
    """Three steps an episode, with rewards 1, 2 and 3; the second of two copies is cut after two by a limit."""

    observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
    action_space = gymnasium.spaces.Box(np.float32([-1, 0]), np.float32([1, 6]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.clock = 0
        return np.float32([0, -1]), {}

    def step(self, action):
        assert self.action_space.contains(np.float32(action))
        self.clock += 1
        return np.float32([self.clock, action[1]]), float(self.clock), self.clock == 3, False, {}


@pytest.fixture(scope="module")
def dreaming():
    """A dreamer with two numbers as actions in two copies, one of which has a time limit of two steps."""
    limits = iter([10, 2])
    copies = [lambda: gymnasium.wrappers.TimeLimit(Counting(), next(limits))] * 2
    vector = gymnasium.vector.SyncVectorEnv(copies, autoreset_mode=MODES.NEXT_STEP)
    sizes = {"latent": c.OneHot(2, 2), "memory": 4, "width": 4, "horizon": 2, "mix": 0.0}
    learner = c.make_dreamer(jax.random.key(0), (2,), c.TruncatedNormal(2), **sizes)
    environments = c.GymnasiumEnvironments(vector, late=True)
    return c.GymnasiumDreamerTraining(environments, learner, c.Replay(64, 4), num_steps=6, batch=2)


def test_a_dreamer_remembers_gymnasiums_ends_and_beginnings(dreaming):
    state = dreaming.init(jax.random.key(1))
    state, returns = dreaming.collect(jax.random.key(2), state)
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[: int(state.replay.count)], state.replay.rows)
    clock = np.array([[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0], [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]]).T
    np.testing.assert_array_equal(rows.observation[..., 0], clock)
    np.testing.assert_array_equal(rows.first, clock == 0)
    np.testing.assert_array_equal(rows.terminal, clock == 3)  # a limit is no end of the world
    np.testing.assert_array_equal(rows.reward, clock)
    assert (rows.action[clock == 0] == 0).all()
    # The second number of the action, stretched from [-1, 1] to [0, 6], is what the next observation shows.
    np.testing.assert_allclose(rows.observation[..., 1][clock > 0], 3 * (rows.action[..., 1][clock > 0] + 1), atol=1e-5)
    assert sorted(returns) == [3.0, 3.0, 6.0, 6.0]


def test_a_dreamer_learns_in_gymnasium_and_goes_on(dreaming, tmp_path):
    key, told = jax.random.key(3), []
    _, first = dreaming.run(key, 2, checkpoint=tmp_path / "run.npz")
    state, rows = dreaming.run(key, 3, checkpoint=tmp_path / "run.npz", progress=told.append)
    np.testing.assert_array_equal(rows.learner.loss[:2], first.learner.loss)
    assert rows.cost.tolist() == [12] * 3
    np.testing.assert_array_equal(rows.status, 0)
    assert told[-1].done == 3
    # Warm-up and three updates of six steps, a beginning, and another where it went on.
    assert int(state.replay.count) == 1 + 6 + 3 * 6 + 1
    film = c.player(dreaming, state)
    action, _ = eqx.filter_jit(film[0])(key, jnp.zeros(2), film[1])
    assert Counting.action_space.contains(np.float32(action))


def test_a_dreamer_wants_steps_for_beginnings():
    learner = c.make_dreamer(jax.random.key(0), (2,), c.TruncatedNormal(2), latent=c.OneHot(2, 2), memory=4, width=4)
    with pytest.raises(ValueError, match=r"environments.late must be True.*late=True"):
        c.GymnasiumDreamerTraining(c.GymnasiumEnvironments(Counting, 2), learner, c.Replay(64, 4))
    now = gymnasium.vector.SyncVectorEnv([Counting], autoreset_mode=MODES.SAME_STEP)
    with pytest.raises(ValueError, match=r"autoreset_mode must be NEXT_STEP"):
        c.GymnasiumEnvironments(now, late=True)
