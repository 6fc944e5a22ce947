"""What arms may spend is what is said, rivals are as strong as they should be, and what is told is of the run chosen.

As in `test_who_judges` the pieces of a trial that compute for long are planted: no training, no program.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.ensemble
import sklearn.linear_model
from in_numpy import computed

from laureate.lab.claim import Settings
from laureate.papers import paper
from laureate.papers.alista import trials as alista
from laureate.papers.darts_pt import trials as darts
from laureate.papers.dynamics_cycle import trials as cycle
from laureate.papers.gibbs_with_gradients import trials as gibbs
from laureate.papers.gradvac import trials as gradvac
from laureate.papers.gumbel_rao import trials as gumbel
from laureate.papers.imtl import trials as imtl
from laureate.papers.localized_learning import trials_host as localized
from laureate.papers.logit_adjustment import trials_digits as digits

KEY = jax.random.key(0)


class Layers(eqx.Module):
    """A solver of four layers whose gain is how fast it was trained."""

    gain: jax.Array
    num_layers: int = eqx.field(static=True, default=4)
    trainable: tuple[str, ...] = eqx.field(static=True, default=("gain",))


@pytest.mark.parametrize("mode", ["end_to_end", "greedy"])
def test_both_ways_to_train_a_network_take_the_same_number_of_steps(mode, monkeypatch):
    """Greedy training takes its steps in each of three stages of every layer."""
    asked = []

    def fit(key, solver, prior, *, optimiser, num_steps, mode, **more):
        asked.append((num_steps, mode))
        last = jnp.asarray(num_steps - 1)
        state = eqx.tree_at(lambda s: s[1].count, optimiser.init(jnp.zeros(())), last)
        return Layers(-optimiser.update(jnp.ones(()), state)[0]), None

    monkeypatch.setattr(alista.r, "fit", fit)
    scale = Settings(steps=120, batch=2, rates=(0.1, 0.4))
    judge = lambda made: -made.gain  # noqa: E731  (the larger rate is the better one)
    pair = jnp.zeros(1), jnp.zeros(1)
    train = lambda key: alista.trained(key, Layers(jnp.ones(())), None, pair, scale, judge=judge, mode=mode)[1]  # noqa: E731
    assert float(computed(train, KEY)) == pytest.approx(0.4)
    ((steps, told),) = set(asked)
    assert told == mode
    assert steps * (3 * 4 if mode == "greedy" else 1) == 120


class Step(NamedTuple):
    weights: np.ndarray
    score: float


def test_a_front_is_of_the_images_that_decided_nothing(monkeypatch):
    """After every decision the supernet is judged anew; a network's cost is the number of operations it has left."""
    steps, seen = [Step(np.array([1.0, 1.0]), 0.9), Step(np.array([0.0, 1.0]), 0.8)], []

    def searched(key, arm, found, state, *, penalty, passed):
        passed += ["first", "second"]
        return SimpleNamespace(history=steps)

    def accuracy(state, weights, data, *, train):
        seen.append((state, data, train))
        return 0.5 + 0.25 * float(np.sum(weights) == 1)

    found = SimpleNamespace(supernets=lambda key, alpha: [None], accuracy=accuracy, test="test", validation="other")
    monkeypatch.setattr(darts, "bench", lambda *_: found)
    monkeypatch.setattr(darts, "searched", searched)
    monkeypatch.setattr(darts, "_worth", lambda *_: {})
    monkeypatch.setattr(darts, "relative_cost", lambda found, weights: float(np.sum(weights)) / 2)
    monkeypatch.setattr(darts, "pareto", lambda history, cost: [(one.score, cost(one.weights)) for one in history])
    monkeypatch.setattr(darts, "hypervolume", lambda points, most: sum(score * cost for score, cost in points))
    told = darts.fronts(KEY, Settings(alpha="bilevel", penalty=0.1), None, Settings())
    assert seen == [("first", "test", True), ("second", "test", True)]
    assert float(told["hypervolume"]) == pytest.approx(0.5 * 1.0 + 0.75 * 0.5)
    assert float(told["last_cost"]) == 0.5


def test_few_pairs_are_the_second_number_of_them_in_all_that_is_told(monkeypatch):
    def measured(found, data, scale):
        number = jnp.asarray(found, float)
        return {"log_error": number, "penalty": 2 * number, "forward_gain": 3 * number, "finite": 1 / number}

    monkeypatch.setattr(cycle, "data_of", lambda *_: None)
    monkeypatch.setattr(cycle, "starts", lambda *_: ())
    monkeypatch.setattr(cycle, "walk", lambda *_: (jnp.zeros((8, 1)), None, None))
    monkeypatch.setattr(cycle, "found_by", lambda key, arm, data, scale, pairs: len(pairs[0]))
    monkeypatch.setattr(cycle, "measured", measured)
    bodies = SimpleNamespace(reset=None, num_actions=1, step_x=None, see=lambda y: y)
    bodies.drawn = lambda key: bodies
    scale = Settings(counts=(2, 4, 8), length=2)
    told = computed(lambda key: cycle.pairs(key, Settings(method="kernel"), bodies, scale), KEY)
    for name, factor in (("log_error", 1), ("penalty", 2), ("forward_gain", 3)):
        assert (float(told[f"{name}_few"]), float(told[f"{name}_many"])) == (4 * factor, 8 * factor), name
    np.testing.assert_array_equal(told["log_errors"], [2, 4, 8])
    assert float(told["finite"]) == pytest.approx(1 / 8)


@pytest.mark.parametrize("thin", [1, 3])
def test_every_step_of_a_walk_has_a_key_of_its_own_however_it_is_thinned(thin, monkeypatch):
    """A state counts how often each number of a step came by."""
    monkeypatch.setattr(gibbs, "_step", lambda kernel, key, state, number: (state.at[number].add(1), jnp.ones(())))
    kernel, start = SimpleNamespace(init=lambda position: position), jnp.zeros((2, 7))
    kept, cost = computed(lambda keys: gibbs.walk(keys, kernel, start, 7, thin, lambda s: s), jax.random.split(KEY, 2))
    for number, state in enumerate(np.moveaxis(kept, 1, 0), 1):
        np.testing.assert_array_equal(state, np.arange(7) < number * thin + np.zeros((2, 1)))
    assert kept.shape == (2, 7 // thin, 7)
    assert float(cost) == 1


class SeenError(Exception):
    """Of the weights that a trial hands over."""


def weights_of(module, monkeypatch, run):
    """The fixed weights of the sums among the arms, in their order."""
    made = []
    monkeypatch.setattr(module, "uniform", lambda weights=None, **_: made.append(weights))

    def stop(*_):
        raise SeenError

    monkeypatch.setattr(module, "select", stop)
    with pytest.raises(SeenError):
        run()
    return made


def test_sums_weighted_by_sizes_and_lengths_have_their_weights(monkeypatch):
    losses = lambda params, batch: jnp.zeros(3)  # noqa: E731
    tasks = SimpleNamespace(sizes=(16, 4, 1), params0=lambda key: 0.0, batch=lambda key: 0.0, losses=losses)
    arm = Settings(method=0.0, among="uniform longer sizes", optimiser="sgd")
    run = lambda: gradvac.dialects(KEY, arm, tasks, Settings(rates=(0.1,), steps=1))  # noqa: E731
    plain, longer, sizes = weights_of(gradvac, monkeypatch, run)
    assert (plain, longer) == (None, (1.2,) * 3)
    np.testing.assert_allclose(sizes, 3 * np.array([4, 2, 1]) / 7, rtol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 10.0])
def test_losses_that_are_standardised_are_so_in_the_units_that_they_have(unit, monkeypatch):
    arm = Settings(method=0.0, among="uniform standardised")
    for more, spreads in (({}, np.ones(3)), ({"spreads": jnp.array([2.0, 4.0, 0.5])}, np.array([2.0, 4.0, 0.5]))):
        run = lambda more=more: imtl._aggregator(KEY, arm, SimpleNamespace(**more), jnp.asarray(unit), None, 3)  # noqa: E731
        _, weights = weights_of(imtl, monkeypatch, run)
        np.testing.assert_allclose(weights, 1 / (spreads * [unit, 1, 1]), rtol=1e-6)


def test_a_temperature_is_chosen_by_the_rows_that_are_held_out(monkeypatch):
    """A parameter for each temperature, which training raises: of a row its pixels say what that is worth."""
    taus = (0.03, 0.1, 0.5, 1.0)
    own = lambda tau: jnp.argmin(jnp.abs(jnp.asarray(taus) - tau))  # noqa: E731
    monkeypatch.setattr(gumbel, "initial", lambda *_: jnp.zeros(4))
    monkeypatch.setattr(gumbel, "surrogate", lambda key, arm, tau, params, x, choices: -params[own(tau)])
    monkeypatch.setattr(gumbel, "enumerated_bound", lambda params, x, choices: x @ params)
    held, test = np.array([0.1, 0.5, 0.9, 0.3]), np.array([0.9, 0.2, 0.1, 0.4])
    rows = SimpleNamespace(
        spins=jnp.asarray(np.tile(2 * held - 1, (14, 1))), test_spins=jnp.asarray(2 * test - 1)[None]
    )
    scale = Settings(variables=1, options=2, batch=2, steps=3, worst=9.0, rates=(0.01, 0.1), temperatures=taus)
    told = computed(lambda key: gumbel.vae(key, Settings(estimator="st-gumbel"), rows, scale), KEY)
    assert float(told["temperature"]) == pytest.approx(0.5)
    assert float(told["bound"]) == pytest.approx(3 * 0.1 * 0.1, rel=1e-4)
    np.testing.assert_allclose(told["bounds"], 3 * 0.1 * test, rtol=1e-4)
    for place, name in enumerate(("coldest", "cold", "middle", "warm")):
        assert float(told[f"bound_{name}"]) == float(told["bounds"][place])


def test_autoencoders_have_a_temperature_for_each_that_is_named():
    """Four are named, from the coldest on; of fewer the last would be told twice, of more the warmest never."""
    experiments = [one for one in paper("gumbel-rao").experiments if one.trial.endswith(":vae")]
    assert experiments
    for scale in (scale for one in experiments for scale in one.scales.values()):
        assert len(scale.settings.temperatures) == 4
        assert sorted(scale.settings.temperatures) == list(scale.settings.temperatures)


def test_the_work_of_a_schedule_is_that_of_the_rate_that_was_chosen(monkeypatch):
    """Of three rates the second is best on the validation rows, the third on the test rows."""
    boundaries = {0.1: [0, 0, 0, 1], 0.2: [0, 1, 2, 2], 0.3: [2, 2, 2, 2]}
    right = {"validation": {0.1: 0.3, 0.2: 0.8, 0.3: 0.5}, "test": {0.1: 0.2, 0.2: 0.4, 0.3: 0.9}}
    data = SimpleNamespace(train=(np.zeros((4, 2)), None), validation=("validation",), test=("test",))
    planted: dict[str, Any] = {"rows": lambda _: data, "perceptron": lambda *_: None, "_trainer": lambda *_: None}
    planted |= {"_fitted": lambda key, trainer, blocks, rows, rate, scale: (rate, boundaries[rate])}
    planted |= {"accuracy_of": lambda rate, part: right[part][rate], "_shares": lambda *_: (1.0, 0.7, 0.5)}
    for name, value in planted.items():
        monkeypatch.setattr(localized, name, value)
    names = ["hidden", "layers", "classes", "batch", "local_rate"]
    scale = Settings(dict.fromkeys(names, 3), rates=(0.1, 0.2, 0.3))
    told = localized.schedules(KEY, Settings(schedule="none"), None, scale)
    wanted = {"accuracy": 0.4, "rate": 0.2, "work": np.mean([1.0, 0.7, 0.5, 0.5]), "mean_boundary": 1.25}
    assert {name: float(value) for name, value in told.items()} == pytest.approx(wanted)


class Split(NamedTuple):
    inputs: np.ndarray
    labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray


@pytest.mark.parametrize("classifier", ["logistic", "forest"])
def test_a_classifier_is_weighted_or_adjusted_as_its_arm_says(classifier, monkeypatch):
    """It says class 0 of every row; one that is adjusted says what it was wrapped with."""

    class Made:
        def __init__(self, *_, class_weight=None, **__):
            self.weight, self.tau_ = class_weight, 0.0

        def fit(self, inputs, labels):
            fitted.append(self)
            return self

        def predict(self, inputs):
            return np.zeros(len(inputs), int)

    class Adjusted(Made):
        def __init__(self, made, tau):
            self.weight, self.tau_ = made.weight, 0.7 if tau == "cv" else tau

    monkeypatch.setattr(sklearn.ensemble, "RandomForestClassifier", Made)
    monkeypatch.setattr(sklearn.linear_model, "LogisticRegression", Made)
    monkeypatch.setattr(digits, "LogitAdjusted", Adjusted)
    rows = Split(np.eye(4), np.arange(4), np.eye(4), np.array([0, 0, 1, 1]))
    problem, scale = SimpleNamespace(num_classes=2, draw=lambda key: rows), Settings(trees=2, iterations=3)
    for correction, weight, tau in (
        ("", None, 0),
        ("weighted", "balanced", 0),
        ("adjusted", None, 1),
        ("tuned", None, 0.7),
    ):
        fitted: list[Any] = []
        told = digits.classifiers(KEY, Settings(classifier=classifier, correction=correction), problem, scale)
        ((made),) = fitted
        assert (made.weight, float(told["tau"])) == (weight, pytest.approx(tau)), correction
        assert float(told["error"]) == 0.5
