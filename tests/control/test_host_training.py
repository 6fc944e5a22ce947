"""Trainings on the host and in one program are the same training; no simulator has to be installed.

Of environments that are pure functions and of their like in NumPy, with learners that only count, all that is kept and
told must agree, and be what an oracle in NumPy says.
"""

import enum
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate import loops
from laureate.control.bridge import Reached
from laureate.testing import KeyRecorder

QUICK: Any = {"compiler_options": {"xla_backend_optimization_level": 0}}
NUM_STEPS, NUM_UPDATES = 7, 3
SPACES = {"action_space": loops.Discrete(2), "observation_space": loops.Box((2,))}


class Ladder(eqx.Module):
    """A step climbs one rung or two, for the square of the rung; from the fourth on it is over, three steps are all."""

    action_space: Any = SPACES["action_space"]
    observation_space: Any = SPACES["observation_space"]

    def reset(self, key):
        jax.random.uniform(key)
        return jnp.zeros(2), jnp.zeros(2)

    def step(self, key, state, action):
        jax.random.uniform(key)
        state = state + jnp.stack([1.0 + action, 1.0])
        over = state[0] >= 4
        return state, loops.Timestep(state, state[0] ** 2, over, (state[1] >= 3) & ~over)


class Ladders:
    """Two of them as ``GymnasiumEnvironments`` would show them; all that it is seeded with is written down.

    late: what has ended begins anew with its next step, which shows a reward and an end that do not count.
    """

    num_environments = 2

    def __init__(self, late):
        self.late, self.seeds = late, []
        self.action_space, self.observation_space = SPACES.values()

    @property
    def settings(self):
        return {"name": "ladders"}

    def reset(self, seed=None):
        self.seeds.append(seed)
        self.state, self.over = np.zeros((2, 2), np.float32), np.zeros(2, bool)
        return self.state.copy()

    def step(self, action):
        climbed = self.state + np.stack([1 + np.asarray(action), np.ones(2)], axis=1)
        begun = self.over if self.late else np.zeros(2, bool)
        following = np.where(begun[:, None], 0, climbed).astype(np.float32)
        terminated = (following[:, 0] >= 4) | begun
        self.over = (terminated | (following[:, 1] >= 3)) & ~begun
        self.state = following if self.late else np.where(self.over[:, None], 0, following).astype(np.float32)
        reward = np.where(begun, 99, following[:, 0] ** 2).astype(np.float32)
        return Reached(self.state.copy(), following, reward, terminated, self.over & ~terminated)


def climbed(late):
    """Ends and returns of both rows at every step, and what is told of each update after a warm-up of one.

    The first row takes single rungs until time is up, 1 + 4 + 9, the second two at once until it is over, 4 + 16.
    """
    time = np.arange(1, (1 + NUM_UPDATES) * NUM_STEPS + 1)
    length, total = np.array([3, 2]), np.array([14, 20])
    ends = time[:, None] % (length + late) == (length if late else 0)
    parts = ends.reshape(1 + NUM_UPDATES, NUM_STEPS, 2)[1:]
    episodes = parts.sum((1, 2))
    return episodes, (parts * total).sum((1, 2)) / episodes


# --- dreamers ---------------------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    action: jax.Array


class Told(NamedTuple):
    loss: jax.Array
    status: jax.Array


class Sleeper(eqx.Module):
    """Every row has an action of its own; counts its gradient steps, of which the first, third, fifth go wrong."""

    law: c.OneHot = c.OneHot(1, 2)
    world: Any = c.WorldModel(None, None, None, None, None)  # pyright: ignore[reportArgumentType]

    def init(self):
        return jnp.asarray(0)

    def remember(self, number):
        return Memory(jnp.zeros((number, 2)))

    def act(self, key, observation, first, memory, state):
        jax.random.uniform(key)
        return Memory(jnp.eye(2)[: len(observation)])

    def step(self, key, batch, state):
        jax.random.uniform(key)
        return state + 1, Told(state + 1.0, 1 - state % 2)


REPLAY, SIZES = c.Replay(40, 4), {"num_steps": NUM_STEPS, "num_gradients": 2, "batch": 3}


@pytest.fixture(scope="module")
def dreamed():
    """A run in one program, in which no key is used twice."""
    training = c.DreamerTraining(Ladder(), Sleeper(), REPLAY, 2, **SIZES)  # pyright: ignore[reportArgumentType]

    @eqx.filter_jit(**QUICK)
    def run(key):
        outcome = training.run(key, NUM_UPDATES)
        return outcome.state, outcome.seen

    with KeyRecorder() as recorder:
        found = jax.block_until_ready(run(jax.random.key(0)))
        assert not recorder.reused()
    return found


def test_a_dreamer_tells_its_episodes_its_last_gradient_and_its_worst(dreamed):
    state, told = dreamed
    episodes, mean = climbed(late=True)
    np.testing.assert_array_equal(told.episodes, episodes)
    np.testing.assert_allclose(told.episode_return, mean, rtol=1e-6)
    np.testing.assert_array_equal(told.learner.loss, [2, 4, 6])
    np.testing.assert_array_equal(told.learner.status, 0)
    np.testing.assert_array_equal(told.status, 1)
    np.testing.assert_array_equal(told.cost, 2 * NUM_STEPS)
    assert (int(state.learner), int(state.replay.count)) == (6, 1 + 4 * NUM_STEPS)
    time = np.arange(29)
    rung = np.stack([time % 4, 2 * (time % 3)], axis=1)
    rows = jax.tree.map(lambda leaf: np.asarray(leaf)[:29], state.replay.rows)
    np.testing.assert_array_equal(rows.observation[..., 0], rung)
    np.testing.assert_array_equal(rows.reward, rung**2)
    np.testing.assert_array_equal(rows.terminal, rung >= 4)
    np.testing.assert_array_equal(rows.first, rung == 0)
    np.testing.assert_array_equal(rows.action, np.eye(2)[None] * (rung > 0)[..., None])


def test_an_episode_that_a_dreamer_plays_begins_once():
    """Its policy is handed what was remembered, and told of a beginning with the first observation alone."""

    class Listener(Sleeper):
        def act(self, key, observation, first, memory, state):
            return Memory(jnp.stack([memory.action[:, 0] + first, memory.action[:, 1] + 1], axis=1))

    training = c.DreamerTraining(Ladder(), Listener(), REPLAY, 2, **SIZES)  # pyright: ignore[reportArgumentType]
    state = c.DreamerTrainingState(jnp.asarray(0), *[None] * 6)  # pyright: ignore[reportArgumentType]
    policy, memory = c.player(training, state)

    @eqx.filter_jit(**QUICK)
    def played(memory):
        for _ in range(3):
            _, memory = policy(jax.random.key(0), jnp.zeros(2), memory)
        return memory[0].action

    np.testing.assert_array_equal(played(memory), [[1, 3]])


def test_a_dreamer_on_the_host_lives_and_tells_the_same_and_goes_on(dreamed, tmp_path):
    worlds, told = Ladders(late=True), []
    training = c.GymnasiumDreamerTraining(worlds, Sleeper(), REPLAY, **SIZES)  # pyright: ignore[reportArgumentType]
    state, infos = training.run(jax.random.key(0), NUM_UPDATES)
    pairs = ((state.learner, dreamed[0].learner), (state.replay, dreamed[0].replay), (infos, dreamed[1]))
    for one, other in zip(*(jax.tree.leaves(part) for part in zip(*pairs, strict=True)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    file = tmp_path / "run.npz"
    training.run(jax.random.key(0), 2, checkpoint=file)
    resumed = training.run(jax.random.key(0), 3, checkpoint=file, progress=told.append)
    assert worlds.seeds == [0, 0, 0, 2], "two updates were done when it went on"
    assert told[-1].done == 3
    np.testing.assert_array_equal(resumed[1].learner.loss, infos.learner.loss)
    # Warm-up and three updates, a beginning, and another where it went on.
    assert int(resumed[0].replay.count) == 2 + 4 * NUM_STEPS


# --- policies ---------------------------------------------------------------------------------------------------------


class Idle(eqx.Module):
    """A learner that learns nothing; its state is the sum of all that it was shown, each array weighed differently."""

    bonus: bool = True
    num_minibatches: int = 1

    def init(self, observation, num_environments):
        return c.BonusPPOState(jnp.sum(observation) + 0.0 * num_environments, None, None)  # pyright: ignore[reportArgumentType]

    def act(self, key, observation, state):
        jax.random.uniform(key)
        return jnp.arange(len(observation)), observation[:, 0]

    def observe(self, rollout, state):
        weighed = [(2**at) * jnp.sum(leaf * (1.0 + jnp.arange(len(leaf)).reshape(-1, *[1] * (leaf.ndim - 1))))
                   for at, leaf in enumerate(rollout)]  # fmt: skip
        return state._replace(ppo=state.ppo + sum(weighed))

    def step(self, key, rollout, state):
        jax.random.uniform(key)
        told = jnp.mean(rollout.reward)
        info = c.BonusPPOInfo(told, told, told, told, None, jnp.asarray(rollout.reward.size), jnp.asarray(0))  # pyright: ignore[reportArgumentType]
        return self.observe(rollout, state), info


def test_a_policy_on_the_host_sees_and_tells_the_same_and_goes_on(tmp_path):
    worlds, told = Ladders(late=False), []
    one = c.Training(Ladder(), Idle(), num_environments=2, num_steps=NUM_STEPS)  # pyright: ignore[reportArgumentType]
    host = c.GymnasiumTraining(worlds, Idle(), NUM_STEPS)  # pyright: ignore[reportArgumentType]

    @eqx.filter_jit(**QUICK)
    def run(key):
        outcome = one.run(key, NUM_UPDATES)
        return outcome.state.learner, outcome.seen

    with KeyRecorder() as recorder:
        whole = jax.block_until_ready(run(jax.random.key(0)))
        assert not recorder.reused()
    found = host.run(jax.random.key(0), NUM_UPDATES)
    for left, right in zip(jax.tree.leaves(whole), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    episodes, mean = climbed(late=False)
    np.testing.assert_array_equal(found[1].episodes, episodes)
    np.testing.assert_allclose(found[1].episode_return, mean, rtol=1e-6)
    np.testing.assert_array_equal(found[1].best, 16)
    np.testing.assert_array_equal(found[1].cost, 2 * NUM_STEPS)
    file = tmp_path / "run.npz"
    host.run(jax.random.key(0), 2, checkpoint=file)
    _, rows = host.run(jax.random.key(0), 3, checkpoint=file, progress=told.append)
    assert worlds.seeds == [0, 0, 0, 2], "two updates were done when it went on"
    assert told[-1].done == 3
    np.testing.assert_array_equal(rows.learner.reward[:2], found[1].learner.reward[:2])


class Counter(eqx.Module):
    """A learner without a bonus that does the first action; its state is the number of its updates."""

    bonus: Any = None
    num_minibatches: int = 1

    def init(self, observation, num_environments):
        return c.BonusPPOState(jnp.zeros(()), None, None)  # pyright: ignore[reportArgumentType]

    def act(self, key, observation, state):
        return jnp.zeros(len(observation), int), observation[:, 0]

    def observe(self, rollout, state):
        return state

    def step(self, key, rollout, state):
        done, cost = state.ppo, jnp.asarray(rollout.reward.size)
        told = c.BonusPPOInfo(done, done, done, done, None, cost, jnp.asarray(0))  # pyright: ignore[reportArgumentType]
        return state._replace(ppo=state.ppo + 1), told


class Watcher(Counter):
    """With a bonus that is shown what was reached; its state is the sum of that."""

    bonus: Any = True

    def observe(self, rollout, state):
        return state._replace(ppo=state.ppo + jnp.sum(rollout.following))


def test_a_warm_up_on_the_host_is_observed():
    """Two rollouts of three steps, in which both rows climb the rungs 1, 2 and 3; rung and time are shown."""
    training = c.GymnasiumTraining(Ladders(late=False), Watcher(), 3, num_warmup=2)  # pyright: ignore[reportArgumentType]
    assert float(training.init(jax.random.key(0)).ppo) == 2 * 2 * 2 * (1 + 2 + 3)


class Vector:
    """A vector environment as Gymnasium has them, of three rows that count their steps and end after 2, 3 and 9.

    With ``SAME_STEP`` what has ended shows its beginning at once and what was reached aside, with ``DISABLED`` it waits
    to be reset by a mask; no step is made without a reset.
    """

    num_envs = 3
    envs = ("<a>", "<b>", "<c>")
    spec = SimpleNamespace(kwargs={"speed": 2})

    def __init__(self, mode, modes, space):
        self.same, self.metadata = mode == modes.SAME_STEP, {"autoreset_mode": mode}
        self.single_observation_space, self.single_action_space = space(1, (1,)), space(9, (1,))
        self.count: Any = np.zeros(3)

    def __str__(self):
        return "vector of three"

    def reset(self, *, seed=None, options=None):
        mask = np.ones(3, bool) if options is None else options["reset_mask"]
        self.count = np.where(mask, 0, self.count)
        return self.count[:, None].astype(np.float32), {}

    def step(self, action):
        assert action.max() <= 9
        self.count = self.count + 1
        reached, terminated = self.count[:, None].astype(np.float32), self.count == [2, 3, 9]
        told = {}
        if self.same and terminated.any():
            told = {"final_obs": [row if over else None for row, over in zip(reached, terminated, strict=True)]}
            self.count = np.where(terminated, 0, self.count)
        return self.count[:, None].astype(np.float32), np.ones(3), terminated, np.zeros(3, bool), told


@pytest.mark.parametrize("mode", ["DISABLED", "SAME_STEP"])
def test_the_bridge_shows_what_was_reached_and_acts_in_what_has_begun(mode, monkeypatch):
    """With a stand-in for Gymnasium; tests/control/test_control_use.py has the true one, where it is installed."""
    modes = enum.Enum("AutoresetMode", ["NEXT_STEP", "SAME_STEP", "DISABLED"])
    box = type("Box", (), {"__init__": lambda self, high, shape: vars(self).update(low=0, high=high, shape=shape)})
    box.__str__ = lambda self: f"Box(0, {self.high}, {self.shape})"  # pyright: ignore[reportAttributeAccessIssue]
    box.dtype = np.dtype(np.float32)  # pyright: ignore[reportAttributeAccessIssue]
    spaces = SimpleNamespace(Box=box, Dict=type("Dict", (), {}), Discrete=type("Discrete", (), {}))
    stand_in = SimpleNamespace(spaces=spaces, vector=SimpleNamespace(AutoresetMode=modes, VectorEnv=Vector))
    monkeypatch.setitem(sys.modules, "gymnasium", stand_in)
    environments = c.GymnasiumEnvironments(Vector(modes[mode], modes, box))
    np.testing.assert_array_equal(environments.reset(0), 0)
    rows = [environments.step(np.full((3, 1), 99.0)) for _ in range(6)]
    reached, onward = ([row[at][:, 0].tolist() for row in rows] for at in (1, 0))
    assert reached == [[1, 1, 1], [2, 2, 2], [1, 3, 3], [2, 1, 4], [1, 2, 5], [2, 3, 6]]
    assert onward == [[1, 1, 1], [0, 2, 2], [1, 0, 3], [0, 1, 4], [1, 2, 5], [0, 0, 6]]
    assert environments.settings == {
        **{"name": "vector of three", "each": ["<a>", "<b>", "<c>"], "options": {"speed": 2}, "number": 3, "part": ""},
        **{"spaces": ["Box(0, 1, (1,))", "Box(0, 9, (1,))"], "mode": f"AutoresetMode.{mode}"},
    }


def test_a_run_on_the_host_is_kept_and_goes_on_where_it_was(tmp_path):
    worlds, told = Ladders(late=False), []
    training = c.GymnasiumTraining(worlds, Counter(), 3, num_warmup=0)  # pyright: ignore[reportArgumentType]
    for number, file in ((2, tmp_path / "run.npz"), (4, tmp_path / "run.npz"), (1, None)):
        state, rows = training.run(jax.random.key(0), number, seed=5, checkpoint=file, progress=told.append)
        assert int(state.ppo) == number
        np.testing.assert_array_equal(rows.learner.reward, np.arange(number))
        np.testing.assert_array_equal(rows.episodes, 2)
        np.testing.assert_array_equal(rows.episode_return, 1 + 4 + 9)
        assert told[-1].done == number
    assert worlds.seeds == [5, 5, 7, 5], "two updates were done when it went on, and none without a file"


def test_no_key_is_used_twice_on_the_host(monkeypatch):
    """Two rollouts of a warm-up, two steps each, two updates of two gradients; and an episode that is filmed."""
    short: dict[str, Any] = {"num_steps": 2, "num_warmup": 2}
    dreaming = c.GymnasiumDreamerTraining(
        Ladders(late=True), Sleeper(), c.Replay(40, 2), num_gradients=2, batch=2, **short
    )  # pyright: ignore[reportArgumentType]
    acting = c.GymnasiumTraining(Ladders(late=False), Idle(), **short)  # pyright: ignore[reportArgumentType]
    stand_in = SimpleNamespace(spaces=SimpleNamespace(Box=type("Box", (), {})))
    monkeypatch.setitem(sys.modules, "gymnasium", stand_in)
    world = SimpleNamespace(
        action_space=SPACES["action_space"],
        reset=lambda seed: (np.zeros(2), {}),
        step=lambda action: (np.zeros(2), 1.0, False, False, {}),
        render=lambda: np.zeros((2, 2, 3), np.uint8),
        close=lambda: None,
    )
    policy = lambda key, seen, memory: (jax.random.randint(key, (), 0, 2), memory)  # noqa: E731
    one, two, three = jax.random.split(jax.random.key(0), 3)
    with KeyRecorder() as recorder:
        dreaming.run(one, 2)
        acting.run(two, 2)
        c.record_gymnasium(three, lambda render_mode: world, policy, 3)
        assert not recorder.reused()
