"""The claims of DirectPred: trials that run and report what is read, and that would notice a fault."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trial_runner import compiled, run

from laureate.lab.claim import Settings
from laureate.lab.running.references import load
from laureate.papers.directpred import trials_parity
from laureate.papers.directpred.about import PAPER
from laureate.papers.directpred.trials_parity import parity
from laureate.problems.views import ImagePairs, LabelledPairs, SharedDirections

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


def test_the_ids_are_the_ones_promised():
    promised = {"modes", "invariant-subspace", "collapse", "rank", "alignment", "weight-decay", "ema", "eigen-floor"}
    promised |= {"frequency", "accuracy", "accuracy-augmented", "accuracy-random", "accuracy-random-neighbours"}
    assert promised <= {claim.name for claim in PAPER.claims}


def test_the_collapse_trial_predicts_the_rate_it_measures():
    """A wrong factor in the prediction, or a loss of one direction instead of two, would show."""
    experiment = EXPERIMENTS["collapse"]
    problem = SharedDirections(**experiment.scales["smoke"].problem)
    arm = experiment.arm("no-predictor").settings
    metrics = run(load(experiment.trial), arm, problem, {"steps": 300, "batch": 512}, seeds=4)
    np.testing.assert_allclose(metrics["rate_ratio"].mean(), 1.0, atol=0.04)


def test_energy_and_spectrum_of_a_known_network():
    problem = SharedDirections(inputs=4, shared=2, dim=2)
    model = jax.numpy.array([[3.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    np.testing.assert_allclose(problem.energy(model), 10 / 12)
    np.testing.assert_allclose(problem.spectrum(model), [1.0, 9.0], rtol=1e-6)


def test_views_of_one_image_are_alike_and_of_two_are_not():
    problem = ImagePairs("digits", pool=1)
    first, second = map(np.asarray, jax.jit(lambda key: problem.views(key, 1500))(jax.random.key(0)))
    alike = np.mean(np.sum((first - second) ** 2, axis=1))
    strangers = np.mean(np.sum((first - np.roll(second, 1, axis=0)) ** 2, axis=1))
    assert alike < 0.97 * strangers  # mirrored and moved by an eighth of eight pixels, digits are hard to recognise


@pytest.mark.slow
def test_pairs_of_ones_own_run():
    """A user's own problem, with the five things the experiment asks for and nothing else."""

    class Own:
        dim = 3

        def model0(self, key):
            return jax.random.normal(key, (3, 5))

        def views(self, key, number):
            x = jax.random.normal(key, (number, 5))
            return x, x[:, ::-1]

        def apply(self, model, batch):
            return batch @ model.T

        def outputs(self, model, key, number):
            return self.apply(model, self.views(key, number)[0])

    experiment = EXPERIMENTS["rank"]
    assert all(hasattr(Own, name) for name in experiment.accepts)
    metrics = compiled(
        load(experiment.trial),
        jax.random.key(0),
        experiment.arm("direct-pred").settings,
        Own(),
        experiment.scales["tiny"].settings,
    )
    assert np.isfinite(metrics["rank"])


class Blobs:
    """Three classes of vectors, told apart by their length alone; the model is a number that says which features."""

    dim, classes, least = 2, 3, 20

    def __init__(self):
        draw = np.random.default_rng(0)
        self.labels = jnp.asarray(draw.integers(0, 3, 120))
        self.images = (1.0 + self.labels[:, None]) * jnp.asarray(draw.choice([-1.0, 1.0], (120, 2)))
        self.test_labels, self.test_images = self.labels[:60], self.images[:60]

    def model0(self, key):
        return jax.random.normal(key, (2, 2))

    def apply(self, model, batch):
        return batch @ model.T

    def features(self, model, images):
        lengths = jnp.abs(images[:, :1])
        return jnp.concatenate([jnp.cos(lengths), jnp.sin(lengths), lengths**2], axis=1)

    def views(self, key, number):
        return self.images[:number], self.images[:number]

    def augmented(self, key, images):
        return jnp.zeros_like(images)  # nothing is left to tell the classes by

    def few(self, key, per_class):
        return LabelledPairs.few(self, key, per_class)


@pytest.mark.parametrize("arm", [pytest.param("random", marks=pytest.mark.slow), "linear"])
def test_accuracy_is_one_where_the_features_tell_and_chance_where_the_views_hide(arm):
    experiment, scale = EXPERIMENTS["accuracy"], EXPERIMENTS["accuracy"].scales["tiny"].settings
    problem = Blobs()
    assert all(hasattr(problem, name) for name in experiment.accepts)
    settings = {"batch": 16, "steps": 2, "per_class": 7, "bank_per_class": 20}
    assert set(settings) == set(scale)
    metrics = load(experiment.trial)(jax.random.key(0), experiment.arm(arm).settings, problem, Settings(settings))
    assert float(metrics["few_label"]) == float(metrics["neighbours"]) == 1.0
    shares = [float(np.mean(problem.test_labels == label)) for label in range(3)]
    for metric in ("few_label_augmented", "neighbours_augmented"):
        assert min(abs(float(metrics[metric]) - share) for share in shares) < 1e-6  # one class for all


def test_labels_are_drawn_from_every_class_alike_and_anew_for_every_seed():
    problem = LabelledPairs("digits", side=8, channels=(4,), train=500, test=100)
    first, second = (np.asarray(problem.few(jax.random.key(seed), 5)) for seed in (0, 1))
    for chosen in (first, second):
        assert len(set(chosen.tolist())) == 50
        np.testing.assert_array_equal(np.bincount(np.asarray(problem.labels)[chosen]), np.full(10, 5))
    assert set(first.tolist()) != set(second.tolist())
    everything = np.asarray(problem.few(jax.random.key(0), 1000))
    assert len(set(everything.tolist())) == len(everything) == 10 * np.bincount(problem.labels).min()


def test_an_augmented_image_resembles_its_own_original_most():
    problem = LabelledPairs("digits", side=8, channels=(4,), train=500, test=100)
    images = np.asarray(problem.images)[:200]
    views = np.asarray(jax.jit(lambda key, images: problem.augmented(key, images))(jax.random.key(0), images))
    alike = np.mean(np.sum((views - images) ** 2, axis=(1, 2)))
    strangers = np.mean(np.sum((views - np.roll(images, 1, axis=0)) ** 2, axis=(1, 2)))
    assert alike < 0.97 * strangers
    assert problem.test_images.shape == (100, 8, 8)
    np.testing.assert_allclose([problem.images.mean(), problem.images.std()], [0.0, 1.0], atol=1e-5)


def test_a_side_that_the_images_do_not_have_is_told():
    with pytest.raises(ValueError, match=r"LabelledPairs\.side must be at least 8, or 8 over one of its divisors"):
        LabelledPairs("digits", side=5)


PARITY = EXPERIMENTS["parity"]


@pytest.mark.slow
def test_parity_trains_nothing_in_the_random_arm():
    """With no step at all both predictors leave the encoder that training starts from."""
    scale = Settings(PARITY.scales["tiny"].settings, steps=0)
    problem, key = LabelledPairs(**PARITY.scales["tiny"].problem), jax.random.key(0)
    found = [compiled(parity, key, PARITY.arm(name).settings, problem, scale) for name in ("direct-pred", "random")]
    assert {name: float(value) for name, value in found[0].items()} == {n: float(v) for n, v in found[1].items()}


def test_parity_trains_what_the_arm_names(monkeypatch):
    scale = Settings(PARITY.scales["tiny"].settings)
    problem, key = LabelledPairs(**PARITY.scales["tiny"].problem), jax.random.key(0)
    made = []
    monkeypatch.setattr(trials_parity, "Siamese", lambda predictor, *_, **__: made.append(predictor) or 1 / 0)
    for name in ("direct-pred", "two-layer"):
        with pytest.raises(ZeroDivisionError):
            jax.eval_shape(lambda key, name=name: parity(key, PARITY.arm(name).settings, problem, scale), key)
    assert [type(one).__name__ for one in made] == ["DirectPred", "TwoLayer"]
    assert made[1].hidden == 4 * problem.dim
