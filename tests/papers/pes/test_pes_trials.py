"""The claims of PES: declared soundly, computed by trials that run, judged by formulas that are right."""

import importlib
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from in_numpy import computed
from trial_runner import run

from laureate.gradients import full_unroll_loss, train
from laureate.lab.claim import Settings
from laureate.lab.running.references import load
from laureate.papers.pes import trials, trials_tuning
from laureate.papers.pes import trials_training as pes_training
from laureate.papers.pes.about import PAPER
from laureate.problems.unrolls import CharacterLSTM, InfluenceBalancing, LinearQuadratic, RidgeFamily, ToySchedule

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


def example():
    """The problem of examples/mine.py, loaded as a user's file is."""
    return load(f"{Path(__file__).parents[3] / 'examples' / 'mine.py'}:Pendulum")()


def test_the_ids_are_the_ones_promised():
    promised = {
        "unbiased",
        "variance",
        "variance-agreeing",
        "variance-cancelling",
        "influence-balancing",
        "toy-schedule",
        "l2-coefficient",
        "character-lstm",
        "learned-optimiser",
    }
    assert promised <= {claim.name for claim in PAPER.claims}
    assert PAPER.id == "pes"


# The formulas of variance, against numbers known from elsewhere and against a Monte Carlo that shares no code.


def test_variance_formula_on_identical_gradients():
    """(P M (M + 1) / 2 + M) / M² = 2.94 for M = 8, P = 5; full ES has P + 1 = 6."""
    slopes = np.eye(8)[:, :, None] * np.random.default_rng(0).normal(size=5)
    power = (slopes.sum((0, 1)) ** 2).sum()
    assert float(trials.pes_variance(jnp.asarray(slopes))) / power == pytest.approx(188 / 64, rel=1e-5)
    assert float(trials.full_es_variance(jnp.asarray(slopes))) / power == pytest.approx(6, rel=1e-5)


def test_variance_formula_in_general():
    m, p, n, generator = 5, 3, 400_000, np.random.default_rng(1)
    slopes = np.tril(np.ones((m, m)))[:, :, None] * generator.normal(size=(m, m, p))
    noise = generator.normal(size=(n, m, p))
    losses = np.einsum("tsp,nsp->nt", slopes, noise)
    estimates = np.einsum("ntp,nt->np", np.cumsum(noise, axis=1), losses)
    squares = ((estimates - slopes.sum((0, 1))) ** 2).sum(1)
    error = squares.std() / np.sqrt(n)
    assert abs(float(trials.pes_variance(jnp.asarray(slopes))) - squares.mean()) < 4 * error


# Does each trial measure what it says?


@pytest.mark.parametrize("kind", ["pes", "truncated-es", "full-es"])
def test_all_arms_train_for_as_many_inner_steps_and_are_drawn_where_they_took_them(kind, monkeypatch):
    """θ is a number that training lowers from 1 by what it says; the loss of an episode of 12 steps is 12 θ."""
    path = {"pes": [0.9, 0.5, np.nan, 0.25], "truncated-es": [2.0, 5.0, 1.0, 0.0], "full-es": [1.0, 0.5, -0.5, 0.9]}[
        kind
    ]
    asked = []

    def train(key, est, optimiser, theta, updates, *, record, every):
        asked.append((est, updates, every))
        return None, Settings(recorded=jnp.asarray(path), update=every * (1 + jnp.arange(4)))

    monkeypatch.setattr(pes_training, "train", train)
    monkeypatch.setattr(pes_training, "estimator", lambda *given: given)
    monkeypatch.setattr(pes_training, "full_unroll_loss", lambda key, problem, theta, horizon: horizon * theta)
    problem = Settings(horizon=12, sigma=0.3, truncation=3, theta0=lambda key: jnp.asarray(1.0))
    arm = Settings(estimator=kind, learning_rate=0.1, speedup=1.0, momentum=0.9)
    scale = Settings(updates=32, points=4, pairs=2, evaluations=3)
    told = computed(lambda key: pes_training.training(key, arm, problem, scale), jax.random.key(0))
    ((est, updates, _),) = asked
    window = 12 if kind == "full-es" else 3
    assert est[0] == kind
    assert est[2:] == (3, 12, 2, 0.3)
    assert updates * window == 32 * 3
    np.testing.assert_array_equal(told["inner_steps"], 24 * (1 + np.arange(4)))
    reduction = np.nan_to_num(np.maximum(1 - np.asarray(path), -1), nan=-1)
    np.testing.assert_allclose(told["reduction_curve"], reduction, atol=1e-6)
    np.testing.assert_allclose(told["loss_curve"], np.nan_to_num(path, nan=1e9), rtol=1e-5)
    ends = float(told["reduction"]), float(told["mean_reduction"]), float(told["loss"])
    assert ends == pytest.approx((reduction[-1], reduction.mean(), path[-1]), abs=1e-6)


@pytest.mark.slow
def test_unbiased_tells_pes_from_truncated_es():
    scale = {"pairs": 100, "episodes": 20}
    bias = {
        kind: run(
            trials.unbiased, {"estimator": kind, "truncation": 2, "sigma": 0.1}, LinearQuadratic(), scale, seeds=8
        )
        for kind in ("pes", "truncated-es")
    }
    assert np.abs(bias["pes"]["squared_bias"]).max() < 0.01
    assert bias["pes"]["squared_bias"].min() < 0  # the halves are independent: a squared norm would never be negative
    assert bias["truncated-es"]["squared_bias"].min() > 0.3
    assert bias["truncated-es"]["along_gradient"].max() < -0.2


def test_unbiased_sees_a_bias_across_the_gradient_too(monkeypatch):
    """An estimate that is right along g and wrong across it: the projection is blind, the squared norm is not."""
    exact = {}

    def crooked(key, est, theta, updates):
        gradient = jax.grad(lambda t: full_unroll_loss(key, est.unroll, t, 4))(theta)
        across = jnp.stack([-gradient[1], gradient[0], jnp.zeros(())])
        exact["ratio"] = across @ across / (gradient @ gradient)
        return 2 * (gradient + across)

    monkeypatch.setattr(trials, "_sum_of_steps", crooked)
    arm = Settings(estimator="pes", truncation=2, sigma=0.1)
    metrics = trials.unbiased(jax.random.key(0), arm, LinearQuadratic(horizon=4), Settings(pairs=1, episodes=2))
    np.testing.assert_allclose(metrics["along_gradient"], 0.0, atol=1e-5)
    np.testing.assert_allclose(metrics["squared_bias"], exact["ratio"], rtol=1e-4)


def test_training_counts_a_run_that_blows_up_as_minus_one():
    class Cliff:
        """Downhill to the right, and a fall behind 5."""

        horizon = 4

        def theta0(self, key):
            return jnp.array(1.0)

        def init(self, key, theta):
            return jnp.zeros(())

        def step(self, key, theta, state):
            return state, jnp.where(theta > 5, jnp.inf, -theta)

    arm = {"estimator": "pes", "truncation": 2, "sigma": 0.1, "learning_rate": 10.0, "momentum": 0.9, "speedup": 1.0}
    metrics = run(pes_training.training, arm, Cliff(), {"pairs": 2, "updates": 4, "points": 2, "evaluations": 1})
    np.testing.assert_array_equal(metrics["reduction"], -1.0)
    np.testing.assert_array_equal(metrics["loss"], 1e9)


def test_training_gives_all_arms_the_same_inner_steps(monkeypatch):
    spent = []

    def counted(key, est, optimiser, theta, num_updates, **more):
        spent.append(num_updates * est.window)
        return train(key, est, optimiser, theta, num_updates, **more)

    monkeypatch.setattr(pes_training, "train", counted)
    base = {"truncation": 10, "sigma": 0.3, "learning_rate": 0.01, "momentum": 0.9, "speedup": 1.0}
    scale = {"pairs": 1, "updates": 8, "points": 4, "evaluations": 1}
    for kind in ("pes", "full-es"):
        metrics = run(pes_training.training, {"estimator": kind, **base}, ToySchedule(horizon=20), scale)
        np.testing.assert_array_equal(metrics["inner_steps"][0], [20, 40, 60, 80])
    assert spent == [80, 80]


def test_influence_balancing_evaluates_theta_on_the_whole_unroll():
    """Untrained, s[0] = 2θ(2p − n) = −3 and the loss ½ (−3 − 1)² = 8."""
    arm = {"estimator": "pes", "truncation": 1, "sigma": 0.1, "learning_rate": 0.0}
    scale = {"pairs": 1, "updates": 2, "points": 2}
    metrics = run(pes_training.influence_balancing, arm, InfluenceBalancing(), scale)
    np.testing.assert_allclose(metrics["log_loss_curve"], np.log10(8.0), rtol=1e-5)


@pytest.mark.slow
def test_l2_coefficient_measures_from_the_best_of_the_division_it_trains_on():
    arm = {"estimator": "pes", "truncation": 1, "sigma": 0.01, "learning_rate": 0.0}
    family = RidgeFamily(size=3)
    metrics = run(pes_training.l2_coefficient, arm, family, {"pairs": 1, "updates": 2, "points": 2})
    for seed in range(2):
        keys = jax.random.split(jax.random.key(seed), 6)
        best = [float(family.sample(jax.random.fold_in(key, 0)).best) for key in keys]
        expected = np.abs(np.array([-5.0, -3.0, -1.0, 1.0, 3.0, 5.0]) - best)
        np.testing.assert_allclose(metrics["distance"][seed], expected.mean(), rtol=1e-5)
        np.testing.assert_allclose(metrics["worst_distance"][seed], expected.max(), rtol=1e-5)


@pytest.mark.slow
def test_character_lstm_measures_the_variance_of_one_pair():
    """With one truncation PES is full ES, and for small σ its one-pair variance is (P + 1) ‖g‖²."""
    problem = CharacterLSTM(horizon=4, hidden=2)
    arm = {"stride": 1.0, "randomness": 0.0, "sigma": 1e-3}
    scale = {"truncation_lengths": (1, 4), "pairs": 4, "repeats": 400}
    metrics = run(trials.character_lstm, arm, problem, scale)
    size = problem.theta0(jax.random.key(0)).size
    # One pair gives ‖g‖² χ²₁ P, of relative deviation √2: 1,600 pairs give 3.5 %, and 15 % is four of these.
    np.testing.assert_allclose(10 ** metrics["log_variance"][:, 1], size + 1, rtol=0.15)
    np.testing.assert_allclose(metrics["log_truncations"][0], np.log10([4, 1]), atol=1e-6)
    rise = (metrics["log_variance"][:, 0] - metrics["log_variance"][:, 1]) / np.log10(4)
    np.testing.assert_allclose(metrics["slope"], rise, rtol=1e-4)


class Bare:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_a_problems_own_settings_replace_the_arms():
    arm = Settings(truncation=10, sigma=0.3)
    assert trials.settings_of(arm, Bare(horizon=100)) == (0.3, 10)
    assert trials.settings_of(arm, Bare(horizon=100, sigma=0.7, truncation=25)) == (0.7, 25)
    assert trials.settings_of(arm, Bare(horizon=28)) == (0.3, 7)  # the next divisor below
    assert trials.settings_of(arm, Bare(horizon=7)) == (0.3, 7)
    with pytest.raises(TypeError, match=r"Bare\.horizon must be an integer >= 1; got None"):
        trials.settings_of(arm, Bare(horizon=None))


@pytest.mark.slow
@pytest.mark.parametrize("name", [e.name for e in PAPER.experiments if e.accepts])
def test_the_comparisons_run_on_an_unroll_of_ones_own(name):
    experiment = EXPERIMENTS[name]
    scale = experiment.scales["tiny"].settings
    problem = example()
    problem.horizon, problem.truncation = 4, 2
    assert all(hasattr(problem, attribute) for attribute in experiment.accepts)
    for arm in experiment.arms:
        metrics = run(load(experiment.trial), arm.settings, problem, scale)
        assert all(np.isfinite(values).all() for values in metrics.values()), arm.name


def test_trials_import_no_lab_but_its_vocabulary():
    for module in (trials, pes_training, importlib.import_module("laureate.papers.pes.about")):
        used = [line for line in Path(str(module.__file__)).read_text("utf-8").splitlines() if "laureate.lab" in line]
        assert all("laureate.lab.claim" in line for line in used)


class Bowl(eqx.Module):
    """L_t = (θ − 1)² whatever the state: random search must return the drawn θ that is nearest to 1."""

    horizon: int = eqx.field(static=True, default=4)
    truncation: int = eqx.field(static=True, default=2)

    def theta0(self, key):
        return 4.0 * jax.random.normal(key)

    def init(self, key, theta):
        return jnp.zeros(())

    def step(self, key, theta, state):
        return state + 1.0, (theta - 1.0) ** 2


def test_random_search_gets_the_same_inner_steps_and_keeps_its_best():
    scale = Settings(updates=12, pairs=5, evaluations=2)
    key = jax.random.key(3)
    found = trials_tuning.tuning(key, Settings(estimator="random-search"), Bowl(), scale)
    draw_key, _ = jax.random.split(jax.random.split(key, 3)[1])
    count = 12 * 2 * 2 * 5 // 4  # updates × truncation × particles inner steps, four a run
    drawn = np.asarray(jax.vmap(Bowl().theta0)(jax.random.split(draw_key, count)))
    assert float(found["loss"]) == pytest.approx(np.min((drawn - 1.0) ** 2), rel=1e-4)
    still = trials_tuning.tuning(key, Settings(estimator="none"), Bowl(), scale)
    start = float(Bowl().theta0(jax.random.split(key, 3)[0]))
    assert float(still["loss"]) == pytest.approx((start - 1.0) ** 2, rel=1e-5)
