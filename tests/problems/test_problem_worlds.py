"""Worlds walked step by step in plain Python beside ours, with settings of all kinds; values from their steps."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems import two_bodies
from laureate.problems.drawings import scene
from laureate.problems.environments import Chain, ChainState, NoisyTV, NoisyTVState
from laureate.problems.mazes import Maze
from laureate.problems.seen_worlds import Pendulum, PendulumState, PixelRoom
from laureate.problems.small_worlds import Hearth, Ledge, PointMass, PointMassState, Room, WalkState
from laureate.problems.unrolls import training_runs

SIDES = [(0, 1), (0, -1), (1, 0), (-1, 0), (0, 0)]
GROUND, WALKER, GOAL = (232, 229, 222), (23, 86, 154), (46, 139, 87)


def on_a_chain(env, state, action, _):
    place = min(max(state["place"] + (1 if action == env.forward[state["place"]] else -1), 0), env.size - 1)
    clock = state["clock"] + 1
    there, late = place == env.size - 1, clock >= env.limit and place < env.size - 1
    ends = (there or late, False) if env.deadly else (there, late)
    return {"place": place, "clock": clock}, np.eye(env.size)[place], float(there), *ends


def by_a_television(env, state, action, after):
    place = [min(max(p + d, 0), env.side - 1) for p, d in zip(state["place"], SIDES[action], strict=True)]
    clock, beside = state["clock"] + 1, place == [env.side - 1] * 2
    screen = np.asarray(state["screen"])
    if beside and action == 4:
        screen = np.asarray(after.screen)  # drawn: which pictures there are is asked below
        assert set(screen) <= {-1.0, 1.0}
    elif not beside:
        screen = np.zeros(env.pixels)
    seen = np.concatenate([np.eye(env.side**2)[place[0] * env.side + place[1]], screen])
    return {"place": place, "screen": screen, "clock": clock}, seen, 0.0, False, clock >= env.limit


def in_a_room(env, state, action, _):
    place = [min(max(p + d, 0), env.side - 1) for p, d in zip(state["place"], SIDES[action], strict=True)]
    clock, cell = state["clock"] + 1, place[0] * env.side + place[1]
    there = cell == int(env.goal)
    found = {"place": place, "clock": clock}
    return found, np.eye(env.side**2)[cell], there - 1 / env.limit, there, clock >= env.limit and not there


def in_pixels(env, state, action, after):
    found, seen, *rest = in_a_room(env.room, state, action, after)
    picture = np.empty((env.room.side * env.cell,) * 2 + (3,))
    for i, j in np.ndindex(picture.shape[:2]):
        cell = i // env.cell * env.room.side + j // env.cell
        goal = GOAL if env.goal_seen and cell == int(env.room.goal) else GROUND
        picture[i, j] = WALKER if cell == seen.argmax() else goal
    return found, picture, *rest


def at_a_hearth(env, state, action, _):
    place = [min(max(p + d, 0), env.side - 1) for p, d in zip(state["place"], SIDES[action], strict=True)]
    clock, cell = state["clock"] + 1, place[0] * env.side + place[1]
    seen = float(env.bright) * np.eye(env.side**2)[cell]
    return {"place": place, "clock": clock}, seen, float(cell == int(env.warm)), False, clock >= env.limit


def on_a_line(env, state, action, _):
    v = 0.8 * state["speed"] + 0.4 * np.clip(float(action[0]), -1, 1)
    x, clock = np.clip(state["place"] + 0.3 * v, -1.5, 1.5), state["clock"] + 1
    return {"place": x, "speed": v, "clock": clock}, [x, v], np.exp(-8 * x**2), False, clock >= env.limit


def swung(env, state, action, _):
    g, m, length, dt = env.gravity, env.mass, env.length, env.dt
    u, angle = np.clip(float(action[0]), -2, 2), state["angle"]
    cost = math.remainder(angle, 2 * np.pi) ** 2 + 0.1 * state["speed"] ** 2 + 0.001 * u**2
    push = 3 * g / (2 * length) * np.sin(angle) + 3 * u / (m * length**2)
    v, clock = np.clip(state["speed"] + push * dt, -8, 8), state["clock"] + 1
    angle = angle + v * dt
    found = {"angle": angle, "speed": v, "clock": clock}
    return found, [np.cos(angle), np.sin(angle), v], -cost, False, clock >= env.limit


KEY = jax.random.key(7)
WORLDS = {
    "chain": (lambda: Chain(4, limit=5, seed=3), on_a_chain),
    "chain-deadly": (lambda: Chain(3, limit=4, seed=2, deadly=True), on_a_chain),
    "chain-drawn": (lambda: Chain(5, limit=7).drawn(KEY), on_a_chain),
    "television": (lambda: NoisyTV(2, pixels=3, pictures=2, limit=9), by_a_television),
    "television-noise": (lambda: NoisyTV(2, pixels=3, pictures=0, limit=9), by_a_television),
    "room": (lambda: Room(3, limit=6, goal=5), in_a_room),
    "pixels": (lambda: PixelRoom(Room(3, limit=5), 2).drawn(KEY), in_pixels),
    "pixels-hidden": (lambda: PixelRoom(Room(2, limit=5), 3, goal_seen=False).drawn(KEY), in_pixels),
    "hearth": (lambda: Hearth(2, limit=5, warm=1, bright=1.5), at_a_hearth),
    "mass": (lambda: PointMass(limit=4), on_a_line),
    "pendulum": (lambda: Pendulum(limit=6, gravity=7.0, mass=0.7, length=1.6, dt=0.1), swung),
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_step_is_the_one_that_the_docstring_says(name):
    make, model = WORLDS[name]
    environment = make()
    space, rng = environment.action_space, np.random.default_rng(0)
    if hasattr(space, "num"):
        actions = rng.integers(0, space.num, 40)
        if name.startswith("television"):
            actions[::3] = 4
    else:
        actions = rng.uniform(1.3 * space.low, 1.3 * space.high, (40, 1)).astype(np.float32)

    @jax.jit
    def walked(key):
        def step(state, given):
            after, timestep = environment.step(given[0], state, given[1])
            return after, (state, after, timestep)

        start, seen = environment.reset(key)
        return seen, jax.lax.scan(step, start, (jax.random.split(key, 40), actions))[1]

    seen, (befores, afters, timesteps) = jax.tree.map(np.asarray, walked(KEY))
    assert seen.shape == environment.observation_space.shape
    for row, action in enumerate(actions):
        before, after, timestep = jax.tree.map(lambda leaf, row=row: leaf[row], (befores, afters, timesteps))
        state = {field: value.tolist() for field, value in before._asdict().items()}
        expected, seen, reward, terminated, truncated = model(environment, state, action, after)
        for field, value in expected.items():
            np.testing.assert_allclose(getattr(after, field), value, atol=1e-5)
        np.testing.assert_allclose(timestep.observation, seen, atol=1e-5)
        assert float(timestep.reward) == pytest.approx(float(reward), abs=1e-5)
        assert (bool(timestep.terminated), bool(timestep.truncated)) == (bool(terminated), bool(truncated))


def test_a_television_has_as_many_pictures_as_said():
    room, beside = NoisyTV(2, pixels=6, pictures=3), jnp.array([1, 1])
    state = room.reset(KEY)[0]._replace(place=beside)
    screens = jax.jit(jax.vmap(lambda key: room.step(key, state, 4)[0].screen))(jax.random.split(KEY, 60))
    table, counts = np.unique(screens, axis=0, return_counts=True)
    assert len(table) == 3
    assert counts.min() > 60 / 3 - 4.5 * np.sqrt(60 * 2 / 9)


@pytest.mark.parametrize("name", ["chain", "ledge"])
def test_values_are_those_of_the_steps(name):
    """V = Σ_a p(a) (r + γ V'), with nothing after the end, until it stands still."""
    if name == "chain":
        world, p, gamma = Chain(4, seed=3), 0.7, 0.9
        going = [[p if a == on else 1 - p for a in range(2)] for on in np.asarray(world.forward)[:-1]]
        number = world.size - 1
        found = world.values(p, gamma)
        assert float(found[-1]) == 0
    else:
        world, gamma, number = Ledge(3, 0.7), 0.8, 3
        going, found = [[0.5, 0.5]] * 3, (world.values(gamma) - 0.7) / gamma  # less the cell's own reward
    start = world.reset(KEY)[0]
    stepped = jax.jit(jax.vmap(lambda place, a: world.step(KEY, start._replace(place=place), a)))
    cells, actions = np.divmod(np.arange(2 * number), 2)
    after, timestep = jax.tree.map(np.asarray, stepped(cells.astype(np.int32), actions))
    value = np.zeros(number + 2)
    for _ in range(300):
        worth = timestep.reward + gamma * np.where(timestep.terminated, 0, value[np.clip(after.place, 0, number)])
        value[:number] = (np.asarray(going) * worth.reshape(number, 2)).sum(1)
    np.testing.assert_allclose(np.asarray(found)[:number], value[:number], rtol=1e-4)


def test_the_best_return_of_a_hearth_is_that_of_every_shortest_way_however_short_the_episode():
    best = jax.jit(lambda hearth: hearth.best())
    for side, limit, warm in itertools.product((3, 4), (1, 2, 9), (0, 4, 7)):
        cells = np.array(list(np.ndindex(side, side)))
        away = np.abs(cells - divmod(warm, side)).sum(1)
        returns = [sum(step >= distance for step in range(1, limit + 1)) for distance in away]
        assert float(best(Hearth(side, limit, warm))) == pytest.approx(np.mean(returns), rel=1e-5)


def test_goals_that_are_drawn_are_all_cells_far_enough_and_no_others():
    for side in (2, 4):
        goals = jax.jit(jax.vmap(lambda key, side=side: Room(side).drawn(key).goal))(jax.random.split(KEY, 300))
        far = [i * side + j for i, j in np.ndindex(side, side) if i + j >= side]
        assert sorted(set(np.asarray(goals).tolist())) == far


def test_marks_stand_where_they_are_said_to_be():
    """Row 1, column 2 of a room that is not symmetric about its diagonal."""
    walk = lambda env: env.reset(KEY)[0]._replace(place=np.array([[0, 1], [2, 1]]))  # noqa: E731
    for world in (Room(4, goal=6), PixelRoom(Room(4, goal=6), 1), Hearth(4, warm=6)):
        marked = [s.points[0, 0].tolist() for s in scene(world, walk(world)).strokes if s.look == "goal"]
        assert marked == [[2.5, 1.5]]
    swinging = scene(Pendulum(), Pendulum().reset(KEY)[0]._replace(angle=np.array([0.5 * np.pi, 0.0])))
    np.testing.assert_allclose(np.diff(swinging.strokes[-1].points, axis=1)[:, 0], [[1, 0], [0, -1]], atol=1e-6)


def drawn() -> Iterator[tuple[Any, Any]]:
    """Every world that can be drawn in many sizes, with states of which some are at the ends of what there is."""
    clock, ends = np.arange(5), np.array([0, 1, 1, 0, 0])
    for size in (2, 3, 5):
        yield Chain(size), ChainState(ends * (size - 1), clock)
        places = np.stack([ends * (size - 1), ends[::-1] * (size - 1)], axis=1)
        for room in (Room(size), PixelRoom(Room(size), 1), Hearth(size)):
            yield room, WalkState(places, clock)
        for pixels in range(1, 18):
            screen = np.where(np.arange(5)[:, None] == np.arange(pixels) % 5, 1.0, -1.0)
            yield NoisyTV(size, pixels=pixels), NoisyTVState(places, screen, clock)
    yield PointMass(), PointMassState(np.linspace(-1.5, 1.5, 5), np.zeros(5), clock)
    yield Pendulum(), PendulumState(np.linspace(-7, 7, 5), np.zeros(5), clock)
    angles = np.array([[0, 0], [np.pi / 2, 0], [-np.pi / 2, 0], [np.pi, 0], [1, -2]])
    yield two_bodies.TwoBodies(), np.concatenate([angles, 0 * angles], axis=1)


def test_worlds_of_every_size_are_drawn_within_their_sheet_and_a_screen_is_a_square_of_its_pixels():
    for world, states in drawn():
        drawing = scene(world, states)
        for stroke in drawing.strokes:
            points, room = np.asarray(stroke.points, float), stroke.width / 2 if stroke.square else 0.0
            assert points.min() - room >= -1e-9, world
            assert (points.max((0, 1)) + room <= np.array([drawing.width, drawing.height]) + 1e-9).all(), world
        assert any(len(stroke.points) == 5 for stroke in drawing.strokes), world
        if isinstance(world, NoisyTV):
            screen = [stroke for stroke in drawing.strokes if stroke.look == "wall"]
            places = np.array([stroke.points[0, 0] for stroke in screen])
            across = math.ceil(math.sqrt(world.pixels))
            apart = screen[0].width / 0.9
            wanted = [divmod(pixel, across)[::-1] for pixel in range(world.pixels)]  # column, row
            np.testing.assert_allclose((places - places[0]) / apart, wanted, atol=1e-9)
            assert apart * across == pytest.approx(min(2.0, world.side - 0.2))
            lit = [stroke for stroke in drawing.strokes if stroke.look == "lit"]
            assert len(lit) == world.pixels
            for place, pixel, stroke in zip(places, states.screen.T, lit, strict=True):
                np.testing.assert_array_equal(stroke.shown, pixel > 0)
                np.testing.assert_array_equal(stroke.points[0, 0], place)


@pytest.mark.parametrize(("side", "gap"), [(5, "left"), (7, "right")])
def test_mazes_are_walked_as_drawn(side, gap):
    """Cell by cell; nobody moves into a wall, out of one, or out of the room."""
    tables, middle = Maze(side, gap).tables(), side // 2
    gap_at = 0 if gap == "left" else side - 1
    wall = lambda i, j: i == middle and j != gap_at  # noqa: E731
    for state, (i, j) in enumerate(np.ndindex(side, side)):
        expected = []
        for down, right in ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)):
            k, m = i + down, j + right
            free = 0 <= k < side and 0 <= m < side and not wall(k, m) and not wall(i, j)
            expected.append(k * side + m if free else state)
        assert np.asarray(tables.following[state]).tolist() == expected
        assert float(tables.start[state]) == pytest.approx((i == side - 1) / side)
        assert float(tables.reward[state]) == pytest.approx(1.0 if (i, j) == (0, middle) else -0.1)
        np.testing.assert_allclose(tables.features[state], np.array([i, j]) / (side - 1) * 2 - 1, atol=1e-6)


# --- two bodies -------------------------------------------------------------------------------------------------------


def joints_by_hand(body, y, u):
    q, v = y[:2], y[2:]
    load = -body.damping * v - body.gravity * np.array([1, 0.6]) * np.sin(q + body.tilt) - body.spring * (q - q[::-1])
    v = v + body.dt * (body.power * np.clip(u, -1, 1) + load) / float(body.mass)
    return np.concatenate([q + body.dt * v, v])


def drawn_by_hand(q, side):
    """Six dots, three a link, as soft as 0.12; columns to the right, rows against the weight."""
    ends = np.cumsum([0.6 * np.array([np.sin(a), -np.cos(a)]) for a in (q[0], q[0] + q[1])], axis=0)
    dots = [share * ends[0] for share in (1 / 3, 2 / 3, 1)]
    dots += [ends[0] + share * (ends[1] - ends[0]) for share in (1 / 3, 2 / 3, 1)]
    at = [(k + 0.5) * 2.4 / side - 1.2 for k in range(side)]
    return [[max(np.exp(-((x - d[0]) ** 2 + (y - d[1]) ** 2) / (2 * 0.12**2)) for d in dots) for x in at] for y in at]


def test_two_bodies_move_as_said_and_the_action_back_does_the_same():
    rng = np.random.default_rng(0)
    y = rng.uniform(-1, 1, (6, 4)).astype(np.float32)
    u = rng.uniform(-0.3, 0.3, (6, 2)).astype(np.float32)
    strange = two_bodies.Joints(1.7, 2.0, 0.3, 1.1, 0.9, 0.2, 0.05)
    pair = two_bodies.TwoBodies("pixels", mass=1.4, turn=0.7, side=6)

    @jax.jit
    @jax.vmap
    def found(y, u):
        back = pair.exact_back(y, u)
        x, wanted, far = pair.step_x(y, back), pair.step(y, u), strange.step(y, 5 * u)
        return back, x, wanted, far, pair.see(y), pair.step_x(y, u), pair.reward(y), pair.policy(y)

    back, x, wanted, far, seen, turned, reward, torque = map(np.asarray, found(y, u))
    assert np.abs(back).max() < 0.7  # so that nothing is cut
    np.testing.assert_allclose(x, wanted, atol=1e-5)
    gears = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    for row in range(6):
        np.testing.assert_allclose(wanted[row], joints_by_hand(pair.body, y[row], u[row]), atol=1e-5)
        np.testing.assert_allclose(far[row], joints_by_hand(strange, y[row], 5 * u[row]), atol=1e-5)
        np.testing.assert_allclose(turned[row], joints_by_hand(pair.other, y[row], gears @ u[row]), atol=1e-5)
        before = y[row, :2] - 0.1 * y[row, 2:]
        np.testing.assert_allclose(seen[row, ..., 0], drawn_by_hand(y[row, :2], 6), atol=1e-4)
        np.testing.assert_allclose(seen[row, ..., 1], drawn_by_hand(before, 6), atol=1e-4)
        off = y[row, :2] - [0.8, -0.6]
        assert reward[row] == pytest.approx(-(off**2).sum(), rel=1e-4)
        still = joints_by_hand(pair.body, np.concatenate([y[row, :2], [0, 0]]), np.zeros(2))[2:] / 0.1
        np.testing.assert_allclose(torque[row], np.clip((-6 * off - 4 * y[row, 2:] - still) / 3, -1, 1), atol=1e-4)


def test_free_masses_move_as_said():
    plane, circle = two_bodies.FreeMass("plane", dt=0.3), two_bodies.FreeMass("circle", dt=0.3)

    @jax.jit
    def found(keys):
        first = jax.vmap(plane.reset)(keys), jax.vmap(circle.reset)(keys)
        moved = plane.step(jnp.array([2.0, -1, 0.5, 0.2]), jnp.array([0.5, -3.0]))
        return first, moved, circle.step(jnp.array([0.6, 0.8, -0.4]), jnp.array([0.5]))

    (places, turns), moved, turned = jax.tree.map(np.asarray, found(jax.random.split(KEY, 400)))
    np.testing.assert_allclose(moved, [2 + 0.3 * 0.65, -1 - 0.3 * 0.1, 0.65, -0.1], atol=1e-5)
    angle, speed = np.arctan2(0.8, 0.6), -0.4 + 0.3 * 3 * 0.5
    np.testing.assert_allclose(turned, [np.cos(angle + 0.3 * speed), np.sin(angle + 0.3 * speed), speed], atol=1e-5)
    # 1.5 times squares of uniforms; anywhere on the circle, speeds within ±1.
    assert ((places[:, :2] >= [2, -1]) & (places[:, :2] <= [3.5, 0.5])).all()
    np.testing.assert_allclose(places[:, :2].mean(0), [2.5, -0.5], atol=4.5 * 1.5 * np.sqrt(4 / 45 / 400))
    np.testing.assert_allclose(np.hypot(turns[:, 0], turns[:, 1]), 1, atol=1e-5)
    np.testing.assert_allclose(turns[:, :2].mean(0), 0, atol=4.5 * np.sqrt(0.5 / 400))
    for speeds in (places[:, 2], turns[:, 2]):
        assert np.abs(speeds).max() <= 1
        assert np.std(speeds) == pytest.approx(3**-0.5, rel=0.15)


def test_episodes_are_one_after_the_other():
    """States, actions and next states of each, in order; the noise of its own steps."""
    first, noise = jnp.arange(3.0)[:, None] * 100, jnp.arange(12.0).reshape(3, 4, 1) / 100
    step, act = lambda y, u: y + 1 + u, lambda noise, y: noise + y / 1000
    found = jax.jit(lambda: two_bodies.walk(first, noise, step, act))()
    expected = []
    for episode in range(3):
        y = 100.0 * episode
        for at in range(4):
            u = (4 * episode + at) / 100 + y / 1000
            expected.append((y, u, y + 1 + u))
            y = y + 1 + u
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, rtol=1e-5)


# --- a car ------------------------------------------------------------------------------------------------------------


def test_a_car_is_cut_stopped_by_the_wall_and_stays_at_the_goal():
    """Gymnasium's mountain car: the speed within ±0.07, none at the wall on the left, no way beyond the goal."""
    places = np.float32([-1.19, -1.2, -0.5, 0.48, 0.5, -0.9, 0.2])
    speeds = np.float32([-0.06, 0.0, 0.0699, 0.05, 0.03, -0.07, -0.02])
    theta, car = np.array([2.0, -1.0, 0.3]), training_runs.CarInValley()
    step = jax.jit(jax.vmap(lambda x, v: car.step(KEY, jnp.asarray(theta, jnp.float32), (x, v))))
    (found, pace), costs = jax.tree.map(np.asarray, step(places, speeds))
    for row, (x, v) in enumerate(zip(places.astype(float), speeds.astype(float), strict=True)):
        force = np.tanh(theta @ [1, x + 0.5, 20 * v])
        v = min(max(v + 0.0015 * force - 0.0025 * np.cos(3 * x), -0.07), 0.07)
        at = x + v
        if x >= 0.5:
            at, v = 0.5, 0.0
        elif at <= -1.2:
            at, v = -1.2, 0.0
        at = min(at, 0.5)
        np.testing.assert_allclose((found[row], pace[row], costs[row]), (at, v, 1 - np.sin(3 * at)), atol=2e-6)


def test_sensors_are_random_networks_of_the_state():
    """W₂ tanh(W₁ y + b), another one for every key, with deviations ½, ½ and ¼."""
    plane, circle = two_bodies.FreeMass("plane"), two_bodies.FreeMass("circle")
    for world, size, actions in ((two_bodies.TwoBodies(seed=3), 4, 2), (plane, 4, 2), (circle, 3, 1)):
        drawn = world.drawn(KEY)
        first, bias, second = (np.asarray(leaf, float) for leaf in jax.tree.leaves(drawn.glass))
        assert (first.shape, bias.shape, second.shape) == ((64, size), (64,), (12, 64))
        assert world.num_actions == drawn.num_actions == actions
        for values, deviation in ((first, 0.5), (bias, 0.5), (second, 0.25)):
            assert values.std() == pytest.approx(deviation, rel=4.5 / np.sqrt(2 * values.size))
        y = np.linspace(-1, 1, size)
        np.testing.assert_allclose(
            drawn.see(jnp.asarray(y, jnp.float32)), second @ np.tanh(first @ y + bias), rtol=1e-4
        )
        other = world.drawn(jax.random.key(8)).glass
        assert not np.array_equal(first, np.asarray(other.first))
    assert circle.see(y) is y
    rng = np.random.default_rng(3)
    glass = two_bodies.TwoBodies(seed=3).glass
    np.testing.assert_allclose(glass.first, 0.5 * rng.normal(size=(64, 4)), rtol=1e-6)


def test_what_is_drawn_anew_is_one_thing_and_all_other_settings_stay():
    """Of settings that are not the defaults; the room of pixels keeps its own room's, too."""
    rooms = Room(3, limit=7, goal=1), Hearth(3, limit=7, warm=1, bright=2.0)
    pair, mass = (
        two_bodies.TwoBodies("network", mass=1.4, turn=0.7, side=6, seed=2),
        two_bodies.FreeMass("circle", dt=0.3),
    )
    worlds = [(Chain(5, limit=7, seed=3, deadly=True), "forward"), (rooms[0], "goal"), (rooms[1], "warm")]
    worlds += [(PixelRoom(rooms[0], 3, goal_seen=False), "room"), (pair, "glass"), (mass, "glass")]
    for world, drawn in worlds:
        others = [world.drawn(jax.random.key(k)) for k in range(4)]
        for field, value in vars(world).items():
            same = [bool(eqx.tree_equal(value, getattr(other, field))) for other in others]
            assert all(same) if field != drawn else not all(same), (type(world).__name__, field)
        assert all(type(other) is type(world) for other in others)
    drawn = PixelRoom(rooms[0], 3).drawn(KEY).room
    assert (drawn.side, drawn.limit) == (3, 7)
