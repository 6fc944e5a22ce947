"""The trials of the dynamics cycle: the ids promised, what chooses and what is measured, a problem of one's own."""

import runpy
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate import control as c
from laureate._core import Status
from laureate.lab.claim import Settings
from laureate.papers.dynamics_cycle import trials, trials_bodies
from laureate.papers.dynamics_cycle.about import PAPER
from laureate.problems.two_bodies import TwoBodies

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_robots.py"
QUICK = {"xla_backend_optimization_level": 0}
SMALL = Settings(episodes=3, length=4, held=2, compared=8, trials=2, horizon=3, rates=(0.1, 0.2, 0.3), steps=2, batch=2)


def quick(function):
    return jax.jit(function, compiler_options=QUICK)


def test_the_ids_are_the_ones_promised():
    promised = {"correspondence", "adversarial-helps", "identifiability", "pairs", "pixels", "control-transfer"}
    assert promised | {"physics", "ablations"} <= {claim.name for claim in PAPER.claims}


@pytest.fixture(scope="module")
def data():
    return quick(lambda key: trials.data_of(key, TwoBodies(mass=2.0), SMALL))(jax.random.key(0))


def test_steps_are_those_of_their_domain_and_never_paired(data):
    pair = TwoBodies(mass=2.0)
    assert [len(part.action) for part in data[:6]] == [12, 12, 4, 4, 4, 4]

    @quick
    def check(data):
        after = jax.vmap(pair.step)(data.y.observation, data.y.action)
        heavy = jax.vmap(pair.step_x)(data.truth, data.held_x.action)
        seen = jax.vmap(pair.see)
        return after - data.y.following, seen(data.truth) - data.held_x.observation, seen(heavy) - data.held_x.following

    for difference in check(data):
        np.testing.assert_allclose(difference, 0, atol=1e-5)
    states = np.concatenate([data.truth, data.y.observation, data.choose_y.observation, data.held_y.observation])
    assert len(np.unique(states.round(5), axis=0)) == len(states)
    assert not np.array_equal(data.x.action, data.y.action)


def test_what_is_measured_is_by_hand(data):
    guess = np.asarray(data.truth) + np.random.default_rng(0).normal(size=data.truth.shape).astype(np.float32)
    table = jnp.asarray(guess)

    def look(x):
        return table[jnp.argmin(jnp.sum((data.held_x.observation - x) ** 2, axis=1))]

    made = trials.Found(look, jnp.asarray(1.0), {"rate": jnp.asarray(0.5)})
    found = quick(lambda: trials.measured(made, data, SMALL))()
    truth = np.asarray(data.truth)
    error = (np.abs(guess - truth) / truth.std(0)).mean()
    correlation = np.mean([np.corrcoef(guess[:, k], truth[:, k])[0, 1] for k in range(4)])
    assert float(found["error"]) == pytest.approx(error, rel=1e-4)
    assert float(found["log_error"]) == pytest.approx(np.log(error), rel=1e-3)
    assert float(found["correlation"]) == pytest.approx(correlation, rel=1e-3)
    assert float(found["rate"]) == 0.5


def test_a_rate_is_chosen_by_steps_and_without_the_truth(data):
    """A model whose map is y = rate · x of a sensor that shows the state: the distance is least at the true rate."""

    class Times(eqx.Module):
        limit: float
        learning_rate: float | jax.Array = 0.0

        def init(self, x, y):
            return jnp.asarray(0.0)

        def train(self, key, x, y, state, *, num_steps, batch):
            status = jnp.where(self.learning_rate < self.limit, int(Status.OK), int(Status.DIVERGED))
            told = c.CriticInfo(jnp.zeros(num_steps), jnp.zeros(num_steps), jnp.full(num_steps, status))
            return state + self.learning_rate, told

        def translate(self, x, state):
            return state * x

    y = data.choose_y
    shown = data._replace(choose_x=c.Transitions(5 * y.observation, y.action, 5 * y.following))

    @quick
    def choose(other, limit):
        shown_too = shown._replace(truth=other * data.truth, y=jax.tree.map(lambda part: other * part, data.y))
        found = trials.trained(jax.random.key(0), Times(limit), shown_too, SMALL)
        return found.more["rate"], found.finite, found.translate(jnp.ones(4))

    for other, limit in ((1.0, 0.25), (100.0, 0.15)):  # what it does not see cannot matter
        rate, fine, mapped = choose(other, limit)
        assert (float(rate), float(fine)) == (pytest.approx(0.2), float(limit > 0.2))  # whether the chosen one diverged
        np.testing.assert_allclose(mapped, 0.2, rtol=1e-5)


def test_the_share_recovered_is_one_for_the_true_state_and_by_hand_for_others():
    pair, key = TwoBodies("same", mass=1.5, turn=0.3), jax.random.key(4)

    @quick
    def both():
        exact = lambda y: pair.exact_back(y, pair.policy(y))  # noqa: E731
        return trials.recovered(key, pair, exact, SMALL), trials.recovered(key, pair, lambda y: 0 * y[:2], SMALL)

    best, still = both()
    assert float(best["recovered"]) == pytest.approx(1.0, abs=1e-5)
    low, high, own = (float(still[name]) for name in ("return_random", "return_oracle", "return_"))
    assert float(still["recovered"]) == pytest.approx((own - low) / (high - low), rel=1e-4)
    assert high == pytest.approx(float(best["return_"]), rel=1e-5)


def test_numbers_of_pairs_are_those_told(monkeypatch, data):
    """An arm that knows the number of distinct pairs it was given reports it as its error."""
    seen = []

    def found_by(key, arm, data, scale, pairs=None):
        if pairs is None:
            return 0.0
        seen.append(pairs[0].shape[0])
        order = jnp.sort(pairs[1][:, 0])
        return 1.0 + jnp.sum(order[1:] != order[:-1])

    monkeypatch.setattr(trials, "found_by", found_by)
    more = {"finite": jnp.asarray(1.0), "penalty": jnp.asarray(0.1)}
    measured = lambda found, data, scale: {"log_error": jnp.asarray(found, jnp.float32)} | more  # noqa: E731
    monkeypatch.setattr(trials, "measured", measured)
    scale = Settings(dict(SMALL), counts=(2, 4, 8))
    call = lambda **arm: quick(lambda: trials.pairs(jax.random.key(0), Settings(**arm), TwoBodies(), scale))()  # noqa: E731
    told, kernel, none = call(method="cycle", told=1), call(method="kernel"), call(method="cycle", told=0)
    assert [float(told[name]) for name in ("log_error_few", "log_error_many")] == [4, 8]
    assert [float(kernel[name]) for name in ("log_error_few", "log_error_many")] == [4, 8]
    np.testing.assert_array_equal(told["log_errors"], [2, 4, 8])
    np.testing.assert_array_equal(none["log_errors"], 0)
    assert seen == [8, 2, 4, 8]


def test_an_offset_and_a_turn_are_measured():
    rng = np.random.default_rng(0)
    plane, after = rng.normal(size=(2, 50, 4)).astype(np.float32)
    angle, velocity = rng.uniform(-3, 3, (2, 50))
    circle = np.stack([np.cos(angle), np.sin(angle), velocity], axis=1).astype(np.float32)
    moved = np.array([0.5, -0.5, 0, 0]) * plane.std(0)
    turn = np.array([[np.cos(2.9), -np.sin(2.9), 0], [np.sin(2.9), np.cos(2.9), 0], [0, 0, 1]], np.float32)

    @quick
    def all_of_them():
        shifted = trials_bodies.displaced("plane", (plane + moved, after + moved), (plane, after))
        still = trials_bodies.displaced("plane", (plane, plane), (plane, after))
        turned = trials_bodies.displaced("circle", (circle @ turn.T, circle @ turn.T), (circle, circle + 0.5))
        return shifted, still, turned

    shifted, still, turned = all_of_them()
    assert float(shifted["place"]) == pytest.approx(0.5, rel=1e-3)
    assert float(shifted["change"]) < 1e-5
    assert float(shifted["log_place"]) == pytest.approx(np.log(0.501), rel=1e-2)
    assert float(still["change"]) == pytest.approx((np.abs(after - plane) / (after - plane).std(0)).mean(), rel=1e-3)
    assert float(still["place"]) < 1e-6
    assert float(turned["place"]) == pytest.approx(2.9, rel=1e-3)
    assert float(turned["coherence"]) == pytest.approx(1.0, abs=1e-4)
    still_error = np.abs(velocity - velocity.mean()).mean() / velocity.std()
    assert float(turned["change_gain"]) == pytest.approx(still_error / (0.5 / velocity.std()), rel=1e-3)
    assert float(turned["change"]) == pytest.approx(0.5 / velocity.std(), rel=1e-3)


def test_a_wrong_forward_model_is_wrong_by_its_share():
    matrix = 50 * jnp.asarray(np.random.default_rng(0).normal(size=(2, 3)), jnp.float32)
    model = trials.Wrong(lambda y, u: y, matrix, jnp.asarray(0.4))
    y = np.random.default_rng(1).normal(size=(4000, 3)).astype(np.float32)
    off = np.asarray(quick(jax.vmap(lambda row: model(row[:2], row[2:])))(y)) - y[:, :2]
    assert np.mean(np.abs(off)) == pytest.approx(0.4, rel=0.05)


def test_a_forward_model_is_off_by_a_share_of_the_mean_change(data):
    arm = Settings(method="cycle", dynamics=1.0, adversarial=0.0, ahead=0.0, wrong=0.3)
    scale = Settings(dict(SMALL), width=2, forward_steps=1)

    @quick
    def made(data):
        model, gain = trials.method_of(jax.random.key(0), arm, data, scale)
        return model.forward.size, gain  # pyright: ignore[reportFunctionMemberAccess]

    size, gain = made(data)
    change = np.asarray(data.y.following - data.y.observation) / np.asarray(data.y.observation).std(0)
    assert float(size) == pytest.approx(0.3 * np.abs(change).mean(), rel=1e-4)
    assert float(gain) > 0


def fitted_at_once(monkeypatch):
    """A forward model is the first one that there is, twice as good as no change."""
    told = c.ForwardInfo(jnp.asarray(1.0), jnp.asarray(2.0), jnp.asarray(0), jnp.asarray(0))
    monkeypatch.setattr(c.DynamicsCycle, "fit_forward", lambda self, *given, **more: (self, told))


def test_a_wrong_forward_model_knows_the_mean_change(data, monkeypatch):
    """As the test above, of networks that are not there."""

    def made(key, x, y, **more):
        return c.DynamicsCycle(lambda x: x, lambda y, u: y, None, y_units=c.Units.of(y.observation))

    monkeypatch.setattr(c, "make_dynamics_cycle", made)
    fitted_at_once(monkeypatch)
    arm = Settings(dynamics=1.0, adversarial=0.0, ahead=0.0, wrong=0.3)
    scale = Settings(width=2, forward_steps=1)
    size = quick(lambda data: trials.method_of(jax.random.key(0), arm, data, scale)[0].forward.size)(data)  # pyright: ignore[reportFunctionMemberAccess]
    change = np.asarray(data.y.following - data.y.observation) / np.asarray(data.y.observation).std(0)
    assert float(size) == pytest.approx(0.3 * np.abs(change).mean(), rel=1e-4)


@pytest.fixture
def phases(monkeypatch):
    """Traced alone: what ``train`` is asked for, and whether both bodies have one unit."""
    seen = []

    def train(self, key, x, y, state, *, num_steps, batch, phase):
        del key, x, y, num_steps, batch
        seen.append((phase, self.x_units.mean is self.y_units.mean))
        return state, c.CriticInfo(jnp.zeros(1), jnp.zeros(1), jnp.zeros(1, int))

    monkeypatch.setattr(c.DynamicsCycle, "train", train)
    weights = {"dynamics": 1.0, "adversarial": 1.0, "ahead": 1.0, "action_adversarial": 1.0, "action_cycle": 1.0}
    more = {"width": 2, "forward_steps": 1, "rounds": 2, "noise": 0.5, "rate": 0.1}
    scale = Settings(dict(SMALL), **more)

    def phases(trial, pair, **arm):
        seen.clear()
        jax.eval_shape(lambda key: trial(key, Settings(weights, **arm), pair, scale), jax.random.key(0))
        return list(dict.fromkeys(seen))

    return phases


def test_joint_turns_are_of_both_and_one_body_has_one_unit(phases, data, monkeypatch):
    """As the test below, of data at hand, without fits and without control."""
    fitted_at_once(monkeypatch)
    monkeypatch.setattr(trials_bodies, "data_of", lambda *given: data)
    monkeypatch.setattr(trials_bodies, "recovered", lambda *given: {})
    monkeypatch.setattr(trials_bodies, "control", lambda *given: (jnp.asarray(-1.0), jnp.asarray(-1.0)))
    assert phases(trials_bodies.bodies, TwoBodies(turn=1.0), method="joint") == [("both", False)]
    heavy = TwoBodies("same", mass=2.0)
    assert phases(trials_bodies.physics, heavy, method="cycle", forward="fitted") == [("actions", True)]


def test_turns_are_those_of_the_arm_and_one_body_has_one_unit(phases):
    turned = TwoBodies(turn=1.0)
    assert phases(trials_bodies.bodies, turned, method="turns") == [("states", False), ("actions", False)]
    assert phases(trials_bodies.bodies, turned, method="joint") == [("both", False)]
    assert phases(trials_bodies.bodies, turned, method="first") == [("states", False)]
    heavy = TwoBodies("same", mass=2.0)
    assert phases(trials_bodies.physics, heavy, method="cycle", forward="fitted") == [("actions", True)]


def test_your_own_robots():
    example = runpy.run_path(str(EXAMPLE))
    carts = example["Carts"]()
    steps = example["record"](jax.random.key(0), carts.step_x, carts.see, 5)
    assert steps.observation.shape == steps.following.shape == (5, 6)
    offers = next(one.accepts for one in PAPER.experiments if one.name == "sensors")
    assert all(hasattr(carts, name) for name in offers)
