"""The trials of DreamerV2: the ids promised, numbers known from elsewhere, a world of one's own."""

import runpy
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trial_runner import run

from laureate import control as c
from laureate.lab.claim import SCALES, Settings
from laureate.loops import Box
from laureate.papers.dreamer_v2 import trials, trials_alone
from laureate.papers.dreamer_v2.about import PAPER
from laureate.problems.score_tables import ScoreTables
from laureate.problems.small_worlds import Crossroads, Hearth, Ledge, PointMass

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_world.py"
KEY = jax.random.key(0)
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


def of(name):
    experiment = EXPERIMENTS[name]
    return experiment, {arm.name: arm.settings for arm in experiment.arms}, experiment.scales["tiny"]


def test_the_ids_are_the_ones_promised_and_every_scale_has_the_same_settings():
    promised = {"kl-balance-gradient", "straight-through-bias", "multimodal-prior", "kl-balancing", "terminal-states"}
    promised |= {"imagination", "actor-gradient-discrete", "actor-gradient-continuous", "aggregation"}
    assert promised <= {claim.name for claim in PAPER.claims}
    for experiment in PAPER.experiments:
        scales = list(experiment.scales)
        assert scales == [scale for scale in SCALES if scale in scales]
        assert scales[0] == "tiny"
        assert len({frozenset(scale.settings) for scale in experiment.scales.values()}) == 1, experiment.name


def test_the_late_return_is_a_mean_over_episodes():
    returns, episodes = jnp.array([1.0, 0, 3, 0, 4, 3]), jnp.array([1, 0, 3, 0, 8, 2])
    late, area = jax.jit(trials.late_return)(returns, episodes)
    np.testing.assert_allclose([late, area], [0.7, 11 / 14], rtol=1e-6)


def test_numbers_are_chosen_in_some_runs_and_measured_in_another():
    """The runs are known: best at a rate of 0.01, whatever the entropy, but not finite with the smallest entropy."""
    grid = trials.candidates((1e-3, 1e-2, 1e-1), (0.1, 0.2, 0.3))
    np.testing.assert_allclose(grid[0], [0.01, 0.2])
    assert len({tuple(row) for row in grid.tolist()}) == 9

    def one(key):
        tune_key, _ = jax.random.split(key)
        first = jax.random.key_data(tune_key)[1]

        def fake(own, rate, entropy):
            tuning = jax.random.key_data(own)[1] == first
            late = jnp.where(tuning, -jnp.round(jnp.abs(jnp.log10(rate) + 2)), 100 + rate)
            late = jnp.where(tuning & (entropy < 0.15), 7.0, late)
            return {"late": late, "finite": jnp.where(tuning & (entropy < 0.15), 0.5, 1.0)}

        return trials.best_of(key, grid, fake)

    found = jax.jit(one)(jax.random.key(0))
    wanted = {"rate": 0.01, "entropy": 0.2, "late": 100.01, "finite": 1.0, "ties": 2.0}
    assert {name: float(value) for name, value in found.items()} == pytest.approx(wanted, rel=1e-5)


def test_ppo_sees_through_the_same_encoder_and_has_as_many_steps():
    """From one key the encoder of the world model and that of PPO are one, number for number."""
    experiment, arms, scale = of("room")

    def both(key):
        world = Hearth(2, 3)
        dreamer = trials.dreamer_of(key, world, Settings(scale.settings)).learner
        ppo = trials.ppo_of(key, arms["ppo-encoded"], world, Settings(scale.settings), 1e-3, 0.01).learner.ppo
        return dreamer, ppo.network

    made: Any = eqx.filter_jit(both)(jax.random.key(0))
    dreamer, network = made
    same = jax.tree.map(np.array_equal, *(eqx.filter(one.encoder, eqx.is_array) for one in (dreamer.world, network)))
    assert len(jax.tree.leaves(same)) == 4  # two layers, weights and biases
    assert all(jax.tree.leaves(same))
    first = dreamer.actor.layers[0].layers[0].weight
    assert network.policy.layers[0].weight.shape == (first.shape[0], scale.settings["width"])
    assert not np.array_equal(network.policy.layers[0].weight, network.heads[0].layers[0].weight)
    for name, each in experiment.scales.items():
        settings = Settings(each.settings)
        steps = settings.rollout * (settings.updates + settings.warmup)
        assert steps % settings.ppo_rollout == 0, name  # as many environment steps, to the last
        if name == "desk":  # and as many gradient steps
            rounds = steps // settings.ppo_rollout
            assert settings.updates * settings.gradients == pytest.approx(2 * settings.epochs * rounds, rel=0.05)


def test_arms_have_the_steps_and_numbers_that_are_declared(monkeypatch):
    """Read off the learners that are made at desk, before they run."""
    experiment, arms, _ = of("room")
    scale = Settings(experiment.scales["desk"].settings)
    made = {}

    def spy(name):
        return lambda key, training, updates: made.update({name: (training, updates)}) or {}

    for name in ("dreamer", "ppo-encoded", "random"):
        monkeypatch.setattr(trials, "run_of", spy(name))
        jax.eval_shape(lambda key, arm=arms[name]: trials.runs_of(arm, Hearth(5, 16), scale)(key, 0.01, 0.05), KEY)
    (dreamer, updates), (ppo, rounds) = made["dreamer"], made["ppo-encoded"]
    steps = dreamer.num_environments * dreamer.num_steps * (updates + dreamer.num_warmup)
    assert ppo.num_environments * ppo.num_steps * rounds == steps == 640
    learner = ppo.learner
    assert updates * dreamer.num_gradients == 432
    assert rounds * learner.num_epochs * learner.num_minibatches == 440
    for name, rate in (("ppo-encoded", 0.01), ("random", 1e-11)):
        found = jax.jit(
            lambda arm=arms[name]: [
                getattr(trials.ppo_of(KEY, arm, Hearth(2, 3), scale, 0.01, 0.05).learner.ppo, number)
                for number in ("learning_rate", "entropy", "gamma", "clip")
            ]
        )()
        for number, expected in zip(found, (rate, 0.05, 0.95, 0.2), strict=True):
            np.testing.assert_allclose(number, expected, rtol=1e-6)


def test_every_seed_has_a_warm_cell_of_its_own_and_its_arms_share_it(monkeypatch):
    monkeypatch.setattr(trials, "runs_of", lambda arm, world, scale: world.warm)
    monkeypatch.setattr(trials, "best_of", lambda key, grid, warm: {"warm": warm})
    _, arms, scale = of("room")
    settings = Settings(scale.settings)
    both = lambda key: [trials.agents(key, arms[name], Hearth(5, 16), settings)["warm"] for name in ("dreamer", "ppo")]  # noqa: E731
    cells = [np.asarray(warm) for warm in jax.jit(jax.vmap(both))(jax.random.split(KEY, 20))]
    np.testing.assert_array_equal(*cells)
    assert len(set(cells[0].tolist())) > 5


def test_true_values_are_of_this_discount_and_of_steps_within_episodes():
    place = np.array([[1, 0], [2, 3], [0, 1]])  # 3: fallen
    flags = np.array([[True, True], [False, False], [False, True]])
    batch = c.Sequences(np.eye(4)[place], np.zeros((3, 2, 2)), np.zeros((3, 2)), place == 3, flags)
    exact, counted = jax.jit(lambda batch: trials.true_values(Ledge(3, 1.0), batch, 0.5))(batch)
    np.testing.assert_allclose(exact[[0, 1, 2], 0], [12 / 7, 10 / 7, 10 / 7], rtol=1e-5)
    np.testing.assert_array_equal(counted, [[0, 0], [1, 0], [1, 0]])


def test_no_force_is_the_middle_of_the_bounds():
    law = trials.Still(Box((2,), -1.0, 3.0))
    np.testing.assert_array_equal(law.sample(jax.random.key(0), jnp.zeros((3, 1))), np.ones((3, 2)))
    assert law.log_probability(jnp.ones((3, 1)), jnp.zeros((3, 2))).tolist() == law.entropy(jnp.ones((3, 1))).tolist()


def test_what_may_follow_is_asked_where_the_middle_was_seen():
    for length in (4, 5, 6):
        at = Crossroads(3).last_middle(length)
        assert at % 2 == 0  # pictures of the middle are at even times
        assert length - 2 <= at < length


def test_gradients_of_the_balance_and_of_draws():
    _experiment, arms, scale = of("balance")
    errors = {name: run(trials_alone.balance, arms[name], None, scale.settings)["log10_error"] for name in arms}
    assert (errors["balanced"] < -5).all()
    assert (errors["plain"] > -1).all()
    _, arms, scale = of("straight-through")
    found = {name: run(trials_alone.straight_through, arms[name], None, scale.settings) for name in arms}
    for name in ("linear", "reinforce"):
        assert (found[name]["cosine"] > 0.9999).all()
        assert (found[name]["log10_bias"] < -5).all()
    assert (found["quadratic"]["log10_bias"] > -2).all()


def test_aggregates_of_a_table():
    _, arms, scale = of("aggregation")
    problem = ScoreTables(4)
    found = run(trials_alone.aggregation, arms["gamer-mean"], problem, scale.settings, seeds=1)
    table = jax.jit(problem.draw)(jax.random.key(0))
    scores = np.asarray(table.scores)
    assert found["value"][0] == pytest.approx(scores.mean(), rel=1e-5)
    without = [np.delete(scores, i).mean() for i in range(4)]
    assert found["influence"][0] == pytest.approx(np.abs(without - scores.mean()).max() / scores.mean(), rel=1e-4)


WORLDS = {"room": Hearth(2, 3), "mass": PointMass(3), "ends": Ledge(3), "crossroads": Crossroads(3)}
TRIALS = {"room": trials.agents, "mass": trials.agents, "ends": trials.ends, "crossroads": trials_alone.crossroads}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WORLDS))
def test_shapes_of_a_trial_are_what_claims_read(name):
    experiment, arms, scale = of(name)
    arm = next(iter(arms.values()))
    found = jax.eval_shape(lambda key: TRIALS[name](key, arm, WORLDS[name], scale.settings), jax.random.key(0))
    metrics = {claim.metric for claim in experiment.claims} | {guard.metric for guard in experiment.guards}
    assert all(found[metric].shape == () for metric in metrics), name
    for curve in experiment.curves:
        assert found[curve.x].shape == found[curve.y].shape


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WORLDS))
def test_every_arm_runs_at_tiny(name):
    _, arms, scale = of(name)
    for settings in arms.values():
        found = run(TRIALS[name], settings, WORLDS[name], scale.settings)
        assert all(np.isfinite(values).all() for values in found.values())


def test_your_own_world():
    example = runpy.run_path(str(EXAMPLE))
    world = example["Lift"]()

    def walk(way):
        state = world.reset(jax.random.key(0))[0]._replace(floor=jnp.asarray(0))
        return jax.lax.scan(lambda s, a: world.step(jax.random.key(0), s, a), state, way)[1]

    timestep = jax.jit(walk)(jnp.array([2, 0, 0, 0, 2, 2]))  # open, three floors up, open, open again
    np.testing.assert_array_equal(timestep.reward, [0, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(timestep.observation[:, -1], [1, 1, 1, 1, 0, 0])
