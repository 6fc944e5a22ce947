"""Words by the rules and tables that bring them to one form: every rule and line, on all words of our own papers."""

import itertools
import re

import pytest

from laureate.catalogue import entries, words
from laureate.catalogue.synonyms import COMPOUNDS, GROUPS, PRODUCTS, analyse, substitutes
from laureate.catalogue.words import STOP_WORDS, compact, forms, raw_words, stem

# Pairs that only look like a word and its plural or tense.
UNRELATED = """
car cared, cas cases, cub cubed, dos doses, dos dosing, gat gating, gat gated, grad graded, mas mass, min mining,
pac pacing, ris rises, ris rising, scop scoping, see seed, shap shaping, shap shaped, strip striped, trie tries,
wav waving
"""
# Of every ending that is taken off, a word with it and one without.
DERIVED = """
relational relate, conditional condition, valency valence, hesitancy hesitance, digitisation digitise,
conformably conformable, radically radical, differently different, vilely vile, analogously analogous,
predication predicate, operator operate, feudalism feudal, decisiveness decisive, hopefulness hopeful,
callousness callous, formality formal, sensitivity sensitive, sensibility sensible, analogy analog, absurdly absurd,
authenticate authentic, formative form, electricity electric, electrical electric, hopeful hope, goodness good,
replacement replace, adjustment adjust, allowance allow, adherence adhere, adjustable adjust, collapsible collapse,
irritant irritate, adherent adhere, parallelism parallel, activate active, angularity angular, homologous homolog,
effective effect, regression regress, adoption adopt, revival revive, airliner airline, gyroscopic gyroscope
"""


def pairs_of(text):
    return [tuple(pair.split()) for pair in text.split(",")]


@pytest.fixture(scope="module")
def vocabulary():
    """The words of our papers' texts, hyphens opened."""
    texts = ((e.title, e.problem, e.does, e.demo, *e.asks, *e.symptoms, *e.also) for e in entries())
    words = {part for text in itertools.chain(*texts) for word in raw_words(text) for part in re.split("[-']", word)}
    return {word for word in words if word.isalpha() and len(word) > 2 and word not in STOP_WORDS}


def inflected(word):
    """The regular plurals and tenses of a word, whatever it is."""
    yield f"{word}s"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        yield f"{word}es"
    if word.endswith("y"):
        yield from (f"{word[:-1]}ies", f"{word[:-1]}ied")
    if word.endswith("e"):
        yield from (f"{word[:-1]}ing", f"{word}d")
    else:
        yield from (f"{word}ing", f"{word}ed", f"{word}{word[-1]}ing", f"{word}{word[-1]}ed")


def test_plurals_and_tenses_have_the_form_of_their_word(vocabulary):
    pairs = [(word, other) for word in sorted(vocabulary) for other in inflected(word) if other in vocabulary]
    assert len(pairs) > 2000
    assert {(word, other) for word, other in pairs if stem(word) != stem(other)} == set(pairs_of(UNRELATED))


def test_every_ending_that_is_taken_off_has_a_word_that_shows_it():
    """By the steps of Porter 1980: what a table names is taken off, and nothing is named in vain."""
    assert [pair for pair in pairs_of(DERIVED) if stem(pair[0]) != stem(pair[1])] == []
    tables = (words._DOUBLE_SUFFIXES, words._SUFFIXES, words._LONG_SUFFIXES)
    for ending, _ in itertools.chain(*tables):
        shown = [word for word, _ in pairs_of(DERIVED) if re.sub("y$", "i", word).endswith(ending)]
        assert shown, ending


def test_american_words_have_the_form_of_the_british(vocabulary):
    american = [word for word in vocabulary if re.search("[a-z]{3}(iz|yz)(e|ed|es|er|ers|ing|ations?|able)$", word)]
    assert len(american) > 40
    assert [word for word in american if stem(word) != stem(re.sub("([iy])z", r"\1s", word))] == []
    for ours in ("colour", "behaviour", "neighbour", "favour", "flavour", "labour"):
        for end in ("", "s", "ed", "ing", "ings", "al", "ful", "able"):
            assert stem(ours + end) == stem(ours.replace("our", "or") + end), ours + end
    for british, us in (("metre", "meter"), ("centre", "center"), ("fibre", "fiber"), ("epicentre", "epicenter")):
        assert len({stem(british), stem(us), stem(f"{british}s"), stem(f"{us}s"), stem(f"{british}d")}) == 1, british


def test_a_word_with_hyphens_is_its_parts_and_all_of_them_together():
    """Two or three parts are also one word, more are not; glue is no part, and an apostrophe joins nothing."""
    assert forms("long-range") == ("long", "rang", stem("longrange"))
    assert forms("state-of-art") == ("state", "art", stem("stateofart"))
    assert forms("out-of-the-box") == ("box",)
    assert forms("model's") == ("model",) + (() if "s" in STOP_WORDS else ("s",))
    assert forms("don't-know") == (stem("dontknow"),)
    for word in ("few-shot", "back-prop", "end-to-end"):
        assert forms(word)[-1] == stem(word.replace("-", ""))


def test_names_differ_in_letters_digits_and_plus_signs_alone():
    assert compact("C++") == compact(" c + + ") == "cplusplus" != compact("C")
    assert compact("ES+") != compact("ES")
    assert compact("Nüsken–Ω 2.0") == "nuskenomega20"
    letters = {
        "α": "alpha",
        "ϵ": "epsilon",
        "λ": "lambda",
        "ø": "o",
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "ł": "l",
        "đ": "d",
    }
    for sign, name in letters.items():
        assert compact(f"x{sign}y") == f"x{name}y", sign


def test_every_line_of_terms_brings_its_short_form():
    """Written apart, with hyphens, and as a plural: also where a phrase has two short forms, or is one word."""
    for line in COMPOUNDS.strip().splitlines():
        short, _, phrase = (part.strip() for part in line.partition(":"))
        for written in {phrase, phrase.replace(" ", "-"), phrase.replace("-", " "), phrase.title()}:
            assert stem(short) in analyse(written), (line, written)
    assert "rl" in analyse("model-based reinforcement-learning methods")
    assert analyse("learning reinforcement") == ["learn", "reinforc"]


def test_every_phrase_of_the_groups_is_one_term_however_it_is_written():
    """And what a line says is found from each of its words, by an arrow one way alone."""
    written = (line.partition(":") for line in COMPOUNDS.strip().splitlines())
    short_forms = {phrase.strip(): short.strip() for short, _, phrase in written}
    table = substitutes()

    def term(phrase):
        if not re.search("[ -]", phrase):
            return stem(phrase)
        return stem(short_forms.get(phrase, short_forms.get(phrase.replace("-", " "), re.sub("[ -]", "", phrase))))

    for line in (GROUPS + PRODUCTS).strip().splitlines():
        if not line:
            continue
        left, arrow, right = line.partition(">")
        sources, targets = ([word.strip() for word in part.split(",")] for part in (left, right if arrow else left))
        for word in {*sources, *targets}:
            for written in (word.replace("-", " "), word.replace(" ", "-")) if re.search("[ -]", word) else ():
                assert term(word) in analyse(written), written
        for source, target in itertools.product(sources, targets):
            if term(source) != term(target):
                assert term(target) in table[term(source)], (source, target)
