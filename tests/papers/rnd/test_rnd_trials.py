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
from laureate.papers.rnd import trials, trials_alone, trials_atari
from laureate.papers.rnd.draft import PAPER
from laureate.problems.atari import shrunk
from laureate.problems.novelty import RareImages

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_environment.py"


def test_the_ids_are_the_ones_promised():
    promised = {"novelty-decay", "solves-chain", "non-episodic", "bonus-scale", "trunk-interference", "noisy-tv"}
    promised |= {"acting-steps", "two-heads", "staleness", "discounts"}
    assert promised <= {claim.name for claim in PAPER.claims}


def test_the_first_reward_and_the_share_of_episodes():
    rewarded = jnp.array([False, False, True, False, True, True, True, True])
    returns, episodes = jnp.array([0, 0, 1, 0, 2, 3, 4, 3.0]), jnp.array([4, 4, 4, 4, 4, 4, 4, 4])
    nothing = (rewarded & False, 0 * returns)
    both = jax.jit(lambda: [trials.found_first(*one, episodes) for one in ((rewarded, returns), nothing)])
    found, never = both()
    assert float(found["log_share"]) == pytest.approx(np.log(3 / 8))
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
    inner = c.RND(Matrix(jnp.ones((2, 3))), Matrix(jnp.zeros((2, 3))), whiten=False, learning_rate=0.1)

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
    state, seen = world.reset(jax.random.key(0))
    assert seen.shape == world.observation_space.shape
    # To the key, then to the door.
    for action in example["WAY"]:
        state, timestep = world.step(jax.random.key(0), state, jnp.asarray(action))
    assert float(timestep.reward) == 1
    assert bool(timestep.terminated)
