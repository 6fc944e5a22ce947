"""The trials of RND: the ids promised, numbers known from elsewhere, a problem of one's own."""

import runpy
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trial_runner import run

from laureate import control as c
from laureate.lab.claim import Settings
from laureate.loops import frames_of
from laureate.papers.rnd import trials, trials_alone, trials_atari
from laureate.papers.rnd.about import PAPER
from laureate.problems.atari import shrunk
from laureate.problems.environments import Chain
from laureate.problems.novelty import RareClass, RareImages

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_environment.py"


def test_the_ids_are_the_ones_promised():
    promised = {"novelty-decay", "solves-chain", "non-episodic", "bonus-scale", "trunk-interference", "noisy-tv"}
    promised |= {"acting-steps", "two-heads", "staleness", "discounts"}
    assert promised <= {claim.name for claim in PAPER.claims}


def test_the_first_reward_and_the_share_of_episodes():
    rewarded = jnp.array([False, False, True, False, True, True, True, True])
    returns, episodes = jnp.array([0, 0, 1, 0, 2, 3, 4, 3.0]), jnp.array([4, 4, 4, 4, 4, 4, 4, 4])
    nothing = (rewarded & False, 0 * returns)
    late = (jnp.arange(8) == 7, returns)
    each = jax.jit(lambda: [trials.found_first(*one, episodes) for one in ((rewarded, returns), nothing, late)])
    found, never, at_last = each()
    assert float(at_last["log_share"]) < 0  # found in the last update is found
    assert float(found["log_share"]) == pytest.approx(np.log(2.5 / 8))
    assert float(found["success"]) == pytest.approx(7 / 8)  # the last two updates
    assert float(found["area"]) == pytest.approx(13 / 32)
    assert [float(never[name]) for name in ("log_share", "found", "success", "area")] == [0, 0, 0, 0]


def test_a_swing_is_found_in_its_band_alone():
    at = np.arange(80)
    series = 3.0 - 0.1 * at + 0.5 * np.sin(2 * np.pi * at / 20) + 0.7 * np.sin(2 * np.pi * at / 4)
    found = jax.jit(lambda x: [trials.swing(x, *band) for band in ((16, 64), (3, 5))])(series.astype(np.float32))
    np.testing.assert_allclose(np.exp(found), [0.5**2 / 2, 0.7**2 / 2], rtol=0.1)


class Matrix(eqx.Module):
    """A linear map."""

    matrix: jax.Array

    def __call__(self, x):
        return self.matrix @ x


def test_an_old_bonus_is_that_of_the_predictor_then():
    """Four rollouts with a step each; the bonus of the fifth with every delay is one of those kept by hand."""
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)), jnp.float32)
    steps = c.Transitions(rows, None, rows)
    inner = c.RND(Matrix(jnp.ones((2, 3))), Matrix(jnp.zeros((2, 3))), whiten=False, learning_rate=0.1)  # pyright: ignore[reportCallIssue]

    @jax.jit
    def walk():
        state = trials.Stale(inner, jnp.asarray(0.0), 3).init(rows[0])
        past = []
        for number in range(4):
            past.append(inner.reward(steps, state[0]))
            state = trials.Stale(inner, jnp.asarray(0.0), 3).observe(steps, state)
            state, _ = trials.Stale(inner, jnp.asarray(0.0), 3).step(jax.random.key(number), steps, state)
        past.append(inner.reward(steps, state[0]))
        return past, [trials.Stale(inner, jnp.asarray(delay), 3).reward(steps, state) for delay in (0.0, 1.0, 3.0)]

    past, found = walk()
    for one, delay in zip(found, (0, 1, 3), strict=True):
        np.testing.assert_allclose(one, past[4 - delay], rtol=1e-5)
    assert float(past[0][0]) != float(past[4][0])


class Told(eqx.Module):
    """A training whose updates tell what is known: in update u, u + 1 episodes of return 2; the last diverges."""

    def init(self, key):
        del key
        return jnp.asarray(0)

    def step(self, key, state):
        del key
        learner = c.BonusPPOInfo(*[state * 0.5] * 4, None, state, state)  # pyright: ignore[reportCallIssue]
        status = jnp.where(state == 3, 1, 0)
        return state + 1, c.TrainingInfo(state + 1, jnp.asarray(2.0), state * 1.0, learner, state, status)


def test_a_run_is_summed_up_by_episodes():
    found, bonus = jax.jit(lambda: trials.trained(jax.random.key(0), Told(), 4))()
    assert float(found["area"]) == 2.0
    assert float(found["success"]) == 2.0
    np.testing.assert_array_equal(found["curve"], 2.0)
    assert float(found["log_share"]) == pytest.approx(np.log(1.5 / 4))
    assert float(found["finite"]) == 0.75
    np.testing.assert_array_equal(bonus, [0, 0.5, 1, 1.5])


def test_an_agent_has_the_settings_of_its_arm(monkeypatch):
    monkeypatch.setattr(c, "make_actor_critic", lambda *_, **more: lambda seen: (seen[:2], seen[: more["num_heads"]]))
    scale = Settings(width=4, rate=0.5, epochs=3, minibatches=2, rollout=7, warmup=5)
    numbers = {"gamma_e": 0.9, "gamma_i": 0.7, "episodic": 1.0, "entropy": 0.2, "coefficient": 4.0, "speed": 0.1}
    count = c.CountBonus(jnp.argmax, 4)
    for heads in (1, 2):
        arm = Settings(numbers, heads=heads)
        found = trials.training_of(jax.random.key(0), arm, Chain(4), scale, 6, lambda key: count)
        ppo, learner = found.learner.ppo, found.learner
        np.testing.assert_allclose(ppo.gamma, [0.9, 0.7][:heads])
        np.testing.assert_allclose(ppo.episodic, [1, 1][:heads])
        assert (ppo.entropy, ppo.learning_rate, learner.scale.gamma) == (0.2, 0.05, 0.7)
        assert (learner.num_epochs, learner.num_minibatches, found.num_steps, found.num_warmup) == (3, 2, 7, 5)
        np.testing.assert_allclose(learner.coefficients, [2, 4])
    alone = trials.training_of(jax.random.key(0), arm, Chain(4), scale, 6, lambda key: None)
    assert (alone.learner.ppo.num_heads, alone.num_environments) == (1, 6)


def test_more_actors_keep_a_smaller_share(monkeypatch):
    """What a run would tell is the share that its bonus keeps."""
    budgets = []
    monkeypatch.setattr(trials, "bonus_of", lambda key, kind, keep, *more: keep)
    monkeypatch.setattr(trials, "training_of", lambda key, arm, world, scale, number, make: make(key))

    def trained(key, training, updates):
        budgets.append(updates)
        return {"log_share": jnp.log(training), "area": training, "finite": 1.0 / updates}, None

    monkeypatch.setattr(trials, "trained", trained)
    scale = Settings(actors=(2, 4, 8), kept=4.0, steps=64, rollout=4)
    actors = jax.jit(lambda thinned: trials.actors(jax.random.key(0), Settings(thinned=thinned), None, scale))
    found, whole = actors(1.0), actors(0.0)
    assert budgets == [8, 4, 2]
    np.testing.assert_allclose(found["log_steps"], np.log([64, 64, 32]), rtol=1e-6)
    np.testing.assert_allclose(whole["log_steps"], np.log(64), rtol=1e-6)
    np.testing.assert_allclose(found["log_actors"], np.log([2, 4, 8]), rtol=1e-6)
    assert [float(found[name]) for name in ("most_area", "worst_share", "finite")] == [0.5, 0.0, 1 / 8]


class Mean(c.AbstractBonus):
    """A bonus whose score is the mean of the pixels, less that of all it has observed, less steps learned."""

    def init(self, observation):
        return jnp.asarray(0.0), 0.0 * jnp.sum(observation)

    def observe(self, transitions, state):
        return jnp.mean(transitions.following), state[1]

    def step(self, key, transitions, state):  # pyright: ignore[reportIncompatibleMethodOverride]
        del key
        return (state[0], state[1] + jnp.mean(transitions.following)), None

    def reward(self, transitions, state):
        return self.novelty(transitions.following, state)

    def novelty(self, x, state):
        return jnp.mean(x, axis=1) - state[0] - state[1]


class Three:
    """Common images of 1, rare ones of 3, others of the rare class of 90."""

    def draw(self, key):
        del key
        return RareClass(jnp.ones((4, 2)), jnp.full((4, 2), 3.0), jnp.full((3, 2), 90.0))


def test_novelty_is_that_of_new_images_and_whitening_that_of_both_classes(monkeypatch):
    monkeypatch.setattr(c, "make_rnd", lambda *_, **__: Mean())
    scale = Settings(width=4, rate=0.1, features=2, batch=64, steps=1, counts=(1, 4))
    arm = Settings(bonus="rnd", speed=1.0)
    found = jax.jit(lambda key: trials_alone.decay(key, arm, Three(), scale))(jax.random.key(0))
    # Both classes have the mean 2. With all images rare a step learns 3, with a quarter of them between 1 and 3.
    assert float(found["error"][1]) == 90 - 2 - 3
    assert 90 - 2 - 2.5 < float(found["error"][0]) < 90 - 2 - 1
    np.testing.assert_allclose(found["log_error"], np.log(found["error"]), rtol=1e-6)
    slope = np.polyfit(np.log([1, 4]), np.log(found["error"]), 1)[0]
    assert float(found["slope"]) == pytest.approx(slope, rel=1e-3)


def test_a_loud_bonus_is_the_scaled_one_times_its_factor():
    reward = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    one = c.ReturnScale(0.5)
    loud = trials_alone.Amplified(one, 10.0)
    quiet, found = jax.jit(lambda r: (one.step(r, one.init(2))[0], loud.step(r, loud.init(2))[0]))(reward)
    np.testing.assert_allclose(found, 10 * np.asarray(quiet), rtol=1e-5)


SMALL = {"width": 4, "features": 2, "rate": 0.001, "keep": 1.0, "epochs": 1, "minibatches": 2, "rollout": 4}


@pytest.mark.slow
def test_values_of_nothing_have_an_error_of_one():
    arm = {"trunk": "stopped", "factor": 1.0, "speed": 1e-9}
    scale = SMALL | {"warmup": 1, "actors": 2, "updates": 2, "size": 4, "gamma_e": 0.9}
    found = run(trials_alone.interference, arm, None, scale, seeds=1)
    assert found["log_error"][0] == pytest.approx(0.0, abs=0.1)


def test_rare_images_are_of_two_classes_and_of_no_other():
    problem = RareImages("digits", 30, 20)
    found = eqx.filter_jit(problem.draw)(jax.random.key(3))
    table = {row.tobytes(): label for label, rows in enumerate(np.asarray(problem.images)) for row in rows}
    labels = [{table[row.tobytes()] for row in np.asarray(part)} for part in found]
    assert labels[1] == labels[2] != labels[0]
    assert [len(one) for one in labels] == [1, 1, 1]
    assert not {row.tobytes() for row in np.asarray(found.rare)} & {row.tobytes() for row in np.asarray(found.held)}


def test_the_area_under_the_curve_counts_pairs():
    scores, positive = np.array([0.1, 0.4, 0.4, 0.9, 0.2]), np.array([False, True, False, True, False])
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[positive] for n in scores[~positive]]
    assert trials_atari.area_under_curve(scores, positive) == pytest.approx(np.mean(pairs))
    assert trials_atari.area_under_curve(scores, positive & False) == 0.5


def test_pictures_are_averaged_in_blocks():
    frame = np.zeros((210, 160), np.uint8)
    frame[5:10, 4:8] = 200
    small = shrunk(frame)
    assert small[1, 1] == 200
    assert small.sum() == 200


def test_your_own_environment():
    example = runpy.run_path(str(EXAMPLE))
    world = example["Keys"]()
    assert world.reset(jax.random.key(0))[1].shape == world.observation_space.shape
    # To the key, then to the door.
    way = jnp.asarray(example["WAY"])
    follow = lambda key, seen, at: (way[at], at + 1)  # noqa: E731
    episode = jax.jit(lambda key: c.record(key, world, follow, len(way), jnp.asarray(0)))(jax.random.key(0))
    np.testing.assert_array_equal(episode.reward, [0] * (len(way) - 1) + [1])
    assert bool(episode.terminated)
    frames = frames_of(example["draw"](episode.state), 70)
    assert frames.shape == (len(way) + 1, 70, 70, 3)
    np.testing.assert_array_equal(frames[0, 5, 65], (214, 126, 34))  # the key lies there
    np.testing.assert_array_equal(frames[-1, 5, 65], (232, 229, 222))  # and was taken
    np.testing.assert_array_equal(frames[-1, 65, 5], (23, 86, 154))  # out of the door
