"""The artificial language: every target word is what the grammar says, and what is known of a word is true."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from laureate.problems import grammar as g
from laureate.problems.translators import make_translator, nats

GRAMMAR = g.Grammar(length=14)
SENTENCES = g.draw(np.random.default_rng(1), GRAMMAR, 200)


def test_sentences_are_translated_by_reading_them():
    """A reader of the source alone, word by word in Python, finds every target word and every label."""
    nouns, adjectives = GRAMMAR.nouns, GRAMMAR.adjectives
    first = 4 + 2 * nouns
    verbs = first + 4 * adjectives
    for row in range(200):
        tense = number = gender = -1
        inside = 0
        for place, word in enumerate(SENTENCES.sources[row]):
            if word < 0:
                assert (SENTENCES.sources[row, place:] == -1).all()
                assert (SENTENCES.targets[row, place:] == -1).all()
                break
            if place == 0:
                assert word < 2
                tense, target = word, word
            elif word in (2, 3):
                assert word == 2 + inside  # opens where nothing is open
                inside, target = 1 - inside, word
            elif word < first:
                number, gender, target = (word - 4) % 2, 2 * ((word - 4) // 2) // nouns, word
            elif word < first + adjectives:
                target = first + 4 * (word - first) + 2 * number + gender
            else:
                target = verbs + 8 * (word - first - adjectives) + 4 * tense + 2 * number + inside
            assert SENTENCES.targets[row, place] == target
            told = (SENTENCES.inside, SENTENCES.tense, SENTENCES.number, SENTENCES.gender)
            assert tuple(label[row, place] for label in told) == (inside, tense, number, gender)


def test_all_words_and_kinds_occur():
    shown = SENTENCES.sources >= 0
    assert set(SENTENCES.sources[shown]) == set(range(GRAMMAR.num_sources))
    assert set(SENTENCES.targets[shown]) <= set(range(GRAMMAR.num_targets))
    assert set(SENTENCES.kind[shown]) == set(range(len(g.KINDS)))
    assert 0.2 < SENTENCES.inside[shown].mean() < 0.6


def test_other_forms_are_of_the_same_word():
    problem = g.Translation(train=10, test=10)
    for name, per_word in (("tense", 32), ("number", 48), ("gender", 16)):
        form, other = problem.form[name], problem.other_form[name]
        assert (form >= 0).sum() == per_word
        np.testing.assert_array_equal(other[other], np.arange(64))  # there and back
        has = form >= 0
        np.testing.assert_array_equal(form[other][has], 1 - form[has])
        np.testing.assert_array_equal(other[~has], np.arange(64)[~has])
    # Changing a verb's tense leaves its lemma, number and place in brackets.
    shown = np.asarray(problem.test_targets)[np.asarray(problem.test_kind) == 4]
    np.testing.assert_array_equal(np.abs(problem.other_form["tense"][shown] - shown), 4)


def test_padding_costs_nothing():
    """Words are what is counted, not sentences: each as much as any other, wherever its sentence ends."""
    logits = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    losses = np.log(np.exp(logits).sum(-1, keepdims=True)) - logits
    found = jax.jit(nats)
    for targets in ([[4, 0, -1], [2, -1, -1]], [[4, 0, 1], [2, 3, 3]]):
        rows = np.array(targets)
        expected = [losses[(*place, word)] for place, word in np.ndenumerate(rows) if word >= 0]
        np.testing.assert_allclose(found(logits, rows), np.mean(expected), rtol=1e-5)
    assert float(found(logits, np.full((2, 3), -1))) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["recurrent", "attention"])
def test_a_word_is_translated_without_those_after_it(kind):
    model = make_translator(jax.random.key(0), kind, 5, 6, 4, 6)
    run = jax.jit(lambda words: model(words))
    words = jnp.array([0, 1, 2, 3, 4, 0])
    before, after = run(words), run(words.at[4].set(2))
    np.testing.assert_allclose(before[:4], after[:4], atol=1e-6)
    assert float(jnp.abs(before[4:] - after[4:]).max()) > 1e-4


def test_wrong_sizes():
    with pytest.raises(ValueError, match=r"Translation.nouns must be >= 2; got 1"):
        g.Translation(nouns=1)
    with pytest.raises(ValueError, match="kind must be 'recurrent' or 'attention'; got 'lstm'"):
        make_translator(jax.random.key(0), "lstm", 5, 6, 4, 6)


def test_test_sentences_follow_those_to_train_on_and_keep_their_labels():
    """Drawn one after the other by one generator; every field is the one of that name."""
    problem = g.Translation(train=7, test=5, nouns=3, adjectives=2, verbs=2, length=9)
    generator, rules = np.random.default_rng(0), g.Grammar(3, 2, 2, 9)
    train, test = g.draw(generator, rules, 7), g.draw(generator, rules, 5)
    assert (problem.num_sources, problem.num_targets) == (4 + 6 + 2 + 2, 4 + 6 + 8 + 16)
    for name in ("sources", "targets"):
        np.testing.assert_array_equal(getattr(problem, name), getattr(train, name))
    for name in g.Sentences._fields:
        np.testing.assert_array_equal(getattr(problem, f"test_{name}"), getattr(test, name))
