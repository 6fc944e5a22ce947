"""Do the trials measure what they say? On models that are written down, where the answers are known."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trial_runner import QUICK

from example_files import run_with_problem
from laureate.lab.claim import Settings
from laureate.papers.important_neurons import trials
from laureate.papers.important_neurons.experiments import LOCALISED
from laureate.papers.important_neurons.experiments_control import CONTROL
from laureate.papers.important_neurons.experiments_models import ERASURE, HOW_MANY
from laureate.problems.grammar import Translation
from laureate.problems.translators import Decoder, nats

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_activations.py"
KEY = jax.random.key(0)
PROBLEM = Translation(**ERASURE.scales["tiny"].problem)
MODELS, UNITS = 3, 5
STATES = jax.random.normal(jax.random.key(1), (MODELS, *PROBLEM.test_sources.shape, UNITS))
make = eqx.filter_vmap(lambda key: Decoder(key, UNITS, 7, PROBLEM.num_targets))
DECODERS = eqx.filter_jit(lambda key: make(jax.random.split(key, MODELS)))(KEY)
MEANS = jnp.asarray(np.asarray(STATES)[:, np.asarray(PROBLEM.test_targets) >= 0].mean(1))
TARGETS = PROBLEM.test_targets
LOSSES = jnp.array([1.0, 2.0])


def decoder_of(model):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[model], DECODERS)


@jax.jit
def _lost(decoder, states, targets):
    return nats(decoder(states), targets)


def lost(model, states, first=0, last=None):
    return float(_lost(decoder_of(model), np.asarray(states)[first:last], np.asarray(TARGETS)[first:last]))


def test_top_and_bottom_are_erased_in_each_model_by_zero_and_by_its_mean():
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(MODELS, UNITS)))
    top, bottom = trials._erase_units(DECODERS, STATES, MEANS, TARGETS, scores, jnp.array([0.0, 0.4]))
    assert top.shape == bottom.shape == (MODELS, 2, 2)
    for model in range(MODELS):
        order = np.argsort(-np.asarray(scores[model]))
        for found, units in ((top, order[:2]), (bottom, order[-2:])):
            for row, value in enumerate((jnp.zeros(UNITS), MEANS[model])):
                erased = STATES[model].at[..., units].set(value[units])
                assert float(found[model, row, 1]) == pytest.approx(lost(model, erased), rel=1e-4)
                assert float(found[model, row, 0]) == pytest.approx(lost(model, STATES[model]), rel=1e-4)


def test_scores_and_effects_are_each_models_own():
    class Encoder(eqx.Module):
        states: jax.Array

        def __call__(self, words):
            return self.states[words[0]]

    class Model(eqx.Module):
        encoder: Encoder
        decoder: Decoder

    # The first word names the sentence, so that the encoder can look its states up.
    sources = jnp.broadcast_to(jnp.arange(len(TARGETS))[:, None], TARGETS.shape)
    models = Model(Encoder(STATES), DECODERS)
    states, means, scores, effects, losses, accuracies = trials._looked_at(models, sources, TARGETS)
    np.testing.assert_array_equal(states, STATES)
    # Ranked on the first half of the sentences, judged on the second.
    half = len(TARGETS) // 2
    early, late = (np.asarray(TARGETS >= 0)[part] for part in (slice(half), slice(half, None)))
    flat = [np.asarray(x)[:half][early] for x in STATES]
    np.testing.assert_allclose(means, [x.mean(0) for x in flat], atol=1e-5)
    for model in range(MODELS):
        rho = [
            np.abs(np.corrcoef(flat[model].T, flat[o].T)[:UNITS, UNITS:]).max(1) for o in range(MODELS) if o != model
        ]
        np.testing.assert_allclose(scores["max-corr"][model], np.max(rho, axis=0), atol=1e-4)
        np.testing.assert_allclose(scores["min-corr"][model], np.min(rho, axis=0), atol=1e-4)
        np.testing.assert_allclose(scores["standard-deviation"][model], flat[model].std(0), rtol=1e-4)
        np.testing.assert_allclose(
            scores["output-norm"][model], np.linalg.norm(decoder_of(model).first, axis=1), rtol=1e-5
        )
        for row, value in enumerate((means[model], jnp.zeros(UNITS))):
            changed = STATES[model].at[..., 2].set(value[2])
            expected = lost(model, changed, half) - lost(model, STATES[model], half)
            assert float(effects[row, model, 2]) == pytest.approx(expected, abs=1e-5)
        changed = STATES[model].at[..., 2].set(means[model, 2])
        expected = lost(model, changed, 0, half) - lost(model, STATES[model], 0, half)
        assert float(scores["ablation"][model, 2]) == pytest.approx(expected, abs=1e-5)
        assert float(losses[model]) == pytest.approx(lost(model, STATES[model], half), rel=1e-5)
        said = np.asarray(decoder_of(model)(STATES[model]).argmax(-1))[half:]
        assert float(accuracies[model]) == pytest.approx((said == np.asarray(TARGETS)[half:])[late].mean(), abs=1e-5)


def test_words_take_the_form_of_the_unit_that_is_set():
    """One unit tells tense, the decoder says it: setting that unit changes every verb, another none."""
    form, other = (jnp.asarray(table["tense"]) for table in (PROBLEM.form, PROBLEM.other_form))
    has = np.where(np.asarray(TARGETS) >= 0, np.asarray(form)[np.asarray(TARGETS)], -1)
    words = 3 * jax.nn.one_hot(jnp.maximum(TARGETS, 0), PROBLEM.num_targets)
    words = words + words[..., other]  # both tenses of the right word are as likely
    tense = jnp.where(has == 0, -1.0, 1.0) + 0.01 * jax.random.normal(KEY, TARGETS.shape)
    states = jnp.concatenate([words, tense[..., None]], axis=-1)[None]

    class Reader(eqx.Module):
        weight: jax.Array

        def __call__(self, states):
            return states[..., :-1] + self.weight * states[..., -1:] * jnp.where(form < 0, 0, 2 * form - 1)

    decoders, strengths = Reader(jnp.ones(1)), jnp.array([0.0, 1.0])
    accuracies = trials._accuracies(states, form, TARGETS)
    assert int(jnp.argmax(accuracies[0])) == PROBLEM.num_targets
    table = form, other, TARGETS
    best = trials.top_units(np.asarray(accuracies), 1)
    found = trials._control(decoders, states, best, table, strengths)
    assert found.shape == (2, 2, 2)  # halves of the sentences, form or word, strengths
    np.testing.assert_allclose(found, 1.0)
    none = trials._control(decoders, states, trials.top_units(np.asarray(accuracies), 0), table, strengths)
    np.testing.assert_allclose(none, 0.0)
    # In the second half the reader says another verb of the tense wanted: the form is right, the word is not.
    half, verbs = len(TARGETS) // 2, np.flatnonzero(np.asarray(form) >= 0)
    pair = (
        words[0, 0] * 0
        + 30 * (jnp.arange(PROBLEM.num_targets) == verbs[0])
        + 30 * (jnp.arange(PROBLEM.num_targets) == other[verbs[0]])
    )
    odd = states.at[0, half:, :, :-1].set(pair)
    changed = np.asarray(trials._control(decoders, odd, best, table, strengths))
    np.testing.assert_allclose(changed[0], 1.0)
    np.testing.assert_allclose(changed[1, 0], 1.0)
    assert (changed[1, 1] < 1).all()


def test_words_are_set_to_the_other_form():
    """One unit tells past from present and two verbs are said by it: each becomes the other where the unit is set."""
    form, other = jnp.array([-1, 0, 1]), jnp.array([-1, 2, 1])
    targets = jnp.array([[1, 2, 0], [2, 1, -1]])
    states = jnp.array([[[-1.0, 1, 5], [2, -1, 9]]])[..., None]
    decoders = lambda states: states * jnp.array([0.0, -1, 1])  # noqa: E731
    found = compiled_as(trials._control, decoders, states, jnp.ones((1, 1), bool), (form, other, targets), jnp.zeros(1))
    np.testing.assert_array_equal(found, np.ones((2, 2, 1)))


def compiled_as(function, *arguments):
    """What a jitted function gives, traced anew, so that nothing that was patched in it stays; not optimised."""
    arrays, rest = eqx.partition(arguments, eqx.is_array)
    program = jax.jit(lambda arrays: function.__wrapped__(*eqx.combine(arrays, rest)))
    return jax.tree.map(np.asarray, program.lower(arrays).compile(compiler_options=QUICK)(arrays))


def test_the_top_is_erased_from_the_top_and_the_bottom_from_the_bottom(monkeypatch):
    """Curves that say what was asked for: the first unit, the end, the value and the fraction."""

    def curve(loss, order, fractions, *, from_, values):
        return SimpleNamespace(
            values=100 * order[0] + (1000 if from_ == "bottom" else 0) + 10 * values.sum() + fractions
        )

    monkeypatch.setattr(trials.i, "erase_curve", curve)
    scores, means, fractions = np.eye(3, 5)[[2, 0, 1]], np.arange(15.0).reshape(3, 5), np.array([0.0, 0.5])
    top, bottom = compiled_as(trials._erase_units, np.zeros(3), np.zeros(3), means, TARGETS, scores, fractions)
    values = np.stack([np.zeros(3), means.sum(1)], axis=1)
    wanted = 100 * np.array([2, 0, 1])[:, None, None] + 10 * values[..., None] + fractions
    np.testing.assert_allclose(top, wanted)
    np.testing.assert_allclose(bottom, 1000 + wanted)


def test_rankings_of_halves_are_by_other_models(monkeypatch):
    """Five models: of the four others the first two are one half and the last two the other."""
    asked = []
    ranks = Settings(scores=jnp.zeros(2))
    monkeypatch.setattr(trials, "_moments", lambda *_: Settings(subset=lambda models: asked.append(models)))
    monkeypatch.setattr(trials.i, "max_corr", lambda *_: ranks)
    traced: Any = trials._by_halves
    found = jax.eval_shape(lambda states: traced.__wrapped__(states, None, "max-corr", (1, 2)), np.zeros((5, 1)))
    assert found.shape == (2, 5, 2, 2)
    assert asked == [(0, 1), (0, 3), (0, 1, 2), (0, 3, 4)]


def test_probes_are_fitted_on_the_first_half_and_the_best_unit_is_judged_on_the_second(monkeypatch):
    """Probes that name the tokens they were given: the first unit is best on the first half, the other later."""
    early = jnp.array([[0.9, 0.1], [0.7, 0.3]])

    def score(probe, tokens, labels, mask):
        first, last = mask[: len(mask) // 2].sum(), mask[len(mask) // 2 :].sum()
        f1 = jnp.where(last == 0, early, 1 - early)
        return Settings(f1=f1, accuracy=jnp.stack([*probe, first, last]))

    monkeypatch.setattr(trials.i, "score_probe", score)
    halves = lambda mask: (mask[: len(mask) // 2].sum(), mask[len(mask) // 2 :].sum())  # noqa: E731
    monkeypatch.setattr(trials.i, "fit_probe", lambda tokens, labels, number, mask: halves(mask))
    monkeypatch.setattr(trials.i, "explained_variance", lambda tokens, *_: tokens[0])
    states, form = np.zeros((1, *TARGETS.shape, 2)), jnp.asarray(PROBLEM.form["tense"])
    labels = PROBLEM.test_inside, PROBLEM.test_tense, PROBLEM.test_kind, PROBLEM.test_sources
    *_, tense = compiled_as(trials._say, states, np.zeros((1, 2)), labels, PROBLEM.num_sources, 1)
    np.testing.assert_allclose(tense, 0.2)  # the mean of 0.1 and 0.3
    half, has = len(TARGETS) // 2, np.asarray(TARGETS) >= 0
    verbs = np.sum((np.asarray(PROBLEM.form["tense"])[np.asarray(TARGETS)] >= 0)[:half] & has[:half])
    found = compiled_as(trials._accuracies, states, form, TARGETS)
    np.testing.assert_array_equal(found[0], [verbs, 0, verbs, 0])


def test_units_are_ranked_on_the_first_half_of_the_sentences(monkeypatch):
    """Scores that show the mean of all models' units that they were given, in the order of the models."""
    shown = lambda moments, _: Settings(scores=jnp.stack(moments.means).mean(0) + moments.means[0])  # noqa: E731
    for name in ("max_corr", "min_corr", "linear_regression", "standard_deviation"):
        monkeypatch.setattr(trials.i, name, shown)
    monkeypatch.setattr(trials.i, "ablation_effects", lambda loss, *_, values: Settings(effects=values))

    class Model(eqx.Module):
        encoder: Any
        decoder: Any

    class Looked(eqx.Module):
        states: jax.Array

        def __call__(self, words):
            return self.states[words[0]]

    class Read(eqx.Module):
        first: jax.Array

        def __call__(self, states):
            return states @ self.first

    sources = np.broadcast_to(np.arange(len(TARGETS))[:, None], TARGETS.shape)
    models = Model(Looked(STATES), Read(jnp.ones((MODELS, UNITS, PROBLEM.num_targets))))
    _, means, scores, *_ = compiled_as(trials._looked_at, models, sources, TARGETS)
    half = len(TARGETS) // 2
    wanted = np.asarray(STATES)[:, :half][:, np.asarray(TARGETS)[:half] >= 0].mean(1)
    np.testing.assert_allclose(means, wanted, atol=1e-5)
    np.testing.assert_allclose(scores["max-corr"], wanted + wanted.mean(0), atol=1e-5)


def test_the_worst_model_tells_what_was_learned(monkeypatch):
    monkeypatch.setattr(trials, "_train", lambda *_: None)
    monkeypatch.setattr(trials, "_looked_at", lambda *_: (None, None, {}, None, LOSSES, np.array([1, 0.5])))
    scale = Settings(kind="worst", models=2, units=5, steps=1, batch=1, rate=0.01)
    found = trials.prepared(KEY, PROBLEM, scale)
    wanted = 1 - 2.0 / trials.entropy(TARGETS[len(TARGETS) // 2 :])
    assert float(found.learned) == pytest.approx(wanted, rel=1e-5)
    assert found.accuracy == 0.5


def test_gaps_by_zeros_and_by_means_are_told_apart(monkeypatch):
    prepared_as(monkeypatch, scores={"max-corr": np.zeros((MODELS, UNITS))})
    table = np.array([[[1.0, 5.0], [2.0, 9.0]], [[1.0, 2.0], [2.0, 3.0]]])  # ends; zeros and means; fractions
    monkeypatch.setattr(trials, "_erase_units", lambda *_: [np.stack([end] * MODELS) for end in table])
    found = trials.erased(KEY, Settings(ranking="max-corr"), PROBLEM, Settings(fractions=(0.0, 0.5), judged=0.5))
    told = {name: float(found[name]) for name in ("gap", "gap_mean", "top_loss", "bottom_loss")}
    assert told == {"gap": 3, "gap_mean": 6, "top_loss": 5, "bottom_loss": 2}


def test_units_are_chosen_by_their_worth():
    worth = np.array([[0.1, 0.9, 0.5], [0.7, 0.2, 0.7]])
    assert trials.top_units(worth, 1).tolist() == [[False, True, False], [True, False, False]]
    assert trials.top_units(worth, 2).tolist() == [[False, True, True], [True, False, True]]
    assert np.asarray(trials.top_units(worth, -1)).all()
    assert not np.asarray(trials.top_units(worth, 0)).any()


def test_halves_of_models_are_disjoint_and_leave_the_model_out():
    """Five models: the first shares a unit with the second alone, so that only one half sees it."""
    states = jax.random.normal(KEY, (5, 30, 4, 3))
    states = states.at[1, ..., 2].set(states[0, ..., 0])
    found = trials._by_halves(states, jnp.ones(120, bool), "max-corr", (1, 2))
    assert found.shape == (2, 5, 2, 3)
    np.testing.assert_allclose(found[:, 0, 0, 0], 1.0, atol=1e-4)
    assert (np.asarray(found[:, 0, 1, 0]) < 0.6).all()
    assert (np.asarray(found[1]) >= np.asarray(found[0]) - 1e-6).all()  # more models, a larger maximum


@pytest.mark.slow
def test_brackets_and_tense_are_told_by_the_units_that_have_them():
    sources = PROBLEM.test_sources
    noise = 0.05 * jax.random.normal(KEY, (1, *sources.shape, 4))
    told = jnp.stack([PROBLEM.test_inside, PROBLEM.test_tense, jnp.arange(8) + 0 * sources, 0 * sources], axis=-1)
    states = told.astype(float)[None] * jnp.array([1, 1, 1, 0]) + noise
    labels = PROBLEM.test_inside, PROBLEM.test_tense, PROBLEM.test_kind, sources
    scores = jnp.array([[0.5, 0.1, 0.9, 0.0]])  # the place in the sentence first, brackets second
    place, bracket, position, _, tense = trials._say(states, scores, labels, PROBLEM.num_sources, 1)
    assert float(place[0]) == pytest.approx(1 / 3)
    assert float(bracket[0]) > 0.95
    assert float(position[0]) > 0.95
    assert float(tense[0]) > 0.95


def split_tense(early_noise, late_noise):
    """States of two units that tell tense: how well, in the first half of the sentences and in the second."""
    half = len(TARGETS) // 2
    noise = np.random.default_rng(0).normal(size=(*TARGETS.shape, 2))
    noise[:half] *= early_noise
    noise[half:] *= late_noise
    return jnp.asarray(np.asarray(PROBLEM.test_tense)[..., None] + noise, jnp.float32)[None]


def test_a_unit_is_chosen_where_the_probe_was_fitted_and_judged_elsewhere():
    """The first unit is the better one at first and says nothing later; the second is never bad."""
    states = split_tense((0.01, 0.5), (30.0, 0.01))
    labels = PROBLEM.test_inside, PROBLEM.test_tense, PROBLEM.test_kind, PROBLEM.test_sources
    *_, tense = trials._say(states, jnp.array([[1.0, 0.0]]), labels, PROBLEM.num_sources, 1)
    assert float(tense[0]) < 0.8
    form = jnp.asarray(PROBLEM.form["tense"])
    worth = np.asarray(trials._accuracies(states, form, TARGETS))[0]
    assert worth[0] == 1.0
    assert worth[1] < 1.0


def prepared_as(monkeypatch, **more):
    found = trials.Prepared(
        Settings(decoder=DECODERS), STATES, MEANS, {}, jnp.zeros((2, MODELS, UNITS)), jnp.ones(()), jnp.ones(())
    )
    monkeypatch.setattr(trials, "prepared", lambda *_: found._replace(**more))


def test_a_strength_is_chosen_in_the_first_half_and_judged_in_the_second(monkeypatch):
    prepared_as(monkeypatch)
    monkeypatch.setattr(trials, "_accuracies", lambda *_: np.ones((MODELS, UNITS)))
    table = jnp.array([[[0.9, 0.1, 0.2], [0.2, 0.3, 0.1]], [[0.5, 0.6, 0.7], [0.4, 0.15, 0.05]]])
    monkeypatch.setattr(trials, "_control", lambda *_: table)
    scale = Settings(strengths=(0.0, 1.0, 2.0), strength=2.0)
    found = trials.controlled(KEY, Settings(how="top", count=1), PROBLEM, scale)
    assert float(found["chosen"]) == 1.0
    assert float(found["best"]) == pytest.approx(0.15)
    assert float(found["success_tense"]) == pytest.approx(0.7)
    assert float(found["exact_gender"]) == pytest.approx(0.05)
    np.testing.assert_allclose(found["success"], [0.5, 0.6, 0.7])


def test_a_gap_is_top_less_bottom_at_the_fraction_declared_on_sentences_not_ranked(monkeypatch):
    scores = jnp.asarray(np.random.default_rng(0).normal(size=(MODELS, UNITS)))
    effects = jnp.stack([scores, -scores])
    prepared_as(monkeypatch, scores={"max-corr": scores}, effects=effects)
    seen = []

    def erase(decoders, states, means, targets, order, fractions):
        seen.append((states, targets))
        top = jnp.broadcast_to(jnp.array([[1.0, 5.0], [2.0, 9.0]]), (MODELS, 2, 2))  # zero, mean; fractions
        return [top, jnp.broadcast_to(jnp.array([[1.0, 2.0], [2.0, 3.0]]), (MODELS, 2, 2))]

    monkeypatch.setattr(trials, "_erase_units", erase)
    scale = Settings(fractions=(0.0, 0.5), judged=0.5)
    found = trials.erased(KEY, Settings(ranking="max-corr"), PROBLEM, scale)
    told = {
        name: float(found[name]) for name in ("gap", "gap_mean", "top_loss", "bottom_loss", "causal", "causal_zero")
    }
    expected = {"gap": 3, "gap_mean": 6, "top_loss": 5, "bottom_loss": 2, "causal": 1, "causal_zero": -1}
    assert told == pytest.approx(expected)
    half = len(TARGETS) // 2
    np.testing.assert_array_equal(seen[0][0], STATES[:, half:])
    np.testing.assert_array_equal(seen[0][1], TARGETS[half:])
    random = trials.erased(KEY, Settings(ranking="random"), PROBLEM, scale)
    assert len(seen) == 1 + trials.RANDOM_ORDERS
    assert abs(float(random["causal"])) < 0.5


def test_each_model_is_trained_on_sentences_and_with_a_key_of_its_own(monkeypatch):
    monkeypatch.setattr(trials, "make_translator", lambda key, *_: jax.random.key_data(key))
    monkeypatch.setattr(trials, "train_translator", lambda key, model, sources, targets, *_: (model, sources, targets))
    words = jnp.arange(21).reshape(7, 3)
    keys, sources, targets = trials._train(KEY, words, 100 + words, (5, 5), ("any", 3, 1, 1, 1), jnp.asarray(0.1))
    np.testing.assert_array_equal(sources.reshape(6, 3), words[:6])
    np.testing.assert_array_equal(targets, 100 + sources)
    assert len({tuple(key) for key in np.asarray(keys).tolist()}) == 3


def test_entropy_of_words():
    assert trials.entropy(jnp.array([[0, 1, -1], [0, 1, -1]])) == pytest.approx(np.log(2))


def test_arms_and_scales_are_what_they_say():
    for scale in ERASURE.scales.values():
        assert scale.settings.judged in scale.settings.fractions
    for scale in CONTROL.scales.values():
        assert scale.settings.strength in scale.settings.strengths
        assert scale.settings.strength == 1.0
    for scale in HOW_MANY.scales.values():
        assert 2 * max(scale.settings.counts) <= scale.settings.models - 1
    assert {arm.settings.how for arm in CONTROL.arms} == {"top", "random", "direction"}
    assert {arm.name for arm in LOCALISED.arms if arm.settings.spread} == {
        "max-corr-many",
        "linear-regression-many",
        "svcca-many",
        "random-many",
    }


def test_a_random_order_is_of_the_seed_and_of_each_model():
    scores = {"max-corr": MEANS}
    found = trials.Prepared(None, STATES, MEANS, scores, jnp.zeros((2, MODELS, UNITS)), jnp.ones(()), jnp.ones(()))
    one = np.asarray(trials.scores_of(KEY, "random", found))
    assert one.shape == (trials.RANDOM_ORDERS, MODELS, UNITS)
    np.testing.assert_array_equal(one, trials.scores_of(KEY, "random", found))
    assert len({tuple(row) for row in one.reshape(-1, UNITS).tolist()}) == trials.RANDOM_ORDERS * MODELS
    assert not np.array_equal(one, trials.scores_of(jax.random.key(9), "random", found))
    np.testing.assert_array_equal(trials.scores_of(KEY, "max-corr", found), MEANS[None])


def test_directions_are_those_shared_with_the_next_model():
    """A model and its own rotation share everything; with all directions but one kept, one unit of rank is lost."""
    states = STATES[:2].at[1].set(STATES[0] @ jnp.linalg.qr(jax.random.normal(KEY, (UNITS, UNITS)))[0])
    decoders = jax.tree.map(lambda leaf: leaf[:2], DECODERS)
    shown = (TARGETS >= 0).ravel()
    top, bottom = trials._erase_directions(decoders, states, shown, states, MEANS[:2], TARGETS, jnp.array([0.0, 1.0]))
    assert top.shape == bottom.shape == (2, 2, 2)
    np.testing.assert_allclose(top[0, :, 0], lost(0, STATES[0]), rtol=1e-3)  # nothing erased
    nothing = jnp.zeros_like(STATES[0])
    assert float(top[0, 0, 1]) == pytest.approx(lost(0, nothing), rel=1e-3)  # everything, by zero
    assert float(bottom[0, 1, 1]) == pytest.approx(lost(0, nothing + MEANS[0]), rel=1e-3)  # and to the mean


@pytest.mark.slow
def test_the_example_tells_which_units_agree():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True)
    assert "units that agree with another model's beyond chance" in done.stdout
    assert "rank correlation with each unit's own effect" in done.stdout


@pytest.mark.slow
def test_a_problem_of_ones_own(tmp_path, monkeypatch):
    run_with_problem(monkeypatch, tmp_path, "important-neurons/erasure", f"{EXAMPLE}:RunningMaximum")


@pytest.mark.slow
def test_a_scale_of_another_size_is_another_set_of_models(monkeypatch):
    made = []
    monkeypatch.setattr(trials, "_train", lambda *arguments: made.append(arguments))
    monkeypatch.setattr(trials, "_looked_at", lambda *_: (STATES, MEANS, {}, jnp.zeros(1), LOSSES, jnp.array([1, 0.5])))
    scale = Settings(kind="recurrent", models=3, units=5, steps=1, batch=1, rate=0.01)
    first = trials.prepared(KEY, PROBLEM, scale)
    assert trials.prepared(KEY, PROBLEM, scale) is first
    others = [
        (jax.random.key(5), scale, "translate"),
        (KEY, Settings(dict(scale), units=6), "translate"),
        (KEY, scale, "copy"),
    ]
    for key, changed, task in others:
        assert trials.prepared(key, PROBLEM, changed, task) is not first
    assert len(made) == 4
    assert made[-1][2] is PROBLEM.sources  # who copies is taught the source
    # What was learned is that of the worst model, on the sentences that are judged.
    half = len(TARGETS) // 2
    assert float(first.learned) == pytest.approx(1 - 2.0 / trials.entropy(TARGETS[half:]), rel=1e-5)
    assert float(first.accuracy) == 0.5
