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


def test_on_the_host_every_number_of_an_action_is_stretched_to_its_own_bounds():
    space = SimpleNamespace(low=np.array([-2.0, 0.0, -1.0]), high=np.array([4.0, 1.0, 1.0]))
    worlds = SimpleNamespace(vector=SimpleNamespace(single_action_space=space))
    decode = lambda law, action: c.GymnasiumDreamerTraining.decode(  # noqa: E731
        SimpleNamespace(learner=SimpleNamespace(law=law), environments=worlds),
        action,  # pyright: ignore[reportArgumentType]
    )
    found = decode(c.TruncatedNormal(3), np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0], [0.0, 0.5, -0.5]]))
    np.testing.assert_allclose(found, [[-2, 0, -1], [4, 1, 1], [1, 0.75, -0.5]])
    np.testing.assert_array_equal(decode(c.OneHot(1, 3), np.eye(3)[[2, 0]]), [2, 0])


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


class Begun(NamedTuple):
    bits: jax.Array
    learner: Any


class Keyed(c.Training):
    """Its state is the bits of the key that it began with, and it tells those of every update."""

    def init(self, key):  # pyright: ignore[reportIncompatibleMethodOverride]
        return Begun(jax.random.key_data(key), c.BonusPPOState(None, None, None))  # pyright: ignore[reportArgumentType]

    def step(self, key, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        return state, jax.random.key_data(key)


class KeyedDreams(c.DreamerTraining):
    """Likewise."""

    def init(self, key):  # pyright: ignore[reportIncompatibleMethodOverride]
        return Begun(jax.random.key_data(key), None)

    def step(self, key, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        return state, jax.random.key_data(key)


KEYED: Any = [
    Keyed(Ladder(), Idle(), num_environments=2, num_steps=3),  # pyright: ignore[reportArgumentType]
    KeyedDreams(Ladder(), Sleeper(), REPLAY, 2, **SIZES),  # pyright: ignore[reportArgumentType]
]


@pytest.mark.parametrize("training", KEYED, ids=["policy", "dreamer"])
def test_an_update_has_the_key_of_its_number_and_a_run_is_kept_and_tells_how_far_it_is(training, tmp_path):
    key, told, file = jax.random.key(3), [], tmp_path / "run.npz"
    training.run(key, 2, checkpoint=file)
    outcome = training.run(key, 5, checkpoint=file, progress=told.append)
    assert [(one.done, one.total) for one in told][-1] == (5, 5)
    assert min(one.done for one in told) > 2, "two updates were done when it went on"
    begin, rest = jax.random.split(key)
    np.testing.assert_array_equal(outcome.state.bits, jax.random.key_data(begin))
    wanted = [jax.random.key_data(jax.random.fold_in(rest, number)) for number in range(5)]
    np.testing.assert_array_equal(outcome.seen, wanted)


class Space:
    """A space as Gymnasium's: what it is made with are its fields."""

    def __init__(self, **fields):
        vars(self).update(fields)

    def __getitem__(self, name):
        return self.spaces[name]  # pyright: ignore[reportAttributeAccessIssue]


class Part(Vector):
    """Shows its count as one of several things; writes down the actions that reach it."""

    def show(self, seen):
        return {"count": seen, "word": "none"}

    def reset(self, **more):
        return self.show(super().reset(**more)[0]), {}

    def step(self, action):
        self.last = action
        seen, reward, terminated, truncated, told = super().step(action)
        if "final_obs" in told:
            told = {"final_obs": [None if row is None else self.show(row) for row in told["final_obs"]]}
        return self.show(seen), reward, terminated, truncated, told


@pytest.fixture
def spaces(monkeypatch):
    """Kinds of spaces, and how what is over begins anew, of a stand-in for Gymnasium."""
    modes = enum.Enum("AutoresetMode", ["NEXT_STEP", "SAME_STEP", "DISABLED"])
    box, dictionary, discrete = (type(name, (Space,), {}) for name in ("Box", "Dict", "Discrete"))
    kinds = SimpleNamespace(Box=box, Dict=dictionary, Discrete=discrete)
    stand_in = SimpleNamespace(spaces=kinds, vector=SimpleNamespace(AutoresetMode=modes, VectorEnv=Vector))
    monkeypatch.setitem(sys.modules, "gymnasium", stand_in)
    return kinds, modes


def box_of(kinds, low, high):
    low, high = np.asarray(low), np.asarray(high)
    return kinds.Box(low=low, high=high, shape=low.shape, dtype=np.dtype(np.float32))


@pytest.mark.parametrize("mode", ["DISABLED", "SAME_STEP", "NEXT_STEP"])
def test_a_part_of_what_is_shown_is_seen_and_actions_are_clipped_to_their_own_bounds(mode, spaces):
    kinds, modes = spaces
    world: Any = Part(modes[mode], modes, lambda high, shape: box_of(kinds, np.zeros(shape), np.full(shape, high)))
    count = box_of(kinds, [-1.0, 0.0], [3.0, 9.0])
    world.single_observation_space = kinds.Dict(spaces={"count": count, "word": kinds.Discrete(n=3, start=0)})
    world.single_action_space = box_of(kinds, [-1.0, 0.0], [1.0, 5.0])
    environments = c.GymnasiumEnvironments(world, part="count", late=mode == "NEXT_STEP")
    assert (environments.observation_space, environments.action_space) == (
        loops.Box((2,), -1.0, 9.0, "float32"),
        loops.Box((2,), -1.0, 5.0, "float32"),
    )
    np.testing.assert_array_equal(environments.reset(3), 0)
    one, two, three = (environments.step(np.array([[9.0, 9.0], [-9.0, -9.0], [0.5, 2.0]])) for _ in range(3))
    np.testing.assert_array_equal(world.last, [[1, 5], [-1, 0], [0.5, 2]])
    np.testing.assert_array_equal(one.following[:, 0], 1)
    np.testing.assert_array_equal(two.following[:, 0], 2)  # the first has ended, and what it reached is shown
    begun = mode != "NEXT_STEP"  # with its next step
    np.testing.assert_array_equal(two.observation[:, 0], [0 if begun else 2, 2, 2])
    assert two.terminated.tolist() == [True, False, False]
    assert [row.dtype for row in (two.reward, two.terminated)] == [np.float32, bool]
    np.testing.assert_array_equal(three.following[:, 0], [1 if begun else 3, 3, 3])


def test_spaces_that_cannot_be_bridged_are_named_without_a_simulator(spaces):
    kinds, modes = spaces
    seen, choices = box_of(kinds, [0.0], [1.0]), kinds.Discrete(n=4, start=0)
    several = kinds.Dict(spaces={"a": seen, "b": choices})

    def of(observations, actions, mode="DISABLED", **more):
        world: Any = Vector(modes[mode], modes, lambda high, shape: None)
        world.single_observation_space, world.single_action_space = observations, actions
        return c.GymnasiumEnvironments(world, **more)

    fine = of(seen, choices)
    assert (fine.action_space, fine.num_environments, fine.by_mask) == (loops.Discrete(4), 3, True)
    assert of(several, choices, part="a").observation_space == loops.Box((1,), 0.0, 1.0, "float32")
    for error, said, *given in (
        (ValueError, "part must be one of the arrays 'a', for observations.*got ''", several, choices),
        (TypeError, "observation_space must be a Box; got .*FlattenObservation", choices, choices),
        (TypeError, "action_space must be a Box, or Discrete from 0 on; got", seen, kinds.Discrete(n=2, start=1)),
        (TypeError, "action_space must be a Box, or Discrete from 0 on; got", seen, several),
        (ValueError, "autoreset_mode must be SAME_STEP or DISABLED; got .*autoreset_mode=AutoresetMode.DISABLED",
         seen, choices, "NEXT_STEP"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            of(*given)
    with pytest.raises(ValueError, match="part must be '' where observations are no dictionaries; got 'a'"):
        of(seen, choices, part="a")
    with pytest.raises(ValueError, match=r"autoreset_mode must be NEXT_STEP; got .*autoreset_mode=\S*\.NEXT_STEP"):
        of(seen, choices, late=True)


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
