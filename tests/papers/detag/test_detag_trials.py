"""The claims of DeTAG: declared soundly, computed by trials that run and measure what they say."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trial_runner import run

from laureate.lab.claim import Settings
from laureate.papers.detag import trials
from laureate.papers.detag import trials_processes as detag_processes
from laureate.papers.detag.about import PAPER
from laureate.papers.detag.trials_sweep import _at_lowest, _reported, sweep
from laureate.problems.peers import ImagesOverNodes, Quadratics, judged_images

EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


def test_the_ids_are_the_ones_promised():
    promised = {"unshuffled", "sparse", "lower-bound", "equal-on-shuffled", "consensus", "real-processes"}
    assert promised <= {claim.name for claim in PAPER.claims}
    assert PAPER.id == "detag"


@pytest.mark.slow
def test_bytes_are_equal_where_they_are_said_to_be():
    """Methods of two vectors are read off at half the rounds, others at the end."""
    scale = {"rounds": 40, "rates": (0.2,)}
    problem = Quadratics(4, 2)
    for name in ("detag", "d2"):
        found = run(trials.quadratics, {"optimiser": name}, problem, scale, x64=True)
        half = run(trials.quadratics, {"optimiser": name}, problem, scale | {"rounds": 20}, x64=True)
        # Rounds 16…20 of 40 (a tenth is 4) against 18…20 of 20 (a tenth is 2): the noiseless error falls steadily.
        two = name in trials.TWO_VECTORS
        assert np.allclose(found["dense_noiseless"], found["dense_noiseless_bytes"]) != two
        if two:
            assert np.abs(found["dense_noiseless_bytes"] - half["dense_noiseless"]).max() < 0.35


def test_the_optimisers_of_the_trials_are_those_of_their_names_and_send_what_is_said():
    params = jnp.zeros((8, 3))
    one = trials.optimiser("d-psgd", trials.network(8, 0.1), 0.1, 4).sent(params)
    for name in ("detag", "gradient-tracking", "d2"):
        made = trials.optimiser(name, trials.network(8, 0.1), 0.1, 4)
        assert type(made).__name__.lower() == name.replace("-", "")
        assert made.sent(params) == one * (2 if name in trials.TWO_VECTORS else 1)


def test_phases_have_the_theorys_rounds():
    """Ring of 16: λ_2 = 1/3 + 2/3 cos(2π/16), gap κ (1 − λ_2): the paper's κ, applied once."""
    gap = 1 - (1 / 3 + 2 / 3 * np.cos(np.pi / 8))
    expected = [int(np.ceil((kappa * gap) ** -0.5)) for kappa in (0.5, 0.1)]
    assert trials.phase_rounds(16, (0.5, 0.1)).tolist() == expected
    with jax.ensure_compile_time_eval():
        assert float(trials.network(16, 0.1).gap) == pytest.approx(0.1 * gap, rel=1e-5)


def test_shuffling_keeps_every_image_and_sorted_parts_have_few_labels():
    problem = ImagesOverNodes(nodes=5, per_node=100)
    whole = np.sort(np.asarray(problem.labels))
    for shuffle, most, least in ((0.0, 4, 1), (1.0, 10, 8), (0.5, 10, 4)):
        images, labels = problem.parts(jax.random.key(0), shuffle)
        np.testing.assert_array_equal(np.sort(np.asarray(labels).ravel()), whole)
        kinds = [len(set(part.tolist())) for part in np.asarray(labels)]
        assert least <= min(kinds) <= max(kinds) <= most, shuffle
        total = np.asarray(images, np.float64).sum()
        np.testing.assert_allclose(total, np.asarray(problem.images, np.float64).sum(), rtol=1e-9)
    assert (
        0.4 < np.mean(np.asarray(problem.parts(jax.random.key(1), 0.5)[1]).ravel() == np.asarray(problem.labels)) < 0.7
    )


def test_the_convolution_is_a_convolution():
    problem = ImagesOverNodes(nodes=2, per_node=5, model="conv", channels=3)
    params = problem.theta0(jax.random.key(0))
    images = problem.images[:4]
    kernel = params["kernel"].reshape(3, 3, 1, 3)
    hidden = jax.lax.conv_general_dilated(
        images.reshape(4, 8, 8, 1), kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    pooled = jax.nn.relu(hidden + params["shift"]).reshape(4, 3, 2, 3, 2, 3).max((2, 4)).reshape(4, -1)
    expected = pooled @ params["weights"] + params["bias"]
    np.testing.assert_allclose(problem.logits(params, images), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_one_process_trial_of_the_processes_experiment():
    experiment = EXPERIMENTS["real-processes"]
    arm, scale = experiment.arm("one-process").settings, Settings(rounds=24, rate=0.1)
    for seed in (0, 3):
        metrics = detag_processes.real_processes(jax.random.key(seed), arm, None, scale)
        assert all(np.isfinite(value) for value in metrics.values())
        assert {claim.metric for claim in experiment.claims} <= set(metrics)


def test_test_images_are_no_nodes_images_and_rates_are_chosen_without_them():
    problem = judged_images(nodes=4, per_node=50, test=60)
    mine = {row.tobytes() for row in np.asarray(problem.training.images)}
    assert not mine & {row.tobytes() for row in np.asarray(problem.test_images)}
    theta = problem.training.theta0(jax.random.key(0))
    guess = float(problem.accuracy(theta))  # zeros: the first class of all
    assert guess == pytest.approx(float(np.mean(np.asarray(problem.test_labels) == 0)))
    assert np.isnan(float(problem.accuracy(jax.tree.map(lambda x: x * jnp.nan, theta)))), "NaN is no accuracy"
    known = {"weights": jnp.zeros((64, 10)), "bias": jnp.zeros(10).at[3].set(1.0)}
    assert float(problem.accuracy(known)) == pytest.approx(float(np.mean(np.asarray(problem.test_labels) == 3)))


def test_a_sweep_chooses_by_training_loss_alone_and_never_what_is_not_finite():
    losses = jnp.array([[[2.0, 1.0], [1.0, 3.0], [jnp.nan, jnp.inf]]])  # one case, three rates, two kinds of model
    best, chosen = _at_lowest(losses, jnp.array([[[0.9, 0.1], [0.2, 0.8], [0.99, 0.99]]]))
    assert best.tolist() == [[1, 0]]
    assert chosen.tolist() == [[pytest.approx(0.2), pytest.approx(0.1)]]


@pytest.mark.slow
def test_a_sweep_reports_each_case_once_and_in_its_place():
    found = _reported({"accuracy": jnp.arange(5.0)}, {"shuffle": range(3), "kappa": [0, 3, 4]})
    assert float(found["sorted_accuracy"]) == 0.0
    assert found["accuracy_by_shuffle"].tolist() == [0.0, 1.0, 2.0]
    assert found["accuracy_by_kappa"].tolist() == [0.0, 3.0, 4.0]
    arm = EXPERIMENTS["sweep"].arm("detag").settings
    scale = EXPERIMENTS["sweep"].scales["tiny"].settings
    problem = judged_images(nodes=4, per_node=20, test=20)
    sweep_of = jax.jit(lambda key, p: sweep(key, arm, p, scale))
    real = sweep_of(jax.random.key(0), problem)
    upset = eqx.tree_at(lambda p: p.test_labels, problem, (problem.test_labels + 1) % 10)
    other = sweep_of(jax.random.key(0), upset)
    assert (real["nodes_rate_by_shuffle"] == other["nodes_rate_by_shuffle"]).all(), "test labels choose nothing"
    assert not (real["nodes_accuracy_by_shuffle"] == other["nodes_accuracy_by_shuffle"]).all()
