"""The trials of Gumbel-Rao: the ids promised, numbers known from elsewhere, a problem of one's own."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.gradients import all_choices
from laureate.lab.claim import Settings
from laureate.papers.gumbel_rao import trials
from laureate.papers.gumbel_rao.about import PAPER

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_choices.py"
SCALE = Settings(variables=2, options=3, width=4)
CHOICES = all_choices(2, 3)


def test_the_ids_are_the_ones_promised():
    promised = {"same-mean", "variance-trend", "error-to-exact", "categorical-vae", "temperature"}
    assert promised <= {claim.name for claim in PAPER.claims}


@pytest.fixture(scope="module")
def model():
    params = jax.tree.map(np.asarray, trials.initial(jax.random.key(0), 5, SCALE))
    return params, np.random.default_rng(0).integers(0, 2, (6, 5)).astype(np.float32)


def bound_by_hand(params, x):
    """Minus the divergence plus the expected likelihood, by loops in NumPy."""
    (w1, b1), (w2, b2), (w3, b3), (w4, b4) = params
    logits = (np.tanh(x @ w1 + b1) @ w2 + b2).reshape(len(x), 2, 3)
    q = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    bounds = -np.sum(q * np.log(3 * q), axis=(1, 2))
    for z in np.asarray(CHOICES):
        chance = 1 / (1 + np.exp(-(np.tanh(z.reshape(-1) @ w3 + b3) @ w4 + b4)))
        likelihood = np.log(np.where(x > 0, chance, 1 - chance)).sum(1)
        bounds += q[:, 0, z[0].argmax()] * q[:, 1, z[1].argmax()] * likelihood
    return bounds


@pytest.fixture(scope="module")
def gradients(model):
    """The gradient of the exact bound, and the means over draws of RLOO's and of no gradient's surrogate."""
    params, x = model

    def mean(name, number):
        arm = Settings(estimator=name, samples=1)
        one = lambda key: jax.grad(lambda p: trials.surrogate(key, arm, 1.0, p, x, CHOICES))(params)  # noqa: E731
        drawn = jax.vmap(one)(jax.random.split(jax.random.key(2), number))
        return jax.tree.map(lambda leaf: (leaf.mean(0), leaf.std(0) / jnp.sqrt(number)), drawn)

    def every():
        bounds = trials.enumerated_bound(params, x, CHOICES)
        exact = jax.grad(lambda p: -jnp.mean(trials.enumerated_bound(p, x, CHOICES)))(params)
        kept = jax.grad(lambda p: jnp.mean(trials.divergence(trials.encode(p, x, (2, 3)))))(params)
        return bounds, exact, kept, mean("rloo", 4000), mean("zero", 4000)

    return jax.tree.map(np.asarray, jax.jit(every)())


def test_the_bound_is_that_of_a_second_writing(model, gradients):
    np.testing.assert_allclose(gradients[0], bound_by_hand(*model), rtol=1e-4)


def test_leave_one_out_has_the_gradient_of_the_bound_and_nothing_has_only_the_divergence(gradients):
    _, exact, kept, rloo, zero = gradients
    for layer in range(4):
        for part in range(2):
            mean, error = rloo[layer][part]
            assert (np.abs(mean - exact[layer][part]) < 5 * error + 1e-5).all(), (layer, part)
            mean, error = zero[layer][part]
            wanted = kept[layer][part] if layer < 2 else exact[layer][part]  # the encoder's layers come first
            assert (np.abs(mean - wanted) < 5 * error + 1e-5).all(), (layer, part)


def test_the_wrong_derivative_vanishes_as_the_temperature_falls():
    """The trap: with the derivative through the draw too, nothing is left at low temperature."""

    def size(estimator, tau):
        arm = Settings(estimator=estimator, temperature=tau, samples=50)
        logits, v = jnp.array([0.3, -0.2, 0.5]), jnp.array([1.0, -1.0, 2.0])
        each = jax.vmap(lambda k: jax.grad(lambda z: trials.chosen(arm)(k, z) @ v)(logits))
        return jnp.sqrt(jnp.mean(jnp.sum(each(jax.random.split(jax.random.key(0), 200)) ** 2, axis=1)))

    right, wrong, limit = jax.jit(
        lambda: (size("gumbel-rao", 0.02), size("total-derivative", 0.02), size("zgr", 1.0))
    )()
    assert float(wrong) < 0.2 * float(limit)
    assert float(right) > 0.8 * float(limit)


def test_doing_nothing_has_the_error_of_the_gradient_itself():
    scale, arm = Settings(options=4, spread=0.5, repeats=4), Settings(estimator="zero", temperature=1.0, samples=1)
    found = jax.jit(lambda key: trials.gradient(key, arm, None, scale))(jax.random.key(0))
    assert float(found["log_error"]) == pytest.approx(0, abs=1e-5)
    assert float(found["bias2"]) == pytest.approx(1, abs=1e-5)


@pytest.fixture(scope="module")
def measured():
    """Three trials in one program; the rows to train on are all white and those to test on all black."""
    small = {"options": 3, "spread": 0.5, "repeats": 200}
    rows = SimpleNamespace(spins=jnp.ones((21, 5)), test_spins=-jnp.ones((4, 5)))
    learning = {"variables": 1, "options": 3, "width": 4, "batch": 4, "steps": 3, "worst": 100.0}
    learning |= {"rates": (0.001, 0.01, 0.1), "temperatures": (0.03, 0.1, 0.5, 1.0)}

    def every(key):
        cold = Settings(temperature=0.1)
        relaxed = Settings(estimator="st-gumbel", samples=1)
        return {
            "temperature": trials.temperature(key, None, None, Settings(small, samples=30, temperatures=(0.1, 1.0))),
            "samples": trials.samples(key, cold, None, Settings(small, samples=(1, 30))),
            "vae": trials.vae(key, relaxed, rows, Settings(learning)),
        }

    return jax.tree.map(np.asarray, jax.jit(every)(jax.random.key(4)))


@pytest.mark.slow
def test_averaging_removes_variance_and_the_more_the_colder(measured):
    cold, warm = measured["temperature"]["log_ratio"]
    assert cold > warm > 0
    one, many = measured["samples"]["log_variances"]
    assert one - many > 1


def test_rates_are_chosen_without_a_look_at_the_test_rows(measured):
    """The largest rate is the best for rows like those trained on, and the worst for their opposite."""
    found = measured["vae"]
    assert found["rate"] == pytest.approx(0.1)
    np.testing.assert_allclose([found[f"rate_{name}"] for name in ("coldest", "cold", "middle", "warm")], 0.1)
    assert found["bound"] < -5 * np.log(2)  # worse than a coin for each pixel: these are the test rows


def test_of_a_bound_at_hand_rates_are_chosen_by_rows_held_out(monkeypatch):
    """As the test above: three steps up of one number, the bound of a white pixel and minus that of a black one."""
    monkeypatch.setattr(trials, "initial", lambda *given: jnp.zeros(()))
    monkeypatch.setattr(trials, "surrogate", lambda key, arm, tau, params, x, choices: -params)
    monkeypatch.setattr(trials, "enumerated_bound", lambda params, x, choices: params * jnp.mean(2 * x - 1, axis=1))
    rows = SimpleNamespace(spins=jnp.ones((21, 5)), test_spins=-jnp.ones((4, 5)))
    learning = {"variables": 1, "options": 2, "batch": 1, "steps": 3, "worst": 100.0}
    learning |= {"rates": (0.001, 0.01, 0.1), "temperatures": (0.03, 0.1, 0.5, 1.0)}
    arm = Settings(estimator="st-gumbel", samples=1)
    found = jax.jit(lambda key: trials.vae(key, arm, rows, Settings(learning)))(jax.random.key(0))
    np.testing.assert_allclose([found[name] for name in ("rate", "rate_coldest", "rate_warm")], 0.1)
    np.testing.assert_allclose(found["bounds"], -0.3, rtol=1e-4)  # Adam's steps are as long as the rate, but for its ε


def test_the_gain_is_the_other_variance_over_ours(monkeypatch):
    monkeypatch.setattr(trials, "network", lambda *given: (None, None))
    monkeypatch.setattr(trials, "gumbel_rao", lambda key, logits, tau, samples: tau / samples)
    monkeypatch.setattr(trials, "st_gumbel_softmax", lambda key, logits, tau: tau**2)
    told = lambda key, f, logits, estimator, repeats: (None, SimpleNamespace(variance=estimator(key, logits)))  # noqa: E731
    monkeypatch.setattr(trials, "estimate", told)
    scale = Settings(options=3, spread=0.5, repeats=2, samples=30, temperatures=(0.1, 1.0))
    found = jax.jit(lambda key: trials.temperature(key, None, None, scale))(jax.random.key(0))
    np.testing.assert_allclose(found["log_ratio"], np.log([0.1 * 30, 30]), rtol=1e-5)


@pytest.mark.slow
def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(int(line.rsplit(" ", 2)[1].rstrip("%")) > 50 for line in lines)


@pytest.mark.slow  # tests/test_form.py sees that its imports are there
def test_the_examples_problem_offers_what_the_lab_asks_for():
    wines = runpy.run_path(str(EXAMPLE))["Wines"]()
    assert wines.spins.shape == (140, 13)
    assert set(np.unique(wines.test_spins)) == {-1.0, 1.0}
