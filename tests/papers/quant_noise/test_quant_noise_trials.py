"""The claims of Quant-Noise: the ids promised, trials that measure what they say, a problem of one's own."""

import re
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
from laureate.compression import ScalarQuantizer
from laureate.compression.selection import choose
from laureate.lab.claim import Settings
from laureate.papers.quant_noise import trials, trials_images, trials_text
from laureate.papers.quant_noise.about import PAPER
from laureate.problems.classification import ImageRows, Prose

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_quantized.py"
PROBLEM = ImageRows(train=40, test=12)


def test_the_ids_are_the_ones_promised():
    promised = {"beats-rounding", "against-full-noise", "pareto", "product-quantisation", "proxy", "depth", "fine-tune"}
    assert promised | {"bytes", "text", "overhead"} <= {claim.name for claim in PAPER.claims}


def test_rows_are_dealt_once_each_and_differently_for_each_seed():
    scale = Settings(validation=10)
    dealt = [trials.dealt(jax.random.key(seed), PROBLEM, scale) for seed in (0, 1)]
    _, _, train, validation, test = dealt[0]
    together = np.concatenate([train.inputs, validation.inputs])
    assert sorted(map(bytes, together)) == sorted(map(bytes, np.asarray(PROBLEM.inputs)))
    assert (len(train.labels), len(validation.labels)) == (30, 10)
    np.testing.assert_array_equal(test.inputs, PROBLEM.test_inputs)
    rows = {bytes(row): int(label) for row, label in zip(np.asarray(PROBLEM.inputs), PROBLEM.labels, strict=True)}
    assert all(rows[bytes(row)] == label for row, label in zip(np.asarray(train.inputs), train.labels, strict=True))
    assert (dealt[0][2].labels != dealt[1][2].labels).any()


def test_the_rate_is_chosen_by_the_quantised_network_on_the_validation_rows():
    """Four 'networks' that are a number: which labels they give is all that they know."""
    part = lambda labels: trials.Part(jnp.zeros((4, 1)), jnp.asarray(labels))  # noqa: E731
    parts = [part([0, 0, 0, 0]), part([0, 1, 2, 2]), part([2, 2, 2, 0])]
    answer = lambda label: lambda x: jax.nn.one_hot(label.astype(int), 3) + 0 * x  # noqa: E731
    trained = lambda rate: answer(jnp.round(rate))  # noqa: E731
    quantized = lambda model, rate: answer(jnp.round(rate) % 3)  # noqa: E731
    found = trials.chosen(trained, quantized, parts, Settings(rates=(0.0, 1.0, 2.0)))
    assert {name: float(value) for name, value in found.items()} == {
        "accuracy": 75.0,
        "float_accuracy": 75.0,
        "rate": 2.0,
    }
    shifted = lambda model, rate: answer((jnp.round(rate) + 1) % 3)  # noqa: E731
    found = trials.chosen(trained, shifted, parts, Settings(rates=(0.0, 1.0, 2.0)))
    assert float(found["rate"]) == 1.0
    assert float(found["accuracy"]) == 75.0
    assert float(found["float_accuracy"]) == 0.0
    # Validation rows that like another network than the test rows do.
    parts[1] = part([0, 1, 1, 2])
    found = trials.chosen(trained, quantized, parts, Settings(rates=(0.0, 1.0, 2.0)))
    assert float(found["rate"]) == 1.0
    assert float(found["accuracy"]) == 0.0


def test_a_step_of_training_is_a_step_of_the_optimiser_on_the_noisy_loss():
    part = trials.Part(PROBLEM.inputs, PROBLEM.labels)
    model = eqx.nn.MLP(64, 10, 4, 1, key=jax.random.key(0))
    seen = []

    def noise(model, step, key):
        seen.append(step)
        return eqx.tree_at(lambda m: m.layers[0].weight, model, 0.5 * model.layers[0].weight)

    step = trials.update_of(jax.random.key(1), part, optax.sgd(0.1), noise, 8)
    state = optax.sgd(0.1).init(eqx.filter(model, eqx.is_inexact_array))
    (after, _), _ = step((model, state), 3)
    batch_key, _ = jax.random.split(jax.random.fold_in(jax.random.key(1), 3))
    rows = jax.random.randint(batch_key, (8,), 0, 40)
    some = trials.Part(part.inputs[rows], part.labels[rows])
    gradient = eqx.filter_grad(lambda m: trials.loss_of(noise(m, 0, None), some))(model)
    wanted = model.layers[0].weight - 0.1 * gradient.layers[0].weight
    np.testing.assert_allclose(after.layers[0].weight, wanted, atol=1e-6)
    assert seen[0] == 3


def test_late_noise_begins_where_it_says(monkeypatch):
    rates = []
    monkeypatch.setattr(trials, "quant_noise", lambda model, spec, rate, key: rates.append(float(rate)))
    steps = lambda *given: [given[4](None, number, None) for number in (0, 8, 9)]  # noqa: E731
    monkeypatch.setattr(trials, "train", steps)
    monkeypatch.setattr(trials, "chosen", lambda trained, *others: trained(0.1) and {})
    scale = Settings(validation=10, width=4, hidden=1, updates=10)
    for begin in (0.9, 0.0):
        trials.scalar(jax.random.key(0), Settings(kind="noise", bits=2, rate=0.5, begin=begin), PROBLEM, scale)
    assert rates == [0.0, 0.0, 0.5, 0.5, 0.5, 0.5]


def test_the_rate_of_image_networks_is_chosen_on_the_validation_images(monkeypatch):
    """Networks that are their rate of learning: the images to choose by like 0.2, the test images 0.3."""
    monkeypatch.setattr(trials_images, "_trained", lambda key, network, part, learning, *others: learning)
    monkeypatch.setattr(trials_images, "_compressed", lambda key, model, *others: model)
    likes = {10: 0.2, 12: 0.3, 30: 0.1}
    monkeypatch.setattr(trials_images, "_accuracy", lambda model, part: -abs(model - likes[len(part.labels)]) + 1)
    monkeypatch.setattr(trials_images, "compression", Settings(dequantize=lambda model: model, save=lambda *given: 500))
    scale = Settings(validation=10, channels=1, width=2, rates=(0.1, 0.2, 0.3))
    found = trials_images.bytes_and_accuracy(jax.random.key(0), Settings(kind="float", rate=0.0), PROBLEM, scale)
    assert float(found["rate"]) == pytest.approx(0.2)
    assert float(found["accuracy"]) == pytest.approx(0.9)
    # 3 x 3 kernels of 1 -> 1 and 1 -> 2 channels, dense layers 8 -> 2 -> 10, biases of all: 4 bytes each, 500 on disk
    assert float(found["ratio"]) == pytest.approx(4 * (9 + 18 + 16 + 20 + 1 + 2 + 2 + 10) / 500)


@pytest.mark.parametrize("kind", ["float", "int4", "product"])
def test_whatever_is_shipped_was_trained_on_for_as_many_updates(kind, monkeypatch):
    """Steps are counted, at the rate of learning that they have, and what is then written down is planted."""
    counts, rates = [], []
    method = Settings(
        init=lambda model: trials.Part(model, None), advance=lambda key, state: Settings(model=state.inputs)
    )
    monkeypatch.setattr(trials.Part, "_replace", lambda part, stage: part)
    monkeypatch.setattr(trials_images, "IterativeQuantization", lambda stages, optimiser: method)
    monkeypatch.setattr(trials_images.optax, "adam", lambda rate: rates.append(rate) or Settings(init=lambda _: None))
    for name in ("_tuned", "_staged"):
        monkeypatch.setattr(trials_images, name, getattr(trials_images, name).__wrapped__)

    def repeat(step, state, first, number):
        counts.append(number - first)
        return state, None

    monkeypatch.setattr(trials_images, "repeat", repeat)
    monkeypatch.setattr(trials_images.compression, "quantize", lambda model, spec: (model, None))
    scale = Settings(kmeans_steps=1, centroids=4, kernel_centroids=4, tuned=5, fine_tuning=0.5, batch=2)
    given = jax.random.key(0), {"weight": np.ones(2)}, trials.Part(np.ones((2, 1)), np.zeros(2)), 0.1, 0.2, kind, scale
    trials_images._compressed(*given)
    assert sum(counts) == 10
    assert rates == [0.05] * len(counts)


def rounded(weight, bits):
    """Affine rounding by NumPy."""
    weight = np.asarray(weight, np.float64)
    low, top = min(weight.min(), 0), 2**bits - 1
    step = (max(weight.max(), 0) - low) / top
    zero = np.round(-low / step)
    return (np.clip(np.round(weight / step) + zero, 0, top) - zero) * step


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "residual"])
def test_deep_networks_have_their_layers_and_full_noise_is_rounding(kind):
    network = trials.DeepNetwork(jax.random.key(0), PROBLEM, 6, 3, kind)
    noisy = trials.NoisyNetwork(network, ScalarQuantizer(4), jnp.asarray(1.0), jax.random.key(1))
    x = PROBLEM.inputs[0]
    for seen, found in ((lambda weight: weight, network(x)), (lambda weight: rounded(weight, 4), noisy(x))):
        y = np.maximum(seen(network.first["weight"]) @ x, 0)
        for weight in network.hidden["weight"]:
            y = np.maximum(seen(weight) @ y, 0) + (y if kind == "residual" else 0)
        np.testing.assert_allclose(found, seen(network.last["weight"]) @ y, atol=1e-5)


def test_majority_and_frequencies_by_hand():
    problem = Settings(labels=jnp.array([2, 1, 2]), test_labels=jnp.array([2, 0, 2, 2]), num_classes=3)
    assert float(trials.majority(problem)["accuracy"]) == 75.0
    text = Settings(train=jnp.array([0, 0, 1]), test=jnp.array([0, 2]), num_characters=3)
    assert float(trials_text._frequencies(text)) == pytest.approx(-(np.log(3 / 6) + np.log(1 / 6)) / 2)


@pytest.mark.slow
def test_the_transformer_sees_only_what_came_before():
    scale = Settings(layers=2, size=8, heads=2, context=6)
    model = trials_text.Transformer(jax.random.key(0), 5, scale)
    characters = jnp.array([0, 1, 2, 3, 4, 0])
    changed = model(characters) - model(characters.at[3].set(0))
    assert (np.abs(changed[:3]) < 1e-6).all()
    assert (np.abs(changed[3:]) > 1e-6).any(1).all()
    prose = Prose()
    assert len(prose.train) + len(prose.validation) + len(prose.test) > 40_000


def test_every_weight_of_the_image_network_has_its_rule():
    scale = Settings(kmeans_steps=1, centroids=4, kernel_centroids=4)
    network = eqx.filter_eval_shape(trials_images.SmallNetwork, jax.random.key(0), 8, 10, 2, 8)
    network = jax.tree.map(lambda leaf: np.ones(leaf.shape, np.float32), network)
    for kind, kernels, dense in (("int4", "'num_bits': 4", "'num_bits': 4"), ("product", "'block': 9", "'block': 8")):
        leaves = choose(network, trials_images.spec_of(kind, scale), "test").leaves
        found = {leaf.path: str(vars(leaf.quantizer)) for leaf in leaves if leaf.quantizer is not None}
        assert list(found) == ["convolutions.0.kernel", "convolutions.1.kernel", "dense.weight", "head.weight"]
        assert "'num_bits': 8" in found["convolutions.0.kernel"]
        assert kernels in found["convolutions.1.kernel"]
        assert dense in found["dense.weight"]
        assert "'num_bits': 8" in found["head.weight"]


@pytest.mark.slow
def test_the_example_learns_and_reads_back_what_it_wrote():
    """Whether noise helps is no test of one seed: which way it falls depends on how the compiler rounds."""
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    after = [float(found) for found in re.findall(r"with two bits a weight ([\d.]+) %", done.stdout)]
    assert len(after) == 2
    assert min(after) > 90
    assert "read back the same: True" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "quant-noise/beats-rounding", f"{EXAMPLE}:Moons")
