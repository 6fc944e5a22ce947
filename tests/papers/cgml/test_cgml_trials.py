"""The claims of cGML: the ids promised, trials that measure what they say, a problem of one's own."""

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from example_files import loaded
from laureate import generative as g
from laureate.lab.claim import Settings
from laureate.lab.running.plan import Selection, plan
from laureate.lab.running.worker import compute
from laureate.papers.cgml import speed, trials
from laureate.papers.cgml.about import PAPER
from laureate.papers.cgml.experiments import ARMS, CGAN_CIRCLE, MODES, OTHERS, RATES, UNTRAINED
from laureate.papers.cgml.experiments_beyond import COMPLETION, OFFERS
from laureate.problems.answers import DigitHalves, LabelledDigits, Ring, TwoCurves

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_answers.py"
SCALE = MODES.scales["tiny"].settings
KEY = jax.random.key(3)


def arm(name):
    return next(arm.settings for arm in (*ARMS, *OTHERS) if arm.name == name)


def test_the_ids_are_the_ones_promised():
    promised = {"both-modes", "flow-vs-raw", "step-length", "continuum", "against-cgan", "against-mixture-density"}
    promised |= {"against-diffusion", "unbalanced-modes", "completion", "convergence"}
    assert promised <= {claim.name for claim in PAPER.claims}


def test_every_arm_that_learns_has_the_same_grid_and_its_edges_are_guarded():
    for experiment in PAPER.experiments:
        assert [guard.grid for guard in experiment.guards if guard.kind == "grid"] == ["rates"]
        learning = {one.name for one in experiment.arms if one not in UNTRAINED}
        assert set(experiment.guards[0].arms) == learning
        assert all(one.settings.kind in g.KINDS for one in experiment.arms if one.name in learning)
        for name, scale in experiment.scales.items():
            assert len(scale.settings.rates) >= 3
            assert name == "tiny" or scale.settings.rates == RATES
        assert {"mean", "marginal"} & {one.name for one in experiment.arms}


# --- problems ---------------------------------------------------------------------------------------------------------


def test_two_curves_are_the_authors_toy():
    problem = TwoCurves(share=0.9)
    x, y = problem.pairs(KEY, 2000)
    curve = 4 * np.asarray(x) ** np.array([[1, 2, 3]])
    plus = np.abs(np.asarray(y) - curve).max(1) < 1e-5
    minus = np.abs(np.asarray(y) + curve).max(1) < 1e-5
    assert (plus | minus).all()
    np.testing.assert_allclose(plus.mean(), 0.9, atol=5 * (0.09 / 2000) ** 0.5)
    np.testing.assert_allclose(np.asarray(x).mean(), 0.5, atol=5 * (1 / 12 / 2000) ** 0.5)
    drawn = np.asarray(problem.draw(KEY, jnp.array([0.5]), 2000))
    np.testing.assert_allclose((drawn[:, 0] == 2.0).mean(), 0.9, atol=5 * (0.09 / 2000) ** 0.5)
    assert set(np.unique(drawn).tolist()) == {-2.0, -1.0, -0.5, 0.5, 1.0, 2.0}
    with pytest.raises(ValueError, match=r"TwoCurves.share must be within 0 and 1; got 1.0"):
        TwoCurves(share=1.0)


def test_the_ring_is_uniform_in_its_angle():
    x, y = (np.asarray(part) for part in Ring().pairs(KEY, 2000))
    np.testing.assert_allclose(np.linalg.norm(y, axis=1), 1 + x[:, 0], rtol=1e-5)
    drawn = np.asarray(Ring().draw(KEY, jnp.array([0.5]), 2000))
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.5, rtol=1e-5)
    for points in (y / (1 + x), drawn / 1.5):
        np.testing.assert_allclose(points.mean(0), 0, atol=5 * (0.5 / 2000) ** 0.5)


def test_halves_and_labels_of_digits_are_apart_in_rows():
    halves, named = DigitHalves(train=5, validation=4, test=3), LabelledDigits(train=5, validation=4, test=3)
    for part in ("", "validation_", "test_"):
        whole = np.concatenate([getattr(halves, part + "x"), getattr(halves, part + "y")], axis=1)
        np.testing.assert_array_equal(whole, getattr(named, part + "y"))
    assert named.x.argmax(1).tolist() == [0, 1, 2, 3, 4]  # the data set's first labels
    assert named.validation_x.argmax(1).tolist() == [5, 6, 7, 8]
    assert named.test_x.argmax(1).tolist() == [8, 9, 8]  # and its last
    with pytest.raises(ValueError, match=r"DigitHalves.train \+ validation \+ test must be <= 1797; got 2000"):
        DigitHalves(train=1000, validation=500, test=500)


# --- trials -----------------------------------------------------------------------------------------------------------


def planted(samples, parameters=None):
    """A model whose answers are given."""

    class Planted:
        rate, score, passes = jnp.asarray(0.1), jnp.asarray(0.5), jnp.arange(float(SCALE.checkpoints))

        def __init__(self):
            self.parameters = jnp.arange(float(SCALE.checkpoints)) if parameters is None else parameters

        def drawn(self, key, x, number, parameters, **options):
            return samples(x, number, options.get("mode", "directed")) + 0 * parameters

        def sample(self, key, x, number, checkpoint=-1, **options):
            return samples(x, number, options.get("mode", "directed"))

    return Planted()


def tried(trial, name, problem, scale):
    """What a trial reports of an arm, in one program."""
    return jax.tree.map(np.asarray, jax.jit(lambda: trial(KEY, arm(name), problem, scale))())


def test_hits_and_shares_of_planted_answers(monkeypatch):
    """Of four answers three are +, the last misses; raw ones all miss, iterated ones are half right."""
    scale, problem = Settings(dict(SCALE), samples=4), TwoCurves()

    def samples(x, number, mode):
        plus = jax.vmap(problem.answers)(x)[:, 0]
        right = {"directed": [1, 1, -1, 1.0], "iterated": [1, 1, 0.4, 0.4], "raw": [0.1, 0.1, 0.1, 0.1]}[mode]
        return (
            jnp.asarray(right)[:, None, None] * plus[None]
            + (0.3 if mode == "directed" else 0.0) * jnp.asarray([0, 0, 0, 1.0])[:, None, None]
        )

    monkeypatch.setattr(trials, "trained", lambda *_: planted(samples))
    found = tried(trials.modes, "cgml", problem, scale)
    assert float(found["hit"]) == pytest.approx(0.75)
    assert float(found["rarer"]) == pytest.approx(0.25)
    assert float(found["both"]) == 1.0
    assert float(found["plus_share"]) == pytest.approx(0.75)
    assert float(found["share_error"]) == pytest.approx(0.25)
    assert float(found["more_than_iterated"]) == pytest.approx(0.75 - float(found["iterated_hit"]))
    assert float(found["more_than_raw"]) == pytest.approx(0.75 - float(found["raw_hit"]))
    assert float(found["raw_hit"]) < float(found["iterated_hit"])
    # The picture is of the last input, 1, whose right answers are 4 and -4.
    np.testing.assert_allclose(found["sorted_answers"], [-4, 4, 4, 4.3], rtol=1e-5)
    skewed = tried(trials.modes, "cgml-90", problem, scale)
    assert float(skewed["share_error"]) == pytest.approx(0.15)


def test_other_ways_to_an_answer_begin_with_the_same_latents(monkeypatch):
    """Answers that depend on the key alone are the same in every mode: nothing is gained."""
    problem, scale = DigitHalves(train=6, validation=3, test=5), Settings(dict(SCALE), samples=40)

    class ByKey:
        rate, score, passes = jnp.asarray(0.1), jnp.asarray(0.5), jnp.arange(float(SCALE.checkpoints))
        parameters = jnp.zeros(SCALE.checkpoints)

        def __init__(self, shape):
            self.shape = shape

        def drawn(self, key, x, number, parameters, **options):
            return jax.random.normal(key, (number, len(x), *self.shape))

        def sample(self, key, x, number, **options):
            return self.drawn(key, x, number, None)

    def one(trial, shape, problem, scale):
        monkeypatch.setattr(trials, "trained", lambda *_: ByKey(shape))
        return trial(KEY, arm("cgml"), problem, scale)

    @jax.jit
    def every():
        two = one(trials.modes, (3,), TwoCurves(), scale)
        circle = one(trials.ring, (2,), Ring(), scale)
        half = one(trials.completion, (4, 8), problem, COMPLETION.scales["tiny"].settings)
        return (
            {name: two[name] for name in ("hit", "more_than_raw", "more_than_iterated")},
            {name: circle[name] for name in ("covered", "raw_covered")},
            half["gain_of_flow"],
        )

    two, circle, gained = jax.tree.map(float, every())
    assert two["hit"] > 0
    assert two["more_than_raw"] == two["more_than_iterated"] == gained == 0
    assert circle["covered"] == circle["raw_covered"] > 0


@pytest.mark.slow
def test_the_true_law_has_no_distance_and_its_curve_is_flat(monkeypatch):
    problem = TwoCurves()
    scale = Settings(dict(SCALE), samples=600, tests=3)
    signs = np.where(np.arange(600) % 2, 1.0, -1.0)[:, None, None]
    samples = lambda x, number, mode: jnp.asarray(signs, jnp.float32) * jax.vmap(problem.answers)(x)[None, :, 0]  # noqa: E731
    monkeypatch.setattr(trials, "trained", lambda *_: planted(samples))
    found = tried(trials.modes, "mixture", problem, scale)
    assert abs(float(found["energy_distance"])) < 0.03
    assert float(found["area"]) == pytest.approx(float(found["energy_distance"]), abs=1e-4)
    assert float(found["log_late_spread"]) < np.log(1e-4)
    np.testing.assert_allclose(found["sorted_answers"], np.repeat([-4.0, 4.0], 300), rtol=1e-5)
    assert np.asarray(found["share_below"])[[0, -1]].tolist() == pytest.approx([0.5 / 600, 1 - 0.5 / 600])
    assert found["updates"].tolist() == [2.0, 4.0]
    assert "more_than_raw" not in found
    mean, truth = (tried(trials.modes, name, problem, scale) for name in ("mean", "truth"))
    assert float(mean["energy_distance"]) > 1
    assert abs(float(truth["energy_distance"])) < 0.05
    # Its draws are others than those it is compared with.
    *_, truth_key = jax.random.split(KEY, 5)
    compared = problem.draw(jax.random.split(truth_key, 3)[-1], jnp.ones(1), 600)
    assert np.sum(truth["sorted_answers"] > 0) != np.sum(np.asarray(compared)[:, 0] > 0)
    assert float(truth["hit"]) == 1


def test_the_spread_is_that_of_the_second_half(monkeypatch):
    """Answers that are off by 5, 5, 0 and 1 at the checkpoints: the curve moves in its second half alone."""
    scale, off = Settings(dict(SCALE), checkpoints=4), jnp.array([5.0, 5.0, 0.0, 1.0])
    made = planted(lambda x, number, mode: jnp.zeros((number, len(x), 3)), off)
    made.drawn = lambda key, x, number, parameters, **options: jnp.zeros((number, len(x), 3)) + parameters
    monkeypatch.setattr(trials, "trained", lambda *_: made)
    found = tried(trials.modes, "mixture", TwoCurves(), scale)
    curve = np.asarray(found["distance_curve"])
    assert float(found["log_late_spread"]) == pytest.approx(np.log(curve[2:].std()), abs=1e-3)
    assert curve[2:].std() > 0.1 > 10 * curve[:2].std()
    assert float(found["area"]) == pytest.approx(curve.mean(), rel=1e-4)
    assert float(found["energy_distance"]) == pytest.approx(curve[-1], rel=1e-4)


def test_the_part_of_the_ring_that_is_covered(monkeypatch):
    """A quarter of the circle on it, a quarter too far out: 16 of 64 arcs count."""
    scale = Settings(dict(SCALE), samples=64, tests=2)
    angles = (np.arange(64) + 0.5) / 64 * np.pi  # the upper half
    points = np.stack([np.cos(angles), np.sin(angles)], 1) * np.where(np.arange(64) < 32, 1.09, 1.3)[:, None]
    samples = lambda x, number, mode: jnp.asarray(points, jnp.float32)[:, None] * (1 + x)[None]  # noqa: E731
    monkeypatch.setattr(trials, "trained", lambda *_: planted(samples))
    found = tried(trials.ring, "cgml", Ring(), scale)
    assert float(found["covered"]) == pytest.approx(16 / 64)  # within a tenth of the radius, whatever it is
    assert float(found["near"]) == pytest.approx(0.5)
    np.testing.assert_allclose(found["sorted_radii"], np.repeat([1.09, 1.3], 32), rtol=1e-5)


def test_completions_by_hand(monkeypatch):
    rng = np.random.default_rng(0)
    problem = DigitHalves(train=6, validation=3, test=5)
    errors = rng.normal(size=(4, 5, 4, 8)).astype(np.float32)
    moved = {"directed": errors, "raw": 2 * errors}
    samples = lambda x, number, mode: problem.test_y[None] + moved[mode]  # noqa: E731
    monkeypatch.setattr(trials, "trained", lambda *_: planted(samples))
    found = tried(trials.completion, "cgml", problem, COMPLETION.scales["tiny"].settings)
    apart = np.abs(errors).mean((2, 3))
    assert float(found["mean_error"]) == pytest.approx(apart.mean(), rel=1e-4)
    assert float(found["best_error"]) == pytest.approx(apart.min(0).mean(), rel=1e-4)

    def score(errors):
        """E‖X − y‖ − ½ E‖X − X'‖ over the five rows."""
        norms = np.linalg.norm(errors.reshape(4, 5, -1), axis=-1).mean()
        pairs = [np.linalg.norm((errors[i] - errors[j]).reshape(5, -1), axis=-1) for i in range(4) for j in range(i)]
        return norms - 0.5 * np.mean(pairs)

    assert float(found["energy_score"]) == pytest.approx(score(errors), rel=1e-3)
    assert float(found["gain_of_flow"]) == pytest.approx(score(2 * errors) - score(errors), rel=1e-3)


class Echo(eqx.Module):
    """A problem whose answers are the numbers of the key that they are drawn with."""

    def pairs(self, key, number):
        return jnp.zeros((number, 1)), jnp.zeros((number, 1))

    def tests(self, number):
        return jnp.zeros((number, 1))

    def draw(self, key, x, number):
        return jnp.broadcast_to(jax.random.key_data(key)[-1].astype(float), (number, 1))


def test_the_true_law_is_compared_with_other_draws_than_its_own(monkeypatch):
    """The distance is the share of equal answers here: of four inputs, none by chance."""
    monkeypatch.setattr(trials.g, "energy_distance", lambda made, true: jnp.mean(made == true))
    told, samples = jax.jit(lambda: trials.answered(KEY, arm("truth"), Echo(), Settings(dict(SCALE), tests=4))[::3])()
    assert len(np.unique(samples)) == 4
    assert float(told["energy_distance"]) == 0
    assert told["distance_curve"].tolist() == [0.0, 0.0]


class Walker(eqx.Module):
    """A model whose answer goes on by its rate with every step of training."""

    learning_rate: jax.Array
    asked: list = eqx.field(static=True)

    def init(self):
        return g.ConditionalState(jnp.zeros((), jnp.int32), jnp.zeros(1), None)

    def train(self, key, x, y, state, *, num_steps, batch):
        self.asked.append((num_steps, batch))
        after = state._replace(parameters=state.parameters + num_steps * self.learning_rate)
        return after, g.ConditionalInfo(jnp.zeros(num_steps), jnp.full(num_steps, 2), jnp.zeros(num_steps))

    def sample(self, key, state, x, number):
        return jnp.broadcast_to(state.parameters, (number, len(x), 1))


def test_the_rate_whose_last_answers_are_nearest_to_fresh_pairs_is_chosen(monkeypatch):
    """1 is right. After four steps the third rate is nearest, after all eight the second; the last is the farthest."""
    asked, rates = [], (0.02, 0.12, 0.2, 0.5)
    monkeypatch.setattr(trials, "make", lambda key, arm, data, scale, rate: Walker(rate, asked))
    signs, ones = jnp.asarray(np.array([[1.0], [-1.0]] * 8)), jnp.asarray(np.ones((4, 1)))
    data, scale = trials.Data(signs, signs, ones, ones), Settings(dict(SCALE), rates=rates)
    long = arm("diffusion-long")
    _, *found = jax.jit(lambda: trials.trained(KEY, long, data, scale)._replace(model=None))()
    answers, _, rate, score, passes = jax.tree.map(np.asarray, found)
    assert float(rate) == pytest.approx(0.12)
    np.testing.assert_allclose(answers, [[0.48], [0.96]], rtol=1e-5)
    assert float(score) == pytest.approx(0.04, rel=1e-3)  # the unit of y is 1 but for a millionth
    # Twice as many updates on four times as large batches, which count four times.
    assert set(asked) == {(4, 4 * SCALE.batch)}
    assert passes.tolist() == [4 * 2 * 4.0, 4 * 2 * 8.0]


@pytest.mark.slow
def test_the_best_rate_by_fresh_pairs_answers():
    """The chosen rate has the lowest score of all, each trained alone; y goes back to its own unit."""
    scale = Settings(dict(SCALE), steps=30, rates=(1e-3, 1e-1))
    problem = TwoCurves()
    data = trials.Data(*problem.pairs(KEY, 32), *problem.pairs(jax.random.key(4), 16))
    fit = jax.jit(lambda: trials.trained(KEY, arm("regression"), data, scale)[1:])
    parameters, units, rate, score, _ = fit()
    one = lambda rate: Settings(dict(scale), rates=[rate])  # noqa: E731
    score_of = jax.jit(lambda rate: trials.trained(KEY, arm("regression"), data, one(rate))[4])
    alone = [float(score_of(value)) for value in scale.rates]
    assert alone[0] != pytest.approx(alone[1], rel=1e-3)
    assert float(rate) == pytest.approx(scale.rates[int(np.argmin(alone))])
    assert float(score) == pytest.approx(min(alone), rel=1e-4)
    # It is the score of the networks at the end of training.
    net_key, _, choose_key = jax.random.split(KEY, 3)
    made = trials.Trained(
        trials.make(net_key, arm("regression"), data, scale, rate), parameters, units, rate, score, rate
    )
    again = jax.jit(
        lambda: trials.scores(made.sample(choose_key, data.validation_x, scale.chosen_by), data.validation_y)
    )
    assert float(again()) == pytest.approx(float(score), rel=1e-4)
    there = units.answers(data.y)
    np.testing.assert_allclose(units.back(there[None])[0], data.y, rtol=1e-4, atol=1e-5)
    assert float(jnp.mean(there**2)) == pytest.approx(1, rel=1e-3)
    assert float(jnp.mean(units.inputs(data.x) ** 2)) == pytest.approx(1, rel=1e-3)


def test_what_arms_learn_from_and_are_chosen_by(monkeypatch):
    """90 : 10 where the arm says so, fresh pairs to choose by, and of real data never the rows that count."""
    seen = []

    def looked_at(key, arm, data, scale):
        seen.append(data)
        raise StopIteration  # what comes after is not asked for here

    monkeypatch.setattr(trials, "trained", looked_at)
    scale = Settings(dict(SCALE), rows=2000, fresh=50)
    for name in ("cgml", "cgml-90"):
        with pytest.raises(StopIteration):
            trials.modes(KEY, arm(name), TwoCurves(), scale)
    for data, share in zip(seen, (0.5, 0.9), strict=True):
        assert np.mean(np.asarray(data.y)[:, 0] > 0) == pytest.approx(share, abs=5 * (0.25 / 2000) ** 0.5)
        assert not set(np.asarray(data.x)[:, 0].tolist()) & set(np.asarray(data.validation_x)[:, 0].tolist())
    problem = DigitHalves(train=6, validation=3, test=5)
    with pytest.raises(StopIteration):
        trials.completion(KEY, arm("cgml"), problem, COMPLETION.scales["tiny"].settings)
    wanted = (problem.x, problem.y, problem.validation_x, problem.validation_y)
    for found, right in zip(seen[-1], wanted, strict=True):
        np.testing.assert_array_equal(found, right)


def test_arms_are_the_models_their_labels_say():
    data = trials.Data(jnp.zeros((4, 1)), jnp.zeros((4, 3)), jnp.zeros((2, 1)), jnp.zeros((2, 3)))
    made = {
        one.name: eqx.filter_eval_shape(trials.make, KEY, one.settings, data, SCALE, 0.1)
        for one in (*ARMS, *OTHERS)
        if one not in UNTRAINED
    }
    assert isinstance(made["cgml"], g.LatentFlowRegressor)
    assert made["cgml"].num_inner == SCALE.inner
    assert float(made["cgml"].inner_rate) == 0.5
    assert made["cgml"].cost is g.absolute_error
    assert isinstance(made["regression"], g.Regression)
    assert made["regression"].cost is g.squared_error
    assert [float(made[name].weight) for name in ("cgan", "cgan-long", "cgan-l1")] == [0.0, 0.0, 1.0]
    assert made["mixture"].num_components == 4
    assert made["diffusion"].num_levels == 20
    assert {one.name for one in ARMS if one.settings.share == 0.9} == {"cgml-90", "mixture-90"}
    # 1 / ‖z‖ leaves a direction alone.
    circle, x, z = trials.make(KEY, CGAN_CIRCLE.settings, data, SCALE, jnp.asarray(0.1)), jnp.ones(1), jnp.ones(2)
    np.testing.assert_allclose(circle.generator(x, 3 * z), circle.generator.network(x, z / 2**0.5), rtol=1e-5)


def test_latents_on_the_circle_have_length_one():
    shown = trials.OnCircle(lambda x, z: x * z)(2.0, np.array([-3.0, 4.0], np.float32))
    np.testing.assert_allclose(shown, [-1.2, 1.6], rtol=1e-6)


def test_long_arms_have_as_many_passes_as_cgml():
    """At every scale of every experiment that has them, within a twentieth."""
    for experiment in PAPER.experiments:
        for name, scale in experiment.scales.items():
            ours = (3 * scale.settings.inner + 2) * scale.settings.steps
            for one in experiment.arms:
                if one.settings.long:
                    passes = {"cgan": 4, "cvae": 2, "diffusion": 1}[one.settings.kind] * one.settings.wider
                    spent = passes * trials.updates_of(one.settings, scale.settings) * scale.settings.checkpoints
                    assert spent == pytest.approx(ours, rel=0.05), (experiment.name, name, one.name)


def test_longer_arms_train_longer_on_larger_batches(monkeypatch):
    """Traced alone: what is asked of training is read, nothing is compiled."""
    seen, train = set(), g.AbstractConditional.train

    def counted(self, *rest, num_steps, batch):
        seen.add((type(self).__name__, num_steps, batch))
        return train(self, *rest, num_steps=num_steps, batch=batch)

    monkeypatch.setattr(g.AbstractConditional, "train", counted)
    data = trials.Data(jnp.zeros((16, 1)), jnp.zeros((16, 3)), jnp.zeros((4, 1)), jnp.zeros((4, 3)))
    for name in ("cgml", "diffusion-long"):
        jax.eval_shape(lambda name=name: trials.trained(KEY, arm(name), data, SCALE).passes)
    assert seen == {("LatentFlowRegressor", 2, 4), ("ConditionalDiffusion", 4, 16)}


@pytest.mark.slow
def test_passes_are_counted_as_they_are_spent():
    problem = TwoCurves()
    data = trials.Data(*problem.pairs(KEY, 16), *problem.pairs(KEY, 4))
    for name in ("cgml", "diffusion-long"):
        passes = jax.jit(lambda name=name: trials.trained(KEY, arm(name), data, SCALE).passes)()
        assert passes.tolist() == [16.0, 32.0]


@pytest.mark.slow
def test_answers_of_who_learns_nothing():
    problem = TwoCurves()
    data = trials.Data(*problem.pairs(KEY, 40), *problem.pairs(KEY, 8))
    mean = trials.untrained(KEY, arm("mean"), data, data.x[:6], 3)
    np.testing.assert_allclose(mean[1, 2], data.y.mean(0), rtol=1e-5)
    rows = [tuple(row) for row in np.asarray(data.y).round(5).tolist()]
    marginal = np.asarray(trials.untrained(KEY, arm("marginal"), data, data.x[:6], 300))
    assert {tuple(row) for row in marginal[:, 0].round(5).tolist()} == set(rows)
    nearby = np.asarray(trials.untrained(KEY, arm("neighbours"), data, data.x[:6], 300))
    for row in range(6):
        nearest = np.argsort(np.abs(np.asarray(data.x[:, 0] - data.x[row, 0])))[:16]
        assert {tuple(one) for one in nearby[:, row].round(5).tolist()} == {rows[i] for i in nearest}


def test_neighbours_answer_as_the_nearest_inputs_do():
    """Inputs 0 to 19, each its own answer: of 1 and of 18 the nearest sixteen are the first and the last."""
    rows = np.arange(20.0, dtype=np.float32)[:, None]
    asked = jnp.asarray(rows[[1, 18]])

    def answers(rows):
        return trials.untrained(KEY, arm("neighbours"), trials.Data(rows, rows, rows, rows), asked, 300)

    drawn = np.asarray(jax.jit(answers)(rows))
    # One of sixteen is missed by 300 draws with a chance of 1e-7.
    assert [np.unique(drawn[:, row]).tolist() for row in range(2)] == [[*range(16)], [*range(4, 20)]]


@pytest.mark.slow
def test_both_sides_of_the_benchmark_do_the_same_work():
    work = speed.Work(batch=4, width=4, inner=2, steps=2)
    side = speed.our_side(work)
    assert side.times == 0.5
    first, second = np.asarray(side.run()), np.asarray(side.run())
    assert first.shape == (2,)
    assert not np.allclose(first, second)  # it goes on training


# --- one's own --------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # it reads the examples, which a copy of the package alone does not have
def test_the_example_offers_what_the_experiment_asks_for():
    module = loaded(EXAMPLE)
    problem = module.Arms()
    assert all(hasattr(problem, name) for name in OFFERS)
    # The elbow is at the upper arm's length, and reaches the hand.
    np.testing.assert_allclose(np.linalg.norm(problem.y, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(problem.y - problem.x, axis=1), 0.8, rtol=1e-4)


@pytest.mark.slow
def test_the_example_runs():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "latent-flow" in done.stdout
    assert "explains it" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cgml", "marginal"])
def test_a_problem_of_ones_own(name):
    """Through the lab's own worker, as ``laureate run cgml/completion --problem`` does it."""
    selection = Selection(PAPER, COMPLETION, COMPLETION.claims[:1])
    cells = plan([selection], "tiny", problem=f"{EXAMPLE}:Arms")
    (outcome,) = [compute(cell) for cell in cells if cell.arm == name]
    assert not outcome.error, outcome.error
    assert np.isfinite(outcome.metrics["energy_score"]).all()
