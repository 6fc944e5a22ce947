"""Tracks with entrants of which everything is known, so small that they compile at once: costs, keys, parts, metrics.

An entrant's code is evaluated with its settings, so that a setting may be the method itself.
"""

from types import SimpleNamespace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.decentralized import ring
from laureate.lab.claim import Settings
from laureate.racing.tracks import (
    categorical_gradients,
    decentralized,
    pde,
    prediction_sets,
    recovery,
    representation,
    robustness,
    sampling,
    selection,
    simulators,
)
from laureate.testing import KeyRecorder


def raced(track, planted, problem, cost, points=2, phase="score", settings=(), again=(), **scale):
    """The trial of a track with a planted method; no key is used twice, but for those that judge every point alike.

    again: just these draws are made from one key again, so many times.
    """
    arm = Settings({"code": "planted", "area": "", "swept": "", "planted": planted, **dict(settings)})
    scale = Settings({"cost": cost, "points": points, "seconds": 100.0, "phase": phase, **scale})
    with jax.enable_x64(track is pde), KeyRecorder() as recorder:
        found = track.trial(jax.random.key(3), arm, problem, scale)
    assert recorder.reused() == list(again)
    return found


class Info(NamedTuple):
    cost: jax.Array


# -- sampling ----------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    position: jax.Array
    logdensity: jax.Array


class Draws:
    """Every step is a draw of its own, whatever came before."""

    def init(self, position):
        return Place(position, jnp.zeros(()))

    def step(self, key, state):
        drawn = jax.random.uniform(key, (7,))
        return Place(drawn[1:] < 0.5, drawn[0]), Info(jnp.asarray(1))


class Start(eqx.Module):
    def start(self, key):
        return jax.random.bernoulli(key, 0.5, (6,))


def test_independent_draws_are_as_many_effective_samples():
    """A key that was used again would be the same draw again: one sample."""
    slots = 64
    arm = Settings(code="planted", area="", swept="", planted=Draws())
    scale = Settings(cost=8 * slots, points=1, seconds=100.0, phase="score", slots=slots)
    found = sampling.trial(jax.random.key(3), arm, Start(), scale)
    assert found["cost"] == 8 * slots
    seen = 8 * slots * 0.9  # eight chains, the first tenth apart
    assert 0.4 * seen < found["ess"] < 2.5 * seen
    assert found["rhat"] < 1.1
    assert found["logdensity"] == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / (4 * slots)))


def test_chains_are_judged_by_what_was_seen_after_the_start():
    """Who never moved has one sample and agrees with nobody; f is the mean of the second half, whatever came before."""
    judge, rng = jax.jit(sampling._judge), np.random.default_rng(0)
    moving = rng.normal(size=(8, 20, 2))
    early = np.concatenate([1e6 * np.ones((8, 2, 2)), moving[:, 2:]], axis=1)  # a tenth, which is left out
    halves = np.concatenate([moving[:, :10] + 100.0, moving[:, 10:]], axis=1)
    apart = moving + 5.0 * np.arange(8)[:, None, None] * [0, 1]  # of the worse of the two
    found = {name: float(value) for name, value in judge(early).items()}
    assert found["rhat"] < 1.3
    assert 8 * 18 / 3 < found["ess"] < 3 * 8 * 18
    assert found["logdensity"] == pytest.approx(moving[:, 10:, 0].mean(), rel=1e-5)
    assert float(judge(halves)["logdensity"]) == pytest.approx(moving[:, 10:, 0].mean(), rel=1e-5)
    assert float(judge(halves)["rhat"]) > 1.4
    assert float(judge(apart)["rhat"]) > 1.4
    assert float(judge(apart)["ess"]) < 20
    still = {name: float(value) for name, value in judge(np.ones((8, 20, 2))).items()}
    assert still == {"ess": 1.0, "rhat": 10.0, "logdensity": 1.0}
    stuck = judge(np.broadcast_to(np.arange(8.0)[:, None, None], (8, 20, 2)))
    assert (float(stuck["ess"]), float(stuck["rhat"]) >= 10) == (1.0, True)


# -- decentralized -----------------------------------------------------------------------------------------------------


class Halves:
    """Every node goes half of the way by itself, and sends ten bytes."""

    def init(self, params):
        return ()

    def update(self, gradients, memory, params):
        return jax.tree.map(lambda g: -0.5 * g, gradients), memory

    def sent(self, params):
        return 10.0


class Pulled(eqx.Module):
    """Nodes that are pulled to numbers of their own; the loss is the squared size of a model."""

    data: jax.Array
    graph = ring(4)

    def theta0(self, key):
        return 0.0 * jax.random.normal(key, (2,))

    def gradient(self, key, params, data):
        return params - data + 0.0 * jax.random.normal(key, (2,))

    def loss(self, params):
        return jnp.sum(params**2)


@pytest.mark.parametrize("given", ["object", "dictionary"])
def test_every_node_is_judged_by_its_own_model_after_the_rounds_that_were_paid_for(given):
    data = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    network = Pulled(jnp.asarray(data))
    if given == "dictionary":
        network = {name: getattr(network, name) for name in ("graph", "theta0", "gradient", "loss")} | {"data": data}
    found = raced(decentralized, Halves(), network, cost=58, settings={"nodes": 4})
    np.testing.assert_array_equal(found["cost"], [20, 50])
    for place, rounds in enumerate([2, 5]):
        models = (1 - 0.5**rounds) * data
        assert found["loss"][place] == pytest.approx((models**2).sum(1).mean())
        assert found["mean_model_loss"][place] == pytest.approx((models.mean(0) ** 2).sum())


# -- representation ----------------------------------------------------------------------------------------------------


class Trained(NamedTuple):
    online: jax.Array
    steps: jax.Array


class Idle:
    """Two views cost twenty, and nothing is learnt from them."""

    def init(self, key, model):
        return Trained(model, jax.random.uniform(key) * 0)

    def step(self, state, first, second):
        return Trained(state.online, state.steps + 0 * jnp.sum(first + second)), Info(jnp.asarray(20))


class Clusters(eqx.Module):
    """Features on a line whose sign is the label."""

    images: jax.Array
    labels: jax.Array
    test_images: jax.Array
    test_labels: jax.Array

    def model0(self, key):
        return jax.random.normal(key, (2,)) * 0 + jnp.array([1.0, 2.0])

    def views(self, key, number):
        first, second = jax.random.split(key)
        return jax.random.normal(first, (number,)), jax.random.normal(second, (number,))

    def features(self, model, images):
        return images[:, None] * model


def test_features_are_judged_by_their_neighbours_in_the_examples_that_score():
    labels = np.arange(24) % 2
    tests = labels[:16].copy()
    tests[10:] = 1 - tests[10:]  # of the second half, which scores, six of eight are wrong
    spread = 1 + 0.01 * np.arange(24)
    views = Clusters(
        *(
            jnp.asarray(part)
            for part in ((2 * labels - 1) * spread, labels, (2.0 * labels - 1)[:16] * spread[:16], tests)
        )
    )
    found = raced(representation, Idle(), views, cost=50, settings={"batch": 3, "classes": 2})
    np.testing.assert_array_equal(found["cost"], [20, 40])
    np.testing.assert_allclose(found["error"], 0.75)
    np.testing.assert_allclose(found["rank"], 1.0, rtol=1e-3)


# -- recovery, robustness, choices: whose examples are whose -----------------------------------------------------------


class Identity:
    """Gives back what it sees."""

    trainable = False

    def __call__(self, signals):
        return signals

    def synthesise(self, codes):
        return codes


def test_who_gives_back_what_it_sees_is_as_wrong_as_the_noise_is_loud():
    snr = 60.0  # half precision would not hear it
    signals = np.random.default_rng(0).normal(size=(64, 40))
    recording = {"signals": signals, "dictionary": np.eye(40)}
    found = raced(recovery, Identity(), recording, cost=4, settings={"snr": snr}, again=["normal, 2 times"])
    np.testing.assert_array_equal(found["cost"], [2, 4])
    # Eight signals of forty numbers: χ² with 320 degrees of freedom, in decibels.
    np.testing.assert_allclose(found["error"], -snr, atol=4 * 10 / np.log(10) * np.sqrt(2 / 320))


class NoAttack:
    """Three gradients for each image, and no change."""

    def run(self, key, images, labels):
        return 0 * images * jax.random.uniform(key), Info(jnp.full(len(images), 3))


class Bright(eqx.Module):
    """Says 1 of a bright image; the first half of the labels is wrong, the second right."""

    images: jax.Array
    labels: jax.Array
    level: float

    def logits(self, images):
        bright = images.mean((1, 2, 3)) - self.level
        return jnp.stack([-bright, bright], axis=-1)

    @property
    def others(self):
        """One is always wrong, the others say 1 of everything."""
        ones = lambda images: jnp.stack([-(self.logits(images)[:, 0] ** 2), 0 * images[:, 0, 0, 0]], axis=-1)  # noqa: E731
        return (lambda images: -self.logits(images), ones, ones)


@pytest.mark.parametrize(
    ("phase", "level", "right"), [("tune", 0.5, 0.0), ("score", 0.5, 1.0), ("score", np.nan, np.nan)]
)
def test_accuracy_is_the_share_of_images_still_told_right_and_nothing_where_nothing_is_told(phase, level, right):
    bright = np.arange(16) % 2
    images = np.tile(0.25 + 0.5 * bright[:, None, None, None], (1, 2, 2, 1))
    classifier = Bright(jnp.asarray(images), jnp.asarray(np.where(np.arange(16) < 8, 1 - bright, bright)), level)
    found = raced(robustness, NoAttack(), classifier, cost=4, points=1, phase=phase, metric="accuracy")
    np.testing.assert_array_equal(found["accuracy"], [right])
    chosen = np.asarray(jax.random.permutation(jax.random.split(jax.random.key(3))[0], 8))[:4]
    ones = np.asarray(classifier.labels)[chosen + (0 if phase == "tune" else 8)].mean() + 0 * right
    np.testing.assert_allclose(found["transferred"], [(1 - right + 2 * ones) / 3])  # without the one attacked
    np.testing.assert_array_equal(found["cost"], [12])  # four images


class Layers:
    """So many layers, trained on pairs that are remembered."""

    trainable = True

    def __call__(self, signals):
        return signals

    def synthesise(self, codes):
        return codes


def test_networks_are_trained_at_the_noise_that_is_asked_for(monkeypatch):
    """On the half of the signals that neither tunes nor scores."""
    seen = []

    def fit(key, solver, pairs, **more):
        seen.append(pairs)
        return solver, None

    monkeypatch.setattr(recovery, "fit", fit)
    monkeypatch.setattr(recovery, "made", lambda settings, **given: Layers())
    train = jnp.asarray(np.random.default_rng(0).normal(size=(20, 40)), jnp.float32)
    for snr in (0.0, 40.0):
        recovery._solver({"snr": snr, "learning_rate": 0.1}, None, train, jax.random.key(0), 2)
        noisy, clean = (np.asarray(part) for part in seen[-1])
        np.testing.assert_array_equal(clean, train)
        told = 10 * np.log10((clean**2).sum() / ((noisy - clean) ** 2).sum())
        assert told == pytest.approx(snr, abs=1.0)  # 800 numbers: a standard error of 0.2 decibels


class Parts(eqx.Module):
    """A loss that says which rows it is asked about."""

    inputs: jax.Array
    targets: jax.Array

    def theta0(self, key):
        return jax.random.normal(key, (2,))

    def logits(self, params, inputs):
        return inputs * params

    def loss(self, params, z, inputs, targets):
        return targets + 0 * jnp.sum(z, axis=-1)


def relaxed(key, function, logits):
    """The loss of the probabilities themselves."""
    return function(jax.nn.softmax(logits + 0 * jax.random.normal(key, logits.shape)))


def test_the_last_quarter_of_the_rows_scores():
    part = np.empty(16)
    part[np.random.default_rng(0).permutation(16)] = np.repeat([1.0, 1.0, 2.0, 3.0], 4)
    model = Parts(jnp.ones((16, 2)), jnp.asarray(part))
    settings = {"learning_rate": 0.1}
    more = {"batch": 4, "draws": 2, "again": ["gumbel, 2 times"]}  # that of the judge, who has one noise
    found = raced(categorical_gradients, relaxed, model, 20, settings=settings, **more)
    np.testing.assert_array_equal(found["cost"], [8, 20])
    np.testing.assert_allclose([found["loss"], found["greedy"]], 3.0)
    # Who looks at the loss of three samples a row pays for three.
    more["again"] = []  # what has been traced says no more of its keys
    found = raced(categorical_gradients, relaxed, model, 68, settings=settings | {"samples": 3}, **more)
    np.testing.assert_array_equal(found["cost"], [24, 60])


# -- in NumPy ----------------------------------------------------------------------------------------------------------


class Known:
    """Finds the true variables from the response that was made up, misses one and adds two that are false."""

    def fit(self, x, y):
        self.x, self.y = x, y
        signal = np.linalg.lstsq(x, y, rcond=None)[0] * np.sqrt(len(x)) / selection.STRENGTH
        self.signs = np.round(signal)
        self.support = self.signs != 0
        self.support[np.flatnonzero(self.support)[0]] = False
        self.support[np.flatnonzero(self.signs == 0)[:2]] = True

    def get_support(self):
        return self.support


def test_what_is_found_and_what_is_false_is_counted_on_a_response_with_the_noise_of_the_table():
    rng = np.random.default_rng(0)
    table, known = {"X": rng.normal(3.0, 2.0, (400, 10)), "y": rng.lognormal(size=400)}, Known()
    found = raced(selection, known, table, cost=1, points=1)
    assert np.abs(known.signs).sum() == 3  # three of ten columns are true: two of them are found, and two that are not
    assert (found["power"], found["false"], found["f1"]) == (2 / 3, 2 / 4, 4 / 7)
    noise = known.y - known.x @ known.signs * selection.STRENGTH / np.sqrt(400)
    y = table["y"]
    np.testing.assert_allclose(np.sort(noise), np.sort((y - y.mean()) / y.std()), atol=1e-9)
    np.testing.assert_allclose([known.x.mean(0), known.x.std(0)], [np.zeros(10), np.ones(10)], atol=1e-12)


class Pairs:
    """The two likeliest labels, always."""

    def fit(self, key, scores, labels):
        jax.random.gumbel(key)
        self.fitted = scores

    def predict_size(self, key, scores):
        jax.random.uniform(key)
        self.judged = scores
        return np.full(len(scores), 2)


@pytest.mark.parametrize("phase", ["tune", "score"])
def test_sets_are_judged_by_rows_that_did_not_calibrate_them(phase):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(1000, 5))
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    pairs, problem = Pairs(), {"scores": scores, "labels": labels}
    more = {"points": 1, "phase": phase, "settings": {"alpha": 0.1}}
    more["again"] = ["gumbel, 2 times"]  # what compiles is fitted once more
    found = raced(prediction_sets, pairs, problem, cost=240, **more)
    place = {row.tobytes(): i for i, row in enumerate(scores)}
    fitted, judged = ([place[row.tobytes()] for row in rows] for rows in (pairs.fitted, pairs.judged))
    half = range(500) if phase == "tune" else range(500, 1000)
    assert (len(fitted), len(judged)) == (240, 250)
    assert set(fitted) | set(judged) <= set(half)
    assert not set(fitted) & set(judged)
    rank = 1 + (scores > scores[np.arange(1000), labels][:, None]).sum(1)[judged]
    assert found["size"] == 2
    assert found["coverage"] == pytest.approx((rank <= 2).mean())
    assert found["hard"] == pytest.approx((rank[rank > 1] == 2).mean())


# -- PDEs --------------------------------------------------------------------------------------------------------------


class Value(eqx.Module):
    """Only where it starts."""

    x0: jax.Array


class Guess:
    """Says minus one, but for what cannot be seen in the error."""

    def run(self, key, pde):
        return SimpleNamespace(v0=-1.0 + 0.0 * jax.random.normal(key))


@pytest.mark.parametrize("truth", [-2.0, 2.0, -0.5, -1.0])
def test_the_error_of_a_value_is_relative_and_never_negative(truth):
    """Whatever the sign of the truth; every budget is a run of its own on the same paths."""
    more = {"settings": {"truth": truth}, "again": ["normal, 2 times"]}
    found = raced(pde, Guess(), Value(jnp.zeros(2, jnp.float32)), cost=8, **more)
    np.testing.assert_array_equal(found["cost"], [4, 8])
    np.testing.assert_allclose(found["error"], abs((-1.0 - truth) / truth))


# -- simulators --------------------------------------------------------------------------------------------------------


def test_normalisers_see_as_many_windows_as_are_charged():
    gathered = []
    trainer = SimpleNamespace(
        init=lambda simulator: "begun", gather=lambda *given: gathered.append(given) or "gathered"
    )
    simulator = SimpleNamespace(integrator=SimpleNamespace(num_frames=2))
    settings = {"code": "planted", "area": "", "swept": "", "planted": lambda key, graph: (simulator, trainer)}
    train = jnp.asarray(np.random.default_rng(0).normal(size=(3, 9, 4, 1)))
    count, cost = jax.jit(lambda key: simulators._begin(settings, None, train, key, 4, 5)[1:])(jax.random.key(0))
    ((_, _, windows, before),) = gathered
    assert (before, int(count), int(cost)) == ("begun", 0, 20)
    assert windows.shape == (20, 3, 4, 1)
