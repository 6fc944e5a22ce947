"""What demanding users met: batch normalisation, pipelines of scikit-learn, bytes, views that do not fit."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from laureate._core import Status
from laureate.layers import BatchNorm, RunningStatistics
from laureate.representation import (
    Brightness,
    Compose,
    DirectPred,
    EncoderFeatures,
    Identity,
    JointEmbedding,
    Noise,
    Rescale,
    Siamese,
    VICReg,
    fine_tune,
    knn_probe,
    linear_probe,
    two_views,
)

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (16, 3)) * jnp.array([1.0, 2.0, 3.0]) + 5.0
PAIR = X, X + 0.1


class Normalised(eqx.Module):
    """A linear layer, batch normalisation with running statistics, a linear layer."""

    first: jax.Array
    norm: BatchNorm
    running: RunningStatistics
    last: jax.Array

    @classmethod
    def start(cls, key):
        a, b = jax.random.split(key)
        norm = BatchNorm(5)
        return cls(jax.random.normal(a, (3, 5)), norm, norm.init(), jax.random.normal(b, (5, 4)))


def apply(model, batch):
    """While training: the batch's own statistics, of which an average is kept."""
    hidden, seen = model.norm(batch @ model.first)
    running = model.running.average(seen, 0.9)
    return jnp.tanh(hidden) @ model.last, eqx.tree_at(lambda m: m.running, model, running)


def evaluate(model, batch):
    return jnp.tanh(model.norm(batch @ model.first, model.running)[0]) @ model.last


def averaged(model, batches):
    """The running statistics by hand: mean and variance a batch, the first counting whole."""
    hidden = [np.asarray(batch @ model.first, np.float64) for batch in batches]
    mean, variance = hidden[0].mean(0), hidden[0].var(0)
    for values in hidden[1:]:
        mean, variance = 0.9 * mean + 0.1 * values.mean(0), 0.9 * variance + 0.1 * values.var(0)
    return mean, variance


TRAINERS = {
    "siamese": Siamese(DirectPred(dim=4), optax.adamw(0.0, weight_decay=1.0), momentum=0.5, apply=apply),
    "simsiam": Siamese(Identity(4), optax.adamw(0.0, weight_decay=1.0), momentum=None, apply=apply),
    "joint": JointEmbedding(VICReg(), optax.adamw(0.0, weight_decay=1.0), apply=apply),
}


@pytest.mark.parametrize("name", ["siamese", pytest.param("simsiam", marks=pytest.mark.slow), "joint"])
def test_running_statistics_are_carried_and_not_trained(name):
    trainer, model = TRAINERS[name], Normalised.start(KEY)
    state, step = trainer.init(KEY, model), eqx.filter_jit(trainer.step)
    for _ in range(2):  # a rate of zero: the weights stay, and so the statistics are known
        state, info = step(state, *PAIR)
        assert int(info.status) == Status.OK
    mean, variance = averaged(model, 2 * PAIR)
    assert_allclose(state.online.running.mean, mean, rtol=1e-4)
    assert_allclose(state.online.running.variance(), variance, rtol=1e-3)
    assert int(state.online.running.count) == 2 * 2 * 16
    assert eqx.tree_equal(state.online.first, model.first)
    # a step that is not taken leaves them, too, and all else; nor is it counted
    after, info = step(state, X.at[0, 0].set(jnp.nan), PAIR[1])
    assert int(info.status) == Status.DIVERGED
    assert eqx.tree_equal(after, state)
    assert int(state.step) == 2
    memory = [leaf.shape for leaf in jax.tree.leaves(state.optimiser) if eqx.is_array(leaf) and leaf.ndim]
    assert memory.count((5,)) == 4  # scale and shift, two moments each: none of the statistics


def test_the_target_keeps_statistics_of_its_own():
    """Those of both views, one after the other, of both networks, whose weights are apart from the beginning."""
    trainer = Siamese(DirectPred(dim=4), optax.sgd(0.5), momentum=0.9, target_init="independent", apply=apply)
    models, step = map(Normalised.start, jax.random.split(KEY)), eqx.filter_jit(trainer.step)
    state, kept = trainer.init(KEY, *models), {"online": None, "target": None}
    for number in range(2):
        used = state
        state, _ = step(state, *PAIR)
        for name, before in kept.items():
            network = getattr(used, name)
            hidden = [np.asarray(view @ network.first, np.float64) for view in PAIR]
            for values in hidden:
                seen = np.stack([values.mean(0), values.var(0)])
                before = seen if before is None else 0.9 * before + 0.1 * seen
            running, kept[name] = getattr(state, name).running, before
            assert_allclose(running.mean, before[0], rtol=1e-4)
            assert_allclose(running.variance(), before[1], rtol=1e-3)
            assert int(running.count) == (number + 1) * 2 * 16
        mixed = 0.9 * used.target.first + 0.1 * state.online.first
        assert_allclose(state.target.first, mixed, rtol=1e-5, atol=1e-6)
        assert np.abs(np.asarray(used.target.first - used.online.first)).max() > 0.1


def test_equinox_batch_normalisation_with_its_state():
    class Net(eqx.Module):
        linear: eqx.nn.Linear
        norm: eqx.nn.BatchNorm

        def __call__(self, x, state):
            return self.norm(self.linear(x), state)

    def of(model, batch):
        net, state = model
        mapped = jax.vmap(net, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        out, state = mapped(batch, state)
        return out, (net, state)

    def make(key):
        return Net(eqx.nn.Linear(3, 4, key=key), eqx.nn.BatchNorm(4, "batch", mode="batch"))

    model = eqx.nn.make_with_state(make)(KEY)
    trainer = JointEmbedding(VICReg(), optax.sgd(0.1), apply=of)
    state, step = trainer.init(KEY, model), eqx.filter_jit(trainer.step)
    start = state
    state, _ = step(state, *PAIR)
    state, info = step(state, *PAIR)
    assert int(info.status) == Status.OK
    moved = [
        not np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(start.online[1]), jax.tree.leaves(state.online[1]), strict=True)
    ]
    assert all(moved)


@pytest.mark.slow
def test_fine_tuning_reads_outputs_beside_statistics():
    model = eqx.tree_at(lambda m: m.running, Normalised.start(KEY), BatchNorm(5)(X @ jnp.ones((3, 5)))[1])
    labels = (X[:, 0] > 5).astype(int)
    more = {"optimiser": optax.adam(0.1), "num_steps": 2, "batch": 8}
    found = [
        fine_tune(KEY, model, X, labels, X, labels, 2, apply=f, **more) for f in (apply, lambda m, x: apply(m, x)[0])
    ]
    assert_allclose(found[0], found[1])


# --- errors at the door ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRAINERS)
def test_views_of_unequal_batches(name):
    trainer = eqx.tree_at(lambda t: t.apply, TRAINERS[name], lambda model, batch: batch @ model.first[:, :4])
    state = trainer.init(KEY, Normalised.start(KEY))
    with pytest.raises(
        ValueError, match=r"step.view1 and view2 must be of the same .*; got \(\(16, 4\), \(8, 4\)\). two"
    ):
        trainer.step(state, X, X[:8])
    with pytest.raises(ValueError, match=r"with outputs \[batch, D\] of one shape; got \(\(4,\), \(4,\)\)"):
        trainer.step(state, X[0], X[0])


@pytest.mark.parametrize("view", [Noise(), Brightness(), Rescale(), Compose(Noise())])
def test_bytes_are_told_from_floats(view):
    image = jnp.zeros((2, 8, 8, 3), jnp.uint8)
    with pytest.raises(
        ValueError, match=r"\w+.example must be of floats; got 'uint8'. Bytes become such by image / 255"
    ):
        two_views(KEY, view, image)


@pytest.mark.parametrize("labels", [jnp.arange(1, 5), jnp.arange(-1, 3)])
def test_labels_are_told_as_they_are(labels):
    ends = rf"got \({int(labels.min())}, {int(labels.max())}\)"
    with pytest.raises(ValueError, match=rf"train_labels must be integers in 0..3; {ends}. Labels 1..K become"):
        linear_probe(X[:4], labels, X[:4], labels, 4)


def test_labels_that_are_traced_are_told_by_nan():
    probe = jax.jit(lambda labels, others: knn_probe(X[:4], labels, X[:4], others, 4, k=1))
    right, wrong = np.arange(4), np.arange(1, 5)
    assert probe(right, right).value == 1
    for labels in ((wrong, right), (right, wrong), (wrong, wrong)):
        assert np.isnan(probe(*labels)).all()


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def test_a_pipeline_on_learned_features():
    rows, labels = np.asarray(X, np.float64), np.asarray(X[:, 0] > 5)
    model, _ = apply(Normalised.start(KEY), X)[1], None
    steps = [("features", EncoderFeatures(model, apply=evaluate, batch_size=5)), ("scale", StandardScaler())]
    pipeline = Pipeline([*steps, ("classify", LogisticRegression())]).fit(rows, labels)
    assert pipeline.score(rows, labels) > 0.8
    features = pipeline["features"]
    assert_allclose(features.transform(rows), evaluate(model, X), rtol=1e-5, atol=1e-5)  # 16 rows by fives
    assert features.get_feature_names_out().tolist() == [f"encoderfeatures{i}" for i in range(4)]
    copy: Any = clone(pipeline)
    again = copy.fit(rows, labels)
    assert_allclose(again.predict_proba(rows), pipeline.predict_proba(rows))
    search = GridSearchCV(pipeline, {"classify__C": [0.1, 1.0]}, cv=2).fit(rows, labels)
    assert search.best_params_["classify__C"] in (0.1, 1.0)


def test_features_of_doubles_are_doubles_where_jax_has_them():
    """All sixteen digits, and sizes that single precision does not have, in fitting as in transforming."""
    rows = np.array([[1 + 1e-12, -1e200], [np.pi, 1e-200]])
    with jax.enable_x64(True):
        found = EncoderFeatures(None, apply=lambda _, x: x, batch_size=2).fit(rows).transform(rows)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, rows)


def test_examples_of_a_shape():
    images = np.arange(24.0).reshape(2, 12)
    mean = EncoderFeatures(None, shape=(2, 2, 3), apply=lambda _, x: x.mean((1, 2)), batch_size=2)
    assert_allclose(mean.fit_transform(images), images.reshape(2, 4, 3).mean(1))
    with pytest.raises(ValueError, match=r"EncoderFeatures.shape must be of 12 numbers, as the rows.*; got \(3, 3\)"):
        EncoderFeatures(None, shape=(3, 3), apply=lambda _, x: x).fit(images)
    with pytest.raises(ValueError, match=r"EncoderFeatures.batch_size must be >= 1; got 0"):
        EncoderFeatures(None, batch_size=0).fit(images)
