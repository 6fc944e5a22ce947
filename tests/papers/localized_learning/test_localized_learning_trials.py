"""The claims of LoCal+SGD: the ids promised, trials that measure what they say, a problem of one's own."""

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from example_files import run_with_problem
from laureate.lab.claim import Settings
from laureate.papers.localized_learning import trials, trials_host
from laureate.papers.localized_learning.about import PAPER
from laureate.papers.localized_learning.experiments import DENSE
from laureate.problems.classes import image_classes
from laureate.training import Fixed, Frozen, Hebbian, LocalizedTraining, Oja, RandomDirection, local_block

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_blocks.py"


def test_the_ids_are_the_ones_promised():
    promised = {"unsupervised-collapse", "supervision", "against-freezing", "cost", "schedules", "random-direction"}
    assert promised | {"from-scratch", "convolutional"} <= {claim.name for claim in PAPER.claims}


def test_arms_of_the_same_rule_differ_in_numbers_alone():
    """So they share a program; Hebb's rule is Oja's without a decay. Frozen layers are frozen, not moved by zero."""
    settings = {arm.name: arm.settings for arm in DENSE.arms}
    words = {name: (found.rule, found.schedule) for name, found in settings.items()}
    for name in ("hebb-sign", "hebb", "hebb-scale", "oja-sign"):
        assert words[name] == ("hebb", "stairs")
    assert [settings[name].rising for name in ("hebb", "hebb-sign", "hebb-scale")] == [1.0, -1.0, 0.1]
    assert [settings[name].decay for name in ("hebb", "hebb-sign", "oja-sign")] == [0.0, 0.0, 1.0]
    assert [name for name, (rule, _) in words.items() if rule == "frozen"] == ["freeze", "sgd", "scratch-frozen"]
    rules = [trials.rule_of(settings[name]) for name in ("freeze", "random-sign", "oja-sign")]
    assert [type(rule) for rule in rules] == [Frozen, RandomDirection, Oja]


@pytest.mark.slow
def test_hebb_is_oja_without_decay_and_a_rate_of_zero_freezes():
    blocks = trials.perceptron(jax.random.key(0), 3, 4, 2, 2)
    inputs, step = jax.random.normal(jax.random.key(1), (5, 3)), jnp.asarray(0)
    rule = trials.rule_of(Settings(rule="hebb", decay=0.0))
    found = [local_block(jax.random.key(2), step, one, blocks[0], inputs)[2] for one in (rule, Hebbian())]
    np.testing.assert_array_equal(*(each[".layers[0].weight"] for each in found))
    labels, ends = jnp.array([0, 1, 0, 1, 1]), []
    for one, rate in ((rule, 0.0), (Frozen(), 1.0)):
        trainer = LocalizedTraining(Fixed(2), one, optax.sgd(0.1), local_rate=rate)
        ends.append(trainer.step(trainer.init(jax.random.key(3), blocks), inputs, labels)[0].blocks)
    for one, two in zip(*(jax.tree.leaves(eqx.filter(end, eqx.is_array)) for end in ends), strict=True):
        np.testing.assert_array_equal(one, two)


def test_phases_are_those_of_the_staircase():
    assert trials.phases("none", 9, 3, 2, 4) == [(0, 0, 9)]
    assert trials.phases("stairs", 9, 3, 2, 4) == [(0, 0, 3), (1, 3, 2), (2, 5, 2), (3, 7, 2)]
    assert trials.phases("stairs", 12, 3, 2, 4)[-1] == (3, 7, 5)
    assert trials.phases("scratch", 9, 3, 2, 4) == [(3, 0, 9)]


def test_validation_rows_choose_and_test_rows_report():
    validation = jnp.array([[0.5, 0.7, 0.1], [0.6, 0.2, 0.9], [0.3, 0.9, 0.9]])  # [local rates, rates]
    test = jnp.arange(9.0).reshape(3, 3)[::-1, ::-1]  # the best where validation is not
    rates, local_rates = jnp.array([0.01, 0.1, 1.0]), jnp.array([1e-4, 1e-3, 1e-2])
    found = trials.at_best((validation, test, 10 + test, 20 + test, 30 + test), rates, local_rates)
    assert [float(found[name]) for name in ("accuracy", "large", "kept", "alignment", "log_growth")] == [
        1,
        1,
        11,
        21,
        31,
    ]
    np.testing.assert_array_equal(found["accuracies"], [7, 3, 1])
    np.testing.assert_allclose([found["rate"], found["local_rate"], found["large_rate"]], [0.1, 1e-2, 0.1], rtol=1e-6)
    lower = trials.at_best((validation.at[2].set(0.1),) + (test,) * 4, rates, local_rates)
    np.testing.assert_allclose([lower["rate"], lower["local_rate"], lower["accuracy"]], [1.0, 1e-3, 3], rtol=1e-6)


@pytest.mark.parametrize(("rule", "chosen", "tries"), [("hebb", (0.1, 0.01), 4), ("frozen", (0.01, 0.001), 2)])
def test_another_seeds_validation_rows_choose_the_rates_of_a_convolutional_network(monkeypatch, rule, chosen, tries):
    validation = {(0.01, 0.001): 0.8, (0.1, 0.001): 0.7, (0.01, 0.01): 0.2, (0.1, 0.01): 0.8}
    seen = []

    def trained(key, problem, arm, scale, *pair):
        seen.append((int(jax.random.key_data(key)[-1]), pair))
        return validation[pair], 1 - validation[pair]

    monkeypatch.setattr(trials_host, "_trained", trained)
    arm = Settings(rule=rule, schedule="stairs", rising=-1.0)
    scale = Settings(rates=(0.01, 0.1), local_rates=(0.001, 0.01))
    for problem, runs in ((one := object(), tries), (one, 0), (object(), tries)):  # tuned once for each problem
        seen.clear()
        found = trials_host.convolutional(jax.random.key(5), arm, problem, scale)
        assert (len(seen) - 1, seen[-1]) == (runs, (5, chosen))
        assert {seed for seed, _ in seen[:-1]} <= {trials_host.TUNING_SEED}
        assert float(found["accuracy"]) == pytest.approx(1 - validation[chosen])


def test_alignment_with_the_first_principal_direction():
    inputs = jnp.asarray(np.random.default_rng(0).normal(size=(300, 3)) * [3.0, 1.0, 0.5], jnp.float32)
    weight = jnp.array([[1.0, 0, 0], [0, 2.0, 0]])
    assert float(trials.alignment(weight, inputs)) == pytest.approx(0.5, abs=0.05)


def test_a_late_gradient_is_that_of_old_weights_applied_to_new_ones():
    blocks, old = (tuple(trials.perceptron(jax.random.key(n), 3, 4, 2, 2)) for n in (0, 1))
    batch = jax.random.normal(jax.random.key(2), (5, 3)), jnp.array([0, 1, 0, 1, 1])
    trainer = LocalizedTraining(Fixed(0), Hebbian(), optax.sgd(0.5))
    state = trainer.init(jax.random.key(3), blocks)
    late = trials._late_step(trainer, state, old, batch)
    params, rest = eqx.partition(old, eqx.is_inexact_array)
    slope = jax.grad(lambda p: trainer.loss(trials.predict(eqx.combine(p, rest), batch[0]), batch[1]))(params)
    np.testing.assert_allclose(late.blocks[2].weight, blocks[2].weight - 0.5 * slope[2].weight, rtol=1e-4, atol=1e-6)
    # With a boundary: outputs of old weights go up, the newest weights are moved below.
    trainer = LocalizedTraining(Fixed(1), Hebbian(), optax.sgd(0.5), local_rate=0.1)
    state = trainer.init(jax.random.key(3), blocks)
    late = trials._late_step(trainer, state, old, batch)
    np.testing.assert_array_equal(
        late.blocks[0].layers[0].weight, trainer.step(state, *batch)[0].blocks[0].layers[0].weight
    )
    mixed = trainer.step(state._replace(blocks=old[:1] + blocks[1:]), *batch)[0]
    np.testing.assert_array_equal(late.blocks[2].weight, mixed.blocks[2].weight)
    # The sign compares undelayed losses: the next step finds this one's, not that of old weights.
    undelayed = trainer.loss(trials.predict(blocks, batch[0]), batch[1])
    np.testing.assert_allclose(late.average, undelayed, rtol=1e-6)
    assert abs(float(mixed.average) - float(undelayed)) > 1e-3


def test_a_delay_of_d_steps_hands_up_weights_of_d_steps_ago(monkeypatch):
    """With x ← (x of d steps ago) + 1, n steps from 0 count to ⌈n / (d + 1)⌉."""
    counted = lambda blocks, past: eqx.tree_at(lambda b: b[-1].bias, blocks, past[-1].bias + 1)  # noqa: E731
    late = lambda trainer, state, past, batch: state._replace(blocks=counted(state.blocks, past))  # noqa: E731
    monkeypatch.setattr(trials, "_late_step", late)
    monkeypatch.setattr(trials, "train", lambda key, trainer, state, *data, **more: (state, None))
    monkeypatch.setattr(trials, "accuracy_of", lambda blocks, *data: blocks[-1].bias[0])
    sizes = {"hidden": 2, "layers": 2, "classes": 10, "epochs": 4, "start": 1, "batch": 4}
    scale = Settings(rates=(0.1,), local_rate=0.001, delays=(0, 1, 4), **sizes)
    arm = Settings(rule="hebb", schedule="stairs", rising=-1.0, decay=0.0)
    found = trials.delayed(jax.random.key(0), arm, image_classes("digits", 20, 10, 10), scale)
    np.testing.assert_array_equal(found["accuracies"], [15, 8, 3])  # 3 epochs of 5 steps
    assert (float(found["undelayed"]), float(found["delayed"]), float(found["lost"])) == (15, 3, 12)


def test_a_random_path_never_falls_and_has_the_mean_of_the_other():
    like = [0, 0, 1, 1, 2, 2, 3, 3]
    path = trials_host._random_path(jax.random.key(0), like, 3)
    assert path == sorted(path)
    assert len(path) == len(like) + 1
    assert abs(np.mean(path[:-1]) - np.mean(like)) < 0.2
    assert path != trials_host._random_path(jax.random.key(1), like, 3)


def test_images_are_split_and_scaled():
    images = image_classes("digits", train=100, validation=50, test=30)
    assert float(images.inputs.mean()) == pytest.approx(0, abs=1e-4)
    assert float(images.inputs.std()) == pytest.approx(1, abs=1e-4)
    shared = {row.tobytes() for row in np.asarray(images.inputs)} & {
        row.tobytes() for row in np.asarray(images.validation_inputs)
    }
    assert not shared
    for field, settings in (("train", (1500, 100, 300)), ("test", (100, 50, 500))):
        with pytest.raises(ValueError, match=rf"image_classes\.{field} must be"):
            image_classes("digits", *settings)


def test_the_convolutional_network_has_six_blocks_that_fit():
    blocks = trials_host.network(jax.random.key(0), 4, 10, 8)
    assert len(blocks) == 6
    assert jax.eval_shape(lambda x: trials.predict(blocks, x), jnp.ones((2, 8, 8, 1))).shape == (2, 10)


@pytest.mark.slow
def test_the_example_runs():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("accuracy" in line and "% of the operations" in line for line in lines)


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "localized-learning/from-scratch", f"{EXAMPLE}:Moons")
