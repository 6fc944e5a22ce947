"""Do the trials measure what they say? Against NumPy on the same draws, and by problems whose answer is known."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from trial_runner import QUICK, run

from example_files import loaded
from laureate.lab.claim import Settings
from laureate.multitask import imtl_g, imtl_weights, mgda_weights, select, tune, uniform
from laureate.papers.imtl import trials
from laureate.papers.imtl.about import PAPER
from laureate.problems.several_tasks import PARTS, Dialects, DigitQuestions, OverlaidDigits, rotated

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_tasks.py"


@pytest.mark.slow
def test_random_gradients_are_as_declared():
    found = run(
        trials.geometry, {"tasks": 3, "near": "subspace", "cosine": 0.0}, None, {"draws": 60, "dim": 40}, x64=True
    )
    assert (found["log10_spread"] < -9).all()
    assert (found["log10_turn"] < -9).all()
    assert (found["log10_apart"] > -2).all()  # with three tasks it is not the sum of unit gradients
    assert (found["negative"] > 0.1).all()
    assert (found["negative"] < 0.8).all()
    assert (found["uphill"] < found["negative"]).all()
    assert (found["flipped"] > 0).all()
    two = run(trials.geometry, {"tasks": 2, "near": "common", "cosine": 0.3}, None, {"draws": 60, "dim": 40}, x64=True)
    assert (two["log10_apart"] < -9).all()
    assert not two["negative"].any()
    assert not two["flipped"].any()
    # Two gradients of equal length c apart: as published, with one of them a hundredth.
    assert (np.abs(two["log10_length"] + 1.7) < 0.25).all()


class Two(eqx.Module):
    """Two numbers to be found, of which the second starts right; each is known to one task alone."""

    goal: jax.Array

    def params0(self, key):
        del key
        return {"x": jnp.array([0.0, 1.0])}

    def batch(self, key):
        del key
        return self.goal

    def features(self, params, batch):
        del batch
        return params["x"] * 3

    def head_losses(self, params, features, batch):
        del params
        return (features / 3 - batch) ** 2 + 0.1

    def losses(self, params, batch):
        return self.head_losses(params, self.features(params, batch), batch)

    def scores(self, params, part):
        return 1 - jnp.abs(params["x"] - self.goal) * (2.0 if part == "test" else 1.0)


NAMES = "imtl-g uniform inverse frozen standardised gradnorm"


@pytest.fixture(scope="module")
def tried():
    """Every arm on two numbers, in one program."""
    scale = Settings(units=(0.01, 1.0, 100.0), rates=(0.02, 0.05), steps=20, choose="worst")
    problem = Two(jnp.array([1.0, 1.0]))

    def every(given):
        arm = Settings(method=given[0], features=given[1], optimiser="sgd", among=NAMES)
        return trials.units(jax.random.key(0), arm, problem, scale)

    names = [*NAMES.split(), "features"]
    given = jnp.arange(6.0), jnp.zeros(6)
    given = jnp.append(given[0], 0.0), jnp.append(given[1], 1.0)
    program = jax.jit(lambda n: jax.lax.map(every, n)).lower(given).compile(compiler_options=QUICK)
    found = jax.tree.map(np.asarray, program(given))
    return {name: {key: value[i] for key, value in found.items()} for i, name in enumerate(names)}


@pytest.mark.slow
def test_units_change_the_plain_sum_and_not_impartial_steps(tried):
    fair, plain = tried["imtl-g"], tried["uniform"]
    assert fair["worst_small"] == pytest.approx(fair["worst_large"], abs=1e-4)
    assert fair["drop_large"] == pytest.approx(fair["worst_same"] - fair["worst_large"])
    assert plain["worst_small"] < plain["worst_same"] - 0.5  # a hundredth of a step that suits
    assert plain["worst_large"] < -1000  # a hundred times: it diverges with both rates
    assert plain["drop_small"] == pytest.approx(plain["worst_same"] - plain["worst_small"])
    # Who does not train scores 1 - 2 |0 - 1| on the test part, and the other number is right.
    assert tried["frozen"]["worst_same"] == -1
    assert tried["frozen"]["mean_same"] == 0
    # A known unit that is divided by leaves nothing of it.
    known = tried["standardised"]
    assert known["worst_small"] == pytest.approx(known["worst_large"], abs=1e-4)
    inverse = tried["inverse"]
    assert inverse["worst_small"] == pytest.approx(inverse["worst_large"], abs=1e-4)
    assert inverse["worst_same"] != pytest.approx(known["worst_same"], abs=1e-6)


def test_an_arm_takes_its_weights_from_features_and_smallest_weights_are_reported(tried):
    # Features are three times x, gradients there a third: steps of length 3 instead of 1, with momentum 0.9.
    for name, length in (("imtl-g", 1), ("features", 3)):
        scores = []
        for rate in (0.02, 0.05):
            x, speed = 0.0, 0.0
            for _ in range(20):
                speed = 0.9 * speed + length * np.sign(x - 1)
                x -= rate * speed
            scores.append(abs(x - 1))
        assert tried[name]["worst_same"] == pytest.approx(1 - 2 * min(scores), abs=1e-3)
        assert tried[name]["rate_same"] == pytest.approx((0.02, 0.05)[int(np.argmin(scores))])
        assert tried[name]["smallest_large"] == 1
    assert tried["gradnorm"]["smallest_large"] < 0.5


def test_the_rate_is_chosen_on_the_validation_part(tried):
    assert tried["uniform"]["rate_same"] == pytest.approx(0.02)  # the other oscillates

    class Apart(Two):
        def scores(self, params, part):
            scores = -jnp.abs(params["x"] - (0.1 if part == "validation" else 1.0)) * jnp.array([1.0, 0.5])
            scores = jnp.where(part == "validation", scores - 7.0, scores)  # below the -1 that is told of failures
            return jnp.nan_to_num(scores, nan=5.0)  # as accuracies by argmax are finite for a network that is not

    def chosen(word):
        make = lambda rate: optax.chain(uniform(), optax.sgd(rate))  # noqa: E731
        problem = Apart(jnp.array([1.0, 1.0]))
        watch = lambda grads, updates, losses, state: updates["x"]  # noqa: E731
        rates = (np.nan, 0.5, 0.05)
        return tune(jax.random.key(0), problem, make, problem.params0(None), rates, 1, choose=word, watch=watch)

    worst, mean = jax.jit(lambda: (chosen("worst"), chosen("mean")))()
    assert worst.rate == pytest.approx(0.05)
    assert mean.rate == pytest.approx(0.05)
    np.testing.assert_allclose(worst.scores, [-0.9, 0.0], atol=1e-6)
    np.testing.assert_allclose(worst.watched, [[0.1, 0.0]], atol=1e-6)  # of the chosen rate


def test_pairs_are_of_training_digits():
    """And those of the other parts, also before any are drawn, of digits of that part."""

    class Numbers(OverlaidDigits):
        def _pairs(self, left, right):
            return left, right

    problem = Numbers(batch_size=3000)  # pyright: ignore[reportCallIssue]
    left, right = map(np.asarray, jax.jit(lambda key: problem.batch(key))(jax.random.key(1)))
    for rows in (left, right):
        assert (np.unique(rows)[[0, -1]] == [0, 999]).all()
        assert len(np.unique(rows)) > 900
    assert (left != right).mean() > 0.9
    partners = np.asarray(problem.partners)
    for first, end in PARTS.values():
        assert sorted(partners[first:end]) == list(range(first, end))
        assert (partners[first:end] != np.arange(first, end)).mean() > 0.9


def test_dialects_are_turned_by_ten_degrees_each_and_judged_by_parts():
    problem = Dialects("rotated")
    for dialect in range(5):
        turned = rotated(np.asarray(problem.images[0, :6]).reshape(-1, 8, 8), 10.0 * dialect)
        np.testing.assert_allclose(problem.images[dialect, :6], turned.reshape(-1, 64), atol=1e-5)
    # Who always says 0 is right as often as there are zeros in the part.
    zeros = lambda images: jnp.zeros((len(images), 10))  # noqa: E731
    parts = ("train", "validation", "test")
    found = jax.jit(lambda: [problem.scores(zeros, part) for part in parts])()  # pyright: ignore[reportArgumentType]
    wanted = [np.mean(np.asarray(problem.labels)[slice(*PARTS[part])] == 0) for part in parts]
    np.testing.assert_allclose(found, np.repeat(wanted, 5).reshape(3, 5), rtol=1e-5)
    assert len(set(wanted)) == 3


def test_a_seed_draws_digits_that_are_in_one_part_only():
    many = OverlaidDigits(batch_size=3000)
    numbered = eqx.tree_at(lambda p: p.labels, many, jnp.arange(len(many.labels)))  # labels that say who it is

    @eqx.filter_jit
    def drawn(key):
        zeros = jax.tree.map(jnp.zeros_like, many.params0(key))
        right = jnp.stack([many.scores(zeros, part) for part in ("validation", "test")])
        return many.draw(key), numbered.batch(key)[1], right

    problem, shown, right = drawn(jax.random.key(1))
    assert (np.unique(shown)[[0, -1]] == [0, 999]).all()
    assert len(np.unique(shown)) > 950
    # Who always says 0 is right as often as there are zeros in the part.
    zero = np.asarray(many.labels) == 0
    mates = np.asarray(many.partners)
    for first, end, found in ((1000, 1300, right[0]), (1300, 1797, right[1])):
        np.testing.assert_allclose(found, [zero[first:end].mean(), zero[mates[first:end]].mean()], rtol=1e-5)
    partners = np.asarray(problem.partners)
    for first, end in PARTS.values():
        assert sorted(partners[first:end]) == list(range(first, end))
    images, labels = problem._pairs(jnp.array([0, 5]), jnp.array([7, 9]))
    both = np.zeros((10, 10))
    both[:8, :8] = problem.images[0]
    both[2:, 2:] = np.maximum(both[2:, 2:], problem.images[7])
    np.testing.assert_allclose(images[0].reshape(10, 10), both)
    assert labels[0].tolist() == [int(problem.labels[0]), int(problem.labels[7])]
    assert sorted(np.asarray(problem.labels).tolist()) == sorted(np.asarray(OverlaidDigits().labels).tolist())


def test_questions_have_the_answers_of_their_pixels():
    problem = DigitQuestions()
    image = np.asarray(problem.inputs[3]).reshape(8, 8)
    rows, columns = np.mgrid[:8, :8]
    mass = image / image.sum()
    height, side = (mass * rows).sum(), (mass * columns).sum()
    spread = (mass * ((rows - height) ** 2 + (columns - side) ** 2)).sum()
    np.testing.assert_allclose(problem.numbers[3], [100 * image.mean(), height, side, spread], rtol=1e-4)

    @jax.jit
    def without_looking(problem):
        params = jax.tree.map(jnp.zeros_like, problem.params0(jax.random.key(0)))
        return problem.scores(params, "test"), problem.losses(params, jnp.arange(1000)), problem.spreads

    scores, shown, spreads = map(np.asarray, without_looking(problem))
    np.testing.assert_allclose(scores[2:], 0, atol=0.02)  # the training mean for everyone
    np.testing.assert_allclose(spreads[2:], np.var(np.asarray(problem.numbers[:1000]), axis=0), rtol=1e-4)
    np.testing.assert_allclose(shown, [np.log(10), np.log(2), *spreads[2:]], rtol=1e-4)


def test_dialects_keep_to_their_rows():
    problem = Dialects("rotated")

    @eqx.filter_jit
    def shown(key):
        zeros = jax.tree.map(jnp.zeros_like, problem.params0(key))
        return *problem.batch(key), *(problem.scores(zeros, part) for part in ("validation", "test"))

    rows, labels, validation, test = shown(jax.random.key(0))
    zero = np.asarray(problem.labels) == 0
    np.testing.assert_allclose(validation, zero[1000:1300].mean(), rtol=1e-5)
    np.testing.assert_allclose(test, zero[1300:1797].mean(), rtol=1e-5)
    assert zero[1000:1300].mean() != zero[1300:1797].mean()
    ends = np.cumsum((0, 600, 200, 100, 50, 50))
    images = np.asarray(problem.images)
    for dialect in range(5):
        own = {image.tobytes() for image in images[dialect, ends[dialect] : ends[dialect + 1]]}
        assert {np.asarray(row).tobytes() for row in rows[dialect]} <= own
    assert labels.shape == (5, 16)
    for dialect in range(5):
        turned = rotated(images[0, :6].reshape(-1, 8, 8), 10.0 * dialect)
        np.testing.assert_allclose(images[dialect, :6], turned.reshape(-1, 64), atol=1e-5)
    turned = rotated(rotated(np.eye(8)[None], 90.0), -90.0)
    np.testing.assert_allclose(turned[0], np.eye(8), atol=1e-9)
    with pytest.raises(ValueError, match="kind must be"):
        Dialects("other")
    with pytest.raises(ValueError, match="sizes must be one of unequal, equal"):
        Dialects(sizes="other")


def test_arms_name_methods_by_their_place():
    for experiment in PAPER.experiments[:-1]:
        names = experiment.arms[0].settings.among.split()
        for arm in experiment.arms:
            method = "imtl-g" if arm.name == "features" else arm.name
            assert names[int(arm.settings.method)] == method


def test_tuning_and_choosing_refuse_what_cannot_be():
    with pytest.raises(ValueError, match="choose must be 'worst' or 'mean'"):
        tune(jax.random.key(0), Two(jnp.ones(2)), optax.sgd, 0.0, (0.1,), 1, choose="best")  # pyright: ignore
    with pytest.raises(ValueError, match="rates must be at least one"):
        tune(jax.random.key(0), Two(jnp.ones(2)), optax.sgd, 0.0, (), 1)  # pyright: ignore
    grads, params = jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.zeros(2)
    both = jax.jit(
        lambda n: select(n, (uniform(), imtl_g())).update(grads, select(n, (uniform(), imtl_g())).init(params))
    )
    assert both(0.0)[0].tolist() == [2.0, 4.0]
    assert both(1.0)[0].tolist() == [1.0, 1.0]


@pytest.mark.slow  # tests/test_form.py sees that its imports are there
def test_your_own_tasks():
    example = loaded(EXAMPLE)
    found = example.main(steps=200)
    assert min(found["IMTL-G"]) > max(0.5, min(found["plain sum"]) - 0.02)
    assert found["lengths of the gradients"][0] > 1e5 * found["lengths of the gradients"][1]


@pytest.mark.slow
def test_weights_are_torchjds():
    torch = pytest.importorskip("torch", reason="TorchJD is a peer, not a dependency")
    aggregation = pytest.importorskip("torchjd.aggregation", reason="TorchJD is a peer, not a dependency")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 5, 30)) * np.exp(rng.normal(size=(50, 5, 1)))
    grams = rows @ rows.transpose(0, 2, 1)
    with jax.enable_x64(True):
        ours = jax.jit(jax.vmap(lambda g: imtl_weights(g, "sum")[0]))(grams)
        shortest = jax.jit(jax.vmap(lambda g: mgda_weights(g)[0]))(grams)
    for matrix, a, b in zip(torch.from_numpy(rows), np.asarray(ours), np.asarray(shortest), strict=True):
        np.testing.assert_allclose(a @ matrix.numpy(), aggregation.IMTLG()(matrix).numpy(), rtol=1e-9, atol=1e-12)
        theirs = aggregation.MGDA(epsilon=1e-9, max_iters=20000)(matrix).numpy()
        assert np.linalg.norm(b @ matrix.numpy()) <= np.linalg.norm(theirs) + 1e-9
        np.testing.assert_allclose(b @ matrix.numpy(), theirs, atol=2e-2)
