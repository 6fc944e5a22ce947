"""What an index keeps and what a question takes from it, each recomputed from a few papers by plain rules."""

import collections
import dataclasses
import itertools
import math
import os
import re
import sqlite3
import time
from array import array

import numpy as np
import pytest

from laureate.catalogue import Catalogue, Entry, english, index, search
from laureate.catalogue.question import PREFIX, SUBSTITUTE, Vocabulary
from laureate.catalogue.spelling import corrections, distance, near
from laureate.catalogue.words import compact, raw_words, stem

LETTERS = "abcd"


def vocabulary_of(rows):
    """An index that knows words alone: (word, papers, whether it is only a person's)."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(index.SCHEMA)
    db.executemany("INSERT INTO words VALUES (?, ?, ?, ?)", [(len(word), word, *row) for word, *row in rows])
    return db


@pytest.fixture(scope="module")
def drawn():
    """Words of few letters, so that many are near to one another, some as frequent as others, some names."""
    draw = np.random.default_rng(0)
    words = {"".join(draw.choice([*LETTERS], size)) for size in (4, 5, 6, 7, 8, 9) for _ in range(60)}
    return [(word, int(draw.integers(1, 4)), int(draw.random() < 0.2)) for word in sorted(words)]


def test_a_correction_is_the_nearest_word_and_then_the_most_frequent(drawn):
    """Of all words of the vocabulary with the same first letter; else of those with the same middle or end."""
    db, draw, seen = vocabulary_of(drawn), np.random.default_rng(1), collections.Counter()
    for size, _ in itertools.product((4, 5, 6, 7, 8, 9), range(40)):
        typed = "".join(draw.choice([*LETTERS], size))
        edits = 1 if size < 7 else 2
        words = [(word, papers) for word, papers, person in drawn if not person]
        found = []
        for group in (
            [pair for pair in words if pair[0][0] == typed[0]],
            [
                pair
                for pair in words
                if pair[0][1:4] == typed[1:4] or pair[0][2:5] == typed[2:5] or pair[0][-3:] == typed[-3:]
            ],
        ):
            apart = [(distance(typed, word, edits), -papers, word) for word, papers in group]
            found = found or sorted(row for row in apart if row[0] <= edits)
        told = [(one.edits, -one.papers, one.word) for one in corrections(db, typed)]
        assert told == (found[:3] if size > 4 else []), typed
        seen.update({(size, row[0]) for row in told})
        seen["ties"] += len({row[:2] for row in told}) < len(told)
        seen["frequent but farther"] += sorted(told, key=lambda row: row[1:]) != told
    assert min(seen[6, 1], seen[7, 2], seen[9, 2], seen["ties"], seen["frequent but farther"]) > 0
    assert corrections(db, "abc-de") == corrections(db, "abc4de") == []


def test_words_near_to_one_begin_like_it_and_the_most_frequent_come_first(drawn):
    db = vocabulary_of(drawn)
    more = 0
    for typed in ("abcdaab", "bcdaz", "ab", *map("".join, itertools.product(LETTERS, repeat=3))):
        starts = [typed[:length] for length in (5, 4, 3) if length <= len(typed)]
        rows = next(
            (rows for start in starts if (rows := [r for r in drawn if r[0].startswith(start) and not r[2]])), []
        )
        told = near(db, typed, 3)
        counts = {word: papers for word, papers, _ in rows}
        assert set(told) <= set(counts), typed
        assert [counts[word] for word in told] == sorted(counts.values(), reverse=True)[:3]
        more += [counts[word] for word in sorted(counts)][:3] != [counts[word] for word in told]
    assert more > 5


def test_an_unfinished_word_is_completed_by_words_and_then_by_names():
    rows = [("graphs", 8, 0), ("graph", 9, 0), ("grain", 2, 0), ("granger", 50, 1), ("grams", 3, 0), ("gripper", 7, 0)]
    rows += [(f"grab{letter}", 1, 0) for letter in "abcdef"]
    told = Vocabulary(vocabulary_of(rows), 9)._completions("gra")
    order = [word for word, *_ in sorted(rows, key=lambda row: (row[2], -row[1])) if word.startswith("gra")]
    assert len(order) > 8
    assert list(told)[:3] == list(dict.fromkeys(map(stem, order)))[:3]
    assert set(told.values()) == {PREFIX}
    assert stem("granger") not in told
    assert Vocabulary(vocabulary_of(rows[3:4]), 9)._completions("gra") == {stem("granger"): PREFIX}
    assert Vocabulary(vocabulary_of(rows), 9)._completions("g") == {}


PAPERS = (
    Entry(
        "one", "Widget Nets for Gripping: A Study", ("Ada Sparrow", "Alan Fox-Trott"), "ICML 2021", name="WidgetNet 2",
        problem="grips slip", does="Learns a grip that holds the widget, widget by widget", asks=("why do grips slip",),
        abstract="Sparrow grips.", also=("prehension",), topic="vision", fit=1,
    ),
    Entry("two", "One Two Three Four: On Counting", ("Grace Fox",), "ICML 1998", abstract="counting widget widget"),
    Entry("three", "One Two Three Four Five: On Sheep", ("Ada Sparrow",), award="Best Sheep", fit=2, name="C++/SHE"),
    Entry("four", "Noise and Sheep", (), "ICLR 2020", abstract="a fox grips", fit=3, name="Noise"),
    Entry("five", "Sheep again", (), "ICLR 2020", fit=3, symptoms=("sheep are counted twice",)),
)  # fmt: skip


@pytest.fixture(scope="module")
def built():
    db = sqlite3.connect(":memory:", isolation_level=None)
    index.build(db, PAPERS, "mark")
    return db


def test_the_words_that_correct_errors_are_those_of_texts_and_names_of_persons_stand_apart(built):
    """Hyphens opened; how many papers have each, in any field but its authors'."""
    texts, people = collections.Counter(), collections.Counter()
    for paper in PAPERS:
        fields = (
            paper.title,
            paper.problem,
            paper.does,
            paper.abstract,
            paper.topic,
            paper.kind,
            paper.award,
            paper.name,
        )
        split = [index._opened(paper.name)]  # a name is opened: WidgetNet is also Widget
        words = {
            word for text in (*fields, *split, *paper.asks, *paper.symptoms, *paper.also) for word in raw_words(text)
        }
        for word in words:
            texts.update(part for part in re.split("[-']", word) if len(part) > 2 and part.isalpha())
        for word in {word for author in paper.authors for word in raw_words(author)}:
            people.update(part for part in word.split("-") if len(part) > 2)
    expected = {word: (texts[word] or people[word], int(not texts[word])) for word in {*texts, *people}}
    assert expected["trott"] == (1, 1)
    assert (expected["sparrow"], expected["fox"], expected["ada"]) == ((1, 0), (1, 0), (2, 1))
    rows = built.execute("SELECT word, length, papers, person FROM words").fetchall()
    assert {word: (papers, person) for word, _, papers, person in rows} == expected
    assert all(length == len(word) for word, length, _, _ in rows)


def test_a_form_counts_by_where_it_stands(built):
    """An abstract says little beside our own words, and everything where it stands alone."""
    amounts = {}
    for form, papers, numbers, weights in built.execute("SELECT form, papers, numbers, weights FROM forms"):
        (places := array("I")).frombytes(numbers)
        (thousandths := array("H")).frombytes(weights)
        assert list(places) == sorted(set(places))
        assert len(places) == len(thousandths) == papers
        amounts[form] = dict(zip(places, thousandths, strict=True))
    usual = lambda length, of: 1 - index.LENGTH_SHARE + index.LENGTH_SHARE * length / of  # noqa: E731
    assert amounts["prehens"] == {1: round(1000 * 0.8 / usual(1, 10))}
    assert amounts["count"][2] == round(1000 * (1.0 / usual(4, 10) + 1.0 / usual(3, 110)))
    assert amounts[stem("sparrow")][1] == round(1000 * (0.5 / usual(6, 10) + 0.25 / usual(2, 110)))
    assert amounts[stem("fox")][4] == round(1000 * 1.0 / usual(2, 110))


def test_a_paper_goes_by_its_id_its_title_its_names_and_a_short_beginning(built):
    told = collections.defaultdict(set)
    for name, number in built.execute("SELECT name, number FROM names"):
        told[number].add(name)
    assert told[1] == {"one", compact(PAPERS[0].title), "widgetnet2", "widgetnetsforgripping"}
    assert told[2] == {"two", compact(PAPERS[1].title), "onetwothreefour"}
    assert told[3] == {"three", compact(PAPERS[2].title), "cplusplus", "she", "cplusplusshe"}


def test_a_name_is_meant_as_surely_as_it_is_written_like_one(built):
    """Alone, among others, in capitals or not; a word of glue only where nothing else is asked."""
    words = Vocabulary(built, len(PAPERS))
    for text, expected in {
        "SHE": {3: 2.0},
        "she": {3: 2.0},
        "she likes it": {},
        "sheep or C++ programs": {3: 0.3},
        "WidgetNet 2 for sheep": {1: 0.8},
        "widgetnet2 for sheep": {1: 1.0},
        "Noise is what I hear": {4: 0.3},
        "noise is what I hear": {4: 0.3},
        "all is NOISE here": {4: 1.0},
        "One Two Three Four": {2: 3.0, 1: 0.3 if "one" not in index.STOP_WORDS else 0.0},
    }.items():
        told = words.named(text)
        for number, sure in expected.items():
            assert told.get(number, 0.0) == sure, (text, told)
        if not expected:
            assert not told, text


def test_what_was_meant_instead_counts_less_the_farther_it_is():
    """Corrections beside the first: 0.7 where they are as near, 0.4 where they are not; substitutes; completions."""
    titles = ("Sheepdog", "Sheepdot", "Shepdoi", "Sleepdig", "Image of rest")
    db = sqlite3.connect(":memory:", isolation_level=None)
    index.build(db, [Entry(f"p{i}", title) for i, title in enumerate(titles)], "x")
    words = Vocabulary(db, len(titles))
    corrected, groups = words.groups("sheepdoj", as_typed=False)
    found = corrections(db, "sheepdoj")
    assert [one.edits for one in found] == [1, 1, 2]
    assert corrected == [("sheepdoj", found[0].word)]
    ((group, weight),) = groups
    assert group == {stem(found[0].word): 1.0, stem(found[1].word): 0.7, stem(found[2].word): 0.4}
    idf = math.log1p((5 - 1 + 0.5) / (1 + 0.5))
    assert weight == pytest.approx(idf)
    ((group, weight),) = words.groups("picture", as_typed=False)[1]
    assert (group[stem("image")], group[stem("picture")]) == (SUBSTITUTE, 1.0)
    assert weight == pytest.approx(SUBSTITUTE * idf)
    for typed, as_typed, completed in (("sheepd", True, True), ("sheepd", False, False), ("sheepd ", True, False)):
        groups = words.groups(typed, as_typed)[1]
        assert any(group.get(stem("sheepdot")) == PREFIX for group, _ in groups) == completed, (typed, as_typed)


@pytest.mark.parametrize("typed", ["200 ms", "95%", "512x512", "3.7e18", "276,984", "1.5 GB"])
def test_amounts_say_nothing_and_words_with_digits_do(typed):
    db = sqlite3.connect(":memory:", isolation_level=None)
    index.build(db, [Entry("p", f"Widgets in 3d with wav2vec2 and 4-bit {typed}")], "x")
    words = Vocabulary(db, 1)
    assert [group for group, _ in words.groups(typed, False)[1]] == []
    assert {form for group, _ in words.groups("3d wav2vec2 4-bit", False)[1] for form in group} >= {"3d", "wav2vec2"}


def test_what_won_and_then_what_fits_stands_first_where_nothing_is_asked(built):
    catalogue = Catalogue(built, running=["two"])
    order = sorted(PAPERS, key=lambda paper: (not paper.award, -paper.fit, PAPERS.index(paper)))
    assert [hit.entry.id for hit in catalogue.listed().hits] == [paper.id for paper in order]
    assert [hit.entry.id for hit in catalogue.listed(2, 1).hits] == [paper.id for paper in order[1:3]]
    iclr = [paper.id for paper in order if "ICLR" in paper.venue]
    assert [hit.entry.id for hit in catalogue.search("", venue="iclr").hits] == iclr
    assert catalogue.facets()["venue"] == {"ICLR 2020": 2, "": 1, "ICML 1998": 1, "ICML 2021": 1}
    assert [hit.entry.id for hit in catalogue.search("sheep widget", runs=True).hits] == ["two"]
    assert catalogue.search('"counted twice"').ignored_phrase is False
    assert [hit.entry.id for hit in catalogue.search('"counted twice"').hits] == ["five"]


def test_how_near_a_paper_is_in_its_meaning_is_the_mean_of_the_nearest_of_its_phrases(built):
    """Of three, or of as many as it has."""
    catalogue = Catalogue(built)
    meaning = catalogue._words.direction("sheep")
    scored = catalogue._by_meaning([(number, 1.0) for number in range(1, 6)], meaning)
    known = {word: (rank, vector) for word, rank, vector in english.shipped_words()}
    for number, score in scored:
        cosines = []
        for text in index.phrases(PAPERS[number - 1]):
            unit = english.direction(known[word] for word in index.known_words(text, known))
            cosines.append(english.cosine(meaning, english.packed(unit)))
        assert score == pytest.approx(1.0 + search.MEANING * np.mean(sorted(cosines)[-3:])), number


def test_only_what_builders_left_behind_long_ago_is_removed(tmp_path):
    path = tmp_path / "catalogue.sqlite"
    ages = {"old.new": 700.0, "young.new": 500.0, "now.new": 0.0, "old.sqlite": 7000.0}
    for name, age in ages.items():
        (left := tmp_path / f"{path.name}.{name}").touch()
        os.utime(left, (time.time() - age,) * 2)
    index._sweep(path)
    assert {left.name.removeprefix(f"{path.name}.") for left in tmp_path.iterdir()} == {*ages} - {"old.new"}


@pytest.mark.parametrize(
    ("venue", "year"),
    [
        ("ICML 2021", 2021),
        ("NIPS 1999", 1999),
        ("COLT 1899", None),
        ("12021 X", None),
        ("", None),
        ("A 1987 B 2001", 1987),
    ],
)
def test_the_year_stands_in_the_venues_name(venue, year):
    assert dataclasses.replace(PAPERS[0], venue=venue).year == year


def test_what_is_read_whole_is_bounded_and_rare_words_come_first(monkeypatch):
    """Every word that papers have is read or looked up, once; the rarest is read whatever it costs."""
    monkeypatch.setattr(search, "POSTINGS", 100)
    draw = np.random.default_rng(0)
    later_seen = over_seen = substitutes_left = 0
    for _ in range(300):
        counts = {f"w{i}": int(draw.integers(1, 150)) for i in range(12) if draw.random() < 0.8}
        groups = []
        for i in draw.permutation(4):
            group = {f"w{i}": 1.0} | {f"w{draw.integers(4, 12)}": 0.35 for _ in range(draw.integers(0, 4))}
            groups.append((group, float(draw.uniform(1, 9))))
        now, later = search._planned(groups, counts)
        weights = {weight: group for group, weight in groups}
        assert {weight for _, weight in now}.isdisjoint({weight for _, weight in later})
        read = sum(counts[form] for kept, _ in now for form in kept)
        first = next(iter(now[0][0])) if now else ""
        assert read <= 100 or (len(now) == 1 and [*now[0][0]] == [first])
        over_seen += read > 100
        for kept, weight in now:
            assert kept.items() <= weights[weight].items()
            asked = [form for form, share in weights[weight].items() if share == 1 and form in counts]
            assert kept.keys() >= {*asked}, "the word itself, if any paper has it"
            substitutes_left += len(kept) < len([form for form in weights[weight] if form in counts])
        for looked, weight in later:
            assert (
                looked == {form: 1.0 for form, share in weights[weight].items() if share == 1 and form in counts} != {}
            )
        for group, weight in groups:
            told = weight in {one for _, one in (*now, *later)}
            assert told or not any(share == 1 and form in counts for form, share in group.items())
        later_seen += len(later)
        if now and any(share == 1 and form in counts for form, share in now[0][0].items()):
            heaviest = max(w for g, w in groups if any(form in counts for form in g))
            assert now[0][1] == heaviest or not any(s == 1 and f in counts for f, s in weights[heaviest].items())
    assert min(later_seen, over_seen, substitutes_left) > 5


def test_what_a_question_means_is_the_sum_of_its_known_words_and_shorter_where_they_are_few(built):
    """Rare words counting most, each as often as it is said; glue and unknown words not at all."""
    known = {word: (rank, np.frombuffer(vector, np.int8)) for word, rank, vector in english.shipped_words()}
    for text, said in {
        "noisy labels": ["noisy", "labels"],
        "The noisy-labels of labels": ["noisy", "labels", "labels"],
        "noisy labels hurt deep networks badly": ["noisy", "labels", "hurt", "deep", "networks", "badly"],
        "how do I qqxzzy": [],
        "model's noise": ["model", "noise"],
    }.items():
        assert all(word in known for word in said)
        total = sum((known[w][0] + 10) / (known[w][0] + 1010) * known[w][1] for w in said) + np.zeros(
            english.DIMENSIONS
        )
        unit = total / (np.linalg.norm(total) or 1.0)
        told = Vocabulary(built, 5).direction(text)
        assert told == pytest.approx((min(1.0, len(said) / 5) * unit).tolist()), text
        length = np.linalg.norm(told)
        assert length == pytest.approx(min(1.0, len(said) / 5))


def test_the_phrases_of_a_paper_are_its_texts_each_by_itself():
    first, second, *_ = PAPERS
    assert index.phrases(first) == [
        f"{first.title} {first.name}", "grips slip", first.does, "why do grips slip", "prehension", "Sparrow grips.",
    ]  # fmt: skip
    assert index.phrases(second) == [f"{second.title} ", "counting widget widget"]
    assert index.phrases(PAPERS[4])[-1] == "sheep are counted twice"
    long = " ".join(f"word{i}x" for i in range(index.LONGEST_PHRASE + 5))
    assert len(index.telling_words(long)) == index.LONGEST_PHRASE
    assert index.telling_words("The state-of-the-art of it, isn't it") == ["state", "art"]
    assert index.known_words("a widget of noise", {"noise", "a"}) == ["noise"]


def test_words_are_joined_and_split_where_the_vocabulary_has_them():
    db = vocabulary_of(
        [
            ("dropout", 2, 0),
            ("label", 2, 0),
            ("noise", 1, 0),
            ("lab", 9, 0),
            ("elnoise", 9, 0),
            ("ada", 1, 1),
            ("intoit", 1, 0),
        ]
    )
    words = Vocabulary(db, 5)
    assert words._joined(["drop", "out", "rate"]) == [stem("dropout")]
    assert words._joined(["out", "drop"]) == words._joined(["drop", "the", "out"]) == words._joined([]) == []
    assert words._split("labelnoise") == ("label", "noise")  # no part is shorter than four letters
    assert words._split("noiselabel") == ("noise", "label")
    assert [words._split(word) for word in ("labnoise", "labelada", "noise", "labelx")] == [None] * 4


def test_suggestions_are_few_and_each_is_told_once(drawn):
    words = Vocabulary(vocabulary_of(drawn), 9)
    first = near(vocabulary_of(drawn), "aaa", 3)
    assert words.suggestions("the aaa of aaa") == tuple(first)
    many = words.suggestions("aaa bbb ccc ddd aab")
    assert (
        many
        == tuple(dict.fromkeys(one for typed in ("aaa", "bbb", "ccc", "ddd") for one in near(words._db, typed, 3)))[:6]
    )
    assert words.suggestions("the of and") == ()
