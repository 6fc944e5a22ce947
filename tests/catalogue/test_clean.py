"""Words of venues, names and TeX taken apart: every word alone, every pair of words, and the ends of every length."""

import itertools
import json
import unicodedata

import pytest

from laureate.catalogue.importers._clean import (
    MOST_AUTHORS,
    clean,
    clean_authors,
    decision_of,
    split_venue,
    without_tex,
)
from laureate.catalogue.importers.openreview import read

# The strongest word decides, in this order.
MEANING = {
    "oral": "Oral",
    "talk": "Oral",
    "spotlight": "Spotlight",
    "notable": "Spotlight",
    "poster": "Poster",
    "accept": "Poster",
    "accepted": "Poster",
    "submitted": "Submission",
    "submission": "Submission",
    "under review": "Submission",
    "reject": "Submission",
    "rejected": "Submission",
    "withdrawn": "Submission",
}
ORDER = ["Oral", "Spotlight", "Poster", "Submission"]


def test_every_word_and_every_pair_of_words_has_its_decision():
    assert decision_of("ICML 2021") == decision_of("moral postering retalk") == ""
    for word, decision in MEANING.items():
        assert decision_of(f"ICML 2021 ({word.upper()})") == decision, word
    for one, two in itertools.permutations(MEANING, 2):
        strongest = min(MEANING[one], MEANING[two], key=ORDER.index)
        assert decision_of(f"{one}, {two}") == strongest, (one, two)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("notable top 5%", "Oral"),
        ("Notable-top-5%", "Oral"),
        ("notable top5", "Oral"),
        ("notable top 25%", "Spotlight"),
    ],
)
def test_the_top_five_percent_are_talks(text, decision):
    assert decision_of(text) == decision


@pytest.mark.parametrize(
    ("text", "venue", "decision"),
    [
        ("ICLR 2021 Poster", "ICLR 2021", "Poster"),
        ("Submitted to ICLR 2021", "ICLR 2021", "Submission"),
        ("Talk at the NeurIPS 1999", "NeurIPS 1999", "Oral"),
        ("ICLR'2021 oral", "ICLR 2021", "Oral"),
        ("ICLR 2021", "ICLR 2021", ""),
        ("a poster of 1821", "a poster of 1821", "Poster"),
    ],
)
def test_a_venue_is_split_from_its_decision(text, venue, decision):
    assert split_venue(text) == (venue, decision)


def test_texts_are_one_bounded_line_of_whole_characters():
    assert clean("a\x1b[2J\n b\u202ec\t") == "a [2J b c"
    assert clean("x" * 10, 10) == "x" * 10
    assert clean("x" * 11, 10) == "x" * 9 + "…"
    assert clean("x" * 8 + "  " + "y" * 9, 10) == "x" * 8 + "…"
    decomposed = "e\u0301" * 3
    assert clean(decomposed, 3) == unicodedata.normalize("NFC", decomposed) == "ééé"


def test_authors_are_in_order_each_once_and_not_too_many():
    assert clean_authors([" B. Two,", "A. One*", "", "B. Two", " ;"]) == ("B. Two", "A. One")
    names = [f"Author {i}" for i in range(MOST_AUTHORS + 2)]
    assert clean_authors(names) == tuple(names[:MOST_AUTHORS])


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"N{\"u}sken", "Nüsken"),
        (r"\'{e}\`a\^{o}\~n\=a\.z", "éàôñāż"),
        (r"\c{c}\v{s}\u{g}\H{o}\k{a}\r{u}", "çšğőąů"),
        (r"\c c", "ç"),
        (r"{\ss} \o{} \L{}ukasz", "ß ø Łukasz"),
        (r"$\epsilon$-greedy", "ε-greedy"),
        (r"50\% of R\&D", "50% of R&D"),
        ("a~b ``c''", 'a b "c"'),
        ("nothing to do", "nothing to do"),
    ],
)
def test_tex_is_taken_off(tex, text):
    assert without_tex(tex) == unicodedata.normalize("NFC", text)


def note(**content) -> dict:
    return {"id": "abc-1", "forum": "abc-1", "content": {"title": "A title"} | content}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"authors": ["A", "Anonymous", "B"]}, {"authors": ("A", "B")}),
        ({"authors": "A, B"}, {"authors": ("A", "B")}),
        ({"venueid": "ICLR.cc/2021/Conference"}, {"venue": "ICLR 2021", "decision": ""}),
        (
            {"venue": "ICLR 2021 Spotlight", "venueid": "NeurIPS.cc/2020/X"},
            {"venue": "ICLR 2021", "decision": "Spotlight"},
        ),
        ({"venueid": 7}, {"venue": ""}),
        ({"abstract": " What\nfor "}, {"abstract": "What for"}),
        ({"abstract": 3}, {"abstract": ""}),
        ({}, {"url": "https://openreview.net/forum?id=abc-1", "title": "A title"}),
    ],
)
def test_what_a_note_of_openreview_says(content, found):
    (entry,) = read(json.dumps([note(**content)]))
    assert {name: getattr(entry, name) for name in found} == found
