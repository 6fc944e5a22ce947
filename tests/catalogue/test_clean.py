"""Words of venues, names and TeX taken apart: every word alone, every pair of words, and the ends of every length."""

import itertools
import json
import unicodedata

import pytest

from laureate.catalogue.importers import _clean
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
    "oralposter": "Oral",
    "talk": "Oral",
    "spotlight": "Spotlight",
    "notable": "Spotlight",
    "poster": "Poster",
    "accept": "Poster",
    "accepted": "Poster",
    "submitted": "Submission",
    "submission": "Submission",
    "under review": "Submission",
    "decision pending": "Submission",
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
        ("ICML 2023 OralPoster", "ICML 2023", "Oral"),
        # A journal has neither talks nor posters, and no year in its name.
        ("Accepted by TMLR", "TMLR", ""),
        ("Under review for TMLR", "TMLR", "Submission"),
        ("Decision pending for the TMLR", "TMLR", "Submission"),
        ("Submitted to TMLR", "TMLR", "Submission"),
        ("Rejected by TMLR", "TMLR", "Submission"),
        ("Accepted to the Workshop on Widgets", "Workshop on Widgets", "Poster"),
        ("Withdrawn by Authors", "Withdrawn by Authors", "Submission"),
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


# What TeX sets on a letter, by the names that Unicode has for it; the last ones are letters themselves.
MARKS = {
    "'": "ACUTE ACCENT", "`": "GRAVE ACCENT", "^": "CIRCUMFLEX ACCENT", '"': "DIAERESIS", "~": "TILDE", "=": "MACRON",
    ".": "DOT ABOVE", "c": "CEDILLA", "v": "CARON", "u": "BREVE", "H": "DOUBLE ACUTE ACCENT", "k": "OGONEK",
    "r": "RING ABOVE", "b": "MACRON BELOW", "d": "DOT BELOW",
}  # fmt: skip
SIGNS = {
    "ss": "LATIN SMALL LETTER SHARP S", "o": "LATIN SMALL LETTER O WITH STROKE", "i": "LATIN SMALL LETTER I",
    "O": "LATIN CAPITAL LETTER O WITH STROKE", "l": "LATIN SMALL LETTER L WITH STROKE", "j": "LATIN SMALL LETTER J",
    "L": "LATIN CAPITAL LETTER L WITH STROKE", "aa": "LATIN SMALL LETTER A WITH RING ABOVE",
    "AA": "LATIN CAPITAL LETTER A WITH RING ABOVE", "ae": "LATIN SMALL LETTER AE", "AE": "LATIN CAPITAL LETTER AE",
    "oe": "LATIN SMALL LIGATURE OE", "OE": "LATIN CAPITAL LIGATURE OE", "ell": "SCRIPT SMALL L", "infty": "INFINITY",
    "textendash": "EN DASH", "textemdash": "EM DASH",
} | {
    name: f"GREEK SMALL LETTER {name.upper().replace('LAMBDA', 'LAMDA')}"
    for name in ("epsilon", "alpha", "beta", "gamma", "delta", "lambda", "mu", "sigma")
}  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
def test_every_accent_of_tex_is_set_on_every_letter_however_it_is_written(mark):
    """And on a letter that has one already, as in Vietnamese names; what stands beside it stays."""
    set_on = lambda text, one: unicodedata.normalize("NFC", text + unicodedata.lookup(f"COMBINING {MARKS[one]}"))  # noqa: E731
    for letter in "aeioucnszyAEO":
        accented = set_on(letter, mark)
        forms = [
            rf"\{mark}{{{letter}}}",
            rf"{{\{mark}{{{letter}}}}}",
            rf"{{\{mark} {letter}}}",
            rf"\{mark} {{{letter}}}",
        ]
        forms += [rf"\{mark}{letter}"] * (not mark.isalpha())
        forms += [rf"\{mark}{{\{letter}}}", rf"{{\{mark} \{letter}}}"] * (letter == "i")
        for form in forms:
            assert without_tex(f"X{form}yz and $w$") == f"X{accented}yz and w", form
        for other in ("^", "u", "c"):
            both = set_on(set_on(letter, other), mark)
            for inner in (rf"\{other}{{{letter}}}", rf"\{other} {letter}"):
                assert without_tex(f"X\\{mark}{{{inner}}}yz") == f"X{both}yz", inner


def test_every_sign_of_tex_is_the_one_of_its_name():
    """Where a name goes on it is another; what is not known is gone."""
    for name, sign in SIGNS.items():
        told = unicodedata.lookup(sign)
        for form in (rf"\{name}{{}}", rf"{{\{name}}}", rf"\{name} "):
            assert without_tex(f"X{form}y") == f"X{told}y", form
        assert without_tex(rf"x\{name}qq y") == "x y"
    assert set(SIGNS) == set(_clean._LETTERS)
    assert set(MARKS) == {*_clean._ACCENTS, *_clean._LETTER_ACCENTS}


def test_nothing_unseen_is_left_in_a_text():
    """Of all characters: none that a terminal would obey, none that hides or turns what stands beside it."""
    visible = {
        0x0600,
        0x0601,
        0x0602,
        0x0603,
        0x0604,
        0x0605,
        0x06DD,
        0x070F,
        0x0890,
        0x0891,
        0x08E2,
    }  # they have a sign
    for code in itertools.chain(range(0x10000), range(0xE0000, 0xE0100), (0xF0000, 0x10FFFD)):
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and code not in visible:
            assert clean(f"a{chr(code)}b") == "a b", hex(code)
        elif unicodedata.category(chr(code))[0] in "LNPS":
            kept = unicodedata.normalize("NFC", f"a{chr(code)}b")
            assert clean(f"a{chr(code)}b") == kept, hex(code)


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
