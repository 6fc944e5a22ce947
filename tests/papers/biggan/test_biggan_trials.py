"""Do the trials of BigGAN measure what they say?"""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import loaded
from laureate import generative as g
from laureate.lab.claim import Settings
from laureate.lab.running.plan import Selection, plan
from laureate.lab.running.trying import try_problem
from laureate.lab.running.worker import compute
from laureate.papers import paper
from laureate.papers.biggan import speed, trials, trials_parts
from laureate.problems.datasets import small_images
from laureate.problems.supports import ImagesByClass

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_conditional_images.py"
EXPERIMENTS = {one.name: one for one in paper("biggan").experiments}
KEY = jax.random.key(2)
RNG = np.random.default_rng(1)


def tiny(name, **settings):
    return Settings(dict(EXPERIMENTS[name].scales["tiny"].settings) | settings)


def arm(experiment, name, **more):
    return Settings(dict(EXPERIMENTS[experiment].arm(name).settings) | more)


@pytest.fixture(scope="module")
def problem():
    return ImagesByClass(train=40, validation=12, test=20)


def test_every_arm_is_what_it_says(problem):
    """Traced, not run."""
    scale, found = tiny("images"), {}

    def look(name):
        made = trials.make(KEY, arm("images", name), problem, scale, 0.01)
        network = made.generator.network.function  # pyright: ignore[reportFunctionMemberAccess]
        found[name] = (len(network.embedding), network.hierarchical, float(made.generator_penalty.weight))  # pyright: ignore[reportFunctionMemberAccess]
        settings = (made.loss, made.learning_rate, made.ratio, made.decay, made.average_from)
        assert settings == ("hinge", 0.01, 4.0, 0.5, 1)
        return jnp.zeros(())

    names = [one.name for one in EXPERIMENTS["images"].arms if one.settings.kind == "gan"]
    for name in names:
        jax.eval_shape(lambda name=name: look(name))
    assert found == {
        "biggan": (1, True, 1e-4),
        "no-penalty": (1, True, 0.0),
        "strong-penalty": (1, True, 1e-2),
        "own-embeddings": (2, True, 1e-4),
        "z-once": (1, False, 1e-4),
        "small-batch": (1, True, 1e-4),
        "large-batch": (1, True, 1e-4),
    }
    assert [arm("images", name).batch for name in names] == [32, 32, 32, 32, 32, 8, 64]


def test_rates_are_chosen_by_rows_kept_for_it(problem, monkeypatch):
    """Traced, not run: what choosing measures distances to has as many rows as there are to choose by."""
    seen, scale = [], tiny("images")
    monkeypatch.setattr(trials.g, "frechet_distance", lambda made, real: seen.append(len(real)) or jnp.zeros(()))
    monkeypatch.setattr(trials, "drawn", lambda key, model, state, *others: problem.train + state)
    states = trials.Trained(None, jnp.zeros((3, 8)), None)

    def run():
        return trials.chosen(KEY, states, problem, scale, trials.eye_of(problem, scale))

    assert jax.eval_shape(run).shape == (3, 8)
    assert set(seen) == {12}


def test_spread_and_fidelity_by_hand(problem):
    images, labels = np.asarray(problem.test), np.asarray(problem.test_labels)
    apart = [images[labels == c] - images[labels == c].mean(0) for c in set(labels.tolist())]
    expected = np.sqrt(np.mean(np.concatenate(apart) ** 2))
    network = g.Perceptron(
        (jnp.asarray(RNG.normal(size=(5, 64))), jnp.asarray(RNG.normal(size=(10, 5)))), (jnp.ones(5), jnp.zeros(10))
    )

    @jax.jit
    def run(images, labels):
        return trials.measured(0.5 * images, labels, problem, trials.Eye(network))

    found = run(problem.test, problem.test_labels)
    np.testing.assert_allclose(found["spread"], 0.5, rtol=1e-4)
    np.testing.assert_allclose(trials.spread(problem.test, problem.test_labels, 10), expected, rtol=1e-5)
    hidden = np.maximum(0.5 * images.reshape(20, -1) @ np.asarray(network.weights[0]).T + 1, 0)
    logits = hidden @ np.asarray(network.weights[1]).T
    chance = (
        logits - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) - logits.max(1)[:, None]
    )
    np.testing.assert_allclose(found["fidelity"], chance[np.arange(20), labels].mean(), rtol=1e-4)
    np.testing.assert_allclose(found["accuracy"], np.mean(logits.argmax(1) == labels), rtol=1e-6)
    np.testing.assert_allclose(found["clipped"], np.mean(np.abs(0.5 * images) > 0.99))


def test_who_learns_nothing(problem):
    labels = jnp.arange(30) % 10
    names = ("rows", "means", "gaussian")
    run = jax.jit(lambda: [trials.untrained(KEY, arm("images", name), problem, labels) for name in names])
    rows, means, normal = (np.asarray(part) for part in run())
    train, known = np.asarray(problem.train), np.asarray(problem.train_labels)
    for made, mean, label in zip(rows, means, np.asarray(labels), strict=True):
        assert any(np.array_equal(made, one) for one in train[known == label])
        np.testing.assert_allclose(mean, train[known == label].mean(0), atol=1e-5)
    constant = train[known == 0].std(0) < 1e-6
    np.testing.assert_allclose(normal[0][constant], train[known == 0].mean(0)[constant], atol=1e-4)
    assert np.abs(normal - means).mean() > 0.05


def test_views_are_checkpoints_then_three_kinds_of_statistics():
    view = trials.views(tiny("images", thresholds=(0.5, 1.0, 8.0), checkpoints=2))
    assert view.threshold.tolist() == [8, 8, 0.5, 1, 8, 0.5, 1, 8, 0.5, 1, 8]
    assert view.standing.tolist() == [8, 8, 8, 8, 8, 0.5, 1, 8, 8, 8, 8]
    assert view.statistics.tolist() == [0] * 8 + [1] * 3


def test_a_view_takes_the_statistics_it_names(problem):
    """A generator that shows which statistics it was given: its own are 7, the standing ones as they were cut."""

    class Shown:
        def standing(self, key, state, labels, truncation, num_batches, batch):
            return g.StandingStatistics((), jnp.asarray(truncation, float), None, None, None)

        def network(self, arrays):
            return self

        def bound(self, state):
            given = lambda z, y, statistics=7.0: (z + 100 * statistics, jnp.asarray(7.0))  # noqa: E731
            return given

    state, scale = trials.g.AdversarialState(*[()] * 5), tiny("images")

    @jax.jit
    def run(view):
        return trials.drawn(KEY, Shown(), state, problem, scale, view)

    for kind, cut, expected in ((0, 3.0, 3.0), (1, 3.0, 7.0)):
        shown = run(trials.View(jnp.asarray(0.25), jnp.asarray(cut), jnp.asarray(kind)))
        assert np.abs(np.asarray(shown) - 100 * expected).max() <= 0.2501


def test_as_many_images_by_the_checkpoint():
    scale = Settings(checkpoints=8, smallest=8)
    assert [trials.after_as_many(scale, batch) for batch in (8, 32, 64)] == [7, 1, 0]


def test_the_alarm_is_of_the_first_layer_and_comes_before_the_loss():
    sigma = np.ones((5, 3, 2), np.float32)
    sigma[:, :, 1] = 9.0  # another layer
    sigma[:, -1, 0] = [1.0, 2.0, 2.0, 3.0, 4.0]
    sigma[:, 0, 0] = [1.0, 5.0, 5.0, 5.0, 5.0]  # at the beginnings of the parts, of which only the first counts
    run = jax.jit(lambda distances: trials.monitored(jnp.asarray(sigma), distances, 2.0))
    found = run(jnp.array([4.0, 2.0, 3.0, 3.9, 4.0]))
    shares = [float(found[name]) for name in ("lead", "alarm_share", "doubled_share")]
    np.testing.assert_allclose(shares, [3.0, 0.2, 0.8], rtol=1e-6)
    np.testing.assert_allclose(found["log_growth"], np.log(4.0), rtol=1e-6)
    assert found["sigma_curve"].tolist() == [1.0, 2.0, 2.0, 3.0, 4.0]
    never = run(jnp.array([5.0, 4.0, 3.0, 2.0, 1.0]))
    assert (float(never["lead"]), float(never["doubled"]), float(never["doubled_share"])) == (4.0, 0.0, 1.0)


def test_what_is_not_finite_is_far():
    found = trials.logged(jnp.array([jnp.nan, jnp.inf, 1.0, 0.0]))
    np.testing.assert_allclose(found, np.log([1e4, 1e4, 1.0, 1e-3]), rtol=1e-5)


def test_only_the_exact_sampler_has_the_law():
    scale = Settings(draws=4000, thresholds=(0.3, 1.5))
    names = ("exact", "hub", "scaled", "clipped")
    found = jax.jit(lambda: {n: trials_parts.sampler(KEY, arm("sampler", n), None, scale) for n in names})()
    assert float(found["exact"]["kolmogorov"]) < 1.63
    assert all(float(found[name]["least_kolmogorov"]) > 4 for name in names[1:])


def test_splits_do_not_meet(problem):
    rows = [{row.tobytes() for row in np.asarray(part)} for part in (problem.train, problem.validation, problem.test)]
    assert not rows[0] & rows[1]
    assert not rows[0] & rows[2]
    # Rows to learn from are not the first of the file: writers are mixed.
    first = np.asarray(2 * small_images("digits", 52, 20).train_images - 1, np.float32)[..., None]
    assert {row.tobytes() for row in first} == rows[0] | rows[1]
    assert not np.array_equal(first[:40], problem.train)
    assert float(problem.train.min()) == -1.0
    assert float(problem.train.max()) == 1.0
    with pytest.raises(ValueError, match=r"ImagesByClass.train must be such that digits has 1900"):
        ImagesByClass(train=1900, validation=12, test=20)


@pytest.mark.slow  # it compiles convolutions
def test_the_bench_trains_on_and_draws():
    work = speed.Work(batch=4, channels=8, side=8, steps=2, samples=6, latents=4, shared=2)
    first, second = (np.asarray(side) for side in (lambda run: (run(), run()))(speed.our_step(work).run))
    assert first.shape == (2,)
    assert not np.allclose(first, second)
    assert speed.our_samples(work).run().shape == (6, 8, 8, 3)


@pytest.mark.slow
def test_a_block_is_that_of_pytorch():
    """The same weights, and PyTorch's own convolutions, normalisation and singular values."""
    torch = pytest.importorskip("torch", reason="PyTorch, a peer, is not installed")
    work = speed.Work(channels=8, side=8, latents=4, shared=2)
    gan = speed.model_of(work)
    block = gan.generator.network.function.blocks[0]
    _, generator, _ = speed.torch_networks(work)
    theirs = generator.blocks[0]
    rng = np.random.default_rng(0)
    x, told = rng.normal(size=(5, 4, 4, 8)).astype(np.float32), rng.normal(size=(5, 4)).astype(np.float32)

    def plain(layer, weight, bias=None):
        torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(np.array(weight)))
            if bias is not None:
                layer.bias.copy_(torch.from_numpy(np.array(bias)))

    for mine, peer in zip((*block.layers, block.shortcut), (*theirs.layers, theirs.shortcut), strict=True):
        plain(peer, np.asarray(mine.weight).transpose(3, 2, 0, 1), mine.bias)
    for mine, peer in zip(block.norms, theirs.norms, strict=True):
        plain(peer.gain, np.asarray(mine.gain).T)
        plain(peer.bias, np.asarray(mine.bias).T)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x.transpose(0, 3, 1, 2)), torch.from_numpy(told)).numpy()
    found, _ = block(jnp.asarray(x), jnp.asarray(told), None)
    np.testing.assert_allclose(found, expected.transpose(0, 2, 3, 1), atol=1e-5)


# --- one's own --------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # it reads the examples, which a copy of the package alone does not have
def test_the_example_offers_what_the_experiment_asks_for():
    module = loaded(EXAMPLE)
    data = module.images()
    assert all(hasattr(data, name) for name in EXPERIMENTS["images"].accepts)
    assert set(np.unique(data.train)) == {-1.0, 1.0}


@pytest.mark.slow
def test_the_example_runs():
    done = subprocess.run([sys.executable, str(EXAMPLE), "60"], capture_output=True, text=True, check=True)
    assert "largest singular value" in done.stdout
    assert "at t = 0.25, 0.5, 1, none" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own():
    """As ``laureate run biggan/images --problem examples/own_conditional_images.py:images``, at the least scale."""
    experiment = EXPERIMENTS["images"]
    selection = Selection(paper("biggan"), experiment, experiment.claims)
    cells = plan([selection], "tiny", problem=f"{EXAMPLE}:images")
    try_problem(f"{EXAMPLE}:images", cells)
    (cell,) = [cell for cell in cells if cell.arm == "biggan"]
    outcome = compute(cell)
    assert not outcome.error, outcome.error
    assert np.isfinite(outcome.metrics["log_frechet"]).all()
