"""Dynamics cycle-consistency against closed forms: every term by hand, symmetries, the pool, units, baselines."""

import itertools
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate._core import Status
from laureate.control import correspondence_networks as networks
from laureate.control.dynamics_cycle import rows_of, warn_if_collapsed
from laureate.problems.two_bodies import FreeMass, Joints, TwoBodies
from laureate.testing import KeyRecorder

QUICK = {"xla_backend_optimization_level": 0}
RNG = np.random.default_rng(0)


def quick(function):
    """Compiled without optimising."""
    return eqx.filter_jit(function, compiler_options=QUICK)  # pyright: ignore[reportCallIssue]


def table(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(np.float32)


class Line(eqx.Module):
    """A linear map of all that it is given."""

    matrix: jax.Array

    def __call__(self, *parts):
        return self.matrix @ jnp.concatenate(parts)


def line(outputs, inputs, seed=0):
    return Line(jnp.asarray(table(outputs, inputs, seed=seed)))


# X shows 3 numbers and takes 2 actions; Y shows 2 and takes 3: swapped arguments have the wrong shape.
G, F, H, P = line(2, 3), line(2, 5, 1), line(3, 5, 2), line(2, 5, 3)
D, D_U, D_A = line(1, 2, 4), line(1, 3, 5), line(1, 2, 6)
X = c.Transitions(*(jnp.asarray(table(6, n, seed=s)) for n, s in ((3, 7), (2, 8), (3, 9))))
Y = c.Transitions(*(jnp.asarray(table(6, n, seed=s)) for n, s in ((2, 10), (3, 11), (2, 12))))
PAIRS = (jnp.asarray(table(6, 3, seed=13)), jnp.asarray(table(6, 2, seed=14)))
WEIGHTS = {"dynamics": 1.3, "adversarial": 0.7, "ahead": 0.4, "action_adversarial": 0.9, "action_cycle": 0.6}
UNITS_X = c.Units(jnp.array([0.1, -0.2, 0.3]), jnp.array([1.5, 0.5, 2.0]))
UNITS_Y = c.Units(jnp.array([0.4, -0.1]), jnp.array([0.8, 1.7]))


def method(loss="lsgan", **settings):
    judges = [c.PooledCritic(network, 0.01, num_kept=4, loss=loss) for network in (D, D_U, D_A)]
    given = {**WEIGHTS, "paired": 0.8, "learning_rate": 0.05, "x_units": UNITS_X, "y_units": UNITS_Y} | settings
    return c.DynamicsCycle(G, F, judges[0], H, P, judges[1], judges[2], **given)


@pytest.fixture(scope="module")
def walked():
    """Losses, their gradients, and three steps: of the states, of the actions, of both."""

    @quick
    def run(model, x, y, pairs):
        state = model.init(x, y)
        value = lambda arrays: model.losses(x, y, state._replace(state_map=arrays[0], action_maps=arrays[1]), pairs)[0]  # noqa: E731
        arrays = (state.state_map, state.action_maps)
        slopes = jax.grad(value)(arrays)
        kinds, steps = ("states", "actions", "both"), []
        for number, phase in enumerate(kinds):
            state, info = model.step(jax.random.key(number), x, y, state, phase=phase, pairs=pairs)
            steps.append((state, info))
        return model.losses(x, y, model.init(x, y), pairs), slopes, steps, model.forward

    return run


def parts_by_hand(loss, first=G, acting=H):
    """Every term, and what was made, with NumPy alone."""
    real = {"lsgan": lambda d: (d - 1) ** 2, "log": lambda d: np.log1p(np.exp(-d))}[loss]
    g, f, h, p = (np.asarray(network.matrix, float) for network in (first, F, acting, P))
    d, d_u, d_a = (np.asarray(network.matrix, float) for network in (D, D_U, D_A))
    scaled = lambda rows, units: (np.asarray(rows, float) - np.asarray(units.mean)) / np.asarray(units.deviation)  # noqa: E731
    x, after, a = scaled(X.observation, UNITS_X), scaled(X.following, UNITS_X), np.asarray(X.action, float)
    y, u = scaled(Y.observation, UNITS_Y), np.asarray(Y.action, float)
    both = lambda *rows: np.concatenate(rows, axis=1)  # noqa: E731
    here, there, acted = x @ g.T, after @ g.T, both(x, a) @ h.T
    ahead, back = both(here, acted) @ f.T, both(y, u) @ p.T
    known = np.abs(scaled(PAIRS[0], UNITS_X) @ g.T - scaled(PAIRS[1], UNITS_Y)).mean()
    parts = [np.abs(there - ahead).mean(), real(here @ d.T).mean(), real(ahead @ d.T).mean()]
    parts += [real(acted @ d_u.T).mean() + real(back @ d_a.T).mean()]
    parts += [np.abs(both(here, acted) @ p.T - a).mean(), known]
    return parts, (here, acted, back)


@pytest.mark.parametrize("loss", ["lsgan", pytest.param("log", marks=pytest.mark.slow)])
def test_every_term_is_the_one_by_hand(walked, loss):
    (value, (parts, made)), _, _, _ = walked(method(loss), X, Y, PAIRS)
    wanted, rows = parts_by_hand(loss)
    np.testing.assert_allclose(parts, wanted, rtol=1e-4)
    np.testing.assert_allclose(value, np.dot([1.3, 0.7, 0.4, 0.9, 0.6, 0.8], wanted), rtol=1e-4)
    for found, by_hand in zip(made, rows, strict=True):
        np.testing.assert_allclose(found, by_hand, rtol=1e-3, atol=1e-4)


def test_gradients_pass_through_the_forward_model(walked):
    """Finite differences of the NumPy loss: by G it has terms by way of F's first argument, by H by its second."""
    _, (by_g, (by_h, _)), _, _ = walked(method(), X, Y, PAIRS)
    weights = np.array([1.3, 0.7, 0.4, 0.9, 0.6, 0.8])
    for name, network, found in (("first", G, by_g), ("acting", H, by_h)):
        for at in ((0, 0), (1, 2)):
            moved = [Line(network.matrix.at[at].add(step)) for step in (2e-3, -2e-3)]
            up, down = (np.dot(weights, parts_by_hand("lsgan", **{name: one})[0]) for one in moved)
            assert float(found.matrix[at]) == pytest.approx((up - down) / 4e-3, rel=0.02, abs=0.01)


def test_whose_turn_it_is_not_keeps_still_and_the_forward_model_always(walked):
    _, _, ((one, first), (two, second), (three, _)), forward = walked(method(), X, Y, PAIRS)
    same = lambda a, b: all(np.array_equal(p, q) for p, q in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))  # noqa: E731
    start = eqx.filter((H, P), eqx.is_inexact_array)
    assert same(one.action_maps, start)
    assert not same(one.state_map, G)
    assert same(two.state_map, one.state_map)
    assert not same(two.action_maps, one.action_maps)
    assert same(two.optimisers[0], one.optimisers[0])
    assert not same(three.state_map, two.state_map)
    assert not same(three.action_maps, two.action_maps)
    assert same(forward, F)
    assert [int(first.cost), int(first.status), int(three.step)] == [6, int(Status.OK), 3]
    assert not same(two.critics[0].parameters, one.critics[0].parameters)
    made = parts_by_hand("lsgan")[1][0]
    given = (np.asarray(Y.observation) - np.asarray(UNITS_Y.mean)) / np.asarray(UNITS_Y.deviation)
    assert float(first.spread) == pytest.approx((made.var(0) / given.var(0)).min(), rel=1e-3)
    # D_Y has learned from normalised states and what the pool showed of G's: four rows fill it, two may meet them.
    d, drawn = (
        np.asarray(D.matrix, float),
        np.asarray(jax.random.uniform(jax.random.split(jax.random.key(0), 3)[0], (6, 2))),
    )
    shown, pool = made.copy(), made[:4].copy()
    for row in (4, 5):
        if drawn[row, 1] < 0.5:
            at = int(drawn[row, 0] * 4)
            shown[row], pool[at] = pool[at], made[row]
    by_hand = 0.5 * ((given @ d.T - 1) ** 2).mean() + 0.5 * ((shown @ d.T) ** 2).mean()
    assert float(first.critic) == pytest.approx(by_hand, rel=1e-4)
    assert float(second.dynamics) > 0


# --- symmetries -------------------------------------------------------------------------------------------------------


def test_linear_systems_are_matched_by_the_inverse_and_by_its_symmetric_images_alone():
    """y' = A y + B u, x = M y: the loss is 0 at S M⁻¹ for S of the commutant and positive elsewhere."""
    a = np.diag([0.9, 0.5, 0.5]) + np.array([[0, 0, 0], [0.3, 0, 0], [0, 0, 0]])
    b = np.array([[1.0], [0.2], [0.0]])  # the third number is not reached by the action
    m = table(3, 3, seed=3).astype(float)
    changes, offsets = c.symmetries(a, b)
    # By brute force: the rank of all equations, entry by entry.
    rows = []
    for i, j in itertools.product(range(3), range(3)):
        e = np.zeros((3, 3))
        e[i, j] = 1
        rows.append(np.concatenate([(e @ a - a @ e).ravel(), (e @ b).ravel()]))
    assert len(changes) == 9 - np.linalg.matrix_rank(np.array(rows), tol=1e-9) > 0
    assert len(offsets) == 0
    y, u = table(20, 3, seed=5).astype(float), table(20, 1, seed=6).astype(float)
    after = y @ a.T + u @ b.T

    def cycle(s, offset=0.0):
        here, there = y @ m.T @ np.linalg.inv(m).T @ s.T + offset, after @ s.T + offset
        return np.abs(there - (here @ a.T + u @ b.T)).mean()

    for change in changes:
        assert cycle(np.eye(3) + 0.7 * change) < 1e-9
    assert cycle(np.eye(3) + 0.1 * table(3, 3, seed=8)) > 1e-3
    plane = np.block([[np.eye(2), 0.2 * np.eye(2)], [np.zeros((2, 2)), np.eye(2)]])
    changes, offsets = c.symmetries(plane, np.concatenate([0.04 * np.eye(2), 0.2 * np.eye(2)]))
    assert (len(changes), len(offsets)) == (0, 2)
    np.testing.assert_allclose(offsets[:, 2:], 0, atol=1e-9)


def test_the_loss_of_the_method_is_zero_at_the_inverse():
    a, b, m = 0.8 * np.eye(3) + 0.1 * table(3, 3), table(3, 2), table(3, 3, seed=3)
    y, u = table(9, 3, seed=5), table(9, 2, seed=6)
    after = y @ a.T + u @ b.T
    x = c.Transitions(*map(jnp.asarray, (y @ m.T, u, after @ m.T)))
    y = c.Transitions(*map(jnp.asarray, (y, u, after)))
    step = Line(jnp.asarray(np.concatenate([a, b], axis=1), jnp.float32))

    @quick
    def value(matrix):
        model = c.DynamicsCycle(Line(matrix), step, None)
        return model.losses(x, y, model.init(x, y))[1][0][0]

    right = np.linalg.inv(m).astype(np.float32)
    assert float(value(right)) < 1e-4
    assert float(value(right + 0.1)) > 1e-2


@pytest.mark.slow
def test_training_finds_the_inverse_of_a_linear_sensor():
    """From G = 0, with the true step as F and no adversary: a system without symmetries leaves one map."""
    a, b = np.array([[0.9, 0.2], [-0.3, 0.7]]), np.array([[0.5], [1.0]])
    m, rng = np.array([[1.0, 0.4], [-0.2, 0.8]]), np.random.default_rng(0)
    assert [len(basis) for basis in c.symmetries(a, b)] == [0, 0]

    def steps(see):
        y, u = rng.normal(size=(400, 2)), rng.uniform(-1, 1, (400, 1))
        after = y @ a.T + u @ b.T
        return c.Transitions(*(jnp.asarray(part, jnp.float32) for part in (y @ see.T, u, after @ see.T)))

    x, y = steps(m), steps(np.eye(2))
    step = Line(jnp.asarray(np.concatenate([a, b], axis=1), jnp.float32))
    model = c.DynamicsCycle(Line(jnp.zeros((2, 2))), step, None, dynamics=1.0, learning_rate=3e-3)
    state, _ = quick(lambda: model.train(jax.random.key(0), x, y, model.init(x, y), num_steps=2000))()
    np.testing.assert_allclose(state.state_map.matrix @ m, np.eye(2), atol=0.1)


def signed_permutations():
    for order, signs in itertools.product(itertools.permutations(range(2)), itertools.product((1, -1), repeat=2)):
        yield np.eye(2)[list(order)] * np.array(signs)


@pytest.mark.parametrize(("tilt", "number"), [(0.4, 1), (0.0, 2)])
def test_the_symmetry_group_of_the_joints_by_enumeration(tilt, number):
    """All pairs of signed permutations of joints and of actions under which a step commutes: with a tilt only one."""
    joints, y, u = Joints(tilt=tilt), table(5, 4, seed=1), 0.3 * table(5, 2, seed=2)
    ups = [np.kron(np.eye(2), s).astype(np.float32) for s in signed_permutations()]
    turns = [r.astype(np.float32) for r in signed_permutations()]
    step = quick(lambda y, u: jax.vmap(joints.step)(y, u))
    starts = np.concatenate([y @ s.T for s in ups for _ in turns])
    moved = np.asarray(step(starts, np.concatenate([u @ r.T for _ in ups for r in turns])))
    after = np.asarray(step(np.tile(y, (64, 1)), np.tile(u, (64, 1))))[:5]
    fits = [
        np.abs(moved[5 * k : 5 * k + 5] - after @ s.T).max() < 1e-5
        for k, (s, _) in enumerate(itertools.product(ups, turns))
    ]
    assert sum(fits) == number


# --- critics ----------------------------------------------------------------------------------------------------------


def test_the_pool_is_the_one_row_by_row():
    """Batches of 5 into a pool of 3, so that rows of one batch meet each other; against a plain loop."""
    critic = c.PooledCritic(D, num_kept=3)
    exchange = quick(lambda *given: critic.exchange(*given))
    state = critic.init(jnp.zeros(2, jnp.uint8))  # pixels as Y shows them; what is made of them are not
    pool, filled = np.zeros((3, 2), np.float32), 0
    for number in range(6):
        made, key = table(5, 2, seed=20 + number), jax.random.key(number)
        drawn = np.asarray(jax.random.uniform(key, (5, 2)))
        shown, kept, count = exchange(key, jnp.asarray(made), state)
        wanted = []
        for row, (place, swap) in zip(made, drawn, strict=True):
            if filled < 3:
                pool[filled], filled = row, filled + 1
                wanted.append(row)
            elif swap < 0.5:
                at = int(place * 3)
                wanted.append(pool[at].copy())
                pool[at] = row
            else:
                wanted.append(row)
        np.testing.assert_array_equal(shown, wanted)
        np.testing.assert_array_equal(kept, pool)
        assert int(count) == filled
        state = state._replace(pool=kept, filled=count)
    assert critic.init(jnp.zeros(2, jnp.float16)).pool.dtype == jnp.float32


def test_the_best_critic_of_two_laws_is_the_ratio():
    """D = p / (p + q) on two letters, p = (¾, ¼), q = (¼, ¾): there nothing is learned, elsewhere it is."""
    given, made = jnp.eye(2)[jnp.array([0, 0, 0, 1])], jnp.eye(2)[jnp.array([0, 1, 1, 1])]

    @quick
    def moved(values):
        critic = c.PooledCritic(Line(values[None]), 0.1, num_kept=0)
        state, info = critic.step(jax.random.key(0), given, made, critic.init(given[0]))
        other = c.PooledCritic(Line(values[None]), 0.1, num_kept=0, loss="log")
        also, told = other.step(jax.random.key(0), given, made, other.init(given[0]))
        logs = also.parameters.matrix[0], told.loss, other.fooled(made, other.init(given[0]))
        return state.parameters.matrix[0], info.loss, critic.fooled(made, critic.init(given[0])), logs

    best, loss, fooled, _ = moved(jnp.array([0.75, 0.25]))
    np.testing.assert_array_equal(best, [0.75, 0.25])
    assert float(loss) == pytest.approx(0.5 * (0.75 * 0.0625 + 0.25 * 0.5625) + 0.5 * (0.25 * 0.5625 + 0.75 * 0.0625))
    assert float(fooled) == pytest.approx(0.25 * 0.0625 + 0.75 * 0.5625)
    up, _, _, (logit, entropy, missed) = moved(jnp.array([0.5, 0.5]))
    assert logit[0] > 0.55  # −log σ(d) at given rows, −log(1 − σ(d)) at made ones
    assert logit[1] < 0.45
    assert float(entropy) == pytest.approx(0.5 * np.log1p(np.exp(-0.5)) + 0.5 * np.log1p(np.exp(0.5)), rel=1e-5)
    assert float(missed) == pytest.approx(np.log1p(np.exp(-0.5)), rel=1e-5)
    assert up[0] > 0.55
    assert up[1] < 0.45


class Spy(c.DynamicsCycle):
    """Tells what it was given in place of learning from it."""

    def step(self, key, x, y, state, *, phase="states", pairs=None):  # pyright: ignore[reportIncompatibleMethodOverride]
        rows = x.observation[:, 0], y.observation[:, 0], pairs[0][:, 0], pairs[1][:, 0]
        return state._replace(step=state.step + 1), rows


class Counted(c.DynamicsCycle):
    """Does no steps, and tells which ones it would have done."""

    def fit_forward(self, key, y, num_steps, batch=64):
        jax.random.normal(key)
        return self, c.ForwardInfo(*[jnp.asarray(0)] * 4)

    def train(self, key, x, y, state, *, num_steps, batch=32, phase="states", pairs=None):
        kind = {"states": 1.0, "actions": 2.0}[phase]
        jax.random.uniform(key)
        return state, c.DynamicsCycleInfo(*[jnp.full(num_steps, kind)] * 11)


def test_rows_of_x_y_and_pairs_are_drawn_apart_and_pairs_stay_together():
    number = jnp.arange(50.0)[:, None]
    steps, pairs = c.Transitions(number, number[:, :0], number), (number, 100 + number)
    model = Spy(lambda x: x, lambda y, u: y, None, paired=1.0)
    other = steps._replace(observation=number + 0.0)
    with pytest.warns(c.CorrespondenceWarning):
        _, rows = quick(
            lambda: model.train(jax.random.key(0), steps, other, model.init(steps, other), num_steps=3, pairs=pairs)
        )()
    of_x, of_y, first, second = (np.asarray(part) for part in rows)
    np.testing.assert_array_equal(second, 100 + first)
    for a, b in itertools.combinations((of_x, of_y, first), 2):
        assert np.mean(a == b) < 0.2
    assert len(np.unique(first)) > 25


class SpyGAN(c.CycleGAN):
    """Tells what it was given in place of learning from it."""

    def step(self, key, x, y, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        return state._replace(step=state.step + 1), (*x, *y)


def test_a_gan_draws_both_domains_apart_and_from_all_their_rows():
    number = jnp.arange(6.0)[:, None]
    x, y = c.Transitions(number, 10 + number, 20 + number), c.Transitions(*(30 + k + number[:4] for k in (0, 10, 20)))
    judge = c.PooledCritic(jnp.sum, num_kept=0)
    gan = SpyGAN(jnp.sin, jnp.sin, judge, judge)
    state, rows = quick(lambda: gan.train(jax.random.key(0), x, y, gan.init(x, y), num_steps=4, batch=40))()
    assert int(state.step) == 4
    first, action, after, other, turned, moved = (np.asarray(part)[..., 0] for part in rows)
    np.testing.assert_array_equal(action, first + 10)  # the parts of a step stay together
    np.testing.assert_array_equal(after, first + 20)
    np.testing.assert_array_equal(turned, other + 10)
    np.testing.assert_array_equal(moved, other + 20)
    assert set(np.unique(first)) == set(range(6))
    assert set(np.unique(other)) == set(range(30, 34))
    assert len({row.tobytes() for row in first}) == 4, "every step has a batch of its own"
    assert np.abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 5 / np.sqrt(first.size)
    assert rows_of(np.array([0.0, 0.26, 0.5, 1 - 1e-9], np.float32), np.arange(4), 4).tolist() == [0, 1, 2, 3]


def test_every_row_of_either_domain_and_of_pairs_is_as_likely_as_others_however_many_there_are():
    """The rows by hand, from the numbers drawn: x, y and pairs of different lengths, x the longer for one method."""
    key, judge = jax.random.key(3), c.PooledCritic(jnp.sum, num_kept=0)
    domain = lambda number, shift: c.Transitions(*[shift + jnp.arange(float(number))[:, None]] * 3)  # noqa: E731
    many, few, pairs = domain(6, 0), domain(4, 100), (jnp.arange(7.0)[:, None], 50 + jnp.arange(7.0)[:, None])
    cycle, gan = Spy(jnp.sin, lambda y, u: y, None, paired=1.0), SpyGAN(jnp.sin, jnp.sin, judge, judge)

    @quick
    def drawn():
        told = cycle.train(key, many, few, cycle.init(many, few), num_steps=2, batch=40, pairs=pairs)[1]
        also = gan.train(key, few, many, gan.init(few, many), num_steps=2, batch=40)[1]
        keys = [jax.random.split(jax.random.fold_in(key, step))[0] for step in range(2)]
        return told, (also[0], also[3]), [[jax.random.uniform(one, (k, 40)) for one in keys] for k in (3, 2)]

    found: Any = drawn()
    (of_x, of_y, first, second), others, (three, two) = found
    rows = lambda numbers, lengths: np.floor(np.asarray(numbers) * np.array(lengths)[:, None])  # noqa: E731
    np.testing.assert_array_equal(np.stack([of_x, of_y - 100, first], 1), rows(three, (6, 4, 7)))
    np.testing.assert_array_equal(second, first + 50)
    np.testing.assert_array_equal(np.stack([others[0][..., 0] - 100, others[1][..., 0]], 1), rows(two, (4, 6)))


def test_a_fit_has_as_many_steps_as_its_rounds():
    small = Y._replace(action=0.1 * Y.action)
    apart = X._replace(action=0.1 * X.action)
    more = {"num_forward": 1, "num_steps": 2, "num_rounds": 3}
    with KeyRecorder() as recorder:
        told = Counted(G, F, None, H, P).fit(jax.random.key(0), apart, small, **more)[2]
        assert not recorder.reused(shared=6), "of F, and of all turns, which number their steps"
    assert told.loss.tolist() == [1, 1, 2, 2] * 3
    same = apart._replace(action=small.action)
    assert Counted(G, F, None).fit(jax.random.key(0), same, small, **more)[2].loss.tolist() == [1] * 6


# --- forward model, units, transfer -----------------------------------------------------------------------------------


def test_a_forward_model_is_fitted_in_units_and_judged_on_steps_held_out():
    y, u = 5 * table(200, 2, seed=30) + 3, table(200, 3, seed=31)
    f = 0.3 * np.asarray(F.matrix)
    units = c.Units.of(jnp.asarray(y))
    after = (y - units.mean) / units.deviation @ f[:, :2].T + u @ f[:, 2:].T
    steps = c.Transitions(*map(jnp.asarray, (y, u, np.asarray(units.restore(jnp.asarray(after))))))
    # The last tenth belongs to another law, which no fit can know.
    broken = steps._replace(following=steps.following.at[180:].add(100.0))
    model = c.DynamicsCycle(G, line(2, 5, 9), None, y_units=units, forward_rate=0.05)
    fit = quick(lambda steps: model.fit_forward(jax.random.key(0), steps, 400, 32))
    fitted, info = fit(steps)
    np.testing.assert_allclose(fitted.forward.matrix, f, atol=0.02)
    assert float(info.error) < 0.02 < float(info.copying)
    assert (int(info.status), int(info.cost)) == (int(Status.OK), 400 * 32)
    bad, info = fit(broken)
    np.testing.assert_allclose(bad.forward.matrix, fitted.forward.matrix, atol=1e-6)
    assert int(info.status) == int(Status.NOT_CONVERGED)
    assert float(info.copying) == pytest.approx(np.abs((broken.following - y)[180:] / units.deviation).mean(), rel=1e-4)
    own = c.Simulator(lambda y, u: y + u[:2], units)
    np.testing.assert_allclose(own(units(y[0]), u[0]), units(jnp.asarray(y[0] + u[0, :2])), rtol=1e-4)


def test_a_policy_crosses_in_its_own_units():
    """π gets ŷ as Y shows it; P gets ŷ normalised and what π says."""
    model = method()
    state = model.init(X, Y)
    policy = lambda y: jnp.stack([y[0], 2 * y[1], y[0] * y[1]])  # noqa: E731
    found = quick(lambda x: (model.transfer(policy, state)(x), model.translate(x[None], state)[0]))(X.observation[0])
    scaled = np.asarray(G.matrix) @ np.asarray(UNITS_X(X.observation[0]))
    raw = scaled * np.asarray(UNITS_Y.deviation) + np.asarray(UNITS_Y.mean)
    u = np.array([raw[0], 2 * raw[1], raw[0] * raw[1]])
    np.testing.assert_allclose(found[1], raw, rtol=1e-4)
    np.testing.assert_allclose(found[0], np.asarray(P.matrix) @ np.concatenate([scaled, u]), rtol=1e-3)
    rows = jnp.asarray(np.stack([np.arange(6.0), np.full(6, 7.0)], axis=1))
    units = c.Units.of(rows)
    assert float(units.deviation[1]) == 1.0  # a number that does not vary
    np.testing.assert_allclose(units.restore(units(rows)), rows, rtol=1e-6)


# --- baselines --------------------------------------------------------------------------------------------------------


def test_cycle_gan_by_hand():
    back, d_x = line(3, 2, 40), line(1, 3, 41)
    critics = c.PooledCritic(D, num_kept=0), c.PooledCritic(d_x, num_kept=0)
    gan = c.CycleGAN(G, back, *critics, cycle=2.0, learning_rate=0.1, x_units=UNITS_X, y_units=UNITS_Y)
    state, info = quick(lambda: gan.step(jax.random.key(0), X, Y, gan.init(X, Y)))()
    g, k, d, e = (np.asarray(network.matrix) for network in (G, back, D, d_x))
    x, y = np.asarray(UNITS_X(X.observation)), np.asarray(UNITS_Y(Y.observation))
    cycle = np.abs(x @ g.T @ k.T - x).mean() + np.abs(y @ k.T @ g.T - y).mean()
    fooled = ((x @ g.T @ d.T - 1) ** 2).mean() + ((y @ k.T @ e.T - 1) ** 2).mean()
    told = [
        ((y @ d.T - 1) ** 2).mean(),
        ((x @ g.T @ d.T) ** 2).mean(),
        ((x @ e.T - 1) ** 2).mean(),
        ((y @ k.T @ e.T) ** 2).mean(),
    ]
    np.testing.assert_allclose([info.cycle_error, info.adversarial], [cycle, fooled], rtol=1e-4)
    np.testing.assert_allclose(info.loss, 2 * cycle + fooled, rtol=1e-4)
    np.testing.assert_allclose(info.critics, 0.5 * sum(told), rtol=1e-4)
    assert int(info.cost) == 6
    assert not np.array_equal(state.maps[1].matrix, k)
    looked = quick(lambda: gan.translate(X.observation, gan.init(X, Y)))()
    np.testing.assert_allclose(looked, np.asarray(UNITS_Y.restore(jnp.asarray(x @ g.T))), rtol=1e-3, atol=1e-5)


def test_a_critic_whose_own_loss_is_not_finite_is_told_whichever_it_is():
    """Given rows whose squares overflow, while the maps make zeros of them and their loss is a number."""
    nothing, judge = jnp.zeros_like, c.PooledCritic(Line(jnp.ones((1, 1))), num_kept=0)
    gan = c.CycleGAN(nothing, nothing, judge, judge)
    cycle = c.DynamicsCycle(nothing, lambda y, u: y, judge)
    steps = lambda size: c.Transitions(*(size * jnp.ones((2, 1)) for _ in range(3)))  # noqa: E731

    @quick
    def status(x, y):
        x, y = steps(x), steps(y)
        infos = [one.step(jax.random.key(0), x, y, one.init(x, y))[1] for one in (gan, cycle)]
        return [info.status for info in infos], [info.loss for info in infos]

    for size_x, size_y, wanted in ((1.0, 1.0, [0, 0]), (1e25, 1.0, [1, 0]), (1.0, 1e25, [1, 1])):
        found, losses = status(np.float32(size_x), np.float32(size_y))
        assert [int(one) for one in found] == wanted
        assert np.isfinite(losses).all()


def test_units_are_kept_of_numbers_that_hardly_vary_and_a_walk_without_episodes_is_one():
    scale = np.array([0.0, 0.09, 0.11, 4.0])
    rows = np.array([[-1.0], [1.0]]) * scale + 3.0  # deviations of these sizes, about 3
    units = c.Units.of(jnp.asarray(rows, jnp.float32))
    np.testing.assert_allclose(units.deviation, [1.0, 1.0, 0.11, 4.0], rtol=1e-4)
    np.testing.assert_allclose(units.mean, 3.0, rtol=1e-6)
    walked = c.transitions_of(np.arange(4.0)[:, None], np.arange(4.0)[:, None])
    assert [part[:, 0].tolist() for part in walked] == [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]
    assert [part.shape for part in c.transitions_of(np.zeros((1, 2)), np.zeros((1, 3)))] == [(0, 2), (0, 3), (0, 2)]


def test_linear_alignments_find_what_they_promise():
    a, b, m = 0.6 * np.eye(3) + 0.15 * table(3, 3), table(3, 2), table(4, 3, seed=3)
    rng = np.random.default_rng(4)

    def steps(see):
        y, u = rng.normal(size=(300, 3)) + 1.0, rng.normal(size=(300, 2))
        after = y @ a.T + u @ b.T + 0.3
        return c.Transitions(*(jnp.asarray(part, jnp.float32) for part in (y @ see.T, u, after @ see.T))), y

    (x, hidden), (y, _) = steps(m), steps(np.eye(3))
    found, dynamics = quick(lambda: (c.dynamics_alignment(x, y, 6, 1e-6), c.fit_linear_dynamics(y)))()
    np.testing.assert_allclose(dynamics.transition, a, atol=1e-3)
    np.testing.assert_allclose(dynamics.control, b, atol=1e-3)
    np.testing.assert_allclose(dynamics.constant, 0.3, atol=1e-3)
    np.testing.assert_allclose(found.matrix @ m, np.eye(3), atol=0.05)
    made = np.asarray(x.observation) @ np.asarray(found.matrix).T + np.asarray(found.offset)
    assert np.abs(made - hidden).mean() < 0.2  # the offset is that of two samples' means
    sizes = ((4, 3), (4, 1), (1, 1))  # numbers of x and of y, also a single one
    each = quick(lambda: [c.moment_alignment(x.observation[:, :p], y.observation[:, :q]) for p, q in sizes])()
    for moments, (p, q) in zip(each, sizes, strict=True):
        given, wanted = np.asarray(x.observation)[:, :p], np.asarray(y.observation)[:, :q]
        made = given @ np.asarray(moments.matrix).T + np.asarray(moments.offset)
        np.testing.assert_allclose(made.mean(0), wanted.mean(0), atol=1e-3)
        np.testing.assert_allclose(np.cov(made.T, ddof=0), np.cov(wanted.T, ddof=0), atol=1e-2)
    one, two = np.asarray(x.observation)[:, 0], np.asarray(y.observation)[:, 0]
    skew = lambda row: ((row - row.mean()) ** 3).mean()  # noqa: E731
    np.testing.assert_allclose(each[-1].matrix, [[np.sign(skew(one) * skew(two)) * two.std() / one.std()]], rtol=1e-3)


def test_kernel_regression_chooses_by_leaving_out():
    x, y = table(12, 3, seed=50), table(12, 2, seed=51)
    penalties = (0.0, 1e-3, 0.1, 3.0)
    fit = quick(lambda x: c.kernel_regression(x, jnp.asarray(y), penalties))
    found = fit(x)
    square = ((x[:, None] - x[None]) ** 2).sum(-1)
    width = np.sqrt(np.median(square[np.triu_indices(12, 1)]))
    kernel, centred, scores = np.exp(-square / (2 * width**2)), y - y.mean(0), []
    for penalty in penalties:
        errors = []
        for out in range(12):
            rest = np.delete(np.arange(12), out)
            inside = kernel[np.ix_(rest, rest)] + penalty * np.eye(11)
            errors.append(((kernel[out, rest] @ np.linalg.solve(inside, centred[rest]) - centred[out]) ** 2).mean())
        scores.append(np.mean(errors))
    weights = np.linalg.solve(kernel + penalties[int(np.argmin(scores))] * np.eye(12), centred)
    assert float(found.penalty) == pytest.approx(penalties[int(np.argmin(scores))])
    np.testing.assert_allclose(found.weights, weights, rtol=1e-2, atol=1e-4)
    np.testing.assert_allclose(found(jnp.asarray(x[0])), kernel[0] @ weights + y.mean(0), rtol=1e-2)
    twice = fit(np.concatenate([x[:1], x[:-1]]))  # without a penalty singular: passed over
    assert float(twice.penalty) > 0
    assert np.isfinite(twice.weights).all()


def test_a_regression_on_pixels_is_that_on_the_same_numbers():
    """Differences of bytes would wrap, and penalties of whole numbers be 0."""
    pixels, y = np.random.default_rng(3).integers(0, 256, (9, 4)), table(9, 2, seed=51)
    fit = quick(lambda x: c.kernel_regression(x, jnp.asarray(y)))
    wanted = fit(pixels.astype(np.float32))
    for kind in (np.uint8, np.int32, np.float16):
        found = fit(pixels.astype(kind))
        for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5)


def test_the_distance_of_steps_is_the_energy_distance():
    one = c.Transitions(*(jnp.asarray(table(5, 2, seed=s)) for s in (60, 61, 62)))
    two = c.Transitions(*(jnp.asarray(table(7, 2, seed=s)) for s in (63, 64, 65)))
    rows = [np.concatenate([s.observation, s.action, s.following - s.observation], axis=1) for s in (one, two)]
    s, t = (part / rows[1].std(0) for part in rows)
    mean = lambda a, b: np.mean([np.linalg.norm(p - q) for p in a for q in b])  # noqa: E731
    found, same = quick(lambda: (c.transition_distance(one, two), c.transition_distance(two, two)))()
    assert float(found) == pytest.approx(2 * mean(s, t) - mean(s, s) - mean(t, t), rel=1e-3)
    assert float(same) == pytest.approx(0.0, abs=1e-5)


def test_steps_across_episodes_are_dropped():
    walked = c.transitions_of(np.arange(5.0)[:, None], 10 * np.arange(5.0)[:, None], [0, 0, 1, 1, 2])
    assert [part[:, 0].tolist() for part in walked] == [[0.0, 2.0], [0.0, 20.0], [1.0, 3.0]]


def test_patches_are_squares_of_the_image():
    image = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    encoder = c.PatchEncoder(lambda patch: jnp.stack([patch[0], jnp.sum(patch)]), lambda code: code, 2)
    wanted = [(image[i, j, 0], image[i : i + 2, j : j + 2].sum()) for i in (0, 2) for j in (0, 2, 4)]
    np.testing.assert_allclose(quick(encoder)(jnp.asarray(image)), np.ravel(wanted), rtol=1e-6)


def told_of(**numbers):
    """The infos of a run: what is not given is 1 everywhere."""
    length = len(next(iter(numbers.values())))
    return c.DynamicsCycleInfo(*[np.ones(length)] * 11)._replace(**numbers)


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (told_of(spread=np.r_[np.ones(36), 0.001, 0.001, 0.001, 0.5]), "state_map has collapsed"),
        (told_of(spread=np.r_[np.ones(36), 0.001, 0.02, 0.02, 0.5]), ""),  # the median of the last tenth
        (told_of(spread=np.r_[np.full(36, 0.001), np.ones(4)]), ""),  # it has come back
        (told_of(spread=np.array([1.0, 1.0, 0.001])), "state_map has collapsed"),  # of a short run the last step
        (told_of(spread=np.array([1.0, 0.001, 1.0])), ""),
        (told_of(critic=np.r_[np.ones(36), np.full(4, 5e-4)]), "critic is always right"),
        (told_of(critic=np.r_[np.ones(36), 5e-4, 5e-4, 0.2, 5e-4]), ""),
        (told_of(critic=np.zeros(40)), ""),  # there is none
    ],
)
def test_a_run_that_has_come_to_nothing_is_warned_of_by_its_last_tenth(history, said):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_collapsed(history)
    assert [said in str(one.message) for one in caught] == [True] * bool(said)
    assert all(one.category is c.CorrespondenceWarning for one in caught)


class Poor(Counted):
    """Its forward model is as good as copying, which it tells."""

    def fit_forward(self, key, y, num_steps, batch=64):
        return self, c.ForwardInfo(jnp.asarray(0.95), jnp.asarray(1.0), jnp.asarray(0), jnp.asarray(2))


def test_a_forward_model_that_copies_is_refused_unless_one_goes_on_or_brings_one_s_own():
    apart, small = X._replace(action=0.1 * Y.action), Y._replace(action=0.1 * Y.action)
    fit = lambda **more: Poor(G, F, None).fit(jax.random.key(0), apart, small, num_steps=2, num_rounds=3, **more)[2]  # noqa: E731
    with pytest.raises(
        ValueError, match=r"forward must be better than 0\.9 times copying; got 'error 0\.95, copying 1'"
    ):
        fit(num_forward=1)
    for more in ({"num_forward": 1, "force": True}, {"num_forward": 0}):
        assert fit(**more).loss.tolist() == [1] * 6


def test_networks_are_planned_as_their_makers_say_and_begin_at_what_is_known(monkeypatch):
    """Sizes, gains and whose critic is whose, without a weight; X shows 3 numbers and takes 4, Y 2 and 5."""
    monkeypatch.setattr(networks, "make_perceptrons", lambda key, *plans: list(plans))
    x = c.Transitions(*(jnp.asarray(table(6, n)) for n in (3, 4, 3)))
    y = c.Transitions(*(jnp.asarray(table(6, n)) for n in (2, 5, 2)))
    key, plan = jax.random.key(0), lambda *sizes: c.Layers(sizes)
    given: Any = {"width": 6, "depth": 2, "num_kept": 7, "loss": "log", "dynamics": 9.0}
    made: Any = c.make_dynamics_cycle(key, x, y, acts=True, prior=lambda a: a, back_prior=jnp.sin, **given)
    assert made.state_map.network == plan(3, 6, 6, 2)
    assert made.forward.network == plan(7, 6, 6, 2)
    judges = made.critic, made.action_critic, made.back_critic
    assert [judge.network for judge in judges] == [plan(2, 6, 6, 1), plan(5, 6, 6, 1), plan(4, 6, 6, 1)]
    assert {(judge.num_kept, judge.loss) for judge in judges} == {(7, "log")}
    inner = lambda one: [layer.fn for layer in one.network.layers]  # noqa: E731
    assert inner(made.action_map) == [c.Layers((7, 6, 6), last=True), c.Layers((6, 5), 0.01)]
    assert inner(made.action_back) == [c.Layers((7, 6, 6), last=True), c.Layers((6, 4), 0.01)]
    assert made.action_back.prior is jnp.sin
    assert made.dynamics == 9.0
    np.testing.assert_allclose(made.x_units.mean, x.observation.mean(0), rtol=1e-5)
    np.testing.assert_allclose(made.y_units.mean, y.observation.mean(0), rtol=1e-5)
    own: Any = c.make_dynamics_cycle(key, x, y, encoder=jnp.sin, x_units=None)
    assert (own.state_map, own.action_map, own.back_critic, own.x_units) == (jnp.sin, None, None, None)
    gan: Any = c.make_cycle_gan(key, x, y, width=6, depth=1, num_kept=7, cycle=3.0)
    parts = gan.state_map, gan.state_back, gan.critic.network, gan.back_critic.network
    assert parts == (plan(3, 6, 2), plan(2, 6, 3), plan(2, 6, 1), plan(3, 6, 1))
    assert (gan.critic.num_kept, gan.back_critic.num_kept, gan.cycle) == (7, 7, 3.0)
    np.testing.assert_allclose(gan.y_units.mean, y.observation.mean(0), rtol=1e-5)
    encoder: Any = c.make_patch_encoder(key, (8, 12, 3), 5, size=4, channels=2, width=6)
    assert (encoder.patches, encoder.network) == (c.Layers((48, 2), last=True), plan(12, 6, 6, 5))
    # What the maps and the forward model add to.
    both = lambda *parts: jnp.concatenate(parts)  # noqa: E731
    ahead = networks.Ahead(lambda z: z[:2] + 10 * z[-1])
    np.testing.assert_array_equal(ahead(jnp.array([1.0, 2.0]), jnp.array([3.0])), [32.0, 34.0])
    towards = networks.Towards(lambda z: z[-2:] + z[0], lambda a: 100 * a)
    np.testing.assert_array_equal(
        towards(both(jnp.ones(1), jnp.zeros(3)).reshape(2, 2), jnp.array([1.0, 2.0])), [102, 203]
    )


# --- problems ---------------------------------------------------------------------------------------------------------


def test_exact_actions_do_in_one_body_what_others_do_in_the_other():
    pair = TwoBodies("same", mass=1.6, turn=0.7)
    y, u = 0.4 * table(6, 4, seed=70), 0.1 * table(6, 2, seed=71)

    @quick
    def both(y, u):
        a = jax.vmap(pair.exact_back)(y, u)
        return a, jax.vmap(pair.step_x)(y, a), jax.vmap(pair.step)(y, u), jax.vmap(pair.step_x)(y, u)

    a, made, wanted, as_is = both(y, u)
    assert np.abs(np.asarray(pair.gears) @ np.asarray(a).T).max() < 1  # within the motors' power
    np.testing.assert_allclose(made, wanted, atol=1e-5)
    assert np.abs(np.asarray(as_is) - wanted).max() > 1e-3


def test_the_second_picture_is_the_one_of_a_moment_ago():
    pair = TwoBodies("pixels", side=8)
    y = np.array([0.4, -0.7, 1.0, 2.0], np.float32)
    before = np.concatenate([y[:2] - 0.1 * y[2:], y[2:]])
    now, then = np.asarray(quick(lambda rows: jax.vmap(pair.see)(rows))(np.stack([y, before])))
    np.testing.assert_allclose(now[..., 1], then[..., 0], atol=1e-5)
    assert np.abs(now[..., 1] - now[..., 0]).max() > 0.05


def test_a_wheel_stays_on_its_circle_and_commutes_with_turns():
    wheel, turn = FreeMass("circle"), 0.9
    r = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]], np.float32)
    y = np.array([[0.6, 0.8, 0.5], [-1.0, 0.0, -0.3]], np.float32)
    step = quick(lambda y, u: jax.vmap(wheel.step)(y, u))
    after = np.asarray(step(y, np.array([[0.4], [-0.7]], np.float32)))
    np.testing.assert_allclose(np.linalg.norm(after[:, :2], axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(step(y @ r.T, np.array([[0.4], [-0.7]], np.float32)), after @ r.T, atol=1e-6)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_by_name():
    good = X
    short = good._replace(action=good.action[:3])
    for name, wrong, said in (
        ("length", short, "x must be of one length"),
        ("pixels", good._replace(observation=np.ones((6, 3), np.uint8)), "255"),
        ("choices", good._replace(action=np.ones(6, np.int32)), "got 'int32'. Give choices as one-hot numbers"),
        ("flags", good._replace(observation=np.ones((6, 3), bool)), r"x.observation must be of floats; got 'bool'.$"),
        ("nan", good._replace(following=good.following.at[0, 0].set(np.nan)), "x.following must be finite"),
        ("inf", good._replace(observation=good.observation.at[0, 0].set(-np.inf)), "x.observation must be finite"),
        ("range", good._replace(action=3 + 0 * good.action), "Divide the actions"),
        ("range below", good._replace(action=-3 + 0 * good.action), "Divide the actions"),
        ("shape", good._replace(following=Y.following), "of one shape before and after"),
    ):
        with pytest.raises(ValueError, match=said):
            c.check_domains(wrong, Y._replace(action=0.1 * Y.action))
        assert name
    c.check_domains(good, Y, bounded=False)
    half = [c.Transitions(*(np.asarray(part, jnp.bfloat16) for part in steps)) for steps in (good, Y)]
    c.check_domains(half[0], half[1], bounded=False)
    small = Y._replace(action=0.1 * Y.action)
    with pytest.warns(c.CorrespondenceWarning, match="same observations"):
        c.check_domains(small, small)
    with pytest.raises(ValueError, match="action_back"):
        c.DynamicsCycle(G, F, None, action_map=H)
    with pytest.raises(ValueError, match="dynamics must be >= 0"):
        c.DynamicsCycle(G, F, None, dynamics=-1.0)
    model = c.DynamicsCycle(G, F, None)
    with pytest.raises(ValueError, match=r"y must be of at least two transitions.*; got 1\."):
        model.fit_forward(jax.random.key(0), jax.tree.map(lambda rows: rows[:1], Y), 1)
    for name in ("num_rounds", "num_steps"):
        with pytest.raises(ValueError, match=rf"DynamicsCycle\.{name} must be >= 1; got 0\."):
            model.fit(jax.random.key(0), X, Y, **{name: 0})
    with pytest.raises(ValueError, match="'states' where actions are the same"):
        model.step(jax.random.key(0), X, Y, model.init(X, Y), phase="actions")
    with pytest.raises(ValueError, match="of one length"):
        c.transitions_of(np.zeros((3, 1)), np.zeros((2, 1)))
    same = X._replace(action=Y.action)
    with pytest.raises(ValueError, match="paired must be > 0 where pairs are given"):
        model.train(jax.random.key(0), same, Y, model.init(same, Y), num_steps=1, pairs=PAIRS)
    told = c.DynamicsCycle(G, F, None, paired=1.0)
    with pytest.raises(ValueError, match="pairs must be of one length"):
        told.losses(same, Y, told.init(same, Y), (PAIRS[0], PAIRS[1][:2]))
    with pytest.raises(ValueError, match="action must be of one size in both domains"):
        model.step(jax.random.key(0), X, Y, model.init(X, Y))
    still = Y._replace(observation=Y.observation.at[:, 1].set(3.0))
    with pytest.raises(ValueError, match=r"constant at \[1\]"):
        model.train(jax.random.key(0), same, still, model.init(same, still), num_steps=1)
    gan = c.CycleGAN(G, line(3, 2, 40), c.PooledCritic(D), c.PooledCritic(line(1, 3, 41)))
    with pytest.raises(ValueError, match=r"x.observation must be of floats; got 'uint8'. Divide pixels by 255"):
        gan.train(jax.random.key(0), X._replace(observation=np.ones((6, 3), np.uint8)), Y, None, num_steps=1)  # pyright: ignore[reportArgumentType]
    for rows in (PAIRS[0][:1], PAIRS[0][:3]):
        with pytest.raises(ValueError, match="at least two rows, as many as y"):
            c.kernel_regression(rows, PAIRS[1][:1])
    with pytest.raises(ValueError, match="multiples of size"):
        c.make_patch_encoder(jax.random.key(0), (9, 8, 1), 2)


@pytest.mark.slow
def test_a_fit_refuses_a_forward_model_that_copies_and_warns_of_a_collapse():
    noise = c.Transitions(*(jnp.asarray(np.clip(table(60, n, seed=s), -1, 1)) for n, s in ((2, 80), (3, 81), (2, 82))))
    steady = noise._replace(following=noise.observation + 1e-3)
    model = c.DynamicsCycle(Line(jnp.zeros((2, 3))), line(2, 5, 1), None, learning_rate=1e-9)
    x = c.Transitions(*(jnp.asarray(np.clip(table(60, n, seed=s), -1, 1)) for n, s in ((3, 83), (3, 84), (3, 85))))
    with pytest.raises(ValueError, match="times copying; got 'error"):
        model.fit(jax.random.key(0), x, steady, num_forward=3, num_steps=2)
    with pytest.warns(c.CorrespondenceWarning, match="collapsed"):
        model.fit(jax.random.key(0), x, steady, num_forward=3, num_steps=2, force=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c.DynamicsCycle(line(2, 3), line(2, 5, 1), None).fit(jax.random.key(0), x, noise, num_forward=0, num_steps=2)
