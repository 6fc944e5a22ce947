"""Section 9 of the notes: what a user may get wrong, and what they are told."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from laureate._core import Status
from laureate.representation import (
    BarlowTwins,
    DirectCopy,
    DirectPred,
    DirectSet,
    Identity,
    LinearDynamics,
    Siamese,
    SimCLR,
    accuracy,
    collapse_report,
    fine_tune,
    knn_probe,
    linear_probe,
)

KEY = jax.random.key(0)
Z = jax.random.normal(KEY, (8, 4))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rho": 1.0}, r"DirectPred.rho must be in \[0, 1\); got 1.0"),
        ({"rho": -0.1}, "DirectPred.rho"),
        ({"epsilon": -0.01}, "DirectPred.epsilon must be >= 0 and finite; got -0.01"),
        ({"freq": 0}, "DirectPred.freq must be an integer >= 1; got 0"),
        ({"power": 0.0}, "DirectPred.power must be > 0"),
        ({"scale": "mean"}, "DirectPred.scale must be 'max' or 'none'; got 'mean'"),
        ({"root": "svd"}, "DirectPred.root"),
        ({"root": "newton-schulz", "power": 1.0}, "finds square roots"),
    ],
)
def test_wrong_settings_raise_where_the_object_is_made(settings, told):
    with pytest.raises(ValueError, match=told):
        DirectPred(4, **settings)


@pytest.mark.parametrize("shapes", [((8, 4), (7, 4)), ((8, 3), (8, 3)), ((4,), (4,))])
def test_outputs_of_the_wrong_shape(shapes):
    predictor = DirectPred(4)
    with pytest.raises(ValueError, match=r"must both be \[batch, 4\]; got"):
        predictor.update(predictor.init(KEY), *(jnp.zeros(shape) for shape in shapes))


def test_too_few_outputs_to_span_the_space():
    with pytest.warns(UserWarning, match="F is rank-deficient"):
        DirectPred(4, rho=0.0).update(DirectPred(4).init(KEY), Z[:1], Z[:1])
    with pytest.raises(ValueError, match="epsilon must be > 0 then"):
        DirectPred(4, rho=0.0, epsilon=0.0).update(DirectPred(4).init(KEY), Z[:1], Z[:1])
    # two of each view are four, which may span four dimensions: a warning would be an error here
    jax.eval_shape(DirectPred(4, rho=0.0, epsilon=0.0).update, DirectPred(4).init(KEY), Z[:2], Z[2:4])


def test_outputs_that_are_not_finite_change_nothing_and_are_told():
    predictor = DirectPred(4)
    before, _ = predictor.update(predictor.init(KEY), Z, Z)
    after, info = predictor.update(before, Z.at[0, 0].set(jnp.nan), Z)
    assert bool(info.nonfinite)
    assert int(info.status) == Status.DIVERGED
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [DirectPred, DirectCopy])
def test_a_representation_that_has_collapsed_already(kind):
    predictor = kind(4, epsilon=0.1)
    state, info = predictor.update(predictor.init(KEY), jnp.zeros((8, 4)), jnp.zeros((8, 4)))
    assert bool(info.collapsed)
    np.testing.assert_allclose(state.matrix, 0.1 * np.eye(4), atol=1e-7)


def test_a_collapse_is_told_between_the_settings_of_a_predictor_as_well():
    predictor = DirectPred(4, freq=3, rho=0.0)
    update = jax.jit(lambda state, z: predictor.update(state, z, z))
    for z, collapsed in ((Z, False), (jnp.zeros((8, 4)), True)):
        state = predictor.init(KEY)
        for _ in range(3):
            state, info = update(state, z)
            assert bool(info.collapsed) is collapsed


def test_half_precision_outputs_are_accumulated_in_single():
    state, _ = DirectPred(4).update(DirectPred(4).init(KEY), Z.astype(jnp.bfloat16), Z.astype(jnp.bfloat16))
    assert state.correlation.dtype == jnp.float32


def test_the_losses_scale_must_fit():
    for kind in (DirectPred, DirectSet, DirectCopy):
        with pytest.raises(ValueError, match="must be 'none' with loss='l2'; got 'max'"):
            Siamese(kind(4), optax.sgd(0.1), loss="l2")
        assert Siamese(kind(4, scale="none"), optax.sgd(0.1), loss="l2").predictor.scale == "none"
    with pytest.raises(ValueError, match="None with stop_gradient=False"):
        Siamese(Identity(4), optax.sgd(0.1), stop_gradient=False)
    with pytest.raises(ValueError, match=r"Siamese.momentum must be None or in \[0, 1\)"):
        Siamese(Identity(4), optax.sgd(0.1), momentum=1.0)


def test_a_target_of_another_shape():
    siamese = Siamese(Identity(4), optax.sgd(0.1), target_init="independent")
    model, other = eqx.nn.Linear(6, 4, key=KEY), eqx.nn.Linear(5, 4, key=KEY)
    with pytest.raises(ValueError, match=r"differs in \.weight"):
        siamese.init(KEY, model, other)
    bare = eqx.nn.Linear(6, 4, use_bias=False, key=KEY)
    for one, two in ((model, bare), (bare, model)):  # whichever of the two has more
        with pytest.raises(ValueError, match=r"differs in \.bias"):
            siamese.init(KEY, one, two)
    with pytest.raises(ValueError, match="needs a target model"):
        siamese.init(KEY, model)


def test_a_step_with_a_broken_batch_is_not_taken():
    siamese = Siamese(DirectPred(4), optax.sgd(0.1))
    state = siamese.init(KEY, eqx.nn.Linear(6, 4, key=KEY))
    x = jax.random.normal(KEY, (8, 6))
    after, info = eqx.filter_jit(siamese.step)(state, x.at[0, 0].set(jnp.inf), x)
    assert int(info.status) == Status.DIVERGED
    np.testing.assert_array_equal(after.online.weight, state.online.weight)
    assert int(after.step) == 0


def test_other_settings():
    with pytest.raises(ValueError, match=r"SimCLR\.temperature"):
        SimCLR(temperature=0.0)
    with pytest.raises(ValueError, match=r"BarlowTwins\.redundancy"):
        BarlowTwins(redundancy=-1.0)
    with pytest.raises(ValueError, match=r"collapse_report: z must be \[examples, D\]"):
        collapse_report(jnp.zeros(3))
    with pytest.raises(ValueError, match=r"knn_probe\.k"):
        knn_probe(Z, jnp.zeros(8, int), Z, jnp.zeros(8, int), 2, k=9)
    tune = {"optimiser": optax.sgd(0.1), "num_steps": 1, "batch": 2}
    for wrong in ({"num_steps": -1}, {"batch": 0}):
        with pytest.raises(ValueError, match=rf"fine_tune\.{next(iter(wrong))} must be >="):
            fine_tune(KEY, lambda x: x, Z, jnp.zeros(8, int), Z, jnp.zeros(8, int), 2, **(tune | wrong))
    with pytest.raises(ValueError, match=r"must both be \[n, n\]"):
        LinearDynamics(jnp.eye(3), jnp.eye(2))


PROBES = {
    "linear": linear_probe,
    "knn": lambda *given: knn_probe(*given, k=1),
    "tuned": lambda *given: fine_tune(KEY, lambda x: x, *given, optimiser=optax.sgd(0.1), num_steps=1, batch=2),
}


@pytest.mark.parametrize("wrong", ["train_labels", "test_labels"])
@pytest.mark.parametrize("probe", PROBES)
def test_labels_from_one_to_k_are_refused(probe, wrong):
    """Wherever they are: those of the other examples are right."""
    x, labels = np.eye(4), {"train_labels": np.arange(4), "test_labels": np.arange(4)}
    labels[wrong] = np.arange(1, 5)
    with pytest.raises(ValueError, match=rf"{wrong} must be integers in 0..3; got \(1, 4\).* subtracting 1"):
        PROBES[probe](x, labels["train_labels"], x, labels["test_labels"], 4)


@pytest.mark.parametrize("wrong", ["train_labels", "test_labels"])
@pytest.mark.parametrize("probe", PROBES)
def test_labels_are_whole_numbers_one_an_example(probe, wrong):
    """A column would be held against every example; a half is no class, though it lies between two."""
    x, sound = np.eye(4), {"train_labels": np.arange(4), "test_labels": np.arange(4)}
    for given, told in (
        (np.arange(4)[:, None], r"of shape \(4,\), one an example; got \(4, 1\).* labels.ravel\(\)"),
        (np.arange(3), r"of shape \(4,\), one an example; got \(3,\)"),
        (np.array([0.0, 1.0, 1.7, 2.0]), r"integers in 0..3; got \(0.0, 2.0\)"),
        (np.array([-0.5, 1.0, 2.0, 3.0]), r"integers in 0..3; got \(-0.5, 3.0\)"),
    ):
        labels = sound | {wrong: given}
        with pytest.raises(ValueError, match=rf"{wrong} must be {told}"):
            PROBES[probe](x, labels["train_labels"], x, labels["test_labels"], 4)


def test_an_accuracy_is_of_as_many_labels_as_answers():
    with pytest.raises(ValueError, match=r"accuracy.labels must be of the shape .*, \(4,\); got \(4, 1\)"):
        accuracy(np.arange(4), np.arange(4)[:, None])


def test_all_outputs_along_one_line_are_a_collapse():
    from laureate.representation import collapse_report

    along = jax.random.normal(jax.random.key(0), (1000, 1)) * jnp.ones((1, 8))
    report = collapse_report(along)
    assert float(report.spread) > 0.5  # both signs of the line: the spread alone sees nothing
    assert bool(report.collapsed)
