"""Do the trials measure what they say? By cases whose answer is known, and beside TorchJD where it is installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trial_runner import QUICK, run

from laureate.lab.claim import Settings
from laureate.multitask import vaccine
from laureate.papers.gradvac import trials
from laureate.papers.gradvac.about import PAPER


@pytest.mark.slow
def test_two_tasks_reach_their_target_and_five_need_not():
    two = run(trials.pairs, {"tasks": 2}, None, {"draws": 50, "dim": 10}, x64=True)
    assert (two["log10_miss"] < -9).all()
    assert (two["missed"] == 0).all()
    five = run(trials.pairs, {"tasks": 5}, None, {"draws": 50, "dim": 10}, x64=True)
    assert (five["log10_miss"] > -2).all()
    assert (five["missed"] > 0).all()
    assert (five["missed"] < 1).all()


@pytest.fixture(scope="module")
def settled():
    """Three tasks of cosine 0.3: tracked, tracked only with corrections, and not tracked, in one program."""
    scale = Settings(steps=300, dim=60)
    arms = {"beta": jnp.array([0.1, 0.1, 0.0]), "inside": jnp.array([0.0, 1.0, 0.0])}

    def one(floats):
        arm = Settings(tasks=3, cosine=jnp.asarray(0.3), track="modified", **floats)
        return trials.steady(jax.random.key(1), arm, None, scale)

    program = jax.jit(lambda floats: jax.lax.map(one, floats)).lower(arms).compile(compiler_options=QUICK)
    return jax.tree.map(np.asarray, program(arms))


@pytest.mark.slow
def test_targets_settle_at_the_cosine_unless_they_move_only_with_corrections(settled):
    assert settled["cosine"] == pytest.approx(np.full(3, settled["cosine"][0]), abs=1e-6)  # the same draws
    assert settled["cosine"][0] == pytest.approx(0.3, abs=0.1)
    assert abs(settled["excess"][0]) < 0.05
    assert settled["excess"][1] < -0.2
    assert settled["target"][2] == 0
    np.testing.assert_allclose(settled["excess"], settled["target"] - settled["cosine"], atol=1e-6)
    assert 0.3 < settled["corrected"][0] < 0.6
    assert settled["corrected"][2] < 0.05
    assert settled["amplification"][0] > settled["amplification"][2] > 0.99


class Rings:
    """Three tasks in an order: neighbours agree, the first and the last do not; the second score is the best."""

    sizes = (4, 1, 1)

    def __init__(self):
        self.goals = jnp.array([[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]])

    def params0(self, key):
        del key
        return {"x": jnp.zeros(2)}

    def batch(self, key):
        return 0.01 * jax.random.normal(key, (2,))

    def losses(self, params, batch):
        return jnp.sum((params["x"] + batch - self.goals) ** 2, axis=1)

    def scores(self, params, part):
        del part
        return 1 - jnp.sum((params["x"] - self.goals) ** 2, axis=1)


def test_arms_are_made_as_their_names_say(monkeypatch):
    """What is asked for, instead of what is made of it; nothing is trained."""

    class Seen(Exception):  # noqa: N818
        pass

    def stop(number, rules):
        raise Seen(rules)

    def asked(name):
        return lambda *arguments, shared=None, **more: (name, *arguments[1:], more)  # but for the key

    for name in ("gradvac", "pcgrad", "uniform"):
        monkeypatch.setattr(trials, name, asked(name))
    monkeypatch.setattr(trials, "select", stop)
    arm = Settings(method=0.0, optimiser="sgd", among="gradvac half leaf rescaled pcgrad uniform")
    with pytest.raises(Seen) as found:
        trials.dialects(jax.random.key(0), arm, Rings(), Settings(rates=(0.1,), steps=1))
    vaccines = [("gradvac", 3, more) for more in ({}, {"beta": 0.5}, {"per": "leaf"}, {"rescale": True})]
    assert found.value.args[0] == [*vaccines, ("pcgrad", 3, {}), ("uniform", {})]


@pytest.mark.slow
def test_networks_report_cosines_and_scores():
    names = "uniform gradvac longer sizes rescaled pcgrad frozen"
    scale = Settings(rates=(0.0001, 0.02, 40.0), steps=12)

    def one(number):
        arm = Settings(method=number, optimiser="sgd", among=names)
        return trials.dialects(jax.random.key(0), arm, Rings(), scale)

    numbers = jnp.arange(7.0)
    program = jax.jit(lambda n: jax.lax.map(one, n)).lower(numbers).compile(compiler_options=QUICK)
    found = jax.tree.map(np.asarray, program(numbers))
    by = {name: {key: value[i] for key, value in found.items()} for i, name in enumerate(names.split())}
    plain = by["uniform"]
    assert plain["rate"] == pytest.approx(0.02)
    assert plain["correlation"] == pytest.approx(-np.sqrt(0.75), abs=1e-5)
    assert plain["small"] > plain["worst"]
    assert by["frozen"]["mean"] == pytest.approx(1 - np.mean([1, 0.98, 1]), abs=1e-5)
    # Ranks 1.5, 3, 1.5 of the distances against those of cosines that have no ties, the second the lowest.
    assert by["frozen"]["correlation"] == pytest.approx(-np.sqrt(0.75), abs=1e-5)
    assert by["frozen"]["cosine"] == pytest.approx(np.mean([0.7071, 0.0, 0.7071]), abs=0.03)
    assert by["frozen"]["conflicts"] < 0.34
    assert len({float(by[name]["mean"]) for name in names.split()}) == 7
    # With four rows against one each, the first goal draws more.
    assert by["sizes"]["small"] < plain["small"]


def test_arms_name_methods_by_their_place():
    for experiment in PAPER.experiments[:3]:
        names = experiment.arms[0].settings.among.split()
        assert [names[int(arm.settings.method)] for arm in experiment.arms] == [arm.name for arm in experiment.arms]


@pytest.mark.slow
def test_vaccines_are_torchjds(monkeypatch):
    torch = pytest.importorskip("torch", reason="TorchJD is a peer, not a dependency")
    aggregation = pytest.importorskip("torchjd.aggregation", reason="TorchJD is a peer, not a dependency")
    rng = np.random.default_rng(0)
    theirs = aggregation.GradVac(beta=0.3, eps=0.0).gramian_weighting
    with jax.enable_x64(True):
        ours, target = jax.jit(vaccine), np.zeros((4, 4))
        for _ in range(50):
            rows = rng.normal(size=(4, 6)) + 0.5
            orders = [rng.permutation(3) for _ in range(4)]
            dealt = iter(orders)
            monkeypatch.setattr(torch, "randperm", lambda count, dealt=dealt: torch.from_numpy(next(dealt)))
            visits = np.stack([np.delete(np.arange(4), i)[order] for i, order in enumerate(orders)])
            coefficients, target = ours(rows @ rows.T, target, visits, 0.3)
            expected = theirs(torch.from_numpy(rows @ rows.T)).numpy()
            np.testing.assert_allclose(coefficients.sum(0), expected, rtol=1e-9)
