"""The claims of DARTS-PT: the ids promised, trials that measure what they say, a problem of one's own."""

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from example_files import run_with_problem
from laureate.architecture import SelectionResult, Space, Table
from laureate.lab.claim import Settings
from laureate.papers.darts_pt import trials
from laureate.papers.darts_pt.about import PAPER
from laureate.papers.darts_pt.experiments import SELECTION, SIZES, STEPS
from laureate.papers.darts_pt.experiments_around import FRONTS
from laureate.problems.supernets import CellSupernet

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_supernet.py"
PROMISED = {"magnitude-elects-none", "perturbation-better", "without-none", "fixed-alpha", "trajectory"}
PROMISED |= {"validation-size", "bilevel", "released-rule"}


def test_the_ids_are_the_ones_promised():
    assert {claim.name for claim in PAPER.claims} >= PROMISED
    (released,) = [claim for claim in PAPER.claims if claim.name == "released-rule"]
    assert released.kind == "question"


def test_experiments_of_a_scale_share_what_is_trained():
    for name in SIZES:
        at = [one.scales[name] for one in PAPER.experiments if name in one.scales and one.problem]
        assert len({tuple(scale.settings[word] for word in trials.DECIDE) for scale in at}) == 1
        assert len({scale.problem for scale in at}) == 1


class Known:
    """A bench whose table is written down."""

    space = Space([("none", "skip", "conv3")] * 2)
    table = Table(
        space, np.array([[0.1, 0.1], [0.1, 0.3], [0.3, 0.1], [0.5, 0.5], [0.6, 0.8], [0.4, 0.4]] + [[0.9, 0.9]] * 3)
    )


def test_worth_is_read_from_the_table():
    found = trials._worth(Known(), SelectionResult(None, (0, 1), None, (), 6))
    assert float(found["accuracy"]) == pytest.approx(0.2)
    assert float(found["regret"]) == pytest.approx(0.7)
    assert float(found["rank"]) == pytest.approx(6.5 / 8)  # six are better, one is equal
    assert float(found["none_share"]) == 0.5
    assert float(found["table_mean"]) == pytest.approx(Known.table.values.mean())


def test_costs_of_snapshots():
    assert trials.relative_cost(Known(), np.array([[0.3, 0.3, 0.4], [0.0, 1.0, 0.0]])) == 0.5
    assert [trials.cost_of(name) for name in ("none", "skip", "avg3", "conv3", "mine")] == [0, 0, 1, 9, 9]


def test_each_arm_has_the_rule_its_name_says():
    rules = {arm.name: trials.rule_of(arm.settings, Known()) for arm in (*SELECTION.arms, *FRONTS.arms)}
    kinds = {name: type(rule).__name__ for name, rule in rules.items()}
    assert kinds["fixed"] == "PerturbationSelection"
    assert kinds["tuned-magnitude"] == "MagnitudeSelection"
    assert kinds["random-without-none"] == "RandomSelection"
    assert rules["random-without-none"].exclude == ("none",)
    assert rules["magnitude"].exclude == ()
    assert rules["without-none"].exclude == ("none",)
    assert getattr(rules["perturbation-loss"], "criterion", "") == "loss"
    assert kinds["per-cost"] == "PerturbationSelection"


def test_accuracy_lost_for_its_cost():
    class Mixed:
        space = Space([("skip", "conv3", "none"), ("conv3", "skip")])

    weights = np.where(np.eye(3)[:, None] * [[0], [1]] == 1, 0, [[0.3, 0.3, 0.4], [0.5, 0.5, 0.0]])
    found = trials.per_cost(Mixed(), weights, np.array([0.1, 0.4, 0.9]))
    np.testing.assert_allclose(found, [-0.8 / (1 + 9), -0.5, 0.0])  # conv3 costs 9, skip nothing; no third operation


@pytest.fixture(scope="module")
def small():
    """The tiny scale with more training: two programs, shared by what follows."""
    problem = CellSupernet(train=40, test=20, num_nodes=2, num_cells=1, channels=2)
    settings = Settings(STEPS["tiny"] | {"rate": 0.1, "alpha_rate": 0.1, "steps": 20, "tune_steps": 3})
    return trials.bench(problem, settings)


def arm_of(name):
    return SELECTION.arm(name).settings


def test_weights_learn_from_the_first_half_of_the_images_and_alpha_from_the_second(small):
    (inputs, labels), (others, other_labels), problem = small.data, small.validation, small.problem
    np.testing.assert_array_equal(np.concatenate([inputs, others]), problem.inputs)
    np.testing.assert_array_equal(np.concatenate([labels, other_labels]), problem.labels)
    assert len(labels) == len(other_labels) == 20


def test_supernets_are_shared_and_halves_do_not_mix(small):
    key = jax.random.key(0)
    states = small.supernets(key, "bilevel")
    assert len(states) == trials.PIECES
    assert small.supernets(key, "bilevel") is states
    assert small.supernets(jax.random.key(1), "bilevel") is not states
    assert trials.bench(small.problem, small.scale) is small
    assert len(small.data[1]) == len(small.validation[1]) == 20
    assert not (np.asarray(small.data[0])[:, None] == np.asarray(small.validation[0])[None]).all((2, 3)).any()
    moved = np.asarray(states[-1].alpha - states[0].alpha)
    assert np.abs(moved).max() > 0.05
    rates = [float(state.optimiser_state[2].hyperparams["learning_rate"]) for state in states]
    np.testing.assert_allclose(rates, [0.1] * 5 + [0.03] * 3 + [0.01] * 2, rtol=1e-5)


def test_tuning_starts_from_the_supernet_and_leaves_it_as_it_was(small):
    key = jax.random.key(0)
    state = small.supernets(key, "bilevel")[-1]
    before = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    tuned = trials.searched(key, arm_of("perturbation"), small, state)
    plain = trials.searched(key, arm_of("magnitude"), small, state)
    assert all((a == b).all() for a, b in zip(before, jax.tree.leaves(state), strict=True))
    assert tuned.num_scores == 4
    assert plain.num_scores == 0
    assert plain.choice == (int(np.argmax(state.alpha[0])),)
    # With the only edge decided, tuning moves no alpha.
    assert (tuned.state.alpha == state.alpha).all()


def test_a_search_tunes_and_scores_as_its_arm_says(small, monkeypatch):
    key, calls, scored = jax.random.key(0), [], []
    state = small.supernets(key, "bilevel")[-1]
    score = type(small).score

    def train(key, training, state, steps, rate, **more):
        calls.append((training, state, steps, rate, more))
        return state

    def scores(state, data, **more):
        scored.append((len(data[1]), more["train"]))
        return score(small, state, data, **more)

    monkeypatch.setattr(small, "train", train)
    monkeypatch.setattr(small, "score", scores)
    trials.searched(key, arm_of("perturbation"), small, state)
    ((training, begun, steps, rate, more),) = calls
    assert (training, steps, rate) == (small.learned, 3, 0.1 / 10)
    assert begun.alpha_state is state.alpha_state  # goes on, while the weights' momentum begins anew
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(begun.optimiser_state[2].inner_state))
    assert sorted(more) == ["choice", "kept"]
    assert scored == [(20, True)]
    fewer = Settings(dict(arm_of("perturbation")) | {"examples": 7, "statistics": "running", "alpha": "one-level"})
    trials.searched(key, fewer, small, state)
    assert scored[1] == (7, False)
    assert calls[1][-1]["data"] is small.all
    assert calls[1][-1]["validation"] is small.all
    calls.clear()
    monkeypatch.setattr(small, "accuracy", lambda state, weights, data, *, train: (data is small.test, train))
    assert small.alone(key, (2,)) == (True, False)  # on test images, by the statistics of its training
    assert [call[-1]["data"] is small.all for call in calls] == [True] * 3
    assert [call[3] for call in calls] == pytest.approx([0.1, 0.03, 0.01])
    assert [call[2] for call in calls] == [5, 3, 2]


def test_of_three_rates_of_alpha_the_best_on_validation_images_is_taken(small, monkeypatch):
    """Supernets that are known by their factor."""
    accuracies = {0.25: 0.5, 1.0: 0.8, 4.0: 0.6}

    def accuracy(state, weights, data, *, train):
        assert data is small.validation
        assert train
        return accuracies[state.factor]

    train = lambda key, alpha, factor: [None, Settings(alpha=np.zeros((1, 4)), factor=factor)]  # noqa: E731
    monkeypatch.setattr(small, "supernets", train)
    monkeypatch.setattr(small, "accuracy", accuracy)
    monkeypatch.setattr(trials, "weights_of", lambda space, alpha: alpha)
    monkeypatch.setattr(trials, "searched", lambda key, arm, found, state: state.factor)
    monkeypatch.setattr(trials, "_worth", lambda found, chosen: {"accuracy": 10 * chosen})
    scale, arm = Settings(dict(small.scale) | {"factors": tuple(accuracies)}), dict(arm_of("magnitude"))
    for asked, taken in ((0.0, 1.0), (4.0, 4.0)):
        found = trials.rates(jax.random.key(0), Settings(arm | {"factor": asked}), small.problem, scale)
        told = {name: float(value) for name, value in found.items()}
        wanted = {"accuracy": 10 * taken, "supernet_accuracy": accuracies[taken], "factor": taken}
        assert told == pytest.approx(wanted)


@pytest.mark.slow
def test_a_rate_of_alpha_is_taken_by_the_supernets_validation_accuracy(small):
    settings = Settings(dict(small.scale) | {"factors": (0.25, 4.0)})
    key, arm = jax.random.key(3), dict(arm_of("magnitude"))
    found = [trials.rates(key, Settings(arm | {"factor": f}), small.problem, settings) for f in (0.25, 4.0, 0.0)]
    states = [small.supernets(jax.random.split(key)[0], "bilevel", factor)[-1] for factor in (0.25, 4.0)]
    rates = [float(state.alpha_state[1].hyperparams["learning_rate"]) for state in states]
    assert rates == pytest.approx([0.025, 0.4])
    assert np.abs(states[0].alpha).max() < np.abs(states[1].alpha).max()
    best = int(found[1]["supernet_accuracy"] > found[0]["supernet_accuracy"])
    assert float(found[2]["factor"]) == (0.25, 4.0)[best]
    assert all(found[2][name] == found[best][name] for name in found[2])


@pytest.mark.slow
def test_the_example_of_ones_own_supernet_runs():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "chosen: " in done.stdout
    assert "7 networks scored" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "darts-pt/selection", f"{EXAMPLE}:Tumours")


@pytest.mark.slow
def test_pytorch_computes_the_same_supernet():
    torch = pytest.importorskip("torch")
    from laureate.papers.darts_pt.speed import torch_supernet

    net = CellSupernet(train=30, test=5, channels=3)
    params, state = net.init(jax.random.key(0))
    weights = np.random.default_rng(0).uniform(size=(3, 4)).astype(np.float32)
    ours, _ = net.apply(params, state, weights, net.inputs)
    given = [torch.from_numpy(np.array(leaf)) for leaf in params]
    theirs = torch_supernet(given, torch.from_numpy(weights), torch.from_numpy(np.array(net.inputs)))
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-4)
