"""Episodes that are written down: those of ours, those that are drawn, and those of Gymnasium."""

import sys
import warnings
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate.loops import Timestep, frames_of, gif_of
from laureate.problems.drawings import scene
from laureate.problems.environments import Chain, NoisyTV
from laureate.problems.seen_worlds import Pendulum, PendulumState, PixelRoom
from laureate.problems.small_worlds import Hearth, PointMass, Room
from laureate.problems.two_bodies import TwoBodies
from laureate.testing import check_random_function

QUICK = {"xla_backend_optimization_level": 0}


def quick(function):
    """Compiled without optimising."""
    return eqx.filter_jit(function, compiler_options=QUICK)  # pyright: ignore[reportCallIssue]


class Tables(eqx.Module):
    """Logits and one value from tables, for one-hot observations."""

    logits: jax.Array

    def __call__(self, x):
        return x @ self.logits, x[:1]


CHAIN = Chain(4, limit=6)
SURE = 50.0 * jax.nn.one_hot(CHAIN.forward, 2)  # goes on, for certain
TRAINING = c.Training(CHAIN, c.BonusPPO(c.PPO(Tables(SURE), c.Categorical(2)), num_minibatches=1), 2, 4, num_warmup=0)


@pytest.fixture(scope="module")
def episodes():
    """Of an agent that goes on, of one that goes back, and of one that counts its steps in its memory."""

    def back(key, seen, memory):
        return 1 - CHAIN.forward[seen.argmax()], memory

    def twice_on(key, seen, memory):
        on = CHAIN.forward[seen.argmax()]
        return jnp.where(memory < 2, on, 1 - on), memory + 1

    @quick
    def recorded(key):
        policy, memory = c.player(TRAINING, TRAINING.init(key))
        own = c.record(key, CHAIN, policy, 8, memory)
        same = c.record(key, CHAIN, *c.player(TRAINING.learner, TRAINING.init(key).learner)[:1], 8)
        return own, same, c.record(key, CHAIN, back, 8), c.record(key, CHAIN, twice_on, 4, jnp.asarray(0))

    return recorded(jax.random.key(0))


def test_an_episode_is_written_down_until_it_ends(episodes):
    own, same, back, twice = episodes
    np.testing.assert_array_equal(own.state.place, [0, 1, 2, 3, 3, 3, 3, 3, 3])
    np.testing.assert_array_equal(own.observation.argmax(-1), own.state.place)
    np.testing.assert_array_equal(own.state.clock, own.state.place)  # it stands still at its end, as the place does
    np.testing.assert_array_equal(own.reward, [0, 0, 1, 0, 0, 0, 0, 0])
    assert (int(own.length), bool(own.terminated), bool(own.truncated)) == (3, True, False)
    for one, other in zip(jax.tree.leaves(own), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(one, other)
    # A time limit is no termination, and an episode that was cut is neither.
    assert (int(back.length), bool(back.terminated), bool(back.truncated)) == (6, False, True)
    np.testing.assert_array_equal(back.state.place, 0)
    np.testing.assert_array_equal(twice.state.place, [0, 1, 2, 1, 0])
    assert (int(twice.length), bool(twice.terminated), bool(twice.truncated)) == (4, False, False)


class Trap(eqx.Module):
    """Ends with its third step, by a rule or by a time limit; whatever is done then is no number and ends both ways."""

    by_rule: jax.Array

    def reset(self, key):
        return jnp.asarray(0), jnp.zeros(1)

    def step(self, key, state, action):
        state = state + 1
        late, over = state > 3, state == 3
        worth = jnp.where(late, jnp.nan, state)
        return state, Timestep(worth[None], worth, late | (over & self.by_rule), late | (over & ~self.by_rule))


def test_what_an_environment_does_beyond_its_end_is_not_written_down():
    act = lambda key, seen, memory: (memory, memory + 1)  # noqa: E731
    recorded = quick(lambda by_rule: c.record(jax.random.key(0), Trap(by_rule), act, 6, jnp.asarray(0)))
    for by_rule in (True, False):
        episode = recorded(jnp.asarray(by_rule))
        assert (int(episode.length), bool(episode.terminated), bool(episode.truncated)) == (3, by_rule, not by_rule)
        np.testing.assert_array_equal(episode.reward, [1, 2, 3, 0, 0, 0])
        np.testing.assert_array_equal(episode.state, [0, 1, 2, 3, 3, 3, 3])
        np.testing.assert_array_equal(episode.observation[:, 0], episode.state)
        np.testing.assert_array_equal(episode.action[:3], [0, 1, 2])


def test_an_agent_that_dreams_can_be_watched():
    agent = c.make_dreamer(jax.random.key(0), (4,), c.OneHot(1, 2), latent=c.OneHot(2, 2), memory=4, width=4, horizon=2)
    training = c.DreamerTraining(CHAIN, agent, c.Replay(32, 4), 2, 4, batch=2)

    @quick
    def recorded(key):
        state = training.init(key)
        policy, memory = c.player(training, state)
        action, (known, first) = policy(key, jnp.eye(4)[0], memory)
        expected = agent.act(key, jnp.eye(4)[:1], jnp.ones(1, bool), agent.remember(1), state.learner)
        return c.record(key, CHAIN, policy, 6, memory), (action, known, first), expected

    episode, (action, known, first), expected = recorded(jax.random.key(1))
    assert action == expected.action[0].argmax()
    np.testing.assert_array_equal(known.action, expected.action)
    assert not first.any(), "an episode begins once"
    np.testing.assert_array_equal(np.asarray(episode.observation).argmax(-1), episode.state.place)


def test_no_key_is_used_twice():
    def recorded(key):
        act = lambda key, seen, memory: (jax.random.randint(key, (), 0, 5), memory)  # noqa: E731
        return c.record(key, NoisyTV(2, pixels=8, pictures=0), act, 6).observation

    check_random_function(quick(recorded), name="control.record")


def test_bad_input():
    with pytest.raises(ValueError, match=r"player.state must be the state of learner = Training.*outcome.state"):
        c.player(TRAINING, None)
    with pytest.raises(ValueError, match=r"record.num_steps must be an integer >= 1"):
        c.record(jax.random.key(0), CHAIN, lambda key, seen, memory: (0, memory), 0)
    with pytest.raises(TypeError, match=r"can be drawn; got str.*scene.register"):
        scene("a room", None)


# --- drawings ---------------------------------------------------------------------------------------------------------

WORLDS = [CHAIN, NoisyTV(3, pixels=5), Room(3), PixelRoom(Room(3), 2), PointMass(5), Pendulum(), Hearth(3)]


@pytest.fixture(scope="module")
def walks():
    """Six steps of random actions in every world that can be drawn, and of the arm."""

    @quick
    def walked(key):
        found = []
        for world in WORLDS:
            space = world.action_space

            def act(key, seen, memory, space=space):
                if hasattr(space, "num"):
                    return jax.random.randint(key, (), 0, space.num), memory
                return jax.random.uniform(key, space.shape, minval=space.low, maxval=space.high), memory

            found.append(c.record(key, world, act, 6).state)
        arm = TwoBodies()
        step = lambda y, _: (arm.step(y, arm.policy(y)), y)  # noqa: E731
        return [*found, jax.lax.scan(step, arm.reset(key), length=7)[1]]

    return list(zip([*WORLDS, TwoBodies()], walked(jax.random.key(4)), strict=True))


def test_every_world_is_drawn_within_its_sheet(walks):
    for world, states in walks:
        drawing = scene(world, states)
        frames = frames_of(drawing, 60)
        assert frames.shape[0] == 7, world
        assert len(gif_of(frames)) < 30_000
        assert any(len(stroke.points) == 7 for stroke in drawing.strokes), "something moves"
        for stroke in drawing.strokes:
            points = np.asarray(stroke.points)
            assert points.min() >= 0, world
            assert (points.max((0, 1)) <= (drawing.width, drawing.height)).all(), world


def test_drawings_show_where_things_are(walks):
    names = "chain", "television", "room", "pixels", "mass", "pendulum", "hearth", "arm"
    states = dict(zip(names, walks, strict=True))
    chain = scene(*states["chain"])
    np.testing.assert_allclose(chain.strokes[-1].points[:, 0, 0], np.asarray(states["chain"][1].place) + 0.5)
    room = scene(*states["room"])
    np.testing.assert_allclose(room.strokes[-1].points[:, 0], np.asarray(states["room"][1].place)[:, ::-1] + 0.5)
    assert [s.points[0, 0].tolist() for s in room.strokes if s.look == "goal"] == [[2.5, 2.5]]
    warm = scene(Hearth(3, warm=5), states["hearth"][1])
    assert [s.points[0, 0].tolist() for s in warm.strokes if s.look == "goal"] == [[2.5, 1.5]]  # rows are downwards
    # The pendulum upright points upwards, and one that hangs downwards.
    up = scene(Pendulum(), PendulumState(np.array([0.0, np.pi]), np.zeros(2), np.arange(2))).strokes[-1].points
    np.testing.assert_allclose(up[:, 1] - up[:, 0], [[0, -1], [0, 1]], atol=1e-6)
    # An arm at rest hangs; a joint turned by π/2 points to the right.
    arm = scene(TwoBodies(), np.array([[0.0, 0, 0, 0], [np.pi / 2, 0, 0, 0]])).strokes[2].points
    np.testing.assert_allclose(arm[:, 2] - arm[:, 0], [[0, 1.2], [1.2, 0]], atol=1e-6)


def test_a_screen_is_lit_where_it_shows_something():
    room = NoisyTV(3, pixels=4)
    screen = np.array([[0.0, 0, 0, 0], [1, -1, 1, -1], [1, 1, -1, -1]])
    states = room.reset(None)[0]._replace(place=np.full((3, 2), 2), screen=screen)
    lit = [stroke.shown.tolist() for stroke in scene(room, states).strokes if stroke.look == "lit"]
    assert lit == [[False, True, True], [False, False, True], [False, True, False]]


# --- the new worlds ---------------------------------------------------------------------------------------------------


def swung(angle, speed, torque, dt=0.05):
    """Gymnasium's equations in NumPy."""
    u = np.clip(torque, -2, 2)
    cost = ((angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * speed**2 + 0.001 * u**2
    speed = np.clip(speed + (15 * np.sin(angle) + 3 * u) * dt, -8, 8)
    return angle + speed * dt, speed, -cost


@pytest.fixture(scope="module")
def swings():
    """States, torques, and what a step of the pendulum makes of them."""
    rng = np.random.default_rng(0)
    angle, speed, torque = rng.uniform(-7, 7, 40), rng.uniform(-8, 8, 40), rng.uniform(-3, 3, 40)
    pendulum = Pendulum(limit=5)
    states = PendulumState(jnp.asarray(angle, jnp.float32), jnp.asarray(speed, jnp.float32), jnp.arange(40))
    found = quick(jax.vmap(lambda s, u: pendulum.step(None, s, u)))(states, jnp.asarray(torque, jnp.float32)[:, None])
    return (angle, speed, torque), found


def test_a_pendulum_moves_as_gymnasiums(swings):
    (angle, speed, torque), (state, timestep) = swings
    wanted = swung(angle, speed, torque)
    for one, other in zip((state.angle, state.speed, timestep.reward), wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)
    seen = np.stack([np.cos(wanted[0]), np.sin(wanted[0]), wanted[1]], axis=1)
    np.testing.assert_allclose(timestep.observation, seen, atol=2e-4)
    np.testing.assert_array_equal(timestep.truncated, np.arange(40) >= 4)
    assert not timestep.terminated.any()


def test_a_pendulum_is_gymnasiums(swings):
    gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium (extra `control`) is not installed")
    (angle, speed, torque), (_, timestep) = swings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = gymnasium.make("Pendulum-v1")
    theirs.reset(seed=0)
    for row in range(10):
        theirs.unwrapped.state = np.array([angle[row], speed[row]])
        seen, reward, *_ = theirs.unwrapped.step(torque[row : row + 1])
        np.testing.assert_allclose(timestep.observation[row], seen, atol=2e-4)
        np.testing.assert_allclose(timestep.reward[row], reward, atol=2e-4)


def test_a_room_in_pixels_is_the_room(walks):
    room, states = walks[3]
    observe = quick(jax.vmap(lambda state: room.observe(state)))
    pictures = np.asarray(observe(states))
    assert pictures.dtype == np.uint8
    cells = pictures.reshape(len(pictures), 3, 2, 3, 2, 3)
    assert (cells == cells[:, :, :1, :, :1]).all(), "a cell has one colour"
    blue = (cells[:, :, 0, :, 0] == (23, 86, 154)).all(-1)
    np.testing.assert_array_equal(np.argwhere(blue)[:, 1:], states.place)
    green = (cells[:, :, 0, :, 0] == (46, 139, 87)).all(-1)
    np.testing.assert_array_equal(green[:, 2, 2], ~blue[:, 2, 2])
    assert green.sum() == green[:, 2, 2].sum()
    there = np.asarray(observe(states._replace(place=jnp.full_like(states.place, 2))))  # the goal is not in front of it
    assert (there[:, 4:, 4:] == (23, 86, 154)).all()
    assert not (there == (46, 139, 87)).all(-1).any()
    hidden = PixelRoom(Room(3), 2, goal_seen=False)
    assert not (np.asarray(hidden.observe(jax.tree.map(lambda leaf: leaf[0], states))) == (46, 139, 87)).all(-1).any()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Pendulum(limit=0), "Pendulum.limit must be >= 1"),
        (lambda: Pendulum(mass=0.0), "Pendulum.mass must be > 0"),
        (lambda: PixelRoom(Room(3), 0), "PixelRoom.cell must be >= 1"),
        (lambda: Hearth(1), "Hearth.side must be >= 2; got 1"),
        (lambda: Hearth(bright=0.0), "Hearth.bright must be > 0; got 0.0"),
    ],
)
def test_bad_worlds(call, said):
    with pytest.raises(ValueError, match=said):
        call()


# --- Gymnasium --------------------------------------------------------------------------------------------------------


def test_an_episode_of_gymnasium_is_a_film():
    pytest.importorskip("gymnasium", reason="Gymnasium (extra `control`) is not installed")
    pytest.importorskip("pygame", reason="pygame, with which Gymnasium draws, is not installed")
    push = lambda key, seen, memory: (jnp.asarray(1), memory)  # noqa: E731
    found = c.record_gymnasium(jax.random.key(0), "CartPole-v1", push, 30)
    assert found.frames.dtype == np.uint8
    assert found.frames.shape[0] == len(found.reward) + 1
    assert (found.terminated, found.truncated) == (True, False), "pushed to one side a pole falls"
    assert len(found.reward) < 15
    cut = c.record_gymnasium(jax.random.key(0), "CartPole-v1", push, 3)
    assert (len(cut.reward), cut.terminated, cut.truncated) == (3, False, False)
    np.testing.assert_array_equal(cut.frames, found.frames[:4])
    hard = lambda key, seen, memory: (jnp.full(1, 9.0), memory)  # noqa: E731
    assert c.record_gymnasium(jax.random.key(0), "Pendulum-v1", hard, 2).reward[0] > -17, "clipped to what is allowed"


class Filmed:
    """An environment as Gymnasium's, that writes down what it is given and draws the number of its steps."""

    def __init__(self, space, terminated=99, truncated=99, **options):
        self.action_space, self.ends, self.options = space, (terminated, truncated), options
        self.actions, self.seeds, self.closed = [], [], 0
        self.shape: tuple[int, ...] = (2, 2, 3)

    def seen(self):
        return {"place": np.full(2, len(self.actions), np.float32), "clock": np.zeros(1)}

    def reset(self, *, seed=None):
        self.seeds.append(seed)
        return self.seen(), {}

    def step(self, action):
        self.actions.append(action)
        number = len(self.actions)
        return self.seen(), number**2, *(number >= end for end in self.ends), {}

    def render(self):
        return np.full(self.shape, len(self.actions), np.uint8)

    def close(self):
        self.closed += 1


@pytest.mark.parametrize("ends", [{}, {"terminated": 2}, {"truncated": 2}])
def test_a_film_shows_every_step_with_actions_within_their_own_bounds(monkeypatch, ends):
    """With a stand-in for Gymnasium, whose box has bounds for each number; as long as asked, or until the end."""
    box = type("Box", (), {"low": np.array([-1.0, -2.0]), "high": np.array([1.0, 0.5]), "shape": (2,)})
    made = []

    def make(name, **options):
        made.append(Filmed(box(), **ends, **options))
        return made[-1]

    stand_in = SimpleNamespace(spaces=SimpleNamespace(Box=box), make=make)
    monkeypatch.setitem(sys.modules, "gymnasium", stand_in)

    def policy(key, seen, memory):
        return jnp.array([9.0, -9.0]) * (1 - 2 * (memory % 2)), memory + seen[0].astype(int) + 1

    given: Any = {"memory": jnp.asarray(0), "seed": 7, "part": "place", "speed": 3}
    found = c.record_gymnasium(jax.random.key(0), "any", policy, 3, **given)
    (world,), number = made, 2 if ends else 3
    np.testing.assert_array_equal(found.frames[:, 0, 0, 0], np.arange(number + 1))
    np.testing.assert_array_equal(found.reward, np.arange(1, number + 1) ** 2)
    assert (found.terminated, found.truncated) == ("terminated" in ends, "truncated" in ends)
    memories = [0, 1, 3][:number]  # each time what is seen, which is the number of steps, and one more
    wanted = [[1.0, -2.0] if memory % 2 == 0 else [-1.0, 0.5] for memory in memories]
    np.testing.assert_array_equal(world.actions, wanted)
    assert (world.seeds, world.closed, world.options) == ([7], 1, {"render_mode": "rgb_array", "speed": 3})


def test_choices_are_handed_over_as_numbers_and_what_does_not_draw_is_closed(monkeypatch):
    stand_in = SimpleNamespace(spaces=SimpleNamespace(Box=type("Box", (), {})))
    monkeypatch.setitem(sys.modules, "gymnasium", stand_in)
    choose = lambda key, seen, memory: (jnp.asarray(3), memory)  # noqa: E731
    world = Filmed(None)
    c.record_gymnasium(jax.random.key(0), lambda render_mode: world, choose, 2, part="place")
    assert [type(action) for action in world.actions] == [int, int]
    assert world.actions == [3, 3]
    blind = Filmed(None)
    blind.shape = (2, 2)
    with pytest.raises(ValueError, match=r"render\(\) must be a picture \[height, width, 3\]; got \(2, 2\)"):
        c.record_gymnasium(jax.random.key(0), lambda render_mode: blind, choose, 2, part="place")
    assert (blind.closed, blind.actions) == (1, [])


def test_without_gymnasium_a_film_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ModuleNotFoundError, match=r"laureate\[control\]"):
        c.record_gymnasium(jax.random.key(0), "CartPole-v1", lambda key, seen, memory: (0, memory), 3)
