"""A small artificial language with tense, number, gender and brackets, and its translation word by word.

A sentence begins with an adverb, which alone tells the tense; clauses follow: a noun, which has a gender and a number,
adjectives, which are translated by the noun's gender and number, and a verb, which is translated by the tense, the
noun's number and whether it stands in brackets. So a reader must remember four things, and it is known which.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from laureate._core import require

__all__ = ["KINDS", "PADDING", "Grammar", "Sentences", "Translation"]

PADDING = -1
KINDS = ("adverb", "bracket", "noun", "adjective", "verb")
ADVERB, BRACKET, NOUN, ADJECTIVE, VERB = range(5)


class Grammar(NamedTuple):
    """How many words there are, and how long sentences are.

    nouns, adjectives, verbs: how many of each. length: words of a sentence, at most.
    """

    nouns: int = 6
    adjectives: int = 4
    verbs: int = 4
    length: int = 16

    @property
    def num_sources(self) -> int:
        """Source words: 2 adverbs, 2 brackets, nouns in two numbers, adjectives and verbs."""
        return 4 + 2 * self.nouns + self.adjectives + self.verbs

    @property
    def num_targets(self) -> int:
        """Target words: as the source's, adjectives in 4 forms, verbs in 8."""
        return 4 + 2 * self.nouns + 4 * self.adjectives + 8 * self.verbs


class Sentences(NamedTuple):
    """Sentences with their translation and what is known of every word; all ``[sentences, length]``, −1 for padding.

    sources, targets: the numbers of the words, and of those that translate them. inside: 1 in brackets, the opening one
    included. tense: of the sentence. number, gender: of the last noun; −1 before the first. kind: as in ``KINDS``.
    """

    sources: np.ndarray
    targets: np.ndarray
    kind: np.ndarray
    inside: np.ndarray
    tense: np.ndarray
    number: np.ndarray
    gender: np.ndarray


def draw(generator: np.random.Generator, grammar: Grammar, count: int) -> Sentences:
    """Sentences by chance, all at once from word to word."""
    length = grammar.length
    columns = {name: np.full((count, length), PADDING, np.int32) for name in Sentences._fields}
    tense, gender, number = generator.integers(2, size=count), np.full(count, -1), np.full(count, -1)
    inside, phase, after_bracket = np.zeros(count, int), np.zeros(count, int), np.zeros(count, bool)
    last = generator.integers(length // 2, length + 1, size=count)
    for place in range(length):
        chance, lemma = generator.uniform(size=count), generator.integers(1 << 30, size=count)
        if place == 0:
            kind = np.full(count, ADVERB)
        else:
            opening = (phase == 0) & ~after_bracket & (chance < 0.35)
            kind = np.where(opening, BRACKET, np.where(phase == 0, NOUN, np.where(chance < 0.4, ADJECTIVE, VERB)))
        noun, many = lemma % grammar.nouns, (lemma >> 16) % 2
        is_noun = kind == NOUN
        # Nouns of the first half have one gender, of the second half the other.
        gender = np.where(is_noun, 2 * noun // grammar.nouns, gender)
        number = np.where(is_noun, many, number)
        closing = inside  # a bracket closes what is open
        inside = np.where(kind == BRACKET, 1 - inside, inside)
        words = _words(grammar, kind, lemma, tense, number, gender, inside, closing)
        known = (*words, kind, inside, tense, number, gender)
        for name, value in zip(Sentences._fields, known, strict=True):
            columns[name][:, place] = np.where(place < last, value, PADDING)
        phase = np.where(is_noun, 1, np.where(kind == VERB, 0, phase))
        after_bracket = kind == BRACKET
    return Sentences(**columns)


def _words(grammar, kind, lemma, tense, number, gender, inside, closing):
    """Source and target word of every sentence."""
    nouns, adjectives, verbs = grammar.nouns, grammar.adjectives, grammar.verbs
    noun, adjective, verb = 2 * (lemma % nouns) + number, lemma % adjectives, lemma % verbs
    first = 4 + 2 * nouns
    choices = [kind == word for word in (ADVERB, BRACKET, NOUN, ADJECTIVE)]
    source = [tense, 2 + closing, 4 + noun, first + adjective]
    target = [tense, 2 + closing, 4 + noun, first + 4 * adjective + 2 * number + gender]
    last = first + 4 * adjectives + 8 * verb + 4 * tense + 2 * number + inside
    return np.select(choices, source, first + adjectives + verb), np.select(choices, target, last)


class Translation(eqx.Module):
    """Sentences to train on and to look inside, ``[sentences, length]``, −1 for padding.

    train, test: sentences. nouns, adjectives, verbs, length: as of `Grammar`.
    The labels of the test sentences are as of `Sentences`. ``other_form`` gives for every target word the same word in
    the other tense, number or gender, and ``form`` which of the two it has; −1 where a word has none.

    >>> problem = Translation(train=20, test=5)
    >>> problem.sources.shape, problem.num_sources, problem.num_targets
    ((20, 16), 24, 64)
    """

    sources: Int[Array, "n t"]
    targets: Int[Array, "n t"]
    test_sources: Int[Array, "m t"]
    test_targets: Int[Array, "m t"]
    test_kind: Int[Array, "m t"]
    test_inside: Int[Array, "m t"]
    test_tense: Int[Array, "m t"]
    test_number: Int[Array, "m t"]
    test_gender: Int[Array, "m t"]
    form: dict[str, np.ndarray]
    other_form: dict[str, np.ndarray]
    num_sources: int = eqx.field(static=True)
    num_targets: int = eqx.field(static=True)

    def __init__(
        self,
        train: int = 6000,
        test: int = 400,
        nouns: int = 6,
        adjectives: int = 4,
        verbs: int = 4,
        length: int = 16,
    ):
        for name, value in (("nouns", nouns), ("adjectives", adjectives), ("verbs", verbs), ("length", length)):
            require("Translation", name, ">= 2", value, lambda n: n >= 2)
        grammar, generator = Grammar(nouns, adjectives, verbs, length), np.random.default_rng(0)
        found, held = draw(generator, grammar, train), draw(generator, grammar, test)
        self.sources, self.test_sources = jnp.asarray(found.sources), jnp.asarray(held.sources)
        self.targets, self.test_targets = jnp.asarray(found.targets), jnp.asarray(held.targets)
        self.test_kind, self.test_inside = jnp.asarray(held.kind), jnp.asarray(held.inside)
        self.test_tense, self.test_number = jnp.asarray(held.tense), jnp.asarray(held.number)
        self.test_gender = jnp.asarray(held.gender)
        self.form, self.other_form = _forms(grammar)
        self.num_sources, self.num_targets = grammar.num_sources, grammar.num_targets


def _forms(grammar: Grammar) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Which form a target word has, and the same word in the other form, by property."""
    words = np.arange(grammar.num_targets)
    adjectives = 4 + 2 * grammar.nouns
    verbs = adjectives + 4 * grammar.adjectives
    of_adjective, of_verb = words - adjectives, words - verbs
    is_verb = words >= verbs
    is_adjective = (words >= adjectives) & ~is_verb
    bits = {
        "tense": (is_verb, of_verb, 4),
        "number": (is_verb | is_adjective, np.where(is_verb, of_verb, of_adjective), 2),
        "gender": (is_adjective, of_adjective, 1),
    }
    form, other = {}, {}
    for name, (has, place, bit) in bits.items():
        value = (place // bit) % 2
        form[name] = np.where(has, value, PADDING)
        other[name] = np.where(has, words + bit * (1 - 2 * value), words)
    return form, other
