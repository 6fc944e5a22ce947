"""Parts of tracks that compute in NumPy or with tiny programs: whose rows are whose, what fits, what is judged."""

import itertools
import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.lab.claim import Settings
from laureate.racing.disciplines import disciplines
from laureate.racing.tracks import compression, generative, gradients, multitask

# -- generative --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [40, 43])
def test_pairs_are_judged_in_deviations_of_those_that_train(count):
    """Half train; a quarter each tunes and scores, and no pair does two of these."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(3.0, 2.0, (count, 2)), np.exp(rng.normal(size=(count, 1)))
    parts = {phase: generative._parts(SimpleNamespace(x=x, y=y), phase) for phase in ("tune", "score")}
    (train, tuning), (again, scoring) = parts["tune"], parts["score"]
    for one, two in zip(train, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert [len(part[0]) for part in (train, tuning, scoring)] == [count // 2, count // 4, count // 4]
    np.testing.assert_allclose([part.mean() for part in (train[0][:, 0], train[1])], 0.0, atol=1e-5)
    np.testing.assert_allclose([part.std() for part in (train[0][:, 0], train[1])], 1.0, atol=1e-4)
    order = np.random.default_rng(0).permutation(count)  # whose is which is no seed's doing
    rows = order[: count // 2], order[count // 2 :][: count // 4], order[count // 2 + count // 4 :][: count // 4]
    for part, mine in zip((train, tuning, scoring), rows, strict=True):
        for values, given in zip(part, (x, y), strict=True):
            first = given[rows[0]]
            np.testing.assert_allclose(values, (given[mine] - first.mean(0)) / first.std(0), atol=1e-4)


# -- compression -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [1, 40, 97, 1000, 10**6])
@pytest.mark.parametrize("code", ["Q(num_bits)", "Q(block, num_centroids)", "Q()"])
def test_the_finest_settings_that_fit_are_taken(code, target, monkeypatch):
    """By enumeration, of settings some of which the model does not allow and some of which are warned of."""

    def size_of(chosen):
        if chosen.get("block") == 4:
            raise ValueError("blocks that do not divide")
        if chosen.get("num_centroids") == 256:
            warnings.warn("more centroids than blocks", stacklevel=1)
        return 40 * chosen.get("num_bits", 2) + 7 * chosen.get("num_centroids", 0) // chosen.get("block", 1)

    monkeypatch.setattr(compression, "made", lambda arm, **chosen: chosen)
    monkeypatch.setattr(compression, "expected_bytes", lambda model, chosen: size_of(chosen))
    names = [name for name in compression.CHOICES if name in code]
    fitting = {}
    for values in itertools.product(*(compression.CHOICES[name] for name in names)):
        chosen = dict(zip(names, values, strict=True))
        if chosen.get("block") != 4 and chosen.get("num_centroids") != 256 and size_of(chosen) <= target:
            fitting.setdefault(size_of(chosen), chosen)  # of equals the first
    found = compression._finest(Settings(code=code), None, target)
    largest = max(fitting, default=0)
    assert found == ((fitting[largest], fitting[largest], largest) if fitting else None)


# -- gradients, several losses -----------------------------------------------------------------------------------------


def test_episodes_are_judged_by_their_mean_loss_a_step():
    """Losses theta (1 + 2 + 3 + 4), and noise of an episode's own, which more episodes average."""
    unroll = SimpleNamespace(
        horizon=4,
        init=lambda key, theta: (jnp.zeros(()), jax.random.normal(key)),
        step=lambda key, theta, state: ((state[0] + 1, state[1]), theta * (state[0] + 1) + state[1]),
    )
    judge = jax.jit(lambda key, theta, number: gradients._judge(unroll, key, theta, number), static_argnums=2)
    one, many = (np.array([judge(jax.random.key(i), 2.0, n) for i in range(20)]) for n in (1, 64))
    # Means of 20 and of 1,280 standard normal numbers, and their spread; four standard errors.
    assert abs(one.mean() - 5.0) < 4 / np.sqrt(20)
    assert abs(many.mean() - 5.0) < 4 / np.sqrt(1280)
    assert many.std() < 0.5 < one.std()


def test_tasks_are_judged_by_the_worst_and_by_their_mean():
    tasks = SimpleNamespace(scores=lambda params, part: jnp.array([3.0, -1.0, 7.0]) * (1 if part == "test" else 2))
    for part, factor in (("test", 1), ("validation", 2)):
        found = multitask._judge(tasks, None, part)
        assert {name: float(value) for name, value in found.items()} == {"worst": -factor, "mean": 3.0 * factor}


# -- declarations ------------------------------------------------------------------------------------------------------

LOW, HIGH = ("lower", (), False), ("higher", (), False)
# Which way is up, at what end a metric can say no more, and whether factors are compared: said twice, for all that is
# advised turns on it. The first decides.
METRICS = {
    "active": {"error": LOW, "bias": LOW, "covered": HIGH},
    "calibration": {"brier": LOW, "nll": LOW, "ks": LOW},
    "categorical-gradients": {"loss": LOW, "greedy": LOW},
    "compression": {"loss": LOW, "error": ("lower", (0.0,), False)},
    "decentralized": {"loss": LOW, "mean_model_loss": LOW},
    "exploration": {"fresh": HIGH, "earned": HIGH},
    "generative": {"score": LOW, "error": LOW, "diversity": HIGH},
    "gradients": {"loss": LOW},
    "imbalance": {
        "error": ("lower", (0.0,), False),
        "worst": ("lower", (0.0, 1.0), False),
        "plain": ("lower", (0.0,), False),
    },
    "multitask": {"worst": ("higher", (1.0,), False), "mean": ("higher", (1.0,), False)},
    "pde": {"error": ("lower", (), True)},
    "prediction-sets": {
        "size": LOW,
        "violation": ("lower", (0.0,), False),
        "hard": ("higher", (1.0,), False),
        "coverage": ("higher", (1.0,), False),
    },
    "recovery": {"error": LOW},  # decibels are logarithms already
    "representation": {"error": ("lower", (0.0,), False), "rank": HIGH},
    "robustness": {"accuracy": ("lower", (0.0,), False), "transferred": ("lower", (0.0,), False)},
    "sampling": {"ess": ("higher", (), True), "rhat": LOW, "logdensity": HIGH},
    "selection": {
        "f1": ("higher", (1.0,), False),
        "power": ("higher", (1.0,), False),
        "false": ("lower", (0.0,), False),
    },
    "simulators": {"error": ("lower", (), True), "step": ("lower", (), True)},
}
# Every point of a curve is a run of its own; the least and the most that a run is given.
ONE_SHOT = {
    "active": (8, 2_000_000_000),
    "calibration": (50, 2_000_000_000),
    "compression": (1, 2_000_000_000),
    "pde": (4000, 50_000_000),
    "prediction-sets": (200, 2000),
    "recovery": (8, 32),
    "robustness": (20, 200),
    "selection": (1, 4),
}


def test_every_metric_is_declared_as_it_is_meant():
    found = {one.name: one for one in disciplines()}
    assert found.keys() == METRICS.keys()
    for name, one in found.items():
        told = {metric.name: (metric.better, metric.limits, metric.log) for metric in one.metrics}
        assert list(told.items()) == list(METRICS[name].items()), name
        assert one.metric() == one.metrics[0]
        assert [one.metric(metric) for metric in told] == list(one.metrics)
        assert one.one_shot == (name in ONE_SHOT), name
        assert (one.smallest, one.largest) == ONE_SHOT.get(name, (1, 2_000_000_000)), name
        assert one.x64 == (name == "pde"), name
